/*
 * What the tests of cases from the field share: the fake driver with the NVRTC stand-in, a folder a test, the entries
 * of its cabinet. restart(NULL) takes the real NVRTC, whose cubins say what parameters a kernel takes.
 */
#ifndef CBN_TESTS_CASES_FIXTURE_H
#define CBN_TESTS_CASES_FIXTURE_H

#include <sys/stat.h>

#include "ops_fixture.h"

#define STUB CBN_TEST_BINARY_DIR "/tests/fake/libnvrtc_stub.so"
#define NOWHERE "/nonexistent/libnvrtc.so"
#define HOPPER CBN_ARCH(90, 'a')

static char folder[PATH_MAX];
static char count_file[PATH_MAX + 16];

static inline long compiles_counted(void)
{
    struct stat file;
    return stat(count_file, &file) == 0 ? (long)file.st_size : 0;
}

/* The pinned policy: the cases below hold at its thresholds. */
static inline struct cbn_runtime_options case_options(const char *nvrtc_path)
{
    struct cbn_runtime_options options = fake_options(folder);
    options.policy = "reference";
    options.nvrtc_path = nvrtc_path;
    return options;
}

/* A runtime of a new process, as far as the library can tell: the same folder, nothing in memory. */
static inline void restart(const char *nvrtc_path)
{
    struct cbn_runtime_options options = case_options(nvrtc_path);
    cbn_runtime_destroy(runtime);
    create_runtime(&options);
}

static inline void set_up_case(void)
{
    make_folder(folder);
    snprintf(count_file, sizeof(count_file), "%.4000s/compiles", folder);
    ck_assert_int_eq(setenv("FAKE_NVRTC_COUNT", count_file, 1), 0);
    open_fake();
    restart(STUB);
}

static inline void tear_down_case(void)
{
    close_runtime();
    ck_assert_int_eq(remove_folder(folder), 0);
}

/* A device of that capability is the only one, and its new context the current one. */
static inline void use_device(int capability)
{
    fake.set_device(0, capability, 100);
    context = fake.context_create(0);
    fake.context_set(context);
    stream = fake.stream_create();
}

static inline void call(const struct cbn_fp8_gemm_args *args)
{
    ck_assert_msg(cbn_fp8_gemm(runtime, args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
}

static inline int32_t refuse(const struct cbn_fp8_gemm_args *args)
{
    memset(&error, 0, sizeof(error));
    return cbn_fp8_gemm(runtime, args, stream, &error);
}

/* The entry of this kernel with the bytes of the last launch: equal parameters of two kernels give equal bytes. */
struct launched {
    uint64_t image_sum;
    const char *kernel;
    unsigned found;
    struct cbn_spec spec;
};

static inline int match_launched(void *user, const struct cbn_entry_info *entry)
{
    struct launched *launched = user;
    if (fake.image_sum(entry->cubin) == launched->image_sum && strcmp(entry->spec.kernel, launched->kernel) == 0) {
        launched->spec = entry->spec;
        launched->found++;
    }
    return 0;
}

static inline struct cbn_spec launched_spec(const char *kernel)
{
    struct launched launched = {.image_sum = last_launch().image_sum, .kernel = kernel};
    ck_assert_int_eq(cbn_cabinet_list(runtime, match_launched, &launched, NULL, &error), CBN_STATUS_OK);
    ck_assert_msg(launched.found == 1, "the last launch was of %u entries of %s", launched.found, kernel);
    return launched.spec;
}

static inline int64_t param_of(const struct cbn_spec *spec, const char *name)
{
    for (uint32_t i = 0; i < spec->param_count; i++)
        if (strcmp(spec->params[i].name, name) == 0)
            return spec->params[i].value;
    ck_abort_msg("%s has no parameter %s", spec->text, name);
    return 0;
}

struct entries {
    unsigned count;
    char keys[64][CBN_KEY_TEXT_BYTES];
    char archs[64][16];
};

static inline int keep_entry(void *user, const struct cbn_entry_info *entry)
{
    struct entries *entries = user;
    ck_assert_uint_lt(entries->count, 64);
    snprintf(entries->keys[entries->count], CBN_KEY_TEXT_BYTES, "%s", entry->spec.key);
    snprintf(entries->archs[entries->count++], 16, "%s", entry->spec.arch);
    return 0;
}

/* Every entry verifies. */
static inline struct entries list_entries(void)
{
    struct entries entries = {.count = 0};
    uint64_t damaged = 1;
    ck_assert_int_eq(cbn_cabinet_list(runtime, keep_entry, &entries, &damaged, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(damaged, 0);
    return entries;
}

static inline struct cbn_query query_of(const char *op, uint32_t arch, int64_t m, int64_t n, int64_t k)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = op;
    query.arch = arch;
    query.m = m;
    query.n = n;
    query.k = k;
    return query;
}

#endif
