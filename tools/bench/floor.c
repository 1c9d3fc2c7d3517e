/*
 * The read floor: bulk copies of the weights into shared memory, one CTA an SM, nothing computed.
 */
#include <math.h>
#include <stdio.h>

#include "product.h"
#include "rows.h"

struct ring {
    int64_t bytes, chunk;
};

/* Two or three CTAs an SM fit but for the first pair: then the next launch's ring fills while this one drains. */
static const struct ring rings[] = {{196608, 16384}, {196608, 8192}, {98304, 16384},
                                    {98304, 8192},   {65536, 16384}, {65536, 8192}};

enum floor_mode { FLOOR_PLAIN, FLOOR_PDL, FLOOR_EARLY, FLOOR_MODE_COUNT };
static const char *const peers[FLOOR_MODE_COUNT] = {"floor_plain", "floor_pdl", "floor_early"};

struct reader {
    const struct problem *problem;
    struct ring ring;
    enum floor_mode mode;
};

static bool launch(void *user, int index)
{
    const struct reader *reader = user;
    const struct problem *problem = reader->problem;
    const struct bench_args args = {
        .w = problem->w + (uint64_t)(problem_copy(problem, index) * problem->w_bytes),
        .count = problem->w_bytes,
        .chunk = reader->ring.chunk,
        .stages = reader->ring.bytes / reader->ring.chunk,
        .early = reader->mode == FLOOR_EARLY,
    };
    return kernels_launch(problem->runtime, BENCH_KERNEL_read_floor, device.sms, reader->ring.bytes,
                          reader->mode != FLOOR_PLAIN, &args);
}

static double time_ring(const struct problem *problem, enum floor_mode mode, struct ring ring)
{
    struct device_shape shape;
    struct reader reader = {problem, ring, mode};
    if (!launch(&reader, 0)) /* compiles and loads */
        return INFINITY;
    double us = device_time(launch, &reader, problem->copies, problem->replays, &shape);
    return us > 0.0 ? us : INFINITY;
}

static bool measure_mode(const struct problem *problem, enum floor_mode mode)
{
    char notes[ROW_NOTES_BYTES];
    double best = INFINITY;
    for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
        double us = time_ring(problem, mode, rings[i]);
        if (us >= best)
            continue;
        best = us;
        (void)snprintf(notes, sizeof(notes), "ring=%d chunk=%d grid=%d", (int)rings[i].bytes, (int)rings[i].chunk,
                       device.sms);
    }
    if (isinf(best))
        return false;
    rows_add(&(struct row){.peer = peers[mode],
                           .op = "floor",
                           .n = problem->n,
                           .k = problem->k,
                           .us = best,
                           .bytes = (double)problem->w_bytes,
                           .error = NAN,
                           .notes = notes});
    return true;
}

int floor_measure(struct problem *problem)
{
    int failures = 0;
    for (enum floor_mode mode = FLOOR_PLAIN; mode < FLOOR_MODE_COUNT; mode++) {
        failures += !measure_mode(problem, mode);
        rows_end_line();
    }
    return failures;
}
