/*
 * swap_ab's sizes, the job of a CTA, and its places in shared memory. Part of fp8_swap_ab.cuh, which says what they mean.
 */
#ifndef FP8_SWAP_AB_JOB_CUH
#define FP8_SWAP_AB_JOB_CUH

#include "fp8_hopper.cuh"

constexpr bool FUSED = IN != DTYPE_E4M3;
constexpr int IN_BYTES = dtype_bytes(IN), OUT_BYTES = dtype_bytes(OUT);
constexpr int TILE_ROWS = 64;
constexpr int TOKEN_BLOCKS = BM / 8;
constexpr int MATH_WARPS = 4, MATH_THREADS = 32 * MATH_WARPS, RING_THREADS = MATH_THREADS + 32;
constexpr int HELPER_WARPS = FUSED ? 4 : 0, QUANTIZE_WARPS = MATH_WARPS + HELPER_WARPS;
constexpr int THREADS = RING_THREADS + 32 * HELPER_WARPS;
constexpr int W_BYTES = TILE_ROWS * GROUP, A_BYTES = BM * GROUP;
constexpr int STAGE_GROUPS = BM > 32 ? 1 : (BM > 16 ? 1 : 2) << DEEP; /* groups of K */
constexpr int STAGE_BYTES = STAGE_GROUPS * (W_BYTES + (FUSED ? 0 : A_BYTES));
constexpr int STAGE_COST = STAGE_BYTES + 16; /* with its two barriers */
constexpr int ROW_SCALES = W_GRAN == GRAN_ROW ? TILE_ROWS : 1;
constexpr int EXCHANGE_BYTES = TILE_ROWS * BM * 4; /* what one CTA receives, whatever the cluster */
constexpr int RESIDENT = 3;                        /* CTAs of an SM that registers must leave room for */
constexpr int BARRIER_MATH = 1, BARRIER_RING = 2, BARRIER_CODES = 3; /* named barriers; 0 is __syncthreads */
constexpr bool STAGED = OUT_BYTES == 2; /* output goes through shared memory where K is not cut */

/* When dependents are launched (runtime/dispatch/fp8_swap_ab.h): at the top, after the PDL wait, after the last load. */
constexpr u64 TRIGGER_TOP = 0, TRIGGER_WAITED = 1, TRIGGER_LOADED = 2;

static_assert(A_BYTES % 1024 == 0, "a swizzle atom is 1024 bytes");
static_assert(!FUSED || A_SCALE == SCALE_FP32, "scales made inside are fp32");

/* ---- who does what ---- */

/* Groups of K, or words of their scales: [first, first + count). */
struct share {
    int first, count;
};

struct layout {
    u32 ring, codes, exchange, a_scales, w_scales, barriers;
    int w_scales_bytes; /* of one of the two buffers */
};

struct job {
    int rank, split;   /* this CTA in its cluster */
    int whole;         /* groups of K that are not cut off */
    share groups;      /* this CTA's */
    int fills, stages; /* fills of the ring a tile; stages of the ring */
    int first_tile, tile_step, rounds;
    int m0, valid; /* tokens of the tile: the first, and how many are valid (after the PDL wait) */
    int pitch;     /* words of a row of A's scales in shared memory */
    bool bulk;     /* they come in one copy */
    layout at;
};

template <int FORMAT> CBN_INLINE share words_of(const share &groups)
{
    if (FORMAT == SCALE_FP32)
        return groups;
    int first = groups.first / 4;
    return {first, groups.count ? (groups.first + groups.count - 1) / 4 - first + 1 : 0};
}

/* Column-major scales of one tile of tokens lie together, and the tile's rows of them are no wider than BM. */
CBN_INLINE bool scales_lie_together(const gemm_args &p)
{
    return !FUSED && p.m <= BM && p.sa_row == 1 && p.sa_col <= BM && p.sa_col >= p.m && p.sa_col % 4 == 0 &&
           p.a_scale % 16 == 0;
}

/* Cluster sizes are powers of two. */
CBN_INLINE job job_of(const gemm_args &p, u32 base)
{
    job j;
    u32 rank, split, dynamic_bytes;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(split));
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic_bytes));
    int shift = 31 - __clz((int)split), groups = (int)((p.k + GROUP - 1) / GROUP);
    j.rank = (int)rank;
    j.split = (int)split;
    j.whole = (int)(p.k / GROUP);
    j.groups.first = (int)((i64)j.rank * groups >> shift);
    j.groups.count = (int)((i64)(j.rank + 1) * groups >> shift) - j.groups.first;
    j.fills = (j.groups.count + STAGE_GROUPS - 1) / STAGE_GROUPS;
    j.first_tile = (int)(blockIdx.x >> shift);
    j.tile_step = (int)(gridDim.x >> shift);
    j.rounds = ((int)((p.n + TILE_ROWS - 1) / TILE_ROWS) - j.first_tile + j.tile_step - 1) / j.tile_step;
    j.m0 = (int)blockIdx.y * BM;
    j.valid = 0;
    j.bulk = scales_lie_together(p);
    j.pitch = j.bulk ? (int)p.sa_col : BM;

    int slice = (groups + j.split - 1) >> shift;
    int codes_bytes = FUSED ? (slice + 2 * STAGE_GROUPS - 1) / STAGE_GROUPS * STAGE_GROUPS * A_BYTES : 0;
    int exchange_bytes = j.split > 1 ? EXCHANGE_BYTES : STAGED ? EXCHANGE_BYTES / 2 : 0;
    int a_scales_bytes = (slice + 4) * BM * 4;
    j.at.w_scales_bytes = (slice + 4) * ROW_SCALES * 4;
    int fixed = 1024 + codes_bytes + exchange_bytes + a_scales_bytes + 2 * j.at.w_scales_bytes + 32 + 64;
    j.stages = ((int)dynamic_bytes - fixed) / STAGE_COST;
    j.at.ring = base;
    j.at.codes = base + j.stages * STAGE_BYTES;
    j.at.exchange = j.at.codes + codes_bytes;
    j.at.a_scales = j.at.exchange + exchange_bytes;
    j.at.w_scales = j.at.a_scales + a_scales_bytes;
    j.at.barriers = (j.at.w_scales + 2 * j.at.w_scales_bytes + 15) & ~15u;
    return j;
}

CBN_INLINE void math_sync()
{
    asm volatile("bar.sync %0, %1;" ::"n"(BARRIER_MATH), "n"(MATH_THREADS) : "memory");
}

/*
 * Once, before the PDL wait: every CTA of the cluster runs and its barriers are there. No warp may wait for another one
 * between its arrival and its wait: on an H200 (seen in a CTA outside a cluster) a warp's wait did not return before all
 * warps of the CTA had come to theirs.
 */
CBN_INLINE void cluster_arrive(const job &j)
{
    if (j.split > 1)
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

CBN_INLINE void cluster_wait(const job &j)
{
    if (j.split > 1)
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

CBN_INLINE u32 stage_at(const job &j, int stage)
{
    return j.at.ring + (u32)stage * STAGE_BYTES;
}

CBN_INLINE u32 full_barrier(const job &j, int stage)
{
    return j.at.barriers + 8 * (u32)stage;
}

CBN_INLINE u32 empty_barrier(const job &j, int stage)
{
    return j.at.barriers + 8 * (u32)(j.stages + stage);
}

CBN_INLINE u32 received_barrier(const job &j)
{
    return j.at.barriers + 16 * (u32)j.stages;
}

CBN_INLINE u32 drained_barrier(const job &j)
{
    return received_barrier(j) + 8;
}

CBN_INLINE u32 scales_barrier(const job &j)
{
    return received_barrier(j) + 16;
}

CBN_INLINE bool early(const swap_ab_args &p)
{
    return PDL && p.fetch_early != 0;
}

/* A place in the ring, and the parity of the phase that is waited for there. */
struct cursor {
    int stage;
    u32 parity;
};

CBN_INLINE void advance(cursor &c, const job &j)
{
    if (++c.stage == j.stages) {
        c.stage = 0;
        c.parity ^= 1;
    }
}

#endif
