/*
 * One job through an open NVRTC, and what its words say.
 */
#ifndef CBN_JIT_COMPILE_H
#define CBN_JIT_COMPILE_H

#include "driver/nvrtc.h"
#include "jit/job.h"

/* Statuses as cbn__build_run. ret_build->log is filled in every case. */
int32_t cbn__compile_job(struct cbn__nvrtc *nvrtc, const struct cbn__job *job, struct cbn__build *ret_build,
                         struct cbn_error *err);

/* Registers and static shared memory: the largest of any function. Spills: stores and loads of all. */
void cbn__ptxas_parse(const char *log, struct cbn__build *ret_build);

/* True when an instruction griddepcontrol.wait stands outside a comment. */
bool cbn__ptx_waits(const char *ptx);

#endif
