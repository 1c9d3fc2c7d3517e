/*
 * The control half of the fake driver: start values, scripts, records, contexts, streams and captures.
 */
#include "fake/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

#define FAKE_X(type, name, arguments) FAKE_EXPORT type fake_cuda_##name arguments;
FAKE_CUDA_MAP(FAKE_X)
#undef FAKE_X

struct fake_state fake_state = {.lock = PTHREAD_MUTEX_INITIALIZER};
__thread struct fake_context *fake_current;
__thread int fake_thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

const char *const fake_function_names[FAKE_ID_COUNT] = {
#define CBN__X(function) [FAKE_ID_##function] = #function,
    CBN__CUDA_MAP(CBN__X)
#undef CBN__X
        [FAKE_ID_cuGetProcAddress] = "cuGetProcAddress",
};

void fake_violate(const char *format, ...)
{
    char text[sizeof(fake_state.first_violation)];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (fake_state.violation_count++ == 0)
        memcpy(fake_state.first_violation, text, sizeof(text));
}

void *fake_handle_new(enum fake_kind kind, size_t bytes)
{
    struct fake_handle *handle = calloc(1, bytes);
    if (!handle)
        abort();
    handle->kind = kind;
    handle->next = fake_state.handles;
    fake_state.handles = handle;
    return handle;
}

void *fake_handle_get(const void *value, enum fake_kind kind)
{
    for (struct fake_handle *handle = fake_state.handles; handle; handle = handle->next)
        if (handle == value)
            return handle->kind == kind && !handle->dead ? handle : NULL;
    return NULL;
}

struct fake_context *fake_context_new(int device)
{
    struct fake_context *context = fake_handle_new(FAKE_CONTEXT, sizeof(*context));
    context->id = ++fake_state.next_context_id;
    context->device = device;
    return context;
}

static int start_value(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? atoi(text) : otherwise;
}

static void free_everything(void)
{
    while (fake_state.handles) {
        struct fake_handle *next = fake_state.handles->next;
        free(fake_state.handles);
        fake_state.handles = next;
    }
    while (fake_state.blocks) {
        struct fake_block *next = fake_state.blocks->next;
        free(fake_state.blocks->data);
        free(fake_state.blocks);
        fake_state.blocks = next;
    }
    free(fake_state.launches);
    fake_state.launches = NULL;
    fake_state.launch_count = fake_state.launch_capacity = 0;
}

static void set_start_values(void)
{
    free_everything();
    fake_state.initialised = false;
    fake_state.version = start_value("FAKE_CUDA_VERSION", 13000);
    fake_state.device_count = start_value("FAKE_CUDA_DEVICES", 1);
    fake_state.violation_count = 0;
    fake_state.first_violation[0] = 0;
    fake_state.quick = false;
    memset(fake_state.failures, 0, sizeof(fake_state.failures));
    for (int i = 0; i < FAKE_ID_COUNT; i++)
        fake_state.calls[i] = 0;
    for (int i = 0; i < FAKE_DEVICES_MAX; i++) {
        fake_state.devices[i].capability = start_value("FAKE_CUDA_CAPABILITY", 90);
        fake_state.devices[i].sms = start_value("FAKE_CUDA_SMS", 132);
        fake_state.devices[i].primary = NULL;
        fake_state.devices[i].primary_count = 0;
    }
}

__attribute__((constructor)) static void start(void)
{
    set_start_values();
}

__attribute__((destructor)) static void end(void)
{
    free_everything();
}

void fake_cuda_reset(void)
{
    pthread_mutex_lock(&fake_state.lock);
    set_start_values();
    fake_current = NULL;
    fake_thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    pthread_mutex_unlock(&fake_state.lock);
}

void fake_cuda_set_version(int version)
{
    fake_state.version = version;
}

void fake_cuda_set_device_count(int count)
{
    fake_state.device_count = count;
}

void fake_cuda_set_device(int device, int capability, int sms)
{
    fake_state.devices[device].capability = capability;
    fake_state.devices[device].sms = sms;
}

static int function_find(const char *function)
{
    for (int i = 0; i < FAKE_ID_COUNT; i++)
        if (strcmp(fake_function_names[i], function) == 0)
            return i;
    return -1;
}

void fake_cuda_script(const char *function, uint32_t nth, int code)
{
    int id = function_find(function);
    pthread_mutex_lock(&fake_state.lock);
    struct fake_failure *failure = fake_state.failures;
    struct fake_failure *end_of = failure + sizeof(fake_state.failures) / sizeof(*failure);
    while (failure < end_of && failure->countdown)
        failure++;
    if (id < 0 || failure == end_of)
        fake_violate("fake_cuda_script(%s): no such function, or the script is full", function);
    else
        *failure = (struct fake_failure){(enum fake_function_id)id, nth, (CUresult)code};
    pthread_mutex_unlock(&fake_state.lock);
}

uint32_t fake_cuda_calls(const char *function)
{
    int id = function_find(function);
    return id < 0 ? 0 : fake_state.calls[id];
}

uint32_t fake_cuda_calls_total(void)
{
    uint32_t total = 0;
    for (int i = 0; i < FAKE_ID_COUNT; i++)
        total += fake_state.calls[i];
    return total;
}

uint32_t fake_cuda_launch_count(void)
{
    pthread_mutex_lock(&fake_state.lock);
    uint32_t count = fake_state.launch_count;
    pthread_mutex_unlock(&fake_state.lock);
    return count;
}

bool fake_cuda_launch_get(uint32_t index, struct fake_launch *ret_launch)
{
    pthread_mutex_lock(&fake_state.lock);
    bool found = index < fake_state.launch_count;
    if (found)
        *ret_launch = fake_state.launches[index];
    pthread_mutex_unlock(&fake_state.lock);
    return found;
}

void fake_cuda_launches_clear(void)
{
    pthread_mutex_lock(&fake_state.lock);
    fake_state.launch_count = 0;
    pthread_mutex_unlock(&fake_state.lock);
}

uint32_t fake_cuda_violations(void)
{
    pthread_mutex_lock(&fake_state.lock);
    uint32_t count = fake_state.violation_count;
    pthread_mutex_unlock(&fake_state.lock);
    return count;
}

const char *fake_cuda_violation_text(void)
{
    return fake_state.first_violation;
}

void *fake_cuda_context_create(int device)
{
    pthread_mutex_lock(&fake_state.lock);
    struct fake_context *context = fake_context_new(device);
    pthread_mutex_unlock(&fake_state.lock);
    return context;
}

void fake_cuda_context_set(void *context)
{
    fake_current = context;
}

uint64_t fake_cuda_context_id(void *context)
{
    return ((struct fake_context *)context)->id;
}

void *fake_cuda_stream_create(void)
{
    pthread_mutex_lock(&fake_state.lock);
    struct fake_stream *stream = fake_handle_new(FAKE_STREAM, sizeof(*stream));
    stream->context = fake_current;
    pthread_mutex_unlock(&fake_state.lock);
    return stream;
}

int fake_cuda_capture_begin(void *value, int mode)
{
    pthread_mutex_lock(&fake_state.lock);
    struct fake_stream *stream = fake_handle_get(value, FAKE_STREAM);
    CUresult result = stream && stream->status == 0 ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
    if (result == CUDA_SUCCESS) {
        stream->status = 1;
        stream->mode = mode;
        stream->owner = pthread_self();
        stream->launches = 0;
    }
    pthread_mutex_unlock(&fake_state.lock);
    return (int)result;
}

int fake_cuda_capture_status(void *value)
{
    pthread_mutex_lock(&fake_state.lock);
    struct fake_stream *stream = fake_handle_get(value, FAKE_STREAM);
    int status = stream ? stream->status : -1;
    pthread_mutex_unlock(&fake_state.lock);
    return status;
}

int fake_cuda_capture_end(void *value, uint32_t *ret_launches)
{
    pthread_mutex_lock(&fake_state.lock);
    struct fake_stream *stream = fake_handle_get(value, FAKE_STREAM);
    CUresult result = CUDA_ERROR_ILLEGAL_STATE;
    if (stream && stream->status) {
        result = stream->status == 1 ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        *ret_launches = stream->launches;
        stream->status = 0;
    }
    pthread_mutex_unlock(&fake_state.lock);
    return (int)result;
}

int fake_cuda_thread_mode(void)
{
    return fake_thread_mode;
}

uint64_t fake_cuda_image_sum(const void *image)
{
    size_t bytes = 0;
    uint32_t capability = 0;
    return fake_image_check(image, &bytes, &capability) ? fake_sum(image, bytes) : 0;
}

uint32_t fake_cuda_shared_attribute(const char *kernel_name, int device)
{
    uint32_t largest = 0;
    pthread_mutex_lock(&fake_state.lock);
    for (struct fake_handle *handle = fake_state.handles; handle; handle = handle->next) {
        const struct fake_kernel *kernel = (const struct fake_kernel *)handle;
        if (handle->kind == FAKE_KERNEL && strcmp(kernel->name, kernel_name) == 0 &&
            (uint32_t)kernel->shared_bytes[device] > largest)
            largest = (uint32_t)kernel->shared_bytes[device];
    }
    pthread_mutex_unlock(&fake_state.lock);
    return largest;
}

int fake_cuda_carveout(const char *kernel_name, int device)
{
    int percent = 0;
    pthread_mutex_lock(&fake_state.lock);
    for (struct fake_handle *handle = fake_state.handles; handle; handle = handle->next) {
        const struct fake_kernel *kernel = (const struct fake_kernel *)handle;
        if (handle->kind == FAKE_KERNEL && strcmp(kernel->name, kernel_name) == 0 && kernel->carveout[device])
            percent = kernel->carveout[device];
    }
    pthread_mutex_unlock(&fake_state.lock);
    return percent;
}

void fake_cuda_set_quick(bool quick)
{
    fake_state.quick = quick;
}
