/*
 * The command that builds what a request lacks: the options that were given, behind another verb.
 */
#include <stdlib.h>
#include <string.h>

#include "request.h"

/* Appends to *text, which is replaced. */
static void append(char **text, const char *format, const char *name, const char *value)
{
    char *more = cli_text_format(format, *text, name, value);
    free(*text);
    *text = more;
}

/* As a shell reads it back. */
static char *quote(const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./,:=@%";
    if (*value && value[strspn(value, plain)] == 0)
        return cli_text_copy(value);
    char *quoted = cli_text_copy("");
    for (const char *at = value; *at; at++) {
        char letter[2] = {*at, 0};
        append(&quoted, "%s%s%s", *at == '\'' ? "'\\''" : letter, "");
    }
    append(&quoted, "'%s'%s%s", "", "");
    return quoted;
}

static void add_text(char **command, const char *name, const char *value)
{
    char *quoted = quote(value);
    append(command, "%s --%s %s", name, quoted);
    free(quoted);
}

static void add_row(const struct cli *cli, const struct cli_row *row, char **command)
{
    const void *field = (const char *)&cli->options + row->offset;
    char text[64];
    if (row->kind == CLI_FLAG && *(const bool *)field) {
        append(command, "%s --%s%s", row->name, "");
    } else if (row->kind == CLI_TEXT && *(const char *const *)field) {
        add_text(command, row->name, *(const char *const *)field);
    } else if (row->kind == CLI_NUMBER && *(const int64_t *)field != CLI_UNSET) {
        (void)snprintf(text, sizeof(text), "%lld", (long long)*(const int64_t *)field);
        add_text(command, row->name, text);
    } else if (row->kind == CLI_CHOICE && *(const int64_t *)field != CLI_UNSET) {
        cli_choice_name(row->argument, *(const int64_t *)field - row->low, text, sizeof(text));
        add_text(command, row->name, text);
    }
}

char *cli_warm_command(const struct cli *cli)
{
    const struct cli_verb *warm = cli_verb_find("warm");
    char *command = cli_text_copy("cubinet warm");
    if (cli->options.cache)
        add_text(&command, "cache", cli->options.cache);
    for (uint32_t i = 0; i < cli->options.bases.count; i++)
        add_text(&command, "base", cli->options.bases.items[i]);
    for (int i = 0; warm->groups[i]; i++)
        for (uint32_t j = 0; j < warm->groups[i]->row_count; j++)
            add_row(cli, &warm->groups[i]->rows[j], &command);
    return command;
}
