/*
 * What crosses the wire between a process and its build child, both directions: any bytes are refused or taken whole.
 */
#include <string.h>

#include <cubinet/status.h>

#include "fuzz.h"
#include "jit/frame.h"
#include "jit/job.h"

static void check_job(struct cbn__blob record)
{
    struct cbn__job job;
    if (!cbn__job_decode(record, &job))
        return;
    size_t bytes = strlen(job.title) + strlen(job.source) + strlen(job.source_name);
    FUZZ_CHECK(job.option_count <= CBN__OPTIONS_MAX && job.header_count <= CBN__JOB_HEADERS_MAX);
    for (int i = 0; i < job.option_count; i++)
        bytes += strlen(job.options[i]);
    for (int i = 0; i < job.header_count; i++)
        bytes += strlen(job.header_names[i]) + strlen(job.header_texts[i]);
    FUZZ_CHECK(bytes <= record.size);
    CBN__BUF_AUTO again = CBN__BUF_INIT;
    struct cbn__job twice;
    cbn__job_encode(&job, &again);
    FUZZ_CHECK(!again.failed && cbn__job_decode(cbn__buf_blob(&again), &twice));
    FUZZ_CHECK(strcmp(twice.source, job.source) == 0 && twice.header_count == job.header_count);
}

static void check_outcome(struct cbn__blob record)
{
    struct cbn__build build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    int32_t status = -1;
    if (cbn__outcome_decode(record, &status, &err, &build)) {
        FUZZ_CHECK(status >= CBN_STATUS_OK && status <= CBN_STATUS_INTERNAL);
        FUZZ_CHECK((status == CBN_STATUS_OK) == (build.cubin.size > 0));
        FUZZ_CHECK(status == CBN_STATUS_OK || err.status == status);
        FUZZ_CHECK(memchr(err.message, 0, sizeof(err.message)) != NULL);
    }
    cbn__build_done(&build);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cbn__blob bytes = {data, size}, record;
    check_job(bytes);
    check_outcome(bytes);
    if (cbn__frame_take(bytes, &record) == CBN__FRAME_WHOLE) {
        FUZZ_CHECK(record.size + CBN__FRAME_HEAD_BYTES == size);
        check_job(record);
        check_outcome(record);
    }
    return 0;
}
