/*
 * Compaction: the pages in use are copied into a file of their own, which takes the old one's place last of all.
 *
 * Offline only: the exclusive side is held throughout, across the sync of the copy too, which no other path does; the
 * presence byte says that nobody else has the environment open.
 */
#include "cache/space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "cache/folder.h"

#define SPARE_BYTES ((uint64_t)1 << 20)

static int32_t used_bytes(struct cbn__store *store, uint64_t *ret_bytes, struct cbn_error *err)
{
    struct cbn__session session = {.store = store};
    struct cbn__space space;
    int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &session.txn);
    if (rc == 0) {
        rc = cbn__space_measure(&session, &space);
        mdb_txn_abort(session.txn);
    }
    if (rc != 0)
        return cbn__datafile_error(store, rc, err, "cannot compact");
    *ret_bytes = space.used_pages * space.page_bytes;
    return CBN_STATUS_OK;
}

static int32_t need_room(struct cbn__store *store, struct cbn_error *err)
{
    struct statvfs disk;
    uint64_t needed = 0;
    int32_t status = used_bytes(store, &needed, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (fstatvfs(store->data_fd, &disk) != 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot look at the filesystem of %s", store->data_path);
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (room >= needed + SPARE_BYTES)
        return CBN_STATUS_OK;
    return cbn__error_own(err, CBN_STATUS_LIMIT,
                          "compacting %s needs %llu bytes beside it and %llu are free; free some or prune first",
                          store->data_path, (unsigned long long)(needed + SPARE_BYTES), (unsigned long long)room);
}

/* The copy, synced and walked. */
static int32_t write_copy(struct cbn__store *store, int fd, struct cbn_error *err)
{
    char problem[CBN__PAGES_PROBLEM_BYTES] = "";
    struct cbn__pages_meta meta;
    int rc = cbn__folder_share_file(fd, store->data_path) == 0 ? 0 : errno;
    if (rc == 0)
        rc = mdb_env_copyfd2(store->env, fd, MDB_CP_COMPACT);
    if (rc == 0 && fsync(fd) != 0)
        rc = errno;
    if (rc == ENOSPC || rc == EDQUOT || rc == EFBIG)
        return cbn__error_os(err, CBN_STATUS_LIMIT, rc, "no room to compact %s", store->data_path);
    if (rc != 0)
        return cbn__datafile_error(store, rc, err, "cannot compact");
    if (cbn__pages_check(fd, &meta, problem) != 0)
        return cbn__error_own(err, CBN_STATUS_IO, "the compacted copy of %s does not verify (%s); it is left as it was",
                              store->data_path, problem);
    return CBN_STATUS_OK;
}

/* A rename that is not on the disk when the machine stops leaves the old file, which is as good: with its mark. */
static bool sync_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) >= sizeof(folder))
        return false;
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    int fd = open(slash == path ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool synced = fsync(fd) == 0;
    (void)close(fd);
    return synced;
}

static int32_t replace(struct cbn__store *store, const char *copy_path, struct cbn_error *err)
{
    CBN__LOW_DESCRIPTORS_AUTO low = cbn__low_descriptors_hold();
    (void)unlink(copy_path); /* of a process that was killed here: the lock is ours */
    int fd = open(copy_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, store->lock.mode);
    if (fd < 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot make %s", copy_path);
    int32_t status = write_copy(store, fd, err);
    (void)close(fd);
    if (status == CBN_STATUS_OK && rename(copy_path, store->data_path) != 0)
        status = cbn__error_os(err, CBN_STATUS_IO, errno, "cannot put %s in place", copy_path);
    if (status != CBN_STATUS_OK) {
        (void)unlink(copy_path);
        return status;
    }
    /* All that the new file holds is on the disk, and the mark names the old one. */
    if (sync_folder(store->data_path))
        cbn__datafile_clear_mark(store);
    cbn__datafile_close(store);
    return CBN_STATUS_OK;
}

/* LMDB copies by the heads of runs, which no walk has read since the file was opened. */
static int32_t need_sound_runs(struct cbn__store *store, struct cbn_error *err)
{
    char problem[CBN__PAGES_PROBLEM_BYTES] = "";
    struct cbn__pages_meta meta;
    int code = cbn__pages_check_runs(store->data_fd, &meta, problem);
    if (code == 0)
        return CBN_STATUS_OK;
    if (code == ENOMEM)
        return cbn__error_no_memory(err);
    cbn__session_judge(store, MDB_CORRUPTED);
    return cbn__error_own(err, CBN_STATUS_DAMAGED, "%s is damaged (%s); it is salvaged when it is next opened",
                          store->data_path, problem);
}

static int32_t compact(struct cbn__store *store, struct cbn_error *err)
{
    CBN__BUF_AUTO copy_path = CBN__BUF_INIT;
    cbn__buf_append_format(&copy_path, "%s" CBN__STORE_COPY_SUFFIX, store->data_path);
    const char *path = cbn__buf_text(&copy_path);
    if (copy_path.failed)
        return cbn__error_no_memory(err);
    int32_t status = need_sound_runs(store, err);
    if (status == CBN_STATUS_OK)
        status = need_room(store, err);
    return status == CBN_STATUS_OK ? replace(store, path, err) : status;
}

static int32_t compact_once(struct cbn__store *store, uint32_t timeout_ms, struct cbn_error *err)
{
    int32_t status = cbn__session_own(store, timeout_ms, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (cbn__lock_is_alone(&store->lock))
        status = compact(store, err);
    else
        status = cbn__error_own(err, CBN_STATUS_TIMEOUT,
                                "another process has %s open, or this one for reading; compact when it is gone",
                                store->data_path);
    cbn__lock_let_in(&store->lock);
    cbn__lock_release_exclusive(&store->lock);
    return status;
}

int32_t cbn__store_compact(struct cbn__store *store, uint32_t timeout_ms, struct cbn_error *err)
{
    cbn__store_flush_usage(store, timeout_ms);
    int32_t status = compact_once(store, timeout_ms, err);
    return status == CBN_STATUS_DAMAGED ? compact_once(store, timeout_ms, err) : status;
}
