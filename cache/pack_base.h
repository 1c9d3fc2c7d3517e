/*
 * A pack in place as a read-only base: opened where it lies, on any filesystem, writing nothing anywhere.
 */
#ifndef CBN_CACHE_PACK_BASE_H
#define CBN_CACHE_PACK_BASE_H

#include "cache/layer.h"

/* The path leads to a file and not to a folder: a base of this kind. */
bool cbn__pack_base_is_one(const char *path);

/*
 * Opens it if it may be trusted: a regular file that only this user, root or a group of this process can write, in a
 * folder of whom the same holds (folder.h). trust: by override, told to sink. OK, UNTRUSTED, and those of
 * cbn__pack_open.
 */
int32_t cbn__pack_base_open(const char *path, bool trust, const struct cbn__sink *sink, struct cbn__pack **ret_pack,
                            struct cbn_error *err);

/* What doctor says about it: how many entries it lists, or why it cannot be opened. */
int32_t cbn__pack_base_inspect(const char *path, bool trust, uint64_t *ret_entries, struct cbn_error *err);

/* As cbn__cabinet_find, through this layer alone. A damaged entry is told as an event; the pack stays as it is. */
enum cbn__lookup cbn__pack_base_find(const struct cbn__cabinet *cabinet, const struct cbn__cabinet_layer *layer,
                                     struct cbn__blob key_record, const struct cbn__compiler_rule *rule,
                                     struct cbn__entry *ret_entry);

/* As cbn__cabinet_each_of. seek: the bytes that prefix begins a key with, as cbn__pack_seek takes them. */
int32_t cbn__pack_base_each(const struct cbn__cabinet_layer *layer, struct cbn__blob seek, const char *prefix,
                            cbn__entry_fn each, void *user, bool *ret_stopped);

void cbn__pack_base_measure(const struct cbn__cabinet_layer *layer, struct cbn__layer_stats *stats);

#endif
