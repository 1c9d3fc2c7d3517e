/*
 * Plans of fp8_gemm. A plan is immutable after create but for one atomic; a run works on a copy on its stack.
 *
 * The context is asked for at create, and by a run only where a kernel is not loaded yet.
 */
#include "api/plan.h"

#include <stdlib.h>
#include <string.h>

#include "api/kernel_map.h"
#include "base/args.h"

#define PLAN_FLAGS (CBN_OP_NO_PDL | CBN_OP_PROPAGATE | CBN_OP_POW2 | CBN_OP_STRICT_ROUTE | CBN_OP_WEIGHTS_STATIC)

/* The alignment of runs whose A and D are contiguous and whose bases are aligned. */
static int64_t align_contiguous(const struct cbn_fp8_gemm_plan_options *options, int64_t weights_align)
{
    const struct cbn_tensor a = {.dtype = options->in, .rank = 2, .extents = {1, options->w.extents[1]}};
    const struct cbn_tensor d = {.dtype = options->out, .rank = 2, .extents = {1, options->w.extents[0]}};
    return cbn__tensor_align(&d, cbn__tensor_align(&a, weights_align));
}

/* What is known of runs before there is one: dtypes and layouts, no row. */
static int32_t bind_runs(struct cbn_plan *plan, const struct cbn_fp8_gemm_plan_options *options,
                         const struct cbn__gemm_weights *weights, struct cbn_error *err)
{
    const struct cbn_tensor no_rows = {.dtype = options->in, .rank = 2, .extents = {0, options->w.extents[1]}};
    const struct cbn__gemm_activations activations = {.a = &no_rows,
                                                      .a_scale = &no_rows,
                                                      .d = &no_rows,
                                                      .in = options->in,
                                                      .layout = options->a_scale_layout,
                                                      .flags = options->flags};
    struct cbn__gemm_call probe;
    int32_t status = cbn__gemm_facts(&probe, weights, &activations, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (options->in == CBN_DTYPE_E4M3 && options->a_scale_layout == CBN_LAYOUT_NONE)
        return cbn__error_own(err, CBN_STATUS_INVALID,
                              "a_scale_layout is NONE; e4m3 input comes with scales: name their storage");
    memcpy(plan->sweep, probe.facts, sizeof(plan->sweep));
    plan->sweep[CBN__GEMM_FACT_bias] = plan->bound.facts[CBN__GEMM_FACT_bias];
    plan->sweep[CBN__GEMM_FACT_align] = align_contiguous(options, plan->bound.facts[CBN__GEMM_FACT_align]);
    return CBN_STATUS_OK;
}

static int32_t bind_options(struct cbn_plan *plan, const struct cbn_fp8_gemm_plan_options *options,
                            struct cbn_error *err)
{
    const struct cbn__gemm_weights weights = {&options->w, &options->w_scale, &options->bias, options->w_scale_gran,
                                              options->out};
    int32_t status = cbn__op_check(options->flags, PLAN_FLAGS, options->miss_policy, err);
    if (status == CBN_STATUS_OK && options->max_m < 0)
        status = cbn__error_own(err, CBN_STATUS_INVALID, "max_m is %lld; give the largest M to prepare for, or 0",
                                (long long)options->max_m);
    if (status == CBN_STATUS_OK)
        status = cbn__gemm_bind_weights(&plan->bound, &weights, err);
    return status == CBN_STATUS_OK ? bind_runs(plan, options, &weights, err) : status;
}

static int32_t open_plan(struct cbn_plan *plan, struct cbn_runtime *runtime,
                         const struct cbn_fp8_gemm_plan_options *options, struct cbn_error *err)
{
    int32_t status = bind_options(plan, options, err);
    if (status == CBN_STATUS_OK)
        status = cbn__op_begin(runtime, "fp8_gemm", options->flags, options->miss_policy, &plan->op, err);
    if (status == CBN_STATUS_OK)
        status = cbn__runtime_place(runtime, &plan->place, err);
    if (status != CBN_STATUS_OK)
        return status;
    plan->in = options->in;
    plan->layout = options->a_scale_layout;
    plan->flags = options->flags;
    atomic_store(&plan->settled, 1);
    cbn__op_place(&plan->op, plan->place.facts, options->max_sms, options->flags, plan->bound.facts);
    cbn__op_place(&plan->op, plan->place.facts, options->max_sms, options->flags, plan->sweep);
    return CBN_STATUS_OK;
}

struct loading {
    struct cbn_plan *plan;
    int32_t status;
    struct cbn_error *err;
};

static int load_spec(void *user, const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    struct loading *loading = user;
    struct cbn_plan *plan = loading->plan;
    struct cbn__kernel *kernel = NULL;
    struct cbn_geometry geometry = {0};
    struct cbn__spec spec = {.template = &candidate->template, .arch = plan->place.facts->arch};
    if (!candidate->template.source)
        return 0; /* a run that meets it says so */
    for (uint32_t i = 0; i < candidate->template.param_count; i++)
        spec.params[i] = params[i];
    candidate->geometry(params, facts, &geometry);
    loading->status = cbn__kernel_obtain(plan->op.runtime, &spec, &plan->place, geometry.shared_bytes,
                                         plan->op.miss_policy, false, NULL, &kernel, loading->err);
    return loading->status != CBN_STATUS_OK;
}

static int32_t load_all(struct cbn_plan *plan, int64_t max_m, struct cbn_error *err)
{
    struct loading loading = {plan, CBN_STATUS_OK, err};
    int32_t status =
        cbn__enumerate_sweep(plan->op.family, plan->sweep, max_m, &plan->op.route, load_spec, &loading, err);
    return status == CBN_STATUS_OK ? loading.status : status;
}

int32_t cbn_fp8_gemm_plan_create(struct cbn_runtime *runtime, const struct cbn_fp8_gemm_plan_options *given,
                                 struct cbn_plan **ret_plan, struct cbn_error *err)
{
    if (!runtime || !given || !ret_plan)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL",
                              !runtime ? "runtime"
                              : given  ? "ret_plan"
                                       : "options");
    struct cbn_fp8_gemm_plan_options options = CBN_FP8_GEMM_PLAN_OPTIONS_INIT;
    int32_t status = cbn__args_take(&options, sizeof(options), given, "cbn_fp8_gemm_plan_options", err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return cbn__error_no_memory(err);
    status = open_plan(plan, runtime, &options, err);
    if (status == CBN_STATUS_OK && options.max_m > 0 && plan->bound.facts[CBN__GEMM_FACT_n] > 0)
        status = load_all(plan, options.max_m, err);
    if (status == CBN_STATUS_OK)
        *ret_plan = plan;
    else
        free(plan);
    return status;
}

/* A load goes into the thread's current context, which must then be the plan's. */
static int32_t check_context(const struct cbn_plan *plan, struct cbn_error *err)
{
    struct cbn__place current;
    int32_t status = cbn__runtime_place(plan->op.runtime, &current, err);
    if (status == CBN_STATUS_OK && current.context_id != plan->place.context_id)
        status =
            cbn__error_own(err, CBN_STATUS_INVALID,
                           "the current context is %llu and the plan's is %llu; make the plan's current, or create "
                           "the plan with max_m so that runs load nothing",
                           (unsigned long long)current.context_id, (unsigned long long)plan->place.context_id);
    return status;
}

static int32_t obtain(const struct cbn_plan *plan, const struct cbn__choice *choice, void *stream,
                      struct cbn__kernel **ret_kernel, struct cbn_error *err)
{
    struct cbn_runtime *runtime = plan->op.runtime;
    struct cbn__kernel *kernel = cbn__kernel_map_find(runtime->kernels, &choice->spec);
    if (kernel && cbn__kernel_ready(kernel, plan->place.context_id)) {
        CBN__COUNT(runtime, memory_hits);
        *ret_kernel = kernel;
        return CBN_STATUS_OK;
    }
    int32_t status = check_context(plan, err);
    if (status != CBN_STATUS_OK)
        return status;
    return cbn__kernel_obtain(runtime, &choice->spec, &plan->place, choice->geometry.shared_bytes, plan->op.miss_policy,
                              true, stream, ret_kernel, err);
}

static int32_t bind_run(const struct cbn_plan *plan, const struct cbn_fp8_gemm_run_args *args,
                        struct cbn__gemm_call *ret_call, struct cbn_error *err)
{
    *ret_call = plan->bound;
    const struct cbn__gemm_activations activations = {
        .a = &args->a,
        .a_scale = &args->a_scale,
        .d = &args->d,
        .in = plan->in,
        .layout = plan->layout,
        .flags = plan->flags,
        .m_valid = args->m_valid,
    };
    int32_t status = cbn__op_check(args->flags, 0, CBN_MISS_DEFAULT, err);
    return status == CBN_STATUS_OK ? cbn__gemm_bind_activations(ret_call, &activations, err) : status;
}

static int32_t run(struct cbn_plan *plan, const struct cbn_fp8_gemm_run_args *args, void *stream, struct cbn_error *err)
{
    struct cbn__gemm_call call;
    struct cbn__choice choice;
    struct cbn__kernel *kernel = NULL;
    int32_t status = bind_run(plan, args, &call, err);
    if (status == CBN_STATUS_OK)
        status = cbn__op_choose(&plan->op, call.facts, &choice, err);
    if (status == CBN_STATUS_OK)
        status = cbn__workspace_check(&choice, args->workspace, args->workspace_bytes, err);
    if (status == CBN_STATUS_OK)
        status = obtain(plan, &choice, stream, &kernel, err);
    if (status != CBN_STATUS_OK)
        return status;
    call.arguments.workspace = args->workspace;
    return cbn__op_launch(&plan->op, kernel, &choice, &call.arguments, stream, err);
}

int32_t cbn_fp8_gemm_plan_run(struct cbn_plan *plan, const struct cbn_fp8_gemm_run_args *given, void *stream,
                              struct cbn_error *err)
{
    if (!plan || !given)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", plan ? "args" : "plan");
    CBN__COUNT(plan->op.runtime, calls);
    struct cbn_fp8_gemm_run_args args = CBN_FP8_GEMM_RUN_ARGS_INIT;
    int32_t status = cbn__args_take(&args, sizeof(args), given, "cbn_fp8_gemm_run_args", err);
    if (status != CBN_STATUS_OK)
        return status;
    if (args.a.extents[0] != 0 && plan->bound.facts[CBN__GEMM_FACT_n] != 0)
        return run(plan, &args, stream, err);
    CBN__COUNT(plan->op.runtime, noops);
    return CBN_STATUS_OK;
}

struct measuring {
    int64_t max_m;
    uint64_t bytes;
};

/* A need grows with m: its bound within one specialisation is taken at max_m. */
static int measure_spec(void *user, const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    struct measuring *measuring = user;
    int64_t largest[CBN__GEMM_FACT_COUNT];
    struct cbn_geometry geometry = {0};
    if (!candidate->template.source)
        return 0;
    for (int i = 0; i < CBN__GEMM_FACT_COUNT; i++)
        largest[i] = facts[i];
    largest[CBN__GEMM_FACT_m] = measuring->max_m;
    candidate->geometry(params, largest, &geometry);
    if (geometry.workspace_bytes > measuring->bytes)
        measuring->bytes = geometry.workspace_bytes;
    return 0;
}

int32_t cbn_fp8_gemm_plan_workspace_bytes(const struct cbn_plan *plan, int64_t max_m, uint64_t *ret_bytes,
                                          struct cbn_error *err)
{
    if (!plan || !ret_bytes)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", plan ? "ret_bytes" : "plan");
    if (max_m < 0)
        return cbn__error_own(err, CBN_STATUS_INVALID, "max_m is %lld; an extent is never negative", (long long)max_m);
    int64_t facts[CBN__GEMM_FACT_COUNT];
    struct measuring measuring = {max_m, 0};
    memcpy(facts, plan->sweep, sizeof(facts));
    for (int64_t align = 1; align <= 16; align *= 2) {
        facts[CBN__GEMM_FACT_align] = align;
        int32_t status =
            cbn__enumerate_sweep(plan->op.family, facts, max_m, &plan->op.route, measure_spec, &measuring, err);
        if (status != CBN_STATUS_OK)
            return status;
    }
    *ret_bytes = measuring.bytes;
    return CBN_STATUS_OK;
}

bool cbn__plan_may_fetch_early(const struct cbn_plan *plan)
{
    return (plan->flags & CBN_OP_WEIGHTS_STATIC) && atomic_load_explicit(&plan->settled, memory_order_acquire);
}

void cbn_plan_weights_changed(struct cbn_plan *plan, uint32_t settled)
{
    if (plan)
        atomic_store_explicit(&plan->settled, settled ? 1u : 0u, memory_order_release);
}

void cbn_plan_destroy(struct cbn_plan *plan)
{
    free(plan);
}
