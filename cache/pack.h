/*
 * A pack: entries in one file, sorted, with an index and a digest. Grammar and what a reader may rely on in PACK.md.
 *
 * Reading (pack.c, pack_verify.c): by pread only, so that a file that is cut under a reader is a fault that is told,
 * never a signal. A pack does not change between open and close: any thread reads it, without a lock. Writing
 * (pack_write.c): front to back, nothing is gone back to. Files and streams around it: pack_file.c.
 */
#ifndef CBN_CACHE_PACK_H
#define CBN_CACHE_PACK_H

#include "cache/hasher.h"
#include "cache/pack_entry.h"

#define CBN__PACK_VERSION 1u
#define CBN__PACK_HEAD_BYTES 16u
#define CBN__PACK_ROW_BYTES 32u
#define CBN__PACK_TAIL_BYTES 64u
#define CBN__PACK_ALIGNMENT 16u

/* Offsets in a row: key hash, major u16be, two zeros, bytes u32le, offset u64le. */
#define CBN__PACK_ROW_AT_ZEROS 18u
#define CBN__PACK_ROW_AT_BYTES 20u
#define CBN__PACK_ROW_AT_OFFSET 24u

/* Offsets in the tail. */
#define CBN__PACK_TAIL_INDEX_AT 0u
#define CBN__PACK_TAIL_COUNT 8u
#define CBN__PACK_TAIL_SHA256 16u
#define CBN__PACK_TAIL_SEAL 48u

#define CBN__PACK_ENTRIES_MAX ((uint64_t)1 << 22)

struct cbn__pack {
    int fd;
    uint64_t file_bytes;
    uint64_t index_at; /* offset, and the end of the last entry with its padding */
    uint64_t count;
    uint8_t *index; /* count rows, as they stand in the file */
    uint8_t tail[CBN__PACK_TAIL_BYTES];
};

/* One row of the index. */
struct cbn__pack_row {
    struct cbn__store_key key;
    uint64_t offset;
    uint32_t bytes; /* of the entry */
    uint32_t span;  /* up to where the next one begins */
};

/*
 * Reads and verifies head, tail and index, no entry: what was cut, or written by something else, is refused. The pack
 * owns fd from a success on. name stands in messages. OK; DAMAGED, UNSUPPORTED (another version), LIMIT (too many
 * entries), IO, NO_MEMORY.
 */
int32_t cbn__pack_open(int fd, const char *name, struct cbn__pack **ret_pack, struct cbn_error *err);
void cbn__pack_close(struct cbn__pack *pack); /* NULL is accepted */

struct cbn__pack_row cbn__pack_row(const struct cbn__pack *pack, uint64_t row);
/* The first row whose key does not sort before these bytes; count when there is none. */
uint64_t cbn__pack_seek(const struct cbn__pack *pack, struct cbn__blob key_bytes);

/*
 * Reads and verifies one entry. OK: it is the one of the row, unless *ret_problem says what is wrong with it; the
 * caller owns *ret_entry in both cases. IO, NO_MEMORY: *ret_entry is empty.
 */
int32_t cbn__pack_read(const struct cbn__pack *pack, uint64_t row, struct cbn__entry *ret_entry,
                       const char **ret_problem, struct cbn_error *err);

/*
 * Rows from first on, as many as make a chunk of a megabyte and one at least: read into chunk at once. view gives one
 * of them out of it, verified (NULL) or with what is wrong; it borrows, so nothing of it is freed. Statuses and errno
 * are for cbn__pack_read_error.
 */
int32_t cbn__pack_read_rows(const struct cbn__pack *pack, uint64_t first, struct cbn__buf *chunk, uint64_t *ret_end);
const char *cbn__pack_view(const struct cbn__pack *pack, uint64_t first, const struct cbn__buf *chunk, uint64_t row,
                           struct cbn__entry *ret_entry);
int32_t cbn__pack_read_error(const char *name, int32_t status, struct cbn_error *err);
int32_t cbn__pack_refuse(const char *name, const char *problem, struct cbn_error *err);

/* An entry's bytes under a secret that nobody else knows: see cbn__pack_verify. */
struct cbn__hash cbn__pack_mark(const struct cbn__hash *secret, struct cbn__blob entry_bytes);

/*
 * Reads the whole file: every entry verifies and the digest that the tail holds is that of what stands before it.
 * ret_digest: SHA-256 of the file. ret_marks NULL, or one hash a row under a secret, by which a later read of the row
 * is known to give the bytes that the digest was taken of. name stands in messages. OK, DAMAGED, IO, NO_MEMORY.
 */
int32_t cbn__pack_verify(const struct cbn__pack *pack, const char *name, const struct cbn__hash *secret,
                         struct cbn__hash *ret_marks, uint8_t ret_digest[CBN__SHA256_BYTES], struct cbn_error *err);

/* Writes to a descriptor, which the caller opened and closes. */
struct cbn__pack_writer {
    int fd;
    bool begun;
    bool limited; /* a file: nothing is written behind RLIMIT_FSIZE, which would be a signal */
    struct cbn__hasher hasher;
    struct cbn__buf pending[2]; /* one is filled while the other, which is written, may still be hashed */
    int current;
    uint64_t synced; /* up to here the kernel was asked to write to the disk */
    struct cbn__buf index;
    struct cbn__store_key last;
    uint64_t offset; /* of what comes next */
    uint64_t count;
};

void cbn__pack_write_begin(struct cbn__pack_writer *writer, int fd);
/* In ascending order of key, each once. OK, LIMIT, IO, NO_MEMORY. */
int32_t cbn__pack_write_entry(struct cbn__pack_writer *writer, const struct cbn__entry *entry, struct cbn_error *err);
/* Index and tail. Syncs nothing. */
int32_t cbn__pack_write_end(struct cbn__pack_writer *writer, uint8_t ret_digest[CBN__SHA256_BYTES],
                            struct cbn_error *err);
void cbn__pack_writer_done(struct cbn__pack_writer *writer);

/* The head and the tail, for who writes them and who checks them. seal: over head, index and tail before it. */
void cbn__pack_head(uint8_t ret_head[CBN__PACK_HEAD_BYTES]);
struct cbn__hash cbn__pack_seal(const uint8_t head[CBN__PACK_HEAD_BYTES], struct cbn__blob index,
                                const uint8_t tail[CBN__PACK_TAIL_BYTES]);

/* A file that comes to be whole or not at all: written beside its place, synced, renamed. */
struct cbn__pack_file {
    int fd;
    bool owned; /* opened here */
    char *path; /* NULL: a stream of the caller's, or a device: written as it is */
    char *part;
};
/* path NULL: fd is the caller's. OK, IO, INVALID, NO_MEMORY. */
int32_t cbn__pack_file_open(const char *path, int fd, struct cbn__pack_file *ret_file, struct cbn_error *err);
int32_t cbn__pack_file_commit(struct cbn__pack_file *file, struct cbn_error *err);
/* Removes what was not committed. */
void cbn__pack_file_done(struct cbn__pack_file *file);

#endif
