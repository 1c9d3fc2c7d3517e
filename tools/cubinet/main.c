/*
 * cubinet: the command line of the cabinet.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/*
 * A file that is opened while 0, 1 or 2 is closed would land there, and be overwritten by what the tool prints. The
 * lowest free number is taken, so each in turn; 1 for reading only, so that what is written there still fails.
 */
static bool fill_standard_streams(void)
{
    static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd)
            return false;
    return true;
}

/* A full disk or a closed pipe must not pass for success. The close tells what a flush cannot know yet. */
static int finish_output(const struct cli *cli, int code)
{
    errno = 0;
    bool written = fflush(stdout) == 0 && !ferror(stdout);
    int error = errno; /* 0 when an earlier write failed and the last one did not */
    if (fclose(stdout) != 0 && written) {
        written = false;
        error = errno;
    }
    if (written)
        return code;
    return cli_fail(cli, CLI_FAILED, "cannot write to standard output: %s",
                    error ? strerror(error) : "an earlier part of it was refused");
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
    if (!fill_standard_streams())
        return CLI_FAILED;
    if (argc > 1 && strcmp(argv[1], "--cubinet-builder") == 0)
        return cbn_builder_main(argc, argv);
    /* Help in one write: of an earlier one that was refused nobody knows why. */
    static char output[64 << 10];
    (void)setvbuf(stdout, output, _IOFBF, sizeof(output));
    (void)signal(SIGPIPE, SIG_IGN); /* a reader that went away is told as any failed write is */
    struct cli cli = {0};
    int code = cli_parse(&cli, argc, (const char **)argv);
    if (code == CLI_OK)
        code = finish_output(&cli, run(&cli));
    cli_session_close(&cli);
    cli_parse_done(&cli);
    return code;
}
