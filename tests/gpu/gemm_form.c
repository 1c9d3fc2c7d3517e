/*
 * What a call of fp8_gemm may look like, and the question that the dispatcher answers for it.
 */
#include "gemm.h"

#include "api/tensor.h"

/* ---- forms ---- */

struct form form_default(void)
{
    return (struct form){
        .in = CBN_DTYPE_BF16, .out = CBN_DTYPE_BF16, .w_format = CBN_SCALE_FP32, .gran = CBN_GRAN_BLOCK};
}

struct form form_at(uint32_t index)
{
    static const struct {
        uint32_t in, layout;
        bool pow2;
    } inputs[11] = {
        {CBN_DTYPE_BF16, 0, false},
        {CBN_DTYPE_FP16, 0, false},
        {CBN_DTYPE_FP32, 0, false},
        {CBN_DTYPE_BF16, 0, true},
        {CBN_DTYPE_FP16, 0, true},
        {CBN_DTYPE_FP32, 0, true},
        {CBN_DTYPE_E4M3, CBN_LAYOUT_ROW, false},
        {CBN_DTYPE_E4M3, CBN_LAYOUT_COL, false},
        {CBN_DTYPE_E4M3, CBN_LAYOUT_COL4, false},
        {CBN_DTYPE_E4M3, CBN_LAYOUT_PACKED_ROW, false},
        {CBN_DTYPE_E4M3, CBN_LAYOUT_PACKED_COL, false},
    };
    static const uint32_t outs[3] = {CBN_DTYPE_BF16, CBN_DTYPE_FP16, CBN_DTYPE_FP32};
    uint32_t turn = index / 33, at = index % 33;
    return (struct form){
        .in = inputs[at % 11].in,
        .layout = inputs[at % 11].layout,
        .pow2 = inputs[at % 11].pow2,
        .out = outs[at / 11],
        .w_format = (at + turn) % 2 ? CBN_SCALE_UE8M0 : CBN_SCALE_FP32,
        .gran = (at / 2 + turn) % 2 ? CBN_GRAN_ROW : CBN_GRAN_BLOCK,
        .bias = (at + 2 * turn) % 3,
        .no_pdl = (at / 3 + turn) % 2,
    };
}

bool form_is_packed(const struct form *form)
{
    return form->layout == CBN_LAYOUT_PACKED_ROW || form->layout == CBN_LAYOUT_PACKED_COL;
}

bool form_a_pow2(const struct form *form)
{
    return form->pow2 || form_is_packed(form);
}

bool form_w_pow2(const struct form *form)
{
    return form->w_format == CBN_SCALE_UE8M0;
}

struct gemm_call gemm_call_plain(int64_t m)
{
    return (struct gemm_call){.form = form_default(), .m = m};
}

void gemm_query(const struct suite *suite, const struct form *form, struct cbn_query *ret_query)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = "fp8_gemm";
    query.arch = suite->device.arch;
    query.profile.in = form->in, query.profile.out = form->out;
    query.profile.weight_scale = form->w_format, query.profile.scale_gran = form->gran;
    if (form->layout) {
        query.profile.act_scale = form->layout;
    }
    query.profile.pow2 = form->pow2, query.profile.propagate = form->propagate;
    query.profile.bias = form->bias, query.profile.pdl = !form->no_pdl;
    query.profile.sms = (uint32_t)suite->device.sms;
    *ret_query = query;
}

void gemm_call_query(const struct suite *suite, int64_t n, int64_t k, const struct gemm_call *call,
                     struct cbn_query *ret_query)
{
    gemm_query(suite, &call->form, ret_query);
    ret_query->m = call->m, ret_query->n = n, ret_query->k = k;
    ret_query->profile.max_sms = call->max_sms;
}

/* gemm.c places every tensor at an offset from an address that more than 16 divides. */
int64_t gemm_call_align(int64_t n, int64_t k, const struct gemm_call *call)
{
    const struct form *form = &call->form;
    uint64_t base = 4096, d_bytes = (uint64_t)dtype_bytes(form->out), a_bytes = (uint64_t)dtype_bytes(form->in);
    const struct cbn_tensor tensors[] = {
        {base + (uint64_t)call->a_offset * a_bytes, form->in, 2, {call->m, k}, {k + call->lda_pad, 1}},
        {base + (uint64_t)call->w_offset, CBN_DTYPE_E4M3, 2, {n, k}, {k + call->ldw_pad, 1}},
        {base + (uint64_t)call->d_offset * d_bytes, form->out, 2, {call->m, n}, {n + call->ldd_pad, 1}},
    };
    int64_t align = 16;
    for (int i = 0; i < 3; i++) {
        align = cbn__tensor_align(&tensors[i], align);
    }
    return align;
}

void gemm_add_call(const struct suite *suite, int64_t n, int64_t k, const struct gemm_call *call, call_fn add,
                   void *user)
{
    struct cbn_query query;
    gemm_call_query(suite, n, k, call, &query);
    add(user, call->runtime, &query, gemm_call_align(n, k, call));
}
