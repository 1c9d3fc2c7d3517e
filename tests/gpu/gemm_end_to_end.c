/*
 * The error of a whole FP8 layer against its unquantised operands: what quantising both sides costs, not a kernel's
 * fault. Weights are quantised here, 128 x 128, by the CPU reference.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fp8.h"
#include "gemm.h"

#define LAYER_N 7168
#define LAYER_K 2048
#define LAYER_M 64
#define END_TO_END_MAX 0.06 /* each side's rounding is about 0.026 */

struct layer {
    uint64_t seed;
    float *w;       /* [N,K] */
    uint8_t *codes; /* [N,K] */
    float *scales;  /* [N/128,K/128] */
};

/* About normal: twelve uniform numbers. */
static float draw_normal(uint64_t *state)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
        sum += (double)(next_random(state) >> 11) * 0x1p-53;
    }
    return (float)sum;
}

static void make_block(struct layer *layer, int64_t block_row, int64_t block_column)
{
    int64_t columns = LAYER_K / 128;
    uint64_t state = layer->seed + (uint64_t)(block_row * columns + block_column) * 7919;
    float absmax = 0.0f;
    for (int64_t i = 0; i < 128 * 128; i++) {
        float *w = layer->w + (block_row * 128 + i / 128) * LAYER_K + block_column * 128 + i % 128;
        *w = draw_normal(&state) * 0.02f;
        absmax = fmaxf(absmax, fabsf(*w));
    }
    float scale = absmax / 448.0f;
    layer->scales[block_row * columns + block_column] = scale;
    for (int64_t i = 0; i < 128 * 128; i++) {
        int64_t at = (block_row * 128 + i / 128) * LAYER_K + block_column * 128 + i % 128;
        layer->codes[at] = cbn__e4m3_encode(layer->w[at] / scale);
    }
}

static void make_blocks(void *user, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        for (int64_t column = 0; column < LAYER_K / 128; column++) {
            make_block(user, row, column);
        }
    }
}

static void load_layer(struct suite *suite, struct layer *layer, struct problem *problem)
{
    uint64_t state = suite->seed + 17;
    float *x = malloc((size_t)LAYER_M * LAYER_K * sizeof(*x));
    CUdeviceptr w = gpu_alloc((int64_t)LAYER_N * LAYER_K * 4);
    int64_t m = LAYER_M, n = LAYER_N, k = LAYER_K;
    parallel_for(suite->threads, LAYER_N / 128, make_blocks, layer);
    for (int64_t i = 0; x && i < m * k; i++) {
        x[i] = cbn__bf16_decode(cbn__bf16_encode(draw_normal(&state)));
    }
    gpu_write(problem->x, x, m * k * 4);
    gpu_write(problem->w, layer->codes, n * k);
    gpu_write(problem->sw, layer->scales, n / 128 * (k / 128) * 4);
    gpu_write(w, layer->w, n * k * 4);
    void *arguments[] = {&problem->x, &w, &m, &n, &k, &problem->ref, &problem->absref};
    gpu_launch_over(GPU_KERNEL_oracle_plain, m * n, arguments);
    GPU(cuCtxSynchronize());
    gpu_free(&w);
    free(x);
}

void case_gemm_end_to_end(struct suite *suite, struct tally *tally)
{
    struct problem_options options = {LAYER_M, LAYER_N, LAYER_K, false, false, CBN_GRAN_BLOCK, 7, suite->seed};
    struct layer layer = {suite->seed, malloc(sizeof(float) * LAYER_N * LAYER_K), malloc((size_t)LAYER_N * LAYER_K),
                          malloc(sizeof(float) * (LAYER_N / 128) * (LAYER_K / 128))};
    struct problem problem;
    if (layer.w && layer.codes && layer.scales && problem_create(suite, tally, &options, &problem)) {
        load_layer(suite, &layer, &problem);
        struct gemm_call call = gemm_call_plain(LAYER_M);
        call.tolerance = END_TO_END_MAX;
        (void)gemm_run(suite, tally, &problem, &call);
        problem_done(&problem);
        suite->end_to_end_error = tally->max_error;
        (void)snprintf(suite->end_to_end_text, sizeof(suite->end_to_end_text),
                       "worst row of bf16 M=%d N=%d K=%d, normal x and w, both quantised, against fp64 of neither",
                       LAYER_M, LAYER_N, LAYER_K);
    }
    free(layer.w);
    free(layer.codes);
    free(layer.scales);
}
