/*
 * The built-in families as data, and the facts of their calls. One host file per operation: fp8_gemm.c, fp8_quantize.c.
 */
#ifndef CBN_DISPATCH_BUILTIN_H
#define CBN_DISPATCH_BUILTIN_H

#include <cubinet/route.h>

#include "dispatch/decide.h"

/*
 * Facts of fp8_gemm, in the order of its table. Dtypes, formats and granularities are the public enums' numbers.
 * align: the largest power of two, at most 16, that divides in bytes every base address and row stride of a, w and d.
 */
#define CBN__GEMM_FACT_MAP(X)                                                                                          \
    X(m) X(n) X(k) X(in) X(out) X(a_scale) X(w_scale) X(w_gran) X(bias) X(pow2) X(propagate) X(align) X(pdl) X(arch)   \
    X(sms) X(max_sms)

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

struct cbn__quantize_args {
    uint64_t x, codes, scales, m_valid;
    int64_t t, g, k;
    int64_t x_t, x_g;      /* strides of x in elements; the last is 1 */
    int64_t c_t, c_g;      /* strides of the codes */
    int64_t s_t, s_g, s_s; /* strides of the scales: per row, per group g, per scale (fp32) or word (packed) */
};

#endif
