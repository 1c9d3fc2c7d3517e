/*
 * fp8_gemm: D[M,N] = A[M,K] . W[N,K]^T (+ bias) on tensor cores, promoted to fp32 every 128 of K.
 *
 * Macros: SWAP_AB, IN, OUT, A_SCALE, W_SCALE, W_GRAN, BIAS, POW2, PROPAGATE, PDL, VEC, BM x BN (tokens x weight rows of
 * a tile), THREADS.
 *
 * The MMA's m16 side ("p") holds tokens, or weight rows with SWAP_AB; its n8 side ("q") holds the others. A K tile is
 * one scale group. Weights stream through a ring of cp.async stages; the tile's tokens come through registers, where
 * they are quantised, into shared memory as codes and one scale a row.
 *
 * Order of the arithmetic, the same in every specialisation, so that a row of D depends on neither M nor the batch:
 * groups ascend; inside a group the MMAs ascend over a fixed permutation of K into one accumulator that starts at 0;
 * then total = fma(part, RN(sa * sw), total); at the end RN(total + bias), rounded once to OUT.
 */
#include "fp8_common.cuh"

#define FP8_MMA (__CUDA_ARCH__ == 890 || (__CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300))

constexpr bool SWAPPED = SWAP_AB != 0;
constexpr bool QUANTIZE = IN != DTYPE_E4M3;
constexpr int IN_BYTES = dtype_bytes(IN), OUT_BYTES = dtype_bytes(OUT);
constexpr int CHUNK = 16; /* bytes; a row of codes in a K tile is 8 of them */
constexpr int ROW_CHUNKS = GROUP / CHUNK;

constexpr int WARPS = THREADS / 32;
constexpr int P_ROWS = SWAPPED ? BN : BM, Q_ROWS = SWAPPED ? BM : BN;
constexpr int P_WARPS = SWAPPED ? WARPS : P_ROWS >= 64 ? 2 : 1;
constexpr int Q_WARPS = WARPS / P_WARPS;
constexpr int P_TILES = P_ROWS / P_WARPS / 16, Q_TILES = Q_ROWS / Q_WARPS / 8; /* MMAs of one warp */

constexpr int A_TASKS = BM * GROUP_LANES > THREADS ? BM * GROUP_LANES / THREADS : 1; /* of 16 elements, a thread */
constexpr int W_TASKS = BN * ROW_CHUNKS / THREADS;                                   /* of 16 bytes, a thread */
constexpr int ROW_STEP = THREADS / ROW_CHUNKS; /* rows between a thread's tasks */
constexpr int SW_ROWS = W_GRAN == GRAN_ROW ? BN : 1;

/* Shared memory stays below the 48 KB that need no opt-in; what A and the scales leave is the weights' ring. */
constexpr int SHARED_BUDGET = 47 * 1024;
constexpr int A_BYTES = BM * GROUP, W_BYTES = BN * GROUP;
constexpr int SCALE_BYTES = 2 * 4 * (BM + SW_ROWS);
constexpr int A_BUFFERS = 2 * A_BYTES + 2 * W_BYTES + SCALE_BYTES <= SHARED_BUDGET ? 2 : 1;
constexpr int STAGES_FIT = (SHARED_BUDGET - A_BUFFERS * A_BYTES - SCALE_BYTES) / W_BYTES;
constexpr int STAGES = STAGES_FIT < 5 ? STAGES_FIT : 5;
constexpr int CODE_BYTES = STAGES * W_BYTES + A_BUFFERS * A_BYTES;
constexpr int STAGING_ROW = BN + 8; /* floats: rows of a warp's store fall into different banks */

static_assert(P_TILES * P_WARPS * 16 == P_ROWS && Q_TILES * Q_WARPS * 8 == Q_ROWS, "warps must tile BM x BN");
static_assert(W_TASKS * THREADS == BN * ROW_CHUNKS && ROW_STEP % 8 == 0, "threads must tile the weights' stage");
static_assert(A_TASKS == 1 || A_TASKS * THREADS == BM * GROUP_LANES, "threads must tile the tokens' stage");
static_assert(BM * GROUP_LANES % 32 == 0 && SW_ROWS <= THREADS, "whole warps quantise");
static_assert(STAGES >= 2 && GROUP % BN == 0, "one block of weight scales a tile");
static_assert(BM * STAGING_ROW * 4 <= CODE_BYTES, "the staged output reuses the codes' memory");

struct alignas(16) shared_memory {
    u8 w[STAGES][W_BYTES];
    u8 a[A_BUFFERS][A_BYTES];
    float sa[2][BM];
    float sw[2][SW_ROWS];
};

/* One output tile and this thread's first task in it (row threadIdx.x / 8, 16 elements at threadIdx.x % 8). */
struct tile {
    i64 m0, n0;
    int m_count, n_count; /* rows of A and of W that exist and are valid */
    u64 a, w;             /* address of the task's elements at group 0 */
    u64 a_step, w_step;   /* bytes to the next task's row */
};

/* Sixteen tokens' elements a task, and the scale that e4m3 input brings; the tile's weight scale of this thread. */
struct fetched {
    raw16<IN> a[A_TASKS];
    float sa[A_TASKS];
    float sw;
};

typedef float partials[P_TILES][Q_TILES][4];

/*
 * A 16-byte chunk's place in its 128-byte row. A quarter warp reads two neighbouring rows' four chunks at once: bit 2
 * of the key differs between them, so that they meet in no bank.
 */
CBN_INLINE int chunk_offset(int row, int chunk)
{
    int key = (row & 1) << 2 | (row >> 1 & 3);
    return row * GROUP + ((chunk ^ key) * CHUNK);
}

CBN_INLINE tile tile_of(const gemm_args &p, i64 index, i64 m_tiles, i64 m_valid)
{
    int row = threadIdx.x / ROW_CHUNKS, column = threadIdx.x % ROW_CHUNKS * LANE_ELEMENTS;
    tile t;
    t.m0 = index % m_tiles * BM;
    t.n0 = index / m_tiles * BN;
    t.m_count = span_count(t.m0, m_valid, BM);
    t.n_count = span_count(t.n0, p.n, BN);
    t.a = p.a + ((t.m0 + row) * p.lda + column) * IN_BYTES;
    t.w = p.w + (t.n0 + row) * p.ldw + column;
    t.a_step = ROW_STEP * p.lda * IN_BYTES;
    t.w_step = ROW_STEP * p.ldw;
    return t;
}

/* Elements of this thread's column that exist in a group, 0 in a row that does not. */
CBN_INLINE int task_count(const gemm_args &p, int group, int row, int rows)
{
    i64 first = (i64)group * GROUP + threadIdx.x % ROW_CHUNKS * LANE_ELEMENTS;
    return row < rows ? span_count(first, p.k, LANE_ELEMENTS) : 0;
}

/* row and column strides in elements; packed: four exponents a word, the lowest group in the lowest byte. */
template <int FORMAT> CBN_INLINE float load_scale(u64 scales, i64 row_offset, i64 stride, int group)
{
    if (FORMAT == SCALE_UE8M0)
        return bits_float((load_u32(scales + 4 * (row_offset + group / 4 * stride)) >> 8 * (group % 4) & 0xFFu) << 23);
    return bits_float(load_u32(scales + 4 * (row_offset + group * stride)));
}

CBN_INLINE bool has_a_task()
{
    return BM * GROUP_LANES >= THREADS || threadIdx.x < BM * GROUP_LANES;
}

CBN_INLINE void fetch(const gemm_args &p, const tile &t, int group, fetched &f)
{
    int sw_row = threadIdx.x;
    if (sw_row < SW_ROWS)
        f.sw = sw_row < t.n_count ? load_scale<W_SCALE>(p.w_scale, (t.n0 / (W_GRAN == GRAN_ROW ? 1 : GROUP) + sw_row) *
                                                                       p.sw_row, p.sw_col, group)
                                  : 0.0f;
    if (!has_a_task())
        return;
#pragma unroll
    for (int i = 0; i < A_TASKS; i++) {
        int row = threadIdx.x / ROW_CHUNKS + i * ROW_STEP;
        load_raw(f.a[i], t.a + i * t.a_step + (i64)group * (GROUP * IN_BYTES), task_count(p, group, row, t.m_count));
        f.sa[i] = 0.0f;
        if (!QUANTIZE && threadIdx.x % ROW_CHUNKS == 0 && row < t.m_count)
            f.sa[i] = load_scale<A_SCALE>(p.a_scale, (t.m0 + row) * p.sa_row, p.sa_col, group);
    }
}

/* A lane's codes and its row's scale: quantised here, or as they came. */
CBN_INLINE float codes_of(const fetched &f, int task, u32 codes[4])
{
    if constexpr (QUANTIZE) {
        return quantize_lane<IN, POW2 != 0, PROPAGATE != 0>(f.a[task], codes).scale;
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            codes[i] = f.a[task].words[i];
        return f.sa[task];
    }
}

CBN_INLINE void settle(shared_memory &s, int group, const fetched &f)
{
    int parity = group % 2;
    if (threadIdx.x < SW_ROWS)
        s.sw[parity][threadIdx.x] = f.sw;
    if (!has_a_task())
        return;
#pragma unroll
    for (int i = 0; i < A_TASKS; i++) {
        int row = threadIdx.x / ROW_CHUNKS + i * ROW_STEP, chunk = threadIdx.x % ROW_CHUNKS;
        vec16 codes;
        float scale = codes_of(f, i, codes.w);
        *(vec16 *)(s.a[A_BUFFERS == 2 ? parity : 0] + chunk_offset(row, chunk)) = codes;
        if (chunk == 0)
            s.sa[parity][row] = scale;
    }
}

/* Copies `count` of 16 bytes and zeroes the rest. */
CBN_INLINE void copy_chunk(u8 *chunk, u64 source, int count)
{
    if (VEC == 16) {
        u32 address = (u32)__cvta_generic_to_shared(chunk);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(source), "r"(count)
                     : "memory");
        return;
    }
    raw16<DTYPE_E4M3> bytes;
    load_raw(bytes, source, count);
    *(vec16 *)chunk = {bytes.words[0], bytes.words[1], bytes.words[2], bytes.words[3]};
}

CBN_INLINE void stream_weights(shared_memory &s, const gemm_args &p, const tile &t, int group, int groups)
{
    u8 *stage = s.w[group % STAGES];
#pragma unroll
    for (int i = 0; i < W_TASKS && group < groups; i++) {
        int row = threadIdx.x / ROW_CHUNKS + i * ROW_STEP;
        int count = task_count(p, group, row, t.n_count);
        u64 source = count ? t.w + i * t.w_step + (i64)group * GROUP : p.w;
        copy_chunk(stage + chunk_offset(row, threadIdx.x % ROW_CHUNKS), source, count);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* What decoding leaves out of each product, an exact power of two. */
constexpr float DECODED = __CUDA_ARCH__ >= 890 ? 1.0f : 65536.0f;

#if FP8_MMA
CBN_INLINE void mma_e4m3(float c[4], const u32 a[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#else
/* Four codes to two registers of two fp16; below sm_89 each value comes out times 2^-8, which DECODED restores. */
CBN_INLINE void decode(u32 codes, u32 &low, u32 &high)
{
#if __CUDA_ARCH__ >= 890
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.rn.f16x2.e4m3x2 %0, l; cvt.rn.f16x2.e4m3x2 %1, h; }"
        : "=r"(low), "=r"(high)
        : "r"(codes));
#else
    u32 pairs[2] = {__byte_perm(codes, 0, 0x1404), __byte_perm(codes, 0, 0x3424)};
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 magnitude = pairs[i] & 0x7F007F00u;
        u32 nan = (magnitude + 0x01000100u) & 0x80008000u; /* only 0x7F carries */
        pairs[i] = (pairs[i] & 0x80008000u) | magnitude >> 1 | nan >> 1;
    }
    low = pairs[0];
    high = pairs[1];
#endif
}

CBN_INLINE void mma_f16(float c[4], const u32 a[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

/*
 * K is permuted alike on both sides: lane (g, t) of a warp reads bytes 64 h + 16 t ... + 15 of its rows, and word j of
 * them is its share of MMA step (h, j). As e4m3, words j and j + 1 are the two register halves of an m16n8k32; as fp16,
 * the two halves of one word are those of an m16n8k16.
 */
CBN_INLINE void multiply_words(partials part, const vec16 (&p)[P_TILES][2], const vec16 (&q)[Q_TILES])
{
#if FP8_MMA
#pragma unroll
    for (int j = 0; j < 4; j += 2)
#pragma unroll
        for (int x = 0; x < P_TILES; x++) {
            u32 a[4] = {p[x][0].w[j], p[x][1].w[j], p[x][0].w[j + 1], p[x][1].w[j + 1]};
#pragma unroll
            for (int y = 0; y < Q_TILES; y++)
                mma_e4m3(part[x][y], a, q[y].w[j], q[y].w[j + 1]);
        }
#else
#pragma unroll
    for (int j = 0; j < 4; j++) {
        u32 b[Q_TILES][2];
#pragma unroll
        for (int y = 0; y < Q_TILES; y++)
            decode(q[y].w[j], b[y][0], b[y][1]);
#pragma unroll
        for (int x = 0; x < P_TILES; x++) {
            u32 a[4];
            decode(p[x][0].w[j], a[0], a[2]);
            decode(p[x][1].w[j], a[1], a[3]);
#pragma unroll
            for (int y = 0; y < Q_TILES; y++)
                mma_f16(part[x][y], a, b[y][0], b[y][1]);
        }
    }
#endif
}

/* This warp's first row on either side, and this lane's place in an MMA: rows g and g + 8, columns 2 t and 2 t + 1. */
CBN_INLINE int p_first()
{
    return threadIdx.x / 32 / Q_WARPS * (P_TILES * 16);
}

CBN_INLINE int q_first()
{
    return threadIdx.x / 32 % Q_WARPS * (Q_TILES * 8);
}

CBN_INLINE int lane_g()
{
    return threadIdx.x % 32 / 4;
}

CBN_INLINE int lane_t()
{
    return threadIdx.x % 4;
}

CBN_INLINE void multiply(partials part, const u8 *p, const u8 *q)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        vec16 p_words[P_TILES][2], q_words[Q_TILES];
        int chunk = 4 * h + lane_t();
#pragma unroll
        for (int x = 0; x < P_TILES * 2; x++)
            p_words[x / 2][x % 2] = *(const vec16 *)(p + chunk_offset(p_first() + 8 * x + lane_g(), chunk));
#pragma unroll
        for (int y = 0; y < Q_TILES; y++)
            q_words[y] = *(const vec16 *)(q + chunk_offset(q_first() + 8 * y + lane_g(), chunk));
        multiply_words(part, p_words, q_words);
    }
}

CBN_INLINE float weight_scale(const float *sw, int row)
{
    return sw[W_GRAN == GRAN_ROW ? row : 0];
}

/* total += part * (sa * sw), with the partial sums of one group. */
CBN_INLINE void promote(partials total, const partials part, const float *sa, const float *sw)
{
#pragma unroll
    for (int x = 0; x < P_TILES; x++)
#pragma unroll
        for (int y = 0; y < Q_TILES; y++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int p_row = p_first() + 16 * x + lane_g() + i / 2 * 8, q_row = q_first() + 8 * y + 2 * lane_t() + i % 2;
                float scale = SWAPPED ? mul_rn(sa[q_row], weight_scale(sw, p_row))
                                      : mul_rn(sa[p_row], weight_scale(sw, q_row));
                total[x][y][i] = fma_rn(mul_rn(part[x][y][i], DECODED), scale, total[x][y][i]);
            }
}

CBN_INLINE void accumulate(partials total, const shared_memory &s, int group)
{
    const u8 *a = s.a[A_BUFFERS == 2 ? group % 2 : 0], *w = s.w[group % STAGES];
    partials part = {};
    multiply(part, SWAPPED ? w : a, SWAPPED ? a : w);
    promote(total, part, s.sa[group % 2], s.sw[group % 2]);
}

/*
 * All groups of one tile. The barrier of a round stands between the writing of its A buffer, scales and weight stage
 * and their reading, and between the reading of the previous weight stage and its refill. A buffer or scale that is
 * written in round g was last read in round g - 2, which every thread left before the barrier of round g - 1; with one
 * A buffer a barrier of its own takes that part.
 */
CBN_INLINE void run_groups(partials total, shared_memory &s, const gemm_args &p, const tile &t)
{
    int groups = (int)((p.k + GROUP - 1) / GROUP); /* rows of 2^38 codes fit no device */
    fetched f;
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++)
        stream_weights(s, p, t, stage, groups);
    if (groups > 0)
        fetch(p, t, 0, f);
#pragma unroll 1
    for (int group = 0; group < groups; group++) {
        if (A_BUFFERS == 1)
            __syncthreads();
        settle(s, group, f);
        if (group + 1 < groups)
            fetch(p, t, group + 1, f);
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        stream_weights(s, p, t, group + STAGES - 1, groups);
        accumulate(total, s, group);
    }
}

/* Into shared memory as fp32 [BM][STAGING_ROW], so that rows of D leave in whole chunks in both orientations. */
CBN_INLINE void stage_output(float *staging, const partials total)
{
#pragma unroll
    for (int x = 0; x < P_TILES; x++)
#pragma unroll
        for (int y = 0; y < Q_TILES; y++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int p_row = p_first() + 16 * x + lane_g() + i / 2 * 8, q_row = q_first() + 8 * y + 2 * lane_t() + i % 2;
                staging[SWAPPED ? q_row * STAGING_ROW + p_row : p_row * STAGING_ROW + q_row] = total[x][y][i];
            }
}

CBN_INLINE float biased(const gemm_args &p, i64 column, float value)
{
    if (BIAS == BIAS_NONE)
        return value;
    constexpr int DTYPE = BIAS == BIAS_FP32 ? DTYPE_FP32 : OUT;
    return value + element_float<DTYPE>(load_element<dtype_bytes(DTYPE)>(p.bias + column * dtype_bytes(DTYPE)));
}

/* One chunk of a row of D: `count` of its elements exist. */
CBN_INLINE void store_output(const gemm_args &p, const float *values, i64 row, i64 column, int count)
{
    constexpr int ELEMENTS = CHUNK / OUT_BYTES;
    u64 address = p.d + (row * p.ldd + column) * OUT_BYTES;
    u32 bits[ELEMENTS];
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++)
        bits[i] = i < count ? output_bits<OUT>(biased(p, column + i, values[i])) : 0;
    if (VEC == 16 && count == ELEMENTS) {
        u32 words[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            words[i] = OUT_BYTES == 4 ? bits[i] : bits[2 * i % ELEMENTS] | bits[(2 * i + 1) % ELEMENTS] << 16;
        store_16(address, words);
        return;
    }
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++)
        if (i < count)
            store_element<OUT_BYTES>(address + i * OUT_BYTES, bits[i]);
}

CBN_INLINE void write_tile(const gemm_args &p, const tile &t, const float *staging)
{
    constexpr int ELEMENTS = CHUNK / OUT_BYTES, CHUNKS = BN / ELEMENTS;
#pragma unroll 1
    for (int index = threadIdx.x; index < t.m_count * CHUNKS; index += THREADS) {
        int row = index / CHUNKS, column = index % CHUNKS * ELEMENTS;
        int count = span_count(column, t.n_count, ELEMENTS);
        if (count > 0)
            store_output(p, staging + row * STAGING_ROW + column, t.m0 + row, t.n0 + column, count);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) cbn_fp8_gemm(const __grid_constant__ gemm_args p)
{
    __shared__ shared_memory s;
    pdl_wait();
    i64 m_valid = valid_rows(p.m_valid, p.m);
    i64 m_tiles = (m_valid + BM - 1) / BM, tiles = m_tiles * ((p.n + BN - 1) / BN);
#pragma unroll 1
    for (i64 index = blockIdx.x; index < tiles; index += gridDim.x) {
        tile t = tile_of(p, index, m_tiles, m_valid);
        partials total = {};
        run_groups(total, s, p, t);
        if (index + gridDim.x >= tiles)
            pdl_launch_dependents();
        __syncthreads();
        stage_output((float *)&s, total);
        __syncthreads();
        write_tile(p, t, (const float *)&s);
        __syncthreads();
    }
}
