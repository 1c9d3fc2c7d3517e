/*
 * Two machines (a folder each) of eight processes, fifty kernels, one server: each kernel is built once in the fleet.
 * The server killed in the middle, and one that accepts and never answers: everybody finishes. CBN_SWEEP=full takes
 * builds of two seconds.
 */
#include <sys/mman.h>

#include "../unit/cases_fixture.h"
#include "../unit/fleet_server.h"
#include "vary_family.h"

#define MACHINES 2
#define PROCESSES 8 /* of a machine */
#define KEYS 50
#define BUILD_MS 60
#define BUILD_MS_FULL 2000
#define TIMEOUT_MS 400
#define SLACK_MS 1500
#define AWHILE_MS 30000

/* Shared by all processes. */
static struct board {
    uint64_t image_sums[KEYS]; /* each variant's kernel as first launched */
    struct cbn_stats sums;
    uint64_t longest_ms; /* of one launch */
} * board;

static char folders[MACHINES][PATH_MAX];

static uint32_t build_ms(void)
{
    const char *sweep = getenv("CBN_SWEEP");
    return sweep && strcmp(sweep, "full") == 0 ? BUILD_MS_FULL : BUILD_MS;
}

static void create(int machine, const char *url)
{
    struct cbn_runtime_options options = fake_options(folders[machine]);
    options.nvrtc_path = STUB;
    options.lock_timeout_ms = 60000;
    options.flight_timeout_ms = 120000;
    options.fleet = url;
    create_runtime(&options);
    ck_assert_msg(cbn_family_register(runtime, &vary_family, &error) == CBN_STATUS_OK, "%s", error.message);
}

/* Every variant's kernel is the same wherever it comes from, and is launched. */
static uint64_t launch(uint32_t variant)
{
    const struct cbn_fact facts[] = {{"rows", 1}, {"variant", variant}};
    int64_t argument = variant;
    struct cbn_launch_args args = CBN_LAUNCH_ARGS_INIT;
    uint64_t start_ns = cbn__clock_monotonic_ns(), none = 0;
    args.op = "vary";
    args.facts = facts;
    args.fact_count = 2;
    args.arguments = &argument;
    args.argument_bytes = sizeof(argument);
    ck_assert_msg(cbn_launch(runtime, &args, stream, &error) == CBN_STATUS_OK, "%u: %s", variant, error.message);
    uint64_t ms = since_ms(start_ns), sum = last_launch().image_sum;
    ck_assert_uint_ne(sum, 0);
    if (!__atomic_compare_exchange_n(&board->image_sums[variant], &none, sum, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        ck_assert_uint_eq(none, sum);
    return ms;
}

static void add_up(const struct cbn_stats *stats)
{
#define CBN_X(name, text) (void)__atomic_add_fetch(&board->sums.name, stats->name, __ATOMIC_SEQ_CST);
    CBN_STAT_MAP(CBN_X)
#undef CBN_X
}

static void run_process(int machine, uint32_t index, const char *url, int go)
{
    char byte;
    open_fake();
    create(machine, url);
    if (read(go, &byte, 1) != 1)
        _exit(2);
    for (uint32_t i = 0; i < KEYS; i++) {
        uint64_t ms = launch((i + index * KEYS / PROCESSES) % KEYS), longest = board->longest_ms;
        while (ms > longest && !__atomic_compare_exchange_n(&board->longest_ms, &longest, ms, false, __ATOMIC_SEQ_CST,
                                                            __ATOMIC_SEQ_CST))
            ;
    }
    struct cbn_stats stats = stats_now();
    add_up(&stats);
    close_runtime();
    _exit(0);
}

static pid_t pids[MACHINES * PROCESSES];

static void start_all(const char *url)
{
    int go[2];
    char bytes[MACHINES * PROCESSES] = {0};
    ck_assert_int_eq(pipe(go), 0);
    for (int i = 0; i < MACHINES * PROCESSES; i++) {
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0)
            run_process(i % MACHINES, (uint32_t)(i / MACHINES), url, go[0]);
    }
    ck_assert_int_eq(write(go[1], bytes, sizeof(bytes)), sizeof(bytes));
}

/* All of them, each well; prints what came of it. */
static void await_all(const char *what, uint64_t start_ns)
{
    for (int i = 0; i < MACHINES * PROCESSES; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(status == 0, "process %d: wait status 0x%x", i, status);
    }
    const struct cbn_stats *sums = &board->sums;
    printf("%s: %llu builds of %u ms, %llu pulled, %llu pushed, %llu leases waited for, %llu questions without an "
           "answer, longest launch %llu ms, all done after %llu ms\n",
           what, (unsigned long long)sums->compiles, build_ms(), (unsigned long long)sums->fleet_hits,
           (unsigned long long)sums->fleet_pushes, (unsigned long long)sums->fleet_waits,
           (unsigned long long)sums->fleet_failures, (unsigned long long)board->longest_ms,
           (unsigned long long)since_ms(start_ns));
    ck_assert_uint_eq(sums->launches, MACHINES * PROCESSES * KEYS);
    ck_assert_int_eq(compiles_counted(), (long)sums->compiles);
    ck_assert_uint_eq(sums->fleet_refused, 0);
    ck_assert_uint_eq(sums->puts_dropped, 0);
}

static int count_entry(void *user, const struct cbn_entry_info *entry)
{
    (void)entry;
    (*(int *)user)++;
    return 0;
}

/* Both folders hold every kernel, sound. */
static void expect_full_folders(void)
{
    for (int i = 0; i < MACHINES; i++) {
        uint64_t damaged = 1;
        int entries = 0;
        create(i, NULL);
        ck_assert_int_eq(cbn_cabinet_list(runtime, count_entry, &entries, &damaged, &error), CBN_STATUS_OK);
        ck_assert_int_eq(entries, KEYS);
        ck_assert_uint_eq(damaged, 0);
        cbn_runtime_destroy(runtime);
        runtime = NULL;
    }
}

START_TEST(one_build_a_kernel_in_the_fleet)
{
    SERVER_AUTO server = start_server(NULL);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    start_all(server.url);
    await_all("a server", start_ns);
    ck_assert_uint_eq(board->sums.compiles, KEYS);
    ck_assert_uint_eq(board->sums.fleet_pushes, KEYS);
    ck_assert_uint_eq(board->sums.fleet_hits, KEYS); /* each by the machine that did not build it, once */
    ck_assert_uint_eq(board->sums.fleet_failures, 0);
    ck_assert_uint_eq(board->sums.base_hits, 0);
    expect_full_folders();
}
END_TEST

START_TEST(the_server_is_killed)
{
    SERVER_AUTO server = start_server(NULL);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    char url[128];
    (void)snprintf(url, sizeof(url), "%s?timeout_ms=%d&retry_ms=600000", server.url, TIMEOUT_MS);
    start_all(url);
    while (compiles_counted() < KEYS / 2)
        ck_assert_uint_lt(since_ms(start_ns), AWHILE_MS);
    kill_server(&server);
    await_all("killed in the middle", start_ns);
    ck_assert_uint_ge(board->sums.compiles, KEYS);
    ck_assert_uint_le(board->sums.compiles, MACHINES * KEYS);
    ck_assert_uint_le(board->sums.fleet_failures, MACHINES * PROCESSES);
    expect_full_folders();
}
END_TEST

/* Every machine builds each kernel once, as without a fleet. */
START_TEST(a_server_that_never_answers)
{
    IMPOSTOR_AUTO impostor = start_impostor(NULL, NULL, AFTER_HOLD);
    uint64_t start_ns = cbn__clock_monotonic_ns();
    char url[128];
    (void)snprintf(url, sizeof(url), "%s?timeout_ms=%d&retry_ms=600000", impostor.server.url, TIMEOUT_MS);
    start_all(url);
    await_all("never answers", start_ns);
    ck_assert_uint_eq(board->sums.compiles, MACHINES * KEYS);
    ck_assert_uint_eq(board->sums.fleet_failures, MACHINES * PROCESSES); /* one a process */
    ck_assert_uint_eq(board->sums.fleet_hits + board->sums.fleet_misses + board->sums.fleet_pushes, 0);
    expect_full_folders();
}
END_TEST

/* One process: the first launch within the bound above its build, the next ones above theirs by nothing. */
START_TEST(the_first_miss_waits_and_no_other)
{
    IMPOSTOR_AUTO impostor = start_impostor(NULL, NULL, AFTER_HOLD);
    char url[128];
    (void)snprintf(url, sizeof(url), "%s?timeout_ms=%d&retry_ms=600000", impostor.server.url, TIMEOUT_MS);
    open_fake();
    ck_assert_int_eq(setenv("FAKE_NVRTC_DELAY_MS", "0", 1), 0);
    create(0, url);
    uint64_t first_ms = launch(0), start_ns = cbn__clock_monotonic_ns();
    for (uint32_t i = 1; i < KEYS; i++)
        (void)launch(i);
    uint64_t next_ms = since_ms(start_ns);
    printf("never answers within %d ms: the first miss took %llu ms, the next %d took %llu ms together\n", TIMEOUT_MS,
           (unsigned long long)first_ms, KEYS - 1, (unsigned long long)next_ms);
    ck_assert_uint_ge(first_ms, TIMEOUT_MS - 20);
    ck_assert_uint_lt(first_ms, TIMEOUT_MS + SLACK_MS);
    ck_assert_uint_lt(next_ms, SLACK_MS);
    ck_assert_uint_eq(stats_now().fleet_failures, 1);
    ck_assert_uint_eq(stats_now().compiles, KEYS);
    close_runtime();
}
END_TEST

static void set_up(void)
{
    char delay[16];
    (void)snprintf(delay, sizeof(delay), "%u", build_ms());
    for (int i = 0; i < MACHINES; i++)
        make_folder(folders[i]);
    (void)snprintf(count_file, sizeof(count_file), "%.4000s/compiles", folders[0]);
    ck_assert_int_eq(setenv("FAKE_NVRTC_COUNT", count_file, 1), 0);
    ck_assert_int_eq(setenv("FAKE_NVRTC_DELAY_MS", delay, 1), 0);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(board, MAP_FAILED);
}

static void tear_down(void)
{
    for (int i = 0; i < MACHINES; i++)
        ck_assert_int_eq(remove_folder(folders[i]), 0);
    (void)munmap(board, sizeof(*board));
}

int main(void)
{
    Suite *suite = suite_create("fleet");
    TCase *cases = tcase_create("fleet");
    tcase_set_timeout(cases, 200);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, one_build_a_kernel_in_the_fleet);
    tcase_add_test(cases, the_server_is_killed);
    tcase_add_test(cases, a_server_that_never_answers);
    tcase_add_test(cases, the_first_miss_waits_and_no_other);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
