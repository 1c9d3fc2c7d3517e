/*
 * fp8_wgmma: D[M,N] = A[M,K] . W[N,K]^T (+ bias) for many tokens on sm_90a, from codes, promoted to fp32 every 128 of K.
 *
 * Macros: IN (E4M3), OUT, A_SCALE, W_SCALE, W_GRAN, BIAS, PDL, VEC (16), BM and BN (a tile), WARPGROUPS (that multiply),
 * ALONG_K (1: each takes every WARPGROUPS-th group of K of the whole tile; 0: each takes rows of it), PARTS (1, 2: products
 * in flight of a warpgroup), SPLIT (CTAs of a cluster that share a tile's K), RESIDENT (CTAs of an SM), ORDER (1: the
 * warpgroups start their products in turn), TRIGGER (dependents launch 0: after the last copy of W, 1: after the wait).
 *
 * Three producer warps fill a ring of stages of 128 of K: codes of A, codes of W, scales. W's never waits for the
 * dependency. The warpgroups multiply and promote; the next product is in flight while a tile is stored. Tiles are taken
 * in a fixed order by a grid that stays. Copies reach exactly as far as the matrices: boxes past the end are slow.
 *
 * Order of the arithmetic: total = fma(part, RN(sa * sw), total) over a share of K, ascending; the warpgroups' shares
 * (ALONG_K) added in their order, then those of the cluster in its order; RN(sum + bias), rounded once to OUT.
 *
 * Shared memory, from a base at a multiple of 1024: ring; region (sums that are exchanged, rows to be stored); scales;
 * barriers.
 */
#define MMA_N BN
#include "fp8_hopper.cuh"

constexpr int OUT_BYTES = dtype_bytes(OUT);
constexpr int WAVES = BM / 64 / (ALONG_K ? 1 : WARPGROUPS); /* of 64 rows, of a warpgroup */
constexpr bool IN_TURN = ORDER && !ALONG_K && WARPGROUPS > 1;
constexpr int MATH_WARPS = 4 * WARPGROUPS, MATH_THREADS = 32 * MATH_WARPS, THREADS = MATH_THREADS + 128;
constexpr int A_BYTES = BM * GROUP, W_BYTES = BN * GROUP, CODE_BYTES = A_BYTES + W_BYTES;
constexpr bool ROW_SCALES = W_GRAN == GRAN_ROW;
constexpr int SCALE_BYTES = 4 * (BM + (ROW_SCALES ? BN : 4)); /* of A's rows, then W's: of each row, or of two blocks */

/* What a warpgroup owns once the shares of ALONG_K are added: rows of 64, and columns. */
constexpr bool HALVES = ALONG_K && WARPGROUPS == 2;
constexpr int OWN_WAVES = HALVES && WAVES == 2 ? 1 : WAVES;
constexpr int OWN_N = HALVES && WAVES == 1 ? BN / 2 : BN;
constexpr bool STAGED = OUT_BYTES == 2 && SPLIT == 1; /* rows go through shared memory to D */
constexpr int BOX_N = OWN_N % 64 ? 32 : 64, BOXES = OWN_N / BOX_N, BOX_BYTES = 64 * BOX_N * 2;
constexpr int SENT_BLOCKS = OWN_N / 8 / SPLIT; /* columns by eight that each CTA of the cluster stores */
constexpr int PIECE_BYTES = OWN_WAVES * SENT_BLOCKS * 512;

constexpr int most(int a, int b)
{
    return a > b ? a : b;
}

constexpr int REGION_BYTES = SPLIT > 1 ? BM * BN * 4 / SPLIT * (SPLIT - 1)
                                       : most(STAGED ? BM * BN * 2 : 0, HALVES ? BM * BN * 2 : 0);
constexpr int STAGE_COST = CODE_BYTES + SCALE_BYTES + 16; /* with its two barriers */
constexpr int SHARED_BYTES = (RESIDENT == 1 ? 227 : 113) * 1024 - 1024 - REGION_BYTES - 16;
constexpr int STAGES = SHARED_BYTES / STAGE_COST < 16 ? SHARED_BYTES / STAGE_COST : 16;

constexpr int REGION = STAGES * CODE_BYTES, SCALES = REGION + REGION_BYTES, BARRIERS = SCALES + STAGES * SCALE_BYTES;

static_assert(IN == DTYPE_E4M3 && VEC == 16, "codes come, their rows at multiples of 16 bytes");
static_assert(STAGES >= 2 && WAVES >= 1 && WAVES <= 2 && BM % 64 == 0 && BN % 32 == 0, "a tile that fits");
/* The next stage of a warpgroup, which it waits for before it gives one back, may come that many later. */
static_assert(STAGES > (ALONG_K ? 2 * WARPGROUPS - 1 : 1), "a ring that is long enough");
static_assert(PARTS == 1 || WAVES == 1 || BN <= 96, "registers");
static_assert(!HALVES || WAVES == 2 || BN % 64 == 0, "halves of boxes");
static_assert(OWN_N / 8 % SPLIT == 0 && REGION_BYTES % 1024 == 0, "equal pieces");

/* A product runs while a tile is stored. */
constexpr bool ACROSS = SPLIT == 1 && (WAVES * BN <= 192 || (BIAS == BIAS_NONE && !ROW_SCALES));

/* Registers of a math thread and of a producer's; the sum is what the launch gives. */
constexpr int MATH_REGISTERS = RESIDENT == 1 ? (WARPGROUPS == 3 ? 160 : 232) : WARPGROUPS == 2 ? 104 : 208;
constexpr int PRODUCER_REGISTERS = RESIDENT == 1 ? (WARPGROUPS == 3 ? 32 : 40) : WARPGROUPS == 2 ? 32 : 48;
constexpr bool MOVES_REGISTERS = RESIDENT == 2 || WARPGROUPS > 1;

constexpr int SHARE_A = 1, SHARE_W = 2;
constexpr int PRODUCER_A = 0, PRODUCER_W = 1, PRODUCER_SCALES = 2; /* warps */

/* ---- who does what ---- */

/* The same for every thread of a CTA. */
struct job {
    u32 base;
    int rank, ranks, part;       /* place among those that share copies; how many; which share of K */
    int first_group, groups;     /* of K: this CTA's */
    int first, step, units;      /* units: a tile for each of `ranks` */
    int unit_rows, unit_columns; /* how many units that is each way */
    int rows;                    /* valid ones */
    bool bulk;                   /* A's scales come by rows of a tile in one copy */
};

struct tile {
    int row, column; /* the first, of D */
};

CBN_INLINE int ceil_div(i64 value, int by)
{
    return (int)((value + by - 1) / by);
}

CBN_INLINE bool early(const wgmma_args &p)
{
    return PDL && p.fetch_early != 0 && p.gemm.m_valid == 0;
}

/* Column-major, at multiples of 16 bytes, up to the next multiple of four rows. */
CBN_INLINE bool scales_lie_together(const gemm_args &p)
{
    return p.sa_row == 1 && p.sa_col % 4 == 0 && p.sa_col >= p.m && p.a_scale % 16 == 0;
}

/* Where the dependency may write m_valid, only after the wait. */
CBN_INLINE job job_of(const wgmma_args &p, u32 base)
{
    job j;
    u32 rank, ctas;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(ctas));
    int groups = ceil_div(p.gemm.k, GROUP);
    j.base = base;
    j.ranks = p.share ? (int)ctas / SPLIT : 1;
    j.rank = (int)rank % j.ranks;
    j.part = (int)rank / j.ranks;
    j.first_group = j.part * groups / SPLIT;
    j.groups = (j.part + 1) * groups / SPLIT - j.first_group;
    j.rows = (int)valid_rows(p.gemm.m_valid, p.gemm.m);
    j.unit_rows = ceil_div(j.rows, BM);
    j.unit_columns = ceil_div(p.gemm.n, BN);
    if (p.share == SHARE_A)
        j.unit_columns = ceil_div(j.unit_columns, j.ranks);
    if (p.share == SHARE_W)
        j.unit_rows = ceil_div(j.unit_rows, j.ranks);
    j.units = j.unit_rows * j.unit_columns;
    j.first = (int)(blockIdx.x / ctas);
    j.step = (int)(gridDim.x / ctas);
    j.bulk = scales_lie_together(p.gemm);
    return j;
}

/* value / by and the remainder, for a quotient below 2^20. */
CBN_INLINE int divide(int value, int by, float inverse, int *remainder)
{
    int quotient = (int)((float)value * inverse);
    int left = value - quotient * by;
    quotient += left < 0 ? -1 : left >= by ? 1 : 0;
    *remainder = value - quotient * by;
    return quotient;
}

CBN_INLINE float inverse_of(int value)
{
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"((float)value));
    return inverse;
}

/* Bands of row tiles; within one, column by column: what runs at once shares rows of A and of W in the L2 cache. */
CBN_INLINE tile tile_at(const wgmma_args &p, const job &j, int unit)
{
    int band = (int)p.band < j.unit_rows ? (int)p.band : j.unit_rows, in_band, row;
    int above = divide(unit, band * j.unit_columns, inverse_of(band * j.unit_columns), &in_band) * band;
    int height = j.unit_rows - above < band ? j.unit_rows - above : band;
    int column = divide(in_band, height, inverse_of(height), &row);
    row += above;
    if (p.share == SHARE_W)
        row = row * j.ranks + j.rank;
    if (p.share == SHARE_A)
        column = column * j.ranks + j.rank;
    return {row * BM, column * BN};
}

/* ---- shared memory ---- */

CBN_INLINE u32 codes_at(const job &j, int stage)
{
    return j.base + (u32)stage * CODE_BYTES;
}

CBN_INLINE u32 scales_at(const job &j, int stage)
{
    return j.base + SCALES + (u32)stage * SCALE_BYTES;
}

CBN_INLINE u32 full_barrier(const job &j, int stage)
{
    return j.base + BARRIERS + 8 * (u32)stage;
}

CBN_INLINE u32 empty_barrier(const job &j, int stage)
{
    return j.base + BARRIERS + 8 * (u32)(STAGES + stage);
}

CBN_INLINE u32 received_barrier(const job &j)
{
    return j.base + BARRIERS + 16 * STAGES;
}

/* Scales that come word by word: every lane of their warp arrives. */
CBN_INLINE bool word_by_word(const job &j)
{
    return ROW_SCALES || !j.bulk;
}

CBN_INLINE void init_barriers(const job &j)
{
    for (int i = 0; i < STAGES; i++) {
        barrier_init(full_barrier(j, i), 3 + (word_by_word(j) ? 32 : 0));
        barrier_init(empty_barrier(j, i), 4 * (ALONG_K ? 1 : WARPGROUPS) * j.ranks);
    }
    barrier_init(received_barrier(j), 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if (SPLIT > 1)
        barrier_expect(received_barrier(j), REGION_BYTES);
}

/* A place in the ring, and the parity of the phase that is waited for there. */
struct cursor {
    int stage;
    u32 parity;
};

/* By no more than STAGES. */
CBN_INLINE void advance(cursor &c, int count)
{
    c.stage += count;
    if (c.stage >= STAGES) {
        c.stage -= STAGES;
        c.parity ^= 1;
    }
}

CBN_INLINE void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* ---- producers ---- */

CBN_INLINE int clamp(i64 value, int high)
{
    return value < 0 ? 0 : value < high ? (int)value : high;
}

/* The rows [first, first + count) of an operand's part of a stage, of which this CTA copies [skip, skip + own). */
struct rows {
    int first, count, skip, own;
    bool shared, whole;
};

CBN_INLINE rows rows_of(const job &j, int first, i64 end, int height, bool shared)
{
    int slice = shared ? height / j.ranks : height, skip = shared ? j.rank * slice : 0;
    int own = clamp(end - first - skip, slice);
    return {first + skip, clamp(end - first, height), skip, own, shared, own == slice};
}

template <bool OF_A>
CBN_INLINE void produce_codes(const wgmma_args &p, const job &j)
{
    cursor c = {0, 1};
    u64 policy;
    if (OF_A || j.unit_rows > 2)
        asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    else
        policy = policy_evict_first();
    u32 peers = ((1u << j.ranks) - 1) << (j.part * j.ranks);
    for (int unit = j.first; unit < j.units; unit += j.step) {
        tile t = tile_at(p, j, unit);
        rows r = OF_A ? rows_of(j, t.row, p.gemm.m, BM, p.share == SHARE_A)
                      : rows_of(j, t.column, p.gemm.n, BN, p.share == SHARE_W);
        const tensor_map &map = OF_A ? (r.whole ? p.a : p.a_tail) : r.whole ? p.w : p.w_tail;
        u32 offset = (OF_A ? 0 : A_BYTES) + (u32)r.skip * GROUP;
#pragma unroll 1
        for (int i = 0; i < j.groups; i++) {
            u32 barrier = full_barrier(j, c.stage), to = codes_at(j, c.stage) + offset;
            barrier_wait(empty_barrier(j, c.stage), c.parity);
            barrier_expect(barrier, (u32)r.count * GROUP);
            if (r.own > 0) {
                if (r.shared)
                    copy_group_shared(to, map, r.first, j.first_group + i, barrier, policy, peers);
                else
                    copy_group(to, map, r.first, j.first_group + i, barrier, policy);
            }
            advance(c, 1);
        }
    }
}

template <int FORMAT> CBN_INLINE float scale_value(u32 word, int group)
{
    return bits_float(FORMAT == SCALE_FP32 ? word : (word >> 8 * (group % 4) & 0xFFu) << 23);
}

template <int FORMAT> CBN_INLINE u64 scale_address(u64 scales, i64 row, i64 row_stride, int group, i64 group_stride)
{
    return scales + 4 * (row * row_stride + (FORMAT == SCALE_FP32 ? group : group / 4) * group_stride);
}

/* A lane holds a group's scales of the tile's two blocks of W for 32 groups. */
struct block_scales {
    float first, second;
};

CBN_INLINE block_scales load_block_scales(const gemm_args &p, const job &j, int column, int index)
{
    int group = j.first_group + (index < j.groups ? index : j.groups - 1);
    int last = ceil_div(p.n, GROUP) - 1, block = column / GROUP;
    block = block < last ? block : last;
    int next = block < last ? block + 1 : last;
    return {scale_value<W_SCALE>(load_u32(scale_address<W_SCALE>(p.w_scale, block, p.sw_row, group, p.sw_col)), group),
            scale_value<W_SCALE>(load_u32(scale_address<W_SCALE>(p.w_scale, next, p.sw_row, group, p.sw_col)), group)};
}

template <int FORMAT, int COUNT>
CBN_INLINE void copy_scale_words(u32 to, u64 scales, int first, i64 end, i64 row_stride, int group, i64 group_stride)
{
#pragma unroll 2
    for (int i = threadIdx.x % 32; i < COUNT; i += 32) {
        bool present = first + i < end;
        copy_word(to + 4 * i,
                  scale_address<FORMAT>(scales, present ? first + i : 0, row_stride, group, group_stride), present);
    }
}

/* All of a stage's scales but W's of blocks; `bytes` of A's where they lie together. */
CBN_INLINE void fill_scales(const gemm_args &p, const job &j, const tile &t, int stage, int group, u32 bytes)
{
    u32 to = scales_at(j, stage), barrier = full_barrier(j, stage);
    if (threadIdx.x % 32 == 0) {
        barrier_expect(barrier, bytes);
        if (bytes > 0)
            copy_bytes(to, scale_address<A_SCALE>(p.a_scale, t.row, 1, group, p.sa_col), bytes, barrier);
    }
    if (!j.bulk)
        copy_scale_words<A_SCALE, BM>(to, p.a_scale, t.row, j.rows, p.sa_row, group, p.sa_col);
    if (ROW_SCALES)
        copy_scale_words<W_SCALE, BN>(to + 4 * BM, p.w_scale, t.column, p.n, p.sw_row, group, p.sw_col);
    if (word_by_word(j))
        copy_words_arrive(barrier);
}

CBN_INLINE void produce_scales(const wgmma_args &p, const job &j)
{
    cursor c = {0, 1};
    block_scales held = {0.0f, 0.0f};
    for (int unit = j.first; unit < j.units; unit += j.step) {
        tile t = tile_at(p, j, unit);
        u32 bytes = j.bulk ? 4 * (u32)clamp((p.gemm.m + 3) / 4 * 4 - t.row, BM) : 0;
#pragma unroll 1
        for (int i = 0; i < j.groups; i++) {
            if (!ROW_SCALES && i % 32 == 0)
                held = load_block_scales(p.gemm, j, t.column, i + threadIdx.x % 32);
            float first = __shfl_sync(0xFFFFFFFFu, held.first, i % 32);
            float second = __shfl_sync(0xFFFFFFFFu, held.second, i % 32);
            barrier_wait(empty_barrier(j, c.stage), c.parity);
            if (!ROW_SCALES && threadIdx.x % 32 == 0)
                store_shared_2(scales_at(j, c.stage) + 4 * BM, first, second);
            fill_scales(p.gemm, j, t, c.stage, j.first_group + i, bytes);
            __syncwarp();
            advance(c, 1);
        }
    }
}

CBN_INLINE void run_producer(const wgmma_args &p, const job &j, int warp)
{
    if (MOVES_REGISTERS)
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(PRODUCER_REGISTERS));
    if (warp == PRODUCER_W) {
        if (!early(p))
            pdl_wait();
        if (threadIdx.x % 32 == 0) {
            produce_codes<false>(p, j);
            if (TRIGGER == 0)
                pdl_launch_dependents();
        }
    } else if (warp == PRODUCER_A) {
        pdl_wait();
        if (threadIdx.x % 32 == 0)
            produce_codes<true>(p, j);
    } else if (warp == PRODUCER_SCALES) {
        pdl_wait();
        if (TRIGGER == 1)
            pdl_launch_dependents();
        produce_scales(p, j);
    }
    __syncwarp();
}

/* ---- products ---- */

/* What a stage's parts are multiplied by: for rows g and g + 8 of each wave, A's scale times that of each block of W. */
struct factors {
    float upper[WAVES][2], lower[WAVES][2];
    int stage, group;
};

struct reader {
    int warpgroup, warp; /* warp: in its warpgroup */
    cursor next;         /* the stage to multiply next */
    int group;           /* its */
    u32 told;            /* the barrier of the first stage that this lane tells when one is free, in which CTA ever */
    int tells;           /* it does: 1 its own CTA, 2 a peer */
    int turn;            /* the named barrier of this warpgroup's turn; the next one's follows */
};

CBN_INLINE int first_row(const reader &r, int wave)
{
    return ALONG_K ? wave * 64 : (wave * WARPGROUPS + r.warpgroup) * 64;
}

CBN_INLINE void load_factors(factors &f, const job &j, const reader &r)
{
    u32 at = scales_at(j, r.next.stage), words[2];
    if (!ROW_SCALES)
        load_shared_2(at + 4 * BM, words);
#pragma unroll
    for (int wave = 0; wave < WAVES; wave++) {
        u32 rows_at = at + 4 * (u32)(first_row(r, wave) + r.warp * 16 + (int)threadIdx.x % 32 / 4);
        float upper = scale_value<A_SCALE>(load_shared(rows_at), r.group);
        float lower = scale_value<A_SCALE>(load_shared(rows_at + 32), r.group);
#pragma unroll
        for (int b = 0; b < 2; b++) {
            f.upper[wave][b] = ROW_SCALES ? upper : mul_rn(upper, bits_float(words[b]));
            f.lower[wave][b] = ROW_SCALES ? lower : mul_rn(lower, bits_float(words[b]));
        }
    }
    f.stage = r.next.stage;
    f.group = r.group;
}

/*
 * Warpgroups that start products at will fall into step: their products share the tensor cores, end together, and leave
 * them idle while all promote. In turn, one promotes while the other's product runs.
 */
CBN_INLINE void take_turn(const reader &r)
{
    if (IN_TURN)
        asm volatile("bar.sync %0, 256;" ::"r"(r.turn) : "memory");
}

CBN_INLINE void give_turn(const reader &r)
{
    if (IN_TURN)
        asm volatile("{ .reg .u32 n; .reg .pred p; add.u32 n, %0, 1; setp.eq.u32 p, n, %1; @p mov.u32 n, %2; "
                     "bar.arrive n, 256; }" ::"r"(r.turn),
                     "n"(2 + 2 * WARPGROUPS), "n"(2 + WARPGROUPS)
                     : "memory");
}

/* 64 rows by BN columns over 128 of K. */
CBN_INLINE void start_wave(accumulators &part, const job &j, const reader &r, int stage, int wave)
{
    u64 a = descriptor_of(codes_at(j, stage) + (u32)first_row(r, wave) * GROUP);
    u64 w = descriptor_of(codes_at(j, stage) + A_BYTES);
    take_turn(r);
    multiply_fence();
#pragma unroll
    for (int q = 0; q < 4; q++) /* 32 of K: 32 bytes further */
        multiply(part, a + 2 * q, w + 2 * q, q > 0);
    multiply_commit();
    give_turn(r);
}

/* Every CTA that writes into a stage must know that it is free. */
CBN_INLINE void set_release(const job &j, reader &r)
{
    int lane = threadIdx.x % 32;
    bool peers = j.ranks > 1;
    r.told = peers ? address_in(empty_barrier(j, 0), (u32)(j.part * j.ranks + lane % j.ranks)) : empty_barrier(j, 0);
    r.tells = lane < j.ranks ? 1 + peers : 0;
}

/* Only asynchronous copies fill it: nothing of this thread's own is to become visible. */
CBN_INLINE void release(const reader &r, int stage)
{
    asm volatile("{ .reg .pred p, q; setp.eq.s32 p, %1, 1; setp.eq.s32 q, %1, 2; "
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0]; @q mbarrier.arrive.shared::cluster.b64 _, [%0]; }" ::"r"(
                     r.told + 8 * (u32)stage),
                 "r"(r.tells)
                 : "memory");
}

constexpr int greatest_common(int a, int b)
{
    return b ? greatest_common(b, a % b) : a;
}

/* Columns that surely lie in one block of W. */
constexpr int BLOCK_COLUMNS = greatest_common(BN, GROUP), BLOCKS = BN / BLOCK_COLUMNS;

CBN_INLINE void promote_blocks(accumulators &total, const accumulators &part, const factors &f, int wave, int column)
{
    float upper[BLOCKS], lower[BLOCKS];
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        bool second = BLOCKS > 1 && column % GROUP + b * BLOCK_COLUMNS >= GROUP;
        upper[b] = second ? f.upper[wave][1] : f.upper[wave][0];
        lower[b] = second ? f.lower[wave][1] : f.lower[wave][0];
    }
#pragma unroll
    for (int i = 0; i < BN / 2; i++)
        total[i] = fma_rn(part[i], i % 4 < 2 ? upper[i / 4 * 8 / BLOCK_COLUMNS] : lower[i / 4 * 8 / BLOCK_COLUMNS],
                          total[i]);
}

CBN_INLINE void promote_rows(accumulators &total, const accumulators &part, const factors &f, int wave, u32 scales)
{
#pragma unroll
    for (int b = 0; b < BN / 8; b++) {
        u32 words[2];
        load_shared_2(scales + 4 * (8 * b + threadIdx.x % 4 * 2), words);
#pragma unroll
        for (int i = 0; i < 4; i++)
            total[4 * b + i] = fma_rn(part[4 * b + i],
                                      mul_rn(i < 2 ? f.upper[wave][0] : f.lower[wave][0],
                                             scale_value<W_SCALE>(words[i % 2], f.group)),
                                      total[4 * b + i]);
    }
}

/* Adds a part that is complete. */
CBN_INLINE void promote(accumulators &total, accumulators &part, const factors &f, const job &j, int wave, int column)
{
    multiply_settle(part);
    if (ROW_SCALES)
        promote_rows(total, part, f, wave, scales_at(j, f.stage) + 4 * BM);
    else
        promote_blocks(total, part, f, wave, column);
}

/* ---- the output ---- */

typedef accumulators totals[WAVES];

/* Where a warpgroup's part of a tile begins in D. */
struct place {
    int row, column;
};

CBN_INLINE int wave_step()
{
    return (ALONG_K ? 1 : WARPGROUPS) * 64;
}

CBN_INLINE place place_of(const reader &r, const tile &t)
{
    if (HALVES)
        return {t.row + (WAVES == 2 ? r.warpgroup * 64 : 0), t.column + (WAVES == 2 ? 0 : r.warpgroup * OWN_N)};
    return {t.row + (ALONG_K ? 0 : r.warpgroup * 64), t.column};
}

CBN_INLINE void math_sync()
{
    asm volatile("bar.sync 1, %0;" ::"n"(MATH_THREADS) : "memory");
}

CBN_INLINE void warpgroup_sync(int warpgroup)
{
    asm volatile("bar.sync %0, 128;" ::"r"(2 + warpgroup) : "memory");
}

template <int FIRST> CBN_INLINE void leave_half(u32 to, const float *values)
{
#pragma unroll
    for (int i = 0; i < WAVES * BN / 4; i += 4)
        store_shared_floats(to + i / 4 * 2048, values[FIRST + i], values[FIRST + i + 1], values[FIRST + i + 2],
                            values[FIRST + i + 3]);
}

/* Into the lower half of the registers. */
template <int FIRST> CBN_INLINE void take_half(u32 from, float *values)
{
#pragma unroll
    for (int i = 0; i < WAVES * BN / 4; i += 4) {
        float other[4];
        load_shared_4(from + i / 4 * 2048, other);
#pragma unroll
        for (int e = 0; e < 4; e++)
            values[i + e] = values[FIRST + i + e] + other[e];
    }
}

/* The shares of two warpgroups: the first keeps the lower half of the tile, the second the upper one. */
CBN_INLINE void add_shares(float *values, const reader &r, u32 at)
{
    constexpr int HALF = WAVES * BN / 4;
    at += threadIdx.x % 128 * 16;
    math_sync();
    if (r.warpgroup == 1)
        leave_half<0>(at, values);
    math_sync();
    if (r.warpgroup == 0) {
        take_half<0>(at, values);
        leave_half<HALF>(at, values);
    }
    math_sync();
    if (r.warpgroup == 1)
        take_half<HALF>(at, values);
    math_sync();
}

/* So that the loads of a whole tile's bias are not moved to its front, where registers are short. */
CBN_INLINE void gather_loads()
{
    if (BIAS != BIAS_NONE)
        __syncwarp();
}

CBN_INLINE float bias_at(const gemm_args &p, i64 column)
{
    constexpr int DTYPE = BIAS == BIAS_FP32 ? DTYPE_FP32 : OUT;
    return element_float<DTYPE>(load_element<dtype_bytes(DTYPE)>(p.bias + column * dtype_bytes(DTYPE)));
}

CBN_INLINE float biased(float value, float bias)
{
    return BIAS == BIAS_NONE ? value : value + bias;
}

/* Where a lane's fragments of 16 rows begin in D: rows g and g + 8, its first two columns. */
struct spot {
    u64 upper, lower;
    bool has_upper, has_lower;
    int column;
};

CBN_INLINE spot spot_at(const gemm_args &p, const job &j, const reader &r, int row, int column)
{
    int lane = threadIdx.x % 32;
    row += r.warp * 16 + lane / 4;
    column += lane % 4 * 2;
    u64 upper = p.d + (row * p.ldd + column) * OUT_BYTES;
    return {upper, upper + 8 * p.ldd * OUT_BYTES, row < j.rows, row + 8 < j.rows, column};
}

/* Two neighbouring columns of D, the first even. N is even where rows of D are aligned. */
CBN_INLINE void store_columns(u64 address, bool present, float first, float second)
{
    if (OUT_BYTES == 2)
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p st.global.u32 [%0], %1; }" ::"l"(address),
                     "r"(output_bits<OUT>(first) | output_bits<OUT>(second) << 16), "r"((int)present)
                     : "memory");
    else
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %3, 0; @p st.global.v2.u32 [%0], {%1, %2}; }" ::"l"(address),
                     "r"(output_bits<OUT>(first)), "r"(output_bits<OUT>(second)), "r"((int)present)
                     : "memory");
}

/* Eight columns, the b-th of the spot's. */
CBN_INLINE void store_block(const gemm_args &p, const spot &at, int b, const float *sums)
{
    int column = at.column + 8 * b;
    bool inside = column < p.n;
    float bias[2] = {0.0f, 0.0f};
    if (BIAS != BIAS_NONE && inside) {
        bias[0] = bias_at(p, column);
        bias[1] = bias_at(p, column + 1);
    }
    gather_loads();
    store_columns(at.upper + 8 * b * OUT_BYTES, inside && at.has_upper, biased(sums[0], bias[0]),
                  biased(sums[1], bias[1]));
    store_columns(at.lower + 8 * b * OUT_BYTES, inside && at.has_lower, biased(sums[2], bias[0]),
                  biased(sums[3], bias[1]));
}

CBN_INLINE void store_fragments(const gemm_args &p, const job &j, const reader &r, const float *sums, const place &at)
{
#pragma unroll
    for (int wave = 0; wave < OWN_WAVES; wave++) {
        spot to = spot_at(p, j, r, at.row + wave * wave_step(), at.column);
#pragma unroll
        for (int b = 0; b < OWN_N / 8; b++)
            store_block(p, to, b, &sums[wave * OWN_N / 2 + 4 * b]);
    }
}

CBN_INLINE u32 output_pair(const gemm_args &p, int column, float first, float second)
{
    if (BIAS != BIAS_NONE && column < p.n) {
        first = biased(first, bias_at(p, column));
        second = biased(second, bias_at(p, column + 1));
    }
    u32 pair;
    if (OUT == DTYPE_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

/* Where 16 bytes lie in a box of 64 rows, swizzled as its map says. */
CBN_INLINE u32 in_box(int row, int chunk)
{
    return (u32)(row * BOX_N * 2 + ((BOX_N == 64 ? chunk ^ (row & 7) : chunk ^ (row >> 1 & 3)) << 4));
}

CBN_INLINE void stage_rows(const gemm_args &p, const reader &r, const float *sums, const place &at, u32 boxes)
{
    int lane = threadIdx.x % 32, column = at.column + lane % 4 * 2;
#pragma unroll
    for (int wave = 0; wave < OWN_WAVES; wave++) {
#pragma unroll
        for (int b = 0; b < OWN_N / 8; b += 2) {
            const float *sum = &sums[wave * OWN_N / 2 + 4 * b];
            gather_loads();
            u32 box = boxes + (u32)(wave * BOXES + b * 8 / BOX_N) * BOX_BYTES;
            store_matrices(box + in_box(r.warp * 16 + lane % 16, b % (BOX_N / 8) + lane / 16),
                           output_pair(p, column + 8 * b, sum[0], sum[1]),
                           output_pair(p, column + 8 * b, sum[2], sum[3]),
                           output_pair(p, column + 8 * b + 8, sum[4], sum[5]),
                           output_pair(p, column + 8 * b + 8, sum[6], sum[7]));
        }
    }
}

/* A box of which only the first rows may be written. */
CBN_INLINE void store_some_rows(const gemm_args &p, const job &j, u32 box, int row, int column)
{
    constexpr int CHUNKS = BOX_N / 8;
    int lane = threadIdx.x % 32;
    for (int i = lane; i < 64 * CHUNKS; i += 32) {
        float words[4];
        int in_row = i / CHUNKS, chunk = i % CHUNKS;
        if (row + in_row >= j.rows || column + 8 * chunk >= p.n)
            continue;
        load_shared_4(box + in_box(in_row, chunk), words);
        const u32 bits[4] = {float_bits(words[0]), float_bits(words[1]), float_bits(words[2]), float_bits(words[3])};
        store_16(p.d + ((row + in_row) * p.ldd + column + 8 * chunk) * OUT_BYTES, bits);
    }
}

/* Box by box, a warp each. */
CBN_INLINE void store_rows(const wgmma_args &p, const job &j, const reader &r, const place &at, u32 boxes)
{
#pragma unroll 1
    for (int i = r.warp; i < OWN_WAVES * BOXES; i += 4) {
        int row = at.row + i / BOXES * wave_step(), column = at.column + i % BOXES * BOX_N;
        u32 box = boxes + (u32)i * BOX_BYTES;
        if (row >= j.rows || column >= p.gemm.n)
            continue;
        if (row + 64 > j.rows && j.rows < p.gemm.m)
            store_some_rows(p.gemm, j, box, row, column);
        else if (threadIdx.x % 32 == 0)
            store_box(p.d, box, column, row);
    }
    if (threadIdx.x % 32 == 0)
        store_commit();
    __syncwarp();
}

/* The region is free again once the stores of the tile before have read it. */
CBN_INLINE void wait_region()
{
    if (STAGED && threadIdx.x % 32 == 0)
        store_wait_read();
    __syncwarp();
}

/* ---- sums over a cluster ---- */

CBN_INLINE u32 piece_at(const reader &r, int slot)
{
    return (u32)((slot * MATH_WARPS + r.warpgroup * 4 + r.warp) * PIECE_BYTES) + threadIdx.x % 32 * 16;
}

/* To each other CTA of the cluster its columns, through the ring, which nobody reads or fills any more. */
CBN_INLINE void send_sums(const job &j, const reader &r, const float *sums)
{
#pragma unroll
    for (int to = 0; to < SPLIT; to++) {
        if (to == j.part)
            continue;
        u32 from = j.base + piece_at(r, to);
#pragma unroll
        for (int wave = 0; wave < OWN_WAVES; wave++) {
#pragma unroll
            for (int b = 0; b < SENT_BLOCKS; b++) {
                const float *sum = &sums[wave * OWN_N / 2 + 4 * (to * SENT_BLOCKS + b)];
                store_shared_floats(from + (u32)(wave * SENT_BLOCKS + b) * 512, sum[0], sum[1], sum[2], sum[3]);
            }
        }
        fence_async();
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            u32 peer = (u32)(to * j.ranks + j.rank);
            send_bytes(address_in(j.base + REGION + piece_at(r, j.part < to ? j.part : j.part - 1), peer), from,
                       PIECE_BYTES, address_in(received_barrier(j), peer));
        }
        __syncwarp();
    }
}

CBN_INLINE void store_sums(const gemm_args &p, const job &j, const reader &r, const float *sums, const place &at)
{
    barrier_wait_cluster(received_barrier(j), 0);
    __syncwarp();
#pragma unroll
    for (int wave = 0; wave < OWN_WAVES; wave++) {
        spot to = spot_at(p, j, r, at.row + wave * wave_step(), at.column + j.part * SENT_BLOCKS * 8);
#pragma unroll
        for (int b = 0; b < SENT_BLOCKS; b++) {
            float sum[4] = {};
#pragma unroll
            for (int from = 0; from < SPLIT; from++) {
                const float *own = &sums[wave * OWN_N / 2 + 4 * (from * SENT_BLOCKS + b)];
                float term[4] = {own[0], own[1], own[2], own[3]};
                if (from != j.part)
                    load_shared_4(j.base + REGION + piece_at(r, from < j.part ? from : from - 1) +
                                      (u32)(wave * SENT_BLOCKS + b) * 512,
                                  term);
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sum[e] = from == 0 ? term[e] : sum[e] + term[e];
            }
            store_block(p, to, b, sum);
        }
    }
}

CBN_INLINE void finish_owned(const wgmma_args &p, const job &j, const reader &r, const float *sums, const place &at)
{
    if (SPLIT > 1) {
        math_sync();
        send_sums(j, r, sums);
        store_sums(p.gemm, j, r, sums, at);
    } else if (STAGED) {
        u32 boxes = j.base + REGION + (u32)(r.warpgroup * OWN_WAVES * BOXES) * BOX_BYTES;
        warpgroup_sync(r.warpgroup);
        stage_rows(p.gemm, r, sums, at, boxes);
        fence_async();
        warpgroup_sync(r.warpgroup);
        store_rows(p, j, r, at, boxes);
    } else {
        store_fragments(p.gemm, j, r, sums, at);
    }
}

CBN_INLINE void finish(const wgmma_args &p, const job &j, const reader &r, totals &total, const tile &t)
{
    place at = place_of(r, t);
    wait_region();
    if (HALVES)
        add_shares(&total[0][0], r, j.base + (SPLIT > 1 ? 0 : REGION));
    finish_owned(p, j, r, &total[0][0], at);
}

/* ---- a warpgroup's tiles ---- */

/* Where a warpgroup stands in the CTA's tiles. */
struct walk {
    int unit, left; /* left: groups of K still to promote in this tile */
    tile t;
};

/* At least one: the host gives every warpgroup of every CTA of a cluster some of K. */
CBN_INLINE int groups_of(const job &j, const reader &r)
{
    return ALONG_K ? (j.groups - r.warpgroup + WARPGROUPS - 1) / WARPGROUPS : j.groups;
}

CBN_INLINE void begin_tile(const wgmma_args &p, const job &j, const reader &r, walk &w, totals &total)
{
    w.left = groups_of(j, r);
    w.t = tile_at(p, j, w.unit);
#pragma unroll
    for (int i = 0; i < WAVES * BN / 2; i++)
        total[i / (BN / 2)][i % (BN / 2)] = 0.0f;
}

CBN_INLINE bool has_next(const job &j, const walk &w)
{
    return w.left > 1 || w.unit + j.step < j.units;
}

/* Leaves the reader at its next stage; at a tile's end past the groups that are other warpgroups'. */
CBN_INLINE void step(const job &j, reader &r, const walk &w)
{
    constexpr int STRIDE = ALONG_K ? WARPGROUPS : 1;
    int own = ALONG_K ? r.warpgroup : 0;
    bool last = w.left == 1;
    advance(r.next, last && ALONG_K ? j.first_group + j.groups - r.group + own : STRIDE);
    r.group = last ? j.first_group + own : r.group + STRIDE;
}

/*
 * The next stage is awaited while a product runs: between the end of one and the start of the next stands nothing but the
 * promotion. After the last stage that one again: its product is for nobody, but one that is started on some paths only
 * would be waited for where they meet.
 */
CBN_INLINE void await_next(const job &j, reader &r, const walk &w)
{
    if (has_next(j, w)) {
        step(j, r, w);
        barrier_wait(full_barrier(j, r.next.stage), r.next.parity);
    }
}

/* Of a tile that is promoted in full. False after the last. */
CBN_INLINE bool end_tile(const wgmma_args &p, const job &j, const reader &r, walk &w, totals &total)
{
    finish(p, j, r, total, w.t);
    w.unit += j.step;
    if (w.unit >= j.units) {
        multiply_wait<0>();
        return false;
    }
    begin_tile(p, j, r, w, total);
    return true;
}

/* MORE: a stage follows, whose first product is started before this one is given back. */
template <bool MORE>
CBN_INLINE void turn_single(const job &j, reader &r, walk &w, totals &total, accumulators &part, factors &f)
{
    int stage = f.stage;
#pragma unroll
    for (int wave = 0; wave < WAVES; wave++) {
        if (wave > 0)
            start_wave(part, j, r, stage, wave);
        if (MORE && wave == WAVES - 1)
            await_next(j, r, w);
        multiply_wait<0>();
        promote(total[wave], part, f, j, wave, w.t.column);
    }
    if (MORE)
        start_wave(part, j, r, r.next.stage, 0);
    release(r, stage);
    if (MORE)
        load_factors(f, j, r);
}

/* A tile whose first product runs; none runs when it is stored. */
CBN_INLINE void run_tile(const wgmma_args &p, const job &j, reader &r, walk &w, totals &total, accumulators &part,
                         factors &f)
{
    for (; w.left > 1; w.left--)
        turn_single<true>(j, r, w, total, part, f);
    turn_single<false>(j, r, w, total, part, f);
    finish(p, j, r, total, w.t);
}

/* One product in flight: the next starts when one is promoted, across the end of a tile too where registers allow. */
CBN_INLINE void run_single(const wgmma_args &p, const job &j, reader &r, walk &w, totals &total, factors &f)
{
    accumulators part;
    start_wave(part, j, r, f.stage, 0);
    if constexpr (ACROSS) {
        do
            turn_single<true>(j, r, w, total, part, f);
        while (--w.left > 0 || end_tile(p, j, r, w, total));
    } else {
        for (;;) {
            run_tile(p, j, r, w, total, part, f);
            if (w.unit + j.step >= j.units)
                return;
            step(j, r, w);
            w.unit += j.step;
            begin_tile(p, j, r, w, total);
            barrier_wait(full_barrier(j, r.next.stage), r.next.parity);
            load_factors(f, j, r);
            start_wave(part, j, r, f.stage, 0);
        }
    }
}

/* Starts the next group's product in `then`, and promotes `now`. */
CBN_INLINE void turn_pair(const job &j, reader &r, const walk &w, totals &total, accumulators &now, const factors &f,
                          accumulators &then, factors &next)
{
    await_next(j, r, w);
    start_wave(then, j, r, r.next.stage, 0);
    load_factors(next, j, r);
    multiply_wait<1>();
    promote(total[0], now, f, j, 0, w.t.column);
    release(r, f.stage);
}

CBN_INLINE void end_pair(const wgmma_args &p, const job &j, const reader &r, walk &w, totals &total, accumulators &now,
                         const factors &f)
{
    multiply_wait<0>();
    promote(total[0], now, f, j, 0, w.t.column);
    finish(p, j, r, total, w.t);
}

/* Two products in flight, of two groups. */
CBN_INLINE void run_alternating(const wgmma_args &p, const job &j, reader &r, walk &w, totals &total, factors &f)
{
    accumulators even, odd;
    factors g;
    start_wave(even, j, r, f.stage, 0);
    if constexpr (SPLIT == 1) {
        for (;;) {
            turn_pair(j, r, w, total, even, f, odd, g);
            if (--w.left == 0 && !end_tile(p, j, r, w, total))
                return;
            turn_pair(j, r, w, total, odd, g, even, f);
            if (--w.left == 0 && !end_tile(p, j, r, w, total))
                return;
        }
    } else {
        for (; w.left > 2; w.left -= 2) {
            turn_pair(j, r, w, total, even, f, odd, g);
            turn_pair(j, r, w, total, odd, g, even, f);
        }
        if (w.left == 2) {
            turn_pair(j, r, w, total, even, f, odd, g);
            end_pair(p, j, r, w, total, odd, g);
        } else {
            end_pair(p, j, r, w, total, even, f);
        }
    }
}

template <bool MORE>
CBN_INLINE void turn_waves(const job &j, reader &r, const walk &w, totals &total, accumulators &upper,
                           accumulators &lower, factors &f)
{
    int stage = f.stage;
    start_wave(lower, j, r, stage, WAVES - 1);
    multiply_wait<1>();
    promote(total[0], upper, f, j, 0, w.t.column);
    if (MORE) {
        await_next(j, r, w);
        start_wave(upper, j, r, r.next.stage, 0);
        multiply_wait<1>();
    } else {
        multiply_wait<0>();
    }
    promote(total[WAVES - 1], lower, f, j, WAVES - 1, w.t.column);
    if (MORE) {
        release(r, stage);
        load_factors(f, j, r);
    }
}

/* Two products in flight: both waves of a stage, each with its own part. */
CBN_INLINE void run_waves(const wgmma_args &p, const job &j, reader &r, walk &w, totals &total, factors &f)
{
    accumulators upper, lower;
    start_wave(upper, j, r, f.stage, 0);
    if constexpr (SPLIT == 1) {
        do
            turn_waves<true>(j, r, w, total, upper, lower, f);
        while (--w.left > 0 || end_tile(p, j, r, w, total));
    } else {
        for (; w.left > 1; w.left--)
            turn_waves<true>(j, r, w, total, upper, lower, f);
        turn_waves<false>(j, r, w, total, upper, lower, f);
        finish(p, j, r, total, w.t);
    }
}

CBN_INLINE void run_math(const wgmma_args &p, const job &j, int warp)
{
    if (MOVES_REGISTERS)
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(MATH_REGISTERS));
    reader r = {warp / 4, warp % 4, {0, 0}, j.first_group, 0, 0, 2 + WARPGROUPS + warp / 4};
    walk w = {j.first, 0, {0, 0}};
    totals total;
    factors f;
    set_release(j, r);
    pdl_wait();
    if (w.unit >= j.units)
        return;
    if (ALONG_K) {
        advance(r.next, r.warpgroup);
        r.group += r.warpgroup;
    }
    if (r.warpgroup == WARPGROUPS - 1)
        give_turn(r);
    begin_tile(p, j, r, w, total);
    barrier_wait(full_barrier(j, r.next.stage), r.next.parity);
    load_factors(f, j, r);
    if (PARTS == 1)
        run_single(p, j, r, w, total, f);
    else if (WAVES == 1)
        run_alternating(p, j, r, w, total, f);
    else
        run_waves(p, j, r, w, total, f);
    if (r.warpgroup == 0) /* the turn that nobody took */
        take_turn(r);
    if (STAGED && threadIdx.x % 32 == 0)
        store_wait();
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) cbn_fp8_wgmma(const __grid_constant__ wgmma_args p)
{
    extern __shared__ u8 memory[];
    /* The same for every lane, and the compiler shall know it: wgmma wants whole warps. */
    int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
    if (p.gemm.m_valid != 0)
        pdl_wait();
    job j = job_of(p, (shared_address(memory) + 1023) & ~1023u);
    bool cluster = SPLIT > 1 || j.ranks > 1;
    if (threadIdx.x == 0)
        init_barriers(j);
    __syncwarp();
    if (cluster)
        cluster_sync();
    else
        __syncthreads();
    if (warp >= MATH_WARPS)
        run_producer(p, j, warp - MATH_WARPS);
    else
        run_math(p, j, warp);
    if (cluster)
        cluster_sync();
}
