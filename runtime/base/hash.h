/*
 * XXH3-128, the one place that includes xxhash.h. Canonical (big-endian) bytes, so that a key prints the same everywhere.
 */
#ifndef CBN_BASE_HASH_H
#define CBN_BASE_HASH_H

#include "base/buf.h"

#define CBN__HASH_BYTES 16
#define CBN__HASH_TEXT_BYTES 33

struct cbn__hash {
    uint8_t bytes[CBN__HASH_BYTES];
};

struct cbn__hash cbn__hash_blob(struct cbn__blob blob);
/* Hash of several spans as if they were one; the caller separates them where lengths could be confused. */
struct cbn__hash cbn__hash_blobs(const struct cbn__blob *blobs, size_t count);
bool cbn__hash_equal(const struct cbn__hash *a, const struct cbn__hash *b);
/* 32 lower-case hex digits and a NUL. */
void cbn__hash_format(const struct cbn__hash *hash, char ret_text[CBN__HASH_TEXT_BYTES]);
/* 0 to 15, or -1: no hex digit, in either case. */
int cbn__hash_digit(char c);
/* A fast 64-bit hash for in-memory tables; never stored. */
uint64_t cbn__hash_64(struct cbn__blob blob);

#endif
