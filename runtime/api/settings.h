/*
 * Settings: what an option, the environment or a default says, resolved once when a runtime is created.
 */
#ifndef CBN_API_SETTINGS_H
#define CBN_API_SETTINGS_H

#include "api/runtime.h"

/* Where cache_dir comes from when the default folder is on a filesystem that cannot carry a live store. */
#define CBN__ORIGIN_FALLBACK "fallback"

/* Copies options and environment into the runtime's fields. NO_MEMORY, INVALID, LIMIT. */
int32_t cbn__settings_resolve(struct cbn_runtime *runtime, const struct cbn_runtime_options *options,
                              struct cbn_error *err);
void cbn__settings_done(struct cbn_runtime *runtime);

#endif
