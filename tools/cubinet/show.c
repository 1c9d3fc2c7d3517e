/*
 * show: one entry decoded, or how two keys differ.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

static int write_cubin(const struct cli *cli, const struct cli_record *record)
{
    const char *path = cli->options.cubin;
    FILE *file = fopen(path, "wb");
    if (!file)
        return cli_fail(cli, CLI_FAILED, "cannot write %s: %s", path, strerror(errno));
    size_t size = record->entry.size_bytes;
    bool written = fwrite(record->cubin, 1, size, file) == size;
    int error = errno;
    if (fclose(file) != 0 && written) {
        written = false;
        error = errno;
    }
    if (!written)
        return cli_fail(cli, CLI_FAILED, "cannot write %s: %s; what it holds is no cubin", path, strerror(error));
    cli_say(cli, "%s: %zu bytes, cut by compiler %s", path, size, record->entry.compiler);
    return CLI_OK;
}

static void take_source(void *user, const char *text)
{
    char **source = user;
    free(*source);
    *source = cli_text_copy(text);
}

static int read_source(struct cli *cli, const struct cli_record *record, char **ret_source)
{
    struct cbn_error err = {0};
    int32_t status = cbn_cabinet_source(cli->runtime, record->entry.spec.key, take_source, ret_source, &err);
    return status == CBN_STATUS_OK ? CLI_OK : cli_fail_error(cli, &err);
}

static json_t *record_json(const struct cli_record *record)
{
    json_t *item = cli_entry_json(&record->entry);
    cli_json_set(item, "options", cli_json_text(record->options));
    cli_json_set(item, "log", cli_json_text(record->log));
    return item;
}

/* The fields of the newest compiler's entry stand at the top. */
static void print_json(const struct cli *cli, const struct cli_records *records, const char *source)
{
    json_t *root = cli_json_begin(cli);
    json_t *newest = record_json(&records->items[0]);
    if (json_object_update(root, newest) != 0)
        exit(cli_fail(cli, CLI_FAILED, "out of memory"));
    json_decref(newest);
    json_t *others = json_array();
    for (size_t i = 1; i < records->count; i++)
        cli_json_add(others, record_json(&records->items[i]));
    cli_json_set(root, "other_compilers", others);
    if (source)
        cli_json_set(root, "source", cli_json_text(source));
    cli_json_print(root);
}

static void add_resources(struct cli_table *table, const struct cli_entry *entry)
{
    cli_table_add(table, "registers");
    cli_table_add(table, "%u", entry->registers);
    cli_table_add(table, "shared memory");
    cli_table_add(table, "%u bytes, static", entry->shared_bytes);
    cli_table_add(table, "spills");
    cli_table_add(table, "%u bytes", entry->spill_bytes);
}

static void add_row(struct cli_table *table, const char *name, const char *value)
{
    cli_table_add(table, "%s", name);
    cli_table_add(table, "%s", value);
}

static void add_use(struct cli_table *table, const struct cli_entry *entry)
{
    char size[32], created[32], used[32];
    cli_bytes_format(entry->size_bytes, size, sizeof(size));
    cli_time_format(entry->created_s, created, sizeof(created));
    cli_time_format(entry->last_used_s, used, sizeof(used));
    add_row(table, "size", size);
    add_row(table, "created", created);
    add_row(table, "last used", used);
    cli_table_add(table, "hits");
    cli_table_add(table, "%llu", (unsigned long long)entry->hits);
    add_row(table, "pinned", entry->pinned ? "yes" : "no");
    cli_table_add(table, "layer");
    cli_table_add(table, "%u: %s", entry->layer, entry->layer_path);
}

static void print_record(const struct cli_record *record)
{
    const struct cli_entry *entry = &record->entry;
    struct cli_table table = {.columns = 2};
    char *params = cli_spec_params(&entry->spec);
    add_row(&table, "key", entry->spec.key);
    add_row(&table, "op", entry->spec.op);
    add_row(&table, "kernel", entry->spec.kernel);
    add_row(&table, "arch", entry->spec.arch);
    add_row(&table, "params", params);
    add_row(&table, "options", record->options);
    add_row(&table, "source digest", entry->source_digest);
    add_row(&table, "compiler", entry->compiler);
    cli_table_add(&table, "compile time");
    cli_table_add(&table, "%u ms", entry->compile_ms);
    add_resources(&table, entry);
    add_use(&table, entry);
    cli_table_print(&table, stdout, "");
    free(params);
    if (record->log[0])
        (void)printf("log:\n%s%s", record->log, record->log[strlen(record->log) - 1] == '\n' ? "" : "\n");
}

static void print_resources(const struct cli_records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        struct cli_table table = {.columns = 2};
        if (records->count > 1)
            add_row(&table, "compiler", records->items[i].entry.compiler);
        add_resources(&table, &records->items[i].entry);
        cli_table_print(&table, stdout, "");
    }
}

static void print_text(const struct cli *cli, const struct cli_records *records, const char *source)
{
    const struct cli_options *given = &cli->options;
    if (given->resources)
        print_resources(records);
    if (source)
        (void)fputs(source, stdout);
    for (size_t i = 0; i < records->count && !given->resources && !given->source && !given->cubin; i++) {
        if (i > 0)
            (void)putchar('\n');
        print_record(&records->items[i]);
    }
}

static int show_one(struct cli *cli, const struct cli_records *records)
{
    char *source = NULL;
    int result = cli->options.source ? read_source(cli, &records->items[0], &source) : CLI_OK;
    if (result == CLI_OK && cli->options.cubin)
        result = write_cubin(cli, &records->items[0]);
    if (result == CLI_OK && cli->options.json)
        print_json(cli, records, source);
    else if (result == CLI_OK)
        print_text(cli, records, source);
    free(source);
    return result;
}

static int show_two(struct cli *cli, const struct cli_records *left)
{
    struct cli_records right = {0};
    int result = cli_records_read(cli, cli->arguments[1], &right);
    if (result == CLI_OK)
        cli_difference_print(cli, &left->items[0], &right.items[0]);
    cli_records_done(&right);
    return result;
}

int cli_show(struct cli *cli)
{
    const struct cli_options *given = &cli->options;
    if (cli->argument_count == 0)
        return cli_fail(cli, CLI_USAGE, "give a KEY; 'cubinet ls' lists them");
    if (cli->argument_count == 2 && (given->cubin || given->source || given->resources))
        return cli_fail(cli, CLI_USAGE, "--cubin, --source and --resources take one KEY");
    int result = cli_session_open(cli, CLI_CACHE_PRESENT);
    if (result != CLI_OK)
        return result;
    struct cli_records records = {0};
    result = cli_records_read(cli, cli->arguments[0], &records);
    if (result == CLI_OK)
        result = cli->argument_count == 2 ? show_two(cli, &records) : show_one(cli, &records);
    cli_records_done(&records);
    return result;
}
