/*
 * gemm_bench: Cubinet's decode GEMM, its read floor and cuBLASLt on one device, in one run, as CSV. Public library and
 * the driver only. Every result is checked against fp64 before and after it is timed; a wrong one has no time.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "product.h"
#include "rows.h"

#define SHAPES_MAX 64
#define MS_MAX 64
#define M_MAX 65536
#define EXIT_SKIPPED 77

static const char help[] =
    "gemm_bench [options]\n"
    "\n"
    "Times the block-scaled FP8 product on device 0: graphs of calls of about 2.5 ms, the median of their replays, "
    "over\n"
    "more than 200 MB of rotating weights and scales. Peers: cubinet_pdl_static, cubinet_pdl, cubinet_nopdl (with\n"
    "_bf16in where A is bf16), floor_plain, floor_pdl, floor_early, cublaslt.\n"
    "\n"
    "  --shapes LIST   NxK and the names P and L (default P,L,7168x256)\n"
    "  --m LIST        (default 1,4,8,16,24,31,32,48,64)\n"
    "  --in DTYPE      bf16 or e4m3 (default both)\n"
    "  --pdl 0|1       only without or with programmatic dependent launch (default both)\n"
    "  --static 0|1    with PDL: only plans that wait, or only such whose weights are declared static (default both)\n"
    "  --max-sms N     SMs that a call may use (default all)\n"
    "  --replays N     of a graph (default 5)\n"
    "  --cache DIR     a folder for the cubins (default: the library's)\n"
    "  --policy NAME, --disable KERNELS, --enable KERNELS\n"
    "  --no-floor, --no-cublaslt\n"
    "  --cublaslt FILE libcublasLt.so to open (default: the loader's, then /usr/local/cuda/lib64)\n"
    "  --csv FILE      rows as in the header line there; without it only the table on standard output\n";

/* The eleven (N, K) of decode's narrow and short layers, and seven that are bound by their weights. */
static const struct shape list_p[] = {{2112, 7168}, {7168, 2048},  {4096, 7168}, {24576, 1536},
                                      {32768, 512}, {7168, 16384}, {3072, 1536}, {4608, 7168},
                                      {512, 7168},  {7168, 2304},  {1536, 4096}};
static const struct shape list_l[] = {{7168, 18432}, {18432, 7168}, {36864, 7168}, {10240, 5120},
                                      {5120, 8192},  {34816, 5120}, {5120, 17408}};

struct options {
    const char *shapes, *ms, *in, *csv, *cublaslt;
    int pdl, fetch_early; /* -1: both */
    uint32_t max_sms;
    int replays;
    bool no_floor, no_cublaslt;
    struct cbn_runtime_options runtime;
};

struct work {
    struct shape shapes[SHAPES_MAX];
    int64_t ms[MS_MAX];
    int shape_count, m_count;
};

/* ---- lists ---- */

static bool add_shapes(struct work *work, const struct shape *shapes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (work->shape_count == SHAPES_MAX || shapes[i].n < 1 || shapes[i].k < GROUP || shapes[i].k % GROUP)
            return false;
        work->shapes[work->shape_count++] = shapes[i];
    }
    return true;
}

static bool add_shape(struct work *work, const char *text)
{
    long long n = 0, k = 0;
    char rest = 0;
    if (strcmp(text, "P") == 0)
        return add_shapes(work, list_p, sizeof(list_p) / sizeof(list_p[0]));
    if (strcmp(text, "L") == 0)
        return add_shapes(work, list_l, sizeof(list_l) / sizeof(list_l[0]));
    return sscanf(text, "%lldx%lld%c", &n, &k, &rest) == 2 && add_shapes(work, &(struct shape){n, k}, 1);
}

static bool add_m(struct work *work, const char *text)
{
    char *end = NULL;
    long m = strtol(text, &end, 10);
    if (*end || m < 1 || m > M_MAX || work->m_count == MS_MAX)
        return false;
    work->ms[work->m_count++] = m;
    return true;
}

static bool split_list(struct work *work, const char *list, bool (*add)(struct work *, const char *))
{
    char copy[1024], *rest = NULL;
    if (snprintf(copy, sizeof(copy), "%s", list) >= (int)sizeof(copy))
        return false;
    for (char *part = strtok_r(copy, ",", &rest); part; part = strtok_r(NULL, ",", &rest))
        if (!add(work, part)) {
            fprintf(stderr, "gemm_bench: %s: not a shape NxK with K a multiple of %d, P, L, or M\n", part, GROUP);
            return false;
        }
    return true;
}

/* ---- measuring ---- */

static bool wants_mode(const struct options *options, enum product_mode mode)
{
    if (options->pdl >= 0 && (mode != PRODUCT_NO_PDL) != (options->pdl != 0))
        return false;
    return mode == PRODUCT_NO_PDL || options->fetch_early < 0 ||
           (mode == PRODUCT_PDL_STATIC) == (options->fetch_early != 0);
}

static bool wants_in(const struct options *options, uint32_t in)
{
    return !options->in || strcmp(options->in, cbn_dtype_name(in)) == 0;
}

static int measure_shape(struct problem *problem, const struct options *options, const struct work *work)
{
    static const uint32_t ins[] = {CBN_DTYPE_E4M3, CBN_DTYPE_BF16};
    int failures = 0;
    if (!options->no_floor)
        failures += floor_measure(problem);
    for (int i = 0; i < 2 * PRODUCT_MODE_COUNT; i++) {
        uint32_t in = ins[i / PRODUCT_MODE_COUNT];
        enum product_mode mode = (enum product_mode)(i % PRODUCT_MODE_COUNT);
        if (wants_in(options, in) && wants_mode(options, mode))
            failures += product_measure(problem, in, mode, options->max_sms, work->ms, work->m_count);
        rows_end_line();
    }
    if (!options->no_cublaslt)
        failures += cublaslt_measure(problem, work->ms, work->m_count);
    return failures;
}

static int measure_all(struct cbn_runtime *runtime, struct options *options, const struct work *work)
{
    struct problem problem = {.runtime = runtime, .replays = options->replays};
    int64_t max_m = 1;
    int failures = 0;
    for (int i = 0; i < work->m_count; i++)
        max_m = work->ms[i] > max_m ? work->ms[i] : max_m;
    product_warm(runtime, work->shapes, work->shape_count, max_m, options->max_sms);
    options->no_cublaslt = options->no_cublaslt || !cublaslt_open(options->cublaslt);
    if (!kernels_register(runtime) || !problem_create(&problem, work->shapes, work->shape_count, max_m))
        return 1;
    for (int i = 0; i < work->shape_count; i++)
        failures += problem_set_shape(&problem, work->shapes[i]) ? measure_shape(&problem, options, work) : 1;
    printf("%d failed\n", failures);
    return failures;
}

/* ---- the program ---- */

enum setting {
    SHAPES = 256,
    MS,
    IN,
    PDL,
    STATIC,
    MAX_SMS,
    REPLAYS,
    CACHE,
    POLICY,
    DISABLE,
    ENABLE,
    NO_FLOOR,
    NO_CUBLASLT,
    CUBLASLT,
    CSV,
    HELP
};

static const struct option table[] = {{"shapes", required_argument, NULL, SHAPES},
                                      {"m", required_argument, NULL, MS},
                                      {"in", required_argument, NULL, IN},
                                      {"pdl", required_argument, NULL, PDL},
                                      {"static", required_argument, NULL, STATIC},
                                      {"max-sms", required_argument, NULL, MAX_SMS},
                                      {"replays", required_argument, NULL, REPLAYS},
                                      {"cache", required_argument, NULL, CACHE},
                                      {"policy", required_argument, NULL, POLICY},
                                      {"disable", required_argument, NULL, DISABLE},
                                      {"enable", required_argument, NULL, ENABLE},
                                      {"no-floor", no_argument, NULL, NO_FLOOR},
                                      {"no-cublaslt", no_argument, NULL, NO_CUBLASLT},
                                      {"cublaslt", required_argument, NULL, CUBLASLT},
                                      {"csv", required_argument, NULL, CSV},
                                      {"help", no_argument, NULL, HELP},
                                      {NULL, 0, NULL, 0}};

static void take_text(struct options *options, int option, const char *text)
{
    const char **const fields[] = {[SHAPES - SHAPES] = &options->shapes,
                                   [MS - SHAPES] = &options->ms,
                                   [IN - SHAPES] = &options->in,
                                   [CACHE - SHAPES] = &options->runtime.cache_dir,
                                   [POLICY - SHAPES] = &options->runtime.policy,
                                   [DISABLE - SHAPES] = &options->runtime.disable,
                                   [ENABLE - SHAPES] = &options->runtime.enable,
                                   [CUBLASLT - SHAPES] = &options->cublaslt,
                                   [CSV - SHAPES] = &options->csv};
    *fields[option - SHAPES] = text;
}

static bool take_number(const char *text, long low, long high, long *ret)
{
    char *end = NULL;
    *ret = strtol(text, &end, 10);
    return *text && !*end && *ret >= low && *ret <= high;
}

static bool take_option(struct options *options, int option, const char *text)
{
    long number = 0;
    bool right = true;
    switch (option) {
    case PDL:
        right = take_number(text, 0, 1, &number);
        options->pdl = (int)number;
        break;
    case STATIC:
        right = take_number(text, 0, 1, &number);
        options->fetch_early = (int)number;
        break;
    case MAX_SMS:
        right = take_number(text, 0, 1024, &number);
        options->max_sms = (uint32_t)number;
        break;
    case REPLAYS:
        right = take_number(text, 1, 200, &number);
        options->replays = (int)number;
        break;
    case NO_FLOOR:
        options->no_floor = true;
        break;
    case NO_CUBLASLT:
        options->no_cublaslt = true;
        break;
    default:
        take_text(options, option, text);
    }
    return right;
}

/* 0: go on. Else the exit status plus one. */
static int read_options(struct options *options, struct work *work, int argc, char **argv)
{
    for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        if (c == HELP) {
            fputs(help, stdout);
            return 1;
        }
        if (c == '?' || !take_option(options, c, optarg)) {
            fputs(help, stderr);
            return 3;
        }
    }
    bool known_in = !options->in || strcmp(options->in, "bf16") == 0 || strcmp(options->in, "e4m3") == 0;
    if (optind < argc || !known_in || !split_list(work, options->shapes, add_shape) ||
        !split_list(work, options->ms, add_m) || !work->shape_count || !work->m_count) {
        fputs(help, stderr);
        return 3;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct work work;
    struct options options = {.shapes = "P,L,7168x256",
                              .ms = "1,4,8,16,24,31,32,48,64",
                              .pdl = -1,
                              .fetch_early = -1,
                              .replays = 5,
                              .runtime = CBN_RUNTIME_OPTIONS_INIT};
    struct cbn_runtime *runtime = NULL;
    struct cbn_error err = {0};
    if (argc > 1 && strcmp(argv[1], "--cubinet-builder") == 0)
        return cbn_builder_main(argc, argv);
    int stop = read_options(&options, &work, argc, argv);
    if (stop)
        return stop - 1;
    if (!device_open()) {
        printf("gemm_bench: SKIPPED: no device\n");
        return EXIT_SKIPPED;
    }
    options.runtime.builder_path = "/proc/self/exe"; /* builds run in children, several at once */
    if (cbn_runtime_create(&options.runtime, &runtime, &err) != CBN_STATUS_OK) {
        fprintf(stderr, "gemm_bench: %s\n", err.message);
        return 1;
    }
    if (!rows_open(options.csv))
        return 1;
    printf("%s, %d SMs\n", device.name, device.sms);
    int failures = measure_all(runtime, &options, &work);
    if (!rows_close()) {
        fprintf(stderr, "gemm_bench: %s: not written\n", options.csv);
        return 1;
    }
    cbn_runtime_destroy(runtime);
    return failures ? 1 : 0;
}
