/*
 * Builds: in process and in children, with real NVRTC and with the stand-in; every way in which a child can go wrong.
 *
 * The build program is this binary itself. TEST_CHILD tells it how to misbehave.
 */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cubinet/runtime.h>

#include "jit/build.h"
#include "jit/compile.h"
#include "jit/embedded.h"
#include "unit/jit_sample.h"

#define STUB CBN_TEST_BINARY_DIR "/tests/fake/libnvrtc_stub.so"
#define TIMEOUT_MS 60000

static char self[4096];

static struct cbn__builder *make_builder(const char *nvrtc, const char *program, uint32_t timeout_ms)
{
    struct cbn__builder *builder = NULL;
    const char *env = getenv("CUBINET_NVRTC");
    const struct cbn__builder_options options = {
        .nvrtc_path = nvrtc, .nvrtc_env = env && *env ? env : NULL, .builder_path = program, .timeout_ms = timeout_ms};
    ck_assert_int_eq(cbn__builder_create(&options, &builder, NULL), CBN_STATUS_OK);
    return builder;
}

/* Others who build the same key, as the builder sees them. */
struct others {
    int asked, told;
    uint32_t version; /* of the last question or word */
    bool know;        /* the answer */
};

static bool ask_others(void *user, const struct cbn__hash *key, uint32_t compiler_version, struct cbn_error *ret_err)
{
    struct others *others = user;
    (void)key;
    others->asked++;
    others->version = compiler_version;
    if (others->know)
        *ret_err = (struct cbn_error){.status = CBN_STATUS_COMPILE_FAILED, .message = "theirs"};
    return others->know;
}

static void tell_others(void *user, const struct cbn__hash *key, uint32_t compiler_version, const struct cbn_error *err)
{
    struct others *others = user;
    (void)key;
    ck_assert_uint_eq(err->domain, CBN_DOMAIN_NVRTC);
    others->told++;
    others->version = compiler_version;
}

static void set(const char *name, const char *value)
{
    ck_assert_int_eq(setenv(name, value, 1), 0);
}

/* One build by a builder of its own. */
static int32_t run(const char *nvrtc, const char *program, const struct cbn__spec *spec, struct cbn__build *build,
                   struct cbn_error *err)
{
    struct cbn__builder *builder = make_builder(nvrtc, program, TIMEOUT_MS);
    int32_t status = cbn__build_run(builder, spec, build, err);
    cbn__builder_destroy(builder);
    ck_assert_int_eq(status == CBN_STATUS_OK, build->cubin.size > 0);
    return status;
}

#define BUILD_AUTO __attribute__((cleanup(cbn__build_done))) struct cbn__build

/* ---- in process, real NVRTC ---- */

static const uint32_t archs[] = {CBN_ARCH(80, 0), CBN_ARCH(89, 0), CBN_ARCH(90, 'a'), CBN_ARCH(100, 'a'),
                                 CBN_ARCH(120, 'a')};

START_TEST(every_arch_compiles_to_an_elf_of_its_own)
{
    struct sample sample;
    sample_init(&sample);
    sample.spec.arch = archs[_i];
    sample.spec.params[2] = archs[_i] >= CBN_ARCH(90, 0);
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_msg(run(NULL, NULL, &sample.spec, &build, &err) == CBN_STATUS_OK, "%s", err.message);
    ck_assert_mem_eq(build.cubin.data,
                     "\x7f"
                     "ELF",
                     4);
    ck_assert_uint_eq(build.cubin.data[18], 190); /* e_machine EM_CUDA */
    /* e_flags: in the lowest byte (CUDA 12) or in the next one (CUDA 13). */
    ck_assert(build.cubin.data[48] == archs[_i] / 256 || build.cubin.data[49] == archs[_i] / 256);
    ck_assert_uint_ge(build.compiler_version, 12000);
    ck_assert_uint_gt(build.registers, 0);
    ck_assert_uint_lt(build.registers, 256);
    ck_assert_uint_ge(build.shared_bytes, 1024); /* float tile[256]; sm_100a keeps 1 KB of its own */
    ck_assert_uint_eq(build.spill_bytes, 0);
    ck_assert_ptr_nonnull(strstr(cbn__buf_text(&build.log), "sample"));
}
END_TEST

START_TEST(equal_keys_give_equal_bytes)
{
    struct sample sample;
    sample_init(&sample);
    BUILD_AUTO first = CBN__BUILD_INIT, second = CBN__BUILD_INIT, child = CBN__BUILD_INIT, other = CBN__BUILD_INIT;
    ck_assert_int_eq(run(NULL, NULL, &sample.spec, &first, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(run(NULL, NULL, &sample.spec, &second, NULL), CBN_STATUS_OK);
    sample.template.source_name = sample_text("/another/folder/sample.cuh");
    ck_assert_int_eq(run(NULL, self, &sample.spec, &child, NULL), CBN_STATUS_OK);
    ck_assert(cbn__blob_equal(cbn__buf_blob(&first.cubin), cbn__buf_blob(&second.cubin)));
    ck_assert(cbn__blob_equal(cbn__buf_blob(&first.cubin), cbn__buf_blob(&child.cubin)));
    ck_assert_uint_eq(child.registers, first.registers);
    ck_assert_uint_eq(child.shared_bytes, first.shared_bytes);
    ck_assert_uint_eq(child.compiler_version, first.compiler_version);
    sample.spec.params[1] = 5;
    ck_assert_int_eq(run(NULL, NULL, &sample.spec, &other, NULL), CBN_STATUS_OK);
    ck_assert(!cbn__blob_equal(cbn__buf_blob(&first.cubin), cbn__buf_blob(&other.cubin)));
}
END_TEST

/* In process and in a child: the line is that of the template, not of the defines above it. */
START_TEST(a_failing_source_carries_the_log)
{
    struct sample sample;
    sample_init(&sample);
    sample_set_source(&sample, "extern \"C\" __global__ void sample()\n{\n    int x = y;\n}\n");
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_int_eq(run(NULL, _i ? self : NULL, &sample.spec, &build, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_uint_eq(err.domain, CBN_DOMAIN_NVRTC);
    ck_assert_int_eq(err.native_code, 6);
    ck_assert_msg(strstr(err.message, "house/plain sm_90a: NVRTC"), "%s", err.message);
    ck_assert_msg(strstr(err.message, "sample.cuh(3): error: identifier \"y\""), "%s", err.message);
    ck_assert_ptr_nonnull(strstr(cbn__buf_text(&build.log), "1 error detected"));
}
END_TEST

START_TEST(the_callers_headers_are_found)
{
    struct sample sample;
    sample_init(&sample);
    sample_set_source(&sample, "#include \"a.cuh\"\nextern \"C\" __global__ void sample(float *p) { *p = B; }\n");
    sample_add_header(&sample, "a.cuh", "#include \"b.cuh\"\n");
    sample_add_header(&sample, "b.cuh", "#define B 7\n");
    sample.spec.params[2] = 0;
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_msg(run(NULL, _i ? self : NULL, &sample.spec, &build, &err) == CBN_STATUS_OK, "%s", err.message);
}
END_TEST

START_TEST(a_built_in_may_include_an_embedded_file)
{
    struct sample sample;
    sample_init(&sample);
    sample_set_source(&sample,
                      "#include \"fp8_args.cuh\"\nextern \"C\" __global__ void sample(float *p) { *p = 1; }\n");
    sample.spec.params[2] = 0;
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_int_eq(run(NULL, NULL, &sample.spec, &build, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_msg(strstr(err.message, "fp8_args.cuh"), "%s", err.message);
    sample.template.digest = cbn__embedded_digest();
    ck_assert_msg(run(NULL, NULL, &sample.spec, &build, &err) == CBN_STATUS_OK, "%s", err.message);
}
END_TEST

/* CASES 33: a template with PDL 1 must wait. */
START_TEST(pdl_without_a_wait_is_refused)
{
    static const struct {
        const char *source;
        int64_t pdl;
        int32_t status;
    } cases[] = {
        {SAMPLE_SOURCE, 1, CBN_STATUS_OK},
        {SAMPLE_SOURCE, 0, CBN_STATUS_OK},
        {"extern \"C\" __global__ void sample(float *p) { *p = 1; }\n", 1, CBN_STATUS_COMPILE_FAILED},
        {"extern \"C\" __global__ void sample(float *p) { *p = 1; }\n", 0, CBN_STATUS_OK},
        {"extern \"C\" __global__ void sample(float *p) { asm volatile(\"// griddepcontrol.wait;\"); *p = 1; }\n", 1,
         CBN_STATUS_COMPILE_FAILED},
        {"extern \"C\" __global__ void sample(float *p)\n"
         "{ asm volatile(\"griddepcontrol.launch_dependents;\"); *p = 1; }\n",
         1, CBN_STATUS_COMPILE_FAILED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sample sample;
        sample_init(&sample);
        sample_set_source(&sample, cases[i].source);
        sample.spec.params[2] = cases[i].pdl;
        BUILD_AUTO build = CBN__BUILD_INIT;
        struct cbn_error err = {0};
        ck_assert_msg(run(NULL, NULL, &sample.spec, &build, &err) == cases[i].status, "case %zu: %s", i, err.message);
        if (cases[i].status != CBN_STATUS_OK)
            ck_assert_msg(strstr(err.message, "holds no griddepcontrol.wait"), "%s", err.message);
    }
}
END_TEST

START_TEST(an_arch_that_nvrtc_does_not_know_is_unsupported)
{
    struct sample sample;
    sample_init(&sample);
    sample.spec.arch = CBN_ARCH(91, 'a');
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_int_eq(run(_i ? STUB : NULL, _i ? self : NULL, &sample.spec, &build, &err), CBN_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "does not know compute capability 9.1"), "%s", err.message);
}
END_TEST

START_TEST(nvrtc_is_opened_on_first_need)
{
    struct sample sample;
    sample_init(&sample);
    struct cbn__builder *builder = make_builder("/nowhere/libnvrtc.so", NULL, TIMEOUT_MS);
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__build_run(builder, &sample.spec, &build, &err), CBN_STATUS_NO_COMPILER);
    ck_assert_msg(strstr(err.message, "/nowhere/libnvrtc.so"), "%s", err.message);
    const char *path = NULL;
    uint32_t version = 0;
    ck_assert_int_eq(cbn__builder_nvrtc(builder, &path, &version, &err), CBN_STATUS_NO_COMPILER);
    ck_assert_ptr_null(path);
    cbn__builder_destroy(builder);
    builder = make_builder(STUB, NULL, TIMEOUT_MS);
    ck_assert_int_eq(cbn__builder_nvrtc(builder, &path, &version, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(version, 13000);
    ck_assert_ptr_nonnull(strstr(path, "libnvrtc_stub.so"));
    cbn__builder_destroy(builder);
    cbn__builder_destroy(NULL);
}
END_TEST

START_TEST(the_log_is_read)
{
    struct cbn__build build = CBN__BUILD_INIT;
    cbn__ptxas_parse("ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
                     "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
                     "ptxas info    : Used 168 registers, used 1 barriers, 49152 bytes smem, 352 bytes cmem[0]\n"
                     "ptxas info    : Function properties for b\n"
                     "    0 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads\n"
                     "ptxas info    : Used 40 registers, 400 bytes cmem[0]",
                     &build);
    ck_assert_uint_eq(build.registers, 168);
    ck_assert_uint_eq(build.shared_bytes, 49152);
    ck_assert_uint_eq(build.spill_bytes, 15);
    struct cbn__build empty = CBN__BUILD_INIT;
    cbn__ptxas_parse("", &empty);
    cbn__ptxas_parse(" registers, bytes smem\n registers", &empty);
    ck_assert_uint_eq(empty.registers + empty.shared_bytes + empty.spill_bytes, 0);
}
END_TEST

/* ---- children ---- */

START_TEST(a_child_builds)
{
    struct sample sample;
    sample_init(&sample);
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_msg(run(STUB, self, &sample.spec, &build, &err) == CBN_STATUS_OK, "%s", err.message);
    ck_assert_uint_eq(build.compiler_version, 13000);
    ck_assert_uint_eq(build.registers, 40);
    ck_assert_uint_eq(build.shared_bytes, 1024);
    ck_assert_uint_eq(build.spill_bytes, 12);
    ck_assert_ptr_nonnull(strstr(cbn__buf_text(&build.log), "Compiling entry function 'sample' for 'sm_90'"));
}
END_TEST

START_TEST(a_childs_typed_errors_arrive)
{
    struct sample sample;
    sample_init(&sample);
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_int_eq(run("/nowhere/libnvrtc.so", self, &sample.spec, &build, &err), CBN_STATUS_NO_COMPILER);
    ck_assert_msg(strstr(err.message, "/nowhere/libnvrtc.so"), "%s", err.message);
    set("FAKE_NVRTC_FAIL", "1");
    ck_assert_int_eq(run(STUB, self, &sample.spec, &build, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_msg(strstr(err.message, "told to fail"), "%s", err.message);
    ck_assert_ptr_nonnull(strstr(cbn__buf_text(&build.log), "1 error detected"));
}
END_TEST

/* What the child does, and the words that the error must have. */
static const struct {
    const char *variable, *value, *words;
} deaths[] = {
    {"FAKE_NVRTC_KILL", "11", "died by signal 11"},
    {"FAKE_NVRTC_KILL", "9", "died by signal 9 (out of memory?)"},
    {"TEST_CHILD", "exit", "exited with status 7: told to exit"},
    {"TEST_CHILD", "silent", "wrote no result"},
    {"TEST_CHILD", "garbage", "wrote no result"},
    {"TEST_CHILD", "half", "exited with status 5"},
    {"TEST_CHILD", "nonsense", "wrote no result"},
    {"TEST_CHILD", "deaf", "exited with status 6"},
};

#define DEATH_COUNT (int)(sizeof(deaths) / sizeof(deaths[0]))

START_TEST(a_child_that_dies_is_one_typed_error)
{
    struct sample sample;
    sample_init(&sample);
    set(deaths[_i].variable, deaths[_i].value);
    set("ASAN_OPTIONS", "handle_segv=0"); /* in the child, where a sanitizer would turn signal 11 into an exit */
    set("TSAN_OPTIONS", "handle_segv=0");
    /* A megabyte: more than a socket holds, so that a child that does not read is met while sending. */
    char *source = malloc(1 << 20);
    memset(source, ' ', 1 << 20);
    memcpy(source, SAMPLE_SOURCE, sizeof(SAMPLE_SOURCE) - 1);
    source[(1 << 20) - 1] = 0;
    sample_set_source(&sample, source);
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_int_eq(signal(SIGPIPE, SIG_DFL) == SIG_ERR, 0);
    ck_assert_int_eq(run(STUB, self, &sample.spec, &build, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_msg(strstr(err.message, deaths[_i].words), "%s", err.message);
    ck_assert_msg(strstr(err.message, "house/plain sm_90a"), "%s", err.message);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left behind */
    ck_assert_int_eq(errno, ECHILD);
    free(source);
}
END_TEST

START_TEST(the_words_of_a_dying_child_are_the_log)
{
    struct sample sample;
    sample_init(&sample);
    set("TEST_CHILD", "exit");
    BUILD_AUTO build = CBN__BUILD_INIT;
    ck_assert_int_eq(run(STUB, self, &sample.spec, &build, NULL), CBN_STATUS_COMPILE_FAILED);
    ck_assert_str_eq(cbn__buf_text(&build.log), "first words\ntold to exit\n");
}
END_TEST

/* A child that closes its output and lives on counts as late too. */
START_TEST(a_child_past_its_time_is_killed)
{
    static const char *const ways[][2] = {{"FAKE_NVRTC_DELAY_MS", "600000"}, {"TEST_CHILD", "mute"}};
    struct sample sample;
    sample_init(&sample);
    set(ways[_i][0], ways[_i][1]);
    struct cbn__builder *builder = make_builder(STUB, self, 300);
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__build_run(builder, &sample.spec, &build, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_msg(strstr(err.message, "ran longer than 300 ms and was killed"), "%s", err.message);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    cbn__builder_destroy(builder);
}
END_TEST

/* Prints to stdout and stderr beside the result, more than a pipe holds. */
START_TEST(a_talkative_child_still_builds)
{
    struct sample sample;
    sample_init(&sample);
    set("TEST_CHILD", "talk");
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_msg(run(STUB, self, &sample.spec, &build, &err) == CBN_STATUS_OK, "%s", err.message);
}
END_TEST

START_TEST(a_program_that_does_not_start_is_named)
{
    struct sample sample;
    sample_init(&sample);
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_int_eq(run(STUB, "/nowhere/builder", &sample.spec, &build, &err), CBN_STATUS_NO_COMPILER);
    ck_assert_uint_eq(err.domain, CBN_DOMAIN_OS);
    ck_assert_int_eq(err.native_code, ENOENT);
    ck_assert_msg(strstr(err.message, "/nowhere/builder"), "%s", err.message);
    char path[] = "/tmp/cubinet-program-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(run(STUB, path, &sample.spec, &build, &err), CBN_STATUS_NO_COMPILER);
    ck_assert_int_eq(err.native_code, EACCES);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(folder);
    int count = 0;
    while (readdir(folder))
        count++;
    ck_assert_int_eq(closedir(folder), 0);
    return count;
}

START_TEST(no_descriptor_is_left_and_none_is_needed)
{
    struct sample sample;
    sample_init(&sample);
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_int_eq(run(STUB, self, &sample.spec, &build, &err), CBN_STATUS_OK);
    int before = count_descriptors();
    set("TEST_CHILD", "exit");
    ck_assert_int_eq(run(STUB, self, &sample.spec, &build, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_int_eq(unsetenv("TEST_CHILD"), 0);
    ck_assert_int_eq(run(STUB, self, &sample.spec, &build, &err), CBN_STATUS_OK);
    ck_assert_int_eq(run(STUB, "/nowhere/builder", &sample.spec, &build, &err), CBN_STATUS_NO_COMPILER);
    ck_assert_int_eq(count_descriptors(), before);
    struct rlimit usual;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const struct rlimit few = {3, usual.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ck_assert_int_eq(run(STUB, self, &sample.spec, &build, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_int_eq(err.native_code, EMFILE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
}
END_TEST

/* With 0, 1 and 2 closed, the child's ends would get those very numbers. */
START_TEST(a_process_without_standard_files_builds)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct sample sample;
        struct cbn__build build = CBN__BUILD_INIT;
        sample_init(&sample);
        for (int fd = 0; fd < 3; fd++)
            (void)close(fd);
        _exit(run(STUB, self, &sample.spec, &build, NULL) == CBN_STATUS_OK ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* A program that has its children reaped by the system still gets its builds. */
START_TEST(ignored_child_signals_do_not_matter)
{
    struct sample sample;
    sample_init(&sample);
    ck_assert_int_eq(signal(SIGCHLD, SIG_IGN) == SIG_ERR, 0);
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn_error err = {0};
    ck_assert_msg(run(STUB, self, &sample.spec, &build, &err) == CBN_STATUS_OK, "%s", err.message);
    set("TEST_CHILD", "exit");
    ck_assert_int_eq(run(STUB, self, &sample.spec, &build, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_msg(strstr(err.message, "wrote no result"), "%s", err.message);
}
END_TEST

#define THREADS 8
#define BUILDS_EACH 3

struct worker {
    struct cbn__builder *builder;
    pthread_barrier_t *barrier;
    int failures;
};

static void *build_some(void *data)
{
    struct worker *worker = data;
    (void)pthread_barrier_wait(worker->barrier);
    for (int i = 0; i < BUILDS_EACH; i++) {
        struct sample sample;
        struct cbn__build build = CBN__BUILD_INIT;
        sample_init(&sample);
        worker->failures += cbn__build_run(worker->builder, &sample.spec, &build, NULL) != CBN_STATUS_OK;
        cbn__build_done(&build);
    }
    return NULL;
}

static off_t file_bytes(const char *path)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return info.st_size;
}

/* In process and in children: one builder, as many compiles as asked for, no descriptor lost. */
START_TEST(threads_share_a_builder)
{
    char path[] = "/tmp/cubinet-count-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    set("FAKE_NVRTC_COUNT", path);
    struct cbn__builder *builder = make_builder(STUB, _i ? self : NULL, TIMEOUT_MS);
    int before = count_descriptors();
    pthread_barrier_t barrier;
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){builder, &barrier, 0};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, build_some, &workers[i]), 0);
    }
    int failures = 0;
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        failures += workers[i].failures;
    }
    ck_assert_int_eq(failures, 0);
    ck_assert_int_eq((int)file_bytes(path), THREADS * BUILDS_EACH);
    ck_assert_int_eq(count_descriptors(), before);
    (void)pthread_barrier_destroy(&barrier);
    cbn__builder_destroy(builder);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

static void wait_for(int fd, const char *what)
{
    struct pollfd polled = {fd, POLLIN, 0};
    ck_assert_msg(poll(&polled, 1, 20000) == 1, "%s", what);
}

/*
 * Test, middle, build child. The stand-in's count goes to a FIFO, which tells that the compile has begun; the child
 * inherits the write end of a pipe, which tells that it is gone.
 */
START_TEST(a_child_dies_with_its_parent)
{
    char folder[] = "/tmp/cubinet-death-XXXXXX", fifo[64];
    int alive[2];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    ck_assert_int_eq(pipe(alive), 0);
    set("FAKE_NVRTC_COUNT", fifo);
    set("FAKE_NVRTC_DELAY_MS", "600000");
    pid_t middle = fork();
    ck_assert_int_ge(middle, 0);
    if (middle == 0) {
        struct sample sample;
        struct cbn__build build = CBN__BUILD_INIT;
        sample_init(&sample);
        (void)run(STUB, self, &sample.spec, &build, NULL);
        _exit(1);
    }
    ck_assert_int_eq(close(alive[1]), 0);
    int begun = open(fifo, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(begun, 0);
    wait_for(begun, "the compile does not begin");
    ck_assert_int_eq(kill(middle, SIGKILL), 0);
    ck_assert_int_eq(waitpid(middle, NULL, 0), middle);
    wait_for(alive[0], "the build child outlives its parent");
    char byte;
    ck_assert_int_eq((int)read(alive[0], &byte, 1), 0);
    ck_assert_int_eq(close(begun), 0);
    ck_assert_int_eq(unlink(fifo), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* _i: in process, or in children. What NVRTC refused is told, with its version; what befell a child is not. */
START_TEST(others_hear_of_what_nvrtc_refused_only)
{
    static const char *const own_troubles[][2] = {
        {"FAKE_NVRTC_KILL", "9"}, {"TEST_CHILD", "exit"}, {"FAKE_NVRTC_BUILTINS", "libnvrtc-builtins.so.13.0"}};
    struct sample sample;
    struct others others = {0};
    struct cbn__builder *builder = NULL;
    struct cbn_error err = {0};
    BUILD_AUTO build = CBN__BUILD_INIT;
    const struct cbn__builder_options options = {.peers = {ask_others, tell_others, &others},
                                                 .nvrtc_path = STUB,
                                                 .builder_path = _i ? self : NULL,
                                                 .timeout_ms = TIMEOUT_MS};
    sample_init(&sample);
    ck_assert_int_eq(cbn__builder_create(&options, &builder, NULL), CBN_STATUS_OK);
    for (size_t i = _i ? 0 : 2; i < 3; i++) {
        set(own_troubles[i][0], own_troubles[i][1]);
        ck_assert_int_ne(cbn__build_run(builder, &sample.spec, &build, &err), CBN_STATUS_OK);
        ck_assert_int_eq(unsetenv(own_troubles[i][0]), 0);
    }
    ck_assert_int_eq(others.told, 0);
    ck_assert_int_eq(others.asked, _i ? 0 : 1); /* no child has said its version */
    set("FAKE_NVRTC_FAIL", "1");
    ck_assert_int_eq(cbn__build_run(builder, &sample.spec, &build, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_int_eq(others.told, 1);
    ck_assert_uint_eq(others.version, 13000);
    others = (struct others){.know = true};
    ck_assert_int_eq(cbn__build_run(builder, &sample.spec, &build, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_str_eq(err.message, "theirs");
    ck_assert_int_eq(others.asked, 1);
    ck_assert_int_eq(others.told, 0);
    ck_assert_uint_eq(others.version, 13000);
    cbn__builder_destroy(builder);
}
END_TEST

/* ---- the misbehaving build program ---- */

static void say(int fd, const void *bytes, size_t size)
{
    if (write(fd, bytes, size) < 0)
        _exit(99);
}

static void talk(void)
{
    char line[1024];
    memset(line, '.', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\n';
    for (int i = 0; i < 200; i++)
        say(STDERR_FILENO, line, sizeof(line));
}

static int misbehave(const char *way, int argc, char **argv)
{
    static const char head[] = "CBNJOB1\n\x40\0\0", nonsense[] = "CBNJOB1\n\4\0\0\0abc";
    if (strcmp(way, "talk") == 0) {
        talk();
        return cbn_builder_main(argc, argv);
    }
    if (strcmp(way, "exit") == 0) {
        say(STDERR_FILENO, "first words\ntold to exit\n", 25);
        return 7;
    }
    if (strcmp(way, "garbage") == 0) {
        say(STDOUT_FILENO, "Hello, world!\n", 14);
        (void)pause();
    }
    if (strcmp(way, "half") == 0) {
        say(STDOUT_FILENO, head, sizeof(head));
        return 5;
    }
    if (strcmp(way, "nonsense") == 0)
        say(STDOUT_FILENO, nonsense, sizeof(nonsense));
    if (strcmp(way, "deaf") == 0) {
        (void)close(STDIN_FILENO);
        return 6;
    }
    if (strcmp(way, "mute") == 0) {
        (void)close(STDIN_FILENO);
        (void)close(STDOUT_FILENO);
        (void)pause();
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *way = getenv("TEST_CHILD");
    if (argc > 1 && strcmp(argv[1], "--cubinet-builder") == 0)
        return way ? misbehave(way, argc, argv) : cbn_builder_main(argc, argv);
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return EXIT_FAILURE;
    TCase *real = tcase_create("in process"), *children = tcase_create("children");
    tcase_set_timeout(real, 120);
    tcase_add_loop_test(real, every_arch_compiles_to_an_elf_of_its_own, 0, (int)(sizeof(archs) / sizeof(archs[0])));
    tcase_add_test(real, equal_keys_give_equal_bytes);
    tcase_add_loop_test(real, a_failing_source_carries_the_log, 0, 2);
    tcase_add_loop_test(real, the_callers_headers_are_found, 0, 2);
    tcase_add_test(real, a_built_in_may_include_an_embedded_file);
    tcase_add_test(real, pdl_without_a_wait_is_refused);
    tcase_add_loop_test(real, an_arch_that_nvrtc_does_not_know_is_unsupported, 0, 2);
    tcase_add_test(real, nvrtc_is_opened_on_first_need);
    tcase_add_test(real, the_log_is_read);
    tcase_set_timeout(children, 60);
    tcase_add_loop_test(children, others_hear_of_what_nvrtc_refused_only, 0, 2);
    tcase_add_test(children, a_child_builds);
    tcase_add_test(children, a_childs_typed_errors_arrive);
    tcase_add_loop_test(children, a_child_that_dies_is_one_typed_error, 0, DEATH_COUNT);
    tcase_add_test(children, the_words_of_a_dying_child_are_the_log);
    tcase_add_loop_test(children, a_child_past_its_time_is_killed, 0, 2);
    tcase_add_test(children, a_talkative_child_still_builds);
    tcase_add_test(children, a_program_that_does_not_start_is_named);
    tcase_add_test(children, no_descriptor_is_left_and_none_is_needed);
    tcase_add_test(children, a_process_without_standard_files_builds);
    tcase_add_test(children, ignored_child_signals_do_not_matter);
    tcase_add_loop_test(children, threads_share_a_builder, 0, 2);
    tcase_add_test(children, a_child_dies_with_its_parent);
    Suite *suite = suite_create("build");
    suite_add_tcase(suite, real);
    suite_add_tcase(suite, children);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
