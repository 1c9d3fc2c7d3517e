/*
 * One overlay: put, find, replace, drop, each; compilers; the bound; recency; one environment a folder; arguments.
 */
#include "cache_fixture.h"

START_TEST(put_and_find)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "a/b/cache"), NULL);
    struct stat status;
    ck_assert_int_eq(stat(in(&scratch, "a/b/cache"), &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0700);
    ck_assert_int_eq(stat(in(&scratch, "a/b/cache/data.mdb"), &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0600);
    ck_assert_int_eq(find(cabinet, 1, 1), CBN__LOOKUP_ABSENT);
    static const size_t sizes[] = {0, 1, 100, 2000, 4096, 70000, 1 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        ck_assert_int_eq(put(cabinet, i, sizes[i], 13000), CBN_STATUS_OK);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        ck_assert_int_eq(find(cabinet, i, sizes[i]), CBN__LOOKUP_HIT);
    ck_assert_int_eq(find(cabinet, 99, 1), CBN__LOOKUP_ABSENT);
    cbn__cabinet_close(cabinet);
    cabinet = open_cabinet(in(&scratch, "a/b/cache"), NULL);
    ck_assert_int_eq(find(cabinet, 5, 70000), CBN__LOOKUP_HIT);
    struct test_key key = key_of(5);
    ck_assert_int_eq(cbn__cabinet_probe(cabinet, RECORD(key), NULL), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(entry_says_everything)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, 1, 5000, 13002), CBN_STATUS_OK);
    struct test_key key = key_of(1);
    struct cbn__entry entry;
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry), CBN__LOOKUP_HIT);
    struct cbn__entry_facts facts = facts_of(13002);
    ck_assert(same_facts(&entry.facts, &facts));
    ck_assert(cbn__blob_equal(entry.log, cbn__blob_text("log")));
    ck_assert_uint_eq(entry.layer, 0);
    ck_assert_str_eq(entry.layer_path, folder);
    cbn__entry_done(&entry);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(replace_and_drop)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    struct test_key key = key_of(1);
    struct cbn__hash hash = cbn__hash_blob(RECORD(key));
    ck_assert_int_eq(cbn__cabinet_drop(cabinet, &hash, NULL), CBN_STATUS_NOT_FOUND);
    ck_assert_int_eq(put(cabinet, 1, 5000, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 1, 300, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 300), CBN__LOOKUP_HIT);
    ck_assert_int_eq(put(cabinet, 1, 200, 12009), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 2, 200, 12009), CBN_STATUS_OK);
    struct cbn__layer layer;
    ck_assert_int_eq(cbn__cabinet_layer(cabinet, 0, &layer, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(layer.entries, 3);
    ck_assert(layer.writable && !layer.is_base);
    ck_assert_uint_le(layer.used_bytes, layer.file_bytes);
    ck_assert_uint_gt(layer.used_bytes, 0);
    ck_assert_int_eq(cbn__cabinet_drop(cabinet, &hash, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 0), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(find(cabinet, 2, 200), CBN__LOOKUP_HIT);
    ck_assert_int_eq(cbn__cabinet_layer(cabinet, 0, &layer, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(layer.entries, 1);
    ck_assert_int_eq(cbn__cabinet_layer(cabinet, 1, &layer, NULL), CBN_STATUS_NOT_FOUND);
    cbn__cabinet_close(cabinet);
}
END_TEST

static uint32_t version_found(struct cbn__cabinet *cabinet, struct cbn__compiler_rule rule, enum cbn__lookup *ret_found)
{
    struct test_key key = key_of(1);
    struct cbn__entry entry;
    *ret_found = cbn__cabinet_find(cabinet, RECORD(key), &rule, &entry);
    if (*ret_found != CBN__LOOKUP_HIT)
        return 0;
    uint32_t version = entry.facts.compiler_version;
    cbn__entry_done(&entry);
    return version;
}

START_TEST(compiler_rules)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(put(cabinet, 1, 100, 12008), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 1, 100, 13001), CBN_STATUS_OK);
    static const struct {
        struct cbn__compiler_rule rule;
        uint32_t version;
        enum cbn__lookup found;
    } rows[] = {
        {{0}, 13001, CBN__LOOKUP_HIT},
        {{.max_major = 13}, 13001, CBN__LOOKUP_HIT},
        {{.max_major = 12}, 12008, CBN__LOOKUP_HIT},
        {{.max_major = 11}, 0, CBN__LOOKUP_INCOMPATIBLE},
        {{.except_majors = 1u << 13}, 12008, CBN__LOOKUP_HIT},
        {{.except_majors = 1u << 13 | 1u << 12}, 0, CBN__LOOKUP_INCOMPATIBLE},
        {{.min_version = 13001}, 13001, CBN__LOOKUP_HIT},
        {{.min_version = 13002}, 0, CBN__LOOKUP_INCOMPATIBLE},
        {{.min_version = 12008, .max_major = 12}, 12008, CBN__LOOKUP_HIT},
        {{.exact_version = 12008}, 12008, CBN__LOOKUP_HIT},
        {{.exact_version = 12009}, 0, CBN__LOOKUP_INCOMPATIBLE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum cbn__lookup found;
        uint32_t version = version_found(cabinet, rows[i].rule, &found);
        ck_assert_msg(found == rows[i].found && version == rows[i].version, "row %zu: %d, %u", i, found, version);
    }
    /* Another minor of the same major takes its place. */
    ck_assert_int_eq(put(cabinet, 1, 100, 13002), CBN_STATUS_OK);
    enum cbn__lookup found;
    ck_assert_uint_eq(version_found(cabinet, (struct cbn__compiler_rule){0}, &found), 13002);
    ck_assert_uint_eq(version_found(cabinet, (struct cbn__compiler_rule){.exact_version = 13001}, &found), 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(another_record_in_the_slot_is_a_miss)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), &events);
    struct test_key asked = key_of(1), stored = key_of(2);
    struct cbn__hash hash = cbn__hash_blob(RECORD(asked));
    struct cbn__store_key slot = cbn__entry_key(&hash, 13);
    struct cbn__entry_facts facts = facts_of(13000);
    CBN__BUF_AUTO value = CBN__BUF_INIT;
    cbn__entry_encode(&slot, RECORD(stored), cbn__blob_text("payload of another"), cbn__blob_text(""), &facts, &value);
    ck_assert_int_eq(cbn__store_put(cabinet->layers[0].store, 1000, &slot, cbn__buf_blob(&value), NULL), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 0), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(events.damages, 0);
    ck_assert_int_eq(put(cabinet, 1, 10, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 10), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

struct listing {
    int told, wrong, stop_after;
    bool seen[64];
};

static int list_one(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                    uint32_t layer, const char *layer_path)
{
    struct listing *listing = user;
    struct cbn__hash hash = cbn__hash_blob(entry->key_record);
    ck_assert(problem || cbn__hash_equal(key, &hash));
    ck_assert_uint_eq(layer, entry->layer);
    ck_assert_str_eq(layer_path, entry->layer_path);
    listing->told++;
    listing->wrong += problem != NULL;
    if (!problem)
        listing->seen[cbn__load_u64((const uint8_t *)entry->key_record.data + 6) % 64] = true;
    return listing->told == listing->stop_after;
}

START_TEST(each_tells_all_and_stops)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    struct listing listing = {0};
    ck_assert_int_eq(cbn__cabinet_each(cabinet, list_one, &listing, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(listing.told, 0);
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_int_eq(put(cabinet, i, 100 * i, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 3, 100, 12000), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__cabinet_each(cabinet, list_one, &listing, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(listing.told, 21);
    ck_assert_int_eq(listing.wrong, 0);
    for (int i = 0; i < 20; i++)
        ck_assert(listing.seen[i]);
    struct listing few = {.stop_after = 5};
    ck_assert_int_eq(cbn__cabinet_each(cabinet, list_one, &few, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(few.told, 5);
    cbn__cabinet_close(cabinet);
}
END_TEST

struct nested {
    struct cbn__cabinet *cabinet;
    int dropped;
};

/* No lock is held while a callback runs: it may write. */
static int drop_one(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                    uint32_t layer, const char *layer_path)
{
    (void)entry, (void)problem, (void)layer, (void)layer_path;
    struct nested *nested = user;
    nested->dropped += cbn__cabinet_drop(nested->cabinet, key, NULL) == CBN_STATUS_OK;
    return 0;
}

START_TEST(callback_may_write)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(put(cabinet, i, 100, 13000), CBN_STATUS_OK);
    struct nested nested = {cabinet, 0};
    ck_assert_int_eq(cbn__cabinet_each(cabinet, drop_one, &nested, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(nested.dropped, 10);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(an_entry_above_the_bound_is_refused)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), NULL);
    options.max_bytes = 1 << 20;
    struct cbn__cabinet *cabinet = NULL;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 1, 2 << 20, 13000), CBN_STATUS_LIMIT);
    ck_assert_int_eq(put(cabinet, 2, 1000, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 0), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(find(cabinet, 2, 1000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

static struct cbn__entry use_of(struct cbn__cabinet *cabinet, uint64_t which)
{
    struct test_key key = key_of(which);
    struct cbn__entry entry;
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry), CBN__LOOKUP_HIT);
    cbn__buf_done(&entry.bytes);
    return entry;
}

static uint64_t transaction_of(struct cbn__cabinet *cabinet)
{
    struct cbn__pages_meta meta;
    ck_assert_ptr_null(cbn__pages_read_meta(cabinet->layers[0].store->data_fd, &meta));
    return meta.transaction;
}

START_TEST(hits_are_counted_and_kept)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(put(cabinet, 1, 100, 13000), CBN_STATUS_OK);
    uint64_t transaction = transaction_of(cabinet);
    int64_t before_s = cbn__clock_wall_s();
    ck_assert_uint_eq(use_of(cabinet, 1).hits, 0);
    ck_assert_uint_eq(use_of(cabinet, 1).hits, 1);
    struct cbn__entry entry = use_of(cabinet, 1);
    ck_assert_uint_eq(entry.hits, 2);
    ck_assert_int_ge(entry.last_used_s, before_s);
    ck_assert_uint_eq(transaction_of(cabinet), transaction); /* a hit writes nothing */
    cbn__cabinet_close(cabinet);
    cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    entry = use_of(cabinet, 1);
    ck_assert_uint_eq(entry.hits, 3);
    ck_assert_int_ge(entry.last_used_s, before_s);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(many_hits_are_bounded)
{
    struct cbn__usage usage;
    cbn__usage_init(&usage);
    for (uint32_t i = 0; i < 20000; i++) {
        struct test_key record = key_of(i);
        struct cbn__hash hash = cbn__hash_blob(RECORD(record));
        struct cbn__store_key key = cbn__entry_key(&hash, 13);
        cbn__usage_record(&usage, &key);
    }
    ck_assert_uint_le(usage.count, 16384);
    struct cbn__usage_note *slots = NULL;
    ck_assert_uint_gt(cbn__usage_take(&usage, &slots), 0);
    free(slots);
    ck_assert_uint_eq(cbn__usage_take(&usage, &slots), 0);
    cbn__usage_done(&usage);
}
END_TEST

static char mark_word(const char *lock_path)
{
    char byte = 0;
    int fd = open(lock_path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, 0), 1);
    (void)close(fd);
    return byte;
}

START_TEST(the_mark_stands_while_commits_are_young)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(put(cabinet, 1, 100, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(mark_word(in(&scratch, "cache/lock")), 'u');
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(mark_word(in(&scratch, "cache/lock")), ' ');
}
END_TEST

/* Says which transaction of which file was synced: the one that is there, or the one before. */
START_TEST(another_boots_mark_is_told)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), &events);
    ck_assert_int_eq(put(cabinet, 1, 100, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    struct cbn__pages_meta meta;
    struct stat file;
    int data = open(in(&scratch, "cache/data.mdb"), O_RDONLY);
    ck_assert_ptr_null(cbn__pages_read_meta(data, &meta));
    ck_assert_int_eq(fstat(data, &file), 0);
    (void)close(data);
    char mark[65];
    (void)snprintf(mark, sizeof(mark), "unsynced 11111111-2222-3333-4444-555555555555 %08x %08x\n",
                   (unsigned)file.st_ino, (unsigned)meta.transaction - (_i == 1));
    ck_assert_uint_eq(strlen(mark), 64);
    int fd = open(in(&scratch, "cache/lock"), O_RDWR);
    ck_assert_int_eq(pwrite(fd, mark, 64, 0), 64);
    (void)close(fd);
    cabinet = open_cabinet(in(&scratch, "cache"), &events);
    ck_assert_msg(events.notices == (_i == 0), "%s", events.last);
    ck_assert_int_eq(events.damages, _i == 1);
    ck_assert_ptr_nonnull(strstr(events.last, "the machine stopped"));
    ck_assert(_i == 0 || strstr(events.last, "; 1 of its entries were salvaged"));
    ck_assert_int_eq(find(cabinet, 1, 100), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(one_environment_a_folder)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *first = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(symlink("cache", in(&scratch, "link")), 0);
    struct cbn__cabinet *second = open_cabinet(in(&scratch, "link"), NULL);
    struct cbn__cabinet *third = open_cabinet(in(&scratch, "./cache/../cache/."), NULL);
    ck_assert_ptr_eq(first->layers[0].store, second->layers[0].store);
    ck_assert_ptr_eq(first->layers[0].store, third->layers[0].store);
    ck_assert_uint_eq(first->layers[0].store->refs, 3);
    ck_assert_int_eq(put(first, 1, 100, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(first);
    ck_assert_int_eq(find(second, 1, 100), CBN__LOOKUP_HIT);
    ck_assert_int_eq(put(third, 2, 100, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(second, 2, 100), CBN__LOOKUP_HIT);
    cbn__cabinet_close(second);
    cbn__cabinet_close(third);
}
END_TEST

START_TEST(a_removed_folder_or_file_is_survived)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(put(cabinet, 1, 100, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(unlink(in(&scratch, "cache/data.mdb")), 0);
    ck_assert_int_eq(unlink(in(&scratch, "cache/lock")), 0);
    ck_assert_int_eq(find(cabinet, 1, 100), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(put(cabinet, 1, 200, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 200), CBN__LOOKUP_HIT);
    ck_assert_int_eq(count_files(in(&scratch, "cache"), ""), 2);
    scratch_done(&scratch);
    ck_assert_int_eq(find(cabinet, 1, 0), CBN__LOOKUP_IO);
    ck_assert_int_eq(put(cabinet, 1, 200, 13000), CBN_STATUS_IO);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(wrong_arguments)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn_error err = {0};
    struct cbn__cabinet *cabinet = NULL;
    struct cbn__cabinet_options options = options_for("", NULL);
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_INVALID);
    options = options_for(in(&scratch, "cache"), NULL);
    options.max_bytes = 1000;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "max_bytes"));
    options.max_bytes = 0;
    options.base_count = CBN__BASES_MAX + 1;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_INVALID);
    ck_assert_ptr_null(cabinet);
    cbn__cabinet_close(NULL);

    options = options_for(NULL, NULL);
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 0);
    ck_assert_int_eq(find(cabinet, 1, 1), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(put(cabinet, 1, 1, 13000), CBN_STATUS_NOT_FOUND);
    cbn__cabinet_close(cabinet);

    cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    struct cbn__entry_facts facts = facts_of(13000);
    struct cbn__blob empty = {NULL, 0};
    uint8_t *large = calloc(1, CBN__KEY_RECORD_MAX_BYTES + 1);
    ck_assert_int_eq(cbn__cabinet_put(cabinet, empty, empty, empty, &facts, &err), CBN_STATUS_INVALID);
    ck_assert_int_eq(
        cbn__cabinet_put(cabinet, (struct cbn__blob){large, CBN__KEY_RECORD_MAX_BYTES + 1}, empty, empty, &facts, &err),
        CBN_STATUS_INVALID);
    ck_assert_int_eq(
        cbn__cabinet_put(cabinet, (struct cbn__blob){large, CBN__KEY_RECORD_MAX_BYTES}, empty, empty, &facts, &err),
        CBN_STATUS_OK);
    facts.compiler_version = 65536000;
    ck_assert_int_eq(cbn__cabinet_put(cabinet, (struct cbn__blob){large, 10}, empty, empty, &facts, &err),
                     CBN_STATUS_INVALID);
    free(large);
    cbn__cabinet_close(cabinet);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store");
    TCase *cases = tcase_create("store");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, put_and_find);
    tcase_add_test(cases, entry_says_everything);
    tcase_add_test(cases, replace_and_drop);
    tcase_add_test(cases, compiler_rules);
    tcase_add_test(cases, another_record_in_the_slot_is_a_miss);
    tcase_add_test(cases, each_tells_all_and_stops);
    tcase_add_test(cases, callback_may_write);
    tcase_add_test(cases, an_entry_above_the_bound_is_refused);
    tcase_add_test(cases, hits_are_counted_and_kept);
    tcase_add_test(cases, many_hits_are_bounded);
    tcase_add_test(cases, the_mark_stands_while_commits_are_young);
    tcase_add_loop_test(cases, another_boots_mark_is_told, 0, 2);
    tcase_add_test(cases, one_environment_a_folder);
    tcase_add_test(cases, a_removed_folder_or_file_is_survived);
    tcase_add_test(cases, wrong_arguments);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
