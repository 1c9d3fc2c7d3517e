/*
 * The file that a pack is written to: beside its place until it is whole and on the disk. See pack.h.
 */
#include "cache/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"

#define MODE 0666 /* less the umask: a pack is handed around, and what is in it is no secret */
#define NAMES_TRIED 16

/* As open(2) makes it, so that the umask and the folder's default ACL count. */
static int open_part(const char *path, char **ret_part)
{
    CBN__LOW_DESCRIPTORS_AUTO low = cbn__low_descriptors_hold();
    for (int i = 0; i < NAMES_TRIED; i++) {
        CBN__BUF_AUTO name = CBN__BUF_INIT;
        cbn__buf_append_format(&name, "%s.%u-%llx.part", path, (unsigned)getpid(),
                               (unsigned long long)cbn__clock_monotonic_ns());
        *ret_part = name.failed ? NULL : strdup(cbn__buf_text(&name));
        if (!*ret_part) {
            errno = ENOMEM;
            return -1;
        }
        int fd = open(*ret_part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
        if (fd >= 0 || errno != EEXIST)
            return fd;
        free(*ret_part);
    }
    *ret_part = NULL;
    return -1;
}

static int open_as_it_is(const char *path)
{
    CBN__LOW_DESCRIPTORS_AUTO low = cbn__low_descriptors_hold();
    return open(path, O_WRONLY | O_CLOEXEC);
}

static int32_t cannot_make(const char *path, int code, struct cbn_error *err)
{
    return cbn__error_os(err, CBN_STATUS_IO, code, "cannot make %s", path);
}

int32_t cbn__pack_file_open(const char *path, int fd, struct cbn__pack_file *ret_file, struct cbn_error *err)
{
    struct stat present;
    *ret_file = (struct cbn__pack_file){.fd = path ? -1 : fd, .owned = path != NULL};
    if (!path)
        return CBN_STATUS_OK;
    bool exists = stat(path, &present) == 0;
    if (exists && S_ISDIR(present.st_mode))
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is a folder; name a file", path);
    if (exists && !S_ISREG(present.st_mode)) {
        ret_file->fd = open_as_it_is(path);
        return ret_file->fd >= 0 ? CBN_STATUS_OK : cannot_make(path, errno, err);
    }
    /* Through a link its target is replaced, not the link. */
    if (!exists && lstat(path, &present) == 0)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is a symbolic link that leads to nothing; name a file",
                              path);
    ret_file->path = exists ? realpath(path, NULL) : strdup(path);
    if (!ret_file->path)
        return cannot_make(path, errno, err);
    ret_file->fd = open_part(ret_file->path, &ret_file->part);
    if (ret_file->fd >= 0)
        return CBN_STATUS_OK;
    int code = errno;
    free(ret_file->part);
    ret_file->part = NULL;
    return cannot_make(path, code, err);
}

/* The name is on the disk once its folder is. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    free(folder);
}

int32_t cbn__pack_file_commit(struct cbn__pack_file *file, struct cbn_error *err)
{
    if (!file->path)
        return CBN_STATUS_OK;
    if (fsync(file->fd) != 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot write %s to the disk", file->part);
    if (rename(file->part, file->path) != 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot put the pack in its place %s", file->path);
    free(file->part);
    file->part = NULL;
    sync_folder(file->path);
    return CBN_STATUS_OK;
}

void cbn__pack_file_done(struct cbn__pack_file *file)
{
    if (file->part)
        (void)unlink(file->part);
    free(file->part);
    free(file->path);
    if (file->owned && file->fd >= 0)
        (void)close(file->fd);
    *file = (struct cbn__pack_file){.fd = -1};
}
