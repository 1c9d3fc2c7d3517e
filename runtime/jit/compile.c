/*
 * Compiling a job in this process and checking the result. Holds no lock: NVRTC has its own.
 */
#include "jit/compile.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define NS_PER_MS 1000000ull

/* "… 12 bytes smem": the number in front of a unit, 0 where the line has none. */
static uint32_t number_before(const char *line, size_t length, const char *unit)
{
    const char *at = memmem(line, length, unit, strlen(unit));
    if (!at)
        return 0;
    while (at > line && at[-1] == ' ')
        at--;
    while (at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return (uint32_t)strtoul(at, NULL, 10);
}

static void raise_to(uint32_t *value, uint32_t seen)
{
    if (seen > *value)
        *value = seen;
}

void cbn__ptxas_parse(const char *log, struct cbn__build *ret_build)
{
    for (const char *line = log; *line;) {
        size_t length = strcspn(line, "\n");
        ret_build->spill_bytes += number_before(line, length, " bytes spill stores");
        ret_build->spill_bytes += number_before(line, length, " bytes spill loads");
        raise_to(&ret_build->registers, number_before(line, length, " registers"));
        raise_to(&ret_build->shared_bytes, number_before(line, length, " bytes smem"));
        line += length + (line[length] == '\n');
    }
}

bool cbn__ptx_waits(const char *ptx)
{
    static const char wait[] = "griddepcontrol.wait";
    for (const char *at = strstr(ptx, wait); at; at = strstr(at + 1, wait)) {
        const char *line = at;
        while (line > ptx && line[-1] != '\n')
            line--;
        if (!memmem(line, (size_t)(at - line), "//", 2))
            return true;
    }
    return false;
}

static int32_t check_cubin(const struct cbn__job *job, const struct cbn__build *build, struct cbn_error *err)
{
    static const uint8_t elf[] = {0x7f, 'E', 'L', 'F'};
    if (build->cubin.size >= sizeof(elf) && memcmp(build->cubin.data, elf, sizeof(elf)) == 0)
        return CBN_STATUS_OK;
    return cbn__error_own(err, CBN_STATUS_COMPILE_FAILED, "%.200s: NVRTC gave no ELF", job->title);
}

static int32_t check_pdl(const struct cbn__job *job, struct cbn__buf *ptx, struct cbn_error *err)
{
    if (!job->needs_pdl_wait || cbn__ptx_waits(cbn__buf_text(ptx)))
        return CBN_STATUS_OK;
    return cbn__error_own(
        err, CBN_STATUS_COMPILE_FAILED,
        "%.200s: PDL is 1, but the PTX holds no griddepcontrol.wait: a kernel launched under PDL must "
        "wait before it reads what an earlier kernel writes; add the instruction, or build with PDL 0",
        job->title);
}

static int32_t check_arch(const struct cbn__nvrtc *nvrtc, const struct cbn__job *job, struct cbn_error *err)
{
    if (cbn__nvrtc_knows_arch(nvrtc, job->capability))
        return CBN_STATUS_OK;
    uint32_t version = cbn__nvrtc_version(nvrtc);
    return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                          "%.200s: NVRTC %u.%u (%.160s) does not know compute capability %u.%u; give a newer NVRTC",
                          job->title, version / 1000, version % 1000, cbn__nvrtc_path(nvrtc), job->capability / 10,
                          job->capability % 10);
}

/* Puts the specialisation in front of NVRTC's words. */
static void add_title(const struct cbn__job *job, struct cbn_error *err)
{
    if (!err)
        return;
    struct cbn_error inner = *err;
    (void)cbn__error_set(err, (enum cbn_status)inner.status, (enum cbn_domain)inner.domain, inner.native_code,
                         "%.120s: %.370s", job->title, inner.message);
}

int32_t cbn__compile_job(struct cbn__nvrtc *nvrtc, const struct cbn__job *job, struct cbn__build *ret_build,
                         struct cbn_error *err)
{
    int32_t status = check_arch(nvrtc, job, err);
    if (status != CBN_STATUS_OK)
        return status;
    const struct cbn__nvrtc_source source = {job->source,       job->source_name,  job->header_names, job->header_texts,
                                             job->header_count, job->option_count, job->options};
    CBN__BUF_AUTO ptx = CBN__BUF_INIT;
    uint64_t begin_ns = cbn__clock_monotonic_ns();
    status = cbn__nvrtc_compile(nvrtc, &source, &ret_build->cubin, &ptx, &ret_build->log, err);
    ret_build->compile_ms = (uint32_t)((cbn__clock_monotonic_ns() - begin_ns) / NS_PER_MS);
    ret_build->compiler_version = cbn__nvrtc_version(nvrtc);
    if (status != CBN_STATUS_OK) {
        add_title(job, err);
        return status;
    }
    cbn__ptxas_parse(cbn__buf_text(&ret_build->log), ret_build);
    if ((status = check_cubin(job, ret_build, err)) != CBN_STATUS_OK ||
        (status = check_pdl(job, &ptx, err)) != CBN_STATUS_OK)
        cbn__buf_done(&ret_build->cubin);
    return status;
}
