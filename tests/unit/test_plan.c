/*
 * Plans of fp8_gemm on the fake driver: what create loads, what a run asks, and what it refuses.
 */
#include "api/plan.h"
#include "ops_fixture.h"

#define N 256
#define K 512

static void set_up(void)
{
    open_fake();
    struct cbn_runtime_options options = fake_options(shared_folder);
    options.policy = "reference";
    create_runtime(&options);
}

static void tear_down(void)
{
    close_runtime();
}

static struct cbn_fp8_gemm_plan_options plan_options(int64_t max_m)
{
    struct cbn_fp8_gemm_args args = gemm_args(1, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    struct cbn_fp8_gemm_plan_options options = CBN_FP8_GEMM_PLAN_OPTIONS_INIT;
    options.in = CBN_DTYPE_BF16;
    options.out = CBN_DTYPE_BF16;
    options.max_m = max_m;
    options.w = args.w;
    options.w_scale = args.w_scale;
    return options;
}

static struct cbn_fp8_gemm_run_args run_args(int64_t m)
{
    struct cbn_fp8_gemm_args args = gemm_args(m, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    struct cbn_fp8_gemm_run_args run = CBN_FP8_GEMM_RUN_ARGS_INIT;
    run.a = args.a;
    run.d = args.d;
    run.workspace = args.workspace;
    run.workspace_bytes = args.workspace_bytes;
    return run;
}

static struct cbn_plan *create(const struct cbn_fp8_gemm_plan_options *options)
{
    struct cbn_plan *plan = NULL;
    ck_assert_msg(cbn_fp8_gemm_plan_create(runtime, options, &plan, &error) == CBN_STATUS_OK, "%s", error.message);
    return plan;
}

static void run(struct cbn_plan *plan, int64_t m)
{
    struct cbn_fp8_gemm_run_args args = run_args(m);
    ck_assert_msg(cbn_fp8_gemm_plan_run(plan, &args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
}

/* The fp8_quantize of the last call that had one. */
static struct fake_launch first_of_two(void)
{
    struct fake_launch launch;
    ck_assert_uint_ge(fake.launch_count(), 2);
    ck_assert(fake.launch_get(fake.launch_count() - 2, &launch));
    ck_assert_str_eq(launch.kernel, "cbn_fp8_quantize");
    return launch;
}

START_TEST(create_loads_everything_that_runs_can_reach)
{
    struct cbn_fp8_gemm_plan_options options = plan_options(850);
    struct cbn_plan *plan = create(&options);
    struct cbn_stats created = stats_now();
    ck_assert_uint_eq(created.calls, 0);
    ck_assert_uint_ge(created.loads, 5); /* swap_ab for several counts of tokens, wgmma for some, one fp8_quantize */
    for (int64_t m = 0; m <= 850; m += m < 70 ? 1 : 39)
        run(plan, m);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.loads, created.loads);
    ck_assert_uint_eq(stats.noops, 1);
    ck_assert_uint_eq(stats.launches, 2 * (stats.calls - 1)); /* fp8_quantize ahead of each */
    ck_assert_uint_eq(stats.memory_hits - created.memory_hits, stats.launches);
    ck_assert_uint_eq(fake.launch_count(), stats.launches);
    cbn_plan_destroy(plan);
}
END_TEST

/* Rows of D that no multiple of 16 bytes separates: the alignment of contiguous A and D is part of what create loads. */
START_TEST(create_loads_for_the_rows_that_runs_bring)
{
    static const int64_t widths[] = {100, 101};
    for (int i = 0; i < 2; i++) {
        struct cbn_fp8_gemm_plan_options options = plan_options(40);
        struct cbn_fp8_gemm_args args = gemm_args(8, widths[i], K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
        options.w = args.w;
        options.w_scale = args.w_scale;
        options.bias = args.bias;
        struct cbn_plan *plan = create(&options);
        struct cbn_stats created = stats_now();
        ck_assert_uint_gt(created.loads, 0);
        for (int64_t m = 1; m <= 40; m += 3) {
            args = gemm_args(m, widths[i], K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
            struct cbn_fp8_gemm_run_args given = CBN_FP8_GEMM_RUN_ARGS_INIT;
            given.a = args.a;
            given.d = args.d;
            ck_assert_msg(cbn_fp8_gemm_plan_run(plan, &given, stream, &error) == CBN_STATUS_OK, "%s", error.message);
        }
        ck_assert_uint_eq(stats_now().loads, created.loads);
        cbn_plan_destroy(plan);
    }
}
END_TEST

START_TEST(a_run_asks_the_driver_nothing)
{
    struct cbn_fp8_gemm_plan_options options = plan_options(64);
    struct cbn_plan *plan = create(&options);
    uint32_t before = fake.calls_total();
    run(plan, 1);
    run(plan, 64);
    /* Of the maps only those of A (swap_ab: whole groups, the rest; wgmma: the rest's too) and of D: W's are the plan's. */
    ck_assert_uint_eq(fake.calls("cuLaunchKernelEx"), 4);
    ck_assert_uint_eq(fake.calls_total(), before + 4 + 2 + 2);
    cbn_plan_destroy(plan);
}
END_TEST

START_TEST(a_run_launches_what_the_one_shot_call_launches)
{
    struct cbn_fp8_gemm_args args = gemm_args(33, 200, 300, CBN_DTYPE_E4M3, CBN_DTYPE_FP16);
    give_bias(&args, CBN_DTYPE_FP32);
    args.flags = CBN_OP_NO_PDL;
    args.max_sms = 3;
    args.m_valid = PLACE(6);
    args.workspace = PLACE(7);
    args.workspace_bytes = 0; /* none is needed */
    struct cbn_fp8_gemm_plan_options options = CBN_FP8_GEMM_PLAN_OPTIONS_INIT;
    options.flags = CBN_OP_NO_PDL | CBN_OP_WEIGHTS_STATIC;
    options.max_sms = 3;
    options.in = CBN_DTYPE_E4M3;
    options.out = CBN_DTYPE_FP16;
    options.a_scale_layout = CBN_LAYOUT_COL4;
    options.w = args.w;
    options.w_scale = args.w_scale;
    options.bias = args.bias;
    struct cbn_fp8_gemm_run_args given = CBN_FP8_GEMM_RUN_ARGS_INIT;
    given.a = args.a;
    given.a_scale = args.a_scale;
    given.d = args.d;
    given.m_valid = args.m_valid;
    given.workspace = args.workspace;
    struct cbn_plan *plan = create(&options);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_OK);
    struct fake_launch once = last_launch();
    ck_assert_msg(cbn_fp8_gemm_plan_run(plan, &given, stream, &error) == CBN_STATUS_OK, "%s", error.message);
    struct fake_launch planned = last_launch();
    ck_assert_uint_eq(fake.launch_count(), 2);
    ck_assert_mem_eq(&once, &planned, sizeof(once));
    ck_assert_uint_eq(planned.grid[0], 3);
    ck_assert_uint_eq(planned.pdl, 0);
    cbn_plan_destroy(plan);
}
END_TEST

START_TEST(flags_reach_what_create_loads_and_what_runs_launch)
{
    struct cbn_fp8_gemm_plan_options options = plan_options(8);
    options.flags = CBN_OP_POW2 | CBN_OP_PROPAGATE | CBN_OP_STRICT_ROUTE;
    struct cbn_plan *plan = create(&options);
    run(plan, 8);
    ck_assert_uint_eq(stats_now().loads, 2);
    ck_assert_uint_eq(stats_now().memory_hits, 2);
    struct fake_launch planned = first_of_two();
    struct cbn_fp8_gemm_args args = gemm_args(8, N, K, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    args.flags = options.flags;
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(first_of_two().image_sum, planned.image_sum);
    args.flags = 0;
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_OK);
    ck_assert_uint_ne(first_of_two().image_sum, planned.image_sum);
    struct cbn_fp8_gemm_run_args odd = run_args(8);
    odd.a.data += 2;
    ck_assert_int_eq(cbn_fp8_gemm_plan_run(plan, &odd, stream, &error), CBN_STATUS_UNSUPPORTED);
    cbn_plan_destroy(plan);
}
END_TEST

START_TEST(without_max_m_a_run_loads)
{
    struct cbn_fp8_gemm_plan_options options = plan_options(0);
    struct cbn_plan *plan = create(&options);
    ck_assert_uint_eq(stats_now().loads, 0);
    run(plan, 8);
    run(plan, 8);
    ck_assert_uint_eq(stats_now().loads, 2);
    ck_assert_uint_eq(stats_now().memory_hits, 2);
    void *other = fake.context_create(0);
    fake.context_set(other);
    run(plan, 8); /* loaded: the stream says where */
    struct cbn_fp8_gemm_run_args args = run_args(64);
    ck_assert_int_eq(cbn_fp8_gemm_plan_run(plan, &args, stream, &error), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "context"));
    ck_assert_uint_eq(stats_now().loads, 2);
    cbn_plan_destroy(plan);
}
END_TEST

/* X(name, change of the options `o`; status; words) */
#define CREATE_RULES(X)                                                                                                \
    X(w_missing, o->w.data = 0, INVALID, "w is missing")                                                               \
    X(w_scale_missing, o->w_scale.data = 0, INVALID, "w_scale is missing")                                             \
    X(w_scale_short, o->w_scale.extents[0] = 1, INVALID, "w_scale has extents")                                        \
    X(n_negative, o->w.extents[0] = -1, INVALID, "w.extents[0] is -1")                                                 \
    X(in_unknown, o->in = CBN_DTYPE_INT32, INVALID, "a.dtype is int32")                                                \
    X(in_none, o->in = 0, INVALID, "a.dtype is none")                                                                  \
    X(out_unknown, o->out = CBN_DTYPE_E4M3, INVALID, "d.dtype is e4m3")                                                \
    X(codes_without_layout, o->in = CBN_DTYPE_E4M3, INVALID, "a_scale_layout is NONE")                                 \
    X(layout_unknown, o->a_scale_layout = 6, INVALID, "a_scale_layout is 6")                                           \
    X(gran_unknown, o->w_scale_gran = 9, UNSUPPORTED, "w_scale_gran is 9")                                             \
    X(max_m_negative, o->max_m = -1, INVALID, "max_m is -1")                                                           \
    X(flags_unknown, o->flags = 0x20, INVALID, "0x20")                                                                 \
    X(miss_policy, o->miss_policy = 7, INVALID, "miss_policy is 7")                                                    \
    X(miss, (o->miss_policy = CBN_MISS_NEVER, o->in = CBN_DTYPE_FP16), MISS, "IN=2")                                   \
    X(size_0, o->size = 0, INVALID, "INIT macro")

#define RULE(name, change, status, words)                                                                              \
    static void create_##name(struct cbn_fp8_gemm_plan_options *o)                                                     \
    {                                                                                                                  \
        change;                                                                                                        \
    }
CREATE_RULES(RULE)
#undef RULE

static const struct {
    const char *name;
    void (*change)(struct cbn_fp8_gemm_plan_options *options);
    int32_t status;
    const char *words;
} create_rules[] = {
#define RULE(name, change, status, words) {#name, create_##name, CBN_STATUS_##status, words},
    CREATE_RULES(RULE)
#undef RULE
};

START_TEST(create_rule)
{
    struct cbn_fp8_gemm_plan_options options = plan_options(1);
    struct cbn_plan *plan = (struct cbn_plan *)(uintptr_t)0x77;
    create_rules[_i].change(&options);
    int32_t status = cbn_fp8_gemm_plan_create(runtime, &options, &plan, &error);
    ck_assert_msg(status == create_rules[_i].status && strstr(error.message, create_rules[_i].words),
                  "%s: %s instead of %s: %s", create_rules[_i].name, cbn_status_name(status),
                  cbn_status_name(create_rules[_i].status), error.message);
    ck_assert_ptr_eq(plan, (void *)(uintptr_t)0x77);
}
END_TEST

#define RUN_RULES(X)                                                                                                   \
    X(a_missing, r->a.data = 0, INVALID, "a is missing")                                                               \
    X(d_missing, r->d.data = 0, INVALID, "d is missing")                                                               \
    X(a_dtype, r->a.dtype = CBN_DTYPE_FP16, INVALID, "a.dtype is fp16 (2); give one of: bf16")                         \
    X(d_dtype, r->d.dtype = CBN_DTYPE_FP16, INVALID, "d.dtype is fp16 (2); give one of: bf16")                         \
    X(k_differs, r->a.extents[1] = K - 1, INVALID, "a has extents")                                                    \
    X(n_differs, r->d.extents[1] = N - 1, INVALID, "d has extents")                                                    \
    X(m_negative, r->a.extents[0] = -4, INVALID, "a.extents[0] is -4")                                                 \
    X(lda_short, r->a.strides[0] = 1, INVALID, "below the 512")                                                        \
    X(d_over_w, r->d.data = PLACE(1), INVALID, "overlaps w [")                                                         \
    X(d_over_w_scale, r->d.data = PLACE(2), INVALID, "overlaps w_scale [")                                             \
    X(scale_of_bf16, r->a_scale = tensor_2d(PLACE(4), CBN_DTYPE_FP32, 8, 4, 4, 1), INVALID, "a_scale is given")        \
    X(flags, r->flags = CBN_OP_NO_PDL, INVALID, "0x1 is not known")                                                    \
    X(m_valid, r->m_valid = 1, INVALID, "m_valid")                                                                     \
    X(size_0, r->size = 0, INVALID, "INIT macro")

#define RULE(name, change, status, words)                                                                              \
    static void run_##name(struct cbn_fp8_gemm_run_args *r)                                                            \
    {                                                                                                                  \
        change;                                                                                                        \
    }
RUN_RULES(RULE)
#undef RULE

static const struct {
    const char *name;
    void (*change)(struct cbn_fp8_gemm_run_args *args);
    int32_t status;
    const char *words;
} run_rules[] = {
#define RULE(name, change, status, words) {#name, run_##name, CBN_STATUS_##status, words},
    RUN_RULES(RULE)
#undef RULE
};

START_TEST(run_rule)
{
    struct cbn_fp8_gemm_plan_options options = plan_options(0);
    struct cbn_fp8_gemm_run_args args = run_args(8);
    struct cbn_plan *plan = create(&options);
    run_rules[_i].change(&args);
    int32_t status = cbn_fp8_gemm_plan_run(plan, &args, stream, &error);
    ck_assert_msg(status == run_rules[_i].status && strstr(error.message, run_rules[_i].words),
                  "%s: %s instead of %s: %s", run_rules[_i].name, cbn_status_name(status),
                  cbn_status_name(run_rules[_i].status), error.message);
    ck_assert_uint_eq(fake.launch_count(), 0);
    cbn_plan_destroy(plan);
}
END_TEST

START_TEST(nothing_to_run_is_success)
{
    struct cbn_fp8_gemm_plan_options options = plan_options(0);
    struct cbn_plan *plan = create(&options);
    struct cbn_fp8_gemm_run_args args;
    memset(&args, 0xA5, sizeof(args));
    args.size = sizeof(args);
    args.a.extents[0] = 0;
    ck_assert_int_eq(cbn_fp8_gemm_plan_run(plan, &args, stream, &error), CBN_STATUS_OK);
    cbn_plan_destroy(plan);
    options.w.extents[0] = 0;
    options.w.data = options.w_scale.data = 0;
    options.max_m = 64;
    plan = create(&options);
    args.a.extents[0] = -5;
    ck_assert_int_eq(cbn_fp8_gemm_plan_run(plan, &args, stream, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(stats_now().noops, 2);
    ck_assert_uint_eq(stats_now().loads, 0);
    cbn_plan_destroy(plan);
    cbn_plan_destroy(NULL);
}
END_TEST

START_TEST(weights_may_be_fetched_early_only_while_they_stay)
{
    struct cbn_fp8_gemm_plan_options options = plan_options(0);
    struct cbn_plan *plan = create(&options);
    ck_assert(!cbn__plan_may_fetch_early(plan));
    cbn_plan_weights_changed(plan, 1);
    ck_assert(!cbn__plan_may_fetch_early(plan));
    cbn_plan_destroy(plan);
    options.flags = CBN_OP_WEIGHTS_STATIC;
    plan = create(&options);
    ck_assert(cbn__plan_may_fetch_early(plan));
    cbn_plan_weights_changed(plan, 0);
    ck_assert(!cbn__plan_may_fetch_early(plan));
    cbn_plan_weights_changed(plan, 1);
    ck_assert(cbn__plan_may_fetch_early(plan));
    cbn_plan_destroy(plan);
}
END_TEST

START_TEST(workspace_and_null_arguments)
{
    struct cbn_fp8_gemm_plan_options options = plan_options(0);
    struct cbn_fp8_gemm_run_args args = run_args(8);
    struct cbn_plan *plan = create(&options);
    uint64_t bytes = 77;
    ck_assert_int_eq(cbn_fp8_gemm_plan_workspace_bytes(plan, 0, &bytes, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(bytes, 0);
    ck_assert_int_eq(cbn_fp8_gemm_plan_workspace_bytes(plan, -1, &bytes, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_gemm_plan_workspace_bytes(NULL, 1, &bytes, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_gemm_plan_workspace_bytes(plan, 1, NULL, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_gemm_plan_run(NULL, &args, stream, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_gemm_plan_run(plan, NULL, stream, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_gemm_plan_create(NULL, &options, &plan, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_gemm_plan_create(runtime, NULL, &plan, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_gemm_plan_create(runtime, &options, NULL, &error), CBN_STATUS_INVALID);
    cbn_plan_weights_changed(NULL, 1);
    cbn_plan_destroy(plan);
}
END_TEST

static Suite *suite(void)
{
    Suite *plans = suite_create("plan");
    TCase *cases = tcase_create("plans");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 240);
    tcase_add_test(cases, create_loads_everything_that_runs_can_reach);
    tcase_add_test(cases, create_loads_for_the_rows_that_runs_bring);
    tcase_add_test(cases, a_run_asks_the_driver_nothing);
    tcase_add_test(cases, a_run_launches_what_the_one_shot_call_launches);
    tcase_add_test(cases, flags_reach_what_create_loads_and_what_runs_launch);
    tcase_add_test(cases, without_max_m_a_run_loads);
    tcase_add_loop_test(cases, create_rule, 0, sizeof(create_rules) / sizeof(create_rules[0]));
    tcase_add_loop_test(cases, run_rule, 0, sizeof(run_rules) / sizeof(run_rules[0]));
    tcase_add_test(cases, nothing_to_run_is_success);
    tcase_add_test(cases, weights_may_be_fetched_early_only_while_they_stay);
    tcase_add_test(cases, workspace_and_null_arguments);
    suite_add_tcase(plans, cases);
    return plans;
}

int main(void)
{
    return run_suite(suite());
}
