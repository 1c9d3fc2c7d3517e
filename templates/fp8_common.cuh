/*
 * What the FP8 kernels share: global loads and stores, PDL, e4m3 conversion, and the group quantiser. The quantiser
 * inside the GEMM and the standalone one are this one code, so they agree bit for bit with each other and with
 * runtime/base/fp8.c. Needs no toolkit header. Wants the macros VEC (16: 16-byte accesses where a whole chunk exists;
 * 1: any alignment) and PDL.
 *
 * Arithmetic whose rounding is specified is written as PTX, so that no compiler option can contract or approximate it.
 */
#ifndef FP8_COMMON_CUH
#define FP8_COMMON_CUH

#include "fp8_args.cuh"

#define CBN_INLINE static __device__ __forceinline__

/* The numbers of include/cubinet/types.h. */
constexpr int DTYPE_BF16 = 1, DTYPE_FP16 = 2, DTYPE_FP32 = 3, DTYPE_E4M3 = 4;
constexpr int SCALE_FP32 = 1, SCALE_UE8M0 = 2;
constexpr int GRAN_BLOCK = 1, GRAN_ROW = 2;
constexpr int BIAS_NONE = 0, BIAS_OUT = 1, BIAS_FP32 = 2;

constexpr int GROUP = 128;               /* elements of K that share a scale */
constexpr int LANE_ELEMENTS = 16;        /* of them, handled by one lane */
constexpr int GROUP_LANES = GROUP / LANE_ELEMENTS;

static __device__ constexpr int dtype_bytes(int dtype)
{
    return dtype == DTYPE_E4M3 ? 1 : dtype == DTYPE_FP32 ? 4 : 2;
}

struct alignas(16) vec16 {
    u32 w[4];
};

CBN_INLINE u32 float_bits(float value)
{
    return __float_as_uint(value);
}

CBN_INLINE float bits_float(u32 bits)
{
    return __uint_as_float(bits);
}

/* Programmatic dependent launch. Nothing in global memory is read or written before the wait, on any path. */
CBN_INLINE void pdl_wait()
{
#if PDL
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

CBN_INLINE void pdl_launch_dependents()
{
#if PDL
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Global memory. Volatile asm keeps its order behind pdl_wait; coherent loads only (a predecessor wrote the data). */
CBN_INLINE u32 load_u8(u64 address)
{
    u32 value;
    asm volatile("ld.global.u8 %0, [%1];" : "=r"(value) : "l"(address));
    return value;
}

CBN_INLINE u32 load_u16(u64 address)
{
    unsigned short value;
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(value) : "l"(address));
    return value;
}

CBN_INLINE u32 load_u32(u64 address)
{
    u32 value;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(address));
    return value;
}

CBN_INLINE void load_16(u64 address, u32 *words)
{
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(address));
}

CBN_INLINE void store_u8(u64 address, u32 value)
{
    asm volatile("st.global.u8 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

CBN_INLINE void store_u16(u64 address, u32 value)
{
    asm volatile("st.global.u16 [%0], %1;" ::"l"(address), "h"((unsigned short)value) : "memory");
}

CBN_INLINE void store_u32(u64 address, u32 value)
{
    asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

CBN_INLINE void store_16(u64 address, const u32 *words)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(words[0]), "r"(words[1]),
                 "r"(words[2]), "r"(words[3])
                 : "memory");
}

/* One element of BYTES: at any address with VEC 1, at a multiple of BYTES with VEC 16. */
template <int BYTES> CBN_INLINE u32 load_element(u64 address)
{
    if constexpr (BYTES == 1) {
        return load_u8(address);
    } else {
        if (VEC == 1 && address % BYTES != 0) {
            u32 value = 0;
#pragma unroll
            for (int i = 0; i < BYTES; i++)
                value |= load_u8(address + i) << 8 * i;
            return value;
        }
        return BYTES == 2 ? load_u16(address) : load_u32(address);
    }
}

template <int BYTES> CBN_INLINE void store_element(u64 address, u32 value)
{
    if (VEC == 1 && address % BYTES != 0) {
#pragma unroll
        for (int i = 0; i < BYTES; i++)
            store_u8(address + i, value >> 8 * i);
        return;
    }
    BYTES == 2 ? store_u16(address, value) : store_u32(address, value);
}

/* min(rows, max(0, *m_valid)); all rows when there is no m_valid. */
CBN_INLINE i64 valid_rows(u64 m_valid, i64 rows)
{
    if (m_valid == 0)
        return rows;
    i64 valid = (int)load_u32(m_valid);
    valid = valid < 0 ? 0 : valid;
    return valid < rows ? valid : rows;
}

/* How many of the `width` elements that start at `first` lie below `end`. */
CBN_INLINE int span_count(i64 first, i64 end, int width)
{
    i64 left = end - first;
    return left >= width ? width : left > 0 ? (int)left : 0;
}

/* Sixteen consecutive elements as they lie in memory; absent ones are zero bits. */
template <int DTYPE> struct raw16 {
    static constexpr int BYTES = dtype_bytes(DTYPE);
    u32 words[LANE_ELEMENTS * BYTES / 4];
};

/* Reads the first `count` elements at address and nothing else. */
template <int DTYPE> CBN_INLINE void load_raw(raw16<DTYPE> &raw, u64 address, int count)
{
    constexpr int BYTES = raw16<DTYPE>::BYTES;
    if (VEC == 16 && count == LANE_ELEMENTS) {
#pragma unroll
        for (int i = 0; i < BYTES; i++)
            load_16(address + 16 * i, raw.words + 4 * i);
        return;
    }
#pragma unroll
    for (int i = 0; i < LANE_ELEMENTS * BYTES / 4; i++)
        raw.words[i] = 0;
    if (count == 0)
        return;
#pragma unroll
    for (int i = 0; i < LANE_ELEMENTS; i++)
        if (i < count)
            raw.words[i * BYTES / 4] |= load_element<BYTES>(address + i * BYTES) << 8 * (i * BYTES % 4);
}

CBN_INLINE float fp16_float(u32 bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)bits));
    return value;
}

template <int DTYPE> CBN_INLINE float raw_element(const raw16<DTYPE> &raw, int i)
{
    if (DTYPE == DTYPE_FP32)
        return bits_float(raw.words[i]);
    u32 word = raw.words[i / 2];
    if (DTYPE == DTYPE_BF16)
        return bits_float(i % 2 ? word & 0xFFFF0000u : word << 16);
    return fp16_float(i % 2 ? word >> 16 : word & 0xFFFFu);
}

/* An output element's bits: to nearest even, overflow to infinity, NaN 0x7FFF. */
template <int DTYPE> CBN_INLINE u32 output_bits(float value)
{
    unsigned short half;
    if (DTYPE == DTYPE_FP32)
        return float_bits(value);
    if (DTYPE == DTYPE_BF16)
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(value));
    else
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

template <int DTYPE> CBN_INLINE float element_float(u32 bits)
{
    if (DTYPE == DTYPE_FP32)
        return bits_float(bits);
    return DTYPE == DTYPE_BF16 ? bits_float(bits << 16) : fp16_float(bits);
}

CBN_INLINE float mul_rn(float a, float b)
{
    float product;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
    return product;
}

CBN_INLINE float fma_rn(float a, float b, float c)
{
    float sum;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(sum) : "f"(a), "f"(b), "f"(c));
    return sum;
}

CBN_INLINE float div_rn(float a, float b)
{
    float quotient;
    asm("div.rn.f32 %0, %1, %2;" : "=f"(quotient) : "f"(a), "f"(b));
    return quotient;
}

/* Within 2 ulp for b up to 2^126; above that 0 (PTX ISA, div: full-range approximations). */
CBN_INLINE float div_approx(float a, float b)
{
    float quotient;
    asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(quotient) : "f"(a), "f"(b));
    return quotient;
}

CBN_INLINE float clamp_448(float value)
{
    float clamped;
    asm("{ .reg .f32 t; min.f32 t, %1, 0f43E00000; max.f32 %0, t, 0fC3E00000; }" : "=f"(clamped) : "f"(value));
    return clamped;
}

CBN_INLINE bool is_finite(float value)
{
    return (float_bits(value) & 0x7FFFFFFFu) < 0x7F800000u;
}

CBN_INLINE bool is_nan(float value)
{
    return (float_bits(value) & 0x7FFFFFFFu) > 0x7F800000u;
}

/* e4m3 in software, for parts below sm_89. |value| <= 448 or NaN. */
CBN_INLINE u32 e4m3_encode_soft(float value)
{
    u32 bits = float_bits(value), magnitude = bits & 0x7FFFFFFFu, sign = bits >> 24 & 0x80u;
    if (magnitude > 0x7F800000u)
        return 0x7Fu;
    if (magnitude < 0x3C800000u) { /* below 2^-6: the sum's ulp is 2^-9, the subnormal step */
        float sum;
        asm("add.rn.f32 %0, %1, 0f46800000;" : "=f"(sum) : "f"(bits_float(magnitude)));
        return sign | (float_bits(sum) - 0x46800000u);
    }
    magnitude += 0x7FFFFu + (magnitude >> 20 & 1u);
    return sign | ((magnitude >> 20) - (127u - 7u) * 8u);
}

/* Two values to two codes, the first in the low byte. */
CBN_INLINE u32 e4m3_encode_pair(float first, float second)
{
#if __CUDA_ARCH__ >= 890
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    return pair;
#else
    return e4m3_encode_soft(first) | e4m3_encode_soft(second) << 8;
#endif
}

struct group_scale {
    float scale;      /* as stored in fp32 */
    float multiplier; /* of the elements */
    u32 exponent;     /* as stored in UE8M0; POWER only */
};

/*
 * a = max(1e-10, absmax), s = RN(a * RN(1/448)), r = RN(448/a); POWER: s rounded up to 2^e, r = 2^-e exactly.
 * APPROXIMATE: r = div.approx.ftz(448, a), so 0, and with it every code, where a is above 2^126.
 */
template <bool POWER, bool APPROXIMATE> CBN_INLINE group_scale group_scale_of(u32 absmax_bits)
{
    float a = bits_float(absmax_bits > 0x2EDBE6FFu ? absmax_bits : 0x2EDBE6FFu);
    float scale = mul_rn(a, bits_float(0x3B124925u));
    if (!POWER)
        return {scale, APPROXIMATE ? div_approx(448.0f, a) : div_rn(448.0f, a), 0};
    u32 bits = float_bits(scale);
    u32 exponent = (bits >> 23) + ((bits & 0x7FFFFFu) != 0);
    return {bits_float(exponent << 23), bits_float((254u - exponent) << 23), exponent};
}

/* Bits of the largest finite magnitude; non-negative floats order as their bits. */
template <int DTYPE> CBN_INLINE u32 raw_absmax(const raw16<DTYPE> &raw)
{
    u32 largest = 0;
#pragma unroll
    for (int i = 0; i < LANE_ELEMENTS; i++) {
        u32 magnitude = float_bits(raw_element(raw, i)) & 0x7FFFFFFFu;
        magnitude = magnitude < 0x7F800000u ? magnitude : 0;
        largest = largest > magnitude ? largest : magnitude;
    }
    return largest;
}

/* Over the eight lanes of a group. Every lane of the warp must take part. */
CBN_INLINE u32 group_max(u32 value)
{
#pragma unroll
    for (int lane = 1; lane < GROUP_LANES; lane *= 2) {
        u32 other = __shfl_xor_sync(0xFFFFFFFFu, value, lane, GROUP_LANES);
        value = value > other ? value : other;
    }
    return value;
}

template <bool SPREAD_NAN> CBN_INLINE float scaled_element(float x, float multiplier)
{
    if (SPREAD_NAN) {
        float value = clamp_448(mul_rn(x, multiplier));
        return is_finite(x) ? value : bits_float(0x7FFFFFFFu);
    }
    return clamp_448(mul_rn(is_nan(x) ? 0.0f : x, multiplier));
}

/* One lane's part of a group: its sixteen codes. Every lane of the warp must take part. */
template <int DTYPE, bool POWER, bool SPREAD_NAN, bool APPROXIMATE = false>
CBN_INLINE group_scale quantize_lane(const raw16<DTYPE> &raw, u32 codes[4])
{
    group_scale scale = group_scale_of<POWER, APPROXIMATE>(group_max(raw_absmax(raw)));
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float v[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            v[j] = scaled_element<SPREAD_NAN>(raw_element(raw, 4 * i + j), scale.multiplier);
        codes[i] = e4m3_encode_pair(v[0], v[1]) | e4m3_encode_pair(v[2], v[3]) << 16;
    }
    return scale;
}

#endif
