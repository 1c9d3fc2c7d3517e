/*
 * The hash: pinned values (XXH3-128, seed 0, canonical bytes), spans against one span.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static void assert_hash(struct cbn__blob blob, const char *expected)
{
    struct cbn__hash hash = cbn__hash_blob(blob);
    char text[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(&hash, text);
    ck_assert_str_eq(text, expected);
}

/* The first is the algorithm's published value for no input, with seed 0. */
START_TEST(values_are_pinned)
{
    assert_hash((struct cbn__blob){NULL, 0}, "99aa06d3014798d86001c324468d497f");
    assert_hash(cbn__blob_text("cubinet"), "d74e0b0aafd003f19ed2ad25e0fdd241");
}
END_TEST

START_TEST(spans_hash_as_if_joined)
{
    char text[1000];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(i * 31);
    struct cbn__hash whole = cbn__hash_blob((struct cbn__blob){text, sizeof(text)});
    for (size_t cut = 0; cut <= sizeof(text); cut += 125) {
        const struct cbn__blob blobs[] = {{text, cut}, {NULL, 0}, {text + cut, sizeof(text) - cut}};
        struct cbn__hash parts = cbn__hash_blobs(blobs, 3);
        ck_assert(cbn__hash_equal(&whole, &parts));
    }
    text[999] ^= 1;
    struct cbn__hash other = cbn__hash_blob((struct cbn__blob){text, sizeof(text)});
    ck_assert(!cbn__hash_equal(&whole, &other));
}
END_TEST

START_TEST(format_keeps_leading_zeros)
{
    struct cbn__hash hash = {{0, 1, 0xab}};
    char text[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(&hash, text);
    ck_assert_str_eq(text, "0001ab00000000000000000000000000");
}
END_TEST

START_TEST(table_hash_differs_by_one_bit)
{
    ck_assert_uint_ne(cbn__hash_64(cbn__blob_text("a")), cbn__hash_64(cbn__blob_text("c")));
    ck_assert_uint_eq(cbn__hash_64(cbn__blob_text("a")), cbn__hash_64((struct cbn__blob){"ab", 1}));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("hash");
    tcase_add_test(tests, values_are_pinned);
    tcase_add_test(tests, spans_hash_as_if_joined);
    tcase_add_test(tests, format_keeps_leading_zeros);
    tcase_add_test(tests, table_hash_differs_by_one_bit);
    Suite *suite = suite_create("hash");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
