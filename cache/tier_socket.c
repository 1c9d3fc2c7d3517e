/*
 * Sockets to the fleet tier's server: each address of it in turn, up to one deadline for all.
 */
#include "cache/tier_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

#define NS_PER_MS 1000000u

/* Rounded up, so that a wait does not end before its deadline. */
static int left_ms(uint64_t deadline_ns)
{
    uint64_t now_ns = cbn__clock_monotonic_ns();
    uint64_t ms = now_ns < deadline_ns ? (deadline_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
    return ms > 1000000 ? 1000000 : (int)ms;
}

int32_t cbn__tier_wait(int fd, short events, uint64_t deadline_ns, struct cbn_error *err)
{
    for (;;) {
        struct pollfd item = {.fd = fd, .events = events};
        int ms = left_ms(deadline_ns), count = poll(&item, 1, ms);
        if (count > 0 && ms > 0)
            return CBN_STATUS_OK;
        if (count < 0 && errno != EINTR)
            return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot wait for the fleet's server");
        if (ms == 0)
            return cbn__error_own(err, CBN_STATUS_TIMEOUT, "the fleet's server did not answer in time");
    }
}

static int32_t finish_connect(int fd, const struct sockaddr *address, socklen_t size, uint64_t deadline_ns,
                              struct cbn_error *err)
{
    int code = 0;
    socklen_t code_size = sizeof(code);
    if (connect(fd, address, size) == 0)
        return CBN_STATUS_OK;
    /* Of a Unix socket whose queue is full it is EAGAIN, and nothing tells when there is room: as good as refused. */
    if (errno != EINPROGRESS && errno != EINTR)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot connect to the fleet's server");
    int32_t status = cbn__tier_wait(fd, POLLOUT, deadline_ns, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &code_size) != 0)
        code = errno;
    return code == 0 ? CBN_STATUS_OK : cbn__error_os(err, CBN_STATUS_IO, code, "cannot connect to the fleet's server");
}

static int32_t connect_one(const struct sockaddr *address, socklen_t size, uint64_t deadline_ns, int *ret_fd,
                           struct cbn_error *err)
{
    static const int on = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot make a socket for the fleet's server");
    int32_t status = finish_connect(fd, address, size, deadline_ns, err);
    if (status != CBN_STATUS_OK) {
        (void)close(fd);
        return status;
    }
    if (address->sa_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    *ret_fd = fd;
    return CBN_STATUS_OK;
}

static int32_t connect_unix(const char *path, uint64_t deadline_ns, int *ret_fd, struct cbn_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strnlen(path, sizeof(address.sun_path) - 1));
    return connect_one((const struct sockaddr *)&address, sizeof(address), deadline_ns, ret_fd, err);
}

int32_t cbn__tier_connect(const struct cbn__tier_address *address, uint64_t deadline_ns, int *ret_fd,
                          struct cbn_error *err)
{
    struct cbn__socket_address found[CBN__TIER_ADDRESSES_MAX];
    uint32_t count = 0;
    if (address->path[0])
        return connect_unix(address->path, deadline_ns, ret_fd, err);
    int32_t status = cbn__tier_resolve(address, deadline_ns, found, &count, err);
    if (status != CBN_STATUS_OK)
        return status;
    status = CBN_STATUS_IO;
    for (uint32_t i = 0; i < count && status != CBN_STATUS_OK; i++) {
        /* An address that swallows everything leaves half of what is left to those behind it. */
        uint64_t now_ns = cbn__clock_monotonic_ns(), until_ns = deadline_ns;
        if (i + 1 < count && now_ns < deadline_ns)
            until_ns = now_ns + (deadline_ns - now_ns) / 2;
        status = connect_one((const struct sockaddr *)&found[i].address, found[i].size, until_ns, ret_fd, err);
    }
    return status;
}
