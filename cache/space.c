/*
 * Room and eviction. See space.h.
 *
 * Outside contract: LMDB gives pages that transaction T freed to transactions from T + 2 on (mdb_find_oldest), so a
 * batch of deletions is followed by one small commit before its pages are asked for.
 */
#include "cache/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/record.h"
#include "cache/runs.h"

#define HEADROOM_PART 64u
#define HEADROOM_BYTES_MIN ((uint64_t)64 << 10)
#define HEADROOM_BYTES_MAX ((uint64_t)4 << 20)
#define BATCH_PART 64u /* of the bound, evicted at once: a scan of all entries pays for itself */
#define SPLIT_PAGES 4u /* that one put may add to the trees */
#define LIST_PAGES 12u /* of the headroom, for branches and the list of freed pages */
#define PAGES_A_DELETE 4u
#define LEAF_WASTE 3u /* a leaf is filled to a third at least */
#define PAGE_HEAD_BYTES 16u
#define NODE_HEAD_BYTES 8u
#define VALUE_PART 8u     /* of the bound: for a larger value nobody goes, so many pages are hardly ever side by side */
#define EVICTED_TIMES 16u /* the value's bytes, after which nothing more is evicted for it */
#define US_PER_S 1000000u
#define LATEST_US 253402300800000000u /* the year 10000: no clock was right that is past it */
#define RENEWED_TELL 8u               /* evicted entries that were needed again before it is told */

struct victim {
    struct cbn__store_key key;
    uint64_t recency_us;
    uint64_t value_bytes;
};

struct victims {
    struct victim *items;
    size_t count, capacity;
    uint64_t bytes_most; /* that all of them together may set free */
};

/* ---- measures ---- */

/* The free list's records begin with their count of pages. */
static int count_free_pages(MDB_txn *txn, uint64_t *ret_pages)
{
    const MDB_dbi free_list = 0;
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    *ret_pages = 0;
    int rc = mdb_cursor_open(txn, free_list, &cursor);
    if (rc != 0)
        return rc;
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
        if (value.mv_size >= sizeof(uint64_t))
            *ret_pages += cbn__load_u64(value.mv_data);
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

/* What is committed. LMDB shows the free list to reading transactions only. */
static int count_committed(MDB_env *env, uint64_t *ret_pages)
{
    MDB_txn *txn = NULL;
    int rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
    if (rc != 0)
        return rc;
    rc = count_free_pages(txn, ret_pages);
    mdb_txn_abort(txn);
    return rc;
}

static uint64_t headroom_bytes(uint64_t bound_bytes)
{
    uint64_t bytes = bound_bytes / HEADROOM_PART;
    if (bytes < HEADROOM_BYTES_MIN)
        return HEADROOM_BYTES_MIN;
    return bytes > HEADROOM_BYTES_MAX ? HEADROOM_BYTES_MAX : bytes;
}

int cbn__space_measure(struct cbn__session *session, struct cbn__space *ret_space)
{
    MDB_stat stat;
    MDB_envinfo info;
    uint64_t free_pages = 0, bound_bytes = cbn__session_map_bytes(session->store);
    int rc = mdb_stat(session->txn, session->store->entries, &stat);
    if (rc == 0)
        rc = mdb_env_info(session->store->env, &info);
    if (rc == 0)
        rc = count_committed(session->store->env, &free_pages);
    if (rc != 0)
        return rc;
    uint64_t pages = (uint64_t)info.me_last_pgno + 1;
    *ret_space = (struct cbn__space){.page_bytes = stat.ms_psize,
                                     .bound_pages = bound_bytes / stat.ms_psize,
                                     .used_pages = pages > free_pages ? pages - free_pages : 0,
                                     .headroom_pages = headroom_bytes(bound_bytes) / stat.ms_psize};
    return 0;
}

int cbn__space_table_pages(struct cbn__session *session, uint64_t *ret_pages)
{
    const MDB_dbi tables[] = {session->store->entries, session->store->usage_table};
    *ret_pages = 0;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        MDB_stat stat;
        int rc = mdb_stat(session->txn, tables[i], &stat);
        if (rc != 0)
            return rc;
        *ret_pages += stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
    }
    return 0;
}

/* Outside contract: mdb.c, me_nodemax and OVPAGES. */
static bool is_inline(uint32_t page_bytes, uint64_t value_bytes)
{
    uint64_t node_max = (((page_bytes - PAGE_HEAD_BYTES) / 2) & ~1ull) - 2;
    return NODE_HEAD_BYTES + CBN__STORE_KEY_BYTES + value_bytes <= node_max;
}

uint64_t cbn__space_pages_of(uint32_t page_bytes, uint64_t value_bytes)
{
    return is_inline(page_bytes, value_bytes) ? 0 : (PAGE_HEAD_BYTES - 1 + value_bytes) / page_bytes + 1;
}

uint64_t cbn__space_bytes_of(uint32_t page_bytes, uint64_t value_bytes)
{
    uint64_t pages = cbn__space_pages_of(page_bytes, value_bytes);
    return pages ? pages * page_bytes : NODE_HEAD_BYTES + 2 + CBN__STORE_KEY_BYTES + value_bytes;
}

uint32_t cbn__space_chunk(const struct cbn__space *space)
{
    uint64_t room = space->headroom_pages > LIST_PAGES ? space->headroom_pages - LIST_PAGES : 0;
    return room / PAGES_A_DELETE > 1 ? (uint32_t)(room / PAGES_A_DELETE) : 1;
}

/* ---- usage ---- */

void cbn__space_stored_usage(struct cbn__session *session, const struct cbn__store_key *key,
                             struct cbn__usage_record *ret_record)
{
    MDB_val name = {sizeof(key->bytes), (void *)(uintptr_t)key->bytes}, value;
    *ret_record = (struct cbn__usage_record){0};
    if (mdb_get(session->txn, session->store->usage_table, &name, &value) == 0)
        (void)cbn__usage_decode(key, (struct cbn__blob){value.mv_data, value.mv_size}, ret_record);
    if (ret_record->recency_us > LATEST_US)
        ret_record->recency_us = LATEST_US;
}

static uint64_t recency_of(const MDB_val *key, const MDB_val *value)
{
    struct cbn__store_key own;
    struct cbn__usage_record record;
    if (key->mv_size != sizeof(own.bytes))
        return 0;
    memcpy(own.bytes, key->mv_data, sizeof(own.bytes));
    if (!cbn__usage_decode(&own, (struct cbn__blob){value->mv_data, value->mv_size}, &record))
        return 0;
    return record.recency_us > LATEST_US ? LATEST_US : record.recency_us;
}

int cbn__space_learn_clock(struct cbn__session *session)
{
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    uint64_t newest_us = 0;
    if (cbn__usage_has_learned(&session->store->usage))
        return 0;
    int rc = mdb_cursor_open(session->txn, session->store->usage_table, &cursor);
    if (rc != 0)
        return rc;
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        uint64_t recency_us = recency_of(&key, &value);
        newest_us = recency_us > newest_us ? recency_us : newest_us;
    }
    mdb_cursor_close(cursor);
    if (rc != MDB_NOTFOUND)
        return rc;
    cbn__usage_learn(&session->store->usage, newest_us);
    return 0;
}

void cbn__space_usage(struct cbn__session *session, const struct cbn__store_key *key,
                      struct cbn__usage_record *ret_record)
{
    cbn__space_stored_usage(session, key, ret_record);
    cbn__usage_add(&session->store->usage, key, ret_record);
}

uint64_t cbn__space_recency_us(const struct cbn__usage_record *usage, struct cbn__blob value)
{
    if (usage->recency_us)
        return usage->recency_us;
    const uint64_t created_s = (uint64_t)cbn__entry_created_s(value), now_us = cbn__clock_wall_us();
    return created_s > now_us / US_PER_S ? now_us : created_s * US_PER_S;
}

int cbn__space_write_usage(struct cbn__session *session, const struct cbn__store_key *key,
                           const struct cbn__usage_record *record)
{
    uint8_t bytes[CBN__USAGE_BYTES];
    cbn__usage_encode(key, record, bytes);
    MDB_val name = {sizeof(key->bytes), (void *)(uintptr_t)key->bytes}, value = {sizeof(bytes), bytes};
    return cbn__runs_put(session, session->store->usage_table, &name, &value, 0);
}

int cbn__space_delete(struct cbn__session *session, const struct cbn__store_key *key, bool keep_pin)
{
    struct cbn__usage_record record;
    MDB_val name = {sizeof(key->bytes), (void *)(uintptr_t)key->bytes};
    int rc = cbn__runs_delete(session, session->store->entries, &name);
    if (rc != 0)
        return rc;
    cbn__space_stored_usage(session, key, &record);
    if (keep_pin && record.pinned)
        return 0;
    rc = cbn__runs_delete(session, session->store->usage_table, &name);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

/* ---- who goes ---- */

static int add_victim(struct victims *victims, const struct victim *victim)
{
    if (victims->count == victims->capacity) {
        size_t capacity = victims->capacity ? 2 * victims->capacity : 256;
        struct victim *items = realloc(victims->items, capacity * sizeof(*items));
        if (!items)
            return ENOMEM;
        victims->items = items;
        victims->capacity = capacity;
    }
    victims->items[victims->count++] = *victim;
    return 0;
}

static int compare_recency(const void *a, const void *b)
{
    const struct victim *x = a, *y = b;
    if (x->recency_us != y->recency_us)
        return x->recency_us < y->recency_us ? -1 : 1;
    return memcmp(x->key.bytes, y->key.bytes, sizeof(x->key.bytes));
}

static int consider(struct cbn__session *session, struct victims *victims, uint32_t page_bytes,
                    const struct cbn__store_key *but, const MDB_val *key, const MDB_val *value)
{
    struct victim victim = {.value_bytes = value->mv_size};
    struct cbn__usage_record record;
    if (key->mv_size != sizeof(victim.key.bytes))
        return 0; /* not ours: verify tells it */
    memcpy(victim.key.bytes, key->mv_data, sizeof(victim.key.bytes));
    cbn__space_usage(session, &victim.key, &record);
    if (record.pinned || memcmp(victim.key.bytes, but->bytes, sizeof(but->bytes)) == 0)
        return 0;
    victim.recency_us = cbn__space_recency_us(&record, (struct cbn__blob){value->mv_data, value->mv_size});
    uint64_t pages = cbn__space_pages_of(page_bytes, victim.value_bytes);
    victims->bytes_most +=
        pages ? pages * page_bytes : LEAF_WASTE * cbn__space_bytes_of(page_bytes, victim.value_bytes);
    return add_victim(victims, &victim);
}

/* Every entry that may go, least recently used first. */
static int find_victims(struct cbn__session *session, uint32_t page_bytes, const struct cbn__store_key *but,
                        struct victims *victims)
{
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    int rc = mdb_cursor_open(session->txn, session->store->entries, &cursor);
    if (rc != 0)
        return rc;
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
        if ((rc = consider(session, victims, page_bytes, but, &key, &value)) != 0)
            break;
    mdb_cursor_close(cursor);
    if (rc != MDB_NOTFOUND)
        return rc;
    if (victims->count > 0) /* NULL until then, which qsort may not be given */
        qsort(victims->items, victims->count, sizeof(*victims->items), compare_recency);
    return 0;
}

static uint32_t ghost_of(const struct cbn__store_key *key)
{
    return cbn__load_u32(key->bytes + 4) | 1u; /* 0: an empty place */
}

static uint32_t *ghost_place(struct cbn__store *store, const struct cbn__store_key *key)
{
    return &store->ghosts[cbn__load_u32(key->bytes) % CBN__STORE_GHOSTS];
}

static void remember_eviction(struct cbn__store *store, const struct victim *victim)
{
    *ghost_place(store, &victim->key) = ghost_of(&victim->key);
    CBN__COUNT_LAYER(store, evictions, 1);
}

/* An entry comes back that was pushed out: when that goes on, no order of eviction is of help, and it is said. */
static void notice_return(struct cbn__store *store, const struct cbn__store_key *key)
{
    uint32_t *place = ghost_place(store, key);
    if (*place != ghost_of(key))
        return;
    *place = 0;
    if (++store->returned != RENEWED_TELL)
        return;
    cbn__datafile_note(store, false,
                       "%u entries of %s were evicted and then needed again: the kernels in use do not fit into its "
                       "bound of %llu bytes, so look-ups will miss; raise max_bytes, prune what is stale, or pin what "
                       "matters",
                       RENEWED_TELL, store->data_path, (unsigned long long)atomic_load(&store->max_bytes));
}

/* A small commit, after which the pages freed by the last one can be had. */
static int settle(struct cbn__session *session)
{
    int rc = cbn__counters_write(session);
    int renewed = cbn__session_renew(session, rc);
    return rc ? rc : renewed;
}

/* Deletes victims from *at up to end in one transaction. */
static int evict_chunk(struct cbn__session *session, const struct victims *victims, size_t *at, size_t end)
{
    int rc = 0;
    for (size_t i = *at; i < end && rc == 0; i++)
        rc = cbn__space_delete(session, &victims->items[i].key, false);
    int renewed = cbn__session_renew(session, rc);
    rc = rc ? rc : renewed;
    for (; rc == 0 && *at < end; ++*at)
        remember_eviction(session->store, &victims->items[*at]);
    return rc ? rc : settle(session);
}

/* Deletes victims from *at on until so many bytes are gone, chunk by chunk. */
static int evict(struct cbn__session *session, const struct cbn__space *space, const struct victims *victims,
                 uint64_t wanted_bytes, size_t *at)
{
    uint32_t chunk = cbn__space_chunk(space);
    uint64_t bytes = 0;
    while (*at < victims->count && bytes < wanted_bytes) {
        size_t end = *at;
        uint64_t chunk_bytes = 0;
        while (end < victims->count && end - *at < chunk && bytes + chunk_bytes < wanted_bytes)
            chunk_bytes += cbn__space_bytes_of(space->page_bytes, victims->items[end++].value_bytes);
        int rc = evict_chunk(session, victims, at, end);
        if (rc == MDB_MAP_FULL && chunk > 1 && session->txn) {
            chunk /= 2;
            continue;
        }
        if (rc != 0)
            return rc;
        bytes += chunk_bytes;
    }
    return 0;
}

/* ---- putting ---- */

static int put_once(struct cbn__session *session, const struct cbn__store_key *key, struct cbn__blob value)
{
    MDB_val name = {sizeof(key->bytes), (void *)(uintptr_t)key->bytes};
    MDB_val bytes = {value.size, (void *)(uintptr_t)value.data};
    struct cbn__usage_record record;
    cbn__space_stored_usage(session, key, &record);
    record.recency_us = cbn__usage_now_us(&session->store->usage);
    int rc = cbn__runs_put(session, session->store->entries, &name, &bytes, 0);
    if (rc == 0)
        rc = cbn__space_write_usage(session, key, &record);
    int renewed = cbn__session_renew(session, rc);
    return rc ? rc : renewed;
}

static uint64_t missing_pages(const struct cbn__space *space, uint64_t needed)
{
    uint64_t wanted = space->used_pages + needed + space->headroom_pages;
    return wanted > space->bound_pages ? wanted - space->bound_pages : 0;
}

struct request {
    const struct cbn__store_key *key;
    struct cbn__blob value;
    uint64_t needed_pages;
};

/*
 * With a list of victims in hand: evict, try, evict more. When pages enough are free and none of them side by side,
 * there is an end to it: one value is not worth everything else.
 */
static int put_evicting(struct cbn__session *session, const struct request *request, struct victims *victims)
{
    struct cbn__space space;
    size_t at = 0;
    int rc = cbn__space_measure(session, &space);
    if (rc == 0)
        rc = find_victims(session, space.page_bytes, request->key, victims);
    if (rc != 0)
        return rc;
    if (missing_pages(&space, request->needed_pages) * space.page_bytes > victims->bytes_most)
        return MDB_MAP_FULL;
    const uint64_t batch = space.bound_pages / BATCH_PART;
    uint64_t tries = EVICTED_TIMES * request->needed_pages / (batch ? batch : 1) + EVICTED_TIMES;
    for (; tries > 0 && at < victims->count; tries--) {
        uint64_t missing = missing_pages(&space, request->needed_pages);
        rc = evict(session, &space, victims, (missing > batch ? missing : batch) * space.page_bytes, &at);
        if (rc == 0)
            rc = cbn__space_measure(session, &space);
        if (rc != 0)
            return rc;
        if (missing_pages(&space, request->needed_pages) == 0)
            rc = put_once(session, request->key, request->value);
        else
            rc = MDB_MAP_FULL;
        if (rc != MDB_MAP_FULL || !session->txn)
            return rc;
    }
    return MDB_MAP_FULL;
}

int cbn__space_put(struct cbn__session *session, const struct cbn__store_key *key, struct cbn__blob value)
{
    struct cbn__space space;
    int rc = cbn__space_learn_clock(session);
    if (rc == 0)
        rc = cbn__space_measure(session, &space);
    if (rc != 0)
        return rc;
    struct request request = {
        .key = key, .value = value, .needed_pages = cbn__space_pages_of(space.page_bytes, value.size) + SPLIT_PAGES};
    notice_return(session->store, key);
    if (missing_pages(&space, request.needed_pages) == 0) {
        rc = put_once(session, key, value);
        if (rc != MDB_MAP_FULL || !session->txn)
            return rc;
        /* There are pages enough, of a transaction too young or not side by side. */
        rc = settle(session);
        if (rc == 0)
            rc = put_once(session, key, value);
        if (rc != MDB_MAP_FULL || !session->txn)
            return rc;
    }
    if (cbn__space_pages_of(space.page_bytes, value.size) > space.bound_pages / VALUE_PART)
        return MDB_MAP_FULL;
    struct victims victims = {0};
    rc = put_evicting(session, &request, &victims);
    free(victims.items);
    return rc;
}

bool cbn__space_has_room(const struct cbn__space *space, uint64_t value_bytes)
{
    return missing_pages(space, cbn__space_pages_of(space->page_bytes, value_bytes) + SPLIT_PAGES) == 0;
}

int cbn__space_add(struct cbn__session *session, const struct cbn__store_key *key, struct cbn__blob value)
{
    MDB_val name = {sizeof(key->bytes), (void *)(uintptr_t)key->bytes};
    MDB_val bytes = {value.size, (void *)(uintptr_t)value.data};
    return mdb_put(session->txn, session->store->entries, &name, &bytes, MDB_NOOVERWRITE);
}
