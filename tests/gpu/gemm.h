/*
 * Products: operands with their fp64 answer, and one checked call in any form and placement.
 */
#ifndef TESTS_GPU_GEMM_H
#define TESTS_GPU_GEMM_H

#include "suite.h"

/* Operands of one (N, K), in plain contiguous storage, and the product of what they stand for. */
struct problem {
    int64_t m, n, k, groups;
    bool a_pow2, w_pow2; /* scales are powers of two: may be given packed */
    uint32_t gran;
    CUdeviceptr x;           /* fp32 [m,k]: what is quantised */
    CUdeviceptr codes, sa;   /* fp8_quantize of x: e4m3 [m,k], fp32 [m,groups] */
    CUdeviceptr w, sw;       /* e4m3 [n,k], fp32 [rows,groups] */
    CUdeviceptr bias;        /* fp32 [n], exact in bf16 and fp16 */
    CUdeviceptr ref, absref; /* fp64 [m,n] */
};

struct problem_options {
    int64_t m, n, k;
    bool a_pow2, w_pow2;
    uint32_t gran;
    int mantissa_bits; /* of x: 7 is exact in bf16 and fp16, whose smallest step is 2^-24 */
    uint64_t seed;
};

/* False: fp8_quantize failed, which is a fault already. */
bool problem_create(struct suite *suite, struct tally *tally, const struct problem_options *options,
                    struct problem *ret_problem);
/* codes and sa from x as it is now. */
bool problem_quantize(struct suite *suite, struct tally *tally, struct problem *problem);
/* ref and absref from the operands as they are now. */
void problem_solve(struct problem *problem);
void problem_done(struct problem *problem);

struct form {
    uint32_t in, out;
    uint32_t layout;   /* of activation scales, E4M3 input only */
    uint32_t w_format; /* enum cbn_scale_format */
    uint32_t gran;
    uint32_t bias; /* enum cbn_bias_kind */
    bool pow2, propagate, no_pdl;
};

#define FORM_COUNT 99u          /* every input with every output, three times with other weights, bias and PDL */
struct form form_default(void); /* bf16 in and out, fp32 128 x 128 scales, PDL: the default profile */
struct form form_at(uint32_t index);
bool form_is_packed(const struct form *form);
/* The operand set that a form needs: whether activation and weight scales are powers of two. */
bool form_a_pow2(const struct form *form);
bool form_w_pow2(const struct form *form);
/* The question about every shape under a form. */
void gemm_query(const struct suite *suite, const struct form *form, struct cbn_query *ret_query);

enum gemm_slot { GEMM_SLOT_D0, GEMM_SLOT_D1, GEMM_SLOT_D2, GEMM_SLOT_COUNT };

struct gemm_call {
    enum suite_runtime runtime;
    struct form form;
    int64_t m;
    int64_t lda_pad, ldw_pad, ldd_pad, s_pad; /* elements past a tight row; s_pad: of the scales' long stride */
    int64_t a_offset, w_offset, d_offset;     /* elements after an aligned address */
    bool w_scale_columns;                     /* weight scales column-major, rows rounded up to 4 */
    bool has_m_valid;
    int64_t m_valid;
    bool has_bad_row; /* row bad_row of A (and its scales) is bytes bad_byte; its own result is not looked at */
    int64_t bad_row;
    uint8_t bad_byte;
    uint32_t max_sms;
    double tolerance; /* 0: by the output's dtype; < 0: exact */
    enum gemm_slot slot;
};

struct gemm_output {
    CUdeviceptr data;
    int64_t ld_bytes, row_bytes;
    const char *kernel; /* candidate that ran; NULL: the call failed */
    int64_t order;      /* call_sum_order */
};

struct gemm_call gemm_call_plain(int64_t m);
/* The question about one call, and the alignment that its tensors will have. */
void gemm_call_query(const struct suite *suite, int64_t n, int64_t k, const struct gemm_call *call,
                     struct cbn_query *ret_query);
int64_t gemm_call_align(int64_t n, int64_t k, const struct gemm_call *call);
void gemm_add_call(const struct suite *suite, int64_t n, int64_t k, const struct gemm_call *call, call_fn add,
                   void *user);
/* swap_ab or swap_ab_fused: the same bits for the same rows, whoever quantises. wgmma keeps them in one order of sums. */
bool gemm_is_swap_ab(const char *kernel);

/* A call in words. */
void gemm_describe(const struct problem *problem, const struct gemm_call *call, const char *kernel, char *text,
                   size_t text_bytes);
/* Places the operands in poison, calls, compares with the fp64 answer, and looks for bytes written elsewhere. */
struct gemm_output gemm_run(struct suite *suite, struct tally *tally, const struct problem *problem,
                            const struct gemm_call *call);
/* The arguments that gemm_run would call with; operands are placed. */
void gemm_place(struct suite *suite, const struct problem *problem, const struct gemm_call *call,
                struct cbn_fp8_gemm_args *ret_args);
/* Checks D of a call whose arguments came from gemm_place. */
struct gemm_output gemm_check(struct suite *suite, struct tally *tally, const struct problem *problem,
                              const struct gemm_call *call, const struct cbn_fp8_gemm_args *args);
/* ---- gemm_plan.c ---- */
struct cbn_plan *gemm_plan_create(struct suite *suite, struct tally *tally, enum suite_runtime runtime,
                                  const struct cbn_fp8_gemm_args *args, uint32_t flags, int64_t max_m);
uint64_t gemm_plan_workspace_bytes(struct tally *tally, const struct cbn_plan *plan, int64_t m);
/* As gemm_run. Scratch buffers must stay where they are while the plan lives: weights of one shape, not in a sample. */
struct gemm_output gemm_plan_run(struct suite *suite, struct tally *tally, const struct problem *problem,
                                 struct cbn_plan *plan, const struct gemm_call *call);

/* Bytes that differ in the first rows of two outputs; skip_row < 0: none is skipped. */
uint64_t gemm_unequal(struct suite *suite, const struct gemm_output *a, const struct gemm_output *b, int64_t rows,
                      int64_t skip_row);
/* The same on top of the counter, without waiting. */
void gemm_add_unequal(struct suite *suite, const struct gemm_output *a, const struct gemm_output *b, int64_t rows);
/* The suite's one workspace: bytes of 0xFF between canaries. 0 for none; the address changes as needs grow. */
CUdeviceptr gemm_workspace(struct suite *suite, uint64_t bytes);
/* Bytes of the canaries that were written. */
uint64_t gemm_workspace_touched(struct suite *suite, CUdeviceptr workspace, uint64_t bytes);
uint64_t count_read(struct suite *suite);
void count_reset(struct suite *suite);

#endif
