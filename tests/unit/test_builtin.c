/*
 * The built-in families: the pinned routing table, facts of queries, the set of specialisations, and geometry.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arch.h"
#include "dispatch/builtin.h"
#include "dispatch/fp8_swap_ab.h"
#include "dispatch/fp8_wgmma.h"

static struct cbn__family *families[CBN__BUILTIN_COUNT];

static void setup(void)
{
    struct cbn_error err = {0};
    ck_assert_msg(cbn__builtin_families(families, &err) == CBN_STATUS_OK, "%s", err.message);
}

static void teardown(void)
{
    for (int i = 0; i < CBN__BUILTIN_COUNT; i++)
        cbn__family_destroy(families[i]);
}

#define GEMM families[0]
#define QUANTIZE families[1]

static struct cbn_query gemm_query(int64_t m, int64_t n, int64_t k)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "fp8_gemm";
    query.arch = CBN_ARCH(90, 'a');
    query.m = m;
    query.n = n;
    query.k = k;
    return query;
}

static struct cbn_query quantize_query(int64_t t, int64_t g, int64_t k)
{
    struct cbn_query query = gemm_query(t, 0, k);
    query.op = "fp8_quantize";
    query.groups = g;
    return query;
}

static void facts_of(const struct cbn_query *query, int64_t *ret_facts)
{
    struct cbn_error err = {0};
    uint32_t mask = 0;
    ck_assert_msg(cbn__builtin_facts(query, ret_facts, &mask, &err) == CBN_STATUS_OK, "%s", err.message);
    ck_assert_uint_ne(mask, 0);
}

static struct cbn__route route_of(const struct cbn__family *family, const struct cbn_profile *profile)
{
    struct cbn__route route;
    struct cbn_error err = {0};
    const struct cbn__family *all[CBN__BUILTIN_COUNT] = {GEMM, QUANTIZE};
    ck_assert_msg(cbn__route_resolve(family, all, CBN__BUILTIN_COUNT, profile->policy, profile->disable,
                                     profile->enable, profile->strict_route, &route, &err) == CBN_STATUS_OK,
                  "%s", err.message);
    return route;
}

static struct cbn__family *family_of(const struct cbn_query *query)
{
    return strcmp(query->op, "fp8_gemm") == 0 ? GEMM : QUANTIZE;
}

/* "noop", "none" or the chosen candidate's name. */
static const char *chosen(const struct cbn_query *query)
{
    int64_t facts[CBN_FACTS_MAX];
    struct cbn__family *family = family_of(query);
    facts_of(query, facts);
    struct cbn__route route = route_of(family, &query->profile);
    struct cbn__decision decision;
    cbn__decide(family, facts, &route, &decision);
    if (decision.noop)
        return "noop";
    return decision.chosen < 0 ? "none" : family->candidates[decision.chosen].template.name;
}

/* The reference table, pinned for ever: fits = bf16 out, N % 64 == 0, K % 128 == 0. */
static const char *expected(int64_t m, bool fits, bool wgmma)
{
    if (m == 0)
        return "noop";
    if (!fits)
        return "generic";
    return m < 32 ? "swap_ab" : wgmma ? "wgmma" : "generic";
}

static const int64_t table_m[] = {0, 1, 8, 31, 32, 64, 850};
static const int64_t table_nk[][2] = {{7168, 2048}, {2112, 7168}, {64, 128},    {576, 512},  {2120, 7168},
                                      {2113, 7168}, {7168, 2040}, {7168, 2000}, {7168, 129}, {1, 1}};
static void check_table_row(struct cbn_query query, bool fits)
{
    query.profile.disable = NULL;
    ck_assert_str_eq(chosen(&query), expected(query.m, fits, true));
    query.profile.disable = "wgmma";
    ck_assert_str_eq(chosen(&query), expected(query.m, fits, false));
    query.profile.disable = "swap_ab";
    ck_assert_str_eq(chosen(&query), fits && query.m && query.m < 32 ? "generic" : expected(query.m, fits, true));
    query.profile.disable = "swap_ab,wgmma";
    ck_assert_str_eq(chosen(&query), query.m ? "generic" : "noop");
    query.profile.disable = "generic";
    bool taken = fits || !query.m;
    ck_assert_str_eq(chosen(&query), taken ? expected(query.m, fits, true) : "none");
    query.profile.disable = NULL;
    query.profile.strict_route = 1;
    ck_assert_str_eq(chosen(&query), taken ? expected(query.m, fits, true) : "none");
}

START_TEST(routing_table)
{
    for (size_t i = 0; i < sizeof(table_m) / sizeof(table_m[0]); i++)
        for (size_t j = 0; j < sizeof(table_nk) / sizeof(table_nk[0]); j++)
            for (uint32_t out = CBN_DTYPE_BF16; out <= CBN_DTYPE_FP32; out++)
                for (uint32_t scale = CBN_SCALE_FP32; scale <= CBN_SCALE_UE8M0; scale++) {
                    int64_t n = table_nk[j][0], k = table_nk[j][1];
                    struct cbn_query query = gemm_query(table_m[i], n, k);
                    query.profile.policy = "reference";
                    query.profile.out = out;
                    query.profile.weight_scale = scale;
                    check_table_row(query, out == CBN_DTYPE_BF16 && n % 64 == 0 && k % 128 == 0);
                }
}
END_TEST

/* The default policy's table, from measurements; aligned where every row begins at 16 bytes. */
static const char *expected_default(const struct cbn_query *query)
{
    int64_t facts[CBN_FACTS_MAX], m = query->m;
    facts_of(query, facts);
    bool aligned = facts[CBN__GEMM_FACT_align] == 16, codes = query->profile.in == CBN_DTYPE_E4M3;
    if (m == 0)
        return "noop";
    if (aligned && !codes && m < 5 && facts[CBN__GEMM_FACT_slice] < 19)
        return "swap_ab_fused";
    if (aligned && m < 65)
        return "swap_ab";
    return aligned && query->n % 8 == 0 ? "wgmma" : "generic";
}

START_TEST(default_routing_table)
{
    static const int64_t rows[] = {0, 1, 8, 9, 31, 32, 64, 65, 128, 129, 850};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t j = 0; j < sizeof(table_nk) / sizeof(table_nk[0]); j++)
            for (uint32_t in = CBN_DTYPE_BF16; in <= CBN_DTYPE_E4M3; in++)
                for (uint32_t out = CBN_DTYPE_BF16; out <= CBN_DTYPE_FP32; out++) {
                    int64_t n = table_nk[j][0], k = table_nk[j][1];
                    struct cbn_query query = gemm_query(rows[i], n, k);
                    query.profile.in = in;
                    query.profile.out = out;
                    ck_assert_str_eq(chosen(&query), expected_default(&query));
                    query.profile.policy = "default";
                    ck_assert_str_eq(chosen(&query), expected_default(&query));
                }
    struct cbn_query query = gemm_query(4, 7168, 2048);
    ck_assert_str_eq(chosen(&query), "swap_ab_fused");
    query.profile.disable = "swap_ab_fused";
    ck_assert_str_eq(chosen(&query), "swap_ab");
    query.profile.disable = "swap_ab_fused,swap_ab";
    ck_assert_str_eq(chosen(&query), "wgmma");
    query.profile.disable = "swap_ab_fused,swap_ab,wgmma";
    ck_assert_str_eq(chosen(&query), "generic");
    query = gemm_query(8, 7168, 16384); /* a slice too long to be quantised by every CTA */
    ck_assert_str_eq(chosen(&query), "swap_ab");
    query = gemm_query(8, 7168, 131072); /* and one whose scales shared memory still holds, cut over a cluster */
    ck_assert_str_eq(chosen(&query), "swap_ab");
    query = gemm_query(8, 7168, 262144);
    ck_assert_str_eq(chosen(&query), "wgmma");
}
END_TEST

START_TEST(other_arguments_do_not_route)
{
    struct cbn_query query = gemm_query(16, 7168, 2048);
    for (uint32_t in = CBN_DTYPE_BF16; in <= CBN_DTYPE_E4M3; in++)
        for (uint32_t layout = CBN_LAYOUT_ROW; layout <= CBN_LAYOUT_PACKED_COL; layout++)
            for (uint32_t flags = 0; flags < 16; flags++) {
                query.profile.in = in;
                query.profile.act_scale = layout;
                query.profile.scale_gran = flags & 1 ? CBN_GRAN_ROW : CBN_GRAN_BLOCK;
                query.profile.bias = flags & 2 ? CBN_BIAS_FP32 : CBN_BIAS_NONE;
                query.profile.pdl = flags >> 2 & 1;
                query.profile.max_sms = flags & 8 ? 20 : 0;
                ck_assert_str_eq(chosen(&query), "swap_ab");
            }
}
END_TEST

START_TEST(extents_of_zero)
{
    struct cbn_query query = gemm_query(4, 0, 128);
    ck_assert_str_eq(chosen(&query), "noop");
    query = gemm_query(4, 64, 0);
    ck_assert_str_eq(chosen(&query), "generic"); /* a fill */
    query = quantize_query(0, 8, 128);
    ck_assert_str_eq(chosen(&query), "noop");
    query = quantize_query(4, 0, 0);
    ck_assert_str_eq(chosen(&query), "noop");
}
END_TEST

START_TEST(unaligned_rows_take_another_candidate)
{
    struct cbn_query query = gemm_query(16, 7168, 2048);
    query.lda = 2056;
    ck_assert_str_eq(chosen(&query), "swap_ab");
    query.lda = 2052;
    ck_assert_str_eq(chosen(&query), "generic");
    query = quantize_query(16, 0, 7168);
    ck_assert_str_eq(chosen(&query), "vector");
    query.lda = 7169;
    ck_assert_str_eq(chosen(&query), "scalar");
    query = quantize_query(16, 8, 4096);
    ck_assert_str_eq(chosen(&query), "vector");
    query.k = 200;
    ck_assert_str_eq(chosen(&query), "scalar");
}
END_TEST

static const uint32_t other_archs[] = {CBN_ARCH(80, 0),    CBN_ARCH(86, 0),    CBN_ARCH(89, 0),   CBN_ARCH(100, 'a'),
                                       CBN_ARCH(103, 'a'), CBN_ARCH(120, 'a'), CBN_ARCH(121, 'a')};

START_TEST(other_architectures_are_generic)
{
    for (size_t i = 0; i < sizeof(other_archs) / sizeof(other_archs[0]); i++)
        for (size_t j = 1; j < sizeof(table_m) / sizeof(table_m[0]); j++) {
            struct cbn_query query = gemm_query(table_m[j], 7168, 2048);
            query.arch = other_archs[i];
            ck_assert_str_eq(chosen(&query), "generic");
        }
}
END_TEST

START_TEST(tcgen05_cases)
{
    struct cbn_query query = gemm_query(16, 7168, 2048);
    query.arch = CBN_ARCH(100, 'a');
    ck_assert_str_eq(chosen(&query), "generic");
    query.profile.enable = "tcgen05";
    ck_assert_str_eq(chosen(&query), "tcgen05");
    query.profile.weight_scale = CBN_SCALE_UE8M0;
    ck_assert_str_eq(chosen(&query), "tcgen05");
    query.k = 256;
    ck_assert_str_eq(chosen(&query), "tcgen05");
    query.k = 128;
    ck_assert_str_eq(chosen(&query), "generic");
    query.k = 2048;
    query.profile.out = CBN_DTYPE_FP16;
    ck_assert_str_eq(chosen(&query), "generic");
    query.profile.out = CBN_DTYPE_BF16;
    query.arch = CBN_ARCH(103, 'a');
    ck_assert_str_eq(chosen(&query), "generic");
    query.arch = CBN_ARCH(90, 'a');
    ck_assert_str_eq(chosen(&query), "swap_ab");
}
END_TEST

START_TEST(facts_of_the_default_profile)
{
    int64_t facts[CBN_FACTS_MAX];
    struct cbn_query query = gemm_query(5, 2112, 7168);
    facts_of(&query, facts);
    const int64_t wanted[CBN__GEMM_FACT_COUNT] = {5,   2112, 7168, 1, 1, 0, 1, 1, 0, 0, 0, 16, 1, CBN_ARCH(90, 'a'),
                                                  132, 0};
    ck_assert_mem_eq(facts, wanted, CBN__GEMM_FACT_split * sizeof(wanted[0]));
    int64_t split = facts[CBN__GEMM_FACT_split], slice = facts[CBN__GEMM_FACT_slice];
    ck_assert(split == 1 || split == 2 || split == 4 || split == 8);
    ck_assert_int_eq(slice, (56 + split - 1) / split);
    query = quantize_query(5, 8, 4096);
    query.arch = CBN_ARCH(89, 0);
    query.profile.act_scale = CBN_LAYOUT_PACKED_COL;
    query.profile.sms = 7;
    query.profile.max_sms = 3;
    facts_of(&query, facts);
    const int64_t packed[CBN__QUANTIZE_FACT_COUNT] = {5, 8, 4096, 1, 2, 1, 0, 0, 16, 0, CBN_ARCH(89, 0), 7, 3};
    ck_assert_mem_eq(facts, packed, sizeof(packed));
    query = quantize_query(5, 0, 256);
    query.profile.approx = 1;
    facts_of(&query, facts);
    const int64_t approx[CBN__QUANTIZE_FACT_COUNT] = {5, 0, 256, 1, 1, 0, 0, 1, 16, 1, CBN_ARCH(90, 'a'), 132, 0};
    ck_assert_mem_eq(facts, approx, sizeof(approx));
}
END_TEST

/* Profiles that need the same kernel have the same facts. */
START_TEST(facts_that_cannot_matter)
{
    int64_t facts[CBN_FACTS_MAX];
    struct cbn_query query = gemm_query(5, 2112, 7168);
    query.profile.in = CBN_DTYPE_E4M3;
    query.profile.pow2 = query.profile.propagate = 1;
    query.profile.act_scale = CBN_LAYOUT_PACKED_ROW;
    query.profile.out = CBN_DTYPE_FP32;
    query.profile.bias = CBN_BIAS_FP32;
    facts_of(&query, facts);
    ck_assert_int_eq(facts[CBN__GEMM_FACT_pow2], 0);
    ck_assert_int_eq(facts[CBN__GEMM_FACT_propagate], 0);
    ck_assert_int_eq(facts[CBN__GEMM_FACT_a_scale], CBN_SCALE_UE8M0);
    ck_assert_int_eq(facts[CBN__GEMM_FACT_bias], CBN_BIAS_OUT);
    query.profile.act_scale = CBN_LAYOUT_ROW;
    facts_of(&query, facts);
    ck_assert_int_eq(facts[CBN__GEMM_FACT_a_scale], CBN_SCALE_FP32);
}
END_TEST

START_TEST(align_is_the_least)
{
    static const struct {
        int64_t n, k, lda;
        uint32_t in, out;
        int64_t align;
    } cases[] = {
        {64, 128, 0, CBN_DTYPE_BF16, CBN_DTYPE_BF16, 16},  {64, 136, 0, CBN_DTYPE_BF16, CBN_DTYPE_BF16, 8},
        {64, 128, 129, CBN_DTYPE_BF16, CBN_DTYPE_BF16, 2}, {64, 128, 129, CBN_DTYPE_FP32, CBN_DTYPE_BF16, 4},
        {65, 128, 0, CBN_DTYPE_BF16, CBN_DTYPE_FP32, 4},   {65, 128, 0, CBN_DTYPE_BF16, CBN_DTYPE_FP16, 2},
        {64, 129, 0, CBN_DTYPE_BF16, CBN_DTYPE_BF16, 1},   {4, 16, 0, CBN_DTYPE_E4M3, CBN_DTYPE_FP32, 16},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t facts[CBN_FACTS_MAX];
        struct cbn_query query = gemm_query(2, cases[i].n, cases[i].k);
        query.lda = cases[i].lda;
        query.profile.in = cases[i].in;
        query.profile.out = cases[i].out;
        facts_of(&query, facts);
        ck_assert_int_eq(facts[CBN__GEMM_FACT_align], cases[i].align);
        query.m = 1; /* one row: its stride is ignored */
        facts_of(&query, facts);
        int64_t with_single_row = facts[CBN__GEMM_FACT_align];
        query.lda = 0;
        facts_of(&query, facts);
        ck_assert_int_eq(with_single_row, facts[CBN__GEMM_FACT_align]);
    }
}
END_TEST

static void assert_refused(struct cbn_query query, int32_t status, const char *start)
{
    int64_t facts[CBN_FACTS_MAX] = {77};
    uint32_t mask = 77;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__builtin_facts(&query, facts, &mask, &err), status);
    ck_assert_msg(strncmp(err.message, start, strlen(start)) == 0, "'%s' does not begin with '%s'", err.message, start);
    ck_assert_int_eq(facts[0], 77);
    ck_assert_uint_eq(mask, 77);
    ck_assert_int_eq(cbn__builtin_facts(&query, facts, &mask, NULL), status);
}

#define REFUSED(make, change, start)                                                                                   \
    do {                                                                                                               \
        struct cbn_query query = make;                                                                                 \
        query.change;                                                                                                  \
        assert_refused(query, CBN_STATUS_INVALID, start);                                                              \
    } while (0)

START_TEST(refusals_name_the_field)
{
    REFUSED(gemm_query(1, 64, 128), m = -1, "m: -1;");
    REFUSED(gemm_query(1, 64, 128), n = -1, "n: -1;");
    REFUSED(gemm_query(1, 64, 128), k = -1, "k: -1;");
    REFUSED(gemm_query(1, 64, 128), lda = -1, "lda: -1;");
    REFUSED(gemm_query(1, 64, 128), lda = 127, "lda: 127 ");
    REFUSED(gemm_query(1, 64, 128), groups = 2, "g: 2;");
    REFUSED(gemm_query(1, 64, 128), arch = 0, "arch: 0 ");
    REFUSED(gemm_query(1, 64, 128), arch = CBN_ARCH(90, 0), "arch: ");
    REFUSED(gemm_query(1, 64, 128), profile.in = 0, "in: none;");
    REFUSED(gemm_query(1, 64, 128), profile.in = CBN_DTYPE_INT32, "in: int32;");
    REFUSED(gemm_query(1, 64, 128), profile.out = CBN_DTYPE_E4M3, "out: e4m3;");
    REFUSED(gemm_query(1, 64, 128), profile.weight_scale = 0, "weight-scale: 0;");
    REFUSED(gemm_query(1, 64, 128), profile.scale_gran = 3, "scale-gran: 3;");
    REFUSED(gemm_query(1, 64, 128), profile.bias = 3, "bias: 3;");
    REFUSED(gemm_query(1, 64, 128), profile.pow2 = 2, "pow2: 2;");
    REFUSED(gemm_query(1, 64, 128), profile.pdl = 2, "pdl: 2;");
    REFUSED(gemm_query(1, 64, 128), profile.propagate = 2, "propagate: 2;");
    REFUSED(gemm_query(1, 64, 128), profile.strict_route = 2, "strict-route: 2;");
    REFUSED(gemm_query(1, 64, 128), profile.sms = UINT32_MAX, "sms: ");
    REFUSED(gemm_query(1, 64, 128), profile.max_sms = UINT32_MAX, "max-sms: ");
    REFUSED(gemm_query(1, 64, 128), profile.approx = 1, "approx: 1;");
    REFUSED(gemm_query(1, 64, 128), profile.act_scale = 6, "act-scale: 6;");
    REFUSED(quantize_query(-1, 0, 128), m = -1, "t: -1;");
    REFUSED(quantize_query(1, 0, 128), n = 64, "n: 64;");
    REFUSED(quantize_query(1, 0, 128), groups = -1, "g: -1;");
    REFUSED(quantize_query(1, 0, 128), profile.in = CBN_DTYPE_E4M3, "in: e4m3;");
    REFUSED(quantize_query(1, 0, 128), profile.approx = 2, "approx: 2;");
    REFUSED(quantize_query(1, 0, 128), profile.approx = query.profile.pow2 = 1, "approx: 1 is for plain fp32 scales");
    REFUSED(quantize_query(1, 0, 128), profile.act_scale = (query.profile.approx = 1, CBN_LAYOUT_PACKED_COL),
            "approx: 1 is for plain fp32 scales");
    REFUSED(quantize_query(1, 0, 128), reserved = 1, "query.reserved: 1;");
    REFUSED(quantize_query(1, 0, 128), fact_count = 1, "facts: fp8_quantize takes none");
    REFUSED(quantize_query(1, 0, 128), profile.act_scale = CBN_LAYOUT_NONE, "act-scale: 0;");
    REFUSED(quantize_query(1, 4, 128), profile.act_scale = CBN_LAYOUT_COL, "act-scale: col is");
    REFUSED(quantize_query(1, 4, 128), profile.act_scale = CBN_LAYOUT_PACKED_ROW, "act-scale: packed-row is");
    REFUSED(gemm_query(1, 64, 128), op = NULL, "op: NULL;");
    struct cbn_query query = gemm_query(1, 64, 128);
    query.profile.in = CBN_DTYPE_E4M3;
    query.profile.act_scale = CBN_LAYOUT_NONE;
    assert_refused(query, CBN_STATUS_INVALID, "act-scale: 0;");
    query.op = "fp8_einsum";
    assert_refused(query, CBN_STATUS_UNSUPPORTED, "op: fp8_einsum ");
}
END_TEST

static int count_spec(void *user, const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    (void)candidate;
    (void)params;
    (void)facts;
    ++*(int *)user;
    return 0;
}

static int specs_of(struct cbn_query query, int64_t max)
{
    int64_t facts[CBN_FACTS_MAX];
    uint32_t mask;
    int count = 0;
    struct cbn__family *family = family_of(&query);
    ck_assert_int_eq(cbn__builtin_facts(&query, facts, &mask, NULL), CBN_STATUS_OK);
    struct cbn__route route = route_of(family, &query.profile);
    int32_t status = query.k ? cbn__enumerate_sweep(family, facts, max, &route, count_spec, &count, NULL)
                             : cbn__enumerate_all(family, facts, mask, &route, count_spec, &count, NULL);
    ck_assert_int_eq(status, CBN_STATUS_OK);
    return count;
}

START_TEST(few_specialisations)
{
    struct cbn_query shape = gemm_query(0, 2112, 7168), odd = gemm_query(0, 2113, 7168), any = gemm_query(0, 0, 0);
    ck_assert_int_eq(specs_of(shape, 0), 0);
    ck_assert_int_eq(specs_of(shape, 4), 1);
    ck_assert_int_eq(specs_of(shape, 8), 2);
    ck_assert_int_eq(specs_of(shape, 64), 7); /* one fused, swap_ab for six counts of tokens */
    ck_assert_int_le(specs_of(shape, 131072), 7 + (int)cbn__wgmma_tile_count());
    ck_assert_int_eq(specs_of(odd, 131072), 3);
    any.profile.disable = "wgmma,generic";
    ck_assert_int_le(specs_of(any, 131072), 16); /* of one call profile, whatever the models */
    any.profile.in = CBN_DTYPE_E4M3;
    ck_assert_int_le(specs_of(any, 131072), 16);
    any.profile.disable = "swap_ab,swap_ab_fused,wgmma";
    ck_assert_int_eq(specs_of(any, 131072), 6);
    any.profile.disable = "swap_ab,swap_ab_fused,generic";
    ck_assert_int_eq(specs_of(any, 131072), cbn__wgmma_tile_count());
    any.profile.bias = CBN_BIAS_OUT; /* two tiles are not for it */
    ck_assert_int_eq(specs_of(any, 131072), cbn__wgmma_tile_count() - 2);
    any.profile.bias = CBN_BIAS_NONE;
    any.profile.disable = "generic";
    ck_assert_int_le(specs_of(any, 131072), 32);
    shape.profile.policy = odd.profile.policy = "reference";
    ck_assert_int_eq(specs_of(shape, 31), 4);
    ck_assert_int_eq(specs_of(shape, 64), 5);
    ck_assert_int_eq(specs_of(odd, 131072), 3);
    ck_assert_int_eq(specs_of(quantize_query(0, 0, 7168), 131072), 1);
    ck_assert_int_eq(specs_of(quantize_query(0, 0, 0), 131072), 2);
}
END_TEST

/* Specialisations never depend on the exact N, K or G: two shapes that are cut alike have equal parameters. */
START_TEST(shapes_share_specialisations)
{
    for (int64_t m = 1; m <= 64; m++) {
        int64_t params[2][CBN_PARAMS_MAX] = {{0}}, facts[CBN_FACTS_MAX];
        for (int i = 0; i < 2; i++) {
            struct cbn_query query = gemm_query(m, i ? 51200 : 64, i ? 16384 : 128);
            facts_of(&query, facts);
            int candidate = cbn__family_candidate(GEMM, m < 32 ? "swap_ab" : "wgmma");
            cbn__params_resolve(&GEMM->candidates[candidate], facts, params[i]);
        }
        ck_assert_mem_eq(params[0], params[1], sizeof(params[0]));
    }
}
END_TEST

static struct cbn_geometry geometry_of(const struct cbn_query *query, int64_t *ret_params)
{
    int64_t facts[CBN_FACTS_MAX];
    struct cbn_geometry geometry = {0};
    struct cbn__family *family = family_of(query);
    facts_of(query, facts);
    const struct cbn__candidate *candidate = &family->candidates[cbn__family_candidate(family, chosen(query))];
    cbn__params_resolve(candidate, facts, ret_params);
    candidate->geometry(ret_params, facts, &geometry);
    return geometry;
}

static int64_t param(const struct cbn_query *query, const int64_t *params, const char *name)
{
    struct cbn__family *family = family_of(query);
    const struct cbn__template *template = &family->candidates[cbn__family_candidate(family, chosen(query))].template;
    for (uint32_t i = 0; i < template->param_count; i++)
        if (strcmp(template->param_names[i], name) == 0)
            return params[i];
    ck_abort_msg("no parameter %s", name);
    return 0;
}

START_TEST(portable_geometry)
{
    static const struct {
        int64_t m, n, k, tile_m, tile_n;
        uint32_t threads, grid;
    } cases[] = {
        {32, 7168, 2048, 64, 64, 128, 112},  {64, 7168, 2048, 64, 64, 128, 112},    {65, 7168, 2048, 64, 128, 256, 112},
        {16, 7000, 2048, 16, 64, 128, 110},  {17, 7000, 2048, 64, 64, 128, 110},    {850, 7001, 2047, 64, 128, 256, 132},
        {64, 51200, 5120, 64, 64, 128, 264}, {850, 7168, 2048, 64, 128, 256, 132},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t params[CBN_PARAMS_MAX];
        struct cbn_query query = gemm_query(cases[i].m, cases[i].n, cases[i].k);
        query.profile.policy = "reference";
        query.profile.disable = "wgmma";
        struct cbn_geometry geometry = geometry_of(&query, params);
        ck_assert_int_eq(param(&query, params, "BM"), cases[i].tile_m);
        ck_assert_int_eq(param(&query, params, "BN"), cases[i].tile_n);
        ck_assert_int_eq(param(&query, params, "THREADS"), cases[i].threads);
        ck_assert_int_eq(param(&query, params, "VEC"), cases[i].n == 7001 ? 1 : 16);
        ck_assert_uint_eq(geometry.block[0], cases[i].threads);
        ck_assert_uint_eq(geometry.grid[0], cases[i].grid);
        ck_assert_uint_eq(geometry.workspace_bytes, 0);
    }
}
END_TEST

#define SHARED_MAX 232448 /* of a CTA on sm_90 */

/* How K is cut follows the shape and the SMs, never the tokens: a row's bits must not depend on how many others there are. */
static void check_swap_ab(struct cbn_query query, int64_t split)
{
    int64_t params[CBN_PARAMS_MAX], facts[CBN_FACTS_MAX], max_sms = query.profile.max_sms;
    facts_of(&query, facts);
    const char *name = chosen(&query);
    if (strncmp(name, "swap_ab", 7) != 0)
        return;
    struct cbn_geometry geometry = geometry_of(&query, params);
    int64_t bm = param(&query, params, "BM"), tiles = (query.n + 63) / 64, grid = (int64_t)geometry.grid[0] * geometry.grid[1];
    ck_assert_int_eq(facts[CBN__GEMM_FACT_split], split);
    ck_assert_int_eq(geometry.cluster[0], split);
    ck_assert_uint_eq(geometry.cluster[1] * geometry.cluster[2], 1);
    ck_assert_uint_eq(geometry.grid[0] % geometry.cluster[0], 0);
    ck_assert_int_ge(geometry.grid[0], split);
    ck_assert_int_le(geometry.grid[0] / split, tiles);
    ck_assert_int_eq(geometry.grid[1], (query.m + bm - 1) / bm);
    ck_assert_uint_eq(geometry.grid[2], 1);
    ck_assert_int_eq(geometry.block[0], strcmp(name, "swap_ab_fused") == 0 ? 288 : 160);
    ck_assert_msg(geometry.shared_bytes > 0 && geometry.shared_bytes <= SHARED_MAX, "%s m=%lld n=%lld k=%lld: %u bytes",
                  name, (long long)query.m, (long long)query.n, (long long)query.k, geometry.shared_bytes);
    if (max_sms > 1)
        ck_assert_int_le(grid, max_sms);
    bool quantizes = strcmp(name, "swap_ab") == 0 && query.profile.in != CBN_DTYPE_E4M3;
    struct cbn__gemm_workspace workspace = cbn__gemm_workspace_of(query.m, query.k);
    ck_assert_uint_eq(geometry.workspace_bytes, quantizes ? (uint64_t)workspace.bytes : 0);
}

static const int64_t swap_ab_n[] = {8, 64, 512, 576, 2112, 3072, 7168, 24576, 51200, 152064};
static const int64_t swap_ab_k[] = {16, 128, 256, 512, 1536, 2048, 7168, 16384, 18432, 29568, 53248, 163840};
static const int64_t swap_ab_m[] = {1, 8, 9, 16, 24, 25, 32, 33, 48, 49, 64, 65, 96, 127, 128};
static const uint32_t swap_ab_max_sms[] = {0, 2, 7, 64};

START_TEST(swap_ab_geometry)
{
    for (size_t n = 0; n < sizeof(swap_ab_n) / sizeof(swap_ab_n[0]); n++)
        for (size_t k = 0; k < sizeof(swap_ab_k) / sizeof(swap_ab_k[0]); k++)
            for (size_t s = 0; s < sizeof(swap_ab_max_sms) / sizeof(swap_ab_max_sms[0]); s++) {
                int64_t facts[CBN_FACTS_MAX];
                struct cbn_query query = gemm_query(1, swap_ab_n[n], swap_ab_k[k]);
                query.profile.in = _i & 1 ? CBN_DTYPE_E4M3 : CBN_DTYPE_BF16;
                query.profile.scale_gran = _i & 2 ? CBN_GRAN_ROW : CBN_GRAN_BLOCK;
                query.profile.disable = _i & 4 ? "swap_ab_fused" : NULL;
                query.profile.max_sms = swap_ab_max_sms[s];
                facts_of(&query, facts);
                for (size_t m = 0; m < sizeof(swap_ab_m) / sizeof(swap_ab_m[0]); m++) {
                    query.m = swap_ab_m[m];
                    check_swap_ab(query, facts[CBN__GEMM_FACT_split]);
                }
            }
}
END_TEST

/* On 132 SMs, as measured on an H200: the cut of K, the groups of a stage, and when dependents start. */
static const struct {
    int64_t m, n, k;
    uint32_t in;
    int64_t split, room, deep;
    uint64_t trigger;
} cuts[] = {
    {1, 512, 7168, CBN_DTYPE_E4M3, 8, CBN__ROOM_ALONE, 1, CBN__TRIGGER_WAITED},
    {16, 1536, 4096, CBN_DTYPE_E4M3, 4, CBN__ROOM_ALONE, 1, CBN__TRIGGER_WAITED},
    {16, 3072, 1536, CBN_DTYPE_E4M3, 2, CBN__ROOM_ALONE, 0, CBN__TRIGGER_WAITED},
    {64, 3072, 1536, CBN_DTYPE_E4M3, 2, CBN__ROOM_ALONE, 0, CBN__TRIGGER_WAITED},
    {8, 7168, 2048, CBN_DTYPE_E4M3, 1, CBN__ROOM_ALONE, 1, CBN__TRIGGER_TOP},
    {9, 7168, 2048, CBN_DTYPE_E4M3, 1, CBN__ROOM_ALONE, 0, CBN__TRIGGER_TOP},
    {24, 7168, 2048, CBN_DTYPE_E4M3, 1, CBN__ROOM_ALONE, 1, CBN__TRIGGER_TOP},
    {24, 7168, 2048, CBN_DTYPE_BF16, 1, CBN__ROOM_ALONE, 1, CBN__TRIGGER_WAITED},
    {32, 7168, 2048, CBN_DTYPE_E4M3, 1, CBN__ROOM_ALONE, 1, CBN__TRIGGER_TOP},
    {33, 7168, 2048, CBN_DTYPE_BF16, 1, CBN__ROOM_ALONE, 0, CBN__TRIGGER_LOADED},
    {16, 4096, 7168, CBN_DTYPE_E4M3, 2, CBN__ROOM_ALONE, 1, CBN__TRIGGER_WAITED},
    {33, 4096, 7168, CBN_DTYPE_E4M3, 2, CBN__ROOM_ALONE, 0, CBN__TRIGGER_LOADED},
    {16, 2112, 7168, CBN_DTYPE_E4M3, 8, CBN__ROOM_SHARED, 0, CBN__TRIGGER_WAITED},
    {32, 2112, 7168, CBN_DTYPE_E4M3, 8, CBN__ROOM_SHARED, 0, CBN__TRIGGER_WAITED},
    {16, 4608, 7168, CBN_DTYPE_E4M3, 4, CBN__ROOM_SHARED, 0, CBN__TRIGGER_WAITED},
    {16, 10240, 5120, CBN_DTYPE_E4M3, 2, CBN__ROOM_SHARED, 0, CBN__TRIGGER_WAITED},
    {16, 24576, 1536, CBN_DTYPE_E4M3, 1, CBN__ROOM_SHARED, 0, CBN__TRIGGER_WAITED},
    {16, 32768, 512, CBN_DTYPE_E4M3, 1, CBN__ROOM_STRIDED, 0, CBN__TRIGGER_TOP},
    {32, 32768, 512, CBN_DTYPE_E4M3, 1, CBN__ROOM_STRIDED, 0, CBN__TRIGGER_TOP},
    {16, 7168, 16384, CBN_DTYPE_E4M3, 4, CBN__ROOM_STRIDED, 0, CBN__TRIGGER_WAITED},
    {32, 18432, 7168, CBN_DTYPE_E4M3, 4, CBN__ROOM_STRIDED, 1, CBN__TRIGGER_WAITED},
    {16, 36864, 7168, CBN_DTYPE_E4M3, 2, CBN__ROOM_STRIDED, 0, CBN__TRIGGER_WAITED},
    {16, 5120, 17408, CBN_DTYPE_E4M3, 4, CBN__ROOM_SHARED, 0, CBN__TRIGGER_WAITED},
};

START_TEST(swap_ab_lies_as_measured)
{
    int64_t facts[CBN_FACTS_MAX], params[CBN_PARAMS_MAX];
    struct cbn_query query = gemm_query(cuts[_i].m, cuts[_i].n, cuts[_i].k);
    query.profile.in = cuts[_i].in;
    query.profile.disable = "swap_ab_fused";
    facts_of(&query, facts);
    ck_assert_str_eq(chosen(&query), "swap_ab");
    (void)geometry_of(&query, params);
    ck_assert_int_eq(facts[CBN__GEMM_FACT_split], cuts[_i].split);
    ck_assert_int_eq(facts[CBN__GEMM_FACT_room], cuts[_i].room);
    ck_assert_int_eq(facts[CBN__GEMM_FACT_deep], cuts[_i].deep);
    ck_assert_uint_eq(cbn__swap_ab_trigger(params, facts), cuts[_i].trigger);
}
END_TEST

START_TEST(a_budget_of_sms_lets_dependents_come_at_once)
{
    int64_t facts[CBN_FACTS_MAX], params[CBN_PARAMS_MAX];
    struct cbn_query query = gemm_query(_i ? 64 : 8, 2112, 7168);
    query.profile.in = CBN_DTYPE_E4M3;
    query.profile.max_sms = 64;
    facts_of(&query, facts);
    (void)geometry_of(&query, params);
    ck_assert_int_eq(facts[CBN__GEMM_FACT_room], CBN__ROOM_BOUNDED);
    ck_assert_uint_eq(cbn__swap_ab_trigger(params, facts), _i ? CBN__TRIGGER_LOADED : CBN__TRIGGER_TOP);
}
END_TEST

START_TEST(geometry_keeps_to_the_budget)
{
    int64_t params[CBN_PARAMS_MAX];
    struct cbn_query query = gemm_query(4096, 7168, 2048);
    query.profile.max_sms = 20;
    ck_assert_uint_eq(geometry_of(&query, params).grid[0], 20);
    query.m = 1;
    query.n = 128;
    ck_assert_uint_le(geometry_of(&query, params).grid[0], 20);
    query = quantize_query(10001, 8, 4096);
    query.profile.max_sms = 20;
    ck_assert_uint_eq(geometry_of(&query, params).grid[0], 20);
    ck_assert_uint_eq(geometry_of(&query, params).block[0], 1024);
    query.profile.max_sms = 0;
    ck_assert_uint_eq(geometry_of(&query, params).grid[0], 132 * 8);
    ck_assert_uint_eq(geometry_of(&query, params).block[0], 256);
}
END_TEST

START_TEST(geometry_saturates)
{
    int64_t params[CBN_PARAMS_MAX];
    struct cbn_query query = gemm_query(INT64_MAX, INT64_MAX / 64 * 64, 128);
    ck_assert_uint_eq(geometry_of(&query, params).grid[0], 132);
    query = gemm_query(1, 64, INT64_MAX / 256 * 256);
    ck_assert_uint_eq(geometry_of(&query, params).grid[0], 1);
    query = quantize_query(INT64_MAX, INT64_MAX, 128);
    query.profile.sms = INT32_MAX;
    ck_assert_uint_eq(geometry_of(&query, params).grid[0], INT32_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("builtin");
    TCase *test_case = tcase_create("builtin");
    tcase_set_timeout(test_case, 60);
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_test(test_case, routing_table);
    tcase_add_test(test_case, default_routing_table);
    tcase_add_test(test_case, other_arguments_do_not_route);
    tcase_add_test(test_case, extents_of_zero);
    tcase_add_test(test_case, unaligned_rows_take_another_candidate);
    tcase_add_test(test_case, other_architectures_are_generic);
    tcase_add_test(test_case, tcgen05_cases);
    tcase_add_test(test_case, facts_of_the_default_profile);
    tcase_add_test(test_case, facts_that_cannot_matter);
    tcase_add_test(test_case, align_is_the_least);
    tcase_add_test(test_case, refusals_name_the_field);
    tcase_add_test(test_case, few_specialisations);
    tcase_add_test(test_case, shapes_share_specialisations);
    tcase_add_test(test_case, portable_geometry);
    tcase_add_loop_test(test_case, swap_ab_geometry, 0, 8);
    tcase_add_loop_test(test_case, swap_ab_lies_as_measured, 0, sizeof(cuts) / sizeof(cuts[0]));
    tcase_add_loop_test(test_case, a_budget_of_sms_lets_dependents_come_at_once, 0, 2);
    tcase_add_test(test_case, geometry_keeps_to_the_budget);
    tcase_add_test(test_case, geometry_saturates);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
