/*
 * From a Hugging Face config.json, or a manifest of shapes, to the linear layers that need FP8 kernels.
 */
#ifndef CUBINET_MODEL_H
#define CUBINET_MODEL_H

#include <cubinet/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One kind of layer after sharding; strings live as long as the model. */
struct cbn_model_shape {
    uint32_t size;
    uint32_t fp8;       /* 1: block FP8, a kernel is needed */
    const char *op;     /* "fp8_gemm", "fp8_einsum", "fp8_grouped_gemm" */
    const char *layer;  /* "self_attn.o_proj" */
    int64_t n, k;       /* of one group, after sharding */
    int64_t groups;     /* 1, or groups of an einsum, or experts, after sharding */
    const char *reason; /* why not fp8 (not quantised, a block is cut), else "" */
};

struct cbn_model;

struct cbn_model_options {
    uint32_t size;
    uint32_t reserved;
    int64_t tp; /* tensor-parallel ranks; 0: 1 */
    int64_t ep; /* expert-parallel ranks; 0: experts are sharded by tp */
};

#define CBN_MODEL_OPTIONS_INIT {sizeof(struct cbn_model_options), 0, 0, 0}

/*
 * Reads config.json (at most 16 MiB, depth 64, 1,000,000 values), text_config where it has one. Every linear layer that
 * the architecture may quantise becomes a shape, once; one that is not block FP8, or whose scale blocks of 128 the
 * sharding cuts, has fp8 0 and a reason that names the field. Errors name the field: INVALID (malformed, a field
 * missing or of the wrong type, tp that does not divide what it shards), UNSUPPORTED (an architecture without formulas,
 * a config that is not block FP8, or is so for some of the modules of a merged weight only), IO, LIMIT. Formulas: the
 * linear layers of the public model definitions, merged as engines merge them.
 * thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_model_load(const char *path, const struct cbn_model_options *options,
                                  struct cbn_model **ret_model, struct cbn_error *err);

/*
 * Reads a manifest (bounds and statuses as above). An object:
 *
 *   schema  "cubinet.manifest/1", or "cubinet.shapes/1", which `cubinet --json shapes` prints
 *   shapes  an array of objects, at least one, one a layer, kept in their order:
 *     op      string, required: "fp8_gemm", "fp8_quantize", "fp8_einsum", "fp8_grouped_gemm" or a caller's own
 *             operation; 1..256 bytes, no control characters (C0, DEL, C1, bidirectional controls)
 *     layer   string, at most 256 bytes, for messages only; missing or null: ""
 *     n       integer 1..2147483647, required: rows of the weight of one group, after sharding. fp8_quantize has none:
 *             missing, null or 1
 *     k       integer 1..2147483647, required: columns of the weight, elements that a row of activations has
 *     groups  integer 1..2147483647: groups of an einsum, experts on this rank; missing or null: 1 (for fp8_gemm, 1)
 *     fp8     true or false (or 1 or 0): whether a kernel is needed; missing or null: true
 *     reason  string, at most 256 bytes: why fp8 is false; missing, null or "": "said so by the manifest"
 *
 * Other fields, at both levels, are ignored, so that a later version may add some. A field given twice is INVALID.
 *
 *   {"schema": "cubinet.manifest/1",
 *    "shapes": [{"op": "fp8_gemm", "layer": "self_attn.o_proj", "n": 7168, "k": 2048},
 *               {"op": "fp8_grouped_gemm", "layer": "mlp.experts.w2", "n": 7168, "k": 2048, "groups": 32}]}
 *
 * thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_manifest_load(const char *path, struct cbn_model **ret_model, struct cbn_error *err);

CBN_EXPORT uint32_t cbn_model_shape_count(const struct cbn_model *model);
CBN_EXPORT const struct cbn_model_shape *cbn_model_shape_get(const struct cbn_model *model, uint32_t index);
CBN_EXPORT const char *cbn_model_name(const struct cbn_model *model); /* "DeepseekV3ForCausalLM" */
CBN_EXPORT void cbn_model_destroy(struct cbn_model *model);

#ifdef __cplusplus
}
#endif

#endif
