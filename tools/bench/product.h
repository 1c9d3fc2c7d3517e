/*
 * The subjects: Cubinet's fp8_gemm, the read floor, and cuBLASLt's block-scaled product.
 */
#ifndef BENCH_PRODUCT_H
#define BENCH_PRODUCT_H

#include "problem.h"

/* How Cubinet launches. */
enum product_mode { PRODUCT_NO_PDL, PRODUCT_PDL, PRODUCT_PDL_STATIC, PRODUCT_MODE_COUNT };

/* All Ms of the problem's shape for one dtype of A (BF16 or E4M3) and one mode. Adds a row each; returns failures. */
int product_measure(struct problem *problem, uint32_t in, enum product_mode mode, uint32_t max_sms, const int64_t *ms,
                    int m_count);

/* Builds what the shapes need, in parallel where there is a cache folder to store in. */
void product_warm(struct cbn_runtime *runtime, const struct shape *shapes, int count, int64_t max_m, uint32_t max_sms);

/* Rows floor_plain, floor_pdl, floor_early of the shape: the best of several rings. M is 0. Returns failures. */
int floor_measure(struct problem *problem);

/* False with the reason on standard output: the library or the mode is absent. path NULL: the usual names. */
bool cublaslt_open(const char *path);
int cublaslt_measure(struct problem *problem, const int64_t *ms, int m_count);

#endif
