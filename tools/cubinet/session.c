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
    if (need == CLI_CACHE_SETTINGS)
        return CBN_RUNTIME_READ_ONLY;
    bool required = need == CLI_CACHE_NEEDED || need == CLI_CACHE_PRESENT;
    bool named = (need == CLI_CACHE_USED || need == CLI_CACHE_LOOKED) && cli->options.cache;
    return required || named ? CBN_RUNTIME_CACHE_REQUIRED : 0;
}

static int32_t create_runtime(struct cli *cli, uint32_t flags, struct cbn_error *err)
{
    const struct cli_options *given = &cli->options;
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    options.flags = flags | (given->trust_folder ? CBN_RUNTIME_TRUST_FOLDER : 0);
    options.cache_dir = given->cache;
    options.fleet = given->fleet;
    options.base_dirs = given->bases.items;
    options.base_count = given->bases.count;
    options.builder_path = BUILDER_PATH;
    options.policy = given->policy;
    options.disable = given->disable;
    options.enable = given->enable;
    options.event = hear;
    options.event_user = cli;
    return cbn_runtime_create(&options, &cli->runtime, err);
}

/* What was heard so far belongs to an attempt that is given up. */
static void forget_attempt(struct cli *cli)
{
    cbn_runtime_destroy(cli->runtime);
    cli->runtime = NULL;
    cli->damage_events = 0;
    drop_notices(cli, false);
}

/* Asked of the library, which alone knows the folder: read only it makes nothing. No lock is waited for. */
static bool cache_is_absent(const struct cli *cli)
{
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_runtime *runtime = NULL;
    struct cbn_error err = {0};
    options.flags = CBN_RUNTIME_READ_ONLY | CBN_RUNTIME_CACHE_REQUIRED;
    options.cache_dir = cli->options.cache;
    options.lock_timeout_ms = 1;
    int32_t status = cbn_runtime_create(&options, &runtime, &err);
    cbn_runtime_destroy(runtime);
    return status != CBN_STATUS_OK && err.domain == CBN_DOMAIN_OS &&
           (err.native_code == ENOENT || err.native_code == ENOTDIR);
}

static void count_layer(void *user, const struct cbn_layer_info *layer)
{
    uint32_t *count = user;
    (void)layer;
    (*count)++;
}

/* A default folder that cannot be used is no loss to who has a base and writes nothing. */
static bool goes_on_with_bases(struct cli *cli, uint32_t flags)
{
    uint32_t layers = 0;
    forget_attempt(cli);
    if (create_runtime(cli, flags & ~CBN_RUNTIME_CACHE_REQUIRED, NULL) == CBN_STATUS_OK)
        (void)cbn_cabinet_layers(cli->runtime, count_layer, &layers, NULL);
    if (!layers)
        forget_attempt(cli);
    return layers > 0;
}

static int32_t open_runtime(struct cli *cli, enum cli_cache need, struct cbn_error *err)
{
    uint32_t flags = runtime_flags(cli, need);
    bool reads = need == CLI_CACHE_LOOKED || need == CLI_CACHE_PRESENT;
    cli->cache_is_absent = reads && cache_is_absent(cli);
    if (cli->cache_is_absent)
        return create_runtime(cli, CBN_RUNTIME_MEMORY_ONLY, err);
    int32_t status = create_runtime(cli, flags, err);
    bool optional = (flags & CBN_RUNTIME_CACHE_REQUIRED) && !cli->options.cache;
    if (status == CBN_STATUS_OK || status == CBN_STATUS_INVALID || !optional)
        return status;
    return goes_on_with_bases(cli, flags) ? CBN_STATUS_OK : status;
}

int cli_session_open(struct cli *cli, enum cli_cache need)
{
    int result = require_folders(cli, need);
    if (result != CLI_OK)
        return result;
    struct cbn_error err = {0};
    int32_t status = open_runtime(cli, need, &err);
    drop_notices(cli, status == CBN_STATUS_OK && need != CLI_CACHE_SETTINGS);
    if (status == CBN_STATUS_INVALID)
        return cli_fail(cli, CLI_USAGE, "%s", err.message);
    if (status != CBN_STATUS_OK)
        return cli_fail_error(cli, &err);
    bool reports = need == CLI_CACHE_SETTINGS || need == CLI_CACHE_SHOWN || need == CLI_CACHE_NONE;
    return reports ? CLI_OK : cli_layers_check(cli);
}

void cli_session_close(struct cli *cli)
{
    cbn_runtime_destroy(cli->runtime);
    cli->runtime = NULL;
}
