/*
 * Plans of fp8_gemm. A plan is immutable after create but for one atomic; a run works on a copy on its stack.
 *
 * The context is asked for at create, and by a run only where a kernel is not loaded yet.
 */
#include "api/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/args.h"

#define PLAN_FLAGS (CBN_OP_NO_PDL | CBN_OP_PROPAGATE | CBN_OP_POW2 | CBN_OP_STRICT_ROUTE | CBN_OP_WEIGHTS_STATIC)
#define MAP_ALIGN 16 /* of an address and of the strides in a tensor map */

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

/* Weights that no map can hold are no fault here: a run that would need one says so. */
static void fill_maps(struct cbn_plan *plan)
{
    const int64_t *facts = plan->bound.facts;
    if (facts[CBN__GEMM_FACT_align] % MAP_ALIGN == 0 && facts[CBN__GEMM_FACT_n] > 0 && facts[CBN__GEMM_FACT_k] > 0)
        cbn__weight_maps_fill(plan->place.driver, &plan->bound.arguments, &plan->maps);
}

static int32_t open_plan(struct cbn_plan *plan, struct cbn_runtime *runtime,
                         const struct cbn_fp8_gemm_plan_options *options, struct cbn_error *err)
{
    int32_t status = bind_options(plan, options, err);
    if (status == CBN_STATUS_OK)
        status = cbn__gemm_ops_begin(runtime, options->flags, options->miss_policy, &plan->ops, err);
    if (status == CBN_STATUS_OK)
        status = cbn__runtime_place(runtime, &plan->place, err);
    if (status != CBN_STATUS_OK)
        return status;
    plan->in = options->in;
    plan->layout = options->a_scale_layout;
    plan->flags = options->flags;
    atomic_store(&plan->settled, 1);
    cbn__gemm_ops_place(&plan->ops, plan->place.facts, options->max_sms, options->flags, plan->bound.facts);
    cbn__gemm_ops_place(&plan->ops, plan->place.facts, options->max_sms, options->flags, plan->sweep);
    fill_maps(plan);
    return CBN_STATUS_OK;
}

struct loading {
    const struct cbn_plan *plan;
    int32_t status;
    struct cbn_error *err;
};

static int32_t load_choice(const struct cbn_plan *plan, const struct cbn__choice *choice, struct cbn_error *err)
{
    struct cbn__kernel *kernel = NULL;
    return cbn__kernel_obtain(plan->ops.gemm.runtime, &choice->spec, &plan->place, choice->geometry.shared_bytes,
                              plan->ops.gemm.miss_policy, false, NULL, &kernel, err);
}

/* The quantiser that runs before it too: a capture that meets either finds it loaded. */
static int load_spec(void *user, const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    struct loading *loading = user;
    const struct cbn_plan *plan = loading->plan;
    struct cbn__choice choice = {.candidate = candidate,
                                 .spec = {.template = &candidate->template, .arch = plan->place.facts->arch}};
    if (!candidate->template.source)
        return 0; /* a run that meets it says so */
    for (uint32_t i = 0; i < candidate->template.param_count; i++)
        choice.spec.params[i] = params[i];
    candidate->geometry(params, facts, &choice.geometry);
    loading->status = load_choice(plan, &choice, loading->err);
    if (loading->status == CBN_STATUS_OK && cbn__gemm_quantizes_first(candidate, params, facts)) {
        loading->status = cbn__gemm_choose_quantizer(&plan->ops.quantize, facts, &choice, loading->err);
        if (loading->status == CBN_STATUS_OK)
            loading->status = load_choice(plan, &choice, loading->err);
    }
    return loading->status != CBN_STATUS_OK;
}

static int32_t load_all(const struct cbn_plan *plan, int64_t max_m, struct cbn_error *err)
{
    struct loading loading = {plan, CBN_STATUS_OK, err};
    int32_t status = cbn__enumerate_sweep(plan->ops.gemm.family, plan->sweep, max_m, &plan->ops.gemm.route, load_spec,
                                          &loading, err);
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
    struct cbn_plan *plan = aligned_alloc(_Alignof(struct cbn_plan), sizeof(*plan)); /* maps want their alignment */
    if (!plan)
        return cbn__error_no_memory(err);
    memset(plan, 0, sizeof(*plan));
    status = open_plan(plan, runtime, &options, err);
    if (status == CBN_STATUS_OK && options.max_m > 0 && plan->bound.facts[CBN__GEMM_FACT_n] > 0)
        status = load_all(plan, options.max_m, err);
    if (status == CBN_STATUS_OK)
        *ret_plan = plan;
    else
        free(plan);
    return status;
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

static int32_t run(const struct cbn_plan *plan, const struct cbn_fp8_gemm_run_args *args, void *stream,
                   struct cbn_error *err)
{
    struct cbn__gemm_call call;
    int32_t status = bind_run(plan, args, &call, err);
    if (status != CBN_STATUS_OK)
        return status;
    const struct cbn__gemm_way way = {.ops = &plan->ops,
                                      .place = &plan->place,
                                      .pinned = true,
                                      .fetch_early = cbn__plan_may_fetch_early(plan),
                                      .maps = &plan->maps,
                                      .workspace = args->workspace,
                                      .workspace_bytes = args->workspace_bytes,
                                      .stream = stream};
    return cbn__gemm_launch(&way, &call, err);
}

int32_t cbn_fp8_gemm_plan_run(struct cbn_plan *plan, const struct cbn_fp8_gemm_run_args *given, void *stream,
                              struct cbn_error *err)
{
    if (!plan || !given)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", plan ? "args" : "plan");
    CBN__COUNT(plan->ops.gemm.runtime, calls);
    struct cbn_fp8_gemm_run_args args = CBN_FP8_GEMM_RUN_ARGS_INIT;
    int32_t status = cbn__args_take(&args, sizeof(args), given, "cbn_fp8_gemm_run_args", err);
    if (status != CBN_STATUS_OK)
        return status;
    if (args.a.extents[0] != 0 && plan->bound.facts[CBN__GEMM_FACT_n] != 0)
        return run(plan, &args, stream, err);
    CBN__COUNT(plan->ops.gemm.runtime, noops);
    return CBN_STATUS_OK;
}

struct measuring {
    uint32_t policy;
    int64_t max_m;
    uint64_t bytes;
};

static int64_t last_value(const struct cbn__guard *guard)
{
    switch (guard->relation) {
    case CBN_RELATION_IN_RANGE:
        return guard->value_end - 1;
    case CBN_RELATION_LT:
        return guard->value - 1;
    case CBN_RELATION_EQ:
        return guard->value;
    default:
        return INT64_MAX;
    }
}

/* The largest m, at most max_m, that guards let pass. */
static int64_t last_m(const struct cbn__guard *guards, uint32_t count, int64_t max_m)
{
    for (uint32_t i = 0; i < count; i++)
        if (guards[i].fact == CBN__GEMM_FACT_m && last_value(&guards[i]) < max_m)
            max_m = last_value(&guards[i]);
    return max_m;
}

/* A need grows with m: its bound within one specialisation is taken at the last m that its candidate takes. */
static int measure_spec(void *user, const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    struct measuring *measuring = user;
    const struct cbn__rule *rule = &candidate->rules[measuring->policy];
    int64_t largest[CBN__GEMM_FACT_COUNT];
    struct cbn_geometry geometry = {0};
    if (!candidate->template.source)
        return 0;
    memcpy(largest, facts, sizeof(largest));
    largest[CBN__GEMM_FACT_m] = last_m(rule->guards, rule->guard_count, measuring->max_m);
    largest[CBN__GEMM_FACT_m] = last_m(candidate->guards, candidate->guard_count, largest[CBN__GEMM_FACT_m]);
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
    const struct cbn__op *op = &plan->ops.gemm;
    int64_t facts[CBN__GEMM_FACT_COUNT];
    struct measuring measuring = {.policy = op->route.policy, .max_m = max_m};
    memcpy(facts, plan->sweep, sizeof(facts));
    for (int64_t align = 1; align <= MAP_ALIGN; align *= 2) {
        facts[CBN__GEMM_FACT_align] = align;
        int32_t status = cbn__enumerate_sweep(op->family, facts, max_m, &op->route, measure_spec, &measuring, err);
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
