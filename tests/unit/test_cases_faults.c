/*
 * Cases from the field that concern damage and failing or missing compilers, as a call meets them: 7, 8, 9 and 20.
 */
#include "base/buf.h"
#include "cases_fixture.h"

/* ---- 7, 8: damage ---- */

static void write_file(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static size_t read_file(const char *path, uint8_t **ret_bytes)
{
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    size_t size = (size_t)status.st_size;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    *ret_bytes = malloc(size);
    ck_assert_ptr_nonnull(*ret_bytes);
    ck_assert_uint_eq(fread(*ret_bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    return size;
}

enum damage { DAMAGE_PAYLOAD, DAMAGE_HALF, DAMAGE_PAGE, DAMAGE_TEXT, DAMAGE_EMPTY, DAMAGE_COUNT };

/* payload: where the stored cubin stands in the file. */
static void damage_file(const char *path, enum damage damage, const uint8_t *payload, size_t payload_size)
{
    uint8_t *bytes = NULL;
    size_t size = read_file(path, &bytes);
    uint8_t *at = memmem(bytes, size, payload, payload_size);
    ck_assert_ptr_nonnull(at);
    if (damage == DAMAGE_PAYLOAD)
        at[payload_size / 2] ^= 1;
    else if (damage == DAMAGE_HALF)
        size /= 2;
    else if (damage == DAMAGE_PAGE)
        memset(bytes + size / 4096 / 2 * 4096, 0, 4096);
    else if (damage == DAMAGE_TEXT)
        memset(bytes, 'x', size);
    else
        size = 0;
    write_file(path, bytes, size);
    free(bytes);
}

static int keep_cubin(void *user, const struct cbn_entry_info *entry)
{
    struct cbn__buf *cubin = user;
    cubin->size = 0;
    cbn__buf_append(cubin, entry->cubin, entry->size_bytes);
    return 0;
}

/* A call on a damaged cache is right: it finds what still verifies, or builds again, and the next finds that. */
START_TEST(a_call_outlives_damage)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    struct cbn__buf cubin = CBN__BUF_INIT;
    char path[PATH_MAX + 16];
    snprintf(path, sizeof(path), "%.4000s/data.mdb", folder);
    call(&args);
    uint64_t sum = last_launch().image_sum;
    ck_assert_int_eq(cbn_cabinet_list(runtime, keep_cubin, &cubin, NULL, &error), CBN_STATUS_OK);
    cbn_runtime_destroy(runtime);
    runtime = NULL;
    damage_file(path, (enum damage)_i, cubin.data, cubin.size);
    restart(STUB);
    call(&args);
    ck_assert_uint_eq(last_launch().image_sum, sum);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.overlay_hits + stats.compiles, 1);
    ck_assert_uint_eq(stats.puts, stats.compiles);
    if (_i == DAMAGE_PAYLOAD) {
        ck_assert_uint_eq(stats.misses_damaged, 1);
        ck_assert_uint_eq(stats.compiles, 1);
    }
    restart(NOWHERE);
    call(&args);
    ck_assert_uint_eq(last_launch().image_sum, sum);
    ck_assert_uint_eq(stats_now().overlay_hits, 1);
    cbn__buf_done(&cubin);
}
END_TEST

/* ---- 20: neither compiler nor driver ---- */

START_TEST(what_is_missing_is_named_by_a_cold_call)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    restart(NOWHERE);
    ck_assert_int_eq(refuse(&args), CBN_STATUS_NO_COMPILER);
    ck_assert_ptr_nonnull(strstr(error.message, NOWHERE));
    restart(STUB);
    call(&args);
    restart(NOWHERE);
    call(&args); /* what is warm loads */
    args = gemm_args(8, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    ck_assert_int_eq(refuse(&args), CBN_STATUS_NO_COMPILER); /* what is not does not disturb it */
    args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&args);
    struct cbn_runtime_options options = case_options(NULL);
    options.cuda_path = "/nonexistent/libcuda.so.1";
    cbn_runtime_destroy(runtime);
    create_runtime(&options);
    ck_assert_int_eq(refuse(&args), CBN_STATUS_NO_DRIVER);
    ck_assert_ptr_nonnull(strstr(error.message, "/nonexistent/libcuda.so.1"));
    ck_assert_uint_eq(list_entries().count, 1);
}
END_TEST

START_TEST(builtins_that_are_missing_are_named_by_a_call)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    ck_assert_int_eq(setenv("FAKE_NVRTC_BUILTINS", "libnvrtc-builtins.so.13.1", 1), 0);
    ck_assert_int_eq(refuse(&args), CBN_STATUS_NO_COMPILER);
    ck_assert_msg(strstr(error.message, "libnvrtc-builtins.so.13.1") && strstr(error.message, "libnvrtc_stub.so"), "%s",
                  error.message);
    ck_assert_uint_eq(list_entries().count, 0);
}
END_TEST

/* ---- 9: NVRTC fails ---- */

struct heard {
    unsigned logs;
    char log[256];
};

static void hear(void *user, const struct cbn_event *event)
{
    struct heard *heard = user;
    if (event->kind == CBN_EVENT_COMPILE_LOG) {
        heard->logs++;
        snprintf(heard->log, sizeof(heard->log), "%s", event->text);
    }
}

/* Twice the same error, with NVRTC's words; nothing stored, nothing loaded. Then the compiler is mended. */
START_TEST(a_failing_build_gives_the_same_error_again)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    struct heard heard = {0};
    struct cbn_runtime_options options = case_options(NULL);
    options.nvrtc_path = STUB;
    options.event = hear;
    options.event_user = &heard;
    cbn_runtime_destroy(runtime);
    create_runtime(&options);
    ck_assert_int_eq(setenv("FAKE_NVRTC_FAIL", "1", 1), 0);
    ck_assert_int_eq(refuse(&args), CBN_STATUS_COMPILE_FAILED);
    struct cbn_error first = error;
    ck_assert_uint_eq(first.domain, CBN_DOMAIN_NVRTC);
    ck_assert_msg(strstr(first.message, "told to fail") && strstr(first.message, "fp8_gemm/wgmma"), "%s",
                  first.message);
    ck_assert_uint_eq(heard.logs, 1);
    ck_assert_ptr_nonnull(strstr(heard.log, "1 error detected"));
    ck_assert_int_eq(refuse(&args), CBN_STATUS_COMPILE_FAILED);
    ck_assert_mem_eq(&error, &first, sizeof(error));
    ck_assert_int_eq(compiles_counted(), 2);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.compile_failures, 2);
    ck_assert_uint_eq(stats.compiles + stats.puts + stats.puts_dropped + stats.loads + stats.launches, 0);
    ck_assert_uint_eq(fake.calls("cuLibraryLoadData"), 0);
    ck_assert_uint_eq(list_entries().count, 0);
    ck_assert_int_eq(unsetenv("FAKE_NVRTC_FAIL"), 0);
    call(&args);
    ck_assert_uint_eq(stats_now().puts, 1);
    ck_assert_uint_eq(list_entries().count, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cases of faults");
    TCase *cases = tcase_create("faults");
    tcase_add_checked_fixture(cases, set_up_case, tear_down_case);
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, a_call_outlives_damage, 0, DAMAGE_COUNT);
    tcase_add_test(cases, what_is_missing_is_named_by_a_cold_call);
    tcase_add_test(cases, builtins_that_are_missing_are_named_by_a_call);
    tcase_add_test(cases, a_failing_build_gives_the_same_error_again);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
