/*
 * The man page from the tables of options.c, in man(7) macros. tools/man/cubinet.1 is its output; a test compares.
 */
#include "cli.h"

/* Text for roff: a backslash and a hyphen are escaped, a leading dot or quote is shielded. */
static void print_escaped(FILE *file, const char *text)
{
    if (*text == '.' || *text == '\'')
        (void)fputs("\\&", file);
    for (; *text; text++) {
        if (*text == '\\')
            (void)fputs("\\e", file);
        else if (*text == '-')
            (void)fputs("\\-", file);
        else
            (void)fputc(*text, file);
    }
}

static void print_line(FILE *file, const char *text)
{
    print_escaped(file, text);
    (void)fputc('\n', file);
}

static void print_row(FILE *file, const struct cli_row *row)
{
    (void)fputs(".TP\n", file);
    if (row->letter)
        (void)fprintf(file, "\\fB\\-%c\\fR, ", row->letter);
    (void)fputs("\\fB\\-\\-", file);
    print_escaped(file, row->name);
    (void)fputs("\\fR", file);
    if (row->argument) {
        (void)fputs(" \\fI", file);
        print_escaped(file, row->argument);
        (void)fputs("\\fR", file);
    }
    (void)fputc('\n', file);
    print_line(file, row->help);
}

static void print_group(FILE *file, const struct cli_group *group)
{
    (void)fputs(".PP\n", file);
    print_escaped(file, group->title);
    (void)fputs(":\n", file);
    for (uint32_t i = 0; i < group->row_count; i++)
        print_row(file, &group->rows[i]);
}

static void print_verb(FILE *file, const struct cli_verb *verb)
{
    (void)fprintf(file, ".SS %s\n\\fBcubinet %s\\fR ", verb->name, verb->name);
    print_line(file, verb->usage);
    (void)fputs(".PP\n", file);
    print_line(file, *verb->details ? verb->details : verb->summary);
    for (int i = 0; verb->groups[i]; i++)
        print_group(file, verb->groups[i]);
}

void cli_manual_print(FILE *file)
{
    (void)fputs(".TH CUBINET 1\n.SH NAME\ncubinet \\- a cabinet of GPU kernels, compiled once and picked per call\n"
                ".SH SYNOPSIS\n\\fBcubinet\\fR [global options] \\fIVERB\\fR [options]\n.SH OPTIONS\n",
                file);
    print_group(file, &cli_group_global);
    (void)fputs(".SH VERBS\n", file);
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
        print_verb(file, verb);
    (void)fputs(
        ".SH EXIT STATUS\n.TP\n0\nDone.\n.TP\n1\nFailed: an unreadable or malformed file, a missing or refused "
        "folder, a failing check.\n.TP\n2\nUsage.\n.TP\n3\nDamage found, or coverage incomplete.\n.TP\n4\nPartly "
        "done: some kernels failed to build.\n",
        file);
}
