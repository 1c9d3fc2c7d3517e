/*
 * fp8_gemm as a one-shot call. Reads nothing but its arguments and the current context; takes no lock.
 */
#include "api/gemm.h"

#include "api/gemm_launch.h"
#include "base/args.h"

#define CALL_FLAGS (CBN_OP_NO_PDL | CBN_OP_PROPAGATE | CBN_OP_POW2 | CBN_OP_STRICT_ROUTE)

static struct cbn__gemm_weights weights_of(const struct cbn_fp8_gemm_args *args)
{
    return (struct cbn__gemm_weights){&args->w, &args->w_scale, &args->bias, args->w_scale_gran, args->d.dtype};
}

static struct cbn__gemm_activations activations_of(const struct cbn_fp8_gemm_args *args)
{
    return (struct cbn__gemm_activations){
        .a = &args->a,
        .a_scale = &args->a_scale,
        .d = &args->d,
        .in = args->a.dtype,
        .layout = args->a_scale_layout,
        .flags = args->flags,
        .m_valid = args->m_valid,
    };
}

static int32_t bind(struct cbn__gemm_call *call, const struct cbn_fp8_gemm_args *args, struct cbn_error *err)
{
    struct cbn__gemm_weights weights = weights_of(args);
    struct cbn__gemm_activations activations = activations_of(args);
    int32_t status = cbn__op_check(args->flags, CALL_FLAGS, args->miss_policy, err);
    if (status == CBN_STATUS_OK)
        status = cbn__gemm_bind_weights(call, &weights, err);
    return status == CBN_STATUS_OK ? cbn__gemm_bind_activations(call, &activations, err) : status;
}

static int32_t run(struct cbn_runtime *runtime, const struct cbn_fp8_gemm_args *args, void *stream,
                   struct cbn_error *err)
{
    struct cbn__gemm_ops ops;
    struct cbn__gemm_call call;
    struct cbn__place place;
    int32_t status = bind(&call, args, err);
    if (status == CBN_STATUS_OK)
        status = cbn__gemm_ops_begin(runtime, args->flags, args->miss_policy, &ops, err);
    if (status == CBN_STATUS_OK)
        status = cbn__runtime_place(runtime, &place, err);
    if (status != CBN_STATUS_OK)
        return status;
    cbn__gemm_ops_place(&ops, place.facts, args->max_sms, args->flags, call.facts);
    const struct cbn__gemm_way way = {.ops = &ops,
                                      .place = &place,
                                      .workspace = args->workspace,
                                      .workspace_bytes = args->workspace_bytes,
                                      .stream = stream};
    return cbn__gemm_launch(&way, &call, err);
}

static bool is_noop(const struct cbn_fp8_gemm_args *args)
{
    return args->a.extents[0] == 0 || args->w.extents[0] == 0;
}

static int32_t take(struct cbn_runtime *runtime, const struct cbn_fp8_gemm_args *given, struct cbn_fp8_gemm_args *args,
                    struct cbn_error *err)
{
    if (!runtime || !given)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "args" : "runtime");
    *args = (struct cbn_fp8_gemm_args)CBN_FP8_GEMM_ARGS_INIT;
    return cbn__args_take(args, sizeof(*args), given, "cbn_fp8_gemm_args", err);
}

int32_t cbn_fp8_gemm(struct cbn_runtime *runtime, const struct cbn_fp8_gemm_args *given, void *stream,
                     struct cbn_error *err)
{
    struct cbn_fp8_gemm_args args;
    int32_t status = take(runtime, given, &args, err);
    if (runtime)
        CBN__COUNT(runtime, calls);
    if (status != CBN_STATUS_OK)
        return status;
    if (!is_noop(&args))
        return run(runtime, &args, stream, err);
    CBN__COUNT(runtime, noops);
    return CBN_STATUS_OK;
}

/* Addresses are not known yet: the largest need under any alignment that they may have. */
static int32_t largest_workspace(const struct cbn__op *op, int64_t *facts, uint64_t *ret_bytes, struct cbn_error *err)
{
    int32_t status = CBN_STATUS_UNSUPPORTED;
    uint64_t largest = 0;
    for (int64_t align = 1; align <= 16; align *= 2) {
        struct cbn__choice choice;
        facts[CBN__GEMM_FACT_align] = align;
        if (cbn__op_choose(op, facts, &choice, err) != CBN_STATUS_OK)
            continue;
        status = CBN_STATUS_OK;
        if (choice.geometry.workspace_bytes > largest)
            largest = choice.geometry.workspace_bytes;
    }
    if (status == CBN_STATUS_OK)
        *ret_bytes = largest;
    return status;
}

int32_t cbn_fp8_gemm_workspace_bytes(struct cbn_runtime *runtime, const struct cbn_fp8_gemm_args *given,
                                     uint64_t *ret_bytes, struct cbn_error *err)
{
    struct cbn_fp8_gemm_args args;
    struct cbn__gemm_call call;
    struct cbn__place place;
    struct cbn__gemm_ops ops;
    if (!ret_bytes)
        return cbn__error_own(err, CBN_STATUS_INVALID, "ret_bytes is NULL");
    int32_t status = take(runtime, given, &args, err);
    if (status == CBN_STATUS_OK && is_noop(&args)) {
        *ret_bytes = 0;
        return CBN_STATUS_OK;
    }
    if (status == CBN_STATUS_OK)
        status = cbn__op_check(args.flags, CALL_FLAGS, args.miss_policy, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__gemm_weights weights = weights_of(&args);
    struct cbn__gemm_activations activations = activations_of(&args);
    status = cbn__gemm_facts(&call, &weights, &activations, err);
    if (status == CBN_STATUS_OK)
        status = cbn__gemm_ops_begin(runtime, args.flags, args.miss_policy, &ops, err);
    if (status == CBN_STATUS_OK)
        status = cbn__runtime_place(runtime, &place, err);
    if (status != CBN_STATUS_OK)
        return status;
    cbn__gemm_ops_place(&ops, place.facts, args.max_sms, args.flags, call.facts);
    return largest_workspace(&ops.gemm, call.facts, ret_bytes, err);
}
