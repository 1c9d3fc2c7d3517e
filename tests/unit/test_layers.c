/*
 * Read-only bases below an overlay; folders that cannot be written or made.
 */
#include "cache_fixture.h"

#include <sys/resource.h>

#define OTHER_UID 54321

static void warm(const char *folder, uint64_t which, size_t size, uint32_t version)
{
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, which, size, version), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
}

/* As it is baked into an image: nothing can be written, and there is no lock file. */
static void bake(const char *folder)
{
    char path[3 * PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/lock", folder);
    ck_assert_int_eq(unlink(path), 0);
    (void)snprintf(path, sizeof(path), "%s/data.mdb", folder);
    ck_assert_int_eq(chmod(path, 0444), 0);
    ck_assert_int_eq(chmod(folder, 0555), 0);
}

static struct cbn__cabinet *open_layers(const char *overlay, const char *const *bases, uint32_t base_count)
{
    struct cbn__cabinet_options options = options_for(overlay, NULL);
    options.base_paths = bases;
    options.base_count = base_count;
    struct cbn__cabinet *cabinet = NULL;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    return cabinet;
}

START_TEST(overlay_first_then_bases)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *bases[] = {in(&scratch, "base1"), in(&scratch, "base2")};
    warm(bases[0], 1, 100, 13000);
    warm(bases[1], 1, 200, 13000);
    warm(bases[1], 2, 300, 13000);
    bake(bases[0]);
    bake(bases[1]);
    struct cbn__cabinet *cabinet = open_layers(in(&scratch, "cache"), bases, 2);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 3);
    struct test_key first = key_of(1), second = key_of(2);
    struct cbn__entry entry;
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(first), NULL, &entry), CBN__LOOKUP_HIT);
    ck_assert_uint_eq(entry.layer, 1);
    ck_assert_str_eq(entry.layer_path, bases[0]);
    ck_assert_uint_eq(entry.payload.size, 100);
    ck_assert_int_eq(entry.last_used_s, 0);
    cbn__entry_done(&entry);
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(second), NULL, &entry), CBN__LOOKUP_HIT);
    ck_assert_uint_eq(entry.layer, 2);
    cbn__entry_done(&entry);
    ck_assert_int_eq(put(cabinet, 1, 400, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(first), NULL, &entry), CBN__LOOKUP_HIT);
    ck_assert_uint_eq(entry.layer, 0);
    ck_assert_uint_eq(entry.payload.size, 400);
    cbn__entry_done(&entry);
    /* A drop is the overlay's; the base shows again. */
    struct cbn__hash hash = cbn__hash_blob(RECORD(first)), other = cbn__hash_blob(RECORD(second));
    ck_assert_int_eq(cbn__cabinet_drop(cabinet, &hash, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__cabinet_drop(cabinet, &other, NULL), CBN_STATUS_NOT_FOUND);
    ck_assert_int_eq(find(cabinet, 1, 100), CBN__LOOKUP_HIT);
    struct cbn__layer layer;
    ck_assert_int_eq(cbn__cabinet_layer(cabinet, 2, &layer, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(layer.entries, 2);
    ck_assert(layer.is_base && !layer.writable);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(count_files(bases[0], ""), 1);
    ck_assert_int_eq(count_files(bases[1], ""), 1);
}
END_TEST

START_TEST(an_older_major_in_the_overlay_comes_before_a_base)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *base = in(&scratch, "base");
    warm(base, 1, 100, 13000);
    bake(base);
    struct cbn__cabinet *cabinet = open_layers(in(&scratch, "cache"), &base, 1);
    ck_assert_int_eq(put(cabinet, 1, 200, 12000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 200), CBN__LOOKUP_HIT);
    struct test_key key = key_of(1);
    struct cbn__compiler_rule rule = {.min_version = 13000};
    struct cbn__entry entry;
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(key), &rule, &entry), CBN__LOOKUP_HIT);
    ck_assert_uint_eq(entry.layer, 1);
    cbn__entry_done(&entry);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Runs body as a user who owns nothing here; skips, and says so, where the test may not become one. */
static bool as_other_uid(void (*body)(const struct scratch *), const struct scratch *scratch)
{
    if (geteuid() != 0) {
        printf("skipped: becoming another user needs root\n");
        return false;
    }
    ck_assert_int_eq(chmod(scratch->path, 0755), 0);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(OTHER_UID) != 0 || setuid(OTHER_UID) != 0)
            _exit(2);
        body(scratch);
        _exit(0);
    }
    reap(child);
    return true;
}

static void read_base(const struct scratch *scratch)
{
    const char *base = in(scratch, "base");
    struct cbn__cabinet *cabinet = open_layers(NULL, &base, 1);
    bool right = find(cabinet, 1, 100) == CBN__LOOKUP_HIT && find(cabinet, 2, 1) == CBN__LOOKUP_ABSENT &&
                 put(cabinet, 2, 1, 13000) == CBN_STATUS_NOT_FOUND;
    cbn__cabinet_close(cabinet);
    _exit(right ? 0 : 1);
}

START_TEST(another_uid_reads_a_root_owned_base)
{
    SCRATCH_AUTO scratch = scratch_make();
    warm(in(&scratch, "base"), 1, 100, 13000);
    bake(in(&scratch, "base"));
    if (as_other_uid(read_base, &scratch))
        ck_assert_int_eq(count_files(in(&scratch, "base"), ""), 1);
}
END_TEST

/* No place to write at all: the base serves, misses are misses, nothing crashes. */
static void read_unwritable_overlay(const struct scratch *scratch)
{
    struct events events = {0};
    struct cbn__cabinet_options options = options_for(in(scratch, "base"), &events);
    struct cbn__cabinet *cabinet = NULL;
    struct cbn_error err = {0};
    bool right = cbn__cabinet_open(&options, &cabinet, &err) == CBN_STATUS_OK &&
                 find(cabinet, 1, 100) == CBN__LOOKUP_HIT && put(cabinet, 2, 1, 13000) == CBN_STATUS_NOT_FOUND &&
                 events.notices == 1 && strstr(events.last, "read only");
    cbn__cabinet_close(cabinet);
    options.overlay_path = in(scratch, "missing/folder");
    right = right && cbn__cabinet_open(&options, &cabinet, &err) == CBN_STATUS_IO && err.native_code == EACCES &&
            cbn__cabinet_layer_count(cabinet) == 0 && find(cabinet, 1, 1) == CBN__LOOKUP_ABSENT && events.notices == 2;
    cbn__cabinet_close(cabinet);
    _exit(right ? 0 : 1);
}

START_TEST(another_uid_cannot_write)
{
    SCRATCH_AUTO scratch = scratch_make();
    warm(in(&scratch, "base"), 1, 100, 13000);
    ck_assert_int_eq(chmod(in(&scratch, "base"), 0755), 0);
    ck_assert_int_eq(chmod(in(&scratch, "base/data.mdb"), 0644), 0);
    (void)as_other_uid(read_unwritable_overlay, &scratch);
}
END_TEST

/* The folder is the user's, the files in it are root's: what can be read is served. */
START_TEST(files_of_root_in_an_own_folder)
{
    SCRATCH_AUTO scratch = scratch_make();
    warm(in(&scratch, "base"), 1, 100, 13000);
    ck_assert_int_eq(chmod(in(&scratch, "base/data.mdb"), 0644), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(chown(in(&scratch, "base"), OTHER_UID, OTHER_UID), 0);
    (void)as_other_uid(read_unwritable_overlay, &scratch);
}
END_TEST

START_TEST(read_only_by_option)
{
    SCRATCH_AUTO scratch = scratch_make();
    warm(in(&scratch, "cache"), 1, 100, 13000);
    bake(in(&scratch, "cache"));
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), NULL);
    options.read_only = true;
    struct cbn__cabinet *cabinet = NULL;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 100), CBN__LOOKUP_HIT);
    ck_assert_int_eq(put(cabinet, 2, 1, 13000), CBN_STATUS_NOT_FOUND);
    struct cbn__layer layer;
    ck_assert_int_eq(cbn__cabinet_layer(cabinet, 0, &layer, NULL), CBN_STATUS_OK);
    ck_assert(!layer.is_base && !layer.writable);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(count_files(in(&scratch, "cache"), ""), 1);
    options.overlay_path = in(&scratch, "missing");
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_IO);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(access(in(&scratch, "missing"), F_OK), -1);
}
END_TEST

START_TEST(a_live_folder_read_beside_its_writer)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct cbn__cabinet *writer = open_cabinet(folder, NULL);
    struct cbn__cabinet_options options = options_for(folder, NULL);
    options.read_only = true;
    struct cbn__cabinet *reader = NULL;
    ck_assert_int_eq(cbn__cabinet_open(&options, &reader, NULL), CBN_STATUS_OK);
    for (uint64_t i = 0; i < 40; i++) { /* beyond the reader's first map */
        ck_assert_int_eq(put(writer, i, 100000, 13000), CBN_STATUS_OK);
        ck_assert_int_eq(find(reader, i, 100000), CBN__LOOKUP_HIT);
    }
    cbn__cabinet_close(reader);
    cbn__cabinet_close(writer);
}
END_TEST

START_TEST(layers_that_are_not_there)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct events events = {0};
    const char *bases[] = {in(&scratch, "missing"), in(&scratch, "empty"), in(&scratch, "file")};
    ck_assert_int_eq(mkdir(bases[1], 0755), 0);
    ck_assert_int_eq(close(open(bases[2], O_CREAT | O_WRONLY, 0644)), 0);
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), &events);
    options.base_paths = bases;
    options.base_count = 3;
    struct cbn__cabinet *cabinet = NULL;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_OK);
    ck_assert_int_eq(err.status, CBN_STATUS_DAMAGED); /* of the file, which is no pack */
    ck_assert_int_eq(events.notices, 3);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 1);
    ck_assert_int_eq(put(cabinet, 1, 1, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(count_files(bases[1], ""), 0);
    /* A file where a folder should be, above and at the end. */
    options.base_count = 0;
    options.overlay_path = bases[2];
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_IO);
    cbn__cabinet_close(cabinet);
    options.overlay_path = in(&scratch, "file/cache");
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_IO);
    ck_assert_int_eq(put(cabinet, 1, 1, 13000), CBN_STATUS_NOT_FOUND);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_bound_on_address_space)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("skipped: a sanitizer's shadow does not fit under a bound on address space\n");
#else
    SCRATCH_AUTO scratch = scratch_make();
    struct rlimit limit = {512 << 20, 512 << 20};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_int_eq(put(cabinet, i, 100000, 13000), CBN_STATUS_OK);
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_int_eq(find(cabinet, i, 100000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
#endif
}
END_TEST

/* A bound on file sizes is a bound of the cache: the put is dropped, the entries before it are whole. */
START_TEST(a_file_that_cannot_grow)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(put(cabinet, 1, 100000, 13000), CBN_STATUS_OK);
    (void)signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {200000, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (uint64_t i = 2; i < 6; i++)
        ck_assert_int_eq(put(cabinet, i, 100000, 13000), CBN_STATUS_LIMIT);
    ck_assert_int_eq(find(cabinet, 1, 100000), CBN__LOOKUP_HIT);
    ck_assert_int_eq(find(cabinet, 2, 0), CBN__LOOKUP_ABSENT);
    limit.rlim_cur = RLIM_INFINITY;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(put(cabinet, 2, 100000, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 2, 100000), CBN__LOOKUP_HIT);
    ck_assert_int_eq(find(cabinet, 1, 100000), CBN__LOOKUP_HIT);
    ck_assert_int_eq(count_files(in(&scratch, "cache"), "data.mdb.damaged-"), 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_first_write_that_fails_leaves_no_file)
{
    SCRATCH_AUTO scratch = scratch_make();
    (void)signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {100, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), NULL);
    struct cbn__cabinet *cabinet = NULL;
    int32_t status = cbn__cabinet_open(&options, &cabinet, NULL);
    uint32_t layers = cbn__cabinet_layer_count(cabinet);
    cbn__cabinet_close(cabinet);
    limit.rlim_cur = RLIM_INFINITY; /* Check writes its messages into a file, too */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(status, CBN_STATUS_LIMIT);
    ck_assert_uint_eq(layers, 0);
    ck_assert_int_eq(count_files(in(&scratch, "cache"), "data.mdb"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layers");
    TCase *cases = tcase_create("layers");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, overlay_first_then_bases);
    tcase_add_test(cases, an_older_major_in_the_overlay_comes_before_a_base);
    tcase_add_test(cases, another_uid_reads_a_root_owned_base);
    tcase_add_test(cases, another_uid_cannot_write);
    tcase_add_test(cases, files_of_root_in_an_own_folder);
    tcase_add_test(cases, read_only_by_option);
    tcase_add_test(cases, a_live_folder_read_beside_its_writer);
    tcase_add_test(cases, layers_that_are_not_there);
    tcase_add_test(cases, a_bound_on_address_space);
    tcase_add_test(cases, a_file_that_cannot_grow);
    tcase_add_test(cases, a_first_write_that_fails_leaves_no_file);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
