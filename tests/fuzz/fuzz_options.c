/*
 * The command line: input = arguments, a line each. What parses is taken as far as a call and its decision go; no verb
 * runs, nothing on the disk is touched.
 */
#include <string.h>

#include "cubinet/cli.h"
#include "fuzz.h"

#define ARGUMENTS_MAX 80

static struct cbn_runtime *runtime;

static void open_runtime(void)
{
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    options.flags = CBN_RUNTIME_MEMORY_ONLY | CBN_RUNTIME_IGNORE_ENV;
    FUZZ_CHECK(runtime || cbn_runtime_create(&options, &runtime, NULL) == CBN_STATUS_OK);
}

/* Splits text at its lines; ret_arguments ends in NULL. */
static int split(char *text, const char **ret_arguments)
{
    int count = 0;
    ret_arguments[count++] = "cubinet";
    for (char *at = text; at && *at && count < ARGUMENTS_MAX;) {
        char *end = strchr(at, '\n');
        ret_arguments[count++] = at;
        if (end)
            *end++ = 0;
        at = end;
    }
    ret_arguments[count] = NULL;
    return count;
}

static void decide(struct cli *cli)
{
    struct cbn_query query;
    struct cbn_error err = {0};
    uint32_t arches[CLI_ARCHES_MAX], count = 0;
    (void)cli_arches_get(cli, arches, &count);
    FUZZ_CHECK(count <= CLI_ARCHES_MAX);
    if (cli_shape_query(cli, cli->options.m_list.count > 0, &query) != CLI_OK)
        return;
    cli_profile_get(cli, &query.profile);
    json_decref(cli_profile_json(cli));
    json_decref(cli_shape_json(cli, &query));
    struct cbn_explanation explanation = {.size = sizeof(explanation)};
    int32_t status = cbn_explain(runtime, &query, &explanation, &err);
    FUZZ_CHECK(status == CBN_STATUS_OK || (err.status == status && err.message[0]));
    FUZZ_CHECK(status != CBN_STATUS_INTERNAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *arguments[ARGUMENTS_MAX + 1];
    char *text = malloc(size + 1);
    FUZZ_CHECK(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    open_runtime();
    struct cli cli = {.runtime = runtime};
    int argc = split(text, arguments);
    int result = cli_parse(&cli, argc, arguments);
    FUZZ_CHECK(result == CLI_OK || result == CLI_USAGE || result == CLI_FAILED);
    FUZZ_CHECK(cli.options.bases.count <= CLI_LIST_MAX && cli.options.m_list.count <= CLI_LIST_MAX);
    if (result == CLI_OK && cli.verb)
        decide(&cli);
    cli_parse_done(&cli);
    free(text);
    return 0;
}
