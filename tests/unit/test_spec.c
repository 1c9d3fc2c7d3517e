/*
 * Specialisations as NVRTC and as people see them: source text, options, description; jobs and outcomes as records.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <cubinet/route.h>

#include "jit/embedded.h"
#include "jit/frame.h"
#include "jit/job.h"
#include "unit/jit_sample.h"

START_TEST(source_is_defines_line_and_text)
{
    struct sample sample;
    sample_init(&sample);
    sample_set_source(&sample, "int x;\n");
    CBN__BUF_AUTO source = CBN__BUF_INIT;
    cbn__spec_source(&sample.spec, &source);
    ck_assert_str_eq(cbn__buf_text(&source), "#define SIZE 256\n#define SCALE (-2)\n#define PDL 1\n"
                                             "#line 1 \"sample.cuh\"\nint x;\n");
}
END_TEST

START_TEST(extreme_values_are_right_c)
{
    struct sample sample;
    sample_init(&sample);
    sample_set_source(&sample, "");
    sample.template.source_name = sample_text("/a/b/c.cuh");
    sample.spec.params[0] = INT64_MIN;
    sample.spec.params[1] = INT64_MAX;
    sample.spec.params[2] = INT64_MIN + 1;
    CBN__BUF_AUTO source = CBN__BUF_INIT;
    cbn__spec_source(&sample.spec, &source);
    ck_assert_str_eq(cbn__buf_text(&source),
                     "#define SIZE (-9223372036854775807LL - 1)\n#define SCALE 9223372036854775807\n"
                     "#define PDL (-9223372036854775807)\n#line 1 \"c.cuh\"\n");
}
END_TEST

START_TEST(options_are_pinned)
{
    struct sample sample;
    sample_init(&sample);
    sample.spec.arch = CBN_ARCH(89, 0);
    struct cbn__spec_options options;
    cbn__spec_options(&sample.spec, &options);
    static const char *const expected[] = {"--gpu-architecture=sm_89", "--std=c++17", "-default-device",
                                           "--ptxas-options=-v"};
    ck_assert_int_eq(options.count, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(options.items[i], expected[i]);
}
END_TEST

START_TEST(a_description_says_what_it_is)
{
    struct sample sample;
    struct cbn_spec spec;
    sample_init(&sample);
    cbn__spec_describe(&sample.spec, &spec);
    ck_assert_str_eq(spec.text, "house/plain sm_90a SIZE=256 SCALE=-2 PDL=1");
    ck_assert_uint_eq(strlen(spec.key), 32);
    sample.template.source = NULL;
    cbn__spec_describe(&sample.spec, &spec);
    ck_assert_str_eq(spec.key, "");
    ck_assert_str_eq(spec.op, "house");
    ck_assert_str_eq(spec.kernel, "plain");
}
END_TEST

START_TEST(a_long_description_is_cut)
{
    struct sample sample;
    struct cbn_spec spec;
    sample_init(&sample);
    sample.template.param_count = CBN_PARAMS_MAX;
    for (int i = 0; i < CBN_PARAMS_MAX; i++) {
        sample.param_names[i] = sample_text("A_PARAMETER_OF_THIRTY_ONE_CHARS");
        sample.spec.params[i] = INT64_MIN;
    }
    cbn__spec_describe(&sample.spec, &spec);
    ck_assert_uint_eq(strlen(spec.text), CBN_SPEC_TEXT_BYTES - 1);
    ck_assert_uint_eq(spec.param_count, CBN_PARAMS_MAX);
    ck_assert_str_eq(spec.params[CBN_PARAMS_MAX - 1].name, "A_PARAMETER_OF_THIRTY_ONE_CHARS");
}
END_TEST

/* ---- jobs ---- */

static void make_job(struct sample *sample, struct cbn__job *job, struct cbn__job_texts *texts)
{
    *texts = (struct cbn__job_texts){.source = CBN__BUF_INIT, .title = CBN__BUF_INIT};
    ck_assert_int_eq(cbn__job_init(job, &sample->spec, texts, NULL), CBN_STATUS_OK);
}

START_TEST(a_built_in_gets_every_embedded_file)
{
    struct sample sample;
    struct cbn__job job;
    struct cbn__job_texts texts;
    sample_init(&sample);
    make_job(&sample, &job, &texts);
    ck_assert_int_eq(job.header_count, 0);
    cbn__job_texts_done(&texts);
    sample.template.digest = cbn__embedded_digest();
    make_job(&sample, &job, &texts);
    ck_assert_int_eq(job.header_count, (int)cbn__embedded_count);
    for (size_t i = 0; i < cbn__embedded_count; i++)
        ck_assert_str_eq(job.header_names[i], cbn__embedded_files[i].name);
    cbn__job_texts_done(&texts);
}
END_TEST

START_TEST(pdl_is_read_from_its_parameter)
{
    static const struct {
        const char *name;
        int64_t value;
        bool needs;
    } cases[] = {{"PDL", 1, true}, {"PDL", 0, false}, {"PDL_LIKE", 1, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sample sample;
        struct cbn__job job;
        struct cbn__job_texts texts;
        sample_init(&sample);
        sample.param_names[2] = sample_text(cases[i].name);
        sample.spec.params[2] = cases[i].value;
        make_job(&sample, &job, &texts);
        ck_assert_int_eq(job.needs_pdl_wait, cases[i].needs);
        cbn__job_texts_done(&texts);
    }
}
END_TEST

START_TEST(a_candidate_without_template_is_no_job)
{
    struct sample sample;
    struct cbn__job job;
    struct cbn_error err = {0};
    struct cbn__job_texts texts = {.source = CBN__BUF_INIT, .title = CBN__BUF_INIT};
    sample_init(&sample);
    sample.template.source = NULL;
    ck_assert_int_eq(cbn__job_init(&job, &sample.spec, &texts, &err), CBN_STATUS_UNSUPPORTED);
    ck_assert_str_eq(err.message, "house/plain sm_90a has no template");
    cbn__job_texts_done(&texts);
}
END_TEST

START_TEST(a_job_goes_round)
{
    struct sample sample;
    struct cbn__job job, decoded;
    struct cbn__job_texts texts;
    sample_init(&sample);
    sample_add_header(&sample, "a.cuh", "");
    sample_add_header(&sample, "b.cuh", "#define B\n");
    make_job(&sample, &job, &texts);
    job.nvrtc_env = "/x/libnvrtc.so";
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__job_encode(&job, &record);
    ck_assert(cbn__job_decode(cbn__buf_blob(&record), &decoded));
    ck_assert_str_eq(decoded.title, job.title);
    ck_assert_str_eq(decoded.source, job.source);
    ck_assert_str_eq(decoded.source_name, "sample.cuh");
    ck_assert_uint_eq(decoded.capability, 90);
    ck_assert(decoded.needs_pdl_wait);
    ck_assert_ptr_null(decoded.nvrtc_path);
    ck_assert_str_eq(decoded.nvrtc_env, "/x/libnvrtc.so");
    ck_assert_int_eq(decoded.option_count, job.option_count);
    for (int i = 0; i < job.option_count; i++)
        ck_assert_str_eq(decoded.options[i], job.options[i]);
    ck_assert_int_eq(decoded.header_count, 2);
    ck_assert_str_eq(decoded.header_names[1], "b.cuh");
    ck_assert_str_eq(decoded.header_texts[0], "");
    ck_assert_str_eq(decoded.header_texts[1], "#define B\n");
    cbn__job_texts_done(&texts);
}
END_TEST

/* Flips of one bit are taken or refused; ASan watches that nothing is read past the end. */
START_TEST(a_damaged_job_harms_nobody)
{
    struct sample sample;
    struct cbn__job job, decoded;
    struct cbn__job_texts texts;
    sample_init(&sample);
    sample_add_header(&sample, "a.cuh", "x");
    make_job(&sample, &job, &texts);
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__job_encode(&job, &record);
    for (size_t i = 0; i < record.size * 8; i++) {
        uint8_t *copy = malloc(record.size);
        memcpy(copy, record.data, record.size);
        copy[i / 8] ^= (uint8_t)(1 << i % 8);
        if (cbn__job_decode((struct cbn__blob){copy, record.size}, &decoded))
            ck_assert_uint_lt(strlen(decoded.title) + strlen(decoded.source) + strlen(decoded.source_name),
                              record.size);
        free(copy);
    }
    cbn__job_texts_done(&texts);
}
END_TEST

/* ---- outcomes and frames ---- */

START_TEST(an_outcome_goes_round)
{
    struct cbn__build build = {CBN__BUF_INIT, CBN__BUF_INIT, 13000, 12, 40, 1024, 8}, decoded = CBN__BUILD_INIT;
    cbn__buf_append_text(&build.log, "words");
    cbn__buf_append(&build.cubin,
                    "\x7f"
                    "ELF",
                    5);
    struct cbn_error err = {0};
    int32_t status = CBN_STATUS_INTERNAL;
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__outcome_encode(CBN_STATUS_OK, &err, &build, &record);
    ck_assert(cbn__outcome_decode(cbn__buf_blob(&record), &status, &err, &decoded));
    ck_assert_int_eq(status, CBN_STATUS_OK);
    ck_assert(cbn__blob_equal(cbn__buf_blob(&decoded.cubin), cbn__buf_blob(&build.cubin)));
    ck_assert_str_eq(cbn__buf_text(&decoded.log), "words");
    ck_assert_uint_eq(decoded.compiler_version, 13000);
    ck_assert_uint_eq(decoded.compile_ms, 12);
    ck_assert_uint_eq(decoded.registers, 40);
    ck_assert_uint_eq(decoded.shared_bytes, 1024);
    ck_assert_uint_eq(decoded.spill_bytes, 8);
    cbn__build_done(&build);
    cbn__build_done(&decoded);
}
END_TEST

START_TEST(a_failure_keeps_its_error)
{
    struct cbn__build build = CBN__BUILD_INIT, decoded = CBN__BUILD_INIT;
    struct cbn_error err = {0}, copy = {0};
    int32_t status = CBN_STATUS_OK;
    (void)cbn__error_set(&err, CBN_STATUS_NO_COMPILER, CBN_DOMAIN_NVRTC, -5, "no %s", "compiler");
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__outcome_encode(CBN_STATUS_NO_COMPILER, &err, &build, &record);
    ck_assert(cbn__outcome_decode(cbn__buf_blob(&record), &status, &copy, &decoded));
    ck_assert_int_eq(status, CBN_STATUS_NO_COMPILER);
    ck_assert_mem_eq(&copy, &err, sizeof(err));
    ck_assert(cbn__outcome_decode(cbn__buf_blob(&record), &status, NULL, &decoded));
    cbn__build_done(&decoded);
}
END_TEST

START_TEST(success_without_a_cubin_is_no_outcome)
{
    struct cbn__build build = CBN__BUILD_INIT, decoded = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    int32_t status = CBN_STATUS_OK;
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__outcome_encode(CBN_STATUS_OK, &err, &build, &record);
    ck_assert(!cbn__outcome_decode(cbn__buf_blob(&record), &status, &err, &decoded));
    cbn__build_done(&decoded);
}
END_TEST

START_TEST(frames_are_short_whole_or_foreign)
{
    CBN__BUF_AUTO frame = CBN__BUF_INIT;
    cbn__frame_begin(&frame);
    cbn__buf_append_text(&frame, "record");
    cbn__frame_end(&frame);
    struct cbn__blob record;
    ck_assert_uint_eq(frame.size, CBN__FRAME_HEAD_BYTES + 6);
    for (size_t size = 0; size < frame.size; size++)
        ck_assert_int_eq(cbn__frame_take((struct cbn__blob){frame.data, size}, &record), CBN__FRAME_SHORT);
    ck_assert_int_eq(cbn__frame_take(cbn__buf_blob(&frame), &record), CBN__FRAME_WHOLE);
    ck_assert(cbn__blob_equal(record, cbn__blob_text("record")));
    cbn__buf_append_text(&frame, "x");
    ck_assert_int_eq(cbn__frame_take(cbn__buf_blob(&frame), &record), CBN__FRAME_FOREIGN);
    ck_assert_int_eq(cbn__frame_take(cbn__blob_text("H"), &record), CBN__FRAME_FOREIGN);
    static const uint8_t huge[] = {'C', 'B', 'N', 'J', 'O', 'B', '1', '\n', 0xff, 0xff, 0xff, 0xff};
    ck_assert_int_eq(cbn__frame_take((struct cbn__blob){huge, sizeof(huge)}, &record), CBN__FRAME_FOREIGN);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("spec");
    tcase_add_test(tests, source_is_defines_line_and_text);
    tcase_add_test(tests, extreme_values_are_right_c);
    tcase_add_test(tests, options_are_pinned);
    tcase_add_test(tests, a_description_says_what_it_is);
    tcase_add_test(tests, a_long_description_is_cut);
    tcase_add_test(tests, a_built_in_gets_every_embedded_file);
    tcase_add_test(tests, pdl_is_read_from_its_parameter);
    tcase_add_test(tests, a_candidate_without_template_is_no_job);
    tcase_add_test(tests, a_job_goes_round);
    tcase_add_test(tests, a_damaged_job_harms_nobody);
    tcase_add_test(tests, an_outcome_goes_round);
    tcase_add_test(tests, a_failure_keeps_its_error);
    tcase_add_test(tests, success_without_a_cubin_is_no_outcome);
    tcase_add_test(tests, frames_are_short_whole_or_foreign);
    Suite *suite = suite_create("spec");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
