/*
 * Single flight: one builder a key among threads and processes; other keys pass; death and deadlines free the others.
 */
#include "cache_fixture.h"

#include <pthread.h>

#define LONG_MS 30000u
#define NS_PER_MS 1000000ull
#define THREADS 16
#define PROCESSES 8

static struct cbn__hash hash_of(uint64_t which)
{
    struct test_key key = key_of(which);
    return cbn__hash_blob(RECORD(key));
}

struct team {
    struct cbn__cabinet *cabinet;
    pthread_barrier_t start;
    atomic_int builds, hits, waits;
};

/* What a dispatcher does on a miss. The builder stays inside until every other one is known to have begun. */
static void *fly(void *user)
{
    struct team *team = user;
    struct cbn__hash key = hash_of(1);
    struct cbn__flight flight;
    bool waited = false;
    (void)pthread_barrier_wait(&team->start);
    if (cbn__flight_begin(team->cabinet, &key, LONG_MS, &flight, &waited) != CBN_STATUS_OK)
        return NULL;
    atomic_fetch_add(&team->waits, waited);
    if (find(team->cabinet, 1, 1000) == CBN__LOOKUP_HIT) {
        atomic_fetch_add(&team->hits, 1);
    } else {
        atomic_fetch_add(&team->builds, 1);
        (void)put(team->cabinet, 1, 1000, 13000);
    }
    cbn__flight_end(&flight);
    return NULL;
}

START_TEST(one_builder_among_threads)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct team team = {.cabinet = open_cabinet(in(&scratch, "cache"), NULL)};
    pthread_t threads[THREADS];
    ck_assert_int_eq(pthread_barrier_init(&team.start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, fly, &team), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(atomic_load(&team.builds), 1);
    ck_assert_int_eq(atomic_load(&team.hits), THREADS - 1);
    cbn__cabinet_close(team.cabinet);
}
END_TEST

/* Eight processes behind a barrier of pipes; each writes 'b' for a build or 'h' for a hit. */
static void fly_in_process(const char *folder, int ready, int go, int result)
{
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    struct cbn__hash key = hash_of(1);
    struct cbn__flight flight;
    char byte = 'x';
    tell(ready);
    if (read(go, &byte, 1) != 1 || cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL) != CBN_STATUS_OK)
        _exit(1);
    bool hit = find(cabinet, 1, 1000) == CBN__LOOKUP_HIT;
    if (!hit && put(cabinet, 1, 1000, 13000) != CBN_STATUS_OK)
        _exit(1);
    cbn__flight_end(&flight);
    if (write(result, hit ? "h" : "b", 1) != 1)
        _exit(1);
    cbn__cabinet_close(cabinet);
    _exit(0);
}

START_TEST(one_builder_among_processes)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    int ready[2], go[2], result[2];
    pid_t children[PROCESSES];
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(go), 0);
    ck_assert_int_eq(pipe(result), 0);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0)
            fly_in_process(folder, ready[1], go[0], result[1]);
    }
    for (int i = 0; i < PROCESSES; i++)
        hear(ready[0]);
    ck_assert_int_eq(write(go[1], "gggggggg", PROCESSES), PROCESSES);
    int builds = 0;
    for (int i = 0; i < PROCESSES; i++) {
        char byte;
        ck_assert_int_eq(read(result[0], &byte, 1), 1);
        builds += byte == 'b';
        reap(children[i]);
    }
    ck_assert_int_eq(builds, 1);
}
END_TEST

/* A child that holds the flight of key 1 until it is told to end it, or is killed. */
static pid_t start_holder(const char *folder, int ready, int go)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    struct cbn__hash key = hash_of(1);
    struct cbn__flight flight;
    char byte;
    if (cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL) != CBN_STATUS_OK)
        _exit(1);
    tell(ready);
    if (read(go, &byte, 1) != 1)
        _exit(1);
    cbn__flight_end(&flight);
    cbn__cabinet_close(cabinet);
    _exit(0);
}

struct held {
    int ready[2], go[2];
    pid_t pid;
};

static struct held hold(const char *folder)
{
    struct held held;
    ck_assert_int_eq(pipe(held.ready), 0);
    ck_assert_int_eq(pipe(held.go), 0);
    held.pid = start_holder(folder, held.ready[1], held.go[0]);
    hear(held.ready[0]);
    return held;
}

START_TEST(a_deadline_and_another_key)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct held held = hold(folder);
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    struct cbn__hash key = hash_of(1), other = hash_of(2);
    struct cbn__flight flight, second;
    bool waited = false;
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 150, &flight, &waited), CBN_STATUS_TIMEOUT);
    uint64_t waited_ns = cbn__clock_monotonic_ns() - start_ns;
    ck_assert(waited && !flight.held);
    ck_assert_uint_ge(waited_ns, 150 * NS_PER_MS);
    ck_assert_uint_lt(waited_ns, 2000 * NS_PER_MS);
    cbn__flight_end(&flight);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &other, 150, &second, &waited), CBN_STATUS_OK);
    ck_assert(!waited && second.held);
    /* The flight is no lock of the data. */
    ck_assert_int_eq(put(cabinet, 1, 100, 13000), CBN_STATUS_OK);
    cbn__flight_end(&second);
    tell(held.go[1]);
    reap(held.pid);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, &waited), CBN_STATUS_OK);
    cbn__flight_end(&flight);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_killed_builder_is_followed_at_once)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct held held = hold(folder);
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    struct cbn__hash key = hash_of(1);
    struct cbn__flight flight;
    int status = 0;
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 50, &flight, NULL), CBN_STATUS_TIMEOUT);
    ck_assert_int_eq(kill(held.pid, SIGKILL), 0);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL), CBN_STATUS_OK);
    ck_assert_uint_lt(cbn__clock_monotonic_ns() - start_ns, 1000 * NS_PER_MS);
    ck_assert_int_eq(waitpid(held.pid, &status, 0), held.pid);
    cbn__flight_end(&flight);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(deadlines_within_a_process)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    struct cbn__cabinet *same = open_cabinet(in(&scratch, "cache"), NULL);
    struct cbn__hash key = hash_of(1);
    struct cbn__flight first, second;
    bool waited = true;
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 50, &first, &waited), CBN_STATUS_OK);
    ck_assert(!waited);
    ck_assert_int_eq(cbn__flight_begin(same, &key, 50, &second, &waited), CBN_STATUS_TIMEOUT);
    ck_assert(waited);
    cbn__flight_end(&first);
    cbn__flight_end(&first); /* twice is once */
    ck_assert_int_eq(cbn__flight_begin(same, &key, 50, &second, &waited), CBN_STATUS_OK);
    cbn__flight_end(&second);
    cbn__cabinet_close(same);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(without_an_overlay_within_the_cabinet)
{
    struct cbn__cabinet_options options = options_for(NULL, NULL);
    struct cbn__cabinet *cabinet = NULL;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    struct cbn__hash key = hash_of(1);
    struct cbn__flight first, second;
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 50, &first, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(first.fd, -1);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 50, &second, NULL), CBN_STATUS_TIMEOUT);
    cbn__flight_end(&first);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 50, &second, NULL), CBN_STATUS_OK);
    cbn__flight_end(&second);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_folder_that_cannot_carry_the_lock)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(unlink(in(&scratch, "cache/lock")), 0);
    ck_assert_int_eq(mkdir(in(&scratch, "cache/lock"), 0700), 0);
    struct cbn__hash key = hash_of(1);
    struct cbn__flight first, second;
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 50, &first, NULL), CBN_STATUS_IO);
    ck_assert(first.held);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 50, &second, NULL), CBN_STATUS_TIMEOUT);
    cbn__flight_end(&first);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Stopped inside its put, a builder holds the store's lock too: that lock's deadline ends both waits. */
START_TEST(a_builder_stopped_in_its_put_costs_one_deadline)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), NULL);
    struct cbn__cabinet *cabinet = NULL;
    struct cbn__hash key = hash_of(1), other = hash_of(2);
    struct cbn__flight flight;
    options.lock_timeout_ms = 300;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    int fd = open(in(&scratch, "cache/lock"), O_RDWR);
    off_t byte = CBN__LOCK_FLIGHT_BYTES + (off_t)(cbn__load_u64(key.bytes) >> 3);
    ck_assert_int_eq(cbn__lock_poll(fd, F_WRLCK, byte, 0, 1, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__lock_poll(fd, F_WRLCK, CBN__LOCK_DATA_BYTE, 0, 1, NULL), CBN_STATUS_OK);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(cbn__flight_begin(cabinet, &other, LONG_MS, &flight, NULL), CBN_STATUS_OK);
    cbn__flight_end(&flight);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL), CBN_STATUS_TIMEOUT);
    ck_assert_uint_ge(cbn__clock_monotonic_ns() - start_ns, 300 * NS_PER_MS);
    ck_assert_int_eq(find(cabinet, 1, 1000), CBN__LOOKUP_BUSY);
    ck_assert_int_eq(put(cabinet, 1, 1000, 13000), CBN_STATUS_TIMEOUT);
    ck_assert_uint_lt(cbn__clock_monotonic_ns() - start_ns, 1300 * NS_PER_MS);
    (void)close(fd);
    ck_assert_int_eq(put(cabinet, 1, 1000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* A flight that is under way at a fork is the parent's: the child neither holds it nor can end it. */
START_TEST(fork_during_a_flight)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    struct cbn__hash key = hash_of(1);
    struct cbn__flight flight, again;
    int go[2];
    ck_assert_int_eq(pipe(go), 0);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 50, &flight, NULL), CBN_STATUS_OK);
    pid_t child = fork();
    if (child == 0) {
        cbn__flight_end(&flight);
        _exit(cbn__flight_begin(cabinet, &key, 50, &again, NULL) == CBN_STATUS_TIMEOUT ? 0 : 1);
    }
    reap(child);
    cbn__flight_end(&flight);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 50, &flight, NULL), CBN_STATUS_OK);
    child = fork();
    if (child == 0) {
        char byte;
        _exit(read(go[0], &byte, 1) == 1 ? 0 : 1);
    }
    cbn__flight_end(&flight);
    /* The child lives on and holds nothing. */
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 50, &flight, NULL), CBN_STATUS_OK);
    cbn__flight_end(&flight);
    tell(go[1]);
    reap(child);
    cbn__cabinet_close(cabinet);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flight");
    TCase *cases = tcase_create("flight");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, one_builder_among_threads);
    tcase_add_test(cases, one_builder_among_processes);
    tcase_add_test(cases, a_deadline_and_another_key);
    tcase_add_test(cases, a_killed_builder_is_followed_at_once);
    tcase_add_test(cases, deadlines_within_a_process);
    tcase_add_test(cases, without_an_overlay_within_the_cabinet);
    tcase_add_test(cases, a_folder_that_cannot_carry_the_lock);
    tcase_add_test(cases, a_builder_stopped_in_its_put_costs_one_deadline);
    tcase_add_test(cases, fork_during_a_flight);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
