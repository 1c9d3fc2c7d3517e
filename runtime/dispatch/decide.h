/*
 * The one decision behind calls, explain, warm, check and tests. Pure: no clock, no environment, no device.
 */
#ifndef CBN_DISPATCH_DECIDE_H
#define CBN_DISPATCH_DECIDE_H

#include <cubinet/route.h>

#include "dispatch/family.h"

/* Options that are resolved once per runtime or query, not per call. */
struct cbn__route {
    uint32_t policy;        /* index into the family's policies */
    uint32_t disabled_mask; /* bit i: candidate i is switched off */
    uint32_t enabled_mask;  /* bit i: candidate i, off by default, is switched on */
    bool strict;
};

/*
 * policy NULL: "default". INVALID names a policy or candidate that no registered family has (families: all of them,
 * since a comma list may name another family's candidate); a policy that only another family has leaves this one at
 * its default. Blanks round a name and empty list items are ignored.
 */
int32_t cbn__route_resolve(const struct cbn__family *family, const struct cbn__family *const *families,
                           uint32_t family_count, const char *policy, const char *disable, const char *enable,
                           bool strict, struct cbn__route *ret_route, struct cbn_error *err);

/* Why a candidate was refused, in the order in which it is asked. */
enum cbn__refusal {
    CBN__REFUSAL_NONE = 0,
    CBN__REFUSAL_DISABLED, /* by option */
    CBN__REFUSAL_OFF,      /* off unless enabled by name */
    CBN__REFUSAL_POLICY,   /* the policy does not name it */
    CBN__REFUSAL_GUARD,    /* guard points at it */
    CBN__REFUSAL_STRICT    /* a fallback under strict_route */
};

struct cbn__decision {
    bool noop;
    int chosen; /* candidate index, -1: none */
    uint32_t policy;
    struct {
        enum cbn_verdict verdict;
        enum cbn__refusal refusal;
        const struct cbn__guard *guard;
        int64_t value;
    } candidates[CBN_CANDIDATES_MAX];
};

/* Policy guards are asked before the candidate's own. Stops at the first candidate that takes the facts. */
void cbn__decide(const struct cbn__family *family, const int64_t *facts, const struct cbn__route *route,
                 struct cbn__decision *ret_decision);

/* What the route alone says of a candidate, before any guard is asked: NONE, DISABLED, OFF or POLICY. */
enum cbn__refusal cbn__route_refusal(const struct cbn__candidate *candidate, uint32_t index,
                                     const struct cbn__route *route);

/* The parameters' values of a candidate under these facts. */
void cbn__params_resolve(const struct cbn__candidate *candidate, const int64_t *facts, int64_t *ret_params);

/* "n % 64 == 0", "m in [1,32)", "arch == sm_90a", "enabled", "policy reference": what explain prints. */
void cbn__guard_format(const struct cbn__family *family, const struct cbn__decision *decision, uint32_t candidate,
                       char *ret_text, size_t text_bytes);

/* Why no candidate takes a call, for a person: "swap_ab wants n % 64 == 0 (it is 33); generic is switched off". */
void cbn__refusals_format(const struct cbn__family *family, const struct cbn__decision *decision, char *ret_text,
                          size_t text_bytes);

/* Told once per distinct (candidate, params); facts: a representative. Non-zero stops. */
typedef int (*cbn__spec_fn)(void *user, const struct cbn__candidate *candidate, const int64_t *params,
                            const int64_t *facts);

/*
 * Every specialisation that facts can reach with the sweep fact in [0, max]: the decision is evaluated at every
 * breakpoint that guards and buckets have on it, which is complete because nothing else reads it.
 */
int32_t cbn__enumerate_sweep(const struct cbn__family *family, const int64_t *facts, int64_t max,
                             const struct cbn__route *route, cbn__spec_fn spec, void *user, struct cbn_error *err);

/* Told once per interval [first, last] of the sweep fact. Non-zero stops. */
typedef int (*cbn__gap_fn)(void *user, int64_t first, int64_t last, const struct cbn__decision *decision);

/* What the sweep leaves out: the intervals in [0, max] that are no noop and that no candidate takes. */
int32_t cbn__enumerate_gaps(const struct cbn__family *family, const int64_t *facts, int64_t max,
                            const struct cbn__route *route, cbn__gap_fn gap, void *user, struct cbn_error *err);

/*
 * Every specialisation that any shape can reach: shape_facts (a bit mask of fact indices) are free in [0, INT64_MAX],
 * the others fixed. Each candidate is asked by itself, so that the answer may hold a specialisation which an earlier
 * candidate always takes away, and never lacks one. UNSUPPORTED where a parameter takes a free fact's own value;
 * LIMIT where the free buckets make too many combinations.
 */
int32_t cbn__enumerate_all(const struct cbn__family *family, const int64_t *facts, uint32_t shape_facts,
                           const struct cbn__route *route, cbn__spec_fn spec, void *user, struct cbn_error *err);

#endif
