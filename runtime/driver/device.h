/*
 * The CUDA driver without cuda.h: opening it, device facts, plain memory for selftest.
 */
#ifndef CBN_DRIVER_DEVICE_H
#define CBN_DRIVER_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cbn__driver;

#define CBN__DRIVER_MIN_VERSION 12040

/*
 * dlopen, cuInit. path when given, else env_path when given: that file and nothing else. With neither: libcuda.so.1 of
 * the loader's path, then the usual driver folders. NO_DRIVER says what was searched, or which version is too old.
 */
int32_t cbn__driver_open(const char *path, const char *env_path, struct cbn__driver **ret_driver,
                         struct cbn_error *err);
void cbn__driver_close(struct cbn__driver *driver);
uint32_t cbn__driver_version(const struct cbn__driver *driver); /* 12040 = 12.4 */
const char *cbn__driver_path(const struct cbn__driver *driver);

struct cbn__device_facts {
    uint32_t capability; /* 90 for 9.0 */
    uint32_t arch;       /* CBN_ARCH(90, 'a'); 0: none of ours */
    uint32_t sms;
    uint32_t shared_bytes_optin;
    char name[96];
};

int32_t cbn__driver_device_count(const struct cbn__driver *driver, int *ret_count, struct cbn_error *err);
int32_t cbn__driver_device_facts(const struct cbn__driver *driver, int device, struct cbn__device_facts *ret_facts,
                                 struct cbn_error *err);

/* The calling thread's current context: its unique id and its device. CUDA when there is none. */
int32_t cbn__driver_current(const struct cbn__driver *driver, uint64_t *ret_context_id, int *ret_device,
                            struct cbn_error *err);

/*
 * For selftest: makes device's primary context current; memory and copies in it. Releasing leaves the thread without a
 * current context.
 */
int32_t cbn__driver_primary_acquire(const struct cbn__driver *driver, int device, struct cbn_error *err);
void cbn__driver_primary_release(const struct cbn__driver *driver, int device);
int32_t cbn__driver_alloc(const struct cbn__driver *driver, uint64_t bytes, uint64_t *ret_address,
                          struct cbn_error *err);
void cbn__driver_free(const struct cbn__driver *driver, uint64_t address);
int32_t cbn__driver_copy_in(const struct cbn__driver *driver, uint64_t address, const void *data, uint64_t bytes,
                            struct cbn_error *err);
int32_t cbn__driver_copy_out(const struct cbn__driver *driver, void *ret_data, uint64_t address, uint64_t bytes,
                             struct cbn_error *err);
int32_t cbn__driver_fill(const struct cbn__driver *driver, uint64_t address, uint8_t value, uint64_t bytes,
                         struct cbn_error *err);
int32_t cbn__driver_synchronise(const struct cbn__driver *driver, struct cbn_error *err);

#endif
