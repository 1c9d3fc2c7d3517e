/*
 * Heads of runs, which the walk at open does not read: what reads goes on without them, and what LMDB would free,
 * reuse or copy by a wrong one is refused before it does; the file is set aside then, every entry salvaged, and the
 * call goes on. What cannot go on leaves that to the close, never to the next process.
 */
#include "cache/pages_layout.h"
#include "cache_fixture.h"

#define COUNT 60u
#define VALUE_BYTES 60000u
#define BOUND ((uint64_t)4 << 20)

static struct cbn__cabinet *open_bounded(const char *folder, struct events *events)
{
    struct cbn__cabinet_options options = options_for(folder, events);
    struct cbn__cabinet *cabinet = NULL;
    options.max_bytes = BOUND;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    return cabinet;
}

/* What a head says wrongly. The kind with its dirty bit: LMDB takes such a page for memory of its own and writes. */
static const struct fault {
    const char *name;
    uint32_t at;
    uint8_t byte;
} faults[] = {
    {"number", 0, 0x07},
    {"number, far away", 5, 0x01},
    {"kind", PAGE_AT_FLAGS, PAGE_LEAF},
    {"kind, dirty", PAGE_AT_FLAGS, PAGE_OVERFLOW | 0x10},
    {"length, less", PAGE_AT_RUN, 0x01},
    {"length, more", PAGE_AT_RUN + 2, 0x01},
};

/* All heads of runs of a closed file. */
static uint32_t spoil_heads(const char *path, const struct fault *fault)
{
    uint8_t head[PAGE_HEAD_BYTES];
    uint32_t count = 0;
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    for (uint64_t page = FIRST_DATA_PAGE; cbn__pages_read_at(fd, head, sizeof(head), page * 4096); page++)
        if (cbn__pages_u64(head) == page && cbn__pages_u16(head + PAGE_AT_FLAGS) == PAGE_OVERFLOW) {
            ck_assert_uint_ne(head[fault->at], fault->byte);
            ck_assert_int_eq(pwrite(fd, &fault->byte, 1, (off_t)(page * 4096 + fault->at)), 1);
            count++;
        }
    (void)close(fd);
    return count;
}

static struct cbn__hash hash_of(uint64_t which)
{
    struct test_key key = key_of(which);
    return cbn__hash_blob(RECORD(key));
}

static int32_t put_over(struct cbn__cabinet *cabinet)
{
    return put(cabinet, 7, VALUE_BYTES, 13000);
}

static int32_t put_evicting(struct cbn__cabinet *cabinet)
{
    int32_t status = CBN_STATUS_OK;
    for (uint64_t i = 0; i < COUNT && status == CBN_STATUS_OK; i++)
        status = put(cabinet, 1000 + i, VALUE_BYTES, 13000);
    return status;
}

static int32_t drop(struct cbn__cabinet *cabinet)
{
    struct cbn__hash hash = hash_of(7);
    return cbn__cabinet_drop(cabinet, &hash, NULL);
}

static int32_t drop_listed(struct cbn__cabinet *cabinet)
{
    struct cbn__prune_item item = {.key = hash_of(7), .major = 13};
    return cbn__cabinet_remove(cabinet, &item, 1, false, NULL);
}

static int32_t rehearse(struct cbn__cabinet *cabinet)
{
    struct cbn__prune_item item = {.key = hash_of(7), .major = 13};
    size_t count = 0;
    uint64_t used = 0;
    return cbn__cabinet_rehearse(cabinet, &item, 1, 0, &count, &used, NULL);
}

static int32_t compact(struct cbn__cabinet *cabinet)
{
    return cbn__cabinet_compact(cabinet, NULL);
}

static const struct act {
    const char *name;
    int32_t (*act)(struct cbn__cabinet *cabinet);
    bool drops_some; /* beside entry 7 */
} acts[] = {
    {"put over", put_over, false},       {"put evicting", put_evicting, true}, {"drop", drop, false},
    {"drop listed", drop_listed, false}, {"rehearse", rehearse, false},        {"compact", compact, false},
};

#define FAULTS (sizeof(faults) / sizeof(faults[0]))
#define ACTS (sizeof(acts) / sizeof(acts[0]))

static void plant(const char *folder)
{
    struct cbn__cabinet *cabinet = open_bounded(folder, NULL);
    for (uint64_t i = 0; i < COUNT; i++)
        ck_assert_int_eq(put(cabinet, i, VALUE_BYTES, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
}

START_TEST(no_step_goes_by_a_wrong_head)
{
    const struct fault *fault = &faults[(size_t)_i / ACTS];
    const struct act *act = &acts[(size_t)_i % ACTS];
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    struct events events = {0};
    plant(folder);
    ck_assert_uint_ge(spoil_heads(in(&scratch, "cache/data.mdb"), fault), COUNT);

    struct cbn__cabinet *cabinet = open_bounded(folder, &events);
    for (uint64_t i = 0; i < COUNT; i++)
        ck_assert_int_eq(find(cabinet, i, VALUE_BYTES), CBN__LOOKUP_HIT);
    ck_assert_int_eq(events.damages, 0);
    int32_t status = act->act(cabinet);
    ck_assert_msg(status == CBN_STATUS_OK, "%s, %s: %d", fault->name, act->name, status);
    ck_assert_msg(events.damages == 1, "%s, %s: %s", fault->name, act->name, events.last);
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 1);
    for (uint64_t i = 0; i < COUNT && !act->drops_some; i++) {
        bool gone = i == 7 && (act->act == drop || act->act == drop_listed);
        ck_assert_int_eq(find(cabinet, i, VALUE_BYTES), gone ? CBN__LOOKUP_ABSENT : CBN__LOOKUP_HIT);
    }
    char problem[CBN__PAGES_PROBLEM_BYTES] = "";
    struct cbn__pages_meta meta;
    ck_assert_msg(cbn__pages_check_runs(cabinet->layers[0].store->data_fd, &meta, problem) == 0, "%s", problem);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Its call is the last of its cabinet: it does not go on. */
static int32_t drop_damaged(struct cbn__cabinet *cabinet)
{
    struct test_key key = key_of(7);
    struct cbn__hash hash = hash_of(7);
    struct cbn__entry entry;
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry), CBN__LOOKUP_HIT);
    int32_t status = cbn__cabinet_drop_damaged(cabinet, &hash, &entry);
    cbn__entry_done(&entry);
    return status;
}

START_TEST(the_next_process_finds_a_whole_file)
{
    const struct fault *fault = &faults[_i];
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    struct events events = {0};
    plant(folder);
    ck_assert_uint_ge(spoil_heads(in(&scratch, "cache/data.mdb"), fault), COUNT);

    struct cbn__cabinet *cabinet = open_bounded(folder, &events);
    ck_assert_int_eq(drop_damaged(cabinet), CBN_STATUS_DAMAGED);
    cbn__cabinet_close(cabinet);
    ck_assert_msg(events.damages == 1, "%s: %d, %s", fault->name, events.damages, events.last);
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 1);

    cabinet = open_bounded(folder, &events);
    char problem[CBN__PAGES_PROBLEM_BYTES] = "";
    struct cbn__pages_meta meta;
    ck_assert_msg(cbn__pages_check_runs(cabinet->layers[0].store->data_fd, &meta, problem) == 0, "%s", problem);
    ck_assert_int_eq(drop_listed(cabinet), CBN_STATUS_OK);
    ck_assert_int_eq(compact(cabinet), CBN_STATUS_OK);
    for (uint64_t i = 0; i < COUNT; i++)
        ck_assert_int_eq(find(cabinet, i, VALUE_BYTES), i == 7 ? CBN__LOOKUP_ABSENT : CBN__LOOKUP_HIT);
    ck_assert_int_eq(events.damages, 1);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_base_is_read_without_heads)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct events events = {0};
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), &events);
    struct cbn__cabinet *cabinet = NULL;
    plant(in(&scratch, "cache"));
    (void)spoil_heads(in(&scratch, "cache/data.mdb"), &faults[_i]);
    options.read_only = true;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    for (uint64_t i = 0; i < COUNT; i++)
        ck_assert_int_eq(find(cabinet, i, VALUE_BYTES), CBN__LOOKUP_HIT);
    ck_assert_int_eq(events.damages, 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Each of the two walks sees what it is to see, before and after. */
START_TEST(the_walks_differ_by_the_heads)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *data = in(&scratch, "cache/data.mdb");
    char problem[CBN__PAGES_PROBLEM_BYTES] = "";
    struct cbn__pages_meta meta;
    plant(in(&scratch, "cache"));
    int fd = open(data, O_RDONLY);
    ck_assert_int_eq(cbn__pages_check(fd, &meta, problem), 0);
    ck_assert_int_eq(cbn__pages_check_runs(fd, &meta, problem), 0);
    (void)spoil_heads(data, &faults[_i]);
    ck_assert_int_eq(cbn__pages_check(fd, &meta, problem), 0);
    ck_assert_int_eq(cbn__pages_check_runs(fd, &meta, problem), EBADMSG);
    ck_assert_ptr_nonnull(strstr(problem, "page does not begin the run of pages that it should"));
    (void)close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runs");
    TCase *cases = tcase_create("runs");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, no_step_goes_by_a_wrong_head, 0, (int)(FAULTS * ACTS));
    tcase_add_loop_test(cases, the_next_process_finds_a_whole_file, 0, (int)FAULTS);
    tcase_add_loop_test(cases, a_base_is_read_without_heads, 0, (int)FAULTS);
    tcase_add_loop_test(cases, the_walks_differ_by_the_heads, 0, (int)FAULTS);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
