/*
 * Products of few tokens, where swap_ab streams the weights once: every M against fp64, quantised inside and before,
 * one-shot and from plans, under a bound on SMs.
 */
#include <string.h>

#include "calls.h"
#include "gemm.h"

#define M_MAX 129 /* one past the last that swap_ab takes by policy */

static const struct decode_shape {
    int64_t n, k, pad; /* pad: elements after every row of A and W, where K alone would not keep rows aligned */
    bool few;          /* not every M */
    bool in_sample;
} shapes[] = {
    {64, 128, 0, false, true},     {72, 144, 0, false, true},
    {136, 3000, 8, false, true}, /* K ends inside 16 bytes, clusters share it */
    {512, 7168, 0, false, false},  {576, 7168, 0, false, false},
    {1536, 4096, 0, false, false}, {2112, 7168, 0, false, false},
    {7168, 2048, 0, false, false}, {24576, 1536, 0, true, false},
    {7168, 16384, 0, true, false},
};
#define SHAPE_COUNT ((uint32_t)(sizeof(shapes) / sizeof(shapes[0])))

/* Both sides of every tile of tokens and of the policy's thresholds. */
static bool is_wanted(const struct suite *suite, const struct decode_shape *shape, int64_t m)
{
    static const int64_t few[] = {1, 2, 7, 8, 9, 16, 17, 24, 25, 31, 32, 33, 48, 49, 64, 65, 96, 127, 128, 129};
    static const int64_t sample[] = {1, 9, 33, 64, 65};
    const int64_t *list = suite->sample ? sample : few;
    size_t count = suite->sample ? sizeof(sample) / sizeof(sample[0]) : sizeof(few) / sizeof(few[0]);
    for (size_t i = 0; i < count; i++) {
        if (list[i] == m) {
            return true;
        }
    }
    return !suite->sample && !shape->few;
}

/* ---- every M ---- */

enum kind { KIND_VALUES, KIND_CODES, KIND_PACKED, KIND_COUNT };

static struct gemm_call product_call(uint32_t s, enum kind kind, int64_t m)
{
    static const uint32_t outs[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
    static const uint32_t layouts[KIND_COUNT][2] = {[KIND_CODES] = {CBN_LAYOUT_ROW, CBN_LAYOUT_COL4},
                                                    [KIND_PACKED] = {CBN_LAYOUT_PACKED_ROW, CBN_LAYOUT_PACKED_COL}};
    struct gemm_call call = gemm_call_plain(m);
    call.lda_pad = call.ldw_pad = shapes[s].pad;
    call.form.in = kind == KIND_VALUES ? CBN_DTYPE_BF16 : CBN_DTYPE_E4M3;
    call.form.layout = layouts[kind][m % 2];
    call.form.out = outs[(m + kind) % 3];
    if (kind == KIND_PACKED) {
        call.form.w_format = CBN_SCALE_UE8M0;
        call.form.gran = s % 2 ? CBN_GRAN_ROW : CBN_GRAN_BLOCK;
        call.form.bias = CBN_BIAS_FP32;
    }
    return call;
}

static bool create_problem(struct suite *suite, struct tally *tally, uint32_t s, bool packed, struct problem *problem)
{
    struct problem_options options = {
        M_MAX, shapes[s].n,           shapes[s].k, packed, packed, packed && s % 2 ? CBN_GRAN_ROW : CBN_GRAN_BLOCK,
        7,     suite->seed + 8000 + s};
    return problem_create(suite, tally, &options, problem);
}

static void run_one_shot(struct suite *suite, struct tally *tally, const struct problem *problem, uint32_t s,
                         enum kind kind)
{
    for (int64_t m = 1; m <= M_MAX; m++) {
        if (is_wanted(suite, &shapes[s], m)) {
            struct gemm_call call = product_call(s, kind, m);
            (void)gemm_run(suite, tally, problem, &call);
        }
    }
}

/* Weights that may be fetched before the wait; the largest M first. */
static void run_static_plan(struct suite *suite, struct tally *tally, const struct problem *problem, uint32_t s,
                            enum kind kind)
{
    struct gemm_call call = product_call(s, kind, M_MAX);
    struct cbn_fp8_gemm_args args;
    bool tight = suite->sample;
    suite->sample = false; /* the plan holds addresses of scratch buffers */
    call.form.out = CBN_DTYPE_BF16;
    gemm_place(suite, problem, &call, &args);
    struct cbn_plan *plan = gemm_plan_create(suite, tally, RUNTIME_ALL, &args, CBN_OP_WEIGHTS_STATIC, M_MAX);
    for (call.m = M_MAX; plan && call.m > 0; call.m--) {
        suite->sample = tight;
        bool wanted = is_wanted(suite, &shapes[s], call.m);
        suite->sample = false;
        if (wanted) {
            (void)gemm_plan_run(suite, tally, problem, plan, &call);
        }
    }
    cbn_plan_destroy(plan);
    suite->sample = tight;
}

/* Rows of D begin at 16 bytes and end within: the elements between two rows are somebody else's. */
static void run_odd_columns(struct suite *suite, struct tally *tally)
{
    /*
     * Not one: a row's error is then a single element's, and the worst of 25 rows, the same one for every M, was at 1.5e-3
     * with fp32 out and 4.1e-3 with bf16 (H200, K = 1600): beyond what rows are allowed, and as large as 14 bits explain.
     */
    static const int64_t columns[] = {33, 63, 65, 100, 1001};
    static const int64_t tokens[] = {1, 9, 25, 33, 64};
    for (uint32_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        struct problem problem;
        const int64_t k = i % 2 ? 256 : 1600; /* alone on its tile, and shared by a cluster */
        struct problem_options options = {M_MAX, columns[i], k, false, false, CBN_GRAN_BLOCK, 7, suite->seed + 8100 + i};
        if (!problem_create(suite, tally, &options, &problem)) {
            continue;
        }
        for (uint32_t t = 0; t < 3 * sizeof(tokens) / sizeof(tokens[0]); t++) {
            struct gemm_call call = product_call(0, KIND_CODES, tokens[t / 3]);
            call.form.out = CBN_DTYPE_BF16 + t % 3;
            call.form.bias = t % 2 ? CBN_BIAS_OUT : CBN_BIAS_NONE;
            call.ldd_pad = (columns[i] + 15) / 8 * 8 - columns[i];
            (void)gemm_run(suite, tally, &problem, &call);
        }
        problem_done(&problem);
    }
}

void case_decode_products(struct suite *suite, struct tally *tally)
{
    struct problem problem;
    for (uint32_t s = 0; s < SHAPE_COUNT; s++) {
        if (suite->sample && !shapes[s].in_sample) {
            continue;
        }
        if (create_problem(suite, tally, s, false, &problem)) {
            run_one_shot(suite, tally, &problem, s, KIND_VALUES);
            run_one_shot(suite, tally, &problem, s, KIND_CODES);
            run_static_plan(suite, tally, &problem, s, KIND_VALUES);
            run_static_plan(suite, tally, &problem, s, KIND_CODES);
            problem_done(&problem);
        }
        if (create_problem(suite, tally, s, true, &problem)) {
            run_one_shot(suite, tally, &problem, s, KIND_PACKED);
            problem_done(&problem);
        }
    }
    run_odd_columns(suite, tally);
}

/* ---- quantised inside and before: the same bits ---- */

#define FUSED_M_MAX 8
#define FUSED_TURNS 6u /* three inputs, finite or propagate */

static const struct {
    int64_t n, k;
} fused_shapes[] = {{72, 144}, {512, 7168}, {2112, 7168}, {7168, 2048}, {24576, 1536}};
#define FUSED_SHAPE_COUNT 5u

static struct gemm_call fused_call(uint32_t turn, bool pow2, int64_t m)
{
    static const uint32_t ins[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
    static const uint32_t outs[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP32, CBN_DTYPE_FP16};
    struct gemm_call call = gemm_call_plain(m);
    call.form.in = ins[turn % 3];
    call.form.out = outs[turn % 3];
    call.form.propagate = turn / 3;
    call.form.pow2 = pow2;
    call.has_bad_row = m % 2 == 0; /* NaN: zeros, or a row of NaN */
    call.bad_row = m / 2;
    call.bad_byte = 0xFF;
    return call;
}

static void run_fused(struct suite *suite, struct tally *tally, const struct problem *problem, struct gemm_call call)
{
    call.runtime = RUNTIME_FUSED, call.slot = GEMM_SLOT_D0;
    struct gemm_output inside = gemm_run(suite, tally, problem, &call);
    call.runtime = RUNTIME_CODES, call.slot = GEMM_SLOT_D1;
    struct gemm_output before = gemm_run(suite, tally, problem, &call);
    if (!inside.kernel || !before.kernel) {
        return;
    }
    if (strcmp(inside.kernel, "swap_ab_fused") != 0 || strcmp(before.kernel, "swap_ab") != 0) {
        tally_fault(tally, "M=%lld N=%lld K=%lld: %s against %s", (long long)call.m, (long long)problem->n,
                    (long long)problem->k, inside.kernel, before.kernel);
    }
    int64_t skipped = call.has_bad_row && call.form.propagate ? call.bad_row : -1; /* a NaN's bits are nobody's */
    tally_equal(tally, gemm_unequal(suite, &inside, &before, call.m, skipped), "quantised inside and before");
}

void case_decode_fused(struct suite *suite, struct tally *tally)
{
    for (uint32_t i = 0; i < FUSED_SHAPE_COUNT * 2; i++) {
        bool pow2 = i % 2;
        struct problem_options options = {
            FUSED_M_MAX, fused_shapes[i / 2].n, fused_shapes[i / 2].k, pow2, false, CBN_GRAN_BLOCK,
            7,           suite->seed + 8200 + i};
        struct problem problem;
        if (!problem_create(suite, tally, &options, &problem)) {
            continue;
        }
        for (uint32_t j = 0; j < FUSED_M_MAX * FUSED_TURNS; j++) {
            run_fused(suite, tally, &problem, fused_call(j % FUSED_TURNS, pow2, 1 + j / FUSED_TURNS));
        }
        problem_done(&problem);
    }
}

/* ---- a bound on SMs ---- */

static void expect_bounded(struct suite *suite, struct tally *tally, const struct problem *problem,
                           const struct gemm_call *call)
{
    struct cbn_query query;
    struct cbn_geometry geometry = {0};
    gemm_call_query(suite, problem->n, problem->k, call, &query);
    int64_t align = gemm_call_align(problem->n, problem->k, call);
    if (!call_geometry(suite->runtimes[call->runtime], &query, align, &geometry)) {
        tally_fault(tally, "no geometry");
        return;
    }
    uint64_t ctas = (uint64_t)geometry.grid[0] * geometry.grid[1] * geometry.grid[2];
    if (ctas == 0 || ctas > call->max_sms) {
        tally_fault(tally, "max_sms=%u: M=%lld N=%lld K=%lld takes %llu CTAs", call->max_sms, (long long)call->m,
                    (long long)problem->n, (long long)problem->k, (unsigned long long)ctas);
    }
}

void case_decode_max_sms(struct suite *suite, struct tally *tally)
{
    static const uint32_t bounds[] = {8, 16, 40};
    static const int64_t bounded_ms[] = {1, 8, 32, 64, 128};
    for (uint32_t s = 0; s < SHAPE_COUNT; s++) {
        struct problem problem;
        if (shapes[s].n < 512 || shapes[s].k > 8192 || !create_problem(suite, tally, s, false, &problem)) {
            continue;
        }
        for (uint32_t i = 0; i < 3 * 5 * 2; i++) {
            struct gemm_call call = gemm_call_plain(bounded_ms[i / 3 % 5]);
            call.max_sms = bounds[i % 3];
            call.form.in = i / 15 ? CBN_DTYPE_E4M3 : CBN_DTYPE_BF16;
            call.form.layout = i / 15 ? CBN_LAYOUT_COL4 : 0;
            (void)gemm_run(suite, tally, &problem, &call);
            expect_bounded(suite, tally, &problem, &call);
        }
        problem_done(&problem);
    }
}

/* ---- what is built before ---- */

void decode_calls(const struct suite *suite, call_fn add, void *user)
{
    for (uint32_t s = 0; s < SHAPE_COUNT; s++) {
        for (int64_t i = 0; i < M_MAX * KIND_COUNT && (!suite->sample || shapes[s].in_sample); i++) {
            struct gemm_call call = product_call(s, (enum kind)(i % KIND_COUNT), 1 + i / KIND_COUNT);
            if (is_wanted(suite, &shapes[s], call.m)) {
                gemm_add_call(suite, shapes[s].n, shapes[s].k, &call, add, user);
            }
        }
    }
    for (uint32_t i = 0; i < 2 * FUSED_TURNS && !suite->sample; i++) {
        struct gemm_call call = fused_call(i / 2, i % 2, 1);
        gemm_add_call(suite, fused_shapes[0].n, fused_shapes[0].k, &call, add, user);
        call.runtime = RUNTIME_CODES;
        gemm_add_call(suite, fused_shapes[0].n, fused_shapes[0].k, &call, add, user);
    }
}
