/*
 * What tests of other users share: becoming one, which needs root, and opening a folder as one.
 */
#ifndef CBN_TEST_USERS_FIXTURE_H
#define CBN_TEST_USERS_FIXTURE_H

#include "cache_fixture.h"

#include <grp.h>

#define OTHER_UID 54321
#define THIRD_UID 54322
#define SHARED_GID 54399

__attribute__((unused)) static int32_t open_status(const char *folder, bool trust_folder, struct cbn_error *err)
{
    struct cbn__cabinet_options options = options_for(folder, NULL);
    options.trust_folder = trust_folder;
    struct cbn__cabinet *cabinet = NULL;
    int32_t status = cbn__cabinet_open(&options, &cabinet, err);
    cbn__cabinet_close(cabinet);
    return status;
}

__attribute__((unused)) static bool is_root(void)
{
    if (geteuid() == 0)
        return true;
    printf("skipped: giving folders to other users needs root\n");
    return false;
}

__attribute__((unused)) static void become(uid_t uid, gid_t gid, gid_t extra)
{
    if (setgroups(extra ? 1 : 0, &extra) != 0 || setgid(gid) != 0 || setuid(uid) != 0)
        _exit(2);
}

#endif
