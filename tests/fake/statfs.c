/*
 * Stands before libc by LD_PRELOAD: statfs tells another filesystem for the folders named in the environment.
 *
 *   FAKE_STATFS=/folder=6969:/other=bd00bd0     hexadecimal f_type, as statfs(2) has it; the first prefix that fits
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define EXPORT __attribute__((visibility("default")))

/* The f_type named for path; 0: none. */
static unsigned long named_type(const char *path)
{
    const char *at = getenv("FAKE_STATFS");
    while (at && *at) {
        size_t length = strcspn(at, "=");
        if (strncmp(path, at, length) == 0 && (path[length] == 0 || path[length] == '/'))
            return strtoul(at + length + 1, NULL, 16);
        at += strcspn(at, ":");
        at += *at == ':';
    }
    return 0;
}

static int real(const char *path, struct statfs *ret_status)
{
    int (*next)(const char *, struct statfs *) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "statfs");
    memcpy(&next, &symbol, sizeof(symbol));
    int rc = next(path, ret_status);
    if (rc == 0 && named_type(path))
        ret_status->f_type = (__typeof__(ret_status->f_type))named_type(path);
    return rc;
}

EXPORT int statfs(const char *path, struct statfs *ret_status)
{
    return real(path, ret_status);
}

EXPORT int statfs64(const char *path, struct statfs64 *ret_status)
{
    _Static_assert(sizeof(struct statfs64) == sizeof(struct statfs), "one layout on 64 bits");
    return real(path, (struct statfs *)(void *)ret_status);
}
