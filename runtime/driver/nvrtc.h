/*
 * NVRTC by dlopen: search, version, one compile. The only user of nvrtc.h is nvrtc.c.
 */
#ifndef CBN_DRIVER_NVRTC_H
#define CBN_DRIVER_NVRTC_H

#include "base/buf.h"
#include "base/error.h"

struct cbn__nvrtc;

/*
 * path when given, else CUBINET_NVRTC's value env_path when given: that file and nothing else. With neither, the first
 * that loads of: the loader's path (libnvrtc.so.13, .12), toolkit folders, a Python environment's nvidia folders.
 * NO_COMPILER lists every place that was tried. Costs about 100 ms: open on first need only. Stays mapped after close.
 */
int32_t cbn__nvrtc_open(const char *path, const char *env_path, struct cbn__nvrtc **ret_nvrtc, struct cbn_error *err);
void cbn__nvrtc_close(struct cbn__nvrtc *nvrtc);
const char *cbn__nvrtc_path(const struct cbn__nvrtc *nvrtc);       /* as loaded */
uint32_t cbn__nvrtc_version(const struct cbn__nvrtc *nvrtc);       /* major * 1000 + minor */
bool cbn__nvrtc_knows_arch(const struct cbn__nvrtc *nvrtc, uint32_t capability);

struct cbn__nvrtc_source {
    const char *text;
    const char *name;
    const char *const *header_names;
    const char *const *header_texts;
    int header_count;
    int option_count;
    const char *const *options; /* without --no-cache, which is added where the version knows it */
};

/* cubin and ptx are emptied first; log is filled in every case. Serialised inside NVRTC. */
int32_t cbn__nvrtc_compile(struct cbn__nvrtc *nvrtc, const struct cbn__nvrtc_source *source, struct cbn__buf *ret_cubin,
                           struct cbn__buf *ret_ptx, struct cbn__buf *ret_log, struct cbn_error *err);
/* What a compile failed with: NVRTC read the source and refused it. False for all that may lie with the host. */
bool cbn__nvrtc_refused(const struct cbn_error *err);

#endif
