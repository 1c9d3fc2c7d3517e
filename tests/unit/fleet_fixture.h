/*
 * What the tests of the fleet tier share: cabinets above a tier, and values put onto the server by hand.
 */
#ifndef CBN_TEST_FLEET_FIXTURE_H
#define CBN_TEST_FLEET_FIXTURE_H

#include "cache_fixture.h"

#include "base/error.h"
#include "cache/fleet.h"
#include "cache/pack_entry.h"
#include "cache/tier.h"
#include "fleet_server.h"

/* A machine: a cabinet in a folder of its own above a tier. */
struct machine {
    struct scratch folder;
    struct events events;
    struct cbn__tier *tier;
    struct cbn__cabinet *cabinet;
};

/* options: "" or "?timeout_ms=..." */
static inline void open_machine(struct machine *machine, const char *url, const char *options)
{
    char text[4 * PATH_BYTES];
    struct cbn_error err = {0};
    memset(&machine->events, 0, sizeof(machine->events));
    (void)snprintf(text, sizeof(text), "%s%s", url, options);
    struct cbn__sink sink = {record_event, &machine->events};
    ck_assert_msg(cbn__tier_open(text, &sink, &machine->tier, &err) == CBN_STATUS_OK, "%s", err.message);
    struct cbn__cabinet_options cabinet = options_for(machine->folder.path, &machine->events);
    cabinet.tier = machine->tier;
    ck_assert_msg(cbn__cabinet_open(&cabinet, &machine->cabinet, &err) == CBN_STATUS_OK, "%s", err.message);
}

static inline void close_machine(struct machine *machine)
{
    cbn__cabinet_close(machine->cabinet);
    cbn__tier_close(machine->tier);
    machine->cabinet = NULL;
    machine->tier = NULL;
}

static inline void machine_done(struct machine *machine)
{
    close_machine(machine);
    scratch_done(&machine->folder);
}

#define MACHINE_AUTO __attribute__((cleanup(machine_done))) struct machine

static inline struct machine start_machine(void)
{
    return (struct machine){.folder = scratch_make_in_memory()};
}

static inline struct cbn__tier_counters counted(const struct machine *machine)
{
    struct cbn__tier_counters counters;
    cbn__tier_counters(machine->tier, &counters);
    return counters;
}

/* Every counter: hits, misses, refused, failures, skipped, pushes, pushes_dropped, waits. */
#define EXPECT_COUNTS(machine, ...)                                                                                    \
    do {                                                                                                               \
        struct cbn__tier_counters wanted = {__VA_ARGS__}, got = counted(machine);                                      \
        ck_assert_msg(memcmp(&wanted, &got, sizeof(got)) == 0,                                                         \
                      "hits %llu misses %llu refused %llu failures %llu skipped %llu pushes %llu dropped %llu waits "  \
                      "%llu",                                                                                          \
                      (unsigned long long)got.hits, (unsigned long long)got.misses, (unsigned long long)got.refused,   \
                      (unsigned long long)got.failures, (unsigned long long)got.skipped,                               \
                      (unsigned long long)got.pushes, (unsigned long long)got.pushes_dropped,                          \
                      (unsigned long long)got.waits);                                                                  \
    } while (0)

/* Like an engine's call: look, take the flight, look again, build what is not there. True: it was built. */
static inline bool obtain(struct machine *machine, uint64_t which, size_t size, uint32_t build_ms)
{
    struct test_key key = key_of(which);
    struct cbn__hash hash = cbn__hash_blob(RECORD(key));
    struct cbn__flight flight;
    bool built = false;
    if (find(machine->cabinet, which, size) == CBN__LOOKUP_HIT)
        return false;
    bool held = cbn__flight_begin(machine->cabinet, &hash, 60000, &flight, NULL) != CBN_STATUS_TIMEOUT;
    if (find(machine->cabinet, which, size) != CBN__LOOKUP_HIT) {
        cbn__clock_sleep_ns(build_ms * (uint64_t)NS_PER_MS);
        (void)put(machine->cabinet, which, size, 13000);
        built = true;
    }
    if (held)
        cbn__flight_end(&flight);
    return built;
}

/* The name of a value, and of a lease. */
static inline const char *value_name(uint64_t which, const char *kind)
{
    static char name[128];
    char digits[CBN__HASH_TEXT_BYTES];
    struct test_key key = key_of(which);
    struct cbn__hash hash = cbn__hash_blob(RECORD(key));
    cbn__hash_format(&hash, digits);
    (void)snprintf(name, sizeof(name), "cubinet:1:%s:%s", digits, kind);
    return name;
}

/* Entry `which` as it travels. */
static inline void encode_value(uint64_t which, size_t size, uint32_t version, struct cbn__buf *ret_value)
{
    struct test_key key = key_of(which);
    struct cbn__entry_facts facts = facts_of(version);
    uint8_t *payload = malloc(size + 1);
    fill_payload(payload, size, which);
    cbn__pack_entry_encode(RECORD(key), (struct cbn__blob){payload, size}, &facts, ret_value);
    free(payload);
    ck_assert(!ret_value->failed);
}

static inline void set_value(redisContext *talk, const char *name, struct cbn__blob value)
{
    redisReply *reply = redisCommand(talk, "SET %s %b", name, value.data, value.size);
    ck_assert_ptr_nonnull(reply);
    ck_assert_int_eq(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
}

/* The integer that a command is answered with. */
static inline long long ask_number(redisContext *talk, const char *command, const char *name)
{
    redisReply *reply = redisCommand(talk, command, name);
    ck_assert_ptr_nonnull(reply);
    ck_assert_int_eq(reply->type, REDIS_REPLY_INTEGER);
    long long number = reply->integer;
    freeReplyObject(reply);
    return number;
}

static inline void tell_server(redisContext *talk, const char *command, const char *a, const char *b)
{
    redisReply *reply = redisCommand(talk, command, a, b);
    ck_assert_ptr_nonnull(reply);
    ck_assert_msg(reply->type != REDIS_REPLY_ERROR, "%s", reply->str);
    freeReplyObject(reply);
}

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

#endif
