/*
 * See faults.h. Each function here counts its call, fails it if that is what was armed, and else hands it to libc.
 */
#include "faults.h"

#include "fault_log.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES 36u

static struct {
    pthread_mutex_t mutex;
    bool armed;
    struct fault_plan plan;
    struct fault_report report;
    char boot_id[BOOT_ID_BYTES + 1];
} faults = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The next definition of a function: libc's, or a sanitizer's. */
#define NEXT(name)                                                                                                     \
    static __typeof__(&name) next;                                                                                     \
    if (!next)                                                                                                         \
    next = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name)

/* ---- arming ---- */

void faults_arm(const struct fault_plan *plan)
{
    faults.plan = *plan;
    faults.report = (struct fault_report){0};
    faults.armed = true;
}

struct fault_report faults_disarm(void)
{
    faults.armed = false;
    return faults.report;
}

void faults_set_boot_id(const char *boot_id)
{
    (void)snprintf(faults.boot_id, sizeof(faults.boot_id), "%s", boot_id ? boot_id : "");
}

/* 0: go on; else what the plan says. */
static int judge(enum fault_kind kind)
{
    if (!faults.armed)
        return 0;
    (void)pthread_mutex_lock(&faults.mutex);
    bool now = ++faults.report.calls == faults.plan.at;
    bool again = faults.plan.lasting && faults.report.fired && faults.report.kind == kind;
    if (now)
        faults.report.kind = kind;
    faults.report.fired += now || again;
    int code = now || again ? faults.plan.code : 0;
    (void)pthread_mutex_unlock(&faults.mutex);
    if (code == FAULT_KILL || (code == FAULT_TEAR && kind != FAULT_WRITE))
        (void)kill(getpid(), SIGKILL);
    return code == FAULT_SHORT && kind != FAULT_WRITE ? EIO : code;
}

/* true: the call has failed with errno. */
static bool fails(enum fault_kind kind)
{
    int code = judge(kind);
    if (code > 0)
        errno = code;
    return code != 0;
}

/* ---- open ---- */

static int boot_id_file(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    NEXT(write);
    (void)!next(ends[1], faults.boot_id, BOOT_ID_BYTES);
    (void)close(ends[1]);
    return ends[0];
}

static int open_file(int folder, const char *path, int flags, mode_t mode)
{
    NEXT(openat);
    struct stat status;
    if (fails(FAULT_OPEN))
        return -1;
    if (faults.boot_id[0] && strcmp(path, BOOT_ID_FILE) == 0)
        return boot_id_file();
    bool makes = flags & O_CREAT && fault_log_is_on() && fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) != 0;
    int fd = next(folder, path, flags, mode);
    if (fd >= 0 && makes && fstat(fd, &status) == 0)
        fault_log_create(path, status.st_ino);
    return fd;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

#define OPEN_BODY(folder)                                                                                              \
    va_list args;                                                                                                      \
    va_start(args, flags);                                                                                             \
    mode_t mode = mode_of(flags, args);                                                                                \
    va_end(args);                                                                                                      \
    return open_file(folder, path, flags, mode)

int open(const char *path, int flags, ...)
{
    OPEN_BODY(AT_FDCWD);
}

int open64(const char *path, int flags, ...)
{
    OPEN_BODY(AT_FDCWD);
}

int openat(int folder, const char *path, int flags, ...)
{
    OPEN_BODY(folder);
}

int openat64(int folder, const char *path, int flags, ...)
{
    OPEN_BODY(folder);
}

/* What _FORTIFY_SOURCE makes of an open without a mode. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

int __open_2(const char *path, int flags)
{
    return open_file(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags)
{
    return open_file(AT_FDCWD, path, flags, 0);
}

/* ---- write ---- */

/* at < 0: where the descriptor stands. Of a torn or short write the first half. */
static ssize_t write_parts(int fd, const struct iovec *parts, int count, off_t at)
{
    NEXT(writev);
    static __typeof__(&pwrite) next_at;
    if (!next_at)
        next_at = (__typeof__(&pwrite))(uintptr_t)dlsym(RTLD_NEXT, "pwrite");
    int code = judge(FAULT_WRITE);
    if (code > 0) {
        errno = code;
        return -1;
    }
    struct iovec half = {parts[0].iov_base, parts[0].iov_len / (count == 1 ? 2 : 1)};
    if (code < 0) {
        parts = &half;
        count = 1;
    }
    off_t offset = at >= 0 ? at : fault_log_is_on() ? lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t written = at >= 0 ? next_at(fd, parts[0].iov_base, parts[0].iov_len, at) : next(fd, parts, count);
    if (code == FAULT_TEAR)
        (void)kill(getpid(), SIGKILL);
    fault_log_write(fd, offset, parts, count, written);
    return written;
}

static ssize_t write_one(int fd, const void *bytes, size_t size, off_t at)
{
    const struct iovec part = {(void *)(uintptr_t)bytes, size};
    return write_parts(fd, &part, 1, at);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    return write_one(fd, bytes, size, -1);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    return write_one(fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
    return write_one(fd, bytes, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return write_parts(fd, parts, count, -1);
}

/* ---- the rest ---- */

int fsync(int fd)
{
    NEXT(fsync);
    if (fails(FAULT_SYNC))
        return -1;
    fault_log_file(STEP_SYNC, fd, 0);
    return next(fd);
}

int fdatasync(int fd)
{
    NEXT(fdatasync);
    if (fails(FAULT_SYNC))
        return -1;
    fault_log_file(STEP_SYNC, fd, 0);
    return next(fd);
}

int msync(void *start, size_t size, int flags)
{
    NEXT(msync);
    return fails(FAULT_SYNC) ? -1 : next(start, size, flags);
}

int ftruncate(int fd, off_t size)
{
    NEXT(ftruncate);
    if (fails(FAULT_SIZE))
        return -1;
    int rc = next(fd, size);
    if (rc == 0)
        fault_log_file(STEP_SIZE, fd, size);
    return rc;
}

int ftruncate64(int fd, off64_t size)
{
    return ftruncate(fd, size);
}

int fallocate(int fd, int mode, off_t at, off_t size)
{
    NEXT(fallocate);
    return fails(FAULT_SIZE) ? -1 : next(fd, mode, at, size);
}

int posix_fallocate(int fd, off_t at, off_t size)
{
    NEXT(posix_fallocate);
    return fails(FAULT_SIZE) ? errno : next(fd, at, size);
}

void *mmap(void *start, size_t size, int protection, int flags, int fd, off_t at)
{
    NEXT(mmap);
    return fd >= 0 && fails(FAULT_MAP) ? MAP_FAILED : next(start, size, protection, flags, fd, at);
}

void *mmap64(void *start, size_t size, int protection, int flags, int fd, off64_t at)
{
    return mmap(start, size, protection, flags, fd, at);
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    if (fails(FAULT_NAME))
        return -1;
    int rc = next(from, to);
    if (rc == 0)
        fault_log_name(STEP_RENAME, from, to);
    return rc;
}

int unlink(const char *path)
{
    NEXT(unlink);
    if (fails(FAULT_NAME))
        return -1;
    int rc = next(path);
    if (rc == 0)
        fault_log_name(STEP_UNLINK, path, NULL);
    return rc;
}

int unlinkat(int folder, const char *path, int flags)
{
    NEXT(unlinkat);
    if (fails(FAULT_NAME))
        return -1;
    int rc = next(folder, path, flags);
    if (rc == 0)
        fault_log_name(STEP_UNLINK, path, NULL);
    return rc;
}

int link(const char *from, const char *to)
{
    NEXT(link);
    return fails(FAULT_NAME) ? -1 : next(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    NEXT(mkdir);
    return fails(FAULT_NAME) ? -1 : next(path, mode);
}

static int control(int fd, int command, uintptr_t argument)
{
    NEXT(fcntl);
    if (command == F_OFD_SETLK && ((const struct flock *)argument)->l_type != F_UNLCK && fails(FAULT_LOCK))
        return -1;
    if (command == F_DUPFD_CLOEXEC && fails(FAULT_OPEN))
        return -1;
    return next(fd, command, argument);
}

#define FCNTL_BODY                                                                                                     \
    va_list args;                                                                                                      \
    va_start(args, command);                                                                                           \
    uintptr_t argument = va_arg(args, uintptr_t);                                                                      \
    va_end(args);                                                                                                      \
    return control(fd, command, argument)

int fcntl(int fd, int command, ...)
{
    FCNTL_BODY;
}

int fcntl64(int fd, int command, ...)
{
    FCNTL_BODY;
}
