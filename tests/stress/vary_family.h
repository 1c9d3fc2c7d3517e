/*
 * A caller's own family for tests that want many kernels: one a value of the fact `variant`, all of one short source.
 */
#ifndef VARY_FAMILY_H
#define VARY_FAMILY_H

#include <cubinet/template.h>

static void vary_place(const int64_t *values, const int64_t *facts, struct cbn_geometry *ret_geometry)
{
    (void)values, (void)facts;
    *ret_geometry = (struct cbn_geometry){.grid = {1, 1, 1}, .block = {32, 1, 1}};
}

static const char *const vary_facts[] = {"rows", "variant"};
static const struct cbn_param vary_params[] = {{.name = "VARIANT", .source = CBN_PARAM_FACT, .fact = "variant"}};
static const struct cbn_candidate vary_candidate = {
    .name = "vary",
    .source = "extern \"C\" __global__ void vary(long long a) { }\n",
    .source_name = "vary.cu",
    .symbol = "vary",
    .params = vary_params,
    .param_count = 1,
    .geometry = vary_place,
    .argument_bytes = 8,
};
static const struct cbn_family vary_family = {
    .size = sizeof(vary_family),
    .argument_layout = 1,
    .name = "vary",
    .facts = vary_facts,
    .fact_count = 2,
    .sweep_fact = "rows",
    .candidates = &vary_candidate,
    .candidate_count = 1,
};

#endif
