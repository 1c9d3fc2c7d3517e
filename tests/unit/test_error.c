/*
 * Pinned status numbers, names and texts; the error record; architecture names.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cubinet/route.h>

#include "base/arch.h"
#include "base/env.h"
#include "base/error.h"

static const struct {
    int32_t number;
    const char *name;
} pinned[] = {
    {0, "OK"},          {1, "INVALID"},     {2, "UNSUPPORTED"},    {3, "NOT_FOUND"},
    {4, "NO_DRIVER"},   {5, "NO_COMPILER"}, {6, "COMPILE_FAILED"}, {7, "NO_MEMORY"},
    {8, "IO"},          {9, "DAMAGED"},     {10, "INCOMPATIBLE"},  {11, "TIMEOUT"},
    {12, "NOT_LOADED"}, {13, "MISS"},       {14, "UNTRUSTED"},     {15, "CUDA"},
    {16, "LIMIT"},      {17, "PARTIAL"},    {18, "INTERNAL"},
};

START_TEST(numbers_and_names_are_pinned)
{
    for (size_t i = 0; i < sizeof(pinned) / sizeof(pinned[0]); i++) {
        ck_assert_str_eq(cbn_status_name(pinned[i].number), pinned[i].name);
        ck_assert_str_ne(cbn_status_text(pinned[i].number), "");
    }
    ck_assert_str_eq(cbn_status_name(19), "UNKNOWN");
    ck_assert_str_eq(cbn_status_name(-1), "UNKNOWN");
}
END_TEST

START_TEST(domains_and_dtypes_have_names)
{
    static const char *const domains[] = {"cubinet", "os", "cuda", "nvrtc", "lmdb", "unknown"};
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_str_eq(cbn_domain_name(i), domains[i]);
    ck_assert_str_eq(cbn_dtype_name(CBN_DTYPE_BF16), "bf16");
    ck_assert_str_eq(cbn_dtype_name(CBN_DTYPE_E4M3), "e4m3");
    ck_assert_str_eq(cbn_dtype_name(99), "unknown");
}
END_TEST

START_TEST(the_record_is_filled_and_cut)
{
    struct cbn_error err;
    memset(&err, 0xff, sizeof(err));
    ck_assert_int_eq(cbn__error_set(&err, CBN_STATUS_CUDA, CBN_DOMAIN_CUDA, -7, "cuInit: %s", "no"), CBN_STATUS_CUDA);
    ck_assert_int_eq(err.status, CBN_STATUS_CUDA);
    ck_assert_uint_eq(err.domain, CBN_DOMAIN_CUDA);
    ck_assert_int_eq(err.native_code, -7);
    ck_assert_str_eq(err.message, "cuInit: no");
    char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    ck_assert_int_eq(cbn__error_own(&err, CBN_STATUS_INVALID, "%s", text), CBN_STATUS_INVALID);
    ck_assert_uint_eq(strlen(err.message), CBN_ERROR_MESSAGE_BYTES - 1);
    ck_assert_int_eq(cbn__error_own(NULL, CBN_STATUS_LIMIT, "%s", text), CBN_STATUS_LIMIT);
}
END_TEST

START_TEST(an_os_error_carries_errno_and_its_text)
{
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__error_os(&err, CBN_STATUS_IO, ENOENT, "open %s", "/x"), CBN_STATUS_IO);
    ck_assert_uint_eq(err.domain, CBN_DOMAIN_OS);
    ck_assert_int_eq(err.native_code, ENOENT);
    ck_assert_str_eq(err.message, "open /x: No such file or directory");
    ck_assert_int_eq(cbn__error_no_memory(&err), CBN_STATUS_NO_MEMORY);
    ck_assert_uint_eq(sizeof(struct cbn_error), 512);
}
END_TEST

static const struct {
    const char *name;
    uint32_t arch;
} archs[] = {
    {"sm_80", CBN_ARCH(80, 0)},      {"sm_86", CBN_ARCH(86, 0)},      {"sm_87", CBN_ARCH(87, 0)},
    {"sm_89", CBN_ARCH(89, 0)},      {"sm_90a", CBN_ARCH(90, 'a')},   {"sm_100a", CBN_ARCH(100, 'a')},
    {"sm_103a", CBN_ARCH(103, 'a')}, {"sm_110a", CBN_ARCH(110, 'a')}, {"sm_120a", CBN_ARCH(120, 'a')},
    {"sm_121a", CBN_ARCH(121, 'a')},
};

START_TEST(arch_names_go_round)
{
    for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
        uint32_t arch = 0;
        char name[16];
        ck_assert_int_eq(cbn_arch_parse(archs[i].name, &arch, NULL), CBN_STATUS_OK);
        ck_assert_uint_eq(arch, archs[i].arch);
        cbn_arch_format(arch, name, sizeof(name));
        ck_assert_str_eq(name, archs[i].name);
        ck_assert_uint_eq(cbn__arch_of_capability(cbn__arch_capability(arch)), arch);
        ck_assert_uint_gt(cbn__arch_usual_sms(arch), 0);
        ck_assert_int_eq(cbn__arch_has_pdl(arch), cbn__arch_capability(arch) >= 90);
    }
}
END_TEST

START_TEST(wrong_arch_names_are_refused_with_the_right_one)
{
    static const char *const wrong[] = {"sm_90", "sm_80a",          "sm_99",   "sm_", "90",
                                        "sm_9",  "sm_900000000000", "sm_90ab", "",    "SM_90a"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint32_t arch = 77;
        struct cbn_error err = {0};
        ck_assert_int_eq(cbn_arch_parse(wrong[i], &arch, &err), CBN_STATUS_INVALID);
        ck_assert_uint_eq(arch, 77);
        ck_assert_msg(strstr(err.message, i == 1 ? "sm_80" : "sm_90a"), "%s", err.message);
    }
    ck_assert_int_eq(cbn_arch_parse(NULL, NULL, NULL), CBN_STATUS_INVALID);
    ck_assert_uint_eq(cbn__arch_of_capability(75), 0);
    ck_assert_uint_eq(cbn__arch_usual_sms(CBN_ARCH(75, 0)), 0);
}
END_TEST

START_TEST(an_empty_variable_is_unset)
{
    ck_assert_str_eq(cbn__env_name(CBN__ENV_CUDA), "CUBINET_CUDA");
    ck_assert_int_eq(unsetenv("CUBINET_CUDA"), 0);
    ck_assert_ptr_null(cbn__env_get(CBN__ENV_CUDA));
    ck_assert_int_eq(setenv("CUBINET_CUDA", "", 1), 0);
    ck_assert_ptr_null(cbn__env_get(CBN__ENV_CUDA));
    ck_assert_int_eq(setenv("CUBINET_CUDA", "/x", 1), 0);
    ck_assert_str_eq(cbn__env_get(CBN__ENV_CUDA), "/x");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("error");
    tcase_add_test(tests, numbers_and_names_are_pinned);
    tcase_add_test(tests, domains_and_dtypes_have_names);
    tcase_add_test(tests, the_record_is_filled_and_cut);
    tcase_add_test(tests, an_os_error_carries_errno_and_its_text);
    tcase_add_test(tests, arch_names_go_round);
    tcase_add_test(tests, wrong_arch_names_are_refused_with_the_right_one);
    tcase_add_test(tests, an_empty_variable_is_unset);
    Suite *suite = suite_create("error");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
