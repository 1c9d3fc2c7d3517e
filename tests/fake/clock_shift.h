/*
 * The wall clock of the test's own process, so many seconds ahead of the system's; children of fork inherit it.
 */
#ifndef CBN_TESTS_FAKE_CLOCK_SHIFT_H
#define CBN_TESTS_FAKE_CLOCK_SHIFT_H

#include <stdint.h>

void clock_shift_set(int64_t seconds);

#endif
