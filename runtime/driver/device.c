/*
 * Opening the CUDA driver, device facts, and the plain memory calls of selftest. Owns the one table of driver
 * functions; must not know kernels. No locks: the table is immutable once open.
 */
#include "driver/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arch.h"
#include "base/env.h"
#include "driver/cuda_table.h"
#include "driver/library.h"

/* libcuda keeps threads and process-wide state: it is never unmapped. */
#define OPEN_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)
#define DRIVER_NAME "libcuda.so.1"

struct cbn__driver {
    void *handle;
    char *path;
    uint32_t version;
    struct cbn__cuda_table table;
};

/* Where container runtimes, WSL and distributions put the driver when the loader does not know it. */
static const char *const folders[] = {
    "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",   "/usr/lib/wsl/lib",       "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64/nvidia",       "/usr/lib/nvidia/current", "/run/opengl-driver/lib",
};

static int32_t fail_search(struct cbn__search *search, struct cbn_error *err)
{
    return cbn__error_own(
        err, CBN_STATUS_NO_DRIVER,
        "no CUDA driver: install NVIDIA's driver (550 or later), or start the container with its GPU, "
        "or set %s to a %s; searched: %.200s%s%.120s",
        cbn__env_name(CBN__ENV_CUDA), DRIVER_NAME, cbn__buf_text(&search->places), search->reason.size ? "; " : "",
        cbn__buf_text(&search->reason));
}

static int32_t fail_named(struct cbn__search *search, const char *file, const char *origin, struct cbn_error *err)
{
    const char *reason = cbn__buf_text(&search->reason);
    return cbn__error_own(err, CBN_STATUS_NO_DRIVER,
                          "no CUDA driver at %.200s (%s): %.160s; give the path of a %s, or none to search", file,
                          origin, *reason ? reason : "no such library", DRIVER_NAME);
}

static void search_folders(struct cbn__search *search)
{
    cbn__search_note(search, "the loader's path");
    if (cbn__search_try(search, DRIVER_NAME, OPEN_FLAGS))
        return;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        cbn__search_note(search, folders[i]);
        if (cbn__search_try_glob(search, folders[i], DRIVER_NAME, OPEN_FLAGS))
            return;
    }
}

static int32_t find_library(const char *path, const char *env_path, void **ret_handle, struct cbn_error *err)
{
    __attribute__((cleanup(cbn__search_done))) struct cbn__search search = {.places = CBN__BUF_INIT};
    const char *named = path ? path : env_path;
    if (named)
        (void)cbn__search_try(&search, named, OPEN_FLAGS);
    else
        search_folders(&search);
    *ret_handle = search.handle;
    if (search.handle)
        return CBN_STATUS_OK;
    if (named)
        return fail_named(&search, named, path ? "option" : cbn__env_name(CBN__ENV_CUDA), err);
    return fail_search(&search, err);
}

typedef CUresult (*version_fn)(int *);

static int32_t check_version(struct cbn__driver *driver, struct cbn_error *err)
{
    version_fn get_version = (version_fn)dlsym(driver->handle, "cuDriverGetVersion");
    int version = 0;
    if (!get_version || get_version(&version) != CUDA_SUCCESS || version <= 0)
        return cbn__error_own(err, CBN_STATUS_NO_DRIVER, "%.200s is not a CUDA driver; give the path of a %s",
                              driver->path, DRIVER_NAME);
    driver->version = (uint32_t)version;
    if (version < CBN__DRIVER_MIN_VERSION)
        return cbn__error_own(
            err, CBN_STATUS_NO_DRIVER,
            "%.200s is a driver of CUDA %d.%d, and %d.%d is the least; update NVIDIA's driver to 550 or later",
            driver->path, version / 1000, version % 1000 / 10, CBN__DRIVER_MIN_VERSION / 1000,
            CBN__DRIVER_MIN_VERSION % 1000 / 10);
    return CBN_STATUS_OK;
}

typedef CUresult (*address_fn)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/* name: "cuMemAlloc"; versioned: the symbol that cuda.h maps it to, "cuMemAlloc_v2". */
static void *resolve(void *handle, address_fn get_address, const char *name, const char *versioned)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    if (get_address &&
        get_address(name, &function, CBN__DRIVER_MIN_VERSION, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found) ==
            CUDA_SUCCESS &&
        function)
        return function;
    return dlsym(handle, versioned);
}

#define TEXT_OF_MAPPED(name) #name

static int32_t fill_table(struct cbn__driver *driver, struct cbn_error *err)
{
    address_fn get_address = (address_fn)dlsym(driver->handle, "cuGetProcAddress_v2");
    const char *missing = NULL;
#define CBN__X(function)                                                                                               \
    driver->table.function =                                                                                           \
        (__typeof__(&function))resolve(driver->handle, get_address, #function, TEXT_OF_MAPPED(function));              \
    if (!driver->table.function && !missing)                                                                           \
        missing = #function;
    CBN__CUDA_MAP(CBN__X)
#undef CBN__X
    if (missing)
        return cbn__error_own(err, CBN_STATUS_NO_DRIVER, "%.200s has no %s; update NVIDIA's driver to 550 or later",
                              driver->path, missing);
    return CBN_STATUS_OK;
}

static int32_t initialise(struct cbn__driver *driver, struct cbn_error *err)
{
    CUresult result = driver->table.cuInit(0);
    if (result == CUDA_SUCCESS)
        return CBN_STATUS_OK;
    (void)cbn__driver_error(driver, result, "cuInit", err);
    char reason[128] = "";
    if (err)
        (void)snprintf(reason, sizeof(reason), "%.127s", err->message);
    return cbn__error_set(err, CBN_STATUS_NO_DRIVER, CBN_DOMAIN_CUDA, result,
                          "the driver %.200s does not start: %s; check that nvidia-smi lists a GPU", driver->path,
                          reason);
}

static void free_driver(struct cbn__driver **driver)
{
    cbn__driver_close(*driver);
}

int32_t cbn__driver_open(const char *path, const char *env_path, struct cbn__driver **ret_driver, struct cbn_error *err)
{
    __attribute__((cleanup(free_driver))) struct cbn__driver *driver = calloc(1, sizeof(*driver));
    if (!driver)
        return cbn__error_no_memory(err);
    int32_t status = find_library(path, env_path, &driver->handle, err);
    if (status != CBN_STATUS_OK)
        return status;
    const char *loaded = cbn__library_path(driver->handle);
    driver->path = strdup(loaded ? loaded : DRIVER_NAME);
    if (!driver->path)
        return cbn__error_no_memory(err);
    if ((status = check_version(driver, err)) != CBN_STATUS_OK || (status = fill_table(driver, err)) != CBN_STATUS_OK ||
        (status = initialise(driver, err)) != CBN_STATUS_OK)
        return status;
    *ret_driver = driver;
    driver = NULL;
    return CBN_STATUS_OK;
}

void cbn__driver_close(struct cbn__driver *driver)
{
    if (!driver)
        return;
    if (driver->handle)
        (void)dlclose(driver->handle);
    free(driver->path);
    free(driver);
}

uint32_t cbn__driver_version(const struct cbn__driver *driver)
{
    return driver->version;
}

const char *cbn__driver_path(const struct cbn__driver *driver)
{
    return driver->path;
}

const struct cbn__cuda_table *cbn__driver_table(const struct cbn__driver *driver)
{
    return &driver->table;
}

int32_t cbn__driver_error(const struct cbn__driver *driver, CUresult result, const char *function,
                          struct cbn_error *err)
{
    const char *name = NULL;
    const char *text = NULL;
    if (driver->table.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
        name = "an unknown CUresult";
    if (driver->table.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
        text = "no text";
    return cbn__error_set(err, CBN_STATUS_CUDA, CBN_DOMAIN_CUDA, result, "%s: %s (%d, %.200s)", function, name,
                          (int)result, text);
}

/* ---- device facts ---- */

#define CALL(driver, function, ...)                                                                                    \
    do {                                                                                                               \
        CUresult call_result = (driver)->table.function(__VA_ARGS__);                                                  \
        if (call_result != CUDA_SUCCESS)                                                                               \
            return cbn__driver_error(driver, call_result, #function, err);                                             \
    } while (0)

int32_t cbn__driver_device_count(const struct cbn__driver *driver, int *ret_count, struct cbn_error *err)
{
    int count = 0;
    CALL(driver, cuDeviceGetCount, &count);
    *ret_count = count;
    return CBN_STATUS_OK;
}

static int32_t read_attribute(const struct cbn__driver *driver, CUdevice device, CUdevice_attribute attribute,
                              uint32_t *ret_value, struct cbn_error *err)
{
    int value = 0;
    CALL(driver, cuDeviceGetAttribute, &value, attribute, device);
    *ret_value = value > 0 ? (uint32_t)value : 0;
    return CBN_STATUS_OK;
}

int32_t cbn__driver_device_facts(const struct cbn__driver *driver, int device, struct cbn__device_facts *ret_facts,
                                 struct cbn_error *err)
{
    struct cbn__device_facts facts = {0};
    CUdevice handle = 0;
    CALL(driver, cuDeviceGet, &handle, device);
    CALL(driver, cuDeviceGetName, facts.name, (int)sizeof(facts.name), handle);
    facts.name[sizeof(facts.name) - 1] = 0;
    uint32_t major = 0, minor = 0;
    const struct {
        CUdevice_attribute attribute;
        uint32_t *value;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &facts.sms},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &facts.shared_bytes_optin},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        int32_t status = read_attribute(driver, handle, wanted[i].attribute, wanted[i].value, err);
        if (status != CBN_STATUS_OK)
            return status;
    }
    facts.capability = major * 10 + minor;
    facts.arch = cbn__arch_of_capability(facts.capability);
    *ret_facts = facts;
    return CBN_STATUS_OK;
}

int32_t cbn__driver_current(const struct cbn__driver *driver, uint64_t *ret_context_id, int *ret_device,
                            struct cbn_error *err)
{
    CUcontext context = NULL;
    CALL(driver, cuCtxGetCurrent, &context);
    if (!context)
        return cbn__error_set(err, CBN_STATUS_CUDA, CBN_DOMAIN_CUDA, CUDA_ERROR_INVALID_CONTEXT,
                              "this thread has no current CUDA context; make one current first (cuCtxSetCurrent, "
                              "cudaSetDevice)");
    unsigned long long id = 0;
    CUdevice device = 0;
    CALL(driver, cuCtxGetId, context, &id);
    CALL(driver, cuCtxGetDevice, &device);
    *ret_context_id = id;
    *ret_device = device; /* a CUdevice is the device's ordinal */
    return CBN_STATUS_OK;
}

/* ---- selftest ---- */

int32_t cbn__driver_primary_acquire(const struct cbn__driver *driver, int device, struct cbn_error *err)
{
    CUdevice handle = 0;
    CUcontext context = NULL;
    CALL(driver, cuDeviceGet, &handle, device);
    CALL(driver, cuDevicePrimaryCtxRetain, &context, handle);
    CUresult result = driver->table.cuCtxSetCurrent(context);
    if (result != CUDA_SUCCESS) {
        (void)driver->table.cuDevicePrimaryCtxRelease(handle);
        return cbn__driver_error(driver, result, "cuCtxSetCurrent", err);
    }
    return CBN_STATUS_OK;
}

/* Leaves the thread without a current context: a released one must not stay current. */
void cbn__driver_primary_release(const struct cbn__driver *driver, int device)
{
    CUdevice handle = 0;
    if (driver->table.cuDeviceGet(&handle, device) != CUDA_SUCCESS)
        return;
    (void)driver->table.cuCtxSetCurrent(NULL);
    (void)driver->table.cuDevicePrimaryCtxRelease(handle);
}

int32_t cbn__driver_alloc(const struct cbn__driver *driver, uint64_t bytes, uint64_t *ret_address,
                          struct cbn_error *err)
{
    CUdeviceptr address = 0;
    CALL(driver, cuMemAlloc, &address, bytes);
    *ret_address = address;
    return CBN_STATUS_OK;
}

void cbn__driver_free(const struct cbn__driver *driver, uint64_t address)
{
    if (address)
        (void)driver->table.cuMemFree(address);
}

int32_t cbn__driver_copy_in(const struct cbn__driver *driver, uint64_t address, const void *data, uint64_t bytes,
                            struct cbn_error *err)
{
    if (bytes)
        CALL(driver, cuMemcpyHtoD, address, data, bytes);
    return CBN_STATUS_OK;
}

int32_t cbn__driver_copy_out(const struct cbn__driver *driver, void *ret_data, uint64_t address, uint64_t bytes,
                             struct cbn_error *err)
{
    if (bytes)
        CALL(driver, cuMemcpyDtoH, ret_data, address, bytes);
    return CBN_STATUS_OK;
}

int32_t cbn__driver_fill(const struct cbn__driver *driver, uint64_t address, uint8_t value, uint64_t bytes,
                         struct cbn_error *err)
{
    if (bytes)
        CALL(driver, cuMemsetD8, address, value, bytes);
    return CBN_STATUS_OK;
}

int32_t cbn__driver_synchronise(const struct cbn__driver *driver, struct cbn_error *err)
{
    CALL(driver, cuCtxSynchronize);
    return CBN_STATUS_OK;
}
