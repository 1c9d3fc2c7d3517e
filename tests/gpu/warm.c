/*
 * What the cases launch is built first, one child process a thread, so that no case waits for NVRTC. A specialisation
 * that this list lacks is built by its first call, slowly; one too many costs its build.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

#define SPECS_MAX 4096
#define FAILURES_PRINTED 5

struct spec_list {
    struct suite *suite;
    uint32_t count;
    char (*keys)[CBN_KEY_TEXT_BYTES];
    struct cbn__spec *specs;
    uint64_t faults;
    _Atomic uint32_t next, compiled, failed;
};

static void add_spec(void *user, const struct cbn__spec *spec)
{
    struct spec_list *list = user;
    struct cbn_spec described;
    cbn__spec_describe(spec, &described);
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->keys[i], described.key) == 0) {
            return;
        }
    }
    if (list->count == SPECS_MAX) {
        fprintf(stderr, "gpu_suite: more than %d specialisations\n", SPECS_MAX);
        exit(1);
    }
    (void)snprintf(list->keys[list->count], CBN_KEY_TEXT_BYTES, "%s", described.key);
    list->specs[list->count++] = *spec;
}

static int add_enumerated(void *user, const struct cbn__candidate *candidate, const int64_t *params,
                          const int64_t *facts)
{
    struct cbn__spec spec = {.template = &candidate->template, .arch = ((struct spec_list *)user)->suite->device.arch};
    (void)facts;
    memcpy(spec.params, params, candidate->template.param_count * sizeof(*params));
    if (candidate->template.source) {
        add_spec(user, &spec);
    }
    return 0;
}

static void fault(struct spec_list *list, const char *message)
{
    if (list->faults++ < FAILURES_PRINTED) {
        fprintf(stderr, "  FAULT warm: %s\n", message);
    }
}

static void add_query(void *user, const struct cbn_query *query)
{
    struct spec_list *list = user;
    struct cbn__question question;
    struct cbn_error err = {0};
    struct cbn_runtime *runtime = list->suite->runtimes[RUNTIME_ALL];
    if (cbn__question_resolve(runtime, query, &question, &err) != CBN_STATUS_OK ||
        cbn__question_enumerate(&question, query, add_enumerated, list, &err) != CBN_STATUS_OK) {
        fault(list, err.message);
    }
}

static void add_call(void *user, enum suite_runtime runtime, const struct cbn_query *query, int64_t align)
{
    struct spec_list *list = user;
    struct cbn_error err = {0};
    if (!call_specs(list->suite->runtimes[runtime], query, align, add_spec, list, &err)) {
        fault(list, err.message);
    }
}

static void build_some(void *user, int64_t begin, int64_t end)
{
    struct spec_list *list = user;
    (void)begin, (void)end;
    for (uint32_t i; (i = atomic_fetch_add(&list->next, 1)) < list->count;) {
        enum cbn_warm_outcome outcome = CBN_WARM_FAILED;
        struct cbn_error err = {0};
        struct cbn_spec described;
        CBN__BUF_AUTO log = CBN__BUF_INIT;
        int32_t status = cbn__disk_obtain(list->suite->runtimes[RUNTIME_ALL], &list->specs[i], &outcome, &log, &err);
        if (status == CBN_STATUS_OK) {
            atomic_fetch_add(&list->compiled, outcome == CBN_WARM_COMPILED);
        } else if (atomic_fetch_add(&list->failed, 1) < FAILURES_PRINTED) { /* they tend to have one cause */
            cbn__spec_describe(&list->specs[i], &described);
            fprintf(stderr, "  FAULT warm: %s: %s\n%s\n", described.text, err.message, cbn__buf_text(&log));
        }
    }
}

bool warm_all(struct suite *suite)
{
    struct spec_list list = {.suite = suite};
    double begun = now_s();
    list.keys = calloc(SPECS_MAX, sizeof(*list.keys));
    list.specs = calloc(SPECS_MAX, sizeof(*list.specs));
    if (list.keys && list.specs) {
        quantize_queries(suite, add_query, &list);
        approx_queries(suite, add_query, &list);
        gemm_queries(suite, add_query, &list);
        gemm_edges_calls(suite, add_call, &list);
        gemm_model_calls(suite, add_call, &list);
        decode_calls(suite, add_call, &list);
        prefill_calls(suite, add_call, &list);
        printf("warm: %u specialisations, ", list.count);
        (void)fflush(stdout);
        parallel_for(suite->threads, suite->threads, build_some, &list);
    }
    printf("%u compiled, %u failed, %.1f s\n", list.compiled, list.failed, now_s() - begun);
    (void)fflush(stdout);
    free(list.keys);
    free(list.specs);
    return list.count && !list.failed && !list.faults;
}
