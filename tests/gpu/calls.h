/*
 * From a call to the specialisations that it launches, by the dispatcher's own functions.
 */
#ifndef TESTS_GPU_CALLS_H
#define TESTS_GPU_CALLS_H

#include "suite.h"

#include "api/runtime.h"

typedef void (*call_spec_fn)(void *user, const struct cbn__spec *spec);

/*
 * Tells every specialisation that a call launches, in order: one, or two where fp8_quantize runs first. Returns the
 * candidate's name, "" for a noop, NULL with err when no candidate takes the call.
 */
const char *call_specs(struct cbn_runtime *runtime, const struct cbn_query *query, int64_t align, call_spec_fn told,
                       void *user, struct cbn_error *err);

/* Calls of one candidate with equal numbers add a row's products in one order. */
int64_t call_sum_order(struct cbn_runtime *runtime, const struct cbn_query *query, int64_t align);

/* How a call is cut. False: no candidate takes it. */
bool call_geometry(struct cbn_runtime *runtime, const struct cbn_query *query, int64_t align,
                   struct cbn_geometry *ret_geometry);

#endif
