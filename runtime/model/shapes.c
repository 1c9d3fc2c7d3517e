/*
 * Growing, reading and freeing the list of shapes.
 */
#include "model/shapes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static void free_strings(struct cbn_model_shape *shape)
{
    free((char *)shape->op);
    free((char *)shape->layer);
    free((char *)shape->reason);
}

void cbn_model_destroy(struct cbn_model *model)
{
    if (!model)
        return;
    for (uint32_t i = 0; i < model->count; i++)
        free_strings(&model->shapes[i]);
    free(model->shapes);
    free(model->name);
    free(model);
}

void cbn__shapes_destroyp(struct cbn_model **model)
{
    cbn_model_destroy(*model);
}

struct cbn_model *cbn__shapes_create(const char *name)
{
    struct cbn_model *model = calloc(1, sizeof(*model));
    if (!model)
        return NULL;
    model->name = strdup(name);
    if (model->name)
        return model;
    cbn_model_destroy(model);
    return NULL;
}

static bool grow(struct cbn_model *model)
{
    if (model->count < model->capacity)
        return true;
    uint32_t capacity = model->capacity ? model->capacity * 2 : 16;
    struct cbn_model_shape *shapes = reallocarray(model->shapes, capacity, sizeof(*shapes));
    if (!shapes)
        return false;
    model->shapes = shapes;
    model->capacity = capacity;
    return true;
}

int32_t cbn__shapes_append(struct cbn_model *model, const struct cbn_model_shape *shape, struct cbn_error *err)
{
    if (!grow(model))
        return cbn__error_no_memory(err);
    struct cbn_model_shape copy = *shape;
    copy.size = sizeof(copy);
    copy.op = strdup(shape->op);
    copy.layer = strdup(shape->layer);
    copy.reason = strdup(shape->reason);
    if (!copy.op || !copy.layer || !copy.reason) {
        free_strings(&copy);
        return cbn__error_no_memory(err);
    }
    model->shapes[model->count++] = copy;
    return CBN_STATUS_OK;
}

uint32_t cbn_model_shape_count(const struct cbn_model *model)
{
    return model ? model->count : 0;
}

const struct cbn_model_shape *cbn_model_shape_get(const struct cbn_model *model, uint32_t index)
{
    return model && index < model->count ? &model->shapes[index] : NULL;
}

const char *cbn_model_name(const struct cbn_model *model)
{
    return model ? model->name : "";
}
