/*
 * One stored entry as bytes: encode, decode, verify. Grammar in FORMAT.md.
 *
 * Owns the value's layout and its two hashes. Knows neither LMDB nor files; takes no lock.
 */
#ifndef CBN_CACHE_ENTRY_H
#define CBN_CACHE_ENTRY_H

#include "cache/cabinet.h"

#define CBN__STORE_KEY_BYTES 18u
#define CBN__PAYLOAD_ALIGNMENT 16u

/* Hash of the key record, then the compiler's major as be16: the majors of one key stand side by side, ascending. */
struct cbn__store_key {
    uint8_t bytes[CBN__STORE_KEY_BYTES];
};

struct cbn__store_key cbn__entry_key(const struct cbn__hash *hash, uint32_t major);
struct cbn__hash cbn__entry_key_hash(const struct cbn__store_key *key);
uint32_t cbn__entry_key_major(const struct cbn__store_key *key);

/* Appends a sealed value to an empty buffer; ret_value->failed tells of a lack of memory or a part above 4 GiB. */
void cbn__entry_encode(const struct cbn__store_key *key, struct cbn__blob key_record, struct cbn__blob payload,
                       struct cbn__blob log, const struct cbn__entry_facts *facts, struct cbn__buf *ret_value);

/*
 * Decodes and verifies entry->bytes, whose address must be divisible by 16. NULL when every byte is as it was
 * sealed; else what is wrong, and entry holds what could be decoded.
 */
const char *cbn__entry_decode(const struct cbn__store_key *key, struct cbn__entry *entry);

/* When a stored value says that it was built, in Unix seconds, unverified; 0: it does not say. */
int64_t cbn__entry_created_s(struct cbn__blob value);

/* Usage of one entry: sealed like an entry. */
#define CBN__USAGE_BYTES 40u
struct cbn__usage_record {
    uint64_t recency_us; /* Unix microseconds of the last use or put: what eviction goes by */
    uint64_t hits;
    bool pinned;
};
void cbn__usage_encode(const struct cbn__store_key *key, const struct cbn__usage_record *record,
                       uint8_t ret_bytes[CBN__USAGE_BYTES]);
/* false when the bytes do not verify; *ret_record is written on success only. */
bool cbn__usage_decode(const struct cbn__store_key *key, struct cbn__blob bytes, struct cbn__usage_record *ret_record);

#endif
