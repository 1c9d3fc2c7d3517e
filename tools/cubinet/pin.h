/*
 * Marks on the entries that a request found.
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

#endif
