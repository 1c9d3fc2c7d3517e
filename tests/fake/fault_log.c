/*
 * What was done to the disk, step by step. See faults.h and fault_log.h. One thread at a time.
 */
#include "fault_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct {
    bool on;
    struct fault_step *steps;
    size_t count, capacity;
} fault_log;

static struct fault_step *add_step(enum fault_step_kind kind, const char *name)
{
    if (fault_log.count == fault_log.capacity) {
        fault_log.capacity = fault_log.capacity ? 2 * fault_log.capacity : 1024;
        fault_log.steps = realloc(fault_log.steps, fault_log.capacity * sizeof(*fault_log.steps));
        if (!fault_log.steps)
            abort();
    }
    struct fault_step *step = &fault_log.steps[fault_log.count++];
    *step = (struct fault_step){.kind = kind};
    const char *slash = name ? strrchr(name, '/') : NULL;
    if (name)
        (void)snprintf(step->name, sizeof(step->name), "%s", slash ? slash + 1 : name);
    return step;
}

void fault_log_file(enum fault_step_kind kind, int fd, off_t offset)
{
    struct stat status;
    if (!fault_log.on || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    struct fault_step *step = add_step(kind, NULL);
    step->inode = status.st_ino;
    step->offset = offset;
}

void fault_log_write(int fd, off_t offset, const struct iovec *parts, int count, ssize_t written)
{
    struct stat status;
    if (!fault_log.on || written <= 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    struct fault_step *step = add_step(STEP_WRITE, NULL);
    step->inode = status.st_ino;
    step->offset = offset;
    step->bytes = malloc((size_t)written);
    for (int i = 0; i < count && step->size < (size_t)written; i++) {
        size_t rest = (size_t)written - step->size;
        size_t size = parts[i].iov_len < rest ? parts[i].iov_len : rest;
        memcpy(step->bytes + step->size, parts[i].iov_base, size);
        step->size += size;
    }
}

void fault_log_name(enum fault_step_kind kind, const char *from, const char *to)
{
    if (!fault_log.on)
        return;
    struct fault_step *step = add_step(kind, from);
    const char *slash = to ? strrchr(to, '/') : NULL;
    if (to)
        (void)snprintf(step->to, sizeof(step->to), "%s", slash ? slash + 1 : to);
}

void fault_log_create(const char *name, ino_t inode)
{
    add_step(STEP_CREATE, name)->inode = inode;
}

bool fault_log_is_on(void)
{
    return fault_log.on;
}

void faults_record(void)
{
    for (size_t i = 0; i < fault_log.count; i++)
        free(fault_log.steps[i].bytes);
    fault_log.count = 0;
    fault_log.on = true;
}

void faults_mark(int64_t number)
{
    if (fault_log.on)
        add_step(STEP_MARK, NULL)->offset = number;
}

size_t faults_recorded(const struct fault_step **ret_steps)
{
    fault_log.on = false;
    *ret_steps = fault_log.steps;
    return fault_log.count;
}
