/*
 * Made-up entries of cubin-like sizes for the benchmarks of the cabinet: number `which` always has the same key, size and
 * bytes. Nothing that a key's rules would pass: they are stored and found, never loaded.
 */
#ifndef BENCH_ENTRIES_H
#define BENCH_ENTRIES_H

#include "cache/cabinet.h"

struct entry_key {
    uint8_t bytes[14];
};

/* splitmix64. */
uint64_t entries_random(uint64_t *state);
/* Above 0 and below 1. */
double entries_uniform(uint64_t *state);

struct entry_key entries_key(uint64_t which);
/* Log-normal: median 35,000, about two thirds of all between 20,000 and 60,000; 4,000 to 400,000. */
size_t entries_size(uint64_t which);

/*
 * Stores the numbers below count, of size_of(which) bytes each, at most 400,000. fdatasync does nothing meanwhile: so many
 * of them are not what is measured.
 */
int32_t entries_fill(struct cbn__cabinet *cabinet, uint64_t count, size_t (*size_of)(uint64_t which),
                     struct cbn_error *err);

#endif
