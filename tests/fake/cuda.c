/*
 * The driver half of the fake: every function of CBN__CUDA_MAP under its ABI name (cuda.h maps the versions); launches
 * and memory are in launch.c.
 *
 * It runs nothing. What a real driver would refuse it refuses; what a caller may
 * never do (a launch of a kernel that is not loaded into a capturing stream, NVRTC reaching in, an image that changed
 * although it was promised to stay) is counted as a violation.
 */
#include "fake/state.h"

#include <stdio.h>

static CUresult scripted(enum fake_function_id function)
{
    CUresult code = CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof(fake_state.failures) / sizeof(fake_state.failures[0]); i++) {
        struct fake_failure *failure = &fake_state.failures[i];
        if (failure->countdown && failure->function == function && --failure->countdown == 0)
            code = failure->code;
    }
    return code;
}

CUresult fake_enter(enum fake_function_id function, const void *caller)
{
    static const enum fake_function_id early[] = {FAKE_ID_cuInit, FAKE_ID_cuDriverGetVersion, FAKE_ID_cuGetErrorName,
                                                  FAKE_ID_cuGetErrorString, FAKE_ID_cuGetProcAddress};
    atomic_fetch_add_explicit(&fake_state.calls[function], 1, memory_order_relaxed);
    if (atomic_load_explicit(&fake_state.quick, memory_order_relaxed))
        return CUDA_SUCCESS;
    Dl_info info;
    bool from_nvrtc = dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libnvrtc");
    FAKE_LOCKED;
    if (from_nvrtc)
        fake_violate("NVRTC reached %s", fake_function_names[function]);
    bool allowed = fake_state.initialised;
    for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++)
        allowed = allowed || early[i] == function;
    if (!allowed)
        return CUDA_ERROR_NOT_INITIALIZED;
    return scripted(function);
}

CUresult fake_unsafe_call(void)
{
    CUresult result = CUDA_SUCCESS;
    if (fake_thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return result;
    for (struct fake_handle *handle = fake_state.handles; handle; handle = handle->next) {
        struct fake_stream *stream = (struct fake_stream *)handle;
        if (handle->kind != FAKE_STREAM || stream->status == 0)
            continue;
        bool own = pthread_equal(stream->owner, pthread_self());
        if ((own && stream->mode != CU_STREAM_CAPTURE_MODE_RELAXED) ||
            (!own && stream->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
             fake_thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
            stream->status = 2;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

/* driver and devices */

CUresult cuInit(unsigned int flags)
{
    FAKE_ENTER(cuInit);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake_state.device_count == 0)
        return CUDA_ERROR_NO_DEVICE;
    fake_state.initialised = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    FAKE_ENTER(cuDriverGetVersion);
    *version = fake_state.version;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    FAKE_ENTER(cuDeviceGetCount);
    *count = fake_state.device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    FAKE_ENTER(cuDeviceGet);
    if (ordinal < 0 || ordinal >= fake_state.device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    FAKE_ENTER(cuDeviceGetName);
    if (device < 0 || device >= fake_state.device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    (void)snprintf(name, (size_t)bytes, "Fake GPU sm_%d", fake_state.devices[device].capability);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    FAKE_ENTER(cuDeviceGetAttribute);
    if (device < 0 || device >= fake_state.device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = fake_state.devices[device].capability / 10;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = fake_state.devices[device].capability % 10;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = fake_state.devices[device].sms;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = FAKE_SHARED_BYTES_MAX; /* H100 and H200 */
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* X(code): the results that this file and the tests' scripts give. */
#define FAKE_RESULT_MAP(X)                                                                                             \
    X(CUDA_SUCCESS)                                                                                                    \
    X(CUDA_ERROR_INVALID_VALUE)                                                                                        \
    X(CUDA_ERROR_OUT_OF_MEMORY)                                                                                        \
    X(CUDA_ERROR_NOT_INITIALIZED)                                                                                      \
    X(CUDA_ERROR_NO_DEVICE)                                                                                            \
    X(CUDA_ERROR_INVALID_DEVICE)                                                                                       \
    X(CUDA_ERROR_INVALID_IMAGE)                                                                                        \
    X(CUDA_ERROR_INVALID_CONTEXT)                                                                                      \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU)                                                                                    \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION)                                                                              \
    X(CUDA_ERROR_INVALID_HANDLE)                                                                                       \
    X(CUDA_ERROR_ILLEGAL_STATE)                                                                                        \
    X(CUDA_ERROR_NOT_FOUND)                                                                                            \
    X(CUDA_ERROR_ILLEGAL_ADDRESS)                                                                                      \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)                                                                              \
    X(CUDA_ERROR_LAUNCH_FAILED)                                                                                        \
    X(CUDA_ERROR_NOT_SUPPORTED)                                                                                        \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)                                                                               \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)                                                                           \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)                                                                           \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)                                                                              \
    X(CUDA_ERROR_UNKNOWN)

static const char *result_name(CUresult result)
{
    switch (result) {
#define FAKE_X(code)                                                                                                   \
    case code:                                                                                                         \
        return #code;
        FAKE_RESULT_MAP(FAKE_X)
#undef FAKE_X
    default:
        return NULL;
    }
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
    FAKE_ENTER(cuGetErrorName);
    *text = result_name(error);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    FAKE_ENTER(cuGetErrorString);
    *text = result_name(error) ? "as the fake driver was told" : NULL;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* contexts and streams */

CUresult cuCtxGetCurrent(CUcontext *context)
{
    FAKE_ENTER(cuCtxGetCurrent);
    *context = (CUcontext)fake_current;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    FAKE_ENTER(cuCtxSetCurrent);
    FAKE_LOCKED;
    if (context && !fake_handle_get(context, FAKE_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    fake_current = (struct fake_context *)context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    FAKE_ENTER(cuCtxGetDevice);
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = fake_current->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext value, unsigned long long *id)
{
    FAKE_ENTER(cuCtxGetId);
    const struct fake_context *context = value ? (const struct fake_context *)value : fake_current;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    FAKE_ENTER(cuCtxSynchronize);
    FAKE_LOCKED;
    return fake_current ? fake_unsafe_call() : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    FAKE_ENTER(cuDevicePrimaryCtxRetain);
    FAKE_LOCKED;
    if (device < 0 || device >= fake_state.device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult unsafe = fake_unsafe_call();
    if (unsafe != CUDA_SUCCESS)
        return unsafe;
    if (!fake_state.devices[device].primary)
        fake_state.devices[device].primary = fake_context_new(device);
    fake_state.devices[device].primary_count++;
    *context = (CUcontext)fake_state.devices[device].primary;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    FAKE_ENTER(cuDevicePrimaryCtxRelease);
    FAKE_LOCKED;
    if (device < 0 || device >= fake_state.device_count || fake_state.devices[device].primary_count == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    fake_state.devices[device].primary_count--;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream value, CUstreamCaptureStatus *status)
{
    FAKE_ENTER(cuStreamIsCapturing);
    FAKE_LOCKED;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (fake_is_default_stream(value))
        return CUDA_SUCCESS;
    const struct fake_stream *stream = fake_handle_get(value, FAKE_STREAM);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->status)
        *status = stream->status == 1 ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream value)
{
    FAKE_ENTER(cuStreamSynchronize);
    FAKE_LOCKED;
    if (fake_is_default_stream(value))
        return fake_unsafe_call();
    struct fake_stream *stream = fake_handle_get(value, FAKE_STREAM);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->status == 0)
        return CUDA_SUCCESS;
    stream->status = 2;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    FAKE_ENTER(cuThreadExchangeStreamCaptureMode);
    int previous = fake_thread_mode;
    fake_thread_mode = (int)*mode;
    *mode = (CUstreamCaptureMode)previous;
    return CUDA_SUCCESS;
}

/* libraries and kernels */

uint64_t fake_sum(const void *image, size_t bytes)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ ((const uint8_t *)image)[i]) * 0x100000001b3u;
    return sum;
}

static bool any_device_runs(uint32_t capability)
{
    for (int i = 0; i < fake_state.device_count; i++)
        if ((uint32_t)fake_state.devices[i].capability == capability)
            return true;
    return false;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options, void **jit_values,
                           unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int option_count)
{
    (void)jit_options;
    (void)jit_values;
    FAKE_ENTER(cuLibraryLoadData);
    FAKE_LOCKED;
    CUresult unsafe = fake_unsafe_call();
    if (unsafe != CUDA_SUCCESS)
        return unsafe;
    bool preserved = false;
    for (unsigned int i = 0; i < option_count; i++)
        preserved = preserved || (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED && values[i]);
    size_t bytes = 0;
    uint32_t capability = 0;
    if (jit_count || !code || !fake_image_check(code, &bytes, &capability))
        return CUDA_ERROR_INVALID_IMAGE;
    if (!any_device_runs(capability))
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    struct fake_library *created = fake_handle_new(FAKE_LIBRARY, sizeof(*created));
    created->image = code;
    created->image_bytes = preserved ? bytes : 0;
    created->image_sum = fake_sum(code, created->image_bytes);
    created->capability = capability;
    *library = (CUlibrary)created;
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary value)
{
    FAKE_ENTER(cuLibraryUnload);
    FAKE_LOCKED;
    struct fake_library *library = fake_handle_get(value, FAKE_LIBRARY);
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (fake_sum(library->image, library->image_bytes) != library->image_sum)
        fake_violate("a preserved image changed before its library was unloaded");
    CUresult unsafe = fake_unsafe_call();
    for (struct fake_handle *handle = fake_state.handles; handle; handle = handle->next)
        if (handle->kind == FAKE_KERNEL && ((struct fake_kernel *)handle)->library == library)
            handle->dead = true;
    library->handle.dead = true;
    return unsafe;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary value, const char *name)
{
    FAKE_ENTER(cuLibraryGetKernel);
    FAKE_LOCKED;
    struct fake_library *library = fake_handle_get(value, FAKE_LIBRARY);
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    struct fake_image_kernel facts;
    if (!fake_image_find(library->image, name, &facts)) {
        fake_violate("the image holds no kernel named %s", name);
        return CUDA_ERROR_NOT_FOUND;
    }
    struct fake_kernel *created = fake_handle_new(FAKE_KERNEL, sizeof(*created));
    created->library = library;
    created->facts = facts;
    (void)snprintf(created->name, sizeof(created->name), "%s", name);
    *kernel = (CUkernel)created;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel value)
{
    FAKE_ENTER(cuKernelGetFunction);
    FAKE_LOCKED;
    struct fake_kernel *kernel = fake_handle_get(value, FAKE_KERNEL);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult unsafe = fake_unsafe_call();
    if (unsafe != CUDA_SUCCESS)
        return unsafe;
    if ((uint32_t)fake_state.devices[fake_current->device].capability != kernel->library->capability)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    struct fake_loaded *loaded = fake_handle_new(FAKE_FUNCTION, sizeof(*loaded));
    loaded->kernel = kernel;
    loaded->context = fake_current;
    *function = (CUfunction)loaded;
    return CUDA_SUCCESS;
}

bool fake_is_loaded(const struct fake_kernel *kernel, uint64_t context_id)
{
    for (uint32_t i = 0; i < kernel->loaded_count; i++)
        if (kernel->loaded[i] == context_id)
            return true;
    return false;
}

CUresult cuFuncLoad(CUfunction value)
{
    FAKE_ENTER(cuFuncLoad);
    FAKE_LOCKED;
    struct fake_loaded *loaded = fake_handle_get(value, FAKE_FUNCTION);
    if (!loaded)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult unsafe = fake_unsafe_call();
    if (unsafe != CUDA_SUCCESS)
        return unsafe;
    struct fake_kernel *kernel = loaded->kernel;
    if (fake_is_loaded(kernel, loaded->context->id) || kernel->loaded_count == FAKE_CONTEXTS_PER_KERNEL)
        return CUDA_SUCCESS;
    kernel->loaded[kernel->loaded_count++] = loaded->context->id;
    return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device)
{
    FAKE_ENTER(cuKernelSetAttribute);
    FAKE_LOCKED;
    struct fake_kernel *kernel = fake_handle_get(handle, FAKE_KERNEL);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    bool carveout = attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    if (!carveout && attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (value < (carveout ? -1 : 0) || value > (carveout ? 100 : FAKE_SHARED_BYTES_MAX))
        return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= fake_state.device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    if (carveout) {
        kernel->carveout[device] = value;
        return CUDA_SUCCESS;
    }
    if (value < kernel->shared_bytes[device])
        fake_violate("the shared-memory attribute of %s was lowered from %d to %d", kernel->name,
                     kernel->shared_bytes[device], value);
    kernel->shared_bytes[device] = value;
    return CUDA_SUCCESS;
}
