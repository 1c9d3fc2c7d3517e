/*
 * A set of decoder layers of one model. Layers beyond the bound are never in it.
 */
#ifndef CBN_MODEL_LAYER_SET_H
#define CBN_MODEL_LAYER_SET_H

#include <stdbool.h>
#include <stdint.h>

#define CBN__LAYERS_MAX 65536

struct cbn__layer_set {
    int64_t count; /* how many are in it */
    uint64_t words[CBN__LAYERS_MAX / 64];
};

static inline bool cbn__layer_set_has(const struct cbn__layer_set *set, int64_t layer)
{
    return layer >= 0 && layer < CBN__LAYERS_MAX && (set->words[layer / 64] >> (layer % 64) & 1);
}

static inline void cbn__layer_set_add(struct cbn__layer_set *set, int64_t layer)
{
    if (layer < 0 || layer >= CBN__LAYERS_MAX || cbn__layer_set_has(set, layer))
        return;
    set->words[layer / 64] |= (uint64_t)1 << (layer % 64);
    set->count++;
}

static inline void cbn__layer_set_remove(struct cbn__layer_set *set, int64_t layer)
{
    if (!cbn__layer_set_has(set, layer))
        return;
    set->words[layer / 64] &= ~((uint64_t)1 << (layer % 64));
    set->count--;
}

#endif
