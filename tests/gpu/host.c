/*
 * Host helpers of the GPU suite: tallies, threads, random numbers, scratch buffers.
 */
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "suite.h"

#define FAULTS_PRINTED 12
#define THREADS_MAX 64

void tally_fault(struct tally *tally, const char *format, ...)
{
    va_list args;
    tally->faults++;
    if (tally->faults > FAULTS_PRINTED) {
        return;
    }
    va_start(args, format);
    fprintf(stderr, "  FAULT %s: ", tally->name);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

bool tally_call(struct tally *tally, int32_t status, const struct cbn_error *err, const char *what)
{
    tally->count++;
    if (status != CBN_STATUS_OK) {
        tally_fault(tally, "%s: %s: %s", what, cbn_status_name(status), err->message);
    }
    return status == CBN_STATUS_OK;
}

void tally_error(struct tally *tally, double error, double tolerance, const char *what)
{
    if (error > tally->max_error || isnan(error)) {
        tally->max_error = error;
    }
    if (!(error <= tolerance)) {
        tally_fault(tally, "%s: worst row's error %.3g, allowed %.3g", what, error, tolerance);
    }
}

void tally_equal(struct tally *tally, uint64_t unequal, const char *what)
{
    tally->mismatches += unequal;
    if (unequal) {
        tally_fault(tally, "%s: %llu bytes differ", what, (unsigned long long)unequal);
    }
}

CUdeviceptr suite_scratch(struct suite *suite, int slot, int64_t bytes)
{
    struct scratch *scratch = &suite->scratch[slot];
    if (scratch->bytes < bytes || suite->sample || !scratch->address) {
        gpu_free(&scratch->address);
        scratch->bytes = suite->sample ? bytes : bytes + bytes / 4;
        scratch->address = gpu_alloc(scratch->bytes);
    }
    return scratch->address;
}

void suite_scratch_done(struct suite *suite)
{
    for (int i = 0; i < SCRATCH_COUNT; i++) {
        gpu_free(&suite->scratch[i].address);
        suite->scratch[i].bytes = 0;
    }
}

uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

int64_t random_below(uint64_t *state, int64_t bound)
{
    return bound > 0 ? (int64_t)(next_random(state) % (uint64_t)bound) : 0;
}

struct share {
    range_fn body;
    void *user;
    int64_t begin, end;
};

static void *run_share(void *argument)
{
    struct share *share = argument;
    share->body(share->user, share->begin, share->end);
    return NULL;
}

void parallel_for(int threads, int64_t count, range_fn body, void *user)
{
    pthread_t handles[THREADS_MAX];
    struct share shares[THREADS_MAX];
    bool started[THREADS_MAX] = {false};
    if (threads > THREADS_MAX) {
        threads = THREADS_MAX;
    }
    for (int i = 0; i < threads; i++) {
        shares[i] = (struct share){body, user, count * i / threads, count * (i + 1) / threads};
        started[i] = pthread_create(&handles[i], NULL, run_share, &shares[i]) == 0;
        if (!started[i]) {
            (void)run_share(&shares[i]);
        }
    }
    for (int i = 0; i < threads; i++) {
        if (started[i]) {
            (void)pthread_join(handles[i], NULL);
        }
    }
}

int64_t dtype_bytes(uint32_t dtype)
{
    switch (dtype) {
#define CBN_X(number, name, text, bytes)                                                                               \
    case number:                                                                                                       \
        return bytes;
        CBN_DTYPE_MAP(CBN_X)
#undef CBN_X
    default:
        return 0;
    }
}

void suite_finish(const struct suite *suite)
{
    gpu_finish(suite->sample ? 0 : PATIENCE_S);
}

double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
