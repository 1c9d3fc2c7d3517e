/*
 * A path whose file holds an input, without a disk: loaders take paths.
 */
#ifndef CBN_TESTS_FUZZ_MEMORY_FILE_H
#define CBN_TESTS_FUZZ_MEMORY_FILE_H

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

struct memory_file {
    int fd;
    char path[32];
};

static inline struct memory_file memory_file_make(const uint8_t *data, size_t size)
{
    struct memory_file file = {memfd_create("fuzz", MFD_CLOEXEC), ""};
    FUZZ_CHECK(file.fd >= 0);
    FUZZ_CHECK(write(file.fd, data, size) == (ssize_t)size);
    (void)snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
    return file;
}

static inline void memory_file_done(struct memory_file *file)
{
    (void)close(file->fd);
}

#endif
