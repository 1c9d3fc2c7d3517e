/*
 * Prune beside others and to a size: pins and removals that come while it runs, values below a page, and one order with
 * eviction. The rules by themselves are in test_cabinet_admin.c.
 */
#include "api/runtime.h"

#include "cache/space.h"
#include "cache_fixture.h"

#define MIB ((uint64_t)1 << 20)
#define COUNT 200u
#define BATCH 64u /* entries between two measures */

struct bench {
    struct scratch scratch;
    struct cbn_runtime *runtime;
};

static struct cbn_runtime *create(const char *cache)
{
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_runtime *runtime = NULL;
    struct cbn_error err = {0};
    options.cache_dir = cache;
    options.max_bytes = 64 * MIB;
    options.lock_timeout_ms = 5000;
    ck_assert_msg(cbn_runtime_create(&options, &runtime, &err) == CBN_STATUS_OK, "%s", err.message);
    return runtime;
}

static struct bench bench_make(void)
{
    struct bench bench = {.scratch = scratch_make_in_memory()};
    bench.runtime = create(in(&bench.scratch, "cache"));
    return bench;
}

static void bench_done(struct bench *bench)
{
    cbn_runtime_destroy(bench->runtime);
    scratch_done(&bench->scratch);
}

#define BENCH_AUTO __attribute__((cleanup(bench_done))) struct bench

static void plant(const struct bench *bench, uint64_t count, size_t size)
{
    for (uint64_t i = 0; i < count; i++)
        ck_assert_int_eq(put(bench->runtime->cabinet, i, size, 13000), CBN_STATUS_OK);
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

static struct cbn__layer layer_of(const struct bench *bench)
{
    struct cbn__layer layer;
    ck_assert_int_eq(cbn__cabinet_layer(bench->runtime->cabinet, 0, &layer, NULL), CBN_STATUS_OK);
    return layer;
}

static struct cbn_prune_options rule(uint32_t flags, uint64_t max_bytes)
{
    struct cbn_prune_options options = CBN_PRUNE_OPTIONS_INIT;
    options.flags = flags;
    options.max_bytes = max_bytes;
    return options;
}

static struct cbn_prune_result prune(struct cbn_runtime *runtime, uint32_t flags, uint64_t max_bytes,
                                     cbn_prune_fn removed, void *user)
{
    struct cbn_prune_options options = rule(flags, max_bytes);
    struct cbn_prune_result result = {.size = sizeof(result)};
    struct cbn_error err = {0};
    ck_assert_msg(cbn_cabinet_prune(runtime, &options, removed, user, &result, &err) == CBN_STATUS_OK, "%s",
                  err.message);
    return result;
}

/* Who was told, how often; and what is done when the first one is. */
struct told {
    struct cbn_runtime *runtime;
    int times[COUNT];
    int count, foreign;
    uint64_t size_bytes;
    void (*at_first)(struct told *told);
    struct told *other;
    struct cbn_prune_result other_result;
};

static void hear_removed(void *user, const char *key, uint64_t size_bytes)
{
    struct told *told = user;
    uint64_t which = 0;
    char text[CBN__HASH_TEXT_BYTES] = "";
    for (; which < COUNT; which++) {
        struct cbn__hash hash = hash_of(which);
        cbn__hash_format(&hash, text);
        if (strcmp(text, key) == 0)
            break;
    }
    told->foreign += which == COUNT;
    if (which < COUNT)
        told->times[which]++;
    told->size_bytes += size_bytes;
    if (told->count++ == 0 && told->at_first)
        told->at_first(told);
}

static void pin_the_last(struct told *told)
{
    struct cbn__hash hash = hash_of(COUNT - 1);
    ck_assert_int_eq(cbn__cabinet_pin(told->runtime->cabinet, &hash, true, NULL), CBN_STATUS_OK);
}

/* The list is made, the first step is done: a pin that comes now holds, unless pins do not count. */
START_TEST(a_pin_that_comes_while_it_runs_holds)
{
    BENCH_AUTO bench = bench_make();
    struct told told = {.runtime = bench.runtime, .at_first = pin_the_last};
    const bool pinned_too = _i == 1;
    plant(&bench, COUNT, 5000);
    struct cbn_prune_result result = prune(bench.runtime, CBN_PRUNE_ALL | (pinned_too ? CBN_PRUNE_UNPINNED_TOO : 0),
                                           UINT64_MAX, hear_removed, &told);
    ck_assert_int_eq(told.times[COUNT - 1], pinned_too);
    ck_assert(has(bench.runtime->cabinet, COUNT - 1) == !pinned_too);
    ck_assert_uint_eq(result.removed, COUNT - !pinned_too);
    ck_assert_uint_eq(result.kept, !pinned_too);
    ck_assert_int_eq(told.count, (int)result.removed);
    ck_assert_uint_eq(layer_of(&bench).entries, result.kept);
    struct cbn__layer_stats stats;
    ck_assert_int_eq(cbn__cabinet_layer_stats(bench.runtime->cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(stats.pinned, !pinned_too);
}
END_TEST

static void prune_as_another(struct told *told)
{
    told->other_result = prune(told->runtime, CBN_PRUNE_ALL, UINT64_MAX, hear_removed, told->other);
}

/* Another prune runs to its end within the first: each entry is one's alone, in name, number and bytes. */
START_TEST(two_prunes_share_no_entry)
{
    BENCH_AUTO bench = bench_make();
    struct told other = {0};
    struct told told = {.runtime = bench.runtime, .at_first = prune_as_another, .other = &other};
    plant(&bench, COUNT, 5000);
    struct cbn_prune_result all = prune(bench.runtime, CBN_PRUNE_ALL | CBN_PRUNE_DRY_RUN, UINT64_MAX, NULL, NULL);
    struct cbn_prune_result result = prune(bench.runtime, CBN_PRUNE_ALL, UINT64_MAX, hear_removed, &told);
    ck_assert_uint_eq(all.removed, COUNT);
    ck_assert_uint_eq(result.removed, BATCH);
    ck_assert_uint_eq(told.other_result.removed, COUNT - BATCH);
    ck_assert_uint_eq(result.freed_bytes + told.other_result.freed_bytes, all.freed_bytes);
    ck_assert_uint_eq(result.kept + told.other_result.kept, 0);
    ck_assert_int_eq(told.foreign + other.foreign, 0);
    for (uint64_t i = 0; i < COUNT; i++)
        ck_assert_int_eq(told.times[i] + other.times[i], 1);
    ck_assert_uint_eq(told.size_bytes, BATCH * 5000u);
    ck_assert_uint_eq(layer_of(&bench).entries, 0);
}
END_TEST

struct size_row {
    size_t size;
    uint64_t count;
    uint64_t percent; /* of the pages in use, to come down to */
};

static const struct size_row size_rows[] = {
    {10, 3000, 90},   {10, 3000, 50},   {700, 2000, 90}, {700, 2000, 50},  {700, 2000, 10},
    {1500, 1000, 90}, {1500, 1000, 50}, {3000, 600, 50}, {20000, 300, 50}, {20000, 300, 95},
};

/* Down to the bound and no further than a batch, whether the values have pages of their own or share leaves. */
START_TEST(to_a_size_and_no_further)
{
    BENCH_AUTO bench = bench_make();
    const struct size_row *row = &size_rows[_i];
    plant(&bench, row->count, row->size);
    const uint64_t used = layer_of(&bench).used_bytes, bound = used * row->percent / 100;
    const uint64_t each = used / row->count + 1;
    struct cbn_prune_result dry = prune(bench.runtime, CBN_PRUNE_DRY_RUN, bound, NULL, NULL);
    ck_assert_uint_eq(layer_of(&bench).entries, row->count);
    struct cbn_prune_result real = prune(bench.runtime, 0, bound, NULL, NULL);
    const uint64_t left = layer_of(&bench).used_bytes;
    printf("%zu bytes, to %llu %%: dry %llu, real %llu of %llu, left %lld %% of the bound\n", row->size,
           (unsigned long long)row->percent, (unsigned long long)dry.removed, (unsigned long long)real.removed,
           (unsigned long long)row->count, (long long)(100 * left / bound));
    ck_assert_uint_le(left, bound);
    ck_assert_uint_ge(left + BATCH * each, bound);
    ck_assert_uint_eq(real.removed + real.kept, row->count);
    ck_assert_uint_eq(layer_of(&bench).entries, real.kept);
    ck_assert_uint_eq(dry.removed + dry.kept, row->count);
    ck_assert_uint_le(dry.removed, real.removed + BATCH);
    ck_assert_uint_ge(dry.removed + BATCH, real.removed);
    for (uint64_t i = 0; i < row->count; i++)
        ck_assert(has(bench.runtime->cabinet, i) == (i >= real.removed));
}
END_TEST

static void put_created(struct cbn__cabinet *cabinet, uint64_t which, int64_t created_s)
{
    static uint8_t payload[50000];
    struct test_key key = key_of(which);
    struct cbn__entry_facts facts = facts_of(13000);
    facts.created_s = created_s;
    ck_assert_int_eq(cbn__cabinet_put(cabinet, RECORD(key), (struct cbn__blob){payload, sizeof(payload)},
                                      cbn__blob_text("log"), &facts, NULL),
                     CBN_STATUS_OK);
}

static void lose_usage(struct cbn__cabinet *cabinet, uint64_t which)
{
    struct cbn__store *store = cabinet->layers[0].store;
    struct cbn__session session;
    struct cbn__hash hash = hash_of(which);
    struct cbn__store_key key = cbn__entry_key(&hash, 13);
    MDB_val name = {sizeof(key.bytes), key.bytes};
    ck_assert_int_eq(cbn__session_write(store, 5000, &session, NULL), CBN_STATUS_OK);
    int rc = mdb_del(session.txn, store->usage_table, &name, NULL);
    ck_assert_int_eq(cbn__session_write_end(&session, rc, NULL), CBN_STATUS_OK);
}

/* Entries 0 and 1 have lost their usage: built in an hour from now, by its clock, and ten minutes ago. */
static void plant_lost(struct cbn__cabinet *cabinet)
{
    for (uint64_t i = 0; i < 40; i++)
        put_created(cabinet, i, cbn__clock_wall_s() + (i == 0 ? 3600 : i == 1 ? -600 : 0));
    lose_usage(cabinet, 0);
    lose_usage(cabinet, 1);
}

/* To prune and to eviction alike: the first to go is 1, then 2 and its successors, and 0 is of now. */
START_TEST(prune_and_eviction_have_one_order)
{
    BENCH_AUTO bench = bench_make();
    plant_lost(bench.runtime->cabinet);
    struct cbn_prune_result pruned = prune(bench.runtime, 0, layer_of(&bench).used_bytes * 3 / 4, NULL, NULL);
    ck_assert_uint_ge(pruned.removed, 5);
    for (uint64_t i = 0; i < 40; i++)
        ck_assert_msg(has(bench.runtime->cabinet, i) == (i == 0 || i > pruned.removed), "pruned %d", (int)i);

    struct cbn__cabinet_options options = options_for(in(&bench.scratch, "small"), NULL);
    struct cbn__cabinet *cabinet = NULL;
    struct cbn__layer_stats stats = {0};
    options.max_bytes = 4 * MIB;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    plant_lost(cabinet);
    for (uint64_t next = 40; stats.counters.evictions < 10; next++) {
        put_created(cabinet, next, cbn__clock_wall_s());
        ck_assert_int_eq(cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    }
    for (uint64_t i = 0; i < 40; i++)
        ck_assert_msg(has(cabinet, i) == (i == 0 || i > stats.counters.evictions), "evicted %d", (int)i);
    cbn__cabinet_close(cabinet);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prune");
    TCase *cases = tcase_create("prune");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, a_pin_that_comes_while_it_runs_holds, 0, 2);
    tcase_add_test(cases, two_prunes_share_no_entry);
    tcase_add_loop_test(cases, to_a_size_and_no_further, 0, (int)(sizeof(size_rows) / sizeof(size_rows[0])));
    tcase_add_test(cases, prune_and_eviction_have_one_order);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
