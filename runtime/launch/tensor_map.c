/*
 * Tensor maps by the driver's own encoder. Holds nothing, takes no lock.
 */
#include "launch/tensor_map.h"

#include <cubinet/types.h>

#include "driver/cuda_table.h"

#define GROUP_BYTES 128
#define OUTPUT_BYTES 2 /* an element */
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
                          "strides below 2^40: switch its kernels off (disable=swap_ab,swap_ab_fused,wgmma)",
                          codes->name, (long long)codes->rows, (long long)codes->k, (long long)stride);
}

/* A single row has no stride of its own; the encoder still wants a legal one. */
static int64_t stride_of(int64_t rows, int64_t row_bytes, int64_t stride)
{
    return rows > 1 ? stride : (row_bytes + STRIDE_UNIT - 1) / STRIDE_UNIT * STRIDE_UNIT;
}

int32_t cbn__tensor_map_encode(const struct cbn__driver *driver, const struct cbn__codes *codes, uint32_t box_rows,
                               uint32_t depth, void *ret_map, struct cbn_error *err)
{
    int64_t stride = stride_of(codes->rows, codes->k, codes->stride);
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

int32_t cbn__tensor_map_encode_output(const struct cbn__driver *driver, const struct cbn__output *output,
                                      uint32_t box_rows, uint32_t box_columns, void *ret_map, struct cbn_error *err)
{
    const struct cbn__codes extents_of = {"d", output->address, output->rows, output->columns, output->stride};
    int64_t stride = stride_of(output->rows, output->columns * OUTPUT_BYTES, output->stride);
    int32_t status = check_extents(&extents_of, stride, err);
    if (status != CBN_STATUS_OK)
        return status;
    bool is_bf16 = output->dtype == CBN_DTYPE_BF16;
    const cuuint64_t extents[] = {(cuuint64_t)output->columns, (cuuint64_t)output->rows};
    const cuuint64_t strides[] = {(cuuint64_t)stride};
    const cuuint32_t box[] = {box_columns, box_rows};
    const cuuint32_t element_strides[] = {1, 1};
    CUresult result = cbn__driver_table(driver)->cuTensorMapEncodeTiled(
        ret_map, is_bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2,
        (void *)(uintptr_t)output->address, extents, strides, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
        box_columns == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? CBN_STATUS_OK : cbn__driver_error(driver, result, "cuTensorMapEncodeTiled", err);
}
