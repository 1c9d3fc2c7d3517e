/*
 * The argument structs of the built-in kernels, byte for byte those of runtime/dispatch/builtin.h (argument layout 1).
 */
#ifndef FP8_ARGS_CUH
#define FP8_ARGS_CUH

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

struct gemm_args {
    u64 a, a_scale, w, w_scale, d, bias, m_valid, workspace;
    i64 m, n, k;
    i64 lda, ldw, ldd;
    i64 sa_row, sa_col;
    i64 sw_row, sw_col;
};

/* A CUtensorMap. */
struct alignas(64) tensor_map {
    u64 words[16];
};

struct swap_ab_args {
    gemm_args gemm;
    u64 fetch_early, trigger;
    tensor_map w, w_tail, a, a_tail;
};

struct wgmma_args {
    gemm_args gemm;
    u64 fetch_early;
    i64 share; /* of the copies, over a cluster: 0 nothing, 1 the rows of A, 2 those of W */
    i64 band;  /* row tiles that are walked together, column by column */
    tensor_map a, a_tail, w, w_tail, d;
};

struct quantize_args {
    u64 x, codes, scales, m_valid;
    i64 t, g, k;
    i64 x_t, x_g;
    i64 c_t, c_g;
    i64 s_t, s_g, s_s;
};

/* NVRTC has no offsetof: every field is 8 bytes (maps apart), so that sizes and the fields' order pin each offset. */
constexpr gemm_args GEMM_ORDER = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
static_assert(sizeof(gemm_args) == 18 * 8, "argument layout 1");
static_assert(GEMM_ORDER.workspace == 8 && GEMM_ORDER.m == 9 && GEMM_ORDER.lda == 12, "argument layout 1");
static_assert(GEMM_ORDER.sa_row == 15 && GEMM_ORDER.sw_row == 17 && GEMM_ORDER.sw_col == 18, "argument layout 1");

static_assert(sizeof(swap_ab_args) == 192 + 4 * 128 && alignof(swap_ab_args) == 64, "argument layout 1");

static_assert(sizeof(wgmma_args) == 192 + 5 * 128 && alignof(wgmma_args) == 64, "argument layout 1");

constexpr quantize_args QUANTIZE_ORDER = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
static_assert(sizeof(quantize_args) == 14 * 8, "argument layout 1");
static_assert(QUANTIZE_ORDER.m_valid == 4 && QUANTIZE_ORDER.t == 5 && QUANTIZE_ORDER.x_t == 8, "argument layout 1");
static_assert(QUANTIZE_ORDER.c_t == 10 && QUANTIZE_ORDER.s_t == 12 && QUANTIZE_ORDER.s_s == 14, "argument layout 1");

#endif
