/*
 * Enumeration is complete and tells nothing twice: against every value of the sweep fact on drawn families, and
 * against drawn shapes where all of them are free.
 */
#include <check.h>
#include <string.h>

#include "dispatch/decide.h"
#include "unit/failing_alloc.h"
#include "unit/invented_family.h"
#include "unit/random_family.h"

#define SPECS_MAX 4096

struct told {
    const struct cbn__candidate *candidate;
    int64_t params[CBN_PARAMS_MAX];
    int64_t facts[CBN_FACTS_MAX];
};

struct tally {
    const struct cbn__family *family;
    int stop_after; /* 0: never */
    int count;
    struct told told[SPECS_MAX];
};

static struct cbn__family *make(const struct cbn_family *description)
{
    struct cbn__family *family = NULL;
    struct cbn_error err = {0};
    ck_assert_msg(cbn__family_create(description, NULL, &family, &err) == CBN_STATUS_OK, "%s", err.message);
    return family;
}

static int find(const struct tally *tally, const struct cbn__candidate *candidate, const int64_t *params)
{
    for (int i = 0; i < tally->count; i++)
        if (tally->told[i].candidate == candidate &&
            memcmp(tally->told[i].params, params, candidate->template.param_count * sizeof(*params)) == 0)
            return i;
    return -1;
}

static int tell(void *user, const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    struct tally *tally = user;
    ck_assert_msg(find(tally, candidate, params) < 0, "told twice");
    ck_assert_int_lt(tally->count, SPECS_MAX);
    struct told *told = &tally->told[tally->count++];
    told->candidate = candidate;
    memcpy(told->params, params, candidate->template.param_count * sizeof(*params));
    memcpy(told->facts, facts, tally->family->fact_count * sizeof(*facts));
    return tally->count == tally->stop_after;
}

static void tally_init(struct tally *tally, const struct cbn__family *family)
{
    memset(tally, 0, sizeof(*tally));
    tally->family = family;
}

/* A route drawn with its policy's name. */
struct drawn_route {
    struct cbn__route route;
    const char *policy;
};

static struct drawn_route draw_route(const struct cbn__family *family, uint64_t *state)
{
    struct drawn_route drawn = {.policy = "default"};
    if (random_below(state, 2) && cbn__family_policy(family, "other") >= 0)
        drawn.policy = "other";
    drawn.route.policy = (uint32_t)cbn__family_policy(family, drawn.policy);
    drawn.route.disabled_mask = random_below(state, 4) ? 0 : (uint32_t)(random_next(state) & random_next(state));
    drawn.route.enabled_mask = (uint32_t)random_next(state);
    drawn.route.strict = random_below(state, 4) == 0;
    return drawn;
}

/* What the oracle decides at facts is in the tally; *ret_hits marks it. */
static void visit(const struct rf *rf, const struct tally *tally, const int64_t *facts, const struct drawn_route *drawn,
                  uint8_t *hits)
{
    int chosen =
        rf_choose(rf, facts, drawn->policy, drawn->route.disabled_mask, drawn->route.enabled_mask, drawn->route.strict);
    if (chosen < 0)
        return;
    int64_t params[CBN_PARAMS_MAX] = {0};
    rf_params(rf, (uint32_t)chosen, facts, params);
    int index = find(tally, &tally->family->candidates[chosen], params);
    ck_assert_msg(index >= 0, "seed %llu: m=%lld reaches a specialisation that was not told",
                  (unsigned long long)rf->state, (long long)facts[RF_M]);
    hits[index] = 1;
}

/* Every m in 0..5000, and both sides of every threshold up to max. */
static void visit_all_m(const struct rf *rf, const struct tally *tally, int64_t max, const int64_t *facts,
                        const struct drawn_route *drawn, uint8_t *hits)
{
    int64_t moved[RF_FACTS];
    memcpy(moved, facts, sizeof(moved));
    for (moved[RF_M] = 0; moved[RF_M] <= max && moved[RF_M] <= 5000; moved[RF_M]++)
        visit(rf, tally, moved, drawn, hits);
    const struct cbn_guard *all[] = {&rf->guards[0][0], &rf->noops[0], &rf->rule_guards[0][0]};
    const size_t counts[] = {RF_CANDIDATES * RF_GUARDS, 2, sizeof(rf->rule_guards) / sizeof(rf->rule_guards[0][0])};
    for (int a = 0; a < 3; a++)
        for (size_t i = 0; i < counts[a]; i++)
            for (int side = -1; side <= 3; side++) {
                int64_t edge = side < 2 ? all[a][i].value : all[a][i].value_end;
                if (__builtin_add_overflow(edge, side < 2 ? side : side - 3, &moved[RF_M]))
                    continue;
                if (moved[RF_M] >= 0 && moved[RF_M] <= max)
                    visit(rf, tally, moved, drawn, hits);
            }
    moved[RF_M] = max;
    visit(rf, tally, moved, drawn, hits);
}

START_TEST(sweep_equals_brute_force)
{
    static struct rf rf;
    static struct tally tally;
    uint64_t state = 5;
    int told_count = 0, most = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        rf_make(&rf, seed);
        struct cbn__family *family = make(&rf.family);
        struct drawn_route drawn = draw_route(family, &state);
        int64_t facts[RF_FACTS], max = random_below(&state, 3) ? 5000 : rf_value(&state);
        for (int f = 0; f < RF_FACTS; f++)
            facts[f] = rf_value(&state);
        max = max < 0 ? 0 : max;
        tally_init(&tally, family);
        ck_assert_int_eq(cbn__enumerate_sweep(family, facts, max, &drawn.route, tell, &tally, NULL), CBN_STATUS_OK);
        uint8_t hits[SPECS_MAX] = {0};
        visit_all_m(&rf, &tally, max, facts, &drawn, hits);
        for (int i = 0; i < tally.count; i++) {
            ck_assert_msg(hits[i], "seed %llu: told but reached by no m", (unsigned long long)seed);
            ck_assert_int_le(tally.told[i].facts[RF_M], max);
        }
        told_count += tally.count;
        most = tally.count > most ? tally.count : most;
        cbn__family_destroy(family);
    }
    ck_assert_int_gt(told_count, 200);
    ck_assert_int_gt(most, 5);
}
END_TEST

START_TEST(sweep_of_a_callers_own_family)
{
    static struct tally tally;
    struct cbn__family *family = make(&invented_family);
    const int64_t facts[] = {-1, 128, CBN_DTYPE_BF16, CBN_ARCH(90, 'a'), 64, 1};
    struct cbn__route route = {0};
    static const struct {
        int64_t max;
        int count;
    } cases[] = {{0, 0}, {1, 1}, {4, 1}, {5, 2}, {16, 2}, {17, 3}, {31, 3}, {32, 4}, {INT64_MAX, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tally_init(&tally, family);
        ck_assert_int_eq(cbn__enumerate_sweep(family, facts, cases[i].max, &route, tell, &tally, NULL), CBN_STATUS_OK);
        ck_assert_int_eq(tally.count, cases[i].count);
    }
    ck_assert_ptr_eq(tally.told[3].candidate, &family->candidates[2]);
    ck_assert_int_eq(tally.told[3].params[0], 64);
    ck_assert_int_eq(tally.told[3].facts[ROWS], 32);
    ck_assert_int_eq(tally.told[3].facts[COLS], 128);
    cbn__family_destroy(family);
}
END_TEST

START_TEST(negative_maximum_is_refused)
{
    struct cbn__family *family = make(&invented_family);
    const int64_t facts[FACTS] = {0};
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__enumerate_sweep(family, facts, -1, &(struct cbn__route){0}, tell, NULL, &err),
                     CBN_STATUS_INVALID);
    ck_assert_str_eq(err.message, "rows: the maximum is negative; give 0 or more");
    cbn__family_destroy(family);
}
END_TEST

START_TEST(the_callback_can_stop)
{
    static struct tally tally;
    struct cbn__family *family = make(&invented_family);
    const int64_t facts[] = {0, 128, CBN_DTYPE_BF16, CBN_ARCH(90, 'a'), 64, 1};
    tally_init(&tally, family);
    tally.stop_after = 2;
    ck_assert_int_eq(cbn__enumerate_sweep(family, facts, 100, &(struct cbn__route){0}, tell, &tally, NULL),
                     CBN_STATUS_OK);
    ck_assert_int_eq(tally.count, 2);
    tally_init(&tally, family);
    tally.stop_after = 1;
    ck_assert_int_eq(
        cbn__enumerate_all(family, facts, 1u << ROWS | 1u << COLS, &(struct cbn__route){0}, tell, &tally, NULL),
        CBN_STATUS_OK);
    ck_assert_int_eq(tally.count, 1);
    cbn__family_destroy(family);
}
END_TEST

/* rows and cols free: small 3 tiles; wide 2 stages (off); any 3 tiles x 2 stages. */
START_TEST(all_of_a_callers_own_family)
{
    static struct tally tally;
    struct cbn__family *family = make(&invented_family);
    const int64_t facts[] = {-1, -1, CBN_DTYPE_BF16, CBN_ARCH(90, 'a'), 64, 1};
    const uint32_t free_mask = 1u << ROWS | 1u << COLS;
    static const struct {
        struct cbn__route route;
        int64_t out;
        int count;
    } cases[] = {
        {{0}, CBN_DTYPE_BF16, 3 + 6},
        {{0}, CBN_DTYPE_FP16, 6},
        {{.enabled_mask = 2}, CBN_DTYPE_FP16, 2 + 6},
        {{.disabled_mask = 4}, CBN_DTYPE_BF16, 3},
        {{.policy = 1}, CBN_DTYPE_BF16, 6},
        {{.strict = true}, CBN_DTYPE_BF16, 3},
        {{.policy = 1, .strict = true}, CBN_DTYPE_BF16, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t moved[FACTS];
        memcpy(moved, facts, sizeof(facts));
        moved[OUT] = cases[i].out;
        tally_init(&tally, family);
        ck_assert_int_eq(cbn__enumerate_all(family, moved, free_mask, &cases[i].route, tell, &tally, NULL),
                         CBN_STATUS_OK);
        ck_assert_int_eq(tally.count, cases[i].count);
    }
    tally_init(&tally, family);
    const int64_t elsewhere[] = {-1, -1, CBN_DTYPE_FP16, CBN_ARCH(89, 0), 64, 1};
    ck_assert_int_eq(
        cbn__enumerate_all(family, elsewhere, free_mask, &(struct cbn__route){.enabled_mask = 2}, tell, &tally, NULL),
        CBN_STATUS_OK);
    ck_assert_int_eq(tally.count, 6); /* wide is refused by a fixed fact */
    cbn__family_destroy(family);
}
END_TEST

/* Families whose parameters read free facts only through buckets enumerate; each told specialisation is taken by its
 * candidate at the facts it is told with, and whatever a drawn shape decides has been told. */
START_TEST(all_covers_drawn_shapes)
{
    static struct rf rf;
    static struct tally tally;
    uint64_t state = 9;
    int enumerated_count = 0, refused_count = 0, hit_count = 0;
    const uint32_t free_mask = 1u << RF_M | 1u << RF_N | 1u << RF_K;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        rf_make(&rf, seed);
        struct cbn__family *family = make(&rf.family);
        struct drawn_route drawn = draw_route(family, &state);
        int64_t facts[RF_FACTS] = {-7, -7, -7, rf_value(&state)};
        struct cbn_error err = {0};
        tally_init(&tally, family);
        int32_t status = cbn__enumerate_all(family, facts, free_mask, &drawn.route, tell, &tally, &err);
        if (status == CBN_STATUS_UNSUPPORTED) {
            ck_assert_ptr_nonnull(strstr(err.message, "takes any value of"));
            refused_count++;
            cbn__family_destroy(family);
            continue;
        }
        ck_assert_msg(status == CBN_STATUS_OK, "%s", err.message);
        enumerated_count++;
        for (int i = 0; i < tally.count; i++) {
            uint32_t index = (uint32_t)(tally.told[i].candidate - family->candidates);
            int64_t params[CBN_PARAMS_MAX] = {0};
            ck_assert(rf_takes(&rf, index, tally.told[i].facts, drawn.policy, drawn.route.disabled_mask,
                               drawn.route.enabled_mask, drawn.route.strict));
            for (uint32_t g = 0; g < rf.family.noop_count; g++)
                if (rf.noops[g].relation != CBN_RELATION_MULTIPLE_OF)
                    ck_assert(!rf_holds(&rf.noops[g], tally.told[i].facts));
            rf_params(&rf, index, tally.told[i].facts, params);
            ck_assert_mem_eq(params, tally.told[i].params, sizeof(params));
        }
        uint8_t hits[SPECS_MAX] = {0};
        for (int i = 0; i < 2000; i++) {
            for (int f = 0; f < RF_MODE; f++)
                facts[f] = rf_value(&state) & INT64_MAX;
            visit(&rf, &tally, facts, &drawn, hits);
        }
        for (int i = 0; i < tally.count; i++)
            hit_count += hits[i];
        cbn__family_destroy(family);
    }
    ck_assert_int_gt(enumerated_count, 100);
    ck_assert_int_gt(refused_count, 20);
    ck_assert_int_gt(hit_count, 300);
}
END_TEST

static const char *const wide_facts[] = {"m", "a", "b", "c", "d"};

/* A candidate with one guard set and a BUCKET parameter on each of a, b, c, d. */
static struct cbn__family *make_wide(const struct cbn_guard *guards, uint32_t guard_count, uint32_t bucket_count)
{
    struct cbn_bucket buckets[64];
    struct cbn_param params[4];
    static const char *const names[] = {"A", "B", "C", "D"};
    for (uint32_t i = 0; i < bucket_count; i++)
        buckets[i] = (struct cbn_bucket){i + 1 < bucket_count ? 10 * i : INT64_MAX, i};
    for (size_t i = 0; i < 4; i++)
        params[i] = (struct cbn_param){names[i], CBN_PARAM_BUCKET, .bucket_count = bucket_count,
                                       .fact = wide_facts[i + 1], .buckets = buckets};
    const struct cbn_candidate candidate = {
        .name = "c", .params = params, .param_count = 4, .guards = guards, .guard_count = guard_count};
    return make(&(struct cbn_family){.size = sizeof(struct cbn_family),
                                     .name = "wide",
                                     .facts = wide_facts,
                                     .fact_count = 5,
                                     .sweep_fact = "m",
                                     .candidates = &candidate,
                                     .candidate_count = 1});
}

/* Moduli that share factors, that reach past int64, and intervals that hold no multiple. */
START_TEST(multiples_decide_which_intervals_exist)
{
    static struct tally tally;
    const struct cbn_guard guards[] = {
        {"a", CBN_RELATION_MULTIPLE_OF, 0, 6, 0},         {"a", CBN_RELATION_MULTIPLE_OF, 0, 4, 0},
        {"b", CBN_RELATION_MULTIPLE_OF, 0, INT64_MAX, 0}, {"b", CBN_RELATION_MULTIPLE_OF, 0, INT64_MAX - 1, 0},
        {"c", CBN_RELATION_IN_RANGE, 0, 5, 12},           {"d", CBN_RELATION_EQ, 0, 20, 0},
    };
    struct cbn__family *family = make_wide(guards, 6, 4); /* 0, 1..10, 11..20, 21.. */
    const int64_t facts[5] = {0};
    tally_init(&tally, family);
    ck_assert_int_eq(cbn__enumerate_all(family, facts, 0x1E, &(struct cbn__route){0}, tell, &tally, NULL),
                     CBN_STATUS_OK);
    /* a: 0, (no multiple of 12 in 1..10), 12, 24. b: 0 only. c: 5..10 and 11. d: 20. */
    ck_assert_int_eq(tally.count, 3 * 1 * 2 * 1);
    ck_assert_int_eq(tally.told[1].facts[1], 12);
    ck_assert_int_eq(tally.told[2].facts[1], 24);
    for (int i = 0; i < tally.count; i++) {
        ck_assert_int_eq(tally.told[i].facts[2], 0);
        ck_assert_int_eq(tally.told[i].facts[3], i < 3 ? 5 : 11);
        ck_assert_int_eq(tally.told[i].params[3], 2);
    }
    cbn__family_destroy(family);
}
END_TEST

START_TEST(too_many_combinations_are_refused)
{
    struct cbn__family *family = make_wide(NULL, 0, 17);
    const int64_t facts[5] = {0};
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__enumerate_all(family, facts, 0x1E, &(struct cbn__route){0}, tell, NULL, &err),
                     CBN_STATUS_LIMIT);
    ck_assert_str_eq(err.message,
                     "wide/c: the free buckets make over 65536 combinations; enumerate by shape, or use fewer buckets");
    cbn__family_destroy(family);
}
END_TEST

START_TEST(each_failed_allocation_is_no_memory)
{
    static struct tally tally;
    struct cbn__family *family = make(&invented_family);
    const int64_t facts[] = {0, 128, CBN_DTYPE_BF16, CBN_ARCH(90, 'a'), 64, 1};
    for (int all = 0; all < 2; all++) {
        int32_t status = CBN_STATUS_NO_MEMORY;
        int count = 0;
        for (; status == CBN_STATUS_NO_MEMORY && count < 1000; count++) {
            tally_init(&tally, family);
            allocs_left = count;
            status = all ? cbn__enumerate_all(family, facts, 3, &(struct cbn__route){0}, tell, &tally, NULL)
                         : cbn__enumerate_sweep(family, facts, 100, &(struct cbn__route){0}, tell, &tally, NULL);
            allocs_left = -1;
        }
        ck_assert_int_eq(status, CBN_STATUS_OK);
        ck_assert_int_eq(tally.count, all ? 9 : 4);
        ck_assert_int_gt(count, 2);
    }
    cbn__family_destroy(family);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("enumerate");
    TCase *tcase = tcase_create("enumerate");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, sweep_equals_brute_force);
    tcase_add_test(tcase, sweep_of_a_callers_own_family);
    tcase_add_test(tcase, negative_maximum_is_refused);
    tcase_add_test(tcase, the_callback_can_stop);
    tcase_add_test(tcase, all_of_a_callers_own_family);
    tcase_add_test(tcase, all_covers_drawn_shapes);
    tcase_add_test(tcase, multiples_decide_which_intervals_exist);
    tcase_add_test(tcase, too_many_combinations_are_refused);
    tcase_add_test(tcase, each_failed_allocation_is_no_memory);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
