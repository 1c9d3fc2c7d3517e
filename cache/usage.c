/*
 * Hits that wait in memory. See usage.h.
 */
#include "cache/usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define SLOTS_FIRST 64u
#define SLOTS_MAX 16384u
#define FLUSH_EVERY_NS (60ull * 1000000000ull)

void cbn__usage_init(struct cbn__usage *usage)
{
    *usage = (struct cbn__usage){.flushed_ns = cbn__clock_monotonic_ns()};
    (void)pthread_mutex_init(&usage->mutex, NULL);
}

void cbn__usage_done(struct cbn__usage *usage)
{
    free(usage->slots);
    usage->slots = NULL;
    (void)pthread_mutex_destroy(&usage->mutex);
}

/* The key's slot, or the free one where it would stand; NULL when there are no slots. */
static struct cbn__usage_note *slot_of(struct cbn__usage_note *slots, uint32_t slot_count,
                                       const struct cbn__store_key *key)
{
    if (slot_count == 0)
        return NULL;
    uint64_t start = cbn__hash_64((struct cbn__blob){key->bytes, sizeof(key->bytes)});
    for (uint32_t i = 0; i < slot_count; i++) {
        struct cbn__usage_note *slot = &slots[(start + i) & (slot_count - 1)];
        if (slot->hits == 0 || memcmp(slot->key.bytes, key->bytes, sizeof(key->bytes)) == 0)
            return slot;
    }
    return NULL;
}

static bool grow(struct cbn__usage *usage)
{
    uint32_t slot_count = usage->slot_count ? 2 * usage->slot_count : SLOTS_FIRST;
    if (slot_count > SLOTS_MAX)
        return false;
    struct cbn__usage_note *slots = calloc(slot_count, sizeof(*slots));
    if (!slots)
        return false;
    for (uint32_t i = 0; i < usage->slot_count; i++)
        if (usage->slots[i].hits)
            *slot_of(slots, slot_count, &usage->slots[i].key) = usage->slots[i];
    free(usage->slots);
    usage->slots = slots;
    usage->slot_count = slot_count;
    return true;
}

/* Mutex held. A clock that was set back goes on from where it was. */
static uint64_t now_us_of(struct cbn__usage *usage)
{
    uint64_t now_us = cbn__clock_wall_us() + usage->ahead_us;
    if (now_us < usage->last_us) {
        usage->ahead_us += usage->last_us - now_us;
        now_us = usage->last_us;
    }
    usage->last_us = now_us;
    return now_us;
}

uint64_t cbn__usage_now_us(struct cbn__usage *usage)
{
    (void)pthread_mutex_lock(&usage->mutex);
    uint64_t now_us = now_us_of(usage);
    (void)pthread_mutex_unlock(&usage->mutex);
    return now_us;
}

bool cbn__usage_has_learned(struct cbn__usage *usage)
{
    (void)pthread_mutex_lock(&usage->mutex);
    bool learned = usage->learned;
    (void)pthread_mutex_unlock(&usage->mutex);
    return learned;
}

void cbn__usage_learn(struct cbn__usage *usage, uint64_t newest_us)
{
    (void)pthread_mutex_lock(&usage->mutex);
    usage->learned = true;
    const uint64_t now_us = now_us_of(usage);
    uint64_t from_us = now_us;
    for (uint32_t i = 0; i < usage->slot_count; i++)
        if (usage->slots[i].hits && usage->slots[i].recency_us < from_us)
            from_us = usage->slots[i].recency_us;
    /* Newer than now is what a clock wrote that was set back since: what waits came after it. */
    const uint64_t shift_us = newest_us > now_us ? newest_us - from_us + 1 : 0;
    usage->ahead_us += shift_us;
    usage->last_us += shift_us;
    for (uint32_t i = 0; i < usage->slot_count && shift_us; i++)
        usage->slots[i].recency_us += usage->slots[i].hits ? shift_us : 0;
    (void)pthread_mutex_unlock(&usage->mutex);
}

void cbn__usage_record(struct cbn__usage *usage, const struct cbn__store_key *key)
{
    (void)pthread_mutex_lock(&usage->mutex);
    uint64_t now_us = now_us_of(usage);
    bool room = usage->count < usage->slot_count / 2 || grow(usage);
    struct cbn__usage_note *slot = slot_of(usage->slots, usage->slot_count, key);
    if (slot && (slot->hits || room)) {
        usage->count += slot->hits == 0;
        slot->key = *key;
        slot->hits++;
        slot->recency_us = now_us;
    }
    (void)pthread_mutex_unlock(&usage->mutex);
}

void cbn__usage_add(struct cbn__usage *usage, const struct cbn__store_key *key, struct cbn__usage_record *record)
{
    (void)pthread_mutex_lock(&usage->mutex);
    struct cbn__usage_note *slot = slot_of(usage->slots, usage->slot_count, key);
    if (slot && slot->hits) {
        record->hits += slot->hits;
        if (slot->recency_us > record->recency_us)
            record->recency_us = slot->recency_us;
    }
    (void)pthread_mutex_unlock(&usage->mutex);
}

bool cbn__usage_waits(struct cbn__usage *usage)
{
    (void)pthread_mutex_lock(&usage->mutex);
    bool waits = usage->count > 0;
    (void)pthread_mutex_unlock(&usage->mutex);
    return waits;
}

bool cbn__usage_is_due(struct cbn__usage *usage)
{
    (void)pthread_mutex_lock(&usage->mutex);
    bool due = cbn__clock_monotonic_ns() - usage->flushed_ns >= FLUSH_EVERY_NS;
    (void)pthread_mutex_unlock(&usage->mutex);
    return due;
}

uint32_t cbn__usage_take(struct cbn__usage *usage, struct cbn__usage_note **ret_slots)
{
    (void)pthread_mutex_lock(&usage->mutex);
    uint32_t slot_count = usage->count ? usage->slot_count : 0;
    *ret_slots = NULL;
    if (slot_count) {
        *ret_slots = usage->slots;
        usage->slots = NULL;
        usage->slot_count = 0;
        usage->count = 0;
    }
    usage->flushed_ns = cbn__clock_monotonic_ns();
    (void)pthread_mutex_unlock(&usage->mutex);
    return slot_count;
}

void cbn__usage_fork_before(struct cbn__usage *usage)
{
    (void)pthread_mutex_lock(&usage->mutex);
}

void cbn__usage_fork_after(struct cbn__usage *usage)
{
    (void)pthread_mutex_unlock(&usage->mutex);
}

void cbn__usage_fork_child(struct cbn__usage *usage)
{
    (void)pthread_mutex_init(&usage->mutex, NULL);
    if (usage->slots)
        memset(usage->slots, 0, usage->slot_count * sizeof(*usage->slots));
    usage->count = 0;
}
