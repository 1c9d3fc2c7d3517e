/*
 * The runs of pages that large values have to themselves. LMDB frees, reuses and copies a run by what its head says,
 * so a head is looked at before LMDB goes by it; the walk at open reads none, or it would read a page an entry.
 * Reading a value needs no head: where it stands and how long it is come from its leaf, which the walk has read.
 *
 * Whatever puts over an entry or deletes one goes through here. Within a session, of the store's exclusive side.
 */
#ifndef CBN_CACHE_RUNS_H
#define CBN_CACHE_RUNS_H

#include "cache/session.h"

/* Notes where the map lies, right after the session's transaction began. LMDB's code. */
int cbn__runs_learn(struct cbn__session *session);

/* A value as LMDB gave it: MDB_CORRUPTED when it stands in a run whose head is wrong. */
int cbn__runs_check(const struct cbn__session *session, const MDB_val *value);

/* mdb_put and mdb_del behind that check of what is there. */
int cbn__runs_put(struct cbn__session *session, MDB_dbi table, MDB_val *key, MDB_val *value, unsigned flags);
int cbn__runs_delete(struct cbn__session *session, MDB_dbi table, MDB_val *key);

#endif
