/*
 * Records: one encoding, and no read past the end of a damaged one.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/record.h"

static void fill(struct cbn__buf *record)
{
    cbn__record_put_u32(record, 1, 0x01020304);
    cbn__record_put_text(record, 2, "text");
    cbn__record_put_u64(record, 3, 0x1112131415161718ull);
    cbn__record_put(record, 4, (struct cbn__blob){NULL, 0});
    cbn__record_put_u32(record, 4, 7);
}

START_TEST(bytes_are_pinned)
{
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__record_put_u32(&record, 0x0201, 0x01020304);
    cbn__record_put_text(&record, 0x0202, "ab");
    static const uint8_t expected[] = {1, 2, 4, 0, 0, 0, 4, 3, 2, 1, 2, 2, 2, 0, 0, 0, 'a', 'b'};
    ck_assert_uint_eq(record.size, sizeof(expected));
    ck_assert_mem_eq(record.data, expected, sizeof(expected));
}
END_TEST

START_TEST(what_was_put_is_found)
{
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    fill(&record);
    struct cbn__blob blob = cbn__buf_blob(&record), text;
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    ck_assert(cbn__record_well_formed(blob));
    ck_assert(cbn__record_find_u32(blob, 1, &u32));
    ck_assert_uint_eq(u32, 0x01020304);
    ck_assert(cbn__record_find(blob, 2, &text));
    ck_assert(cbn__blob_equal(text, cbn__blob_text("text")));
    ck_assert(cbn__record_find_u64(blob, 3, &u64));
    ck_assert_uint_eq(u64, 0x1112131415161718ull);
    ck_assert(!cbn__record_find(blob, 9, &text));
    ck_assert(!cbn__record_find_u64(blob, 1, &u64));
    ck_assert(!cbn__record_find_u32(blob, 4, &u32)); /* the first of that tag has no bytes */
}
END_TEST

START_TEST(fields_come_in_order_and_repeat)
{
    static const uint16_t tags[] = {1, 2, 3, 4, 4};
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    fill(&record);
    size_t offset = 0, count = 0;
    struct cbn__record_field field;
    bool malformed = true;
    while (cbn__record_next(cbn__buf_blob(&record), &offset, &field, &malformed)) {
        ck_assert_uint_lt(count, 5);
        ck_assert_uint_eq(field.tag, tags[count++]);
    }
    ck_assert(!malformed);
    ck_assert_uint_eq(count, 5);
    ck_assert_uint_eq(offset, record.size);
}
END_TEST

/* Only the ends of fields are ends of a record; every copy stands at the end of its allocation for ASan to see. */
START_TEST(every_cut_is_noticed)
{
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    fill(&record);
    size_t well_formed = 0;
    for (size_t size = 0; size < record.size; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, record.data, size);
        well_formed += cbn__record_well_formed((struct cbn__blob){copy, size});
        free(copy);
    }
    ck_assert_uint_eq(well_formed, 5); /* after 0, 1, 2, 3 and 4 fields */
}
END_TEST

START_TEST(a_huge_length_is_malformed)
{
    uint8_t bytes[] = {1, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3};
    size_t offset = 0;
    struct cbn__record_field field;
    bool malformed = false;
    ck_assert(!cbn__record_next((struct cbn__blob){bytes, sizeof(bytes)}, &offset, &field, &malformed));
    ck_assert(malformed);
    offset = sizeof(bytes) + 1;
    ck_assert(!cbn__record_next((struct cbn__blob){bytes, sizeof(bytes)}, &offset, &field, &malformed));
    ck_assert(malformed);
}
END_TEST

START_TEST(descending_tags_are_not_well_formed)
{
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__record_put_u32(&record, 2, 0);
    cbn__record_put_u32(&record, 1, 0);
    ck_assert(!cbn__record_well_formed(cbn__buf_blob(&record)));
}
END_TEST

START_TEST(integers_stand_at_any_address)
{
    uint8_t bytes[16];
    for (size_t at = 0; at < 8; at++) {
        cbn__store_u64(bytes + at, 0x8001020304050607ull);
        ck_assert_uint_eq(cbn__load_u64(bytes + at), 0x8001020304050607ull);
        cbn__store_u32(bytes + at, 0xfefdfcfb);
        ck_assert_uint_eq(cbn__load_u32(bytes + at), 0xfefdfcfb);
        ck_assert_uint_eq(bytes[at], 0xfb);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("record");
    tcase_add_test(tests, bytes_are_pinned);
    tcase_add_test(tests, what_was_put_is_found);
    tcase_add_test(tests, fields_come_in_order_and_repeat);
    tcase_add_test(tests, every_cut_is_noticed);
    tcase_add_test(tests, a_huge_length_is_malformed);
    tcase_add_test(tests, descending_tags_are_not_well_formed);
    tcase_add_test(tests, integers_stand_at_any_address);
    Suite *suite = suite_create("record");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
