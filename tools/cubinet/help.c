/*
 * Help, the man page and the completion script, all from the tables of options.c.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define LINE_COLUMNS 100
#define HELP_COLUMN 30

/* Words of text from column indent on, broken before LINE_COLUMNS. at: where the line stands. */
static void print_wrapped(FILE *file, const char *text, int indent, int at)
{
    (void)fprintf(file, "%*s", at < indent ? indent - at : 0, "");
    int column = at < indent ? indent : at;
    for (bool first = true; *text; first = false) {
        size_t length = strcspn(text, " ");
        if (!first && column + 1 + (int)length > LINE_COLUMNS) {
            (void)fprintf(file, "\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            (void)fputc(' ', file);
            column++;
        }
        (void)fwrite(text, 1, length, file);
        column += (int)length;
        text += length + (text[length] == ' ');
    }
    (void)fputc('\n', file);
}

static void print_row(FILE *file, const struct cli_row *row)
{
    char letter[8] = "";
    if (row->letter)
        (void)snprintf(letter, sizeof(letter), "-%c, ", row->letter);
    char *head = cli_text_format("  %s--%s%s%s", letter, row->name, row->argument ? " " : "",
                                 row->argument ? row->argument : "");
    (void)fputs(head, file);
    int at = (int)strlen(head);
    free(head);
    if (at >= HELP_COLUMN - 1) {
        (void)fputc('\n', file);
        at = 0;
    }
    print_wrapped(file, row->help, HELP_COLUMN, at);
}

static void print_group(FILE *file, const struct cli_group *group)
{
    (void)fprintf(file, "\n%s:\n", group->title);
    for (uint32_t i = 0; i < group->row_count; i++)
        print_row(file, &group->rows[i]);
}

static void print_overview(FILE *file)
{
    (void)fputs("usage: cubinet [global options] VERB [options]\n\nVerbs:\n", file);
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
        (void)fprintf(file, "  %-10s %s\n", verb->name, verb->summary);
    print_group(file, &cli_group_global);
    (void)fputs("\nExit codes: 0 done; 1 failed; 2 usage; 3 damage found, or coverage incomplete; 4 partly done.\n"
                "'cubinet help VERB' tells a verb's options.\n",
                file);
}

void cli_help_print(const struct cli_verb *verb, FILE *file)
{
    if (!verb) {
        print_overview(file);
        return;
    }
    (void)fprintf(file, "usage: cubinet %s%s%s\n\n", verb->name, *verb->usage ? " " : "", verb->usage);
    print_wrapped(file, *verb->details ? verb->details : verb->summary, 0, 0);
    for (int i = 0; verb->groups[i]; i++)
        print_group(file, verb->groups[i]);
    print_group(file, &cli_group_global);
}

int cli_help(struct cli *cli)
{
    if (cli->options.man && cli->options.completion != CLI_UNSET)
        return cli_fail(cli, CLI_USAGE, "give one of --man and --completion");
    if (cli->options.man) {
        cli_manual_print(stdout);
        return CLI_OK;
    }
    if (cli->options.completion != CLI_UNSET) {
        cli_completion_print(stdout);
        return CLI_OK;
    }
    const struct cli_verb *verb = NULL;
    if (cli->argument_count > 0 && !(verb = cli_verb_find(cli->arguments[0])))
        return cli_fail(cli, CLI_USAGE, "unknown verb '%s'; see 'cubinet help'", cli->arguments[0]);
    cli_help_print(verb, stdout);
    return CLI_OK;
}
