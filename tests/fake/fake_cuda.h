/*
 * Control of the fake driver: a libcuda.so.1 of our own that runs nothing, records launches and checks rules.
 *
 * A test opens the very file that the runtime opens (option cuda_path) and finds these functions in it. The library
 * has no DT_SONAME, so that NVRTC's own dlopen of libcuda.so.1 never reaches it. Its start values come from
 * FAKE_CUDA_DEVICES, FAKE_CUDA_CAPABILITY, FAKE_CUDA_SMS and FAKE_CUDA_VERSION (defaults 1, 90, 132, 13000).
 */
#ifndef CBN_TESTS_FAKE_CUDA_H
#define CBN_TESTS_FAKE_CUDA_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FAKE_PARAMETER_BYTES_MAX 1024
#define FAKE_DEVICES_MAX 8

struct fake_launch {
    char kernel[128];
    uint32_t grid[3], block[3], cluster[3]; /* cluster: 1, 1, 1 without the attribute */
    uint32_t shared_bytes;                  /* dynamic */
    uint32_t attribute_count;
    uint32_t pdl;       /* 1: programmatic stream serialisation allowed */
    uint32_t capturing; /* 1: into a graph */
    uint32_t parameter_bytes; /* from the first parameter to the end of the last */
    uint64_t context_id;
    uint64_t image_sum; /* of the cubin that holds the kernel: says which specialisation ran */
    void *stream;
    uint8_t parameters[FAKE_PARAMETER_BYTES_MAX];
};

#define FAKE_MAP_MARK 0x50414D46u
#define FAKE_MAP_RANK_MAX 3

/* What the fake writes into a CUtensorMap: its own arguments. Enumerators are cuda.h's. */
struct fake_map {
    uint32_t mark, type, rank, interleave, swizzle, promotion, fill, reserved;
    uint64_t address;
    uint64_t extents[FAKE_MAP_RANK_MAX], strides[FAKE_MAP_RANK_MAX]; /* the last stride is 0 */
    uint32_t box[FAKE_MAP_RANK_MAX];
};

/* X(return type, name, (arguments)) */
#define FAKE_CUDA_MAP(X)                                                                                               \
    X(void, reset, (void))              /* start values again; every handle is gone */                                 \
    X(void, set_version, (int version)) /* 12040 is 12.4 */                                                            \
    X(void, set_device_count, (int count))                                                                             \
    X(void, set_device, (int device, int capability, int sms))                                                         \
    X(void, script,                                                                                                    \
      (const char *function, uint32_t nth, int code)) /* the nth call from now (1: the next) gives code */             \
    X(uint32_t, calls, (const char *function))        /* so far; 0 for an unknown name */                              \
    X(uint32_t, calls_total, (void))                  /* of every function */                                          \
    X(uint32_t, launch_count, (void))                                                                                  \
    X(bool, launch_get, (uint32_t index, struct fake_launch * ret_launch))                                             \
    X(void, launches_clear, (void))                                                                                    \
    X(uint32_t, violations, (void))                                                                                    \
    X(const char *, violation_text, (void)) /* the first one; "" when there is none */                                 \
    X(void *, context_create, (int device))                                                                            \
    X(void, context_set, (void *context)) /* current in the calling thread; NULL: none */                              \
    X(uint64_t, context_id, (void *context))                                                                           \
    X(void *, stream_create, (void))                                /* in the current context */                       \
    X(int, capture_begin, (void *stream, int mode))                 /* mode: CUstreamCaptureMode; 0 is global */       \
    X(int, capture_status, (void *stream))                          /* 0: none, 1: active, 2: invalidated */           \
    X(int, capture_end, (void *stream, uint32_t *ret_launches))     /* CUresult: 901 when it was invalidated */        \
    X(int, thread_mode, (void))                                     /* capture mode of the calling thread */           \
    X(uint64_t, image_sum, (const void *image))                     /* of a cubin, 0 when it is none */                \
    X(uint32_t, shared_attribute, (const char *kernel, int device)) /* the largest that was set */                     \
    X(int, carveout, (const char *kernel, int device))              /* percent of shared memory; 0: never set */       \
    X(void, set_quick, (bool quick)) /* for measurements: calls are counted, launches neither checked nor recorded */

struct fake_cuda {
    void *library;
#define FAKE_X(type, name, arguments) type(*name) arguments;
    FAKE_CUDA_MAP(FAKE_X)
#undef FAKE_X
};

static inline bool fake_cuda_open(const char *path, struct fake_cuda *ret_fake)
{
    void *symbol = NULL;
    ret_fake->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!ret_fake->library)
        return false;
#define FAKE_X(type, name, arguments)                                                                                  \
    symbol = dlsym(ret_fake->library, "fake_cuda_" #name);                                                             \
    if (!symbol)                                                                                                       \
        return false;                                                                                                  \
    memcpy(&ret_fake->name, &symbol, sizeof(symbol));
    FAKE_CUDA_MAP(FAKE_X)
#undef FAKE_X
    return true;
}

#endif
