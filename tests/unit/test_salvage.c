/*
 * A store of 400 entries, every byte of its meta, branch and leaf pages changed, one at a time: nothing faults, no
 * wrong cubin is given out, and what the damage did not touch is still there.
 *
 * ctest changes a sample. CUBINET_SWEEP=full in the environment takes every byte (about 100,000 of them).
 */
#include "page_map.h"

#define ENTRIES 400u
#define INLINE_EVERY 50u
#define PINNED_EVERY 40u
#define SAMPLE_STEP 241u /* prime to the page: every place of a page is met */
#define TELL_MOST 20u
#define FULL_PUTS 3000u

static size_t size_of(uint64_t which)
{
    return which % INLINE_EVERY == 0 ? 100 : 2300;
}

static size_t full_size(uint64_t which)
{
    return which % 10 == 0 ? 2300 + which % 7 * 900 : 150 + which * 37 % 800;
}

static struct cbn__hash hash_of(uint64_t which)
{
    struct test_key key = key_of(which);
    return cbn__hash_blob(RECORD(key));
}

/* In one piece, without pages left over from its making; then a put and a drop, so that there is a free list. */
static void make_store(const char *folder)
{
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t i = 0; i < ENTRIES; i++)
        ck_assert_int_eq(put(cabinet, i, size_of(i), 13000), CBN_STATUS_OK);
    for (uint64_t i = 0; i < ENTRIES; i += PINNED_EVERY) {
        struct cbn__hash hash = hash_of(i);
        ck_assert_int_eq(cbn__cabinet_pin(cabinet, &hash, true, NULL), CBN_STATUS_OK);
    }
    ck_assert_int_eq(cbn__cabinet_compact(cabinet, NULL), CBN_STATUS_OK);
    struct cbn__hash extra = hash_of(ENTRIES);
    ck_assert_int_eq(put(cabinet, ENTRIES, 2300, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__cabinet_drop(cabinet, &extra, NULL), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
}

/* The file as it was, but for one byte; and nothing set aside. */
static void restore(const char *folder, const struct file *file, size_t at, uint8_t mask)
{
    char path[2 * PATH_BYTES];
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *item = readdir(dir); item; item = readdir(dir))
        if (strncmp(item->d_name, "data.mdb", 8) == 0)
            (void)unlinkat(dirfd(dir), item->d_name, 0);
    (void)closedir(dir);
    snprintf(path, sizeof(path), "%s/data.mdb", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, file->bytes, file->size), (ssize_t)file->size);
    uint8_t byte = file->bytes[at] ^ mask;
    ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
    (void)close(fd);
}

static uint32_t hits_of(struct cbn__cabinet *cabinet)
{
    uint32_t hits = 0;
    for (uint64_t i = 0; i < ENTRIES; i++)
        hits += find(cabinet, i, size_of(i)) == CBN__LOOKUP_HIT; /* find asserts that the bytes are right */
    return hits;
}

struct sweep {
    uint64_t flips, aside, unharmed, least_hits, lost, told;
};

/* Look-ups that hit; what does not is an entry of the leaf that holds the byte. */
static uint32_t hits_beside(struct cbn__cabinet *cabinet, const struct page_map *map, size_t at)
{
    uint32_t hits = 0;
    for (uint64_t i = 0; i < ENTRIES; i++) {
        bool hit = find(cabinet, i, size_of(i)) == CBN__LOOKUP_HIT;
        ck_assert_msg(hit || map->places[i].leaf == at / PAGE, "byte %zu of page %zu: entry %llu of page %llu is lost",
                      at % PAGE, at / PAGE, (unsigned long long)i, (unsigned long long)map->places[i].leaf);
        hits += hit;
    }
    return hits;
}

static void flip(const char *folder, const struct file *file, const struct page_map *map, size_t at,
                 struct sweep *sweep)
{
    struct events events = {0};
    restore(folder, file, at, (uint8_t)(1u << at % 8));
    struct cbn__cabinet *cabinet = open_cabinet(folder, &events);
    uint32_t hits = hits_beside(cabinet, map, at);
    ck_assert_int_eq(put(cabinet, ENTRIES + 1, 2300, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, ENTRIES + 1, 2300), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    sweep->flips++;
    sweep->aside += count_files(folder, "data.mdb.damaged-") > 0;
    sweep->unharmed += hits == ENTRIES;
    sweep->lost += ENTRIES - hits;
    if (hits + 1 < ENTRIES && sweep->told++ < TELL_MOST)
        fprintf(stderr, "byte %zu of page %zu: %u entries served\n", at % PAGE, at / PAGE, hits);
    if (hits < sweep->least_hits)
        sweep->least_hits = hits;
}

static bool is_tree_page(const uint8_t *page)
{
    uint32_t flags = page[10] | (uint32_t)page[11] << 8;
    return flags == 1 || flags == 2 || flags == 8; /* branch, leaf, meta */
}

START_TEST(every_byte_of_every_tree_page)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    const char *wanted = getenv("CUBINET_SWEEP");
    const size_t step = wanted && strcmp(wanted, "full") == 0 ? 1 : SAMPLE_STEP;
    char lasting[2 * PATH_BYTES];
    snprintf(lasting, sizeof(lasting), "%s", folder);
    make_store(lasting);
    struct file file = load(in(&scratch, "cache/data.mdb"));
    struct page_map map = map_pages(&file, ENTRIES);
    struct sweep sweep = {.least_hits = ENTRIES};
    uint64_t pages = 0;
    for (size_t page = 0; page < file.size / PAGE; page++) {
        if (!is_tree_page(file.bytes + page * PAGE))
            continue;
        for (size_t i = pages * 37 % step; i < PAGE; i += step)
            flip(lasting, &file, &map, page * PAGE + i, &sweep);
        pages++;
    }
    printf(
        "%llu pages, %llu bytes changed: %llu files set aside, %llu times all %u entries served, at least %llu, %llu "
        "look-ups lost\n",
        (unsigned long long)pages, (unsigned long long)sweep.flips, (unsigned long long)sweep.aside,
        (unsigned long long)sweep.unharmed, ENTRIES, (unsigned long long)sweep.least_hits,
        (unsigned long long)sweep.lost);
    (void)fflush(stdout);
    ck_assert_uint_ge(pages, 20);
    ck_assert_uint_gt(sweep.aside, 0);
    ck_assert_uint_ge(sweep.least_hits, ENTRIES - 1);
    map_done(&map);
    free(file.bytes);
}
END_TEST

static struct cbn__layer_stats stats_of(struct cbn__cabinet *cabinet)
{
    struct cbn__layer_stats stats = {0};
    ck_assert_int_eq(cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    return stats;
}

/* The newest meta page lies: everything is found by scanning, pins and uses with it. */
START_TEST(pins_and_uses_are_salvaged)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    char lasting[2 * PATH_BYTES];
    snprintf(lasting, sizeof(lasting), "%s", folder);
    make_store(lasting);
    struct cbn__cabinet *cabinet = open_cabinet(lasting, NULL);
    ck_assert_int_eq(find(cabinet, 7, 0), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    struct file file = load(in(&scratch, "cache/data.mdb"));
    memset(file.bytes + 16, 0, 4); /* both magic numbers */
    memset(file.bytes + PAGE + 16, 0, 4);
    restore(lasting, &file, 0, 0);
    struct events events = {0};
    cabinet = open_cabinet(lasting, &events);
    ck_assert_int_eq(events.damages, 1);
    ck_assert_ptr_nonnull(strstr(events.last, "of its entries were salvaged"));
    ck_assert_uint_eq(stats_of(cabinet).pinned, ENTRIES / PINNED_EVERY);
    ck_assert_uint_eq(hits_of(cabinet), ENTRIES);
    struct test_key key = key_of(7);
    struct cbn__entry entry;
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry), CBN__LOOKUP_HIT);
    ck_assert_uint_eq(entry.hits, 2);
    cbn__entry_done(&entry);
    cbn__cabinet_close(cabinet);
    free(file.bytes);
}
END_TEST

/* Damage beside the entries' tree: what is reachable is taken, and what had been dropped stays so. */
START_TEST(what_was_dropped_stays_so)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    char lasting[2 * PATH_BYTES];
    snprintf(lasting, sizeof(lasting), "%s", folder);
    make_store(lasting);
    struct cbn__cabinet *cabinet = open_cabinet(lasting, NULL);
    for (uint64_t i = 1; i < ENTRIES; i += 2) {
        struct cbn__hash hash = hash_of(i);
        ck_assert_int_eq(cbn__cabinet_drop(cabinet, &hash, NULL), CBN_STATUS_OK);
    }
    struct cbn__pages_meta meta;
    ck_assert_ptr_null(cbn__pages_read_meta(cabinet->layers[0].store->data_fd, &meta));
    cbn__cabinet_close(cabinet);
    struct file file = load(in(&scratch, "cache/data.mdb"));
    cabinet = open_cabinet(lasting, NULL);
    ck_assert_ptr_null(cbn__pages_read_meta(cabinet->layers[0].store->data_fd, &meta));
    cbn__cabinet_close(cabinet);
    ck_assert_uint_ne(meta.free_root, UINT64_MAX);
    restore(lasting, &file, meta.free_root * PAGE + 12, 1); /* the bounds of the free list's root */
    struct events events = {0};
    cabinet = open_cabinet(lasting, &events);
    ck_assert_int_eq(events.damages, 1);
    ck_assert_ptr_nonnull(strstr(events.last, "; 200 of its entries were salvaged"));
    ck_assert_uint_eq(hits_of(cabinet), ENTRIES / 2);
    cbn__cabinet_close(cabinet);
    free(file.bytes);
}
END_TEST

/* More than the bound of today takes: what fits is kept, and the bound holds. */
START_TEST(a_bound_that_is_smaller_now)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    char lasting[2 * PATH_BYTES];
    snprintf(lasting, sizeof(lasting), "%s", folder);
    make_store(lasting);
    struct file file = load(in(&scratch, "cache/data.mdb"));
    restore(lasting, &file, 16, 0xFF);
    struct events events = {0};
    struct cbn__cabinet_options options = options_for(lasting, &events);
    struct cbn__cabinet *cabinet = NULL;
    options.max_bytes = 512 << 10;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(events.damages, 1);
    uint32_t hits = hits_of(cabinet);
    ck_assert_uint_gt(hits, 30);
    ck_assert_uint_lt(hits, 128);
    ck_assert_int_eq(put(cabinet, ENTRIES + 1, 2300, 13000), CBN_STATUS_OK);
    ck_assert_int_le(file_bytes(in(&scratch, "cache/data.mdb")), 512 << 10);
    cbn__cabinet_close(cabinet);
    free(file.bytes);
}
END_TEST

/* Three entries in a leaf stand where three tables are stated: every page is sound, and none of them is a table. */
START_TEST(a_main_root_that_leads_into_a_table)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache"), *data = in(&scratch, "cache/data.mdb");
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t i = 0; i < 3; i++)
        ck_assert_int_eq(put(cabinet, i, 100, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    struct file file = load(data);
    uint8_t *root = file.bytes + newest_meta(&file) * PAGE + 128;
    cbn__store_u64(root, root_of_table(&file, cbn__load_u64(root), "entries/1"));
    restore(folder, &file, 0, 0);
    struct events events = {0};
    cabinet = open_cabinet(folder, &events);
    ck_assert_int_eq(events.damages, 1);
    for (uint64_t i = 0; i < 3; i++)
        ck_assert_int_eq(find(cabinet, i, 100), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    free(file.bytes);
}
END_TEST

/* A store as full as its bound lets it be comes back under the same bound, and takes puts again. */
START_TEST(a_full_store_is_salvaged)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    char lasting[2 * PATH_BYTES];
    snprintf(lasting, sizeof(lasting), "%s", folder);
    struct cbn__cabinet_options options = options_for(lasting, NULL);
    struct cbn__cabinet *cabinet = NULL;
    uint32_t before = 0, after = 0;
    options.max_bytes = 2 << 20;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    for (uint64_t i = 0; i < FULL_PUTS; i++)
        ck_assert_int_eq(put(cabinet, i, full_size(i), 13000), CBN_STATUS_OK);
    for (uint64_t i = 0; i < FULL_PUTS; i++)
        before += find(cabinet, i, full_size(i)) == CBN__LOOKUP_HIT;
    cbn__cabinet_close(cabinet);
    ck_assert_uint_lt(before, FULL_PUTS);
    struct file file = load(in(&scratch, "cache/data.mdb"));
    /* Everything is found by scanning, in the order of pages, which is none of keys. */
    if (_i == 0)
        memset(file.bytes + 16, 0, 4), memset(file.bytes + PAGE + 16, 0, 4);
    else /* along the trees, in the order of keys */
        file.bytes[newest_meta(&file) * PAGE + 136]++;
    restore(lasting, &file, 0, 0);
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    for (uint64_t i = 0; i < FULL_PUTS; i++)
        after += find(cabinet, i, full_size(i)) == CBN__LOOKUP_HIT;
    ck_assert_uint_ge(after, before); /* a page left over may bring back what was evicted */
    for (uint64_t i = 0; i < 100; i++) {
        ck_assert_int_eq(put(cabinet, FULL_PUTS + i, 3000, 13000), CBN_STATUS_OK);
        ck_assert_int_eq(find(cabinet, FULL_PUTS + i, 3000), CBN__LOOKUP_HIT);
    }
    ck_assert_int_le(file_bytes(in(&scratch, "cache/data.mdb")), 2 << 20);
    cbn__cabinet_close(cabinet);
    free(file.bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("salvage");
    TCase *cases = tcase_create("salvage");
    tcase_set_timeout(cases, getenv("CUBINET_SWEEP") ? 3600 : 240);
    tcase_add_test(cases, every_byte_of_every_tree_page);
    tcase_add_test(cases, pins_and_uses_are_salvaged);
    tcase_add_test(cases, what_was_dropped_stays_so);
    tcase_add_test(cases, a_bound_that_is_smaller_now);
    tcase_add_test(cases, a_main_root_that_leads_into_a_table);
    tcase_add_loop_test(cases, a_full_store_is_salvaged, 0, 2);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
