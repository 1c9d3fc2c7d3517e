/*
 * Products: every pair of codes exactly, rows that hold garbage, m_valid.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fp8.h"
#include "gemm.h"

#define CODES 256

/* ---- every code times every code ---- */

static uint8_t code_at(int64_t i)
{
    return (i & 0x7F) == 0x7F ? (uint8_t)(i ^ 1) : (uint8_t)i;
}

/* Row m of A holds code m in one column, row n of W holds code n in all: D[m,n] is one exact product, in bf16 too. */
static void fill_codes(struct problem *problem)
{
    int64_t k = problem->k;
    uint8_t *a = calloc(CODES, (size_t)k), *w = calloc(CODES, (size_t)k);
    float ones[CODES * 2];
    if (!a || !w) {
        abort();
    }
    for (int64_t i = 0; i < CODES; i++) {
        a[i * k + (i * 37 + 11) % k] = code_at(i);
        memset(w + i * k, code_at(i), (size_t)k);
    }
    for (int i = 0; i < CODES * 2; i++) {
        ones[i] = 1.0f;
    }
    gpu_write(problem->codes, a, CODES * k);
    gpu_write(problem->w, w, CODES * k);
    gpu_write(problem->sa, ones, CODES * problem->groups * 4);
    gpu_write(problem->sw, ones, 2 * problem->groups * 4);
    free(a);
    free(w);
}

static void run_codes(struct suite *suite, struct tally *tally, const struct problem *whole, int64_t first,
                      int64_t rows, enum suite_runtime runtime, uint32_t out)
{
    struct problem part = *whole;
    struct gemm_call call = gemm_call_plain(rows);
    part.codes += (CUdeviceptr)(first * whole->k);
    part.sa += (CUdeviceptr)(first * whole->groups * 4);
    part.ref += (CUdeviceptr)(first * whole->n * 8);
    part.absref += (CUdeviceptr)(first * whole->n * 8);
    call.runtime = runtime;
    call.form.in = CBN_DTYPE_E4M3, call.form.layout = CBN_LAYOUT_ROW, call.form.out = out;
    call.tolerance = -1;
    (void)gemm_run(suite, tally, &part, &call);
}

void case_gemm_codes(struct suite *suite, struct tally *tally)
{
    struct problem_options options = {CODES, CODES, 256, true, true, CBN_GRAN_BLOCK, 7, suite->seed};
    struct problem problem;
    if (!problem_create(suite, tally, &options, &problem)) {
        return;
    }
    fill_codes(&problem);
    problem_solve(&problem);
    for (int r = 0; r < RUNTIME_FUSED; r++) { /* which takes no codes */
        run_codes(suite, tally, &problem, 0, CODES, (enum suite_runtime)r, CBN_DTYPE_BF16);
        run_codes(suite, tally, &problem, 0, CODES, (enum suite_runtime)r, CBN_DTYPE_FP32);
        for (int64_t first = 0; first < CODES; first += 16) {
            run_codes(suite, tally, &problem, first, 16, (enum suite_runtime)r, CBN_DTYPE_BF16);
        }
    }
    problem_done(&problem);
}

/* ---- rows that hold garbage, rows beyond m_valid ---- */

static void run_bad_row(struct suite *suite, struct tally *tally, const struct problem *problem, uint32_t in, int64_t m,
                        uint32_t turn)
{
    struct gemm_call call = gemm_call_plain(m);
    call.form.in = in;
    call.form.layout = in == CBN_DTYPE_E4M3 ? CBN_LAYOUT_ROW : 0;
    call.runtime = turn % 3 == 2 ? RUNTIME_GENERIC : RUNTIME_ALL;
    struct gemm_output clean = gemm_run(suite, tally, problem, &call);
    call.slot = GEMM_SLOT_D1;
    call.has_bad_row = true;
    call.bad_row = (int64_t)turn % m;
    call.bad_byte = turn % 2 ? 0xFF : 0x7F; /* NaN; 3.39e38 in bf16 and fp32, NaN in fp16 and e4m3 */
    struct gemm_output dirty = gemm_run(suite, tally, problem, &call);
    if (clean.kernel && dirty.kernel) {
        tally_equal(tally, gemm_unequal(suite, &clean, &dirty, m, call.bad_row), "a row's garbage reached another row");
    }
}

static void run_valid(struct suite *suite, struct tally *tally, const struct problem *problem, uint32_t in, int64_t m,
                      uint32_t turn)
{
    static const int64_t valid[] = {0, 1, 5, 1000, -1};
    struct gemm_call call = gemm_call_plain(m);
    call.form.in = in;
    call.form.layout = in == CBN_DTYPE_E4M3 ? CBN_LAYOUT_ROW : 0;
    call.runtime = turn % 3 == 1 ? RUNTIME_GENERIC : RUNTIME_ALL;
    for (int i = 0; i < 5; i++) {
        call.has_m_valid = true;
        call.m_valid = valid[i];
        (void)gemm_run(suite, tally, problem, &call);
    }
    call.m_valid = m - 1; /* the last row may hold what it likes */
    call.has_bad_row = true;
    call.bad_row = m - 1;
    call.bad_byte = 0xFF;
    (void)gemm_run(suite, tally, problem, &call);
}

/* A NaN in row `bad` under propagate: that row is NaN throughout, the others are as they were. */
static void run_propagate(struct suite *suite, struct tally *tally, const struct problem *problem, int64_t m)
{
    struct gemm_call call = gemm_call_plain(m);
    uint16_t *row = calloc((size_t)problem->n, sizeof(*row));
    struct gemm_output clean = gemm_run(suite, tally, problem, &call);
    call.slot = GEMM_SLOT_D1;
    call.form.propagate = true;
    call.has_bad_row = true;
    call.bad_row = m / 2;
    call.bad_byte = 0xFF;
    struct gemm_output dirty = gemm_run(suite, tally, problem, &call);
    if (row && clean.kernel && dirty.kernel) {
        tally_equal(tally, gemm_unequal(suite, &clean, &dirty, m, call.bad_row), "propagate changed another row");
        gpu_read(row, dirty.data + (CUdeviceptr)(call.bad_row * dirty.ld_bytes), problem->n * 2);
        for (int64_t i = 0; i < problem->n; i++) {
            if (!isnan(cbn__bf16_decode(row[i]))) {
                tally_fault(tally, "propagate: column %lld of a NaN row is 0x%04X", (long long)i, row[i]);
                break;
            }
        }
    }
    free(row);
}

static void run_empty(struct suite *suite, struct tally *tally, int64_t m, int64_t n)
{
    struct cbn_fp8_gemm_args args = CBN_FP8_GEMM_ARGS_INIT;
    struct cbn_stats before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
    struct cbn_error err = {0};
    args.a = (struct cbn_tensor){.dtype = CBN_DTYPE_BF16, .rank = 2, .extents = {m, 256}};
    args.w = (struct cbn_tensor){.dtype = CBN_DTYPE_E4M3, .rank = 2, .extents = {n, 256}};
    args.d = (struct cbn_tensor){.dtype = CBN_DTYPE_BF16, .rank = 2, .extents = {m, n}};
    cbn_runtime_stats(suite->runtimes[RUNTIME_ALL], &before);
    (void)tally_call(tally, cbn_fp8_gemm(suite->runtimes[RUNTIME_ALL], &args, NULL, &err), &err, "M or N = 0");
    cbn_runtime_stats(suite->runtimes[RUNTIME_ALL], &after);
    if (after.launches != before.launches || after.noops != before.noops + 1) {
        tally_fault(tally, "M=%lld N=%lld launched something", (long long)m, (long long)n);
    }
}

/* The default profile on both sides of every bucket, aligned and not, on every candidate. */
static void run_tiles(struct suite *suite, struct tally *tally, const struct problem *problem)
{
    static const int64_t tile_ms[] = {1, 8, 9, 16, 17, 24, 25, 31, 32, 33, 48, 49, 64, 65, 128, 129};
    static const enum suite_runtime runtimes[] = {RUNTIME_ALL, RUNTIME_WGMMA, RUNTIME_GENERIC};
    for (uint32_t i = 0; i < 16 * 6; i++) {
        struct gemm_call call = gemm_call_plain(tile_ms[i / 6]);
        call.runtime = runtimes[i % 3];
        call.lda_pad = i / 3 % 2;
        (void)gemm_run(suite, tally, problem, &call);
    }
}

void case_gemm_rows(struct suite *suite, struct tally *tally)
{
    static const uint32_t ins[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP32, CBN_DTYPE_FP16, CBN_DTYPE_E4M3};
    static const int64_t bad_ms[] = {20, 40, 7, 130};
    struct problem_options options = {130, 384, 640, false, false, CBN_GRAN_BLOCK, 7, suite->seed + 3000};
    struct problem problem;
    run_empty(suite, tally, 0, 256);
    run_empty(suite, tally, 16, 0);
    if (!problem_create(suite, tally, &options, &problem)) {
        return;
    }
    run_tiles(suite, tally, &problem);
    for (uint32_t i = 0; i < 16; i++) {
        run_bad_row(suite, tally, &problem, ins[i % 4], bad_ms[i / 4], i);
        run_valid(suite, tally, &problem, ins[i % 4], bad_ms[i / 4], i);
    }
    for (int i = 0; i < 3; i++) {
        run_propagate(suite, tally, &problem, bad_ms[i]);
    }
    problem_done(&problem);
}
