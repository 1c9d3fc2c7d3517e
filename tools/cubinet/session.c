/*
 * The runtime of one run, made from the global options.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

/* The path that a build child is executed from: this program, whatever its file is called by now. */
#define BUILDER_PATH "/proc/self/exe"

/* Said once the session is open: where it fails, the failure says the same. */
static void keep_notice(struct cli *cli, const char *text)
{
    if (cli->notices.count < CLI_LIST_MAX)
        cli->notices.items[cli->notices.count++] = cli_text_copy(text);
}

static void hear(void *user, const struct cbn_event *event)
{
    struct cli *cli = user;
    cli->damage_events += event->kind == CBN_EVENT_DAMAGE;
    if (event->kind != CBN_EVENT_DAMAGE && event->kind != CBN_EVENT_NOTICE)
        return;
    if (cli->runtime)
        cli_say(cli, "%s", event->text);
    else
        keep_notice(cli, event->text);
}

static void drop_notices(struct cli *cli, bool say)
{
    for (uint32_t i = 0; i < cli->notices.count; i++) {
        if (say)
            cli_say(cli, "%s", cli->notices.items[i]);
        free((char *)(uintptr_t)cli->notices.items[i]);
    }
    cli->notices.count = 0;
}

static int require_folder(const struct cli *cli, const char *option, const char *path)
{
    struct stat status;
    if (!path || stat(path, &status) == 0)
        return CLI_OK;
    return cli_fail(cli, CLI_FAILED, "%s %s: %s", option, path, strerror(errno));
}

/* A base that is missing is no error to the library: a call goes on without it. Who names it here wants it. */
static int require_folders(const struct cli *cli, enum cli_cache need)
{
    int result = need == CLI_CACHE_PRESENT ? require_folder(cli, "--cache", cli->options.cache) : CLI_OK;
    for (uint32_t i = 0; i < cli->options.bases.count && result == CLI_OK; i++)
        result = require_folder(cli, "--base", cli->options.bases.items[i]);
    return result;
}

static uint32_t runtime_flags(const struct cli *cli, enum cli_cache need)
{
    if (need == CLI_CACHE_NONE)
        return CBN_RUNTIME_MEMORY_ONLY;
    bool required = need == CLI_CACHE_NEEDED || need == CLI_CACHE_PRESENT;
    return required || (need == CLI_CACHE_USED && cli->options.cache) ? CBN_RUNTIME_CACHE_REQUIRED : 0;
}

int cli_session_open(struct cli *cli, enum cli_cache need)
{
    int result = require_folders(cli, need);
    if (result != CLI_OK)
        return result;
    const struct cli_options *given = &cli->options;
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    options.flags = runtime_flags(cli, need) | (given->trust_folder ? CBN_RUNTIME_TRUST_FOLDER : 0);
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
    drop_notices(cli, status == CBN_STATUS_OK);
    if (status == CBN_STATUS_INVALID)
        return cli_fail(cli, CLI_USAGE, "%s", err.message);
    return status == CBN_STATUS_OK ? CLI_OK : cli_fail_error(cli, &err);
}

void cli_session_close(struct cli *cli)
{
    cbn_runtime_destroy(cli->runtime);
    cli->runtime = NULL;
}
