/*
 * The device of the suite: see gpu.h. Its own driver table, so that a fault in the library's is seen.
 */
#include "gpu.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cubinet/template.h>

#include "base/arch.h"
#include "driver/nvrtc.h"

#include "oracle_text.h"

struct gpu_calls gpu;

static void *library;
static CUmodule oracle;
static CUfunction kernels[GPU_KERNEL_COUNT];
static char doing[256];
static CUcontext context; /* NULL: none was retained */

/* Two levels, so that cuMemAlloc becomes "cuMemAlloc_v2" as cuda.h has it. */
#define SYMBOL(function) SYMBOL_TEXT(function)
#define SYMBOL_TEXT(function) #function

static const char *open_library(void)
{
    const char *path = getenv("CUBINET_CUDA");
    library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
    if (!library) {
        return dlerror();
    }
#define X(function)                                                                                                    \
    gpu.function = (__typeof__(gpu.function))dlsym(library, SYMBOL(function));                                         \
    if (!gpu.function) {                                                                                               \
        return "the driver has no " SYMBOL(function);                                                                  \
    }
    GPU_CALL_MAP(X)
#undef X
    return NULL;
}

void gpu_must(CUresult result, const char *call)
{
    const char *name = "unknown";
    if (result == CUDA_SUCCESS) {
        return;
    }
    (void)gpu.cuGetErrorName(result, &name);
    fprintf(stderr, "gpu_suite: %s failed: %s (%d), after: %s\n", call, name, (int)result, doing);
    exit(1);
}

void gpu_doing(const char *what)
{
    (void)snprintf(doing, sizeof(doing), "%s", what);
}

static void on_alarm(int signal)
{
    static const char text[] = "gpu_suite: the device does not come back from: ";
    (void)signal;
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)!write(STDERR_FILENO, doing, strlen(doing));
    (void)!write(STDERR_FILENO, "\n", 1);
    _exit(1);
}

void gpu_finish(unsigned seconds)
{
    (void)signal(SIGALRM, on_alarm);
    (void)alarm(seconds);
    GPU(cuCtxSynchronize());
    (void)alarm(0);
}

static int attribute(CUdevice device, CUdevice_attribute which)
{
    int value = 0;
    GPU(cuDeviceGetAttribute(&value, which, device));
    return value;
}

static void open_device(struct gpu_facts *ret_facts)
{
    CUdevice device;
    GPU(cuDeviceGet(&device, 0));
    GPU(cuDevicePrimaryCtxRetain(&context, device));
    GPU(cuCtxSetCurrent(context));
    GPU(cuDeviceGetName(ret_facts->name, (int)sizeof(ret_facts->name), device));
    GPU(cuDriverGetVersion(&ret_facts->driver_version));
    ret_facts->sms = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    int major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    int minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    ret_facts->arch = cbn__arch_of_capability((uint32_t)(major * 10 + minor));
}

bool gpu_open(struct gpu_facts *ret_facts)
{
    int count = 0;
    const char *why = open_library();
    if (!why && gpu.cuInit(0) != CUDA_SUCCESS) {
        why = "cuInit failed";
    }
    if (!why && (gpu.cuDeviceGetCount(&count) != CUDA_SUCCESS || count < 1)) {
        why = "the driver sees no device";
    }
    if (why) {
        (void)snprintf(ret_facts->why, sizeof(ret_facts->why), "%s", why);
        return false;
    }
    open_device(ret_facts);
    return true;
}

static bool compile_oracle(const struct gpu_facts *facts, int *ret_nvrtc_version, struct cbn__buf *ret_cubin)
{
    char arch[16], option[64];
    const char *options[] = {option, "--std=c++17"};
    struct cbn_error err = {0};
    struct cbn__nvrtc *nvrtc = NULL;
    CBN__BUF_AUTO ptx = CBN__BUF_INIT;
    CBN__BUF_AUTO log = CBN__BUF_INIT;
    cbn_arch_format(facts->arch, arch, sizeof(arch));
    (void)snprintf(option, sizeof(option), "--gpu-architecture=%s", arch);
    if (cbn__nvrtc_open(NULL, getenv("CUBINET_NVRTC"), &nvrtc, &err) != CBN_STATUS_OK) {
        fprintf(stderr, "gpu_suite: %s\n", err.message);
        return false;
    }
    struct cbn__nvrtc_source source = {.text = oracle_text, .name = "oracle.cu", .option_count = 2, .options = options};
    int32_t status = cbn__nvrtc_compile(nvrtc, &source, ret_cubin, &ptx, &log, &err);
    uint32_t version = cbn__nvrtc_version(nvrtc);
    *ret_nvrtc_version = (int)(version / 1000 * 1000 + version % 1000 * 10);
    if (status != CBN_STATUS_OK) {
        fprintf(stderr, "gpu_suite: the oracle does not compile: %s\n%s\n", err.message, cbn__buf_text(&log));
    }
    cbn__nvrtc_close(nvrtc);
    return status == CBN_STATUS_OK;
}

bool gpu_oracle_open(const struct gpu_facts *facts, struct gpu_facts *ret_facts)
{
    static const char *const names[GPU_KERNEL_COUNT] = {
#define X(name) #name,
        GPU_KERNEL_MAP(X)
#undef X
    };
    CBN__BUF_AUTO cubin = CBN__BUF_INIT;
    if (!compile_oracle(facts, &ret_facts->nvrtc_version, &cubin)) {
        return false;
    }
    GPU(cuModuleLoadData(&oracle, cubin.data));
    for (int i = 0; i < GPU_KERNEL_COUNT; i++) {
        GPU(cuModuleGetFunction(&kernels[i], oracle, names[i]));
    }
    return true;
}

void gpu_close(void)
{
    if (oracle) {
        GPU(cuModuleUnload(oracle));
    }
    if (context) {
        GPU(cuDevicePrimaryCtxRelease(0));
    }
}

void gpu_make_current(void)
{
    GPU(cuCtxSetCurrent(context));
}

void gpu_launch(enum gpu_kernel kernel, int64_t blocks_x, int64_t blocks_y, void **arguments)
{
    if (blocks_x < 1 || blocks_y < 1) {
        return;
    }
    GPU(cuLaunchKernel(kernels[kernel], (unsigned)blocks_x, (unsigned)blocks_y, 1, 256, 1, 1, 0, NULL, arguments,
                       NULL));
}

void gpu_launch_in(enum gpu_kernel kernel, int64_t blocks, void **arguments, CUstream stream)
{
    GPU(cuLaunchKernel(kernels[kernel], (unsigned)blocks, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

void gpu_launch_over(enum gpu_kernel kernel, int64_t elements, void **arguments)
{
    int64_t blocks = (elements + 255) / 256;
    gpu_launch(kernel, blocks > 16384 ? 16384 : blocks, 1, arguments);
}

CUdeviceptr gpu_alloc(int64_t bytes)
{
    CUdeviceptr address = 0;
    GPU(cuMemAlloc(&address, (size_t)(bytes > 0 ? bytes : 1)));
    return address;
}

void gpu_free(CUdeviceptr *address)
{
    if (*address) {
        GPU(cuMemFree(*address));
    }
    *address = 0;
}

void gpu_read(void *ret_data, CUdeviceptr address, int64_t bytes)
{
    if (bytes > 0) {
        GPU(cuMemcpyDtoH(ret_data, address, (size_t)bytes));
    }
}

void gpu_write(CUdeviceptr address, const void *data, int64_t bytes)
{
    if (bytes > 0) {
        GPU(cuMemcpyHtoD(address, data, (size_t)bytes));
    }
}

void gpu_fill(CUdeviceptr address, uint8_t value, int64_t bytes)
{
    if (bytes > 0) {
        GPU(cuMemsetD8(address, value, (size_t)bytes));
    }
}
