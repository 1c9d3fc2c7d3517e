/*
 * NVRTC: how it is found and refused, one compile, and the words of its errors. Real NVRTC and the stand-in.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/nvrtc.h"

#define STUB CBN_TEST_BINARY_DIR "/tests/fake/libnvrtc_stub.so"

static const char kernel[] = "extern \"C\" __global__ void k(float *a)\n{\n    a[threadIdx.x] = 2;\n}\n";

struct compiled {
    struct cbn__buf cubin, ptx, log;
};

static void compiled_done(struct compiled *compiled)
{
    cbn__buf_done(&compiled->cubin);
    cbn__buf_done(&compiled->ptx);
    cbn__buf_done(&compiled->log);
}

static struct cbn__nvrtc *open_at(const char *path)
{
    struct cbn__nvrtc *nvrtc = NULL;
    struct cbn_error err = {0};
    ck_assert_msg(cbn__nvrtc_open(path, NULL, &nvrtc, &err) == CBN_STATUS_OK, "%s", err.message);
    return nvrtc;
}

/* What the machine has: CUBINET_NVRTC or the search. */
static struct cbn__nvrtc *open_real(void)
{
    struct cbn__nvrtc *nvrtc = NULL;
    struct cbn_error err = {0};
    const char *env = getenv("CUBINET_NVRTC");
    ck_assert_msg(cbn__nvrtc_open(NULL, env && *env ? env : NULL, &nvrtc, &err) == CBN_STATUS_OK, "%s", err.message);
    return nvrtc;
}

static int32_t compile(struct cbn__nvrtc *nvrtc, const char *text, struct compiled *compiled, struct cbn_error *err)
{
    static const char *const options[] = {"--gpu-architecture=sm_90a", "--ptxas-options=-v"};
    const struct cbn__nvrtc_source source = {text, "test.cu", NULL, NULL, 0, 2, options};
    return cbn__nvrtc_compile(nvrtc, &source, &compiled->cubin, &compiled->ptx, &compiled->log, err);
}

static void assert_not_opened(const char *path, const char *env_path, const char *word, const char *next_word)
{
    struct cbn__nvrtc *nvrtc = NULL;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__nvrtc_open(path, env_path, &nvrtc, &err), CBN_STATUS_NO_COMPILER);
    ck_assert_ptr_null(nvrtc);
    ck_assert_int_eq(err.status, CBN_STATUS_NO_COMPILER);
    ck_assert_msg(strstr(err.message, word) && strstr(err.message, next_word), "%s", err.message);
}

START_TEST(a_wrong_path_is_named_with_its_origin)
{
    assert_not_opened("/nowhere/libnvrtc.so", STUB, "/nowhere/libnvrtc.so", "option");
    assert_not_opened(NULL, "/nowhere/libnvrtc.so", "/nowhere/libnvrtc.so", "CUBINET_NVRTC");
}
END_TEST

START_TEST(a_foreign_library_is_named_with_the_reason)
{
    assert_not_opened("libm.so.6", NULL, "libm.so.6", "has no nvrtcVersion");
    char path[] = "/tmp/cubinet-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    static const char text[4096] = "not an ELF file";
    ck_assert_int_eq((int)write(fd, text, sizeof(text)), (int)sizeof(text));
    assert_not_opened(path, NULL, path, "ELF");
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(an_old_version_is_refused)
{
    ck_assert_int_eq(setenv("FAKE_NVRTC_VERSION", "11.8", 1), 0);
    assert_not_opened(STUB, NULL, "11.8", "12.0");
}
END_TEST

START_TEST(the_environment_comes_before_the_search)
{
    struct cbn__nvrtc *nvrtc = NULL;
    ck_assert_int_eq(setenv("FAKE_NVRTC_VERSION", "12.9", 1), 0);
    ck_assert_int_eq(cbn__nvrtc_open(NULL, STUB, &nvrtc, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(cbn__nvrtc_version(nvrtc), 12009);
    ck_assert_ptr_nonnull(strstr(cbn__nvrtc_path(nvrtc), "libnvrtc_stub.so"));
    ck_assert(cbn__nvrtc_knows_arch(nvrtc, 90));
    ck_assert(cbn__nvrtc_knows_arch(nvrtc, 121));
    ck_assert(!cbn__nvrtc_knows_arch(nvrtc, 91));
    ck_assert(!cbn__nvrtc_knows_arch(nvrtc, 0));
    cbn__nvrtc_close(nvrtc);
    cbn__nvrtc_close(NULL);
}
END_TEST

START_TEST(a_version_without_cache_compiles_all_the_same)
{
    ck_assert_int_eq(setenv("FAKE_NVRTC_REFUSE", "--no-cache", 1), 0);
    struct cbn__nvrtc *nvrtc = open_at(STUB);
    __attribute__((cleanup(compiled_done))) struct compiled first = {0}, second = {0}, third = {0};
    ck_assert_int_eq(compile(nvrtc, kernel, &first, NULL), CBN_STATUS_OK);
    ck_assert_ptr_null(strstr(cbn__buf_text(&first.log), "unrecognized"));
    /* The stand-in's cubin depends on the options: without --no-cache, and remembered to leave it out. */
    ck_assert_int_eq(unsetenv("FAKE_NVRTC_REFUSE"), 0);
    ck_assert_int_eq(compile(nvrtc, kernel, &second, NULL), CBN_STATUS_OK);
    ck_assert(cbn__blob_equal(cbn__buf_blob(&first.cubin), cbn__buf_blob(&second.cubin)));
    struct cbn__nvrtc *other = open_at(STUB);
    ck_assert_int_eq(compile(other, kernel, &third, NULL), CBN_STATUS_OK);
    ck_assert(!cbn__blob_equal(cbn__buf_blob(&first.cubin), cbn__buf_blob(&third.cubin)));
    cbn__nvrtc_close(nvrtc);
    cbn__nvrtc_close(other);
}
END_TEST

START_TEST(another_unknown_option_is_an_error)
{
    ck_assert_int_eq(setenv("FAKE_NVRTC_REFUSE", "--ptxas-options=-v", 1), 0);
    struct cbn__nvrtc *nvrtc = open_at(STUB);
    __attribute__((cleanup(compiled_done))) struct compiled compiled = {0};
    struct cbn_error err = {0};
    ck_assert_int_eq(compile(nvrtc, kernel, &compiled, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_uint_eq(err.domain, CBN_DOMAIN_NVRTC);
    ck_assert_int_eq(err.native_code, 5);
    ck_assert_ptr_nonnull(strstr(err.message, "unrecognized option --ptxas-options=-v"));
    cbn__nvrtc_close(nvrtc);
}
END_TEST

START_TEST(missing_builtins_are_named)
{
    ck_assert_int_eq(setenv("FAKE_NVRTC_BUILTINS", "libnvrtc-builtins.so.13.0", 1), 0);
    struct cbn__nvrtc *nvrtc = open_at(STUB);
    __attribute__((cleanup(compiled_done))) struct compiled compiled = {0};
    struct cbn_error err = {0};
    ck_assert_int_eq(compile(nvrtc, kernel, &compiled, &err), CBN_STATUS_NO_COMPILER);
    ck_assert_msg(strstr(err.message, "failed to open libnvrtc-builtins.so.13.0"), "%s", err.message);
    ck_assert_msg(strstr(err.message, "tests/fake/libnvrtc-builtins.so.13.0"), "%s", err.message);
    ck_assert_ptr_nonnull(strstr(cbn__buf_text(&compiled.log), "libnvrtc-builtins.so.13.0"));
    cbn__nvrtc_close(nvrtc);
}
END_TEST

START_TEST(the_real_one_gives_a_cubin_ptx_and_log)
{
    struct cbn__nvrtc *nvrtc = open_real();
    ck_assert_uint_ge(cbn__nvrtc_version(nvrtc), 12000);
    ck_assert_int_eq(cbn__nvrtc_path(nvrtc)[0], '/');
    ck_assert(cbn__nvrtc_knows_arch(nvrtc, 90));
    __attribute__((cleanup(compiled_done))) struct compiled compiled = {0};
    struct cbn_error err = {0};
    ck_assert_msg(compile(nvrtc, kernel, &compiled, &err) == CBN_STATUS_OK, "%s", err.message);
    ck_assert_mem_eq(compiled.cubin.data,
                     "\x7f"
                     "ELF",
                     4);
    ck_assert_ptr_nonnull(strstr(cbn__buf_text(&compiled.ptx), ".entry k"));
    ck_assert_ptr_nonnull(strstr(cbn__buf_text(&compiled.log), "registers"));
    ck_assert_int_ne(compiled.log.data[compiled.log.size - 1], 0);
    cbn__nvrtc_close(nvrtc);
}
END_TEST

START_TEST(a_failure_empties_what_was_there_and_keeps_the_log)
{
    struct cbn__nvrtc *nvrtc = open_real();
    __attribute__((cleanup(compiled_done))) struct compiled compiled = {0};
    struct cbn_error err = {0};
    ck_assert_int_eq(compile(nvrtc, kernel, &compiled, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(compile(nvrtc, "extern \"C\" __global__ void k()\n{\n    int x = y;\n}\n", &compiled, &err),
                     CBN_STATUS_COMPILE_FAILED);
    ck_assert_uint_eq(compiled.cubin.size, 0);
    ck_assert_uint_eq(compiled.ptx.size, 0);
    ck_assert_ptr_nonnull(strstr(cbn__buf_text(&compiled.log), "1 error detected"));
    ck_assert_uint_eq(err.domain, CBN_DOMAIN_NVRTC);
    ck_assert_int_eq(err.native_code, 6);
    ck_assert_msg(strstr(err.message, "test.cu(3): error: identifier \"y\" is undefined"), "%s", err.message);
    cbn__nvrtc_close(nvrtc);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("nvrtc");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_wrong_path_is_named_with_its_origin);
    tcase_add_test(tests, a_foreign_library_is_named_with_the_reason);
    tcase_add_test(tests, an_old_version_is_refused);
    tcase_add_test(tests, the_environment_comes_before_the_search);
    tcase_add_test(tests, a_version_without_cache_compiles_all_the_same);
    tcase_add_test(tests, another_unknown_option_is_an_error);
    tcase_add_test(tests, missing_builtins_are_named);
    tcase_add_test(tests, the_real_one_gives_a_cubin_ptx_and_log);
    tcase_add_test(tests, a_failure_empties_what_was_there_and_keeps_the_log);
    Suite *suite = suite_create("nvrtc");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
