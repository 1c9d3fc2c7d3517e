/*
 * What a template may read: each way to bring in what its key does not hold, and the look-alikes that are none.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "jit/embedded.h"
#include "jit/inputs.h"
#include "unit/jit_sample.h"

static struct sample sample;

static bool look(const char *source, struct cbn__input *ret_input)
{
    sample_init(&sample);
    sample_add_header(&sample, "own/a.h", "#pragma once\n");
    sample_add_header(&sample, "b.h", "#include <own/a.h>\n");
    sample_set_source(&sample, source);
    return cbn__inputs_find_foreign(&sample.template, ret_input);
}

/* A source, the line and the words of what must be found. */
static const struct {
    const char *source;
    uint32_t line;
    const char *text, *why;
} foreign[] = {
    {"#include \"a.h\"\n", 1, "#include \"a.h\"", "names none"},
    {"#include \"./b.h\"\n", 1, "#include \"./b.h\"", "names none"},
    {"#include \"/etc/passwd\"\n", 1, "#include \"/etc/passwd\"", "names none"},
    {"#include <cuda_fp16.h>\n", 1, "#include <cuda_fp16.h>", "names none"},
    {"#include \"b.h", 1, "#include \"b.h", "names none"},
    {"#include <b.h\n>", 1, "#include <b.h", "names none"},
    {"int a;\n\n  #\tinclude /* b.h */ <c.h> // d\n", 3, "#\tinclude /* b.h */ <c.h>", "names none"},
    {"/* x\n */ # include <c.h>\n", 2, "# include <c.h>", "names none"},
    {"%:include \"c.h\"\n", 1, "%:include \"c.h\"", "names none"},
    {"#inc\\\nlude \"c\\\r\n.h\"\n", 1, "#include \"c.h\"", "names none"},
    {"\\\n#include \"c.h\"\n", 2, "#include \"c.h\"", "names none"},
    {"// \\ \n#if 0\n#include \"c.h\"\n#endif\n", 3, "#include \"c.h\"", "names none"},
    {"#define B \"b.h\"\n#include B\n", 2, "#include B", "literally"},
    {"#include", 1, "#include", "literally"},
    {"#include_next \"b.h\"\n", 1, "#include_next", "not given"},
    {"#import \"b.h\"\n", 1, "#import", "not given"},
    {"#embed \"b.h\"\n", 1, "#embed", "not given"},
    {"#if __has_include(<c.h>)\n", 1, "__has_include(<c.h>", "names none"},
    {"#if 1 && __has_include ( \"c.h\" )\n", 1, "__has_include ( \"c.h\"", "names none"},
    {"#if __has_include(B)\n", 1, "__has_include(B", "literally"},
    {"#define HAS __has_include\n", 1, "__has_include", "literally"},
    {"#if __has_include_next(\"b.h\")\n", 1, "__has_include_next", "not given"},
    {"#if __has_embed(\"b.h\")\n", 1, "__has_embed", "not given"},
    {"const char *t = \"\\\"\" __DATE__;\n", 1, "__DATE__", "time of the build"},
    {"int n = 1'000'0; char c = '\\''; char q = '\"';\nchar t[] = __TIME__;\n", 2, "__TIME__", "time of the build"},
    {"#define T __TIME\\\nSTAMP__\n", 1, "__TIMESTAMP__", "time of the build"},
    {"#error don't\n#include \"c.h\"\n", 2, "#include \"c.h\"", "names none"},
    {"auto r = R\"(\\)\" __DATE__;\n", 1, "__DATE__", "time of the build"},
    {"auto r = FOR\"(\" __DATE__ \")\";\n", 1, "__DATE__", "time of the build"},
    {"/* \" */ char t[] = __TIME__; /* \" */\n", 1, "__TIME__", "time of the build"},
};

START_TEST(what_the_key_does_not_hold_is_found)
{
    struct cbn__input input = {0};
    ck_assert_msg(look(foreign[_i].source, &input), "%s", foreign[_i].source);
    ck_assert_str_eq(input.text, foreign[_i].text);
    ck_assert_int_eq(input.header, -1);
    ck_assert_uint_eq(input.line, foreign[_i].line);
    ck_assert_msg(strstr(input.why, foreign[_i].why) != NULL, "%s: %s", input.text, input.why);
}
END_TEST

static const char *const fine[] = {
    "",
    "#",
    "#\n#include \"b.h\"\n#include <own/a.h>\n%: include /**/ \"own/a.h\" /* #include \"c.h\" */\n",
    "#inc\\\nlude \"b\\\n.h\"\n",
    "// #include \"c.h\"\n// \\\n#include \"c.h\"\n/* #include \"c.h\"\n#include \"c.h\"\n__DATE__ */\n",
    "const char *a = \"__DATE__\", *b = \"\\\\\\\"__TIME__\\\n#include <c.h>\";\n",
    "const char *a = R\"x(\n#include \"c.h\"\n)\" __TIME__ )x\";\n",
    "const char *a = u8R\"(\n#include \"c.h\"\n)\";\n",
    "#if __has_include(\"b.h\") && __has_include( <own/a.h> )\n#endif\n",
    "int include, import, MY__DATE__, __DATE__X, __has_includes; int m = a #include \"c.h\"\n;",
    "#define S(x) #x\n#pragma unroll 4\n#line 1 \"x.cu\"\n",
    "char a = '\"', b = '\\'', c = 'u'; int n = 0x1'0 + .5e+3f; /",
    "\\",
    "\"\\",
    "/*",
    "R\"x(",
};

START_TEST(what_is_given_or_only_looks_alike_is_taken)
{
    struct cbn__input input = {.line = 77};
    ck_assert_msg(!look(fine[_i], &input), "%s: %u: %s", fine[_i], input.line, input.text);
    ck_assert_uint_eq(input.line, 77);
}
END_TEST

START_TEST(the_header_is_told)
{
    struct cbn__input input;
    sample_init(&sample);
    sample_add_header(&sample, "a.h", "\n");
    sample_add_header(&sample, "b.h", "\n\n#include \"a.h\"\n#include \"c.h\"\n");
    ck_assert(cbn__inputs_find_foreign(&sample.template, &input));
    ck_assert_int_eq(input.header, 1);
    ck_assert_uint_eq(input.line, 4);
    ck_assert_str_eq(input.text, "#include \"c.h\"");
}
END_TEST

START_TEST(a_long_name_is_cut)
{
    char source[900] = "#include \"";
    struct cbn__input input;
    memset(source + 10, 'x', 700);
    ck_assert(look(source, &input));
    ck_assert_uint_eq(strlen(input.text), sizeof(input.text) - 1);
}
END_TEST

/* The built-in families are registered unseen; their templates must keep the rule all the same. */
START_TEST(the_embedded_templates_keep_the_rule)
{
    char **names = calloc(cbn__embedded_count, sizeof(*names)), **texts = calloc(cbn__embedded_count, sizeof(*texts));
    struct cbn__input input = {0};
    ck_assert(names && texts);
    for (size_t i = 0; i < cbn__embedded_count; i++) {
        names[i] = sample_text(cbn__embedded_files[i].name);
        texts[i] = sample_text(cbn__embedded_files[i].text);
    }
    struct cbn__template template = {.source = sample_text(""),
                                     .header_names = names,
                                     .header_texts = texts,
                                     .header_count = (uint32_t)cbn__embedded_count};
    ck_assert_msg(!cbn__inputs_find_foreign(&template, &input), "%s:%u: %s", names[input.header > 0 ? input.header : 0],
                  input.line, input.text);
    template.header_count = 1; /* without the others, an #include of one of them is found: the walk did look */
    template.header_texts = &texts[cbn__embedded_count - 1];
    ck_assert(cbn__inputs_find_foreign(&template, &input));
    free(names);
    free(texts);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inputs");
    TCase *tcase = tcase_create("inputs");
    tcase_add_loop_test(tcase, what_the_key_does_not_hold_is_found, 0, sizeof(foreign) / sizeof(foreign[0]));
    tcase_add_loop_test(tcase, what_is_given_or_only_looks_alike_is_taken, 0, sizeof(fine) / sizeof(fine[0]));
    tcase_add_test(tcase, the_header_is_told);
    tcase_add_test(tcase, a_long_name_is_cut);
    tcase_add_test(tcase, the_embedded_templates_keep_the_rule);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
