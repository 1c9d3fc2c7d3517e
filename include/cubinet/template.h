/*
 * Registration: families of candidates, each a template with parameter ranges and guards, all of it data.
 * The built-in families go through the same call as a caller's own.
 *
 * A decision is a pure function of a vector of facts (64-bit integers, named by the family) and a policy. Facts that
 * every family has are written by Cubinet: "arch" (CBN_ARCH), "sms", "max_sms", "pdl" (0 where the architecture has
 * none). The others come from the call: struct cbn_fact in cbn_query and cbn_launch_args.
 */
#ifndef CUBINET_TEMPLATE_H
#define CUBINET_TEMPLATE_H

#include <cubinet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cbn_runtime;

/* sm_90a is CBN_ARCH(90, 'a'), sm_89 is CBN_ARCH(89, 0). Numbers of one compute capability sort by suffix. */
#define CBN_ARCH(capability, suffix) ((uint32_t)(capability)*256u + (uint32_t)(suffix))

/* X(number, NAME, sign as explain prints it) */
#define CBN_RELATION_MAP(X)                                                                                            \
    X(1, EQ, "==")                                                                                                     \
    X(2, NE, "!=")                                                                                                     \
    X(3, LT, "<")                                                                                                      \
    X(4, GE, ">=")                                                                                                     \
    X(5, IN_RANGE, "in") /* lo <= fact < hi */                                                                         \
    X(6, MULTIPLE_OF, "% ")

enum cbn_relation {
#define CBN_X(number, name, sign) CBN_RELATION_##name = number,
    CBN_RELATION_MAP(CBN_X)
#undef CBN_X
};

/* A fact by name, for a call or a query of a family of the caller's own. */
struct cbn_fact {
    const char *name;
    int64_t value;
};

/* fact relation value; IN_RANGE is [value, value_end), MULTIPLE_OF is fact % value == 0. */
struct cbn_guard {
    const char *fact;
    uint32_t relation;
    uint32_t reserved;
    int64_t value;
    int64_t value_end;
};

/* The first step whose upper bound (inclusive) is not below the fact gives the parameter's value. */
struct cbn_bucket {
    int64_t upper; /* INT64_MAX in the last */
    int64_t value;
};

enum cbn_param_source { CBN_PARAM_CONST = 1, CBN_PARAM_FACT = 2, CBN_PARAM_BUCKET = 3 };

/* A template parameter: becomes "#define NAME value" ahead of the source, and a field of the key. */
struct cbn_param {
    const char *name; /* [A-Z][A-Z0-9_]* */
    uint32_t source;  /* enum cbn_param_source */
    uint32_t bucket_count;
    const char *fact; /* FACT, BUCKET */
    int64_t value;    /* CONST */
    const struct cbn_bucket *buckets;
};

/* How a call maps to a launch. Filled by a candidate's geometry function from parameters and facts; pure. */
struct cbn_geometry {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3];        /* all 0 or 1: no cluster */
    uint32_t shared_bytes;      /* dynamic */
    uint64_t workspace_bytes;   /* device memory the launch needs */
};

/* params in the order of the candidate's table, facts in the order of the family's. */
typedef void (*cbn_geometry_fn)(const int64_t *params, const int64_t *facts, struct cbn_geometry *ret_geometry);

struct cbn_header {
    const char *name; /* as in #include "name" */
    const char *text;
};

/* flags of cbn_candidate */
#define CBN_CANDIDATE_OFF 1u      /* off unless enabled by name: never run on hardware of its architecture */
#define CBN_CANDIDATE_FALLBACK 2u /* refused under strict_route */
#define CBN_CANDIDATE_PDL 4u      /* has parameter PDL; its PTX must hold griddepcontrol.wait where PDL is 1 */

struct cbn_candidate {
    const char *name;   /* [a-z][a-z0-9_]* , unique in the family */
    const char *source; /* CUDA C++ text that needs no toolkit header; NULL: guards without a template */
    const char *source_name;
    const char *symbol; /* extern "C" kernel */
    const struct cbn_header *headers;
    uint32_t header_count;
    uint32_t flags;
    const struct cbn_param *params;
    uint32_t param_count;
    uint32_t guard_count;
    const struct cbn_guard *guards; /* what the template can do at all */
    cbn_geometry_fn geometry;
    uint32_t argument_bytes; /* size of the one struct the kernel takes by value */
    uint32_t reserved;
};

/* Policies add guards to candidates. A candidate that a policy does not name is refused by it. */
struct cbn_policy_rule {
    const char *policy;
    const char *candidate;
    const struct cbn_guard *guards;
    uint32_t guard_count;
    uint32_t reserved;
};

/* Candidates in order of preference; the first whose guards all hold is chosen. */
struct cbn_family {
    uint32_t size;
    uint32_t argument_layout; /* version of the argument struct; in the key */
    const char *name;
    const char *const *facts; /* names; the four common ones included where guards or geometry use them */
    uint32_t fact_count;
    uint32_t noop_count;
    const struct cbn_guard *noops; /* any that holds: success, nothing launched */
    const char *sweep_fact;        /* "m": may only meet LT, GE, IN_RANGE, EQ and buckets; none of the common four */
    const struct cbn_candidate *candidates;
    uint32_t candidate_count;
    uint32_t rule_count;
    const struct cbn_policy_rule *rules;
};

#define CBN_CANDIDATES_MAX 16
#define CBN_PARAMS_MAX 24
#define CBN_FACTS_MAX 32
#define CBN_GUARDS_MAX 24

/*
 * Adds a family; everything is copied. Refused (INVALID, naming the field): a name in use, a guard or bucket on an
 * unknown fact, a common fact to sweep, MULTIPLE_OF or NE on the sweep fact, buckets out of order, a rule for no
 * candidate, PDL without the parameter. Must come before the family's first use. thread: owner; blocks: never;
 * capture: ok
 *
 * A cubin must follow from its key, so a source and its headers may read nothing but each other. Refused too, naming
 * the file and the line: an #include or __has_include that does not name one of the candidate's headers, letter for
 * letter, as "name" or <name> (a macro in its place is refused); #include_next, #import, #embed, __has_include_next,
 * __has_embed; __DATE__, __TIME__, __TIMESTAMP__. Comments and literals may hold them; a group that #if leaves out may
 * not. Names put together by ## are not seen: do not make these that way. At most 64 headers a candidate (LIMIT).
 */
CBN_EXPORT int32_t cbn_family_register(struct cbn_runtime *runtime, const struct cbn_family *family,
                                       struct cbn_error *err);

#ifdef __cplusplus
}
#endif

#endif
