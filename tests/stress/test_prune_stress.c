/*
 * Prune in a loop beside four processes that dispatch 200 keys each, over and over: an entry that goes between look-up
 * and load still loads, one that is gone is built again, and each launch is of the kernel asked for.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "../unit/cases_fixture.h"
#include "vary_family.h"

#define PROCESSES 4u
#define KEYS 200u
#define ROUNDS 10u
#define ROUNDS_FULL 50u
#define PRUNES_A_CLEARANCE 500u
#define HALF_BYTES ((uint64_t)160 << 10) /* of the pages in use, with every key stored */

/* Shared by all processes: the bytes of each variant's kernel as first launched, and what was launched. */
static struct board {
    uint64_t image_sums[KEYS], launches, compiles, disk_hits;
    uint32_t done;
} * board;

static uint32_t rounds(void)
{
    const char *sweep = getenv("CBN_SWEEP");
    return sweep && strcmp(sweep, "full") == 0 ? ROUNDS_FULL : ROUNDS;
}

static void create(void)
{
    struct cbn_runtime_options options = case_options(STUB);
    options.policy = NULL;
    options.lock_timeout_ms = 60000;
    create_runtime(&options);
    ck_assert_msg(cbn_family_register(runtime, &vary_family, &error) == CBN_STATUS_OK, "%s", error.message);
}

static void launch(uint32_t variant)
{
    const struct cbn_fact facts[] = {{"rows", 1}, {"variant", variant}};
    int64_t argument = variant;
    struct cbn_launch_args args = CBN_LAUNCH_ARGS_INIT;
    args.op = "vary";
    args.facts = facts;
    args.fact_count = 2;
    args.arguments = &argument;
    args.argument_bytes = sizeof(argument);
    ck_assert_msg(cbn_launch(runtime, &args, stream, &error) == CBN_STATUS_OK, "%u: %s", variant, error.message);
    uint64_t sum = last_launch().image_sum, none = 0;
    ck_assert_uint_ne(sum, 0);
    if (!__atomic_compare_exchange_n(&board->image_sums[variant], &none, sum, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        ck_assert_uint_eq(none, sum);
}

/* A round is a process' life, as far as the library can tell: nothing in memory at its start. */
static void dispatch(uint32_t index)
{
    for (uint32_t round = 0; round < rounds(); round++) {
        open_fake();
        create();
        for (uint32_t i = 0; i < KEYS; i++)
            launch((i + index * KEYS / PROCESSES) % KEYS);
        struct cbn_stats stats = stats_now();
        ck_assert_uint_eq(stats.launches, KEYS);
        __atomic_add_fetch(&board->launches, stats.launches, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&board->compiles, stats.compiles, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&board->disk_hits, stats.overlay_hits, __ATOMIC_SEQ_CST);
        close_runtime();
    }
    __atomic_add_fetch(&board->done, 1, __ATOMIC_SEQ_CST);
    _exit(0);
}

static int ignore_entry(void *user, const struct cbn_entry_info *entry)
{
    (void)user, (void)entry;
    return 0;
}

START_TEST(prune_beside_four_dispatching_processes)
{
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(board, MAP_FAILED);
    /* In memory, where a sync costs nothing: there are thousands. */
    (void)snprintf(folder, sizeof(folder), "/dev/shm/cubinet-prune-XXXXXX");
    if (!mkdtemp(folder))
        make_folder(folder);
    pid_t pids[PROCESSES];
    for (uint32_t i = 0; i < PROCESSES; i++)
        if ((pids[i] = fork()) == 0)
            dispatch(i);
    create();
    uint64_t prunes = 0, removed = 0;
    /* Mostly down to half, now and then all. */
    while (__atomic_load_n(&board->done, __ATOMIC_SEQ_CST) < PROCESSES && waitpid(-1, NULL, WNOHANG | WNOWAIT) <= 0) {
        struct cbn_prune_options options = CBN_PRUNE_OPTIONS_INIT;
        struct cbn_prune_result result = {.size = sizeof(result)};
        if (prunes % PRUNES_A_CLEARANCE)
            options.max_bytes = HALF_BYTES;
        else
            options.flags = CBN_PRUNE_ALL;
        ck_assert_msg(cbn_cabinet_prune(runtime, &options, NULL, NULL, &result, &error) == CBN_STATUS_OK, "%s",
                      error.message);
        removed += result.removed;
        prunes++;
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(status == 0, "process %u: wait status 0x%x", i, status);
    }
    printf("%llu launches, %llu from disk, %llu builds, beside %llu prunes of %llu entries\n",
           (unsigned long long)board->launches, (unsigned long long)board->disk_hits,
           (unsigned long long)board->compiles, (unsigned long long)prunes, (unsigned long long)removed);
    ck_assert_uint_eq(board->launches, PROCESSES * rounds() * KEYS);
    ck_assert_uint_ge(board->compiles, KEYS);
    ck_assert_uint_ge(board->compiles, removed);
    ck_assert_uint_gt(removed, KEYS);
    ck_assert_uint_gt(board->disk_hits, 0);
    uint64_t damaged = 1;
    ck_assert_int_eq(cbn_cabinet_list(runtime, ignore_entry, NULL, &damaged, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(damaged, 0);
    cbn_runtime_destroy(runtime);
    ck_assert_int_eq(remove_folder(folder), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prune-stress");
    TCase *cases = tcase_create("prune-stress");
    tcase_set_timeout(cases, 200);
    tcase_add_test(cases, prune_beside_four_dispatching_processes);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
