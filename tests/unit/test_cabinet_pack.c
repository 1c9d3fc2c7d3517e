/*
 * cbn_cabinet_pack and cbn_cabinet_unpack: what is selected, what is refused, and that a refusal leaves everything as
 * it was. A pack in place below a runtime that serves calls.
 */
#include <fcntl.h>

#include "cases_fixture.h"

static char out[PATH_MAX + 16], other[PATH_MAX + 16];

/* Two kernels of fp8_gemm, one of fp8_quantize, of sm_90a; the same quantiser of sm_80. */
static void set_up_kernels(void)
{
    set_up_case();
    snprintf(out, sizeof(out), "%.4000s/out.pack", folder);
    snprintf(other, sizeof(other), "%.4000s/other", folder);
    struct cbn_query queries[] = {query_of("fp8_gemm", HOPPER, 64, 256, 512),
                                  query_of("fp8_quantize", HOPPER, 64, 0, 512),
                                  query_of("fp8_quantize", CBN_ARCH(80, 0), 64, 0, 512)};
    ck_assert_int_eq(cbn_warm(runtime, queries, 3, NULL, NULL, &error), CBN_STATUS_OK);
}

static struct cbn_pack_result pack(const struct cbn_pack_options *options)
{
    struct cbn_pack_result result = {.size = sizeof(result)};
    ck_assert_msg(cbn_cabinet_pack(runtime, out, options, &result, &error) == CBN_STATUS_OK, "%s", error.message);
    return result;
}

static void write_marker(void)
{
    int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert(fd >= 0 && write(fd, "before", 6) == 6);
    ck_assert_int_eq(close(fd), 0);
}

static off_t size_of_out(void)
{
    struct stat file;
    return stat(out, &file) == 0 ? file.st_size : -1;
}

/* Refused with these words, and the file that stood there stands there. */
static void refuse_pack(const char *path, const struct cbn_pack_options *options, int32_t status, const char *words)
{
    struct cbn_pack_result result = {.size = sizeof(result), .entries = 77};
    write_marker();
    memset(&error, 0, sizeof(error));
    ck_assert_int_eq(cbn_cabinet_pack(runtime, path, options, &result, &error), status);
    ck_assert_msg(strstr(error.message, words) != NULL, "%s", error.message);
    ck_assert_uint_eq(result.entries, 77);
    ck_assert_int_eq(size_of_out(), 6);
}

START_TEST(filters_select)
{
    struct entries all = list_entries();
    unsigned of_sm_80 = 0;
    for (unsigned i = 0; i < all.count; i++)
        of_sm_80 += strcmp(all.archs[i], "sm_80") == 0;
    ck_assert_uint_gt(of_sm_80, 0);
    struct cbn_pack_options options = CBN_PACK_OPTIONS_INIT;
    ck_assert_uint_eq(pack(NULL).entries, all.count);
    ck_assert_uint_eq(pack(&options).entries, all.count);
    options.arch = CBN_ARCH(80, 0);
    ck_assert_uint_eq(pack(&options).entries, of_sm_80);
    options.arch = 0;
    options.op = "fp8_quantize";
    uint64_t quantizers = pack(&options).entries;
    options.op = "fp8_gemm";
    ck_assert_uint_eq(pack(&options).entries + quantizers, all.count);
    options.kernel = "no such kernel";
    refuse_pack(out, &options, CBN_STATUS_NOT_FOUND, "no entry is selected");
}
END_TEST

START_TEST(keys_select)
{
    struct entries all = list_entries();
    ck_assert_uint_ge(all.count, 3);
    /* Out of order, one of them twice, in capitals. */
    char upper[CBN_KEY_TEXT_BYTES];
    for (size_t i = 0; i < sizeof(upper); i++)
        upper[i] = (char)(all.keys[0][i] >= 'a' ? all.keys[0][i] - 32 : all.keys[0][i]);
    const char *keys[] = {all.keys[2], all.keys[0], all.keys[2], upper};
    struct cbn_pack_options options = CBN_PACK_OPTIONS_INIT;
    options.keys = keys;
    options.key_count = 4;
    struct cbn_pack_result result = pack(&options);
    ck_assert_uint_eq(result.entries, 2);
    ck_assert_uint_eq(result.damaged, 0);
    ck_assert_int_eq((int64_t)result.bytes, size_of_out());
    ck_assert_uint_eq(strlen(result.digest), 64);
    options.key_count = 0;
    refuse_pack(out, &options, CBN_STATUS_NOT_FOUND, "no entry is selected");
    options.key_count = 4;
    keys[1] = "00000000000000000000000000000000";
    refuse_pack(out, &options, CBN_STATUS_NOT_FOUND, "of key 00000000000000000000000000000000; warm it");
    keys[1] = "ffffffffffffffffffffffffffffffff";
    refuse_pack(out, &options, CBN_STATUS_NOT_FOUND, "of key ffffffffffffffffffffffffffffffff; warm it");
    keys[1] = "12";
    refuse_pack(out, &options, CBN_STATUS_INVALID, "keys[1] '12' is not 32 hex digits");
    keys[1] = NULL;
    refuse_pack(out, &options, CBN_STATUS_INVALID, "keys[1] 'NULL'");
    options.keys = NULL;
    refuse_pack(out, &options, CBN_STATUS_INVALID, "keys is NULL, key_count is 4");
}
END_TEST

START_TEST(where_to_is_said_once)
{
    struct cbn_pack_options options = CBN_PACK_OPTIONS_INIT;
    refuse_pack(NULL, &options, CBN_STATUS_INVALID, "give either of path and options->fd");
    refuse_pack(NULL, NULL, CBN_STATUS_INVALID, "give either of path and options->fd");
    refuse_pack("", &options, CBN_STATUS_INVALID, "path is empty");
    options.fd = 1;
    refuse_pack(out, &options, CBN_STATUS_INVALID, "give one of path and options->fd");
    ck_assert_int_eq(cbn_cabinet_pack(NULL, out, NULL, NULL, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_cabinet_unpack(NULL, out, NULL, NULL, &error), CBN_STATUS_INVALID);
    struct cbn_unpack_options unpack = CBN_UNPACK_OPTIONS_INIT;
    ck_assert_int_eq(cbn_cabinet_unpack(runtime, NULL, &unpack, NULL, &error), CBN_STATUS_INVALID);
    unpack.expect_digest = "sha256:12";
    ck_assert_int_eq(cbn_cabinet_unpack(runtime, out, &unpack, NULL, &error), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "expect_digest 'sha256:12' is no SHA-256"));
}
END_TEST

static struct cbn_runtime *open_other(const char *cache, const char *base)
{
    struct cbn_runtime_options options = case_options(NOWHERE);
    struct cbn_runtime *made = NULL;
    options.cache_dir = cache;
    options.flags = cache ? CBN_RUNTIME_IGNORE_ENV : CBN_RUNTIME_IGNORE_ENV | CBN_RUNTIME_MEMORY_ONLY;
    options.base_dirs = &base;
    options.base_count = base ? 1 : 0;
    ck_assert_int_eq(cbn_runtime_create(&options, &made, &error), CBN_STATUS_OK);
    return made;
}

START_TEST(through_descriptors)
{
    struct cbn_pack_options options = CBN_PACK_OPTIONS_INIT;
    struct cbn_unpack_options unpack = CBN_UNPACK_OPTIONS_INIT;
    struct cbn_pack_result packed = {.size = sizeof(packed)};
    struct cbn_unpack_result taken = {.size = sizeof(taken)};
    options.fd = open(out, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(cbn_cabinet_pack(runtime, NULL, &options, &packed, &error), CBN_STATUS_OK);
    ck_assert_int_eq((int64_t)packed.bytes, size_of_out());
    struct cbn_runtime *made = open_other(other, NULL);
    unpack.fd = options.fd; /* left open, whatever its offset */
    unpack.expect_digest = packed.digest;
    ck_assert_msg(cbn_cabinet_unpack(made, NULL, &unpack, &taken, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_uint_eq(taken.stored, packed.entries);
    ck_assert_str_eq(taken.digest, packed.digest);
    ck_assert_int_eq(close(options.fd), 0);
    cbn_runtime_destroy(made);
}
END_TEST

/* No compiler, no folder: the calls are the pack's. */
START_TEST(in_place_below_a_runtime)
{
    struct cbn_fp8_quantize_args args = quantize_args(8, 512, CBN_DTYPE_BF16);
    use_device(90);
    ck_assert_msg(cbn_fp8_quantize(runtime, &args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
    long compiles = compiles_counted();
    (void)pack(NULL);
    struct cbn_runtime *made = open_other(NULL, out), *kept = runtime;
    runtime = made;
    ck_assert_msg(cbn_fp8_quantize(made, &args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
    struct cbn_stats stats = {.size = sizeof(stats)};
    cbn_runtime_stats(made, &stats);
    ck_assert_uint_eq(stats.base_hits, 1);
    ck_assert_uint_eq(stats.compiles + stats.puts + stats.puts_dropped + stats.misses_absent, 0);
    ck_assert_int_eq(compiles_counted(), compiles);
    ck_assert_int_eq(cbn_cabinet_unpack(made, out, NULL, NULL, &error), CBN_STATUS_NOT_FOUND);
    cbn_runtime_destroy(made);
    runtime = kept;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cabinet_pack");
    TCase *cases = tcase_create("cabinet_pack");
    tcase_add_checked_fixture(cases, set_up_kernels, tear_down_case);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, filters_select);
    tcase_add_test(cases, keys_select);
    tcase_add_test(cases, where_to_is_said_once);
    tcase_add_test(cases, through_descriptors);
    tcase_add_test(cases, in_place_below_a_runtime);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
