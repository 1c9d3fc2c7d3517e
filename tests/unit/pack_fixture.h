/*
 * What the tests of packs share: packing a cabinet's entries, whole files in memory.
 */
#ifndef CBN_TEST_PACK_FIXTURE_H
#define CBN_TEST_PACK_FIXTURE_H

#include "cache_fixture.h"

#include "cache/merge.h"
#include "cache/pack.h"
#include "cache/unpack.h"

__attribute__((unused)) static int32_t write_each(void *user, const struct cbn__hash *key,
                                                  const struct cbn__entry *entry, struct cbn_error *err)
{
    (void)key;
    return cbn__pack_write_entry(user, entry, err);
}

struct packed {
    uint64_t entries, damaged;
    uint8_t digest[CBN__SHA256_BYTES];
};

/* Packs all layers, or of them the entries of these keys. */
__attribute__((unused)) static struct packed pack_keys(struct cbn__cabinet *cabinet, const struct cbn__hash *keys,
                                                       size_t count, const char *path)
{
    struct packed packed = {0};
    struct cbn__pack_file file;
    struct cbn__pack_writer writer;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__pack_file_open(path, -1, &file, &err), CBN_STATUS_OK);
    cbn__pack_write_begin(&writer, file.fd);
    int32_t status = cbn__cabinet_merge(cabinet, keys, count, write_each, &writer, &packed.damaged, &err);
    ck_assert_msg(status == CBN_STATUS_OK, "%s", err.message);
    ck_assert_int_eq(cbn__pack_write_end(&writer, packed.digest, &err), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__pack_file_commit(&file, &err), CBN_STATUS_OK);
    packed.entries = writer.count;
    cbn__pack_writer_done(&writer);
    cbn__pack_file_done(&file);
    return packed;
}

__attribute__((unused)) static struct packed pack_to(struct cbn__cabinet *cabinet, const char *path)
{
    return pack_keys(cabinet, NULL, 0, path);
}

__attribute__((unused)) static struct cbn__buf load(const char *path)
{
    struct cbn__buf bytes = CBN__BUF_INIT;
    uint8_t chunk[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s", path);
    for (ssize_t got; (got = read(fd, chunk, sizeof(chunk))) > 0;)
        cbn__buf_append(&bytes, chunk, (size_t)got);
    ck_assert(!bytes.failed);
    (void)close(fd);
    return bytes;
}

__attribute__((unused)) static void save(const char *path, const void *bytes, size_t size)
{
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    (void)close(fd);
}

/* A cabinet of no overlay, or of one, above this pack. */
__attribute__((unused)) static struct cbn__cabinet *open_above(const char *overlay, const char *pack,
                                                               struct events *events)
{
    struct cbn__cabinet_options options = options_for(overlay, events);
    struct cbn__cabinet *cabinet = NULL;
    options.base_paths = &pack;
    options.base_count = 1;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    return cabinet;
}

__attribute__((unused)) static int32_t unpack_from(struct cbn__cabinet *cabinet, const char *path,
                                                   const uint8_t *expected, struct cbn__unpack_result *ret_result,
                                                   struct cbn_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    int32_t status = cbn__cabinet_unpack(cabinet, fd, path, expected, ret_result, err);
    (void)close(fd);
    return status;
}

#endif
