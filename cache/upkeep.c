/*
 * Upkeep of the overlay: pins, removal by list, compaction, counters by layer.
 *
 * Holds no lock of its own; every step is a session of the store.
 */
#include "cache/layer.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "cache/pack_base.h"
#include "cache/registry.h"
#include "cache/runs.h"
#include "cache/space.h"

static int32_t need_overlay(const struct cbn__cabinet *cabinet, struct cbn__store **ret_overlay, struct cbn_error *err)
{
    *ret_overlay = cbn__cabinet_overlay(cabinet);
    cbn__registry_check_pid();
    return *ret_overlay ? CBN_STATUS_OK
                        : cbn__error_own(err, CBN_STATUS_NOT_FOUND, "there is no cache folder that can be written");
}

int32_t cbn__cabinet_drop_damaged(struct cbn__cabinet *cabinet, const struct cbn__hash *key,
                                  const struct cbn__entry *entry)
{
    struct cbn__store *overlay = NULL;
    int32_t status = need_overlay(cabinet, &overlay, NULL);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__store_key own = cbn__entry_key(key, entry->major);
    status = cbn__store_drop_if(overlay, cabinet->lock_timeout_ms, &own, cbn__buf_blob(&entry->bytes));
    cbn__cabinet_tell_notes(cabinet, overlay);
    return status;
}

int32_t cbn__cabinet_pin(struct cbn__cabinet *cabinet, const struct cbn__hash *key, bool pinned, struct cbn_error *err)
{
    struct cbn__store *overlay = NULL;
    int32_t status = need_overlay(cabinet, &overlay, err);
    if (status != CBN_STATUS_OK)
        return status;
    status = cbn__store_pin(overlay, cabinet->lock_timeout_ms, key, pinned, err);
    cbn__cabinet_tell_notes(cabinet, overlay);
    return status;
}

int32_t cbn__cabinet_remove(struct cbn__cabinet *cabinet, struct cbn__prune_item *items, size_t count, bool pinned_too,
                            struct cbn_error *err)
{
    struct cbn__store *overlay = NULL;
    int32_t status = need_overlay(cabinet, &overlay, err);
    if (status != CBN_STATUS_OK || count == 0)
        return status;
    struct cbn__store_key *keys = calloc(count, sizeof(*keys));
    enum cbn__prune_outcome *outcomes = calloc(count, sizeof(*outcomes));
    for (size_t i = 0; i < count && keys; i++)
        keys[i] = cbn__entry_key(&items[i].key, items[i].major);
    if (keys && outcomes)
        status = cbn__store_drop_keys(overlay, cabinet->lock_timeout_ms, keys, count, pinned_too, outcomes, err);
    else
        status = cbn__error_no_memory(err);
    for (size_t i = 0; i < count && outcomes; i++)
        items[i].outcome = outcomes[i];
    free(outcomes);
    free(keys);
    cbn__cabinet_tell_notes(cabinet, overlay);
    return status;
}

struct rehearsal {
    const struct cbn__prune_item *items;
    size_t count, done;
    uint64_t bound_bytes, used_bytes;
};

static int rehearse(struct cbn__session *session, struct rehearsal *rehearsal)
{
    struct cbn__space space;
    uint64_t before = 0, now = 0;
    int rc = cbn__space_measure(session, &space);
    if (rc == 0)
        rc = cbn__space_table_pages(session, &before);
    if (rc != 0)
        return rc;
    rehearsal->used_bytes = space.used_pages * space.page_bytes;
    while (rehearsal->done < rehearsal->count && rehearsal->used_bytes > rehearsal->bound_bytes) {
        const struct cbn__prune_item *item = &rehearsal->items[rehearsal->done];
        struct cbn__store_key key = cbn__entry_key(&item->key, item->major);
        rc = cbn__space_delete(session, &key, false);
        if (rc != 0 && rc != MDB_NOTFOUND)
            return rc == MDB_MAP_FULL ? 0 : rc;
        rc = cbn__space_table_pages(session, &now);
        if (rc != 0)
            return rc;
        rehearsal->used_bytes = (space.used_pages - (before > now ? before - now : 0)) * space.page_bytes;
        rehearsal->done++;
    }
    return 0;
}

static int32_t rehearse_once(struct cbn__store *overlay, uint32_t timeout_ms, struct rehearsal *rehearsal,
                             struct cbn_error *err)
{
    int32_t status = cbn__session_own(overlay, timeout_ms, err);
    if (status != CBN_STATUS_OK)
        return status;
    rehearsal->done = 0;
    /* No mark and no growth of the map, which a write session makes: nothing of this reaches the file. */
    struct cbn__session session = {.store = overlay};
    int rc = mdb_txn_begin(overlay->env, NULL, 0, &session.txn);
    if (rc == 0) {
        rc = cbn__runs_learn(&session);
        if (rc == 0)
            rc = rehearse(&session, rehearsal);
        mdb_txn_abort(session.txn);
    }
    cbn__session_judge(overlay, rc);
    cbn__lock_release_exclusive(&overlay->lock);
    return rc == 0 ? CBN_STATUS_OK : cbn__datafile_error(overlay, rc, err, "cannot read the cache");
}

int32_t cbn__cabinet_rehearse(struct cbn__cabinet *cabinet, const struct cbn__prune_item *items, size_t count,
                              uint64_t bound_bytes, size_t *ret_count, uint64_t *ret_used_bytes, struct cbn_error *err)
{
    struct cbn__store *overlay = NULL;
    struct rehearsal rehearsal = {.items = items, .count = count, .bound_bytes = bound_bytes};
    int32_t status = need_overlay(cabinet, &overlay, err);
    if (status != CBN_STATUS_OK)
        return status;
    status = rehearse_once(overlay, cabinet->lock_timeout_ms, &rehearsal, err);
    if (status == CBN_STATUS_DAMAGED) /* set aside and salvaged by the next session */
        status = rehearse_once(overlay, cabinet->lock_timeout_ms, &rehearsal, err);
    cbn__cabinet_tell_notes(cabinet, overlay);
    *ret_count = rehearsal.done;
    *ret_used_bytes = rehearsal.used_bytes;
    return status;
}

uint64_t cbn__cabinet_held_bytes(const struct cbn__entry *entry)
{
    return cbn__space_bytes_of((uint32_t)sysconf(_SC_PAGESIZE), entry->bytes.size);
}

int32_t cbn__cabinet_compact(struct cbn__cabinet *cabinet, struct cbn_error *err)
{
    struct cbn__store *overlay = NULL;
    int32_t status = need_overlay(cabinet, &overlay, err);
    if (status != CBN_STATUS_OK)
        return status;
    status = cbn__store_compact(overlay, cabinet->lock_timeout_ms, err);
    cbn__cabinet_tell_notes(cabinet, overlay);
    return status;
}

int32_t cbn__cabinet_layer_stats(struct cbn__cabinet *cabinet, uint32_t index, struct cbn__layer_stats *ret_stats,
                                 struct cbn_error *err)
{
    if (index >= cabinet->layer_count)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "layer %u of %u", index, cabinet->layer_count);
    const struct cbn__cabinet_layer *layer = &cabinet->layers[index];
    struct cbn__layer_stats stats = {
        .layer = {.path = layer->path, .is_base = layer->number != 0, .writable = layer->writable}};
    if (layer->pack) {
        cbn__pack_base_measure(layer, &stats);
        *ret_stats = stats;
        return CBN_STATUS_OK;
    }
    cbn__registry_check_pid();
    int32_t status = cbn__store_stats(layer->store, cabinet->lock_timeout_ms, &stats, err);
    cbn__cabinet_tell_notes(cabinet, layer->store);
    if (status == CBN_STATUS_OK)
        *ret_stats = stats;
    return status;
}
