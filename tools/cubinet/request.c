/*
 * From a model, a manifest or --all to queries.
 */
#include "request.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_M 131072

enum op { OP_GEMM, OP_QUANTIZE, OP_EINSUM, OP_GROUPED, OP_COUNT };
static const char *const op_names[OP_COUNT] = {"fp8_gemm", "fp8_quantize", "fp8_einsum", "fp8_grouped_gemm"};

static int find_op(const char *name, size_t length)
{
    for (int op = 0; op < OP_COUNT; op++)
        if (strlen(op_names[op]) == length && memcmp(op_names[op], name, length) == 0)
            return op;
    return -1;
}

static int read_ops(struct cli *cli, struct cli_request *request)
{
    request->ops = (1u << OP_COUNT) - 1;
    request->ops_limited = cli->options.ops != NULL;
    if (!request->ops_limited)
        return CLI_OK;
    request->ops = 0;
    for (const char *at = cli->options.ops;;) {
        size_t length = strcspn(at, ",");
        int op = find_op(at, length);
        if (op < 0)
            return cli_fail(cli, CLI_USAGE,
                            "--ops '%.*s' is none of fp8_gemm, fp8_quantize, fp8_einsum, fp8_grouped_gemm", (int)length,
                            at);
        request->ops |= 1u << op;
        if (!at[length])
            return CLI_OK;
        at += length + 1;
    }
}

static int check_source(struct cli *cli)
{
    const struct cli_options *given = &cli->options;
    if ((given->model != NULL) + (given->manifest != NULL) + given->all != 1)
        return cli_fail(cli, CLI_USAGE, "give one of --model, --manifest and --all");
    if (!given->model && given->tp != CLI_UNSET)
        return cli_fail(cli, CLI_USAGE, "--tp goes with --model");
    if (!given->model && given->ep != CLI_UNSET)
        return cli_fail(cli, CLI_USAGE, "--ep goes with --model");
    return CLI_OK;
}

static int load_layers(struct cli *cli, struct cli_request *request)
{
    struct cbn_error err = {0};
    int32_t status = CBN_STATUS_OK;
    if (cli->options.model)
        status = cli_model_load(cli, &request->model, &err);
    else if (cli->options.manifest)
        status = cbn_manifest_load(cli->options.manifest, &request->model, &err);
    return status == CBN_STATUS_OK ? CLI_OK : cli_fail_error(cli, &err);
}

int cli_request_open(struct cli *cli, struct cli_request *ret_request)
{
    int result = check_source(cli);
    if (result == CLI_OK)
        result = read_ops(cli, ret_request);
    if (result == CLI_OK)
        result = cli_arches_get(cli, ret_request->arches, &ret_request->arch_count);
    if (result != CLI_OK)
        return result;
    ret_request->max_m = cli->options.max_m == CLI_UNSET ? DEFAULT_MAX_M : cli->options.max_m;
    return load_layers(cli, ret_request);
}

static void add_query(struct cli_request *request, const struct cbn_query *query, const char *layer)
{
    request->queries = cli_grow(request->queries, &request->query_capacity, request->count, sizeof(*request->queries));
    request->layers = cli_grow(request->layers, &request->layer_capacity, request->count, sizeof(*request->layers));
    request->queries[request->count] = *query;
    request->layers[request->count++] = layer;
}

/* One query for each architecture. base holds the profile and M. */
static void add_op(struct cli_request *request, const struct cbn_query *base, enum op op, int64_t n, int64_t k,
                   int64_t groups, const char *layer)
{
    if (!(request->ops & 1u << op))
        return;
    struct cbn_query query = *base;
    query.op = op_names[op];
    query.n = n;
    query.k = k;
    query.groups = groups;
    /* Codes are made from the dtype that activations have by default where the product takes codes. */
    if (op == OP_QUANTIZE && query.profile.in == CBN_DTYPE_E4M3)
        query.profile.in = CBN_DTYPE_BF16;
    /* A product quantises by exact division only. */
    if (op != OP_QUANTIZE)
        query.profile.approx = 0;
    for (uint32_t i = 0; i < request->arch_count; i++) {
        query.arch = request->arches[i];
        add_query(request, &query, layer);
    }
}

static int add_layer(struct cli *cli, struct cli_request *request, const struct cbn_query *base, uint32_t index)
{
    const struct cbn_model_shape *shape = cbn_model_shape_get(request->model, index);
    if (!shape->fp8) {
        cli_say(cli, "skipped: %s: %s", shape->layer, shape->reason);
        return CLI_OK;
    }
    switch (find_op(shape->op, strlen(shape->op))) {
    case OP_GEMM:
        add_op(request, base, OP_GEMM, shape->n, shape->k, 0, shape->layer);
        add_op(request, base, OP_QUANTIZE, 0, shape->k, 0, shape->layer);
        return CLI_OK;
    case OP_QUANTIZE:
        add_op(request, base, OP_QUANTIZE, 0, shape->k, shape->groups > 1 ? shape->groups : 0, shape->layer);
        return CLI_OK;
    case OP_EINSUM:
        add_op(request, base, OP_EINSUM, shape->n, shape->k, shape->groups, shape->layer);
        return CLI_OK;
    case OP_GROUPED:
        add_op(request, base, OP_GROUPED, shape->n, shape->k, shape->groups, shape->layer);
        return CLI_OK;
    default:
        return cli_fail(cli, CLI_FAILED, "shapes[%u]%s%s: op '%s' is not known", index, *shape->layer ? ", layer " : "",
                        shape->layer, shape->op);
    }
}

static int ignore_spec(void *user, const struct cbn_spec *spec)
{
    (void)user;
    (void)spec;
    return 1;
}

/* Whether the library has a family for the operation: asked, so that the tool keeps no list of its own. */
static bool has_family(struct cli *cli, const struct cbn_query *query)
{
    return cbn_enumerate(cli->runtime, query, ignore_spec, NULL, NULL) != CBN_STATUS_UNSUPPORTED;
}

static void add_all(struct cli *cli, struct cli_request *request, const struct cbn_query *base)
{
    for (int op = 0; op < OP_COUNT; op++) {
        struct cbn_query query = *base;
        query.op = op_names[op];
        query.arch = request->arches[0];
        if (request->ops_limited || has_family(cli, &query))
            add_op(request, base, (enum op)op, 0, 0, 0, "");
    }
}

int cli_request_fill(struct cli *cli, struct cli_request *request)
{
    struct cbn_query base = CBN_QUERY_INIT;
    cli_profile_get(cli, &base.profile);
    cli_request_hint(cli, &base.profile);
    base.m = request->max_m;
    if (!request->model)
        add_all(cli, request, &base);
    uint32_t count = request->model ? cbn_model_shape_count(request->model) : 0;
    for (uint32_t i = 0; i < count; i++) {
        int result = add_layer(cli, request, &base, i);
        if (result != CLI_OK)
            return result;
    }
    if (request->count == 0)
        cli_say(cli, "nothing is requested: no FP8 layer uses %s",
                request->ops_limited ? cli->options.ops : "any kernel");
    return CLI_OK;
}

void cli_request_done(struct cli_request *request)
{
    free(request->queries);
    free(request->layers);
    if (request->model)
        cbn_model_destroy(request->model);
}

void cli_request_print(const struct cli *cli, const struct cli_request *request)
{
    cli_profile_print(cli);
    (void)printf("request: arch=%s m=0..%lld%s%s\n", cli->options.arch, (long long)request->max_m,
                 request->ops_limited ? " ops=" : "", request->ops_limited ? cli->options.ops : "");
}

json_t *cli_request_json(const struct cli *cli, const struct cli_request *request)
{
    json_t *profile = cli_profile_json(cli);
    json_t *arches = json_array();
    for (uint32_t i = 0; i < request->arch_count; i++) {
        char name[16];
        cbn_arch_format(request->arches[i], name, sizeof(name));
        cli_json_add(arches, json_string(name));
    }
    cli_json_set(profile, "arch", arches);
    cli_json_set(profile, "max_m", json_integer(request->max_m));
    cli_json_set(profile, "ops", cli_json_text(cli->options.ops));
    return profile;
}
