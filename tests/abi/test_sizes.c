/*
 * Structs of older and newer callers. An input struct cut at any field does what the whole struct does with its
 * defaults there, and not a byte behind `size` is read; bytes that this library does not know are refused where they
 * are set. An output struct is filled up to its size. What fails leaves its outputs as they were.
 */
#include <stdarg.h>

#include "unit/ops_fixture.h"

#define POISON 0xA5
#define TAIL_BYTES 24 /* what a newer library may have appended */
#define CONFIG CBN_TEST_SOURCE_DIR "/tests/data/models/DeepSeek-V3.json"

/* What a call said and did. */
struct outcome {
    int32_t status;
    char message[CBN_ERROR_MESSAGE_BYTES];
    char seen[4096];
};

struct input {
    const char *name;
    size_t bytes;
    const size_t *cuts;            /* ends in 0 */
    const void *(*whole)(void);    /* sound arguments, every field that can be set is set */
    const void *(*defaults)(void); /* the INIT macro */
    void (*call)(const void *given, struct outcome *outcome);
};

static void set_up(void)
{
    open_fake();
    struct cbn_runtime_options options = fake_options(shared_folder);
    create_runtime(&options);
}

static void tear_down(void)
{
    close_runtime();
}

static void see(struct outcome *outcome, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void see(struct outcome *outcome, const char *format, ...)
{
    size_t length = strlen(outcome->seen);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(outcome->seen + length, sizeof(outcome->seen) - length, format, args);
    va_end(args);
}

static void note_status(struct outcome *outcome, int32_t status, const struct cbn_error *err)
{
    outcome->status = status;
    (void)snprintf(outcome->message, sizeof(outcome->message), "%s", status == CBN_STATUS_OK ? "" : err->message);
}

static void see_launch(struct outcome *outcome, uint32_t before)
{
    see(outcome, "%u launches", fake.launch_count() - before);
    if (fake.launch_count() == before)
        return;
    struct fake_launch launch = last_launch();
    see(outcome, " %s %u,%u,%u pdl %u sum %llx", launch.kernel, launch.grid[0], launch.grid[1], launch.grid[2],
        launch.pdl, (unsigned long long)launch.image_sum);
    for (uint32_t i = 0; i < launch.parameter_bytes; i++)
        see(outcome, "%02x", launch.parameters[i]);
}

/* ---- the structs: cuts at every field, a call each ---- */

#define AT(type, field) offsetof(struct type, field)
#define WHOLE(type, ...)                                                                                               \
    static struct type made;                                                                                           \
    made = (struct type)__VA_ARGS__;                                                                                   \
    return &made;
#define DEFAULTS(type, macro)                                                                                          \
    static const void *type##_defaults(void)                                                                           \
    {                                                                                                                  \
        static const struct type made = macro;                                                                         \
        return &made;                                                                                                  \
    }

DEFAULTS(cbn_fp8_gemm_args, CBN_FP8_GEMM_ARGS_INIT)
DEFAULTS(cbn_fp8_quantize_args, CBN_FP8_QUANTIZE_ARGS_INIT)
DEFAULTS(cbn_fp8_gemm_plan_options, CBN_FP8_GEMM_PLAN_OPTIONS_INIT)
DEFAULTS(cbn_fp8_gemm_run_args, CBN_FP8_GEMM_RUN_ARGS_INIT)
DEFAULTS(cbn_launch_args, CBN_LAUNCH_ARGS_INIT)
DEFAULTS(cbn_query, CBN_QUERY_INIT)
DEFAULTS(cbn_runtime_options, CBN_RUNTIME_OPTIONS_INIT)
DEFAULTS(cbn_model_options, CBN_MODEL_OPTIONS_INIT)
DEFAULTS(cbn_prune_options, CBN_PRUNE_OPTIONS_INIT)
DEFAULTS(cbn_pack_options, CBN_PACK_OPTIONS_INIT)
DEFAULTS(cbn_unpack_options, CBN_UNPACK_OPTIONS_INIT)
DEFAULTS(cbn_warm_options, {.size = sizeof(struct cbn_warm_options)})
DEFAULTS(cbn_family, {.size = sizeof(struct cbn_family)})

static const size_t gemm_cuts[] = {AT(cbn_fp8_gemm_args, flags),
                                   AT(cbn_fp8_gemm_args, a_scale_layout),
                                   AT(cbn_fp8_gemm_args, w_scale_gran),
                                   AT(cbn_fp8_gemm_args, max_sms),
                                   AT(cbn_fp8_gemm_args, miss_policy),
                                   AT(cbn_fp8_gemm_args, a),
                                   AT(cbn_fp8_gemm_args, a_scale),
                                   AT(cbn_fp8_gemm_args, w),
                                   AT(cbn_fp8_gemm_args, w_scale),
                                   AT(cbn_fp8_gemm_args, d),
                                   AT(cbn_fp8_gemm_args, bias),
                                   AT(cbn_fp8_gemm_args, m_valid),
                                   AT(cbn_fp8_gemm_args, workspace),
                                   AT(cbn_fp8_gemm_args, workspace_bytes),
                                   0};

static const void *gemm_whole(void)
{
    static struct cbn_fp8_gemm_args args;
    args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    give_bias(&args, CBN_DTYPE_FP32);
    args.flags = CBN_OP_NO_PDL;
    args.max_sms = 100;
    args.w_scale_gran = CBN_GRAN_BLOCK;
    args.miss_policy = CBN_MISS_BLOCK;
    args.m_valid = PLACE(6);
    args.workspace = PLACE(7);
    args.workspace_bytes = 1 << 20;
    return &args;
}

static void gemm_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    uint32_t before = fake.launch_count();
    uint64_t bytes = 77;
    note_status(outcome, cbn_fp8_gemm(runtime, given, stream, &err), &err);
    see_launch(outcome, before);
    int32_t status = cbn_fp8_gemm_workspace_bytes(runtime, given, &bytes, &err);
    see(outcome, " workspace %d %llu", status, (unsigned long long)bytes);
    ck_assert(status == CBN_STATUS_OK || bytes == 77);
}

static const size_t quantize_cuts[] = {AT(cbn_fp8_quantize_args, flags),    AT(cbn_fp8_quantize_args, scale_layout),
                                       AT(cbn_fp8_quantize_args, max_sms),  AT(cbn_fp8_quantize_args, miss_policy),
                                       AT(cbn_fp8_quantize_args, reserved), AT(cbn_fp8_quantize_args, x),
                                       AT(cbn_fp8_quantize_args, codes),    AT(cbn_fp8_quantize_args, scales),
                                       AT(cbn_fp8_quantize_args, m_valid),  0};

static const void *quantize_whole(void)
{
    static struct cbn_fp8_quantize_args args;
    args = quantize_args(8, 512, CBN_DTYPE_BF16);
    args.flags = CBN_OP_PROPAGATE;
    args.max_sms = 50;
    args.miss_policy = CBN_MISS_BLOCK;
    args.m_valid = PLACE(6);
    return &args;
}

static void quantize_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    uint32_t before = fake.launch_count();
    note_status(outcome, cbn_fp8_quantize(runtime, given, stream, &err), &err);
    see_launch(outcome, before);
}

static const size_t plan_cuts[] = {AT(cbn_fp8_gemm_plan_options, flags),
                                   AT(cbn_fp8_gemm_plan_options, in),
                                   AT(cbn_fp8_gemm_plan_options, out),
                                   AT(cbn_fp8_gemm_plan_options, a_scale_layout),
                                   AT(cbn_fp8_gemm_plan_options, w_scale_gran),
                                   AT(cbn_fp8_gemm_plan_options, max_sms),
                                   AT(cbn_fp8_gemm_plan_options, miss_policy),
                                   AT(cbn_fp8_gemm_plan_options, max_m),
                                   AT(cbn_fp8_gemm_plan_options, w),
                                   AT(cbn_fp8_gemm_plan_options, w_scale),
                                   AT(cbn_fp8_gemm_plan_options, bias),
                                   0};

static const struct cbn_fp8_gemm_plan_options *plan_whole(void)
{
    static struct cbn_fp8_gemm_plan_options options;
    struct cbn_fp8_gemm_args args = gemm_args(1, 256, 512, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    give_bias(&args, CBN_DTYPE_FP32);
    options = (struct cbn_fp8_gemm_plan_options)CBN_FP8_GEMM_PLAN_OPTIONS_INIT;
    options.flags = CBN_OP_NO_PDL;
    options.in = CBN_DTYPE_BF16;
    options.out = CBN_DTYPE_BF16;
    options.w_scale_gran = CBN_GRAN_BLOCK;
    options.max_sms = 100;
    options.miss_policy = CBN_MISS_BLOCK;
    options.w = args.w;
    options.w_scale = args.w_scale;
    options.bias = args.bias;
    return &options;
}

static const void *plan_whole_bytes(void)
{
    return plan_whole();
}

static void plan_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    struct cbn_plan *plan = NULL;
    uint64_t bytes = 0;
    note_status(outcome, cbn_fp8_gemm_plan_create(runtime, given, &plan, &err), &err);
    ck_assert((plan != NULL) == (outcome->status == CBN_STATUS_OK));
    if (plan)
        see(outcome, "%d %llu", cbn_fp8_gemm_plan_workspace_bytes(plan, 64, &bytes, NULL), (unsigned long long)bytes);
    cbn_plan_destroy(plan);
}

static const size_t run_cuts[] = {AT(cbn_fp8_gemm_run_args, flags),           AT(cbn_fp8_gemm_run_args, a),
                                  AT(cbn_fp8_gemm_run_args, a_scale),         AT(cbn_fp8_gemm_run_args, d),
                                  AT(cbn_fp8_gemm_run_args, m_valid),         AT(cbn_fp8_gemm_run_args, workspace),
                                  AT(cbn_fp8_gemm_run_args, workspace_bytes), 0};

static const void *run_whole(void)
{
    static struct cbn_fp8_gemm_run_args run;
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    run = (struct cbn_fp8_gemm_run_args)CBN_FP8_GEMM_RUN_ARGS_INIT;
    run.a = args.a;
    run.d = args.d;
    run.m_valid = PLACE(6);
    run.workspace = PLACE(7);
    run.workspace_bytes = 1 << 20;
    return &run;
}

static void run_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    struct cbn_plan *plan = NULL;
    ck_assert_int_eq(cbn_fp8_gemm_plan_create(runtime, plan_whole(), &plan, &err), CBN_STATUS_OK);
    uint32_t before = fake.launch_count();
    note_status(outcome, cbn_fp8_gemm_plan_run(plan, given, stream, &err), &err);
    see_launch(outcome, before);
    cbn_plan_destroy(plan);
}

static const size_t launch_cuts[] = {AT(cbn_launch_args, flags),
                                     AT(cbn_launch_args, op),
                                     AT(cbn_launch_args, facts),
                                     AT(cbn_launch_args, arguments),
                                     AT(cbn_launch_args, fact_count),
                                     AT(cbn_launch_args, argument_bytes),
                                     AT(cbn_launch_args, max_sms),
                                     AT(cbn_launch_args, miss_policy),
                                     AT(cbn_launch_args, workspace),
                                     AT(cbn_launch_args, workspace_bytes),
                                     0};

static const void *launch_whole(void)
{
    static struct cbn_launch_args args;
    args = (struct cbn_launch_args)CBN_LAUNCH_ARGS_INIT;
    args.flags = CBN_OP_NO_PDL;
    args.op = "none";
    args.max_sms = 3;
    args.miss_policy = CBN_MISS_NEVER;
    return &args;
}

static void launch_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    note_status(outcome, cbn_launch(runtime, given, stream, &err), &err);
}

#define PROFILE(field) AT(cbn_query, profile) + AT(cbn_profile, field)
static const size_t query_cuts[] = {AT(cbn_query, arch),
                                    AT(cbn_query, op),
                                    AT(cbn_query, m),
                                    AT(cbn_query, n),
                                    AT(cbn_query, k),
                                    AT(cbn_query, groups),
                                    AT(cbn_query, lda),
                                    AT(cbn_query, profile),
                                    PROFILE(in),
                                    PROFILE(out),
                                    PROFILE(weight_scale),
                                    PROFILE(scale_gran),
                                    PROFILE(act_scale),
                                    PROFILE(pow2),
                                    PROFILE(bias),
                                    PROFILE(pdl),
                                    PROFILE(propagate),
                                    PROFILE(sms),
                                    PROFILE(max_sms),
                                    PROFILE(strict_route),
                                    PROFILE(approx),
                                    PROFILE(policy),
                                    PROFILE(disable),
                                    PROFILE(enable),
                                    AT(cbn_query, facts),
                                    AT(cbn_query, fact_count),
                                    AT(cbn_query, reserved),
                                    0};

static const void *query_whole(void)
{
    static struct cbn_query query;
    query = (struct cbn_query)CBN_QUERY_INIT;
    query.arch = CBN_ARCH(90, 'a');
    query.op = "fp8_gemm";
    query.m = 16;
    query.n = 4096;
    query.k = 7168;
    query.lda = 7424;
    query.profile.out = CBN_DTYPE_FP16;
    query.profile.weight_scale = CBN_SCALE_UE8M0;
    query.profile.scale_gran = CBN_GRAN_ROW;
    query.profile.pow2 = 1;
    query.profile.bias = CBN_BIAS_FP32;
    query.profile.pdl = 0;
    query.profile.propagate = 1;
    query.profile.sms = 78;
    query.profile.max_sms = 60;
    query.profile.policy = "reference";
    query.profile.disable = "swap_ab";
    return &query;
}

static void query_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    struct cbn_explanation explanation = {.size = sizeof(explanation), .launches = 99};
    note_status(outcome, cbn_explain(runtime, given, &explanation, &err), &err);
    see(outcome, "%u %u %u %s", explanation.chosen, explanation.noop, explanation.launches, explanation.spec.text);
    for (uint32_t i = 0; i < explanation.candidate_count; i++)
        see(outcome, " %s %s %lld", explanation.candidates[i].kernel, explanation.candidates[i].guard,
            (long long)explanation.candidates[i].value);
    ck_assert(outcome->status == CBN_STATUS_OK || explanation.launches == 99);
    struct cbn_warm_result result = {.size = sizeof(result), .requested = 98};
    int32_t status = cbn_check(runtime, given, 1, NULL, &result, &err);
    see(outcome, " check %d %u", status, result.requested);
    ck_assert(status == CBN_STATUS_OK || result.requested == 98);
}

static const size_t runtime_cuts[] = {AT(cbn_runtime_options, flags),
                                      AT(cbn_runtime_options, cache_dir),
                                      AT(cbn_runtime_options, base_dirs),
                                      AT(cbn_runtime_options, base_count),
                                      AT(cbn_runtime_options, miss_policy),
                                      AT(cbn_runtime_options, max_bytes),
                                      AT(cbn_runtime_options, nvrtc_path),
                                      AT(cbn_runtime_options, cuda_path),
                                      AT(cbn_runtime_options, builder_path),
                                      AT(cbn_runtime_options, build_timeout_ms),
                                      AT(cbn_runtime_options, lock_timeout_ms),
                                      AT(cbn_runtime_options, flight_timeout_ms),
                                      AT(cbn_runtime_options, reserved),
                                      AT(cbn_runtime_options, policy),
                                      AT(cbn_runtime_options, disable),
                                      AT(cbn_runtime_options, enable),
                                      AT(cbn_runtime_options, event),
                                      AT(cbn_runtime_options, event_user),
                                      AT(cbn_runtime_options, fleet),
                                      0};

static void ignore_event(void *user, const struct cbn_event *event)
{
    (void)user, (void)event;
}

static const void *runtime_whole(void)
{
    static struct cbn_runtime_options options;
    options = (struct cbn_runtime_options)CBN_RUNTIME_OPTIONS_INIT;
    options.flags = CBN_RUNTIME_MEMORY_ONLY | CBN_RUNTIME_IGNORE_ENV;
    options.miss_policy = CBN_MISS_NEVER;
    options.max_bytes = 1 << 24;
    options.nvrtc_path = "/nowhere/libnvrtc.so";
    options.cuda_path = LIBCUDA;
    options.builder_path = "/nowhere/builder";
    options.build_timeout_ms = 1;
    options.lock_timeout_ms = 2;
    options.flight_timeout_ms = 3;
    options.policy = "reference";
    options.disable = "swap_ab";
    options.enable = "tcgen05";
    options.event = ignore_event;
    options.event_user = &fake;
    return &options;
}

static void see_setting(void *user, const char *name, const char *value, const char *origin)
{
    see(user, "%s=%s (%s)\n", name, value ? value : "", origin);
}

/* An environment of its own: options that are cut off fall back to it. */
static void runtime_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    struct cbn_runtime *made = NULL;
    note_status(outcome, cbn_runtime_create(given, &made, &err), &err);
    ck_assert((made != NULL) == (outcome->status == CBN_STATUS_OK));
    if (made)
        cbn_runtime_settings(made, see_setting, outcome);
    cbn_runtime_destroy(made);
}

static const size_t model_cuts[] = {AT(cbn_model_options, reserved), AT(cbn_model_options, tp),
                                    AT(cbn_model_options, ep), 0};

static const void *model_whole(void)
{
    WHOLE(cbn_model_options, {sizeof(struct cbn_model_options), 0, 8, 8})
}

static void model_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    struct cbn_model *model = NULL;
    note_status(outcome, cbn_model_load(CONFIG, given, &model, &err), &err);
    ck_assert((model != NULL) == (outcome->status == CBN_STATUS_OK));
    for (uint32_t i = 0; model && i < cbn_model_shape_count(model); i++)
        see(outcome, "%lld %lld %lld;", (long long)cbn_model_shape_get(model, i)->n,
            (long long)cbn_model_shape_get(model, i)->k, (long long)cbn_model_shape_get(model, i)->groups);
    cbn_model_destroy(model);
}

static const size_t warm_cuts[] = {AT(cbn_warm_options, jobs), AT(cbn_warm_options, event), AT(cbn_warm_options, user),
                                   0};
static uint32_t warm_events, warm_users;

static void count_warm(void *user, const struct cbn_warm_event *event)
{
    (void)event;
    warm_events++;
    warm_users += user != NULL;
}

static const void *warm_whole(void)
{
    WHOLE(cbn_warm_options, {sizeof(struct cbn_warm_options), 1, count_warm, &warm_events})
}

static void warm_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    struct cbn_query query = *(const struct cbn_query *)query_whole();
    struct cbn_warm_result result = {.size = sizeof(result), .requested = 98};
    warm_events = warm_users = 0;
    note_status(outcome, cbn_check(runtime, &query, 1, given, &result, &err), &err);
    see(outcome, "%u events, %u with user, %u", warm_events, warm_users, result.requested);
    ck_assert(outcome->status == CBN_STATUS_OK || result.requested == 98);
}

static const size_t prune_cuts[] = {AT(cbn_prune_options, flags),
                                    AT(cbn_prune_options, max_bytes),
                                    AT(cbn_prune_options, older_than_s),
                                    AT(cbn_prune_options, arch),
                                    AT(cbn_prune_options, compiler_below),
                                    AT(cbn_prune_options, op),
                                    0};

static const void *prune_whole(void)
{
    WHOLE(cbn_prune_options, {sizeof(struct cbn_prune_options), CBN_PRUNE_DRY_RUN | CBN_PRUNE_ALL, 1 << 20, 7,
                              CBN_ARCH(90, 'a'), 13000, "fp8_gemm"})
}

static void prune_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    struct cbn_prune_result result = {.size = sizeof(result), .kept = 97};
    note_status(outcome, cbn_cabinet_prune(runtime, given, NULL, NULL, &result, &err), &err);
    see(outcome, "%llu %llu", (unsigned long long)result.removed, (unsigned long long)result.kept);
    ck_assert(outcome->status == CBN_STATUS_OK || result.kept == 97);
}

static const size_t pack_cuts[] = {AT(cbn_pack_options, arch),
                                   AT(cbn_pack_options, op),
                                   AT(cbn_pack_options, kernel),
                                   AT(cbn_pack_options, keys),
                                   AT(cbn_pack_options, key_count),
                                   AT(cbn_pack_options, fd),
                                   0};

static const char *pack_path(void)
{
    static char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%.4000s/sizes.pack", shared_folder);
    return path;
}

static const void *pack_whole(void)
{
    static const char *const keys[] = {"00112233445566778899aabbccddeeff"};
    WHOLE(cbn_pack_options, {sizeof(struct cbn_pack_options), CBN_ARCH(90, 'a'), "fp8_gemm", "wgmma", keys, 1, -1})
}

static void call_once(void)
{
    struct cbn_error err = {0};
    ck_assert_msg(cbn_fp8_gemm(runtime, gemm_whole(), stream, &err) == CBN_STATUS_OK, "%s", err.message);
}

static void pack_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    struct cbn_pack_result result = {.size = sizeof(result), .entries = 96};
    call_once();
    note_status(outcome, cbn_cabinet_pack(runtime, pack_path(), given, &result, &err), &err);
    see(outcome, "%llu %s", (unsigned long long)result.entries, result.digest);
    ck_assert(outcome->status == CBN_STATUS_OK || result.entries == 96);
}

static const size_t unpack_cuts[] = {AT(cbn_unpack_options, fd), AT(cbn_unpack_options, expect_digest), 0};

static const void *unpack_whole(void)
{
    WHOLE(cbn_unpack_options, {sizeof(struct cbn_unpack_options), -1,
                               "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"})
}

static void unpack_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    struct cbn_unpack_result result = {.size = sizeof(result), .entries = 95};
    call_once();
    ck_assert_int_eq(cbn_cabinet_pack(runtime, pack_path(), NULL, NULL, NULL), CBN_STATUS_OK);
    note_status(outcome, cbn_cabinet_unpack(runtime, pack_path(), given, &result, &err), &err);
    see(outcome, "%llu %s", (unsigned long long)result.entries, result.digest);
    ck_assert(outcome->status == CBN_STATUS_OK || result.entries == 95);
}

static const size_t family_cuts[] = {
    AT(cbn_family, argument_layout), AT(cbn_family, name),       AT(cbn_family, facts),      AT(cbn_family, fact_count),
    AT(cbn_family, noop_count),      AT(cbn_family, noops),      AT(cbn_family, sweep_fact), AT(cbn_family, candidates),
    AT(cbn_family, candidate_count), AT(cbn_family, rule_count), AT(cbn_family, rules),      0};

static const void *family_whole(void)
{
    static const char *const facts[] = {"m", "arch"};
    static const struct cbn_candidate candidates[] = {{.name = "only"}};
    static const struct cbn_policy_rule rules[] = {{.policy = "default", .candidate = "only"}};
    static struct cbn_family family;
    family = (struct cbn_family){.size = sizeof(family),
                                 .argument_layout = 1,
                                 .name = "sized",
                                 .facts = facts,
                                 .fact_count = 2,
                                 .sweep_fact = "m",
                                 .candidates = candidates,
                                 .candidate_count = 1,
                                 .rule_count = 1,
                                 .rules = rules};
    return &family;
}

static void family_call(const void *given, struct outcome *outcome)
{
    struct cbn_error err = {0};
    struct cbn_runtime *made = NULL;
    ck_assert_int_eq(cbn_runtime_create(runtime_whole(), &made, NULL), CBN_STATUS_OK);
    note_status(outcome, cbn_family_register(made, given, &err), &err);
    cbn_runtime_destroy(made);
}

#define INPUT(type, prefix, whole)                                                                                     \
    {                                                                                                                  \
#type, sizeof(struct type), prefix##_cuts, whole, type##_defaults, prefix##_call                               \
    }
static const struct input inputs[] = {
    INPUT(cbn_fp8_gemm_args, gemm, gemm_whole),
    INPUT(cbn_fp8_quantize_args, quantize, quantize_whole),
    INPUT(cbn_fp8_gemm_plan_options, plan, plan_whole_bytes),
    INPUT(cbn_fp8_gemm_run_args, run, run_whole),
    INPUT(cbn_launch_args, launch, launch_whole),
    INPUT(cbn_query, query, query_whole),
    INPUT(cbn_runtime_options, runtime, runtime_whole),
    INPUT(cbn_model_options, model, model_whole),
    INPUT(cbn_warm_options, warm, warm_whole),
    INPUT(cbn_prune_options, prune, prune_whole),
    INPUT(cbn_pack_options, pack, pack_whole),
    INPUT(cbn_unpack_options, unpack, unpack_whole),
    INPUT(cbn_family, family, family_whole),
};
#define INPUT_COUNT (int)(sizeof(inputs) / sizeof(inputs[0]))

/* ---- input structs ---- */

static void expect_same(const struct input *input, const struct outcome *got, const struct outcome *wanted, size_t cut)
{
    ck_assert_msg(got->status == wanted->status && strcmp(got->message, wanted->message) == 0,
                  "%s cut at %zu: %s (%s) in place of %s (%s)", input->name, cut, cbn_status_name(got->status),
                  got->message, cbn_status_name(wanted->status), wanted->message);
    ck_assert_msg(strcmp(got->seen, wanted->seen) == 0, "%s cut at %zu: did\n%s\nin place of\n%s", input->name, cut,
                  got->seen, wanted->seen);
}

/* A struct in a block of exactly its bytes, so that a sanitizer sees a read behind them. */
static void call_sized(const struct input *input, const void *bytes, size_t size, struct outcome *outcome)
{
    unsigned char *given = malloc(size);
    uint32_t said = (uint32_t)size;
    ck_assert_ptr_nonnull(given);
    memcpy(given, bytes, size);
    memcpy(given, &said, sizeof(said));
    *outcome = (struct outcome){0};
    input->call(given, outcome);
    free(given);
}

START_TEST(older_callers)
{
    const struct input *input = &inputs[_i];
    for (const size_t *cut = input->cuts; *cut; cut++) {
        unsigned char mixed[1024];
        struct outcome wanted, got;
        ck_assert_uint_le(input->bytes, sizeof(mixed));
        memcpy(mixed, input->defaults(), input->bytes);
        memcpy(mixed, input->whole(), *cut);
        call_sized(input, mixed, input->bytes, &wanted);
        call_sized(input, mixed, *cut, &got);
        expect_same(input, &got, &wanted, *cut);
    }
}
END_TEST

START_TEST(newer_callers)
{
    const struct input *input = &inputs[_i];
    unsigned char longer[1024 + TAIL_BYTES] = {0};
    struct outcome wanted, got;
    memcpy(longer, input->whole(), input->bytes);
    call_sized(input, longer, input->bytes, &wanted);
    call_sized(input, longer, input->bytes + TAIL_BYTES, &got);
    expect_same(input, &got, &wanted, input->bytes + TAIL_BYTES);
    for (size_t i = 0; i < TAIL_BYTES; i++) {
        longer[input->bytes + i] = 1;
        call_sized(input, longer, input->bytes + TAIL_BYTES, &got);
        ck_assert_msg(got.status == CBN_STATUS_INVALID && strstr(got.message, input->name),
                      "%s with byte %zu behind it: %s (%s)", input->name, i, cbn_status_name(got.status), got.message);
        longer[input->bytes + i] = 0;
    }
}
END_TEST

START_TEST(no_size_at_all)
{
    const struct input *input = &inputs[_i];
    for (uint32_t size = 0; size < sizeof(size); size++) {
        unsigned char bytes[1024];
        struct outcome got = {0};
        memcpy(bytes, input->whole(), input->bytes);
        memcpy(bytes, &size, sizeof(size));
        input->call(bytes, &got);
        ck_assert_msg(got.status == CBN_STATUS_INVALID && strstr(got.message, input->name), "%s of size %u: %s (%s)",
                      input->name, size, cbn_status_name(got.status), got.message);
    }
}
END_TEST

/* ---- output structs ---- */

static void fill_stats(void *ret)
{
    cbn_runtime_stats(runtime, ret);
}

static void fill_version(void *ret)
{
    cbn_version_get(ret);
}

static void fill_explanation(void *ret)
{
    ck_assert_int_eq(cbn_explain(runtime, query_whole(), ret, NULL), CBN_STATUS_OK);
}

static void fill_check(void *ret)
{
    ck_assert_int_eq(cbn_check(runtime, query_whole(), 1, NULL, ret, NULL), CBN_STATUS_OK);
}

static void fill_verify(void *ret)
{
    ck_assert_int_eq(cbn_cabinet_verify(runtime, 0, NULL, NULL, ret, NULL), CBN_STATUS_OK);
}

static void fill_prune(void *ret)
{
    ck_assert_int_eq(cbn_cabinet_prune(runtime, prune_whole(), NULL, NULL, ret, NULL), CBN_STATUS_OK);
}

static void fill_pack(void *ret)
{
    call_once();
    ck_assert_int_eq(cbn_cabinet_pack(runtime, pack_path(), NULL, ret, NULL), CBN_STATUS_OK);
}

static void fill_unpack(void *ret)
{
    call_once();
    ck_assert_int_eq(cbn_cabinet_pack(runtime, pack_path(), NULL, NULL, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn_cabinet_unpack(runtime, pack_path(), NULL, ret, NULL), CBN_STATUS_OK);
}

static const struct {
    const char *name;
    size_t bytes;
    void (*fill)(void *ret);
    size_t changing; /* offset of a field that differs from call to call; 0: none */
} outputs[] = {
    {"cbn_stats", sizeof(struct cbn_stats), fill_stats, 0},
    {"cbn_version", sizeof(struct cbn_version), fill_version, 0},
    {"cbn_explanation", sizeof(struct cbn_explanation), fill_explanation, 0},
    {"cbn_warm_result", sizeof(struct cbn_warm_result), fill_check, offsetof(struct cbn_warm_result, wall_ms)},
    {"cbn_verify_result", sizeof(struct cbn_verify_result), fill_verify, 0},
    {"cbn_prune_result", sizeof(struct cbn_prune_result), fill_prune, 0},
    {"cbn_pack_result", sizeof(struct cbn_pack_result), fill_pack, 0},
    {"cbn_unpack_result", sizeof(struct cbn_unpack_result), fill_unpack, 0},
};
#define OUTPUT_COUNT (int)(sizeof(outputs) / sizeof(outputs[0]))

/* Every size at all, not only those of fields: an output is bytes. */
START_TEST(outputs_are_filled_up_to_their_size)
{
    size_t bytes = outputs[_i].bytes, compared = outputs[_i].changing ? outputs[_i].changing : bytes;
    unsigned char *whole = malloc(bytes);
    uint32_t said = (uint32_t)bytes;
    memset(whole, POISON, bytes);
    memcpy(whole, &said, sizeof(said));
    outputs[_i].fill(whole);
    for (size_t size = sizeof(said); size <= bytes + TAIL_BYTES; size += size < 256 ? 4 : 60) {
        unsigned char *ret = malloc(size);
        said = (uint32_t)size;
        memset(ret, POISON, size);
        memcpy(ret, &said, sizeof(said));
        outputs[_i].fill(ret);
        ck_assert_msg(memcmp(ret, &said, sizeof(said)) == 0, "%s of %zu: size was changed", outputs[_i].name, size);
        for (size_t at = sizeof(said); at < size; at++)
            ck_assert_msg(at >= bytes ? ret[at] == POISON : at >= compared || ret[at] == whole[at],
                          "%s of %zu: byte %zu", outputs[_i].name, size, at);
        free(ret);
    }
    free(whole);
}
END_TEST

/* ---- failures leave outputs alone ---- */

START_TEST(failures_touch_no_output)
{
    struct cbn_query wrong = *(const struct cbn_query *)query_whole();
    struct cbn_explanation explanation;
    struct cbn_warm_result result;
    uint32_t arch = 5;
    uint64_t bytes = 6;
    void *const marker = &wrong;
    struct cbn_runtime *made = marker;
    struct cbn_model *model = marker;
    struct cbn_plan *plan = marker;
    wrong.arch = 1;
    memset(&explanation, POISON, sizeof(explanation));
    memset(&result, POISON, sizeof(result));
    ck_assert_int_eq(cbn_explain(runtime, &wrong, &explanation, NULL), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_explain(runtime, NULL, &explanation, NULL), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_check(runtime, &wrong, 1, NULL, &result, NULL), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_warm(runtime, &wrong, 1, NULL, &result, NULL), CBN_STATUS_INVALID);
    for (size_t i = 0; i < sizeof(explanation); i++)
        ck_assert_uint_eq(((unsigned char *)&explanation)[i], POISON);
    for (size_t i = 0; i < sizeof(result); i++)
        ck_assert_uint_eq(((unsigned char *)&result)[i], POISON);
    ck_assert_int_eq(cbn_arch_parse("sm_90", &arch, NULL), CBN_STATUS_INVALID);
    ck_assert_uint_eq(arch, 5);
    struct cbn_fp8_gemm_args args = CBN_FP8_GEMM_ARGS_INIT;
    args.a.extents[0] = 1;
    args.w.extents[0] = 1;
    ck_assert_int_eq(cbn_fp8_gemm_workspace_bytes(runtime, &args, &bytes, NULL), CBN_STATUS_INVALID);
    ck_assert_uint_eq(bytes, 6);
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    options.flags = CBN_RUNTIME_IGNORE_ENV;
    options.policy = "no such policy";
    ck_assert_int_ne(cbn_runtime_create(&options, &made, NULL), CBN_STATUS_OK);
    ck_assert_ptr_eq(made, marker);
    ck_assert_int_ne(cbn_model_load("/nowhere", NULL, &model, NULL), CBN_STATUS_OK);
    ck_assert_int_ne(cbn_manifest_load("/nowhere", &model, NULL), CBN_STATUS_OK);
    ck_assert_ptr_eq(model, marker);
    struct cbn_fp8_gemm_plan_options plan_options = CBN_FP8_GEMM_PLAN_OPTIONS_INIT;
    ck_assert_int_ne(cbn_fp8_gemm_plan_create(runtime, &plan_options, &plan, NULL), CBN_STATUS_OK);
    ck_assert_ptr_eq(plan, marker);
}
END_TEST

/* Structs without a size field are frozen: no byte may ever be added. */
_Static_assert(sizeof(struct cbn_error) == 512, "cbn_error is frozen");
_Static_assert(sizeof(struct cbn_tensor) == 80, "cbn_tensor is frozen");

int main(void)
{
    Suite *suite = suite_create("sizes");
    TCase *cases = tcase_create("sizes");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, older_callers, 0, INPUT_COUNT);
    tcase_add_loop_test(cases, newer_callers, 0, INPUT_COUNT);
    tcase_add_loop_test(cases, no_size_at_all, 0, INPUT_COUNT);
    tcase_add_loop_test(cases, outputs_are_filled_up_to_their_size, 0, OUTPUT_COUNT);
    tcase_add_test(cases, failures_touch_no_output);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
