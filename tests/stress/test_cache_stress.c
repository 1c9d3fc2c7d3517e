/*
 * Processes that read, write, drop and are killed on one folder: every hit is right, nothing hangs, and the file that
 * is left verifies. Also under a bound that is always full, and with equal pids in namespaces of their own.
 */
#include <sched.h>

#include "../unit/cache_fixture.h"

#define WORKERS 6
#define ROUNDS 2000
#define KILLS 100
#define KEYS 60
#define LONG_S 120

struct tally {
    int hits, stored, wrong;
};

static size_t size_of(uint64_t which)
{
    return 200 + (size_t)(which * 7919 % 30000);
}

static void tell_wrong(const char *what, int outcome, bool right)
{
    if (!right)
        fprintf(stderr, "%s: %d\n", what, outcome);
}

/* One step of a worker; what it returns must be one of the outcomes that a healthy folder gives. */
static void step(struct cbn__cabinet *cabinet, uint64_t *state, struct tally *tally)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    uint64_t which = (*state >> 40) % KEYS, kind = (*state >> 33) % 8;
    struct test_key key = key_of(which);
    if (kind == 0) {
        struct cbn__hash hash = cbn__hash_blob(RECORD(key));
        int32_t status = cbn__cabinet_drop(cabinet, &hash, NULL);
        tell_wrong("drop", status, status == CBN_STATUS_OK || status == CBN_STATUS_NOT_FOUND);
        tally->wrong += status != CBN_STATUS_OK && status != CBN_STATUS_NOT_FOUND;
    } else if (kind < 3) {
        int32_t status = put(cabinet, which, size_of(which), kind == 1 ? 13000 : 12000);
        tell_wrong("put", status, status == CBN_STATUS_OK);
        tally->stored += status == CBN_STATUS_OK;
        tally->wrong += status != CBN_STATUS_OK;
    } else {
        struct cbn__entry entry;
        enum cbn__lookup found = cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry);
        tell_wrong("find", (int)found, found == CBN__LOOKUP_HIT || found == CBN__LOOKUP_ABSENT);
        tally->hits += found == CBN__LOOKUP_HIT;
        tally->wrong += found != CBN__LOOKUP_HIT && found != CBN__LOOKUP_ABSENT;
        if (found != CBN__LOOKUP_HIT)
            return;
        tally->wrong += !payload_is(&entry, size_of(which), which);
        cbn__entry_done(&entry);
    }
}

static struct cbn__cabinet *open_bounded(const char *folder, uint64_t max_bytes, struct events *events)
{
    struct cbn__cabinet_options options = options_for(folder, events);
    struct cbn__cabinet *cabinet = NULL;
    options.lock_timeout_ms = 60000;
    options.max_bytes = max_bytes;
    if (cbn__cabinet_open(&options, &cabinet, NULL) != CBN_STATUS_OK || cbn__cabinet_layer_count(cabinet) != 1)
        _exit(3);
    return cabinet;
}

/* rounds < 0: until killed. Ends with 0 when nothing was wrong and something was hit and stored. */
static void work(const char *folder, uint64_t max_bytes, uint64_t seed, int rounds, int ready)
{
    struct events events = {0};
    struct tally tally = {0};
    (void)alarm(LONG_S);
    struct cbn__cabinet *cabinet = open_bounded(folder, max_bytes, &events);
    if (ready >= 0)
        tell(ready);
    for (int i = 0; rounds < 0 || i < rounds; i++)
        step(cabinet, &seed, &tally);
    cbn__cabinet_close(cabinet);
    /* A bound that is too small is said, once, and is no fault. */
    int other_notices = events.notices - (strstr(events.last, "were evicted and then needed again") != NULL);
    if (tally.wrong || events.damages || other_notices) {
        fprintf(stderr, "wrong %d, damages %d, notices %d: %s\n", tally.wrong, events.damages, events.notices,
                events.last);
        _exit(1);
    }
    _exit(tally.hits && tally.stored ? 0 : 4);
}

static pid_t start(const char *folder, uint64_t max_bytes, uint64_t seed, int rounds, int ready)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        work(folder, max_bytes, seed, rounds, ready);
    return pid;
}

static int count_problem(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                         uint32_t layer, const char *layer_path)
{
    (void)key, (void)entry, (void)layer, (void)layer_path;
    ((int *)user)[problem != NULL]++;
    return 0;
}

static void expect_sound(const char *folder)
{
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_cabinet(folder, &events);
    int told[2] = {0};
    ck_assert_int_eq(cbn__cabinet_each(cabinet, count_problem, told, NULL), CBN_STATUS_OK);
    ck_assert_int_gt(told[0], 0);
    ck_assert_int_eq(told[1], 0);
    ck_assert_int_eq(events.damages + events.notices, 0);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 0);
}

START_TEST(many_processes)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start(folder, 64 << 20, (uint64_t)i + 1, ROUNDS, -1);
    for (int i = 0; i < WORKERS; i++)
        reap(workers[i]);
    expect_sound(folder);
}
END_TEST

START_TEST(many_processes_on_a_full_file)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start(folder, 512 << 10, (uint64_t)i + 100, ROUNDS, -1);
    for (int i = 0; i < WORKERS; i++)
        reap(workers[i]);
    ck_assert_int_le(file_bytes(in(&scratch, "cache/data.mdb")), 512 << 10);
    expect_sound(folder);
}
END_TEST

/* Bounds that differ: each process grows or re-maps what another has grown. */
START_TEST(processes_with_different_bounds)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start(folder, (uint64_t)1 << (20 + i), (uint64_t)i + 200, ROUNDS, -1);
    for (int i = 0; i < WORKERS; i++)
        reap(workers[i]);
    expect_sound(folder);
}
END_TEST

/* Killed after a number of bytes that another process has seen it write: no clock decides where. */
START_TEST(killed_writers)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    struct events events = {0};
    struct tally tally = {0};
    uint64_t seed = 77;
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    cbn__cabinet_close(open_bounded(folder, 8 << 20, NULL));
    for (uint64_t i = 0; i < KILLS; i++) {
        pid_t victim = start(folder, 8 << 20, i + 300, -1, ready[1]);
        hear(ready[0]);
        struct cbn__cabinet *cabinet = open_bounded(folder, 8 << 20, &events);
        for (uint64_t j = 0; j <= i % 8; j++)
            step(cabinet, &seed, &tally);
        ck_assert_int_eq(kill(victim, SIGKILL), 0);
        for (uint64_t j = 0; j < 20; j++)
            step(cabinet, &seed, &tally);
        cbn__cabinet_close(cabinet);
        int status = 0;
        ck_assert_int_eq(waitpid(victim, &status, 0), victim);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "victim: wait status 0x%x", status);
    }
    ck_assert_int_eq(tally.wrong, 0);
    ck_assert_int_gt(tally.hits, 0);
    ck_assert_msg(events.damages + events.notices == 0, "%s", events.last);
    expect_sound(folder);
}
END_TEST

/* Each worker is pid 1 of a namespace of its own: two containers on one folder. */
START_TEST(equal_pids)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    pid_t keepers[4];
    for (int i = 0; i < 4; i++) {
        keepers[i] = fork();
        if (keepers[i] != 0)
            continue;
        if (unshare(CLONE_NEWPID) != 0) {
            printf("skipped: a pid namespace cannot be made here\n");
            _exit(0);
        }
        pid_t worker = fork();
        if (worker == 0) {
            if (getpid() != 1)
                _exit(5);
            work(folder, 64 << 20, (uint64_t)i + 400, ROUNDS, -1);
        }
        int status = 0;
        _exit(waitpid(worker, &status, 0) == worker && WIFEXITED(status) ? WEXITSTATUS(status) : 6);
    }
    for (int i = 0; i < 4; i++)
        reap(keepers[i]);
    if (access(folder, F_OK) == 0)
        expect_sound(folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache-stress");
    TCase *cases = tcase_create("cache-stress");
    tcase_set_timeout(cases, 200);
    tcase_add_test(cases, many_processes);
    tcase_add_test(cases, many_processes_on_a_full_file);
    tcase_add_test(cases, processes_with_different_bounds);
    tcase_add_test(cases, killed_writers);
    tcase_add_test(cases, equal_pids);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
