/*
 * fp8_quantize: input rules, facts, launch. Takes no lock.
 */
#include "api/ops.h"
#include "api/tensor.h"
#include "base/args.h"

#define CALL_FLAGS (CBN_OP_NO_PDL | CBN_OP_PROPAGATE | CBN_OP_POW2 | CBN_OP_APPROX_DIVISION | CBN_OP_STRICT_ROUTE)
#define IN_DTYPES (CBN__DTYPE_BIT(BF16) | CBN__DTYPE_BIT(FP16) | CBN__DTYPE_BIT(FP32))
#define ALIGN_MAX 16

struct quantize_call {
    bool grouped;
    int64_t t, g, k; /* g is 1 when flat */
    int64_t row;     /* g * k */
    int64_t facts[CBN__QUANTIZE_FACT_COUNT];
    struct cbn__quantize_args arguments;
    struct cbn__span x, codes, scales, m_valid;
};

#define FACT(call, name) ((call)->facts[CBN__QUANTIZE_FACT_##name])

static int32_t read_extents(struct quantize_call *call, const struct cbn_tensor *x, struct cbn_error *err)
{
    if (x->rank != 2 && x->rank != 3)
        return cbn__error_own(err, CBN_STATUS_INVALID, "x.rank is %u; give [T, K] or [T, G, D]", x->rank);
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->extents[i] < 0)
            return cbn__error_own(err, CBN_STATUS_INVALID, "x.extents[%u] is %lld; an extent is never negative", i,
                                  (long long)x->extents[i]);
    call->grouped = x->rank == 3;
    call->t = x->extents[0];
    call->g = call->grouped ? x->extents[1] : 1;
    call->k = x->extents[x->rank - 1];
    if (__builtin_mul_overflow(call->g, call->k, &call->row))
        return cbn__error_own(err, CBN_STATUS_INVALID, "x: %lld groups of %lld elements pass 2^63; check the extents",
                              (long long)call->g, (long long)call->k);
    return CBN_STATUS_OK;
}

static struct cbn__shape shape_like_x(const struct quantize_call *call, const char *name, uint32_t dtypes)
{
    struct cbn__shape shape = {name, call->grouped ? "[T, G, D]" : "[T, K]", dtypes, call->grouped ? 3 : 2, {call->t}};
    if (call->grouped)
        shape.extents[1] = call->g;
    shape.extents[shape.rank - 1] = call->k;
    return shape;
}

/* Where a stride has no meaning the contiguous one stands in. */
static int64_t row_stride(const struct quantize_call *call, const struct cbn_tensor *tensor)
{
    return cbn__tensor_stride(tensor, 0, call->row);
}

static int64_t group_stride(const struct quantize_call *call, const struct cbn_tensor *tensor)
{
    return call->grouped ? cbn__tensor_stride(tensor, 1, call->k) : 0;
}

static int32_t bind_x(struct quantize_call *call, const struct cbn_tensor *x, struct cbn_error *err)
{
    struct cbn__shape shape = shape_like_x(call, "x", IN_DTYPES);
    int32_t status = cbn__tensor_check(x, &shape, &call->x, err);
    if (status == CBN_STATUS_OK)
        status = call->grouped ? cbn__tensor_check_inner(x, "x", err) : cbn__tensor_check_rows(x, "x", err);
    if (status != CBN_STATUS_OK)
        return status;
    call->arguments.x = x->data;
    call->arguments.x_t = row_stride(call, x);
    call->arguments.x_g = group_stride(call, x);
    FACT(call, in) = x->dtype;
    FACT(call, align) = cbn__tensor_align(x, FACT(call, align));
    return CBN_STATUS_OK;
}

static int32_t check_contiguous(const struct quantize_call *call, const struct cbn_tensor *codes, struct cbn_error *err)
{
    int64_t wanted[] = {call->row, call->k, 1};
    for (uint32_t i = 0; i < 3 && call->row > 0; i++)
        if (cbn__tensor_stride(codes, i, wanted[i]) != wanted[i])
            return cbn__error_own(err, CBN_STATUS_INVALID,
                                  "codes.strides[%u] is %lld; codes with groups are contiguous [T, G, D]: give %lld", i,
                                  (long long)codes->strides[i], (long long)wanted[i]);
    return CBN_STATUS_OK;
}

static int32_t bind_codes(struct quantize_call *call, const struct cbn_tensor *codes, struct cbn_error *err)
{
    struct cbn__shape shape = shape_like_x(call, "codes", CBN__DTYPE_BIT(E4M3));
    int32_t status = cbn__tensor_check(codes, &shape, &call->codes, err);
    if (status == CBN_STATUS_OK)
        status = call->grouped ? check_contiguous(call, codes, err) : cbn__tensor_check_rows(codes, "codes", err);
    if (status != CBN_STATUS_OK)
        return status;
    call->arguments.codes = codes->data;
    call->arguments.c_t = row_stride(call, codes);
    call->arguments.c_g = group_stride(call, codes);
    FACT(call, align) = cbn__tensor_align(codes, FACT(call, align));
    return CBN_STATUS_OK;
}

static int32_t bind_scales(struct quantize_call *call, const struct cbn_tensor *scales, uint32_t layout,
                           struct cbn_error *err)
{
    const struct cbn__scaled scaled = {"scales", call->t, call->grouped ? call->g : -1, call->k};
    int32_t status = cbn__scale_check(scales, layout, &scaled, &call->scales, err);
    if (status != CBN_STATUS_OK)
        return status;
    call->arguments.scales = scales->data;
    call->arguments.s_t = cbn__tensor_stride(scales, 0, 0);
    call->arguments.s_g = call->grouped ? cbn__tensor_stride(scales, 1, 0) : 0;
    call->arguments.s_s = cbn__tensor_stride(scales, scales->rank - 1, 0);
    FACT(call, scale) = cbn__layout_is_packed(layout) ? CBN_SCALE_UE8M0 : CBN_SCALE_FP32;
    return CBN_STATUS_OK;
}

static int32_t check_apart(const struct quantize_call *call, struct cbn_error *err)
{
    const struct cbn__span inputs[] = {call->x, call->m_valid, call->scales};
    int32_t status = cbn__spans_check_apart(&call->codes, inputs, 3, err);
    return status == CBN_STATUS_OK ? cbn__spans_check_apart(&call->scales, inputs, 2, err) : status;
}

static int32_t check_division(const struct quantize_call *call, uint32_t flags, struct cbn_error *err)
{
    if (!(flags & CBN_OP_APPROX_DIVISION) || (FACT(call, scale) == CBN_SCALE_FP32 && !(flags & CBN_OP_POW2)))
        return CBN_STATUS_OK;
    return cbn__error_own(err, CBN_STATUS_INVALID,
                          "flags: CBN_OP_APPROX_DIVISION is for fp32 scales as they are; a power of two has an exact "
                          "reciprocal: clear it, or CBN_OP_POW2 and the packed layout");
}

static void fill_rest(struct quantize_call *call, const struct cbn_fp8_quantize_args *args)
{
    FACT(call, t) = call->t;
    FACT(call, g) = call->grouped ? call->g : 0;
    FACT(call, k) = call->k;
    FACT(call, pow2) = FACT(call, scale) == CBN_SCALE_UE8M0 || (args->flags & CBN_OP_POW2);
    FACT(call, propagate) = (args->flags & CBN_OP_PROPAGATE) != 0;
    FACT(call, approx) = (args->flags & CBN_OP_APPROX_DIVISION) != 0;
    call->arguments.m_valid = args->m_valid;
    call->arguments.t = call->t;
    call->arguments.g = call->g;
    call->arguments.k = call->k;
}

static int32_t bind(struct quantize_call *call, const struct cbn_fp8_quantize_args *args, struct cbn_error *err)
{
    *call = (struct quantize_call){0};
    FACT(call, align) = ALIGN_MAX;
    int32_t status = cbn__op_check(args->flags, CALL_FLAGS, args->miss_policy, err);
    if (status == CBN_STATUS_OK)
        status = read_extents(call, &args->x, err);
    if (status == CBN_STATUS_OK)
        status = bind_x(call, &args->x, err);
    if (status == CBN_STATUS_OK)
        status = bind_codes(call, &args->codes, err);
    if (status == CBN_STATUS_OK)
        status = bind_scales(call, &args->scales, args->scale_layout, err);
    if (status == CBN_STATUS_OK)
        status = check_division(call, args->flags, err);
    if (status == CBN_STATUS_OK)
        status = cbn__word_check(args->m_valid, "m_valid", &call->m_valid, err);
    if (status == CBN_STATUS_OK)
        status = check_apart(call, err);
    fill_rest(call, args);
    return status;
}

static int32_t launch(struct cbn_runtime *runtime, struct quantize_call *call, const struct cbn_fp8_quantize_args *args,
                      void *stream, struct cbn_error *err)
{
    struct cbn__op op;
    const struct cbn__op_call ready = {.facts = call->facts,
                                       .arguments = &call->arguments,
                                       .argument_bytes = sizeof(call->arguments),
                                       .flags = args->flags,
                                       .max_sms = args->max_sms};
    int32_t status = cbn__op_begin(runtime, "fp8_quantize", args->flags, args->miss_policy, &op, err);
    return status == CBN_STATUS_OK ? cbn__op_run(&op, &ready, stream, err) : status;
}

int32_t cbn_fp8_quantize(struct cbn_runtime *runtime, const struct cbn_fp8_quantize_args *given, void *stream,
                         struct cbn_error *err)
{
    if (!runtime || !given)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "args" : "runtime");
    CBN__COUNT(runtime, calls);
    struct cbn_fp8_quantize_args args = CBN_FP8_QUANTIZE_ARGS_INIT;
    struct quantize_call call;
    int32_t status = cbn__args_take(&args, sizeof(args), given, "cbn_fp8_quantize_args", err);
    if (status != CBN_STATUS_OK)
        return status;
    bool empty = args.x.extents[0] == 0;
    if (!empty) {
        status = bind(&call, &args, err);
        empty = call.g == 0 || call.k == 0;
    }
    if (status != CBN_STATUS_OK || !empty)
        return status != CBN_STATUS_OK ? status : launch(runtime, &call, &args, stream, err);
    CBN__COUNT(runtime, noops);
    return CBN_STATUS_OK;
}
