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

static int64_t choose_split(int64_t tiles, int64_t groups, int64_t sms)
{
    int64_t best = 1, best_cost = busiest_groups(tiles, groups, 1, sms);
    for (int64_t split = 2; split <= SPLIT_MAX && split * TOKEN_TILES <= sms; split *= 2) {
        bool too_long = cbn__geometry_ceil(groups, best) >= CBN__SWAP_AB_SLICE_END;
        int64_t cost = busiest_groups(tiles, groups, split, sms);
        bool gains = cbn__geometry_product(cost, 25) < cbn__geometry_product(best_cost, 22);
        if (!too_long && (groups / split < SLICE_MIN || !gains))
            continue;
        best = split;
        best_cost = cost;
    }
    return best;
}

void cbn__gemm_derive(int64_t *facts)
{
    int64_t tiles = cbn__geometry_ceil(FACT(facts, n), TILE_ROWS), sms = allowed_sms(facts);
    int64_t groups = cbn__geometry_ceil(FACT(facts, k), CBN_GROUP_SIZE);
    int64_t split = choose_split(tiles, groups, sms);
    FACT(facts, split) = split;
    FACT(facts, slice) = cbn__geometry_ceil(groups, split);
    cbn__gemm_derive_rows(facts);
}

void cbn__gemm_derive_rows(int64_t *facts)
{
    FACT(facts, tile) = cbn__wgmma_choose(facts);
}

/* ---- geometry ---- */

static int64_t round_up(int64_t value, int64_t step)
{
    return cbn__geometry_product(cbn__geometry_ceil(value, step), step);
}

struct shared_need {
    int64_t fixed, stage, stages_max; /* more stages are never filled */
};

/* The template lays these out in this order (fp8_swap_ab.cuh, struct layout). */
static struct shared_need shared_need_of(const int64_t *params, const int64_t *facts, int64_t tiles_per_cta)
{
    int64_t bm = params[CBN__SWAP_AB_BM], depth = params[CBN__SWAP_AB_DEPTH], slice = FACT(facts, slice);
    bool fused = params[CBN__SWAP_AB_IN] != CBN_DTYPE_E4M3;
    int64_t rows = params[CBN__SWAP_AB_W_GRAN] == CBN_GRAN_ROW ? TILE_ROWS : 1;
    struct shared_need need = {0};
    need.stage = depth * (TILE_ROWS + (fused ? 0 : bm)) * GROUP_BYTES + 16; /* two barriers */
    need.stages_max = cbn__geometry_product(cbn__geometry_ceil(slice, depth), tiles_per_cta);
    need.fixed = 1024; /* alignment */
    if (fused)
        need.fixed += round_up(slice + depth, depth) * bm * GROUP_BYTES;
    if (FACT(facts, split) > 1)
        need.fixed += TILE_ROWS * bm * 4;
    need.fixed += (slice + 4) * bm * 4;            /* activations' scales */
    need.fixed += 2 * (slice + 4) * rows * 4 + 32; /* weights' scales, of this tile and of the next */
    need.fixed += 64;                              /* barriers that are not of the ring */
    return need;
}

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

#define KIB INT64_C(1024)
#define SHARED_ONE (220 * KIB)  /* one CTA an SM */
#define SHARED_TWO (112 * KIB)  /* two: the next kernel's ring fills while this one runs */
#define SHARED_THREE (74 * KIB) /* three */
#define SLICE_SHORT 20          /* groups: a ring of SHARED_TWO holds most of them */
#define SLICE_LONG 40           /* groups: three small rings an SM would lag behind two larger ones */
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

/* All tiles at once where they fit the SMs, else clusters that stride over them. */
static struct cut cut_of(int64_t tiles, int64_t split, int64_t slice, int64_t sms)
{
    if (tiles <= resident_clusters(split, 1, sms))
        return (struct cut){tiles, 1, slice <= SLICE_SHORT ? SHARED_TWO : SHARED_ONE};
    if (tiles <= resident_clusters(split, 2, sms))
        return (struct cut){tiles, 1, slice > SLICE_LONG ? SHARED_TWO : SHARED_THREE};
    if (tiles <= resident_clusters(split, 3, sms))
        return (struct cut){tiles, 1, SHARED_THREE};
    if (slice <= SLICE_TINY)
        return stride_over(tiles, resident_clusters(split, 2, sms), SHARED_THREE);
    return stride_over(tiles, resident_clusters(split, 1, sms), SHARED_ONE);
}

void cbn__swap_ab_place(const int64_t *params, const int64_t *facts, struct cbn_geometry *ret_geometry)
{
    int64_t tiles = cbn__geometry_ceil(FACT(facts, n), TILE_ROWS), sms = allowed_sms(facts);
    int64_t split = FACT(facts, split) < 1 ? 1 : FACT(facts, split); /* 0: enumeration asks for any shape */
    int64_t token_tiles = FACT(facts, m) < 1 ? 1 : cbn__geometry_ceil(FACT(facts, m), params[CBN__SWAP_AB_BM]);
    bool bounded = FACT(facts, max_sms) > 0 && FACT(facts, max_sms) < FACT(facts, sms);
    struct cut cut = bounded ? stride_over(tiles, sms / (split * token_tiles), SHARED_ONE)
                             : cut_of(tiles, split, FACT(facts, slice), sms);
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
        .block = {128 + 32, 1, 1},
        .cluster = {(uint32_t)split, 1, 1},
        .shared_bytes = (uint32_t)(need.fixed + stages * need.stage),
    };
    if (params[CBN__SWAP_AB_IN] == CBN_DTYPE_E4M3 && FACT(facts, in) != CBN_DTYPE_E4M3)
        ret_geometry->workspace_bytes = (uint64_t)cbn__gemm_workspace_of(FACT(facts, m), FACT(facts, k)).bytes;
}

/* ---- what the launch asks ---- */

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
