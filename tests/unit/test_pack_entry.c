/*
 * Entries as they travel: one encoding, whichever cache they come from, and no changed byte goes unseen.
 */
#include "cache_fixture.h"

#include "cache/pack_entry.h"

#define VERSION 13001u

static void encode_sized(struct cbn__buf *bytes, uint64_t which, size_t size, const struct cbn__entry_facts *facts)
{
    struct test_key record = key_of(which);
    uint8_t *payload = malloc(size + 1);
    fill_payload(payload, size, which);
    cbn__pack_entry_encode(RECORD(record), (struct cbn__blob){payload, size}, facts, bytes);
    free(payload);
}

static void encode(struct cbn__buf *bytes, uint64_t which, size_t size)
{
    struct cbn__entry_facts facts = facts_of(VERSION);
    encode_sized(bytes, which, size, &facts);
    ck_assert(!bytes->failed);
}

/* Decodes a copy of exactly these bytes, so that reads behind it are seen by a sanitizer. */
static const char *decode_copy(const uint8_t *bytes, size_t size, struct cbn__entry *ret_entry,
                               struct cbn__store_key *ret_key)
{
    *ret_entry = (struct cbn__entry){.bytes = CBN__BUF_INIT};
    ret_entry->bytes.data = malloc(size ? size : 1);
    memcpy(ret_entry->bytes.data, bytes, size);
    ret_entry->bytes.size = ret_entry->bytes.capacity = size;
    return cbn__pack_entry_decode(ret_entry, ret_key);
}

static bool is_refused(const uint8_t *bytes, size_t size)
{
    struct cbn__entry entry;
    struct cbn__store_key key;
    const char *problem = decode_copy(bytes, size, &entry, &key);
    cbn__entry_done(&entry);
    return problem != NULL;
}

/* Puts the right seal on altered bytes: what is behind it must be checked by itself. */
static void seal_again(struct cbn__buf *bytes)
{
    const struct cbn__blob parts[] = {{bytes->data, 6}, {bytes->data + 22, bytes->size - 22}};
    struct cbn__hash hash = cbn__hash_blobs(parts, 2);
    memcpy(bytes->data + 6, hash.bytes, sizeof(hash.bytes));
}

START_TEST(round_trip_of_every_length)
{
    struct cbn__entry_facts wanted = facts_of(VERSION);
    wanted.compile_ms = 0;
    wanted.created_s = 0;
    for (size_t size = 0; size < 64; size++) {
        CBN__BUF_AUTO bytes = CBN__BUF_INIT;
        struct test_key record = key_of(size);
        encode(&bytes, size, size);
        struct cbn__entry entry;
        struct cbn__store_key key;
        ck_assert_ptr_null(decode_copy(bytes.data, bytes.size, &entry, &key));
        ck_assert(payload_is(&entry, size, size));
        ck_assert(cbn__blob_equal(entry.key_record, RECORD(record)));
        ck_assert(same_facts(&entry.facts, &wanted));
        ck_assert_uint_eq(entry.log.size, 0);
        ck_assert_uint_eq(entry.major, 13);
        struct cbn__hash hash = cbn__hash_blob(RECORD(record));
        struct cbn__store_key own = cbn__entry_key(&hash, 13);
        ck_assert_mem_eq(key.bytes, own.bytes, sizeof(own.bytes));
        cbn__entry_done(&entry);
    }
}
END_TEST

START_TEST(what_is_volatile_is_not_in_it)
{
    CBN__BUF_AUTO one = CBN__BUF_INIT;
    CBN__BUF_AUTO other = CBN__BUF_INIT;
    struct cbn__entry_facts facts = facts_of(VERSION);
    encode_sized(&one, 5, 300, &facts);
    facts.compile_ms = 77;
    facts.created_s = 1800000000;
    encode_sized(&other, 5, 300, &facts);
    ck_assert(cbn__blob_equal(cbn__buf_blob(&one), cbn__buf_blob(&other)));
    facts.registers++;
    cbn__buf_done(&other);
    encode_sized(&other, 5, 300, &facts);
    ck_assert(!cbn__blob_equal(cbn__buf_blob(&one), cbn__buf_blob(&other)));
}
END_TEST

/* The form is what other machines wrote: it may not change under them. */
START_TEST(the_form_is_pinned)
{
    CBN__BUF_AUTO bytes = CBN__BUF_INIT;
    encode(&bytes, 1, 3);
    struct cbn__hash hash = cbn__hash_blob(cbn__buf_blob(&bytes));
    char text[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(&hash, text);
    ck_assert_uint_eq(bytes.size, 115);
    ck_assert_str_eq(text, "f17522f4a66faf05af0d98c4dfb253bf");
}
END_TEST

START_TEST(every_bit_of_every_byte_counts)
{
    CBN__BUF_AUTO bytes = CBN__BUF_INIT;
    encode(&bytes, 1, 333);
    for (size_t i = 0; i < bytes.size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes.data[i] = (uint8_t)(bytes.data[i] ^ 1u << bit);
            ck_assert_msg(is_refused(bytes.data, bytes.size), "byte %zu bit %u", i, bit);
            bytes.data[i] = (uint8_t)(bytes.data[i] ^ 1u << bit);
        }
    }
    ck_assert(!is_refused(bytes.data, bytes.size));
}
END_TEST

START_TEST(every_length_counts)
{
    CBN__BUF_AUTO bytes = CBN__BUF_INIT;
    encode(&bytes, 1, 200);
    for (size_t size = 0; size < bytes.size; size++)
        ck_assert_msg(is_refused(bytes.data, size), "%zu bytes", size);
    size_t whole = bytes.size;
    cbn__buf_append(&bytes, "", 1);
    ck_assert(is_refused(bytes.data, bytes.size));
    ck_assert(!is_refused(bytes.data, whole));
}
END_TEST

/* Whoever writes values by hand can seal them: one entry still has one encoding, and no field another meaning. */
START_TEST(a_right_seal_is_not_enough)
{
    CBN__BUF_AUTO bytes = CBN__BUF_INIT;
    encode(&bytes, 1, 333);
    int taken = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        if (i >= 6 && i < 22)
            continue;
        bytes.data[i] ^= 0x40;
        seal_again(&bytes);
        taken += !is_refused(bytes.data, bytes.size);
        bytes.data[i] ^= 0x40;
    }
    /* Key record; the compiler less a byte that would be no version; three more facts; payload. */
    ck_assert_int_eq(taken, 14 + 3 + 3 * 4 + 333);
    seal_again(&bytes);
    ck_assert(!is_refused(bytes.data, bytes.size));
}
END_TEST

START_TEST(what_cannot_be_read_is_not_written)
{
    static uint8_t large[CBN__KEY_RECORD_MAX_BYTES + 1];
    struct cbn__entry_facts facts = facts_of(VERSION);
    const struct {
        size_t key_bytes;
        uint32_t version;
        bool taken;
    } cases[] = {{0, VERSION, false},
                 {1, VERSION, true},
                 {CBN__KEY_RECORD_MAX_BYTES, VERSION, true},
                 {CBN__KEY_RECORD_MAX_BYTES + 1, VERSION, false},
                 {1, 65535999u, true},
                 {1, 65536000u, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CBN__BUF_AUTO bytes = CBN__BUF_INIT;
        facts.compiler_version = cases[i].version;
        cbn__pack_entry_encode((struct cbn__blob){large, cases[i].key_bytes}, (struct cbn__blob){large, 0}, &facts,
                               &bytes);
        ck_assert_int_eq(!bytes.failed, cases[i].taken);
        ck_assert(bytes.failed || !is_refused(bytes.data, bytes.size));
        ck_assert(bytes.failed || bytes.size >= CBN__PACK_ENTRY_MIN_BYTES);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pack_entry");
    TCase *tests = tcase_create("pack_entry");
    tcase_add_test(tests, round_trip_of_every_length);
    tcase_add_test(tests, what_is_volatile_is_not_in_it);
    tcase_add_test(tests, the_form_is_pinned);
    tcase_add_test(tests, every_bit_of_every_byte_counts);
    tcase_add_test(tests, every_length_counts);
    tcase_add_test(tests, a_right_seal_is_not_enough);
    tcase_add_test(tests, what_cannot_be_read_is_not_written);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
