/*
 * Facts by name, for families that Cubinet knows nothing of. No lock, and no allocation but for an error's text.
 */
#include "dispatch/own.h"

#include "base/arch.h"
#include "dispatch/builtin.h"
#include "dispatch/guard.h"

#define BIT(fact) (UINT32_C(1) << (fact))

static int32_t refuse(const struct cbn__family *family, const char *at, const char *name, const char *what,
                      struct cbn_error *err)
{
    CBN__BUF_AUTO known = CBN__BUF_INIT;
    for (uint32_t i = 0; i < family->fact_count; i++)
        if (!cbn__family_is_common(family, i))
            cbn__buf_append_format(&known, "%s%s", known.size ? ", " : "", family->facts[i]);
    return cbn__error_own(err, CBN_STATUS_INVALID, "%s: '%.64s' %s; %s has the facts %.256s", at, name, what,
                          family->name, cbn__buf_text(&known));
}

static int32_t take_fact(const struct cbn__family *family, const struct cbn_fact *given, const int64_t *sweep,
                         uint32_t *taken, int64_t *ret_facts, struct cbn_error *err)
{
    int fact = cbn__family_fact(family, given->name);
    if (fact < 0)
        return refuse(family, "facts", given->name ? given->name : "(NULL)", "is not one of them", err);
    if (cbn__family_is_common(family, (uint32_t)fact))
        return refuse(family, "facts", given->name, "is written by Cubinet, leave it out", err);
    if (sweep && (uint32_t)fact == family->sweep_fact)
        return refuse(family, "facts", given->name, "is what the query sweeps, give it as m", err);
    if (*taken & BIT(fact))
        return refuse(family, "facts", given->name, "is given twice", err);
    *taken |= BIT(fact);
    ret_facts[fact] = given->value;
    return CBN_STATUS_OK;
}

int32_t cbn__own_facts(const struct cbn__family *family, const struct cbn_fact *facts, uint32_t fact_count,
                       const int64_t *sweep, int64_t *ret_facts, struct cbn_error *err)
{
    uint32_t taken = 0;
    if (fact_count && !facts)
        return cbn__error_own(err, CBN_STATUS_INVALID, "facts is NULL and fact_count is %u", fact_count);
    for (uint32_t i = 0; i < fact_count; i++) {
        int32_t status = take_fact(family, &facts[i], sweep, &taken, ret_facts, err);
        if (status != CBN_STATUS_OK)
            return status;
    }
    if (sweep) {
        taken |= BIT(family->sweep_fact);
        ret_facts[family->sweep_fact] = *sweep;
    }
    for (uint32_t i = 0; i < family->fact_count; i++)
        if (!(taken & BIT(i)) && !cbn__family_is_common(family, i))
            return refuse(family, "facts", family->facts[i], "is missing", err);
    return CBN_STATUS_OK;
}

/* Shapes and formats of the built-in operations: a question that gives one means another op. */
static int32_t check_unused(const struct cbn__family *family, const struct cbn_query *query, struct cbn_error *err)
{
    const struct cbn_profile *profile = &query->profile;
    const struct {
        const char *name;
        int64_t value;
    } unused[] = {
        {"n", query->n},
        {"k", query->k},
        {"g", query->groups},
        {"lda", query->lda},
        {"pow2", profile->pow2},
        {"propagate", profile->propagate},
        {"approx", profile->approx},
    };
    for (uint32_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++)
        if (unused[i].value)
            return cbn__error_own(err, CBN_STATUS_INVALID, "%s: %lld; %s is asked by its facts: give 0", unused[i].name,
                                  (long long)unused[i].value, family->name);
    if (query->m < 0)
        return cbn__error_own(err, CBN_STATUS_INVALID, "m: %lld; give the '%s' of the call, 0 or more",
                              (long long)query->m, family->facts[family->sweep_fact]);
    return CBN_STATUS_OK;
}

static void set_fact(int64_t *facts, int fact, int64_t value)
{
    if (fact >= 0)
        facts[fact] = value;
}

int32_t cbn__own_query_facts(const struct cbn__family *family, const struct cbn_query *query, int64_t *ret_facts,
                             struct cbn_error *err)
{
    const struct cbn_profile *profile = &query->profile;
    int32_t status = cbn__query_check_common(query, err);
    if (status == CBN_STATUS_OK)
        status = check_unused(family, query, err);
    if (status == CBN_STATUS_OK)
        status = cbn__own_facts(family, query->facts, query->fact_count, &query->m, ret_facts, err);
    if (status != CBN_STATUS_OK)
        return status;
    set_fact(ret_facts, family->arch_fact, query->arch);
    set_fact(ret_facts, family->sms_fact, profile->sms ? profile->sms : cbn__arch_usual_sms(query->arch));
    set_fact(ret_facts, family->max_sms_fact, profile->max_sms);
    set_fact(ret_facts, family->pdl_fact, profile->pdl && cbn__arch_has_pdl(query->arch));
    return CBN_STATUS_OK;
}

bool cbn__own_noop(const struct cbn__family *family, const int64_t *facts)
{
    for (uint32_t i = 0; i < family->noop_count; i++)
        if (!cbn__family_is_common(family, family->noops[i].fact) &&
            cbn__guard_holds(&family->noops[i], facts[family->noops[i].fact]))
            return true;
    return false;
}
