/*
 * What the fake driver reads out of a cubin: an ELF64 of machine 190 whose .nv.info sections describe its kernels.
 */
#ifndef CBN_TESTS_FAKE_IMAGE_H
#define CBN_TESTS_FAKE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_IMAGE_PARAMETERS_MAX 16

struct fake_image_kernel {
    uint32_t parameter_count;
    uint32_t parameter_bytes; /* of all of them, as the constant bank lays them out */
    struct {
        uint32_t offset, bytes;
    } parameters[FAKE_IMAGE_PARAMETERS_MAX];
    uint32_t max_threads;       /* __launch_bounds__; 0: not stated */
    uint32_t required_block[3]; /* 0: not stated */
};

/* False when the bytes are no cubin. The size is taken from the ELF header, as a driver must. */
bool fake_image_check(const void *image, size_t *ret_bytes, uint32_t *ret_capability);
/* False when the symbol table holds no function of that name. */
bool fake_image_find(const void *image, const char *name, struct fake_image_kernel *ret_kernel);

#endif
