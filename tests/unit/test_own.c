/*
 * A family of the caller's own from registration to launch, on the fake driver, with real NVRTC: what holds for the
 * built-in operations holds for it.
 */
#include <stddef.h>

#include "ops_fixture.h"

#define ARCH CBN_ARCH(90, 'a')

/* The kernel's one struct by value. */
struct row_args {
    uint64_t x, y, workspace;
    int64_t rows, cols;
};

/* A path never reaches a key or a cubin: __FILE__ is the file's own name. */
static const char source_text[] = "#include \"own/outer.h\"\n"
                                  "struct row_args { unsigned long long x, y, workspace; long long rows, cols; };\n"
                                  "static_assert(sizeof(__FILE__) == sizeof(\"rows.cu\"), \"a folder in __FILE__\");\n"
                                  "extern \"C\" __global__ void scale_rows(const __grid_constant__ row_args p)\n"
                                  "{\n"
                                  "    own_wait();\n"
                                  "    float *x = (float *)p.x, *y = (float *)p.y;\n"
                                  "    for (long long i = threadIdx.x; i < p.cols; i += blockDim.x)\n"
                                  "        y[blockIdx.x * p.cols + i] = OWN_GAIN * TILE * x[blockIdx.x * p.cols + i];\n"
                                  "}\n";
static const char any_text[] = "struct row_args { unsigned long long x, y, workspace; long long rows, cols; };\n"
                               "extern \"C\" __global__ void any_rows(const __grid_constant__ row_args p)\n"
                               "{\n"
                               "    ((float *)p.y)[blockIdx.x] = TILE;\n"
                               "}\n";
static const char outer_text[] = "#include \"own/inner.h\"\n"
                                 "static __device__ void own_wait()\n"
                                 "{\n"
                                 "#if PDL\n"
                                 "    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
                                 "#endif\n"
                                 "}\n";

enum { ROWS, COLS, WORK, PDL_FACT, MAX_SMS, FACT_COUNT };
static const char *const fact_names[] = {"rows", "cols", "work", "pdl", "max_sms"};

static void place_rows(const int64_t *params, const int64_t *facts, struct cbn_geometry *ret_geometry)
{
    *ret_geometry = (struct cbn_geometry){
        .grid = {(uint32_t)facts[ROWS], 1, 1},
        .block = {(uint32_t)params[0], 1, 1},
        .shared_bytes = (uint32_t)facts[COLS] * 4,
        .workspace_bytes = (uint64_t)facts[WORK],
    };
    if (facts[MAX_SMS] > 0 && facts[MAX_SMS] < facts[ROWS])
        ret_geometry->grid[0] = (uint32_t)facts[MAX_SMS];
}

/* One family as a test may change it before it registers. */
struct own {
    struct cbn_header headers[2];
    struct cbn_bucket tiles[2];
    struct cbn_param params[2], any_params[1];
    struct cbn_guard guards[1], noops[1];
    struct cbn_candidate candidates[2];
    struct cbn_family family;
};

static void describe(struct own *own)
{
    *own = (struct own){
        .headers = {{"own/outer.h", outer_text}, {"own/inner.h", "#define OWN_GAIN 2\n"}},
        .tiles = {{32, 64}, {INT64_MAX, 256}},
        .params = {{.name = "TILE", .source = CBN_PARAM_BUCKET, .fact = "rows", .bucket_count = 2},
                   {.name = "PDL", .source = CBN_PARAM_FACT, .fact = "pdl"}},
        .any_params = {{.name = "TILE", .source = CBN_PARAM_CONST, .value = 128}},
        .guards = {{.fact = "cols", .relation = CBN_RELATION_MULTIPLE_OF, .value = 4}},
        .noops = {{.fact = "rows", .relation = CBN_RELATION_EQ, .value = 0}},
    };
    own->params[0].buckets = own->tiles;
    own->candidates[0] = (struct cbn_candidate){.name = "fast",
                                                .source = source_text,
                                                .source_name = "rows.cu",
                                                .symbol = "scale_rows",
                                                .headers = own->headers,
                                                .header_count = 2,
                                                .flags = CBN_CANDIDATE_PDL,
                                                .params = own->params,
                                                .param_count = 2,
                                                .guards = own->guards,
                                                .guard_count = 1,
                                                .geometry = place_rows,
                                                .argument_bytes = sizeof(struct row_args)};
    own->candidates[1] = (struct cbn_candidate){.name = "any",
                                                .source = any_text,
                                                .source_name = "any.cu",
                                                .symbol = "any_rows",
                                                .flags = CBN_CANDIDATE_FALLBACK,
                                                .params = own->any_params,
                                                .param_count = 1,
                                                .geometry = place_rows,
                                                .argument_bytes = sizeof(struct row_args)};
    own->family = (struct cbn_family){.size = sizeof(own->family),
                                      .argument_layout = 1,
                                      .name = "row_scale",
                                      .facts = fact_names,
                                      .fact_count = FACT_COUNT,
                                      .noop_count = 1,
                                      .noops = own->noops,
                                      .sweep_fact = "rows",
                                      .candidates = own->candidates,
                                      .candidate_count = 2};
}

static void enlist(const struct own *own)
{
    ck_assert_msg(cbn_family_register(runtime, &own->family, &error) == CBN_STATUS_OK, "%s", error.message);
}

static void set_up(void)
{
    open_fake();
    struct cbn_runtime_options options = fake_options(shared_folder);
    create_runtime(&options);
    struct own own;
    describe(&own);
    enlist(&own);
    memset(&own, 0xA5, sizeof(own)); /* everything was copied */
}

static void tear_down(void)
{
    close_runtime();
}

/* One call; facts and arguments live in it. */
struct call {
    struct cbn_fact facts[4];
    struct row_args arguments;
    struct cbn_launch_args args;
};

static void make_call(struct call *call, int64_t rows, int64_t cols)
{
    *call = (struct call){
        .facts = {{"cols", cols}, {"work", 0}, {"rows", rows}},
        .arguments = {PLACE(0), PLACE(1), 0, rows, cols},
        .args = CBN_LAUNCH_ARGS_INIT,
    };
    call->args.op = "row_scale";
    call->args.facts = call->facts;
    call->args.fact_count = 3;
    call->args.arguments = &call->arguments;
    call->args.argument_bytes = sizeof(call->arguments);
}

static int32_t run(const struct call *call)
{
    memset(&error, 0, sizeof(error));
    return cbn_launch(runtime, &call->args, stream, &error);
}

static void must_run(const struct call *call)
{
    ck_assert_msg(run(call) == CBN_STATUS_OK, "%s", error.message);
}

static struct cbn_query query_of(int64_t rows, const struct cbn_fact *facts, uint32_t fact_count)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "row_scale";
    query.arch = ARCH;
    query.m = rows;
    query.facts = facts;
    query.fact_count = fact_count;
    return query;
}

static const struct cbn_fact query_facts[] = {{"work", 0}, {"cols", 128}};

START_TEST(a_call_arrives)
{
    struct call call;
    make_call(&call, 7, 128);
    must_run(&call);
    struct fake_launch launch = last_launch();
    ck_assert_str_eq(launch.kernel, "scale_rows");
    ck_assert_uint_eq(launch.parameter_bytes, sizeof(call.arguments));
    ck_assert_mem_eq(launch.parameters, &call.arguments, sizeof(call.arguments));
    ck_assert_uint_eq(launch.grid[0], 7);
    ck_assert_uint_eq(launch.block[0], 64);
    ck_assert_uint_eq(launch.shared_bytes, 512);
    ck_assert_uint_eq(launch.pdl, 1);
    ck_assert_ptr_eq(launch.stream, stream);
    call.args.max_sms = 5;
    must_run(&call);
    ck_assert_uint_eq(last_launch().grid[0], 5);
    make_call(&call, 33, 128);
    must_run(&call);
    ck_assert_uint_eq(last_launch().block[0], 256);
    make_call(&call, 7, 127);
    must_run(&call);
    ck_assert_str_eq(last_launch().kernel, "any_rows");
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.calls, 4);
    ck_assert_uint_eq(stats.launches, 4);
    ck_assert_uint_eq(stats.memory_hits, 1);
    ck_assert_uint_eq(stats.loads, 3);
}
END_TEST

/* Launched early only where the kernel was cut with its wait: the parameter says so, not the flag alone. */
START_TEST(pdl_follows_the_parameter)
{
    struct call call;
    struct own own;
    make_call(&call, 7, 127);
    must_run(&call);
    ck_assert_uint_eq(last_launch().pdl, 0); /* no flag */
    make_call(&call, 7, 128);
    call.args.flags = CBN_OP_NO_PDL;
    must_run(&call);
    ck_assert_uint_eq(last_launch().pdl, 0);
    describe(&own);
    own.family.name = "never_early";
    own.params[1] = (struct cbn_param){.name = "PDL", .source = CBN_PARAM_CONST, .value = 0};
    enlist(&own);
    call.args.op = "never_early";
    call.args.flags = 0;
    must_run(&call);
    ck_assert_str_eq(last_launch().kernel, "scale_rows");
    ck_assert_uint_eq(last_launch().pdl, 0);
    own.family.name = "always_early";
    own.params[1].value = 1;
    enlist(&own);
    call.args.op = "always_early";
    must_run(&call);
    ck_assert_uint_eq(last_launch().pdl, 1);
    call.args.flags = CBN_OP_NO_PDL;
    must_run(&call);
    ck_assert_uint_eq(last_launch().pdl, 0);
}
END_TEST

/* The build refuses a kernel that is cut for PDL and never waits. */
START_TEST(pdl_without_a_wait_is_refused)
{
    struct call call;
    struct own own;
    describe(&own);
    own.family.name = "hasty";
    own.headers[0].text = "#include \"own/inner.h\"\nstatic __device__ void own_wait() {}\n";
    enlist(&own);
    make_call(&call, 7, 128);
    call.args.op = "hasty";
    ck_assert_int_eq(run(&call), CBN_STATUS_COMPILE_FAILED);
    ck_assert_ptr_nonnull(strstr(error.message, "griddepcontrol.wait"));
    call.args.flags = CBN_OP_NO_PDL;
    must_run(&call);
}
END_TEST

static void assert_refused(struct call *call, int32_t status, const char *words)
{
    ck_assert_int_eq(run(call), status);
    ck_assert_msg(strstr(error.message, words) != NULL, "'%s' lacks '%s'", error.message, words);
    ck_assert_int_eq(error.status, status);
}

#define REFUSED(change, status, words)                                                                                 \
    do {                                                                                                               \
        struct call call;                                                                                              \
        make_call(&call, 7, 128);                                                                                      \
        change;                                                                                                        \
        assert_refused(&call, CBN_STATUS_##status, words);                                                             \
    } while (0)

START_TEST(refusals_name_what_is_wrong)
{
    REFUSED(call.args.fact_count = 2, INVALID, "'rows' is missing; row_scale has the facts rows, cols, work");
    REFUSED(call.args.fact_count = 0, INVALID, "'rows' is missing");
    REFUSED(call.args.facts = NULL, INVALID, "facts is NULL and fact_count is 3");
    REFUSED(call.facts[0].name = "columns", INVALID, "'columns' is not one of them");
    REFUSED(call.facts[0].name = NULL, INVALID, "'(NULL)' is not one of them");
    REFUSED(call.facts[0].name = "rows", INVALID, "'rows' is given twice");
    REFUSED((call.args.fact_count = 4, call.facts[3].name = "pdl"), INVALID, "'pdl' is written by Cubinet");
    REFUSED(call.args.op = NULL, INVALID, "op is NULL");
    REFUSED(call.args.op = "rows", UNSUPPORTED, "'rows' is not registered");
    REFUSED(call.args.op = "fp8_gemm", INVALID, "call cbn_fp8_gemm");
    REFUSED(call.args.flags = CBN_OP_POW2, INVALID, "0x4 is not known");
    REFUSED(call.args.miss_policy = 77, INVALID, "miss_policy is 77");
    REFUSED(call.args.argument_bytes = 32, INVALID,
            "argument_bytes is 32; row_scale/fast takes one struct of 40 bytes");
    REFUSED(call.args.arguments = NULL, INVALID, "arguments is NULL");
    REFUSED(call.facts[1].value = 256, INVALID, "workspace is 0x0; give 256 bytes");
    REFUSED((call.facts[1].value = 256, call.args.workspace = PLACE(3), call.args.workspace_bytes = 255), INVALID,
            "workspace_bytes is 255; this call needs 256");
    REFUSED((call.facts[0].value = 127, call.args.flags = CBN_OP_STRICT_ROUTE), UNSUPPORTED,
            "fast wants cols % 4 == 0 (it is 127)");
    REFUSED(call.args.size = 0, INVALID, "cbn_launch_args.size is 0");
    ck_assert_uint_eq(fake.launch_count(), 0);
    ck_assert_int_eq(cbn_launch(NULL, NULL, stream, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_launch(runtime, NULL, stream, NULL), CBN_STATUS_INVALID);
}
END_TEST

/* What an older caller's struct does not hold keeps its default. */
START_TEST(a_shorter_struct_is_taken)
{
    struct call call;
    make_call(&call, 7, 128);
    call.args.size = offsetof(struct cbn_launch_args, max_sms);
    call.args.max_sms = 5;
    must_run(&call);
    ck_assert_uint_eq(last_launch().grid[0], 7);
}
END_TEST

/* On a runtime that can open no driver. */
START_TEST(a_noop_touches_nothing)
{
    struct cbn_runtime_options options = fake_options(NULL);
    struct cbn_runtime *outer = runtime;
    struct own own;
    struct call call;
    options.cuda_path = "/nonexistent/libcuda.so.1";
    create_runtime(&options);
    describe(&own);
    enlist(&own);
    make_call(&call, 0, 128);
    call.args.arguments = NULL;
    must_run(&call);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.calls, 1);
    ck_assert_uint_eq(stats.noops, 1);
    make_call(&call, 1, 128);
    ck_assert_int_eq(run(&call), CBN_STATUS_NO_DRIVER);
    cbn_runtime_destroy(runtime);
    runtime = outer;
}
END_TEST

START_TEST(a_capture_stays_valid)
{
    uint32_t launches = 0;
    struct call call;
    struct own own;
    describe(&own);
    own.family.name = "captured";
    enlist(&own);
    make_call(&call, 7, 128);
    call.args.op = "captured";
    ck_assert_int_eq(fake.capture_begin(stream, CAPTURE_GLOBAL), 0);
    ck_assert_int_eq(run(&call), CBN_STATUS_NOT_LOADED);
    ck_assert_ptr_nonnull(strstr(error.message, "captured/fast"));
    ck_assert_int_eq(fake.capture_end(stream, &launches), 0);
    ck_assert_uint_eq(launches, 0);
    struct cbn_query query = query_of(40, query_facts, 2);
    struct cbn_warm_result result = {.size = sizeof(result)};
    query.op = "captured";
    ck_assert_msg(cbn_prepare(runtime, &query, 1, &result, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_uint_eq(result.requested, 2);
    ck_assert_int_eq(fake.capture_begin(stream, CAPTURE_GLOBAL), 0);
    must_run(&call);
    call.facts[0].value = 24000; /* one that no query prepared for: more shared memory */
    must_run(&call);
    ck_assert_int_eq(fake.capture_end(stream, &launches), 0);
    ck_assert_uint_eq(launches, 2);
    ck_assert_uint_eq(fake.shared_attribute("scale_rows", 0), 96000);
    ck_assert_uint_eq(stats_now().memory_hits, 2);
}
END_TEST

START_TEST(a_miss_can_be_refused)
{
    struct call call;
    struct own own;
    describe(&own);
    own.family.name = "absent";
    enlist(&own);
    make_call(&call, 7, 128);
    call.args.op = "absent";
    call.args.miss_policy = CBN_MISS_NEVER;
    assert_refused(&call, CBN_STATUS_MISS, "warm it with cbn_warm");
    ck_assert_uint_eq(stats_now().compiles, 0);
}
END_TEST

/* A family needs none of the common facts. */
START_TEST(common_facts_may_be_absent)
{
    static const char *const names[] = {"rows", "cols", "work", "a", "b"};
    struct cbn_fact facts[] = {{"rows", 3}, {"cols", 8}, {"work", 0}, {"a", 0}, {"b", 0}};
    struct own own;
    struct call call;
    describe(&own);
    own.family.name = "plain";
    own.family.facts = names;
    own.params[1] = (struct cbn_param){.name = "PDL", .source = CBN_PARAM_CONST, .value = 1};
    enlist(&own);
    make_call(&call, 3, 8);
    call.args.op = "plain";
    call.args.facts = facts;
    call.args.fact_count = 5;
    must_run(&call);
    ck_assert_uint_eq(last_launch().pdl, 1);
    struct cbn_query query = query_of(3, facts + 1, 4);
    struct cbn_explanation told = {.size = sizeof(told)};
    query.op = "plain";
    ck_assert_msg(cbn_explain(runtime, &query, &told, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_str_eq(told.spec.arch, "sm_90a");
    ck_assert_uint_eq(told.cached, 1);
}
END_TEST

static void assert_query_refused(struct cbn_query query, const char *words)
{
    struct cbn_explanation told = {.size = sizeof(told)};
    memset(&error, 0, sizeof(error));
    ck_assert_int_eq(cbn_explain(runtime, &query, &told, &error), CBN_STATUS_INVALID);
    ck_assert_msg(strstr(error.message, words) != NULL, "'%s' lacks '%s'", error.message, words);
    ck_assert_int_eq(cbn_check(runtime, &query, 1, NULL, NULL, &error), CBN_STATUS_INVALID);
}

#define QUERY_REFUSED(change, words)                                                                                   \
    do {                                                                                                               \
        struct cbn_query query = query_of(7, query_facts, 2);                                                          \
        change;                                                                                                        \
        assert_query_refused(query, words);                                                                            \
    } while (0)

START_TEST(a_question_is_asked_by_facts)
{
    const struct cbn_fact swept[] = {{"work", 0}, {"cols", 128}, {"rows", 7}};
    struct own own;
    QUERY_REFUSED(query.fact_count = 1, "'cols' is missing");
    QUERY_REFUSED((query.facts = swept, query.fact_count = 3), "'rows' is what the query sweeps, give it as m");
    QUERY_REFUSED(query.n = 64, "n: 64; row_scale is asked by its facts");
    QUERY_REFUSED(query.profile.approx = 1, "approx: 1;");
    QUERY_REFUSED(query.m = -1, "m: -1; give the 'rows' of the call");
    QUERY_REFUSED(query.arch = 7, "arch: 7 is none");
    QUERY_REFUSED(query.reserved = 1, "query.reserved: 1;");
    QUERY_REFUSED((query.op = "fp8_gemm", query.n = query.k = 128), "facts: fp8_gemm takes none");
    describe(&own);
    own.family.name = "swept";
    own.family.sweep_fact = "max_sms";
    ck_assert_int_eq(cbn_family_register(runtime, &own.family, &error), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "sweep_fact: 'max_sms'"));
    ck_assert_int_eq(cbn_selftest(runtime, "row_scale", (cbn_selftest_fn)abort, NULL, &error), CBN_STATUS_UNSUPPORTED);
}
END_TEST

static int count_spec(void *user, const struct cbn_spec *spec)
{
    int *count = user;
    ck_assert_str_eq(spec->op, "row_scale");
    ck_assert_uint_eq(strlen(spec->key), 32);
    (*count)++;
    return 0;
}

static int count_entry(void *user, const struct cbn_entry_info *entry)
{
    int *count = user;
    if (strcmp(entry->spec.op, "row_scale") != 0)
        return 0;
    (*count)++;
    ck_assert(strcmp(entry->spec.kernel, "fast") == 0 || strcmp(entry->spec.kernel, "any") == 0);
    ck_assert_str_eq(entry->spec.params[0].name, "TILE");
    return 0;
}

static void open_folder(const char *folder, const struct own *own)
{
    struct cbn_runtime_options options = fake_options(folder);
    create_runtime(&options);
    enlist(own);
}

static struct cbn_explanation explain(int64_t rows)
{
    struct cbn_query query = query_of(rows, query_facts, 2);
    struct cbn_explanation told = {.size = sizeof(told)};
    ck_assert_msg(cbn_explain(runtime, &query, &told, &error) == CBN_STATUS_OK, "%s", error.message);
    return told;
}

static struct cbn_warm_result work(bool warm, const struct cbn_query *query)
{
    struct cbn_warm_result result = {.size = sizeof(result)};
    int32_t status =
        warm ? cbn_warm(runtime, query, 1, NULL, &result, &error) : cbn_check(runtime, query, 1, NULL, &result, &error);
    ck_assert_msg(status == CBN_STATUS_OK, "%s", error.message);
    return result;
}

START_TEST(every_question_is_answered)
{
    char folder[PATH_MAX];
    struct cbn_runtime *outer = runtime;
    struct own own;
    int specs = 0, entries = 0;
    struct cbn_query query = query_of(1000, query_facts, 2);
    make_folder(folder);
    describe(&own);
    open_folder(folder, &own);
    ck_assert_int_eq(cbn_enumerate(runtime, &query, count_spec, &specs, &error), CBN_STATUS_OK);
    ck_assert_int_eq(specs, 2);
    ck_assert_uint_eq(work(false, &query).missing, 2);
    ck_assert_uint_eq(explain(7).cached, 0);
    ck_assert_uint_eq(work(true, &query).compiled, 2);
    ck_assert_uint_eq(work(true, &query).already, 2);
    ck_assert_uint_eq(work(false, &query).missing, 0);
    ck_assert_int_eq(cbn_cabinet_list(runtime, count_entry, &entries, NULL, &error), CBN_STATUS_OK);
    ck_assert_int_eq(entries, 2);
    struct cbn_explanation told = explain(7);
    ck_assert_uint_eq(told.cached, 1);
    ck_assert_uint_eq(told.launches, 1);
    ck_assert_str_eq(told.spec.text, "row_scale/fast sm_90a TILE=64 PDL=1");
    ck_assert_uint_eq(told.candidates[1].verdict, CBN_VERDICT_NOT_REACHED);
    ck_assert_uint_eq(explain(0).noop, 1);
    struct cbn_fact odd[] = {{"work", 512}, {"cols", 3}};
    query = query_of(7, odd, 2);
    ck_assert_int_eq(cbn_explain(runtime, &query, &told, &error), CBN_STATUS_OK);
    ck_assert_str_eq(told.candidates[0].guard, "cols % 4 == 0");
    ck_assert_int_eq(told.candidates[0].value, 3);
    ck_assert_str_eq(told.spec.kernel, "any");
    ck_assert_uint_eq(told.workspace_bytes, 512);
    struct call call;
    make_call(&call, 7, 128);
    call.args.miss_policy = CBN_MISS_NEVER;
    must_run(&call);
    ck_assert_uint_eq(stats_now().compiles, 2); /* the warm-up's */
    cbn_runtime_destroy(runtime);
    runtime = outer;
    ck_assert_int_eq(remove_folder(folder), 0);
}
END_TEST

static void key_of(const struct own *own, char *ret_key)
{
    struct cbn_runtime *outer = runtime;
    open_folder(NULL, own);
    (void)snprintf(ret_key, CBN_KEY_TEXT_BYTES, "%s", explain(7).spec.key);
    cbn_runtime_destroy(runtime);
    runtime = outer;
}

/* One character, in a header that only another header includes; and where a file lies is nobody's business. */
START_TEST(a_header_is_part_of_the_key)
{
    char folder[PATH_MAX], key[CBN_KEY_TEXT_BYTES], other[CBN_KEY_TEXT_BYTES];
    struct cbn_runtime *outer = runtime;
    struct cbn_query query = query_of(7, query_facts, 2);
    struct own own;
    make_folder(folder);
    describe(&own);
    key_of(&own, key);
    open_folder(folder, &own);
    ck_assert_uint_eq(work(true, &query).compiled, 1);
    cbn_runtime_destroy(runtime);

    own.candidates[0].source_name = "/some/where/else/rows.cu";
    key_of(&own, other);
    ck_assert_str_eq(key, other);
    open_folder(folder, &own);
    ck_assert_uint_eq(work(false, &query).missing, 0);
    cbn_runtime_destroy(runtime);

    own.headers[1].text = "#define OWN_GAIN 3\n";
    key_of(&own, other);
    ck_assert_str_ne(key, other);
    open_folder(folder, &own);
    ck_assert_uint_eq(work(false, &query).missing, 1);
    ck_assert_uint_eq(work(true, &query).compiled, 1);
    cbn_runtime_destroy(runtime);

    own.headers[1].text = "#define OWN_GAIN 2\n";
    open_folder(folder, &own);
    ck_assert_uint_eq(work(false, &query).missing, 0); /* the first is still there */
    cbn_runtime_destroy(runtime);
    runtime = outer;
    ck_assert_int_eq(remove_folder(folder), 0);
}
END_TEST

static void keep_words(void *user, const struct cbn_warm_event *event)
{
    if (event->error)
        (void)snprintf(user, sizeof(error.message), "%s", event->error->message);
}

/* A cubin that no launch could use is a failed build, not an entry. */
START_TEST(a_cubin_without_the_kernel_is_not_stored)
{
    char folder[PATH_MAX];
    struct cbn_runtime *outer = runtime;
    struct cbn_query query = query_of(7, query_facts, 2);
    struct own own;
    make_folder(folder);
    for (int i = 0; i < 2; i++) {
        struct cbn_warm_result result = {.size = sizeof(result)};
        char words[sizeof(error.message)] = "";
        const struct cbn_warm_options options = {.size = sizeof(options), .event = keep_words, .user = words};
        int entries = 0;
        describe(&own);
        if (i)
            own.candidates[0].argument_bytes = 48;
        else
            own.candidates[0].symbol = "scale_row";
        open_folder(folder, &own);
        ck_assert_int_eq(cbn_warm(runtime, &query, 1, &options, &result, &error), CBN_STATUS_PARTIAL);
        ck_assert_msg(strstr(words, i ? "scale_rows takes 40 bytes of parameters, and argument_bytes is 48"
                                      : "no extern \"C\" kernel scale_row; it has scale_rows;") != NULL,
                      "%s", words);
        ck_assert_uint_eq(result.failed, 1);
        ck_assert_uint_eq(work(false, &query).missing, 1);
        ck_assert_int_eq(cbn_cabinet_list(runtime, count_entry, &entries, NULL, &error), CBN_STATUS_OK);
        ck_assert_int_eq(entries, 0);
        cbn_runtime_destroy(runtime);
    }
    runtime = outer;
    ck_assert_int_eq(remove_folder(folder), 0);
}
END_TEST

/* A header of the built-in templates, of the toolkit or of the disk is none that the caller gave: it could change. */
START_TEST(only_given_headers_are_taken)
{
    static const char *const texts[] = {"#include \"fp8_common.cuh\"\n", "#include <cuda_fp16.h>\n",
                                        "#define OWN_GAIN (1 + sizeof(__TIME__))\n"};
    for (int i = 0; i < 3; i++) {
        struct own own;
        describe(&own);
        own.family.name = "curious";
        own.headers[1].text = texts[i];
        ck_assert_int_eq(cbn_family_register(runtime, &own.family, &error), CBN_STATUS_INVALID);
        ck_assert_msg(strstr(error.message, "candidates[0].headers[1].text: own/inner.h:1: ") != NULL, "%s",
                      error.message);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("own");
    TCase *cases = tcase_create("own");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, a_call_arrives);
    tcase_add_test(cases, pdl_follows_the_parameter);
    tcase_add_test(cases, pdl_without_a_wait_is_refused);
    tcase_add_test(cases, refusals_name_what_is_wrong);
    tcase_add_test(cases, a_shorter_struct_is_taken);
    tcase_add_test(cases, a_noop_touches_nothing);
    tcase_add_test(cases, a_capture_stays_valid);
    tcase_add_test(cases, a_miss_can_be_refused);
    tcase_add_test(cases, common_facts_may_be_absent);
    tcase_add_test(cases, a_question_is_asked_by_facts);
    tcase_add_test(cases, every_question_is_answered);
    tcase_add_test(cases, a_header_is_part_of_the_key);
    tcase_add_test(cases, only_given_headers_are_taken);
    tcase_add_test(cases, a_cubin_without_the_kernel_is_not_stored);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
