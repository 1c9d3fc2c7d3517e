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

void cbn__op_place_facts(const struct cbn__family *family, const struct cbn__device_facts *device, uint32_t max_sms,
                         uint32_t flags, int64_t *facts)
{
    facts[family->arch_fact] = device->arch;
    facts[family->sms_fact] = device->sms;
    facts[family->max_sms_fact] = max_sms;
    facts[family->pdl_fact] = cbn__arch_has_pdl(device->arch) && !(flags & CBN_OP_NO_PDL);
}

static int32_t refuse_all(const struct cbn__op *op, const struct cbn__decision *decision, struct cbn_error *err)
{
    char reasons[CBN_ERROR_MESSAGE_BYTES] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < op->family->candidate_count && used < sizeof(reasons); i++) {
        char guard[CBN_TEXT_BYTES];
        cbn__guard_format(op->family, decision, i, guard, sizeof(guard));
        int written = snprintf(reasons + used, sizeof(reasons) - used, "; %s wants %s",
                               op->family->candidates[i].template.name, guard);
        if (decision->candidates[i].refusal == CBN__REFUSAL_GUARD && written > 0 &&
            used + (size_t)written < sizeof(reasons))
            written += snprintf(reasons + used + (size_t)written, sizeof(reasons) - used - (size_t)written,
                                " (it is %lld)", (long long)decision->candidates[i].value);
        used += written > 0 ? (size_t)written : 0;
    }
    return cbn__error_own(err, CBN_STATUS_UNSUPPORTED, "no %s kernel takes this call%.400s: meet one of these",
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
    choice.spec.arch = (uint32_t)facts[op->family->arch_fact];
    cbn__params_resolve(choice.candidate, facts, choice.spec.params);
    choice.candidate->geometry(choice.spec.params, facts, &choice.geometry);
    *ret_choice = choice;
    return CBN_STATUS_OK;
}

int32_t cbn__op_launch(const struct cbn__op *op, const struct cbn__kernel *kernel, const struct cbn__choice *choice,
                       const int64_t *facts, void *arguments, void *stream, struct cbn_error *err)
{
    /* A kernel without the parameter never waits for its producer: launched early it would read too soon. */
    bool pdl = facts[op->family->pdl_fact] && (choice->candidate->template.flags & CBN_CANDIDATE_PDL);
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
