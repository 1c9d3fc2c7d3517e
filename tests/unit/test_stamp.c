/*
 * Who wrote the data file last: what sessions wrote, here or in another process, costs no second walk; what anybody
 * else wrote does. And what a salvage keeps where the disk has no room for all of it.
 */
#include <sched.h>
#include <sys/mount.h>

#include "page_map.h"

#define ENTRIES 200u
#define ENTRY_BYTES 5000u

/* The transaction that the last walk saw. */
static uint64_t walked(struct cbn__cabinet *cabinet)
{
    return cabinet->layers[0].store->checked.transaction;
}

static uint64_t newest(struct cbn__cabinet *cabinet)
{
    struct cbn__pages_meta meta;
    ck_assert_ptr_null(cbn__pages_read_meta(cabinet->layers[0].store->data_fd, &meta));
    return meta.transaction;
}

static void put_elsewhere(const char *folder, uint64_t which)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
        ck_assert_int_eq(put(cabinet, which, 100, 13000), CBN_STATUS_OK);
        cbn__cabinet_close(cabinet);
        _exit(0);
    }
    reap(pid);
}

START_TEST(what_sessions_write_is_not_walked_again)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    char folder[2 * PATH_BYTES];
    snprintf(folder, sizeof(folder), "%s/cache", scratch.path);
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    const uint64_t first = walked(cabinet);
    for (uint64_t i = 0; i < 10; i++) {
        ck_assert_int_eq(put(cabinet, i, 100, 13000), CBN_STATUS_OK);
        ck_assert_int_eq(find(cabinet, i, 100), CBN__LOOKUP_HIT);
        put_elsewhere(folder, 100 + i);
        ck_assert_int_eq(find(cabinet, 100 + i, 100), CBN__LOOKUP_HIT);
    }
    ck_assert_uint_eq(walked(cabinet), first);
    ck_assert_uint_gt(newest(cabinet), first + 10);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* A change of the file's mode, and a commit whose stamp is not to be read. */
START_TEST(what_nobody_vouches_for_is_walked)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    char folder[2 * PATH_BYTES];
    snprintf(folder, sizeof(folder), "%s/cache", scratch.path);
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_cabinet(folder, &events);
    ck_assert_int_eq(put(cabinet, 1, 100, 13000), CBN_STATUS_OK);
    ck_assert_uint_lt(walked(cabinet), newest(cabinet));
    if (_i == 0) {
        ck_assert_int_eq(chmod(in(&scratch, "cache/data.mdb"), 0640), 0);
    } else {
        put_elsewhere(folder, 2);
        int fd = open(in(&scratch, "cache/lock"), O_WRONLY);
        ck_assert_int_eq(pwrite(fd, "stamp x", 7, 64), 7);
        (void)close(fd);
    }
    ck_assert_int_eq(find(cabinet, 1, 100), CBN__LOOKUP_HIT);
    ck_assert_uint_eq(walked(cabinet), newest(cabinet));
    ck_assert_int_eq(events.damages, 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

static bool mount_small_disk(const char *path)
{
    return mkdir(path, 0700) == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", path, "tmpfs", 0, "size=2600k") == 0;
}

/* The file, set aside, takes most of the disk: a salvage keeps what fits beside it, and the cabinet goes on. */
START_TEST(a_salvage_on_a_full_disk)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct events events = {0};
    if (!mount_small_disk(in(&scratch, "disk"))) {
        printf("a_salvage_on_a_full_disk: skipped, no tmpfs may be mounted here (%s)\n", strerror(errno));
        return;
    }
    char folder[2 * PATH_BYTES];
    snprintf(folder, sizeof(folder), "%s/disk/cache", scratch.path);
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t i = 0; i < ENTRIES; i++)
        ck_assert_int_eq(put(cabinet, i, ENTRY_BYTES, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    int fd = open(in(&scratch, "disk/cache/data.mdb"), O_RDWR);
    ck_assert_int_eq(pwrite(fd, "\0\0\0\0", 4, 16), 4); /* the first meta page's magic number */
    (void)close(fd);
    cabinet = open_cabinet(folder, &events);
    int hits = 0, stored = 0;
    for (uint64_t i = 0; i < ENTRIES; i++)
        hits += find(cabinet, i, ENTRY_BYTES) == CBN__LOOKUP_HIT;
    ck_assert_int_ge(events.damages, 1);
    ck_assert_int_lt(hits, (int)ENTRIES);
    ck_assert_int_gt(hits, 80); /* of the disk's 650 pages the damaged file has 420 */
    for (uint64_t i = 0; i < ENTRIES; i++) {
        stored += put(cabinet, i, ENTRY_BYTES, 13000) == CBN_STATUS_OK;
        (void)find(cabinet, i, ENTRY_BYTES);
    }
    ck_assert_int_ge(stored, hits);
    cbn__cabinet_close(cabinet);
    (void)umount2(in(&scratch, "disk"), MNT_DETACH);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stamp");
    TCase *cases = tcase_create("stamp");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, what_sessions_write_is_not_walked_again);
    tcase_add_loop_test(cases, what_nobody_vouches_for_is_walked, 0, 2);
    tcase_add_test(cases, a_salvage_on_a_full_disk);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
