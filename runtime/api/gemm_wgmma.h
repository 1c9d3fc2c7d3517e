/*
 * The struct of wgmma, filled: how the launch is cut, and its maps.
 */
#ifndef CBN_API_GEMM_WGMMA_H
#define CBN_API_GEMM_WGMMA_H

#include "api/ops.h"
#include "dispatch/builtin.h"
#include "dispatch/fp8_wgmma.h"

/* Maps of weights that do not change their place, by the height of their boxes. */
struct cbn__wgmma_weight_maps {
    bool has[CBN__WGMMA_BOX_COUNT];
    struct cbn__tensor_map whole[CBN__WGMMA_BOX_COUNT], tail[CBN__WGMMA_BOX_COUNT];
};

/* All that tiles ask for and that can be encoded. */
void cbn__wgmma_weight_maps_fill(const struct cbn__driver *driver, const struct cbn__gemm_args *arguments,
                                 struct cbn__wgmma_weight_maps *ret_maps);

/* Completes a struct that holds gemm and fetch_early. maps NULL: weights that nobody knows yet. */
int32_t cbn__wgmma_arguments_fill(const struct cbn__driver *driver, const int64_t *facts,
                                  const struct cbn__wgmma_weight_maps *maps, struct cbn__wgmma_args *arguments,
                                  struct cbn_error *err);

#endif
