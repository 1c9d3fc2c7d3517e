/*
 * An engine in miniature, for tests of where a cache lies and whose it is: one runtime on the fake driver, as many
 * calls as asked for, each of another specialisation, and what came of it as lines on stdout:
 *
 *   setting NAME ORIGIN VALUE | notice TEXT | damage TEXT | create STATUS MESSAGE | call STATUS MESSAGE | stat NAME
 * VALUE
 *
 * A launch must carry the same bytes as the same call does on a runtime that keeps nothing: "call" is 0 only then. Exit
 * status 0 when every call is. With --until FILE it goes on, a runtime after another, until FILE is there. --never: the
 * miss policy.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cubinet/cubinet.h>

#include "fake/fake_cuda.h"

#define VARIANTS 12
#define PLACE(index) (0x100000000000u * ((index) + 1u))
#define MISMATCH 1000

struct engine {
    struct cbn_runtime_options options;
    struct fake_cuda fake;
    void *stream;
    const char *bases[16];
    const char *until;
    int calls;
    bool quiet;
    uint64_t sums[VARIANTS]; /* of the image that each call launches on a runtime without a cache */
};

static void tell(void *user, const struct cbn_event *event)
{
    (void)user;
    if (event->kind == CBN_EVENT_NOTICE || event->kind == CBN_EVENT_DAMAGE)
        printf("%s %s\n", event->kind == CBN_EVENT_NOTICE ? "notice" : "damage", event->text);
}

static void tell_setting(void *user, const char *name, const char *value, const char *origin)
{
    (void)user;
    printf("setting %s %s %s\n", name, origin, value);
}

/* fp8_quantize of one row: three types, each with and without powers of two and NaN codes. */
static struct cbn_fp8_quantize_args variant(int which)
{
    static const uint32_t types[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
    struct cbn_fp8_quantize_args args = CBN_FP8_QUANTIZE_ARGS_INIT;
    args.flags = (which / 3 & 1 ? CBN_OP_POW2 : 0) | (which / 3 & 2 ? CBN_OP_PROPAGATE : 0);
    args.scale_layout = CBN_LAYOUT_COL4;
    args.x = (struct cbn_tensor){PLACE(0), types[which % 3], 2, {1, 128}, {128, 1}};
    args.codes = (struct cbn_tensor){PLACE(1), CBN_DTYPE_E4M3, 2, {1, 128}, {128, 1}};
    args.scales = (struct cbn_tensor){PLACE(2), CBN_DTYPE_FP32, 2, {1, 1}, {1, 4}};
    return args;
}

static int32_t call(struct engine *engine, struct cbn_runtime *runtime, int which, uint64_t *ret_sum,
                    struct cbn_error *err)
{
    struct cbn_fp8_quantize_args args = variant(which);
    struct fake_launch launch;
    engine->fake.launches_clear();
    int32_t status = cbn_fp8_quantize(runtime, &args, engine->stream, err);
    if (status == CBN_STATUS_OK)
        *ret_sum = engine->fake.launch_get(0, &launch) ? launch.image_sum : 0;
    return status;
}

static void tell_counters(const struct cbn_runtime *runtime)
{
    struct cbn_stats stats = {.size = sizeof(stats)};
    cbn_runtime_stats(runtime, &stats);
#define CBN_X(name, text) printf("stat %s %llu\n", #name, (unsigned long long)stats.name);
    CBN_STAT_MAP(CBN_X)
#undef CBN_X
}

/* Returns the count of calls that went wrong. */
static int run(struct engine *engine)
{
    struct cbn_runtime *runtime = NULL;
    struct cbn_error err = {0};
    int32_t status = cbn_runtime_create(&engine->options, &runtime, &err);
    if (!engine->quiet || status != CBN_STATUS_OK)
        printf("create %d %s\n", status, status == CBN_STATUS_OK ? "" : err.message);
    if (status != CBN_STATUS_OK)
        return 1;
    int wrong = 0;
    if (!engine->quiet)
        cbn_runtime_settings(runtime, tell_setting, NULL);
    for (int i = 0; i < engine->calls; i++) {
        uint64_t sum = 0;
        status = call(engine, runtime, i, &sum, &err);
        if (status == CBN_STATUS_OK && sum != engine->sums[i])
            status = MISMATCH;
        wrong += status != CBN_STATUS_OK;
        if (!engine->quiet || status != CBN_STATUS_OK)
            printf("call %d %s\n", status, status == CBN_STATUS_OK ? "" : err.message);
    }
    if (!engine->quiet)
        tell_counters(runtime);
    cbn_runtime_destroy(runtime);
    return wrong;
}

static bool learn(struct engine *engine)
{
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_runtime *runtime = NULL;
    struct cbn_error err = {0};
    options.flags = CBN_RUNTIME_MEMORY_ONLY | CBN_RUNTIME_IGNORE_ENV;
    options.nvrtc_path = engine->options.nvrtc_path ? engine->options.nvrtc_path : getenv("CUBINET_NVRTC");
    options.cuda_path = engine->options.cuda_path;
    bool right = cbn_runtime_create(&options, &runtime, &err) == CBN_STATUS_OK;
    for (int i = 0; right && i < engine->calls; i++)
        right = call(engine, runtime, i, &engine->sums[i], &err) == CBN_STATUS_OK;
    if (!right)
        fprintf(stderr, "engine: %s\n", err.message);
    cbn_runtime_destroy(runtime);
    return right;
}

/* What each call launches where nothing is stored. Not counted, and at once. */
static bool learn_sums(struct engine *engine)
{
    const char *count = getenv("FAKE_NVRTC_COUNT"), *delay = getenv("FAKE_NVRTC_DELAY_MS");
    char *kept_count = count ? strdup(count) : NULL, *kept_delay = delay ? strdup(delay) : NULL;
    (void)unsetenv("FAKE_NVRTC_COUNT");
    (void)unsetenv("FAKE_NVRTC_DELAY_MS");
    bool right = learn(engine);
    if (kept_count)
        (void)setenv("FAKE_NVRTC_COUNT", kept_count, 1);
    if (kept_delay)
        (void)setenv("FAKE_NVRTC_DELAY_MS", kept_delay, 1);
    free(kept_count);
    free(kept_delay);
    return right;
}

static bool open_driver(struct engine *engine)
{
    if (!engine->options.cuda_path || !fake_cuda_open(engine->options.cuda_path, &engine->fake)) {
        fprintf(stderr, "engine: --cuda names no fake driver\n");
        return false;
    }
    engine->fake.context_set(engine->fake.context_create(0));
    engine->stream = engine->fake.stream_create();
    return true;
}

static bool parse(struct engine *engine, int argc, char **argv)
{
    static const struct option names[] = {{"cuda", 1, NULL, 'u'},    {"nvrtc", 1, NULL, 'n'}, {"cache", 1, NULL, 'c'},
                                          {"base", 1, NULL, 'b'},    {"calls", 1, NULL, 'k'}, {"flags", 1, NULL, 'f'},
                                          {"builder", 1, NULL, 'r'}, {"until", 1, NULL, 't'}, {"never", 0, NULL, 'v'},
                                          {NULL, 0, NULL, 0}};
    struct cbn_runtime_options *options = &engine->options;
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (option == 'u')
            options->cuda_path = optarg;
        else if (option == 'n')
            options->nvrtc_path = optarg;
        else if (option == 'c')
            options->cache_dir = optarg;
        else if (option == 'b' && options->base_count < 16)
            engine->bases[options->base_count++] = optarg;
        else if (option == 'k')
            engine->calls = atoi(optarg);
        else if (option == 'f')
            options->flags = (uint32_t)strtoul(optarg, NULL, 0);
        else if (option == 'r')
            options->builder_path = optarg;
        else if (option == 't')
            engine->until = optarg;
        else if (option == 'v')
            options->miss_policy = CBN_MISS_NEVER;
        else
            return false;
    }
    options->base_dirs = engine->bases;
    return optind == argc && engine->calls >= 0 && engine->calls <= VARIANTS;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--cubinet-builder") == 0)
        return cbn_builder_main(argc, argv);
    struct engine engine = {.options = CBN_RUNTIME_OPTIONS_INIT};
    engine.options.event = tell;
    if (!parse(&engine, argc, argv) || !open_driver(&engine) || !learn_sums(&engine))
        return 2;
    engine.quiet = engine.until != NULL;
    int wrong = 0, rounds = 0;
    do {
        wrong += run(&engine);
        rounds++;
    } while (engine.until && !wrong && access(engine.until, F_OK) != 0);
    printf("rounds %d\n", rounds);
    return wrong ? 1 : 0;
}
