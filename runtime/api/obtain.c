/*
 * From a specialisation to bytes on disk, and to a kernel that the driver has loaded: memory map, cabinet, single
 * flight, build, load. Holds no lock: the flight is a claim on one key, and no other key waits for it.
 */
#include "api/runtime.h"

#include "base/clock.h"

#define VERSION_MAJOR_UNIT 1000u
#define LOAD_TRIES_MAX 8 /* compiler majors that a driver may refuse one after another */

enum cbn__lookup cbn__cabinet_ask(struct cbn_runtime *runtime, struct cbn__blob key_record,
                                  const struct cbn__compiler_rule *rule, struct cbn__entry *ret_entry)
{
    enum cbn__lookup found = cbn__cabinet_find(runtime->cabinet, key_record, rule, ret_entry);
    switch (found) {
    case CBN__LOOKUP_HIT:
        if (ret_entry->layer == 0)
            CBN__COUNT(runtime, overlay_hits);
        else
            CBN__COUNT(runtime, base_hits);
        break;
    case CBN__LOOKUP_ABSENT:
        CBN__COUNT(runtime, misses_absent);
        break;
    case CBN__LOOKUP_DAMAGED:
        CBN__COUNT(runtime, misses_damaged);
        break;
    case CBN__LOOKUP_INCOMPATIBLE:
        CBN__COUNT(runtime, misses_incompatible);
        break;
    case CBN__LOOKUP_BUSY:
        CBN__COUNT(runtime, misses_busy);
        break;
    case CBN__LOOKUP_IO:
        CBN__COUNT(runtime, misses_io);
        break;
    }
    return found;
}

static int32_t run_build(struct cbn_runtime *runtime, const struct cbn__spec *spec, struct cbn__build *ret_build,
                         struct cbn_error *err)
{
    struct cbn_spec described;
    cbn__spec_describe(spec, &described);
    int32_t status = cbn__build_run(runtime->builder, spec, ret_build, err);
    if (ret_build->log.size)
        cbn__sink_tell(&runtime->sink, CBN_EVENT_COMPILE_LOG, status, "%s:\n%s", described.text,
                       cbn__buf_text(&ret_build->log));
    if (status != CBN_STATUS_OK) {
        CBN__COUNT(runtime, compile_failures);
        return status;
    }
    CBN__COUNT(runtime, compiles);
    atomic_fetch_add_explicit(&runtime->stats.compile_ms, ret_build->compile_ms, memory_order_relaxed);
    cbn__sink_tell(&runtime->sink, CBN_EVENT_COMPILED, ret_build->compile_ms, "%s", described.text);
    return CBN_STATUS_OK;
}

static int32_t store_build(struct cbn_runtime *runtime, struct cbn__blob key_record, const struct cbn__build *build,
                           struct cbn_error *err)
{
    struct cbn__entry_facts facts = {
        .compiler_version = build->compiler_version,
        .compile_ms = build->compile_ms,
        .registers = build->registers,
        .shared_bytes = build->shared_bytes,
        .spill_bytes = build->spill_bytes,
        .created_s = cbn__clock_wall_s(),
    };
    int32_t status = cbn__cabinet_put(runtime->cabinet, key_record, cbn__buf_blob(&build->cubin),
                                      cbn__buf_blob(&build->log), &facts, err);
    if (status == CBN_STATUS_OK)
        CBN__COUNT(runtime, puts);
    else
        CBN__COUNT(runtime, puts_dropped);
    return status;
}

/* Claims the key. *ret_held is false past the deadline: the caller builds alone, which is right but not shared. */
static void begin_flight(struct cbn_runtime *runtime, struct cbn__blob key_record, struct cbn__flight *ret_flight,
                         bool *ret_held, bool *ret_waited)
{
    struct cbn__hash key = cbn__key_hash(key_record);
    *ret_waited = false;
    *ret_held = cbn__flight_begin(runtime->cabinet, &key, runtime->flight_timeout_ms, ret_flight, ret_waited) !=
                CBN_STATUS_TIMEOUT;
    if (*ret_waited)
        CBN__COUNT(runtime, flight_waits);
}

/* Asked before a build whose only purpose is to be stored. */
static int32_t require_store(struct cbn_runtime *runtime, struct cbn_error *err)
{
    struct cbn__layer layer = {0};
    int32_t status = cbn__cabinet_layer_count(runtime->cabinet) > 0
                         ? cbn__cabinet_layer(runtime->cabinet, 0, &layer, err)
                         : CBN_STATUS_OK;
    if (status != CBN_STATUS_OK || layer.writable)
        return status;
    const char *folder = runtime->settings.cache_dir.value;
    return cbn__error_own(err, CBN_STATUS_IO,
                          "nowhere to store: the runtime has no writable cache folder%s%.200s; name one with --cache or "
                          "CUBINET_CACHE",
                          folder ? " at " : "", folder ? folder : "");
}

static int32_t build_and_store(struct cbn_runtime *runtime, const struct cbn__spec *spec, struct cbn__blob record,
                               struct cbn__buf *ret_log, struct cbn_error *err)
{
    int32_t status = require_store(runtime, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__build build = CBN__BUILD_INIT;
    status = run_build(runtime, spec, &build, err);
    if (status == CBN_STATUS_OK)
        status = store_build(runtime, record, &build, err);
    else
        cbn__buf_append(ret_log, build.log.data, build.log.size);
    cbn__build_done(&build);
    return status;
}

int32_t cbn__disk_obtain(struct cbn_runtime *runtime, const struct cbn__spec *spec, enum cbn_warm_outcome *ret_outcome,
                         struct cbn__buf *ret_log, struct cbn_error *err)
{
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(spec, &record);
    if (record.failed)
        return cbn__error_no_memory(err);
    const struct cbn__compiler_rule any = {0};
    struct cbn__entry entry;
    if (cbn__cabinet_ask(runtime, cbn__buf_blob(&record), &any, &entry) == CBN__LOOKUP_HIT) {
        cbn__entry_done(&entry);
        *ret_outcome = CBN_WARM_PRESENT;
        return CBN_STATUS_OK;
    }
    struct cbn__flight flight;
    bool held = false, waited = false;
    begin_flight(runtime, cbn__buf_blob(&record), &flight, &held, &waited);
    int32_t status = CBN_STATUS_OK;
    /* Another may have published between our look-up and our claim. */
    if (cbn__cabinet_ask(runtime, cbn__buf_blob(&record), &any, &entry) == CBN__LOOKUP_HIT) {
        cbn__entry_done(&entry);
        *ret_outcome = CBN_WARM_OTHER;
    } else {
        status = build_and_store(runtime, spec, cbn__buf_blob(&record), ret_log, err);
        *ret_outcome = CBN_WARM_COMPILED;
    }
    if (held)
        cbn__flight_end(&flight);
    return status;
}

/* A cubin in hand: into the driver, and into the memory map. Empties *cubin. */
static int32_t adopt_cubin(struct cbn_runtime *runtime, const struct cbn__spec *spec, const struct cbn__place *place,
                           struct cbn__buf *cubin, struct cbn__kernel **ret_kernel, struct cbn_error *err)
{
    struct cbn__kernel *kernel = NULL;
    int32_t status = cbn__kernel_create(place->driver, cubin, spec->template->symbol, &kernel, err);
    if (status != CBN_STATUS_OK)
        return status;
    CBN__COUNT(runtime, loads);
    return cbn__kernel_map_insert(runtime->kernels, spec, kernel, ret_kernel, err);
}

/*
 * From the cabinet into the driver. NOT_FOUND: nothing usable there. An image that the driver refuses excludes its
 * compiler's major in *rule, and the next one is tried.
 */
static int32_t kernel_from_cabinet(struct cbn_runtime *runtime, const struct cbn__spec *spec,
                                   const struct cbn__place *place, struct cbn__blob record,
                                   struct cbn__compiler_rule *rule, struct cbn__kernel **ret_kernel,
                                   struct cbn_error *err)
{
    for (int tries = 0; tries < LOAD_TRIES_MAX; tries++) {
        struct cbn__entry entry;
        if (cbn__cabinet_ask(runtime, record, rule, &entry) != CBN__LOOKUP_HIT)
            return CBN_STATUS_NOT_FOUND;
        struct cbn__buf cubin = CBN__BUF_INIT;
        cbn__buf_append(&cubin, entry.payload.data, entry.payload.size);
        uint32_t major = entry.facts.compiler_version / VERSION_MAJOR_UNIT;
        cbn__entry_done(&entry);
        int32_t status = cubin.failed ? cbn__error_no_memory(err)
                                      : adopt_cubin(runtime, spec, place, &cubin, ret_kernel, err);
        cbn__buf_done(&cubin);
        if (status != CBN_STATUS_INCOMPATIBLE)
            return status;
        CBN__COUNT(runtime, misses_incompatible);
        if (major >= 32 || (rule->except_majors >> major & 1u))
            return CBN_STATUS_NOT_FOUND;
        rule->except_majors |= 1u << major;
    }
    return CBN_STATUS_NOT_FOUND;
}

static int32_t kernel_from_build(struct cbn_runtime *runtime, const struct cbn__spec *spec,
                                 const struct cbn__place *place, struct cbn__blob record,
                                 struct cbn__kernel **ret_kernel, struct cbn_error *err)
{
    struct cbn__build build = CBN__BUILD_INIT;
    int32_t status = run_build(runtime, spec, &build, err);
    if (status == CBN_STATUS_OK) {
        (void)store_build(runtime, record, &build, NULL); /* a fault of the store is counted, never the caller's */
        status = adopt_cubin(runtime, spec, place, &build.cubin, ret_kernel, err);
    }
    if (status == CBN_STATUS_INCOMPATIBLE)
        status = cbn__error_own(err, CBN_STATUS_INCOMPATIBLE,
                                "NVRTC %u.%u builds cubins that this driver (CUDA %u.%u) refuses; install a libnvrtc of "
                                "the driver's major version or name it in CUBINET_NVRTC",
                                build.compiler_version / VERSION_MAJOR_UNIT, build.compiler_version % VERSION_MAJOR_UNIT,
                                cbn__driver_version(place->driver) / 1000,
                                cbn__driver_version(place->driver) % 1000 / 10);
    cbn__build_done(&build);
    return status;
}

static int32_t tell_miss(struct cbn_runtime *runtime, const struct cbn__spec *spec, struct cbn_error *err)
{
    uint32_t family = 0;
    struct cbn_spec described;
    cbn__spec_describe(spec, &described);
    if (cbn__runtime_family(runtime, described.op, &family) && family >= CBN__BUILTIN_COUNT)
        return cbn__error_own(err, CBN_STATUS_MISS,
                              "%.300s is in no layer of the cache and the miss policy is never; warm it with cbn_warm",
                              described.text);
    return cbn__error_own(err, CBN_STATUS_MISS,
                          "%.300s is in no layer of the cache and the miss policy is never; warm it with `cubinet warm "
                          "--model CONFIG.json --arch %s`",
                          described.text, described.arch);
}

static int32_t find_or_build(struct cbn_runtime *runtime, const struct cbn__spec *spec, const struct cbn__place *place,
                             uint32_t miss_policy, struct cbn__kernel **ret_kernel, struct cbn_error *err)
{
    CBN__BUF_AUTO record_buf = CBN__BUF_INIT;
    cbn__key_record(spec, &record_buf);
    if (record_buf.failed)
        return cbn__error_no_memory(err);
    struct cbn__blob record = cbn__buf_blob(&record_buf);
    struct cbn__compiler_rule rule = {.max_major = cbn__driver_version(place->driver) / 1000};
    int32_t status = kernel_from_cabinet(runtime, spec, place, record, &rule, ret_kernel, err);
    if (status != CBN_STATUS_NOT_FOUND)
        return status;
    if (miss_policy == CBN_MISS_NEVER)
        return tell_miss(runtime, spec, err);
    struct cbn__flight flight;
    bool held = false, waited = false;
    begin_flight(runtime, record, &flight, &held, &waited);
    /* Another thread may have loaded it, another process stored it, between our look-up and our claim. */
    *ret_kernel = cbn__kernel_map_find(runtime->kernels, spec);
    status = *ret_kernel ? CBN_STATUS_OK
                         : kernel_from_cabinet(runtime, spec, place, record, &rule, ret_kernel, err);
    if (status == CBN_STATUS_NOT_FOUND)
        status = kernel_from_build(runtime, spec, place, record, ret_kernel, err);
    if (held)
        cbn__flight_end(&flight);
    return status;
}

static int32_t refuse_in_capture(const struct cbn__place *place, const struct cbn__spec *spec, void *stream,
                                 struct cbn_error *err)
{
    bool capturing = false;
    int32_t status = cbn__stream_capturing(place->driver, stream, &capturing, err);
    if (status != CBN_STATUS_OK || !capturing)
        return status;
    struct cbn_spec described;
    cbn__spec_describe(spec, &described);
    return cbn__error_own(err, CBN_STATUS_NOT_LOADED,
                          "%.300s is not loaded and the stream is capturing; call cbn_prepare (or run once) before the "
                          "capture begins",
                          described.text);
}

int32_t cbn__kernel_obtain(struct cbn_runtime *runtime, const struct cbn__spec *spec, const struct cbn__place *place,
                           uint32_t shared_bytes, uint32_t miss_policy, bool has_stream, void *stream,
                           struct cbn__kernel **ret_kernel, struct cbn_error *err)
{
    struct cbn__kernel *kernel = cbn__kernel_map_find(runtime->kernels, spec);
    bool ready = kernel && cbn__kernel_ready(kernel, place->context_id);
    if (ready)
        CBN__COUNT(runtime, memory_hits);
    if (ready && cbn__kernel_fits(kernel, place->device, shared_bytes)) {
        *ret_kernel = kernel;
        return CBN_STATUS_OK;
    }
    /* Loaded, but a fact asks for more shared memory than before: raising that is no capture's concern. */
    int32_t status = has_stream && !ready ? refuse_in_capture(place, spec, stream, err) : CBN_STATUS_OK;
    if (status == CBN_STATUS_OK && !kernel)
        status = find_or_build(runtime, spec, place, miss_policy ? miss_policy : runtime->miss_policy, &kernel, err);
    if (status == CBN_STATUS_OK)
        status = cbn__kernel_load(kernel, place->context_id, place->device, shared_bytes, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (!ready && (spec->template->flags & CBN_CANDIDATE_PDL)) /* its CTAs run beside those of its neighbours */
        cbn__kernel_prefer_shared(kernel, place->device);
    *ret_kernel = kernel;
    return status;
}
