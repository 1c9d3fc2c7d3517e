/*
 * The decision: each relation and refusal, the order in which they are asked, their texts, and drawn families
 * against an oracle.
 */
#include <check.h>
#include <string.h>

#include "dispatch/decide.h"
#include "dispatch/guard.h"
#include "unit/invented_family.h"
#include "unit/random_family.h"

static struct cbn__family *make(const struct cbn_family *description)
{
    struct cbn__family *family = NULL;
    struct cbn_error err = {0};
    ck_assert_msg(cbn__family_create(description, NULL, &family, &err) == CBN_STATUS_OK, "%s", err.message);
    return family;
}

static void assert_verdict(const struct cbn__family *family, const struct cbn__decision *decision, uint32_t candidate,
                           enum cbn_verdict verdict, const char *text, int64_t value)
{
    char seen[CBN_TEXT_BYTES] = "unwritten";
    cbn__guard_format(family, decision, candidate, seen, sizeof(seen));
    ck_assert_str_eq(seen, text);
    ck_assert_int_eq(decision->candidates[candidate].verdict, verdict);
    ck_assert_int_eq(decision->candidates[candidate].value, value);
}

/* Facts of the invented family on sm_90a. */
#define AT(rows, cols, out)                                                                                            \
    {                                                                                                                  \
        rows, cols, out, CBN_ARCH(90, 'a'), 64, 1                                                                      \
    }

START_TEST(first_that_takes_is_chosen_and_stops)
{
    struct cbn__family *family = make(&invented_family);
    struct cbn__route route = {0};
    struct cbn__decision decision;
    memset(&decision, 0xAA, sizeof(decision));
    const int64_t facts[] = AT(31, 128, CBN_DTYPE_BF16);
    cbn__decide(family, facts, &route, &decision);
    ck_assert(!decision.noop);
    ck_assert_int_eq(decision.chosen, 0);
    assert_verdict(family, &decision, 0, CBN_VERDICT_CHOSEN, "", 0);
    assert_verdict(family, &decision, 1, CBN_VERDICT_NOT_REACHED, "", 0);
    assert_verdict(family, &decision, 2, CBN_VERDICT_NOT_REACHED, "", 0);
    cbn__family_destroy(family);
}
END_TEST

START_TEST(noop_reaches_nobody)
{
    struct cbn__family *family = make(&invented_family);
    struct cbn__route route = {0};
    struct cbn__decision decision;
    memset(&decision, 0xAA, sizeof(decision));
    const int64_t facts[] = AT(0, 128, CBN_DTYPE_BF16);
    cbn__decide(family, facts, &route, &decision);
    ck_assert(decision.noop);
    ck_assert_int_eq(decision.chosen, -1);
    for (uint32_t i = 0; i < 3; i++)
        assert_verdict(family, &decision, i, CBN_VERDICT_NOT_REACHED, "", 0);
    cbn__family_destroy(family);
}
END_TEST

START_TEST(refusals_name_the_guard_and_its_value)
{
    struct cbn__family *family = make(&invented_family);
    struct cbn__route route = {0};
    struct cbn__decision decision;
    cbn__decide(family, (const int64_t[])AT(32, 128, CBN_DTYPE_BF16), &route, &decision);
    assert_verdict(family, &decision, 0, CBN_VERDICT_REFUSED, "rows in [1,32)", 32);
    assert_verdict(family, &decision, 1, CBN_VERDICT_REFUSED, "enabled", 0);
    assert_verdict(family, &decision, 2, CBN_VERDICT_CHOSEN, "", 0);
    cbn__decide(family, (const int64_t[])AT(31, 128, CBN_DTYPE_FP16), &route, &decision);
    assert_verdict(family, &decision, 0, CBN_VERDICT_REFUSED, "out == bf16", CBN_DTYPE_FP16);
    cbn__decide(family, (const int64_t[])AT(31, 100, CBN_DTYPE_BF16), &route, &decision);
    assert_verdict(family, &decision, 0, CBN_VERDICT_REFUSED, "cols % 64 == 0", 100);

    route.enabled_mask = 2;
    cbn__decide(family, (const int64_t[])AT(19, 100, CBN_DTYPE_BF16), &route, &decision);
    assert_verdict(family, &decision, 1, CBN_VERDICT_REFUSED, "rows >= 20", 19);
    cbn__decide(family, (const int64_t[]){20, 100, 1, CBN_ARCH(90, 'a'), 100, 1}, &route, &decision);
    assert_verdict(family, &decision, 1, CBN_VERDICT_REFUSED, "max_sms < 100", 100);
    cbn__decide(family, (const int64_t[]){20, 100, 1, CBN_ARCH(89, 0), 99, 1}, &route, &decision);
    assert_verdict(family, &decision, 1, CBN_VERDICT_REFUSED, "arch == sm_90a", CBN_ARCH(89, 0));
    cbn__decide(family, (const int64_t[])AT(32, 192, CBN_DTYPE_BF16), &route, &decision);
    assert_verdict(family, &decision, 1, CBN_VERDICT_REFUSED, "cols != 192", 192);
    cbn__decide(family, (const int64_t[])AT(32, 100, CBN_DTYPE_BF16), &route, &decision);
    assert_verdict(family, &decision, 1, CBN_VERDICT_CHOSEN, "", 0);
    cbn__family_destroy(family);
}
END_TEST

START_TEST(options_come_before_policy_before_guards_before_strict)
{
    struct cbn__family *family = make(&invented_family);
    struct cbn__decision decision;
    const int64_t facts[] = AT(31, 128, CBN_DTYPE_BF16);
    struct cbn__route plain = {.policy = 1};
    cbn__decide(family, facts, &plain, &decision);
    assert_verdict(family, &decision, 0, CBN_VERDICT_REFUSED, "policy plain", 0);
    assert_verdict(family, &decision, 1, CBN_VERDICT_REFUSED, "enabled", 0);
    ck_assert_int_eq(decision.candidates[1].refusal, CBN__REFUSAL_OFF);
    ck_assert_int_eq(decision.chosen, 2);

    struct cbn__route all = {.policy = 1, .disabled_mask = 3, .enabled_mask = 3, .strict = true};
    cbn__decide(family, facts, &all, &decision);
    ck_assert_int_eq(decision.candidates[0].refusal, CBN__REFUSAL_DISABLED);
    ck_assert_int_eq(decision.candidates[1].refusal, CBN__REFUSAL_DISABLED);
    assert_verdict(family, &decision, 1, CBN_VERDICT_REFUSED, "enabled", 0);
    assert_verdict(family, &decision, 2, CBN_VERDICT_REFUSED, "strict_route", 0);
    ck_assert_int_eq(decision.chosen, -1);
    ck_assert(!decision.noop);

    struct cbn__route strict = {.strict = true};
    cbn__decide(family, facts, &strict, &decision);
    ck_assert_int_eq(decision.chosen, 0);
    cbn__family_destroy(family);
}
END_TEST

/* The policy's guards are asked first: rows >= 20 and arch refuse both, the policy's is named. */
START_TEST(policy_guards_are_asked_before_own)
{
    struct cbn__family *family = make(&invented_family);
    struct cbn__route route = {.enabled_mask = 2};
    struct cbn__decision decision;
    cbn__decide(family, (const int64_t[]){1, 100, 3, CBN_ARCH(89, 0), 1, 1}, &route, &decision);
    assert_verdict(family, &decision, 1, CBN_VERDICT_REFUSED, "rows >= 20", 1);
    cbn__family_destroy(family);
}
END_TEST

START_TEST(relations_hold_at_their_edges)
{
    static const struct {
        uint32_t relation;
        int64_t value, value_end, fact;
        bool holds;
    } cases[] = {
        {CBN_RELATION_EQ, 5, 0, 5, true},
        {CBN_RELATION_EQ, 5, 0, 6, false},
        {CBN_RELATION_NE, 5, 0, 5, false},
        {CBN_RELATION_NE, 5, 0, -5, true},
        {CBN_RELATION_LT, 32, 0, 31, true},
        {CBN_RELATION_LT, 32, 0, 32, false},
        {CBN_RELATION_GE, 32, 0, 32, true},
        {CBN_RELATION_GE, 32, 0, 31, false},
        {CBN_RELATION_IN_RANGE, 1, 32, 0, false},
        {CBN_RELATION_IN_RANGE, 1, 32, 1, true},
        {CBN_RELATION_IN_RANGE, 1, 32, 31, true},
        {CBN_RELATION_IN_RANGE, 1, 32, 32, false},
        {CBN_RELATION_MULTIPLE_OF, 64, 0, 0, true},
        {CBN_RELATION_MULTIPLE_OF, 64, 0, 128, true},
        {CBN_RELATION_MULTIPLE_OF, 64, 0, 96, false},
        {CBN_RELATION_MULTIPLE_OF, 64, 0, INT64_MIN, true},
        {CBN_RELATION_MULTIPLE_OF, 1, 0, INT64_MAX, true},
        {0, 5, 0, 5, false},
        {7, 5, 0, 5, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cbn__guard guard = {0, cases[i].relation, cases[i].value, cases[i].value_end};
        ck_assert_msg(cbn__guard_holds(&guard, cases[i].fact) == cases[i].holds, "case %zu", i);
    }
}
END_TEST

START_TEST(params_come_from_constants_facts_and_buckets)
{
    struct cbn__family *family = make(&invented_family);
    static const int64_t rows_tile[][2] = {{1, 4}, {4, 4}, {5, 16}, {16, 16}, {17, 64}, {INT64_MAX, 64}};
    for (size_t i = 0; i < 6; i++) {
        const int64_t facts[] = AT(rows_tile[i][0], 1000 + (int64_t)(i & 1), CBN_DTYPE_FP16);
        int64_t small[3], wide[2];
        cbn__params_resolve(&family->candidates[0], facts, small);
        cbn__params_resolve(&family->candidates[1], facts, wide);
        ck_assert_int_eq(small[0], rows_tile[i][1]);
        ck_assert_int_eq(small[1], CBN_DTYPE_FP16);
        ck_assert_int_eq(small[2], 1);
        ck_assert_int_eq(wide[0], 128);
        ck_assert_int_eq(wide[1], i & 1 ? 4 : 2);
    }
    cbn__family_destroy(family);
}
END_TEST

static const char *const odd_facts[] = {"in", "out", "arch", "m"};

/* One guard of the family of odd_facts, refused: its text. */
static void assert_text(const char *fact, uint32_t relation, int64_t value, int64_t value_end, const char *text)
{
    const struct cbn_guard guard = {fact, relation, 0, value, value_end};
    const struct cbn_candidate candidate = {.name = "c", .guards = &guard, .guard_count = 1};
    struct cbn__family *family = make(&(struct cbn_family){.size = sizeof(struct cbn_family),
                                                           .name = "odd",
                                                           .facts = odd_facts,
                                                           .fact_count = 4,
                                                           .sweep_fact = "m",
                                                           .candidates = &candidate,
                                                           .candidate_count = 1});
    const int64_t facts[] = {33, 33, 33, 33};
    struct cbn__decision decision;
    cbn__decide(family, facts, &(struct cbn__route){0}, &decision);
    assert_verdict(family, &decision, 0, CBN_VERDICT_REFUSED, text, 33);
    char short_text[5];
    cbn__guard_format(family, &decision, 0, short_text, sizeof(short_text));
    ck_assert_uint_lt(strlen(short_text), sizeof(short_text));
    cbn__family_destroy(family);
}

START_TEST(texts_name_dtypes_and_architectures)
{
    assert_text("in", CBN_RELATION_EQ, CBN_DTYPE_E4M3, 0, "in == e4m3");
    assert_text("out", CBN_RELATION_EQ, CBN_DTYPE_BF16, 0, "out == bf16");
    assert_text("out", CBN_RELATION_IN_RANGE, CBN_DTYPE_BF16, CBN_DTYPE_FP32, "out in [bf16,fp32)");
    assert_text("out", CBN_RELATION_EQ, 77, 0, "out == 77");
    assert_text("out", CBN_RELATION_EQ, -1, 0, "out == -1");
    assert_text("in", CBN_RELATION_MULTIPLE_OF, 2, 0, "in % 2 == 0");
    assert_text("arch", CBN_RELATION_EQ, CBN_ARCH(100, 'a'), 0, "arch == sm_100a");
    assert_text("arch", CBN_RELATION_IN_RANGE, CBN_ARCH(80, 0), CBN_ARCH(90, 'a'), "arch in [sm_80,sm_90a)");
    assert_text("m", CBN_RELATION_EQ, 3, 0, "m == 3");
    assert_text("m", CBN_RELATION_LT, INT64_MIN, 0, "m < -9223372036854775808");
}
END_TEST

START_TEST(drawn_families_decide_as_the_oracle_does)
{
    static const char *const policies[] = {"default", "other"};
    static struct rf rf;
    uint64_t state = 11;
    int chosen_count = 0, noop_count = 0, none_count = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        rf_make(&rf, seed);
        struct cbn__family *family = make(&rf.family);
        for (int i = 0; i < 100; i++) {
            struct cbn__route route = {.disabled_mask = (uint32_t)(random_next(&state) & random_next(&state)),
                                       .enabled_mask = (uint32_t)random_next(&state),
                                       .strict = random_below(&state, 4) == 0};
            const char *name = policies[random_below(&state, 2)];
            int policy = cbn__family_policy(family, name);
            if (policy < 0)
                continue;
            route.policy = (uint32_t)policy;
            int64_t facts[RF_FACTS];
            for (int f = 0; f < RF_FACTS; f++)
                facts[f] = rf_value(&state);
            int expected = rf_choose(&rf, facts, name, route.disabled_mask, route.enabled_mask, route.strict);
            struct cbn__decision decision;
            cbn__decide(family, facts, &route, &decision);
            ck_assert_int_eq(decision.noop ? -2 : decision.chosen, expected);
            noop_count += decision.noop;
            chosen_count += decision.chosen >= 0;
            none_count += !decision.noop && decision.chosen < 0;
            if (decision.chosen < 0)
                continue;
            int64_t params[CBN_PARAMS_MAX] = {0}, expected_params[CBN_PARAMS_MAX] = {0};
            cbn__params_resolve(&family->candidates[decision.chosen], facts, params);
            rf_params(&rf, (uint32_t)decision.chosen, facts, expected_params);
            ck_assert_mem_eq(params, expected_params, sizeof(params));
        }
        cbn__family_destroy(family);
    }
    ck_assert_int_gt(chosen_count, 3000);
    ck_assert_int_gt(noop_count, 1000);
    ck_assert_int_gt(none_count, 3000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decide");
    TCase *tcase = tcase_create("decide");
    tcase_add_test(tcase, first_that_takes_is_chosen_and_stops);
    tcase_add_test(tcase, noop_reaches_nobody);
    tcase_add_test(tcase, refusals_name_the_guard_and_its_value);
    tcase_add_test(tcase, options_come_before_policy_before_guards_before_strict);
    tcase_add_test(tcase, policy_guards_are_asked_before_own);
    tcase_add_test(tcase, relations_hold_at_their_edges);
    tcase_add_test(tcase, params_come_from_constants_facts_and_buckets);
    tcase_add_test(tcase, texts_name_dtypes_and_architectures);
    tcase_add_test(tcase, drawn_families_decide_as_the_oracle_does);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
