/*
 * SHA-256, by nettle: of a whole pack, where a hash must keep out who means harm. No other file includes nettle.
 * nettle, since a process that links it starts 0.1 ms later, 1.2 ms with OpenSSL's libcrypto; both take 1.3 GB/s.
 */
#ifndef CBN_CACHE_SHA256_H
#define CBN_CACHE_SHA256_H

#include "base/buf.h"

#define CBN__SHA256_BYTES 32u
#define CBN__SHA256_TEXT_BYTES 65u

/* May be copied: the copy goes on by itself. */
struct cbn__sha256 {
    uint64_t state[16];
};

void cbn__sha256_begin(struct cbn__sha256 *sha);
void cbn__sha256_add(struct cbn__sha256 *sha, struct cbn__blob bytes);
void cbn__sha256_end(struct cbn__sha256 *sha, uint8_t ret_digest[CBN__SHA256_BYTES]);

/* 64 lower-case hex digits and a NUL; the other direction takes either case, and "sha256:" before them. */
void cbn__sha256_format(const uint8_t digest[CBN__SHA256_BYTES], char ret_text[CBN__SHA256_TEXT_BYTES]);
bool cbn__sha256_parse(const char *text, uint8_t ret_digest[CBN__SHA256_BYTES]);

#endif
