/*
 * The quantisation cases: every bit pattern, the published vectors, every layout, stride and dtype, large random input.
 */
#include <stdio.h>
#include <string.h>

#include "quantize.h"

#define PATTERNS 65536
#define COMPANIONS 5
#define PATTERN_K 4096
#define RANDOM_T 10001
#define RANDOM_G 8
#define RANDOM_K 4096

static const uint32_t in_dtypes[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
static const uint32_t flat_layouts[] = {CBN_LAYOUT_ROW, CBN_LAYOUT_COL, CBN_LAYOUT_COL4, CBN_LAYOUT_PACKED_ROW,
                                        CBN_LAYOUT_PACKED_COL};
static const uint32_t grouped_layouts[] = {CBN_LAYOUT_ROW, CBN_LAYOUT_COL4, CBN_LAYOUT_PACKED_COL};

void quantize_queries(const struct suite *suite, query_fn add, void *user)
{
    for (uint32_t i = 0; i < 3 * 3 * 2 * 2 * 2; i++) {
        struct cbn_query query = CBN_QUERY_INIT;
        uint32_t scale = i / 3 % 3; /* fp32, powers of two, packed */
        query.op = "fp8_quantize";
        query.arch = suite->device.arch;
        query.profile.in = in_dtypes[i % 3];
        query.profile.act_scale = scale == 2 ? CBN_LAYOUT_PACKED_COL : CBN_LAYOUT_COL4;
        query.profile.pow2 = scale > 0;
        query.profile.propagate = i / 9 % 2;
        query.profile.pdl = i / 18 % 2;
        query.groups = i / 36 % 2;
        query.profile.sms = (uint32_t)suite->device.sms;
        add(user, &query);
    }
}

/* ---- every bit pattern ---- */

static uint16_t companion(uint32_t kind, uint16_t pattern, uint64_t *state)
{
    uint16_t exponent_mask = 0x7C00, random = (uint16_t)next_random(state);
    switch (kind) {
    case 0:
        return 0;
    case 1: /* the pattern itself everywhere */
        return pattern;
    case 2: /* below it: the pattern decides the scale */
        return (uint16_t)((random & 0x83FF) | ((pattern & exponent_mask) >> 1 & exponent_mask));
    case 3: /* raw bits, NaN and infinities among them */
        return random;
    default: /* finite in both dtypes, of about 1 */
        return (uint16_t)((random & 0x83FF) | 0x3C00);
    }
}

static void fill_pattern_range(void *user, int64_t begin, int64_t end)
{
    struct rows *rows = user;
    for (int64_t i = begin; i < end; i++) {
        uint16_t group[CBN_GROUP_SIZE], pattern = (uint16_t)(i / COMPANIONS);
        uint64_t state = (uint64_t)i + 77;
        for (int j = 0; j < CBN_GROUP_SIZE; j++) {
            group[j] = companion((uint32_t)(i % COMPANIONS), pattern, &state);
        }
        group[i % CBN_GROUP_SIZE] = pattern;
        memcpy(rows->data + i * (int64_t)sizeof(group), group, sizeof(group));
    }
}

void case_quantize_patterns(struct suite *suite, struct tally *tally)
{
    for (int d = 0; d < 2; d++) {
        struct rows rows = rows_create(in_dtypes[d], PATTERNS * COMPANIONS * CBN_GROUP_SIZE / PATTERN_K, PATTERN_K);
        parallel_for(suite->threads, PATTERNS * COMPANIONS, fill_pattern_range, &rows);
        for (int i = 0; i < 4; i++) {
            struct quant_ref ref = quant_ref_create(suite, &rows, i % 2, i / 2);
            struct quant_case call = quant_case_plain(&rows, 0, i % 2 ? CBN_LAYOUT_PACKED_COL : CBN_LAYOUT_ROW);
            quant_run(suite, tally, &rows, &ref, &call);
            call.layout = CBN_LAYOUT_COL4;
            quant_run(suite, tally, &rows, &ref, &call);
            quant_ref_done(&ref);
        }
        rows_done(&rows);
    }
}

/* ---- the vectors of the UE8M0 rule, with the answers written out: the CPU reference is not asked ---- */

struct vector {
    uint32_t dtype;
    uint16_t bits;
    uint32_t scale_bits; /* RN(max(1e-10, a) * RN(1/448)) */
    uint8_t exponent, code;
};

static const struct vector vectors[] = {
    {CBN_DTYPE_BF16, 0x0000, 0x2A7B5124, 85, 0x00},  {CBN_DTYPE_BF16, 0x0001, 0x2A7B5124, 85, 0x00},
    {CBN_DTYPE_BF16, 0x2EDB, 0x2A7B5124, 85, 0x7E},  {CBN_DTYPE_BF16, 0x2EDC, 0x2A7B6DB8, 85, 0x7E},
    {CBN_DTYPE_BF16, 0x3F80, 0x3B124925, 119, 0x78}, {CBN_DTYPE_BF16, 0x3FE0, 0x3B800000, 119, 0x7E},
    {CBN_DTYPE_BF16, 0x3FE1, 0x3B80924A, 120, 0x76}, {CBN_DTYPE_BF16, 0x43E0, 0x3F800000, 127, 0x7E},
    {CBN_DTYPE_BF16, 0x43E1, 0x3F80924A, 128, 0x76}, {CBN_DTYPE_BF16, 0x7F7F, 0x7B11B6DC, 247, 0x78},
    {CBN_DTYPE_FP16, 0x7BFF, 0x431236DC, 135, 0x78}, {CBN_DTYPE_FP16, 0x1B00, 0x37000000, 110, 0x7E},
    {CBN_DTYPE_FP16, 0x1F00, 0x37800000, 111, 0x7E}, {CBN_DTYPE_FP16, 0x0001, 0x2F124925, 95, 0x78},
};
#define VECTOR_COUNT ((int64_t)(sizeof(vectors) / sizeof(vectors[0])))

static void check_vector(struct tally *tally, const struct vector *vector, const struct quant_ref *ref, int64_t group,
                         bool pow2)
{
    uint32_t scale;
    memcpy(&scale, &ref->scales[group], sizeof(scale));
    uint32_t want = pow2 ? (uint32_t)vector->exponent << 23 : vector->scale_bits;
    bool right = scale == want && (!pow2 || ref->exponents[group] == vector->exponent) &&
                 (!pow2 || ref->codes[group * CBN_GROUP_SIZE] == vector->code);
    if (!right) {
        tally_fault(tally, "the CPU reference gives scale 0x%08X, code 0x%02X for 0x%04X", scale,
                    ref->codes[group * CBN_GROUP_SIZE], vector->bits);
    }
}

/* Device equals reference by quant_run, reference equals the written answers by check_vector. */
void case_quantize_vectors(struct suite *suite, struct tally *tally)
{
    for (int d = 0; d < 2; d++) {
        struct rows rows = rows_create(in_dtypes[d], VECTOR_COUNT, CBN_GROUP_SIZE);
        memset(rows.data, 0, (size_t)(rows.count * rows.k * 2));
        for (int64_t i = 0; i < VECTOR_COUNT; i++) {
            uint16_t bits = vectors[i].dtype == in_dtypes[d] ? vectors[i].bits : 0;
            memcpy(rows.data + i * rows.k * 2, &bits, sizeof(bits));
        }
        for (int pow2 = 0; pow2 < 2; pow2++) {
            struct quant_ref ref = quant_ref_create(suite, &rows, pow2, false);
            for (int64_t i = 0; i < VECTOR_COUNT; i++) {
                if (vectors[i].dtype == in_dtypes[d]) {
                    check_vector(tally, &vectors[i], &ref, i, pow2);
                }
            }
            for (int l = 0; l < (pow2 ? 5 : 3); l++) {
                struct quant_case call = quant_case_plain(&rows, 0, flat_layouts[l]);
                quant_run(suite, tally, &rows, &ref, &call);
            }
            quant_ref_done(&ref);
        }
        rows_done(&rows);
    }
}

/* ---- layouts, strides, offsets ---- */

/* 0 contiguous; 1 strided on every side; 2 off by elements from an aligned address; 3 strided and aligned. */
static void place(struct quant_case *call, const struct rows *rows, int variant)
{
    if (variant == 1) {
        call->x_t = rows->k + 24, call->c_t = rows->k + 40, call->s_pad = 3;
    } else if (variant == 2) {
        call->x_t = rows->k + 1, call->x_offset = 3, call->c_t = rows->k + 1, call->c_offset = 5, call->s_pad = 1;
    } else if (variant == 3) {
        call->x_t = round_up(rows->k, 16) + 128, call->c_t = round_up(rows->k, 16) + 64;
    }
}

static void run_layouts(struct suite *suite, struct tally *tally, const struct rows *rows, uint32_t turn)
{
    for (int pow2 = 0; pow2 < 2; pow2++) {
        struct quant_ref ref = quant_ref_create(suite, rows, pow2, turn % 3 == 2);
        for (int l = 0; l < (pow2 ? 5 : 3); l++) {
            for (int variant = 0; variant < 4; variant++) {
                struct quant_case call = quant_case_plain(rows, 0, flat_layouts[l]);
                place(&call, rows, variant);
                call.no_pdl = (turn + (uint32_t)l + (uint32_t)variant) % 2;
                call.max_sms = (turn + (uint32_t)l) % 4 == 0 ? 5 : 0;
                quant_run(suite, tally, rows, &ref, &call);
            }
        }
        quant_ref_done(&ref);
    }
}

void case_quantize_layouts(struct suite *suite, struct tally *tally)
{
    static const int64_t ts[] = {1, 3, 64, 5, 130}, ks[] = {200, 128, 1, 640, 127, 129, 512, 1000, 7168};
    uint32_t turn = 0, t_count = suite->sample ? 2 : 5, k_count = suite->sample ? 4 : 9;
    for (uint32_t d = 0; d < 3; d++) {
        for (uint32_t t = 0; t < t_count; t++) {
            for (uint32_t k = 0; k < k_count; k++, turn++) {
                struct rows rows = rows_create(in_dtypes[d], ts[t], ks[k]);
                rows_fill_random(suite, &rows, suite->seed + turn);
                run_layouts(suite, tally, &rows, turn);
                rows_done(&rows);
            }
        }
    }
}

/* ---- group-major ---- */

/* Bit-equal to flat on the same rows: both are compared with one reference. */
static void run_grouped(struct suite *suite, struct tally *tally, const struct rows *rows, int64_t g, uint32_t turn)
{
    for (int pow2 = 0; pow2 < 2; pow2++) {
        struct quant_ref ref = quant_ref_create(suite, rows, pow2, false);
        struct quant_case flat = quant_case_plain(rows, 0, pow2 ? CBN_LAYOUT_PACKED_COL : CBN_LAYOUT_COL4);
        quant_run(suite, tally, rows, &ref, &flat);
        for (int l = 0; l < (pow2 ? 3 : 2); l++) {
            for (int variant = 0; variant < 3; variant++) {
                struct quant_case call = quant_case_plain(rows, g, grouped_layouts[l]);
                if (variant == 1) { /* stored [G,T,D] */
                    call.x_t = rows->k, call.x_g = rows->k * call.t;
                } else if (variant == 2) {
                    call.x_g = rows->k + 8, call.x_t = g * call.x_g + 16, call.x_offset = (int64_t)turn % 3;
                }
                call.no_pdl = (turn + (uint32_t)variant) % 2;
                quant_run(suite, tally, rows, &ref, &call);
            }
        }
        quant_ref_done(&ref);
    }
}

void case_quantize_grouped(struct suite *suite, struct tally *tally)
{
    static const int64_t ts[] = {5, 1, 37}, gs[] = {2, 1, 8}, ks[] = {200, 512, 4096, 128};
    uint32_t turn = 0, count = suite->sample ? 1 : 3, k_count = suite->sample ? 2 : 4;
    for (uint32_t i = 0; i < count * count * k_count; i++) {
        int64_t t = ts[i % count], g = gs[i / count % count], k = ks[i / count / count];
        for (uint32_t d = 0; d < 3; d++, turn++) {
            struct rows rows = rows_create(in_dtypes[d], t * g, k);
            rows_fill_random(suite, &rows, suite->seed + 5000 + turn);
            run_grouped(suite, tally, &rows, g, turn);
            rows_done(&rows);
        }
    }
}

/* ---- m_valid, no rows, few SMs ---- */

static void run_empty(struct suite *suite, struct tally *tally, int64_t g)
{
    struct cbn_fp8_quantize_args args = CBN_FP8_QUANTIZE_ARGS_INIT;
    struct cbn_stats before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
    struct cbn_error err = {0};
    args.scale_layout = CBN_LAYOUT_COL4;
    args.x = (struct cbn_tensor){.dtype = CBN_DTYPE_BF16, .rank = g ? 3 : 2, .extents = {0, g ? g : 512, g ? 512 : 0}};
    args.codes = args.x, args.codes.dtype = CBN_DTYPE_E4M3;
    args.scales = args.x, args.scales.dtype = CBN_DTYPE_FP32, args.scales.extents[args.x.rank - 1] = 4;
    cbn_runtime_stats(suite->runtimes[RUNTIME_ALL], &before);
    (void)tally_call(tally, cbn_fp8_quantize(suite->runtimes[RUNTIME_ALL], &args, NULL, &err), &err, "T = 0");
    cbn_runtime_stats(suite->runtimes[RUNTIME_ALL], &after);
    if (after.launches != before.launches || after.noops != before.noops + 1) {
        tally_fault(tally, "T = 0 launched something");
    }
}

void case_quantize_rows(struct suite *suite, struct tally *tally)
{
    static const int64_t valid[] = {0, 1, 8, 9, 40, -3};
    run_empty(suite, tally, 0);
    run_empty(suite, tally, 8);
    for (uint32_t i = 0; i < 6 * 3; i++) {
        bool grouped = i % 2;
        struct rows rows = rows_create(in_dtypes[i % 3], 9 * (grouped ? 4 : 1), 640);
        rows_fill_random(suite, &rows, suite->seed + 9000 + i);
        struct quant_ref ref = quant_ref_create(suite, &rows, i % 4 == 3, false);
        uint32_t layout = i % 4 == 3 ? CBN_LAYOUT_PACKED_COL : i % 4 == 2 ? CBN_LAYOUT_COL4 : CBN_LAYOUT_ROW;
        struct quant_case call = quant_case_plain(&rows, grouped ? 4 : 0, layout);
        call.has_m_valid = true;
        call.m_valid = valid[i / 3];
        call.max_sms = i % 5;
        quant_run(suite, tally, &rows, &ref, &call);
        quant_ref_done(&ref);
        rows_done(&rows);
    }
}

/* ---- 10,001 x 8 x 4,096 ---- */

static void run_random(struct suite *suite, struct tally *tally, const struct rows *rows, bool pow2)
{
    struct quant_ref ref = quant_ref_create(suite, rows, pow2, false);
    uint32_t flat_count = pow2 ? 5 : 3, grouped_count = pow2 ? 3 : 2;
    for (uint32_t l = 0; l < flat_count; l++) {
        struct quant_case call = quant_case_plain(rows, 0, flat_layouts[l]);
        if (l == 1) {
            call.x_t = rows->k + 64, call.c_t = rows->k + 128;
        }
        quant_run(suite, tally, rows, &ref, &call);
    }
    for (uint32_t l = 0; l < grouped_count; l++) {
        struct quant_case call = quant_case_plain(rows, RANDOM_G, grouped_layouts[l]);
        if (l == 0) {
            call.x_g = rows->k + 8, call.x_t = RANDOM_G * call.x_g + 16;
        }
        quant_run(suite, tally, rows, &ref, &call);
    }
    quant_ref_done(&ref);
}

void case_quantize_random(struct suite *suite, struct tally *tally)
{
    for (int d = 0; d < 3; d++) {
        struct rows rows = rows_create(in_dtypes[d], (int64_t)RANDOM_T * RANDOM_G, RANDOM_K);
        rows_fill_random(suite, &rows, suite->seed + 11);
        run_random(suite, tally, &rows, true);
        if (d < 2) {
            run_random(suite, tally, &rows, false);
        }
        rows_done(&rows);
    }
    suite_scratch_done(suite);
}
