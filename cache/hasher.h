/*
 * SHA-256 in a thread beside the one that reads or writes: it takes as long as all the rest of packing.
 */
#ifndef CBN_CACHE_HASHER_H
#define CBN_CACHE_HASHER_H

#include "cache/aside.h"
#include "cache/sha256.h"

struct cbn__hasher {
    struct cbn__aside aside;
    struct cbn__sha256 sha; /* the job's, while there is one */
    struct cbn__blob bytes;
};

void cbn__hasher_begin(struct cbn__hasher *hasher);
/* Returns once what was given before is hashed; these bytes stay as they are until the next call. */
void cbn__hasher_add(struct cbn__hasher *hasher, struct cbn__blob bytes);
/* The state after all that was given. */
struct cbn__sha256 cbn__hasher_wait(struct cbn__hasher *hasher);
void cbn__hasher_end(struct cbn__hasher *hasher);

#endif
