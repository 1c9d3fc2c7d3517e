/*
 * A caller's own family, as an engine would register it: three candidates, two policies, guards of every relation.
 */
#ifndef CBN_TEST_INVENTED_FAMILY_H
#define CBN_TEST_INVENTED_FAMILY_H

#include <cubinet/template.h>

enum { ROWS, COLS, OUT, ARCH, MAX_SMS, PDL, FACTS };

static const char *const invented_facts[] = {"rows", "cols", "out", "arch", "max_sms", "pdl"};

static void invented_geometry(const int64_t *params, const int64_t *facts, struct cbn_geometry *ret_geometry)
{
    ret_geometry->grid[0] = (uint32_t)((facts[ROWS] + params[0] - 1) / params[0]);
}

static const struct cbn_bucket invented_tiles[] = {{4, 4}, {16, 16}, {INT64_MAX, 64}};
static const struct cbn_bucket invented_stages[] = {{1000, 2}, {INT64_MAX, 4}};

static const struct cbn_param invented_small_params[] = {
    {.name = "TILE", .source = CBN_PARAM_BUCKET, .fact = "rows", .buckets = invented_tiles, .bucket_count = 3},
    {.name = "OUT", .source = CBN_PARAM_FACT, .fact = "out"},
    {.name = "PDL", .source = CBN_PARAM_FACT, .fact = "pdl"},
};
static const struct cbn_param invented_wide_params[] = {
    {.name = "TILE", .source = CBN_PARAM_CONST, .value = 128},
    {.name = "STAGES", .source = CBN_PARAM_BUCKET, .fact = "cols", .buckets = invented_stages, .bucket_count = 2},
};
static const struct cbn_param invented_any_params[] = {
    {.name = "TILE", .source = CBN_PARAM_BUCKET, .fact = "rows", .buckets = invented_tiles, .bucket_count = 3},
    {.name = "STAGES", .source = CBN_PARAM_BUCKET, .fact = "cols", .buckets = invented_stages, .bucket_count = 2},
};

static const struct cbn_guard invented_noops[] = {{.fact = "rows", .relation = CBN_RELATION_EQ, .value = 0}};
static const struct cbn_guard invented_small_guards[] = {
    {.fact = "rows", .relation = CBN_RELATION_IN_RANGE, .value = 1, .value_end = 32},
    {.fact = "out", .relation = CBN_RELATION_EQ, .value = CBN_DTYPE_BF16},
    {.fact = "cols", .relation = CBN_RELATION_MULTIPLE_OF, .value = 64},
};
static const struct cbn_guard invented_wide_guards[] = {
    {.fact = "arch", .relation = CBN_RELATION_EQ, .value = CBN_ARCH(90, 'a')},
    {.fact = "cols", .relation = CBN_RELATION_NE, .value = 192},
};
static const struct cbn_guard invented_wide_default[] = {
    {.fact = "rows", .relation = CBN_RELATION_GE, .value = 20},
    {.fact = "max_sms", .relation = CBN_RELATION_LT, .value = 100},
};

static const struct cbn_header invented_headers[] = {{"own/tile.h", "#define OWN 1\n"}, {"own/io.h", ""}};

static const struct cbn_candidate invented_candidates[] = {
    {.name = "small",
     .source = "extern \"C\" __global__ void small(long long a) {}\n",
     .source_name = "small.cu",
     .symbol = "small",
     .headers = invented_headers,
     .header_count = 2,
     .flags = CBN_CANDIDATE_PDL,
     .params = invented_small_params,
     .param_count = 3,
     .guards = invented_small_guards,
     .guard_count = 3,
     .geometry = invented_geometry,
     .argument_bytes = 8},
    {.name = "wide",
     .flags = CBN_CANDIDATE_OFF,
     .params = invented_wide_params,
     .param_count = 2,
     .guards = invented_wide_guards,
     .guard_count = 2},
    {.name = "any",
     .source = "extern \"C\" __global__ void any(long long a) {}\n",
     .source_name = "any.cu",
     .symbol = "any",
     .flags = CBN_CANDIDATE_FALLBACK,
     .params = invented_any_params,
     .param_count = 2,
     .geometry = invented_geometry,
     .argument_bytes = 8},
};

static const struct cbn_policy_rule invented_rules[] = {
    {.policy = "default", .candidate = "small"},
    {.policy = "default", .candidate = "wide", .guards = invented_wide_default, .guard_count = 2},
    {.policy = "default", .candidate = "any"},
    {.policy = "plain", .candidate = "any"},
};

static const struct cbn_family invented_family = {
    .size = sizeof(struct cbn_family),
    .argument_layout = 7,
    .name = "row_scale",
    .facts = invented_facts,
    .fact_count = FACTS,
    .noops = invented_noops,
    .noop_count = 1,
    .sweep_fact = "rows",
    .candidates = invented_candidates,
    .candidate_count = 3,
    .rules = invented_rules,
    .rule_count = 4,
};

#endif
