/*
 * What a warm does with the entries that a request found: marks them, pushes them.
 */
#ifndef CUBINET_CLI_PIN_H
#define CUBINET_CLI_PIN_H

#include "request.h"

struct cli_pins {
    struct cli_keys marked;
    struct cli_keys in_bases; /* which nothing evicts from */
};

/* Marks the entries of whole keys that some layer holds. CLI_OK, or CLI_FAILED after it said why. */
int cli_pins_set(struct cli *cli, const struct cli_keys *wanted, bool pinned, struct cli_pins *ret_pins);
void cli_pins_done(struct cli_pins *pins);

/* fleet.c: stores the entries of whole keys on the fleet's server. CLI_OK, CLI_PARTLY or CLI_FAILED after it said why. */
struct cli_push {
    size_t pushed, refused;
};
int cli_push(struct cli *cli, const struct cli_keys *keys, struct cli_push *ret_push);
/* CLI_USAGE after it said so, where no server is named. */
int cli_push_check(struct cli *cli);

#endif
