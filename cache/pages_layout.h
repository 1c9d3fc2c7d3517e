/*
 * Where things stand on a page of an LMDB 0.9 file, and reading them with bounds. For pages.c and salvage.c.
 *
 * Outside contract: struct MDB_page, MDB_meta, MDB_db and MDB_node in mdb.c, 64-bit little-endian.
 */
#ifndef CBN_CACHE_PAGES_LAYOUT_H
#define CBN_CACHE_PAGES_LAYOUT_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "cache/pages.h"

#define META_MAGIC 0xBEEFC0DEu
#define META_VERSION 1u
#define META_BYTES 152u /* the page header and struct MDB_meta, as far as it is read */
#define META_AT_MAGIC 16u
#define META_AT_VERSION 20u
#define META_AT_FREE_DB 40u
#define META_AT_MAIN_DB 88u
#define META_AT_LAST_PAGE 136u
#define META_AT_TRANSACTION 144u

#define DB_BYTES 48u
#define DB_AT_FLAGS 4u
#define DB_AT_DEPTH 6u
#define DB_AT_ENTRIES 32u
#define DB_AT_ROOT 40u

#define PAGE_HEAD_BYTES 16u
#define PAGE_AT_FLAGS 10u
#define PAGE_AT_LOWER 12u
#define PAGE_AT_UPPER 14u
#define PAGE_AT_RUN 12u
#define PAGE_BRANCH 1u
#define PAGE_LEAF 2u
#define PAGE_OVERFLOW 4u
#define PAGE_META 8u

#define NODE_HEAD_BYTES 8u
#define NODE_BIG 1u
#define NODE_TABLE 2u
#define NODE_KNOWN (NODE_BIG | NODE_TABLE) /* no table of ours holds duplicates */

#define DEPTH_MAX 32u /* LMDB's CURSOR_STACK */
#define PAGE_BYTES_MIN 512u
#define PAGE_BYTES_MAX 65536u
#define NO_ROOT UINT64_MAX
#define FIRST_DATA_PAGE 2u

/* Inline, unlike those of base/record.h: a walk over a large file reads half a million of them. */
static inline uint32_t cbn__pages_u16(const uint8_t *bytes)
{
    uint16_t value;
    memcpy(&value, bytes, sizeof(value));
    return le16toh(value);
}

static inline uint32_t cbn__pages_u32(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof(value));
    return le32toh(value);
}

static inline uint64_t cbn__pages_u64(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof(value));
    return le64toh(value);
}

static inline uint64_t cbn__pages_be64(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof(value));
    return be64toh(value);
}

/* In a map, pages lie at multiples of their size; those larger than the system's need not. */
static inline bool cbn__pages_are_aligned(uint32_t page_bytes)
{
    return page_bytes <= (uint64_t)sysconf(_SC_PAGESIZE);
}

/* All of size bytes, or false. */
bool cbn__pages_read_at(int fd, void *bytes, size_t size, uint64_t offset);
/* One meta page, META_BYTES of it. file_bytes is left as it is. NULL, or what is wrong. */
const char *cbn__pages_parse_meta(const uint8_t *bytes, struct cbn__pages_meta *meta);

#endif
