/*
 * An entry with all that its record holds, as show reads it.
 */
#ifndef CUBINET_CLI_RECORD_H
#define CUBINET_CLI_RECORD_H

#include "cli.h"

struct cli_record {
    struct cli_entry entry;
    uint32_t compiler_version; /* 1000 * major + minor */
    char *options, *log;
    unsigned char *cubin; /* entry.size_bytes */
};

/* Every entry stored under one key: one for each compiler major, the newest first. */
struct cli_records {
    size_t count, capacity;
    struct cli_record *items;
};

/* CLI_OK with at least one record, or a code after it said why. */
int cli_records_read(struct cli *cli, const char *key, struct cli_records *ret_records);
void cli_records_done(struct cli_records *records);

/* difference.c: says how the keys of two entries differ. */
void cli_difference_print(const struct cli *cli, const struct cli_record *left, const struct cli_record *right);

#endif
