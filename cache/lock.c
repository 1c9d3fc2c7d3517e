/*
 * The project's lock file. See lock.h for the order of the two locks.
 */
#include "cache/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "cache/folder.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull
#define FIRST_PAUSE_NS 20000ull
#define LONGEST_PAUSE_NS (2 * NS_PER_MS)
#define STALLED_PART 20u
#define STALLED_HALVES_MAX 6u
#define YIELD_PART 4u
#define REOPEN_TRIES 4

void cbn__lock_init(struct cbn__lock *lock, const char *path, bool writable, mode_t mode)
{
    *lock = (struct cbn__lock){.path = path, .mode = mode, .writable = writable, .fd = -1};
    (void)pthread_mutex_init(&lock->mutex, NULL);
    (void)pthread_cond_init(&lock->changed, NULL);
}

void cbn__lock_done(struct cbn__lock *lock)
{
    if (lock->fd >= 0)
        (void)close(lock->fd);
    lock->fd = -1;
    (void)pthread_cond_destroy(&lock->changed);
    (void)pthread_mutex_destroy(&lock->mutex);
}

/* NONBLOCK: a FIFO or a device would wait for its other end. ENXIO is what open(2) itself says of a socket. */
static int open_regular(const char *path, int flags)
{
    struct stat status;
    int fd = open(path, flags | O_NONBLOCK);
    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
        return fd;
    (void)close(fd);
    errno = ENXIO;
    return -1;
}

static bool is_irregular(int code)
{
    return code == ENXIO || code == ENODEV || code == EISDIR || code == ELOOP;
}

int32_t cbn__lock_explain(const char *path, int code, struct cbn_error *err)
{
    if (is_irregular(code))
        return cbn__error_own(err, CBN_STATUS_UNTRUSTED, "the lock file %s is no regular file; remove it", path);
    return cbn__error_os(err, CBN_STATUS_IO, code, "cannot open the lock file %s; give its folder to this user", path);
}

int cbn__lock_open_file(const char *path, bool writable, mode_t mode)
{
    const int flags = O_CLOEXEC | O_NOFOLLOW;
    CBN__LOW_DESCRIPTORS_AUTO low = cbn__low_descriptors_hold();
    if (!writable)
        return open_regular(path, O_RDONLY | flags);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | flags, mode);
    if (fd < 0)
        return errno == EEXIST ? open_regular(path, O_RDWR | flags) : -1;
    /* A umask of 077 must not lock the group out of a folder that is shared with it. */
    if (cbn__folder_share_file(fd, path) != 0) {
        int code = errno;
        (void)close(fd);
        errno = code;
        return -1;
    }
    return fd;
}

static int set_byte(int fd, short type, off_t byte)
{
    struct flock request = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &request) == 0 ? 0 : errno;
}

/* Fails while the file is compacted: tried again with the next lock. */
static void be_present(struct cbn__lock *lock)
{
    if (!lock->present)
        lock->present = set_byte(lock->fd, F_RDLCK, CBN__LOCK_PRESENCE_BYTE) == 0;
}

/* Opened under the mutex, which fork takes: no descriptor reaches a child unseen. */
static int32_t open_locked(struct cbn__lock *lock)
{
    if (lock->fd >= 0)
        return CBN_STATUS_OK;
    lock->fd = cbn__lock_open_file(lock->path, lock->writable, lock->mode);
    lock->present = false;
    if (lock->fd < 0)
        return lock->writable || is_irregular(errno) ? CBN_STATUS_IO : CBN_STATUS_OK;
    be_present(lock);
    return CBN_STATUS_OK;
}

int32_t cbn__lock_open(struct cbn__lock *lock, struct cbn_error *err)
{
    (void)pthread_mutex_lock(&lock->mutex);
    int32_t status = open_locked(lock);
    int code = errno;
    (void)pthread_mutex_unlock(&lock->mutex);
    return status == CBN_STATUS_OK ? status : cbn__lock_explain(lock->path, code, err);
}

int32_t cbn__lock_poll(int fd, short type, off_t byte, uint64_t deadline_ns, uint64_t longest_pause_ns,
                       bool *ret_waited)
{
    uint64_t pause_ns = FIRST_PAUSE_NS;
    for (;;) {
        int code = set_byte(fd, type, byte);
        if (code == 0)
            return CBN_STATUS_OK;
        if (code != EAGAIN && code != EACCES && code != EINTR)
            return CBN_STATUS_IO;
        if (ret_waited)
            *ret_waited = true;
        if (cbn__clock_monotonic_ns() >= deadline_ns)
            return CBN_STATUS_TIMEOUT;
        cbn__clock_sleep_ns(pause_ns);
        pause_ns = pause_ns * 2 > longest_pause_ns ? longest_pause_ns : pause_ns * 2;
    }
}

bool cbn__lock_is_write_locked(int fd, off_t byte)
{
    struct flock question = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fd >= 0 && fcntl(fd, F_OFD_GETLK, &question) == 0 && question.l_type != F_UNLCK;
}

static bool writer_waits(int fd)
{
    return cbn__lock_is_write_locked(fd, CBN__LOCK_INTENT_BYTE);
}

/* How long a caller waits for the lock, and how much of that a reader gives way to a writer that waits. */
struct wait {
    uint64_t deadline_ns;
    uint64_t yield_ns;
};

/*
 * A reader gives way to a writer that has said so: overlapping readers would otherwise keep it out for seconds. Not
 * for ever: a writer that still waits then is stopped, or waits for a reader that is.
 */
static int32_t take_shared_byte(int fd, const struct wait *wait, bool *ret_yielded)
{
    uint64_t pause_ns = FIRST_PAUSE_NS;
    *ret_yielded = false;
    while (writer_waits(fd)) {
        *ret_yielded = cbn__clock_monotonic_ns() >= wait->yield_ns;
        if (*ret_yielded)
            break;
        cbn__clock_sleep_ns(pause_ns);
        pause_ns = pause_ns * 2 > LONGEST_PAUSE_NS ? LONGEST_PAUSE_NS : pause_ns * 2;
    }
    return cbn__lock_poll(fd, F_RDLCK, CBN__LOCK_DATA_BYTE, wait->deadline_ns, LONGEST_PAUSE_NS, NULL);
}

static int32_t take_exclusive_byte(int fd, uint64_t deadline_ns)
{
    int32_t status = cbn__lock_poll(fd, F_WRLCK, CBN__LOCK_INTENT_BYTE, deadline_ns, LONGEST_PAUSE_NS, NULL);
    if (status != CBN_STATUS_OK)
        return status;
    status = cbn__lock_poll(fd, F_WRLCK, CBN__LOCK_DATA_BYTE, deadline_ns, LONGEST_PAUSE_NS, NULL);
    (void)set_byte(fd, F_UNLCK, CBN__LOCK_INTENT_BYTE);
    return status;
}

/* The file was removed or replaced: who opens it now locks another one. */
static bool file_is_gone(int fd)
{
    struct stat status;
    return fstat(fd, &status) != 0 || status.st_nlink == 0;
}

static int32_t reopen(struct cbn__lock *lock)
{
    (void)pthread_mutex_lock(&lock->mutex);
    if (lock->fd >= 0 && file_is_gone(lock->fd)) {
        (void)close(lock->fd);
        lock->fd = -1;
    }
    int32_t status = open_locked(lock);
    (void)pthread_mutex_unlock(&lock->mutex);
    return status;
}

/* Called by the one thread that has set busy, so nobody else changes fd. */
static int32_t take_file(struct cbn__lock *lock, bool exclusive, const struct wait *wait, bool *ret_yielded)
{
    for (int i = 0; i < REOPEN_TRIES; i++) {
        int32_t status = reopen(lock);
        if (status != CBN_STATUS_OK || lock->fd < 0)
            return status;
        status = exclusive && lock->writable ? take_exclusive_byte(lock->fd, wait->deadline_ns)
                                             : take_shared_byte(lock->fd, wait, ret_yielded);
        if (status == CBN_STATUS_OK)
            be_present(lock);
        if (status != CBN_STATUS_OK || !file_is_gone(lock->fd))
            return status;
    }
    return CBN_STATUS_IO;
}

/* Of the whole at first; of a twentieth, and then of half of the one before, after waits in vain. */
static uint64_t shorten(uint64_t wait_ns, uint32_t vain)
{
    if (vain == 0)
        return wait_ns;
    return wait_ns / STALLED_PART >> (vain <= STALLED_HALVES_MAX ? vain - 1 : STALLED_HALVES_MAX);
}

/* A holder that is stopped costs one deadline and a tenth, however many waits there are. */
static struct wait begin_wait(const struct cbn__lock *lock, bool exclusive, uint32_t timeout_ms)
{
    uint64_t now_ns = cbn__clock_monotonic_ns(), whole_ns = timeout_ms * NS_PER_MS;
    return (struct wait){
        .deadline_ns = now_ns + shorten(whole_ns, exclusive ? lock->exclusive_stalls : lock->shared_stalls),
        .yield_ns = now_ns + shorten(whole_ns / YIELD_PART, lock->yields),
    };
}

/* Sides apart: a reader that is stopped keeps writers out and lets readers in, who learn nothing about writing. */
static void note_wait(struct cbn__lock *lock, bool exclusive, int32_t status, bool write_locked)
{
    if (status == CBN_STATUS_TIMEOUT) {
        lock->exclusive_stalls++;
        lock->shared_stalls += !exclusive || write_locked;
    } else {
        lock->shared_stalls = 0;
        if (exclusive)
            lock->exclusive_stalls = 0;
    }
}

static void wait_change(struct cbn__lock *lock, uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S)};
    (void)pthread_cond_clockwait(&lock->changed, &lock->mutex, CLOCK_MONOTONIC, &until);
}

/* Mutex held on entry and on return; free meanwhile. */
static int32_t talk_to_file(struct cbn__lock *lock, bool exclusive, const struct wait *wait)
{
    bool yielded = false;
    lock->busy = true;
    (void)pthread_mutex_unlock(&lock->mutex);
    int32_t status = take_file(lock, exclusive, wait, &yielded);
    bool write_locked = status == CBN_STATUS_TIMEOUT && cbn__lock_is_write_locked(lock->fd, CBN__LOCK_DATA_BYTE);
    (void)pthread_mutex_lock(&lock->mutex);
    lock->busy = false;
    note_wait(lock, exclusive, status, write_locked);
    if (!exclusive)
        lock->yields = yielded ? lock->yields + 1 : 0;
    (void)pthread_cond_broadcast(&lock->changed);
    return status;
}

static int32_t enter_shared(struct cbn__lock *lock, const struct wait *wait)
{
    for (;;) {
        uint64_t now_ns = cbn__clock_monotonic_ns();
        bool quiet = !lock->exclusive && !lock->busy && lock->writers == 0;
        if (quiet && lock->shared == 0)
            break;
        if (quiet && (now_ns >= wait->yield_ns || !writer_waits(lock->fd))) {
            lock->shared++;
            return CBN_STATUS_OK;
        }
        if (now_ns >= wait->deadline_ns)
            return CBN_STATUS_TIMEOUT;
        wait_change(lock, quiet && wait->yield_ns < wait->deadline_ns ? wait->yield_ns : wait->deadline_ns);
    }
    int32_t status = talk_to_file(lock, false, wait);
    lock->shared = status == CBN_STATUS_OK ? 1 : 0;
    return status;
}

static int32_t enter_exclusive(struct cbn__lock *lock, const struct wait *wait)
{
    while (lock->exclusive || lock->busy || lock->shared) {
        if (cbn__clock_monotonic_ns() >= wait->deadline_ns)
            return CBN_STATUS_TIMEOUT;
        wait_change(lock, wait->deadline_ns);
    }
    int32_t status = talk_to_file(lock, true, wait);
    lock->exclusive = status == CBN_STATUS_OK;
    return status;
}

int32_t cbn__lock_shared(struct cbn__lock *lock, uint32_t timeout_ms)
{
    (void)pthread_mutex_lock(&lock->mutex);
    const struct wait wait = begin_wait(lock, false, timeout_ms);
    int32_t status = enter_shared(lock, &wait);
    (void)pthread_mutex_unlock(&lock->mutex);
    return status;
}

int32_t cbn__lock_exclusive(struct cbn__lock *lock, uint32_t timeout_ms)
{
    (void)pthread_mutex_lock(&lock->mutex);
    const struct wait wait = begin_wait(lock, true, timeout_ms);
    lock->writers++;
    int32_t status = enter_exclusive(lock, &wait);
    lock->writers--;
    (void)pthread_cond_broadcast(&lock->changed);
    (void)pthread_mutex_unlock(&lock->mutex);
    return status;
}

void cbn__lock_note_stall(struct cbn__lock *lock)
{
    (void)pthread_mutex_lock(&lock->mutex);
    note_wait(lock, false, CBN_STATUS_TIMEOUT, true);
    (void)pthread_mutex_unlock(&lock->mutex);
}

bool cbn__lock_is_stalled(struct cbn__lock *lock)
{
    (void)pthread_mutex_lock(&lock->mutex);
    bool stalled = lock->shared_stalls || lock->exclusive_stalls;
    (void)pthread_mutex_unlock(&lock->mutex);
    return stalled;
}

static void leave_file(struct cbn__lock *lock)
{
    if (lock->fd >= 0)
        (void)set_byte(lock->fd, F_UNLCK, CBN__LOCK_DATA_BYTE);
    (void)pthread_cond_broadcast(&lock->changed);
}

void cbn__lock_release_shared(struct cbn__lock *lock)
{
    (void)pthread_mutex_lock(&lock->mutex);
    if (--lock->shared == 0)
        leave_file(lock);
    (void)pthread_mutex_unlock(&lock->mutex);
}

void cbn__lock_release_exclusive(struct cbn__lock *lock)
{
    (void)pthread_mutex_lock(&lock->mutex);
    lock->exclusive = false;
    leave_file(lock);
    (void)pthread_mutex_unlock(&lock->mutex);
}

bool cbn__lock_is_alone(struct cbn__lock *lock)
{
    if (lock->fd < 0 || set_byte(lock->fd, F_WRLCK, CBN__LOCK_PRESENCE_BYTE) != 0)
        return false;
    lock->present = false;
    return true;
}

void cbn__lock_let_in(struct cbn__lock *lock)
{
    be_present(lock);
}

void cbn__lock_fork_before(struct cbn__lock *lock)
{
    (void)pthread_mutex_lock(&lock->mutex);
}

void cbn__lock_fork_after(struct cbn__lock *lock)
{
    (void)pthread_mutex_unlock(&lock->mutex);
}

bool cbn__lock_fork_child(struct cbn__lock *lock)
{
    bool quiet = !lock->exclusive && !lock->busy && lock->shared == 0;
    if (lock->fd >= 0)
        (void)close(lock->fd); /* the description is the parent's: held open here, it would outlive the parent */
    cbn__lock_init(lock, lock->path, lock->writable, lock->mode);
    return quiet;
}
