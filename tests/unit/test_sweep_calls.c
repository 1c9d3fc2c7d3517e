/*
 * Case 21, and every other fault of the filesystem, as a call meets it: three operations on an empty cache while the
 * n-th call to the filesystem fails, once or for good. Every operation launches, from memory where it must; what could
 * not be stored is counted each time and said once, without a storm of tries; no file is left behind.
 *
 * ctest takes one code a call. CBN_SWEEP=full in the environment takes all of them.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/wait.h>

#include "cases_fixture.h"
#include "fake/faults.h"

#define OPERATIONS 3
#define DEADLINE_S 30
#define TEXTS_MAX 16u
#define TEXT_BYTES 28u
#define STORM 4u /* times the calls of a run without faults */
#define TELL_MOST 10u

static const int codes[] = {ENOSPC, EIO, EDQUOT, EACCES, EROFS, ENOMEM, FAULT_SHORT};
#define CODE_COUNT (sizeof(codes) / sizeof(codes[0]))

struct heard {
    uint32_t notices, twice;
    char texts[TEXTS_MAX][TEXT_BYTES]; /* how each begins */
};

static void hear(void *user, const struct cbn_event *event)
{
    struct heard *heard = user;
    if (event->kind != CBN_EVENT_NOTICE && event->kind != CBN_EVENT_DAMAGE)
        return;
    char text[TEXT_BYTES];
    (void)snprintf(text, sizeof(text), "%s", event->text);
    for (uint32_t i = 0; i < heard->notices && i < TEXTS_MAX; i++)
        heard->twice += strcmp(heard->texts[i], text) == 0;
    if (heard->notices < TEXTS_MAX)
        memcpy(heard->texts[heard->notices], text, sizeof(text));
    heard->notices++;
}

#define NEED(condition, value)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "  %s: %lld, %s\n", #condition, (long long)(value), error.message);                        \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static void create_hearing(struct heard *heard)
{
    struct cbn_runtime_options options = case_options(STUB);
    options.flags &= ~CBN_RUNTIME_CACHE_REQUIRED;
    options.lock_timeout_ms = 60;
    options.flight_timeout_ms = 60;
    options.event = hear;
    options.event_user = heard;
    int32_t status = cbn_runtime_create(&options, &runtime, &error);
    NEED(status == CBN_STATUS_OK, status);
}

/* Another number of columns each: another specialisation of the generic kernel. */
static void operate(void)
{
    static const int64_t columns[OPERATIONS] = {33, 64, 256};
    for (int i = 0; i < OPERATIONS; i++) {
        struct cbn_fp8_gemm_args args =
            gemm_args(16, columns[i], i == 0 ? 130 : 512, CBN_DTYPE_BF16, i == 1 ? CBN_DTYPE_FP16 : CBN_DTYPE_BF16);
        int32_t status = cbn_fp8_gemm(runtime, &args, stream, &error);
        NEED(status == CBN_STATUS_OK, status);
    }
}

static void expect_tidy(void)
{
    char path[PATH_MAX + 16];
    struct stat status;
    DIR *dir = opendir(folder);
    for (struct dirent *item = dir ? readdir(dir) : NULL; item; item = readdir(dir)) {
        bool known =
            item->d_name[0] == '.' || strcmp(item->d_name, "lock") == 0 || strcmp(item->d_name, "data.mdb") == 0;
        if (!known)
            fprintf(stderr, "  left: %s\n", item->d_name);
        NEED(known, 0);
    }
    if (dir)
        (void)closedir(dir);
    (void)snprintf(path, sizeof(path), "%.4000s/data.mdb", folder);
    NEED(stat(path, &status) != 0 || status.st_size > 0, 0);
}

/* In a child. */
static struct fault_report play(const struct fault_plan *plan, uint32_t calls_without)
{
    struct heard heard = {0}, later = {0};
    (void)alarm(DEADLINE_S);
    open_fake();
    faults_arm(plan);
    create_hearing(&heard);
    operate();
    struct cbn_stats stats = stats_now();
    NEED(stats.launches >= OPERATIONS && stats.compiles > 0, stats.launches);
    NEED(stats.puts + stats.puts_dropped == stats.compiles, stats.puts_dropped);
    NEED(stats.puts_dropped == 0 || heard.notices > 0, stats.puts_dropped);
    operate();
    NEED(stats_now().compiles == stats.compiles && stats_now().puts_dropped == stats.puts_dropped,
         stats_now().compiles);
    cbn_runtime_destroy(runtime);
    struct fault_report report = faults_disarm();
    NEED(heard.twice == 0, heard.notices);
    NEED(report.fired || (heard.notices == 0 && stats.puts_dropped == 0), heard.notices);
    NEED(calls_without == 0 || report.calls <= STORM * calls_without, report.calls);
    expect_tidy();
    create_hearing(&later);
    operate();
    struct cbn_stats warm = stats_now();
    NEED(warm.overlay_hits >= stats.puts && warm.overlay_hits + warm.compiles == stats.compiles, warm.overlay_hits);
    NEED(warm.puts == warm.compiles && warm.misses_damaged == 0 && later.notices == 0, warm.puts);
    cbn_runtime_destroy(runtime);
    expect_tidy();
    return report;
}

struct sweep {
    uint64_t points, fired;
    uint32_t failures;
};

static uint32_t run_point(const struct fault_plan *plan, uint32_t calls_without, struct sweep *sweep)
{
    struct fault_report report = {0};
    int ends[2], status = 0;
    make_folder(folder);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        report = play(plan, calls_without);
        _exit(write(ends[1], &report, sizeof(report)) == (ssize_t)sizeof(report) ? 0 : 2);
    }
    (void)close(ends[1]);
    ssize_t told = read(ends[0], &report, sizeof(report));
    (void)close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(remove_folder(folder), 0);
    sweep->points += plan->at != 0;
    sweep->fired += report.fired != 0;
    if (status == 0 && told == (ssize_t)sizeof(report))
        return report.calls;
    if (sweep->failures++ < TELL_MOST)
        fprintf(stderr, "call %u with %d%s: wait status 0x%x\n", plan->at, plan->code, plan->lasting ? " lasting" : "",
                (unsigned)status);
    return 0;
}

START_TEST(every_call_launches)
{
    const char *wanted = getenv("CBN_SWEEP");
    const bool full = wanted && strcmp(wanted, "full") == 0;
    struct sweep sweep = {0};
    uint32_t calls = run_point(&(struct fault_plan){.at = 0}, 0, &sweep);
    ck_assert_uint_gt(calls, 20);
    for (uint32_t at = 1; at <= calls; at++)
        for (uint32_t i = 0; i < 2 * CODE_COUNT; i++)
            if (full || i == at % (2 * CODE_COUNT))
                (void)run_point(&(struct fault_plan){at, codes[i % CODE_COUNT], i >= CODE_COUNT}, calls, &sweep);
    printf("three operations: %u calls, %llu points, %llu fired, %u wrong\n", calls, (unsigned long long)sweep.points,
           (unsigned long long)sweep.fired, sweep.failures);
    (void)fflush(stdout);
    ck_assert_uint_eq(sweep.failures, 0);
    ck_assert_uint_eq(sweep.fired, sweep.points);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sweep-calls");
    TCase *cases = tcase_create("sweep-calls");
    tcase_set_timeout(cases, getenv("CBN_SWEEP") ? 3600 : 240);
    tcase_add_test(cases, every_call_launches);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
