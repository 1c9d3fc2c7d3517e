/*
 * The driver: how it is found and refused, device facts, contexts and memory, on the fake one.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arch.h"
#include "driver/device.h"
#include "fake/fake_cuda.h"

#define FAKE CBN_TEST_BINARY_DIR "/tests/fake/libcuda.so.1"

static struct fake_cuda fake;

static void begin(void)
{
    ck_assert_msg(fake_cuda_open(FAKE, &fake), "%s", dlerror());
    fake.reset();
}

static struct cbn__driver *open_fake(void)
{
    struct cbn__driver *driver = NULL;
    struct cbn_error err = {0};
    begin();
    ck_assert_msg(cbn__driver_open(FAKE, NULL, &driver, &err) == CBN_STATUS_OK, "%s", err.message);
    return driver;
}

static void assert_not_opened(const char *path, const char *env_path, const char *word, const char *next_word)
{
    struct cbn__driver *driver = NULL;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__driver_open(path, env_path, &driver, &err), CBN_STATUS_NO_DRIVER);
    ck_assert_ptr_null(driver);
    ck_assert_msg(strstr(err.message, word) && strstr(err.message, next_word), "%s", err.message);
}

START_TEST(a_wrong_path_is_named_with_its_origin)
{
    assert_not_opened("/nowhere/libcuda.so.1", FAKE, "/nowhere/libcuda.so.1", "option");
    assert_not_opened(NULL, "/nowhere/libcuda.so.1", "/nowhere/libcuda.so.1", "CUBINET_CUDA");
    assert_not_opened("libm.so.6", NULL, "libm.so.6", "is not a CUDA driver");
}
END_TEST

/* With a driver installed this finds it; without one the message says where it looked and what to do. */
START_TEST(the_search_finds_or_explains)
{
    struct cbn__driver *driver = NULL;
    struct cbn_error err = {0};
    int32_t status = cbn__driver_open(NULL, NULL, &driver, &err);
    if (status == CBN_STATUS_OK) {
        ck_assert_uint_ge(cbn__driver_version(driver), CBN__DRIVER_MIN_VERSION);
        cbn__driver_close(driver);
        return;
    }
    ck_assert_int_eq(status, CBN_STATUS_NO_DRIVER);
    ck_assert_msg(strstr(err.message, "install") || strstr(err.message, "nvidia-smi") || strstr(err.message, "update"),
                  "%s", err.message);
}
END_TEST

START_TEST(an_old_driver_is_refused_with_both_versions)
{
    begin();
    fake.set_version(12020);
    assert_not_opened(FAKE, NULL, "12.2", "12.4");
    fake.set_version(12040);
    struct cbn__driver *driver = NULL;
    ck_assert_int_eq(cbn__driver_open(NULL, FAKE, &driver, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(cbn__driver_version(driver), 12040);
    ck_assert_ptr_nonnull(strstr(cbn__driver_path(driver), "tests/fake/libcuda.so.1"));
    cbn__driver_close(driver);
    cbn__driver_close(NULL);
}
END_TEST

START_TEST(a_driver_that_does_not_start_says_why)
{
    begin();
    fake.script("cuInit", 1, 100);
    struct cbn__driver *driver = NULL;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__driver_open(FAKE, NULL, &driver, &err), CBN_STATUS_NO_DRIVER);
    ck_assert_uint_eq(err.domain, CBN_DOMAIN_CUDA);
    ck_assert_int_eq(err.native_code, 100);
    ck_assert_msg(strstr(err.message, "CUDA_ERROR_NO_DEVICE"), "%s", err.message);
}
END_TEST

START_TEST(facts_are_read_per_device)
{
    struct cbn__driver *driver = open_fake();
    fake.set_device_count(3);
    fake.set_device(1, 120, 170);
    fake.set_device(2, 75, 40);
    int count = 0;
    ck_assert_int_eq(cbn__driver_device_count(driver, &count, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(count, 3);
    static const struct {
        uint32_t capability, arch, sms;
    } expected[] = {{90, CBN_ARCH(90, 'a'), 132}, {120, CBN_ARCH(120, 'a'), 170}, {75, 0, 40}};
    for (int i = 0; i < 3; i++) {
        struct cbn__device_facts facts;
        ck_assert_int_eq(cbn__driver_device_facts(driver, i, &facts, NULL), CBN_STATUS_OK);
        ck_assert_uint_eq(facts.capability, expected[i].capability);
        ck_assert_uint_eq(facts.arch, expected[i].arch);
        ck_assert_uint_eq(facts.sms, expected[i].sms);
        ck_assert_uint_gt(facts.shared_bytes_optin, 49152 - 1);
        ck_assert_uint_gt(strlen(facts.name), 0);
    }
    struct cbn__device_facts untouched = {.capability = 7};
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__driver_device_facts(driver, 3, &untouched, &err), CBN_STATUS_CUDA);
    ck_assert_uint_eq(untouched.capability, 7);
    ck_assert_msg(strstr(err.message, "cuDeviceGet"), "%s", err.message);
    cbn__driver_close(driver);
}
END_TEST

START_TEST(the_current_context_has_id_and_device)
{
    struct cbn__driver *driver = open_fake();
    fake.set_device_count(2);
    uint64_t id = 77;
    int device = 77;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__driver_current(driver, &id, &device, &err), CBN_STATUS_CUDA);
    ck_assert_int_eq(err.native_code, 201);
    ck_assert_uint_eq(id, 77);
    ck_assert_int_eq(device, 77);
    void *context = fake.context_create(1);
    fake.context_set(context);
    ck_assert_int_eq(cbn__driver_current(driver, &id, &device, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(id, fake.context_id(context));
    ck_assert_int_eq(device, 1);
    cbn__driver_close(driver);
}
END_TEST

START_TEST(memory_goes_in_and_out)
{
    struct cbn__driver *driver = open_fake();
    uint64_t address = 0;
    uint8_t in[1000], out[1000] = {0};
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i * 13);
    ck_assert_int_eq(cbn__driver_primary_acquire(driver, 0, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__driver_alloc(driver, sizeof(in), &address, NULL), CBN_STATUS_OK);
    ck_assert_uint_ne(address, 0);
    ck_assert_int_eq(cbn__driver_copy_in(driver, address, in, sizeof(in), NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__driver_fill(driver, address + 10, 0xee, 5, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__driver_copy_out(driver, out, address, sizeof(out), NULL), CBN_STATUS_OK);
    memset(in + 10, 0xee, 5);
    ck_assert_mem_eq(in, out, sizeof(in));
    ck_assert_int_eq(cbn__driver_synchronise(driver, NULL), CBN_STATUS_OK);
    uint32_t calls = fake.calls_total();
    ck_assert_int_eq(cbn__driver_copy_in(driver, 0, NULL, 0, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__driver_copy_out(driver, NULL, 0, 0, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__driver_fill(driver, 0, 1, 0, NULL), CBN_STATUS_OK);
    cbn__driver_free(driver, 0);
    ck_assert_uint_eq(fake.calls_total(), calls);
    cbn__driver_free(driver, address);
    cbn__driver_primary_release(driver, 0);
    uint64_t id = 0;
    int device = 0;
    ck_assert_int_eq(cbn__driver_current(driver, &id, &device, NULL), CBN_STATUS_CUDA);
    ck_assert_uint_eq(fake.violations(), 0);
    cbn__driver_close(driver);
}
END_TEST

START_TEST(a_failing_call_is_named)
{
    struct cbn__driver *driver = open_fake();
    ck_assert_int_eq(cbn__driver_primary_acquire(driver, 0, NULL), CBN_STATUS_OK);
    fake.script("cuMemAlloc", 1, 2);
    uint64_t address = 77;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__driver_alloc(driver, 16, &address, &err), CBN_STATUS_CUDA);
    ck_assert_uint_eq(address, 77);
    ck_assert_uint_eq(err.domain, CBN_DOMAIN_CUDA);
    ck_assert_int_eq(err.native_code, 2);
    ck_assert_msg(strstr(err.message, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"), "%s", err.message);
    cbn__driver_primary_release(driver, 0);
    cbn__driver_close(driver);
}
END_TEST

/* A context that cannot be made current is given back. */
START_TEST(a_half_acquired_primary_is_released)
{
    struct cbn__driver *driver = open_fake();
    fake.script("cuCtxSetCurrent", 1, 999);
    uint32_t released = fake.calls("cuDevicePrimaryCtxRelease");
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__driver_primary_acquire(driver, 0, &err), CBN_STATUS_CUDA);
    ck_assert_uint_eq(fake.calls("cuDevicePrimaryCtxRelease"), released + 1);
    cbn__driver_close(driver);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("device");
    tcase_add_test(tests, a_wrong_path_is_named_with_its_origin);
    tcase_add_test(tests, the_search_finds_or_explains);
    tcase_add_test(tests, an_old_driver_is_refused_with_both_versions);
    tcase_add_test(tests, a_driver_that_does_not_start_says_why);
    tcase_add_test(tests, facts_are_read_per_device);
    tcase_add_test(tests, the_current_context_has_id_and_device);
    tcase_add_test(tests, memory_goes_in_and_out);
    tcase_add_test(tests, a_failing_call_is_named);
    tcase_add_test(tests, a_half_acquired_primary_is_released);
    Suite *suite = suite_create("device");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
