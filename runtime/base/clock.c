/*
 * Monotonic and wall clocks.
 */
#include "base/clock.h"

#include <time.h>

#define NS_PER_S 1000000000ull
#define US_PER_S 1000000ull
#define NS_PER_US 1000ull

uint64_t cbn__clock_monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int64_t cbn__clock_wall_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec < 0 ? 0 : (int64_t)now.tv_sec;
}

uint64_t cbn__clock_wall_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec < 0 ? 0 : (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
}

void cbn__clock_sleep_ns(uint64_t duration_ns)
{
    struct timespec pause = {.tv_sec = (time_t)(duration_ns / NS_PER_S), .tv_nsec = (long)(duration_ns % NS_PER_S)};
    (void)nanosleep(&pause, NULL);
}
