/*
 * Byte buffers and blobs.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

START_TEST(appends_grow_and_keep_every_byte)
{
    CBN__BUF_AUTO buf = CBN__BUF_INIT;
    for (int i = 0; i < 10000; i++) {
        uint8_t byte = (uint8_t)(i * 7);
        cbn__buf_append(&buf, &byte, 1);
    }
    ck_assert(!buf.failed);
    ck_assert_uint_eq(buf.size, 10000);
    for (int i = 0; i < 10000; i++)
        ck_assert_uint_eq(buf.data[i], (uint8_t)(i * 7));
}
END_TEST

START_TEST(text_is_terminated_and_not_counted)
{
    CBN__BUF_AUTO buf = CBN__BUF_INIT;
    ck_assert_str_eq(cbn__buf_text(&buf), "");
    ck_assert_uint_eq(buf.size, 0);
    cbn__buf_append_text(&buf, "ab");
    cbn__buf_append_format(&buf, "-%d-%s", 42, "c");
    ck_assert_str_eq(cbn__buf_text(&buf), "ab-42-c");
    ck_assert_uint_eq(buf.size, 7);
    cbn__buf_append_text(&buf, "d");
    ck_assert_str_eq(cbn__buf_text(&buf), "ab-42-cd");
}
END_TEST

START_TEST(a_format_longer_than_the_first_allocation_is_whole)
{
    char text[2001];
    memset(text, 'x', 2000);
    text[2000] = 0;
    CBN__BUF_AUTO buf = CBN__BUF_INIT;
    cbn__buf_append_format(&buf, "<%s>", text);
    ck_assert_uint_eq(buf.size, 2002);
    ck_assert_int_eq(buf.data[0], '<');
    ck_assert_int_eq(buf.data[2001], '>');
}
END_TEST

START_TEST(nothing_appended_allocates_nothing)
{
    CBN__BUF_AUTO buf = CBN__BUF_INIT;
    cbn__buf_append(&buf, NULL, 0);
    ck_assert_ptr_null(buf.data);
    ck_assert(!buf.failed);
}
END_TEST

START_TEST(an_impossible_size_fails_once_and_for_good)
{
    CBN__BUF_AUTO buf = CBN__BUF_INIT;
    cbn__buf_append_text(&buf, "ab");
    ck_assert(!cbn__buf_reserve(&buf, SIZE_MAX));
    ck_assert(buf.failed);
    cbn__buf_append_text(&buf, "cd");
    ck_assert_uint_eq(buf.size, 2);
    ck_assert_str_eq(cbn__buf_text(&buf), "");
    cbn__buf_done(&buf);
    ck_assert(!buf.failed);
}
END_TEST

START_TEST(blobs_are_equal_by_bytes)
{
    ck_assert(cbn__blob_equal(cbn__blob_text("abc"), (struct cbn__blob){"abcd", 3}));
    ck_assert(!cbn__blob_equal(cbn__blob_text("abc"), cbn__blob_text("abd")));
    ck_assert(!cbn__blob_equal(cbn__blob_text("abc"), cbn__blob_text("ab")));
    ck_assert(cbn__blob_equal((struct cbn__blob){NULL, 0}, cbn__blob_text("")));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("buf");
    tcase_add_test(tests, appends_grow_and_keep_every_byte);
    tcase_add_test(tests, text_is_terminated_and_not_counted);
    tcase_add_test(tests, a_format_longer_than_the_first_allocation_is_whole);
    tcase_add_test(tests, nothing_appended_allocates_nothing);
    tcase_add_test(tests, an_impossible_size_fails_once_and_for_good);
    tcase_add_test(tests, blobs_are_equal_by_bytes);
    Suite *suite = suite_create("buf");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
