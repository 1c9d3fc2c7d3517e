/*
 * Links that are kept open between questions, and the breaker. See tier_pool.h.
 */
#include "cache/tier_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

#define NS_PER_MS 1000000ull
#define SLOTS_KEPT 8u
#define SERVER_WORDS 121u /* bytes of what a server says that are repeated, and a NUL */

uint64_t cbn__tier_deadline_ns(const struct cbn__tier *tier)
{
    return cbn__clock_monotonic_ns() + tier->address.timeout_ms * NS_PER_MS;
}

/* ---- the breaker ---- */

bool cbn__tier_is_ready(const struct cbn__tier *tier)
{
    uint64_t until_ns = atomic_load(&tier->asleep_until_ns);
    return until_ns == 0 || cbn__clock_monotonic_ns() >= until_ns;
}

static uint64_t pause_end_ns(const struct cbn__tier *tier)
{
    return cbn__clock_monotonic_ns() + tier->address.retry_ms * NS_PER_MS;
}

bool cbn__tier_enter(struct cbn__tier *tier)
{
    unsigned long long until_ns = atomic_load(&tier->asleep_until_ns);
    if (until_ns == 0)
        return true;
    /* The one who moves the end of the pause asks; the others see a pause that has just begun. */
    return cbn__clock_monotonic_ns() >= until_ns &&
           atomic_compare_exchange_strong(&tier->asleep_until_ns, &until_ns, pause_end_ns(tier));
}

void cbn__tier_wake(struct cbn__tier *tier)
{
    if (atomic_load_explicit(&tier->asleep_until_ns, memory_order_relaxed) != 0)
        atomic_store(&tier->asleep_until_ns, 0);
}

void cbn__tier_fail(struct cbn__tier *tier, const struct cbn_error *why)
{
    CBN__COUNT_TIER(tier, failures);
    atomic_store(&tier->asleep_until_ns, pause_end_ns(tier));
    if (!atomic_exchange(&tier->failure_said, true))
        cbn__sink_tell(
            &tier->sink, CBN_EVENT_NOTICE, why->status,
            "the fleet's server %s is left alone for a while and asked again later: %s (further failures are "
            "counted, not told)",
            tier->address.shown, why->message);
}

/* ---- links ---- */

static void drop_slot(struct cbn__tier *tier, struct cbn__tier_slot *slot)
{
    (void)pthread_mutex_lock(&tier->mutex);
    struct cbn__tier_slot **link = &tier->slots;
    while (*link && *link != slot)
        link = &(*link)->next;
    if (*link)
        *link = slot->next;
    /* Closed under the mutex, which fork takes: a child never closes a number that is another file's by then. */
    cbn__link_destroy(slot->link);
    (void)pthread_mutex_unlock(&tier->mutex);
    free(slot);
}

/* A link that nobody uses; NULL: there is none. */
static struct cbn__tier_slot *take_slot(struct cbn__tier *tier)
{
    (void)pthread_mutex_lock(&tier->mutex);
    struct cbn__tier_slot *slot = tier->slots;
    while (slot && slot->busy)
        slot = slot->next;
    if (slot)
        slot->busy = true;
    (void)pthread_mutex_unlock(&tier->mutex);
    if (slot && cbn__link_is_stale(slot->link)) {
        drop_slot(tier, slot);
        return take_slot(tier);
    }
    return slot;
}

static void give_slot(struct cbn__tier *tier, struct cbn__tier_slot *slot)
{
    uint32_t free_count = 0;
    (void)pthread_mutex_lock(&tier->mutex);
    for (const struct cbn__tier_slot *other = tier->slots; other; other = other->next)
        free_count += !other->busy;
    slot->busy = free_count >= SLOTS_KEPT;
    bool kept = !slot->busy;
    (void)pthread_mutex_unlock(&tier->mutex);
    if (!kept)
        drop_slot(tier, slot);
}

static int32_t add_slot(struct cbn__tier *tier, uint64_t deadline_ns, struct cbn__tier_slot **ret_slot,
                        struct cbn_error *err)
{
    int fd = -1;
    int32_t status = cbn__tier_connect(&tier->address, deadline_ns, &fd, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__tier_slot *slot = calloc(1, sizeof(*slot));
    if (!slot) {
        (void)close(fd);
        return cbn__error_no_memory(err);
    }
    status = cbn__link_create(&tier->address, fd, &slot->link, err);
    if (status != CBN_STATUS_OK) {
        free(slot);
        return status;
    }
    slot->busy = true;
    /* Until here a fork of another thread leaves the socket open in its child, where nothing reads it. */
    (void)pthread_mutex_lock(&tier->mutex);
    slot->next = tier->slots;
    tier->slots = slot;
    (void)pthread_mutex_unlock(&tier->mutex);
    *ret_slot = slot;
    return CBN_STATUS_OK;
}

/* ---- exchanges ---- */

void cbn__tier_replies_done(struct cbn__tier_reply *replies, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        cbn__buf_done(&replies[i].bytes);
}

void cbn__tier_repeat(struct cbn__blob words, char *ret_text, size_t text_bytes)
{
    const uint8_t *bytes = words.data;
    size_t size = words.size < text_bytes ? words.size : text_bytes - 1;
    for (size_t i = 0; i < size; i++)
        ret_text[i] = (char)(bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?');
    ret_text[size] = '\0';
}

int32_t cbn__tier_error_of(const struct cbn__tier_reply *reply, struct cbn_error *err)
{
    char words[SERVER_WORDS];
    cbn__tier_repeat((struct cbn__blob){reply->bytes.data, reply->bytes.size}, words, sizeof(words));
    return cbn__error_own(err, CBN_STATUS_IO, "the fleet's server says: %s", words);
}

/* Of the answer to AUTH only the code is told: some servers repeat the arguments of what they do not know. */
static int32_t login_error_of(const struct cbn__tier_reply *reply, struct cbn_error *err)
{
    char words[SERVER_WORDS];
    cbn__tier_repeat((struct cbn__blob){reply->bytes.data, reply->bytes.size}, words, sizeof(words));
    words[strspn(words, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] = '\0';
    return cbn__error_own(
        err, CBN_STATUS_IO,
        "the fleet's server refuses the login (%s); mend user and password in the URL, or on the server", words);
}

/* *ret_silent: not one reply came. */
static int32_t run(struct cbn__tier_slot *slot, const struct cbn__tier_command *commands, uint32_t count,
                   uint64_t deadline_ns, struct cbn__tier_reply *ret_replies, bool *ret_silent, struct cbn_error *err)
{
    int32_t status = CBN_STATUS_OK;
    uint32_t received = 0;
    for (uint32_t i = 0; i < count && status == CBN_STATUS_OK; i++)
        status = cbn__link_send(slot->link, &commands[i], err);
    while (received < count && status == CBN_STATUS_OK) {
        ret_replies[received] = (struct cbn__tier_reply){.kind = CBN__REPLY_NIL};
        status = cbn__link_receive(slot->link, deadline_ns, &ret_replies[received], err);
        received++; /* what a failed one holds is freed below */
    }
    *ret_silent = received <= 1;
    if (status != CBN_STATUS_OK)
        cbn__tier_replies_done(ret_replies, received);
    return status;
}

static struct cbn__blob text(const char *words)
{
    return (struct cbn__blob){words, strlen(words)};
}

/* What a new link says first. */
static int32_t introduce(struct cbn__tier *tier, struct cbn__tier_slot *slot, uint64_t deadline_ns,
                         struct cbn_error *err)
{
    const struct cbn__tier_address *address = &tier->address;
    struct cbn__tier_command commands[2];
    struct cbn__tier_reply replies[2];
    uint32_t count = 0;
    char db[16];
    bool silent = false;
    (void)snprintf(db, sizeof(db), "%u", address->db);
    if (address->user[0])
        commands[count++] = (struct cbn__tier_command){3, {text("AUTH"), text(address->user), text(address->password)}};
    else if (address->password[0])
        commands[count++] = (struct cbn__tier_command){2, {text("AUTH"), text(address->password)}};
    if (address->db)
        commands[count++] = (struct cbn__tier_command){2, {text("SELECT"), text(db)}};
    if (!count)
        return CBN_STATUS_OK;
    int32_t status = run(slot, commands, count, deadline_ns, replies, &silent, err);
    if (status != CBN_STATUS_OK)
        return status;
    for (uint32_t i = 0; i < count && status == CBN_STATUS_OK; i++)
        if (replies[i].kind == CBN__REPLY_ERROR)
            status = i == 0 && address->password[0] ? login_error_of(&replies[i], err)
                                                    : cbn__tier_error_of(&replies[i], err);
    cbn__tier_replies_done(replies, count);
    return status;
}

int32_t cbn__tier_exchange(struct cbn__tier *tier, const struct cbn__tier_command *commands, uint32_t count,
                           uint64_t deadline_ns, struct cbn__tier_reply *ret_replies, struct cbn_error *err)
{
    bool silent = false;
    struct cbn__tier_slot *slot = take_slot(tier);
    int32_t status = CBN_STATUS_IO;
    if (slot) {
        status = run(slot, commands, count, deadline_ns, ret_replies, &silent, err);
        if (status == CBN_STATUS_OK) {
            give_slot(tier, slot);
            return status;
        }
        drop_slot(tier, slot);
        /* A server that was started anew, or that closes what is idle, has forgotten the link. */
        if (status != CBN_STATUS_IO || !silent)
            return status;
    }
    status = add_slot(tier, deadline_ns, &slot, err);
    if (status != CBN_STATUS_OK)
        return status;
    status = introduce(tier, slot, deadline_ns, err);
    if (status == CBN_STATUS_OK)
        status = run(slot, commands, count, deadline_ns, ret_replies, &silent, err);
    if (status == CBN_STATUS_OK)
        give_slot(tier, slot);
    else
        drop_slot(tier, slot);
    return status;
}

/* ---- fork ---- */

void cbn__tier_fork_before(struct cbn__tier *tier)
{
    (void)pthread_mutex_lock(&tier->mutex);
}

void cbn__tier_fork_after(struct cbn__tier *tier)
{
    (void)pthread_mutex_unlock(&tier->mutex);
}

/* A link that a thread of the parent was using is not whole here: its socket is closed, its memory let go. */
void cbn__tier_fork_child(struct cbn__tier *tier)
{
    struct cbn__tier_slot *slot = tier->slots;
    while (slot) {
        struct cbn__tier_slot *next = slot->next;
        if (slot->busy)
            (void)close(cbn__link_fd(slot->link));
        else
            cbn__link_destroy(slot->link);
        if (!slot->busy)
            free(slot);
        slot = next;
    }
    tier->slots = NULL;
    (void)pthread_mutex_init(&tier->mutex, NULL);
}
