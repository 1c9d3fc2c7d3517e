/*
 * Embedded templates: byte for byte the files of templates/, and the digest over them.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "jit/digest.h"
#include "jit/embedded.h"

static void read_file(const char *name, struct cbn__buf *ret_bytes)
{
    char path[4096], bytes[4096];
    (void)snprintf(path, sizeof(path), "%s/templates/%s", CBN_TEST_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    for (size_t count = 0; (count = fread(bytes, 1, sizeof(bytes), file)) > 0;)
        cbn__buf_append(ret_bytes, bytes, count);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(texts_are_the_files)
{
    ck_assert_uint_ge(cbn__embedded_count, 2);
    for (size_t i = 0; i < cbn__embedded_count; i++) {
        CBN__BUF_AUTO bytes = CBN__BUF_INIT;
        read_file(cbn__embedded_files[i].name, &bytes);
        ck_assert_uint_eq(bytes.size, cbn__embedded_files[i].size);
        ck_assert_mem_eq(bytes.data, cbn__embedded_files[i].text, bytes.size);
        ck_assert_int_eq(cbn__embedded_files[i].text[bytes.size], 0);
        ck_assert_uint_eq(strlen(cbn__embedded_files[i].text), bytes.size);
    }
}
END_TEST

START_TEST(names_ascend_and_are_found)
{
    for (size_t i = 0; i < cbn__embedded_count; i++) {
        ck_assert_ptr_eq(cbn__embedded_find(cbn__embedded_files[i].name), &cbn__embedded_files[i]);
        if (i)
            ck_assert_int_lt(strcmp(cbn__embedded_files[i - 1].name, cbn__embedded_files[i].name), 0);
    }
    ck_assert_ptr_null(cbn__embedded_find("fp8_gemm"));
    ck_assert_ptr_null(cbn__embedded_find(""));
}
END_TEST

/* The digest of the files as they stand on disk. */
START_TEST(digest_covers_every_file)
{
    struct cbn__hash expected = CBN__DIGEST_EMPTY;
    struct cbn__hash digest = cbn__embedded_digest();
    for (size_t i = 0; i < cbn__embedded_count; i++) {
        CBN__BUF_AUTO bytes = CBN__BUF_INIT;
        read_file(cbn__embedded_files[i].name, &bytes);
        ck_assert(!cbn__hash_equal(&digest, &expected));
        expected = cbn__digest_file(&expected, cbn__embedded_files[i].name, cbn__buf_blob(&bytes));
    }
    ck_assert(cbn__hash_equal(&digest, &expected));
}
END_TEST

static struct cbn__hash digest_of(const char *name, const char *text, const char *next_name, const char *next_text)
{
    struct cbn__hash digest = CBN__DIGEST_EMPTY;
    digest = cbn__digest_file(&digest, name, cbn__blob_text(text));
    return cbn__digest_file(&digest, next_name, cbn__blob_text(next_text));
}

/* The same bytes, cut elsewhere, are another digest. */
START_TEST(names_and_texts_do_not_run_together)
{
    const struct cbn__hash digests[] = {
        digest_of("a", "bc", "d", "e"), digest_of("ab", "c", "d", "e"), digest_of("a", "b", "cd", "e"),
        digest_of("a", "bc", "", "de"), digest_of("d", "e", "a", "bc"), digest_of("a", "bcde", "", ""),
    };
    size_t count = sizeof(digests) / sizeof(digests[0]);
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            ck_assert(!cbn__hash_equal(&digests[i], &digests[k]));
}
END_TEST

START_TEST(a_file_name_loses_its_folders)
{
    ck_assert_str_eq(cbn__file_name("/a/b/c.cuh"), "c.cuh");
    ck_assert_str_eq(cbn__file_name("c.cuh"), "c.cuh");
    ck_assert_str_eq(cbn__file_name("a/"), "");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("embedded");
    tcase_add_test(tests, texts_are_the_files);
    tcase_add_test(tests, names_ascend_and_are_found);
    tcase_add_test(tests, digest_covers_every_file);
    tcase_add_test(tests, names_and_texts_do_not_run_together);
    tcase_add_test(tests, a_file_name_loses_its_folders);
    Suite *suite = suite_create("embedded");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
