/*
 * The cabinet in a process with closed standard streams, and under a bound on file sizes.
 */
#include <sys/resource.h>

#include "cache_fixture.h"

#define WORK_BYTES 70000
#define ENTRIES 6

static bool is_hit(struct cbn__cabinet *cabinet, uint64_t which)
{
    const struct cbn__compiler_rule any = {0};
    struct test_key key = key_of(which);
    struct cbn__entry entry;
    if (cbn__cabinet_find(cabinet, RECORD(key), &any, &entry) != CBN__LOOKUP_HIT)
        return false;
    cbn__entry_done(&entry);
    return true;
}

/* The child's exit status, or minus the signal that ended it. */
static int run_child(int (*body)(const char *folder), const char *folder)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(body(folder));
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static struct cbn__cabinet *open_quietly(const char *folder)
{
    struct cbn__cabinet_options options = options_for(folder, NULL);
    struct cbn__cabinet *cabinet = NULL;
    return cbn__cabinet_open(&options, &cabinet, NULL) == CBN_STATUS_OK ? cabinet : NULL;
}

static int talk_on_closed_streams(const char *folder)
{
    for (int fd = 0; fd <= 2; fd++)
        (void)close(fd);
    struct cbn__cabinet *cabinet = open_quietly(folder);
    if (!cabinet || put(cabinet, 1, WORK_BYTES, 13000) != CBN_STATUS_OK || !is_hit(cabinet, 1))
        return 1;
    struct cbn__hash key = {{9}};
    struct cbn__flight flight;
    bool waited = false;
    if (cbn__flight_begin(cabinet, &key, 1000, &flight, &waited) != CBN_STATUS_OK)
        return 2;
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) >= 0 || write(fd, "text of a daemon", 16) >= 0)
            return 3; /* something of ours stands where the process writes its output */
    if (put(cabinet, 2, WORK_BYTES, 13000) != CBN_STATUS_OK)
        return 4;
    cbn__flight_end(&flight);
    cbn__cabinet_close(cabinet);
    return 0;
}

START_TEST(closed_streams_stay_closed)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    ck_assert_int_eq(run_child(talk_on_closed_streams, folder), 0);
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_cabinet(folder, &events);
    ck_assert(is_hit(cabinet, 1) && is_hit(cabinet, 2));
    ck_assert_int_eq(events.damages, 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

static void bound_file_size(rlim_t bytes)
{
    struct rlimit limit = {bytes, bytes};
    (void)setrlimit(RLIMIT_FSIZE, &limit);
}

/* The file is larger than this process may write: it reads, and drops what it would store. */
static int work_below_the_file(const char *folder)
{
    bound_file_size(100 * 1024);
    struct cbn__cabinet *cabinet = open_quietly(folder);
    if (!cabinet || !is_hit(cabinet, 0) || !is_hit(cabinet, ENTRIES - 1))
        return 1;
    if (put(cabinet, 100, WORK_BYTES, 13000) != CBN_STATUS_LIMIT)
        return 2;
    if (is_hit(cabinet, 100) || !is_hit(cabinet, 1))
        return 3;
    cbn__cabinet_close(cabinet);
    return 0;
}

/* Set while the file is open and smaller: puts go on as far as the bound, evicting, and no further. */
static int work_up_to_the_bound(const char *folder)
{
    struct cbn__cabinet *cabinet = open_quietly(folder);
    if (!cabinet)
        return 1;
    bound_file_size(1024 * 1024);
    int stored = 0;
    for (uint64_t which = 200; which < 240; which++)
        stored += put(cabinet, which, WORK_BYTES, 13000) == CBN_STATUS_OK;
    if (stored < 10 || !is_hit(cabinet, 239))
        return 2;
    cbn__cabinet_close(cabinet);
    return 0;
}

static int start_a_file(const char *folder)
{
    bound_file_size(4096);
    struct cbn__cabinet_options options = options_for(folder, NULL);
    struct cbn__cabinet *cabinet = NULL;
    (void)cbn__cabinet_open(&options, &cabinet, NULL);
    if (!cabinet || put(cabinet, 1, WORK_BYTES, 13000) == CBN_STATUS_OK || is_hit(cabinet, 1))
        return 1;
    cbn__cabinet_close(cabinet);
    return 0;
}

START_TEST(a_bound_on_file_sizes_kills_nobody)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t which = 0; which < ENTRIES; which++)
        ck_assert_int_eq(put(cabinet, which, WORK_BYTES, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(run_child(work_below_the_file, folder), 0);
    ck_assert_int_eq(run_child(work_up_to_the_bound, folder), 0);
    struct stat file;
    ck_assert_int_eq(stat(in(&scratch, "cache/data.mdb"), &file), 0);
    ck_assert_int_le(file.st_size, 1024 * 1024);
    ck_assert_int_eq(run_child(start_a_file, in(&scratch, "fresh")), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("process limits");
    TCase *cases = tcase_create("process limits");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, closed_streams_stay_closed);
    tcase_add_test(cases, a_bound_on_file_sizes_kills_nobody);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
