/*
 * Loaded kernels: one CUlibrary a process, load state per (kernel, context), launches with attributes on the stack.
 */
#ifndef CBN_LAUNCH_KERNEL_H
#define CBN_LAUNCH_KERNEL_H

#include <cubinet/template.h>

#include "base/buf.h"
#include "driver/device.h"

struct cbn__kernel;

/*
 * cuLibraryLoadData and cuLibraryGetKernel under a relaxed capture mode. Takes the cubin's bytes over (*cubin is
 * emptied on success). INCOMPATIBLE when the driver refuses the image (CUDA_ERROR_NO_BINARY_FOR_GPU, INVALID_IMAGE,
 * UNSUPPORTED_PTX_VERSION), CUDA otherwise.
 */
int32_t cbn__kernel_create(const struct cbn__driver *driver, struct cbn__buf *cubin, const char *symbol,
                           struct cbn__kernel **ret_kernel, struct cbn_error *err);
void cbn__kernel_destroy(struct cbn__kernel *kernel);

/* True when the kernel is loaded into that context: wait-free. */
bool cbn__kernel_ready(const struct cbn__kernel *kernel, uint64_t context_id);

/* True when a launch with so much dynamic shared memory needs no cbn__kernel_load on that device: wait-free. */
bool cbn__kernel_fits(const struct cbn__kernel *kernel, int device, uint32_t shared_bytes);

/*
 * Loads into the current context and raises the device's shared-memory attribute where shared_bytes needs it. What is
 * loaded already is only raised, which a capture allows; a load is never asked for while the calling thread's stream
 * captures. thread: any (one loads, others wait).
 */
int32_t cbn__kernel_load(struct cbn__kernel *kernel, uint64_t context_id, int device, uint32_t shared_bytes,
                         struct cbn_error *err);

/*
 * Asks for the split of an SM's memory that has the least L1. An SM changes the split only while it is empty: a kernel of
 * little shared memory that asks for none would keep the next kernel of a chain out until its own CTAs have gone (measured
 * on an H200: a product of 64 bf16 rows, quantised by a launch ahead, took 12 % longer). A hint: nothing fails.
 */
void cbn__kernel_prefer_shared(struct cbn__kernel *kernel, int device);

/* True when stream is being captured. */
int32_t cbn__stream_capturing(const struct cbn__driver *driver, void *stream, bool *ret_capturing,
                              struct cbn_error *err);

/* arguments: the one struct the kernel takes by value. */
int32_t cbn__kernel_launch(const struct cbn__kernel *kernel, const struct cbn_geometry *geometry, void *arguments,
                           bool pdl, void *stream, struct cbn_error *err);

#endif
