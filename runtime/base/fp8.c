/*
 * The FP8 numerics on the CPU. Integers where rounding is meant, and no sum of a product anywhere, so that neither the
 * rounding mode nor the compiler's contraction of products can change a bit.
 */
#include "base/fp8.h"

#include <float.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "float products must round to float");

#define INFINITY_BITS 0x7F800000u
#define NAN_BITS 0x7FFFFFFFu
#define EPSILON_BITS 0x2EDBE6FFu    /* 1e-10f */
#define RECIPROCAL_BITS 0x3B124925u /* RN(1/448) */
#define E4M3_NAN 0x7Fu
#define E4M3_MAX 0x7Eu

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* value / 2^shift to nearest even. */
static uint32_t round_shift(uint32_t value, uint32_t shift)
{
    if (shift > 31)
        return 0;
    uint32_t half = 1u << (shift - 1), rest = value & (2 * half - 1), quotient = value >> shift;
    return quotient + (rest > half || (rest == half && (quotient & 1)));
}

/*
 * Magnitude bits of a small float format with `mantissa` bits and this exponent bias; a carry runs into the exponent.
 * Finite magnitudes only; the caller cuts what lies above its largest.
 */
static uint32_t narrow(uint32_t magnitude, uint32_t mantissa, int32_t bias)
{
    int32_t exponent = (int32_t)(magnitude >> 23) - 127;
    uint32_t significand = (magnitude & 0x7FFFFFu) | (magnitude >> 23 ? 0x800000u : 0);
    uint32_t shift = 23 - mantissa;
    if (exponent < 1 - bias) /* below its normals: steps of 2^(1 - bias - mantissa) */
        return round_shift(significand, shift + (uint32_t)(1 - bias - exponent));
    return ((uint32_t)(exponent + bias) << mantissa) + round_shift(significand, shift) - (1u << mantissa);
}

static float widen(uint32_t magnitude, uint32_t mantissa, int32_t bias)
{
    uint32_t exponent = magnitude >> mantissa, fraction = magnitude & ((1u << mantissa) - 1);
    if (exponent == 0)
        return (float)fraction * bits_float((uint32_t)(127 + 1 - bias - (int32_t)mantissa) << 23);
    return bits_float((uint32_t)((int32_t)exponent - bias + 127) << 23 | fraction << (23 - mantissa));
}

uint8_t cbn__e4m3_encode(float value)
{
    uint32_t bits = float_bits(value), magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > INFINITY_BITS)
        return E4M3_NAN;
    uint32_t code = magnitude == INFINITY_BITS ? E4M3_MAX : narrow(magnitude, 3, 7);
    if (code > E4M3_MAX)
        code = E4M3_MAX;
    return (uint8_t)(code | (bits >> 24 & 0x80u));
}

float cbn__e4m3_decode(uint8_t code)
{
    uint32_t sign = (code & 0x80u) << 24, magnitude = code & 0x7Fu;
    if (magnitude == E4M3_NAN)
        return bits_float(sign | NAN_BITS);
    return bits_float(sign | float_bits(widen(magnitude, 3, 7)));
}

float cbn__bf16_decode(uint16_t bits)
{
    return bits_float((uint32_t)bits << 16);
}

uint16_t cbn__bf16_encode(float value)
{
    uint32_t bits = float_bits(value);
    if ((bits & 0x7FFFFFFFu) > INFINITY_BITS)
        return 0x7FFF;
    return (uint16_t)round_shift(bits, 16); /* the carry out of the largest finite value makes infinity */
}

float cbn__fp16_decode(uint16_t bits)
{
    uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7FFFu;
    if (magnitude >= 0x7C00u)
        return bits_float(sign | INFINITY_BITS | (magnitude & 0x3FFu) << 13);
    return bits_float(sign | float_bits(widen(magnitude, 10, 15)));
}

uint16_t cbn__fp16_encode(float value)
{
    uint32_t bits = float_bits(value), magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > INFINITY_BITS)
        return 0x7FFF;
    uint32_t half = magnitude == INFINITY_BITS ? 0x7C00u : narrow(magnitude, 10, 15);
    if (half > 0x7C00u)
        half = 0x7C00u;
    return (uint16_t)(half | (bits >> 16 & 0x8000u));
}

float cbn__ue8m0_decode(uint8_t exponent)
{
    return bits_float((uint32_t)exponent << 23);
}

static bool is_finite(float value)
{
    return (float_bits(value) & 0x7FFFFFFFu) < INFINITY_BITS;
}

/* Of the finite elements, at least 1e-10. */
static float find_absmax(const float *values, int count)
{
    uint32_t largest = EPSILON_BITS;
    for (int i = 0; i < count; i++) {
        uint32_t magnitude = float_bits(values[i]) & 0x7FFFFFFFu;
        if (magnitude < INFINITY_BITS && magnitude > largest)
            largest = magnitude;
    }
    return bits_float(largest);
}

uint8_t cbn__fp8_quantize_element(float value, float multiplier, bool propagate)
{
    if (propagate && !is_finite(value))
        return E4M3_NAN;
    if (value != value)
        return 0;
    float scaled = value * multiplier;
    scaled = scaled > 448.0f ? 448.0f : scaled < -448.0f ? -448.0f : scaled;
    return cbn__e4m3_encode(scaled);
}

struct cbn__group_scale cbn__fp8_quantize_group(const float *values, int count, bool pow2, bool propagate,
                                                uint8_t *ret_codes)
{
    float absmax = find_absmax(values, count);
    struct cbn__group_scale result = {absmax * bits_float(RECIPROCAL_BITS), 0};
    float multiplier = 448.0f / absmax;
    if (pow2) {
        uint32_t bits = float_bits(result.scale);
        result.exponent = (uint8_t)((bits >> 23) + ((bits & 0x7FFFFFu) != 0));
        result.scale = cbn__ue8m0_decode(result.exponent);
        multiplier = bits_float((254u - result.exponent) << 23);
    }
    for (int i = 0; i < count; i++)
        ret_codes[i] = cbn__fp8_quantize_element(values[i], multiplier, propagate);
    return result;
}
