/*
 * swap_ab's sums: from a warpgroup's registers to D, or over the cluster and then to D. Part of fp8_swap_ab.cuh.
 */
#ifndef FP8_SWAP_AB_OUTPUT_CUH
#define FP8_SWAP_AB_OUTPUT_CUH

#include "fp8_swap_ab_job.cuh"

CBN_INLINE float bias_at(const gemm_args &p, i64 column)
{
    constexpr int DTYPE = BIAS == BIAS_FP32 ? DTYPE_FP32 : OUT;
    if (BIAS == BIAS_NONE || column >= p.n)
        return 0.0f;
    return element_float<DTYPE>(load_element<dtype_bytes(DTYPE)>(p.bias + column * dtype_bytes(DTYPE)));
}

/* Without a bias nothing is added: the sign of a zero stays. */
CBN_INLINE u32 biased_bits(float value, float bias)
{
    return output_bits<OUT>(BIAS == BIAS_NONE ? value : value + bias);
}

/* Two neighbouring columns of D, the first even, of one token. Behind an odd N begins what is not D's. */
CBN_INLINE void store_columns(const gemm_args &p, const job &j, int token, i64 column, float first, float second)
{
    if (token >= j.valid || column >= p.n)
        return;
    u64 address = p.d + ((j.m0 + token) * p.ldd + column) * OUT_BYTES;
    u32 low = biased_bits(first, bias_at(p, column)), high = biased_bits(second, bias_at(p, column + 1));
    if (column + 1 == p.n)
        store_element<OUT_BYTES>(address, low);
    else if (OUT_BYTES == 2)
        store_u32(address, low | high << 16);
    else
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(low), "r"(high) : "memory");
}

/* No cluster: fragments go straight to D. Lanes of even rows take the upper half of a block, odd ones the lower. */
CBN_INLINE void store_fragments(const gemm_args &p, const job &j, const accumulators &total, i64 column)
{
    int lane = threadIdx.x % 32, row = lane / 4;
    bool odd = row & 1;
    column += threadIdx.x / 32 * 16 + (odd ? row + 7 : row);
#pragma unroll
    for (int b = 0; b < TOKEN_BLOCKS; b++) {
#pragma unroll
        for (int t = 0; t < 2; t++) {
            float upper = total[4 * b + t], lower = total[4 * b + 2 + t];
            float other = __shfl_xor_sync(0xFFFFFFFFu, odd ? upper : lower, 4);
            store_columns(p, j, 8 * b + lane % 4 * 2 + t, column, odd ? other : upper, odd ? lower : other);
        }
    }
}

/* Columns of one token out of shared memory: eight, or those that are left. */
CBN_INLINE void store_eight(const gemm_args &p, int token, i64 column, const job &j, u32 from)
{
    u64 address = p.d + ((j.m0 + token) * p.ldd + column) * OUT_BYTES;
    int count = span_count(column, p.n, 8);
    u32 words[4];
    load_shared_4(from, words);
    if (count == 8)
        store_16(address, words);
    else
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < count)
                store_u16(address + 2 * i, words[i / 2] >> 16 * (i % 2));
}

/* A token's 16 columns of a warp are two chunks; every fourth token swaps them, so that eight tokens touch all banks. */
CBN_INLINE u32 staged_at(u32 staging, int token, int half)
{
    return staging + (u32)(token * 32 + ((half ^ (token >> 2 & 1)) << 4));
}

/*
 * The same through shared memory: a warp's 16 columns are 32 bytes of every token, which two lanes store whole.
 */
CBN_INLINE void store_staged(const gemm_args &p, const job &j, const accumulators &total, i64 column)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 staging = j.at.exchange + (u32)(warp * BM * 32);
    column += warp * 16;
    float bias[2] = {bias_at(p, column + lane / 4), bias_at(p, column + lane / 4 + 8)};
#pragma unroll
    for (int b = 0; b < TOKEN_BLOCKS; b++) {
        u32 upper = biased_bits(total[4 * b], bias[0]) | biased_bits(total[4 * b + 1], bias[0]) << 16;
        u32 lower = biased_bits(total[4 * b + 2], bias[1]) | biased_bits(total[4 * b + 3], bias[1]) << 16;
        store_transposed(staged_at(staging, 8 * b + lane % 8, lane / 8 % 2), upper, lower);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < (BM + 15) / 16; i++) {
        int token = 16 * i + lane / 2, half = lane % 2;
        if (token < j.valid)
            store_eight(p, token, column + 8 * half, j, staged_at(staging, token, half));
    }
    __syncwarp(); /* before the next tile's */
}

/* Rows by eight: half h of warp w's fragments is eighth 2 w + h of the tile, which CTA (2 w + h) split / 8 owns. */
CBN_INLINE void send_fragments(const job &j, const accumulators &total)
{
    int lane = threadIdx.x % 32, owned = 8 / j.split;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int eighth = threadIdx.x / 32 * 2 + h, owner = eighth / owned;
        u32 place = (u32)((j.rank * owned + eighth % owned) * TOKEN_BLOCKS * 256 + lane * 8);
        u32 to = address_in(j.at.exchange + place, owner), barrier = address_in(received_barrier(j), owner);
#pragma unroll
        for (int b = 0; b < TOKEN_BLOCKS; b++)
            store_remote(to + b * 256, total[4 * b + 2 * h], total[4 * b + 2 * h + 1], barrier);
    }
}

template <int SOURCES> CBN_INLINE void add_sources(u32 from, int step, float (&sum)[2])
{
    u32 words[SOURCES][2];
#pragma unroll
    for (int i = 0; i < SOURCES; i++)
        load_shared_2(from + i * step, words[i]);
    sum[0] = bits_float(words[0][0]);
    sum[1] = bits_float(words[0][1]);
#pragma unroll
    for (int i = 1; i < SOURCES; i++) {
        asm("add.rn.f32 %0, %0, %1;" : "+f"(sum[0]) : "f"(bits_float(words[i][0])));
        asm("add.rn.f32 %0, %0, %1;" : "+f"(sum[1]) : "f"(bits_float(words[i][1])));
    }
}

/* What was received, added in the cluster's order: a warp takes a block of eight rows by eight tokens at a time. */
CBN_INLINE void store_received(const gemm_args &p, const job &j, i64 column)
{
    int lane = threadIdx.x % 32, row = lane / 4, owned = 8 / j.split, step = owned * TOKEN_BLOCKS * 256;
    bool odd = row & 1;
    for (int block = threadIdx.x / 32; block < owned * TOKEN_BLOCKS; block += MATH_WARPS) {
        u32 from = j.at.exchange + (u32)(block * 256 + lane * 8);
        float sum[2];
        if (j.split == 2)
            add_sources<2>(from, step, sum);
        else if (j.split == 4)
            add_sources<4>(from, step, sum);
        else
            add_sources<8>(from, step, sum);
        float other = __shfl_xor_sync(0xFFFFFFFFu, odd ? sum[0] : sum[1], 4);
        int eighth = j.rank * owned + block / TOKEN_BLOCKS, token = block % TOKEN_BLOCKS * 8 + lane % 4 * 2 + odd;
        store_columns(p, j, token, column + eighth * 8 + (row & ~1), odd ? other : sum[0], odd ? sum[1] : other);
    }
}

/* Another round's sums may come as soon as every CTA of the cluster knows that this CTA has read these. */
CBN_INLINE void release_exchange(const job &j)
{
    math_sync();
    if ((int)threadIdx.x < j.split)
        barrier_arrive_remote(address_in(drained_barrier(j), threadIdx.x));
    __syncwarp();
}

CBN_INLINE void exchange(const gemm_args &p, const job &j, const accumulators &total, i64 column, int round)
{
    bool last = round + 1 == j.rounds;
    if (round > 0)
        barrier_wait_cluster(drained_barrier(j), (round - 1) & 1);
    send_fragments(j, total);
    barrier_wait_cluster(received_barrier(j), round & 1);
    if (!last && threadIdx.x == 0)
        barrier_expect(received_barrier(j), EXCHANGE_BYTES);
    __syncwarp();
    store_received(p, j, column);
    if (!last)
        release_exchange(j);
}

#endif
