/*
 * A host's addresses within a deadline, which getaddrinfo() does not know: a name server that does not answer holds it
 * for many seconds. So names are looked up by a thread of their own, which is left to itself past the deadline;
 * addresses in digits need none.
 *
 * Locks: query.mutex guards a query's fields. The last of its two users frees it. A thread that is left behind may
 * outlive the runtime, so this library is then never unloaded. A child of fork shares no query with its parent.
 */
#include "cache/tier_link.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cache/aside.h"

#define NS_PER_S 1000000000u
#define THREAD_STACK_BYTES ((size_t)256 << 10)

struct query {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t users;
    bool answered;
    int code; /* getaddrinfo's */
    struct addrinfo *found;
    struct cbn__tier_address address;
};

static void let_go(struct query *query)
{
    bool last = --query->users == 0;
    (void)pthread_mutex_unlock(&query->mutex);
    if (!last)
        return;
    if (query->found)
        freeaddrinfo(query->found);
    (void)pthread_cond_destroy(&query->changed);
    (void)pthread_mutex_destroy(&query->mutex);
    explicit_bzero(&query->address, sizeof(query->address));
    free(query);
}

static int look_up(const struct cbn__tier_address *address, int flags, struct addrinfo **ret_found)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    return getaddrinfo(address->host, address->port, &hints, ret_found);
}

static void *run_query(void *user)
{
    struct query *query = user;
    struct addrinfo *found = NULL;
    int code = look_up(&query->address, AI_ADDRCONFIG, &found);
    (void)pthread_mutex_lock(&query->mutex);
    query->answered = true;
    query->code = code;
    query->found = code == 0 ? found : NULL;
    (void)pthread_cond_broadcast(&query->changed);
    let_go(query);
    return NULL;
}

/* The thread runs this library's code for as long as a name server pleases. */
static void stay_loaded(void)
{
    Dl_info info;
    if (dladdr((void *)(uintptr_t)stay_loaded, &info) == 0 || !info.dli_fname)
        return;
    void *self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    if (self)
        (void)dlclose(self);
}

static struct query *begin(const struct cbn__tier_address *address)
{
    pthread_attr_t attributes;
    pthread_t thread;
    struct query *query = calloc(1, sizeof(*query));
    if (!query)
        return NULL;
    stay_loaded();
    query->address = *address;
    query->users = 2;
    (void)pthread_mutex_init(&query->mutex, NULL);
    (void)pthread_cond_init(&query->changed, NULL);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    bool started = cbn__aside_thread(&thread, &attributes, run_query, query);
    (void)pthread_attr_destroy(&attributes);
    if (started)
        return query;
    query->users = 1;
    (void)pthread_mutex_lock(&query->mutex);
    let_go(query);
    return NULL;
}

static void take(const struct addrinfo *found, struct cbn__socket_address *ret_addresses, uint32_t *ret_count)
{
    *ret_count = 0;
    for (; found && *ret_count < CBN__TIER_ADDRESSES_MAX; found = found->ai_next) {
        struct cbn__socket_address *address = &ret_addresses[*ret_count];
        if (found->ai_addrlen > sizeof(address->address))
            continue;
        memcpy(&address->address, found->ai_addr, found->ai_addrlen);
        address->size = found->ai_addrlen;
        (*ret_count)++;
    }
}

static int32_t refuse(int code, struct cbn_error *err)
{
    return cbn__error_own(err, CBN_STATUS_IO, "the host of the fleet's server cannot be looked up: %s",
                          gai_strerror(code));
}

static int32_t await(struct query *query, uint64_t deadline_ns, struct cbn__socket_address *ret_addresses,
                     uint32_t *ret_count, struct cbn_error *err)
{
    const struct timespec until = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                                   .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    int waited = 0;
    (void)pthread_mutex_lock(&query->mutex);
    while (!query->answered && waited != ETIMEDOUT)
        waited = pthread_cond_clockwait(&query->changed, &query->mutex, CLOCK_MONOTONIC, &until);
    bool answered = query->answered;
    int code = query->code;
    if (answered)
        take(query->found, ret_addresses, ret_count);
    let_go(query);
    if (!answered)
        return cbn__error_own(err, CBN_STATUS_TIMEOUT, "the host of the fleet's server was not looked up in time");
    return *ret_count ? CBN_STATUS_OK : refuse(code ? code : EAI_NONAME, err);
}

int32_t cbn__tier_resolve(const struct cbn__tier_address *address, uint64_t deadline_ns,
                          struct cbn__socket_address *ret_addresses, uint32_t *ret_count, struct cbn_error *err)
{
    struct addrinfo *found = NULL;
    *ret_count = 0;
    if (look_up(address, AI_NUMERICHOST, &found) == 0) {
        take(found, ret_addresses, ret_count);
        freeaddrinfo(found);
        return *ret_count ? CBN_STATUS_OK : refuse(EAI_NONAME, err);
    }
    struct query *query = begin(address);
    return query ? await(query, deadline_ns, ret_addresses, ret_count, err) : cbn__error_no_memory(err);
}
