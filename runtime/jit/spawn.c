/*
 * The parent's side of a build child. Owns the child and its descriptors for the length of one call; no locks.
 *
 * The child stands on a socket pair (a request in, a result out) and a pipe for its stderr. Every descriptor here is
 * close-on-exec, so that children of other threads inherit none of them; sends carry MSG_NOSIGNAL.
 */
#include "jit/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "jit/frame.h"

#define NS_PER_MS 1000000ull
#define REAP_STEP_NS NS_PER_MS
#define READ_BYTES 65536
#define WORDS_MAX_BYTES 65536u

struct child {
    const char *program;
    pid_t pid;  /* 0: none, or reaped */
    int socket; /* -1: closed */
    int errors; /* -1: closed */
    uint64_t deadline_ns;
    struct cbn__buf request;
    size_t sent;
    struct cbn__buf reply;
    struct cbn__buf words; /* of its stderr */
    bool timed_out;
    bool status_known;
    int wait_status;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* ---- ending ---- */

static bool try_reap(struct child *child, int flags)
{
    pid_t result = 0;
    do
        result = waitpid(child->pid, &child->wait_status, flags);
    while (result < 0 && errno == EINTR);
    if (result == 0)
        return false;
    /* ECHILD: the program around us ignores SIGCHLD, or reaped it. */
    child->status_known = result > 0;
    child->pid = 0;
    return true;
}

static void kill_child(struct child *child)
{
    if (child->pid <= 0)
        return;
    (void)kill(child->pid, SIGKILL);
    (void)try_reap(child, 0);
}

/* It has closed its end, so it is about to exit: its status is worth waiting for, up to the deadline. */
static void await_exit(struct child *child)
{
    while (!try_reap(child, WNOHANG)) {
        if (cbn__clock_monotonic_ns() >= child->deadline_ns) {
            child->timed_out = true;
            kill_child(child);
            return;
        }
        cbn__clock_sleep_ns(REAP_STEP_NS);
    }
}

static void child_done(struct child *child)
{
    kill_child(child);
    close_fd(&child->socket);
    close_fd(&child->errors);
    cbn__buf_done(&child->request);
    cbn__buf_done(&child->reply);
    cbn__buf_done(&child->words);
}

/* ---- starting ---- */

/* The child's ends of the descriptors: never 0, 1 or 2, which are about to be replaced. */
struct ends {
    int socket;
    int errors;
};

static void ends_done(struct ends *ends)
{
    close_fd(&ends->socket);
    close_fd(&ends->errors);
}

static bool move_up(int *fd)
{
    if (*fd > STDERR_FILENO)
        return true;
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close_fd(fd);
    *fd = moved;
    return moved >= 0;
}

static bool open_ends(struct child *child, struct ends *ends)
{
    int pair[2], pipes[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    child->socket = pair[0];
    ends->socket = pair[1];
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return false;
    child->errors = pipes[0];
    ends->errors = pipes[1];
    return move_up(&ends->socket) && move_up(&ends->errors) && fcntl(child->errors, F_SETFL, O_NONBLOCK) == 0;
}

/* The child starts with every signal at its default and none blocked, whatever the program around us does. */
static int set_signals(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGKILL);
    (void)sigdelset(&all, SIGSTOP);
    int code = posix_spawnattr_setsigmask(attributes, &none);
    if (code == 0)
        code = posix_spawnattr_setsigdefault(attributes, &all);
    if (code == 0)
        code = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return code;
}

static int set_files(posix_spawn_file_actions_t *actions, const struct ends *ends)
{
    int code = posix_spawn_file_actions_adddup2(actions, ends->socket, STDIN_FILENO);
    if (code == 0)
        code = posix_spawn_file_actions_adddup2(actions, ends->socket, STDOUT_FILENO);
    if (code == 0)
        code = posix_spawn_file_actions_adddup2(actions, ends->errors, STDERR_FILENO);
    return code;
}

static int spawn_with(struct child *child, posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes,
                      const struct ends *ends)
{
    char flag[] = "--cubinet-builder";
    char *const arguments[] = {(char *)(uintptr_t)child->program, flag, NULL};
    /* A program with file capabilities starts a child without them, which the loader's variables would steer. */
    char *const nothing[] = {NULL};
    int code = set_files(actions, ends);
    if (code == 0)
        code = set_signals(attributes);
    pid_t pid = 0;
    if (code == 0)
        code = posix_spawn(&pid, child->program, actions, attributes, arguments,
                           cbn__env_is_ignored() ? nothing : environ);
    if (code == 0)
        child->pid = pid;
    return code;
}

static int spawn(struct child *child, const struct ends *ends)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (code == 0) {
        code = spawn_with(child, &actions, &attributes, ends);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return code;
}

static int32_t start_child(struct child *child, struct cbn_error *err)
{
    __attribute__((cleanup(ends_done))) struct ends ends = {-1, -1};
    if (!open_ends(child, &ends))
        return cbn__error_os(err, CBN_STATUS_COMPILE_FAILED, errno, "no descriptors for a build child");
    int code = spawn(child, &ends);
    if (code == 0)
        return CBN_STATUS_OK;
    bool absent = code == ENOENT || code == EACCES || code == ENOEXEC || code == ENOTDIR;
    return cbn__error_os(err, absent ? CBN_STATUS_NO_COMPILER : CBN_STATUS_COMPILE_FAILED, code,
                         "the build program %.300s does not start; check builder_path", child->program);
}

/* ---- talking ---- */

static void send_some(struct child *child)
{
    ssize_t count = send(child->socket, child->request.data + child->sent, child->request.size - child->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0)
        child->sent += (size_t)count;
    else if (errno != EAGAIN && errno != EINTR)
        child->sent = child->request.size; /* it reads no more; its answer says why */
    if (child->sent == child->request.size)
        (void)shutdown(child->socket, SHUT_WR);
}

/* False at the end. */
static bool read_reply(struct child *child)
{
    if (!cbn__buf_reserve(&child->reply, READ_BYTES))
        return false;
    ssize_t count = recv(child->socket, child->reply.data + child->reply.size, READ_BYTES, MSG_DONTWAIT);
    if (count > 0)
        child->reply.size += (size_t)count;
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Keeps the last words: the first half goes when there are too many. */
static void trim_words(struct cbn__buf *words)
{
    if (words->size <= WORDS_MAX_BYTES)
        return;
    size_t cut = words->size - WORDS_MAX_BYTES / 2;
    memmove(words->data, words->data + cut, words->size - cut);
    words->size -= cut;
}

static void read_words(struct child *child)
{
    char bytes[4096];
    for (;;) {
        ssize_t count = read(child->errors, bytes, sizeof(bytes));
        if (count > 0) {
            cbn__buf_append(&child->words, bytes, (size_t)count);
            trim_words(&child->words);
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            close_fd(&child->errors);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

static int left_ms(const struct child *child)
{
    uint64_t now_ns = cbn__clock_monotonic_ns();
    if (now_ns >= child->deadline_ns)
        return 0;
    uint64_t left = (child->deadline_ns - now_ns) / NS_PER_MS + 1;
    return left > 60000 ? 60000 : (int)left;
}

/* Until the answer is whole, is none of ours, ends, or the time is up. */
static enum cbn__frame_state talk(struct child *child, struct cbn__blob *ret_record)
{
    for (bool open = true;;) {
        enum cbn__frame_state state = cbn__frame_take(cbn__buf_blob(&child->reply), ret_record);
        if (state != CBN__FRAME_SHORT || !open)
            return state;
        int wait_ms = left_ms(child);
        if (wait_ms == 0) {
            child->timed_out = true;
            return state;
        }
        short out = child->sent < child->request.size ? POLLOUT : 0;
        struct pollfd polled[] = {{child->socket, (short)(POLLIN | out), 0}, {child->errors, POLLIN, 0}};
        if (poll(polled, 2, wait_ms) < 0)
            continue; /* EINTR, ENOMEM: bounded by the deadline */
        if (polled[1].revents)
            read_words(child);
        if (polled[0].revents & POLLOUT && out)
            send_some(child);
        if (polled[0].revents & (POLLIN | POLLHUP | POLLERR))
            open = read_reply(child);
    }
}

/* ---- the whole ---- */

static void last_line(struct cbn__buf *words, const char **ret_line)
{
    while (words->size && words->data[words->size - 1] == '\n')
        words->size--;
    const char *text = cbn__buf_text(words);
    const char *newline = strrchr(text, '\n');
    *ret_line = newline ? newline + 1 : text;
}

/* What became of a child that gave no result. */
static int32_t fail_child(struct child *child, const struct cbn__job *job, uint32_t timeout_ms,
                          struct cbn__buf *ret_log, struct cbn_error *err)
{
    const char *line = "";
    cbn__buf_append(ret_log, child->words.data, child->words.size);
    last_line(&child->words, &line);
    if (child->timed_out)
        return cbn__error_own(err, CBN_STATUS_COMPILE_FAILED,
                              "%.120s: the build child ran longer than %u ms and was killed; raise build_timeout_ms",
                              job->title, timeout_ms);
    if (child->status_known && WIFSIGNALED(child->wait_status))
        return cbn__error_own(err, CBN_STATUS_COMPILE_FAILED, "%.120s: the build child died by signal %d%s%s%.200s",
                              job->title, WTERMSIG(child->wait_status),
                              WTERMSIG(child->wait_status) == SIGKILL ? " (out of memory?)" : "", *line ? ": " : "",
                              line);
    if (child->status_known && WEXITSTATUS(child->wait_status) != 0)
        return cbn__error_own(err, CBN_STATUS_COMPILE_FAILED, "%.120s: the build child exited with status %d%s%.200s",
                              job->title, WEXITSTATUS(child->wait_status), *line ? ": " : "", line);
    return cbn__error_own(err, CBN_STATUS_COMPILE_FAILED,
                          "%.120s: the build child wrote no result; %.200s must call cbn_builder_main for "
                          "--cubinet-builder",
                          job->title, child->program);
}

int32_t cbn__spawn_run(const char *program, const struct cbn__job *job, uint32_t timeout_ms,
                       struct cbn__build *ret_build, struct cbn_error *err)
{
    __attribute__((cleanup(child_done))) struct child child = {.program = program,
                                                               .socket = -1,
                                                               .errors = -1,
                                                               .deadline_ns =
                                                                   cbn__clock_monotonic_ns() + timeout_ms * NS_PER_MS};
    cbn__frame_begin(&child.request);
    cbn__job_encode(job, &child.request);
    cbn__frame_end(&child.request);
    if (child.request.failed)
        return cbn__error_no_memory(err);
    int32_t status = start_child(&child, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__blob record;
    enum cbn__frame_state state = talk(&child, &record);
    if (state == CBN__FRAME_SHORT && !child.timed_out && !child.reply.failed)
        await_exit(&child);
    kill_child(&child);
    if (child.errors >= 0)
        read_words(&child);
    if (child.reply.failed)
        return cbn__error_no_memory(err);
    if (state == CBN__FRAME_WHOLE && cbn__outcome_decode(record, &status, err, ret_build))
        return ret_build->cubin.failed || ret_build->log.failed ? cbn__error_no_memory(err) : status;
    if (state != CBN__FRAME_SHORT)
        child.status_known = false; /* killed by us: its own end says nothing */
    return fail_child(&child, job, timeout_ms, &ret_build->log, err);
}
