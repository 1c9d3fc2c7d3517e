/*
 * Broken and foreign configs: each is answered as tests/data/configs/answers.txt says. A new one is a file and a line.
 */
#include "unit/model_fixture.h"

#include <dirent.h>

#define CONFIGS DATA "configs/"
#define ANSWERS_MAX 128
#define ANSWERS_MIN 30
#define CUTS 40

struct answer {
    char file[64], status[32], words[128];
    int tp, ep;
};

static struct answer answers[ANSWERS_MAX];
static int answer_count;

static void read_answers(void)
{
    FILE *file = fopen(CONFIGS "answers.txt", "r");
    char line[320];
    while (file && answer_count < ANSWERS_MAX && fgets(line, sizeof(line), file)) {
        struct answer *answer = &answers[answer_count];
        if (*line != '#' && sscanf(line, "%63s %d %d %31s %127[^\n]", answer->file, &answer->tp, &answer->ep,
                                   answer->status, answer->words) == 5)
            answer_count++;
        else if (*line != '#')
            answer->file[0] = '?', answer_count++; /* a line that does not parse fails as a file that is not there */
    }
    if (file)
        (void)fclose(file);
}

static struct cbn_model *load_file(const char *path, int tp, int ep)
{
    struct cbn_model_options options = CBN_MODEL_OPTIONS_INIT;
    struct cbn_model *model = NULL;
    options.tp = tp;
    options.ep = ep;
    memset(&error, 0, sizeof(error));
    int32_t status = cbn_model_load(path, &options, &model, &error);
    ck_assert_int_eq(status, error.status);
    ck_assert_int_eq(status == CBN_STATUS_OK, model != NULL);
    ck_assert_int_eq(status == CBN_STATUS_OK, error.message[0] == '\0');
    return model;
}

/* No shape is empty, and one that needs no kernel says why. */
static bool check_shapes(const struct cbn_model *model, const char *words)
{
    bool found = false;
    ck_assert_uint_gt(cbn_model_shape_count(model), 0);
    for (uint32_t i = 0; i < cbn_model_shape_count(model); i++) {
        const struct cbn_model_shape *shape = cbn_model_shape_get(model, i);
        ck_assert(shape->n > 0 && shape->k > 0 && shape->groups > 0);
        ck_assert_int_eq(shape->fp8 == 1, *shape->reason == '\0');
        found |= strstr(shape->reason, words) != NULL;
    }
    return found;
}

START_TEST(test_answer)
{
    const struct answer *answer = &answers[_i];
    char path[256], name[64];
    (void)snprintf(path, sizeof(path), CONFIGS "%s", answer->file);
    (void)snprintf(name, sizeof(name), "%s", answer->status);
    ck_assert_msg(access(path, R_OK) == 0, "no file %s", path);
    struct cbn_model *model = load_file(path, answer->tp, answer->ep);
    ck_assert_msg(strcmp(cbn_status_name(error.status), name) == 0, "%s: %s instead of %s: %s", answer->file,
                  cbn_status_name(error.status), name, error.message);
    bool found = model ? check_shapes(model, answer->words) : strstr(error.message, answer->words) != NULL;
    ck_assert_msg(found, "%s: \"%s\" is not in: %s", answer->file, answer->words, error.message);
    cbn_model_destroy(model);
}
END_TEST

START_TEST(test_every_config_has_an_answer)
{
    DIR *configs = opendir(CONFIGS);
    struct dirent *entry;
    int count = 0;
    ck_assert_ptr_nonnull(configs);
    while ((entry = readdir(configs))) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "answers.txt") == 0)
            continue;
        bool found = false;
        for (int i = 0; i < answer_count; i++)
            found |= strcmp(answers[i].file, entry->d_name) == 0;
        ck_assert_msg(found, "%s has no line in answers.txt", entry->d_name);
        count++;
    }
    (void)closedir(configs);
    ck_assert_int_eq(count, answer_count);
    ck_assert_int_ge(count, ANSWERS_MIN);
}
END_TEST

/* A file cut anywhere is no JSON any more: refused, whatever it was. */
START_TEST(test_cut_anywhere)
{
    char path[256];
    (void)snprintf(path, sizeof(path), CONFIGS "%s", answers[_i].file);
    json_t *config = json_load_file(path, 0, NULL);
    if (!config)
        return;
    char *text = json_dumps(config, 0);
    size_t length = strlen(text);
    for (size_t i = 1; i < CUTS; i++) {
        FILE *file = fopen(config_path, "w");
        ck_assert_ptr_nonnull(file);
        (void)fwrite(text, 1, length * i / CUTS, file);
        (void)fclose(file);
        ck_assert_ptr_null(load_file(config_path, 1, 0));
    }
    free(text);
    json_decref(config);
}
END_TEST

int main(void)
{
    read_answers();
    Suite *suite = suite_create("model_answers");
    TCase *tcase = make_case(suite, "answers");
    tcase_add_loop_test(tcase, test_answer, 0, answer_count);
    tcase_add_test(tcase, test_every_config_has_an_answer);
    tcase_add_loop_test(tcase, test_cut_anywhere, 0, answer_count);
    return run_suite(suite);
}
