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
};

typedef int (*cbn_entry_fn)(void *user, const struct cbn_entry_info *entry);

/*
 * Every entry that verifies, overlay first, then bases; an entry shadowed by an upper layer is told too.
 * Return non-zero from the callback to stop. Damaged entries are counted in *ret_damaged (may be NULL).
 * thread: any; blocks: disk; capture: no
 */
CBN_EXPORT int32_t cbn_cabinet_list(struct cbn_runtime *runtime, cbn_entry_fn entry, void *user, uint64_t *ret_damaged,
                                    struct cbn_error *err);

/* key: the entry's 32 hex digits. problem: why it does not verify. repaired: 1 if it was dropped. */
typedef void (*cbn_damage_fn)(void *user, const char *key, const char *layer_path, const char *problem, int repaired);

struct cbn_verify_result {
    uint32_t size;
    uint32_t reserved;
    uint64_t checked, damaged, repaired;
};

#define CBN_VERIFY_REPAIR 1u /* drop damaged entries of the overlay: they are rebuilt when next needed */

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

#ifdef __cplusplus
}
#endif

#endif
