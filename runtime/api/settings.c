/*
 * Settings and where each came from.
 */
#include "api/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "cache/folder.h"
#include "cache/tier.h"

#define DEFAULT_MAX_BYTES (1ull << 30)
#define DEFAULT_LOCK_TIMEOUT_MS 2000u
#define DEFAULT_FLIGHT_TIMEOUT_MS 60000u
#define DEFAULT_BUILD_TIMEOUT_MS 300000u

static bool set(struct cbn__setting *setting, const char *value, const char *origin)
{
    setting->value = strdup(value);
    setting->origin = origin;
    return setting->value != NULL;
}

/* Option, then environment, then unset. */
static bool choose(struct cbn__setting *setting, const char *option, enum cbn__env variable, bool use_env)
{
    if (option)
        return set(setting, option, "option");
    const char *value = use_env ? cbn__env_get(variable) : NULL;
    if (value)
        return set(setting, value, cbn__env_name(variable));
    setting->origin = "default";
    return true;
}

static bool set_joined(struct cbn__setting *setting, const char *folder, const char *rest, const char *origin)
{
    setting->origin = origin;
    return asprintf(&setting->value, "%s/%s", folder, rest) >= 0 || (setting->value = NULL);
}

/*
 * The default folder. XDG_CACHE_HOME and HOME count only as absolute paths, the root as HOME ("/", "//", "/.") not at
 * all. A default folder on a filesystem that is not known to be local falls back to a per-uid one under /var/tmp, said
 * once.
 */
static bool choose_default_folder(struct cbn_runtime *runtime)
{
    struct cbn__setting *setting = &runtime->settings.cache_dir;
    const char *xdg = cbn__env_get(CBN__ENV_XDG_CACHE_HOME);
    const char *home = cbn__env_get(CBN__ENV_HOME);
    bool done = true;
    if (xdg && xdg[0] == '/')
        done = set_joined(setting, xdg, "cubinet", "XDG_CACHE_HOME");
    else if (home && home[0] == '/' && home[strspn(home, "/.")])
        done = set_joined(setting, home, ".cache/cubinet", "HOME");
    if (!done || !setting->value)
        return done;
    char filesystem[32], fallback[64];
    if (cbn__folder_is_local(setting->value, filesystem, sizeof(filesystem)))
        return true;
    cbn__folder_fallback(fallback, sizeof(fallback));
    cbn__sink_tell(&runtime->sink, CBN_EVENT_NOTICE, 0,
                   "the default cache folder %s is on %s, which cannot carry a live store; using %s", setting->value,
                   filesystem, fallback);
    free(setting->value);
    return set(setting, fallback, CBN__ORIGIN_FALLBACK);
}

static int32_t add_base(struct cbn_runtime *runtime, const char *path, size_t length, struct cbn_error *err)
{
    if (runtime->base_count == CBN__BASES_MAX)
        return cbn__error_own(err, CBN_STATUS_LIMIT, "more than %u base folders; merge some", CBN__BASES_MAX);
    char *copy = strndup(path, length);
    if (!copy)
        return cbn__error_no_memory(err);
    runtime->base_dirs[runtime->base_count++] = copy;
    return CBN_STATUS_OK;
}

static int32_t choose_bases(struct cbn_runtime *runtime, const struct cbn_runtime_options *options, bool use_env,
                            struct cbn_error *err)
{
    int32_t status = CBN_STATUS_OK;
    struct cbn__setting *setting = &runtime->settings.bases;
    const char *list = !options->base_count && use_env ? cbn__env_get(CBN__ENV_BASES) : NULL;
    setting->origin = options->base_count ? "option" : list ? cbn__env_name(CBN__ENV_BASES) : "default";
    for (uint32_t i = 0; i < options->base_count && status == CBN_STATUS_OK; i++)
        status = options->base_dirs && options->base_dirs[i]
                     ? add_base(runtime, options->base_dirs[i], strlen(options->base_dirs[i]), err)
                     : cbn__error_own(err, CBN_STATUS_INVALID, "base_dirs[%u] is NULL; give a folder", i);
    while (list && *list && status == CBN_STATUS_OK) {
        size_t length = strcspn(list, ":");
        if (length)
            status = add_base(runtime, list, length, err);
        list += length + (list[length] == ':');
    }
    if (status != CBN_STATUS_OK || !runtime->base_count)
        return status;
    CBN__BUF_AUTO joined = CBN__BUF_INIT;
    for (uint32_t i = 0; i < runtime->base_count; i++)
        cbn__buf_append_format(&joined, "%s%s", i ? ":" : "", runtime->base_dirs[i]);
    setting->value = strdup(cbn__buf_text(&joined));
    return setting->value ? CBN_STATUS_OK : cbn__error_no_memory(err);
}

static void choose_numbers(struct cbn_runtime *runtime, const struct cbn_runtime_options *options)
{
    runtime->flags = options->flags;
    runtime->miss_policy = options->miss_policy ? options->miss_policy : CBN_MISS_BLOCK;
    runtime->max_bytes = options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES;
    runtime->lock_timeout_ms = options->lock_timeout_ms ? options->lock_timeout_ms : DEFAULT_LOCK_TIMEOUT_MS;
    runtime->flight_timeout_ms = options->flight_timeout_ms ? options->flight_timeout_ms : DEFAULT_FLIGHT_TIMEOUT_MS;
    runtime->build_timeout_ms = options->build_timeout_ms ? options->build_timeout_ms : DEFAULT_BUILD_TIMEOUT_MS;
    runtime->sink = (struct cbn__sink){options->event, options->event_user};
}

/* The tier keeps the URL; what is left here, and shown, is without the password. */
static int32_t open_tier(struct cbn_runtime *runtime, struct cbn_error *err)
{
    struct cbn__setting *setting = &runtime->settings.fleet;
    if (!setting->value || !setting->value[0])
        return CBN_STATUS_OK;
    int32_t status = cbn__tier_open(setting->value, &runtime->sink, &runtime->tier, err);
    explicit_bzero(setting->value, strlen(setting->value));
    free(setting->value);
    setting->value = NULL;
    if (status != CBN_STATUS_OK)
        return status;
    setting->value = strdup(cbn__tier_address(runtime->tier)->shown);
    return setting->value ? CBN_STATUS_OK : cbn__error_no_memory(err);
}

int32_t cbn__settings_resolve(struct cbn_runtime *runtime, const struct cbn_runtime_options *options,
                              struct cbn_error *err)
{
    const uint32_t known_flags = CBN_RUNTIME_MEMORY_ONLY | CBN_RUNTIME_IGNORE_ENV | CBN_RUNTIME_READ_ONLY |
                                 CBN_RUNTIME_CACHE_REQUIRED | CBN_RUNTIME_TRUST_FOLDER;
    if (options->flags & ~known_flags)
        return cbn__error_own(err, CBN_STATUS_INVALID, "flags: 0x%x holds bits that this library does not know",
                              options->flags);
    if (options->miss_policy != CBN_MISS_DEFAULT && options->miss_policy != CBN_MISS_BLOCK &&
        options->miss_policy != CBN_MISS_NEVER)
        return cbn__error_own(err, CBN_STATUS_INVALID, "miss_policy: %u is none of block (1), never (3)",
                              options->miss_policy);
    choose_numbers(runtime, options);
    bool use_env = !(options->flags & CBN_RUNTIME_IGNORE_ENV);
    __typeof__(runtime->settings) *settings = &runtime->settings;
    bool ok = choose(&settings->nvrtc_path, options->nvrtc_path, CBN__ENV_NVRTC, use_env) &&
              choose(&settings->cuda_path, options->cuda_path, CBN__ENV_CUDA, use_env) &&
              choose(&settings->policy, options->policy, CBN__ENV_POLICY, use_env) &&
              choose(&settings->disable, options->disable, CBN__ENV_DISABLE, use_env) &&
              choose(&settings->enable, options->enable, CBN__ENV_ENABLE, use_env) &&
              choose(&settings->fleet, options->fleet, CBN__ENV_FLEET, use_env) &&
              choose(&settings->builder_path, options->builder_path, CBN__ENV_CACHE, false);
    if (ok && options->flags & CBN_RUNTIME_MEMORY_ONLY) {
        settings->cache_dir.origin = "memory only";
    } else if (ok) {
        ok = choose(&settings->cache_dir, options->cache_dir, CBN__ENV_CACHE, use_env);
        if (ok && !settings->cache_dir.value && use_env)
            ok = choose_default_folder(runtime);
    }
    if (!ok)
        return cbn__error_no_memory(err);
    int32_t status = open_tier(runtime, err);
    return status == CBN_STATUS_OK ? choose_bases(runtime, options, use_env, err) : status;
}

void cbn__settings_done(struct cbn_runtime *runtime)
{
    struct cbn__setting *settings = (struct cbn__setting *)&runtime->settings;
    for (size_t i = 0; i < sizeof(runtime->settings) / sizeof(*settings); i++)
        free(settings[i].value);
    for (uint32_t i = 0; i < runtime->base_count; i++)
        free(runtime->base_dirs[i]);
}

void cbn_runtime_settings(const struct cbn_runtime *runtime, cbn_setting_fn setting, void *user)
{
    const struct {
        const char *name;
        const struct cbn__setting *setting;
    } texts[] = {
        {"cache_dir", &runtime->settings.cache_dir},       {"bases", &runtime->settings.bases},
        {"nvrtc_path", &runtime->settings.nvrtc_path},     {"cuda_path", &runtime->settings.cuda_path},
        {"builder_path", &runtime->settings.builder_path}, {"policy", &runtime->settings.policy},
        {"disable", &runtime->settings.disable},           {"enable", &runtime->settings.enable},
        {"fleet", &runtime->settings.fleet},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        setting(user, texts[i].name, texts[i].setting->value ? texts[i].setting->value : "", texts[i].setting->origin);
    const struct {
        const char *name;
        uint64_t value;
        bool is_default;
    } numbers[] = {
        {"max_bytes", runtime->max_bytes, runtime->max_bytes == DEFAULT_MAX_BYTES},
        {"lock_timeout_ms", runtime->lock_timeout_ms, runtime->lock_timeout_ms == DEFAULT_LOCK_TIMEOUT_MS},
        {"flight_timeout_ms", runtime->flight_timeout_ms, runtime->flight_timeout_ms == DEFAULT_FLIGHT_TIMEOUT_MS},
        {"build_timeout_ms", runtime->build_timeout_ms, runtime->build_timeout_ms == DEFAULT_BUILD_TIMEOUT_MS},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)numbers[i].value);
        setting(user, numbers[i].name, text, numbers[i].is_default ? "default" : "option");
    }
    setting(user, "miss_policy", runtime->miss_policy == CBN_MISS_NEVER ? "never" : "block",
            runtime->miss_policy == CBN_MISS_BLOCK ? "default" : "option");
    bool trusts = (runtime->flags & CBN_RUNTIME_TRUST_FOLDER) != 0;
    setting(user, "trust_folder", trusts ? "yes" : "no", trusts ? "option" : "default");
}
