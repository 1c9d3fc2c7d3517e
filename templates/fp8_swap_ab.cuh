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
#include "fp8_swap_ab_job.cuh"
#include "fp8_swap_ab_output.cuh"

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

/* ---- the roles ---- */

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
