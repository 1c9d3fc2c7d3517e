/*
 * From a pack, a file or a stream, into the overlay: nothing of it is taken before all of it was verified.
 */
#ifndef CBN_CACHE_UNPACK_H
#define CBN_CACHE_UNPACK_H

#include "cache/cabinet.h"
#include "cache/sha256.h"

struct cbn__unpack_result {
    uint64_t entries; /* of the pack */
    uint64_t already; /* of those, the overlay held them just so */
    uint64_t stored;
    uint64_t bytes; /* of the file */
    uint8_t digest[CBN__SHA256_BYTES];
};

/*
 * fd stays the caller's; a stream is read to its end, into a file without a name in the overlay's folder. name stands
 * in messages. expected NULL, or the digest that the file must have. What is there of the same key and compiler major
 * is replaced unless it is the same kernel; its pin stays. OK; DAMAGED (not whole, or of another digest: nothing was
 * taken), UNSUPPORTED, LIMIT (does not fit into the bound), NOT_FOUND (no overlay), TIMEOUT, IO, NO_MEMORY. On a
 * failure of the overlay *ret_result tells what was stored before it.
 */
int32_t cbn__cabinet_unpack(struct cbn__cabinet *cabinet, int fd, const char *name, const uint8_t *expected,
                            struct cbn__unpack_result *ret_result, struct cbn_error *err);

#endif
