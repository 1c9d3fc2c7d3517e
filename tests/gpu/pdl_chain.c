/*
 * Programmatic dependent launch: quantize -> gemm, 2,000 times through one pair of code and scale buffers, must be
 * bit-equal to the same without it. A gemm that reads before its producer is done, or a quantize that overwrites what
 * the gemm before still reads, changes bits: every link has other rows than its neighbours.
 */
#include "gemm.h"
#include "quantize.h"

#define LINKS 8
#define CHAINS_DIRECT 100
#define CHAINS_GRAPH 25
#define CHAIN_N 512
#define CHAIN_K 4096

struct chain {
    struct cbn_runtime *runtime;
    struct cbn_fp8_quantize_args quantize[LINKS];
    struct cbn_fp8_gemm_args gemm[LINKS];
    CUdeviceptr x, codes, scales, d, want;
    int64_t m, d_bytes; /* of one link */
};

static void chain_create(struct suite *suite, const struct problem *problem, int64_t m, struct chain *ret_chain)
{
    int64_t k = CHAIN_K, groups = k / 128, m4 = round_up(m, 4), x_bytes = m * k * 4;
    struct chain chain = {.runtime = suite->runtimes[RUNTIME_ALL], .m = m, .d_bytes = m * CHAIN_N * 2};
    chain.x = gpu_alloc(x_bytes * LINKS);
    chain.codes = gpu_alloc(m * k);
    chain.scales = gpu_alloc(groups * m4 * 4);
    chain.d = gpu_alloc(chain.d_bytes * LINKS);
    chain.want = gpu_alloc(chain.d_bytes * LINKS);
    for (int i = 0; i < LINKS; i++) {
        CUdeviceptr x = chain.x + (CUdeviceptr)(i * x_bytes);
        uint64_t seed = suite->seed + 6000 + (uint64_t)i;
        int bits = 7;
        void *arguments[] = {&x, &m, &k, &seed, &bits};
        gpu_launch_over(GPU_KERNEL_fill_activations, m * k, arguments);
        chain.quantize[i] = (struct cbn_fp8_quantize_args)CBN_FP8_QUANTIZE_ARGS_INIT;
        chain.quantize[i].scale_layout = CBN_LAYOUT_COL4;
        chain.quantize[i].x = (struct cbn_tensor){x, CBN_DTYPE_FP32, 2, {m, k}, {k, 1}};
        chain.quantize[i].codes = (struct cbn_tensor){chain.codes, CBN_DTYPE_E4M3, 2, {m, k}, {k, 1}};
        chain.quantize[i].scales = (struct cbn_tensor){chain.scales, CBN_DTYPE_FP32, 2, {m, groups}, {1, m4}};
        struct cbn_fp8_gemm_args *gemm = &chain.gemm[i];
        *gemm = (struct cbn_fp8_gemm_args)CBN_FP8_GEMM_ARGS_INIT;
        gemm->a_scale_layout = CBN_LAYOUT_COL4;
        gemm->a = chain.quantize[i].codes;
        gemm->a_scale = chain.quantize[i].scales;
        gemm->w = (struct cbn_tensor){problem->w, CBN_DTYPE_E4M3, 2, {CHAIN_N, k}, {k, 1}};
        gemm->w_scale = (struct cbn_tensor){problem->sw, CBN_DTYPE_FP32, 2, {CHAIN_N / 128, groups}, {groups, 1}};
        gemm->d = (struct cbn_tensor){
            chain.d + (CUdeviceptr)(i * chain.d_bytes), CBN_DTYPE_BF16, 2, {m, CHAIN_N}, {CHAIN_N, 1}};
    }
    *ret_chain = chain;
}

static void chain_done(struct chain *chain)
{
    gpu_free(&chain->x);
    gpu_free(&chain->codes);
    gpu_free(&chain->scales);
    gpu_free(&chain->d);
    gpu_free(&chain->want);
}

static void enqueue(struct chain *chain, struct tally *tally, uint32_t flags, CUstream stream)
{
    struct cbn_error err = {0};
    for (int i = 0; i < LINKS; i++) {
        chain->quantize[i].flags = flags;
        chain->gemm[i].flags = flags;
        if (!tally_call(tally, cbn_fp8_quantize(chain->runtime, &chain->quantize[i], stream, &err), &err, "quantize") ||
            !tally_call(tally, cbn_fp8_gemm(chain->runtime, &chain->gemm[i], stream, &err), &err, "gemm")) {
            return;
        }
    }
}

/* Adds to the counter; the blocking stream orders it against the null stream's kernels. */
static void compare(struct suite *suite, struct chain *chain)
{
    int64_t ld = CHAIN_N * 2, rows = chain->m * LINKS;
    int skip = -1;
    void *arguments[] = {&chain->d, &ld, &chain->want, &ld, &rows, &ld, &skip, &suite->counter};
    gpu_launch_over(GPU_KERNEL_count_unequal, rows * ld, arguments);
    gpu_fill(chain->d, POISON, chain->d_bytes * LINKS);
}

static void run_graph(struct suite *suite, struct tally *tally, struct chain *chain, CUstream stream)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    GPU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    enqueue(chain, tally, 0, stream);
    GPU(cuStreamEndCapture(stream, &graph));
    GPU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < CHAINS_GRAPH; i++) {
        GPU(cuGraphLaunch(exec, stream));
        compare(suite, chain);
        tally->count += 2 * LINKS;
    }
    GPU(cuCtxSynchronize());
    GPU(cuGraphExecDestroy(exec));
    GPU(cuGraphDestroy(graph));
}

static void run_chain(struct suite *suite, struct tally *tally, const struct problem *problem, int64_t m)
{
    struct chain chain;
    CUstream stream;
    chain_create(suite, problem, m, &chain);
    GPU(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    enqueue(&chain, tally, CBN_OP_NO_PDL, stream);
    GPU(cuCtxSynchronize());
    GPU(cuMemcpyDtoD(chain.want, chain.d, (size_t)(chain.d_bytes * LINKS)));
    gpu_fill(chain.d, POISON, chain.d_bytes * LINKS);
    count_reset(suite);
    for (int i = 0; i < CHAINS_DIRECT; i++) {
        enqueue(&chain, tally, 0, stream);
        compare(suite, &chain);
    }
    GPU(cuCtxSynchronize());
    run_graph(suite, tally, &chain, stream);
    tally_equal(tally, count_read(suite), "PDL on and off");
    GPU(cuStreamDestroy(stream));
    chain_done(&chain);
}

void case_pdl_chain(struct suite *suite, struct tally *tally)
{
    static const int64_t chain_ms[] = {8, 64, 300};
    struct problem_options options = {64, CHAIN_N, CHAIN_K, false, false, CBN_GRAN_BLOCK, 7, suite->seed + 6500};
    struct problem problem;
    if (!problem_create(suite, tally, &options, &problem)) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        run_chain(suite, tally, &problem, chain_ms[i]);
    }
    problem_done(&problem);
}
