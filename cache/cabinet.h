/*
 * The cabinet: read-only base layers below one writable overlay. What is above this folder sees keys, entries and
 * reasons; LMDB, locks and layers stay inside.
 *
 * A fault is a miss: no call here fails a launch. Every byte given out was copied and verified.
 * thread: any, for every function but open and close.
 */
#ifndef CBN_CACHE_CABINET_H
#define CBN_CACHE_CABINET_H

#include "base/buf.h"
#include "base/hash.h"
#include "base/notice.h"
#include "cache/counters.h"

#define CBN__FORMAT_VERSION 1u
#define CBN__KEY_RECORD_MAX_BYTES 65536u
#define CBN__BASES_MAX 16u

struct cbn__cabinet;
struct cbn__tier;

struct cbn__cabinet_options {
    const char *overlay_path; /* NULL: no overlay; created (0700) when missing */
    const char *const *base_paths; /* folders; files are packs */
    uint32_t base_count;
    uint32_t lock_timeout_ms;
    uint64_t max_bytes; /* of the overlay's file */
    bool read_only;     /* open the overlay as a base */
    bool trust_folder;  /* skip the trust rules; said once as a notice */
    struct cbn__tier *tier; /* NULL: none; borrowed, and closed after the cabinet */
    struct cbn__sink sink;
};

/*
 * Opens what can be opened. A layer that cannot be is left out, told as a notice, and named by *err with its status
 * (UNTRUSTED, IO, DAMAGED); the return is that of the overlay when one was asked for and is not there, else OK.
 * *ret_cabinet is set in every case but INVALID and NO_MEMORY: the caller decides whether to go on without the layer.
 */
int32_t cbn__cabinet_open(const struct cbn__cabinet_options *options, struct cbn__cabinet **ret_cabinet,
                          struct cbn_error *err);
void cbn__cabinet_close(struct cbn__cabinet *cabinet); /* NULL is accepted */

enum cbn__lookup {
    CBN__LOOKUP_HIT = 0,
    CBN__LOOKUP_ABSENT,
    CBN__LOOKUP_DAMAGED,
    CBN__LOOKUP_INCOMPATIBLE, /* entries of this key exist, all of compilers that the rule refuses */
    CBN__LOOKUP_BUSY,         /* a lock did not come free before its deadline */
    CBN__LOOKUP_IO
};

/* Which compilers' entries will do. version = major * 1000 + minor. */
struct cbn__compiler_rule {
    uint32_t max_major;     /* of the driver's CUDA version; 0: any */
    uint32_t min_version;   /* 0: any */
    uint32_t exact_version; /* 0: any */
    uint32_t except_majors; /* bit i: major i was refused by the driver */
};

bool cbn__rule_takes_major(const struct cbn__compiler_rule *rule, uint32_t major);
bool cbn__rule_takes_version(const struct cbn__compiler_rule *rule, uint32_t version);

/* Everything about one build, beside the key. */
struct cbn__entry_facts {
    uint32_t compiler_version; /* major * 1000 + minor */
    uint32_t compile_ms;
    uint32_t registers;
    uint32_t shared_bytes;
    uint32_t spill_bytes;
    int64_t created_s;
};

/* An owned copy; the blobs point into bytes. */
struct cbn__entry {
    struct cbn__buf bytes;
    struct cbn__blob key_record;
    struct cbn__blob payload; /* the cubin, at an address divisible by 16 */
    struct cbn__blob log;
    struct cbn__entry_facts facts;
    uint32_t layer;         /* 0: overlay; 1..: bases in order */
    const char *layer_path; /* borrowed from the cabinet */
    int64_t last_used_s;    /* 0: not recorded */
    uint64_t hits;
    uint64_t recency_us; /* what eviction and prune go by: see cbn__space_recency_us */
    uint32_t major;      /* of the compiler, as the key has it */
    bool pinned;
};

void cbn__entry_done(struct cbn__entry *entry);

/*
 * Overlay first, then bases; the newest compiler that the rule accepts within a layer. *ret_entry is written on HIT
 * only. key is the hash of key_record; the stored record is compared with key_record before anything is given out.
 * A damaged entry of the overlay is dropped (best effort) and told as an event.
 */
enum cbn__lookup cbn__cabinet_find(struct cbn__cabinet *cabinet, struct cbn__blob key_record,
                                   const struct cbn__compiler_rule *rule, struct cbn__entry *ret_entry);

/* True when a verified entry exists; costs the same read, copies nothing out. */
enum cbn__lookup cbn__cabinet_probe(struct cbn__cabinet *cabinet, struct cbn__blob key_record,
                                    const struct cbn__compiler_rule *rule);

/*
 * Stores into the overlay, replacing an entry of the same key and compiler major. OK; NOT_FOUND (no overlay), TIMEOUT,
 * IO, LIMIT (does not fit into max_bytes), NO_MEMORY: dropped, the caller counts it and goes on.
 */
int32_t cbn__cabinet_put(struct cbn__cabinet *cabinet, struct cbn__blob key_record, struct cbn__blob payload,
                         struct cbn__blob log, const struct cbn__entry_facts *facts, struct cbn_error *err);

/* Return non-zero to stop. problem is NULL for an entry that verifies; else entry holds what could be decoded. */
typedef int (*cbn__entry_fn)(void *user, const struct cbn__hash *key, const struct cbn__entry *entry,
                             const char *problem, uint32_t layer, const char *layer_path);

/* Every entry of every layer, one short transaction an entry: no lock is held while the callback runs. */
int32_t cbn__cabinet_each(struct cbn__cabinet *cabinet, cbn__entry_fn each, void *user, struct cbn_error *err);

/* Drops one entry of the overlay (all its compiler majors). OK, NOT_FOUND, TIMEOUT, IO. */
int32_t cbn__cabinet_drop(struct cbn__cabinet *cabinet, const struct cbn__hash *key, struct cbn_error *err);

/* Drops this one entry of the overlay if it still is as it was read. A pin stays for the entry that replaces it. */
int32_t cbn__cabinet_drop_damaged(struct cbn__cabinet *cabinet, const struct cbn__hash *key,
                                  const struct cbn__entry *entry);

/* Entries of one layer (by index) whose key begins with these hex digits, ascending; "" for all. */
int32_t cbn__cabinet_each_of(struct cbn__cabinet *cabinet, uint32_t index, const char *prefix, cbn__entry_fn each,
                             void *user, struct cbn_error *err);

/* Pins or unpins the overlay's entry (all its compiler majors). OK, NOT_FOUND, TIMEOUT, IO. */
int32_t cbn__cabinet_pin(struct cbn__cabinet *cabinet, const struct cbn__hash *key, bool pinned, struct cbn_error *err);

/* One entry as prune sees it. */
enum cbn__prune_outcome {
    CBN__PRUNE_STAYS = 0, /* pinned meanwhile, or never reached */
    CBN__PRUNE_REMOVED,   /* by this call */
    CBN__PRUNE_ABSENT     /* somebody else was faster */
};
struct cbn__prune_item {
    struct cbn__hash key;
    uint32_t major;
    enum cbn__prune_outcome outcome;
    uint64_t recency_us;
    uint64_t size_bytes; /* of the payload */
    uint64_t held_bytes; /* of the file, that go with it */
};
/* Removes them from the overlay, pinned ones on demand only. Every outcome is set, also on failure. */
int32_t cbn__cabinet_remove(struct cbn__cabinet *cabinet, struct cbn__prune_item *items, size_t count, bool pinned_too,
                            struct cbn_error *err);
/*
 * How many of these, in their order, would have to go until at most so many bytes are in use: removed in a transaction
 * that is not committed. *ret_used_bytes is what would be in use then, above the bound when they are too few, or when
 * the file has no room for the transaction; the caller estimates from there.
 */
int32_t cbn__cabinet_rehearse(struct cbn__cabinet *cabinet, const struct cbn__prune_item *items, size_t count,
                              uint64_t bound_bytes, size_t *ret_count, uint64_t *ret_used_bytes, struct cbn_error *err);
/* Bytes of the overlay's file that go with an entry. */
uint64_t cbn__cabinet_held_bytes(const struct cbn__entry *entry);
/* See cbn__store_compact. NOT_FOUND: no writable overlay. */
int32_t cbn__cabinet_compact(struct cbn__cabinet *cabinet, struct cbn_error *err);

struct cbn__layer {
    const char *path;
    bool is_base;
    bool writable;
    uint64_t entries;
    uint64_t file_bytes;
    uint64_t used_bytes;
};
/* There is an overlay, and it is open for writing. */
bool cbn__cabinet_can_write(const struct cbn__cabinet *cabinet);
uint32_t cbn__cabinet_layer_count(const struct cbn__cabinet *cabinet);
int32_t cbn__cabinet_layer(struct cbn__cabinet *cabinet, uint32_t index, struct cbn__layer *ret_layer,
                           struct cbn_error *err);

struct cbn__layer_stats {
    struct cbn__layer layer;
    uint64_t pinned;
    uint64_t allocated_bytes; /* on disk */
    uint64_t max_bytes;       /* 0: of a layer that is not written */
    struct cbn__counters counters;
};
int32_t cbn__cabinet_layer_stats(struct cbn__cabinet *cabinet, uint32_t index, struct cbn__layer_stats *ret_stats,
                                 struct cbn_error *err);

/*
 * Single flight: one build per key among threads of the process and processes that share the overlay's folder. The
 * lock dies with its holder. Without an overlay it covers the process only. Another key is never blocked.
 */
struct cbn__flight {
    struct cbn__cabinet *cabinet;
    struct cbn__hash key;
    bool held;
    int fd; /* open file description that carries the byte-range lock, -1: none */
};
/*
 * Waits for the key's flight, at most timeout_ms. OK: held, look again before building (*ret_waited: somebody else
 * had it). TIMEOUT: build alone; before the deadline where waiting cannot help, as nothing is being stored. Any other status means the folder cannot carry the lock: held in process only.
 */
int32_t cbn__flight_begin(struct cbn__cabinet *cabinet, const struct cbn__hash *key, uint32_t timeout_ms,
                          struct cbn__flight *ret_flight, bool *ret_waited);
void cbn__flight_end(struct cbn__flight *flight);
/*
 * For the thread that holds the key's flight. compiler: major * 1000 + minor, 0 where it is not known. inherit: while
 * it waited a compiler of that version refused the source twice in others' hands, and *ret_err is what it said last;
 * never for 0. fail: its own compiler refused the source, as one of that version would wherever it is tried; 0 says
 * nothing.
 */
bool cbn__flight_inherit(struct cbn__cabinet *cabinet, const struct cbn__hash *key, uint32_t compiler,
                         struct cbn_error *ret_err);
void cbn__flight_fail(struct cbn__cabinet *cabinet, const struct cbn__hash *key, uint32_t compiler,
                      const struct cbn_error *err);
/* Its build could not be stored: who waits builds at once. */
void cbn__flight_drop(struct cbn__cabinet *cabinet, const struct cbn__hash *key);
/*
 * Somebody holds it just now, on this host or, by its lease, in the fleet: a hint for who has other keys to go on with. A
 * fleet's server is asked, once at most.
 */
bool cbn__flight_is_busy(struct cbn__cabinet *cabinet, const struct cbn__hash *key);

/* What doctor says about a folder before it is opened. */
struct cbn__folder_report {
    bool exists, trusted, writable, local;
    uint32_t mode, owner_uid;
    uint64_t free_bytes;
    char filesystem[32]; /* "ext4", "nfs", "0x..." */
    char problem[256];   /* "" when nothing is wrong */
    char mend[256];
};
void cbn__folder_inspect(const char *path, struct cbn__folder_report *ret_report);
/* Where a default folder that is not local gives way to: /var/tmp/cubinet-<uid>. */
void cbn__folder_fallback(char *ret_path, size_t path_bytes);

#endif
