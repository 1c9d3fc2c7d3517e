/*
 * The device as the benchmark sees it: the driver by dlopen, memory, and the time of a captured graph of calls.
 * A CUDA call that fails ends the program.
 */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Results are CUresult; streams, graphs and the like are the driver's handles. */
#define DRIVER_MAP(X)                                                                                                  \
    X(cuInit, (unsigned))                                                                                              \
    X(cuDevicePrimaryCtxRetain, (void **, int))                                                                        \
    X(cuCtxSetCurrent, (void *))                                                                                       \
    X(cuDeviceGetName, (char *, int, int))                                                                             \
    X(cuDeviceGetAttribute, (int *, int, int))                                                                         \
    X(cuMemAlloc_v2, (uint64_t *, size_t))                                                                             \
    X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                                     \
    X(cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *))                                                      \
    X(cuStreamCreate, (void **, unsigned))                                                                             \
    X(cuStreamSynchronize, (void *))                                                                                   \
    X(cuStreamBeginCapture_v2, (void *, int))                                                                          \
    X(cuStreamEndCapture, (void *, void **))                                                                           \
    X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                                              \
    X(cuGraphLaunch, (void *, void *))                                                                                 \
    X(cuGraphExecDestroy, (void *))                                                                                    \
    X(cuGraphDestroy, (void *))                                                                                        \
    X(cuGraphGetNodes, (void *, void **, size_t *))                                                                    \
    X(cuGraphNodeGetType, (void *, int *))                                                                             \
    X(cuGraphKernelNodeGetParams_v2, (void *, void *))                                                                 \
    X(cuGraphKernelNodeGetAttribute, (void *, int, void *))                                                            \
    X(cuGraphGetEdges_v2, (void *, void **, void **, void *, size_t *))                                                \
    X(cuEventCreate, (void **, unsigned))                                                                              \
    X(cuEventRecord, (void *, void *))                                                                                 \
    X(cuEventElapsedTime, (float *, void *, void *))

struct driver {
#define DRIVER_X(name, arguments) int(*name) arguments;
    DRIVER_MAP(DRIVER_X)
#undef DRIVER_X
};

extern struct driver driver;

#define MUST(call) device_must(driver.call, #call)
void device_must(int result, const char *call);

struct device {
    char name[96];
    int sms;
    void *stream; /* everything runs on it */
};

extern struct device device;

/* False where there is no driver or no device. Makes device 0's primary context current and a stream. */
bool device_open(void);
uint64_t device_alloc(int64_t bytes);
void device_fill(uint64_t address, unsigned char value, int64_t bytes);

/* Launches the index-th call of a chain on device.stream. False, with the reason printed: the measurement is given up.
 */
typedef bool (*device_launch_fn)(void *user, int index);

/* What the captured graph launches per call: the last kernel of it, and how the calls hang together. */
struct device_shape {
    unsigned grid[3], threads, shared_bytes, cluster;
    int kernels;      /* a call */
    int programmatic; /* edges of all in percent */
};

/*
 * Median over `replays` of a graph of about GRAPH_US, per call, in microseconds; negative when a launch failed. Calls
 * are a multiple of `copies` and end with index % copies == copies - 1.
 */
#define GRAPH_US 2500.0
double device_time(device_launch_fn launch, void *user, int copies, int replays, struct device_shape *ret_shape);

#endif
