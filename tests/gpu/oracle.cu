/*
 * Plain kernels of the GPU suite: inputs, placement, the fp64 oracle and the comparisons. Nothing here is shared with
 * the templates under test; no header is needed. Every kernel is a grid-stride loop or one block a row or tile.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define KERNEL extern "C" __global__ void
#define GRID_LOOP(i, total)                                                                                            \
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (total); i += (i64)gridDim.x * blockDim.x)

enum { DTYPE_BF16 = 1, DTYPE_FP16 = 2, DTYPE_FP32 = 3 };

/* splitmix64's finaliser over (seed, index): every element is drawn on its own. */
__device__ u64 draw(u64 seed, u64 index)
{
    u64 z = seed * 0x9E3779B97F4A7C15ull + (index + 1) * 0xD1342543DE82EF95ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

__device__ float unit(u64 bits)
{
    return (float)(bits >> 40) * (1.0f / 16777216.0f);
}

__device__ float power_of_two(int e)
{
    return __int_as_float((e + 127) << 23);
}

/* Rounds to `bits` bits after the leading one, to nearest even. */
__device__ float round_bits(float x, int bits)
{
    if (bits >= 23)
        return x;
    u32 b = __float_as_uint(x), drop = 23u - (u32)bits;
    u32 half = (1u << (drop - 1)) - 1 + ((b >> drop) & 1);
    return __uint_as_float((b + half) & ~((1u << drop) - 1));
}

__device__ u16 to_bf16(float x)
{
    u32 b = __float_as_uint(x);
    if ((b & 0x7FFFFFFFu) > 0x7F800000u)
        return 0x7FFF;
    return (u16)((b + 0x7FFFu + ((b >> 16) & 1)) >> 16);
}

__device__ u16 to_fp16(float x)
{
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}

__device__ double from(const void *data, i64 index, int dtype)
{
    if (dtype == DTYPE_FP32)
        return ((const float *)data)[index];
    u16 b = ((const u16 *)data)[index];
    if (dtype == DTYPE_BF16)
        return __uint_as_float((u32)b << 16);
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(b));
    return f;
}

__device__ double decode_e4m3(u32 code)
{
    int exponent = (int)((code >> 3) & 15);
    double mantissa = (double)(code & 7) * 0.125;
    double value = exponent ? (1.0 + mantissa) * power_of_two(exponent - 7) : mantissa * power_of_two(-6);
    if ((code & 0x7F) == 0x7F)
        value = __longlong_as_double(0x7FF8000000000000ll);
    return code & 0x80 ? -value : value;
}

/* Exponent of group g: neighbours differ by a factor of 8 at least, so that a scale tied to the wrong group shows. */
__device__ int group_exponent(i64 g)
{
    return 3 * ((int)((5 * g) % 7) - 3);
}

KERNEL fill_codes(u8 *codes, i64 count, u64 seed)
{
    GRID_LOOP(i, count)
    {
        u32 code = (u32)(draw(seed, (u64)i) >> 33) & 0xFF;
        codes[i] = (u8)((code & 0x7F) == 0x7F ? code ^ 1 : code);
    }
}

KERNEL fill_activations(float *x, i64 rows, i64 k, u64 seed, int bits)
{
    GRID_LOOP(i, rows * k)
    {
        i64 row = i / k, g = (i % k) / 128;
        float z = round_bits((unit(draw(seed, (u64)i)) - 0.5f) * 8.0f, bits);
        if (fabsf(z) < 0.03125f)
            z = 0.0f;
        x[i] = z * power_of_two(group_exponent(g) + (int)(draw(seed + 1, (u64)row) % 5) - 2);
    }
}

/* Of about the size of a result, exact in bf16 and fp16. */
KERNEL fill_bias(float *bias, i64 count, u64 seed)
{
    GRID_LOOP(i, count)
    bias[i] = round_bits((unit(draw(seed, (u64)i)) - 0.5f) * 4.0f, 7);
}

/* The inverse of the activations' group magnitudes, so that every group weighs the same in a product. */
KERNEL fill_weight_scales(float *scales, i64 rows, i64 groups, u64 seed, int pow2, int base_exponent)
{
    GRID_LOOP(i, rows * groups)
    {
        i64 row = i / groups, g = i % groups;
        int e = base_exponent - group_exponent(g) + 3 * (int)((row + g) % 3) - 3;
        float mantissa = pow2 ? 1.0f : 1.0f + unit(draw(seed, (u64)i)) * 0.99f;
        scales[i] = mantissa * power_of_two(e);
    }
}

/* fp32 rows to dtype at row stride ld. */
KERNEL place_values(const float *source, i64 source_ld, void *target, i64 ld, i64 rows, i64 columns, int dtype)
{
    GRID_LOOP(i, rows * columns)
    {
        i64 row = i / columns, column = i % columns;
        float x = source[row * source_ld + column];
        i64 at = row * ld + column;
        if (dtype == DTYPE_FP32)
            ((float *)target)[at] = x;
        else
            ((u16 *)target)[at] = dtype == DTYPE_BF16 ? to_bf16(x) : to_fp16(x);
    }
}

KERNEL place_bytes(const u8 *source, i64 source_ld, u8 *target, i64 ld, i64 rows, i64 bytes)
{
    GRID_LOOP(i, rows * bytes)
    target[(i / bytes) * ld + i % bytes] = source[(i / bytes) * source_ld + i % bytes];
}

/* Contiguous fp32 [rows,groups] to strides (row, column); packed: exponent bytes, those past the last group are 0xFF.
 */
KERNEL place_scales(const float *source, void *target, i64 rows, i64 groups, i64 row_stride, i64 column_stride,
                    int packed)
{
    i64 columns = packed ? (groups + 3) / 4 : groups;
    GRID_LOOP(i, rows * columns)
    {
        i64 row = i / columns, column = i % columns;
        i64 at = row * row_stride + column * column_stride;
        if (!packed) {
            ((float *)target)[at] = source[row * groups + column];
            continue;
        }
        u32 word = 0;
        for (i64 j = 0; j < 4; j++) {
            i64 g = column * 4 + j;
            u32 exponent = g < groups ? __float_as_uint(source[row * groups + g]) >> 23 : 0xFF;
            word |= (exponent & 0xFF) << (8 * j);
        }
        ((u32 *)target)[at] = word;
    }
}

/*
 * ref[m,n] = sum of (a x sa) x (w x sw) in fp64 and absref the same of magnitudes; contiguous codes and scales.
 * Tile 64 x 64 a block of 256 threads, 4 x 4 a thread.
 */
KERNEL oracle_product(const u8 *a, const float *sa, const u8 *w, const float *sw, i64 m, i64 n, i64 k, i64 rows_a_scale,
                      double *ref, double *absref)
{
    __shared__ double table[256];
    __shared__ double tile_a[16][65];
    __shared__ double tile_w[16][65];
    int thread = (int)threadIdx.x, tx = thread % 16, ty = thread / 16;
    i64 m0 = (i64)blockIdx.y * 64, n0 = (i64)blockIdx.x * 64, groups = (k + 127) / 128;
    double sum[4][4] = {}, magnitude[4][4] = {};
    table[thread] = decode_e4m3((u32)thread);
    __syncthreads();
    for (i64 k0 = 0; k0 < k; k0 += 16) {
        for (int i = thread; i < 16 * 64; i += 256) {
            int row = i / 16, kk = i % 16;
            i64 kc = k0 + kk, g = kc / 128;
            bool in_a = m0 + row < m && kc < k, in_w = n0 + row < n && kc < k;
            tile_a[kk][row] = in_a ? table[a[(m0 + row) * k + kc]] * (double)sa[(m0 + row) * groups + g] : 0.0;
            tile_w[kk][row] =
                in_w ? table[w[(n0 + row) * k + kc]] * (double)sw[((n0 + row) / rows_a_scale) * groups + g] : 0.0;
        }
        __syncthreads();
        for (int kk = 0; kk < 16; kk++) {
            double av[4], wv[4];
            for (int i = 0; i < 4; i++) {
                av[i] = tile_a[kk][ty + 16 * i];
                wv[i] = tile_w[kk][tx + 16 * i];
            }
            for (int i = 0; i < 4; i++) {
                for (int j = 0; j < 4; j++) {
                    sum[i][j] = fma(av[i], wv[j], sum[i][j]);
                    magnitude[i][j] = fma(fabs(av[i]), fabs(wv[j]), magnitude[i][j]);
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            i64 row = m0 + ty + 16 * i, column = n0 + tx + 16 * j;
            if (row < m && column < n) {
                ref[row * n + column] = sum[i][j];
                absref[row * n + column] = magnitude[i][j];
            }
        }
    }
}

/* fp64 product of fp32 operands, one thread an element: the unquantised layer of the end-to-end error. */
KERNEL oracle_plain(const float *x, const float *w, i64 m, i64 n, i64 k, double *ref, double *absref)
{
    GRID_LOOP(i, m * n)
    {
        const float *row = x + (i / n) * k, *column = w + (i % n) * k;
        double sum = 0.0, magnitude = 0.0;
        for (i64 kk = 0; kk < k; kk++) {
            sum = fma((double)row[kk], (double)column[kk], sum);
            magnitude = fma(fabs((double)row[kk]), fabs((double)column[kk]), magnitude);
        }
        ref[i] = sum;
        absref[i] = magnitude;
    }
}

__device__ double block_sum(double x)
{
    __shared__ double part[256];
    part[threadIdx.x] = x;
    __syncthreads();
    for (int width = 128; width > 0; width /= 2) {
        if ((int)threadIdx.x < width)
            part[threadIdx.x] += part[threadIdx.x + width];
        __syncthreads();
    }
    double total = part[0];
    __syncthreads();
    return total;
}

/* error[row] = |out - ref| / max(|ref|, |absref| / sqrt(K)); a block of 256 threads a row. bias: fp32 or null. */
KERNEL row_error(const void *out, i64 ldd, int dtype, const double *ref, const double *absref, const float *bias, i64 n,
                 i64 k, double *error)
{
    i64 row = blockIdx.x;
    double wrong = 0.0, norm = 0.0, bound = 0.0;
    for (i64 j = threadIdx.x; j < n; j += 256) {
        double want = ref[row * n + j] + (bias ? (double)bias[j] : 0.0);
        double difference = from(out, row * ldd + j, dtype) - want;
        double magnitude = absref[row * n + j];
        wrong += difference * difference;
        norm += want * want;
        bound += magnitude * magnitude;
    }
    wrong = sqrt(block_sum(wrong));
    norm = sqrt(block_sum(norm));
    bound = sqrt(block_sum(bound)) / sqrt((double)(k > 0 ? k : 1));
    if (threadIdx.x == 0) {
        double scale = norm > bound ? norm : bound;
        error[row] = wrong == 0.0 ? 0.0 : wrong / scale;
    }
}

/*
 * Lets its dependents start at once, sleeps, and only then copies: a dependent that reads before its wait reads what was
 * there before. Words of 4 bytes.
 */
KERNEL rewrite_late(u32 *w, const u32 *new_w, i64 w_words, u32 *scales, const u32 *new_scales, i64 scale_words,
                    u64 delay_ns)
{
    u64 begun, now;
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begun < delay_ns);
    GRID_LOOP(i, w_words)
    w[i] = new_w[i];
    GRID_LOOP(i, scale_words)
    scales[i] = new_scales[i];
}

/* Bytes of the buffer that are not `pattern`, outside rows x row_bytes at `start` with stride ld_bytes. */
KERNEL count_touched(const u8 *buffer, i64 total, i64 start, i64 ld_bytes, i64 rows, i64 row_bytes, int pattern,
                     u64 *count)
{
    u64 found = 0;
    GRID_LOOP(i, total)
    {
        i64 offset = i - start;
        bool inside = rows > 0 && offset >= 0 && offset / ld_bytes < rows && offset % ld_bytes < row_bytes;
        found += !inside && buffer[i] != (u8)pattern;
    }
    if (found)
        atomicAdd(count, found);
}

/* Elements of `bytes` each that differ in any bit. */
KERNEL count_unequal(const u8 *a, i64 a_ld, const u8 *b, i64 b_ld, i64 rows, i64 row_bytes, int skip_row, u64 *count)
{
    u64 found = 0;
    GRID_LOOP(i, rows * row_bytes)
    {
        i64 row = i / row_bytes, column = i % row_bytes;
        found += row != skip_row && a[row * a_ld + column] != b[row * b_ld + column];
    }
    if (found)
        atomicAdd(count, found);
}
