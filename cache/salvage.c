/*
 * What a damaged file still holds: leaves are read with bounds, values verified by their seals, good ones copied into
 * the fresh file. LMDB never sees the damaged one.
 *
 * First every leaf that the newest readable meta page leads to. Where that way is broken, every other page as if it
 * were a leaf: one that was left behind by a later commit may then bring an entry back that had been dropped, which
 * costs room and nothing else, since an entry is bound to its key.
 */
#include "cache/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/record.h"
#include "cache/pages_layout.h"

#define COMMIT_EVERY 64u
#define TABLES_LEAST 3u /* that a file of ours has */

struct salvage {
    int fd;
    uint32_t page_bytes;
    uint64_t page_count;
    uint8_t *seen;  /* a bit a page: visited, which happens once */
    uint8_t *taken; /* a bit a page: everything on it could be read */
    bool broken;    /* the way from the meta page lost something */
    bool full;      /* the headroom would be touched next; the transaction is sound */
    uint64_t nodes; /* of the leaves visited */
    uint32_t tables;
    struct cbn__session session;
    struct cbn__space space;
    uint64_t other_pages; /* in use, beside the tables' */
    int code;             /* LMDB's: not 0 ends it */
    uint32_t commit_every;
    uint32_t young;  /* puts since the last commit */
    uint64_t judged; /* entries and usage that verified */
    uint64_t kept;   /* entries that are committed */
};

/* ---- into the fresh file ---- */

/* Of what is committed. */
static int measure(struct salvage *salvage)
{
    uint64_t pages = 0;
    int rc = cbn__space_measure(&salvage->session, &salvage->space);
    if (rc == 0)
        rc = cbn__space_table_pages(&salvage->session, &pages);
    salvage->other_pages = salvage->space.used_pages > pages ? salvage->space.used_pages - pages : 0;
    return rc;
}

static int count_kept(struct salvage *salvage)
{
    MDB_stat stat;
    int rc = mdb_stat(salvage->session.txn, salvage->session.store->entries, &stat);
    if (rc == 0)
        salvage->kept = stat.ms_entries;
    return rc;
}

static void commit(struct salvage *salvage)
{
    salvage->code = cbn__session_renew(&salvage->session, 0);
    if (salvage->code == 0)
        salvage->code = measure(salvage);
    if (salvage->code == 0)
        salvage->code = count_kept(salvage);
    salvage->young = 0;
}

/* Leaves count, too: without its headroom a file takes neither a put nor the deletion that would make room for one. */
static void count_put(struct salvage *salvage, int code)
{
    uint64_t pages = 0;
    salvage->code = code ? code : cbn__space_table_pages(&salvage->session, &pages);
    salvage->space.used_pages = salvage->other_pages + pages;
    if (salvage->code == 0 && ++salvage->young >= salvage->commit_every)
        commit(salvage);
}

static void add_entry(struct salvage *salvage, const struct cbn__store_key *key, const struct cbn__buf *bytes)
{
    salvage->full = !cbn__space_has_room(&salvage->space, bytes->size);
    if (salvage->full) {
        salvage->code = MDB_MAP_FULL;
        return;
    }
    int code = cbn__space_add(&salvage->session, key, cbn__buf_blob(bytes));
    if (code == MDB_KEYEXIST)
        return;
    count_put(salvage, code);
}

/* Of several states of one entry's usage, the most of each. */
static void add_usage(struct salvage *salvage, const struct cbn__store_key *key, struct cbn__usage_record *usage)
{
    struct cbn__usage_record present;
    if (!cbn__space_has_room(&salvage->space, CBN__USAGE_BYTES))
        return;
    cbn__space_stored_usage(&salvage->session, key, &present);
    if (present.recency_us >= usage->recency_us && present.hits >= usage->hits && present.pinned >= usage->pinned)
        return;
    usage->recency_us = usage->recency_us > present.recency_us ? usage->recency_us : present.recency_us;
    usage->hits = usage->hits > present.hits ? usage->hits : present.hits;
    usage->pinned = usage->pinned || present.pinned;
    count_put(salvage, cbn__space_write_usage(&salvage->session, key, usage));
}

/* Takes the bytes, which are the value's own. */
static void judge(struct salvage *salvage, const struct cbn__store_key *key, struct cbn__buf *bytes)
{
    struct cbn__usage_record usage;
    if (bytes->size == CBN__USAGE_BYTES && cbn__usage_decode(key, cbn__buf_blob(bytes), &usage)) {
        salvage->judged++;
        add_usage(salvage, key, &usage);
        return;
    }
    struct cbn__entry entry = {.bytes = *bytes};
    *bytes = (struct cbn__buf)CBN__BUF_INIT;
    struct cbn__hash hash = cbn__entry_key_hash(key), recorded;
    if (!cbn__entry_decode(key, &entry)) {
        recorded = cbn__hash_blob(entry.key_record);
        salvage->judged++;
        if (cbn__hash_equal(&hash, &recorded))
            add_entry(salvage, key, &entry.bytes);
    }
    cbn__entry_done(&entry);
}

/* ---- out of the damaged one ---- */

static bool read_run(struct salvage *salvage, uint64_t page, uint32_t size, bool believed, struct cbn__buf *bytes)
{
    uint64_t count = (PAGE_HEAD_BYTES - 1 + (uint64_t)size) / salvage->page_bytes + 1;
    uint8_t head[PAGE_HEAD_BYTES];
    if (page >= salvage->page_count || count > salvage->page_count - page)
        return false;
    /* Noise that looks like a node would otherwise have half the file read for it. */
    if (!believed && (!cbn__pages_read_at(salvage->fd, head, sizeof(head), page * salvage->page_bytes) ||
                      cbn__load_u64(head) != page || cbn__load_u32(head + PAGE_AT_RUN) != count))
        return false;
    if (!cbn__buf_reserve(bytes, size))
        return false;
    bytes->size = size;
    return cbn__pages_read_at(salvage->fd, bytes->data, size, page * salvage->page_bytes + PAGE_HEAD_BYTES);
}

static void visit(struct salvage *salvage, uint64_t page, uint32_t level);

/* meta/1's own keys, which are made anew. */
static bool is_meta_key(const uint8_t *key, uint32_t bytes)
{
    return (bytes == 6 && memcmp(key, "format", 6) == 0) || (bytes == 8 && memcmp(key, "counters", 8) == 0);
}

static void take_value(struct salvage *salvage, const uint8_t *node, uint32_t level)
{
    uint32_t size = cbn__load_u32(node);
    struct cbn__store_key key;
    CBN__BUF_AUTO bytes = CBN__BUF_INIT;
    memcpy(key.bytes, node + NODE_HEAD_BYTES, sizeof(key.bytes));
    const uint8_t *data = node + NODE_HEAD_BYTES + sizeof(key.bytes);
    if (!(cbn__pages_u16(node + 4) & NODE_BIG))
        cbn__buf_append(&bytes, data, size);
    else if (!read_run(salvage, cbn__load_u64(data), size, level > 0, &bytes))
        return;
    if (!bytes.failed)
        judge(salvage, &key, &bytes);
}

/* Where fewer nodes are found than stated, the root is another page than it was. */
static void visit_table(struct salvage *salvage, const uint8_t *record, uint32_t level)
{
    const uint64_t root = cbn__load_u64(record + DB_AT_ROOT), before = salvage->nodes;
    salvage->tables++;
    if (root != NO_ROOT)
        visit(salvage, root, level + 1);
    salvage->broken = salvage->broken || salvage->nodes - before != cbn__load_u64(record + DB_AT_ENTRIES);
}

/*
 * A node of a leaf: an entry, its usage, or the root of a table. room: bytes from the node to the end of its page.
 * level 0: of a page met by scanning, whose tables are not followed. The node's own bytes; 0: it is none.
 */
static uint32_t take_node(struct salvage *salvage, const uint8_t *node, uint32_t room, uint32_t level)
{
    uint32_t size = cbn__load_u32(node), flags = cbn__pages_u16(node + 4), key_bytes = cbn__pages_u16(node + 6);
    uint32_t rest = room - NODE_HEAD_BYTES, inline_bytes = flags & NODE_BIG ? 8u : size;
    if (key_bytes > rest || (rest -= key_bytes) < inline_bytes)
        return 0;
    const uint8_t *data = node + NODE_HEAD_BYTES + key_bytes;
    const uint64_t before = salvage->judged;
    if (flags & NODE_TABLE) {
        if (size != DB_BYTES || flags & NODE_BIG)
            return 0;
        if (level > 0)
            visit_table(salvage, data, level);
    } else if (key_bytes == CBN__STORE_KEY_BYTES) {
        take_value(salvage, node, level);
        salvage->broken = salvage->broken || salvage->judged == before;
    } else if (!is_meta_key(node + NODE_HEAD_BYTES, key_bytes)) {
        return 0;
    }
    return NODE_HEAD_BYTES + key_bytes + inline_bytes;
}

/* Broken unless the nodes fill the page from its upper bound to its end. */
static void take_nodes(struct salvage *salvage, const uint8_t *bytes, uint32_t level)
{
    bool branch = cbn__pages_u16(bytes + PAGE_AT_FLAGS) == PAGE_BRANCH;
    uint32_t lower = cbn__pages_u16(bytes + PAGE_AT_LOWER), filled = cbn__pages_u16(bytes + PAGE_AT_UPPER);
    for (uint32_t at = PAGE_HEAD_BYTES; at + 2 <= lower && at + 2 <= salvage->page_bytes && salvage->code == 0;
         at += 2) {
        uint32_t offset = cbn__pages_u16(bytes + at), size = 0;
        if (offset >= PAGE_HEAD_BYTES && offset <= salvage->page_bytes - NODE_HEAD_BYTES) {
            const uint8_t *node = bytes + offset;
            salvage->nodes += !branch;
            size = branch ? NODE_HEAD_BYTES + cbn__pages_u16(node + 6)
                          : take_node(salvage, node, salvage->page_bytes - offset, level);
            if (branch)
                visit(salvage, cbn__load_u32(node) | (uint64_t)cbn__pages_u16(node + 4) << 32, level + 1);
        }
        salvage->broken = salvage->broken || size == 0;
        filled += (size + 1) & ~1u;
    }
    salvage->broken = salvage->broken || filled != salvage->page_bytes;
}

static bool claim(struct salvage *salvage, uint64_t page)
{
    if (page >= salvage->page_count || salvage->seen[page / 8] & 1u << page % 8)
        return false;
    salvage->seen[page / 8] = (uint8_t)(salvage->seen[page / 8] | 1u << page % 8);
    return true;
}

static void visit(struct salvage *salvage, uint64_t page, uint32_t level)
{
    uint8_t *bytes = level <= DEPTH_MAX && claim(salvage, page) ? malloc(salvage->page_bytes) : NULL;
    bool read = bytes && cbn__pages_read_at(salvage->fd, bytes, salvage->page_bytes, page * salvage->page_bytes);
    uint32_t flags = read ? cbn__pages_u16(bytes + PAGE_AT_FLAGS) : 0;
    if (read && cbn__load_u64(bytes) == page && (flags == PAGE_LEAF || flags == PAGE_BRANCH))
        take_nodes(salvage, bytes, level);
    else
        salvage->broken = true;
    if (!salvage->broken) /* else the scan comes by again */
        salvage->taken[page / 8] = (uint8_t)(salvage->taken[page / 8] | 1u << page % 8);
    free(bytes);
}

/*
 * A page of which nothing is believed: every offset that could be a node's is tried, as long as the offsets do not run
 * into the nodes. What is no entry of ours has no seal that matches.
 */
static void try_page(struct salvage *salvage, const uint8_t *bytes)
{
    uint32_t nodes_at = salvage->page_bytes;
    for (uint32_t at = PAGE_HEAD_BYTES; at + 2 <= nodes_at && salvage->code == 0; at += 2) {
        uint32_t offset = cbn__pages_u16(bytes + at);
        if (offset < at + 2 || offset > salvage->page_bytes - NODE_HEAD_BYTES - CBN__STORE_KEY_BYTES ||
            cbn__pages_u16(bytes + offset + 6) != CBN__STORE_KEY_BYTES)
            continue;
        uint64_t before = salvage->judged;
        (void)take_node(salvage, bytes + offset, salvage->page_bytes - offset, 0);
        if (salvage->judged != before && offset < nodes_at)
            nodes_at = offset;
    }
}

/* First pages that say they are leaves and are so bounded, which hold what was current once; then any. */
static void scan(struct salvage *salvage, bool strict)
{
    uint8_t *bytes = malloc(salvage->page_bytes);
    for (uint64_t page = FIRST_DATA_PAGE; bytes && page < salvage->page_count && salvage->code == 0; page++) {
        if (salvage->taken[page / 8] & 1u << page % 8 ||
            !cbn__pages_read_at(salvage->fd, bytes, salvage->page_bytes, page * salvage->page_bytes))
            continue;
        if (!strict)
            try_page(salvage, bytes);
        else if (cbn__load_u64(bytes) == page && cbn__pages_u16(bytes + PAGE_AT_FLAGS) == PAGE_LEAF)
            take_nodes(salvage, bytes, 0);
    }
    free(bytes);
}

/* The newest meta page that can be read; the system's page size where there is none. */
static uint64_t find_root(struct salvage *salvage, uint64_t file_bytes)
{
    uint8_t bytes[META_BYTES];
    struct cbn__pages_meta best = {.page_bytes = (uint32_t)sysconf(_SC_PAGESIZE), .main_root = NO_ROOT};
    for (uint32_t i = 0; i < 2; i++) {
        struct cbn__pages_meta meta = {0};
        if (!cbn__pages_read_at(salvage->fd, bytes, META_BYTES, (uint64_t)i * best.page_bytes) ||
            cbn__pages_parse_meta(bytes, &meta))
            salvage->broken = true;
        else if (best.main_root == NO_ROOT || meta.transaction > best.transaction)
            best = meta;
    }
    salvage->page_bytes = best.page_bytes;
    salvage->page_count = file_bytes / best.page_bytes;
    return best.main_root;
}

static void take_all(struct salvage *salvage, uint64_t root)
{
    if (root != NO_ROOT)
        visit(salvage, root, 1);
    salvage->broken = salvage->broken || salvage->tables < TABLES_LEAST;
    if (salvage->broken) {
        scan(salvage, true);
        scan(salvage, false);
    }
    if (salvage->code == 0)
        commit(salvage);
}

/* The same from the start, after LMDB ran out of pages: it gives those that a commit freed to the one after the next.
 */
static void take_again(struct salvage *salvage, uint64_t root, bool broken)
{
    salvage->code = cbn__session_renew(&salvage->session, MDB_MAP_FULL);
    if (salvage->code == 0)
        salvage->code = measure(salvage);
    if (salvage->code != 0)
        return;
    memset(salvage->seen, 0, salvage->page_count / 8 + 1);
    memset(salvage->taken, 0, salvage->page_count / 8 + 1);
    salvage->broken = broken;
    salvage->nodes = salvage->tables = salvage->young = 0;
    salvage->commit_every = 1;
    take_all(salvage, root);
}

static void take_what_fits(struct salvage *salvage, uint64_t root)
{
    const bool broken = salvage->broken;
    take_all(salvage, root);
    if (salvage->code == MDB_MAP_FULL && !salvage->full)
        take_again(salvage, root, broken);
    if (salvage->code == MDB_MAP_FULL && salvage->full && salvage->young)
        commit(salvage);
}

int cbn__salvage_entries(struct cbn__store *store, int damaged_fd, bool stale, uint64_t *ret_entries)
{
    struct salvage salvage = {
        .fd = damaged_fd, .session = {.store = store}, .code = ENOMEM, .commit_every = COMMIT_EVERY, .broken = stale};
    struct stat status;
    *ret_entries = 0;
    if (fstat(damaged_fd, &status) != 0)
        return errno;
    uint64_t root = find_root(&salvage, (uint64_t)status.st_size);
    salvage.seen = calloc(salvage.page_count / 8 + 1, 1);
    salvage.taken = calloc(salvage.page_count / 8 + 1, 1);
    if (salvage.seen && salvage.taken)
        salvage.code = mdb_txn_begin(store->env, NULL, 0, &salvage.session.txn);
    if (salvage.code == 0) {
        salvage.code = measure(&salvage);
        if (salvage.code == 0)
            salvage.code = count_kept(&salvage);
        if (salvage.kept) /* another try: a commit of many failed, a disk that is nearly full takes a few more */
            salvage.commit_every = 1;
        if (salvage.code == 0)
            take_what_fits(&salvage, root);
        if (salvage.session.txn)
            mdb_txn_abort(salvage.session.txn);
    }
    free(salvage.seen);
    free(salvage.taken);
    *ret_entries = salvage.kept;
    return salvage.code;
}
