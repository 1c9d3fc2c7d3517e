/*
 * Shared by the tests of runtime/model: a temporary config.json, real configs to edit, and what a refusal must say.
 */
#ifndef CBN_TEST_MODEL_FIXTURE_H
#define CBN_TEST_MODEL_FIXTURE_H

#include <check.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cubinet/model.h>

#define DATA CBN_TEST_SOURCE_DIR "/tests/data/"
#define MODELS DATA "models/"

static char folder[] = "/tmp/cubinet-model-XXXXXX";
static char config_path[64];
static struct cbn_error error;

static inline void set_up(void)
{
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(config_path, sizeof(config_path), "%s/config.json", folder);
    memset(&error, 0, sizeof(error));
}

static inline void tear_down(void)
{
    (void)unlink(config_path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static inline json_t *read_model(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), MODELS "%s.json", name);
    json_t *config = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(config);
    return config;
}

/* Takes config. */
static inline struct cbn_model *load_config(json_t *config, int64_t tp, int64_t ep)
{
    struct cbn_model_options options = CBN_MODEL_OPTIONS_INIT;
    struct cbn_model *model = NULL;
    options.tp = tp;
    options.ep = ep;
    ck_assert_int_eq(json_dump_file(config, config_path, 0), 0);
    json_decref(config);
    int32_t status = cbn_model_load(config_path, &options, &model, &error);
    ck_assert_msg((status == CBN_STATUS_OK) == (model != NULL), "status %d with%s model", status, model ? "" : "out");
    ck_assert_int_eq(status, error.status);
    return model;
}

/* Takes config. */
static inline void expect_refusal(json_t *config, int64_t tp, int64_t ep, int32_t status, const char *words)
{
    ck_assert_ptr_null(load_config(config, tp, ep));
    ck_assert_msg(error.status == status, "%s instead of %s: %s", cbn_status_name(error.status),
                  cbn_status_name(status), error.message);
    ck_assert_msg(strstr(error.message, words) != NULL, "\"%s\" is not in: %s", words, error.message);
}

static inline const struct cbn_model_shape *find_shape(const struct cbn_model *model, const char *layer)
{
    const struct cbn_model_shape *found = NULL, *shape;
    for (uint32_t i = 0; (shape = cbn_model_shape_get(model, i)); i++)
        if (strcmp(shape->layer, layer) == 0) {
            ck_assert_msg(!found, "%s stands twice", layer);
            found = shape;
        }
    ck_assert_msg(found != NULL, "no layer %s", layer);
    return found;
}

static inline void expect_shape(const struct cbn_model *model, const char *layer, int64_t n, int64_t k, int64_t groups)
{
    const struct cbn_model_shape *shape = find_shape(model, layer);
    ck_assert_int_eq(shape->n, n);
    ck_assert_int_eq(shape->k, k);
    ck_assert_int_eq(shape->groups, groups);
}

#define COUNT(table) (int)(sizeof(table) / sizeof((table)[0]))

static inline TCase *make_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return tcase;
}

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
