/*
 * fp8_gemm as data: facts, candidates in order of preference, parameters, guards, policies, geometry. No decision is
 * made here. The data of swap_ab and of wgmma is in fp8_swap_ab.c and fp8_wgmma.c.
 */
#include <cubinet/types.h>

#include "dispatch/builtin.h"
#include "dispatch/fp8_swap_ab.h"
#include "dispatch/fp8_wgmma.h"
#include "dispatch/geometry.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

_Static_assert(sizeof(struct cbn__gemm_args) == 144, "argument layout 1");
_Static_assert(offsetof(struct cbn__gemm_args, m) == 64 && offsetof(struct cbn__gemm_args, sw_col) == 136,
               "argument layout 1");

static const char *const facts[] = {
#define CBN__X(name) #name,
    CBN__GEMM_FACT_MAP(CBN__X)
#undef CBN__X
};

/* Parameters of the generic template's candidates stand in this order; the geometry reads the last three. */
enum param {
    SWAP_AB,
    IN,
    OUT,
    A_SCALE,
    W_SCALE,
    W_GRAN,
    BIAS,
    POW2,
    PROPAGATE,
    PDL,
    VEC,
    BM,
    BN,
    THREADS,
    PARAM_COUNT
};

#define FACT_PARAM(parameter, fact_name) [parameter] = {.name = #parameter, .source = CBN_PARAM_FACT, .fact = fact_name}
#define CONST_PARAM(parameter, constant)                                                                               \
    [parameter] = {.name = #parameter, .source = CBN_PARAM_CONST, .value = constant}
#define BUCKET_PARAM(parameter, fact_name, table)                                                                      \
    [parameter] = {.name = #parameter,                                                                                 \
                   .source = CBN_PARAM_BUCKET,                                                                         \
                   .bucket_count = COUNT(table),                                                                       \
                   .fact = fact_name,                                                                                  \
                   .buckets = table}

#define COMMON_PARAMS                                                                                                  \
    FACT_PARAM(IN, "in"), FACT_PARAM(OUT, "out"), FACT_PARAM(A_SCALE, "a_scale"), FACT_PARAM(W_SCALE, "w_scale"),      \
        FACT_PARAM(W_GRAN, "w_gran"), FACT_PARAM(BIAS, "bias"), FACT_PARAM(POW2, "pow2"),                              \
        FACT_PARAM(PROPAGATE, "propagate"), FACT_PARAM(PDL, "pdl")

/* Up to 64 tokens there is one row of tiles: narrow ones give more SMs a share of the weights. */
static const struct cbn_bucket tokens[] = {{16, 16}, {INT64_MAX, 64}};
static const struct cbn_bucket weight_rows[] = {{64, 64}, {INT64_MAX, 128}};
static const struct cbn_bucket vec_by_align[] = {{8, 1}, {INT64_MAX, 16}};
static const struct cbn_bucket threads[] = {{64, 128}, {INT64_MAX, 256}};

static const struct cbn_param generic_params[] = {CONST_PARAM(SWAP_AB, 0),
                                                  COMMON_PARAMS,
                                                  BUCKET_PARAM(VEC, "align", vec_by_align),
                                                  BUCKET_PARAM(BM, "m", tokens),
                                                  BUCKET_PARAM(BN, "m", weight_rows),
                                                  BUCKET_PARAM(THREADS, "m", threads)};

_Static_assert(COUNT(generic_params) == PARAM_COUNT, "all parameters");

#define GUARD(fact_name, relation_name, operand)                                                                       \
    {                                                                                                                  \
        .fact = fact_name, .relation = CBN_RELATION_##relation_name, .value = operand                                  \
    }
#define GUARD_RANGE(fact_name, low, high)                                                                              \
    {                                                                                                                  \
        .fact = fact_name, .relation = CBN_RELATION_IN_RANGE, .value = low, .value_end = high                          \
    }

#define SWAP_AB_ROWS_END (64 * 65535 + 1) /* grid.y holds 65,535 tiles of 64 rows */
#define FUSED_SLICE_END 33                /* longer ones leave the ring no room in shared memory */

/* What the templates can do at all. */
/* wgmma and clusters are sm_90a's own; maps want rows that begin at multiples of 16 bytes. */
static const struct cbn_guard swap_ab_guards[] = {GUARD("arch", EQ, CBN_ARCH(90, 'a')), GUARD("k", GE, 1),
                                                  GUARD_RANGE("m", 1, SWAP_AB_ROWS_END), GUARD("align", MULTIPLE_OF, 16),
                                                 GUARD("slice", LT, CBN__SWAP_AB_SLICE_END)};
static const struct cbn_guard swap_ab_fused_guards[] = {
    GUARD("arch", EQ, CBN_ARCH(90, 'a')), GUARD("k", GE, 1), GUARD("in", LT, CBN_DTYPE_E4M3), GUARD_RANGE("m", 1, 9),
    GUARD("slice", LT, FUSED_SLICE_END),  GUARD("align", MULTIPLE_OF, 16)};
/* Rows of D go out by 16 bytes. */
static const struct cbn_guard wgmma_guards[] = {
    GUARD("arch", EQ, CBN_ARCH(90, 'a')),    GUARD("k", GE, 1), GUARD_RANGE("m", 1, CBN__WGMMA_ROWS_END),
    GUARD("n", LT, CBN__WGMMA_COLUMNS_END), GUARD("n", MULTIPLE_OF, 8), GUARD("align", MULTIPLE_OF, 16)};
static const struct cbn_guard generic_guards[] = {GUARD("arch", GE, CBN_ARCH(80, 0))};

/* Resident CTAs of a full SM: registers and 48 KB of shared memory allow no more (sm_90a, ptxas 13.0). */
static void place(const int64_t *params, const int64_t *values, struct cbn_geometry *ret_geometry)
{
    int64_t tiles = cbn__geometry_product(cbn__geometry_ceil(values[CBN__GEMM_FACT_m], params[BM]),
                                          cbn__geometry_ceil(values[CBN__GEMM_FACT_n], params[BN]));
    int64_t resident = params[THREADS] > 128 ? 1 : params[BM] > 32 ? 2 : 4;
    *ret_geometry = (struct cbn_geometry){
        .grid = {cbn__geometry_grid(tiles, resident, values[CBN__GEMM_FACT_sms], values[CBN__GEMM_FACT_max_sms]), 1, 1},
        .block = {(uint32_t)params[THREADS], 1, 1},
        .cluster = {1, 1, 1},
    };
}

#define TEMPLATE(table, guard_table)                                                                                   \
    .source_name = "fp8_gemm.cuh", .symbol = "cbn_fp8_gemm", .params = table, .param_count = PARAM_COUNT,              \
    .guards = guard_table, .guard_count = COUNT(guard_table), .geometry = place,                                       \
    .argument_bytes = sizeof(struct cbn__gemm_args)

#define SWAP_AB_TEMPLATE(table, guard_table)                                                                           \
    .source_name = "fp8_swap_ab.cuh", .symbol = "cbn_fp8_swap_ab", .flags = CBN_CANDIDATE_PDL, .params = table,        \
    .param_count = CBN__SWAP_AB_PARAM_COUNT, .guards = guard_table, .guard_count = COUNT(guard_table),                 \
    .geometry = cbn__swap_ab_place, .argument_bytes = sizeof(struct cbn__swap_ab_args)

#define WGMMA_TEMPLATE(table, guard_table)                                                                             \
    .source_name = "fp8_wgmma.cuh", .symbol = "cbn_fp8_wgmma", .flags = CBN_CANDIDATE_PDL, .params = table,            \
    .param_count = CBN__WGMMA_PARAM_COUNT, .guards = guard_table, .guard_count = COUNT(guard_table),                   \
    .geometry = cbn__wgmma_place, .argument_bytes = sizeof(struct cbn__wgmma_args)

static const struct cbn_candidate candidates[] = {
    {.name = "tcgen05", .flags = CBN_CANDIDATE_OFF},
    {.name = "swap_ab_fused", SWAP_AB_TEMPLATE(cbn__swap_ab_fused_params, swap_ab_fused_guards)},
    {.name = "swap_ab", SWAP_AB_TEMPLATE(cbn__swap_ab_params, swap_ab_guards)},
    {.name = "wgmma", WGMMA_TEMPLATE(cbn__wgmma_params, wgmma_guards)},
    {.name = "generic", .flags = CBN_CANDIDATE_PDL | CBN_CANDIDATE_FALLBACK, TEMPLATE(generic_params, generic_guards)},
};

/* The reference policy, pinned: a scale decides nothing. */
static const struct cbn_guard reference_tcgen05[] = {GUARD("arch", EQ, CBN_ARCH(100, 'a')),
                                                     GUARD("out", EQ, CBN_DTYPE_BF16), GUARD("k", GE, 256)};
static const struct cbn_guard reference_swap_ab[] = {GUARD("arch", EQ, CBN_ARCH(90, 'a')),
                                                     GUARD("out", EQ, CBN_DTYPE_BF16), GUARD("n", MULTIPLE_OF, 64),
                                                     GUARD("k", MULTIPLE_OF, 128), GUARD_RANGE("m", 1, 32)};
static const struct cbn_guard reference_wgmma[] = {GUARD("arch", EQ, CBN_ARCH(90, 'a')),
                                                   GUARD("out", EQ, CBN_DTYPE_BF16), GUARD("n", MULTIPLE_OF, 64),
                                                   GUARD("k", MULTIPLE_OF, 128), GUARD("m", GE, 32)};

/*
 * The default policy, from measurements on an H200 (132 SMs). Tokens that every CTA quantises for itself pay while they
 * are few and the CTA's slice is short; weights that one tile of 64 tokens streams once win up to that many.
 */
static const struct cbn_guard default_swap_ab_fused[] = {GUARD("arch", EQ, CBN_ARCH(90, 'a')), GUARD_RANGE("m", 1, 5),
                                                         GUARD("slice", LT, 19)};
static const struct cbn_guard default_swap_ab[] = {GUARD("arch", EQ, CBN_ARCH(90, 'a')), GUARD_RANGE("m", 1, 65)};
static const struct cbn_guard default_wgmma[] = {GUARD("arch", EQ, CBN_ARCH(90, 'a'))};

static const struct cbn_guard reference_generic[] = {GUARD("m", GE, 1)};

#define RULE(policy_name, candidate_name, table)                                                                       \
    {                                                                                                                  \
        .policy = policy_name, .candidate = candidate_name, .guards = table, .guard_count = COUNT(table)               \
    }

static const struct cbn_policy_rule rules[] = {
    RULE("reference", "tcgen05", reference_tcgen05), RULE("reference", "swap_ab", reference_swap_ab),
    RULE("reference", "wgmma", reference_wgmma),     RULE("reference", "generic", reference_generic),
    RULE("default", "tcgen05", reference_tcgen05),   RULE("default", "swap_ab_fused", default_swap_ab_fused),
    RULE("default", "swap_ab", default_swap_ab),     RULE("default", "wgmma", default_wgmma),
    RULE("default", "generic", reference_generic),
};

static const struct cbn_guard noops[] = {GUARD("m", EQ, 0), GUARD("n", EQ, 0)};

const struct cbn_family cbn__builtin_fp8_gemm = {
    .size = sizeof(struct cbn_family),
    .argument_layout = CBN__ARGUMENT_LAYOUT,
    .name = "fp8_gemm",
    .facts = facts,
    .fact_count = COUNT(facts),
    .noop_count = COUNT(noops),
    .noops = noops,
    .sweep_fact = "m",
    .candidates = candidates,
    .candidate_count = COUNT(candidates),
    .rule_count = COUNT(rules),
    .rules = rules,
};
