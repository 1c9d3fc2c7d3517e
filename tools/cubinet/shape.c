/*
 * The extents of one call: which options an operation takes, which of them it needs, where they go in a query.
 */
#include <string.h>

#include "cli.h"

enum extent {
    EXTENT_M,
    EXTENT_T,
    EXTENT_N,
    EXTENT_K,
    EXTENT_LDA,
    EXTENT_G,
    EXTENT_D,
    EXTENT_R,
    EXTENT_EXPERTS,
    EXTENT_COUNT
};

static const struct {
    const char *name;
    size_t offset;
} extents[EXTENT_COUNT] = {
    [EXTENT_M] = {"m", offsetof(struct cli_options, m)},
    [EXTENT_T] = {"t", offsetof(struct cli_options, t)},
    [EXTENT_N] = {"n", offsetof(struct cli_options, n)},
    [EXTENT_K] = {"k", offsetof(struct cli_options, k)},
    [EXTENT_LDA] = {"lda", offsetof(struct cli_options, lda)},
    [EXTENT_G] = {"g", offsetof(struct cli_options, g)},
    [EXTENT_D] = {"d", offsetof(struct cli_options, d)},
    [EXTENT_R] = {"r", offsetof(struct cli_options, r)},
    [EXTENT_EXPERTS] = {"experts", offsetof(struct cli_options, experts)},
};

#define QUERY(field) offsetof(struct cbn_query, field)

/* A form of an operation's arguments. The extent that goes to the query's m is the one that a sweep varies. */
struct form {
    const char *op;
    uint32_t field_count;
    struct {
        enum extent extent;
        size_t offset;
        bool optional;
    } fields[4];
};

static const struct form forms[] = {
    {"fp8_gemm",
     4,
     {{EXTENT_M, QUERY(m), false},
      {EXTENT_N, QUERY(n), false},
      {EXTENT_K, QUERY(k), false},
      {EXTENT_LDA, QUERY(lda), true}}},
    {"fp8_quantize", 2, {{EXTENT_T, QUERY(m), false}, {EXTENT_K, QUERY(k), false}}},
    {"fp8_quantize", 3, {{EXTENT_T, QUERY(m), false}, {EXTENT_G, QUERY(groups), false}, {EXTENT_D, QUERY(k), false}}},
    {"fp8_einsum",
     4,
     {{EXTENT_T, QUERY(m), false},
      {EXTENT_G, QUERY(groups), false},
      {EXTENT_R, QUERY(n), false},
      {EXTENT_D, QUERY(k), false}}},
    {"fp8_grouped_gemm",
     4,
     {{EXTENT_M, QUERY(m), false},
      {EXTENT_N, QUERY(n), false},
      {EXTENT_K, QUERY(k), false},
      {EXTENT_EXPERTS, QUERY(groups), false}}},
};

#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))
#define FLAT_QUANTIZE 1
#define GROUPED_QUANTIZE 2

static int64_t given_extent(const struct cli *cli, enum extent extent)
{
    return *(const int64_t *)(const void *)((const char *)&cli->options + extents[extent].offset);
}

static const struct form *find_form(const struct cli *cli)
{
    const char *op = cli->options.op;
    for (size_t i = 0; i < FORM_COUNT; i++) {
        if (strcmp(forms[i].op, op) != 0)
            continue;
        bool grouped = cli->options.g != CLI_UNSET || cli->options.d != CLI_UNSET;
        return i == FLAT_QUANTIZE && grouped ? &forms[GROUPED_QUANTIZE] : &forms[i];
    }
    return NULL;
}

static bool form_takes(const struct form *form, enum extent extent)
{
    for (uint32_t i = 0; i < form->field_count; i++)
        if (form->fields[i].extent == extent)
            return true;
    return false;
}

static int refuse_foreign(struct cli *cli, const struct form *form)
{
    for (int extent = 0; extent < EXTENT_COUNT; extent++)
        if (given_extent(cli, (enum extent)extent) != CLI_UNSET && !form_takes(form, (enum extent)extent))
            return cli_fail(cli, CLI_USAGE, "%s%s takes no --%s", form->op,
                            form == &forms[GROUPED_QUANTIZE] ? " with groups" : "", extents[extent].name);
    return CLI_OK;
}

int cli_shape_query(struct cli *cli, bool sweep, struct cbn_query *ret_query)
{
    if (!cli->options.op)
        return cli_fail(cli, CLI_USAGE, "--op is missing");
    const struct form *form = find_form(cli);
    if (!form)
        return cli_fail(cli, CLI_USAGE, "--op '%s' is none of fp8_gemm, fp8_quantize, fp8_einsum, fp8_grouped_gemm",
                        cli->options.op);
    int result = refuse_foreign(cli, form);
    if (result != CLI_OK)
        return result;
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = form->op;
    for (uint32_t i = 0; i < form->field_count; i++) {
        int64_t given = given_extent(cli, form->fields[i].extent);
        if (given != CLI_UNSET)
            *(int64_t *)(void *)((char *)&query + form->fields[i].offset) = given;
        else if (!form->fields[i].optional && !(sweep && form->fields[i].offset == QUERY(m)))
            return cli_fail(cli, CLI_USAGE, "%s needs --%s", form->op, extents[form->fields[i].extent].name);
    }
    *ret_query = query;
    return cli_arch_get(cli, &ret_query->arch);
}

void cli_shape_print(const struct cli *cli, const struct cbn_query *query)
{
    char arch[16];
    cbn_arch_format(query->arch, arch, sizeof(arch));
    (void)printf("call: %s %s", query->op, arch);
    for (int extent = 0; extent < EXTENT_COUNT; extent++)
        if (given_extent(cli, (enum extent)extent) != CLI_UNSET)
            (void)printf(" %s=%lld", extents[extent].name, (long long)given_extent(cli, (enum extent)extent));
    (void)fputc('\n', stdout);
}

json_t *cli_shape_json(const struct cli *cli, const struct cbn_query *query)
{
    char arch[16];
    cbn_arch_format(query->arch, arch, sizeof(arch));
    json_t *call = json_object();
    cli_json_set(call, "op", json_string(query->op));
    cli_json_set(call, "arch", json_string(arch));
    for (int extent = 0; extent < EXTENT_COUNT; extent++)
        if (given_extent(cli, (enum extent)extent) != CLI_UNSET)
            cli_json_set(call, extents[extent].name, json_integer(given_extent(cli, (enum extent)extent)));
    return call;
}
