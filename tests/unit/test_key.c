/*
 * The key: every field flipped once gives another key, everything irrelevant the same; records go round and are refused
 * when they are not ours.
 */
#include <check.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cubinet/route.h>

#include "base/record.h"
#include "unit/jit_sample.h"

static struct cbn__hash key_of(const struct sample *sample)
{
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(&sample->spec, &record);
    ck_assert(!record.failed);
    ck_assert(cbn__record_well_formed(cbn__buf_blob(&record)));
    return cbn__key_hash(cbn__buf_blob(&record));
}

/* ---- what is in the key ---- */

static void flip_family(struct sample *sample)
{
    sample->template.family = sample_text("houses");
}

static void flip_candidate(struct sample *sample)
{
    sample->template.name = sample_text("fancy");
}

/* The same letters, cut elsewhere. */
static void flip_cut(struct sample *sample)
{
    sample->template.family = sample_text("housep");
    sample->template.name = sample_text("lain");
}

static void flip_symbol(struct sample *sample)
{
    sample->template.symbol = sample_text("simple");
}

static void flip_layout(struct sample *sample)
{
    sample->template.argument_layout = 4;
}

static void flip_arch(struct sample *sample)
{
    sample->spec.arch = CBN_ARCH(100, 'a');
}

static void flip_suffix(struct sample *sample)
{
    sample->spec.arch = CBN_ARCH(90, 0);
}

static void flip_digest(struct sample *sample)
{
    sample->template.digest.bytes[15] ^= 1;
}

static void flip_source(struct sample *sample)
{
    sample_set_source(sample, SAMPLE_SOURCE " ");
}

static void flip_source_name(struct sample *sample)
{
    sample->template.source_name = sample_text("simple.cuh");
    sample_set_source(sample, SAMPLE_SOURCE);
}

static void flip_header(struct sample *sample)
{
    sample_add_header(sample, "a.cuh", "#define A 1\n");
}

static void flip_value(struct sample *sample)
{
    sample->spec.params[0]++;
}

static void flip_last_value(struct sample *sample)
{
    sample->spec.params[2] = 0;
}

static void flip_sign(struct sample *sample)
{
    sample->spec.params[1] = 2;
}

static void flip_high_half(struct sample *sample)
{
    sample->spec.params[0] += (int64_t)1 << 32;
}

static void flip_name(struct sample *sample)
{
    sample->param_names[0] = sample_text("SIZES");
}

static void flip_order(struct sample *sample)
{
    char *name = sample->param_names[0];
    int64_t value = sample->spec.params[0];
    sample->param_names[0] = sample->param_names[1];
    sample->spec.params[0] = sample->spec.params[1];
    sample->param_names[1] = name;
    sample->spec.params[1] = value;
}

static void flip_count(struct sample *sample)
{
    sample->template.param_count = 2;
}

static void (*const flips[])(struct sample *sample) = {
    flip_family,     flip_candidate, flip_cut,       flip_symbol,      flip_layout, flip_arch,
    flip_suffix,     flip_digest,    flip_source,    flip_source_name, flip_header, flip_value,
    flip_last_value, flip_sign,      flip_high_half, flip_name,        flip_order,  flip_count,
};

#define FLIP_COUNT (sizeof(flips) / sizeof(flips[0]))

START_TEST(every_flip_is_another_key)
{
    struct cbn__hash keys[FLIP_COUNT + 1];
    struct sample sample;
    sample_init(&sample);
    keys[FLIP_COUNT] = key_of(&sample);
    for (size_t i = 0; i < FLIP_COUNT; i++) {
        sample_init(&sample);
        flips[i](&sample);
        keys[i] = key_of(&sample);
    }
    for (size_t i = 0; i <= FLIP_COUNT; i++)
        for (size_t k = i + 1; k <= FLIP_COUNT; k++)
            ck_assert_msg(!cbn__hash_equal(&keys[i], &keys[k]), "flips %zu and %zu have one key", i, k);
}
END_TEST

/* One character in a header that only another header includes. */
START_TEST(a_nested_header_is_in_the_key)
{
    struct sample sample, other;
    sample_init(&sample);
    sample_add_header(&sample, "a.cuh", "#include \"b.cuh\"\n");
    sample_add_header(&sample, "b.cuh", "#define B 1\n");
    sample_init(&other);
    sample_add_header(&other, "a.cuh", "#include \"b.cuh\"\n");
    sample_add_header(&other, "b.cuh", "#define B 2\n");
    struct cbn__hash key = key_of(&sample), other_key = key_of(&other);
    ck_assert(!cbn__hash_equal(&key, &other_key));
}
END_TEST

/* Every field of the table is a field of the record: changing any byte of the record changes the key. */
START_TEST(every_byte_of_the_record_counts)
{
    struct sample sample;
    sample_init(&sample);
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(&sample.spec, &record);
    struct cbn__hash key = cbn__key_hash(cbn__buf_blob(&record));
    for (size_t i = 0; i < record.size; i++) {
        record.data[i] ^= 1;
        struct cbn__hash other = cbn__key_hash(cbn__buf_blob(&record));
        ck_assert(!cbn__hash_equal(&key, &other));
        record.data[i] ^= 1;
    }
}
END_TEST

/* ---- what is not ---- */

static void same_flags(struct sample *sample)
{
    sample->template.flags = CBN_CANDIDATE_OFF | CBN_CANDIDATE_FALLBACK | CBN_CANDIDATE_PDL;
}

static void same_argument_bytes(struct sample *sample)
{
    sample->template.argument_bytes = 128;
}

static void same_folder(struct sample *sample)
{
    sample->template.source_name = sample_text("/home/somebody/templates/sample.cuh");
    sample_set_source(sample, SAMPLE_SOURCE);
}

static void same_pointers(struct sample *sample)
{
    static char source[sizeof(SAMPLE_SOURCE)], name[] = "SIZE", family[] = "house";
    memcpy(source, SAMPLE_SOURCE, sizeof(source));
    sample_set_source(sample, source);
    sample->param_names[0] = name;
    sample->template.family = family;
}

static void same_unused_params(struct sample *sample)
{
    sample->spec.params[3] = 99;
    sample->param_names[3] = sample_text("UNUSED");
}

static void same_environment(struct sample *sample)
{
    (void)sample;
    ck_assert_int_eq(setenv("CUBINET_NVRTC", "/somewhere/libnvrtc.so", 1), 0);
    ck_assert_int_eq(setenv("HOME", "/nowhere", 1), 0);
    ck_assert_int_eq(setenv("TZ", "Asia/Tokyo", 1), 0);
    (void)setlocale(LC_ALL, "C.UTF-8");
    ck_assert_int_eq(chdir("/"), 0);
}

static void (*const sames[])(struct sample *sample) = {
    same_flags, same_argument_bytes, same_folder, same_pointers, same_unused_params, same_environment,
};

START_TEST(everything_irrelevant_is_the_same_key)
{
    struct sample sample;
    sample_init(&sample);
    struct cbn__hash key = key_of(&sample);
    for (size_t i = 0; i < sizeof(sames) / sizeof(sames[0]); i++) {
        sample_init(&sample);
        sames[i](&sample);
        struct cbn__hash other = key_of(&sample);
        ck_assert_msg(cbn__hash_equal(&key, &other), "change %zu is another key", i);
    }
}
END_TEST

/* A change of this value empties every cache in the field: it must be meant. */
START_TEST(a_key_is_pinned)
{
    struct sample sample;
    struct cbn_spec spec;
    sample_init(&sample);
    cbn__spec_describe(&sample.spec, &spec);
    ck_assert_str_eq(spec.key, "f9117e2be98fd96e0b00ff05fd2ea1d6");
}
END_TEST

/* ---- there and back ---- */

START_TEST(a_record_goes_round)
{
    struct sample sample;
    sample_init(&sample);
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    CBN__BUF_AUTO options = CBN__BUF_INIT;
    cbn__key_record(&sample.spec, &record);
    struct cbn_spec decoded, described;
    char digest[CBN__HASH_TEXT_BYTES], expected_digest[CBN__HASH_TEXT_BYTES];
    ck_assert(cbn__key_decode(cbn__buf_blob(&record), &decoded, digest, &options));
    cbn__spec_describe(&sample.spec, &described);
    cbn__hash_format(&sample.template.digest, expected_digest);
    ck_assert_str_eq(digest, expected_digest);
    ck_assert_str_eq(decoded.op, "house");
    ck_assert_str_eq(decoded.kernel, "plain");
    ck_assert_str_eq(decoded.arch, "sm_90a");
    ck_assert_str_eq(decoded.text, "house/plain sm_90a SIZE=256 SCALE=-2 PDL=1");
    ck_assert_uint_eq(decoded.param_count, 3);
    ck_assert_str_eq(decoded.params[1].name, "SCALE");
    ck_assert_int_eq(decoded.params[1].value, -2);
    ck_assert_mem_eq(&decoded, &described, sizeof(decoded));
    ck_assert_str_eq(cbn__buf_text(&options),
                     "--gpu-architecture=sm_90a --std=c++17 -default-device --ptxas-options=-v");
    ck_assert(cbn__key_decode(cbn__buf_blob(&record), &decoded, digest, NULL));
}
END_TEST

START_TEST(every_cut_of_a_record_but_params_is_refused)
{
    struct sample sample;
    sample_init(&sample);
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(&sample.spec, &record);
    size_t taken = 0;
    for (size_t size = 0; size < record.size; size++) {
        struct cbn_spec spec;
        char digest[CBN__HASH_TEXT_BYTES];
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, record.data, size);
        taken += cbn__key_decode((struct cbn__blob){copy, size}, &spec, digest, NULL);
        free(copy);
    }
    ck_assert_uint_eq(taken, 3); /* with 0, 1 and 2 parameters it is another whole record */
}
END_TEST

static bool decodes(const struct cbn__buf *record)
{
    struct cbn_spec spec;
    char digest[CBN__HASH_TEXT_BYTES];
    return cbn__key_decode(cbn__buf_blob(record), &spec, digest, NULL);
}

START_TEST(records_of_others_are_refused)
{
    struct sample sample;
    sample_init(&sample);
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(&sample.spec, &record);
    ck_assert(decodes(&record));
    record.data[6] ^= 2; /* the format's number */
    ck_assert(!decodes(&record));
    record.data[6] ^= 2;
    cbn__record_put_text(&record, 17, "a field of a later format");
    ck_assert(!decodes(&record));
    CBN__BUF_AUTO empty = CBN__BUF_INIT;
    ck_assert(!decodes(&empty));
    CBN__BUF_AUTO twice = CBN__BUF_INIT;
    cbn__record_put_u32(&twice, 1, 1);
    cbn__key_record(&sample.spec, &twice);
    ck_assert(!decodes(&twice));
}
END_TEST

START_TEST(more_parameters_than_fit_are_refused)
{
    struct sample sample;
    sample_init(&sample);
    sample.template.param_count = CBN_PARAMS_MAX;
    for (int i = 0; i < CBN_PARAMS_MAX; i++)
        sample.param_names[i] = sample_text("P");
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(&sample.spec, &record);
    ck_assert(decodes(&record));
    CBN__BUF_AUTO param = CBN__BUF_INIT;
    cbn__record_put_text(&param, 1, "P");
    cbn__record_put_u64(&param, 2, 0);
    cbn__record_put(&record, 16, cbn__buf_blob(&param));
    ck_assert(!decodes(&record));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("key");
    tcase_add_test(tests, every_flip_is_another_key);
    tcase_add_test(tests, a_nested_header_is_in_the_key);
    tcase_add_test(tests, every_byte_of_the_record_counts);
    tcase_add_test(tests, everything_irrelevant_is_the_same_key);
    tcase_add_test(tests, a_key_is_pinned);
    tcase_add_test(tests, a_record_goes_round);
    tcase_add_test(tests, every_cut_of_a_record_but_params_is_refused);
    tcase_add_test(tests, records_of_others_are_refused);
    tcase_add_test(tests, more_parameters_than_fit_are_refused);
    Suite *suite = suite_create("key");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
