/*
 * A bounds-checked walk over the pages of an LMDB 0.9 file.
 */
#include "cache/pages.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/pages_layout.h"

#define DB_KINDS 0x7fu /* above them the free list's record carries flags of the environment */
#define DB_INTEGER_KEY 8u

/* A last page behind the end of the file is believed up to this, or this many times the file: it sizes an array. */
#define FREE_RANGE_PAGES (1ull << 22)
#define FREE_RANGE_PARTS 64u

#define KEY_BYTES_MAX 511u /* LMDB's MDB_MAXKEYSIZE */

/* The last key met in a tree, in order: on a page in its buffer, or kept from a leaf whose buffer has another now. */
struct order {
    uint64_t count; /* of the leaves' nodes so far */
    const uint8_t *key;
    uint8_t kept[KEY_BYTES_MAX];
    uint32_t bytes; /* 0: none yet */
    bool separates; /* of a branch: the next key may be equal to it */
};

#define NESTED_PAGES (2 * DEPTH_MAX) /* of the tree of tables, and of one of them below it */

struct walk {
    int fd;
    bool every_head; /* of runs of the tables, too */
    struct cbn__pages_meta meta;
    uint64_t *seen;                 /* a bit a page */
    uint8_t *buffers[NESTED_PAGES]; /* a page each, for one on the way from the root; kept from page to page */
    uint32_t nested;
    uint16_t *sizes; /* of the nodes of one page, by half their offset; all 0 between two pages */
    struct order *order;
    const char *problem;
    uint64_t problem_page;
    bool out_of_memory;
};

static bool refuse(struct walk *walk, uint64_t page, const char *problem)
{
    if (!walk->problem) {
        walk->problem = problem;
        walk->problem_page = page;
    }
    return false;
}

static bool run_out(struct walk *walk)
{
    walk->out_of_memory = true;
    return false;
}

bool cbn__pages_read_at(int fd, void *bytes, size_t size, uint64_t offset)
{
    uint8_t *to = bytes;
    while (size > 0) {
        ssize_t got = pread(fd, to, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return true;
}

static bool page_size_is_sane(uint32_t bytes)
{
    return bytes >= PAGE_BYTES_MIN && bytes <= PAGE_BYTES_MAX && (bytes & (bytes - 1)) == 0;
}

const char *cbn__pages_parse_meta(const uint8_t *bytes, struct cbn__pages_meta *meta)
{
    if (cbn__pages_u16(bytes + PAGE_AT_FLAGS) != PAGE_META)
        return "a meta page is not one";
    if (cbn__pages_u32(bytes + META_AT_MAGIC) != META_MAGIC || cbn__pages_u32(bytes + META_AT_VERSION) != META_VERSION)
        return "a meta page has another magic number or version";
    meta->page_bytes = cbn__pages_u32(bytes + META_AT_FREE_DB);
    meta->free_root = cbn__pages_u64(bytes + META_AT_FREE_DB + DB_AT_ROOT);
    meta->main_root = cbn__pages_u64(bytes + META_AT_MAIN_DB + DB_AT_ROOT);
    meta->last_page = cbn__pages_u64(bytes + META_AT_LAST_PAGE);
    meta->transaction = cbn__pages_u64(bytes + META_AT_TRANSACTION);
    if (!page_size_is_sane(meta->page_bytes))
        return "a meta page states a page size that cannot be";
    if (meta->last_page < 1 || meta->last_page > (UINT64_MAX >> 1) / meta->page_bytes)
        return "a meta page states a last page that cannot be";
    return NULL;
}

uint32_t cbn__pages_other_version(int fd)
{
    uint8_t first[META_BYTES], second[META_BYTES];
    if (!cbn__pages_read_at(fd, first, META_BYTES, 0) || cbn__pages_u32(first + META_AT_MAGIC) != META_MAGIC)
        return 0;
    uint32_t version = cbn__pages_u32(first + META_AT_VERSION);
    for (uint64_t page_bytes = PAGE_BYTES_MIN; page_bytes <= PAGE_BYTES_MAX && version != META_VERSION; page_bytes *= 2)
        if (cbn__pages_read_at(fd, second, META_BYTES, page_bytes) &&
            cbn__pages_u32(second + META_AT_MAGIC) == META_MAGIC && cbn__pages_u32(second + META_AT_VERSION) == version)
            return version;
    return 0;
}

const char *cbn__pages_read_meta(int fd, struct cbn__pages_meta *ret_meta)
{
    uint8_t bytes[2][META_BYTES];
    struct cbn__pages_meta metas[2] = {{0}, {0}};
    struct stat status;
    if (fstat(fd, &status) != 0 || !cbn__pages_read_at(fd, bytes[0], META_BYTES, 0))
        return "the file is too short for a meta page";
    const char *problem = cbn__pages_parse_meta(bytes[0], &metas[0]);
    if (problem)
        return problem;
    if (!cbn__pages_read_at(fd, bytes[1], META_BYTES, metas[0].page_bytes))
        return "the file is too short for its meta pages";
    problem = cbn__pages_parse_meta(bytes[1], &metas[1]);
    if (problem)
        return problem;
    if (metas[0].page_bytes != metas[1].page_bytes)
        return "the meta pages differ in page size";
    *ret_meta = metas[0].transaction < metas[1].transaction ? metas[1] : metas[0];
    ret_meta->file_bytes = (uint64_t)status.st_size;
    if (ret_meta->file_bytes < 2ull * ret_meta->page_bytes)
        return "the file is too short for its meta pages";
    return NULL;
}

/* Every page belongs to one place: a page reached twice is a cross-link, or a page that is free and used at once. */
static bool claim(struct walk *walk, uint64_t page, uint64_t count)
{
    if (page < FIRST_DATA_PAGE || page > walk->meta.last_page || count > walk->meta.last_page - page + 1)
        return refuse(walk, page, "page lies outside of the file's range");
    for (uint64_t i = page, end = page + count; i < end;) {
        uint64_t *word = &walk->seen[i / 64], here = 64 - i % 64 < end - i ? 64 - i % 64 : end - i;
        uint64_t mask = (here == 64 ? UINT64_MAX : (1ull << here) - 1) << i % 64;
        if (*word & mask)
            return refuse(walk, i - i % 64 + (uint64_t)__builtin_ctzll(*word & mask), "page is reached twice");
        *word |= mask;
        i += here;
    }
    return true;
}

static bool inside_file(struct walk *walk, uint64_t page, uint64_t count)
{
    if (page + count <= walk->meta.file_bytes / walk->meta.page_bytes)
        return true;
    return refuse(walk, page, "page lies behind the end of the file");
}

static bool read_page(struct walk *walk, uint64_t page, uint8_t *bytes)
{
    if (!inside_file(walk, page, 1) ||
        !cbn__pages_read_at(walk->fd, bytes, walk->meta.page_bytes, page * walk->meta.page_bytes))
        return refuse(walk, page, "page cannot be read");
    if (cbn__pages_u64(bytes) != page)
        return refuse(walk, page, "page carries another number");
    return true;
}

struct node {
    const uint8_t *data; /* inline bytes */
    uint64_t child;      /* of a branch, or first page of an overflow run */
    uint32_t size, flags, key_bytes;
    const uint8_t *key;
};

/* Node i of a page whose lower and upper bounds were checked. Inline: read twice a node, 400,000 times a large file. */
__attribute__((always_inline)) static inline bool read_node(struct walk *walk, uint64_t page, const uint8_t *bytes,
                                                            uint32_t i, bool branch, struct node *ret_node)
{
    uint32_t page_bytes = walk->meta.page_bytes;
    uint32_t offset = cbn__pages_u16(bytes + PAGE_HEAD_BYTES + 2 * (size_t)i);
    if (offset < cbn__pages_u16(bytes + PAGE_AT_UPPER) || offset > page_bytes - NODE_HEAD_BYTES)
        return refuse(walk, page, "page holds a node outside of itself");
    const uint8_t *node = bytes + offset;
    uint32_t rest = page_bytes - offset - NODE_HEAD_BYTES;
    *ret_node = (struct node){.size = cbn__pages_u32(node),
                              .flags = cbn__pages_u16(node + 4),
                              .key_bytes = cbn__pages_u16(node + 6),
                              .key = node + NODE_HEAD_BYTES};
    if (ret_node->key_bytes > rest)
        return refuse(walk, page, "page holds a key longer than itself");
    rest -= ret_node->key_bytes;
    if (branch) {
        ret_node->child = (uint64_t)ret_node->size | (uint64_t)ret_node->flags << 32;
        return true;
    }
    if (ret_node->flags & ~NODE_KNOWN)
        return refuse(walk, page, "page holds a node of an unknown kind");
    uint32_t inline_bytes = ret_node->flags & NODE_BIG ? 8 : ret_node->size;
    if (inline_bytes > rest)
        return refuse(walk, page, "page holds a value longer than itself");
    ret_node->data = ret_node->key + ret_node->key_bytes;
    if (ret_node->flags & NODE_BIG)
        ret_node->child = cbn__pages_u64(ret_node->data);
    return true;
}

enum tree { TREE_FREE, TREE_MAIN, TREE_TABLE };

static bool check_overflow(struct walk *walk, const struct node *node, enum tree tree)
{
    uint64_t count = (PAGE_HEAD_BYTES - 1 + (uint64_t)node->size) / walk->meta.page_bytes + 1;
    uint8_t head[PAGE_HEAD_BYTES];
    if (!claim(walk, node->child, count) || !inside_file(walk, node->child, count))
        return false;
    if (tree == TREE_TABLE && !walk->every_head)
        return true;
    if (!cbn__pages_read_at(walk->fd, head, sizeof(head), node->child * walk->meta.page_bytes))
        return refuse(walk, node->child, "page cannot be read");
    if (cbn__pages_u64(head) != node->child || cbn__pages_u16(head + PAGE_AT_FLAGS) != PAGE_OVERFLOW ||
        cbn__pages_u32(head + PAGE_AT_RUN) != count)
        return refuse(walk, node->child, "page does not begin the run of pages that it should");
    return true;
}

/* A record of the free list: a count, then page numbers, descending. LMDB would write to any page named here. */
static bool check_free_list(struct walk *walk, uint64_t page, const uint8_t *bytes, uint64_t size)
{
    if (size < 8 || cbn__pages_u64(bytes) != size / 8 - 1 || size % 8)
        return refuse(walk, page, "page holds a free list of a wrong length");
    for (uint64_t at = 8; at < size; at += 8) {
        if (at > 8 && cbn__pages_u64(bytes + at) >= cbn__pages_u64(bytes + at - 8))
            return refuse(walk, page, "page holds a free list out of order");
        if (!claim(walk, cbn__pages_u64(bytes + at), 1))
            return false;
    }
    return true;
}

static bool check_free_node(struct walk *walk, uint64_t page, const struct node *node)
{
    if (node->key_bytes != 8 || node->flags & NODE_TABLE)
        return refuse(walk, page, "page holds a free list under a wrong key");
    uint64_t transaction = cbn__pages_u64(node->key);
    if (transaction == 0 || transaction > walk->meta.transaction)
        return refuse(walk, page, "page holds a free list of no transaction");
    /* LMDB reserves the record before it knows its final length: what is stored may be longer than the list. */
    uint64_t size = node->size;
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        return run_out(walk);
    bool read = true;
    if (node->flags & NODE_BIG)
        read = cbn__pages_read_at(walk->fd, bytes, size, node->child * walk->meta.page_bytes + PAGE_HEAD_BYTES);
    else
        memcpy(bytes, node->data, size);
    uint64_t count = read && size >= 8 ? cbn__pages_u64(bytes) : 0;
    if (count < size / 8)
        size = (count + 1) * 8;
    bool sound = read ? check_free_list(walk, page, bytes, size) : refuse(walk, page, "page cannot be read");
    free(bytes);
    return sound;
}

static bool is_behind(const struct order *order, const struct node *node, enum tree tree)
{
    if (order->bytes == 0)
        return true;
    if (tree == TREE_FREE) {
        uint64_t key = cbn__pages_u64(node->key), last = cbn__pages_u64(order->key);
        return key > last || (order->separates && key == last);
    }
    uint32_t shared = node->key_bytes < order->bytes ? node->key_bytes : order->bytes;
    /* Nearly every key differs in its first bytes, being a hash. */
    if (shared >= 8 && cbn__pages_be64(node->key) != cbn__pages_be64(order->key))
        return cbn__pages_be64(node->key) > cbn__pages_be64(order->key);
    int compared = memcmp(node->key, order->key, shared);
    if (compared != 0)
        return compared > 0;
    return node->key_bytes > order->bytes || (order->separates && node->key_bytes == order->bytes);
}

static void keep_key(struct order *order)
{
    memcpy(order->kept, order->key, order->bytes);
    order->key = order->kept;
}

/*
 * Out of order, LMDB takes a free list twice and then aborts, a walk by keys goes round and round, and a key that a
 * branch leads past is lost. separates: a branch's node, which lies behind all to its left and not behind its own.
 */
static bool check_order(struct walk *walk, uint64_t page, const struct node *node, enum tree tree, bool separates)
{
    struct order *order = walk->order;
    if (node->key_bytes == 0 || node->key_bytes > KEY_BYTES_MAX || (tree == TREE_FREE && node->key_bytes != 8))
        return refuse(walk, page, "page holds a key of an impossible length");
    if (!is_behind(order, node, tree))
        return refuse(walk, page, "page holds keys out of order");
    order->key = node->key;
    order->bytes = node->key_bytes;
    order->separates = separates;
    return true;
}

static bool check_page(struct walk *walk, uint64_t page, enum tree tree, uint32_t level, uint32_t depth);

/* record: the tree's, as LMDB keeps it. A root or a depth that leads past some of its nodes shows in their count. */
static bool check_tree(struct walk *walk, const uint8_t *record, enum tree tree)
{
    const uint64_t root = cbn__pages_u64(record + DB_AT_ROOT), entries = cbn__pages_u64(record + DB_AT_ENTRIES);
    const uint32_t depth = cbn__pages_u16(record + DB_AT_DEPTH);
    /* LMDB sizes its work by the depth, of an empty tree too. */
    if (root == NO_ROOT)
        return (depth == 0 && entries == 0) || refuse(walk, 0, "page states a depth or entries of an empty tree");
    if (depth < 1 || depth > DEPTH_MAX)
        return refuse(walk, root, "page is the root of a tree of impossible depth");
    struct order order = {.bytes = 0}, *outer = walk->order;
    walk->order = &order;
    bool sound = check_page(walk, root, tree, 1, depth);
    walk->order = outer;
    if (sound && order.count != entries)
        return refuse(walk, root, "page is the root of a tree of another count of entries than stated");
    return sound;
}

static bool check_table(struct walk *walk, uint64_t page, const struct node *node)
{
    if (node->size != DB_BYTES || node->flags & NODE_BIG)
        return refuse(walk, page, "page holds a table's record of a wrong size");
    if (cbn__pages_u16(node->data + DB_AT_FLAGS) != 0)
        return refuse(walk, page, "page holds a table of an unknown kind");
    return check_tree(walk, node->data, TREE_TABLE);
}

static bool check_leaf_node(struct walk *walk, uint64_t page, const struct node *node, enum tree tree)
{
    if (node->flags & NODE_BIG && !check_overflow(walk, node, tree))
        return false;
    if (tree == TREE_FREE)
        return check_free_node(walk, page, node);
    /* LMDB would take any leaf for one that names no table of ours, and make them anew. */
    if (!(node->flags & NODE_TABLE))
        return tree == TREE_TABLE || refuse(walk, page, "page holds a value in the place of a table");
    return tree == TREE_MAIN ? check_table(walk, page, node)
                             : refuse(walk, page, "page holds a table inside of a table");
}

/*
 * Nodes fill their page from its upper bound to its end, each at an even offset, without a gap and none over another:
 * LMDB moves bytes by the sizes that they state when it deletes one.
 */
static bool check_tiling(struct walk *walk, uint64_t page, const uint8_t *bytes, uint32_t count, bool branch)
{
    uint32_t met = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct node node;
        if (!read_node(walk, page, bytes, i, branch, &node))
            return false;
        uint32_t offset = cbn__pages_u16(bytes + PAGE_HEAD_BYTES + 2 * (size_t)i);
        uint32_t data_bytes = branch ? 0 : node.flags & NODE_BIG ? 8 : node.size;
        uint32_t size = (NODE_HEAD_BYTES + node.key_bytes + data_bytes + 1) & ~1u;
        if (offset % 2 || offset + size > walk->meta.page_bytes)
            return refuse(walk, page, "page holds a node outside of itself");
        if (walk->sizes[offset / 2])
            return refuse(walk, page, "page holds a node over another");
        walk->sizes[offset / 2] = (uint16_t)size;
    }
    /* From node to node: the way meets all of them, or one of them begins within another. */
    for (uint32_t at = cbn__pages_u16(bytes + PAGE_AT_UPPER), size; at < walk->meta.page_bytes; at += size, met++) {
        size = walk->sizes[at / 2];
        if (size == 0)
            return refuse(walk, page, "page holds bytes between its nodes");
        walk->sizes[at / 2] = 0;
    }
    return met == count || refuse(walk, page, "page holds a node over another");
}

static bool check_nodes(struct walk *walk, uint64_t page, const uint8_t *bytes, enum tree tree, uint32_t level,
                        uint32_t depth)
{
    bool branch = cbn__pages_u16(bytes + PAGE_AT_FLAGS) == PAGE_BRANCH;
    uint32_t lower = cbn__pages_u16(bytes + PAGE_AT_LOWER), upper = cbn__pages_u16(bytes + PAGE_AT_UPPER);
    if (lower < PAGE_HEAD_BYTES || lower > upper || upper > walk->meta.page_bytes || lower % 2 || upper % 2)
        return refuse(walk, page, "page has impossible bounds");
    uint32_t count = (lower - PAGE_HEAD_BYTES) / 2;
    if (count < (branch ? 2u : 1u))
        return refuse(walk, page, "page holds too few nodes");
    if (!check_tiling(walk, page, bytes, count, branch))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        struct node node;
        if (!read_node(walk, page, bytes, i, branch, &node))
            return false;
        /* What the first node of a branch has for a key is not looked at by LMDB. */
        if ((!branch || i > 0) && !check_order(walk, page, &node, tree, branch))
            return false;
        walk->order->count += !branch;
        if (!(branch ? check_page(walk, node.child, tree, level + 1, depth) : check_leaf_node(walk, page, &node, tree)))
            return false;
    }
    if (!branch)
        keep_key(walk->order);
    return true;
}

/* The page's own buffer: of the next depth below the page that leads to it. */
static bool check_page(struct walk *walk, uint64_t page, enum tree tree, uint32_t level, uint32_t depth)
{
    if (!claim(walk, page, 1))
        return false;
    uint8_t **buffer = &walk->buffers[walk->nested], *bytes = *buffer;
    if (!bytes)
        *buffer = bytes = malloc(walk->meta.page_bytes);
    if (!bytes)
        return run_out(walk);
    walk->nested++;
    bool sound = read_page(walk, page, bytes);
    if (sound && cbn__pages_u16(bytes + PAGE_AT_FLAGS) != (level < depth ? PAGE_BRANCH : PAGE_LEAF))
        sound = refuse(walk, page, "page is of the wrong kind");
    sound = sound && check_nodes(walk, page, bytes, tree, level, depth);
    walk->nested--;
    return sound;
}

static bool check_trees(struct walk *walk)
{
    uint8_t meta[2][META_BYTES] = {{0}};
    for (uint32_t i = 0; i < 2; i++)
        if (!cbn__pages_read_at(walk->fd, meta[i], META_BYTES, (uint64_t)i * walk->meta.page_bytes))
            return refuse(walk, i, "page cannot be read");
    const uint8_t *newest = cbn__pages_u64(meta[0] + META_AT_TRANSACTION) == walk->meta.transaction ? meta[0] : meta[1];
    if ((cbn__pages_u16(newest + META_AT_FREE_DB + DB_AT_FLAGS) & DB_KINDS) != DB_INTEGER_KEY ||
        cbn__pages_u16(newest + META_AT_MAIN_DB + DB_AT_FLAGS) != 0)
        return refuse(walk, newest == meta[0] ? 0 : 1, "page states a tree of an unknown kind");
    return check_tree(walk, newest + META_AT_MAIN_DB, TREE_MAIN) &&
           check_tree(walk, newest + META_AT_FREE_DB, TREE_FREE);
}

/*
 * A healthy file lacks only pages that are free. A last page that is stated too high would have the file grow to it,
 * and leave no room below the bound.
 */
static bool check_behind_end(struct walk *walk)
{
    for (uint64_t i = walk->meta.file_bytes / walk->meta.page_bytes; i <= walk->meta.last_page; i++)
        if (!(walk->seen[i / 64] & 1ull << i % 64))
            return refuse(walk, i, "page lies behind the end of the file and is not free");
    return true;
}

static bool make_buffers(struct walk *walk)
{
    walk->seen = calloc(walk->meta.last_page / 64 + 1, sizeof(*walk->seen));
    walk->sizes = calloc(walk->meta.page_bytes / 2, sizeof(*walk->sizes));
    return (walk->seen && walk->sizes) || run_out(walk);
}

static void free_buffers(struct walk *walk)
{
    for (uint32_t i = 0; i < NESTED_PAGES; i++)
        free(walk->buffers[i]);
    free(walk->sizes);
    free(walk->seen);
}

static int check(int fd, bool every_head, struct cbn__pages_meta *ret_meta, char ret_problem[CBN__PAGES_PROBLEM_BYTES])
{
    struct walk walk = {.fd = fd};
    const char *problem = cbn__pages_read_meta(fd, &walk.meta);
    /* A file may state more pages than it has (LMDB does not write what it freed in the same transaction). */
    if (!problem && walk.meta.last_page > FREE_RANGE_PAGES &&
        walk.meta.last_page / FREE_RANGE_PARTS > walk.meta.file_bytes / walk.meta.page_bytes)
        problem = "a meta page states a last page that cannot be";
    if (problem) {
        (void)snprintf(ret_problem, CBN__PAGES_PROBLEM_BYTES, "%s", problem);
        return EBADMSG;
    }
    walk.every_head = every_head || !cbn__pages_are_aligned(walk.meta.page_bytes);
    bool sound = make_buffers(&walk) && check_trees(&walk) && check_behind_end(&walk);
    free_buffers(&walk);
    *ret_meta = walk.meta;
    if (walk.out_of_memory)
        return ENOMEM;
    if (!sound)
        (void)snprintf(ret_problem, CBN__PAGES_PROBLEM_BYTES, "%s: page %llu", walk.problem,
                       (unsigned long long)walk.problem_page);
    return sound ? 0 : EBADMSG;
}

int cbn__pages_check(int fd, struct cbn__pages_meta *ret_meta, char ret_problem[CBN__PAGES_PROBLEM_BYTES])
{
    return check(fd, false, ret_meta, ret_problem);
}

int cbn__pages_check_runs(int fd, struct cbn__pages_meta *ret_meta, char ret_problem[CBN__PAGES_PROBLEM_BYTES])
{
    return check(fd, true, ret_meta, ret_problem);
}
