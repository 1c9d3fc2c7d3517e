/*
 * A pack that comes as a stream is read to its end before anything of it is believed.
 */
#ifndef CBN_CACHE_SPOOL_H
#define CBN_CACHE_SPOOL_H

#include "base/error.h"

/*
 * A descriptor of one's own to the same bytes, which can be read anywhere: of a regular file that very file, of a
 * stream a file without a name beside data_path, of at most bound_bytes. OK, LIMIT, IO, NO_MEMORY.
 */
int32_t cbn__spool(int fd, const char *name, const char *data_path, uint64_t bound_bytes, int *ret_fd,
                   struct cbn_error *err);

#endif
