/*
 * Where a call runs: the driver, opened on first need, and the facts of the current context's device.
 */
#include "api/runtime.h"

#include <string.h>

int32_t cbn__runtime_driver(struct cbn_runtime *runtime, struct cbn__driver **ret_driver, struct cbn_error *err)
{
    struct cbn__driver *driver = atomic_load_explicit(&runtime->driver, memory_order_acquire);
    if (driver) {
        *ret_driver = driver;
        return CBN_STATUS_OK;
    }
    bool from_env = strcmp(runtime->settings.cuda_path.origin, "option") != 0;
    const char *path = runtime->settings.cuda_path.value;
    int32_t status = CBN_STATUS_OK;
    (void)pthread_mutex_lock(&runtime->open_lock);
    driver = atomic_load_explicit(&runtime->driver, memory_order_acquire);
    if (!driver) {
        status = cbn__driver_open(from_env ? NULL : path, from_env ? path : NULL, &driver, err);
        if (status == CBN_STATUS_OK)
            atomic_store_explicit(&runtime->driver, driver, memory_order_release);
    }
    (void)pthread_mutex_unlock(&runtime->open_lock);
    if (status == CBN_STATUS_OK)
        *ret_driver = driver;
    return status;
}

static int32_t read_device(struct cbn_runtime *runtime, struct cbn__driver *driver, int device, struct cbn_error *err)
{
    struct cbn__device_slot *slot = &runtime->devices[device];
    int32_t status = CBN_STATUS_OK;
    (void)pthread_mutex_lock(&runtime->open_lock);
    if (!atomic_load_explicit(&slot->state, memory_order_relaxed)) {
        status = cbn__driver_device_facts(driver, device, &slot->facts, err);
        if (status == CBN_STATUS_OK)
            atomic_store_explicit(&slot->state, 1, memory_order_release);
    }
    (void)pthread_mutex_unlock(&runtime->open_lock);
    return status;
}

int32_t cbn__runtime_place(struct cbn_runtime *runtime, struct cbn__place *ret_place, struct cbn_error *err)
{
    struct cbn__place place = {0};
    int32_t status = cbn__runtime_driver(runtime, &place.driver, err);
    if (status == CBN_STATUS_OK)
        status = cbn__driver_current(place.driver, &place.context_id, &place.device, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (place.device < 0 || place.device >= CBN__DEVICES_MAX)
        return cbn__error_own(err, CBN_STATUS_LIMIT, "device %d: at most %d devices are supported", place.device,
                              CBN__DEVICES_MAX);
    struct cbn__device_slot *slot = &runtime->devices[place.device];
    if (!atomic_load_explicit(&slot->state, memory_order_acquire))
        status = read_device(runtime, place.driver, place.device, err);
    if (status != CBN_STATUS_OK)
        return status;
    place.facts = &slot->facts;
    if (!place.facts->arch)
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                              "device %d (%s) has compute capability %u.%u, for which there is no kernel", place.device,
                              place.facts->name, place.facts->capability / 10, place.facts->capability % 10);
    *ret_place = place;
    return CBN_STATUS_OK;
}
