/*
 * The runtime of one run, made from the global options.
 */
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

int cli_session_open(struct cli *cli, uint32_t flags)
{
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
