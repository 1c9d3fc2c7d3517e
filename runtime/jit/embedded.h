/*
 * The templates that CMake embedded: name, text, and the one digest over all of them.
 */
#ifndef CBN_JIT_EMBEDDED_H
#define CBN_JIT_EMBEDDED_H

#include "base/hash.h"

struct cbn__embedded {
    const char *name; /* "fp8_gemm.cuh" */
    const char *text;
    size_t size;
};

extern const struct cbn__embedded cbn__embedded_files[];
extern const size_t cbn__embedded_count;

/* NULL when there is none of that name. */
const struct cbn__embedded *cbn__embedded_find(const char *name);
/* Over every name and text, each with its length, in order of name. */
struct cbn__hash cbn__embedded_digest(void);

#endif
