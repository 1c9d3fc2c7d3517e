/*
 * The launch layer on the fake driver, with cubins of the real NVRTC.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/buf.h"
#include "driver/nvrtc.h"
#include "fake/fake_cuda.h"
#include "fake/pin.h"
#include "launch/kernel.h"

#define LIBCUDA CBN_TEST_BINARY_DIR "/tests/fake/libcuda.so.1"
#define NO_BINARY_FOR_GPU 209
#define INVALID_IMAGE 200
#define UNSUPPORTED_PTX_VERSION 222
#define OUT_OF_MEMORY 2
#define LAUNCH_FAILED 719
#define CAPTURE_INVALIDATED 901
#define GLOBAL 0
#define RELAXED 2

struct arguments {
    uint64_t out;
    int64_t numbers[4];
};

static const char source[] = "struct arguments { unsigned long long out; long long numbers[4]; };\n"
                             "extern \"C\" __global__ void sum(const __grid_constant__ arguments p)\n"
                             "{ ((long long *)p.out)[threadIdx.x] = p.numbers[threadIdx.x]; }\n";

static struct fake_cuda fake;
static struct cbn__driver *driver;
static struct cbn__buf cubin;
static struct cbn_error error;
static void *context;

static void compile(const char *arch)
{
    struct cbn__nvrtc *nvrtc = NULL;
    CBN__BUF_AUTO ptx = CBN__BUF_INIT;
    CBN__BUF_AUTO log = CBN__BUF_INIT;
    const char *options[] = {arch};
    const struct cbn__nvrtc_source given = {.text = source, .name = "sum.cu", .option_count = 1, .options = options};
    ck_assert_msg(cbn__nvrtc_open(NULL, NULL, &nvrtc, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_msg(cbn__nvrtc_compile(nvrtc, &given, &cubin, &ptx, &log, &error) == CBN_STATUS_OK, "%s: %s",
                  error.message, cbn__buf_text(&log));
    pin_nvrtc();
    cbn__nvrtc_close(nvrtc);
}

static void set_up(void)
{
    ck_assert(fake_cuda_open(LIBCUDA, &fake));
    fake.reset();
    ck_assert_msg(cbn__driver_open(LIBCUDA, NULL, &driver, &error) == CBN_STATUS_OK, "%s", error.message);
    cubin = (struct cbn__buf)CBN__BUF_INIT;
    compile("--gpu-architecture=sm_90a");
    context = fake.context_create(0);
    fake.context_set(context);
}

static void tear_down(void)
{
    ck_assert_msg(fake.violations() == 0, "%s", fake.violation_text());
    ck_assert_int_eq(fake.thread_mode(), GLOBAL);
    cbn__buf_done(&cubin);
    cbn__driver_close(driver);
}

static struct cbn__kernel *create(void)
{
    struct cbn__kernel *kernel = NULL;
    ck_assert_msg(cbn__kernel_create(driver, &cubin, "sum", &kernel, &error) == CBN_STATUS_OK, "%s", error.message);
    return kernel;
}

static void load(struct cbn__kernel *kernel, void *into, uint32_t shared_bytes)
{
    fake.context_set(into);
    ck_assert_msg(cbn__kernel_load(kernel, fake.context_id(into), 0, shared_bytes, &error) == CBN_STATUS_OK, "%s",
                  error.message);
}

static struct cbn_geometry plain_geometry(void)
{
    return (struct cbn_geometry){.grid = {3, 2, 1}, .block = {4, 1, 1}};
}

START_TEST(create_takes_the_bytes_over_and_keeps_them)
{
    struct cbn__kernel *kernel = create();
    ck_assert_ptr_null(cubin.data);
    ck_assert_uint_eq(cubin.size, 0);
    ck_assert(!cbn__kernel_ready(kernel, fake.context_id(context)));
    cbn__kernel_destroy(kernel); /* the fake compares the preserved bytes here */
    ck_assert_uint_eq(fake.calls("cuLibraryUnload"), 1);
    cbn__kernel_destroy(NULL);
}
END_TEST

START_TEST(launch_gives_the_driver_everything_and_asks_it_nothing)
{
    struct cbn__kernel *kernel = create();
    load(kernel, context, 0);
    struct arguments arguments = {0x1122334455667788u, {1, -2, 3, INT64_MIN}};
    struct cbn_geometry geometry = {.grid = {6, 5, 4}, .block = {64, 2, 1}, .cluster = {2, 0, 1}, .shared_bytes = 77};
    void *stream = fake.stream_create();
    uint32_t before = fake.calls_total();
    ck_assert_int_eq(cbn__kernel_launch(kernel, &geometry, &arguments, true, stream, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(fake.calls_total(), before + 1);
    struct fake_launch launch;
    ck_assert_uint_eq(fake.launch_count(), 1);
    ck_assert(fake.launch_get(0, &launch));
    ck_assert_str_eq(launch.kernel, "sum");
    ck_assert_mem_eq(launch.grid, geometry.grid, sizeof(launch.grid));
    ck_assert_mem_eq(launch.block, geometry.block, sizeof(launch.block));
    ck_assert_uint_eq(launch.cluster[0], 2);
    ck_assert_uint_eq(launch.cluster[1], 1);
    ck_assert_uint_eq(launch.shared_bytes, 77);
    ck_assert_uint_eq(launch.attribute_count, 2);
    ck_assert_uint_eq(launch.pdl, 1);
    ck_assert_uint_eq(launch.capturing, 0);
    ck_assert_ptr_eq(launch.stream, stream);
    ck_assert_uint_eq(launch.context_id, fake.context_id(context));
    ck_assert_uint_eq(launch.parameter_bytes, sizeof(arguments));
    ck_assert_mem_eq(launch.parameters, &arguments, sizeof(arguments));
    cbn__kernel_destroy(kernel);
}
END_TEST

START_TEST(attributes_are_absent_unless_asked_for)
{
    struct cbn__kernel *kernel = create();
    load(kernel, context, 0);
    struct arguments arguments = {0};
    struct cbn_geometry geometry = plain_geometry();
    struct fake_launch launch;
    ck_assert_int_eq(cbn__kernel_launch(kernel, &geometry, &arguments, false, NULL, &error), CBN_STATUS_OK);
    ck_assert(fake.launch_get(0, &launch));
    ck_assert_uint_eq(launch.attribute_count, 0);
    ck_assert_uint_eq(launch.pdl, 0);
    geometry.cluster[0] = geometry.cluster[1] = geometry.cluster[2] = 1;
    ck_assert_int_eq(cbn__kernel_launch(kernel, &geometry, &arguments, true, NULL, &error), CBN_STATUS_OK);
    ck_assert(fake.launch_get(1, &launch));
    ck_assert_uint_eq(launch.attribute_count, 1);
    ck_assert_uint_eq(launch.pdl, 1);
    ck_assert_uint_eq(launch.cluster[0], 1);
    cbn__kernel_destroy(kernel);
}
END_TEST

static void *load_from_thread(void *kernel)
{
    fake.context_set(context);
    struct cbn_error own = {0};
    int32_t status = cbn__kernel_load(kernel, fake.context_id(context), 0, 65536, &own);
    return (void *)(intptr_t)(status == CBN_STATUS_OK && cbn__kernel_ready(kernel, fake.context_id(context)) &&
                              fake.thread_mode() == GLOBAL);
}

START_TEST(sixteen_threads_load_once)
{
    struct cbn__kernel *kernel = create();
    pthread_t threads[16];
    void *good = NULL;
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, load_from_thread, kernel), 0);
    for (int i = 0; i < 16; i++) {
        ck_assert_int_eq(pthread_join(threads[i], &good), 0);
        ck_assert_ptr_nonnull(good);
    }
    ck_assert_uint_eq(fake.calls("cuFuncLoad"), 1);
    ck_assert_uint_eq(fake.calls("cuKernelGetFunction"), 1);
    ck_assert_uint_eq(fake.calls("cuKernelSetAttribute"), 1);
    cbn__kernel_destroy(kernel);
}
END_TEST

START_TEST(two_contexts_share_the_library)
{
    struct cbn__kernel *kernel = create();
    void *other = fake.context_create(0);
    load(kernel, context, 0);
    ck_assert(cbn__kernel_ready(kernel, fake.context_id(context)));
    ck_assert(!cbn__kernel_ready(kernel, fake.context_id(other)));
    load(kernel, other, 0);
    ck_assert(cbn__kernel_ready(kernel, fake.context_id(context)));
    ck_assert(cbn__kernel_ready(kernel, fake.context_id(other)));
    ck_assert_uint_eq(fake.calls("cuLibraryLoadData"), 1);
    ck_assert_uint_eq(fake.calls("cuFuncLoad"), 2);
    cbn__kernel_destroy(kernel);
}
END_TEST

START_TEST(more_contexts_than_slots_cost_a_load_and_nothing_else)
{
    struct cbn__kernel *kernel = create();
    struct arguments arguments = {0};
    struct cbn_geometry geometry = plain_geometry();
    load(kernel, context, 0);
    for (int i = 0; i < 64; i++)
        load(kernel, fake.context_create(0), 0);
    ck_assert(!cbn__kernel_ready(kernel, fake.context_id(context)));
    load(kernel, context, 0);
    ck_assert(cbn__kernel_ready(kernel, fake.context_id(context)));
    ck_assert_int_eq(cbn__kernel_launch(kernel, &geometry, &arguments, false, NULL, &error), CBN_STATUS_OK);
    cbn__kernel_destroy(kernel);
}
END_TEST

START_TEST(the_split_of_an_sm_is_asked_for_and_failing_is_no_fault)
{
    struct cbn__kernel *kernel = create();
    fake.set_device_count(2);
    load(kernel, context, 0);
    ck_assert_int_eq(fake.carveout("sum", 0), 0);
    cbn__kernel_prefer_shared(kernel, 0);
    ck_assert_int_eq(fake.carveout("sum", 0), 100);
    ck_assert_int_eq(fake.carveout("sum", 1), 0);
    ck_assert_int_eq(fake.thread_mode(), GLOBAL);
    fake.script("cuKernelSetAttribute", 1, OUT_OF_MEMORY);
    cbn__kernel_prefer_shared(kernel, 1);
    ck_assert_int_eq(fake.carveout("sum", 1), 0);
    cbn__kernel_destroy(kernel);
}
END_TEST

START_TEST(shared_memory_is_only_raised)
{
    struct cbn__kernel *kernel = create();
    fake.set_device_count(2);
    load(kernel, context, 0);
    ck_assert_uint_eq(fake.calls("cuKernelSetAttribute"), 0);
    load(kernel, context, 100000);
    load(kernel, context, 60000);
    load(kernel, context, 100000);
    ck_assert_uint_eq(fake.calls("cuKernelSetAttribute"), 1);
    ck_assert_uint_eq(fake.shared_attribute("sum", 0), 100000);
    ck_assert_uint_eq(fake.shared_attribute("sum", 1), 0);
    void *other = fake.context_create(1);
    fake.context_set(other);
    ck_assert_int_eq(cbn__kernel_load(kernel, fake.context_id(other), 1, 60000, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(fake.shared_attribute("sum", 1), 60000);
    ck_assert_uint_eq(fake.shared_attribute("sum", 0), 100000);
    ck_assert_int_eq(cbn__kernel_load(kernel, fake.context_id(other), 1, 1 << 20, &error), CBN_STATUS_CUDA);
    ck_assert_ptr_nonnull(strstr(error.message, "CUDA_ERROR_INVALID_VALUE"));
    cbn__kernel_destroy(kernel);
}
END_TEST

static void *load_everything(void *ret_kernel)
{
    fake.context_set(context);
    struct cbn__kernel *kernel = NULL;
    struct cbn_error own = {0};
    if (cbn__kernel_create(driver, &cubin, "sum", &kernel, &own) == CBN_STATUS_OK &&
        cbn__kernel_load(kernel, fake.context_id(context), 0, 65536, &own) == CBN_STATUS_OK &&
        fake.thread_mode() == GLOBAL)
        *(struct cbn__kernel **)ret_kernel = kernel;
    return NULL;
}

START_TEST(a_load_in_another_thread_leaves_a_global_capture_valid)
{
    struct cbn__kernel *kernel = NULL;
    void *stream = fake.stream_create();
    struct arguments arguments = {0};
    struct cbn_geometry geometry = plain_geometry();
    uint32_t nodes = 0;
    bool capturing = false;
    pthread_t thread;
    ck_assert_int_eq(cbn__stream_capturing(driver, stream, &capturing, &error), CBN_STATUS_OK);
    ck_assert(!capturing);
    ck_assert_int_eq(fake.capture_begin(stream, GLOBAL), 0);
    ck_assert_int_eq(cbn__stream_capturing(driver, stream, &capturing, &error), CBN_STATUS_OK);
    ck_assert(capturing);
    ck_assert_int_eq(pthread_create(&thread, NULL, load_everything, &kernel), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_ptr_nonnull(kernel);
    ck_assert_int_eq(fake.capture_status(stream), 1);
    ck_assert_int_eq(cbn__kernel_launch(kernel, &geometry, &arguments, true, stream, &error), CBN_STATUS_OK);
    ck_assert_int_eq(fake.capture_end(stream, &nodes), 0);
    ck_assert_uint_eq(nodes, 1);
    cbn__kernel_destroy(kernel);
}
END_TEST

static const struct {
    const char *function;
    int code;
    int32_t status;
    const char *name;
} create_failures[] = {
    {"cuLibraryLoadData", NO_BINARY_FOR_GPU, CBN_STATUS_INCOMPATIBLE, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {"cuLibraryLoadData", INVALID_IMAGE, CBN_STATUS_INCOMPATIBLE, "CUDA_ERROR_INVALID_IMAGE"},
    {"cuLibraryLoadData", UNSUPPORTED_PTX_VERSION, CBN_STATUS_INCOMPATIBLE, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    {"cuLibraryLoadData", OUT_OF_MEMORY, CBN_STATUS_CUDA, "CUDA_ERROR_OUT_OF_MEMORY"},
    {"cuLibraryGetKernel", OUT_OF_MEMORY, CBN_STATUS_CUDA, "CUDA_ERROR_OUT_OF_MEMORY"},
};

START_TEST(create_fails_with_the_drivers_words_and_leaves_the_bytes)
{
    struct cbn__kernel *kernel = NULL;
    size_t size = cubin.size;
    fake.script(create_failures[_i].function, 1, create_failures[_i].code);
    ck_assert_int_eq(cbn__kernel_create(driver, &cubin, "sum", &kernel, &error), create_failures[_i].status);
    ck_assert_int_eq(error.status, create_failures[_i].status);
    ck_assert_uint_eq(error.domain, CBN_DOMAIN_CUDA);
    ck_assert_int_eq(error.native_code, create_failures[_i].code);
    ck_assert_ptr_nonnull(strstr(error.message, create_failures[_i].name));
    ck_assert_ptr_nonnull(strstr(error.message, create_failures[_i].function));
    ck_assert_ptr_null(kernel);
    ck_assert_uint_eq(cubin.size, size);
    ck_assert_int_eq(cbn__kernel_create(driver, &cubin, "sum", &kernel, NULL), CBN_STATUS_OK);
    cbn__kernel_destroy(kernel);
    ck_assert_uint_eq(fake.calls("cuLibraryUnload"),
                      strcmp(create_failures[_i].function, "cuLibraryGetKernel") ? 1 : 2);
}
END_TEST

static const struct {
    const char *function;
    int code;
    int32_t status;
} load_failures[] = {
    {"cuKernelGetFunction", NO_BINARY_FOR_GPU, CBN_STATUS_INCOMPATIBLE},
    {"cuKernelGetFunction", OUT_OF_MEMORY, CBN_STATUS_CUDA},
    {"cuFuncLoad", OUT_OF_MEMORY, CBN_STATUS_CUDA},
    {"cuKernelSetAttribute", OUT_OF_MEMORY, CBN_STATUS_CUDA},
};

START_TEST(a_failed_load_is_not_ready_and_can_be_tried_again)
{
    struct cbn__kernel *kernel = create();
    uint64_t id = fake.context_id(context);
    fake.script(load_failures[_i].function, 1, load_failures[_i].code);
    ck_assert_int_eq(cbn__kernel_load(kernel, id, 0, 65536, &error), load_failures[_i].status);
    ck_assert_int_eq(error.native_code, load_failures[_i].code);
    ck_assert_ptr_nonnull(strstr(error.message, load_failures[_i].function));
    ck_assert(!cbn__kernel_ready(kernel, id));
    ck_assert_int_eq(fake.thread_mode(), GLOBAL);
    ck_assert_int_eq(cbn__kernel_load(kernel, id, 0, 65536, &error), CBN_STATUS_OK);
    ck_assert(cbn__kernel_ready(kernel, id));
    cbn__kernel_destroy(kernel);
}
END_TEST

START_TEST(a_failed_launch_names_the_drivers_result)
{
    struct cbn__kernel *kernel = create();
    struct arguments arguments = {0};
    struct cbn_geometry geometry = plain_geometry();
    load(kernel, context, 0);
    fake.script("cuLaunchKernelEx", 2, LAUNCH_FAILED);
    ck_assert_int_eq(cbn__kernel_launch(kernel, &geometry, &arguments, false, NULL, &error), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__kernel_launch(kernel, &geometry, &arguments, false, NULL, &error), CBN_STATUS_CUDA);
    ck_assert_ptr_nonnull(strstr(error.message, "CUDA_ERROR_LAUNCH_FAILED"));
    ck_assert_int_eq(error.native_code, LAUNCH_FAILED);
    geometry.shared_bytes = 65536; /* above what was set */
    ck_assert_int_eq(cbn__kernel_launch(kernel, &geometry, &arguments, false, NULL, NULL), CBN_STATUS_CUDA);
    ck_assert_uint_eq(fake.launch_count(), 1);
    cbn__kernel_destroy(kernel);
}
END_TEST

START_TEST(images_that_are_no_cubin_or_another_archs_are_incompatible)
{
    struct cbn__kernel *kernel = NULL;
    fake.set_device(0, 80, 108);
    ck_assert_int_eq(cbn__kernel_create(driver, &cubin, "sum", &kernel, &error), CBN_STATUS_INCOMPATIBLE);
    fake.set_device(0, 90, 132);
    memset(cubin.data, 'x', 64);
    ck_assert_int_eq(cbn__kernel_create(driver, &cubin, "sum", &kernel, &error), CBN_STATUS_INCOMPATIBLE);
    ck_assert_ptr_null(kernel);
}
END_TEST

/* The fake must see what it is there to see. */

START_TEST(fake_sees_an_unknown_kernel_name)
{
    struct cbn__kernel *kernel = NULL;
    ck_assert_int_eq(cbn__kernel_create(driver, &cubin, "summ", &kernel, &error), CBN_STATUS_CUDA);
    ck_assert_uint_eq(fake.violations(), 1);
    ck_assert_ptr_nonnull(strstr(fake.violation_text(), "summ"));
    fake.reset();
}
END_TEST

START_TEST(fake_sees_a_launch_of_what_is_not_loaded)
{
    struct cbn__kernel *kernel = create();
    struct arguments arguments = {0};
    struct cbn_geometry geometry = plain_geometry();
    void *stream = fake.stream_create();
    uint32_t nodes = 9;
    ck_assert_int_eq(fake.capture_begin(stream, GLOBAL), 0);
    ck_assert_int_eq(cbn__kernel_launch(kernel, &geometry, &arguments, false, stream, &error), CBN_STATUS_CUDA);
    ck_assert_uint_eq(fake.violations(), 1);
    ck_assert_int_eq(fake.capture_status(stream), 2);
    ck_assert_int_eq(fake.capture_end(stream, &nodes), CAPTURE_INVALIDATED);
    ck_assert_uint_eq(nodes, 0);
    cbn__kernel_destroy(kernel);
    fake.reset();
}
END_TEST

START_TEST(fake_invalidates_a_capture_by_an_unsafe_call)
{
    void *stream = fake.stream_create();
    uint64_t address = 0;
    uint32_t nodes = 0;
    ck_assert_int_eq(fake.capture_begin(stream, GLOBAL), 0);
    ck_assert_int_eq(cbn__driver_alloc(driver, 16, &address, &error), CBN_STATUS_CUDA);
    ck_assert_int_eq(fake.capture_end(stream, &nodes), CAPTURE_INVALIDATED);
    ck_assert_int_eq(fake.capture_begin(stream, RELAXED), 0);
    ck_assert_int_eq(cbn__driver_alloc(driver, 16, &address, &error), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__driver_copy_in(driver, address, "0123456789abcdef", 16, &error), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__driver_copy_in(driver, address, "0123456789abcdefg", 17, &error), CBN_STATUS_CUDA);
    cbn__driver_free(driver, address);
    ck_assert_int_eq(fake.capture_end(stream, &nodes), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *kernel = suite_create("kernel");
    TCase *cases = tcase_create("launch layer");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, create_takes_the_bytes_over_and_keeps_them);
    tcase_add_test(cases, launch_gives_the_driver_everything_and_asks_it_nothing);
    tcase_add_test(cases, attributes_are_absent_unless_asked_for);
    tcase_add_test(cases, sixteen_threads_load_once);
    tcase_add_test(cases, two_contexts_share_the_library);
    tcase_add_test(cases, more_contexts_than_slots_cost_a_load_and_nothing_else);
    tcase_add_test(cases, shared_memory_is_only_raised);
    tcase_add_test(cases, the_split_of_an_sm_is_asked_for_and_failing_is_no_fault);
    tcase_add_test(cases, a_load_in_another_thread_leaves_a_global_capture_valid);
    tcase_add_loop_test(cases, create_fails_with_the_drivers_words_and_leaves_the_bytes, 0,
                        sizeof(create_failures) / sizeof(create_failures[0]));
    tcase_add_loop_test(cases, a_failed_load_is_not_ready_and_can_be_tried_again, 0,
                        sizeof(load_failures) / sizeof(load_failures[0]));
    tcase_add_test(cases, a_failed_launch_names_the_drivers_result);
    tcase_add_test(cases, images_that_are_no_cubin_or_another_archs_are_incompatible);
    tcase_add_test(cases, fake_sees_an_unknown_kernel_name);
    tcase_add_test(cases, fake_sees_a_launch_of_what_is_not_loaded);
    tcase_add_test(cases, fake_invalidates_a_capture_by_an_unsafe_call);
    suite_add_tcase(kernel, cases);
    return kernel;
}

int main(void)
{
    SRunner *runner = srunner_create(suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
