/*
 * quantization_config: is the model block FP8, and which modules does it leave out.
 */
#ifndef CBN_MODEL_QUANT_H
#define CBN_MODEL_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <cubinet/status.h>

#include "model/layer_set.h"

#define CBN__QUANT_LISTS 2

struct cbn__quant {
    const json_t *lists[CBN__QUANT_LISTS]; /* arrays of strings, or NULL; borrowed from the config */
};

/* A kind of layer, for the question whether any of it is block FP8. */
struct cbn__quant_query {
    const char *layer;                   /* "self_attn.qkv_proj" */
    const char *modules;                 /* "self_attn.q_proj self_attn.k_proj", or NULL */
    const struct cbn__layer_set *layers; /* that have it */
};

/*
 * config: the object that holds quantization_config; where: "" or "text_config.". UNSUPPORTED names the field that is
 * not block FP8 of 128 x 128, INVALID the one that is malformed.
 */
int32_t cbn__quant_read(const json_t *config, const char *where, struct cbn__quant *ret_quant, struct cbn_error *err);

/*
 * ret_field: the field that leaves the layer out in every decoder layer; NULL when a kernel is needed somewhere.
 * UNSUPPORTED where a decoder layer has some of the modules of a merged weight left out, and some not.
 */
int32_t cbn__quant_find_exclusion(const struct cbn__quant *quant, const struct cbn__quant_query *query,
                                  const char **ret_field, struct cbn_error *err);

#endif
