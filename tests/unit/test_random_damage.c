/*
 * A store of 2,000 entries, damaged at random: before it is opened, while this process has it open, while another one
 * has. Whoever uses it (reader, writer, eviction, verify with repair, prune, compaction) never crashes or hangs, never
 * gets a wrong cubin, and finds every entry whose leaf and overflow pages are whole, whatever became of the pages that
 * lead there.
 *
 * ctest takes a sample. CUBINET_SWEEP=full in the environment takes 10,000 damages.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "random_damage.h"

#define ENTRIES 2000u
#define PRUNED 100u
#define CASES_FULL 10000u
#define CASES_SAMPLE (2u * DAMAGE_KINDS * USE_KINDS)
#define SEED 7u
#define HANG_S 60u
#define FAULTS_MOST 50u
#define OTHER_ENTRIES 600u
#define EVICTING_BYTES 200000u

enum use {
    USE_WRITER,
    USE_READER,
    USE_EVICTION,
    USE_UPKEEP,
    USE_WRITER_OPEN, /* the file is damaged while it is open here */
    USE_READER_OPEN,
    USE_UPKEEP_OPEN,
    USE_OPEN_ELSEWHERE, /* another process has it open, goes on after this one */
    USE_KINDS
};

struct counts {
    atomic_ullong at, cases, aside, served, whole, lost;
};

struct bench {
    char folder[2 * PATH_BYTES], data[2 * PATH_BYTES];
    struct file was, is, other;
    struct page_map map;
    struct counts *counts; /* shared with the workers */
};

static size_t size_of(uint64_t which)
{
    return which % 10 == 0 ? 2300 + which % 7 * 900 : 150 + which * 37 % 800;
}

/* Compacted, then with a free list, pins and usage. */
static struct file make_store(const char *folder, const char *data)
{
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t i = 0; i < ENTRIES; i++)
        ck_assert_int_eq(put(cabinet, i, size_of(i), 13000), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__cabinet_compact(cabinet, NULL), CBN_STATUS_OK);
    for (uint64_t i = 0; i < ENTRIES; i += 100) {
        struct test_key key = key_of(i), extra = key_of(ENTRIES + i);
        struct cbn__hash hash = cbn__hash_blob(RECORD(key)), extra_hash = cbn__hash_blob(RECORD(extra));
        ck_assert_int_eq(cbn__cabinet_pin(cabinet, &hash, true, NULL), CBN_STATUS_OK);
        ck_assert_int_eq(put(cabinet, ENTRIES + i, 5000, 13000), CBN_STATUS_OK);
        ck_assert_int_eq(cbn__cabinet_drop(cabinet, &extra_hash, NULL), CBN_STATUS_OK);
    }
    cbn__cabinet_close(cabinet);
    return load(data);
}

/* Another one's pages: some of its keys are the same, with other bytes. */
static struct file make_other(const char *folder, const char *data)
{
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t i = 0; i < OTHER_ENTRIES; i++)
        ck_assert_int_eq(put(cabinet, i % 3 ? 1000000 + i : i, 200 + i * 41 % 3000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    return load(data);
}

/* From entry `from` on; find asserts that a hit's bytes are right. */
static void expect_whole(const struct bench *bench, struct cbn__cabinet *cabinet, uint64_t from)
{
    for (uint64_t i = from; i < ENTRIES; i++) {
        enum cbn__lookup found = find(cabinet, i, 0);
        bool whole = place_is_whole(&bench->map.places[i], &bench->was, &bench->is);
        bench->counts->served += found == CBN__LOOKUP_HIT;
        bench->counts->whole += whole;
        bench->counts->lost += found != CBN__LOOKUP_HIT;
        ck_assert_msg(found == CBN__LOOKUP_HIT || !whole, "entry %llu on whole pages: look-up says %d",
                      (unsigned long long)i, (int)found);
    }
}

static void expect_put(struct cbn__cabinet *cabinet)
{
    ck_assert_int_eq(put(cabinet, ENTRIES + 1, 3000, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, ENTRIES + 1, 3000), CBN__LOOKUP_HIT);
}

static struct cbn__cabinet *open_as(const struct bench *bench, bool read_only, uint64_t max_bytes,
                                    struct events *events)
{
    struct cbn__cabinet_options options = options_for(bench->folder, events);
    struct cbn__cabinet *cabinet = NULL;
    options.read_only = read_only;
    options.max_bytes = max_bytes ? max_bytes : UINT64_C(64) << 20;
    int32_t status = cbn__cabinet_open(&options, &cabinet, NULL);
    ck_assert_ptr_nonnull(cabinet);
    ck_assert(read_only || status == CBN_STATUS_OK);
    return cabinet;
}

/* A layer that nobody may write is served whole or refused: there is no other file to salvage into. */
static void use_reader(const struct bench *bench, struct cbn__cabinet *cabinet)
{
    int hits = 0;
    for (uint64_t i = 0; i < ENTRIES && hits == 0; i++)
        hits += find(cabinet, i, 0) == CBN__LOOKUP_HIT;
    if (hits)
        expect_whole(bench, cabinet, 0);
}

static int repair(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                  uint32_t layer, const char *layer_path)
{
    (void)layer, (void)layer_path;
    if (problem)
        (void)cbn__cabinet_drop_damaged(user, key, entry);
    return 0;
}

static int count(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                 uint32_t layer, const char *layer_path)
{
    (void)key, (void)entry, (void)layer, (void)layer_path;
    ++((uint64_t *)user)[problem ? 1 : 0];
    return 0;
}

/* verify --repair, then ls, stats, prune and compaction. */
static void use_upkeep(const struct bench *bench, struct cbn__cabinet *cabinet)
{
    uint64_t listed[2] = {0, 0};
    struct cbn__layer_stats stats;
    struct cbn__prune_item items[PRUNED];
    ck_assert_int_eq(cbn__cabinet_each(cabinet, repair, cabinet, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__cabinet_each(cabinet, count, listed, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(listed[1], 0);
    ck_assert_int_eq(cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(stats.layer.entries, listed[0]);
    for (uint64_t i = 0; i < PRUNED; i++) {
        struct test_key key = key_of(i);
        items[i] = (struct cbn__prune_item){.key = cbn__hash_blob(RECORD(key)), .major = 13};
    }
    ck_assert_int_eq(cbn__cabinet_remove(cabinet, items, PRUNED, true, NULL), CBN_STATUS_OK);
    for (uint64_t i = 0; i < PRUNED; i++)
        ck_assert_int_ne(find(cabinet, i, 0), CBN__LOOKUP_HIT);
    ck_assert_int_eq(cbn__cabinet_compact(cabinet, NULL), CBN_STATUS_OK);
    expect_whole(bench, cabinet, PRUNED);
    expect_put(cabinet);
}

/* With a bound below what the file holds. Free pages are hardly ever side by side then: a large value may be refused.
 */
static void use_eviction(const struct bench *bench)
{
    struct cbn__cabinet *cabinet = open_as(bench, false, bench->was.size * 3 / 4 / PAGE * PAGE, NULL);
    for (uint64_t i = 0; i < 3; i++) {
        int32_t status = put(cabinet, ENTRIES + 10 + i, EVICTING_BYTES, 13000);
        ck_assert(status == CBN_STATUS_OK || status == CBN_STATUS_LIMIT);
        ck_assert_int_eq(find(cabinet, ENTRIES + 10 + i, EVICTING_BYTES),
                         status == CBN_STATUS_OK ? CBN__LOOKUP_HIT : CBN__LOOKUP_ABSENT);
    }
    expect_put(cabinet);
    for (uint64_t i = 0; i < ENTRIES; i++)
        (void)find(cabinet, i, 0);
    cbn__cabinet_close(cabinet);
}

struct other_process {
    pid_t pid;
    int go[2], done[2];
};

static struct other_process start_other(const struct bench *bench)
{
    struct other_process other;
    ck_assert_int_eq(pipe(other.go), 0);
    ck_assert_int_eq(pipe(other.done), 0);
    other.pid = fork();
    ck_assert_int_ge(other.pid, 0);
    if (other.pid != 0)
        return other;
    (void)close(other.go[1]);
    (void)alarm(HANG_S);
    struct cbn__cabinet *cabinet = open_as(bench, false, 0, NULL);
    ck_assert_int_eq(find(cabinet, 3, 0), CBN__LOOKUP_HIT);
    tell(other.done[1]);
    hear(other.go[0]);
    expect_whole(bench, cabinet, 0);
    expect_put(cabinet);
    cbn__cabinet_close(cabinet);
    _exit(0);
}

static void use_beside_another(const struct bench *bench, bool other_first)
{
    struct other_process other = start_other(bench);
    hear(other.done[0]);
    damage_in_place(bench->data, &bench->was, &bench->is);
    if (other_first) {
        tell(other.go[1]);
        reap(other.pid);
    }
    struct cbn__cabinet *cabinet = open_as(bench, false, 0, NULL);
    expect_whole(bench, cabinet, 0);
    expect_put(cabinet);
    if (!other_first) {
        tell(other.go[1]);
        reap(other.pid);
        expect_whole(bench, cabinet, 0);
    }
    cbn__cabinet_close(cabinet);
    (void)close(other.go[0]), (void)close(other.go[1]), (void)close(other.done[0]), (void)close(other.done[1]);
}

static void use_open(const struct bench *bench, enum use use)
{
    struct cbn__cabinet *cabinet = open_as(bench, use == USE_READER_OPEN, 0, NULL);
    ck_assert_int_eq(find(cabinet, 3, 0), CBN__LOOKUP_HIT);
    damage_in_place(bench->data, &bench->was, &bench->is);
    if (use == USE_READER_OPEN) {
        use_reader(bench, cabinet);
    } else if (use == USE_UPKEEP_OPEN) {
        use_upkeep(bench, cabinet);
    } else {
        expect_whole(bench, cabinet, 0);
        expect_put(cabinet);
    }
    cbn__cabinet_close(cabinet);
}

static void use_closed(const struct bench *bench, enum use use)
{
    struct events events = {0};
    if (use == USE_EVICTION) {
        use_eviction(bench);
        return;
    }
    struct cbn__cabinet *cabinet = open_as(bench, use == USE_READER, 0, &events);
    if (use == USE_READER) {
        use_reader(bench, cabinet);
    } else if (use == USE_UPKEEP) {
        use_upkeep(bench, cabinet);
    } else {
        expect_whole(bench, cabinet, 0);
        expect_put(cabinet);
    }
    cbn__cabinet_close(cabinet);
}

static void run_case(struct bench *bench, uint64_t i)
{
    uint64_t state = SEED + i * UINT64_C(1000003);
    enum use use = (enum use)(i / DAMAGE_KINDS % USE_KINDS);
    bench->is.size = bench->was.size;
    memcpy(bench->is.bytes, bench->was.bytes, bench->was.size);
    do_damage(&state, &bench->is, &bench->map, &bench->other, (enum damage)(i % DAMAGE_KINDS));
    restore(bench->folder, bench->data, use < USE_WRITER_OPEN ? &bench->is : &bench->was);
    if (use < USE_WRITER_OPEN)
        use_closed(bench, use);
    else if (use == USE_OPEN_ELSEWHERE)
        use_beside_another(bench, i % 2);
    else
        use_open(bench, use);
    bench->counts->cases++;
    bench->counts->aside += count_files(bench->folder, "data.mdb.damaged-") > 0;
}

static void run_from(struct bench *bench, uint64_t from, uint64_t end)
{
    for (uint64_t i = from; i < end; i++) {
        bench->counts->at = i;
        (void)alarm(HANG_S);
        run_case(bench, i);
    }
    _exit(0);
}

/* In processes of their own, so that one that dies is counted and the rest goes on. */
static uint64_t run_all(struct bench *bench, uint64_t from, uint64_t end)
{
    uint64_t faults = 0;
    while (from < end && faults < FAULTS_MOST) {
        int status = 0;
        (void)fflush(NULL);
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0)
            run_from(bench, from, end);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            break;
        const uint64_t at = bench->counts->at;
        printf("case %llu (damage %llu, use %llu): %s %d\n", (unsigned long long)at,
               (unsigned long long)(at % DAMAGE_KINDS), (unsigned long long)(at / DAMAGE_KINDS % USE_KINDS),
               WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        faults++;
        from = at + 1;
    }
    return faults;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(random_damage)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *wanted = getenv("CUBINET_SWEEP");
    const uint64_t from = setting("CUBINET_SWEEP_FROM", 0);
    const uint64_t cases =
        setting("CUBINET_SWEEP_CASES", wanted && strcmp(wanted, "full") == 0 ? CASES_FULL : CASES_SAMPLE);
    struct bench bench = {
        .counts = mmap(NULL, sizeof(struct counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    ck_assert(bench.counts != MAP_FAILED);
    snprintf(bench.folder, sizeof(bench.folder), "%s/cache", scratch.path);
    snprintf(bench.data, sizeof(bench.data), "%s/cache/data.mdb", scratch.path);
    bench.was = make_store(bench.folder, bench.data);
    bench.other = make_other(in(&scratch, "other"), in(&scratch, "other/data.mdb"));
    bench.map = map_pages(&bench.was, ENTRIES);
    bench.is.bytes = malloc(2 * bench.was.size + 2 * PAGE);
    const uint64_t faults = run_all(&bench, from, from + cases);
    const struct counts *counts = bench.counts;
    printf("%llu damages of %llu pages: %llu faults, %llu files set aside, %llu look-ups served, %llu of whole pages, "
           "%llu lost\n",
           (unsigned long long)counts->cases, (unsigned long long)bench.map.page_count, (unsigned long long)faults,
           (unsigned long long)counts->aside, (unsigned long long)counts->served, (unsigned long long)counts->whole,
           (unsigned long long)counts->lost);
    (void)fflush(stdout);
    ck_assert_uint_eq(faults, 0);
    ck_assert_uint_eq(counts->cases, cases);
    ck_assert_uint_gt(counts->aside, cases / 4);
    map_done(&bench.map);
    free(bench.was.bytes), free(bench.is.bytes), free(bench.other.bytes);
    (void)munmap(bench.counts, sizeof(struct counts));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random_damage");
    TCase *cases = tcase_create("random_damage");
    tcase_set_timeout(cases, getenv("CUBINET_SWEEP") ? 7200 : 240);
    tcase_add_test(cases, random_damage);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
