/*
 * The runtime behind the public handle, and the one way from a decision to a loaded kernel.
 *
 * Locks (order in runtime/README.md): open_lock guards the one-time opening of the driver; map_lock guards inserts
 * into the memory map (reads are lock-free). Neither is held across NVRTC, a load, fsync or a callback.
 */
#ifndef CBN_API_RUNTIME_H
#define CBN_API_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>

#include <cubinet/cubinet.h>

#include "api/kernel_map.h"
#include "base/error.h"
#include "base/notice.h"
#include "cache/cabinet.h"
#include "dispatch/builtin.h"
#include "dispatch/decide.h"
#include "jit/build.h"
#include "launch/kernel.h"

#define CBN__FAMILIES_MAX 32
#define CBN__DEVICES_MAX 64

struct cbn__device_slot {
    _Atomic int state; /* 0 unknown, 1 facts are valid */
    struct cbn__device_facts facts;
};

struct cbn__setting {
    char *value; /* NULL: unset */
    const char *origin;
};

struct cbn_runtime {
    uint32_t flags;
    uint32_t miss_policy;
    uint32_t build_timeout_ms, lock_timeout_ms, flight_timeout_ms;
    uint32_t base_count;
    uint64_t max_bytes;
    char *base_dirs[CBN__BASES_MAX];
    struct cbn__sink sink;
    struct {
        struct cbn__setting cache_dir, bases, nvrtc_path, cuda_path, builder_path, policy, disable, enable,
            fleet;
    } settings;
    struct cbn__tier *tier;       /* NULL: no fleet */
    struct cbn__cabinet *cabinet; /* never NULL after create; may have no layer */
    struct cbn__builder *builder;
    uint32_t family_count;
    struct cbn__family *families[CBN__FAMILIES_MAX]; /* the first CBN__BUILTIN_COUNT are the built-in ones */
    struct cbn__route routes[CBN__FAMILIES_MAX];     /* the runtime's own policy and switches, per family */
    pthread_mutex_t open_lock;
    _Atomic(struct cbn__driver *) driver;
    struct cbn__device_slot devices[CBN__DEVICES_MAX];
    struct cbn__kernel_map *kernels;
    struct {
#define CBN_X(name, text) _Atomic uint64_t name;
        CBN_STAT_MAP(CBN_X)
#undef CBN_X
    } stats;
};

#define CBN__COUNT(runtime, name) atomic_fetch_add_explicit(&(runtime)->stats.name, 1, memory_order_relaxed)

/* The family named op; NULL when there is none. */
struct cbn__family *cbn__runtime_family(struct cbn_runtime *runtime, const char *op, uint32_t *ret_index);

/* Opens the driver on first need. */
int32_t cbn__runtime_driver(struct cbn_runtime *runtime, struct cbn__driver **ret_driver, struct cbn_error *err);

/* Where a call runs: context, device and its facts (read once per device). */
struct cbn__place {
    struct cbn__driver *driver;
    uint64_t context_id;
    int device;
    const struct cbn__device_facts *facts;
};
int32_t cbn__runtime_place(struct cbn_runtime *runtime, struct cbn__place *ret_place, struct cbn_error *err);

/*
 * From a specialisation to a kernel loaded at place: memory map, then cabinet, then single flight and a build, then
 * load. stream is asked whether it captures only when something is missing (NOT_LOADED then); has_stream false: not
 * a launch (prepare). Obeys miss_policy (0: the runtime's).
 */
int32_t cbn__kernel_obtain(struct cbn_runtime *runtime, const struct cbn__spec *spec, const struct cbn__place *place,
                           uint32_t shared_bytes, uint32_t miss_policy, bool has_stream, void *stream,
                           struct cbn__kernel **ret_kernel, struct cbn_error *err);

/*
 * The disk half of it, for warm-up: the specialisation is in a layer afterwards. PRESENT, OTHER (another process built
 * it meanwhile) or COMPILED in *ret_outcome; log is filled on failure.
 */
int32_t cbn__disk_obtain(struct cbn_runtime *runtime, const struct cbn__spec *spec, enum cbn_warm_outcome *ret_outcome,
                         struct cbn__buf *ret_log, struct cbn_error *err);

/* One look-up in the cabinet, counted by its outcome. probe_only: copies nothing. */
enum cbn__lookup cbn__cabinet_ask(struct cbn_runtime *runtime, struct cbn__blob key_record,
                                  const struct cbn__compiler_rule *rule, struct cbn__entry *ret_entry);

/* A query's family, facts and route. */
struct cbn__question {
    struct cbn__family *family;
    struct cbn__route route;
    bool own; /* a caller's family: its facts are all given by name */
    uint32_t shape_facts;
    int64_t facts[CBN_FACTS_MAX];
    const struct cbn__family *quantize_family; /* fp8_quantize and its route, for what quantises first */
    struct cbn__route quantize_route;
};
int32_t cbn__question_resolve(struct cbn_runtime *runtime, const struct cbn_query *query,
                              struct cbn__question *ret_question, struct cbn_error *err);
/* Sweep, or every shape when the query has none. */
int32_t cbn__question_enumerate(const struct cbn__question *question, const struct cbn_query *query, cbn__spec_fn spec,
                                void *user, struct cbn_error *err);

#endif
