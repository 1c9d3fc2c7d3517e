/*
 * What a cabinet is made of. Shared by cabinet.c (open, close), lookup.c (find, put, each, drop) and flight.c.
 */
#ifndef CBN_CACHE_LAYER_H
#define CBN_CACHE_LAYER_H

#include "cache/pack.h"
#include "cache/store.h"

struct cbn__cabinet_layer {
    char *path; /* as the caller spelled it */
    struct cbn__store *store; /* NULL: a pack */
    struct cbn__pack *pack;
    uint32_t number; /* 0: the overlay, 1..: bases, counted as they were opened */
    bool writable;
};

/* Constant from open to close, but for what was said once: read without a lock. */
struct cbn__cabinet {
    struct cbn__sink sink;
    struct cbn__tier *tier; /* NULL: none */
    uint32_t lock_timeout_ms;
    uint32_t layer_count;
    struct cbn__cabinet_layer layers[1 + CBN__BASES_MAX];
    atomic_bool put_failure_said, read_failure_said;
};

#define CBN__LAYER_FLEET UINT32_MAX /* as an entry's layer: pulled just now */

/* Through the layers alone, counting nothing. */
enum cbn__lookup cbn__cabinet_search(struct cbn__cabinet *cabinet, struct cbn__blob key_record,
                                     const struct cbn__compiler_rule *rule, struct cbn__entry *ret_entry);
/* Into the overlay alone: a put that is offered to no fleet. */
int32_t cbn__cabinet_store(struct cbn__cabinet *cabinet, struct cbn__blob key_record, struct cbn__blob payload,
                           struct cbn__blob log, const struct cbn__entry_facts *facts, struct cbn_error *err);

/* The overlay when it can be written, else NULL. */
struct cbn__store *cbn__cabinet_overlay(const struct cbn__cabinet *cabinet);
/* What digits a listing asks for. */
bool cbn__layer_key_begins(const struct cbn__hash *key, const char *prefix);
int32_t cbn__layer_cannot_read(const struct cbn__cabinet_layer *layer, int32_t status, struct cbn_error *err);
/* Tells what happened to a layer's file. No lock may be held. */
void cbn__cabinet_tell_notes(const struct cbn__cabinet *cabinet, struct cbn__store *store);
/* Of two misses of different layers the one that the caller should hear of. */
enum cbn__lookup cbn__lookup_worse(enum cbn__lookup a, enum cbn__lookup b);

#endif
