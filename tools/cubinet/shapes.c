/*
 * shapes: the layers that a config leads to.
 */
#include "cli.h"

int32_t cli_model_load(const struct cli *cli, struct cbn_model **ret_model, struct cbn_error *err)
{
    struct cbn_model_options options = CBN_MODEL_OPTIONS_INIT;
    options.tp = cli->options.tp == CLI_UNSET ? 0 : cli->options.tp;
    options.ep = cli->options.ep == CLI_UNSET ? 0 : cli->options.ep;
    return cbn_model_load(cli->options.model, &options, ret_model, err);
}

static json_t *shape_json(const struct cbn_model_shape *shape)
{
    json_t *item = json_object();
    cli_json_set(item, "op", cli_json_text(shape->op));
    cli_json_set(item, "layer", cli_json_text(shape->layer));
    cli_json_set(item, "n", json_integer(shape->n));
    cli_json_set(item, "k", json_integer(shape->k));
    cli_json_set(item, "groups", json_integer(shape->groups));
    cli_json_set(item, "fp8", json_boolean(shape->fp8));
    cli_json_set(item, "reason", cli_json_text(shape->reason));
    return item;
}

static void print_json(const struct cli *cli, const struct cbn_model *model)
{
    json_t *root = cli_json_begin(cli);
    cli_json_set(root, "model", cli_json_text(cbn_model_name(model)));
    json_t *shapes = json_array();
    for (uint32_t i = 0; i < cbn_model_shape_count(model); i++)
        cli_json_add(shapes, shape_json(cbn_model_shape_get(model, i)));
    cli_json_set(root, "shapes", shapes);
    cli_json_print(root);
}

static void print_text(const struct cbn_model *model)
{
    struct cli_table table = {.columns = 7};
    static const char *const heads[] = {"LAYER", "OP", "N", "K", "GROUPS", "FP8", "REASON"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        cli_table_add(&table, "%s", heads[i]);
    for (uint32_t i = 0; i < cbn_model_shape_count(model); i++) {
        const struct cbn_model_shape *shape = cbn_model_shape_get(model, i);
        cli_table_add(&table, "%s", shape->layer);
        cli_table_add(&table, "%s", shape->op);
        cli_table_add(&table, "%lld", (long long)shape->n);
        cli_table_add(&table, "%lld", (long long)shape->k);
        cli_table_add(&table, "%lld", (long long)shape->groups);
        cli_table_add(&table, "%s", shape->fp8 ? "yes" : "no");
        cli_table_add(&table, "%s", shape->reason);
    }
    cli_table_print(&table, stdout, "");
}

int cli_shapes(struct cli *cli)
{
    if (!cli->options.model)
        return cli_fail(cli, CLI_USAGE, "--model is missing");
    struct cbn_model *model = NULL;
    struct cbn_error err = {0};
    if (cli_model_load(cli, &model, &err) != CBN_STATUS_OK)
        return cli_fail_error(cli, &err);
    if (cli->options.json)
        print_json(cli, model);
    else
        print_text(model);
    cbn_model_destroy(model);
    return CLI_OK;
}
