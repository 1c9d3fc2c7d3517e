/*
 * Servers for the tests of the fleet tier: a real one, on a Unix socket in a folder of its own, which dies with the
 * test; and ones that misbehave.
 */
#ifndef CBN_TEST_FLEET_SERVER_H
#define CBN_TEST_FLEET_SERVER_H

#include <check.h>
#include <fcntl.h>
#include <hiredis.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define NS_PER_MS 1000000u
#define READY_MS 10000u
#define SERVER_ARGUMENTS_MAX 8
#define SERVER_PATH_BYTES 128

struct server {
    char folder[32], socket[64], log[64], url[96];
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
        CBN_REDIS_SERVER, "--port", "0",     "--unixsocket", server->socket, "--save",   "",
        "--appendonly",   "no",     "--dir", server->folder, "--logfile",    server->log};
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

static inline void make_server_folder(struct server *ret_server)
{
    *ret_server = (struct server){.folder = "/tmp/cubinet-fleet-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(ret_server->folder));
    (void)snprintf(ret_server->socket, sizeof(ret_server->socket), "%s/s", ret_server->folder);
    (void)snprintf(ret_server->log, sizeof(ret_server->log), "%s/log", ret_server->folder);
    (void)snprintf(ret_server->url, sizeof(ret_server->url), "unix://%s", ret_server->socket);
}

static inline struct server start_server(const char *const *extra)
{
    struct server server;
    make_server_folder(&server);
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
    (void)unlink(server->socket);
    (void)unlink(server->log);
    (void)rmdir(server->folder);
}

#define SERVER_AUTO __attribute__((cleanup(server_done))) struct server

/* A server that answers every connection with words of its own, and counts connections. */
enum after { AFTER_HOLD, AFTER_CLOSE, AFTER_STREAM, AFTER_TRICKLE };

struct impostor {
    struct server server; /* its log has a byte for every connection */
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
    struct impostor impostor;
    struct server *server = &impostor.server;
    make_server_folder(server);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", server->socket);
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

#endif
