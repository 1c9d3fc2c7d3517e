/*
 * Tensor maps by the driver's own encoder. Holds nothing, takes no lock.
 */
#include "launch/tensor_map.h"

#include "driver/cuda_table.h"

#define GROUP_BYTES 128
#define EXTENT_MAX (INT64_C(1) << 32) /* CUDA driver API, cuTensorMapEncodeTiled: globalDim */
#define STRIDE_END (INT64_C(1) << 40) /* globalStrides */
#define STRIDE_UNIT 16

_Static_assert(sizeof(CUtensorMap) == CBN__TENSOR_MAP_BYTES, "what callers keep room for");

static int32_t check_extents(const struct cbn__codes *codes, int64_t stride, struct cbn_error *err)
{
    if (codes->rows <= EXTENT_MAX && codes->k <= EXTENT_MAX && stride < STRIDE_END)
        return CBN_STATUS_OK;
    return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                          "%s: %lld rows of %lld codes, %lld bytes apart; a tensor map holds extents up to 2^32 and "
                          "strides below 2^40: switch its kernels off (disable=swap_ab,swap_ab_fused)",
                          codes->name, (long long)codes->rows, (long long)codes->k, (long long)stride);
}

/* A single row has no stride of its own; the encoder still wants a legal one. */
static int64_t stride_of(const struct cbn__codes *codes)
{
    return codes->rows > 1 ? codes->stride : (codes->k + STRIDE_UNIT - 1) / STRIDE_UNIT * STRIDE_UNIT;
}

int32_t cbn__tensor_map_encode(const struct cbn__driver *driver, const struct cbn__codes *codes, uint32_t box_rows,
                               uint32_t depth, void *ret_map, struct cbn_error *err)
{
    int64_t stride = stride_of(codes);
    int32_t status = check_extents(codes, stride, err);
    if (status != CBN_STATUS_OK)
        return status;
    const cuuint64_t extents[] = {depth ? GROUP_BYTES : (cuuint64_t)codes->k, (cuuint64_t)codes->rows,
                                  (cuuint64_t)codes->k / GROUP_BYTES};
    const cuuint64_t strides[] = {(cuuint64_t)stride, GROUP_BYTES};
    const cuuint32_t box[] = {GROUP_BYTES, box_rows, depth};
    const cuuint32_t element_strides[] = {1, 1, 1};
    CUresult result = cbn__driver_table(driver)->cuTensorMapEncodeTiled(
        ret_map, CU_TENSOR_MAP_DATA_TYPE_UINT8, depth ? 3 : 2, (void *)(uintptr_t)codes->address, extents, strides, box,
        element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? CBN_STATUS_OK : cbn__driver_error(driver, result, "cuTensorMapEncodeTiled", err);
}
