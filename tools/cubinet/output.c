/*
 * How the tool speaks: data on stdout as text or JSON, everything else on stderr.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"

static void die_without_memory(void)
{
    (void)fputs("cubinet: out of memory\n", stderr);
    exit(CLI_FAILED);
}

/* The terminal is one for the whole process, and so is the bar on it. */
static bool bar_is_shown;

void cli_bar_show(const char *text)
{
    (void)fprintf(stderr, "\r\033[K%s", text);
    (void)fflush(stderr);
    bar_is_shown = true;
}

void cli_bar_clear(void)
{
    if (bar_is_shown)
        (void)fputs("\r\033[K", stderr);
    bar_is_shown = false;
}

void cli_say(const struct cli *cli, const char *format, ...)
{
    if (cli->options.quiet)
        return;
    cli_bar_clear();
    va_list args;
    va_start(args, format);
    (void)fputs("cubinet: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
}

int cli_fail(const struct cli *cli, int code, const char *format, ...)
{
    cli_bar_clear();
    va_list args;
    va_start(args, format);
    (void)fputs("cubinet: ", stderr);
    if (cli->verb)
        (void)fprintf(stderr, "%s: ", cli->verb->name);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    return code;
}

char *cli_error_format(const struct cbn_error *err)
{
    const char *text = err->message[0] ? err->message : cbn_status_text(err->status);
    const char *cause = err->domain == CBN_DOMAIN_OS && err->native_code ? strerror((int)err->native_code) : "";
    bool named = strstr(text, cause) != NULL;
    return cli_text_format("%s%s%s", text, named ? "" : ": ", named ? "" : cause);
}

int cli_fail_error(const struct cli *cli, const struct cbn_error *err)
{
    char *text = cli_error_format(err);
    (void)cli_fail(cli, CLI_FAILED, "%s", text);
    free(text);
    return CLI_FAILED;
}

void *cli_grow(void *items, size_t *capacity, size_t count, size_t item_bytes)
{
    if (count < *capacity)
        return items;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    void *grown = reallocarray(items, wanted, item_bytes);
    if (!grown)
        die_without_memory();
    *capacity = wanted;
    return grown;
}

char *cli_text_copy(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        die_without_memory();
    return copy;
}

unsigned char *cli_bytes_copy(const void *bytes, size_t size)
{
    unsigned char *copy = malloc(size ? size : 1);
    if (!copy)
        die_without_memory();
    memcpy(copy, bytes, size);
    return copy;
}

static char *format_text(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        die_without_memory();
    return text;
}

char *cli_text_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = format_text(format, args);
    va_end(args);
    return text;
}

json_t *cli_json_begin(const struct cli *cli)
{
    json_t *root = json_object();
    char *schema = cli_text_format("cubinet.%s/1", cli->verb ? cli->verb->name : "version");
    cli_json_set(root, "schema", json_string(schema));
    free(schema);
    return root;
}

void cli_json_set(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, value) != 0)
        die_without_memory();
}

void cli_json_add(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        die_without_memory();
}

json_t *cli_json_text(const char *text)
{
    if (!text)
        return json_null();
    json_t *value = json_string(text);
    if (value)
        return value;
    char *copy = cli_text_copy(text);
    for (char *at = copy; *at; at++)
        if (*at & 0x80)
            *at = '?';
    value = json_string(copy);
    free(copy);
    return value;
}

void cli_json_print(json_t *root)
{
    if (json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0)
        (void)fputc('\n', stdout);
    else if (!ferror(stdout))
        die_without_memory();
    json_decref(root);
}

void cli_time_format(int64_t unix_s, char *ret_text, size_t text_bytes)
{
    time_t when = (time_t)unix_s;
    struct tm parts;
    if (unix_s == 0 || !gmtime_r(&when, &parts) || strftime(ret_text, text_bytes, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        (void)snprintf(ret_text, text_bytes, "-");
}

json_t *cli_json_time(int64_t unix_s)
{
    char text[32];
    cli_time_format(unix_s, text, sizeof(text));
    return unix_s == 0 ? json_null() : json_string(text);
}

void cli_bytes_format(uint64_t bytes, char *ret_text, size_t text_bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(ret_text, text_bytes, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void cli_table_add(struct cli_table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = format_text(format, args);
    va_end(args);
    table->cells = cli_grow(table->cells, &table->capacity, table->count, sizeof(*table->cells));
    table->cells[table->count++] = text;
}

#define COLUMNS_MAX 16

static void measure_columns(const struct cli_table *table, int *ret_widths)
{
    memset(ret_widths, 0, COLUMNS_MAX * sizeof(*ret_widths));
    for (size_t i = 0; i < table->count; i++) {
        int *width = &ret_widths[i % table->columns];
        int length = (int)strlen(table->cells[i]);
        *width = length > *width ? length : *width;
    }
}

static void print_row(char *const *cells, size_t columns, const int *widths, FILE *file)
{
    while (columns > 0 && !cells[columns - 1][0])
        columns--;
    for (size_t column = 0; column < columns; column++)
        (void)fprintf(file, "%-*s", column + 1 < columns ? widths[column] + 2 : 0, cells[column]);
    (void)fputc('\n', file);
}

void cli_table_done(struct cli_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct cli_table){.columns = table->columns};
}

void cli_table_print(struct cli_table *table, FILE *file, const char *indent)
{
    int widths[COLUMNS_MAX];
    measure_columns(table, widths);
    for (size_t row = 0; row + table->columns <= table->count; row += table->columns) {
        (void)fputs(indent, file);
        print_row(table->cells + row, table->columns, widths, file);
    }
    cli_table_done(table);
}

void cli_label_print(const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            (void)putchar('\\');
        if (*text == '\n')
            (void)fputs("\\n", stdout);
        else
            (void)putchar(*text);
    }
}
