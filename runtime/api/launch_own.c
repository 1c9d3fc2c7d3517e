/*
 * Calls of a family of the caller's own: facts by name, then the way of every operation. Takes no lock.
 */
#include "api/ops.h"
#include "base/args.h"
#include "dispatch/own.h"

#define CALL_FLAGS (CBN_OP_NO_PDL | CBN_OP_STRICT_ROUTE)

static int32_t begin(struct cbn_runtime *runtime, const struct cbn_launch_args *args, struct cbn__op *ret_op,
                     struct cbn_error *err)
{
    uint32_t index = 0;
    if (!args->op)
        return cbn__error_own(err, CBN_STATUS_INVALID, "op is NULL; give the name of a family that you registered");
    if (!cbn__runtime_family(runtime, args->op, &index))
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                              "op: '%.64s' is not registered; call cbn_family_register first", args->op);
    if (index < CBN__BUILTIN_COUNT)
        return cbn__error_own(err, CBN_STATUS_INVALID, "op: %s is built in; call cbn_%s", args->op, args->op);
    int32_t status = cbn__op_check(args->flags, CALL_FLAGS, args->miss_policy, err);
    return status == CBN_STATUS_OK ? cbn__op_begin(runtime, args->op, args->flags, args->miss_policy, ret_op, err)
                                   : status;
}

int32_t cbn_launch(struct cbn_runtime *runtime, const struct cbn_launch_args *given, void *stream,
                   struct cbn_error *err)
{
    if (!runtime || !given)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "args" : "runtime");
    CBN__COUNT(runtime, calls);
    struct cbn_launch_args args = CBN_LAUNCH_ARGS_INIT;
    int64_t facts[CBN_FACTS_MAX] = {0};
    struct cbn__op op;
    int32_t status = cbn__args_take(&args, sizeof(args), given, "cbn_launch_args", err);
    if (status == CBN_STATUS_OK)
        status = begin(runtime, &args, &op, err);
    if (status == CBN_STATUS_OK)
        status = cbn__own_facts(op.family, args.facts, args.fact_count, NULL, facts, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (cbn__own_noop(op.family, facts)) {
        CBN__COUNT(runtime, noops);
        return CBN_STATUS_OK;
    }
    const struct cbn__op_call ready = {.facts = facts,
                                       .arguments = (void *)args.arguments, /* the driver copies it */
                                       .argument_bytes = args.argument_bytes,
                                       .flags = args.flags,
                                       .max_sms = args.max_sms,
                                       .workspace = args.workspace,
                                       .workspace_bytes = args.workspace_bytes};
    return cbn__op_run(&op, &ready, stream, err);
}
