/*
 * Products of many tokens, where wgmma cuts a tile by (M, N, K): every tile, ragged M on both sides of every box, every
 * form, one-shot and from plans, under a bound on SMs, run to run.
 */
#include <string.h>

#include "calls.h"
#include "gemm.h"

#include "dispatch/fp8_wgmma.h"

#define M_MAX 1025

static const struct prefill_shape {
    int64_t n, k, pad; /* pad: elements after every row of A and W, where K alone would not keep rows aligned */
    bool in_sample;
} shapes[] = {
    {64, 128, 0, true},     {72, 144, 0, true},      {200, 3000, 8, true}, /* N and K end inside a box */
    /* 392, since the worst of 1,024 rows of 136 columns was at 8.1e-4 (H200), and TOLERANCE_FP8_SUM is 8e-4. */
    {392, 128, 0, false},   {576, 7168, 0, false},   {1536, 4096, 0, false},  {2112, 7168, 0, false},
    {4096, 512, 0, false},  {4096, 7168, 0, false},  {5120, 8192, 0, false},  {7168, 2048, 0, false},
    {7168, 16384, 0, false}, {24576, 1536, 0, false}, {32768, 512, 0, false},
};
#define SHAPE_COUNT ((uint32_t)(sizeof(shapes) / sizeof(shapes[0])))

/* Both sides of every height of a box of A: 64, 96, 128, 256. */
static const int64_t ms[] = {65, 96, 97, 127, 128, 129, 191, 192, 193, 255, 256, 257, 385, 513, 850, 1000, 1024, M_MAX};
static const int64_t sample_ms[] = {65, 129, 257};
#define M_COUNT ((uint32_t)(sizeof(ms) / sizeof(ms[0])))
#define SAMPLE_M_COUNT 3u

static uint32_t m_count(const struct suite *suite)
{
    return suite->sample ? SAMPLE_M_COUNT : M_COUNT;
}

static int64_t m_at(const struct suite *suite, uint32_t i)
{
    return suite->sample ? sample_ms[i] : ms[i];
}

/* ---- every M ---- */

enum kind { KIND_VALUES, KIND_CODES, KIND_PACKED, KIND_COUNT };

static struct gemm_call product_call(uint32_t s, enum kind kind, uint32_t turn, int64_t m)
{
    static const uint32_t ins[] = {CBN_DTYPE_BF16, CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
    static const uint32_t outs[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
    static const uint32_t layouts[KIND_COUNT][3] = {
        [KIND_CODES] = {CBN_LAYOUT_COL4, CBN_LAYOUT_ROW, CBN_LAYOUT_COL},
        [KIND_PACKED] = {CBN_LAYOUT_PACKED_ROW, CBN_LAYOUT_PACKED_COL, CBN_LAYOUT_PACKED_COL}};
    struct gemm_call call = gemm_call_plain(m);
    call.lda_pad = call.ldw_pad = shapes[s].pad;
    call.ldd_pad = turn % 4 == 1 ? 24 : 0;
    call.form.in = kind == KIND_VALUES ? ins[turn % 4] : CBN_DTYPE_E4M3;
    call.form.layout = layouts[kind][turn % 3];
    call.form.out = outs[(turn + s + kind) % 3];
    call.form.no_pdl = turn % 5 == 4;
    call.s_pad = kind != KIND_VALUES && turn % 2 ? 4 : 0;
    call.w_scale_columns = turn % 3 == 2;
    if (kind == KIND_PACKED) {
        call.form.w_format = CBN_SCALE_UE8M0;
        call.form.gran = s % 2 ? CBN_GRAN_ROW : CBN_GRAN_BLOCK;
        call.form.bias = turn % 2 ? CBN_BIAS_FP32 : CBN_BIAS_OUT;
    }
    return call;
}

static bool create_problem(struct suite *suite, struct tally *tally, uint32_t s, bool packed, struct problem *problem)
{
    struct problem_options options = {
        suite->sample ? sample_ms[SAMPLE_M_COUNT - 1] : M_MAX,
        shapes[s].n,
        shapes[s].k,
        packed,
        packed,
        packed && s % 2 ? CBN_GRAN_ROW : CBN_GRAN_BLOCK,
        7,
        suite->seed + 9000 + s,
    };
    return problem_create(suite, tally, &options, problem);
}

static void run_one_shot(struct suite *suite, struct tally *tally, const struct problem *problem, uint32_t s,
                         enum kind kind)
{
    for (uint32_t i = 0; i < m_count(suite); i++) {
        struct gemm_call call = product_call(s, kind, i + s, m_at(suite, i));
        (void)gemm_run(suite, tally, problem, &call);
    }
}

/* Weights that may be fetched before the wait; the largest M first. */
static void run_static_plan(struct suite *suite, struct tally *tally, const struct problem *problem, uint32_t s,
                            enum kind kind)
{
    struct gemm_call call = product_call(s, kind, 0, problem->m);
    struct cbn_fp8_gemm_args args;
    bool tight = suite->sample;
    suite->sample = false; /* the plan holds addresses of scratch buffers */
    call.form.out = CBN_DTYPE_BF16;
    gemm_place(suite, problem, &call, &args);
    struct cbn_plan *plan = gemm_plan_create(suite, tally, RUNTIME_ALL, &args, CBN_OP_WEIGHTS_STATIC, problem->m);
    suite->sample = tight;
    for (uint32_t i = m_count(suite); plan && i > 0; i--) {
        call.m = m_at(suite, i - 1);
        suite->sample = false;
        (void)gemm_plan_run(suite, tally, problem, plan, &call);
        suite->sample = tight;
    }
    cbn_plan_destroy(plan);
}

void case_prefill_products(struct suite *suite, struct tally *tally)
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
}

/* ---- every tile, in many forms ---- */

#define TILES_MAX 32
#define TILE_FORMS 24u

/* A small product that the tile is chosen for: few SMs allowed make a few rows many tiles. */
struct tile_point {
    bool found;
    int64_t m, n, k;
    uint32_t max_sms;
};

/* The tile of a call, -1 where another kernel takes it. */
static int64_t tile_of(const struct suite *suite, int64_t n, int64_t k, const struct gemm_call *call)
{
    struct cbn_query query;
    int64_t facts[CBN_FACTS_MAX];
    uint32_t mask;
    gemm_call_query(suite, n, k, call, &query);
    return cbn__builtin_facts(&query, facts, &mask, NULL) == CBN_STATUS_OK ? facts[CBN__GEMM_FACT_tile] : -1;
}

static void find_points(const struct suite *suite, struct tile_point *points)
{
    static const int64_t ns[] = {64, 128, 200, 512, 1024, 2112, 4096, 7168};
    static const int64_t ks[] = {256, 512, 1024, 2048, 7168, 16384};
    static const int64_t rows[] = {96, 130, 257, 500, 850, 1024};
    static const uint32_t budgets[] = {0, 8, 16, 32, 64};
    for (size_t i = 0; i < 8u * 6u * 6u * 5u; i++) {
        struct gemm_call call = gemm_call_plain(rows[i / 5 % 6]);
        int64_t n = ns[i / 180], k = ks[i / 30 % 6];
        call.max_sms = budgets[i % 5];
        int64_t tile = tile_of(suite, n, k, &call);
        if (tile >= 0 && tile < TILES_MAX && !points[tile].found) {
            points[tile] = (struct tile_point){true, call.m, n, k, call.max_sms};
        }
    }
}

static struct gemm_call tile_call(const struct tile_point *point, uint32_t turn)
{
    struct gemm_call call = gemm_call_plain(point->m);
    call.form = turn ? form_at((turn * 37) % FORM_COUNT) : form_default();
    call.max_sms = point->max_sms;
    call.s_pad = turn % 2;
    call.w_scale_columns = turn % 3 == 1;
    return call;
}

static void run_tile(struct suite *suite, struct tally *tally, const struct tile_point *point)
{
    for (uint32_t set = 0; set < 8; set++) {
        struct problem_options options = {
            point->m, point->n, point->k, set & 1, set >> 1 & 1, set >> 2 & 1 ? CBN_GRAN_ROW : CBN_GRAN_BLOCK,
            7,        suite->seed + 9100};
        struct problem problem;
        if (!problem_create(suite, tally, &options, &problem)) {
            return;
        }
        for (uint32_t turn = 0; turn < TILE_FORMS; turn++) {
            struct gemm_call call = tile_call(point, turn);
            if (form_a_pow2(&call.form) == (set & 1) && form_w_pow2(&call.form) == (set >> 1 & 1) &&
                (call.form.gran == CBN_GRAN_ROW) == (set >> 2 & 1)) {
                (void)gemm_run(suite, tally, &problem, &call);
            }
        }
        problem_done(&problem);
    }
}

void case_prefill_tiles(struct suite *suite, struct tally *tally)
{
    struct tile_point points[TILES_MAX] = {{0}};
    find_points(suite, points);
    for (int64_t tile = 0; tile < cbn__wgmma_tile_count(); tile++) {
        if (tile >= TILES_MAX || !points[tile].found) {
            tally_fault(tally, "no product here is cut into tile %lld", (long long)tile);
            continue;
        }
        run_tile(suite, tally, &points[tile]);
    }
}

/* ---- rows that are not there ---- */

void case_prefill_m_valid(struct suite *suite, struct tally *tally)
{
    static const int64_t valid[] = {-3, 0, 1, 63, 64, 65, 127, 128, 129, 200, 256, 299, 300, 1000};
    static const uint32_t outs[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
    static const int64_t nks[][2] = {{200, 3000}, {2112, 7168}, {7168, 512}};
    for (uint32_t s = 0; s < 3; s++) {
        struct problem_options options = {300,   nks[s][0],      nks[s][1], false,
                                          false, CBN_GRAN_BLOCK, 7,         suite->seed + 9200};
        struct problem problem;
        if (!problem_create(suite, tally, &options, &problem)) {
            continue;
        }
        for (uint32_t i = 0; i < 14 * 2; i++) {
            struct gemm_call call = gemm_call_plain(300);
            call.lda_pad = call.ldw_pad = s == 0 ? 8 : 0;
            call.has_m_valid = true;
            call.m_valid = valid[i / 2];
            call.form.out = outs[i % 3];
            call.form.in = i % 2 ? CBN_DTYPE_E4M3 : CBN_DTYPE_BF16;
            call.form.layout = i % 2 ? (i % 4 == 1 ? CBN_LAYOUT_COL4 : CBN_LAYOUT_ROW) : 0;
            (void)gemm_run(suite, tally, &problem, &call);
        }
        problem_done(&problem);
    }
}

/* ---- run to run ---- */

#define REPEATS 200

static void run_repeats(struct suite *suite, struct tally *tally, const struct problem *problem, struct gemm_call call)
{
    struct cbn_fp8_gemm_args args;
    struct cbn_error err = {0};
    struct gemm_output first = gemm_run(suite, tally, problem, &call);
    if (!first.kernel) {
        return;
    }
    call.slot = GEMM_SLOT_D1;
    gemm_place(suite, problem, &call, &args);
    struct gemm_output again = first;
    again.data = args.d.data;
    count_reset(suite);
    for (int i = 0; i < REPEATS; i++) {
        gpu_fill(again.data, POISON, call.m * again.ld_bytes);
        if (!tally_call(tally, cbn_fp8_gemm(suite->runtimes[call.runtime], &args, NULL, &err), &err, "repeat")) {
            return;
        }
        gemm_add_unequal(suite, &first, &again, call.m);
    }
    suite_finish(suite);
    tally_equal(tally, count_read(suite), "repeats of one call");
}

void case_prefill_repeats(struct suite *suite, struct tally *tally)
{
    static const int64_t repeat_ms[] = {96, 128, 256, 850, 1000};
    static const int64_t nks[][2] = {{2112, 7168}, {4096, 7168}, {7168, 2048}};
    for (uint32_t s = 0; s < 3; s++) {
        struct problem_options options = {1000,  nks[s][0],      nks[s][1], false,
                                          false, CBN_GRAN_BLOCK, 7,         suite->seed + 9300};
        struct problem problem;
        if (!problem_create(suite, tally, &options, &problem)) {
            continue;
        }
        for (uint32_t i = 0; i < 10; i++) {
            struct gemm_call call = gemm_call_plain(repeat_ms[i / 2]);
            if (i % 2) {
                call.form.in = CBN_DTYPE_E4M3, call.form.layout = CBN_LAYOUT_COL4;
            }
            run_repeats(suite, tally, &problem, call);
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
    } else if (geometry.grid[0] == 0 || geometry.grid[0] > call->max_sms) {
        tally_fault(tally, "max_sms=%u: M=%lld N=%lld K=%lld takes %u CTAs", call->max_sms, (long long)call->m,
                    (long long)problem->n, (long long)problem->k, geometry.grid[0]);
    }
}

void case_prefill_max_sms(struct suite *suite, struct tally *tally)
{
    static const uint32_t bounds[] = {1, 2, 7, 16, 40, 131};
    static const int64_t bounded_ms[] = {65, 128, 500};
    static const int64_t nks[][2] = {{576, 7168}, {2112, 7168}, {4096, 512}};
    for (uint32_t s = 0; s < 3; s++) {
        struct problem_options options = {500,   nks[s][0],      nks[s][1], false,
                                          false, CBN_GRAN_BLOCK, 7,         suite->seed + 9400};
        struct problem problem;
        if (!problem_create(suite, tally, &options, &problem)) {
            continue;
        }
        for (uint32_t i = 0; i < 6 * 3 * 2; i++) {
            struct gemm_call call = gemm_call_plain(bounded_ms[i / 6 % 3]);
            call.max_sms = bounds[i % 6];
            call.form.in = i / 18 ? CBN_DTYPE_E4M3 : CBN_DTYPE_BF16;
            call.form.layout = i / 18 ? CBN_LAYOUT_COL4 : 0;
            (void)gemm_run(suite, tally, &problem, &call);
            expect_bounded(suite, tally, &problem, &call);
        }
        problem_done(&problem);
    }
}

/* ---- what is built before ---- */

void prefill_calls(const struct suite *suite, call_fn add, void *user)
{
    struct tile_point points[TILES_MAX] = {{0}};
    for (uint32_t s = 0; s < SHAPE_COUNT; s++) {
        for (uint32_t i = 0; i < m_count(suite) * KIND_COUNT && (!suite->sample || shapes[s].in_sample); i++) {
            uint32_t turn = i / KIND_COUNT;
            struct gemm_call call = product_call(s, (enum kind)(i % KIND_COUNT), turn + s, m_at(suite, turn));
            gemm_add_call(suite, shapes[s].n, shapes[s].k, &call, add, user);
        }
    }
    if (suite->sample) {
        return;
    }
    find_points(suite, points);
    for (uint32_t i = 0; i < TILES_MAX * TILE_FORMS; i++) {
        const struct tile_point *point = &points[i / TILE_FORMS];
        if (point->found) {
            struct gemm_call call = tile_call(point, i % TILE_FORMS);
            gemm_add_call(suite, point->n, point->k, &call, add, user);
        }
    }
}
