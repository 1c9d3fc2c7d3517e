/*
 * What warm and check are asked for: queries with the layers they come from, and what the library told about them.
 */
#ifndef CUBINET_CLI_REQUEST_H
#define CUBINET_CLI_REQUEST_H

#include "cli.h"

struct cli_request {
    struct cbn_model *model; /* NULL for --all */
    uint32_t arches[CLI_ARCHES_MAX];
    uint32_t arch_count;
    int64_t max_m;
    uint32_t ops; /* bit i: operation i of request.c is wanted */
    bool ops_limited;
    size_t count, query_capacity, layer_capacity;
    struct cbn_query *queries;
    const char **layers; /* one a query; "" for --all */
};

/* Checks the options; no runtime is needed. Then the queries, which take the profile of the open session. */
int cli_request_open(struct cli *cli, struct cli_request *ret_request);
int cli_request_fill(struct cli *cli, struct cli_request *request);
/* scale_format.c: says so when the model's scales ask for another profile than the one that holds. */
void cli_request_hint(const struct cli *cli, const struct cbn_profile *profile);
void cli_request_done(struct cli_request *request);
void cli_request_print(const struct cli *cli, const struct cli_request *request);
json_t *cli_request_json(const struct cli *cli, const struct cli_request *request);

/* An uncovered layer: its operation has no kernel. */
struct cli_uncovered {
    const char *op; /* static or the request's */
    const char *layer;
    char *reason;
};

struct cli_failure {
    char key[CBN_KEY_TEXT_BYTES];
    char *spec;
    char *message;
    char *log;
    int32_t status;
};

struct cli_key {
    char key[CBN_KEY_TEXT_BYTES];
    char text[CBN_SPEC_TEXT_BYTES]; /* of its specialisation; "" when only the key is known */
};

struct cli_keys {
    size_t count, capacity;
    struct cli_key *items;
};

void cli_keys_add(struct cli_keys *keys, const char *key, const char *text);
json_t *cli_keys_json(const struct cli_keys *keys);

/* Filled from the library's events. */
struct cli_report {
    const struct cli *cli;
    const struct cli_request *request;
    size_t uncovered_count, uncovered_capacity;
    struct cli_uncovered *uncovered;
    size_t failure_count, failure_capacity;
    struct cli_failure *failures;
    size_t missing_count, missing_capacity;
    char **missing;
    struct cli_keys present; /* in some layer, or built */
    uint32_t others;         /* built by another process meanwhile */
    bool lacks_template;     /* some specialisation has none */
};

void cli_report_hear(void *user, const struct cbn_warm_event *event);
/* After the last event: names every uncovered layer, and puts all into an order that does not depend on the builds'. */
void cli_report_complete(struct cli_report *report);
/* cbn_check of the report's request, heard into it and completed. CLI_OK, or the exit code of what was said. */
int cli_report_check(struct cli *cli, struct cli_report *report, struct cbn_warm_result *ret_result);
/* Specialisations, and what is listed as uncovered: the sum of the figures that stand beside it. */
uint32_t cli_report_requested(const struct cli_report *report, const struct cbn_warm_result *result);
void cli_report_print_uncovered(const struct cli_report *report);
json_t *cli_report_uncovered_json(const struct cli_report *report);
json_t *cli_report_failures_json(const struct cli_report *report);
json_t *cli_report_missing_json(const struct cli_report *report);
void cli_report_done(struct cli_report *report);

/* warm_command.c: what would build the request, as given on this command line. The caller frees it. */
char *cli_warm_command(const struct cli *cli);

/* progress.c: one line a build, or a bar where stderr is a terminal; nothing with --quiet. */
void cli_progress_show(const struct cli *cli, const struct cbn_warm_event *event);

#endif
