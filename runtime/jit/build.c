/*
 * Builders: in-process compiles through one NVRTC, or compiles in children. Owns the opened NVRTC.
 *
 * Lock: open_lock guards the one-time opening of NVRTC and nothing else; a compile runs without it.
 */
#include "jit/build.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "driver/nvrtc.h"
#include "jit/compile.h"
#include "jit/image.h"
#include "jit/spawn.h"

#define DEFAULT_TIMEOUT_MS 300000u

struct cbn__builder {
    char *nvrtc_path, *nvrtc_env, *builder_path; /* NULL: unset */
    uint32_t timeout_ms;
    struct cbn__build_peers peers;
    pthread_mutex_t open_lock;
    struct cbn__nvrtc *nvrtc;            /* NULL until the first need; then never changed */
    atomic_uint_least32_t child_version; /* of the last child that compiled; 0: none did */
};

static bool copy_text(const char *text, char **ret_copy)
{
    *ret_copy = text ? strdup(text) : NULL;
    return !text || *ret_copy;
}

int32_t cbn__builder_create(const struct cbn__builder_options *options, struct cbn__builder **ret_builder,
                            struct cbn_error *err)
{
    struct cbn__builder *builder = calloc(1, sizeof(*builder));
    if (!builder)
        return cbn__error_no_memory(err);
    builder->peers = options->peers;
    builder->timeout_ms = options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    (void)pthread_mutex_init(&builder->open_lock, NULL);
    if (!copy_text(options->nvrtc_path, &builder->nvrtc_path) || !copy_text(options->nvrtc_env, &builder->nvrtc_env) ||
        !copy_text(options->builder_path, &builder->builder_path)) {
        cbn__builder_destroy(builder);
        return cbn__error_no_memory(err);
    }
    *ret_builder = builder;
    return CBN_STATUS_OK;
}

void cbn__builder_destroy(struct cbn__builder *builder)
{
    if (!builder)
        return;
    cbn__nvrtc_close(builder->nvrtc);
    (void)pthread_mutex_destroy(&builder->open_lock);
    free(builder->nvrtc_path);
    free(builder->nvrtc_env);
    free(builder->builder_path);
    free(builder);
}

void cbn__build_done(struct cbn__build *build)
{
    cbn__buf_done(&build->cubin);
    cbn__buf_done(&build->log);
}

/* A failure is not remembered: the next build searches again. */
static int32_t obtain_nvrtc(struct cbn__builder *builder, struct cbn__nvrtc **ret_nvrtc, struct cbn_error *err)
{
    int32_t status = CBN_STATUS_OK;
    (void)pthread_mutex_lock(&builder->open_lock);
    if (!builder->nvrtc)
        status = cbn__nvrtc_open(builder->nvrtc_path, builder->nvrtc_env, &builder->nvrtc, err);
    *ret_nvrtc = builder->nvrtc;
    (void)pthread_mutex_unlock(&builder->open_lock);
    return status;
}

static int32_t run_job(struct cbn__builder *builder, struct cbn__job *job, struct cbn__build *ret_build,
                       struct cbn_error *err)
{
    if (builder->builder_path) {
        job->nvrtc_path = builder->nvrtc_path;
        job->nvrtc_env = builder->nvrtc_env;
        return cbn__spawn_run(builder->builder_path, job, builder->timeout_ms, ret_build, err);
    }
    struct cbn__nvrtc *nvrtc = NULL;
    int32_t status = obtain_nvrtc(builder, &nvrtc, err);
    return status == CBN_STATUS_OK ? cbn__compile_job(nvrtc, job, ret_build, err) : status;
}

/* What a launch would find missing, told before the cubin is stored. */
static int32_t check_kernel(const struct cbn__job *job, const struct cbn__template *template, struct cbn__blob cubin,
                            struct cbn_error *err)
{
    struct cbn__image_kernel kernel;
    cbn__image_find(cubin, template->symbol, &kernel);
    if (!kernel.readable)
        return cbn__error_own(err, CBN_STATUS_COMPILE_FAILED, "%.120s: the cubin's ELF tables cannot be read for %.64s",
                              job->title, template->symbol);
    if (!kernel.found)
        return cbn__error_own(err, CBN_STATUS_COMPILE_FAILED,
                              "%.120s: the cubin has no extern \"C\" kernel %.64s; it has %s; correct symbol, or the "
                              "source",
                              job->title, template->symbol, kernel.others[0] ? kernel.others : "none at all");
    if (kernel.argument_bytes_known && kernel.argument_bytes != template->argument_bytes)
        return cbn__error_own(err, CBN_STATUS_COMPILE_FAILED,
                              "%.120s: %.64s takes %u bytes of parameters, and argument_bytes is %u", job->title,
                              template->symbol, kernel.argument_bytes, template->argument_bytes);
    return CBN_STATUS_OK;
}

static int32_t build_alone(struct cbn__builder *builder, const struct cbn__spec *spec, struct cbn__build *ret_build,
                           struct cbn_error *err)
{
    __attribute__((cleanup(cbn__job_texts_done))) struct cbn__job_texts texts = {.source = CBN__BUF_INIT};
    struct cbn__job job;
    int32_t status = cbn__job_init(&job, spec, &texts, err);
    if (status == CBN_STATUS_OK)
        status = run_job(builder, &job, ret_build, err);
    if (status == CBN_STATUS_OK)
        status = check_kernel(&job, spec->template, cbn__buf_blob(&ret_build->cubin), err);
    if (status != CBN_STATUS_OK)
        cbn__buf_done(&ret_build->cubin);
    return status;
}

/* 0: not known, which no failure is believed of. The build that follows says why. */
static uint32_t own_version(struct cbn__builder *builder)
{
    struct cbn__nvrtc *nvrtc = NULL;
    if (builder->builder_path)
        return atomic_load_explicit(&builder->child_version, memory_order_relaxed);
    return obtain_nvrtc(builder, &nvrtc, NULL) == CBN_STATUS_OK ? cbn__nvrtc_version(nvrtc) : 0;
}

static bool ask_peers(struct cbn__builder *builder, const struct cbn__hash *key, struct cbn_error *ret_err)
{
    uint32_t version = own_version(builder);
    return version && builder->peers.ask(builder->peers.user, key, version, ret_err);
}

/* After a build of this builder's own. */
static void tell_peers(struct cbn__builder *builder, const struct cbn__hash *key, int32_t status,
                       const struct cbn__build *build, const struct cbn_error *failure)
{
    bool refused = status != CBN_STATUS_OK && cbn__nvrtc_refused(failure);
    if (status == CBN_STATUS_OK || refused)
        atomic_store_explicit(&builder->child_version, build->compiler_version, memory_order_relaxed);
    if (refused && build->compiler_version)
        builder->peers.tell(builder->peers.user, key, build->compiler_version, failure);
}

int32_t cbn__build_run(struct cbn__builder *builder, const struct cbn__spec *spec, struct cbn__build *ret_build,
                       struct cbn_error *err)
{
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    struct cbn_error failure = {0};
    cbn__build_done(ret_build);
    *ret_build = (struct cbn__build)CBN__BUILD_INIT;
    if (!builder->peers.ask)
        return build_alone(builder, spec, ret_build, err);
    cbn__key_record(spec, &record);
    if (record.failed)
        return cbn__error_no_memory(err);
    struct cbn__hash key = cbn__key_hash(cbn__buf_blob(&record));
    int32_t status = CBN_STATUS_COMPILE_FAILED;
    if (!ask_peers(builder, &key, &failure)) {
        status = build_alone(builder, spec, ret_build, &failure);
        tell_peers(builder, &key, status, ret_build, &failure);
    }
    if (status != CBN_STATUS_OK && err)
        *err = failure;
    return status;
}

int32_t cbn__builder_nvrtc(struct cbn__builder *builder, const char **ret_path, uint32_t *ret_version,
                           struct cbn_error *err)
{
    struct cbn__nvrtc *nvrtc = NULL;
    int32_t status = obtain_nvrtc(builder, &nvrtc, err);
    if (status != CBN_STATUS_OK)
        return status;
    *ret_path = cbn__nvrtc_path(nvrtc);
    *ret_version = cbn__nvrtc_version(nvrtc);
    return CBN_STATUS_OK;
}
