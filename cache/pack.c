/*
 * Reading a pack. See pack.h.
 *
 * Every byte of the file is accounted for: head and index by the tail's seal, an entry by its own with the padding
 * behind it, the places of entries by the index, which must tile the file from the head to itself.
 */
#include "cache/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/record.h"

#define MAGIC "cubinet-pack" /* then the version, u32le */
#define MAGIC_BYTES 12u
#define READ_BYTES_MAX ((size_t)1 << 30) /* a read of 2^31 or more may come short on Linux */

#define CHUNK_BYTES ((uint64_t)1 << 20)

int32_t cbn__pack_refuse(const char *name, const char *problem, struct cbn_error *err)
{
    return cbn__error_own(err, CBN_STATUS_DAMAGED, "%s is no whole pack: %s; fetch it again or pack anew", name,
                          problem);
}

int32_t cbn__pack_read_error(const char *name, int32_t status, struct cbn_error *err)
{
    if (status == CBN_STATUS_NO_MEMORY)
        return cbn__error_no_memory(err);
    if (status == CBN_STATUS_DAMAGED)
        return cbn__pack_refuse(name, "it ends too early", err);
    return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot read %s", name);
}

void cbn__pack_head(uint8_t ret_head[CBN__PACK_HEAD_BYTES])
{
    memcpy(ret_head, MAGIC, MAGIC_BYTES);
    cbn__store_u32(ret_head + MAGIC_BYTES, CBN__PACK_VERSION);
}

struct cbn__hash cbn__pack_seal(const uint8_t head[CBN__PACK_HEAD_BYTES], struct cbn__blob index,
                                const uint8_t tail[CBN__PACK_TAIL_BYTES])
{
    const struct cbn__blob parts[] = {{head, CBN__PACK_HEAD_BYTES}, index, {tail, CBN__PACK_TAIL_SEAL}};
    return cbn__hash_blobs(parts, 3);
}

struct cbn__hash cbn__pack_mark(const struct cbn__hash *secret, struct cbn__blob entry_bytes)
{
    const struct cbn__blob parts[] = {{secret->bytes, sizeof(secret->bytes)}, entry_bytes};
    return cbn__hash_blobs(parts, 2);
}

/* OK; DAMAGED: the file ends before; IO. */
static int32_t read_at(int fd, void *bytes, size_t size, uint64_t offset)
{
    uint8_t *at = bytes;
    while (size > 0) {
        ssize_t got = pread(fd, at, size < READ_BYTES_MAX ? size : READ_BYTES_MAX, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 ? CBN_STATUS_DAMAGED : CBN_STATUS_IO;
        at += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return CBN_STATUS_OK;
}

/* ---- the index ---- */

struct cbn__pack_row cbn__pack_row(const struct cbn__pack *pack, uint64_t number)
{
    const uint8_t *bytes = pack->index + number * CBN__PACK_ROW_BYTES;
    bool last = number + 1 == pack->count;
    struct cbn__pack_row row = {.offset = cbn__load_u64(bytes + CBN__PACK_ROW_AT_OFFSET),
                                .bytes = cbn__load_u32(bytes + CBN__PACK_ROW_AT_BYTES)};
    uint64_t end = last ? pack->index_at : cbn__load_u64(bytes + CBN__PACK_ROW_BYTES + CBN__PACK_ROW_AT_OFFSET);
    memcpy(row.key.bytes, bytes, sizeof(row.key.bytes));
    row.span = (uint32_t)(end - row.offset);
    return row;
}

uint64_t cbn__pack_seek(const struct cbn__pack *pack, struct cbn__blob key_bytes)
{
    uint64_t low = 0, high = pack->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (memcmp(pack->index + middle * CBN__PACK_ROW_BYTES, key_bytes.data, key_bytes.size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Keys ascend, and the entries stand side by side from the head to the index. */
static bool index_is_right(const struct cbn__pack *pack)
{
    uint64_t expected = CBN__PACK_HEAD_BYTES;
    for (uint64_t i = 0; i < pack->count; i++) {
        const uint8_t *row = pack->index + i * CBN__PACK_ROW_BYTES;
        uint64_t bytes = cbn__load_u32(row + CBN__PACK_ROW_AT_BYTES);
        if (cbn__load_u64(row + CBN__PACK_ROW_AT_OFFSET) != expected || row[CBN__PACK_ROW_AT_ZEROS] ||
            row[CBN__PACK_ROW_AT_ZEROS + 1])
            return false;
        if (bytes < CBN__PACK_ENTRY_MIN_BYTES || bytes > CBN__PACK_ENTRY_MAX_BYTES)
            return false;
        if (i > 0 && memcmp(row - CBN__PACK_ROW_BYTES, row, CBN__STORE_KEY_BYTES) >= 0)
            return false;
        expected += (bytes + CBN__PACK_ALIGNMENT - 1) / CBN__PACK_ALIGNMENT * CBN__PACK_ALIGNMENT;
        if (expected > pack->index_at)
            return false;
    }
    return expected == pack->index_at;
}

/* ---- opening ---- */

static int32_t check_head(const uint8_t head[CBN__PACK_HEAD_BYTES], const char *name, struct cbn_error *err)
{
    if (memcmp(head, MAGIC, MAGIC_BYTES) != 0)
        return cbn__error_own(err, CBN_STATUS_DAMAGED,
                              "%s is no pack: it does not begin as one; name a file that pack "
                              "wrote",
                              name);
    uint32_t version = cbn__load_u32(head + MAGIC_BYTES);
    if (version != CBN__PACK_VERSION)
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                              "%s is a pack of format %u; this library reads format %u: pack it with a release of the "
                              "same format",
                              name, version, CBN__PACK_VERSION);
    return CBN_STATUS_OK;
}

/* The file's size says where the tail is, the tail where the index begins; both must agree. */
static int32_t check_extents(struct cbn__pack *pack, const char *name, struct cbn_error *err)
{
    const uint64_t fixed = CBN__PACK_HEAD_BYTES + CBN__PACK_TAIL_BYTES;
    pack->index_at = cbn__load_u64(pack->tail + CBN__PACK_TAIL_INDEX_AT);
    pack->count = cbn__load_u64(pack->tail + CBN__PACK_TAIL_COUNT);
    if (pack->count > (pack->file_bytes - fixed) / CBN__PACK_ROW_BYTES ||
        pack->index_at != pack->file_bytes - CBN__PACK_TAIL_BYTES - pack->count * CBN__PACK_ROW_BYTES)
        return cbn__pack_refuse(name, "its end does not fit its length, so it was cut or written to", err);
    if (pack->count > CBN__PACK_ENTRIES_MAX)
        return cbn__error_own(err, CBN_STATUS_LIMIT,
                              "%s holds %llu entries; at most %llu are taken: make several packs", name,
                              (unsigned long long)pack->count, (unsigned long long)CBN__PACK_ENTRIES_MAX);
    return CBN_STATUS_OK;
}

static int32_t load_index(struct cbn__pack *pack, const uint8_t head[CBN__PACK_HEAD_BYTES], const char *name,
                          struct cbn_error *err)
{
    size_t size = (size_t)pack->count * CBN__PACK_ROW_BYTES;
    pack->index = malloc(size ? size : 1);
    if (!pack->index)
        return cbn__error_no_memory(err);
    int32_t status = read_at(pack->fd, pack->index, size, pack->index_at);
    if (status != CBN_STATUS_OK)
        return cbn__pack_read_error(name, status, err);
    struct cbn__hash seal = cbn__pack_seal(head, (struct cbn__blob){pack->index, size}, pack->tail);
    if (memcmp(seal.bytes, pack->tail + CBN__PACK_TAIL_SEAL, sizeof(seal.bytes)) != 0)
        return cbn__pack_refuse(name, "its seal does not match, so it was written to", err);
    return index_is_right(pack) ? CBN_STATUS_OK : cbn__pack_refuse(name, "its index is malformed", err);
}

static int32_t load(struct cbn__pack *pack, const char *name, struct cbn_error *err)
{
    uint8_t head[CBN__PACK_HEAD_BYTES];
    struct stat file;
    if (fstat(pack->fd, &file) != 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot look at %s", name);
    if (!S_ISREG(file.st_mode))
        return cbn__error_own(err, CBN_STATUS_IO, "%s is no regular file", name);
    pack->file_bytes = (uint64_t)file.st_size;
    int32_t status = read_at(pack->fd, head, sizeof(head), 0);
    if (status != CBN_STATUS_OK)
        return cbn__pack_read_error(name, status, err);
    status = check_head(head, name, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (pack->file_bytes < CBN__PACK_HEAD_BYTES + CBN__PACK_TAIL_BYTES)
        return cbn__pack_refuse(name, "it ends too early", err);
    status = read_at(pack->fd, pack->tail, sizeof(pack->tail), pack->file_bytes - CBN__PACK_TAIL_BYTES);
    if (status != CBN_STATUS_OK)
        return cbn__pack_read_error(name, status, err);
    status = check_extents(pack, name, err);
    return status == CBN_STATUS_OK ? load_index(pack, head, name, err) : status;
}

int32_t cbn__pack_open(int fd, const char *name, struct cbn__pack **ret_pack, struct cbn_error *err)
{
    struct cbn__pack *pack = calloc(1, sizeof(*pack));
    if (!pack)
        return cbn__error_no_memory(err);
    pack->fd = fd;
    int32_t status = load(pack, name, err);
    if (status != CBN_STATUS_OK) {
        free(pack->index);
        free(pack);
        return status;
    }
    *ret_pack = pack;
    return CBN_STATUS_OK;
}

void cbn__pack_close(struct cbn__pack *pack)
{
    if (!pack)
        return;
    (void)close(pack->fd);
    free(pack->index);
    free(pack);
}

/* ---- entries ---- */

/* A row's bytes with the padding behind them. */
static int32_t read_row(const struct cbn__pack *pack, const struct cbn__pack_row *row, struct cbn__buf *bytes)
{
    bytes->size = 0;
    if (!cbn__buf_reserve(bytes, row->span))
        return CBN_STATUS_NO_MEMORY;
    int32_t status = read_at(pack->fd, bytes->data, row->span, row->offset);
    if (status == CBN_STATUS_OK)
        bytes->size = row->span;
    return status;
}

/* Bytes that were read for the row: the entry, and zeros behind it. */
static const char *judge(const struct cbn__pack_row *row, struct cbn__entry *entry)
{
    struct cbn__store_key key;
    uint8_t pad = 0;
    for (size_t i = row->bytes; i < row->span; i++)
        pad |= entry->bytes.data[i];
    entry->bytes.size = row->bytes;
    const char *problem = cbn__pack_entry_decode(entry, &key);
    if (problem)
        return problem;
    if (memcmp(key.bytes, row->key.bytes, sizeof(key.bytes)) != 0)
        return "it is not the entry of its key";
    return pad ? "the padding behind it is not zero" : NULL;
}

int32_t cbn__pack_read_rows(const struct cbn__pack *pack, uint64_t first, struct cbn__buf *chunk, uint64_t *ret_end)
{
    struct cbn__pack_row row = cbn__pack_row(pack, first);
    const uint64_t begin = row.offset;
    uint64_t end = first;
    size_t size = 0;
    do {
        size = (size_t)(row.offset + row.span - begin);
        if (++end < pack->count)
            row = cbn__pack_row(pack, end);
    } while (end < pack->count && row.offset + row.span - begin <= CHUNK_BYTES);
    *ret_end = end;
    chunk->size = 0;
    if (!cbn__buf_reserve(chunk, size))
        return CBN_STATUS_NO_MEMORY;
    int32_t status = read_at(pack->fd, chunk->data, size, begin);
    if (status == CBN_STATUS_OK)
        chunk->size = size;
    return status;
}

const char *cbn__pack_view(const struct cbn__pack *pack, uint64_t first, const struct cbn__buf *chunk, uint64_t number,
                           struct cbn__entry *ret_entry)
{
    struct cbn__pack_row row = cbn__pack_row(pack, number);
    *ret_entry = (struct cbn__entry){
        .bytes = {.data = chunk->data + (row.offset - cbn__pack_row(pack, first).offset), .size = row.span}};
    return judge(&row, ret_entry);
}

int32_t cbn__pack_read(const struct cbn__pack *pack, uint64_t number, struct cbn__entry *ret_entry,
                       const char **ret_problem, struct cbn_error *err)
{
    struct cbn__pack_row row = cbn__pack_row(pack, number);
    struct cbn__entry entry = {.bytes = CBN__BUF_INIT, .major = cbn__entry_key_major(&row.key)};
    int32_t status = read_row(pack, &row, &entry.bytes);
    int code = errno;
    *ret_problem = NULL;
    if (status == CBN_STATUS_OK)
        *ret_problem = judge(&row, &entry);
    else if (status == CBN_STATUS_DAMAGED)
        *ret_problem = "the file ends before it does";
    if (status == CBN_STATUS_OK || status == CBN_STATUS_DAMAGED) {
        entry.major = cbn__entry_key_major(&row.key);
        *ret_entry = entry;
        return CBN_STATUS_OK;
    }
    cbn__entry_done(&entry);
    *ret_entry = entry;
    if (status == CBN_STATUS_NO_MEMORY)
        return cbn__error_no_memory(err);
    return cbn__error_os(err, CBN_STATUS_IO, code, "cannot read the pack");
}
