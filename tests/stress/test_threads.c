/*
 * Twenty-four threads that build, load and launch twenty-four kernels, each in an order of its own, again and again
 * with a cold cabinet; one of the kernels does not compile in every other round. Made for ThreadSanitizer
 * (tools/dev/check
 * --tsan). CBN_STRESS_ROUNDS is the number of rounds, 50 unless said.
 */
#include "../unit/cases_fixture.h"

#include <pthread.h>

#define THREADS 24
#define KERNELS 24
#define BROKEN 20 /* the only one with PROPAGATE */

struct caller {
    pthread_t thread;
    int first;
    int32_t status[KERNELS];
};

static pthread_barrier_t barrier;

/* N and K that only the generic candidate takes: a specialisation each. */
static struct cbn_fp8_gemm_args args_of(int kernel)
{
    static const uint32_t ins[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32, CBN_DTYPE_E4M3};
    static const uint32_t outs[] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
    struct cbn_fp8_gemm_args args = gemm_args(64, 33, 130, ins[kernel % 4], outs[kernel / 4 % 3]);
    if (kernel / 12)
        give_bias(&args, CBN_DTYPE_FP32);
    if (kernel == BROKEN)
        args.flags |= CBN_OP_PROPAGATE;
    return args;
}

static void *call_all(void *user)
{
    struct caller *caller = user;
    struct cbn_error failure;
    fake.context_set(context);
    void *own_stream = fake.stream_create();
    (void)pthread_barrier_wait(&barrier);
    for (int i = 0; i < KERNELS; i++) {
        int kernel = (caller->first + i) % KERNELS;
        struct cbn_fp8_gemm_args args = args_of(kernel);
        caller->status[kernel] = cbn_fp8_gemm(runtime, &args, own_stream, &failure);
    }
    return NULL;
}

static void run_round(bool broken)
{
    struct caller callers[THREADS];
    ck_assert_int_eq(broken ? setenv("FAKE_NVRTC_FAIL_ON", "#define PROPAGATE 1", 1) : unsetenv("FAKE_NVRTC_FAIL_ON"),
                     0);
    set_up_case();
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.first = i};
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, call_all, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(callers[i].thread, NULL), 0);
    (void)pthread_barrier_destroy(&barrier);
    for (int i = 0; i < THREADS; i++)
        for (int kernel = 0; kernel < KERNELS; kernel++)
            ck_assert_msg(callers[i].status[kernel] ==
                              (broken && kernel == BROKEN ? CBN_STATUS_COMPILE_FAILED : CBN_STATUS_OK),
                          "thread %d, kernel %d: %d", i, kernel, callers[i].status[kernel]);
    struct cbn_stats stats = stats_now();
    unsigned sound = KERNELS - broken;
    ck_assert_uint_eq(stats.compiles, sound);
    ck_assert_uint_eq(stats.puts, sound);
    /* A thread that finds in the cabinet what another is just loading loads it too, and gives it back: one is kept. */
    ck_assert_uint_eq(fake.calls("cuLibraryLoadData"), stats.loads);
    ck_assert_uint_eq(fake.calls("cuLibraryLoadData") - fake.calls("cuLibraryUnload"), sound);
    ck_assert_uint_eq(fake.calls("cuFuncLoad"), sound);
    ck_assert_uint_eq(stats.launches, sound * THREADS);
    ck_assert_uint_eq(stats.misses_busy + stats.misses_io + stats.misses_damaged + stats.puts_dropped, 0);
    /* Who waited for it has the error of who tried it: never more tries than threads, each had one answer. */
    ck_assert_int_ge(compiles_counted(), (long)sound + broken);
    ck_assert_int_le(compiles_counted(), (long)sound + (broken ? THREADS : 0));
    ck_assert_uint_eq(list_entries().count, sound);
    tear_down_case();
}

START_TEST(twenty_four_threads_build_twenty_four_kernels)
{
    const char *asked = getenv("CBN_STRESS_ROUNDS");
    int rounds = asked ? atoi(asked) : 50;
    for (int i = 0; i < rounds; i++)
        run_round(i % 2);
    ck_assert_int_eq(unsetenv("FAKE_NVRTC_FAIL_ON"), 0);
    printf("%d rounds of %d threads and %d kernels\n", rounds, THREADS, KERNELS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads");
    TCase *cases = tcase_create("threads");
    tcase_set_timeout(cases, 600);
    tcase_add_test(cases, twenty_four_threads_build_twenty_four_kernels);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
