/*
 * The result: one CSV row a measured point, and on standard output one line a peer and shape.
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#define ROW_NOTES_BYTES 512

struct row {
    const char *peer, *op;
    int64_t m, n, k;
    double us; /* median of graph replays; 0: not measured, the notes say why */
    double bytes;
    double error; /* NaN: none */
    const char *notes;
};

/* path NULL: no CSV. False with the reason on stderr. */
bool rows_open(const char *path);
void rows_add(const struct row *row);
/* Ends the line of the current peer and shape. */
void rows_end_line(void);
/* False where a row could not be written. */
bool rows_close(void);

#endif
