/*
 * explain: the dispatcher's decision for one call.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char *verdict_word(uint32_t verdict)
{
    if (verdict == CBN_VERDICT_CHOSEN)
        return "chosen";
    return verdict == CBN_VERDICT_REFUSED ? "refused" : "not_reached";
}

static const char *chosen_name(const struct cbn_explanation *explanation)
{
    if (explanation->noop)
        return "noop";
    return explanation->chosen ? explanation->spec.kernel : NULL;
}

static json_t *candidate_json(const struct cbn_candidate_verdict *candidate)
{
    json_t *item = json_object();
    cli_json_set(item, "kernel", cli_json_text(candidate->kernel));
    cli_json_set(item, "verdict", json_string(verdict_word(candidate->verdict)));
    cli_json_set(item, "guard", candidate->guard[0] ? cli_json_text(candidate->guard) : json_null());
    cli_json_set(item, "value", candidate->has_value ? json_integer(candidate->value) : json_null());
    return item;
}

/* What the call launches ahead of the chosen kernel. */
static json_t *first_json(const struct cbn_explanation *explanation)
{
    if (!explanation->quantizes_first)
        return json_null();
    json_t *first = json_object();
    cli_json_set(first, "op", cli_json_text(explanation->quantize_spec.op));
    cli_json_set(first, "kernel", cli_json_text(explanation->quantize_spec.kernel));
    cli_json_set(first, "key", cli_json_text(explanation->quantize_spec.key));
    cli_json_set(first, "params", cli_spec_params_json(&explanation->quantize_spec));
    return first;
}

static void print_json(const struct cli *cli, const struct cbn_query *query, const struct cbn_explanation *explanation)
{
    json_t *root = cli_json_begin(cli);
    cli_json_set(root, "call", cli_shape_json(cli, query));
    cli_json_set(root, "profile", cli_profile_json(cli));
    cli_json_set(root, "chosen", cli_json_text(chosen_name(explanation)));
    bool has_key = explanation->chosen && explanation->spec.key[0];
    cli_json_set(root, "key", has_key ? cli_json_text(explanation->spec.key) : json_null());
    cli_json_set(root, "params", explanation->chosen ? cli_spec_params_json(&explanation->spec) : json_object());
    cli_json_set(root, "first", first_json(explanation));
    cli_json_set(root, "cached", json_boolean(explanation->cached));
    cli_json_set(root, "launches", json_integer(explanation->launches));
    cli_json_set(root, "workspace_bytes", json_integer((json_int_t)explanation->workspace_bytes));
    json_t *candidates = json_array();
    for (uint32_t i = 0; i < explanation->candidate_count; i++)
        cli_json_add(candidates, candidate_json(&explanation->candidates[i]));
    cli_json_set(root, "candidates", candidates);
    cli_json_print(root);
}

/* A guard's text begins with the name of its fact. */
static void add_value(struct cli_table *table, const struct cbn_candidate_verdict *candidate)
{
    char fact[CBN_TEXT_BYTES], value[CBN_TEXT_BYTES];
    (void)snprintf(fact, sizeof(fact), "%.*s", (int)strcspn(candidate->guard, " "), candidate->guard);
    cli_value_format(fact, candidate->value, value, sizeof(value));
    cli_table_add(table, "%s%s", candidate->has_value ? "saw " : "", candidate->has_value ? value : "");
}

static void print_candidates(const struct cbn_explanation *explanation)
{
    if (explanation->candidate_count == 0)
        return;
    (void)puts("candidates:");
    struct cli_table table = {.columns = 4};
    for (uint32_t i = 0; i < explanation->candidate_count; i++) {
        const struct cbn_candidate_verdict *candidate = &explanation->candidates[i];
        cli_table_add(&table, "%s", candidate->kernel);
        cli_table_add(&table, "%s", verdict_word(candidate->verdict));
        cli_table_add(&table, "%s", candidate->guard);
        add_value(&table, candidate);
    }
    cli_table_print(&table, stdout, "  ");
}

/* prefix: "" of the chosen kernel, "first " of what is launched ahead of it. */
static void print_spec(const char *prefix, const struct cbn_spec *spec)
{
    char *params = cli_spec_params(spec);
    (void)printf("%skey: %s\n", prefix, spec->key[0] ? spec->key : "none, there is no template");
    (void)printf("%sparams: %s\n", prefix, params);
    free(params);
}

static void print_specs(const struct cbn_explanation *explanation)
{
    print_spec("", &explanation->spec);
    if (explanation->quantizes_first) {
        (void)printf("first: %s/%s\n", explanation->quantize_spec.op, explanation->quantize_spec.kernel);
        print_spec("first ", &explanation->quantize_spec);
    }
    (void)printf("cached: %s\n", explanation->cached ? "yes" : "no");
}

static void print_text(const struct cli *cli, const struct cbn_query *query, const struct cbn_explanation *explanation)
{
    cli_shape_print(cli, query);
    cli_profile_print(cli);
    const char *chosen = chosen_name(explanation);
    (void)printf("chosen: %s\n", chosen ? chosen : "none");
    if (explanation->chosen)
        print_specs(explanation);
    (void)printf("launches: %u\nworkspace: %llu bytes\n", explanation->launches,
                 (unsigned long long)explanation->workspace_bytes);
    print_candidates(explanation);
}

int cli_explain(struct cli *cli)
{
    struct cbn_query query;
    int result = cli_shape_query(cli, false, &query);
    if (result == CLI_OK)
        result = cli_session_open(cli, CLI_CACHE_LOOKED);
    if (result != CLI_OK)
        return result;
    cli_profile_get(cli, &query.profile);
    struct cbn_explanation explanation = {.size = sizeof(explanation)};
    struct cbn_error err = {0};
    int32_t status = cbn_explain(cli->runtime, &query, &explanation, &err);
    if (status == CBN_STATUS_INVALID)
        return cli_fail(cli, CLI_USAGE, "%s", err.message);
    if (status != CBN_STATUS_OK)
        return cli_fail_error(cli, &err);
    if (cli->options.json)
        print_json(cli, &query, &explanation);
    else
        print_text(cli, &query, &explanation);
    return explanation.chosen || explanation.noop ? CLI_OK : CLI_FAILED;
}
