/*
 * Products at the edges of the numbers: rows of zeros and of denormals, the ends of UE8M0, words of packed scales that
 * are not full.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fp8.h"
#include "gemm.h"

#define N 384
#define BLOCK 128

/* ---- packed words of one, two, three and five groups ---- */

#define PACKED_CALLS 8

static struct gemm_call packed_call(int i)
{
    struct gemm_call call = gemm_call_plain(i % 2 ? 33 : 7);
    call.form.in = CBN_DTYPE_E4M3;
    call.form.layout = i / 2 % 2 ? CBN_LAYOUT_PACKED_COL : CBN_LAYOUT_PACKED_ROW;
    call.form.w_format = CBN_SCALE_UE8M0;
    call.runtime = i / 4 ? RUNTIME_GENERIC : RUNTIME_ALL;
    return call;
}

static void run_packed(struct suite *suite, struct tally *tally, int64_t k)
{
    struct problem_options options = {33, N, k, true, true, CBN_GRAN_BLOCK, 7, suite->seed + 5000 + (uint64_t)k};
    struct problem problem;
    if (!problem_create(suite, tally, &options, &problem)) {
        return;
    }
    for (int i = 0; i < PACKED_CALLS; i++) {
        struct gemm_call call = packed_call(i);
        (void)gemm_run(suite, tally, &problem, &call);
    }
    problem_done(&problem);
}

/* ---- rows that quantise to nothing ---- */

#define ZERO_ROWS 3

/* +0, -0, and denormals of bf16 and fp32: the scale is that of eps, every code a zero of either sign. */
static bool zero_rows(struct suite *suite, struct tally *tally, struct problem *problem)
{
    static const float values[ZERO_ROWS] = {0.0f, -0.0f, 0x1p-133f};
    float *row = calloc((size_t)problem->k, sizeof(*row));
    for (int64_t r = 0; row && r < ZERO_ROWS; r++) {
        for (int64_t i = 0; i < problem->k; i++) {
            row[i] = values[r];
        }
        gpu_write(problem->x + (CUdeviceptr)(r * problem->k * 4), row, problem->k * 4);
    }
    free(row);
    if (!row || !problem_quantize(suite, tally, problem)) {
        return false;
    }
    problem_solve(problem);
    return true;
}

static void run_zeros(struct suite *suite, struct tally *tally, const struct problem *problem, uint32_t in, int64_t m)
{
    struct gemm_call call = gemm_call_plain(m);
    uint16_t values[ZERO_ROWS][N];
    call.form.in = in;
    call.form.layout = in == CBN_DTYPE_E4M3 ? CBN_LAYOUT_COL4 : 0;
    struct gemm_output out = gemm_run(suite, tally, problem, &call);
    if (!out.kernel) {
        return;
    }
    for (int64_t r = 0; r < ZERO_ROWS; r++) {
        gpu_read(values[r], out.data + (CUdeviceptr)(r * out.ld_bytes), N * 2);
        for (int i = 0; i < N; i++) {
            if (values[r][i] & 0x7FFF) {
                tally_fault(tally, "row %lld of zeros gives 0x%04X in column %d", (long long)r, values[r][i], i);
                break;
            }
        }
    }
}

/* ---- weight exponents 0 and 255 ---- */

/* Block 0 of W is scaled by 0.0, block 1 in its first group by infinity, block 2 as it was. */
static void set_ends(const struct problem *problem)
{
    float *scales = calloc((size_t)(2 * problem->groups), sizeof(*scales));
    if (!scales) {
        abort();
    }
    gpu_read(scales, problem->sw, 2 * problem->groups * 4);
    memset(scales, 0, (size_t)problem->groups * 4);
    scales[problem->groups] = INFINITY;
    gpu_write(problem->sw, scales, 2 * problem->groups * 4);
    free(scales);
}

#define ENDS_CALLS 6

static struct gemm_call ends_call(int i)
{
    static const int64_t ms[] = {5, 20, 40};
    struct gemm_call call = gemm_call_plain(ms[i % 3]);
    call.form.w_format = i / 3 ? CBN_SCALE_UE8M0 : CBN_SCALE_FP32;
    return call;
}

static void run_ends(struct suite *suite, struct tally *tally, const struct problem *problem, struct gemm_call call)
{
    struct cbn_fp8_gemm_args args;
    struct cbn_error err = {0};
    uint16_t row[N];
    gemm_place(suite, problem, &call, &args);
    if (!tally_call(tally, cbn_fp8_gemm(suite->runtimes[RUNTIME_ALL], &args, NULL, &err), &err,
                    "exponents 0 and 255")) {
        return;
    }
    GPU(cuCtxSynchronize());
    for (int64_t r = 0; r < call.m; r++) {
        gpu_read(row, args.d.data + (CUdeviceptr)(r * args.d.strides[0] * 2), N * 2);
        for (int i = 0; i < N; i++) {
            float value = cbn__bf16_decode(row[i]);
            bool right = i < BLOCK ? value == 0.0f : i < 2 * BLOCK ? !isfinite(value) : isfinite(value);
            if (!right) {
                tally_fault(tally, "exponents 0 and 255: row %lld, column %d is %g", (long long)r, i, (double)value);
                return;
            }
        }
    }
}

void case_gemm_edges(struct suite *suite, struct tally *tally)
{
    static const int64_t packed_ks[] = {128, 256, 384, 640};
    static const uint32_t ins[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32, CBN_DTYPE_E4M3};
    static const int64_t ms[] = {5, 20, 40};
    struct problem_options options = {40, N, 640, false, true, CBN_GRAN_BLOCK, 7, suite->seed + 6000};
    struct problem problem;
    for (int i = 0; i < 4; i++) {
        run_packed(suite, tally, packed_ks[i]);
    }
    if (!problem_create(suite, tally, &options, &problem)) {
        return;
    }
    if (zero_rows(suite, tally, &problem)) {
        for (int i = 0; i < 12; i++) {
            run_zeros(suite, tally, &problem, ins[i % 4], ms[i / 4]);
        }
    }
    set_ends(&problem);
    for (int i = 0; i < ENDS_CALLS; i++) {
        run_ends(suite, tally, &problem, ends_call(i));
    }
    problem_done(&problem);
}

void gemm_edges_calls(const struct suite *suite, call_fn add, void *user)
{
    for (int i = 0; i < PACKED_CALLS; i++) {
        struct gemm_call call = packed_call(i);
        gemm_add_call(suite, N, 640, &call, add, user);
    }
    for (int i = 0; i < ENDS_CALLS; i++) {
        struct gemm_call call = ends_call(i);
        gemm_add_call(suite, N, 640, &call, add, user);
    }
}
