/*
 * Records of tagged, length-prefixed fields: the grammar of key records and of entries (cache/FORMAT.md).
 *
 *   record = *field        field = tag:u16le length:u32le bytes
 *
 * Fields stand in strictly ascending order of tag, so that a record has one encoding; a tag may repeat only where
 * the reader asks for it with cbn__record_next.
 */
#ifndef CBN_BASE_RECORD_H
#define CBN_BASE_RECORD_H

#include "base/buf.h"

void cbn__record_put(struct cbn__buf *record, uint16_t tag, struct cbn__blob bytes);
void cbn__record_put_u32(struct cbn__buf *record, uint16_t tag, uint32_t value);
void cbn__record_put_u64(struct cbn__buf *record, uint16_t tag, uint64_t value);
void cbn__record_put_text(struct cbn__buf *record, uint16_t tag, const char *text);

struct cbn__record_field {
    uint16_t tag;
    struct cbn__blob bytes;
};

/* Moves *offset over one field. false at the end, and at a field that does not fit (then *ret_malformed is true). */
bool cbn__record_next(struct cbn__blob record, size_t *offset, struct cbn__record_field *ret_field,
                      bool *ret_malformed);
/* true when every byte belongs to a field and tags never descend. */
bool cbn__record_well_formed(struct cbn__blob record);
/* The first field of that tag; false when absent. */
bool cbn__record_find(struct cbn__blob record, uint16_t tag, struct cbn__blob *ret_bytes);
bool cbn__record_find_u32(struct cbn__blob record, uint16_t tag, uint32_t *ret_value);
bool cbn__record_find_u64(struct cbn__blob record, uint16_t tag, uint64_t *ret_value);

/* Little-endian integers at any address. */
uint32_t cbn__load_u32(const void *bytes);
uint64_t cbn__load_u64(const void *bytes);
void cbn__store_u32(void *bytes, uint32_t value);
void cbn__store_u64(void *bytes, uint64_t value);

#endif
