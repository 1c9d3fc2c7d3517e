/*
 * The built-in families as data, and the facts of their calls. One host file per operation: fp8_gemm.c, fp8_quantize.c.
 */
#ifndef CBN_DISPATCH_BUILTIN_H
#define CBN_DISPATCH_BUILTIN_H

#include <stdbool.h>

#include <cubinet/route.h>

#include "dispatch/decide.h"

/*
 * Facts of fp8_gemm, in the order of its table. Dtypes, formats and granularities are the public enums' numbers.
 * align: the largest power of two, at most 16, that divides in bytes every base address and row stride of a, w and d.
 * split, slice, room: how swap_ab cuts K and lies on the SMs, from n, k, sms and max_sms (cbn__gemm_derive): CTAs of a
 * cluster, the groups of 128 in the longest share of one, enum cbn__swap_ab_room. From m and these (cbn__gemm_derive_rows)
 * deep: 1 where its stages hold twice as many groups, and tile: the number of wgmma's tile; few_tile: that of the fewest
 * rows, known before m is.
 */
#define CBN__GEMM_FACT_MAP(X)                                                                                          \
    X(m) X(n) X(k) X(in) X(out) X(a_scale) X(w_scale) X(w_gran) X(bias) X(pow2) X(propagate) X(align) X(pdl) X(arch)   \
    X(sms) X(max_sms) X(split) X(slice) X(room) X(few_tile) X(deep) X(tile)

enum cbn__gemm_fact {
#define CBN__X(name) CBN__GEMM_FACT_##name,
    CBN__GEMM_FACT_MAP(CBN__X)
#undef CBN__X
    CBN__GEMM_FACT_COUNT
};

/* a_scale is CBN_SCALE_FP32 or CBN_SCALE_UE8M0 for E4M3 input, else 0. Facts of fp8_quantize: t rows, g groups, k. */
#define CBN__QUANTIZE_FACT_MAP(X)                                                                                      \
    X(t) X(g) X(k) X(in) X(scale) X(pow2) X(propagate) X(approx) X(align) X(pdl) X(arch) X(sms) X(max_sms)

enum cbn__quantize_fact {
#define CBN__X(name) CBN__QUANTIZE_FACT_##name,
    CBN__QUANTIZE_FACT_MAP(CBN__X)
#undef CBN__X
    CBN__QUANTIZE_FACT_COUNT
};

/*
 * Fills the facts that follow from others. split, slice and room never look at m: a row's bits must not depend on how
 * many others swap_ab has. The second fills those alone that do look at it.
 */
void cbn__gemm_derive(int64_t *facts);
void cbn__gemm_derive_rows(int64_t *facts);
bool cbn__gemm_can_be(const int64_t *facts); /* false for facts that these never leave together */

extern const struct cbn_family cbn__builtin_fp8_gemm;     /* text pointers are filled from the embedded templates */
extern const struct cbn_family cbn__builtin_fp8_quantize; /* by cbn__builtin_families */

/* The built-in descriptions with their sources attached, ready for cbn__family_create. count of them returned. */
#define CBN__BUILTIN_COUNT 2
int32_t cbn__builtin_families(struct cbn__family *ret_families[CBN__BUILTIN_COUNT], struct cbn_error *err);

/*
 * A query's facts for a built-in family: checks the profile (INVALID names the field), fills arch, sms, pdl.
 * ret_shape_facts: the mask for cbn__enumerate_all. UNSUPPORTED for an op without a family here.
 */
int32_t cbn__builtin_facts(const struct cbn_query *query, int64_t *ret_facts, uint32_t *ret_shape_facts,
                           struct cbn_error *err);

/* What every family asks of a query: architecture, SMs, switches of 0 or 1, no negative extent of those it names. */
int32_t cbn__query_check_common(const struct cbn_query *query, struct cbn_error *err);

/* The argument structs that the built-in templates take by value (templates/fp8_args.cuh holds the same). */
#define CBN__ARGUMENT_LAYOUT 1u

struct cbn__gemm_args {
    uint64_t a, a_scale, w, w_scale, d, bias, m_valid, workspace;
    int64_t m, n, k;
    int64_t lda, ldw, ldd;  /* row strides, elements */
    int64_t sa_row, sa_col; /* activation scale strides: per row, per group (fp32) or word (packed) */
    int64_t sw_row, sw_col; /* weight scale strides: per block row or row, per group or word */
};

/* What cuTensorMapEncodeTiled writes (a CUtensorMap). */
struct cbn__tensor_map {
    _Alignas(64) uint64_t words[16];
};

/*
 * The struct of swap_ab. The maps' boxes: w and a 128 bytes of K x rows x a stage's groups, w_tail and a_tail 128 bytes of K x
 * rows, with zeros past the end of K; rows are 64 of W and BM of A.
 */
struct cbn__swap_ab_args {
    struct cbn__gemm_args gemm; /* a is codes: the caller's, or those in the workspace */
    uint64_t fetch_early;       /* not 0: W and its scales may be read before the PDL wait */
    uint64_t trigger;           /* enum cbn__swap_ab_trigger */
    struct cbn__tensor_map w, w_tail, a, a_tail;
};

/*
 * The struct of wgmma. The maps' boxes: 128 bytes of K, with zeros past its end, by cbn__wgmma_cut's a_rows and w_rows, or
 * by what is left of them at the end of M and of N. d is zero where rows do not go out by boxes.
 */
struct cbn__wgmma_args {
    struct cbn__gemm_args gemm; /* a is codes */
    uint64_t fetch_early;
    int64_t share; /* of the copies, over a cluster: 0 nothing, 1 the rows of A, 2 those of W */
    int64_t band;  /* row tiles that are walked together */
    struct cbn__tensor_map a, a_tail, w, w_tail, d;
};

/* The codes and scales that fp8_quantize leaves in the workspace for a candidate that takes codes. */
struct cbn__gemm_workspace {
    int64_t row_bytes;     /* stride of the codes [M, K] */
    int64_t scales_offset; /* bytes to the scales, fp32 [ceil(K/128), scales_stride] */
    int64_t scales_stride; /* ceil4(M) */
    int64_t bytes;         /* of all; saturates */
};

struct cbn__gemm_workspace cbn__gemm_workspace_of(int64_t m, int64_t k);

/* True where the specialisation takes codes and the call brings bf16, fp16 or fp32: fp8_quantize runs first. */
bool cbn__gemm_quantizes_first(const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts);

/* The facts of that fp8_quantize (flat, into the workspace), from the GEMM's. */
void cbn__gemm_quantize_facts(const int64_t *gemm_facts, int64_t *ret_quantize_facts);

/* True where the candidate's struct is cbn__swap_ab_args or cbn__wgmma_args; the second: the latter. */
bool cbn__gemm_takes_maps(const struct cbn__candidate *candidate);
bool cbn__gemm_is_wgmma(const struct cbn__candidate *candidate);

/* When a launch of swap_ab lets its dependents start. */
uint64_t cbn__swap_ab_trigger(const int64_t *params, const int64_t *facts);

/* K groups of one box of the maps w and a of a stage, and rows of A's box (BM). */
void cbn__swap_ab_boxes(const int64_t *params, uint32_t *ret_depth, uint32_t *ret_rows);

struct cbn__quantize_args {
    uint64_t x, codes, scales, m_valid;
    int64_t t, g, k;
    int64_t x_t, x_g;      /* strides of x in elements; the last is 1 */
    int64_t c_t, c_g;      /* strides of the codes */
    int64_t s_t, s_g, s_s; /* strides of the scales: per row, per group g, per scale (fp32) or word (packed) */
};

#endif
