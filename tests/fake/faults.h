/*
 * libfaults.so: stands before libc, and fails the n-th call that a program makes to the filesystem, ends the process
 * there, or writes down what reaches the disk. Linked before libc it needs no LD_PRELOAD; LMDB's calls come by as well.
 *
 * A process arms it, and what it arms holds for that process and its children. thread: any, while it is armed.
 */
#ifndef CBN_TEST_FAULTS_H
#define CBN_TEST_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* X(name, text): the kinds of calls that are counted. */
#define FAULT_KIND_MAP(X)                                                                                              \
    X(OPEN, "open")      /* open, openat, a duplicate of a descriptor */                                               \
    X(WRITE, "write")    /* write, pwrite, writev */                                                                   \
    X(SYNC, "fsync")     /* fsync, fdatasync, msync */                                                                 \
    X(SIZE, "ftruncate") /* and fallocate */                                                                           \
    X(MAP, "mmap")       /* of a file */                                                                               \
    X(NAME, "rename")    /* rename, unlink, link, mkdir */                                                             \
    X(LOCK, "lock")      /* open-file-description locks */

enum fault_kind {
#define FAULT_X(name, text) FAULT_##name,
    FAULT_KIND_MAP(FAULT_X)
#undef FAULT_X
        FAULT_KINDS
};

#define FAULT_SHORT (-1) /* in place of a code: half is written. Of anything but a write: EIO */
#define FAULT_KILL (-2)  /* SIGKILL before the call */
#define FAULT_TEAR (-3)  /* half is written, then SIGKILL */

struct fault_plan {
    uint32_t at;  /* the call, counted over all kinds from 1; 0: none, calls are counted only */
    int code;     /* an errno, or one of the above */
    bool lasting; /* every later call of that kind fails with it too */
};

struct fault_report {
    uint32_t calls; /* counted since it was armed */
    uint32_t fired;
    enum fault_kind kind; /* of the one that failed */
};

void faults_arm(const struct fault_plan *plan);
struct fault_report faults_disarm(void);

/* What the process reads as its boot id: 36 characters. NULL: the kernel's own. */
void faults_set_boot_id(const char *boot_id);

/* What was done to the disk, in order. A file is its inode: names come and go. */
enum fault_step_kind { STEP_CREATE, STEP_WRITE, STEP_SIZE, STEP_SYNC, STEP_RENAME, STEP_UNLINK, STEP_MARK };

struct fault_step {
    enum fault_step_kind kind;
    ino_t inode;    /* CREATE, WRITE, SIZE, SYNC */
    off_t offset;   /* WRITE; SIZE: the size; MARK: the caller's number */
    size_t size;    /* WRITE */
    uint8_t *bytes; /* WRITE */
    char name[64];  /* CREATE, UNLINK, RENAME: without folder */
    char to[64];    /* RENAME */
};

void faults_record(void);
/* A step of the caller's own. */
void faults_mark(int64_t number);
/* Ends the recording. The steps belong to the library, until the next recording. */
size_t faults_recorded(const struct fault_step **ret_steps);

#endif
