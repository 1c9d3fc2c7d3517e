/*
 * fp8_quantize: [T,G,K] to e4m3 codes and a scale per 128 of K.
 *
 * One warp owns four consecutive groups of one row, which share a packed word: eight lanes a group, sixteen elements a
 * lane. Macros: IN, SCALE, POW2, PROPAGATE, APPROX, PDL, VEC.
 */
#include "fp8_common.cuh"

constexpr int WORD_GROUPS = 4;
constexpr bool PACKED = SCALE == SCALE_UE8M0;
constexpr int IN_BYTES = dtype_bytes(IN);
static_assert(!APPROX || !(POW2 || PACKED), "a power of two has an exact reciprocal");

struct unit {
    i64 t, g, word;
};

/* index = (t * g_count + g) * words + word; the short division is worth its branch, a unit being 512 elements. */
CBN_INLINE unit unit_of(i64 index, i64 units, i64 words, i64 g_count)
{
    if (units <= 0xFFFFFFFFll) {
        u32 row = (u32)index / (u32)words;
        u32 t = row / (u32)g_count;
        return {t, row - t * (u32)g_count, (u32)index - row * (u32)words};
    }
    i64 row = index / words;
    return {row / g_count, row % g_count, index % words};
}

CBN_INLINE void store_codes(u64 address, const u32 codes[4], int count)
{
    if (VEC == 16 && count == LANE_ELEMENTS) {
        store_16(address, codes);
        return;
    }
#pragma unroll
    for (int i = 0; i < LANE_ELEMENTS; i++)
        if (i < count)
            store_u8(address + i, codes[i / 4] >> 8 * (i % 4));
}

CBN_INLINE void store_scales(const quantize_args &p, const unit &u, const group_scale &scale, i64 group, bool present)
{
    u64 row = p.scales + 4 * (u.t * p.s_t + u.g * p.s_g);
    int lane = threadIdx.x % 32;
    if (PACKED) {
        u32 word = present ? scale.exponent << 8 * (lane / GROUP_LANES) : 0;
        word |= __shfl_xor_sync(0xFFFFFFFFu, word, 8);
        word |= __shfl_xor_sync(0xFFFFFFFFu, word, 16);
        if (lane == 0)
            store_u32(row + 4 * (u.word * p.s_s), word);
    } else if (present && lane % GROUP_LANES == 0) {
        store_u32(row + 4 * (group * p.s_s), float_bits(scale.scale));
    }
}

CBN_INLINE void quantize_unit(const quantize_args &p, const unit &u, i64 groups)
{
    int lane = threadIdx.x % 32;
    i64 group = u.word * WORD_GROUPS + lane / GROUP_LANES;
    i64 first = group * GROUP + lane % GROUP_LANES * LANE_ELEMENTS;
    int count = span_count(first, p.k, LANE_ELEMENTS);
    raw16<IN> raw;
    load_raw(raw, p.x + (u.t * p.x_t + u.g * p.x_g + first) * IN_BYTES, count);
    u32 codes[4];
    group_scale scale = quantize_lane<IN, POW2 || PACKED, PROPAGATE != 0, APPROX != 0>(raw, codes);
    store_codes(p.codes + u.t * p.c_t + u.g * p.c_g + first, codes, count);
    store_scales(p, u, scale, group, group < groups);
}

extern "C" __global__ void __launch_bounds__(1024) cbn_fp8_quantize(const __grid_constant__ quantize_args p)
{
    pdl_launch_dependents(); /* at the top: a GEMM that reads the codes fetches its weights meanwhile */
    pdl_wait();
    i64 groups = (p.k + GROUP - 1) / GROUP;
    i64 words = (groups + WORD_GROUPS - 1) / WORD_GROUPS;
    i64 units = valid_rows(p.m_valid, p.t) * p.g * words;
    i64 warps = blockDim.x / 32;
    for (i64 index = blockIdx.x * warps + threadIdx.x / 32; index < units; index += gridDim.x * warps)
        quantize_unit(p, unit_of(index, units, words, p.g), groups);
}
