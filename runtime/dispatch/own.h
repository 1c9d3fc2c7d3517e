/*
 * Facts of a caller's own family, given by name. Pure.
 */
#ifndef CBN_DISPATCH_OWN_H
#define CBN_DISPATCH_OWN_H

#include <cubinet/route.h>

#include "dispatch/family.h"

/*
 * Named facts to a vector in the family's order; the common four are left alone. INVALID names a fact that is unknown,
 * given twice, missing, or not the caller's to give. sweep: a query's m, which stands for the sweep fact; NULL in a
 * call.
 */
int32_t cbn__own_facts(const struct cbn__family *family, const struct cbn_fact *facts, uint32_t fact_count,
                       const int64_t *sweep, int64_t *ret_facts, struct cbn_error *err);

/* The same for a query, the common four included. INVALID also names a field that has no meaning here. */
int32_t cbn__own_query_facts(const struct cbn__family *family, const struct cbn_query *query, int64_t *ret_facts,
                             struct cbn_error *err);

/* A noop holds, of those that ask for no common fact: nothing is launched, wherever the call runs. */
bool cbn__own_noop(const struct cbn__family *family, const int64_t *facts);

#endif
