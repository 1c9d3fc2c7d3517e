/*
 * swap_ab and swap_ab_fused on the fake driver: what is launched, in which order, with which bytes and maps, and that
 * nothing is where a part is missing.
 */
#include <cuda.h>

#include "api/plan.h"
#include "ops_fixture.h"

#define N 200
#define K 5008 /* 39 whole groups and 16 elements of another */
#define M 20

/* Without the fused form every input but codes has the quantiser ahead of it, whatever the policy's thresholds. */
static struct cbn_runtime_options two_launch_options(const char *folder)
{
    struct cbn_runtime_options options = fake_options(folder);
    options.disable = "swap_ab_fused";
    return options;
}

static void set_up(void)
{
    open_fake();
    struct cbn_runtime_options options = two_launch_options(shared_folder);
    create_runtime(&options);
}

static void restart(const struct cbn_runtime_options *options)
{
    cbn_runtime_destroy(runtime);
    create_runtime(options);
}

static void tear_down(void)
{
    close_runtime();
}

static struct cbn__swap_ab_args product_of(const struct fake_launch *launch)
{
    struct cbn__swap_ab_args arguments;
    ck_assert_str_eq(launch->kernel, "cbn_fp8_swap_ab");
    ck_assert_uint_eq(launch->parameter_bytes, sizeof(arguments));
    memcpy(&arguments, launch->parameters, sizeof(arguments));
    return arguments;
}

static void call(const struct cbn_fp8_gemm_args *args)
{
    ck_assert_msg(cbn_fp8_gemm(runtime, args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
}

static void assert_nothing(const struct cbn_fp8_gemm_args *args, int32_t status, const char *words)
{
    uint32_t before = fake.launch_count();
    int32_t got = cbn_fp8_gemm(runtime, args, stream, &error);
    ck_assert_msg(got == status && strstr(error.message, words), "%s: %s", cbn_status_name(got), error.message);
    ck_assert_uint_eq(fake.launch_count(), before);
}

/* Rows of A and of W at strides of their own. */
static struct cbn_fp8_gemm_args strided_args(uint32_t in)
{
    struct cbn_fp8_gemm_args args = gemm_args(M, N, K, in, CBN_DTYPE_BF16);
    args.a.strides[0] = K + 48;
    args.w.strides[0] = K + 32;
    args.d.strides[0] = N + 8;
    return args;
}

struct wanted_map {
    uint64_t address, rows, k, stride;
    uint32_t box_rows, depth;
};

static void assert_map(const struct cbn__tensor_map *map, const struct wanted_map *wanted)
{
    struct fake_map made;
    memcpy(&made, map, sizeof(made));
    ck_assert_uint_eq(made.mark, FAKE_MAP_MARK);
    ck_assert_uint_eq(made.type, CU_TENSOR_MAP_DATA_TYPE_UINT8);
    ck_assert_uint_eq(made.interleave, CU_TENSOR_MAP_INTERLEAVE_NONE);
    ck_assert_uint_eq(made.swizzle, CU_TENSOR_MAP_SWIZZLE_128B);
    ck_assert_uint_eq(made.promotion, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
    ck_assert_uint_eq(made.fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    ck_assert_uint_eq(made.address, wanted->address);
    ck_assert_uint_eq(made.rank, wanted->depth ? 3 : 2);
    ck_assert_uint_eq(made.extents[0], wanted->depth ? 128 : wanted->k);
    ck_assert_uint_eq(made.extents[1], wanted->rows);
    ck_assert_uint_eq(made.strides[0], wanted->stride);
    ck_assert_uint_eq(made.box[0], 128);
    ck_assert_uint_eq(made.box[1], wanted->box_rows);
    if (!wanted->depth)
        return;
    ck_assert_uint_eq(made.extents[2], wanted->k / 128);
    ck_assert_uint_eq(made.strides[1], 128);
    ck_assert_uint_eq(made.box[2], wanted->depth);
}

static void assert_no_map(const struct cbn__tensor_map *map)
{
    static const struct cbn__tensor_map zero;
    ck_assert_mem_eq(map, &zero, sizeof(zero));
}

/* The boxes that the specialisation of these arguments has, by the decision that the call itself uses. */
static void ask_boxes(const struct cbn_fp8_gemm_args *args, const char *kernel, uint32_t *ret_rows, uint32_t *ret_depth)
{
    struct cbn_query query = CBN_QUERY_INIT;
    struct cbn_explanation explanation = {.size = sizeof(explanation)};
    uint32_t deep = 0;
    query.op = "fp8_gemm";
    query.arch = CBN_ARCH(90, 'a');
    query.m = args->a.extents[0];
    query.n = args->w.extents[0];
    query.k = args->w.extents[1];
    query.profile.in = args->a.dtype;
    query.profile.out = args->d.dtype;
    ck_assert_int_eq(cbn_explain(runtime, &query, &explanation, &error), CBN_STATUS_OK);
    ck_assert_str_eq(explanation.spec.kernel, kernel);
    for (uint32_t i = 0; i < explanation.spec.param_count; i++) {
        if (strcmp(explanation.spec.params[i].name, "BM") == 0)
            *ret_rows = (uint32_t)explanation.spec.params[i].value;
        if (strcmp(explanation.spec.params[i].name, "DEEP") == 0)
            deep = (uint32_t)explanation.spec.params[i].value;
    }
    *ret_depth = *ret_rows > 32 ? 1 : (*ret_rows > 16 ? 1u : 2u) << deep;
}

/* ---- codes in ---- */

START_TEST(codes_go_in_by_maps)
{
    struct cbn_fp8_gemm_args args = strided_args(CBN_DTYPE_E4M3);
    uint32_t rows = 0, depth = 0;
    args.m_valid = PLACE(6);
    call(&args);
    ck_assert_uint_eq(fake.launch_count(), 1);
    struct fake_launch launch = launch_at(0);
    struct cbn__swap_ab_args given = product_of(&launch);
    const struct cbn__gemm_args wanted = {.a = PLACE(0),
                                          .a_scale = PLACE(4),
                                          .w = PLACE(1),
                                          .w_scale = PLACE(2),
                                          .d = PLACE(3),
                                          .m_valid = PLACE(6),
                                          .workspace = WORKSPACE,
                                          .m = M,
                                          .n = N,
                                          .k = K,
                                          .lda = K + 48,
                                          .ldw = K + 32,
                                          .ldd = N + 8,
                                          .sa_row = 1,
                                          .sa_col = M,
                                          .sw_row = 40,
                                          .sw_col = 1};
    ck_assert_mem_eq(&given.gemm, &wanted, sizeof(wanted));
    ck_assert_uint_eq(given.fetch_early, 0);
    ask_boxes(&args, "swap_ab", &rows, &depth);
    assert_map(&given.w, &(struct wanted_map){PLACE(1), N, K, K + 32, 64, depth});
    assert_map(&given.w_tail, &(struct wanted_map){PLACE(1), N, K, K + 32, 64, 0});
    assert_map(&given.a, &(struct wanted_map){PLACE(0), M, K, K + 48, rows, depth});
    assert_map(&given.a_tail, &(struct wanted_map){PLACE(0), M, K, K + 48, rows, 0});
    ck_assert_uint_eq(launch.pdl, 1);
    ck_assert_uint_eq(launch.grid[0] % launch.cluster[0], 0);
    ck_assert_uint_eq(fake.calls("cuTensorMapEncodeTiled"), 4);
}
END_TEST

/* Fewer whole groups than a box takes, none at all, and single rows, whose stride the caller need not give. */
START_TEST(short_rows_have_only_the_map_of_their_ends)
{
    static const int64_t lengths[] = {16, 112, 128, 144};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct cbn_fp8_gemm_args args = gemm_args(1, 1, lengths[i], CBN_DTYPE_E4M3, CBN_DTYPE_FP32);
        args.a.strides[0] = args.w.strides[0] = -7;
        args.d.strides[0] = 1;
        args.d.dtype = CBN_DTYPE_FP32;
        uint32_t rows = 0, depth = 0;
        uint64_t stride = (uint64_t)lengths[i];
        args.w = tensor_2d(PLACE(1), CBN_DTYPE_E4M3, 4, lengths[i], lengths[i], 1);
        args.w_scale = tensor_2d(PLACE(2), CBN_DTYPE_FP32, 1, groups_of(lengths[i]), groups_of(lengths[i]), 1);
        args.d = tensor_2d(PLACE(3), CBN_DTYPE_FP32, 1, 4, 4, 1);
        call(&args);
        struct fake_launch launch = last_launch();
        struct cbn__swap_ab_args given = product_of(&launch);
        ask_boxes(&args, "swap_ab", &rows, &depth);
        ck_assert_uint_eq(depth, 2);
        assert_no_map(&given.w);
        assert_no_map(&given.a);
        assert_map(&given.w_tail, &(struct wanted_map){PLACE(1), 4, stride, stride, 64, 0});
        assert_map(&given.a_tail, &(struct wanted_map){PLACE(0), 1, stride, stride, rows, 0});
    }
}
END_TEST

/* ---- fused ---- */

START_TEST(the_fused_form_reads_a_as_it_is)
{
    struct cbn_runtime_options options = fake_options(shared_folder);
    struct cbn_fp8_gemm_args args = gemm_args(3, 256, 1024, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    uint32_t rows = 0, depth = 0;
    restart(&options);
    args.workspace = args.workspace_bytes = 0;
    call(&args);
    ck_assert_uint_eq(fake.launch_count(), 1);
    struct fake_launch launch = launch_at(0);
    struct cbn__swap_ab_args given = product_of(&launch);
    ask_boxes(&args, "swap_ab_fused", &rows, &depth);
    ck_assert_uint_eq(given.gemm.a, PLACE(0));
    ck_assert_int_eq(given.gemm.lda, 1024);
    ck_assert_uint_eq(given.gemm.a_scale, 0);
    assert_map(&given.w, &(struct wanted_map){PLACE(1), 256, 1024, 1024, 64, depth});
    assert_map(&given.w_tail, &(struct wanted_map){PLACE(1), 256, 1024, 1024, 64, 0});
    assert_no_map(&given.a);
    assert_no_map(&given.a_tail);
    ck_assert_uint_eq(stats_now().launches, 1);
    options.disable = "swap_ab_fused";
    restart(&options);
    assert_nothing(&args, CBN_STATUS_INVALID, "workspace is 0x0");
}
END_TEST

/* ---- the quantiser first ---- */

START_TEST(the_quantiser_fills_the_workspace_and_the_product_reads_it)
{
    struct cbn_fp8_gemm_args args = strided_args(CBN_DTYPE_BF16);
    uint32_t rows = 0, depth = 0;
    args.m_valid = PLACE(6);
    args.max_sms = 60;
    give_bias(&args, CBN_DTYPE_FP32);
    call(&args);
    ck_assert_uint_eq(fake.launch_count(), 2);
    struct fake_launch first = launch_at(0), second = launch_at(1);
    const uint64_t scales = WORKSPACE + (M * (uint64_t)K + 255) / 256 * 256;
    const struct cbn__quantize_args quantized = {.x = PLACE(0),
                                                 .codes = WORKSPACE,
                                                 .scales = scales,
                                                 .m_valid = PLACE(6),
                                                 .t = M,
                                                 .g = 1,
                                                 .k = K,
                                                 .x_t = K + 48,
                                                 .c_t = K,
                                                 .s_t = 1,
                                                 .s_s = M};
    ck_assert_str_eq(first.kernel, "cbn_fp8_quantize");
    ck_assert_int_eq(fake.carveout("cbn_fp8_quantize", 0), 100); /* both want one split of an SM's memory */
    ck_assert_int_eq(fake.carveout("cbn_fp8_swap_ab", 0), 100);
    ck_assert_uint_eq(first.parameter_bytes, sizeof(quantized));
    ck_assert_mem_eq(first.parameters, &quantized, sizeof(quantized));
    ck_assert_uint_eq(first.pdl, 1);
    ck_assert_uint_le(first.grid[0], 60);
    struct cbn__swap_ab_args given = product_of(&second);
    const struct cbn__gemm_args wanted = {.a = WORKSPACE,
                                          .a_scale = scales,
                                          .w = PLACE(1),
                                          .w_scale = PLACE(2),
                                          .d = PLACE(3),
                                          .bias = PLACE(5),
                                          .m_valid = PLACE(6),
                                          .workspace = WORKSPACE,
                                          .m = M,
                                          .n = N,
                                          .k = K,
                                          .lda = K,
                                          .ldw = K + 32,
                                          .ldd = N + 8,
                                          .sa_row = 1,
                                          .sa_col = M,
                                          .sw_row = 40,
                                          .sw_col = 1};
    ck_assert_mem_eq(&given.gemm, &wanted, sizeof(wanted));
    ask_boxes(&args, "swap_ab", &rows, &depth);
    assert_map(&given.a, &(struct wanted_map){WORKSPACE, M, K, K, rows, depth});
    assert_map(&given.a_tail, &(struct wanted_map){WORKSPACE, M, K, K, rows, 0});
    ck_assert_uint_eq(second.pdl, 1);
    ck_assert_uint_le(second.grid[0] * second.grid[1], 60);
    ck_assert_ptr_eq(first.stream, stream);
    ck_assert_ptr_eq(second.stream, stream);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.calls, 1);
    ck_assert_uint_eq(stats.launches, 2);
}
END_TEST

START_TEST(without_pdl_neither_is_launched_with_it)
{
    struct cbn_fp8_gemm_args args = gemm_args(M, N, K, CBN_DTYPE_FP16, CBN_DTYPE_FP16);
    args.flags = CBN_OP_NO_PDL;
    call(&args);
    ck_assert_uint_eq(fake.launch_count(), 2);
    ck_assert_uint_eq(launch_at(0).pdl + launch_at(1).pdl, 0);
}
END_TEST

/* Rows of codes and of scales are padded in the workspace; the sum is what the question answers, to the byte. */
START_TEST(the_workspace_is_as_large_as_is_told)
{
    static const int64_t rows[] = {1, 9, 20, 33, 64, 128};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cbn_fp8_gemm_args args = gemm_args(rows[i], N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
        uint64_t bytes = 77;
        ck_assert_int_eq(cbn_fp8_gemm_workspace_bytes(runtime, &args, &bytes, &error), CBN_STATUS_OK);
        int64_t codes = ceil_to(rows[i] * K, 256), scales = 4 * groups_of(K) * ceil_to(rows[i], 4);
        ck_assert_uint_eq(bytes, (uint64_t)(codes + scales));
        args.workspace_bytes = bytes;
        call(&args);
        args.workspace_bytes = bytes - 1;
        assert_nothing(&args, CBN_STATUS_INVALID, "ask the workspace call first");
    }
    struct cbn_fp8_gemm_args codes = gemm_args(M, N, K, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    uint64_t bytes = 77;
    ck_assert_int_eq(cbn_fp8_gemm_workspace_bytes(runtime, &codes, &bytes, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(bytes, 0);
}
END_TEST

START_TEST(a_workspace_that_is_none_launches_nothing)
{
    struct cbn_fp8_gemm_args args = gemm_args(M, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    args.workspace = 0;
    assert_nothing(&args, CBN_STATUS_INVALID, "workspace is 0x0; give ");
    args.workspace = WORKSPACE + 128;
    assert_nothing(&args, CBN_STATUS_INVALID, "at a multiple of 256");
    args.workspace = WORKSPACE;
    args.workspace_bytes = 0;
    assert_nothing(&args, CBN_STATUS_INVALID, "workspace_bytes is 0; this call needs ");
    args.workspace_bytes = WORKSPACE_BYTES;
    for (uint32_t place = 0; place < 4; place++) { /* a, w, w_scale, d */
        args.workspace = PLACE(place);
        assert_nothing(&args, CBN_STATUS_INVALID, "workspace [0x");
    }
    ck_assert_uint_eq(stats_now().compiles + stats_now().loads, 0);
    args.a.extents[0] = 0; /* nothing to do is success, whatever else there is */
    args.workspace = 3;
    call(&args);
    ck_assert_uint_eq(fake.launch_count(), 0);
    ck_assert_uint_eq(stats_now().noops, 1);
}
END_TEST

/* ---- captures ---- */

static void end_capture(uint32_t expected_launches)
{
    uint32_t launches = 0;
    ck_assert_int_eq(fake.capture_end(stream, &launches), 0);
    ck_assert_uint_eq(launches, expected_launches);
}

/* Only the quantiser is there, only the product, both: a capture gets both or nothing. */
START_TEST(a_capture_gets_both_launches_or_none)
{
    struct cbn_fp8_gemm_args args = gemm_args(M, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    struct cbn_fp8_quantize_args quantize = quantize_args(M, K, CBN_DTYPE_BF16);
    struct cbn_fp8_gemm_args codes = gemm_args(M, N, K, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    bool product_first = _i;
    ck_assert_int_eq(fake.capture_begin(stream, CAPTURE_GLOBAL), 0);
    assert_nothing(&args, CBN_STATUS_NOT_LOADED, "fp8_quantize/vector");
    end_capture(0);
    if (product_first)
        call(&codes);
    else
        ck_assert_int_eq(cbn_fp8_quantize(runtime, &quantize, stream, &error), CBN_STATUS_OK);
    ck_assert_int_eq(fake.capture_begin(stream, CAPTURE_GLOBAL), 0);
    assert_nothing(&args, CBN_STATUS_NOT_LOADED, product_first ? "fp8_quantize/vector" : "fp8_gemm/swap_ab");
    ck_assert_int_eq(fake.capture_status(stream), 1);
    end_capture(0);
    call(&args);
    ck_assert_int_eq(fake.capture_begin(stream, CAPTURE_GLOBAL), 0);
    call(&args);
    end_capture(2);
}
END_TEST

/* ---- failures of the driver ---- */

START_TEST(a_map_that_is_refused_launches_nothing)
{
    struct cbn_fp8_gemm_args args = gemm_args(M, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    call(&args);
    for (uint32_t nth = 1; nth <= 4; nth++) {
        fake.script("cuTensorMapEncodeTiled", nth, 1);
        assert_nothing(&args, CBN_STATUS_CUDA, "cuTensorMapEncodeTiled");
    }
    call(&args);
    ck_assert_uint_eq(stats_now().launches, 4);
}
END_TEST

START_TEST(what_no_map_can_hold_is_named)
{
    const int64_t rows = (INT64_C(1) << 32) + 8;
    struct cbn_fp8_gemm_args args = gemm_args(M, rows, 16, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    args.d.data = PLACE(20);
    assert_nothing(&args, CBN_STATUS_UNSUPPORTED, "w: 4294967304 rows of 16 codes, 16 bytes apart; a tensor map holds");
    ck_assert_ptr_nonnull(strstr(error.message, "disable=swap_ab"));
    args = gemm_args(2, N, K, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    args.a.data = PLACE(20);
    args.a.strides[0] = INT64_C(1) << 40;
    assert_nothing(&args, CBN_STATUS_UNSUPPORTED, "a: 2 rows of 5008 codes, 1099511627776 bytes apart");
}
END_TEST

START_TEST(a_failing_quantiser_is_the_only_launch)
{
    struct cbn_fp8_gemm_args args = gemm_args(M, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    call(&args);
    fake.launches_clear();
    fake.script("cuLaunchKernelEx", 1, 719);
    assert_nothing(&args, CBN_STATUS_CUDA, "CUDA_ERROR_LAUNCH_FAILED");
    ck_assert_uint_eq(stats_now().launches, 2);
}
END_TEST

START_TEST(without_any_quantiser_the_call_says_so)
{
    struct cbn_runtime_options options = fake_options(shared_folder);
    options.disable = "vector,scalar,swap_ab_fused";
    restart(&options);
    struct cbn_fp8_gemm_args args = gemm_args(M, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    assert_nothing(&args, CBN_STATUS_UNSUPPORTED, "no fp8_quantize kernel takes this call");
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
    options.a_scale_layout = args.a_scale_layout;
    options.flags = flags;
    options.max_m = max_m;
    options.w = args.w;
    options.w_scale = args.w_scale;
    ck_assert_msg(cbn_fp8_gemm_plan_create(runtime, &options, &plan, &error) == CBN_STATUS_OK, "%s", error.message);
    return plan;
}

static int32_t run_plan(struct cbn_plan *plan, int64_t m, uint32_t in, uint64_t workspace_bytes)
{
    struct cbn_fp8_gemm_args args = gemm_args(m, N, K, in, CBN_DTYPE_BF16);
    struct cbn_fp8_gemm_run_args run = CBN_FP8_GEMM_RUN_ARGS_INIT;
    run.a = args.a;
    run.a_scale = args.a_scale;
    run.d = args.d;
    run.workspace = workspace_bytes ? WORKSPACE : 0;
    run.workspace_bytes = workspace_bytes;
    return cbn_fp8_gemm_plan_run(plan, &run, stream, &error);
}

static uint64_t fetches_early(struct cbn_plan *plan)
{
    ck_assert_int_eq(run_plan(plan, M, CBN_DTYPE_BF16, WORKSPACE_BYTES), CBN_STATUS_OK);
    struct fake_launch launch = last_launch();
    return product_of(&launch).fetch_early;
}

START_TEST(static_weights_are_fetched_early_until_they_change)
{
    struct cbn_plan *plan = create_plan(CBN_DTYPE_BF16, 0, M);
    ck_assert_uint_eq(fetches_early(plan), 0);
    cbn_plan_destroy(plan);
    plan = create_plan(CBN_DTYPE_BF16, CBN_OP_WEIGHTS_STATIC, M);
    ck_assert_uint_eq(fetches_early(plan), 1);
    cbn_plan_weights_changed(plan, 0);
    ck_assert_uint_eq(fetches_early(plan), 0);
    cbn_plan_weights_changed(plan, 1);
    ck_assert_uint_eq(fetches_early(plan), 1);
    cbn_plan_destroy(plan);
}
END_TEST

/* The same bytes as the one-shot call's, though the plan's maps of the weights were encoded at its creation. */
START_TEST(a_plan_launches_what_the_one_shot_call_launches)
{
    uint32_t in = _i ? CBN_DTYPE_E4M3 : CBN_DTYPE_BF16, count = _i ? 1 : 2;
    static const int64_t rows[] = {8, M, 48, 64};
    struct cbn_plan *plan = create_plan(in, 0, 64);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cbn_fp8_gemm_args args = gemm_args(rows[i], N, K, in, CBN_DTYPE_BF16);
        uint32_t encoded = fake.calls("cuTensorMapEncodeTiled");
        fake.launches_clear();
        ck_assert_int_eq(run_plan(plan, rows[i], in, WORKSPACE_BYTES), CBN_STATUS_OK);
        ck_assert_uint_eq(fake.calls("cuTensorMapEncodeTiled"), encoded + 2);
        call(&args);
        ck_assert_uint_eq(fake.launch_count(), 2 * count);
        for (uint32_t j = 0; j < count; j++) {
            struct fake_launch planned = launch_at(j), once = launch_at(count + j);
            ck_assert_mem_eq(&planned, &once, sizeof(once));
        }
    }
    cbn_plan_destroy(plan);
}
END_TEST

/* One answer serves every run up to max_m, and is no more than the largest of them needs. */
START_TEST(a_plan_tells_the_workspace_of_its_largest_need)
{
    static const int64_t bounds[] = {0, 1, 8, M, 64, 128, 129, 1000};
    struct cbn_plan *plan = create_plan(CBN_DTYPE_BF16, 0, 0);
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        uint64_t told = 77, largest = 0;
        ck_assert_int_eq(cbn_fp8_gemm_plan_workspace_bytes(plan, bounds[i], &told, &error), CBN_STATUS_OK);
        for (int64_t m = 1; m <= bounds[i]; m++) {
            struct cbn_fp8_gemm_args args = gemm_args(m, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
            uint64_t bytes = 77;
            ck_assert_int_eq(cbn_fp8_gemm_workspace_bytes(runtime, &args, &bytes, &error), CBN_STATUS_OK);
            largest = bytes > largest ? bytes : largest;
        }
        ck_assert_uint_eq(told, largest);
    }
    cbn_plan_destroy(plan);
    plan = create_plan(CBN_DTYPE_E4M3, 0, 0);
    uint64_t told = 77;
    ck_assert_int_eq(cbn_fp8_gemm_plan_workspace_bytes(plan, 1000, &told, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(told, 0);
    cbn_plan_destroy(plan);
}
END_TEST

START_TEST(a_run_without_its_workspace_launches_nothing)
{
    struct cbn_plan *plan = create_plan(CBN_DTYPE_BF16, 0, M);
    ck_assert_int_eq(run_plan(plan, M, CBN_DTYPE_BF16, 0), CBN_STATUS_INVALID);
    ck_assert_int_eq(run_plan(plan, M, CBN_DTYPE_BF16, 4096), CBN_STATUS_INVALID);
    ck_assert_uint_eq(fake.launch_count(), 0);
    ck_assert_int_eq(run_plan(plan, 0, CBN_DTYPE_BF16, 0), CBN_STATUS_OK);
    cbn_plan_destroy(plan);
}
END_TEST

/*
 * Two plans share a specialisation and ask for different amounts of shared memory: the second raises the kernel's bound
 * at its own first run.
 */
START_TEST(a_loaded_kernel_is_raised_for_a_longer_slice)
{
    struct cbn_fp8_gemm_args args = gemm_args(M, 64, 256, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&args);
    uint32_t first = last_launch().shared_bytes;
    struct cbn_plan *plan = create_plan(CBN_DTYPE_E4M3, 0, 0);
    ck_assert_int_eq(run_plan(plan, M, CBN_DTYPE_E4M3, 0), CBN_STATUS_OK);
    ck_assert_uint_eq(last_launch().image_sum, launch_at(0).image_sum);
    ck_assert_uint_gt(last_launch().shared_bytes, first);
    ck_assert_uint_ge(fake.shared_attribute("cbn_fp8_swap_ab", 0), last_launch().shared_bytes);
    cbn_plan_destroy(plan);
}
END_TEST

/* ---- questions ---- */

static struct cbn_query query_of(int64_t m)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "fp8_gemm";
    query.arch = CBN_ARCH(90, 'a');
    query.m = m;
    query.n = N;
    query.k = K;
    return query;
}

struct listed {
    uint32_t products, quantizers, others;
    char quantizer[CBN_SPEC_TEXT_BYTES];
};

static int list_spec(void *user, const struct cbn_spec *spec)
{
    struct listed *listed = user;
    if (strcmp(spec->op, "fp8_quantize") == 0) {
        listed->quantizers++;
        memcpy(listed->quantizer, spec->text, sizeof(listed->quantizer));
    } else if (strncmp(spec->kernel, "swap_ab", 7) == 0) {
        listed->products++;
    } else {
        listed->others++;
    }
    return 0;
}

START_TEST(the_quantiser_is_enumerated_once)
{
    struct cbn_query query = query_of(1000);
    struct listed listed = {0};
    ck_assert_int_eq(cbn_enumerate(runtime, &query, list_spec, &listed, &error), CBN_STATUS_OK);
    ck_assert_uint_gt(listed.products, 1);
    ck_assert_uint_eq(listed.quantizers, 1);
    ck_assert_str_eq(listed.quantizer,
                     "fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16");
    query.n = query.k = 0;
    listed = (struct listed){0};
    ck_assert_int_eq(cbn_enumerate(runtime, &query, list_spec, &listed, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(listed.quantizers, 1);
    query = query_of(1000);
    query.profile.in = CBN_DTYPE_E4M3;
    listed = (struct listed){0};
    ck_assert_int_eq(cbn_enumerate(runtime, &query, list_spec, &listed, &error), CBN_STATUS_OK);
    ck_assert_uint_gt(listed.products, 1);
    ck_assert_uint_eq(listed.quantizers, 0);
    query = query_of(1000);
    query.profile.disable = "swap_ab,wgmma";
    listed = (struct listed){0};
    ck_assert_int_eq(cbn_enumerate(runtime, &query, list_spec, &listed, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(listed.quantizers, 0);
}
END_TEST

/* A query of fp8_quantize that needs the same specialisation adds none, in either order. */
START_TEST(check_counts_a_shared_quantiser_once)
{
    struct cbn_query queries[2] = {query_of(M), CBN_QUERY_INIT}, swapped[2];
    queries[1].op = "fp8_quantize";
    queries[1].arch = CBN_ARCH(90, 'a');
    queries[1].m = M;
    queries[1].k = K;
    queries[1].profile.act_scale = CBN_LAYOUT_COL4;
    swapped[0] = queries[1], swapped[1] = queries[0];
    struct cbn_warm_result one = {.size = sizeof(one)}, both = one, turned = one;
    ck_assert_int_eq(cbn_check(runtime, queries, 1, NULL, &one, &error), CBN_STATUS_OK);
    ck_assert_int_eq(cbn_check(runtime, queries, 2, NULL, &both, &error), CBN_STATUS_OK);
    ck_assert_int_eq(cbn_check(runtime, swapped, 2, NULL, &turned, &error), CBN_STATUS_OK);
    ck_assert_uint_gt(one.requested, 1);
    ck_assert_uint_eq(both.requested, one.requested);
    ck_assert_uint_eq(turned.requested, one.requested);
    queries[0].profile.disable = "vector,scalar";
    ck_assert_int_eq(cbn_check(runtime, queries, 1, NULL, &both, &error), CBN_STATUS_OK);
    ck_assert_uint_gt(both.uncovered, 0);
}
END_TEST

/* Warmed, nothing of the profile is compiled by a call any more: with NVRTC out of reach every M runs. */
START_TEST(what_is_warmed_serves_every_call)
{
    char folder[PATH_MAX];
    make_folder(folder);
    struct cbn_runtime_options options = two_launch_options(folder);
    restart(&options);
    struct cbn_query query = query_of(130);
    struct cbn_warm_result result = {.size = sizeof(result)};
    ck_assert_msg(cbn_warm(runtime, &query, 1, NULL, &result, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_uint_eq(result.compiled, result.requested);
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    restart(&options);
    for (int64_t m = 1; m <= 130; m++) {
        struct cbn_fp8_gemm_args args = gemm_args(m, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
        call(&args);
    }
    ck_assert_uint_eq(stats_now().loads, result.requested);
    ck_assert_int_eq(remove_folder(folder), 0);
}
END_TEST

START_TEST(explain_tells_both_launches)
{
    char folder[PATH_MAX];
    make_folder(folder);
    struct cbn_runtime_options options = two_launch_options(folder);
    restart(&options);
    struct cbn_query query = query_of(M);
    struct cbn_explanation told = {.size = sizeof(told)};
    ck_assert_int_eq(cbn_explain(runtime, &query, &told, &error), CBN_STATUS_OK);
    ck_assert_str_eq(told.spec.kernel, "swap_ab");
    ck_assert_uint_eq(told.launches, 2);
    ck_assert_uint_eq(told.quantizes_first, 1);
    ck_assert_str_eq(told.quantize_spec.op, "fp8_quantize");
    ck_assert_str_eq(told.quantize_spec.kernel, "vector");
    ck_assert_uint_eq(told.cached, 0);
    struct cbn_fp8_gemm_args args = gemm_args(M, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    uint64_t bytes = 0;
    ck_assert_int_eq(cbn_fp8_gemm_workspace_bytes(runtime, &args, &bytes, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(told.workspace_bytes, bytes);
    struct cbn_fp8_gemm_args codes = gemm_args(M, N, K, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&codes); /* the product is stored now, its quantiser not */
    ck_assert_int_eq(cbn_explain(runtime, &query, &told, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(told.cached, 0);
    call(&args);
    ck_assert_int_eq(cbn_explain(runtime, &query, &told, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(told.cached, 1);
    query.profile.in = CBN_DTYPE_E4M3;
    ck_assert_int_eq(cbn_explain(runtime, &query, &told, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(told.launches, 1);
    ck_assert_uint_eq(told.quantizes_first, 0);
    ck_assert_uint_eq(told.workspace_bytes, 0);
    ck_assert_str_eq(told.quantize_spec.op, "");
    ck_assert_int_eq(remove_folder(folder), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *swap_ab = suite_create("swap_ab");
    TCase *cases = tcase_create("launches");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 240);
    tcase_add_test(cases, codes_go_in_by_maps);
    tcase_add_test(cases, short_rows_have_only_the_map_of_their_ends);
    tcase_add_test(cases, the_fused_form_reads_a_as_it_is);
    tcase_add_test(cases, the_quantiser_fills_the_workspace_and_the_product_reads_it);
    tcase_add_test(cases, without_pdl_neither_is_launched_with_it);
    tcase_add_test(cases, the_workspace_is_as_large_as_is_told);
    tcase_add_test(cases, a_workspace_that_is_none_launches_nothing);
    tcase_add_test(cases, a_map_that_is_refused_launches_nothing);
    tcase_add_test(cases, what_no_map_can_hold_is_named);
    tcase_add_test(cases, a_failing_quantiser_is_the_only_launch);
    tcase_add_test(cases, without_any_quantiser_the_call_says_so);
    suite_add_tcase(swap_ab, cases);
    cases = tcase_create("captures and plans");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 240);
    tcase_add_loop_test(cases, a_capture_gets_both_launches_or_none, 0, 2);
    tcase_add_test(cases, static_weights_are_fetched_early_until_they_change);
    tcase_add_loop_test(cases, a_plan_launches_what_the_one_shot_call_launches, 0, 2);
    tcase_add_test(cases, a_plan_tells_the_workspace_of_its_largest_need);
    tcase_add_test(cases, a_run_without_its_workspace_launches_nothing);
    tcase_add_test(cases, a_loaded_kernel_is_raised_for_a_longer_slice);
    tcase_add_test(cases, the_quantiser_is_enumerated_once);
    tcase_add_test(cases, check_counts_a_shared_quantiser_once);
    tcase_add_test(cases, what_is_warmed_serves_every_call);
    tcase_add_test(cases, explain_tells_both_launches);
    suite_add_tcase(swap_ab, cases);
    return swap_ab;
}

int main(void)
{
    return run_suite(suite());
}
