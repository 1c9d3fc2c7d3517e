/*
 * Graph capture: a loaded kernel captures and replays; one that is not loaded says so and leaves the capture valid, in
 * every capture mode, while another thread loads it beside the capture.
 */
#include <pthread.h>
#include <string.h>

#include "gemm.h"

#define CAPTURE_M 64

static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                            CU_STREAM_CAPTURE_MODE_RELAXED};

static bool setup(struct suite *suite, struct tally *tally, struct problem *ret_problem)
{
    struct problem_options options = {CAPTURE_M, 512, 1024, false, false, CBN_GRAN_BLOCK, 7, suite->seed + 5000};
    return problem_create(suite, tally, &options, ret_problem);
}

static CUgraphExec end_capture(CUstream stream, struct tally *tally)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUresult result = gpu.cuStreamEndCapture(stream, &graph);
    if (result != CUDA_SUCCESS || !graph) {
        tally_fault(tally, "the capture did not end well (%d)", (int)result);
        return NULL;
    }
    GPU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    GPU(cuGraphDestroy(graph));
    return exec;
}

static void replay(CUgraphExec exec, CUstream stream)
{
    GPU(cuGraphLaunch(exec, stream));
    GPU(cuStreamSynchronize(stream));
}

/* ---- loaded kernels ---- */

static void run_replay(struct suite *suite, struct tally *tally, const struct problem *problem, struct gemm_call call,
                       CUstreamCaptureMode mode)
{
    struct cbn_fp8_gemm_args args, empty = CBN_FP8_GEMM_ARGS_INIT;
    struct cbn_error err = {0};
    struct cbn_runtime *runtime = suite->runtimes[RUNTIME_ALL];
    CUstream stream;
    GPU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    struct gemm_output direct = gemm_run(suite, tally, problem, &call);
    call.slot = GEMM_SLOT_D1;
    gemm_place(suite, problem, &call, &args);
    GPU(cuCtxSynchronize());
    GPU(cuStreamBeginCapture(stream, mode));
    (void)tally_call(tally, cbn_fp8_gemm(runtime, &args, stream, &err), &err, "captured");
    empty.a.rank = 2, empty.a.extents[1] = 128;
    (void)tally_call(tally, cbn_fp8_gemm(runtime, &empty, stream, &err), &err, "M = 0, captured");
    CUgraphExec exec = end_capture(stream, tally);
    for (int i = 0; exec && direct.kernel && i < 3; i++) {
        gpu_fill(args.d.data, POISON, direct.row_bytes);
        GPU(cuCtxSynchronize());
        replay(exec, stream);
        struct gemm_output replayed = gemm_check(suite, tally, problem, &call, &args);
        tally_equal(tally, gemm_unequal(suite, &direct, &replayed, call.m, -1), "replayed graph and direct call");
    }
    if (exec) {
        GPU(cuGraphExecDestroy(exec));
    }
    GPU(cuStreamDestroy(stream));
}

void case_capture_replay(struct suite *suite, struct tally *tally)
{
    static const int64_t capture_ms[] = {CAPTURE_M, 16};
    struct problem problem;
    if (!setup(suite, tally, &problem)) {
        return;
    }
    for (uint32_t i = 0; i < 12; i++) {
        struct gemm_call call = gemm_call_plain(capture_ms[i % 2]);
        call.form.no_pdl = i / 2 % 2;
        if (i % 3 == 2) {
            call.form.in = CBN_DTYPE_E4M3, call.form.layout = CBN_LAYOUT_ROW;
        }
        run_replay(suite, tally, &problem, call, modes[i / 4]);
    }
    problem_done(&problem);
}

/* ---- first use ---- */

struct loading {
    struct cbn_runtime *runtime;
    const struct cbn_fp8_gemm_args *args;
    CUstream stream;
    int32_t status;
    struct cbn_error err;
};

static void *load_beside(void *user)
{
    struct loading *loading = user;
    gpu_make_current();
    loading->status = cbn_fp8_gemm(loading->runtime, loading->args, loading->stream, &loading->err);
    return NULL;
}

static void expect_not_loaded(struct tally *tally, int32_t status, CUstream stream, const char *what)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    tally->count++;
    if (status != CBN_STATUS_NOT_LOADED) {
        tally_fault(tally, "%s: %s, expected NOT_LOADED", what, cbn_status_name(status));
    }
    GPU(cuStreamIsCapturing(stream, &capture));
    if (capture != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        tally_fault(tally, "%s: the capture is no longer active (%d)", what, (int)capture);
    }
}

static int32_t quantize_in_capture(struct cbn_runtime *runtime, const struct problem *problem, CUstream stream)
{
    struct cbn_fp8_quantize_args args = CBN_FP8_QUANTIZE_ARGS_INIT;
    int64_t m = CAPTURE_M, k = problem->k, groups = problem->groups;
    args.scale_layout = CBN_LAYOUT_ROW;
    args.x = (struct cbn_tensor){problem->x, CBN_DTYPE_FP32, 2, {m, k}, {k, 1}};
    args.codes = (struct cbn_tensor){problem->codes, CBN_DTYPE_E4M3, 2, {m, k}, {k, 1}};
    args.scales = (struct cbn_tensor){problem->sa, CBN_DTYPE_FP32, 2, {m, groups}, {groups, 1}};
    return cbn_fp8_quantize(runtime, &args, stream, NULL);
}

/* The whole story of one mode, between the begin and the end of the capture. */
static void capture_first_use(struct suite *suite, struct tally *tally, const struct problem *problem,
                              struct cbn_runtime *fresh, const struct cbn_fp8_gemm_args *args,
                              const struct cbn_fp8_gemm_args *beside, CUstream streams[2])
{
    struct loading loading = {.runtime = fresh, .args = beside, .stream = streams[1]};
    struct cbn_error err = {0};
    pthread_t thread;
    expect_not_loaded(tally, cbn_fp8_gemm(fresh, args, streams[0], NULL), streams[0], "fp8_gemm");
    expect_not_loaded(tally, quantize_in_capture(fresh, problem, streams[0]), streams[0], "fp8_quantize");
    if (pthread_create(&thread, NULL, load_beside, &loading) != 0) {
        tally_fault(tally, "no thread");
        return;
    }
    (void)pthread_join(thread, NULL);
    (void)tally_call(tally, loading.status, &loading.err, "load in another thread beside the capture");
    /* Loaded now: the same call captures. */
    (void)tally_call(tally, cbn_fp8_gemm(fresh, args, streams[0], &err), &err, "captured after the load");
    (void)suite;
}

static void run_first_use(struct suite *suite, struct tally *tally, const struct problem *problem,
                          CUstreamCaptureMode mode)
{
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_runtime *fresh = NULL;
    struct cbn_fp8_gemm_args args, beside;
    struct cbn_error err = {0};
    CUstream streams[2];
    options.cache_dir = suite->cache_dir;
    if (!tally_call(tally, cbn_runtime_create(&options, &fresh, &err), &err, "runtime_create")) {
        return;
    }
    struct gemm_call call = gemm_call_plain(CAPTURE_M);
    struct gemm_output direct = gemm_run(suite, tally, problem, &call);
    call.slot = GEMM_SLOT_D1;
    gemm_place(suite, problem, &call, &args);
    call.slot = GEMM_SLOT_D2;
    gemm_place(suite, problem, &call, &beside);
    for (int i = 0; i < 2; i++) {
        GPU(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
    GPU(cuCtxSynchronize());
    GPU(cuStreamBeginCapture(streams[0], mode));
    capture_first_use(suite, tally, problem, fresh, &args, &beside, streams);
    CUgraphExec exec = end_capture(streams[0], tally);
    GPU(cuStreamSynchronize(streams[1]));
    if (exec) {
        replay(exec, streams[0]);
        call.slot = GEMM_SLOT_D1;
        struct gemm_output captured = gemm_check(suite, tally, problem, &call, &args);
        tally_equal(tally, gemm_unequal(suite, &direct, &captured, CAPTURE_M, -1), "captured after first use");
        call.slot = GEMM_SLOT_D2;
        struct gemm_output loaded = gemm_check(suite, tally, problem, &call, &beside);
        tally_equal(tally, gemm_unequal(suite, &direct, &loaded, CAPTURE_M, -1), "loaded beside the capture");
        GPU(cuGraphExecDestroy(exec));
    }
    for (int i = 0; i < 2; i++) {
        GPU(cuStreamDestroy(streams[i]));
    }
    cbn_runtime_destroy(fresh);
}

void case_capture_first_use(struct suite *suite, struct tally *tally)
{
    struct problem problem;
    if (!setup(suite, tally, &problem)) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        run_first_use(suite, tally, &problem, modes[i]);
    }
    problem_done(&problem);
}
