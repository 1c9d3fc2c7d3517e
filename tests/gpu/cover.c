/*
 * Which specialisations the suite launched. The decision of each call is asked for again with the alignment that the
 * call has, and the runtime must then hold exactly that kernel: a launch through another one is a fault.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

#include "api/kernel_map.h"

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

struct noting {
    struct suite *suite;
    struct cbn_runtime *runtime;
};

static void note_spec(void *user, const struct cbn__spec *spec)
{
    const struct noting *noting = user;
    struct cbn_spec described;
    cbn__spec_describe(spec, &described);
    if (!cbn__kernel_map_find(noting->runtime->kernels, spec)) {
        fault(noting->suite->cover, "decided but not what the call loaded", described.text);
    }
    add_text(noting->suite->cover, described.text);
}

static const char *note(struct suite *suite, enum suite_runtime which, const struct cbn_query *query, int64_t align)
{
    struct noting noting = {suite, suite->runtimes[which]};
    struct cbn_error err = {0};
    const char *kernel = call_specs(noting.runtime, query, align, note_spec, &noting, &err);
    if (!kernel) {
        fault(suite->cover, "no kernel for a call that was taken", err.message);
    }
    return kernel ? kernel : "?";
}

const char *cover_note_gemm(struct suite *suite, enum suite_runtime runtime, const struct cbn_query *query,
                            int64_t align)
{
    return note(suite, runtime, query, align);
}

const char *cover_note_quantize(struct suite *suite, const struct cbn_query *query, int64_t align)
{
    return note(suite, RUNTIME_ALL, query, align);
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
