/*
 * The CUDA driver by dlopen: one table of the functions in use. Includes cuda.h, so only driver/ and launch/ include it.
 */
#ifndef CBN_DRIVER_CUDA_TABLE_H
#define CBN_DRIVER_CUDA_TABLE_H

#include <cuda.h>

#include "driver/device.h"

/* X(function): every one exists in driver 12.4. Resolved through cuGetProcAddress at version 12040. */
#define CBN__CUDA_MAP(X)                                                                                               \
    X(cuInit)                                                                                                          \
    X(cuDriverGetVersion)                                                                                              \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceGet)                                                                                                     \
    X(cuDeviceGetName)                                                                                                 \
    X(cuDeviceGetAttribute)                                                                                            \
    X(cuGetErrorName)                                                                                                  \
    X(cuGetErrorString)                                                                                                \
    X(cuCtxGetCurrent)                                                                                                 \
    X(cuCtxSetCurrent)                                                                                                 \
    X(cuCtxGetDevice)                                                                                                  \
    X(cuCtxGetId)                                                                                                      \
    X(cuCtxSynchronize)                                                                                                \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuDevicePrimaryCtxRelease)                                                                                       \
    X(cuStreamIsCapturing)                                                                                             \
    X(cuStreamSynchronize)                                                                                             \
    X(cuThreadExchangeStreamCaptureMode)                                                                               \
    X(cuLibraryLoadData)                                                                                               \
    X(cuLibraryUnload)                                                                                                 \
    X(cuLibraryGetKernel)                                                                                              \
    X(cuKernelGetFunction)                                                                                             \
    X(cuKernelSetAttribute)                                                                                            \
    X(cuFuncLoad)                                                                                                      \
    X(cuLaunchKernelEx)                                                                                                \
    X(cuTensorMapEncodeTiled)                                                                                          \
    X(cuMemAlloc)                                                                                                      \
    X(cuMemFree)                                                                                                       \
    X(cuMemcpyHtoD)                                                                                                    \
    X(cuMemcpyDtoH)                                                                                                    \
    X(cuMemsetD8)

struct cbn__cuda_table {
#define CBN__X(function) __typeof__(&function) function;
    CBN__CUDA_MAP(CBN__X)
#undef CBN__X
};

const struct cbn__cuda_table *cbn__driver_table(const struct cbn__driver *driver);

/* Fills err with the CUresult's name and the function's, returns CBN_STATUS_CUDA. */
int32_t cbn__driver_error(const struct cbn__driver *driver, CUresult result, const char *function,
                          struct cbn_error *err);

#endif
