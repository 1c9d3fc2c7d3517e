/*
 * The power goes: everything that a run of puts, drops and a compaction did to the disk is written down, cut, robbed of
 * what was not synced, and opened under another boot id. What comes up is the last durable state, or a set-aside file
 * whose readable entries were salvaged: never a wrong cubin, never a crash.
 *
 * ctest takes 100 cuts of each run. CBN_SWEEP=full in the environment takes every step, several times.
 */
#include "disk_image.h"

#define KEYS 60u
#define CUTS 100u
#define FULL_SEEDS 2u
#define QUIET_EVERY 4u /* of the cuts is between two operations */
#define DEADLINE_S 20
#define SYNCED_AT 45 /* in the mark: after "unsynced " and a boot id */
#define FIRST_BOOT "11111111-2222-3333-4444-555555555555"
#define SECOND_BOOT "66666666-7777-8888-9999-000000000000"

struct run {
    const char *name;
    uint64_t bound_bytes;
};

static const struct run runs[] = {
    {"puts and drops", 8 << 20},
    {"evicting puts", 384 << 10},
};

static size_t size_of(uint64_t which)
{
    return which % 3 == 2 ? 300 + which : 6000 + which % 7 * 2500;
}

static struct cbn__hash hash_of(uint64_t which)
{
    struct test_key key = key_of(which);
    return cbn__hash_blob(RECORD(key));
}

/* ---- the run ---- */

static struct cbn__cabinet *open_bounded(const char *folder, uint64_t max_bytes, struct events *events)
{
    struct cbn__cabinet_options options = options_for(folder, events);
    struct cbn__cabinet *cabinet = NULL;
    struct cbn_error err = {0};
    options.max_bytes = max_bytes;
    int32_t status = cbn__cabinet_open(&options, &cabinet, &err);
    ck_assert_msg(status == CBN_STATUS_OK, "%s", err.message);
    return cabinet;
}

/* After every operation, when all of it is on the disk: which entries there are, a bit a key. */
static void mark_present(struct cbn__cabinet *cabinet)
{
    uint64_t present = 0;
    for (uint64_t i = 0; i < KEYS; i++) {
        struct test_key key = key_of(i);
        if (cbn__cabinet_probe(cabinet, RECORD(key), NULL) == CBN__LOOKUP_HIT)
            present |= 1ull << i;
    }
    faults_mark((int64_t)present);
}

static void do_put(struct cbn__cabinet *cabinet, uint64_t which)
{
    ck_assert_int_eq(put(cabinet, which, size_of(which), 13000), CBN_STATUS_OK);
    mark_present(cabinet);
}

static void do_drop(struct cbn__cabinet *cabinet, uint64_t which)
{
    struct cbn__hash hash = hash_of(which);
    int32_t status = cbn__cabinet_drop(cabinet, &hash, NULL);
    ck_assert(status == CBN_STATUS_OK || status == CBN_STATUS_NOT_FOUND);
    mark_present(cabinet);
}

static size_t record_run(const struct run *run, const char *folder, const struct fault_step **ret_steps)
{
    faults_set_boot_id(FIRST_BOOT);
    faults_record();
    struct cbn__cabinet *cabinet = open_bounded(folder, run->bound_bytes, NULL);
    for (uint64_t i = 0; i < KEYS; i++) {
        do_put(cabinet, i);
        if (i % 5 == 4)
            do_drop(cabinet, i - 3);
        if (i % 7 == 6)
            do_put(cabinet, i - 1);
        if (i % 20 == 19) {
            cbn__cabinet_close(cabinet);
            cabinet = open_bounded(folder, run->bound_bytes, NULL);
        }
    }
    ck_assert_int_eq(cbn__cabinet_compact(cabinet, NULL), CBN_STATUS_OK);
    mark_present(cabinet);
    do_put(cabinet, 1);
    cbn__cabinet_close(cabinet);
    return faults_recorded(ret_steps);
}

/* ---- what must be there ---- */

/* What was there before the operation that the cut goes through, and after it as well. */
static uint64_t expect_of(const struct fault_step *steps, size_t count, size_t cut)
{
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        if (steps[i].kind != STEP_MARK)
            continue;
        if (i >= cut)
            return before & (uint64_t)steps[i].offset;
        before = (uint64_t)steps[i].offset;
    }
    return before;
}

/* The page has the node at `at` among its own: LMDB does not wipe what it deletes. */
static bool has_node(const struct image_file *file, size_t at)
{
    const uint8_t *page = file->bytes + at / BLOCK * BLOCK;
    uint32_t lower = page[12] | (uint32_t)page[13] << 8;
    for (uint32_t i = 16; i + 2 <= lower && i + 2 <= at % BLOCK; i += 2)
        if ((page[i] | (uint32_t)page[i + 1] << 8) == at % BLOCK)
            return true;
    return false;
}

/* A node with the entry's key is somewhere in the file, and leads to the entry's bytes. */
static bool is_readable(const struct image_file *file, uint64_t which)
{
    struct cbn__hash hash = hash_of(which);
    struct cbn__store_key slot = cbn__entry_key(&hash, 13);
    struct test_key record = key_of(which);
    struct cbn__entry_facts facts = facts_of(13000);
    CBN__BUF_AUTO value = CBN__BUF_INIT;
    uint8_t payload[32768];
    fill_payload(payload, size_of(which), which);
    cbn__entry_encode(&slot, RECORD(record), (struct cbn__blob){payload, size_of(which)}, cbn__blob_text("log"), &facts,
                      &value);
    const uint8_t *end = file->bytes + file->size, *at = file->bytes;
    while ((at = memmem(at, (size_t)(end - at), slot.bytes, sizeof(slot.bytes)))) {
        at += sizeof(slot.bytes);
        bool big = at[-(int)sizeof(slot.bytes) - 4] & 1; /* the node's flags */
        uint64_t page = big && end - at >= 8 ? cbn__load_u64(at) : 0;
        const uint8_t *data = big ? page < file->size / BLOCK ? file->bytes + page * BLOCK + 16 : end : at;
        if ((size_t)(end - data) >= value.size && memcmp(data, value.data, value.size) == 0 &&
            has_node(file, (size_t)(at - file->bytes) - sizeof(slot.bytes) - 8))
            return true;
    }
    return false;
}

struct verdict {
    uint64_t served; /* a bit a key */
    uint32_t expected, aside, lost, damaged;
};

/* What is not served is not what it was, and says so: never wrong bytes, which find asserts. */
static void look_up_all(struct cbn__cabinet *cabinet, struct verdict *verdict)
{
    verdict->served = 0;
    for (uint64_t i = 0; i < KEYS; i++) {
        enum cbn__lookup found = find(cabinet, i, size_of(i));
        ck_assert_msg(found == CBN__LOOKUP_HIT || found == CBN__LOOKUP_ABSENT || found == CBN__LOOKUP_DAMAGED,
                      "key %u: look-up %d", (unsigned)i, found);
        verdict->damaged += found == CBN__LOOKUP_DAMAGED;
        verdict->served |= (uint64_t)(found == CBN__LOOKUP_HIT) << i;
    }
}

/* In a child, after the reboot. Damage that only using the file shows may set it aside later than its opening. */
static struct verdict examine(const char *folder, const struct image_file *file, uint64_t stored)
{
    struct verdict verdict = {0};
    struct events events = {0};
    (void)alarm(DEADLINE_S);
    faults_set_boot_id(SECOND_BOOT);
    struct cbn__cabinet *cabinet = open_bounded(folder, 8 << 20, &events);
    look_up_all(cabinet, &verdict);
    ck_assert_int_eq(put(cabinet, KEYS, 5000, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, KEYS, 5000), CBN__LOOKUP_HIT);
    look_up_all(cabinet, &verdict);
    cbn__cabinet_close(cabinet);
    verdict.aside = (uint32_t)count_files(folder, "data.mdb.damaged-");
    ck_assert_uint_le(verdict.aside, 1);
    ck_assert_int_eq(count_files(folder, ""), 2 + (int)verdict.aside);
    for (uint64_t i = 0; i < KEYS; i++) {
        verdict.expected += (uint32_t)(stored >> i & 1);
        if (!(stored & ~verdict.served & 1ull << i))
            continue;
        ck_assert_msg(verdict.aside && !is_readable(file, i), "key %u is not served: %s, %u set aside: %s", (unsigned)i,
                      is_readable(file, i) ? "readable" : "not readable", verdict.aside, events.last);
        verdict.lost++;
    }
    return verdict;
}

struct totals {
    uint64_t points, quiet, expected, aside, lost, damaged;
};

/* The mark names the data file by its inode, which the disk would have kept and a copy has not. */
static void rename_inode(struct image *image, const char *folder)
{
    const struct image_file *lock = image_find(image, "lock"), *data = image_find(image, "data.mdb");
    char old[16], new[16], path[3 * PATH_BYTES];
    struct stat status;
    (void)snprintf(path, sizeof(path), "%s/data.mdb", folder);
    if (!lock || !data || lock->size < 64 || stat(path, &status) != 0)
        return;
    (void)snprintf(old, sizeof(old), " %08x ", (unsigned)data->inode);
    (void)snprintf(new, sizeof(new), " %08x ", (unsigned)status.st_ino);
    if (memcmp(lock->bytes + SYNCED_AT, old, strlen(old)) != 0)
        return;
    (void)snprintf(path, sizeof(path), "%s/lock", folder);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, new, strlen(new), SYNCED_AT), (ssize_t)strlen(new));
    (void)close(fd);
}

static void reboot_at(const struct run *run, const struct fault_step *steps, size_t count, size_t cut, enum loss loss,
                      uint64_t seed, struct totals *totals)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    char folder[2 * PATH_BYTES];
    struct verdict verdict = {0};
    int ends[2], status = 0;
    (void)snprintf(folder, sizeof(folder), "%s/cache", scratch.path);
    struct image image = image_of(steps, cut, loss, seed);
    image_save(&image, folder);
    rename_inode(&image, folder);
    uint64_t stored = expect_of(steps, count, cut);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        verdict = examine(folder, image_find(&image, "data.mdb"), stored);
        _exit(write(ends[1], &verdict, sizeof(verdict)) == (ssize_t)sizeof(verdict) ? 0 : 2);
    }
    (void)close(ends[1]);
    ssize_t told = read(ends[0], &verdict, sizeof(verdict));
    (void)close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0 && told == (ssize_t)sizeof(verdict), "%s: step %zu, loss %d, seed %llu: wait status 0x%x",
                  run->name, cut, loss, (unsigned long long)seed, (unsigned)status);
    image_done(&image);
    /* Between two operations everything is on the disk, and known to be. */
    if (cut && steps[cut - 1].kind == STEP_MARK && (loss == LOSE_NONE || loss == LOSE_PAGES)) {
        ck_assert_uint_eq(verdict.aside, 0);
        totals->quiet++;
    }
    totals->points++;
    totals->expected += verdict.expected;
    totals->aside += verdict.aside;
    totals->lost += verdict.lost;
    totals->damaged += verdict.damaged;
}

START_TEST(the_power_goes)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const struct run *run = &runs[_i];
    const char *wanted = getenv("CBN_SWEEP");
    const bool full = wanted && strcmp(wanted, "full") == 0;
    const struct fault_step *steps = NULL;
    struct totals totals = {0};
    size_t count = record_run(run, in(&scratch, "cache"), &steps);
    ck_assert_uint_gt(count, 2 * CUTS);
    const size_t cuts = full ? count : CUTS;
    for (size_t i = 1; i <= cuts; i++) {
        size_t cut = i * count / cuts;
        while (!full && i % QUIET_EVERY == 0 && steps[cut - 1].kind != STEP_MARK)
            cut--;
        for (enum loss loss = 0; loss < LOSSES; loss++)
            for (uint64_t seed = 0; seed < (full && loss != LOSE_ALL ? FULL_SEEDS : 1); seed++)
                reboot_at(run, steps, count, cut, loss, seed * 7919 + i, &totals);
    }
    printf("%s: %zu steps, %llu reboots, %llu between operations: %llu files set aside; of %llu durable entries %llu "
           "were no longer readable, %llu "
           "look-ups met damage\n",
           run->name, count, (unsigned long long)totals.points, (unsigned long long)totals.quiet,
           (unsigned long long)totals.aside, (unsigned long long)totals.expected, (unsigned long long)totals.lost,
           (unsigned long long)totals.damaged);
    (void)fflush(stdout);
    ck_assert_uint_gt(totals.aside, 0);
    ck_assert_uint_gt(totals.quiet, 0);
}
END_TEST

/* Ends without closing. */
static int compact_and_stop(const char *folder)
{
    char mark[64] = "";
    faults_set_boot_id(FIRST_BOOT);
    struct cbn__cabinet *cabinet = open_bounded(folder, 8 << 20, NULL);
    for (uint64_t i = 0; i < KEYS; i++)
        if (put(cabinet, i, size_of(i), 13000) != CBN_STATUS_OK)
            return 2;
    if (cbn__cabinet_compact(cabinet, NULL) != CBN_STATUS_OK)
        return 3;
    int fd = open(cabinet->layers[0].store->lock_path, O_RDONLY);
    if (pread(fd, mark, sizeof(mark), 0) != (ssize_t)sizeof(mark))
        return 4;
    return strspn(mark, " ") == sizeof(mark) - 1 ? 0 : 5;
}

/* The copy is on the disk as a whole, and the file that the mark named is gone: the mark goes, too. */
START_TEST(a_compacted_file_outlives_the_boot)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const char *folder = in(&scratch, "cache");
    struct events events = {0};
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(compact_and_stop(folder));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "wait status 0x%x", (unsigned)status);
    faults_set_boot_id(SECOND_BOOT);
    struct cbn__cabinet *cabinet = open_bounded(folder, 8 << 20, &events);
    for (uint64_t i = 0; i < KEYS; i++)
        ck_assert_int_eq(find(cabinet, i, size_of(i)), CBN__LOOKUP_HIT);
    ck_assert_msg(events.damages == 0 && events.notices == 0, "%s", events.last);
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torn");
    TCase *cases = tcase_create("torn");
    tcase_set_timeout(cases, getenv("CBN_SWEEP") ? 3600 : 240);
    tcase_add_test(cases, a_compacted_file_outlives_the_boot);
    tcase_add_loop_test(cases, the_power_goes, 0, (int)(sizeof(runs) / sizeof(runs[0])));
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
