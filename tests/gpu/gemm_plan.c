/*
 * Plans: the same bits as one-shot calls, in a workspace of the size that the plan asks for.
 */
#include "gemm.h"

struct cbn_plan *gemm_plan_create(struct suite *suite, struct tally *tally, enum suite_runtime runtime,
                                  const struct cbn_fp8_gemm_args *args, uint32_t flags, int64_t max_m)
{
    struct cbn_fp8_gemm_plan_options options = CBN_FP8_GEMM_PLAN_OPTIONS_INIT;
    struct cbn_plan *plan = NULL;
    struct cbn_error err = {0};
    options.flags = args->flags | flags;
    options.in = args->a.dtype, options.out = args->d.dtype;
    options.a_scale_layout = args->a_scale_layout, options.w_scale_gran = args->w_scale_gran;
    options.max_sms = args->max_sms;
    options.max_m = max_m;
    options.w = args->w, options.w_scale = args->w_scale, options.bias = args->bias;
    int32_t status = cbn_fp8_gemm_plan_create(suite->runtimes[runtime], &options, &plan, &err);
    (void)tally_call(tally, status, &err, "plan_create");
    return plan;
}

uint64_t gemm_plan_workspace_bytes(struct tally *tally, const struct cbn_plan *plan, int64_t m)
{
    struct cbn_error err = {0};
    uint64_t bytes = 0;
    (void)tally_call(tally, cbn_fp8_gemm_plan_workspace_bytes(plan, m, &bytes, &err), &err, "plan_workspace_bytes");
    return bytes;
}

struct gemm_output gemm_plan_run(struct suite *suite, struct tally *tally, const struct problem *problem,
                                 struct cbn_plan *plan, const struct gemm_call *call)
{
    struct cbn_fp8_gemm_args args;
    struct cbn_fp8_gemm_run_args run = CBN_FP8_GEMM_RUN_ARGS_INIT;
    struct cbn_error err = {0};
    char what[256];
    gemm_describe(problem, call, "plan_run", what, sizeof(what));
    gemm_place(suite, problem, call, &args);
    args.workspace_bytes = gemm_plan_workspace_bytes(tally, plan, call->m);
    args.workspace = gemm_workspace(suite, args.workspace_bytes);
    run.a = args.a, run.a_scale = args.a_scale, run.d = args.d;
    run.m_valid = args.m_valid, run.workspace = args.workspace, run.workspace_bytes = args.workspace_bytes;
    GPU(cuCtxSynchronize()); /* a static plan may fetch weights before the kernels that placed them are waited for */
    gpu_doing(what);
    if (!tally_call(tally, cbn_fp8_gemm_plan_run(plan, &run, NULL, &err), &err, what)) {
        return (struct gemm_output){0};
    }
    suite_finish(suite);
    return gemm_check(suite, tally, problem, call, &args);
}

static void run_both(struct suite *suite, struct tally *tally, const struct problem *problem, struct cbn_plan *plan,
                     struct gemm_call call)
{
    call.slot = GEMM_SLOT_D0;
    struct gemm_output direct = gemm_run(suite, tally, problem, &call);
    call.slot = GEMM_SLOT_D1;
    struct gemm_output planned = gemm_plan_run(suite, tally, problem, plan, &call);
    if (direct.kernel && planned.kernel) {
        tally_equal(tally, gemm_unequal(suite, &direct, &planned, call.m, -1), "plan and one-shot call");
    }
}

void case_gemm_plan(struct suite *suite, struct tally *tally)
{
    static const int64_t plan_ms[] = {130, 64, 31, 1};
    struct problem_options options = {130, 384, 640, false, false, CBN_GRAN_BLOCK, 7, suite->seed + 4000};
    struct problem problem;
    if (!problem_create(suite, tally, &options, &problem)) {
        return;
    }
    for (uint32_t i = 0; i < 4; i++) {
        struct gemm_call call = gemm_call_plain(130);
        struct cbn_fp8_gemm_args args;
        call.form.in = i % 2 ? CBN_DTYPE_E4M3 : CBN_DTYPE_BF16;
        call.form.layout = i % 2 ? CBN_LAYOUT_ROW : 0;
        bool tight = suite->sample;
        suite->sample = false; /* buffers must stay where they are while the plan holds them */
        gemm_place(suite, &problem, &call, &args);
        struct cbn_plan *plan =
            gemm_plan_create(suite, tally, RUNTIME_ALL, &args, i / 2 ? CBN_OP_WEIGHTS_STATIC : 0, 130);
        for (uint32_t j = 0; plan && j < 4; j++) {
            call.m = plan_ms[j];
            if (i == 2) {
                cbn_plan_weights_changed(plan, j % 2);
            }
            run_both(suite, tally, &problem, plan, call);
        }
        cbn_plan_destroy(plan);
        suite->sample = tight;
    }
    problem_done(&problem);
}
