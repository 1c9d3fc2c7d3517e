/*
 * fp8_swap_ab: D[M,N] = A[M,K] . W[N,K]^T (+ bias) for few tokens on sm_90a, promoted to fp32 every 128 of K.
 *
 * Macros: IN (E4M3: codes come; else A is quantised inside), OUT, A_SCALE, W_SCALE, W_GRAN, BIAS, POW2, PROPAGATE, PDL,
 * VEC, BM (tokens of a tile: the n of the wgmma), DEPTH (K groups of a stage), WARPGROUPS.
 *
 * D^T = W . A^T: 64 rows of W fill the m side of the wgmma, the tokens its n side. The CTAs of a cluster share a tile's
 * K, and the warpgroups of a CTA share the CTA's: source i of all takes the groups [i G / sources, (i + 1) G / sources).
 * A producer warp streams W (and codes) through one ring a warpgroup; each source promotes its groups in ascending
 * order; then the sources' sums go, as they lie in registers, to the CTA that owns those rows, which adds them in source
 * order. grid.x counts the CTAs of all clusters, which stride over the tiles of W; grid.y the tiles of tokens.
 *
 * Order of the arithmetic: a source's total = fma(part, RN(sa * sw), total) over its groups, ascending; the totals added
 * from source 0 on; at the end RN(sum + bias), rounded once to OUT. None of it depends on M, BM or DEPTH.
 *
 * Shared memory, from a base at a multiple of 1024 (runtime/dispatch/fp8_swap_ab.c counts the same):
 * rings; A's codes where they are made inside; exchange; scales of A; scales of W, twice; barriers.
 */
#include "fp8_common.cuh"

constexpr bool FUSED = IN != DTYPE_E4M3;
constexpr int IN_BYTES = dtype_bytes(IN), OUT_BYTES = dtype_bytes(OUT);
constexpr int TILE_ROWS = 64;
constexpr int TOKEN_BLOCKS = BM / 8;
constexpr int MATH_WARPS = 4 * WARPGROUPS, MATH_THREADS = 32 * MATH_WARPS, THREADS = MATH_THREADS + 32;
constexpr int W_BYTES = TILE_ROWS * GROUP, A_BYTES = BM * GROUP;
constexpr int STAGE_BYTES = DEPTH * (W_BYTES + (FUSED ? 0 : A_BYTES));
constexpr int STAGE_COST = STAGE_BYTES + 16; /* with its two barriers */
constexpr int ROW_SCALES = W_GRAN == GRAN_ROW ? TILE_ROWS : 1;
constexpr int EXCHANGE_BYTES = WARPGROUPS * TILE_ROWS * BM * 4; /* what one CTA receives, whatever the cluster */
constexpr int RESIDENT = WARPGROUPS == 1 && BM <= 32 ? 3 : 2; /* CTAs of an SM that registers must leave room for */
constexpr int BARRIER_MATH = 1, BARRIER_ALL = 2; /* named barriers; 0 is __syncthreads */
constexpr bool LATE_TRIGGER = BM > 32; /* dependents that come early take slots that this kernel's own CTAs need */

static_assert(A_BYTES % 1024 == 0, "a swizzle atom is 1024 bytes");
static_assert(!FUSED || A_SCALE == SCALE_FP32, "scales made inside are fp32");

/* ---- barriers, copies, clusters ---- */

CBN_INLINE u32 shared_address(const void *pointer)
{
    return (u32)__cvta_generic_to_shared(pointer);
}

CBN_INLINE void barrier_init(u32 barrier, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

CBN_INLINE void barrier_expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

CBN_INLINE void barrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

CBN_INLINE void barrier_wait(u32 barrier, u32 parity)
{
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

/* For what other CTAs of the cluster sent. */
CBN_INLINE void barrier_wait_cluster(u32 barrier, u32 parity)
{
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

CBN_INLINE void barrier_arrive_remote(u32 barrier)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

CBN_INLINE void math_sync()
{
    asm volatile("bar.sync %0, %1;" ::"n"(BARRIER_MATH), "n"(MATH_THREADS) : "memory");
}

/* The same place in the shared memory of another CTA of the cluster. */
CBN_INLINE u32 address_in(u32 address, u32 rank)
{
    u32 remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    return remote;
}

CBN_INLINE void store_remote(u32 address, float first, float second, u32 barrier)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(address),
                 "f"(first), "f"(second), "r"(barrier)
                 : "memory");
}

CBN_INLINE void prefetch_map(const tensor_map &map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/* Weights pass once; tokens are read by every tile. */
CBN_INLINE u64 policy_evict_first()
{
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

CBN_INLINE u64 policy_evict_last()
{
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

CBN_INLINE void copy_groups(u32 to, const tensor_map &map, int row, int group, u32 barrier, u64 policy)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
                 "[%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
                 "l"(&map), "r"(0), "r"(row), "r"(group), "r"(barrier), "l"(policy)
                 : "memory");
}

CBN_INLINE void copy_group(u32 to, const tensor_map &map, int row, int group, u32 barrier, u64 policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
                 "[%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(&map), "r"(group * GROUP), "r"(row), "r"(barrier), "l"(policy)
                 : "memory");
}

/* Four bytes, or zeros where there are none. */
CBN_INLINE void copy_word(u32 to, u64 from, bool present)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(present ? 4 : 0) : "memory");
}

CBN_INLINE void copy_words_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* ---- the MMA ---- */

#define CBN_TEXT_OF(value) #value
#define CBN_TEXT(value) CBN_TEXT_OF(value)
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#if BM == 8
#define D_TEXT "{%0, %1, %2, %3}, %4, %5"
#define D_LIST D4(0)
#define D_PREDICATE "%6"
#elif BM == 16
#define D_TEXT "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9"
#define D_LIST D4(0), D4(4)
#define D_PREDICATE "%10"
#elif BM == 24
#define D_TEXT "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11}, %12, %13"
#define D_LIST D4(0), D4(4), D4(8)
#define D_PREDICATE "%14"
#elif BM == 32
#define D_TEXT "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17"
#define D_LIST D4(0), D4(4), D4(8), D4(12)
#define D_PREDICATE "%18"
#elif BM == 48
#define D_TEXT                                                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23}, " \
    "%24, %25"
#define D_LIST D4(0), D4(4), D4(8), D4(12), D4(16), D4(20)
#define D_PREDICATE "%26"
#elif BM == 64
#define D_TEXT                                                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "  \
    "%24, %25, %26, %27, %28, %29, %30, %31}, %32, %33"
#define D_LIST D4(0), D4(4), D4(8), D4(12), D4(16), D4(20), D4(24), D4(28)
#define D_PREDICATE "%34"
#endif

typedef float accumulators[BM / 2]; /* of a lane: per block of 8 tokens, rows g and g + 8 by tokens 2 t and 2 t + 1 */

/* d = W . A^T (+ d) over 32 of K. */
CBN_INLINE void multiply(accumulators &d, u64 w, u64 a, int accumulate)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " D_PREDICATE ", 0; wgmma.mma_async.sync.aligned.m64n" CBN_TEXT(
                     BM) "k32.f32.e4m3.e4m3 " D_TEXT ", p, 1, 1; }"
                 : D_LIST
                 : "l"(w), "l"(a), "r"(accumulate));
}

CBN_INLINE void multiply_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

CBN_INLINE void multiply_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Until all but the `left` youngest groups are done; left is a constant once unrolled. */
CBN_INLINE void multiply_wait_but(int left)
{
    if (left == 0)
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    else if (left == 1)
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    else if (left == 2)
        asm volatile("wgmma.wait_group.sync.aligned 2;" ::: "memory");
    else
        asm volatile("wgmma.wait_group.sync.aligned 3;" ::: "memory");
}

/* The compiler must not move what reads the registers ahead of the wait. */
CBN_INLINE void multiply_settle(accumulators &d)
{
#pragma unroll
    for (int i = 0; i < BM / 2; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

/* Rows of 128 bytes, swizzled in atoms of 8 rows: 1024 bytes from atom to atom. */
CBN_INLINE u64 descriptor_of(u32 address)
{
    return (u64)((address & 0x3FFFFu) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

/* ---- who does what ---- */

/* Groups of K: [first, first + count). */
struct share {
    int first, count;
};

struct layout {
    u32 rings, codes, exchange, a_scales, w_scales, barriers;
    int w_scales_bytes; /* of one of the two buffers */
};

struct job {
    int rank, split;     /* this CTA in its cluster */
    int groups, whole;   /* of K; those that are not cut off */
    int first_tile, tiles, tile_step;
    int rounds;          /* tiles of this CTA */
    int m0, rows, valid; /* tokens of the tile: first, that exist, that are valid (after the wait) */
    share cta;
    int stages; /* of one warpgroup */
    layout at;
};

CBN_INLINE int fills_of(int count)
{
    return (count + DEPTH - 1) / DEPTH;
}

/* Cluster sizes are powers of two. */
CBN_INLINE share share_of(int groups, int source, int sources)
{
    int shift = 31 - __clz(sources);
    int first = (int)((i64)source * groups >> shift);
    return {first, (int)((i64)(source + 1) * groups >> shift) - first};
}

CBN_INLINE share share_of_warpgroup(const job &j, int warpgroup)
{
    return share_of(j.groups, j.rank * WARPGROUPS + warpgroup, j.split * WARPGROUPS);
}

CBN_INLINE job job_of(const gemm_args &p, u32 base)
{
    job j;
    u32 rank, split, dynamic_bytes;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(split));
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic_bytes));
    int shift = 31 - __clz((int)split);
    j.rank = (int)rank;
    j.split = (int)split;
    j.groups = (int)((p.k + GROUP - 1) / GROUP);
    j.whole = (int)(p.k / GROUP);
    j.cta = share_of(j.groups, j.rank, j.split);
    j.tiles = (int)((p.n + TILE_ROWS - 1) / TILE_ROWS);
    j.first_tile = (int)(blockIdx.x >> shift);
    j.tile_step = (int)(gridDim.x >> shift);
    j.rounds = (j.tiles - j.first_tile + j.tile_step - 1) / j.tile_step;
    j.m0 = (int)blockIdx.y * BM;
    j.rows = span_count(j.m0, p.m, BM);

    int slice = (j.groups + j.split - 1) >> shift;
    int codes_bytes = FUSED ? (slice + 2 * DEPTH - 1) / DEPTH * DEPTH * A_BYTES : 0;
    int exchange_bytes = j.split * WARPGROUPS > 1 ? EXCHANGE_BYTES : 0;
    int a_scales_bytes = (slice + 4) * BM * 4;
    j.at.w_scales_bytes = (slice + 4) * ROW_SCALES * 4;
    int fixed = 1024 + codes_bytes + exchange_bytes + a_scales_bytes + 2 * j.at.w_scales_bytes + 32 + 64;
    j.stages = ((int)dynamic_bytes - fixed) / (WARPGROUPS * STAGE_COST);
    j.at.rings = base;
    j.at.codes = base + WARPGROUPS * j.stages * STAGE_BYTES;
    j.at.exchange = j.at.codes + codes_bytes;
    j.at.a_scales = j.at.exchange + exchange_bytes;
    j.at.w_scales = j.at.a_scales + a_scales_bytes;
    j.at.barriers = (j.at.w_scales + 2 * j.at.w_scales_bytes + 15) & ~15u;
    return j;
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

CBN_INLINE u32 stage_of(const job &j, int warpgroup, int stage)
{
    return j.at.rings + (u32)(warpgroup * j.stages + stage) * STAGE_BYTES;
}

CBN_INLINE u32 full_barrier(const job &j, int warpgroup, int stage)
{
    return j.at.barriers + 8 * (u32)(warpgroup * j.stages + stage);
}

CBN_INLINE u32 empty_barrier(const job &j, int warpgroup, int stage)
{
    return full_barrier(j, WARPGROUPS + warpgroup, stage);
}

CBN_INLINE u32 received_barrier(const job &j)
{
    return full_barrier(j, 2 * WARPGROUPS, 0);
}

CBN_INLINE u32 drained_barrier(const job &j)
{
    return received_barrier(j) + 8;
}

CBN_INLINE bool early(const swap_ab_args &p)
{
    return PDL && p.fetch_early != 0;
}

/* ---- copies of W and of codes ---- */

/* Boxes of DEPTH groups where all of them are whole and of this share, else group by group. */
CBN_INLINE void copy_share(u32 to, const tensor_map &deep, const tensor_map &single, int row, int group, int count,
                           int whole, int group_bytes, u32 barrier, u64 policy)
{
    if (count >= DEPTH && group + DEPTH <= whole) {
        copy_groups(to, deep, row, group, barrier, policy);
        return;
    }
    for (int i = 0; i < count && i < DEPTH; i++)
        copy_group(to + i * group_bytes, single, row, group + i, barrier, policy);
}

CBN_INLINE void fill_weights(const swap_ab_args &p, const job &j, const share &s, int warpgroup, int stage, int tile,
                             int fill, u64 policy)
{
    int count = s.count - fill * DEPTH;
    u32 barrier = full_barrier(j, warpgroup, stage);
    barrier_expect(barrier, (count < DEPTH ? count : DEPTH) * (W_BYTES + (FUSED ? 0 : A_BYTES)));
    copy_share(stage_of(j, warpgroup, stage), p.w, p.w_tail, tile * TILE_ROWS, s.first + fill * DEPTH, count, j.whole,
               W_BYTES, barrier, policy);
}

CBN_INLINE void fill_codes(const swap_ab_args &p, const job &j, const share &s, int warpgroup, int stage, int fill,
                           u64 policy)
{
    copy_share(stage_of(j, warpgroup, stage) + DEPTH * W_BYTES, p.a, p.a_tail, j.m0, s.first + fill * DEPTH,
               s.count - fill * DEPTH, j.whole, A_BYTES, full_barrier(j, warpgroup, stage), policy);
}

/* A warpgroup's ring as the producer sees it. */
struct ring {
    share s;
    int fills; /* of a tile */
    int stage;
    u32 parity; /* of the phase of the empty barrier that ends before the stage is filled again */
};

/*
 * Steps go through the fills of a tile, then on to the next tile; a step fills every ring that has a fill of that number.
 * So no ring waits for a stage while another one lacks a fill of an earlier tile, which would never come.
 */
struct position {
    int tile, fill, fills; /* fills: the most that a ring has in a tile */
};

/* Steps that find every stage free. */
CBN_INLINE int first_steps(const job &j, int most_fills)
{
    int all = most_fills * j.rounds;
    return all < j.stages ? all : j.stages;
}

CBN_INLINE int most_fills(const job &j)
{
    int most = 0;
#pragma unroll
    for (int w = 0; w < WARPGROUPS; w++) {
        int fills = fills_of(share_of_warpgroup(j, w).count);
        most = fills > most ? fills : most;
    }
    return most;
}

CBN_INLINE void init_barriers(const job &j)
{
    for (int i = 0; i < WARPGROUPS * j.stages; i++) {
        barrier_init(full_barrier(j, 0, i), 1);
        barrier_init(empty_barrier(j, 0, i), 4);
    }
    barrier_init(received_barrier(j), 1);
    barrier_init(drained_barrier(j), j.split);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    barrier_expect(received_barrier(j), EXCHANGE_BYTES);
}

/* FIRST: into free stages, and weights alone; codes of these come from the math warps, once they may be read. */
template <bool FIRST>
CBN_INLINE void produce(const swap_ab_args &p, const job &j, ring (&rings)[WARPGROUPS], position &at, int steps)
{
    u64 policy = policy_evict_first(), policy_codes = policy_evict_last();
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
#pragma unroll
        for (int w = 0; w < WARPGROUPS; w++) {
            ring &r = rings[w];
            if (at.fill >= r.fills)
                continue;
            if (!FIRST)
                barrier_wait(empty_barrier(j, w, r.stage), r.parity);
            fill_weights(p, j, r.s, w, r.stage, at.tile, at.fill, policy);
            if (!FIRST && !FUSED)
                fill_codes(p, j, r.s, w, r.stage, at.fill, policy_codes);
            if (++r.stage == j.stages) {
                r.stage = 0;
                r.parity ^= 1;
            }
        }
        if (++at.fill == at.fills) {
            at.fill = 0;
            at.tile += j.tile_step;
        }
    }
}

CBN_INLINE void run_producer(const swap_ab_args &p, const job &j)
{
    ring rings[WARPGROUPS];
    position at = {j.first_tile, 0, most_fills(j)};
    int steps = first_steps(j, at.fills);
#pragma unroll
    for (int w = 0; w < WARPGROUPS; w++) {
        share s = share_of_warpgroup(j, w);
        rings[w] = {s, fills_of(s.count), 0, 1};
    }
    if (threadIdx.x % 32 == 0) {
        if (!LATE_TRIGGER)
            pdl_launch_dependents();
        prefetch_map(p.w);
        prefetch_map(p.w_tail);
        init_barriers(j);
    }
    __syncwarp();
    asm volatile("bar.arrive %0, %1;" ::"n"(BARRIER_ALL), "n"(THREADS) : "memory");
    cluster_arrive(j);
    if (!early(p)) {
        cluster_wait(j);
        pdl_wait();
    }
    if (threadIdx.x % 32 == 0)
        produce<true>(p, j, rings, at, steps);
    __syncwarp();
    if (early(p)) {
        cluster_wait(j);
        pdl_wait();
    }
    if (threadIdx.x % 32 == 0) {
        produce<false>(p, j, rings, at, at.fills * j.rounds - steps);
        if (LATE_TRIGGER)
            pdl_launch_dependents();
    }
}

/* ---- scales ---- */

/* Stored words that hold the CTA's groups: [first, first + count). */
template <int FORMAT> CBN_INLINE share words_of(const share &cta)
{
    if (FORMAT == SCALE_FP32)
        return cta;
    int first = cta.first / 4;
    return {first, cta.count ? (cta.first + cta.count - 1) / 4 - first + 1 : 0};
}

/* Where the word of a group lies, for the first of `columns` rows. */
template <int FORMAT> CBN_INLINE u32 words_at(u32 words, const share &cta, int group, int columns)
{
    int index = FORMAT == SCALE_FP32 ? group - cta.first : group / 4 - cta.first / 4;
    return words + 4 * (u32)(index * columns);
}

template <int FORMAT> CBN_INLINE float scale_of(u32 word, int group)
{
    return bits_float(FORMAT == SCALE_FP32 ? word : (word >> 8 * (group % 4) & 0xFFu) << 23);
}

CBN_INLINE u32 load_shared(u32 address)
{
    u32 word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
    return word;
}

/* Asynchronous; complete after copy_words_wait and a barrier. */
CBN_INLINE void copy_weight_scales(const gemm_args &p, const job &j, int tile, int buffer)
{
    share words = words_of<W_SCALE>(j.cta);
    u32 to = j.at.w_scales + (u32)(buffer * j.at.w_scales_bytes);
    i64 row = (i64)tile * TILE_ROWS / (W_GRAN == GRAN_ROW ? 1 : GROUP);
    for (int i = threadIdx.x; i < words.count * ROW_SCALES; i += MATH_THREADS) {
        int offset = i % ROW_SCALES;
        bool present = ROW_SCALES == 1 || row + offset < p.n;
        u64 from = p.w_scale + 4 * ((present ? row + offset : 0) * p.sw_row + (words.first + i / ROW_SCALES) * p.sw_col);
        copy_word(to + 4 * i, from, present);
    }
    __syncwarp(); /* wgmma follows */
}

CBN_INLINE void copy_token_scales(const gemm_args &p, const job &j)
{
    share words = words_of<A_SCALE>(j.cta);
    for (int i = threadIdx.x; i < words.count * BM; i += MATH_THREADS) {
        int row = i % BM;
        bool present = row < j.valid;
        u64 from = p.a_scale + 4 * ((present ? j.m0 + row : 0) * p.sa_row + (words.first + i / BM) * p.sa_col);
        copy_word(j.at.a_scales + 4 * i, from, present);
    }
    __syncwarp();
}

/* ---- tokens ---- */

/* The first codes of each ring, issued by many warps: one thread issues a tensor copy only every hundred cycles. */
CBN_INLINE void copy_first_codes(const swap_ab_args &p, const job &j, int warp)
{
    if (threadIdx.x % 32 == 0) {
        u64 policy = policy_evict_last();
        int most = most_fills(j), steps = first_steps(j, most);
#pragma unroll
        for (int w = 0; w < WARPGROUPS; w++) {
            share s = share_of_warpgroup(j, w);
            int fills = fills_of(s.count), filled = fills == most ? steps : steps - steps / most; /* shares differ by one */
            for (int i = warp; i < filled; i += MATH_WARPS)
                fill_codes(p, j, s, w, i, i % fills, policy);
        }
    }
    __syncwarp();
}

constexpr int QUANTIZE_AHEAD = IN == DTYPE_FP32 ? 2 : 4; /* loads in flight of a lane */

struct quantize_task {
    int row, group; /* in the tile, in the CTA's share */
    bool present;
};

CBN_INLINE quantize_task task_at(const job &j, int index)
{
    int row = index / j.cta.count;
    return {row, index - row * j.cta.count, index < j.valid * j.cta.count};
}

/* The CTA's share of the tokens, quantised into swizzled rows of codes; eight lanes a group. */
CBN_INLINE void quantize_tokens(const gemm_args &p, const job &j, int warp)
{
    int lane = threadIdx.x % GROUP_LANES, slot = warp * 4 + threadIdx.x % 32 / GROUP_LANES;
    int tasks = j.valid * j.cta.count;
    for (int base = 0; base < tasks; base += QUANTIZE_AHEAD * MATH_WARPS * 4) {
        raw16<FUSED ? IN : DTYPE_BF16> raw[QUANTIZE_AHEAD];
#pragma unroll
        for (int i = 0; i < QUANTIZE_AHEAD; i++) {
            quantize_task task = task_at(j, base + i * MATH_WARPS * 4 + slot);
            i64 element = (i64)(j.cta.first + task.group) * GROUP + lane * LANE_ELEMENTS;
            load_raw(raw[i], p.a + ((j.m0 + task.row) * p.lda + element) * IN_BYTES,
                     task.present ? span_count(element, p.k, LANE_ELEMENTS) : 0);
        }
#pragma unroll
        for (int i = 0; i < QUANTIZE_AHEAD; i++) {
            quantize_task task = task_at(j, base + i * MATH_WARPS * 4 + slot);
            u32 codes[4];
            group_scale scale = quantize_lane<FUSED ? IN : DTYPE_BF16, POW2 != 0, PROPAGATE != 0>(raw[i], codes);
            if (!task.present)
                continue;
            u32 to = j.at.codes + (u32)(task.group * A_BYTES + task.row * GROUP + ((lane ^ (task.row & 7)) << 4));
            asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(codes[0]), "r"(codes[1]),
                         "r"(codes[2]), "r"(codes[3])
                         : "memory");
            if (lane == 0)
                asm volatile("st.shared.f32 [%0], %1;" ::"r"(j.at.a_scales + 4 * (u32)(task.group * BM + task.row)),
                             "f"(scale.scale)
                             : "memory");
        }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- a tile ---- */

CBN_INLINE void promote(accumulators &total, const accumulators &part, const job &j, int group, u32 w_scales)
{
    int lane = threadIdx.x % 32;
    u32 sw_at = words_at<W_SCALE>(w_scales, j.cta, group, ROW_SCALES);
    u32 sa_at = words_at<A_SCALE>(j.at.a_scales, j.cta, group, BM) + 8 * (lane % 4);
    if (ROW_SCALES > 1)
        sw_at += 4 * (threadIdx.x / 32 % 4 * 16 + lane / 4);
    float upper = scale_of<W_SCALE>(load_shared(sw_at), group);
    float lower = ROW_SCALES > 1 ? scale_of<W_SCALE>(load_shared(sw_at + 32), group) : upper;
#pragma unroll
    for (int b = 0; b < TOKEN_BLOCKS; b++) {
        u32 words[2];
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "r"(sa_at + 32 * b));
#pragma unroll
        for (int t = 0; t < 2; t++) {
            float sa = scale_of<A_SCALE>(words[t], group);
            total[4 * b + t] = fma_rn(part[4 * b + t], mul_rn(sa, upper), total[4 * b + t]);
            total[4 * b + 2 + t] = fma_rn(part[4 * b + 2 + t], mul_rn(sa, lower), total[4 * b + 2 + t]);
        }
    }
}

/* A warpgroup's place in its ring. */
struct reader {
    int stage;
    u32 parity;
};

/* All of the warpgroup's groups of one tile. What a last, partial stage holds besides is multiplied and dropped. */
CBN_INLINE void run_share(accumulators &total, const job &j, int warpgroup, reader &r, u32 w_scales)
{
    share s = share_of_warpgroup(j, warpgroup);
    bool elected = threadIdx.x % 32 == 0;
#pragma unroll 1
    for (int done = 0; done < s.count; done += DEPTH) {
        accumulators part[DEPTH];
        u32 stage = stage_of(j, warpgroup, r.stage);
        u32 codes = FUSED ? j.at.codes + (u32)((s.first + done - j.cta.first) * A_BYTES) : stage + DEPTH * W_BYTES;
        u64 w = descriptor_of(stage), a = descriptor_of(codes);
        barrier_wait(full_barrier(j, warpgroup, r.stage), r.parity);
        multiply_fence();
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
#pragma unroll
            for (int q = 0; q < 4; q++) /* 32 of K: 32 bytes further */
                multiply(part[i], w + i * (W_BYTES >> 4) + 2 * q, a + i * (A_BYTES >> 4) + 2 * q, q > 0);
            multiply_commit();
        }
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            multiply_wait_but(DEPTH - 1 - i);
            multiply_settle(part[i]);
            if (i == DEPTH - 1 && elected)
                barrier_arrive(empty_barrier(j, warpgroup, r.stage));
            if (i == 0 || done + i < s.count)
                promote(total, part[i], j, s.first + done + i, w_scales);
        }
        if (++r.stage == j.stages) {
            r.stage = 0;
            r.parity ^= 1;
        }
    }
}

static_assert(DEPTH <= 4, "multiply_wait_but leaves three at most");

/* ---- the output ---- */

CBN_INLINE float biased(const gemm_args &p, i64 column, float value)
{
    if (BIAS == BIAS_NONE)
        return value;
    constexpr int DTYPE = BIAS == BIAS_FP32 ? DTYPE_FP32 : OUT;
    return value + element_float<DTYPE>(load_element<dtype_bytes(DTYPE)>(p.bias + column * dtype_bytes(DTYPE)));
}

/* Two neighbouring columns of D, the first even, of one token. N is even where rows of D are aligned. */
CBN_INLINE void store_columns(const gemm_args &p, const job &j, int token, i64 column, float first, float second)
{
    if (token >= j.valid || column >= p.n)
        return;
    u64 address = p.d + ((j.m0 + token) * p.ldd + column) * OUT_BYTES;
    u32 low = output_bits<OUT>(biased(p, column, first)), high = output_bits<OUT>(biased(p, column + 1, second));
    if (OUT_BYTES == 2)
        store_u32(address, low | high << 16);
    else
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(low), "r"(high) : "memory");
}

/* One source: fragments go straight to D. Lanes of even rows take the upper half of a block, odd ones the lower. */
CBN_INLINE void store_fragments(const gemm_args &p, const job &j, const accumulators &total, i64 column)
{
    int lane = threadIdx.x % 32, row = lane / 4;
    bool odd = row & 1;
    column += threadIdx.x / 32 % 4 * 16 + (odd ? row + 7 : row);
#pragma unroll
    for (int b = 0; b < TOKEN_BLOCKS; b++) {
#pragma unroll
        for (int t = 0; t < 2; t++) {
            float upper = total[4 * b + t], lower = total[4 * b + 2 + t];
            float other = __shfl_xor_sync(0xFFFFFFFFu, odd ? upper : lower, 4);
            store_columns(p, j, 8 * b + lane % 4 * 2 + t, column, odd ? other : upper, odd ? lower : other);
        }
    }
}

CBN_INLINE void store_shared(u32 address, float first, float second)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(first), "f"(second) : "memory");
}

/*
 * Rows by eight: half h of warp w's fragments is eighth 2 w + h of the tile, which CTA (2 w + h) split / 8 owns. A CTA
 * that is not in a cluster has no remote stores.
 */
CBN_INLINE void send_fragments(const job &j, const accumulators &total, int warpgroup)
{
    int lane = threadIdx.x % 32, owned = 8 / j.split, source = j.rank * WARPGROUPS + warpgroup;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int eighth = threadIdx.x / 32 % 4 * 2 + h, owner = eighth / owned;
        u32 to = j.at.exchange + (u32)((source * owned + eighth % owned) * TOKEN_BLOCKS * 256 + lane * 8);
        if (j.split == 1) {
#pragma unroll
            for (int b = 0; b < TOKEN_BLOCKS; b++)
                store_shared(to + b * 256, total[4 * b + 2 * h], total[4 * b + 2 * h + 1]);
            continue;
        }
        u32 barrier = address_in(received_barrier(j), owner);
        to = address_in(to, owner);
#pragma unroll
        for (int b = 0; b < TOKEN_BLOCKS; b++)
            store_remote(to + b * 256, total[4 * b + 2 * h], total[4 * b + 2 * h + 1], barrier);
    }
}

template <int SOURCES> CBN_INLINE void add_sources(u32 from, int step, float (&sum)[2])
{
    float value[SOURCES][2];
#pragma unroll
    for (int i = 0; i < SOURCES; i++)
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(value[i][0]), "=f"(value[i][1]) : "r"(from + i * step));
    sum[0] = value[0][0];
    sum[1] = value[0][1];
#pragma unroll
    for (int i = 1; i < SOURCES; i++) {
        asm("add.rn.f32 %0, %0, %1;" : "+f"(sum[0]) : "f"(value[i][0]));
        asm("add.rn.f32 %0, %0, %1;" : "+f"(sum[1]) : "f"(value[i][1]));
    }
}

/* What was received, added in source order: a warp takes a block of eight rows by eight tokens at a time. */
CBN_INLINE void store_received(const gemm_args &p, const job &j, i64 column)
{
    int lane = threadIdx.x % 32, row = lane / 4, owned = 8 / j.split, sources = j.split * WARPGROUPS;
    bool odd = row & 1;
    for (int block = threadIdx.x / 32; block < owned * TOKEN_BLOCKS; block += MATH_WARPS) {
        u32 from = j.at.exchange + (u32)(block * 256 + lane * 8);
        int step = owned * TOKEN_BLOCKS * 256;
        float sum[2];
        if (sources == 2)
            add_sources<2>(from, step, sum);
        else if (sources == 4)
            add_sources<4>(from, step, sum);
        else if (sources == 8)
            add_sources<8>(from, step, sum);
        else
            add_sources<16>(from, step, sum);
        float other = __shfl_xor_sync(0xFFFFFFFFu, odd ? sum[0] : sum[1], 4);
        int eighth = j.rank * owned + block / TOKEN_BLOCKS, token = block % TOKEN_BLOCKS * 8 + lane % 4 * 2 + odd;
        store_columns(p, j, token, column + eighth * 8 + (row & ~1), odd ? other : sum[0], odd ? sum[1] : other);
    }
}

/* Another round's sums may come as soon as every CTA of the cluster knows that this CTA has read these. */
CBN_INLINE void release_exchange(const job &j)
{
    math_sync();
    if (j.split > 1 && (int)threadIdx.x < j.split)
        barrier_arrive_remote(address_in(drained_barrier(j), threadIdx.x));
    __syncwarp();
}

CBN_INLINE void exchange(const gemm_args &p, const job &j, const accumulators &total, int warpgroup, i64 column,
                         int round)
{
    bool last = round + 1 == j.rounds;
    if (round > 0 && j.split > 1)
        barrier_wait_cluster(drained_barrier(j), (round - 1) & 1);
    send_fragments(j, total, warpgroup);
    if (j.split > 1)
        barrier_wait_cluster(received_barrier(j), round & 1);
    else
        math_sync();
    if (!last && j.split > 1 && threadIdx.x == 0)
        barrier_expect(received_barrier(j), EXCHANGE_BYTES);
    __syncwarp();
    store_received(p, j, column);
    if (!last)
        release_exchange(j);
}

CBN_INLINE void run_tiles(const swap_ab_args &p, const job &j, int warpgroup)
{
    reader r = {0, 0};
#pragma unroll 1
    for (int round = 0; round < j.rounds; round++) {
        int tile = j.first_tile + round * j.tile_step, buffer = round & 1;
        accumulators total = {};
        if (round + 1 < j.rounds)
            copy_weight_scales(p.gemm, j, tile + j.tile_step, buffer ^ 1);
        run_share(total, j, warpgroup, r, j.at.w_scales + (u32)(buffer * j.at.w_scales_bytes));
        if (j.split * WARPGROUPS == 1)
            store_fragments(p.gemm, j, total, (i64)tile * TILE_ROWS);
        else
            exchange(p.gemm, j, total, warpgroup, (i64)tile * TILE_ROWS, round);
        if (round + 1 < j.rounds) {
            copy_words_wait();
            math_sync();
        }
    }
}

CBN_INLINE void run_math(const swap_ab_args &p, job &j)
{
    int warp = threadIdx.x / 32;
    cluster_arrive(j);
    if (!FUSED && threadIdx.x == 0) {
        prefetch_map(p.a);
        prefetch_map(p.a_tail);
    }
    __syncwarp();
    if (early(p))
        copy_weight_scales(p.gemm, j, j.first_tile, 0);
    asm volatile("bar.sync %0, %1;" ::"n"(BARRIER_ALL), "n"(THREADS) : "memory");
    cluster_wait(j);
    pdl_wait();
    j.valid = span_count(j.m0, valid_rows(p.gemm.m_valid, p.gemm.m), BM);
    if (!FUSED) {
        copy_first_codes(p, j, warp);
        copy_token_scales(p.gemm, j);
    }
    if (!early(p))
        copy_weight_scales(p.gemm, j, j.first_tile, 0);
    if (FUSED)
        quantize_tokens(p.gemm, j, warp);
    copy_words_wait();
    math_sync();
    run_tiles(p, j, warp / 4);
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    cbn_fp8_swap_ab(const __grid_constant__ swap_ab_args p)
{
    extern __shared__ u8 memory[];
    job j = job_of(p.gemm, (shared_address(memory) + 1023) & ~1023u);
    /* The same for every lane, and the compiler shall know it: wgmma wants whole warps. */
    int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
    if (warp == MATH_WARPS)
        run_producer(p, j);
    else
        run_math(p, j);
}
