/*
 * What a container changes below a process: its mounts, its pid, what it can read of /proc.
 */
#include "cache_fixture.h"

#include <sched.h>
#include <sys/mount.h>

/* One folder mounted at two places: one environment, as by a link or by /c/. */
START_TEST(a_bind_mount_is_the_same_folder)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache"), *other = in(&scratch, "other");
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount(folder, other, NULL, MS_BIND, NULL) != 0) {
            printf("skipped: nothing can be mounted here\n");
            _exit(0);
        }
        struct cbn__cabinet *first = open_cabinet(folder, NULL), *second = open_cabinet(other, NULL);
        bool right = first->layers[0].store == second->layers[0].store && first->layers[0].store->refs == 2 &&
                     put(first, 1, 300, 13000) == CBN_STATUS_OK && find(second, 1, 300) == CBN__LOOKUP_HIT;
        cbn__cabinet_close(first);
        right = right && put(second, 2, 300, 13000) == CBN_STATUS_OK && find(second, 2, 300) == CBN__LOOKUP_HIT;
        cbn__cabinet_close(second);
        _exit(right ? 0 : 1);
    }
    reap(child);
}
END_TEST

static bool hide_boot_id(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/proc/sys/kernel/random", "tmpfs", MS_RDONLY, NULL) == 0;
}

/* Keeps its mark in the folder's lock file until there is a byte to read, or no more. */
static void keep_mark(const char *folder, bool hidden, int ready, int done)
{
    char byte;
    struct events events = {0};
    if (hidden && !hide_boot_id())
        _exit(77);
    struct cbn__cabinet *cabinet = open_cabinet(folder, &events);
    bool right = put(cabinet, 1, 300, 13000) == CBN_STATUS_OK;
    tell(ready);
    right = read(done, &byte, 1) >= 0 && right;
    cbn__cabinet_close(cabinet);
    _exit(right && events.notices == 0 ? 0 : 1);
}

/* One opens the folder where no boot id can be read, one where it can, the former first or last. */
static int open_beside(const char *folder, bool hidden_first)
{
    int ready[2], done[2], status = -1;
    char byte;
    if (pipe(ready) != 0 || pipe(done) != 0)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        (void)close(done[1]);
        keep_mark(folder, hidden_first, ready[1], done[0]);
    }
    (void)close(ready[1]);
    struct events events = {0};
    bool right = read(ready[0], &byte, 1) == 1, hidden = hidden_first || hide_boot_id();
    if (right && hidden) {
        struct cbn__cabinet *cabinet = open_cabinet(folder, &events);
        right = find(cabinet, 1, 300) == CBN__LOOKUP_HIT && put(cabinet, 2, 300, 13000) == CBN_STATUS_OK &&
                events.notices == 0;
        cbn__cabinet_close(cabinet);
    }
    (void)close(done[1]);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 3;
    return WEXITSTATUS(status) ? WEXITSTATUS(status) : !hidden ? 77 : !right;
}

START_TEST(a_container_that_cannot_read_the_boot_id)
{
    SCRATCH_AUTO scratch = scratch_make();
    int status = 0;
    pid_t keeper = fork();
    if (keeper == 0)
        _exit(open_beside(in(&scratch, "cache"), _i == 1));
    ck_assert_int_eq(waitpid(keeper, &status, 0), keeper);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        printf("skipped: nothing can be mounted over /proc here\n");
    else
        ck_assert_int_eq(status, 0);
}
END_TEST

/* Process 1 of a container makes a container: the child has the parent's pid and none of its locks or maps. */
START_TEST(a_child_with_the_pid_of_its_parent)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    pid_t keeper = fork();
    if (keeper == 0) {
        if (unshare(CLONE_NEWPID) != 0) {
            printf("skipped: a pid namespace cannot be made here\n");
            _exit(0);
        }
        pid_t parent = fork();
        if (parent == 0) {
            struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
            struct cbn__hash key = {{9}};
            struct cbn__flight flight, other;
            bool waited = false;
            bool right = getpid() == 1 && put(cabinet, 1, 300, 13000) == CBN_STATUS_OK &&
                         cbn__flight_begin(cabinet, &key, 1000, &flight, &waited) == CBN_STATUS_OK &&
                         unshare(CLONE_NEWPID) == 0;
            pid_t child = fork();
            if (child == 0) {
                right = right && getpid() == 1 && find(cabinet, 1, 300) == CBN__LOOKUP_HIT &&
                        put(cabinet, 2, 300, 13000) == CBN_STATUS_OK &&
                        cbn__flight_begin(cabinet, &key, 10, &other, &waited) == CBN_STATUS_TIMEOUT;
                cbn__cabinet_close(cabinet);
                _exit(right ? 0 : 1);
            }
            int status = -1;
            right =
                right && waitpid(child, &status, 0) == child && status == 0 && find(cabinet, 2, 300) == CBN__LOOKUP_HIT;
            cbn__flight_end(&flight);
            cbn__cabinet_close(cabinet);
            _exit(right ? 0 : 1);
        }
        int status = -1;
        _exit(waitpid(parent, &status, 0) == parent && status == 0 ? 0 : 1);
    }
    reap(keeper);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("containers");
    TCase *cases = tcase_create("containers");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_bind_mount_is_the_same_folder);
    tcase_add_loop_test(cases, a_container_that_cannot_read_the_boot_id, 0, 2);
    tcase_add_test(cases, a_child_with_the_pid_of_its_parent);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
