/*
 * Which pages of an LMDB file an entry of the test's stands on: read by the layout, and independent of cache/pages.c.
 */
#ifndef CBN_TEST_PAGE_MAP_H
#define CBN_TEST_PAGE_MAP_H

#include "cache_fixture.h"

#define PAGE 4096u
#define MAP_DEPTH 8u

enum page_kind { KIND_OTHER, KIND_META, KIND_BRANCH, KIND_LEAF, KIND_OVERFLOW };

struct file {
    uint8_t *bytes;
    size_t size;
};

struct place {
    bool known;
    uint64_t path[MAP_DEPTH]; /* branches, from the table's root down */
    uint32_t path_count;
    uint64_t leaf;
    uint64_t run, run_pages; /* of an overflow; 0 pages: the value stands in its leaf */
};

struct page_map {
    uint8_t *kinds;      /* a page each: of the newest state's entries and meta pages; the rest is OTHER */
    uint64_t table_page; /* of the main tree, which names the tables */
    uint64_t page_count;
    struct place *places; /* an entry each */
    uint64_t entry_count;
};

static uint32_t map_u16(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
}

__attribute__((unused)) static struct file load(const char *path)
{
    struct file file = {NULL, (size_t)file_bytes(path)};
    file.bytes = malloc(file.size + 1);
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    for (size_t at = 0; at < file.size;) {
        ssize_t got = read(fd, file.bytes + at, file.size - at);
        ck_assert_int_gt(got, 0);
        at += (size_t)got;
    }
    (void)close(fd);
    return file;
}

static const uint8_t *map_node(const uint8_t *page, uint32_t i)
{
    return page + map_u16(page + 16 + 2 * (size_t)i);
}

/* Entries are found by their key's hash, of which hashes[i] are the 16 bytes of entry i. */
static void map_leaf(const struct file *file, struct page_map *map, const struct cbn__hash *hashes,
                     const struct place *way)
{
    const uint8_t *page = file->bytes + way->leaf * PAGE;
    for (uint32_t i = 0; i < (map_u16(page + 12) - 16) / 2; i++) {
        const uint8_t *node = map_node(page, i);
        for (uint64_t which = 0; which < map->entry_count; which++) {
            if (memcmp(hashes[which].bytes, node + 8, CBN__HASH_BYTES) != 0)
                continue;
            struct place *place = &map->places[which];
            *place = *way;
            place->known = true;
            if (!(map_u16(node + 4) & 1))
                break;
            place->run = cbn__load_u64(node + 8 + map_u16(node + 6));
            place->run_pages = (15 + (uint64_t)cbn__load_u32(node)) / PAGE + 1;
            memset(map->kinds + place->run, KIND_OVERFLOW, place->run_pages);
            break;
        }
    }
}

static void map_tree(const struct file *file, struct page_map *map, const struct cbn__hash *hashes, uint64_t number,
                     struct place way)
{
    const uint8_t *page = file->bytes + number * PAGE;
    ck_assert_uint_lt(number, map->page_count);
    if (map_u16(page + 10) == 2) {
        map->kinds[number] = KIND_LEAF;
        way.leaf = number;
        map_leaf(file, map, hashes, &way);
        return;
    }
    ck_assert_uint_eq(map_u16(page + 10), 1);
    ck_assert_uint_lt(way.path_count, MAP_DEPTH);
    map->kinds[number] = KIND_BRANCH;
    way.path[way.path_count++] = number;
    for (uint32_t i = 0; i < (map_u16(page + 12) - 16) / 2; i++) {
        const uint8_t *node = map_node(page, i);
        map_tree(file, map, hashes, cbn__load_u32(node) | (uint64_t)map_u16(node + 4) << 32, way);
    }
}

__attribute__((unused)) static uint64_t newest_meta(const struct file *file)
{
    return cbn__load_u64(file->bytes + 144) > cbn__load_u64(file->bytes + PAGE + 144) ? 0 : 1;
}

/* The root of the table of that name, in a main tree of one leaf. */
static uint64_t root_of_table(const struct file *file, uint64_t main_page, const char *name)
{
    const uint8_t *page = file->bytes + main_page * PAGE;
    ck_assert_uint_eq(map_u16(page + 10), 2);
    for (uint32_t i = 0; i < (map_u16(page + 12) - 16) / 2; i++) {
        const uint8_t *node = map_node(page, i);
        if (map_u16(node + 6) == strlen(name) && memcmp(node + 8, name, strlen(name)) == 0)
            return cbn__load_u64(node + 8 + strlen(name) + 40);
    }
    ck_abort_msg("no table %s", name);
    return 0;
}

__attribute__((unused)) static struct page_map map_pages(const struct file *file, uint64_t entry_count)
{
    struct page_map map = {.page_count = file->size / PAGE, .entry_count = entry_count};
    struct cbn__hash *hashes = calloc(entry_count, sizeof(*hashes));
    map.kinds = calloc(map.page_count, 1);
    map.places = calloc(entry_count, sizeof(*map.places));
    for (uint64_t i = 0; i < entry_count; i++) {
        struct test_key key = key_of(i);
        hashes[i] = cbn__hash_blob(RECORD(key));
    }
    map.kinds[0] = map.kinds[1] = KIND_META;
    map.table_page = cbn__load_u64(file->bytes + newest_meta(file) * PAGE + 128);
    map_tree(file, &map, hashes, root_of_table(file, map.table_page, "entries/1"), (struct place){.known = false});
    for (uint64_t i = 0; i < entry_count; i++)
        ck_assert(map.places[i].known);
    free(hashes);
    return map;
}

__attribute__((unused)) static void map_done(struct page_map *map)
{
    free(map->kinds);
    free(map->places);
}

/* A page of which any byte is another than it was. */
static bool page_is_hit(const struct file *was, const struct file *is, uint64_t page)
{
    return (page + 1) * PAGE > is->size || memcmp(was->bytes + page * PAGE, is->bytes + page * PAGE, PAGE) != 0;
}

/* The entry's leaf and its overflow pages are as they were; what leads there may be gone. */
__attribute__((unused)) static bool place_is_whole(const struct place *place, const struct file *was,
                                                   const struct file *is)
{
    bool whole = !page_is_hit(was, is, place->leaf);
    for (uint64_t i = 0; i < place->run_pages; i++)
        whole = whole && !page_is_hit(was, is, place->run + i);
    return whole;
}

#endif
