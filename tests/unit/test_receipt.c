/*
 * The receipt against the library that is built: every specialisation of the default profile has a case in it, or
 * tests/gpu/pending.json says that files wait for a device. And the suite's shapes against the models' configs.
 */
#include <check.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cubinet/cubinet.h>

#include "gpu/model_shapes.h"

#define RECEIPT CBN_TEST_SOURCE_DIR "/tests/gpu/receipt.json"
#define PENDING CBN_TEST_SOURCE_DIR "/tests/gpu/pending.json"

static struct cbn_runtime *create_runtime(void)
{
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_runtime *runtime = NULL;
    options.flags = CBN_RUNTIME_MEMORY_ONLY | CBN_RUNTIME_IGNORE_ENV;
    ck_assert_int_eq(cbn_runtime_create(&options, &runtime, NULL), CBN_STATUS_OK);
    return runtime;
}

static size_t pending_count(void)
{
    json_t *root = json_load_file(PENDING, 0, NULL);
    size_t count = json_array_size(json_object_get(root, "pending"));
    json_decref(root);
    return count;
}

struct lookup {
    const json_t *texts;
    int enumerated, missing;
};

static bool holds(const json_t *texts, const char *text)
{
    for (size_t i = 0; i < json_array_size(texts); i++) {
        if (strcmp(json_string_value(json_array_get(texts, i)), text) == 0) {
            return true;
        }
    }
    return false;
}

static int look_up(void *user, const struct cbn_spec *spec)
{
    struct lookup *lookup = user;
    lookup->enumerated++;
    if (!holds(lookup->texts, spec->text)) {
        lookup->missing++;
        if (lookup->texts) {
            fprintf(stderr, "receipt: NO CASE for %s\n", spec->text);
        }
    }
    return 0;
}

static struct lookup look_up_all(const json_t *texts)
{
    static const char *const ops[] = {"fp8_gemm", "fp8_quantize"};
    struct lookup lookup = {texts, 0, 0};
    struct cbn_runtime *runtime = create_runtime();
    for (int i = 0; i < 2; i++) {
        struct cbn_query query = CBN_QUERY_INIT;
        int before = lookup.enumerated;
        query.op = ops[i];
        query.arch = CBN_ARCH(90, 'a');
        ck_assert_int_eq(cbn_enumerate(runtime, &query, look_up, &lookup, NULL), CBN_STATUS_OK);
        ck_assert_int_gt(lookup.enumerated, before);
    }
    cbn_runtime_destroy(runtime);
    return lookup;
}

START_TEST(test_every_specialisation_has_a_case)
{
    json_t *receipt = json_load_file(RECEIPT, 0, NULL);
    struct lookup lookup = look_up_all(json_object_get(receipt, "specialisations"));
    if (lookup.missing) {
        fprintf(stderr, "receipt: %d of %d specialisations WAIT FOR A DEVICE\n", lookup.missing, lookup.enumerated);
        ck_assert_msg(pending_count() > 0, "%d specialisations have no case in %s", lookup.missing, RECEIPT);
    }
    json_decref(receipt);
}
END_TEST

/* The look-up itself: no receipt misses them all. */
START_TEST(test_a_missing_case_is_seen)
{
    struct lookup lookup = look_up_all(NULL);
    ck_assert_int_gt(lookup.enumerated, 0);
    ck_assert_int_eq(lookup.missing, lookup.enumerated);
}
END_TEST

/* The tolerances of the acceptance list; the end-to-end case measures quantisation itself. */
static double bound_of(const char *name)
{
    return strcmp(name, "gemm/end-to-end") == 0 ? 0.06 : 4e-3;
}

START_TEST(test_receipt_holds_no_failure)
{
    json_t *receipt = json_load_file(RECEIPT, 0, NULL), *item;
    size_t i;
    if (!receipt) {
        fprintf(stderr, "receipt: there is none yet; pending.json lists %zu files\n", pending_count());
        ck_assert_uint_gt(pending_count(), 0);
        return;
    }
    ck_assert_str_eq(json_string_value(json_object_get(receipt, "schema")), "cubinet.gpu-receipt/1");
    ck_assert_str_eq(json_string_value(json_object_get(receipt, "arch")), "sm_90a");
    const json_t *cases = json_object_get(receipt, "cases");
    ck_assert_uint_ge(json_array_size(cases), 17);
    json_array_foreach((json_t *)(uintptr_t)cases, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        ck_assert_msg(json_integer_value(json_object_get(item, "count")) > 0, "%s checked nothing", name);
        ck_assert_msg(json_integer_value(json_object_get(item, "mismatches")) == 0, "%s has mismatches", name);
        ck_assert_msg(json_real_value(json_object_get(item, "max_error")) <= bound_of(name), "%s errs", name);
    }
    json_decref(receipt);
}
END_TEST

static const struct {
    int64_t n, k;
} shapes[] = {
#define X(n, k) {n, k},
    MODEL_SHAPE_MAP(X)
#undef X
};
#define SHAPE_COUNT (sizeof(shapes) / sizeof(shapes[0]))

static void expect_shapes(const char *config, int64_t tp, bool *seen)
{
    struct cbn_model_options options = CBN_MODEL_OPTIONS_INIT;
    struct cbn_model *model = NULL;
    struct cbn_error err = {0};
    char path[512];
    options.tp = tp;
    (void)snprintf(path, sizeof(path), "%s/tests/data/models/%s", CBN_TEST_SOURCE_DIR, config);
    ck_assert_msg(cbn_model_load(path, &options, &model, &err) == CBN_STATUS_OK, "%s: %s", path, err.message);
    for (uint32_t i = 0; i < cbn_model_shape_count(model); i++) {
        const struct cbn_model_shape *shape = cbn_model_shape_get(model, i);
        bool found = !shape->fp8 || strcmp(shape->op, "fp8_gemm") != 0;
        for (size_t j = 0; j < SHAPE_COUNT; j++) {
            bool same = shapes[j].n == shape->n && shapes[j].k == shape->k;
            found = found || same;
            seen[j] = seen[j] || same;
        }
        ck_assert_msg(found, "%s tp %d: %s N=%d K=%d is not in tests/gpu/model_shapes.h", config, (int)tp, shape->layer,
                      (int)shape->n, (int)shape->k);
    }
    cbn_model_destroy(model);
}

START_TEST(test_suite_runs_every_model_shape)
{
    static const char *const configs[] = {"DeepSeek-V3.json", "DeepSeek-V4-Flash-FP8.json", "Qwen3-32B-FP8.json"};
    static const int64_t tps[] = {1, 4, 8};
    bool seen[SHAPE_COUNT] = {false};
    for (int i = 0; i < 9; i++) {
        expect_shapes(configs[i / 3], tps[i % 3], seen);
    }
    for (size_t j = 0; j < SHAPE_COUNT; j++) {
        ck_assert_msg(seen[j], "N=%d K=%d belongs to no model", (int)shapes[j].n, (int)shapes[j].k);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("receipt");
    TCase *tcase = tcase_create("receipt");
    tcase_add_test(tcase, test_every_specialisation_has_a_case);
    tcase_add_test(tcase, test_a_missing_case_is_seen);
    tcase_add_test(tcase, test_receipt_holds_no_failure);
    tcase_add_test(tcase, test_suite_runs_every_model_shape);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
