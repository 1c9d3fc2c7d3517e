/*
 * NVRTC: search, opening, one compile. Owns the table of NVRTC functions; must not know specialisations or keys.
 * No lock of ours: NVRTC serialises compiles itself, and the handle is immutable but for one flag.
 */
#include "driver/nvrtc.h"

#include <dlfcn.h>
#include <limits.h>
#include <nvrtc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "driver/library.h"

/* Never unmapped: NVRTC 13.0 leaks 71 KB at every unloading (its own allocator's pool, found by LeakSanitizer). */
#define OPEN_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)
#define LIBRARY_PATTERN "libnvrtc.so.1[2-9]*"
#define ARCHS_MAX 64
#define OPTIONS_MAX 64

#define NVRTC_MAP(X)                                                                                                   \
    X(nvrtcVersion)                                                                                                    \
    X(nvrtcGetNumSupportedArchs)                                                                                       \
    X(nvrtcGetSupportedArchs)                                                                                          \
    X(nvrtcGetErrorString)                                                                                             \
    X(nvrtcCreateProgram)                                                                                              \
    X(nvrtcDestroyProgram)                                                                                             \
    X(nvrtcCompileProgram)                                                                                             \
    X(nvrtcGetProgramLogSize)                                                                                          \
    X(nvrtcGetProgramLog)                                                                                              \
    X(nvrtcGetPTXSize)                                                                                                 \
    X(nvrtcGetPTX)                                                                                                     \
    X(nvrtcGetCUBINSize)                                                                                               \
    X(nvrtcGetCUBIN)

struct table {
#define CBN__X(function) __typeof__(&function) function;
    NVRTC_MAP(CBN__X)
#undef CBN__X
};

struct cbn__nvrtc {
    void *handle;
    void *builtins; /* NULL: left to NVRTC and the loader */
    char *path;
    uint32_t version;
    struct table table;
    int arch_count;
    int archs[ARCHS_MAX];
    /* Versions before 12.9 have no compile cache and refuse --no-cache; found out by the first compile. */
    _Atomic bool refuses_no_cache;
};

/* ---- search ---- */

static bool fill_table(void *handle, struct table *ret_table, struct cbn__buf *ret_reason)
{
#define CBN__X(function)                                                                                               \
    ret_table->function = (__typeof__(&function))dlsym(handle, #function);                                             \
    if (!ret_table->function) {                                                                                        \
        if (ret_reason->size == 0)                                                                                     \
            cbn__buf_append_format(ret_reason, "%s has no %s", cbn__library_path(handle), #function);                  \
        return false;                                                                                                  \
    }
    NVRTC_MAP(CBN__X)
#undef CBN__X
    return true;
}

static bool is_nvrtc(void *handle, struct cbn__buf *ret_reason)
{
    struct table table;
    return fill_table(handle, &table, ret_reason);
}

static bool search_folder(struct cbn__search *search, const char *folder, const char *below)
{
    if (!folder || folder[0] != '/')
        return false;
    CBN__BUF_AUTO place = CBN__BUF_INIT;
    cbn__buf_append_format(&place, "%s%s", folder, below);
    cbn__search_note(search, cbn__buf_text(&place));
    return cbn__search_try_glob(search, cbn__buf_text(&place), LIBRARY_PATTERN, OPEN_FLAGS);
}

static bool search_loader(struct cbn__search *search)
{
    cbn__search_note(search, "the loader's path (libnvrtc.so.13, .12)");
    return cbn__search_try(search, "libnvrtc.so.13", OPEN_FLAGS) ||
           cbn__search_try(search, "libnvrtc.so.12", OPEN_FLAGS);
}

static bool search_toolkits(struct cbn__search *search)
{
    return search_folder(search, cbn__env_get(CBN__ENV_CUDA_HOME), "/lib64") ||
           search_folder(search, cbn__env_get(CBN__ENV_CUDA_PATH), "/lib64") ||
           search_folder(search, "/usr/local", "/cuda*/lib64") || search_folder(search, "/opt/cuda", "/lib64");
}

/* Wheels of CUDA 12 stand in nvidia/cuda_nvrtc, those of CUDA 13 in nvidia/cu13. One place in the error's list. */
static bool search_prefix(struct cbn__search *search, const char *prefix)
{
    static const char packages[] = "/lib/python3*/*-packages/nvidia/";
    if (!prefix || prefix[0] != '/')
        return false;
    CBN__BUF_AUTO place = CBN__BUF_INIT;
    CBN__BUF_AUTO folder = CBN__BUF_INIT;
    cbn__buf_append_format(&place, "%s%s{cu13,cuda_nvrtc}/lib", prefix, packages);
    cbn__search_note(search, cbn__buf_text(&place));
    cbn__buf_append_format(&folder, "%s%scu13/lib", prefix, packages);
    if (cbn__search_try_glob(search, cbn__buf_text(&folder), LIBRARY_PATTERN, OPEN_FLAGS))
        return true;
    folder.size = 0;
    cbn__buf_append_format(&folder, "%s%scuda_nvrtc/lib", prefix, packages);
    return cbn__search_try_glob(search, cbn__buf_text(&folder), LIBRARY_PATTERN, OPEN_FLAGS);
}

static void free_text(char **text)
{
    free(*text);
}

/* "/opt/env/bin/python3" to "/opt/env". */
static void cut_names(char *path, int count)
{
    for (int i = 0; i < count; i++) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = 0;
    }
}

/* Of bin/python3 in this folder: the folder it stands in (a virtual environment), then what the link leads to. */
static bool search_python(struct cbn__search *search, const char *folder, size_t length)
{
    if (length == 0 || folder[0] != '/' || length > PATH_MAX - 16)
        return false;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%.*s/python3", (int)length, folder);
    __attribute__((cleanup(free_text))) char *real = realpath(path, NULL);
    if (!real)
        return false;
    cut_names(path, 2);
    cut_names(real, 2);
    return search_prefix(search, path) || (strcmp(path, real) != 0 && search_prefix(search, real));
}

static bool search_pythons(struct cbn__search *search)
{
    if (search_prefix(search, cbn__env_get(CBN__ENV_VIRTUAL_ENV)) ||
        search_prefix(search, cbn__env_get(CBN__ENV_CONDA_PREFIX)))
        return true;
    for (const char *at = cbn__env_get(CBN__ENV_PATH); at;) {
        size_t length = strcspn(at, ":");
        if (search_python(search, at, length))
            return true;
        at = at[length] ? at + length + 1 : NULL;
    }
    return false;
}

static int32_t fail_search(struct cbn__search *search, struct cbn_error *err)
{
    const char *reason = cbn__buf_text(&search->reason);
    const char *places = cbn__buf_text(&search->places);
    return cbn__error_own(err, CBN_STATUS_NO_COMPILER,
                          "no NVRTC: install a CUDA toolkit or the Python package nvidia-cuda-nvrtc, or set %s to a "
                          "libnvrtc.so file%s%.100s; searched: %s",
                          cbn__env_name(CBN__ENV_NVRTC), *reason ? "; " : "", reason, places);
}

static int32_t fail_named(struct cbn__search *search, const char *file, const char *origin, struct cbn_error *err)
{
    const char *reason = cbn__buf_text(&search->reason);
    return cbn__error_own(err, CBN_STATUS_NO_COMPILER,
                          "no NVRTC at %.160s (%s): %.200s; give the path of a libnvrtc.so file, or none to search",
                          file, origin, *reason ? reason : "no such library");
}

static int32_t find_library(const char *path, const char *env_path, void **ret_handle, struct cbn_error *err)
{
    __attribute__((cleanup(cbn__search_done))) struct cbn__search search = {.places = CBN__BUF_INIT,
                                                                            .accept = is_nvrtc};
    const char *named = path ? path : env_path;
    bool found = named ? cbn__search_try(&search, named, OPEN_FLAGS)
                       : search_loader(&search) || search_toolkits(&search) || search_pythons(&search);
    *ret_handle = search.handle;
    if (found)
        return CBN_STATUS_OK;
    if (named)
        return fail_named(&search, named, path ? "option" : cbn__env_name(CBN__ENV_NVRTC), err);
    return fail_search(&search, err);
}

/* ---- opening ---- */

static int32_t fail_nvrtc(const struct cbn__nvrtc *nvrtc, enum cbn_status status, nvrtcResult result,
                          const char *function, struct cbn_error *err)
{
    return cbn__error_set(err, status, CBN_DOMAIN_NVRTC, result, "%s: %s (%s)", function,
                          nvrtc->table.nvrtcGetErrorString(result), nvrtc->path);
}

static int32_t read_version(struct cbn__nvrtc *nvrtc, struct cbn_error *err)
{
    int major = 0, minor = 0;
    nvrtcResult result = nvrtc->table.nvrtcVersion(&major, &minor);
    if (result != NVRTC_SUCCESS)
        return fail_nvrtc(nvrtc, CBN_STATUS_NO_COMPILER, result, "nvrtcVersion", err);
    if (major < 12)
        return cbn__error_own(err, CBN_STATUS_NO_COMPILER,
                              "%.200s is NVRTC %d.%d, and 12.0 is the least; set %s to a newer "
                              "libnvrtc.so",
                              nvrtc->path, major, minor, cbn__env_name(CBN__ENV_NVRTC));
    nvrtc->version = (uint32_t)major * 1000 + (uint32_t)minor;
    return CBN_STATUS_OK;
}

static int32_t read_archs(struct cbn__nvrtc *nvrtc, struct cbn_error *err)
{
    int count = 0;
    nvrtcResult result = nvrtc->table.nvrtcGetNumSupportedArchs(&count);
    if (result == NVRTC_SUCCESS && (count < 0 || count > ARCHS_MAX))
        result = NVRTC_ERROR_INTERNAL_ERROR;
    if (result == NVRTC_SUCCESS)
        result = nvrtc->table.nvrtcGetSupportedArchs(nvrtc->archs);
    if (result != NVRTC_SUCCESS)
        return fail_nvrtc(nvrtc, CBN_STATUS_NO_COMPILER, result, "nvrtcGetSupportedArchs", err);
    nvrtc->arch_count = count;
    return CBN_STATUS_OK;
}

static void write_builtins_path(const struct cbn__nvrtc *nvrtc, struct cbn__buf *ret_path)
{
    const char *slash = strrchr(nvrtc->path, '/');
    cbn__buf_append(ret_path, nvrtc->path, slash ? (size_t)(slash - nvrtc->path) + 1 : 0);
    cbn__buf_append_format(ret_path, "libnvrtc-builtins.so.%u.%u", nvrtc->version / 1000, nvrtc->version % 1000);
}

/*
 * NVRTC opens its builtins by bare name at the first compile. NVRTC 13.0 of a wheel carries no run path, so that the
 * loader would find none, or another toolkit's of the same name: the ones beside the library are loaded first. NVRTC
 * 12.9 and 13.0 take those of another release without a word: a file under a name that is not its own is refused here.
 */
static int32_t load_builtins(struct cbn__nvrtc *nvrtc, struct cbn_error *err)
{
    CBN__BUF_AUTO path = CBN__BUF_INIT;
    write_builtins_path(nvrtc, &path);
    const char *slash = strrchr(cbn__buf_text(&path), '/');
    if (slash)
        nvrtc->builtins = dlopen(cbn__buf_text(&path), OPEN_FLAGS);
    const char *own_name = slash && nvrtc->builtins ? cbn__library_soname(nvrtc->builtins) : NULL;
    if (!own_name || strcmp(own_name, slash + 1) == 0)
        return CBN_STATUS_OK;
    return cbn__error_own(err, CBN_STATUS_NO_COMPILER,
                          "%.160s is %.64s, of another release than %.160s: install both from one package, or set %s",
                          cbn__buf_text(&path), own_name, nvrtc->path, cbn__env_name(CBN__ENV_NVRTC));
}

static void free_nvrtc(struct cbn__nvrtc **nvrtc)
{
    cbn__nvrtc_close(*nvrtc);
}

int32_t cbn__nvrtc_open(const char *path, const char *env_path, struct cbn__nvrtc **ret_nvrtc, struct cbn_error *err)
{
    __attribute__((cleanup(free_nvrtc))) struct cbn__nvrtc *nvrtc = calloc(1, sizeof(*nvrtc));
    if (!nvrtc)
        return cbn__error_no_memory(err);
    int32_t status = find_library(path, env_path, &nvrtc->handle, err);
    if (status != CBN_STATUS_OK)
        return status;
    CBN__BUF_AUTO reason = CBN__BUF_INIT;
    const char *loaded = cbn__library_path(nvrtc->handle);
    nvrtc->path = strdup(loaded ? loaded : "libnvrtc.so");
    if (!nvrtc->path)
        return cbn__error_no_memory(err);
    if (!fill_table(nvrtc->handle, &nvrtc->table, &reason))
        return cbn__error_own(err, CBN_STATUS_NO_COMPILER, "%.400s", cbn__buf_text(&reason));
    if ((status = read_version(nvrtc, err)) != CBN_STATUS_OK || (status = read_archs(nvrtc, err)) != CBN_STATUS_OK ||
        (status = load_builtins(nvrtc, err)) != CBN_STATUS_OK)
        return status;
    *ret_nvrtc = nvrtc;
    nvrtc = NULL;
    return CBN_STATUS_OK;
}

void cbn__nvrtc_close(struct cbn__nvrtc *nvrtc)
{
    if (!nvrtc)
        return;
    if (nvrtc->handle)
        (void)dlclose(nvrtc->handle);
    if (nvrtc->builtins)
        (void)dlclose(nvrtc->builtins);
    free(nvrtc->path);
    free(nvrtc);
}

const char *cbn__nvrtc_path(const struct cbn__nvrtc *nvrtc)
{
    return nvrtc->path;
}

uint32_t cbn__nvrtc_version(const struct cbn__nvrtc *nvrtc)
{
    return nvrtc->version;
}

bool cbn__nvrtc_knows_arch(const struct cbn__nvrtc *nvrtc, uint32_t capability)
{
    for (int i = 0; i < nvrtc->arch_count; i++)
        if (nvrtc->archs[i] == (int)capability)
            return true;
    return false;
}

/* ---- one compile ---- */

struct program {
    const struct table *table;
    nvrtcProgram handle;
};

static void destroy_program(struct program *program)
{
    if (program->handle)
        (void)program->table->nvrtcDestroyProgram(&program->handle);
}

typedef nvrtcResult (*size_fn)(nvrtcProgram, size_t *);
typedef nvrtcResult (*bytes_fn)(nvrtcProgram, char *);

static nvrtcResult read_bytes(nvrtcProgram program, size_fn get_size, bytes_fn get_bytes, struct cbn__buf *ret_bytes)
{
    size_t size = 0;
    nvrtcResult result = get_size(program, &size);
    if (result != NVRTC_SUCCESS || size == 0)
        return result;
    if (!cbn__buf_reserve(ret_bytes, size))
        return NVRTC_ERROR_OUT_OF_MEMORY;
    result = get_bytes(program, (char *)ret_bytes->data + ret_bytes->size);
    if (result == NVRTC_SUCCESS)
        ret_bytes->size += size;
    return result;
}

/* NVRTC's texts count their NUL, and logs may end in two. */
static nvrtcResult read_text(nvrtcProgram program, size_fn get_size, bytes_fn get_bytes, struct cbn__buf *ret_text)
{
    size_t before = ret_text->size;
    nvrtcResult result = read_bytes(program, get_size, get_bytes, ret_text);
    while (ret_text->size > before && ret_text->data[ret_text->size - 1] == 0)
        ret_text->size--;
    return result;
}

/* The first line of a log that says "error", else the first one. */
static void find_complaint(const char *log, char *ret_line, size_t line_bytes)
{
    const char *at = strstr(log, "error");
    while (at && at > log && at[-1] != '\n')
        at--;
    const char *line = at ? at : log;
    (void)snprintf(ret_line, line_bytes, "%.*s", (int)strcspn(line, "\n"), line);
}

static int32_t fail_builtins(const struct cbn__nvrtc *nvrtc, nvrtcResult result, const char *complaint,
                             struct cbn_error *err)
{
    CBN__BUF_AUTO path = CBN__BUF_INIT;
    write_builtins_path(nvrtc, &path);
    return cbn__error_set(
        err, CBN_STATUS_NO_COMPILER, CBN_DOMAIN_NVRTC, result,
        "NVRTC %u.%u (%.100s) cannot use its builtins: %.120s; it needs %.120s of the same release: install "
        "both from one package, or set %s",
        nvrtc->version / 1000, nvrtc->version % 1000, nvrtc->path, complaint, cbn__buf_text(&path),
        cbn__env_name(CBN__ENV_NVRTC));
}

static int32_t fail_compile(const struct cbn__nvrtc *nvrtc, nvrtcResult result, struct cbn__buf *log,
                            struct cbn_error *err)
{
    char complaint[256];
    find_complaint(cbn__buf_text(log), complaint, sizeof(complaint));
    if (result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE || strstr(complaint, "libnvrtc-builtins"))
        return fail_builtins(nvrtc, result, complaint, err);
    return cbn__error_set(err, result == NVRTC_ERROR_OUT_OF_MEMORY ? CBN_STATUS_NO_MEMORY : CBN_STATUS_COMPILE_FAILED,
                          CBN_DOMAIN_NVRTC, result, "NVRTC %u.%u: %s: %s", nvrtc->version / 1000, nvrtc->version % 1000,
                          nvrtc->table.nvrtcGetErrorString(result), complaint);
}

static nvrtcResult compile_once(const struct cbn__nvrtc *nvrtc, const struct cbn__nvrtc_source *source, bool no_cache,
                                struct program *program, struct cbn__buf *ret_log)
{
    const char *options[OPTIONS_MAX];
    int count = source->option_count;
    if (count < 0 || count >= OPTIONS_MAX)
        return NVRTC_ERROR_INVALID_INPUT;
    for (int i = 0; i < count; i++)
        options[i] = source->options[i];
    if (no_cache)
        options[count++] = "--no-cache";
    destroy_program(program);
    program->handle = NULL;
    ret_log->size = 0;
    nvrtcResult result = nvrtc->table.nvrtcCreateProgram(
        &program->handle, source->text, source->name, source->header_count, source->header_texts, source->header_names);
    if (result != NVRTC_SUCCESS)
        return result;
    result = nvrtc->table.nvrtcCompileProgram(program->handle, count, options);
    (void)read_text(program->handle, nvrtc->table.nvrtcGetProgramLogSize, nvrtc->table.nvrtcGetProgramLog, ret_log);
    return result;
}

int32_t cbn__nvrtc_compile(struct cbn__nvrtc *nvrtc, const struct cbn__nvrtc_source *source, struct cbn__buf *ret_cubin,
                           struct cbn__buf *ret_ptx, struct cbn__buf *ret_log, struct cbn_error *err)
{
    __attribute__((cleanup(destroy_program))) struct program program = {&nvrtc->table, NULL};
    ret_cubin->size = 0;
    ret_ptx->size = 0;
    bool no_cache = !atomic_load(&nvrtc->refuses_no_cache);
    nvrtcResult result = compile_once(nvrtc, source, no_cache, &program, ret_log);
    if (no_cache && result == NVRTC_ERROR_INVALID_OPTION && strstr(cbn__buf_text(ret_log), "--no-cache")) {
        atomic_store(&nvrtc->refuses_no_cache, true);
        result = compile_once(nvrtc, source, false, &program, ret_log);
    }
    if (result != NVRTC_SUCCESS)
        return fail_compile(nvrtc, result, ret_log, err);
    (void)read_text(program.handle, nvrtc->table.nvrtcGetPTXSize, nvrtc->table.nvrtcGetPTX, ret_ptx);
    result = read_bytes(program.handle, nvrtc->table.nvrtcGetCUBINSize, nvrtc->table.nvrtcGetCUBIN, ret_cubin);
    if (result != NVRTC_SUCCESS)
        return fail_nvrtc(nvrtc, CBN_STATUS_COMPILE_FAILED, result, "nvrtcGetCUBIN", err);
    if (ret_cubin->failed || ret_ptx->failed || ret_log->failed)
        return cbn__error_no_memory(err);
    return CBN_STATUS_OK;
}

bool cbn__nvrtc_refused(const struct cbn_error *err)
{
    return err->status == CBN_STATUS_COMPILE_FAILED && err->domain == CBN_DOMAIN_NVRTC &&
           err->native_code == NVRTC_ERROR_COMPILATION;
}
