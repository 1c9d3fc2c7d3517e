/*
 * See device.h.
 */
#include "device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX 800
#define REPLAYS_MAX 200
#define PROBES 8 /* launches that estimate how many fill a graph */

#define ATTRIBUTE_SMS 16
#define CAPTURE_RELAXED 2
#define STREAM_NON_BLOCKING 1
#define NODE_KERNEL 0
#define LAUNCH_CLUSTER 4
#define EDGE_PROGRAMMATIC 1

struct driver driver;
struct device device;

void device_must(int result, const char *call)
{
    if (result == 0)
        return;
    fprintf(stderr, "gemm_bench: %s failed (%d)\n", call, result);
    exit(1);
}

static bool open_driver(void)
{
    const char *path = getenv("CUBINET_CUDA");
    void *symbol = NULL, *library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
    if (!library)
        return false;
#define DRIVER_X(name, arguments)                                                                                      \
    symbol = dlsym(library, #name);                                                                                    \
    memcpy(&driver.name, &symbol, sizeof(symbol));                                                                     \
    if (!symbol) {                                                                                                     \
        fprintf(stderr, "gemm_bench: the driver has no %s\n", #name);                                                  \
        return false;                                                                                                  \
    }
    DRIVER_MAP(DRIVER_X)
#undef DRIVER_X
    return true;
}

bool device_open(void)
{
    void *context = NULL;
    if (!open_driver() || driver.cuInit(0) || driver.cuDevicePrimaryCtxRetain(&context, 0) ||
        driver.cuCtxSetCurrent(context))
        return false;
    MUST(cuDeviceGetName(device.name, (int)sizeof(device.name), 0));
    MUST(cuDeviceGetAttribute(&device.sms, ATTRIBUTE_SMS, 0));
    MUST(cuStreamCreate(&device.stream, STREAM_NON_BLOCKING));
    return true;
}

uint64_t device_alloc(int64_t bytes)
{
    uint64_t address = 0;
    MUST(cuMemAlloc_v2(&address, (size_t)(bytes > 0 ? bytes : 1)));
    return address;
}

void device_fill(uint64_t address, unsigned char value, int64_t bytes)
{
    MUST(cuMemsetD8Async(address, value, (size_t)bytes, device.stream));
}

/* ---- what was captured ---- */

struct kernel_node { /* CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h */
    void *function;
    unsigned grid[3], block[3], shared_bytes;
    void **parameters, **extra;
    void *kernel, *context;
};

struct edge { /* CUgraphEdgeData */
    unsigned char from_port, to_port, type, reserved[5];
};

union launch_value { /* CUlaunchAttributeValue */
    char bytes[64];
    unsigned cluster[3];
};

/* What a kernel of another library does not tell is left at 0: it is for the notes alone. */
static void read_kernel(void *node, struct device_shape *shape)
{
    struct kernel_node params = {0};
    union launch_value value = {{0}};
    if (driver.cuGraphKernelNodeGetParams_v2(node, &params) == 0) {
        memcpy(shape->grid, params.grid, sizeof(shape->grid));
        shape->threads = params.block[0] * params.block[1] * params.block[2];
        shape->shared_bytes = params.shared_bytes;
    }
    if (driver.cuGraphKernelNodeGetAttribute(node, LAUNCH_CLUSTER, &value) == 0)
        shape->cluster = value.cluster[0] ? value.cluster[0] : 1;
}

static int count_programmatic(void *graph)
{
    size_t count = 0, programmatic = 0;
    MUST(cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &count));
    void **from = calloc(count + 1, sizeof(*from)), **to = calloc(count + 1, sizeof(*to));
    struct edge *edges = calloc(count + 1, sizeof(*edges));
    if (!from || !to || !edges)
        exit(1);
    if (count > 0)
        MUST(cuGraphGetEdges_v2(graph, from, to, edges, &count));
    for (size_t i = 0; i < count; i++)
        programmatic += edges[i].type == EDGE_PROGRAMMATIC;
    free(from), free(to), free(edges);
    return count ? (int)(programmatic * 100 / count) : 0;
}

static struct device_shape read_graph(void *graph, int calls)
{
    struct device_shape shape = {.programmatic = count_programmatic(graph)};
    size_t count = 0;
    int kernels = 0;
    MUST(cuGraphGetNodes(graph, NULL, &count));
    void **nodes = calloc(count + 1, sizeof(*nodes));
    if (!nodes)
        exit(1);
    MUST(cuGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; i++) {
        int type = -1;
        MUST(cuGraphNodeGetType(nodes[i], &type));
        if (type != NODE_KERNEL)
            continue;
        kernels++;
        read_kernel(nodes[i], &shape);
    }
    shape.kernels = kernels / calls;
    free(nodes);
    return shape;
}

/* ---- time ---- */

static int compare_float(const void *a, const void *b)
{
    const float *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static void **events(void)
{
    static void *pair[2];
    if (!pair[0]) {
        MUST(cuEventCreate(&pair[0], 0));
        MUST(cuEventCreate(&pair[1], 0));
    }
    return pair;
}

static float elapsed_ms(void)
{
    float ms = 0.0f;
    MUST(cuEventRecord(events()[1], device.stream));
    MUST(cuStreamSynchronize(device.stream));
    MUST(cuEventElapsedTime(&ms, events()[0], events()[1]));
    return ms;
}

/* Calls of a graph: the host's share makes the estimate high and the graph short, never too long. */
static int choose_calls(device_launch_fn launch, void *user, int copies)
{
    MUST(cuEventRecord(events()[0], device.stream));
    for (int i = 0; i < PROBES; i++)
        if (!launch(user, i))
            return 0;
    double us = (double)elapsed_ms() * 1000.0 / PROBES;
    int calls = us > GRAPH_US / CALLS_MAX ? (int)(GRAPH_US / us) : CALLS_MAX;
    return (calls / copies + 1) * copies;
}

static void *capture(device_launch_fn launch, void *user, int calls)
{
    bool launched = true;
    void *graph = NULL;
    MUST(cuStreamBeginCapture_v2(device.stream, CAPTURE_RELAXED));
    for (int i = 0; i < calls && launched; i++)
        launched = launch(user, i);
    MUST(cuStreamEndCapture(device.stream, &graph));
    if (launched)
        return graph;
    MUST(cuGraphDestroy(graph));
    return NULL;
}

#define WARM_UPS 4 /* 10 ms: after a pause the clocks take about as long to rise */

static double median_ms(void *exec, int replays)
{
    float ms[REPLAYS_MAX];
    replays = replays > REPLAYS_MAX ? REPLAYS_MAX : replays;
    for (int i = -WARM_UPS; i < replays; i++) {
        MUST(cuEventRecord(events()[0], device.stream));
        MUST(cuGraphLaunch(exec, device.stream));
        float once = elapsed_ms();
        if (i >= 0)
            ms[i] = once;
    }
    qsort(ms, (size_t)replays, sizeof(ms[0]), compare_float);
    return (double)ms[replays / 2];
}

double device_time(device_launch_fn launch, void *user, int copies, int replays, struct device_shape *ret_shape)
{
    void *exec = NULL, *graph = NULL;
    int calls = choose_calls(launch, user, copies);
    if (calls > 0)
        graph = capture(launch, user, calls);
    if (!graph)
        return -1.0;
    *ret_shape = read_graph(graph, calls);
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    double us = median_ms(exec, replays) * 1000.0 / calls;
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    return us;
}
