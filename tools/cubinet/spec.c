/*
 * Specialisations as text and JSON.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli.h"

void cli_value_format(const char *name, int64_t value, char *ret_text, size_t text_bytes)
{
    if (strcasecmp(name, "in") == 0 || strcasecmp(name, "out") == 0)
        (void)snprintf(ret_text, text_bytes, "%s", cbn_dtype_name((uint32_t)value));
    else if (strcasecmp(name, "arch") == 0)
        cbn_arch_format((uint32_t)value, ret_text, text_bytes);
    else
        (void)snprintf(ret_text, text_bytes, "%lld", (long long)value);
}

static char *param_text(const char *name, int64_t value)
{
    char text[CBN_TEXT_BYTES];
    cli_value_format(name, value, text, sizeof(text));
    return cli_text_format("%s=%s", name, text);
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
