/*
 * One folder's LMDB environment. Sessions are short: lock, transaction, copy, release. Bytes are given out as copies
 * and verified by the caller; nothing here judges an entry.
 *
 * Files: session.c (begin, end), store.c (operations), batch.c (many puts at once), space.c (room, eviction), runs.c
 * (heads of runs), counters.c, datafile.c (opening, checking, setting aside), mark.c, stamp.c (who wrote last),
 * salvage.c, compact.c.
 * Locks: see lock.h. The fields below "exclusive" change on the exclusive side only. No lock is held on return.
 */
#ifndef CBN_CACHE_STORE_H
#define CBN_CACHE_STORE_H

#include <lmdb.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "cache/counters.h"
#include "cache/entry.h"
#include "cache/lock.h"
#include "cache/pages.h"
#include "cache/usage.h"

#define CBN__STORE_KEY_BYTES_MAX 511u /* LMDB's; a key of another length than ours is damage that is told */
#define CBN__STORE_NOTE_BYTES 1024u
#define CBN__STORE_GHOSTS 4096u
#define CBN__STORE_COPY_SUFFIX ".compact" /* behind the data file's name: a compaction's copy */

struct cbn__store_options {
    const char *folder; /* absolute, resolved */
    bool writable;
    bool trust_folder;
    bool group_shared;
    uint64_t max_bytes;
};

struct cbn__store {
    /* Guarded by the registry's mutex. */
    struct cbn__store *next;
    uint32_t refs;
    bool closing;

    /* Constant. */
    struct stat folder;
    bool writable;
    bool trust_folder;
    bool group_shared;
    char *data_path;
    char *lock_path;

    struct cbn__lock lock;
    struct cbn__usage usage;
    struct cbn__live_counters counters; /* not yet stored */

    atomic_ullong max_bytes;  /* only ever lowered: by a second opener, or to a map that fits */
    atomic_ullong disk_bytes; /* 0, or the bound of a put that met a full disk: what the file has */
    atomic_bool failed;       /* LMDB said that the environment is of no more use: reopen it */
    atomic_bool condemned;    /* LMDB said that the pages are wrong: set the file aside */
    atomic_ullong synced;     /* the newest transaction known to be on the disk */
    atomic_bool wrote;        /* by this process, since it was opened */
    atomic_ullong stamp_ns;   /* change time of the data file as it was walked, or left by a session */

    /* Exclusive. */
    MDB_env *env;
    MDB_dbi entries, usage_table, meta;
    int data_fd;
    dev_t data_device;
    ino_t data_inode;
    struct cbn__pages_meta checked;     /* what the last check saw */
    uint32_t ghosts[CBN__STORE_GHOSTS]; /* tags of evicted keys, at a place taken from the key */
    uint32_t returned;                  /* evicted entries that were stored again */

    /* What happened to the file, to be told once no lock is held. */
    pthread_mutex_t note_mutex;
    bool note_is_damage;
    char note[CBN__STORE_NOTE_BYTES];
};

/* Opens the lock file; not the data file, which the first session opens. OK, IO, NO_MEMORY. */
int32_t cbn__store_create(const struct cbn__store_options *options, const struct stat *folder,
                          struct cbn__store **ret_store, struct cbn_error *err);
/* Sets a condemned file aside and salvages it: no other process knows what this one has met. Best effort. */
void cbn__store_mend(struct cbn__store *store, uint32_t timeout_ms);
/* Writes the usage that waits, mends, syncs, clears the mark. No other thread may be inside. */
void cbn__store_settle(struct cbn__store *store, uint32_t timeout_ms);
void cbn__store_destroy(struct cbn__store *store);

/* Opens the data file if it is not open. OK, TIMEOUT (try again later), UNTRUSTED, IO, DAMAGED, NO_MEMORY. */
int32_t cbn__store_prepare(struct cbn__store *store, uint32_t timeout_ms, struct cbn_error *err);

struct cbn__store_item {
    uint8_t key[CBN__STORE_KEY_BYTES_MAX];
    uint32_t key_bytes;
    struct cbn__buf value;
    struct cbn__usage_record usage;
};
void cbn__store_item_done(struct cbn__store_item *item);
#define CBN__STORE_ITEM_AUTO __attribute__((cleanup(cbn__store_item_done))) struct cbn__store_item

/* Which majors of a key will do: those below, without the ones in the set (bit i: major i). */
struct cbn__store_pick {
    uint32_t below;
    uint32_t except_majors;
};

/*
 * Copies the newest entry of the hash that pick takes. NOT_FOUND: *ret_refused (set in every case) says whether
 * there are entries that pick does not take. Also TIMEOUT, IO, DAMAGED (the file), NO_MEMORY.
 */
int32_t cbn__store_find(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__hash *hash,
                        const struct cbn__store_pick *pick, struct cbn__store_item *ret_item, bool *ret_refused);

/* Copies the first entry behind item's key (key_bytes 0: the first of all) over item. NOT_FOUND at the end. */
int32_t cbn__store_next(struct cbn__store *store, uint32_t timeout_ms, struct cbn__store_item *item);

/* Stores, replacing. OK, TIMEOUT, LIMIT, IO, DAMAGED, NO_MEMORY. */
int32_t cbn__store_put(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_key *key,
                       struct cbn__blob value, struct cbn_error *err);

struct cbn__store_value {
    struct cbn__store_key key;
    struct cbn__blob bytes;
};
/*
 * Stores all of them, replacing, under one lock: few enough that others can wait for it. They go in order; *ret_stored
 * is how many were, also on failure. syncs_later: more follows; the last call, or the close, syncs. Statuses as of
 * cbn__store_put. batch.c
 */
int32_t cbn__store_put_many(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_value *values,
                            size_t count, bool syncs_later, size_t *ret_stored, struct cbn_error *err);

/* Drops every entry of the hash. OK, NOT_FOUND, TIMEOUT, IO, ... */
int32_t cbn__store_drop(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__hash *hash,
                        struct cbn_error *err);
/* Drops one entry if it still is value: another process may have mended it meanwhile. A pin stays. */
int32_t cbn__store_drop_if(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_key *key,
                           struct cbn__blob value);

/* Drops these entries, a chunk a session; pinned ones on demand only. Each outcome is set, also on failure. */
int32_t cbn__store_drop_keys(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__store_key *keys,
                             size_t count, bool pinned_too, enum cbn__prune_outcome *ret_outcomes,
                             struct cbn_error *err);
/* Pins or unpins every entry of the hash. OK, NOT_FOUND, TIMEOUT, IO, ... */
int32_t cbn__store_pin(struct cbn__store *store, uint32_t timeout_ms, const struct cbn__hash *hash, bool pinned,
                       struct cbn_error *err);

/* Writes the usage and the counters that wait. Best effort. */
void cbn__store_flush_usage(struct cbn__store *store, uint32_t timeout_ms);

int32_t cbn__store_measure(struct cbn__store *store, uint32_t timeout_ms, struct cbn__layer *ret_layer,
                           struct cbn_error *err);

int32_t cbn__store_stats(struct cbn__store *store, uint32_t timeout_ms, struct cbn__layer_stats *ret_stats,
                         struct cbn_error *err);

/*
 * Rewrites the file without its free pages and puts the new one in its place, last of all. TIMEOUT: another process has
 * the environment open; LIMIT: no room for the copy; IO. The original is untouched on any failure. compact.c
 */
int32_t cbn__store_compact(struct cbn__store *store, uint32_t timeout_ms, struct cbn_error *err);

/* Moves out what is to be told; false when there is nothing. */
bool cbn__store_take_note(struct cbn__store *store, char ret_text[CBN__STORE_NOTE_BYTES], bool *ret_is_damage);

void cbn__store_fork_before(struct cbn__store *store);
void cbn__store_fork_after(struct cbn__store *store);
void cbn__store_fork_child(struct cbn__store *store);

/* datafile.c. All but is_current and the two that name no store's state: exclusive side held. */
/* RLIMIT_FSIZE of the process, UINT64_MAX: none. A write behind it raises SIGXFSZ, so none may be made. */
uint64_t cbn__datafile_size_limit(void);
/* LMDB answers EIO to a short write: ENOSPC where the disk is full, else the code as it was. */
int cbn__datafile_write_code(const struct cbn__store *store, int code);
int32_t cbn__datafile_open(struct cbn__store *store, struct cbn_error *err);
void cbn__datafile_close(struct cbn__store *store);
/* Either side held: the open file is the one in the folder, and no page that its meta page names can be missing. */
bool cbn__datafile_is_current(struct cbn__store *store);
/* Says in the lock file that commits of this boot are not yet on the disk. OK or IO. */
int32_t cbn__datafile_mark(struct cbn__store *store);
/* Neither side held: says in the mark that this transaction of that file, and all before, are on the disk. */
void cbn__datafile_mark_synced(const struct cbn__store *store, ino_t inode, uint64_t transaction);
void cbn__datafile_clear_mark(struct cbn__store *store);
/*
 * Another boot's mark. *ret_synced: all that was committed had reached the disk; else pages may be there that a later
 * commit had replaced, which look like any other.
 */
bool cbn__datafile_marked_by_another_boot(struct cbn__store *store, bool *ret_synced);
int32_t cbn__datafile_error(struct cbn__store *store, int code, struct cbn_error *err, const char *what);
void cbn__datafile_note(struct cbn__store *store, bool is_damage, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Copies into the fresh open file what verifies of the damaged one: every entry that a reachable leaf holds and, where
 * the trees are broken or stale, that any leaf holds. Exclusive side held. LMDB's code of what ended it early;
 * *ret_entries is the count of entries that are committed in every case. salvage.c
 */
int cbn__salvage_entries(struct cbn__store *store, int damaged_fd, bool stale, uint64_t *ret_entries);

#endif
