/*
 * Hits that wait in memory until they are written: a hit is never a write transaction.
 *
 * Locks: mutex guards every field; nothing is called while it is held. Bounded: when full, new keys are not recorded.
 */
#ifndef CBN_CACHE_USAGE_H
#define CBN_CACHE_USAGE_H

#include <pthread.h>

#include "cache/entry.h"

struct cbn__usage_note {
    struct cbn__store_key key;
    uint64_t recency_us;
    uint64_t hits; /* 0: a free slot */
};

struct cbn__usage {
    pthread_mutex_t mutex;
    struct cbn__usage_note *slots; /* open addressing, a power of two of them */
    uint32_t slot_count;
    uint32_t count;
    uint64_t flushed_ns; /* monotonic */
    /* The clock of recency: the wall clock, and what the order of uses so far demands on top when that was set back. */
    uint64_t ahead_us, last_us;
    bool learned; /* what the store holds, too */
};

void cbn__usage_init(struct cbn__usage *usage);
void cbn__usage_done(struct cbn__usage *usage);
void cbn__usage_record(struct cbn__usage *usage, const struct cbn__store_key *key);
/* Adds what waits for key to what was stored. */
void cbn__usage_add(struct cbn__usage *usage, const struct cbn__store_key *key, struct cbn__usage_record *record);
/* Now, never before a use that was recorded. */
uint64_t cbn__usage_now_us(struct cbn__usage *usage);
bool cbn__usage_has_learned(struct cbn__usage *usage);
/* The most recent use that is stored: now is not before it, nor are those that wait. */
void cbn__usage_learn(struct cbn__usage *usage, uint64_t newest_us);
bool cbn__usage_waits(struct cbn__usage *usage);
/* A minute since the last time they were taken. */
bool cbn__usage_is_due(struct cbn__usage *usage);
/* Takes everything that waits; the caller frees *ret_slots, of which those with hits == 0 are empty. */
uint32_t cbn__usage_take(struct cbn__usage *usage, struct cbn__usage_note **ret_slots);

void cbn__usage_fork_before(struct cbn__usage *usage);
void cbn__usage_fork_after(struct cbn__usage *usage);
void cbn__usage_fork_child(struct cbn__usage *usage); /* forgets: the parent writes them */

#endif
