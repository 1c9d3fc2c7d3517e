/*
 * cubinet: the command line of the cabinet.
 */
#include <errno.h>
#include <string.h>

#include "cli.h"

/* A full disk or a closed pipe must not pass for success. */
static int finish_output(const struct cli *cli, int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    return cli_fail(cli, CLI_FAILED, "cannot write to standard output: %s", strerror(errno));
}

static int run(struct cli *cli)
{
    if (cli->options.help) {
        cli_help_print(cli->verb, stdout);
        return CLI_OK;
    }
    if (cli->verb)
        return cli->verb->run(cli);
    if (cli->options.version)
        return cli_version(cli);
    cli_help_print(NULL, stderr);
    return CLI_USAGE;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--cubinet-builder") == 0)
        return cbn_builder_main(argc, argv);
    struct cli cli = {0};
    int code = cli_parse(&cli, argc, (const char **)argv);
    if (code == CLI_OK)
        code = finish_output(&cli, run(&cli));
    cli_session_close(&cli);
    cli_parse_done(&cli);
    return code;
}
