/*
 * The runtime of one run, made from the global options.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

/* The path that a build child is executed from: this program, whatever its file is called by now. */
#define BUILDER_PATH "/proc/self/exe"

static void hear(void *user, const struct cbn_event *event)
{
    struct cli *cli = user;
    if (event->kind == CBN_EVENT_DAMAGE) {
        cli->damage_events++;
        cli_say(cli, "damage: %s", event->text);
    }
    if (event->kind == CBN_EVENT_NOTICE)
        cli_say(cli, "%s", event->text);
}

static int require_folder(const struct cli *cli, const char *option, const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0)
        return CLI_OK;
    return cli_fail(cli, CLI_FAILED, "%s %s: %s", option, path, strerror(errno));
}

int cli_session_open_existing(struct cli *cli, uint32_t flags)
{
    int result = cli->options.cache ? require_folder(cli, "--cache", cli->options.cache) : CLI_OK;
    return result == CLI_OK ? cli_session_open(cli, flags) : result;
}

/* A base that is missing is no error to the library: a call goes on without it. Who names it here wants it. */
static int require_bases(const struct cli *cli)
{
    int result = CLI_OK;
    for (uint32_t i = 0; i < cli->options.bases.count && result == CLI_OK; i++)
        result = require_folder(cli, "--base", cli->options.bases.items[i]);
    return result;
}

int cli_session_open(struct cli *cli, uint32_t flags)
{
    int result = require_bases(cli);
    if (result != CLI_OK)
        return result;
    const struct cli_options *given = &cli->options;
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    options.flags = flags;
    options.cache_dir = given->cache;
    options.base_dirs = given->bases.items;
    options.base_count = given->bases.count;
    options.builder_path = BUILDER_PATH;
    options.policy = given->policy;
    options.disable = given->disable;
    options.enable = given->enable;
    options.event = hear;
    options.event_user = cli;
    struct cbn_error err = {0};
    int32_t status = cbn_runtime_create(&options, &cli->runtime, &err);
    if (status == CBN_STATUS_INVALID)
        return cli_fail(cli, CLI_USAGE, "%s", err.message);
    return status == CBN_STATUS_OK ? CLI_OK : cli_fail_error(cli, &err);
}

void cli_session_close(struct cli *cli)
{
    cbn_runtime_destroy(cli->runtime);
    cli->runtime = NULL;
}
