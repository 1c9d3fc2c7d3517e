/*
 * The lock file among threads and processes: exclusion, deadlines, stopped and killed holders, writers not starved.
 */
#include "cache_fixture.h"

#include <pthread.h>

#include "cache/folder.h"

#define NS_PER_MS 1000000ull

/* In tests every wait that must succeed gets this, and every one that must not gets SHORT. */
#define LONG_MS 20000u
#define SHORT_MS 100u

START_TEST(shared_and_exclusive_in_one_process)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__lock lock;
    cbn__lock_init(&lock, in(&scratch, "lock"), true, 0600);
    ck_assert_int_eq(cbn__lock_open(&lock, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__lock_shared(&lock, SHORT_MS), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__lock_shared(&lock, SHORT_MS), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__lock_exclusive(&lock, SHORT_MS), CBN_STATUS_TIMEOUT);
    cbn__lock_release_shared(&lock);
    ck_assert_int_eq(cbn__lock_exclusive(&lock, SHORT_MS), CBN_STATUS_TIMEOUT);
    cbn__lock_release_shared(&lock);
    ck_assert_int_eq(cbn__lock_exclusive(&lock, SHORT_MS), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__lock_shared(&lock, SHORT_MS), CBN_STATUS_TIMEOUT);
    ck_assert_int_eq(cbn__lock_exclusive(&lock, SHORT_MS), CBN_STATUS_TIMEOUT);
    cbn__lock_release_exclusive(&lock);
    ck_assert_int_eq(cbn__lock_shared(&lock, SHORT_MS), CBN_STATUS_OK);
    cbn__lock_release_shared(&lock);
    cbn__lock_done(&lock);
}
END_TEST

/* Two locks on one file are two descriptions: what two processes have. */
START_TEST(shared_and_exclusive_between_descriptions)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__lock a, b, reader;
    cbn__lock_init(&a, in(&scratch, "lock"), true, 0600);
    cbn__lock_init(&b, in(&scratch, "lock"), true, 0600);
    cbn__lock_init(&reader, in(&scratch, "lock"), false, 0600);
    ck_assert_int_eq(cbn__lock_shared(&a, SHORT_MS), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__lock_shared(&b, SHORT_MS), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__lock_shared(&reader, SHORT_MS), CBN_STATUS_OK);
    cbn__lock_release_shared(&reader);
    cbn__lock_release_shared(&b);
    ck_assert_int_eq(cbn__lock_exclusive(&b, SHORT_MS), CBN_STATUS_TIMEOUT);
    cbn__lock_release_shared(&a);
    ck_assert_int_eq(cbn__lock_exclusive(&b, SHORT_MS), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__lock_shared(&a, SHORT_MS), CBN_STATUS_TIMEOUT);
    ck_assert_int_eq(cbn__lock_shared(&reader, SHORT_MS), CBN_STATUS_TIMEOUT);
    cbn__lock_release_exclusive(&b);
    ck_assert_int_eq(cbn__lock_shared(&a, SHORT_MS), CBN_STATUS_OK);
    cbn__lock_release_shared(&a);
    cbn__lock_done(&a);
    cbn__lock_done(&b);
    cbn__lock_done(&reader);
}
END_TEST

START_TEST(a_reader_makes_no_file)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__lock lock;
    cbn__lock_init(&lock, in(&scratch, "lock"), false, 0600);
    ck_assert_int_eq(cbn__lock_open(&lock, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__lock_shared(&lock, SHORT_MS), CBN_STATUS_OK);
    cbn__lock_release_shared(&lock);
    ck_assert_int_eq(cbn__lock_exclusive(&lock, SHORT_MS), CBN_STATUS_OK);
    cbn__lock_release_exclusive(&lock);
    ck_assert_int_eq(count_files(scratch.path, ""), 0);
    cbn__lock_done(&lock);
}
END_TEST

static void plant_irregular(const char *path, int kind)
{
    ck_assert_int_eq(kind == 0   ? mkfifo(path, 0600)
                     : kind == 1 ? mkdir(path, 0700)
                     : kind == 2 ? symlink("elsewhere", path)
                                 : mknod(path, S_IFSOCK | 0600, 0),
                     0);
}

/* A FIFO, a folder, a link, a socket: refused with a mend, for a writer, a reader, a probe; nothing waits. */
START_TEST(what_is_no_regular_file_is_refused)
{
    SCRATCH_AUTO scratch = scratch_make();
    (void)alarm(60);
    ck_assert_int_eq(mkdir(in(&scratch, "cache"), 0700), 0);
    const char *path = in(&scratch, "cache/lock");
    plant_irregular(path, _i);
    for (int writable = 0; writable < 2; writable++) {
        struct cbn__lock lock;
        struct cbn_error err = {0};
        cbn__lock_init(&lock, path, writable, 0600);
        ck_assert_int_eq(cbn__lock_open(&lock, &err), CBN_STATUS_UNTRUSTED);
        ck_assert_ptr_nonnull(strstr(err.message, "is no regular file; remove it"));
        ck_assert_int_eq(cbn__lock_shared(&lock, SHORT_MS), CBN_STATUS_IO);
        cbn__lock_done(&lock);
    }
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), NULL);
    struct cbn__cabinet *cabinet = NULL;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_UNTRUSTED);
    ck_assert_ptr_nonnull(strstr(err.message, path));
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(cbn__folder_probe_lock(in(&scratch, "cache"), SHORT_MS, &err), CBN_STATUS_UNTRUSTED);
    (void)alarm(0);
}
END_TEST

/* Put in its place while it is open. */
START_TEST(a_fifo_in_its_place_is_refused)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__lock lock;
    (void)alarm(60);
    cbn__lock_init(&lock, in(&scratch, "lock"), true, 0600);
    ck_assert_int_eq(cbn__lock_open(&lock, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(unlink(in(&scratch, "lock")), 0);
    plant_irregular(in(&scratch, "lock"), 0);
    ck_assert_int_eq(cbn__lock_exclusive(&lock, SHORT_MS), CBN_STATUS_IO);
    cbn__lock_done(&lock);
    (void)alarm(0);
}
END_TEST

START_TEST(a_removed_lock_file_is_noticed)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__lock a, b;
    cbn__lock_init(&a, in(&scratch, "lock"), true, 0600);
    cbn__lock_init(&b, in(&scratch, "lock"), true, 0600);
    ck_assert_int_eq(cbn__lock_open(&a, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(unlink(in(&scratch, "lock")), 0);
    ck_assert_int_eq(cbn__lock_exclusive(&b, SHORT_MS), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__lock_exclusive(&a, SHORT_MS), CBN_STATUS_TIMEOUT);
    cbn__lock_release_exclusive(&b);
    cbn__lock_done(&a);
    cbn__lock_done(&b);
}
END_TEST

/* The reader comes in, not before so much of its deadline is gone. */
static void expect_yield(struct cbn__lock *lock, uint64_t at_least_ms)
{
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(cbn__lock_shared(lock, SHORT_MS), CBN_STATUS_OK);
    ck_assert_uint_ge(cbn__clock_monotonic_ns() - start_ns, at_least_ms * NS_PER_MS);
    cbn__lock_release_shared(lock);
}

START_TEST(a_writer_that_waits_holds_new_readers_back)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__lock reader, late;
    cbn__lock_init(&reader, in(&scratch, "lock"), true, 0600);
    cbn__lock_init(&late, in(&scratch, "lock"), true, 0600);
    ck_assert_int_eq(cbn__lock_shared(&reader, SHORT_MS), CBN_STATUS_OK);
    /* A third process has said that it wants to write. */
    int intent = open(in(&scratch, "lock"), O_RDWR);
    ck_assert_int_eq(cbn__lock_poll(intent, F_WRLCK, CBN__LOCK_INTENT_BYTE, 0, 1, NULL), CBN_STATUS_OK);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    expect_yield(&late, SHORT_MS / 4);
    expect_yield(&reader, SHORT_MS / 4);
    /* Given way to in vain, it is a stopped one: the next reads give way for a moment each. */
    for (int i = 0; i < 100; i++)
        expect_yield(&late, 0);
    ck_assert_uint_lt(cbn__clock_monotonic_ns() - start_ns, 2000 * NS_PER_MS);
    (void)close(intent);
    ck_assert_int_eq(cbn__lock_shared(&late, SHORT_MS), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__lock_shared(&reader, SHORT_MS), CBN_STATUS_OK);
    cbn__lock_release_shared(&late);
    cbn__lock_release_shared(&reader);
    cbn__lock_release_shared(&reader);
    cbn__lock_done(&reader);
    cbn__lock_done(&late);
}
END_TEST

struct count {
    struct cbn__lock *lock;
    atomic_int *shared; /* read and written in two steps, under the lock under test */
    int timeouts;
};

static void *count_up(void *user)
{
    struct count *count = user;
    for (int i = 0; i < 300; i++) {
        bool write = i % 3 == 0;
        int32_t status = write ? cbn__lock_exclusive(count->lock, LONG_MS) : cbn__lock_shared(count->lock, LONG_MS);
        count->timeouts += status != CBN_STATUS_OK;
        if (status != CBN_STATUS_OK)
            continue;
        if (write) {
            int seen = atomic_load_explicit(count->shared, memory_order_relaxed);
            atomic_store_explicit(count->shared, seen + 1, memory_order_relaxed);
            cbn__lock_release_exclusive(count->lock);
        } else {
            cbn__lock_release_shared(count->lock);
        }
    }
    return NULL;
}

START_TEST(threads_and_two_descriptions_count_right)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__lock locks[2];
    struct count counts[8];
    pthread_t threads[8];
    atomic_int shared = 0;
    for (int i = 0; i < 2; i++)
        cbn__lock_init(&locks[i], in(&scratch, "lock"), true, 0600);
    for (int i = 0; i < 8; i++) {
        counts[i] = (struct count){&locks[i % 2], &shared, 0};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_up, &counts[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_int_eq(counts[i].timeouts, 0);
    }
    ck_assert_int_eq(atomic_load(&shared), 800);
    for (int i = 0; i < 2; i++)
        cbn__lock_done(&locks[i]);
}
END_TEST

/* A child that takes the store's lock exclusively, says so, and is stopped. */
static pid_t start_holder(const char *folder, int ready, int released)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    struct cbn__lock *lock = &cabinet->layers[0].store->lock;
    if (cbn__lock_exclusive(lock, LONG_MS) != CBN_STATUS_OK)
        _exit(1);
    tell(ready);
    (void)raise(SIGSTOP);
    cbn__lock_release_exclusive(lock);
    tell(released);
    _exit(0);
}

START_TEST(a_stopped_holder_costs_one_deadline)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    int ready[2], released[2], status = 0;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(released), 0);
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, 1, 500, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    pid_t holder = start_holder(folder, ready[1], released[1]);
    hear(ready[0]);
    ck_assert_int_eq(waitpid(holder, &status, WUNTRACED), holder);
    ck_assert(WIFSTOPPED(status));

    struct cbn__cabinet_options options = options_for(folder, NULL);
    options.lock_timeout_ms = 300;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 1);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(find(cabinet, 1, 500), CBN__LOOKUP_BUSY);
    ck_assert_int_eq(put(cabinet, 2, 500, 13000), CBN_STATUS_TIMEOUT);
    ck_assert_uint_lt(cbn__clock_monotonic_ns() - start_ns, 1500 * NS_PER_MS); /* ten full deadlines are 3 s */

    ck_assert_int_eq(kill(holder, SIGCONT), 0);
    hear(released[0]);
    reap(holder);
    ck_assert_int_eq(find(cabinet, 1, 500), CBN__LOOKUP_HIT);
    ck_assert_int_eq(put(cabinet, 2, 500, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_read_waits_for_its_whole_deadline)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct cbn__cabinet_options options = options_for(folder, NULL);
    options.lock_timeout_ms = 300;
    struct cbn__cabinet *cabinet = NULL;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    int fd = open(in(&scratch, "cache/lock"), O_RDWR);
    ck_assert_int_eq(cbn__lock_poll(fd, F_WRLCK, CBN__LOCK_DATA_BYTE, 0, 1, NULL), CBN_STATUS_OK);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(find(cabinet, 1, 500), CBN__LOOKUP_BUSY);
    uint64_t waited_ns = cbn__clock_monotonic_ns() - start_ns;
    ck_assert_uint_ge(waited_ns, 300 * NS_PER_MS);
    ck_assert_uint_lt(waited_ns, 2000 * NS_PER_MS);
    (void)close(fd);
    ck_assert_int_eq(find(cabinet, 1, 500), CBN__LOOKUP_ABSENT);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_killed_holder_lets_go)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    int ready[2], unused[2], status = 0;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(unused), 0);
    pid_t holder = start_holder(folder, ready[1], unused[1]);
    hear(ready[0]);
    ck_assert_int_eq(kill(holder, SIGKILL), 0);
    ck_assert_int_eq(waitpid(holder, &status, 0), holder);
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, 1, 500, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* fork while a cabinet is open: the child reads and writes; a parent that dies is not kept alive in its locks. */
START_TEST(a_child_of_fork_works)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(put(cabinet, 1, 500, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 500), CBN__LOOKUP_HIT);
    pid_t child = fork();
    if (child == 0) {
        bool right = find(cabinet, 1, 500) == CBN__LOOKUP_HIT && put(cabinet, 2, 600, 13000) == CBN_STATUS_OK &&
                     find(cabinet, 2, 600) == CBN__LOOKUP_HIT;
        cbn__cabinet_close(cabinet);
        _exit(right ? 0 : 1);
    }
    reap(child);
    ck_assert_int_eq(find(cabinet, 2, 600), CBN__LOOKUP_HIT);
    ck_assert_int_eq(put(cabinet, 3, 600, 13000), CBN_STATUS_OK);
    struct test_key key = key_of(1);
    struct cbn__entry entry;
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry), CBN__LOOKUP_HIT);
    ck_assert_uint_eq(entry.hits, 2); /* the child's hit, written at its close, and the parent's, once */
    cbn__entry_done(&entry);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_child_keeps_no_lock_of_its_parent)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    int go[2];
    ck_assert_int_eq(pipe(go), 0);
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    struct cbn__lock *lock = &cabinet->layers[0].store->lock;
    ck_assert_int_eq(cbn__lock_exclusive(lock, LONG_MS), CBN_STATUS_OK);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        _exit(read(go[0], &byte, 1) == 1 ? 0 : 1);
    }
    /* Closed here as a death would close it: no unlock call, which would free the child's share too. */
    (void)close(lock->fd);
    lock->fd = -1;
    lock->exclusive = false;
    ck_assert_int_eq(put(cabinet, 1, 500, 13000), CBN_STATUS_OK);
    tell(go[1]);
    reap(child);
    cbn__cabinet_close(cabinet);
}
END_TEST

struct busy_reader {
    struct cbn__cabinet *cabinet;
    atomic_bool stop;
    atomic_int wrong;
};

__attribute__((unused)) static void *read_all_the_time(void *user)
{
    struct busy_reader *reader = user;
    while (!atomic_load(&reader->stop)) {
        struct test_key key = key_of(1);
        struct cbn__entry entry;
        if (cbn__cabinet_find(reader->cabinet, RECORD(key), NULL, &entry) != CBN__LOOKUP_HIT) {
            atomic_fetch_add(&reader->wrong, 1);
            continue;
        }
        cbn__entry_done(&entry);
    }
    return NULL;
}

/* fork while other threads are inside: each child finds, puts and ends. */
START_TEST(fork_beside_busy_threads)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("skipped: the allocator of gcc 12's sanitizers is not safe to use after a fork beside threads\n");
#else
    SCRATCH_AUTO scratch = scratch_make();
    struct busy_reader reader = {.cabinet = open_cabinet(in(&scratch, "cache"), NULL)};
    pthread_t threads[3];
    ck_assert_int_eq(put(reader.cabinet, 1, 20000, 13000), CBN_STATUS_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_all_the_time, &reader), 0);
    for (uint64_t i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)alarm(60);
            _exit(find(reader.cabinet, 1, 20000) == CBN__LOOKUP_HIT &&
                          put(reader.cabinet, 10 + i, 100, 13000) == CBN_STATUS_OK
                      ? 0
                      : 1);
        }
        reap(child);
    }
    atomic_store(&reader.stop, true);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(atomic_load(&reader.wrong), 0);
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_int_eq(find(reader.cabinet, 10 + i, 100), CBN__LOOKUP_HIT);
    cbn__cabinet_close(reader.cabinet);
#endif
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lock");
    TCase *cases = tcase_create("lock");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, shared_and_exclusive_in_one_process);
    tcase_add_test(cases, shared_and_exclusive_between_descriptions);
    tcase_add_test(cases, a_reader_makes_no_file);
    tcase_add_loop_test(cases, what_is_no_regular_file_is_refused, 0, 4);
    tcase_add_test(cases, a_fifo_in_its_place_is_refused);
    tcase_add_test(cases, a_removed_lock_file_is_noticed);
    tcase_add_test(cases, a_writer_that_waits_holds_new_readers_back);
    tcase_add_test(cases, threads_and_two_descriptions_count_right);
    tcase_add_test(cases, a_stopped_holder_costs_one_deadline);
    tcase_add_test(cases, a_read_waits_for_its_whole_deadline);
    tcase_add_test(cases, a_killed_holder_lets_go);
    tcase_add_test(cases, a_child_of_fork_works);
    tcase_add_test(cases, a_child_keeps_no_lock_of_its_parent);
    tcase_add_test(cases, fork_beside_busy_threads);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
