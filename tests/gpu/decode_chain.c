/*
 * 64 products in a row, each one's D the next one's A, with weights of their own that may be fetched early: replayed
 * 10,000 times under PDL, it must be bit-equal to the same without. Two buffers take turns and one workspace serves
 * all, so that a product which writes or quantises before its reader is done changes bits too.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fp8.h"
#include "gemm.h"

#define LINKS 64
#define WIDTH 2048 /* N = K */
#define BLOCKS (WIDTH / 128)
#define CHAIN_M_MAX 32
#define REPLAYS 10002 /* of all chains together */
#define CHAINS 3

struct chain {
    int64_t m, d_bytes; /* of one product */
    CUdeviceptr w, sw, x;
    CUdeviceptr d, want; /* two products' */
    CUdeviceptr workspace;
    uint64_t workspace_bytes;
    struct cbn_plan *plans[2][LINKS]; /* without and with PDL */
};

/* ---- operands that keep values of about 1 over all links ---- */

static double root_mean_square_of_codes(void)
{
    double sum = 0.0;
    for (int i = 0; i < 256; i++) {
        int code = (i & 0x7F) == 0x7F ? i ^ 1 : i; /* as fill_codes draws them */
        double value = (double)cbn__e4m3_decode((uint8_t)code);
        sum += value * value;
    }
    return sqrt(sum / 256);
}

static void fill_scales(struct chain *chain, uint64_t seed)
{
    static const double spread = 1.0 + 1.0 / 12; /* mean square of a factor in [0.5, 1.5) */
    double gain = 1.0 / (root_mean_square_of_codes() * sqrt((double)WIDTH * spread));
    int64_t count = (int64_t)LINKS * BLOCKS * BLOCKS;
    float *scales = calloc((size_t)count, sizeof(*scales));
    if (!scales) {
        abort();
    }
    for (int64_t i = 0; i < count; i++) {
        scales[i] = (float)(gain * (0.5 + (double)(next_random(&seed) >> 11) * 0x1p-53));
    }
    gpu_write(chain->sw, scales, count * 4);
    free(scales);
}

static void fill_input(struct chain *chain, uint64_t seed)
{
    int64_t m = CHAIN_M_MAX, k = WIDTH, count = m * k;
    CUdeviceptr values = gpu_alloc(count * 4);
    int dtype = CBN_DTYPE_BF16;
    void *draw[] = {&values, &count, &seed};
    gpu_launch_over(GPU_KERNEL_fill_bias, count, draw);
    void *place[] = {&values, &k, &chain->x, &k, &m, &k, &dtype};
    gpu_launch_over(GPU_KERNEL_place_values, count, place);
    GPU(cuCtxSynchronize());
    gpu_free(&values);
}

static void chain_create(struct suite *suite, struct chain *ret_chain)
{
    int64_t codes = (int64_t)LINKS * WIDTH * WIDTH, d_bytes = (int64_t)CHAIN_M_MAX * WIDTH * 2;
    uint64_t seed = suite->seed + 8500;
    struct chain chain = {.w = gpu_alloc(codes),
                          .sw = gpu_alloc((int64_t)LINKS * BLOCKS * BLOCKS * 4),
                          .x = gpu_alloc(d_bytes),
                          .d = gpu_alloc(2 * d_bytes),
                          .want = gpu_alloc(2 * d_bytes)};
    void *w[] = {&chain.w, &codes, &seed};
    gpu_launch_over(GPU_KERNEL_fill_codes, codes, w);
    fill_scales(&chain, seed + 1);
    fill_input(&chain, seed + 2);
    *ret_chain = chain;
}

static void chain_done(struct chain *chain)
{
    CUdeviceptr *buffers[] = {&chain->w, &chain->sw, &chain->x, &chain->d, &chain->want};
    GPU(cuCtxSynchronize());
    for (int i = 0; i < 2 * LINKS; i++) {
        cbn_plan_destroy(chain->plans[i / LINKS][i % LINKS]);
    }
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++) {
        gpu_free(buffers[i]);
    }
}

static bool create_plans(struct suite *suite, struct tally *tally, struct chain *chain)
{
    for (int64_t i = 0; i < 2 * LINKS; i++) {
        int64_t link = i % LINKS;
        struct cbn_fp8_gemm_args args = CBN_FP8_GEMM_ARGS_INIT;
        struct cbn_plan **plan = &chain->plans[i / LINKS][link];
        args.a.dtype = args.d.dtype = CBN_DTYPE_BF16;
        args.w_scale_gran = CBN_GRAN_BLOCK;
        args.w = (struct cbn_tensor){
            chain->w + (CUdeviceptr)(link * WIDTH * WIDTH), CBN_DTYPE_E4M3, 2, {WIDTH, WIDTH}, {WIDTH, 1}};
        args.w_scale = (struct cbn_tensor){
            chain->sw + (CUdeviceptr)(link * BLOCKS * BLOCKS * 4), CBN_DTYPE_FP32, 2, {BLOCKS, BLOCKS}, {BLOCKS, 1}};
        *plan = gemm_plan_create(suite, tally, RUNTIME_ALL, &args,
                                 CBN_OP_WEIGHTS_STATIC | (i < LINKS ? CBN_OP_NO_PDL : 0), CHAIN_M_MAX);
        if (!*plan) {
            return false;
        }
    }
    return true;
}

/* ---- runs ---- */

static bool enqueue(struct chain *chain, struct tally *tally, bool pdl, CUstream stream)
{
    for (int i = 0; i < LINKS; i++) {
        struct cbn_fp8_gemm_run_args run = CBN_FP8_GEMM_RUN_ARGS_INIT;
        struct cbn_error err = {0};
        CUdeviceptr a = i ? chain->d + (CUdeviceptr)((i - 1) % 2 * chain->d_bytes) : chain->x;
        CUdeviceptr d = chain->d + (CUdeviceptr)(i % 2 * chain->d_bytes);
        run.a = (struct cbn_tensor){a, CBN_DTYPE_BF16, 2, {chain->m, WIDTH}, {WIDTH, 1}};
        run.d = (struct cbn_tensor){d, CBN_DTYPE_BF16, 2, {chain->m, WIDTH}, {WIDTH, 1}};
        run.workspace = chain->workspace, run.workspace_bytes = chain->workspace_bytes;
        if (!tally_call(tally, cbn_fp8_gemm_plan_run(chain->plans[pdl][i], &run, stream, &err), &err, "link")) {
            return false;
        }
    }
    return true;
}

/* The comparison would be worth nothing over zeros, infinities or NaN. */
static void expect_live(struct tally *tally, struct chain *chain)
{
    int64_t count = 2 * chain->m * WIDTH, zeros = 0;
    uint16_t *values = calloc((size_t)count, sizeof(*values));
    double sum = 0.0;
    if (!values) {
        abort();
    }
    gpu_read(values, chain->want, count * 2);
    for (int64_t i = 0; i < count; i++) {
        double value = (double)cbn__bf16_decode(values[i]);
        sum += value * value;
        zeros += value == 0.0;
    }
    free(values);
    double rms = sqrt(sum / (double)count);
    size_t used = strlen(tally->note);
    (void)snprintf(tally->note + used, sizeof(tally->note) - used, "%sM=%lld: rms %.3g after %d links",
                   used ? "; " : "", (long long)chain->m, rms, LINKS);
    if (!(rms > 1e-2 && rms < 1e2) || zeros > count / 10) {
        tally_fault(tally, "M=%lld: a chain of rms %g with %lld zeros of %lld compares nothing", (long long)chain->m,
                    rms, (long long)zeros, (long long)count);
    }
}

/* Every replay is compared; the blocking stream orders it against the null stream's kernels. */
static void replay(struct suite *suite, struct tally *tally, struct chain *chain, CUgraphExec exec, CUstream stream)
{
    struct gemm_output want = {chain->want, WIDTH * 2, WIDTH * 2, NULL, 0}, got = {chain->d, WIDTH * 2, WIDTH * 2, NULL, 0};
    count_reset(suite);
    for (int i = 0; i < REPLAYS / CHAINS; i++) {
        gpu_fill(chain->d, POISON_INPUT, 2 * chain->d_bytes);
        GPU(cuGraphLaunch(exec, stream));
        gemm_add_unequal(suite, &want, &got, 2 * chain->m);
        tally->count += LINKS;
    }
    suite_finish(suite);
    tally_equal(tally, count_read(suite), "a chain with PDL and without");
    tally_equal(tally, gemm_workspace_touched(suite, chain->workspace, chain->workspace_bytes),
                "outside the workspace");
}

static void note_kernels(struct suite *suite, int64_t m)
{
    for (int pdl = 0; pdl < 2; pdl++) {
        struct gemm_call call = gemm_call_plain(m);
        struct cbn_query query;
        call.form.no_pdl = !pdl;
        gemm_call_query(suite, WIDTH, WIDTH, &call, &query);
        (void)cover_note_gemm(suite, RUNTIME_ALL, &query, 16);
    }
}

static void run_chain(struct suite *suite, struct tally *tally, struct chain *chain, int64_t m)
{
    CUstream stream;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    gpu_doing("a chain of products");
    chain->m = m;
    chain->d_bytes = m * WIDTH * 2;
    chain->workspace_bytes = gemm_plan_workspace_bytes(tally, chain->plans[1][0], m);
    chain->workspace = gemm_workspace(suite, chain->workspace_bytes);
    GPU(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    bool ready = enqueue(chain, tally, false, stream);
    suite_finish(suite);
    GPU(cuMemcpyDtoD(chain->want, chain->d, (size_t)(2 * chain->d_bytes)));
    expect_live(tally, chain);
    GPU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ready = ready && enqueue(chain, tally, true, stream);
    GPU(cuStreamEndCapture(stream, &graph));
    GPU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    if (ready) {
        replay(suite, tally, chain, exec, stream);
        note_kernels(suite, m);
    }
    GPU(cuGraphExecDestroy(exec));
    GPU(cuGraphDestroy(graph));
    GPU(cuStreamDestroy(stream));
}

void case_decode_chain(struct suite *suite, struct tally *tally)
{
    static const int64_t chain_ms[CHAINS] = {1, 8, CHAIN_M_MAX};
    struct chain chain;
    chain_create(suite, &chain);
    if (create_plans(suite, tally, &chain)) {
        for (int i = 0; i < CHAINS; i++) {
            run_chain(suite, tally, &chain, chain_ms[i]);
        }
    }
    chain_done(&chain);
}
