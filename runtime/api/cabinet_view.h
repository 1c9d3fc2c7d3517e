/*
 * A stored entry as the public struct, for the calls that tell entries. See cabinet_view.c.
 */
#ifndef CBN_API_CABINET_VIEW_H
#define CBN_API_CABINET_VIEW_H

#include "api/runtime.h"

/* Decodes what verified; options and log must outlive info. false when the key record is not one of ours. */
bool cbn__cabinet_describe(const struct cbn__entry *entry, struct cbn__buf *options, struct cbn__buf *log,
                           struct cbn_entry_info *ret_info);

#endif
