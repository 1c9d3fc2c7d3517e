/*
 * Making folders and telling local filesystems from others.
 */
#include "cache/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "cache/lock.h"

#define PARENT_MODE 0755
#define FOLDER_MODE 0700
#define FILE_MODE 0600
#define SHARED_FILE_MODE 0660

/* X(f_type, name, local). Numbers: statfs(2), linux/magic.h and the filesystems' own sources. */
#define FILESYSTEM_MAP(X)                                                                                              \
    X(0xEF53, "ext4", true)                                                                                            \
    X(0x58465342, "xfs", true)                                                                                         \
    X(0x9123683E, "btrfs", true)                                                                                       \
    X(0x01021994, "tmpfs", true)                                                                                       \
    X(0x858458F6, "ramfs", true)                                                                                       \
    X(0x794C7630, "overlayfs", true)                                                                                   \
    X(0xF2F52010, "f2fs", true)                                                                                        \
    X(0x2FC12FC1, "zfs", true)                                                                                         \
    X(0xCA451A4E, "bcachefs", true)                                                                                    \
    X(0x3153464A, "jfs", true)                                                                                         \
    X(0x73717368, "squashfs", true)                                                                                    \
    X(0xE0F5E1E2, "erofs", true)                                                                                       \
    X(0x6969, "nfs", false)                                                                                            \
    X(0x0BD00BD0, "lustre", false)                                                                                     \
    X(0xFF534D42, "cifs", false)                                                                                       \
    X(0xFE534D42, "smb2", false)                                                                                       \
    X(0x00C36400, "ceph", false)                                                                                       \
    X(0x47504653, "gpfs", false)                                                                                       \
    X(0x19830326, "beegfs", false)                                                                                     \
    X(0x01021997, "9p", false)                                                                                         \
    X(0x65735546, "fuse", false)

/* EROFS or EACCES of a folder that is there already is no obstacle. */
static int32_t make_one(const char *path, mode_t mode, struct cbn_error *err)
{
    struct stat status;
    if (mkdir(path, mode) == 0 || errno == EEXIST)
        return CBN_STATUS_OK;
    int code = errno;
    if (stat(path, &status) == 0)
        return CBN_STATUS_OK;
    return cbn__error_os(err, CBN_STATUS_IO, code, "cannot make the folder %s; name another cache folder", path);
}

/* "a/b/", "a/b//." are a/b: the last component is the one that gets the folder's mode. */
static void cut_tail(char *text)
{
    size_t size = strlen(text);
    while (size > 1 && (text[size - 1] == '/' || (size > 2 && text[size - 1] == '.' && text[size - 2] == '/')))
        size--;
    text[size] = 0;
}

int32_t cbn__folder_create(const char *path, struct cbn_error *err)
{
    CBN__BUF_AUTO prefix = CBN__BUF_INIT;
    cbn__buf_append_text(&prefix, path);
    char *text = (char *)(uintptr_t)cbn__buf_text(&prefix);
    if (prefix.failed)
        return cbn__error_no_memory(err);
    cut_tail(text);
    for (char *slash = strchr(text + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int32_t status = make_one(text, PARENT_MODE, err);
        if (status != CBN_STATUS_OK)
            return status;
        *slash = '/';
    }
    return make_one(text, FOLDER_MODE, err);
}

static bool stat_parent(const char *path, struct stat *ret_folder)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof(folder))
        return false;
    memcpy(folder, path, length);
    folder[length] = 0;
    return stat(!slash ? "." : length ? folder : "/", ret_folder) == 0;
}

int cbn__folder_share_file(int fd, const char *path)
{
    struct stat folder, file;
    if (!stat_parent(path, &folder) || fstat(fd, &file) != 0)
        return -1;
    bool to_group = folder.st_mode & S_IWGRP && file.st_gid != folder.st_gid;
    bool to_owner = geteuid() == 0 && file.st_uid != folder.st_uid;
    /* Refused outside of the group: the file stays this user's own. */
    if ((to_group || to_owner) &&
        fchown(fd, to_owner ? folder.st_uid : (uid_t)-1, to_group || to_owner ? folder.st_gid : (gid_t)-1) == 0)
        file.st_gid = folder.st_gid;
    return fchmod(fd, folder.st_mode & S_IWGRP && file.st_gid == folder.st_gid ? SHARED_FILE_MODE : FILE_MODE);
}

static bool name_filesystem(uint32_t type, char *ret_name, size_t name_bytes)
{
    switch (type) {
#define CBN_X(number, name, local)                                                                                     \
    case number:                                                                                                       \
        (void)snprintf(ret_name, name_bytes, "%s", name);                                                              \
        return local;
        FILESYSTEM_MAP(CBN_X)
#undef CBN_X
    default:
        (void)snprintf(ret_name, name_bytes, "0x%x", type);
        return false;
    }
}

/* The folder itself, or the nearest parent that exists: where a missing one would be made. */
static bool nearest(const char *path, struct cbn__buf *ret_path)
{
    cbn__buf_append_text(ret_path, path);
    char *text = (char *)(uintptr_t)cbn__buf_text(ret_path);
    struct stat status;
    while (!ret_path->failed && stat(text, &status) != 0) {
        char *slash = strrchr(text, '/');
        if (!slash) {
            (void)snprintf(text, 2, ".");
            return stat(text, &status) == 0;
        }
        slash[slash == text] = 0;
        if (slash == text && stat(text, &status) != 0)
            return false;
    }
    return !ret_path->failed;
}

bool cbn__folder_is_local(const char *path, char *ret_name, size_t name_bytes)
{
    CBN__BUF_AUTO where = CBN__BUF_INIT;
    struct statfs status;
    if (!nearest(path, &where) || statfs(cbn__buf_text(&where), &status) != 0) {
        (void)snprintf(ret_name, name_bytes, "unknown");
        return false;
    }
    return name_filesystem((uint32_t)status.f_type, ret_name, name_bytes);
}

void cbn__folder_fallback(char *ret_path, size_t path_bytes)
{
    (void)snprintf(ret_path, path_bytes, "/var/tmp/cubinet-%u", (unsigned)geteuid());
}

static void report_problem(struct cbn__folder_report *report, const char *path)
{
    if (!report->local) {
        char fallback[64];
        cbn__folder_fallback(fallback, sizeof(fallback));
        (void)snprintf(report->problem, sizeof(report->problem), "its filesystem (%s) is not known to be local",
                       report->filesystem);
        (void)snprintf(report->mend, sizeof(report->mend), "use a folder on a local disk, such as %s", fallback);
    } else if (!report->writable) {
        (void)snprintf(report->problem, sizeof(report->problem),
                       report->exists ? "it cannot be written by this user" : "it is missing and cannot be made");
        (void)snprintf(report->mend, sizeof(report->mend), "give %.100s to uid %u, or name another folder", path,
                       (unsigned)geteuid());
    }
}

void cbn__folder_inspect(const char *path, struct cbn__folder_report *ret_report)
{
    *ret_report = (struct cbn__folder_report){0};
    struct stat status;
    ret_report->exists = stat(path, &status) == 0;
    CBN__BUF_AUTO where = CBN__BUF_INIT;
    if (path[0] == 0 || (ret_report->exists && !S_ISDIR(status.st_mode)) || !nearest(path, &where)) {
        (void)snprintf(ret_report->problem, sizeof(ret_report->problem), "it is not a folder");
        (void)snprintf(ret_report->mend, sizeof(ret_report->mend), "name a folder");
        return;
    }
    const char *base = cbn__buf_text(&where);
    if (ret_report->exists) {
        ret_report->mode = status.st_mode & 07777;
        ret_report->owner_uid = status.st_uid;
    }
    struct statvfs space;
    if (statvfs(base, &space) == 0)
        ret_report->free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
    ret_report->local = cbn__folder_is_local(base, ret_report->filesystem, sizeof(ret_report->filesystem));
    ret_report->writable = faccessat(AT_FDCWD, base, W_OK | X_OK, AT_EACCESS) == 0;
    struct cbn__trust trust = {.trusted = true};
    if (ret_report->exists)
        cbn__trust_folder(path, &trust);
    ret_report->trusted = trust.trusted;
    if (trust.trusted) {
        report_problem(ret_report, path);
        return;
    }
    memcpy(ret_report->problem, trust.problem, sizeof(ret_report->problem));
    memcpy(ret_report->mend, trust.mend, sizeof(ret_report->mend));
}

#define NS_PER_MS 1000000ull
#define PROBE_PAUSE_NS (2 * NS_PER_MS)

int32_t cbn__folder_probe_lock(const char *path, uint32_t timeout_ms, struct cbn_error *err)
{
    CBN__BUF_AUTO file = CBN__BUF_INIT;
    cbn__buf_append_format(&file, "%s/lock", path);
    if (file.failed)
        return cbn__error_no_memory(err);
    int fd = cbn__lock_open_file(cbn__buf_text(&file), false, 0);
    if (fd < 0 && errno == ENOENT)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "no lock file yet");
    if (fd < 0)
        return cbn__lock_explain(cbn__buf_text(&file), errno, err);
    uint64_t deadline_ns = cbn__clock_monotonic_ns() + timeout_ms * NS_PER_MS;
    int32_t status = cbn__lock_poll(fd, F_RDLCK, CBN__LOCK_DATA_BYTE, deadline_ns, PROBE_PAUSE_NS, NULL);
    int code = errno;
    (void)close(fd);
    if (status == CBN_STATUS_TIMEOUT)
        return cbn__error_own(err, CBN_STATUS_TIMEOUT, "%s is held by another process for longer than %u ms",
                              cbn__buf_text(&file), timeout_ms);
    if (status != CBN_STATUS_OK)
        return cbn__error_os(err, CBN_STATUS_IO, code, "cannot lock %s", cbn__buf_text(&file));
    return CBN_STATUS_OK;
}
