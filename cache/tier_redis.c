/*
 * The fleet tier's protocol through hiredis: its buffers, its parser and, where it has it, its TLS. Sockets, deadlines
 * and bounds are ours: hiredis connects without a deadline, sets no close-on-exec and lets SIGPIPE kill.
 */
#include "cache/tier_link.h"

#include <errno.h>
#include <hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#ifdef CBN_FLEET_TLS
#include "cache/tier_tls.h"
#endif

struct cbn__link {
    redisContext *context;
    struct ssl_st *ssl; /* the context's; NULL: no TLS */
    redisReplyObjectFunctions functions;
};

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* No command here is answered by an array, and one that is announced costs memory at once. */
static void *refuse_array(const redisReadTask *task, element_count count)
{
    (void)task, (void)count;
    return NULL;
}

/* A write to a socket that the other end has closed must not end the process: the signal is the thread's own. */
struct quiet {
    sigset_t before, pipe;
    bool was_pending;
};

static void begin_quiet(struct quiet *quiet)
{
    sigset_t pending;
    (void)sigemptyset(&quiet->pipe);
    (void)sigaddset(&quiet->pipe, SIGPIPE);
    quiet->was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &quiet->pipe, &quiet->before);
}

static void end_quiet(const struct quiet *quiet)
{
    static const struct timespec none;
    int code = errno;
    sigset_t pending;
    if (!quiet->was_pending && sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1)
        (void)sigtimedwait(&quiet->pipe, NULL, &none);
    (void)pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
    errno = code;
}

int32_t cbn__link_supports(const struct cbn__tier_address *address, struct cbn_error *err)
{
#ifdef CBN_FLEET_TLS
    (void)address, (void)err;
    return CBN_STATUS_OK;
#else
    if (!address->tls)
        return CBN_STATUS_OK;
    return cbn__error_own(
        err, CBN_STATUS_UNSUPPORTED,
        "fleet: this library was built with a hiredis that has no TLS, %.200s cannot be used; reach the "
        "server by redis:// through a tunnel, or by unix://",
        address->shown);
#endif
}

static int32_t begin_tls(struct cbn__link *link, const struct cbn__tier_address *address, struct cbn_error *err)
{
    if (!address->tls)
        return CBN_STATUS_OK;
#ifdef CBN_FLEET_TLS
    struct quiet quiet;
    begin_quiet(&quiet);
    int32_t status = cbn__tier_tls_begin(link->context, address, &link->ssl, err);
    end_quiet(&quiet);
    return status;
#else
    (void)link;
    return cbn__link_supports(address, err);
#endif
}

/* What to wait for when nothing more can be read or written just now. */
static short events_of(const struct cbn__link *link, bool all_written)
{
#ifdef CBN_FLEET_TLS
    if (link->ssl)
        return cbn__tier_tls_wants_write(link->ssl) ? POLLIN | POLLOUT : POLLIN;
#endif
    (void)link;
    return all_written ? POLLIN : POLLIN | POLLOUT;
}

int32_t cbn__link_create(const struct cbn__tier_address *address, int fd, struct cbn__link **ret_link,
                         struct cbn_error *err)
{
    int32_t status = cbn__link_supports(address, err);
    struct cbn__link *link = status == CBN_STATUS_OK ? calloc(1, sizeof(*link)) : NULL;
    if (link)
        link->context = redisConnectFd(fd);
    if (!link || !link->context || link->context->err || !link->context->reader) {
        if (link && link->context)
            (void)redisFreeKeepFd(link->context);
        free(link);
        (void)close(fd);
        return status == CBN_STATUS_OK ? cbn__error_no_memory(err) : status;
    }
    link->context->flags &= ~REDIS_BLOCK;
    link->functions = *link->context->reader->fn;
    link->functions.createArray = refuse_array;
    link->context->reader->fn = &link->functions;
    status = begin_tls(link, address, err);
    if (status == CBN_STATUS_OK)
        *ret_link = link;
    else
        cbn__link_destroy(link);
    return status;
}

void cbn__link_destroy(struct cbn__link *link)
{
    int fd = redisFreeKeepFd(link->context);
    if (fd >= 0)
        (void)close(fd);
    free(link);
}

int cbn__link_fd(const struct cbn__link *link)
{
    return (int)link->context->fd;
}

bool cbn__link_is_stale(const struct cbn__link *link)
{
    struct pollfd item = {.fd = cbn__link_fd(link), .events = POLLIN};
    return link->context->err || poll(&item, 1, 0) != 0;
}

int32_t cbn__link_send(struct cbn__link *link, const struct cbn__tier_command *command, struct cbn_error *err)
{
    const char *arguments[CBN__TIER_ARGUMENTS_MAX];
    size_t sizes[CBN__TIER_ARGUMENTS_MAX];
    for (uint32_t i = 0; i < command->count; i++) {
        arguments[i] = command->arguments[i].size ? command->arguments[i].data : "";
        sizes[i] = command->arguments[i].size;
    }
    return redisAppendCommandArgv(link->context, (int)command->count, arguments, sizes) == REDIS_OK
               ? CBN_STATUS_OK
               : cbn__error_no_memory(err);
}

static int32_t explain(const struct cbn__link *link, int code, struct cbn_error *err)
{
    const redisContext *context = link->context;
#ifdef CBN_FLEET_TLS
    const char *problem = link->ssl ? cbn__tier_tls_problem(link->ssl) : "";
    if (problem[0])
        return cbn__tier_tls_refuse(problem, err);
#endif
    switch (context->err) {
    case REDIS_ERR_IO:
        return cbn__error_os(err, CBN_STATUS_IO, code, "the connection to the fleet's server failed");
    case REDIS_ERR_EOF:
        return cbn__error_own(err, CBN_STATUS_IO, "the fleet's server closed the connection");
    case REDIS_ERR_OOM: /* which is what refuse_array looks like */
    case REDIS_ERR_PROTOCOL:
        return cbn__error_own(err, CBN_STATUS_DAMAGED, "what answers at the fleet's address speaks another protocol");
    default:
        return cbn__error_own(err, CBN_STATUS_IO, "the connection to the fleet's server failed: %.100s",
                              context->errstr);
    }
}

static int32_t take_reply(const redisReply *reply, struct cbn__tier_reply *ret_reply, struct cbn_error *err)
{
    *ret_reply = (struct cbn__tier_reply){.kind = CBN__REPLY_NIL};
    switch (reply->type) {
    case REDIS_REPLY_NIL:
        return CBN_STATUS_OK;
    case REDIS_REPLY_INTEGER:
        ret_reply->kind = CBN__REPLY_INTEGER;
        ret_reply->integer = reply->integer;
        return CBN_STATUS_OK;
    case REDIS_REPLY_STATUS:
        ret_reply->kind = CBN__REPLY_STATUS;
        return CBN_STATUS_OK;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_ERROR:
        ret_reply->kind = reply->type == REDIS_REPLY_STRING ? CBN__REPLY_BYTES : CBN__REPLY_ERROR;
        cbn__buf_append(&ret_reply->bytes, reply->str, (size_t)reply->len);
        return ret_reply->bytes.failed ? cbn__error_no_memory(err) : CBN_STATUS_OK;
    default:
        return cbn__error_own(err, CBN_STATUS_DAMAGED, "what answers at the fleet's address speaks another protocol");
    }
}

/* Writes what can be written and reads what is there; *ret_events is what to wait for next, 0: something came. */
static bool pump(struct cbn__link *link, short *ret_events)
{
    redisContext *context = link->context;
    struct quiet quiet;
    int all_written = 1;
    size_t before = context->reader->len;
    begin_quiet(&quiet);
    bool fine = redisBufferRead(context) == REDIS_OK && redisBufferWrite(context, &all_written) == REDIS_OK;
    end_quiet(&quiet);
    *ret_events = context->reader->len != before ? 0 : events_of(link, all_written);
    return fine;
}

int32_t cbn__link_receive(struct cbn__link *link, uint64_t deadline_ns, struct cbn__tier_reply *ret_reply,
                          struct cbn_error *err)
{
    redisContext *context = link->context;
    for (;;) {
        void *reply = NULL;
        short events = 0;
        if (redisGetReplyFromReader(context, &reply) != REDIS_OK)
            return explain(link, 0, err);
        if (reply) {
            int32_t status = take_reply(reply, ret_reply, err);
            freeReplyObject(reply);
            return status;
        }
        if (context->reader->len > CBN__TIER_REPLY_MAX_BYTES)
            return cbn__error_own(err, CBN_STATUS_DAMAGED, "the fleet's server sends a reply without an end");
        if (!pump(link, &events))
            return explain(link, errno, err);
        int32_t status = cbn__tier_wait(cbn__link_fd(link), events ? events : POLLIN | POLLOUT, deadline_ns, err);
        if (status != CBN_STATUS_OK)
            return status;
    }
}
