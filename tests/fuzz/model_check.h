/*
 * What must hold of a model however broken the file was that it came from.
 */
#ifndef CBN_TESTS_FUZZ_MODEL_CHECK_H
#define CBN_TESTS_FUZZ_MODEL_CHECK_H

#include <string.h>

#include <cubinet/model.h>

#include "fuzz.h"

#define EXTENT_MAX INT32_MAX

static inline void check_shape(const struct cbn_model_shape *shape)
{
    FUZZ_CHECK(shape->size == sizeof(*shape) && shape->op && shape->layer && shape->reason);
    FUZZ_CHECK(shape->fp8 <= 1 && (!shape->fp8 || shape->reason[0] == 0));
    FUZZ_CHECK(shape->n > 0 && shape->k > 0 && shape->groups > 0);
    FUZZ_CHECK(shape->n <= EXTENT_MAX && shape->k <= EXTENT_MAX && shape->groups <= EXTENT_MAX);
}

/* OK and a model, or an error that says so and no model; destroys the model. */
static inline void check_model(int32_t status, struct cbn_model *model, const struct cbn_error *err)
{
    FUZZ_CHECK((status == CBN_STATUS_OK) == (model != NULL));
    FUZZ_CHECK(status == CBN_STATUS_OK || (err->status == status && err->message[0] != 0));
    FUZZ_CHECK(memchr(err->message, 0, sizeof(err->message)) != NULL);
    FUZZ_CHECK(status != CBN_STATUS_INTERNAL && status != CBN_STATUS_NO_MEMORY);
    if (!model)
        return;
    uint32_t count = cbn_model_shape_count(model);
    FUZZ_CHECK(cbn_model_name(model) != NULL);
    for (uint32_t i = 0; i < count; i++)
        check_shape(cbn_model_shape_get(model, i));
    FUZZ_CHECK(cbn_model_shape_get(model, count) == NULL);
    cbn_model_destroy(model);
}

#endif
