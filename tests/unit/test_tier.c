/*
 * The fleet tier on a real server: what one machine builds another pulls; what is put there by hand is refused.
 */
#include "fleet_fixture.h"

#define SIZE 20000

static redisContext *talk;

#define TALK_TO(server)                                                                                                \
    talk = talk_to((server).socket);                                                                                   \
    ck_assert_ptr_nonnull(talk)

START_TEST(what_one_builds_another_pulls)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO a = start_machine(), b = start_machine();
    open_machine(&a, server.url, "");
    open_machine(&b, server.url, "");
    ck_assert(obtain(&a, 1, SIZE, 0));
    EXPECT_COUNTS(&a, .misses = 2, .pushes = 1);
    ck_assert(!obtain(&b, 1, SIZE, 0));
    EXPECT_COUNTS(&b, .hits = 1);
    /* It stands in the overlay now: nobody is asked any more. */
    kill_server(&server);
    ck_assert_int_eq(find(b.cabinet, 1, SIZE), CBN__LOOKUP_HIT);
    EXPECT_COUNTS(&b, .hits = 1);
    ck_assert_int_eq(b.events.notices + b.events.damages, 0);
}
END_TEST

START_TEST(the_overlay_keeps_the_counters)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO a = start_machine(), b = start_machine();
    struct cbn__layer_stats stats;
    open_machine(&a, server.url, "");
    open_machine(&b, server.url, "");
    ck_assert(obtain(&a, 1, SIZE, 0));
    ck_assert(!obtain(&b, 1, SIZE, 0));
    close_machine(&b);
    open_machine(&b, server.url, "");
    EXPECT_COUNTS(&b, .hits = 0);
    ck_assert_int_eq(cbn__cabinet_layer_stats(b.cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(stats.counters.fleet_hits, 1);
    ck_assert_uint_eq(stats.counters.hits, 1);
    ck_assert_uint_eq(stats.counters.puts, 1);
    ck_assert_int_eq(cbn__cabinet_layer_stats(a.cabinet, 0, &stats, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(stats.counters.fleet_misses, 2);
    ck_assert_uint_eq(stats.counters.fleet_pushes, 1);
}
END_TEST

/* Without a folder to write, too: pulled and pushed from memory. */
START_TEST(no_overlay)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO a = start_machine();
    struct cbn__cabinet_options options = options_for(NULL, &a.events);
    open_machine(&a, server.url, "");
    cbn__cabinet_close(a.cabinet);
    options.tier = a.tier;
    ck_assert_int_eq(cbn__cabinet_open(&options, &a.cabinet, NULL), CBN_STATUS_OK);
    ck_assert(obtain(&a, 1, SIZE, 0));
    ck_assert(!obtain(&a, 1, SIZE, 0));
    EXPECT_COUNTS(&a, .hits = 1, .misses = 2, .pushes = 1);
}
END_TEST

static enum cbn__lookup find_by(struct machine *machine, uint64_t which, const struct cbn__compiler_rule *rule,
                                uint32_t *ret_version)
{
    struct test_key key = key_of(which);
    struct cbn__entry entry;
    enum cbn__lookup found = cbn__cabinet_find(machine->cabinet, RECORD(key), rule, &entry);
    if (found == CBN__LOOKUP_HIT) {
        *ret_version = entry.facts.compiler_version;
        ck_assert(payload_is(&entry, SIZE, which));
        cbn__entry_done(&entry);
    }
    return found;
}

START_TEST(the_newest_compiler_that_the_rule_takes)
{
    SERVER_AUTO server = start_server(NULL);
    static const uint32_t versions[] = {12004, 12009, 13000};
    uint32_t version = 0;
    TALK_TO(server);
    for (int i = 0; i < 3; i++) {
        CBN__BUF_AUTO value = CBN__BUF_INIT;
        encode_value(1, SIZE, versions[i], &value);
        set_value(talk, value_name(1, versions[i] < 13000 ? "12" : "13"), cbn__buf_blob(&value));
    }
    const struct {
        struct cbn__compiler_rule rule;
        uint32_t version; /* 0: none */
    } rows[] = {{{0}, 13000},
                {{.max_major = 12}, 12009},
                {{.max_major = 11}, 0},
                {{.except_majors = 1u << 13}, 12009},
                {{.min_version = 13001}, 0},
                {{.min_version = 13000}, 13000},
                {{.exact_version = 12009}, 12009},
                {{.exact_version = 12004}, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        MACHINE_AUTO machine = start_machine();
        open_machine(&machine, server.url, "");
        enum cbn__lookup found = find_by(&machine, 1, &rows[i].rule, &version);
        ck_assert_int_eq(found, rows[i].version ? CBN__LOOKUP_HIT : CBN__LOOKUP_ABSENT);
        if (rows[i].version) {
            ck_assert_uint_eq(version, rows[i].version);
            EXPECT_COUNTS(&machine, .hits = 1);
        } else {
            EXPECT_COUNTS(&machine, .misses = 1);
        }
    }
    redisFree(talk);
}
END_TEST

/* ---- values put there by hand ---- */

/* Looked for twice in a call: counted and told once, never given out, built and replaced. */
static void expect_refused(const char *url, uint64_t which, const char *what)
{
    MACHINE_AUTO machine = start_machine(), other = start_machine();
    open_machine(&machine, url, "");
    ck_assert_msg(obtain(&machine, which, SIZE, 0), "%s was loaded", what);
    EXPECT_COUNTS(&machine, .misses = 2, .refused = 1, .pushes = 1);
    ck_assert_int_eq(machine.events.damages, 1);
    ck_assert_msg(strstr(machine.events.last, "is not used"), "%s", machine.events.last);
    open_machine(&other, url, "");
    ck_assert_msg(!obtain(&other, which, SIZE, 0), "%s was not replaced", what);
    EXPECT_COUNTS(&other, .hits = 1);
}

START_TEST(values_that_are_none)
{
    SERVER_AUTO server = start_server(NULL);
    CBN__BUF_AUTO value = CBN__BUF_INIT;
    CBN__BUF_AUTO foreign = CBN__BUF_INIT;
    CBN__BUF_AUTO other_major = CBN__BUF_INIT;
    uint64_t which = 1;
    TALK_TO(server);
    encode_value(2000, SIZE, 13000, &foreign);
    /* Altered: each of a spread of bytes. Truncated: each of a spread of lengths. */
    for (int i = 0; i < 20; i++, which++) {
        cbn__buf_done(&value);
        encode_value(which, SIZE, 13000, &value);
        value.data[(size_t)i * value.size / 20] ^= (uint8_t)(1u << (i % 8));
        set_value(talk, value_name(which, "13"), cbn__buf_blob(&value));
        expect_refused(server.url, which, "an altered value");
    }
    for (int i = 0; i < 20; i++, which++) {
        cbn__buf_done(&value);
        encode_value(which, SIZE, 13000, &value);
        value.size = i == 0 ? value.size - 1 : 1 + (size_t)i * value.size / 21;
        set_value(talk, value_name(which, "13"), cbn__buf_blob(&value));
        expect_refused(server.url, which, "a truncated value");
    }
    cbn__buf_done(&value);
    encode_value(which, SIZE, 13000, &value);
    cbn__buf_append(&value, "x", 1);
    set_value(talk, value_name(which, "13"), cbn__buf_blob(&value));
    expect_refused(server.url, which++, "a longer value");
    set_value(talk, value_name(which, "13"), cbn__buf_blob(&foreign));
    expect_refused(server.url, which++, "another key's value");
    encode_value(which, SIZE, 12009, &other_major);
    set_value(talk, value_name(which, "13"), cbn__buf_blob(&other_major));
    expect_refused(server.url, which++, "another compiler's value");
    set_value(talk, value_name(which, "13"), cbn__blob_text("hello"));
    expect_refused(server.url, which++, "text");
    tell_server(talk, "LPUSH %s %s", value_name(which, "13"), "x");
    MACHINE_AUTO machine = start_machine();
    open_machine(&machine, server.url, "");
    ck_assert(obtain(&machine, which, SIZE, 0));
    EXPECT_COUNTS(&machine, .misses = 2, .refused = 1, .pushes = 1); /* SET replaces a list */
    redisFree(talk);
}
END_TEST

/* Above the bound it is not even fetched; what is announced is what the server would send. */
START_TEST(an_oversized_value)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO machine = start_machine();
    char command[64];
    TALK_TO(server);
    (void)snprintf(command, sizeof(command), "SETRANGE %%s %zu x", CBN__TIER_VALUE_MAX_BYTES);
    tell_server(talk, command, value_name(1, "13"), NULL);
    open_machine(&machine, server.url, "");
    ck_assert(obtain(&machine, 1, SIZE, 0));
    EXPECT_COUNTS(&machine, .misses = 2, .refused = 1, .pushes = 1);
    ck_assert_msg(strstr(machine.events.last, "larger than an entry"), "%s", machine.events.last);
    redisFree(talk);
}
END_TEST

/* A sound older one is found below a wrong newer one. */
START_TEST(a_wrong_value_hides_no_other)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO machine = start_machine();
    CBN__BUF_AUTO value = CBN__BUF_INIT;
    uint32_t version = 0;
    TALK_TO(server);
    encode_value(1, SIZE, 12009, &value);
    set_value(talk, value_name(1, "12"), cbn__buf_blob(&value));
    set_value(talk, value_name(1, "13"), cbn__blob_text("hello"));
    open_machine(&machine, server.url, "");
    ck_assert_int_eq(find_by(&machine, 1, NULL, &version), CBN__LOOKUP_HIT);
    ck_assert_uint_eq(version, 12009);
    EXPECT_COUNTS(&machine, .hits = 1, .refused = 1);
    redisFree(talk);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tier");
    TCase *cases = tcase_create("tier");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, what_one_builds_another_pulls);
    tcase_add_test(cases, the_overlay_keeps_the_counters);
    tcase_add_test(cases, no_overlay);
    tcase_add_test(cases, the_newest_compiler_that_the_rule_takes);
    tcase_add_test(cases, values_that_are_none);
    tcase_add_test(cases, an_oversized_value);
    tcase_add_test(cases, a_wrong_value_hides_no_other);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
