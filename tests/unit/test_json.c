/*
 * Files that are no config at all: broken text, bounds, things that are not files.
 */
#include "unit/model_fixture.h"

#include <errno.h>
#include <sys/stat.h>

static void write_bytes(const void *bytes, size_t size)
{
    FILE *file = fopen(config_path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static void write_text(const char *text)
{
    write_bytes(text, strlen(text));
}

static void expect_file_refusal(int32_t status, const char *words)
{
    struct cbn_model *model = NULL;
    ck_assert_int_eq(cbn_model_load(config_path, NULL, &model, &error), status);
    ck_assert_ptr_null(model);
    ck_assert_msg(strstr(error.message, words) != NULL, "\"%s\" is not in: %s", words, error.message);
}

static const struct {
    const char *text;
    int32_t status;
    const char *words;
} bad_texts[] = {
    {"", CBN_STATUS_INVALID, "is empty"},
    {"   \n", CBN_STATUS_INVALID, "line 2 column 0"},
    {"PK\003\004", CBN_STATUS_INVALID, "line 1"},
    {"[]", CBN_STATUS_INVALID, "holds an array"},
    {"{\n\"hidden_size\": 1,\n\"hidden_size\": 2}", CBN_STATUS_INVALID, "line 3"},
    {"{\"a\": 1", CBN_STATUS_INVALID, "line 1"},
    {"{\"a\": 1}\n}", CBN_STATUS_INVALID, "line 2"},
    {"{\"a\": NaN}", CBN_STATUS_INVALID, "line 1 column 9"},
    {"{\"a\": Infinity}", CBN_STATUS_INVALID, "line 1"},
    {"{\"a\":\n 99999999999999999999}", CBN_STATUS_LIMIT, "line 2"},
    {"{\"a\": 1e999}", CBN_STATUS_LIMIT, "line 1"},
    {"{\"a\": \"\xff\"}", CBN_STATUS_INVALID, "line 1"},
    {"{'a': 1}", CBN_STATUS_INVALID, "line 1"},
    {"{\"a\": 1,}", CBN_STATUS_INVALID, "line 1"},
    {"// remark\n{}", CBN_STATUS_INVALID, "line 1"},
};

START_TEST(test_bad_text)
{
    write_text(bad_texts[_i].text);
    expect_file_refusal(bad_texts[_i].status, bad_texts[_i].words);
}
END_TEST

static void write_nested(int depth)
{
    char text[512] = "{\"architectures\":";
    size_t at = strlen(text);
    for (int i = 1; i < depth; i++)
        text[at++] = '[';
    for (int i = 1; i < depth; i++)
        text[at++] = ']';
    text[at++] = '}';
    write_bytes(text, at);
}

START_TEST(test_depth)
{
    write_nested(64);
    expect_file_refusal(CBN_STATUS_INVALID, "architectures[0] is an array");
    write_nested(65);
    expect_file_refusal(CBN_STATUS_LIMIT, "nested deeper than 64");
    /* Brackets within a string are no depth, whatever escapes stand before them. */
    write_text(
        "{\"architectures\": [\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\\\"]}");
    expect_file_refusal(CBN_STATUS_UNSUPPORTED, "architectures names");
}
END_TEST

static void write_padded(size_t size)
{
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    memset(text, ' ', size);
    memcpy(text, "[]", 2);
    write_bytes(text, size);
    free(text);
}

START_TEST(test_size)
{
    write_padded((size_t)16 << 20);
    expect_file_refusal(CBN_STATUS_INVALID, "holds an array");
    write_padded(((size_t)16 << 20) + 1);
    expect_file_refusal(CBN_STATUS_LIMIT, "larger than 16 MiB");
}
END_TEST

START_TEST(test_number_of_values)
{
    size_t size = 2000003;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    text[0] = '[';
    for (size_t i = 1; i < size - 1; i += 2)
        memcpy(text + i, "1,", 2);
    text[size - 2] = '1';
    text[size - 1] = ']';
    write_bytes(text, size);
    free(text);
    expect_file_refusal(CBN_STATUS_LIMIT, "more than 1000000 values");
}
END_TEST

START_TEST(test_embedded_nul)
{
    write_bytes("{\"architectures\": [\"Qwen3\0ForCausalLM\"]}", 41);
    expect_file_refusal(CBN_STATUS_INVALID, "line 1");
    write_text("{\"architectures\": [\"Qwen3ForCausalLM\\u0000\"]}");
    expect_file_refusal(CBN_STATUS_INVALID, "line 1");
}
END_TEST

START_TEST(test_not_a_file)
{
    struct cbn_model *model = NULL;
    ck_assert_int_eq(cbn_model_load(folder, NULL, &model, &error), CBN_STATUS_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "is a folder"));
    ck_assert_uint_eq(error.domain, CBN_DOMAIN_OS);
    ck_assert_int_eq(error.native_code, EISDIR);
    ck_assert_int_eq(cbn_model_load(config_path, NULL, &model, &error), CBN_STATUS_IO);
    ck_assert_int_eq(error.native_code, ENOENT);
    ck_assert_ptr_nonnull(strstr(error.message, config_path));
    ck_assert_int_eq(mkfifo(config_path, 0600), 0);
    ck_assert_int_eq(cbn_model_load(config_path, NULL, &model, &error), CBN_STATUS_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "not a regular file"));
    ck_assert_ptr_null(model);
}
END_TEST

/* Every prefix of a real config is refused, none crashes. */
START_TEST(test_every_truncation)
{
    char text[2048];
    FILE *file = fopen(MODELS "Qwen3-32B-FP8.json", "r");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(text, 1, sizeof(text), file);
    (void)fclose(file);
    ck_assert_uint_gt(size, 800);
    ck_assert_uint_lt(size, sizeof(text));
    for (size_t i = 0; i < size; i++) {
        struct cbn_model *model = NULL;
        write_bytes(text, i);
        ck_assert_int_eq(cbn_model_load(config_path, NULL, &model, NULL), CBN_STATUS_INVALID);
        ck_assert_ptr_null(model);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json");
    TCase *tcase = make_case(suite, "json");
    tcase_add_loop_test(tcase, test_bad_text, 0, COUNT(bad_texts));
    tcase_add_test(tcase, test_depth);
    tcase_add_test(tcase, test_size);
    tcase_add_test(tcase, test_number_of_values);
    tcase_add_test(tcase, test_embedded_nul);
    tcase_add_test(tcase, test_not_a_file);
    tcase_add_test(tcase, test_every_truncation);
    return run_suite(suite);
}
