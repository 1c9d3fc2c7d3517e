/*
 * Builds that a compiler refuses while others wait for them: one more is tried, then those who waited and have that
 * compiler get the error. Who did not wait, or has another, tries again. Among threads, among processes,
 * and in a cabinet that has no folder.
 */
#include "cache_fixture.h"

#include <pthread.h>
#include <sys/syscall.h>

#include "cache/failure.h"

#define LONG_MS 60000u
#define WAITERS 6
#define WORDS "told to fail"
#define COMPILER 13000u
#define OLDER 12000u

enum outcome { HIT = 'h', BUILT = 'b', FAILED = 'f', INHERITED = 'i', WRONG = 'w' };

static struct cbn__hash hash_of(uint64_t which)
{
    struct test_key key = key_of(which);
    return cbn__hash_blob(RECORD(key));
}

static void fail_build(struct cbn__cabinet *cabinet, const struct cbn__hash *key, uint32_t compiler)
{
    struct cbn_error error = {.status = CBN_STATUS_COMPILE_FAILED, .domain = CBN_DOMAIN_NVRTC, .native_code = 6};
    (void)snprintf(error.message, sizeof(error.message), WORDS);
    cbn__flight_fail(cabinet, key, compiler, &error);
}

static bool inherits(struct cbn__cabinet *cabinet, const struct cbn__hash *key, uint32_t compiler)
{
    struct cbn_error error = {0};
    if (!cbn__flight_inherit(cabinet, key, compiler, &error))
        return false;
    ck_assert_int_eq(error.status, CBN_STATUS_COMPILE_FAILED);
    ck_assert_uint_eq(error.domain, CBN_DOMAIN_NVRTC);
    ck_assert_int_eq(error.native_code, 6);
    ck_assert_str_eq(error.message, WORDS);
    return true;
}

/* What a dispatcher does on a miss, with a build that fails or not. */
static enum outcome miss(struct cbn__cabinet *cabinet, bool build_fails)
{
    struct cbn__hash key = hash_of(1);
    struct cbn__flight flight;
    enum outcome outcome = INHERITED;
    if (cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL) != CBN_STATUS_OK)
        return WRONG;
    if (find(cabinet, 1, 1000) == CBN__LOOKUP_HIT) {
        outcome = HIT;
    } else if (!inherits(cabinet, &key, COMPILER)) {
        outcome = build_fails ? FAILED : BUILT;
        if (build_fails)
            fail_build(cabinet, &key, COMPILER);
        else if (put(cabinet, 1, 1000, 13000) != CBN_STATUS_OK)
            outcome = WRONG;
    }
    cbn__flight_end(&flight);
    return outcome;
}

/* The only sleep of a waiter is in its wait for the flight: seen asleep, it has begun to wait. */
static void await_sleep(pid_t process, pid_t thread)
{
    char path[64], text[512], state = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)process, (int)thread);
    while (state != 'S') {
        FILE *file = fopen(path, "r");
        ck_assert_ptr_nonnull(file);
        ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
        (void)fclose(file);
        state = strrchr(text, ')')[2];
    }
}

struct waiter {
    struct cbn__cabinet *cabinet;
    bool build_fails;
    int ready;
    pid_t thread;
    enum outcome outcome;
};

static void *wait_and_miss(void *user)
{
    struct waiter *waiter = user;
    waiter->thread = (pid_t)syscall(SYS_gettid);
    tell(waiter->ready);
    waiter->outcome = miss(waiter->cabinet, waiter->build_fails);
    return NULL;
}

static int count(const enum outcome *outcomes, enum outcome wanted)
{
    int sum = 0;
    for (int i = 0; i < WAITERS; i++)
        sum += outcomes[i] == wanted;
    return sum;
}

/* The calling thread builds first and fails; the waiters' builds fail too, or not. */
static void fail_before_threads(struct cbn__cabinet *cabinet, bool builds_fail, enum outcome ret_outcomes[WAITERS])
{
    struct cbn__hash key = hash_of(1);
    struct cbn__flight flight;
    struct waiter waiters[WAITERS];
    pthread_t threads[WAITERS];
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL), CBN_STATUS_OK);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.cabinet = cabinet, .build_fails = builds_fail, .ready = ready[1]};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, wait_and_miss, &waiters[i]), 0);
    }
    for (int i = 0; i < WAITERS; i++)
        hear(ready[0]);
    for (int i = 0; i < WAITERS; i++)
        await_sleep(getpid(), waiters[i].thread);
    fail_build(cabinet, &key, COMPILER);
    cbn__flight_end(&flight);
    for (int i = 0; i < WAITERS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ret_outcomes[i] = waiters[i].outcome;
    }
}

static struct cbn__cabinet *open_kind(const struct scratch *scratch, bool has_folder)
{
    return open_cabinet(has_folder ? in(scratch, "cache") : NULL, NULL);
}

/* _i: with a folder, or in memory only. */
START_TEST(threads_that_waited_get_the_second_error)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_kind(&scratch, _i);
    enum outcome outcomes[WAITERS];
    for (int round = 0; round < 3; round++) {
        fail_before_threads(cabinet, true, outcomes);
        ck_assert_int_eq(count(outcomes, FAILED), 1);
        ck_assert_int_eq(count(outcomes, INHERITED), WAITERS - 1);
        ck_assert_int_eq(miss(cabinet, true), FAILED); /* who did not wait tries again */
    }
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(one_failure_is_tried_again_once)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_kind(&scratch, true);
    enum outcome outcomes[WAITERS];
    fail_before_threads(cabinet, false, outcomes);
    ck_assert_int_eq(count(outcomes, BUILT), 1);
    ck_assert_int_eq(count(outcomes, HIT), WAITERS - 1);
    cbn__cabinet_close(cabinet);
}
END_TEST

static pid_t start_waiter(const char *folder, int ready, int result)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    tell(ready);
    char outcome = (char)miss(cabinet, true);
    cbn__cabinet_close(cabinet);
    _exit(write(result, &outcome, 1) == 1 ? 0 : 1);
}

START_TEST(processes_that_waited_get_the_second_error)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    struct cbn__hash key = hash_of(1);
    struct cbn__flight flight;
    pid_t waiters[WAITERS];
    enum outcome outcomes[WAITERS];
    int ready[2], result[2];
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(result), 0);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL), CBN_STATUS_OK);
    for (int i = 0; i < WAITERS; i++)
        waiters[i] = start_waiter(folder, ready[1], result[1]);
    for (int i = 0; i < WAITERS; i++)
        hear(ready[0]);
    for (int i = 0; i < WAITERS; i++)
        await_sleep(waiters[i], waiters[i]);
    fail_build(cabinet, &key, COMPILER);
    cbn__flight_end(&flight);
    for (int i = 0; i < WAITERS; i++) {
        char outcome = 0;
        ck_assert_int_eq(read(result[0], &outcome, 1), 1);
        outcomes[i] = (enum outcome)outcome;
    }
    for (int i = 0; i < WAITERS; i++)
        reap(waiters[i]);
    ck_assert_int_eq(count(outcomes, FAILED), 1);
    ck_assert_int_eq(count(outcomes, INHERITED), WAITERS - 1);
    ck_assert_int_eq(miss(cabinet, false), BUILT);
    ck_assert_int_eq(miss(cabinet, false), HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

static pid_t start_impatient(const char *folder, int ready)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    struct cbn__hash key = hash_of(1);
    struct cbn__flight flight;
    tell(ready);
    bool alone = cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL) == CBN_STATUS_TIMEOUT && !flight.held;
    cbn__flight_end(&flight);
    cbn__cabinet_close(cabinet);
    _exit(alone ? 0 : 1);
}

/* What could not be stored helps nobody: those who waited build, all at once. */
START_TEST(a_build_that_was_not_stored_is_waited_for_no_longer)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct cbn__cabinet_options options = options_for(folder, NULL);
    struct cbn__cabinet *cabinet = NULL;
    struct cbn__hash key = hash_of(1);
    struct cbn__flight flight;
    pid_t waiters[WAITERS];
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    options.max_bytes = 1 << 20;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL), CBN_STATUS_OK);
    for (int i = 0; i < WAITERS; i++)
        waiters[i] = start_impatient(folder, ready[1]);
    for (int i = 0; i < WAITERS; i++)
        hear(ready[0]);
    for (int i = 0; i < WAITERS; i++)
        await_sleep(waiters[i], waiters[i]);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(put(cabinet, 1, 2 << 20, 13000), CBN_STATUS_LIMIT);
    cbn__flight_end(&flight);
    for (int i = 0; i < WAITERS; i++)
        reap(waiters[i]);
    ck_assert_uint_lt((cbn__clock_monotonic_ns() - start_ns) / 1000000u, 2000);
    /* Who comes now waits again. */
    ck_assert_int_eq(miss(cabinet, false), BUILT);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* A store whose lock is not to be had: no build is waited for, no other key's and not this one's. */
START_TEST(beside_a_stalled_store_nobody_waits_for_a_build)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), NULL);
    struct cbn__cabinet *cabinet = NULL;
    struct cbn__hash key = hash_of(1);
    struct cbn__flight flight;
    options.lock_timeout_ms = 50;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    int fd = open(in(&scratch, "cache/lock"), O_RDWR);
    off_t byte = CBN__LOCK_FLIGHT_BYTES + (off_t)(cbn__load_u64(key.bytes) >> 3);
    ck_assert_int_eq(cbn__lock_poll(fd, F_WRLCK, byte, 0, 1, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, 50, &flight, NULL), CBN_STATUS_TIMEOUT);
    ck_assert_int_eq(cbn__lock_poll(fd, F_WRLCK, CBN__LOCK_DATA_BYTE, 0, 1, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 1000), CBN__LOOKUP_BUSY);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL), CBN_STATUS_TIMEOUT);
    ck_assert_uint_lt((cbn__clock_monotonic_ns() - start_ns) / 1000000u, 1000);
    (void)close(fd);
    ck_assert_int_eq(miss(cabinet, false), BUILT);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Only the holder of a flight says and hears anything. */
START_TEST(without_a_flight_nothing_is_said)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_kind(&scratch, true);
    struct cbn__hash key = hash_of(1);
    for (int i = 0; i < 3; i++)
        fail_build(cabinet, &key, COMPILER);
    ck_assert(!inherits(cabinet, &key, COMPILER));
    ck_assert_int_lt(file_bytes(in(&scratch, "cache/lock")), CBN__FAILURE_FIRST_BYTE); /* no slot was written */
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_busy_key_is_seen)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_kind(&scratch, _i);
    struct cbn__hash key = hash_of(1), other = hash_of(2);
    struct cbn__flight flight;
    ck_assert(!cbn__flight_is_busy(cabinet, &key));
    ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL), CBN_STATUS_OK);
    ck_assert(cbn__flight_is_busy(cabinet, &key));
    ck_assert(!cbn__flight_is_busy(cabinet, &other));
    if (_i) { /* from another process too */
        pid_t child = fork();
        if (child == 0)
            _exit(cbn__flight_is_busy(cabinet, &key) && !cbn__flight_is_busy(cabinet, &other) ? 0 : 1);
        reap(child);
    }
    cbn__flight_end(&flight);
    ck_assert(!cbn__flight_is_busy(cabinet, &key));
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Told in turn by compilers of a flight's holder; 0 ends. Who asks began to wait before. */
START_TEST(a_compiler_is_believed_of_itself_only)
{
    static const struct {
        uint32_t told[6];
        bool own, older; /* believed by who has COMPILER, by who has OLDER */
    } forms[] = {
        {{COMPILER}, false, false},
        {{COMPILER, COMPILER}, true, false},
        {{OLDER, OLDER}, false, true},
        {{OLDER, COMPILER}, false, false},
        {{COMPILER, OLDER, COMPILER, OLDER}, false, false},
        {{COMPILER, OLDER, OLDER}, false, true},
        {{OLDER, OLDER, COMPILER, COMPILER}, true, false},
    };
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_kind(&scratch, _i);
    for (size_t form = 0; form < sizeof(forms) / sizeof(forms[0]); form++) {
        struct cbn__flight flight;
        struct cbn__hash key = hash_of(100 + form);
        ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL), CBN_STATUS_OK);
        for (const uint32_t *told = forms[form].told; *told; told++)
            fail_build(cabinet, &key, *told);
        ck_assert_msg(inherits(cabinet, &key, COMPILER) == forms[form].own, "form %zu", form);
        ck_assert_msg(inherits(cabinet, &key, OLDER) == forms[form].older, "form %zu", form);
        ck_assert(!inherits(cabinet, &key, 0));
        fail_build(cabinet, &key, 0); /* says nothing */
        ck_assert(!inherits(cabinet, &key, 0));
        ck_assert_int_eq(inherits(cabinet, &key, COMPILER), forms[form].own);
        cbn__flight_end(&flight);
        /* Who comes now believes none of it. */
        ck_assert_int_eq(cbn__flight_begin(cabinet, &key, LONG_MS, &flight, NULL), CBN_STATUS_OK);
        ck_assert(!inherits(cabinet, &key, COMPILER) && !inherits(cabinet, &key, OLDER));
        cbn__flight_end(&flight);
    }
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(any_changed_byte_of_a_slot_counts)
{
    struct cbn__hash key = hash_of(1), other = hash_of(2);
    struct cbn__failure failure = {.count = 7, .compiler = COMPILER}, again;
    uint8_t bytes[CBN__FAILURE_BYTES] = {0};
    ck_assert(cbn__failure_decode(bytes, &key, &again));
    ck_assert_uint_eq(again.count, 0);
    failure.error = (struct cbn_error){.status = 6, .domain = 3, .native_code = -5};
    memset(failure.error.message, 'x', CBN_ERROR_MESSAGE_BYTES - 1);
    cbn__failure_encode(&key, &failure, bytes);
    ck_assert(cbn__failure_decode(bytes, &key, &again));
    ck_assert_uint_eq(again.count, 7);
    ck_assert_uint_eq(again.compiler, COMPILER);
    ck_assert_mem_eq(&again.error, &failure.error, sizeof(again.error));
    ck_assert(cbn__failure_decode(bytes, &other, &again));
    ck_assert_uint_eq(again.count, 0);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] ^= (uint8_t)(1 + i % 255);
        ck_assert_msg(!cbn__failure_decode(bytes, &key, &again), "byte %zu", i);
        bytes[i] ^= (uint8_t)(1 + i % 255);
    }
}
END_TEST

/* A slot that was damaged, or written past what this process may write: nothing is handed on, the build is tried. */
START_TEST(a_slot_that_cannot_be_read_says_nothing)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_kind(&scratch, true);
    struct cbn__hash key = hash_of(1);
    int fd = open(in(&scratch, "cache/lock"), O_RDWR);
    struct cbn__failure failure = {.count = 1}, read_back;
    cbn__failure_write(fd, &key, &failure, 4096);
    ck_assert(cbn__failure_read(fd, &key, &read_back));
    ck_assert_uint_eq(read_back.count, 0);
    cbn__failure_write(fd, &key, &failure, UINT64_MAX);
    ck_assert(cbn__failure_read(fd, &key, &read_back));
    ck_assert_uint_eq(read_back.count, 1);
    off_t slot = (off_t)(CBN__FAILURE_FIRST_BYTE + cbn__failure_slot(&key) * CBN__FAILURE_SLOT_BYTES);
    ck_assert_int_eq(pwrite(fd, "torn", 4, slot + 100), 4);
    ck_assert(!cbn__failure_read(fd, &key, &read_back));
    ck_assert_int_eq(miss(cabinet, true), FAILED);
    ck_assert(cbn__failure_read(fd, &key, &read_back)); /* written anew */
    ck_assert_uint_eq(read_back.count, 1);
    ck_assert_int_eq(miss(cabinet, false), BUILT);
    (void)close(fd);
    cbn__cabinet_close(cabinet);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flight-failure");
    TCase *cases = tcase_create("flight-failure");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, threads_that_waited_get_the_second_error, 0, 2);
    tcase_add_test(cases, one_failure_is_tried_again_once);
    tcase_add_test(cases, processes_that_waited_get_the_second_error);
    tcase_add_test(cases, a_build_that_was_not_stored_is_waited_for_no_longer);
    tcase_add_test(cases, beside_a_stalled_store_nobody_waits_for_a_build);
    tcase_add_test(cases, without_a_flight_nothing_is_said);
    tcase_add_loop_test(cases, a_busy_key_is_seen, 0, 2);
    tcase_add_loop_test(cases, a_compiler_is_believed_of_itself_only, 0, 2);
    tcase_add_test(cases, any_changed_byte_of_a_slot_counts);
    tcase_add_test(cases, a_slot_that_cannot_be_read_says_nothing);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
