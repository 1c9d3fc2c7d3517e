/*
 * The distinct specialisations of several queries: what warm, check and prepare work through.
 */
#ifndef CBN_API_SPEC_SET_H
#define CBN_API_SPEC_SET_H

#include "api/runtime.h"

struct cbn__spec_item {
    struct cbn__spec spec;
    const struct cbn__candidate *candidate; /* NULL: the op has no family; error says so */
    uint32_t query;                         /* index of the first query that reaches it */
    uint32_t shared_bytes;
    struct cbn_error error;
};

struct cbn__spec_set {
    struct cbn__spec_item *items;
    uint32_t count;
    uint32_t capacity;
    bool failed; /* out of memory */
};

/* Enumerates every query. INVALID names the query by its index. */
int32_t cbn__spec_set_fill(struct cbn_runtime *runtime, const struct cbn_query *queries, uint32_t query_count,
                           struct cbn__spec_set *ret_set, struct cbn_error *err);
void cbn__spec_set_done(struct cbn__spec_set *set);

/* Element index of a caller's array whose elements may be older and shorter than ours. */
const struct cbn_query *cbn__query_at(const struct cbn_query *queries, uint32_t index);
int32_t cbn__query_take(const struct cbn_query *given, struct cbn_query *ret_query, struct cbn_error *err);

#endif
