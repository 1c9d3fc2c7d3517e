/*
 * The GPU suite: cases, what they record, and the runtimes that they call. One thread drives the device.
 */
#ifndef TESTS_GPU_SUITE_H
#define TESTS_GPU_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cubinet/cubinet.h>

#include "gpu.h"

#define POISON 0xA5       /* what outputs hold before a call */
#define POISON_INPUT 0xFF /* what surrounds inputs: NaN in every dtype, 2^128 as UE8M0 */
#define MODEL_ROWS_MAX 257
#define PATIENCE_S 20 /* with what takes a working device two at most */

/* Worst-row error: DESIGN.md section 9. */
#define TOLERANCE_BF16 4e-3
#define TOLERANCE_FP16 6e-4
#define TOLERANCE_FP32 1e-4
#define TOLERANCE_FP8_SUM 8e-4 /* fp16 or fp32 out of FP8 tensor cores, which keep about 14 bits of a sum */

/* What one case found. */
struct tally {
    const char *name;
    uint64_t count;      /* calls of the library that were checked */
    uint64_t mismatches; /* bytes or elements that had to be equal and were not */
    double max_error;    /* worst row of every product; < 0: the case has none */
    uint64_t faults;     /* everything that failed, mismatches and errors past the tolerance included */
    double seconds;
    char note[160]; /* what a case saw besides; "": nothing */
};

/* Which runtime a call goes through. */
enum suite_runtime {
    RUNTIME_ALL,     /* every candidate on */
    RUNTIME_GENERIC, /* all but generic disabled */
    RUNTIME_WGMMA,   /* both swap_ab disabled */
    RUNTIME_CODES,   /* swap_ab_fused disabled: fp8_quantize runs first */
    RUNTIME_SWAP_AB, /* swap_ab alone, for every M that its template takes */
    RUNTIME_FUSED,   /* swap_ab_fused alone, likewise */
    RUNTIME_COUNT
};

#define SCRATCH_COUNT 16
struct scratch {
    CUdeviceptr address;
    int64_t bytes;
};

struct cover;

struct suite {
    struct gpu_facts device;
    struct cbn_runtime *runtimes[RUNTIME_COUNT];
    struct cover *cover;
    const char *cache_dir;
    uint64_t seed;
    bool sample;   /* few, small calls in tight buffers: for compute-sanitizer */
    int64_t guard; /* bytes before and after every buffer; 0 in a sample, where the sanitizer guards */
    int threads;
    struct scratch scratch[SCRATCH_COUNT];
    CUdeviceptr counter;     /* one uint64 for the counting kernels */
    double end_to_end_error; /* < 0: not measured */
    char end_to_end_text[160];
};

/* Says it, counts it; the first few of a case are printed. */
void tally_fault(struct tally *tally, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts one checked call; status other than OK is a fault. */
bool tally_call(struct tally *tally, int32_t status, const struct cbn_error *err, const char *what);
void tally_error(struct tally *tally, double error, double tolerance, const char *what);
void tally_equal(struct tally *tally, uint64_t unequal, const char *what);

/* A buffer that is kept by slot; never smaller than bytes, exactly bytes in a sample. Contents are not kept. */
CUdeviceptr suite_scratch(struct suite *suite, int slot, int64_t bytes);
void suite_scratch_done(struct suite *suite);

/* splitmix64: the next number of a stream. */
uint64_t next_random(uint64_t *state);
int64_t random_below(uint64_t *state, int64_t bound);

/* Runs body(user, begin, end) over [0, count) in up to `threads` threads; returns when all are done. */
typedef void (*range_fn)(void *user, int64_t begin, int64_t end);
void parallel_for(int threads, int64_t count, range_fn body, void *user);

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t round_up(int64_t a, int64_t b)
{
    return ceil_div(a, b) * b;
}

int64_t dtype_bytes(uint32_t dtype);
/* gpu_finish; a sanitizer may take as long as it likes. */
void suite_finish(const struct suite *suite);
double now_s(void);

/* ---- cover.c: which specialisations were launched ---- */
struct cover *cover_create(void);
void cover_destroy(struct cover *cover);
/* The decision of a call, with the alignment that the call really has. Returns the candidate's name, "" for a noop. */
const char *cover_note_gemm(struct suite *suite, enum suite_runtime runtime, const struct cbn_query *query,
                            int64_t align);
const char *cover_note_quantize(struct suite *suite, const struct cbn_query *query, int64_t align);
/* Every specialisation of the default profile without a launch is a fault. */
void cover_check(struct suite *suite, struct tally *tally);
/* Calls that took another way than the decision says. */
uint64_t cover_faults(const struct cover *cover);
uint32_t cover_count(const struct cover *cover);
const char *cover_text(const struct cover *cover, uint32_t index);

/* ---- receipt.c ---- */
bool receipt_write(const struct suite *suite, const char *path, const struct tally *tallies, uint32_t count);

/* ---- the cases ---- */
void case_quantize_patterns(struct suite *suite, struct tally *tally);
void case_quantize_vectors(struct suite *suite, struct tally *tally);
void case_quantize_layouts(struct suite *suite, struct tally *tally);
void case_quantize_grouped(struct suite *suite, struct tally *tally);
void case_quantize_approx(struct suite *suite, struct tally *tally);
void case_quantize_random(struct suite *suite, struct tally *tally);
void case_quantize_rows(struct suite *suite, struct tally *tally);
void case_gemm_codes(struct suite *suite, struct tally *tally);
void case_gemm_models(struct suite *suite, struct tally *tally);
void case_gemm_forms(struct suite *suite, struct tally *tally);
void case_gemm_odd(struct suite *suite, struct tally *tally);
void case_gemm_rows(struct suite *suite, struct tally *tally);
void case_gemm_edges(struct suite *suite, struct tally *tally);
void case_gemm_plan(struct suite *suite, struct tally *tally);
void case_gemm_end_to_end(struct suite *suite, struct tally *tally);
void case_capture_replay(struct suite *suite, struct tally *tally);
void case_capture_first_use(struct suite *suite, struct tally *tally);
void case_pdl_chain(struct suite *suite, struct tally *tally);
void case_decode_products(struct suite *suite, struct tally *tally);
void case_decode_rows(struct suite *suite, struct tally *tally);
void case_decode_repeats(struct suite *suite, struct tally *tally);
void case_decode_fused(struct suite *suite, struct tally *tally);
void case_decode_max_sms(struct suite *suite, struct tally *tally);
void case_decode_weights_changed(struct suite *suite, struct tally *tally);
void case_decode_chain(struct suite *suite, struct tally *tally);
void case_prefill_products(struct suite *suite, struct tally *tally);
void case_prefill_tiles(struct suite *suite, struct tally *tally);
void case_prefill_m_valid(struct suite *suite, struct tally *tally);
void case_prefill_repeats(struct suite *suite, struct tally *tally);
void case_prefill_max_sms(struct suite *suite, struct tally *tally);

/* ---- warm.c: builds what the cases launch ---- */
bool warm_all(struct suite *suite);

/* Every specialisation that a query can reach; or those of one call, as cover_note_gemm takes it. */
typedef void (*query_fn)(void *user, const struct cbn_query *query);
typedef void (*call_fn)(void *user, enum suite_runtime runtime, const struct cbn_query *query, int64_t align);
void approx_queries(const struct suite *suite, query_fn add, void *user);
void quantize_queries(const struct suite *suite, query_fn add, void *user);
void gemm_queries(const struct suite *suite, query_fn add, void *user);
void gemm_edges_calls(const struct suite *suite, call_fn add, void *user);
void gemm_model_calls(const struct suite *suite, call_fn add, void *user);
void decode_calls(const struct suite *suite, call_fn add, void *user);
void prefill_calls(const struct suite *suite, call_fn add, void *user);

#endif
