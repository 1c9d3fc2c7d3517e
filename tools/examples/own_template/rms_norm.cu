/*
 * residual += x; out = residual / sqrt(mean(residual^2) + eps) * weight, fp32, one block a row.
 * Macros, from the family's table in main.c: THREADS, WIDTH (elements of one access), PDL.
 */
struct rms_norm_args {
    unsigned long long x, residual, weight, out;
    long long rows, cols;
    float eps;
    unsigned int reserved;
};

template <int ELEMENTS> struct alignas(4 * ELEMENTS) pack {
    float v[ELEMENTS];
};

typedef pack<WIDTH> wide;

/* Over the whole block; every thread gets the sum. */
static __device__ float block_sum(float value)
{
    __shared__ float parts[32];
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < THREADS / 32 ? parts[threadIdx.x % 32] : 0.0f;
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
    return value;
}

static __device__ void normalise_row(const rms_norm_args &p, long long row)
{
    const wide *x = (const wide *)p.x + row * (p.cols / WIDTH), *weight = (const wide *)p.weight;
    wide *residual = (wide *)p.residual + row * (p.cols / WIDTH), *out = (wide *)p.out + row * (p.cols / WIDTH);
    float squares = 0.0f;
    for (long long i = threadIdx.x; i < p.cols / WIDTH; i += THREADS) {
        wide sum = residual[i], add = x[i];
        for (int j = 0; j < WIDTH; j++) {
            sum.v[j] += add.v[j];
            squares += sum.v[j] * sum.v[j];
        }
        residual[i] = sum;
    }
    float factor = rsqrtf(block_sum(squares) / p.cols + p.eps);
    for (long long i = threadIdx.x; i < p.cols / WIDTH; i += THREADS) {
        wide sum = residual[i], scale = weight[i];
        for (int j = 0; j < WIDTH; j++)
            sum.v[j] *= factor * scale.v[j];
        out[i] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) rms_norm(const __grid_constant__ rms_norm_args p)
{
#if PDL
    /* Before anything is read that an earlier kernel may still be writing. */
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
    for (long long row = blockIdx.x; row < p.rows; row += gridDim.x)
        normalise_row(p, row);
}
