/*
 * The runtime's life: settings, cabinet, builder, families; driver on first need; counters; versions.
 */
#include "api/runtime.h"

#include <stdlib.h>
#include <string.h>

#include "api/settings.h"
#include "base/args.h"
#include "cache/tier.h"
#include "jit/embedded.h"

/* A family that lacks the runtime's policy (a caller's own) keeps its default. */
static int32_t resolve_route(struct cbn_runtime *runtime, uint32_t index, struct cbn_error *err)
{
    struct cbn__family *family = runtime->families[index];
    const char *policy = runtime->settings.policy.value;
    if (policy && index >= CBN__BUILTIN_COUNT && cbn__family_policy(family, policy) < 0)
        policy = NULL;
    return cbn__route_resolve(family, (const struct cbn__family *const *)runtime->families, runtime->family_count,
                              policy, runtime->settings.disable.value, runtime->settings.enable.value, false,
                              &runtime->routes[index], err);
}

static int32_t open_families(struct cbn_runtime *runtime, struct cbn_error *err)
{
    int32_t status = cbn__builtin_families(runtime->families, err);
    if (status != CBN_STATUS_OK)
        return status;
    runtime->family_count = CBN__BUILTIN_COUNT;
    for (uint32_t i = 0; i < runtime->family_count && status == CBN_STATUS_OK; i++)
        status = resolve_route(runtime, i, err);
    return status;
}

static int32_t open_cabinet(struct cbn_runtime *runtime, struct cbn_error *err)
{
    struct cbn__cabinet_options options = {
        .overlay_path = runtime->settings.cache_dir.value,
        .base_paths = (const char *const *)runtime->base_dirs,
        .base_count = runtime->base_count,
        .lock_timeout_ms = runtime->lock_timeout_ms,
        .max_bytes = runtime->max_bytes,
        .read_only = (runtime->flags & CBN_RUNTIME_READ_ONLY) != 0,
        .trust_folder = (runtime->flags & CBN_RUNTIME_TRUST_FOLDER) != 0,
        .tier = runtime->tier,
        .sink = runtime->sink,
    };
    int32_t status = cbn__cabinet_open(&options, &runtime->cabinet, err);
    if (!runtime->cabinet)
        return status;
    bool required = (runtime->flags & CBN_RUNTIME_CACHE_REQUIRED) != 0;
    if (status != CBN_STATUS_OK)
        return required ? status : CBN_STATUS_OK; /* the cabinet said it */
    if (options.overlay_path)
        return CBN_STATUS_OK;
    bool asked = (runtime->flags & CBN_RUNTIME_MEMORY_ONLY) != 0;
    if (required && !asked)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND,
                              "no cache folder: neither an option, CUBINET_CACHE, XDG_CACHE_HOME nor HOME names one");
    if (!asked)
        cbn__sink_tell(&runtime->sink, CBN_EVENT_NOTICE, 0,
                       "no cache folder is named by CUBINET_CACHE, XDG_CACHE_HOME or HOME: kernels stay in memory only");
    return CBN_STATUS_OK;
}

static bool ask_peers(void *user, const struct cbn__hash *key, uint32_t compiler_version, struct cbn_error *ret_err)
{
    return cbn__flight_inherit(((struct cbn_runtime *)user)->cabinet, key, compiler_version, ret_err);
}

static void tell_peers(void *user, const struct cbn__hash *key, uint32_t compiler_version, const struct cbn_error *err)
{
    cbn__flight_fail(((struct cbn_runtime *)user)->cabinet, key, compiler_version, err);
}

static int32_t open_builder(struct cbn_runtime *runtime, struct cbn_error *err)
{
    bool from_env = strcmp(runtime->settings.nvrtc_path.origin, "option") != 0;
    struct cbn__builder_options options = {
        .peers = {ask_peers, tell_peers, runtime},
        .nvrtc_path = from_env ? NULL : runtime->settings.nvrtc_path.value,
        .nvrtc_env = from_env ? runtime->settings.nvrtc_path.value : NULL,
        .builder_path = runtime->settings.builder_path.value,
        .timeout_ms = runtime->build_timeout_ms,
    };
    return cbn__builder_create(&options, &runtime->builder, err);
}

int32_t cbn_runtime_create(const struct cbn_runtime_options *given, struct cbn_runtime **ret_runtime,
                           struct cbn_error *err)
{
    if (!ret_runtime)
        return cbn__error_own(err, CBN_STATUS_INVALID, "ret_runtime is NULL");
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    int32_t status = given ? cbn__args_take(&options, sizeof(options), given, "cbn_runtime_options", err)
                           : CBN_STATUS_OK;
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn_runtime *runtime = calloc(1, sizeof(*runtime));
    if (!runtime)
        return cbn__error_no_memory(err);
    (void)pthread_mutex_init(&runtime->open_lock, NULL);
    status = cbn__settings_resolve(runtime, &options, err);
    if (status == CBN_STATUS_OK)
        status = cbn__kernel_map_create(&runtime->kernels, err);
    if (status == CBN_STATUS_OK)
        status = open_families(runtime, err);
    if (status == CBN_STATUS_OK)
        status = open_builder(runtime, err);
    if (status == CBN_STATUS_OK)
        status = open_cabinet(runtime, err);
    if (status != CBN_STATUS_OK) {
        cbn_runtime_destroy(runtime);
        return status;
    }
    *ret_runtime = runtime;
    return CBN_STATUS_OK;
}

void cbn_runtime_destroy(struct cbn_runtime *runtime)
{
    if (!runtime)
        return;
    cbn__kernel_map_destroy(runtime->kernels);
    cbn__cabinet_close(runtime->cabinet);
    cbn__tier_close(runtime->tier);
    cbn__builder_destroy(runtime->builder);
    for (uint32_t i = 0; i < CBN__FAMILIES_MAX; i++)
        cbn__family_destroy(runtime->families[i]);
    cbn__driver_close(atomic_load(&runtime->driver));
    cbn__settings_done(runtime);
    (void)pthread_mutex_destroy(&runtime->open_lock);
    free(runtime);
}

struct cbn__family *cbn__runtime_family(struct cbn_runtime *runtime, const char *op, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < runtime->family_count; i++) {
        if (strcmp(runtime->families[i]->name, op) == 0) {
            if (ret_index)
                *ret_index = i;
            return runtime->families[i];
        }
    }
    return NULL;
}

int32_t cbn_family_register(struct cbn_runtime *runtime, const struct cbn_family *description, struct cbn_error *err)
{
    if (!runtime || !description)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "family" : "runtime");
    struct cbn_family taken = {0};
    int32_t status = cbn__args_take(&taken, sizeof(taken), description, "cbn_family", err);
    if (status != CBN_STATUS_OK)
        return status;
    if (taken.name && cbn__runtime_family(runtime, taken.name, NULL))
        return cbn__error_own(err, CBN_STATUS_INVALID, "family.name: '%.64s' is registered already; take another name",
                              taken.name);
    if (runtime->family_count == CBN__FAMILIES_MAX)
        return cbn__error_own(err, CBN_STATUS_LIMIT, "more than %d families", CBN__FAMILIES_MAX);
    struct cbn__family *family = NULL;
    status = cbn__family_create(&taken, NULL, &family, err);
    if (status != CBN_STATUS_OK)
        return status;
    uint32_t index = runtime->family_count;
    runtime->families[index] = family;
    runtime->family_count++;
    status = resolve_route(runtime, index, err);
    if (status != CBN_STATUS_OK) {
        runtime->family_count = index;
        runtime->families[index] = NULL;
        cbn__family_destroy(family);
    }
    return status;
}

/* A pull is counted by the tier, and by who asked as found below the writable layer, which bases alone are. */
static void add_fleet(const struct cbn_runtime *runtime, struct cbn_stats *stats)
{
    struct cbn__tier_counters counters;
    cbn__tier_counters(runtime->tier, &counters);
#define CBN_X(name, text) stats->fleet_##name = counters.name;
    CBN_FLEET_STAT_MAP(CBN_X)
#undef CBN_X
    /* The pull is counted a moment before. */
    stats->base_hits -= stats->base_hits < counters.hits ? stats->base_hits : counters.hits;
}

void cbn_runtime_stats(const struct cbn_runtime *runtime, struct cbn_stats *ret_stats)
{
    struct cbn_stats stats = {.size = sizeof(stats)};
#define CBN_X(name, text) stats.name = atomic_load_explicit(&runtime->stats.name, memory_order_relaxed);
    CBN_STAT_MAP(CBN_X)
#undef CBN_X
    if (runtime->tier)
        add_fleet(runtime, &stats);
    cbn__args_give(ret_stats, &stats, sizeof(stats));
}
