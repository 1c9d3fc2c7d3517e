/*
 * One checked product. Inputs lie in NaN, outputs in poison; what is outside D's rows and columns must stay poison.
 */
#include "gemm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/tensor.h"
#include "calls.h"
#include "quantize.h"

/* After the slots of quantize.c. */
enum {
    SLOT_A = 4,
    SLOT_SA,
    SLOT_W,
    SLOT_SW,
    SLOT_BIAS,
    SLOT_VALID,
    SLOT_ERROR,
    SLOT_WORK,
    SLOT_D /* GEMM_SLOT_COUNT of them */
};
_Static_assert(SLOT_D + GEMM_SLOT_COUNT <= SCRATCH_COUNT, "slots");

#define POISON_ROWS 8 /* rows of NaN after the last, besides the guard */

/* ---- placement ---- */

/* Elements from the first to the last; column-major storage whose columns are padded to 4 ends in a whole column. */
static int64_t span_of(const struct cbn_tensor *tensor)
{
    int64_t rows = tensor->extents[0], columns = tensor->extents[1];
    if (rows < 1 || columns < 1) {
        return 0;
    }
    if (tensor->strides[0] == 1 && tensor->strides[1] % 4 == 0) {
        rows = round_up(rows, 4);
    }
    return 1 + (rows - 1) * tensor->strides[0] + (columns - 1) * tensor->strides[1];
}

/* A poisoned buffer for the tensor, `offset` elements after an aligned address, `rows` more rows of poison after it. */
static CUdeviceptr place_buffer(struct suite *suite, int slot, struct cbn_tensor *tensor, int64_t offset, int64_t rows,
                                uint8_t poison, int64_t *ret_total)
{
    int64_t bytes = dtype_bytes(tensor->dtype), span = span_of(tensor);
    int64_t after = suite->guard ? suite->guard + rows * tensor->strides[0] * bytes : 0;
    int64_t start = suite->guard + offset * bytes;
    *ret_total = start + span * bytes + after;
    CUdeviceptr base = suite_scratch(suite, slot, *ret_total);
    gpu_fill(base, poison, *ret_total);
    tensor->data = base + (CUdeviceptr)start;
    return base;
}

static void place_values(CUdeviceptr source, int64_t source_ld, const struct cbn_tensor *target)
{
    int64_t rows = target->extents[0], columns = target->extents[1], ld = target->strides[0];
    int dtype = (int)target->dtype;
    CUdeviceptr data = target->data;
    void *arguments[] = {&source, &source_ld, &data, &ld, &rows, &columns, &dtype};
    gpu_launch_over(GPU_KERNEL_place_values, rows * columns, arguments);
}

static void place_bytes(CUdeviceptr source, int64_t source_ld, const struct cbn_tensor *target)
{
    int64_t rows = target->extents[0], columns = target->extents[1], ld = target->strides[0];
    CUdeviceptr data = target->data;
    void *arguments[] = {&source, &source_ld, &data, &ld, &rows, &columns};
    gpu_launch_over(GPU_KERNEL_place_bytes, rows * columns, arguments);
}

static void place_scales(CUdeviceptr source, const struct cbn_tensor *target, int64_t groups)
{
    int64_t rows = target->extents[0];
    CUdeviceptr data = target->data;
    int64_t row_stride = target->strides[0], column_stride = target->strides[1];
    int packed = target->dtype == CBN_DTYPE_INT32;
    void *arguments[] = {&source, &data, &rows, &groups, &row_stride, &column_stride, &packed};
    gpu_launch_over(GPU_KERNEL_place_scales, rows * target->extents[1], arguments);
}

static void spoil_row(const struct gemm_call *call, const struct cbn_fp8_gemm_args *args)
{
    const struct cbn_tensor *a = &args->a, *scale = &args->a_scale;
    int64_t bytes = dtype_bytes(a->dtype);
    gpu_fill(a->data + (CUdeviceptr)(call->bad_row * a->strides[0] * bytes), call->bad_byte, a->extents[1] * bytes);
    for (int64_t g = 0; scale->data && g < scale->extents[1]; g++) {
        int64_t at = call->bad_row * scale->strides[0] + g * scale->strides[1];
        gpu_fill(scale->data + (CUdeviceptr)(at * 4), call->bad_byte, 4);
    }
}

static void place_activations(struct suite *suite, const struct problem *problem, const struct gemm_call *call,
                              struct cbn_fp8_gemm_args *args)
{
    const struct form *form = &call->form;
    int64_t total;
    args->a = (struct cbn_tensor){0, form->in, 2, {call->m, problem->k}, {problem->k + call->lda_pad, 1}};
    (void)place_buffer(suite, SLOT_A, &args->a, call->a_offset, POISON_ROWS, POISON_INPUT, &total);
    if (form->in != CBN_DTYPE_E4M3) {
        place_values(problem->x, problem->k, &args->a);
        return;
    }
    place_bytes(problem->codes, problem->k, &args->a);
    args->a_scale_layout = form->layout;
    quant_scale_tensor(call->m, 0, problem->k, form->layout, call->s_pad, &args->a_scale);
    (void)place_buffer(suite, SLOT_SA, &args->a_scale, 0, 1, POISON_INPUT, &total);
    place_scales(problem->sa, &args->a_scale, problem->groups);
}

static void place_weights(struct suite *suite, const struct problem *problem, const struct gemm_call *call,
                          struct cbn_fp8_gemm_args *args)
{
    int64_t rows = call->form.gran == CBN_GRAN_BLOCK ? ceil_div(problem->n, 128) : problem->n, total;
    bool packed = call->form.w_format == CBN_SCALE_UE8M0;
    int64_t columns = packed ? ceil_div(problem->groups, 4) : problem->groups;
    args->w = (struct cbn_tensor){problem->w, CBN_DTYPE_E4M3, 2, {problem->n, problem->k}, {problem->k, 1}};
    if (call->ldw_pad || call->w_offset) {
        args->w.strides[0] += call->ldw_pad;
        (void)place_buffer(suite, SLOT_W, &args->w, call->w_offset, POISON_ROWS, POISON_INPUT, &total);
        place_bytes(problem->w, problem->k, &args->w);
    }
    args->w_scale_gran = call->form.gran;
    args->w_scale = (struct cbn_tensor){.dtype = packed ? CBN_DTYPE_INT32 : CBN_DTYPE_FP32,
                                        .rank = 2,
                                        .extents = {rows, columns},
                                        .strides = {columns + call->s_pad, 1}};
    if (call->w_scale_columns) {
        args->w_scale.strides[0] = 1;
        args->w_scale.strides[1] = round_up(rows, 4) + call->s_pad;
    }
    (void)place_buffer(suite, SLOT_SW, &args->w_scale, 0, 1, POISON_INPUT, &total);
    place_scales(problem->sw, &args->w_scale, problem->groups);
}

static void place_bias(struct suite *suite, const struct problem *problem, const struct gemm_call *call,
                       struct cbn_fp8_gemm_args *args)
{
    int64_t total;
    if (call->form.bias == CBN_BIAS_NONE) {
        return;
    }
    struct cbn_tensor row = {.rank = 2, .extents = {1, problem->n}, .strides = {problem->n, 1}};
    row.dtype = call->form.bias == CBN_BIAS_FP32 ? CBN_DTYPE_FP32 : call->form.out;
    (void)place_buffer(suite, SLOT_BIAS, &row, 0, 0, POISON_INPUT, &total);
    place_values(problem->bias, problem->n, &row);
    args->bias = (struct cbn_tensor){row.data, row.dtype, 1, {problem->n}, {1}};
}

CUdeviceptr gemm_workspace(struct suite *suite, uint64_t bytes)
{
    if (!bytes) {
        return 0;
    }
    int64_t total = (int64_t)bytes + 2 * suite->guard;
    CUdeviceptr base = suite_scratch(suite, SLOT_WORK, total), workspace = base + (CUdeviceptr)suite->guard;
    gpu_fill(base, POISON, total);
    gpu_fill(workspace, POISON_INPUT, (int64_t)bytes);
    return workspace;
}

static void place_workspace(struct suite *suite, const struct gemm_call *call, struct cbn_fp8_gemm_args *args)
{
    uint64_t bytes = 0;
    struct cbn_error err = {0};
    if (cbn_fp8_gemm_workspace_bytes(suite->runtimes[call->runtime], args, &bytes, &err) == CBN_STATUS_OK) {
        args->workspace = gemm_workspace(suite, bytes);
        args->workspace_bytes = bytes;
    }
}

static void place_output(struct suite *suite, const struct problem *problem, const struct gemm_call *call,
                         struct cbn_tensor *ret_d, int64_t *ret_start, int64_t *ret_total)
{
    *ret_d = (struct cbn_tensor){0, call->form.out, 2, {call->m, problem->n}, {problem->n + call->ldd_pad, 1}};
    CUdeviceptr base =
        place_buffer(suite, SLOT_D + (int)call->slot, ret_d, call->d_offset, POISON_ROWS, POISON, ret_total);
    *ret_start = (int64_t)(ret_d->data - base);
}

void gemm_place(struct suite *suite, const struct problem *problem, const struct gemm_call *call,
                struct cbn_fp8_gemm_args *ret_args)
{
    const struct form *form = &call->form;
    int64_t start, total;
    *ret_args = (struct cbn_fp8_gemm_args)CBN_FP8_GEMM_ARGS_INIT;
    ret_args->flags =
        (form->no_pdl ? CBN_OP_NO_PDL : 0) | (form->propagate ? CBN_OP_PROPAGATE : 0) | (form->pow2 ? CBN_OP_POW2 : 0);
    ret_args->max_sms = call->max_sms;
    place_activations(suite, problem, call, ret_args);
    place_weights(suite, problem, call, ret_args);
    place_bias(suite, problem, call, ret_args);
    place_output(suite, problem, call, &ret_args->d, &start, &total);
    if (call->has_bad_row) {
        spoil_row(call, ret_args);
    }
    if (call->has_m_valid) {
        int32_t valid = (int32_t)call->m_valid;
        ret_args->m_valid = suite_scratch(suite, SLOT_VALID, 4);
        gpu_write(ret_args->m_valid, &valid, 4);
    }
    place_workspace(suite, call, ret_args);
}

/* ---- checks ---- */

void count_reset(struct suite *suite)
{
    gpu_fill(suite->counter, 0, 8);
}

uint64_t count_read(struct suite *suite)
{
    uint64_t count;
    gpu_read(&count, suite->counter, sizeof(count));
    return count;
}

static void launch_unequal(struct suite *suite, const struct gemm_output *a, const struct gemm_output *b, int64_t rows,
                           int64_t skip_row)
{
    int skip = (int)skip_row;
    CUdeviceptr da = a->data, db = b->data;
    int64_t a_ld = a->ld_bytes, b_ld = b->ld_bytes, row_bytes = a->row_bytes;
    void *arguments[] = {&da, &a_ld, &db, &b_ld, &rows, &row_bytes, &skip, &suite->counter};
    gpu_launch_over(GPU_KERNEL_count_unequal, rows * row_bytes, arguments);
}

void gemm_add_unequal(struct suite *suite, const struct gemm_output *a, const struct gemm_output *b, int64_t rows)
{
    launch_unequal(suite, a, b, rows, -1);
}

uint64_t gemm_unequal(struct suite *suite, const struct gemm_output *a, const struct gemm_output *b, int64_t rows,
                      int64_t skip_row)
{
    count_reset(suite);
    launch_unequal(suite, a, b, rows, skip_row);
    return count_read(suite);
}

/* The worst row; NaN when any row is. */
static double worst_row(struct suite *suite, const struct problem *problem, const struct gemm_call *call,
                        const struct cbn_tensor *d, int64_t rows)
{
    CUdeviceptr out = d->data, errors = suite_scratch(suite, SLOT_ERROR, rows * 8);
    CUdeviceptr bias = call->form.bias == CBN_BIAS_NONE ? 0 : problem->bias;
    int64_t ldd = d->strides[0], n = problem->n, k = problem->k;
    int dtype = (int)d->dtype;
    CUdeviceptr ref = problem->ref, absref = problem->absref;
    void *arguments[] = {&out, &ldd, &dtype, &ref, &absref, &bias, &n, &k, &errors};
    double worst = 0.0, *host = calloc((size_t)rows + 1, sizeof(*host));
    if (!host) {
        return NAN;
    }
    gpu_launch(GPU_KERNEL_row_error, rows, 1, arguments);
    gpu_read(host, errors, rows * 8);
    for (int64_t i = 0; i < rows; i++) {
        bool skipped = call->has_bad_row && i == call->bad_row;
        if (!skipped && !(host[i] <= worst)) {
            worst = host[i];
        }
        if (isnan(worst)) {
            break;
        }
    }
    free(host);
    return worst;
}

/* Bytes of [base, base + total) that are no longer poison, outside rows x row_bytes at start. */
static uint64_t count_touched(struct suite *suite, CUdeviceptr base, int64_t total, int64_t start, int64_t ld_bytes,
                              int64_t rows, int64_t row_bytes)
{
    int pattern = POISON;
    void *arguments[] = {&base, &total, &start, &ld_bytes, &rows, &row_bytes, &pattern, &suite->counter};
    count_reset(suite);
    gpu_launch_over(GPU_KERNEL_count_touched, total, arguments);
    return count_read(suite);
}

static uint64_t touched_outside(struct suite *suite, const struct cbn_tensor *d, int64_t offset, int64_t rows)
{
    int64_t bytes = dtype_bytes(d->dtype), start = suite->guard + offset * bytes;
    int64_t after = suite->guard ? suite->guard + POISON_ROWS * d->strides[0] * bytes : 0;
    int64_t total = start + span_of(d) * bytes + after;
    return count_touched(suite, d->data - (CUdeviceptr)start, total, start, d->strides[0] * bytes, rows,
                         d->extents[1] * bytes);
}

uint64_t gemm_workspace_touched(struct suite *suite, CUdeviceptr workspace, uint64_t bytes)
{
    int64_t inside = (int64_t)bytes, guard = suite->guard;
    if (!workspace || !guard) {
        return 0;
    }
    return count_touched(suite, workspace - (CUdeviceptr)guard, inside + 2 * guard, guard, inside, 1, inside);
}

static const char *note_kernel(struct suite *suite, const struct problem *problem, const struct gemm_call *call,
                               const struct cbn_fp8_gemm_args *args, int64_t *ret_order)
{
    struct cbn_query query;
    gemm_call_query(suite, problem->n, problem->k, call, &query);
    int64_t align = cbn__tensor_align(&args->d, cbn__tensor_align(&args->w, cbn__tensor_align(&args->a, 16)));
    *ret_order = call_sum_order(suite->runtimes[call->runtime], &query, align);
    return cover_note_gemm(suite, call->runtime, &query, align);
}

bool gemm_is_swap_ab(const char *kernel)
{
    return kernel && strncmp(kernel, "swap_ab", 7) == 0;
}

static double tolerance_of(const struct gemm_call *call, const char *kernel)
{
    if (call->tolerance != 0) {
        return call->tolerance < 0 ? 0.0 : call->tolerance;
    }
    if (call->form.out == CBN_DTYPE_BF16) {
        return TOLERANCE_BF16;
    }
    if (gemm_is_swap_ab(kernel) || strcmp(kernel, "wgmma") == 0) {
        return TOLERANCE_FP8_SUM;
    }
    return call->form.out == CBN_DTYPE_FP16 ? TOLERANCE_FP16 : TOLERANCE_FP32;
}

void gemm_describe(const struct problem *problem, const struct gemm_call *call, const char *kernel, char *text,
                   size_t text_bytes)
{
    const struct form *form = &call->form;
    (void)snprintf(text, text_bytes, "%s M=%lld N=%lld K=%lld %s->%s layout %u weights %s/%s bias %u pow2 %d pdl %d",
                   kernel, (long long)call->m, (long long)problem->n, (long long)problem->k, cbn_dtype_name(form->in),
                   cbn_dtype_name(form->out), form->layout, form->w_format == CBN_SCALE_UE8M0 ? "ue8m0" : "fp32",
                   form->gran == CBN_GRAN_ROW ? "row" : "block", form->bias, form->pow2, !form->no_pdl);
}

struct gemm_output gemm_check(struct suite *suite, struct tally *tally, const struct problem *problem,
                              const struct gemm_call *call, const struct cbn_fp8_gemm_args *args)
{
    char what[256];
    int64_t rows = !call->has_m_valid ? call->m : call->m_valid < 0 ? 0 : call->m_valid;
    rows = rows < call->m ? rows : call->m;
    int64_t order = 0;
    const char *kernel = note_kernel(suite, problem, call, args, &order);
    gemm_describe(problem, call, kernel, what, sizeof(what));
    tally_error(tally, worst_row(suite, problem, call, &args->d, rows), tolerance_of(call, kernel), what);
    uint64_t touched = touched_outside(suite, &args->d, call->d_offset, rows);
    if (touched) {
        tally->mismatches += touched;
        tally_fault(tally, "%s: %llu bytes written outside D", what, (unsigned long long)touched);
    }
    touched = gemm_workspace_touched(suite, args->workspace, args->workspace_bytes);
    if (touched) {
        tally->mismatches += touched;
        tally_fault(tally, "%s: %llu bytes written outside the workspace", what, (unsigned long long)touched);
    }
    int64_t bytes = dtype_bytes(args->d.dtype);
    return (struct gemm_output){args->d.data, args->d.strides[0] * bytes, problem->n * bytes, kernel, order};
}

struct gemm_output gemm_run(struct suite *suite, struct tally *tally, const struct problem *problem,
                            const struct gemm_call *call)
{
    char what[256];
    struct cbn_fp8_gemm_args args;
    struct cbn_error err = {0};
    gemm_place(suite, problem, call, &args);
    gemm_describe(problem, call, "fp8_gemm", what, sizeof(what));
    gpu_doing(what);
    int32_t status = cbn_fp8_gemm(suite->runtimes[call->runtime], &args, NULL, &err);
    if (!tally_call(tally, status, &err, what)) {
        return (struct gemm_output){0};
    }
    suite_finish(suite);
    return gemm_check(suite, tally, problem, call, &args);
}
