/*
 * Registration: a public description is checked and copied into a family that owns all it points at.
 * Knows no operation: the built-in families pass here as a caller's own does. No locks: a family never changes after
 * cbn__family_create.
 */
#include "dispatch/family.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cubinet/route.h>

#include "base/args.h"
#include "jit/inputs.h"
#include "jit/job.h"

#define PARAM_NAME_BYTES 32 /* cbn_spec.params[].name */
#define ARGUMENT_BYTES_MAX                                                                                             \
    32764u /* kernel parameters since CUDA 12.1 (CUDA C++ Programming Guide, function parameters) */

/* Where a field stands, as refusals print it: "candidates[2].guards[0]". */
struct path {
    char text[96];
};

struct copy {
    const struct cbn_family *from;
    struct cbn__family *to;
    const struct cbn__hash *digest;
    struct cbn_error *err;
};

static struct path path_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

static struct path path_of(const char *format, ...)
{
    struct path path;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(path.text, sizeof(path.text), format, args);
    va_end(args);
    return path;
}

static int32_t refuse(const struct copy *copy, struct path at, const char *what)
{
    return cbn__error_own(copy->err, CBN_STATUS_INVALID, "%s: %s", at.text, what);
}

static int32_t refuse_name(const struct copy *copy, struct path at, const char *name, const char *what)
{
    return cbn__error_own(copy->err, CBN_STATUS_INVALID, "%s: '%.64s' %s", at.text, name ? name : "(NULL)", what);
}

/* true for [a-z][a-z0-9_]* (with first 'a') or [A-Z][A-Z0-9_]* (with 'A') that fits into bytes with its NUL. */
static bool is_name(const char *text, char first, size_t bytes)
{
    if (!text || text[0] < first || text[0] > first + 25)
        return false;
    size_t length = 1;
    for (; text[length] && length < bytes; length++) {
        char c = text[length];
        if (!(c >= first && c <= first + 25) && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return length < bytes;
}

static bool is_symbol(const char *text)
{
    if (!text || !text[0] || (text[0] >= '0' && text[0] <= '9'))
        return false;
    for (; *text; text++)
        if (!((*text | 32) >= 'a' && (*text | 32) <= 'z') && !(*text >= '0' && *text <= '9') && *text != '_')
            return false;
    return true;
}

/* NULL stays NULL. */
static int32_t copy_text(const struct copy *copy, const char *text, char **ret_text)
{
    *ret_text = text ? strdup(text) : NULL;
    return text && !*ret_text ? cbn__error_no_memory(copy->err) : CBN_STATUS_OK;
}

static int32_t copy_name(const struct copy *copy, struct path at, const char *name, char **ret_name)
{
    if (!is_name(name, 'a', CBN_TEXT_BYTES))
        return refuse_name(copy, at, name, "is not [a-z][a-z0-9_]* of at most 63 bytes");
    return copy_text(copy, name, ret_name);
}

/* The array of a copy: count zeroed items, NULL for none. NULL items with a count, or a count above max, are refused.
 */
static int32_t make_array(const struct copy *copy, struct path at, const void *from, uint32_t count, uint32_t max,
                          size_t item_bytes, void **ret_array)
{
    *ret_array = NULL;
    if (count > max)
        return cbn__error_own(copy->err, CBN_STATUS_LIMIT, "%s: %u of them; at most %u are taken", at.text, count, max);
    if (!count)
        return CBN_STATUS_OK;
    if (!from)
        return refuse(copy, at, "NULL with a count above 0");
    *ret_array = calloc(count, item_bytes);
    return *ret_array ? CBN_STATUS_OK : cbn__error_no_memory(copy->err);
}

static bool is_relation(uint32_t relation)
{
    switch (relation) {
#define CBN_X(number, name, sign) case number:
        CBN_RELATION_MAP(CBN_X)
#undef CBN_X
        return true;
    default:
        return false;
    }
}

static int32_t check_guard_value(const struct copy *copy, struct path at, const struct cbn_guard *guard, bool sweeps)
{
    if (!is_relation(guard->relation))
        return refuse(copy, path_of("%s.relation", at.text), "not one of enum cbn_relation");
    if (sweeps && (guard->relation == CBN_RELATION_NE || guard->relation == CBN_RELATION_MULTIPLE_OF))
        return refuse(copy, path_of("%s.relation", at.text), "NE and MULTIPLE_OF are not for the sweep fact");
    if (guard->relation == CBN_RELATION_MULTIPLE_OF && guard->value < 1)
        return refuse(copy, path_of("%s.value", at.text), "MULTIPLE_OF needs a value of at least 1");
    if (guard->relation == CBN_RELATION_IN_RANGE && guard->value >= guard->value_end)
        return refuse(copy, path_of("%s.value_end", at.text), "an empty range; IN_RANGE is [value, value_end)");
    if (guard->reserved)
        return refuse(copy, path_of("%s.reserved", at.text), "must be 0");
    return CBN_STATUS_OK;
}

/* The index of a fact that a guard or a bucket names. */
static int32_t copy_fact(const struct copy *copy, struct path at, const char *name, uint32_t *ret_fact)
{
    int fact = cbn__family_fact(copy->to, name);
    if (fact < 0)
        return refuse_name(copy, at, name, "is not a fact of the family; add it to facts");
    *ret_fact = (uint32_t)fact;
    return CBN_STATUS_OK;
}

static int32_t copy_guards(const struct copy *copy, struct path at, const struct cbn_guard *from, uint32_t count,
                           struct cbn__guard **ret_guards, uint32_t *ret_count)
{
    int32_t status = make_array(copy, at, from, count, CBN_GUARDS_MAX, sizeof(**ret_guards), (void **)ret_guards);
    for (uint32_t i = 0; i < count && status == CBN_STATUS_OK; i++) {
        struct path item = path_of("%s[%u]", at.text, i);
        struct cbn__guard *to = &(*ret_guards)[i];
        status = copy_fact(copy, path_of("%s.fact", item.text), from[i].fact, &to->fact);
        if (status == CBN_STATUS_OK)
            status = check_guard_value(copy, item, &from[i], to->fact == copy->to->sweep_fact);
        to->relation = from[i].relation;
        to->value = from[i].value;
        to->value_end = from[i].value_end;
        *ret_count = i + 1;
    }
    return status;
}

static int32_t copy_buckets(const struct copy *copy, struct path at, const struct cbn_param *from,
                            struct cbn__param *to)
{
    if (!from->bucket_count)
        return refuse(copy, at, "none; a BUCKET parameter needs at least one");
    int32_t status = make_array(copy, at, from->buckets, from->bucket_count, UINT16_MAX, sizeof(*to->buckets),
                                (void **)&to->buckets);
    if (status != CBN_STATUS_OK)
        return status;
    memcpy(to->buckets, from->buckets, from->bucket_count * sizeof(*to->buckets));
    to->bucket_count = from->bucket_count;
    for (uint32_t i = 1; i < to->bucket_count; i++)
        if (to->buckets[i].upper <= to->buckets[i - 1].upper)
            return refuse(copy, path_of("%s[%u].upper", at.text, i), "not above the one before; sort the buckets");
    if (to->buckets[to->bucket_count - 1].upper != INT64_MAX)
        return refuse(copy, path_of("%s[%u].upper", at.text, to->bucket_count - 1), "the last must be INT64_MAX");
    return CBN_STATUS_OK;
}

static int32_t copy_param_source(const struct copy *copy, struct path at, const struct cbn_param *from,
                                 struct cbn__param *to)
{
    to->source = from->source;
    to->value = from->value;
    if (from->source == CBN_PARAM_CONST)
        return CBN_STATUS_OK;
    if (from->source != CBN_PARAM_FACT && from->source != CBN_PARAM_BUCKET)
        return refuse(copy, path_of("%s.source", at.text), "not one of enum cbn_param_source");
    int32_t status = copy_fact(copy, path_of("%s.fact", at.text), from->fact, &to->fact);
    if (status != CBN_STATUS_OK)
        return status;
    if (from->source == CBN_PARAM_BUCKET)
        return copy_buckets(copy, path_of("%s.buckets", at.text), from, to);
    if (to->fact == copy->to->sweep_fact)
        return refuse(copy, path_of("%s.source", at.text), "FACT is not for the sweep fact; use BUCKET");
    return CBN_STATUS_OK;
}

static int find_param(const struct cbn__template *template, const char *name)
{
    for (uint32_t i = 0; i < template->param_count; i++)
        if (strcmp(template->param_names[i], name) == 0)
            return (int)i;
    return -1;
}

static int32_t copy_param(const struct copy *copy, struct path at, const struct cbn_param *from,
                          struct cbn__candidate *to)
{
    struct path name = path_of("%s.name", at.text);
    if (!is_name(from->name, 'A', PARAM_NAME_BYTES))
        return refuse_name(copy, name, from->name, "is not [A-Z][A-Z0-9_]* of at most 31 bytes");
    if (find_param(&to->template, from->name) >= 0)
        return refuse_name(copy, name, from->name, "is in use by an earlier parameter");
    int32_t status = copy_text(copy, from->name, &to->template.param_names[to->template.param_count]);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__param *param = &to->params[to->template.param_count++];
    return copy_param_source(copy, at, from, param);
}

static int32_t copy_params(const struct copy *copy, struct path at, const struct cbn_candidate *from,
                           struct cbn__candidate *to)
{
    struct path params = path_of("%s.params", at.text);
    int32_t status = make_array(copy, params, from->params, from->param_count, CBN_PARAMS_MAX, sizeof(*to->params),
                                (void **)&to->params);
    if (status == CBN_STATUS_OK)
        status = make_array(copy, params, from->params, from->param_count, CBN_PARAMS_MAX,
                            sizeof(*to->template.param_names), (void **)&to->template.param_names);
    for (uint32_t i = 0; i < from->param_count && status == CBN_STATUS_OK; i++)
        status = copy_param(copy, path_of("%s[%u]", params.text, i), &from->params[i], to);
    to->pdl_param = find_param(&to->template, "PDL");
    if (status == CBN_STATUS_OK && (from->flags & CBN_CANDIDATE_PDL) && to->pdl_param < 0)
        return refuse(copy, path_of("%s.flags", at.text), "CBN_CANDIDATE_PDL needs a parameter named PDL");
    return status;
}

static int32_t copy_headers(const struct copy *copy, struct path at, const struct cbn_candidate *from,
                            struct cbn__template *to)
{
    struct path headers = path_of("%s.headers", at.text);
    int32_t status = make_array(copy, headers, from->headers, from->header_count, CBN__JOB_HEADERS_MAX,
                                sizeof(*to->header_names), (void **)&to->header_names);
    if (status == CBN_STATUS_OK)
        status = make_array(copy, headers, from->headers, from->header_count, CBN__JOB_HEADERS_MAX,
                            sizeof(*to->header_texts), (void **)&to->header_texts);
    for (uint32_t i = 0; i < from->header_count && status == CBN_STATUS_OK; i++) {
        const struct cbn_header *header = &from->headers[i];
        if (!header->name || !header->name[0] || !header->text)
            return refuse(copy, path_of("%s[%u]", headers.text, i), "needs a name and a text");
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(to->header_names[j], header->name) == 0)
                return refuse_name(copy, path_of("%s[%u].name", headers.text, i), header->name, "is given twice");
        status = copy_text(copy, header->name, &to->header_names[i]);
        if (status == CBN_STATUS_OK)
            status = copy_text(copy, header->text, &to->header_texts[i]);
        to->header_count = i + 1;
    }
    return status;
}

/* What only a candidate with a template needs. */
static int32_t check_template(const struct copy *copy, struct path at, const struct cbn_candidate *from)
{
    if (!from->source)
        return CBN_STATUS_OK;
    if (!from->source_name || !from->source_name[0])
        return refuse(copy, path_of("%s.source_name", at.text), "NULL or empty; compile logs need it");
    if (!is_symbol(from->symbol))
        return refuse_name(copy, path_of("%s.symbol", at.text), from->symbol,
                           "is not the name of an extern \"C\" kernel");
    if (!from->geometry)
        return refuse(copy, path_of("%s.geometry", at.text), "NULL; a template needs one");
    if (!from->argument_bytes || from->argument_bytes > ARGUMENT_BYTES_MAX)
        return refuse(copy, path_of("%s.argument_bytes", at.text), "not in 1 to 32764");
    return CBN_STATUS_OK;
}

static int32_t check_candidate(const struct copy *copy, struct path at, const struct cbn_candidate *from)
{
    const uint32_t known = CBN_CANDIDATE_OFF | CBN_CANDIDATE_FALLBACK | CBN_CANDIDATE_PDL;
    if (from->name && cbn__family_candidate(copy->to, from->name) >= 0)
        return refuse_name(copy, path_of("%s.name", at.text), from->name, "is in use by an earlier candidate");
    if (from->flags & ~known)
        return refuse(copy, path_of("%s.flags", at.text), "holds a bit that this library does not know");
    if (from->reserved)
        return refuse(copy, path_of("%s.reserved", at.text), "must be 0");
    return check_template(copy, at, from);
}

/* A built-in's digest covers every embedded file, and a test holds them to the same rule. */
static int32_t check_inputs(const struct copy *copy, struct path at, const struct cbn__template *template)
{
    struct cbn__input input;
    if (!template->source || copy->digest || !cbn__inputs_find_foreign(template, &input))
        return CBN_STATUS_OK;
    struct path field = path_of("%s.source", at.text);
    const char *file = template->source_name;
    if (input.header >= 0) {
        field = path_of("%s.headers[%d].text", at.text, input.header);
        file = template->header_names[input.header];
    }
    return cbn__error_own(copy->err, CBN_STATUS_INVALID,
                          "%s: %.160s:%u: %s %s, so it is not in the key; give every file in headers", field.text, file,
                          input.line, input.text, input.why);
}

static int32_t copy_template(const struct copy *copy, struct path at, const struct cbn_candidate *from,
                             struct cbn__template *to)
{
    to->flags = from->flags;
    to->argument_layout = copy->from->argument_layout;
    to->argument_bytes = from->argument_bytes;
    int32_t status = copy_name(copy, path_of("%s.name", at.text), from->name, &to->name);
    if (status == CBN_STATUS_OK)
        status = copy_text(copy, copy->to->name, &to->family);
    if (status == CBN_STATUS_OK)
        status = copy_text(copy, from->source, &to->source);
    if (status == CBN_STATUS_OK)
        status = copy_text(copy, from->source_name, &to->source_name);
    if (status == CBN_STATUS_OK)
        status = copy_text(copy, from->symbol, &to->symbol);
    if (status == CBN_STATUS_OK)
        status = copy_headers(copy, at, from, to);
    if (status == CBN_STATUS_OK)
        status = check_inputs(copy, at, to);
    return status;
}

static int32_t copy_candidate(const struct copy *copy, struct path at, const struct cbn_candidate *from,
                              struct cbn__candidate *to)
{
    int32_t status = check_candidate(copy, at, from);
    if (status != CBN_STATUS_OK)
        return status;
    to->geometry = from->geometry;
    status = copy_template(copy, at, from, &to->template);
    if (status == CBN_STATUS_OK)
        status = copy_params(copy, at, from, to);
    if (status == CBN_STATUS_OK)
        status = copy_guards(copy, path_of("%s.guards", at.text), from->guards, from->guard_count, &to->guards,
                             &to->guard_count);
    if (status == CBN_STATUS_OK && to->template.source)
        to->template.digest = copy->digest ? *copy->digest : cbn__template_digest(&to->template);
    return status;
}

static int32_t copy_candidates(const struct copy *copy)
{
    struct cbn__family *to = copy->to;
    if (!copy->from->candidate_count)
        return refuse(copy, path_of("candidates"), "none; a family needs at least one");
    int32_t status = make_array(copy, path_of("candidates"), copy->from->candidates, copy->from->candidate_count,
                                CBN_CANDIDATES_MAX, sizeof(*to->candidates), (void **)&to->candidates);
    for (uint32_t i = 0; i < copy->from->candidate_count && status == CBN_STATUS_OK; i++) {
        status = copy_candidate(copy, path_of("candidates[%u]", i), &copy->from->candidates[i], &to->candidates[i]);
        to->candidate_count = i + 1;
    }
    return status;
}

/* The index of a policy, added where it is new. */
static int32_t copy_policy(const struct copy *copy, struct path at, const char *name, uint32_t *ret_policy)
{
    struct cbn__family *to = copy->to;
    int policy = cbn__family_policy(to, name);
    if (policy >= 0) {
        *ret_policy = (uint32_t)policy;
        return CBN_STATUS_OK;
    }
    if (to->policy_count == CBN__POLICIES_MAX)
        return cbn__error_own(copy->err, CBN_STATUS_LIMIT, "%s: more than %d policies, \"default\" counted", at.text,
                              CBN__POLICIES_MAX);
    int32_t status = copy_name(copy, at, name, &to->policies[to->policy_count]);
    if (status == CBN_STATUS_OK)
        *ret_policy = to->policy_count++;
    return status;
}

static int32_t copy_rule(const struct copy *copy, struct path at, const struct cbn_policy_rule *from)
{
    uint32_t policy = 0;
    int candidate = cbn__family_candidate(copy->to, from->candidate);
    if (candidate < 0)
        return refuse_name(copy, path_of("%s.candidate", at.text), from->candidate, "is not a candidate of the family");
    if (from->reserved)
        return refuse(copy, path_of("%s.reserved", at.text), "must be 0");
    int32_t status = copy_policy(copy, path_of("%s.policy", at.text), from->policy, &policy);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__rule *to = &copy->to->candidates[candidate].rules[policy];
    if (to->present)
        return refuse_name(copy, path_of("%s.candidate", at.text), from->candidate,
                           "has a rule of this policy already");
    to->present = true;
    return copy_guards(copy, path_of("%s.guards", at.text), from->guards, from->guard_count, &to->guards,
                       &to->guard_count);
}

static int32_t copy_rules(const struct copy *copy)
{
    struct cbn__family *to = copy->to;
    uint32_t policy = 0;
    if (copy->from->rule_count && !copy->from->rules)
        return refuse(copy, path_of("rules"), "NULL with a count above 0");
    for (uint32_t i = 0; i < copy->from->rule_count; i++) {
        int32_t status = copy_rule(copy, path_of("rules[%u]", i), &copy->from->rules[i]);
        if (status != CBN_STATUS_OK)
            return status;
    }
    if (cbn__family_policy(to, "default") >= 0)
        return CBN_STATUS_OK;
    int32_t status = copy_policy(copy, path_of("rules"), "default", &policy);
    for (uint32_t i = 0; i < to->candidate_count && status == CBN_STATUS_OK; i++)
        to->candidates[i].rules[policy].present = true;
    return status;
}

static int32_t copy_facts(const struct copy *copy)
{
    struct cbn__family *to = copy->to;
    int32_t status = make_array(copy, path_of("facts"), copy->from->facts, copy->from->fact_count, CBN_FACTS_MAX,
                                sizeof(*to->facts), (void **)&to->facts);
    for (uint32_t i = 0; i < copy->from->fact_count && status == CBN_STATUS_OK; i++) {
        struct path at = path_of("facts[%u]", i);
        const char *name = copy->from->facts[i];
        if (name && cbn__family_fact(to, name) >= 0)
            return refuse_name(copy, at, name, "is given twice");
        status = copy_name(copy, at, name, &to->facts[i]);
        to->fact_count = i + (status == CBN_STATUS_OK);
    }
    if (status != CBN_STATUS_OK)
        return status;
    to->arch_fact = cbn__family_fact(to, "arch");
    to->sms_fact = cbn__family_fact(to, "sms");
    to->max_sms_fact = cbn__family_fact(to, "max_sms");
    to->pdl_fact = cbn__family_fact(to, "pdl");
    status = copy_fact(copy, path_of("sweep_fact"), copy->from->sweep_fact, &to->sweep_fact);
    if (status == CBN_STATUS_OK && cbn__family_is_common(to, to->sweep_fact))
        return refuse_name(copy, path_of("sweep_fact"), copy->from->sweep_fact,
                           "is one of the facts that Cubinet writes; sweep a fact of the call");
    return status;
}

static int32_t copy_family(const struct copy *copy)
{
    int32_t status = copy_name(copy, path_of("name"), copy->from->name, &copy->to->name);
    if (status == CBN_STATUS_OK)
        status = copy_facts(copy);
    if (status == CBN_STATUS_OK)
        status = copy_guards(copy, path_of("noops"), copy->from->noops, copy->from->noop_count, &copy->to->noops,
                             &copy->to->noop_count);
    if (status == CBN_STATUS_OK)
        status = copy_candidates(copy);
    if (status == CBN_STATUS_OK)
        status = copy_rules(copy);
    return status;
}

int32_t cbn__family_create(const struct cbn_family *description, const struct cbn__hash *digest,
                           struct cbn__family **ret_family, struct cbn_error *err)
{
    if (!description)
        return cbn__error_own(err, CBN_STATUS_INVALID, "family: NULL; give a description");
    struct cbn_family taken = {0};
    int32_t status = cbn__args_take(&taken, sizeof(taken), description, "cbn_family", err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__family *family = calloc(1, sizeof(*family));
    if (!family)
        return cbn__error_no_memory(err);
    status = copy_family(&(struct copy){&taken, family, digest, err});
    if (status == CBN_STATUS_OK)
        *ret_family = family;
    else
        cbn__family_destroy(family);
    return status;
}

static void free_texts(char **texts, uint32_t count)
{
    for (uint32_t i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
}

static void done_template(struct cbn__template *template)
{
    free(template->family);
    free(template->name);
    free(template->source);
    free(template->source_name);
    free(template->symbol);
    free_texts(template->header_names, template->header_count);
    free_texts(template->header_texts, template->header_count);
    free_texts(template->param_names, template->param_count);
}

static void done_candidate(struct cbn__candidate *candidate)
{
    for (uint32_t i = 0; i < candidate->template.param_count; i++)
        free(candidate->params[i].buckets);
    free(candidate->params);
    free(candidate->guards);
    for (uint32_t i = 0; i < CBN__POLICIES_MAX; i++)
        free(candidate->rules[i].guards);
    done_template(&candidate->template);
}

void cbn__family_destroy(struct cbn__family *family)
{
    if (!family)
        return;
    for (uint32_t i = 0; i < family->candidate_count; i++)
        done_candidate(&family->candidates[i]);
    free(family->candidates);
    for (uint32_t i = 0; i < family->policy_count; i++)
        free(family->policies[i]);
    free_texts(family->facts, family->fact_count);
    free(family->noops);
    free(family->name);
    free(family);
}

int cbn__family_fact(const struct cbn__family *family, const char *name)
{
    for (uint32_t i = 0; name && i < family->fact_count; i++)
        if (strcmp(family->facts[i], name) == 0)
            return (int)i;
    return -1;
}

bool cbn__family_is_common(const struct cbn__family *family, uint32_t fact)
{
    int index = (int)fact;
    return index == family->arch_fact || index == family->sms_fact || index == family->max_sms_fact ||
           index == family->pdl_fact;
}

int cbn__family_candidate(const struct cbn__family *family, const char *name)
{
    for (uint32_t i = 0; name && i < family->candidate_count; i++)
        if (strcmp(family->candidates[i].template.name, name) == 0)
            return (int)i;
    return -1;
}

int cbn__family_policy(const struct cbn__family *family, const char *name)
{
    for (uint32_t i = 0; name && i < family->policy_count; i++)
        if (strcmp(family->policies[i], name) == 0)
            return (int)i;
    return -1;
}
