/*
 * Manifests: what is taken, and that each refusal names the entry and the field.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cubinet/model.h>

static char folder[] = "/tmp/cubinet-manifest-XXXXXX";
static char path[64];
static struct cbn_error error;

static void set_up(void)
{
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/manifest.json", folder);
    memset(&error, 0, sizeof(error));
}

static void tear_down(void)
{
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static struct cbn_model *load(const char *text)
{
    struct cbn_model *model = NULL;
    write_text(text);
    int32_t status = cbn_manifest_load(path, &model, &error);
    ck_assert_msg(status == CBN_STATUS_OK, "%s", error.message);
    return model;
}

static void expect_refusal(const char *text, int32_t status, const char *words)
{
    struct cbn_model *model = NULL;
    write_text(text);
    ck_assert_int_eq(cbn_manifest_load(path, &model, &error), status);
    ck_assert_ptr_null(model);
    ck_assert_msg(strstr(error.message, words) != NULL, "\"%s\" is not in: %s", words, error.message);
}

START_TEST(test_every_field)
{
    struct cbn_model *model =
        load("{\"schema\": \"cubinet.manifest/1\", \"note\": 1, \"shapes\": ["
             "{\"op\": \"fp8_gemm\", \"layer\": \"a.b\", \"n\": 1, \"k\": 2147483647, \"later\": []},"
             "{\"op\": \"mine\", \"n\": 64, \"k\": 7, \"groups\": 256, \"fp8\": false, \"reason\": \"why\"},"
             "{\"op\": \"fp8_einsum\", \"layer\": null, \"n\": 64, \"k\": 7, \"groups\": null, \"fp8\": 1, \"reason\": "
             "\"none\"}]}");
    ck_assert_str_eq(cbn_model_name(model), "manifest");
    ck_assert_uint_eq(cbn_model_shape_count(model), 3);
    const struct cbn_model_shape *shape = cbn_model_shape_get(model, 0);
    ck_assert_uint_eq(shape->size, sizeof(*shape));
    ck_assert_str_eq(shape->op, "fp8_gemm");
    ck_assert_str_eq(shape->layer, "a.b");
    ck_assert_str_eq(shape->reason, "");
    ck_assert_int_eq(shape->n, 1);
    ck_assert_int_eq(shape->k, 2147483647);
    ck_assert_int_eq(shape->groups, 1);
    ck_assert_uint_eq(shape->fp8, 1);
    shape = cbn_model_shape_get(model, 1);
    ck_assert_str_eq(shape->op, "mine");
    ck_assert_str_eq(shape->layer, "");
    ck_assert_str_eq(shape->reason, "why");
    ck_assert_int_eq(shape->groups, 256);
    ck_assert_uint_eq(shape->fp8, 0);
    ck_assert_uint_eq(cbn_model_shape_get(model, 2)->fp8, 1);
    ck_assert_str_eq(cbn_model_shape_get(model, 2)->reason, "");
    cbn_model_destroy(model);
}
END_TEST

START_TEST(test_quantize_needs_no_n)
{
    struct cbn_model *model = load("{\"schema\": \"cubinet.manifest/1\", \"shapes\": ["
                                   "{\"op\": \"fp8_quantize\", \"k\": 7168}]}");
    ck_assert_int_eq(cbn_model_shape_get(model, 0)->n, 1);
    ck_assert_int_eq(cbn_model_shape_get(model, 0)->k, 7168);
    cbn_model_destroy(model);
    model = load("{\"schema\": \"cubinet.manifest/1\", \"shapes\": ["
                 "{\"op\": \"fp8_quantize\", \"n\": 1, \"k\": 7168, \"groups\": 4}]}");
    ck_assert_int_eq(cbn_model_shape_get(model, 0)->n, 1);
    ck_assert_int_eq(cbn_model_shape_get(model, 0)->groups, 4);
    cbn_model_destroy(model);
    expect_refusal("{\"schema\": \"cubinet.manifest/1\", \"shapes\": [{\"op\": \"fp8_quantize\", \"n\": 0, \"k\": 1}]}",
                   CBN_STATUS_INVALID, "shapes[0].n is 0");
    expect_refusal("{\"schema\": \"cubinet.manifest/1\", \"shapes\": [{\"op\": \"fp8_gemm\", \"k\": 1}]}",
                   CBN_STATUS_INVALID, "shapes[0].n is missing");
}
END_TEST

START_TEST(test_needless_groups_of_one)
{
    struct cbn_model *model = load("{\"schema\": \"cubinet.manifest/1\", \"shapes\": ["
                                   "{\"op\": \"fp8_gemm\", \"n\": 2, \"k\": 3, \"groups\": 1}]}");
    ck_assert_int_eq(cbn_model_shape_get(model, 0)->groups, 1);
    cbn_model_destroy(model);
}
END_TEST

START_TEST(test_left_out_without_a_reason)
{
    static const char *const fields[] = {"\"fp8\": false", "\"fp8\": 0, \"reason\": \"\"",
                                         "\"fp8\": false, \"reason\": null"};
    for (int i = 0; i < 3; i++) {
        char text[256];
        (void)snprintf(text, sizeof(text),
                       "{\"schema\": \"cubinet.manifest/1\", \"shapes\": [{\"op\": \"a\", \"n\": 1, \"k\": 1, %s}]}",
                       fields[i]);
        struct cbn_model *model = load(text);
        ck_assert_uint_eq(cbn_model_shape_get(model, 0)->fp8, 0);
        ck_assert_str_eq(cbn_model_shape_get(model, 0)->reason, "said so by the manifest");
        cbn_model_destroy(model);
    }
}
END_TEST

/* The first and last of each range of control characters, and their neighbours, which are none. */
START_TEST(test_control_characters)
{
    static const char *const controls[] = {"\\u0001", "\\u001f", "\\u007f", "\\u0080", "\\u009b",  "\\u009f",
                                           "\\u202a", "\\u202e", "\\u2066", "\\u2069", "\xc2\x85", "\xe2\x80\xae"};
    static const char *const others[] = {" ",       "~",       "\\u00a0", "\\u0180", "\\u2029",  "\\u202f",
                                         "\\u2065", "\\u206a", "\\u20aa", "\\u30ae", "\xc3\xa9", "\\ud83d\\ude00"};
    static const char *const form =
        "{\"schema\": \"cubinet.manifest/1\", \"shapes\": [{\"op\": \"a\", \"layer\": \"l%s\", \"n\": 1, \"k\": 1}]}";
    char text[256];
    for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
        (void)snprintf(text, sizeof(text), form, controls[i]);
        expect_refusal(text, CBN_STATUS_INVALID, "shapes[0].layer holds a control");
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        (void)snprintf(text, sizeof(text), form, others[i]);
        cbn_model_destroy(load(text));
    }
}
END_TEST

START_TEST(test_shapes_output_is_one_too)
{
    struct cbn_model *model = load("{\"schema\": \"cubinet.shapes/1\", \"shapes\": ["
                                   "{\"op\": \"fp8_gemm\", \"n\": 2, \"k\": 3}]}");
    ck_assert_uint_eq(cbn_model_shape_count(model), 1);
    cbn_model_destroy(model);
}
END_TEST

START_TEST(test_many_shapes)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs("{\"schema\": \"cubinet.manifest/1\", \"shapes\": [", file);
    for (int i = 1; i <= 5000; i++)
        (void)fprintf(file, "%s{\"op\":\"fp8_gemm\",\"layer\":\"l%d\",\"n\":%d,\"k\":128}", i > 1 ? "," : "", i, i);
    (void)fputs("]}", file);
    ck_assert_int_eq(fclose(file), 0);
    struct cbn_model *model = NULL;
    ck_assert_int_eq(cbn_manifest_load(path, &model, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(cbn_model_shape_count(model), 5000);
    ck_assert_int_eq(cbn_model_shape_get(model, 4999)->n, 5000);
    ck_assert_str_eq(cbn_model_shape_get(model, 4999)->layer, "l5000");
    cbn_model_destroy(model);
}
END_TEST

static const struct {
    const char *text;
    int32_t status;
    const char *words;
} bad_manifests[] = {
    {"[]", CBN_STATUS_INVALID, "holds an array"},
    {"{}", CBN_STATUS_INVALID, "schema is missing"},
    {"{\"schema\": 1}", CBN_STATUS_INVALID, "schema is an integer"},
    {"{\"schema\": \"cubinet.manifest/2\", \"shapes\": []}", CBN_STATUS_UNSUPPORTED, "\"cubinet.manifest/2\""},
    {"{\"schema\": \"cubinet.manifest/1\"}", CBN_STATUS_INVALID, "shapes is missing"},
    {"{\"schema\": \"cubinet.manifest/1\", \"shapes\": {}}", CBN_STATUS_INVALID, "shapes is an object"},
    {"{\"schema\": \"cubinet.manifest/1\", \"shapes\": []}", CBN_STATUS_INVALID, "shapes is empty"},
    {"{\"schema\": \"cubinet.manifest/1\", \"schema\": \"x\"}", CBN_STATUS_INVALID, "line 1"},
    {"", CBN_STATUS_INVALID, "is empty"},
};

START_TEST(test_bad_manifest)
{
    expect_refusal(bad_manifests[_i].text, bad_manifests[_i].status, bad_manifests[_i].words);
}
END_TEST

/* Each stands after one good entry, so that its index is 1. */
static const struct {
    const char *entry;
    int32_t status;
    const char *words;
} bad_entries[] = {
    {"7", CBN_STATUS_INVALID, "shapes[1] is an integer"},
    {"{}", CBN_STATUS_INVALID, "shapes[1].op is missing"},
    {"{\"op\": null, \"n\": 1, \"k\": 1}", CBN_STATUS_INVALID, "shapes[1].op is null"},
    {"{\"op\": \"\", \"n\": 1, \"k\": 1}", CBN_STATUS_INVALID, "shapes[1].op is empty"},
    {"{\"op\": 3, \"n\": 1, \"k\": 1}", CBN_STATUS_INVALID, "shapes[1].op is an integer"},
    {"{\"op\": \"a\\u001b\", \"n\": 1, \"k\": 1}", CBN_STATUS_INVALID, "shapes[1].op holds a control"},
    {"{\"op\": \"a\", \"layer\": [], \"n\": 1, \"k\": 1}", CBN_STATUS_INVALID, "shapes[1].layer is an array"},
    {"{\"op\": \"a\", \"layer\": \"b\\n\", \"n\": 1, \"k\": 1}", CBN_STATUS_INVALID, "shapes[1].layer holds a control"},
    {"{\"op\": \"a\", \"reason\": 1, \"n\": 1, \"k\": 1}", CBN_STATUS_INVALID, "shapes[1].reason is an integer"},
    {"{\"op\": \"a\", \"k\": 1}", CBN_STATUS_INVALID, "shapes[1].n is missing"},
    {"{\"op\": \"a\", \"n\": 0, \"k\": 1}", CBN_STATUS_INVALID, "shapes[1].n is 0"},
    {"{\"op\": \"a\", \"n\": 1, \"k\": -9223372036854775808}", CBN_STATUS_INVALID,
     "shapes[1].k is -9223372036854775808"},
    {"{\"op\": \"a\", \"n\": 1.0, \"k\": 1}", CBN_STATUS_INVALID, "shapes[1].n is a real number"},
    {"{\"op\": \"a\", \"n\": 2147483648, \"k\": 1}", CBN_STATUS_LIMIT, "shapes[1].n is 2147483648"},
    {"{\"op\": \"a\", \"n\": 1, \"k\": 1, \"groups\": 0}", CBN_STATUS_INVALID, "shapes[1].groups is 0"},
    {"{\"op\": \"a\", \"n\": 1, \"k\": 1, \"groups\": \"2\"}", CBN_STATUS_INVALID, "shapes[1].groups is a string"},
    {"{\"op\": \"fp8_gemm\", \"n\": 1, \"k\": 1, \"groups\": 3}", CBN_STATUS_INVALID,
     "shapes[1].groups is 3, but fp8_gemm has no groups"},
    {"{\"op\": \"fp8_quantize\", \"n\": 77, \"k\": 1}", CBN_STATUS_INVALID,
     "shapes[1].n is 77, but fp8_quantize has no n"},
    {"{\"op\": \"a\", \"n\": 1, \"k\": 1, \"fp8\": 2}", CBN_STATUS_INVALID, "shapes[1].fp8"},
    {"{\"op\": \"a\", \"n\": 1, \"k\": 1, \"fp8\": \"yes\"}", CBN_STATUS_INVALID, "shapes[1].fp8 is a string"},
};

START_TEST(test_bad_entry)
{
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "{\"schema\": \"cubinet.manifest/1\", \"shapes\": [{\"op\": \"a\", \"n\": 1, \"k\": 1}, %s]}",
                   bad_entries[_i].entry);
    expect_refusal(text, bad_entries[_i].status, bad_entries[_i].words);
}
END_TEST

START_TEST(test_long_name)
{
    char name[258], text[512];
    memset(name, 'x', sizeof(name) - 1);
    for (size_t length = 256; length <= 257; length++) {
        name[length] = '\0';
        (void)snprintf(text, sizeof(text),
                       "{\"schema\": \"cubinet.manifest/1\", \"shapes\": [{\"op\": \"%s\", \"n\": 1, \"k\": 1}]}",
                       name);
        if (length == 256)
            cbn_model_destroy(load(text));
        else
            expect_refusal(text, CBN_STATUS_LIMIT, "shapes[0].op is longer");
        name[length] = 'x';
    }
}
END_TEST

START_TEST(test_bad_arguments)
{
    struct cbn_model *model = NULL;
    ck_assert_int_eq(cbn_manifest_load(NULL, &model, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_manifest_load(path, NULL, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_manifest_load(path, &model, NULL), CBN_STATUS_IO);
    ck_assert_int_eq(cbn_manifest_load(folder, &model, &error), CBN_STATUS_IO);
    ck_assert_ptr_null(model);
}
END_TEST

#define COUNT(table) (int)(sizeof(table) / sizeof((table)[0]))

int main(void)
{
    Suite *suite = suite_create("manifest");
    TCase *tcase = tcase_create("manifest");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, test_every_field);
    tcase_add_test(tcase, test_quantize_needs_no_n);
    tcase_add_test(tcase, test_needless_groups_of_one);
    tcase_add_test(tcase, test_left_out_without_a_reason);
    tcase_add_test(tcase, test_control_characters);
    tcase_add_test(tcase, test_shapes_output_is_one_too);
    tcase_add_test(tcase, test_many_shapes);
    tcase_add_loop_test(tcase, test_bad_manifest, 0, COUNT(bad_manifests));
    tcase_add_loop_test(tcase, test_bad_entry, 0, COUNT(bad_entries));
    tcase_add_test(tcase, test_long_name);
    tcase_add_test(tcase, test_bad_arguments);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
