/*
 * The decision of a call, asked for once more: see calls.h.
 */
#include "calls.h"

#include <string.h>

#include "api/gemm_launch.h"
#include "dispatch/builtin.h"
#include "dispatch/fp8_wgmma.h"

struct decided {
    struct cbn__question question;
    const struct cbn__candidate *candidate; /* NULL: a noop */
    struct cbn__spec spec;
};

static int32_t decide(uint32_t arch, struct decided *decided, struct cbn_error *err)
{
    struct cbn__decision decision;
    const struct cbn__question *question = &decided->question;
    cbn__decide(question->family, question->facts, &question->route, &decision);
    decided->candidate = NULL;
    if (decision.noop) {
        return CBN_STATUS_OK;
    }
    if (decision.chosen < 0) {
        cbn__refusals_format(question->family, &decision, err->message, sizeof(err->message));
        return CBN_STATUS_UNSUPPORTED;
    }
    decided->candidate = &question->family->candidates[decision.chosen];
    decided->spec = (struct cbn__spec){.template = &decided->candidate->template, .arch = arch};
    cbn__params_resolve(decided->candidate, question->facts, decided->spec.params);
    return CBN_STATUS_OK;
}

static int32_t resolve(struct cbn_runtime *runtime, const struct cbn_query *query, int64_t align,
                       struct decided *ret_decided, struct cbn_error *err)
{
    bool is_gemm = strcmp(query->op, "fp8_gemm") == 0;
    int32_t status = cbn__question_resolve(runtime, query, &ret_decided->question, err);
    if (status != CBN_STATUS_OK) {
        return status;
    }
    ret_decided->question.facts[is_gemm ? (int)CBN__GEMM_FACT_align : (int)CBN__QUANTIZE_FACT_align] = align;
    return decide(query->arch, ret_decided, err);
}

const char *call_specs(struct cbn_runtime *runtime, const struct cbn_query *query, int64_t align, call_spec_fn told,
                       void *user, struct cbn_error *err)
{
    struct decided decided;
    struct cbn__choice first;
    bool quantizes_first = false;
    if (resolve(runtime, query, align, &decided, err) != CBN_STATUS_OK) {
        return NULL;
    }
    if (!decided.candidate) {
        return "";
    }
    if (strcmp(query->op, "fp8_gemm") == 0 &&
        cbn__question_quantizer(&decided.question, &decided.spec, decided.candidate, decided.question.facts,
                                &quantizes_first, &first, err) != CBN_STATUS_OK) {
        return NULL;
    }
    if (quantizes_first) {
        told(user, &first.spec);
    }
    told(user, &decided.spec);
    return decided.candidate->template.name;
}

bool call_geometry(struct cbn_runtime *runtime, const struct cbn_query *query, int64_t align,
                   struct cbn_geometry *ret_geometry)
{
    struct decided decided;
    struct cbn_error err = {0};
    if (resolve(runtime, query, align, &decided, &err) != CBN_STATUS_OK || !decided.candidate) {
        return false;
    }
    decided.candidate->geometry(decided.spec.params, decided.question.facts, ret_geometry);
    return true;
}

int64_t call_sum_order(struct cbn_runtime *runtime, const struct cbn_query *query, int64_t align)
{
    struct decided decided;
    struct cbn_error err = {0};
    if (resolve(runtime, query, align, &decided, &err) != CBN_STATUS_OK || !decided.candidate ||
        strcmp(decided.candidate->template.name, "wgmma") != 0) {
        return 0;
    }
    const int64_t *params = decided.spec.params;
    return params[CBN__WGMMA_SPLIT] * 16 + (params[CBN__WGMMA_ALONG_K] ? params[CBN__WGMMA_WARPGROUPS] : 1);
}
