/*
 * Single flight: one build per key. Threads meet at a node in the registry's table; processes at a byte of the
 * overlay's lock file, each flight through a description of its own, so that the lock dies with its holder.
 *
 * A build that a compiler refused twice while a thread with the same compiler waited is not tried a third time by it:
 * it gets the error. Who comes later tries again. Nor is a flight waited for that cannot help: when the builder could
 * not store what it built, or the store's lock did not come free the last time, each builds for itself, all at once
 * and not one after the other.
 *
 * Locks: flights.mutex guards the table and every node; nothing waits for the file while it is held.
 */
#include "cache/layer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/record.h"
#include "cache/registry.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull
#define SLICE_NS (50 * NS_PER_MS) /* between two looks at the store's lock */
#define FAILURES_BELIEVED 2u
#define LONGEST_PAUSE_NS (5 * NS_PER_MS) /* of a wait for a build, which takes hundreds of milliseconds */

static const void *domain_of(struct cbn__cabinet *cabinet)
{
    struct cbn__store *overlay = cbn__cabinet_overlay(cabinet);
    return overlay ? (const void *)overlay : (const void *)cabinet;
}

/* Two keys that share all of 61 bits wait for one another, no more. */
static off_t byte_of(const struct cbn__hash *key)
{
    return CBN__LOCK_FLIGHT_BYTES + (off_t)(cbn__load_u64(key->bytes) >> 3);
}

static struct cbn__flight_node **find_node(struct cbn__flights *flights, const void *domain,
                                           const struct cbn__hash *key)
{
    struct cbn__flight_node **link = &flights->nodes;
    while (*link && ((*link)->domain != domain || !cbn__hash_equal(&(*link)->key, key)))
        link = &(*link)->next;
    return link;
}

static struct cbn__flight_node *add_node(struct cbn__flights *flights, const void *domain, const struct cbn__hash *key,
                                         const struct cbn__failure *before, bool before_known, uint64_t deadline_ns)
{
    struct cbn__flight_node *node = calloc(1, sizeof(*node));
    if (!node)
        return NULL;
    *node = (struct cbn__flight_node){.next = flights->nodes,
                                      .domain = domain,
                                      .key = *key,
                                      .holder = pthread_self(),
                                      .before = *before,
                                      .before_known = before_known,
                                      .claim = {.deadline_ns = deadline_ns, .entry = CBN__BUF_INIT},
                                      .fd = -1};
    flights->nodes = node;
    return node;
}

/* Mutex held. Of a cabinet without a lock file in memory; fd: of the lock file. */
static bool read_failure(const struct cbn__flights *flights, struct cbn__cabinet *cabinet, const struct cbn__hash *key,
                         int fd, struct cbn__failure *ret_failure)
{
    const struct cbn__flight_failure *slot = &flights->failures[cbn__failure_slot(key)];
    *ret_failure = (struct cbn__failure){0};
    if (cbn__cabinet_overlay(cabinet))
        return fd >= 0 && cbn__failure_read(fd, key, ret_failure);
    return slot->domain != domain_of(cabinet) || cbn__failure_decode(slot->bytes, key, ret_failure);
}

/* Mutex held, which fork takes: the descriptor reaches no child. */
static int open_to_look(const struct cbn__store *overlay)
{
    return overlay ? cbn__lock_open_file(overlay->lock_path, false, overlay->lock.mode) : -1;
}

static void close_after_look(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

/* Mutex held. Before the first look at the flight: what fails from here on fails while this thread waits. */
static bool look_before(const struct cbn__flights *flights, struct cbn__cabinet *cabinet, const struct cbn__hash *key,
                        struct cbn__failure *ret_before)
{
    int fd = open_to_look(cbn__cabinet_overlay(cabinet));
    bool known = read_failure(flights, cabinet, key, fd, ret_before);
    close_after_look(fd);
    return known;
}

/* Mutex held. OK: the key is this thread's within the process. */
static int32_t enter_process(struct cbn__flights *flights, struct cbn__cabinet *cabinet, const struct cbn__hash *key,
                             uint64_t deadline_ns, bool *ret_waited)
{
    const void *domain = domain_of(cabinet);
    struct cbn__failure before;
    bool before_known = look_before(flights, cabinet, key, &before);
    const struct timespec until = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                                   .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    while (*find_node(flights, domain, key)) {
        *ret_waited = true;
        if (cbn__clock_monotonic_ns() >= deadline_ns)
            return CBN_STATUS_TIMEOUT;
        (void)pthread_cond_clockwait(&flights->changed, &flights->mutex, CLOCK_MONOTONIC, &until);
    }
    return add_node(flights, domain, key, &before, before_known, deadline_ns) ? CBN_STATUS_OK : CBN_STATUS_NO_MEMORY;
}

/* Opened under the mutex, which fork takes: no description of a flight reaches a child unseen. */
static int open_file(struct cbn__flights *flights, struct cbn__store *store, const struct cbn__hash *key)
{
    (void)pthread_mutex_lock(&flights->mutex);
    int fd = cbn__lock_open_file(store->lock_path, true, store->lock.mode);
    struct cbn__flight_node *node = *find_node(flights, store, key);
    if (node)
        node->fd = fd;
    (void)pthread_mutex_unlock(&flights->mutex);
    return fd;
}

static void leave(struct cbn__flights *flights, const void *domain, const struct cbn__hash *key, int fd)
{
    (void)pthread_mutex_lock(&flights->mutex);
    struct cbn__flight_node **link = find_node(flights, domain, key);
    struct cbn__flight_node *node = *link;
    /* In a child of fork the node is gone, and its descriptor closed: that number may be another file's by now. */
    if (node && node->fd == fd) {
        *link = node->next;
        if (fd >= 0)
            (void)close(fd);
        free(node);
        (void)pthread_cond_broadcast(&flights->changed);
    }
    (void)pthread_mutex_unlock(&flights->mutex);
}

/* What the builder could not store will not be found by who waits next. */
static bool was_dropped(struct cbn__flights *flights, struct cbn__cabinet *cabinet, const struct cbn__hash *key)
{
    struct cbn__failure failure;
    (void)pthread_mutex_lock(&flights->mutex);
    const struct cbn__flight_node *node = *find_node(flights, domain_of(cabinet), key);
    bool dropped = node && node->before_known && read_failure(flights, cabinet, key, node->fd, &failure) &&
                   failure.dropped > node->before.dropped;
    (void)pthread_mutex_unlock(&flights->mutex);
    return dropped;
}

/*
 * A store that is locked for writing all the time is held by a process that is stopped, and the builder may be that
 * process: one deadline of the lock is enough then, and the wait for the lock itself need not be had again.
 */
static int32_t poll_flight(struct cbn__cabinet *cabinet, int fd, const struct cbn__hash *key, uint64_t deadline_ns,
                           bool *ret_waited)
{
    uint64_t locked_since_ns = 0;
    for (;;) {
        uint64_t slice_ns = cbn__clock_monotonic_ns() + SLICE_NS;
        int32_t status = cbn__lock_poll(fd, F_WRLCK, byte_of(key), slice_ns < deadline_ns ? slice_ns : deadline_ns,
                                        LONGEST_PAUSE_NS, ret_waited);
        uint64_t now_ns = cbn__clock_monotonic_ns();
        if (status != CBN_STATUS_TIMEOUT || now_ns >= deadline_ns)
            return status;
        if (!cbn__lock_is_write_locked(fd, CBN__LOCK_DATA_BYTE)) {
            locked_since_ns = 0;
        } else if (locked_since_ns == 0) {
            locked_since_ns = now_ns;
        } else if (now_ns - locked_since_ns >= cabinet->lock_timeout_ms * NS_PER_MS) {
            cbn__lock_note_stall(&cbn__cabinet_overlay(cabinet)->lock);
            return CBN_STATUS_TIMEOUT;
        }
    }
}

/* The key is this thread's within the process. */
static int32_t enter_file(struct cbn__flights *flights, struct cbn__cabinet *cabinet, const struct cbn__hash *key,
                          uint64_t deadline_ns, int *ret_fd, bool *ret_waited)
{
    struct cbn__store *overlay = cbn__cabinet_overlay(cabinet);
    *ret_fd = open_file(flights, overlay, key);
    if (*ret_fd < 0)
        return CBN_STATUS_IO;
    if (cbn__lock_is_stalled(&overlay->lock))
        deadline_ns = 0;
    int32_t status = poll_flight(cabinet, *ret_fd, key, deadline_ns, ret_waited);
    return status == CBN_STATUS_OK && *ret_waited && was_dropped(flights, cabinet, key) ? CBN_STATUS_TIMEOUT : status;
}

int32_t cbn__flight_begin(struct cbn__cabinet *cabinet, const struct cbn__hash *key, uint32_t timeout_ms,
                          struct cbn__flight *ret_flight, bool *ret_waited)
{
    struct cbn__flights *flights = cbn__registry_flights();
    uint64_t deadline_ns = cbn__clock_monotonic_ns() + timeout_ms * NS_PER_MS;
    bool waited = false;
    int fd = -1;
    (void)pthread_mutex_lock(&flights->mutex);
    int32_t status = enter_process(flights, cabinet, key, deadline_ns, &waited);
    (void)pthread_mutex_unlock(&flights->mutex);
    if (status == CBN_STATUS_OK && cbn__cabinet_overlay(cabinet)) {
        status = enter_file(flights, cabinet, key, deadline_ns, &fd, &waited);
        if (status == CBN_STATUS_TIMEOUT) {
            leave(flights, domain_of(cabinet), key, fd);
            fd = -1;
        }
    }
    *ret_flight = (struct cbn__flight){
        .cabinet = cabinet, .key = *key, .held = status == CBN_STATUS_OK || status == CBN_STATUS_IO, .fd = fd};
    if (ret_waited)
        *ret_waited = waited;
    return status;
}

/* Mutex held. The node of a flight that the calling thread holds, or NULL. */
static struct cbn__flight_node *own_node(struct cbn__flights *flights, struct cbn__cabinet *cabinet,
                                         const struct cbn__hash *key)
{
    struct cbn__flight_node *node = *find_node(flights, domain_of(cabinet), key);
    return node && pthread_equal(node->holder, pthread_self()) ? node : NULL;
}

struct cbn__claim *cbn__flight_claim(struct cbn__cabinet *cabinet, const struct cbn__hash *key)
{
    struct cbn__flights *flights = cbn__registry_flights();
    (void)pthread_mutex_lock(&flights->mutex);
    struct cbn__flight_node *node = own_node(flights, cabinet, key);
    (void)pthread_mutex_unlock(&flights->mutex);
    return node ? &node->claim : NULL; /* which only this thread's end of the flight takes away */
}

void cbn__flight_end(struct cbn__flight *flight)
{
    if (!flight->held)
        return;
    struct cbn__claim *held = cbn__flight_claim(flight->cabinet, &flight->key);
    struct cbn__claim claim = held ? *held : (struct cbn__claim){.entry = CBN__BUF_INIT};
    leave(cbn__registry_flights(), domain_of(flight->cabinet), &flight->key, flight->fd);
    flight->held = false;
    flight->fd = -1;
    cbn__fleet_settle(flight->cabinet, &flight->key, &claim);
}

bool cbn__flight_inherit(struct cbn__cabinet *cabinet, const struct cbn__hash *key, uint32_t compiler,
                         struct cbn_error *ret_err)
{
    struct cbn__flights *flights = cbn__registry_flights();
    struct cbn__failure failure;
    (void)pthread_mutex_lock(&flights->mutex);
    const struct cbn__flight_node *node = own_node(flights, cabinet, key);
    bool failed = node && node->before_known && read_failure(flights, cabinet, key, node->fd, &failure) &&
                  cbn__failure_since(&failure, &node->before, compiler) >= FAILURES_BELIEVED;
    (void)pthread_mutex_unlock(&flights->mutex);
    if (failed && ret_err)
        *ret_err = failure.error;
    return failed;
}

/* What came of the build of a flight that the calling thread holds. err NULL: it was built and could not be stored. */
static void leave_word(struct cbn__cabinet *cabinet, const struct cbn__hash *key, uint32_t compiler,
                       const struct cbn_error *err)
{
    struct cbn__flights *flights = cbn__registry_flights();
    struct cbn__failure failure;
    (void)pthread_mutex_lock(&flights->mutex);
    const struct cbn__flight_node *node = own_node(flights, cabinet, key);
    struct cbn__flight_failure *slot = &flights->failures[cbn__failure_slot(key)];
    if (node) {
        (void)read_failure(flights, cabinet, key, node->fd, &failure);
        failure.dropped += err == NULL;
        if (err)
            cbn__failure_add(&failure, compiler, err);
        if (node->fd >= 0) {
            cbn__failure_write(node->fd, key, &failure, cbn__datafile_size_limit());
        } else if (!cbn__cabinet_overlay(cabinet)) {
            slot->domain = domain_of(cabinet);
            cbn__failure_encode(key, &failure, slot->bytes);
        }
    }
    (void)pthread_mutex_unlock(&flights->mutex);
}

void cbn__flight_fail(struct cbn__cabinet *cabinet, const struct cbn__hash *key, uint32_t compiler,
                      const struct cbn_error *err)
{
    if (compiler)
        leave_word(cabinet, key, compiler, err);
}

void cbn__flight_drop(struct cbn__cabinet *cabinet, const struct cbn__hash *key)
{
    leave_word(cabinet, key, 0, NULL);
}

bool cbn__flight_is_busy(struct cbn__cabinet *cabinet, const struct cbn__hash *key)
{
    struct cbn__flights *flights = cbn__registry_flights();
    (void)pthread_mutex_lock(&flights->mutex);
    bool busy = *find_node(flights, domain_of(cabinet), key) != NULL;
    int fd = busy ? -1 : open_to_look(cbn__cabinet_overlay(cabinet));
    busy = busy || cbn__lock_is_write_locked(fd, byte_of(key));
    close_after_look(fd);
    (void)pthread_mutex_unlock(&flights->mutex);
    return busy || (cabinet->tier && cbn__tier_is_leased(cabinet->tier, key));
}
