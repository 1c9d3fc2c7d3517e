/*
 * Policy and candidate names to indices and masks, once per runtime or query.
 */
#include <string.h>

#include "dispatch/decide.h"

/* What a name may stand for: the family asked, and every other one that is registered. */
struct scope {
    const struct cbn__family *family;
    const struct cbn__family *const *families;
    uint32_t family_count;
};

typedef int (*find_fn)(const struct cbn__family *family, const char *name);

static bool known_somewhere(const struct scope *scope, find_fn find, const char *name)
{
    if (find(scope->family, name) >= 0)
        return true;
    for (uint32_t i = 0; i < scope->family_count; i++)
        if (find(scope->families[i], name) >= 0)
            return true;
    return false;
}

/* true where an earlier family of the scope has the name too: it is listed once. */
static bool listed_before(const struct scope *scope, uint32_t family_index, find_fn find, const char *name)
{
    for (uint32_t i = 0; i < family_index; i++)
        if (find(scope->families[i], name) >= 0)
            return true;
    return false;
}

static void append_name(struct cbn__buf *list, const char *name)
{
    cbn__buf_append_format(list, "%s%s", list->size ? ", " : "", name);
}

static void list_policies(const struct scope *scope, struct cbn__buf *list)
{
    for (uint32_t i = 0; i < scope->family_count; i++)
        for (uint32_t p = 0; p < scope->families[i]->policy_count; p++)
            if (!listed_before(scope, i, cbn__family_policy, scope->families[i]->policies[p]))
                append_name(list, scope->families[i]->policies[p]);
}

static void list_candidates(const struct scope *scope, struct cbn__buf *list)
{
    for (uint32_t i = 0; i < scope->family_count; i++)
        for (uint32_t c = 0; c < scope->families[i]->candidate_count; c++)
            if (!listed_before(scope, i, cbn__family_candidate, scope->families[i]->candidates[c].template.name))
                append_name(list, scope->families[i]->candidates[c].template.name);
}

static int32_t resolve_policy(const struct scope *scope, const char *name, uint32_t *ret_policy, struct cbn_error *err)
{
    if (!name || !*name)
        name = "default";
    if (!known_somewhere(scope, cbn__family_policy, name)) {
        CBN__BUF_AUTO known = CBN__BUF_INIT;
        list_policies(scope, &known);
        return cbn__error_own(err, CBN_STATUS_INVALID, "policy: '%.64s' is not known; give one of %s", name,
                              cbn__buf_text(&known));
    }
    int policy = cbn__family_policy(scope->family, name);
    if (policy < 0)
        policy = cbn__family_policy(scope->family, "default");
    *ret_policy = (uint32_t)policy;
    return CBN_STATUS_OK;
}

static int32_t resolve_name(const struct scope *scope, const char *field, const char *name, uint32_t *mask,
                            struct cbn_error *err)
{
    int candidate = cbn__family_candidate(scope->family, name);
    if (candidate >= 0)
        *mask |= UINT32_C(1) << candidate;
    if (candidate >= 0 || known_somewhere(scope, cbn__family_candidate, name))
        return CBN_STATUS_OK;
    CBN__BUF_AUTO known = CBN__BUF_INIT;
    list_candidates(scope, &known);
    return cbn__error_own(err, CBN_STATUS_INVALID, "%s: '%.64s' is not a candidate; give some of %s", field, name,
                          cbn__buf_text(&known));
}

/* The next item of a comma list without the blanks round it; false at the end. *ret_length 0: an empty item. */
static bool next_item(const char **cursor, const char **ret_item, size_t *ret_length)
{
    if (!*cursor)
        return false;
    const char *item = *cursor;
    size_t length = strcspn(item, ",");
    *cursor = item[length] ? item + length + 1 : NULL;
    while (length && (item[0] == ' ' || item[0] == '\t')) {
        item++;
        length--;
    }
    while (length && (item[length - 1] == ' ' || item[length - 1] == '\t'))
        length--;
    *ret_item = item;
    *ret_length = length;
    return true;
}

static int32_t resolve_list(const struct scope *scope, const char *field, const char *list, uint32_t *ret_mask,
                            struct cbn_error *err)
{
    const char *item;
    size_t length;
    uint32_t mask = 0;
    while (next_item(&list, &item, &length)) {
        if (!length)
            continue;
        char name[CBN_TEXT_BYTES];
        if (length >= sizeof(name))
            return cbn__error_own(err, CBN_STATUS_INVALID, "%s: an item of %zu bytes is no candidate's name", field,
                                  length);
        memcpy(name, item, length);
        name[length] = 0;
        int32_t status = resolve_name(scope, field, name, &mask, err);
        if (status != CBN_STATUS_OK)
            return status;
    }
    *ret_mask = mask;
    return CBN_STATUS_OK;
}

int32_t cbn__route_resolve(const struct cbn__family *family, const struct cbn__family *const *families,
                           uint32_t family_count, const char *policy, const char *disable, const char *enable,
                           bool strict, struct cbn__route *ret_route, struct cbn_error *err)
{
    struct scope scope = {family, families, family_count};
    if (!family_count)
        scope = (struct scope){family, &family, 1};
    struct cbn__route route = {.strict = strict};
    int32_t status = resolve_policy(&scope, policy, &route.policy, err);
    if (status == CBN_STATUS_OK)
        status = resolve_list(&scope, "disable", disable, &route.disabled_mask, err);
    if (status == CBN_STATUS_OK)
        status = resolve_list(&scope, "enable", enable, &route.enabled_mask, err);
    if (status == CBN_STATUS_OK)
        *ret_route = route;
    return status;
}
