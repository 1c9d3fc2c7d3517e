/*
 * Space as the system sees it: what stats says against du, a compaction on a disk without room for the copy, and a
 * bound on the address space below the bound of the file.
 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "api/runtime.h"

#include "cache_fixture.h"

#define MIB ((uint64_t)1 << 20)

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

#define PAGE_BYTES 4096u

static struct cbn_runtime *create(const char *folder, uint64_t max_bytes)
{
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_runtime *runtime = NULL;
    struct cbn_error err = {0};
    options.flags = CBN_RUNTIME_IGNORE_ENV | CBN_RUNTIME_CACHE_REQUIRED;
    options.cache_dir = folder;
    options.max_bytes = max_bytes;
    ck_assert_msg(cbn_runtime_create(&options, &runtime, &err) == CBN_STATUS_OK, "%s", err.message);
    return runtime;
}

static void keep_stats(void *user, const struct cbn_layer_stats *stats)
{
    *(struct cbn_layer_stats *)user = *stats;
}

static struct cbn_layer_stats stats_of(struct cbn_runtime *runtime)
{
    struct cbn_layer_stats stats = {0};
    ck_assert_int_eq(cbn_cabinet_stats(runtime, keep_stats, &stats, NULL), CBN_STATUS_OK);
    return stats;
}

static uint64_t du_of(const char *path)
{
    char command[2 * PATH_BYTES + 16];
    unsigned long long bytes = 0;
    (void)snprintf(command, sizeof(command), "du -B1 '%s'", path);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_int_eq(fscanf(pipe, "%llu", &bytes), 1);
    ck_assert_int_eq(pclose(pipe), 0);
    return bytes;
}

static void expect_du(struct cbn_runtime *runtime, const char *data, const char *when)
{
    uint64_t told = stats_of(runtime).file_bytes, is = du_of(data);
    ck_assert_msg(told <= is + PAGE_BYTES && is <= told + PAGE_BYTES, "%s: stats says %llu, du %llu", when,
                  (unsigned long long)told, (unsigned long long)is);
}

/* 0: on a disk; 1: in memory. */
START_TEST(stats_says_what_du_says)
{
    SCRATCH_AUTO scratch = _i ? scratch_make_in_memory() : scratch_make();
    const char *data = in(&scratch, "cache/data.mdb");
    struct cbn_runtime *runtime = create(in(&scratch, "cache"), 4 * MIB);
    struct cbn__cabinet *cabinet = runtime->cabinet;
    expect_du(runtime, data, "empty");
    for (uint64_t i = 0; i < 150; i++) {
        ck_assert_int_eq(put(cabinet, i, 500 + (size_t)(i * 7919 % 90000), 13000), CBN_STATUS_OK);
        if (i % 50 == 0)
            expect_du(runtime, data, "filling");
    }
    ck_assert_uint_gt(stats_of(runtime).evictions, 0);
    expect_du(runtime, data, "full");
    struct cbn_prune_options options = CBN_PRUNE_OPTIONS_INIT;
    options.max_bytes = MIB;
    ck_assert_int_eq(cbn_cabinet_prune(runtime, &options, NULL, NULL, NULL, NULL), CBN_STATUS_OK);
    ck_assert_uint_le(stats_of(runtime).used_bytes, MIB);
    expect_du(runtime, data, "pruned");
    options.flags = CBN_PRUNE_COMPACT;
    ck_assert_int_eq(cbn_cabinet_prune(runtime, &options, NULL, NULL, NULL, NULL), CBN_STATUS_OK);
    expect_du(runtime, data, "compacted");
    ck_assert_uint_le(du_of(data), MIB + PAGE_BYTES);
    cbn_runtime_destroy(runtime);
}
END_TEST

static bool mount_small_disk(const char *path, const char *options)
{
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("tmpfs", path, "tmpfs", 0, options) == 0)
        return true;
    printf("skipped: a file system cannot be mounted here (%s)\n", strerror(errno));
    return false;
}

static struct cbn__hash hash_of_file(const char *path)
{
    static uint8_t bytes[8 << 20];
    int fd = open(path, O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof(bytes));
    ck_assert_int_gt(size, 0);
    (void)close(fd);
    return cbn__hash_blob((struct cbn__blob){bytes, (size_t)size});
}

START_TEST(compaction_on_a_disk_without_room)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *data = in(&scratch, "cache/data.mdb");
    if (!mount_small_disk(scratch.path, "size=8m"))
        return;
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_int_eq(put(cabinet, i, 50000, 13000), CBN_STATUS_OK);
    cbn__store_flush_usage(cabinet->layers[0].store, 1000);
    struct cbn__hash before = hash_of_file(data);
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__cabinet_compact(cabinet, &err), CBN_STATUS_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "free some or prune first"));
    struct cbn__hash after = hash_of_file(data);
    ck_assert(cbn__hash_equal(&before, &after));
    ck_assert_int_eq(count_files(in(&scratch, "cache"), ""), 2);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_int_eq(find(cabinet, i, 50000), CBN__LOOKUP_HIT);
    for (uint64_t i = 0; i < 80; i++) {
        struct test_key key = key_of(i);
        struct cbn__hash hash = cbn__hash_blob(RECORD(key));
        ck_assert_int_eq(cbn__cabinet_drop(cabinet, &hash, NULL), CBN_STATUS_OK);
    }
    ck_assert_int_eq(cbn__cabinet_compact(cabinet, &err), CBN_STATUS_OK); /* as much as there is to copy fits now */
    ck_assert_uint_lt(du_of(data), 2 * MIB);
    for (uint64_t i = 80; i < 100; i++)
        ck_assert_int_eq(find(cabinet, i, 50000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* A disk that is full before the bound: what is put pushes others out, or is dropped; nothing is lost, nothing loops.
 */
START_TEST(a_bound_above_the_disk)
{
    SCRATCH_AUTO scratch = scratch_make();
    if (!mount_small_disk(scratch.path, "size=4m"))
        return;
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.max_bytes = 1024 * MIB;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    uint64_t stored = 0, refused = 0;
    for (uint64_t i = 0; i < 200; i++) {
        int32_t status = put(cabinet, i, 50000, 13000);
        ck_assert_msg(status == CBN_STATUS_OK || status == CBN_STATUS_LIMIT || status == CBN_STATUS_IO, "%d", status);
        stored += status == CBN_STATUS_OK;
        refused += status != CBN_STATUS_OK;
        enum cbn__lookup found = find(cabinet, i, 50000);
        ck_assert_int_eq(found, status == CBN_STATUS_OK ? CBN__LOOKUP_HIT : CBN__LOOKUP_ABSENT);
    }
    printf("stored %llu, refused %llu of 200 on 4 MiB\n", (unsigned long long)stored, (unsigned long long)refused);
    ck_assert_uint_eq(stored, 200);
    ck_assert_int_eq(count_files(in(&scratch, "cache"), ""), 2);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* `ulimit -v` of 2 GiB and a bound of 8: a smaller map, which stats tells. */
START_TEST(a_map_below_the_bound)
{
#ifdef SANITIZED
    printf("skipped: a sanitizer's shadow does not fit under a bound on address space\n");
#else
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct rlimit limit = {2048 * MIB, 2048 * MIB};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    struct cbn_runtime *runtime = create(in(&scratch, "cache"), 8192 * MIB);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_int_eq(put(runtime->cabinet, i, 100000, 13000), CBN_STATUS_OK);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_int_eq(find(runtime->cabinet, i, 100000), CBN__LOOKUP_HIT);
    struct cbn_layer_stats stats = stats_of(runtime);
    ck_assert_uint_eq(stats.max_bytes, 1024 * MIB);
    ck_assert_uint_eq(stats.entries, 100);
    ck_assert_uint_eq(stats.evictions, 0);
    cbn_runtime_destroy(runtime);
#endif
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("space-disk");
    TCase *cases = tcase_create("space-disk");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, stats_says_what_du_says, 0, 2);
    tcase_add_test(cases, compaction_on_a_disk_without_room);
    tcase_add_test(cases, a_bound_above_the_disk);
    tcase_add_test(cases, a_map_below_the_bound);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
