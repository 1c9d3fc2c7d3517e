/*
 * Progress of a warm on stderr.
 */
#include <unistd.h>

#include "request.h"

#define BAR_CELLS 30

static const char *outcome_word(uint32_t outcome)
{
    switch (outcome) {
    case CBN_WARM_COMPILED:
        return "compiled";
    case CBN_WARM_FAILED:
        return "failed";
    case CBN_WARM_OTHER:
        return "built by another process";
    default:
        return NULL; /* nothing was built: no news */
    }
}

static void show_bar(const struct cbn_warm_event *event)
{
    char bar[BAR_CELLS + 1];
    uint32_t full = event->total ? (uint32_t)((uint64_t)event->done * BAR_CELLS / event->total) : BAR_CELLS;
    for (uint32_t i = 0; i < BAR_CELLS; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR_CELLS] = 0;
    (void)fprintf(stderr, "\r\033[K[%s] %u/%u %.40s", bar, event->done, event->total,
                  event->spec ? event->spec->kernel : "");
    (void)fflush(stderr);
}

void cli_progress_show(const struct cli *cli, const struct cbn_warm_event *event)
{
    if (cli->options.quiet)
        return;
    if (isatty(STDERR_FILENO)) {
        show_bar(event);
        return;
    }
    /* Without a compiler every build fails alike: the verb says it once. */
    bool no_compiler = event->error && event->error->status == CBN_STATUS_NO_COMPILER;
    const char *word = outcome_word(event->outcome);
    if (word && event->spec && !no_compiler)
        (void)fprintf(stderr, "cubinet: [%u/%u] %s: %s\n", event->done, event->total, word, event->spec->text);
}

void cli_progress_clear(const struct cli *cli)
{
    if (!cli->options.quiet && isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
}
