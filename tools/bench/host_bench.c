/*
 * host_bench: what Cubinet costs on the host, as JSON. Public library only; the driver is a GPU's or the tests' fake
 * one, named by --cuda. Every number is a median; ranges are the 10th and 90th percentile.
 */
#include <dlfcn.h>
#include <ftw.h>
#include <getopt.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cubinet/cubinet.h>

#define SHAPE_M 16
#define SHAPE_N 4096
#define SHAPE_K 7168
#define RUNS_MAX 1000

extern char **environ;

static const char help[] =
    "host_bench [--cuda FILE] [--cache DIR] [--runs N] [--calls N]\n"
    "\n"
    "Measures, each as a median: process start to the first launchable kernel with a disk-warm cache; a loaded "
    "one-shot\n"
    "call and a plan's run up to the driver's launch (of bf16, which fp8_quantize precedes, and of codes); opening a\n"
    "cache, and opening it with one verified read.\n"
    "\n"
    "  --cuda FILE  libcuda.so.1 to use, such as build/tests/fake/libcuda.so.1 (default: the loader's)\n"
    "  --cache DIR  a folder for the cubins (default: a temporary one); the first run compiles\n"
    "  --runs N     processes and batches (default 51)\n"
    "  --calls N    calls a batch (default 20000)\n";

struct options {
    const char *cuda, *cache;
    long runs, calls;
    bool child;
};

/* The little of the driver that a caller needs: a context, and memory to point at. */
struct driver {
    int (*init)(unsigned flags);
    int (*retain)(void **ret_context, int device);
    int (*set_current)(void *context);
    int (*alloc)(uint64_t *ret_address, size_t bytes);
    int (*synchronise)(void);
    void (*set_quick)(bool quick); /* of the fake driver only */
};

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(const char *what, const struct cbn_error *err)
{
    fprintf(stderr, "host_bench: %s: %s\n", what, err ? err->message : "failed");
    exit(1);
}

static void find(void *library, const char *name, void *ret_function)
{
    void *symbol = dlsym(library, name);
    memcpy(ret_function, &symbol, sizeof(symbol));
}

static struct driver open_driver(const char *path)
{
    struct driver driver = {0};
    void *context = NULL, *library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
    if (!library) {
        fail(dlerror(), NULL);
    }
    find(library, "cuInit", &driver.init);
    find(library, "cuDevicePrimaryCtxRetain", &driver.retain);
    find(library, "cuCtxSetCurrent", &driver.set_current);
    find(library, "cuMemAlloc_v2", &driver.alloc);
    find(library, "cuCtxSynchronize", &driver.synchronise);
    find(library, "fake_cuda_set_quick", &driver.set_quick);
    if (!driver.init || !driver.retain || !driver.set_current || !driver.alloc || !driver.synchronise) {
        fail("the driver lacks a function", NULL);
    }
    if (driver.init(0) || driver.retain(&context, 0) || driver.set_current(context)) {
        fail("no device", NULL);
    }
    return driver;
}

static struct cbn_runtime *create_runtime(const struct options *options)
{
    struct cbn_runtime_options runtime_options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_runtime *runtime = NULL;
    struct cbn_error err = {0};
    runtime_options.flags = CBN_RUNTIME_CACHE_REQUIRED;
    runtime_options.cache_dir = options->cache;
    runtime_options.cuda_path = options->cuda;
    if (cbn_runtime_create(&runtime_options, &runtime, &err) != CBN_STATUS_OK) {
        fail("runtime", &err);
    }
    return runtime;
}

static struct cbn_query shape_query(void)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "fp8_gemm";
    query.arch = CBN_ARCH(90, 'a');
    query.m = SHAPE_M, query.n = SHAPE_N, query.k = SHAPE_K;
    return query;
}

/* ---- statistics ---- */

static int compare_u64(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static void print_median(const char *name, uint64_t *values, long count, double unit, const char *last)
{
    qsort(values, (size_t)count, sizeof(*values), compare_u64);
    printf("  \"%s\": {\"median\": %.1f, \"p10\": %.1f, \"p90\": %.1f, \"samples\": %ld}%s\n", name,
           (double)values[count / 2] / unit, (double)values[count / 10] / unit, (double)values[count * 9 / 10] / unit,
           count, last);
}

/* ---- process start to the first launchable kernel ---- */

/* In the child: everything up to a loaded kernel; the time since the parent began to spawn goes to stdout. */
static int run_child(const struct options *options, uint64_t begun_ns)
{
    struct cbn_query query = shape_query();
    struct cbn_warm_result result = {.size = sizeof(result)};
    struct cbn_error err = {0};
    query.m = 1; /* one kernel */
    (void)open_driver(options->cuda);
    struct cbn_runtime *runtime = create_runtime(options);
    if (cbn_prepare(runtime, &query, 1, &result, &err) != CBN_STATUS_OK || result.compiled) {
        fail("prepare from a warm cache", &err);
    }
    printf("%llu\n", (unsigned long long)(now_ns() - begun_ns));
    cbn_runtime_destroy(runtime);
    return 0;
}

static uint64_t spawn_child(const struct options *options)
{
    int pipe_fds[2], status = 0;
    char begun[32], text[32] = "";
    posix_spawn_file_actions_t actions;
    pid_t pid;
    if (pipe(pipe_fds) != 0) {
        fail("pipe", NULL);
    }
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
    (void)posix_spawn_file_actions_addclose(&actions, pipe_fds[0]);
    (void)snprintf(begun, sizeof(begun), "%llu", (unsigned long long)now_ns());
    char *arguments[] = {"host_bench",
                         "--child",
                         begun,
                         "--cache",
                         (char *)(uintptr_t)options->cache,
                         options->cuda ? "--cuda" : NULL,
                         (char *)(uintptr_t)options->cuda,
                         NULL};
    if (posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ) != 0) {
        fail("spawn", NULL);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(pipe_fds[1]);
    ssize_t size = read(pipe_fds[0], text, sizeof(text) - 1);
    (void)close(pipe_fds[0]);
    if (waitpid(pid, &status, 0) != pid || status != 0 || size <= 0) {
        fail("child", NULL);
    }
    return strtoull(text, NULL, 10);
}

static void measure_start(const struct options *options)
{
    uint64_t samples[RUNS_MAX];
    for (long i = 0; i < options->runs; i++) {
        samples[i] = spawn_child(options);
    }
    print_median("process_start_to_launchable_us", samples, options->runs, 1000.0, ",");
}

/* ---- opening ---- */

static void measure_open(const struct options *options, bool with_read, const char *name)
{
    uint64_t samples[RUNS_MAX];
    for (long i = 0; i < options->runs; i++) {
        struct cbn_verify_result result = {.size = sizeof(result)};
        uint64_t begun = now_ns();
        struct cbn_runtime *runtime = create_runtime(options);
        if (with_read && cbn_cabinet_verify(runtime, 0, NULL, NULL, &result, NULL) != CBN_STATUS_OK) {
            fail("verify", NULL);
        }
        samples[i] = now_ns() - begun;
        cbn_runtime_destroy(runtime);
    }
    print_median(name, samples, options->runs, 1000.0, ",");
}

/* ---- calls ---- */

static struct cbn_fp8_gemm_args shape_args(const struct driver *driver)
{
    struct cbn_fp8_gemm_args args = CBN_FP8_GEMM_ARGS_INIT;
    int64_t blocks_n = SHAPE_N / 128, blocks_k = SHAPE_K / 128;
    args.a = (struct cbn_tensor){0, CBN_DTYPE_BF16, 2, {SHAPE_M, SHAPE_K}, {SHAPE_K, 1}};
    args.w = (struct cbn_tensor){0, CBN_DTYPE_E4M3, 2, {SHAPE_N, SHAPE_K}, {SHAPE_K, 1}};
    args.w_scale = (struct cbn_tensor){0, CBN_DTYPE_FP32, 2, {blocks_n, blocks_k}, {blocks_k, 1}};
    args.d = (struct cbn_tensor){0, CBN_DTYPE_BF16, 2, {SHAPE_M, SHAPE_N}, {SHAPE_N, 1}};
    if (driver->alloc(&args.a.data, (size_t)SHAPE_M * SHAPE_K * 2) ||
        driver->alloc(&args.w.data, (size_t)SHAPE_N * SHAPE_K) ||
        driver->alloc(&args.w_scale.data, (size_t)(blocks_n * blocks_k * 4)) ||
        driver->alloc(&args.d.data, (size_t)SHAPE_M * SHAPE_N * 2)) {
        fail("memory", NULL);
    }
    return args;
}

static void give_workspace(const struct driver *driver, struct cbn_runtime *runtime, struct cbn_fp8_gemm_args *args)
{
    struct cbn_error err = {0};
    if (cbn_fp8_gemm_workspace_bytes(runtime, args, &args->workspace_bytes, &err) != CBN_STATUS_OK) {
        fail("workspace", &err);
    }
    if (args->workspace_bytes && driver->alloc(&args->workspace, (size_t)args->workspace_bytes)) {
        fail("memory", NULL);
    }
}

/* The same product of codes: the first half of A's bytes, and scales of its own. */
static struct cbn_fp8_gemm_args codes_args(const struct driver *driver, const struct cbn_fp8_gemm_args *args)
{
    struct cbn_fp8_gemm_args codes = *args;
    codes.a.dtype = CBN_DTYPE_E4M3;
    codes.a_scale_layout = CBN_LAYOUT_COL4;
    codes.a_scale = (struct cbn_tensor){0, CBN_DTYPE_FP32, 2, {SHAPE_M, SHAPE_K / 128}, {1, SHAPE_M}};
    if (driver->alloc(&codes.a_scale.data, (size_t)SHAPE_M * SHAPE_K / 128 * 4)) {
        fail("memory", NULL);
    }
    return codes;
}

static void measure_call(const struct options *options, const struct driver *driver, struct cbn_runtime *runtime,
                         const struct cbn_fp8_gemm_args *args)
{
    uint64_t samples[RUNS_MAX];
    struct cbn_error err = {0};
    for (long i = 0; i < options->runs; i++) {
        uint64_t begun = now_ns();
        for (long j = 0; j < options->calls; j++) {
            if (cbn_fp8_gemm(runtime, args, NULL, &err) != CBN_STATUS_OK) {
                fail("call", &err);
            }
        }
        samples[i] = (now_ns() - begun) * 10 / (uint64_t)options->calls;
        (void)driver->synchronise();
    }
    print_median("one_shot_call_ns", samples, options->runs, 10.0, ",");
}

static void measure_plan(const struct options *options, const struct driver *driver, struct cbn_runtime *runtime,
                         const struct cbn_fp8_gemm_args *args, const char *name, const char *last)
{
    struct cbn_fp8_gemm_plan_options plan_options = CBN_FP8_GEMM_PLAN_OPTIONS_INIT;
    struct cbn_fp8_gemm_run_args run = CBN_FP8_GEMM_RUN_ARGS_INIT;
    struct cbn_plan *plan = NULL;
    struct cbn_error err = {0};
    uint64_t samples[RUNS_MAX];
    plan_options.in = args->a.dtype, plan_options.out = CBN_DTYPE_BF16;
    plan_options.a_scale_layout = args->a_scale_layout;
    plan_options.w_scale_gran = CBN_GRAN_BLOCK;
    plan_options.w = args->w, plan_options.w_scale = args->w_scale;
    run.a = args->a, run.a_scale = args->a_scale, run.d = args->d;
    run.workspace = args->workspace, run.workspace_bytes = args->workspace_bytes;
    if (cbn_fp8_gemm_plan_create(runtime, &plan_options, &plan, &err) != CBN_STATUS_OK ||
        cbn_fp8_gemm_plan_run(plan, &run, NULL, &err) != CBN_STATUS_OK) {
        fail("plan", &err);
    }
    for (long i = 0; i < options->runs; i++) {
        uint64_t begun = now_ns();
        for (long j = 0; j < options->calls; j++) {
            if (cbn_fp8_gemm_plan_run(plan, &run, NULL, &err) != CBN_STATUS_OK) {
                fail("plan run", &err);
            }
        }
        samples[i] = (now_ns() - begun) * 10 / (uint64_t)options->calls;
        (void)driver->synchronise();
    }
    print_median(name, samples, options->runs, 10.0, last);
    cbn_plan_destroy(plan);
}

static void measure(const struct options *options)
{
    struct driver driver = open_driver(options->cuda);
    struct cbn_fp8_gemm_args args = shape_args(&driver);
    struct cbn_runtime *runtime = create_runtime(options);
    struct cbn_error err = {0};
    give_workspace(&driver, runtime, &args);
    struct cbn_fp8_gemm_args codes = codes_args(&driver, &args);
    uint64_t begun = now_ns();
    if (cbn_fp8_gemm(runtime, &args, NULL, &err) != CBN_STATUS_OK) { /* compiles: the entries of an empty cache */
        fail("first call", &err);
    }
    printf(
        "{\n  \"schema\": \"cubinet.host-bench/1\",\n  \"fake_driver\": %s,\n  \"shape\": \"bf16 M=%d N=%d K=%d\",\n",
        driver.set_quick ? "true" : "false", SHAPE_M, SHAPE_N, SHAPE_K);
    printf("  \"first_call_ms\": %.1f,\n", (double)(now_ns() - begun) / 1e6);
    if (driver.set_quick) {
        driver.set_quick(true);
    }
    measure_open(options, false, "open_us");
    measure_open(options, true, "open_and_verified_read_us");
    measure_call(options, &driver, runtime, &args);
    struct cbn_query query = shape_query();
    struct cbn_warm_result result = {.size = sizeof(result)};
    query.m = 1;
    if (cbn_warm(runtime, &query, 1, NULL, &result, &err) != CBN_STATUS_OK) {
        fail("warm", &err);
    }
    (void)fflush(stdout); /* before a child shares it */
    measure_start(options);
    measure_plan(options, &driver, runtime, &codes, "plan_run_codes_ns", ",");
    measure_plan(options, &driver, runtime, &args, "plan_run_ns", "");
    printf("}\n");
    cbn_runtime_destroy(runtime);
}

static int remove_path(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

int main(int argc, char **argv)
{
    static const struct option table[] = {
        {"cuda", required_argument, NULL, 'd'},
        {"cache", required_argument, NULL, 'c'},
        {"runs", required_argument, NULL, 'r'},
        {"calls", required_argument, NULL, 'n'},
        {"child", required_argument, NULL, 'C'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    char folder[] = "/tmp/cubinet-bench-XXXXXX";
    struct options options = {.runs = 51, .calls = 20000};
    uint64_t begun_ns = 0;
    for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        switch (c) {
        case 'd':
            options.cuda = optarg;
            break;
        case 'c':
            options.cache = optarg;
            break;
        case 'r':
            options.runs = strtol(optarg, NULL, 10);
            break;
        case 'n':
            options.calls = strtol(optarg, NULL, 10);
            break;
        case 'C':
            options.child = true;
            begun_ns = strtoull(optarg, NULL, 10);
            break;
        default:
            fputs(help, c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    if (options.runs < 1 || options.runs > RUNS_MAX || options.calls < 1) {
        fputs(help, stderr);
        return 2;
    }
    bool temporary = !options.cache;
    options.cache = temporary ? mkdtemp(folder) : options.cache;
    if (options.child) {
        return run_child(&options, begun_ns);
    }
    measure(&options);
    if (temporary) {
        (void)nftw(folder, remove_path, 8, FTW_DEPTH | FTW_PHYS);
    }
    return 0;
}
