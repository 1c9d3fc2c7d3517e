/*
 * Packs as operators see them: entries chosen and written, files and streams taken.
 *
 * Holds no lock.
 */
#include "api/cabinet_view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/args.h"
#include "base/descriptor.h"
#include "cache/merge.h"
#include "cache/pack.h"
#include "cache/unpack.h"

struct packing {
    struct cbn_pack_options options;
    struct cbn__hash *keys; /* ascending, each once; NULL: any */
    size_t key_count;
    size_t next_key; /* that is still to come */
    struct cbn__pack_writer writer;
    uint64_t damaged;
};

static bool passes(const char *wanted, const char *value)
{
    return !wanted || strcmp(wanted, value) == 0;
}

/* A record that is none of ours cannot be asked; where nothing is asked it is damage, as everywhere. */
static bool matches(struct packing *packing, const struct cbn__entry *entry)
{
    struct cbn_spec spec;
    char digest[CBN__HASH_TEXT_BYTES];
    uint32_t arch = 0;
    if (!cbn__key_decode(entry->key_record, &spec, digest, NULL)) {
        packing->damaged++;
        return false;
    }
    if (!passes(packing->options.op, spec.op) || !passes(packing->options.kernel, spec.kernel))
        return false;
    return !packing->options.arch ||
           (cbn_arch_parse(spec.arch, &arch, NULL) == CBN_STATUS_OK && arch == packing->options.arch);
}

static int32_t tell_absent(const struct cbn__hash *key, struct cbn_error *err)
{
    char text[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(key, text);
    return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "no layer holds a sound entry of key %s; warm it, then pack",
                          text);
}

/* Keys come in their order, each with all its majors: one that is passed over is nowhere. */
static int32_t note_key(struct packing *packing, const struct cbn__hash *key, struct cbn_error *err)
{
    if (!packing->keys || (packing->next_key > 0 && cbn__hash_equal(&packing->keys[packing->next_key - 1], key)))
        return CBN_STATUS_OK;
    const struct cbn__hash *expected = &packing->keys[packing->next_key++];
    return cbn__hash_equal(expected, key) ? CBN_STATUS_OK : tell_absent(expected, err);
}

static int32_t pack_entry(void *user, const struct cbn__hash *key, const struct cbn__entry *entry,
                          struct cbn_error *err)
{
    struct packing *packing = user;
    int32_t status = note_key(packing, key, err);
    if (status != CBN_STATUS_OK || !matches(packing, entry))
        return status;
    return cbn__pack_write_entry(&packing->writer, entry, err);
}

/* ---- keys ---- */

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct cbn__hash));
}

static int32_t parse_key(const char *text, uint32_t index, struct cbn__hash *ret_key, struct cbn_error *err)
{
    if (!text || strlen(text) != 2 * (size_t)CBN__HASH_BYTES ||
        strspn(text, "0123456789abcdefABCDEF") != 2 * (size_t)CBN__HASH_BYTES)
        return cbn__error_own(err, CBN_STATUS_INVALID, "keys[%u] '%.40s' is not 32 hex digits", index,
                              text ? text : "NULL");
    for (size_t i = 0; i < sizeof(ret_key->bytes); i++) {
        const char digits[3] = {text[2 * i], text[2 * i + 1], 0};
        ret_key->bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return CBN_STATUS_OK;
}

static int32_t take_keys(struct packing *packing, struct cbn_error *err)
{
    const uint32_t count = packing->options.key_count;
    if (!packing->options.keys)
        return count ? cbn__error_own(err, CBN_STATUS_INVALID, "keys is NULL, key_count is %u", count) : CBN_STATUS_OK;
    packing->keys = calloc((size_t)count + 1, sizeof(*packing->keys));
    if (!packing->keys)
        return cbn__error_no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        int32_t status = parse_key(packing->options.keys[i], i, &packing->keys[i], err);
        if (status != CBN_STATUS_OK)
            return status;
    }
    qsort(packing->keys, count, sizeof(*packing->keys), compare_keys);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || !cbn__hash_equal(&packing->keys[i], &packing->keys[packing->key_count - 1]))
            packing->keys[packing->key_count++] = packing->keys[i];
    return CBN_STATUS_OK;
}

/* ---- pack ---- */

static int32_t write_all(struct packing *packing, struct cbn_runtime *runtime, int fd, struct cbn_pack_result *result,
                         struct cbn_error *err)
{
    uint8_t digest[CBN__SHA256_BYTES];
    uint64_t damaged = 0;
    cbn__pack_write_begin(&packing->writer, fd);
    int32_t status =
        cbn__cabinet_merge(runtime->cabinet, packing->keys, packing->key_count, pack_entry, packing, &damaged, err);
    if (status == CBN_STATUS_OK && packing->next_key < packing->key_count)
        status = tell_absent(&packing->keys[packing->next_key], err);
    if (status == CBN_STATUS_OK && packing->writer.count == 0)
        status = cbn__error_own(err, CBN_STATUS_NOT_FOUND, "nothing was packed: no entry is selected%s",
                                damaged + packing->damaged ? ", and some are damaged; run 'cubinet verify'" : "");
    if (status == CBN_STATUS_OK)
        status = cbn__pack_write_end(&packing->writer, digest, err);
    if (status != CBN_STATUS_OK)
        return status;
    result->entries = packing->writer.count;
    result->bytes = packing->writer.offset;
    result->damaged = damaged + packing->damaged;
    cbn__sha256_format(digest, result->digest);
    return CBN_STATUS_OK;
}

static int32_t pack(struct packing *packing, struct cbn_runtime *runtime, const char *path,
                    struct cbn_pack_result *result, struct cbn_error *err)
{
    struct cbn__pack_file file;
    int32_t status = take_keys(packing, err);
    if (status != CBN_STATUS_OK)
        return status;
    status = cbn__pack_file_open(path, packing->options.fd, &file, err);
    if (status == CBN_STATUS_OK)
        status = write_all(packing, runtime, file.fd, result, err);
    if (status == CBN_STATUS_OK)
        status = cbn__pack_file_commit(&file, err);
    cbn__pack_file_done(&file);
    return status;
}

static int32_t check_target(const char *path, int32_t fd, struct cbn_error *err)
{
    if (path && path[0] == 0)
        return cbn__error_own(err, CBN_STATUS_INVALID, "path is empty");
    if ((path != NULL) == (fd >= 0))
        return cbn__error_own(err, CBN_STATUS_INVALID, "give %s of path and options->fd", path ? "one" : "either");
    return CBN_STATUS_OK;
}

int32_t cbn_cabinet_pack(struct cbn_runtime *runtime, const char *path, const struct cbn_pack_options *given,
                         struct cbn_pack_result *ret_result, struct cbn_error *err)
{
    struct packing packing = {.options = CBN_PACK_OPTIONS_INIT};
    struct cbn_pack_result result = {.size = sizeof(result)};
    if (!runtime)
        return cbn__error_own(err, CBN_STATUS_INVALID, "runtime is NULL");
    int32_t status = given ? cbn__args_take(&packing.options, sizeof(packing.options), given, "cbn_pack_options", err)
                           : CBN_STATUS_OK;
    if (status == CBN_STATUS_OK)
        status = check_target(path, packing.options.fd, err);
    if (status == CBN_STATUS_OK)
        status = pack(&packing, runtime, path, &result, err);
    cbn__pack_writer_done(&packing.writer);
    free(packing.keys);
    if (status == CBN_STATUS_OK && ret_result)
        cbn__args_give(ret_result, &result, sizeof(result));
    return status;
}

/* ---- unpack ---- */

static int open_input(const char *path)
{
    CBN__LOW_DESCRIPTORS_AUTO low = cbn__low_descriptors_hold();
    return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

static int32_t unpack(struct cbn_runtime *runtime, const char *path, int fd, const uint8_t *expected,
                      struct cbn_unpack_result *result, struct cbn_error *err)
{
    struct cbn__unpack_result taken;
    int own = path ? open_input(path) : -1;
    if (path && own < 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot open %s", path);
    int32_t status =
        cbn__cabinet_unpack(runtime->cabinet, path ? own : fd, path ? path : "the stream", expected, &taken, err);
    if (own >= 0)
        (void)close(own);
    result->entries = taken.entries;
    result->stored = taken.stored;
    result->already = taken.already;
    result->bytes = taken.bytes;
    cbn__sha256_format(taken.digest, result->digest);
    return status;
}

int32_t cbn_cabinet_unpack(struct cbn_runtime *runtime, const char *path, const struct cbn_unpack_options *given,
                           struct cbn_unpack_result *ret_result, struct cbn_error *err)
{
    struct cbn_unpack_options options = CBN_UNPACK_OPTIONS_INIT;
    struct cbn_unpack_result result = {.size = sizeof(result)};
    uint8_t expected[CBN__SHA256_BYTES];
    if (!runtime)
        return cbn__error_own(err, CBN_STATUS_INVALID, "runtime is NULL");
    int32_t status =
        given ? cbn__args_take(&options, sizeof(options), given, "cbn_unpack_options", err) : CBN_STATUS_OK;
    if (status == CBN_STATUS_OK)
        status = check_target(path, options.fd, err);
    if (status == CBN_STATUS_OK && options.expect_digest && !cbn__sha256_parse(options.expect_digest, expected))
        status = cbn__error_own(err, CBN_STATUS_INVALID, "expect_digest '%.80s' is no SHA-256 in 64 hex digits",
                                options.expect_digest);
    if (status != CBN_STATUS_OK)
        return status;
    status = unpack(runtime, path, options.fd, options.expect_digest ? expected : NULL, &result, err);
    if (status == CBN_STATUS_OK && ret_result)
        cbn__args_give(ret_result, &result, sizeof(result));
    return status;
}
