/*
 * Status numbers, error domains and the caller-owned error record.
 *
 * The numbers are pinned for ever. One X-macro makes the enum, the names, the texts and the test that pins them.
 */
#ifndef CUBINET_STATUS_H
#define CUBINET_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CBN_EXPORT __attribute__((visibility("default")))
#else
#define CBN_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* X(number, NAME, text) */
#define CBN_STATUS_MAP(X)                                                                                              \
    X(0, OK, "success")                                                                                                \
    X(1, INVALID, "an argument is wrong; the message names it")                                                        \
    X(2, UNSUPPORTED, "no kernel takes these arguments on this architecture")                                          \
    X(3, NOT_FOUND, "the thing asked for does not exist")                                                              \
    X(4, NO_DRIVER, "no CUDA driver or no device")                                                                     \
    X(5, NO_COMPILER, "no NVRTC was found")                                                                            \
    X(6, COMPILE_FAILED, "NVRTC refused or died on the source")                                                        \
    X(7, NO_MEMORY, "out of host memory")                                                                              \
    X(8, IO, "the operating system refused a file operation")                                                          \
    X(9, DAMAGED, "stored bytes do not verify")                                                                        \
    X(10, INCOMPATIBLE, "the driver refuses a cubin of this compiler")                                                 \
    X(11, TIMEOUT, "a lock or a build did not come free before its deadline")                                          \
    X(12, NOT_LOADED, "the kernel is not loaded and the stream is capturing")                                          \
    X(13, MISS, "the kernel is not in the cache and the miss policy is never")                                         \
    X(14, UNTRUSTED, "a cache folder that others can write, or that others own")                                       \
    X(15, CUDA, "a CUDA driver call failed")                                                                           \
    X(16, LIMIT, "a bound of size, depth or count was passed")                                                         \
    X(17, PARTIAL, "some parts failed, the others are done")                                                           \
    X(18, INTERNAL, "a defect in Cubinet")

enum cbn_status {
#define CBN_X(number, name, text) CBN_STATUS_##name = number,
    CBN_STATUS_MAP(CBN_X)
#undef CBN_X
};

/* Who reported a failure: the native_code of an error is a number of that domain. */
#define CBN_DOMAIN_MAP(X)                                                                                              \
    X(0, CUBINET, "cubinet")                                                                                           \
    X(1, OS, "os")                                                                                                     \
    X(2, CUDA, "cuda")                                                                                                 \
    X(3, NVRTC, "nvrtc")                                                                                               \
    X(4, LMDB, "lmdb")

enum cbn_domain {
#define CBN_X(number, name, text) CBN_DOMAIN_##name = number,
    CBN_DOMAIN_MAP(CBN_X)
#undef CBN_X
};

#define CBN_ERROR_MESSAGE_BYTES 496

/* Owned by the caller, 512 bytes, written only on failure. The message ends in the next step to take. */
struct cbn_error {
    int32_t status;      /* enum cbn_status */
    uint32_t domain;     /* enum cbn_domain */
    int64_t native_code; /* errno, CUresult, nvrtcResult or LMDB code; 0 for domain cubinet */
    char message[CBN_ERROR_MESSAGE_BYTES];
};

/*
 * Name ("INVALID") and text of a status, the name of a domain; "UNKNOWN" for a number that is none.
 * Static strings. thread: any; blocks: never; capture: ok
 */
CBN_EXPORT const char *cbn_status_name(int32_t status);
CBN_EXPORT const char *cbn_status_text(int32_t status);
CBN_EXPORT const char *cbn_domain_name(uint32_t domain);

#ifdef __cplusplus
}
#endif

#endif
