/*
 * Tagged, length-prefixed fields.
 */
#include "base/record.h"

#include <string.h>

#define FIELD_HEAD_BYTES 6u

uint32_t cbn__load_u32(const void *bytes)
{
    uint8_t b[4];
    memcpy(b, bytes, sizeof(b));
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

uint64_t cbn__load_u64(const void *bytes)
{
    return (uint64_t)cbn__load_u32(bytes) | (uint64_t)cbn__load_u32((const uint8_t *)bytes + 4) << 32;
}

void cbn__store_u32(void *bytes, uint32_t value)
{
    uint8_t b[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};
    memcpy(bytes, b, sizeof(b));
}

void cbn__store_u64(void *bytes, uint64_t value)
{
    cbn__store_u32(bytes, (uint32_t)value);
    cbn__store_u32((uint8_t *)bytes + 4, (uint32_t)(value >> 32));
}

void cbn__record_put(struct cbn__buf *record, uint16_t tag, struct cbn__blob bytes)
{
    uint8_t head[FIELD_HEAD_BYTES] = {(uint8_t)tag, (uint8_t)(tag >> 8)};
    if (bytes.size > UINT32_MAX) {
        record->failed = true;
        return;
    }
    cbn__store_u32(head + 2, (uint32_t)bytes.size);
    cbn__buf_append(record, head, sizeof(head));
    cbn__buf_append(record, bytes.data, bytes.size);
}

void cbn__record_put_u32(struct cbn__buf *record, uint16_t tag, uint32_t value)
{
    uint8_t bytes[4];
    cbn__store_u32(bytes, value);
    cbn__record_put(record, tag, (struct cbn__blob){bytes, sizeof(bytes)});
}

void cbn__record_put_u64(struct cbn__buf *record, uint16_t tag, uint64_t value)
{
    uint8_t bytes[8];
    cbn__store_u64(bytes, value);
    cbn__record_put(record, tag, (struct cbn__blob){bytes, sizeof(bytes)});
}

void cbn__record_put_text(struct cbn__buf *record, uint16_t tag, const char *text)
{
    cbn__record_put(record, tag, cbn__blob_text(text));
}

bool cbn__record_next(struct cbn__blob record, size_t *offset, struct cbn__record_field *ret_field,
                      bool *ret_malformed)
{
    *ret_malformed = false;
    if (*offset == record.size)
        return false;
    const uint8_t *bytes = record.data;
    if (*offset > record.size || record.size - *offset < FIELD_HEAD_BYTES) {
        *ret_malformed = true;
        return false;
    }
    const uint8_t *head = bytes + *offset;
    size_t length = cbn__load_u32(head + 2);
    if (record.size - *offset - FIELD_HEAD_BYTES < length) {
        *ret_malformed = true;
        return false;
    }
    ret_field->tag = (uint16_t)(head[0] | head[1] << 8);
    ret_field->bytes = (struct cbn__blob){head + FIELD_HEAD_BYTES, length};
    *offset += FIELD_HEAD_BYTES + length;
    return true;
}

bool cbn__record_well_formed(struct cbn__blob record)
{
    size_t offset = 0;
    uint16_t last_tag = 0;
    struct cbn__record_field field;
    bool malformed = false;
    while (cbn__record_next(record, &offset, &field, &malformed)) {
        if (field.tag < last_tag)
            return false;
        last_tag = field.tag;
    }
    return !malformed;
}

bool cbn__record_find(struct cbn__blob record, uint16_t tag, struct cbn__blob *ret_bytes)
{
    size_t offset = 0;
    struct cbn__record_field field;
    bool malformed = false;
    while (cbn__record_next(record, &offset, &field, &malformed)) {
        if (field.tag == tag) {
            *ret_bytes = field.bytes;
            return true;
        }
    }
    return false;
}

bool cbn__record_find_u32(struct cbn__blob record, uint16_t tag, uint32_t *ret_value)
{
    struct cbn__blob bytes;
    if (!cbn__record_find(record, tag, &bytes) || bytes.size != 4)
        return false;
    *ret_value = cbn__load_u32(bytes.data);
    return true;
}

bool cbn__record_find_u64(struct cbn__blob record, uint16_t tag, uint64_t *ret_value)
{
    struct cbn__blob bytes;
    if (!cbn__record_find(record, tag, &bytes) || bytes.size != 8)
        return false;
    *ret_value = cbn__load_u64(bytes.data);
    return true;
}
