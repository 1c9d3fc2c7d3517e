/*
 * One connection to the fleet tier's server: commands out, replies in, every wait up to a deadline. tier_redis.c speaks
 * the protocol through hiredis, which alone it includes; tier_absent.c stands in its place where the library was
 * built without (CUBINET_FLEET of CMake).
 *
 * A link belongs to the thread that uses it. Its socket is closed on exec, and no write of it raises SIGPIPE.
 */
#ifndef CBN_CACHE_TIER_LINK_H
#define CBN_CACHE_TIER_LINK_H

#include <sys/socket.h>

#include "base/buf.h"
#include "cache/tier_address.h"

#define CBN__TIER_ARGUMENTS_MAX 8u
#define CBN__TIER_REPLY_MAX_BYTES ((size_t)17 << 20) /* of one reply with what came behind it */

struct cbn__link;

struct cbn__tier_command {
    uint32_t count;
    struct cbn__blob arguments[CBN__TIER_ARGUMENTS_MAX];
};

enum cbn__reply_kind {
    CBN__REPLY_NIL = 0,
    CBN__REPLY_INTEGER,
    CBN__REPLY_BYTES,
    CBN__REPLY_STATUS, /* "OK" */
    CBN__REPLY_ERROR   /* what the server says, in bytes */
};

struct cbn__tier_reply {
    enum cbn__reply_kind kind;
    int64_t integer;
    struct cbn__buf bytes; /* of BYTES and ERROR, owned */
};

/* UNSUPPORTED, with what to do, where this library cannot reach such an address. */
int32_t cbn__link_supports(const struct cbn__tier_address *address, struct cbn_error *err);

/* Takes over a socket that is connected and does not block, whatever comes of it. OK, UNSUPPORTED, NO_MEMORY, IO. */
int32_t cbn__link_create(const struct cbn__tier_address *address, int fd, struct cbn__link **ret_link,
                         struct cbn_error *err);
void cbn__link_destroy(struct cbn__link *link); /* and closes its socket */
int cbn__link_fd(const struct cbn__link *link);
/* Bytes of a server that nobody asked, or its end: not to be used again. */
bool cbn__link_is_stale(const struct cbn__link *link);

/* OK; TIMEOUT, IO (refused, cut off), DAMAGED (no reply of this protocol, or too long), NO_MEMORY: destroy it then. */
int32_t cbn__link_send(struct cbn__link *link, const struct cbn__tier_command *command, struct cbn_error *err);
int32_t cbn__link_receive(struct cbn__link *link, uint64_t deadline_ns, struct cbn__tier_reply *ret_reply,
                          struct cbn_error *err);

/* tier_socket.c: a socket that is connected, does not block and is closed on exec. TIMEOUT or IO. */
int32_t cbn__tier_connect(const struct cbn__tier_address *address, uint64_t deadline_ns, int *ret_fd,
                          struct cbn_error *err);
/* Waits for poll's events on one descriptor. OK, TIMEOUT, IO. */
int32_t cbn__tier_wait(int fd, short events, uint64_t deadline_ns, struct cbn_error *err);

/* tier_resolve.c: the addresses of a host, at most so many, waiting for them no longer than the deadline. */
#define CBN__TIER_ADDRESSES_MAX 8u
struct cbn__socket_address {
    struct sockaddr_storage address;
    socklen_t size;
};
int32_t cbn__tier_resolve(const struct cbn__tier_address *address, uint64_t deadline_ns,
                          struct cbn__socket_address *ret_addresses, uint32_t *ret_count, struct cbn_error *err);

#endif
