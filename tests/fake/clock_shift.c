/*
 * A wall clock that a test sets: linked into its binary, this clock_gettime stands before libc's.
 */
#include "fake/clock_shift.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t shift_s;

void clock_shift_set(int64_t seconds)
{
    shift_s = seconds;
}

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret_now);
    if (rc == 0 && clock == CLOCK_REALTIME)
        ret_now->tv_sec += shift_s;
    return rc;
}
