/*
 * The CPU reference against the formats' definitions and the vectors of the specification.
 */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fp8.h"

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* By the format's definition, in double. */
static double e4m3_value(unsigned magnitude)
{
    unsigned exponent = magnitude >> 3, fraction = magnitude & 7;
    return exponent ? ldexp(1 + fraction / 8.0, (int)exponent - 7) : ldexp(fraction / 8.0, -6);
}

/* The nearest code by search, ties to the even one: knows nothing of bits. */
static unsigned nearest_code(double magnitude)
{
    unsigned best = 0;
    for (unsigned code = 1; code <= 0x7E; code++) {
        double old = fabs(magnitude - e4m3_value(best)), distance = fabs(magnitude - e4m3_value(code));
        if (distance < old || (distance == old && code % 2 == 0))
            best = code;
    }
    return best;
}

START_TEST(e4m3_round_trip)
{
    for (unsigned code = 0; code < 256; code++) {
        float value = cbn__e4m3_decode((uint8_t)code);
        if ((code & 0x7F) == 0x7F) {
            ck_assert(isnan(value));
            continue;
        }
        ck_assert_double_eq(fabs((double)value), e4m3_value(code & 0x7F));
        ck_assert_int_eq(signbit(value) != 0, code >> 7);
        ck_assert_uint_eq(cbn__e4m3_encode(value), code);
    }
}
END_TEST

START_TEST(e4m3_ties_go_to_even)
{
    for (unsigned code = 0; code < 0x7E; code++) {
        double middle = (e4m3_value(code) + e4m3_value(code + 1)) / 2;
        unsigned even = code % 2 ? code + 1 : code;
        ck_assert_uint_eq(cbn__e4m3_encode((float)middle), even);
        ck_assert_uint_eq(cbn__e4m3_encode(nextafterf((float)middle, 0)), code);
        ck_assert_uint_eq(cbn__e4m3_encode(nextafterf((float)middle, 1e9f)), code + 1);
        ck_assert_uint_eq(cbn__e4m3_encode(-(float)middle), even | 0x80);
    }
}
END_TEST

START_TEST(e4m3_ends_of_the_range)
{
    ck_assert_uint_eq(cbn__e4m3_encode(448.0f), 0x7E);
    ck_assert_uint_eq(cbn__e4m3_encode(449.0f), 0x7E);
    ck_assert_uint_eq(cbn__e4m3_encode(FLT_MAX), 0x7E);
    ck_assert_uint_eq(cbn__e4m3_encode(-INFINITY), 0xFE);
    ck_assert_uint_eq(cbn__e4m3_encode(NAN), 0x7F);
    ck_assert_uint_eq(cbn__e4m3_encode(-NAN), 0x7F);
    ck_assert_uint_eq(cbn__e4m3_encode(-0.0f), 0x80);
    ck_assert_uint_eq(cbn__e4m3_encode(ldexpf(1, -10)), 0x00);
    ck_assert_uint_eq(cbn__e4m3_encode(nextafterf(ldexpf(1, -10), 1)), 0x01);
    ck_assert_uint_eq(cbn__e4m3_encode(float_of(1)), 0x00);
    ck_assert_uint_eq(cbn__e4m3_encode(ldexpf(1, -6)), 0x08);
}
END_TEST

START_TEST(every_bf16_and_fp16)
{
    for (unsigned pattern = 0; pattern < 65536; pattern++) {
        float bf16 = cbn__bf16_decode((uint16_t)pattern), fp16 = cbn__fp16_decode((uint16_t)pattern);
        ck_assert_uint_eq(bits_of(bf16), pattern << 16);
        ck_assert_uint_eq(cbn__bf16_encode(bf16), isnan(bf16) ? 0x7FFF : pattern);
        ck_assert_uint_eq(cbn__fp16_encode(fp16), isnan(fp16) ? 0x7FFF : pattern);
        unsigned exponent = pattern >> 10 & 31, fraction = pattern & 1023;
        if (exponent == 31) {
            ck_assert(fraction ? isnan(fp16) != 0 : isinf(fp16) != 0);
        } else {
            double value = exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24);
            ck_assert_double_eq((double)fp16, pattern >> 15 ? -value : value);
        }
        if (isfinite(bf16)) {
            double magnitude = fabs((double)bf16) < 448 ? fabs((double)bf16) : 448;
            ck_assert_uint_eq(cbn__e4m3_encode(bf16), nearest_code(magnitude) | (pattern >> 15) << 7);
        }
    }
}
END_TEST

START_TEST(narrow_rounding)
{
    ck_assert_uint_eq(cbn__bf16_encode(float_of(0x3F808000)), 0x3F80); /* tie to even, down */
    ck_assert_uint_eq(cbn__bf16_encode(float_of(0x3F818000)), 0x3F82); /* tie to even, up */
    ck_assert_uint_eq(cbn__bf16_encode(float_of(0x3F808001)), 0x3F81);
    ck_assert_uint_eq(cbn__bf16_encode(FLT_MAX), 0x7F80);
    ck_assert_uint_eq(cbn__bf16_encode(-INFINITY), 0xFF80);
    ck_assert_uint_eq(cbn__fp16_encode(65504.0f), 0x7BFF);
    ck_assert_uint_eq(cbn__fp16_encode(65519.0f), 0x7BFF);
    ck_assert_uint_eq(cbn__fp16_encode(65520.0f), 0x7C00);
    ck_assert_uint_eq(cbn__fp16_encode(-1e9f), 0xFC00);
    ck_assert_uint_eq(cbn__fp16_encode(ldexpf(1, -25)), 0x0000);
    ck_assert_uint_eq(cbn__fp16_encode(ldexpf(3, -25)), 0x0002);
    ck_assert_uint_eq(cbn__fp16_encode(ldexpf(1, -14)), 0x0400);
    ck_assert_uint_eq(cbn__fp16_encode(nextafterf(ldexpf(1, -14), 0)), 0x0400); /* the carry makes a normal */
    ck_assert_uint_eq(cbn__fp16_encode(-float_of(1)), 0x8000);
}
END_TEST

START_TEST(ue8m0)
{
    ck_assert_uint_eq(bits_of(cbn__ue8m0_decode(0)), 0);
    ck_assert_float_eq(cbn__ue8m0_decode(127), 1.0f);
    ck_assert_float_eq(cbn__ue8m0_decode(85), ldexpf(1, -42));
    ck_assert(isinf(cbn__ue8m0_decode(255)));
}
END_TEST

/* absmax bits, bits of RN(a / 448 by multiplication), exponent byte, code of +a under the UE8M0 rule */
static const struct {
    uint32_t absmax, scale;
    uint8_t exponent, code;
} vectors[] = {
    {0x00000000, 0x2A7B5124, 85, 0x00},  {0x00010000, 0x2A7B5124, 85, 0x00},  {0x2EDB0000, 0x2A7B5124, 85, 0x7E},
    {0x2EDC0000, 0x2A7B6DB8, 85, 0x7E},  {0x3F800000, 0x3B124925, 119, 0x78}, {0x3FE00000, 0x3B800000, 119, 0x7E},
    {0x3FE10000, 0x3B80924A, 120, 0x76}, {0x43E00000, 0x3F800000, 127, 0x7E}, {0x43E10000, 0x3F80924A, 128, 0x76},
    {0x477FE000, 0x431236DC, 135, 0x78}, {0x7F7F0000, 0x7B11B6DC, 247, 0x78}, {0x3BE00000, 0x37800000, 111, 0x7E},
    {0x33800000, 0x2F124925, 95, 0x78},
};

START_TEST(vectors_of_the_specification)
{
    float values[128] = {0};
    values[77] = float_of(vectors[_i].absmax);
    values[3] = -values[77];
    uint8_t codes[128];
    struct cbn__group_scale power = cbn__fp8_quantize_group(values, 128, true, false, codes);
    ck_assert_uint_eq(power.exponent, vectors[_i].exponent);
    ck_assert_uint_eq(bits_of(power.scale), (uint32_t)vectors[_i].exponent << 23);
    ck_assert_uint_eq(codes[77], vectors[_i].code);
    ck_assert_uint_eq(codes[3], vectors[_i].code | 0x80);
    ck_assert_uint_eq(codes[0], 0);
    struct cbn__group_scale plain = cbn__fp8_quantize_group(values, 128, false, false, codes);
    ck_assert_uint_eq(bits_of(plain.scale), vectors[_i].scale);
    ck_assert_uint_eq(codes[77], values[77] < 1e-12f ? 0x00 : 0x7E);
}
END_TEST

/* fp32 scales: true division; 448 / 3 is inexact, and 3 * RN(448/3) must still reach 448. */
START_TEST(plain_scale_divides)
{
    float values[3] = {3.0f, -1.5f, 0.01f};
    uint8_t codes[3];
    struct cbn__group_scale scale = cbn__fp8_quantize_group(values, 3, false, false, codes);
    ck_assert_uint_eq(bits_of(scale.scale), bits_of(3.0f * float_of(0x3B124925)));
    ck_assert_uint_eq(codes[0], 0x7E);
    ck_assert_uint_eq(codes[1], cbn__e4m3_encode(-224.0f));
    ck_assert_uint_eq(codes[2], cbn__e4m3_encode(0.01f * (448.0f / 3.0f)));
    ck_assert_uint_eq(scale.exponent, 0);
}
END_TEST

START_TEST(non_finite_elements)
{
    const float values[5] = {NAN, INFINITY, -INFINITY, 2.0f, -NAN};
    for (int pow2 = 0; pow2 < 2; pow2++) {
        uint8_t codes[5];
        struct cbn__group_scale finite = cbn__fp8_quantize_group(values, 5, pow2, false, codes);
        const uint8_t expected[5] = {0x00, 0x7E, 0xFE, cbn__e4m3_encode(pow2 ? 256.0f : 448.0f), 0x00};
        ck_assert_mem_eq(codes, expected, 5);
        struct cbn__group_scale spread = cbn__fp8_quantize_group(values, 5, pow2, true, codes);
        const uint8_t spread_expected[5] = {0x7F, 0x7F, 0x7F, expected[3], 0x7F};
        ck_assert_mem_eq(codes, spread_expected, 5);
        ck_assert_uint_eq(bits_of(finite.scale), bits_of(spread.scale));
        ck_assert_uint_eq(bits_of(finite.scale), pow2 ? 120u << 23 : bits_of(2.0f * float_of(0x3B124925)));
    }
}
END_TEST

/* An approximate division gives 0 above 2^126: no NaN from what is finite, and the sign stays. */
START_TEST(elements_under_another_multiplier)
{
    ck_assert_uint_eq(cbn__fp8_quantize_element(3e38f, 0.0f, false), 0x00);
    ck_assert_uint_eq(cbn__fp8_quantize_element(-3e38f, 0.0f, false), 0x80);
    ck_assert_uint_eq(cbn__fp8_quantize_element(NAN, 2.0f, false), 0x00);
    ck_assert_uint_eq(cbn__fp8_quantize_element(NAN, 2.0f, true), 0x7F);
    ck_assert_uint_eq(cbn__fp8_quantize_element(8.5f, 2.0f, false), cbn__e4m3_encode(17.0f));
    ck_assert_uint_eq(cbn__fp8_quantize_element(-400.0f, 2.0f, false), 0xFE);
}
END_TEST

START_TEST(nothing_but_non_finite)
{
    const float values[2] = {NAN, INFINITY};
    uint8_t codes[2];
    struct cbn__group_scale scale = cbn__fp8_quantize_group(values, 2, false, false, codes);
    ck_assert_uint_eq(bits_of(scale.scale), 0x2A7B5124);
    ck_assert_uint_eq(codes[0], 0x00);
    ck_assert_uint_eq(codes[1], 0x7E);
}
END_TEST

/* The clamp never acts on finite bf16, and the pow2 exponent is that of ceil(log2(a / 448)). */
START_TEST(exponent_of_every_bf16)
{
    for (unsigned pattern = 0; pattern < 0x7F80; pattern++) {
        float a = cbn__bf16_decode((uint16_t)pattern);
        uint8_t code;
        struct cbn__group_scale scale = cbn__fp8_quantize_group(&a, 1, true, false, &code);
        double wanted = (double)(a > 1e-10f ? a : 1e-10f) / 448;
        ck_assert_int_eq(scale.exponent, (int)ceil(log2(wanted)) + 127);
        ck_assert(code <= 0x7E);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fp8");
    TCase *test_case = tcase_create("fp8");
    tcase_set_timeout(test_case, 60);
    tcase_add_test(test_case, e4m3_round_trip);
    tcase_add_test(test_case, e4m3_ties_go_to_even);
    tcase_add_test(test_case, e4m3_ends_of_the_range);
    tcase_add_test(test_case, every_bf16_and_fp16);
    tcase_add_test(test_case, narrow_rounding);
    tcase_add_test(test_case, ue8m0);
    tcase_add_loop_test(test_case, vectors_of_the_specification, 0, (int)(sizeof(vectors) / sizeof(vectors[0])));
    tcase_add_test(test_case, plain_scale_divides);
    tcase_add_test(test_case, non_finite_elements);
    tcase_add_test(test_case, elements_under_another_multiplier);
    tcase_add_test(test_case, nothing_but_non_finite);
    tcase_add_test(test_case, exponent_of_every_bf16);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
