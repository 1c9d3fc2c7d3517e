/*
 * Families drawn from a seed, and an oracle that reads the public description itself: no code is shared with the
 * dispatcher. Facts: "m" is swept; "n", "k" and "mode" may also meet NE and MULTIPLE_OF.
 */
#ifndef CBN_TEST_RANDOM_FAMILY_H
#define CBN_TEST_RANDOM_FAMILY_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cubinet/template.h>

#include "unit/random.h"

enum { RF_M, RF_N, RF_K, RF_MODE, RF_FACTS };

static const char *const rf_facts[RF_FACTS] = {"m", "n", "k", "mode"};

#define RF_CANDIDATES 6
#define RF_GUARDS 4
#define RF_PARAMS 4
#define RF_BUCKETS 5

struct rf {
    uint64_t state;
    struct cbn_family family;
    char names[RF_CANDIDATES][8];
    struct cbn_candidate candidates[RF_CANDIDATES];
    struct cbn_guard guards[RF_CANDIDATES][RF_GUARDS];
    struct cbn_param params[RF_CANDIDATES][RF_PARAMS];
    struct cbn_bucket buckets[RF_CANDIDATES][RF_PARAMS][RF_BUCKETS];
    struct cbn_guard noops[2];
    struct cbn_policy_rule rules[2 * RF_CANDIDATES];
    struct cbn_guard rule_guards[2 * RF_CANDIDATES][RF_GUARDS];
};

/* Small, round, middling and enormous values: what thresholds look like, and what breaks them. */
static int64_t rf_value(uint64_t *state)
{
    switch (random_below(state, 8)) {
    case 0:
        return random_below(state, 4) - 1;
    case 1:
        return (int64_t)1 << random_below(state, 13);
    case 2:
        return INT64_MAX - random_below(state, 2);
    case 3:
        return random_below(state, INT64_C(1) << 40);
    default:
        return random_below(state, 5000);
    }
}

static struct cbn_guard rf_guard(uint64_t *state)
{
    static const uint32_t for_m[] = {CBN_RELATION_LT, CBN_RELATION_GE, CBN_RELATION_IN_RANGE, CBN_RELATION_EQ};
    struct cbn_guard guard = {.fact = rf_facts[RF_M], .relation = for_m[random_below(state, 4)]};
    if (random_below(state, 3) == 0) {
        guard.fact = rf_facts[1 + random_below(state, RF_FACTS - 1)];
        guard.relation = random_below(state, 2) ? CBN_RELATION_MULTIPLE_OF : (uint32_t)(1 + random_below(state, 6));
    }
    guard.value = rf_value(state);
    if (guard.relation == CBN_RELATION_MULTIPLE_OF)
        guard.value = (int64_t)1 << random_below(state, 5);
    if (guard.relation == CBN_RELATION_IN_RANGE) {
        if (guard.value == INT64_MAX)
            guard.value--;
        guard.value_end = guard.value + 1;
        if (guard.value < INT64_MAX / 2)
            guard.value_end += random_below(state, 3000);
    }
    return guard;
}

static uint32_t rf_guards(uint64_t *state, struct cbn_guard *guards, int64_t max)
{
    uint32_t count = (uint32_t)random_below(state, 1 + random_below(state, max + 1));
    for (uint32_t i = 0; i < count; i++)
        guards[i] = rf_guard(state);
    return count;
}

static void rf_param(uint64_t *state, struct cbn_param *param, struct cbn_bucket *buckets)
{
    *param = (struct cbn_param){.source = (uint32_t)(1 + random_below(state, 4)), .value = random_below(state, 3)};
    if (param->source == CBN_PARAM_FACT)
        param->fact = rf_facts[1 + random_below(state, RF_FACTS - 1)];
    if (param->source < CBN_PARAM_BUCKET)
        return;
    param->source = CBN_PARAM_BUCKET;
    param->fact = rf_facts[random_below(state, 2) ? 0 : random_below(state, RF_FACTS)];
    param->buckets = buckets;
    int64_t upper = -1;
    for (int64_t steps = random_below(state, RF_BUCKETS); steps > 0; steps--) {
        upper += 1 + random_below(state, 1500);
        buckets[param->bucket_count++] = (struct cbn_bucket){upper, random_below(state, 4)};
    }
    buckets[param->bucket_count++] = (struct cbn_bucket){INT64_MAX, random_below(state, 4)};
}

static void rf_candidate(struct rf *rf, int64_t index)
{
    static const char *const params[RF_PARAMS] = {"A", "B", "C", "D"};
    struct cbn_candidate *candidate = &rf->candidates[index];
    (void)snprintf(rf->names[index], sizeof(rf->names[index]), "c%u", (unsigned)(index & 7));
    candidate->name = rf->names[index];
    candidate->flags = (uint32_t)random_below(&rf->state, 4) & (CBN_CANDIDATE_OFF | CBN_CANDIDATE_FALLBACK);
    candidate->guards = rf->guards[index];
    candidate->guard_count = rf_guards(&rf->state, rf->guards[index], RF_GUARDS);
    candidate->params = rf->params[index];
    candidate->param_count = (uint32_t)random_below(&rf->state, RF_PARAMS + 1);
    for (uint32_t i = 0; i < candidate->param_count; i++) {
        rf_param(&rf->state, &rf->params[index][i], rf->buckets[index][i]);
        rf->params[index][i].name = params[i];
    }
}

static void rf_rules(struct rf *rf, const char *policy)
{
    for (uint32_t i = 0; i < rf->family.candidate_count; i++) {
        if (random_below(&rf->state, 4) == 0)
            continue;
        uint32_t r = rf->family.rule_count++;
        rf->rules[r] = (struct cbn_policy_rule){.policy = policy, .candidate = rf->names[i]};
        rf->rules[r].guards = rf->rule_guards[r];
        rf->rules[r].guard_count = rf_guards(&rf->state, rf->rule_guards[r], 2);
    }
}

/* A family of guards without templates: nothing in it is compiled. */
static void rf_make(struct rf *rf, uint64_t seed)
{
    memset(rf, 0, sizeof(*rf));
    rf->state = seed;
    rf->family = (struct cbn_family){.size = sizeof(rf->family), .name = "drawn", .facts = rf_facts};
    rf->family.fact_count = RF_FACTS;
    rf->family.sweep_fact = rf_facts[RF_M];
    rf->family.noops = rf->noops;
    rf->family.noop_count = rf_guards(&rf->state, rf->noops, 2);
    for (uint32_t i = 0; i < rf->family.noop_count && random_below(&rf->state, 8); i++)
        rf->noops[i] = (struct cbn_guard){rf_facts[random_below(&rf->state, 3)], CBN_RELATION_EQ, 0, i, 0};
    rf->family.candidates = rf->candidates;
    rf->family.candidate_count = (uint32_t)(1 + random_below(&rf->state, RF_CANDIDATES));
    for (uint32_t i = 0; i < rf->family.candidate_count; i++)
        rf_candidate(rf, i);
    rf->family.rules = rf->rules;
    rf_rules(rf, "default");
    rf_rules(rf, "other");
}

static bool rf_holds(const struct cbn_guard *guard, const int64_t *facts)
{
    int64_t value = 0;
    for (int i = 0; i < RF_FACTS; i++)
        if (strcmp(rf_facts[i], guard->fact) == 0)
            value = facts[i];
    return (guard->relation == CBN_RELATION_EQ && value == guard->value) ||
           (guard->relation == CBN_RELATION_NE && value != guard->value) ||
           (guard->relation == CBN_RELATION_LT && value < guard->value) ||
           (guard->relation == CBN_RELATION_GE && value >= guard->value) ||
           (guard->relation == CBN_RELATION_IN_RANGE && guard->value <= value && value < guard->value_end) ||
           (guard->relation == CBN_RELATION_MULTIPLE_OF && value % guard->value == 0);
}

static bool rf_all_hold(const struct cbn_guard *guards, uint32_t count, const int64_t *facts)
{
    bool all = true;
    for (uint32_t i = 0; i < count; i++)
        all = all && rf_holds(&guards[i], facts);
    return all;
}

static bool rf_noop(const struct rf *rf, const int64_t *facts)
{
    bool any = false;
    for (uint32_t i = 0; i < rf->family.noop_count; i++)
        any = any || rf_holds(&rf->noops[i], facts);
    return any;
}

/* Does this candidate, asked alone, take the facts? A family without a rule of "default" has one without guards. */
static bool rf_takes(const struct rf *rf, uint32_t index, const int64_t *facts, const char *policy, uint32_t disabled,
                     uint32_t enabled, bool strict)
{
    const struct cbn_candidate *candidate = &rf->candidates[index];
    bool named = false, stated = false;
    for (uint32_t r = 0; r < rf->family.rule_count; r++) {
        const struct cbn_policy_rule *rule = &rf->rules[r];
        stated = stated || strcmp(rule->policy, "default") == 0;
        if (strcmp(rule->policy, policy) == 0 && strcmp(rule->candidate, candidate->name) == 0)
            named = rf_all_hold(rule->guards, rule->guard_count, facts);
    }
    if (!stated && strcmp(policy, "default") == 0)
        named = true;
    bool off = (candidate->flags & CBN_CANDIDATE_OFF) && !(enabled >> index & 1);
    bool fallback = strict && (candidate->flags & CBN_CANDIDATE_FALLBACK);
    return named && !off && !fallback && !(disabled >> index & 1) &&
           rf_all_hold(candidate->guards, candidate->guard_count, facts);
}

/* -1: none, -2: noop. */
static int rf_choose(const struct rf *rf, const int64_t *facts, const char *policy, uint32_t disabled, uint32_t enabled,
                     bool strict)
{
    if (rf_noop(rf, facts))
        return -2;
    for (uint32_t i = 0; i < rf->family.candidate_count; i++)
        if (rf_takes(rf, i, facts, policy, disabled, enabled, strict))
            return (int)i;
    return -1;
}

static void rf_params(const struct rf *rf, uint32_t index, const int64_t *facts, int64_t *ret_params)
{
    for (uint32_t i = 0; i < rf->candidates[index].param_count; i++) {
        const struct cbn_param *param = &rf->params[index][i];
        int64_t value = 0;
        for (int f = 0; f < RF_FACTS && param->fact; f++)
            if (strcmp(rf_facts[f], param->fact) == 0)
                value = facts[f];
        ret_params[i] = param->source == CBN_PARAM_CONST ? param->value : value;
        for (uint32_t b = param->bucket_count; b > 0; b--)
            if (value <= param->buckets[b - 1].upper)
                ret_params[i] = param->buckets[b - 1].value;
    }
}

#endif
