/*
 * An entry as it travels. The fields stand in one fixed order, each exactly once, and what follows from the others
 * (the padding, the layout of the facts) is checked too: an entry has one encoding, and every byte is under the seal.
 */
#include "cache/pack_entry.h"

#include <string.h>

#include "base/record.h"

enum value_tag { TAG_SEAL = 1, TAG_FORMAT, TAG_KEY_RECORD, TAG_FACTS, TAG_PAD, TAG_PAYLOAD, TAG_END };

enum fact_tag { FACT_COMPILER = 1, FACT_REGISTERS, FACT_SHARED, FACT_SPILL };

#define FIELD_HEAD_BYTES 6u /* base/record.h: tag u16, length u32 */
#define SEAL_OFFSET FIELD_HEAD_BYTES
#define SEAL_END (SEAL_OFFSET + CBN__HASH_BYTES)
#define MAJOR_BOUND 0x10000u

static struct cbn__hash seal_of(struct cbn__blob value)
{
    const uint8_t *bytes = value.data;
    const struct cbn__blob parts[] = {{bytes, SEAL_OFFSET}, {bytes + SEAL_END, value.size - SEAL_END}};
    return cbn__hash_blobs(parts, 2);
}

static void encode_facts(const struct cbn__entry_facts *facts, struct cbn__buf *record)
{
    cbn__record_put_u32(record, FACT_COMPILER, facts->compiler_version);
    cbn__record_put_u32(record, FACT_REGISTERS, facts->registers);
    cbn__record_put_u32(record, FACT_SHARED, facts->shared_bytes);
    cbn__record_put_u32(record, FACT_SPILL, facts->spill_bytes);
}

/* Zeros ahead of the payload's field, whose pad field begins at this offset. */
static size_t pad_at(size_t offset)
{
    size_t payload_at = offset + 2 * (size_t)FIELD_HEAD_BYTES;
    return (CBN__PAYLOAD_ALIGNMENT - payload_at % CBN__PAYLOAD_ALIGNMENT) % CBN__PAYLOAD_ALIGNMENT;
}

static bool sizes_are_taken(struct cbn__blob key_record, struct cbn__blob payload)
{
    return key_record.size > 0 && key_record.size <= CBN__KEY_RECORD_MAX_BYTES &&
           payload.size <= CBN__PACK_PAYLOAD_MAX_BYTES;
}

void cbn__pack_entry_encode(struct cbn__blob key_record, struct cbn__blob payload, const struct cbn__entry_facts *facts,
                            struct cbn__buf *ret_bytes)
{
    static const uint8_t zeros[CBN__PAYLOAD_ALIGNMENT];
    CBN__BUF_AUTO fact_record = CBN__BUF_INIT;
    encode_facts(facts, &fact_record);
    if (fact_record.failed || !sizes_are_taken(key_record, payload) || facts->compiler_version / 1000 >= MAJOR_BOUND ||
        !cbn__buf_reserve(ret_bytes, key_record.size + payload.size + CBN__PACK_ENTRY_MIN_BYTES)) {
        ret_bytes->failed = true;
        return;
    }
    cbn__record_put(ret_bytes, TAG_SEAL, (struct cbn__blob){zeros, CBN__HASH_BYTES});
    cbn__record_put_u32(ret_bytes, TAG_FORMAT, CBN__PACK_ENTRY_FORMAT);
    cbn__record_put(ret_bytes, TAG_KEY_RECORD, key_record);
    cbn__record_put(ret_bytes, TAG_FACTS, cbn__buf_blob(&fact_record));
    cbn__record_put(ret_bytes, TAG_PAD, (struct cbn__blob){zeros, pad_at(ret_bytes->size)});
    cbn__record_put(ret_bytes, TAG_PAYLOAD, payload);
    if (ret_bytes->failed)
        return;
    struct cbn__hash seal = seal_of(cbn__buf_blob(ret_bytes));
    memcpy(ret_bytes->data + SEAL_OFFSET, seal.bytes, sizeof(seal.bytes));
}

static bool decode_facts(struct cbn__blob record, struct cbn__entry_facts *facts)
{
    *facts = (struct cbn__entry_facts){0};
    bool whole = cbn__record_find_u32(record, FACT_COMPILER, &facts->compiler_version) &&
                 cbn__record_find_u32(record, FACT_REGISTERS, &facts->registers) &&
                 cbn__record_find_u32(record, FACT_SHARED, &facts->shared_bytes) &&
                 cbn__record_find_u32(record, FACT_SPILL, &facts->spill_bytes);
    CBN__BUF_AUTO again = CBN__BUF_INIT;
    encode_facts(facts, &again);
    return whole && facts->compiler_version / 1000 < MAJOR_BOUND && cbn__blob_equal(record, cbn__buf_blob(&again));
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

static bool pad_is_right(struct cbn__blob value, struct cbn__blob pad)
{
    const uint8_t *bytes = pad.data;
    size_t field_at = (size_t)(bytes - (const uint8_t *)value.data) - FIELD_HEAD_BYTES;
    uint8_t any = 0;
    for (size_t i = 0; i < pad.size; i++)
        any |= bytes[i];
    return any == 0 && pad.size == pad_at(field_at);
}

static const char *verify(struct cbn__blob value, const struct cbn__blob fields[TAG_END])
{
    if (fields[TAG_SEAL].size != CBN__HASH_BYTES)
        return "it holds no seal";
    struct cbn__hash seal = seal_of(value);
    if (memcmp(fields[TAG_SEAL].data, seal.bytes, sizeof(seal.bytes)) != 0)
        return "the seal does not match";
    if (fields[TAG_FORMAT].size != 4 || cbn__load_u32(fields[TAG_FORMAT].data) != CBN__PACK_ENTRY_FORMAT)
        return "the entry is of another format version";
    if (!sizes_are_taken(fields[TAG_KEY_RECORD], fields[TAG_PAYLOAD]))
        return "the key record or the payload is of no size that is taken";
    return pad_is_right(value, fields[TAG_PAD]) ? NULL : "the padding is not what follows from the rest";
}

const char *cbn__pack_entry_decode(struct cbn__entry *entry, struct cbn__store_key *ret_key)
{
    struct cbn__blob fields[TAG_END] = {{NULL, 0}};
    struct cbn__blob value = cbn__buf_blob(&entry->bytes);
    *ret_key = (struct cbn__store_key){{0}};
    bool whole = split(value, fields);
    entry->key_record = fields[TAG_KEY_RECORD];
    entry->log = (struct cbn__blob){NULL, 0};
    entry->payload = fields[TAG_PAYLOAD];
    bool facts_whole = decode_facts(fields[TAG_FACTS], &entry->facts);
    if (!whole)
        return "the record is malformed";
    const char *problem = verify(value, fields);
    if (problem)
        return problem;
    if (!facts_whole)
        return "the facts are malformed";
    if ((uintptr_t)entry->payload.data % CBN__PAYLOAD_ALIGNMENT)
        return "the payload is not aligned";
    struct cbn__hash hash = cbn__hash_blob(entry->key_record);
    entry->major = entry->facts.compiler_version / 1000;
    *ret_key = cbn__entry_key(&hash, entry->major);
    return NULL;
}
