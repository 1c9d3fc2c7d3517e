/*
 * Routes: what the dispatcher would choose, every specialisation a shape can reach, and warming or checking them.
 * Nothing here launches anything or needs a GPU.
 */
#ifndef CUBINET_ROUTE_H
#define CUBINET_ROUTE_H

#include <cubinet/template.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * "sm_90a" to CBN_ARCH(90, 'a'). A name whose kernels need the suffix ("sm_90") is INVALID and the message names the
 * right one. thread: any; blocks: never; capture: ok
 */
CBN_EXPORT int32_t cbn_arch_parse(const char *name, uint32_t *ret_arch, struct cbn_error *err);

/* Writes "sm_90a" and a NUL; name_bytes >= 16. */
CBN_EXPORT void cbn_arch_format(uint32_t arch, char *ret_name, size_t name_bytes);

/*
 * A question about one call, or about every call with m in [0, m]. Fields an op does not know must be 0.
 * A family of the caller's own: m is its sweep fact, facts are all its others but the common four (arch, sms, max_sms
 * and pdl come from arch and profile); n, k, groups, lda are 0, and the profile's dtypes and formats are not looked at.
 */
struct cbn_query {
    uint32_t size;
    uint32_t arch;
    const char *op;             /* "fp8_gemm", "fp8_quantize", ... */
    int64_t m;                  /* fp8_gemm: M. fp8_quantize: T */
    int64_t n, k;               /* fp8_gemm: N, K. fp8_quantize: k = elements of the last dimension (K or D) */
    int64_t groups;             /* fp8_quantize: G, 0 = flat. fp8_einsum: G. fp8_grouped_gemm: experts */
    int64_t lda;                /* row stride of A or x in elements; 0: k */
    struct cbn_profile profile;
    const struct cbn_fact *facts; /* of a family of the caller's own; borrowed during the call */
    uint32_t fact_count;
    uint32_t reserved;
};

#define CBN_QUERY_INIT {sizeof(struct cbn_query), 0, NULL, 0, 0, 0, 0, 0, CBN_PROFILE_INIT, NULL, 0, 0}

enum cbn_verdict { CBN_VERDICT_REFUSED = 0, CBN_VERDICT_CHOSEN = 1, CBN_VERDICT_NOT_REACHED = 2 };

#define CBN_TEXT_BYTES 64
#define CBN_KEY_TEXT_BYTES 33
#define CBN_SPEC_TEXT_BYTES 512

struct cbn_candidate_verdict {
    char kernel[CBN_TEXT_BYTES];
    uint32_t verdict;           /* enum cbn_verdict */
    uint32_t has_value;
    char guard[CBN_TEXT_BYTES]; /* "n % 64 == 0", "enabled", "policy", "template"; "" unless refused */
    int64_t value;              /* what the guard saw */
};

/* One specialisation: a template cut for one set of parameters and one architecture. */
struct cbn_spec {
    char op[CBN_TEXT_BYTES];
    char kernel[CBN_TEXT_BYTES];
    char arch[16];
    char key[CBN_KEY_TEXT_BYTES]; /* 32 hex digits; "" for a candidate without a template */
    char text[CBN_SPEC_TEXT_BYTES]; /* "fp8_gemm/swap_ab sm_90a IN=1 OUT=1 ..." */
    uint32_t param_count;
    struct {
        char name[32];
        int64_t value;
    } params[CBN_PARAMS_MAX];
};

struct cbn_explanation {
    uint32_t size;
    uint32_t noop;      /* 1: nothing to launch */
    uint32_t chosen;    /* 1: spec holds the chosen candidate */
    uint32_t cached;    /* 1: the entry is in a layer of this runtime's cabinet */
    uint32_t launches;
    uint32_t candidate_count;
    uint64_t workspace_bytes;
    struct cbn_spec spec;
    struct cbn_candidate_verdict candidates[CBN_CANDIDATES_MAX];
    uint32_t quantizes_first; /* 1: the call launches fp8_quantize as in quantize_spec and then spec; cached: both */
    uint32_t reserved;
    struct cbn_spec quantize_spec;
};

/*
 * The dispatcher's own decision. ret_explanation->size is set by the caller. No candidate: OK with noop and chosen
 * both 0. Statuses: OK, INVALID, UNSUPPORTED (an op without a family). thread: any; blocks: disk (for `cached`);
 * capture: ok
 */
CBN_EXPORT int32_t cbn_explain(struct cbn_runtime *runtime, const struct cbn_query *query,
                               struct cbn_explanation *ret_explanation, struct cbn_error *err);

/* Return non-zero to stop; enumeration then returns OK. */
typedef int (*cbn_spec_fn)(void *user, const struct cbn_spec *spec);

/*
 * Every specialisation that query can reach for m in [0, query->m], each once per call; those of fp8_quantize that an
 * fp8_gemm launches first are among them. With query->n == query->k == 0
 * every specialisation that any shape can reach under the profile (built-in families; a caller's own is asked by its
 * facts). A candidate without a template is told with an
 * empty key. thread: any; blocks: never; capture: ok
 */
CBN_EXPORT int32_t cbn_enumerate(struct cbn_runtime *runtime, const struct cbn_query *query, cbn_spec_fn spec,
                                 void *user, struct cbn_error *err);

enum cbn_warm_outcome {
    CBN_WARM_PRESENT = 1,   /* in a layer already */
    CBN_WARM_COMPILED = 2,  /* built by this call */
    CBN_WARM_FAILED = 3,    /* err and log say why */
    CBN_WARM_MISSING = 4,   /* cbn_check only */
    CBN_WARM_UNCOVERED = 5, /* no template, or no family for the op */
    CBN_WARM_OTHER = 6      /* built by another process meanwhile */
};

/* Told once per specialisation, from the calling thread, in no fixed order. Pointers live during the call. */
struct cbn_warm_event {
    uint32_t size;
    uint32_t outcome; /* enum cbn_warm_outcome */
    uint32_t done;    /* specialisations finished, this one included */
    uint32_t total;
    const struct cbn_spec *spec; /* NULL when an op has no family */
    const struct cbn_query *query;
    const char *log;             /* FAILED: what NVRTC said */
    const struct cbn_error *error;
};

typedef void (*cbn_warm_fn)(void *user, const struct cbn_warm_event *event);

struct cbn_warm_options {
    uint32_t size;
    uint32_t jobs; /* builds at once, each in a child process when the runtime has a builder_path; 0: one a core */
    cbn_warm_fn event;
    void *user;
};

struct cbn_warm_result {
    uint32_t size;
    uint32_t requested, already, compiled, failed, uncovered, missing;
    uint64_t wall_ms;
};

/*
 * Enumerates every query, drops duplicates, and builds what no layer holds into the overlay. The result is filled
 * on failure too. Statuses: OK; PARTIAL (some builds failed); NO_COMPILER; UNTRUSTED, IO (nowhere to store).
 * thread: any; blocks: compile; capture: no
 */
CBN_EXPORT int32_t cbn_warm(struct cbn_runtime *runtime, const struct cbn_query *queries, uint32_t query_count,
                            const struct cbn_warm_options *options, struct cbn_warm_result *ret_result,
                            struct cbn_error *err);

/*
 * The same enumeration, building nothing: tells PRESENT, MISSING or UNCOVERED; FAILED where a look-up could not be made
 * (then TIMEOUT or IO is returned). thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_check(struct cbn_runtime *runtime, const struct cbn_query *queries, uint32_t query_count,
                             const struct cbn_warm_options *options, struct cbn_warm_result *ret_result,
                             struct cbn_error *err);

/*
 * Disk (or compile) to device: loads every specialisation of the queries into the calling thread's current context.
 * thread: any; blocks: compile; capture: no
 */
CBN_EXPORT int32_t cbn_prepare(struct cbn_runtime *runtime, const struct cbn_query *queries, uint32_t query_count,
                               struct cbn_warm_result *ret_result, struct cbn_error *err);

/* One case of cbn_selftest. */
struct cbn_selftest_case {
    uint32_t size;
    uint32_t ok;
    const char *text;   /* shape, M and specialisation */
    double max_rel_err; /* worst row's error of a GEMM; count of unequal bytes for a quantisation */
};

typedef void (*cbn_selftest_fn)(void *user, const struct cbn_selftest_case *result);

/*
 * Runs every candidate of the device's architecture against the CPU reference. op NULL: all.
 * Statuses: OK; PARTIAL (a case failed); NO_DRIVER. thread: owner; blocks: compile; capture: no
 */
CBN_EXPORT int32_t cbn_selftest(struct cbn_runtime *runtime, const char *op, cbn_selftest_fn result, void *user,
                                struct cbn_error *err);

#ifdef __cplusplus
}
#endif

#endif
