/*
 * See sha256.h.
 */
#include "cache/sha256.h"

#include <stdio.h>
#include <string.h>

#include <nettle/sha2.h>

#include "base/hash.h"

#define PREFIX "sha256:"

_Static_assert(sizeof(struct sha256_ctx) <= sizeof(struct cbn__sha256), "nettle's state has grown");
_Static_assert(SHA256_DIGEST_SIZE == CBN__SHA256_BYTES, "");

static struct sha256_ctx *context(struct cbn__sha256 *sha)
{
    return (struct sha256_ctx *)sha->state;
}

void cbn__sha256_begin(struct cbn__sha256 *sha)
{
    sha256_init(context(sha));
}

void cbn__sha256_add(struct cbn__sha256 *sha, struct cbn__blob bytes)
{
    if (bytes.size)
        sha256_update(context(sha), bytes.size, bytes.data);
}

void cbn__sha256_end(struct cbn__sha256 *sha, uint8_t ret_digest[CBN__SHA256_BYTES])
{
    sha256_digest(context(sha), CBN__SHA256_BYTES, ret_digest);
}

void cbn__sha256_format(const uint8_t digest[CBN__SHA256_BYTES], char ret_text[CBN__SHA256_TEXT_BYTES])
{
    for (size_t i = 0; i < CBN__SHA256_BYTES; i++)
        (void)snprintf(ret_text + 2 * i, 3, "%02x", digest[i]);
}

bool cbn__sha256_parse(const char *text, uint8_t ret_digest[CBN__SHA256_BYTES])
{
    if (strncmp(text, PREFIX, strlen(PREFIX)) == 0)
        text += strlen(PREFIX);
    if (strlen(text) != 2 * (size_t)CBN__SHA256_BYTES)
        return false;
    for (size_t i = 0; i < CBN__SHA256_BYTES; i++) {
        int high = cbn__hash_digit(text[2 * i]), low = cbn__hash_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_digest[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
