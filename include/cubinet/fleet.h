/*
 * The fleet tier: a Redis or Valkey server that many machines share, asked below every layer of the cabinet. What one
 * machine builds, the others pull, verify and keep. A library built without it (CUBINET_FLEET of CMake) refuses the
 * option `fleet` with UNSUPPORTED.
 */
#ifndef CUBINET_FLEET_H
#define CUBINET_FLEET_H

#include <cubinet/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a runtime counts of the tier; fleet_NAME in struct cbn_stats and of a layer. X(name, text) */
#define CBN_FLEET_STAT_MAP(X)                                                                                          \
    X(hits, "kernels pulled from the fleet's server")                                                                  \
    X(misses, "questions that the fleet's server had no kernel for")                                                   \
    X(refused, "values of the fleet's server that did not verify")                                                     \
    X(failures, "questions that the fleet's server did not answer")                                                    \
    X(skipped, "look-ups that left the fleet's server alone after a failure")                                          \
    X(pushes, "kernels stored on the fleet's server")                                                                  \
    X(pushes_dropped, "kernels that the fleet's server did not take")                                                  \
    X(waits, "builds left to another machine")

struct cbn_fleet_info {
    uint32_t size;
    uint32_t read_only;     /* 1: a replica, which takes neither pushes nor leases */
    const char *url;        /* the password as *** */
    const char *server;     /* "redis 7.0.15" */
    const char *eviction;   /* the server's maxmemory-policy: "allkeys-lru" */
    uint64_t keys;          /* in the database, leases and others' included */
    uint64_t used_bytes;
    uint64_t max_bytes;     /* 0: the server has no bound */
    uint64_t evicted;       /* keys, since the server started */
};

#define CBN_FLEET_INFO_INIT {sizeof(struct cbn_fleet_info), 0, NULL, NULL, NULL, 0, 0, 0, 0}

/*
 * Asks the server about itself, even where it was left alone after a failure. The strings are valid until the next
 * call, or until the runtime is destroyed; url is filled on failure too. Statuses: OK, NOT_FOUND (no server is named),
 * TIMEOUT, IO, DAMAGED (what answers is no such server). thread: owner; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_fleet_inspect(struct cbn_runtime *runtime, struct cbn_fleet_info *ret_info,
                                     struct cbn_error *err);

/*
 * Stores the entry of that key (32 hex digits) on the server, every compiler major of the uppermost layer that has it,
 * whether or not the server has it already. Statuses: OK, NOT_FOUND (no such entry, or no server is named), INVALID,
 * LIMIT (too large for the tier), TIMEOUT, IO, DAMAGED. thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_fleet_push(struct cbn_runtime *runtime, const char *key, struct cbn_error *err);

#ifdef __cplusplus
}
#endif

#endif
