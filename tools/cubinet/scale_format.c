/*
 * The one field of a config that asks for another profile: scale_fmt. The library reads it for its shape only.
 */
#include <string.h>
#include <sys/stat.h>

#include "request.h"

/* Where the library looks for it: outside of text_config first. */
static bool says_ue8m0(const json_t *root)
{
    const json_t *quant = json_object_get(root, "quantization_config");
    if (!json_is_object(quant))
        quant = json_object_get(json_object_get(root, "text_config"), "quantization_config");
    const char *format = json_string_value(json_object_get(quant, "scale_fmt"));
    return format && strcmp(format, "ue8m0") == 0;
}

/* A pipe was used up by the library, which also checked the bounds of what is read here again. */
static bool model_says_ue8m0(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    json_t *root = json_load_file(path, 0, NULL);
    bool result = says_ue8m0(root);
    json_decref(root);
    return result;
}

void cli_request_hint(const struct cli *cli, const struct cbn_profile *profile)
{
    if (!cli->options.model || profile->pow2 || profile->weight_scale == CBN_SCALE_UE8M0)
        return;
    if (model_says_ue8m0(cli->options.model))
        cli_say(cli, "the config's scale_fmt is ue8m0: on sm_90 engines use fp32 scales, as this profile does; --pow2 "
                     "and --weight-scale ue8m0 choose the other one");
}
