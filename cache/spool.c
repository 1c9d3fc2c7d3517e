/*
 * See spool.h.
 */
#include "cache/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/descriptor.h"

#define CHUNK_BYTES ((size_t)1 << 20)

/* In the folder of the file at this path: a local disk with room for what the stream holds. */
static int open_nameless(const char *path)
{
    CBN__LOW_DESCRIPTORS_AUTO low = cbn__low_descriptors_hold();
    CBN__BUF_AUTO name = CBN__BUF_INIT;
    const char *slash = strrchr(path, '/');
    cbn__buf_append(&name, path, (size_t)(slash - path) + 1);
    char *folder = name.failed ? NULL : strdup(cbn__buf_text(&name));
    int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    free(folder);
    if (fd >= 0)
        return fd;
    cbn__buf_append_text(&name, "unpack-XXXXXX");
    char *template = name.failed ? NULL : strdup(cbn__buf_text(&name));
    fd = template ? mkostemp(template, O_CLOEXEC) : -1;
    if (fd >= 0)
        (void)unlink(template);
    free(template);
    return fd;
}

/* Bytes, 0 at the end, -1 and errno. */
static ssize_t read_some(int fd, uint8_t *bytes, size_t size)
{
    for (;;) {
        ssize_t got = read(fd, bytes, size);
        if (got >= 0 || (errno != EINTR && errno != EAGAIN))
            return got;
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (errno == EAGAIN)
            (void)poll(&ready, 1, -1);
    }
}

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        bytes += written;
        size -= (size_t)written;
    }
    return 0;
}

static int32_t copy(int from, int to, const char *name, uint64_t bound_bytes, uint8_t *chunk, struct cbn_error *err)
{
    for (uint64_t total = 0;;) {
        ssize_t got = read_some(from, chunk, CHUNK_BYTES);
        if (got < 0)
            return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot read %s", name);
        if (got == 0)
            return CBN_STATUS_OK;
        total += (uint64_t)got;
        if (total > bound_bytes)
            return cbn__error_own(
                err, CBN_STATUS_LIMIT,
                "%s is longer than the %llu MiB that the cache is bound to: raise max_bytes, or use the "
                "pack in place as a base",
                name, (unsigned long long)(bound_bytes >> 20));
        if (write_all(to, chunk, (size_t)got) != 0)
            return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot keep %s beside the cache", name);
    }
}

int32_t cbn__spool(int fd, const char *name, const char *data_path, uint64_t bound_bytes, int *ret_fd,
                   struct cbn_error *err)
{
    struct stat file;
    *ret_fd = -1;
    if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode)) {
        *ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        return *ret_fd >= 0 ? CBN_STATUS_OK : cbn__error_os(err, CBN_STATUS_IO, errno, "cannot read %s", name);
    }
    *ret_fd = open_nameless(data_path);
    if (*ret_fd < 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot keep %s beside the cache", name);
    uint8_t *chunk = malloc(CHUNK_BYTES);
    int32_t status = chunk ? copy(fd, *ret_fd, name, bound_bytes, chunk, err) : cbn__error_no_memory(err);
    free(chunk);
    return status;
}
