/*
 * pack and unpack: entries into one file and back. The name "-" is stdout and stdin.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "request.h"

static bool is_stream(const char *name)
{
    return name && strcmp(name, "-") == 0;
}

static bool is_requested(const struct cli_options *given)
{
    return given->model || given->manifest || given->all;
}

/* The one name that the verb takes; a stream is none of a terminal's. */
static int read_name(struct cli *cli, int stream, const char **ret_name)
{
    const char *way = stream == STDOUT_FILENO ? "OUT" : "IN";
    if (cli->argument_count != 1)
        return cli_fail(cli, CLI_USAGE, "give the file's name %s, or - for standard %s", way,
                        stream == STDOUT_FILENO ? "output" : "input");
    *ret_name = cli->arguments[0];
    if (is_stream(*ret_name) && isatty(stream))
        return cli_fail(cli, CLI_USAGE, "standard %s is a terminal; name a file, or redirect it",
                        stream == STDOUT_FILENO ? "output" : "input");
    if (is_stream(*ret_name) && stream == STDOUT_FILENO && cli->options.json)
        return cli_fail(cli, CLI_USAGE, "--json goes with a file: standard output is the pack's");
    return CLI_OK;
}

/* ---- pack ---- */

static void print_packed(const struct cli *cli, const char *name, const struct cbn_pack_result *result)
{
    if (cli->options.json) {
        json_t *root = cli_json_begin(cli);
        cli_json_set(root, "file", cli_json_text(name));
        cli_json_set(root, "entries", json_integer((json_int_t)result->entries));
        cli_json_set(root, "bytes", json_integer((json_int_t)result->bytes));
        cli_json_set(root, "damaged", json_integer((json_int_t)result->damaged));
        cli_json_set(root, "digest", cli_json_text(result->digest));
        cli_json_set(root, "missing", json_array());
        cli_json_set(root, "uncovered", json_array());
        cli_json_print(root);
        return;
    }
    FILE *file = is_stream(name) ? stderr : stdout;
    if (file == stderr && cli->options.quiet)
        return;
    (void)fprintf(file, "entries %llu, bytes %llu\nsha256 %s\n", (unsigned long long)result->entries,
                  (unsigned long long)result->bytes, result->digest);
}

static int write_pack(struct cli *cli, const char *name, const struct cbn_pack_options *options)
{
    struct cbn_pack_options with_target = *options;
    struct cbn_pack_result result = {.size = sizeof(result)};
    struct cbn_error err = {0};
    if (is_stream(name))
        with_target.fd = STDOUT_FILENO;
    int32_t status = cbn_cabinet_pack(cli->runtime, is_stream(name) ? NULL : name, &with_target, &result, &err);
    if (status == CBN_STATUS_INVALID)
        return cli_fail(cli, CLI_USAGE, "%s", err.message);
    if (status != CBN_STATUS_OK)
        return cli_fail_error(cli, &err);
    print_packed(cli, name, &result);
    if (!result.damaged)
        return CLI_OK;
    return cli_fail(cli, CLI_INCOMPLETE, "%llu damaged not packed; run 'cubinet verify --repair'",
                    (unsigned long long)result.damaged);
}

static void print_incomplete_json(const struct cli *cli, const struct cli_report *report, const char *command)
{
    json_t *root = cli_json_begin(cli);
    cli_json_set(root, "file", json_null());
    cli_json_set(root, "entries", json_integer(0));
    cli_json_set(root, "missing", cli_report_missing_json(report));
    cli_json_set(root, "uncovered", cli_report_uncovered_json(report));
    cli_json_set(root, "warm", cli_json_text(command));
    cli_json_print(root);
}

/* Half of a model's kernels are no deployment: what is missing is named, with what builds it, and nothing is written.
 */
static int tell_incomplete(struct cli *cli, const char *name, const struct cli_report *report, const char *command)
{
    if (cli->options.json)
        print_incomplete_json(cli, report, command);
    FILE *file = is_stream(name) ? stderr : stdout;
    for (size_t i = 0; i < report->missing_count && !cli->options.json; i++)
        (void)fprintf(file, "missing: %s\n", report->missing[i]);
    for (size_t i = 0; i < report->uncovered_count && !cli->options.json; i++) {
        const struct cli_uncovered *item = &report->uncovered[i];
        (void)fprintf(file, "uncovered: %s: %s\n", *item->layer ? item->layer : item->op, item->reason);
    }
    if (report->missing_count)
        return cli_fail(cli, CLI_INCOMPLETE,
                        "the cache lacks %zu of what is requested, and nothing was packed; run: %s",
                        report->missing_count, command);
    return cli_fail(cli, CLI_INCOMPLETE,
                    "%zu of what is requested has no kernel, and nothing was packed; limit the "
                    "request with --ops",
                    report->uncovered_count);
}

static int pack_present(struct cli *cli, const char *name, struct cli_report *report, const char *command)
{
    struct cbn_warm_result found = {.size = sizeof(found)};
    int code = cli_report_check(cli, report, &found);
    if (code != CLI_OK)
        return code;
    if (found.missing || found.uncovered)
        return tell_incomplete(cli, name, report, command);
    struct cbn_pack_options options = CBN_PACK_OPTIONS_INIT;
    const char **keys = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < report->present.count; i++) {
        keys = cli_grow(keys, &capacity, i, sizeof(*keys));
        keys[i] = report->present.items[i].key;
    }
    static const char *const none[1] = {NULL};
    options.keys = keys ? keys : none;
    options.key_count = (uint32_t)report->present.count;
    code = write_pack(cli, name, &options);
    free(keys);
    return code;
}

static int pack_requested(struct cli *cli, const char *name)
{
    struct cli_request request = {0};
    struct cli_report report = {.cli = cli, .request = &request};
    char *command = cli_warm_command(cli); /* before the session completes the options */
    int result = cli_request_open(cli, &request);
    if (result == CLI_OK)
        result = cli_session_open(cli, CLI_CACHE_PRESENT);
    if (result == CLI_OK)
        result = cli_request_fill(cli, &request);
    if (result == CLI_OK)
        result = pack_present(cli, name, &report, command);
    cli_report_done(&report);
    cli_request_done(&request);
    free(command);
    return result;
}

static int pack_filtered(struct cli *cli, const char *name)
{
    struct cbn_pack_options options = CBN_PACK_OPTIONS_INIT;
    const struct cli_options *given = &cli->options;
    if (given->ops || given->max_m != CLI_UNSET || given->tp != CLI_UNSET || given->ep != CLI_UNSET)
        return cli_fail(cli, CLI_USAGE, "--tp, --ep, --ops and --max-m go with --model, --manifest or --all");
    int result = given->arch ? cli_arch_get(cli, &options.arch) : CLI_OK;
    if (result == CLI_OK)
        result = cli_session_open(cli, CLI_CACHE_PRESENT);
    options.op = given->op;
    options.kernel = given->kernel;
    return result == CLI_OK ? write_pack(cli, name, &options) : result;
}

int cli_pack(struct cli *cli)
{
    const char *name = NULL;
    int result = read_name(cli, STDOUT_FILENO, &name);
    if (result != CLI_OK)
        return result;
    if (!is_requested(&cli->options))
        return pack_filtered(cli, name);
    if (cli->options.op || cli->options.kernel)
        return cli_fail(cli, CLI_USAGE, "--op and --kernel select from what is there; limit a request with --ops");
    return pack_requested(cli, name);
}

/* ---- unpack ---- */

static void print_unpacked(const struct cli *cli, const char *name, const struct cbn_unpack_result *result)
{
    if (!cli->options.json) {
        (void)printf("entries %llu, stored %llu, already %llu, bytes %llu\nsha256 %s\n",
                     (unsigned long long)result->entries, (unsigned long long)result->stored,
                     (unsigned long long)result->already, (unsigned long long)result->bytes, result->digest);
        return;
    }
    json_t *root = cli_json_begin(cli);
    cli_json_set(root, "file", cli_json_text(name));
    cli_json_set(root, "entries", json_integer((json_int_t)result->entries));
    cli_json_set(root, "stored", json_integer((json_int_t)result->stored));
    cli_json_set(root, "already", json_integer((json_int_t)result->already));
    cli_json_set(root, "bytes", json_integer((json_int_t)result->bytes));
    cli_json_set(root, "digest", cli_json_text(result->digest));
    cli_json_print(root);
}

static int unpack(struct cli *cli, const char *name)
{
    struct cbn_unpack_options options = CBN_UNPACK_OPTIONS_INIT;
    struct cbn_unpack_result result = {.size = sizeof(result)};
    struct cbn_error err = {0};
    options.expect_digest = cli->options.expect_digest;
    if (is_stream(name))
        options.fd = STDIN_FILENO;
    int32_t status = cbn_cabinet_unpack(cli->runtime, is_stream(name) ? NULL : name, &options, &result, &err);
    if (status == CBN_STATUS_OK) {
        print_unpacked(cli, name, &result);
        return CLI_OK;
    }
    if (status == CBN_STATUS_INVALID)
        return cli_fail(cli, CLI_USAGE, "%s", err.message);
    (void)cli_fail_error(cli, &err);
    return status == CBN_STATUS_DAMAGED ? CLI_INCOMPLETE : CLI_FAILED;
}

int cli_unpack(struct cli *cli)
{
    const char *name = NULL;
    int result = read_name(cli, STDIN_FILENO, &name);
    if (result == CLI_OK)
        result = cli_session_open(cli, CLI_CACHE_NEEDED);
    return result == CLI_OK ? unpack(cli, name) : result;
}
