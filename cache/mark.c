/*
 * The mark in the lock file: that commits of some boot of the machine may not be on the disk, and which one is. Grammar
 * in FORMAT.md. Judges no page.
 *
 * Locks: on the store's exclusive side, but for what says otherwise in store.h. The mark is synced when it is set on a
 * folder that was closed cleanly: once a process, before its first commit.
 */
#include "cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MARK_BYTES 64u
#define MARK_WORD "unsynced "
#define BOOT_ID_BYTES 36u
#define SYNCED_AT (sizeof(MARK_WORD) - 1 + BOOT_ID_BYTES) /* of a mark: what of which file is on the disk */
#define SYNCED_BYTES (MARK_BYTES - SYNCED_AT - 1)

static bool read_boot_id(char ret_id[BOOT_ID_BYTES])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool read_all = read(fd, ret_id, BOOT_ID_BYTES) == (ssize_t)BOOT_ID_BYTES;
    (void)close(fd);
    return read_all;
}

/* False where the boot cannot be told (a container without /proc): zeros stand for it. */
static bool format_mark(char ret_mark[MARK_BYTES])
{
    char boot_id[BOOT_ID_BYTES];
    memset(boot_id, '0', sizeof(boot_id));
    bool known = read_boot_id(boot_id);
    memset(ret_mark, ' ', MARK_BYTES);
    memcpy(ret_mark, MARK_WORD, strlen(MARK_WORD));
    memcpy(ret_mark + strlen(MARK_WORD), boot_id, sizeof(boot_id));
    ret_mark[MARK_BYTES - 1] = '\n';
    return known;
}

/* One that a process was killed over, half written, is none: nothing was committed under it. */
static bool is_mark(const char mark[MARK_BYTES])
{
    for (size_t i = strlen(MARK_WORD); i < SYNCED_AT; i++)
        if (mark[i] == 0 || !strchr("0123456789abcdef-", mark[i]))
            return false;
    return memcmp(mark, MARK_WORD, strlen(MARK_WORD)) == 0;
}

/* A number that wraps tells two files or two transactions of one boot apart as well. */
static void format_synced(ino_t inode, uint64_t transaction, char ret_text[SYNCED_BYTES])
{
    char text[SYNCED_BYTES + 1];
    (void)snprintf(text, sizeof(text), " %08x %08x", (unsigned)inode, (unsigned)transaction);
    memcpy(ret_text, text, SYNCED_BYTES);
}

void cbn__datafile_mark_synced(const struct cbn__store *store, ino_t inode, uint64_t transaction)
{
    char text[SYNCED_BYTES];
    /* The store's own descriptor may be closed by another thread, and a duplicate would carry its locks into a child.
     */
    int fd = cbn__lock_open_file(store->lock_path, true, store->lock.mode);
    if (fd < 0)
        return;
    format_synced(inode, transaction, text);
    /* Lost, or that of a process that was slower, it costs a salvage where none was needed. */
    (void)!pwrite(fd, text, sizeof(text), (off_t)SYNCED_AT);
    (void)close(fd);
}

static bool read_mark(struct cbn__store *store, char ret_mark[MARK_BYTES])
{
    return store->lock.fd >= 0 && pread(store->lock.fd, ret_mark, MARK_BYTES, 0) == (ssize_t)MARK_BYTES;
}

int32_t cbn__datafile_mark(struct cbn__store *store)
{
    char wanted[MARK_BYTES], present[MARK_BYTES];
    bool known = format_mark(wanted);
    /* Another's mark, which may name the boot, is as good as one that cannot. */
    if (read_mark(store, present) && (memcmp(present, wanted, SYNCED_AT) == 0 || (!known && is_mark(present))))
        return CBN_STATUS_OK;
    /* Closed cleanly, or come through a reboot: what is there now is on the disk. */
    struct cbn__pages_meta meta;
    if (store->data_fd >= 0 && !cbn__pages_read_meta(store->data_fd, &meta))
        format_synced(store->data_inode, meta.transaction, wanted + SYNCED_AT);
    /* The mark reaches the disk before any page does that it speaks of. */
    if (pwrite(store->lock.fd, wanted, MARK_BYTES, 0) != (ssize_t)MARK_BYTES || fdatasync(store->lock.fd) != 0)
        return CBN_STATUS_IO;
    return CBN_STATUS_OK;
}

void cbn__datafile_clear_mark(struct cbn__store *store)
{
    char blank[MARK_BYTES];
    memset(blank, ' ', sizeof(blank));
    blank[MARK_BYTES - 1] = '\n';
    /* Lost, the blank leaves a mark that costs one check. */
    (void)!pwrite(store->lock.fd, blank, sizeof(blank), 0);
}

static bool names_no_boot(const char *boot_id)
{
    for (size_t i = 0; i < BOOT_ID_BYTES; i++)
        if (boot_id[i] != '0')
            return false;
    return true;
}

bool cbn__datafile_marked_by_another_boot(struct cbn__store *store, bool *ret_synced)
{
    char wanted[MARK_BYTES], present[MARK_BYTES];
    const char *boot_id = present + strlen(MARK_WORD);
    *ret_synced = true;
    if (!format_mark(wanted) || !read_mark(store, present) || !is_mark(present) ||
        memcmp(present, wanted, SYNCED_AT) == 0 || names_no_boot(boot_id))
        return false;
    format_synced(store->data_inode, store->checked.transaction, wanted + SYNCED_AT);
    *ret_synced = memcmp(present + SYNCED_AT, wanted + SYNCED_AT, SYNCED_BYTES) == 0;
    return true;
}
