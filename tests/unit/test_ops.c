/*
 * Operations from the call to the launch, on the fake driver with the real NVRTC: routes, arguments, counters,
 * failures.
 *
 * Which specialisation was launched is told by the bytes of its cubin, looked up in the cabinet.
 */
#include <pthread.h>

#include "dispatch/builtin.h"
#include "ops_fixture.h"

#define LAUNCH_FAILED 719
#define NO_BINARY_FOR_GPU 209
#define THREADS 16

static struct cbn_runtime_options reference_options(const char *folder)
{
    struct cbn_runtime_options options = fake_options(folder);
    options.policy = "reference";
    return options;
}

static void set_up(void)
{
    open_fake();
    struct cbn_runtime_options options = reference_options(shared_folder);
    create_runtime(&options);
}

static void tear_down(void)
{
    close_runtime();
}

/* A runtime of its own folder, where counts of compiles are exact. */
static void start_cold(char *ret_folder)
{
    make_folder(ret_folder);
    struct cbn_runtime_options options = reference_options(ret_folder);
    cbn_runtime_destroy(runtime);
    create_runtime(&options);
}

struct search {
    uint64_t image_sum;
    const char *kernel; /* wanted */
    bool found;
    struct cbn_spec spec;
};

static int match_entry(void *user, const struct cbn_entry_info *entry)
{
    struct search *search = user;
    if (fake.image_sum(entry->cubin) != search->image_sum || strcmp(entry->spec.kernel, search->kernel) != 0)
        return 0;
    search->found = true;
    search->spec = entry->spec;
    return 1;
}

static int64_t param_of(const struct cbn_spec *spec, const char *name)
{
    for (uint32_t i = 0; i < spec->param_count; i++)
        if (strcmp(spec->params[i].name, name) == 0)
            return spec->params[i].value;
    ck_abort_msg("%s has no parameter %s", spec->text, name);
    return 0;
}

static struct cbn_spec launched_spec(const char *kernel)
{
    struct fake_launch launch = last_launch();
    struct search search = {.image_sum = launch.image_sum, .kernel = kernel};
    ck_assert_int_eq(cbn_cabinet_list(runtime, match_entry, &search, NULL, &error), CBN_STATUS_OK);
    ck_assert_msg(search.found, "the last launch was not of %s", kernel);
    return search.spec;
}

static void call(const struct cbn_fp8_gemm_args *args)
{
    ck_assert_msg(cbn_fp8_gemm(runtime, args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
}

/* The routing table of the reference policy. */

static const struct {
    int64_t n, k;
    uint32_t out;
    bool aligned;
} routed[] = {
    {256, 512, CBN_DTYPE_BF16, true},  {200, 512, CBN_DTYPE_BF16, false}, {256, 200, CBN_DTYPE_BF16, false},
    {256, 512, CBN_DTYPE_FP16, false}, {256, 512, CBN_DTYPE_FP32, false},
};
static const int64_t rows[] = {0, 1, 8, 31, 32, 64, 850};

static const char *expected_route(size_t shape, int64_t m, bool wgmma)
{
    if (!routed[shape].aligned)
        return "generic";
    return m < 32 ? "swap_ab" : wgmma ? "wgmma" : "generic";
}

static void route_one(size_t shape, int64_t m, bool packed, bool wgmma)
{
    struct cbn_fp8_gemm_args args = gemm_args(m, routed[shape].n, routed[shape].k, CBN_DTYPE_BF16, routed[shape].out);
    if (packed)
        pack_weight_scales(&args);
    uint32_t before = fake.launch_count();
    call(&args);
    if (m == 0) {
        ck_assert_uint_eq(fake.launch_count(), before);
        return;
    }
    const char *route = expected_route(shape, m, wgmma);
    bool portable = strcmp(route, "generic") == 0; /* fp8_quantize goes ahead of the others */
    ck_assert_uint_eq(fake.launch_count(), before + (portable ? 1 : 2));
    struct cbn_spec spec = launched_spec(route);
    ck_assert_str_eq(last_launch().kernel, portable ? "cbn_fp8_gemm" : m < 32 ? "cbn_fp8_swap_ab" : "cbn_fp8_wgmma");
    ck_assert_str_eq(spec.arch, "sm_90a");
    ck_assert_int_eq(param_of(&spec, "IN"), portable ? CBN_DTYPE_BF16 : CBN_DTYPE_E4M3);
    ck_assert_int_eq(param_of(&spec, "OUT"), routed[shape].out);
    ck_assert_int_eq(param_of(&spec, "W_SCALE"), packed ? CBN_SCALE_UE8M0 : CBN_SCALE_FP32);
    ck_assert_int_eq(param_of(&spec, "PDL"), 1);
}

START_TEST(routing_table_by_launches)
{
    bool packed = _i & 1, wgmma = _i & 2;
    struct cbn_runtime_options options = reference_options(shared_folder);
    options.disable = wgmma ? NULL : "wgmma";
    cbn_runtime_destroy(runtime);
    create_runtime(&options);
    for (size_t shape = 0; shape < sizeof(routed) / sizeof(routed[0]); shape++)
        for (size_t m = 0; m < sizeof(rows) / sizeof(rows[0]); m++)
            route_one(shape, rows[m], packed, wgmma);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.calls, 35);
    ck_assert_uint_eq(stats.noops, 5);
    uint64_t launches = wgmma ? 36 : 33; /* two at each of the counts of tokens that are quantised first */
    ck_assert_uint_eq(stats.launches, launches);
    ck_assert_uint_eq(stats.memory_hits + stats.loads, launches);
}
END_TEST

/* What the kernel is given is what the caller gave. */

START_TEST(gemm_arguments_arrive)
{
    struct cbn_fp8_gemm_args args = gemm_args(7, 100, 300, CBN_DTYPE_E4M3, CBN_DTYPE_FP32);
    args.a.strides[0] = 304;
    args.w.strides[0] = 320;
    args.d.strides[0] = 128;
    args.a_scale_layout = CBN_LAYOUT_ROW;
    args.a_scale = tensor_2d(PLACE(4), CBN_DTYPE_FP32, 7, 3, 5, 1);
    args.w_scale_gran = CBN_GRAN_ROW;
    args.w_scale = tensor_2d(PLACE(2), CBN_DTYPE_FP32, 100, 3, 1, 104);
    give_bias(&args, CBN_DTYPE_FP32);
    args.m_valid = PLACE(6);
    args.workspace = PLACE(7);
    call(&args);
    struct fake_launch launch = last_launch();
    const struct cbn__gemm_args expected = {.a = PLACE(0),
                                            .a_scale = PLACE(4),
                                            .w = PLACE(1),
                                            .w_scale = PLACE(2),
                                            .d = PLACE(3),
                                            .bias = PLACE(5),
                                            .m_valid = PLACE(6),
                                            .workspace = PLACE(7),
                                            .m = 7,
                                            .n = 100,
                                            .k = 300,
                                            .lda = 304,
                                            .ldw = 320,
                                            .ldd = 128,
                                            .sa_row = 5,
                                            .sa_col = 1,
                                            .sw_row = 1,
                                            .sw_col = 104};
    ck_assert_uint_eq(launch.parameter_bytes, sizeof(expected));
    ck_assert_mem_eq(launch.parameters, &expected, sizeof(expected));
    ck_assert_ptr_eq(launch.stream, stream);
}
END_TEST

START_TEST(one_row_arrives_with_contiguous_strides)
{
    struct cbn_fp8_gemm_args args = gemm_args(1, 256, 512, CBN_DTYPE_BF16, CBN_DTYPE_FP16);
    args.a.strides[0] = -9;
    args.d.strides[0] = 3;
    call(&args);
    struct cbn__gemm_args given;
    memcpy(&given, last_launch().parameters, sizeof(given));
    ck_assert_int_eq(given.lda, 512);
    ck_assert_int_eq(given.ldd, 256);
    ck_assert_int_eq(given.sa_row, 0);
    ck_assert_uint_eq(given.a_scale, 0);
    ck_assert_uint_eq(given.bias, 0);
    ck_assert_uint_eq(given.m_valid, 0);
}
END_TEST

START_TEST(quantize_arguments_arrive)
{
    struct cbn_fp8_quantize_args args = quantize_args(10, 256, CBN_DTYPE_BF16);
    args.x = (struct cbn_tensor){PLACE(0), CBN_DTYPE_BF16, 3, {10, 8, 256}, {264, 4096, 1}};
    args.codes = (struct cbn_tensor){PLACE(1), CBN_DTYPE_E4M3, 3, {10, 8, 256}, {2048, 256, 1}};
    args.scales = (struct cbn_tensor){PLACE(2), CBN_DTYPE_FP32, 3, {10, 8, 2}, {1, 24, 12}};
    args.m_valid = PLACE(6);
    ck_assert_msg(cbn_fp8_quantize(runtime, &args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
    struct fake_launch launch = last_launch();
    const struct cbn__quantize_args grouped = {.x = PLACE(0),
                                               .codes = PLACE(1),
                                               .scales = PLACE(2),
                                               .m_valid = PLACE(6),
                                               .t = 10,
                                               .g = 8,
                                               .k = 256,
                                               .x_t = 264,
                                               .x_g = 4096,
                                               .c_t = 2048,
                                               .c_g = 256,
                                               .s_t = 1,
                                               .s_g = 24,
                                               .s_s = 12};
    ck_assert_str_eq(launch.kernel, "cbn_fp8_quantize");
    ck_assert_uint_eq(launch.parameter_bytes, sizeof(grouped));
    ck_assert_mem_eq(launch.parameters, &grouped, sizeof(grouped));
    args = quantize_args(10, 300, CBN_DTYPE_FP16);
    args.x.strides[0] = 304;
    args.codes.strides[0] = 320;
    ck_assert_msg(cbn_fp8_quantize(runtime, &args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
    const struct cbn__quantize_args flat = {.x = PLACE(0),
                                            .codes = PLACE(1),
                                            .scales = PLACE(2),
                                            .t = 10,
                                            .g = 1,
                                            .k = 300,
                                            .x_t = 304,
                                            .c_t = 320,
                                            .s_t = 1,
                                            .s_s = 12};
    launch = last_launch();
    ck_assert_mem_eq(launch.parameters, &flat, sizeof(flat));
}
END_TEST

START_TEST(k_0_is_launched_as_a_fill)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 0, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    args.a.data = args.w.data = 0;
    args.w_scale = (struct cbn_tensor){0};
    give_bias(&args, CBN_DTYPE_BF16);
    call(&args);
    struct cbn_spec spec = launched_spec("generic");
    struct cbn__gemm_args given;
    memcpy(&given, last_launch().parameters, sizeof(given));
    ck_assert_int_eq(given.k, 0);
    ck_assert_uint_eq(given.bias, PLACE(5));
    ck_assert_int_eq(param_of(&spec, "BIAS"), CBN_BIAS_OUT);
}
END_TEST

/* Launch options. */

START_TEST(pdl_is_an_attribute_where_the_arch_and_the_caller_want_it)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&args);
    uint32_t clusters = last_launch().cluster[0] > 1; /* the other attribute */
    ck_assert_uint_eq(last_launch().pdl, 1);
    ck_assert_uint_eq(last_launch().attribute_count, 1 + clusters);
    args.flags = CBN_OP_NO_PDL;
    call(&args);
    ck_assert_uint_eq(last_launch().pdl, 0);
    ck_assert_uint_eq(last_launch().attribute_count, clusters);
    struct cbn_spec spec = launched_spec("wgmma");
    ck_assert_int_eq(param_of(&spec, "PDL"), 0);
    fake.set_device_count(2);
    fake.set_device(1, 80, 108);
    fake.context_set(fake.context_create(1));
    stream = fake.stream_create();
    args.flags = 0;
    call(&args);
    ck_assert_uint_eq(last_launch().attribute_count, 0);
    spec = launched_spec("generic");
    ck_assert_str_eq(spec.arch, "sm_80");
    ck_assert_int_eq(param_of(&spec, "PDL"), 0);
}
END_TEST

START_TEST(max_sms_bounds_the_grid)
{
    struct cbn_fp8_gemm_args args = gemm_args(850, 4096, 512, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    call(&args);
    ck_assert_uint_gt(last_launch().grid[0], 16);
    args.max_sms = 16;
    call(&args);
    struct fake_launch launch = last_launch();
    ck_assert_uint_eq(launch.grid[0] * launch.grid[1] * launch.grid[2], 16);
    struct cbn_fp8_quantize_args quantize = quantize_args(4096, 4096, CBN_DTYPE_BF16);
    quantize.max_sms = 3;
    ck_assert_msg(cbn_fp8_quantize(runtime, &quantize, stream, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_uint_eq(last_launch().grid[0], 3);
}
END_TEST

START_TEST(default_streams_are_taken)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    for (uintptr_t handle = 0; handle <= 2; handle++) { /* NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */
        ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, (void *)handle, &error), CBN_STATUS_OK);
        ck_assert_ptr_eq(last_launch().stream, (void *)handle);
    }
}
END_TEST

/* Counters and what a call costs. */

START_TEST(a_loaded_call_asks_for_the_context_and_launches)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&args);
    uint32_t total = fake.calls_total(), launches = fake.calls("cuLaunchKernelEx");
    uint32_t queries = fake.calls("cuCtxGetId") + fake.calls("cuCtxGetCurrent") + fake.calls("cuCtxGetDevice");
    uint32_t maps = fake.calls("cuTensorMapEncodeTiled");
    call(&args);
    ck_assert_uint_eq(fake.calls("cuLaunchKernelEx"), launches + 1);
    queries = fake.calls("cuCtxGetId") + fake.calls("cuCtxGetCurrent") + fake.calls("cuCtxGetDevice") - queries;
    maps = fake.calls("cuTensorMapEncodeTiled") - maps; /* of W, of A and of D: host code alone */
    ck_assert_uint_ge(maps, 3);
    ck_assert_uint_eq(fake.calls_total() - total, queries + maps + 1);
    ck_assert_uint_le(queries, 3);
}
END_TEST

START_TEST(counters_are_exact)
{
    char folder[PATH_MAX];
    start_cold(folder);
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&args);
    call(&args);
    args.a.extents[0] = 0;
    call(&args);
    args.a.extents[0] = -1;
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_INVALID);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.calls, 4);
    ck_assert_uint_eq(stats.noops, 1);
    ck_assert_uint_eq(stats.launches, 2);
    ck_assert_uint_eq(stats.memory_hits, 1);
    ck_assert_uint_eq(stats.compiles, 1);
    ck_assert_uint_eq(stats.loads, 1);
    ck_assert_uint_eq(stats.puts, 1);
    ck_assert_uint_eq(stats.overlay_hits, 0);
    ck_assert_uint_eq(fake.launch_count(), 2);
    struct cbn_runtime_options options = reference_options(folder);
    options.nvrtc_path = "/nonexistent/libnvrtc.so"; /* a warm start needs none */
    cbn_runtime_destroy(runtime);
    create_runtime(&options);
    args.a.extents[0] = 64;
    call(&args);
    stats = stats_now();
    ck_assert_uint_eq(stats.compiles, 0);
    ck_assert_uint_eq(stats.overlay_hits, 1);
    ck_assert_uint_eq(stats.loads, 1);
    ck_assert_uint_eq(stats.memory_hits, 0);
    ck_assert_uint_eq(stats.launches, 1);
    ck_assert_int_eq(remove_folder(folder), 0);
}
END_TEST

struct caller {
    pthread_t thread;
    int32_t status;
    void *stream;
};

static pthread_barrier_t barrier;

static void *call_from_thread(void *user)
{
    struct caller *caller = user;
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    fake.context_set(context);
    pthread_barrier_wait(&barrier);
    caller->status = cbn_fp8_gemm(runtime, &args, caller->stream, NULL);
    return NULL;
}

START_TEST(sixteen_threads_compile_and_load_once)
{
    char folder[PATH_MAX];
    struct caller callers[THREADS];
    start_cold(folder);
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        callers[i].stream = fake.stream_create();
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, call_from_thread, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(callers[i].thread, NULL), 0);
        ck_assert_int_eq(callers[i].status, CBN_STATUS_OK);
    }
    pthread_barrier_destroy(&barrier);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.calls, THREADS);
    ck_assert_uint_eq(stats.launches, THREADS);
    ck_assert_uint_eq(stats.compiles, 1);
    ck_assert_uint_eq(stats.loads, 1);
    ck_assert_uint_eq(fake.calls("cuLibraryLoadData"), 1);
    ck_assert_uint_eq(fake.calls("cuFuncLoad"), 1);
    ck_assert_uint_eq(fake.launch_count(), THREADS);
    ck_assert_int_eq(remove_folder(folder), 0);
}
END_TEST

START_TEST(two_contexts_compile_once_and_load_twice)
{
    char folder[PATH_MAX];
    start_cold(folder);
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&args);
    void *other = fake.context_create(0);
    fake.context_set(other);
    stream = fake.stream_create();
    call(&args);
    call(&args);
    ck_assert_uint_eq(last_launch().context_id, fake.context_id(other));
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.compiles, 1);
    ck_assert_uint_eq(stats.loads, 1);
    ck_assert_uint_eq(stats.memory_hits, 1);
    ck_assert_uint_eq(fake.calls("cuLibraryLoadData"), 1);
    ck_assert_uint_eq(fake.calls("cuFuncLoad"), 2);
    ck_assert_int_eq(remove_folder(folder), 0);
}
END_TEST

/* Failures. */

START_TEST(a_failing_launch_surfaces_with_its_name)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    fake.script("cuLaunchKernelEx", 1, LAUNCH_FAILED);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_CUDA);
    ck_assert_uint_eq(error.domain, CBN_DOMAIN_CUDA);
    ck_assert_int_eq(error.native_code, LAUNCH_FAILED);
    ck_assert_ptr_nonnull(strstr(error.message, "CUDA_ERROR_LAUNCH_FAILED"));
    ck_assert_uint_eq(stats_now().launches, 0);
    call(&args);
    ck_assert_uint_eq(stats_now().launches, 1);
}
END_TEST

START_TEST(a_refused_image_is_built_again_and_then_incompatible)
{
    char folder[PATH_MAX];
    start_cold(folder);
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&args);
    cbn_runtime_destroy(runtime);
    struct cbn_runtime_options options = reference_options(folder);
    create_runtime(&options);
    fake.script("cuLibraryLoadData", 1, NO_BINARY_FOR_GPU); /* the stored one; a fresh build is taken */
    call(&args);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.overlay_hits, 1);
    ck_assert_uint_ge(stats.misses_incompatible, 1);
    ck_assert_uint_eq(stats.compiles, 1);
    ck_assert_uint_eq(stats.launches, 1);
    cbn_runtime_destroy(runtime);
    create_runtime(&options);
    fake.script("cuLibraryLoadData", 1, NO_BINARY_FOR_GPU);
    fake.script("cuLibraryLoadData", 2, NO_BINARY_FOR_GPU);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_INCOMPATIBLE);
    ck_assert_uint_eq(stats_now().launches, 0);
    ck_assert_int_eq(remove_folder(folder), 0);
}
END_TEST

START_TEST(without_a_context_or_an_arch_nothing_runs)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    fake.context_set(NULL);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_CUDA);
    fake.set_device_count(2);
    fake.set_device(1, 70, 80);
    fake.context_set(fake.context_create(1));
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "7.0"));
    ck_assert_uint_eq(fake.launch_count(), 0);
}
END_TEST

START_TEST(a_candidate_without_a_template_says_so)
{
    struct cbn_runtime_options options = fake_options(shared_folder);
    options.enable = "tcgen05";
    cbn_runtime_destroy(runtime);
    fake.set_device(0, 100, 148);
    create_runtime(&options);
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "tcgen05"));
    ck_assert_ptr_nonnull(strstr(error.message, "disable"));
}
END_TEST

START_TEST(codes_need_no_workspace_and_errors_are_told)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    args.a.data = args.w.data = args.d.data = args.w_scale.data = 0; /* only extents, dtypes and flags are read */
    uint64_t bytes = 77;
    ck_assert_msg(cbn_fp8_gemm_workspace_bytes(runtime, &args, &bytes, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_uint_eq(bytes, 0);
    bytes = 77;
    args.a.dtype = CBN_DTYPE_INT32;
    ck_assert_int_eq(cbn_fp8_gemm_workspace_bytes(runtime, &args, &bytes, &error), CBN_STATUS_INVALID);
    ck_assert_uint_eq(bytes, 77);
}
END_TEST

static Suite *suite(void)
{
    Suite *ops = suite_create("ops");
    TCase *cases = tcase_create("operations");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 240);
    tcase_add_loop_test(cases, routing_table_by_launches, 0, 4);
    tcase_add_test(cases, gemm_arguments_arrive);
    tcase_add_test(cases, one_row_arrives_with_contiguous_strides);
    tcase_add_test(cases, quantize_arguments_arrive);
    tcase_add_test(cases, k_0_is_launched_as_a_fill);
    tcase_add_test(cases, pdl_is_an_attribute_where_the_arch_and_the_caller_want_it);
    tcase_add_test(cases, max_sms_bounds_the_grid);
    tcase_add_test(cases, default_streams_are_taken);
    tcase_add_test(cases, a_loaded_call_asks_for_the_context_and_launches);
    tcase_add_test(cases, counters_are_exact);
    tcase_add_test(cases, sixteen_threads_compile_and_load_once);
    tcase_add_test(cases, two_contexts_compile_once_and_load_twice);
    tcase_add_test(cases, a_failing_launch_surfaces_with_its_name);
    tcase_add_test(cases, a_refused_image_is_built_again_and_then_incompatible);
    tcase_add_test(cases, without_a_context_or_an_arch_nothing_runs);
    tcase_add_test(cases, a_candidate_without_a_template_says_so);
    tcase_add_test(cases, codes_need_no_workspace_and_errors_are_told);
    suite_add_tcase(ops, cases);
    return ops;
}

int main(void)
{
    return run_suite(suite());
}
