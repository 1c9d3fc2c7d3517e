/*
 * pack_bench: what packing, unpacking and a pack in place cost on the host, as JSON, beside a plain copy of the same
 * bytes with fsync. A folder is filled with made-up entries of cubin-like sizes first.
 *
 * The public interface stores nothing that was not built, so everything goes through the cabinet itself
 * (tools/dev/layers allows it to this file).
 */
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cache/cabinet.h"
#include "cache/merge.h"
#include "cache/pack.h"
#include "cache/unpack.h"
#include "entries.h"

#define CHUNK_BYTES ((size_t)1 << 20)
#define READS 5000u

static const char help[] =
    "pack_bench [--entries N] [--cache DIR]\n"
    "\n"
    "  --entries N    stored in a fresh folder (default 25000: about 1 GB, and four times that on the disk)\n"
    "  --cache DIR    makes its folder there and removes it afterwards (default: $TMPDIR or /tmp)\n";

static void fail(const char *what, const struct cbn_error *err)
{
    fprintf(stderr, "pack_bench: %s: %s\n", what, err ? err->message : "failed");
    exit(1);
}

static const char *in(const char *folder, const char *name)
{
    static char paths[4][4200];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static struct cbn__cabinet *open_cabinet(const char *overlay, const char *base, uint64_t entries)
{
    struct cbn__cabinet_options options = {.overlay_path = overlay,
                                           .base_paths = &base,
                                           .base_count = base ? 1 : 0,
                                           .lock_timeout_ms = 10000,
                                           .max_bytes = entries * 100000u + (1u << 24)};
    struct cbn__cabinet *cabinet = NULL;
    struct cbn_error err = {0};
    if (cbn__cabinet_open(&options, &cabinet, &err) != CBN_STATUS_OK)
        fail("open", &err);
    return cabinet;
}

static void fill(const char *folder, uint64_t entries)
{
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL, entries);
    struct cbn_error err = {0};
    if (entries_fill(cabinet, entries, entries_size, &err) != CBN_STATUS_OK)
        fail("put", &err);
    cbn__cabinet_close(cabinet);
    sync(); /* what the others write must not wait for this */
}

static void print_rate(const char *name, uint64_t begun_ns, uint64_t bytes)
{
    double seconds = (double)(cbn__clock_monotonic_ns() - begun_ns) / 1e9;
    printf("  \"%s\": {\"seconds\": %.3f, \"mb_per_s\": %.0f},\n", name, seconds, (double)bytes / 1e6 / seconds);
}

static int32_t write_entry(void *user, const struct cbn__hash *key, const struct cbn__entry *entry,
                           struct cbn_error *err)
{
    (void)key;
    return cbn__pack_write_entry(user, entry, err);
}

/* Synced and in its place, as cbn_cabinet_pack leaves it. */
static uint64_t measure_pack(const char *folder, const char *pack, uint64_t entries)
{
    struct cbn__pack_writer writer;
    struct cbn__pack_file file;
    struct cbn_error err = {0};
    uint64_t damaged = 0;
    uint8_t digest[CBN__SHA256_BYTES];
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL, entries);
    uint64_t begun_ns = cbn__clock_monotonic_ns();
    int32_t status = cbn__pack_file_open(pack, -1, &file, &err);
    if (status == CBN_STATUS_OK) {
        cbn__pack_write_begin(&writer, file.fd);
        status = cbn__cabinet_merge(cabinet, NULL, 0, write_entry, &writer, &damaged, &err);
    }
    if (status == CBN_STATUS_OK)
        status = cbn__pack_write_end(&writer, digest, &err);
    if (status == CBN_STATUS_OK)
        status = cbn__pack_file_commit(&file, &err);
    if (status != CBN_STATUS_OK || damaged || writer.count != entries)
        fail("pack", &err);
    print_rate("pack", begun_ns, writer.offset);
    uint64_t bytes = writer.offset;
    cbn__pack_writer_done(&writer);
    cbn__pack_file_done(&file);
    cbn__cabinet_close(cabinet);
    return bytes;
}

static void measure_copy(const char *from, const char *to, uint64_t bytes)
{
    char *chunk = malloc(CHUNK_BYTES);
    uint64_t begun_ns = cbn__clock_monotonic_ns();
    int in_fd = open(from, O_RDONLY | O_CLOEXEC), out_fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (!chunk || in_fd < 0 || out_fd < 0)
        fail("copy", NULL);
    for (ssize_t got; (got = read(in_fd, chunk, CHUNK_BYTES)) > 0;)
        if (write(out_fd, chunk, (size_t)got) != got)
            fail("copy", NULL);
    if (fsync(out_fd) != 0)
        fail("copy", NULL);
    print_rate("copy_and_fsync", begun_ns, bytes);
    (void)close(in_fd);
    (void)close(out_fd);
    free(chunk);
}

/* The cabinet closed and synced included. */
static void measure_unpack(const char *pack, const char *folder, const char *name, uint64_t bytes, uint64_t entries)
{
    struct cbn__unpack_result result;
    struct cbn_error err = {0};
    int fd = open(pack, O_RDONLY | O_CLOEXEC);
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL, entries);
    uint64_t begun_ns = cbn__clock_monotonic_ns();
    if (fd < 0 || cbn__cabinet_unpack(cabinet, fd, pack, NULL, &result, &err) != CBN_STATUS_OK ||
        result.stored + result.already != entries)
        fail("unpack", &err);
    cbn__cabinet_close(cabinet);
    print_rate(name, begun_ns, bytes);
    (void)close(fd);
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static void measure_in_place(const char *pack, uint64_t entries)
{
    static uint64_t samples[READS];
    uint64_t state = 7, begun_ns = cbn__clock_monotonic_ns();
    struct cbn__cabinet *cabinet = open_cabinet(NULL, pack, entries);
    printf("  \"open_in_place_us\": %.0f,\n", (double)(cbn__clock_monotonic_ns() - begun_ns) / 1e3);
    for (size_t i = 0; i < READS; i++) {
        struct entry_key key = entries_key(entries_random(&state) % entries);
        struct cbn__entry entry;
        begun_ns = cbn__clock_monotonic_ns();
        if (cbn__cabinet_find(cabinet, (struct cbn__blob){key.bytes, sizeof(key.bytes)}, NULL, &entry) !=
            CBN__LOOKUP_HIT)
            fail("a look-up", NULL);
        samples[i] = cbn__clock_monotonic_ns() - begun_ns;
        cbn__entry_done(&entry);
    }
    qsort(samples, READS, sizeof(samples[0]), compare_u64);
    printf("  \"find_in_place_us\": {\"p50\": %.1f, \"p99\": %.1f},\n", (double)samples[READS / 2] / 1e3,
           (double)samples[READS * 99 / 100] / 1e3);
    cbn__cabinet_close(cabinet);
}

static int remove_path(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    return remove(path);
}

static void measure(const char *folder, uint64_t entries)
{
    const char *pack = in(folder, "p");
    char path[4200];
    (void)snprintf(path, sizeof(path), "%s", pack);
    printf("{\n  \"schema\": \"cubinet.pack-bench/1\",\n  \"entries\": %llu,\n", (unsigned long long)entries);
    fill(in(folder, "from"), entries);
    uint64_t bytes = measure_pack(in(folder, "from"), path, entries);
    measure_copy(path, in(folder, "copy"), bytes);
    measure_unpack(path, in(folder, "to"), "unpack", bytes, entries);
    measure_unpack(path, in(folder, "to"), "unpack_of_what_is_there", bytes, entries);
    measure_in_place(path, entries);
    printf("  \"bytes\": %llu\n}\n", (unsigned long long)bytes);
}

int main(int argc, char **argv)
{
    static const struct option table[] = {
        {"entries", required_argument, NULL, 'e'}, {"cache", required_argument, NULL, 'c'}, {0}};
    const char *parent = getenv("TMPDIR");
    long entries = 25000;
    bool understood = true;
    char folder[4096];
    for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        if (c == 'e')
            entries = strtol(optarg, NULL, 10);
        else if (c == 'c')
            parent = optarg;
        else
            understood = false;
    }
    if (!understood || optind != argc || entries < 1) {
        fputs(help, stderr);
        return 2;
    }
    (void)snprintf(folder, sizeof(folder), "%s/cubinet-pack-bench-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        fail("a folder cannot be made there", NULL);
    measure(folder, (uint64_t)entries);
    (void)nftw(folder, remove_path, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}
