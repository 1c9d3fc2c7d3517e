/*
 * See hasher.h.
 */
#include "cache/hasher.h"

static void hash(void *user)
{
    struct cbn__hasher *hasher = user;
    cbn__sha256_add(&hasher->sha, hasher->bytes);
}

void cbn__hasher_begin(struct cbn__hasher *hasher)
{
    cbn__sha256_begin(&hasher->sha);
    cbn__aside_begin(&hasher->aside);
}

void cbn__hasher_add(struct cbn__hasher *hasher, struct cbn__blob bytes)
{
    cbn__aside_wait(&hasher->aside);
    hasher->bytes = bytes;
    if (bytes.size)
        cbn__aside_run(&hasher->aside, hash, hasher);
}

struct cbn__sha256 cbn__hasher_wait(struct cbn__hasher *hasher)
{
    cbn__aside_wait(&hasher->aside);
    return hasher->sha;
}

void cbn__hasher_end(struct cbn__hasher *hasher)
{
    cbn__aside_end(&hasher->aside);
}
