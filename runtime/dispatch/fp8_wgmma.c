/*
 * wgmma of fp8_gemm: which tile a product is cut into, how many CTAs run, how large the ring is. Pure.
 */
#include "dispatch/fp8_wgmma.h"

#include "dispatch/builtin.h"
#include "dispatch/fp8_swap_ab.h"
#include "dispatch/geometry.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FACT(facts, name) ((facts)[CBN__GEMM_FACT_##name])

_Static_assert(sizeof(struct cbn__wgmma_args) == 192 + 5 * 128, "templates/fp8_args.cuh");
_Static_assert(offsetof(struct cbn__wgmma_args, share) == 152 && offsetof(struct cbn__wgmma_args, a) == 192,
               "templates/fp8_args.cuh");
_Static_assert(sizeof(struct cbn__wgmma_args) != sizeof(struct cbn__swap_ab_args), "told apart by their size");
_Static_assert((int)CBN__WGMMA_IN == (int)CBN__SWAP_AB_IN, "cbn__gemm_quantizes_first reads either");

/* ---- tiles ---- */

/*
 * The parameters of a tile, which forms it is for, and what it costs, in ns on an H200, fitted to measurements of 7
 * (N, K) at M from 96 to 4096: group: of 128 of K, with one CTA for itself and with two that copy A's rows together;
 * finish: sums, output and the next tile's start; start: of the kernel, once.
 */
struct tile {
    int32_t bm, bn, warpgroups, along_k, parts, split, resident, order, trigger; /* the template's parameters */
    int32_t only_plain; /* other forms, see is_plain, would spill registers */
    int32_t group[2], finish, start;
};

#define TILE_MAP(X)                                                                                                    \
    X(128, 64, 2, 0, 1, 1, 1, 1, 0, 0, 258, 223, 733, 2374)                                                            \
    X(128, 64, 2, 0, 1, 2, 1, 1, 0, 0, 262, 231, 3174, 503)                                                            \
    X(128, 96, 2, 0, 2, 1, 1, 1, 0, 0, 303, 263, 504, 2911)                                                            \
    X(128, 96, 2, 0, 1, 2, 1, 0, 1, 0, 290, 244, 2835, 1896)                                                           \
    X(128, 96, 2, 0, 2, 4, 1, 0, 0, 0, 335, 323, 2800, 828)                                                            \
    X(128, 128, 2, 0, 1, 1, 1, 0, 0, 0, 342, 305, 551, 2931)                                                           \
    X(128, 128, 2, 0, 2, 1, 1, 1, 0, 1, 348, 308, 521, 2628)                                                           \
    X(128, 128, 2, 0, 1, 2, 1, 0, 0, 0, 360, 330, 4374, 500)                                                           \
    X(128, 160, 2, 0, 1, 1, 1, 1, 0, 0, 409, 380, 773, 2823)                                                           \
    X(128, 160, 2, 0, 1, 2, 1, 1, 0, 0, 433, 405, 3023, 2400)                                                          \
    X(128, 192, 2, 0, 1, 1, 1, 1, 0, 0, 454, 429, 1087, 2906)                                                          \
    X(256, 128, 2, 0, 1, 1, 1, 0, 0, 1, 562, 534, 1688, 2990)

static const struct tile tiles[] = {
#define X(bm, bn, wg, ak, parts, split, res, order, trigger, plain, alone, shared, finish, start)                      \
    {bm, bn, wg, ak, parts, split, res, order, trigger, plain, {alone, shared}, finish, start},
    TILE_MAP(X)
#undef X
};

#define NUMBER(bm, bn, wg, ak, parts, split, res) TILE_##bm##_##bn##_##wg##_##ak##_##parts##_##split##_##res

enum tile_number {
#define X(bm, bn, wg, ak, parts, split, res, ...) NUMBER(bm, bn, wg, ak, parts, split, res),
    TILE_MAP(X)
#undef X
        TILE_COUNT
};

/* Up to one step, where another candidate takes the call. For every form, as an enumeration counts on. */
#define FEW_ROWS TILE_128_64_2_0_1_1_1

_Static_assert(FEW_ROWS == 0, "what an enumeration takes where a candidate does not ask for the tile");

#define LOAD_PER_MILLE 393 /* a group takes so much longer when all SMs load at once */
#define DRAM_BYTES_PER_NS 4210
#define RANKS_MAX 2

/* ---- parameters ---- */

#define FACT_PARAM(parameter, fact_name)                                                                               \
    [CBN__WGMMA_##parameter] = {.name = #parameter, .source = CBN_PARAM_FACT, .fact = fact_name}
#define CONST_PARAM(parameter, constant)                                                                               \
    [CBN__WGMMA_##parameter] = {.name = #parameter, .source = CBN_PARAM_CONST, .value = constant}
#define BUCKET_PARAM(parameter, fact_name, table)                                                                      \
    [CBN__WGMMA_##parameter] = {.name = #parameter,                                                                    \
                                .source = CBN_PARAM_BUCKET,                                                            \
                                .bucket_count = COUNT(table),                                                          \
                                .fact = fact_name,                                                                     \
                                .buckets = table}

/* Scales of codes that this library makes are fp32. */
static const struct cbn_bucket formats[] = {{CBN_SCALE_FP32, CBN_SCALE_FP32}, {INT64_MAX, CBN_SCALE_UE8M0}};

/* A bucket a tile; the last ends where buckets must. */
#define UPPER(number) (number) == TILE_COUNT - 1 ? INT64_MAX : (number)
#define BUCKET(number, value) {UPPER(number), value},
#define X(bm, bn, wg, ak, parts, split, res, ...) BUCKET(NUMBER(bm, bn, wg, ak, parts, split, res), bm)
static const struct cbn_bucket bms[] = {TILE_MAP(X)};
#undef X
#define X(bm, bn, wg, ak, parts, split, res, ...) BUCKET(NUMBER(bm, bn, wg, ak, parts, split, res), bn)
static const struct cbn_bucket bns[] = {TILE_MAP(X)};
#undef X
#define X(bm, bn, wg, ak, parts, split, res, ...) BUCKET(NUMBER(bm, bn, wg, ak, parts, split, res), wg)
static const struct cbn_bucket warpgroups_of[] = {TILE_MAP(X)};
#undef X
#define X(bm, bn, wg, ak, parts, split, res, ...) BUCKET(NUMBER(bm, bn, wg, ak, parts, split, res), ak)
static const struct cbn_bucket along_ks[] = {TILE_MAP(X)};
#undef X
#define X(bm, bn, wg, ak, parts, split, res, ...) BUCKET(NUMBER(bm, bn, wg, ak, parts, split, res), parts)
static const struct cbn_bucket parts_of[] = {TILE_MAP(X)};
#undef X
#define X(bm, bn, wg, ak, parts, split, res, ...) BUCKET(NUMBER(bm, bn, wg, ak, parts, split, res), split)
static const struct cbn_bucket splits[] = {TILE_MAP(X)};
#undef X
#define X(bm, bn, wg, ak, parts, split, res, ...) BUCKET(NUMBER(bm, bn, wg, ak, parts, split, res), res)
static const struct cbn_bucket residents[] = {TILE_MAP(X)};
#undef X
#define X(bm, bn, wg, ak, parts, split, res, order, ...) BUCKET(NUMBER(bm, bn, wg, ak, parts, split, res), order)
static const struct cbn_bucket orders[] = {TILE_MAP(X)};
#undef X
#define X(bm, bn, wg, ak, parts, split, res, order, trigger, ...)                                                      \
    BUCKET(NUMBER(bm, bn, wg, ak, parts, split, res), trigger)
static const struct cbn_bucket triggers[] = {TILE_MAP(X)};
#undef X

const struct cbn_param cbn__wgmma_params[CBN__WGMMA_PARAM_COUNT] = {
    CONST_PARAM(IN, CBN_DTYPE_E4M3),
    FACT_PARAM(OUT, "out"),
    BUCKET_PARAM(A_SCALE, "a_scale", formats),
    FACT_PARAM(W_SCALE, "w_scale"),
    FACT_PARAM(W_GRAN, "w_gran"),
    FACT_PARAM(BIAS, "bias"),
    FACT_PARAM(PDL, "pdl"),
    CONST_PARAM(VEC, 16),
    BUCKET_PARAM(BM, "tile", bms),
    BUCKET_PARAM(BN, "tile", bns),
    BUCKET_PARAM(WARPGROUPS, "tile", warpgroups_of),
    BUCKET_PARAM(ALONG_K, "tile", along_ks),
    BUCKET_PARAM(PARTS, "tile", parts_of),
    BUCKET_PARAM(SPLIT, "tile", splits),
    BUCKET_PARAM(RESIDENT, "tile", residents),
    BUCKET_PARAM(ORDER, "tile", orders),
    BUCKET_PARAM(TRIGGER, "tile", triggers),
};

/* ---- the choice ---- */

/* A product as the choice sees it: small enough for 32 bits apart from bytes. */
struct product {
    uint32_t rows, columns, groups, sms;
    int64_t dram_ns;   /* of all bytes, once */
    uint32_t cta_load; /* by how much an active CTA lengthens a group, in 2^-24 */
    bool bounded;      /* sms is a budget that no grid may exceed */
};

static uint32_t clamp(int64_t value, int64_t low, int64_t high)
{
    return (uint32_t)(value < low ? low : value > high ? high : value);
}

#define GROUPS_MAX (INT64_C(1) << 20)
#define SMS_MAX 4096

static struct product product_of(const int64_t *facts)
{
    int64_t sms = FACT(facts, sms), max_sms = FACT(facts, max_sms);
    struct product product = {.bounded = max_sms > 0 && max_sms < sms};
    product.sms = clamp(product.bounded ? max_sms : sms, 1, SMS_MAX);
    product.rows = clamp(FACT(facts, m), 1, CBN__WGMMA_ROWS_END);
    product.columns = clamp(FACT(facts, n), 1, CBN__WGMMA_COLUMNS_END);
    product.groups = clamp(cbn__geometry_ceil(FACT(facts, k), CBN_GROUP_SIZE), 1, GROUPS_MAX);
    return product;
}

/* m by steps and no further than the choice looks. */
static struct product coarse_product_of(const int64_t *facts)
{
    struct product product = product_of(facts);
    uint32_t steps = (product.rows + CBN__WGMMA_STEP - 1) / CBN__WGMMA_STEP;
    product.rows = clamp((int64_t)steps * CBN__WGMMA_STEP, 1, CBN__WGMMA_STEPS_END);
    int64_t k = (int64_t)product.groups * CBN_GROUP_SIZE;
    product.dram_ns = (product.columns * k + product.rows * (k + 2 * (int64_t)product.columns)) / DRAM_BYTES_PER_NS;
    product.cta_load = (1u << 24) / 1000 * LOAD_PER_MILLE / product.sms;
    return product;
}

static inline uint32_t div_up(uint32_t value, uint32_t by)
{
    return (value + by - 1) / by; /* NOLINT(clang-analyzer-core.DivideZero): by is of a tile or a cluster */
}

/*
 * Clusters that run at once: all of two CTAs, of more what fits the GPCs, about ten elevenths (measured on an H200: 30
 * of four CTAs and 15 of eight with 132 SMs).
 */
static inline uint32_t resident_clusters(const struct tile *tile, uint32_t ctas, const struct product *product)
{
    uint32_t usable = ctas > 2 ? product->sms * 10 / 11 : product->sms;
    usable *= product->bounded ? 1 : (uint32_t)tile->resident; /* only one CTA an SM is sure to use no more SMs */
    return usable < ctas ? 1 : usable / ctas;
}

/* Tiles for each of `ranks` CTAs. */
static inline uint32_t units_of(const struct tile *tile, const struct product *product, uint32_t ranks)
{
    uint32_t columns = div_up(product->columns, (uint32_t)tile->bn);
    return div_up(product->rows, (uint32_t)tile->bm) * div_up(columns, ranks);
}

#define UNFIT INT64_MAX
#define WAVES_OF_CLUSTERS 2 /* a cluster that shares K takes one tile: more of them than that are better not split */

/* Into its callers: where the tile is a constant, so are its divisors. */
#define INLINE static inline __attribute__((always_inline))

/* In ns; UNFIT where the template cannot, or a budget of SMs would not hold. */
INLINE int64_t cost_of(const struct tile *tile, const struct product *product, uint32_t ranks)
{
    uint32_t split = (uint32_t)tile->split, ctas = split * ranks;
    uint32_t groups_least = split * (tile->along_k ? (uint32_t)tile->warpgroups : 1);
    if (ctas > product->sms || product->groups < groups_least || (ranks > 1 && product->columns <= (uint32_t)tile->bn))
        return UNFIT;
    uint32_t units = units_of(tile, product, ranks), resident = resident_clusters(tile, ctas, product);
    if (split > 1 && units > (product->bounded ? product->sms / ctas : resident * WAVES_OF_CLUSTERS))
        return UNFIT;
    uint32_t active = (units < resident ? units : resident) * ctas;
    int64_t group = tile->group[ranks - 1];
    group += group * active * product->cta_load >> 24;
    int64_t tiles_ns = div_up(units, resident) * (div_up(product->groups, split) * group + tile->finish);
    return tile->start + (tiles_ns > product->dram_ns ? tiles_ns : product->dram_ns);
}

INLINE int64_t best_ranks(const struct tile *tile, const struct product *product, int64_t *ret_cost)
{
    int64_t alone = cost_of(tile, product, 1), shared = cost_of(tile, product, RANKS_MAX);
    *ret_cost = shared < alone ? shared : alone;
    return shared < alone ? RANKS_MAX : 1;
}

struct best {
    int64_t tile, cost;
};

INLINE void consider(int64_t number, const struct product *product, bool plain, struct best *best)
{
    int64_t cost;
    if (tiles[number].only_plain && !plain)
        return;
    (void)best_ranks(&tiles[number], product, &cost);
    if (cost < best->cost)
        *best = (struct best){number, cost};
}

/* Neither sums of 32 bits to store nor a bias to add. */
static bool is_plain(const int64_t *facts)
{
    return FACT(facts, out) != CBN_DTYPE_FP32 && FACT(facts, bias) == CBN_BIAS_NONE;
}

/* Part of every call: cheap arithmetic alone. */
int64_t cbn__wgmma_choose(const int64_t *facts)
{
    struct best best = {FEW_ROWS, INT64_MAX};
    if (FACT(facts, m) <= CBN__WGMMA_STEP)
        return FEW_ROWS;
    const struct product product = coarse_product_of(facts);
    bool plain = is_plain(facts);
#define X(bm, bn, wg, ak, parts, split, res, ...)                                                                      \
    consider(NUMBER(bm, bn, wg, ak, parts, split, res), &product, plain, &best);
    TILE_MAP(X)
#undef X
    return best.tile;
}

static const struct tile *tile_of(const int64_t *facts)
{
    return &tiles[clamp(FACT(facts, tile), 0, TILE_COUNT - 1)];
}

int64_t cbn__wgmma_tile_count(void)
{
    return TILE_COUNT;
}

bool cbn__wgmma_can_be(const int64_t *facts)
{
    return !tile_of(facts)->only_plain || is_plain(facts);
}

bool cbn__wgmma_has_box(uint32_t rows)
{
    for (size_t i = 0; i < COUNT(tiles); i++)
        if ((uint32_t)tiles[i].bn == rows)
            return true;
    return false;
}

/* ---- geometry ---- */

#define BAND 8 /* 4 to 32 are within 3 % */

/* The template's (fp8_wgmma.cuh, OWN_N and BOX_N): a warpgroup that keeps half a tile's columns has boxes of half. */
static uint32_t out_columns(const struct tile *tile)
{
    bool halves_columns = tile->along_k && tile->warpgroups == 2 && tile->bm == 64;
    return (halves_columns ? tile->bn / 2 : tile->bn) % 64 ? 32 : 64;
}

/* Only 16-bit rows of whole sums go through shared memory to D. */
static bool is_staged(const struct tile *tile, const int64_t *facts)
{
    return FACT(facts, out) != CBN_DTYPE_FP32 && tile->split == 1;
}

struct cbn__wgmma_cut cbn__wgmma_cut_of(const int64_t *facts)
{
    const struct tile *tile = tile_of(facts);
    const struct product coarse = coarse_product_of(facts), product = product_of(facts);
    int64_t cost;
    struct cbn__wgmma_cut cut = {.ranks = best_ranks(tile, &coarse, &cost), .band = BAND};
    uint32_t units = units_of(tile, &product, (uint32_t)cut.ranks);
    uint32_t resident = resident_clusters(tile, (uint32_t)(tile->split * cut.ranks), &product);
    cut.clusters = tile->split > 1 || units < resident ? units : resident;
    cut.a_rows = (uint32_t)(tile->bm / cut.ranks);
    cut.w_rows = (uint32_t)tile->bn;
    cut.out_columns = is_staged(tile, facts) ? out_columns(tile) : 0;
    return cut;
}

#define SHARED_ONE (227 * 1024) /* of a CTA alone on its SM, and of one of two */
#define SHARED_TWO (113 * 1024)
#define SHARED_ALIGN 1024
#define STAGES_MAX 16

static int32_t most(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* The template lays these out in this order (fp8_wgmma.cuh, REGION_BYTES to BARRIERS). */
static uint32_t shared_bytes(const struct tile *tile, const int64_t *facts)
{
    bool halves = tile->along_k && tile->warpgroups == 2;
    int32_t area = tile->bm * tile->bn, w_scales = FACT(facts, w_gran) == CBN_GRAN_ROW ? tile->bn : 4;
    int32_t region = tile->split > 1 ? area * 4 / tile->split * (tile->split - 1)
                                     : most(is_staged(tile, facts) ? area * 2 : 0, halves ? area * 2 : 0);
    int32_t stage = (tile->bm + tile->bn) * CBN_GROUP_SIZE + 4 * (tile->bm + w_scales) + 16; /* two barriers */
    int32_t fixed = SHARED_ALIGN + region + 16;                                              /* one barrier more */
    int32_t stages = ((tile->resident == 1 ? SHARED_ONE : SHARED_TWO) - fixed) / stage;
    return (uint32_t)(fixed + (stages < STAGES_MAX ? stages : STAGES_MAX) * stage);
}

void cbn__wgmma_place(const int64_t *params, const int64_t *facts, struct cbn_geometry *ret_geometry)
{
    const struct tile *tile = tile_of(facts);
    const struct cbn__wgmma_cut cut = cbn__wgmma_cut_of(facts);
    int64_t ctas = cut.ranks * tile->split;
    (void)params; /* they follow from the tile */
    *ret_geometry = (struct cbn_geometry){
        .grid = {(uint32_t)(cut.clusters * ctas), 1, 1},
        .block = {(uint32_t)(tile->warpgroups * 128 + 128), 1, 1},
        .cluster = {(uint32_t)ctas, 1, 1},
        .shared_bytes = shared_bytes(tile, facts),
    };
    if (FACT(facts, in) != CBN_DTYPE_E4M3)
        ret_geometry->workspace_bytes = (uint64_t)cbn__gemm_workspace_of(FACT(facts, m), FACT(facts, k)).bytes;
}
