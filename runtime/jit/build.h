/*
 * Builds: a specialisation to a cubin, in this process or in a child.
 */
#ifndef CBN_JIT_BUILD_H
#define CBN_JIT_BUILD_H

#include "base/notice.h"
#include "jit/spec.h"

/* Compilers and children of one runtime. Opens NVRTC on the first in-process build. thread: any. */
struct cbn__builder;

/*
 * Others who build the same key. tell: NVRTC of that version compiled the source and refused it
 * (NVRTC_ERROR_COMPILATION, in this process or in a child). Nothing else is told: a child that was killed, did not
 * start, ran past its time or gave no result, and what a host lacks, say nothing about another. ask: the same version
 * refused it in others' hands while this thread waited for them, with *ret_err. Asked only where the version is
 * known: in process NVRTC is opened for it; with children it is that of the last child that compiled. thread: any; no
 * lock is held.
 */
struct cbn__build_peers {
    bool (*ask)(void *user, const struct cbn__hash *key, uint32_t compiler_version, struct cbn_error *ret_err);
    void (*tell)(void *user, const struct cbn__hash *key, uint32_t compiler_version, const struct cbn_error *err);
    void *user;
};

struct cbn__builder_options {
    struct cbn__build_peers peers; /* ask NULL: none */
    const char *nvrtc_path;   /* option; NULL: search */
    const char *nvrtc_env;    /* CUBINET_NVRTC; NULL: unset */
    const char *builder_path; /* NULL: build in process */
    uint32_t timeout_ms;      /* of a child */
};

int32_t cbn__builder_create(const struct cbn__builder_options *options, struct cbn__builder **ret_builder,
                            struct cbn_error *err);
void cbn__builder_destroy(struct cbn__builder *builder);

struct cbn__build {
    struct cbn__buf cubin;
    struct cbn__buf log;
    uint32_t compiler_version; /* major * 1000 + minor */
    uint32_t compile_ms;
    uint32_t registers;
    uint32_t shared_bytes;
    uint32_t spill_bytes;
};

#define CBN__BUILD_INIT {CBN__BUF_INIT, CBN__BUF_INIT, 0, 0, 0, 0, 0}
void cbn__build_done(struct cbn__build *build);

/*
 * COMPILE_FAILED (ret_build->log holds NVRTC's words; also a child that died or ran past its time, PTX without
 * griddepcontrol.wait where the parameter PDL is 1, a cubin without the template's symbol or with parameters of other
 * than argument_bytes, and ptxas spills or warnings C75xx only as far as the log), NO_COMPILER (none found, its builtins
 * missing, or builder_path does not start), UNSUPPORTED (an arch that this NVRTC does not know, a candidate without a
 * template), LIMIT (too many headers), NO_MEMORY.
 */
int32_t cbn__build_run(struct cbn__builder *builder, const struct cbn__spec *spec, struct cbn__build *ret_build,
                       struct cbn_error *err);

/* "#define NAME value" lines and the template's text: what NVRTC is given, and what show --source prints. */
void cbn__spec_source(const struct cbn__spec *spec, struct cbn__buf *ret_source);
/* NVRTC options of a specialisation, in the order of the key. Static strings and one owned arch option. */
#define CBN__OPTIONS_MAX 8
struct cbn__spec_options {
    const char *items[CBN__OPTIONS_MAX];
    int count;
    char arch[48];
};
void cbn__spec_options(const struct cbn__spec *spec, struct cbn__spec_options *ret_options);

/* What doctor says about NVRTC: opens it. */
int32_t cbn__builder_nvrtc(struct cbn__builder *builder, const char **ret_path, uint32_t *ret_version,
                           struct cbn_error *err);

#endif
