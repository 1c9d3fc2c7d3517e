/*
 * The runtime on the public interface, with the NVRTC stand-in: settings, warm, check, explain, layers, counters.
 */
#include <check.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cubinet/cubinet.h>

#define STUB CBN_TEST_BINARY_DIR "/tests/fake/libnvrtc_stub.so"

static char folder[PATH_MAX];
static char count_file[PATH_MAX];

/* Events come from any thread that calls into the runtime: warm's workers among them. */
struct told {
    atomic_uint notices;
    atomic_uint compiled;
    atomic_uint logs;
};

static void hear(void *user, const struct cbn_event *event)
{
    struct told *told = user;
    told->notices += event->kind == CBN_EVENT_NOTICE;
    told->compiled += event->kind == CBN_EVENT_COMPILED;
    told->logs += event->kind == CBN_EVENT_COMPILE_LOG;
}

static void set_up(void)
{
    snprintf(folder, sizeof(folder), "%s", "/tmp/cubinet-runtime-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(count_file, sizeof(count_file), "%.4000s/compiles", folder);
    static const char *const variables[] = {"CUBINET_CACHE",   "CUBINET_BASES", "CUBINET_POLICY", "CUBINET_DISABLE",
                                            "CUBINET_ENABLE",  "CUBINET_NVRTC", "CUBINET_CUDA",   "XDG_CACHE_HOME",
                                            "FAKE_NVRTC_FAIL", "FAKE_NVRTC_KILL"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
    setenv("HOME", folder, 1);
    setenv("FAKE_NVRTC_COUNT", count_file, 1);
}

static void tear_down(void)
{
    char command[PATH_MAX + 16];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static long compiles_counted(void)
{
    struct stat file;
    return stat(count_file, &file) == 0 ? (long)file.st_size : 0;
}

static struct cbn_runtime *create(const struct cbn_runtime_options *options)
{
    struct cbn_runtime *runtime = NULL;
    struct cbn_error error = {0};
    ck_assert_msg(cbn_runtime_create(options, &runtime, &error) == CBN_STATUS_OK, "%s", error.message);
    return runtime;
}

static struct cbn_runtime_options stub_options(const char *cache_dir, struct told *told)
{
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    options.cache_dir = cache_dir;
    options.nvrtc_path = STUB;
    options.event = told ? hear : NULL;
    options.event_user = told;
    return options;
}

static struct cbn_query gemm_query(int64_t n, int64_t k)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "fp8_gemm";
    query.arch = CBN_ARCH(90, 'a');
    query.m = 131072;
    query.n = n;
    query.k = k;
    return query;
}

static const char *setting_value;
static const char *setting_origin;
static const char *setting_wanted;
static char setting_copy[2][PATH_MAX];

static void find_setting(void *user, const char *name, const char *value, const char *origin)
{
    (void)user;
    if (strcmp(name, setting_wanted) != 0)
        return;
    snprintf(setting_copy[0], PATH_MAX, "%s", value);
    snprintf(setting_copy[1], PATH_MAX, "%s", origin);
    setting_value = setting_copy[0];
    setting_origin = setting_copy[1];
}

static void look_up_setting(const struct cbn_runtime *runtime, const char *name)
{
    setting_wanted = name;
    setting_value = setting_origin = NULL;
    cbn_runtime_settings(runtime, find_setting, NULL);
    ck_assert_ptr_nonnull(setting_value);
}

START_TEST(option_beats_environment_beats_default)
{
    char from_env[PATH_MAX + 8], from_option[PATH_MAX + 8], from_home[PATH_MAX + 32];
    snprintf(from_env, sizeof(from_env), "%s/env", folder);
    snprintf(from_option, sizeof(from_option), "%s/option", folder);
    snprintf(from_home, sizeof(from_home), "%s/.cache/cubinet", folder);
    struct cbn_runtime_options options = stub_options(NULL, NULL);
    struct cbn_runtime *runtime = create(&options);
    look_up_setting(runtime, "cache_dir");
    ck_assert_str_eq(setting_value, from_home);
    ck_assert_str_eq(setting_origin, "HOME");
    cbn_runtime_destroy(runtime);
    setenv("CUBINET_CACHE", from_env, 1);
    runtime = create(&options);
    look_up_setting(runtime, "cache_dir");
    ck_assert_str_eq(setting_value, from_env);
    ck_assert_str_eq(setting_origin, "CUBINET_CACHE");
    cbn_runtime_destroy(runtime);
    options.cache_dir = from_option;
    runtime = create(&options);
    look_up_setting(runtime, "cache_dir");
    ck_assert_str_eq(setting_value, from_option);
    ck_assert_str_eq(setting_origin, "option");
    cbn_runtime_destroy(runtime);
    options.cache_dir = NULL;
    options.flags = CBN_RUNTIME_IGNORE_ENV;
    runtime = create(&options);
    look_up_setting(runtime, "cache_dir");
    ck_assert_str_eq(setting_value, "");
    cbn_runtime_destroy(runtime);
}
END_TEST

START_TEST(no_home_is_memory_only_and_said_once)
{
    static const char *const homes[] = {"", "/", "relative"};
    for (size_t i = 0; i < 3; i++) {
        struct told told = {0};
        setenv("HOME", homes[i], 1);
        struct cbn_runtime_options options = stub_options(NULL, &told);
        struct cbn_runtime *runtime = create(&options);
        ck_assert_uint_eq(told.notices, 1);
        struct cbn_query query = gemm_query(2112, 7168);
        struct cbn_error error = {0};
        ck_assert_int_eq(cbn_warm(runtime, &query, 1, NULL, NULL, &error), CBN_STATUS_IO);
        ck_assert_ptr_nonnull(strstr(error.message, "CUBINET_CACHE"));
        cbn_runtime_destroy(runtime);
    }
    ck_assert_int_eq(compiles_counted(), 0);
    struct cbn_runtime_options options = stub_options(NULL, NULL);
    struct cbn_runtime *runtime = NULL;
    options.flags = CBN_RUNTIME_CACHE_REQUIRED;
    ck_assert_int_eq(cbn_runtime_create(&options, &runtime, NULL), CBN_STATUS_NOT_FOUND);
    ck_assert_ptr_null(runtime);
}
END_TEST

START_TEST(options_struct_is_versioned)
{
    struct cbn_runtime *runtime = NULL;
    struct cbn_error error = {0};
    struct cbn_runtime_options options = stub_options(folder, NULL);
    options.size = 0;
    ck_assert_int_eq(cbn_runtime_create(&options, &runtime, &error), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "cbn_runtime_options.size"));
    struct {
        struct cbn_runtime_options known;
        uint64_t future;
    } newer = {stub_options(folder, NULL), 0};
    newer.known.size = sizeof(newer);
    ck_assert_int_eq(cbn_runtime_create(&newer.known, &runtime, &error), CBN_STATUS_OK);
    cbn_runtime_destroy(runtime);
    runtime = NULL;
    newer.future = 1;
    ck_assert_int_eq(cbn_runtime_create(&newer.known, &runtime, &error), CBN_STATUS_INVALID);
    options = stub_options(folder, NULL);
    options.size = offsetof(struct cbn_runtime_options, policy); /* an older caller: the rest is default */
    options.policy = "no such policy";
    ck_assert_int_eq(cbn_runtime_create(&options, &runtime, &error), CBN_STATUS_OK);
    cbn_runtime_destroy(runtime);
    runtime = NULL;
    options.size = sizeof(options);
    ck_assert_int_eq(cbn_runtime_create(&options, &runtime, &error), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "no such policy"));
    options.policy = NULL;
    options.flags = 1u << 30;
    ck_assert_int_eq(cbn_runtime_create(&options, &runtime, &error), CBN_STATUS_INVALID);
    options.flags = 0;
    options.miss_policy = 2;
    ck_assert_int_eq(cbn_runtime_create(&options, &runtime, &error), CBN_STATUS_INVALID);
    ck_assert_ptr_null(runtime);
}
END_TEST

struct outcomes {
    unsigned count[8];
    unsigned last_done;
    char log[256];
};

static void hear_outcome(void *user, const struct cbn_warm_event *event)
{
    struct outcomes *outcomes = user;
    outcomes->count[event->outcome]++;
    ck_assert_uint_eq(event->done, ++outcomes->last_done);
    if (event->outcome == CBN_WARM_FAILED)
        snprintf(outcomes->log, sizeof(outcomes->log), "%s", event->log);
}

START_TEST(warm_builds_each_once_and_check_agrees)
{
    struct told told = {0};
    struct cbn_runtime_options options = stub_options(folder, &told);
    struct cbn_runtime *runtime = create(&options);
    struct cbn_query queries[3] = {gemm_query(2112, 7168), gemm_query(7168, 2048), gemm_query(7168, 2048)};
    struct outcomes outcomes = {0};
    struct cbn_warm_options warm = {sizeof(warm), 3, hear_outcome, &outcomes};
    struct cbn_warm_result result = {.size = sizeof(result)};
    ck_assert_int_eq(cbn_check(runtime, queries, 3, &warm, &result, NULL), CBN_STATUS_OK);
    uint32_t requested = result.requested;
    ck_assert_uint_gt(requested, 3);
    ck_assert_uint_eq(result.missing, requested);
    ck_assert_uint_eq(outcomes.count[CBN_WARM_MISSING], requested);
    outcomes = (struct outcomes){0};
    ck_assert_int_eq(cbn_warm(runtime, queries, 3, &warm, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.compiled, requested);
    ck_assert_uint_eq(result.already, 0);
    ck_assert_uint_eq(outcomes.count[CBN_WARM_COMPILED], requested);
    ck_assert_int_eq(compiles_counted(), requested);
    ck_assert_uint_eq(told.compiled, requested);
    ck_assert_int_eq(cbn_warm(runtime, queries, 3, NULL, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.already, requested);
    ck_assert_uint_eq(result.compiled, 0);
    ck_assert_int_eq(cbn_check(runtime, queries, 3, NULL, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.missing, 0);
    struct cbn_stats stats = {.size = sizeof(stats)};
    cbn_runtime_stats(runtime, &stats);
    ck_assert_uint_eq(stats.compiles, requested);
    ck_assert_uint_eq(stats.puts, requested);
    ck_assert_uint_eq(stats.overlay_hits, requested);
    ck_assert_uint_eq(stats.misses_absent, 2ull * requested); /* before and after the claim */
    ck_assert_uint_eq(stats.puts_dropped + stats.compile_failures + stats.flight_waits, 0);
    ck_assert_int_eq(compiles_counted(), requested);
    cbn_runtime_destroy(runtime);
}
END_TEST

static int count_entry(void *user, const struct cbn_entry_info *entry)
{
    unsigned *count = user;
    int quantizes = strcmp(entry->spec.op, "fp8_quantize") == 0; /* what swap_ab launches first */
    ck_assert(quantizes || strcmp(entry->spec.op, "fp8_gemm") == 0);
    ck_assert_str_eq(entry->spec.arch, "sm_90a");
    ck_assert_str_eq(entry->compiler, "13.0");
    ck_assert_uint_eq(strlen(entry->spec.key), 32);
    ck_assert_uint_gt(entry->size_bytes, 0);
    ++*count;
    return 0;
}

START_TEST(a_base_serves_what_was_warmed)
{
    struct cbn_runtime_options options = stub_options(folder, NULL);
    struct cbn_runtime *runtime = create(&options);
    struct cbn_query query = gemm_query(2112, 7168);
    struct cbn_warm_result result = {.size = sizeof(result)};
    ck_assert_int_eq(cbn_warm(runtime, &query, 1, NULL, &result, NULL), CBN_STATUS_OK);
    uint32_t requested = result.requested;
    cbn_runtime_destroy(runtime);
    const char *bases[1] = {folder};
    options = stub_options(NULL, NULL);
    options.base_dirs = bases;
    options.base_count = 1;
    options.flags = CBN_RUNTIME_MEMORY_ONLY;
    runtime = create(&options);
    ck_assert_int_eq(cbn_check(runtime, &query, 1, NULL, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.missing, 0);
    unsigned entries = 0;
    uint64_t damaged = 1;
    ck_assert_int_eq(cbn_cabinet_list(runtime, count_entry, &entries, &damaged, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(entries, requested);
    ck_assert_uint_eq(damaged, 0);
    struct cbn_verify_result verified = {.size = sizeof(verified)};
    ck_assert_int_eq(cbn_cabinet_verify(runtime, 0, NULL, NULL, &verified, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(verified.checked, requested);
    ck_assert_uint_eq(verified.damaged, 0);
    cbn_runtime_destroy(runtime);
}
END_TEST

START_TEST(failures_are_partial_and_carry_the_log)
{
    struct cbn_runtime_options options = stub_options(folder, NULL);
    struct cbn_runtime *runtime = create(&options);
    struct cbn_query query = gemm_query(2112, 7168);
    struct outcomes outcomes = {0};
    struct cbn_warm_options warm = {sizeof(warm), 1, hear_outcome, &outcomes};
    struct cbn_warm_result result = {.size = sizeof(result)};
    struct cbn_error error = {0};
    setenv("FAKE_NVRTC_FAIL", "1", 1);
    ck_assert_int_eq(cbn_warm(runtime, &query, 1, &warm, &result, &error), CBN_STATUS_PARTIAL);
    ck_assert_uint_eq(result.failed, result.requested);
    ck_assert_uint_gt(strlen(outcomes.log), 0);
    ck_assert_int_eq(cbn_check(runtime, &query, 1, NULL, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.missing, result.requested); /* nothing was stored */
    unsetenv("FAKE_NVRTC_FAIL");
    ck_assert_int_eq(cbn_warm(runtime, &query, 1, NULL, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.compiled, result.requested);
    cbn_runtime_destroy(runtime);
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    runtime = create(&options);
    query = gemm_query(100, 100);
    ck_assert_int_eq(cbn_warm(runtime, &query, 1, NULL, &result, &error), CBN_STATUS_NO_COMPILER);
    ck_assert_ptr_nonnull(strstr(error.message, "/nonexistent/libnvrtc.so"));
    cbn_runtime_destroy(runtime);
}
END_TEST

START_TEST(uncovered_is_told_apart)
{
    struct cbn_runtime_options options = stub_options(folder, NULL);
    struct cbn_runtime *runtime = create(&options);
    struct cbn_query queries[2] = {gemm_query(4096, 4096), gemm_query(1024, 4096)};
    queries[0].op = "fp8_grouped_gemm";
    queries[0].groups = 256;
    queries[1].arch = CBN_ARCH(100, 'a');
    queries[1].profile.enable = "tcgen05";
    struct outcomes outcomes = {0};
    struct cbn_warm_options warm = {sizeof(warm), 1, hear_outcome, &outcomes};
    struct cbn_warm_result result = {.size = sizeof(result)};
    ck_assert_int_eq(cbn_warm(runtime, queries, 2, &warm, &result, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(result.uncovered, 2);
    ck_assert_uint_eq(outcomes.count[CBN_WARM_UNCOVERED], 2);
    ck_assert_uint_eq(result.compiled + result.already + result.uncovered, result.requested);
    queries[0].op = NULL;
    struct cbn_error error = {0};
    ck_assert_int_eq(cbn_warm(runtime, queries, 2, NULL, &result, &error), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "query 0"));
    cbn_runtime_destroy(runtime);
}
END_TEST

struct spec_list {
    char texts[16][CBN_SPEC_TEXT_BYTES];
    unsigned count;
};

static int keep_spec(void *user, const struct cbn_spec *spec)
{
    struct spec_list *list = user;
    ck_assert_uint_lt(list->count, 16);
    for (unsigned i = 0; i < list->count; i++)
        ck_assert_str_ne(list->texts[i], spec->text); /* each once */
    snprintf(list->texts[list->count++], CBN_SPEC_TEXT_BYTES, "%s", spec->text);
    return 0;
}

static unsigned count_text(const struct spec_list *list, const char *text)
{
    unsigned found = 0;
    for (unsigned i = 0; i < list->count; i++)
        found += strcmp(list->texts[i], text) == 0;
    return found;
}

/* Rows that no multiple of 16 bytes separates take generic, but a single row has no stride: it takes swap_ab. */
START_TEST(enumeration_knows_the_single_row_at_an_odd_lda)
{
    struct cbn_runtime_options options = stub_options(folder, NULL);
    struct cbn_runtime *runtime = create(&options);
    struct cbn_query query = gemm_query(576, 7168);
    query.lda = 7170;
    query.profile.policy = "reference";
    struct spec_list list = {.count = 0};
    ck_assert_int_eq(cbn_enumerate(runtime, &query, keep_spec, &list, NULL), CBN_STATUS_OK);
    for (query.m = 1; query.m <= 65; query.m++) {
        struct cbn_explanation explanation = {.size = sizeof(explanation)};
        ck_assert_int_eq(cbn_explain(runtime, &query, &explanation, NULL), CBN_STATUS_OK);
        ck_assert_str_eq(explanation.spec.kernel, query.m == 1 ? "swap_ab" : "generic");
        ck_assert_uint_eq(count_text(&list, explanation.spec.text), 1);
        ck_assert_uint_eq(explanation.quantizes_first, query.m == 1);
        if (explanation.quantizes_first)
            ck_assert_uint_eq(count_text(&list, explanation.quantize_spec.text), 1);
    }
    cbn_runtime_destroy(runtime);
}
END_TEST

static void keep_error(void *user, const struct cbn_warm_event *event)
{
    if (event->outcome == CBN_WARM_UNCOVERED && event->error)
        snprintf(user, CBN_ERROR_MESSAGE_BYTES, "%s", event->error->message);
}

/* What no candidate takes would be UNSUPPORTED in a call: a check that passed over it would prove nothing. */
START_TEST(what_no_candidate_takes_is_uncovered)
{
    struct cbn_runtime_options options = stub_options(folder, NULL);
    struct cbn_runtime *runtime = create(&options);
    struct cbn_query queries[3] = {gemm_query(2112, 7168), gemm_query(2112, 448), gemm_query(2112, 7168)};
    queries[0].profile.disable = "swap_ab,wgmma,generic";
    queries[1].profile.strict_route = 1;
    queries[2].profile.disable = "wgmma";
    queries[2].profile.strict_route = 1;
    queries[0].profile.policy = queries[1].profile.policy = queries[2].profile.policy = "reference";
    static const char *const intervals[] = {"m in [1,131072]: no fp8_gemm", "m in [1,131072]: no fp8_gemm",
                                            "m in [32,131072]: no fp8_gemm"};
    static const char *const reasons[] = {"generic is switched off", "generic is a fallback", "wgmma is switched off"};
    for (int i = 0; i < 3; i++) {
        char message[CBN_ERROR_MESSAGE_BYTES] = "";
        struct cbn_warm_options check = {sizeof(check), 1, keep_error, message};
        struct cbn_warm_result result = {.size = sizeof(result)};
        ck_assert_int_eq(cbn_check(runtime, &queries[i], 1, &check, &result, NULL), CBN_STATUS_OK);
        ck_assert_uint_eq(result.uncovered, 1);
        ck_assert_uint_eq(result.missing, i == 2 ? 5 : 0); /* swap_ab for 8, 16, 24 and 32 tokens, its fp8_quantize */
        ck_assert_msg(strstr(message, intervals[i]) && strstr(message, reasons[i]), "%s", message);
    }
    cbn_runtime_destroy(runtime);
}
END_TEST

START_TEST(explain_says_what_is_cached)
{
    struct cbn_runtime_options options = stub_options(folder, NULL);
    struct cbn_runtime *runtime = create(&options);
    struct cbn_query query = gemm_query(2112, 7168);
    query.m = 4;
    query.profile.policy = "reference";
    struct cbn_explanation explanation = {.size = sizeof(explanation)};
    ck_assert_int_eq(cbn_explain(runtime, &query, &explanation, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(explanation.chosen, 1);
    ck_assert_uint_eq(explanation.cached, 0);
    ck_assert_uint_eq(explanation.launches, 2);
    ck_assert_str_eq(explanation.spec.kernel, "swap_ab");
    query.profile.policy = NULL; /* one launch there, of another kernel */
    ck_assert_int_eq(cbn_explain(runtime, &query, &explanation, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(explanation.launches, 1);
    ck_assert_str_eq(explanation.spec.kernel, "swap_ab_fused");
    query.profile.policy = "reference";
    ck_assert_int_eq(cbn_warm(runtime, &query, 1, NULL, NULL, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn_explain(runtime, &query, &explanation, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(explanation.cached, 1);
    query.m = 0;
    ck_assert_int_eq(cbn_explain(runtime, &query, &explanation, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(explanation.noop, 1);
    ck_assert_uint_eq(explanation.launches, 0);
    query.op = "fp8_einsum";
    ck_assert_int_eq(cbn_explain(runtime, &query, &explanation, NULL), CBN_STATUS_UNSUPPORTED);
    cbn_runtime_destroy(runtime);
}
END_TEST

static void launch_one(const int64_t *params, const int64_t *facts, struct cbn_geometry *ret_geometry)
{
    (void)params;
    (void)facts;
    *ret_geometry = (struct cbn_geometry){.grid = {1, 1, 1}, .block = {32, 1, 1}};
}

START_TEST(a_family_of_ones_own_registers_once)
{
    static const char *const facts[] = {"m", "arch"};
    static const struct cbn_guard any_m[] = {{"m", CBN_RELATION_GE, 0, 1, 0}};
    static const struct cbn_candidate candidates[] = {
        {.name = "plain",
         .source = "extern \"C\" __global__ void f(int x) {}",
         .source_name = "f.cu",
         .symbol = "f",
         .geometry = launch_one,
         .argument_bytes = 4}};
    static const struct cbn_policy_rule rules[] = {{"default", "plain", any_m, 1, 0}};
    struct cbn_family family = {.size = sizeof(family),
                                .argument_layout = 1,
                                .name = "own_op",
                                .facts = facts,
                                .fact_count = 2,
                                .sweep_fact = "m",
                                .candidates = candidates,
                                .candidate_count = 1,
                                .rules = rules,
                                .rule_count = 1};
    struct cbn_runtime_options options = stub_options(folder, NULL);
    options.policy = "reference"; /* which this family lacks: its default serves */
    struct cbn_runtime *runtime = create(&options);
    struct cbn_error error = {0};
    ck_assert_msg(cbn_family_register(runtime, &family, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_int_eq(cbn_family_register(runtime, &family, &error), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "own_op"));
    family.name = "fp8_gemm";
    ck_assert_int_eq(cbn_family_register(runtime, &family, &error), CBN_STATUS_INVALID);
    cbn_runtime_destroy(runtime);
}
END_TEST

START_TEST(status_numbers_are_pinned)
{
    static const char *const names[] = {"OK",           "INVALID",    "UNSUPPORTED", "NOT_FOUND", "NO_DRIVER",
                                        "NO_COMPILER",  "COMPILE_FAILED", "NO_MEMORY", "IO",      "DAMAGED",
                                        "INCOMPATIBLE", "TIMEOUT",    "NOT_LOADED",  "MISS",      "UNTRUSTED",
                                        "CUDA",         "LIMIT",      "PARTIAL",     "INTERNAL"};
    for (int32_t i = 0; i < (int32_t)(sizeof(names) / sizeof(names[0])); i++)
        ck_assert_str_eq(cbn_status_name(i), names[i]);
    ck_assert_str_eq(cbn_status_name((int32_t)(sizeof(names) / sizeof(names[0]))), "UNKNOWN");
    ck_assert_uint_eq(sizeof(struct cbn_error), 512);
    ck_assert_uint_eq(sizeof(struct cbn_tensor), 80);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime");
    TCase *tests = tcase_create("runtime");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, option_beats_environment_beats_default);
    tcase_add_test(tests, no_home_is_memory_only_and_said_once);
    tcase_add_test(tests, options_struct_is_versioned);
    tcase_add_test(tests, warm_builds_each_once_and_check_agrees);
    tcase_add_test(tests, a_base_serves_what_was_warmed);
    tcase_add_test(tests, failures_are_partial_and_carry_the_log);
    tcase_add_test(tests, uncovered_is_told_apart);
    tcase_add_test(tests, enumeration_knows_the_single_row_at_an_odd_lda);
    tcase_add_test(tests, what_no_candidate_takes_is_uncovered);
    tcase_add_test(tests, explain_says_what_is_cached);
    tcase_add_test(tests, a_family_of_ones_own_registers_once);
    tcase_add_test(tests, status_numbers_are_pinned);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
