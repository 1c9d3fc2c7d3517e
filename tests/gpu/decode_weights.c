/*
 * Weights that are written just before a product: the writer lets the product start at once and writes late. Only a
 * plan whose weights are static and settled may have fetched them by then.
 */
#include <stdio.h>

#include "gemm.h"

#define WRITER_BLOCKS 64 /* few: the product's CTAs find room beside them */
#define WRITER_DELAY_NS 100000u
#define TURNS 8
#define LAYER_N 2112
#define LAYER_K 7168
#define LAYER_M 32

enum way { WAY_ONE_SHOT, WAY_PLAN, WAY_UNSETTLED, WAY_SETTLED, WAY_COUNT };

struct rewriting {
    struct problem before, after;
    CUdeviceptr w, sw;
    int64_t w_bytes, sw_bytes;
    CUstream stream;
    uint64_t early; /* results of settled plans that hold old weights: proof that a product did start early */
};

static struct cbn_fp8_gemm_args place(struct suite *suite, struct rewriting *rewriting, const struct gemm_call *call)
{
    struct cbn_fp8_gemm_args args;
    int64_t groups = rewriting->after.groups;
    gemm_place(suite, &rewriting->after, call, &args);
    args.w.data = rewriting->w;
    args.w_scale.data = rewriting->sw;
    args.w_scale.strides[0] = groups, args.w_scale.strides[1] = 1;
    GPU(cuMemcpyDtoD(rewriting->w, rewriting->before.w, (size_t)rewriting->w_bytes));
    GPU(cuMemcpyDtoD(rewriting->sw, rewriting->before.sw, (size_t)rewriting->sw_bytes));
    return args;
}

static void write_late(struct rewriting *rewriting)
{
    CUdeviceptr new_w = rewriting->after.w, new_sw = rewriting->after.sw;
    int64_t w_words = rewriting->w_bytes / 4, sw_words = rewriting->sw_bytes / 4;
    uint64_t delay_ns = WRITER_DELAY_NS;
    void *arguments[] = {&rewriting->w, &new_w, &w_words, &rewriting->sw, &new_sw, &sw_words, &delay_ns};
    gpu_launch_in(GPU_KERNEL_rewrite_late, WRITER_BLOCKS, arguments, rewriting->stream);
}

static int32_t run(struct suite *suite, struct rewriting *rewriting, struct cbn_plan *plan,
                   const struct cbn_fp8_gemm_args *args, struct cbn_error *err)
{
    struct cbn_fp8_gemm_run_args run = CBN_FP8_GEMM_RUN_ARGS_INIT;
    if (!plan) {
        return cbn_fp8_gemm(suite->runtimes[RUNTIME_ALL], args, rewriting->stream, err);
    }
    run.a = args->a, run.a_scale = args->a_scale, run.d = args->d;
    run.workspace = args->workspace, run.workspace_bytes = args->workspace_bytes;
    return cbn_fp8_gemm_plan_run(plan, &run, rewriting->stream, err);
}

/* The result must be that of the new weights; a settled plan's may be of any. */
static void run_turn(struct suite *suite, struct tally *tally, struct rewriting *rewriting, struct gemm_call call,
                     enum way way, struct cbn_plan *plan, struct gemm_output *right)
{
    struct cbn_error err = {0};
    call.slot = way == WAY_SETTLED ? GEMM_SLOT_D1 : GEMM_SLOT_D0;
    struct cbn_fp8_gemm_args args = place(suite, rewriting, &call);
    if (plan) {
        args.workspace_bytes = gemm_plan_workspace_bytes(tally, plan, call.m);
        args.workspace = gemm_workspace(suite, args.workspace_bytes);
    }
    GPU(cuCtxSynchronize());
    write_late(rewriting);
    gpu_doing("a product beside a writer of its weights");
    int32_t status = run(suite, rewriting, plan, &args, &err);
    suite_finish(suite);
    if (!tally_call(tally, status, &err, "beside a writer of the weights")) {
        return;
    }
    if (way != WAY_SETTLED) {
        *right = gemm_check(suite, tally, &rewriting->after, &call, &args);
        return;
    }
    struct gemm_output any = *right;
    any.data = args.d.data;
    rewriting->early += right->kernel && gemm_unequal(suite, right, &any, call.m, -1) > 0;
}

static void run_way(struct suite *suite, struct tally *tally, struct rewriting *rewriting, struct gemm_call call,
                    enum way way, struct gemm_output *right)
{
    struct cbn_plan *plan = NULL;
    if (way != WAY_ONE_SHOT) {
        struct cbn_fp8_gemm_args args = place(suite, rewriting, &call);
        plan = gemm_plan_create(suite, tally, RUNTIME_ALL, &args, way == WAY_PLAN ? 0 : CBN_OP_WEIGHTS_STATIC, call.m);
        if (!plan) {
            return;
        }
        cbn_plan_weights_changed(plan, way == WAY_SETTLED);
    }
    for (int i = 0; i < TURNS; i++) {
        run_turn(suite, tally, rewriting, call, way, plan, right);
    }
    cbn_plan_destroy(plan);
}

static void run_inputs(struct suite *suite, struct tally *tally, struct rewriting *rewriting)
{
    static const int64_t rewritten_ms[] = {8, LAYER_M, 8, LAYER_M}; /* fused, fp8_quantize first, codes twice */
    for (int i = 0; i < 4; i++) {
        struct gemm_call call = gemm_call_plain(rewritten_ms[i]);
        struct gemm_output right = {0};
        if (i / 2) {
            call.form.in = CBN_DTYPE_E4M3, call.form.layout = CBN_LAYOUT_COL4;
        }
        for (int way = 0; way < WAY_COUNT; way++) {
            run_way(suite, tally, rewriting, call, (enum way)way, &right);
        }
    }
    (void)snprintf(tally->note, sizeof(tally->note), "%llu of %d settled plans had fetched the old weights",
                   (unsigned long long)rewriting->early, 4 * TURNS);
}

void case_decode_weights_changed(struct suite *suite, struct tally *tally)
{
    struct problem_options options = {LAYER_M, LAYER_N, LAYER_K, false, false, CBN_GRAN_BLOCK, 7, suite->seed + 8400};
    struct rewriting rewriting = {.w_bytes = (int64_t)LAYER_N * LAYER_K,
                                  .sw_bytes = ceil_div(LAYER_N, 128) * (LAYER_K / 128) * 4};
    if (!problem_create(suite, tally, &options, &rewriting.before)) {
        return;
    }
    options.seed += 100;
    if (problem_create(suite, tally, &options, &rewriting.after)) {
        rewriting.w = gpu_alloc(rewriting.w_bytes);
        rewriting.sw = gpu_alloc(rewriting.sw_bytes);
        GPU(cuStreamCreate(&rewriting.stream, CU_STREAM_NON_BLOCKING));
        run_inputs(suite, tally, &rewriting);
        GPU(cuStreamDestroy(rewriting.stream));
        gpu_free(&rewriting.w);
        gpu_free(&rewriting.sw);
        problem_done(&rewriting.after);
    }
    problem_done(&rewriting.before);
}
