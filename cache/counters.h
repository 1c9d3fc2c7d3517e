/*
 * What a layer counts: added in memory, written with the usage, never a transaction a hit. X-macro:
 * CBN_LAYER_STAT_MAP.
 *
 * Locks: the live counters are atomics; reading and writing the stored ones happens inside of a session.
 */
#ifndef CBN_CACHE_COUNTERS_H
#define CBN_CACHE_COUNTERS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <cubinet/cabinet.h>

struct cbn__counters {
#define CBN_X(name, text) uint64_t name;
    CBN_LAYER_STAT_MAP(CBN_X)
#undef CBN_X
};

struct cbn__live_counters {
#define CBN_X(name, text) atomic_ullong name;
    CBN_LAYER_STAT_MAP(CBN_X)
#undef CBN_X
};

#define CBN__COUNT_LAYER(store, counter, by)                                                                           \
    atomic_fetch_add_explicit(&(store)->counters.counter, (by), memory_order_relaxed)

struct cbn__session;

bool cbn__counters_any(const struct cbn__live_counters *live);
void cbn__counters_clear(struct cbn__live_counters *live);
/* Moves what is live into what is stored, in a write session's transaction. LMDB's code. */
int cbn__counters_write(struct cbn__session *session);
/* Stored and live. Zeros where none are stored. */
void cbn__counters_read(struct cbn__session *session, struct cbn__counters *ret_counters);

#endif
