/*
 * fp8_gemm's input rules: from the caller's tensors to facts and to the kernel's argument struct. Pure.
 */
#include "api/gemm.h"

#include <string.h>

#include <cubinet/ops.h>

#define IN_DTYPES (CBN__DTYPE_BIT(BF16) | CBN__DTYPE_BIT(FP16) | CBN__DTYPE_BIT(FP32) | CBN__DTYPE_BIT(E4M3))
#define OUT_DTYPES (CBN__DTYPE_BIT(BF16) | CBN__DTYPE_BIT(FP16) | CBN__DTYPE_BIT(FP32))
#define ALIGN_MAX 16

#define FACT(call, name) ((call)->facts[CBN__GEMM_FACT_##name])

static struct cbn__span *next_input(struct cbn__gemm_call *call)
{
    return &call->inputs[call->input_count++];
}

static bool dtype_is_in(uint32_t dtype, uint32_t mask)
{
    return dtype < 32 && (mask >> dtype & 1u);
}

/* Extents that others are derived from: they must be sound before anything is computed with them. */
static int32_t check_matrix(const struct cbn_tensor *tensor, const char *name, const char *formula,
                            struct cbn_error *err)
{
    if (tensor->rank != 2)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s.rank is %u; give %s", name, tensor->rank, formula);
    for (uint32_t i = 0; i < 2; i++)
        if (tensor->extents[i] < 0)
            return cbn__error_own(err, CBN_STATUS_INVALID, "%s.extents[%u] is %lld; an extent is never negative", name,
                                  i, (long long)tensor->extents[i]);
    return CBN_STATUS_OK;
}

static int32_t bias_kind(const struct cbn_tensor *bias, uint32_t out, bool present, int64_t *ret_kind,
                         struct cbn_error *err)
{
    *ret_kind = CBN_BIAS_NONE;
    if (!present)
        return CBN_STATUS_OK;
    if (bias->dtype != out && bias->dtype != CBN_DTYPE_FP32)
        return cbn__error_own(err, CBN_STATUS_INVALID, "bias.dtype is %s (%u); give %s, which is d's, or fp32",
                              cbn_dtype_name(bias->dtype), bias->dtype, cbn_dtype_name(out));
    *ret_kind = bias->dtype == out ? CBN_BIAS_OUT : CBN_BIAS_FP32;
    return CBN_STATUS_OK;
}

static int32_t weight_facts(struct cbn__gemm_call *call, const struct cbn__gemm_weights *weights, bool has_bias,
                            struct cbn_error *err)
{
    int32_t status = check_matrix(weights->w, "w", "[N, K]", err);
    if (status != CBN_STATUS_OK)
        return status;
    if (!dtype_is_in(weights->out, OUT_DTYPES))
        return cbn__error_own(err, CBN_STATUS_INVALID, "d.dtype is %s (%u); give bf16, fp16 or fp32",
                              cbn_dtype_name(weights->out), weights->out);
    if (weights->gran > CBN_GRAN_ROW)
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                              "w_scale_gran is %u; scales of 128 x 128 blocks (CBN_GRAN_BLOCK) and of rows by 128 "
                              "(CBN_GRAN_ROW) are taken",
                              weights->gran);
    call->out = weights->out;
    FACT(call, n) = weights->w->extents[0];
    FACT(call, k) = weights->w->extents[1];
    FACT(call, out) = weights->out;
    FACT(call, w_gran) = weights->gran ? weights->gran : CBN_GRAN_BLOCK;
    FACT(call, w_scale) = weights->w_scale->dtype == CBN_DTYPE_INT32 ? CBN_SCALE_UE8M0 : CBN_SCALE_FP32;
    FACT(call, align) = ALIGN_MAX;
    return bias_kind(weights->bias, weights->out, has_bias, &FACT(call, bias), err);
}

static int32_t activation_facts(struct cbn__gemm_call *call, const struct cbn__gemm_activations *activations,
                                struct cbn_error *err)
{
    int32_t status = check_matrix(activations->a, "a", "[M, K]", err);
    if (status != CBN_STATUS_OK)
        return status;
    if (!dtype_is_in(activations->in, IN_DTYPES))
        return cbn__error_own(err, CBN_STATUS_INVALID,
                              "a.dtype is %s (%u); give bf16, fp16, fp32, or e4m3 with a_scale",
                              cbn_dtype_name(activations->in), activations->in);
    if (activations->layout > CBN_LAYOUT_PACKED_COL)
        return cbn__error_own(err, CBN_STATUS_INVALID, "a_scale_layout is %u; give one of enum cbn_scale_layout",
                              activations->layout);
    bool quantised = activations->in == CBN_DTYPE_E4M3;
    FACT(call, m) = activations->a->extents[0];
    FACT(call, in) = activations->in;
    /* What quantises inside has these two; codes were made before. */
    FACT(call, pow2) = !quantised && (activations->flags & CBN_OP_POW2);
    FACT(call, propagate) = !quantised && (activations->flags & CBN_OP_PROPAGATE);
    FACT(call, a_scale) = 0;
    if (quantised)
        FACT(call, a_scale) = cbn__layout_is_packed(activations->layout) ? CBN_SCALE_UE8M0 : CBN_SCALE_FP32;
    return CBN_STATUS_OK;
}

static int32_t bind_w(struct cbn__gemm_call *call, const struct cbn_tensor *w, struct cbn_error *err)
{
    struct cbn__shape shape = {"w", "[N, K]", CBN__DTYPE_BIT(E4M3), 2, {FACT(call, n), FACT(call, k)}};
    int32_t status = cbn__tensor_check(w, &shape, next_input(call), err);
    if (status == CBN_STATUS_OK)
        status = cbn__tensor_check_rows(w, "w", err);
    if (status != CBN_STATUS_OK)
        return status;
    call->arguments.w = w->data;
    call->arguments.ldw = cbn__tensor_stride(w, 0, FACT(call, k));
    FACT(call, align) = cbn__tensor_align(w, FACT(call, align));
    return CBN_STATUS_OK;
}

static int32_t bind_w_scale(struct cbn__gemm_call *call, const struct cbn_tensor *w_scale, struct cbn_error *err)
{
    bool rows = FACT(call, w_gran) == CBN_GRAN_ROW, packed = FACT(call, w_scale) == CBN_SCALE_UE8M0;
    int64_t groups = cbn__ceil_div(FACT(call, k), CBN_GROUP_SIZE);
    struct cbn__shape shape = {
        .name = "w_scale",
        .formula = rows ? (packed ? "[N, ceil(ceil(K/128)/4)]" : "[N, ceil(K/128)]")
                        : (packed ? "[ceil(N/128), ceil(ceil(K/128)/4)]" : "[ceil(N/128), ceil(K/128)]"),
        .dtypes = CBN__DTYPE_BIT(FP32) | CBN__DTYPE_BIT(INT32),
        .rank = 2,
        .extents = {rows ? FACT(call, n) : cbn__ceil_div(FACT(call, n), CBN_GROUP_SIZE),
                    packed ? cbn__ceil_div(groups, 4) : groups},
    };
    int32_t status = cbn__tensor_check(w_scale, &shape, next_input(call), err);
    if (status != CBN_STATUS_OK)
        return status;
    call->arguments.w_scale = w_scale->data;
    call->arguments.sw_row = cbn__tensor_stride(w_scale, 0, 0);
    call->arguments.sw_col = cbn__tensor_stride(w_scale, 1, 0);
    return CBN_STATUS_OK;
}

static int32_t bind_bias(struct cbn__gemm_call *call, const struct cbn_tensor *bias, struct cbn_error *err)
{
    struct cbn__shape shape = {"bias", "[N]", 1u << bias->dtype, 1, {FACT(call, n)}};
    int32_t status = cbn__tensor_check(bias, &shape, next_input(call), err);
    if (status == CBN_STATUS_OK)
        status = cbn__tensor_check_inner(bias, "bias", err);
    call->arguments.bias = bias->data;
    return status;
}

int32_t cbn__gemm_bind_weights(struct cbn__gemm_call *call, const struct cbn__gemm_weights *weights,
                               struct cbn_error *err)
{
    memset(call, 0, sizeof(*call));
    int32_t status = weight_facts(call, weights, weights->bias->data != 0, err);
    if (status != CBN_STATUS_OK || FACT(call, n) == 0)
        return status;
    call->arguments.n = FACT(call, n);
    call->arguments.k = FACT(call, k);
    status = bind_w(call, weights->w, err);
    if (status == CBN_STATUS_OK && FACT(call, k) > 0)
        status = bind_w_scale(call, weights->w_scale, err);
    if (status == CBN_STATUS_OK && FACT(call, bias) != CBN_BIAS_NONE)
        status = bind_bias(call, weights->bias, err);
    return status;
}

static int32_t bind_a(struct cbn__gemm_call *call, const struct cbn__gemm_activations *activations,
                      struct cbn_error *err)
{
    const struct cbn_tensor *a = activations->a;
    struct cbn__shape shape = {"a", "[M, K]", 1u << activations->in, 2, {FACT(call, m), FACT(call, k)}};
    int32_t status = cbn__tensor_check(a, &shape, next_input(call), err);
    if (status == CBN_STATUS_OK)
        status = cbn__tensor_check_rows(a, "a", err);
    if (status != CBN_STATUS_OK)
        return status;
    call->arguments.a = a->data;
    call->arguments.lda = cbn__tensor_stride(a, 0, FACT(call, k));
    FACT(call, align) = cbn__tensor_align(a, FACT(call, align));
    return CBN_STATUS_OK;
}

static int32_t bind_a_scale(struct cbn__gemm_call *call, const struct cbn__gemm_activations *activations,
                            struct cbn_error *err)
{
    const struct cbn_tensor *a_scale = activations->a_scale;
    if (activations->in != CBN_DTYPE_E4M3) {
        if (!a_scale->data)
            return CBN_STATUS_OK;
        return cbn__error_own(err, CBN_STATUS_INVALID,
                              "a_scale is given and a is %s, which is quantised inside; leave a_scale out",
                              cbn_dtype_name(activations->in));
    }
    if (FACT(call, k) == 0)
        return CBN_STATUS_OK;
    const struct cbn__scaled scaled = {"a_scale", FACT(call, m), -1, FACT(call, k)};
    int32_t status = cbn__scale_check(a_scale, activations->layout, &scaled, next_input(call), err);
    if (status != CBN_STATUS_OK)
        return status;
    call->arguments.a_scale = a_scale->data;
    call->arguments.sa_row = cbn__tensor_stride(a_scale, 0, 0);
    call->arguments.sa_col = cbn__tensor_stride(a_scale, 1, 0);
    return CBN_STATUS_OK;
}

static int32_t bind_d(struct cbn__gemm_call *call, const struct cbn_tensor *d, struct cbn_error *err)
{
    struct cbn__shape shape = {"d", "[M, N]", 1u << call->out, 2, {FACT(call, m), FACT(call, n)}};
    int32_t status = cbn__tensor_check(d, &shape, &call->output, err);
    if (status == CBN_STATUS_OK)
        status = cbn__tensor_check_rows(d, "d", err);
    if (status == CBN_STATUS_OK)
        status = cbn__spans_check_apart(&call->output, call->inputs, call->input_count, err);
    if (status != CBN_STATUS_OK)
        return status;
    call->arguments.d = d->data;
    call->arguments.ldd = cbn__tensor_stride(d, 0, FACT(call, n));
    FACT(call, align) = cbn__tensor_align(d, FACT(call, align));
    return CBN_STATUS_OK;
}

int32_t cbn__gemm_bind_activations(struct cbn__gemm_call *call, const struct cbn__gemm_activations *activations,
                                   struct cbn_error *err)
{
    int32_t status = activation_facts(call, activations, err);
    if (status == CBN_STATUS_OK)
        status = bind_a(call, activations, err);
    if (status == CBN_STATUS_OK)
        status = bind_a_scale(call, activations, err);
    if (status == CBN_STATUS_OK)
        status = cbn__word_check(activations->m_valid, "m_valid", next_input(call), err);
    if (status == CBN_STATUS_OK)
        status = bind_d(call, activations->d, err);
    call->arguments.m = FACT(call, m);
    call->arguments.m_valid = activations->m_valid;
    return status;
}

int32_t cbn__gemm_facts(struct cbn__gemm_call *call, const struct cbn__gemm_weights *weights,
                        const struct cbn__gemm_activations *activations, struct cbn_error *err)
{
    memset(call, 0, sizeof(*call));
    int32_t status = weight_facts(call, weights, weights->bias->dtype != CBN_DTYPE_NONE, err);
    return status == CBN_STATUS_OK ? activation_facts(call, activations, err) : status;
}
