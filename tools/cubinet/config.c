/*
 * config: every setting, its value and where it came from.
 */
#include "cli.h"

struct settings {
    json_t *items;
    struct cli_table table;
};

static void hear(void *user, const char *name, const char *value, const char *origin)
{
    struct settings *settings = user;
    if (!settings->items) {
        cli_table_add(&settings->table, "%s", name);
        cli_table_add(&settings->table, "%s", value && *value ? value : "-");
        cli_table_add(&settings->table, "%s", origin ? origin : "");
        return;
    }
    json_t *item = json_object();
    cli_json_set(item, "name", cli_json_text(name));
    cli_json_set(item, "value", cli_json_text(value));
    cli_json_set(item, "origin", cli_json_text(origin));
    cli_json_add(settings->items, item);
}

int cli_config(struct cli *cli)
{
    int code = cli_session_open(cli, CLI_CACHE_SETTINGS);
    if (code != CLI_OK)
        return code;
    struct settings settings = {.items = cli->options.json ? json_array() : NULL, .table = {.columns = 3}};
    cbn_runtime_settings(cli->runtime, hear, &settings);
    if (settings.items) {
        json_t *root = cli_json_begin(cli);
        cli_json_set(root, "settings", settings.items);
        cli_json_print(root);
    } else {
        cli_table_print(&settings.table, stdout, "");
    }
    return CLI_OK;
}
