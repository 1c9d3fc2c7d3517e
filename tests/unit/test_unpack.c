/*
 * Unpacking: what was cut, altered or is another than expected leaves nothing behind; and thousands of faults of a
 * pack, of which none is taken, neither unpacked nor in place. CBN_SWEEP=full tries 100,000.
 */
#include "pack_fixture.h"
#include "random.h"

#include <pthread.h>

#define ENTRIES 12u
#define BOUND ((uint64_t)4 << 20)

static size_t size_of(uint64_t which)
{
    return 60 + which * 977 % 5000;
}

static void make_pack(const struct scratch *scratch, const char *name, uint64_t first, uint64_t count)
{
    struct cbn__cabinet *cabinet = open_cabinet(in(scratch, "maker"), NULL);
    for (uint64_t which = first; which < first + count; which++)
        ck_assert_int_eq(put(cabinet, which, size_of(which), 13001), CBN_STATUS_OK);
    (void)pack_to(cabinet, in(scratch, name));
    cbn__cabinet_close(cabinet);
}

static uint64_t entries_of(struct cbn__cabinet *cabinet)
{
    struct cbn__layer layer;
    ck_assert_int_eq(cbn__cabinet_layer(cabinet, 0, &layer, NULL), CBN_STATUS_OK);
    return layer.entries;
}

static struct cbn__counters counters_of(struct cbn__cabinet *cabinet)
{
    struct cbn__layer_stats stats;
    ck_assert_int_eq(cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    return stats.counters;
}

/* ---- what is taken ---- */

START_TEST(all_of_it_once)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    make_pack(&scratch, "p", 0, ENTRIES);
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "c"), NULL);
    struct cbn__unpack_result result;
    int64_t before_s = cbn__clock_wall_s();
    ck_assert_int_eq(unpack_from(cabinet, in(&scratch, "p"), NULL, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.entries, ENTRIES);
    ck_assert_uint_eq(result.stored, ENTRIES);
    ck_assert_uint_eq(result.already, 0);
    ck_assert_uint_eq(result.bytes, (uint64_t)file_bytes(in(&scratch, "p")));
    ck_assert_uint_eq(entries_of(cabinet), ENTRIES);
    for (uint64_t which = 0; which < ENTRIES; which++)
        ck_assert_int_eq(find(cabinet, which, size_of(which)), CBN__LOOKUP_HIT);
    struct test_key key = key_of(3);
    struct cbn__entry entry;
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry), CBN__LOOKUP_HIT);
    ck_assert_int_ge(entry.facts.created_s, before_s); /* to this cache it is new: age counts from here */
    ck_assert_uint_eq(entry.facts.registers, 168);
    ck_assert_uint_eq(entry.log.size, 0);
    cbn__entry_done(&entry);
    ck_assert_uint_eq(counters_of(cabinet).puts, ENTRIES);
    ck_assert_uint_eq(counters_of(cabinet).compile_ms_spent, 0);
    ck_assert_int_eq(unpack_from(cabinet, in(&scratch, "p"), NULL, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.already, ENTRIES);
    ck_assert_uint_eq(result.stored, 0);
    ck_assert_uint_eq(counters_of(cabinet).puts, ENTRIES);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* Another kernel under the key gives way, a damaged one too; pins stay, and what is the same keeps what is known. */
START_TEST(what_was_there)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    make_pack(&scratch, "p", 0, 3);
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "c"), NULL);
    uint8_t other[99] = {1, 2, 3};
    struct cbn__entry_facts facts = facts_of(13001);
    struct test_key key = key_of(0);
    struct cbn__hash hash = cbn__hash_blob(RECORD(key));
    ck_assert_int_eq(cbn__cabinet_put(cabinet, RECORD(key), (struct cbn__blob){other, sizeof(other)},
                                      cbn__blob_text(""), &facts, NULL),
                     CBN_STATUS_OK);
    ck_assert_int_eq(cbn__cabinet_pin(cabinet, &hash, true, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 1, size_of(1), 13001), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 2, size_of(2), 12000), CBN_STATUS_OK);
    struct cbn__unpack_result result;
    ck_assert_int_eq(unpack_from(cabinet, in(&scratch, "p"), NULL, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.stored, 2);
    ck_assert_uint_eq(result.already, 1);
    ck_assert_uint_eq(entries_of(cabinet), 4); /* the other major stands beside */
    struct cbn__entry entry;
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry), CBN__LOOKUP_HIT);
    ck_assert(payload_is(&entry, size_of(0), 0));
    ck_assert(entry.pinned);
    cbn__entry_done(&entry);
    key = key_of(1);
    ck_assert_int_eq(cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry), CBN__LOOKUP_HIT);
    ck_assert_int_eq(entry.facts.created_s, 1700000000);
    ck_assert_uint_eq(entry.facts.compile_ms, 321);
    cbn__entry_done(&entry);
    cbn__cabinet_close(cabinet);
}
END_TEST

struct feed {
    int fd;
    const struct cbn__buf *bytes;
    size_t size;
};

static void *feed(void *user)
{
    const struct feed *feed = user;
    for (size_t at = 0; at < feed->size;) {
        ssize_t written = write(feed->fd, feed->bytes->data + at, feed->size - at);
        if (written < 0)
            break;
        at += (size_t)written;
    }
    (void)close(feed->fd);
    return NULL;
}

static int32_t unpack_stream(struct cbn__cabinet *cabinet, const struct cbn__buf *bytes, size_t size, bool nonblocking)
{
    int ends[2];
    pthread_t thread;
    struct cbn__unpack_result result;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    if (nonblocking)
        ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    struct feed task = {ends[1], bytes, size};
    ck_assert_int_eq(pthread_create(&thread, NULL, feed, &task), 0);
    int32_t status = cbn__cabinet_unpack(cabinet, ends[0], "the stream", NULL, &result, NULL);
    (void)close(ends[0]);
    (void)pthread_join(thread, NULL);
    return status;
}

START_TEST(a_stream_is_read_to_its_end_first)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    (void)signal(SIGPIPE, SIG_IGN);
    make_pack(&scratch, "p", 0, ENTRIES);
    CBN__BUF_AUTO bytes = load(in(&scratch, "p"));
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "c"), NULL);
    ck_assert_int_eq(unpack_stream(cabinet, &bytes, bytes.size - 1, false), CBN_STATUS_DAMAGED);
    ck_assert_int_eq(unpack_stream(cabinet, &bytes, 0, true), CBN_STATUS_DAMAGED);
    ck_assert_uint_eq(entries_of(cabinet), 0);
    ck_assert_int_eq(unpack_stream(cabinet, &bytes, bytes.size, true), CBN_STATUS_OK);
    ck_assert_uint_eq(entries_of(cabinet), ENTRIES);
    ck_assert_int_eq(unpack_stream(cabinet, &bytes, bytes.size, false), CBN_STATUS_OK);
    ck_assert_int_eq(count_files(in(&scratch, "c"), ""), 2); /* data.mdb, lock: what was spooled had no name */
    cbn__cabinet_close(cabinet);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(another_than_expected)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    make_pack(&scratch, "p", 0, 3);
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "c"), NULL);
    struct cbn__unpack_result result;
    struct cbn_error err = {0};
    uint8_t expected[CBN__SHA256_BYTES] = {0};
    ck_assert_int_eq(unpack_from(cabinet, in(&scratch, "p"), expected, &result, &err), CBN_STATUS_DAMAGED);
    ck_assert_ptr_nonnull(strstr(err.message, "is a whole pack, and not the one expected: its SHA-256 is"));
    ck_assert_uint_eq(entries_of(cabinet), 0);
    memcpy(expected, result.digest, sizeof(expected));
    ck_assert_int_eq(unpack_from(cabinet, in(&scratch, "p"), expected, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(entries_of(cabinet), 3);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(nowhere_to_put_it)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    make_pack(&scratch, "p", 0, 1);
    struct cbn__unpack_result result;
    struct cbn__cabinet *cabinet = open_above(NULL, in(&scratch, "p"), NULL);
    ck_assert_int_eq(unpack_from(cabinet, in(&scratch, "p"), NULL, &result, NULL), CBN_STATUS_NOT_FOUND);
    cbn__cabinet_close(cabinet);
}
END_TEST

static struct cbn__cabinet *open_bounded(const char *folder)
{
    struct cbn__cabinet_options options = options_for(folder, NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.max_bytes = BOUND;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    return cabinet;
}

static void make_large_pack(const struct scratch *scratch, const char *name, uint64_t count, size_t size)
{
    struct cbn__cabinet *cabinet = open_cabinet(in(scratch, "large"), NULL);
    for (uint64_t which = 0; which < count; which++)
        ck_assert_int_eq(put(cabinet, which, size, 13001), CBN_STATUS_OK);
    (void)pack_to(cabinet, in(scratch, name));
    cbn__cabinet_close(cabinet);
}

/* What cannot fit is refused before anything goes for it; what fits pushes others out, and is there as a whole. */
START_TEST(the_bound_of_the_overlay)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn_error err = {0};
    struct cbn__unpack_result result;
    make_large_pack(&scratch, "much", 50, 100000);
    struct cbn__cabinet *cabinet = open_bounded(in(&scratch, "c"));
    for (uint64_t which = 1000; which < 1030; which++)
        ck_assert_int_eq(put(cabinet, which, 100000, 13001), CBN_STATUS_OK);
    ck_assert_int_eq(unpack_from(cabinet, in(&scratch, "much"), NULL, &result, &err), CBN_STATUS_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "use the pack in place as a base"));
    ck_assert_uint_eq(entries_of(cabinet), 30);
    CBN__BUF_AUTO bytes = load(in(&scratch, "much"));
    (void)signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(unpack_stream(cabinet, &bytes, bytes.size, false), CBN_STATUS_LIMIT);
    ck_assert_uint_eq(entries_of(cabinet), 30);
    SCRATCH_AUTO fresh = scratch_make_in_memory();
    make_large_pack(&fresh, "some", 30, 100000);
    ck_assert_int_eq(unpack_from(cabinet, in(&fresh, "some"), NULL, &result, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(result.stored, 30);
    for (uint64_t which = 0; which < 30; which++)
        ck_assert_int_eq(find(cabinet, which, 100000), CBN__LOOKUP_HIT);
    ck_assert_uint_gt(counters_of(cabinet).evictions, 0);
    ck_assert_int_le(file_bytes(in(&scratch, "c/data.mdb")), (off_t)BOUND);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* More than one batch, and values that share leaves. */
START_TEST(many_entries)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "maker"), NULL);
    for (uint64_t which = 0; which < 700; which++)
        ck_assert_int_eq(put(cabinet, which, 30 + which % 3000, 13001), CBN_STATUS_OK);
    struct packed packed = pack_to(cabinet, in(&scratch, "p"));
    cbn__cabinet_close(cabinet);
    cabinet = open_cabinet(in(&scratch, "c"), NULL);
    struct cbn__unpack_result result;
    ck_assert_int_eq(unpack_from(cabinet, in(&scratch, "p"), packed.digest, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.stored, 700);
    for (uint64_t which = 0; which < 700; which++)
        ck_assert_int_eq(find(cabinet, which, 30 + which % 3000), CBN__LOOKUP_HIT);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* ---- written to between the two passes ---- */

static int reads_until_swap = -1;
static char swapped_path[PATH_BYTES];
static const struct cbn__buf *swapped_bytes;

ssize_t __real_pread(int fd, void *bytes, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset);

/* The file's bytes become another sound pack's, of the same layout, right before the read that the test named. */
ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset)
{
    if (reads_until_swap >= 0 && reads_until_swap-- == 0) {
        int out = open(swapped_path, O_WRONLY | O_CLOEXEC);
        ck_assert(pwrite(out, swapped_bytes->data, swapped_bytes->size, 0) == (ssize_t)swapped_bytes->size);
        (void)close(out);
    }
    return __real_pread(fd, bytes, size, offset);
}

#define SWAPPED_ENTRIES 4u
#define FIRST_PASS_READS 4 /* head, tail, index, the one chunk of entries */

/* Same keys and sizes, other cubins: every row of the one index fits the other's entries. */
static struct cbn__buf make_twin(const struct scratch *scratch, const char *name, uint64_t seed)
{
    uint8_t payload[500];
    struct cbn__entry_facts facts = facts_of(13001);
    struct cbn__cabinet *cabinet = open_cabinet(in(scratch, name), NULL);
    for (uint64_t which = 0; which < SWAPPED_ENTRIES; which++) {
        struct test_key key = key_of(which);
        fill_payload(payload, sizeof(payload), which + seed);
        ck_assert_int_eq(cbn__cabinet_put(cabinet, RECORD(key), (struct cbn__blob){payload, sizeof(payload)},
                                          cbn__blob_text(""), &facts, NULL),
                         CBN_STATUS_OK);
    }
    (void)pack_to(cabinet, in(scratch, "twin"));
    cbn__cabinet_close(cabinet);
    return load(in(scratch, "twin"));
}

static unsigned count_of_twin(struct cbn__cabinet *cabinet, uint64_t seed)
{
    unsigned count = 0;
    for (uint64_t which = 0; which < SWAPPED_ENTRIES; which++) {
        struct test_key key = key_of(which);
        struct cbn__entry entry;
        if (cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry) != CBN__LOOKUP_HIT)
            continue;
        count += payload_is(&entry, 500, which + seed);
        cbn__entry_done(&entry);
    }
    return count;
}

/* The second pass may only take what the digest of the first was taken of: else --expect-digest is no promise. */
START_TEST(written_to_between_the_passes)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    CBN__BUF_AUTO one = make_twin(&scratch, "one", 0);
    CBN__BUF_AUTO other = make_twin(&scratch, "other", 100);
    ck_assert_uint_eq(one.size, other.size);
    (void)snprintf(swapped_path, sizeof(swapped_path), "%.300s/p", scratch.path);
    swapped_bytes = &other;
    int late = 0;
    for (int reads = 0; reads < 4 * FIRST_PASS_READS; reads++) {
        char folder[32];
        (void)snprintf(folder, sizeof(folder), "c%d", reads);
        struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, folder), NULL);
        struct cbn__unpack_result result;
        save(in(&scratch, "p"), one.data, one.size);
        reads_until_swap = reads;
        int32_t status = unpack_from(cabinet, in(&scratch, "p"), NULL, &result, NULL);
        reads_until_swap = -1;
        unsigned of_one = count_of_twin(cabinet, 0), of_other = count_of_twin(cabinet, 100);
        /* Up to the second read it is the other pack as a whole: their heads are equal. */
        ck_assert_uint_eq(of_one, status == CBN_STATUS_OK && reads > 1 ? SWAPPED_ENTRIES : 0);
        ck_assert_uint_eq(of_other, reads <= 1 ? SWAPPED_ENTRIES : 0);
        ck_assert_msg(reads <= 1 || reads >= FIRST_PASS_READS || status == CBN_STATUS_DAMAGED, "%d", reads);
        late += reads >= FIRST_PASS_READS && status == CBN_STATUS_DAMAGED;
        cbn__cabinet_close(cabinet);
    }
    ck_assert_int_ge(late, 1);
}
END_TEST

/* ---- faults ---- */

struct fault {
    const struct cbn__buf *whole;
    struct cbn__cabinet *overlay; /* into which nothing may come */
    char path[PATH_BYTES];
    uint64_t opened, served;
};

/* In place: it does not open, or what is given out is what was packed. */
static void use_in_place(struct fault *fault)
{
    struct events events = {0};
    struct cbn__cabinet *cabinet = open_above(NULL, fault->path, &events);
    bool opened = cbn__cabinet_layer_count(cabinet) == 1;
    unsigned lost = 0;
    for (uint64_t which = 0; which < ENTRIES && opened; which++) {
        enum cbn__lookup found = find(cabinet, which, size_of(which)); /* fails on any other byte */
        ck_assert(found == CBN__LOOKUP_HIT || found == CBN__LOOKUP_DAMAGED);
        lost += found == CBN__LOOKUP_DAMAGED;
        fault->served += found == CBN__LOOKUP_HIT;
    }
    ck_assert(opened ? lost == 1 && events.damages == 1 : events.notices == 1);
    fault->opened += opened;
    cbn__cabinet_close(cabinet);
}

static void try_fault(struct fault *fault, const uint8_t *bytes, size_t size, const char *what, size_t at)
{
    struct cbn__unpack_result result;
    save(fault->path, bytes, size);
    int32_t status = unpack_from(fault->overlay, fault->path, NULL, &result, NULL);
    ck_assert_msg(status == CBN_STATUS_DAMAGED || status == CBN_STATUS_UNSUPPORTED, "%s at %zu: %d", what, at, status);
    ck_assert_uint_eq(result.stored, 0);
    use_in_place(fault);
}

START_TEST(none_of_many_faults_is_taken)
{
    const char *sweep = getenv("CBN_SWEEP");
    const size_t faults = sweep && strcmp(sweep, "full") == 0 ? 100000 : 10000;
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    make_pack(&scratch, "p", 0, ENTRIES);
    CBN__BUF_AUTO whole = load(in(&scratch, "p"));
    CBN__BUF_AUTO longer = load(in(&scratch, "p"));
    cbn__buf_append(&longer, "\0", 1);
    struct fault fault = {.whole = &whole, .overlay = open_cabinet(in(&scratch, "c"), NULL)};
    (void)snprintf(fault.path, sizeof(fault.path), "%.300s/f", scratch.path);
    uint64_t state = 20261129;
    for (size_t i = 0; i < faults; i++) {
        size_t at = (size_t)random_below(&state, (int64_t)whole.size);
        if (i % 4 == 3) {
            try_fault(&fault, whole.data, at, "cut", at);
            continue;
        }
        uint8_t change = (uint8_t)(i % 4 == 0 ? 1u << random_below(&state, 8) : 1 + random_below(&state, 255));
        /* One in four of the bytes that lead to all others: the head, the index, the tail. */
        if (i % 4 == 1 && random_below(&state, 4) == 0)
            at = whole.size - 1 - at % (CBN__PACK_TAIL_BYTES + ENTRIES * CBN__PACK_ROW_BYTES);
        whole.data[at] ^= change;
        try_fault(&fault, whole.data, whole.size, "byte", at);
        whole.data[at] ^= change;
    }
    try_fault(&fault, longer.data, longer.size, "longer", longer.size);
    ck_assert_uint_eq(entries_of(fault.overlay), 0);
    ck_assert_uint_gt(fault.opened, faults / 10); /* where the fault lies in an entry, the others serve */
    ck_assert_uint_eq(fault.served, fault.opened * (ENTRIES - 1));
    struct cbn__unpack_result result;
    ck_assert_int_eq(unpack_from(fault.overlay, in(&scratch, "p"), NULL, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(entries_of(fault.overlay), ENTRIES);
    cbn__cabinet_close(fault.overlay);
    (void)printf("%zu faults, none taken; in place %llu opened, %llu entries served right\n", faults + 1,
                 (unsigned long long)fault.opened, (unsigned long long)fault.served);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unpack");
    TCase *tests = tcase_create("unpack");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, all_of_it_once);
    tcase_add_test(tests, what_was_there);
    tcase_add_test(tests, a_stream_is_read_to_its_end_first);
    tcase_add_test(tests, another_than_expected);
    tcase_add_test(tests, nowhere_to_put_it);
    tcase_add_test(tests, the_bound_of_the_overlay);
    tcase_add_test(tests, many_entries);
    tcase_add_test(tests, written_to_between_the_passes);
    tcase_add_test(tests, none_of_many_faults_is_taken);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
