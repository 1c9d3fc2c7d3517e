/*
 * A plan: weights, scales, N, K, dtypes, options and a context, bound once.
 */
#ifndef CBN_API_PLAN_H
#define CBN_API_PLAN_H

#include "api/gemm_launch.h"

struct cbn_plan {
    struct cbn__gemm_ops ops;
    struct cbn__place place;
    struct cbn__gemm_call bound;         /* everything of the weights, and the facts of the place */
    struct cbn__weight_maps maps;        /* where the weights are aligned as maps want them */
    int64_t sweep[CBN__GEMM_FACT_COUNT]; /* facts of a run whose tensors are aligned as the weights are; m is 0 */
    uint32_t in, layout, flags;
    _Atomic uint32_t settled; /* 0 between cbn_plan_weights_changed(plan, 0) and (plan, 1) */
};

/*
 * True when no kernel in flight writes the weights: only then may a kernel fetch them before its dependency is
 * resolved (PDL).
 */
bool cbn__plan_may_fetch_early(const struct cbn_plan *plan);

#endif
