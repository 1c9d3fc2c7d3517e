/*
 * check: what warm would find missing.
 */
#include "request.h"

static void print_text(const struct cli *cli, const struct cli_report *report, const struct cbn_warm_result *result)
{
    cli_request_print(cli, report->request);
    (void)printf("requested %u, present %u, missing %u, uncovered %zu\n", cli_report_requested(report, result),
                 result->already, result->missing, report->uncovered_count);
    for (size_t i = 0; i < report->missing_count; i++)
        (void)printf("missing: %s\n", report->missing[i]);
    cli_report_print_uncovered(report);
}

static void print_json(const struct cli *cli, const struct cli_report *report, const struct cbn_warm_result *result)
{
    json_t *root = cli_json_begin(cli);
    cli_json_set(root, "profile", cli_request_json(cli, report->request));
    cli_json_set(root, "requested", json_integer(cli_report_requested(report, result)));
    cli_json_set(root, "present", json_integer(result->already));
    cli_json_set(root, "missing", cli_report_missing_json(report));
    cli_json_set(root, "uncovered", cli_report_uncovered_json(report));
    cli_json_print(root);
}

static int look(struct cli *cli, struct cli_report *report)
{
    struct cbn_warm_result result = {.size = sizeof(result)};
    int code = cli_report_check(cli, report, &result);
    if (code != CLI_OK)
        return code;
    if (cli->options.json)
        print_json(cli, report, &result);
    else
        print_text(cli, report, &result);
    return result.missing || result.uncovered ? CLI_INCOMPLETE : CLI_OK;
}

int cli_check(struct cli *cli)
{
    struct cli_request request = {0};
    struct cli_report report = {.cli = cli, .request = &request};
    int result = cli_request_open(cli, &request);
    if (result == CLI_OK)
        result = cli_session_open(cli, CLI_CACHE_LOOKED);
    if (result == CLI_OK)
        result = cli_request_fill(cli, &request);
    if (result == CLI_OK)
        result = look(cli, &report);
    cli_report_done(&report);
    cli_request_done(&request);
    return result;
}
