/*
 * The runtime: one handle that owns the cabinet, the loaded kernels, the counters and the two dlopen'ed libraries.
 */
#ifndef CUBINET_RUNTIME_H
#define CUBINET_RUNTIME_H

#include <cubinet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cbn_runtime;

/* What the event callback hears. X(number, NAME, name) */
#define CBN_EVENT_MAP(X)                                                                                               \
    X(1, NOTICE, "notice")           /* said once: a fallback folder, a refused cache, a denied lock */                \
    X(2, COMPILED, "compiled")       /* a specialisation was built; text names it, value is milliseconds */            \
    X(3, COMPILE_LOG, "compile-log") /* what NVRTC said, warnings included */                                          \
    X(4, DAMAGE, "damage")           /* an entry or a file did not verify and was dropped or set aside */

enum cbn_event_kind {
#define CBN_X(number, name, text) CBN_EVENT_##name = number,
    CBN_EVENT_MAP(CBN_X)
#undef CBN_X
};

struct cbn_event {
    uint32_t size;
    uint32_t kind;    /* enum cbn_event_kind */
    const char *text; /* valid during the call */
    int64_t value;
};

/* May be called from any thread that calls into the runtime; no lock of Cubinet is held meanwhile. */
typedef void (*cbn_event_fn)(void *user, const struct cbn_event *event);

/* flags of cbn_runtime_options */
#define CBN_RUNTIME_MEMORY_ONLY 1u     /* no cache folder at all */
#define CBN_RUNTIME_IGNORE_ENV 2u      /* read no environment variable (setuid programs never read one) */
#define CBN_RUNTIME_READ_ONLY 4u       /* open the cache folder as a base: nothing is ever written */
#define CBN_RUNTIME_CACHE_REQUIRED 8u  /* a cache folder that cannot be opened is an error, not a notice */
#define CBN_RUNTIME_TRUST_FOLDER 16u   /* the override that an UNTRUSTED error names */

/*
 * Every string is copied. Unset fields (NULL, 0) fall back to the environment, then to the default:
 * cache_dir: CUBINET_CACHE, $XDG_CACHE_HOME/cubinet, $HOME/.cache/cubinet, else memory only (said once). Of the latter
 * two, one on a filesystem not known to be local falls back to /var/tmp/cubinet-UID (said once).
 * base_dirs: CUBINET_BASES (colon list). nvrtc_path: CUBINET_NVRTC, then the loader's path, the usual toolkit
 * folders, a Python environment's nvidia folder. cuda_path: CUBINET_CUDA, then libcuda.so.1.
 * policy / disable / enable: CUBINET_POLICY, CUBINET_DISABLE, CUBINET_ENABLE. fleet: CUBINET_FLEET; a URL that is none
 * is INVALID, one that this library cannot use is UNSUPPORTED.
 */
struct cbn_runtime_options {
    uint32_t size;
    uint32_t flags;
    const char *cache_dir;
    const char *const *base_dirs;
    uint32_t base_count;
    uint32_t miss_policy;       /* enum cbn_miss_policy */
    uint64_t max_bytes;         /* bound of the overlay's file; 0: 1 GiB */
    const char *nvrtc_path;     /* a libnvrtc.so file */
    const char *cuda_path;      /* a libcuda.so.1 file */
    const char *builder_path;   /* a program that runs cbn_builder_main for argv[1] == "--cubinet-builder"; NULL: in process */
    uint32_t build_timeout_ms;  /* of one build in a child process; 0: 300,000 */
    uint32_t lock_timeout_ms;   /* of one wait for a cache lock; 0: 2,000 */
    uint32_t flight_timeout_ms; /* how long to wait for another's build of the same key; 0: 60,000 */
    uint32_t reserved;
    const char *policy;
    const char *disable;
    const char *enable;
    cbn_event_fn event;
    void *event_user;
    const char *fleet;          /* URL of a server that a fleet shares, see README; NULL: CUBINET_FLEET, else none */
};

#define CBN_RUNTIME_OPTIONS_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(struct cbn_runtime_options), 0, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL,    \
            NULL, NULL, NULL                                                                                           \
    }

/*
 * Creates a runtime. Opens the cache folder (created with mode 0700 when missing) and its bases; opens neither the
 * driver nor NVRTC, and asks no server. options may be NULL. Expected statuses: OK, INVALID, NO_MEMORY, UNSUPPORTED (a
 * fleet that this library cannot reach); UNTRUSTED and IO only with
 * CBN_RUNTIME_CACHE_REQUIRED (otherwise one NOTICE event and a runtime that compiles to memory).
 * thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_runtime_create(const struct cbn_runtime_options *options, struct cbn_runtime **ret_runtime,
                                      struct cbn_error *err);

/*
 * Unloads every kernel and closes the cache. No call may be running, no captured graph that uses a kernel may live,
 * every plan must be destroyed before. NULL is accepted. thread: owner; blocks: disk; capture: no
 */
CBN_EXPORT void cbn_runtime_destroy(struct cbn_runtime *runtime);

/* Counters since creation. X(name, text); every output of the numbers is driven by this list. */
#define CBN_STAT_MAP(X)                                                                                                \
    X(calls, "operations called")                                                                                      \
    X(noops, "calls with nothing to launch")                                                                           \
    X(launches, "kernels launched")                                                                                    \
    X(memory_hits, "calls whose kernel was loaded")                                                                    \
    X(overlay_hits, "kernels found in the writable layer")                                                             \
    X(base_hits, "kernels found in a base layer")                                                                      \
    X(misses_absent, "look-ups that found no entry")                                                                   \
    X(misses_damaged, "look-ups whose entry did not verify")                                                           \
    X(misses_incompatible, "look-ups whose entry the driver or a version rule refused")                                \
    X(misses_busy, "look-ups that met a lock past its deadline")                                                       \
    X(misses_io, "look-ups that met a file error")                                                                     \
    X(compiles, "specialisations built here")                                                                          \
    X(compile_failures, "builds that failed")                                                                          \
    X(compile_ms, "milliseconds spent building")                                                                       \
    X(flight_waits, "builds left to another thread or process")                                                        \
    X(puts, "entries stored")                                                                                          \
    X(puts_dropped, "entries that could not be stored")                                                                \
    X(loads, "kernels loaded into the driver")                                                                         \
    X(fleet_hits, "kernels pulled from the fleet's server")                                                            \
    X(fleet_misses, "questions that the fleet's server had no kernel for")                                             \
    X(fleet_refused, "values of the fleet's server that did not verify")                                               \
    X(fleet_failures, "questions that the fleet's server did not answer")                                              \
    X(fleet_skipped, "look-ups that left the fleet's server alone after a failure")                                    \
    X(fleet_pushes, "kernels stored on the fleet's server")                                                            \
    X(fleet_pushes_dropped, "kernels that the fleet's server did not take")                                            \
    X(fleet_waits, "builds left to another machine")

struct cbn_stats {
    uint32_t size;
    uint32_t reserved;
#define CBN_X(name, text) uint64_t name;
    CBN_STAT_MAP(CBN_X)
#undef CBN_X
};

/* Fills min(ret_stats->size, known) bytes. thread: any; blocks: never; capture: ok */
CBN_EXPORT void cbn_runtime_stats(const struct cbn_runtime *runtime, struct cbn_stats *ret_stats);

struct cbn_version {
    uint32_t size;
    uint32_t major, minor, patch;
    uint32_t format;                /* of the cabinet's file */
    uint32_t argument_layout;       /* of the built-in kernels' parameters; in every key */
    char template_digest[33];       /* 32 hex digits over all embedded template bytes */
    char reserved[7];
};

#define CBN_VERSION_INIT {sizeof(struct cbn_version), 0, 0, 0, 0, 0, {0}, {0}}

/* thread: any; blocks: never; capture: ok */
CBN_EXPORT void cbn_version_get(struct cbn_version *ret_version);

/* One finding of cbn_doctor; strings are valid during the callback. */
struct cbn_doctor_check {
    uint32_t size;
    uint32_t ok;        /* 0: wrong, 1: right, 2: absent and not needed by everything (no GPU) */
    const char *name;   /* "driver", "device", "nvrtc", "cache-folder", ... */
    const char *detail; /* what was found, where it was looked for */
    const char *mend;   /* what to do, "" when ok */
};

typedef void (*cbn_doctor_fn)(void *user, const struct cbn_doctor_check *check);

/*
 * Reports driver, devices, NVRTC (its path, version, builtins), the cache folder's filesystem, owner, mode, lock,
 * free space, and the layers. thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_doctor(struct cbn_runtime *runtime, cbn_doctor_fn check, void *user, struct cbn_error *err);

/* One effective setting: its value and where it came from ("option", "CUBINET_CACHE", "default"). */
typedef void (*cbn_setting_fn)(void *user, const char *name, const char *value, const char *origin);
CBN_EXPORT void cbn_runtime_settings(const struct cbn_runtime *runtime, cbn_setting_fn setting, void *user);

/*
 * The body of a build child: reads one compile request from fd 0, compiles it through NVRTC, writes the result to
 * fd 1, returns the exit status. A program named in builder_path must call it first thing in main when
 * argv[1] is "--cubinet-builder". thread: owner; blocks: compile; capture: no
 */
CBN_EXPORT int cbn_builder_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
