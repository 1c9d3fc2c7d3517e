/*
 * The data file's stamp. See stamp.h.
 *
 * A change within one tick of the clock after a session's own is not told apart where the kernel does not refine change
 * times that were looked at (Linux 6.13 and later do, on the local filesystems).
 */
#include "cache/stamp.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cache/store.h"

#define STAMP_AT 64 /* behind the mark */
#define STAMP_BYTES 64u
#define NS_PER_S 1000000000u

static uint64_t change_ns(const struct stat *file)
{
    return (uint64_t)file->st_ctim.tv_sec * NS_PER_S + (uint64_t)file->st_ctim.tv_nsec;
}

static void format_stamp(const struct stat *file, char ret_text[STAMP_BYTES + 1])
{
    char numbers[STAMP_BYTES];
    (void)snprintf(numbers, sizeof(numbers), "stamp %016llx %016llx %016llx", (unsigned long long)file->st_ino,
                   (unsigned long long)file->st_size, (unsigned long long)change_ns(file));
    (void)snprintf(ret_text, STAMP_BYTES + 1, "%-63s\n", numbers);
}

static bool is_recorded(const struct cbn__store *store, const char text[STAMP_BYTES + 1])
{
    char present[STAMP_BYTES];
    return store->lock.fd >= 0 && pread(store->lock.fd, present, STAMP_BYTES, STAMP_AT) == (ssize_t)STAMP_BYTES &&
           memcmp(present, text, STAMP_BYTES) == 0;
}

void cbn__stamp_take(struct cbn__store *store, const struct stat *file)
{
    atomic_store(&store->stamp_ns, change_ns(file));
}

void cbn__stamp_renew(struct cbn__store *store)
{
    struct stat file;
    char text[STAMP_BYTES + 1];
    if (store->data_fd < 0 || fstat(store->data_fd, &file) != 0)
        return;
    cbn__stamp_take(store, &file);
    format_stamp(&file, text);
    /* Lost, the record costs every other process a walk. */
    (void)!pwrite(store->lock.fd, text, STAMP_BYTES, STAMP_AT);
}

bool cbn__stamp_holds(struct cbn__store *store, const struct stat *file)
{
    char text[STAMP_BYTES + 1];
    if (change_ns(file) == atomic_load(&store->stamp_ns))
        return true;
    format_stamp(file, text);
    if (!is_recorded(store, text))
        return false;
    atomic_store(&store->stamp_ns, change_ns(file));
    return true;
}
