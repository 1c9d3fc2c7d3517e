/*
 * The arguments of fp8_gemm, checked and turned into facts and into what the kernel takes. In two halves, because a
 * plan binds the weights once and brings the activations per run.
 */
#ifndef CBN_API_GEMM_H
#define CBN_API_GEMM_H

#include "api/tensor.h"
#include "dispatch/builtin.h"

#define CBN__GEMM_INPUTS_MAX 6 /* w, w_scale, bias; a, a_scale, m_valid */

struct cbn__gemm_call {
    int64_t facts[CBN__GEMM_FACT_COUNT];
    struct cbn__gemm_args arguments;
    struct cbn__span inputs[CBN__GEMM_INPUTS_MAX];
    uint32_t input_count;
    struct cbn__span output;
    uint32_t out; /* enum cbn_dtype */
};

struct cbn__gemm_weights {
    const struct cbn_tensor *w, *w_scale, *bias;
    uint32_t gran; /* enum cbn_scale_gran; 0: BLOCK */
    uint32_t out;  /* enum cbn_dtype of d */
};

struct cbn__gemm_activations {
    const struct cbn_tensor *a, *a_scale, *d;
    uint32_t in; /* enum cbn_dtype that a must have */
    uint32_t layout;
    uint32_t flags;
    uint64_t m_valid;
};

/* *call is zeroed first. N, K and everything of the weights. */
int32_t cbn__gemm_bind_weights(struct cbn__gemm_call *call, const struct cbn__gemm_weights *weights,
                               struct cbn_error *err);

/* After the weights: M, what is computed on it, and that d stands apart from every input. */
int32_t cbn__gemm_bind_activations(struct cbn__gemm_call *call, const struct cbn__gemm_activations *activations,
                                   struct cbn_error *err);

/* The facts alone, from extents and dtypes: align is left at 16. For questions asked without addresses. */
int32_t cbn__gemm_facts(struct cbn__gemm_call *call, const struct cbn__gemm_weights *weights,
                        const struct cbn__gemm_activations *activations, struct cbn_error *err);

#endif
