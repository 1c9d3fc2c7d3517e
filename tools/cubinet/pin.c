/*
 * pin, unpin, and warm --pin: marks of the writable layer's entries.
 */
#include <stdlib.h>
#include <string.h>

#include "pin.h"

static void note_writable(void *user, const struct cbn_layer_info *layer)
{
    bool *writable = user;
    *writable = *writable || layer->writable;
}

/* Without one the library knows of no entry to mark, and every key would pass for one of a base. */
static int require_writable(struct cli *cli)
{
    bool writable = false;
    struct cbn_error err = {0};
    if (cli->cache_is_absent)
        return cli_fail(cli, CLI_FAILED, "there is no cache yet: nothing can be marked");
    if (cbn_cabinet_layers(cli->runtime, note_writable, &writable, &err) != CBN_STATUS_OK)
        return cli_fail_error(cli, &err);
    return writable ? CLI_OK : cli_fail(cli, CLI_FAILED, "no layer of the cache can be written: nothing can be marked");
}

int cli_pins_set(struct cli *cli, const struct cli_keys *wanted, bool pinned, struct cli_pins *ret_pins)
{
    int result = wanted->count ? require_writable(cli) : CLI_OK;
    for (size_t i = 0; i < wanted->count && result == CLI_OK; i++) {
        const struct cli_key *item = &wanted->items[i];
        struct cbn_error err = {0};
        int32_t status = cbn_cabinet_pin(cli->runtime, item->key, pinned, NULL, &err);
        if (status == CBN_STATUS_OK)
            cli_keys_add(&ret_pins->marked, item->key, item->text);
        else if (status == CBN_STATUS_NOT_FOUND)
            cli_keys_add(&ret_pins->in_bases, item->key, item->text);
        else
            result = cli_fail_error(cli, &err);
    }
    return result;
}

void cli_pins_done(struct cli_pins *pins)
{
    free(pins->marked.items);
    free(pins->in_bases.items);
}

static bool is_unpin(const struct cli *cli)
{
    return cli->verb->run == cli_unpin;
}

static void print_json(const struct cli *cli, const struct cli_report *report, const struct cli_pins *pins)
{
    json_t *root = cli_json_begin(cli);
    cli_json_set(root, "pinned", is_unpin(cli) ? json_array() : cli_keys_json(&pins->marked));
    if (is_unpin(cli))
        cli_json_set(root, "unpinned", cli_keys_json(&pins->marked));
    cli_json_set(root, "in_bases", cli_keys_json(&pins->in_bases));
    if (report) {
        cli_json_set(root, "profile", cli_request_json(cli, report->request));
        cli_json_set(root, "missing", cli_report_missing_json(report));
        cli_json_set(root, "uncovered", cli_report_uncovered_json(report));
    }
    cli_json_print(root);
}

static void print_keys(const char *word, const struct cli_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++) {
        const struct cli_key *item = &keys->items[i];
        (void)printf("%s: %s%s%s\n", word, item->key, item->text[0] ? " " : "", item->text);
    }
}

static void print_text(const struct cli *cli, const struct cli_report *report, const struct cli_pins *pins)
{
    const char *word = is_unpin(cli) ? "unpinned" : "pinned";
    if (report)
        cli_request_print(cli, report->request);
    print_keys(word, &pins->marked);
    print_keys("in a base, which needs no pin", &pins->in_bases);
    if (!report)
        return;
    (void)printf("%s %zu, in bases %zu, missing %zu, uncovered %zu\n", word, pins->marked.count, pins->in_bases.count,
                 report->missing_count, report->uncovered_count);
    for (size_t i = 0; i < report->missing_count; i++)
        (void)printf("missing: %s\n", report->missing[i]);
    cli_report_print_uncovered(report);
}

/* report NULL: the keys were named one by one. */
static void print(const struct cli *cli, const struct cli_report *report, const struct cli_pins *pins)
{
    if (cli->options.json)
        print_json(cli, report, pins);
    else
        print_text(cli, report, pins);
}

static int note_key(void *user, const struct cbn_entry_info *entry)
{
    struct cli_key *found = user;
    memcpy(found->key, entry->spec.key, sizeof(found->key));
    return 0;
}

/* The entry of a base, which the library does not mark: any layer that holds it but the writable one. */
static bool find_in_bases(struct cli *cli, const char *key, struct cli_keys *ret_in_bases)
{
    struct cli_key found = {0};
    if (cbn_cabinet_show(cli->runtime, key, note_key, &found, NULL) != CBN_STATUS_OK)
        return false;
    cli_keys_add(ret_in_bases, found.key, "");
    return true;
}

static int mark_key(struct cli *cli, const char *given, bool pinned, struct cli_pins *pins)
{
    struct cbn_error err = {0};
    char key[CBN_KEY_TEXT_BYTES] = "";
    int32_t status = cbn_cabinet_pin(cli->runtime, given, pinned, key, &err);
    if (status == CBN_STATUS_OK)
        cli_keys_add(&pins->marked, key, "");
    else if (status != CBN_STATUS_NOT_FOUND || !find_in_bases(cli, given, &pins->in_bases))
        return cli_fail_error(cli, &err);
    return CLI_OK;
}

/* Each key that cannot be marked is told; the others are marked all the same. */
static int mark_named(struct cli *cli, bool pinned)
{
    struct cli_pins pins = {0};
    int result = require_writable(cli);
    if (result != CLI_OK)
        return result;
    for (int i = 0; i < cli->argument_count; i++) {
        int code = mark_key(cli, cli->arguments[i], pinned, &pins);
        result = code == CLI_OK ? result : code;
    }
    print(cli, NULL, &pins);
    cli_pins_done(&pins);
    return result;
}

static int mark_present(struct cli *cli, struct cli_report *report, bool pinned)
{
    struct cbn_warm_result found = {.size = sizeof(found)};
    int code = cli_report_check(cli, report, &found);
    if (code != CLI_OK)
        return code;
    struct cli_pins pins = {0};
    int result = cli_pins_set(cli, &report->present, pinned, &pins);
    if (result == CLI_OK)
        print(cli, report, &pins);
    cli_pins_done(&pins);
    return result == CLI_OK && pinned && (found.missing || found.uncovered) ? CLI_INCOMPLETE : result;
}

static int mark_requested(struct cli *cli, bool pinned)
{
    struct cli_request request = {0};
    struct cli_report report = {.cli = cli, .request = &request};
    int result = cli_request_open(cli, &request);
    if (result == CLI_OK)
        result = cli_session_open(cli, CLI_CACHE_PRESENT);
    if (result == CLI_OK)
        result = cli_request_fill(cli, &request);
    if (result == CLI_OK)
        result = mark_present(cli, &report, pinned);
    cli_report_done(&report);
    cli_request_done(&request);
    return result;
}

static int mark(struct cli *cli, bool pinned)
{
    const struct cli_options *given = &cli->options;
    bool requested = given->model || given->manifest || given->all;
    if ((cli->argument_count > 0) == requested)
        return cli_fail(cli, CLI_USAGE, "give either KEYs or one of --model, --manifest and --all");
    if (requested)
        return mark_requested(cli, pinned);
    if (given->arch || given->ops || given->max_m != CLI_UNSET || given->tp != CLI_UNSET || given->ep != CLI_UNSET)
        return cli_fail(cli, CLI_USAGE, "--tp, --ep, --arch, --ops and --max-m go with --model, --manifest or --all");
    int result = cli_session_open(cli, CLI_CACHE_PRESENT);
    return result == CLI_OK ? mark_named(cli, pinned) : result;
}

int cli_pin(struct cli *cli)
{
    return mark(cli, true);
}

int cli_unpin(struct cli *cli)
{
    return mark(cli, false);
}
