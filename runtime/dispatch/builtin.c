/*
 * The built-in families: embedded sources attached to their data, registered as a caller's own are; and queries turned
 * into their facts. Must not decide anything. Takes no lock.
 */
#include "dispatch/builtin.h"

#include <stdbool.h>
#include <string.h>

#include "base/arch.h"
#include "dispatch/fp8_wgmma.h"
#include "jit/embedded.h"

#define ALIGN_MAX 16

static const struct cbn_family *const builtins[CBN__BUILTIN_COUNT] = {&cbn__builtin_fp8_gemm,
                                                                      &cbn__builtin_fp8_quantize};

/* No headers: a built-in's digest covers every embedded file, and the build gives it all of them by name. */
static int32_t attach_sources(const struct cbn_family *family, struct cbn_candidate *ret_candidates,
                              struct cbn_error *err)
{
    for (uint32_t i = 0; i < family->candidate_count; i++) {
        ret_candidates[i] = family->candidates[i];
        if (!ret_candidates[i].source_name)
            continue;
        const struct cbn__embedded *file = cbn__embedded_find(ret_candidates[i].source_name);
        if (!file)
            return cbn__error_own(err, CBN_STATUS_INTERNAL, "template %s is not embedded; report this",
                                  ret_candidates[i].source_name);
        ret_candidates[i].source = file->text;
    }
    return CBN_STATUS_OK;
}

static int32_t create_family(const struct cbn_family *family, const struct cbn__hash *digest,
                             struct cbn__family **ret_family, struct cbn_error *err)
{
    struct cbn_candidate candidates[CBN_CANDIDATES_MAX];
    struct cbn_family description = *family;
    int32_t status = attach_sources(family, candidates, err);
    description.candidates = candidates;
    return status == CBN_STATUS_OK ? cbn__family_create(&description, digest, ret_family, err) : status;
}

int32_t cbn__builtin_families(struct cbn__family *ret_families[CBN__BUILTIN_COUNT], struct cbn_error *err)
{
    struct cbn__family *families[CBN__BUILTIN_COUNT] = {NULL};
    struct cbn__hash digest = cbn__embedded_digest();
    int32_t status = CBN_STATUS_OK;
    for (int i = 0; i < CBN__BUILTIN_COUNT && status == CBN_STATUS_OK; i++)
        status = create_family(builtins[i], &digest, &families[i], err);
    if (status == CBN_STATUS_OK) {
        families[0]->derive = (struct cbn__derivation){cbn__gemm_derive_rows, cbn__gemm_can_be, CBN__WGMMA_STEP,
                                                       CBN__WGMMA_STEPS_END};
        memcpy(ret_families, families, sizeof(families));
        return CBN_STATUS_OK;
    }
    for (int i = 0; i < CBN__BUILTIN_COUNT; i++)
        cbn__family_destroy(families[i]);
    return status;
}

/* One rule of a query: its field in the CLI's words, what it holds, the values it may have. */
struct field {
    const char *name;
    int64_t value, low, high;
    const char *give;
};

static int32_t refuse_field(const struct field *field, struct cbn_error *err)
{
    bool is_dtype = strcmp(field->name, "in") == 0 || strcmp(field->name, "out") == 0;
    if (is_dtype)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s: %s; give %s", field->name,
                              cbn_dtype_name((uint32_t)field->value), field->give);
    return cbn__error_own(err, CBN_STATUS_INVALID, "%s: %lld; give %s", field->name, (long long)field->value,
                          field->give);
}

static int32_t check_fields(const struct field *fields, size_t count, struct cbn_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].value < fields[i].low || fields[i].value > fields[i].high)
            return refuse_field(&fields[i], err);
    return CBN_STATUS_OK;
}

#define CHECK_FIELDS(fields, err) check_fields(fields, sizeof(fields) / sizeof((fields)[0]), err)

int32_t cbn__query_check_common(const struct cbn_query *query, struct cbn_error *err)
{
    const struct cbn_profile *profile = &query->profile;
    const struct field fields[] = {
        {"query.reserved", query->reserved, 0, 0, "0"},
        {"pow2", profile->pow2, 0, 1, "0 or 1"},
        {"pdl", profile->pdl, 0, 1, "0 or 1"},
        {"propagate", profile->propagate, 0, 1, "0 or 1"},
        {"strict-route", profile->strict_route, 0, 1, "0 or 1"},
        {"sms", profile->sms, 0, INT32_MAX, "the SMs of the device, or 0 for the architecture's usual count"},
        {"max-sms", profile->max_sms, 0, INT32_MAX, "the SMs that a call may use, or 0 for all"},
        {"k", query->k, 0, INT64_MAX, "0 or more"},
        {"lda", query->lda, 0, INT64_MAX, "a row stride of at least k, or 0 for k"},
    };
    int32_t status = CHECK_FIELDS(fields, err);
    if (status == CBN_STATUS_OK && !cbn__arch_usual_sms(query->arch))
        status = cbn__error_own(err, CBN_STATUS_INVALID, "arch: %u is none; take it from cbn_arch_parse", query->arch);
    if (status == CBN_STATUS_OK && query->lda && query->lda < query->k)
        status = cbn__error_own(err, CBN_STATUS_INVALID, "lda: %lld is below k, %lld; give a stride of at least k",
                                (long long)query->lda, (long long)query->k);
    return status;
}

static bool is_packed(uint32_t layout)
{
    return layout == CBN_LAYOUT_PACKED_ROW || layout == CBN_LAYOUT_PACKED_COL;
}

static int32_t check_gemm(const struct cbn_query *query, struct cbn_error *err)
{
    const struct cbn_profile *profile = &query->profile;
    const struct field fields[] = {
        {"m", query->m, 0, INT64_MAX, "0 or more"},
        {"n", query->n, 0, INT64_MAX, "0 or more"},
        {"g", query->groups, 0, 0, "none: fp8_gemm has no groups"},
        {"approx", profile->approx, 0, 0, "0: fp8_gemm quantises by exact division"},
        {"in", profile->in, CBN_DTYPE_BF16, CBN_DTYPE_E4M3, "bf16, fp16, fp32 or e4m3"},
        {"out", profile->out, CBN_DTYPE_BF16, CBN_DTYPE_FP32, "bf16, fp16 or fp32"},
        {"weight-scale", profile->weight_scale, CBN_SCALE_FP32, CBN_SCALE_UE8M0, "fp32 or ue8m0"},
        {"scale-gran", profile->scale_gran, CBN_GRAN_BLOCK, CBN_GRAN_ROW, "block or row"},
        {"bias", profile->bias, CBN_BIAS_NONE, CBN_BIAS_FP32, "none, out or fp32"},
        {"act-scale", profile->act_scale, profile->in == CBN_DTYPE_E4M3 ? CBN_LAYOUT_ROW : CBN_LAYOUT_NONE,
         CBN_LAYOUT_PACKED_COL, "row, col, col4, packed-row or packed-col"},
    };
    return CHECK_FIELDS(fields, err);
}

static int32_t check_quantize(const struct cbn_query *query, struct cbn_error *err)
{
    const struct cbn_profile *profile = &query->profile;
    const struct field fields[] = {
        {"t", query->m, 0, INT64_MAX, "0 or more"},
        {"n", query->n, 0, 0, "none: fp8_quantize has no N"},
        {"g", query->groups, 0, INT64_MAX, "1 or more, or 0 for flat"},
        {"approx", profile->approx, 0, 1, "0 or 1"},
        {"in", profile->in, CBN_DTYPE_BF16, CBN_DTYPE_FP32, "bf16, fp16 or fp32"},
        {"act-scale", profile->act_scale, CBN_LAYOUT_ROW, CBN_LAYOUT_PACKED_COL,
         "row, col, col4, packed-row or packed-col"},
    };
    int32_t status = CHECK_FIELDS(fields, err);
    if (status == CBN_STATUS_OK && query->groups &&
        (profile->act_scale == CBN_LAYOUT_COL || profile->act_scale == CBN_LAYOUT_PACKED_ROW))
        status = cbn__error_own(err, CBN_STATUS_INVALID,
                                "act-scale: %s is not stored by group; give row, col4 or packed-col with g",
                                profile->act_scale == CBN_LAYOUT_COL ? "col" : "packed-row");
    if (status == CBN_STATUS_OK && profile->approx && (profile->pow2 || is_packed(profile->act_scale)))
        status = cbn__error_own(err, CBN_STATUS_INVALID,
                                "approx: 1 is for plain fp32 scales; give pow2 0 and act-scale row, col or col4");
    return status;
}

static int64_t dtype_bytes(uint32_t dtype)
{
    switch (dtype) {
#define CBN_X(number, name, text, bytes)                                                                               \
    case number:                                                                                                       \
        return bytes;
        CBN_DTYPE_MAP(CBN_X)
#undef CBN_X
    default:
        return 0;
    }
}

/* Of a row stride, as if the base address were aligned to ALIGN_MAX. Only the low bits matter, so it may wrap. */
static int64_t narrow_align(int64_t align, int64_t stride, uint32_t dtype)
{
    uint64_t bits = (uint64_t)align | (uint64_t)stride * (uint64_t)dtype_bytes(dtype);
    return (int64_t)(bits & (~bits + 1));
}

/* The stride of a single row separates nothing: it counts as contiguous, as cbn__tensor_align takes it. */
static int64_t row_stride(const struct cbn_query *query)
{
    return query->lda && query->m != 1 ? query->lda : query->k;
}

static int64_t sms_of(const struct cbn_query *query)
{
    return query->profile.sms ? query->profile.sms : cbn__arch_usual_sms(query->arch);
}

static void fill_gemm(const struct cbn_query *query, int64_t *facts)
{
    const struct cbn_profile *profile = &query->profile;
    bool quantised = profile->in == CBN_DTYPE_E4M3;
    int64_t align = narrow_align(ALIGN_MAX, row_stride(query), profile->in);
    align = narrow_align(align, query->k, CBN_DTYPE_E4M3);
    align = narrow_align(align, query->n, profile->out);
    facts[CBN__GEMM_FACT_m] = query->m;
    facts[CBN__GEMM_FACT_n] = query->n;
    facts[CBN__GEMM_FACT_k] = query->k;
    facts[CBN__GEMM_FACT_in] = profile->in;
    facts[CBN__GEMM_FACT_out] = profile->out;
    facts[CBN__GEMM_FACT_a_scale] = 0;
    if (quantised)
        facts[CBN__GEMM_FACT_a_scale] = is_packed(profile->act_scale) ? CBN_SCALE_UE8M0 : CBN_SCALE_FP32;
    facts[CBN__GEMM_FACT_w_scale] = profile->weight_scale;
    facts[CBN__GEMM_FACT_w_gran] = profile->scale_gran;
    facts[CBN__GEMM_FACT_bias] =
        profile->bias == CBN_BIAS_FP32 && profile->out == CBN_DTYPE_FP32 ? CBN_BIAS_OUT : profile->bias;
    /* What quantises inside has these two; codes were made before. */
    facts[CBN__GEMM_FACT_pow2] = !quantised && profile->pow2;
    facts[CBN__GEMM_FACT_propagate] = !quantised && profile->propagate;
    facts[CBN__GEMM_FACT_align] = align;
    facts[CBN__GEMM_FACT_pdl] = profile->pdl && cbn__arch_has_pdl(query->arch);
    facts[CBN__GEMM_FACT_arch] = query->arch;
    facts[CBN__GEMM_FACT_sms] = sms_of(query);
    facts[CBN__GEMM_FACT_max_sms] = profile->max_sms;
    cbn__gemm_derive(facts);
}

static void fill_quantize(const struct cbn_query *query, int64_t *facts)
{
    const struct cbn_profile *profile = &query->profile;
    bool packed = is_packed(profile->act_scale);
    int64_t align = narrow_align(ALIGN_MAX, row_stride(query), profile->in);
    align = narrow_align(align, query->k, CBN_DTYPE_E4M3);
    facts[CBN__QUANTIZE_FACT_t] = query->m;
    facts[CBN__QUANTIZE_FACT_g] = query->groups;
    facts[CBN__QUANTIZE_FACT_k] = query->k;
    facts[CBN__QUANTIZE_FACT_in] = profile->in;
    facts[CBN__QUANTIZE_FACT_scale] = packed ? CBN_SCALE_UE8M0 : CBN_SCALE_FP32;
    facts[CBN__QUANTIZE_FACT_pow2] = packed || profile->pow2;
    facts[CBN__QUANTIZE_FACT_propagate] = profile->propagate;
    facts[CBN__QUANTIZE_FACT_approx] = profile->approx;
    facts[CBN__QUANTIZE_FACT_align] = align;
    facts[CBN__QUANTIZE_FACT_pdl] = profile->pdl && cbn__arch_has_pdl(query->arch);
    facts[CBN__QUANTIZE_FACT_arch] = query->arch;
    facts[CBN__QUANTIZE_FACT_sms] = sms_of(query);
    facts[CBN__QUANTIZE_FACT_max_sms] = profile->max_sms;
}

static const struct builtin_op {
    const char *name;
    int32_t (*check)(const struct cbn_query *query, struct cbn_error *err);
    void (*fill)(const struct cbn_query *query, int64_t *facts);
    uint32_t shape_facts;
} ops[CBN__BUILTIN_COUNT] = {
    {"fp8_gemm", check_gemm, fill_gemm,
     1u << CBN__GEMM_FACT_m | 1u << CBN__GEMM_FACT_n | 1u << CBN__GEMM_FACT_k | 1u << CBN__GEMM_FACT_align |
         1u << CBN__GEMM_FACT_split | 1u << CBN__GEMM_FACT_slice | 1u << CBN__GEMM_FACT_room |
         1u << CBN__GEMM_FACT_few_tile | 1u << CBN__GEMM_FACT_deep | 1u << CBN__GEMM_FACT_tile},
    {"fp8_quantize", check_quantize, fill_quantize,
     1u << CBN__QUANTIZE_FACT_t | 1u << CBN__QUANTIZE_FACT_g | 1u << CBN__QUANTIZE_FACT_k |
         1u << CBN__QUANTIZE_FACT_align},
};

int32_t cbn__builtin_facts(const struct cbn_query *query, int64_t *ret_facts, uint32_t *ret_shape_facts,
                           struct cbn_error *err)
{
    if (!query->op)
        return cbn__error_own(err, CBN_STATUS_INVALID, "op: NULL; give fp8_gemm or fp8_quantize");
    for (int i = 0; i < CBN__BUILTIN_COUNT; i++) {
        if (strcmp(query->op, ops[i].name) != 0)
            continue;
        if (query->facts || query->fact_count)
            return cbn__error_own(err, CBN_STATUS_INVALID, "facts: %s takes none; the query's own fields give them",
                                  query->op);
        int32_t status = cbn__query_check_common(query, err);
        if (status == CBN_STATUS_OK)
            status = ops[i].check(query, err);
        if (status != CBN_STATUS_OK)
            return status;
        ops[i].fill(query, ret_facts);
        *ret_shape_facts = ops[i].shape_facts;
        return CBN_STATUS_OK;
    }
    return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                          "op: %.64s has no kernel in this release; fp8_gemm and "
                          "fp8_quantize have",
                          query->op);
}
