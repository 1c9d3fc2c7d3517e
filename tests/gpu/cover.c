/*
 * Which specialisations the suite launched. The decision of each call is asked for again with the alignment that the
 * call has, and the runtime must then hold exactly that kernel: a launch through another one is a fault.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#include "api/kernel_map.h"
#include "api/runtime.h"

struct cover {
    uint32_t count, capacity;
    char (*texts)[CBN_SPEC_TEXT_BYTES];
    uint64_t faults;
};

struct cover *cover_create(void)
{
    return calloc(1, sizeof(struct cover));
}

void cover_destroy(struct cover *cover)
{
    if (cover) {
        free(cover->texts);
    }
    free(cover);
}

uint32_t cover_count(const struct cover *cover)
{
    return cover->count;
}

const char *cover_text(const struct cover *cover, uint32_t index)
{
    return cover->texts[index];
}

static bool has_text(const struct cover *cover, const char *text)
{
    for (uint32_t i = 0; i < cover->count; i++) {
        if (strcmp(cover->texts[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static void add_text(struct cover *cover, const char *text)
{
    if (has_text(cover, text)) {
        return;
    }
    if (cover->count == cover->capacity) {
        uint32_t capacity = cover->capacity ? cover->capacity * 2 : 64;
        void *texts = realloc(cover->texts, (size_t)capacity * sizeof(*cover->texts));
        if (!texts) {
            abort();
        }
        cover->texts = texts;
        cover->capacity = capacity;
    }
    (void)snprintf(cover->texts[cover->count++], CBN_SPEC_TEXT_BYTES, "%s", text);
}

static void fault(struct cover *cover, const char *what, const char *text)
{
    if (cover->faults++ < 10) {
        fprintf(stderr, "  FAULT cover: %s: %s\n", what, text);
    }
}

static const char *note(struct suite *suite, enum suite_runtime which, const struct cbn_query *query,
                        uint32_t align_fact, int64_t align)
{
    struct cbn_runtime *runtime = suite->runtimes[which];
    struct cbn__question question;
    struct cbn__decision decision;
    struct cbn_spec described;
    struct cbn_error err = {0};
    if (cbn__question_resolve(runtime, query, &question, &err) != CBN_STATUS_OK) {
        fault(suite->cover, "no question", err.message);
        return "?";
    }
    question.facts[align_fact] = align;
    cbn__decide(question.family, question.facts, &question.route, &decision);
    if (decision.noop) {
        return "";
    }
    if (decision.chosen < 0) {
        fault(suite->cover, "no candidate for a call that was taken", query->op);
        return "?";
    }
    const struct cbn__candidate *candidate = &question.family->candidates[decision.chosen];
    struct cbn__spec spec = {.template = &candidate->template, .arch = query->arch};
    cbn__params_resolve(candidate, question.facts, spec.params);
    cbn__spec_describe(&spec, &described);
    if (!cbn__kernel_map_find(runtime->kernels, &spec)) {
        fault(suite->cover, "decided but not what the call loaded", described.text);
    }
    add_text(suite->cover, described.text);
    return candidate->template.name;
}

const char *cover_note_gemm(struct suite *suite, enum suite_runtime runtime, const struct cbn_query *query,
                            int64_t align)
{
    return note(suite, runtime, query, CBN__GEMM_FACT_align, align);
}

const char *cover_note_quantize(struct suite *suite, const struct cbn_query *query, int64_t align)
{
    return note(suite, RUNTIME_ALL, query, CBN__QUANTIZE_FACT_align, align);
}

uint64_t cover_faults(const struct cover *cover)
{
    return cover->faults;
}

struct checking {
    const struct cover *cover;
    struct tally *tally;
};

static int check_spec(void *user, const struct cbn_spec *spec)
{
    struct checking *checking = user;
    checking->tally->count++;
    if (!has_text(checking->cover, spec->text)) {
        tally_fault(checking->tally, "no case launches %s", spec->text);
    }
    return 0;
}

void cover_check(struct suite *suite, struct tally *tally)
{
    static const char *const ops[] = {"fp8_gemm", "fp8_quantize"};
    struct checking checking = {suite->cover, tally};
    for (int i = 0; i < 2; i++) {
        struct cbn_query query = CBN_QUERY_INIT;
        struct cbn_error err = {0};
        query.op = ops[i];
        query.arch = suite->device.arch;
        if (cbn_enumerate(suite->runtimes[RUNTIME_ALL], &query, check_spec, &checking, &err) != CBN_STATUS_OK) {
            tally_fault(tally, "enumerate %s: %s", ops[i], err.message);
        }
    }
    if (tally->count == 0) {
        tally_fault(tally, "the default profile has no specialisation");
    }
}
