/*
 * One product's operands on the device, its fp64 reference, and the way every subject is measured: checked, timed,
 * checked again. Weights and their scales rotate over more than ROTATED_BYTES; activations and output do not.
 */
#ifndef BENCH_PROBLEM_H
#define BENCH_PROBLEM_H

#include "device.h"
#include "kernels.h"

#define ROTATED_BYTES 200000000 /* an H200's L2 holds 60 MB */
#define GROUP 128

struct shape {
    int64_t n, k;
};

struct problem {
    struct cbn_runtime *runtime;
    int replays;
    int64_t n, k, groups, blocks; /* groups of K, blocks of N */
    int64_t m, rows;              /* rows: every M to come, rounded up to 4 */
    int copies;
    int64_t w_bytes, scale_bytes; /* from copy to copy */
    uint64_t x, codes, scales;    /* bf16 [rows, k]; e4m3 and fp32 [groups, ceil4(m)] of the first ceil4(m) rows */
    uint64_t w, w_scale;          /* scales fp32 [blocks, groups] */
    uint64_t w_scale_padded;      /* the same values with rows ceil4(groups) apart */
    uint64_t d, workspace;
    int64_t workspace_bytes;
    uint64_t reference, sums;
};

/* Memory for every shape of the list with up to max_m rows; random weights. False says why on stderr. */
bool problem_create(struct problem *problem, const struct shape *shapes, int count, int64_t max_m);
/* Scales, activations and the reference of a shape. */
bool problem_set_shape(struct problem *problem, struct shape shape);
/* Codes and scales for M rows. */
bool problem_set_m(struct problem *problem, int64_t m);

/* The copy of the weights that the index-th call of a chain reads: the last call reads copy 0, the reference's. */
int problem_copy(const struct problem *problem, int index);

struct subject {
    const char *peer;
    int64_t rows;  /* that it computes: M, or more of them */
    int64_t bytes; /* each input read and each output written once */
    device_launch_fn launch;
    void *user;
    const char *notes;
};

/* Adds the subject's row. False: wrong or failed; then the row has no time. */
bool problem_measure(const struct problem *problem, const struct subject *subject);

/* A row without a time. error: NaN where nothing was compared. */
void problem_add_failure(const struct problem *problem, const char *peer, double error, const char *why,
                         const char *more);

/* Bytes of a product of the current M, of bf16 or e4m3 input. */
int64_t problem_bytes(const struct problem *problem, uint32_t in);

#endif
