/*
 * Distinct specialisations of several queries.
 */
#include "api/spec_set.h"

#include <stdlib.h>
#include <string.h>

#include "api/gemm_launch.h"
#include "base/args.h"

const struct cbn_query *cbn__query_at(const struct cbn_query *queries, uint32_t index)
{
    return (const struct cbn_query *)((const char *)queries + (size_t)queries->size * index);
}

int32_t cbn__query_take(const struct cbn_query *given, struct cbn_query *ret_query, struct cbn_error *err)
{
    if (!given)
        return cbn__error_own(err, CBN_STATUS_INVALID, "query is NULL");
    *ret_query = (struct cbn_query)CBN_QUERY_INIT;
    return cbn__args_take(ret_query, sizeof(*ret_query), given, "cbn_query", err);
}

void cbn__spec_set_done(struct cbn__spec_set *set)
{
    free(set->items);
    *set = (struct cbn__spec_set){0};
}

static struct cbn__spec_item *add_item(struct cbn__spec_set *set)
{
    if (set->count == set->capacity) {
        uint32_t capacity = set->capacity ? set->capacity * 2 : 64;
        struct cbn__spec_item *items = realloc(set->items, capacity * sizeof(*items));
        if (!items) {
            set->failed = true;
            return NULL;
        }
        set->items = items;
        set->capacity = capacity;
    }
    struct cbn__spec_item *item = &set->items[set->count++];
    memset(item, 0, sizeof(*item));
    return item;
}

static struct cbn__spec_item *find_item(const struct cbn__spec_set *set, const struct cbn__spec *spec)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct cbn__spec *other = &set->items[i].spec;
        if (other->template == spec->template && other->arch == spec->arch &&
            memcmp(other->params, spec->params, sizeof(spec->params)) == 0)
            return &set->items[i];
    }
    return NULL;
}

struct filling {
    struct cbn__spec_set *set;
    uint32_t arch;
    uint32_t query;
    const struct cbn__question *question;
    struct cbn__spec_item *gap; /* the last one, while nothing was added after it */
    int64_t gap_first, gap_last;
};

/* Shapes that share a specialisation may ask for more shared memory: the largest stands for all. */
static bool add_spec(struct filling *filling, const struct cbn__candidate *candidate, const struct cbn__spec *spec,
                     uint32_t shared_bytes)
{
    struct cbn__spec_item *item = find_item(filling->set, spec);
    if (!item) {
        item = add_item(filling->set);
        if (!item)
            return false;
        item->spec = *spec;
        item->candidate = candidate;
        item->query = filling->query;
    }
    if (shared_bytes > item->shared_bytes)
        item->shared_bytes = shared_bytes;
    return true;
}

/* A product whose quantiser is switched off is uncovered: the call is UNSUPPORTED. */
static bool add_quantizer(struct filling *filling, const struct cbn__candidate *candidate, const struct cbn__spec *spec,
                          const int64_t *facts)
{
    bool first = false;
    struct cbn__choice choice;
    struct cbn_error cause;
    int32_t status = cbn__question_quantizer(filling->question, spec, candidate, facts, &first, &choice, &cause);
    if (status == CBN_STATUS_OK)
        return !first || add_spec(filling, choice.candidate, &choice.spec, choice.geometry.shared_bytes);
    struct cbn__spec_item *item = add_item(filling->set);
    if (item) {
        item->query = filling->query;
        item->error = cause;
    }
    return item;
}

static int fill_spec(void *user, const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    struct filling *filling = user;
    struct cbn__spec spec = {.template = &candidate->template, .arch = filling->arch};
    struct cbn_geometry geometry = {0};
    memcpy(spec.params, params, candidate->template.param_count * sizeof(params[0]));
    if (candidate->template.source)
        candidate->geometry(params, facts, &geometry);
    return !add_spec(filling, candidate, &spec, geometry.shared_bytes) ||
           (candidate->template.source && !add_quantizer(filling, candidate, &spec, facts));
}

/* What no candidate takes is uncovered, not absent: a call there is UNSUPPORTED. Adjoining intervals are one item. */
static int fill_gap(void *user, int64_t first, int64_t last, const struct cbn__decision *decision)
{
    struct filling *filling = user;
    if (!filling->gap || filling->gap_last + 1 != first) {
        filling->gap = add_item(filling->set);
        filling->gap_first = first;
    }
    if (!filling->gap)
        return 1;
    filling->gap->query = filling->query;
    filling->gap_last = last;
    char reasons[CBN_ERROR_MESSAGE_BYTES];
    cbn__refusals_format(filling->question->family, decision, reasons, sizeof(reasons));
    (void)cbn__error_own(&filling->gap->error, CBN_STATUS_UNSUPPORTED, "%s in [%lld,%lld]: no %s kernel takes it: %.380s",
                         filling->question->family->facts[filling->question->family->sweep_fact], (long long)filling->gap_first,
                         (long long)last, filling->question->family->name, reasons);
    return 0;
}

static int32_t fill_query(struct cbn_runtime *runtime, const struct cbn_query *given, uint32_t index,
                          struct cbn__spec_set *set, struct cbn_error *err)
{
    struct cbn_query query;
    struct cbn__question question;
    struct cbn_error cause = {0};
    int32_t status = cbn__query_take(given, &query, err);
    if (status != CBN_STATUS_OK)
        return status;
    status = cbn__question_resolve(runtime, &query, &question, &cause);
    if (status == CBN_STATUS_UNSUPPORTED) {
        struct cbn__spec_item *item = add_item(set);
        if (item) {
            item->query = index;
            item->error = cause;
        }
        return item ? CBN_STATUS_OK : cbn__error_no_memory(err);
    }
    if (status != CBN_STATUS_OK)
        return cbn__error_own(err, (enum cbn_status)status, "query %u: %.440s", index, cause.message);
    struct filling filling = {.set = set, .arch = query.arch, .query = index, .question = &question};
    status = cbn__question_enumerate(&question, &query, fill_spec, &filling, err);
    if (status == CBN_STATUS_OK && (question.own || query.n || query.k))
        status = cbn__enumerate_gaps(question.family, question.facts, query.m, &question.route, fill_gap, &filling, err);
    return set->failed ? cbn__error_no_memory(err) : status;
}

int32_t cbn__spec_set_fill(struct cbn_runtime *runtime, const struct cbn_query *queries, uint32_t query_count,
                           struct cbn__spec_set *ret_set, struct cbn_error *err)
{
    struct cbn__spec_set set = {0};
    int32_t status = CBN_STATUS_OK;
    for (uint32_t i = 0; i < query_count && status == CBN_STATUS_OK; i++)
        status = fill_query(runtime, cbn__query_at(queries, i), i, &set, err);
    if (status == CBN_STATUS_OK)
        *ret_set = set;
    else
        cbn__spec_set_done(&set);
    return status;
}
