/*
 * Many entries at once: one lock, one transaction as long as there is room. See store.h.
 */
#include "cache/store.h"

#include "cache/runs.h"
#include "cache/space.h"

struct batch {
    struct cbn__session session;
    struct cbn__space space;
    uint64_t other_pages; /* used by none of the two tables */
    const struct cbn__store_value *values;
    size_t count, done, committed;
};

/* The free list shows committed pages only; what this transaction has taken since, the tables tell. */
static int measure(struct batch *batch)
{
    uint64_t pages = 0;
    int rc = cbn__space_measure(&batch->session, &batch->space);
    if (rc == 0)
        rc = cbn__space_table_pages(&batch->session, &pages);
    batch->other_pages = batch->space.used_pages > pages ? batch->space.used_pages - pages : 0;
    return rc;
}

static int put_plainly(struct batch *batch, const struct cbn__store_value *value)
{
    struct cbn__session *session = &batch->session;
    MDB_val name = {sizeof(value->key.bytes), (void *)(uintptr_t)value->key.bytes};
    MDB_val bytes = {value->bytes.size, (void *)(uintptr_t)value->bytes.data};
    struct cbn__usage_record record;
    uint64_t pages = 0;
    cbn__space_stored_usage(session, &value->key, &record);
    record.recency_us = cbn__usage_now_us(&session->store->usage);
    int rc = cbn__runs_put(session, session->store->entries, &name, &bytes, 0);
    if (rc == 0)
        rc = cbn__space_write_usage(session, &value->key, &record);
    if (rc == 0)
        rc = cbn__space_table_pages(session, &pages);
    batch->space.used_pages = batch->other_pages + pages;
    return rc;
}

static int commit(struct batch *batch, int code)
{
    int rc = cbn__session_renew(&batch->session, code);
    if (code == 0 && rc == 0)
        batch->committed = batch->done;
    else
        batch->done = batch->committed;
    return rc;
}

/* Where there is no room in one transaction: an entry at a time, evicting. */
static int put_with_room_made(struct batch *batch)
{
    const struct cbn__store_value *value = &batch->values[batch->done];
    int rc = cbn__space_put(&batch->session, &value->key, value->bytes);
    if (rc == 0) {
        batch->done++;
        batch->committed = batch->done;
        rc = measure(batch);
    }
    return rc;
}

static int put_all(struct batch *batch)
{
    int rc = cbn__space_learn_clock(&batch->session);
    if (rc == 0)
        rc = measure(batch);
    while (rc == 0 && batch->done < batch->count) {
        const struct cbn__store_value *value = &batch->values[batch->done];
        if (cbn__space_has_room(&batch->space, value->bytes.size)) {
            rc = put_plainly(batch, value);
            batch->done += rc == 0;
            if (rc != MDB_MAP_FULL && rc != MDB_TXN_FULL)
                continue;
        }
        /* What is in the transaction goes first; after a full map it is begun anew from the last commit. */
        rc = commit(batch, rc);
        if (rc == 0)
            rc = put_with_room_made(batch);
    }
    return rc;
}

static int32_t put_once(struct cbn__store *store, uint32_t timeout_ms, bool syncs_later, struct batch *batch,
                        struct cbn_error *err)
{
    int32_t status = cbn__session_write(store, timeout_ms, &batch->session, err);
    if (status != CBN_STATUS_OK)
        return status;
    batch->session.syncs_later = syncs_later;
    int rc = put_all(batch);
    status = cbn__session_write_end(&batch->session, rc, err);
    batch->committed = status == CBN_STATUS_OK ? batch->done : batch->committed;
    return status;
}

int32_t cbn__store_put_many(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_value *values,
                            size_t count, bool syncs_later, size_t *ret_stored, struct cbn_error *err)
{
    struct batch batch = {.values = values, .count = count};
    int32_t status = put_once(store, timeout_ms, syncs_later, &batch, err);
    batch.done = batch.committed;
    if (status == CBN_STATUS_DAMAGED) /* set aside and salvaged by the next session */
        status = put_once(store, timeout_ms, syncs_later, &batch, err);
    *ret_stored = batch.committed;
    return status;
}
