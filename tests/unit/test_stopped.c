/*
 * A process that is stopped (SIGSTOP, a frozen container) inside a read, a write or a build, or that forks and is
 * killed: everybody else goes on after one deadline, and when it wakes the store is whole.
 */
#include "cache_fixture.h"

#include "cache/entry.h"
#include "cache/session.h"

#define DEADLINE_MS 400u
#define SLACK_MS 1000u /* past the deadline everybody is done */
#define NS_PER_MS 1000000ull
#define BESIDE 4 /* processes beside the stopped one */
#define ROUNDS 20
#define LONG_MS 30000u
#define OWN_KEY 100u /* what the stopped process writes */

enum place { IN_READ, IN_WRITE, IN_BUILD };

static struct cbn__cabinet *open_impatient(const char *folder)
{
    struct cbn__cabinet_options options = options_for(folder, NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.lock_timeout_ms = DEADLINE_MS;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    return cabinet;
}

static struct cbn__hash hash_of(uint64_t which)
{
    struct test_key key = key_of(which);
    return cbn__hash_blob(RECORD(key));
}

/* Not committed before the session ends. */
static int put_inside(struct cbn__session *session, uint64_t which, size_t size)
{
    struct test_key record = key_of(which);
    struct cbn__hash hash = hash_of(which);
    struct cbn__store_key key = cbn__entry_key(&hash, 13);
    struct cbn__entry_facts facts = facts_of(13000);
    CBN__BUF_AUTO value = CBN__BUF_INIT;
    uint8_t payload[4096];
    fill_payload(payload, size, which);
    cbn__entry_encode(&key, RECORD(record), (struct cbn__blob){payload, size}, cbn__blob_text("log"), &facts, &value);
    MDB_val name = {sizeof(key.bytes), key.bytes}, data = {value.size, value.data};
    return mdb_put(session->txn, session->store->entries, &name, &data, 0);
}

/* Each says that it is inside and stops itself there; awake, it ends what it had begun. */
static bool stop_in_read(struct cbn__store *store, int ready)
{
    struct cbn__session session;
    if (cbn__session_read(store, LONG_MS, &session, NULL) != CBN_STATUS_OK)
        return false;
    tell(ready);
    (void)raise(SIGSTOP);
    return cbn__session_read_end(&session, 0, NULL) == CBN_STATUS_OK;
}

static bool stop_in_write(struct cbn__store *store, int ready)
{
    struct cbn__session session;
    if (cbn__session_write(store, LONG_MS, &session, NULL) != CBN_STATUS_OK)
        return false;
    int code = put_inside(&session, OWN_KEY, 3000);
    tell(ready);
    (void)raise(SIGSTOP);
    return cbn__session_write_end(&session, code, NULL) == CBN_STATUS_OK;
}

static bool stop_in_build(struct cbn__cabinet *cabinet, int ready)
{
    struct cbn__hash key = hash_of(OWN_KEY);
    struct cbn__flight flight;
    if (cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL) != CBN_STATUS_OK)
        return false;
    tell(ready);
    (void)raise(SIGSTOP);
    bool stored = put(cabinet, OWN_KEY, 3000, 13000) == CBN_STATUS_OK;
    cbn__flight_end(&flight);
    return stored;
}

static pid_t start_stopped(const char *folder, enum place place)
{
    int ready[2], status = 0;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
        struct cbn__store *store = cabinet->layers[0].store;
        bool right = place == IN_READ    ? stop_in_read(store, ready[1])
                     : place == IN_WRITE ? stop_in_write(store, ready[1])
                                         : stop_in_build(cabinet, ready[1]);
        cbn__cabinet_close(cabinet);
        _exit(right ? 0 : 1);
    }
    hear(ready[0]);
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert_msg(WIFSTOPPED(status), "wait status 0x%x", status);
    return pid;
}

static void continue_and_reap(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    reap(pid);
}

/* What a process does beside the stopped one, many times; true when every outcome was the wanted one. */
static bool go_on(struct cbn__cabinet *cabinet, uint64_t own, enum cbn__lookup found, int32_t stored)
{
    bool right = true;
    for (int i = 0; i < ROUNDS; i++)
        right = find(cabinet, 1, 3000) == found && put(cabinet, own, 500, 13000) == stored && right;
    return right;
}

/* One begins by reading and one by writing: a wait for the one side must not be forgotten on the other. */
static pid_t start_beside(const char *folder, uint64_t own, int ready, int go, enum cbn__lookup found, int32_t stored)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct cbn__cabinet *cabinet = open_impatient(folder);
    bool right = find(cabinet, 1, 3000) == CBN__LOOKUP_HIT;
    tell(ready);
    hear(go);
    if (own % 2)
        right = put(cabinet, own, 500, 13000) == stored && right;
    right = go_on(cabinet, own, found, stored) && right;
    cbn__cabinet_close(cabinet);
    _exit(right ? 0 : 1);
}

static int count_problem(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                         uint32_t layer, const char *layer_path)
{
    (void)key, (void)entry, (void)layer, (void)layer_path;
    ((int *)user)[problem != NULL]++;
    return 0;
}

static void expect_whole(const char *folder, int entries)
{
    struct events events = {0};
    int told[2] = {0};
    struct cbn__cabinet *cabinet = open_cabinet(folder, &events);
    ck_assert_int_eq(cbn__cabinet_each(cabinet, count_problem, told, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(told[1], 0);
    ck_assert_int_eq(told[0], entries);
    ck_assert_int_eq(events.damages + events.notices, 0);
    ck_assert_int_eq(put(cabinet, 50, 700, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 50, 700), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 0);
}

struct beside {
    enum place place;
    enum cbn__lookup found; /* what a read beside it gives */
    int32_t stored;         /* what a put beside it gives */
    int waits_ms;           /* 0: nobody waits for it at all */
    int entries;            /* in the end */
};

static const struct beside stopped[] = {
    {IN_READ, CBN__LOOKUP_HIT, CBN_STATUS_TIMEOUT, DEADLINE_MS, 1},
    {IN_WRITE, CBN__LOOKUP_BUSY, CBN_STATUS_TIMEOUT, DEADLINE_MS, 2},
    {IN_BUILD, CBN__LOOKUP_HIT, CBN_STATUS_OK, 0, 2 + BESIDE},
};

/* Twenty reads and puts in each of four processes cost one deadline, not twenty: measured from go to the last end. */
START_TEST(everybody_else_goes_on_after_one_deadline)
{
    const struct beside *wanted = &stopped[_i];
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    int ready[2], go[2];
    pid_t beside[BESIDE];
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(go), 0);
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, 1, 3000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    for (int i = 0; i < BESIDE; i++)
        beside[i] = start_beside(folder, 10 + (uint64_t)i, ready[1], go[0], wanted->found, wanted->stored);
    for (int i = 0; i < BESIDE; i++)
        hear(ready[0]);
    pid_t holder = start_stopped(folder, wanted->place);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(write(go[1], "gggg", BESIDE), BESIDE);
    for (int i = 0; i < BESIDE; i++)
        reap(beside[i]);
    uint64_t took_ms = (cbn__clock_monotonic_ns() - start_ns) / NS_PER_MS;
    printf("beside a process stopped in %s: %d processes, %d reads and puts each, done after %llu ms (deadline %d)\n",
           wanted->place == IN_READ    ? "a read"
           : wanted->place == IN_WRITE ? "a write"
                                       : "a build",
           BESIDE, ROUNDS, (unsigned long long)took_ms, wanted->waits_ms);
    ck_assert_uint_ge(took_ms, (uint64_t)wanted->waits_ms);
    ck_assert_uint_lt(took_ms, (uint64_t)wanted->waits_ms + SLACK_MS);
    continue_and_reap(holder);
    expect_whole(folder, wanted->entries);
}
END_TEST

static int by_size(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* A build that takes as long as it likes: hits on other keys, from the file, and builds of other keys wait for nothing.
 */
START_TEST(a_build_delays_no_other_key)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    uint64_t took_ns[1000];
    ck_assert_int_eq(put(cabinet, 1, 60000, 13000), CBN_STATUS_OK);
    pid_t builder = start_stopped(folder, IN_BUILD);
    for (int i = 0; i < 1000; i++) {
        uint64_t start_ns = cbn__clock_monotonic_ns();
        ck_assert_int_eq(find(cabinet, 1, 60000), CBN__LOOKUP_HIT);
        took_ns[i] = cbn__clock_monotonic_ns() - start_ns;
    }
    for (uint64_t i = 200; i < 300; i++) {
        struct cbn__hash key = hash_of(i);
        struct cbn__flight flight;
        bool waited = true;
        ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, &waited), CBN_STATUS_OK);
        ck_assert(!waited);
        cbn__flight_end(&flight);
    }
    qsort(took_ns, 1000, sizeof(took_ns[0]), by_size);
    printf("beside a build: a hit of 60 KB takes %llu us, 99 of 100 at most %llu us\n",
           (unsigned long long)took_ns[500] / 1000, (unsigned long long)took_ns[990] / 1000);
    ck_assert_uint_lt(took_ns[500], NS_PER_MS);
    continue_and_reap(builder);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Who waits for a build that is stopped waits for one deadline; awake, the builder ends what it began. */
START_TEST(a_stopped_build_is_waited_for_once)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    struct cbn__hash key = hash_of(OWN_KEY);
    struct cbn__flight flight;
    pid_t builder = start_stopped(folder, IN_BUILD);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, DEADLINE_MS, &flight, NULL), CBN_STATUS_TIMEOUT);
    uint64_t took_ms = (cbn__clock_monotonic_ns() - start_ns) / NS_PER_MS;
    ck_assert_uint_ge(took_ms, DEADLINE_MS);
    ck_assert_uint_lt(took_ms, DEADLINE_MS + SLACK_MS);
    ck_assert_int_eq(put(cabinet, OWN_KEY, 3000, 13000), CBN_STATUS_OK); /* built alone */
    ck_assert_int_eq(find(cabinet, OWN_KEY, 3000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    continue_and_reap(builder);
    expect_whole(folder, 1);
}
END_TEST

/* What comes while it is stopped opens after one deadline, goes on without the store, and has it again afterwards. */
START_TEST(a_newcomer_goes_on_after_one_deadline)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, 1, 3000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    pid_t holder = start_stopped(folder, (enum place)_i);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    cabinet = open_impatient(folder);
    for (int i = 0; i < ROUNDS; i++)
        ck_assert_int_eq(find(cabinet, 1, 3000), CBN__LOOKUP_BUSY);
    ck_assert_int_eq(put(cabinet, 2, 500, 13000), CBN_STATUS_TIMEOUT);
    uint64_t took_ms = (cbn__clock_monotonic_ns() - start_ns) / NS_PER_MS;
    ck_assert_uint_lt(took_ms, DEADLINE_MS + SLACK_MS);
    continue_and_reap(holder);
    ck_assert_int_eq(find(cabinet, 1, 3000), CBN__LOOKUP_HIT);
    ck_assert_int_eq(put(cabinet, 2, 500, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    expect_whole(folder, _i == IN_READ ? 2 : 3);
}
END_TEST

/* Stopped first, then killed: what it had begun never was, and nobody waits. */
START_TEST(killed_while_stopped)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    int status = 0;
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, 1, 3000, 13000), CBN_STATUS_OK);
    pid_t holder = start_stopped(folder, (enum place)_i);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(kill(holder, SIGKILL), 0);
    struct cbn__hash key = hash_of(OWN_KEY);
    struct cbn__flight flight;
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, OWN_KEY, 3000), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(put(cabinet, OWN_KEY, 3000, 13000), CBN_STATUS_OK);
    cbn__flight_end(&flight);
    ck_assert_uint_lt((cbn__clock_monotonic_ns() - start_ns) / NS_PER_MS, SLACK_MS);
    ck_assert_int_eq(waitpid(holder, &status, 0), holder);
    cbn__cabinet_close(cabinet);
    expect_whole(folder, 2);
}
END_TEST

/* The holder has a flight and the exclusive lock, forks, and is killed; its child lives on, and uses the store. */
static void hold_fork_and_wait(const char *folder, int ready, int go, int done)
{
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    struct cbn__hash key = hash_of(OWN_KEY);
    struct cbn__flight flight;
    struct cbn__session session;
    if (cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL) != CBN_STATUS_OK ||
        cbn__session_write(cabinet->layers[0].store, LONG_MS, &session, NULL) != CBN_STATUS_OK)
        _exit(1);
    (void)put_inside(&session, OWN_KEY, 3000);
    if (fork() == 0) {
        tell(ready);
        hear(go);
        bool right = find(cabinet, 1, 3000) == CBN__LOOKUP_HIT && put(cabinet, 60, 500, 13000) == CBN_STATUS_OK &&
                     cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL) == CBN_STATUS_OK;
        cbn__flight_end(&flight);
        cbn__cabinet_close(cabinet);
        (void)!write(done, right ? "r" : "w", 1);
        _exit(0);
    }
    for (;;)
        (void)pause();
}

START_TEST(forked_then_killed)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    int ready[2], go[2], done[2], status = 0;
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(go), 0);
    ck_assert_int_eq(pipe(done), 0);
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, 1, 3000, 13000), CBN_STATUS_OK);
    pid_t holder = fork();
    if (holder == 0) {
        cbn__cabinet_close(cabinet);
        hold_fork_and_wait(folder, ready[1], go[0], done[1]);
    }
    hear(ready[0]);
    ck_assert_int_eq(kill(holder, SIGKILL), 0);
    ck_assert_int_eq(waitpid(holder, &status, 0), holder);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    struct cbn__hash key = hash_of(OWN_KEY);
    struct cbn__flight flight;
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, OWN_KEY, 3000), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(put(cabinet, 2, 500, 13000), CBN_STATUS_OK);
    cbn__flight_end(&flight);
    ck_assert_uint_lt((cbn__clock_monotonic_ns() - start_ns) / NS_PER_MS, SLACK_MS);
    tell(go[1]);
    ck_assert_int_eq(read(done[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'r');
    ck_assert_int_eq(find(cabinet, 60, 500), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    expect_whole(folder, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stopped");
    TCase *cases = tcase_create("stopped");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, everybody_else_goes_on_after_one_deadline, 0, 3);
    tcase_add_test(cases, a_build_delays_no_other_key);
    tcase_add_test(cases, a_stopped_build_is_waited_for_once);
    tcase_add_loop_test(cases, a_newcomer_goes_on_after_one_deadline, IN_READ, IN_BUILD);
    tcase_add_loop_test(cases, killed_while_stopped, IN_READ, IN_BUILD + 1);
    tcase_add_test(cases, forked_then_killed);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
