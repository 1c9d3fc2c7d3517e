/*
 * ls: one line for each entry.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { SORT_USED = 0, SORT_SIZE, SORT_CREATED };

struct listing {
    const struct cli_options *filter;
    size_t count, capacity;
    struct cli_entry *items;
};

static bool passes(const char *wanted, const char *value)
{
    return !wanted || strcmp(wanted, value) == 0;
}

static int keep(void *user, const struct cbn_entry_info *entry)
{
    struct listing *listing = user;
    const struct cbn_spec *spec = &entry->spec;
    if (!passes(listing->filter->op, spec->op) || !passes(listing->filter->kernel, spec->kernel) ||
        !passes(listing->filter->arch, spec->arch))
        return 0;
    listing->items = cli_grow(listing->items, &listing->capacity, listing->count, sizeof(*listing->items));
    cli_entry_keep(entry, &listing->items[listing->count++]);
    return 0;
}

static int compare_names(const struct cli_entry *a, const struct cli_entry *b)
{
    int order = strcmp(a->spec.op, b->spec.op);
    order = order ? order : strcmp(a->spec.kernel, b->spec.kernel);
    order = order ? order : strcmp(a->spec.arch, b->spec.arch);
    order = order ? order : strcmp(a->spec.text, b->spec.text);
    order = order ? order : strcmp(a->spec.key, b->spec.key);
    return order ? order : (a->layer > b->layer) - (a->layer < b->layer);
}

static int compare_items(const void *a, const void *b, void *user)
{
    const struct cli_entry *left = a, *right = b;
    int64_t sort = *(const int64_t *)user;
    int order = 0;
    if (sort == SORT_USED)
        order = (left->last_used_s < right->last_used_s) - (left->last_used_s > right->last_used_s);
    else if (sort == SORT_SIZE)
        order = (left->size_bytes < right->size_bytes) - (left->size_bytes > right->size_bytes);
    else if (sort == SORT_CREATED)
        order = (left->created_s < right->created_s) - (left->created_s > right->created_s);
    return order ? order : compare_names(left, right);
}

static void print_json(const struct cli *cli, const struct listing *listing, uint64_t damaged)
{
    json_t *root = cli_json_begin(cli);
    json_t *entries = json_array();
    for (size_t i = 0; i < listing->count; i++)
        cli_json_add(entries, cli_entry_json(&listing->items[i]));
    cli_json_set(root, "entries", entries);
    cli_json_set(root, "damaged", json_integer((json_int_t)damaged));
    cli_json_print(root);
}

static void print_text(const struct listing *listing)
{
    static const char *const heads[] = {"KEY",  "OP",      "KERNEL",   "ARCH",  "SIZE", "CREATED", "USED",
                                        "HITS", "COMPILE", "COMPILER", "LAYER", "PIN",  "PARAMS"};
    struct cli_table table = {.columns = sizeof(heads) / sizeof(heads[0])};
    for (size_t i = 0; i < table.columns; i++)
        cli_table_add(&table, "%s", heads[i]);
    for (size_t i = 0; i < listing->count; i++) {
        const struct cli_entry *item = &listing->items[i];
        char size[32], created[32], used[32];
        cli_bytes_format(item->size_bytes, size, sizeof(size));
        cli_time_format(item->created_s, created, sizeof(created));
        cli_time_format(item->last_used_s, used, sizeof(used));
        char *params = cli_spec_params(&item->spec);
        cli_table_add(&table, "%s", item->spec.key);
        cli_table_add(&table, "%s", item->spec.op);
        cli_table_add(&table, "%s", item->spec.kernel);
        cli_table_add(&table, "%s", item->spec.arch);
        cli_table_add(&table, "%s", size);
        cli_table_add(&table, "%s", created);
        cli_table_add(&table, "%s", used);
        cli_table_add(&table, "%llu", (unsigned long long)item->hits);
        cli_table_add(&table, "%u ms", item->compile_ms);
        cli_table_add(&table, "%s", item->compiler);
        cli_table_add(&table, "%u", item->layer);
        cli_table_add(&table, "%s", item->pinned ? "pinned" : "-");
        cli_table_add(&table, "%s", params);
        free(params);
    }
    cli_table_print(&table, stdout, "");
}

static void tell_total(const struct cli *cli, const struct listing *listing)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < listing->count; i++)
        bytes += listing->items[i].size_bytes;
    char text[32];
    cli_bytes_format(bytes, text, sizeof(text));
    cli_say(cli, "%zu %s, %s", listing->count, listing->count == 1 ? "entry" : "entries", text);
}

static void free_listing(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        cli_entry_done(&listing->items[i]);
    free(listing->items);
}

static int list(struct cli *cli, struct listing *listing)
{
    uint64_t damaged = 0;
    struct cbn_error err = {0};
    if (cbn_cabinet_list(cli->runtime, keep, listing, &damaged, &err) != CBN_STATUS_OK)
        return cli_fail_error(cli, &err);
    if (listing->count > 1)
        qsort_r(listing->items, listing->count, sizeof(*listing->items), compare_items, &cli->options.sort);
    if (cli->options.json)
        print_json(cli, listing, damaged);
    else
        print_text(listing);
    tell_total(cli, listing);
    if (!damaged)
        return CLI_OK;
    return cli_fail(cli, CLI_INCOMPLETE, "%llu damaged not listed; run 'cubinet verify --repair'",
                    (unsigned long long)damaged);
}

int cli_ls(struct cli *cli)
{
    uint32_t arch = 0;
    int result = cli->options.arch ? cli_arch_get(cli, &arch) : CLI_OK;
    if (result == CLI_OK)
        result = cli_session_open(cli, CLI_CACHE_PRESENT);
    if (result != CLI_OK)
        return result;
    struct listing listing = {.filter = &cli->options};
    result = list(cli, &listing);
    free_listing(&listing);
    return result;
}
