/*
 * Products over the shapes of real models, over every form, and over random odd shapes.
 */
#include <stdio.h>
#include <string.h>

#include "gemm.h"
#include "model_shapes.h"

static const struct {
    int64_t n, k;
} shapes[] = {
#define X(n, k) {n, k},
    MODEL_SHAPE_MAP(X)
#undef X
};
#define SHAPE_COUNT ((uint32_t)(sizeof(shapes) / sizeof(shapes[0])))

static const int64_t ms[] = {257, 64, 33, 32, 31, 24, 16, 7, 1}; /* every tile of swap_ab on every shape */
#define M_COUNT 9u
static const int64_t form_ms[] = {257, 64, 47, 31, 20, 13, 7, 1};
#define FORM_M_COUNT 8u
#define FORM_TURNS 9u /* one form in nine a shape: each form meets four or five shapes */
#define ODD_COUNT 200u
#define ODD_SAMPLE 24u
#define SAMPLE_FORM_STEP 9u

static void add_form(const struct suite *suite, const struct form *form, query_fn add, void *user)
{
    struct cbn_query query;
    gemm_query(suite, form, &query);
    add(user, &query);
}

void gemm_queries(const struct suite *suite, query_fn add, void *user)
{
    struct form form = form_default();
    static const uint32_t ins[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32, CBN_DTYPE_E4M3};
    static const uint32_t outs[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP32};
    for (uint32_t i = 0; i < 8; i++) { /* what the cases of rows, codes, plans and chains call */
        form.in = ins[i % 4], form.out = outs[i / 4];
        form.layout = form.in == CBN_DTYPE_E4M3 ? CBN_LAYOUT_ROW : 0;
        add_form(suite, &form, add, user);
        form.no_pdl = true;
        add_form(suite, &form, add, user);
        form.no_pdl = false;
    }
    form = form_default();
    form.propagate = true;
    add_form(suite, &form, add, user);
}

/* ---- every (N, K), every M ---- */

static bool same_bits(const struct gemm_output *a, const struct gemm_output *b)
{
    return a->kernel && b->kernel && a->order == b->order &&
           (strcmp(a->kernel, b->kernel) == 0 || (gemm_is_swap_ab(a->kernel) && gemm_is_swap_ab(b->kernel)));
}

static void expect_same(struct suite *suite, struct tally *tally, const struct gemm_output *a,
                        const struct gemm_output *b, int64_t rows, const char *what)
{
    char text[160];
    if (!same_bits(a, b)) {
        return;
    }
    (void)snprintf(text, sizeof(text), "%s: %s, %lld rows", what, a->kernel, (long long)rows);
    tally_equal(tally, gemm_unequal(suite, a, b, rows, -1), text);
}

/*
 * bf16 in and out for every M, largest first: a row must not change by a bit while its sums keep their order. And the
 * same rows quantised by fp8_quantize: must not change by a bit either.
 */
static void run_every_m(struct suite *suite, struct tally *tally, const struct problem *problem,
                        enum suite_runtime runtime, uint32_t turn)
{
    static const uint32_t layouts[] = {CBN_LAYOUT_ROW, CBN_LAYOUT_COL, CBN_LAYOUT_COL4};
    struct gemm_output before = {0};
    for (uint32_t i = 0; i < M_COUNT; i++) {
        struct gemm_call call = gemm_call_plain(ms[i]);
        call.runtime = runtime;
        call.slot = i % 2 ? GEMM_SLOT_D1 : GEMM_SLOT_D0;
        call.form.no_pdl = (turn + i) % 5 == 4;
        struct gemm_output now = gemm_run(suite, tally, problem, &call);
        expect_same(suite, tally, &now, &before, ms[i], "same rows, larger M");
        call.slot = GEMM_SLOT_D2;
        call.form.in = CBN_DTYPE_E4M3;
        call.form.layout = layouts[(turn + i) % 3];
        call.form.no_pdl = false;
        struct gemm_output quantised = gemm_run(suite, tally, problem, &call);
        expect_same(suite, tally, &now, &quantised, ms[i], "quantised inside and by fp8_quantize");
        if (now.kernel && quantised.kernel && !same_bits(&now, &quantised)) {
            tally_fault(tally, "bf16 ran %s, e4m3 %s", now.kernel, quantised.kernel);
        }
        before = now;
    }
}

void case_gemm_models(struct suite *suite, struct tally *tally)
{
    for (uint32_t s = 0; s < SHAPE_COUNT; s++) {
        struct problem_options options = {MODEL_ROWS_MAX, shapes[s].n,    shapes[s].k, false,
                                          false,          CBN_GRAN_BLOCK, 7,           suite->seed + s};
        struct problem problem;
        if (!problem_create(suite, tally, &options, &problem)) {
            continue;
        }
        run_every_m(suite, tally, &problem, RUNTIME_ALL, s);
        run_every_m(suite, tally, &problem, s % 2 ? RUNTIME_WGMMA : RUNTIME_GENERIC, s + 1);
        problem_done(&problem);
    }
}

/* ---- every form ---- */

static bool belongs(const struct form *form, uint32_t set)
{
    return form_a_pow2(form) == (set & 1) && form_w_pow2(form) == (set >> 1 & 1) &&
           (form->gran == CBN_GRAN_ROW) == (set >> 2 & 1);
}

static struct gemm_call form_call(uint32_t index, uint32_t s)
{
    struct gemm_call call = gemm_call_plain(form_ms[(index + s) % FORM_M_COUNT]);
    call.form = form_at(index);
    call.runtime = (index + s) % 5 == 3 ? RUNTIME_GENERIC : RUNTIME_ALL;
    call.w_scale_columns = (index + s) % 3 == 1;
    call.s_pad = (index + s) % 2;
    call.max_sms = (index + s) % 6 == 5 ? 16 : 0;
    return call;
}

void case_gemm_forms(struct suite *suite, struct tally *tally)
{
    for (uint32_t s = 0; s < SHAPE_COUNT; s++) {
        for (uint32_t set = 0; set < 8; set++) {
            struct problem_options options = {MODEL_ROWS_MAX,
                                              shapes[s].n,
                                              shapes[s].k,
                                              set & 1,
                                              set >> 1 & 1,
                                              set >> 2 & 1 ? CBN_GRAN_ROW : CBN_GRAN_BLOCK,
                                              7,
                                              suite->seed + 1000 + s};
            struct problem problem;
            bool ready = false;
            for (uint32_t i = s % FORM_TURNS; i < FORM_COUNT; i += FORM_TURNS) {
                struct form form = form_at(i);
                if (!belongs(&form, set)) {
                    continue;
                }
                ready = ready || problem_create(suite, tally, &options, &problem);
                if (ready) {
                    struct gemm_call call = form_call(i, s);
                    (void)gemm_run(suite, tally, &problem, &call);
                }
            }
            if (ready) {
                problem_done(&problem);
            }
        }
    }
}

/* ---- odd shapes ---- */

static int64_t pick(uint64_t *state, const int64_t *values, int64_t count)
{
    return values[random_below(state, count)];
}

static void draw_shape(uint32_t index, uint64_t *state, struct problem_options *options)
{
    static const int64_t small_k[] = {1, 2, 15, 16, 17, 64, 100, 127, 128, 129, 200, 255};
    options->m = 1 + random_below(state, 140);
    options->n = 1 + random_below(state, 700);
    options->k = 1 + random_below(state, 1100);
    switch (index % 8) {
    case 0:
        options->k = pick(state, small_k, 12);
        break;
    case 1:
        options->n = index % 16 == 1 ? 1 : 1 + random_below(state, 16);
        break;
    case 2:
        options->k = index % 16 == 2 ? 0 : 128 * (1 + random_below(state, 8));
        break;
    case 3: /* the shapes of the fast candidates, odd in everything else */
        options->n = 64 * (1 + random_below(state, 10));
        options->k = 128 * (1 + random_below(state, 8));
        break;
    case 4:
        options->m = 1 + random_below(state, 40);
        options->n = 64 * (1 + random_below(state, 10));
        break;
    default:
        break;
    }
}

static void draw_placement(uint32_t index, uint64_t *state, struct gemm_call *call)
{
    call->runtime = random_below(state, 3) == 0 ? RUNTIME_GENERIC : RUNTIME_ALL;
    call->w_scale_columns = random_below(state, 2);
    call->s_pad = random_below(state, 3);
    call->max_sms = random_below(state, 5) == 0 ? 1 + (uint32_t)random_below(state, 40) : 0;
    if (index % 3 == 0) { /* tight */
        return;
    }
    call->lda_pad = random_below(state, 200);
    call->ldw_pad = random_below(state, 200);
    call->ldd_pad = random_below(state, 200);
    if (index % 3 == 1) { /* column slices of wider matrices, every row aligned */
        call->lda_pad = round_up(call->lda_pad, 128);
        call->ldw_pad = round_up(call->ldw_pad, 128);
        call->ldd_pad = round_up(call->ldd_pad, 64);
        call->a_offset = 128 * random_below(state, 3);
        call->s_pad += call->a_offset / 128;
        return;
    }
    call->a_offset = random_below(state, 8);
    call->w_offset = random_below(state, 16);
    call->d_offset = random_below(state, 8);
}

static struct gemm_call odd_call(const struct suite *suite, uint32_t i, uint64_t *state,
                                 struct problem_options *ret_options)
{
    struct gemm_call call = gemm_call_plain(0);
    *ret_options = (struct problem_options){.seed = suite->seed + 2000 + i};
    draw_shape(i, state, ret_options);
    draw_placement(i, state, &call);
    call.form = form_at(suite->sample ? i * SAMPLE_FORM_STEP % FORM_COUNT : i % FORM_COUNT);
    if (i % 8 == 3 || i % 8 == 4) { /* the default profile on every candidate */
        call.form = form_default();
    }
    call.m = ret_options->m;
    ret_options->a_pow2 = form_a_pow2(&call.form), ret_options->w_pow2 = form_w_pow2(&call.form);
    ret_options->gran = call.form.gran;
    ret_options->mantissa_bits = call.form.in == CBN_DTYPE_FP32 ? 23 : 7;
    return call;
}

static uint32_t odd_count(const struct suite *suite)
{
    return suite->sample ? ODD_SAMPLE : ODD_COUNT;
}

void case_gemm_odd(struct suite *suite, struct tally *tally)
{
    uint64_t state = suite->seed + 31;
    for (uint32_t i = 0; i < odd_count(suite); i++) {
        struct problem_options options;
        struct problem problem;
        struct gemm_call call = odd_call(suite, i, &state, &options);
        if (problem_create(suite, tally, &options, &problem)) {
            (void)gemm_run(suite, tally, &problem, &call);
            problem_done(&problem);
        }
    }
}

void gemm_model_calls(const struct suite *suite, call_fn add, void *user)
{
    uint64_t state = suite->seed + 31;
    for (uint32_t s = 0; s < SHAPE_COUNT && !suite->sample; s++) {
        for (uint32_t i = s % FORM_TURNS; i < FORM_COUNT; i += FORM_TURNS) {
            struct gemm_call call = form_call(i, s);
            gemm_add_call(suite, shapes[s].n, shapes[s].k, &call, add, user);
        }
    }
    for (uint32_t i = 0; i < odd_count(suite); i++) {
        struct problem_options options;
        struct gemm_call call = odd_call(suite, i, &state, &options);
        gemm_add_call(suite, options.n, options.k, &call, add, user);
    }
}
