/*
 * What the fuzz targets share. A target defines LLVMFuzzerTestOneInput; libFuzzer or replay.c holds main.
 */
#ifndef CBN_TESTS_FUZZ_H
#define CBN_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An assertion that no build type removes. */
#define FUZZ_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                       \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
