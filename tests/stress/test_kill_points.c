/*
 * kill -9 under load: four writers and two readers on one folder, each ended at its own n-th call to the filesystem, in
 * front of it or with half of a write done, and replaced. Nobody sees anything but a miss or a whole entry, every entry
 * left verifies, and no file is left behind.
 *
 * ctest kills 200 times. CBN_SWEEP=full in the environment does so with twenty seeds.
 */
#include "../unit/cache_fixture.h"
#include "fake/faults.h"

#define WRITERS 4u
#define WORKERS 6u
#define KILLS 200u
#define SEEDS_FULL 20u
#define KEYS 60u
#define CALLS_MOST 500u
#define BOUND_BYTES ((uint64_t)1 << 20)
#define LONG_S 120

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

static size_t size_of(uint64_t which)
{
    return 200 + (size_t)(which * 7919 % 30000);
}

static void need(bool right, const char *what, int64_t value)
{
    if (right)
        return;
    fprintf(stderr, "%s: %lld\n", what, (long long)value);
    _exit(1);
}

static void read_one(struct cbn__cabinet *cabinet, uint64_t which)
{
    struct test_key key = key_of(which);
    struct cbn__entry entry;
    enum cbn__lookup found = cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry);
    need(found == CBN__LOOKUP_HIT || found == CBN__LOOKUP_ABSENT, "find", found);
    if (found != CBN__LOOKUP_HIT)
        return;
    need(payload_is(&entry, size_of(which), which), "payload", (int64_t)which);
    cbn__entry_done(&entry);
}

static void write_one(struct cbn__cabinet *cabinet, uint64_t which, uint64_t kind)
{
    struct test_key key = key_of(which);
    struct cbn__hash hash = cbn__hash_blob(RECORD(key));
    int32_t status = kind == 0   ? cbn__cabinet_drop(cabinet, &hash, NULL)
                     : kind == 1 ? cbn__cabinet_pin(cabinet, &hash, which % 8 == 0, NULL)
                     : kind == 2 ? cbn__cabinet_compact(cabinet, NULL)
                                 : put(cabinet, which, size_of(which), 13000);
    bool missing = kind < 2 && status == CBN_STATUS_NOT_FOUND;
    bool attended = kind == 2 && status == CBN_STATUS_TIMEOUT; /* others have it open */
    need(status == CBN_STATUS_OK || missing || attended, "write", status);
}

static struct cbn__cabinet *open_bounded(const char *folder, struct events *events)
{
    struct cbn__cabinet_options options = options_for(folder, events);
    struct cbn__cabinet *cabinet = NULL;
    options.lock_timeout_ms = 60000;
    options.max_bytes = BOUND_BYTES;
    int32_t status = cbn__cabinet_open(&options, &cabinet, NULL);
    need(status == CBN_STATUS_OK && cbn__cabinet_layer_count(cabinet) == 1, "open", status);
    return cabinet;
}

/* Until it is killed. Opens again now and then, so that openings and closings are hit too. */
static void work(const char *folder, uint64_t seed, bool writes)
{
    struct events events = {0};
    (void)alarm(LONG_S);
    faults_arm(&(struct fault_plan){1 + (uint32_t)(draw(&seed) % CALLS_MOST), draw(&seed) % 2 ? FAULT_KILL : FAULT_TEAR,
                                    false});
    for (;;) {
        struct cbn__cabinet *cabinet = open_bounded(folder, &events);
        for (uint64_t i = 10 + draw(&seed) % 30; i > 0; i--) {
            uint64_t which = draw(&seed) % KEYS, kind = draw(&seed) % 16;
            if (writes && kind < 10)
                write_one(cabinet, which, kind);
            else
                read_one(cabinet, which);
        }
        cbn__cabinet_close(cabinet);
        need(events.damages == 0, events.last, events.damages);
    }
}

static pid_t start(const char *folder, uint64_t seed, bool writes)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        work(folder, seed, writes);
    return pid;
}

static int count_problem(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                         uint32_t layer, const char *layer_path)
{
    (void)key, (void)entry, (void)layer, (void)layer_path;
    ((int *)user)[problem != NULL]++;
    return 0;
}

static int expect_whole(const char *folder)
{
    struct events events = {0};
    int told[2] = {0};
    struct cbn__cabinet *cabinet = open_cabinet(folder, &events);
    ck_assert_int_eq(cbn__cabinet_each(cabinet, count_problem, told, NULL), CBN_STATUS_OK);
    ck_assert_int_gt(told[0], 0);
    ck_assert_int_eq(told[1], 0);
    ck_assert_msg(events.damages + events.notices == 0, "%s", events.last);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged"), 0);
    ck_assert_int_eq(count_files(folder, "data.mdb.compact"), 0);
    ck_assert_int_eq(count_files(folder, ""), 2);
    return told[0];
}

static void kill_under_load(uint32_t kills, uint64_t seed)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    char folder[2 * PATH_BYTES];
    pid_t workers[WORKERS];
    (void)snprintf(folder, sizeof(folder), "%s/cache", scratch.path);
    for (uint32_t i = 0; i < WORKERS; i++)
        workers[i] = start(folder, seed + i, i < WRITERS);
    uint32_t started = WORKERS;
    for (uint32_t killed = 0; killed < kills; killed++) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, 0);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "worker: wait status 0x%x", (unsigned)status);
        for (uint32_t i = 0; i < WORKERS; i++)
            if (workers[i] == pid && started < kills)
                workers[i] = start(folder, seed + 1000 * started++, i < WRITERS);
    }
    int entries = expect_whole(folder);
    printf("%u processes killed: %d entries, all whole\n", kills, entries);
    (void)fflush(stdout);
}

START_TEST(killed_at_any_call)
{
    const char *wanted = getenv("CBN_SWEEP");
    const bool full = wanted && strcmp(wanted, "full") == 0;
    for (uint64_t seed = 0; seed < (full ? SEEDS_FULL : 1); seed++)
        kill_under_load(KILLS, 4711 + seed * 1000003);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kill-points");
    TCase *cases = tcase_create("kill-points");
    tcase_set_timeout(cases, getenv("CBN_SWEEP") ? 3600 : 240);
    tcase_add_test(cases, killed_at_any_call);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
