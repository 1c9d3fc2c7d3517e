/*
 * Preparing: every specialisation of some queries into the current context, so that no call and no capture meets a miss.
 */
#include "api/runtime.h"
#include "api/spec_set.h"
#include "base/args.h"
#include "base/clock.h"

#define NS_PER_MS 1000000u

static int32_t check_arch(const struct cbn__spec_set *set, const struct cbn__place *place, struct cbn_error *err)
{
    char asked[16], found[16];
    for (uint32_t i = 0; i < set->count; i++) {
        if (!set->items[i].candidate || set->items[i].spec.arch == place->facts->arch)
            continue;
        cbn_arch_format(set->items[i].spec.arch, asked, sizeof(asked));
        cbn_arch_format(place->facts->arch, found, sizeof(found));
        return cbn__error_own(err, CBN_STATUS_INVALID, "query %u: arch is %s, the current device is %s",
                              set->items[i].query, asked, found);
    }
    return CBN_STATUS_OK;
}

static void prepare_item(struct cbn_runtime *runtime, const struct cbn__spec_item *item, const struct cbn__place *place,
                         struct cbn_warm_result *result, struct cbn_error *first_error)
{
    if (!item->candidate || !item->candidate->template.source) {
        result->uncovered++;
        return;
    }
    struct cbn__kernel *kernel = NULL;
    struct cbn_error error = {0};
    uint64_t compiles = atomic_load(&runtime->stats.compiles);
    int32_t status = cbn__kernel_obtain(runtime, &item->spec, place, item->shared_bytes, CBN_MISS_DEFAULT, false, NULL,
                                        &kernel, &error);
    if (status != CBN_STATUS_OK) {
        if (!result->failed++)
            *first_error = error;
    } else if (atomic_load(&runtime->stats.compiles) != compiles) {
        result->compiled++;
    } else {
        result->already++;
    }
}

int32_t cbn_prepare(struct cbn_runtime *runtime, const struct cbn_query *queries, uint32_t query_count,
                    struct cbn_warm_result *ret_result, struct cbn_error *err)
{
    if (!runtime || (!queries && query_count))
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "queries" : "runtime");
    uint64_t started_ns = cbn__clock_monotonic_ns();
    struct cbn__place place;
    struct cbn__spec_set set = {0};
    struct cbn_error first_error = {0};
    int32_t status = cbn__runtime_place(runtime, &place, err);
    if (status == CBN_STATUS_OK)
        status = cbn__spec_set_fill(runtime, queries, query_count, &set, err);
    if (status == CBN_STATUS_OK)
        status = check_arch(&set, &place, err);
    struct cbn_warm_result result = {.size = sizeof(result), .requested = set.count};
    for (uint32_t i = 0; i < set.count && status == CBN_STATUS_OK; i++)
        prepare_item(runtime, &set.items[i], &place, &result, &first_error);
    result.wall_ms = (cbn__clock_monotonic_ns() - started_ns) / NS_PER_MS;
    if (ret_result)
        cbn__args_give(ret_result, &result, sizeof(result));
    cbn__spec_set_done(&set);
    if (status == CBN_STATUS_OK && result.failed)
        status = cbn__error_own(err, result.failed == result.requested ? (enum cbn_status)first_error.status
                                                                       : CBN_STATUS_PARTIAL,
                                "%u of %u specialisations could not be prepared; the first: %.400s", result.failed,
                                result.requested, first_error.message);
    return status;
}
