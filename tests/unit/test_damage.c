/*
 * Damage is a miss: of an entry that entry, of a file the file, set aside and made anew. Nothing faults, and no wrong
 * byte is ever given out.
 */
#include "cache/stamp.h"
#include "cache_fixture.h"

#define VALUE_BYTES_MAX 8192

struct file {
    uint8_t *bytes;
    size_t size;
};

static struct file load(const char *path)
{
    struct file file = {NULL, (size_t)file_bytes(path)};
    file.bytes = malloc(file.size + 1);
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(read(fd, file.bytes, file.size), (ssize_t)file.size);
    (void)close(fd);
    return file;
}

static void save(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    (void)close(fd);
}

static void set_byte(const char *path, size_t offset, uint8_t byte)
{
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)offset), 1);
    (void)close(fd);
}

/* Straight into LMDB, past everything that checks. */
static void write_raw(struct cbn__cabinet *cabinet, const struct cbn__store_key *key, const void *bytes, size_t size)
{
    struct cbn__store *store = cabinet->layers[0].store;
    MDB_txn *txn = NULL;
    MDB_val name = {sizeof(key->bytes), (void *)(uintptr_t)key->bytes}, value = {size, (void *)(uintptr_t)bytes};
    ck_assert_int_eq(mdb_txn_begin(store->env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_put(txn, store->entries, &name, &value, 0), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

static size_t encode_value(uint8_t *bytes, const struct cbn__store_key *key, uint64_t which, size_t payload_bytes)
{
    CBN__BUF_AUTO value = CBN__BUF_INIT;
    struct test_key record = key_of(which);
    struct cbn__entry_facts facts = facts_of(13000);
    uint8_t payload[VALUE_BYTES_MAX];
    fill_payload(payload, payload_bytes, which);
    cbn__entry_encode(key, RECORD(record), (struct cbn__blob){payload, payload_bytes}, cbn__blob_text("log"), &facts,
                      &value);
    ck_assert(!value.failed && value.size <= VALUE_BYTES_MAX);
    memcpy(bytes, value.data, value.size);
    return value.size;
}

static struct cbn__store_key slot_of(uint64_t which)
{
    struct test_key record = key_of(which);
    struct cbn__hash hash = cbn__hash_blob(RECORD(record));
    return cbn__entry_key(&hash, 13);
}

START_TEST(every_byte_of_a_value_through_lmdb)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), &events);
    struct cbn__store_key slot = slot_of(1);
    uint8_t bytes[VALUE_BYTES_MAX];
    size_t size = encode_value(bytes, &slot, 1, 150);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 0x20;
        write_raw(cabinet, &slot, bytes, size);
        ck_assert_msg(find(cabinet, 1, 150) == CBN__LOOKUP_DAMAGED, "byte %zu of %zu", i, size);
        ck_assert_int_eq(events.damages, (int)i + 1);
        /* Dropped: the next look-up finds nothing, and the next put is as good as ever. */
        ck_assert_int_eq(find(cabinet, 1, 150), CBN__LOOKUP_ABSENT);
        bytes[i] ^= 0x20;
    }
    ck_assert_ptr_nonnull(strstr(events.last, "was dropped"));
    ck_assert_int_eq(put(cabinet, 1, 150, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 150), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(cut_and_foreign_values)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    struct cbn__store_key slot = slot_of(1), other = slot_of(2);
    uint8_t bytes[VALUE_BYTES_MAX];
    size_t size = encode_value(bytes, &slot, 1, 150);
    const size_t cuts[] = {0, 1, 5, 6, 21, 22, 23, size / 2, size - 1};
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        write_raw(cabinet, &slot, bytes, cuts[i]);
        ck_assert_int_eq(find(cabinet, 1, 150), CBN__LOOKUP_DAMAGED);
    }
    size = encode_value(bytes, &other, 2, 150);
    write_raw(cabinet, &slot, bytes, size);
    ck_assert_int_eq(find(cabinet, 1, 150), CBN__LOOKUP_DAMAGED);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Opens the folder read-only: nothing is dropped, nothing is set aside, the file stays as the test made it. */
static struct cbn__cabinet *open_read_only(const char *folder)
{
    struct cbn__cabinet_options options = options_for(folder, NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.read_only = true;
    (void)cbn__cabinet_open(&options, &cabinet, NULL);
    ck_assert_ptr_nonnull(cabinet);
    return cabinet;
}

static size_t offset_of_value(const struct file *file, uint64_t which, size_t payload_bytes, size_t *ret_size)
{
    struct cbn__store_key slot = slot_of(which);
    uint8_t bytes[VALUE_BYTES_MAX];
    *ret_size = encode_value(bytes, &slot, which, payload_bytes);
    /* LMDB does not clear what it leaves unused on a page: a match before the nodes of a leaf is none. */
    for (size_t from = 0;;) {
        const uint8_t *at = memmem(file->bytes + from, file->size - from, bytes, *ret_size);
        ck_assert_ptr_nonnull(at);
        size_t offset = (size_t)(at - file->bytes);
        const uint8_t *page = file->bytes + offset / 4096 * 4096;
        if (page[10] != 2 || offset % 4096 >= (size_t)page[14] + 256u * page[15])
            return offset;
        from = offset + 1;
    }
}

/* Small values stand inside a leaf page, large ones in overflow pages of their own. */
static void flip_value_in_file(size_t payload_bytes)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache"), *data = in(&scratch, "cache/data.mdb");
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, 2, 100, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 1, payload_bytes, 13000), CBN_STATUS_OK); /* last: the file holds one copy of it */
    cbn__cabinet_close(cabinet);
    struct file file = load(data);
    size_t size = 0, offset = offset_of_value(&file, 1, payload_bytes, &size);
    for (size_t i = offset; i < offset + size; i++) {
        set_byte(data, i, file.bytes[i] ^ 1);
        cabinet = open_read_only(folder);
        ck_assert_msg(find(cabinet, 1, 0) == CBN__LOOKUP_DAMAGED, "byte %zu of %zu", i - offset, size);
        ck_assert_int_eq(find(cabinet, 2, 100), CBN__LOOKUP_HIT);
        cbn__cabinet_close(cabinet);
        set_byte(data, i, file.bytes[i]);
    }
    set_byte(data, offset + size - 1, file.bytes[offset + size - 1] ^ 1);
    cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(find(cabinet, 1, 0), CBN__LOOKUP_DAMAGED);
    ck_assert_int_eq(put(cabinet, 1, payload_bytes, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, payload_bytes), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    free(file.bytes);
}

START_TEST(every_byte_of_a_small_value_in_the_file)
{
    flip_value_in_file(300);
}
END_TEST

START_TEST(every_byte_of_a_large_value_in_the_file)
{
    flip_value_in_file(5000);
}
END_TEST

/* Every byte of a whole file, pages and all: served right or a miss, never a fault. Entries are deep enough for
 * branches. */
START_TEST(every_byte_of_a_whole_file)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache"), *data = in(&scratch, "cache/data.mdb");
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t i = 0; i < 12; i++)
        ck_assert_int_eq(put(cabinet, i, i == 5 ? 5000 : 700, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    struct file file = load(data);
    ck_assert_uint_gt(file.size, 10 * 4096);
    int hits = 0, misses = 0;
    for (size_t i = 0; i < file.size; i++) {
        set_byte(data, i, (uint8_t)(file.bytes[i] ^ 1u << i % 8));
        cabinet = open_read_only(folder);
        for (uint64_t which = i % 3; which < 12; which += 3) {
            enum cbn__lookup found = find(cabinet, which, which == 5 ? 5000 : 700);
            hits += found == CBN__LOOKUP_HIT;
            misses += found != CBN__LOOKUP_HIT;
        }
        cbn__cabinet_close(cabinet);
        set_byte(data, i, file.bytes[i]);
    }
    ck_assert_int_gt(misses, 1000);
    ck_assert_int_gt(hits, 1000);
    free(file.bytes);
}
END_TEST

/* The same with writing allowed, on a sample: what is not set aside must take puts and drops without a fault. */
START_TEST(writing_to_a_file_with_a_changed_byte)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache"), *data = in(&scratch, "cache/data.mdb");
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t i = 0; i < 12; i++)
        ck_assert_int_eq(put(cabinet, i, 700, 13000), CBN_STATUS_OK);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(put(cabinet, i, 400, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    struct file file = load(data);
    for (size_t i = 0; i < file.size; i += 41) {
        file.bytes[i] ^= 0x11;
        save(data, file.bytes, file.size);
        file.bytes[i] ^= 0x11;
        cabinet = open_cabinet(folder, NULL);
        ck_assert_int_eq(put(cabinet, 100, 3000, 13000), CBN_STATUS_OK);
        ck_assert_int_eq(find(cabinet, 100, 3000), CBN__LOOKUP_HIT);
        for (uint64_t which = 0; which < 12; which++)
            (void)find(cabinet, which, 0);
        struct test_key key = key_of(3);
        struct cbn__hash hash = cbn__hash_blob(RECORD(key));
        (void)cbn__cabinet_drop(cabinet, &hash, NULL);
        ck_assert_int_eq(find(cabinet, 100, 3000), CBN__LOOKUP_HIT);
        cbn__cabinet_close(cabinet);
    }
    free(file.bytes);
}
END_TEST

enum harm {
    HARM_TEXT,
    HARM_HALF,
    HARM_ZERO_PAGE_0,
    HARM_ZERO_PAGE_1,
    HARM_ZEROS,
    HARM_ONE_BYTE,
    HARM_NOISE,
    HARM_COUNT
};

/* What is left of the file after it: entries in leaves and pages of their own. */
static bool leaves_entries(enum harm harm)
{
    return harm == HARM_HALF || harm == HARM_ZERO_PAGE_0 || harm == HARM_ZERO_PAGE_1;
}

static int count_hits(struct cbn__cabinet *cabinet, uint64_t count, size_t size)
{
    int hits = 0;
    for (uint64_t i = 0; i < count; i++)
        hits += find(cabinet, i, size) == CBN__LOOKUP_HIT;
    return hits;
}

static void do_harm(const char *data, enum harm harm)
{
    struct file file = load(data);
    static const char text[] = "this is not a cabinet\n";
    switch (harm) {
    case HARM_TEXT:
        save(data, text, sizeof(text));
        break;
    case HARM_HALF:
        ck_assert_int_eq(truncate(data, (off_t)file.size / 2), 0);
        break;
    case HARM_ZERO_PAGE_0:
    case HARM_ZERO_PAGE_1:
        memset(file.bytes + (harm == HARM_ZERO_PAGE_1 ? 4096 : 0), 0, 4096);
        save(data, file.bytes, file.size);
        break;
    case HARM_ZEROS:
        memset(file.bytes, 0, file.size);
        save(data, file.bytes, file.size);
        break;
    case HARM_ONE_BYTE:
        ck_assert_int_eq(truncate(data, 1), 0);
        break;
    default:
        fill_payload(file.bytes, file.size, 5);
        save(data, file.bytes, file.size);
        break;
    }
    free(file.bytes);
}

START_TEST(a_damaged_file_is_set_aside)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_int_eq(put(cabinet, i, 5000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    do_harm(in(&scratch, "cache/data.mdb"), (enum harm)_i);
    cabinet = open_cabinet(folder, &events);
    ck_assert_int_eq(events.damages, 1);
    ck_assert_ptr_nonnull(strstr(events.last, "set aside as"));
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 1);
    int hits = count_hits(cabinet, 20, 5000), salvaged = -1;
    (void)sscanf(strstr(events.last, "; ") + 2, "%d of its entries were salvaged", &salvaged);
    ck_assert_int_eq(hits, salvaged);
    if (leaves_entries((enum harm)_i))
        ck_assert_int_ge(hits, _i == HARM_HALF ? 5 : 20);
    else
        ck_assert_int_eq(hits, 0);
    ck_assert_int_eq(put(cabinet, 1, 5000, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 5000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* The same while the file is open and mapped here: met by the next session, not by a fault. */
START_TEST(a_file_damaged_while_open)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_cabinet(folder, &events);
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_int_eq(put(cabinet, i, 5000, 13000), CBN_STATUS_OK);
    do_harm(in(&scratch, "cache/data.mdb"), (enum harm)_i);
    int hits = count_hits(cabinet, 20, 5000);
    ck_assert_int_eq(events.damages, 1);
    if (leaves_entries((enum harm)_i))
        ck_assert_int_ge(hits, _i == HARM_HALF ? 5 : 20);
    else
        ck_assert_int_eq(hits, 0);
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 1);
    ck_assert_int_eq(put(cabinet, 1, 5000, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 5000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(only_the_newest_is_kept_aside)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    for (int i = 0; i < 4; i++) {
        struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
        ck_assert_int_eq(put(cabinet, 1, 5000, 13000), CBN_STATUS_OK);
        cbn__cabinet_close(cabinet);
        do_harm(in(&scratch, "cache/data.mdb"), HARM_TEXT);
    }
    cbn__cabinet_close(open_cabinet(folder, NULL));
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 1);
}
END_TEST

START_TEST(a_damaged_base_is_left_out)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *base = in(&scratch, "base");
    struct cbn__cabinet *cabinet = open_cabinet(base, NULL);
    ck_assert_int_eq(put(cabinet, 1, 5000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    do_harm(in(&scratch, "base/data.mdb"), HARM_HALF);
    struct events events = {0};
    struct cbn_error err = {0};
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), &events);
    options.base_paths = &base;
    options.base_count = 1;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_OK);
    ck_assert_int_eq(err.status, CBN_STATUS_DAMAGED);
    ck_assert_int_eq(events.notices, 1);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 1);
    ck_assert_int_eq(count_files(base, "data.mdb.damaged-"), 0);
    ck_assert_int_eq(put(cabinet, 1, 50, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_damaged_overlay_entry_is_served_by_a_base)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *base = in(&scratch, "base");
    struct cbn__cabinet *cabinet = open_cabinet(base, NULL);
    ck_assert_int_eq(put(cabinet, 1, 150, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    struct events events = {0};
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), &events);
    options.base_paths = &base;
    options.base_count = 1;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    struct cbn__store_key slot = slot_of(1);
    write_raw(cabinet, &slot, "garbage", 7);
    ck_assert_int_eq(find(cabinet, 1, 150), CBN__LOOKUP_HIT);
    ck_assert_int_eq(events.damages, 1);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* An older major that is whole is served in place of a newer one that is not. */
START_TEST(a_damaged_major_gives_way_to_an_older_one)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(put(cabinet, 1, 150, 12008), CBN_STATUS_OK);
    struct cbn__store_key slot = slot_of(1);
    write_raw(cabinet, &slot, "garbage", 7);
    ck_assert_int_eq(find(cabinet, 1, 150), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

static int count_problem(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                         uint32_t layer, const char *layer_path)
{
    (void)key, (void)entry, (void)layer, (void)layer_path;
    *(int *)user += problem != NULL;
    return 0;
}

START_TEST(each_names_problems)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    struct cbn__store_key first = slot_of(1), second = slot_of(2);
    uint8_t bytes[VALUE_BYTES_MAX];
    write_raw(cabinet, &first, "garbage", 7);
    ck_assert_int_eq(put(cabinet, 3, 150, 13000), CBN_STATUS_OK);
    size_t size = encode_value(bytes, &second, 77, 150); /* sealed for the slot, the record of another */
    write_raw(cabinet, &second, bytes, size);
    int problems = 0;
    ck_assert_int_eq(cbn__cabinet_each(cabinet, count_problem, &problems, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(problems, 2);
    cbn__cabinet_close(cabinet);
}
END_TEST

static int keep_key(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                    uint32_t layer, const char *layer_path)
{
    (void)entry, (void)layer, (void)layer_path;
    if (problem)
        *(struct cbn__hash *)user = *key;
    return problem != NULL;
}

/* No look-up can ask for such a record; what tells it can also drop it. */
START_TEST(a_record_under_a_key_of_a_wrong_length_can_be_dropped)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(put(cabinet, 1, 5000, 13000), CBN_STATUS_OK);
    struct cbn__store *store = cabinet->layers[0].store;
    static const size_t lengths[] = {1, 5, 16, 17, 30};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        char bytes[] = "abcdefghijklmnopqrstuvwxyz0123456789";
        struct cbn__hash told = {{0}};
        MDB_txn *txn = NULL;
        MDB_val name = {lengths[i], bytes}, value = {10, bytes};
        ck_assert_int_eq(mdb_txn_begin(store->env, NULL, 0, &txn), 0);
        ck_assert_int_eq(mdb_put(txn, store->entries, &name, &value, 0), 0);
        ck_assert_int_eq(mdb_txn_commit(txn), 0);
        ck_assert_int_eq(cbn__cabinet_each(cabinet, keep_key, &told, NULL), CBN_STATUS_OK);
        ck_assert_int_eq(cbn__cabinet_drop(cabinet, &told, NULL), CBN_STATUS_OK);
        ck_assert_int_eq(cbn__cabinet_drop(cabinet, &told, NULL), CBN_STATUS_NOT_FOUND);
    }
    ck_assert_int_eq(find(cabinet, 1, 5000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* LMDB makes files shorter than their meta page says: healthy, and extended. */
START_TEST(a_short_healthy_file)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache"), *data = in(&scratch, "cache/data.mdb");
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_cabinet(folder, &events);
    for (uint64_t i = 0; i < 8; i++) /* free pages, which LMDB must have read to give pages back within a transaction */
        ck_assert_int_eq(put(cabinet, 1, 5000, 13000), CBN_STATUS_OK);
    struct cbn__store *store = cabinet->layers[0].store;
    cbn__store_flush_usage(store, 1000); /* nothing is left to be written at close */
    struct cbn__store_key slot = slot_of(9);
    MDB_txn *txn = NULL;
    MDB_val name = {sizeof(slot.bytes), slot.bytes}, value = {2 << 20, calloc(1, 2 << 20)};
    ck_assert_int_eq(mdb_txn_begin(store->env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_put(txn, store->entries, &name, &value, 0), 0);
    ck_assert_int_eq(mdb_del(txn, store->entries, &name, NULL), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    free(value.mv_data);
    struct cbn__pages_meta meta;
    ck_assert_ptr_null(cbn__pages_read_meta(store->data_fd, &meta));
    ck_assert_uint_lt(meta.file_bytes, (meta.last_page + 1) * meta.page_bytes);
    struct test_key key = key_of(1); /* probed: a hit would be written at close */
    ck_assert_msg(cbn__cabinet_probe(cabinet, RECORD(key), NULL) == CBN__LOOKUP_HIT, "%s", events.last);
    cbn__cabinet_close(cabinet);
    ck_assert_int_gt(file_bytes(data), 2 << 20); /* extended when it was met */
    ck_assert_int_eq(truncate(data, (off_t)meta.file_bytes), 0);
    cabinet = open_read_only(folder);
    ck_assert_int_eq(find(cabinet, 1, 5000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
    cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(find(cabinet, 1, 5000), CBN__LOOKUP_HIT);
    ck_assert_int_eq(put(cabinet, 2, 3 << 20, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 2, 3 << 20), CBN__LOOKUP_HIT);
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(the_walk_takes_what_lmdb_makes)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    struct cbn__store *store = cabinet->layers[0].store;
    char problem[CBN__PAGES_PROBLEM_BYTES] = "";
    struct cbn__pages_meta meta;
    for (uint64_t i = 0; i < 400; i++) {
        ck_assert_int_eq(put(cabinet, i % 150, 37 * (i * 7919 % 300), i % 3 ? 13000 : 12000), CBN_STATUS_OK);
        if (i % 5 == 0) {
            struct test_key key = key_of(i * 31 % 150);
            struct cbn__hash hash = cbn__hash_blob(RECORD(key));
            (void)cbn__cabinet_drop(cabinet, &hash, NULL);
        }
        ck_assert_msg(cbn__pages_check(store->data_fd, &meta, problem) == 0, "after %d: %s", (int)i, problem);
    }
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Fields of a meta page that send LMDB astray while every page is sound: found by fuzz_pages. */
START_TEST(the_walk_refuses_trees_that_cannot_be)
{
    static const struct {
        size_t offset;
        uint8_t bytes[8];
        size_t size;
    } patches[] = {
        {40 + 4, {0x0c}, 1},                                            /* the free list's kind: duplicates */
        {88 + 4, {0x04}, 1},                                            /* the main tree's kind: duplicates */
        {40 + 40, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 8}, /* no root, and the depth stays 1 */
    };
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *data = in(&scratch, "cache/data.mdb");
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(put(cabinet, 1, 100, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    struct file file = load(data);
    size_t meta_at = cbn__load_u64(file.bytes + 144) > cbn__load_u64(file.bytes + 4096 + 144) ? 0 : 4096;
    struct cbn__pages_meta meta;
    char problem[CBN__PAGES_PROBLEM_BYTES];
    int fd = open(data, O_RDWR);
    ck_assert_int_eq(cbn__pages_check(fd, &meta, problem), 0);
    ck_assert_uint_ne(meta.free_root, UINT64_MAX);
    for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++) {
        off_t at = (off_t)(meta_at + patches[i].offset);
        ck_assert_int_eq(pwrite(fd, patches[i].bytes, patches[i].size, at), (ssize_t)patches[i].size);
        ck_assert_msg(cbn__pages_check(fd, &meta, problem) == EBADMSG, "patch %zu", i);
        ck_assert_int_eq(pwrite(fd, file.bytes + at, patches[i].size, at), (ssize_t)patches[i].size);
    }
    ck_assert_int_eq(cbn__pages_check(fd, &meta, problem), 0);
    (void)close(fd);
    free(file.bytes);
}
END_TEST

/* The offsets of two entries in their leaf change places: no byte of a value is wrong. */
static void swap_entries(const char *data, uint64_t which)
{
    struct file file = load(data);
    size_t size = 0, page = offset_of_value(&file, which, 100, &size) / 4096 * 4096;
    ck_assert_uint_eq(file.bytes[page + 12], 16 + 3 * 2); /* the leaf that holds all three */
    for (size_t i = 0; i < 2; i++) {
        set_byte(data, page + 18 + i, file.bytes[page + 20 + i]);
        set_byte(data, page + 20 + i, file.bytes[page + 18 + i]);
    }
    free(file.bytes);
}

enum moment { BEFORE_OPENING, WHILE_OPEN, UNNOTICED, MOMENT_COUNT };

/* The file is refused, before it is opened and afterwards; where that goes unnoticed a walk by keys must still end. */
START_TEST(keys_out_of_order)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache"), *data = in(&scratch, "cache/data.mdb");
    enum moment moment = (enum moment)_i;
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t i = 0; i < 3; i++)
        ck_assert_int_eq(put(cabinet, i, 100, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    if (moment == BEFORE_OPENING)
        swap_entries(data, 2);
    cabinet = open_cabinet(folder, &events);
    if (moment != BEFORE_OPENING)
        swap_entries(data, 2);
    if (moment == UNNOTICED) /* in the tick of the clock in which a session wrote */
        cbn__stamp_renew(cabinet->layers[0].store);
    int problems = 0;
    ck_assert_int_eq(cbn__cabinet_each(cabinet, count_problem, &problems, NULL),
                     moment == UNNOTICED ? CBN_STATUS_DAMAGED : CBN_STATUS_OK);
    ck_assert_int_eq(problems, 0);
    ck_assert_int_eq(put(cabinet, 1, 100, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(events.damages, 1);
    ck_assert_int_eq(find(cabinet, 1, 100), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* One bit of a meta page's last page, for every bit: never a file that grows to it, never a store without room. */
START_TEST(a_last_page_stated_too_high)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache"), *data = in(&scratch, "cache/data.mdb");
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_int_eq(put(cabinet, i, 5000, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    struct file file = load(data);
    const size_t newest = cbn__load_u64(file.bytes + 144) > cbn__load_u64(file.bytes + 4096 + 144) ? 0 : 4096;
    for (size_t bit = 0; bit < 64; bit++) {
        struct events events = {0};
        file.bytes[newest + 136 + bit / 8] ^= (uint8_t)(1u << bit % 8);
        save(data, file.bytes, file.size);
        file.bytes[newest + 136 + bit / 8] ^= (uint8_t)(1u << bit % 8);
        cabinet = open_cabinet(folder, &events);
        ck_assert_msg(events.damages == 1, "bit %zu", bit);
        for (uint64_t i = 0; i < 20; i++)
            ck_assert_int_eq(find(cabinet, i, 5000), CBN__LOOKUP_HIT);
        ck_assert_int_eq(put(cabinet, 20, 5000, 13000), CBN_STATUS_OK);
        cbn__cabinet_close(cabinet);
        ck_assert_int_lt(file_bytes(data), 2 * (off_t)file.size);
    }
    free(file.bytes);
}
END_TEST

START_TEST(an_odd_thing_in_the_file_s_place)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = NULL;
    struct cbn_error err = {0};
    ck_assert_int_eq(mkdir(in(&scratch, "cache"), 0700), 0);
    ck_assert_int_eq(mkfifo(in(&scratch, "cache/data.mdb"), 0600), 0);
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_UNTRUSTED);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(unlink(in(&scratch, "cache/data.mdb")), 0);
    ck_assert_int_eq(symlink("/etc/passwd", in(&scratch, "cache/data.mdb")), 0);
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_IO);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(unlink(in(&scratch, "cache/data.mdb")), 0);
    ck_assert_int_eq(mkdir(in(&scratch, "cache/data.mdb"), 0700), 0);
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_IO);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(rmdir(in(&scratch, "cache/data.mdb")), 0);
    save(in(&scratch, "cache/data.mdb"), "", 0);
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 1, 10, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("damage");
    TCase *cases = tcase_create("damage");
    tcase_set_timeout(cases, 240);
    tcase_add_test(cases, every_byte_of_a_value_through_lmdb);
    tcase_add_test(cases, cut_and_foreign_values);
    tcase_add_test(cases, every_byte_of_a_small_value_in_the_file);
    tcase_add_test(cases, every_byte_of_a_large_value_in_the_file);
    tcase_add_test(cases, every_byte_of_a_whole_file);
    tcase_add_test(cases, writing_to_a_file_with_a_changed_byte);
    tcase_add_loop_test(cases, a_damaged_file_is_set_aside, 0, HARM_COUNT);
    tcase_add_loop_test(cases, a_file_damaged_while_open, 0, HARM_COUNT);
    tcase_add_test(cases, only_the_newest_is_kept_aside);
    tcase_add_test(cases, a_damaged_base_is_left_out);
    tcase_add_test(cases, a_damaged_overlay_entry_is_served_by_a_base);
    tcase_add_test(cases, a_damaged_major_gives_way_to_an_older_one);
    tcase_add_test(cases, each_names_problems);
    tcase_add_test(cases, a_record_under_a_key_of_a_wrong_length_can_be_dropped);
    tcase_add_test(cases, a_short_healthy_file);
    tcase_add_test(cases, the_walk_takes_what_lmdb_makes);
    tcase_add_test(cases, the_walk_refuses_trees_that_cannot_be);
    tcase_add_loop_test(cases, keys_out_of_order, 0, MOMENT_COUNT);
    tcase_add_test(cases, a_last_page_stated_too_high);
    tcase_add_test(cases, an_odd_thing_in_the_file_s_place);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
