/*
 * The bound: the file never passes it, the least recently used go first, pins stay, what cannot fit costs nobody, and
 * a working set that does not fit is said.
 */
#include <sys/resource.h>

#include "cache/space.h"
#include "cache_fixture.h"

#define MIB ((uint64_t)1 << 20)

static struct cbn__cabinet *open_bounded(const char *folder, uint64_t max_bytes, struct events *events)
{
    struct cbn__cabinet_options options = options_for(folder, events);
    struct cbn__cabinet *cabinet = NULL;
    options.max_bytes = max_bytes;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    return cabinet;
}

static struct cbn__layer_stats stats_of(struct cbn__cabinet *cabinet)
{
    struct cbn__layer_stats stats = {0};
    ck_assert_int_eq(cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    return stats;
}

static struct cbn__hash hash_of(uint64_t which)
{
    struct test_key key = key_of(which);
    return cbn__hash_blob(RECORD(key));
}

static bool has(struct cbn__cabinet *cabinet, uint64_t which)
{
    struct test_key key = key_of(which);
    return cbn__cabinet_probe(cabinet, RECORD(key), NULL) == CBN__LOOKUP_HIT;
}

struct load {
    uint64_t bound, total;
    size_t size_least, size_most;
    uint64_t live_percent; /* of the bound, that must stay live once it was full */
    uint64_t evictions_most;
};

/* What LMDB made of it passes the walk. */
static void expect_sound(struct cbn__cabinet *cabinet)
{
    char problem[CBN__PAGES_PROBLEM_BYTES] = "";
    struct cbn__pages_meta meta;
    ck_assert_msg(cbn__pages_check(cabinet->layers[0].store->data_fd, &meta, problem) == 0, "%s", problem);
}

/* Puts of total bytes; after each the file and the pages in use are inside the bound. */
static void run_load(const struct load *load)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), load->bound, NULL);
    uint64_t put_bytes = 0, evictions = 0, most = 0, least_live = UINT64_MAX, count = 0;
    bool full = false;
    for (; put_bytes < load->total; count++) {
        size_t size = load->size_least + (size_t)(count * 2654435761u % (load->size_most - load->size_least + 1));
        ck_assert_msg(put(cabinet, count, size, 13000) == CBN_STATUS_OK, "put %d of %zu", (int)count, size);
        put_bytes += size;
        struct cbn__layer_stats stats = stats_of(cabinet);
        ck_assert_uint_le(stats.layer.file_bytes, load->bound);
        ck_assert_uint_le(stats.layer.used_bytes, load->bound);
        uint64_t now = stats.counters.evictions;
        full = full || now > 0;
        most = now - evictions > most ? now - evictions : most;
        evictions = now;
        if (full && stats.layer.used_bytes < least_live)
            least_live = stats.layer.used_bytes;
        ck_assert_uint_eq(stats.layer.entries, count + 1 - evictions);
        if (count % 64 == 0)
            expect_sound(cabinet);
        ck_assert_uint_eq(stats.counters.puts, count + 1);
    }
    ck_assert(full);
    printf("bound %llu KiB, %llu puts, %llu evictions, at most %llu a put, live at least %llu %%\n",
           (unsigned long long)load->bound >> 10, (unsigned long long)count, (unsigned long long)evictions,
           (unsigned long long)most, (unsigned long long)(100 * least_live / load->bound));
    ck_assert_uint_ge(100 * least_live / load->bound, load->live_percent);
    ck_assert_uint_le(most, load->evictions_most);
    for (uint64_t i = count - 3; i < count; i++)
        ck_assert_int_eq(find(cabinet, i, 0), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}

START_TEST(the_bound_holds)
{
    static const struct load loads[] = {
        {64 * MIB, 1024 * MIB, 20000, 200000, 90, 100}, /* cubins as they are */
        {64 * MIB, 256 * MIB, 100, 4 * MIB, 80, 400},   /* of all sizes */
        {4 * MIB, 32 * MIB, 50000, 50000, 80, 20},      {1 * MIB, 8 * MIB, 100, 30000, 60, 40},
        {1 * MIB, 4 * MIB, 100, 1500, 60, 200}, /* none has pages of its own */
        {256 << 10, 2 * MIB, 100, 30000, 30, 40},
    };
    run_load(&loads[_i]);
}
END_TEST

START_TEST(least_recently_used_go_first)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 4 * MIB, NULL);
    for (uint64_t i = 0; i < 40; i++)
        ck_assert_int_eq(put(cabinet, i, 50000, 13000), CBN_STATUS_OK);
    ck_assert_uint_eq(stats_of(cabinet).counters.evictions, 0);
    for (uint64_t i = 0; i < 10; i++) /* recency in memory counts, before it is written */
        ck_assert_int_eq(find(cabinet, i, 50000), CBN__LOOKUP_HIT);
    uint64_t next = 40;
    while (stats_of(cabinet).counters.evictions < 20)
        ck_assert_int_eq(put(cabinet, next++, 50000, 13000), CBN_STATUS_OK);
    uint64_t evicted = stats_of(cabinet).counters.evictions;
    for (uint64_t i = 0; i < next; i++) {
        uint64_t order = i < 10 ? next : i - 10;
        ck_assert_msg(has(cabinet, i) == (order >= evicted), "entry %d of %d", (int)i, (int)next);
    }
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(recency_outlives_the_process)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 4 * MIB, NULL);
    for (uint64_t i = 0; i < 40; i++)
        ck_assert_int_eq(put(cabinet, i, 50000, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 0, 50000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    cabinet = open_bounded(in(&scratch, "cache"), 4 * MIB, NULL);
    uint64_t next = 40;
    while (stats_of(cabinet).counters.evictions < 10)
        ck_assert_int_eq(put(cabinet, next++, 50000, 13000), CBN_STATUS_OK);
    ck_assert(has(cabinet, 0));
    ck_assert(!has(cabinet, 1));
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(pins_stay)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 4 * MIB, NULL);
    struct cbn__hash none = hash_of(999);
    ck_assert_int_eq(cbn__cabinet_pin(cabinet, &none, true, NULL), CBN_STATUS_NOT_FOUND);
    for (uint64_t i = 0; i < 20; i++) {
        struct cbn__hash hash = hash_of(i);
        ck_assert_int_eq(put(cabinet, i, 50000, 13000), CBN_STATUS_OK);
        if (i < 8)
            ck_assert_int_eq(cbn__cabinet_pin(cabinet, &hash, true, NULL), CBN_STATUS_OK);
    }
    ck_assert_uint_eq(stats_of(cabinet).pinned, 8);
    ck_assert_int_eq(find(cabinet, 3, 50000), CBN__LOOKUP_HIT); /* a flush of its use keeps the pin */
    cbn__store_flush_usage(cabinet->layers[0].store, 1000);
    ck_assert_int_eq(put(cabinet, 4, 50000, 13000), CBN_STATUS_OK); /* so does a put in its place */
    for (uint64_t i = 20; i < 300; i++)
        ck_assert_int_eq(put(cabinet, i, 50000, 13000), CBN_STATUS_OK);
    for (uint64_t i = 0; i < 8; i++)
        ck_assert(has(cabinet, i));
    ck_assert(!has(cabinet, 8));
    struct cbn__hash hash = hash_of(0);
    ck_assert_int_eq(cbn__cabinet_pin(cabinet, &hash, false, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(stats_of(cabinet).pinned, 7);
    for (uint64_t i = 300; i < 400; i++)
        ck_assert_int_eq(put(cabinet, i, 50000, 13000), CBN_STATUS_OK);
    ck_assert(!has(cabinet, 0));
    ck_assert(has(cabinet, 1));
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(what_cannot_fit_costs_nobody)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 4 * MIB, NULL);
    uint64_t count = 0;
    for (; stats_of(cabinet).layer.used_bytes < 4 * MIB - 250000; count++) {
        struct cbn__hash hash = hash_of(count);
        ck_assert_int_eq(put(cabinet, count, 50000, 13000), CBN_STATUS_OK);
        ck_assert_int_eq(cbn__cabinet_pin(cabinet, &hash, count >= 4, NULL), CBN_STATUS_OK);
    }
    ck_assert_int_eq(put(cabinet, 1000, 5 * MIB, 13000), CBN_STATUS_LIMIT); /* above the bound */
    ck_assert_int_eq(put(cabinet, 1001, 600000, 13000), CBN_STATUS_LIMIT);  /* above an eighth of it */
    ck_assert_int_eq(put(cabinet, 1002, 480000, 13000), CBN_STATUS_LIMIT);  /* above what is not pinned */
    ck_assert_uint_eq(stats_of(cabinet).counters.evictions, 0);
    for (uint64_t i = 0; i < count; i++)
        ck_assert(has(cabinet, i));
    for (uint64_t i = 0; i < count; i++) {
        struct cbn__hash hash = hash_of(i);
        ck_assert_int_eq(cbn__cabinet_pin(cabinet, &hash, false, NULL), CBN_STATUS_OK);
    }
    ck_assert_int_eq(put(cabinet, 1002, 480000, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1002, 480000), CBN__LOOKUP_HIT);
    ck_assert_int_le(file_bytes(in(&scratch, "cache/data.mdb")), (off_t)(4 * MIB));
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Full to the last page that a put can get. Deleting writes pages too: to list the pages of a large value, several in a
   row. */
START_TEST(deleting_works_on_a_full_file)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 32 * MIB, NULL);
    uint64_t count = 0;
    for (size_t size = 12 << 20; size > 50; size /= 3) {
        int32_t status = CBN_STATUS_OK;
        while (status == CBN_STATUS_OK) {
            struct cbn__hash hash = hash_of(count);
            status = put(cabinet, count, size, 13000);
            if (status == CBN_STATUS_OK)
                ck_assert_int_eq(cbn__cabinet_pin(cabinet, &hash, true, NULL), CBN_STATUS_OK);
            count += status == CBN_STATUS_OK;
        }
        ck_assert_int_eq(status, CBN_STATUS_LIMIT);
    }
    ck_assert_uint_gt(count, 10);
    ck_assert_uint_eq(stats_of(cabinet).pinned, count);
    for (uint64_t i = 0; i < count; i++) {
        struct cbn__hash hash = hash_of(i);
        struct cbn_error err = {0};
        ck_assert_msg(cbn__cabinet_drop(cabinet, &hash, &err) == CBN_STATUS_OK, "%d: %s", (int)i, err.message);
    }
    ck_assert_int_eq(put(cabinet, 1, 100000, 13000), CBN_STATUS_OK);
    ck_assert_int_le(file_bytes(in(&scratch, "cache/data.mdb")), (off_t)(32 * MIB));
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_working_set_that_does_not_fit_is_said_once)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 2 * MIB, &events);
    int hits = 0;
    for (int round = 0; round < 5; round++) {
        for (uint64_t i = 0; i < 60; i++) {
            bool found = find(cabinet, i, 50000) == CBN__LOOKUP_HIT;
            hits += found;
            if (!found)
                ck_assert_int_eq(put(cabinet, i, 50000, 13000), CBN_STATUS_OK);
        }
        if (round == 0)
            ck_assert_int_eq(events.notices, 0);
    }
    ck_assert_int_eq(hits, 0); /* the order of a cycle is the worst that recency can meet */
    ck_assert_int_eq(events.notices, 1);
    ck_assert_ptr_nonnull(strstr(events.last, "evicted and then needed again"));
    ck_assert_ptr_nonnull(strstr(events.last, "2097152"));
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(counters_are_kept)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 4 * MIB, NULL);
    for (int round = 1; round <= 2; round++) {
        ck_assert_int_eq(find(cabinet, 100 + (uint64_t)round, 0), CBN__LOOKUP_ABSENT);
        ck_assert_int_eq(put(cabinet, (uint64_t)round, 1000, 13000), CBN_STATUS_OK);
        ck_assert_int_eq(find(cabinet, (uint64_t)round, 1000), CBN__LOOKUP_HIT);
        ck_assert_int_eq(find(cabinet, (uint64_t)round, 1000), CBN__LOOKUP_HIT);
        struct test_key key = key_of((uint64_t)round);
        struct cbn__compiler_rule rule = {.min_version = 14000};
        struct cbn__entry entry;
        ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(key), &rule, &entry), CBN__LOOKUP_INCOMPATIBLE);
        struct cbn__layer_stats live = stats_of(cabinet);
        cbn__cabinet_close(cabinet);
        cabinet = open_bounded(in(&scratch, "cache"), 4 * MIB, NULL);
        struct cbn__layer_stats kept = stats_of(cabinet);
        ck_assert_mem_eq(&live.counters, &kept.counters, sizeof(kept.counters));
        ck_assert_uint_eq(kept.counters.hits, 2 * (uint64_t)round);
        ck_assert_uint_eq(kept.counters.misses_absent, (uint64_t)round);
        ck_assert_uint_eq(kept.counters.misses_incompatible, (uint64_t)round);
        ck_assert_uint_eq(kept.counters.misses_damaged + kept.counters.misses_busy + kept.counters.misses_io, 0);
        ck_assert_uint_eq(kept.counters.puts, (uint64_t)round);
        ck_assert_uint_eq(kept.counters.evictions, 0);
        ck_assert_uint_eq(kept.counters.compile_ms_spent, 321 * (uint64_t)round);
        ck_assert_uint_eq(kept.counters.compile_ms_saved, 642 * (uint64_t)round);
    }
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Counters of processes add up; a child of fork does not write its parent's. */
START_TEST(counters_add_up)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 4 * MIB, NULL);
    ck_assert_int_eq(put(cabinet, 1, 1000, 13000), CBN_STATUS_OK);
    for (int i = 0; i < 4; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            bool hit = find(cabinet, 1, 1000) == CBN__LOOKUP_HIT;
            cbn__cabinet_close(cabinet);
            _exit(!hit);
        }
        reap(pid);
    }
    struct cbn__layer_stats stats = stats_of(cabinet);
    ck_assert_uint_eq(stats.counters.hits, 4);
    ck_assert_uint_eq(stats.counters.puts, 1);
    ck_assert_uint_eq(stats.counters.compile_ms_saved, 4 * 321);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* A reader stopped inside of a session costs a put one deadline, then a twentieth, and nobody a crash. */
START_TEST(a_stopped_reader_costs_one_deadline)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.lock_timeout_ms = 300;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 1, 1000, 13000), CBN_STATUS_OK);
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    pid_t reader = fork();
    if (reader == 0) {
        struct cbn__session session;
        if (cbn__session_read(cabinet->layers[0].store, 1000, &session, NULL) != CBN_STATUS_OK)
            _exit(1);
        (void)!write(ready[1], "x", 1);
        (void)raise(SIGSTOP);
        _exit(cbn__session_read_end(&session, 0, NULL) != CBN_STATUS_OK);
    }
    hear(ready[0]);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(put(cabinet, 2, 1000, 13000), CBN_STATUS_TIMEOUT);
    uint64_t first_ns = cbn__clock_monotonic_ns() - start_ns;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(put(cabinet, 2, 1000, 13000), CBN_STATUS_TIMEOUT);
    uint64_t all_ns = cbn__clock_monotonic_ns() - start_ns;
    ck_assert_uint_ge(first_ns, 290000000u);
    ck_assert_uint_lt(all_ns, 2 * first_ns);
    ck_assert_int_eq(kill(reader, SIGCONT), 0);
    reap(reader);
    ck_assert_int_eq(put(cabinet, 2, 1000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
}
END_TEST

#define THREADS 4
#define THREAD_PUTS 300u

struct worker {
    pthread_t thread;
    struct cbn__cabinet *cabinet;
    uint64_t first;
    int failures, hits;
};

/* Puts keys of its own on a full store, and looks, pins, measures and writes usage between. */
static void *work(void *user)
{
    struct worker *worker = user;
    for (uint64_t i = 0; i < THREAD_PUTS; i++) {
        uint64_t which = worker->first + i;
        struct test_key key = key_of(which);
        struct cbn__hash hash = cbn__hash_blob(RECORD(key));
        struct cbn__entry_facts facts = facts_of(13000);
        static const uint8_t payload[30000];
        struct cbn__layer_stats stats;
        worker->failures += cbn__cabinet_put(worker->cabinet, RECORD(key), (struct cbn__blob){payload, sizeof(payload)},
                                             cbn__blob_text(""), &facts, NULL) != CBN_STATUS_OK;
        struct cbn__entry entry;
        if (cbn__cabinet_find(worker->cabinet, RECORD(key), NULL, &entry) == CBN__LOOKUP_HIT) {
            worker->hits++;
            cbn__entry_done(&entry);
        }
        if (i % 16 == 0) {
            int32_t status = cbn__cabinet_pin(worker->cabinet, &hash, i % 32 == 0, NULL);
            worker->failures += status != CBN_STATUS_OK && status != CBN_STATUS_NOT_FOUND;
            worker->failures += cbn__cabinet_pin(worker->cabinet, &hash, false, NULL) == CBN_STATUS_IO;
            worker->failures += cbn__cabinet_layer_stats(worker->cabinet, 0, &stats, NULL) != CBN_STATUS_OK;
            cbn__store_flush_usage(worker->cabinet->layers[0].store, 5000);
        }
        if (i == THREAD_PUTS / 2)
            worker->failures += cbn__cabinet_compact(worker->cabinet, NULL) != CBN_STATUS_OK;
    }
    return NULL;
}

START_TEST(threads_on_a_full_store)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 2 * MIB, NULL);
    struct worker workers[THREADS];
    int hits = 0;
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.cabinet = cabinet, .first = 1000 * i};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
        ck_assert_int_eq(workers[i].failures, 0);
        hits += workers[i].hits;
    }
    struct cbn__layer_stats stats = stats_of(cabinet);
    ck_assert_uint_eq(stats.counters.puts, THREADS * THREAD_PUTS);
    ck_assert_uint_eq(stats.layer.entries, THREADS * THREAD_PUTS - stats.counters.evictions);
    ck_assert_uint_eq(stats.counters.hits, (uint64_t)hits);
    ck_assert_uint_eq(stats.counters.misses_absent, THREADS * THREAD_PUTS - (uint64_t)hits);
    ck_assert_int_le(file_bytes(in(&scratch, "cache/data.mdb")), (off_t)(2 * MIB));
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(compaction)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *data = in(&scratch, "cache/data.mdb");
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 16 * MIB, NULL);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_int_eq(put(cabinet, i, 50000, 13000), CBN_STATUS_OK);
    for (uint64_t i = 0; i < 90; i++) {
        struct cbn__hash hash = hash_of(i);
        ck_assert_int_eq(cbn__cabinet_drop(cabinet, &hash, NULL), CBN_STATUS_OK);
    }
    struct cbn__hash pinned = hash_of(95);
    ck_assert_int_eq(cbn__cabinet_pin(cabinet, &pinned, true, NULL), CBN_STATUS_OK);
    off_t before = file_bytes(data);
    struct stat original, now;
    ck_assert_int_eq(stat(data, &original), 0);

    /* Not while another process has it open. */
    int ready[2], done[2];
    ck_assert_int_eq(pipe(ready) | pipe(done), 0);
    pid_t other = fork();
    if (other == 0) {
        char byte;
        bool hit = find(cabinet, 95, 50000) == CBN__LOOKUP_HIT;
        (void)!write(ready[1], "x", 1);
        (void)!read(done[0], &byte, 1);
        _exit(!hit);
    }
    hear(ready[0]);
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__cabinet_compact(cabinet, &err), CBN_STATUS_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(err.message, "another process"));
    ck_assert_int_eq(stat(data, &now), 0);
    ck_assert_uint_eq(now.st_ino, original.st_ino);
    tell(done[1]);
    reap(other);

    ck_assert_int_eq(cbn__cabinet_compact(cabinet, &err), CBN_STATUS_OK);
    ck_assert_int_lt(file_bytes(data), before / 5);
    ck_assert_int_eq(stat(data, &now), 0);
    ck_assert_uint_eq(now.st_mode, original.st_mode);
    ck_assert_int_eq(count_files(in(&scratch, "cache"), ""), 2);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_int_eq(find(cabinet, i, 50000), i < 90 ? CBN__LOOKUP_ABSENT : CBN__LOOKUP_HIT);
    ck_assert_uint_eq(stats_of(cabinet).pinned, 1);
    ck_assert_uint_eq(stats_of(cabinet).counters.puts, 100);
    ck_assert_int_eq(put(cabinet, 1, 50000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    cabinet = open_bounded(in(&scratch, "cache"), 16 * MIB, NULL);
    ck_assert_int_eq(find(cabinet, 99, 50000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* What stands in the copy's way leaves the original as it was. */
START_TEST(a_failed_compaction_changes_nothing)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 16 * MIB, NULL);
    ck_assert_int_eq(put(cabinet, 1, 50000, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(mkdir(in(&scratch, "cache/data.mdb.compact"), 0700), 0);
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__cabinet_compact(cabinet, &err), CBN_STATUS_IO);
    ck_assert_int_eq(find(cabinet, 1, 50000), CBN__LOOKUP_HIT);
    ck_assert_int_eq(rmdir(in(&scratch, "cache/data.mdb.compact")), 0);
    int fd = open(in(&scratch, "cache/data.mdb.compact"), O_WRONLY | O_CREAT, 0600); /* of a killed process */
    ck_assert_int_eq(write(fd, "rest", 4), 4);
    (void)close(fd);
    ck_assert_int_eq(cbn__cabinet_compact(cabinet, &err), CBN_STATUS_OK);
    ck_assert_int_eq(count_files(in(&scratch, "cache"), ""), 2);
    ck_assert_int_eq(find(cabinet, 1, 50000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), NULL);
    options.read_only = true;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__cabinet_compact(cabinet, &err), CBN_STATUS_NOT_FOUND);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* A file may not grow past 8 MiB by rule of the system: the copy does not fit, and nothing is lost. */
START_TEST(no_room_for_the_copy)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 16 * MIB, NULL);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_int_eq(put(cabinet, i, 50000, 13000), CBN_STATUS_OK);
    struct rlimit before, least = {2 << 20, 2 << 20};
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    cbn__store_flush_usage(cabinet->layers[0].store, 1000);
    least.rlim_max = before.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &least), 0);
    struct cbn_error err = {0};
    int32_t status = cbn__cabinet_compact(cabinet, &err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_msg(status == CBN_STATUS_LIMIT, "%d: %s", status, err.message);
    ck_assert_int_eq(count_files(in(&scratch, "cache"), ""), 2);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_int_eq(find(cabinet, i, 50000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(damage_keeps_the_pin)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"), 4 * MIB, &events);
    struct cbn__store *store = cabinet->layers[0].store;
    struct cbn__hash hash = hash_of(1);
    ck_assert_int_eq(put(cabinet, 1, 1000, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__cabinet_pin(cabinet, &hash, true, NULL), CBN_STATUS_OK);
    struct cbn__store_key slot = cbn__entry_key(&hash, 13);
    ck_assert_int_eq(cbn__store_put(store, 1000, &slot, cbn__blob_text("garbage"), NULL), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 1000), CBN__LOOKUP_DAMAGED);
    ck_assert_int_eq(find(cabinet, 1, 1000), CBN__LOOKUP_ABSENT);
    ck_assert_uint_eq(stats_of(cabinet).pinned, 0);
    ck_assert_int_eq(put(cabinet, 1, 1000, 13000), CBN_STATUS_OK);
    ck_assert_uint_eq(stats_of(cabinet).pinned, 1);
    cbn__cabinet_close(cabinet);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("space");
    TCase *cases = tcase_create("space");
    tcase_set_timeout(cases, 240);
    tcase_add_loop_test(cases, the_bound_holds, 0, 6);
    tcase_add_test(cases, least_recently_used_go_first);
    tcase_add_test(cases, recency_outlives_the_process);
    tcase_add_test(cases, pins_stay);
    tcase_add_test(cases, what_cannot_fit_costs_nobody);
    tcase_add_test(cases, deleting_works_on_a_full_file);
    tcase_add_test(cases, a_working_set_that_does_not_fit_is_said_once);
    tcase_add_test(cases, counters_are_kept);
    tcase_add_test(cases, counters_add_up);
    tcase_add_test(cases, a_stopped_reader_costs_one_deadline);
    tcase_add_test(cases, threads_on_a_full_store);
    tcase_add_test(cases, compaction);
    tcase_add_test(cases, a_failed_compaction_changes_nothing);
    tcase_add_test(cases, no_room_for_the_copy);
    tcase_add_test(cases, damage_keeps_the_pin);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
