/*
 * The call profile and the architectures that were asked for. The profile is printed by its option table, so that
 * what is printed is what would have to be given.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static void take_default(int64_t *given, uint32_t value)
{
    if (*given == CLI_UNSET)
        *given = value;
}

/* What the runtime goes by where no option was given: the environment, or the default. */
static void take_setting(void *user, const char *name, const char *value, const char *origin)
{
    struct cli *cli = user;
    struct cli_options *options = &cli->options;
    const char **field = strcmp(name, "policy") == 0    ? &options->policy
                         : strcmp(name, "disable") == 0 ? &options->disable
                         : strcmp(name, "enable") == 0  ? &options->enable
                                                        : NULL;
    (void)origin;
    if (field && !*field && value && *value && cli->owned.count < CLI_LIST_MAX)
        *field = cli->owned.items[cli->owned.count++] = cli_text_copy(value);
}

void cli_profile_get(struct cli *cli, struct cbn_profile *ret_profile)
{
    struct cli_options *options = &cli->options;
    struct cbn_profile profile = CBN_PROFILE_INIT;
    take_default(&options->in, profile.in);
    take_default(&options->out, profile.out);
    take_default(&options->weight_scale, profile.weight_scale);
    take_default(&options->scale_gran, profile.scale_gran);
    take_default(&options->act_scale, profile.act_scale);
    take_default(&options->bias, profile.bias);
    cbn_runtime_settings(cli->runtime, take_setting, cli);
    if (!options->policy)
        options->policy = "default";
    profile.in = (uint32_t)options->in;
    profile.out = (uint32_t)options->out;
    profile.weight_scale = (uint32_t)options->weight_scale;
    profile.scale_gran = (uint32_t)options->scale_gran;
    profile.act_scale = (uint32_t)options->act_scale;
    profile.bias = (uint32_t)options->bias;
    profile.pow2 = options->pow2;
    profile.pdl = !options->no_pdl;
    profile.propagate = options->propagate;
    profile.approx = options->approx;
    profile.strict_route = options->strict_route;
    profile.sms = options->sms == CLI_UNSET ? 0 : (uint32_t)options->sms;
    profile.max_sms = options->max_sms == CLI_UNSET ? 0 : (uint32_t)options->max_sms;
    profile.policy = options->policy;
    profile.disable = options->disable;
    profile.enable = options->enable;
    *ret_profile = profile;
}

static const void *row_field(const struct cli *cli, const struct cli_row *row)
{
    return (const char *)&cli->options + row->offset;
}

static void print_row(const struct cli *cli, const struct cli_row *row)
{
    const void *field = row_field(cli, row);
    int64_t number = row->kind == CLI_NUMBER || row->kind == CLI_CHOICE ? *(const int64_t *)field : CLI_UNSET;
    if (row->kind == CLI_FLAG && *(const bool *)field)
        (void)printf(" %s", row->name);
    else if (row->kind == CLI_TEXT && *(const char *const *)field)
        (void)printf(" %s=%s", row->name, *(const char *const *)field);
    else if (row->kind == CLI_NUMBER && number != CLI_UNSET)
        (void)printf(" %s=%lld", row->name, (long long)number);
    else if (row->kind == CLI_CHOICE) {
        char word[32];
        cli_choice_name(row->argument, number - row->low, word, sizeof(word));
        (void)printf(" %s=%s", row->name, word);
    }
}

void cli_profile_print(const struct cli *cli)
{
    (void)fputs("profile:", stdout);
    for (uint32_t i = 0; i < cli_group_profile.row_count; i++)
        print_row(cli, &cli_group_profile.rows[i]);
    (void)fputc('\n', stdout);
}

static json_t *row_json(const struct cli *cli, const struct cli_row *row)
{
    const void *field = row_field(cli, row);
    if (row->kind == CLI_FLAG)
        return json_boolean(*(const bool *)field);
    if (row->kind == CLI_TEXT)
        return cli_json_text(*(const char *const *)field);
    int64_t number = *(const int64_t *)field;
    if (number == CLI_UNSET)
        return json_null();
    if (row->kind == CLI_NUMBER)
        return json_integer(number);
    char word[32];
    cli_choice_name(row->argument, number - row->low, word, sizeof(word));
    return json_string(word);
}

json_t *cli_profile_json(const struct cli *cli)
{
    json_t *profile = json_object();
    for (uint32_t i = 0; i < cli_group_profile.row_count; i++) {
        const struct cli_row *row = &cli_group_profile.rows[i];
        char *name = cli_text_copy(row->name);
        for (char *at = name; *at; at++)
            if (*at == '-')
                *at = '_';
        cli_json_set(profile, name, row_json(cli, row));
        free(name);
    }
    return profile;
}

static int parse_arch(struct cli *cli, const char *name, uint32_t *ret_arch)
{
    struct cbn_error err = {0};
    if (cbn_arch_parse(name, ret_arch, &err) == CBN_STATUS_OK)
        return CLI_OK;
    return cli_fail(cli, CLI_USAGE, "--arch: %s", err.message);
}

int cli_arch_get(struct cli *cli, uint32_t *ret_arch)
{
    if (!cli->options.arch)
        return cli_fail(cli, CLI_USAGE, "--arch is missing");
    if (strchr(cli->options.arch, ','))
        return cli_fail(cli, CLI_USAGE, "--arch '%s' is a list; %s takes one architecture", cli->options.arch,
                        cli->verb->name);
    return parse_arch(cli, cli->options.arch, ret_arch);
}

int cli_arches_get(struct cli *cli, uint32_t *ret_arches, uint32_t *ret_count)
{
    if (!cli->options.arch)
        return cli_fail(cli, CLI_USAGE, "--arch is missing");
    *ret_count = 0;
    for (const char *at = cli->options.arch;;) {
        size_t length = strcspn(at, ",");
        char name[32];
        (void)snprintf(name, sizeof(name), "%.*s", (int)length, at);
        if (*ret_count == CLI_ARCHES_MAX)
            return cli_fail(cli, CLI_USAGE, "--arch lists more than %d architectures", CLI_ARCHES_MAX);
        int result = parse_arch(cli, name, &ret_arches[*ret_count]);
        if (result != CLI_OK)
            return result;
        (*ret_count)++;
        if (!at[length])
            return CLI_OK;
        at += length + 1;
    }
}
