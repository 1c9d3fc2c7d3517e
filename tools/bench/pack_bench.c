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
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/record.h"
#include "cache/cabinet.h"
#include "cache/merge.h"
#include "cache/pack.h"
#include "cache/unpack.h"

#define MEDIAN_BYTES 35000.0 /* of a cubin; as store_bench has it */
#define SPREAD 0.55
#define LEAST_BYTES 4000u
#define MOST_BYTES 400000u
#define NOISE_BYTES (1u << 20)
#define CHUNK_BYTES ((size_t)1 << 20)
#define READS 5000u

static const char help[] =
    "pack_bench [--entries N] [--cache DIR]\n"
    "\n"
    "  --entries N    stored in a fresh folder (default 25000: about 1 GB, and four times that on the disk)\n"
    "  --cache DIR    makes its folder there and removes it afterwards (default: $TMPDIR or /tmp)\n";

static bool filling; /* fdatasync is left out meanwhile: 25,000 of them are not what is measured */

int fdatasync(int fd)
{
    return filling ? 0 : (int)syscall(SYS_fdatasync, fd);
}

static void fail(const char *what, const struct cbn_error *err)
{
    fprintf(stderr, "pack_bench: %s: %s\n", what, err ? err->message : "failed");
    exit(1);
}

static uint64_t next_random(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15ull;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 11) * 0x1p-53 + 0x1p-54;
}

static size_t size_of(uint64_t which)
{
    uint64_t state = which;
    double normal = sqrt(-2.0 * log(uniform(&state))) * cos(6.283185307179586 * uniform(&state));
    double bytes = MEDIAN_BYTES * exp(SPREAD * normal);
    return bytes < LEAST_BYTES ? LEAST_BYTES : bytes > MOST_BYTES ? MOST_BYTES : (size_t)bytes;
}

struct key {
    uint8_t bytes[14];
};

static struct key key_of(uint64_t which)
{
    struct key key = {{1, 0, 8, 0, 0, 0}};
    cbn__store_u64(key.bytes + 6, which);
    return key;
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
    struct cbn__entry_facts facts = {.compiler_version = 13000, .compile_ms = 300, .created_s = 1700000000};
    struct cbn_error err = {0};
    uint8_t *noise = malloc(NOISE_BYTES);
    uint64_t state = 1;
    if (!noise)
        fail("memory", NULL);
    for (size_t i = 0; i < NOISE_BYTES; i++)
        noise[i] = (uint8_t)next_random(&state);
    filling = true;
    for (uint64_t which = 0; which < entries; which++) {
        struct key key = key_of(which);
        struct cbn__blob payload = {noise + which * 4099 % (NOISE_BYTES - MOST_BYTES), size_of(which)};
        if (cbn__cabinet_put(cabinet, (struct cbn__blob){key.bytes, sizeof(key.bytes)}, payload, cbn__blob_text(""),
                             &facts, &err) != CBN_STATUS_OK)
            fail("put", &err);
    }
    filling = false;
    cbn__cabinet_close(cabinet);
    free(noise);
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
        struct key key = key_of(next_random(&state) % entries);
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
