/*
 * The launches of fp8_gemm. Takes no lock, allocates nothing: what may block is behind cbn__kernel_obtain.
 */
#include "api/gemm_launch.h"

#include "launch/tensor_map.h"

#define WEIGHT_BOX_ROWS 64

_Static_assert(sizeof(struct cbn__tensor_map) == CBN__TENSOR_MAP_BYTES &&
                   _Alignof(struct cbn__tensor_map) == CBN__TENSOR_MAP_ALIGN,
               "one map on both sides");

/* ---- what is asked before a call ---- */

int32_t cbn__gemm_ops_begin(struct cbn_runtime *runtime, uint32_t flags, uint32_t miss_policy,
                            struct cbn__gemm_ops *ret_ops, struct cbn_error *err)
{
    int32_t status = cbn__op_begin(runtime, "fp8_gemm", flags, miss_policy, &ret_ops->gemm, err);
    return status == CBN_STATUS_OK ? cbn__op_begin(runtime, "fp8_quantize", flags, miss_policy, &ret_ops->quantize, err)
                                   : status;
}

void cbn__gemm_ops_place(struct cbn__gemm_ops *ops, const struct cbn__device_facts *device, uint32_t max_sms,
                         uint32_t flags, int64_t *facts)
{
    cbn__op_place(&ops->gemm, device, max_sms, flags, facts);
    ops->quantize.arch = ops->gemm.arch;
    ops->quantize.pdl = ops->gemm.pdl;
    cbn__gemm_derive(facts);
}

int32_t cbn__gemm_choose_quantizer(const struct cbn__op *quantize, const int64_t *gemm_facts,
                                   struct cbn__choice *ret_choice, struct cbn_error *err)
{
    int64_t facts[CBN__QUANTIZE_FACT_COUNT];
    cbn__gemm_quantize_facts(gemm_facts, facts);
    return cbn__op_choose(quantize, facts, ret_choice, err);
}

int32_t cbn__question_quantizer(const struct cbn__question *question, const struct cbn__spec *spec,
                                const struct cbn__candidate *candidate, const int64_t *facts, bool *ret_first,
                                struct cbn__choice *ret_choice, struct cbn_error *err)
{
    const struct cbn__op quantize = {
        .family = question->quantize_family, .route = question->quantize_route, .arch = spec->arch};
    /* A caller's own struct may by chance be as long as swap_ab's. */
    *ret_first = !question->own && cbn__gemm_quantizes_first(candidate, spec->params, facts);
    return *ret_first ? cbn__gemm_choose_quantizer(&quantize, facts, ret_choice, err) : CBN_STATUS_OK;
}

/* ---- maps ---- */

static struct cbn__codes weights_of(const struct cbn__gemm_args *gemm)
{
    return (struct cbn__codes){"w", gemm->w, gemm->n, gemm->k, gemm->ldw};
}

static bool has_groups(const struct cbn__gemm_args *gemm, uint32_t depth)
{
    return gemm->k / CBN_GROUP_SIZE >= (int64_t)depth;
}

void cbn__weight_maps_fill(const struct cbn__driver *driver, const struct cbn__gemm_args *arguments,
                           struct cbn__weight_maps *ret_maps)
{
    const struct cbn__codes codes = weights_of(arguments);
    ret_maps->has_tail =
        cbn__tensor_map_encode(driver, &codes, WEIGHT_BOX_ROWS, 0, &ret_maps->tail, NULL) == CBN_STATUS_OK;
    for (uint32_t depth = 1; depth <= CBN__DEPTH_MAX; depth++)
        ret_maps->has_depth[depth - 1] =
            has_groups(arguments, depth) && cbn__tensor_map_encode(driver, &codes, WEIGHT_BOX_ROWS, depth,
                                                                   &ret_maps->depth[depth - 1], NULL) == CBN_STATUS_OK;
    cbn__wgmma_weight_maps_fill(driver, arguments, &ret_maps->wgmma);
}

/* The map of whole groups stays zero where there are fewer of them than a box takes: no copy uses it then. */
static int32_t encode_pair(const struct cbn__driver *driver, const struct cbn__codes *codes, uint32_t box_rows,
                           uint32_t depth, struct cbn__tensor_map *ret_groups, struct cbn__tensor_map *ret_tail,
                           struct cbn_error *err)
{
    int32_t status = cbn__tensor_map_encode(driver, codes, box_rows, 0, ret_tail, err);
    if (status != CBN_STATUS_OK || codes->k / CBN_GROUP_SIZE < (int64_t)depth)
        return status;
    return cbn__tensor_map_encode(driver, codes, box_rows, depth, ret_groups, err);
}

static int32_t fill_weight_maps(const struct cbn__gemm_way *way, struct cbn__swap_ab_args *arguments, uint32_t depth,
                                struct cbn_error *err)
{
    const struct cbn__codes codes = weights_of(&arguments->gemm);
    const struct cbn__weight_maps *maps = way->maps;
    bool wants_groups = has_groups(&arguments->gemm, depth);
    if (!maps || !maps->has_tail || depth > CBN__DEPTH_MAX || (wants_groups && !maps->has_depth[depth - 1]))
        return encode_pair(way->place->driver, &codes, WEIGHT_BOX_ROWS, depth, &arguments->w, &arguments->w_tail, err);
    arguments->w_tail = maps->tail;
    if (wants_groups)
        arguments->w = maps->depth[depth - 1];
    return CBN_STATUS_OK;
}

static int32_t fill_swap_ab(const struct cbn__gemm_way *way, const struct cbn__choice *choice, const int64_t *facts,
                            bool codes_in, struct cbn__swap_ab_args *arguments, struct cbn_error *err)
{
    const struct cbn__gemm_args *gemm = &arguments->gemm;
    const struct cbn__codes activations = {"a", gemm->a, gemm->m, gemm->k, gemm->lda};
    uint32_t depth = 0, rows = 0;
    arguments->trigger = cbn__swap_ab_trigger(choice->spec.params, facts);
    cbn__swap_ab_boxes(choice->spec.params, &depth, &rows);
    int32_t status = fill_weight_maps(way, arguments, depth, err);
    if (status != CBN_STATUS_OK || !codes_in)
        return status;
    return encode_pair(way->place->driver, &activations, rows, depth, &arguments->a, &arguments->a_tail, err);
}

/* ---- kernels ---- */

struct step {
    struct cbn__choice choice;
    struct cbn__kernel *kernel;
};

/* A load goes into the thread's current context, which must then be the plan's. */
static int32_t check_context(const struct cbn__gemm_way *way, struct cbn_error *err)
{
    struct cbn__place current;
    int32_t status = cbn__runtime_place(way->ops->gemm.runtime, &current, err);
    if (status == CBN_STATUS_OK && current.context_id != way->place->context_id)
        status =
            cbn__error_own(err, CBN_STATUS_INVALID,
                           "the current context is %llu and the plan's is %llu; make the plan's current, or create "
                           "the plan with max_m so that runs load nothing",
                           (unsigned long long)current.context_id, (unsigned long long)way->place->context_id);
    return status;
}

static int32_t obtain(const struct cbn__gemm_way *way, struct step *step, struct cbn_error *err)
{
    struct cbn_runtime *runtime = way->ops->gemm.runtime;
    uint32_t shared_bytes = step->choice.geometry.shared_bytes;
    step->kernel = cbn__kernel_map_find(runtime->kernels, &step->choice.spec);
    if (step->kernel && cbn__kernel_ready(step->kernel, way->place->context_id) &&
        cbn__kernel_fits(step->kernel, way->place->device, shared_bytes)) {
        CBN__COUNT(runtime, memory_hits);
        return CBN_STATUS_OK;
    }
    int32_t status = way->pinned ? check_context(way, err) : CBN_STATUS_OK;
    if (status != CBN_STATUS_OK)
        return status;
    return cbn__kernel_obtain(runtime, &step->choice.spec, way->place, shared_bytes, way->ops->gemm.miss_policy, true,
                              way->stream, &step->kernel, err);
}

/* ---- launches ---- */

static int32_t check_workspace(const struct cbn__gemm_way *way, const struct cbn__choice *choice,
                               const struct cbn__gemm_call *call, struct cbn_error *err)
{
    uint64_t needed = choice->geometry.workspace_bytes;
    int32_t status = cbn__workspace_check(choice, way->workspace, way->workspace_bytes, err);
    if (status != CBN_STATUS_OK || needed == 0)
        return status;
    const struct cbn__span workspace = {.name = "workspace", .begin = way->workspace, .end = way->workspace + needed};
    status = cbn__spans_check_apart(&workspace, call->inputs, call->input_count, err);
    return status == CBN_STATUS_OK ? cbn__spans_check_apart(&workspace, &call->output, 1, err) : status;
}

/* What fp8_quantize is told: A as it is, codes and scales into the workspace. */
static struct cbn__quantize_args quantizer_args(const struct cbn__gemm_args *gemm,
                                                const struct cbn__gemm_workspace *workspace, uint64_t address)
{
    return (struct cbn__quantize_args){
        .x = gemm->a,
        .codes = address,
        .scales = address + (uint64_t)workspace->scales_offset,
        .m_valid = gemm->m_valid,
        .t = gemm->m,
        .g = 1,
        .k = gemm->k,
        .x_t = gemm->lda,
        .c_t = workspace->row_bytes,
        .s_t = 1,
        .s_s = workspace->scales_stride,
    };
}

/* From here on A is what the quantiser leaves. */
static void take_codes(struct cbn__gemm_args *gemm, const struct cbn__quantize_args *quantized)
{
    gemm->a = quantized->codes;
    gemm->lda = quantized->c_t;
    gemm->a_scale = quantized->scales;
    gemm->sa_row = quantized->s_t;
    gemm->sa_col = quantized->s_s;
}

static int32_t launch_plain(const struct cbn__gemm_way *way, struct step *gemm, struct cbn__gemm_call *call,
                            struct cbn_error *err)
{
    int32_t status = obtain(way, gemm, err);
    return status == CBN_STATUS_OK
               ? cbn__op_launch(&way->ops->gemm, gemm->kernel, &gemm->choice, &call->arguments, way->stream, err)
               : status;
}

/* What the kernels that copy by maps take; both begin with gemm and fetch_early. */
union mapped {
    struct cbn__wgmma_args wgmma; /* the larger one */
    struct cbn__swap_ab_args swap_ab;
};

_Static_assert(offsetof(struct cbn__swap_ab_args, gemm) == offsetof(struct cbn__wgmma_args, gemm) &&
                   offsetof(struct cbn__swap_ab_args, fetch_early) == offsetof(struct cbn__wgmma_args, fetch_early) &&
                   sizeof(struct cbn__swap_ab_args) <= sizeof(struct cbn__wgmma_args),
               "one beginning");

/* Both kernels and every map before the first launch. */
static int32_t launch_mapped(const struct cbn__gemm_way *way, struct step *gemm, const struct cbn__gemm_call *call,
                             struct cbn_error *err)
{
    const struct cbn__op *op = &way->ops->gemm, *quantize = &way->ops->quantize;
    union mapped arguments = {.wgmma = {.gemm = call->arguments, .fetch_early = way->fetch_early}};
    struct cbn__quantize_args quantized;
    struct step first;
    bool quantizes = cbn__gemm_quantizes_first(gemm->choice.candidate, gemm->choice.spec.params, call->facts);
    int32_t status = CBN_STATUS_OK;
    if (quantizes) {
        const struct cbn__gemm_workspace workspace = cbn__gemm_workspace_of(call->arguments.m, call->arguments.k);
        quantized = quantizer_args(&call->arguments, &workspace, way->workspace);
        take_codes(&arguments.wgmma.gemm, &quantized);
        status = cbn__gemm_choose_quantizer(quantize, call->facts, &first.choice, err);
        if (status == CBN_STATUS_OK)
            status = obtain(way, &first, err);
    }
    if (status == CBN_STATUS_OK)
        status = obtain(way, gemm, err);
    bool codes_in = quantizes || call->facts[CBN__GEMM_FACT_in] == CBN_DTYPE_E4M3;
    if (status == CBN_STATUS_OK && cbn__gemm_is_wgmma(gemm->choice.candidate))
        status = cbn__wgmma_arguments_fill(way->place->driver, call->facts, way->maps ? &way->maps->wgmma : NULL,
                                           &arguments.wgmma, err);
    else if (status == CBN_STATUS_OK)
        status = fill_swap_ab(way, &gemm->choice, call->facts, codes_in, &arguments.swap_ab, err);
    if (status == CBN_STATUS_OK && quantizes)
        status = cbn__op_launch(quantize, first.kernel, &first.choice, &quantized, way->stream, err);
    return status == CBN_STATUS_OK ? cbn__op_launch(op, gemm->kernel, &gemm->choice, &arguments, way->stream, err)
                                   : status;
}

int32_t cbn__gemm_launch(const struct cbn__gemm_way *way, struct cbn__gemm_call *call, struct cbn_error *err)
{
    struct step gemm;
    cbn__gemm_derive_rows(call->facts); /* a plan's run brings another m */
    int32_t status = cbn__op_choose(&way->ops->gemm, call->facts, &gemm.choice, err);
    if (status == CBN_STATUS_OK && gemm.choice.noop) {
        CBN__COUNT(way->ops->gemm.runtime, noops);
        return CBN_STATUS_OK;
    }
    if (status == CBN_STATUS_OK)
        status = check_workspace(way, &gemm.choice, call, err);
    if (status != CBN_STATUS_OK)
        return status;
    call->arguments.workspace = way->workspace;
    return cbn__gemm_takes_maps(gemm.choice.candidate) ? launch_mapped(way, &gemm, call, err)
                                                       : launch_plain(way, &gemm, call, err);
}
