/*
 * Loaded kernels. Owns the CUlibrary, the cubin's bytes (the driver may read them until the unload), which contexts
 * the kernel is loaded into, and the shared-memory attribute of each device. Chooses nothing, reads no file.
 *
 * Lock: load_lock, one a kernel, held across the driver's load of this kernel and taken with no other lock held. The
 * launch path takes none.
 */
#include "launch/kernel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "driver/cuda_table.h"

/* Ids of destroyed contexts are never given again, so their slots are reused round-robin: what that costs a living
 * context is one more (idempotent) load. */
#define CONTEXTS_MAX 64
#define DEVICES_MAX 64

struct cbn__kernel {
    const struct cbn__driver *driver;
    const struct cbn__cuda_table *cuda;
    struct cbn__buf cubin;
    CUlibrary library;
    CUkernel handle;
    _Atomic uint64_t ready[CONTEXTS_MAX]; /* context id + 1; 0: free */
    pthread_mutex_t load_lock;            /* guards what follows, and writes of ready */
    uint32_t next_slot;
    _Atomic uint32_t shared_bytes[DEVICES_MAX]; /* as set; only raised */
};

/* The calling thread's capture mode while it does what would break another thread's capture. */
struct relaxed_mode {
    const struct cbn__cuda_table *cuda;
    CUstreamCaptureMode previous;
    bool exchanged;
};

static struct relaxed_mode relaxed_mode_begin(const struct cbn__cuda_table *cuda)
{
    struct relaxed_mode mode = {cuda, CU_STREAM_CAPTURE_MODE_RELAXED, false};
    mode.exchanged = cuda->cuThreadExchangeStreamCaptureMode(&mode.previous) == CUDA_SUCCESS;
    return mode;
}

static void relaxed_mode_end(struct relaxed_mode *mode)
{
    if (mode->exchanged)
        (void)mode->cuda->cuThreadExchangeStreamCaptureMode(&mode->previous);
}

#define RELAXED_AUTO __attribute__((cleanup(relaxed_mode_end), unused)) struct relaxed_mode

static int32_t load_error(const struct cbn__driver *driver, CUresult result, const char *function,
                          struct cbn_error *err)
{
    int32_t status = cbn__driver_error(driver, result, function, err);
    switch (result) {
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        status = CBN_STATUS_INCOMPATIBLE;
        break;
    default:
        break;
    }
    if (err)
        err->status = status;
    return status;
}

static int32_t load_library(struct cbn__kernel *kernel, const struct cbn__buf *cubin, const char *symbol,
                            struct cbn_error *err)
{
    CUlibraryOption options[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
    void *values[] = {(void *)(uintptr_t)1};
    RELAXED_AUTO mode = relaxed_mode_begin(kernel->cuda);
    CUresult result = kernel->cuda->cuLibraryLoadData(&kernel->library, cubin->data, NULL, NULL, 0, options, values, 1);
    if (result != CUDA_SUCCESS)
        return load_error(kernel->driver, result, "cuLibraryLoadData", err);
    result = kernel->cuda->cuLibraryGetKernel(&kernel->handle, kernel->library, symbol);
    if (result == CUDA_SUCCESS)
        return CBN_STATUS_OK;
    (void)kernel->cuda->cuLibraryUnload(kernel->library);
    return load_error(kernel->driver, result, "cuLibraryGetKernel", err);
}

int32_t cbn__kernel_create(const struct cbn__driver *driver, struct cbn__buf *cubin, const char *symbol,
                           struct cbn__kernel **ret_kernel, struct cbn_error *err)
{
    struct cbn__kernel *kernel = calloc(1, sizeof(*kernel));
    if (!kernel)
        return cbn__error_no_memory(err);
    kernel->driver = driver;
    kernel->cuda = cbn__driver_table(driver);
    int32_t status = load_library(kernel, cubin, symbol, err);
    if (status != CBN_STATUS_OK) {
        free(kernel);
        return status;
    }
    (void)pthread_mutex_init(&kernel->load_lock, NULL);
    kernel->cubin = *cubin;
    *cubin = (struct cbn__buf)CBN__BUF_INIT;
    *ret_kernel = kernel;
    return CBN_STATUS_OK;
}

static void unload_library(struct cbn__kernel *kernel)
{
    RELAXED_AUTO mode = relaxed_mode_begin(kernel->cuda);
    (void)kernel->cuda->cuLibraryUnload(kernel->library);
}

void cbn__kernel_destroy(struct cbn__kernel *kernel)
{
    if (!kernel)
        return;
    unload_library(kernel);
    (void)pthread_mutex_destroy(&kernel->load_lock);
    cbn__buf_done(&kernel->cubin);
    free(kernel);
}

bool cbn__kernel_ready(const struct cbn__kernel *kernel, uint64_t context_id)
{
    for (uint32_t i = 0; i < CONTEXTS_MAX; i++) {
        uint64_t held = atomic_load_explicit(&kernel->ready[i], memory_order_acquire);
        if (held == context_id + 1)
            return true;
        if (held == 0)
            return false;
    }
    return false;
}

bool cbn__kernel_fits(const struct cbn__kernel *kernel, int device, uint32_t shared_bytes)
{
    return device >= 0 && device < DEVICES_MAX &&
           shared_bytes <= atomic_load_explicit(&kernel->shared_bytes[device], memory_order_acquire);
}

static void mark_ready(struct cbn__kernel *kernel, uint64_t context_id)
{
    atomic_store_explicit(&kernel->ready[kernel->next_slot], context_id + 1, memory_order_release);
    kernel->next_slot = (kernel->next_slot + 1) % CONTEXTS_MAX;
}

static int32_t load_function(struct cbn__kernel *kernel, struct cbn_error *err)
{
    CUfunction function = NULL;
    CUresult result = kernel->cuda->cuKernelGetFunction(&function, kernel->handle);
    if (result != CUDA_SUCCESS)
        return load_error(kernel->driver, result, "cuKernelGetFunction", err);
    result = kernel->cuda->cuFuncLoad(function);
    return result == CUDA_SUCCESS ? CBN_STATUS_OK : load_error(kernel->driver, result, "cuFuncLoad", err);
}

static int32_t raise_shared_bytes(struct cbn__kernel *kernel, int device, uint32_t shared_bytes, struct cbn_error *err)
{
    if (device < 0 || device >= DEVICES_MAX)
        return cbn__error_own(err, CBN_STATUS_LIMIT, "device %d: at most %d devices are supported", device,
                              DEVICES_MAX);
    if (cbn__kernel_fits(kernel, device, shared_bytes))
        return CBN_STATUS_OK;
    CUresult result = kernel->cuda->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                         (int)shared_bytes, kernel->handle, device);
    if (result != CUDA_SUCCESS)
        return cbn__driver_error(kernel->driver, result, "cuKernelSetAttribute", err);
    atomic_store_explicit(&kernel->shared_bytes[device], shared_bytes, memory_order_release);
    return CBN_STATUS_OK;
}

int32_t cbn__kernel_load(struct cbn__kernel *kernel, uint64_t context_id, int device, uint32_t shared_bytes,
                         struct cbn_error *err)
{
    RELAXED_AUTO mode = relaxed_mode_begin(kernel->cuda);
    (void)pthread_mutex_lock(&kernel->load_lock);
    bool loaded = cbn__kernel_ready(kernel, context_id);
    int32_t status = loaded ? CBN_STATUS_OK : load_function(kernel, err);
    if (status == CBN_STATUS_OK)
        status = raise_shared_bytes(kernel, device, shared_bytes, err);
    /* Last: whoever sees the mark launches without asking again. */
    if (status == CBN_STATUS_OK && !loaded)
        mark_ready(kernel, context_id);
    (void)pthread_mutex_unlock(&kernel->load_lock);
    return status;
}

void cbn__kernel_prefer_shared(struct cbn__kernel *kernel, int device)
{
    RELAXED_AUTO mode = relaxed_mode_begin(kernel->cuda);
    (void)kernel->cuda->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                             CU_SHAREDMEM_CARVEOUT_MAX_SHARED, kernel->handle, device);
}

int32_t cbn__stream_capturing(const struct cbn__driver *driver, void *stream, bool *ret_capturing,
                              struct cbn_error *err)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = cbn__driver_table(driver)->cuStreamIsCapturing((CUstream)stream, &capture);
    if (result != CUDA_SUCCESS)
        return cbn__driver_error(driver, result, "cuStreamIsCapturing", err);
    *ret_capturing = capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return CBN_STATUS_OK;
}

static unsigned int fill_attributes(const struct cbn_geometry *geometry, bool pdl, CUlaunchAttribute *attributes)
{
    unsigned int count = 0;
    if (pdl) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attributes[count++].value.programmaticStreamSerializationAllowed = 1;
    }
    if (geometry->cluster[0] > 1 || geometry->cluster[1] > 1 || geometry->cluster[2] > 1) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[count].value.clusterDim.x = geometry->cluster[0] ? geometry->cluster[0] : 1;
        attributes[count].value.clusterDim.y = geometry->cluster[1] ? geometry->cluster[1] : 1;
        attributes[count++].value.clusterDim.z = geometry->cluster[2] ? geometry->cluster[2] : 1;
    }
    return count;
}

/* A CUkernel may stand where a CUfunction is asked (CUDA driver API, cuLaunchKernelEx): the stream's context counts. */
int32_t cbn__kernel_launch(const struct cbn__kernel *kernel, const struct cbn_geometry *geometry, void *arguments,
                           bool pdl, void *stream, struct cbn_error *err)
{
    CUlaunchAttribute attributes[2] = {0};
    CUlaunchConfig config = {
        .gridDimX = geometry->grid[0],
        .gridDimY = geometry->grid[1],
        .gridDimZ = geometry->grid[2],
        .blockDimX = geometry->block[0],
        .blockDimY = geometry->block[1],
        .blockDimZ = geometry->block[2],
        .sharedMemBytes = geometry->shared_bytes,
        .hStream = (CUstream)stream,
        .attrs = attributes,
        .numAttrs = fill_attributes(geometry, pdl, attributes),
    };
    void *parameters[] = {arguments};
    CUresult result = kernel->cuda->cuLaunchKernelEx(&config, (CUfunction)kernel->handle, parameters, NULL);
    return result == CUDA_SUCCESS ? CBN_STATUS_OK : cbn__driver_error(kernel->driver, result, "cuLaunchKernelEx", err);
}
