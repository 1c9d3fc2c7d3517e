/*
 * Packs: the same kernels give the same bytes; in place they serve and nothing is written; unpacked they are all
 * verified before any is taken.
 */
#include "pack_fixture.h"

#include <sys/resource.h>

#define ENTRIES 24u

static size_t size_of(uint64_t which)
{
    return 40 + which * 331 % 9000;
}

/* In this order: what is stored first has another creation, another page and other neighbours. */
static struct cbn__cabinet *fill(const char *folder, bool backwards)
{
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    for (uint64_t i = 0; i < ENTRIES; i++) {
        uint64_t which = backwards ? ENTRIES - 1 - i : i;
        ck_assert_int_eq(put(cabinet, which, size_of(which), 13001), CBN_STATUS_OK);
    }
    return cabinet;
}

static bool same_files(const char *one, const char *other)
{
    CBN__BUF_AUTO a = load(one);
    CBN__BUF_AUTO b = load(other);
    return cbn__blob_equal(cbn__buf_blob(&a), cbn__buf_blob(&b));
}

/* ---- writing ---- */

START_TEST(the_same_kernels_give_the_same_bytes)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *one = fill(in(&scratch, "one"), false), *other = fill(in(&scratch, "two/deeper"), true);
    ck_assert_int_eq(find(one, 3, size_of(3)), CBN__LOOKUP_HIT); /* used, pinned, and built in another time */
    struct test_key key = key_of(5);
    struct cbn__hash hash = cbn__hash_blob(RECORD(key));
    ck_assert_int_eq(cbn__cabinet_pin(one, &hash, true, NULL), CBN_STATUS_OK);
    struct cbn__entry_facts facts = facts_of(13001);
    facts.compile_ms = 9;
    facts.created_s = 1;
    uint8_t payload[16384];
    fill_payload(payload, size_of(7), 7);
    key = key_of(7);
    ck_assert_int_eq(cbn__cabinet_put(one, RECORD(key), (struct cbn__blob){payload, size_of(7)},
                                      cbn__blob_text("another log"), &facts, NULL),
                     CBN_STATUS_OK);
    struct packed a = pack_to(one, in(&scratch, "a")), b = pack_to(other, in(&scratch, "b"));
    ck_assert_uint_eq(a.entries, ENTRIES);
    ck_assert_uint_eq(a.damaged, 0);
    ck_assert_mem_eq(a.digest, b.digest, sizeof(a.digest));
    ck_assert(same_files(in(&scratch, "a"), in(&scratch, "b")));
    cbn__cabinet_close(one);
    cbn__cabinet_close(other);
    /* Unpacked and packed again, in place and through a layer above, it stays itself. */
    one = open_cabinet(in(&scratch, "three"), NULL);
    struct cbn__unpack_result result;
    ck_assert_int_eq(unpack_from(one, in(&scratch, "a"), a.digest, &result, NULL), CBN_STATUS_OK);
    (void)pack_to(one, in(&scratch, "c"));
    cbn__cabinet_close(one);
    ck_assert(same_files(in(&scratch, "a"), in(&scratch, "c")));
    one = open_above(in(&scratch, "three"), in(&scratch, "a"), NULL);
    (void)pack_to(one, in(&scratch, "d"));
    cbn__cabinet_close(one);
    ck_assert(same_files(in(&scratch, "a"), in(&scratch, "d")));
}
END_TEST

/* The form is what other machines wrote: it may not change under them. */
START_TEST(the_form_is_pinned)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = fill(in(&scratch, "one"), false);
    struct packed packed = pack_to(cabinet, in(&scratch, "p"));
    char text[CBN__SHA256_TEXT_BYTES];
    cbn__sha256_format(packed.digest, text);
    ck_assert_str_eq(text, "d4cd7f8077d6da074ad2436c46b585cfe706b0624513662bb8ce5b776450cb2c");
    uint8_t again[CBN__SHA256_BYTES];
    ck_assert(cbn__sha256_parse(text, again));
    ck_assert_mem_eq(again, packed.digest, sizeof(again));
    CBN__BUF_AUTO bytes = load(in(&scratch, "p"));
    struct cbn__sha256 sha;
    cbn__sha256_begin(&sha);
    cbn__sha256_add(&sha, cbn__buf_blob(&bytes));
    cbn__sha256_end(&sha, again);
    ck_assert_mem_eq(again, packed.digest, sizeof(again)); /* what sha256sum says of the file */
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(digests_are_read_strictly)
{
    uint8_t digest[CBN__SHA256_BYTES];
    char text[80] = "sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855";
    struct cbn__sha256 sha;
    uint8_t empty[CBN__SHA256_BYTES];
    cbn__sha256_begin(&sha);
    cbn__sha256_end(&sha, empty);
    ck_assert(cbn__sha256_parse(text, digest));
    ck_assert_mem_eq(digest, empty, sizeof(digest));
    ck_assert(cbn__sha256_parse(text + 7, digest));
    ck_assert(!cbn__sha256_parse(text + 8, digest));
    ck_assert(!cbn__sha256_parse("", digest));
    text[20] = 'g';
    ck_assert(!cbn__sha256_parse(text, digest));
    text[20] = '0';
    strcat(text, "0");
    ck_assert(!cbn__sha256_parse(text, digest));
}
END_TEST

START_TEST(a_file_comes_to_be_whole_or_not_at_all)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__pack_file file;
    struct cbn_error err = {0};
    save(in(&scratch, "p"), "before", 6);
    ck_assert_int_eq(symlink("p", in(&scratch, "link")), 0);
    ck_assert_int_eq(cbn__pack_file_open(in(&scratch, "link"), -1, &file, &err), CBN_STATUS_OK);
    ck_assert_int_eq(write(file.fd, "half", 4), 4);
    ck_assert_int_eq(count_files(scratch.path, "p"), 2);
    cbn__pack_file_done(&file);
    ck_assert_int_eq(count_files(scratch.path, "p"), 1);
    ck_assert_int_eq(file_bytes(in(&scratch, "p")), 6);
    ck_assert_int_eq(cbn__pack_file_open(in(&scratch, "link"), -1, &file, &err), CBN_STATUS_OK);
    ck_assert_int_eq(write(file.fd, "whole one", 9), 9);
    ck_assert_int_eq(cbn__pack_file_commit(&file, &err), CBN_STATUS_OK);
    cbn__pack_file_done(&file);
    ck_assert_int_eq(file_bytes(in(&scratch, "p")), 9);
    struct stat link;
    ck_assert(lstat(in(&scratch, "link"), &link) == 0 && S_ISLNK(link.st_mode));
    ck_assert_int_eq(count_files(scratch.path, "p"), 1);
    /* Nor is a link replaced that leads nowhere. */
    ck_assert_int_eq(unlink(in(&scratch, "p")), 0);
    ck_assert_int_eq(cbn__pack_file_open(in(&scratch, "link"), -1, &file, &err), CBN_STATUS_INVALID);
    cbn__pack_file_done(&file);
    ck_assert(lstat(in(&scratch, "link"), &link) == 0 && S_ISLNK(link.st_mode));
    ck_assert_int_eq(cbn__pack_file_open(scratch.path, -1, &file, &err), CBN_STATUS_INVALID);
    cbn__pack_file_done(&file);
    ck_assert_int_eq(cbn__pack_file_open(in(&scratch, "no/where"), -1, &file, &err), CBN_STATUS_IO);
    ck_assert_int_eq(err.native_code, ENOENT);
    cbn__pack_file_done(&file);
}
END_TEST

START_TEST(a_disk_that_is_full_and_a_limit_on_files)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = fill(in(&scratch, "one"), false);
    struct cbn__pack_writer writer;
    struct cbn_error err = {0};
    uint64_t damaged = 0;
    uint8_t digest[CBN__SHA256_BYTES];
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    cbn__pack_write_begin(&writer, full);
    ck_assert_int_eq(cbn__cabinet_merge(cabinet, NULL, 0, write_each, &writer, &damaged, &err), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__pack_write_end(&writer, digest, &err), CBN_STATUS_IO);
    ck_assert_int_eq(err.native_code, ENOSPC);
    cbn__pack_writer_done(&writer);
    (void)close(full);
    struct cbn__pack_file file;
    ck_assert_int_eq(cbn__pack_file_open(in(&scratch, "p"), -1, &file, &err), CBN_STATUS_OK);
    struct rlimit before, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    cbn__pack_write_begin(&writer, file.fd);
    ck_assert_int_eq(cbn__cabinet_merge(cabinet, NULL, 0, write_each, &writer, &damaged, &err), CBN_STATUS_OK);
    int limited = setrlimit(RLIMIT_FSIZE, &small); /* Check writes a file, too: nothing is asserted until it is back */
    int32_t status = cbn__pack_write_end(&writer, digest, &err);
    (void)setrlimit(RLIMIT_FSIZE, &before);
    ck_assert_int_eq(limited, 0);
    ck_assert_int_eq(status, CBN_STATUS_IO); /* and no SIGXFSZ */
    ck_assert_int_eq(err.native_code, EFBIG);
    cbn__pack_writer_done(&writer);
    cbn__pack_file_done(&file);
    ck_assert_int_eq(count_files(scratch.path, "p"), 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(nothing_is_a_pack_too)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "one"), NULL);
    struct packed packed = pack_to(cabinet, in(&scratch, "p"));
    ck_assert_uint_eq(packed.entries, 0);
    ck_assert_int_eq(file_bytes(in(&scratch, "p")), CBN__PACK_HEAD_BYTES + CBN__PACK_TAIL_BYTES);
    struct cbn__unpack_result result;
    ck_assert_int_eq(unpack_from(cabinet, in(&scratch, "p"), packed.digest, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.entries + result.stored + result.already, 0);
    cbn__cabinet_close(cabinet);
    struct events events = {0};
    cabinet = open_above(NULL, in(&scratch, "p"), &events);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 1);
    ck_assert_int_eq(find(cabinet, 1, 0), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(events.notices + events.damages, 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* ---- which entries ---- */

START_TEST(layers_are_one_and_keys_select)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *base = open_cabinet(in(&scratch, "base"), NULL);
    for (uint64_t which = 0; which < 4; which++)
        ck_assert_int_eq(put(base, which, 100, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(put(base, 0, 100, 12009), CBN_STATUS_OK); /* another major of a key */
    (void)pack_to(base, in(&scratch, "base.pack"));
    cbn__cabinet_close(base);
    const char *bases[] = {in(&scratch, "base.pack"), in(&scratch, "base")};
    struct cbn__cabinet_options options = options_for(in(&scratch, "top"), NULL);
    options.base_paths = bases;
    options.base_count = 2;
    struct cbn__cabinet *cabinet = NULL;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 2, 200, 13001), CBN_STATUS_OK); /* above the bases' */
    ck_assert_int_eq(put(cabinet, 9, 300, 13001), CBN_STATUS_OK);
    ck_assert_uint_eq(pack_to(cabinet, in(&scratch, "all")).entries, 6);
    struct cbn__hash keys[2];
    for (uint64_t i = 0; i < 2; i++) {
        struct test_key key = key_of(i ? 2 : 0);
        keys[i] = cbn__hash_blob(RECORD(key));
    }
    if (memcmp(&keys[0], &keys[1], sizeof(keys[0])) > 0) {
        struct cbn__hash key = keys[0];
        keys[0] = keys[1];
        keys[1] = key;
    }
    ck_assert_uint_eq(pack_keys(cabinet, keys, 2, in(&scratch, "two")).entries, 3);
    ck_assert_uint_eq(pack_keys(cabinet, keys, 0, in(&scratch, "none")).entries, 0);
    cbn__cabinet_close(cabinet);
    cabinet = open_above(NULL, in(&scratch, "two"), NULL);
    ck_assert_int_eq(find(cabinet, 0, 100), CBN__LOOKUP_HIT);
    ck_assert_int_eq(find(cabinet, 2, 200), CBN__LOOKUP_HIT);
    ck_assert_int_eq(find(cabinet, 1, 0), CBN__LOOKUP_ABSENT);
    cbn__cabinet_close(cabinet);
}
END_TEST

static uint64_t damage_payloads(const char *path, uint64_t which, size_t size)
{
    CBN__BUF_AUTO bytes = load(path);
    uint8_t *payload = malloc(size);
    uint64_t found = 0;
    fill_payload(payload, size, which);
    for (uint8_t *at = bytes.data; (at = memmem(at, (size_t)(bytes.data + bytes.size - at), payload, size)); found++)
        at[size / 2] ^= 1;
    save(path, bytes.data, bytes.size);
    free(payload);
    return found;
}

START_TEST(a_damaged_entry_is_left_out_or_found_below)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = fill(in(&scratch, "one"), false);
    (void)pack_to(cabinet, in(&scratch, "whole"));
    cbn__cabinet_close(cabinet);
    ck_assert_uint_eq(damage_payloads(in(&scratch, "one/data.mdb"), 11, size_of(11)), 1);
    struct events events = {0};
    cabinet = open_cabinet(in(&scratch, "one"), &events);
    struct packed packed = pack_to(cabinet, in(&scratch, "less"));
    ck_assert_uint_eq(packed.entries, ENTRIES - 1);
    ck_assert_uint_eq(packed.damaged, 1);
    cbn__cabinet_close(cabinet);
    cabinet = open_above(in(&scratch, "one"), in(&scratch, "whole"), &events);
    packed = pack_to(cabinet, in(&scratch, "again"));
    ck_assert_uint_eq(packed.entries, ENTRIES);
    ck_assert_uint_eq(packed.damaged, 0);
    ck_assert(same_files(in(&scratch, "whole"), in(&scratch, "again")));
    cbn__cabinet_close(cabinet);
}
END_TEST

/* ---- in place ---- */

START_TEST(in_place_every_entry_serves_and_nothing_is_written)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = fill(in(&scratch, "one"), false);
    ck_assert_int_eq(mkdir(in(&scratch, "place"), 0755), 0);
    (void)pack_to(cabinet, in(&scratch, "place/p"));
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(chmod(in(&scratch, "place/p"), 0444), 0);
    ck_assert_int_eq(chmod(in(&scratch, "place"), 0555), 0);
    struct events events = {0};
    cabinet = open_above(NULL, in(&scratch, "place/p"), &events);
    for (uint64_t which = 0; which < ENTRIES; which++)
        ck_assert_int_eq(find(cabinet, which, size_of(which)), CBN__LOOKUP_HIT);
    ck_assert_int_eq(find(cabinet, ENTRIES, 0), CBN__LOOKUP_ABSENT);
    ck_assert(!cbn__cabinet_can_write(cabinet));
    ck_assert_int_eq(put(cabinet, 99, 10, 13001), CBN_STATUS_NOT_FOUND);
    struct cbn__layer layer;
    ck_assert_int_eq(cbn__cabinet_layer(cabinet, 0, &layer, NULL), CBN_STATUS_OK);
    ck_assert(layer.is_base && !layer.writable);
    ck_assert_uint_eq(layer.entries, ENTRIES);
    ck_assert_uint_eq(layer.file_bytes, (uint64_t)file_bytes(in(&scratch, "place/p")));
    struct cbn__layer_stats stats;
    ck_assert_int_eq(cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(stats.max_bytes + stats.pinned + stats.counters.hits, 0);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(events.notices + events.damages, 0);
    ck_assert_int_eq(count_files(in(&scratch, "place"), ""), 1);
    ck_assert_int_eq(chmod(in(&scratch, "place"), 0755), 0);
}
END_TEST

static enum cbn__lookup look(struct cbn__cabinet *cabinet, struct cbn__compiler_rule rule, uint32_t *ret_version)
{
    struct test_key key = key_of(1);
    struct cbn__entry entry;
    enum cbn__lookup found = cbn__cabinet_find(cabinet, RECORD(key), &rule, &entry);
    *ret_version = 0;
    if (found == CBN__LOOKUP_HIT) {
        *ret_version = entry.facts.compiler_version;
        cbn__entry_done(&entry);
    }
    return found;
}

/* The same answers from a folder and from a pack of it. */
START_TEST(compiler_rules_hold_in_a_pack)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *layers[2] = {open_cabinet(in(&scratch, "one"), NULL)};
    const uint32_t versions[] = {12004, 13001, 14000};
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(put(layers[0], 1, 64, versions[i]), CBN_STATUS_OK);
    (void)pack_to(layers[0], in(&scratch, "p"));
    layers[1] = open_above(NULL, in(&scratch, "p"), NULL);
    const struct {
        struct cbn__compiler_rule rule;
        enum cbn__lookup found;
        uint32_t version;
    } cases[] = {{{0}, CBN__LOOKUP_HIT, 14000},
                 {{.max_major = 13}, CBN__LOOKUP_HIT, 13001},
                 {{.max_major = 11}, CBN__LOOKUP_INCOMPATIBLE, 0},
                 {{.except_majors = 1u << 14}, CBN__LOOKUP_HIT, 13001},
                 {{.except_majors = 1u << 14 | 1u << 13 | 1u << 12}, CBN__LOOKUP_INCOMPATIBLE, 0},
                 {{.exact_version = 12004}, CBN__LOOKUP_HIT, 12004},
                 {{.exact_version = 13000}, CBN__LOOKUP_INCOMPATIBLE, 0},
                 {{.min_version = 14001}, CBN__LOOKUP_INCOMPATIBLE, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t l = 0; l < 2; l++) {
            uint32_t version = 0;
            ck_assert_msg(look(layers[l], cases[i].rule, &version) == cases[i].found, "case %zu, layer %zu", i, l);
            ck_assert_uint_eq(version, cases[i].version);
        }
    }
    cbn__cabinet_close(layers[0]);
    cbn__cabinet_close(layers[1]);
}
END_TEST

struct seen {
    unsigned count, damaged;
    struct cbn__hash last;
};

static int see(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
               uint32_t layer, const char *layer_path)
{
    (void)entry, (void)layer_path;
    struct seen *seen = user;
    ck_assert_uint_eq(layer, 1);
    ck_assert(!seen->count || memcmp(&seen->last, key, sizeof(*key)) < 0);
    seen->count++;
    seen->damaged += problem != NULL;
    seen->last = *key;
    return 0;
}

START_TEST(in_place_it_is_listed_by_prefix)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = fill(in(&scratch, "one"), false);
    (void)pack_to(cabinet, in(&scratch, "p"));
    cbn__cabinet_close(cabinet);
    cabinet = open_above(NULL, in(&scratch, "p"), NULL);
    struct seen all = {0};
    ck_assert_int_eq(cbn__cabinet_each(cabinet, see, &all, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(all.count, ENTRIES);
    unsigned by_digit = 0;
    for (const char *digit = "0123456789aBCdef"; *digit; digit++) {
        struct seen some = {0};
        char prefix[2] = {*digit, 0};
        ck_assert_int_eq(cbn__cabinet_each_of(cabinet, 0, prefix, see, &some, NULL), CBN_STATUS_OK);
        by_digit += some.count;
    }
    ck_assert_uint_eq(by_digit, ENTRIES);
    ck_assert_uint_eq(all.damaged, 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* A file that shrinks or changes under the reader: a fault that is told, no signal. */
START_TEST(in_place_it_is_cut_while_open)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = fill(in(&scratch, "one"), false);
    (void)pack_to(cabinet, in(&scratch, "p"));
    cbn__cabinet_close(cabinet);
    struct events events = {0};
    cabinet = open_above(NULL, in(&scratch, "p"), &events);
    ck_assert_int_eq(find(cabinet, 5, size_of(5)), CBN__LOOKUP_HIT);
    ck_assert_int_eq(truncate(in(&scratch, "p"), CBN__PACK_HEAD_BYTES + 8), 0);
    for (uint64_t which = 0; which < ENTRIES; which++)
        ck_assert_int_eq(find(cabinet, which, 0), CBN__LOOKUP_DAMAGED);
    ck_assert_int_eq(events.damages, ENTRIES);
    cbn__cabinet_close(cabinet);
    cabinet = open_above(NULL, in(&scratch, "p"), &events);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 0);
    ck_assert_int_eq(events.notices, 1);
    ck_assert_ptr_nonnull(strstr(events.last, "is no whole pack"));
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(what_is_no_pack_is_named)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    struct cbn__cabinet *cabinet = fill(in(&scratch, "one"), false);
    (void)pack_to(cabinet, in(&scratch, "p"));
    cbn__cabinet_close(cabinet);
    const struct {
        const char *text;
        size_t size;
        const char *told;
    } cases[] = {{"", 0, "ends too early"},
                 {"text of another program", 23, "does not begin as one"},
                 {"cubinet-pack\2\0\0\0and more of it", 30, "a pack of format 2"},
                 {"cubinet-pack\1\0\0\0short", 21, "ends too early"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct events events = {0};
        save(in(&scratch, "q"), cases[i].text, cases[i].size);
        cabinet = open_above(NULL, in(&scratch, "q"), &events);
        ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 0);
        ck_assert_int_eq(events.notices, 1);
        ck_assert_msg(strstr(events.last, cases[i].told) != NULL, "%s", events.last);
        cbn__cabinet_close(cabinet);
    }
}
END_TEST

START_TEST(who_may_have_written_it)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__cabinet *cabinet = fill(in(&scratch, "one"), false);
    (void)pack_to(cabinet, in(&scratch, "p"));
    cbn__cabinet_close(cabinet);
    struct events events = {0};
    ck_assert_int_eq(chmod(in(&scratch, "p"), 0666), 0);
    cabinet = open_above(NULL, in(&scratch, "p"), &events);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 0);
    ck_assert_ptr_nonnull(strstr(events.last, "everyone can write it; run chmod o-w"));
    cbn__cabinet_close(cabinet);
    const char *pack = in(&scratch, "p");
    struct cbn__cabinet_options options = options_for(NULL, &events);
    options.base_paths = &pack;
    options.base_count = 1;
    options.trust_folder = true;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, size_of(1)), CBN__LOOKUP_HIT);
    ck_assert_ptr_nonnull(strstr(events.last, "is used by override although everyone can write it"));
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(chmod(in(&scratch, "p"), 0644), 0);
    ck_assert_int_eq(chmod(scratch.path, 0777), 0);
    cabinet = open_above(NULL, in(&scratch, "p"), &events);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 0);
    ck_assert_ptr_nonnull(strstr(events.last, "everyone can write a folder above it"));
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(chmod(scratch.path, 0700), 0);
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chown(in(&scratch, "p"), 12345, 12345), 0);
    cabinet = open_above(NULL, in(&scratch, "p"), &events);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 0);
    ck_assert_ptr_nonnull(strstr(events.last, "another user owns it"));
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(chown(in(&scratch, "p"), 0, 0), 0);
    ck_assert_int_eq(chown(scratch.path, 12345, 12345), 0);
    cabinet = open_above(NULL, in(&scratch, "p"), &events);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 0);
    ck_assert_ptr_nonnull(strstr(events.last, "another user owns the folder that it lies in"));
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(chown(scratch.path, 0, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pack");
    TCase *tests = tcase_create("pack");
    tcase_add_test(tests, the_same_kernels_give_the_same_bytes);
    tcase_add_test(tests, the_form_is_pinned);
    tcase_add_test(tests, digests_are_read_strictly);
    tcase_add_test(tests, a_file_comes_to_be_whole_or_not_at_all);
    tcase_add_test(tests, a_disk_that_is_full_and_a_limit_on_files);
    tcase_add_test(tests, nothing_is_a_pack_too);
    tcase_add_test(tests, layers_are_one_and_keys_select);
    tcase_add_test(tests, a_damaged_entry_is_left_out_or_found_below);
    tcase_add_test(tests, in_place_every_entry_serves_and_nothing_is_written);
    tcase_add_test(tests, compiler_rules_hold_in_a_pack);
    tcase_add_test(tests, in_place_it_is_listed_by_prefix);
    tcase_add_test(tests, in_place_it_is_cut_while_open);
    tcase_add_test(tests, what_is_no_pack_is_named);
    tcase_add_test(tests, who_may_have_written_it);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
