/*
 * Operations under graph capture, on the fake driver: a capture is never broken, whatever is missing.
 */
#include <pthread.h>

#include "ops_fixture.h"

#define N 256
#define K 512

static void set_up(void)
{
    open_fake();
    struct cbn_runtime_options options = fake_options(shared_folder);
    options.policy = "reference";
    create_runtime(&options);
}

static void tear_down(void)
{
    close_runtime();
}

static struct cbn_fp8_gemm_args args_of(int64_t m)
{
    return gemm_args(m, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
}

static void end_capture(uint32_t expected_launches)
{
    uint32_t launches = 0;
    ck_assert_int_eq(fake.capture_end(stream, &launches), 0);
    ck_assert_uint_eq(launches, expected_launches);
}

static void prepare(int64_t max_m)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "fp8_gemm";
    query.arch = CBN_ARCH(90, 'a');
    query.m = max_m;
    query.n = N;
    query.k = K;
    struct cbn_warm_result result = {.size = sizeof(result)};
    ck_assert_msg(cbn_prepare(runtime, &query, 1, &result, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_uint_eq(result.failed, 0);
    ck_assert_uint_gt(result.requested, 0);
}

START_TEST(first_use_in_a_capture_is_refused_and_the_capture_goes_on)
{
    struct cbn_fp8_gemm_args args = args_of(64);
    int modes[] = {0, 1, 2};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(fake.capture_begin(stream, modes[i]), 0);
        ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_NOT_LOADED);
        ck_assert_ptr_nonnull(strstr(error.message, "fp8_quantize/vector")); /* the first of the two */
        ck_assert_ptr_nonnull(strstr(error.message, "cbn_prepare"));
        ck_assert_int_eq(fake.capture_status(stream), 1);
        end_capture(0);
    }
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.calls, 3);
    ck_assert_uint_eq(stats.launches + stats.loads + stats.compiles + stats.memory_hits, 0);
}
END_TEST

START_TEST(after_prepare_everything_captures)
{
    prepare(64);
    uint64_t loads = stats_now().loads;
    ck_assert_int_eq(fake.capture_begin(stream, CAPTURE_GLOBAL), 0);
    for (int64_t m = 0; m <= 64; m++) {
        struct cbn_fp8_gemm_args args = args_of(m);
        ck_assert_msg(cbn_fp8_gemm(runtime, &args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
    }
    ck_assert_uint_eq(last_launch().capturing, 1);
    ck_assert_uint_eq(last_launch().pdl, 1);
    end_capture(2 * 64); /* fp8_quantize ahead of each */
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.loads, loads);
    ck_assert_uint_eq(stats.memory_hits, 2 * 64);
    ck_assert_uint_eq(stats.noops, 1);
}
END_TEST

START_TEST(a_kernel_of_another_context_is_not_loaded_here)
{
    prepare(64);
    fake.context_set(fake.context_create(0));
    stream = fake.stream_create();
    struct cbn_fp8_gemm_args args = args_of(64);
    ck_assert_int_eq(fake.capture_begin(stream, CAPTURE_GLOBAL), 0);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_NOT_LOADED);
    end_capture(0);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_OK);
}
END_TEST

START_TEST(nothing_to_launch_captures)
{
    struct cbn_fp8_gemm_args args = CBN_FP8_GEMM_ARGS_INIT;
    struct cbn_fp8_quantize_args quantize = CBN_FP8_QUANTIZE_ARGS_INIT;
    uint32_t before = fake.calls_total();
    ck_assert_int_eq(fake.capture_begin(stream, CAPTURE_GLOBAL), 0);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_OK);
    ck_assert_int_eq(cbn_fp8_quantize(runtime, &quantize, stream, &error), CBN_STATUS_OK);
    end_capture(0);
    ck_assert_uint_eq(fake.calls_total(), before);
    ck_assert_uint_eq(stats_now().noops, 2);
}
END_TEST

static void *first_use(void *user)
{
    int32_t *status = user;
    fake.context_set(context);
    struct cbn_fp8_gemm_args args = args_of(64);
    *status = cbn_fp8_gemm(runtime, &args, fake.stream_create(), NULL);
    return fake.thread_mode() == CAPTURE_GLOBAL ? NULL : status;
}

START_TEST(a_first_use_in_another_thread_leaves_a_global_capture_valid)
{
    struct cbn_fp8_gemm_args args = args_of(64);
    pthread_t thread;
    int32_t status = -1;
    void *wrong_mode = NULL;
    ck_assert_int_eq(fake.capture_begin(stream, CAPTURE_GLOBAL), 0);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_NOT_LOADED);
    ck_assert_int_eq(pthread_create(&thread, NULL, first_use, &status), 0);
    ck_assert_int_eq(pthread_join(thread, &wrong_mode), 0);
    ck_assert_int_eq(status, CBN_STATUS_OK);
    ck_assert_ptr_null(wrong_mode);
    ck_assert_int_eq(fake.capture_status(stream), 1);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_OK);
    end_capture(2);
}
END_TEST

START_TEST(a_capture_that_is_broken_already_gives_the_drivers_word)
{
    prepare(64);
    struct cbn_fp8_gemm_args args = args_of(64);
    uint32_t launches = 0;
    ck_assert_int_eq(fake.capture_begin(stream, CAPTURE_GLOBAL), 0);
    fake.script("cuLaunchKernelEx", 1, 901);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_CUDA);
    ck_assert_ptr_nonnull(strstr(error.message, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
    ck_assert_int_eq(fake.capture_end(stream, &launches), 0);
}
END_TEST

START_TEST(a_plan_captures_what_it_loaded)
{
    struct cbn_fp8_gemm_args args = args_of(8);
    struct cbn_fp8_gemm_plan_options options = CBN_FP8_GEMM_PLAN_OPTIONS_INIT;
    struct cbn_fp8_gemm_run_args run = CBN_FP8_GEMM_RUN_ARGS_INIT;
    struct cbn_plan *plan = NULL;
    options.in = options.out = CBN_DTYPE_BF16;
    options.w = args.w;
    options.w_scale = args.w_scale;
    options.max_m = 8;
    run.a = args.a;
    run.d = args.d;
    run.workspace = args.workspace;
    run.workspace_bytes = args.workspace_bytes;
    ck_assert_msg(cbn_fp8_gemm_plan_create(runtime, &options, &plan, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_int_eq(fake.capture_begin(stream, CAPTURE_GLOBAL), 0);
    ck_assert_int_eq(cbn_fp8_gemm_plan_run(plan, &run, stream, &error), CBN_STATUS_OK);
    run.a.extents[0] = run.d.extents[0] = 64;
    ck_assert_int_eq(cbn_fp8_gemm_plan_run(plan, &run, stream, &error), CBN_STATUS_NOT_LOADED);
    run.a.extents[0] = 0;
    ck_assert_int_eq(cbn_fp8_gemm_plan_run(plan, &run, stream, &error), CBN_STATUS_OK);
    end_capture(2);
    cbn_plan_destroy(plan);
}
END_TEST

static Suite *suite(void)
{
    Suite *captures = suite_create("capture");
    TCase *cases = tcase_create("graph capture");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 240);
    tcase_add_test(cases, first_use_in_a_capture_is_refused_and_the_capture_goes_on);
    tcase_add_test(cases, after_prepare_everything_captures);
    tcase_add_test(cases, a_kernel_of_another_context_is_not_loaded_here);
    tcase_add_test(cases, nothing_to_launch_captures);
    tcase_add_test(cases, a_first_use_in_another_thread_leaves_a_global_capture_valid);
    tcase_add_test(cases, a_capture_that_is_broken_already_gives_the_drivers_word);
    tcase_add_test(cases, a_plan_captures_what_it_loaded);
    suite_add_tcase(captures, cases);
    return captures;
}

int main(void)
{
    return run_suite(suite());
}
