/*
 * What the tests of the fleet tier share: a real redis-server on a Unix socket in a folder of its own, which dies with the
 * test; servers that misbehave; cabinets above a tier.
 */
#ifndef CBN_TEST_FLEET_FIXTURE_H
#define CBN_TEST_FLEET_FIXTURE_H

#include "cache_fixture.h"

#include <hiredis.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "cache/fleet.h"
#include "cache/pack_entry.h"
#include "cache/tier.h"

#define NS_PER_MS 1000000u
#define READY_MS 10000u
#define SERVER_ARGUMENTS_MAX 8

struct server {
    struct scratch folder;
    char socket[PATH_BYTES + 16], log[PATH_BYTES + 16], url[PATH_BYTES + 64];
    pid_t pid;
};

static inline uint64_t since_ms(uint64_t start_ns)
{
    return (cbn__clock_monotonic_ns() - start_ns) / NS_PER_MS;
}

/* The server's own connection of a test; NULL until it answers. */
static inline redisContext *talk_to(const char *socket)
{
    redisContext *talk = redisConnectUnix(socket);
    if (talk && !talk->err) {
        redisReply *reply = redisCommand(talk, "ECHO x");
        bool answers = reply && reply->type != REDIS_REPLY_ERROR;
        bool asks = reply && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOAUTH", 6) == 0;
        if (reply)
            freeReplyObject(reply);
        if (answers || asks)
            return talk;
    }
    if (talk)
        redisFree(talk);
    return NULL;
}

static inline void run_server(const struct server *server, const char *const *extra)
{
    const char *arguments[16 + SERVER_ARGUMENTS_MAX] = {
        CBN_REDIS_SERVER, "--port", "0",  "--unixsocket", server->socket, "--save", "", "--appendonly", "no", "--dir",
        server->folder.path, "--logfile", server->log};
    int count = 13;
    for (int i = 0; extra && extra[i]; i++)
        arguments[count++] = extra[i];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)execv(CBN_REDIS_SERVER, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

/* extra: arguments, ends in NULL. Returns when it answers. */
static inline void wake_server(struct server *server, const char *const *extra)
{
    uint64_t start_ns = cbn__clock_monotonic_ns();
    redisContext *talk = NULL;
    server->pid = fork();
    ck_assert_int_ge(server->pid, 0);
    if (server->pid == 0)
        run_server(server, extra);
    while (!(talk = talk_to(server->socket))) {
        ck_assert_msg(since_ms(start_ns) < READY_MS, "the server does not answer; see %s", server->log);
        cbn__clock_sleep_ns(NS_PER_MS);
    }
    redisFree(talk);
}

static inline struct server start_server(const char *const *extra)
{
    struct server server = {.folder = scratch_make()};
    (void)snprintf(server.socket, sizeof(server.socket), "%s/s", server.folder.path);
    (void)snprintf(server.log, sizeof(server.log), "%s/log", server.folder.path);
    (void)snprintf(server.url, sizeof(server.url), "unix://%s", server.socket);
    wake_server(&server, extra);
    return server;
}

static inline void kill_server(struct server *server)
{
    if (server->pid > 0) {
        (void)kill(server->pid, SIGKILL);
        (void)waitpid(server->pid, NULL, 0);
    }
    server->pid = 0;
}

static inline void server_done(struct server *server)
{
    kill_server(server);
    scratch_done(&server->folder);
}

#define SERVER_AUTO __attribute__((cleanup(server_done))) struct server

/* A server that answers every connection with words of its own, and counts connections. */
enum after { AFTER_HOLD, AFTER_CLOSE, AFTER_STREAM, AFTER_TRICKLE };

struct impostor {
    struct server server; /* its socket and URL; log counts */
    int listener;
};

static inline bool said(int fd, const char *words)
{
    size_t size = strlen(words);
    return send(fd, words, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static inline void go_on(int fd, enum after after)
{
    char bytes[65536];
    memset(bytes, 'x', sizeof(bytes));
    while (after == AFTER_STREAM && send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
        ;
    while (after == AFTER_TRICKLE && send(fd, bytes, 1, MSG_NOSIGNAL) > 0)
        cbn__clock_sleep_ns(5 * NS_PER_MS);
    while (after == AFTER_HOLD && read(fd, bytes, sizeof(bytes)) > 0)
        ;
    (void)close(fd);
}

/* first is said to what comes first, second to what comes then; NULL: nothing is said. */
static inline void run_impostor(const struct impostor *impostor, const char *first, const char *second,
                                enum after after)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        char bytes[4096];
        int fd = accept(impostor->listener, NULL, NULL), count = open(impostor->server.log, O_WRONLY | O_APPEND);
        if (write(count, "x", 1) != 1 || close(count) != 0)
            _exit(1);
        bool fine = !first || (read(fd, bytes, sizeof(bytes)) > 0 && said(fd, first));
        fine = fine && (!second || (read(fd, bytes, sizeof(bytes)) > 0 && said(fd, second)));
        go_on(fd, fine ? after : AFTER_CLOSE);
    }
}

static inline struct impostor start_impostor(const char *first, const char *second, enum after after)
{
    struct impostor impostor = {.server = {.folder = scratch_make()}};
    struct server *server = &impostor.server;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(server->socket, sizeof(server->socket), "%s/s", server->folder.path);
    (void)snprintf(server->log, sizeof(server->log), "%s/count", server->folder.path);
    (void)snprintf(server->url, sizeof(server->url), "unix://%s", server->socket);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", server->socket);
    int fd = open(server->log, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    impostor.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(impostor.listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(impostor.listener, 64), 0);
    server->pid = fork();
    ck_assert_int_ge(server->pid, 0);
    if (server->pid == 0)
        run_impostor(&impostor, first, second, after);
    return impostor;
}

static inline void impostor_done(struct impostor *impostor)
{
    (void)close(impostor->listener);
    server_done(&impostor->server);
}

#define IMPOSTOR_AUTO __attribute__((cleanup(impostor_done))) struct impostor

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
    return (struct machine){.folder = scratch_make()};
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
