/*
 * ls: one line for each entry.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { SORT_USED = 0, SORT_SIZE, SORT_CREATED };

/* What is kept of an entry after its callback. */
struct item {
    struct cbn_spec spec;
    uint64_t size_bytes, hits;
    int64_t created_s, last_used_s;
    uint32_t compile_ms, registers, shared_bytes, spill_bytes, layer;
    char compiler[32];
    char *layer_path;
};

struct listing {
    const struct cli_options *filter;
    size_t count, capacity;
    struct item *items;
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
    struct item *item = &listing->items[listing->count++];
    *item = (struct item){
        .spec = *spec,
        .size_bytes = entry->size_bytes,
        .hits = entry->hits,
        .created_s = entry->created_s,
        .last_used_s = entry->last_used_s,
        .compile_ms = entry->compile_ms,
        .registers = entry->registers,
        .shared_bytes = entry->shared_bytes,
        .spill_bytes = entry->spill_bytes,
        .layer = entry->layer,
        .layer_path = cli_text_copy(entry->layer_path ? entry->layer_path : ""),
    };
    memcpy(item->compiler, entry->compiler, sizeof(item->compiler));
    return 0;
}

static int compare_names(const struct item *a, const struct item *b)
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
    const struct item *left = a, *right = b;
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

static json_t *item_json(const struct item *item)
{
    json_t *entry = json_object();
    cli_json_set(entry, "key", cli_json_text(item->spec.key));
    cli_json_set(entry, "op", cli_json_text(item->spec.op));
    cli_json_set(entry, "kernel", cli_json_text(item->spec.kernel));
    cli_json_set(entry, "arch", cli_json_text(item->spec.arch));
    cli_json_set(entry, "params", cli_spec_params_json(&item->spec));
    cli_json_set(entry, "size_bytes", json_integer((json_int_t)item->size_bytes));
    cli_json_set(entry, "created", cli_json_time(item->created_s));
    cli_json_set(entry, "last_used", cli_json_time(item->last_used_s));
    cli_json_set(entry, "hits", json_integer((json_int_t)item->hits));
    cli_json_set(entry, "compile_ms", json_integer(item->compile_ms));
    cli_json_set(entry, "compiler", cli_json_text(item->compiler));
    cli_json_set(entry, "registers", json_integer(item->registers));
    cli_json_set(entry, "shared_bytes", json_integer(item->shared_bytes));
    cli_json_set(entry, "spill_bytes", json_integer(item->spill_bytes));
    cli_json_set(entry, "layer", json_integer(item->layer));
    cli_json_set(entry, "layer_path", cli_json_text(item->layer_path));
    return entry;
}

static void print_json(const struct cli *cli, const struct listing *listing, uint64_t damaged)
{
    json_t *root = cli_json_begin(cli);
    json_t *entries = json_array();
    for (size_t i = 0; i < listing->count; i++)
        cli_json_add(entries, item_json(&listing->items[i]));
    cli_json_set(root, "entries", entries);
    cli_json_set(root, "damaged", json_integer((json_int_t)damaged));
    cli_json_print(root);
}

static void print_text(const struct listing *listing)
{
    static const char *const heads[] = {"KEY",  "OP",   "KERNEL",  "ARCH",     "SIZE",  "CREATED",
                                        "USED", "HITS", "COMPILE", "COMPILER", "LAYER", "PARAMS"};
    struct cli_table table = {.columns = sizeof(heads) / sizeof(heads[0])};
    for (size_t i = 0; i < table.columns; i++)
        cli_table_add(&table, "%s", heads[i]);
    for (size_t i = 0; i < listing->count; i++) {
        const struct item *item = &listing->items[i];
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
        free(listing->items[i].layer_path);
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
