/*
 * Room: what fits into the bound, and who goes when something does not.
 *
 * The pages in use never come closer to the bound than the headroom: deleting writes pages too and must work on a
 * full file. Everything here runs inside of a session; what changes the file, of a write session.
 */
#ifndef CBN_CACHE_SPACE_H
#define CBN_CACHE_SPACE_H

#include "cache/session.h"

struct cbn__space {
    uint32_t page_bytes;
    uint64_t bound_pages;
    uint64_t used_pages; /* neither free nor behind the last one */
    uint64_t headroom_pages;
};

int cbn__space_measure(struct cbn__session *session, struct cbn__space *ret_space);
/* Pages of the entries and their usage as the transaction has them. LMDB's code. */
int cbn__space_table_pages(struct cbn__session *session, uint64_t *ret_pages);

/* Pages of its own that a value occupies; 0 for one that stands in a leaf. */
uint64_t cbn__space_pages_of(uint32_t page_bytes, uint64_t value_bytes);
/* Bytes that go when the value goes: its pages, or its share of a leaf. */
uint64_t cbn__space_bytes_of(uint32_t page_bytes, uint64_t value_bytes);

/*
 * Stores one value with its usage and commits. What does not fit pushes out the least recently used entries that are
 * not pinned, in batches. MDB_MAP_FULL: it cannot fit, or takes more than an eighth of a bound that has no room left;
 * then nothing was evicted for it as far as could be foreseen.
 */
int cbn__space_put(struct cbn__session *session, const struct cbn__store_key *key, struct cbn__blob value);

/* Puts what is not there yet, else MDB_KEYEXIST, without eviction. Commits nothing. */
int cbn__space_add(struct cbn__session *session, const struct cbn__store_key *key, struct cbn__blob value);

/* A value of that size may be put without touching the headroom. */
bool cbn__space_has_room(const struct cbn__space *space, uint64_t value_bytes);

/* Entries that one transaction may delete: each may write leaf pages of two tables anew. */
uint32_t cbn__space_chunk(const struct cbn__space *space);

/*
 * Once a process, before it orders or writes any use: the clock of recency goes on from the most recent use that is
 * stored, which lies ahead of a wall clock that was set back. One pass over the usage. LMDB's code.
 */
int cbn__space_learn_clock(struct cbn__session *session);

/* The stored usage of an entry; zeros when nothing is stored, or damaged. */
void cbn__space_stored_usage(struct cbn__session *session, const struct cbn__store_key *key,
                             struct cbn__usage_record *ret_record);
/* Together with what waits in memory. */
void cbn__space_usage(struct cbn__session *session, const struct cbn__store_key *key,
                      struct cbn__usage_record *ret_record);
/*
 * Who is least recent, to eviction and to prune alike: the last use or put, or when that is not recorded the build, as
 * the stored value has it, that never later than now.
 */
uint64_t cbn__space_recency_us(const struct cbn__usage_record *usage, struct cbn__blob value);
int cbn__space_write_usage(struct cbn__session *session, const struct cbn__store_key *key,
                           const struct cbn__usage_record *record);
/* Deletes an entry, and its usage unless that is pinned and keep_pin is set. */
int cbn__space_delete(struct cbn__session *session, const struct cbn__store_key *key, bool keep_pin);

#endif
