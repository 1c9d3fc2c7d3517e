/*
 * The benchmark's own kernels (bench.cu), registered with Cubinet as a caller's family and launched through it.
 */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include <cubinet/cubinet.h>

/* The numbers are KERNEL of bench.cu. */
#define BENCH_KERNEL_MAP(X)                                                                                            \
    X(0, fill_codes)                                                                                                   \
    X(1, fill_scales)                                                                                                  \
    X(2, fill_activations)                                                                                             \
    X(3, multiply)                                                                                                     \
    X(4, compare)                                                                                                      \
    X(5, read_floor)

enum bench_kernel {
#define BENCH_X(number, name) BENCH_KERNEL_##name = number,
    BENCH_KERNEL_MAP(BENCH_X)
#undef BENCH_X
        BENCH_KERNEL_COUNT
};

/* As bench.cu has it; each kernel says there which fields it reads. */
struct bench_args {
    uint64_t a, a_scale, w, w_scale, d, reference, sums;
    int64_t m, n, k;
    int64_t a_scale_stride, w_scale_stride;
    int64_t count, copy_stride;
    int64_t chunk, stages, early;
};

bool kernels_register(struct cbn_runtime *runtime);

/* On device.stream. threads is 256, 32 for read_floor. pdl: programmatic, for read_floor. */
bool kernels_launch(struct cbn_runtime *runtime, enum bench_kernel kernel, int64_t blocks, int64_t shared_bytes,
                    bool pdl, const struct bench_args *args);
/* One thread an element, at most 16,384 blocks: for the grid-stride kernels. */
bool kernels_launch_over(struct cbn_runtime *runtime, enum bench_kernel kernel, int64_t elements,
                         const struct bench_args *args);

#endif
