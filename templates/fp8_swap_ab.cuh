/*
 * fp8_swap_ab: D[M,N] = A[M,K] . W[N,K]^T (+ bias) for few tokens on sm_90a, promoted to fp32 every 128 of K.
 *
 * Macros: IN (E4M3: codes come; else A is quantised inside), OUT, A_SCALE, W_SCALE, W_GRAN, BIAS, POW2, PROPAGATE, PDL,
 * VEC, BM (tokens of a tile: the n of the wgmma), DEEP (stages of twice as many K groups).
 *
 * D^T = W . A^T: 64 rows of W fill the m side of the wgmma, the tokens its n side. The CTAs of a cluster share a tile's
 * K: CTA i of `split` takes the groups [i G / split, (i + 1) G / split). A producer warp streams W (and codes) through a
 * ring; where codes are made inside, helper warps make them beside the math warps. A warpgroup multiplies and promotes the
 * CTA's groups in ascending order; then the CTAs' sums go, as they lie in registers, to the CTA that owns those rows,
 * which adds them in the order of the cluster. grid.x counts the CTAs of all clusters, which stride over the tiles of W;
 * grid.y the tiles of tokens.
 *
 * Order of the arithmetic: a CTA's total = fma(part, RN(sa * sw), total) over its groups, ascending; the totals added
 * from CTA 0 on; at the end RN(sum + bias), rounded once to OUT. None of it depends on M, BM or DEEP.
 *
 * Shared memory, from a base at a multiple of 1024 (runtime/dispatch/fp8_swap_ab.c counts the same):
 * ring; A's codes where they are made inside; exchange, or output where K is not cut; scales of A; scales of W, twice;
 * barriers.
 */
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

/* ---- the producer warp ---- */

/* One box where the stage holds STAGE_GROUPS whole groups, else group by group. */
CBN_INLINE void copy_stage(u32 to, const tensor_map &deep, const tensor_map &single, int row, const job &j, int fill,
                           int group_bytes, u32 barrier, u64 policy)
{
    int group = j.groups.first + fill * STAGE_GROUPS, count = j.groups.count - fill * STAGE_GROUPS;
    if (count >= STAGE_GROUPS && group + STAGE_GROUPS <= j.whole) {
        copy_groups(to, deep, row, group, barrier, policy);
        return;
    }
    for (int i = 0; i < count && i < STAGE_GROUPS; i++)
        copy_group(to + i * group_bytes, single, row, group + i, barrier, policy);
}

CBN_INLINE void fill_weights(const swap_ab_args &p, const job &j, int stage, int tile, int fill, u64 policy)
{
    int count = j.groups.count - fill * STAGE_GROUPS;
    barrier_expect(full_barrier(j, stage), (count < STAGE_GROUPS ? count : STAGE_GROUPS) * (W_BYTES + (FUSED ? 0 : A_BYTES)));
    copy_stage(stage_at(j, stage), p.w, p.w_tail, tile * TILE_ROWS, j, fill, W_BYTES, full_barrier(j, stage), policy);
}

CBN_INLINE void fill_codes(const swap_ab_args &p, const job &j, int stage, int fill, u64 policy)
{
    copy_stage(stage_at(j, stage) + STAGE_GROUPS * W_BYTES, p.a, p.a_tail, j.m0, j, fill, A_BYTES, full_barrier(j, stage),
               policy);
}

CBN_INLINE void init_barriers(const job &j)
{
    for (int i = 0; i < j.stages; i++) {
        barrier_init(full_barrier(j, i), 1);
        barrier_init(empty_barrier(j, i), MATH_WARPS);
    }
    barrier_init(received_barrier(j), 1);
    barrier_init(drained_barrier(j), j.split);
    barrier_init(scales_barrier(j), 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    barrier_expect(received_barrier(j), EXCHANGE_BYTES);
}

/* Fills that find every stage free. */
CBN_INLINE int first_fills(const job &j)
{
    int all = j.fills * j.rounds;
    return all < j.stages ? all : j.stages;
}

/* The next fill, and where it goes; parity is that of the phase in which the stage was emptied. */
struct production {
    cursor at;
    int tile, fill;
};

/* FIRST: into free stages, and weights alone; their codes come from the math warps, once they may be read. */
template <bool FIRST>
CBN_INLINE void produce(const swap_ab_args &p, const job &j, production &next, int count)
{
    u64 policy = policy_evict_first(), policy_codes = policy_evict_last();
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        if (!FIRST)
            barrier_wait(empty_barrier(j, next.at.stage), next.at.parity);
        fill_weights(p, j, next.at.stage, next.tile, next.fill, policy);
        if (!FIRST && !FUSED)
            fill_codes(p, j, next.at.stage, next.fill, policy_codes);
        advance(next.at, j);
        if (++next.fill == j.fills) {
            next.fill = 0;
            next.tile += j.tile_step;
        }
    }
}

CBN_INLINE void fetch_token_scales(const gemm_args &p, const job &j)
{
    share words = words_of<A_SCALE>(j.groups);
    u32 bytes = (u32)(words.count * j.pitch) * 4;
    if (!j.bulk || bytes == 0)
        return;
    barrier_expect(scales_barrier(j), bytes);
    copy_bytes(j.at.a_scales, p.a_scale + 4 * (i64)words.first * p.sa_col, bytes, scales_barrier(j));
}

CBN_INLINE void trigger_at(const swap_ab_args &p, u64 moment)
{
    if (p.trigger == moment)
        pdl_launch_dependents();
}

CBN_INLINE void wait_for_tokens(const swap_ab_args &p, const job &j, bool elected)
{
    cluster_wait(j);
    pdl_wait();
    if (elected) {
        trigger_at(p, TRIGGER_WAITED);
        fetch_token_scales(p.gemm, j);
    }
}

CBN_INLINE void run_producer(const swap_ab_args &p, const job &j)
{
    bool elected = threadIdx.x % 32 == 0;
    production next = {{0, 1}, j.first_tile, 0};
    int first = first_fills(j);
    if (elected) {
        trigger_at(p, TRIGGER_TOP);
        prefetch_map(p.w);
        prefetch_map(p.w_tail);
        init_barriers(j);
    }
    __syncwarp();
    asm volatile("bar.arrive %0, %1;" ::"n"(BARRIER_RING), "n"(RING_THREADS) : "memory");
    cluster_arrive(j);
    if (!early(p))
        wait_for_tokens(p, j, elected);
    if (elected)
        produce<true>(p, j, next, first);
    __syncwarp();
    if (early(p))
        wait_for_tokens(p, j, elected);
    if (elected) {
        produce<false>(p, j, next, j.fills * j.rounds - first);
        trigger_at(p, TRIGGER_LOADED);
    }
}

/* ---- scales and tokens, by the math warps ---- */

/* Where the words of a group lie in rows of `pitch`. */
template <int FORMAT> CBN_INLINE u32 words_at(u32 words, const job &j, int group, int pitch)
{
    int index = FORMAT == SCALE_FP32 ? group - j.groups.first : group / 4 - j.groups.first / 4;
    return words + 4 * (u32)(index * pitch);
}

template <int FORMAT> CBN_INLINE float scale_of(u32 word, int group)
{
    return bits_float(FORMAT == SCALE_FP32 ? word : (word >> 8 * (group % 4) & 0xFFu) << 23);
}

/* Asynchronous; complete after copy_words_wait and a barrier. */
CBN_INLINE void copy_weight_scales(const gemm_args &p, const job &j, int tile, int buffer)
{
    share words = words_of<W_SCALE>(j.groups);
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
    share words = words_of<A_SCALE>(j.groups);
    for (int i = threadIdx.x; i < words.count * BM; i += MATH_THREADS) {
        int row = i % BM;
        bool present = row < j.valid;
        u64 from = p.a_scale + 4 * ((present ? j.m0 + row : 0) * p.sa_row + (words.first + i / BM) * p.sa_col);
        copy_word(j.at.a_scales + 4 * i, from, present);
    }
    __syncwarp();
}

/* The codes of the first fills, issued by all warps: one thread issues a tensor copy only every hundred cycles. */
CBN_INLINE void copy_first_codes(const swap_ab_args &p, const job &j, int warp)
{
    if (threadIdx.x % 32 == 0) {
        u64 policy = policy_evict_last();
        int first = first_fills(j);
        for (int i = warp; i < first; i += MATH_WARPS)
            fill_codes(p, j, i, i % j.fills, policy);
    }
    __syncwarp();
}

constexpr int QUANTIZE_AHEAD = IN == DTYPE_FP32 ? 1 : 2; /* groups in flight of a lane */

struct quantize_task {
    int row, group; /* in the tile, in the CTA's share */
    bool present;
};

CBN_INLINE quantize_task task_at(const job &j, int index)
{
    int row = index / j.groups.count;
    return {row, index - row * j.groups.count, index < j.valid * j.groups.count};
}

/* The CTA's share of the tokens, quantised into swizzled rows of codes; eight lanes a group. */
CBN_INLINE void quantize_tokens(const gemm_args &p, const job &j, int warp)
{
    constexpr int STEP = QUANTIZE_WARPS * 4, DTYPE = FUSED ? IN : DTYPE_BF16;
    int lane = threadIdx.x % GROUP_LANES, slot = warp * 4 + threadIdx.x % 32 / GROUP_LANES;
    int tasks = j.valid * j.groups.count;
    for (int base = slot; base - slot % 4 < tasks; base += QUANTIZE_AHEAD * STEP) {
        raw16<DTYPE> raw[QUANTIZE_AHEAD];
#pragma unroll
        for (int i = 0; i < QUANTIZE_AHEAD; i++) {
            quantize_task task = task_at(j, base + i * STEP);
            i64 element = (i64)(j.groups.first + task.group) * GROUP + lane * LANE_ELEMENTS;
            load_raw(raw[i], p.a + ((j.m0 + task.row) * p.lda + element) * IN_BYTES,
                     task.present ? span_count(element, p.k, LANE_ELEMENTS) : 0);
        }
#pragma unroll
        for (int i = 0; i < QUANTIZE_AHEAD; i++) {
            if (base - slot % 4 + i * STEP >= tasks) /* for all of the warp's four slots */
                break;
            quantize_task task = task_at(j, base + i * STEP);
            u32 codes[4];
            group_scale scale = quantize_lane<DTYPE, POW2 != 0, PROPAGATE != 0>(raw[i], codes);
            if (!task.present)
                continue;
            store_shared_4(j.at.codes + (u32)(task.group * A_BYTES + task.row * GROUP + ((lane ^ (task.row & 7)) << 4)),
                           codes);
            if (lane == 0)
                store_shared(j.at.a_scales + 4 * (u32)(task.group * BM + task.row), float_bits(scale.scale));
        }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- a tile ---- */

typedef accumulators parts[STAGE_GROUPS];

/* What the parts of one group are multiplied by: per block of 8 tokens, tokens 2 t and 2 t + 1; rows g and g + 8. */
struct factors {
    float upper[BM / 4], lower[ROW_SCALES > 1 ? BM / 4 : 1];
};

CBN_INLINE factors factors_of(const job &j, int group, u32 w_scales)
{
    factors f;
    int lane = threadIdx.x % 32;
    u32 sw_at = words_at<W_SCALE>(w_scales, j, group, ROW_SCALES);
    u32 sa_at = words_at<A_SCALE>(j.at.a_scales, j, group, j.pitch) + 8 * (lane % 4);
    if (ROW_SCALES > 1)
        sw_at += 4 * (threadIdx.x / 32 % 4 * 16 + lane / 4);
    float upper = scale_of<W_SCALE>(load_shared(sw_at), group);
    float lower = ROW_SCALES > 1 ? scale_of<W_SCALE>(load_shared(sw_at + 32), group) : 0.0f;
#pragma unroll
    for (int b = 0; b < TOKEN_BLOCKS; b++) {
        u32 words[2];
        load_shared_2(sa_at + 32 * b, words);
#pragma unroll
        for (int t = 0; t < 2; t++) {
            f.upper[2 * b + t] = mul_rn(scale_of<A_SCALE>(words[t], group), upper);
            if (ROW_SCALES > 1)
                f.lower[(2 * b + t) % (sizeof(f.lower) / 4)] = mul_rn(scale_of<A_SCALE>(words[t], group), lower);
        }
    }
    return f;
}

CBN_INLINE void promote(accumulators &total, const accumulators &part, const factors &f)
{
#pragma unroll
    for (int i = 0; i < BM / 2; i++) {
        int token = i / 4 * 2 + i % 2;
        float factor = ROW_SCALES > 1 && i % 4 >= 2 ? f.lower[token % (sizeof(f.lower) / 4)] : f.upper[token];
        total[i] = fma_rn(part[i], factor, total[i]);
    }
}

/* The warpgroup's places: the next stage to multiply, and the next to give back. */
struct reader {
    cursor multiply, release;
};

/* Starts the products of a fill. */
CBN_INLINE void multiply_fill(parts &part, const job &j, reader &r, int fill)
{
    u32 stage = stage_at(j, r.multiply.stage);
    u32 codes = FUSED ? j.at.codes + (u32)(fill * STAGE_GROUPS) * A_BYTES : stage + STAGE_GROUPS * W_BYTES;
    u64 w = descriptor_of(stage), a = descriptor_of(codes);
    barrier_wait(full_barrier(j, r.multiply.stage), r.multiply.parity);
    advance(r.multiply, j);
    multiply_fence();
#pragma unroll
    for (int i = 0; i < STAGE_GROUPS; i++) {
#pragma unroll
        for (int q = 0; q < 4; q++) /* 32 of K: 32 bytes further */
            multiply(part[i], w + i * (W_BYTES >> 4) + 2 * q, a + i * (A_BYTES >> 4) + 2 * q, q > 0);
        multiply_commit();
    }
}

/* Waits for part I of a fill, adds it, and goes on to the next; a stage's last, partial part is multiplied and dropped. */
template <int YOUNGER, int I>
CBN_INLINE void promote_parts(accumulators &total, parts &part, const factors (&f)[STAGE_GROUPS], const job &j, reader &r,
                              int count)
{
    multiply_wait<YOUNGER + STAGE_GROUPS - 1 - I>();
    multiply_settle(part[I]);
    if (I == STAGE_GROUPS - 1) {
        if (threadIdx.x % 32 == 0)
            barrier_arrive(empty_barrier(j, r.release.stage));
        advance(r.release, j);
    }
    if (I == 0 || I < count)
        promote(total, part[I], f[I]);
    if constexpr (I + 1 < STAGE_GROUPS)
        promote_parts<YOUNGER, I + 1>(total, part, f, j, r, count);
}

/* YOUNGER groups are in flight behind the fill's. */
template <int YOUNGER>
CBN_INLINE void promote_fill(accumulators &total, parts &part, const job &j, reader &r, int fill, u32 w_scales)
{
    factors f[STAGE_GROUPS];
#pragma unroll
    for (int i = 0; i < STAGE_GROUPS; i++)
        f[i] = factors_of(j, j.groups.first + fill * STAGE_GROUPS + i, w_scales);
    promote_parts<YOUNGER, 0>(total, part, f, j, r, j.groups.count - fill * STAGE_GROUPS);
}

CBN_INLINE bool next_is_full(const job &j, const reader &r)
{
    return __all_sync(0xFFFFFFFFu, barrier_done(full_barrier(j, r.multiply.stage), r.multiply.parity));
}

/* Promotes the fill in `now`, and starts the next in `then`: before, if it is there, or else after. */
CBN_INLINE void turn(accumulators &total, parts &now, parts &then, const job &j, reader &r, int fill, u32 w_scales)
{
    if (next_is_full(j, r)) {
        multiply_fill(then, j, r, fill + 1);
        promote_fill<STAGE_GROUPS>(total, now, j, r, fill, w_scales);
    } else {
        promote_fill<0>(total, now, j, r, fill, w_scales);
        multiply_fill(then, j, r, fill + 1);
    }
}

/* A second fill in flight holds a stage and its registers longer than it helps above 16 tokens. */
CBN_INLINE void run_groups_singly(accumulators &total, const job &j, reader &r, u32 w_scales)
{
#pragma unroll 1
    for (int fill = 0; fill < j.fills; fill++) {
        parts part;
        multiply_fill(part, j, r, fill);
        promote_fill<0>(total, part, j, r, fill, w_scales);
    }
}

CBN_INLINE void run_groups_in_pairs(accumulators &total, const job &j, reader &r, u32 w_scales)
{
    parts even, odd;
    if (j.fills == 0)
        return;
    multiply_fill(even, j, r, 0);
    int fill = 0;
#pragma unroll 1
    for (; fill + 2 < j.fills; fill += 2) {
        turn(total, even, odd, j, r, fill, w_scales);
        turn(total, odd, even, j, r, fill + 1, w_scales);
    }
    if (fill + 1 < j.fills) {
        turn(total, even, odd, j, r, fill, w_scales);
        promote_fill<0>(total, odd, j, r, fill + 1, w_scales);
    } else {
        promote_fill<0>(total, even, j, r, fill, w_scales);
    }
}

/* ---- the output ---- */

CBN_INLINE float bias_at(const gemm_args &p, i64 column)
{
    constexpr int DTYPE = BIAS == BIAS_FP32 ? DTYPE_FP32 : OUT;
    if (BIAS == BIAS_NONE || column >= p.n)
        return 0.0f;
    return element_float<DTYPE>(load_element<dtype_bytes(DTYPE)>(p.bias + column * dtype_bytes(DTYPE)));
}

/* Without a bias nothing is added: the sign of a zero stays. */
CBN_INLINE u32 biased_bits(float value, float bias)
{
    return output_bits<OUT>(BIAS == BIAS_NONE ? value : value + bias);
}

/* Two neighbouring columns of D, the first even, of one token. Behind an odd N begins what is not D's. */
CBN_INLINE void store_columns(const gemm_args &p, const job &j, int token, i64 column, float first, float second)
{
    if (token >= j.valid || column >= p.n)
        return;
    u64 address = p.d + ((j.m0 + token) * p.ldd + column) * OUT_BYTES;
    u32 low = biased_bits(first, bias_at(p, column)), high = biased_bits(second, bias_at(p, column + 1));
    if (column + 1 == p.n)
        store_element<OUT_BYTES>(address, low);
    else if (OUT_BYTES == 2)
        store_u32(address, low | high << 16);
    else
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(low), "r"(high) : "memory");
}

/* No cluster: fragments go straight to D. Lanes of even rows take the upper half of a block, odd ones the lower. */
CBN_INLINE void store_fragments(const gemm_args &p, const job &j, const accumulators &total, i64 column)
{
    int lane = threadIdx.x % 32, row = lane / 4;
    bool odd = row & 1;
    column += threadIdx.x / 32 * 16 + (odd ? row + 7 : row);
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

/* Columns of one token out of shared memory: eight, or those that are left. */
CBN_INLINE void store_eight(const gemm_args &p, int token, i64 column, const job &j, u32 from)
{
    u64 address = p.d + ((j.m0 + token) * p.ldd + column) * OUT_BYTES;
    int count = span_count(column, p.n, 8);
    u32 words[4];
    load_shared_4(from, words);
    if (count == 8)
        store_16(address, words);
    else
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < count)
                store_u16(address + 2 * i, words[i / 2] >> 16 * (i % 2));
}

/* A token's 16 columns of a warp are two chunks; every fourth token swaps them, so that eight tokens touch all banks. */
CBN_INLINE u32 staged_at(u32 staging, int token, int half)
{
    return staging + (u32)(token * 32 + ((half ^ (token >> 2 & 1)) << 4));
}

/*
 * The same through shared memory: a warp's 16 columns are 32 bytes of every token, which two lanes store whole.
 */
CBN_INLINE void store_staged(const gemm_args &p, const job &j, const accumulators &total, i64 column)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 staging = j.at.exchange + (u32)(warp * BM * 32);
    column += warp * 16;
    float bias[2] = {bias_at(p, column + lane / 4), bias_at(p, column + lane / 4 + 8)};
#pragma unroll
    for (int b = 0; b < TOKEN_BLOCKS; b++) {
        u32 upper = biased_bits(total[4 * b], bias[0]) | biased_bits(total[4 * b + 1], bias[0]) << 16;
        u32 lower = biased_bits(total[4 * b + 2], bias[1]) | biased_bits(total[4 * b + 3], bias[1]) << 16;
        store_transposed(staged_at(staging, 8 * b + lane % 8, lane / 8 % 2), upper, lower);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < (BM + 15) / 16; i++) {
        int token = 16 * i + lane / 2, half = lane % 2;
        if (token < j.valid)
            store_eight(p, token, column + 8 * half, j, staged_at(staging, token, half));
    }
    __syncwarp(); /* before the next tile's */
}

/* Rows by eight: half h of warp w's fragments is eighth 2 w + h of the tile, which CTA (2 w + h) split / 8 owns. */
CBN_INLINE void send_fragments(const job &j, const accumulators &total)
{
    int lane = threadIdx.x % 32, owned = 8 / j.split;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int eighth = threadIdx.x / 32 * 2 + h, owner = eighth / owned;
        u32 place = (u32)((j.rank * owned + eighth % owned) * TOKEN_BLOCKS * 256 + lane * 8);
        u32 to = address_in(j.at.exchange + place, owner), barrier = address_in(received_barrier(j), owner);
#pragma unroll
        for (int b = 0; b < TOKEN_BLOCKS; b++)
            store_remote(to + b * 256, total[4 * b + 2 * h], total[4 * b + 2 * h + 1], barrier);
    }
}

template <int SOURCES> CBN_INLINE void add_sources(u32 from, int step, float (&sum)[2])
{
    u32 words[SOURCES][2];
#pragma unroll
    for (int i = 0; i < SOURCES; i++)
        load_shared_2(from + i * step, words[i]);
    sum[0] = bits_float(words[0][0]);
    sum[1] = bits_float(words[0][1]);
#pragma unroll
    for (int i = 1; i < SOURCES; i++) {
        asm("add.rn.f32 %0, %0, %1;" : "+f"(sum[0]) : "f"(bits_float(words[i][0])));
        asm("add.rn.f32 %0, %0, %1;" : "+f"(sum[1]) : "f"(bits_float(words[i][1])));
    }
}

/* What was received, added in the cluster's order: a warp takes a block of eight rows by eight tokens at a time. */
CBN_INLINE void store_received(const gemm_args &p, const job &j, i64 column)
{
    int lane = threadIdx.x % 32, row = lane / 4, owned = 8 / j.split, step = owned * TOKEN_BLOCKS * 256;
    bool odd = row & 1;
    for (int block = threadIdx.x / 32; block < owned * TOKEN_BLOCKS; block += MATH_WARPS) {
        u32 from = j.at.exchange + (u32)(block * 256 + lane * 8);
        float sum[2];
        if (j.split == 2)
            add_sources<2>(from, step, sum);
        else if (j.split == 4)
            add_sources<4>(from, step, sum);
        else
            add_sources<8>(from, step, sum);
        float other = __shfl_xor_sync(0xFFFFFFFFu, odd ? sum[0] : sum[1], 4);
        int eighth = j.rank * owned + block / TOKEN_BLOCKS, token = block % TOKEN_BLOCKS * 8 + lane % 4 * 2 + odd;
        store_columns(p, j, token, column + eighth * 8 + (row & ~1), odd ? other : sum[0], odd ? sum[1] : other);
    }
}

/* Another round's sums may come as soon as every CTA of the cluster knows that this CTA has read these. */
CBN_INLINE void release_exchange(const job &j)
{
    math_sync();
    if ((int)threadIdx.x < j.split)
        barrier_arrive_remote(address_in(drained_barrier(j), threadIdx.x));
    __syncwarp();
}

CBN_INLINE void exchange(const gemm_args &p, const job &j, const accumulators &total, i64 column, int round)
{
    bool last = round + 1 == j.rounds;
    if (round > 0)
        barrier_wait_cluster(drained_barrier(j), (round - 1) & 1);
    send_fragments(j, total);
    barrier_wait_cluster(received_barrier(j), round & 1);
    if (!last && threadIdx.x == 0)
        barrier_expect(received_barrier(j), EXCHANGE_BYTES);
    __syncwarp();
    store_received(p, j, column);
    if (!last)
        release_exchange(j);
}

CBN_INLINE void run_tiles(const swap_ab_args &p, const job &j)
{
    reader r = {{0, 0}, {0, 0}};
#pragma unroll 1
    for (int round = 0; round < j.rounds; round++) {
        int tile = j.first_tile + round * j.tile_step, buffer = round & 1;
        accumulators total = {};
        if (round + 1 < j.rounds)
            copy_weight_scales(p.gemm, j, tile + j.tile_step, buffer ^ 1);
        u32 w_scales = j.at.w_scales + (u32)(buffer * j.at.w_scales_bytes);
        if constexpr (BM <= 16)
            run_groups_in_pairs(total, j, r, w_scales);
        else
            run_groups_singly(total, j, r, w_scales);
        i64 column = (i64)tile * TILE_ROWS;
        if (j.split > 1)
            exchange(p.gemm, j, total, column, round);
        else if constexpr (STAGED)
            store_staged(p.gemm, j, total, column);
        else
            store_fragments(p.gemm, j, total, column);
        if (round + 1 < j.rounds) {
            copy_words_wait();
            math_sync();
        }
    }
}

CBN_INLINE void run_math(const swap_ab_args &p, job &j, int warp)
{
    cluster_arrive(j);
    if (!FUSED && threadIdx.x == 0) {
        prefetch_map(p.a);
        prefetch_map(p.a_tail);
    }
    __syncwarp();
    if (early(p)) {
        copy_weight_scales(p.gemm, j, j.first_tile, 0);
        copy_words_wait();
    }
    asm volatile("bar.sync %0, %1;" ::"n"(BARRIER_RING), "n"(RING_THREADS) : "memory");
    cluster_wait(j);
    pdl_wait();
    j.valid = span_count(j.m0, valid_rows(p.gemm.m_valid, p.gemm.m), BM);
    if (!FUSED)
        copy_first_codes(p, j, warp);
    if (!FUSED && !j.bulk)
        copy_token_scales(p.gemm, j);
    if (!early(p))
        copy_weight_scales(p.gemm, j, j.first_tile, 0);
    if (FUSED)
        quantize_tokens(p.gemm, j, warp);
    if (FUSED || !j.bulk || !early(p)) {
        copy_words_wait();
        if (FUSED)
            asm volatile("bar.sync %0, %1;" ::"n"(BARRIER_CODES), "n"(32 * QUANTIZE_WARPS) : "memory");
        else
            math_sync();
    }
    if (j.bulk && j.groups.count > 0)
        barrier_wait(scales_barrier(j), 0);
    __syncwarp();
    run_tiles(p, j);
}

CBN_INLINE void run_helper(const swap_ab_args &p, job &j, int warp)
{
    cluster_arrive(j);
    cluster_wait(j);
    pdl_wait();
    j.valid = span_count(j.m0, valid_rows(p.gemm.m_valid, p.gemm.m), BM);
    quantize_tokens(p.gemm, j, warp);
    asm volatile("bar.arrive %0, %1;" ::"n"(BARRIER_CODES), "n"(32 * QUANTIZE_WARPS) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    cbn_fp8_swap_ab(const __grid_constant__ swap_ab_args p)
{
    extern __shared__ u8 memory[];
    job j = job_of(p.gemm, (shared_address(memory) + 1023) & ~1023u);
    /* The same for every lane, and the compiler shall know it: wgmma wants whole warps. */
    int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
    if (warp < MATH_WARPS)
        run_math(p, j, warp);
    else if (warp == MATH_WARPS)
        run_producer(p, j);
    else if constexpr (FUSED)
        run_helper(p, j, warp - 1);
}
