/*
 * matrix: decisions over several M, with every candidate on and with each switched off in turn.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Column 0 has every candidate on; column i has candidates[i - 1] off. */
struct sheet {
    struct cbn_query query;
    uint32_t candidate_count;
    char candidates[CBN_CANDIDATES_MAX][CBN_TEXT_BYTES];
    char chosen[CLI_LIST_MAX][CBN_CANDIDATES_MAX + 1][CBN_TEXT_BYTES]; /* "": none */
};

static int ask(struct cli *cli, const struct cbn_query *query, struct cbn_explanation *ret_explanation)
{
    struct cbn_error err = {0};
    *ret_explanation = (struct cbn_explanation){.size = sizeof(*ret_explanation)};
    int32_t status = cbn_explain(cli->runtime, query, ret_explanation, &err);
    if (status == CBN_STATUS_INVALID)
        return cli_fail(cli, CLI_USAGE, "%s", err.message);
    return status == CBN_STATUS_OK ? CLI_OK : cli_fail_error(cli, &err);
}

/* Asked at M = 1, since a call with nothing to launch may name none. */
static int name_candidates(struct cli *cli, struct sheet *sheet)
{
    struct cbn_query query = sheet->query;
    struct cbn_explanation explanation;
    query.m = 1;
    int result = ask(cli, &query, &explanation);
    sheet->candidate_count = result == CLI_OK ? explanation.candidate_count : 0;
    for (uint32_t i = 0; i < sheet->candidate_count; i++)
        memcpy(sheet->candidates[i], explanation.candidates[i].kernel, sizeof(sheet->candidates[i]));
    return result;
}

static int decide(struct cli *cli, const struct sheet *sheet, int64_t m, uint32_t column, char *ret_chosen)
{
    struct cbn_query query = sheet->query;
    struct cbn_explanation explanation;
    const char *given = query.profile.disable;
    char *disable = column ? cli_text_format("%s%s%s", given ? given : "", given && *given ? "," : "",
                                             sheet->candidates[column - 1])
                           : NULL;
    query.m = m;
    if (disable)
        query.profile.disable = disable;
    int result = ask(cli, &query, &explanation);
    free(disable);
    if (result == CLI_OK)
        (void)snprintf(ret_chosen, CBN_TEXT_BYTES, "%s",
                       explanation.noop     ? "noop"
                       : explanation.chosen ? explanation.spec.kernel
                                            : "");
    return result;
}

static int fill_sheet(struct cli *cli, struct sheet *sheet)
{
    int result = name_candidates(cli, sheet);
    for (uint32_t i = 0; i < cli->options.m_list.count && result == CLI_OK; i++)
        for (uint32_t column = 0; column <= sheet->candidate_count && result == CLI_OK; column++)
            result = decide(cli, sheet, cli->options.m_list.items[i], column, sheet->chosen[i][column]);
    return result;
}

static void print_json(const struct cli *cli, const struct sheet *sheet)
{
    json_t *root = cli_json_begin(cli), *rows = json_array();
    cli_json_set(root, "call", cli_shape_json(cli, &sheet->query));
    cli_json_set(root, "profile", cli_profile_json(cli));
    for (uint32_t i = 0; i < cli->options.m_list.count; i++) {
        for (uint32_t column = 0; column <= sheet->candidate_count; column++) {
            const char *chosen = sheet->chosen[i][column];
            json_t *row = json_object();
            cli_json_set(row, "m", json_integer(cli->options.m_list.items[i]));
            cli_json_set(row, "disabled", column ? cli_json_text(sheet->candidates[column - 1]) : json_null());
            cli_json_set(row, "chosen", *chosen ? cli_json_text(chosen) : json_null());
            cli_json_add(rows, row);
        }
    }
    cli_json_set(root, "rows", rows);
    cli_json_print(root);
}

static void print_text(const struct cli *cli, const struct sheet *sheet)
{
    cli_shape_print(cli, &sheet->query);
    cli_profile_print(cli);
    struct cli_table table = {.columns = 2 + sheet->candidate_count};
    cli_table_add(&table, "M");
    cli_table_add(&table, "all on");
    for (uint32_t i = 0; i < sheet->candidate_count; i++)
        cli_table_add(&table, "no %s", sheet->candidates[i]);
    for (uint32_t i = 0; i < cli->options.m_list.count; i++) {
        cli_table_add(&table, "%lld", (long long)cli->options.m_list.items[i]);
        for (uint32_t column = 0; column <= sheet->candidate_count; column++)
            cli_table_add(&table, "%s", sheet->chosen[i][column][0] ? sheet->chosen[i][column] : "none");
    }
    cli_table_print(&table, stdout, "");
}

int cli_matrix(struct cli *cli)
{
    struct sheet *sheet = calloc(1, sizeof(*sheet));
    if (!sheet)
        return cli_fail(cli, CLI_FAILED, "out of memory");
    int result = cli_shape_query(cli, true, &sheet->query);
    if (result == CLI_OK && cli->options.m_list.count == 0)
        result = cli_fail(cli, CLI_USAGE, "--m is missing");
    if (result == CLI_OK)
        result = cli_session_open(cli, CLI_CACHE_NONE);
    if (result == CLI_OK) {
        cli_profile_get(cli, &sheet->query.profile);
        result = fill_sheet(cli, sheet);
    }
    if (result == CLI_OK && cli->options.json)
        print_json(cli, sheet);
    else if (result == CLI_OK)
        print_text(cli, sheet);
    free(sheet);
    return result;
}
