/*
 * What the tests of operations share: a runtime on the fake driver, a context, a stream, and sound arguments.
 */
#ifndef CBN_TESTS_OPS_FIXTURE_H
#define CBN_TESTS_OPS_FIXTURE_H

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cubinet/cubinet.h>

#include "fake/fake_cuda.h"
#include "fake/pin.h"

#define LIBCUDA CBN_TEST_BINARY_DIR "/tests/fake/libcuda.so.1"
#define CAPTURE_GLOBAL 0

/* One cache for every test of a binary: a specialisation is compiled once. */
static char shared_folder[PATH_MAX];
static struct fake_cuda fake;
static struct cbn_runtime *runtime;
static struct cbn_error error;
static void *context;
static void *stream;

static inline void make_folder(char *ret_folder)
{
    snprintf(ret_folder, PATH_MAX, "%s", "/tmp/cubinet-ops-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(ret_folder));
}

static inline int remove_folder(const char *folder)
{
    char command[PATH_MAX + 16];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static inline struct cbn_runtime_options fake_options(const char *folder)
{
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    options.flags = CBN_RUNTIME_IGNORE_ENV | (folder ? CBN_RUNTIME_CACHE_REQUIRED : CBN_RUNTIME_MEMORY_ONLY);
    options.cache_dir = folder;
    options.cuda_path = LIBCUDA;
    return options;
}

static inline void create_runtime(const struct cbn_runtime_options *options)
{
    ck_assert_msg(cbn_runtime_create(options, &runtime, &error) == CBN_STATUS_OK, "%s", error.message);
}

static inline void open_fake(void)
{
    ck_assert(fake_cuda_open(LIBCUDA, &fake));
    fake.reset();
    context = fake.context_create(0);
    fake.context_set(context);
    stream = fake.stream_create();
    memset(&error, 0, sizeof(error));
}

/* Nothing here may break a rule of the driver, or leave its thread in another capture mode. */
static inline void close_runtime(void)
{
    pin_nvrtc();
    cbn_runtime_destroy(runtime);
    runtime = NULL;
    ck_assert_msg(fake.violations() == 0, "%s", fake.violation_text());
    ck_assert_int_eq(fake.thread_mode(), CAPTURE_GLOBAL);
}

static inline struct cbn_stats stats_now(void)
{
    struct cbn_stats stats = {.size = sizeof(stats)};
    cbn_runtime_stats(runtime, &stats);
    return stats;
}

static inline struct fake_launch last_launch(void)
{
    struct fake_launch launch;
    ck_assert_uint_gt(fake.launch_count(), 0);
    ck_assert(fake.launch_get(fake.launch_count() - 1, &launch));
    return launch;
}

/* Device addresses far apart: nothing is ever read there. */
#define PLACE(index) (0x100000000000u * ((index) + 1u))
#define WORKSPACE PLACE(8)
#define WORKSPACE_BYTES (UINT64_C(1) << 32)

static inline struct cbn_tensor tensor_2d(uint64_t data, uint32_t dtype, int64_t rows, int64_t columns,
                                          int64_t row_stride, int64_t column_stride)
{
    return (struct cbn_tensor){data, dtype, 2, {rows, columns}, {row_stride, column_stride}};
}

static inline int64_t ceil_to(int64_t value, int64_t by)
{
    return (value + by - 1) / by * by;
}

static inline int64_t groups_of(int64_t k)
{
    return (k + 127) / 128;
}

/* BF16, FP16 or FP32 input, or E4M3 with COL4 scales; fp32 block scales; no bias; everything contiguous; a large workspace. */
static inline struct fake_launch launch_at(uint32_t index)
{
    struct fake_launch launch;
    ck_assert_msg(fake.launch_get(index, &launch), "there is no launch %u", index);
    return launch;
}

static inline struct cbn_fp8_gemm_args gemm_args(int64_t m, int64_t n, int64_t k, uint32_t in, uint32_t out)
{
    struct cbn_fp8_gemm_args args = CBN_FP8_GEMM_ARGS_INIT;
    args.a = tensor_2d(PLACE(0), in, m, k, k, 1);
    args.w = tensor_2d(PLACE(1), CBN_DTYPE_E4M3, n, k, k, 1);
    args.w_scale = tensor_2d(PLACE(2), CBN_DTYPE_FP32, groups_of(n), groups_of(k), groups_of(k), 1);
    args.d = tensor_2d(PLACE(3), out, m, n, n, 1);
    args.workspace = WORKSPACE;
    args.workspace_bytes = WORKSPACE_BYTES;
    if (in == CBN_DTYPE_E4M3) {
        args.a_scale_layout = CBN_LAYOUT_COL4;
        args.a_scale = tensor_2d(PLACE(4), CBN_DTYPE_FP32, m, groups_of(k), 1, ceil_to(m, 4));
    }
    return args;
}

static inline void give_bias(struct cbn_fp8_gemm_args *args, uint32_t dtype)
{
    args->bias = (struct cbn_tensor){PLACE(5), dtype, 1, {args->w.extents[0]}, {1}};
}

/* Packed UE8M0 weight scales, column-major with ceil4 rows. */
static inline void pack_weight_scales(struct cbn_fp8_gemm_args *args)
{
    int64_t rows = args->w_scale.extents[0], words = (groups_of(args->w.extents[1]) + 3) / 4;
    args->w_scale = tensor_2d(PLACE(2), CBN_DTYPE_INT32, rows, words, 1, ceil_to(rows, 4));
}

static inline struct cbn_fp8_quantize_args quantize_args(int64_t t, int64_t k, uint32_t in)
{
    struct cbn_fp8_quantize_args args = CBN_FP8_QUANTIZE_ARGS_INIT;
    args.scale_layout = CBN_LAYOUT_COL4;
    args.x = tensor_2d(PLACE(0), in, t, k, k, 1);
    args.codes = tensor_2d(PLACE(1), CBN_DTYPE_E4M3, t, k, k, 1);
    args.scales = tensor_2d(PLACE(2), CBN_DTYPE_FP32, t, groups_of(k), 1, ceil_to(t, 4));
    return args;
}

static inline int run_suite(Suite *suite)
{
    snprintf(shared_folder, sizeof(shared_folder), "%s", "/tmp/cubinet-ops-XXXXXX");
    if (!mkdtemp(shared_folder))
        return EXIT_FAILURE;
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return remove_folder(shared_folder) || failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
