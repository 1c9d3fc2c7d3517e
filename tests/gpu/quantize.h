/*
 * Quantisation: rows on the host, the CPU reference of them, one call in any placement, every byte compared.
 */
#ifndef TESTS_GPU_QUANTIZE_H
#define TESTS_GPU_QUANTIZE_H

#include "suite.h"

/* Contiguous rows of one dtype. */
struct rows {
    uint32_t dtype;
    int64_t count, k;
    uint8_t *data;
};

struct rows rows_create(uint32_t dtype, int64_t count, int64_t k);
void rows_done(struct rows *rows);
/* Groups of every kind: spread and narrow magnitudes, zeros, denormals, raw bits, NaN and infinities. */
void rows_fill_random(const struct suite *suite, struct rows *rows, uint64_t seed);

/* What the CPU reference says of them. */
struct quant_ref {
    bool pow2, propagate;
    uint8_t *codes;     /* [count,k] */
    float *scales;      /* [count,S] */
    uint8_t *exponents; /* [count,S], pow2 only */
};

struct quant_ref quant_ref_create(const struct suite *suite, const struct rows *rows, bool pow2, bool propagate);
void quant_ref_done(struct quant_ref *ref);

/* One call. Rows are t x max(g, 1). */
struct quant_case {
    int64_t t, g;    /* g = 0: flat */
    uint32_t layout; /* enum cbn_scale_layout */
    bool no_pdl;
    int64_t x_t, x_g; /* strides of x in elements */
    int64_t x_offset; /* elements after an aligned address */
    int64_t c_t;      /* flat: row stride of the codes */
    int64_t c_offset;
    int64_t s_pad;   /* flat: added to the long stride of the scales, times 4 in the padded layouts */
    int64_t m_valid; /* < 0 in has_m_valid is passed as it is */
    bool has_m_valid;
    uint32_t max_sms;
};

/* Contiguous, aligned, every row valid. */
struct quant_case quant_case_plain(const struct rows *rows, int64_t g, uint32_t layout);
void quant_run(struct suite *suite, struct tally *tally, const struct rows *rows, const struct quant_ref *ref,
               const struct quant_case *call);
/* Storage of scales: extents and strides in words for the logical view [T,(G,)S or W]. */
void quant_scale_tensor(int64_t t, int64_t g, int64_t k, uint32_t layout, int64_t pad, struct cbn_tensor *ret_tensor);

#endif
