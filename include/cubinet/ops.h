/*
 * Operations on device memory: block-scaled FP8 quantisation and GEMM, as one-shot calls and as plans.
 *
 * Streams are CUstream (NULL and the per-thread default are accepted), device pointers are CUdeviceptr. Calls are
 * asynchronous on their stream. M == 0, T == 0 or N == 0 is success: nothing is launched and no other argument is
 * looked at beyond the struct's size.
 *
 * Statuses of every operation: OK; INVALID (an argument, named); UNSUPPORTED (no candidate takes it; the message
 * holds each candidate's refusing guard); NOT_LOADED (the kernel is not loaded and the stream is capturing: the
 * capture stays valid); MISS; NO_DRIVER; NO_COMPILER; COMPILE_FAILED; CUDA.
 */
#ifndef CUBINET_OPS_H
#define CUBINET_OPS_H

#include <cubinet/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* flags of the argument structs */
#define CBN_OP_NO_PDL 1u         /* launch without programmatic stream serialisation */
#define CBN_OP_PROPAGATE 2u      /* non-finite elements become NaN codes (default: NaN -> 0, +-inf -> +-448) */
#define CBN_OP_POW2 4u           /* fp32 activation scales rounded up to a power of two (UE8M0 rule) */
#define CBN_OP_STRICT_ROUTE 8u   /* a fallback candidate is UNSUPPORTED */
#define CBN_OP_WEIGHTS_STATIC 16u /* plans only: no kernel in flight writes the weights or their scales */
/*
 * fp8_quantize with plain fp32 scales only: r = div.approx.ftz.f32(448, a), as GPU kernels built with fast math have
 * it, to compare with them bit for bit. Hazard: where a is above 2^126 (8.5e37) that quotient is 0, so every finite
 * element of the group gets a zero code beside a finite scale. INVALID with CBN_OP_POW2 or packed scales.
 */
#define CBN_OP_APPROX_DIVISION 32u

/*
 * fp8_quantize: x to e4m3 codes and one scale per 128 consecutive elements of the last dimension.
 *
 * Per group: a = max(1e-10, max |x| over the finite elements); s = RN(a * RN(1/448)); code = e4m3(clamp(RN(x * r),
 * -448, 448)), r = RN(448/a), all in fp32, to nearest even. Powers of two and packed scales: s is rounded up to 2^e
 * first and r = 2^-e exactly. Source: block-scaled FP8 as in DeepSeek-V3; UE8M0 of the OCP microscaling format.
 *
 * x       [T,K] or [T,G,D]; BF16, FP16 or FP32; last stride 1, other strides positive.
 * codes   E4M3; [T,K] with row stride >= K, or [T,G,D] contiguous.
 * scales  logical [T,S] or [T,G,S] (fp32), [T,W] or [T,G,W] (int32), S = ceil(K/128), W = ceil(S/4), stored as
 *         scale_layout says. Pad bytes of the last packed word are zeroed, pad rows are not written.
 */
struct cbn_fp8_quantize_args {
    uint32_t size;
    uint32_t flags;
    uint32_t scale_layout; /* enum cbn_scale_layout; rank 3 takes ROW ([G,T,S]), COL4 ([G,S,ceil4(T)]), PACKED_COL */
    uint32_t max_sms;      /* 0: all */
    uint32_t miss_policy;  /* enum cbn_miss_policy */
    uint32_t reserved;
    struct cbn_tensor x;
    struct cbn_tensor codes;
    struct cbn_tensor scales;
    uint64_t m_valid; /* device int32: rows t >= *m_valid are neither read nor written; 0: all rows are valid */
};

#define CBN_FP8_QUANTIZE_ARGS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(struct cbn_fp8_quantize_args), 0, 0, 0, 0, 0, CBN_TENSOR_INIT, CBN_TENSOR_INIT,                         \
        CBN_TENSOR_INIT, 0                                                                                             \
    }

/* thread: any; blocks: never once the kernel is loaded, else disk or compile; capture: ok once loaded */
CBN_EXPORT int32_t cbn_fp8_quantize(struct cbn_runtime *runtime, const struct cbn_fp8_quantize_args *args, void *stream,
                                    struct cbn_error *err);

/*
 * fp8_gemm: D[M,N] = A[M,K] . W[N,K]^T (+ bias[N]), promoted to fp32 every 128 of K:
 * D[m,n] = round(sum over g of sa[m,g] * sw[n,g] * (sum over k in group g of a[m,k] * w[n,k]) + bias[n]).
 *
 * a        [M,K]: BF16, FP16, FP32 (quantised by the call, bit-equal to fp8_quantize) or E4M3 with a_scale.
 * a_scale  logical [M,S] or packed [M,W], as a_scale_layout says; absent unless a is E4M3.
 * w        E4M3 [N,K], row stride >= K.
 * w_scale  fp32 [R,S] or packed int32 [R,W], R = ceil(N/128) (GRAN_BLOCK) or N (GRAN_ROW); positive strides.
 * d        [M,N], BF16, FP16 or FP32, row stride >= N; must not overlap an input.
 * bias     [N], dtype of d or FP32; optional.
 * K == 0 gives D = bias or zeros. FP16 results beyond 65504 become infinity.
 * On sm_90a N and K of 2^31 and more are for `generic` alone: the others count them by 32 bits, and no guard says so yet.
 * Switch swap_ab, swap_ab_fused and wgmma off there.
 *
 * Input that is not E4M3 may need a workspace: for some counts of rows the call launches fp8_quantize, which leaves
 * codes and scales there, and then the product (cbn_explain tells which). Ask cbn_fp8_gemm_workspace_bytes; a call
 * whose workspace is missing, too small, misaligned, or overlaps a tensor is INVALID and launches nothing.
 */
struct cbn_fp8_gemm_args {
    uint32_t size;
    uint32_t flags;
    uint32_t a_scale_layout; /* enum cbn_scale_layout */
    uint32_t w_scale_gran;   /* enum cbn_scale_gran; 0: BLOCK */
    uint32_t max_sms;
    uint32_t miss_policy;
    struct cbn_tensor a;
    struct cbn_tensor a_scale;
    struct cbn_tensor w;
    struct cbn_tensor w_scale;
    struct cbn_tensor d;
    struct cbn_tensor bias;
    /*
     * device int32; 0: all rows are valid. Rows m >= *m_valid of d are not written. Those of a and a_scale may be
     * fetched, since kernels copy whole boxes of rows, and are never used: the memory is there, its bytes are any.
     */
    uint64_t m_valid;
    uint64_t workspace;       /* device memory, 256-byte aligned, one per stream; contents need no initialisation */
    uint64_t workspace_bytes; /* at least what cbn_fp8_gemm_workspace_bytes says */
};

#define CBN_FP8_GEMM_ARGS_INIT                                                                                         \
    {                                                                                                                  \
        sizeof(struct cbn_fp8_gemm_args), 0, 0, 0, 0, 0, CBN_TENSOR_INIT, CBN_TENSOR_INIT, CBN_TENSOR_INIT,            \
        CBN_TENSOR_INIT, CBN_TENSOR_INIT, CBN_TENSOR_INIT, 0, 0, 0                                                     \
    }

/* thread: any; blocks: never once the kernel is loaded, else disk or compile; capture: ok once loaded */
CBN_EXPORT int32_t cbn_fp8_gemm(struct cbn_runtime *runtime, const struct cbn_fp8_gemm_args *args, void *stream,
                                struct cbn_error *err);

/*
 * Device memory that cbn_fp8_gemm needs for these arguments, whatever their alignment; 0 when none. Only extents,
 * dtypes, layouts, flags and max_sms are read, and the current context's device.
 * thread: any; blocks: never; capture: ok
 */
CBN_EXPORT int32_t cbn_fp8_gemm_workspace_bytes(struct cbn_runtime *runtime, const struct cbn_fp8_gemm_args *args,
                                                uint64_t *ret_bytes, struct cbn_error *err);

struct cbn_plan;

/* What a plan binds once. Only w, w_scale, bias, dtypes and options are read; the weights must outlive the plan. */
struct cbn_fp8_gemm_plan_options {
    uint32_t size;
    uint32_t flags;
    uint32_t in;              /* enum cbn_dtype of a */
    uint32_t out;             /* enum cbn_dtype of d */
    uint32_t a_scale_layout;  /* for E4M3 input */
    uint32_t w_scale_gran;
    uint32_t max_sms;
    uint32_t miss_policy;
    int64_t max_m;            /* every specialisation for M in [0, max_m] with contiguous, aligned A and D is loaded by
                                 create, fp8_quantize's too where it goes first; 0: none, runs load */
    struct cbn_tensor w;
    struct cbn_tensor w_scale;
    struct cbn_tensor bias;
};

#define CBN_FP8_GEMM_PLAN_OPTIONS_INIT                                                                                 \
    {                                                                                                                  \
        sizeof(struct cbn_fp8_gemm_plan_options), 0, 0, 0, 0, 0, 0, 0, 0, CBN_TENSOR_INIT, CBN_TENSOR_INIT,            \
        CBN_TENSOR_INIT                                                                                                \
    }

/*
 * Binds weights, scales, N, K, dtypes and options, and the calling thread's current context.
 * thread: any; blocks: disk, compile; capture: no
 */
CBN_EXPORT int32_t cbn_fp8_gemm_plan_create(struct cbn_runtime *runtime, const struct cbn_fp8_gemm_plan_options *options,
                                            struct cbn_plan **ret_plan, struct cbn_error *err);

struct cbn_fp8_gemm_run_args {
    uint32_t size;
    uint32_t flags; /* must be 0 */
    struct cbn_tensor a;
    struct cbn_tensor a_scale;
    struct cbn_tensor d;
    uint64_t m_valid;         /* these three as in cbn_fp8_gemm_args */
    uint64_t workspace;
    uint64_t workspace_bytes; /* at least what cbn_fp8_gemm_plan_workspace_bytes says */
};

#define CBN_FP8_GEMM_RUN_ARGS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(struct cbn_fp8_gemm_run_args), 0, CBN_TENSOR_INIT, CBN_TENSOR_INIT, CBN_TENSOR_INIT, 0, 0, 0            \
    }

/*
 * Runs a plan on a stream of its context: no lock, system call, allocation or driver query before the launch once
 * the kernel is loaded (tensor maps of a are encoded by the driver, on the host).
 * thread: any; blocks: never once loaded; capture: ok once loaded
 */
CBN_EXPORT int32_t cbn_fp8_gemm_plan_run(struct cbn_plan *plan, const struct cbn_fp8_gemm_run_args *args, void *stream,
                                         struct cbn_error *err);

/* Device memory that is enough for each run with M up to max_m; 0: none. thread: any; blocks: never; capture: ok */
CBN_EXPORT int32_t cbn_fp8_gemm_plan_workspace_bytes(const struct cbn_plan *plan, int64_t max_m, uint64_t *ret_bytes,
                                                     struct cbn_error *err);

/*
 * Says that the weights are being written: until settled is 1 again, no kernel of the plan fetches them before its
 * dependency is resolved. thread: any; blocks: never; capture: ok
 */
CBN_EXPORT void cbn_plan_weights_changed(struct cbn_plan *plan, uint32_t settled);

/* A call of a family of the caller's own. */
struct cbn_launch_args {
    uint32_t size;
    uint32_t flags;               /* CBN_OP_NO_PDL, CBN_OP_STRICT_ROUTE */
    const char *op;               /* the family's name */
    const struct cbn_fact *facts; /* all the family's, in any order, but the common four, which Cubinet writes */
    const void *arguments;        /* the one struct that the kernel takes by value; copied by the launch */
    uint32_t fact_count;
    uint32_t argument_bytes;      /* must be the chosen candidate's */
    uint32_t max_sms;             /* 0: all. The common fact of that name; obeyed by the family's geometry */
    uint32_t miss_policy;         /* enum cbn_miss_policy */
    uint64_t workspace;           /* what arguments holds of it: checked where the geometry asks for some; 256-byte */
    uint64_t workspace_bytes;     /* aligned, at least what cbn_explain tells */
};

#define CBN_LAUNCH_ARGS_INIT                                                                                           \
    {                                                                                                                  \
        sizeof(struct cbn_launch_args), 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0                                          \
    }

/*
 * Decides, obtains the kernel and launches it, as the built-in operations do. A fact that is unknown, missing, given
 * twice or one of the common four is INVALID and named. A noop of the family is success: arguments are not looked at.
 * Programmatic stream serialisation is used where the candidate has CBN_CANDIDATE_PDL and its parameter PDL is 1.
 * UNSUPPORTED: also an op that is not registered. A built-in op is INVALID: it has a call of its own.
 * thread: any; blocks: never once the kernel is loaded, else disk or compile; capture: ok once loaded
 */
CBN_EXPORT int32_t cbn_launch(struct cbn_runtime *runtime, const struct cbn_launch_args *args, void *stream,
                              struct cbn_error *err);

/* No run may be in progress; graphs captured from it stay valid while the runtime lives. NULL is accepted. */
CBN_EXPORT void cbn_plan_destroy(struct cbn_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
