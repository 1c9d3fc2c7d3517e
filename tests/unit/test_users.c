/*
 * One folder and several users: who gets the files that one of them makes, and whose folders and links are followed.
 */
#include "users_fixture.h"

/* As user and groups say: stores entry which, finds all up to it. Exit status 0 when all of that worked. */
static void use_as(const char *folder, uid_t uid, gid_t gid, gid_t extra, bool trust_folder, uint64_t which)
{
    pid_t child = fork();
    if (child == 0) {
        (void)umask(077);
        if (uid != 0)
            become(uid, gid, extra);
        struct cbn__cabinet_options options = options_for(folder, NULL);
        struct cbn__cabinet *cabinet = NULL;
        options.trust_folder = trust_folder;
        bool right = cbn__cabinet_open(&options, &cabinet, NULL) == CBN_STATUS_OK &&
                     put(cabinet, which, 300, 13000) == CBN_STATUS_OK;
        for (uint64_t i = 0; right && i <= which; i++)
            right = find(cabinet, i, 300) == CBN__LOOKUP_HIT;
        cbn__cabinet_close(cabinet);
        _exit(right ? 0 : 1);
    }
    reap(child);
}

static void expect_file(const char *path, uid_t uid, gid_t gid, mode_t mode)
{
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_uid, uid);
    ck_assert_uint_eq(status.st_gid, gid);
    ck_assert_uint_eq(status.st_mode & 07777, mode);
}

/* Root, or an owner outside of the group, warms a folder that a group shares; without setgid, too. */
START_TEST(a_group_gets_what_one_outside_of_it_makes)
{
    static const mode_t modes[] = {02770, 0770};
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    if (!is_root())
        return;
    ck_assert_int_eq(chmod(scratch.path, 0755), 0);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chown(folder, 0, SHARED_GID), 0);
    ck_assert_int_eq(chmod(folder, modes[_i]), 0);
    use_as(folder, 0, 0, 0, false, 0);
    expect_file(in(&scratch, "cache/data.mdb"), 0, SHARED_GID, 0660);
    expect_file(in(&scratch, "cache/lock"), 0, SHARED_GID, 0660);
    use_as(folder, OTHER_UID, OTHER_UID, SHARED_GID, false, 1);
    use_as(folder, THIRD_UID, THIRD_UID, SHARED_GID, false, 2);
    expect_file(folder, 0, SHARED_GID, modes[_i]);
}
END_TEST

START_TEST(the_first_of_a_group_shares_without_setgid)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    if (!is_root())
        return;
    ck_assert_int_eq(chmod(scratch.path, 0755), 0);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chown(folder, OTHER_UID, SHARED_GID), 0);
    ck_assert_int_eq(chmod(folder, 0770), 0);
    use_as(folder, THIRD_UID, THIRD_UID, SHARED_GID, false, 0);
    expect_file(in(&scratch, "cache/data.mdb"), THIRD_UID, SHARED_GID, 0660);
    use_as(folder, OTHER_UID, OTHER_UID, SHARED_GID, false, 1);
}
END_TEST

/* Platforms that start a container as a uid of their choice, in group 0: each new one finds what the last one left. */
START_TEST(any_uid_of_group_0)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    if (!is_root())
        return;
    ck_assert_int_eq(chmod(scratch.path, 0755), 0);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chmod(folder, 0775), 0);
    for (uint64_t i = 0; i < 3; i++)
        use_as(folder, (uid_t)(OTHER_UID + 1000 * i), 0, 0, false, i);
    expect_file(in(&scratch, "cache/data.mdb"), OTHER_UID, 0, 0660);
}
END_TEST

/* Sticky: who did not make a file can write it, and can neither rename nor remove it. Damage is told, its maker mends.
 */
START_TEST(a_damaged_file_that_another_must_set_aside)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    if (!is_root())
        return;
    ck_assert_int_eq(chmod(scratch.path, 0755), 0);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chown(folder, 0, SHARED_GID), 0);
    ck_assert_int_eq(chmod(folder, 03770), 0);
    use_as(folder, OTHER_UID, OTHER_UID, SHARED_GID, false, 0);
    use_as(folder, THIRD_UID, THIRD_UID, SHARED_GID, false, 1);
    ck_assert_int_eq(truncate(in(&scratch, "cache/data.mdb"), 100), 0);
    pid_t child = fork();
    if (child == 0) {
        struct events events = {0};
        struct cbn_error err = {0};
        become(THIRD_UID, THIRD_UID, SHARED_GID);
        struct cbn__cabinet_options options = options_for(folder, &events);
        struct cbn__cabinet *cabinet = NULL;
        bool right = cbn__cabinet_open(&options, &cabinet, &err) != CBN_STATUS_OK && events.notices == 1 &&
                     strstr(events.last, "data.mdb") && find(cabinet, 0, 300) == CBN__LOOKUP_ABSENT &&
                     put(cabinet, 0, 300, 13000) == CBN_STATUS_NOT_FOUND;
        cbn__cabinet_close(cabinet);
        _exit(right ? 0 : 1);
    }
    reap(child);
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 0);
    use_as(folder, OTHER_UID, OTHER_UID, SHARED_GID, false, 0);
    ck_assert_int_eq(count_files(folder, "data.mdb.damaged-"), 1);
    use_as(folder, THIRD_UID, THIRD_UID, SHARED_GID, false, 1);
}
END_TEST

/* An owner who is not of the group may not give files to it: they stay the owner's, and the group is told. */
START_TEST(an_owner_who_cannot_share)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    if (!is_root())
        return;
    ck_assert_int_eq(chmod(scratch.path, 0755), 0);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chown(folder, OTHER_UID, SHARED_GID), 0);
    ck_assert_int_eq(chmod(folder, 0770), 0);
    use_as(folder, OTHER_UID, OTHER_UID, 0, false, 0);
    expect_file(in(&scratch, "cache/data.mdb"), OTHER_UID, OTHER_UID, 0600);
    pid_t child = fork();
    if (child == 0) {
        struct events events = {0};
        struct cbn_error err = {0};
        become(THIRD_UID, THIRD_UID, SHARED_GID);
        struct cbn__cabinet_options options = options_for(folder, &events);
        struct cbn__cabinet *cabinet = NULL;
        bool right = cbn__cabinet_open(&options, &cabinet, &err) == CBN_STATUS_IO && err.native_code == EACCES &&
                     strstr(err.message, "to this user") && events.notices == 1 &&
                     cbn__cabinet_layer_count(cabinet) == 0 && find(cabinet, 0, 300) == CBN__LOOKUP_ABSENT;
        cbn__cabinet_close(cabinet);
        _exit(right ? 0 : 1);
    }
    reap(child);
}
END_TEST

/* Root reads a user's volume by override only, and what it makes there is the user's: they are not locked out. */
START_TEST(root_in_a_user_s_folder)
{
    SCRATCH_AUTO scratch = scratch_make();
    const char *folder = in(&scratch, "cache");
    struct cbn_error err = {0};
    if (!is_root())
        return;
    ck_assert_int_eq(chmod(scratch.path, 0755), 0);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chown(folder, OTHER_UID, OTHER_UID), 0);
    ck_assert_int_eq(open_status(folder, false, &err), CBN_STATUS_UNTRUSTED);
    ck_assert_ptr_nonnull(strstr(err.message, "another user owns it"));
    ck_assert_ptr_nonnull(strstr(err.message, "--trust-folder (CBN_RUNTIME_TRUST_FOLDER)"));
    ck_assert_int_eq(count_files(folder, ""), 0);
    use_as(folder, 0, 0, 0, true, 0);
    expect_file(in(&scratch, "cache/data.mdb"), OTHER_UID, OTHER_UID, 0600);
    expect_file(in(&scratch, "cache/lock"), OTHER_UID, OTHER_UID, 0600);
    use_as(folder, OTHER_UID, OTHER_UID, 0, false, 1);
    use_as(folder, 0, 0, 0, true, 2);
    struct cbn__cabinet_options options = options_for(folder, NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.trust_folder = true;
    ck_assert_int_eq(cbn__cabinet_open(&options, &cabinet, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__cabinet_compact(cabinet, &err), CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    expect_file(in(&scratch, "cache/data.mdb"), OTHER_UID, OTHER_UID, 0600);
    use_as(folder, OTHER_UID, OTHER_UID, 0, false, 3);
}
END_TEST

/* own -> another's link -> own: whoever owns the one in the middle chooses where it leads. */
START_TEST(a_link_that_names_another_user_s_link)
{
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn_error err = {0};
    if (!is_root())
        return;
    ck_assert_int_eq(open_status(in(&scratch, "cache"), false, &err), CBN_STATUS_OK);
    ck_assert_int_eq(symlink("cache", in(&scratch, "middle")), 0);
    ck_assert_int_eq(symlink(in(&scratch, "middle"), in(&scratch, "outer")), 0);
    ck_assert_int_eq(symlink("outer", in(&scratch, "outermost")), 0);
    ck_assert_int_eq(open_status(in(&scratch, "outermost"), false, &err), CBN_STATUS_OK);
    ck_assert_int_eq(lchown(in(&scratch, "middle"), OTHER_UID, OTHER_UID), 0);
    ck_assert_int_eq(open_status(in(&scratch, "outer"), false, &err), CBN_STATUS_UNTRUSTED);
    ck_assert_int_eq(open_status(in(&scratch, "outermost"), false, &err), CBN_STATUS_UNTRUSTED);
    ck_assert_ptr_nonnull(strstr(err.message, "symbolic link that another user owns"));
    ck_assert_int_eq(open_status(in(&scratch, "outermost"), true, &err), CBN_STATUS_OK);
}
END_TEST

/* The fallback's name is known to everyone, and nobody chose it: made by another, it is refused, group or not. */
START_TEST(a_fallback_that_another_user_made)
{
    char folder[64];
    if (!is_root())
        return;
    (void)snprintf(folder, sizeof(folder), "/var/tmp/cubinet-%d", THIRD_UID);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chown(folder, OTHER_UID, SHARED_GID), 0);
    ck_assert_int_eq(chmod(folder, 02770), 0);
    pid_t child = fork();
    if (child == 0) {
        struct cbn_error err = {0};
        become(THIRD_UID, THIRD_UID, SHARED_GID);
        bool right = open_status(folder, false, &err) == CBN_STATUS_UNTRUSTED &&
                     strstr(err.message, "in this user's name") && strstr(err.message, "--trust-folder");
        _exit(right ? 0 : 1);
    }
    int status = 0, files = count_files(folder, "");
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(files, 0);
}
END_TEST

/* However its name is spelled: 0700, the parents 0755, and less where the umask says so. */
START_TEST(modes_of_folders_made)
{
    static const char *const names[] = {"a/cache", "b/cache/", "c/cache//", "d/cache/.", "e/./cache/.//"};
    SCRATCH_AUTO scratch = scratch_make();
    struct cbn_error err = {0};
    mode_t kept = umask(0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert_int_eq(open_status(in(&scratch, names[i]), false, &err), CBN_STATUS_OK);
        expect_file(in(&scratch, names[i]), geteuid(), getegid(), 0700);
    }
    expect_file(in(&scratch, "a"), geteuid(), getegid(), 0755);
    expect_file(in(&scratch, "e"), geteuid(), getegid(), 0755);
    expect_file(in(&scratch, "a/cache/data.mdb"), geteuid(), getegid(), 0600);
    (void)umask(kept);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("users");
    TCase *cases = tcase_create("users");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, a_group_gets_what_one_outside_of_it_makes, 0, 2);
    tcase_add_test(cases, the_first_of_a_group_shares_without_setgid);
    tcase_add_test(cases, any_uid_of_group_0);
    tcase_add_test(cases, a_damaged_file_that_another_must_set_aside);
    tcase_add_test(cases, an_owner_who_cannot_share);
    tcase_add_test(cases, root_in_a_user_s_folder);
    tcase_add_test(cases, a_link_that_names_another_user_s_link);
    tcase_add_test(cases, a_fallback_that_another_user_made);
    tcase_add_test(cases, modes_of_folders_made);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
