/*
 * The links of a tier and the breaker above them: one exchange of commands and replies at a time on a link, never two
 * threads on one.
 */
#ifndef CBN_CACHE_TIER_POOL_H
#define CBN_CACHE_TIER_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "cache/tier.h"

#define CBN__TIER_REFUSED_MAX 64u

struct cbn__tier_slot {
    struct cbn__tier_slot *next;
    struct cbn__link *link;
    bool busy;
};

struct cbn__tier {
    struct cbn__tier *next; /* the registry's */
    struct cbn__tier_address address;
    struct cbn__sink sink;
    pthread_mutex_t mutex;
    struct cbn__tier_slot *slots;
    struct cbn__hash refused[CBN__TIER_REFUSED_MAX]; /* the newest of what was told already */
    uint32_t refused_next;
    atomic_ullong asleep_until_ns; /* 0: the server answers */
    atomic_bool failure_said, push_failure_said;
    struct {
#define CBN_X(name, text) atomic_ullong name;
        CBN_FLEET_STAT_MAP(CBN_X)
#undef CBN_X
    } counters, unwritten; /* unwritten: not yet among the overlay's */
    struct {
        char server[64], eviction[64];
    } info;
};

#define CBN__COUNT_TIER(tier, name)                                                                                    \
    do {                                                                                                               \
        (void)atomic_fetch_add_explicit(&(tier)->counters.name, 1, memory_order_relaxed);                              \
        (void)atomic_fetch_add_explicit(&(tier)->unwritten.name, 1, memory_order_relaxed);                             \
    } while (0)

/* True: ask, and tell cbn__tier_wake or cbn__tier_fail what came of it. Past the pause only one caller is let through.
 */
bool cbn__tier_enter(struct cbn__tier *tier);
void cbn__tier_wake(struct cbn__tier *tier);
/* No answer: counted, told once, and the pause begins. */
void cbn__tier_fail(struct cbn__tier *tier, const struct cbn_error *why);

/*
 * Sends the commands and reads as many replies, in order, over a link that is free or a new one. A link that had been
 * left open is tried once, and then a new one. On failure no reply is left to free. OK, TIMEOUT, IO, DAMAGED,
 * NO_MEMORY.
 */
int32_t cbn__tier_exchange(struct cbn__tier *tier, const struct cbn__tier_command *commands, uint32_t count,
                           uint64_t deadline_ns, struct cbn__tier_reply *ret_replies, struct cbn_error *err);
void cbn__tier_replies_done(struct cbn__tier_reply *replies, uint32_t count);
uint64_t cbn__tier_deadline_ns(const struct cbn__tier *tier);
/* A server's words as they may be told: printable ASCII, a ? for all else, cut where the text is full. */
void cbn__tier_repeat(struct cbn__blob words, char *ret_text, size_t text_bytes);
/* A reply of kind ERROR as an error: IO, the server's own words. */
int32_t cbn__tier_error_of(const struct cbn__tier_reply *reply, struct cbn_error *err);

#endif
