/*
 * Cases from the field that concern warming and calls, as far as the host decides them: 34, 35, 37, 38 and 40 to 44.
 * Nothing is computed here; the same cases' numbers are checked by the GPU suite.
 */
#include <time.h>

#include "cases_fixture.h"
#include "dispatch/builtin.h"
#include "unit/random.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define M_MAX 131072
#define PREPARED_MAX 98765 /* ragged */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The structs of swap_ab and wgmma begin with them. */
static struct cbn__gemm_args launched_args(void)
{
    struct cbn__gemm_args args;
    struct fake_launch launch = last_launch();
    size_t bytes = strcmp(launch.kernel, "cbn_fp8_swap_ab") == 0 ? sizeof(struct cbn__swap_ab_args)
                   : strcmp(launch.kernel, "cbn_fp8_wgmma") == 0 ? sizeof(struct cbn__wgmma_args)
                                                                 : sizeof(args);
    ck_assert_uint_eq(launch.parameter_bytes, bytes);
    memcpy(&args, launch.parameters, sizeof(args));
    return args;
}

/* ---- 34: every M ---- */

static int count_spec(void *user, const struct cbn_spec *spec)
{
    ck_assert_uint_eq(strlen(spec->key), 32);
    ++*(unsigned *)user;
    return 0;
}

static unsigned listed(int64_t m)
{
    struct cbn_query query = query_of("fp8_gemm", HOPPER, m, 2112, 7168);
    unsigned count = 0;
    ck_assert_int_eq(cbn_enumerate(runtime, &query, count_spec, &count, &error), CBN_STATUS_OK);
    return count;
}

/* As many compiles as there are distinct specialisations, and those are the ones listed. */
START_TEST(every_m_compiles_what_is_listed)
{
    fake.set_quick(true);
    for (int64_t m = 1; m <= M_MAX; m++) {
        struct cbn_fp8_gemm_args args = gemm_args(m, 2112, 7168, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
        call(&args);
    }
    fake.set_quick(false);
    unsigned count = listed(M_MAX);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.calls, M_MAX);
    ck_assert_uint_eq(stats.compiles, count);
    ck_assert_uint_eq(stats.puts, count);
    ck_assert_uint_eq(stats.memory_hits, 2 * M_MAX - count); /* fp8_quantize ahead of each */
    ck_assert_uint_eq(list_entries().count, count);
    ck_assert_int_eq(compiles_counted(), count);
}
END_TEST

START_TEST(after_preparing_a_range_no_m_in_it_compiles)
{
    struct cbn_query query = query_of("fp8_gemm", HOPPER, PREPARED_MAX, 2112, 7168);
    struct cbn_warm_result result = {.size = sizeof(result)};
    uint64_t state = 34, launches = 0;
    ck_assert_int_eq(cbn_prepare(runtime, &query, 1, &result, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(result.requested, listed(PREPARED_MAX));
    ck_assert_uint_eq(result.compiled, result.requested);
    struct cbn_stats before = stats_now();
    uint32_t images = fake.calls("cuLibraryLoadData"), functions = fake.calls("cuFuncLoad");
    ck_assert_uint_eq(before.loads, result.requested);
    fake.set_quick(true);
    for (int i = 0; i <= 10000; i++) {
        int64_t below = random_below(&state, 2) ? PREPARED_MAX : 200;
        int64_t m = i == 0 ? PREPARED_MAX : 1 + random_below(&state, below);
        struct cbn_fp8_gemm_args args = gemm_args(m, 2112, 7168, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
        args.miss_policy = CBN_MISS_NEVER;
        call(&args);
        launches += 2;
    }
    fake.set_quick(false);
    struct cbn_stats after = stats_now();
    ck_assert_uint_eq(after.launches, launches);
    ck_assert_uint_eq(after.memory_hits, before.memory_hits + launches);
    ck_assert_uint_eq(after.compiles, before.compiles);
    ck_assert_uint_eq(after.loads, before.loads);
    ck_assert_uint_eq(fake.calls("cuLibraryLoadData"), images);
    ck_assert_uint_eq(fake.calls("cuFuncLoad"), functions);
}
END_TEST

/* ---- 35: a whole model on a warm store ---- */

#define QUERIES_MAX 64
static char k_seen[1 << 17];

/* Every FP8 layer, and a quantisation for every K. */
static uint32_t model_queries(int64_t tp, struct cbn_query *ret_queries)
{
    struct cbn_model_options options = CBN_MODEL_OPTIONS_INIT;
    struct cbn_model *model = NULL;
    uint32_t count = 0;
    options.tp = tp;
    ck_assert_msg(cbn_model_load(CBN_TEST_SOURCE_DIR "/tests/data/models/DeepSeek-V3.json", &options, &model, &error) ==
                      CBN_STATUS_OK,
                  "%s", error.message);
    memset(k_seen, 0, sizeof(k_seen));
    for (uint32_t i = 0; i < cbn_model_shape_count(model); i++) {
        const struct cbn_model_shape *shape = cbn_model_shape_get(model, i);
        if (!shape->fp8 || strcmp(shape->op, "fp8_gemm") != 0)
            continue;
        ck_assert_uint_le(count + 2, QUERIES_MAX);
        ret_queries[count++] = query_of("fp8_gemm", HOPPER, M_MAX, shape->n, shape->k);
        ck_assert_int_lt(shape->k, (int64_t)sizeof(k_seen));
        if (!k_seen[shape->k])
            ret_queries[count++] = query_of("fp8_quantize", HOPPER, M_MAX, 0, shape->k);
        k_seen[shape->k] = 1;
    }
    cbn_model_destroy(model);
    ck_assert_uint_ge(count, 8);
    return count;
}

START_TEST(a_model_on_a_warm_store_is_quick_and_touches_no_gpu)
{
    struct cbn_query queries[QUERIES_MAX];
    struct cbn_warm_result result = {.size = sizeof(result)};
    uint32_t count = model_queries(_i ? 8 : 1, queries);
    ck_assert_msg(cbn_warm(runtime, queries, count, NULL, &result, &error) == CBN_STATUS_OK, "%s", error.message);
    uint32_t requested = result.requested;
    ck_assert_uint_eq(result.compiled, requested);
    restart(NOWHERE);
    uint32_t asked = fake.calls_total();
    double start_s = now_s();
    ck_assert_int_eq(cbn_warm(runtime, queries, count, NULL, &result, &error), CBN_STATUS_OK);
    ck_assert_int_eq(cbn_check(runtime, queries, count, NULL, NULL, &error), CBN_STATUS_OK);
    ck_assert_double_lt(now_s() - start_s, 1.0);
    ck_assert_uint_eq(result.already, requested);
    ck_assert_uint_eq(result.uncovered + result.failed + result.compiled, 0);
    ck_assert_uint_eq(fake.calls_total(), asked); /* the driver is not even opened */
    start_s = now_s();
    ck_assert_int_eq(cbn_prepare(runtime, queries, count, &result, &error), CBN_STATUS_OK);
    ck_assert_double_lt(now_s() - start_s, 1.0);
    ck_assert_uint_eq(result.already, requested);
    ck_assert_uint_eq(stats_now().loads, requested);
    ck_assert_uint_eq(fake.calls("cuFuncLoad"), requested);
    ck_assert_uint_eq(fake.calls("cuLaunchKernelEx"), 0);
    ck_assert_uint_eq(fake.calls("cuMemAlloc"), 0);
    ck_assert_int_eq(compiles_counted(), requested);
}
END_TEST

/* ---- 37, 38: which rows a kernel is told of ---- */

/* Rows of a larger buffer: the kernel is told of the call's rows, and no tile is launched for the others. */
START_TEST(a_launch_knows_the_calls_rows_only)
{
    static const struct {
        int64_t m;
        const char *kernel;
    } cases[] = {{33, "wgmma"}, {17, "swap_ab"}, {1, "swap_ab"}};
    restart(NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cbn_fp8_gemm_args args = gemm_args(cases[i].m, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
        args.a_scale.strides[1] = 64; /* of the whole buffer of 64 rows */
        args.m_valid = PLACE(6);
        call(&args);
        struct cbn__gemm_args given = launched_args();
        struct cbn_spec spec = launched_spec(cases[i].kernel);
        ck_assert_int_eq(given.m, cases[i].m);
        ck_assert_int_eq(given.sa_col, 64);
        ck_assert_uint_eq(given.m_valid, PLACE(6));
        int64_t tile_m = param_of(&spec, "BM"), token_tiles = (cases[i].m + tile_m - 1) / tile_m;
        bool swapped = strcmp(cases[i].kernel, "swap_ab") == 0; /* its tiles of tokens are grid.y */
        int64_t tile_n = swapped ? 64 : param_of(&spec, "BN"), tiles = (256 + tile_n - 1) / tile_n;
        ck_assert_int_le(last_launch().grid[0] / last_launch().cluster[0], swapped ? tiles : token_tiles * tiles);
        ck_assert_int_eq(last_launch().grid[1], swapped ? token_tiles : 1);
    }
}
END_TEST

/* ---- 40: strides and addresses ---- */

/* The specialisation of a contiguous call, told of the slice's address, stride and scales. */
START_TEST(a_column_slice_takes_the_contiguous_route)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    restart(NULL);
    call(&args);
    uint64_t contiguous = last_launch().image_sum;
    args.a.strides[0] = 512 + 128;
    args.a.data += 128;
    args.a_scale.data += 4 * 64; /* column-major: the next group of K */
    call(&args);
    struct cbn__gemm_args given = launched_args();
    ck_assert_uint_eq(last_launch().image_sum, contiguous);
    ck_assert_uint_eq(given.a, PLACE(0) + 128);
    ck_assert_int_eq(given.lda, 640);
    ck_assert_uint_eq(given.a_scale, PLACE(4) + 256);
    ck_assert_int_eq(given.sa_col, 64);
    args = gemm_args(1, 256, 512, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    call(&args);
    contiguous = last_launch().image_sum;
    static const int64_t strides[] = {0, -1, 513, 512, INT64_MAX};
    for (size_t i = 0; i < COUNT(strides); i++) {
        args.a.strides[0] = args.d.strides[0] = strides[i];
        call(&args);
        ck_assert_uint_eq(last_launch().image_sum, contiguous);
        ck_assert_int_eq(launched_args().lda, 512);
    }
}
END_TEST

static void shift(struct cbn_fp8_gemm_args *args, int which, uint64_t bytes)
{
    struct cbn_tensor *tensors[] = {&args->a, &args->w, &args->d};
    tensors[which]->data += bytes;
}

/* One element off 16 bytes, at call time: the route without vectors; where that is off, a typed error. */
START_TEST(a_base_off_by_an_element_takes_another_route)
{
    static const uint64_t element_bytes[] = {2, 1, 2};
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    call(&args);
    (void)launched_spec("wgmma");
    shift(&args, _i, element_bytes[_i]);
    call(&args);
    struct cbn_spec spec = launched_spec("generic");
    ck_assert_int_eq(param_of(&spec, "VEC"), 1);
    struct cbn_runtime_options options = case_options(NULL);
    options.disable = "generic";
    options.nvrtc_path = STUB;
    cbn_runtime_destroy(runtime);
    create_runtime(&options);
    ck_assert_int_eq(refuse(&args), CBN_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "align % 16 == 0"));
}
END_TEST

/* ---- 41: the route that explain names is the one that runs ---- */

static void assert_route(int64_t m, int64_t n, int64_t k, uint32_t out)
{
    struct cbn_fp8_gemm_args args = gemm_args(m, n, k, CBN_DTYPE_BF16, out);
    struct cbn_query query = query_of("fp8_gemm", HOPPER, m, n, k);
    struct cbn_explanation told = {.size = sizeof(told)};
    query.profile.out = out;
    ck_assert_int_eq(cbn_explain(runtime, &query, &told, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(told.chosen, 1);
    call(&args);
    bool fast = out == CBN_DTYPE_BF16 && n % 64 == 0 && k % 128 == 0;
    struct cbn_spec spec = launched_spec(!fast ? "generic" : m < 32 ? "swap_ab" : "wgmma");
    ck_assert_str_eq(spec.key, told.spec.key);
    ck_assert_str_eq(spec.text, told.spec.text);
    ck_assert_int_eq(param_of(&spec, "OUT"), out); /* never bf16 bits in fp16 memory */
}

START_TEST(explain_names_what_runs)
{
    static const int64_t ms[] = {1, 31, 32, 64, 850}, ns[] = {576, 2112, 7168, 100, 7};
    static const int64_t ks[] = {1152, 7168, 128, 64, 129, 200};
    for (size_t m = 0; m < COUNT(ms); m++)
        for (size_t n = 0; n < COUNT(ns); n++)
            for (size_t k = 0; k < COUNT(ks); k++)
                for (uint32_t out = CBN_DTYPE_BF16; out <= CBN_DTYPE_FP32; out++)
                    assert_route(ms[m], ns[n], ks[k], out);
}
END_TEST

/* ---- 42: scales of another kind ---- */

START_TEST(scales_of_the_wrong_form_are_named)
{
    struct cbn_fp8_gemm_args sound = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16), args;
    const struct cbn_tensor one = {PLACE(2), CBN_DTYPE_FP32, 1, {1}, {1}};
    const struct cbn_tensor one_by_one = tensor_2d(PLACE(2), CBN_DTYPE_FP32, 1, 1, 1, 1);
    const struct cbn_tensor by_stride[] = {tensor_2d(PLACE(2), CBN_DTYPE_FP32, 4, 2, 1, 4), /* [K,N] blocks */
                                           tensor_2d(PLACE(2), CBN_DTYPE_FP32, 2, 3, 4, 1), /* one column short */
                                           tensor_2d(PLACE(2), CBN_DTYPE_FP32, 1, 4, 4, 1), one, one_by_one};
    for (size_t i = 0; i < COUNT(by_stride); i++) {
        args = sound;
        args.w_scale = by_stride[i];
        ck_assert_int_eq(refuse(&args), CBN_STATUS_INVALID);
        ck_assert_msg(strstr(error.message, "w_scale has extents"), "%s", error.message);
    }
    const struct cbn_tensor activation[] = {tensor_2d(PLACE(4), CBN_DTYPE_FP32, 4, 64, 64, 1),
                                            tensor_2d(PLACE(4), CBN_DTYPE_FP32, 63, 4, 1, 64), one, one_by_one};
    for (size_t i = 0; i < COUNT(activation); i++) {
        args = sound;
        args.a_scale = activation[i];
        ck_assert_int_eq(refuse(&args), CBN_STATUS_INVALID);
        ck_assert_msg(strstr(error.message, "a_scale has extents"), "%s", error.message);
    }
    ck_assert_uint_eq(fake.launch_count(), 0);
}
END_TEST

/* Recipe 1, 1, 128: a scale for every weight row, fp32 and packed. Strides are told to the kernel as they are. */
START_TEST(row_scales_and_column_major_scales_arrive)
{
    struct cbn_fp8_gemm_args args = gemm_args(66, 250, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    args.w_scale_gran = CBN_GRAN_ROW;
    args.w_scale = tensor_2d(PLACE(2), CBN_DTYPE_FP32, 250, 4, 4, 1);
    restart(NULL);
    call(&args);
    struct cbn_spec spec = launched_spec("generic");
    ck_assert_int_eq(param_of(&spec, "W_GRAN"), CBN_GRAN_ROW);
    ck_assert_int_eq(param_of(&spec, "W_SCALE"), CBN_SCALE_FP32);
    static const int64_t column_strides[] = {250, 252}; /* as it is, and rounded up to 4 */
    for (size_t i = 0; i < COUNT(column_strides); i++) {
        args.w_scale = tensor_2d(PLACE(2), CBN_DTYPE_FP32, 250, 4, 1, column_strides[i]);
        call(&args);
        ck_assert_int_eq(launched_args().sw_row, 1);
        ck_assert_int_eq(launched_args().sw_col, column_strides[i]);
    }
    args.w_scale = tensor_2d(PLACE(2), CBN_DTYPE_INT32, 250, 1, 1, 252);
    call(&args);
    spec = launched_spec("generic");
    ck_assert_int_eq(param_of(&spec, "W_SCALE"), CBN_SCALE_UE8M0);
    static const int64_t activation_strides[] = {66, 68};
    for (size_t i = 0; i < COUNT(activation_strides); i++) {
        args.a_scale_layout = CBN_LAYOUT_COL;
        args.a_scale.strides[1] = activation_strides[i];
        call(&args);
        ck_assert_int_eq(launched_args().sa_col, activation_strides[i]);
        args.a_scale_layout = CBN_LAYOUT_COL4; /* of which 66 is no stride */
        ck_assert_int_eq(refuse(&args), i ? CBN_STATUS_OK : CBN_STATUS_INVALID);
    }
}
END_TEST

/* ---- 43: packed scales ---- */

START_TEST(packed_scales_have_as_many_words_as_groups_need)
{
    static const struct {
        int64_t groups, words;
    } cases[] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 2}};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int64_t words = 0; words <= 3; words++) {
            struct cbn_fp8_gemm_args args = gemm_args(64, 256, 128 * cases[i].groups, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
            args.a_scale_layout = CBN_LAYOUT_PACKED_COL;
            args.a_scale = tensor_2d(PLACE(4), CBN_DTYPE_INT32, 64, cases[i].words, 1, 64);
            args.w_scale = tensor_2d(PLACE(2), CBN_DTYPE_INT32, 2, words, 1, 4);
            ck_assert_int_eq(refuse(&args), words == cases[i].words ? CBN_STATUS_OK : CBN_STATUS_INVALID);
            args.w_scale.extents[1] = cases[i].words;
            args.a_scale.extents[1] = words;
            ck_assert_int_eq(refuse(&args), words == cases[i].words ? CBN_STATUS_OK : CBN_STATUS_INVALID);
            struct cbn_fp8_quantize_args quantize = quantize_args(64, 128 * cases[i].groups, CBN_DTYPE_BF16);
            quantize.scale_layout = CBN_LAYOUT_PACKED_COL;
            quantize.scales = tensor_2d(PLACE(2), CBN_DTYPE_INT32, 64, words, 1, 64);
            ck_assert_int_eq(cbn_fp8_quantize(runtime, &quantize, stream, &error),
                             words == cases[i].words ? CBN_STATUS_OK : CBN_STATUS_INVALID);
        }
    struct cbn_spec spec = launched_spec("vector");
    ck_assert_int_eq(param_of(&spec, "POW2"), 1); /* packed scales are powers of two by themselves */
}
END_TEST

/* ---- 44, dense half: weights of another layout ---- */

START_TEST(weights_by_k_are_refused)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 512, 512, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    args.w.strides[0] = 1;
    args.w.strides[1] = 512; /* K x N with the extents of N x K: square, so that only the strides tell */
    ck_assert_int_eq(refuse(&args), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "w.strides[1] is 512 and must be 1"));
    struct cbn_fp8_gemm_plan_options plan = CBN_FP8_GEMM_PLAN_OPTIONS_INIT;
    struct cbn_plan *ret_plan = NULL;
    plan.in = plan.out = CBN_DTYPE_BF16;
    plan.w = args.w;
    plan.w_scale = args.w_scale;
    ck_assert_int_eq(cbn_fp8_gemm_plan_create(runtime, &plan, &ret_plan, &error), CBN_STATUS_INVALID);
    ck_assert_ptr_null(ret_plan);
    ck_assert_uint_eq(fake.launch_count(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cases of calls");
    TCase *cases = tcase_create("calls");
    tcase_add_checked_fixture(cases, set_up_case, tear_down_case);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, every_m_compiles_what_is_listed);
    tcase_add_test(cases, after_preparing_a_range_no_m_in_it_compiles);
    tcase_add_loop_test(cases, a_model_on_a_warm_store_is_quick_and_touches_no_gpu, 0, 2);
    tcase_add_test(cases, a_launch_knows_the_calls_rows_only);
    tcase_add_test(cases, a_column_slice_takes_the_contiguous_route);
    tcase_add_loop_test(cases, a_base_off_by_an_element_takes_another_route, 0, 3);
    tcase_add_test(cases, explain_names_what_runs);
    tcase_add_test(cases, scales_of_the_wrong_form_are_named);
    tcase_add_test(cases, row_scales_and_column_major_scales_arrive);
    tcase_add_test(cases, packed_scales_have_as_many_words_as_groups_need);
    tcase_add_test(cases, weights_by_k_are_refused);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
