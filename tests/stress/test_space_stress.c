/*
 * Space under many processes: the bound in the file, maps that grow by turns beside a reader, and a warm store that
 * sixty-four processes read without one transaction or exclusive lock.
 *
 * CBN_SWEEP=full: the sizes; by default the same in small.
 */
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "../unit/cache_fixture.h"
#include "cache/session.h"

#define MIB ((uint64_t)1 << 20)
#define BOUND (64 * MIB)
#define PUTTERS 4u
#define PINNED 8u
#define LONG_S 200u
#define TURNER_BOUND(turn) (MIB + (uint64_t)(turn)*32768u)
#define READERS 64u
#define WARM 200u

static bool is_full(void)
{
    const char *sweep = getenv("CBN_SWEEP");
    return sweep && strcmp(sweep, "full") == 0;
}

/* Exclusive locks of the data byte that this process asked for. Every one of the cabinet's locks comes by here. */
static uint64_t exclusive_locks;

int fcntl64(int fd, int command, ...);
int fcntl64(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    const struct flock *request = argument;
    if (command == F_OFD_SETLK && request->l_type == F_WRLCK && request->l_start == CBN__LOCK_DATA_BYTE)
        __atomic_fetch_add(&exclusive_locks, 1, __ATOMIC_RELAXED);
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

int fcntl(int fd, int command, ...) __attribute__((alias("fcntl64")));

/* Shared by all processes of a test. */
struct board {
    uint64_t put_bytes, puts, hits, wrong, above, stop, stored;
};

static struct board *make_board(void)
{
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(board, MAP_FAILED);
    return board;
}

static uint64_t add(uint64_t *count, uint64_t by)
{
    return __atomic_add_fetch(count, by, __ATOMIC_SEQ_CST);
}

static struct cbn__cabinet *open_bounded(const char *folder, uint64_t max_bytes)
{
    struct cbn__cabinet_options options = options_for(folder, NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.lock_timeout_ms = 60000;
    options.max_bytes = max_bytes;
    if (cbn__cabinet_open(&options, &cabinet, NULL) != CBN_STATUS_OK)
        _exit(3);
    return cabinet;
}

static size_t size_of(uint64_t which)
{
    return 10000 + (size_t)(which * 7919 % 60000);
}

/* A hit is what was put; what was evicted is absent. */
static void look(struct cbn__cabinet *cabinet, uint64_t which, struct board *board)
{
    struct test_key key = key_of(which);
    struct cbn__entry entry;
    enum cbn__lookup found = cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry);
    if (found == CBN__LOOKUP_HIT) {
        add(&board->hits, 1);
        if (!payload_is(&entry, size_of(which), which))
            add(&board->wrong, 1);
        cbn__entry_done(&entry);
    } else if (found != CBN__LOOKUP_ABSENT || which < PINNED) {
        fprintf(stderr, "look-up of %d: %d\n", (int)which, (int)found);
        add(&board->wrong, 1);
    }
}

static void watch_file(const char *data, uint64_t bound, struct board *board)
{
    if (file_bytes(data) > (off_t)bound)
        add(&board->above, 1);
}

/* ---- the bound ---- */

static void put_a_share(const char *folder, const char *data, uint64_t index, uint64_t share, struct board *board)
{
    struct cbn__cabinet *cabinet = open_bounded(folder, BOUND);
    uint64_t done = 0;
    for (uint64_t i = 0; done < share; i++) {
        uint64_t which = PINNED + index + PUTTERS * i;
        int32_t status = put(cabinet, which, size_of(which), 13000);
        if (status != CBN_STATUS_OK)
            add(&board->wrong, 1);
        watch_file(data, BOUND, board);
        look(cabinet, which, board);
        look(cabinet, i % PINNED, board);
        done += size_of(which);
        add(&board->puts, 1);
    }
    add(&board->put_bytes, done);
    cbn__cabinet_close(cabinet);
    _exit(0);
}

/* Survivors of any age, until the putters are done. */
static void read_survivors(const char *folder, const char *data, struct board *board)
{
    struct cbn__cabinet *cabinet = open_bounded(folder, BOUND);
    uint64_t state = 5;
    while (!__atomic_load_n(&board->stop, __ATOMIC_SEQ_CST)) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t puts = __atomic_load_n(&board->puts, __ATOMIC_SEQ_CST);
        look(cabinet, (state >> 33) % (PINNED + puts), board);
        watch_file(data, BOUND, board);
    }
    cbn__cabinet_close(cabinet);
    _exit(0);
}

START_TEST(four_processes_and_one_bound)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache"), *data = in(&scratch, "cache/data.mdb");
    const uint64_t total = is_full() ? 1024 * MIB : 256 * MIB;
    struct board *board = make_board();
    struct cbn__cabinet *cabinet = open_bounded(folder, BOUND);
    for (uint64_t i = 0; i < PINNED; i++) {
        struct test_key key = key_of(i);
        struct cbn__hash hash = cbn__hash_blob(RECORD(key));
        ck_assert_int_eq(put(cabinet, i, size_of(i), 13000), CBN_STATUS_OK);
        ck_assert_int_eq(cbn__cabinet_pin(cabinet, &hash, true, NULL), CBN_STATUS_OK);
    }
    cbn__cabinet_close(cabinet);
    pid_t putters[PUTTERS], reader = fork();
    if (reader == 0)
        read_survivors(folder, data, board);
    for (uint64_t i = 0; i < PUTTERS; i++)
        if ((putters[i] = fork()) == 0)
            put_a_share(folder, data, i, total / PUTTERS, board);
    for (uint64_t i = 0; i < PUTTERS; i++)
        reap(putters[i]);
    add(&board->stop, 1);
    reap(reader);
    cabinet = open_bounded(folder, BOUND);
    struct cbn__layer_stats stats;
    ck_assert_int_eq(cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    printf("%llu MiB in %llu puts, %llu evictions, %llu hits; file %llu bytes, %llu in use\n",
           (unsigned long long)(board->put_bytes / MIB), (unsigned long long)board->puts,
           (unsigned long long)stats.counters.evictions, (unsigned long long)board->hits,
           (unsigned long long)stats.layer.file_bytes, (unsigned long long)stats.layer.used_bytes);
    ck_assert_uint_eq(board->wrong, 0);
    ck_assert_uint_eq(board->above, 0);
    ck_assert_uint_ge(board->put_bytes, total);
    ck_assert_uint_le(stats.layer.file_bytes, BOUND);
    ck_assert_uint_eq(stats.counters.puts, board->puts + PINNED);
    ck_assert_uint_eq(stats.layer.entries, board->puts + PINNED - stats.counters.evictions);
    ck_assert_uint_eq(stats.pinned, PINNED);
    ck_assert_int_eq(count_files(folder, ""), 2);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* A map that is full to its headroom, and a reader stopped in the middle of its transaction. */
START_TEST(a_full_map_and_a_stopped_reader)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache"), *data = in(&scratch, "cache/data.mdb");
    struct cbn__cabinet *cabinet = open_bounded(folder, 4 * MIB);
    struct cbn__layer_stats stats;
    uint64_t count = 0;
    do {
        ck_assert_int_eq(put(cabinet, count, size_of(count), 13000), CBN_STATUS_OK);
        count++;
        ck_assert_int_eq(cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    } while (stats.counters.evictions < 10);
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    pid_t reader = fork();
    if (reader == 0) {
        struct cbn__session session;
        if (cbn__session_read(cabinet->layers[0].store, 1000, &session, NULL) != CBN_STATUS_OK)
            _exit(1);
        tell(ready[1]);
        (void)raise(SIGSTOP);
        _exit(cbn__session_read_end(&session, 0, NULL) != CBN_STATUS_OK);
    }
    hear(ready[0]);
    cabinet->lock_timeout_ms = 200;
    for (uint64_t i = 0; i < 3; i++) {
        struct test_key key = key_of(count - 1 - i);
        struct cbn__hash hash = cbn__hash_blob(RECORD(key));
        ck_assert_int_eq(put(cabinet, count, size_of(count), 13000), CBN_STATUS_TIMEOUT);
        ck_assert_int_eq(cbn__cabinet_drop(cabinet, &hash, NULL), CBN_STATUS_TIMEOUT);
    }
    ck_assert_int_eq(find(cabinet, count - 1, size_of(count - 1)), CBN__LOOKUP_HIT); /* reading goes on beside it */
    ck_assert_int_eq(kill(reader, SIGCONT), 0);
    reap(reader);
    cabinet->lock_timeout_ms = 60000;
    for (uint64_t i = 0; i < 200; i++, count++)
        ck_assert_int_eq(put(cabinet, count, size_of(count), 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, count - 1, size_of(count - 1)), CBN__LOOKUP_HIT);
    ck_assert_int_le(file_bytes(data), (off_t)(4 * MIB));
    ck_assert_int_eq(count_files(folder, ""), 2);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* ---- maps that grow by turns ---- */

/* Each turn opens with a larger bound and fills the new room: the map of everybody else is too small now. */
static void take_turns(const char *folder, uint64_t index, uint64_t turns, int from, int to, struct board *board)
{
    (void)alarm(LONG_S);
    for (uint64_t turn = index; turn < turns; turn += 2) {
        hear(from);
        struct cbn__cabinet *cabinet = open_bounded(folder, TURNER_BOUND(turn));
        if (put(cabinet, PINNED + turn, size_of(PINNED + turn), 13000) != CBN_STATUS_OK)
            add(&board->wrong, 1);
        add(&board->puts, 1);
        look(cabinet, PINNED + turn, board);
        look(cabinet, PINNED + turn / 2, board);
        cbn__cabinet_close(cabinet);
        tell(to);
    }
    _exit(0);
}

START_TEST(maps_that_grow_by_turns)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache"), *data = in(&scratch, "cache/data.mdb");
    const uint64_t turns = is_full() ? 10000 : 1000;
    struct board *board = make_board();
    int first[2], second[2];
    pid_t turners[2], reader;
    ck_assert_int_eq(pipe(first) | pipe(second), 0);
    struct cbn__cabinet *cabinet = open_bounded(folder, MIB);
    for (uint64_t i = 0; i < PINNED; i++) {
        struct test_key key = key_of(i);
        struct cbn__hash hash = cbn__hash_blob(RECORD(key));
        ck_assert_int_eq(put(cabinet, i, size_of(i), 13000), CBN_STATUS_OK);
        ck_assert_int_eq(cbn__cabinet_pin(cabinet, &hash, true, NULL), CBN_STATUS_OK);
    }
    cbn__cabinet_close(cabinet);
    off_t before = file_bytes(data);
    if ((reader = fork()) == 0)
        read_survivors(folder, data, board);
    if ((turners[0] = fork()) == 0)
        take_turns(folder, 0, turns, first[0], second[1], board);
    if ((turners[1] = fork()) == 0)
        take_turns(folder, 1, turns, second[0], first[1], board);
    tell(first[1]);
    reap(turners[0]);
    reap(turners[1]);
    add(&board->stop, 1);
    reap(reader);
    printf("%llu turns, %llu hits, the file from %lld to %lld bytes\n", (unsigned long long)board->puts,
           (unsigned long long)board->hits, (long long)before, (long long)file_bytes(data));
    ck_assert_uint_eq(board->puts, turns);
    ck_assert_uint_eq(board->wrong, 0);
    ck_assert_int_gt(file_bytes(data), before + (off_t)(turns * 16384));
    ck_assert_int_eq(count_files(folder, ""), 2);
}
END_TEST

/* ---- a warm store ---- */

static uint64_t transaction_of(const char *data)
{
    struct cbn__pages_meta meta;
    int fd = open(data, O_RDONLY);
    ck_assert_ptr_null(cbn__pages_read_meta(fd, &meta));
    (void)close(fd);
    return meta.transaction;
}

static void read_warm(const char *folder, uint64_t index, int ready, int go, int done, int leave, struct board *board)
{
    struct cbn__cabinet *cabinet = open_bounded(folder, BOUND);
    tell(ready);
    hear(go);
    const uint64_t before = exclusive_locks, rounds = is_full() ? 20 * WARM : WARM;
    for (uint64_t i = 0; i < rounds; i++)
        look(cabinet, (i * 37 + index) % WARM, board);
    add(&board->above, exclusive_locks - before);
    tell(done);
    hear(leave);
    cbn__cabinet_close(cabinet);
    _exit(0);
}

START_TEST(a_warm_store_is_only_read)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache"), *data = in(&scratch, "cache/data.mdb");
    struct board *board = make_board();
    int ready[2], go[2], done[2], leave[2];
    ck_assert_int_eq(pipe(ready) | pipe(go) | pipe(done) | pipe(leave), 0);
    struct cbn__cabinet *cabinet = open_bounded(folder, BOUND);
    for (uint64_t i = 0; i < WARM; i++)
        ck_assert_int_eq(put(cabinet, i, size_of(i), 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    ck_assert_uint_gt(exclusive_locks, WARM); /* they are counted */
    pid_t readers[READERS];
    for (uint64_t i = 0; i < READERS; i++)
        if ((readers[i] = fork()) == 0)
            read_warm(folder, i, ready[1], go[0], done[1], leave[0], board);
    for (uint64_t i = 0; i < READERS; i++)
        hear(ready[0]);
    const uint64_t before = transaction_of(data);
    for (uint64_t i = 0; i < READERS; i++)
        tell(go[1]);
    for (uint64_t i = 0; i < READERS; i++)
        hear(done[0]);
    ck_assert_uint_eq(transaction_of(data), before);
    for (uint64_t i = 0; i < READERS; i++)
        tell(leave[1]);
    for (uint64_t i = 0; i < READERS; i++)
        reap(readers[i]);
    ck_assert_uint_eq(board->wrong, 0);
    ck_assert_uint_eq(board->hits, READERS * (is_full() ? 20 * WARM : WARM));
    ck_assert_uint_eq(board->above, 0);
    /* What each has read is written in one go as it leaves. */
    ck_assert_uint_eq(transaction_of(data), before + READERS);
    cabinet = open_bounded(folder, BOUND);
    struct cbn__layer_stats stats;
    ck_assert_int_eq(cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(stats.counters.hits, board->hits);
    ck_assert_uint_eq(stats.counters.misses_busy + stats.counters.misses_io, 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("space-stress");
    TCase *cases = tcase_create("space-stress");
    tcase_set_timeout(cases, LONG_S);
    tcase_add_test(cases, four_processes_and_one_bound);
    tcase_add_test(cases, a_full_map_and_a_stopped_reader);
    tcase_add_test(cases, maps_that_grow_by_turns);
    tcase_add_test(cases, a_warm_store_is_only_read);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
