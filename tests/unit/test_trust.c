/*
 * Whose folder is opened, and what is said about one that is not.
 */
#include "cache/folder.h"
#include "users_fixture.h"

#include <lmdb.h>

/* What takes the file's place just before LMDB opens it; "": nothing. */
static char swap_in[PATH_BYTES * 2];
static bool swap_again;
static int lmdb_opens;

int __real_mdb_env_open(MDB_env *env, const char *path, unsigned flags, mdb_mode_t mode);
int __wrap_mdb_env_open(MDB_env *env, const char *path, unsigned flags, mdb_mode_t mode);

int __wrap_mdb_env_open(MDB_env *env, const char *path, unsigned flags, mdb_mode_t mode)
{
    char copy[PATH_BYTES * 2 + 16];
    lmdb_opens++;
    if (swap_in[0]) {
        (void)snprintf(copy, sizeof(copy), "%s.%d", swap_in, swap_again ? lmdb_opens : 0);
        ck_assert_int_eq(rename(copy, path), 0);
        if (!swap_again)
            swap_in[0] = 0;
    }
    return __real_mdb_env_open(env, path, flags, mode);
}

static void make_store(const char *folder, uint64_t which)
{
    struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
    ck_assert_int_eq(put(cabinet, which, 300, 13000), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
}

/* Never a file that was not walked: the new one is checked and used. */
START_TEST(a_file_replaced_before_lmdb_opens_it)
{
    SCRATCH_AUTO scratch = scratch_make();
    make_store(in(&scratch, "cache"), 1);
    make_store(in(&scratch, "other"), 2);
    ck_assert_int_eq(rename(in(&scratch, "other/data.mdb"), in(&scratch, "other/data.mdb.0")), 0);
    (void)snprintf(swap_in, sizeof(swap_in), "%s", in(&scratch, "other/data.mdb"));
    lmdb_opens = 0;
    struct cbn__cabinet *cabinet = open_cabinet(in(&scratch, "cache"), NULL);
    ck_assert_int_eq(lmdb_opens, 2);
    ck_assert_int_eq(find(cabinet, 2, 300), CBN__LOOKUP_HIT);
    ck_assert_int_eq(find(cabinet, 1, 300), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(put(cabinet, 3, 300, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(lmdb_opens, 2);
    cbn__cabinet_close(cabinet);
}
END_TEST

/* As often as it is opened: an error, and an end. */
START_TEST(a_file_replaced_again_and_again)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn_error err = {0};
    make_store(in(&scratch, "cache"), 0);
    for (uint64_t i = 1; i <= 4; i++) {
        char name[32];
        make_store(in(&scratch, "other"), i);
        (void)snprintf(name, sizeof(name), "file.%d", (int)i);
        ck_assert_int_eq(rename(in(&scratch, "other/data.mdb"), in(&scratch, name)), 0);
    }
    (void)snprintf(swap_in, sizeof(swap_in), "%s", in(&scratch, "file"));
    swap_again = true;
    lmdb_opens = 0;
    int32_t status = open_status(in(&scratch, "cache"), false, &err);
    swap_again = false;
    swap_in[0] = 0;
    ck_assert_int_eq(status, CBN_STATUS_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "replaced as often as it is opened"));
    ck_assert_int_eq(lmdb_opens, 3);
    ck_assert_int_eq(count_files(in(&scratch, "cache"), ""), 2);
}
END_TEST

/* A link in the file's place leads LMDB elsewhere: nothing is read or written there. */
START_TEST(a_link_put_before_lmdb_opens_the_file)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn_error err = {0};
    make_store(in(&scratch, "cache"), 1);
    make_store(in(&scratch, "other"), 2);
    off_t bytes = file_bytes(in(&scratch, "other/data.mdb"));
    ck_assert_int_eq(symlink(in(&scratch, "other/data.mdb"), in(&scratch, "link.0")), 0);
    (void)snprintf(swap_in, sizeof(swap_in), "%s", in(&scratch, "link"));
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), NULL);
    struct cbn__cabinet *cabinet = NULL;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_IO);
    ck_assert_int_eq(err.native_code, ELOOP);
    ck_assert_int_eq(find(cabinet, 2, 300), CBN__LOOKUP_ABSENT);
    ck_assert_int_eq(put(cabinet, 3, 300, 13000), CBN_STATUS_NOT_FOUND);
    cbn__cabinet_close(cabinet);
    ck_assert_int_eq(file_bytes(in(&scratch, "other/data.mdb")), bytes);
    cabinet = open_cabinet(in(&scratch, "other"), NULL);
    ck_assert_int_eq(find(cabinet, 2, 300), CBN__LOOKUP_HIT);
    ck_assert_int_eq(find(cabinet, 3, 300), CBN__LOOKUP_ABSENT);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_world_writable_folder)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct cbn_error err = {0};
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chmod(folder, 0777), 0);
    ck_assert_int_eq(open_status(folder, false, &err), CBN_STATUS_UNTRUSTED);
    ck_assert_ptr_nonnull(strstr(err.message, "chmod o-w"));
    ck_assert_ptr_nonnull(strstr(err.message, "CBN_RUNTIME_TRUST_FOLDER"));
    ck_assert_int_eq(count_files(folder, ""), 0);
    ck_assert_int_eq(chmod(folder, 01777), 0);
    ck_assert_int_eq(open_status(folder, false, &err), CBN_STATUS_UNTRUSTED);
    ck_assert_int_eq(open_status(folder, true, &err), CBN_STATUS_OK);
    ck_assert_int_eq(chmod(folder, 0700), 0);
    ck_assert_int_eq(open_status(folder, false, &err), CBN_STATUS_OK);
}
END_TEST

START_TEST(the_override_is_said_once)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct events events = {0};
    ck_assert_int_eq(mkdir(in(&scratch, "cache"), 0700), 0);
    ck_assert_int_eq(chmod(in(&scratch, "cache"), 0777), 0);
    struct cbn__cabinet_options options = options_for(in(&scratch, "cache"), &events);
    struct cbn__cabinet *cabinet = NULL;
    options.trust_folder = true;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(put(cabinet, 1, 100, 13000), CBN_STATUS_OK);
    ck_assert_int_eq(find(cabinet, 1, 100), CBN__LOOKUP_HIT);
    ck_assert_int_eq(events.notices, 1);
    ck_assert_ptr_nonnull(strstr(events.last, "by override"));
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_world_writable_parent)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn_error err = {0};
    ck_assert_int_eq(mkdir(in(&scratch, "open"), 0700), 0);
    ck_assert_int_eq(chmod(in(&scratch, "open"), 0777), 0);
    ck_assert_int_eq(open_status(in(&scratch, "open/cache"), false, &err), CBN_STATUS_UNTRUSTED);
    ck_assert_ptr_nonnull(strstr(err.message, "above"));
    ck_assert_int_eq(chmod(in(&scratch, "open"), 01777), 0);
    ck_assert_int_eq(open_status(in(&scratch, "open/cache"), false, &err), CBN_STATUS_OK);
}
END_TEST

START_TEST(a_world_writable_file)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn_error err = {0};
    ck_assert_int_eq(open_status(in(&scratch, "cache"), false, &err), CBN_STATUS_OK);
    ck_assert_int_eq(chmod(in(&scratch, "cache/data.mdb"), 0666), 0);
    ck_assert_int_eq(open_status(in(&scratch, "cache"), false, &err), CBN_STATUS_UNTRUSTED);
    ck_assert_int_eq(open_status(in(&scratch, "cache"), true, &err), CBN_STATUS_OK);
}
END_TEST

START_TEST(a_folder_of_another_user)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct cbn_error err = {0};
    if (!is_root())
        return;
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    ck_assert_int_eq(chown(folder, OTHER_UID, OTHER_UID), 0);
    ck_assert_int_eq(open_status(folder, false, &err), CBN_STATUS_UNTRUSTED);
    ck_assert_ptr_nonnull(strstr(err.message, "another user owns it"));
    const char *base = folder;
    struct cbn__cabinet_options options = options_for(NULL, NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.base_paths = &base;
    options.base_count = 1;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_OK);
    ck_assert_int_eq(err.status, CBN_STATUS_UNTRUSTED);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

START_TEST(a_link_into_another_user_s_folder)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn_error err = {0};
    if (!is_root())
        return;
    ck_assert_int_eq(chmod(scratch.path, 0755), 0);
    ck_assert_int_eq(mkdir(in(&scratch, "theirs"), 02770), 0);
    ck_assert_int_eq(chown(in(&scratch, "theirs"), OTHER_UID, SHARED_GID), 0);
    ck_assert_int_eq(chmod(in(&scratch, "theirs"), 02770), 0);
    ck_assert_int_eq(symlink("theirs", in(&scratch, "link")), 0);
    pid_t child = fork();
    if (child == 0) {
        become(THIRD_UID, THIRD_UID, SHARED_GID);
        bool right = open_status(in(&scratch, "theirs"), false, &err) == CBN_STATUS_OK &&
                     open_status(in(&scratch, "link"), false, &err) == CBN_STATUS_UNTRUSTED &&
                     strstr(err.message, "symbolic link") &&
                     open_status(in(&scratch, "link/"), false, &err) == CBN_STATUS_UNTRUSTED;
        _exit(right ? 0 : 1);
    }
    reap(child);
}
END_TEST

START_TEST(a_link_of_another_user)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn_error err = {0};
    if (!is_root())
        return;
    ck_assert_int_eq(open_status(in(&scratch, "cache"), false, &err), CBN_STATUS_OK);
    ck_assert_int_eq(symlink("cache", in(&scratch, "link")), 0);
    ck_assert_int_eq(open_status(in(&scratch, "link"), false, &err), CBN_STATUS_OK);
    ck_assert_int_eq(lchown(in(&scratch, "link"), OTHER_UID, OTHER_UID), 0);
    ck_assert_int_eq(open_status(in(&scratch, "link"), false, &err), CBN_STATUS_UNTRUSTED);
    ck_assert_ptr_nonnull(strstr(err.message, "symbolic link"));
}
END_TEST

/* 2770 and a umask of 077: the second user reads and writes, and the folder's mode is left alone. */
START_TEST(a_group_shared_folder)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct stat status;
    if (!is_root())
        return;
    ck_assert_int_eq(chmod(scratch.path, 0755), 0);
    ck_assert_int_eq(mkdir(folder, 02770), 0);
    ck_assert_int_eq(chown(folder, OTHER_UID, SHARED_GID), 0);
    ck_assert_int_eq(chmod(folder, 02770), 0);
    static const uid_t uids[] = {OTHER_UID, THIRD_UID, OTHER_UID};
    for (uint64_t i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)umask(077);
            become(uids[i], uids[i], SHARED_GID);
            struct cbn__cabinet *cabinet = open_cabinet(folder, NULL);
            bool right = put(cabinet, i, 300, 13000) == CBN_STATUS_OK;
            for (uint64_t j = 0; j <= i; j++)
                right = right && find(cabinet, j, 300) == CBN__LOOKUP_HIT;
            cbn__cabinet_close(cabinet);
            _exit(right ? 0 : 1);
        }
        reap(child);
    }
    ck_assert_int_eq(stat(folder, &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 02770);
    ck_assert_int_eq(stat(in(&scratch, "cache/data.mdb"), &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0660);
}
END_TEST

START_TEST(inspect)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn__folder_report report;
    cbn__folder_inspect(in(&scratch, "a/b/c"), &report);
    ck_assert(!report.exists && report.trusted && report.writable && report.local);
    ck_assert_str_eq(report.problem, "");
    ck_assert_uint_gt(report.free_bytes, 0);
    ck_assert_int_eq(access(in(&scratch, "a"), F_OK), -1);
    cbn__folder_inspect(scratch.path, &report);
    ck_assert(report.exists && report.trusted && report.writable);
    ck_assert_uint_eq(report.mode, 0700);
    ck_assert_uint_eq(report.owner_uid, geteuid());
    ck_assert_str_ne(report.filesystem, "");
    ck_assert_int_eq(chmod(scratch.path, 0777), 0);
    cbn__folder_inspect(scratch.path, &report);
    ck_assert(report.exists && !report.trusted);
    ck_assert_ptr_nonnull(strstr(report.mend, "chmod o-w"));
    cbn__folder_inspect("/proc/self", &report);
    ck_assert(!report.local);
    ck_assert_ptr_nonnull(strstr(report.mend, "/var/tmp/cubinet-"));
    cbn__folder_inspect("", &report);
    ck_assert_str_ne(report.problem, "");
    cbn__folder_inspect("/etc/passwd", &report);
    ck_assert_str_ne(report.problem, "");
    cbn__folder_inspect("relative/folder", &report);
    ck_assert(!report.exists);
}
END_TEST

START_TEST(not_a_local_filesystem)
{
    struct cbn_error err = {0};
    struct cbn__cabinet_options options = options_for("/proc/self", NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.read_only = true;
    options.trust_folder = true;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, &err), CBN_STATUS_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "local"));
    cbn__cabinet_close(cabinet);
    char name[32];
    ck_assert(!cbn__folder_is_local("/proc", name, sizeof(name)));
    ck_assert_str_eq(name, "0x9fa0");
    char fallback[64], wanted[64];
    cbn__folder_fallback(fallback, sizeof(fallback));
    (void)snprintf(wanted, sizeof(wanted), "/var/tmp/cubinet-%u", (unsigned)geteuid());
    ck_assert_str_eq(fallback, wanted);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trust");
    TCase *cases = tcase_create("trust");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_file_replaced_before_lmdb_opens_it);
    tcase_add_test(cases, a_file_replaced_again_and_again);
    tcase_add_test(cases, a_link_put_before_lmdb_opens_the_file);
    tcase_add_test(cases, a_world_writable_folder);
    tcase_add_test(cases, the_override_is_said_once);
    tcase_add_test(cases, a_world_writable_parent);
    tcase_add_test(cases, a_world_writable_file);
    tcase_add_test(cases, a_folder_of_another_user);
    tcase_add_test(cases, a_link_into_another_user_s_folder);
    tcase_add_test(cases, a_link_of_another_user);
    tcase_add_test(cases, a_group_shared_folder);
    tcase_add_test(cases, inspect);
    tcase_add_test(cases, not_a_local_filesystem);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
