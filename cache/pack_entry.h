/*
 * The form in which an entry travels, in packs and to and from the fleet tier. Grammar in PACK.md.
 *
 * Owns that form. It holds what follows from the key and the compiler and nothing else: no time, duration, use, log,
 * path, user or host. So one kernel has one encoding, whichever cache it comes from. Knows no files; takes no lock.
 */
#ifndef CBN_CACHE_PACK_ENTRY_H
#define CBN_CACHE_PACK_ENTRY_H

#include "cache/entry.h"

#define CBN__PACK_ENTRY_FORMAT 1u
#define CBN__PACK_PAYLOAD_MAX_BYTES ((uint64_t)1 << 31)
#define CBN__PACK_ENTRY_MIN_BYTES 112u /* of a key record of one byte and an empty payload */
#define CBN__PACK_ENTRY_MAX_BYTES (CBN__PACK_PAYLOAD_MAX_BYTES + CBN__KEY_RECORD_MAX_BYTES + 256u)

/*
 * Appends to an empty buffer. Of the facts only those of the cubin are taken: compile_ms and created_s are not.
 * ret_bytes->failed tells of a lack of memory, or of a part that a reader would refuse.
 */
void cbn__pack_entry_encode(struct cbn__blob key_record, struct cbn__blob payload, const struct cbn__entry_facts *facts,
                            struct cbn__buf *ret_bytes);

/*
 * Decodes and verifies entry->bytes, whose address must be divisible by 16. NULL: every byte is as it was encoded, and
 * *ret_key is the hash of the key record with the compiler's major; else what is wrong, and entry holds what could be
 * decoded. Whoever asked for a key compares the key record too. The log is empty, compile_ms and created_s are 0.
 */
const char *cbn__pack_entry_decode(struct cbn__entry *entry, struct cbn__store_key *ret_key);

#endif
