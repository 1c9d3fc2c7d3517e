/*
 * Sixteen processes behind a barrier want one kernel that is nowhere, whose build takes two seconds: the builder
 * builds, fails, is killed or is stopped; the store's lock is held by a process that is stopped. Times are measured
 * from the barrier, or from the death, and printed.
 */
#include "../unit/cases_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "cache/lock.h"

#define PROCESSES 16
#define BUILD_MS 2000
#define DEADLINE_MS 1500 /* of a lock, and of a flight where the builder is stopped */
#define SLACK_MS 1000
#define LONG_MS 60000
#define NS_PER_MS 1000000u

struct team {
    int ready[2], go[2], end[2];
    pid_t children[PROCESSES];
    uint64_t start_ns;
};

/* What a child writes when it is done. */
struct report {
    int32_t status;
    int process;
    uint64_t end_ns;
    struct cbn_stats stats;
};

static void count_file_of(int process, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.4000s/compiles-%d", folder, process);
}

static int compiles_of(int process)
{
    char path[PATH_MAX];
    struct stat file;
    count_file_of(process, path);
    return stat(path, &file) == 0 ? (int)file.st_size : 0;
}

static int compiles_of_all(void)
{
    int sum = 0;
    for (int i = 0; i < PROCESSES; i++)
        sum += compiles_of(i);
    return sum;
}

/* A process of its own: a runtime, a context, one call. Every compile is counted in a file of the process. */
static void run_child(struct team *team, int process, uint32_t flight_timeout_ms)
{
    char path[PATH_MAX], byte;
    struct cbn_runtime_options options = case_options(STUB);
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    struct report report = {.process = process, .stats = {.size = sizeof(report.stats)}};
    count_file_of(process, path);
    (void)setenv("FAKE_NVRTC_COUNT", path, 1);
    context = fake.context_create(0);
    fake.context_set(context);
    stream = fake.stream_create();
    fake.launches_clear();
    options.flags &= ~(uint32_t)CBN_RUNTIME_CACHE_REQUIRED;
    options.lock_timeout_ms = DEADLINE_MS;
    options.flight_timeout_ms = flight_timeout_ms;
    if (write(team->ready[1], "r", 1) != 1 || read(team->go[0], &byte, 1) != 1)
        _exit(2);
    create_runtime(&options);
    report.status = cbn_fp8_gemm(runtime, &args, stream, &error);
    report.end_ns = cbn__clock_monotonic_ns();
    cbn_runtime_stats(runtime, &report.stats);
    if (report.status == CBN_STATUS_OK && fake.launch_count() != 1)
        _exit(3);
    if (report.status == CBN_STATUS_COMPILE_FAILED && !strstr(error.message, "told to fail"))
        _exit(4);
    cbn_runtime_destroy(runtime);
    _exit(write(team->end[1], &report, sizeof(report)) == sizeof(report) ? 0 : 5);
}

static void start_team(struct team *team, uint32_t flight_timeout_ms)
{
    char byte;
    cbn_runtime_destroy(runtime);
    runtime = NULL;
    ck_assert_int_eq(pipe(team->ready) | pipe(team->go) | pipe(team->end), 0);
    for (int i = 0; i < PROCESSES; i++) {
        team->children[i] = fork();
        if (team->children[i] == 0)
            run_child(team, i, flight_timeout_ms);
    }
    close(team->end[1]); /* a child that ends without a word ends the read, too */
    for (int i = 0; i < PROCESSES; i++)
        ck_assert_int_eq(read(team->ready[0], &byte, 1), 1);
}

static void let_go(struct team *team, int count)
{
    char bytes[PROCESSES] = {0};
    team->start_ns = cbn__clock_monotonic_ns();
    ck_assert_int_eq(write(team->go[1], bytes, (size_t)count), count);
}

static uint64_t since_ms(uint64_t start_ns)
{
    return (cbn__clock_monotonic_ns() - start_ns) / NS_PER_MS;
}

struct sum {
    uint64_t last_ms; /* of the last end, from since_ns */
    int ok, failed, compiles, puts, dropped, waited;
};

static struct sum collect(struct team *team, int count, uint64_t since_ns)
{
    struct sum sum = {0};
    for (int i = 0; i < count; i++) {
        struct report report;
        int wait_status = 0;
        ck_assert_int_eq(read(team->end[0], &report, sizeof(report)), sizeof(report));
        uint64_t ms = (report.end_ns - since_ns) / NS_PER_MS;
        sum.last_ms = ms > sum.last_ms ? ms : sum.last_ms;
        sum.ok += report.status == CBN_STATUS_OK;
        sum.failed += report.status == CBN_STATUS_COMPILE_FAILED;
        sum.compiles += (int)report.stats.compiles;
        sum.puts += (int)report.stats.puts;
        sum.dropped += (int)report.stats.puts_dropped;
        sum.waited += (int)report.stats.flight_waits;
        ck_assert_int_eq(waitpid(team->children[report.process], &wait_status, 0), team->children[report.process]);
        ck_assert_msg(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0, "wait status 0x%x", wait_status);
    }
    return sum;
}

/* The process that is inside the first build. */
static int await_builder(void)
{
    uint64_t start_ns = cbn__clock_monotonic_ns();
    for (;;) {
        for (int i = 0; i < PROCESSES; i++)
            if (compiles_of(i))
                return i;
        ck_assert_uint_lt(since_ms(start_ns), LONG_MS);
    }
}

static void await_compiles(int count)
{
    uint64_t start_ns = cbn__clock_monotonic_ns();
    while (compiles_of_all() < count)
        ck_assert_uint_lt(since_ms(start_ns), LONG_MS);
}

static void expect_one_entry(void)
{
    restart(NOWHERE);
    ck_assert_uint_eq(list_entries().count, 1);
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&args);
    ck_assert_uint_eq(stats_now().overlay_hits, 1);
}

START_TEST(one_compile)
{
    struct team team;
    start_team(&team, LONG_MS);
    let_go(&team, PROCESSES);
    struct sum sum = collect(&team, PROCESSES, team.start_ns);
    printf("cold: %d compiles, all done after %llu ms (the build takes %d)\n", compiles_of_all(),
           (unsigned long long)sum.last_ms, BUILD_MS);
    ck_assert_int_eq(sum.ok, PROCESSES);
    ck_assert_int_eq(sum.compiles, 1);
    ck_assert_int_eq(compiles_of_all(), 1);
    ck_assert_int_eq(sum.puts, 1);
    ck_assert_uint_lt(sum.last_ms, BUILD_MS + SLACK_MS);
    expect_one_entry();
}
END_TEST

START_TEST(the_builder_is_killed)
{
    struct team team;
    int wait_status = 0;
    start_team(&team, LONG_MS);
    let_go(&team, PROCESSES);
    int builder = await_builder();
    ck_assert_int_eq(kill(team.children[builder], SIGKILL), 0);
    uint64_t death_ns = cbn__clock_monotonic_ns();
    await_compiles(2);
    uint64_t next_ms = since_ms(death_ns);
    struct sum sum = collect(&team, PROCESSES - 1, death_ns);
    ck_assert_int_eq(waitpid(team.children[builder], &wait_status, 0), team.children[builder]);
    printf("builder killed: %d compiles, the next began %llu ms after the death, all done after %llu ms\n",
           compiles_of_all(), (unsigned long long)next_ms, (unsigned long long)sum.last_ms);
    ck_assert_int_eq(compiles_of_all(), 2);
    ck_assert_int_eq(sum.ok, PROCESSES - 1);
    ck_assert_int_eq(sum.compiles, 1);
    ck_assert_uint_lt(next_ms, SLACK_MS);
    ck_assert_uint_lt(sum.last_ms, BUILD_MS + SLACK_MS);
    expect_one_entry();
}
END_TEST

/* The source does not compile: one more tries, everybody has the typed error with the compiler's words. */
START_TEST(every_build_fails)
{
    struct team team;
    ck_assert_int_eq(setenv("FAKE_NVRTC_FAIL", "1", 1), 0);
    start_team(&team, LONG_MS);
    let_go(&team, PROCESSES);
    struct sum sum = collect(&team, PROCESSES, team.start_ns);
    ck_assert_int_eq(unsetenv("FAKE_NVRTC_FAIL"), 0);
    printf("every build fails: %d compiles, all done after %llu ms\n", compiles_of_all(),
           (unsigned long long)sum.last_ms);
    ck_assert_int_eq(sum.failed, PROCESSES);
    ck_assert_int_eq(compiles_of_all(), 2);
    ck_assert_uint_lt(sum.last_ms, 2 * BUILD_MS + SLACK_MS);
    restart(STUB);
    ck_assert_uint_eq(list_entries().count, 0);
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&args); /* the error was theirs who waited */
}
END_TEST

/* The first builder fails, the others' builds would not. */
START_TEST(the_first_builder_fails)
{
    struct team team;
    pid_t first = 0;
    int wait_status = 0;
    start_team(&team, LONG_MS);
    /* Forked now, with another environment: a seventeenth. */
    ck_assert_int_eq(setenv("FAKE_NVRTC_FAIL", "1", 1), 0);
    first = fork();
    if (first == 0) {
        struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
        restart(STUB);
        _exit(refuse(&args) == CBN_STATUS_COMPILE_FAILED ? 0 : 1);
    }
    ck_assert_int_eq(unsetenv("FAKE_NVRTC_FAIL"), 0);
    while (compiles_counted() < 1)
        ;
    let_go(&team, PROCESSES);
    struct sum sum = collect(&team, PROCESSES, team.start_ns);
    ck_assert_int_eq(waitpid(first, &wait_status, 0), first);
    ck_assert_int_eq(wait_status, 0);
    printf("first builder fails: %d more compiles, all done after %llu ms\n", compiles_of_all(),
           (unsigned long long)sum.last_ms);
    ck_assert_int_eq(sum.ok, PROCESSES);
    ck_assert_int_eq(compiles_of_all(), 1);
    expect_one_entry();
}
END_TEST

/* A failure that is a process's own. */
struct trouble {
    const char *name, *value;
    bool in_child;   /* builds run in a child, which is this program */
    bool is_refused; /* by its compiler */
};
static const struct trouble troubles[] = {
    {"FAKE_NVRTC_KILL", "9", true, false},
    {"FAKE_NVRTC_VERSION", "12.0", false, true},
};

/* One call in a process of its own; a troubled one must fail to build, another must build. */
static pid_t start_one(const struct trouble *trouble, bool is_troubled)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct cbn_runtime_options options = case_options(STUB);
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    options.builder_path = trouble->in_child ? "/proc/self/exe" : NULL;
    options.flight_timeout_ms = LONG_MS;
    if (is_troubled) {
        (void)setenv(trouble->name, trouble->value, 1);
        if (trouble->is_refused)
            (void)setenv("FAKE_NVRTC_FAIL", "1", 1);
    }
    create_runtime(&options);
    int32_t status = refuse(&args);
    if (status != (is_troubled ? CBN_STATUS_COMPILE_FAILED : CBN_STATUS_OK))
        (void)fprintf(stderr, "%s: %s\n", is_troubled ? "troubled" : "sound", error.message);
    bool waited = stats_now().flight_waits == 1;
    cbn_runtime_destroy(runtime);
    _exit(is_troubled ? status != CBN_STATUS_COMPILE_FAILED : status != CBN_STATUS_OK ? 1 : waited ? 0 : 2);
}

static void expect_end(pid_t pid)
{
    int wait_status = 0;
    ck_assert_int_eq(waitpid(pid, &wait_status, 0), pid);
    ck_assert_msg(wait_status == 0, "wait status 0x%x", wait_status);
}

/* Two fail while a sound one waits, which is stopped so that the second is tried before it: it builds all the same. */
START_TEST(the_trouble_of_two_is_not_the_third_s)
{
    int wait_status = 0;
    cbn_runtime_destroy(runtime);
    runtime = NULL;
    pid_t first = start_one(&troubles[_i], true);
    while (compiles_counted() < 1)
        ;
    pid_t sound = start_one(&troubles[_i], false);
    cbn__clock_sleep_ns(BUILD_MS / 2 * (uint64_t)NS_PER_MS);
    ck_assert_int_eq(kill(sound, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(sound, &wait_status, WUNTRACED), sound);
    ck_assert(WIFSTOPPED(wait_status));
    expect_end(first);
    expect_end(start_one(&troubles[_i], true));
    ck_assert_int_eq(compiles_counted(), 2);
    ck_assert_int_eq(kill(sound, SIGCONT), 0);
    expect_end(sound);
    ck_assert_int_eq(compiles_counted(), 3);
    expect_one_entry();
}
END_TEST

/* Stopped in its build: the others wait for one deadline and build; awake, it ends what it began. */
START_TEST(the_builder_is_stopped)
{
    struct team team;
    start_team(&team, DEADLINE_MS);
    let_go(&team, PROCESSES);
    int builder = await_builder();
    ck_assert_int_eq(kill(team.children[builder], SIGSTOP), 0);
    struct sum sum = collect(&team, PROCESSES - 1, team.start_ns);
    ck_assert_int_eq(kill(team.children[builder], SIGCONT), 0);
    struct sum own = collect(&team, 1, team.start_ns);
    printf("builder stopped: %d compiles, all others done after %llu ms (a deadline of %d, a build)\n",
           compiles_of_all(), (unsigned long long)sum.last_ms, DEADLINE_MS);
    ck_assert_int_eq(sum.ok, PROCESSES - 1);
    ck_assert_int_eq(own.ok, 1);
    ck_assert_uint_lt(sum.last_ms, DEADLINE_MS + BUILD_MS + SLACK_MS);
    expect_one_entry();
}
END_TEST

/* A process that holds the store's lock and is stopped. */
static pid_t stop_with_lock(short type)
{
    int ready[2], wait_status = 0;
    char path[PATH_MAX], byte;
    snprintf(path, sizeof(path), "%.4000s/lock", folder);
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (cbn__lock_poll(fd, type, CBN__LOCK_DATA_BYTE, UINT64_MAX, NS_PER_MS, NULL) != CBN_STATUS_OK)
            _exit(1);
        (void)!write(ready[1], "r", 1);
        (void)raise(SIGSTOP);
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(waitpid(pid, &wait_status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(wait_status));
    return pid;
}

static void wake(pid_t pid)
{
    int wait_status = 0;
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    ck_assert_int_eq(waitpid(pid, &wait_status, 0), pid);
    ck_assert_int_eq(wait_status, 0);
}

/* _i: before the start; during the build. Nothing can be stored: everybody builds, at the same time. */
START_TEST(a_lock_holder_is_stopped)
{
    struct team team;
    pid_t holder = 0;
    start_team(&team, LONG_MS);
    if (_i == 0)
        holder = stop_with_lock(F_WRLCK);
    let_go(&team, PROCESSES);
    if (_i == 1) {
        (void)await_builder();
        holder = stop_with_lock(F_WRLCK);
    }
    struct sum sum = collect(&team, PROCESSES, team.start_ns);
    uint64_t bound_ms = DEADLINE_MS + BUILD_MS + SLACK_MS;
    printf("lock holder stopped %s: %d compiles, all done after %llu ms (bound %llu)\n",
           _i ? "during the build" : "before", compiles_of_all(), (unsigned long long)sum.last_ms,
           (unsigned long long)bound_ms);
    ck_assert_int_eq(sum.ok, PROCESSES);
    ck_assert_int_eq(sum.puts, 0);
    ck_assert_uint_lt(sum.last_ms, bound_ms);
    wake(holder);
    restart(STUB);
    ck_assert_uint_eq(list_entries().count, 0);
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    call(&args);
    ck_assert_uint_eq(stats_now().puts, 1);
}
END_TEST

/* The kernel is there: who cannot read it within a deadline builds it, and nobody waits for anybody's build. */
START_TEST(a_lock_holder_is_stopped_on_a_warm_store)
{
    struct team team;
    struct cbn_fp8_gemm_args args = gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    ck_assert_int_eq(setenv("FAKE_NVRTC_DELAY_MS", "0", 1), 0);
    call(&args);
    start_team(&team, LONG_MS);
    pid_t holder = stop_with_lock(_i ? F_WRLCK : F_RDLCK);
    let_go(&team, PROCESSES);
    struct sum sum = collect(&team, PROCESSES, team.start_ns);
    printf("warm, %s stopped: all done after %llu ms (deadline %d)\n", _i ? "writer" : "reader",
           (unsigned long long)sum.last_ms, DEADLINE_MS);
    ck_assert_int_eq(sum.ok, PROCESSES);
    ck_assert_uint_lt(sum.last_ms, DEADLINE_MS + SLACK_MS);
    wake(holder);
    expect_one_entry();
}
END_TEST

static void set_up_stampede(void)
{
    char delay[16];
    snprintf(delay, sizeof(delay), "%d", BUILD_MS);
    set_up_case();
    ck_assert_int_eq(setenv("FAKE_NVRTC_DELAY_MS", delay, 1), 0);
}

static void tear_down_stampede(void)
{
    ck_assert_int_eq(unsetenv("FAKE_NVRTC_DELAY_MS"), 0);
    tear_down_case();
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--cubinet-builder") == 0)
        return cbn_builder_main(argc, argv);
    Suite *suite = suite_create("stampede");
    TCase *cases = tcase_create("stampede");
    tcase_set_timeout(cases, 30);
    tcase_add_checked_fixture(cases, set_up_stampede, tear_down_stampede);
    tcase_add_test(cases, one_compile);
    tcase_add_test(cases, the_builder_is_killed);
    tcase_add_test(cases, every_build_fails);
    tcase_add_test(cases, the_first_builder_fails);
    tcase_add_loop_test(cases, the_trouble_of_two_is_not_the_third_s, 0, 2);
    tcase_add_test(cases, the_builder_is_stopped);
    tcase_add_loop_test(cases, a_lock_holder_is_stopped, 0, 2);
    tcase_add_loop_test(cases, a_lock_holder_is_stopped_on_a_warm_store, 0, 2);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
