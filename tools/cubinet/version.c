/*
 * version: the library, the cache's format, the embedded templates.
 */
#include <stdlib.h>

#include "cli.h"

int cli_version(struct cli *cli)
{
    struct cbn_version version = CBN_VERSION_INIT;
    cbn_version_get(&version);
    if (!cli->options.json) {
        (void)printf("cubinet %u.%u.%u\nformat %u\nargument layout %u\ntemplates %s\n", version.major, version.minor,
                     version.patch, version.format, version.argument_layout, version.template_digest);
        return CLI_OK;
    }
    json_t *root = cli_json_begin(cli);
    char *text = cli_text_format("%u.%u.%u", version.major, version.minor, version.patch);
    cli_json_set(root, "version", json_string(text));
    free(text);
    cli_json_set(root, "format", json_integer(version.format));
    cli_json_set(root, "argument_layout", json_integer(version.argument_layout));
    cli_json_set(root, "template_digest", cli_json_text(version.template_digest));
    cli_json_print(root);
    return CLI_OK;
}
