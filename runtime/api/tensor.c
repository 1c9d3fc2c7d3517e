/*
 * Checks of tensors: data, dtype, extents, strides, reach, overlap. Pure: it sees numbers, never memory.
 */
#include "api/tensor.h"

#include <stdio.h>

#define SHAPE_TEXT_BYTES 96

uint32_t cbn__dtype_bytes(uint32_t dtype)
{
    switch (dtype) {
#define CBN_X(number, name, text, bytes)                                                                               \
    case number:                                                                                                       \
        return bytes;
        CBN_DTYPE_MAP(CBN_X)
#undef CBN_X
    default:
        return 0;
    }
}

static void format_extents(const int64_t *extents, uint32_t rank, char ret_text[SHAPE_TEXT_BYTES])
{
    size_t used = 0;
    for (uint32_t i = 0; i < rank && i < CBN_RANK_MAX; i++)
        used +=
            (size_t)snprintf(ret_text + used, SHAPE_TEXT_BYTES - used, "%s%lld", i ? ", " : "[", (long long)extents[i]);
    (void)snprintf(ret_text + used, SHAPE_TEXT_BYTES - used, "%s", used ? "]" : "no rank");
}

static int32_t refuse_dtype(const struct cbn_tensor *tensor, const struct cbn__shape *shape, struct cbn_error *err)
{
    char wanted[64] = "";
    size_t used = 0;
    for (uint32_t dtype = 1; dtype < 32; dtype++)
        if (shape->dtypes >> dtype & 1u)
            used +=
                (size_t)snprintf(wanted + used, sizeof(wanted) - used, "%s%s", used ? ", " : "", cbn_dtype_name(dtype));
    return cbn__error_own(err, CBN_STATUS_INVALID, "%s.dtype is %s (%u); give one of: %s", shape->name,
                          cbn_dtype_name(tensor->dtype), tensor->dtype, wanted);
}

static int32_t refuse_extents(const struct cbn_tensor *tensor, const struct cbn__shape *shape, struct cbn_error *err)
{
    char given[SHAPE_TEXT_BYTES], wanted[SHAPE_TEXT_BYTES];
    format_extents(tensor->extents, tensor->rank, given);
    format_extents(shape->extents, shape->rank, wanted);
    return cbn__error_own(err, CBN_STATUS_INVALID, "%s has extents %s (rank %u); give %s = %s", shape->name, given,
                          tensor->rank, shape->formula, wanted);
}

static bool extents_equal(const struct cbn_tensor *tensor, const struct cbn__shape *shape)
{
    if (tensor->rank != shape->rank)
        return false;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (tensor->extents[i] != shape->extents[i])
            return false;
    return true;
}

static bool is_empty(const struct cbn__shape *shape)
{
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->extents[i] == 0)
            return true;
    return false;
}

static int32_t check_extents(const struct cbn_tensor *tensor, const struct cbn__shape *shape, struct cbn_error *err)
{
    for (uint32_t i = 0; i < tensor->rank && i < CBN_RANK_MAX; i++)
        if (tensor->extents[i] < 0)
            return cbn__error_own(err, CBN_STATUS_INVALID, "%s.extents[%u] is %lld; an extent is never negative",
                                  shape->name, i, (long long)tensor->extents[i]);
    return extents_equal(tensor, shape) ? CBN_STATUS_OK : refuse_extents(tensor, shape, err);
}

static int32_t check_strides(const struct cbn_tensor *tensor, const char *name, struct cbn_error *err)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->extents[i] > 1 && tensor->strides[i] < 1)
            return cbn__error_own(err, CBN_STATUS_INVALID,
                                  "%s.strides[%u] is %lld on an extent of %lld; give a positive stride, in elements",
                                  name, i, (long long)tensor->strides[i], (long long)tensor->extents[i]);
    return CBN_STATUS_OK;
}

static int32_t measure_span(const struct cbn_tensor *tensor, const char *name, struct cbn__span *ret_span,
                            struct cbn_error *err)
{
    int64_t last = 0, bytes = 0;
    bool over = false;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        int64_t reach = 0;
        if (tensor->extents[i] > 1) {
            over = over || __builtin_mul_overflow(tensor->extents[i] - 1, tensor->strides[i], &reach);
            over = over || __builtin_add_overflow(last, reach, &last);
        }
    }
    over = over || __builtin_add_overflow(last, 1, &last);
    over = over || __builtin_mul_overflow(last, (int64_t)cbn__dtype_bytes(tensor->dtype), &bytes);
    if (over)
        return cbn__error_own(err, CBN_STATUS_INVALID,
                              "%s: extents times strides reach beyond 2^63 bytes; check the strides, which count "
                              "elements",
                              name);
    uint64_t end = 0;
    if (__builtin_add_overflow(tensor->data, (uint64_t)bytes, &end))
        return cbn__error_own(err, CBN_STATUS_INVALID,
                              "%s: %lld bytes from address 0x%llx pass the end of the address space; check data, "
                              "extents and strides",
                              name, (long long)bytes, (unsigned long long)tensor->data);
    *ret_span = (struct cbn__span){.name = name, .begin = tensor->data, .end = end};
    if (tensor->rank == 2 && tensor->extents[0] > 1 && (tensor->extents[1] == 1 || tensor->strides[1] == 1)) {
        ret_span->pitch = (uint64_t)tensor->strides[0] * cbn__dtype_bytes(tensor->dtype);
        ret_span->width = (uint64_t)tensor->extents[1] * cbn__dtype_bytes(tensor->dtype);
    }
    return CBN_STATUS_OK;
}

int32_t cbn__tensor_check(const struct cbn_tensor *tensor, const struct cbn__shape *shape, struct cbn__span *ret_span,
                          struct cbn_error *err)
{
    bool empty = is_empty(shape);
    if (!tensor->data && !empty)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is missing; give a device address and extents %s",
                              shape->name, shape->formula);
    if (tensor->dtype >= 32 || !(shape->dtypes >> tensor->dtype & 1u))
        return refuse_dtype(tensor, shape, err);
    int32_t status = check_extents(tensor, shape, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (empty) {
        *ret_span = (struct cbn__span){.name = shape->name, .begin = tensor->data, .end = tensor->data};
        return CBN_STATUS_OK;
    }
    uint32_t element_bytes = cbn__dtype_bytes(tensor->dtype);
    if (tensor->data % element_bytes) /* NOLINT(clang-analyzer-core.DivideZero): shape->dtypes holds no NONE */
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s.data is 0x%llx; %s elements need a multiple of %u",
                              shape->name, (unsigned long long)tensor->data, cbn_dtype_name(tensor->dtype),
                              element_bytes);
    status = check_strides(tensor, shape->name, err);
    return status == CBN_STATUS_OK ? measure_span(tensor, shape->name, ret_span, err) : status;
}

int32_t cbn__tensor_check_inner(const struct cbn_tensor *tensor, const char *name, struct cbn_error *err)
{
    uint32_t last = tensor->rank - 1;
    if (tensor->extents[last] > 1 && tensor->strides[last] != 1)
        return cbn__error_own(err, CBN_STATUS_INVALID,
                              "%s.strides[%u] is %lld and must be 1: a transposed or strided last dimension is not "
                              "taken; give a contiguous one",
                              name, last, (long long)tensor->strides[last]);
    return CBN_STATUS_OK;
}

int32_t cbn__tensor_check_rows(const struct cbn_tensor *tensor, const char *name, struct cbn_error *err)
{
    int32_t status = cbn__tensor_check_inner(tensor, name, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (tensor->extents[0] > 1 && tensor->extents[1] > 0 && tensor->strides[0] < tensor->extents[1])
        return cbn__error_own(err, CBN_STATUS_INVALID,
                              "%s.strides[0] is %lld, below the %lld elements of a row; give the distance between rows",
                              name, (long long)tensor->strides[0], (long long)tensor->extents[1]);
    return CBN_STATUS_OK;
}

bool cbn__layout_is_packed(uint32_t layout)
{
    return layout == CBN_LAYOUT_PACKED_ROW || layout == CBN_LAYOUT_PACKED_COL;
}

static bool layout_is_column(uint32_t layout)
{
    return layout != CBN_LAYOUT_ROW && layout != CBN_LAYOUT_PACKED_ROW;
}

static bool layout_is_padded(uint32_t layout)
{
    return layout == CBN_LAYOUT_COL4 || layout == CBN_LAYOUT_PACKED_COL;
}

static const char *layout_name(uint32_t layout)
{
    static const char *const names[] = {"NONE", "ROW", "COL", "COL4", "PACKED_ROW", "PACKED_COL"};
    return layout < sizeof(names) / sizeof(names[0]) ? names[layout] : "unknown";
}

static const char *scale_formula(bool packed, bool grouped)
{
    if (packed)
        return grouped ? "[T, G, ceil(ceil(D/128)/4)]" : "[rows, ceil(ceil(K/128)/4)]";
    return grouped ? "[T, G, ceil(D/128)]" : "[rows, ceil(K/128)]";
}

static int32_t refuse_scale_stride(const struct cbn__scaled *scaled, uint32_t axis, int64_t given, uint32_t layout,
                                   const char *demand, int64_t bound, struct cbn_error *err)
{
    return cbn__error_own(err, CBN_STATUS_INVALID,
                          "%s.strides[%u] is %lld; layout %s needs %s %lld: give that, or the layout that the strides "
                          "have",
                          scaled->name, axis, (long long)given, layout_name(layout), demand, (long long)bound);
}

/* rows and scales of one group; *ret_unit: elements that one group's storage takes. */
static int32_t check_scale_plane(const struct cbn_tensor *scale, uint32_t layout, const struct cbn__scaled *scaled,
                                 int64_t *ret_unit, struct cbn_error *err)
{
    bool column = layout_is_column(layout);
    uint32_t last = scale->rank - 1;
    uint32_t inner = column ? 0 : last, outer = column ? last : 0;
    int64_t inner_extent = scale->extents[inner];
    int64_t pad = layout_is_padded(layout) ? 4 : 1;
    if (inner_extent > 1 && scale->strides[inner] != 1)
        return refuse_scale_stride(scaled, inner, scale->strides[inner], layout, "exactly", 1, err);
    int64_t least = cbn__ceil_div(inner_extent, pad) * pad;
    int64_t step = cbn__tensor_stride(scale, outer, least);
    if (step < least)
        return refuse_scale_stride(scaled, outer, step, layout, "at least", least, err);
    if (step % pad)
        return refuse_scale_stride(scaled, outer, step, layout, "a multiple of", pad, err);
    *ret_unit = (scale->extents[outer] - 1) * step + least; /* measure_span saw that it fits */
    return CBN_STATUS_OK;
}

int32_t cbn__scale_check(const struct cbn_tensor *scale, uint32_t layout, const struct cbn__scaled *scaled,
                         struct cbn__span *ret_span, struct cbn_error *err)
{
    bool packed = cbn__layout_is_packed(layout), grouped = scaled->groups >= 0;
    if (layout < CBN_LAYOUT_ROW || layout > CBN_LAYOUT_PACKED_COL)
        return cbn__error_own(err, CBN_STATUS_INVALID,
                              "%s_layout is %u; name the storage of %s: ROW, COL, COL4, PACKED_ROW or PACKED_COL",
                              scaled->name, layout, scaled->name);
    if (grouped && (layout == CBN_LAYOUT_COL || layout == CBN_LAYOUT_PACKED_ROW))
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s_layout is %s; with groups give ROW, COL4 or PACKED_COL",
                              scaled->name, layout_name(layout));
    int64_t count = cbn__ceil_div(scaled->k, CBN_GROUP_SIZE);
    struct cbn__shape shape = {
        .name = scaled->name,
        .formula = scale_formula(packed, grouped),
        .dtypes = packed ? CBN__DTYPE_BIT(INT32) : CBN__DTYPE_BIT(FP32),
        .rank = grouped ? 3 : 2,
        .extents = {scaled->rows, scaled->groups},
    };
    shape.extents[shape.rank - 1] = packed ? cbn__ceil_div(count, 4) : count;
    int64_t unit = 0;
    int32_t status = cbn__tensor_check(scale, &shape, ret_span, err);
    if (status != CBN_STATUS_OK || ret_span->begin == ret_span->end)
        return status;
    status = check_scale_plane(scale, layout, scaled, &unit, err);
    if (status == CBN_STATUS_OK && grouped && cbn__tensor_stride(scale, 1, unit) < unit)
        status = refuse_scale_stride(scaled, 1, scale->strides[1], layout, "at least", unit, err);
    return status;
}

/* Columns of one wider matrix: rows at equal distances, side by side, that share no byte. */
static bool are_interleaved(const struct cbn__span *a, const struct cbn__span *b)
{
    if (!a->pitch || a->pitch != b->pitch)
        return false;
    uint64_t offset = b->begin > a->begin ? (b->begin - a->begin) % a->pitch
                                          : (a->pitch - (a->begin - b->begin) % a->pitch) % a->pitch;
    return offset >= a->width && b->width <= a->pitch - offset;
}

int32_t cbn__spans_check_apart(const struct cbn__span *output, const struct cbn__span *others, uint32_t count,
                               struct cbn_error *err)
{
    for (uint32_t i = 0; i < count; i++)
        if (output->begin < others[i].end && others[i].begin < output->end && !are_interleaved(output, &others[i]))
            return cbn__error_own(
                err, CBN_STATUS_INVALID, "%s [0x%llx, 0x%llx) overlaps %s [0x%llx, 0x%llx); give it memory of its own",
                output->name, (unsigned long long)output->begin, (unsigned long long)output->end, others[i].name,
                (unsigned long long)others[i].begin, (unsigned long long)others[i].end);
    return CBN_STATUS_OK;
}

int32_t cbn__word_check(uint64_t address, const char *name, struct cbn__span *ret_span, struct cbn_error *err)
{
    if (address % sizeof(int32_t))
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is 0x%llx; a device int32 needs a multiple of 4", name,
                              (unsigned long long)address);
    *ret_span = (struct cbn__span){.name = name, .begin = address, .end = address ? address + sizeof(int32_t) : 0};
    return CBN_STATUS_OK;
}

int64_t cbn__tensor_align(const struct cbn_tensor *tensor, int64_t so_far)
{
    uint64_t bits = (uint64_t)so_far | tensor->data;
    uint64_t contiguous = cbn__dtype_bytes(tensor->dtype); /* only low bits matter, so it may wrap */
    for (uint32_t i = tensor->rank - 1; i > 0; i--) {
        contiguous *= (uint64_t)tensor->extents[i];
        bits |= tensor->extents[i - 1] > 1 ? (uint64_t)tensor->strides[i - 1] * cbn__dtype_bytes(tensor->dtype)
                                           : contiguous;
    }
    return (int64_t)(bits & (~bits + 1));
}
