/*
 * Cases from the field that concern damage, failing builds, keys and what releases share, as a call meets them: 7 to
 * 10, 12 to 14, and 20.
 *
 * Case 10 runs this very program again, as a copy under another path, for another user, on another hostname.
 */
#include <fcntl.h>
#include <lmdb.h>
#include <sched.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "cache/cabinet.h"
#include "cases_fixture.h"
#include "jit/spec.h"

#define NOBODY 65534

/* ---- 10: everything about the place changes, nothing about the key ---- */

static const uint32_t archs[] = {CBN_ARCH(80, 0), CBN_ARCH(89, 0), HOPPER, CBN_ARCH(100, 'a'), CBN_ARCH(120, 'a')};
#define ARCH_COUNT (sizeof(archs) / sizeof(archs[0]))

/* All that any shape can reach under the default profile. */
static uint32_t everything(struct cbn_query *ret_queries)
{
    for (size_t i = 0; i < ARCH_COUNT; i++) {
        ret_queries[2 * i] = query_of("fp8_gemm", archs[i], 0, 0, 0);
        ret_queries[2 * i + 1] = query_of("fp8_quantize", archs[i], 0, 0, 0);
    }
    return 2 * ARCH_COUNT;
}

/* The body of the copy: the entries of a base, found by a process that has no compiler and no folder of its own. */
static int check_base(const char *base)
{
    struct cbn_query queries[2 * ARCH_COUNT];
    struct cbn_warm_result result = {.size = sizeof(result)};
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_error err = {0};
    options.flags = CBN_RUNTIME_MEMORY_ONLY;
    options.base_dirs = &base;
    options.base_count = 1;
    if (cbn_runtime_create(&options, &runtime, &err) != CBN_STATUS_OK ||
        cbn_check(runtime, queries, everything(queries), NULL, &result, &err) != CBN_STATUS_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    cbn_runtime_destroy(runtime);
    return result.requested > 0 && result.already == result.requested ? 0 : 1;
}

static void copy_self(const char *path)
{
    char command[3 * PATH_MAX];
    snprintf(command, sizeof(command), "cp /proc/%d/exe '%s' && chmod 0755 '%s'", (int)getpid(), path, path);
    ck_assert_int_eq(system(command), 0);
}

/* As far as this process may: the test says what it could not change. */
static void become_another(void)
{
    static const char name[] = "elsewhere";
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, sizeof(name) - 1) != 0)
        (void)fputs("the hostname stays: no namespace of its own\n", stderr);
    if (geteuid() != 0)
        (void)fputs("the user stays: not root\n", stderr);
    else if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        _exit(3);
    umask(077);
    if (chdir("/") != 0)
        _exit(4);
}

static int run_copy(const char *path, const char *base)
{
    static char *const environment[] = {"HOME=/nonexistent",
                                        "USER=somebody",
                                        "HOSTNAME=elsewhere",
                                        "LANG=tr_TR.UTF-8",
                                        "LC_ALL=C",
                                        "TZ=Asia/Kolkata",
                                        "TMPDIR=/nonexistent",
                                        "XF3a=0x91",
                                        "CUDA_HOME=/nowhere",
                                        "PATH=/nowhere",
                                        "CUBINET_NVRTC=" NOWHERE,
                                        "CUBINET_CUDA=/nonexistent/libcuda.so.1",
                                        "ASAN_OPTIONS=detect_leaks=0",
                                        NULL};
    int status = 0;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        become_another();
        (void)execle(path, path, "--check-base", base, (char *)NULL, environment);
        _exit(5);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(another_place_hits_everything)
{
    struct cbn_query queries[2 * ARCH_COUNT];
    struct cbn_warm_result result = {.size = sizeof(result)};
    char base[PATH_MAX + 16], elsewhere[PATH_MAX + 16], copy[PATH_MAX + 64], command[3 * PATH_MAX];
    snprintf(base, sizeof(base), "%.4000s/base", folder);
    snprintf(elsewhere, sizeof(elsewhere), "%.4000s/else where", folder);
    snprintf(copy, sizeof(copy), "%s/another name", elsewhere);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    ck_assert_int_eq(mkdir(elsewhere, 0755), 0);
    struct cbn_runtime_options options = fake_options(base);
    options.nvrtc_path = STUB;
    cbn_runtime_destroy(runtime);
    create_runtime(&options);
    ck_assert_msg(cbn_warm(runtime, queries, everything(queries), NULL, &result, &error) == CBN_STATUS_OK, "%s",
                  error.message);
    ck_assert_uint_eq(result.compiled, result.requested);
    restart(STUB);
    snprintf(command, sizeof(command), "chmod 0444 '%s'/* && chmod 0755 '%s'", base, base);
    ck_assert_int_eq(system(command), 0);
    copy_self(copy);
    ck_assert_int_eq(run_copy(copy, base), 0);
    snprintf(command, sizeof(command), "chmod 0755 '%s'; rm '%s'/data.mdb", base, base);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_ne(run_copy(copy, base), 0); /* it can fail */
}
END_TEST

/* ---- 12: architectures ---- */

static const struct {
    int first, second;
    const char *first_arch, *second_arch;
} neighbours[] = {{120, 121, "sm_120a", "sm_121a"}, {100, 103, "sm_100a", "sm_103a"}, {80, 86, "sm_80", "sm_86"}};

START_TEST(an_entry_is_never_offered_to_a_neighbour)
{
    static const char kernel[] = "generic";
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    use_device(neighbours[_i].first);
    call(&args);
    restart(NOWHERE);
    use_device(neighbours[_i].second);
    ck_assert_int_eq(refuse(&args), CBN_STATUS_NO_COMPILER);
    ck_assert_uint_eq(stats_now().overlay_hits + stats_now().loads, 0);
    restart(STUB);
    use_device(neighbours[_i].second);
    call(&args);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.overlay_hits, 0);
    ck_assert_uint_eq(stats.compiles, 1);
    ck_assert_str_eq(launched_spec(kernel).arch, neighbours[_i].second_arch);
    struct entries entries = list_entries();
    ck_assert_uint_eq(entries.count, 2);
    ck_assert_str_ne(entries.keys[0], entries.keys[1]);
    restart(NOWHERE); /* and each is served its own */
    use_device(neighbours[_i].first);
    call(&args);
    ck_assert_str_eq(launched_spec(kernel).arch, neighbours[_i].first_arch);
    ck_assert_uint_eq(stats_now().overlay_hits, 1);
}
END_TEST

START_TEST(two_models_in_one_process_have_two_keys)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    static const int capabilities[] = {90, 100};
    void *contexts[2], *streams[2];
    uint64_t sums[2];
    fake.set_device_count(2);
    for (int i = 0; i < 2; i++) {
        fake.set_device(i, capabilities[i], 100);
        contexts[i] = fake.context_create(i);
        fake.context_set(contexts[i]);
        streams[i] = fake.stream_create();
    }
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 2; i++) {
            fake.context_set(contexts[i]);
            stream = streams[i];
            call(&args);
            ck_assert_uint_eq(last_launch().context_id, fake.context_id(contexts[i]));
            if (turn == 0)
                sums[i] = last_launch().image_sum;
            ck_assert_uint_eq(last_launch().image_sum, sums[i]);
        }
    ck_assert_uint_ne(sums[0], sums[1]);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.compiles, 2);
    ck_assert_uint_eq(stats.memory_hits, 2);
    struct entries entries = list_entries();
    ck_assert_uint_eq(entries.count, 2);
    ck_assert_str_ne(entries.keys[0], entries.keys[1]);
    ck_assert_str_ne(entries.archs[0], entries.archs[1]);
}
END_TEST

START_TEST(a_gpu_newer_than_nvrtc_is_said)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    ck_assert_int_eq(setenv("FAKE_NVRTC_UNKNOWN", "121", 1), 0);
    restart(STUB);
    use_device(121);
    ck_assert_int_eq(refuse(&args), CBN_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(error.message, "does not know compute capability 12.1; give a newer NVRTC"), "%s",
                  error.message);
    ck_assert_uint_eq(stats_now().loads + stats_now().puts, 0);
    ck_assert_uint_eq(list_entries().count, 0);
    use_device(130); /* newer than this release too */
    restart(STUB);
    ck_assert_int_eq(refuse(&args), CBN_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(error.message, "compute capability 13.0"), "%s", error.message);
    ck_assert_int_eq(compiles_counted(), 0);
}
END_TEST

/* ---- a family of the caller's own, in two releases ---- */

static void launch_one(const int64_t *params, const int64_t *facts, struct cbn_geometry *ret_geometry)
{
    (void)params;
    (void)facts;
    *ret_geometry = (struct cbn_geometry){.grid = {1, 1, 1}, .block = {32, 1, 1}};
}

static const char *const sources[] = {"extern \"C\" __global__ void own_kernel(const __grid_constant__ int x) {}\n",
                                      "extern \"C\" __global__ void own_kernel(const __grid_constant__ int y) {}\n"};

static void enlist(int release)
{
    static const char *const facts[] = {"rows"};
    const struct cbn_candidate candidate = {.name = "plain",
                                            .source = sources[release],
                                            .source_name = "own.cu",
                                            .symbol = "own_kernel",
                                            .geometry = launch_one,
                                            .argument_bytes = 4};
    const struct cbn_family family = {.size = sizeof(family),
                                      .argument_layout = 1,
                                      .name = "own_op",
                                      .facts = facts,
                                      .fact_count = 1,
                                      .sweep_fact = "rows",
                                      .candidates = &candidate,
                                      .candidate_count = 1};
    ck_assert_msg(cbn_family_register(runtime, &family, &error) == CBN_STATUS_OK, "%s", error.message);
}

static void call_own(void)
{
    static const struct cbn_fact rows = {"rows", 1};
    int argument = 7;
    struct cbn_launch_args args = CBN_LAUNCH_ARGS_INIT;
    args.op = "own_op";
    args.facts = &rows;
    args.fact_count = 1;
    args.arguments = &argument;
    args.argument_bytes = sizeof(argument);
    ck_assert_msg(cbn_launch(runtime, &args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
}

/* ---- 13: the second run ---- */

static void call_everything(uint64_t *ret_sums, char (*ret_kernels)[128])
{
    struct cbn_fp8_gemm_args few = gemm_args(8, 256, 512, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    struct cbn_fp8_gemm_args many = gemm_args(850, 256, 512, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    struct cbn_fp8_quantize_args quantize = quantize_args(8, 512, CBN_DTYPE_BF16);
    enlist(0);
    for (int i = 0; i < 4; i++) {
        if (i < 2)
            call(i ? &many : &few);
        else if (i == 2)
            ck_assert_int_eq(cbn_fp8_quantize(runtime, &quantize, stream, &error), CBN_STATUS_OK);
        else
            call_own();
        ret_sums[i] = last_launch().image_sum;
        snprintf(ret_kernels[i], sizeof(ret_kernels[i]), "%s", last_launch().kernel);
    }
}

/* Built-in kernels and one's own: their names come back from the store, and no compiler is asked. */
START_TEST(a_second_run_compiles_nothing)
{
    uint64_t sums[2][4];
    char kernels[2][4][128];
    call_everything(sums[0], kernels[0]);
    ck_assert_uint_eq(stats_now().compiles, 4);
    ck_assert_int_eq(compiles_counted(), 4);
    restart(NOWHERE);
    call_everything(sums[1], kernels[1]);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.compiles + stats.misses_absent + stats.puts, 0);
    ck_assert_uint_eq(stats.overlay_hits, 4);
    ck_assert_uint_eq(stats.launches, 6); /* either product has a launch ahead that quantises */
    ck_assert_int_eq(compiles_counted(), 4);
    ck_assert_mem_eq(sums[0], sums[1], sizeof(sums[0]));
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(kernels[0][i], kernels[1][i]);
    ck_assert_str_eq(kernels[1][3], "own_kernel");
}
END_TEST

/* ---- 14: two releases share a folder ---- */

START_TEST(releases_of_ones_own_template_live_side_by_side)
{
    for (int turn = 0; turn < 4; turn++) {
        restart(STUB);
        enlist(turn % 2);
        call_own();
        ck_assert_uint_eq(stats_now().compiles, turn < 2);
        ck_assert_uint_eq(stats_now().overlay_hits, turn >= 2);
        ck_assert_uint_eq(list_entries().count, turn < 1 ? 1 : 2);
    }
}
END_TEST

/* The entry that a release with other templates would have stored for the same specialisation. */
struct foreign {
    struct cbn__buf record, payload;
    struct cbn__entry_facts facts;
};

static int make_foreign(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                        uint32_t layer, const char *layer_path)
{
    struct foreign *foreign = user;
    struct cbn_version version = CBN_VERSION_INIT;
    uint8_t digest[16];
    (void)key, (void)layer, (void)layer_path;
    ck_assert_ptr_null(problem);
    cbn_version_get(&version);
    for (size_t i = 0; i < sizeof(digest); i++) {
        unsigned byte = 0;
        ck_assert_int_eq(sscanf(version.template_digest + 2 * i, "%2x", &byte), 1);
        digest[i] = (uint8_t)byte;
    }
    cbn__buf_append(&foreign->record, entry->key_record.data, entry->key_record.size);
    uint8_t *at = memmem(foreign->record.data, foreign->record.size, digest, sizeof(digest));
    ck_assert_ptr_nonnull(at);
    at[5] ^= 1;
    cbn__buf_append(&foreign->payload, entry->payload.data, entry->payload.size);
    foreign->payload.data[foreign->payload.size - 1] ^= 1;
    foreign->facts = entry->facts;
    return 1;
}

static struct cbn__cabinet *open_cabinet(void)
{
    const struct cbn__cabinet_options options = {.overlay_path = folder, .lock_timeout_ms = 5000};
    struct cbn__cabinet *cabinet = NULL;
    ck_assert_msg(cbn__cabinet_open(&options, &cabinet, &error) == CBN_STATUS_OK, "%s", error.message);
    return cabinet;
}

START_TEST(entries_of_other_templates_survive)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    struct cbn_query queries[2] = {query_of("fp8_gemm", HOPPER, 0, 0, 0), query_of("fp8_quantize", HOPPER, 0, 0, 0)};
    struct foreign foreign = {.record = CBN__BUF_INIT, .payload = CBN__BUF_INIT};
    struct cbn__compiler_rule any = {0};
    struct cbn__entry found = {.bytes = CBN__BUF_INIT};
    call(&args);
    uint64_t sum = last_launch().image_sum;
    struct cbn__cabinet *cabinet = open_cabinet();
    ck_assert_int_eq(cbn__cabinet_each(cabinet, make_foreign, &foreign, &error), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__cabinet_put(cabinet, cbn__buf_blob(&foreign.record), cbn__buf_blob(&foreign.payload),
                                      (struct cbn__blob){"", 0}, &foreign.facts, &error),
                     CBN_STATUS_OK);
    restart(STUB); /* this release works on, cold and warm, and mends what it finds to mend */
    call(&args);
    ck_assert_uint_eq(last_launch().image_sum, sum);
    struct cbn_warm_result warmed = {.size = sizeof(warmed)};
    ck_assert_int_eq(cbn_warm(runtime, queries, 2, NULL, &warmed, &error), CBN_STATUS_OK);
    ck_assert_uint_ge(warmed.requested, 13);
    struct cbn_verify_result verified = {.size = sizeof(verified)};
    ck_assert_int_eq(cbn_cabinet_verify(runtime, CBN_VERIFY_REPAIR, NULL, NULL, &verified, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(verified.damaged, 0);
    ck_assert_uint_eq(verified.checked, warmed.requested + 1); /* and the other release's one */
    ck_assert_int_eq(cbn__cabinet_find(cabinet, cbn__buf_blob(&foreign.record), &any, &found), CBN__LOOKUP_HIT);
    ck_assert(cbn__blob_equal(found.payload, cbn__buf_blob(&foreign.payload)));
    cbn__entry_done(&found);
    cbn__cabinet_close(cabinet);
    cbn__buf_done(&foreign.record);
    cbn__buf_done(&foreign.payload);
}
END_TEST

#define FUTURE_COUNT 3
static const char *const future_tables[FUTURE_COUNT] = {"entries/2", "usage/2", "meta/2"};

/* With write: one value in each table of a format that this release does not know. Else: they are still there. */
static void visit_future(bool write)
{
    char path[PATH_MAX + 16], text[] = "what a later release writes, in its own way";
    MDB_env *environment = NULL;
    MDB_txn *txn = NULL;
    snprintf(path, sizeof(path), "%.4000s/data.mdb", folder);
    ck_assert_int_eq(mdb_env_create(&environment), 0);
    ck_assert_int_eq(mdb_env_set_maxdbs(environment, 32), 0);
    ck_assert_int_eq(mdb_env_set_mapsize(environment, 1 << 30), 0);
    ck_assert_int_eq(mdb_env_open(environment, path, MDB_NOSUBDIR | MDB_NOLOCK, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(environment, NULL, write ? 0 : MDB_RDONLY, &txn), 0);
    for (int i = 0; i < FUTURE_COUNT; i++) {
        MDB_dbi table = 0;
        MDB_val key = {3, "key"}, value = {sizeof(text), text};
        ck_assert_int_eq(mdb_dbi_open(txn, future_tables[i], write ? MDB_CREATE : 0, &table), 0);
        if (write) {
            ck_assert_int_eq(mdb_put(txn, table, &key, &value, 0), 0);
            continue;
        }
        ck_assert_int_eq(mdb_get(txn, table, &key, &value), 0);
        ck_assert_uint_eq(value.mv_size, sizeof(text));
        ck_assert_mem_eq(value.mv_data, text, sizeof(text));
    }
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(environment);
}

static void assert_work_beside_the_future(const struct cbn_fp8_gemm_args *args, uint32_t removed)
{
    struct cbn_prune_options prune = CBN_PRUNE_OPTIONS_INIT;
    struct cbn_prune_result pruned = {.size = sizeof(pruned)};
    struct cbn_verify_result verified = {.size = sizeof(verified)};
    call(args);
    ck_assert_int_eq(cbn_cabinet_verify(runtime, CBN_VERIFY_REPAIR, NULL, NULL, &verified, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(verified.checked, removed);
    ck_assert_uint_eq(verified.damaged, 0);
    prune.flags = CBN_PRUNE_ALL | CBN_PRUNE_UNPINNED_TOO;
    ck_assert_msg(cbn_cabinet_prune(runtime, &prune, NULL, NULL, &pruned, &error) == CBN_STATUS_OK, "%s",
                  error.message);
    ck_assert_uint_eq(pruned.removed, removed);
    ck_assert_uint_eq(list_entries().count, 0);
}

START_TEST(formats_live_in_tables_of_their_own)
{
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&args);
    cbn_runtime_destroy(runtime);
    runtime = NULL;
    visit_future(true); /* an older release was here first */
    restart(NOWHERE);
    assert_work_beside_the_future(&args, 1);
    cbn_runtime_destroy(runtime);
    runtime = NULL;
    visit_future(false);
    char path[PATH_MAX + 16];
    snprintf(path, sizeof(path), "%.4000s/data.mdb", folder);
    ck_assert_int_eq(unlink(path), 0);
    visit_future(true); /* a later release was here first */
    restart(STUB);
    assert_work_beside_the_future(&args, 1);
    cbn_runtime_destroy(runtime);
    runtime = NULL;
    visit_future(false);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--check-base") == 0)
        return check_base(argv[2]);
    Suite *suite = suite_create("cases of the store");
    TCase *cases = tcase_create("store");
    tcase_add_checked_fixture(cases, set_up_case, tear_down_case);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, another_place_hits_everything);
    tcase_add_loop_test(cases, an_entry_is_never_offered_to_a_neighbour, 0, 3);
    tcase_add_test(cases, two_models_in_one_process_have_two_keys);
    tcase_add_test(cases, a_gpu_newer_than_nvrtc_is_said);
    tcase_add_test(cases, a_second_run_compiles_nothing);
    tcase_add_test(cases, releases_of_ones_own_template_live_side_by_side);
    tcase_add_test(cases, entries_of_other_templates_survive);
    tcase_add_test(cases, formats_live_in_tables_of_their_own);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
