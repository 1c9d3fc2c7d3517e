/*
 * All layers as one: every key once, ascending, from the uppermost layer in which it verifies. What pack writes.
 */
#ifndef CBN_CACHE_MERGE_H
#define CBN_CACHE_MERGE_H

#include "cache/cabinet.h"

/* Return OK to go on; another status ends the merge with it. */
typedef int32_t (*cbn__merge_fn)(void *user, const struct cbn__hash *key, const struct cbn__entry *entry,
                                 struct cbn_error *err);

/*
 * keys NULL: every entry; else those of key_count keys, ascending and each once. No lock is held while the callback
 * runs. *ret_damaged counts keys of which no layer holds an entry that verifies, and records under no key at all.
 */
int32_t cbn__cabinet_merge(struct cbn__cabinet *cabinet, const struct cbn__hash *keys, size_t key_count,
                           cbn__merge_fn each, void *user, uint64_t *ret_damaged, struct cbn_error *err);

#endif
