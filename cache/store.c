/*
 * What is done in sessions: finding, storing, dropping, pinning, counting. See store.h.
 */
#include "cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cache/runs.h"
#include "cache/space.h"

#define FILE_MODE 0600
#define MAJOR_BOUND 0x10000u
#define PIN_MAJORS_MAX 64u
#define STAT_BLOCK_BYTES 512u /* of st_blocks, stat(2) */

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
    cbn__lock_init(&store->lock, store->lock_path, options->writable, FILE_MODE);
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
    cbn__counters_clear(&store->counters); /* the parent writes them */
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

int32_t cbn__store_prepare(struct cbn__store *store, uint32_t timeout_ms, struct cbn_error *err)
{
    struct cbn__session session;
    int32_t status = cbn__session_read(store, timeout_ms, &session, err);
    return status == CBN_STATUS_OK ? cbn__session_read_end(&session, 0, err) : status;
}

/* ---- reading ---- */

void cbn__store_item_done(struct cbn__store_item *item)
{
    cbn__buf_done(&item->value);
}

static void read_usage(struct cbn__session *session, struct cbn__store_item *item)
{
    struct cbn__store_key key;
    item->usage = (struct cbn__usage_record){0};
    if (item->key_bytes != sizeof(key.bytes))
        return;
    memcpy(key.bytes, item->key, sizeof(key.bytes));
    cbn__space_usage(session, &key, &item->usage);
}

static int copy_item(struct cbn__session *session, const MDB_val *key, const MDB_val *value,
                     struct cbn__store_item *item)
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

static int find_picked(struct cbn__session *session, const struct cbn__hash *hash, const struct cbn__store_pick *pick,
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
    struct cbn__session session;
    *ret_refused = false;
    int32_t status = cbn__session_read(store, timeout_ms, &session, NULL);
    if (status != CBN_STATUS_OK)
        return status;
    return cbn__session_read_end(&session, find_picked(&session, hash, pick, ret_item, ret_refused), NULL);
}

/* LMDB's own order: by bytes, then by length. */
static bool sorts_behind(const MDB_val *key, const struct cbn__store_item *item)
{
    size_t shared = key->mv_size < item->key_bytes ? key->mv_size : item->key_bytes;
    int order = memcmp(key->mv_data, item->key, shared);
    return order > 0 || (order == 0 && key->mv_size > item->key_bytes);
}

static int find_behind(struct cbn__session *session, struct cbn__store_item *item)
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
    struct cbn__session session;
    int32_t status = cbn__session_read(store, timeout_ms, &session, NULL);
    return status == CBN_STATUS_OK ? cbn__session_read_end(&session, find_behind(&session, item), NULL) : status;
}

/* ---- writing ---- */

/* Bytes that the file has committed; 0 when it cannot be read. Exclusive side held. */
static uint64_t committed_bytes(const struct cbn__store *store)
{
    struct cbn__pages_meta meta;
    if (store->data_fd < 0 || cbn__pages_read_meta(store->data_fd, &meta))
        return 0;
    return (meta.last_page + 1) * meta.page_bytes;
}

/*
 * What writes and meets DAMAGED has condemned the file: the next session sets it aside and salvages it, so it is done
 * once more.
 *
 * *ret_full_bytes: what the file has on a disk that is full, else 0.
 */
static int32_t put_once(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_key *key,
                        struct cbn__blob value, uint64_t *ret_full_bytes, struct cbn_error *err)
{
    struct cbn__session session;
    *ret_full_bytes = 0;
    int32_t status = cbn__session_write(store, timeout_ms, &session, err);
    if (status != CBN_STATUS_OK)
        return status;
    int code = cbn__space_put(&session, key, value);
    if (code == ENOSPC || code == EDQUOT)
        *ret_full_bytes = committed_bytes(store);
    return cbn__session_write_end(&session, code, err);
}

int32_t cbn__store_put(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_key *key,
                       struct cbn__blob value, struct cbn_error *err)
{
    uint64_t full_bytes = 0, still_full_bytes = 0;
    struct cbn_error why = {0};
    int32_t status = put_once(store, timeout_ms, key, value, &full_bytes, &why);
    if (status == CBN_STATUS_DAMAGED)
        status = put_once(store, timeout_ms, key, value, &full_bytes, &why);
    if (full_bytes) {
        /* The disk is the bound: once more under it, so that others go to make room. If not, the disk is why. */
        atomic_store(&store->disk_bytes, full_bytes);
        if (put_once(store, timeout_ms, key, value, &still_full_bytes, NULL) == CBN_STATUS_OK)
            status = CBN_STATUS_OK;
        atomic_store(&store->disk_bytes, 0);
    }
    if (status != CBN_STATUS_OK && err)
        *err = why;
    if (status == CBN_STATUS_OK && cbn__usage_is_due(&store->usage))
        cbn__store_flush_usage(store, timeout_ms);
    return status;
}

/* A record whose key has a wrong length is nobody's entry: each tells it under the hash that its bytes begin. */
static int drop_misnamed(struct cbn__session *session, const struct cbn__hash *hash)
{
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    bool any = false;
    int rc = mdb_cursor_open(session->txn, session->store->entries, &cursor);
    if (rc != 0)
        return rc;
    for (rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST); rc == 0;
         rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        struct cbn__hash name = {{0}};
        memcpy(name.bytes, key.mv_data, key.mv_size < sizeof(name.bytes) ? key.mv_size : sizeof(name.bytes));
        if (key.mv_size == sizeof(((struct cbn__store_key *)0)->bytes) || !cbn__hash_equal(&name, hash))
            continue;
        rc = cbn__runs_check(session, &value);
        if (rc == 0)
            rc = mdb_cursor_del(cursor, 0);
        any = any || rc == 0;
        if (rc != 0)
            break;
    }
    mdb_cursor_close(cursor);
    return rc != MDB_NOTFOUND ? rc : any ? 0 : MDB_NOTFOUND;
}

static int drop_majors(struct cbn__session *session, const struct cbn__hash *hash)
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
            rc = cbn__space_delete(session, &own, false);
        if (rc != 0)
            return rc;
        any = true;
    }
    return 0;
}

static int32_t drop_once(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__hash *hash,
                         struct cbn_error *err)
{
    struct cbn__session session;
    int32_t status = cbn__session_write(store, timeout_ms, &session, err);
    if (status != CBN_STATUS_OK)
        return status;
    int code = drop_majors(&session, hash);
    if (code == MDB_NOTFOUND)
        code = drop_misnamed(&session, hash);
    return cbn__session_write_end(&session, code, err);
}

int32_t cbn__store_drop(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__hash *hash,
                        struct cbn_error *err)
{
    int32_t status = drop_once(store, timeout_ms, hash, err);
    return status == CBN_STATUS_DAMAGED ? drop_once(store, timeout_ms, hash, err) : status;
}

int32_t cbn__store_drop_if(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_key *key,
                           struct cbn__blob value)
{
    struct cbn__session session;
    int32_t status = cbn__session_write(store, timeout_ms, &session, NULL);
    if (status != CBN_STATUS_OK)
        return status;
    MDB_val name = {sizeof(key->bytes), (void *)(uintptr_t)key->bytes}, present;
    int rc = mdb_get(session.txn, store->entries, &name, &present);
    if (rc == 0 && !cbn__blob_equal((struct cbn__blob){present.mv_data, present.mv_size}, value))
        rc = MDB_NOTFOUND;
    return cbn__session_write_end(&session, rc == 0 ? cbn__space_delete(&session, key, true) : rc, NULL);
}

/* A pin may have come since the caller looked: only what this transaction sees counts. */
static int drop_one(struct cbn__session *session, const struct cbn__store_key *key, bool pinned_too,
                    enum cbn__prune_outcome *ret_outcome)
{
    struct cbn__usage_record record;
    cbn__space_stored_usage(session, key, &record);
    if (record.pinned && !pinned_too)
        return 0;
    int rc = cbn__space_delete(session, key, false);
    *ret_outcome = rc == 0 ? CBN__PRUNE_REMOVED : rc == MDB_NOTFOUND ? CBN__PRUNE_ABSENT : CBN__PRUNE_STAYS;
    return rc == MDB_NOTFOUND ? 0 : rc;
}

/* Nothing of a chunk is gone before its commit. */
static int drop_chunk(struct cbn__session *session, const struct cbn__store_key *keys, size_t count, bool pinned_too,
                      enum cbn__prune_outcome *ret_outcomes)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = drop_one(session, &keys[i], pinned_too, &ret_outcomes[i]);
    int renewed = cbn__session_renew(session, rc);
    rc = rc ? rc : renewed;
    if (rc != 0)
        memset(ret_outcomes, 0, count * sizeof(*ret_outcomes));
    return rc;
}

/* The first chunk of these. *ret_chunk: how many that is. */
static int32_t drop_first(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_key *keys,
                          size_t count, bool pinned_too, enum cbn__prune_outcome *ret_outcomes, size_t *ret_chunk,
                          struct cbn_error *err)
{
    struct cbn__session session;
    struct cbn__space space;
    int32_t status = cbn__session_write(store, timeout_ms, &session, err);
    if (status != CBN_STATUS_OK)
        return status;
    int rc = cbn__space_measure(&session, &space);
    size_t chunk = rc == 0 ? cbn__space_chunk(&space) : 0;
    *ret_chunk = chunk < count ? chunk : count;
    if (rc == 0)
        rc = drop_chunk(&session, keys, *ret_chunk, pinned_too, ret_outcomes);
    if (rc == 0)
        rc = cbn__counters_write(&session); /* so that the next chunk can have the pages of this one */
    return cbn__session_write_end(&session, rc, err);
}

int32_t cbn__store_drop_keys(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_key *keys,
                             size_t count, bool pinned_too, enum cbn__prune_outcome *ret_outcomes,
                             struct cbn_error *err)
{
    memset(ret_outcomes, 0, count * sizeof(*ret_outcomes));
    for (size_t at = 0, chunk = 0; at < count; at += chunk) {
        int32_t status =
            drop_first(store, timeout_ms, keys + at, count - at, pinned_too, ret_outcomes + at, &chunk, err);
        if (status == CBN_STATUS_DAMAGED)
            status = drop_first(store, timeout_ms, keys + at, count - at, pinned_too, ret_outcomes + at, &chunk, err);
        if (status != CBN_STATUS_OK)
            return status;
    }
    return CBN_STATUS_OK;
}

static int pin_major(struct cbn__session *session, const struct cbn__store_key *key, bool pinned)
{
    struct cbn__usage_record record;
    cbn__space_stored_usage(session, key, &record);
    record.pinned = pinned;
    if (record.recency_us == 0)
        record.recency_us = cbn__usage_now_us(&session->store->usage);
    return cbn__space_write_usage(session, key, &record);
}

static int pin_majors(struct cbn__session *session, const struct cbn__hash *hash, bool pinned)
{
    struct cbn__store_key majors[PIN_MAJORS_MAX];
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    uint32_t count = 0;
    int rc = mdb_cursor_open(session->txn, session->store->entries, &cursor);
    if (rc != 0)
        return rc;
    for (rc = seek_newest(cursor, hash, &key, &value); rc == 0 && count < PIN_MAJORS_MAX && belongs(&key, hash);
         rc = mdb_cursor_get(cursor, &key, &value, MDB_PREV))
        majors[count++] = cbn__entry_key(hash, major_of(&key));
    mdb_cursor_close(cursor);
    if (rc != 0 && rc != MDB_NOTFOUND)
        return rc;
    rc = count ? 0 : MDB_NOTFOUND;
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = pin_major(session, &majors[i], pinned);
    return rc;
}

int32_t cbn__store_pin(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__hash *hash, bool pinned,
                       struct cbn_error *err)
{
    struct cbn__session session;
    int32_t status = cbn__session_write(store, timeout_ms, &session, err);
    return status == CBN_STATUS_OK ? cbn__session_write_end(&session, pin_majors(&session, hash, pinned), err) : status;
}

static int write_usage(struct cbn__session *session, const struct cbn__usage_note *note)
{
    struct cbn__store_key key = note->key;
    MDB_val name = {sizeof(key.bytes), key.bytes}, value;
    struct cbn__usage_record record;
    int rc = mdb_get(session->txn, session->store->entries, &name, &value);
    if (rc != 0)
        return rc == MDB_NOTFOUND ? 0 : rc; /* dropped meanwhile */
    cbn__space_stored_usage(session, &key, &record);
    if (record.recency_us < note->recency_us)
        record.recency_us = note->recency_us;
    record.hits += note->hits;
    return cbn__space_write_usage(session, &key, &record);
}

void cbn__store_flush_usage(struct cbn__store *store, uint32_t timeout_ms)
{
    struct cbn__usage_note *slots = NULL;
    struct cbn__session session;
    if (store->writable && (cbn__usage_waits(&store->usage) || cbn__counters_any(&store->counters)) &&
        cbn__session_write(store, timeout_ms, &session, NULL) == CBN_STATUS_OK) {
        int rc = cbn__space_learn_clock(&session);
        uint32_t slot_count = cbn__usage_take(&store->usage, &slots);
        for (uint32_t i = 0; i < slot_count && rc == 0; i++)
            if (slots[i].hits)
                rc = write_usage(&session, &slots[i]);
        if (rc == 0 && cbn__counters_any(&store->counters))
            rc = cbn__counters_write(&session);
        (void)cbn__session_write_end(&session, rc, NULL);
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

void cbn__store_mend(struct cbn__store *store, uint32_t timeout_ms)
{
    if (store->writable && atomic_load(&store->condemned) && cbn__session_own(store, timeout_ms, NULL) == CBN_STATUS_OK)
        cbn__lock_release_exclusive(&store->lock);
}

void cbn__store_settle(struct cbn__store *store, uint32_t timeout_ms)
{
    cbn__store_flush_usage(store, timeout_ms);
    cbn__store_mend(store, timeout_ms);
    clear_mark_when_synced(store, timeout_ms);
}

void cbn__store_destroy(struct cbn__store *store)
{
    cbn__datafile_close(store);
    free_store(store);
}

/* ---- measuring ---- */

static int count_pinned(struct cbn__session *session, uint64_t *ret_count)
{
    MDB_cursor *cursor = NULL;
    MDB_val key, value, entry;
    *ret_count = 0;
    int rc = mdb_cursor_open(session->txn, session->store->usage_table, &cursor);
    if (rc != 0)
        return rc;
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        struct cbn__store_key own;
        struct cbn__usage_record record;
        if (key.mv_size != sizeof(own.bytes))
            continue;
        memcpy(own.bytes, key.mv_data, sizeof(own.bytes));
        bool pinned =
            cbn__usage_decode(&own, (struct cbn__blob){value.mv_data, value.mv_size}, &record) && record.pinned;
        *ret_count += pinned && mdb_get(session->txn, session->store->entries, &key, &entry) == 0;
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int measure(struct cbn__session *session, struct cbn__layer_stats *stats)
{
    MDB_stat stat;
    struct stat file;
    struct cbn__space space;
    int rc = mdb_stat(session->txn, session->store->entries, &stat);
    if (rc == 0)
        rc = cbn__space_measure(session, &space);
    if (rc == 0 && fstat(session->store->data_fd, &file) != 0)
        rc = errno;
    if (rc != 0)
        return rc;
    stats->layer.entries = stat.ms_entries;
    stats->layer.file_bytes = (uint64_t)file.st_size;
    stats->layer.used_bytes = space.used_pages * space.page_bytes;
    stats->allocated_bytes = (uint64_t)file.st_blocks * STAT_BLOCK_BYTES;
    stats->max_bytes = session->store->writable ? atomic_load(&session->store->max_bytes) : 0;
    return 0;
}

int32_t cbn__store_measure(struct cbn__store *store, uint32_t timeout_ms, struct cbn__layer *ret_layer,
                           struct cbn_error *err)
{
    struct cbn__session session;
    struct cbn__layer_stats stats = {.layer = *ret_layer};
    int32_t status = cbn__session_read(store, timeout_ms, &session, err);
    if (status == CBN_STATUS_OK)
        status = cbn__session_read_end(&session, measure(&session, &stats), err);
    if (status == CBN_STATUS_OK)
        *ret_layer = stats.layer;
    return status;
}

int32_t cbn__store_stats(struct cbn__store *store, uint32_t timeout_ms, struct cbn__layer_stats *ret_stats,
                         struct cbn_error *err)
{
    struct cbn__session session;
    int32_t status = cbn__session_read(store, timeout_ms, &session, err);
    if (status != CBN_STATUS_OK)
        return status;
    int rc = measure(&session, ret_stats);
    if (rc == 0)
        rc = count_pinned(&session, &ret_stats->pinned);
    cbn__counters_read(&session, &ret_stats->counters);
    return cbn__session_read_end(&session, rc, err);
}
