/*
 * The pinned routing table of fp8_gemm under policy "reference", by the same decision that calls and explain use, and
 * the proof that a warm-up misses nothing.
 */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "dispatch/builtin.h"
#include "unit/random.h"

#define SM_90A CBN_ARCH(90, 'a')
#define SM_100A CBN_ARCH(100, 'a')
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct cbn__family *families[CBN__BUILTIN_COUNT];

static void set_up(void)
{
    struct cbn_error err = {0};
    ck_assert_msg(cbn__builtin_families(families, &err) == CBN_STATUS_OK, "%s", err.message);
}

static void tear_down(void)
{
    for (int i = 0; i < CBN__BUILTIN_COUNT; i++)
        cbn__family_destroy(families[i]);
}

static const struct cbn__family *family_named(const char *op)
{
    for (int i = 0; i < CBN__BUILTIN_COUNT; i++)
        if (strcmp(families[i]->name, op) == 0)
            return families[i];
    ck_abort_msg("no family %s", op);
    return NULL;
}

/* A query with its family, its facts and its route. */
struct question {
    const struct cbn__family *family;
    int64_t facts[CBN_FACTS_MAX];
    uint32_t shape_facts;
    struct cbn__route route;
};

static struct question ask(const struct cbn_query *query)
{
    struct question question = {.family = family_named(query->op)};
    struct cbn_error err = {0};
    const struct cbn_profile *profile = &query->profile;
    ck_assert_msg(cbn__builtin_facts(query, question.facts, &question.shape_facts, &err) == CBN_STATUS_OK, "%s",
                  err.message);
    ck_assert_msg(cbn__route_resolve(question.family, (const struct cbn__family *const *)families, CBN__BUILTIN_COUNT,
                                     profile->policy, profile->disable, profile->enable, profile->strict_route,
                                     &question.route, &err) == CBN_STATUS_OK,
                  "%s", err.message);
    return question;
}

static struct cbn_query gemm_query(uint32_t arch, int64_t m, int64_t n, int64_t k)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "fp8_gemm";
    query.arch = arch;
    query.m = m;
    query.n = n;
    query.k = k;
    query.profile.policy = "reference";
    return query;
}

/* "noop", the chosen candidate's name, or "none". */
static const char *chosen_by(const struct cbn_query *query)
{
    struct question question = ask(query);
    struct cbn__decision decision;
    cbn__decide(question.family, question.facts, &question.route, &decision);
    if (decision.noop)
        return "noop";
    return decision.chosen < 0 ? "none" : question.family->candidates[decision.chosen].template.name;
}

static const int64_t table_m[] = {0, 1, 8, 31, 32, 64, 850};
static const uint32_t table_scales[] = {CBN_SCALE_FP32, CBN_SCALE_UE8M0};
static const uint32_t table_grans[] = {CBN_GRAN_BLOCK, CBN_GRAN_ROW};
static const uint32_t table_outs[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
static const uint32_t table_ins[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32, CBN_DTYPE_E4M3};
static const int64_t aligned_n[] = {64, 576, 2112, 7168};
static const int64_t aligned_k[] = {128, 1152, 7168};
static const int64_t odd_n[] = {1, 63, 96, 100, 2111, 7200};
static const int64_t odd_k[] = {1, 64, 127, 192, 1216, 7167};

/* The table of the issue, the columns by what is switched off. */
static const char *expected_on_sm_90a(int64_t m, bool aligned, uint32_t out, const char *disable)
{
    if (m == 0)
        return "noop";
    if (!aligned || out != CBN_DTYPE_BF16)
        return "generic";
    const char *natural = m < 32 ? "swap_ab" : "wgmma";
    return disable && strstr(disable, natural) ? "generic" : natural;
}

/* Every M, scale format and granularity, input and output dtype of one (N, K). Returns the count of cells. */
static int check_cells(int64_t n, int64_t k, bool aligned, const char *disable)
{
    int cells = 0;
    for (size_t i = 0; i < COUNT(table_m) * COUNT(table_scales) * COUNT(table_grans) * COUNT(table_outs); i++)
        for (size_t in = 0; in < COUNT(table_ins); in++, cells++) {
            struct cbn_query query = gemm_query(SM_90A, table_m[i % 7], n, k);
            query.profile.weight_scale = table_scales[i / 7 % 2];
            query.profile.scale_gran = table_grans[i / 14 % 2];
            query.profile.out = table_outs[i / 28];
            query.profile.in = table_ins[in];
            query.profile.disable = disable;
            const char *expected = expected_on_sm_90a(query.m, aligned, query.profile.out, disable);
            ck_assert_msg(strcmp(chosen_by(&query), expected) == 0,
                          "M=%lld N=%lld K=%lld out=%u in=%u scale=%u gran=%u disable=%s: %s, expected %s",
                          (long long)query.m, (long long)n, (long long)k, query.profile.out, query.profile.in,
                          query.profile.weight_scale, query.profile.scale_gran, disable ? disable : "-",
                          chosen_by(&query), expected);
        }
    return cells;
}

static const char *const disables[] = {NULL, "wgmma", "swap_ab", "swap_ab,wgmma"};

START_TEST(reference_table_aligned)
{
    int cells = 0;
    for (size_t n = 0; n < COUNT(aligned_n); n++)
        for (size_t k = 0; k < COUNT(aligned_k); k++)
            cells += check_cells(aligned_n[n], aligned_k[k], true, disables[_i]);
    ck_assert_int_eq(cells, 4 * 3 * 7 * 2 * 2 * 3 * 4);
}
END_TEST

START_TEST(reference_table_odd)
{
    for (size_t n = 0; n < COUNT(odd_n); n++)
        for (size_t k = 0; k < COUNT(odd_k); k++)
            (void)check_cells(odd_n[n], odd_k[k], false, disables[_i]);
    for (size_t n = 0; n < COUNT(odd_n); n++)
        (void)check_cells(odd_n[n], 7168, false, disables[_i]);
    for (size_t k = 0; k < COUNT(odd_k); k++)
        (void)check_cells(2112, odd_k[k], false, disables[_i]);
}
END_TEST

START_TEST(both_sides_of_the_threshold)
{
    for (int64_t m = 1; m <= 200; m++) {
        struct cbn_query query = gemm_query(SM_90A, m, 7168, 2048);
        ck_assert_str_eq(chosen_by(&query), m < 32 ? "swap_ab" : "wgmma");
    }
    struct cbn_query query = gemm_query(SM_90A, 131072, 7168, 2048);
    ck_assert_str_eq(chosen_by(&query), "wgmma");
}
END_TEST

START_TEST(pdl_and_sms_and_bias_decide_nothing)
{
    for (size_t i = 0; i < COUNT(table_m); i++)
        for (uint32_t bits = 0; bits < 32; bits++) {
            struct cbn_query query = gemm_query(SM_90A, table_m[i], 7168, 2048);
            query.profile.pdl = bits & 1;
            query.profile.sms = bits & 2 ? 78 : 0;
            query.profile.max_sms = bits & 4 ? 20 : 0;
            query.profile.bias = bits & 8 ? CBN_BIAS_FP32 : CBN_BIAS_OUT;
            query.profile.propagate = bits >> 4 & 1;
            ck_assert_str_eq(chosen_by(&query), expected_on_sm_90a(query.m, true, CBN_DTYPE_BF16, NULL));
        }
}
END_TEST

/* The four cases of sm_100a, tcgen05 enabled by name. */
START_TEST(tcgen05_on_sm_100a)
{
    static const struct {
        uint32_t out, scale;
        int64_t k;
        const char *chosen;
    } cases[] = {
        {CBN_DTYPE_BF16, CBN_SCALE_FP32, 256, "tcgen05"},  {CBN_DTYPE_BF16, CBN_SCALE_UE8M0, 256, "tcgen05"},
        {CBN_DTYPE_BF16, CBN_SCALE_FP32, 7168, "tcgen05"}, {CBN_DTYPE_BF16, CBN_SCALE_UE8M0, 7168, "tcgen05"},
        {CBN_DTYPE_FP16, CBN_SCALE_FP32, 7168, "generic"}, {CBN_DTYPE_FP16, CBN_SCALE_UE8M0, 7168, "generic"},
        {CBN_DTYPE_BF16, CBN_SCALE_FP32, 128, "generic"},  {CBN_DTYPE_BF16, CBN_SCALE_UE8M0, 128, "generic"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t m = 0; m < COUNT(table_m); m++) {
            struct cbn_query query = gemm_query(SM_100A, table_m[m], 7168, cases[i].k);
            query.profile.out = cases[i].out;
            query.profile.weight_scale = cases[i].scale;
            ck_assert_str_eq(chosen_by(&query), query.m ? "generic" : "noop"); /* off unless enabled */
            query.profile.enable = "tcgen05";
            ck_assert_str_eq(chosen_by(&query), query.m ? cases[i].chosen : "noop");
        }
}
END_TEST

START_TEST(tcgen05_has_guards_and_no_template)
{
    const struct cbn__family *family = family_named("fp8_gemm");
    int index = cbn__family_candidate(family, "tcgen05");
    ck_assert_int_ge(index, 0);
    ck_assert_ptr_null(family->candidates[index].template.source);
    ck_assert_uint_ne(family->candidates[index].template.flags & CBN_CANDIDATE_OFF, 0);
    struct cbn_query query = gemm_query(SM_90A, 64, 7168, 7168);
    query.profile.enable = "tcgen05";
    ck_assert_str_eq(chosen_by(&query), "wgmma");
}
END_TEST

/* What refuses each candidate, as explain prints it. */
START_TEST(refusals_are_named)
{
    static const struct {
        int64_t m, n, k;
        uint32_t out;
        const char *candidate, *disable, *guard;
        int64_t value;
    } cases[] = {
        {32, 7168, 2048, CBN_DTYPE_BF16, "swap_ab", NULL, "m in [1,32)", 32},
        {8, 7200, 2048, CBN_DTYPE_BF16, "swap_ab", NULL, "n % 64 == 0", 7200},
        {64, 7168, 192, CBN_DTYPE_BF16, "wgmma", NULL, "k % 128 == 0", 192},
        {64, 7168, 2048, CBN_DTYPE_FP16, "wgmma", NULL, "out == bf16", CBN_DTYPE_FP16},
        {64, 7168, 2048, CBN_DTYPE_BF16, "wgmma", "wgmma", "enabled", 0},
        {64, 7168, 2048, CBN_DTYPE_FP16, "tcgen05", NULL, "enabled", 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cbn_query query = gemm_query(SM_90A, cases[i].m, cases[i].n, cases[i].k);
        query.profile.out = cases[i].out;
        query.profile.disable = cases[i].disable;
        struct question question = ask(&query);
        struct cbn__decision decision;
        char guard[CBN_TEXT_BYTES];
        cbn__decide(question.family, question.facts, &question.route, &decision);
        int index = cbn__family_candidate(question.family, cases[i].candidate);
        ck_assert_int_ge(index, 0);
        cbn__guard_format(question.family, &decision, (uint32_t)index, guard, sizeof(guard));
        ck_assert_str_eq(guard, cases[i].guard);
        ck_assert_int_eq(decision.candidates[index].value, cases[i].value);
    }
}
END_TEST

/* generic is the fallback: under strict_route nothing takes what only it could. */
START_TEST(strict_route_refuses_the_fallback)
{
    struct cbn_query query = gemm_query(SM_90A, 64, 7168, 2048);
    query.profile.strict_route = 1;
    ck_assert_str_eq(chosen_by(&query), "wgmma");
    query.profile.out = CBN_DTYPE_FP16;
    ck_assert_str_eq(chosen_by(&query), "none");
    query.m = 0;
    ck_assert_str_eq(chosen_by(&query), "noop");
}
END_TEST

struct set {
    const struct cbn__family *family;
    int count;
    struct {
        const struct cbn__candidate *candidate;
        int64_t params[CBN_PARAMS_MAX];
    } items[1024];
};

static bool has(const struct set *set, const struct cbn__candidate *candidate, const int64_t *params)
{
    for (int i = 0; i < set->count; i++)
        if (set->items[i].candidate == candidate &&
            memcmp(set->items[i].params, params, candidate->template.param_count * sizeof(*params)) == 0)
            return true;
    return false;
}

static int collect(void *user, const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    struct set *set = user;
    (void)facts;
    ck_assert_int_lt(set->count, (int)COUNT(set->items));
    ck_assert(!has(set, candidate, params));
    set->items[set->count].candidate = candidate;
    memcpy(set->items[set->count++].params, params, candidate->template.param_count * sizeof(*params));
    return 0;
}

/* What these facts decide lies in the set. */
static void assert_covered(const struct set *set, const struct question *question, const int64_t *facts)
{
    struct cbn__decision decision;
    int64_t params[CBN_PARAMS_MAX] = {0};
    cbn__decide(question->family, facts, &question->route, &decision);
    if (decision.chosen < 0)
        return;
    const struct cbn__candidate *candidate = &question->family->candidates[decision.chosen];
    cbn__params_resolve(candidate, facts, params);
    ck_assert_msg(has(set, candidate, params), "%s at sweep value %lld was not enumerated", candidate->template.name,
                  (long long)facts[question->family->sweep_fact]);
}

/* 10,000 drawn values of the sweep fact up to max, which is ragged, and max itself. */
static void assert_sweep_covers(const struct cbn_query *query, uint64_t *state)
{
    static struct set set;
    struct question question = ask(query);
    memset(&set, 0, sizeof(set));
    ck_assert_int_eq(
        cbn__enumerate_sweep(question.family, question.facts, query->m, &question.route, collect, &set, NULL),
        CBN_STATUS_OK);
    ck_assert_int_gt(set.count, 0);
    ck_assert_int_lt(set.count, 64);
    for (int i = 0; i <= 10000; i++) {
        int64_t below = random_below(state, 2) ? query->m : query->m < 300 ? query->m : 300;
        question.facts[question.family->sweep_fact] = i == 10000 ? query->m : random_below(state, below + 1);
        if (question.family->derive.fill)
            question.family->derive.fill(question.facts);
        assert_covered(&set, &question, question.facts);
    }
}

static const int64_t warm_shapes[][2] = {{2112, 7168},  {576, 7168}, {24576, 1536}, {7168, 16384}, {4096, 512},
                                         {7168, 18432}, {64, 128},   {100, 300},    {7, 129},      {1216, 2560}};

START_TEST(warm_up_covers_ten_thousand_m)
{
    static const int64_t maxima[] = {131072, 131071, 850, 33, 1};
    uint64_t state = 77;
    for (size_t i = 0; i < COUNT(warm_shapes); i++)
        for (size_t p = 0; p < 2; p++) {
            struct cbn_query query =
                gemm_query(SM_90A, maxima[i % COUNT(maxima)], warm_shapes[i][0], warm_shapes[i][1]);
            query.profile.policy = p ? "default" : "reference";
            query.profile.weight_scale = i & 1 ? CBN_SCALE_UE8M0 : CBN_SCALE_FP32;
            query.profile.in = table_ins[i % 4];
            query.profile.out = table_outs[i % 3];
            assert_sweep_covers(&query, &state);
        }
}
END_TEST

START_TEST(warm_up_covers_ten_thousand_t)
{
    static const struct {
        uint32_t layout;
        int64_t groups, k;
    } cases[] = {{CBN_LAYOUT_ROW, 0, 7168},        {CBN_LAYOUT_COL, 0, 7168},       {CBN_LAYOUT_COL4, 0, 1000},
                 {CBN_LAYOUT_PACKED_ROW, 0, 2048}, {CBN_LAYOUT_PACKED_COL, 0, 129}, {CBN_LAYOUT_ROW, 8, 512},
                 {CBN_LAYOUT_COL4, 8, 4096},       {CBN_LAYOUT_PACKED_COL, 1, 77}};
    uint64_t state = 78;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cbn_query query = gemm_query(SM_90A, 131071, 0, cases[i].k);
        query.op = "fp8_quantize";
        query.groups = cases[i].groups;
        query.profile.policy = NULL;
        query.profile.act_scale = cases[i].layout;
        query.profile.in = table_ins[i % 3];
        assert_sweep_covers(&query, &state);
    }
}
END_TEST

/* Every specialisation of any shape: drawn shapes, aligned and not, decide inside the set. */
START_TEST(all_shapes_are_covered)
{
    static struct set set;
    uint64_t state = 79;
    for (size_t profile = 0; profile < 24; profile++) {
        struct cbn_query query = gemm_query(SM_90A, 0, 0, 0);
        query.profile.in = table_ins[profile % 4];
        query.profile.out = table_outs[profile / 4 % 3];
        query.profile.policy = profile / 12 ? "default" : "reference";
        struct question all = ask(&query);
        memset(&set, 0, sizeof(set));
        ck_assert_int_eq(cbn__enumerate_all(all.family, all.facts, all.shape_facts, &all.route, collect, &set, NULL),
                         CBN_STATUS_OK);
        ck_assert_int_gt(set.count, 0);
        for (int i = 0; i < 500; i++) {
            int64_t unit = random_below(&state, 2) ? 128 : 1;
            query.m = random_below(&state, 3) ? random_below(&state, 100) : random_below(&state, 131073);
            query.n = unit * random_below(&state, 300);
            query.k = unit * random_below(&state, 200);
            struct question one = ask(&query);
            if (random_below(&state, 2)) /* an address need not be aligned as its strides are */
                one.facts[CBN__GEMM_FACT_align] = INT64_C(1) << random_below(&state, 5);
            assert_covered(&set, &one, one.facts);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("routing");
    TCase *tcase = tcase_create("routing");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, reference_table_aligned, 0, (int)COUNT(disables));
    tcase_add_loop_test(tcase, reference_table_odd, 0, (int)COUNT(disables));
    tcase_add_test(tcase, both_sides_of_the_threshold);
    tcase_add_test(tcase, pdl_and_sms_and_bias_decide_nothing);
    tcase_add_test(tcase, tcgen05_on_sm_100a);
    tcase_add_test(tcase, tcgen05_has_guards_and_no_template);
    tcase_add_test(tcase, refusals_are_named);
    tcase_add_test(tcase, strict_route_refuses_the_fallback);
    tcase_add_test(tcase, warm_up_covers_ten_thousand_m);
    tcase_add_test(tcase, warm_up_covers_ten_thousand_t);
    tcase_add_test(tcase, all_shapes_are_covered);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
