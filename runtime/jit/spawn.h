/*
 * Builds in child processes: NVRTC compiles one at a time within a process, and may crash without taking ours along.
 */
#ifndef CBN_JIT_SPAWN_H
#define CBN_JIT_SPAWN_H

#include "jit/job.h"

/*
 * Runs job in `program --cubinet-builder`. COMPILE_FAILED when the child dies, answers nonsense or runs past
 * timeout_ms; its stderr then stands in ret_build->log. thread: any; raises no signal in this process.
 */
int32_t cbn__spawn_run(const char *program, const struct cbn__job *job, uint32_t timeout_ms,
                       struct cbn__build *ret_build, struct cbn_error *err);

#endif
