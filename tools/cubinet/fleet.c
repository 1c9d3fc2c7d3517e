/*
 * The server that a fleet shares: what it says of itself, and what a warm pushes to it.
 */
#include <stdlib.h>

#include "pin.h"

void cli_fleet_ask(const struct cli *cli, struct cli_fleet *ret_fleet)
{
    *ret_fleet = (struct cli_fleet){.info = CBN_FLEET_INFO_INIT};
    ret_fleet->status = cbn_fleet_inspect(cli->runtime, &ret_fleet->info, &ret_fleet->error);
}

static const char *or_unknown(const char *text)
{
    return text && *text ? text : "unknown";
}

void cli_fleet_print(const struct cli_fleet *fleet)
{
    struct cli_table table = {.columns = 3};
    char used[32], bound[32];
    if (fleet->status == CBN_STATUS_NOT_FOUND)
        return;
    (void)printf("fleet: %s, ", fleet->info.url);
    if (fleet->status != CBN_STATUS_OK) {
        (void)printf("%s\n", fleet->error.message);
        return;
    }
    (void)printf("%s\n", or_unknown(fleet->info.server));
    cli_bytes_format(fleet->info.used_bytes, used, sizeof(used));
    cli_bytes_format(fleet->info.max_bytes, bound, sizeof(bound));
    cli_table_add(&table, "keys");
    cli_table_add(&table, "%llu", (unsigned long long)fleet->info.keys);
    cli_table_add(&table, "keys of the database");
    cli_table_add(&table, "used_bytes");
    cli_table_add(&table, "%s", used);
    cli_table_add(&table, "memory in use");
    cli_table_add(&table, "max_bytes");
    cli_table_add(&table, "%s", fleet->info.max_bytes ? bound : "none");
    cli_table_add(&table, "bound of the memory, policy %s", or_unknown(fleet->info.eviction));
    cli_table_add(&table, "evicted");
    cli_table_add(&table, "%llu", (unsigned long long)fleet->info.evicted);
    cli_table_add(&table, "keys that the bound has cost");
    cli_table_print(&table, stdout, "  ");
}

json_t *cli_fleet_json(const struct cli_fleet *fleet)
{
    const struct cbn_fleet_info *info = &fleet->info;
    bool answers = fleet->status == CBN_STATUS_OK;
    if (fleet->status == CBN_STATUS_NOT_FOUND)
        return json_null();
    json_t *item = json_object();
    cli_json_set(item, "url", cli_json_text(info->url));
    cli_json_set(item, "error", answers ? json_null() : cli_json_text(fleet->error.message));
    cli_json_set(item, "server", cli_json_text(info->server));
    cli_json_set(item, "eviction", cli_json_text(info->eviction));
    cli_json_set(item, "read_only", answers ? json_boolean(info->read_only != 0) : json_null());
    cli_json_set(item, "keys", answers ? json_integer((json_int_t)info->keys) : json_null());
    cli_json_set(item, "used_bytes", answers ? json_integer((json_int_t)info->used_bytes) : json_null());
    cli_json_set(item, "max_bytes", answers ? json_integer((json_int_t)info->max_bytes) : json_null());
    cli_json_set(item, "evicted", answers ? json_integer((json_int_t)info->evicted) : json_null());
    return item;
}

static void print_sample(const struct cli_fleet *fleet, const char *metric, const char *kind, const char *help,
                         uint64_t value)
{
    (void)printf("# HELP %s %s\n# TYPE %s %s\n%s{url=\"", metric, help, metric, kind, metric);
    cli_label_print(fleet->info.url);
    (void)printf("\"} %llu\n", (unsigned long long)value);
}

void cli_fleet_print_prometheus(const struct cli_fleet *fleet)
{
    if (fleet->status == CBN_STATUS_NOT_FOUND)
        return;
    bool answers = fleet->status == CBN_STATUS_OK;
    print_sample(fleet, "cubinet_fleet_up", "gauge", "the fleet's server answers", answers);
    if (!answers)
        return;
    print_sample(fleet, "cubinet_fleet_keys", "gauge", "keys of the fleet's database", fleet->info.keys);
    print_sample(fleet, "cubinet_fleet_used_bytes", "gauge", "memory in use by the fleet's server",
                 fleet->info.used_bytes);
    print_sample(fleet, "cubinet_fleet_max_bytes", "gauge", "bound of that memory, 0: none", fleet->info.max_bytes);
    print_sample(fleet, "cubinet_fleet_evicted_total", "counter", "keys that the bound has cost", fleet->info.evicted);
}

int cli_push(struct cli *cli, const struct cli_keys *keys, struct cli_push *ret_push)
{
    struct cbn_error first = {0}, err = {0};
    for (size_t i = 0; i < keys->count; i++) {
        int32_t status = cbn_fleet_push(cli->runtime, keys->items[i].key, &err);
        ret_push->pushed += status == CBN_STATUS_OK;
        ret_push->refused += status != CBN_STATUS_OK;
        if (status != CBN_STATUS_OK && first.status == CBN_STATUS_OK)
            first = err;
        cli_progress_count(cli, i + 1, keys->count, "pushed");
    }
    cli_bar_clear();
    if (!ret_push->refused)
        return CLI_OK;
    (void)cli_fail_error(cli, &first);
    return ret_push->pushed ? CLI_PARTLY : CLI_FAILED;
}

int cli_push_check(struct cli *cli)
{
    struct cli_fleet fleet;
    if (!cli->options.push)
        return CLI_OK;
    cli_fleet_ask(cli, &fleet);
    return fleet.status == CBN_STATUS_NOT_FOUND
               ? cli_fail(cli, CLI_USAGE, "--push: no server is named; name one with --fleet or CUBINET_FLEET")
               : CLI_OK;
}
