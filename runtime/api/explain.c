/*
 * Questions: a query to a family, facts and a route; the decision explained; specialisations enumerated.
 */
#include <stdio.h>
#include <string.h>

#include "api/gemm_launch.h"
#include "api/spec_set.h"
#include "base/args.h"
#include "dispatch/own.h"

int32_t cbn__question_resolve(struct cbn_runtime *runtime, const struct cbn_query *query,
                              struct cbn__question *ret_question, struct cbn_error *err)
{
    if (!query->op)
        return cbn__error_own(err, CBN_STATUS_INVALID, "query.op is NULL; give \"fp8_gemm\" or \"fp8_quantize\"");
    struct cbn__question question = {0};
    uint32_t index = 0;
    question.family = cbn__runtime_family(runtime, query->op, &index);
    if (!question.family)
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED, "%.64s has no kernel in this release", query->op);
    question.own = index >= CBN__BUILTIN_COUNT;
    int32_t status = question.own ? cbn__own_query_facts(question.family, query, question.facts, err)
                                  : cbn__builtin_facts(query, question.facts, &question.shape_facts, err);
    if (status != CBN_STATUS_OK)
        return status;
    const struct cbn_profile *profile = &query->profile;
    const char *policy = profile->policy ? profile->policy : runtime->settings.policy.value;
    const char *disable = profile->disable ? profile->disable : runtime->settings.disable.value;
    const char *enable = profile->enable ? profile->enable : runtime->settings.enable.value;
    const struct cbn__family *const *families = (const struct cbn__family *const *)runtime->families;
    status = cbn__route_resolve(question.family, families, runtime->family_count, policy, disable, enable,
                                profile->strict_route != 0, &question.route, err);
    question.quantize_family = cbn__runtime_family(runtime, "fp8_quantize", &index);
    if (status == CBN_STATUS_OK && question.quantize_family)
        status = cbn__route_resolve(question.quantize_family, families, runtime->family_count, policy, disable, enable,
                                    profile->strict_route != 0, &question.quantize_route, err);
    if (status == CBN_STATUS_OK)
        *ret_question = question;
    return status;
}

static bool is_cached(struct cbn_runtime *runtime, const struct cbn__spec *spec)
{
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(spec, &record);
    const struct cbn__compiler_rule any = {0};
    return !record.failed && cbn__cabinet_probe(runtime->cabinet, cbn__buf_blob(&record), &any) == CBN__LOOKUP_HIT;
}

static void tell_verdicts(const struct cbn__question *question, const struct cbn__decision *decision,
                          struct cbn_explanation *explanation)
{
    explanation->candidate_count = question->family->candidate_count;
    for (uint32_t i = 0; i < explanation->candidate_count; i++) {
        struct cbn_candidate_verdict *verdict = &explanation->candidates[i];
        (void)snprintf(verdict->kernel, sizeof(verdict->kernel), "%s", question->family->candidates[i].template.name);
        verdict->verdict = (uint32_t)decision->candidates[i].verdict;
        if (decision->candidates[i].verdict != CBN_VERDICT_REFUSED)
            continue;
        cbn__guard_format(question->family, decision, i, verdict->guard, sizeof(verdict->guard));
        verdict->has_value = decision->candidates[i].refusal == CBN__REFUSAL_GUARD;
        verdict->value = decision->candidates[i].value;
    }
}

static void tell_chosen(struct cbn_runtime *runtime, const struct cbn__question *question, uint32_t arch,
                        const struct cbn__candidate *candidate, struct cbn_explanation *explanation)
{
    struct cbn__spec spec = {.template = &candidate->template, .arch = arch};
    cbn__params_resolve(candidate, question->facts, spec.params);
    cbn__spec_describe(&spec, &explanation->spec);
    explanation->chosen = 1;
    if (!candidate->template.source)
        return;
    bool quantizes_first = false;
    struct cbn__choice quantizer;
    if (cbn__question_quantizer(question, &spec, candidate, question->facts, &quantizes_first, &quantizer, NULL) !=
        CBN_STATUS_OK)
        return; /* the call is UNSUPPORTED: every fp8_quantize is switched off */
    explanation->launches = 1;
    explanation->cached = is_cached(runtime, &spec);
    struct cbn_geometry geometry = {0};
    candidate->geometry(spec.params, question->facts, &geometry);
    explanation->workspace_bytes = geometry.workspace_bytes;
    if (!quantizes_first)
        return;
    explanation->launches = 2;
    explanation->cached = explanation->cached && is_cached(runtime, &quantizer.spec);
    explanation->quantizes_first = 1;
    cbn__spec_describe(&quantizer.spec, &explanation->quantize_spec);
}

int32_t cbn_explain(struct cbn_runtime *runtime, const struct cbn_query *given, struct cbn_explanation *ret_explanation,
                    struct cbn_error *err)
{
    if (!runtime || !ret_explanation)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "ret_explanation" : "runtime");
    struct cbn_query query;
    struct cbn__question question;
    int32_t status = cbn__query_take(given, &query, err);
    if (status == CBN_STATUS_OK)
        status = cbn__question_resolve(runtime, &query, &question, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__decision decision;
    cbn__decide(question.family, question.facts, &question.route, &decision);
    struct cbn_explanation explanation = {.size = sizeof(explanation), .noop = decision.noop};
    tell_verdicts(&question, &decision, &explanation);
    if (!decision.noop && decision.chosen >= 0)
        tell_chosen(runtime, &question, query.arch, &question.family->candidates[decision.chosen], &explanation);
    cbn__args_give(ret_explanation, &explanation, sizeof(explanation));
    return CBN_STATUS_OK;
}

int32_t cbn__question_enumerate(const struct cbn__question *question, const struct cbn_query *query, cbn__spec_fn spec,
                                void *user, struct cbn_error *err)
{
    if (!question->own && query->n == 0 && query->k == 0)
        return cbn__enumerate_all(question->family, question->facts, question->shape_facts, &question->route, spec,
                                  user, err);
    int32_t status =
        cbn__enumerate_sweep(question->family, question->facts, query->m, &question->route, spec, user, err);
    if (status != CBN_STATUS_OK || question->own || !query->lda || query->m <= 1)
        return status;
    /* One row has no row stride: its facts differ from those of many rows at a given lda. */
    struct cbn_query single = *query;
    int64_t facts[CBN_FACTS_MAX];
    uint32_t shape_facts = 0;
    single.m = 1;
    status = cbn__builtin_facts(&single, facts, &shape_facts, err);
    return status == CBN_STATUS_OK
               ? cbn__enumerate_sweep(question->family, facts, 1, &question->route, spec, user, err)
               : status;
}

int32_t cbn_enumerate(struct cbn_runtime *runtime, const struct cbn_query *given, cbn_spec_fn spec, void *user,
                      struct cbn_error *err)
{
    if (!runtime || !spec)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "spec" : "runtime");
    struct cbn_query query;
    struct cbn__question question;
    int32_t status = cbn__query_take(given, &query, err);
    if (status == CBN_STATUS_OK)
        status = cbn__question_resolve(runtime, &query, &question, err);
    struct cbn__spec_set set = {0};
    if (status == CBN_STATUS_OK)
        status = cbn__spec_set_fill(runtime, &query, 1, &set, err);
    bool stopped = false;
    for (uint32_t i = 0; i < set.count && !stopped; i++) {
        struct cbn_spec described;
        if (!set.items[i].candidate)
            continue; /* an interval that no candidate takes */
        cbn__spec_describe(&set.items[i].spec, &described);
        stopped = spec(user, &described) != 0;
    }
    cbn__spec_set_done(&set);
    return status;
}
