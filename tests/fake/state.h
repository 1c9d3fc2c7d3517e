/*
 * State that the fake driver's functions and its control share. One lock guards all of it but what is atomic.
 */
#ifndef CBN_TESTS_FAKE_STATE_H
#define CBN_TESTS_FAKE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "driver/cuda_table.h"
#include "fake/fake_cuda.h"
#include "fake/image.h"

#define FAKE_HIDDEN __attribute__((visibility("hidden")))
#define FAKE_CONTEXTS_PER_KERNEL 64
#define FAKE_SHARED_BYTES_MAX 232448 /* of a CTA, opted in */

enum fake_function_id {
#define CBN__X(function) FAKE_ID_##function,
    CBN__CUDA_MAP(CBN__X)
#undef CBN__X
        FAKE_ID_cuGetProcAddress,
    FAKE_ID_COUNT
};

enum fake_kind { FAKE_CONTEXT = 0xC0, FAKE_STREAM, FAKE_LIBRARY, FAKE_KERNEL, FAKE_FUNCTION };

/* Every handle starts with this and lives until reset, so that a use after its end is seen and not a crash. */
struct fake_handle {
    enum fake_kind kind;
    bool dead;
    struct fake_handle *next;
};

struct fake_context {
    struct fake_handle handle;
    uint64_t id;
    int device;
};

struct fake_stream {
    struct fake_handle handle;
    struct fake_context *context;
    int status; /* 0: none, 1: active, 2: invalidated */
    int mode;
    pthread_t owner;
    uint32_t launches;
};

struct fake_library {
    struct fake_handle handle;
    const void *image;
    size_t image_bytes;
    uint64_t image_sum;
    uint32_t capability;
};

struct fake_kernel {
    struct fake_handle handle;
    struct fake_library *library;
    char name[128];
    struct fake_image_kernel facts;
    int shared_bytes[FAKE_DEVICES_MAX];
    int carveout[FAKE_DEVICES_MAX]; /* 0: never set */
    uint32_t loaded_count;
    uint64_t loaded[FAKE_CONTEXTS_PER_KERNEL]; /* context ids */
};

struct fake_loaded {
    struct fake_handle handle;
    struct fake_kernel *kernel;
    struct fake_context *context;
};

struct fake_block {
    uint8_t *data;
    size_t bytes;
    struct fake_block *next;
};

struct fake_failure {
    enum fake_function_id function;
    uint32_t countdown; /* 0: free */
    CUresult code;
};

struct fake_state {
    pthread_mutex_t lock;
    bool initialised;
    int version;
    int device_count;
    struct {
        int capability, sms;
        struct fake_context *primary;
        uint32_t primary_count;
    } devices[FAKE_DEVICES_MAX];
    uint64_t next_context_id;
    struct fake_handle *handles;
    struct fake_block *blocks;
    struct fake_failure failures[16];
    _Atomic uint32_t calls[FAKE_ID_COUNT];
    _Atomic bool quick;
    uint32_t launch_count, launch_capacity;
    struct fake_launch *launches;
    uint32_t violation_count;
    char first_violation[256];
};

extern FAKE_HIDDEN struct fake_state fake_state;
extern FAKE_HIDDEN __thread struct fake_context *fake_current;
extern FAKE_HIDDEN __thread int fake_thread_mode;
extern FAKE_HIDDEN const char *const fake_function_names[FAKE_ID_COUNT];

FAKE_HIDDEN void fake_violate(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A zeroed handle of that many bytes, on the list; the caller holds the lock. */
FAKE_HIDDEN void *fake_handle_new(enum fake_kind kind, size_t bytes);
/* NULL when value is no living handle of that kind. */
FAKE_HIDDEN void *fake_handle_get(const void *value, enum fake_kind kind);
FAKE_HIDDEN struct fake_context *fake_context_new(int device);
/* Counts the call, sees who makes it, and gives the scripted failure. Takes the lock. */
FAKE_HIDDEN CUresult fake_enter(enum fake_function_id function, const void *caller);
/*
 * A call that is unsafe while streams are captured, by the rules of cuThreadExchangeStreamCaptureMode: it fails and
 * every capture that it breaks is invalidated. The caller holds the lock.
 */
FAKE_HIDDEN CUresult fake_unsafe_call(void);
FAKE_HIDDEN uint64_t fake_sum(const void *image, size_t bytes);
FAKE_HIDDEN bool fake_is_loaded(const struct fake_kernel *kernel, uint64_t context_id);

static inline bool fake_is_default_stream(CUstream stream)
{
    return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

#define FAKE_ENTER(function)                                                                                           \
    do {                                                                                                               \
        CUresult entered = fake_enter(FAKE_ID_##function, __builtin_return_address(0));                                \
        if (entered != CUDA_SUCCESS)                                                                                   \
            return entered;                                                                                            \
    } while (0)

static inline void fake_unlock(pthread_mutex_t **lock)
{
    pthread_mutex_unlock(*lock);
}

#define FAKE_LOCKED                                                                                                    \
    __attribute__((cleanup(fake_unlock), unused)) pthread_mutex_t *guard = &fake_state.lock;                           \
    pthread_mutex_lock(guard)

#endif
