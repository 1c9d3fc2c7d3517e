/*
 * The digest of a list of files, one after the other: each step hashes the digest so far, the name and the text, both
 * with their lengths. Only a file's own name goes in, never the folder it came from.
 */
#ifndef CBN_JIT_DIGEST_H
#define CBN_JIT_DIGEST_H

#include "base/hash.h"

#define CBN__DIGEST_EMPTY                                                                                              \
    {                                                                                                                  \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

struct cbn__hash cbn__digest_file(const struct cbn__hash *before, const char *name, struct cbn__blob text);

/* "/a/b/c.cuh" to "c.cuh": what diagnostics, __FILE__ and the digest see of a template's name. */
const char *cbn__file_name(const char *path);

#endif
