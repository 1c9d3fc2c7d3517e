/*
 * Jobs and outcomes, and their records between a process and its build child. Pure.
 */
#include "jit/job.h"

#include <limits.h>
#include <string.h>

#include <cubinet/route.h>

#include "base/arch.h"
#include "base/record.h"
#include "jit/digest.h"
#include "jit/embedded.h"

void cbn__job_texts_done(struct cbn__job_texts *texts)
{
    cbn__buf_done(&texts->source);
    cbn__buf_done(&texts->title);
}

static bool add_header(struct cbn__job *job, const char *name, const char *text)
{
    if (job->header_count == CBN__JOB_HEADERS_MAX)
        return false;
    job->header_names[job->header_count] = name;
    job->header_texts[job->header_count++] = text;
    return true;
}

/* A built-in's digest covers every embedded file, so it may include any of them; another's only what it brought. */
static bool add_headers(struct cbn__job *job, const struct cbn__template *template)
{
    bool fits = true;
    struct cbn__hash embedded = cbn__embedded_digest();
    if (cbn__hash_equal(&template->digest, &embedded))
        for (size_t i = 0; i < cbn__embedded_count; i++)
            fits &= add_header(job, cbn__embedded_files[i].name, cbn__embedded_files[i].text);
    for (uint32_t i = 0; i < template->header_count; i++)
        fits &= add_header(job, template->header_names[i], template->header_texts[i]);
    return fits;
}

static bool wants_pdl(const struct cbn__spec *spec)
{
    for (uint32_t i = 0; i < spec->template->param_count; i++)
        if (strcmp(spec->template->param_names[i], "PDL") == 0)
            return spec->params[i] == 1;
    return false;
}

int32_t cbn__job_init(struct cbn__job *job, const struct cbn__spec *spec, struct cbn__job_texts *texts,
                      struct cbn_error *err)
{
    const struct cbn__template *template = spec->template;
    *job = (struct cbn__job){.capability = cbn__arch_capability(spec->arch), .needs_pdl_wait = wants_pdl(spec)};
    char arch[16];
    cbn_arch_format(spec->arch, arch, sizeof(arch));
    cbn__buf_append_format(&texts->title, "%s/%s %s", template->family, template->name, arch);
    job->title = cbn__buf_text(&texts->title);
    if (!template->source)
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED, "%.200s has no template", job->title);
    if (!add_headers(job, template))
        return cbn__error_own(err, CBN_STATUS_LIMIT, "%.200s: more than %d headers", job->title, CBN__JOB_HEADERS_MAX);
    cbn__spec_source(spec, &texts->source);
    job->source = cbn__buf_text(&texts->source);
    job->source_name = template->source_name ? cbn__file_name(template->source_name) : "template.cuh";
    cbn__spec_options(spec, &texts->options);
    job->option_count = texts->options.count;
    memcpy(job->options, texts->options.items, sizeof(job->options));
    if (texts->source.failed || texts->title.failed)
        return cbn__error_no_memory(err);
    return CBN_STATUS_OK;
}

/* ---- records ---- */

#define JOB_FORMAT 1u

enum {
    JOB_TAG_FORMAT = 1,
    JOB_TAG_TITLE,
    JOB_TAG_SOURCE,
    JOB_TAG_SOURCE_NAME,
    JOB_TAG_CAPABILITY,
    JOB_TAG_PDL,
    JOB_TAG_NVRTC_PATH, /* absent: search */
    JOB_TAG_NVRTC_ENV,
    JOB_TAG_OPTION,      /* repeats */
    JOB_TAG_HEADER_NAME, /* repeats */
    JOB_TAG_HEADER_TEXT  /* repeats, as many as names */
};

static void put_string(struct cbn__buf *record, uint16_t tag, const char *text)
{
    if (text)
        cbn__record_put(record, tag, (struct cbn__blob){text, strlen(text) + 1});
}

void cbn__job_encode(const struct cbn__job *job, struct cbn__buf *ret_record)
{
    cbn__record_put_u32(ret_record, JOB_TAG_FORMAT, JOB_FORMAT);
    put_string(ret_record, JOB_TAG_TITLE, job->title);
    put_string(ret_record, JOB_TAG_SOURCE, job->source);
    put_string(ret_record, JOB_TAG_SOURCE_NAME, job->source_name);
    cbn__record_put_u32(ret_record, JOB_TAG_CAPABILITY, job->capability);
    cbn__record_put_u32(ret_record, JOB_TAG_PDL, job->needs_pdl_wait);
    put_string(ret_record, JOB_TAG_NVRTC_PATH, job->nvrtc_path);
    put_string(ret_record, JOB_TAG_NVRTC_ENV, job->nvrtc_env);
    for (int i = 0; i < job->option_count; i++)
        put_string(ret_record, JOB_TAG_OPTION, job->options[i]);
    for (int i = 0; i < job->header_count; i++)
        put_string(ret_record, JOB_TAG_HEADER_NAME, job->header_names[i]);
    for (int i = 0; i < job->header_count; i++)
        put_string(ret_record, JOB_TAG_HEADER_TEXT, job->header_texts[i]);
}

static const char *as_string(struct cbn__blob bytes)
{
    bool terminated = bytes.size && memchr(bytes.data, 0, bytes.size) == (const char *)bytes.data + bytes.size - 1;
    return terminated ? bytes.data : NULL;
}

/* NULL when absent, too. */
static const char *find_string(struct cbn__blob record, uint16_t tag)
{
    struct cbn__blob bytes;
    return cbn__record_find(record, tag, &bytes) ? as_string(bytes) : NULL;
}

/* The number of strings of a tag; -1: too many, or one without its NUL. */
static int find_strings(struct cbn__blob record, uint16_t tag, const char **ret_strings, int max)
{
    size_t offset = 0;
    struct cbn__record_field field;
    bool malformed = false;
    int count = 0;
    while (cbn__record_next(record, &offset, &field, &malformed)) {
        if (field.tag != tag)
            continue;
        if (count == max || !(ret_strings[count] = as_string(field.bytes)))
            return -1;
        count++;
    }
    return count;
}

bool cbn__job_decode(struct cbn__blob record, struct cbn__job *ret_job)
{
    uint32_t format = 0, pdl = 0;
    struct cbn__job job = {0};
    if (!cbn__record_well_formed(record) || !cbn__record_find_u32(record, JOB_TAG_FORMAT, &format) ||
        format != JOB_FORMAT || !cbn__record_find_u32(record, JOB_TAG_CAPABILITY, &job.capability) ||
        !cbn__record_find_u32(record, JOB_TAG_PDL, &pdl))
        return false;
    job.title = find_string(record, JOB_TAG_TITLE);
    job.source = find_string(record, JOB_TAG_SOURCE);
    job.source_name = find_string(record, JOB_TAG_SOURCE_NAME);
    job.nvrtc_path = find_string(record, JOB_TAG_NVRTC_PATH);
    job.nvrtc_env = find_string(record, JOB_TAG_NVRTC_ENV);
    job.needs_pdl_wait = pdl != 0;
    job.option_count = find_strings(record, JOB_TAG_OPTION, job.options, CBN__OPTIONS_MAX);
    job.header_count = find_strings(record, JOB_TAG_HEADER_NAME, job.header_names, CBN__JOB_HEADERS_MAX);
    int text_count = find_strings(record, JOB_TAG_HEADER_TEXT, job.header_texts, CBN__JOB_HEADERS_MAX);
    if (!job.title || !job.source || !job.source_name || job.option_count < 0 || job.header_count < 0 ||
        text_count != job.header_count)
        return false;
    *ret_job = job;
    return true;
}

enum {
    OUTCOME_TAG_FORMAT = 1,
    OUTCOME_TAG_STATUS,
    OUTCOME_TAG_DOMAIN,
    OUTCOME_TAG_NATIVE,
    OUTCOME_TAG_MESSAGE,
    OUTCOME_TAG_COMPILER,
    OUTCOME_TAG_COMPILE_MS,
    OUTCOME_TAG_REGISTERS,
    OUTCOME_TAG_SHARED,
    OUTCOME_TAG_SPILL,
    OUTCOME_TAG_LOG,
    OUTCOME_TAG_CUBIN
};

/* The numbers of a build that travel, in order of tag. */
#define OUTCOME_NUMBER_MAP(X)                                                                                          \
    X(OUTCOME_TAG_COMPILER, compiler_version)                                                                          \
    X(OUTCOME_TAG_COMPILE_MS, compile_ms)                                                                              \
    X(OUTCOME_TAG_REGISTERS, registers)                                                                                \
    X(OUTCOME_TAG_SHARED, shared_bytes)                                                                                \
    X(OUTCOME_TAG_SPILL, spill_bytes)

void cbn__outcome_encode(int32_t status, const struct cbn_error *err, const struct cbn__build *build,
                         struct cbn__buf *ret_record)
{
    cbn__record_put_u32(ret_record, OUTCOME_TAG_FORMAT, JOB_FORMAT);
    cbn__record_put_u32(ret_record, OUTCOME_TAG_STATUS, (uint32_t)status);
    cbn__record_put_u32(ret_record, OUTCOME_TAG_DOMAIN, err->domain);
    cbn__record_put_u64(ret_record, OUTCOME_TAG_NATIVE, (uint64_t)err->native_code);
    put_string(ret_record, OUTCOME_TAG_MESSAGE, status == CBN_STATUS_OK ? "" : err->message);
#define CBN__X(tag, field) cbn__record_put_u32(ret_record, tag, build->field);
    OUTCOME_NUMBER_MAP(CBN__X)
#undef CBN__X
    cbn__record_put(ret_record, OUTCOME_TAG_LOG, cbn__buf_blob(&build->log));
    cbn__record_put(ret_record, OUTCOME_TAG_CUBIN, cbn__buf_blob(&build->cubin));
}

static bool decode_error(struct cbn__blob record, int32_t *ret_status, struct cbn_error *ret_err)
{
    uint32_t status = 0, domain = 0;
    uint64_t native = 0;
    const char *message = find_string(record, OUTCOME_TAG_MESSAGE);
    if (!cbn__record_find_u32(record, OUTCOME_TAG_STATUS, &status) || status > CBN_STATUS_INTERNAL ||
        !cbn__record_find_u32(record, OUTCOME_TAG_DOMAIN, &domain) ||
        !cbn__record_find_u64(record, OUTCOME_TAG_NATIVE, &native) || !message)
        return false;
    *ret_status = (int32_t)status;
    if (status != CBN_STATUS_OK)
        (void)cbn__error_set(ret_err, (enum cbn_status)status, (enum cbn_domain)domain, (int64_t)native, "%s", message);
    return true;
}

bool cbn__outcome_decode(struct cbn__blob record, int32_t *ret_status, struct cbn_error *ret_err,
                         struct cbn__build *ret_build)
{
    uint32_t format = 0;
    struct cbn__blob log, cubin;
    if (!cbn__record_well_formed(record) || !cbn__record_find_u32(record, OUTCOME_TAG_FORMAT, &format) ||
        format != JOB_FORMAT || !cbn__record_find(record, OUTCOME_TAG_LOG, &log) ||
        !cbn__record_find(record, OUTCOME_TAG_CUBIN, &cubin))
        return false;
#define CBN__X(tag, field)                                                                                             \
    if (!cbn__record_find_u32(record, tag, &ret_build->field))                                                         \
        return false;
    OUTCOME_NUMBER_MAP(CBN__X)
#undef CBN__X
    if (!decode_error(record, ret_status, ret_err) || (*ret_status == CBN_STATUS_OK) != (cubin.size > 0))
        return false;
    cbn__buf_append(&ret_build->log, log.data, log.size);
    cbn__buf_append(&ret_build->cubin, cubin.data, cubin.size);
    return true;
}
