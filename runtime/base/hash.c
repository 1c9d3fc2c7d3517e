/*
 * XXH3-128 over spans.
 */
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

static struct cbn__hash canonical(XXH128_hash_t hash)
{
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, hash);
    struct cbn__hash ret;
    memcpy(ret.bytes, bytes.digest, sizeof(ret.bytes));
    return ret;
}

struct cbn__hash cbn__hash_blob(struct cbn__blob blob)
{
    return canonical(XXH3_128bits(blob.data, blob.size));
}

struct cbn__hash cbn__hash_blobs(const struct cbn__blob *blobs, size_t count)
{
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (size_t i = 0; i < count; i++)
        if (blobs[i].size)
            (void)XXH3_128bits_update(&state, blobs[i].data, blobs[i].size);
    return canonical(XXH3_128bits_digest(&state));
}

bool cbn__hash_equal(const struct cbn__hash *a, const struct cbn__hash *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void cbn__hash_format(const struct cbn__hash *hash, char ret_text[CBN__HASH_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < CBN__HASH_BYTES; i++) {
        ret_text[2 * i] = digits[hash->bytes[i] >> 4];
        ret_text[2 * i + 1] = digits[hash->bytes[i] & 15];
    }
    ret_text[2 * (size_t)CBN__HASH_BYTES] = 0;
}

int cbn__hash_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

uint64_t cbn__hash_64(struct cbn__blob blob)
{
    return XXH3_64bits(blob.data, blob.size);
}
