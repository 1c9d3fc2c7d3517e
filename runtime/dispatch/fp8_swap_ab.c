/*
 * The swap-AB kernels of fp8_gemm: how K is cut, how large the ring is, what the workspace holds. Pure.
 */
#include "dispatch/fp8_swap_ab.h"

#include "dispatch/builtin.h"
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
        FACT_PARAM(PDL, "pdl"), CONST_PARAM(VEC, 16), BUCKET_PARAM(WARPGROUPS, "warpgroups", warpgroups)

static const struct cbn_bucket warpgroups[] = {{1, 1}, {INT64_MAX, 2}};
static const struct cbn_bucket tokens[] = {{8, 8}, {16, 16}, {24, 24}, {32, 32}, {48, 48}, {INT64_MAX, 64}};
static const struct cbn_bucket depths[] = {{32, 2}, {INT64_MAX, 1}};
/* Scales of codes that this library makes are fp32. */
static const struct cbn_bucket formats[] = {{CBN_SCALE_FP32, CBN_SCALE_FP32}, {INT64_MAX, CBN_SCALE_UE8M0}};

const struct cbn_param cbn__swap_ab_params[CBN__SWAP_AB_PARAM_COUNT] = {
    COMMON_PARAMS,
    CONST_PARAM(IN, CBN_DTYPE_E4M3),
    BUCKET_PARAM(A_SCALE, "a_scale", formats),
    CONST_PARAM(POW2, 0),
    CONST_PARAM(PROPAGATE, 0),
    BUCKET_PARAM(BM, "m", tokens),
    BUCKET_PARAM(DEPTH, "m", depths),
};

const struct cbn_param cbn__swap_ab_fused_params[CBN__SWAP_AB_PARAM_COUNT] = {
    COMMON_PARAMS,
    FACT_PARAM(IN, "in"),
    CONST_PARAM(A_SCALE, CBN_SCALE_FP32),
    FACT_PARAM(POW2, "pow2"),
    FACT_PARAM(PROPAGATE, "propagate"),
    CONST_PARAM(BM, 8),
    CONST_PARAM(DEPTH, 2),
};

/* ---- how K is cut ---- */

static int64_t allowed_sms(const int64_t *facts)
{
    int64_t sms = FACT(facts, sms), max_sms = FACT(facts, max_sms);
    sms = max_sms > 0 && max_sms < sms ? max_sms : sms;
    return sms < 1 ? 1 : sms;
}

/*
 * Enough CTAs to keep every SM's share of the memory busy, at most two an SM, and slices of at least SLICE_MIN groups:
 * below that the sum over the cluster costs more than the shorter stream saves.
 */
#define SLICE_MIN 6
#define TOKEN_TILES 2 /* up to 128 tokens; within a budget of SMs, all their CTAs count */
#define SPLIT_MAX 8   /* the largest cluster that every device with clusters has */

static bool wants_more(int64_t split, int64_t tiles, int64_t groups, int64_t sms)
{
    bool idle = tiles * split * 4 < sms * 3 && groups / (split * 2) >= SLICE_MIN;
    return idle || cbn__geometry_ceil(groups, split) >= CBN__SWAP_AB_SLICE_END;
}

static int64_t choose_split(int64_t tiles, int64_t groups, int64_t sms)
{
    int64_t split = 1;
    while (split < SPLIT_MAX && split * 2 * TOKEN_TILES <= sms && wants_more(split, tiles, groups, sms))
        split *= 2;
    return split;
}

void cbn__gemm_derive(int64_t *facts)
{
    int64_t tiles = cbn__geometry_ceil(FACT(facts, n), TILE_ROWS), sms = allowed_sms(facts);
    int64_t groups = cbn__geometry_ceil(FACT(facts, k), CBN_GROUP_SIZE);
    int64_t split = choose_split(tiles, groups, sms);
    FACT(facts, split) = split;
    FACT(facts, slice) = cbn__geometry_ceil(groups, split);
    FACT(facts, warpgroups) = 1;
}

/* ---- geometry ---- */

static int64_t round_up(int64_t value, int64_t step)
{
    return cbn__geometry_product(cbn__geometry_ceil(value, step), step);
}

struct shared_need {
    int64_t fixed, stage, stages_max; /* stages_max: of one warpgroup, more are never filled */
};

/* The template lays these out in this order (fp8_swap_ab.cuh, struct layout). */
static struct shared_need shared_need_of(const int64_t *params, const int64_t *facts, int64_t tiles_per_cta)
{
    int64_t bm = params[CBN__SWAP_AB_BM], depth = params[CBN__SWAP_AB_DEPTH], groups = params[CBN__SWAP_AB_WARPGROUPS];
    int64_t slice = FACT(facts, slice), sources = FACT(facts, split) * groups;
    bool fused = params[CBN__SWAP_AB_IN] != CBN_DTYPE_E4M3;
    int64_t rows = params[CBN__SWAP_AB_W_GRAN] == CBN_GRAN_ROW ? TILE_ROWS : 1;
    struct shared_need need = {0};
    need.stage = depth * (TILE_ROWS + (fused ? 0 : bm)) * GROUP_BYTES;
    need.stages_max = cbn__geometry_ceil(cbn__geometry_ceil(slice, groups), depth) * tiles_per_cta;
    need.fixed = 1024; /* alignment */
    if (fused)
        need.fixed += round_up(slice + depth, depth) * bm * GROUP_BYTES;
    if (sources > 1)
        need.fixed += groups * TILE_ROWS * bm * 4;
    need.fixed += (slice + 4) * bm * 4;           /* activations' scales */
    need.fixed += 2 * (slice + 4) * rows * 4 + 32; /* weights' scales, of this tile and of the next */
    need.fixed += 64;                             /* barriers that are not of the ring */
    return need;
}

#define KIB INT64_C(1024)
#define SHARED_ONE (220 * KIB)  /* one CTA an SM */
#define SHARED_TWO (112 * KIB)  /* two: the next kernel's ring fills while this one runs */
#define SHARED_THREE (74 * KIB) /* three */

static int64_t shared_budget(int64_t ctas, int64_t sms)
{
    return ctas <= sms ? SHARED_TWO : SHARED_THREE;
}

void cbn__swap_ab_place(const int64_t *params, const int64_t *facts, struct cbn_geometry *ret_geometry)
{
    int64_t bm = params[CBN__SWAP_AB_BM], warpgroup_count = params[CBN__SWAP_AB_WARPGROUPS];
    int64_t tiles = cbn__geometry_ceil(FACT(facts, n), TILE_ROWS);
    int64_t split = FACT(facts, split) < 1 ? 1 : FACT(facts, split); /* 0: enumeration asks for any shape */
    int64_t token_tiles = FACT(facts, m) < 1 ? 1 : cbn__geometry_ceil(FACT(facts, m), bm), sms = allowed_sms(facts);
    bool bounded = FACT(facts, max_sms) > 0 && FACT(facts, max_sms) < FACT(facts, sms);
    int64_t limit = bounded ? sms / (split * token_tiles) : 2 * sms / split;
    int64_t rounds = cbn__geometry_ceil(tiles, limit < 1 ? 1 : limit);
    int64_t clusters = cbn__geometry_ceil(tiles, rounds < 1 ? 1 : rounds);
    struct shared_need need = shared_need_of(params, facts, rounds);
    int64_t budget = shared_budget(clusters * split, sms);
    if (budget < need.fixed + 2 * warpgroup_count * (need.stage + 16))
        budget = SHARED_ONE;
    int64_t stages = (budget - need.fixed) / (warpgroup_count * (need.stage + 16));
    if (stages > need.stages_max)
        stages = need.stages_max;
    if (stages < 1)
        stages = 1;
    *ret_geometry = (struct cbn_geometry){
        .grid = {(uint32_t)(clusters * split), (uint32_t)token_tiles, 1},
        .block = {(uint32_t)(128 * warpgroup_count + 32), 1, 1},
        .cluster = {(uint32_t)split, 1, 1},
        .shared_bytes = (uint32_t)(need.fixed + stages * warpgroup_count * (need.stage + 16)),
    };
    if (params[CBN__SWAP_AB_IN] == CBN_DTYPE_E4M3 && FACT(facts, in) != CBN_DTYPE_E4M3)
        ret_geometry->workspace_bytes = (uint64_t)cbn__gemm_workspace_of(FACT(facts, m), FACT(facts, k)).bytes;
}

/* ---- what the launch asks ---- */

bool cbn__gemm_takes_maps(const struct cbn__candidate *candidate)
{
    return candidate->template.argument_bytes == sizeof(struct cbn__swap_ab_args);
}

bool cbn__gemm_quantizes_first(const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    return cbn__gemm_takes_maps(candidate) && params[CBN__SWAP_AB_IN] == CBN_DTYPE_E4M3 &&
           FACT(facts, in) != CBN_DTYPE_E4M3;
}

void cbn__swap_ab_boxes(const int64_t *params, uint32_t *ret_depth, uint32_t *ret_rows)
{
    *ret_depth = (uint32_t)params[CBN__SWAP_AB_DEPTH];
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
