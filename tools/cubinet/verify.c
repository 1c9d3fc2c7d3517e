/*
 * verify: every entry against its key, and --repair.
 */
#include <stdlib.h>

#include "cli.h"

struct finding {
    char *key, *layer_path, *problem;
    bool repaired;
};

struct findings {
    const struct cli *cli;
    uint64_t checked, total;
    size_t count, capacity;
    struct finding *items;
};

static void count_layer(void *user, const struct cbn_layer_info *layer)
{
    struct findings *findings = user;
    findings->total += layer->entries;
}

static void keep(void *user, const char *key, const char *layer_path, const char *problem, int repaired)
{
    struct findings *findings = user;
    cli_progress_count(findings->cli, ++findings->checked, findings->total, "verified");
    if (!problem)
        return;
    findings->items = cli_grow(findings->items, &findings->capacity, findings->count, sizeof(*findings->items));
    findings->items[findings->count++] = (struct finding){
        cli_text_copy(key), cli_text_copy(layer_path ? layer_path : ""), cli_text_copy(problem), repaired != 0};
}

static void free_findings(struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free(findings->items[i].key);
        free(findings->items[i].layer_path);
        free(findings->items[i].problem);
    }
    free(findings->items);
}

static void print_json(const struct cli *cli, const struct findings *findings, const struct cbn_verify_result *result)
{
    json_t *root = cli_json_begin(cli);
    cli_json_set(root, "checked", json_integer((json_int_t)result->checked));
    json_t *keys = json_array(), *details = json_array();
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        cli_json_add(keys, cli_json_text(finding->key));
        json_t *detail = json_object();
        cli_json_set(detail, "key", cli_json_text(finding->key));
        cli_json_set(detail, "layer_path", cli_json_text(finding->layer_path));
        cli_json_set(detail, "problem", cli_json_text(finding->problem));
        cli_json_set(detail, "repaired", json_boolean(finding->repaired));
        cli_json_add(details, detail);
    }
    cli_json_set(root, "damaged", keys);
    cli_json_set(root, "repaired", json_integer((json_int_t)result->repaired));
    cli_json_set(root, "details", details);
    cli_json_set(root, "files_set_aside", json_integer(cli->damage_events));
    cli_json_print(root);
}

static void print_text(const struct cli *cli, const struct findings *findings, const struct cbn_verify_result *result)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        (void)printf("damaged: %s in %s: %s%s\n", finding->key, finding->layer_path, finding->problem,
                     finding->repaired ? " (dropped)" : "");
    }
    (void)printf("checked %llu, damaged %llu, repaired %llu\n", (unsigned long long)result->checked,
                 (unsigned long long)result->damaged, (unsigned long long)result->repaired);
    if (cli->damage_events)
        (void)printf("files set aside %u\n", cli->damage_events);
}

int cli_verify(struct cli *cli)
{
    bool repair = cli->options.repair && !cli->options.dry_run;
    if (cli->options.dry_run && !cli->options.repair)
        return cli_fail(cli, CLI_USAGE, "--dry-run goes with --repair");
    int code = cli_session_open(cli, CLI_CACHE_PRESENT);
    if (code != CLI_OK)
        return code;
    uint32_t damaged_files = cli->damage_events;
    struct findings findings = {.cli = cli};
    struct cbn_verify_result result = {.size = sizeof(result)};
    struct cbn_error err = {0};
    uint32_t flags = CBN_VERIFY_TELL_SOUND | (repair ? CBN_VERIFY_REPAIR : 0);
    (void)cbn_cabinet_layers(cli->runtime, count_layer, &findings, NULL); /* without a total the bar is full at once */
    int32_t status = cbn_cabinet_verify(cli->runtime, flags, keep, &findings, &result, &err);
    cli_bar_clear();
    cli->damage_events = damaged_files;
    if (status == CBN_STATUS_OK || status == CBN_STATUS_DAMAGED) {
        if (cli->options.json)
            print_json(cli, &findings, &result);
        else
            print_text(cli, &findings, &result);
        code = result.damaged > result.repaired || (damaged_files && !repair) ? CLI_INCOMPLETE : CLI_OK;
    } else {
        code = cli_fail_error(cli, &err);
    }
    free_findings(&findings);
    return code;
}
