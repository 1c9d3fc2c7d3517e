/*
 * Ways to damage a file of pages, drawn from a seed.
 */
#ifndef CBN_TEST_RANDOM_DAMAGE_H
#define CBN_TEST_RANDOM_DAMAGE_H

#include "page_map.h"
#include "random.h"

enum damage {
    DAMAGE_BYTES,     /* 1 to 64 bytes in 1 to 8 places anywhere */
    DAMAGE_STRUCTURE, /* the same where a page keeps its structure */
    DAMAGE_POINTERS,  /* page numbers, bounds, offsets, lengths, counts: of the size of right ones */
    DAMAGE_ZEROES,    /* whole pages */
    DAMAGE_SWAPS,     /* whole pages, with each other */
    DAMAGE_COPIES,    /* a page over another */
    DAMAGE_FOREIGN,   /* pages of another store, in their own place or elsewhere */
    DAMAGE_CUT,
    DAMAGE_GROWTH, /* garbage behind the end */
    DAMAGE_KINDS
};

static uint64_t draw(uint64_t *state, uint64_t below)
{
    return random_next(state) % (below ? below : 1);
}

/* Any page, but half of the time one that leads to entries. */
static uint64_t draw_page(uint64_t *state, const struct page_map *map)
{
    uint64_t page = draw(state, map->page_count);
    if (draw(state, 2))
        return page;
    if (draw(state, 8) == 0)
        return draw(state, 3) ? draw(state, 2) : map->table_page;
    while (map->kinds[page] == KIND_OTHER || map->kinds[page] == KIND_OVERFLOW)
        page = (page + 1) % map->page_count;
    return page;
}

static void scribble(uint64_t *state, struct file *file, size_t at)
{
    for (uint64_t i = draw(state, 64) + 1; i > 0 && at < file->size; i--)
        file->bytes[at++] = (uint8_t)random_next(state);
}

static size_t draw_structure(uint64_t *state, const struct file *file, const struct page_map *map)
{
    uint64_t page = draw_page(state, map);
    const uint8_t *bytes = file->bytes + page * PAGE;
    uint32_t lower = map_u16(bytes + 12), at = (uint32_t)draw(state, page < 2 ? 152 : 16);
    if (page >= 2 && lower > 16 && lower < PAGE && draw(state, 3)) {
        uint32_t slot = 16 + 2 * (uint32_t)draw(state, (lower - 16) / 2);
        at = draw(state, 3) ? map_u16(bytes + slot) + (uint32_t)draw(state, 34) : slot;
    }
    return page * PAGE + at % PAGE;
}

/* One number as LMDB stores it, in its place. */
static void lie(uint64_t *state, struct file *file, const struct page_map *map)
{
    const uint64_t any_page = draw(state, 4) ? draw(state, map->page_count + 8) : random_next(state);
    const uint64_t page = draw_page(state, map);
    uint8_t *bytes = file->bytes + page * PAGE;
    if (page < 2) {
        static const uint8_t fields[] = {40 + 40, 88 + 40, 136, 144, 40 + 8, 88 + 8, 40 + 32, 88 + 32};
        cbn__store_u64(bytes + fields[draw(state, sizeof(fields))], any_page);
        return;
    }
    uint32_t lower = map_u16(bytes + 12), node = (uint32_t)draw(state, PAGE - 40);
    if (lower > 16 && lower < PAGE)
        node = map_u16(bytes + 16 + 2 * draw(state, (lower - 16) / 2)) % (PAGE - 72);
    uint16_t small = (uint16_t)draw(state, draw(state, 2) ? PAGE + 1 : 65536);
    switch (draw(state, 7)) {
    case 0:
        cbn__store_u64(bytes, any_page);
        break;
    case 1: /* lower, upper; or the length of a run */
        memcpy(bytes + 12 + 2 * draw(state, 2), &small, 2);
        break;
    case 2:
        memcpy(bytes + 16 + 2 * draw(state, 16), &small, 2);
        break;
    case 3: /* a child's page, or a value's size and flags */
        cbn__store_u32(bytes + node, (uint32_t)any_page);
        break;
    case 4:
        memcpy(bytes + node + 4 + 2 * draw(state, 2), &small, 2);
        break;
    case 5: /* a run's first page, behind a key of 18 bytes */
        cbn__store_u64(bytes + node + 26, any_page);
        break;
    default: /* a table's root, behind the longest name */
        cbn__store_u64(bytes + node + 8 + 6 + draw(state, 4) + 40, any_page);
        break;
    }
}

static void swap_pages(uint8_t *a, uint8_t *b)
{
    uint8_t kept[PAGE];
    memcpy(kept, a, PAGE);
    memcpy(a, b, PAGE);
    memcpy(b, kept, PAGE);
}

static void harm_pages(uint64_t *state, struct file *file, const struct page_map *map, const struct file *other,
                       enum damage damage)
{
    for (uint64_t i = draw(state, 8) + 1; i > 0; i--) {
        uint8_t *page = file->bytes + draw_page(state, map) * PAGE;
        const uint64_t number = (uint64_t)(page - file->bytes) / PAGE, other_pages = other->size / PAGE;
        const uint64_t from = number < other_pages && draw(state, 2) ? number : draw(state, other_pages);
        if (damage == DAMAGE_ZEROES)
            memset(page, 0, PAGE);
        else if (damage == DAMAGE_SWAPS)
            swap_pages(page, file->bytes + draw_page(state, map) * PAGE);
        else if (damage == DAMAGE_COPIES)
            memmove(page, file->bytes + draw_page(state, map) * PAGE, PAGE);
        else
            memcpy(page, other->bytes + from * PAGE, PAGE);
    }
}

/* file has room for twice its bytes. */
static void do_damage(uint64_t *state, struct file *file, const struct page_map *map, const struct file *other,
                      enum damage damage)
{
    const uint64_t places = draw(state, 8) + 1;
    const size_t size = file->size;
    switch (damage) {
    case DAMAGE_CUT:
        file->size = draw(state, 4) ? draw(state, size) : draw(state, size / PAGE) * PAGE;
        break;
    case DAMAGE_GROWTH:
        for (uint64_t i = draw(state, draw(state, 2) ? size : 3 * PAGE) + 1; i > 0; i--)
            file->bytes[file->size++] = (uint8_t)random_next(state);
        break;
    case DAMAGE_BYTES:
        for (uint64_t i = 0; i < places; i++)
            scribble(state, file, draw(state, size));
        break;
    case DAMAGE_STRUCTURE:
        for (uint64_t i = 0; i < places; i++)
            scribble(state, file, draw_structure(state, file, map));
        break;
    case DAMAGE_POINTERS:
        for (uint64_t i = 0; i < places; i++)
            lie(state, file, map);
        break;
    default:
        harm_pages(state, file, map, other, damage);
        break;
    }
}

static void write_all(int fd, const uint8_t *bytes, size_t size, size_t offset)
{
    while (size > 0) {
        ssize_t done = pwrite(fd, bytes, size, (off_t)offset);
        ck_assert_int_gt(done, 0);
        bytes += done;
        size -= (size_t)done;
        offset += (size_t)done;
    }
}

/* This file and no other of its name's beginning. */
__attribute__((unused)) static void restore(const char *folder, const char *data, const struct file *file)
{
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *item = readdir(dir); item; item = readdir(dir))
        if (strncmp(item->d_name, "data.mdb", 8) == 0)
            (void)unlinkat(dirfd(dir), item->d_name, 0);
    (void)closedir(dir);
    int fd = open(data, O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(fd, 0);
    write_all(fd, file->bytes, file->size, 0);
    (void)close(fd);
}

/* In place, where processes have the file mapped. */
__attribute__((unused)) static void damage_in_place(const char *data, const struct file *was, const struct file *is)
{
    int fd = open(data, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    for (size_t at = 0; at < is->size; at += PAGE) {
        size_t size = is->size - at < PAGE ? is->size - at : PAGE;
        if (at + size > was->size || memcmp(was->bytes + at, is->bytes + at, size) != 0)
            write_all(fd, is->bytes + at, size, at);
    }
    ck_assert_int_eq(ftruncate(fd, (off_t)is->size), 0);
    (void)close(fd);
}

#endif
