/*
 * Who was used last, under a wall clock that is set back or was ahead: what is put or used later is more recent, in
 * this process and in the next. What people and rules of age see never lies ahead of the clock.
 */
#include "cache_fixture.h"
#include "fake/clock_shift.h"

#define BOUND ((uint64_t)4 << 20)
#define VALUE_BYTES 50000u
#define HOUR_S 3600
#define YEAR_S (366LL * 24 * HOUR_S)
#define FIRST 40u /* as many fit without eviction */

static struct cbn__cabinet *open_bounded(const char *folder)
{
    struct cbn__cabinet_options options = options_for(folder, NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.max_bytes = BOUND;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    return cabinet;
}

static uint64_t evictions_of(struct cbn__cabinet *cabinet)
{
    struct cbn__layer_stats stats;
    ck_assert_int_eq(cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    return stats.counters.evictions;
}

static bool has(struct cbn__cabinet *cabinet, uint64_t which)
{
    struct test_key key = key_of(which);
    return cbn__cabinet_probe(cabinet, RECORD(key), NULL) == CBN__LOOKUP_HIT;
}

static void put_range(struct cbn__cabinet *cabinet, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        ck_assert_int_eq(put(cabinet, i, VALUE_BYTES, 13000), CBN_STATUS_OK);
}

/* Puts until 20 are gone: of entries put in the order of their numbers, used ones last. */
static void expect_order(struct cbn__cabinet *cabinet, uint64_t next, uint64_t used)
{
    while (evictions_of(cabinet) < 20)
        put_range(cabinet, next, next + 1), next++;
    const uint64_t evicted = evictions_of(cabinet);
    for (uint64_t i = 0; i < next; i++) {
        const uint64_t order = i < used ? next : i - used;
        ck_assert_msg(has(cabinet, i) == (order >= evicted), "entry %d of %d, %d used, %d evicted", (int)i, (int)next,
                      (int)used, (int)evicted);
    }
}

/* How the clock goes: while the first entries are put, then. */
static const struct {
    int64_t first_s, then_s;
} clocks[] = {{0, -HOUR_S}, {0, HOUR_S}, {YEAR_S, 0}, {400 * YEAR_S, 0}, {-HOUR_S, -2 * HOUR_S}};
#define CLOCKS ((int)(sizeof(clocks) / sizeof(clocks[0])))

START_TEST(the_clock_is_set_while_open)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    clock_shift_set(clocks[_i].first_s);
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"));
    put_range(cabinet, 0, FIRST);
    clock_shift_set(clocks[_i].then_s);
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(find(cabinet, i, VALUE_BYTES), CBN__LOOKUP_HIT);
    expect_order(cabinet, FIRST, 10);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(the_clock_is_set_between_two_processes)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    clock_shift_set(clocks[_i].first_s);
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"));
    put_range(cabinet, 0, FIRST);
    cbn__cabinet_close(cabinet);
    clock_shift_set(clocks[_i].then_s);
    cabinet = open_bounded(in(&scratch, "cache"));
    for (uint64_t i = 0; i < 10; i++) /* before anything told this process how late it is */
        ck_assert_int_eq(find(cabinet, i, VALUE_BYTES), CBN__LOOKUP_HIT);
    expect_order(cabinet, FIRST, 10);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* A process that only reads writes its uses as it leaves; they count in the next one. */
START_TEST(uses_under_a_clock_set_back_are_kept)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    clock_shift_set(clocks[_i].first_s);
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"));
    put_range(cabinet, 0, FIRST);
    cbn__cabinet_close(cabinet);
    clock_shift_set(clocks[_i].then_s);
    cabinet = open_bounded(in(&scratch, "cache"));
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(find(cabinet, i, VALUE_BYTES), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    cabinet = open_bounded(in(&scratch, "cache"));
    expect_order(cabinet, FIRST, 10);
    cbn__cabinet_close(cabinet);
}
END_TEST

static int check_shown(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                       uint32_t layer, const char *layer_path)
{
    (void)key, (void)layer, (void)layer_path;
    ck_assert_ptr_null(problem);
    ck_assert_int_le(entry->last_used_s, cbn__clock_wall_s());
    ck_assert_int_ge(entry->last_used_s, cbn__clock_wall_s() - 300);
    ++*(int *)user;
    return 0;
}

START_TEST(what_is_shown_is_not_ahead)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    int shown = 0;
    clock_shift_set(clocks[_i].first_s);
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "cache"));
    put_range(cabinet, 0, 10);
    clock_shift_set(clocks[_i].then_s);
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(find(cabinet, i, VALUE_BYTES), CBN__LOOKUP_HIT);
    ck_assert_int_eq(cbn__cabinet_each(cabinet, check_shown, &shown, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(shown, 10);
    cbn__cabinet_close(cabinet);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recency");
    TCase *cases = tcase_create("recency");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, the_clock_is_set_while_open, 0, CLOCKS);
    tcase_add_loop_test(cases, the_clock_is_set_between_two_processes, 0, CLOCKS);
    tcase_add_loop_test(cases, uses_under_a_clock_set_back_are_kept, 0, CLOCKS);
    tcase_add_loop_test(cases, what_is_shown_is_not_ahead, 0, CLOCKS);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
