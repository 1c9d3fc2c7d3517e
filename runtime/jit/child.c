/*
 * The build child: one request on fd 0, one result on fd 1. Holds nothing else; says nothing by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cubinet/runtime.h>

#include "jit/compile.h"
#include "jit/frame.h"

enum { EXIT_DONE = 0, EXIT_REQUEST = 2, EXIT_RESULT = 3 };

#define READ_BYTES 65536

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static void close_nvrtc(struct cbn__nvrtc **nvrtc)
{
    cbn__nvrtc_close(*nvrtc);
}

/* Libraries may print: what they write to stdout goes to stderr, and the result has a descriptor of its own. */
static int take_output(void)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd >= 0)
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    return fd;
}

static bool read_request(struct cbn__buf *bytes, struct cbn__blob *ret_record)
{
    for (;;) {
        enum cbn__frame_state state = cbn__frame_take(cbn__buf_blob(bytes), ret_record);
        if (state != CBN__FRAME_SHORT)
            return state == CBN__FRAME_WHOLE;
        if (!cbn__buf_reserve(bytes, READ_BYTES))
            return false;
        ssize_t count = read(STDIN_FILENO, bytes->data + bytes->size, READ_BYTES);
        if (count > 0)
            bytes->size += (size_t)count;
        else if (count == 0 || errno != EINTR)
            return false;
    }
}

static bool write_all(int fd, struct cbn__blob bytes)
{
    const uint8_t *data = bytes.data;
    for (size_t done = 0; done < bytes.size;) {
        ssize_t count = write(fd, data + done, bytes.size - done);
        if (count > 0)
            done += (size_t)count;
        else if (count == 0 || errno != EINTR)
            return false;
    }
    return true;
}

static int32_t build(const struct cbn__job *job, struct cbn__build *ret_build, struct cbn_error *err)
{
    __attribute__((cleanup(close_nvrtc))) struct cbn__nvrtc *nvrtc = NULL;
    int32_t status = cbn__nvrtc_open(job->nvrtc_path, job->nvrtc_env, &nvrtc, err);
    return status == CBN_STATUS_OK ? cbn__compile_job(nvrtc, job, ret_build, err) : status;
}

static bool answer(int output, const struct cbn__job *job)
{
    __attribute__((cleanup(cbn__build_done))) struct cbn__build result = CBN__BUILD_INIT;
    CBN__BUF_AUTO frame = CBN__BUF_INIT;
    struct cbn_error err = {0};
    int32_t status = build(job, &result, &err);
    cbn__frame_begin(&frame);
    cbn__outcome_encode(status, &err, &result, &frame);
    cbn__frame_end(&frame);
    return !frame.failed && write_all(output, cbn__buf_blob(&frame));
}

int cbn_builder_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    /* Before the request is read: a parent that dies earlier leaves it short, one that dies later takes us along. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    __attribute__((cleanup(close_fd))) int output = take_output();
    CBN__BUF_AUTO request = CBN__BUF_INIT;
    struct cbn__blob record;
    struct cbn__job job;
    if (output < 0 || !read_request(&request, &record) || !cbn__job_decode(record, &job))
        return EXIT_REQUEST;
    return answer(output, &job) ? EXIT_DONE : EXIT_RESULT;
}
