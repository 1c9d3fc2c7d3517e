/*
 * Tensors as calls give them: what an operation demands of one, checked before anything else happens.
 */
#ifndef CBN_API_TENSOR_H
#define CBN_API_TENSOR_H

#include <stdbool.h>

#include <cubinet/types.h>

#include "base/error.h"

#define CBN__DTYPE_BIT(name) (1u << CBN_DTYPE_##name)

/* What a tensor must be. */
struct cbn__shape {
    const char *name;    /* "w_scale" */
    const char *formula; /* "[ceil(N/128), ceil(K/128)]" */
    uint32_t dtypes;     /* mask of CBN__DTYPE_BIT */
    uint32_t rank;
    int64_t extents[CBN_RANK_MAX];
};

/* The bytes that a tensor reaches, from the first to the last: [begin, end). Empty where an extent is 0. */
struct cbn__span {
    const char *name;
    uint64_t begin, end;
    uint64_t pitch, width; /* of rank 2 with an inner stride of 1: bytes between rows, bytes of a row; else 0 */
};

/*
 * INVALID, naming the tensor: absent, another dtype, rank or extents, a base that its elements cannot stand at, a
 * stride that is not positive on an extent above 1, a reach beyond int64 or the address space. A tensor with an extent
 * of 0 may be absent and its strides are not looked at.
 */
int32_t cbn__tensor_check(const struct cbn_tensor *tensor, const struct cbn__shape *shape, struct cbn__span *ret_span,
                          struct cbn_error *err);

/* Rank 2, after cbn__tensor_check: the last stride is 1, the row stride not below the columns. */
int32_t cbn__tensor_check_rows(const struct cbn_tensor *tensor, const char *name, struct cbn_error *err);

/* Rank 1 and up, after cbn__tensor_check: the last stride is 1. */
int32_t cbn__tensor_check_inner(const struct cbn_tensor *tensor, const char *name, struct cbn_error *err);

/* The stride of an axis, or otherwise where the extent leaves it without meaning. */
static inline int64_t cbn__tensor_stride(const struct cbn_tensor *tensor, uint32_t axis, int64_t otherwise)
{
    return tensor->extents[axis] > 1 ? tensor->strides[axis] : otherwise;
}

/* What activation scales belong to: rows x (groups) x k elements. */
struct cbn__scaled {
    const char *name;
    int64_t rows;
    int64_t groups; /* -1: flat, rank 2 */
    int64_t k;
};

/* Activation scales in one of the layouts of enum cbn_scale_layout. */
int32_t cbn__scale_check(const struct cbn_tensor *scale, uint32_t layout, const struct cbn__scaled *scaled,
                         struct cbn__span *ret_span, struct cbn_error *err);

bool cbn__layout_is_packed(uint32_t layout);

/* INVALID when output shares a byte with one of others. */
int32_t cbn__spans_check_apart(const struct cbn__span *output, const struct cbn__span *others, uint32_t count,
                               struct cbn_error *err);

/* A device int32 at an address, 0: absent. */
int32_t cbn__word_check(uint64_t address, const char *name, struct cbn__span *ret_span, struct cbn_error *err);

/*
 * The largest power of two that divides so_far, the base address and the byte strides of all axes but the last. An
 * extent of 1 counts with its contiguous stride: one row then takes the kernel that many rows take, which warm-up
 * knows.
 */
int64_t cbn__tensor_align(const struct cbn_tensor *tensor, int64_t so_far);

uint32_t cbn__dtype_bytes(uint32_t dtype);

static inline int64_t cbn__ceil_div(int64_t value, int64_t by)
{
    return value / by + (value % by != 0);
}

#endif
