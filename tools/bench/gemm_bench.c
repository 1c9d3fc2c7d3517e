/*
 * gemm_bench: time of fp8_gemm on a device, bf16 in and out, as JSON. A graph of calls over several weights, more than
 * the L2 holds, is replayed between two events; every number is the median of the replays. Public library only.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cubinet/cubinet.h>

#define ROTATED_BYTES (256ll << 20) /* an H200's L2 holds 60 MB */
#define CALLS_MAX 64
#define REPLAYS_MAX 200

static const char help[] =
    "gemm_bench [--cache DIR] [--replays N] [--disable KERNELS]\n"
    "\n"
    "Times fp8_gemm (bf16 in and out, fp32 128x128 weight scales, PDL) on device 0 by replaying a graph of\n"
    "calls that rotate over 256 MB of weights. gb_per_s counts weights, scales, A and D once.\n";

struct driver {
    int (*init)(unsigned flags);
    int (*retain)(void **ret_context, int device);
    int (*set_current)(void *context);
    int (*name)(char *ret_name, int bytes, int device);
    int (*alloc)(uint64_t *ret_address, size_t bytes);
    int (*release)(uint64_t address);
    int (*copy_in)(uint64_t address, const void *data, size_t bytes);
    int (*copy)(uint64_t to, uint64_t from, size_t bytes);
    int (*stream_create)(void **ret_stream, unsigned flags);
    int (*stream_synchronise)(void *stream);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **ret_graph);
    int (*instantiate)(void **ret_exec, void *graph, unsigned long long flags);
    int (*launch)(void *exec, void *stream);
    int (*exec_destroy)(void *exec);
    int (*graph_destroy)(void *graph);
    int (*event_create)(void **ret_event, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_elapsed)(float *ret_ms, void *from, void *to);
};

static struct driver driver;

static void must(int result, const char *what)
{
    if (result) {
        fprintf(stderr, "gemm_bench: %s failed (%d)\n", what, result);
        exit(1);
    }
}
#define MUST(call) must(call, #call)

static bool open_driver(void)
{
    const struct {
        const char *name;
        void *function;
    } table[] = {
        {"cuInit", &driver.init},
        {"cuDevicePrimaryCtxRetain", &driver.retain},
        {"cuCtxSetCurrent", &driver.set_current},
        {"cuDeviceGetName", &driver.name},
        {"cuMemAlloc_v2", &driver.alloc},
        {"cuMemFree_v2", &driver.release},
        {"cuMemcpyHtoD_v2", &driver.copy_in},
        {"cuMemcpyDtoD_v2", &driver.copy},
        {"cuStreamCreate", &driver.stream_create},
        {"cuStreamSynchronize", &driver.stream_synchronise},
        {"cuStreamBeginCapture_v2", &driver.capture_begin},
        {"cuStreamEndCapture", &driver.capture_end},
        {"cuGraphInstantiateWithFlags", &driver.instantiate},
        {"cuGraphLaunch", &driver.launch},
        {"cuGraphExecDestroy", &driver.exec_destroy},
        {"cuGraphDestroy", &driver.graph_destroy},
        {"cuEventCreate", &driver.event_create},
        {"cuEventRecord", &driver.event_record},
        {"cuEventElapsedTime", &driver.event_elapsed},
    };
    const char *path = getenv("CUBINET_CUDA");
    void *library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; library && i < sizeof(table) / sizeof(table[0]); i++) {
        void *symbol = dlsym(library, table[i].name);
        if (!symbol) {
            return false;
        }
        memcpy(table[i].function, &symbol, sizeof(symbol));
    }
    return library != NULL;
}

/* ---- operands ---- */

struct operands {
    int64_t m, n, k;
    int calls; /* each with weights of its own */
    uint64_t a, w, w_scale, d;
};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* e4m3 without NaN, or the two bytes of bf16 numbers of about 1; random, since zeros run faster than real data. */
static uint64_t random_memory(int64_t bytes, bool bf16)
{
    uint64_t address = 0, state = 1;
    uint8_t *data = malloc((size_t)bytes);
    if (!data) {
        exit(1);
    }
    for (int64_t i = 0; i < bytes; i++) {
        uint8_t byte = (uint8_t)next_random(&state);
        data[i] = bf16 ? (i % 2 ? (uint8_t)((byte & 0x80) | 0x3F) : byte) : ((byte & 0x7F) == 0x7F ? byte ^ 1 : byte);
    }
    MUST(driver.alloc(&address, (size_t)bytes));
    MUST(driver.copy_in(address, data, (size_t)bytes));
    free(data);
    return address;
}

static struct operands create_operands(int64_t m, int64_t n, int64_t k)
{
    struct operands operands = {.m = m, .n = n, .k = k};
    int64_t scales = (n + 127) / 128 * ((k + 127) / 128);
    int64_t calls = ROTATED_BYTES / (n * k) + 1;
    float *ones = malloc((size_t)scales * sizeof(*ones));
    operands.calls = calls < CALLS_MAX ? (int)calls : CALLS_MAX;
    uint64_t one = random_memory(n * k, false);
    MUST(driver.alloc(&operands.w, (size_t)(n * k * operands.calls)));
    for (int i = 0; i < operands.calls; i++) {
        MUST(driver.copy(operands.w + (uint64_t)(i * n * k), one, (size_t)(n * k)));
    }
    MUST(driver.release(one));
    for (int64_t i = 0; ones && i < scales; i++) {
        ones[i] = 0.001f;
    }
    MUST(driver.alloc(&operands.w_scale, (size_t)scales * sizeof(*ones)));
    MUST(driver.copy_in(operands.w_scale, ones, (size_t)scales * sizeof(*ones)));
    operands.a = random_memory(m * k * 2, true);
    MUST(driver.alloc(&operands.d, (size_t)(m * n * 2)));
    free(ones);
    return operands;
}

static void destroy_operands(struct operands *operands)
{
    MUST(driver.release(operands->a));
    MUST(driver.release(operands->w));
    MUST(driver.release(operands->w_scale));
    MUST(driver.release(operands->d));
}

static void call(struct cbn_runtime *runtime, const struct operands *operands, int index, void *stream)
{
    struct cbn_fp8_gemm_args args = CBN_FP8_GEMM_ARGS_INIT;
    struct cbn_error err = {0};
    int64_t m = operands->m, n = operands->n, k = operands->k, groups = (k + 127) / 128;
    args.a = (struct cbn_tensor){operands->a, CBN_DTYPE_BF16, 2, {m, k}, {k, 1}};
    args.w = (struct cbn_tensor){operands->w + (uint64_t)(index * n * k), CBN_DTYPE_E4M3, 2, {n, k}, {k, 1}};
    args.w_scale = (struct cbn_tensor){operands->w_scale, CBN_DTYPE_FP32, 2, {(n + 127) / 128, groups}, {groups, 1}};
    args.d = (struct cbn_tensor){operands->d, CBN_DTYPE_BF16, 2, {m, n}, {n, 1}};
    if (cbn_fp8_gemm(runtime, &args, stream, &err) != CBN_STATUS_OK) {
        fprintf(stderr, "gemm_bench: %s\n", err.message);
        exit(1);
    }
}

/* ---- timing ---- */

static int compare_float(const void *a, const void *b)
{
    const float *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Microseconds of one call. */
static double time_graph(void *exec, void *stream, int replays, int calls)
{
    void *events[2];
    float ms[REPLAYS_MAX];
    MUST(driver.event_create(&events[0], 0));
    MUST(driver.event_create(&events[1], 0));
    for (int i = -3; i < replays; i++) { /* three to warm up */
        MUST(driver.event_record(events[0], stream));
        MUST(driver.launch(exec, stream));
        MUST(driver.event_record(events[1], stream));
        MUST(driver.stream_synchronise(stream));
        if (i >= 0) {
            MUST(driver.event_elapsed(&ms[i], events[0], events[1]));
        }
    }
    qsort(ms, (size_t)replays, sizeof(ms[0]), compare_float);
    return (double)ms[replays / 2] * 1000.0 / calls;
}

static double measure(struct cbn_runtime *runtime, const struct operands *operands, int replays)
{
    void *stream, *graph, *exec;
    MUST(driver.stream_create(&stream, 1));
    call(runtime, operands, 0, stream);
    MUST(driver.stream_synchronise(stream));
    MUST(driver.capture_begin(stream, 1));
    for (int i = 0; i < operands->calls; i++) {
        call(runtime, operands, i, stream);
    }
    MUST(driver.capture_end(stream, &graph));
    MUST(driver.instantiate(&exec, graph, 0));
    double us = time_graph(exec, stream, replays, operands->calls);
    MUST(driver.exec_destroy(exec));
    MUST(driver.graph_destroy(graph));
    return us;
}

static void kernel_name(struct cbn_runtime *runtime, const struct operands *operands, char ret_name[CBN_TEXT_BYTES])
{
    struct cbn_query query = CBN_QUERY_INIT;
    struct cbn_explanation explanation = {.size = sizeof(explanation)};
    query.op = "fp8_gemm", query.arch = CBN_ARCH(90, 'a');
    query.m = operands->m, query.n = operands->n, query.k = operands->k;
    (void)cbn_explain(runtime, &query, &explanation, NULL);
    (void)snprintf(ret_name, CBN_TEXT_BYTES, "%s", explanation.spec.kernel);
}

static void run_shape(struct cbn_runtime *runtime, int64_t m, int64_t n, int64_t k, int replays, const char *comma)
{
    char name[CBN_TEXT_BYTES];
    struct operands operands = create_operands(m, n, k);
    double us = measure(runtime, &operands, replays);
    double bytes = (double)(n * k + (n + 127) / 128 * ((k + 127) / 128) * 4 + m * k * 2 + m * n * 2);
    kernel_name(runtime, &operands, name);
    printf("    {\"m\": %d, \"n\": %d, \"k\": %d, \"kernel\": \"%s\", \"us\": %.2f, \"gb_per_s\": %.0f, "
           "\"tflop_per_s\": %.1f}%s\n",
           (int)m, (int)n, (int)k, name, us, bytes / us * 1e-3, 2.0 * (double)(m * n * k) / us * 1e-6, comma);
    (void)fflush(stdout);
    destroy_operands(&operands);
}

static void run_all(struct cbn_runtime *runtime, int replays)
{
    static const int64_t shapes[][2] = {{2112, 7168}, {7168, 2048}, {4608, 7168}, {24576, 1536}};
    static const int64_t ms[] = {1, 8, 16, 32, 64, 128, 256};
    char name[128] = "";
    MUST(driver.name(name, (int)sizeof(name), 0));
    printf("{\n  \"schema\": \"cubinet.gemm-bench/1\",\n  \"device\": \"%s\",\n  \"rows\": [\n", name);
    for (int i = 0; i < 4 * 7; i++) {
        run_shape(runtime, ms[i % 7], shapes[i / 7][0], shapes[i / 7][1], replays, i < 4 * 7 - 1 ? "," : "");
    }
    printf("  ]\n}\n");
}

int main(int argc, char **argv)
{
    static const struct option table[] = {{"cache", required_argument, NULL, 'c'},
                                          {"replays", required_argument, NULL, 'r'},
                                          {"disable", required_argument, NULL, 'd'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_runtime *runtime = NULL;
    struct cbn_error err = {0};
    void *context = NULL;
    long replays = 21;
    for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        if (c == 'c') {
            options.cache_dir = optarg;
        } else if (c == 'r') {
            replays = strtol(optarg, NULL, 10);
        } else if (c == 'd') {
            options.disable = optarg;
        } else {
            fputs(help, c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    if (replays < 1 || replays > REPLAYS_MAX) {
        fputs(help, stderr);
        return 2;
    }
    if (!open_driver() || driver.init(0) || driver.retain(&context, 0) || driver.set_current(context)) {
        printf("gemm_bench: SKIPPED: no device\n");
        return 77;
    }
    if (cbn_runtime_create(&options, &runtime, &err) != CBN_STATUS_OK) {
        fprintf(stderr, "gemm_bench: %s\n", err.message);
        return 1;
    }
    run_all(runtime, (int)replays);
    cbn_runtime_destroy(runtime);
    return 0;
}
