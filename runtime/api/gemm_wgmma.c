/*
 * The struct of wgmma, filled. Takes no lock, allocates nothing.
 */
#include "api/gemm_wgmma.h"

#include "launch/tensor_map.h"

#define SHARE_A 1

static struct cbn__codes weights_of(const struct cbn__gemm_args *gemm)
{
    return (struct cbn__codes){"w", gemm->w, gemm->n, gemm->k, gemm->ldw};
}

/* Copies that end with the matrix have boxes of their own: rows past the end are slow. No map where none is left. */
static int32_t encode_pair(const struct cbn__driver *driver, const struct cbn__codes *codes, uint32_t box_rows,
                           struct cbn__tensor_map *ret_whole, struct cbn__tensor_map *ret_tail, struct cbn_error *err)
{
    uint32_t left = (uint32_t)(codes->rows % box_rows);
    int32_t status = cbn__tensor_map_encode(driver, codes, box_rows, 0, ret_whole, err);
    return status == CBN_STATUS_OK && left ? cbn__tensor_map_encode(driver, codes, left, 0, ret_tail, err) : status;
}

void cbn__wgmma_weight_maps_fill(const struct cbn__driver *driver, const struct cbn__gemm_args *arguments,
                                 struct cbn__wgmma_weight_maps *ret_maps)
{
    const struct cbn__codes codes = weights_of(arguments);
    for (uint32_t i = 0; i < CBN__WGMMA_BOX_COUNT; i++) {
        uint32_t rows = (i + 1) * CBN__WGMMA_BOX_UNIT;
        ret_maps->has[i] = cbn__wgmma_has_box(rows) && encode_pair(driver, &codes, rows, &ret_maps->whole[i],
                                                                   &ret_maps->tail[i], NULL) == CBN_STATUS_OK;
    }
}

static int32_t fill_weights(const struct cbn__driver *driver, uint32_t rows, const struct cbn__wgmma_weight_maps *maps,
                            struct cbn__wgmma_args *arguments, struct cbn_error *err)
{
    const struct cbn__codes codes = weights_of(&arguments->gemm);
    uint32_t i = rows / CBN__WGMMA_BOX_UNIT - 1;
    if (!maps || i >= CBN__WGMMA_BOX_COUNT || !maps->has[i])
        return encode_pair(driver, &codes, rows, &arguments->w, &arguments->w_tail, err);
    arguments->w = maps->whole[i];
    arguments->w_tail = maps->tail[i];
    return CBN_STATUS_OK;
}

int32_t cbn__wgmma_arguments_fill(const struct cbn__driver *driver, const int64_t *facts,
                                  const struct cbn__wgmma_weight_maps *maps, struct cbn__wgmma_args *arguments,
                                  struct cbn_error *err)
{
    const struct cbn__gemm_args *gemm = &arguments->gemm;
    const struct cbn__wgmma_cut cut = cbn__wgmma_cut_of(facts);
    const struct cbn__codes activations = {"a", gemm->a, gemm->m, gemm->k, gemm->lda};
    arguments->share = cut.ranks > 1 ? SHARE_A : 0;
    arguments->band = cut.band;
    int32_t status = fill_weights(driver, cut.w_rows, maps, arguments, err);
    if (status == CBN_STATUS_OK)
        status = encode_pair(driver, &activations, cut.a_rows, &arguments->a, &arguments->a_tail, err);
    if (status != CBN_STATUS_OK || !cut.out_columns)
        return status;
    const struct cbn__output output = {.address = gemm->d,
                                       .rows = gemm->m,
                                       .columns = gemm->n,
                                       .stride = gemm->ldd * 2,
                                       .dtype = (uint32_t)facts[CBN__GEMM_FACT_out]};
    return cbn__tensor_map_encode_output(driver, &output, CBN__WGMMA_STEP, cut.out_columns, &arguments->d, err);
}
