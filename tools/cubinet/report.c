/*
 * What the library tells during a warm or a check, kept for the end.
 */
#include <stdlib.h>
#include <string.h>

#include "request.h"

static void add_uncovered(struct cli_report *report, const char *op, const char *layer, const char *reason)
{
    for (size_t i = 0; i < report->uncovered_count; i++) {
        const struct cli_uncovered *other = &report->uncovered[i];
        if (strcmp(other->op, op) == 0 && strcmp(other->layer, layer) == 0 && strcmp(other->reason, reason) == 0)
            return;
    }
    report->uncovered =
        cli_grow(report->uncovered, &report->uncovered_capacity, report->uncovered_count, sizeof(*report->uncovered));
    report->uncovered[report->uncovered_count++] = (struct cli_uncovered){op, layer, cli_text_copy(reason)};
}

static bool same_call(const struct cbn_query *a, const struct cbn_query *b)
{
    return strcmp(a->op, b->op) == 0 && a->n == b->n && a->k == b->k && a->groups == b->groups && a->arch == b->arch;
}

/* An operation without a family: every layer that asks the same is named. */
static void hear_uncovered(struct cli_report *report, const struct cbn_warm_event *event)
{
    const struct cli_request *request = report->request;
    report->lacks_template |= event->spec != NULL;
    for (size_t i = 0; i < request->count && !event->spec; i++)
        if (same_call(&request->queries[i], event->query))
            add_uncovered(report, request->queries[i].op, request->layers[i],
                          event->error ? event->error->message : "there is no kernel for it");
}

struct reach {
    struct cli_report *report;
    size_t query;
};

static int note_spec(void *user, const struct cbn_spec *spec)
{
    struct reach *reach = user;
    const struct cli_request *request = reach->report->request;
    if (spec->key[0])
        return 0;
    char *reason = cli_text_format("kernel %s has no template in this release", spec->kernel);
    add_uncovered(reach->report, request->queries[reach->query].op, request->layers[reach->query], reason);
    free(reason);
    return 0;
}

static void hear_failure(struct cli_report *report, const struct cbn_warm_event *event)
{
    report->failures =
        cli_grow(report->failures, &report->failure_capacity, report->failure_count, sizeof(*report->failures));
    struct cli_failure *failure = &report->failures[report->failure_count++];
    *failure = (struct cli_failure){
        .spec = cli_text_copy(event->spec ? event->spec->text : event->query->op),
        .message = event->error ? cli_error_format(event->error) : cli_text_copy(""),
        .log = cli_text_copy(event->log ? event->log : ""),
        .status = event->error ? event->error->status : CBN_STATUS_OK,
    };
    if (event->spec)
        memcpy(failure->key, event->spec->key, sizeof(failure->key));
}

static void hear_missing(struct cli_report *report, const struct cbn_warm_event *event)
{
    report->missing =
        cli_grow(report->missing, &report->missing_capacity, report->missing_count, sizeof(*report->missing));
    report->missing[report->missing_count++] = cli_text_copy(event->spec->text);
}

void cli_keys_add(struct cli_keys *keys, const char *key, const char *text)
{
    keys->items = cli_grow(keys->items, &keys->capacity, keys->count, sizeof(*keys->items));
    struct cli_key *item = &keys->items[keys->count++];
    (void)snprintf(item->key, sizeof(item->key), "%s", key);
    (void)snprintf(item->text, sizeof(item->text), "%s", text);
}

json_t *cli_keys_json(const struct cli_keys *keys)
{
    json_t *items = json_array();
    for (size_t i = 0; i < keys->count; i++)
        cli_json_add(items, cli_json_text(keys->items[i].key));
    return items;
}

void cli_report_hear(void *user, const struct cbn_warm_event *event)
{
    struct cli_report *report = user;
    if (event->outcome == CBN_WARM_UNCOVERED)
        hear_uncovered(report, event);
    else if (event->outcome == CBN_WARM_FAILED)
        hear_failure(report, event);
    else if (event->outcome == CBN_WARM_MISSING)
        hear_missing(report, event);
    else if (event->spec)
        cli_keys_add(&report->present, event->spec->key, event->spec->text);
    report->others += event->outcome == CBN_WARM_OTHER;
    cli_progress_show(report->cli, event);
}

static int compare_uncovered(const void *a, const void *b)
{
    const struct cli_uncovered *left = a, *right = b;
    int order = strcmp(left->layer, right->layer);
    return order ? order : strcmp(left->op, right->op);
}

static int compare_failures(const void *a, const void *b)
{
    const struct cli_failure *left = a, *right = b;
    int order = strcmp(left->spec, right->spec);
    return order ? order : strcmp(left->key, right->key);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_keys(const void *a, const void *b)
{
    const struct cli_key *left = a, *right = b;
    int order = strcmp(left->text, right->text);
    return order ? order : strcmp(left->key, right->key);
}

static void sort(void *items, size_t count, size_t item_bytes, int (*compare)(const void *, const void *))
{
    if (count > 1)
        qsort(items, count, item_bytes, compare);
}

/* A specialisation without a template is told once, however many layers reach it: each is asked again. */
void cli_report_complete(struct cli_report *report)
{
    for (size_t i = 0; report->lacks_template && i < report->request->count; i++) {
        struct reach reach = {report, i};
        (void)cbn_enumerate(report->cli->runtime, &report->request->queries[i], note_spec, &reach, NULL);
    }
    sort(report->uncovered, report->uncovered_count, sizeof(*report->uncovered), compare_uncovered);
    sort(report->failures, report->failure_count, sizeof(*report->failures), compare_failures);
    sort(report->present.items, report->present.count, sizeof(*report->present.items), compare_keys);
    sort(report->missing, report->missing_count, sizeof(*report->missing), compare_texts);
}

uint32_t cli_report_requested(const struct cli_report *report, const struct cbn_warm_result *result)
{
    return result->requested - result->uncovered + (uint32_t)report->uncovered_count;
}

void cli_report_print_uncovered(const struct cli_report *report)
{
    for (size_t i = 0; i < report->uncovered_count; i++) {
        const struct cli_uncovered *item = &report->uncovered[i];
        (void)printf("uncovered: %s: %s\n", *item->layer ? item->layer : item->op, item->reason);
    }
}

json_t *cli_report_uncovered_json(const struct cli_report *report)
{
    json_t *items = json_array();
    for (size_t i = 0; i < report->uncovered_count; i++) {
        json_t *item = json_object();
        cli_json_set(item, "layer", cli_json_text(report->uncovered[i].layer));
        cli_json_set(item, "op", cli_json_text(report->uncovered[i].op));
        cli_json_set(item, "reason", cli_json_text(report->uncovered[i].reason));
        cli_json_add(items, item);
    }
    return items;
}

json_t *cli_report_failures_json(const struct cli_report *report)
{
    json_t *items = json_array();
    for (size_t i = 0; i < report->failure_count; i++) {
        json_t *item = json_object();
        cli_json_set(item, "key", cli_json_text(report->failures[i].key));
        cli_json_set(item, "spec", cli_json_text(report->failures[i].spec));
        cli_json_set(item, "message", cli_json_text(report->failures[i].message));
        cli_json_set(item, "log", cli_json_text(report->failures[i].log));
        cli_json_add(items, item);
    }
    return items;
}

json_t *cli_report_missing_json(const struct cli_report *report)
{
    json_t *items = json_array();
    for (size_t i = 0; i < report->missing_count; i++)
        cli_json_add(items, cli_json_text(report->missing[i]));
    return items;
}

void cli_report_done(struct cli_report *report)
{
    for (size_t i = 0; i < report->uncovered_count; i++)
        free(report->uncovered[i].reason);
    for (size_t i = 0; i < report->failure_count; i++) {
        free(report->failures[i].spec);
        free(report->failures[i].message);
        free(report->failures[i].log);
    }
    for (size_t i = 0; i < report->missing_count; i++)
        free(report->missing[i]);
    free(report->uncovered);
    free(report->failures);
    free(report->missing);
    free(report->present.items);
}

int cli_report_check(struct cli *cli, struct cli_report *report, struct cbn_warm_result *ret_result)
{
    const struct cli_request *request = report->request;
    struct cbn_warm_options options = {.size = sizeof(options), .event = cli_report_hear, .user = report};
    struct cbn_error err = {0};
    int32_t status = cbn_check(cli->runtime, request->queries, (uint32_t)request->count, &options, ret_result, &err);
    cli_bar_clear();
    if (status == CBN_STATUS_INVALID)
        return cli_fail(cli, CLI_USAGE, "%s", err.message);
    if (status != CBN_STATUS_OK)
        return cli_fail_error(cli, &err);
    cli_report_complete(report);
    return CLI_OK;
}
