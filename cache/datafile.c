/*
 * The data file: opening it, refusing what LMDB must not see, setting it aside.
 *
 * Locks: everything here runs on the store's exclusive side (is_current on either). Nothing is synced here.
 */
#include "cache/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/record.h"
#include "cache/folder.h"
#include "cache/stamp.h"

#define DATA_NAME "data.mdb"
#define ASIDE_PREFIX DATA_NAME ".damaged-"
#define TABLE_COUNT_MAX 32u /* several format versions may live in one file */
#define MAP_BYTES_MIN ((uint64_t)1 << 20)
#define NEW_FILE_BYTES ((uint64_t)1 << 16)
#define FULL_BELOW_BYTES ((uint64_t)1 << 16) /* free bytes below which a short write means a full disk */
#define GROWTH_BYTES ((uint64_t)1 << 20)
#define OPEN_TRIES 3

_Static_assert(CBN__FORMAT_VERSION == 1u, "the tables' names carry the version");
static const char entries_table[] = "entries/1";
static const char usage_table[] = "usage/1";
static const char meta_table[] = "meta/1";
static const char format_key[] = "format";

void cbn__datafile_note(struct cbn__store *store, bool is_damage, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)pthread_mutex_lock(&store->note_mutex);
    (void)vsnprintf(store->note, sizeof(store->note), format, args);
    store->note_is_damage = is_damage;
    (void)pthread_mutex_unlock(&store->note_mutex);
    va_end(args);
}

uint64_t cbn__datafile_size_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX
                                                                                   : (uint64_t)limit.rlim_cur;
}

int cbn__datafile_write_code(const struct cbn__store *store, int code)
{
    struct statvfs room;
    if (code != EIO || store->data_fd < 0 || fstatvfs(store->data_fd, &room) != 0)
        return code;
    return (uint64_t)room.f_bavail * room.f_frsize < FULL_BELOW_BYTES ? ENOSPC : code;
}

int32_t cbn__datafile_error(struct cbn__store *store, int code, struct cbn_error *err, const char *what)
{
    if (code == ENOMEM)
        return cbn__error_no_memory(err);
    if (code == MDB_MAP_FULL || code == MDB_TXN_FULL)
        return cbn__error_set(err, CBN_STATUS_LIMIT, CBN_DOMAIN_LMDB, code,
                              "%s does not fit into the cache's bound of %llu bytes (%s); prune it or raise max_bytes",
                              what, (unsigned long long)atomic_load(&store->max_bytes), store->data_path);
    if (code == EFBIG)
        return cbn__error_os(err, CBN_STATUS_LIMIT, code,
                             "%s: %s: this process may not write files beyond %llu bytes (ulimit -f); raise that", what,
                             store->data_path, (unsigned long long)cbn__datafile_size_limit());
    if (code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND || code == MDB_INVALID)
        return cbn__error_set(err, CBN_STATUS_DAMAGED, CBN_DOMAIN_LMDB, code, "%s: %s holds damaged pages (%s)", what,
                              store->data_path, mdb_strerror(code));
    if (code > 0)
        return cbn__error_os(err, CBN_STATUS_IO, code, "%s: %s", what, store->data_path);
    return cbn__error_set(err, CBN_STATUS_IO, CBN_DOMAIN_LMDB, code, "%s: %s: %s", what, store->data_path,
                          mdb_strerror(code));
}

void cbn__datafile_close(struct cbn__store *store)
{
    if (store->env)
        mdb_env_close(store->env);
    if (store->data_fd >= 0)
        (void)close(store->data_fd);
    store->env = NULL;
    store->data_fd = -1;
}

/* ---- setting aside ---- */

/* One set-aside file is kept, the newest: each may be as large as the bound. */
static void remove_older_aside(struct cbn__store *store)
{
    char folder[4096];
    int length = (int)(strlen(store->data_path) - strlen("/" DATA_NAME));
    (void)snprintf(folder, sizeof(folder), "%.*s", length, store->data_path);
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (struct dirent *item = readdir(dir); item; item = readdir(dir))
        if (strncmp(item->d_name, ASIDE_PREFIX, strlen(ASIDE_PREFIX)) == 0)
            (void)unlinkat(dirfd(dir), item->d_name, 0);
    (void)closedir(dir);
}

/* Of a compaction that was killed or could not clean up: none is under way, since the exclusive side is ours. */
static void remove_copy(struct cbn__store *store)
{
    CBN__BUF_AUTO path = CBN__BUF_INIT;
    cbn__buf_append_format(&path, "%s" CBN__STORE_COPY_SUFFIX, store->data_path);
    const char *text = cbn__buf_text(&path);
    if (store->writable && !path.failed)
        (void)unlink(text);
}

/* A file that was refused and set aside: open until what it still holds was salvaged. */
struct aside {
    int fd;               /* -1: none */
    bool stale;           /* its trees may lead past entries that it holds */
    struct cbn__buf path; /* "": it is not in the folder under another name */
    char note[CBN__STORE_NOTE_BYTES - 64];
};

/* What was made in the place of a file that is not salvaged yet: that one still holds all there is. */
static int32_t drop_fresh(struct cbn__store *store, struct cbn_error *err)
{
    if (unlink(store->data_path) != 0 && errno != ENOENT)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot remove the half salvaged %s; remove it",
                             store->data_path);
    if (store->data_fd >= 0)
        (void)close(store->data_fd);
    store->data_fd = -1;
    return CBN_STATUS_OK;
}

static int32_t set_aside(struct cbn__store *store, const char *problem, struct aside *ret_aside, struct cbn_error *err)
{
    if (!store->writable)
        return cbn__error_own(err, CBN_STATUS_DAMAGED, "%s is damaged (%s); make the layer again", store->data_path,
                              problem);
    if (ret_aside->fd >= 0)
        return drop_fresh(store, err);
    struct cbn__buf *path = &ret_aside->path;
    path->size = 0;
    cbn__buf_append_format(path, "%s.damaged-%lld-%lld", store->data_path, (long long)cbn__clock_wall_s(),
                           (long long)getpid());
    const char *aside_path = cbn__buf_text(path);
    if (path->failed)
        return cbn__error_no_memory(err);
    remove_older_aside(store);
    if (rename(store->data_path, aside_path) != 0 && errno != ENOENT)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot set the damaged %s aside; remove it", store->data_path);
    (void)snprintf(ret_aside->note, sizeof(ret_aside->note), "%s was damaged (%s) and was set aside as %s",
                   store->data_path, problem, aside_path);
    ret_aside->fd = store->data_fd;
    store->data_fd = -1;
    return CBN_STATUS_OK;
}

/* Nothing could be made in its place: it comes back, for the next opening to try. Not salvaged, it would be lost. */
static void put_back(struct cbn__store *store, struct aside *aside)
{
    const char *path = aside->path.size ? cbn__buf_text(&aside->path) : NULL;
    if (path && !aside->path.failed)
        (void)rename(path, store->data_path);
}

/* false: a fault came in between. What was put before it is kept, so it can be done again. */
static bool salvage(struct cbn__store *store, struct aside *aside, bool last_try)
{
    if (aside->fd < 0)
        return true;
    uint64_t entries = 0;
    int code = cbn__salvage_entries(store, aside->fd, aside->stale, &entries);
    cbn__stamp_renew(store);
    if (code != 0 && code != MDB_MAP_FULL && !last_try) {
        atomic_store(&store->failed, true);
        return false;
    }
    (void)close(aside->fd);
    aside->fd = -1;
    cbn__datafile_note(store, true, "%s; %llu of its entries were salvaged", aside->note, (unsigned long long)entries);
    return true;
}

/* ---- opening ---- */

static int32_t open_data_fd(struct cbn__store *store, struct cbn_error *err)
{
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK; /* a fifo in the file's place must not hang */
    const mode_t mode = store->lock.mode;
    store->data_fd = open(store->data_path, (store->writable ? O_RDWR : O_RDONLY) | flags);
    if (store->data_fd < 0 && errno == ENOENT && store->writable) {
        store->data_fd = open(store->data_path, O_RDWR | O_CREAT | O_EXCL | flags, mode);
        if (store->data_fd >= 0)
            (void)cbn__folder_share_file(store->data_fd, store->data_path);
    }
    if (store->data_fd < 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot open %s; give it to this user or warm it first",
                             store->data_path);
    struct stat status;
    if (fstat(store->data_fd, &status) != 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot look at %s", store->data_path);
    if (!S_ISREG(status.st_mode) ||
        (!store->trust_folder && !cbn__trust_file(&status, &store->folder, store->group_shared)))
        return cbn__error_own(err, CBN_STATUS_UNTRUSTED,
                              "%s is no regular file, or others own it or can write it (mode %04o, uid %u); run chmod "
                              "o-w, remove it, or override with --trust-folder (CBN_RUNTIME_TRUST_FOLDER)",
                              store->data_path, (unsigned)(status.st_mode & 07777), (unsigned)status.st_uid);
    if (status.st_ino != store->data_inode)
        atomic_store(&store->synced, 0); /* another file counts its transactions anew */
    store->data_device = status.st_dev;
    store->data_inode = status.st_ino;
    store->checked = (struct cbn__pages_meta){.file_bytes = (uint64_t)status.st_size};
    cbn__stamp_take(store, &status);
    return CBN_STATUS_OK;
}

/* LMDB makes healthy files that are shorter than their meta page says; a map must not fault behind the end. */
static int32_t extend(struct cbn__store *store, struct cbn_error *err)
{
    struct cbn__pages_meta *meta = &store->checked;
    uint64_t wanted = (meta->last_page + 1) * meta->page_bytes;
    if (!store->writable || meta->file_bytes >= wanted)
        return CBN_STATUS_OK;
    if (wanted > cbn__datafile_size_limit())
        return cbn__datafile_error(store, EFBIG, err, "cannot extend the cache");
    if (ftruncate(store->data_fd, (off_t)wanted) != 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot extend %s", store->data_path);
    meta->file_bytes = wanted;
    cbn__stamp_renew(store);
    return CBN_STATUS_OK;
}

/* OK with a file that is empty or sound; the file may have been set aside, then data_fd is -1. */
static int32_t check(struct cbn__store *store, bool condemned, struct aside *ret_aside, struct cbn_error *err)
{
    char problem[CBN__PAGES_PROBLEM_BYTES] = "LMDB met damaged pages";
    if (store->checked.file_bytes == 0 && store->writable)
        return CBN_STATUS_OK; /* new, or its maker died before the first byte */
    int code = condemned ? EBADMSG : cbn__pages_check(store->data_fd, &store->checked, problem);
    if (code == ENOMEM)
        return cbn__error_no_memory(err);
    bool synced = true;
    const bool rebooted = cbn__datafile_marked_by_another_boot(store, &synced);
    if (code == 0 && (synced || !store->writable)) {
        if (rebooted)
            cbn__datafile_note(store, false, "the machine stopped while %s was written; its pages were checked",
                               store->data_path);
        return extend(store, err);
    }
    uint32_t other = cbn__pages_other_version(store->data_fd);
    if (other)
        return cbn__error_own(
            err, CBN_STATUS_IO,
            "%s is of LMDB's data version %u, which this release does not read, and is left alone; give "
            "this release another folder",
            store->data_path, other);
    /* What came after the last sync may have overwritten pages of it, and not be named by any meta page. */
    ret_aside->stale = ret_aside->stale || rebooted;
    if (code == 0)
        (void)snprintf(problem, sizeof(problem), "the machine stopped during a commit");
    return set_aside(store, problem, ret_aside, err);
}

static uint64_t round_down(uint64_t bytes, uint64_t unit)
{
    return bytes - bytes % unit;
}

static uint64_t wanted_map_bytes(struct cbn__store *store)
{
    uint64_t file_bytes = (store->checked.last_page + 1) * store->checked.page_bytes;
    uint64_t bound = atomic_load(&store->max_bytes), limit = cbn__datafile_size_limit();
    uint64_t wanted = !store->writable ? MAP_BYTES_MIN : bound < limit ? bound : limit;
    /* A writer with a larger bound goes on growing it, and a map that is too small costs a reader the next opening. */
    uint64_t map_bytes = wanted > file_bytes ? wanted : file_bytes + GROWTH_BYTES;
    return round_down(map_bytes, (uint64_t)sysconf(_SC_PAGESIZE));
}

/* LMDB opens by name: a file or a link put there since is not the one that was checked. */
static bool opened_the_checked(struct cbn__store *store)
{
    int fd = -1;
    struct stat opened;
    return mdb_env_get_fd(store->env, &fd) == 0 && fstat(fd, &opened) == 0 && opened.st_dev == store->data_device &&
           opened.st_ino == store->data_inode;
}

/* ESTALE: the file was replaced meanwhile, come again. */
static int open_environment(struct cbn__store *store, uint64_t map_bytes)
{
    unsigned flags = MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOTLS | (store->writable ? MDB_NOSYNC : MDB_RDONLY);
    int rc = mdb_env_create(&store->env);
    if (rc != 0) {
        store->env = NULL;
        return rc;
    }
    rc = mdb_env_set_mapsize(store->env, (size_t)map_bytes);
    if (rc == 0)
        rc = mdb_env_set_maxdbs(store->env, TABLE_COUNT_MAX);
    if (rc == 0)
        rc = mdb_env_open(store->env, store->data_path, flags, store->lock.mode);
    if (rc == 0 && !opened_the_checked(store))
        rc = ESTALE;
    if (rc != 0) {
        mdb_env_close(store->env);
        store->env = NULL;
    }
    return rc;
}

/* Under a bound on address space (ulimit -v) a smaller map will do, down to the pages in use. */
static int open_with_map_that_fits(struct cbn__store *store)
{
    uint64_t used_bytes = (store->checked.last_page + 1) * store->checked.page_bytes;
    uint64_t map_bytes = wanted_map_bytes(store);
    /* The first pages of a new file, and its tables. */
    if (store->writable && store->checked.file_bytes == 0 && cbn__datafile_size_limit() < NEW_FILE_BYTES)
        return EFBIG;
    int rc = open_environment(store, map_bytes);
    while (rc == ENOMEM && map_bytes / 2 >= MAP_BYTES_MIN && map_bytes / 2 >= used_bytes) {
        map_bytes = round_down(map_bytes / 2, (uint64_t)sysconf(_SC_PAGESIZE));
        rc = open_environment(store, map_bytes);
        if (rc == 0)
            atomic_store(&store->max_bytes, map_bytes);
    }
    return rc;
}

/* All or none: a file that has lost one of them, or its name, is damaged. MDB_NOTFOUND: none. */
static int open_tables(struct cbn__store *store, MDB_txn *txn, unsigned flags)
{
    MDB_dbi *const handles[] = {&store->entries, &store->usage_table, &store->meta};
    const char *const names[] = {entries_table, usage_table, meta_table};
    const size_t count = sizeof(names) / sizeof(names[0]);
    size_t present = 0;
    for (size_t i = 0; i < count; i++) {
        int rc = mdb_dbi_open(txn, names[i], flags, handles[i]);
        if (rc != 0 && rc != MDB_NOTFOUND)
            return rc;
        present += rc == 0;
    }
    return present == count ? 0 : present ? MDB_CORRUPTED : MDB_NOTFOUND;
}

static MDB_val format_key_value(void)
{
    return (MDB_val){sizeof(format_key) - 1, (void *)(uintptr_t)format_key};
}

static int check_format(struct cbn__store *store, MDB_txn *txn)
{
    MDB_val key = format_key_value(), value;
    int rc = mdb_get(txn, store->meta, &key, &value);
    if (rc != 0)
        return rc;
    return value.mv_size == 4 && cbn__load_u32(value.mv_data) == CBN__FORMAT_VERSION ? 0 : MDB_INVALID;
}

static int read_tables(struct cbn__store *store)
{
    MDB_txn *txn = NULL;
    int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn);
    if (rc != 0)
        return rc;
    rc = open_tables(store, txn, 0);
    if (rc == 0)
        rc = check_format(store, txn);
    /* Handles outlive a read transaction only when it is committed. */
    if (rc == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

static int make_tables(struct cbn__store *store)
{
    MDB_txn *txn = NULL;
    if (cbn__datafile_mark(store) != CBN_STATUS_OK)
        return errno ? errno : EIO;
    int rc = mdb_txn_begin(store->env, NULL, 0, &txn);
    if (rc != 0)
        return rc;
    rc = open_tables(store, txn, MDB_CREATE);
    if (rc == 0) {
        uint8_t version[4];
        cbn__store_u32(version, CBN__FORMAT_VERSION);
        MDB_val key = format_key_value(), value = {sizeof(version), version};
        rc = mdb_put(txn, store->meta, &key, &value, 0);
    }
    atomic_store(&store->wrote, true);
    if (rc == 0)
        rc = mdb_txn_commit(txn);
    else
        mdb_txn_abort(txn);
    if (rc == 0)
        cbn__stamp_renew(store);
    return rc;
}

static int open_for_use(struct cbn__store *store)
{
    int rc = open_with_map_that_fits(store);
    if (rc == 0) {
        rc = read_tables(store);
        if (rc == MDB_NOTFOUND && store->writable)
            rc = make_tables(store);
    }
    return rc;
}

/* Opens what is there, or makes it. OK with data_fd -1: it was set aside or replaced, come again. */
static int32_t open_once(struct cbn__store *store, struct aside *aside, int *ret_code, struct cbn_error *err)
{
    const ino_t inode = store->data_inode;
    *ret_code = 0;
    cbn__datafile_close(store);
    int32_t status = open_data_fd(store, err);
    /* Another process may have set the condemned file aside already: its successor is innocent. */
    bool condemned = atomic_exchange(&store->condemned, false) && inode == store->data_inode;
    if (status == CBN_STATUS_OK)
        status = check(store, condemned, aside, err);
    if (status != CBN_STATUS_OK || store->data_fd < 0)
        return status;
    bool fresh = store->checked.file_bytes == 0;
    *ret_code = open_for_use(store);
    if (*ret_code == ESTALE) {
        cbn__datafile_close(store);
        *ret_code = 0;
        return CBN_STATUS_OK;
    }
    if (*ret_code != 0 && fresh && store->writable)
        (void)unlink(store->data_path); /* a failed first write leaves no file behind */
    return CBN_STATUS_OK;
}

static int32_t open_error(struct cbn__store *store, int code, struct cbn_error *err)
{
    cbn__datafile_close(store);
    if (code == MDB_NOTFOUND)
        return cbn__error_own(err, CBN_STATUS_IO, "%s holds no entries of format %u; warm it with this release",
                              store->data_path, CBN__FORMAT_VERSION);
    return cbn__datafile_error(store, code, err, "cannot open the cache");
}

/* A fault that comes once, while a file is set aside, costs a try and no entry. */
static int32_t open_tries(struct cbn__store *store, struct aside *aside, struct cbn_error *err)
{
    for (int i = 1; i <= OPEN_TRIES; i++) {
        int code = 0;
        int32_t status = open_once(store, aside, &code, err);
        if (status == CBN_STATUS_OK && store->data_fd < 0)
            continue;
        if (status == CBN_STATUS_OK && code != 0) {
            status = open_error(store, code, err);
            atomic_store(&store->condemned, status == CBN_STATUS_DAMAGED && store->writable);
            if (atomic_load(&store->condemned))
                continue;
        }
        if (status == CBN_STATUS_OK) {
            atomic_store(&store->failed, false);
            if (salvage(store, aside, i == OPEN_TRIES))
                return CBN_STATUS_OK;
            continue;
        }
        cbn__datafile_close(store);
        if (aside->fd < 0 || i == OPEN_TRIES)
            return status;
    }
    return cbn__error_own(err, CBN_STATUS_IO, "%s is replaced as often as it is opened; look at who does",
                          store->data_path);
}

int32_t cbn__datafile_open(struct cbn__store *store, struct cbn_error *err)
{
    struct aside aside = {.fd = -1, .path = CBN__BUF_INIT};
    CBN__LOW_DESCRIPTORS_AUTO low = cbn__low_descriptors_hold(); /* LMDB opens the file by itself, too */
    remove_copy(store);
    int32_t status = open_tries(store, &aside, err);
    if (aside.fd >= 0) {
        (void)close(aside.fd);
        put_back(store, &aside);
    }
    cbn__buf_done(&aside.path);
    return status;
}

bool cbn__datafile_is_current(struct cbn__store *store)
{
    struct stat named;
    struct cbn__pages_meta meta;
    if (!store->env || atomic_load(&store->failed) || stat(store->data_path, &named) != 0 ||
        named.st_dev != store->data_device || named.st_ino != store->data_inode || !cbn__stamp_holds(store, &named))
        return false;
    if (cbn__pages_read_meta(store->data_fd, &meta) || meta.transaction < store->checked.transaction)
        return false;
    MDB_envinfo info;
    /* Reads the map's meta page, which is inside the file as of a line ago. */
    if (mdb_env_info(store->env, &info) != 0 || info.me_mapsize / meta.page_bytes <= meta.last_page)
        return false;
    if (meta.transaction == store->checked.transaction && meta.file_bytes >= store->checked.file_bytes)
        return true;
    return meta.file_bytes / meta.page_bytes > meta.last_page;
}
