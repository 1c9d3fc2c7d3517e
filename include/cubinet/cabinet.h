/*
 * The cabinet as operators see it: its entries and their verification.
 */
#ifndef CUBINET_CABINET_H
#define CUBINET_CABINET_H

#include <cubinet/route.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One stored entry, decoded. Pointers are valid during the callback. */
struct cbn_entry_info {
    uint32_t size;
    uint32_t layer; /* 0: overlay, 1..: bases in order */
    const char *layer_path;
    struct cbn_spec spec;  /* key, op, kernel, arch, params as recorded in the key record */
    uint64_t size_bytes;   /* of the cubin */
    int64_t created_s;     /* Unix time */
    int64_t last_used_s;   /* 0: never, or not recorded in this layer */
    uint64_t hits;
    uint32_t compile_ms;
    uint32_t registers;
    uint32_t shared_bytes; /* static */
    uint32_t spill_bytes;  /* stores and loads */
    char compiler[32];     /* "13.0" */
    char source_digest[33];
    const char *options;   /* NVRTC options, joined by spaces */
    const char *log;
    const void *cubin;
    uint32_t pinned;       /* 1: eviction and prune leave it */
    uint32_t reserved;
};

typedef int (*cbn_entry_fn)(void *user, const struct cbn_entry_info *entry);

/*
 * Every entry that verifies, overlay first, then bases; an entry shadowed by an upper layer is told too.
 * Return non-zero from the callback to stop. Damaged entries are counted in *ret_damaged (may be NULL).
 * thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_cabinet_list(struct cbn_runtime *runtime, cbn_entry_fn entry, void *user, uint64_t *ret_damaged,
                                    struct cbn_error *err);

/*
 * key: the entry's 32 hex digits. problem: why it does not verify; NULL: it does (TELL_SOUND only). repaired: 1 if it
 * was dropped.
 */
typedef void (*cbn_damage_fn)(void *user, const char *key, const char *layer_path, const char *problem, int repaired);

struct cbn_verify_result {
    uint32_t size;
    uint32_t reserved;
    uint64_t checked, damaged, repaired;
};

#define CBN_VERIFY_REPAIR 1u     /* drop damaged entries of the overlay: they are rebuilt when next needed */
#define CBN_VERIFY_TELL_SOUND 2u /* damage is told the entries that verify, too: for a display of progress */

/* Reads every entry of every layer and checks it against its key. thread: any; blocks: disk; capture: no */
CBN_EXPORT int32_t cbn_cabinet_verify(struct cbn_runtime *runtime, uint32_t flags, cbn_damage_fn damage, void *user,
                                      struct cbn_verify_result *ret_result, struct cbn_error *err);

/* One layer of the cabinet. */
struct cbn_layer_info {
    uint32_t size;
    uint32_t is_base;
    uint32_t writable;
    uint32_t reserved;
    const char *path;
    uint64_t entries;
    uint64_t file_bytes;
    uint64_t used_bytes;
};

typedef void (*cbn_layer_fn)(void *user, const struct cbn_layer_info *layer);

/* The layers that are open, in look-up order. thread: any; blocks: disk; capture: no */
CBN_EXPORT int32_t cbn_cabinet_layers(struct cbn_runtime *runtime, cbn_layer_fn layer, void *user,
                                      struct cbn_error *err);

/*
 * The entry whose key begins with key_prefix (1 to 32 hex digits), from the uppermost layer that has it; told once per
 * compiler major that is stored. Statuses: OK, NOT_FOUND, INVALID (not hex; or ambiguous: the message lists keys).
 * thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_cabinet_show(struct cbn_runtime *runtime, const char *key_prefix, cbn_entry_fn entry, void *user,
                                    struct cbn_error *err);

/* text is valid during the callback. */
typedef void (*cbn_text_fn)(void *user, const char *text);

/*
 * The source that the entry's parameters instantiate: what NVRTC was given. UNSUPPORTED when the entry was cut from
 * other templates than this library holds. thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_cabinet_source(struct cbn_runtime *runtime, const char *key_prefix, cbn_text_fn text, void *user,
                                      struct cbn_error *err);

/* flags of cbn_prune_options */
#define CBN_PRUNE_DRY_RUN 1u       /* tell, remove nothing */
#define CBN_PRUNE_ALL 2u           /* every entry that is not pinned */
#define CBN_PRUNE_STALE 4u         /* entries whose source digest is no longer in this library */
#define CBN_PRUNE_UNPINNED_TOO 8u  /* with ALL: pinned entries as well */
#define CBN_PRUNE_COMPACT 16u      /* afterwards rewrite the file, when no other process has it open */

/* An entry is removed when it matches every filter that is set; max_bytes removes least recently used ones first. */
struct cbn_prune_options {
    uint32_t size;
    uint32_t flags;
    uint64_t max_bytes;        /* used bytes to come down to; UINT64_MAX: no such rule */
    int64_t older_than_s;      /* seconds since last use (or creation, when never used); 0: no such rule */
    uint32_t arch;             /* 0: any */
    uint32_t compiler_below;   /* a version as major * 1000 + minor; 0: no such rule */
    const char *op;            /* NULL: any */
};

#define CBN_PRUNE_OPTIONS_INIT {sizeof(struct cbn_prune_options), 0, UINT64_MAX, 0, 0, 0, NULL}

struct cbn_prune_result {
    uint32_t size;
    uint32_t reserved;
    uint64_t removed, kept, freed_bytes;
};

/* key: 32 hex digits of an entry that is (or, dry run, would be) removed. */
typedef void (*cbn_prune_fn)(void *user, const char *key, uint64_t size_bytes);

/*
 * Removes entries of the overlay by rule; never touches bases. Statuses: OK, INVALID (no rule at all), NOT_FOUND (no
 * writable overlay), TIMEOUT, IO, LIMIT (no room to compact; the original is untouched).
 * thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_cabinet_prune(struct cbn_runtime *runtime, const struct cbn_prune_options *options,
                                     cbn_prune_fn removed, void *user, struct cbn_prune_result *ret_result,
                                     struct cbn_error *err);

/*
 * Marks (pinned 1) or unmarks (0) the overlay's entry of that key prefix. ret_key: 33 bytes, may be NULL.
 * Statuses: OK, NOT_FOUND, INVALID, TIMEOUT, IO. thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_cabinet_pin(struct cbn_runtime *runtime, const char *key_prefix, uint32_t pinned, char *ret_key,
                                   struct cbn_error *err);

/* Counters that a layer keeps on disk, summed over every process that used it. X(name, text) */
#define CBN_LAYER_STAT_MAP(X)                                                                                          \
    X(hits, "kernels found")                                                                                           \
    X(misses_absent, "look-ups that found no entry")                                                                   \
    X(misses_damaged, "look-ups whose entry did not verify")                                                           \
    X(misses_incompatible, "look-ups that a version rule refused")                                                     \
    X(misses_busy, "look-ups that met a lock past its deadline")                                                       \
    X(misses_io, "look-ups that met a file error")                                                                     \
    X(puts, "entries stored")                                                                                          \
    X(evictions, "entries evicted to make room")                                                                       \
    X(compile_ms_spent, "milliseconds of building that the entries stored cost")                                       \
    X(compile_ms_saved, "milliseconds of building that hits made needless")                                            \
    X(fleet_hits, "kernels pulled from the fleet's server")                                                            \
    X(fleet_misses, "questions that the fleet's server had no kernel for")                                             \
    X(fleet_refused, "values of the fleet's server that did not verify")                                               \
    X(fleet_failures, "questions that the fleet's server did not answer")                                              \
    X(fleet_skipped, "look-ups that left the fleet's server alone after a failure")                                    \
    X(fleet_pushes, "kernels stored on the fleet's server")                                                            \
    X(fleet_pushes_dropped, "kernels that the fleet's server did not take")                                            \
    X(fleet_waits, "builds left to another machine")

struct cbn_layer_stats {
    uint32_t size;
    uint32_t is_base;
    const char *path;
    uint64_t entries, pinned;
    uint64_t used_bytes; /* pages in use */
    uint64_t file_bytes; /* allocated on disk */
    uint64_t max_bytes;  /* bound of the file; 0 for a base */
#define CBN_X(name, text) uint64_t name;
    CBN_LAYER_STAT_MAP(CBN_X)
#undef CBN_X
};

/* Which entries go into a pack: those that match every filter that is set. */
struct cbn_pack_options {
    uint32_t size;
    uint32_t arch;           /* 0: any */
    const char *op;          /* NULL: any */
    const char *kernel;      /* NULL: any */
    const char *const *keys; /* 32 hex digits each, in any order; NULL: any */
    uint32_t key_count;
    int32_t fd;              /* where no path is given: written to, front to back, and left open; -1: none */
};

#define CBN_PACK_OPTIONS_INIT {sizeof(struct cbn_pack_options), 0, NULL, NULL, NULL, 0, -1}

#define CBN_DIGEST_TEXT_BYTES 72 /* 64 hex digits of a SHA-256, and zeros */

struct cbn_pack_result {
    uint32_t size;
    uint32_t reserved;
    uint64_t entries;
    uint64_t bytes;                     /* of the whole file */
    uint64_t damaged;                   /* entries that no layer holds sound: they are not in the pack */
    char digest[CBN_DIGEST_TEXT_BYTES]; /* SHA-256 of the whole file, as sha256sum prints it */
};

/*
 * Writes one file with the entries of all layers, each once, from the uppermost layer in which it verifies. The same
 * kernels give the same bytes, whichever cache they come from. A path is written beside its place, synced and renamed:
 * it is whole or as it was before; path NULL: to options->fd. A pack serves as a read-only base in place (base_dirs may
 * name files), on any filesystem. Statuses: OK, INVALID, NOT_FOUND (no entry matches, or of keys one that no layer
 * holds; nothing is left at the path, and a stream is cut, which no reader takes), TIMEOUT, LIMIT, IO. SIGPIPE is the
 * caller's to ignore.
 * A second thread hashes meanwhile. thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_cabinet_pack(struct cbn_runtime *runtime, const char *path,
                                    const struct cbn_pack_options *options, struct cbn_pack_result *ret_result,
                                    struct cbn_error *err);

struct cbn_unpack_options {
    uint32_t size;
    int32_t fd;                /* where no path is given: read to its end, and left open; -1: none */
    const char *expect_digest; /* 64 hex digits, "sha256:" may stand before; NULL: any whole pack */
};

#define CBN_UNPACK_OPTIONS_INIT {sizeof(struct cbn_unpack_options), -1, NULL}

struct cbn_unpack_result {
    uint32_t size;
    uint32_t reserved;
    uint64_t entries;                   /* of the pack */
    uint64_t stored;                    /* of those, put into the overlay */
    uint64_t already;                   /* it held the same kernel; what it knows of its use stays */
    uint64_t bytes;                     /* of the file */
    char digest[CBN_DIGEST_TEXT_BYTES]; /* as cbn_pack_result has it */
};

/*
 * Stores a pack's entries in the overlay. Nothing is taken before the whole was read and verified, every entry and the
 * digest; a stream waits meanwhile in a file without a name in the cache folder. Statuses: OK; DAMAGED (cut, altered,
 * no pack, or of another digest than expected: nothing was stored), UNSUPPORTED (another format), INVALID, NOT_FOUND
 * (no writable overlay), LIMIT (does not fit into max_bytes), TIMEOUT, IO (some may be stored by then).
 * A second thread hashes and stores meanwhile. thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_cabinet_unpack(struct cbn_runtime *runtime, const char *path,
                                      const struct cbn_unpack_options *options, struct cbn_unpack_result *ret_result,
                                      struct cbn_error *err);

typedef void (*cbn_layer_stats_fn)(void *user, const struct cbn_layer_stats *stats);

/* One call per open layer, in look-up order. A base keeps no counters. thread: any; blocks: disk; capture: no */
CBN_EXPORT int32_t cbn_cabinet_stats(struct cbn_runtime *runtime, cbn_layer_stats_fn stats, void *user,
                                     struct cbn_error *err);

#ifdef __cplusplus
}
#endif

#endif
