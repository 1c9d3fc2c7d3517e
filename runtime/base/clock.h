/*
 * Time: monotonic for deadlines, wall clock (clamped to >= 0) for what is stored.
 */
#ifndef CBN_BASE_CLOCK_H
#define CBN_BASE_CLOCK_H

#include <stdint.h>

uint64_t cbn__clock_monotonic_ns(void);
int64_t cbn__clock_wall_s(void);
uint64_t cbn__clock_wall_us(void);
void cbn__clock_sleep_ns(uint64_t duration_ns);

#endif
