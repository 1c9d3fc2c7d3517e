/*
 * What a cubin says about one of its kernels.
 */
#ifndef CBN_JIT_IMAGE_H
#define CBN_JIT_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct cbn__image_kernel {
    bool readable; /* the image is an ELF64 whose tables lie inside it */
    bool found;
    bool argument_bytes_known; /* .nv.info tells at least one parameter */
    uint32_t argument_bytes;   /* of all its parameters */
    char others[128];          /* names of the image's kernels, "a, b", cut where longer */
};

/* No byte of the image is trusted. */
void cbn__image_find(struct cbn__blob image, const char *symbol, struct cbn__image_kernel *ret_kernel);

#endif
