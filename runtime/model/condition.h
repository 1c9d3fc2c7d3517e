/*
 * Which decoder layers of a model have a block of rows.
 */
#ifndef CBN_MODEL_CONDITION_H
#define CBN_MODEL_CONDITION_H

#include "model/architecture.h"
#include "model/formula.h"
#include "model/layer_set.h"

/* layer_count: at most CBN__LAYERS_MAX. INVALID and UNSUPPORTED name the field that cannot be told. */
int32_t cbn__condition_find_layers(const struct cbn__scope *scope, const struct cbn__architecture *architecture,
                                   const struct cbn__block *block, int64_t layer_count,
                                   struct cbn__layer_set *ret_layers);

#endif
