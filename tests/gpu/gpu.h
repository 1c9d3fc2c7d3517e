/*
 * The device as the suite sees it: the driver by dlopen of its own, plain cuMemAlloc memory, the oracle's kernels.
 * A CUDA call that fails ends the program: after one, nothing else on the device can be believed.
 */
#ifndef TESTS_GPU_GPU_H
#define TESTS_GPU_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#define GPU_CALL_MAP(X)                                                                                                \
    X(cuInit)                                                                                                          \
    X(cuDriverGetVersion)                                                                                              \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceGet)                                                                                                     \
    X(cuDeviceGetName)                                                                                                 \
    X(cuDeviceGetAttribute)                                                                                            \
    X(cuGetErrorName)                                                                                                  \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuDevicePrimaryCtxRelease)                                                                                       \
    X(cuCtxSetCurrent)                                                                                                 \
    X(cuCtxSynchronize)                                                                                                \
    X(cuMemAlloc)                                                                                                      \
    X(cuMemFree)                                                                                                       \
    X(cuMemcpyHtoD)                                                                                                    \
    X(cuMemcpyDtoH)                                                                                                    \
    X(cuMemcpyDtoD)                                                                                                    \
    X(cuMemsetD8)                                                                                                      \
    X(cuModuleLoadData)                                                                                                \
    X(cuModuleUnload)                                                                                                  \
    X(cuModuleGetFunction)                                                                                             \
    X(cuLaunchKernel)                                                                                                  \
    X(cuStreamCreate)                                                                                                  \
    X(cuStreamDestroy)                                                                                                 \
    X(cuStreamSynchronize)                                                                                             \
    X(cuStreamBeginCapture)                                                                                            \
    X(cuStreamEndCapture)                                                                                              \
    X(cuStreamIsCapturing)                                                                                             \
    X(cuGraphInstantiateWithFlags)                                                                                     \
    X(cuGraphLaunch)                                                                                                   \
    X(cuGraphExecDestroy)                                                                                              \
    X(cuGraphDestroy)

struct gpu_calls {
#define X(function) __typeof__(&function) function;
    GPU_CALL_MAP(X)
#undef X
};

extern struct gpu_calls gpu;

#define GPU(call) gpu_must(gpu.call, #call)
void gpu_must(CUresult result, const char *call);

/* What the device is about to do: told when a call fails, or when gpu_finish loses patience. */
void gpu_doing(const char *what);
/* cuCtxSynchronize. A device that is not done after so many seconds ends the program; 0: waits for ever. */
void gpu_finish(unsigned seconds);

#define GPU_KERNEL_MAP(X)                                                                                              \
    X(fill_codes)                                                                                                      \
    X(fill_activations)                                                                                                \
    X(fill_bias)                                                                                                       \
    X(fill_weight_scales)                                                                                              \
    X(place_values)                                                                                                    \
    X(place_bytes)                                                                                                     \
    X(place_scales)                                                                                                    \
    X(oracle_product)                                                                                                  \
    X(oracle_plain)                                                                                                    \
    X(row_error)                                                                                                       \
    X(rewrite_late)                                                                                                    \
    X(count_touched)                                                                                                   \
    X(count_unequal)

enum gpu_kernel {
#define X(name) GPU_KERNEL_##name,
    GPU_KERNEL_MAP(X)
#undef X
        GPU_KERNEL_COUNT
};

struct gpu_facts {
    char name[96];
    char why[256]; /* there is no device: why */
    uint32_t arch; /* CBN_ARCH */
    int sms;
    int driver_version; /* 13000 */
    int nvrtc_version;  /* 13000: major * 1000 + minor * 10, as the driver counts */
};

/* False, with ret_facts->why, when there is no driver or no device. Makes device 0's primary context current. */
bool gpu_open(struct gpu_facts *ret_facts);
/* Compiles the oracle for the device. False prints NVRTC's log. */
bool gpu_oracle_open(const struct gpu_facts *facts, struct gpu_facts *ret_facts);
void gpu_close(void);
/* The device's context in the calling thread. */
void gpu_make_current(void);

/* Launches on the null stream; arguments are pointers, as cuLaunchKernel takes them. */
void gpu_launch(enum gpu_kernel kernel, int64_t blocks_x, int64_t blocks_y, void **arguments);
/* In a stream, one row of blocks. */
void gpu_launch_in(enum gpu_kernel kernel, int64_t blocks, void **arguments, CUstream stream);
/* One thread an element, at most 16,384 blocks of 256: for the grid-stride kernels. */
void gpu_launch_over(enum gpu_kernel kernel, int64_t elements, void **arguments);

CUdeviceptr gpu_alloc(int64_t bytes);
void gpu_free(CUdeviceptr *address);
void gpu_read(void *ret_data, CUdeviceptr address, int64_t bytes);
void gpu_write(CUdeviceptr address, const void *data, int64_t bytes);
void gpu_fill(CUdeviceptr address, uint8_t value, int64_t bytes);

#endif
