/*
 * wgmma of fp8_gemm: the choice of a tile and what follows from it, and on the fake driver what is launched, with which
 * bytes and maps.
 */
#include <cuda.h>

#include "api/gemm_launch.h"
#include "api/plan.h"
#include "base/arch.h"
#include "dispatch/fp8_swap_ab.h"
#include "ops_fixture.h"
#include "unit/random.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SHARED_MAX 232448 /* of a CTA on sm_90 */
#define H200_SMS 132

/* ---- the choice, without a driver ---- */

static struct cbn__family *families[CBN__BUILTIN_COUNT];

static void set_up_families(void)
{
    ck_assert_int_eq(cbn__builtin_families(families, &error), CBN_STATUS_OK);
}

static void tear_down_families(void)
{
    for (int i = 0; i < CBN__BUILTIN_COUNT; i++)
        cbn__family_destroy(families[i]);
}

static const struct cbn__candidate *wgmma(void)
{
    return &families[0]->candidates[cbn__family_candidate(families[0], "wgmma")];
}

struct choice {
    int64_t facts[CBN_FACTS_MAX], params[CBN_PARAMS_MAX];
    struct cbn_geometry geometry;
};

static struct choice choose(int64_t m, int64_t n, int64_t k, const struct cbn_profile *profile)
{
    struct cbn_query query = CBN_QUERY_INIT;
    struct choice choice = {0};
    uint32_t mask = 0;
    query.op = "fp8_gemm";
    query.arch = CBN_ARCH(90, 'a');
    query.m = m;
    query.n = n;
    query.k = k;
    if (profile)
        query.profile = *profile;
    ck_assert_int_eq(cbn__builtin_facts(&query, choice.facts, &mask, &error), CBN_STATUS_OK);
    cbn__params_resolve(wgmma(), choice.facts, choice.params);
    wgmma()->geometry(choice.params, choice.facts, &choice.geometry);
    return choice;
}

static int64_t param(const struct choice *choice, enum cbn__wgmma_param number)
{
    return choice->params[number];
}

static int64_t ceil_div(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

/* What the head of fp8_wgmma.cuh and its static_asserts ask, computed here once more. */
static int64_t shared_bytes_wanted(const struct choice *choice)
{
    int64_t bm = param(choice, CBN__WGMMA_BM), bn = param(choice, CBN__WGMMA_BN),
            split = param(choice, CBN__WGMMA_SPLIT);
    bool halves = param(choice, CBN__WGMMA_ALONG_K) && param(choice, CBN__WGMMA_WARPGROUPS) == 2;
    bool staged = param(choice, CBN__WGMMA_OUT) != CBN_DTYPE_FP32 && split == 1;
    int64_t scales = 4 * (bm + (param(choice, CBN__WGMMA_W_GRAN) == CBN_GRAN_ROW ? bn : 4));
    int64_t stage = (bm + bn) * 128 + scales + 16, region = staged || halves ? bm * bn * 2 : 0;
    if (split > 1)
        region = bm * bn * 4 / split * (split - 1);
    int64_t budget = (param(choice, CBN__WGMMA_RESIDENT) == 1 ? 227 : 113) * 1024 - 1024 - region - 16;
    int64_t stages = budget / stage < 16 ? budget / stage : 16;
    ck_assert_int_ge(stages, 2);
    return 1024 + region + 16 + stages * stage;
}

static void check_choice(const struct choice *choice, int64_t max_sms)
{
    const int64_t *facts = choice->facts;
    const struct cbn_geometry *geometry = &choice->geometry;
    const struct cbn__wgmma_cut cut = cbn__wgmma_cut_of(facts);
    int64_t bm = param(choice, CBN__WGMMA_BM), bn = param(choice, CBN__WGMMA_BN),
            split = param(choice, CBN__WGMMA_SPLIT);
    int64_t warpgroups = param(choice, CBN__WGMMA_WARPGROUPS), cluster = cut.ranks * split;
    int64_t units = ceil_div(facts[CBN__GEMM_FACT_m], bm) * ceil_div(ceil_div(facts[CBN__GEMM_FACT_n], bn), cut.ranks);
    ck_assert_int_eq(param(choice, CBN__WGMMA_IN), CBN_DTYPE_E4M3);
    ck_assert_int_ge(ceil_div(facts[CBN__GEMM_FACT_k], 128),
                     split * (param(choice, CBN__WGMMA_ALONG_K) ? warpgroups : 1)); /* each has some of K */
    ck_assert_int_eq(geometry->cluster[0], cluster);
    ck_assert_int_le(cluster, 8);
    ck_assert_uint_eq(geometry->cluster[1] * geometry->cluster[2] * geometry->grid[1] * geometry->grid[2], 1);
    ck_assert_int_eq(geometry->grid[0], cut.clusters * cluster);
    ck_assert_int_ge(cut.clusters, 1);
    ck_assert_int_le(cut.clusters, units);
    if (split > 1)
        ck_assert_int_eq(cut.clusters, units); /* a cluster that shares K takes one tile */
    else
        ck_assert_int_le(geometry->grid[0], H200_SMS * param(choice, CBN__WGMMA_RESIDENT));
    if (max_sms)
        ck_assert_int_le(geometry->grid[0], max_sms);
    ck_assert_int_eq(geometry->block[0], 128 * warpgroups + 128);
    ck_assert_int_eq(geometry->shared_bytes, shared_bytes_wanted(choice));
    ck_assert_uint_le(geometry->shared_bytes, SHARED_MAX);
    ck_assert_int_eq(cut.a_rows * cut.ranks, bm);
    ck_assert_uint_eq(cut.a_rows % 8, 0);
    ck_assert_int_eq(cut.w_rows, bn);
    bool staged = facts[CBN__GEMM_FACT_out] != CBN_DTYPE_FP32 && split == 1;
    ck_assert_uint_eq(cut.out_columns, staged ? (bn % 64 ? 32 : 64) : 0);
    bool quantizes = facts[CBN__GEMM_FACT_in] != CBN_DTYPE_E4M3;
    int64_t workspace = cbn__gemm_workspace_of(facts[CBN__GEMM_FACT_m], facts[CBN__GEMM_FACT_k]).bytes;
    ck_assert_uint_eq(geometry->workspace_bytes, quantizes ? (uint64_t)workspace : 0);
}

static const int64_t some_n[] = {8, 64, 72, 128, 512, 576, 2112, 3072, 4096, 7168, 24576, 32768, 152064};
static const int64_t some_k[] = {16, 128, 144, 256, 512, 1536, 2048, 7168, 16384, 29568, 163840};
static const int64_t some_m[] = {1, 64, 65, 129, 257, 850, 1024, 4097, 131072};
static const uint32_t budgets[] = {0, 1, 3, 7, 16, 64, 131};

START_TEST(any_choice_fits_the_kernel)
{
    static const uint32_t outs[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
    struct cbn_profile profile = ((struct cbn_query)CBN_QUERY_INIT).profile;
    profile.in = _i & 1 ? CBN_DTYPE_E4M3 : CBN_DTYPE_BF16;
    profile.scale_gran = _i & 2 ? CBN_GRAN_ROW : CBN_GRAN_BLOCK;
    profile.out = outs[_i / 4];
    for (size_t n = 0; n < COUNT(some_n); n++)
        for (size_t k = 0; k < COUNT(some_k); k++)
            for (size_t b = 0; b < COUNT(budgets); b++)
                for (size_t m = 0; m < COUNT(some_m); m++) {
                    profile.max_sms = budgets[b];
                    struct choice choice = choose(some_m[m], some_n[n], some_k[k], &profile);
                    check_choice(&choice, budgets[b]);
                }
}
END_TEST

/* Also where facts are nonsense: a geometry is asked of any. */
START_TEST(extreme_facts_are_cut_too)
{
    static const int64_t extremes[] = {INT64_MIN, -1, 0, 1, INT32_MAX, INT64_MAX};
    for (size_t i = 0; i < COUNT(extremes) * COUNT(extremes) * COUNT(extremes); i++) {
        struct choice choice = choose(1, 64, 128, NULL);
        choice.facts[CBN__GEMM_FACT_m] = extremes[i % 6];
        choice.facts[CBN__GEMM_FACT_n] = extremes[i / 6 % 6];
        choice.facts[CBN__GEMM_FACT_k] = extremes[i / 36];
        cbn__gemm_derive_rows(choice.facts);
        ck_assert_int_ge(choice.facts[CBN__GEMM_FACT_tile], 0);
        ck_assert_int_lt(choice.facts[CBN__GEMM_FACT_tile], cbn__wgmma_tile_count());
        choice.facts[CBN__GEMM_FACT_tile] = extremes[i % 6];
        cbn__params_resolve(wgmma(), choice.facts, choice.params);
        wgmma()->geometry(choice.params, choice.facts, &choice.geometry);
        ck_assert_uint_gt(choice.geometry.grid[0], 0);
        ck_assert_int_eq(choice.geometry.shared_bytes, shared_bytes_wanted(&choice));
    }
}
END_TEST

/* What an enumeration relies on. */
START_TEST(the_choice_looks_at_steps_of_m)
{
    uint64_t state = 5;
    for (int i = 0; i < 1000; i++) {
        int64_t n = 8 * (1 + random_below(&state, 5000)), k = 16 * (1 + random_below(&state, 1200));
        int64_t m = 1 + random_below(&state, 40000);
        int64_t end = m > CBN__WGMMA_STEPS_END ? 131072 : ceil_div(m, CBN__WGMMA_STEP) * CBN__WGMMA_STEP;
        int64_t tile = choose(m, n, k, NULL).facts[CBN__GEMM_FACT_tile];
        ck_assert_int_eq(choose(end, n, k, NULL).facts[CBN__GEMM_FACT_tile], tile);
        int64_t first = m > CBN__WGMMA_STEPS_END ? CBN__WGMMA_STEPS_END : end - CBN__WGMMA_STEP + 1;
        ck_assert_int_eq(choose(first, n, k, NULL).facts[CBN__GEMM_FACT_tile], tile);
    }
}
END_TEST

/* Two tables of buckets and one of costs name the same tiles. */
START_TEST(the_parameters_are_the_tile)
{
    for (int64_t tile = 0; tile < cbn__wgmma_tile_count(); tile++) {
        struct choice choice = choose(1024, 7168, 7168, NULL);
        choice.facts[CBN__GEMM_FACT_tile] = tile;
        cbn__params_resolve(wgmma(), choice.facts, choice.params);
        wgmma()->geometry(choice.params, choice.facts, &choice.geometry);
        check_choice(&choice, 0);
        ck_assert(cbn__wgmma_has_box((uint32_t)param(&choice, CBN__WGMMA_BN)));
        ck_assert_int_le(param(&choice, CBN__WGMMA_BN), CBN__WGMMA_BOX_COUNT * CBN__WGMMA_BOX_UNIT);
    }
}
END_TEST

/* None costs a compile for nothing: the points that the GPU suite looks among reach each. */
START_TEST(every_tile_is_chosen_somewhere)
{
    static const int64_t ns[] = {64, 128, 200, 512, 1024, 2112, 4096, 7168};
    static const int64_t ks[] = {256, 512, 1024, 2048, 7168, 16384};
    static const int64_t rows[] = {96, 130, 257, 500, 850, 1024};
    static const uint32_t sms[] = {0, 8, 16, 32, 64};
    uint64_t seen = 0;
    for (size_t i = 0; i < COUNT(ns) * COUNT(ks) * COUNT(rows) * COUNT(sms); i++) {
        struct cbn_profile profile = ((struct cbn_query)CBN_QUERY_INIT).profile;
        profile.max_sms = sms[i % 5];
        seen |=
            UINT64_C(1) << choose(rows[i / 5 % 6], ns[i / 180], ks[i / 30 % 6], &profile).facts[CBN__GEMM_FACT_tile];
    }
    ck_assert_uint_eq(seen, (UINT64_C(1) << cbn__wgmma_tile_count()) - 1);
}
END_TEST

struct measured {
    int64_t m, n, k, bm, bn, split;
};

/* Points of an H200 where no other tile was measured as fast. */
START_TEST(measured_winners_are_chosen)
{
    static const struct measured points[] = {
        {96, 4096, 7168, 128, 96, 2},     {128, 5120, 8192, 128, 96, 2},    {128, 2112, 7168, 128, 96, 4},
        {128, 7168, 16384, 128, 128, 2},  {128, 24576, 1536, 128, 192, 1},  {256, 5120, 8192, 128, 160, 2},
        {850, 24576, 1536, 128, 192, 1},  {850, 5120, 8192, 128, 160, 1},   {850, 7168, 2048, 128, 128, 1},
        {1024, 4096, 7168, 256, 128, 1},  {4096, 7168, 2048, 256, 128, 1},  {4096, 7168, 16384, 256, 128, 1},
    };
    for (size_t i = 0; i < COUNT(points); i++) {
        struct choice choice = choose(points[i].m, points[i].n, points[i].k, NULL);
        ck_assert_int_eq(param(&choice, CBN__WGMMA_BM), points[i].bm);
        ck_assert_int_eq(param(&choice, CBN__WGMMA_BN), points[i].bn);
        ck_assert_int_eq(param(&choice, CBN__WGMMA_SPLIT), points[i].split);
    }
}
END_TEST

/* Two tiles have registers for rows of 16 bits without a bias alone; the rest is for every form. */
START_TEST(a_tile_that_would_spill_is_not_chosen)
{
    static const int64_t shapes[][3] = {{1024, 4096, 7168}, {4096, 7168, 2048}, {4096, 7168, 16384}};
    for (uint32_t form = 0; form < 3 * 3 * 2; form++) {
        struct cbn_profile profile = ((struct cbn_query)CBN_QUERY_INIT).profile;
        profile.out = CBN_DTYPE_BF16 + form % 3;
        profile.bias = CBN_BIAS_NONE + form / 3 % 3;
        profile.scale_gran = CBN_GRAN_BLOCK + form / 9;
        bool plain = profile.out != CBN_DTYPE_FP32 && profile.bias == CBN_BIAS_NONE;
        for (size_t i = 0; i < COUNT(shapes); i++) {
            struct choice choice = choose(shapes[i][0], shapes[i][1], shapes[i][2], &profile);
            ck_assert_int_eq(param(&choice, CBN__WGMMA_BM), plain ? 256 : 128);
            int64_t refused = 0;
            for (int64_t tile = 0; tile < cbn__wgmma_tile_count(); tile++) {
                choice.facts[CBN__GEMM_FACT_tile] = tile;
                refused += !cbn__wgmma_can_be(choice.facts);
            }
            ck_assert_int_eq(refused, plain ? 0 : 2);
        }
    }
}
END_TEST

/* ---- launches ---- */

#define N 200
#define K 5008 /* 39 whole groups and 16 elements of another */
#define M 300

static void set_up(void)
{
    open_fake();
    struct cbn_runtime_options options = fake_options(shared_folder);
    create_runtime(&options);
    set_up_families();
}

static void tear_down(void)
{
    tear_down_families();
    close_runtime();
}

static struct cbn__wgmma_args product_of(const struct fake_launch *launch)
{
    struct cbn__wgmma_args arguments;
    ck_assert_str_eq(launch->kernel, "cbn_fp8_wgmma");
    ck_assert_uint_eq(launch->parameter_bytes, sizeof(arguments));
    memcpy(&arguments, launch->parameters, sizeof(arguments));
    return arguments;
}

static void call(const struct cbn_fp8_gemm_args *args)
{
    ck_assert_msg(cbn_fp8_gemm(runtime, args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
}

struct wanted_map {
    uint64_t address, columns, rows, stride;
    uint32_t type, box_columns, box_rows;
};

static void assert_map(const struct cbn__tensor_map *map, const struct wanted_map *wanted)
{
    static const struct cbn__tensor_map zero;
    struct fake_map made;
    if (wanted->box_rows == 0) {
        ck_assert_mem_eq(map, &zero, sizeof(zero));
        return;
    }
    uint32_t row_bytes = wanted->box_columns * (wanted->type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : 2);
    memcpy(&made, map, sizeof(made));
    ck_assert_uint_eq(made.mark, FAKE_MAP_MARK);
    ck_assert_uint_eq(made.type, wanted->type);
    ck_assert_uint_eq(made.rank, 2);
    ck_assert_uint_eq(made.interleave, CU_TENSOR_MAP_INTERLEAVE_NONE);
    ck_assert_uint_eq(made.swizzle, row_bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B);
    ck_assert_uint_eq(made.fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    ck_assert_uint_eq(made.address, wanted->address);
    ck_assert_uint_eq(made.extents[0], wanted->columns);
    ck_assert_uint_eq(made.extents[1], wanted->rows);
    ck_assert_uint_eq(made.strides[0], wanted->stride);
    ck_assert_uint_eq(made.box[0], wanted->box_columns);
    ck_assert_uint_eq(made.box[1], wanted->box_rows);
}

/* The cut of a call, by the decision that the call itself uses. */
static struct cbn__wgmma_cut cut_of(const struct cbn_fp8_gemm_args *args, struct choice *ret_choice)
{
    struct cbn_profile profile = ((struct cbn_query)CBN_QUERY_INIT).profile;
    profile.in = args->a.dtype;
    profile.out = args->d.dtype;
    profile.max_sms = args->max_sms;
    *ret_choice = choose(args->a.extents[0], args->w.extents[0], args->w.extents[1], &profile);
    return cbn__wgmma_cut_of(ret_choice->facts);
}

static void assert_maps(const struct cbn_fp8_gemm_args *args, const struct cbn__wgmma_args *given)
{
    struct choice choice;
    const struct cbn__wgmma_cut cut = cut_of(args, &choice);
    const struct cbn__gemm_args *gemm = &given->gemm;
    uint64_t m = (uint64_t)gemm->m, n = (uint64_t)gemm->n, k = (uint64_t)gemm->k;
    uint64_t lda = (uint64_t)gemm->lda, ldw = (uint64_t)gemm->ldw, ldd = (uint64_t)gemm->ldd * 2;
    const uint32_t codes = CU_TENSOR_MAP_DATA_TYPE_UINT8;
    uint32_t out = args->d.dtype == CBN_DTYPE_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    uint32_t a_left = (uint32_t)m % cut.a_rows, w_left = (uint32_t)n % cut.w_rows;
    assert_map(&given->a, &(struct wanted_map){gemm->a, k, m, lda, codes, 128, cut.a_rows});
    assert_map(&given->a_tail, &(struct wanted_map){gemm->a, k, m, lda, codes, 128, a_left});
    assert_map(&given->w, &(struct wanted_map){gemm->w, k, n, ldw, codes, 128, cut.w_rows});
    assert_map(&given->w_tail, &(struct wanted_map){gemm->w, k, n, ldw, codes, 128, w_left});
    assert_map(&given->d, &(struct wanted_map){gemm->d, n, m, ldd, out, cut.out_columns, cut.out_columns ? 64 : 0});
    ck_assert_int_eq(given->share, cut.ranks > 1 ? 1 : 0);
    ck_assert_int_eq(given->band, cut.band);
}

static struct cbn_fp8_gemm_args strided_args(int64_t m, uint32_t in, uint32_t out)
{
    struct cbn_fp8_gemm_args args = gemm_args(m, N, K, in, out);
    args.a.strides[0] = K + 48;
    args.w.strides[0] = K + 32;
    args.d.strides[0] = N + 8;
    return args;
}

/* Both sides of every height of a box. */
START_TEST(codes_go_in_by_maps)
{
    static const uint32_t outs[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
    static const int64_t rows[] = {65, 127, 128, 129, 192, 255, 256, 257, M, 1024};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cbn_fp8_gemm_args args = strided_args(rows[i], CBN_DTYPE_E4M3, outs[_i]);
        args.m_valid = PLACE(6);
        fake.launches_clear();
        call(&args);
        ck_assert_uint_eq(fake.launch_count(), 1);
        struct fake_launch launch = launch_at(0);
        struct cbn__wgmma_args given = product_of(&launch);
        const struct cbn__gemm_args wanted = {.a = PLACE(0),
                                              .a_scale = PLACE(4),
                                              .w = PLACE(1),
                                              .w_scale = PLACE(2),
                                              .d = PLACE(3),
                                              .m_valid = PLACE(6),
                                              .workspace = WORKSPACE,
                                              .m = rows[i],
                                              .n = N,
                                              .k = K,
                                              .lda = K + 48,
                                              .ldw = K + 32,
                                              .ldd = N + 8,
                                              .sa_row = 1,
                                              .sa_col = ceil_to(rows[i], 4),
                                              .sw_row = 40,
                                              .sw_col = 1};
        ck_assert_mem_eq(&given.gemm, &wanted, sizeof(wanted));
        ck_assert_uint_eq(given.fetch_early, 0);
        assert_maps(&args, &given);
        ck_assert_uint_eq(launch.pdl, 1);
        ck_assert_uint_eq(launch.grid[0] % launch.cluster[0], 0);
    }
}
END_TEST

START_TEST(the_quantiser_fills_the_workspace_and_the_product_reads_it)
{
    static const uint32_t ins[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
    struct cbn_fp8_gemm_args args = strided_args(M, ins[_i], CBN_DTYPE_BF16);
    args.max_sms = 60;
    args.m_valid = PLACE(6);
    give_bias(&args, CBN_DTYPE_FP32);
    call(&args);
    ck_assert_uint_eq(fake.launch_count(), 2);
    struct fake_launch first = launch_at(0), second = launch_at(1);
    const uint64_t scales = WORKSPACE + (M * (uint64_t)K + 255) / 256 * 256;
    struct cbn__quantize_args quantized;
    ck_assert_str_eq(first.kernel, "cbn_fp8_quantize");
    memcpy(&quantized, first.parameters, sizeof(quantized));
    ck_assert_uint_eq(quantized.codes, WORKSPACE);
    ck_assert_uint_eq(quantized.scales, scales);
    ck_assert_uint_eq(quantized.m_valid, PLACE(6));
    struct cbn__wgmma_args given = product_of(&second);
    ck_assert_uint_eq(given.gemm.a, WORKSPACE);
    ck_assert_uint_eq(given.gemm.a_scale, scales);
    ck_assert_int_eq(given.gemm.lda, K);
    ck_assert_int_eq(given.gemm.sa_row, 1); /* the layout that comes in by rows of a tile */
    ck_assert_int_eq(given.gemm.sa_col, M);
    ck_assert_uint_eq(given.gemm.bias, PLACE(5));
    assert_maps(&args, &given);
    ck_assert_uint_eq(first.pdl + second.pdl, 2);
    ck_assert_uint_le(first.grid[0], 60);
    ck_assert_uint_le(second.grid[0], 60);
    ck_assert_uint_eq(stats_now().launches, 2);
}
END_TEST

START_TEST(the_workspace_is_as_large_as_is_told)
{
    static const int64_t rows[] = {65, 128, 850, 4097};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cbn_fp8_gemm_args args = gemm_args(rows[i], N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
        uint64_t bytes = 77;
        ck_assert_int_eq(cbn_fp8_gemm_workspace_bytes(runtime, &args, &bytes, &error), CBN_STATUS_OK);
        ck_assert_uint_eq(bytes, (uint64_t)(ceil_to(rows[i] * K, 256) + 4 * groups_of(K) * ceil_to(rows[i], 4)));
        args.workspace_bytes = bytes;
        call(&args);
        uint32_t before = fake.launch_count();
        args.workspace_bytes = bytes - 1;
        ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_INVALID);
        ck_assert_ptr_nonnull(strstr(error.message, "ask the workspace call first"));
        ck_assert_uint_eq(fake.launch_count(), before);
    }
}
END_TEST

/* ---- guards ---- */

static const char *explained(struct cbn_query *query, struct cbn_explanation *ret_explanation)
{
    *ret_explanation = (struct cbn_explanation){.size = sizeof(*ret_explanation)};
    ck_assert_int_eq(cbn_explain(runtime, query, ret_explanation, &error), CBN_STATUS_OK);
    return ret_explanation->spec.kernel;
}

START_TEST(what_it_cannot_take_is_said)
{
    static const struct {
        int64_t m, n, k;
        const char *guard; /* NULL: taken */
    } cases[] = {
        {850, 7168, 7168, NULL},
        {65, 8, 16, NULL},
        {850, 100, 512, "n % 8 == 0"},
        {850, 7168, 100, "align % 16 == 0"},
        {INT64_C(1) << 22, 7168, 512, "m in [1,4194304)"},
        {850, INT64_C(1) << 20, 512, "n < 1048576"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cbn_query query = CBN_QUERY_INIT;
        struct cbn_explanation explanation;
        query.op = "fp8_gemm";
        query.arch = CBN_ARCH(90, 'a');
        query.m = cases[i].m;
        query.n = cases[i].n;
        query.k = cases[i].k;
        query.profile.out = CBN_DTYPE_FP32; /* 100 columns are aligned then */
        ck_assert_str_eq(explained(&query, &explanation), cases[i].guard ? "generic" : "wgmma");
        for (uint32_t j = 0; j < explanation.candidate_count; j++)
            if (cases[i].guard && strcmp(explanation.candidates[j].kernel, "wgmma") == 0)
                ck_assert_str_eq(explanation.candidates[j].guard, cases[i].guard);
        if (!cases[i].guard)
            ck_assert_uint_eq(explanation.launches, 2);
    }
}
END_TEST

/* ---- plans ---- */

static struct cbn_plan *create_plan(uint32_t in, uint32_t flags, int64_t max_m)
{
    struct cbn_fp8_gemm_args args = gemm_args(1, N, K, in, CBN_DTYPE_BF16);
    struct cbn_fp8_gemm_plan_options options = CBN_FP8_GEMM_PLAN_OPTIONS_INIT;
    struct cbn_plan *plan = NULL;
    options.in = in;
    options.out = CBN_DTYPE_BF16;
    options.flags = flags;
    options.max_m = max_m;
    options.w = args.w;
    options.w_scale = args.w_scale;
    options.a_scale_layout = args.a_scale_layout;
    ck_assert_msg(cbn_fp8_gemm_plan_create(runtime, &options, &plan, &error) == CBN_STATUS_OK, "%s", error.message);
    return plan;
}

static void run_plan(struct cbn_plan *plan, int64_t m, uint32_t in)
{
    struct cbn_fp8_gemm_args args = gemm_args(m, N, K, in, CBN_DTYPE_BF16);
    struct cbn_fp8_gemm_run_args run = CBN_FP8_GEMM_RUN_ARGS_INIT;
    run.a = args.a;
    run.a_scale = args.a_scale;
    run.d = args.d;
    run.workspace = args.workspace;
    run.workspace_bytes = args.workspace_bytes;
    ck_assert_msg(cbn_fp8_gemm_plan_run(plan, &run, stream, &error) == CBN_STATUS_OK, "%s", error.message);
}

/* The same bytes as the one-shot call's, with no map of the weights encoded, no kernel loaded. */
START_TEST(a_plan_launches_what_the_one_shot_call_launches)
{
    uint32_t in = _i ? CBN_DTYPE_E4M3 : CBN_DTYPE_BF16, count = _i ? 1 : 2;
    static const int64_t rows[] = {65, 128, M, 850, 4096};
    struct cbn_plan *plan = create_plan(in, 0, 4096);
    uint64_t loads = stats_now().loads;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cbn_fp8_gemm_args args = gemm_args(rows[i], N, K, in, CBN_DTYPE_BF16);
        struct choice choice;
        const struct cbn__wgmma_cut cut = cut_of(&args, &choice);
        uint32_t encoded = fake.calls("cuTensorMapEncodeTiled");
        fake.launches_clear();
        run_plan(plan, rows[i], in);
        uint32_t of_a = rows[i] % cut.a_rows ? 2 : 1, of_d = cut.out_columns ? 1 : 0;
        ck_assert_uint_eq(fake.calls("cuTensorMapEncodeTiled"), encoded + of_a + of_d);
        call(&args);
        ck_assert_uint_eq(fake.launch_count(), 2 * count);
        for (uint32_t j = 0; j < count; j++) {
            struct fake_launch planned = launch_at(j), once = launch_at(count + j);
            ck_assert_mem_eq(&planned, &once, sizeof(once));
        }
    }
    ck_assert_uint_eq(stats_now().loads, loads);
    cbn_plan_destroy(plan);
}
END_TEST

START_TEST(static_weights_are_fetched_early_until_they_change)
{
    struct cbn_plan *plan = create_plan(CBN_DTYPE_E4M3, CBN_OP_WEIGHTS_STATIC, 0);
    for (uint32_t settled = 0; settled <= 1; settled++) {
        cbn_plan_weights_changed(plan, settled);
        run_plan(plan, M, CBN_DTYPE_E4M3);
        struct fake_launch launch = last_launch();
        ck_assert_uint_eq(product_of(&launch).fetch_early, settled);
    }
    cbn_plan_destroy(plan);
}
END_TEST

static Suite *suite(void)
{
    Suite *all = suite_create("wgmma");
    TCase *pure = tcase_create("choice"), *calls = tcase_create("calls");
    tcase_add_checked_fixture(pure, set_up_families, tear_down_families);
    tcase_set_timeout(pure, 120);
    tcase_add_loop_test(pure, any_choice_fits_the_kernel, 0, 12);
    tcase_add_test(pure, extreme_facts_are_cut_too);
    tcase_add_test(pure, the_choice_looks_at_steps_of_m);
    tcase_add_test(pure, the_parameters_are_the_tile);
    tcase_add_test(pure, every_tile_is_chosen_somewhere);
    tcase_add_test(pure, measured_winners_are_chosen);
    tcase_add_test(pure, a_tile_that_would_spill_is_not_chosen);
    tcase_add_checked_fixture(calls, set_up, tear_down);
    tcase_set_timeout(calls, 240);
    tcase_add_loop_test(calls, codes_go_in_by_maps, 0, 3);
    tcase_add_loop_test(calls, the_quantiser_fills_the_workspace_and_the_product_reads_it, 0, 3);
    tcase_add_test(calls, the_workspace_is_as_large_as_is_told);
    tcase_add_test(calls, what_it_cannot_take_is_said);
    tcase_add_loop_test(calls, a_plan_launches_what_the_one_shot_call_launches, 0, 2);
    tcase_add_test(calls, static_weights_are_fetched_early_until_they_change);
    suite_add_tcase(all, pure);
    suite_add_tcase(all, calls);
    return all;
}

int main(void)
{
    return run_suite(suite());
}
