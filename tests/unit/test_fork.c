/*
 * fork: after opening, beside a compile of another thread, in children of children. What a parent may do before it
 * forks makes no CUDA context, which no child could use.
 */
#include "cases_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define CHILDREN 4

static struct cbn_fp8_gemm_args first_args(void)
{
    return gemm_args(64, 256, 512, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
}

static struct cbn_fp8_gemm_args other_args(void)
{
    return gemm_args(64, 33, 130, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
}

static void reap_all(const pid_t *children, int count)
{
    for (int i = 0; i < count; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %d: wait status 0x%x", i, status);
    }
}

static void make_context(void)
{
    (void)alarm(60);
    context = fake.context_create(0);
    fake.context_set(context);
    stream = fake.stream_create();
    fake.launches_clear();
}

/* In a child: both kernels run, with so many compiles of its own. */
static void run_both(uint64_t compiles)
{
    struct cbn_fp8_gemm_args first = first_args(), other = other_args();
    uint64_t before = stats_now().compiles;
    make_context();
    bool right = cbn_fp8_gemm(runtime, &first, stream, &error) == CBN_STATUS_OK &&
                 cbn_fp8_gemm(runtime, &other, stream, &error) == CBN_STATUS_OK && fake.launch_count() == 2 &&
                 stats_now().compiles - before == compiles;
    cbn_runtime_destroy(runtime);
    _exit(right ? 0 : 1);
}

static void warm_both(void)
{
    struct cbn_query queries[2] = {query_of("fp8_gemm", HOPPER, 64, 256, 512),
                                   query_of("fp8_gemm", HOPPER, 64, 33, 130)};
    queries[0].profile.in = CBN_DTYPE_E4M3;
    struct cbn_warm_result result = {.size = sizeof(result)};
    ck_assert_msg(cbn_warm(runtime, queries, 2, NULL, &result, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_int_eq(cbn_check(runtime, queries, 2, NULL, &result, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(result.missing, 0);
}

/* Opened, warmed, checked, listed, explained: the driver is not even initialised. Then four children run on it. */
START_TEST(no_context_in_the_parent)
{
    struct cbn_query query = query_of("fp8_gemm", HOPPER, 64, 256, 512);
    struct cbn_explanation explanation = {.size = sizeof(explanation)};
    struct cbn_fp8_gemm_args args = first_args();
    pid_t children[CHILDREN];
    fake.reset();
    warm_both();
    ck_assert_uint_gt(list_entries().count, 0);
    ck_assert_int_eq(cbn_explain(runtime, &query, &explanation, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(fake.calls_total(), 0);
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0)
            run_both(0);
    }
    reap_all(children, CHILDREN);
    ck_assert_uint_eq(fake.calls_total(), 0);
    ck_assert_uint_eq(fake.calls("cuCtxCreate_v2") + fake.calls("cuDevicePrimaryCtxRetain"), 0);
    make_context();
    call(&args);
    ck_assert_uint_eq(stats_now().overlay_hits > 0, 1);
    /* Nor does a call make one: it takes the caller's. */
    ck_assert_uint_eq(fake.calls("cuCtxCreate_v2") + fake.calls("cuDevicePrimaryCtxRetain"), 0);
    (void)alarm(0);
}
END_TEST

static void *call_first(void *user)
{
    struct cbn_fp8_gemm_args args = first_args();
    fake.context_set(context);
    *(int32_t *)user = cbn_fp8_gemm(runtime, &args, fake.stream_create(), &error);
    return NULL;
}

/* The child wants the same kernel: it waits for its parent's build like any process, and hits. */
START_TEST(fork_beside_a_compile)
{
    pthread_t thread;
    int32_t status = -1;
    pid_t children[CHILDREN];
    ck_assert_int_eq(setenv("FAKE_NVRTC_DELAY_MS", "500", 1), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, call_first, &status), 0);
    while (compiles_counted() < 1)
        ;
    ck_assert_int_eq(setenv("FAKE_NVRTC_DELAY_MS", "0", 1), 0);
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0)
            run_both(i == 0); /* the other kernel is the first child's to build */
        if (i == 0)
            reap_all(children, 1);
    }
    reap_all(children + 1, CHILDREN - 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(status, CBN_STATUS_OK);
    ck_assert_int_eq(compiles_counted(), 2);
    ck_assert_uint_eq(list_entries().count, 2);
    ck_assert_int_eq(unsetenv("FAKE_NVRTC_DELAY_MS"), 0);
}
END_TEST

/* The parent that builds is killed: its child, which lives on, is not taken for it. */
START_TEST(the_builder_forks_and_is_killed)
{
    struct cbn_fp8_gemm_args args = first_args();
    int alive[2], end[2], status = 0;
    char byte;
    ck_assert_int_eq(pipe(alive) | pipe(end), 0);
    ck_assert_int_eq(setenv("FAKE_NVRTC_DELAY_MS", "60000", 1), 0);
    pid_t builder = fork();
    if (builder == 0) {
        pthread_t thread;
        int32_t unused = 0;
        make_context();
        if (pthread_create(&thread, NULL, call_first, &unused) != 0)
            _exit(1);
        while (compiles_counted() < 1)
            ;
        if (fork() == 0) {
            (void)close(end[1]);
            (void)!write(alive[1], "c", 1);
            _exit(read(end[0], &byte, 1) == 0 ? 0 : 1); /* at the end of the test */
        }
        (void)pause();
    }
    ck_assert_int_eq(read(alive[0], &byte, 1), 1);
    ck_assert_int_eq(kill(builder, SIGKILL), 0);
    ck_assert_int_eq(waitpid(builder, &status, 0), builder);
    ck_assert_int_eq(setenv("FAKE_NVRTC_DELAY_MS", "0", 1), 0);
    make_context();
    (void)alarm(10);
    call(&args);
    (void)alarm(0);
    ck_assert_uint_eq(stats_now().flight_waits, 0);
    ck_assert_int_eq(compiles_counted(), 2);
    ck_assert_int_eq(unsetenv("FAKE_NVRTC_DELAY_MS"), 0);
}
END_TEST

/* Three generations, each with what the one before has in memory and none of its locks. */
START_TEST(a_child_of_a_child)
{
    struct cbn_fp8_gemm_args args = first_args();
    warm_both();
    pid_t child = fork();
    if (child == 0) {
        struct cbn_fp8_gemm_args own = first_args();
        make_context();
        if (cbn_fp8_gemm(runtime, &own, stream, &error) != CBN_STATUS_OK)
            _exit(1);
        pid_t grandchild = fork();
        int status = 1;
        if (grandchild == 0)
            run_both(0);
        _exit(waitpid(grandchild, &status, 0) == grandchild && status == 0 ? 0 : 2);
    }
    reap_all(&child, 1);
    call(&args);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fork");
    TCase *cases = tcase_create("fork");
    tcase_set_timeout(cases, 90);
    tcase_add_checked_fixture(cases, set_up_case, tear_down_case);
    tcase_add_test(cases, no_context_in_the_parent);
    tcase_add_test(cases, fork_beside_a_compile);
    tcase_add_test(cases, the_builder_forks_and_is_killed);
    tcase_add_test(cases, a_child_of_a_child);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
