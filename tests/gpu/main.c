/*
 * gpu_suite: every kernel on a real device against the CPU reference and an fp64 oracle, and the receipt of it.
 */
#include <ftw.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"

#include "api/runtime.h"

#define EXIT_SKIPPED 77
#define SEED_DEFAULT 20261129u
#define GUARD_BYTES 1024

static const char help[] =
    "gpu_suite [--out FILE] [--filter TEXT] [--list] [--sample] [--cache DIR] [--seed N] [--threads N]\n"
    "\n"
    "Runs every kernel on device 0: quantisation against the CPU reference bit for bit, products against fp64 with\n"
    "poisoned surroundings and canaries, capture, PDL. Needs libcuda.so.1 and libnvrtc.so, nothing else.\n"
    "\n"
    "  --out FILE    the receipt (tests/gpu/receipt.json); written only after a whole run without a fault\n"
    "  --filter TEXT only cases whose name holds TEXT; no receipt\n"
    "  --sample      few calls in tight buffers, for compute-sanitizer; no receipt\n"
    "  --cache DIR   keep the cubins there (default: a temporary folder)\n"
    "  --seed N      of every random input (default 20261129)\n"
    "  --threads N   of the CPU reference (default: one a core)\n"
    "  --list        names the cases\n"
    "  --warm        only build what the cases need, for sm_90a; needs no device\n"
    "\n"
    "A whole run:      gpu_suite --out tests/gpu/receipt.json\n"
    "Under a sanitizer: compute-sanitizer --tool memcheck gpu_suite --sample --cache DIR   (then --tool racecheck;\n"
    "                  fill DIR with a plain --sample run first)\n"
    "\n"
    "Exit: 0 every case passed; 1 a case failed; 2 usage; 77 there is no device (1 with CUBINET_REQUIRE_GPU=1).\n";

struct suite_case {
    const char *name;
    void (*run)(struct suite *suite, struct tally *tally);
    bool in_sample;
    bool has_error;
};

static const struct suite_case cases[] = {
    {"quantize/vectors", case_quantize_vectors, true, false},
    {"quantize/patterns", case_quantize_patterns, false, false},
    {"quantize/layouts", case_quantize_layouts, true, false},
    {"quantize/grouped", case_quantize_grouped, true, false},
    {"quantize/rows", case_quantize_rows, true, false},
    {"quantize/approx", case_quantize_approx, true, false},
    {"quantize/random", case_quantize_random, false, false},
    {"gemm/codes", case_gemm_codes, true, false},
    {"gemm/models", case_gemm_models, false, true},
    {"gemm/forms", case_gemm_forms, false, true},
    {"gemm/odd", case_gemm_odd, true, true},
    {"gemm/rows", case_gemm_rows, true, true},
    {"gemm/edges", case_gemm_edges, true, true},
    {"gemm/plan", case_gemm_plan, true, true},
    {"gemm/end-to-end", case_gemm_end_to_end, false, true},
    {"capture/replay", case_capture_replay, false, false},
    {"capture/first-use", case_capture_first_use, false, false},
    {"pdl/chain", case_pdl_chain, false, false},
    {"decode/products", case_decode_products, true, true},
    {"decode/rows", case_decode_rows, false, false},
    {"decode/repeats", case_decode_repeats, false, false},
    {"decode/fused", case_decode_fused, false, true},
    {"decode/max-sms", case_decode_max_sms, false, true},
    {"decode/weights-changed", case_decode_weights_changed, false, true},
    {"decode/chain", case_decode_chain, false, false},
    {"prefill/products", case_prefill_products, true, true},
    {"prefill/tiles", case_prefill_tiles, false, true},
    {"prefill/m-valid", case_prefill_m_valid, false, true},
    {"prefill/repeats", case_prefill_repeats, false, true},
    {"prefill/max-sms", case_prefill_max_sms, false, true},
};
#define CASE_COUNT (sizeof(cases) / sizeof(cases[0]))

struct options {
    const char *out, *filter, *cache_dir;
    uint64_t seed;
    int threads;
    bool sample, list, warm;
};

/* -1: go on; else an exit status. */
static int read_options(int argc, char **argv, struct options *ret_options)
{
    static const struct option table[] = {
        {"out", required_argument, NULL, 'o'},     {"filter", required_argument, NULL, 'f'},
        {"cache", required_argument, NULL, 'c'},   {"seed", required_argument, NULL, 's'},
        {"threads", required_argument, NULL, 't'}, {"sample", no_argument, NULL, 'S'},
        {"list", no_argument, NULL, 'l'},          {"help", no_argument, NULL, 'h'},
        {"warm", no_argument, NULL, 'w'},          {NULL, 0, NULL, 0},
    };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *ret_options = (struct options){.seed = SEED_DEFAULT, .threads = cores > 0 ? (int)cores : 1};
    for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        switch (c) {
        case 'o':
            ret_options->out = optarg;
            break;
        case 'f':
            ret_options->filter = optarg;
            break;
        case 'c':
            ret_options->cache_dir = optarg;
            break;
        case 's':
            ret_options->seed = strtoull(optarg, NULL, 10);
            break;
        case 't':
            ret_options->threads = atoi(optarg);
            break;
        case 'S':
            ret_options->sample = true;
            break;
        case 'l':
            ret_options->list = true;
            break;
        case 'w':
            ret_options->warm = true;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            fputs(help, stderr);
            return 2;
        }
    }
    return optind == argc ? -1 : 2;
}

static void on_event(void *user, const struct cbn_event *event)
{
    (void)user;
    if (event->kind == CBN_EVENT_NOTICE || event->kind == CBN_EVENT_DAMAGE) {
        fprintf(stderr, "  cubinet: %s\n", event->text);
    }
}

/* Where a candidate is asked at all, its template's own guards alone decide. */
static void lift_policy(struct cbn_runtime *runtime)
{
    uint32_t index;
    struct cbn__family *family = cbn__runtime_family(runtime, "fp8_gemm", &index);
    for (uint32_t i = 0; family && i < family->candidate_count; i++) {
        family->candidates[i].rules[runtime->routes[index].policy].guard_count = 0;
    }
}

static bool create_runtimes(struct suite *suite)
{
    static const char *const disabled[RUNTIME_COUNT] = {
        [RUNTIME_ALL] = "",
        [RUNTIME_GENERIC] = "swap_ab_fused,swap_ab,wgmma",
        [RUNTIME_WGMMA] = "swap_ab_fused,swap_ab",
        [RUNTIME_CODES] = "swap_ab_fused",
        [RUNTIME_SWAP_AB] = "swap_ab_fused,wgmma,generic",
        [RUNTIME_FUSED] = "swap_ab,wgmma,generic",
    };
    static char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    for (int i = 0; i < RUNTIME_COUNT; i++) {
        struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
        struct cbn_error err = {0};
        options.flags = CBN_RUNTIME_CACHE_REQUIRED;
        options.cache_dir = suite->cache_dir;
        options.builder_path = length > 0 ? self : NULL;
        options.disable = disabled[i];
        options.enable = "";
        options.policy = "default";
        options.event = on_event;
        if (cbn_runtime_create(&options, &suite->runtimes[i], &err) != CBN_STATUS_OK) {
            fprintf(stderr, "gpu_suite: %s\n", err.message);
            return false;
        }
    }
    lift_policy(suite->runtimes[RUNTIME_SWAP_AB]);
    lift_policy(suite->runtimes[RUNTIME_FUSED]);
    return true;
}

static bool is_wanted(const struct options *options, const struct suite_case *item)
{
    return (!options->filter || strstr(item->name, options->filter)) && (!options->sample || item->in_sample);
}

static void print_tally(const struct tally *tally)
{
    printf("%-22s %8llu calls  ", tally->name, (unsigned long long)tally->count);
    if (tally->max_error >= 0) {
        printf("worst row %.3g  ", tally->max_error);
    }
    printf("mismatches %llu  faults %llu  %.1f s\n", (unsigned long long)tally->mismatches,
           (unsigned long long)tally->faults, tally->seconds);
    if (tally->note[0]) {
        printf("%-22s %s\n", "", tally->note);
    }
    (void)fflush(stdout);
}

static uint64_t run_cases(struct suite *suite, const struct options *options, struct tally *tallies,
                          uint32_t *ret_count)
{
    uint64_t faults = 0;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        if (!is_wanted(options, &cases[i])) {
            continue;
        }
        struct tally *tally = &tallies[(*ret_count)++];
        *tally = (struct tally){.name = cases[i].name, .max_error = cases[i].has_error ? 0.0 : -1.0};
        double begun = now_s();
        cases[i].run(suite, tally);
        tally->seconds = now_s() - begun;
        if (tally->count == 0) {
            tally_fault(tally, "checked nothing");
        }
        print_tally(tally);
        faults += tally->faults;
    }
    if (!options->filter && !options->sample) {
        struct tally *tally = &tallies[(*ret_count)++];
        *tally = (struct tally){.name = "coverage", .max_error = -1.0};
        cover_check(suite, tally);
        print_tally(tally);
        faults += tally->faults;
    }
    return faults + cover_faults(suite->cover);
}

static int skip(const struct suite *suite)
{
    const char *require = getenv("CUBINET_REQUIRE_GPU");
    bool required = require && strcmp(require, "1") == 0;
    printf("gpu_suite: %s: no device: %s\n", required ? "FAILED" : "SKIPPED", suite->device.why);
    return required ? 1 : EXIT_SKIPPED;
}

/* Specialisations that warm_all did not know of: each cost a case its build. */
static uint64_t compiles(const struct suite *suite)
{
    uint64_t count = 0;
    for (int i = 0; i < RUNTIME_COUNT; i++) {
        struct cbn_stats stats = {.size = sizeof(stats)};
        cbn_runtime_stats(suite->runtimes[i], &stats);
        count += stats.compiles;
    }
    return count;
}

static int run(struct suite *suite, const struct options *options)
{
    struct tally tallies[CASE_COUNT + 1];
    uint32_t count = 0;
    double begun = now_s();
    printf("gpu_suite: %s, %d SMs, driver %d, NVRTC %d, seed %llu, %d threads\n", suite->device.name, suite->device.sms,
           suite->device.driver_version, suite->device.nvrtc_version, (unsigned long long)suite->seed, suite->threads);
    if (!create_runtimes(suite) || !warm_all(suite)) {
        return 1;
    }
    suite->counter = gpu_alloc(8);
    uint64_t warmed = compiles(suite);
    uint64_t faults = run_cases(suite, options, tallies, &count);
    printf("gpu_suite: %u cases, %u specialisations launched, %llu built late, %llu faults, %.1f s\n", count,
           cover_count(suite->cover), (unsigned long long)(compiles(suite) - warmed), (unsigned long long)faults,
           now_s() - begun);
    if (faults || count == 0) {
        return 1;
    }
    bool whole = !options->filter && !options->sample;
    return whole && options->out && !receipt_write(suite, options->out, tallies, count) ? 1 : 0;
}

static void destroy_runtimes(struct suite *suite)
{
    for (int i = 0; i < RUNTIME_COUNT; i++) {
        cbn_runtime_destroy(suite->runtimes[i]);
    }
}

static void done(struct suite *suite)
{
    suite_scratch_done(suite);
    gpu_free(&suite->counter);
    destroy_runtimes(suite);
    cover_destroy(suite->cover);
    gpu_close();
}

/* Without a device: the usual Hopper part. */
static int warm_only(struct suite *suite)
{
    suite->device.arch = CBN_ARCH(90, 'a');
    suite->device.sms = 132;
    int status = create_runtimes(suite) && warm_all(suite) ? 0 : 1;
    destroy_runtimes(suite);
    return status;
}

static int remove_path(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

/* From a chosen device, or none, to an exit status. */
static int run_on_device(struct suite *suite, const struct options *options)
{
    if (options->warm) {
        return warm_only(suite);
    }
    if (!gpu_open(&suite->device)) {
        return skip(suite);
    }
    suite->cover = cover_create();
    if (!suite->cover || !gpu_oracle_open(&suite->device, &suite->device)) {
        return 1;
    }
    int status = run(suite, options);
    done(suite);
    return status;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/cubinet-gpu-XXXXXX";
    struct options options;
    struct suite suite = {.end_to_end_error = -1.0};
    if (argc > 1 && strcmp(argv[1], "--cubinet-builder") == 0) {
        return cbn_builder_main(argc, argv);
    }
    int status = read_options(argc, argv, &options);
    if (status >= 0) {
        return status;
    }
    for (size_t i = 0; options.list && i < CASE_COUNT; i++) {
        printf("%s%s\n", cases[i].name, cases[i].in_sample ? " (sample)" : "");
    }
    if (options.list) {
        return 0;
    }
    suite.seed = options.seed;
    suite.threads = options.threads;
    suite.sample = options.sample;
    suite.guard = options.sample ? 0 : GUARD_BYTES;
    suite.cache_dir = options.cache_dir ? options.cache_dir : mkdtemp(folder);
    status = suite.cache_dir ? run_on_device(&suite, &options) : 1;
    if (!options.cache_dir) {
        (void)nftw(folder, remove_path, 8, FTW_DEPTH | FTW_PHYS);
    }
    return status;
}
