/*
 * Every call to the filesystem that a scenario makes fails once, and then for good, with every code: the process goes
 * on within its deadlines, what was stored is served whole, nothing is left in the folder, and the next use is as ever.
 *
 * ctest takes one code a call. CBN_SWEEP=full in the environment takes all of them.
 */
#include "sweep_scenes.h"

#define DEADLINE_S 20
#define CALLS_MAX 2000u
#define TELL_MOST 20u

static const int codes[] = {ENOSPC, EIO, EDQUOT, EACCES, EROFS, ENOMEM, FAULT_SHORT};
#define CODE_COUNT (sizeof(codes) / sizeof(codes[0]))

/* ---- one point ---- */

static int count_descriptors(void)
{
    return count_files("/proc/self/fd", "");
}

static void expect_tidy(const struct scene *scene, const char *folder)
{
    DIR *dir = opendir(folder);
    for (struct dirent *item = dir ? readdir(dir) : NULL; item; item = readdir(dir)) {
        bool known = item->d_name[0] == '.' || strcmp(item->d_name, "lock") == 0 ||
                     strcmp(item->d_name, "data.mdb") == 0 ||
                     (scene->damaged && strncmp(item->d_name, "data.mdb.damaged-", 17) == 0);
        if (!known)
            fprintf(stderr, "  left: %s\n", item->d_name);
        NEED(known, 0, 0);
    }
    if (dir)
        (void)closedir(dir);
    char path[2 * PATH_BYTES];
    snprintf(path, sizeof(path), "%s/data.mdb", folder);
    NEED(file_bytes(path) != 0, 0, 0);
}

static int count_problem(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                         uint32_t layer, const char *layer_path)
{
    (void)key, (void)entry, (void)layer, (void)layer_path;
    ((int *)user)[problem != NULL]++;
    return 0;
}

/* Everything that must be served is, and what is served is right; then the folder is used as ever. */
static uint32_t expect_whole(const struct scene *scene, struct state *state)
{
    uint32_t left = 0; /* of the entries that were there before */
    struct cbn__cabinet *cabinet = open_cabinet(state->folder, NULL);
    int told[2] = {0};
    for (uint64_t i = 0; i < NEW_KEY + 3; i++) {
        enum cbn__lookup found = find(cabinet, i, size_of(i));
        NEED(found == CBN__LOOKUP_HIT || !state->served[i], i, found);
        NEED(found == CBN__LOOKUP_HIT || found == CBN__LOOKUP_ABSENT || scene->damaged, i, found);
        left += found == CBN__LOOKUP_HIT && i < scene->entries;
    }
    NEED(cbn__cabinet_each(cabinet, count_problem, told, NULL) == CBN_STATUS_OK && told[1] == 0, told[0], told[1]);
    int32_t status = put(cabinet, NEW_KEY + 3, 5000, 13000);
    NEED(status == CBN_STATUS_OK && find(cabinet, NEW_KEY + 3, 5000) == CBN__LOOKUP_HIT, status, 0);
    cbn__cabinet_close(cabinet);
    return left;
}

/* The fault is over: the same process goes on as if nothing had been. */
static void expect_recovered(struct cbn__cabinet *cabinet, struct state *state)
{
    if (!cbn__cabinet_can_write(cabinet))
        return;
    int32_t status = put(cabinet, NEW_KEY + 3, 5000, 13000);
    NEED(status == CBN_STATUS_OK, status, 0);
    NEED(find(cabinet, NEW_KEY + 3, 5000) == CBN__LOOKUP_HIT, 0, 0);
    for (uint64_t i = 0; i < NEW_KEY + 3; i++) {
        enum cbn__lookup found = find(cabinet, i, size_of(i));
        NEED(found == CBN__LOOKUP_HIT || !state->served[i], i, found);
    }
}

/* In a child. Returns what was counted. */
static struct fault_report play(const struct scene *scene, const char *folder, const struct fault_plan *plan)
{
    struct state state = {.folder = folder};
    /* A put that meets a full disk evicts, and tries once more. */
    const bool evicts = scene->puts && (plan->code == ENOSPC || plan->code == EDQUOT);
    for (uint64_t i = 0; i < scene->entries; i++)
        state.served[i] = !scene->loses && !evicts;
    (void)alarm(DEADLINE_S);
    const int descriptors = count_descriptors();
    faults_arm(plan);
    struct cbn__cabinet *cabinet = open_scene(scene, &state);
    scene->act(cabinet, &state);
    struct fault_report report = faults_disarm();
    if (report.fired && !plan->lasting)
        expect_recovered(cabinet, &state);
    else
        faults_arm(&(struct fault_plan){plan->at > report.calls ? plan->at - report.calls : report.fired != 0,
                                        plan->code, plan->lasting});
    cbn__cabinet_close(cabinet);
    struct fault_report closing = faults_disarm();
    if (closing.calls) {
        report.kind = report.fired ? report.kind : closing.kind;
        report.fired += closing.fired;
        report.calls += closing.calls;
    }
    NEED(state.told > 0 || state.unsaid == 0, state.told, state.unsaid);
    NEED(report.fired || state.failed + state.unsaid == 0 || scene->damaged, state.failed, state.unsaid);
    NEED(count_descriptors() == descriptors, count_descriptors(), descriptors);
    /* What cannot be removed stays until it can. */
    if (!plan->lasting || report.kind != FAULT_NAME)
        expect_tidy(scene, folder);
    uint32_t left = expect_whole(scene, &state);
    expect_tidy(scene, folder);
    /* The scenario is what it says it is. */
    NEED(plan->at || !scene->loses || left < scene->entries || state.damages, left, scene->entries);
    NEED(left >= scene->least || evicts || (scene->damaged && plan->lasting), left, scene->least);
    return report;
}

/* ---- the sweep ---- */

struct template
{
    uint8_t *bytes;
    size_t size;
};

static void make_store(const struct scene *scene, const char *folder, struct template *ret_template)
{
    char path[2 * PATH_BYTES];
    *ret_template = (struct template){NULL, 0};
    if (scene->entries == 0)
        return;
    struct cbn__cabinet_options options = options_for(folder, NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.max_bytes = scene->bound_bytes < BOUND_BYTES ? BOUND_BYTES : scene->bound_bytes;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    for (uint64_t i = 0; i < scene->entries; i++)
        ck_assert_int_eq(put(cabinet, i, size_of(i), 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    if (scene->prepare)
        scene->prepare(folder);
    snprintf(path, sizeof(path), "%s/data.mdb", folder);
    ret_template->size = (size_t)file_bytes(path);
    ret_template->bytes = malloc(ret_template->size);
    int fd = open(path, O_RDONLY);
    ck_assert_int_eq(read(fd, ret_template->bytes, ret_template->size), (ssize_t)ret_template->size);
    (void)close(fd);
}

static void lay_out(const char *folder, const struct template *template)
{
    char path[3 * PATH_BYTES];
    if (template->size == 0)
        return;
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    snprintf(path, sizeof(path), "%s/data.mdb", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_eq(write(fd, template->bytes, template->size), (ssize_t) template->size);
    (void)close(fd);
}

struct sweep {
    uint64_t points, fired;
    uint32_t failures;
};

/* The calls of a scenario; 0: something was wrong. */
static uint32_t run_point(const struct scene *scene, const struct template *template, const struct fault_plan *plan,
                          struct sweep *sweep)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    char folder[2 * PATH_BYTES];
    struct fault_report report = {0};
    int ends[2], status = 0;
    snprintf(folder, sizeof(folder), "%s/cache", scratch.path);
    lay_out(folder, template);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        report = play(scene, folder, plan);
        _exit(write(ends[1], &report, sizeof(report)) == (ssize_t)sizeof(report) ? 0 : 2);
    }
    (void)close(ends[1]);
    ssize_t told = read(ends[0], &report, sizeof(report));
    (void)close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    sweep->points += plan->at != 0;
    sweep->fired += report.fired != 0;
    if (status == 0 && told == (ssize_t)sizeof(report))
        return report.calls;
    if (sweep->failures++ < TELL_MOST)
        fprintf(stderr, "%s: call %u with %d%s: wait status 0x%x\n", scene->name, plan->at, plan->code,
                plan->lasting ? " lasting" : "", (unsigned)status);
    return 0;
}

START_TEST(every_call_of_a_scenario_fails)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    const struct scene *scene = &scenes[_i];
    const char *wanted = getenv("CBN_SWEEP");
    const bool full = wanted && strcmp(wanted, "full") == 0;
    struct template template;
    struct sweep sweep = {0};
    make_store(scene, in(&scratch, "cache"), &template);
    uint32_t calls = run_point(scene, &template, &(struct fault_plan){.at = 0}, &sweep);
    ck_assert_uint_gt(calls, 5);
    ck_assert_uint_lt(calls, CALLS_MAX);
    for (uint32_t at = 1; at <= calls; at++)
        for (uint32_t i = 0; i < 2 * CODE_COUNT; i++)
            if (full || i == at % (2 * CODE_COUNT))
                (void)run_point(scene, &template, &(struct fault_plan){at, codes[i % CODE_COUNT], i >= CODE_COUNT},
                                &sweep);
    printf("%s: %u calls, %llu points, %llu fired, %u wrong\n", scene->name, calls, (unsigned long long)sweep.points,
           (unsigned long long)sweep.fired, sweep.failures);
    (void)fflush(stdout);
    free(template.bytes);
    ck_assert_uint_eq(sweep.failures, 0);
    ck_assert_uint_eq(sweep.fired, sweep.points);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sweep");
    TCase *cases = tcase_create("sweep");
    tcase_set_timeout(cases, getenv("CBN_SWEEP") ? 3600 : 240);
    tcase_add_loop_test(cases, every_call_of_a_scenario_fails, 0, (int)SCENE_COUNT);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
