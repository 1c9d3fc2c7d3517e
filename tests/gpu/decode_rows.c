/*
 * Batch invariance of swap_ab: a row's bits do not depend on how many other rows there are, nor on what they hold, nor
 * on the run.
 */
#include <stdio.h>
#include <string.h>

#include "gemm.h"

#define ROWS_MAX 320 /* far past the policy's threshold */
#define EVERY_M 129

static const int64_t beyond[] = {130, 160, 191, 192, 193, 255, 256, 257, ROWS_MAX};
#define BEYOND_COUNT ((int64_t)(sizeof(beyond) / sizeof(beyond[0])))

enum input { INPUT_CODES_ROW, INPUT_CODES_COL4, INPUT_BF16, INPUT_BF16_PROPAGATE, INPUT_COUNT };

static const struct {
    int64_t n, k;
} shapes[] = {{72, 144}, {512, 7168}, {1536, 4096}, {2112, 7168}, {7168, 2048}};
#define SHAPE_COUNT ((uint32_t)(sizeof(shapes) / sizeof(shapes[0])))

/* Row 0 is the problem's, every other byte NaN. */
struct bed {
    CUdeviceptr codes, values, scales_row, scales_col4;
    CUdeviceptr d, want;
};

static void bed_create(const struct problem *problem, struct bed *ret_bed)
{
    int64_t k = problem->k, groups = problem->groups, one = 1, stride = ROWS_MAX;
    int dtype = CBN_DTYPE_BF16, packed = 0;
    struct bed bed = {.codes = gpu_alloc(ROWS_MAX * k),
                      .values = gpu_alloc(ROWS_MAX * k * 2),
                      .scales_row = gpu_alloc(ROWS_MAX * groups * 4),
                      .scales_col4 = gpu_alloc(ROWS_MAX * groups * 4),
                      .d = gpu_alloc(ROWS_MAX * problem->n * 2),
                      .want = gpu_alloc(problem->n * 2)};
    gpu_fill(bed.codes, POISON_INPUT, ROWS_MAX * k);
    gpu_fill(bed.values, POISON_INPUT, ROWS_MAX * k * 2);
    gpu_fill(bed.scales_row, POISON_INPUT, ROWS_MAX * groups * 4);
    gpu_fill(bed.scales_col4, POISON_INPUT, ROWS_MAX * groups * 4);
    GPU(cuMemcpyDtoD(bed.codes, problem->codes, (size_t)k));
    GPU(cuMemcpyDtoD(bed.scales_row, problem->sa, (size_t)(groups * 4)));
    CUdeviceptr x = problem->x, sa = problem->sa;
    void *values[] = {&x, &k, &bed.values, &k, &one, &k, &dtype};
    gpu_launch_over(GPU_KERNEL_place_values, k, values);
    void *scales[] = {&sa, &bed.scales_col4, &one, &groups, &one, &stride, &packed};
    gpu_launch_over(GPU_KERNEL_place_scales, groups, scales);
    *ret_bed = bed;
}

static void bed_done(struct bed *bed)
{
    CUdeviceptr *buffers[] = {&bed->codes, &bed->values, &bed->scales_row, &bed->scales_col4, &bed->d, &bed->want};
    GPU(cuCtxSynchronize());
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++) {
        gpu_free(buffers[i]);
    }
}

static struct gemm_call call_of(enum input input, int64_t m)
{
    struct gemm_call call = gemm_call_plain(m);
    call.runtime = RUNTIME_SWAP_AB;
    call.form.propagate = input == INPUT_BF16_PROPAGATE;
    if (input <= INPUT_CODES_COL4) {
        call.form.in = CBN_DTYPE_E4M3;
        call.form.layout = input == INPUT_CODES_ROW ? CBN_LAYOUT_ROW : CBN_LAYOUT_COL4;
    }
    return call;
}

static void set_args(const struct problem *problem, const struct bed *bed, enum input input, int64_t m,
                     struct cbn_fp8_gemm_args *ret_args)
{
    int64_t n = problem->n, k = problem->k, groups = problem->groups;
    struct cbn_fp8_gemm_args args = CBN_FP8_GEMM_ARGS_INIT;
    args.a = (struct cbn_tensor){bed->values, CBN_DTYPE_BF16, 2, {m, k}, {k, 1}};
    args.flags = input == INPUT_BF16_PROPAGATE ? CBN_OP_PROPAGATE : 0;
    if (input == INPUT_CODES_ROW || input == INPUT_CODES_COL4) {
        bool row = input == INPUT_CODES_ROW;
        args.a = (struct cbn_tensor){bed->codes, CBN_DTYPE_E4M3, 2, {m, k}, {k, 1}};
        args.a_scale_layout = row ? CBN_LAYOUT_ROW : CBN_LAYOUT_COL4;
        args.a_scale = (struct cbn_tensor){row ? bed->scales_row : bed->scales_col4,
                                           CBN_DTYPE_FP32,
                                           2,
                                           {m, groups},
                                           {row ? groups : 1, row ? 1 : ROWS_MAX}};
    }
    args.w = (struct cbn_tensor){problem->w, CBN_DTYPE_E4M3, 2, {n, k}, {k, 1}};
    args.w_scale = (struct cbn_tensor){problem->sw, CBN_DTYPE_FP32, 2, {ceil_div(n, 128), groups}, {groups, 1}};
    args.d = (struct cbn_tensor){bed->d, CBN_DTYPE_BF16, 2, {m, n}, {n, 1}};
    *ret_args = args;
}

static void run_m(struct suite *suite, struct tally *tally, const struct problem *problem, const struct bed *bed,
                  enum input input, int64_t m)
{
    struct cbn_runtime *runtime = suite->runtimes[RUNTIME_SWAP_AB];
    struct gemm_call call = call_of(input, m);
    struct gemm_output want = {bed->want, problem->n * 2, problem->n * 2, NULL, 0}, got = want;
    struct cbn_fp8_gemm_args args;
    struct cbn_query query;
    struct cbn_error err = {0};
    char what[128];
    (void)snprintf(what, sizeof(what), "row 0 of M=%lld N=%lld K=%lld, input %d", (long long)m, (long long)problem->n,
                   (long long)problem->k, (int)input);
    set_args(problem, bed, input, m, &args);
    (void)cbn_fp8_gemm_workspace_bytes(runtime, &args, &args.workspace_bytes, &err);
    args.workspace = gemm_workspace(suite, args.workspace_bytes);
    gpu_fill(bed->d, POISON, problem->n * 2);
    gpu_doing(what);
    if (!tally_call(tally, cbn_fp8_gemm(runtime, &args, NULL, &err), &err, what)) {
        return;
    }
    suite_finish(suite);
    gemm_call_query(suite, problem->n, problem->k, &call, &query);
    const char *kernel = cover_note_gemm(suite, RUNTIME_SWAP_AB, &query, 16);
    if (strcmp(kernel, "swap_ab") != 0) {
        tally_fault(tally, "%s ran %s", what, kernel);
    }
    got.data = bed->d;
    tally_equal(tally, gemm_unequal(suite, &want, &got, 1, -1), what);
    tally_equal(tally, gemm_workspace_touched(suite, args.workspace, args.workspace_bytes), "outside the workspace");
}

static void run_shape(struct suite *suite, struct tally *tally, const struct problem *problem)
{
    struct bed bed;
    bed_create(problem, &bed);
    for (int input = 0; input < INPUT_COUNT; input++) {
        struct gemm_call call = call_of((enum input)input, 1);
        struct gemm_output alone = gemm_run(suite, tally, problem, &call);
        if (!alone.kernel) {
            continue;
        }
        GPU(cuMemcpyDtoD(bed.want, alone.data, (size_t)(problem->n * 2)));
        for (int64_t m = 1; m <= EVERY_M; m++) {
            run_m(suite, tally, problem, &bed, (enum input)input, m);
        }
        for (int64_t i = 0; i < BEYOND_COUNT; i++) {
            run_m(suite, tally, problem, &bed, (enum input)input, beyond[i]);
        }
    }
    bed_done(&bed);
}

void case_decode_rows(struct suite *suite, struct tally *tally)
{
    for (uint32_t s = 0; s < SHAPE_COUNT; s++) {
        struct problem_options options = {1,     shapes[s].n,    shapes[s].k, false,
                                          false, CBN_GRAN_BLOCK, 7,           suite->seed + 8100 + s};
        struct problem problem;
        if (problem_create(suite, tally, &options, &problem)) {
            run_shape(suite, tally, &problem);
            problem_done(&problem);
        }
    }
}

/* ---- run to run ---- */

#define REPEATS 1000
#define REPEAT_M_MAX 128

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

void case_decode_repeats(struct suite *suite, struct tally *tally)
{
    static const int64_t repeat_ms[] = {1, 8, 16, 32, 64, REPEAT_M_MAX};
    struct problem_options options = {REPEAT_M_MAX, 2112, 7168, false, false, CBN_GRAN_BLOCK, 7, suite->seed + 8300};
    struct problem problem;
    if (!problem_create(suite, tally, &options, &problem)) {
        return;
    }
    for (uint32_t i = 0; i < 12; i++) {
        struct gemm_call call = gemm_call_plain(repeat_ms[i / 2]);
        if (i % 2) {
            call.form.in = CBN_DTYPE_E4M3, call.form.layout = CBN_LAYOUT_COL4;
        }
        run_repeats(suite, tally, &problem, call);
    }
    problem_done(&problem);
}
