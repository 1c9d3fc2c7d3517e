/*
 * fp8_quantize as data: facts, candidates, parameters, guards, policies, geometry. No decision is made here.
 */
#include <cubinet/types.h>

#include "dispatch/builtin.h"
#include "dispatch/geometry.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

_Static_assert(sizeof(struct cbn__quantize_args) == 112, "argument layout 1");
_Static_assert(offsetof(struct cbn__quantize_args, t) == 32 && offsetof(struct cbn__quantize_args, s_s) == 104,
               "argument layout 1");

#define WORD_ELEMENTS (4 * CBN_GROUP_SIZE) /* one warp's unit: the groups of one packed word */
#define WARP_THREADS 32

static const char *const facts[] = {
#define CBN__X(name) #name,
    CBN__QUANTIZE_FACT_MAP(CBN__X)
#undef CBN__X
};

#define FACT_PARAM(parameter, fact_name)                                                                               \
    {                                                                                                                  \
        .name = parameter, .source = CBN_PARAM_FACT, .fact = fact_name                                                 \
    }
#define COMMON_PARAMS                                                                                                  \
    FACT_PARAM("IN", "in"), FACT_PARAM("SCALE", "scale"), FACT_PARAM("POW2", "pow2"),                                  \
        FACT_PARAM("PROPAGATE", "propagate"), FACT_PARAM("APPROX", "approx"), FACT_PARAM("PDL", "pdl")

static const struct cbn_param vector_params[] = {COMMON_PARAMS,
                                                 {.name = "VEC", .source = CBN_PARAM_CONST, .value = 16}};
static const struct cbn_param scalar_params[] = {COMMON_PARAMS, {.name = "VEC", .source = CBN_PARAM_CONST, .value = 1}};

static const struct cbn_guard vector_guards[] = {
    {.fact = "arch", .relation = CBN_RELATION_GE, .value = CBN_ARCH(80, 0)},
    {.fact = "align", .relation = CBN_RELATION_MULTIPLE_OF, .value = 16},
};
static const struct cbn_guard scalar_guards[] = {
    {.fact = "arch", .relation = CBN_RELATION_GE, .value = CBN_ARCH(80, 0)},
};

#define FEW_UNITS 2048 /* below, all of them run at once: small CTAs find room beside those of a GEMM */

/* A budget of SMs gets one CTA an SM, so a large one; without it, eight of 256 threads fill an SM. */
static void place(const int64_t *params, const int64_t *values, struct cbn_geometry *ret_geometry)
{
    (void)params;
    int64_t groups = values[CBN__QUANTIZE_FACT_g] > 0 ? values[CBN__QUANTIZE_FACT_g] : 1; /* 0: flat */
    int64_t rows = cbn__geometry_product(values[CBN__QUANTIZE_FACT_t], groups);
    int64_t units = cbn__geometry_product(rows, cbn__geometry_ceil(values[CBN__QUANTIZE_FACT_k], WORD_ELEMENTS));
    int64_t sms = values[CBN__QUANTIZE_FACT_sms], max_sms = values[CBN__QUANTIZE_FACT_max_sms];
    uint32_t threads = max_sms > 0 && max_sms < sms ? 1024 : units < FEW_UNITS ? 128 : 256;
    int64_t blocks = cbn__geometry_ceil(units, threads / WARP_THREADS);
    *ret_geometry = (struct cbn_geometry){
        .grid = {cbn__geometry_grid(blocks, 8, sms, max_sms), 1, 1},
        .block = {threads, 1, 1},
        .cluster = {1, 1, 1},
    };
}

#define TEMPLATE(table, guard_table)                                                                                   \
    .source_name = "fp8_quantize.cuh", .symbol = "cbn_fp8_quantize", .flags = CBN_CANDIDATE_PDL, .params = table,      \
    .param_count = COUNT(table), .guards = guard_table, .guard_count = COUNT(guard_table), .geometry = place,          \
    .argument_bytes = sizeof(struct cbn__quantize_args)

static const struct cbn_candidate candidates[] = {
    {.name = "vector", TEMPLATE(vector_params, vector_guards)},
    {.name = "scalar", TEMPLATE(scalar_params, scalar_guards)},
};

static const struct cbn_policy_rule rules[] = {
    {.policy = "reference", .candidate = "vector"},
    {.policy = "reference", .candidate = "scalar"},
    {.policy = "default", .candidate = "vector"},
    {.policy = "default", .candidate = "scalar"},
};

static const struct cbn_guard noops[] = {
    {.fact = "t", .relation = CBN_RELATION_EQ, .value = 0},
    {.fact = "k", .relation = CBN_RELATION_EQ, .value = 0},
};

const struct cbn_family cbn__builtin_fp8_quantize = {
    .size = sizeof(struct cbn_family),
    .argument_layout = CBN__ARGUMENT_LAYOUT,
    .name = "fp8_quantize",
    .facts = facts,
    .fact_count = COUNT(facts),
    .noop_count = COUNT(noops),
    .noops = noops,
    .sweep_fact = "t",
    .candidates = candidates,
    .candidate_count = COUNT(candidates),
    .rule_count = COUNT(rules),
    .rules = rules,
};
