/*
 * One stored entry as bytes. The record's fields stand in one fixed order, each exactly once, so that an entry has
 * one encoding and every byte of it is under the seal.
 */
#include "cache/entry.h"

#include <string.h>

#include "base/record.h"

enum value_tag {
    TAG_SEAL = 1,
    TAG_FORMAT,
    TAG_KEY_RECORD,
    TAG_FACTS,
    TAG_LOG,
    TAG_PAYLOAD_HASH,
    TAG_PAD,
    TAG_PAYLOAD,
    TAG_END
};

enum fact_tag { FACT_COMPILER = 1, FACT_COMPILE_MS, FACT_REGISTERS, FACT_SHARED, FACT_SPILL, FACT_CREATED };

#define FIELD_HEAD_BYTES 6u /* base/record.h: tag u16, length u32 */
#define SEAL_OFFSET FIELD_HEAD_BYTES
#define SEAL_END (SEAL_OFFSET + CBN__HASH_BYTES)

struct cbn__store_key cbn__entry_key(const struct cbn__hash *hash, uint32_t major)
{
    struct cbn__store_key key;
    memcpy(key.bytes, hash->bytes, CBN__HASH_BYTES);
    key.bytes[CBN__HASH_BYTES] = (uint8_t)(major >> 8);
    key.bytes[CBN__HASH_BYTES + 1] = (uint8_t)major;
    return key;
}

struct cbn__hash cbn__entry_key_hash(const struct cbn__store_key *key)
{
    struct cbn__hash hash;
    memcpy(hash.bytes, key->bytes, CBN__HASH_BYTES);
    return hash;
}

uint32_t cbn__entry_key_major(const struct cbn__store_key *key)
{
    return (uint32_t)key->bytes[CBN__HASH_BYTES] << 8 | key->bytes[CBN__HASH_BYTES + 1];
}

/* Over the LMDB key and every byte of the value but the seal's own 16. */
static struct cbn__hash seal_of(const struct cbn__store_key *key, struct cbn__blob value)
{
    const uint8_t *bytes = value.data;
    const struct cbn__blob parts[] = {
        {key->bytes, sizeof(key->bytes)}, {bytes, SEAL_OFFSET}, {bytes + SEAL_END, value.size - SEAL_END}};
    return cbn__hash_blobs(parts, 3);
}

static struct cbn__hash payload_hash_of(const struct cbn__store_key *key, struct cbn__blob payload)
{
    const struct cbn__blob parts[] = {{key->bytes, CBN__HASH_BYTES}, payload};
    return cbn__hash_blobs(parts, 2);
}

static void encode_facts(const struct cbn__entry_facts *facts, struct cbn__buf *record)
{
    cbn__record_put_u32(record, FACT_COMPILER, facts->compiler_version);
    cbn__record_put_u32(record, FACT_COMPILE_MS, facts->compile_ms);
    cbn__record_put_u32(record, FACT_REGISTERS, facts->registers);
    cbn__record_put_u32(record, FACT_SHARED, facts->shared_bytes);
    cbn__record_put_u32(record, FACT_SPILL, facts->spill_bytes);
    cbn__record_put_u64(record, FACT_CREATED, (uint64_t)facts->created_s);
}

/* Zeros that bring the payload's first byte to a multiple of 16 from the start of the value. */
static void put_pad(struct cbn__buf *value)
{
    static const uint8_t zeros[CBN__PAYLOAD_ALIGNMENT];
    size_t payload_at = value->size + 2 * (size_t)FIELD_HEAD_BYTES;
    size_t pad = (CBN__PAYLOAD_ALIGNMENT - payload_at % CBN__PAYLOAD_ALIGNMENT) % CBN__PAYLOAD_ALIGNMENT;
    cbn__record_put(value, TAG_PAD, (struct cbn__blob){zeros, pad});
}

void cbn__entry_encode(const struct cbn__store_key *key, struct cbn__blob key_record, struct cbn__blob payload,
                       struct cbn__blob log, const struct cbn__entry_facts *facts, struct cbn__buf *ret_value)
{
    CBN__BUF_AUTO fact_record = CBN__BUF_INIT;
    struct cbn__hash hash = {{0}};
    encode_facts(facts, &fact_record);
    if (fact_record.failed)
        ret_value->failed = true;
    cbn__record_put(ret_value, TAG_SEAL, (struct cbn__blob){hash.bytes, sizeof(hash.bytes)});
    cbn__record_put_u32(ret_value, TAG_FORMAT, CBN__FORMAT_VERSION);
    cbn__record_put(ret_value, TAG_KEY_RECORD, key_record);
    cbn__record_put(ret_value, TAG_FACTS, cbn__buf_blob(&fact_record));
    cbn__record_put(ret_value, TAG_LOG, log);
    hash = payload_hash_of(key, payload);
    cbn__record_put(ret_value, TAG_PAYLOAD_HASH, (struct cbn__blob){hash.bytes, sizeof(hash.bytes)});
    put_pad(ret_value);
    cbn__record_put(ret_value, TAG_PAYLOAD, payload);
    if (ret_value->failed)
        return;
    hash = seal_of(key, cbn__buf_blob(ret_value));
    memcpy(ret_value->data + SEAL_OFFSET, hash.bytes, sizeof(hash.bytes));
}

static bool decode_facts(struct cbn__blob record, struct cbn__entry_facts *facts)
{
    uint64_t created_s = 0;
    bool whole = cbn__record_find_u32(record, FACT_COMPILER, &facts->compiler_version) &&
                 cbn__record_find_u32(record, FACT_COMPILE_MS, &facts->compile_ms) &&
                 cbn__record_find_u32(record, FACT_REGISTERS, &facts->registers) &&
                 cbn__record_find_u32(record, FACT_SHARED, &facts->shared_bytes) &&
                 cbn__record_find_u32(record, FACT_SPILL, &facts->spill_bytes) &&
                 cbn__record_find_u64(record, FACT_CREATED, &created_s);
    facts->created_s = (int64_t)created_s;
    return whole;
}

/* Every field once, in order, to the last byte. fields[tag] of those that were reached. */
static bool split(struct cbn__blob value, struct cbn__blob fields[TAG_END])
{
    size_t offset = 0;
    bool malformed = false;
    struct cbn__record_field field;
    for (uint32_t tag = TAG_SEAL; tag < TAG_END; tag++) {
        if (!cbn__record_next(value, &offset, &field, &malformed) || field.tag != tag)
            return false;
        fields[tag] = field.bytes;
    }
    return offset == value.size;
}

int64_t cbn__entry_created_s(struct cbn__blob value)
{
    struct cbn__blob fields[TAG_END] = {{NULL, 0}};
    struct cbn__entry_facts facts = {0};
    return split(value, fields) && decode_facts(fields[TAG_FACTS], &facts) && facts.created_s > 0 ? facts.created_s : 0;
}

static bool holds_hash(struct cbn__blob field, const struct cbn__hash *hash)
{
    return field.size == CBN__HASH_BYTES && memcmp(field.data, hash->bytes, CBN__HASH_BYTES) == 0;
}

static const char *verify(const struct cbn__store_key *key, struct cbn__blob value, struct cbn__blob fields[TAG_END])
{
    if (value.size < SEAL_END || fields[TAG_SEAL].size != CBN__HASH_BYTES)
        return "the value is too short or holds no seal";
    struct cbn__hash seal = seal_of(key, value);
    if (!holds_hash(fields[TAG_SEAL], &seal))
        return "the seal does not match";
    struct cbn__hash payload_hash = payload_hash_of(key, fields[TAG_PAYLOAD]);
    if (!holds_hash(fields[TAG_PAYLOAD_HASH], &payload_hash))
        return "the payload's hash does not match";
    if (fields[TAG_FORMAT].size != 4 || cbn__load_u32(fields[TAG_FORMAT].data) != CBN__FORMAT_VERSION)
        return "the entry is of another format version";
    return NULL;
}

const char *cbn__entry_decode(const struct cbn__store_key *key, struct cbn__entry *entry)
{
    struct cbn__blob fields[TAG_END] = {{NULL, 0}};
    struct cbn__blob value = cbn__buf_blob(&entry->bytes);
    bool whole = split(value, fields);
    entry->key_record = fields[TAG_KEY_RECORD];
    entry->log = fields[TAG_LOG];
    entry->payload = fields[TAG_PAYLOAD];
    bool facts_whole = decode_facts(fields[TAG_FACTS], &entry->facts);
    if (!whole)
        return "the record is malformed";
    const char *problem = verify(key, value, fields);
    if (problem)
        return problem;
    if (!facts_whole || entry->facts.compiler_version / 1000 != cbn__entry_key_major(key))
        return "the compiler recorded is not that of the key";
    if ((uintptr_t)entry->payload.data % CBN__PAYLOAD_ALIGNMENT)
        return "the payload is not aligned";
    return NULL;
}

void cbn__entry_done(struct cbn__entry *entry)
{
    cbn__buf_done(&entry->bytes);
    *entry = (struct cbn__entry){.bytes = CBN__BUF_INIT};
}

#define USAGE_SEALED_BYTES (CBN__USAGE_BYTES - CBN__HASH_BYTES)
#define USAGE_PINNED 1u

static struct cbn__hash usage_seal(const struct cbn__store_key *key, const uint8_t *bytes)
{
    const struct cbn__blob parts[] = {{key->bytes, sizeof(key->bytes)}, {bytes, USAGE_SEALED_BYTES}};
    return cbn__hash_blobs(parts, 2);
}

void cbn__usage_encode(const struct cbn__store_key *key, const struct cbn__usage_record *record,
                       uint8_t ret_bytes[CBN__USAGE_BYTES])
{
    cbn__store_u64(ret_bytes, record->recency_us);
    cbn__store_u64(ret_bytes + 8, record->hits);
    cbn__store_u64(ret_bytes + 16, record->pinned ? USAGE_PINNED : 0);
    struct cbn__hash seal = usage_seal(key, ret_bytes);
    memcpy(ret_bytes + USAGE_SEALED_BYTES, seal.bytes, sizeof(seal.bytes));
}

bool cbn__usage_decode(const struct cbn__store_key *key, struct cbn__blob bytes, struct cbn__usage_record *ret_record)
{
    uint8_t copy[CBN__USAGE_BYTES];
    if (bytes.size != sizeof(copy))
        return false;
    memcpy(copy, bytes.data, sizeof(copy));
    struct cbn__hash seal = usage_seal(key, copy);
    if (memcmp(copy + USAGE_SEALED_BYTES, seal.bytes, sizeof(seal.bytes)) != 0)
        return false;
    *ret_record = (struct cbn__usage_record){.recency_us = cbn__load_u64(copy),
                                             .hits = cbn__load_u64(copy + 8),
                                             .pinned = cbn__load_u64(copy + 16) & USAGE_PINNED};
    return true;
}
