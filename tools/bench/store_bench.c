/*
 * store_bench: what a large cabinet costs on the host, as JSON. A folder is filled with made-up entries of cubin-like
 * sizes; then it is opened with its walk, read with verification, listed, verified and pruned, and many processes
 * read it at once.
 *
 * The public interface stores nothing that was not built, so filling and reading go through the cabinet itself
 * (tools/dev/layers allows it to this file); listing, verifying and pruning are the public calls.
 */
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cubinet/cubinet.h>

#include "base/clock.h"
#include "cache/cabinet.h"
#include "cache/pages.h"
#include "entries.h"

#define NAMED_BYTES 60000u /* of every hundredth entry: the look-up that is timed by itself */
#define NAMED_EVERY 100u
#define BYTES_AN_ENTRY 48000u /* on disk, with room to spare */
#define OPENS 51u
#define PROCESSES_MOST 512u

static const char help[] =
    "store_bench [--entries N] [--cache DIR] [--processes N] [--reads N] [--pause US]\n"
    "\n"
    "  --entries N    stored in a fresh folder (default 100000: about 4.3 GB)\n"
    "  --cache DIR    makes its folder there and removes it afterwards (default: $TMPDIR or /tmp)\n"
    "  --processes N  that read at once (default 64)\n"
    "  --reads N      of each process, and of the one alone (default 5000)\n"
    "  --pause US     mean pause between two reads of one of many (default 10000; 0: none)\n";

struct options {
    const char *cache;
    long entries, processes, reads, pause_us;
};

struct timing {
    uint64_t wall_ns, cpu_ns;
};

static void fail(const char *what, const struct cbn_error *err)
{
    fprintf(stderr, "store_bench: %s: %s\n", what, err ? err->message : "failed");
    exit(1);
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Follows from which: as entries_size but for the entries that are named. */
static size_t size_of(uint64_t which)
{
    if (which % NAMED_EVERY == 0) {
        return NAMED_BYTES;
    }
    return entries_size(which);
}

static struct cbn__cabinet *open_cabinet(const struct options *options)
{
    struct cbn__cabinet_options cabinet_options = {.overlay_path = options->cache,
                                                   .lock_timeout_ms = 10000,
                                                   .max_bytes = (uint64_t)options->entries * 100000u + (1u << 24)};
    struct cbn__cabinet *cabinet = NULL;
    struct cbn_error err = {0};
    if (cbn__cabinet_open(&cabinet_options, &cabinet, &err) != CBN_STATUS_OK) {
        fail("open", &err);
    }
    return cabinet;
}

static uint64_t transaction_of(const struct options *options)
{
    char path[4096];
    struct cbn__pages_meta meta = {0};
    (void)snprintf(path, sizeof(path), "%s/data.mdb", options->cache);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || cbn__pages_read_meta(fd, &meta) != NULL) {
        fail("the data file cannot be read", NULL);
    }
    (void)close(fd);
    return meta.transaction;
}

/* ---- statistics ---- */

static int compare_u64(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static void print_spread(const char *name, uint64_t *values, size_t count, double unit)
{
    qsort(values, count, sizeof(*values), compare_u64);
    printf("  \"%s\": {\"p50\": %.1f, \"p90\": %.1f, \"p99\": %.1f, \"most\": %.1f, \"samples\": %zu},\n", name,
           (double)values[count / 2] / unit, (double)values[count * 9 / 10] / unit,
           (double)values[count * 99 / 100] / unit, (double)values[count - 1] / unit, count);
}

static struct timing begin_timing(void)
{
    return (struct timing){cbn__clock_monotonic_ns(), cpu_ns()};
}

static void print_timing(const char *name, const struct timing *begun, uint64_t entries)
{
    printf("  \"%s\": {\"seconds\": %.2f, \"cpu_seconds\": %.2f, \"entries\": %llu},\n", name,
           (double)(cbn__clock_monotonic_ns() - begun->wall_ns) / 1e9, (double)(cpu_ns() - begun->cpu_ns) / 1e9,
           (unsigned long long)entries);
}

static uint64_t *make_samples(size_t count)
{
    uint64_t *samples = mmap(NULL, count * sizeof(*samples), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (samples == MAP_FAILED) {
        fail("memory", NULL);
    }
    return samples;
}

/* ---- filling ---- */

static void fill(const struct options *options)
{
    struct cbn__cabinet *cabinet = open_cabinet(options);
    struct cbn_error err = {0};
    struct timing begun = begin_timing();
    if (entries_fill(cabinet, (uint64_t)options->entries, size_of, &err) != CBN_STATUS_OK) {
        fail("put", &err);
    }
    print_timing("fill_without_syncs", &begun, (uint64_t)options->entries);
    cbn__cabinet_close(cabinet);
    sync();
}

/* ---- one process ---- */

static void measure_open(const struct options *options)
{
    uint64_t *samples = make_samples(OPENS), *cpu_samples = make_samples(OPENS);
    for (size_t i = 0; i < OPENS; i++) {
        struct timing begun = begin_timing();
        struct cbn__cabinet *cabinet = open_cabinet(options);
        samples[i] = cbn__clock_monotonic_ns() - begun.wall_ns;
        cpu_samples[i] = cpu_ns() - begun.cpu_ns;
        cbn__cabinet_close(cabinet);
    }
    print_spread("open_with_walk_ms", samples, OPENS, 1e6);
    print_spread("open_with_walk_cpu_ms", cpu_samples, OPENS, 1e6); /* what it is on a machine that others load */
}

/* Time of one verified look-up of an entry that is there. */
static uint64_t time_find(struct cbn__cabinet *cabinet, uint64_t which)
{
    struct entry_key key = entries_key(which);
    struct cbn__entry entry;
    uint64_t begun_ns = cbn__clock_monotonic_ns();
    if (cbn__cabinet_find(cabinet, (struct cbn__blob){key.bytes, sizeof(key.bytes)}, NULL, &entry) != CBN__LOOKUP_HIT) {
        fail("look-up", NULL);
    }
    uint64_t spent_ns = cbn__clock_monotonic_ns() - begun_ns;
    if (entry.payload.size != size_of(which)) {
        fail("look-up: a wrong entry", NULL);
    }
    cbn__entry_done(&entry);
    return spent_ns;
}

static void measure_reads(const struct options *options, uint64_t step, const char *name)
{
    struct cbn__cabinet *cabinet = open_cabinet(options);
    uint64_t *samples = make_samples((size_t)options->reads);
    uint64_t state = 7, count = ((uint64_t)options->entries - 1) / step + 1;
    for (long i = 0; i < options->reads; i++) {
        samples[i] = time_find(cabinet, entries_random(&state) % count * step);
    }
    print_spread(name, samples, (size_t)options->reads, 1e3);
    cbn__cabinet_close(cabinet);
}

/* ---- many processes ---- */

struct crowd {
    const struct options *options;
    int ready[2], go[2], done[2], leave[2];
    uint64_t *samples;
};

static void pause_about(uint64_t *state, long mean_us)
{
    if (mean_us) {
        cbn__clock_sleep_ns((uint64_t)(-log(entries_uniform(state)) * (double)mean_us * 1e3));
    }
}

static void signal_byte(int fd)
{
    if (write(fd, "x", 1) != 1) {
        fail("pipe", NULL);
    }
}

static void await_byte(int fd)
{
    char byte;
    if (read(fd, &byte, 1) != 1) {
        fail("pipe", NULL);
    }
}

static void read_as_one_of_many(const struct crowd *crowd, size_t index, long pause_us)
{
    const struct options *options = crowd->options;
    struct cbn__cabinet *cabinet = open_cabinet(options);
    uint64_t state = 1000 + index;
    signal_byte(crowd->ready[1]);
    await_byte(crowd->go[0]);
    for (long i = 0; i < options->reads; i++) {
        pause_about(&state, pause_us);
        crowd->samples[index * (size_t)options->reads + (size_t)i] =
            time_find(cabinet, entries_random(&state) % (uint64_t)options->entries);
    }
    signal_byte(crowd->done[1]);
    await_byte(crowd->leave[0]);
    cbn__cabinet_close(cabinet);
    _exit(0);
}

static void for_each_process(const struct crowd *crowd, void (*act)(int), int fd)
{
    for (long i = 0; i < crowd->options->processes; i++) {
        act(fd);
    }
}

/* pause_us 0: as fast as they can. The transactions are those between the first read and the last. */
static void measure_crowd(const struct options *options, long pause_us, const char *name)
{
    size_t count = (size_t)options->processes * (size_t)options->reads;
    struct crowd crowd = {.options = options, .samples = make_samples(count)};
    if (pipe(crowd.ready) || pipe(crowd.go) || pipe(crowd.done) || pipe(crowd.leave)) {
        fail("pipe", NULL);
    }
    (void)fflush(stdout);
    for (size_t i = 0; i < (size_t)options->processes; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            read_as_one_of_many(&crowd, i, pause_us);
        }
        if (pid < 0) {
            fail("fork", NULL);
        }
    }
    for_each_process(&crowd, await_byte, crowd.ready[0]);
    uint64_t before = transaction_of(options), begun_ns = cbn__clock_monotonic_ns();
    for_each_process(&crowd, signal_byte, crowd.go[1]);
    for_each_process(&crowd, await_byte, crowd.done[0]);
    uint64_t spent_ns = cbn__clock_monotonic_ns() - begun_ns, written = transaction_of(options) - before;
    for_each_process(&crowd, signal_byte, crowd.leave[1]);
    int status = 0;
    for (long i = 0; i < options->processes; i++) {
        if (wait(&status) < 0 || status != 0) {
            fail("a reader", NULL);
        }
    }
    print_spread(name, crowd.samples, count, 1e3);
    printf("  \"%s_total\": {\"processes\": %ld, \"reads_a_second\": %.0f, \"write_transactions\": %llu},\n", name,
           options->processes, (double)count / ((double)spent_ns / 1e9), (unsigned long long)written);
}

/* ---- upkeep ---- */

static struct cbn_runtime *create_runtime(const struct options *options)
{
    struct cbn_runtime_options runtime_options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_runtime *runtime = NULL;
    struct cbn_error err = {0};
    runtime_options.flags = CBN_RUNTIME_CACHE_REQUIRED;
    runtime_options.cache_dir = options->cache;
    runtime_options.max_bytes = (uint64_t)options->entries * 100000u + (1u << 24);
    if (cbn_runtime_create(&runtime_options, &runtime, &err) != CBN_STATUS_OK) {
        fail("runtime", &err);
    }
    return runtime;
}

static int ignore_entry(void *user, const struct cbn_entry_info *entry)
{
    (void)user, (void)entry;
    return 0;
}

/* Keys that no release wrote are no kernels: ls and verify read and check all of each, and then say so. */
static void measure_list(const struct options *options)
{
    struct cbn_runtime *runtime = create_runtime(options);
    uint64_t damaged = 0;
    struct timing begun = begin_timing();
    if (cbn_cabinet_list(runtime, ignore_entry, NULL, &damaged, NULL) != CBN_STATUS_OK) {
        fail("list", NULL);
    }
    print_timing("list", &begun, (uint64_t)options->entries);
    cbn_runtime_destroy(runtime);
}

static void measure_verify(const struct options *options)
{
    struct cbn_runtime *runtime = create_runtime(options);
    struct cbn_verify_result result = {.size = sizeof(result)};
    struct timing begun = begin_timing();
    if (cbn_cabinet_verify(runtime, 0, NULL, NULL, &result, NULL) != CBN_STATUS_OK ||
        result.checked != (uint64_t)options->entries) {
        fail("verify", NULL);
    }
    print_timing("verify", &begun, result.checked);
    cbn_runtime_destroy(runtime);
}

static void take_used(void *user, const struct cbn_layer_stats *stats)
{
    *(uint64_t *)user = stats->used_bytes;
}

static void measure_prune(const struct options *options)
{
    struct cbn_runtime *runtime = create_runtime(options);
    struct cbn_prune_options prune_options = CBN_PRUNE_OPTIONS_INIT;
    struct cbn_prune_result result = {.size = sizeof(result)};
    struct cbn_error err = {0};
    uint64_t used = 0;
    struct timing begun = begin_timing();
    if (cbn_cabinet_stats(runtime, take_used, &used, &err) != CBN_STATUS_OK) {
        fail("stats", &err);
    }
    print_timing("stats", &begun, (uint64_t)options->entries);
    prune_options.max_bytes = used / 2;
    begun = begin_timing();
    if (cbn_cabinet_prune(runtime, &prune_options, NULL, NULL, &result, &err) != CBN_STATUS_OK) {
        fail("prune", &err);
    }
    print_timing("prune_to_half", &begun, result.removed);
    cbn_runtime_destroy(runtime);
}

/* ---- all of it ---- */

static void need_room(const struct options *options)
{
    struct statvfs disk;
    if (statvfs(options->cache, &disk) != 0) {
        fail("the folder", NULL);
    }
    if ((uint64_t)disk.f_bavail * disk.f_frsize < (uint64_t)options->entries * BYTES_AN_ENTRY) {
        fail("too few bytes are free there; give --entries or --cache", NULL);
    }
}

static void measure(const struct options *options)
{
    printf("{\n  \"schema\": \"cubinet.store-bench/1\",\n  \"entries\": %ld,\n  \"cores\": %ld,\n", options->entries,
           sysconf(_SC_NPROCESSORS_ONLN));
    fill(options);
    measure_open(options);
    measure_reads(options, NAMED_EVERY, "find_60kb_us");
    measure_reads(options, 1, "find_any_us");
    measure_crowd(options, options->pause_us, "crowd_paced_us");
    measure_crowd(options, 0, "crowd_flat_out_us");
    measure_list(options);
    measure_verify(options);
    measure_prune(options);
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("  \"memory_most_mib\": %.1f\n}\n", (double)usage.ru_maxrss / 1024);
}

static int remove_path(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    return remove(path);
}

static bool parse(int argc, char **argv, struct options *options)
{
    static const struct option table[] = {
        {"entries", required_argument, NULL, 'e'},   {"cache", required_argument, NULL, 'c'},
        {"processes", required_argument, NULL, 'p'}, {"reads", required_argument, NULL, 'r'},
        {"pause", required_argument, NULL, 'u'},     {0}};
    long *const numbers[] = {
        ['e'] = &options->entries, ['p'] = &options->processes, ['r'] = &options->reads, ['u'] = &options->pause_us};
    for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        if (c == 'c') {
            options->cache = optarg;
        } else if (c == '?') {
            return false;
        } else {
            *numbers[c] = strtol(optarg, NULL, 10);
        }
    }
    return optind == argc && options->entries >= 1 && options->reads >= 1 && options->pause_us >= 0 &&
           options->processes >= 1 && options->processes <= (long)PROCESSES_MOST;
}

int main(int argc, char **argv)
{
    struct options options = {.entries = 100000, .processes = 64, .reads = 5000, .pause_us = 10000};
    char folder[4096];
    if (!parse(argc, argv, &options)) {
        fputs(help, stderr);
        return 2;
    }
    const char *parent = options.cache ? options.cache : getenv("TMPDIR");
    (void)snprintf(folder, sizeof(folder), "%s/cubinet-store-bench-XXXXXX", parent ? parent : "/tmp");
    options.cache = mkdtemp(folder);
    if (!options.cache) {
        fail("a folder cannot be made there", NULL);
    }
    need_room(&options);
    measure(&options);
    (void)nftw(folder, remove_path, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}
