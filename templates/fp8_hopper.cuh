/*
 * Hopper's own instructions (sm_90a) as the kernels use them: mbarriers, tensor copies (TMA), stores into other CTAs of a
 * cluster, wgmma on e4m3 with 64 rows of shared memory on its m side and BM columns on its n side. Wants the macro BM.
 */
#ifndef FP8_HOPPER_CUH
#define FP8_HOPPER_CUH

#include "fp8_common.cuh"

CBN_INLINE u32 load_shared(u32 address)
{
    u32 word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
    return word;
}

CBN_INLINE void load_shared_2(u32 address, u32 (&words)[2])
{
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "r"(address));
}

CBN_INLINE void store_shared(u32 address, u32 word)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

CBN_INLINE void store_shared_2(u32 address, float first, float second)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(first), "f"(second) : "memory");
}

CBN_INLINE void store_shared_4(u32 address, const u32 (&words)[4])
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
}

CBN_INLINE void load_shared_4(u32 address, u32 (&words)[4])
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address));
}

/* Two 8x8 matrices of 16 bits, columns to rows of 16 bytes; lanes 0-7 and 8-15 name the rows of each. */
CBN_INLINE void store_transposed(u32 row, u32 first, u32 second)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(first), "r"(second)
                 : "memory");
}

CBN_INLINE u32 shared_address(const void *pointer)
{
    return (u32)__cvta_generic_to_shared(pointer);
}

CBN_INLINE void barrier_init(u32 barrier, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

CBN_INLINE void barrier_expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

CBN_INLINE void barrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

CBN_INLINE void barrier_wait(u32 barrier, u32 parity)
{
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

CBN_INLINE bool barrier_done(u32 barrier, u32 parity)
{
    u32 done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done != 0;
}

/* For what other CTAs of the cluster sent. */
CBN_INLINE void barrier_wait_cluster(u32 barrier, u32 parity)
{
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

CBN_INLINE void barrier_arrive_remote(u32 barrier)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* The same place in the shared memory of another CTA of the cluster. */
CBN_INLINE u32 address_in(u32 address, u32 rank)
{
    u32 remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    return remote;
}

CBN_INLINE void store_remote(u32 address, float first, float second, u32 barrier)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(address),
                 "f"(first), "f"(second), "r"(barrier)
                 : "memory");
}

CBN_INLINE void prefetch_map(const tensor_map &map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/* Weights pass once; tokens are read by every tile. */
CBN_INLINE u64 policy_evict_first()
{
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

CBN_INLINE u64 policy_evict_last()
{
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

CBN_INLINE void copy_groups(u32 to, const tensor_map &map, int row, int group, u32 barrier, u64 policy)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
                 "[%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
                 "l"(&map), "r"(0), "r"(row), "r"(group), "r"(barrier), "l"(policy)
                 : "memory");
}

CBN_INLINE void copy_group(u32 to, const tensor_map &map, int row, int group, u32 barrier, u64 policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
                 "[%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(&map), "r"(group * GROUP), "r"(row), "r"(barrier), "l"(policy)
                 : "memory");
}

/* Both addresses and the count at multiples of 16. */
CBN_INLINE void copy_bytes(u32 to, u64 from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* Four bytes, or zeros where there are none. */
CBN_INLINE void copy_word(u32 to, u64 from, bool present)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(present ? 4 : 0) : "memory");
}

CBN_INLINE void copy_words_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* wgmma takes its registers by number: the texts of each BM. */
#define CBN_TEXT_OF(value) #value
#define CBN_TEXT(value) CBN_TEXT_OF(value)
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#if BM == 8
#define D_TEXT "{%0, %1, %2, %3}, %4, %5"
#define D_LIST D4(0)
#define D_PREDICATE "%6"
#elif BM == 16
#define D_TEXT "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9"
#define D_LIST D4(0), D4(4)
#define D_PREDICATE "%10"
#elif BM == 24
#define D_TEXT "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11}, %12, %13"
#define D_LIST D4(0), D4(4), D4(8)
#define D_PREDICATE "%14"
#elif BM == 32
#define D_TEXT "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17"
#define D_LIST D4(0), D4(4), D4(8), D4(12)
#define D_PREDICATE "%18"
#elif BM == 48
#define D_TEXT                                                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23}, " \
    "%24, %25"
#define D_LIST D4(0), D4(4), D4(8), D4(12), D4(16), D4(20)
#define D_PREDICATE "%26"
#elif BM == 64
#define D_TEXT                                                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "  \
    "%24, %25, %26, %27, %28, %29, %30, %31}, %32, %33"
#define D_LIST D4(0), D4(4), D4(8), D4(12), D4(16), D4(20), D4(24), D4(28)
#define D_PREDICATE "%34"
#endif

typedef float accumulators[BM / 2]; /* of a lane: per block of 8 tokens, rows g and g + 8 by tokens 2 t and 2 t + 1 */

/* d = W . A^T (+ d) over 32 of K. */
CBN_INLINE void multiply(accumulators &d, u64 w, u64 a, int accumulate)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " D_PREDICATE ", 0; wgmma.mma_async.sync.aligned.m64n" CBN_TEXT(
                     BM) "k32.f32.e4m3.e4m3 " D_TEXT ", p, 1, 1; }"
                 : D_LIST
                 : "l"(w), "l"(a), "r"(accumulate));
}

CBN_INLINE void multiply_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

CBN_INLINE void multiply_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Until all but the LEFT youngest groups are done. */
template <int LEFT> CBN_INLINE void multiply_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* The compiler must not move what reads the registers ahead of the wait. */
CBN_INLINE void multiply_settle(accumulators &d)
{
#pragma unroll
    for (int i = 0; i < BM / 2; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

/* Rows of 128 bytes, swizzled in atoms of 8 rows: 1024 bytes from atom to atom. */
CBN_INLINE u64 descriptor_of(u32 address)
{
    return (u64)((address & 0x3FFFFu) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#endif
