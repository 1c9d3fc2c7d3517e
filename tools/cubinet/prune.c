/*
 * prune: removes entries of the writable layer by rule.
 */
#include <stdlib.h>

#include "cli.h"

struct removed {
    char key[CBN_KEY_TEXT_BYTES];
    uint64_t size_bytes;
};

struct removal {
    size_t count, capacity;
    struct removed *items;
};

static void keep(void *user, const char *key, uint64_t size_bytes)
{
    struct removal *removal = user;
    removal->items = cli_grow(removal->items, &removal->capacity, removal->count, sizeof(*removal->items));
    struct removed *item = &removal->items[removal->count++];
    item->size_bytes = size_bytes;
    (void)snprintf(item->key, sizeof(item->key), "%s", key);
}

/* "<13.0": the compilers below that version. */
static int read_compiler(struct cli *cli, uint32_t *ret_below)
{
    const char *text = cli->options.compiler;
    if (!text)
        return CLI_OK;
    if (text[0] == '<' && !cli_version_read(text + 1, ret_below) && *ret_below > 0)
        return CLI_OK;
    return cli_fail(cli, CLI_USAGE, "--compiler '%s' is no bound; give '<VERSION', as in '<13.0'", text);
}

static int read_rules(struct cli *cli, struct cbn_prune_options *rules)
{
    const struct cli_options *given = &cli->options;
    bool any = given->max_size != CLI_UNSET || given->older_than != CLI_UNSET || given->arch || given->op ||
               given->compiler || given->stale || given->all;
    if (given->unpinned_too && !given->all)
        return cli_fail(cli, CLI_USAGE, "--unpinned-too goes with --all");
    if (!any && !given->compact)
        return cli_fail(cli, CLI_USAGE,
                        "give a rule: --max-size, --older-than, --arch, --op, --compiler, --stale, --all or --compact");
    int result = given->arch ? cli_arch_get(cli, &rules->arch) : CLI_OK;
    if (result == CLI_OK)
        result = read_compiler(cli, &rules->compiler_below);
    if (result != CLI_OK)
        return result;
    rules->max_bytes = given->max_size == CLI_UNSET ? UINT64_MAX : (uint64_t)given->max_size;
    rules->older_than_s = given->older_than == CLI_UNSET ? 0 : given->older_than;
    rules->op = given->op;
    rules->flags |= given->dry_run ? CBN_PRUNE_DRY_RUN : 0;
    rules->flags |= given->all ? CBN_PRUNE_ALL : 0;
    rules->flags |= given->stale ? CBN_PRUNE_STALE : 0;
    rules->flags |= given->unpinned_too ? CBN_PRUNE_UNPINNED_TOO : 0;
    rules->flags |= given->compact ? CBN_PRUNE_COMPACT : 0;
    return CLI_OK;
}

static void print_json(const struct cli *cli, const struct removal *removal, const struct cbn_prune_result *result)
{
    json_t *root = cli_json_begin(cli), *keys = json_array();
    for (size_t i = 0; i < removal->count; i++)
        cli_json_add(keys, cli_json_text(removal->items[i].key));
    cli_json_set(root, "dry_run", json_boolean(cli->options.dry_run));
    cli_json_set(root, "removed", json_integer((json_int_t)result->removed));
    cli_json_set(root, "kept", json_integer((json_int_t)result->kept));
    cli_json_set(root, "freed_bytes", json_integer((json_int_t)result->freed_bytes));
    cli_json_set(root, "keys", keys);
    cli_json_print(root);
}

static void print_keys(const struct cli *cli, const struct removal *removal)
{
    for (size_t i = 0; i < removal->count; i++) {
        char size[32];
        cli_bytes_format(removal->items[i].size_bytes, size, sizeof(size));
        (void)printf("%s: %s %s\n", cli->options.dry_run ? "would remove" : "removed", removal->items[i].key, size);
    }
}

static void print_text(const struct cli *cli, const struct removal *removal, const struct cbn_prune_result *result)
{
    char freed[32];
    cli_bytes_format(result->freed_bytes, freed, sizeof(freed));
    print_keys(cli, removal);
    (void)printf("%s %llu, %s %llu, %s %s\n", cli->options.dry_run ? "would remove" : "removed",
                 (unsigned long long)result->removed, cli->options.dry_run ? "keep" : "kept",
                 (unsigned long long)result->kept, cli->options.dry_run ? "free" : "freed", freed);
}

static int prune(struct cli *cli, const struct cbn_prune_options *rules, struct removal *removal)
{
    struct cbn_prune_result result = {.size = sizeof(result)};
    struct cbn_error err = {0};
    int32_t status = CBN_STATUS_OK;
    if (!cli->cache_is_absent)
        status = cbn_cabinet_prune(cli->runtime, rules, keep, removal, &result, &err);
    if (status == CBN_STATUS_OK) {
        if (cli->options.json)
            print_json(cli, removal, &result);
        else
            print_text(cli, removal, &result);
        return CLI_OK;
    }
    /* What went before the failure is gone: it is told as far as it is known. */
    if (!cli->options.json)
        print_keys(cli, removal);
    return status == CBN_STATUS_INVALID ? cli_fail(cli, CLI_USAGE, "%s", err.message) : cli_fail_error(cli, &err);
}

int cli_prune(struct cli *cli)
{
    struct cbn_prune_options rules = CBN_PRUNE_OPTIONS_INIT;
    int result = read_rules(cli, &rules);
    if (result == CLI_OK)
        result = cli_session_open(cli, CLI_CACHE_PRESENT);
    if (result != CLI_OK)
        return result;
    struct removal removal = {0};
    result = prune(cli, &rules, &removal);
    free(removal.items);
    return result;
}
