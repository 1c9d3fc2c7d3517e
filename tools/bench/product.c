/*
 * Cubinet's fp8_gemm, through plans: one a copy of the weights.
 */
#include "product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct product {
    const struct problem *problem;
    struct cbn_plan **plans; /* one a copy */
    bool bound;              /* all of them are there */
    struct cbn_fp8_gemm_run_args run;
};

static const char *const peers[PRODUCT_MODE_COUNT] = {"cubinet_nopdl", "cubinet_pdl", "cubinet_pdl_static"};
static const uint32_t mode_flags[PRODUCT_MODE_COUNT] = {CBN_OP_NO_PDL, 0, CBN_OP_WEIGHTS_STATIC};

static bool told(int32_t status, const char *what, const struct cbn_error *err)
{
    if (status != CBN_STATUS_OK)
        fprintf(stderr, "gemm_bench: %s: %s\n", what, err->message);
    return status == CBN_STATUS_OK;
}

static bool launch(void *user, int index)
{
    struct product *product = user;
    struct cbn_error err = {0};
    struct cbn_plan *plan = product->plans[problem_copy(product->problem, index)];
    return told(cbn_fp8_gemm_plan_run(plan, &product->run, device.stream, &err), "plan_run", &err);
}

static struct cbn_tensor matrix(uint64_t data, uint32_t dtype, int64_t rows, int64_t columns)
{
    return (struct cbn_tensor){data, dtype, 2, {rows, columns}, {columns, 1}};
}

static bool create_plans(struct product *product, uint32_t in, enum product_mode mode, uint32_t max_sms)
{
    const struct problem *problem = product->problem;
    struct cbn_fp8_gemm_plan_options options = CBN_FP8_GEMM_PLAN_OPTIONS_INIT;
    struct cbn_error err = {0};
    options.flags = mode_flags[mode];
    options.in = in;
    options.out = CBN_DTYPE_BF16;
    options.a_scale_layout = in == CBN_DTYPE_E4M3 ? CBN_LAYOUT_COL4 : CBN_LAYOUT_NONE;
    options.max_sms = max_sms;
    for (int i = 0; i < problem->copies; i++) {
        options.max_m = i == 0 ? problem->rows : 0; /* loads for all */
        options.w = matrix(problem->w + (uint64_t)(i * problem->w_bytes), CBN_DTYPE_E4M3, problem->n, problem->k);
        options.w_scale = matrix(problem->w_scale + (uint64_t)(i * problem->scale_bytes), CBN_DTYPE_FP32,
                                 problem->blocks, problem->groups);
        if (!told(cbn_fp8_gemm_plan_create(problem->runtime, &options, &product->plans[i], &err), "plan", &err))
            return false;
    }
    return true;
}

static bool bind_run(struct product *product, uint32_t in)
{
    const struct problem *problem = product->problem;
    struct cbn_error err = {0};
    uint64_t needed = 0;
    int64_t m = problem->m;
    product->run = (struct cbn_fp8_gemm_run_args)CBN_FP8_GEMM_RUN_ARGS_INIT;
    product->run.a = matrix(in == CBN_DTYPE_E4M3 ? problem->codes : problem->x, in, m, problem->k);
    if (in == CBN_DTYPE_E4M3)
        product->run.a_scale =
            (struct cbn_tensor){problem->scales, CBN_DTYPE_FP32, 2, {m, problem->groups}, {1, (m + 3) / 4 * 4}};
    product->run.d = matrix(problem->d, CBN_DTYPE_BF16, m, problem->n);
    product->run.workspace = problem->workspace;
    product->run.workspace_bytes = (uint64_t)problem->workspace_bytes;
    return told(cbn_fp8_gemm_plan_workspace_bytes(product->plans[0], m, &needed, &err), "workspace", &err) &&
           needed <= product->run.workspace_bytes;
}

static struct cbn_query query_of(int64_t m, int64_t n, int64_t k, uint32_t in, bool pdl, uint32_t max_sms)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "fp8_gemm";
    query.arch = CBN_ARCH(90, 'a');
    query.m = m, query.n = n, query.k = k;
    query.profile.in = in;
    query.profile.pdl = pdl;
    query.profile.sms = (uint32_t)device.sms;
    query.profile.max_sms = max_sms;
    return query;
}

/* The candidate and those of its parameters that are sizes. */
static void describe(const struct problem *problem, const struct cbn_query *query, char *ret_text, size_t bytes)
{
    static const char *const sizes[] = {"BM", "BN", "DEEP"};
    struct cbn_explanation told_by = {.size = sizeof(told_by)};
    (void)cbn_explain(problem->runtime, query, &told_by, NULL);
    int used = snprintf(ret_text, bytes, "kernel=%s", told_by.spec.kernel);
    for (uint32_t i = 0; i < told_by.spec.param_count; i++)
        for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]) && used > 0 && (size_t)used < bytes; j++)
            if (strcmp(told_by.spec.params[i].name, sizes[j]) == 0)
                used += snprintf(ret_text + used, bytes - (size_t)used, " %s=%lld", sizes[j],
                                 (long long)told_by.spec.params[i].value);
}

static bool measure_m(struct problem *problem, struct product *product, uint32_t in, const char *peer,
                      const struct cbn_query *query)
{
    char notes[256];
    problem->m = query->m;
    if (!product->bound || !problem_set_m(problem, query->m) || !bind_run(product, in)) {
        problem_add_failure(problem, peer, NAN, "no plan or no operands", "the log says why");
        return false;
    }
    describe(problem, query, notes, sizeof(notes));
    const struct subject subject = {.peer = peer,
                                    .rows = query->m,
                                    .bytes = problem_bytes(problem, in),
                                    .launch = launch,
                                    .user = product,
                                    .notes = notes};
    return problem_measure(problem, &subject);
}

int product_measure(struct problem *problem, uint32_t in, enum product_mode mode, uint32_t max_sms, const int64_t *ms,
                    int m_count)
{
    char peer[64];
    int failures = 0;
    struct product product = {.problem = problem, .plans = calloc((size_t)problem->copies, sizeof(struct cbn_plan *))};
    (void)snprintf(peer, sizeof(peer), "%s%s", peers[mode], in == CBN_DTYPE_BF16 ? "_bf16in" : "");
    product.bound = product.plans && create_plans(&product, in, mode, max_sms);
    for (int i = 0; i < m_count; i++) {
        struct cbn_query query = query_of(ms[i], problem->n, problem->k, in, mode != PRODUCT_NO_PDL, max_sms);
        failures += !measure_m(problem, &product, in, peer, &query);
    }
    MUST(cuStreamSynchronize(device.stream));
    for (int i = 0; product.plans && i < problem->copies; i++)
        cbn_plan_destroy(product.plans[i]);
    free(product.plans);
    return failures;
}

void product_warm(struct cbn_runtime *runtime, const struct shape *shapes, int count, int64_t max_m, uint32_t max_sms)
{
    struct cbn_query *queries = calloc((size_t)count * 4, sizeof(*queries));
    struct cbn_warm_result result = {.size = sizeof(result)};
    struct cbn_error err = {0};
    for (int i = 0; queries && i < count * 4; i++)
        queries[i] = query_of(max_m, shapes[i / 4].n, shapes[i / 4].k, i % 2 ? CBN_DTYPE_BF16 : CBN_DTYPE_E4M3,
                              i / 2 % 2 != 0, max_sms);
    if (queries && told(cbn_warm(runtime, queries, (uint32_t)count * 4, NULL, &result, &err), "warm", &err))
        printf("warm: %u specialisations, %u compiled, %llu ms\n", result.requested, result.compiled,
               (unsigned long long)result.wall_ms);
    free(queries);
}
