/*
 * selftest: every kernel of the device against the reference.
 */
#include <stdlib.h>

#include "cli.h"

struct tally {
    const struct cli *cli;
    json_t *cases; /* NULL: text */
    uint32_t count, failed;
};

static void hear(void *user, const struct cbn_selftest_case *result)
{
    struct tally *tally = user;
    tally->count++;
    tally->failed += !result->ok;
    if (!tally->cases) {
        (void)printf("%-6s %s  error %.3g\n", result->ok ? "ok" : "FAILED", result->text, result->max_rel_err);
        return;
    }
    json_t *item = json_object();
    cli_json_set(item, "spec", cli_json_text(result->text));
    /* JSON has no NaN or infinity, which a broken kernel may lead to. */
    json_t *error = json_real(result->max_rel_err);
    cli_json_set(item, "max_rel_err", error ? error : json_null());
    cli_json_set(item, "ok", json_boolean(result->ok));
    cli_json_add(tally->cases, item);
}

int cli_selftest(struct cli *cli)
{
    int code = cli_session_open(cli, CLI_CACHE_USED);
    if (code != CLI_OK)
        return code;
    struct tally tally = {.cli = cli, .cases = cli->options.json ? json_array() : NULL};
    struct cbn_error err = {0};
    int32_t status = cbn_selftest(cli->runtime, cli->options.op, hear, &tally, &err);
    if (status != CBN_STATUS_OK && status != CBN_STATUS_PARTIAL) {
        json_decref(tally.cases);
        return cli_fail_error(cli, &err);
    }
    if (tally.cases) {
        json_t *root = cli_json_begin(cli);
        cli_json_set(root, "cases", tally.cases);
        cli_json_print(root);
    } else {
        (void)printf("%u cases, %u failed\n", tally.count, tally.failed);
    }
    return status == CBN_STATUS_OK && tally.failed == 0 ? CLI_OK : CLI_FAILED;
}
