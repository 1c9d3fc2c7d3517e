/*
 * Whether the data file was written by anybody but a session since it was last walked. Its change time tells that it
 * was written, a record in the lock file that a session of some process did it: then the pages are as LMDB left them.
 */
#ifndef CBN_CACHE_STAMP_H
#define CBN_CACHE_STAMP_H

#include <stdbool.h>
#include <sys/stat.h>

struct cbn__store;

/* The state that the next walk will see. Exclusive side held, as for the next. */
void cbn__stamp_take(struct cbn__store *store, const struct stat *file);
/* What was written was written here. */
void cbn__stamp_renew(struct cbn__store *store);

/* Either side held. */
bool cbn__stamp_holds(struct cbn__store *store, const struct stat *file);

#endif
