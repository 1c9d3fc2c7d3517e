/*
 * Two releases of the library with two formats on one folder, in processes of their own: neither sees, drops, evicts or
 * sets aside what the other keeps. And a file of a later LMDB, which is left alone byte by byte.
 */
#include "../unit/cache_fixture.h"

#define ROUNDS "2000"
#define META_VERSION_AT 20
#define META_PAGE 4096

static const char *const workers[2] = {CBN_TEST_BINARY_DIR "/tests/release/release_1",
                                       CBN_TEST_BINARY_DIR "/tests/release/release_2"};

static pid_t start(int release, const char *folder, const char *verb)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl(workers[release], workers[release], folder, verb, ROUNDS, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void run(int release, const char *folder, const char *verb)
{
    reap(start(release, folder, verb));
}

/* _i: which of them was here first. */
START_TEST(neither_wipes_the_others)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    run(_i, folder, "work");
    run(!_i, folder, "work");
    run(_i, folder, "verify");
    for (int release = 0; release < 2; release++) {
        run(release, folder, "work");
        run(!release, folder, "compact");
    }
    run(0, folder, "verify");
    run(1, folder, "verify");
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 0);
    ck_assert_int_eq(count_files(folder, "data.mdb"), 1);
}
END_TEST

START_TEST(two_at_once)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    pid_t one = start(0, folder, "work"), other = start(1, folder, "work");
    reap(one);
    reap(other);
    run(0, folder, "verify");
    run(1, folder, "verify");
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 0);
}
END_TEST

static struct cbn__buf read_all(const char *path)
{
    struct cbn__buf bytes = CBN__BUF_INIT;
    uint8_t chunk[65536];
    int fd = open(path, O_RDONLY);
    for (ssize_t got = read(fd, chunk, sizeof(chunk)); got > 0; got = read(fd, chunk, sizeof(chunk)))
        cbn__buf_append(&bytes, chunk, (size_t)got);
    (void)close(fd);
    return bytes;
}

static void set_version(const char *path, uint8_t version, int pages)
{
    int fd = open(path, O_RDWR);
    for (int i = 0; i < pages; i++)
        ck_assert_int_eq(pwrite(fd, &version, 1, i * META_PAGE + META_VERSION_AT), 1);
    (void)close(fd);
}

/* Both meta pages say so: not damage. */
START_TEST(a_file_of_a_later_lmdb_is_left_alone)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache"), *path = in(&scratch, "cache/data.mdb");
    struct events events = {0};
    struct cbn_error err = {0};
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, 1, 3000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    set_version(path, 2, 2);
    struct cbn__buf before = read_all(path);
    struct cbn__cabinet_options options = options_for(folder, &events);
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_IO);
    ck_assert_msg(strstr(err.message, "data version 2") && strstr(err.message, "left alone"), "%s", err.message);
    ck_assert_int_ne(find(cabinet, 1, 3000), CBN__LOOKUP_HIT);
    ck_assert_int_ne(put(cabinet, 2, 3000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    struct cbn__buf after = read_all(path);
    ck_assert(cbn__blob_equal(cbn__buf_blob(&before), cbn__buf_blob(&after)));
    ck_assert_int_eq(count_files(folder, "data.mdb"), 1);
    set_version(path, 1, 2); /* its own release finds all of it */
    cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(find(cabinet, 1, 3000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    cbn__buf_done(&before);
    cbn__buf_done(&after);
}
END_TEST

/* Taken over while it is open: misses, dropped puts, and the file as it was. */
START_TEST(a_file_that_a_later_lmdb_takes_over_is_left_alone)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *path = in(&scratch, "cache/data.mdb");
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(put(cabinet, 1, 3000, 13000), CBN_STATUS_OK);
    set_version(path, 2, 2);
    struct cbn__buf before = read_all(path);
    ck_assert_int_eq(find(cabinet, 1, 3000), CBN__LOOKUP_IO);
    ck_assert_int_eq(put(cabinet, 2, 3000, 13000), CBN_STATUS_IO);
    struct cbn__buf after = read_all(path);
    ck_assert(cbn__blob_equal(cbn__buf_blob(&before), cbn__buf_blob(&after)));
    ck_assert_int_eq(count_files(in(&scratch, "cache"), "data.mdb"), 1);
    set_version(path, 1, 2);
    ck_assert_int_eq(find(cabinet, 1, 3000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    cbn__buf_done(&before);
    cbn__buf_done(&after);
}
END_TEST

/* One meta page alone is damage, as before: set aside, and what is readable salvaged. */
START_TEST(one_meta_page_of_another_version_is_damage)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, 1, 3000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    set_version(in(&scratch, "cache/data.mdb"), 2, 1);
    cabinet = open_cabinet(folder, &events);
    ck_assert_int_eq(events.damages, 1);
    ck_assert_int_eq(put(cabinet, 1, 3000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("releases");
    TCase *cases = tcase_create("releases");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, neither_wipes_the_others, 0, 2);
    tcase_add_test(cases, two_at_once);
    tcase_add_test(cases, a_file_of_a_later_lmdb_is_left_alone);
    tcase_add_test(cases, a_file_that_a_later_lmdb_takes_over_is_left_alone);
    tcase_add_test(cases, one_meta_page_of_another_version_is_damage);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
