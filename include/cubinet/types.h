/*
 * Words shared by every header: dtypes, scale formats, tensors, the call profile.
 */
#ifndef CUBINET_TYPES_H
#define CUBINET_TYPES_H

#include <cubinet/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(number, NAME, name, bytes an element) */
#define CBN_DTYPE_MAP(X)                                                                                               \
    X(0, NONE, "none", 0)                                                                                              \
    X(1, BF16, "bf16", 2)                                                                                              \
    X(2, FP16, "fp16", 2)                                                                                              \
    X(3, FP32, "fp32", 4)                                                                                              \
    X(4, E4M3, "e4m3", 1)                                                                                              \
    X(5, INT32, "int32", 4) /* packed UE8M0 scales: four exponent bytes a word, group 4w in the lowest byte */

enum cbn_dtype {
#define CBN_X(number, name, text, bytes) CBN_DTYPE_##name = number,
    CBN_DTYPE_MAP(CBN_X)
#undef CBN_X
};

/*
 * How a scale is stored. A format never decides a route. A UE8M0 exponent e is read as the fp32 with bits e << 23, that
 * is 2^(e-127): 0 is 0.0 (OCP means 2^-127), 255 is infinity (OCP means NaN).
 */
enum cbn_scale_format { CBN_SCALE_FP32 = 1, CBN_SCALE_UE8M0 = 2 };

/* What one weight scale covers: 128 x 128 of W, or one row of it by 128 columns. */
enum cbn_scale_gran { CBN_GRAN_BLOCK = 1, CBN_GRAN_ROW = 2 };

/*
 * Storage of activation scales; logical view [M,S] (fp32) or [M,W] (packed words), S = ceil(K/128), W = ceil(S/4).
 * With a group dimension (rank 3) the logical view is [T,G,S] and the storage is [G] times the storage named here.
 */
enum cbn_scale_layout {
    CBN_LAYOUT_NONE = 0,
    CBN_LAYOUT_ROW = 1,        /* fp32 [M,S], strides (>= S, 1) */
    CBN_LAYOUT_COL = 2,        /* fp32 [S,M], strides (1, >= M) */
    CBN_LAYOUT_COL4 = 3,       /* fp32 [S,ceil4(M)], strides (1, >= ceil4(M), a multiple of 4) */
    CBN_LAYOUT_PACKED_ROW = 4, /* int32 [M,W], strides (>= W, 1) */
    CBN_LAYOUT_PACKED_COL = 5  /* int32 [W,ceil4(M)], strides (1, >= ceil4(M), a multiple of 4) */
};

/* The dtype of a bias: that of the output, or fp32. It is added in fp32 before the one rounding. */
enum cbn_bias_kind { CBN_BIAS_NONE = 0, CBN_BIAS_OUT = 1, CBN_BIAS_FP32 = 2 };

/* What a kernel that is missing from memory costs a call. */
enum cbn_miss_policy {
    CBN_MISS_DEFAULT = 0, /* in a call: the runtime's; in a runtime: block */
    CBN_MISS_BLOCK = 1,   /* take it from the cache, or compile it now */
    CBN_MISS_NEVER = 3    /* take it from the cache; else status MISS, naming the command that warms it */
};

#define CBN_GROUP_SIZE 128 /* elements of K that share a scale */
#define CBN_RANK_MAX 4

/*
 * A tensor in device memory. Frozen for ever: it carries no size field.
 * Extents and strides count elements, outermost first. The stride of an extent of 1 is ignored.
 */
struct cbn_tensor {
    uint64_t data;  /* CUdeviceptr; 0 = absent */
    uint32_t dtype; /* enum cbn_dtype */
    uint32_t rank;  /* 1 to CBN_RANK_MAX */
    int64_t extents[CBN_RANK_MAX];
    int64_t strides[CBN_RANK_MAX];
};

#define CBN_TENSOR_INIT {0, 0, 0, {0, 0, 0, 0}, {0, 0, 0, 0}} /* absent */

/*
 * Everything besides shape and architecture that decides a route: the call profile.
 * Strings may be NULL. Zero-initialise through CBN_PROFILE_INIT, which gives the defaults.
 */
struct cbn_profile {
    uint32_t size;
    uint32_t in;           /* BF16, FP16, FP32, or E4M3 with scales in act_scale */
    uint32_t out;          /* BF16, FP16 or FP32 */
    uint32_t weight_scale; /* enum cbn_scale_format */
    uint32_t scale_gran;   /* enum cbn_scale_gran */
    uint32_t act_scale;    /* enum cbn_scale_layout: what E4M3 input brings, or what fp8_quantize writes */
    uint32_t pow2;         /* 1: fp32 activation scales are rounded up to a power of two */
    uint32_t bias;         /* enum cbn_bias_kind */
    uint32_t pdl;          /* 1: programmatic dependent launch where the architecture has it */
    uint32_t propagate;    /* 1: non-finite elements become NaN codes; 0: NaN -> code 0, +-inf -> +-448 */
    uint32_t sms;          /* SMs of the device; 0: the architecture's usual count */
    uint32_t max_sms;      /* SMs that the call may use; 0: all */
    uint32_t strict_route; /* 1: a fallback candidate is refused (UNSUPPORTED) in place of chosen */
    uint32_t approx;       /* fp8_quantize, plain fp32 scales only. 1: CBN_OP_APPROX_DIVISION */
    const char *policy;  /* "default" or "reference"; NULL: default */
    const char *disable; /* comma list of candidates that are switched off */
    const char *enable;  /* comma list of candidates, off by default, that are switched on */
};

#define CBN_PROFILE_INIT                                                                                               \
    {                                                                                                                  \
        sizeof(struct cbn_profile), CBN_DTYPE_BF16, CBN_DTYPE_BF16, CBN_SCALE_FP32, CBN_GRAN_BLOCK, CBN_LAYOUT_COL4,  \
            0, CBN_BIAS_NONE, 1, 0, 0, 0, 0, 0, NULL, NULL, NULL                                                       \
    }

/* "bf16" and so on; "unknown" for a number that is none. Static strings. thread: any; blocks: never; capture: ok */
CBN_EXPORT const char *cbn_dtype_name(uint32_t dtype);

#ifdef __cplusplus
}
#endif

#endif
