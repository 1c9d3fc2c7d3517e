/*
 * The benchmark's own kernels: inputs, the fp64 reference, its comparison, and the read floor. One is cut per value of
 * KERNEL (the numbers of enum bench_kernel). PDL is 1 where the launch is programmatic; only the floor has it.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

/* struct bench_args of kernels.h. */
struct bench_args {
    u64 a, a_scale, w, w_scale, d, reference, sums;
    i64 m, n, k;
    i64 a_scale_stride, w_scale_stride;
    i64 count, copy_stride;
    i64 chunk, stages, early;
};

#define GROUP 128
#define GRID_LOOP(i, total)                                                                                            \
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (total); i += (i64)gridDim.x * blockDim.x)

static __device__ u64 draw(u64 index)
{
    u64 z = (index + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static __device__ float unit(u32 bits)
{
    return (float)(bits >> 8) * (1.0f / 16777216.0f);
}

#if KERNEL == 0
/* count words of eight codes: every code but the two NaNs. */
extern "C" __global__ void fill_codes(const __grid_constant__ bench_args p)
{
    GRID_LOOP(i, p.count)
    {
        u64 codes = draw((u64)i), word = 0;
        for (int b = 0; b < 8; b++) {
            u64 code = codes >> 8 * b & 255;
            word |= ((code & 127) == 127 ? code ^ 1 : code) << 8 * b;
        }
        ((u64 *)p.w)[i] = word;
    }
}

#elif KERNEL == 1
/* count copies of [n, k] scales between 0.005 and 0.015; copies and rows lie copy_stride and w_scale_stride apart. */
extern "C" __global__ void fill_scales(const __grid_constant__ bench_args p)
{
    GRID_LOOP(i, p.count * p.n * p.k)
    {
        i64 column = i % p.k, row = i / p.k % p.n, copy = i / p.k / p.n;
        float *scale = (float *)p.w_scale + copy * p.copy_stride + row * p.w_scale_stride + column;
        *scale = 0.005f + 0.01f * unit((u32)draw((u64)i + (1ull << 40)));
    }
}

#elif KERNEL == 2
/* [m, k] bf16, normal, each group of 128 with a magnitude of its own between 1/8 and 16. */
extern "C" __global__ void fill_activations(const __grid_constant__ bench_args p)
{
    GRID_LOOP(i, p.m * p.k)
    {
        u64 bits = draw((u64)i + (2ull << 40));
        float radius = sqrtf(-2.0f * logf(unit((u32)bits) + 1e-7f)), angle = unit((u32)(bits >> 32));
        int exponent = (int)(draw((u64)i / GROUP + (3ull << 40)) & 7) - 3;
        u32 value = __float_as_uint(radius * cospif(2.0f * angle) * exp2f((float)exponent));
        ((u16 *)p.a)[i] = (u16)((value + 0x7FFF + (value >> 16 & 1)) >> 16);
    }
}

#elif KERNEL == 3
static __device__ double decode(u32 code)
{
    int exponent = (int)(code >> 3 & 15), mantissa = (int)(code & 7);
    double value = exponent ? ldexp(8.0 + mantissa, exponent - 10) : ldexp((double)mantissa, -9);
    value = (code & 127) == 127 ? __longlong_as_double(0x7FF8000000000000ll) : value;
    return code & 128 ? -value : value;
}

#define ROWS 8 /* of A that a warp takes with one row of W */

/* reference [m, n] in fp64, group by group; a_scale is [k/128, a_scale_stride], w_scale [n/128, w_scale_stride]. */
extern "C" __global__ void multiply(const __grid_constant__ bench_args p)
{
    __shared__ double values[256];
    values[threadIdx.x] = decode(threadIdx.x);
    __syncthreads();
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    i64 n = warp % p.n, m = warp / p.n * ROWS, groups = p.k / GROUP;
    double total[ROWS] = {};
    if (m >= p.m)
        return;
    for (i64 g = 0; g < groups; g++) {
        u32 w = *(const u32 *)(p.w + n * p.k + g * GROUP + lane * 4);
        double w_scale = ((const float *)p.w_scale)[n / GROUP * p.w_scale_stride + g];
        for (int r = 0; r < ROWS && m + r < p.m; r++) {
            u32 a = *(const u32 *)(p.a + (m + r) * p.k + g * GROUP + lane * 4);
            double sum = 0.0;
            for (int b = 0; b < 4; b++)
                sum += values[w >> 8 * b & 255] * values[a >> 8 * b & 255];
            total[r] += sum * w_scale * ((const float *)p.a_scale)[g * p.a_scale_stride + m + r];
        }
    }
    for (int r = 0; r < ROWS && m + r < p.m; r++) {
        for (int step = 16; step > 0; step /= 2)
            total[r] += __shfl_xor_sync(0xFFFFFFFFu, total[r], step);
        if (lane == 0)
            ((double *)p.reference)[(m + r) * p.n + n] = total[r];
    }
}

#elif KERNEL == 4
/* sums[0] += |d - reference|^2, [1] += |reference|^2, [2] += not finite, [3] += touched of count elements behind d. */
extern "C" __global__ void compare(const __grid_constant__ bench_args p)
{
    double sums[4] = {};
    const u16 *d = (const u16 *)p.d;
    GRID_LOOP(i, p.m * p.n)
    {
        double value = __uint_as_float((u32)d[i] << 16), wanted = ((const double *)p.reference)[i];
        sums[2] += (d[i] & 0x7F80) == 0x7F80;
        sums[0] += (d[i] & 0x7F80) == 0x7F80 ? 0.0 : (value - wanted) * (value - wanted);
        sums[1] += wanted * wanted;
    }
    GRID_LOOP(i, p.count)
    sums[3] += d[p.m * p.n + i] != 0xFFFF;
    for (int i = 0; i < 4; i++) {
        for (int step = 16; step > 0; step /= 2)
            sums[i] += __shfl_xor_sync(0xFFFFFFFFu, sums[i], step);
        if (threadIdx.x % 32 == 0)
            atomicAdd((double *)p.sums + i, sums[i]);
    }
}

#elif KERNEL == 5
#define STAGES_MAX 32

static __device__ u32 shared_address(const void *pointer)
{
    return (u32)__cvta_generic_to_shared(pointer);
}

static __device__ void wait_full(u32 barrier, u32 parity)
{
    asm volatile("{\n"
                 ".reg .pred full;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 full, [%0], %1;\n"
                 "@!full bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* Chunk number `chunk` of the weights into a slot of the ring; the last one may be shorter. */
static __device__ void fetch(const bench_args &p, i64 chunk, u32 slot, u32 barrier)
{
    i64 offset = chunk * p.chunk, left = p.count - offset;
    u32 bytes = (u32)(left < p.chunk ? left : p.chunk);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(slot),
                 "l"(p.w + offset), "r"(bytes), "r"(barrier)
                 : "memory");
}

static __device__ void wait_for_predecessor()
{
#if PDL
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/*
 * Reads count bytes at w and does nothing else: what a product that streams its weights cannot go below. One thread a
 * CTA keeps `stages` bulk copies of `chunk` bytes in flight; early: the ring is filled before the dependency wait.
 */
extern "C" __global__ void __launch_bounds__(32) read_floor(const __grid_constant__ bench_args p)
{
    extern __shared__ __align__(128) u8 ring[];
    __shared__ u64 barriers[STAGES_MAX];
    i64 chunks = (p.count + p.chunk - 1) / p.chunk, next = blockIdx.x;
    u32 slots = shared_address(ring), first = shared_address(barriers), parity = 0;
    int stages = (int)p.stages;
    if (threadIdx.x != 0)
        return;
    for (int i = 0; i < stages; i++)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(first + 8 * i) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if (!p.early)
        wait_for_predecessor();
#if PDL
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
    for (int i = 0; i < stages && next < chunks; i++, next += gridDim.x)
        fetch(p, next, slots + i * (u32)p.chunk, first + 8 * i);
    if (p.early)
        wait_for_predecessor();
    int slot = 0;
    for (i64 done = blockIdx.x; done < chunks; done += gridDim.x) {
        wait_full(first + 8 * slot, parity);
        if (next < chunks) {
            fetch(p, next, slots + slot * (u32)p.chunk, first + 8 * slot);
            next += gridDim.x;
        }
        if (++slot == stages) {
            slot = 0;
            parity ^= 1;
        }
    }
}
#endif
