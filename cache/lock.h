/*
 * The project's lock file: shared to read, exclusive to write, among the threads of a process and among processes.
 *
 * Open-file-description locks hold between processes (and die with the last descriptor); they do not exclude the
 * threads of one process, so a reader-writer lock with a count of shared holders stands above them: the file is
 * locked by the first holder and unlocked by the last.
 *
 * Locks: lock.mutex guards every field and is never held while waiting; the file is polled outside of it by the one
 * thread that has set busy. Nothing waits without a deadline.
 */
#ifndef CBN_CACHE_LOCK_H
#define CBN_CACHE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cubinet/status.h>

/* Bytes of the lock file that carry locks; FORMAT.md names them. */
#define CBN__LOCK_INTENT_BYTE ((off_t)1 << 32)
#define CBN__LOCK_DATA_BYTE (CBN__LOCK_INTENT_BYTE + 1)
#define CBN__LOCK_PRESENCE_BYTE (CBN__LOCK_INTENT_BYTE + 2)
#define CBN__LOCK_FLIGHT_BYTES ((off_t)1 << 62) /* a flight's byte: this plus 61 bits of its key */

struct cbn__lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const char *path; /* borrowed */
    mode_t mode;      /* of a lock file made here */
    bool writable;    /* false: an existing file is locked shared; a missing one is not made, then nothing is locked */
    int fd;
    uint32_t shared;
    uint32_t writers; /* waiting in this process */
    bool exclusive;
    bool present; /* holds the presence byte shared, as long as the file is open */
    bool busy;
    /* Waits in a row that ended at their deadline: the next one is a twentieth, then each half of the one before. */
    uint32_t shared_stalls, exclusive_stalls;
    uint32_t yields; /* reads in a row that gave way to a writer in vain */
};

void cbn__lock_init(struct cbn__lock *lock, const char *path, bool writable, mode_t mode);
void cbn__lock_done(struct cbn__lock *lock);

/* Opens the file, makes it when writable. OK; IO, or UNTRUSTED for what is no regular file, with err set. */
int32_t cbn__lock_open(struct cbn__lock *lock, struct cbn_error *err);

/* OK, TIMEOUT or IO. */
int32_t cbn__lock_shared(struct cbn__lock *lock, uint32_t timeout_ms);
int32_t cbn__lock_exclusive(struct cbn__lock *lock, uint32_t timeout_ms);
void cbn__lock_release_shared(struct cbn__lock *lock);
void cbn__lock_release_exclusive(struct cbn__lock *lock);

/* Exclusive side held: true when no other open file holds the presence byte; held exclusively then, until let go. */
bool cbn__lock_is_alone(struct cbn__lock *lock);
void cbn__lock_let_in(struct cbn__lock *lock);

/* Round fork: before takes the mutex, after gives it back in the parent. In the child the descriptor is closed. */
void cbn__lock_fork_before(struct cbn__lock *lock);
void cbn__lock_fork_after(struct cbn__lock *lock);
/* true when no thread of the parent was inside at the fork. */
bool cbn__lock_fork_child(struct cbn__lock *lock);

/*
 * Opens a lock file; one made here is for whom its folder is shared with (folder.h). -1 and errno; never waits: what is no
 * regular file (a FIFO would wait for its other end) is refused.
 */
int cbn__lock_open_file(const char *path, bool writable, mode_t mode);
/* Says why cbn__lock_open_file failed, and the mend. IO, or UNTRUSTED for what is no regular file. */
int32_t cbn__lock_explain(const char *path, int code, struct cbn_error *err);

/* Polls for one byte until the deadline; *ret_waited (may be NULL) when it was not free at once. OK, TIMEOUT, IO. */
int32_t cbn__lock_poll(int fd, short type, off_t byte, uint64_t deadline_ns, uint64_t longest_pause_ns,
                       bool *ret_waited);
/* The last wait for one side was in vain. */
bool cbn__lock_is_stalled(struct cbn__lock *lock);
/* What a wait in vain would have told: somebody has held the lock for writing for a whole deadline. */
void cbn__lock_note_stall(struct cbn__lock *lock);
/* Another open file holds the byte exclusively. false for fd -1. */
bool cbn__lock_is_write_locked(int fd, off_t byte);

#endif
