/*
 * A kernel of one's own through Cubinet: registered, warmed, explained and, where there is a GPU, launched and checked.
 * usage: own_template TEMPLATE.cu [--cache DIR] [--cuda LIBCUDA] [--no-check]
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cubinet/cubinet.h>

#define ROWS 37
#define COLS 1000
#define EPS 1e-6f

/* As the kernel has it. */
struct rms_norm_args {
    uint64_t x, residual, weight, out;
    int64_t rows, cols;
    float eps;
    uint32_t reserved;
};

/* ---- the family: nothing but data and one pure function ---- */

enum { FACT_ROWS, FACT_COLS, FACT_SMS, FACT_MAX_SMS, FACT_PDL, FACT_COUNT };
static const char *const facts[FACT_COUNT] = {"rows", "cols", "sms", "max_sms", "pdl"};

enum { PARAM_THREADS, PARAM_WIDTH, PARAM_PDL, PARAM_COUNT };
static const struct cbn_bucket threads[] = {{512, 128}, {4096, 256}, {INT64_MAX, 1024}};

#define PARAMS(width)                                                                                                  \
    {                                                                                                                  \
        {.name = "THREADS", .source = CBN_PARAM_BUCKET, .fact = "cols", .buckets = threads, .bucket_count = 3},        \
            {.name = "WIDTH", .source = CBN_PARAM_CONST, .value = width},                                              \
            {.name = "PDL", .source = CBN_PARAM_FACT, .fact = "pdl"},                                                  \
    }
static const struct cbn_param wide_params[PARAM_COUNT] = PARAMS(4);
static const struct cbn_param narrow_params[PARAM_COUNT] = PARAMS(1);

static const struct cbn_guard wide_guards[] = {{.fact = "cols", .relation = CBN_RELATION_MULTIPLE_OF, .value = 4}};
static const struct cbn_guard noops[] = {{.fact = "rows", .relation = CBN_RELATION_EQ, .value = 0},
                                         {.fact = "cols", .relation = CBN_RELATION_EQ, .value = 0}};

/* A block a row, as many as two blocks an SM, or one within a budget of SMs. */
static void place(const int64_t *params, const int64_t *values, struct cbn_geometry *ret_geometry)
{
    int64_t budget = values[FACT_MAX_SMS] > 0 && values[FACT_MAX_SMS] < values[FACT_SMS] ? values[FACT_MAX_SMS]
                                                                                         : 2 * values[FACT_SMS];
    int64_t blocks = values[FACT_ROWS] < budget ? values[FACT_ROWS] : budget;
    *ret_geometry = (struct cbn_geometry){.grid = {(uint32_t)(blocks > 0 ? blocks : 1), 1, 1},
                                          .block = {(uint32_t)params[PARAM_THREADS], 1, 1}};
}

static struct cbn_candidate make_candidate(const char *name, const char *source, const struct cbn_param *params)
{
    return (struct cbn_candidate){.name = name,
                                  .source = source,
                                  .source_name = "rms_norm.cu",
                                  .symbol = "rms_norm",
                                  .flags = CBN_CANDIDATE_PDL,
                                  .params = params,
                                  .param_count = PARAM_COUNT,
                                  .geometry = place,
                                  .argument_bytes = sizeof(struct rms_norm_args)};
}

/* Everything is copied: source may be freed afterwards. */
static int32_t register_family(struct cbn_runtime *runtime, const char *source, struct cbn_error *err)
{
    struct cbn_candidate candidates[] = {make_candidate("wide", source, wide_params),
                                         make_candidate("narrow", source, narrow_params)};
    candidates[0].guards = wide_guards;
    candidates[0].guard_count = 1;
    const struct cbn_family family = {.size = sizeof(family),
                                      .argument_layout = 1,
                                      .name = "rms_norm",
                                      .facts = facts,
                                      .fact_count = FACT_COUNT,
                                      .noop_count = 2,
                                      .noops = noops,
                                      .sweep_fact = "rows",
                                      .candidates = candidates,
                                      .candidate_count = 2};
    return cbn_family_register(runtime, &family, err);
}

/* ---- questions: no GPU is needed ---- */

static int32_t warm_and_explain(struct cbn_runtime *runtime, struct cbn_error *err)
{
    const struct cbn_fact cols[] = {{"cols", COLS}};
    struct cbn_query query = CBN_QUERY_INIT;
    struct cbn_warm_result result = {.size = sizeof(result)};
    struct cbn_explanation told = {.size = sizeof(told)};
    query.op = "rms_norm";
    query.arch = CBN_ARCH(90, 'a');
    query.m = 4096; /* every number of rows up to it */
    query.facts = cols;
    query.fact_count = 1;
    int32_t status = cbn_warm(runtime, &query, 1, NULL, &result, err);
    if (status == CBN_STATUS_OK)
        status = cbn_explain(runtime, &query, &told, err);
    if (status == CBN_STATUS_OK)
        printf("warm: %u specialisations, %u compiled, %u present\nchosen: %s\n", result.requested, result.compiled,
               result.already, told.spec.text);
    return status;
}

/* ---- the launch: device memory through the driver, then one call ---- */

/* Of the CUDA driver API; 0 is success everywhere. */
#define DRIVER_MAP(X)                                                                                                  \
    X(cuInit, (unsigned int))                                                                                          \
    X(cuDevicePrimaryCtxRetain, (void **, int))                                                                        \
    X(cuCtxSetCurrent, (void *))                                                                                       \
    X(cuMemAlloc_v2, (uint64_t *, size_t))                                                                             \
    X(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))                                                               \
    X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                                     \
    X(cuCtxSynchronize, (void))

struct driver {
#define CBN_X(name, arguments) int(*name) arguments;
    DRIVER_MAP(CBN_X)
#undef CBN_X
};

/* False where there is no driver with a device and memory. */
static int open_device(const char *path, struct driver *ret_driver)
{
    void *context = NULL, *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = NULL;
    if (!library)
        return 0;
#define CBN_X(name, arguments)                                                                                         \
    symbol = dlsym(library, #name);                                                                                    \
    if (!symbol)                                                                                                       \
        return 0;                                                                                                      \
    memcpy(&ret_driver->name, &symbol, sizeof(symbol));
    DRIVER_MAP(CBN_X)
#undef CBN_X
    return ret_driver->cuInit(0) == 0 && ret_driver->cuDevicePrimaryCtxRetain(&context, 0) == 0 &&
           ret_driver->cuCtxSetCurrent(context) == 0;
}

static float x[ROWS * COLS], residual[ROWS * COLS], weight[COLS], out[ROWS * COLS];

static void fill(void)
{
    for (int i = 0; i < ROWS * COLS; i++) {
        x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
        residual[i] = (float)(i * 53 % 89) / 40.0f - 1.1f;
    }
    for (int i = 0; i < COLS; i++)
        weight[i] = (float)(i % 7) / 3.0f;
}

static double worst_error(void)
{
    double worst = 0.0;
    for (int row = 0; row < ROWS; row++) {
        double squares = 0.0;
        for (int i = row * COLS; i < (row + 1) * COLS; i++)
            squares += pow((double)x[i] + (double)residual[i], 2);
        double factor = 1.0 / sqrt(squares / COLS + (double)EPS);
        for (int i = row * COLS; i < (row + 1) * COLS; i++)
            worst = fmax(
                worst, fabs(((double)x[i] + (double)residual[i]) * factor * (double)weight[i % COLS] - (double)out[i]));
    }
    return worst;
}

static uint64_t upload(const struct driver *driver, const void *data, size_t bytes)
{
    uint64_t address = 0;
    if (driver->cuMemAlloc_v2(&address, bytes) != 0 || driver->cuMemcpyHtoD_v2(address, data, bytes) != 0)
        return 0;
    return address;
}

static int32_t launch(struct cbn_runtime *runtime, const struct driver *driver, int check, struct cbn_error *err)
{
    fill();
    const struct rms_norm_args arguments = {.x = upload(driver, x, sizeof(x)),
                                            .residual = upload(driver, residual, sizeof(residual)),
                                            .weight = upload(driver, weight, sizeof(weight)),
                                            .out = upload(driver, out, sizeof(out)),
                                            .rows = ROWS,
                                            .cols = COLS,
                                            .eps = EPS};
    const struct cbn_fact call_facts[] = {{"rows", ROWS}, {"cols", COLS}};
    struct cbn_launch_args args = CBN_LAUNCH_ARGS_INIT;
    args.op = "rms_norm";
    args.facts = call_facts;
    args.fact_count = 2;
    args.arguments = &arguments;
    args.argument_bytes = sizeof(arguments);
    int32_t status = cbn_launch(runtime, &args, NULL, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (driver->cuCtxSynchronize() != 0 || driver->cuMemcpyDtoH_v2(out, arguments.out, sizeof(out)) != 0) {
        (void)snprintf(err->message, sizeof(err->message), "the kernel failed on the device");
        return CBN_STATUS_CUDA;
    }
    double error = check ? worst_error() : 0.0;
    printf("launched: %d x %d, worst error %.2g%s\n", ROWS, COLS, error, check ? "" : " (not checked)");
    (void)snprintf(err->message, sizeof(err->message), "wrong results");
    return error < 1e-5 || !check ? CBN_STATUS_OK : CBN_STATUS_INTERNAL;
}

/* ---- the program ---- */

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    size_t size = file && text ? fread(text, 1, (1 << 20) - 1, file) : 0;
    if (file)
        (void)fclose(file);
    if (size > 0)
        return text;
    free(text);
    return NULL;
}

struct options {
    const char *cache, *cuda;
    int check; /* 0: for a driver that runs nothing */
};

static int32_t run(struct cbn_runtime *runtime, const char *source, const struct options *options,
                   struct cbn_error *err)
{
    struct driver driver;
    int32_t status = register_family(runtime, source, err);
    if (status == CBN_STATUS_OK)
        status = warm_and_explain(runtime, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (open_device(options->cuda ? options->cuda : "libcuda.so.1", &driver))
        return launch(runtime, &driver, options->check, err);
    printf("no GPU: nothing launched\n");
    return CBN_STATUS_OK;
}

static struct options read_options(int argc, char **argv)
{
    struct options options = {.check = 1};
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--no-check") == 0)
            options.check = 0;
        else if (strcmp(argv[i], "--cache") == 0 && i + 1 < argc)
            options.cache = argv[++i];
        else if (strcmp(argv[i], "--cuda") == 0 && i + 1 < argc)
            options.cuda = argv[++i];
    }
    return options;
}

int main(int argc, char **argv)
{
    struct options given = read_options(argc, argv);
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_runtime *runtime = NULL;
    struct cbn_error err = {0};
    char *source = argc > 1 ? read_text(argv[1]) : NULL;
    if (!source) {
        fprintf(stderr, "usage: own_template TEMPLATE.cu [--cache DIR] [--cuda LIBCUDA] [--no-check]\n");
        return 2;
    }
    options.cache_dir = given.cache;
    options.cuda_path = given.cuda;
    int32_t status = cbn_runtime_create(&options, &runtime, &err);
    if (status == CBN_STATUS_OK)
        status = run(runtime, source, &given, &err);
    if (status != CBN_STATUS_OK)
        fprintf(stderr, "own_template: %s\n", err.message);
    cbn_runtime_destroy(runtime);
    free(source);
    return status == CBN_STATUS_OK ? 0 : 1;
}
