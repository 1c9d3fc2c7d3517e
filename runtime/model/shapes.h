/*
 * The list of shapes behind struct cbn_model. Owns copies of every string. Not thread safe while it is filled.
 */
#ifndef CBN_MODEL_SHAPES_H
#define CBN_MODEL_SHAPES_H

#include <cubinet/model.h>

struct cbn_model {
    char *name;
    struct cbn_model_shape *shapes;
    uint32_t count;
    uint32_t capacity;
};

void cbn__shapes_destroyp(struct cbn_model **model);
#define CBN__MODEL_AUTO __attribute__((cleanup(cbn__shapes_destroyp))) struct cbn_model *

/* NULL without memory. */
struct cbn_model *cbn__shapes_create(const char *name);
/* Copies the shape and its strings. NO_MEMORY or OK. */
int32_t cbn__shapes_append(struct cbn_model *model, const struct cbn_model_shape *shape, struct cbn_error *err);

#endif
