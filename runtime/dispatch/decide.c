/*
 * The decision: guards over a vector of facts. Runs ahead of every launch: no allocation, no lock, no system call.
 */
#include "dispatch/decide.h"

#include "dispatch/guard.h"

/* The first guard that does not hold; NULL when all do. */
static const struct cbn__guard *find_refusing(const struct cbn__guard *guards, uint32_t count, const int64_t *facts)
{
    for (uint32_t i = 0; i < count; i++)
        if (!cbn__guard_holds(&guards[i], facts[guards[i].fact]))
            return &guards[i];
    return NULL;
}

enum cbn__refusal cbn__route_refusal(const struct cbn__candidate *candidate, uint32_t index,
                                     const struct cbn__route *route)
{
    uint32_t bit = UINT32_C(1) << index;
    if (route->disabled_mask & bit)
        return CBN__REFUSAL_DISABLED;
    if ((candidate->template.flags & CBN_CANDIDATE_OFF) && !(route->enabled_mask & bit))
        return CBN__REFUSAL_OFF;
    if (!candidate->rules[route->policy].present)
        return CBN__REFUSAL_POLICY;
    return CBN__REFUSAL_NONE;
}

static enum cbn__refusal refusal_of(const struct cbn__candidate *candidate, uint32_t index, const int64_t *facts,
                                    const struct cbn__route *route, const struct cbn__guard **ret_guard)
{
    *ret_guard = NULL;
    enum cbn__refusal refusal = cbn__route_refusal(candidate, index, route);
    if (refusal != CBN__REFUSAL_NONE)
        return refusal;
    const struct cbn__rule *rule = &candidate->rules[route->policy];
    *ret_guard = find_refusing(rule->guards, rule->guard_count, facts);
    if (!*ret_guard)
        *ret_guard = find_refusing(candidate->guards, candidate->guard_count, facts);
    if (*ret_guard)
        return CBN__REFUSAL_GUARD;
    if (route->strict && (candidate->template.flags & CBN_CANDIDATE_FALLBACK))
        return CBN__REFUSAL_STRICT;
    return CBN__REFUSAL_NONE;
}

static bool is_noop(const struct cbn__family *family, const int64_t *facts)
{
    for (uint32_t i = 0; i < family->noop_count; i++)
        if (cbn__guard_holds(&family->noops[i], facts[family->noops[i].fact]))
            return true;
    return false;
}

static void set_verdict(struct cbn__decision *decision, uint32_t index, enum cbn_verdict verdict,
                        enum cbn__refusal refusal, const struct cbn__guard *guard, int64_t value)
{
    decision->candidates[index].verdict = verdict;
    decision->candidates[index].refusal = refusal;
    decision->candidates[index].guard = guard;
    decision->candidates[index].value = value;
}

void cbn__decide(const struct cbn__family *family, const int64_t *facts, const struct cbn__route *route,
                 struct cbn__decision *ret_decision)
{
    ret_decision->noop = is_noop(family, facts);
    ret_decision->chosen = -1;
    ret_decision->policy = route->policy;
    uint32_t asked_count = ret_decision->noop ? 0 : family->candidate_count;
    uint32_t i = 0;
    for (; i < asked_count && ret_decision->chosen < 0; i++) {
        const struct cbn__guard *guard;
        enum cbn__refusal refusal = refusal_of(&family->candidates[i], i, facts, route, &guard);
        if (refusal == CBN__REFUSAL_NONE)
            ret_decision->chosen = (int)i;
        set_verdict(ret_decision, i, refusal == CBN__REFUSAL_NONE ? CBN_VERDICT_CHOSEN : CBN_VERDICT_REFUSED, refusal,
                    guard, guard ? facts[guard->fact] : 0);
    }
    for (; i < family->candidate_count; i++)
        set_verdict(ret_decision, i, CBN_VERDICT_NOT_REACHED, CBN__REFUSAL_NONE, NULL, 0);
}

static int64_t bucket_value(const struct cbn__param *param, int64_t fact)
{
    uint32_t i = 0;
    while (i + 1 < param->bucket_count && fact > param->buckets[i].upper)
        i++;
    return param->buckets[i].value;
}

void cbn__params_resolve(const struct cbn__candidate *candidate, const int64_t *facts, int64_t *ret_params)
{
    for (uint32_t i = 0; i < candidate->template.param_count; i++) {
        const struct cbn__param *param = &candidate->params[i];
        if (param->source == CBN_PARAM_CONST)
            ret_params[i] = param->value;
        else if (param->source == CBN_PARAM_FACT)
            ret_params[i] = facts[param->fact];
        else
            ret_params[i] = bucket_value(param, facts[param->fact]);
    }
}
