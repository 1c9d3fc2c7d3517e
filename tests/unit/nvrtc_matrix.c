/*
 * nvrtc_matrix LIBRARY...: the templates through every NVRTC given, for every kind of architecture.
 *
 * The default profile is built whole by each NVRTC for each architecture. Of the wider forms a pairwise set is built
 * (every two values of two parameters that can occur together do so in one of its specialisations): whole by the first
 * NVRTC for sm_90a, one in SAMPLE elsewhere, at another offset in each place; --whole leaves none out. What there is to
 * build comes from the library's own enumeration. Then: every architecture builds or is UNSUPPORTED, as the NVRTC
 * knows it or not; and builtins that are missing or of another release are named.
 *
 * Builds run in children, as many at once as there are cores. --sizes FILE: one line a build, comma-separated.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cubinet/runtime.h>

#include "base/arch.h"
#include "driver/nvrtc.h"
#include "jit/build.h"
#include "unit/nvrtc_matrix.h"

#define LIBRARIES_MAX 4
#define SAMPLE 6
#define TIMEOUT_MS 120000
#define HOPPER CBN_ARCH(90, 'a')
#define REGISTERS_OF_SM 65536
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const uint32_t archs[] = {CBN_ARCH(80, 0), CBN_ARCH(89, 0), HOPPER, CBN_ARCH(100, 'a'), CBN_ARCH(120, 'a')};
static const uint32_t other_archs[] = {CBN_ARCH(86, 0), CBN_ARCH(87, 0), CBN_ARCH(103, 'a'), CBN_ARCH(110, 'a'),
                                       CBN_ARCH(121, 'a')};

struct library {
    const char *path;
    struct cbn__nvrtc *nvrtc;
    struct cbn__builder *builder;
    uint32_t version;
};

struct work {
    const struct library *library;
    struct cbn__spec spec;
    bool known; /* by the NVRTC */
    bool passed;
    uint32_t size_bytes, registers, shared_bytes, spill_bytes, compile_ms;
};

static char self[PATH_MAX];
static struct cbn__family *families[CBN__BUILTIN_COUNT];
static struct library libraries[LIBRARIES_MAX];
static size_t library_count;
static struct work *works;
static size_t work_count, work_capacity;
static atomic_size_t next_work;
static unsigned passed, failed;

/* ---- builds ---- */

static void add_work(const struct library *library, uint32_t arch, const struct form *form)
{
    works = grow(works, work_count, &work_capacity, sizeof(*works));
    struct work *work = &works[work_count++];
    *work = (struct work){.library = library, .spec = {.template = &form->candidate->template, .arch = arch}};
    work->known = cbn__nvrtc_knows_arch(library->nvrtc, arch / 256);
    memcpy(work->spec.params, form->params, sizeof(form->params));
}

/* What the build must be; words on what it is not. */
static const char *judge(const struct work *work, int32_t status, const struct cbn__build *build)
{
    const struct cbn__template *template = work->spec.template;
    if (!work->known)
        return status == CBN_STATUS_UNSUPPORTED ? NULL : "not UNSUPPORTED";
    if (status != CBN_STATUS_OK)
        return "not built"; /* a PDL form without griddepcontrol.wait in its PTX among these */
    if (build->compiler_version != work->library->version)
        return "another compiler than the one given";
    if (strstr(cbn__buf_text((struct cbn__buf *)&build->log), "warning"))
        return "warned of";
    if (!memmem(build->cubin.data, build->cubin.size, template->symbol, strlen(template->symbol)))
        return "without its symbol";
    if (build->registers == 0 || build->registers > 255 || build->shared_bytes > 48 * 1024)
        return "of impossible size";
    if (work->spec.arch == HOPPER && build->spill_bytes)
        return "spilling";
    if (strstr(cbn__buf_text((struct cbn__buf *)&build->log), "C75"))
        return "serialised"; /* ptxas says of wgmma that it is, as info */
    for (uint32_t i = 0; i < template->param_count; i++)
        if (strcmp(template->param_names[i], "THREADS") == 0 &&
            work->spec.params[i] * build->registers > REGISTERS_OF_SM)
            return "with more registers than an SM has";
    return NULL;
}

static void run_work(struct work *work)
{
    struct cbn__build build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    int32_t status = cbn__build_run(work->library->builder, &work->spec, &build, &err);
    const char *wrong = judge(work, status, &build);
    work->passed = !wrong;
    work->size_bytes = (uint32_t)build.cubin.size;
    work->registers = build.registers;
    work->shared_bytes = build.shared_bytes;
    work->spill_bytes = build.spill_bytes;
    work->compile_ms = build.compile_ms;
    if (wrong) {
        struct cbn_spec described;
        cbn__spec_describe(&work->spec, &described);
        (void)fprintf(stderr, "%s, by %s: %s: status %s, %u bytes spilled\n%s\n%s\n", described.text,
                      work->library->path, wrong, cbn_status_name(status), build.spill_bytes, err.message,
                      cbn__buf_text(&build.log));
    }
    cbn__build_done(&build);
}

static void *run_works(void *user)
{
    (void)user;
    for (size_t i = atomic_fetch_add(&next_work, 1); i < work_count; i = atomic_fetch_add(&next_work, 1))
        run_work(&works[i]);
    return NULL;
}

static void run_all(void)
{
    pthread_t threads[64];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int count = cores < 1 ? 1 : cores > 64 ? 64 : (int)cores;
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run_works, NULL) != 0)
            die("no thread");
    for (int i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    for (size_t i = 0; i < work_count; i++)
        *(works[i].passed ? &passed : &failed) += 1;
}

static void plan_arch(uint32_t arch, size_t arch_index, bool whole)
{
    struct forms standard = {NULL, 0, 0}, wide = {NULL, 0, 0}, picked = {NULL, 0, 0};
    struct cbn_query gemm = query_of("fp8_gemm", arch), quantize = query_of("fp8_quantize", arch);
    forms_add(families, &gemm, &standard);
    forms_add(families, &quantize, &standard);
    forms_add_profiles(families, arch, &wide);
    forms_pick_pairwise(&wide, &picked);
    char name[16];
    cbn_arch_format(arch, name, sizeof(name));
    printf("%-8s %zu of the default profile, %zu pairwise, of %zu in all\n", name, standard.count, picked.count,
           wide.count);
    for (size_t library = 0; library < library_count; library++) {
        for (size_t i = 0; i < standard.count; i++)
            add_work(&libraries[library], arch, &standard.items[i]);
        bool all = whole || (library == 0 && arch == HOPPER);
        size_t offset = library * COUNT(archs) + arch_index;
        for (size_t i = 0; i < picked.count; i++)
            if (all || i % SAMPLE == offset % SAMPLE)
                add_work(&libraries[library], arch, &picked.items[i]);
    }
    free(standard.items);
    free(wide.items);
    free(picked.items);
}

/* One specialisation each: the last of fp8_quantize's, which is the smallest. */
static void plan_other_archs(void)
{
    for (size_t i = 0; i < COUNT(other_archs); i++) {
        struct forms forms = {NULL, 0, 0};
        struct cbn_query query = query_of("fp8_quantize", other_archs[i]);
        forms_add(families, &query, &forms);
        for (size_t library = 0; library < library_count; library++)
            add_work(&libraries[library], other_archs[i], &forms.items[forms.count - 1]);
        free(forms.items);
    }
}

/* ---- builtins ---- */

static void tell(bool good, const char *what, uint32_t version, const char *words)
{
    *(good ? &passed : &failed) += 1;
    printf("%s builtins %s, NVRTC %u.%u: %s\n", good ? "ok " : "NOT", what, version / 1000, version % 1000, words);
}

static void link_into(const char *folder, const char *target, const char *name)
{
    char path[PATH_MAX * 2], real[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (!realpath(target, real) || symlink(real, path) != 0)
        die("cannot link %s to %s", path, target);
}

static void name_builtins(const struct library *library, char *ret_name, size_t name_bytes)
{
    (void)snprintf(ret_name, name_bytes, "libnvrtc-builtins.so.%u.%u", library->version / 1000,
                   library->version % 1000);
}

static void find_builtins(const struct library *library, char *ret_path, size_t path_bytes)
{
    char name[64];
    name_builtins(library, name, sizeof(name));
    const char *slash = strrchr(library->path, '/');
    (void)snprintf(ret_path, path_bytes, "%.*s/%s", slash ? (int)(slash - library->path) : 1,
                   slash ? library->path : ".", name);
}

/* The loader may have them in another place (ld.so.conf): then a folder without them is no fault. Asked in a process of
 * its own, since this one has opened every library given. */
static bool loader_has(const char *name)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)execl(self, self, "--loads", name, (char *)NULL);
        _exit(EXIT_FAILURE);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Builds with a copy of the library in a folder with other's builtins (NULL: none) under that name. */
static int32_t build_beside(const struct library *library, const struct library *other, const char *name,
                            struct cbn_error *ret_err)
{
    char folder[] = "/tmp/cubinet-matrix-XXXXXX", path[PATH_MAX], command[PATH_MAX];
    if (!mkdtemp(folder))
        die("no folder");
    link_into(folder, library->path, "libnvrtc.so");
    if (other) {
        find_builtins(other, path, sizeof(path));
        link_into(folder, path, name);
    }
    (void)snprintf(path, sizeof(path), "%s/libnvrtc.so", folder);
    const struct cbn__builder_options options = {.nvrtc_path = path, .builder_path = self, .timeout_ms = TIMEOUT_MS};
    struct forms forms = {NULL, 0, 0};
    struct cbn_query query = query_of("fp8_quantize", HOPPER);
    struct cbn__builder *builder = NULL;
    struct cbn__build build = CBN__BUILD_INIT;
    forms_add(families, &query, &forms);
    struct cbn__spec spec = {.template = &forms.items[0].candidate->template, .arch = HOPPER};
    memcpy(spec.params, forms.items[0].params, sizeof(spec.params));
    if (cbn__builder_create(&options, &builder, ret_err) != CBN_STATUS_OK)
        die("%s", ret_err->message);
    int32_t status = cbn__build_run(builder, &spec, &build, ret_err);
    cbn__builder_destroy(builder);
    cbn__build_done(&build);
    free(forms.items);
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        die("cannot remove %s", folder);
    return status;
}

static void try_builtins(const struct library *library, const struct library *other)
{
    char name[64], other_name[64];
    struct cbn_error err = {0};
    name_builtins(library, name, sizeof(name));
    name_builtins(other, other_name, sizeof(other_name));
    bool elsewhere = loader_has(name);
    int32_t wanted = elsewhere ? CBN_STATUS_OK : CBN_STATUS_NO_COMPILER;
    int32_t status = build_beside(library, NULL, NULL, &err);
    tell(status == wanted && (elsewhere || strstr(err.message, name)), "missing", library->version,
         elsewhere ? "the loader has them elsewhere" : err.message);
    status = build_beside(library, other, other_name, &err);
    tell(status == wanted && (elsewhere || strstr(err.message, name)), "of another release only", library->version,
         elsewhere ? "the loader has them elsewhere" : err.message);
    status = build_beside(library, other, name, &err);
    tell(status == CBN_STATUS_NO_COMPILER && strstr(err.message, name) && strstr(err.message, other_name),
         "of another release by this name", library->version, err.message);
}

/* ---- results ---- */

static void write_sizes(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        die("cannot write %s", path);
    (void)fprintf(file, "nvrtc,specialisation,bytes,registers,shared_bytes,spill_bytes,compile_ms\n");
    for (size_t i = 0; i < work_count; i++) {
        struct cbn_spec described;
        cbn__spec_describe(&works[i].spec, &described);
        (void)fprintf(file, "%u.%u,%s,%u,%u,%u,%u,%u\n", works[i].library->version / 1000,
                      works[i].library->version % 1000, described.text, works[i].size_bytes, works[i].registers,
                      works[i].shared_bytes, works[i].spill_bytes, works[i].compile_ms);
    }
    if (fclose(file) != 0)
        die("cannot write %s", path);
}

static void print_row(const struct library *library, uint32_t arch)
{
    unsigned builds = 0, wrong = 0, unsupported = 0, most_registers = 0, most_bytes = 0, spilling = 0;
    uint64_t bytes = 0, ms = 0;
    for (size_t i = 0; i < work_count; i++) {
        const struct work *work = &works[i];
        if (work->library != library || work->spec.arch != arch)
            continue;
        builds += work->known;
        unsupported += !work->known;
        wrong += !work->passed;
        spilling += work->spill_bytes > 0;
        bytes += work->size_bytes;
        ms += work->compile_ms;
        most_registers = work->registers > most_registers ? work->registers : most_registers;
        most_bytes = work->size_bytes > most_bytes ? work->size_bytes : most_bytes;
    }
    char name[16];
    cbn_arch_format(arch, name, sizeof(name));
    printf("%2u.%u   %-8s %6u %6u %12u %9u %9u %10u %11llu %10llu\n", library->version / 1000, library->version % 1000,
           name, builds, wrong, unsupported, spilling, most_registers, most_bytes, (unsigned long long)bytes,
           (unsigned long long)ms);
}

static void print_table(void)
{
    printf("nvrtc  arch     builds failed unsupported  spilling registers max_bytes   all_bytes compile_ms\n");
    for (size_t library = 0; library < library_count; library++) {
        for (size_t i = 0; i < COUNT(archs); i++)
            print_row(&libraries[library], archs[i]);
        for (size_t i = 0; i < COUNT(other_archs); i++)
            print_row(&libraries[library], other_archs[i]);
    }
}

static void open_library(const char *path)
{
    struct cbn_error err = {0};
    if (library_count == LIBRARIES_MAX)
        die("more than %d libraries", LIBRARIES_MAX);
    struct library *library = &libraries[library_count++];
    library->path = path;
    const struct cbn__builder_options options = {.nvrtc_path = path, .builder_path = self, .timeout_ms = TIMEOUT_MS};
    if (cbn__nvrtc_open(path, NULL, &library->nvrtc, &err) != CBN_STATUS_OK ||
        cbn__builder_create(&options, &library->builder, &err) != CBN_STATUS_OK)
        die("%s", err.message);
    library->version = cbn__nvrtc_version(library->nvrtc);
    for (size_t i = 0; i + 1 < library_count; i++)
        if (libraries[i].version == library->version)
            die("%s and %s are of one version", libraries[i].path, path);
    printf("NVRTC %u.%u  %s\n", library->version / 1000, library->version % 1000, path);
}

static void close_all(void)
{
    for (size_t i = 0; i < library_count; i++) {
        cbn__builder_destroy(libraries[i].builder);
        cbn__nvrtc_close(libraries[i].nvrtc);
    }
    for (int i = 0; i < CBN__BUILTIN_COUNT; i++)
        cbn__family_destroy(families[i]);
    free(works);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--cubinet-builder") == 0)
        return cbn_builder_main(argc, argv);
    if (argc > 2 && strcmp(argv[1], "--loads") == 0)
        return dlopen(argv[2], RTLD_NOW) ? EXIT_SUCCESS : EXIT_FAILURE;
    const char *sizes = NULL;
    bool whole = false;
    struct cbn_error err = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
        cbn__builtin_families(families, &err) != CBN_STATUS_OK)
        die("%s", err.message);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--whole") == 0)
            whole = true;
        else if (strcmp(argv[i], "--sizes") == 0 && i + 1 < argc)
            sizes = argv[++i];
        else
            open_library(argv[i]);
    }
    if (library_count == 0)
        die("usage: nvrtc_matrix [--whole] [--sizes FILE] LIBNVRTC...");
    for (size_t i = 0; i < COUNT(archs); i++)
        plan_arch(archs[i], i, whole);
    plan_other_archs();
    run_all();
    print_table();
    if (sizes)
        write_sizes(sizes);
    for (size_t i = 0; i < library_count && library_count > 1; i++)
        try_builtins(&libraries[i], &libraries[(i + 1) % library_count]);
    close_all();
    printf("%u passed, %u failed\n", passed, failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
