/*
 * The swap-AB kernels of fp8_gemm: how K is cut, how large the ring is, what the workspace holds. Pure.
 */
#include "dispatch/fp8_swap_ab.h"

#include "dispatch/builtin.h"
#include "dispatch/fp8_wgmma.h"
#include "dispatch/geometry.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FACT(facts, name) ((facts)[CBN__GEMM_FACT_##name])

#define TILE_ROWS 64   /* of W */
#define GROUP_BYTES 128 /* of K in codes, for one row */
#define WORKSPACE_ALIGN 256

_Static_assert(sizeof(struct cbn__swap_ab_args) == 192 + 4 * 128, "templates/fp8_args.cuh");
_Static_assert(offsetof(struct cbn__swap_ab_args, w) == 192, "templates/fp8_args.cuh");

/* ---- parameters ---- */

#define FACT_PARAM(parameter, fact_name)                                                                               \
    [CBN__SWAP_AB_##parameter] = {.name = #parameter, .source = CBN_PARAM_FACT, .fact = fact_name}
#define CONST_PARAM(parameter, constant)                                                                               \
    [CBN__SWAP_AB_##parameter] = {.name = #parameter, .source = CBN_PARAM_CONST, .value = constant}
#define BUCKET_PARAM(parameter, fact_name, table)                                                                      \
    [CBN__SWAP_AB_##parameter] = {.name = #parameter,                                                                  \
                                  .source = CBN_PARAM_BUCKET,                                                          \
                                  .bucket_count = COUNT(table),                                                        \
                                  .fact = fact_name,                                                                   \
                                  .buckets = table}
#define COMMON_PARAMS                                                                                                  \
    FACT_PARAM(OUT, "out"), FACT_PARAM(W_SCALE, "w_scale"), FACT_PARAM(W_GRAN, "w_gran"), FACT_PARAM(BIAS, "bias"),    \
        FACT_PARAM(PDL, "pdl"), CONST_PARAM(VEC, 16)

static const struct cbn_bucket tokens[] = {{8, 8}, {16, 16}, {24, 24}, {32, 32}, {48, 48}, {INT64_MAX, 64}};
static const struct cbn_bucket deep[] = {{0, 0}, {INT64_MAX, 1}};
/* Scales of codes that this library makes are fp32. */
static const struct cbn_bucket formats[] = {{CBN_SCALE_FP32, CBN_SCALE_FP32}, {INT64_MAX, CBN_SCALE_UE8M0}};

const struct cbn_param cbn__swap_ab_params[CBN__SWAP_AB_PARAM_COUNT] = {
    COMMON_PARAMS,
    CONST_PARAM(IN, CBN_DTYPE_E4M3),
    BUCKET_PARAM(A_SCALE, "a_scale", formats),
    CONST_PARAM(POW2, 0),
    CONST_PARAM(PROPAGATE, 0),
    BUCKET_PARAM(BM, "m", tokens),
    BUCKET_PARAM(DEEP, "deep", deep),
};

const struct cbn_param cbn__swap_ab_fused_params[CBN__SWAP_AB_PARAM_COUNT] = {
    COMMON_PARAMS,
    FACT_PARAM(IN, "in"),
    CONST_PARAM(A_SCALE, CBN_SCALE_FP32),
    FACT_PARAM(POW2, "pow2"),
    FACT_PARAM(PROPAGATE, "propagate"),
    CONST_PARAM(BM, 8),
    CONST_PARAM(DEEP, 0),
};

/* ---- how K is cut ---- */

static int64_t allowed_sms(const int64_t *facts)
{
    int64_t sms = FACT(facts, sms), max_sms = FACT(facts, max_sms);
    sms = max_sms > 0 && max_sms < sms ? max_sms : sms;
    return sms < 1 ? 1 : sms;
}

/*
 * An SM takes in about 22 bytes a cycle whatever is in flight (measured on an H200: layers whose CTAs lie unevenly on the
 * SMs took 379 cycles a group of the busiest SM), so the busiest SM's groups decide. A CTA costs about a group and a half
 * more, and one that is alone on its SM four besides, which others would hide. More CTAs must gain 12 %: they exchange
 * more. Doubled, to stay in integers.
 */
static int64_t busiest_groups(int64_t tiles, int64_t groups, int64_t split, int64_t sms)
{
    int64_t ctas = cbn__geometry_ceil(cbn__geometry_product(tiles, split), sms);
    int64_t cost = cbn__geometry_product(ctas, 2 * cbn__geometry_ceil(groups, split) + 3);
    return ctas == 1 ? cost + 8 : cost;
}

#define SLICE_MIN 6   /* below, the sum over the cluster costs more than the shorter stream saves */
#define TOKEN_TILES 2 /* up to 128 tokens; within a budget of SMs, all their CTAs count */
#define SPLIT_MAX 8   /* the largest cluster that every device with clusters has */
#define SLICE_LONG 40 /* groups */

/*
 * Clusters that run at once with so many CTAs an SM: all of two, of more what fits the GPCs, about ten elevenths (measured
 * on an H200 for 4 and 8: 30 and 15 with one CTA an SM, 62 and 30 with two, 92 and 45 with three).
 */
static int64_t resident_clusters(int64_t split, int64_t per_sm, int64_t sms)
{
    int64_t usable = split > 2 ? sms * 10 / 11 : sms;
    int64_t clusters = usable * per_sm / split;
    return clusters < 1 ? 1 : clusters;
}

/* Over SLICE_LONG groups up to clusters of four, and whatever shared memory could not hold the scales of. */
static bool is_long(int64_t groups, int64_t split)
{
    int64_t slice = cbn__geometry_ceil(groups, split);
    return slice >= CBN__SWAP_AB_SLICE_END || (split < 4 && slice > SLICE_LONG);
}

#define KIB INT64_C(1024)
#define SHARED_ONE (220 * KIB)  /* one CTA an SM */
#define SHARED_TWO (112 * KIB)  /* two: the next kernel's ring fills while this one runs */
#define SHARED_THREE (74 * KIB) /* three */
#define SLICE_SHORT 20          /* groups: a ring of SHARED_TWO holds most of them */
#define SLICE_TINY 8            /* groups: a CTA's start and end show, unless another one works meanwhile */

struct cut {
    int64_t clusters, rounds, shared_bytes;
};

static struct cut stride_over(int64_t tiles, int64_t limit, int64_t shared_bytes)
{
    int64_t rounds = cbn__geometry_ceil(tiles, limit < 1 ? 1 : limit);
    rounds = rounds < 1 ? 1 : rounds;
    return (struct cut){cbn__geometry_ceil(tiles, rounds), rounds, shared_bytes};
}

/*
 * All tiles at once, in as many CTAs an SM as they need. More than fit stride over the tiles where that leaves few SMs
 * without a cluster, and are left to the hardware's waves where it would.
 */
static struct cut cut_of(int64_t tiles, int64_t split, int64_t slice, int64_t sms)
{
    if (tiles <= resident_clusters(split, 1, sms))
        return (struct cut){tiles, 1, slice <= SLICE_SHORT ? SHARED_TWO : SHARED_ONE};
    if (tiles <= resident_clusters(split, 3, sms))
        return (struct cut){tiles, 1, SHARED_THREE};
    if (slice <= SLICE_TINY)
        return stride_over(tiles, resident_clusters(split, 2, sms), SHARED_THREE);
    int64_t limit = resident_clusters(split, split < 4 ? 3 : 2, sms);
    struct cut cut = stride_over(tiles, limit, split < 4 ? SHARED_THREE : SHARED_TWO);
    return cut.clusters * 10 >= limit * 9 ? cut : (struct cut){tiles, 1, SHARED_THREE};
}

/*
 * The cost of a split, as busiest_groups counts it, and whether it beats another: striding exchanges no more for it. With
 * clusters of four and more, fill the places or be costed as waves: idle SMs weigh more than the count of groups says.
 */
static int64_t cost_of(int64_t tiles, int64_t groups, int64_t split, int64_t sms, bool *ret_strides)
{
    int64_t slice = cbn__geometry_ceil(groups, split);
    struct cut cut = cut_of(tiles, split, slice, sms);
    bool fills = split < 4 || cut.clusters * 20 >= resident_clusters(split, 2, sms) * 19;
    *ret_strides = cut.rounds > 1 && slice > SLICE_TINY && fills;
    if (!*ret_strides)
        return busiest_groups(tiles, groups, split, sms);
    return cbn__geometry_product(cut.shared_bytes == SHARED_TWO ? 2 : 3,
                                 2 * cbn__geometry_product(cut.rounds, slice) + 3);
}

static bool gains(int64_t cost, int64_t best, bool strides)
{
    return strides ? cbn__geometry_product(cost, 50) < cbn__geometry_product(best, 49)
                   : cbn__geometry_product(cost, 25) < cbn__geometry_product(best, 22);
}

/* Long slices lie unevenly on the SMs at the end; clusters of eight pay where all of them run at once. */
static int64_t choose_split(int64_t tiles, int64_t groups, int64_t sms)
{
    int64_t best = 1;
    bool strides;
    while (best < SPLIT_MAX && best * 2 * TOKEN_TILES <= sms && is_long(groups, best))
        best *= 2;
    int64_t best_cost = cost_of(tiles, groups, best, sms, &strides);
    for (int64_t split = best * 2; split <= SPLIT_MAX && split * TOKEN_TILES <= sms; split *= 2) {
        int64_t cost = cost_of(tiles, groups, split, sms, &strides);
        bool fits = split < SPLIT_MAX || tiles <= resident_clusters(split, 3, sms);
        if (groups / split < SLICE_MIN || !gains(cost, best_cost, strides) || !fits)
            continue;
        best = split;
        best_cost = cost;
    }
    return best;
}

static bool is_bounded(const int64_t *facts)
{
    return FACT(facts, max_sms) > 0 && FACT(facts, max_sms) < FACT(facts, sms);
}

static enum cbn__swap_ab_room room_of(int64_t tiles, int64_t split, int64_t slice, int64_t sms)
{
    struct cut cut = cut_of(tiles, split, slice, sms);
    if (cut.rounds > 1)
        return CBN__ROOM_STRIDED;
    return cut.shared_bytes == SHARED_THREE ? CBN__ROOM_SHARED : CBN__ROOM_ALONE;
}

/*
 * Measured on an H200. Up to 16 tokens, four groups a stage gain 4-9 % over two where a CTA alone on its SM has its whole
 * share in the ring, or a long one in SHARED_ONE; of 16 tokens they are too large for SHARED_TWO. Up to 32 tokens, two
 * are better than one unless rings are small.
 */
static bool is_deep(const int64_t *facts)
{
    int64_t m = FACT(facts, m), slice = FACT(facts, slice), room = FACT(facts, room);
    bool tiny = slice <= SLICE_TINY;
    if (m <= 16)
        return room == CBN__ROOM_ALONE && slice > SLICE_TINY - 2 && (tiny || slice > SLICE_SHORT || m <= 8);
    return m <= 32 && (room == CBN__ROOM_STRIDED ? !tiny : room != CBN__ROOM_SHARED);
}

bool cbn__gemm_can_be(const int64_t *facts)
{
    return (!FACT(facts, deep) || FACT(facts, m) <= 32) && cbn__wgmma_can_be(facts);
}

void cbn__gemm_derive_rows(int64_t *facts)
{
    FACT(facts, deep) = is_deep(facts);
    FACT(facts, tile) = FACT(facts, m) > CBN__WGMMA_STEP ? cbn__wgmma_choose(facts) : FACT(facts, few_tile);
}

/* The choice takes a quarter of a microsecond, and a run of few tokens has no use for it. */
static int64_t few_tile_of(int64_t *facts)
{
    int64_t m = FACT(facts, m);
    FACT(facts, m) = 1;
    int64_t tile = cbn__wgmma_choose(facts);
    FACT(facts, m) = m;
    return tile;
}

void cbn__gemm_derive(int64_t *facts)
{
    int64_t tiles = cbn__geometry_ceil(FACT(facts, n), TILE_ROWS), sms = allowed_sms(facts);
    int64_t groups = cbn__geometry_ceil(FACT(facts, k), CBN_GROUP_SIZE);
    int64_t split = choose_split(tiles, groups, sms), slice = cbn__geometry_ceil(groups, split);
    FACT(facts, split) = split;
    FACT(facts, slice) = slice;
    FACT(facts, room) = is_bounded(facts) ? CBN__ROOM_BOUNDED : room_of(tiles, split, slice, sms);
    FACT(facts, few_tile) = few_tile_of(facts);
    cbn__gemm_derive_rows(facts);
}

/* ---- geometry ---- */

static int64_t round_up(int64_t value, int64_t step)
{
    return cbn__geometry_product(cbn__geometry_ceil(value, step), step);
}

/* As in the template. */
static int64_t stage_groups(const int64_t *params)
{
    int64_t bm = params[CBN__SWAP_AB_BM];
    return bm > 32 ? 1 : (bm > 16 ? 1 : 2) << params[CBN__SWAP_AB_DEEP];
}

struct shared_need {
    int64_t fixed, stage, stages_max; /* more stages are never filled */
};

/* The template lays these out in this order (fp8_swap_ab.cuh, struct layout). */
static struct shared_need shared_need_of(const int64_t *params, const int64_t *facts, int64_t tiles_per_cta)
{
    int64_t bm = params[CBN__SWAP_AB_BM], depth = stage_groups(params), slice = FACT(facts, slice);
    bool fused = params[CBN__SWAP_AB_IN] != CBN_DTYPE_E4M3;
    int64_t rows = params[CBN__SWAP_AB_W_GRAN] == CBN_GRAN_ROW ? TILE_ROWS : 1;
    struct shared_need need = {0};
    need.stage = depth * (TILE_ROWS + (fused ? 0 : bm)) * GROUP_BYTES + 16; /* two barriers */
    need.stages_max = cbn__geometry_product(cbn__geometry_ceil(slice, depth), tiles_per_cta);
    need.fixed = 1024; /* alignment */
    if (fused)
        need.fixed += round_up(slice + depth, depth) * bm * GROUP_BYTES;
    if (FACT(facts, split) > 1)
        need.fixed += TILE_ROWS * bm * 4; /* what other CTAs send */
    else if (params[CBN__SWAP_AB_OUT] != CBN_DTYPE_FP32)
        need.fixed += TILE_ROWS * bm * 2; /* output on its way */
    need.fixed += (slice + 4) * bm * 4;            /* activations' scales */
    need.fixed += 2 * (slice + 4) * rows * 4 + 32; /* weights' scales, of this tile and of the next */
    need.fixed += 64;                              /* barriers that are not of the ring */
    return need;
}

/* Four math warps and the producer; four helpers where codes are made inside. */
static uint32_t threads_of(const int64_t *params)
{
    return params[CBN__SWAP_AB_IN] == CBN_DTYPE_E4M3 ? 160 : 288;
}

void cbn__swap_ab_place(const int64_t *params, const int64_t *facts, struct cbn_geometry *ret_geometry)
{
    int64_t tiles = cbn__geometry_ceil(FACT(facts, n), TILE_ROWS), sms = allowed_sms(facts);
    int64_t split = FACT(facts, split) < 1 ? 1 : FACT(facts, split); /* 0: enumeration asks for any shape */
    int64_t token_tiles = FACT(facts, m) < 1 ? 1 : cbn__geometry_ceil(FACT(facts, m), params[CBN__SWAP_AB_BM]);
    struct cut cut = is_bounded(facts) ? stride_over(tiles, sms / (split * token_tiles), SHARED_ONE)
                                       : cut_of(tiles, split, FACT(facts, slice), sms);
    if (params[CBN__SWAP_AB_BM] > 32 && cut.shared_bytes == SHARED_ONE && !is_bounded(facts))
        cut.shared_bytes = SHARED_TWO; /* two kernels at once hide more than a longer ring does */
    struct shared_need need = shared_need_of(params, facts, cut.rounds);
    if (cut.shared_bytes < need.fixed + 2 * need.stage)
        cut.shared_bytes = SHARED_ONE;
    int64_t stages = (cut.shared_bytes - need.fixed) / need.stage;
    if (stages > need.stages_max)
        stages = need.stages_max;
    if (stages < 1)
        stages = 1;
    *ret_geometry = (struct cbn_geometry){
        .grid = {(uint32_t)(cut.clusters * split), (uint32_t)token_tiles, 1},
        .block = {threads_of(params), 1, 1},
        .cluster = {(uint32_t)split, 1, 1},
        .shared_bytes = (uint32_t)(need.fixed + stages * need.stage),
    };
    if (params[CBN__SWAP_AB_IN] == CBN_DTYPE_E4M3 && FACT(facts, in) != CBN_DTYPE_E4M3)
        ret_geometry->workspace_bytes = (uint64_t)cbn__gemm_workspace_of(FACT(facts, m), FACT(facts, k)).bytes;
}

/* ---- what the launch asks ---- */

/*
 * At the top, three kernels of a chain are on the SMs at once, and CTAs of one may lie two on one SM and none on the
 * next. After the wait there are two: 3-15 % faster (measured on an H200), except where just one CTA of each fits on an
 * SM (SHARED_TWO) and where CTAs stride over short shares: there dependents had better come at once, or, with many
 * tokens and no quantiser between, when this kernel has nothing left to load.
 */
uint64_t cbn__swap_ab_trigger(const int64_t *params, const int64_t *facts)
{
    int64_t slice = FACT(facts, slice), room = FACT(facts, room), bm = params[CBN__SWAP_AB_BM];
    bool tiny = slice <= SLICE_TINY, many = bm > 32, quantizer = FACT(facts, in) != CBN_DTYPE_E4M3;
    switch (room) {
    case CBN__ROOM_SHARED:
        return CBN__TRIGGER_WAITED;
    case CBN__ROOM_STRIDED:
        return tiny ? CBN__TRIGGER_TOP : CBN__TRIGGER_WAITED;
    case CBN__ROOM_ALONE:
        if (tiny || (slice > SLICE_SHORT && !many) || (quantizer && bm > 16 && !many))
            return CBN__TRIGGER_WAITED;
        break;
    default:
        break;
    }
    return many ? CBN__TRIGGER_LOADED : CBN__TRIGGER_TOP;
}

bool cbn__gemm_takes_maps(const struct cbn__candidate *candidate)
{
    return candidate->template.argument_bytes == sizeof(struct cbn__swap_ab_args) || cbn__gemm_is_wgmma(candidate);
}

bool cbn__gemm_is_wgmma(const struct cbn__candidate *candidate)
{
    return candidate->template.argument_bytes == sizeof(struct cbn__wgmma_args);
}

bool cbn__gemm_quantizes_first(const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    return cbn__gemm_takes_maps(candidate) && params[CBN__SWAP_AB_IN] == CBN_DTYPE_E4M3 &&
           FACT(facts, in) != CBN_DTYPE_E4M3;
}

void cbn__swap_ab_boxes(const int64_t *params, uint32_t *ret_depth, uint32_t *ret_rows)
{
    *ret_depth = (uint32_t)stage_groups(params);
    *ret_rows = (uint32_t)params[CBN__SWAP_AB_BM];
}

struct cbn__gemm_workspace cbn__gemm_workspace_of(int64_t m, int64_t k)
{
    struct cbn__gemm_workspace workspace = {.row_bytes = round_up(k, 16), .scales_stride = round_up(m, 4)};
    workspace.scales_offset = round_up(cbn__geometry_product(m, workspace.row_bytes), WORKSPACE_ALIGN);
    int64_t scales = cbn__geometry_product(cbn__geometry_product(cbn__geometry_ceil(k, CBN_GROUP_SIZE), 4),
                                           workspace.scales_stride);
    if (__builtin_add_overflow(workspace.scales_offset, scales, &workspace.bytes))
        workspace.bytes = INT64_MAX;
    return workspace;
}

void cbn__gemm_quantize_facts(const int64_t *facts, int64_t *ret)
{
    ret[CBN__QUANTIZE_FACT_t] = FACT(facts, m);
    ret[CBN__QUANTIZE_FACT_g] = 0;
    ret[CBN__QUANTIZE_FACT_k] = FACT(facts, k);
    ret[CBN__QUANTIZE_FACT_in] = FACT(facts, in);
    ret[CBN__QUANTIZE_FACT_scale] = CBN_SCALE_FP32;
    ret[CBN__QUANTIZE_FACT_pow2] = FACT(facts, pow2);
    ret[CBN__QUANTIZE_FACT_propagate] = FACT(facts, propagate);
    ret[CBN__QUANTIZE_FACT_approx] = 0;
    ret[CBN__QUANTIZE_FACT_align] = FACT(facts, align);
    ret[CBN__QUANTIZE_FACT_pdl] = FACT(facts, pdl);
    ret[CBN__QUANTIZE_FACT_arch] = FACT(facts, arch);
    ret[CBN__QUANTIZE_FACT_sms] = FACT(facts, sms);
    ret[CBN__QUANTIZE_FACT_max_sms] = FACT(facts, max_sms);
}
