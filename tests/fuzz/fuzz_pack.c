/*
 * Any bytes as a pack, and as one entry as it travels: refused or taken whole. What is taken has one encoding: written
 * again it is the same, byte for byte. Tried as they are and with every seal and the digest made right.
 */
#include <string.h>
#include <unistd.h>

#include "base/record.h"
#include "cache/pack.h"
#include "memory_file.h"

#define SEAL_AT 6u /* PACK.md: an entry's seal comes first */
#define SEAL_END 22u
#define WRITTEN_MOST ((size_t)1 << 20)

static bool same(struct cbn__blob a, struct cbn__blob b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
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

/* ---- one entry ---- */

static void check_entry(const struct cbn__entry *entry, const struct cbn__store_key *key)
{
    CBN__BUF_AUTO again = CBN__BUF_INIT;
    struct cbn__hash hash = cbn__hash_blob(entry->key_record);
    struct cbn__store_key own = cbn__entry_key(&hash, entry->facts.compiler_version / 1000);
    FUZZ_CHECK(memcmp(own.bytes, key->bytes, sizeof(own.bytes)) == 0);
    FUZZ_CHECK((uintptr_t)entry->payload.data % CBN__PAYLOAD_ALIGNMENT == 0);
    FUZZ_CHECK(entry->facts.compile_ms == 0 && entry->facts.created_s == 0 && entry->log.size == 0);
    cbn__pack_entry_encode(entry->key_record, entry->payload, &entry->facts, &again);
    FUZZ_CHECK(!again.failed && same(cbn__buf_blob(&again), cbn__buf_blob(&entry->bytes)));
}

static void try_entry(const uint8_t *bytes, size_t size)
{
    struct cbn__entry entry = {.bytes = CBN__BUF_INIT};
    struct cbn__store_key key;
    FUZZ_CHECK(cbn__buf_reserve(&entry.bytes, size + 1));
    cbn__buf_append(&entry.bytes, bytes, size);
    const char *problem = cbn__pack_entry_decode(&entry, &key);
    fuzz_sink = (uint8_t)(sum_bytes(entry.key_record) + sum_bytes(entry.log) + sum_bytes(entry.payload));
    if (!problem)
        check_entry(&entry, &key);
    cbn__entry_done(&entry);
}

static void seal_entry(uint8_t *bytes, size_t size)
{
    if (size < SEAL_END)
        return;
    const struct cbn__blob parts[] = {{bytes, SEAL_AT}, {bytes + SEAL_END, size - SEAL_END}};
    struct cbn__hash hash = cbn__hash_blobs(parts, 2);
    memcpy(bytes + SEAL_AT, hash.bytes, sizeof(hash.bytes));
}

/* ---- a file ---- */

/* The same entries written anew: the same file. */
static void check_pack(const struct cbn__pack *pack, const uint8_t *bytes, size_t size)
{
    struct cbn__pack_writer writer;
    uint8_t digest[CBN__SHA256_BYTES], again[WRITTEN_MOST];
    struct memory_file file = memory_file_make((const uint8_t *)"", 0);
    cbn__pack_write_begin(&writer, file.fd);
    for (uint64_t row = 0; row < pack->count; row++) {
        struct cbn__entry entry;
        const char *problem = NULL;
        FUZZ_CHECK(cbn__pack_read(pack, row, &entry, &problem, NULL) == CBN_STATUS_OK && !problem);
        FUZZ_CHECK(cbn__pack_write_entry(&writer, &entry, NULL) == CBN_STATUS_OK);
        cbn__entry_done(&entry);
    }
    FUZZ_CHECK(cbn__pack_write_end(&writer, digest, NULL) == CBN_STATUS_OK);
    FUZZ_CHECK(size <= sizeof(again) && pread(file.fd, again, sizeof(again), 0) == (ssize_t)size);
    FUZZ_CHECK(memcmp(again, bytes, size) == 0);
    cbn__pack_writer_done(&writer);
    memory_file_done(&file);
}

static void read_rows(const struct cbn__pack *pack)
{
    for (uint64_t row = 0; row < pack->count; row++) {
        struct cbn__entry entry;
        const char *problem = NULL;
        struct cbn__store_key key = cbn__pack_row(pack, row).key;
        FUZZ_CHECK(cbn__pack_seek(pack, (struct cbn__blob){key.bytes, sizeof(key.bytes)}) == row);
        FUZZ_CHECK(cbn__pack_read(pack, row, &entry, &problem, NULL) == CBN_STATUS_OK);
        fuzz_sink = (uint8_t)(sum_bytes(entry.key_record) + sum_bytes(entry.payload));
        if (!problem)
            check_entry(&entry, &key);
        cbn__entry_done(&entry);
    }
}

static void try_pack(const uint8_t *bytes, size_t size)
{
    struct memory_file file = memory_file_make(bytes, size);
    struct cbn__pack *pack = NULL;
    struct cbn_error err = {0};
    uint8_t digest[CBN__SHA256_BYTES];
    int32_t status = cbn__pack_open(file.fd, "the input", &pack, &err);
    FUZZ_CHECK(status == CBN_STATUS_OK || (err.status == status && err.message[0]));
    FUZZ_CHECK(status == CBN_STATUS_OK || status == CBN_STATUS_DAMAGED || status == CBN_STATUS_UNSUPPORTED);
    if (status != CBN_STATUS_OK) {
        memory_file_done(&file);
        return;
    }
    read_rows(pack);
    status = cbn__pack_verify(pack, "the input", NULL, NULL, digest, &err);
    FUZZ_CHECK(status == CBN_STATUS_OK || status == CBN_STATUS_DAMAGED);
    if (status == CBN_STATUS_OK)
        check_pack(pack, bytes, size);
    cbn__pack_close(pack); /* and the descriptor */
}

/* Makes right what follows from other bytes, as far as the index leads. */
static void seal_pack(uint8_t *bytes, size_t size)
{
    if (size < CBN__PACK_HEAD_BYTES + CBN__PACK_TAIL_BYTES)
        return;
    uint8_t *tail = bytes + size - CBN__PACK_TAIL_BYTES;
    uint64_t index_at = cbn__load_u64(tail), rows = 0;
    if (index_at < CBN__PACK_HEAD_BYTES || index_at > size - CBN__PACK_TAIL_BYTES)
        return;
    rows = (size - CBN__PACK_TAIL_BYTES - index_at) / CBN__PACK_ROW_BYTES;
    for (uint64_t row = 0; row < rows; row++) {
        const uint8_t *at = bytes + index_at + row * CBN__PACK_ROW_BYTES;
        uint64_t offset = cbn__load_u64(at + CBN__PACK_ROW_AT_OFFSET),
                 length = cbn__load_u32(at + CBN__PACK_ROW_AT_BYTES);
        if (offset < index_at && length <= index_at - offset)
            seal_entry(bytes + offset, (size_t)length);
    }
    struct cbn__sha256 sha;
    cbn__sha256_begin(&sha);
    cbn__sha256_add(&sha, (struct cbn__blob){bytes, size - CBN__PACK_TAIL_BYTES + CBN__PACK_TAIL_SHA256});
    cbn__sha256_end(&sha, tail + CBN__PACK_TAIL_SHA256);
    struct cbn__blob index = {bytes + index_at, size - CBN__PACK_TAIL_BYTES - index_at};
    struct cbn__hash seal = cbn__pack_seal(bytes, index, tail);
    memcpy(tail + CBN__PACK_TAIL_SEAL, seal.bytes, sizeof(seal.bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > WRITTEN_MOST)
        return -1;
    uint8_t *copy = malloc(size + 1);
    FUZZ_CHECK(copy != NULL);
    try_entry(data, size);
    try_pack(data, size);
    memcpy(copy, data, size);
    seal_entry(copy, size);
    try_entry(copy, size);
    memcpy(copy, data, size);
    seal_pack(copy, size);
    try_pack(copy, size);
    free(copy);
    return 0;
}
