/*
 * warm: builds what is missing. An interrupt may come at any time: entries are stored whole, one transaction each.
 */
#include "pin.h"

/* What was wanted besides; NULL: was not. */
struct extras {
    const struct cli_pins *pins;
    const struct cli_push *push;
};

static void print_text(const struct cli *cli, const struct cli_report *report, const struct cbn_warm_result *result,
                       const struct extras *extras)
{
    cli_request_print(cli, report->request);
    (void)printf("requested %u, already %u, compiled %u, failed %u, uncovered %zu, %.1f s\n",
                 cli_report_requested(report, result), result->already, result->compiled, result->failed,
                 report->uncovered_count, (double)result->wall_ms / 1000);
    if (extras->pins)
        (void)printf("pinned %zu, in bases %zu\n", extras->pins->marked.count, extras->pins->in_bases.count);
    if (extras->push)
        (void)printf("pushed %zu, not taken %zu\n", extras->push->pushed, extras->push->refused);
    cli_report_print_uncovered(report);
}

static void print_json(const struct cli *cli, const struct cli_report *report, const struct cbn_warm_result *result,
                       const struct extras *extras)
{
    json_t *root = cli_json_begin(cli);
    cli_json_set(root, "profile", cli_request_json(cli, report->request));
    cli_json_set(root, "requested", json_integer(cli_report_requested(report, result)));
    cli_json_set(root, "already", json_integer(result->already));
    cli_json_set(root, "compiled", json_integer(result->compiled));
    cli_json_set(root, "built_by_others", json_integer(report->others));
    cli_json_set(root, "failed", json_integer(result->failed));
    cli_json_set(root, "seconds", json_real((double)result->wall_ms / 1000));
    cli_json_set(root, "failures", cli_report_failures_json(report));
    cli_json_set(root, "uncovered", cli_report_uncovered_json(report));
    if (extras->pins) {
        cli_json_set(root, "pinned", cli_keys_json(&extras->pins->marked));
        cli_json_set(root, "in_bases", cli_keys_json(&extras->pins->in_bases));
    }
    if (extras->push) {
        cli_json_set(root, "pushed", json_integer((json_int_t)extras->push->pushed));
        cli_json_set(root, "not_taken", json_integer((json_int_t)extras->push->refused));
    }
    cli_json_print(root);
}

/* One cause that failed many, such as a full disk or no compiler, is the verb's own error and told once. */
static bool is_shared(int32_t status)
{
    return status != CBN_STATUS_OK && status != CBN_STATUS_PARTIAL;
}

/* Failures are told even with --quiet: that silences talk, not errors. */
static void tell_failures(const struct cli *cli, const struct cli_report *report, const struct cbn_error *err)
{
    for (size_t i = 0; i < report->failure_count; i++) {
        const struct cli_failure *failure = &report->failures[i];
        if (is_shared(err->status) && failure->status == err->status)
            continue;
        (void)cli_fail(cli, CLI_PARTLY, "%s: %s", failure->spec, failure->message);
        if (failure->log[0] && !cli->options.json)
            (void)fprintf(stderr, "%s\n", failure->log);
    }
    if (is_shared(err->status))
        (void)cli_fail_error(cli, err);
}

/* The marks and the pushes, if they are wanted, and the report. */
static int finish(struct cli *cli, const struct cli_report *report, const struct cbn_warm_result *result)
{
    struct cli_pins pins = {0};
    struct cli_push push = {0};
    bool wants_pins = cli->options.pin, wants_push = cli->options.push;
    int code = wants_pins ? cli_pins_set(cli, &report->present, true, &pins) : CLI_OK;
    int push_code = wants_push ? cli_push(cli, &report->present, &push) : CLI_OK;
    const struct extras extras = {wants_pins ? &pins : NULL, wants_push ? &push : NULL};
    if (cli->options.json)
        print_json(cli, report, result, &extras);
    else
        print_text(cli, report, result, &extras);
    cli_pins_done(&pins);
    return code != CLI_OK ? code : push_code;
}

static int build(struct cli *cli, struct cli_report *report)
{
    const struct cli_request *request = report->request;
    struct cbn_warm_options options = {
        .size = sizeof(options),
        .jobs = cli->options.jobs == CLI_UNSET ? 0 : (uint32_t)cli->options.jobs,
        .event = cli_report_hear,
        .user = report,
    };
    struct cbn_warm_result result = {.size = sizeof(result)};
    struct cbn_error err = {0};
    int32_t status = cbn_warm(cli->runtime, request->queries, (uint32_t)request->count, &options, &result, &err);
    cli_bar_clear();
    if (status == CBN_STATUS_INVALID)
        return cli_fail(cli, CLI_USAGE, "%s", err.message);
    if (status != CBN_STATUS_OK && !result.requested)
        return cli_fail_error(cli, &err); /* nothing was begun */
    cli_report_complete(report);
    tell_failures(cli, report, &err);
    int code = finish(cli, report, &result);
    if (code != CLI_OK)
        return code;
    if (status != CBN_STATUS_OK)
        return result.already + result.compiled ? CLI_PARTLY : CLI_FAILED;
    return result.uncovered ? CLI_INCOMPLETE : CLI_OK;
}

int cli_warm(struct cli *cli)
{
    struct cli_request request = {0};
    struct cli_report report = {.cli = cli, .request = &request};
    int result = cli_request_open(cli, &request);
    if (result == CLI_OK)
        result = cli_session_open(cli, CLI_CACHE_NEEDED);
    if (result == CLI_OK)
        result = cli_push_check(cli);
    if (result == CLI_OK)
        result = cli_request_fill(cli, &request);
    if (result == CLI_OK)
        result = build(cli, &report);
    cli_report_done(&report);
    cli_request_done(&request);
    return result;
}
