/*
 * Stored values: input = lmdb-key (18 bytes) value. Once as they are and once sealed anew, which lets mutations past
 * the hashes. A value that verifies decodes to what encodes to the same bytes.
 */
#include <string.h>

#include "base/record.h"
#include "cache/entry.h"
#include "fuzz.h"

#define SEAL_AT 6u /* FORMAT.md: the seal's field comes first */
#define SEAL_END 22u
#define FIELD_HEAD_BYTES 6u
#define TAG_PAYLOAD_HASH 6u
#define TAG_PAYLOAD 8u

static void copy_value(struct cbn__entry *entry, const uint8_t *bytes, size_t size)
{
    *entry = (struct cbn__entry){.bytes = CBN__BUF_INIT};
    FUZZ_CHECK(cbn__buf_reserve(&entry->bytes, size + 1));
    cbn__buf_append(&entry->bytes, bytes, size);
    FUZZ_CHECK((uintptr_t)entry->bytes.data % CBN__PAYLOAD_ALIGNMENT == 0);
}

static bool same(struct cbn__blob a, struct cbn__blob b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Encoded again it says the same; the bytes may differ, for a decoder takes facts that it does not know. */
static void check_verified(const struct cbn__store_key *key, const struct cbn__entry *entry)
{
    struct cbn__entry again = {.bytes = CBN__BUF_INIT};
    FUZZ_CHECK((uintptr_t)entry->payload.data % CBN__PAYLOAD_ALIGNMENT == 0);
    FUZZ_CHECK(entry->facts.compiler_version / 1000 == cbn__entry_key_major(key));
    cbn__entry_encode(key, entry->key_record, entry->payload, entry->log, &entry->facts, &again.bytes);
    FUZZ_CHECK(!again.bytes.failed && cbn__entry_decode(key, &again) == NULL);
    FUZZ_CHECK(same(again.key_record, entry->key_record) && same(again.log, entry->log));
    FUZZ_CHECK(same(again.payload, entry->payload));
    FUZZ_CHECK(again.facts.compiler_version == entry->facts.compiler_version &&
               again.facts.created_s == entry->facts.created_s && again.facts.registers == entry->facts.registers);
    cbn__entry_done(&again);
}

/* Every byte that a blob of the entry shows must be readable, whatever the verdict. */
static uint8_t sum_bytes(struct cbn__blob blob)
{
    uint8_t sum = 0;
    for (size_t i = 0; i < blob.size; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)blob.data)[i]);
    return sum;
}

volatile uint8_t fuzz_sink;

static void try_value(const struct cbn__store_key *key, const uint8_t *bytes, size_t size)
{
    struct cbn__entry entry;
    copy_value(&entry, bytes, size);
    const char *problem = cbn__entry_decode(key, &entry);
    fuzz_sink = (uint8_t)(sum_bytes(entry.key_record) + sum_bytes(entry.log) + sum_bytes(entry.payload));
    if (!problem)
        check_verified(key, &entry);
    cbn__entry_done(&entry);
}

static void seal_again(const struct cbn__store_key *key, uint8_t *bytes, size_t size)
{
    struct cbn__blob value = {bytes, size}, sum, payload;
    if (cbn__record_find(value, TAG_PAYLOAD_HASH, &sum) && sum.size == CBN__HASH_BYTES &&
        cbn__record_find(value, TAG_PAYLOAD, &payload)) {
        const struct cbn__blob parts[] = {{key->bytes, CBN__HASH_BYTES}, payload};
        struct cbn__hash hash = cbn__hash_blobs(parts, 2);
        memcpy(bytes + ((const uint8_t *)sum.data - bytes), hash.bytes, sizeof(hash.bytes));
    }
    if (size < SEAL_END)
        return;
    const struct cbn__blob parts[] = {
        {key->bytes, sizeof(key->bytes)}, {bytes, SEAL_AT}, {bytes + SEAL_END, size - SEAL_END}};
    struct cbn__hash hash = cbn__hash_blobs(parts, 3);
    memcpy(bytes + SEAL_AT, hash.bytes, sizeof(hash.bytes));
}

static void try_usage(const struct cbn__store_key *key, const uint8_t *bytes, size_t size)
{
    struct cbn__usage_record record;
    uint8_t again[CBN__USAGE_BYTES];
    if (!cbn__usage_decode(key, (struct cbn__blob){bytes, size}, &record))
        return;
    cbn__usage_encode(key, &record, again);
    FUZZ_CHECK(size == sizeof(again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cbn__store_key key;
    if (size < sizeof(key.bytes))
        return -1;
    memcpy(key.bytes, data, sizeof(key.bytes));
    data += sizeof(key.bytes);
    size -= sizeof(key.bytes);
    try_value(&key, data, size);
    try_usage(&key, data, size);
    uint8_t *copy = malloc(size + 1);
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, data, size);
    seal_again(&key, copy, size);
    try_value(&key, copy, size);
    free(copy);
    return 0;
}
