/*
 * Families as the dispatcher holds them: names resolved to indices, everything owned.
 */
#ifndef CBN_DISPATCH_FAMILY_H
#define CBN_DISPATCH_FAMILY_H

#include "jit/spec.h"

struct cbn__guard {
    uint32_t fact; /* index into the family's facts */
    uint32_t relation;
    int64_t value, value_end;
};

struct cbn__param {
    uint32_t source;
    uint32_t fact;
    int64_t value;
    struct cbn_bucket *buckets;
    uint32_t bucket_count;
};

#define CBN__POLICIES_MAX 8

struct cbn__rule {
    bool present; /* the policy names this candidate */
    uint32_t guard_count;
    struct cbn__guard *guards;
};

struct cbn__candidate {
    struct cbn__template template; /* template.source NULL: guards without a template */
    uint32_t guard_count;
    struct cbn__guard *guards;
    struct cbn__param *params; /* template.param_count of them */
    int pdl_param;             /* index of PDL, -1: none; never -1 with CBN_CANDIDATE_PDL */
    cbn_geometry_fn geometry;
    struct cbn__rule rules[CBN__POLICIES_MAX];
};

/*
 * Facts that follow from the sweep fact and others. fill: writes them, and tells values of the sweep fact apart only by
 * ceil(value / step), and none from end on. can_be: whether facts that are put together freely could come from fill.
 * fill NULL: there are none. Only a built-in family has some.
 */
struct cbn__derivation {
    void (*fill)(int64_t *facts);
    bool (*can_be)(const int64_t *facts);
    int64_t step, end;
};

struct cbn__family {
    char *name;
    char **facts;
    uint32_t fact_count;
    uint32_t sweep_fact;
    struct cbn__derivation derive;
    int arch_fact, sms_fact, max_sms_fact, pdl_fact; /* index, -1: the family has none */
    uint32_t noop_count;
    struct cbn__guard *noops;
    uint32_t candidate_count;
    struct cbn__candidate *candidates;
    uint32_t policy_count;
    char *policies[CBN__POLICIES_MAX];
};

/*
 * Copies and checks a public description. digest: the embedded templates' for a built-in, NULL for a caller's own.
 * Every family has a policy "default": where no rule names it, it takes each candidate as its own guards do.
 * INVALID names the field; LIMIT names a count above its bound. Whether the family's name is free, the caller knows.
 */
int32_t cbn__family_create(const struct cbn_family *description, const struct cbn__hash *digest,
                           struct cbn__family **ret_family, struct cbn_error *err);
void cbn__family_destroy(struct cbn__family *family);
/* -1 when absent. */
int cbn__family_fact(const struct cbn__family *family, const char *name);
/* arch, sms, max_sms or pdl: written by Cubinet, not by the call. */
bool cbn__family_is_common(const struct cbn__family *family, uint32_t fact);
int cbn__family_candidate(const struct cbn__family *family, const char *name);
int cbn__family_policy(const struct cbn__family *family, const char *name);

#endif
