/*
 * The templates through a real NVRTC, which runs without a GPU: every built-in specialisation of the default profile
 * builds for each kind of architecture, other forms on a sample of them; no spills on sm_90a; nothing global before the
 * PDL wait, but for swap_ab and wgmma, which a plan may tell that weights stay.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arch.h"
#include "dispatch/builtin.h"
#include "driver/nvrtc.h"
#include "jit/build.h"
#include "jit/embedded.h"

static struct cbn__family *families[CBN__BUILTIN_COUNT];
static struct cbn__builder *builder;

static void setup(void)
{
    struct cbn_error err = {0};
    const struct cbn__builder_options options = {.nvrtc_env = getenv("CUBINET_NVRTC")};
    ck_assert_msg(cbn__builtin_families(families, &err) == CBN_STATUS_OK, "%s", err.message);
    ck_assert_msg(cbn__builder_create(&options, &builder, &err) == CBN_STATUS_OK, "%s", err.message);
}

static void teardown(void)
{
    cbn__builder_destroy(builder);
    for (int i = 0; i < CBN__BUILTIN_COUNT; i++)
        cbn__family_destroy(families[i]);
}

static const uint32_t archs[] = {CBN_ARCH(80, 0), CBN_ARCH(89, 0), CBN_ARCH(90, 'a'), CBN_ARCH(100, 'a'),
                                 CBN_ARCH(120, 'a')};
#define ARCH_COUNT (int)(sizeof(archs) / sizeof(archs[0]))

static struct cbn_query query_of(const char *op, uint32_t arch)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = op;
    query.arch = arch;
    return query;
}

static int build(void *user, const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    (void)facts;
    const struct cbn_query *query = user;
    struct cbn__spec spec = {.template = &candidate->template, .arch = query->arch};
    memcpy(spec.params, params, candidate->template.param_count * sizeof(*params));
    struct cbn_spec described;
    cbn__spec_describe(&spec, &described);
    struct cbn__build result = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    int32_t status = cbn__build_run(builder, &spec, &result, &err);
    const char *log = cbn__buf_text(&result.log);
    ck_assert_msg(status == CBN_STATUS_OK, "%s: %s\n%s", described.text, err.message, log);
    ck_assert_msg(!strstr(log, "warning"), "%s: %s", described.text, log);
    ck_assert_msg(!strstr(log, "C75"), "%s: wgmma is serialised: %s", described.text, log); /* ptxas says it as info */
    ck_assert_msg(query->arch != CBN_ARCH(90, 'a') || result.spill_bytes == 0, "%s spills %u bytes", described.text,
                  result.spill_bytes);
    ck_assert_uint_gt(result.registers, 0);
    ck_assert_uint_le(result.shared_bytes, 48 * 1024);
    ck_assert_ptr_nonnull(
        memmem(result.cubin.data, result.cubin.size, candidate->template.symbol, strlen(candidate->template.symbol)));
    cbn__build_done(&result);
    return 0;
}

/* Builds what any shape can reach under the query's profile, or a sweep over m where n and k are given. */
static void build_all(struct cbn_query query)
{
    int64_t facts[CBN_FACTS_MAX];
    uint32_t mask = 0;
    struct cbn_error err = {0};
    const struct cbn__family *family = families[strcmp(query.op, "fp8_gemm") == 0 ? 0 : 1];
    struct cbn__route route;
    ck_assert_msg(cbn__builtin_facts(&query, facts, &mask, &err) == CBN_STATUS_OK, "%s", err.message);
    ck_assert_int_eq(cbn__route_resolve(family, NULL, 0, NULL, NULL, NULL, false, &route, &err), CBN_STATUS_OK);
    int32_t status = query.k ? cbn__enumerate_sweep(family, facts, query.m, &route, build, &query, &err)
                             : cbn__enumerate_all(family, facts, mask, &route, build, &query, &err);
    ck_assert_msg(status == CBN_STATUS_OK, "%s", err.message);
}

START_TEST(default_profile)
{
    build_all(query_of("fp8_gemm", archs[_i]));
    build_all(query_of("fp8_quantize", archs[_i]));
}
END_TEST

/* Every value of every form at least once, in few builds. */
static const struct cbn_profile gemm_forms[] = {
    {.in = CBN_DTYPE_FP16,
     .out = CBN_DTYPE_FP16,
     .weight_scale = CBN_SCALE_UE8M0,
     .scale_gran = CBN_GRAN_ROW,
     .bias = CBN_BIAS_OUT,
     .pow2 = 1,
     .propagate = 1,
     .pdl = 1},
    {.in = CBN_DTYPE_FP32,
     .out = CBN_DTYPE_FP32,
     .weight_scale = CBN_SCALE_FP32,
     .scale_gran = CBN_GRAN_ROW,
     .bias = CBN_BIAS_OUT},
    {.in = CBN_DTYPE_E4M3,
     .out = CBN_DTYPE_BF16,
     .weight_scale = CBN_SCALE_UE8M0,
     .scale_gran = CBN_GRAN_BLOCK,
     .act_scale = CBN_LAYOUT_PACKED_COL,
     .bias = CBN_BIAS_FP32,
     .pdl = 1},
    {.in = CBN_DTYPE_E4M3,
     .out = CBN_DTYPE_FP32,
     .weight_scale = CBN_SCALE_FP32,
     .scale_gran = CBN_GRAN_ROW,
     .act_scale = CBN_LAYOUT_COL4,
     .pdl = 1},
    {.in = CBN_DTYPE_FP32,
     .out = CBN_DTYPE_BF16,
     .weight_scale = CBN_SCALE_UE8M0,
     .scale_gran = CBN_GRAN_ROW,
     .bias = CBN_BIAS_FP32,
     .propagate = 1,
     .pdl = 1},
};
#define GEMM_FORM_COUNT (int)(sizeof(gemm_forms) / sizeof(gemm_forms[0]))

static struct cbn_query form_query(const char *op, uint32_t arch, const struct cbn_profile *profile)
{
    struct cbn_query query = query_of(op, arch);
    query.profile = *profile;
    query.profile.size = sizeof(query.profile);
    return query;
}

/* Rows of k of 129 are unaligned. */
static void build_form(uint32_t arch, const struct cbn_profile *form, int64_t m, int64_t k)
{
    struct cbn_query query = form_query("fp8_gemm", arch, form);
    query.m = m;
    query.n = 64;
    query.k = k;
    build_all(query);
}

START_TEST(gemm_forms_on_hopper)
{
    build_form(CBN_ARCH(90, 'a'), &gemm_forms[_i], 131072, 128);
    build_form(CBN_ARCH(90, 'a'), &gemm_forms[_i], 1, 129);
}
END_TEST

/* Software e4m3 with fp16 MMAs, and native FP8 MMAs; m up to 16 keeps it to one tile. */
START_TEST(gemm_forms_elsewhere)
{
    build_form(CBN_ARCH(86, 0), &gemm_forms[_i], 16, 128);
    build_form(CBN_ARCH(121, 'a'), &gemm_forms[_i], 16, 129);
}
END_TEST

START_TEST(quantize_forms)
{
    static const uint32_t layouts[] = {CBN_LAYOUT_COL4, CBN_LAYOUT_PACKED_COL};
    for (int arch = 0; arch < 3; arch += 2)
        for (uint32_t in = CBN_DTYPE_BF16; in <= CBN_DTYPE_FP32; in++)
            for (uint32_t form = (uint32_t)arch; form < 4; form++) {
                struct cbn_query query = query_of("fp8_quantize", archs[arch]);
                query.profile.in = in;
                query.profile.act_scale = layouts[form / 2];
                query.profile.pow2 = form == 1;
                query.profile.propagate = form == 1 || form == 2;
                query.profile.approx = form == 0;
                query.profile.pdl = form != 3;
                build_all(query);
            }
}
END_TEST

/* PTX of a candidate as it stands under the default profile, m = 8. */
static void compile_ptx(const char *kernel, uint32_t pdl, struct cbn__buf *ret_ptx)
{
    int index = cbn__family_candidate(families[0], kernel);
    const struct cbn__family *family = families[index < 0];
    const struct cbn__candidate *candidate = &family->candidates[cbn__family_candidate(family, kernel)];
    struct cbn__buf cubin = CBN__BUF_INIT, log = CBN__BUF_INIT, source = CBN__BUF_INIT;
    struct cbn__nvrtc *nvrtc = NULL;
    struct cbn_error err = {0};
    struct cbn_query query = query_of(family->name, CBN_ARCH(90, 'a'));
    query.m = 8;
    query.n = index < 0 ? 0 : 64;
    query.k = 128;
    query.profile.pdl = pdl;
    int64_t facts[CBN_FACTS_MAX];
    uint32_t mask;
    ck_assert_int_eq(cbn__builtin_facts(&query, facts, &mask, &err), CBN_STATUS_OK);
    struct cbn__spec spec = {.template = &candidate->template, .arch = query.arch};
    cbn__params_resolve(candidate, facts, spec.params);
    cbn__spec_source(&spec, &source);
    struct cbn__spec_options options;
    cbn__spec_options(&spec, &options);
    const char *names[16], *texts[16];
    ck_assert_uint_le(cbn__embedded_count, 16);
    for (size_t i = 0; i < cbn__embedded_count; i++) {
        names[i] = cbn__embedded_files[i].name;
        texts[i] = cbn__embedded_files[i].text;
    }
    const struct cbn__nvrtc_source what = {
        .text = cbn__buf_text(&source),
        .name = candidate->template.source_name,
        .header_names = names,
        .header_texts = texts,
        .header_count = (int)cbn__embedded_count,
        .option_count = options.count,
        .options = options.items,
    };
    ck_assert_int_eq(cbn__nvrtc_open(NULL, getenv("CUBINET_NVRTC"), &nvrtc, &err), CBN_STATUS_OK);
    int32_t status = cbn__nvrtc_compile(nvrtc, &what, &cubin, ret_ptx, &log, &err);
    ck_assert_msg(status == CBN_STATUS_OK, "%s\n%s", err.message, cbn__buf_text(&log));
    cbn__nvrtc_close(nvrtc);
    cbn__buf_done(&cubin);
    cbn__buf_done(&log);
    cbn__buf_done(&source);
}

static const char *const kernels[] = {"generic", "vector", "scalar", "wgmma", "swap_ab", "swap_ab_fused"};
#define KERNEL_COUNT (int)(sizeof(kernels) / sizeof(kernels[0]))
#define WAITING_COUNT 3 /* the first of them touch nothing before the wait; the others may be told to fetch weights */
static const char *const global_accesses[] = {"ld.global", "st.global", "cp.async.cg"};

/* Text order is program order here: the wait stands in the entry's first block, before any branch. */
START_TEST(nothing_global_before_the_wait)
{
    struct cbn__buf ptx = CBN__BUF_INIT;
    compile_ptx(kernels[_i], 1, &ptx);
    const char *text = cbn__buf_text(&ptx);
    const char *entry = strstr(text, ".entry");
    ck_assert_ptr_nonnull(entry);
    const char *wait = strstr(entry, "griddepcontrol.wait");
    ck_assert_ptr_nonnull(wait);
    const char *branch = strstr(entry, "bra");
    ck_assert(!branch || branch > wait);
    for (size_t i = 0; i < sizeof(global_accesses) / sizeof(global_accesses[0]); i++) {
        const char *access = strstr(entry, global_accesses[i]);
        ck_assert_msg(!access || access > wait, "%s before the wait", global_accesses[i]);
    }
    cbn__buf_done(&ptx);
}
END_TEST

START_TEST(pdl_waits_and_triggers)
{
    struct cbn__buf ptx = CBN__BUF_INIT;
    compile_ptx(kernels[_i], 1, &ptx);
    const char *text = cbn__buf_text(&ptx);
    ck_assert_ptr_nonnull(strstr(text, "griddepcontrol.wait"));
    ck_assert_ptr_nonnull(strstr(text, "griddepcontrol.launch_dependents"));
    ck_assert_ptr_null(strstr(text, "ld.global.nc"));
    for (const char *at = text; (at = strstr(at, ".approx")) != NULL; at++) /* wgmma's is of a count of tiles */
        ck_assert(strcmp(kernels[_i], "wgmma") == 0 && strncmp(at - 3, "rcp.approx.ftz.f32", 18) == 0);
    cbn__buf_done(&ptx);
}
END_TEST

START_TEST(no_pdl_without_the_parameter)
{
    struct cbn__buf ptx = CBN__BUF_INIT;
    compile_ptx(kernels[_i], 0, &ptx);
    ck_assert_ptr_nonnull(strstr(cbn__buf_text(&ptx), ".entry"));
    ck_assert_ptr_null(strstr(cbn__buf_text(&ptx), "griddepcontrol"));
    cbn__buf_done(&ptx);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("templates");
    TCase *test_case = tcase_create("templates");
    tcase_set_timeout(test_case, 280);
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_loop_test(test_case, default_profile, 0, ARCH_COUNT);
    tcase_add_loop_test(test_case, gemm_forms_on_hopper, 0, GEMM_FORM_COUNT);
    tcase_add_loop_test(test_case, gemm_forms_elsewhere, 0, GEMM_FORM_COUNT);
    tcase_add_test(test_case, quantize_forms);
    tcase_add_loop_test(test_case, nothing_global_before_the_wait, 0, WAITING_COUNT);
    tcase_add_loop_test(test_case, pdl_waits_and_triggers, 0, KERNEL_COUNT);
    tcase_add_loop_test(test_case, no_pdl_without_the_parameter, 0, KERNEL_COUNT);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
