/*
 * Leases and connections of the fleet tier on a real server: who builds, and what threads, forks, restarts, passwords
 * and users do.
 */
#include "fleet_fixture.h"

#include <pthread.h>

#define SIZE 20000

static redisContext *talk;

#define TALK_TO(server)                                                                                                \
    talk = talk_to((server).socket);                                                                                   \
    ck_assert_ptr_nonnull(talk)

/* ---- leases ---- */

static void lend(const char *token, const char *milliseconds, uint64_t which)
{
    redisReply *reply = redisCommand(talk, "SET %s %s PX %s", value_name(which, "lease"), token, milliseconds);
    ck_assert_int_eq(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
}

/* The build of key 1. */
static void begin_flight(struct machine *machine, uint32_t timeout_ms, struct cbn__flight *ret_flight)
{
    struct test_key key = key_of(1);
    struct cbn__hash hash = cbn__hash_blob(RECORD(key));
    ck_assert_int_eq(cbn__flight_begin(machine->cabinet, &hash, timeout_ms, ret_flight, NULL), CBN_STATUS_OK);
}

START_TEST(a_holder_that_died)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO machine = start_machine();
    TALK_TO(server);
    lend("somebody", "400", 1);
    open_machine(&machine, server.url, "");
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert(obtain(&machine, 1, SIZE, 0));
    uint64_t ms = since_ms(start_ns);
    ck_assert_msg(ms >= 300 && ms < 3000, "%llu ms", (unsigned long long)ms);
    EXPECT_COUNTS(&machine, .misses = 2, .pushes = 1, .waits = 1);
    ck_assert_int_eq(ask_number(talk, "EXISTS %s", value_name(1, "lease")), 0);
    redisFree(talk);
}
END_TEST

/* A lease of this machine that has expired and is another's now is left alone. */
START_TEST(only_ones_own_lease_is_given_back)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO machine = start_machine();
    struct cbn__flight flight;
    TALK_TO(server);
    open_machine(&machine, server.url, "");
    begin_flight(&machine, 60000, &flight);
    ck_assert_int_eq(find(machine.cabinet, 1, SIZE), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(ask_number(talk, "STRLEN %s", value_name(1, "lease")), CBN__TIER_TOKEN_BYTES - 1);
    long long ttl = ask_number(talk, "PTTL %s", value_name(1, "lease"));
    ck_assert_msg(ttl > 0 && ttl <= CBN__TIER_LEASE_MS, "%lld", ttl);
    lend("another", "60000", 1);
    ck_assert_int_eq(put(machine.cabinet, 1, SIZE, 13000), CBN_STATUS_OK);
    /* Published after the flight was given back, not before. */
    ck_assert_int_eq(ask_number(talk, "EXISTS %s", value_name(1, "13")), 0);
    cbn__flight_end(&flight);
    ck_assert_int_eq(ask_number(talk, "EXISTS %s", value_name(1, "13")), 1);
    ck_assert_int_eq(ask_number(talk, "STRLEN %s", value_name(1, "lease")), 7);
    redisFree(talk);
}
END_TEST

/* A build that fails gives the lease back at once. */
START_TEST(a_failed_build)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO machine = start_machine();
    struct cbn__flight flight;
    TALK_TO(server);
    open_machine(&machine, server.url, "");
    begin_flight(&machine, 60000, &flight);
    ck_assert_int_eq(find(machine.cabinet, 1, SIZE), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(ask_number(talk, "EXISTS %s", value_name(1, "lease")), 1);
    cbn__flight_end(&flight);
    ck_assert_int_eq(ask_number(talk, "EXISTS %s", value_name(1, "lease")), 0);
    EXPECT_COUNTS(&machine, .misses = 1);
    redisFree(talk);
}
END_TEST

/* The flight's deadline bounds the wait for a lease whose holder never ends. */
START_TEST(a_lease_without_an_end)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO machine = start_machine();
    struct cbn__flight flight;
    TALK_TO(server);
    lend("somebody", "600000", 1);
    open_machine(&machine, server.url, "");
    begin_flight(&machine, 300, &flight);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(find(machine.cabinet, 1, SIZE), CBN__LOOKUP_ABSENT);
    uint64_t ms = since_ms(start_ns);
    ck_assert_msg(ms >= 250 && ms < 2000, "%llu ms", (unsigned long long)ms);
    ck_assert_int_eq(put(machine.cabinet, 1, SIZE, 13000), CBN_STATUS_OK);
    cbn__flight_end(&flight);
    EXPECT_COUNTS(&machine, .misses = 1, .pushes = 1, .waits = 1);
    ck_assert_int_eq(ask_number(talk, "STRLEN %s", value_name(1, "lease")), 8);
    redisFree(talk);
}
END_TEST

/* A server that takes no writes: nobody waits for a lease that nobody can have, and reading goes on. */
START_TEST(a_full_server)
{
    SERVER_AUTO server = start_server((const char *const[]){"--maxmemory-policy", "noeviction", NULL});
    MACHINE_AUTO a = start_machine(), b = start_machine();
    open_machine(&a, server.url, "");
    ck_assert(obtain(&a, 1, SIZE, 0));
    TALK_TO(server);
    tell_server(talk, "CONFIG SET maxmemory %s", "1", NULL);
    open_machine(&b, server.url, "");
    ck_assert(!obtain(&b, 1, SIZE, 0));
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert(obtain(&b, 2, SIZE, 0));
    ck_assert(obtain(&b, 3, SIZE, 0));
    ck_assert_uint_lt(since_ms(start_ns), 400);
    EXPECT_COUNTS(&b, .hits = 1, .misses = 4, .pushes_dropped = 2);
    ck_assert_int_eq(b.events.notices, 1);
    ck_assert_msg(strstr(b.events.last, "OOM"), "%s", b.events.last);
    redisFree(talk);
}
END_TEST

/* Nothing is waited for that cannot be had; what the user may, works. */
START_TEST(a_user_who_may_only_read)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO a = start_machine(), b = start_machine();
    char url[256];
    open_machine(&a, server.url, "");
    ck_assert(obtain(&a, 1, SIZE, 0));
    TALK_TO(server);
    tell_server(talk, "ACL SETUSER reader on %s %s +strlen +getrange", ">pw", "~cubinet:1:*");
    (void)snprintf(url, sizeof(url), "unix://reader:pw@%s", server.socket);
    open_machine(&b, url, "");
    ck_assert(!obtain(&b, 1, SIZE, 0));
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert(obtain(&b, 2, SIZE, 0));
    ck_assert_uint_lt(since_ms(start_ns), 400);
    EXPECT_COUNTS(&b, .hits = 1, .misses = 2, .pushes_dropped = 1);
    ck_assert_msg(b.events.notices == 1 && strstr(b.events.last, "NOPERM"), "%s", b.events.last);
    redisFree(talk);
}
END_TEST

/* ---- connections ---- */

START_TEST(a_server_that_was_started_anew)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO machine = start_machine();
    open_machine(&machine, server.url, "");
    ck_assert(obtain(&machine, 1, SIZE, 0));
    kill_server(&server);
    wake_server(&server, NULL);
    ck_assert(obtain(&machine, 2, SIZE, 0));
    EXPECT_COUNTS(&machine, .misses = 4, .pushes = 2);
    ck_assert_int_eq(machine.events.notices, 0);
}
END_TEST

START_TEST(passwords_users_and_databases)
{
    SERVER_AUTO server = start_server((const char *const[]){"--requirepass", "se cret", NULL});
    MACHINE_AUTO a = start_machine(), b = start_machine(), c = start_machine();
    char url[2 * PATH_BYTES];
    struct cbn_fleet_info info = CBN_FLEET_INFO_INIT;
    (void)snprintf(url, sizeof(url), "unix://:se%%20cret@%s", server.socket);
    open_machine(&a, url, "?db=3");
    ck_assert(obtain(&a, 1, SIZE, 0));
    EXPECT_COUNTS(&a, .misses = 2, .pushes = 1);
    ck_assert_int_eq(cbn__tier_inspect(a.tier, &info, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(info.keys, 1);
    ck_assert_ptr_nonnull(strstr(info.server, "redis "));
    ck_assert_ptr_nonnull(strstr(info.url, ":***@"));
    ck_assert_ptr_null(strstr(info.url, "cret"));
    (void)snprintf(url, sizeof(url), "unix://default:se%%20cret@%s", server.socket);
    open_machine(&c, url, "?db=2");
    ck_assert_int_eq(cbn__tier_inspect(c.tier, &info, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(info.keys, 0);
    /* A wrong one is told, without it, and costs builds. */
    (void)snprintf(url, sizeof(url), "unix://:wrong@%s", server.socket);
    open_machine(&b, url, "");
    ck_assert(obtain(&b, 1, SIZE, 0));
    EXPECT_COUNTS(&b, .failures = 1, .skipped = 1, .pushes_dropped = 1);
    ck_assert_int_eq(b.events.notices, 1);
    ck_assert_msg(strstr(b.events.last, "WRONGPASS"), "%s", b.events.last);
    ck_assert_ptr_null(strstr(b.events.last, ":wrong@"));
}
END_TEST

struct crowd {
    struct machine *machine;
    uint64_t first;
    int built;
};

static void *run_thread(void *user)
{
    struct crowd *crowd = user;
    for (uint64_t i = 0; i < 50; i++) {
        uint64_t which = (crowd->first + i * 7) % 50;
        crowd->built += obtain(crowd->machine, which, 1000 + which, 0);
    }
    return NULL;
}

/* Payloads differ by size and key alone: a reply that reached another thread would be another key's. */
START_TEST(threads_share_no_link)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO a = start_machine(), b = start_machine();
    pthread_t threads[8];
    struct crowd crowds[8];
    int built = 0;
    open_machine(&a, server.url, "?timeout_ms=20000");
    open_machine(&b, server.url, "?timeout_ms=20000");
    for (uint64_t i = 0; i < 50; i++)
        ck_assert(obtain(&a, i, 1000 + i, 0));
    for (uint64_t i = 0; i < 8; i++) {
        crowds[i] = (struct crowd){.machine = &b, .first = i * 6};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_thread, &crowds[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        (void)pthread_join(threads[i], NULL);
        built += crowds[i].built;
    }
    ck_assert_int_eq(built, 0);
    EXPECT_COUNTS(&b, .hits = 50);
}
END_TEST

static int count_sockets(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *item = readdir(dir); item; item = readdir(dir)) {
        char target[PATH_BYTES];
        ssize_t size = readlinkat(dirfd(dir), item->d_name, target, sizeof(target) - 1);
        target[size > 0 ? size : 0] = '\0';
        count += strncmp(target, "socket:", 7) == 0;
    }
    (void)closedir(dir);
    return count;
}

/* The child has none of its parent's connections; each goes on with its own. */
START_TEST(fork_shares_no_link)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO machine = start_machine();
    open_machine(&machine, server.url, "");
    int before = count_sockets();
    ck_assert(obtain(&machine, 1, SIZE, 0));
    ck_assert_int_eq(count_sockets(), before + 1);
    pid_t pid = fork();
    if (pid == 0) {
        bool fine = count_sockets() == before && obtain(&machine, 2, SIZE, 0) && count_sockets() == before + 1;
        close_machine(&machine);
        _exit(fine && count_sockets() == before ? 0 : 1);
    }
    for (uint64_t i = 10; i < 60; i++)
        ck_assert(obtain(&machine, i, SIZE, 0));
    reap(pid);
    ck_assert(!obtain(&machine, 2, SIZE, 0));
    EXPECT_COUNTS(&machine, .misses = 102, .pushes = 51);
}
END_TEST

/* What fork leaves of a flight is the parent's: the child publishes nothing and gives no lease back. */
START_TEST(fork_within_a_flight)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO machine = start_machine();
    struct cbn__flight flight;
    TALK_TO(server);
    open_machine(&machine, server.url, "");
    begin_flight(&machine, 60000, &flight);
    ck_assert_int_eq(find(machine.cabinet, 1, SIZE), CBN__LOOKUP_ABSENT);
    pid_t pid = fork();
    if (pid == 0) {
        cbn__flight_end(&flight);
        close_machine(&machine);
        _exit(0);
    }
    reap(pid);
    ck_assert_int_eq(ask_number(talk, "EXISTS %s", value_name(1, "lease")), 1);
    ck_assert_int_eq(put(machine.cabinet, 1, SIZE, 13000), CBN_STATUS_OK);
    cbn__flight_end(&flight);
    ck_assert_int_eq(ask_number(talk, "EXISTS %s", value_name(1, "lease")), 0);
    ck_assert_int_eq(ask_number(talk, "EXISTS %s", value_name(1, "13")), 1);
    redisFree(talk);
}
END_TEST

/* An unpack, or whatever else puts outside of a flight, publishes nothing; a push does, again if need be. */
START_TEST(only_builds_and_pushes_are_published)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO machine = start_machine();
    struct test_key key = key_of(1);
    struct cbn__hash hash = cbn__hash_blob(RECORD(key));
    char digits[CBN__HASH_TEXT_BYTES];
    struct cbn_error err = {0};
    TALK_TO(server);
    cbn__hash_format(&hash, digits);
    open_machine(&machine, server.url, "");
    ck_assert_int_eq(put(machine.cabinet, 1, SIZE, 12009), CBN_STATUS_OK);
    ck_assert_int_eq(put(machine.cabinet, 1, SIZE, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(ask_number(talk, "EXISTS %s", value_name(1, "13")), 0);
    ck_assert_int_eq(cbn__fleet_push(machine.cabinet, digits, &err), CBN_STATUS_OK);
    ck_assert_int_eq(ask_number(talk, "EXISTS %s", value_name(1, "12")), 1);
    ck_assert_int_eq(ask_number(talk, "EXISTS %s", value_name(1, "13")), 1);
    set_value(talk, value_name(1, "13"), cbn__blob_text("hello"));
    ck_assert_int_eq(cbn__fleet_push(machine.cabinet, digits, &err), CBN_STATUS_OK);
    ck_assert_int_ge(ask_number(talk, "STRLEN %s", value_name(1, "13")), SIZE);
    digits[0] = digits[0] == '0' ? '1' : '0';
    ck_assert_int_eq(cbn__fleet_push(machine.cabinet, digits, &err), CBN_STATUS_NOT_FOUND);
    EXPECT_COUNTS(&machine, .pushes = 4);
    kill_server(&server);
    digits[0] = 0;
    cbn__hash_format(&hash, digits);
    ck_assert_int_eq(cbn__fleet_push(machine.cabinet, digits, &err), CBN_STATUS_IO);
    redisFree(talk);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tier_links");
    TCase *cases = tcase_create("tier_links");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_holder_that_died);
    tcase_add_test(cases, only_ones_own_lease_is_given_back);
    tcase_add_test(cases, a_failed_build);
    tcase_add_test(cases, a_lease_without_an_end);
    tcase_add_test(cases, a_full_server);
    tcase_add_test(cases, a_user_who_may_only_read);
    tcase_add_test(cases, a_server_that_was_started_anew);
    tcase_add_test(cases, passwords_users_and_databases);
    tcase_add_test(cases, threads_share_no_link);
    tcase_add_test(cases, fork_shares_no_link);
    tcase_add_test(cases, fork_within_a_flight);
    tcase_add_test(cases, only_builds_and_pushes_are_published);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
