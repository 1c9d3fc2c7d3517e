/*
 * The approximate mode of fp8_quantize against the exact CPU reference. The instruction's last bits are the device's
 * own, so a code may differ, but only where some multiplier within 2 ulp of RN(448/a) gives it; scales are bit-equal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fp8.h"
#include "quantize.h"

#define ULPS 2              /* of div.approx for divisors up to 2^126 (PTX ISA) */
#define OCTAVES INT64_C(14) /* below the largest: as far as codes reach */
#define TOP_EXPONENT 253    /* of fp32 and bf16: 2^126 */

enum { SLOT_X, SLOT_CODES, SLOT_SCALES };

struct format {
    uint32_t dtype;
    int mantissa_bits; /* of the groups' scales: every value of them once an exponent; fp32 draws its 23 */
    int exponents[4];
};

/* The last exponent of bf16 and fp32 holds 2^126 itself and groups beyond it. */
static const struct format formats[] = {
    {CBN_DTYPE_BF16, 7, {97, 127, 140, TOP_EXPONENT}},
    {CBN_DTYPE_FP16, 10, {1, 15, 22, 30}},
    {CBN_DTYPE_FP32, 10, {97, 127, 140, TOP_EXPONENT}},
};
#define FORMAT_COUNT (sizeof(formats) / sizeof(formats[0]))

struct counts {
    uint64_t elements, differing, hazard_groups;
};

void approx_queries(const struct suite *suite, query_fn add, void *user)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        struct cbn_query query = CBN_QUERY_INIT;
        query.op = "fp8_quantize";
        query.arch = suite->device.arch;
        query.m = 1, query.k = CBN_GROUP_SIZE;
        query.profile.in = formats[i].dtype;
        query.profile.act_scale = CBN_LAYOUT_ROW;
        query.profile.approx = 1;
        query.profile.sms = (uint32_t)suite->device.sms;
        add(user, &query);
    }
}

static float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* One element decides the scale with one mantissa, the others lie below it. */
static void fill_half(const struct format *format, int64_t which, uint64_t *state, uint16_t *group, int64_t at)
{
    int64_t largest = (format->exponents[which & 3] << format->mantissa_bits) | (which >> 2);
    int64_t depth = OCTAVES << format->mantissa_bits;
    for (int i = 0; i < CBN_GROUP_SIZE; i++) {
        int64_t below = random_below(state, depth < largest ? depth : largest);
        group[i] = (uint16_t)(largest - below + (next_random(state) & 1 ? 0x8000 : 0));
    }
    group[at] = (uint16_t)largest;
}

/* Elements within 4 ulp of a rounding boundary: a multiplier off by more than 2 does not pass. */
static void fill_float(const struct format *format, int64_t which, uint64_t *state, uint32_t *group, int64_t at)
{
    uint32_t largest = (uint32_t)format->exponents[which & 3] << 23 | (uint32_t)random_below(state, 1 << 23);
    for (int i = 0; i < CBN_GROUP_SIZE; i++) {
        uint8_t code = (uint8_t)random_below(state, 0x7E);
        float middle = (cbn__e4m3_decode(code) + cbn__e4m3_decode((uint8_t)(code + 1))) / 2;
        group[i] = float_bits(middle / 448.0f * bits_float(largest)) + (uint32_t)random_below(state, 9) - 4;
    }
    group[at] = largest;
}

static void fill(const struct suite *suite, const struct format *format, struct rows *rows, int repeats)
{
    uint64_t state = suite->seed + format->dtype;
    int64_t row_bytes = CBN_GROUP_SIZE * dtype_bytes(format->dtype);
    for (int64_t row = 0; row < rows->count; row++) {
        union {
            uint16_t half[CBN_GROUP_SIZE];
            uint32_t full[CBN_GROUP_SIZE];
        } group;
        if (format->dtype == CBN_DTYPE_FP32) {
            fill_float(format, row / repeats, &state, group.full, row % CBN_GROUP_SIZE);
        } else {
            fill_half(format, row / repeats, &state, group.half, row % CBN_GROUP_SIZE);
        }
        memcpy(rows->data + row * row_bytes, &group, (size_t)row_bytes);
    }
}

static float element(const struct rows *rows, int64_t index)
{
    uint16_t half;
    uint32_t full;
    if (rows->dtype == CBN_DTYPE_FP32) {
        memcpy(&full, rows->data + index * 4, sizeof(full));
        return bits_float(full);
    }
    memcpy(&half, rows->data + index * 2, sizeof(half));
    return rows->dtype == CBN_DTYPE_BF16 ? cbn__bf16_decode(half) : cbn__fp16_decode(half);
}

static bool quantize(struct suite *suite, struct tally *tally, const struct rows *rows, uint8_t *codes, float *scales)
{
    struct cbn_fp8_quantize_args args = CBN_FP8_QUANTIZE_ARGS_INIT;
    struct cbn_error err = {0};
    struct cbn_query query = CBN_QUERY_INIT;
    int64_t count = rows->count * rows->k, bytes = count * dtype_bytes(rows->dtype);
    args.flags = CBN_OP_APPROX_DIVISION;
    args.scale_layout = CBN_LAYOUT_ROW;
    args.x =
        (struct cbn_tensor){suite_scratch(suite, SLOT_X, bytes), rows->dtype, 2, {rows->count, rows->k}, {rows->k, 1}};
    args.codes = args.x, args.codes.dtype = CBN_DTYPE_E4M3;
    args.codes.data = suite_scratch(suite, SLOT_CODES, count);
    args.scales = (struct cbn_tensor){
        suite_scratch(suite, SLOT_SCALES, rows->count * 4), CBN_DTYPE_FP32, 2, {rows->count, 1}, {1, 1}};
    gpu_write(args.x.data, rows->data, bytes);
    gpu_fill(args.codes.data, POISON, count);
    gpu_fill(args.scales.data, POISON, rows->count * 4);
    if (!tally_call(tally, cbn_fp8_quantize(suite->runtimes[RUNTIME_ALL], &args, NULL, &err), &err, "approximate")) {
        return false;
    }
    GPU(cuCtxSynchronize());
    query.op = "fp8_quantize", query.arch = suite->device.arch;
    query.m = rows->count, query.k = rows->k;
    query.profile.in = rows->dtype, query.profile.act_scale = CBN_LAYOUT_ROW, query.profile.approx = 1;
    query.profile.sms = (uint32_t)suite->device.sms;
    (void)cover_note_quantize(suite, &query, 16);
    gpu_read(codes, args.codes.data, count);
    gpu_read(scales, args.scales.data, rows->count * 4);
    return true;
}

static bool is_explained(float value, float multiplier, uint8_t code)
{
    for (int32_t ulp = -ULPS; ulp <= ULPS; ulp++) {
        float moved = bits_float(float_bits(multiplier) + (uint32_t)ulp);
        if (cbn__fp8_quantize_element(value, moved, false) == code) {
            return true;
        }
    }
    return false;
}

static void compare_group(struct tally *tally, const float *values, float largest, const uint8_t *codes, float scale,
                          struct counts *counts)
{
    uint8_t exact[CBN_GROUP_SIZE];
    struct cbn__group_scale wanted = cbn__fp8_quantize_group(values, CBN_GROUP_SIZE, false, false, exact);
    uint64_t scale_unequal = memcmp(&wanted.scale, &scale, sizeof(scale)) != 0, unexplained = 0;
    bool hazard = largest > 0x1p126f;
    for (int i = 0; i < CBN_GROUP_SIZE; i++) {
        bool right = hazard ? (codes[i] & 0x7F) == 0 : is_explained(values[i], 448.0f / largest, codes[i]);
        unexplained += !right;
        counts->differing += !hazard && codes[i] != exact[i];
        counts->elements += !hazard;
    }
    counts->hazard_groups += hazard;
    tally_equal(tally, scale_unequal, "scale of an approximate group");
    tally_equal(tally, unexplained, hazard ? "zero codes above 2^126" : "codes within 2 ulp of the multiplier");
}

static void run_format(struct suite *suite, struct tally *tally, const struct format *format, struct counts *counts)
{
    int repeats = suite->sample ? 1 : 8;
    struct rows rows = rows_create(format->dtype, (INT64_C(4) << format->mantissa_bits) * repeats, CBN_GROUP_SIZE);
    uint8_t *codes = malloc((size_t)(rows.count * rows.k));
    float *scales = malloc((size_t)rows.count * sizeof(*scales));
    fill(suite, format, &rows, repeats);
    bool ran = codes && scales && quantize(suite, tally, &rows, codes, scales);
    for (int64_t row = 0; ran && row < rows.count; row++) {
        float values[CBN_GROUP_SIZE];
        for (int64_t i = 0; i < CBN_GROUP_SIZE; i++) {
            values[i] = element(&rows, row * CBN_GROUP_SIZE + i);
        }
        compare_group(tally, values, values[row % CBN_GROUP_SIZE], codes + row * CBN_GROUP_SIZE, scales[row], counts);
    }
    free(codes);
    free(scales);
    rows_done(&rows);
}

void case_quantize_approx(struct suite *suite, struct tally *tally)
{
    struct counts any = {0}, near = {0}; /* anywhere; next to a rounding boundary */
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        run_format(suite, tally, &formats[i], formats[i].dtype == CBN_DTYPE_FP32 ? &near : &any);
    }
    (void)snprintf(tally->note, sizeof(tally->note),
                   "%llu of %llu codes differ from exact division, %llu of %llu at boundaries; %llu groups above 2^126 "
                   "are zero",
                   (unsigned long long)any.differing, (unsigned long long)any.elements,
                   (unsigned long long)near.differing, (unsigned long long)near.elements,
                   (unsigned long long)(any.hazard_groups + near.hazard_groups));
}
