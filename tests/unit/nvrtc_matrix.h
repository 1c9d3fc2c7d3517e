/*
 * nvrtc_matrix: what there is to build, and a pairwise choice of it.
 */
#ifndef CBN_TESTS_NVRTC_MATRIX_H
#define CBN_TESTS_NVRTC_MATRIX_H

#include "dispatch/builtin.h"

struct form {
    const struct cbn__candidate *candidate;
    int64_t params[CBN_PARAMS_MAX];
};

struct forms {
    struct form *items;
    size_t count, capacity;
};

/* Says why on stderr and exits. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
/* items, or a larger copy where count has reached *capacity. */
void *grow(void *items, size_t count, size_t *capacity, size_t item_bytes);

/* Appends every specialisation of "fp8_gemm" or "fp8_quantize" that any shape can reach under the query's profile. */
void forms_add(struct cbn__family *const *families, const struct cbn_query *query, struct forms *forms);
/* Each specialisation once that any shape can reach under any profile, in order of candidate. */
void forms_add_profiles(struct cbn__family *const *families, uint32_t arch, struct forms *forms);
/* Few of those, in which every two parameters have every two values that they have together anywhere. */
void forms_pick_pairwise(const struct forms *forms, struct forms *ret_picked);
struct cbn_query query_of(const char *op, uint32_t arch);

#endif
