/*
 * Writing a pack, front to back. See pack.h.
 */
#include "cache/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/record.h"

#define PENDING_BYTES ((size_t)1 << 20) /* written at once */
#define WRITEBACK_BYTES ((uint64_t)8 << 20)

/* Written whole, also to a pipe that its owner made non-blocking. 0, or errno. */
static int write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            (void)poll(&ready, 1, -1);
            continue;
        }
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return errno;
        bytes += written;
        size -= (size_t)written;
    }
    return 0;
}

static bool passes_limit(const struct cbn__pack_writer *writer)
{
    struct rlimit limit;
    return writer->limited && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           writer->offset > limit.rlim_cur;
}

/* So that the disk works meanwhile: all at the end would take as long again. */
static void start_writeback(struct cbn__pack_writer *writer, uint64_t written)
{
    if (!writer->limited || written - writer->synced < WRITEBACK_BYTES)
        return;
    (void)sync_file_range(writer->fd, (off_t)writer->synced, (off_t)(written - writer->synced), SYNC_FILE_RANGE_WRITE);
    writer->synced = written;
}

static int32_t flush(struct cbn__pack_writer *writer, struct cbn_error *err)
{
    struct cbn__buf *pending = &writer->pending[writer->current];
    if (pending->failed || writer->index.failed)
        return cbn__error_no_memory(err);
    cbn__hasher_add(&writer->hasher, cbn__buf_blob(pending)); /* the other one is free from here on */
    int code = passes_limit(writer) ? EFBIG : write_all(writer->fd, pending->data, pending->size);
    writer->current = !writer->current;
    writer->pending[writer->current].size = 0;
    start_writeback(writer, writer->offset);
    return code ? cbn__error_os(err, CBN_STATUS_IO, code, "cannot write the pack") : CBN_STATUS_OK;
}

/* Bytes of the pack: they count, and go out in large writes. */
static int32_t take(struct cbn__pack_writer *writer, struct cbn__blob bytes, struct cbn_error *err)
{
    struct cbn__buf *pending = &writer->pending[writer->current];
    cbn__buf_append(pending, bytes.data, bytes.size);
    writer->offset += bytes.size;
    return pending->size >= PENDING_BYTES || pending->failed ? flush(writer, err) : CBN_STATUS_OK;
}

void cbn__pack_write_begin(struct cbn__pack_writer *writer, int fd)
{
    struct stat file;
    uint8_t head[CBN__PACK_HEAD_BYTES];
    *writer = (struct cbn__pack_writer){.fd = fd};
    writer->limited = fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
    cbn__hasher_begin(&writer->hasher);
    writer->begun = true;
    cbn__pack_head(head);
    (void)take(writer, (struct cbn__blob){head, sizeof(head)}, NULL);
}

static void add_row(struct cbn__pack_writer *writer, const struct cbn__store_key *key, size_t bytes)
{
    uint8_t row[CBN__PACK_ROW_BYTES] = {0};
    memcpy(row, key->bytes, sizeof(key->bytes));
    cbn__store_u32(row + CBN__PACK_ROW_AT_BYTES, (uint32_t)bytes);
    cbn__store_u64(row + CBN__PACK_ROW_AT_OFFSET, writer->offset);
    cbn__buf_append(&writer->index, row, sizeof(row));
    writer->last = *key;
    writer->count++;
}

int32_t cbn__pack_write_entry(struct cbn__pack_writer *writer, const struct cbn__entry *entry, struct cbn_error *err)
{
    static const uint8_t zeros[CBN__PACK_ALIGNMENT];
    CBN__BUF_AUTO bytes = CBN__BUF_INIT;
    struct cbn__hash hash = cbn__hash_blob(entry->key_record);
    struct cbn__store_key key = cbn__entry_key(&hash, entry->major);
    if (writer->count == CBN__PACK_ENTRIES_MAX)
        return cbn__error_own(err, CBN_STATUS_LIMIT,
                              "a pack takes at most %llu entries: make several, by --op or --arch",
                              (unsigned long long)CBN__PACK_ENTRIES_MAX);
    if (writer->count && memcmp(key.bytes, writer->last.bytes, sizeof(key.bytes)) <= 0)
        return cbn__error_own(err, CBN_STATUS_INTERNAL, "entries of a pack out of order");
    cbn__pack_entry_encode(entry->key_record, entry->payload, &entry->facts, &bytes);
    if (bytes.failed)
        return cbn__error_no_memory(err);
    add_row(writer, &key, bytes.size);
    size_t pad = (CBN__PACK_ALIGNMENT - bytes.size % CBN__PACK_ALIGNMENT) % CBN__PACK_ALIGNMENT;
    int32_t status = take(writer, cbn__buf_blob(&bytes), err);
    return status == CBN_STATUS_OK ? take(writer, (struct cbn__blob){zeros, pad}, err) : status;
}

int32_t cbn__pack_write_end(struct cbn__pack_writer *writer, uint8_t ret_digest[CBN__SHA256_BYTES],
                            struct cbn_error *err)
{
    uint8_t head[CBN__PACK_HEAD_BYTES], tail[CBN__PACK_TAIL_BYTES];
    cbn__pack_head(head);
    cbn__store_u64(tail + CBN__PACK_TAIL_INDEX_AT, writer->offset);
    cbn__store_u64(tail + CBN__PACK_TAIL_COUNT, writer->count);
    int32_t status = take(writer, cbn__buf_blob(&writer->index), err);
    if (status == CBN_STATUS_OK)
        status = take(writer, (struct cbn__blob){tail, CBN__PACK_TAIL_SHA256}, err);
    if (status == CBN_STATUS_OK)
        status = flush(writer, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__sha256 sha = cbn__hasher_wait(&writer->hasher), content = sha;
    cbn__sha256_end(&content, tail + CBN__PACK_TAIL_SHA256);
    struct cbn__hash seal = cbn__pack_seal(head, cbn__buf_blob(&writer->index), tail);
    memcpy(tail + CBN__PACK_TAIL_SEAL, seal.bytes, sizeof(seal.bytes));
    struct cbn__blob rest = {tail + CBN__PACK_TAIL_SHA256, sizeof(tail) - CBN__PACK_TAIL_SHA256};
    cbn__sha256_add(&sha, rest);
    cbn__sha256_end(&sha, ret_digest);
    status = take(writer, rest, err);
    return status == CBN_STATUS_OK ? flush(writer, err) : status;
}

void cbn__pack_writer_done(struct cbn__pack_writer *writer)
{
    if (writer->begun)
        cbn__hasher_end(&writer->hasher);
    cbn__buf_done(&writer->pending[0]);
    cbn__buf_done(&writer->pending[1]);
    cbn__buf_done(&writer->index);
    *writer = (struct cbn__pack_writer){.fd = -1};
}
