/*
 * What a compile may read: the template's own source and headers, all of which are in the key, and nothing else.
 */
#ifndef CBN_JIT_INPUTS_H
#define CBN_JIT_INPUTS_H

#include "jit/spec.h"

struct cbn__input {
    int header; /* where it stands: index of the header, -1: the source */
    uint32_t line;
    const char *why;
    char text[64]; /* "#include <cuda_fp16.h>", "__DATE__"; cut where longer */
};

/* The first thing in the source and its headers that would bring in what the key does not hold; false: none. */
bool cbn__inputs_find_foreign(const struct cbn__template *template, struct cbn__input *ret_input);

#endif
