/*
 * Operations: from checked facts to a launch. What a one-shot call and a plan's run have in common.
 */
#ifndef CBN_API_OPS_H
#define CBN_API_OPS_H

#include "api/runtime.h"

/* What a decision came to: which kernel, cut how, launched how. */
struct cbn__choice {
    bool noop;
    const struct cbn__candidate *candidate;
    struct cbn__spec spec;
    struct cbn_geometry geometry;
};

/* Options of one call that are not facts. */
struct cbn__op {
    struct cbn_runtime *runtime;
    const struct cbn__family *family;
    struct cbn__route route;
    uint32_t miss_policy;
    uint32_t arch; /* from cbn__op_place on */
    bool pdl;      /* the architecture has it and the call wants it */
};

/* One call, ready to be decided and launched. */
struct cbn__op_call {
    int64_t *facts; /* in the family's order; the common ones are filled in by cbn__op_run */
    void *arguments;
    uint32_t argument_bytes;
    uint32_t flags;
    uint32_t max_sms;
    uint64_t workspace, workspace_bytes; /* looked at where the choice needs some */
};

/* INVALID for a flag outside allowed and for a miss policy that is none. */
int32_t cbn__op_check(uint32_t flags, uint32_t allowed, uint32_t miss_policy, struct cbn_error *err);

/* The runtime's family and route of that name, made strict where the flags ask for it. */
int32_t cbn__op_begin(struct cbn_runtime *runtime, const char *name, uint32_t flags, uint32_t miss_policy,
                      struct cbn__op *ret_op, struct cbn_error *err);

/* Fills the common facts that the family has, arch, sms, max_sms and pdl, and the op's arch and pdl. */
void cbn__op_place(struct cbn__op *op, const struct cbn__device_facts *device, uint32_t max_sms, uint32_t flags,
                   int64_t *facts);

/* The whole way of a one-shot call that has begun: place, decision, kernel, launch. A noop is counted as one. */
int32_t cbn__op_run(struct cbn__op *op, const struct cbn__op_call *call, void *stream, struct cbn_error *err);

/*
 * The decision and what follows from it. UNSUPPORTED holds every candidate's refusing guard, or the candidate that
 * has no template.
 */
int32_t cbn__op_choose(const struct cbn__op *op, const int64_t *facts, struct cbn__choice *ret_choice,
                       struct cbn_error *err);

/* Launches the choice and counts it. */
int32_t cbn__op_launch(const struct cbn__op *op, const struct cbn__kernel *kernel, const struct cbn__choice *choice,
                       void *arguments, void *stream, struct cbn_error *err);

/* The workspace that a choice needs is there: aligned, large enough. */
int32_t cbn__workspace_check(const struct cbn__choice *choice, uint64_t address, uint64_t bytes, struct cbn_error *err);

#endif
