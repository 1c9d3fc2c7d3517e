/*
 * From facts to a launch. Takes no lock, allocates nothing: what may block is behind cbn__kernel_obtain.
 */
#include "api/ops.h"

#include <stdio.h>

#include "base/arch.h"

#define WORKSPACE_ALIGN 256

int32_t cbn__op_check(uint32_t flags, uint32_t allowed, uint32_t miss_policy, struct cbn_error *err)
{
    if (flags & ~allowed)
        return cbn__error_own(err, CBN_STATUS_INVALID, "flags 0x%x: 0x%x is not known here; clear it", flags,
                              flags & ~allowed);
    switch (miss_policy) {
    case CBN_MISS_DEFAULT:
    case CBN_MISS_BLOCK:
    case CBN_MISS_NEVER:
        return CBN_STATUS_OK;
    default:
        return cbn__error_own(err, CBN_STATUS_INVALID,
                              "miss_policy is %u; give CBN_MISS_DEFAULT, CBN_MISS_BLOCK or CBN_MISS_NEVER",
                              miss_policy);
    }
}

int32_t cbn__op_begin(struct cbn_runtime *runtime, const char *name, uint32_t flags, uint32_t miss_policy,
                      struct cbn__op *ret_op, struct cbn_error *err)
{
    uint32_t index = 0;
    struct cbn__op op = {.runtime = runtime, .miss_policy = miss_policy};
    op.family = cbn__runtime_family(runtime, name, &index);
    if (!op.family)
        return cbn__error_own(err, CBN_STATUS_INTERNAL, "family %s is not registered; report this", name);
    op.route = runtime->routes[index];
    op.route.strict = op.route.strict || (flags & CBN_OP_STRICT_ROUTE);
    *ret_op = op;
    return CBN_STATUS_OK;
}

/* A caller's own family may lack a common fact. */
static void set_fact(int64_t *facts, int fact, int64_t value)
{
    if (fact >= 0)
        facts[fact] = value;
}

void cbn__op_place(struct cbn__op *op, const struct cbn__device_facts *device, uint32_t max_sms, uint32_t flags,
                   int64_t *facts)
{
    op->arch = device->arch;
    op->pdl = cbn__arch_has_pdl(device->arch) && !(flags & CBN_OP_NO_PDL);
    set_fact(facts, op->family->arch_fact, op->arch);
    set_fact(facts, op->family->sms_fact, device->sms);
    set_fact(facts, op->family->max_sms_fact, max_sms);
    set_fact(facts, op->family->pdl_fact, op->pdl);
}

static int32_t refuse_all(const struct cbn__op *op, const struct cbn__decision *decision, struct cbn_error *err)
{
    char reasons[CBN_ERROR_MESSAGE_BYTES];
    cbn__refusals_format(op->family, decision, reasons, sizeof(reasons));
    return cbn__error_own(err, CBN_STATUS_UNSUPPORTED, "no %s kernel takes this call; change one of: %.400s",
                          op->family->name, reasons);
}

int32_t cbn__op_choose(const struct cbn__op *op, const int64_t *facts, struct cbn__choice *ret_choice,
                       struct cbn_error *err)
{
    struct cbn__decision decision;
    cbn__decide(op->family, facts, &op->route, &decision);
    struct cbn__choice choice = {.noop = decision.noop};
    if (decision.noop) {
        *ret_choice = choice;
        return CBN_STATUS_OK;
    }
    if (decision.chosen < 0)
        return refuse_all(op, &decision, err);
    choice.candidate = &op->family->candidates[decision.chosen];
    if (!choice.candidate->template.source)
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                              "%s/%s takes this call and has no kernel yet; switch it off (disable=%s)",
                              op->family->name, choice.candidate->template.name, choice.candidate->template.name);
    choice.spec.template = &choice.candidate->template;
    choice.spec.arch = op->arch;
    cbn__params_resolve(choice.candidate, facts, choice.spec.params);
    choice.candidate->geometry(choice.spec.params, facts, &choice.geometry);
    *ret_choice = choice;
    return CBN_STATUS_OK;
}

int32_t cbn__op_launch(const struct cbn__op *op, const struct cbn__kernel *kernel, const struct cbn__choice *choice,
                       void *arguments, void *stream, struct cbn_error *err)
{
    /* A kernel that was cut without the wait for its producer would, launched early, read too soon. */
    const struct cbn__candidate *candidate = choice->candidate;
    bool pdl = op->pdl && (candidate->template.flags & CBN_CANDIDATE_PDL) &&
               choice->spec.params[candidate->pdl_param] == 1;
    int32_t status = cbn__kernel_launch(kernel, &choice->geometry, arguments, pdl, stream, err);
    if (status == CBN_STATUS_OK)
        CBN__COUNT(op->runtime, launches);
    return status;
}

int32_t cbn__workspace_check(const struct cbn__choice *choice, uint64_t address, uint64_t bytes, struct cbn_error *err)
{
    uint64_t needed = choice->geometry.workspace_bytes;
    if (needed == 0)
        return CBN_STATUS_OK;
    if (!address || address % WORKSPACE_ALIGN)
        return cbn__error_own(err, CBN_STATUS_INVALID, "workspace is 0x%llx; give %llu bytes at a multiple of %d",
                              (unsigned long long)address, (unsigned long long)needed, WORKSPACE_ALIGN);
    if (bytes < needed)
        return cbn__error_own(err, CBN_STATUS_INVALID,
                              "workspace_bytes is %llu; this call needs %llu: ask the workspace call first",
                              (unsigned long long)bytes, (unsigned long long)needed);
    return CBN_STATUS_OK;
}

static int32_t check_arguments(const struct cbn__choice *choice, const struct cbn__op_call *call, struct cbn_error *err)
{
    const struct cbn__template *template = &choice->candidate->template;
    if (call->argument_bytes != template->argument_bytes || !call->arguments)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is %u; %s/%s takes one struct of %u bytes",
                              call->arguments ? "argument_bytes" : "arguments is NULL and argument_bytes",
                              call->argument_bytes, template->family, template->name, template->argument_bytes);
    return cbn__workspace_check(choice, call->workspace, call->workspace_bytes, err);
}

int32_t cbn__op_run(struct cbn__op *op, const struct cbn__op_call *call, void *stream, struct cbn_error *err)
{
    struct cbn__place place;
    struct cbn__choice choice;
    struct cbn__kernel *kernel = NULL;
    int32_t status = cbn__runtime_place(op->runtime, &place, err);
    if (status != CBN_STATUS_OK)
        return status;
    cbn__op_place(op, place.facts, call->max_sms, call->flags, call->facts);
    status = cbn__op_choose(op, call->facts, &choice, err);
    if (status == CBN_STATUS_OK && choice.noop) {
        CBN__COUNT(op->runtime, noops);
        return CBN_STATUS_OK;
    }
    if (status == CBN_STATUS_OK)
        status = check_arguments(&choice, call, err);
    if (status == CBN_STATUS_OK)
        status = cbn__kernel_obtain(op->runtime, &choice.spec, &place, choice.geometry.shared_bytes, op->miss_policy,
                                    true, stream, &kernel, err);
    return status == CBN_STATUS_OK ? cbn__op_launch(op, kernel, &choice, call->arguments, stream, err) : status;
}
