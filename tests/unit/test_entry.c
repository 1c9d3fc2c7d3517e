/*
 * Entries as bytes: round trip, and no changed byte goes unseen.
 */
#include "cache_fixture.h"

static struct cbn__store_key make_key(const struct test_key *record, uint32_t major)
{
    struct cbn__hash hash = cbn__hash_blob(RECORD(*record));
    return cbn__entry_key(&hash, major);
}

static void encode(struct cbn__buf *value, const struct cbn__store_key *key, struct cbn__blob record, size_t size,
                   const char *log)
{
    uint8_t *payload = malloc(size + 1);
    struct cbn__entry_facts facts = facts_of(13001);
    fill_payload(payload, size, 7);
    cbn__entry_encode(key, record, (struct cbn__blob){payload, size}, cbn__blob_text(log), &facts, value);
    ck_assert(!value->failed);
    free(payload);
}

/* Decodes a copy of bytes, so that reads behind it are seen by a sanitizer. */
static const char *decode_copy(const struct cbn__store_key *key, const uint8_t *bytes, size_t size)
{
    struct cbn__entry entry = {.bytes = CBN__BUF_INIT};
    entry.bytes.data = malloc(size ? size : 1);
    memcpy(entry.bytes.data, bytes, size);
    entry.bytes.size = entry.bytes.capacity = size;
    const char *problem = cbn__entry_decode(key, &entry);
    cbn__entry_done(&entry);
    return problem;
}

START_TEST(round_trip_at_every_alignment)
{
    struct test_key record = key_of(1);
    struct cbn__store_key key = make_key(&record, 13);
    for (size_t log_bytes = 0; log_bytes < 40; log_bytes++) {
        char log[41] = {0};
        memset(log, 'l', log_bytes);
        struct cbn__entry entry = {.bytes = CBN__BUF_INIT};
        encode(&entry.bytes, &key, RECORD(record), 100 + log_bytes, log);
        ck_assert_ptr_null(cbn__entry_decode(&key, &entry));
        ck_assert(payload_is(&entry, 100 + log_bytes, 7));
        ck_assert(cbn__blob_equal(entry.key_record, RECORD(record)));
        ck_assert(cbn__blob_equal(entry.log, cbn__blob_text(log)));
        struct cbn__entry_facts facts = facts_of(13001);
        ck_assert(same_facts(&entry.facts, &facts));
        cbn__entry_done(&entry);
    }
}
END_TEST

START_TEST(empty_payload)
{
    struct test_key record = key_of(1);
    struct cbn__store_key key = make_key(&record, 13);
    struct cbn__entry entry = {.bytes = CBN__BUF_INIT};
    encode(&entry.bytes, &key, RECORD(record), 0, "");
    ck_assert_ptr_null(cbn__entry_decode(&key, &entry));
    ck_assert_uint_eq(entry.payload.size, 0);
    cbn__entry_done(&entry);
}
END_TEST

START_TEST(every_bit_of_every_byte_counts)
{
    struct test_key record = key_of(1);
    struct cbn__store_key key = make_key(&record, 13);
    CBN__BUF_AUTO value = CBN__BUF_INIT;
    encode(&value, &key, RECORD(record), 333, "a log");
    for (size_t i = 0; i < value.size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            value.data[i] = (uint8_t)(value.data[i] ^ 1u << bit);
            ck_assert_msg(decode_copy(&key, value.data, value.size) != NULL, "byte %zu bit %u", i, bit);
            value.data[i] = (uint8_t)(value.data[i] ^ 1u << bit);
        }
    }
    ck_assert_ptr_null(decode_copy(&key, value.data, value.size));
}
END_TEST

START_TEST(every_length_counts)
{
    struct test_key record = key_of(1);
    struct cbn__store_key key = make_key(&record, 13);
    CBN__BUF_AUTO value = CBN__BUF_INIT;
    encode(&value, &key, RECORD(record), 200, "a log");
    for (size_t size = 0; size < value.size; size++)
        ck_assert_msg(decode_copy(&key, value.data, size) != NULL, "cut to %zu", size);
    cbn__buf_append(&value, "", 1);
    ck_assert_ptr_nonnull(decode_copy(&key, value.data, value.size));
}
END_TEST

START_TEST(bound_to_its_key)
{
    struct test_key record = key_of(1), other = key_of(2);
    struct cbn__store_key key = make_key(&record, 13);
    CBN__BUF_AUTO value = CBN__BUF_INIT;
    encode(&value, &key, RECORD(record), 200, "");
    struct cbn__store_key elsewhere = make_key(&other, 13), older = make_key(&record, 12);
    ck_assert_str_eq(decode_copy(&elsewhere, value.data, value.size), "the seal does not match");
    ck_assert_str_eq(decode_copy(&older, value.data, value.size), "the seal does not match");
    /* Sealed for major 12, but its facts say 13. */
    CBN__BUF_AUTO wrong = CBN__BUF_INIT;
    encode(&wrong, &older, RECORD(record), 200, "");
    ck_assert_str_eq(decode_copy(&older, wrong.data, wrong.size), "the compiler recorded is not that of the key");
}
END_TEST

START_TEST(key_layout)
{
    struct test_key record = key_of(1);
    struct cbn__hash hash = cbn__hash_blob(RECORD(record));
    struct cbn__store_key key = cbn__entry_key(&hash, 0x1234);
    ck_assert_uint_eq(key.bytes[16], 0x12);
    ck_assert_uint_eq(key.bytes[17], 0x34);
    ck_assert_uint_eq(cbn__entry_key_major(&key), 0x1234);
    struct cbn__hash back = cbn__entry_key_hash(&key);
    ck_assert(cbn__hash_equal(&hash, &back));
}
END_TEST

START_TEST(usage_is_sealed)
{
    struct test_key record = key_of(1), other = key_of(2);
    struct cbn__store_key key = make_key(&record, 13), elsewhere = make_key(&other, 13);
    uint8_t bytes[CBN__USAGE_BYTES];
    const struct cbn__usage_record written = {.recency_us = 1700000001000007, .hits = 42, .pinned = true};
    struct cbn__usage_record read = {0};
    cbn__usage_encode(&key, &written, bytes);
    ck_assert(cbn__usage_decode(&key, (struct cbn__blob){bytes, sizeof(bytes)}, &read));
    ck_assert_uint_eq(read.recency_us, written.recency_us);
    ck_assert_uint_eq(read.hits, 42);
    ck_assert(read.pinned);
    ck_assert(!cbn__usage_decode(&elsewhere, (struct cbn__blob){bytes, sizeof(bytes)}, &read));
    ck_assert(!cbn__usage_decode(&key, (struct cbn__blob){bytes, sizeof(bytes) - 1}, &read));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] ^= 1;
        ck_assert(!cbn__usage_decode(&key, (struct cbn__blob){bytes, sizeof(bytes)}, &read));
        bytes[i] ^= 1;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("entry");
    TCase *cases = tcase_create("entry");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, round_trip_at_every_alignment);
    tcase_add_test(cases, empty_payload);
    tcase_add_test(cases, every_bit_of_every_byte_counts);
    tcase_add_test(cases, every_length_counts);
    tcase_add_test(cases, bound_to_its_key);
    tcase_add_test(cases, key_layout);
    tcase_add_test(cases, usage_is_sealed);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
