/*
 * CPU reference of the FP8 numerics: e4m3, UE8M0, and the group quantiser, bit for bit what the kernels compute.
 * Slow and plain on purpose: it is the oracle of selftest and of the GPU suite.
 */
#ifndef CBN_BASE_FP8_H
#define CBN_BASE_FP8_H

#include <stdbool.h>
#include <stdint.h>

#include <cubinet/types.h>

uint8_t cbn__e4m3_encode(float value); /* to nearest even, saturating; NaN -> 0x7F */
float cbn__e4m3_decode(uint8_t code);  /* 0x7F and 0xFF are NaN */
float cbn__bf16_decode(uint16_t bits);
uint16_t cbn__bf16_encode(float value); /* to nearest even; NaN -> 0x7FFF */
float cbn__fp16_decode(uint16_t bits);
uint16_t cbn__fp16_encode(float value); /* to nearest even; overflow -> infinity; NaN -> 0x7FFF */
float cbn__ue8m0_decode(uint8_t exponent); /* bits exponent << 23: 0 -> 0.0, 255 -> infinity */

struct cbn__group_scale {
    float scale;      /* what is stored as fp32 */
    uint8_t exponent; /* what is stored as UE8M0; only meaningful for pow2 */
};

/* One element under a group's multiplier, as cbn__fp8_quantize_group does it; for multipliers of another make. */
uint8_t cbn__fp8_quantize_element(float value, float multiplier, bool propagate);

/*
 * One group of count (1 to 128) elements: writes count codes. pow2: the UE8M0 rule. propagate: non-finite elements
 * become code 0x7F; otherwise NaN -> 0x00, +-inf -> 0x7E / 0xFE.
 */
struct cbn__group_scale cbn__fp8_quantize_group(const float *values, int count, bool pow2, bool propagate,
                                                uint8_t *ret_codes);

#endif
