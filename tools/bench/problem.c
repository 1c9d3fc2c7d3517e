/*
 * See problem.h.
 */
#include "problem.h"

#include <math.h>
#include <stdio.h>

#include "rows.h"

#define GUARD_ROWS 8               /* behind d: no subject may write there */
#define WORKSPACE_BYTES (64 << 20) /* what cuBLASLt is given; ours takes less */
#define ERROR_MAX 3e-3             /* rounding to bf16 alone is 1.7e-3 */
#define SCALE_ALIGN 256

static int64_t ceil_div(int64_t value, int64_t step)
{
    return (value + step - 1) / step;
}

static int64_t round_up(int64_t value, int64_t step)
{
    return ceil_div(value, step) * step;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void take_shape(struct problem *problem, struct shape shape)
{
    int64_t copies = ROTATED_BYTES / (shape.n * shape.k) + 1;
    problem->n = shape.n;
    problem->k = shape.k;
    problem->groups = shape.k / GROUP;
    problem->blocks = ceil_div(shape.n, GROUP);
    problem->copies = copies < 2 ? 2 : (int)copies;
    problem->w_bytes = shape.n * shape.k;
    problem->scale_bytes = round_up(problem->blocks * round_up(problem->groups, 4) * 4, SCALE_ALIGN);
}

bool problem_create(struct problem *problem, const struct shape *shapes, int count, int64_t max_m)
{
    int64_t n = 0, k = 0, w_bytes = 0, scale_bytes = 0;
    problem->rows = round_up(max_m, 4);
    for (int i = 0; i < count; i++) {
        take_shape(problem, shapes[i]);
        n = larger(n, shapes[i].n);
        k = larger(k, shapes[i].k);
        w_bytes = larger(w_bytes, problem->w_bytes * problem->copies);
        scale_bytes = larger(scale_bytes, problem->scale_bytes * problem->copies);
    }
    problem->x = device_alloc(problem->rows * k * 2);
    problem->codes = device_alloc(problem->rows * k);
    problem->scales = device_alloc(problem->rows * (k / GROUP) * 4);
    problem->w = device_alloc(w_bytes);
    problem->w_scale = device_alloc(scale_bytes);
    problem->w_scale_padded = device_alloc(scale_bytes);
    problem->d = device_alloc((problem->rows + GUARD_ROWS) * n * 2);
    problem->workspace = device_alloc(WORKSPACE_BYTES);
    problem->workspace_bytes = WORKSPACE_BYTES;
    problem->reference = device_alloc(problem->rows * n * 8);
    problem->sums = device_alloc(4 * 8);
    const struct bench_args codes = {.w = problem->w, .count = w_bytes / 8};
    return kernels_launch_over(problem->runtime, BENCH_KERNEL_fill_codes, codes.count, &codes);
}

static bool fill_scales(const struct problem *problem, uint64_t address, int64_t stride)
{
    const struct bench_args scales = {.w_scale = address,
                                      .n = problem->blocks,
                                      .k = problem->groups,
                                      .w_scale_stride = stride,
                                      .count = problem->copies,
                                      .copy_stride = problem->scale_bytes / 4};
    device_fill(address, 0xFF, problem->scale_bytes * problem->copies); /* padding is NaN */
    return kernels_launch_over(problem->runtime, BENCH_KERNEL_fill_scales, scales.count * scales.n * scales.k, &scales);
}

/* Of all rows: those of a smaller M are its first. */
static bool multiply_reference(const struct problem *problem)
{
    const struct bench_args args = {.a = problem->codes,
                                    .a_scale = problem->scales,
                                    .w = problem->w,
                                    .w_scale = problem->w_scale,
                                    .reference = problem->reference,
                                    .m = problem->rows,
                                    .n = problem->n,
                                    .k = problem->k,
                                    .a_scale_stride = problem->rows,
                                    .w_scale_stride = problem->groups};
    /* A warp takes eight rows of A, a block has eight warps. */
    return kernels_launch(problem->runtime, BENCH_KERNEL_multiply, ceil_div(problem->n * ceil_div(problem->rows, 8), 8),
                          0, false, &args);
}

bool problem_set_shape(struct problem *problem, struct shape shape)
{
    take_shape(problem, shape);
    const struct bench_args activations = {.a = problem->x, .m = problem->rows, .k = shape.k};
    return fill_scales(problem, problem->w_scale, problem->groups) &&
           fill_scales(problem, problem->w_scale_padded, round_up(problem->groups, 4)) &&
           kernels_launch_over(problem->runtime, BENCH_KERNEL_fill_activations, problem->rows * shape.k,
                               &activations) &&
           problem_set_m(problem, problem->rows) && multiply_reference(problem);
}

bool problem_set_m(struct problem *problem, int64_t m)
{
    int64_t rows = round_up(m, 4);
    struct cbn_fp8_quantize_args args = CBN_FP8_QUANTIZE_ARGS_INIT;
    struct cbn_error err = {0};
    args.flags = CBN_OP_NO_PDL;
    args.scale_layout = CBN_LAYOUT_COL4;
    args.x = (struct cbn_tensor){problem->x, CBN_DTYPE_BF16, 2, {rows, problem->k}, {problem->k, 1}};
    args.codes = (struct cbn_tensor){problem->codes, CBN_DTYPE_E4M3, 2, {rows, problem->k}, {problem->k, 1}};
    args.scales = (struct cbn_tensor){problem->scales, CBN_DTYPE_FP32, 2, {rows, problem->groups}, {1, rows}};
    problem->m = m;
    if (cbn_fp8_quantize(problem->runtime, &args, device.stream, &err) == CBN_STATUS_OK)
        return true;
    fprintf(stderr, "gemm_bench: fp8_quantize: %s\n", err.message);
    return false;
}

int problem_copy(const struct problem *problem, int index)
{
    return problem->copies - 1 - index % problem->copies;
}

int64_t problem_bytes(const struct problem *problem, uint32_t in)
{
    int64_t a_bytes = in == CBN_DTYPE_E4M3 ? problem->k + 4 * problem->groups : 2 * problem->k;
    return problem->m * (a_bytes + 2 * problem->n) + problem->n * problem->k + 4 * problem->blocks * problem->groups;
}

/* ---- checking ---- */

static void poison(const struct problem *problem, int64_t rows)
{
    device_fill(problem->d, 0xFF, (rows + GUARD_ROWS) * problem->n * 2);
}

/* norm(d - reference) / norm(reference); NaN where an element is not finite or one behind the rows was touched. */
static double read_error(const struct problem *problem, int64_t rows)
{
    double sums[4] = {NAN, NAN, NAN, NAN};
    const struct bench_args args = {.d = problem->d,
                                    .reference = problem->reference,
                                    .sums = problem->sums,
                                    .m = rows,
                                    .n = problem->n,
                                    .count = GUARD_ROWS * problem->n};
    device_fill(problem->sums, 0, sizeof(sums));
    if (!kernels_launch_over(problem->runtime, BENCH_KERNEL_compare, rows * problem->n, &args))
        return NAN;
    MUST(cuStreamSynchronize(device.stream));
    MUST(cuMemcpyDtoH_v2(sums, problem->sums, sizeof(sums)));
    return sums[2] > 0.0 || sums[3] > 0.0 ? NAN : sqrt(sums[0] / sums[1]);
}

static bool is_right(double error)
{
    return error < ERROR_MAX; /* false for NaN */
}

/* The last calls of a chain, as a graph has them: they overlap where they may. */
static double first_error(const struct problem *problem, const struct subject *subject)
{
    poison(problem, subject->rows);
    for (int i = problem->copies > 3 ? problem->copies - 3 : 0; i < problem->copies; i++)
        if (!subject->launch(subject->user, i))
            return NAN;
    return read_error(problem, subject->rows);
}

void problem_add_failure(const struct problem *problem, const char *peer, double error, const char *why,
                         const char *more)
{
    char notes[ROW_NOTES_BYTES];
    (void)snprintf(notes, sizeof(notes), "FAILED %s; %s", why, more);
    fprintf(stderr, "gemm_bench: %s M=%d %dx%d: error %.2e, %s\n", peer, (int)problem->m, (int)problem->n,
            (int)problem->k, error, notes);
    rows_add(&(struct row){
        .peer = peer, .op = "gemm", .m = problem->m, .n = problem->n, .k = problem->k, .error = error, .notes = notes});
}

bool problem_measure(const struct problem *problem, const struct subject *subject)
{
    struct device_shape shape = {0};
    char notes[ROW_NOTES_BYTES];
    double error = first_error(problem, subject);
    if (!is_right(error)) {
        problem_add_failure(problem, subject->peer, error, "before timing", subject->notes);
        return false;
    }
    poison(problem, subject->rows);
    double us = device_time(subject->launch, subject->user, problem->copies, problem->replays, &shape);
    error = us > 0.0 ? read_error(problem, subject->rows) : NAN;
    if (!is_right(error)) {
        problem_add_failure(problem, subject->peer, error, "while timing", subject->notes);
        return false;
    }
    (void)snprintf(notes, sizeof(notes), "%s split=%u grid=%ux%u threads=%u shared=%u launches=%d programmatic=%d%%",
                   subject->notes, shape.cluster, shape.grid[0], shape.grid[1], shape.threads, shape.shared_bytes,
                   shape.kernels, shape.programmatic);
    rows_add(&(struct row){.peer = subject->peer,
                           .op = "gemm",
                           .m = problem->m,
                           .n = problem->n,
                           .k = problem->k,
                           .us = us,
                           .bytes = (double)subject->bytes,
                           .error = error,
                           .notes = notes});
    return true;
}
