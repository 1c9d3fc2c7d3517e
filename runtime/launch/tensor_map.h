/*
 * Tensor maps over matrices of codes, as the kernels' copies want them: tiles of 128 bytes of K, swizzled over 128 bytes;
 * and over outputs.
 */
#ifndef CBN_LAUNCH_TENSOR_MAP_H
#define CBN_LAUNCH_TENSOR_MAP_H

#include "driver/device.h"

#define CBN__TENSOR_MAP_BYTES 128
#define CBN__TENSOR_MAP_ALIGN 64

/* Codes [rows, k], one byte an element. */
struct cbn__codes {
    const char *name; /* for errors: "w" */
    uint64_t address; /* a multiple of 16 */
    int64_t rows, k;  /* both at least 1 */
    int64_t stride;   /* bytes between rows, a multiple of 16; not looked at when there is one row */
};

/*
 * Encodes into ret_map, CBN__TENSOR_MAP_BYTES at a multiple of CBN__TENSOR_MAP_ALIGN. depth 0: the matrix as it is, a
 * box is 128 bytes of K by box_rows, zeros past its ends. Else only the whole groups of 128, as [k/128, rows, 128]: a
 * box takes depth groups of box_rows rows; k/128 is at least depth. Work of the host: legal under capture. UNSUPPORTED
 * where a map cannot hold the extents.
 */
int32_t cbn__tensor_map_encode(const struct cbn__driver *driver, const struct cbn__codes *codes, uint32_t box_rows,
                               uint32_t depth, void *ret_map, struct cbn_error *err);

/* D [rows, columns] of bf16 or fp16. */
struct cbn__output {
    uint64_t address; /* a multiple of 16 */
    int64_t rows, columns;
    int64_t stride; /* bytes between rows, a multiple of 16; not looked at when there is one row */
    uint32_t dtype; /* enum cbn_dtype */
};

/* Boxes of box_rows by 64 or 32 columns, swizzled over their 128 or 64 bytes. Else as above. */
int32_t cbn__tensor_map_encode_output(const struct cbn__driver *driver, const struct cbn__output *output,
                                      uint32_t box_rows, uint32_t box_columns, void *ret_map, struct cbn_error *err);

#endif
