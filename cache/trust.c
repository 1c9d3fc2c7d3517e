/*
 * Whose folder is it? The rules of trust; folder.h states them.
 */
#include "cache/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"

#define OVERRIDE "or override with --trust-folder (CBN_RUNTIME_TRUST_FOLDER)"

static bool own_or_root(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

static bool in_group(gid_t gid)
{
    if (gid == getegid())
        return true;
    if (cbn__env_is_ignored())
        return false; /* a setuid program's other groups are those of whoever started it */
    int count = getgroups(0, NULL);
    if (count <= 0)
        return false;
    gid_t *groups = calloc((size_t)count, sizeof(*groups));
    bool found = false;
    count = groups ? getgroups(count, groups) : 0;
    for (int i = 0; i < count; i++)
        found = found || groups[i] == gid;
    free(groups);
    return found;
}

static void refuse(struct cbn__trust *trust, const char *problem, const char *mend_format, const char *path)
{
    trust->trusted = false;
    (void)snprintf(trust->problem, sizeof(trust->problem), "%s", problem);
    (void)snprintf(trust->mend, sizeof(trust->mend), mend_format, path);
}

#define LINKS_MAX 40 /* of one path: the kernel follows no more */

static bool walk_links(const char *path, int *links_left);

/* The link at prefix is own, and so is every link on the way that it names. */
static bool link_is_own(const char *prefix, const struct stat *status, int *links_left)
{
    char target[PATH_MAX], joined[2 * PATH_MAX];
    if (!own_or_root(status->st_uid) || (*links_left)-- == 0)
        return false;
    ssize_t length = readlink(prefix, target, sizeof(target) - 1);
    if (length <= 0)
        return false;
    target[length] = 0;
    const char *name = strrchr(prefix, '/');
    int folder_length = name ? (int)(name - prefix) + 1 : 0;
    (void)snprintf(joined, sizeof(joined), "%.*s%s", target[0] == '/' ? 0 : folder_length, prefix, target);
    return strlen(joined) < PATH_MAX && walk_links(joined, links_left);
}

static bool walk_links(const char *path, int *links_left)
{
    char prefix[PATH_MAX];
    size_t length = strlen(path);
    if (length >= sizeof(prefix))
        return false;
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(prefix, path, i);
        prefix[i] = 0;
        struct stat status;
        if (lstat(prefix, &status) == 0 && S_ISLNK(status.st_mode) && !link_is_own(prefix, &status, links_left))
            return false;
    }
    return true;
}

/* Symbolic links in path as it was given, and in what they say: another user's can be pointed elsewhere at any time. */
static bool links_are_own(const char *path, bool *ret_any)
{
    int links_left = LINKS_MAX;
    bool own = walk_links(path, &links_left);
    *ret_any = !own || links_left < LINKS_MAX;
    return own;
}

/* A parent that everyone may write, without the sticky bit: everyone could put another folder in its place. */
static bool parents_are_safe(const char *resolved)
{
    char prefix[4096];
    (void)snprintf(prefix, sizeof(prefix), "%s", resolved);
    for (char *slash = strrchr(prefix, '/'); slash && slash != prefix; slash = strrchr(prefix, '/')) {
        *slash = 0;
        struct stat status;
        if (stat(prefix, &status) != 0)
            return errno == EACCES;
        if (status.st_mode & S_IWOTH && !(status.st_mode & S_ISVTX))
            return false;
    }
    return true;
}

static void judge(const char *path, const char *resolved, const struct stat *folder, struct cbn__trust *trust)
{
    bool via_link = false;
    bool links_own = links_are_own(path, &via_link);
    bool own = own_or_root(folder->st_uid);
    char fallback[64];
    cbn__folder_fallback(fallback, sizeof(fallback));
    trust->group_shared = folder->st_mode & S_IWGRP && in_group(folder->st_gid);
    if (folder->st_mode & S_IWOTH)
        refuse(trust, "everyone can write it", "run chmod o-w '%.120s', " OVERRIDE, resolved);
    else if (!links_own)
        refuse(trust, "it is reached through a symbolic link that another user owns",
               "name the folder '%.100s' itself, " OVERRIDE, resolved);
    else if (!own && via_link)
        refuse(trust, "a symbolic link leads into a folder that another user owns",
               "name a folder of your own in place of '%.100s', " OVERRIDE, path);
    else if (!own && strcmp(resolved, fallback) == 0) /* a name that anybody can take, and that nobody chose */
        refuse(trust, "another user made it in this user's name",
               "have '%.100s' removed, name a folder of your own, " OVERRIDE, resolved);
    else if (!own && !trust->group_shared)
        refuse(trust, "another user owns it and does not share it with a group of this user",
               "share '%.100s' with chmod g+rwxs, name a folder of your own, " OVERRIDE, resolved);
    else if (!parents_are_safe(resolved))
        refuse(trust, "everyone can write a folder above it, and so replace it",
               "run chmod o-w (or +t) on the folders above '%.100s', " OVERRIDE, resolved);
}

void cbn__trust_folder(const char *path, struct cbn__trust *ret_trust)
{
    *ret_trust = (struct cbn__trust){.trusted = true};
    struct stat folder;
    char *resolved = realpath(path, NULL);
    if (!resolved || stat(resolved, &folder) != 0)
        refuse(ret_trust, "it cannot be looked at", "make '%.150s' readable for this user", path);
    else
        judge(path, resolved, &folder, ret_trust);
    free(resolved);
}

static void judge_pack(const char *path, const char *resolved, const struct stat *file, const struct stat *folder,
                       struct cbn__trust *trust)
{
    bool via_link = false;
    bool links_own = links_are_own(path, &via_link);
    trust->group_shared = folder->st_mode & S_IWGRP && in_group(folder->st_gid);
    bool folder_own = own_or_root(folder->st_uid);
    bool file_own = own_or_root(file->st_uid) ||
                    (trust->group_shared && file->st_mode & S_IWGRP && file->st_gid == folder->st_gid);
    if (file->st_mode & S_IWOTH)
        refuse(trust, "everyone can write it", "run chmod o-w '%.120s', " OVERRIDE, resolved);
    else if (!links_own)
        refuse(trust, "it is reached through a symbolic link that another user owns",
               "name the file '%.100s' itself, " OVERRIDE, resolved);
    else if (!file_own || (!folder_own && !trust->group_shared))
        refuse(trust, file_own ? "another user owns the folder that it lies in" : "another user owns it",
               "have it as a file of root or your own, in place of '%.100s', " OVERRIDE, resolved);
    else if (!folder_own && via_link)
        refuse(trust, "a symbolic link leads into a folder that another user owns", "name '%.100s' itself, " OVERRIDE,
               resolved);
    else if (!parents_are_safe(resolved))
        refuse(trust, "everyone can write a folder above it, and so replace it",
               "run chmod o-w (or +t) on the folders above '%.100s', " OVERRIDE, resolved);
}

void cbn__trust_pack(const char *path, const struct stat *file, struct cbn__trust *ret_trust)
{
    *ret_trust = (struct cbn__trust){.trusted = true};
    struct stat folder;
    char *resolved = realpath(path, NULL);
    char *slash = resolved ? strrchr(resolved, '/') : NULL;
    char *parent = slash ? strndup(resolved, slash == resolved ? 1 : (size_t)(slash - resolved)) : NULL;
    if (!parent || stat(parent, &folder) != 0)
        refuse(ret_trust, "it cannot be looked at", "make '%.150s' readable for this user", path);
    else
        judge_pack(path, resolved, file, &folder, ret_trust);
    free(parent);
    free(resolved);
}

bool cbn__trust_file(const struct stat *file, const struct stat *folder, bool group_shared)
{
    if (!S_ISREG(file->st_mode) || file->st_mode & S_IWOTH)
        return false;
    return own_or_root(file->st_uid) || (group_shared && file->st_gid == folder->st_gid);
}
