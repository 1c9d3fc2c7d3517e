/*
 * Sessions on one environment, and what is done in them.
 *
 * A session: lock; is the open file still the one in the folder; transaction; copy; release. An environment that
 * cannot be used is closed and opened again on the exclusive side, within the same deadline and a bound on tries.
 */
#include "cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

#define SESSION_TRIES 3
#define FILE_MODE 0600
#define SHARED_FILE_MODE 0660
#define MAJOR_BOUND 0x10000u
/* Pages that a put may not use, so that deleting, which writes pages too, works on a full file. */
#define HEADROOM_BYTES ((uint64_t)256 << 10)
#define HEADROOM_PART 16u

struct session {
    struct cbn__store *store;
    MDB_txn *txn;
};

/* ---- life ---- */

static char *join(const char *folder, const char *name)
{
    struct cbn__buf path = CBN__BUF_INIT;
    cbn__buf_append_format(&path, "%s%s%s", folder, strcmp(folder, "/") == 0 ? "" : "/", name);
    (void)cbn__buf_text(&path);
    if (!path.failed)
        return (char *)path.data;
    cbn__buf_done(&path);
    return NULL;
}

static void free_store(struct cbn__store *store)
{
    cbn__lock_done(&store->lock);
    cbn__usage_done(&store->usage);
    (void)pthread_mutex_destroy(&store->note_mutex);
    free(store->data_path);
    free(store->lock_path);
    free(store);
}

int32_t cbn__store_create(const struct cbn__store_options *options, const struct stat *folder,
                          struct cbn__store **ret_store, struct cbn_error *err)
{
    struct cbn__store *store = calloc(1, sizeof(*store));
    if (!store)
        return cbn__error_no_memory(err);
    store->refs = 1;
    store->folder = *folder;
    store->writable = options->writable;
    store->trust_folder = options->trust_folder;
    store->group_shared = options->group_shared;
    store->data_fd = -1;
    atomic_init(&store->max_bytes, options->max_bytes);
    store->data_path = join(options->folder, "data.mdb");
    store->lock_path = join(options->folder, "lock");
    (void)pthread_mutex_init(&store->note_mutex, NULL);
    cbn__usage_init(&store->usage);
    cbn__lock_init(&store->lock, store->lock_path, options->writable,
                   options->group_shared && folder->st_mode & S_IWGRP ? SHARED_FILE_MODE : FILE_MODE);
    int32_t status =
        store->data_path && store->lock_path ? cbn__lock_open(&store->lock, err) : cbn__error_no_memory(err);
    if (status != CBN_STATUS_OK) {
        free_store(store);
        return status;
    }
    *ret_store = store;
    return CBN_STATUS_OK;
}

bool cbn__store_take_note(struct cbn__store *store, char ret_text[CBN__STORE_NOTE_BYTES], bool *ret_is_damage)
{
    (void)pthread_mutex_lock(&store->note_mutex);
    bool any = store->note[0] != 0;
    memcpy(ret_text, store->note, CBN__STORE_NOTE_BYTES);
    *ret_is_damage = store->note_is_damage;
    store->note[0] = 0;
    (void)pthread_mutex_unlock(&store->note_mutex);
    return any;
}

void cbn__store_fork_before(struct cbn__store *store)
{
    cbn__lock_fork_before(&store->lock);
    cbn__usage_fork_before(&store->usage);
    (void)pthread_mutex_lock(&store->note_mutex);
}

void cbn__store_fork_after(struct cbn__store *store)
{
    (void)pthread_mutex_unlock(&store->note_mutex);
    cbn__usage_fork_after(&store->usage);
    cbn__lock_fork_after(&store->lock);
}

void cbn__store_fork_child(struct cbn__store *store)
{
    (void)pthread_mutex_init(&store->note_mutex, NULL);
    cbn__usage_fork_child(&store->usage);
    bool quiet = cbn__lock_fork_child(&store->lock);
    atomic_store(&store->failed, true);
    atomic_store(&store->wrote, false);
    if (quiet)
        return;
    /* A thread that the child does not have was inside LMDB: its memory is in an unknown state and stays as it is. */
    if (store->data_fd >= 0)
        (void)close(store->data_fd);
    store->data_fd = -1;
    store->env = NULL;
}

/* ---- sessions ---- */

/* What LMDB's code means for the next session. */
static void judge_code(struct cbn__store *store, int code)
{
    if (code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND || code == MDB_INVALID)
        atomic_store(&store->condemned, true);
    if (code != 0 && code != MDB_NOTFOUND && code != MDB_MAP_FULL && code != MDB_TXN_FULL && code != ENOMEM)
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

static int32_t open_exclusively(struct cbn__store *store, uint32_t timeout_ms, struct cbn_error *err)
{
    int32_t status = cbn__lock_exclusive(&store->lock, timeout_ms);
    if (status != CBN_STATUS_OK)
        return lock_error(store, status, timeout_ms, err);
    if (!cbn__datafile_is_current(store))
        status = cbn__datafile_open(store, err);
    cbn__lock_release_exclusive(&store->lock);
    return status;
}

static int32_t read_begin(struct cbn__store *store, uint32_t timeout_ms, struct session *session, struct cbn_error *err)
{
    session->store = store;
    session->txn = NULL;
    for (int i = 0; i < SESSION_TRIES; i++) {
        int32_t status = cbn__lock_shared(&store->lock, timeout_ms);
        if (status != CBN_STATUS_OK)
            return lock_error(store, status, timeout_ms, err);
        if (cbn__datafile_is_current(store)) {
            int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &session->txn);
            if (rc == 0)
                return CBN_STATUS_OK;
            judge_code(store, rc);
        }
        cbn__lock_release_shared(&store->lock);
        status = open_exclusively(store, timeout_ms, err);
        if (status != CBN_STATUS_OK)
            return status;
    }
    return cbn__error_own(err, CBN_STATUS_IO, "%s changes faster than it can be opened", store->data_path);
}

static int32_t read_end(struct session *session, int code, struct cbn_error *err)
{
    struct cbn__store *store = session->store;
    mdb_txn_abort(session->txn);
    judge_code(store, code);
    cbn__lock_release_shared(&store->lock);
    if (code == 0)
        return CBN_STATUS_OK;
    if (code == MDB_NOTFOUND)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "no such entry");
    int32_t status = cbn__datafile_error(store, code, err, "cannot read the cache");
    return status == CBN_STATUS_LIMIT ? CBN_STATUS_IO : status;
}

static uint64_t map_bytes_for(struct cbn__store *store, bool for_put)
{
    uint64_t bytes = atomic_load(&store->max_bytes);
    uint64_t headroom = bytes / HEADROOM_PART < HEADROOM_BYTES ? bytes / HEADROOM_PART : HEADROOM_BYTES;
    if (for_put)
        bytes -= headroom;
    return bytes - bytes % (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The map is the bound. LMDB keeps it at least as large as the pages in use. */
static int set_map(struct cbn__store *store, bool for_put)
{
    MDB_envinfo info;
    int rc = mdb_env_info(store->env, &info);
    uint64_t wanted = map_bytes_for(store, for_put);
    if (rc != 0 || info.me_mapsize == wanted)
        return rc;
    rc = mdb_env_set_mapsize(store->env, (size_t)wanted);
    /* LMDB has no map after a failure here, and would fault: the environment must not be touched again. */
    if (rc != 0)
        atomic_store(&store->failed, true);
    return rc;
}

static int begin_write(struct cbn__store *store, bool for_put, MDB_txn **ret_txn)
{
    if (cbn__datafile_mark(store) != CBN_STATUS_OK)
        return errno ? errno : EIO;
    int rc = set_map(store, for_put);
    return rc == 0 ? mdb_txn_begin(store->env, NULL, 0, ret_txn) : rc;
}

static int32_t write_begin(struct cbn__store *store, uint32_t timeout_ms, bool for_put, struct session *session,
                           struct cbn_error *err)
{
    session->store = store;
    session->txn = NULL;
    if (!store->writable)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "%s is open for reading only", store->data_path);
    int32_t status = cbn__lock_exclusive(&store->lock, timeout_ms);
    if (status != CBN_STATUS_OK)
        return lock_error(store, status, timeout_ms, err);
    if (!cbn__datafile_is_current(store))
        status = cbn__datafile_open(store, err);
    int rc = status == CBN_STATUS_OK ? begin_write(store, for_put, &session->txn) : 0;
    if (rc != 0) {
        judge_code(store, rc);
        status = cbn__datafile_error(store, rc, err, "cannot write the cache");
    }
    if (status != CBN_STATUS_OK)
        cbn__lock_release_exclusive(&store->lock);
    return status;
}

/* Commits when code is 0. The bytes go to the disk after the lock is released, through a descriptor of our own. */
static int32_t write_end(struct session *session, int code, struct cbn_error *err)
{
    struct cbn__store *store = session->store;
    if (code == 0)
        code = mdb_txn_commit(session->txn);
    else
        mdb_txn_abort(session->txn);
    judge_code(store, code);
    int sync_fd = -1;
    struct cbn__pages_meta committed = {0};
    if (code == 0) {
        atomic_store(&store->wrote, true);
        sync_fd = fcntl(store->data_fd, F_DUPFD_CLOEXEC, 0);
        (void)cbn__pages_read_meta(store->data_fd, &committed);
    }
    cbn__lock_release_exclusive(&store->lock);
    if (sync_fd >= 0) {
        /* A failure leaves the mark, and what was lost does not verify. */
        if (fdatasync(sync_fd) == 0)
            atomic_store(&store->synced, committed.transaction);
        (void)close(sync_fd);
    }
    if (code == 0)
        return CBN_STATUS_OK;
    if (code == MDB_NOTFOUND)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "no such entry");
    return cbn__datafile_error(store, code, err, "cannot write the cache");
}

int32_t cbn__store_prepare(struct cbn__store *store, uint32_t timeout_ms, struct cbn_error *err)
{
    struct session session;
    int32_t status = read_begin(store, timeout_ms, &session, err);
    return status == CBN_STATUS_OK ? read_end(&session, 0, err) : status;
}

/* ---- reading ---- */

void cbn__store_item_done(struct cbn__store_item *item)
{
    cbn__buf_done(&item->value);
}

static void read_usage(struct session *session, struct cbn__store_item *item)
{
    struct cbn__store_key key;
    item->last_used_s = 0;
    item->hits = 0;
    if (item->key_bytes != sizeof(key.bytes))
        return;
    memcpy(key.bytes, item->key, sizeof(key.bytes));
    MDB_val name = {sizeof(key.bytes), key.bytes}, value;
    if (mdb_get(session->txn, session->store->usage_table, &name, &value) == 0)
        (void)cbn__usage_decode(&key, (struct cbn__blob){value.mv_data, value.mv_size}, &item->last_used_s,
                                &item->hits);
    cbn__usage_add(&session->store->usage, &key, &item->last_used_s, &item->hits);
    int64_t now_s = cbn__clock_wall_s();
    if (item->last_used_s > now_s)
        item->last_used_s = now_s; /* written under a clock that was ahead */
}

static int copy_item(struct session *session, const MDB_val *key, const MDB_val *value, struct cbn__store_item *item)
{
    if (key->mv_size > sizeof(item->key))
        return MDB_CORRUPTED;
    memcpy(item->key, key->mv_data, key->mv_size);
    item->key_bytes = (uint32_t)key->mv_size;
    item->value.size = 0;
    cbn__buf_append(&item->value, value->mv_data, value->mv_size);
    if (item->value.failed)
        return ENOMEM;
    read_usage(session, item);
    return 0;
}

static bool belongs(const MDB_val *key, const struct cbn__hash *hash)
{
    return key->mv_size == CBN__STORE_KEY_BYTES && memcmp(key->mv_data, hash->bytes, CBN__HASH_BYTES) == 0;
}

static uint32_t major_of(const MDB_val *key)
{
    struct cbn__store_key own;
    memcpy(own.bytes, key->mv_data, sizeof(own.bytes));
    return cbn__entry_key_major(&own);
}

static bool picks(const struct cbn__store_pick *pick, uint32_t major)
{
    return major < pick->below && (major >= 32 || !(pick->except_majors & 1u << major));
}

/* Leaves the cursor on the hash's entry of the highest major, MDB_NOTFOUND when there is none. */
static int seek_newest(MDB_cursor *cursor, const struct cbn__hash *hash, MDB_val *key, MDB_val *value)
{
    uint8_t behind[CBN__STORE_KEY_BYTES + 1];
    memcpy(behind, hash->bytes, CBN__HASH_BYTES);
    memset(behind + CBN__HASH_BYTES, 0xFF, 2);
    behind[CBN__STORE_KEY_BYTES] = 0; /* sorts right after major 65535 */
    *key = (MDB_val){sizeof(behind), behind};
    int rc = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
    rc = mdb_cursor_get(cursor, key, value, rc == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
    return rc == 0 && !belongs(key, hash) ? MDB_NOTFOUND : rc;
}

static int find_picked(struct session *session, const struct cbn__hash *hash, const struct cbn__store_pick *pick,
                       struct cbn__store_item *item, bool *ret_refused)
{
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    int rc = mdb_cursor_open(session->txn, session->store->entries, &cursor);
    if (rc != 0)
        return rc;
    rc = seek_newest(cursor, hash, &key, &value);
    while (rc == 0 && !picks(pick, major_of(&key))) {
        *ret_refused = true;
        rc = mdb_cursor_get(cursor, &key, &value, MDB_PREV);
        if (rc == 0 && !belongs(&key, hash))
            rc = MDB_NOTFOUND;
    }
    if (rc == 0)
        rc = copy_item(session, &key, &value, item);
    mdb_cursor_close(cursor);
    return rc;
}

int32_t cbn__store_find(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__hash *hash,
                        const struct cbn__store_pick *pick, struct cbn__store_item *ret_item, bool *ret_refused)
{
    struct session session;
    *ret_refused = false;
    int32_t status = read_begin(store, timeout_ms, &session, NULL);
    if (status != CBN_STATUS_OK)
        return status;
    return read_end(&session, find_picked(&session, hash, pick, ret_item, ret_refused), NULL);
}

/* LMDB's own order: by bytes, then by length. */
static bool sorts_behind(const MDB_val *key, const struct cbn__store_item *item)
{
    size_t shared = key->mv_size < item->key_bytes ? key->mv_size : item->key_bytes;
    int order = memcmp(key->mv_data, item->key, shared);
    return order > 0 || (order == 0 && key->mv_size > item->key_bytes);
}

static int find_behind(struct session *session, struct cbn__store_item *item)
{
    MDB_cursor *cursor = NULL;
    MDB_val key = {item->key_bytes, item->key}, value;
    int rc = mdb_cursor_open(session->txn, session->store->entries, &cursor);
    if (rc != 0)
        return rc;
    rc = mdb_cursor_get(cursor, &key, &value, item->key_bytes ? MDB_SET_RANGE : MDB_FIRST);
    if (rc == 0 && key.mv_size == item->key_bytes && memcmp(key.mv_data, item->key, item->key_bytes) == 0)
        rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    /* Pages whose keys are out of order would send a walk over all entries round and round. */
    if (rc == 0 && item->key_bytes && !sorts_behind(&key, item))
        rc = MDB_CORRUPTED;
    if (rc == 0)
        rc = copy_item(session, &key, &value, item);
    mdb_cursor_close(cursor);
    return rc;
}

int32_t cbn__store_next(struct cbn__store *store, uint32_t timeout_ms, struct cbn__store_item *item)
{
    struct session session;
    int32_t status = read_begin(store, timeout_ms, &session, NULL);
    return status == CBN_STATUS_OK ? read_end(&session, find_behind(&session, item), NULL) : status;
}

/* ---- writing ---- */

int32_t cbn__store_put(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_key *key,
                       struct cbn__blob value, struct cbn_error *err)
{
    struct session session;
    int32_t status = write_begin(store, timeout_ms, true, &session, err);
    if (status != CBN_STATUS_OK)
        return status;
    MDB_val name = {sizeof(key->bytes), (void *)(uintptr_t)key->bytes};
    MDB_val bytes = {value.size, (void *)(uintptr_t)value.data};
    status = write_end(&session, mdb_put(session.txn, store->entries, &name, &bytes, 0), err);
    if (status == CBN_STATUS_OK && cbn__usage_is_due(&store->usage))
        cbn__store_flush_usage(store, timeout_ms);
    return status;
}

static int drop_name(struct session *session, MDB_val *name)
{
    int rc = mdb_del(session->txn, session->store->entries, name, NULL);
    int usage_rc = rc == 0 ? mdb_del(session->txn, session->store->usage_table, name, NULL) : 0;
    return usage_rc != 0 && usage_rc != MDB_NOTFOUND ? usage_rc : rc;
}

static int drop_majors(struct session *session, const struct cbn__hash *hash)
{
    bool any = false;
    for (uint32_t i = 0; i < MAJOR_BOUND; i++) {
        MDB_cursor *cursor = NULL;
        MDB_val key, value;
        int rc = mdb_cursor_open(session->txn, session->store->entries, &cursor);
        if (rc != 0)
            return rc;
        rc = seek_newest(cursor, hash, &key, &value);
        struct cbn__store_key own = rc == 0 ? cbn__entry_key(hash, major_of(&key)) : (struct cbn__store_key){{0}};
        mdb_cursor_close(cursor);
        if (rc == MDB_NOTFOUND)
            return any ? 0 : MDB_NOTFOUND;
        if (rc == 0)
            rc = drop_name(session, &(MDB_val){sizeof(own.bytes), own.bytes});
        if (rc != 0)
            return rc;
        any = true;
    }
    return 0;
}

int32_t cbn__store_drop(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__hash *hash,
                        struct cbn_error *err)
{
    struct session session;
    int32_t status = write_begin(store, timeout_ms, false, &session, err);
    return status == CBN_STATUS_OK ? write_end(&session, drop_majors(&session, hash), err) : status;
}

int32_t cbn__store_drop_if(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_key *key,
                           struct cbn__blob value)
{
    struct session session;
    int32_t status = write_begin(store, timeout_ms, false, &session, NULL);
    if (status != CBN_STATUS_OK)
        return status;
    MDB_val name = {sizeof(key->bytes), (void *)(uintptr_t)key->bytes}, present;
    int rc = mdb_get(session.txn, store->entries, &name, &present);
    if (rc == 0 && !cbn__blob_equal((struct cbn__blob){present.mv_data, present.mv_size}, value))
        rc = MDB_NOTFOUND;
    return write_end(&session, rc == 0 ? drop_name(&session, &name) : rc, NULL);
}

static int write_usage(struct session *session, const struct cbn__usage_note *note)
{
    uint8_t bytes[CBN__USAGE_BYTES];
    struct cbn__store_key key = note->key;
    MDB_val name = {sizeof(key.bytes), key.bytes}, value;
    int64_t last_used_s = 0;
    uint64_t hits = 0;
    int rc = mdb_get(session->txn, session->store->entries, &name, &value);
    if (rc != 0)
        return rc == MDB_NOTFOUND ? 0 : rc; /* dropped meanwhile */
    if (mdb_get(session->txn, session->store->usage_table, &name, &value) == 0)
        (void)cbn__usage_decode(&key, (struct cbn__blob){value.mv_data, value.mv_size}, &last_used_s, &hits);
    last_used_s =
        last_used_s > note->last_used_s && last_used_s <= cbn__clock_wall_s() ? last_used_s : note->last_used_s;
    cbn__usage_encode(&key, last_used_s, hits + note->hits, bytes);
    value = (MDB_val){sizeof(bytes), bytes};
    return mdb_put(session->txn, session->store->usage_table, &name, &value, 0);
}

void cbn__store_flush_usage(struct cbn__store *store, uint32_t timeout_ms)
{
    struct cbn__usage_note *slots = NULL;
    uint32_t slot_count = store->writable ? cbn__usage_take(&store->usage, &slots) : 0;
    struct session session;
    if (slot_count && write_begin(store, timeout_ms, true, &session, NULL) == CBN_STATUS_OK) {
        int rc = 0;
        for (uint32_t i = 0; i < slot_count && rc == 0; i++)
            if (slots[i].hits)
                rc = write_usage(&session, &slots[i]);
        (void)write_end(&session, rc, NULL);
    }
    free(slots);
}

/* true when every commit up to *ret_transaction is on the disk. */
static bool sync_all(struct cbn__store *store, uint64_t *ret_transaction)
{
    struct cbn__pages_meta meta;
    if (store->data_fd < 0 || cbn__pages_read_meta(store->data_fd, &meta))
        return false;
    *ret_transaction = meta.transaction;
    return meta.transaction == atomic_load(&store->synced) || fdatasync(store->data_fd) == 0;
}

/* Everything committed is on the disk, and nothing was committed since: only then the mark goes. */
static void clear_mark_when_synced(struct cbn__store *store, uint32_t timeout_ms)
{
    struct cbn__pages_meta meta;
    uint64_t synced = 0;
    if (!atomic_load(&store->wrote) || !sync_all(store, &synced) ||
        cbn__lock_exclusive(&store->lock, timeout_ms) != CBN_STATUS_OK)
        return;
    if (cbn__datafile_is_current(store) && !cbn__pages_read_meta(store->data_fd, &meta) && meta.transaction == synced)
        cbn__datafile_clear_mark(store);
    cbn__lock_release_exclusive(&store->lock);
}

void cbn__store_settle(struct cbn__store *store, uint32_t timeout_ms)
{
    cbn__store_flush_usage(store, timeout_ms);
    clear_mark_when_synced(store, timeout_ms);
}

void cbn__store_destroy(struct cbn__store *store)
{
    cbn__datafile_close(store);
    free_store(store);
}

/* ---- measuring ---- */

/* The free list's records begin with their count of pages. */
static int count_free_pages(struct session *session, uint64_t *ret_pages)
{
    const MDB_dbi free_list = 0;
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    *ret_pages = 0;
    int rc = mdb_cursor_open(session->txn, free_list, &cursor);
    if (rc != 0)
        return rc;
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        size_t pages = 0;
        if (value.mv_size >= sizeof(pages))
            memcpy(&pages, value.mv_data, sizeof(pages));
        *ret_pages += pages;
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int measure(struct session *session, struct cbn__layer *layer)
{
    MDB_stat stat;
    MDB_envinfo info;
    struct stat file;
    uint64_t free_pages = 0;
    int rc = mdb_stat(session->txn, session->store->entries, &stat);
    if (rc == 0)
        rc = mdb_env_info(session->store->env, &info);
    if (rc == 0)
        rc = count_free_pages(session, &free_pages);
    if (rc == 0 && fstat(session->store->data_fd, &file) != 0)
        rc = errno;
    if (rc != 0)
        return rc;
    uint64_t pages = (uint64_t)info.me_last_pgno + 1;
    layer->entries = stat.ms_entries;
    layer->file_bytes = (uint64_t)file.st_size;
    layer->used_bytes = (pages > free_pages ? pages - free_pages : 0) * stat.ms_psize;
    return 0;
}

int32_t cbn__store_measure(struct cbn__store *store, uint32_t timeout_ms, struct cbn__layer *ret_layer,
                           struct cbn_error *err)
{
    struct session session;
    int32_t status = read_begin(store, timeout_ms, &session, err);
    return status == CBN_STATUS_OK ? read_end(&session, measure(&session, ret_layer), err) : status;
}
