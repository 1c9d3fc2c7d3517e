/*
 * Beginning and ending sessions. See session.h.
 */
#include "cache/session.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cache/runs.h"
#include "cache/stamp.h"

#define SESSION_TRIES 8
#define PAST_BOUND_BYTES ((uint64_t)64 << 10)

void cbn__session_judge(struct cbn__store *store, int code)
{
    if (code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND || code == MDB_INVALID)
        atomic_store(&store->condemned, true);
    if (code != 0 && code != MDB_NOTFOUND && code != MDB_MAP_FULL && code != MDB_TXN_FULL && code != ENOMEM &&
        code != EFBIG)
        atomic_store(&store->failed, true);
}

static int32_t lock_error(const struct cbn__store *store, int32_t status, uint32_t timeout_ms, struct cbn_error *err)
{
    if (status == CBN_STATUS_TIMEOUT)
        return cbn__error_own(err, CBN_STATUS_TIMEOUT,
                              "the lock %s did not come free in %u ms: another process holds it", store->lock_path,
                              timeout_ms);
    return cbn__error_own(err, CBN_STATUS_IO, "the lock %s cannot be taken; use a folder on a local filesystem",
                          store->lock_path);
}

int32_t cbn__session_own(struct cbn__store *store, uint32_t timeout_ms, struct cbn_error *err)
{
    int32_t status = cbn__lock_exclusive(&store->lock, timeout_ms);
    if (status != CBN_STATUS_OK)
        return lock_error(store, status, timeout_ms, err);
    if (!cbn__datafile_is_current(store))
        status = cbn__datafile_open(store, err);
    if (status != CBN_STATUS_OK)
        cbn__lock_release_exclusive(&store->lock);
    return status;
}

int32_t cbn__session_read(struct cbn__store *store, uint32_t timeout_ms, struct cbn__session *ret_session,
                          struct cbn_error *err)
{
    *ret_session = (struct cbn__session){.store = store};
    for (int i = 0; i < SESSION_TRIES; i++) {
        int32_t status = cbn__lock_shared(&store->lock, timeout_ms);
        if (status != CBN_STATUS_OK)
            return lock_error(store, status, timeout_ms, err);
        if (cbn__datafile_is_current(store)) {
            int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &ret_session->txn);
            if (rc == 0)
                return CBN_STATUS_OK;
            cbn__session_judge(store, rc);
        }
        cbn__lock_release_shared(&store->lock);
        status = cbn__session_own(store, timeout_ms, err);
        if (status != CBN_STATUS_OK)
            return status;
        cbn__lock_release_exclusive(&store->lock);
    }
    return cbn__error_own(err, CBN_STATUS_IO, "%s changes faster than it can be opened", store->data_path);
}

int32_t cbn__session_read_end(struct cbn__session *session, int code, struct cbn_error *err)
{
    struct cbn__store *store = session->store;
    mdb_txn_abort(session->txn);
    cbn__session_judge(store, code);
    cbn__lock_release_shared(&store->lock);
    if (code == 0)
        return CBN_STATUS_OK;
    if (code == MDB_NOTFOUND)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "no such entry");
    int32_t status = cbn__datafile_error(store, code, err, "cannot read the cache");
    return status == CBN_STATUS_LIMIT ? CBN_STATUS_IO : status;
}

uint64_t cbn__session_map_bytes(struct cbn__store *store)
{
    uint64_t bytes = atomic_load(&store->max_bytes), limit = cbn__datafile_size_limit();
    uint64_t disk = atomic_load(&store->disk_bytes);
    bytes = bytes < limit ? bytes : limit;
    if (disk)
        bytes = bytes < disk ? bytes : disk;
    return bytes - bytes % (uint64_t)sysconf(_SC_PAGESIZE);
}

/*
 * The map is the bound. A file that another process, with a larger bound, has taken past it needs a few pages more, or
 * nothing could be deleted from it.
 */
static int set_map(struct cbn__store *store)
{
    MDB_envinfo info = {0};
    int rc = mdb_env_info(store->env, &info);
    uint64_t wanted = cbn__session_map_bytes(store);
    uint64_t file_bytes = ((uint64_t)info.me_last_pgno + 1) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (rc == 0 && file_bytes > wanted)
        wanted = file_bytes + PAST_BOUND_BYTES;
    if (rc != 0 || info.me_mapsize == wanted)
        return rc;
    rc = mdb_env_set_mapsize(store->env, (size_t)wanted);
    /* LMDB has no map after a failure here, and would fault: the environment must not be touched again. */
    if (rc != 0)
        atomic_store(&store->failed, true);
    return rc;
}

/* A write behind RLIMIT_FSIZE would be a signal that kills the process. */
static bool may_write(const struct cbn__store *store)
{
    struct stat file;
    return fstat(store->data_fd, &file) == 0 && (uint64_t)file.st_size <= cbn__datafile_size_limit();
}

static int begin_write(struct cbn__session *session)
{
    struct cbn__store *store = session->store;
    if (!may_write(store))
        return EFBIG;
    if (cbn__datafile_mark(store) != CBN_STATUS_OK)
        return errno ? errno : EIO;
    int rc = set_map(store);
    if (rc == 0)
        rc = mdb_txn_begin(store->env, NULL, 0, &session->txn);
    if (rc != 0)
        return rc;
    rc = cbn__runs_learn(session);
    if (rc != 0)
        mdb_txn_abort(session->txn);
    return rc;
}

int32_t cbn__session_write(struct cbn__store *store, uint32_t timeout_ms, struct cbn__session *ret_session,
                           struct cbn_error *err)
{
    *ret_session = (struct cbn__session){.store = store};
    if (!store->writable)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "%s is open for reading only", store->data_path);
    int32_t status = cbn__session_own(store, timeout_ms, err);
    if (status != CBN_STATUS_OK)
        return status;
    int rc = begin_write(ret_session);
    if (rc == 0)
        return CBN_STATUS_OK;
    cbn__session_judge(store, rc);
    status = cbn__datafile_error(store, rc, err, "cannot write the cache");
    cbn__lock_release_exclusive(&store->lock);
    return status;
}

static int finish(struct cbn__session *session, int code)
{
    MDB_txn *txn = session->txn;
    session->txn = NULL;
    if (code == 0 && txn) {
        code = cbn__datafile_write_code(session->store, mdb_txn_commit(txn));
        session->committed = session->committed || code == 0;
        if (code == 0)
            atomic_store(&session->store->wrote, true);
        else if (code != MDB_MAP_FULL && code != MDB_TXN_FULL)
            atomic_store(&session->store->failed, true); /* whatever the code: LMDB's meta page may be half written */
    } else if (txn) {
        mdb_txn_abort(txn);
    }
    cbn__session_judge(session->store, code);
    return code;
}

int cbn__session_renew(struct cbn__session *session, int code)
{
    int finished = finish(session, code);
    int begun = atomic_load(&session->store->failed) ? 0 : mdb_txn_begin(session->store->env, NULL, 0, &session->txn);
    if (begun != 0)
        cbn__session_judge(session->store, begun);
    if (code == 0 && finished != 0)
        return finished;
    return session->txn ? 0 : begun ? begun : MDB_PANIC;
}

int32_t cbn__session_write_end(struct cbn__session *session, int code, struct cbn_error *err)
{
    struct cbn__store *store = session->store;
    code = finish(session, code);
    if (session->committed && !atomic_load(&store->failed))
        cbn__stamp_renew(store);
    int sync_fd = -1;
    struct cbn__pages_meta committed = {0};
    const ino_t inode = store->data_inode;
    if (atomic_load(&store->wrote) && store->data_fd >= 0) {
        sync_fd = fcntl(store->data_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        (void)cbn__pages_read_meta(store->data_fd, &committed);
    }
    cbn__lock_release_exclusive(&store->lock);
    if (sync_fd >= 0 && session->syncs_later) {
        (void)sync_file_range(sync_fd, 0, 0, SYNC_FILE_RANGE_WRITE);
        (void)close(sync_fd);
    } else if (sync_fd >= 0) {
        /* A failure leaves the mark, and what was lost does not verify. */
        if (committed.transaction != atomic_load(&store->synced) && fdatasync(sync_fd) == 0) {
            atomic_store(&store->synced, committed.transaction);
            cbn__datafile_mark_synced(store, inode, committed.transaction);
        }
        (void)close(sync_fd);
    }
    if (code == 0)
        return CBN_STATUS_OK;
    if (code == MDB_NOTFOUND)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "no such entry");
    return cbn__datafile_error(store, code, err, "cannot write the cache");
}
