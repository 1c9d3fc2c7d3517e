/*
 * One quantisation call against the CPU reference. Both outputs are compared as whole buffers, guards included, with an
 * image that starts as poison: a byte written where none belongs is a mismatch like a wrong code.
 */
#include "quantize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/tensor.h"
#include "base/fp8.h"

enum { SLOT_X, SLOT_CODES, SLOT_SCALES, SLOT_VALID };

static void *must_alloc(int64_t bytes)
{
    void *data = malloc((size_t)(bytes > 0 ? bytes : 1));
    if (!data) {
        fprintf(stderr, "gpu_suite: out of host memory (%lld bytes)\n", (long long)bytes);
        exit(1);
    }
    return data;
}

struct rows rows_create(uint32_t dtype, int64_t count, int64_t k)
{
    struct rows rows = {dtype, count, k, must_alloc(count * k * dtype_bytes(dtype))};
    return rows;
}

void rows_done(struct rows *rows)
{
    free(rows->data);
    rows->data = NULL;
}

/* ---- random rows ---- */

struct layout_bits {
    int mantissa, exponent_max; /* of finite values */
};

static struct layout_bits bits_of(uint32_t dtype)
{
    switch (dtype) {
    case CBN_DTYPE_BF16:
        return (struct layout_bits){7, 254};
    case CBN_DTYPE_FP16:
        return (struct layout_bits){10, 30};
    default:
        return (struct layout_bits){23, 254};
    }
}

enum group_kind { GROUP_ZERO, GROUP_NAN, GROUP_INFINITY, GROUP_DENORMAL, GROUP_RAW, GROUP_WIDE, GROUP_KINDS = 64 };

static uint32_t draw_element(uint32_t dtype, uint64_t kind, int base, uint64_t *state)
{
    struct layout_bits layout = bits_of(dtype);
    uint64_t r = next_random(state);
    int width = (int)dtype_bytes(dtype) * 8;
    uint32_t sign = (uint32_t)(r >> 63) << (width - 1);
    uint32_t mantissa = (uint32_t)r & ((1u << layout.mantissa) - 1);
    int exponent = base - (int)((r >> 32) % (kind == GROUP_WIDE ? 30 : 8));
    if (kind == GROUP_ZERO) {
        return sign;
    }
    if (kind == GROUP_RAW) {
        return width == 32 ? (uint32_t)r : (uint32_t)r & 0xFFFFu;
    }
    if ((kind == GROUP_NAN || kind == GROUP_INFINITY) && (r >> 40) % 50 == 0) {
        return sign | (uint32_t)(layout.exponent_max + 1) << layout.mantissa | (kind == GROUP_NAN ? mantissa | 1 : 0);
    }
    if (exponent < 0 || kind == GROUP_DENORMAL) {
        exponent = 0;
    }
    return sign | (uint32_t)exponent << layout.mantissa | mantissa;
}

static void draw_group(uint32_t dtype, uint8_t *group, int64_t count, uint64_t *state)
{
    int exponent_max = bits_of(dtype).exponent_max;
    uint64_t kind = next_random(state) % GROUP_KINDS;
    int centre = dtype == CBN_DTYPE_FP16 ? 15 : 127;
    bool near_one = next_random(state) % 2 == 0;
    int base = near_one ? centre - 6 + (int)random_below(state, 12) : 1 + (int)random_below(state, exponent_max);
    int64_t bytes = dtype_bytes(dtype);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = draw_element(dtype, kind, base, state);
        memcpy(group + i * bytes, &bits, (size_t)bytes);
    }
}

struct filling {
    struct rows *rows;
    uint64_t seed;
};

static void fill_range(void *user, int64_t begin, int64_t end)
{
    const struct filling *filling = user;
    const struct rows *rows = filling->rows;
    int64_t bytes = dtype_bytes(rows->dtype);
    for (int64_t row = begin; row < end; row++) {
        uint64_t state = filling->seed ^ (uint64_t)(row + 1) * 0xD1342543DE82EF95u;
        for (int64_t at = 0; at < rows->k; at += CBN_GROUP_SIZE) {
            int64_t count = rows->k - at < CBN_GROUP_SIZE ? rows->k - at : CBN_GROUP_SIZE;
            draw_group(rows->dtype, rows->data + (row * rows->k + at) * bytes, count, &state);
        }
    }
}

void rows_fill_random(const struct suite *suite, struct rows *rows, uint64_t seed)
{
    struct filling filling = {rows, seed};
    parallel_for(suite->threads, rows->count, fill_range, &filling);
}

/* ---- the reference ---- */

struct referring {
    const struct rows *rows;
    struct quant_ref *ref;
};

static float element(const struct rows *rows, int64_t index)
{
    uint16_t half;
    float value;
    if (rows->dtype == CBN_DTYPE_FP32) {
        memcpy(&value, rows->data + index * 4, sizeof(value));
        return value;
    }
    memcpy(&half, rows->data + index * 2, sizeof(half));
    return rows->dtype == CBN_DTYPE_BF16 ? cbn__bf16_decode(half) : cbn__fp16_decode(half);
}

static void refer_range(void *user, int64_t begin, int64_t end)
{
    const struct referring *referring = user;
    const struct rows *rows = referring->rows;
    struct quant_ref *ref = referring->ref;
    int64_t groups = ceil_div(rows->k, CBN_GROUP_SIZE);
    float values[CBN_GROUP_SIZE];
    for (int64_t i = begin * groups; i < end * groups; i++) {
        int64_t row = i / groups, first = i % groups * CBN_GROUP_SIZE;
        int count = (int)(rows->k - first < CBN_GROUP_SIZE ? rows->k - first : CBN_GROUP_SIZE);
        for (int j = 0; j < count; j++) {
            values[j] = element(rows, row * rows->k + first + j);
        }
        struct cbn__group_scale scale =
            cbn__fp8_quantize_group(values, count, ref->pow2, ref->propagate, ref->codes + row * rows->k + first);
        ref->scales[i] = scale.scale;
        ref->exponents[i] = scale.exponent;
    }
}

struct quant_ref quant_ref_create(const struct suite *suite, const struct rows *rows, bool pow2, bool propagate)
{
    int64_t groups = ceil_div(rows->k, CBN_GROUP_SIZE);
    struct quant_ref ref = {pow2, propagate, must_alloc(rows->count * rows->k), must_alloc(rows->count * groups * 4),
                            must_alloc(rows->count * groups)};
    struct referring referring = {rows, &ref};
    parallel_for(suite->threads, rows->count, refer_range, &referring);
    return ref;
}

void quant_ref_done(struct quant_ref *ref)
{
    free(ref->codes);
    free(ref->scales);
    free(ref->exponents);
}

/* ---- one call ---- */

struct quant_case quant_case_plain(const struct rows *rows, int64_t g, uint32_t layout)
{
    int64_t per_t = g > 0 ? g : 1;
    return (struct quant_case){
        .t = rows->count / per_t, .g = g, .layout = layout, .x_t = rows->k * per_t, .x_g = rows->k, .c_t = rows->k};
}

static bool is_packed(uint32_t layout)
{
    return layout == CBN_LAYOUT_PACKED_ROW || layout == CBN_LAYOUT_PACKED_COL;
}

void quant_scale_tensor(int64_t t, int64_t g, int64_t k, uint32_t layout, int64_t pad, struct cbn_tensor *ret_tensor)
{
    int64_t groups = ceil_div(k, CBN_GROUP_SIZE), columns = is_packed(layout) ? ceil_div(groups, 4) : groups;
    int64_t t_stride = 1, column_stride = 1, g_stride;
    if (layout == CBN_LAYOUT_ROW || layout == CBN_LAYOUT_PACKED_ROW) {
        t_stride = columns + pad;
        g_stride = t * t_stride;
    } else {
        column_stride = layout == CBN_LAYOUT_COL ? t + pad : round_up(t, 4) + 4 * pad;
        g_stride = columns * column_stride;
    }
    *ret_tensor = (struct cbn_tensor){.dtype = is_packed(layout) ? CBN_DTYPE_INT32 : CBN_DTYPE_FP32, .rank = 2};
    if (g == 0) {
        ret_tensor->extents[0] = t, ret_tensor->extents[1] = columns;
        ret_tensor->strides[0] = t_stride, ret_tensor->strides[1] = column_stride;
        return;
    }
    ret_tensor->rank = 3;
    ret_tensor->extents[0] = t, ret_tensor->extents[1] = g, ret_tensor->extents[2] = columns;
    ret_tensor->strides[0] = t_stride, ret_tensor->strides[1] = g_stride, ret_tensor->strides[2] = column_stride;
}

/* Where a buffer's data start, how many bytes it has with its guards. */
struct window {
    int64_t start, total;
};

static struct window window_of(const struct suite *suite, int64_t offset_bytes, int64_t span_bytes)
{
    struct window window = {suite->guard + offset_bytes, 2 * suite->guard + offset_bytes + span_bytes};
    return window;
}

static int64_t tensor_span(const struct cbn_tensor *tensor)
{
    int64_t span = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->extents[i] == 0) {
            return 0;
        }
        span += (tensor->extents[i] - 1) * tensor->strides[i];
    }
    return span;
}

static struct cbn_tensor rows_tensor(const struct rows *rows, const struct quant_case *call, uint32_t dtype,
                                     int64_t t_stride, int64_t g_stride)
{
    struct cbn_tensor tensor = {.dtype = dtype, .rank = call->g ? 3 : 2};
    uint32_t last = tensor.rank - 1;
    tensor.extents[0] = call->t, tensor.strides[0] = t_stride;
    if (call->g) {
        tensor.extents[1] = call->g, tensor.strides[1] = g_stride;
    }
    tensor.extents[last] = rows->k, tensor.strides[last] = 1;
    return tensor;
}

static CUdeviceptr upload_rows(struct suite *suite, const struct rows *rows, const struct quant_case *call,
                               int64_t span)
{
    int64_t bytes = dtype_bytes(rows->dtype), per_t = call->g ? call->g : 1, row_bytes = rows->k * bytes;
    struct window window = window_of(suite, call->x_offset * bytes, span * bytes);
    CUdeviceptr base = suite_scratch(suite, SLOT_X, window.total);
    bool contiguous = call->x_t == rows->k * per_t && call->x_g == rows->k;
    gpu_fill(base, POISON_INPUT, window.total);
    if (contiguous) {
        gpu_write(base + (CUdeviceptr)window.start, rows->data, rows->count * row_bytes);
        return base + (CUdeviceptr)window.start;
    }
    uint8_t *image = must_alloc(span * bytes);
    memset(image, POISON_INPUT, (size_t)(span * bytes));
    for (int64_t row = 0; row < rows->count; row++) {
        int64_t at = (row / per_t * call->x_t + row % per_t * call->x_g) * bytes;
        memcpy(image + at, rows->data + row * row_bytes, (size_t)row_bytes);
    }
    gpu_write(base + (CUdeviceptr)window.start, image, span * bytes);
    free(image);
    return base + (CUdeviceptr)window.start;
}

static void expect_codes(const struct rows *rows, const struct quant_ref *ref, const struct quant_case *call,
                         int64_t valid, uint8_t *data)
{
    int64_t per_t = call->g ? call->g : 1, stride = call->g ? rows->k : call->c_t;
    for (int64_t row = 0; row < valid * per_t; row++) {
        memcpy(data + row * stride, ref->codes + row * rows->k, (size_t)rows->k);
    }
}

static void expect_scales(const struct rows *rows, const struct quant_ref *ref, const struct quant_case *call,
                          const struct cbn_tensor *scales, int64_t valid, uint8_t *data)
{
    int64_t per_t = call->g ? call->g : 1, groups = ceil_div(rows->k, CBN_GROUP_SIZE);
    uint32_t last = scales->rank - 1;
    for (int64_t row = 0; row < valid * per_t; row++) {
        int64_t at = row / per_t * scales->strides[0] + (call->g ? row % per_t * scales->strides[1] : 0);
        for (int64_t g = 0; g < groups; g++) {
            if (!is_packed(call->layout)) {
                memcpy(data + (at + g * scales->strides[last]) * 4, ref->scales + row * groups + g, 4);
                continue;
            }
            uint8_t *word = data + (at + g / 4 * scales->strides[last]) * 4;
            if (g % 4 == 0) {
                memset(word, 0, 4);
            }
            word[g % 4] = ref->exponents[row * groups + g];
        }
    }
}

static uint64_t count_unequal(const uint8_t *a, const uint8_t *b, int64_t bytes)
{
    uint64_t unequal = 0;
    if (memcmp(a, b, (size_t)bytes) == 0) {
        return 0;
    }
    for (int64_t i = 0; i < bytes; i++) {
        unequal += a[i] != b[i];
    }
    return unequal;
}

static struct cbn_query query_of(const struct suite *suite, const struct rows *rows, const struct quant_ref *ref,
                                 const struct quant_case *call)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "fp8_quantize";
    query.arch = suite->device.arch;
    query.m = call->t;
    query.k = rows->k;
    query.groups = call->g;
    query.profile.in = rows->dtype;
    query.profile.act_scale = call->layout;
    query.profile.pow2 = ref->pow2;
    query.profile.propagate = ref->propagate;
    query.profile.pdl = !call->no_pdl;
    query.profile.sms = (uint32_t)suite->device.sms;
    query.profile.max_sms = call->max_sms;
    return query;
}

static void compare(struct suite *suite, struct tally *tally, const struct rows *rows, const struct quant_ref *ref,
                    const struct quant_case *call, const struct cbn_tensor *scales, struct window codes_at,
                    struct window scales_at)
{
    char what[160];
    int64_t valid = !call->has_m_valid ? call->t : call->m_valid < 0 ? 0 : call->m_valid;
    valid = valid < call->t ? valid : call->t;
    uint8_t *got = must_alloc(codes_at.total + scales_at.total), *want = must_alloc(codes_at.total + scales_at.total);
    memset(want, POISON, (size_t)(codes_at.total + scales_at.total));
    expect_codes(rows, ref, call, valid, want + codes_at.start);
    expect_scales(rows, ref, call, scales, valid, want + codes_at.total + scales_at.start);
    gpu_read(got, suite->scratch[SLOT_CODES].address, codes_at.total);
    gpu_read(got + codes_at.total, suite->scratch[SLOT_SCALES].address, scales_at.total);
    (void)snprintf(what, sizeof(what), "codes of T=%lld G=%lld K=%lld in=%s layout=%u pow2=%d propagate=%d",
                   (long long)call->t, (long long)call->g, (long long)rows->k, cbn_dtype_name(rows->dtype),
                   call->layout, ref->pow2, ref->propagate);
    tally_equal(tally, count_unequal(got, want, codes_at.total), what);
    memcpy(what, "scale", 5);
    tally_equal(tally, count_unequal(got + codes_at.total, want + codes_at.total, scales_at.total), what);
    free(got);
    free(want);
}

void quant_run(struct suite *suite, struct tally *tally, const struct rows *rows, const struct quant_ref *ref,
               const struct quant_case *call)
{
    struct cbn_fp8_quantize_args args = CBN_FP8_QUANTIZE_ARGS_INIT;
    struct cbn_error err = {0};
    int64_t per_t = call->g ? call->g : 1;
    args.scale_layout = call->layout;
    args.max_sms = call->max_sms;
    args.flags = (call->no_pdl ? CBN_OP_NO_PDL : 0) | (ref->propagate ? CBN_OP_PROPAGATE : 0) |
                 (ref->pow2 && !is_packed(call->layout) ? CBN_OP_POW2 : 0);
    args.x = rows_tensor(rows, call, rows->dtype, call->x_t, call->x_g);
    args.codes = rows_tensor(rows, call, CBN_DTYPE_E4M3, call->g ? per_t * rows->k : call->c_t, rows->k);
    quant_scale_tensor(call->t, call->g, rows->k, call->layout, call->s_pad, &args.scales);
    struct window codes_at = window_of(suite, call->c_offset, tensor_span(&args.codes));
    struct window scales_at = window_of(suite, 0, tensor_span(&args.scales) * 4);
    args.x.data = upload_rows(suite, rows, call, tensor_span(&args.x));
    args.codes.data = suite_scratch(suite, SLOT_CODES, codes_at.total);
    args.scales.data = suite_scratch(suite, SLOT_SCALES, scales_at.total);
    gpu_fill(args.codes.data, POISON, codes_at.total);
    gpu_fill(args.scales.data, POISON, scales_at.total);
    args.codes.data += (CUdeviceptr)codes_at.start;
    args.scales.data += (CUdeviceptr)scales_at.start;
    if (call->has_m_valid) {
        int32_t valid = (int32_t)call->m_valid;
        args.m_valid = suite_scratch(suite, SLOT_VALID, 4);
        gpu_write(args.m_valid, &valid, 4);
    }
    if (!tally_call(tally, cbn_fp8_quantize(suite->runtimes[RUNTIME_ALL], &args, NULL, &err), &err, "fp8_quantize")) {
        return;
    }
    GPU(cuCtxSynchronize());
    struct cbn_query query = query_of(suite, rows, ref, call);
    (void)cover_note_quantize(suite, &query, cbn__tensor_align(&args.codes, cbn__tensor_align(&args.x, 16)));
    compare(suite, tally, rows, ref, call, &args.scales, codes_at, scales_at);
}
