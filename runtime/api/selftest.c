/*
 * selftest: every candidate of the device's architecture against the CPU reference, on small shapes.
 *
 * The GEMM reference is the sum in double of the dequantised operands; the error is that of the worst row:
 * norm(out - ref) / max(norm(ref), norm(|A| |W|^T) / sqrt(K)). Quantisation must be equal bit for bit.
 */
#include "api/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fp8.h"
#include "dispatch/guard.h"

#define GROUP CBN_GROUP_SIZE
#define TOLERANCE_BF16 4e-3
#define TOLERANCE_FP16 6e-4
#define TOLERANCE_FP32 1e-4

struct test {
    struct cbn_runtime *runtime;
    const struct cbn__place *place;
    cbn_selftest_fn result;
    void *user;
    uint32_t failed;
    uint32_t seen_mask[CBN__BUILTIN_COUNT]; /* bit i: candidate i was launched */
};

/* Device memory of one case, freed by its cleanup. */
struct memory {
    const struct cbn__driver *driver;
    uint64_t address[6];
    int count;
};

static void free_memory(struct memory *memory)
{
    for (int i = 0; i < memory->count; i++)
        cbn__driver_free(memory->driver, memory->address[i]);
}

#define MEMORY_AUTO __attribute__((cleanup(free_memory))) struct memory

static int32_t upload(struct memory *memory, const void *data, uint64_t bytes, uint64_t *ret_address,
                      struct cbn_error *err)
{
    int32_t status = cbn__driver_alloc(memory->driver, bytes ? bytes : 1, ret_address, err);
    if (status != CBN_STATUS_OK)
        return status;
    memory->address[memory->count++] = *ret_address;
    return data ? cbn__driver_copy_in(memory->driver, *ret_address, data, bytes, err)
                : cbn__driver_fill(memory->driver, *ret_address, 0xA5, bytes, err);
}

/* A small generator with the same stream everywhere (xorshift64*), values spread over group magnitudes 2^(3 g mod 24). */
static float draw(uint64_t *state, int64_t column)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    uint64_t bits = *state * 2685821657736338717ull;
    float unit = (float)(bits >> 40) / (float)(1 << 23) - 1.0f;
    return ldexpf(unit, (int)(3 * (column / GROUP) % 24) - 12);
}

static void report(struct test *test, const char *text, double error, bool ok)
{
    struct cbn_selftest_case result = {.size = sizeof(result), .ok = ok, .text = text, .max_rel_err = error};
    test->failed += !ok;
    test->result(test->user, &result);
}

/* Which candidate the call took, by the decision that the call itself used. */
static void note_candidate(struct test *test, const struct cbn_query *query, char *ret_text, size_t text_bytes)
{
    struct cbn_explanation explanation = {.size = sizeof(explanation)};
    uint32_t index = 0;
    (void)snprintf(ret_text, text_bytes, "%s", query->op);
    if (cbn_explain(test->runtime, query, &explanation, NULL) != CBN_STATUS_OK || !explanation.chosen)
        return;
    struct cbn__family *family = cbn__runtime_family(test->runtime, query->op, &index);
    for (uint32_t i = 0; i < explanation.candidate_count; i++)
        if (explanation.candidates[i].verdict == CBN_VERDICT_CHOSEN && family)
            test->seen_mask[index] |= 1u << i;
    (void)snprintf(ret_text, text_bytes, "m=%lld n=%lld k=%lld %s", (long long)query->m, (long long)query->n,
                   (long long)query->k, explanation.spec.text);
}

static struct cbn_tensor matrix(uint64_t data, enum cbn_dtype dtype, int64_t rows, int64_t columns, int64_t row_stride,
                                int64_t column_stride)
{
    return (struct cbn_tensor){.data = data,
                               .dtype = (uint32_t)dtype,
                               .rank = 2,
                               .extents = {rows, columns},
                               .strides = {row_stride, column_stride}};
}

/* Host operands of one product, and its references. */
struct operands {
    int64_t m, n, k, s;
    uint16_t *a;      /* bf16 [m,k] */
    uint8_t *codes;   /* of a, by the CPU reference */
    float *scales;    /* [m,s] */
    uint8_t *w;       /* [n,k] */
    float *w_scales;  /* [ceil(n/128),s] */
    uint8_t *out;     /* what the device wrote */
};

static void free_operands(struct operands *operands)
{
    free(operands->a);
    free(operands->codes);
    free(operands->scales);
    free(operands->w);
    free(operands->w_scales);
    free(operands->out);
}

static void quantise_rows(struct operands *operands)
{
    float values[GROUP];
    for (int64_t row = 0; row < operands->m; row++)
        for (int64_t group = 0; group < operands->s; group++) {
            int64_t first = row * operands->k + group * GROUP;
            int count = (int)(operands->k - group * GROUP < GROUP ? operands->k - group * GROUP : GROUP);
            for (int i = 0; i < count; i++)
                values[i] = cbn__bf16_decode(operands->a[first + i]);
            operands->scales[row * operands->s + group] =
                cbn__fp8_quantize_group(values, count, false, false, operands->codes + first).scale;
        }
}

static bool draw_operands(struct operands *operands, int64_t m, int64_t n, int64_t k)
{
    *operands = (struct operands){.m = m, .n = n, .k = k, .s = (k + GROUP - 1) / GROUP};
    size_t blocks = (size_t)((n + GROUP - 1) / GROUP * operands->s);
    operands->a = calloc((size_t)(m * k), sizeof(*operands->a));
    operands->codes = calloc((size_t)(m * k), 1);
    operands->scales = calloc((size_t)(m * operands->s), sizeof(*operands->scales));
    operands->w = calloc((size_t)(n * k), 1);
    operands->w_scales = calloc(blocks, sizeof(*operands->w_scales));
    operands->out = calloc((size_t)(m * n), sizeof(float));
    if (!operands->a || !operands->codes || !operands->scales || !operands->w || !operands->w_scales || !operands->out)
        return false;
    uint64_t state = 0x9E3779B97F4A7C15ull ^ (uint64_t)(m * 1000003 + n * 1009 + k);
    for (int64_t i = 0; i < m * k; i++)
        operands->a[i] = cbn__bf16_encode(draw(&state, i % k));
    for (int64_t i = 0; i < n * k; i++)
        operands->w[i] = cbn__e4m3_encode(draw(&state, 4 * GROUP) * 448.0f);
    for (size_t i = 0; i < blocks; i++)
        operands->w_scales[i] = fabsf(draw(&state, 0)) + 1e-4f;
    quantise_rows(operands);
    return true;
}

static double read_out(const struct operands *operands, enum cbn_dtype out, int64_t index)
{
    uint16_t half = 0;
    float single = 0;
    if (out == CBN_DTYPE_FP32) {
        memcpy(&single, operands->out + 4 * index, sizeof(single));
        return single;
    }
    memcpy(&half, operands->out + 2 * index, sizeof(half));
    return out == CBN_DTYPE_BF16 ? cbn__bf16_decode(half) : cbn__fp16_decode(half);
}

static double row_error(const struct operands *operands, enum cbn_dtype out, int64_t row)
{
    double error = 0, norm = 0, norm_abs = 0;
    for (int64_t column = 0; column < operands->n; column++) {
        double sum = 0, sum_abs = 0;
        for (int64_t i = 0; i < operands->k; i++) {
            double scale = (double)operands->scales[row * operands->s + i / GROUP] *
                           (double)operands->w_scales[column / GROUP * operands->s + i / GROUP];
            double term = (double)cbn__e4m3_decode(operands->codes[row * operands->k + i]) *
                          (double)cbn__e4m3_decode(operands->w[column * operands->k + i]) * scale;
            sum += term;
            sum_abs += fabs(term);
        }
        double difference = read_out(operands, out, row * operands->n + column) - sum;
        error += difference * difference;
        norm += sum * sum;
        norm_abs += sum_abs * sum_abs;
    }
    double base = fmax(sqrt(norm), sqrt(norm_abs) / sqrt((double)operands->k));
    return base > 0 ? sqrt(error) / base : sqrt(error);
}

static double worst_row(const struct operands *operands, enum cbn_dtype out)
{
    double worst = 0;
    for (int64_t row = 0; row < operands->m; row++) {
        double error = row_error(operands, out, row);
        if (!(error <= worst)) /* NaN counts as worst */
            worst = error;
    }
    return worst;
}

static int32_t run_gemm(struct test *test, struct operands *operands, enum cbn_dtype out, struct cbn_error *err)
{
    MEMORY_AUTO memory = {.driver = test->place->driver};
    struct cbn_fp8_gemm_args args = CBN_FP8_GEMM_ARGS_INIT;
    uint64_t a = 0, w = 0, scales = 0, d = 0;
    int64_t m = operands->m, n = operands->n, k = operands->k, blocks = (n + GROUP - 1) / GROUP;
    uint64_t out_bytes = (uint64_t)(m * n) * (out == CBN_DTYPE_FP32 ? 4 : 2);
    int32_t status = upload(&memory, operands->a, (uint64_t)(m * k) * 2, &a, err);
    if (status == CBN_STATUS_OK)
        status = upload(&memory, operands->w, (uint64_t)(n * k), &w, err);
    if (status == CBN_STATUS_OK)
        status = upload(&memory, operands->w_scales, (uint64_t)(blocks * operands->s) * 4, &scales, err);
    if (status == CBN_STATUS_OK)
        status = upload(&memory, NULL, out_bytes, &d, err);
    args.a = matrix(a, CBN_DTYPE_BF16, m, k, k, 1);
    args.w = matrix(w, CBN_DTYPE_E4M3, n, k, k, 1);
    args.w_scale = matrix(scales, CBN_DTYPE_FP32, blocks, operands->s, operands->s, 1);
    args.d = matrix(d, out, m, n, n, 1);
    if (status == CBN_STATUS_OK)
        status = cbn_fp8_gemm_workspace_bytes(test->runtime, &args, &args.workspace_bytes, err);
    if (status == CBN_STATUS_OK && args.workspace_bytes)
        status = upload(&memory, NULL, args.workspace_bytes, &args.workspace, err);
    if (status == CBN_STATUS_OK)
        status = cbn_fp8_gemm(test->runtime, &args, NULL, err);
    if (status == CBN_STATUS_OK)
        status = cbn__driver_synchronise(memory.driver, err);
    return status == CBN_STATUS_OK ? cbn__driver_copy_out(memory.driver, operands->out, d, out_bytes, err) : status;
}

static int32_t test_gemm(struct test *test, int64_t m, int64_t n, int64_t k, enum cbn_dtype out, struct cbn_error *err)
{
    __attribute__((cleanup(free_operands))) struct operands operands;
    if (!draw_operands(&operands, m, n, k))
        return cbn__error_no_memory(err);
    char text[CBN_SPEC_TEXT_BYTES + 64];
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "fp8_gemm";
    query.arch = test->place->facts->arch;
    query.m = m;
    query.n = n;
    query.k = k;
    query.profile.out = (uint32_t)out;
    query.profile.sms = test->place->facts->sms;
    note_candidate(test, &query, text, sizeof(text));
    int32_t status = run_gemm(test, &operands, out, err);
    if (status != CBN_STATUS_OK)
        return status;
    double tolerance = out == CBN_DTYPE_BF16 ? TOLERANCE_BF16 : out == CBN_DTYPE_FP16 ? TOLERANCE_FP16 : TOLERANCE_FP32;
    double error = worst_row(&operands, out);
    report(test, text, error, error <= tolerance);
    return CBN_STATUS_OK;
}

static int32_t run_quantize(struct test *test, const struct operands *operands, int64_t row_stride, uint8_t *ret_codes,
                            float *ret_scales, struct cbn_error *err)
{
    MEMORY_AUTO memory = {.driver = test->place->driver};
    struct cbn_fp8_quantize_args args = CBN_FP8_QUANTIZE_ARGS_INIT;
    uint64_t x = 0, codes = 0, scales = 0;
    int64_t m = operands->m, k = operands->k, s = operands->s;
    uint64_t code_bytes = (uint64_t)(m * k), scale_bytes = (uint64_t)(m * s) * 4;
    int32_t status = upload(&memory, operands->a, (uint64_t)(m * k) * 2, &x, err);
    if (status == CBN_STATUS_OK)
        status = upload(&memory, NULL, code_bytes, &codes, err);
    if (status == CBN_STATUS_OK)
        status = upload(&memory, NULL, scale_bytes, &scales, err);
    args.scale_layout = CBN_LAYOUT_ROW;
    args.x = matrix(x, CBN_DTYPE_BF16, m, k, row_stride, 1);
    args.codes = matrix(codes, CBN_DTYPE_E4M3, m, k, k, 1);
    args.scales = matrix(scales, CBN_DTYPE_FP32, m, s, s, 1);
    if (status == CBN_STATUS_OK)
        status = cbn_fp8_quantize(test->runtime, &args, NULL, err);
    if (status == CBN_STATUS_OK)
        status = cbn__driver_synchronise(memory.driver, err);
    if (status == CBN_STATUS_OK)
        status = cbn__driver_copy_out(memory.driver, ret_codes, codes, code_bytes, err);
    return status == CBN_STATUS_OK ? cbn__driver_copy_out(memory.driver, ret_scales, scales, scale_bytes, err) : status;
}

static int32_t test_quantize(struct test *test, int64_t t, int64_t k, struct cbn_error *err)
{
    __attribute__((cleanup(free_operands))) struct operands operands;
    if (!draw_operands(&operands, t, 1, k))
        return cbn__error_no_memory(err);
    char text[CBN_SPEC_TEXT_BYTES + 64];
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "fp8_quantize";
    query.arch = test->place->facts->arch;
    query.m = t;
    query.k = k;
    query.profile.act_scale = CBN_LAYOUT_ROW;
    query.profile.sms = test->place->facts->sms;
    note_candidate(test, &query, text, sizeof(text));
    uint8_t *codes = calloc((size_t)(t * k), 1);
    float *scales = calloc((size_t)(t * operands.s), sizeof(*scales));
    int32_t status = codes && scales ? run_quantize(test, &operands, k, codes, scales, err)
                                     : cbn__error_no_memory(err);
    uint64_t unequal = 0;
    for (int64_t i = 0; status == CBN_STATUS_OK && i < t * k; i++)
        unequal += codes[i] != operands.codes[i];
    for (int64_t i = 0; status == CBN_STATUS_OK && i < t * operands.s; i++)
        unequal += memcmp(&scales[i], &operands.scales[i], sizeof(scales[i])) != 0;
    if (status == CBN_STATUS_OK)
        report(test, text, (double)unequal, unequal == 0);
    free(codes);
    free(scales);
    return status;
}

static bool holds_on_arch(const struct cbn__guard *guards, uint32_t count, int arch_fact, uint32_t arch)
{
    for (uint32_t i = 0; i < count; i++)
        if ((int)guards[i].fact == arch_fact && !cbn__guard_holds(&guards[i], arch))
            return false;
    return true;
}

/* Whether some call on this architecture can reach the candidate. */
static bool is_reachable(const struct test *test, uint32_t family_index, uint32_t index)
{
    const struct cbn__family *family = test->runtime->families[family_index];
    const struct cbn__route *route = &test->runtime->routes[family_index];
    const struct cbn__candidate *candidate = &family->candidates[index];
    const struct cbn__rule *rule = &candidate->rules[route->policy];
    uint32_t arch = test->place->facts->arch;
    return candidate->template.source && cbn__route_refusal(candidate, index, route) == CBN__REFUSAL_NONE &&
           holds_on_arch(rule->guards, rule->guard_count, family->arch_fact, arch) &&
           holds_on_arch(candidate->guards, candidate->guard_count, family->arch_fact, arch);
}

/* A candidate of this architecture that no case reached is a failed case: the table outgrew this list. */
static void report_unseen(struct test *test, uint32_t family_index)
{
    const struct cbn__family *family = test->runtime->families[family_index];
    for (uint32_t i = 0; i < family->candidate_count; i++) {
        char text[160];
        if ((test->seen_mask[family_index] >> i & 1u) || !is_reachable(test, family_index, i))
            continue;
        (void)snprintf(text, sizeof(text), "%s/%s: no case reached it", family->name, family->candidates[i].template.name);
        report(test, text, 1.0, false);
    }
}

static int32_t run_cases(struct test *test, const char *op, struct cbn_error *err)
{
    static const struct {
        int64_t m, n, k;
        enum cbn_dtype out;
    } gemms[] = {
        {1, 256, 512, CBN_DTYPE_BF16},  {7, 192, 384, CBN_DTYPE_BF16},  {16, 256, 512, CBN_DTYPE_BF16},
        {31, 256, 512, CBN_DTYPE_BF16}, {33, 192, 384, CBN_DTYPE_BF16}, {64, 256, 512, CBN_DTYPE_BF16},
        {257, 256, 512, CBN_DTYPE_BF16}, {5, 100, 200, CBN_DTYPE_BF16},  {33, 256, 512, CBN_DTYPE_FP16},
        {130, 72, 1000, CBN_DTYPE_FP32}, {3, 33, 130, CBN_DTYPE_FP16},  {5, 72, 208, CBN_DTYPE_BF16},
        {9, 72, 1008, CBN_DTYPE_FP32},   {2, 72, 5008, CBN_DTYPE_BF16}, {128, 200, 1040, CBN_DTYPE_FP16},
    };
    static const struct {
        int64_t t, k;
    } quantizations[] = {{1, 128}, {33, 7168}, {257, 1536}, {5, 200}, {9, 1001}};
    int32_t status = CBN_STATUS_OK;
    bool gemm = !op || strcmp(op, "fp8_gemm") == 0, quantize = !op || strcmp(op, "fp8_quantize") == 0;
    for (size_t i = 0; quantize && status == CBN_STATUS_OK && i < sizeof(quantizations) / sizeof(quantizations[0]); i++)
        status = test_quantize(test, quantizations[i].t, quantizations[i].k, err);
    for (size_t i = 0; gemm && status == CBN_STATUS_OK && i < sizeof(gemms) / sizeof(gemms[0]); i++)
        status = test_gemm(test, gemms[i].m, gemms[i].n, gemms[i].k, gemms[i].out, err);
    for (uint32_t i = 0; status == CBN_STATUS_OK && i < CBN__BUILTIN_COUNT; i++)
        if (!op || strcmp(op, test->runtime->families[i]->name) == 0)
            report_unseen(test, i);
    return status;
}

int32_t cbn_selftest(struct cbn_runtime *runtime, const char *op, cbn_selftest_fn result, void *user,
                     struct cbn_error *err)
{
    if (!runtime || !result)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "result" : "runtime");
    uint32_t family = 0;
    if (op && !cbn__runtime_family(runtime, op, &family))
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED, "%.64s has no kernel in this release", op);
    if (family >= CBN__BUILTIN_COUNT)
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED, "%.64s is your own: there is no reference to test it against",
                              op);
    struct cbn__driver *driver = NULL;
    int count = 0;
    int32_t status = cbn__runtime_driver(runtime, &driver, err);
    if (status == CBN_STATUS_OK)
        status = cbn__driver_device_count(driver, &count, err);
    if (status == CBN_STATUS_OK && !count)
        status = cbn__error_own(err, CBN_STATUS_NO_DRIVER,
                                "the driver at %s sees no device; run selftest on a machine with a GPU",
                                cbn__driver_path(driver));
    if (status == CBN_STATUS_OK)
        status = cbn__driver_primary_acquire(driver, 0, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__place place;
    struct test test = {.runtime = runtime, .place = &place, .result = result, .user = user};
    status = cbn__runtime_place(runtime, &place, err);
    if (status == CBN_STATUS_OK)
        status = run_cases(&test, op, err);
    cbn__driver_primary_release(driver, 0);
    if (status == CBN_STATUS_OK && test.failed)
        status = cbn__error_own(err, CBN_STATUS_PARTIAL, "%u cases failed; the kernels of this device are not to be used",
                                test.failed);
    return status;
}
