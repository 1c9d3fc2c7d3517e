/*
 * stats: what the layers hold and what their counters tell, as text, JSON or Prometheus' text format. One table of
 * figures drives all three.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

struct figure {
    const char *name;
    const char *text;
    size_t offset;   /* into struct cbn_layer_stats */
    bool is_counter; /* kept on disk by the writable layer, never falls; a base has none */
};

#define FIELD(name) offsetof(struct cbn_layer_stats, name)

static const struct figure figures[] = {
    {"entries", "entries", FIELD(entries), false},
    {"pinned", "entries that eviction leaves", FIELD(pinned), false},
    {"used_bytes", "bytes of pages in use", FIELD(used_bytes), false},
    {"file_bytes", "bytes allocated on disk", FIELD(file_bytes), false},
    {"max_bytes", "bound of the file in bytes, 0 for a base", FIELD(max_bytes), false},
#define CBN_X(name, text) {#name, text, FIELD(name), true},
    CBN_LAYER_STAT_MAP(CBN_X)
#undef CBN_X
};
#define FIGURE_COUNT (sizeof(figures) / sizeof(figures[0]))
#define MISSES "misses_"

struct layers {
    size_t count, capacity;
    struct cbn_layer_stats *items; /* paths are owned */
};

static void keep(void *user, const struct cbn_layer_stats *stats)
{
    struct layers *layers = user;
    layers->items = cli_grow(layers->items, &layers->capacity, layers->count, sizeof(*layers->items));
    struct cbn_layer_stats *item = &layers->items[layers->count++];
    *item = *stats;
    item->path = cli_text_copy(stats->path ? stats->path : "");
}

static uint64_t read_figure(const struct cbn_layer_stats *stats, const struct figure *figure)
{
    return *(const uint64_t *)(const void *)((const char *)stats + figure->offset);
}

static uint64_t sum_figure(const struct layers *layers, const struct figure *figure)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < layers->count; i++)
        if (!figure->is_counter || !layers->items[i].is_base)
            sum += read_figure(&layers->items[i], figure);
    return sum;
}

/* "absent" of "misses_absent"; NULL for any other figure. */
static const char *miss_reason(const struct figure *figure)
{
    return strncmp(figure->name, MISSES, strlen(MISSES)) == 0 ? figure->name + strlen(MISSES) : NULL;
}

static bool is_bytes(const struct figure *figure)
{
    return strstr(figure->name, "_bytes") != NULL;
}

static bool is_time(const struct figure *figure)
{
    return strstr(figure->name, "_ms_") != NULL;
}

/* stats NULL: the sum of all layers. */
static void add_figures_json(json_t *object, const struct layers *layers, const struct cbn_layer_stats *stats)
{
    json_t *misses = json_object();
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        const struct figure *figure = &figures[i];
        const char *reason = miss_reason(figure);
        uint64_t value = stats ? read_figure(stats, figure) : sum_figure(layers, figure);
        json_t *number = stats && stats->is_base && figure->is_counter ? json_null() : json_integer((json_int_t)value);
        cli_json_set(reason ? misses : object, reason ? reason : figure->name, number);
    }
    cli_json_set(object, "misses", misses);
}

static void print_json(const struct cli *cli, const struct layers *layers, const struct cli_fleet *fleet)
{
    json_t *root = cli_json_begin(cli), *items = json_array();
    add_figures_json(root, layers, NULL);
    for (size_t i = 0; i < layers->count; i++) {
        json_t *item = json_object();
        cli_json_set(item, "layer", json_integer((json_int_t)i));
        cli_json_set(item, "path", cli_json_text(layers->items[i].path));
        cli_json_set(item, "base", json_boolean(layers->items[i].is_base != 0));
        add_figures_json(item, layers, &layers->items[i]);
        cli_json_add(items, item);
    }
    cli_json_set(root, "layers", items);
    cli_json_set(root, "fleet", cli_fleet_json(fleet));
    cli_json_print(root);
}

static void add_value(struct cli_table *table, const struct figure *figure, uint64_t value)
{
    char bytes[32];
    cli_bytes_format(value, bytes, sizeof(bytes));
    if (is_bytes(figure))
        cli_table_add(table, "%s", bytes);
    else
        cli_table_add(table, "%llu%s", (unsigned long long)value, is_time(figure) ? " ms" : "");
}

/* What a layer counts of a server that was never asked says nothing. */
static bool is_idle(const struct cbn_layer_stats *stats, const struct figure *figure)
{
    return strncmp(figure->name, "fleet_", 6) == 0 && read_figure(stats, figure) == 0;
}

static void print_layer(const struct cbn_layer_stats *stats, size_t layer)
{
    struct cli_table table = {.columns = 3};
    (void)printf("%zu: %s, %s\n", layer, stats->path, stats->is_base ? "base" : "writable");
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        const struct figure *figure = &figures[i];
        if (stats->is_base && (figure->is_counter || figure->offset == FIELD(max_bytes)))
            continue;
        if (is_idle(stats, figure))
            continue;
        cli_table_add(&table, "%s", figure->name);
        add_value(&table, figure, read_figure(stats, figure));
        cli_table_add(&table, "%s", figure->text);
    }
    cli_table_print(&table, stdout, "  ");
}

static void print_sample(const struct layers *layers, size_t layer, const char *metric, const char *reason,
                         uint64_t value)
{
    (void)printf("%s{layer=\"%zu\",path=\"", metric, layer);
    cli_label_print(layers->items[layer].path);
    (void)printf("\"%s%s%s} %llu\n", reason ? ",reason=\"" : "", reason ? reason : "", reason ? "\"" : "",
                 (unsigned long long)value);
}

/* The misses are one metric with a label for the reason; its samples must stand together. */
static void print_metric(const struct layers *layers, const struct figure *figure, bool is_first)
{
    const char *reason = miss_reason(figure);
    char *metric = reason ? cli_text_copy("cubinet_layer_misses_total")
                          : cli_text_format("cubinet_layer_%s%s", figure->name, figure->is_counter ? "_total" : "");
    if (is_first)
        (void)printf("# HELP %s %s\n# TYPE %s %s\n", metric, reason ? "look-ups that served nothing" : figure->text,
                     metric, figure->is_counter ? "counter" : "gauge");
    for (size_t i = 0; i < layers->count; i++)
        if (!figure->is_counter || !layers->items[i].is_base)
            print_sample(layers, i, metric, reason, read_figure(&layers->items[i], figure));
    free(metric);
}

static void print_prometheus(const struct layers *layers)
{
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        bool follows_miss = i > 0 && miss_reason(&figures[i]) && miss_reason(&figures[i - 1]);
        print_metric(layers, &figures[i], !follows_miss);
    }
}

static void print(const struct cli *cli, const struct layers *layers, const struct cli_fleet *fleet)
{
    if (cli->options.json) {
        print_json(cli, layers, fleet);
        return;
    }
    if (cli->options.prometheus) {
        print_prometheus(layers);
        cli_fleet_print_prometheus(fleet);
        return;
    }
    for (size_t i = 0; i < layers->count; i++)
        print_layer(&layers->items[i], i);
    cli_fleet_print(fleet);
}

int cli_stats(struct cli *cli)
{
    if (cli->options.json && cli->options.prometheus)
        return cli_fail(cli, CLI_USAGE, "give one of --json and --prometheus");
    int result = cli_session_open(cli, CLI_CACHE_PRESENT);
    if (result != CLI_OK)
        return result;
    struct layers layers = {0};
    struct cbn_error err = {0};
    struct cli_fleet fleet;
    cli_fleet_ask(cli, &fleet);
    if (cbn_cabinet_stats(cli->runtime, keep, &layers, &err) == CBN_STATUS_OK)
        print(cli, &layers, &fleet);
    else
        result = cli_fail_error(cli, &err);
    if (result == CLI_OK && layers.count == 0)
        cli_say(cli, "there is no layer: the cache is made when something is first stored");
    for (size_t i = 0; i < layers.count; i++)
        free((char *)(uintptr_t)layers.items[i].path);
    free(layers.items);
    return result;
}
