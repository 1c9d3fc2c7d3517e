/*
 * Specialisations as text and JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static bool is_dtype(const char *param)
{
    return strcmp(param, "IN") == 0 || strcmp(param, "OUT") == 0;
}

static char *param_text(const char *name, int64_t value)
{
    if (is_dtype(name))
        return cli_text_format("%s=%s", name, cbn_dtype_name((uint32_t)value));
    return cli_text_format("%s=%lld", name, (long long)value);
}

char *cli_spec_params(const struct cbn_spec *spec)
{
    char *text = cli_text_copy("");
    for (uint32_t i = 0; i < spec->param_count; i++) {
        char *param = param_text(spec->params[i].name, spec->params[i].value);
        char *longer = cli_text_format("%s%s%s", text, i ? " " : "", param);
        free(param);
        free(text);
        text = longer;
    }
    return text;
}

json_t *cli_spec_params_json(const struct cbn_spec *spec)
{
    json_t *params = json_object();
    for (uint32_t i = 0; i < spec->param_count; i++)
        cli_json_set(params, spec->params[i].name, json_integer(spec->params[i].value));
    return params;
}
