/*
 * See merge.h. One cursor a layer; each step takes the least key that they stand on.
 *
 * Holds no lock between steps: an entry that is put or dropped meanwhile is in or out, never twice.
 */
#include "cache/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cache/layer.h"
#include "cache/pack.h"
#include "cache/registry.h"

struct cursor {
    const struct cbn__cabinet_layer *layer;
    struct cbn__store_item item; /* of a store: what it stands on */
    uint64_t row;                /* of a pack: the next one */
    bool ended;
    struct cbn__store_key key;
    struct cbn__entry entry;
    const char *problem;
};

struct merge {
    struct cbn__cabinet *cabinet;
    cbn__merge_fn each;
    void *user;
    uint64_t damaged;
    struct cursor cursors[1 + CBN__BASES_MAX];
};

static int32_t step_pack(struct cursor *cursor, struct cbn_error *err)
{
    const struct cbn__pack *pack = cursor->layer->pack;
    cursor->ended = cursor->row >= pack->count;
    if (cursor->ended)
        return CBN_STATUS_OK;
    cursor->key = cbn__pack_row(pack, cursor->row).key;
    int32_t status = cbn__pack_read(pack, cursor->row, &cursor->entry, &cursor->problem, err);
    cursor->row++;
    return status;
}

/* Records under keys that are none of ours are passed over, and counted. */
static int32_t step_store(struct merge *merge, struct cursor *cursor, struct cbn_error *err)
{
    for (;;) {
        int32_t status = cbn__store_next(cursor->layer->store, merge->cabinet->lock_timeout_ms, &cursor->item);
        cbn__cabinet_tell_notes(merge->cabinet, cursor->layer->store);
        cursor->ended = status == CBN_STATUS_NOT_FOUND;
        if (cursor->ended)
            return CBN_STATUS_OK;
        if (status != CBN_STATUS_OK)
            return cbn__layer_cannot_read(cursor->layer, status, err);
        if (cursor->item.key_bytes == sizeof(cursor->key.bytes))
            break;
        merge->damaged++;
    }
    memcpy(cursor->key.bytes, cursor->item.key, sizeof(cursor->key.bytes));
    cursor->entry = (struct cbn__entry){.bytes = cursor->item.value, .major = cbn__entry_key_major(&cursor->key)};
    cursor->item.value = (struct cbn__buf)CBN__BUF_INIT;
    cursor->problem = cbn__entry_decode(&cursor->key, &cursor->entry);
    struct cbn__hash hash = cbn__hash_blob(cursor->entry.key_record), own = cbn__entry_key_hash(&cursor->key);
    if (!cursor->problem && !cbn__hash_equal(&hash, &own))
        cursor->problem = "the key record does not hash to its key";
    return CBN_STATUS_OK;
}

static int32_t step(struct merge *merge, struct cursor *cursor, struct cbn_error *err)
{
    cbn__entry_done(&cursor->entry);
    return cursor->layer->pack ? step_pack(cursor, err) : step_store(merge, cursor, err);
}

/* Puts every cursor on its first entry at or behind the prefix, which is a key hash or nothing. */
static int32_t begin(struct merge *merge, struct cbn__blob prefix, struct cbn_error *err)
{
    int32_t status = CBN_STATUS_OK;
    for (uint32_t i = 0; i < merge->cabinet->layer_count && status == CBN_STATUS_OK; i++) {
        struct cursor *cursor = &merge->cursors[i];
        cursor->layer = &merge->cabinet->layers[i];
        cursor->item.key_bytes = (uint32_t)prefix.size;
        if (prefix.size)
            memcpy(cursor->item.key, prefix.data, prefix.size);
        cursor->row = cursor->layer->pack && prefix.size ? cbn__pack_seek(cursor->layer->pack, prefix) : 0;
        status = step(merge, cursor, err);
    }
    return status;
}

/* The uppermost cursor of those on the least key that begins so; NULL at the end. */
static struct cursor *least(struct merge *merge, struct cbn__blob prefix)
{
    struct cursor *found = NULL;
    for (uint32_t i = 0; i < merge->cabinet->layer_count; i++) {
        struct cursor *cursor = &merge->cursors[i];
        if (cursor->ended || (prefix.size && memcmp(cursor->key.bytes, prefix.data, prefix.size) != 0))
            continue;
        if (!found || memcmp(cursor->key.bytes, found->key.bytes, sizeof(found->key.bytes)) < 0)
            found = cursor;
    }
    return found;
}

/* One key: told from the uppermost cursor that stands on it and verifies; all that stand on it go on. */
static int32_t take_key(struct merge *merge, const struct cbn__store_key *key, struct cbn_error *err)
{
    struct cbn__hash hash = cbn__entry_key_hash(key);
    int32_t status = CBN_STATUS_OK;
    bool told = false;
    for (uint32_t i = 0; i < merge->cabinet->layer_count && status == CBN_STATUS_OK; i++) {
        struct cursor *cursor = &merge->cursors[i];
        if (cursor->ended || memcmp(cursor->key.bytes, key->bytes, sizeof(key->bytes)) != 0)
            continue;
        if (!told && !cursor->problem)
            status = merge->each(merge->user, &hash, &cursor->entry, err);
        told = told || !cursor->problem;
        if (status == CBN_STATUS_OK)
            status = step(merge, cursor, err);
    }
    merge->damaged += status == CBN_STATUS_OK && !told;
    return status;
}

static int32_t merge_range(struct merge *merge, struct cbn__blob prefix, struct cbn_error *err)
{
    int32_t status = begin(merge, prefix, err);
    while (status == CBN_STATUS_OK) {
        const struct cursor *cursor = least(merge, prefix);
        if (!cursor)
            break;
        struct cbn__store_key key = cursor->key;
        status = take_key(merge, &key, err);
    }
    return status;
}

int32_t cbn__cabinet_merge(struct cbn__cabinet *cabinet, const struct cbn__hash *keys, size_t key_count,
                           cbn__merge_fn each, void *user, uint64_t *ret_damaged, struct cbn_error *err)
{
    struct merge *merge = calloc(1, sizeof(*merge));
    int32_t status = CBN_STATUS_OK;
    if (!merge)
        return cbn__error_no_memory(err);
    *merge = (struct merge){.cabinet = cabinet, .each = each, .user = user};
    cbn__registry_check_pid();
    if (!keys)
        status = merge_range(merge, (struct cbn__blob){NULL, 0}, err);
    for (size_t i = 0; keys && i < key_count && status == CBN_STATUS_OK; i++)
        status = merge_range(merge, (struct cbn__blob){keys[i].bytes, sizeof(keys[i].bytes)}, err);
    for (uint32_t i = 0; i < cabinet->layer_count; i++) {
        cbn__store_item_done(&merge->cursors[i].item);
        cbn__entry_done(&merge->cursors[i].entry);
    }
    *ret_damaged = merge->damaged;
    free(merge);
    return status;
}
