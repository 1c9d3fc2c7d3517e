/*
 * Operands and their fp64 answer, all made on the device.
 */
#include "gemm.h"

#include <string.h>

static int exponent_of(int64_t value)
{
    int exponent = 0;
    while (value > 1) {
        value /= 2;
        exponent++;
    }
    return exponent;
}

static void fill_operands(struct problem *problem, const struct problem_options *options, int64_t scale_rows)
{
    int64_t codes = problem->n * problem->k;
    uint64_t seed = options->seed, bias_seed = seed + 4;
    int bits = options->mantissa_bits, pow2 = options->w_pow2;
    /* Random codes have a root mean square of about 2^7, x of about 2: results are of about 1. */
    int base = -8 - exponent_of(problem->k) / 2;
    void *w[] = {&problem->w, &codes, &seed};
    gpu_launch_over(GPU_KERNEL_fill_codes, codes, w);
    seed += 1;
    void *x[] = {&problem->x, &problem->m, &problem->k, &seed, &bits};
    gpu_launch_over(GPU_KERNEL_fill_activations, problem->m * problem->k, x);
    seed += 2;
    void *sw[] = {&problem->sw, &scale_rows, &problem->groups, &seed, &pow2, &base};
    gpu_launch_over(GPU_KERNEL_fill_weight_scales, scale_rows * problem->groups, sw);
    void *bias[] = {&problem->bias, &problem->n, &bias_seed};
    gpu_launch_over(GPU_KERNEL_fill_bias, problem->n, bias);
}

bool problem_quantize(struct suite *suite, struct tally *tally, struct problem *problem)
{
    struct cbn_fp8_quantize_args args = CBN_FP8_QUANTIZE_ARGS_INIT;
    struct cbn_error err = {0};
    int64_t m = problem->m, k = problem->k, groups = problem->groups;
    if (k == 0) {
        return true;
    }
    args.scale_layout = CBN_LAYOUT_ROW;
    args.flags = problem->a_pow2 ? CBN_OP_POW2 : 0;
    args.x = (struct cbn_tensor){problem->x, CBN_DTYPE_FP32, 2, {m, k}, {k, 1}};
    args.codes = (struct cbn_tensor){problem->codes, CBN_DTYPE_E4M3, 2, {m, k}, {k, 1}};
    args.scales = (struct cbn_tensor){problem->sa, CBN_DTYPE_FP32, 2, {m, groups}, {groups, 1}};
    int32_t status = cbn_fp8_quantize(suite->runtimes[RUNTIME_ALL], &args, NULL, &err);
    if (status != CBN_STATUS_OK) {
        tally_fault(tally, "operands of K=%lld: %s", (long long)k, err.message);
    }
    return status == CBN_STATUS_OK;
}

void problem_solve(struct problem *problem)
{
    int64_t per_scale = problem->gran == CBN_GRAN_BLOCK ? 128 : 1;
    void *arguments[] = {&problem->codes, &problem->sa, &problem->w, &problem->sw,  &problem->m,
                         &problem->n,     &problem->k,  &per_scale,  &problem->ref, &problem->absref};
    gpu_launch(GPU_KERNEL_oracle_product, ceil_div(problem->n, 64), ceil_div(problem->m, 64), arguments);
}

bool problem_create(struct suite *suite, struct tally *tally, const struct problem_options *options,
                    struct problem *ret_problem)
{
    int64_t m = options->m, n = options->n, k = options->k, groups = ceil_div(k, CBN_GROUP_SIZE);
    int64_t scale_rows = options->gran == CBN_GRAN_BLOCK ? ceil_div(n, 128) : n;
    *ret_problem = (struct problem){
        .m = m,
        .n = n,
        .k = k,
        .groups = groups,
        .a_pow2 = options->a_pow2,
        .w_pow2 = options->w_pow2,
        .gran = options->gran,
        .x = gpu_alloc(m * k * 4),
        .codes = gpu_alloc(m * k),
        .sa = gpu_alloc(m * groups * 4),
        .w = gpu_alloc(n * k),
        .sw = gpu_alloc(scale_rows * groups * 4),
        .bias = gpu_alloc(n * 4),
        .ref = gpu_alloc(m * n * 8),
        .absref = gpu_alloc(m * n * 8),
    };
    fill_operands(ret_problem, options, scale_rows);
    if (!problem_quantize(suite, tally, ret_problem)) {
        problem_done(ret_problem);
        return false;
    }
    problem_solve(ret_problem);
    GPU(cuCtxSynchronize());
    return true;
}

void problem_done(struct problem *problem)
{
    CUdeviceptr *buffers[] = {&problem->x,  &problem->codes, &problem->sa,  &problem->w,
                              &problem->sw, &problem->bias,  &problem->ref, &problem->absref};
    GPU(cuCtxSynchronize());
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++) {
        gpu_free(buffers[i]);
    }
}
