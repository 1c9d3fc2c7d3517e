/*
 * Progress on stderr: of a warm a bar where that is a terminal, a line a build elsewhere; of a count a bar or nothing.
 */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "request.h"

#define BAR_CELLS 30
#define LINE_BYTES 256
#define USUAL_COLUMNS 80

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

/* The last column stays free: a line that fills it would wrap, and could not be wiped. */
static size_t line_room(void)
{
    struct winsize window = {0};
    size_t columns = USUAL_COLUMNS;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
        columns = window.ws_col;
    return columns < LINE_BYTES ? columns - 1 : LINE_BYTES - 1;
}

static void show_bar(uint64_t done, uint64_t total, const char *text)
{
    char bar[BAR_CELLS + 1], line[LINE_BYTES];
    uint64_t full = done < total ? done * BAR_CELLS / total : BAR_CELLS;
    for (uint32_t i = 0; i < BAR_CELLS; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR_CELLS] = 0;
    (void)snprintf(line, sizeof(line), "[%s] %llu/%llu %s", bar, (unsigned long long)done, (unsigned long long)total,
                   text);
    line[line_room()] = 0;
    cli_bar_show(line);
}

static void show_build(const struct cbn_warm_event *event)
{
    char text[LINE_BYTES] = "";
    if (event->spec)
        (void)snprintf(text, sizeof(text), "%s/%s", event->spec->op, event->spec->kernel);
    show_bar(event->done, event->total, text);
}

/* A hundred times at most, however many there are. */
void cli_progress_count(const struct cli *cli, uint64_t done, uint64_t total, const char *text)
{
    const uint64_t step = total / 100 + 1;
    if (!cli->options.quiet && isatty(STDERR_FILENO) && (done % step == 0 || done == total))
        show_bar(done, total, text);
}

void cli_progress_show(const struct cli *cli, const struct cbn_warm_event *event)
{
    if (cli->options.quiet)
        return;
    if (isatty(STDERR_FILENO)) {
        show_build(event);
        return;
    }
    /* Without a compiler every build fails alike: the verb says it once. */
    bool no_compiler = event->error && event->error->status == CBN_STATUS_NO_COMPILER;
    const char *word = outcome_word(event->outcome);
    if (!word || !event->spec || no_compiler)
        return;
    char *reason = event->error ? cli_error_format(event->error) : NULL;
    (void)fprintf(stderr, "cubinet: [%u/%u] %s: %s%s%s\n", event->done, event->total, word, event->spec->text,
                  reason ? ": " : "", reason ? reason : "");
    free(reason);
}
