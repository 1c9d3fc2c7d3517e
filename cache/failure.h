/*
 * What builds that came to nothing leave behind for those who waited for them: counts and the last error, in a slot of
 * the lock file. No entry: it is no answer to anybody who did not wait, and it is never looked up by a key alone.
 *
 * Takes no lock: the holder of a key's flight writes that key's slot, and who shares a slot with it sees a seal that is
 * not its own, or a count that begins anew.
 */
#ifndef CBN_CACHE_FAILURE_H
#define CBN_CACHE_FAILURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cubinet/status.h>

#include "base/hash.h"

#define CBN__FAILURE_BYTES 564u
#define CBN__FAILURE_SLOTS 32u
#define CBN__FAILURE_SLOT_BYTES 1024u
#define CBN__FAILURE_FIRST_BYTE 4096u /* of the lock file */

struct cbn__failure {
    uint64_t count;    /* of this key's builds that this compiler refused in turn; 0: none is known */
    uint64_t dropped;  /* of this key's builds that could not be stored */
    uint32_t compiler; /* major * 1000 + minor; 0 while none refused */
    struct cbn_error error;
};

uint32_t cbn__failure_slot(const struct cbn__hash *key);
void cbn__failure_encode(const struct cbn__hash *key, const struct cbn__failure *failure,
                         uint8_t ret_bytes[CBN__FAILURE_BYTES]);
/* One more refusal. Another compiler's begins the count anew. */
void cbn__failure_add(struct cbn__failure *failure, uint32_t compiler, const struct cbn_error *error);
/* Builds that this compiler refused since before was read, at least; never more than there were. */
uint64_t cbn__failure_since(const struct cbn__failure *failure, const struct cbn__failure *before, uint32_t compiler);
/* False when the bytes do not verify; zeros, and another key's, are a count of 0. */
bool cbn__failure_decode(const uint8_t bytes[CBN__FAILURE_BYTES], const struct cbn__hash *key,
                         struct cbn__failure *ret_failure);

/* From and to the lock file. A write that fails is left at that: those who wait build for themselves. */
bool cbn__failure_read(int fd, const struct cbn__hash *key, struct cbn__failure *ret_failure);
void cbn__failure_write(int fd, const struct cbn__hash *key, const struct cbn__failure *failure, uint64_t size_limit);

#endif
