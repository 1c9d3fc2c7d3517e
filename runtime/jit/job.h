/*
 * One compile as data: what a specialisation needs from NVRTC, in a form that can cross a process boundary.
 */
#ifndef CBN_JIT_JOB_H
#define CBN_JIT_JOB_H

#include "jit/build.h"

#define CBN__JOB_HEADERS_MAX 64

/* Borrows every text: from the specialisation and the embedded files, or from the record it was decoded from. */
struct cbn__job {
    const char *title; /* "fp8_gemm/generic sm_90a", for messages */
    const char *source;
    const char *source_name;
    uint32_t capability;
    bool needs_pdl_wait; /* the PTX must hold griddepcontrol.wait */
    int header_count;
    const char *header_names[CBN__JOB_HEADERS_MAX];
    const char *header_texts[CBN__JOB_HEADERS_MAX];
    int option_count;
    const char *options[CBN__OPTIONS_MAX];
    const char *nvrtc_path; /* NULL: search */
    const char *nvrtc_env;
};

/* What a job borrows from besides the specialisation. */
struct cbn__job_texts {
    struct cbn__buf source;
    struct cbn__buf title;
    struct cbn__spec_options options;
};

void cbn__job_texts_done(struct cbn__job_texts *texts);
int32_t cbn__job_init(struct cbn__job *job, const struct cbn__spec *spec, struct cbn__job_texts *texts,
                      struct cbn_error *err);

/* Texts are stored with their NUL, so that a decoded job can borrow them. */
void cbn__job_encode(const struct cbn__job *job, struct cbn__buf *ret_record);
bool cbn__job_decode(struct cbn__blob record, struct cbn__job *ret_job);

/* A build's outcome: its status and error, or its bytes. The log travels in both cases. */
void cbn__outcome_encode(int32_t status, const struct cbn_error *err, const struct cbn__build *build,
                         struct cbn__buf *ret_record);
bool cbn__outcome_decode(struct cbn__blob record, int32_t *ret_status, struct cbn_error *ret_err,
                         struct cbn__build *ret_build);

#endif
