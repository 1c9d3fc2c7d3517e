/*
 * Sessions on one environment: lock; is the open file still the one in the folder; transaction; release.
 *
 * A read session holds the store's shared side, a write session the exclusive one; both are short.
 */
#ifndef CBN_CACHE_SESSION_H
#define CBN_CACHE_SESSION_H

#include "cache/store.h"

struct cbn__session {
    struct cbn__store *store;
    MDB_txn *txn; /* NULL within a write session: committed already */
    /* runs.c; 0: of a session that only reads, or of a file that it made itself. */
    uintptr_t map;
    uint64_t map_bytes;
    uint32_t page_bytes;
    bool committed;
    bool syncs_later; /* another session follows that syncs: only begin to write to the disk */
};

/*
 * Begins with a transaction. An environment that cannot be used is closed and opened again on the exclusive side,
 * within the same deadline and a bound on tries. OK, TIMEOUT, UNTRUSTED, IO, DAMAGED, NO_MEMORY.
 */
int32_t cbn__session_read(struct cbn__store *store, uint32_t timeout_ms, struct cbn__session *ret_session,
                          struct cbn_error *err);
/* code: LMDB's, of what was done inside. */
int32_t cbn__session_read_end(struct cbn__session *session, int code, struct cbn_error *err);

int32_t cbn__session_write(struct cbn__store *store, uint32_t timeout_ms, struct cbn__session *ret_session,
                           struct cbn_error *err);
/* Commits when code is 0 and begins another transaction under the same lock. LMDB's code of what failed. */
int cbn__session_renew(struct cbn__session *session, int code);
/* Commits when code is 0. The bytes go to the disk after the lock is released, through a descriptor of our own. */
int32_t cbn__session_write_end(struct cbn__session *session, int code, struct cbn_error *err);

/* The lock alone, exclusive, on an open file; for what closes it. Release with cbn__lock_release_exclusive. */
int32_t cbn__session_own(struct cbn__store *store, uint32_t timeout_ms, struct cbn_error *err);

/* What LMDB's code means for the next session: the environment is of no more use, or its file. */
void cbn__session_judge(struct cbn__store *store, int code);

/* The bound as LMDB takes it: whole pages of the system. */
uint64_t cbn__session_map_bytes(struct cbn__store *store);

#endif
