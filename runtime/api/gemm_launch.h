/*
 * From fp8_gemm's checked arguments to its launches: one, or fp8_quantize into the workspace and then the product. What
 * a one-shot call and a plan's run have in common.
 */
#ifndef CBN_API_GEMM_LAUNCH_H
#define CBN_API_GEMM_LAUNCH_H

#include "api/gemm.h"
#include "api/gemm_wgmma.h"
#include "api/ops.h"

/* The product's op, and that of the quantiser which may run before it. */
struct cbn__gemm_ops {
    struct cbn__op gemm, quantize;
};

int32_t cbn__gemm_ops_begin(struct cbn_runtime *runtime, uint32_t flags, uint32_t miss_policy,
                            struct cbn__gemm_ops *ret_ops, struct cbn_error *err);

/* cbn__op_place for both; the facts are complete afterwards, those derived from others included. */
void cbn__gemm_ops_place(struct cbn__gemm_ops *ops, const struct cbn__device_facts *device, uint32_t max_sms,
                         uint32_t flags, int64_t *facts);

/* The fp8_quantize that runs before a product with these facts (cbn__gemm_quantizes_first). */
int32_t cbn__gemm_choose_quantizer(const struct cbn__op *quantize, const int64_t *gemm_facts,
                                   struct cbn__choice *ret_choice, struct cbn_error *err);

/*
 * The same for a question: *ret_first is false where nothing runs before this specialisation, ret_choice is left alone
 * then. UNSUPPORTED where no fp8_quantize takes it.
 */
int32_t cbn__question_quantizer(const struct cbn__question *question, const struct cbn__spec *spec,
                                const struct cbn__candidate *candidate, const int64_t *facts, bool *ret_first,
                                struct cbn__choice *ret_choice, struct cbn_error *err);

#define CBN__DEPTH_MAX 4

/*
 * The maps of weights that do not change their place, for swap_ab and for wgmma. What is not known is encoded by the run
 * that needs it.
 */
struct cbn__weight_maps {
    bool has_tail, has_depth[CBN__DEPTH_MAX];
    struct cbn__tensor_map tail, depth[CBN__DEPTH_MAX]; /* [d - 1]: boxes of d groups */
    struct cbn__wgmma_weight_maps wgmma;
};

/* All of them that can be encoded. */
void cbn__weight_maps_fill(const struct cbn__driver *driver, const struct cbn__gemm_args *arguments,
                           struct cbn__weight_maps *ret_maps);

/* How a call runs. */
struct cbn__gemm_way {
    const struct cbn__gemm_ops *ops; /* placed */
    const struct cbn__place *place;
    bool pinned;                         /* place is a plan's: what is not loaded yet wants it to be current */
    bool fetch_early;                    /* no kernel in flight writes the weights */
    const struct cbn__weight_maps *maps; /* NULL: none */
    uint64_t workspace, workspace_bytes;
    void *stream;
};

/*
 * Decides, checks the workspace, obtains every kernel, and only then launches: a call that fails on a kernel or a map
 * has launched nothing. A noop is counted as one.
 */
int32_t cbn__gemm_launch(const struct cbn__gemm_way *way, struct cbn__gemm_call *call, struct cbn_error *err);

#endif
