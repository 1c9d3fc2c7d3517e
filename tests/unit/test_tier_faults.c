/*
 * Servers that are gone, slow or no servers at all: one bounded wait, then none until it is time to try again, by one
 * caller; nothing wrong is ever given out, and memory stays bounded.
 */
#include "fleet_fixture.h"

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define SIZE 20000
#define TIMEOUT_MS 300u
#define SLACK_MS 700u /* of a busy machine, and of sanitizers */
#define NO_WAIT_MS (TIMEOUT_MS - 20)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY_KIB (1 << 20) /* what was freed is kept for a while */
#else
#define MEMORY_KIB (64 << 10)
#endif
#define RETRY "?timeout_ms=300&retry_ms=600000"
#define NONE ":0\r\n"
#define NONES8 NONE NONE NONE NONE NONE NONE NONE NONE
#define WORDS8 "+1\r\n+1\r\n+1\r\n+1\r\n+1\r\n+1\r\n+1\r\n+1\r\n"
/* To the question what there is: an entry of major 13 and none else. */
#define ONE_OF_13 ":0\r\n:0\r\n:100\r\n" NONES8 NONE NONE NONE NONE NONE

/* What the first call costs, and the next ones; each builds. */
static void expect_one_wait(const char *url, uint64_t least_ms, uint64_t most_ms, const char *words)
{
    MACHINE_AUTO machine = start_machine();
    open_machine(&machine, url, RETRY);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert(obtain(&machine, 1, SIZE, 0));
    uint64_t first_ms = since_ms(start_ns);
    ck_assert_msg(first_ms >= least_ms && first_ms <= most_ms, "the first took %llu ms", (unsigned long long)first_ms);
    start_ns = cbn__clock_monotonic_ns();
    for (uint64_t i = 2; i < 6; i++)
        ck_assert(obtain(&machine, i, SIZE, 0));
    uint64_t next_ms = since_ms(start_ns);
    ck_assert_msg(next_ms < NO_WAIT_MS, "the next four took %llu ms", (unsigned long long)next_ms);
    EXPECT_COUNTS(&machine, .failures = 1, .skipped = 9, .pushes_dropped = 5);
    ck_assert_int_eq(machine.events.notices, 1);
    ck_assert_msg(strstr(machine.events.last, words), "%s", machine.events.last);
}

static const struct {
    const char *name, *first, *second;
    enum after after;
    bool waits; /* until the timeout; else it fails at once */
    const char *words;
} rows[] = {
    {"accepts and never answers", NULL, NULL, AFTER_HOLD, true, "did not answer in time"},
    {"answers in part", ":0\r\n:0\r", NULL, AFTER_HOLD, true, "did not answer in time"},
    {"closes at once", NULL, NULL, AFTER_CLOSE, false, "connection"},
    {"closes in the middle of the first answer", NONES8 ":", NULL, AFTER_CLOSE, false, "closed the connection"},
    /* Tried over a second connection, which says the first again. */
    {"closes in the middle of a value", ONE_OF_13, "$100\r\nabc", AFTER_CLOSE, false, "another question"},
    {"holds a value back", ONE_OF_13, "$100\r\nabc", AFTER_HOLD, true, "did not answer in time"},
    {"speaks HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n", NULL, AFTER_CLOSE, false, "another protocol"},
    {"sends zeros", "\r\n\r\n\r\n", NULL, AFTER_CLOSE, false, "another protocol"},
    {"announces an enormous value", ONE_OF_13, "$9223372036854775807\r\n", AFTER_HOLD, true, "did not answer in time"},
    {"announces more than there can be", ONE_OF_13, "$99999999999999999999999\r\n", AFTER_HOLD, false,
     "another protocol"},
    {"announces an enormous value, and sends it", ONE_OF_13, "$4294967295\r\n", AFTER_STREAM, false, "fleet's server"},
    {"announces a negative value", ONE_OF_13, "$-7\r\n", AFTER_HOLD, false, "another protocol"},
    {"announces an enormous list", "*2147483647\r\n", NULL, AFTER_HOLD, false, "another protocol"},
    {"announces lists in lists", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", NULL, AFTER_HOLD,
     false, "another protocol"},
    {"sends a line without an end", "+", NULL, AFTER_STREAM, false, "fleet's server"},
    {"sends a byte now and then", "+", NULL, AFTER_TRICKLE, true, "did not answer in time"},
    {"answers with words where numbers belong", WORDS8 WORDS8, NULL, AFTER_HOLD, false, "another question"},
    {"is loading", "-LOADING Redis is loading the dataset in memory\r\n" NONES8 NONE NONE NONE NONE NONE NONE NONE,
     NULL, AFTER_HOLD, false, "LOADING"},
    {"is a cluster", "-MOVED 1 10.0.0.1:6379\r\n" NONES8 NONE NONE NONE NONE NONE NONE NONE, NULL, AFTER_HOLD, false,
     "MOVED"},
};
#define ROW_COUNT ((int)(sizeof(rows) / sizeof(rows[0])))

START_TEST(one_bounded_wait)
{
    IMPOSTOR_AUTO impostor = start_impostor(rows[_i].first, rows[_i].second, rows[_i].after);
    struct rusage before, after;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
    expect_one_wait(impostor.server.url, rows[_i].waits ? TIMEOUT_MS - 20 : 0, TIMEOUT_MS + SLACK_MS, rows[_i].words);
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
    ck_assert_msg(after.ru_maxrss - before.ru_maxrss < MEMORY_KIB, "%s: %ld KiB", rows[_i].name,
                  after.ru_maxrss - before.ru_maxrss);
    /* Connections, all the while. */
    ck_assert_int_eq(file_bytes(impostor.server.log), rows[_i].second && rows[_i].after == AFTER_CLOSE ? 2 : 1);
}
END_TEST

START_TEST(nobody_is_there)
{
    SCRATCH_AUTO scratch = scratch_make();
    char url[2 * PATH_BYTES];
    (void)snprintf(url, sizeof(url), "unix://%s/s", scratch.path);
    expect_one_wait(url, 0, NO_WAIT_MS, "cannot connect");
    /* A port that nobody listens at: bound, and not listened at. */
    struct sockaddr_in {
        sa_family_t family;
        uint16_t port;
        uint8_t rest[12];
    } address = {.family = AF_INET, .rest = {127, 0, 0, 1}};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    unsigned port = (unsigned)(address.port >> 8 | (address.port & 0xff) << 8);
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%u", port);
    expect_one_wait(url, 0, NO_WAIT_MS, "Connection refused");
    (void)snprintf(url, sizeof(url), "redis://localhost:%u", port);
    expect_one_wait(url, 0, TIMEOUT_MS + SLACK_MS, "fleet's server");
    (void)close(fd);
}
END_TEST

START_TEST(a_host_that_does_not_exist)
{
    expect_one_wait("redis://no-such-host.invalid", 0, TIMEOUT_MS + SLACK_MS, "host of the fleet's server");
}
END_TEST

/* ---- name servers ---- */

static atomic_int hanging, signals_taken;

int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret_found);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret_found);

/* A name server that does not answer, until hanging is 0. Counts the threads that a signal could be handled on. */
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret_found)
{
    sigset_t mask;
    if (hints->ai_flags & AI_NUMERICHOST || atomic_load(&hanging) == 0)
        return __real_getaddrinfo(host, port, hints, ret_found);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    (void)atomic_fetch_add(&signals_taken, !sigismember(&mask, SIGTERM) || !sigismember(&mask, SIGPROF));
    while (atomic_load(&hanging) == 1)
        cbn__clock_sleep_ns(NS_PER_MS);
    atomic_store(&hanging, 0);
    return EAI_AGAIN;
}

START_TEST(a_name_server_that_never_answers)
{
    atomic_store(&hanging, 1);
    expect_one_wait("redis://cache.internal", TIMEOUT_MS - 20, TIMEOUT_MS + SLACK_MS, "not looked up in time");
    ck_assert_int_eq(atomic_load(&signals_taken), 0);
    /* The thread that was left behind lets go of the query by itself. */
    atomic_store(&hanging, 2);
    while (atomic_load(&hanging) != 0)
        cbn__clock_sleep_ns(NS_PER_MS);
}
END_TEST

/* ---- what a server says ---- */

/* A server that does not know AUTH repeats what it was sent: the password reaches no log. */
START_TEST(a_login_that_is_repeated)
{
    IMPOSTOR_AUTO impostor =
        start_impostor("-ERR unknown command `AUTH`, with args beginning with: `bob` `hunter2`\r\n", NULL, AFTER_HOLD);
    MACHINE_AUTO machine = start_machine();
    struct cbn_fleet_info info = CBN_FLEET_INFO_INIT;
    struct cbn_error err = {0};
    char url[2 * PATH_BYTES];
    (void)snprintf(url, sizeof(url), "unix://bob:hunter2@%s", impostor.server.socket);
    open_machine(&machine, url, RETRY);
    ck_assert_int_eq(find(machine.cabinet, 1, SIZE), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(machine.events.notices, 1);
    ck_assert_msg(strstr(machine.events.last, "refuses the login (ERR)"), "%s", machine.events.last);
    ck_assert_ptr_null(strstr(machine.events.last, "hunter2"));
    ck_assert_int_eq(cbn__tier_inspect(machine.tier, &info, &err), CBN_STATUS_IO);
    ck_assert_msg(strstr(err.message, "refuses the login (ERR)"), "%s", err.message);
    ck_assert_ptr_null(strstr(err.message, "hunter2"));
}
END_TEST

/* Nor do its words steer a terminal or write lines of their own into a log. */
START_TEST(words_that_would_steer_a_terminal)
{
    IMPOSTOR_AUTO impostor = start_impostor("-ERR \x1b]0;x\x07 \x1b[31mred\x9b\b\r\n" NONES8 NONES8, NULL, AFTER_HOLD);
    MACHINE_AUTO machine = start_machine();
    open_machine(&machine, impostor.server.url, RETRY);
    ck_assert_int_eq(find(machine.cabinet, 1, SIZE), CBN__LOOKUP_ABSENT);
    ck_assert_msg(strstr(machine.events.last, "says: ERR ?]0;x? ?[31mred?? "), "%s", machine.events.last);
}
END_TEST

START_TEST(what_it_says_of_itself)
{
    IMPOSTOR_AUTO impostor = start_impostor(
        ":7\r\n$56\r\nredis_version:7\x1b[31m\r\nmaxmemory_policy:a\tb\r\nmaxmemory:-1\r\n", NULL, AFTER_HOLD);
    MACHINE_AUTO machine = start_machine();
    struct cbn_fleet_info info = CBN_FLEET_INFO_INIT;
    open_machine(&machine, impostor.server.url, RETRY);
    ck_assert_int_eq(cbn__tier_inspect(machine.tier, &info, NULL), CBN_STATUS_OK);
    ck_assert_str_eq(info.server, "redis 7?[31m");
    ck_assert_str_eq(info.eviction, "a?b");
    ck_assert_uint_eq(info.keys, 7);
    ck_assert_uint_eq(info.max_bytes, 0);
}
END_TEST

START_TEST(it_has_fewer_keys_than_none)
{
    IMPOSTOR_AUTO impostor = start_impostor(":-7\r\n$1\r\nx\r\n", NULL, AFTER_HOLD);
    MACHINE_AUTO machine = start_machine();
    struct cbn_fleet_info info = CBN_FLEET_INFO_INIT;
    open_machine(&machine, impostor.server.url, RETRY);
    ck_assert_int_eq(cbn__tier_inspect(machine.tier, &info, NULL), CBN_STATUS_DAMAGED);
    ck_assert_uint_eq(info.keys, 0);
}
END_TEST

/* ---- the breaker ---- */

START_TEST(a_server_that_comes_back)
{
    SERVER_AUTO server = start_server(NULL);
    MACHINE_AUTO machine = start_machine();
    open_machine(&machine, server.url, "?timeout_ms=2000&retry_ms=200");
    ck_assert(obtain(&machine, 1, SIZE, 0));
    kill_server(&server);
    ck_assert(obtain(&machine, 2, SIZE, 0));
    EXPECT_COUNTS(&machine, .misses = 2, .failures = 1, .skipped = 1, .pushes = 1, .pushes_dropped = 1);
    wake_server(&server, NULL);
    while (!cbn__tier_is_ready(machine.tier))
        cbn__clock_sleep_ns(NS_PER_MS);
    ck_assert(obtain(&machine, 3, SIZE, 0));
    EXPECT_COUNTS(&machine, .misses = 4, .failures = 1, .skipped = 1, .pushes = 2, .pushes_dropped = 1);
}
END_TEST

struct caller {
    struct machine *machine;
    uint64_t which, ms;
};

static void *run_caller(void *user)
{
    struct caller *caller = user;
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(find(caller->machine->cabinet, caller->which, SIZE), CBN__LOOKUP_ABSENT);
    caller->ms = since_ms(start_ns);
    return NULL;
}

/* When it is time to try again one of many callers does, and waits; nobody else does. */
START_TEST(one_caller_tries_again)
{
    IMPOSTOR_AUTO impostor = start_impostor(NULL, NULL, AFTER_HOLD);
    MACHINE_AUTO machine = start_machine();
    pthread_t threads[8];
    struct caller callers[8];
    uint32_t waited = 0;
    open_machine(&machine, impostor.server.url, "?timeout_ms=700&retry_ms=800");
    ck_assert_int_eq(find(machine.cabinet, 100, SIZE), CBN__LOOKUP_ABSENT);
    while (!cbn__tier_is_ready(machine.tier))
        cbn__clock_sleep_ns(NS_PER_MS);
    for (uint64_t i = 0; i < 8; i++) {
        callers[i] = (struct caller){.machine = &machine, .which = i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_caller, &callers[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        (void)pthread_join(threads[i], NULL);
        waited += callers[i].ms >= 650;
        ck_assert_msg(callers[i].ms >= 650 || callers[i].ms < 450, "%llu ms", (unsigned long long)callers[i].ms);
    }
    ck_assert_uint_eq(waited, 1);
    EXPECT_COUNTS(&machine, .failures = 2, .skipped = 7);
    ck_assert_int_eq(file_bytes(impostor.server.log), 2);
}
END_TEST

/* Nobody who wants another key stands behind one who waits for the network. */
START_TEST(a_wait_holds_up_nobody_else)
{
    IMPOSTOR_AUTO impostor = start_impostor(NULL, NULL, AFTER_HOLD);
    MACHINE_AUTO machine = start_machine();
    struct caller waits = {.machine = &machine, .which = 1};
    pthread_t thread;
    open_machine(&machine, impostor.server.url, "?timeout_ms=1500&retry_ms=600000");
    ck_assert_int_eq(put(machine.cabinet, 2, SIZE, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, run_caller, &waits), 0);
    while (file_bytes(impostor.server.log) == 0)
        cbn__clock_sleep_ns(NS_PER_MS);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(find(machine.cabinet, 2, SIZE), CBN__LOOKUP_HIT);
    ck_assert_int_eq(put(machine.cabinet, 3, SIZE, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(machine.cabinet, 3, SIZE), CBN__LOOKUP_HIT);
    pid_t pid = fork(); /* which takes every lock there is */
    if (pid == 0)
        _exit(find(machine.cabinet, 3, SIZE) == CBN__LOOKUP_HIT ? 0 : 1);
    reap(pid);
    ck_assert_uint_lt(since_ms(start_ns), 700);
    (void)pthread_join(thread, NULL);
    ck_assert_uint_ge(waits.ms, 1400);
}
END_TEST

/* A write to what was closed raises SIGPIPE, which is the process' own affair: it is left as it was. */
START_TEST(no_signal)
{
    MACHINE_AUTO machine = start_machine();
    sigset_t before, after, pending;
    ck_assert(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    for (int i = 0; i < 20; i++) {
        IMPOSTOR_AUTO impostor = start_impostor(NULL, NULL, AFTER_CLOSE);
        open_machine(&machine, impostor.server.url, RETRY);
        ck_assert_int_eq(find(machine.cabinet, 1, SIZE), CBN__LOOKUP_ABSENT);
        close_machine(&machine);
    }
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    ck_assert_int_eq(sigismember(&after, SIGPIPE), sigismember(&before, SIGPIPE));
    ck_assert_int_eq(sigpending(&pending), 0);
    ck_assert_int_eq(sigismember(&pending, SIGPIPE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tier_faults");
    TCase *cases = tcase_create("tier_faults");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, one_bounded_wait, 0, ROW_COUNT);
    tcase_add_test(cases, nobody_is_there);
    tcase_add_test(cases, a_host_that_does_not_exist);
    tcase_add_test(cases, a_name_server_that_never_answers);
    tcase_add_test(cases, a_login_that_is_repeated);
    tcase_add_test(cases, words_that_would_steer_a_terminal);
    tcase_add_test(cases, what_it_says_of_itself);
    tcase_add_test(cases, it_has_fewer_keys_than_none);
    tcase_add_test(cases, a_server_that_comes_back);
    tcase_add_test(cases, one_caller_tries_again);
    tcase_add_test(cases, a_wait_holds_up_nobody_else);
    tcase_add_test(cases, no_signal);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
