/*
 * The process' stores and flights. See registry.h.
 */
#include "cache/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "cache/tier_pool.h"

static struct {
    pthread_mutex_t mutex;
    atomic_int pid;
    bool hooked;
    struct cbn__store *stores;
    struct cbn__tier *tiers;
    struct cbn__flights flights;
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER,
              .flights = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};

static void before_fork(void)
{
    (void)pthread_mutex_lock(&registry.mutex);
    for (struct cbn__store *store = registry.stores; store; store = store->next)
        cbn__store_fork_before(store);
    for (struct cbn__tier *tier = registry.tiers; tier; tier = tier->next)
        cbn__tier_fork_before(tier);
    (void)pthread_mutex_lock(&registry.flights.mutex);
}

static void unlock_after_fork(void)
{
    (void)pthread_mutex_unlock(&registry.flights.mutex);
    for (struct cbn__tier *tier = registry.tiers; tier; tier = tier->next)
        cbn__tier_fork_after(tier);
    for (struct cbn__store *store = registry.stores; store; store = store->next)
        cbn__store_fork_after(store);
    (void)pthread_mutex_unlock(&registry.mutex);
}

/* A flight is its thread's, and that thread is the parent's. */
static void forget_flights(void)
{
    struct cbn__flight_node *node = registry.flights.nodes;
    while (node) {
        struct cbn__flight_node *next = node->next;
        if (node->fd >= 0)
            (void)close(node->fd);
        cbn__buf_done(&node->claim.entry); /* its lease is the parent's, too */
        free(node);
        node = next;
    }
    registry.flights.nodes = NULL;
    (void)pthread_mutex_init(&registry.flights.mutex, NULL);
    (void)pthread_cond_init(&registry.flights.changed, NULL);
}

static void start_over(void)
{
    atomic_store(&registry.pid, getpid());
    forget_flights();
    for (struct cbn__store *store = registry.stores; store; store = store->next)
        cbn__store_fork_child(store);
    for (struct cbn__tier *tier = registry.tiers; tier; tier = tier->next)
        cbn__tier_fork_child(tier);
    (void)pthread_mutex_init(&registry.mutex, NULL);
}

static void after_fork_in_child(void)
{
    unlock_after_fork();
    start_over();
}

void cbn__registry_check_pid(void)
{
    int pid = atomic_load(&registry.pid);
    if (pid != 0 && pid != getpid())
        start_over();
}

static bool hook(void)
{
    if (registry.hooked)
        return true;
    registry.hooked = pthread_atfork(before_fork, unlock_after_fork, after_fork_in_child) == 0;
    if (registry.hooked)
        atomic_store(&registry.pid, getpid());
    return registry.hooked;
}

struct cbn__flights *cbn__registry_flights(void)
{
    cbn__registry_check_pid();
    (void)pthread_mutex_lock(&registry.mutex);
    (void)hook();
    (void)pthread_mutex_unlock(&registry.mutex);
    return &registry.flights;
}

bool cbn__registry_add_tier(struct cbn__tier *tier)
{
    cbn__registry_check_pid();
    (void)pthread_mutex_lock(&registry.mutex);
    bool hooked = hook();
    if (hooked) {
        tier->next = registry.tiers;
        registry.tiers = tier;
    }
    (void)pthread_mutex_unlock(&registry.mutex);
    return hooked;
}

void cbn__registry_remove_tier(struct cbn__tier *tier)
{
    (void)pthread_mutex_lock(&registry.mutex);
    struct cbn__tier **link = &registry.tiers;
    while (*link && *link != tier)
        link = &(*link)->next;
    if (*link)
        *link = tier->next;
    (void)pthread_mutex_unlock(&registry.mutex);
}

static struct cbn__store *find_store(const struct stat *folder, bool writable)
{
    for (struct cbn__store *store = registry.stores; store; store = store->next)
        if (!store->closing && store->writable == writable && store->folder.st_dev == folder->st_dev &&
            store->folder.st_ino == folder->st_ino)
            return store;
    return NULL;
}

/* The file must not pass the smaller of two bounds. */
static void share(struct cbn__store *store, uint64_t max_bytes)
{
    store->refs++;
    if (max_bytes < atomic_load(&store->max_bytes))
        atomic_store(&store->max_bytes, max_bytes);
}

static int32_t acquire_locked(const struct cbn__store_options *options, const struct stat *folder,
                              struct cbn__store **ret_store, struct cbn_error *err)
{
    if (!hook())
        return cbn__error_no_memory(err);
    struct cbn__store *store = find_store(folder, options->writable);
    if (store) {
        share(store, options->max_bytes);
        *ret_store = store;
        return CBN_STATUS_OK;
    }
    int32_t status = cbn__store_create(options, folder, ret_store, err);
    if (status != CBN_STATUS_OK)
        return status;
    (*ret_store)->next = registry.stores;
    registry.stores = *ret_store;
    return CBN_STATUS_OK;
}

int32_t cbn__registry_acquire(const struct cbn__store_options *options, struct cbn__store **ret_store,
                              struct cbn_error *err)
{
    struct stat folder;
    cbn__registry_check_pid();
    if (stat(options->folder, &folder) != 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot look at the folder %s", options->folder);
    (void)pthread_mutex_lock(&registry.mutex);
    int32_t status = acquire_locked(options, &folder, ret_store, err);
    (void)pthread_mutex_unlock(&registry.mutex);
    return status;
}

static void unlink_store(struct cbn__store *store)
{
    struct cbn__store **link = &registry.stores;
    while (*link && *link != store)
        link = &(*link)->next;
    if (*link)
        *link = store->next;
}

void cbn__registry_release(struct cbn__store *store, uint32_t timeout_ms)
{
    cbn__registry_check_pid();
    (void)pthread_mutex_lock(&registry.mutex);
    bool last = --store->refs == 0;
    store->closing = last;
    (void)pthread_mutex_unlock(&registry.mutex);
    if (!last)
        return;
    /* In the list until its writes are done, so that a fork meanwhile finds its descriptors. */
    cbn__store_settle(store, timeout_ms);
    (void)pthread_mutex_lock(&registry.mutex);
    unlink_store(store);
    (void)pthread_mutex_unlock(&registry.mutex);
    cbn__store_destroy(store);
}
