/*
 * The command line by popt: global options, the verb, then the verb's and again the global options.
 */
#include <stdlib.h>
#include <string.h>

#include <popt.h>

#include "cli.h"

#define ROWS_MAX 64

/* The rows that are taken in one pass, and popt's view of them: val is the row's index + 1. */
struct pass {
    const struct cli_row *rows[ROWS_MAX];
    struct poptOption options[ROWS_MAX + 1];
    int count;
};

static void add_group(struct pass *pass, const struct cli_group *group)
{
    for (uint32_t i = 0; i < group->row_count && pass->count < ROWS_MAX; i++) {
        const struct cli_row *row = &group->rows[i];
        pass->rows[pass->count] = row;
        pass->options[pass->count] = (struct poptOption){
            row->name, row->letter, row->kind == CLI_FLAG ? POPT_ARG_NONE : POPT_ARG_STRING, NULL, pass->count + 1,
            NULL,      NULL};
        pass->count++;
    }
}

static void fill_pass(struct pass *pass, const struct cli_verb *verb)
{
    memset(pass, 0, sizeof(*pass));
    for (int i = 0; verb && verb->groups[i]; i++)
        add_group(pass, verb->groups[i]);
    add_group(pass, &cli_group_global);
}

static int refuse_number(const struct cli *cli, const struct cli_row *row, const char *text, const char *problem)
{
    if (row->high == INT64_MAX)
        return cli_fail(cli, CLI_USAGE, "--%s '%s' %s; give %lld or more", row->name, text, problem,
                        (long long)row->low);
    return cli_fail(cli, CLI_USAGE, "--%s '%s' %s; give %lld to %lld", row->name, text, problem, (long long)row->low,
                    (long long)row->high);
}

static int store_numbers(const struct cli *cli, const struct cli_row *row, const char *text, struct cli_numbers *list)
{
    list->count = 0;
    for (const char *at = text;;) {
        size_t length = strcspn(at, ",");
        char item[32];
        (void)snprintf(item, sizeof(item), "%.*s", (int)length, at);
        int64_t number = 0;
        const char *problem =
            length < sizeof(item) ? cli_number_read(item, row->low, row->high, &number) : "is too large";
        if (problem)
            return refuse_number(cli, row, item, problem);
        if (list->count == CLI_LIST_MAX)
            return cli_fail(cli, CLI_USAGE, "--%s lists more than %d numbers", row->name, CLI_LIST_MAX);
        list->items[list->count++] = number;
        if (!at[length])
            return CLI_OK;
        at += length + 1;
    }
}

static int store_choice(const struct cli *cli, const struct cli_row *row, const char *text, int64_t *field)
{
    int position = cli_choice_find(row->argument, text, strlen(text));
    if (position < 0)
        return cli_fail(cli, CLI_USAGE, "--%s '%s' is none of %s", row->name, text, row->argument);
    *field = row->low + position;
    return CLI_OK;
}

static int store_texts(const struct cli *cli, const struct cli_row *row, const char *text, struct cli_texts *list)
{
    if (list->count == CLI_LIST_MAX)
        return cli_fail(cli, CLI_USAGE, "--%s is given more than %d times", row->name, CLI_LIST_MAX);
    list->items[list->count++] = text;
    return CLI_OK;
}

static int store_unit(const struct cli *cli, const struct cli_row *row, const char *text, int64_t *field)
{
    bool size = row->kind == CLI_SIZE;
    const char *problem = size ? cli_size_read(text, field) : cli_span_read(text, field);
    if (!problem)
        return CLI_OK;
    return cli_fail(cli, CLI_USAGE, "--%s '%s' %s; give %s", row->name, text, problem,
                    size ? "a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB"
                         : "a whole number of s, m, h, d or w, as in 30d");
}

static int store(struct cli *cli, const struct cli_row *row, const char *text)
{
    void *field = (char *)&cli->options + row->offset;
    if (row->kind != CLI_FLAG && (!text || !*text))
        return cli_fail(cli, CLI_USAGE, "--%s is empty", row->name);
    switch (row->kind) {
    case CLI_FLAG:
        *(bool *)field = true;
        return CLI_OK;
    case CLI_TEXT:
        *(const char **)field = text;
        return CLI_OK;
    case CLI_TEXTS:
        return store_texts(cli, row, text, field);
    case CLI_NUMBERS:
        return store_numbers(cli, row, text, field);
    case CLI_CHOICE:
        return store_choice(cli, row, text, field);
    case CLI_SIZE:
    case CLI_SPAN:
        return store_unit(cli, row, text, field);
    case CLI_NUMBER:
        break;
    }
    const char *problem = cli_number_read(text, row->low, row->high, field);
    return problem ? refuse_number(cli, row, text, problem) : CLI_OK;
}

static int refuse_option(const struct cli *cli, poptContext context, int code)
{
    const char *option = poptBadOption(context, POPT_BADOPTION_NOALIAS);
    if (code == POPT_ERROR_BADOPT)
        return cli_fail(cli, CLI_USAGE, "unknown option %s; see 'cubinet help%s%s'", option, cli->verb ? " " : "",
                        cli->verb ? cli->verb->name : "");
    if (code == POPT_ERROR_NOARG)
        return cli_fail(cli, CLI_USAGE, "%s needs an argument", option);
    return cli_fail(cli, CLI_USAGE, "%s: %s", option, poptStrerror(code));
}

/* One pass over argv; *ret_context holds the arguments that are no options. */
static int take_pass(struct cli *cli, int argc, const char **argv, unsigned flags, struct pass *pass,
                     poptContext *ret_context)
{
    poptContext context = poptGetContext(NULL, argc, argv, pass->options, flags);
    if (!context)
        return cli_fail(cli, CLI_FAILED, "out of memory");
    *ret_context = context;
    int code = 0;
    while ((code = poptGetNextOpt(context)) > 0) {
        char *text = poptGetOptArg(context);
        const struct cli_row *row = pass->rows[code - 1];
        if (text && cli->owned.count == CLI_LIST_MAX) {
            free(text);
            return cli_fail(cli, CLI_USAGE, "more than %d options", CLI_LIST_MAX);
        }
        if (text)
            cli->owned.items[cli->owned.count++] = text;
        int result = store(cli, row, text);
        if (result != CLI_OK)
            return result;
    }
    return code < -1 ? refuse_option(cli, context, code) : CLI_OK;
}

static int count_texts(const char **texts)
{
    int count = 0;
    while (texts && texts[count])
        count++;
    return count;
}

static bool stores_number(enum cli_kind kind)
{
    return kind == CLI_NUMBER || kind == CLI_CHOICE || kind == CLI_SIZE || kind == CLI_SPAN;
}

/* Every number that some option can store. */
static void set_unset(struct cli_options *options)
{
    struct pass pass;
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) {
        fill_pass(&pass, verb);
        for (int i = 0; i < pass.count; i++)
            if (stores_number(pass.rows[i]->kind))
                *(int64_t *)(void *)((char *)options + pass.rows[i]->offset) = CLI_UNSET;
    }
}

int cli_parse(struct cli *cli, int argc, const char **argv)
{
    struct pass pass;
    set_unset(&cli->options);
    fill_pass(&pass, NULL);
    poptContext *contexts = (poptContext *)cli->contexts;
    int result = take_pass(cli, argc, argv, POPT_CONTEXT_POSIXMEHARDER, &pass, &contexts[0]);
    const char **rest = contexts[0] ? poptGetArgs(contexts[0]) : NULL;
    if (result != CLI_OK || !rest || !rest[0])
        return result;
    cli->verb = cli_verb_find(rest[0]);
    if (!cli->verb)
        return cli_fail(cli, CLI_USAGE, "unknown verb '%s'; see 'cubinet help'", rest[0]);
    fill_pass(&pass, cli->verb);
    /* popt takes argv[0] for the program's name: the verb stands there. */
    result = take_pass(cli, count_texts(rest), rest, 0, &pass, &contexts[1]);
    if (result != CLI_OK)
        return result;
    cli->arguments = poptGetArgs(contexts[1]);
    cli->argument_count = count_texts(cli->arguments);
    if (cli->argument_count > cli->verb->argument_max)
        return cli_fail(cli, CLI_USAGE, "unexpected argument '%s'", cli->arguments[cli->verb->argument_max]);
    return CLI_OK;
}

void cli_parse_done(struct cli *cli)
{
    for (uint32_t i = 0; i < cli->owned.count; i++)
        free((char *)(uintptr_t)cli->owned.items[i]);
    for (int i = 1; i >= 0; i--)
        if (cli->contexts[i])
            (void)poptFreeContext(cli->contexts[i]);
}
