/*
 * The heads of runs. See runs.h.
 *
 * Outside contract: mdb.c, mdb_ovpage_free and mdb_cursor_put, which take page number, length and flags from the head;
 * METADATA, by which a run's value begins right behind the head, as nothing does that stands in a leaf.
 */
#include "cache/runs.h"

#include "base/record.h"
#include "cache/pages_layout.h"

/* A key of meta/1 stands in a leaf, and that page, which the walk has read, knows its number. */
int cbn__runs_learn(struct cbn__session *session)
{
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    MDB_stat stat;
    MDB_envinfo info;
    int rc = mdb_stat(session->txn, session->store->meta, &stat);
    if (rc != 0 || !cbn__pages_are_aligned(stat.ms_psize))
        return rc; /* then the walk has looked at every head */
    rc = mdb_env_info(session->store->env, &info);
    if (rc == 0)
        rc = mdb_cursor_open(session->txn, session->store->meta, &cursor);
    if (rc != 0)
        return rc;
    rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    mdb_cursor_close(cursor);
    if (rc != 0)
        return rc == MDB_NOTFOUND ? MDB_CORRUPTED : rc;
    uintptr_t page = (uintptr_t)key.mv_data & ~((uintptr_t)stat.ms_psize - 1);
    uint64_t number = cbn__load_u64((const uint8_t *)page);
    if (number > info.me_last_pgno)
        return MDB_CORRUPTED;
    session->page_bytes = stat.ms_psize;
    session->map = page - number * stat.ms_psize;
    session->map_bytes = info.me_mapsize;
    return 0;
}

int cbn__runs_check(const struct cbn__session *session, const MDB_val *value)
{
    const uintptr_t at = (uintptr_t)value->mv_data - session->map;
    /* Outside of the map: this transaction's own memory. */
    if (!session->map || at >= session->map_bytes || at % session->page_bytes != PAGE_HEAD_BYTES)
        return 0;
    const uint8_t *head = (const uint8_t *)value->mv_data - PAGE_HEAD_BYTES;
    const uint64_t count = (PAGE_HEAD_BYTES - 1 + (uint64_t)value->mv_size) / session->page_bytes + 1;
    bool right = cbn__load_u64(head) == at / session->page_bytes &&
                 cbn__pages_u16(head + PAGE_AT_FLAGS) == PAGE_OVERFLOW && cbn__load_u32(head + PAGE_AT_RUN) == count;
    return right ? 0 : MDB_CORRUPTED;
}

static int check_present(struct cbn__session *session, MDB_dbi table, MDB_val *key)
{
    MDB_val present;
    int rc = mdb_get(session->txn, table, key, &present);
    return rc == 0 ? cbn__runs_check(session, &present) : rc;
}

int cbn__runs_put(struct cbn__session *session, MDB_dbi table, MDB_val *key, MDB_val *value, unsigned flags)
{
    int rc = check_present(session, table, key);
    return rc == 0 || rc == MDB_NOTFOUND ? mdb_put(session->txn, table, key, value, flags) : rc;
}

int cbn__runs_delete(struct cbn__session *session, MDB_dbi table, MDB_val *key)
{
    int rc = check_present(session, table, key);
    return rc == 0 ? mdb_del(session->txn, table, key, NULL) : rc;
}
