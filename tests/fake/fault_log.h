/*
 * How the wrappers of faults.c write down what they let through. Nothing is written while it is off.
 */
#ifndef CBN_TEST_FAULT_LOG_H
#define CBN_TEST_FAULT_LOG_H

#include <sys/uio.h>

#include "faults.h"

bool fault_log_is_on(void);
void fault_log_create(const char *name, ino_t inode);
void fault_log_file(enum fault_step_kind kind, int fd, off_t offset);
void fault_log_write(int fd, off_t offset, const struct iovec *parts, int count, ssize_t written);
void fault_log_name(enum fault_step_kind kind, const char *from, const char *to); /* to: NULL for an unlink */

#endif
