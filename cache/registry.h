/*
 * One environment per folder (st_dev, st_ino) and mode in a process, however its path is spelled, and the flights.
 *
 * Owns the library's only mutable static, stamped with the pid, and its atfork hook: the child closes every lock
 * descriptor, forgets the flights and reopens its environments at their next use.
 *
 * Locks, in this order: registry.mutex; lock.mutex, usage.mutex, note_mutex of a store; the mutex of a tier;
 * flights.mutex. The registry's
 * is held for look-ups and opening of lock files only, never across LMDB, fsync or a wait.
 */
#ifndef CBN_CACHE_REGISTRY_H
#define CBN_CACHE_REGISTRY_H

#include "cache/failure.h"
#include "cache/fleet.h"
#include "cache/store.h"

struct cbn__flight_node {
    struct cbn__flight_node *next;
    const void *domain; /* the store whose lock file is shared, or the cabinet */
    struct cbn__hash key;
    pthread_t holder;
    struct cbn__failure before; /* of the key, when the holder began to wait */
    bool before_known;
    struct cbn__claim claim;
    int fd; /* -1: none yet, or none at all */
};

/* A failed build of a cabinet that has no lock file. */
struct cbn__flight_failure {
    const void *domain;
    uint8_t bytes[CBN__FAILURE_BYTES];
};

struct cbn__flights {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct cbn__flight_node *nodes;
    struct cbn__flight_failure failures[CBN__FAILURE_SLOTS];
};

/* The folder's store, opened or shared; balanced by a release. OK, IO, NO_MEMORY. */
int32_t cbn__registry_acquire(const struct cbn__store_options *options, struct cbn__store **ret_store,
                              struct cbn_error *err);
void cbn__registry_release(struct cbn__store *store, uint32_t timeout_ms);

/* Notices a child that no fork hook was run for (a bare clone). Call before a session. */
void cbn__registry_check_pid(void);
struct cbn__flights *cbn__registry_flights(void);

/* From here on the tier's links are closed in a child of fork. False: there is no memory for the hook. */
bool cbn__registry_add_tier(struct cbn__tier *tier);
void cbn__registry_remove_tier(struct cbn__tier *tier);

#endif
