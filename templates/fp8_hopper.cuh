/*
 * Hopper's own instructions (sm_90a) as the kernels use them: mbarriers, tensor copies (TMA), stores into other CTAs of a
 * cluster, wgmma on e4m3 with 64 rows of shared memory on its m side and MMA_N columns on its n side, or BM where that
 * is not defined.
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

CBN_INLINE void load_shared_4(u32 address, float (&values)[4])
{
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
                 : "r"(address));
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

CBN_INLINE void store_shared_floats(u32 address, float a, float b, float c, float d)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}

/* Four 8 x 8 matrices of 16-bit elements; lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i. */
CBN_INLINE void store_matrices(u32 address, u32 a, u32 b, u32 c, u32 d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
                 "r"(c), "r"(d)
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

/* Gives back a stage that only asynchronous copies fill: nothing of this thread's own is to become visible. */
CBN_INLINE void barrier_arrive_peer(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
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

/* The same into every CTA of the cluster in `peers`, at the same place and barrier of each. */
CBN_INLINE void copy_group_shared(u32 to, const tensor_map &map, int row, int group, u32 barrier, u64 policy, u32 peers)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster."
                 "L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(to),
                 "l"(&map), "r"(group * GROUP), "r"(row), "r"(barrier), "h"((unsigned short)peers), "l"(policy)
                 : "memory");
}

CBN_INLINE void store_box(const tensor_map &map, u32 from, int column, int row)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
                 "r"(column), "r"(row), "r"(from)
                 : "memory");
}

CBN_INLINE void store_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Until this thread's stores have read what they store. */
CBN_INLINE void store_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

CBN_INLINE void store_wait()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* From here to another CTA of the cluster. */
CBN_INLINE void send_bytes(u32 to, u32 from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "r"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

CBN_INLINE void fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
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

/* Arrives once this thread's words are there; the barrier counts it. */
CBN_INLINE void copy_words_arrive(u32 barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

CBN_INLINE void copy_words_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* wgmma takes its registers by number: the texts of each width. MMA_N is its n side. */
#ifndef MMA_N
#define MMA_N BM
#endif
#define CBN_TEXT_OF(value) #value
#define CBN_TEXT(value) CBN_TEXT_OF(value)
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
#define R0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define R16 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define R32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define R48 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define R64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define R80 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#if MMA_N == 8
#define D_TEXT "{%0, %1, %2, %3}, %4, %5"
#define D_LIST D4(0)
#define D_PREDICATE "%6"
#elif MMA_N == 16
#define D_TEXT "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9"
#define D_LIST D4(0), D4(4)
#define D_PREDICATE "%10"
#elif MMA_N == 24
#define D_TEXT "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11}, %12, %13"
#define D_LIST D4(0), D4(4), D4(8)
#define D_PREDICATE "%14"
#elif MMA_N == 32
#define D_TEXT "{" R0 "}, %16, %17"
#define D_LIST D16(0)
#define D_PREDICATE "%18"
#elif MMA_N == 48
#define D_TEXT "{" R0 ", %16, %17, %18, %19, %20, %21, %22, %23}, %24, %25"
#define D_LIST D16(0), D4(16), D4(20)
#define D_PREDICATE "%26"
#elif MMA_N == 64
#define D_TEXT "{" R0 ", " R16 "}, %32, %33"
#define D_LIST D16(0), D16(16)
#define D_PREDICATE "%34"
#elif MMA_N == 96
#define D_TEXT "{" R0 ", " R16 ", " R32 "}, %48, %49"
#define D_LIST D16(0), D16(16), D16(32)
#define D_PREDICATE "%50"
#elif MMA_N == 128
#define D_TEXT "{" R0 ", " R16 ", " R32 ", " R48 "}, %64, %65"
#define D_LIST D16(0), D16(16), D16(32), D16(48)
#define D_PREDICATE "%66"
#elif MMA_N == 160
#define D_TEXT "{" R0 ", " R16 ", " R32 ", " R48 ", " R64 "}, %80, %81"
#define D_LIST D16(0), D16(16), D16(32), D16(48), D16(64)
#define D_PREDICATE "%82"
#elif MMA_N == 192
#define D_TEXT "{" R0 ", " R16 ", " R32 ", " R48 ", " R64 ", " R80 "}, %96, %97"
#define D_LIST D16(0), D16(16), D16(32), D16(48), D16(64), D16(80)
#define D_PREDICATE "%98"
#endif

typedef float accumulators[MMA_N / 2]; /* of a lane: per block of 8 columns, rows g and g + 8 by columns 2 t and 2 t + 1 */

/* d = rows . columns^T (+ d) over 32 of K. */
CBN_INLINE void multiply(accumulators &d, u64 rows, u64 columns, int accumulate)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " D_PREDICATE ", 0; wgmma.mma_async.sync.aligned.m64n" CBN_TEXT(
                     MMA_N) "k32.f32.e4m3.e4m3 " D_TEXT ", p, 1, 1; }"
                 : D_LIST
                 : "l"(rows), "l"(columns), "r"(accumulate));
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
    for (int i = 0; i < MMA_N / 2; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

/* Rows of 128 bytes, swizzled in atoms of 8 rows: 1024 bytes from atom to atom. */
CBN_INLINE u64 descriptor_of(u32 address)
{
    return (u64)((address & 0x3FFFFu) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#endif
