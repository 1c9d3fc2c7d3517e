/*
 * cbn_model_load: finds the architecture and its fields in a config.json and turns each row of the table of
 * architectures into a shape. Holds no formula and no module name: those are data in architecture.c.
 */
#include <cubinet/model.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/buf.h"
#include "base/error.h"
#include "model/architecture.h"
#include "model/condition.h"
#include "model/formula.h"
#include "model/json.h"
#include "model/quant.h"
#include "model/shapes.h"

#define BLOCK_EXTENT 128
#define REASON_BYTES 256

struct load {
    struct cbn__scope scope;
    struct cbn__quant quant;
    const struct cbn__architecture *architecture;
    int64_t layer_count;
    struct cbn_model *model;
    struct cbn_error *err;
};

static int32_t copy_options(const struct cbn_model_options *options, struct cbn_model_options *ret_options,
                            struct cbn_error *err)
{
    struct cbn_model_options known = CBN_MODEL_OPTIONS_INIT;
    int32_t status = options ? cbn__args_take(&known, sizeof(known), options, "cbn_model_options", err) : CBN_STATUS_OK;
    if (status != CBN_STATUS_OK)
        return status;
    if (known.reserved)
        return cbn__error_own(err, CBN_STATUS_INVALID, "options.reserved is %u; it must be 0", known.reserved);
    if (known.tp < 0 || known.tp > INT32_MAX)
        return cbn__error_own(err, CBN_STATUS_INVALID, "tp is %lld; it must be a positive number of ranks",
                              (long long)known.tp);
    if (known.ep < 0 || known.ep > INT32_MAX)
        return cbn__error_own(err, CBN_STATUS_INVALID, "ep is %lld; it must be a positive number of ranks",
                              (long long)known.ep);
    *ret_options = known;
    return CBN_STATUS_OK;
}

static void set_ranks(struct load *load, const struct cbn_model_options *options)
{
    load->scope.tp = options->tp ? options->tp : 1;
    load->scope.ep = options->ep ? options->ep : 1;
    load->scope.moe_tp = options->ep ? 1 : load->scope.tp;
}

/* The family that a name starts with: "Qwen3_5" of "Qwen3_5ForCausalLM". */
static int family_length(const char *name)
{
    const char *end = strstr(name, "For");
    return (int)(end ? (size_t)(end - name) : strlen(name));
}

static int32_t refuse_architecture(const char *name, struct cbn_error *err)
{
    char quote[CBN__JSON_QUOTE_BYTES];
    CBN__BUF_AUTO known = CBN__BUF_INIT;
    const struct cbn__architecture *architecture, *last = NULL;
    for (uint32_t i = 0; (architecture = cbn__architecture_get(i)); last = architecture, i++) {
        int length = family_length(architecture->name);
        if (!last || family_length(last->name) != length ||
            strncmp(last->name, architecture->name, (size_t)length) != 0)
            cbn__buf_append_format(&known, "%s%.*s", i ? ", " : "", length, architecture->name);
    }
    return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                          "architectures names %s, for which there are no formulas; give its shapes in a manifest "
                          "(there are formulas for %s)",
                          cbn__json_quote(name, quote), cbn__buf_text(&known));
}

/* The first architecture of the array that has formulas; ret_name: the first of all, to be named in a refusal. */
static int32_t find_architecture(const json_t *config, const char *where, struct load *load, const char **ret_name)
{
    const json_t *names = json_object_get(config, "architectures");
    if (!json_is_array(names) || json_array_size(names) == 0)
        return cbn__error_own(load->err, CBN_STATUS_INVALID, "%sarchitectures is %s; it must be an array of names",
                              where, json_is_array(names) ? "empty" : cbn__json_type_name(names));
    for (size_t i = 0; i < json_array_size(names); i++) {
        const json_t *name = json_array_get(names, i);
        if (!json_is_string(name))
            return cbn__error_own(load->err, CBN_STATUS_INVALID, "%sarchitectures[%zu] is %s; it must be a string",
                                  where, i, cbn__json_type_name(name));
        if (!load->architecture)
            load->architecture = cbn__architecture_find(json_string_value(name));
        if (i == 0)
            *ret_name = json_string_value(name);
    }
    return CBN_STATUS_OK;
}

/* A model with a vision part keeps the fields of its language model, and at times the architecture, in text_config. */
static int32_t find_config(const json_t *root, struct load *load)
{
    const char *name = "";
    if (!json_is_object(root))
        return cbn__error_own(load->err, CBN_STATUS_INVALID, "the file holds %s; a config.json is an object",
                              cbn__json_type_name(root));
    const json_t *text = json_object_get(root, "text_config");
    if (!cbn__json_is_absent(text) && !json_is_object(text))
        return cbn__error_own(load->err, CBN_STATUS_INVALID, "text_config is %s; it must be an object",
                              cbn__json_type_name(text));
    bool nested = json_is_object(text);
    load->scope.config = nested ? text : root;
    load->scope.where = nested ? "text_config." : "";
    bool named_outside = !nested || json_object_get(root, "architectures");
    int32_t status = named_outside ? find_architecture(root, "", load, &name) : CBN_STATUS_OK;
    if (status == CBN_STATUS_OK && !load->architecture && nested && json_object_get(text, "architectures"))
        status = find_architecture(text, "text_config.", load, &name);
    if (status == CBN_STATUS_OK && !load->architecture)
        status = *name ? refuse_architecture(name, load->err)
                       : cbn__error_own(load->err, CBN_STATUS_INVALID, "architectures is missing; it names the model");
    return status;
}

static int32_t find_quant(const json_t *root, struct load *load)
{
    bool outside = !cbn__json_is_absent(json_object_get(root, "quantization_config")) || load->scope.config == root;
    return cbn__quant_read(outside ? root : load->scope.config, outside ? "" : load->scope.where, &load->quant,
                           load->err);
}

static int32_t read_layer_count(struct load *load)
{
    int32_t status = cbn__json_read_extent(load->scope.config, load->scope.where, "num_hidden_layers",
                                           &load->layer_count, load->err);
    if (status == CBN_STATUS_OK && load->layer_count > CBN__LAYERS_MAX)
        return cbn__error_own(load->err, CBN_STATUS_LIMIT, "%snum_hidden_layers is %lld; at most %d is taken",
                              load->scope.where, (long long)load->layer_count, CBN__LAYERS_MAX);
    return status;
}

/* Writes a reason where a part of the extent ends within a scale block of 128. */
static void explain_cut(const struct cbn__formula_value *value, bool last_too, char reason[REASON_BYTES])
{
    uint32_t count = value->part_count - (last_too ? 0 : 1);
    for (uint32_t i = 0; i < count && !*reason; i++) {
        const struct cbn__formula_part *part = &value->parts[i];
        if (part->value % BLOCK_EXTENT)
            (void)snprintf(reason, REASON_BYTES, "%.*s is %lld, not a multiple of 128: a scale block would be cut",
                           part->length, part->text, (long long)part->value);
    }
}

static int32_t explain_dtype(const struct load *load, const char *field, char reason[REASON_BYTES])
{
    char quote[CBN__JSON_QUOTE_BYTES];
    const char *dtype;
    int32_t status = cbn__json_read_text(load->scope.config, load->scope.where, field, &dtype, load->err);
    if (status == CBN_STATUS_OK && dtype && strcmp(dtype, "fp8") != 0)
        (void)snprintf(reason, REASON_BYTES, "%s is %s, not fp8", field, cbn__json_quote(dtype, quote));
    return status;
}

static int32_t explain_exclusion(const struct load *load, const struct cbn__layer_set *layers,
                                 const struct cbn__row *row, char reason[REASON_BYTES])
{
    struct cbn__quant_query query = {.layer = row->layer, .modules = row->modules, .layers = layers};
    const char *field = NULL;
    int32_t status = cbn__quant_find_exclusion(&load->quant, &query, &field, load->err);
    if (field)
        (void)snprintf(reason, REASON_BYTES, "quantization_config.%s leaves it out in every layer", field);
    return status;
}

static int32_t append_row(struct load *load, const struct cbn__layer_set *layers, const struct cbn__row *row)
{
    struct cbn__formula_value n, k, groups;
    char reason[REASON_BYTES] = "";
    int32_t status = cbn__formula_eval(&load->scope, row->n, &n);
    if (status == CBN_STATUS_OK)
        status = cbn__formula_eval(&load->scope, row->k, &k);
    if (status == CBN_STATUS_OK)
        status = cbn__formula_eval(&load->scope, row->groups ? row->groups : "1", &groups);
    if (status == CBN_STATUS_OK)
        status = explain_exclusion(load, layers, row, reason);
    if (status == CBN_STATUS_OK && row->dtype_field && !*reason)
        status = explain_dtype(load, row->dtype_field, reason);
    if (status != CBN_STATUS_OK)
        return status;
    if (!*reason)
        explain_cut(&n, n.split || row->stacked, reason);
    if (!*reason)
        explain_cut(&k, k.split, reason);
    struct cbn_model_shape shape = {.fp8 = !*reason,
                                    .op = row->op,
                                    .layer = row->layer,
                                    .n = n.sum,
                                    .k = k.sum,
                                    .groups = groups.sum,
                                    .reason = reason};
    return cbn__shapes_append(load->model, &shape, load->err);
}

static int32_t append_block(struct load *load, const struct cbn__block *block)
{
    struct cbn__layer_set layers;
    int32_t status = cbn__condition_find_layers(&load->scope, load->architecture, block, load->layer_count, &layers);
    for (uint32_t i = 0; i < block->row_count && layers.count > 0 && status == CBN_STATUS_OK; i++)
        status = append_row(load, &layers, &block->rows[i]);
    return status;
}

static int32_t load_root(const json_t *root, struct load *load)
{
    int32_t status = find_config(root, load);
    if (status == CBN_STATUS_OK)
        status = find_quant(root, load);
    if (status == CBN_STATUS_OK)
        status = read_layer_count(load);
    if (status != CBN_STATUS_OK)
        return status;
    load->model = cbn__shapes_create(load->architecture->name);
    if (!load->model)
        return cbn__error_no_memory(load->err);
    for (const struct cbn__block *block = load->architecture->blocks; block->rows && status == CBN_STATUS_OK; block++)
        status = append_block(load, block);
    return status;
}

int32_t cbn_model_load(const char *path, const struct cbn_model_options *options, struct cbn_model **ret_model,
                       struct cbn_error *err)
{
    struct cbn_model_options known = CBN_MODEL_OPTIONS_INIT;
    json_auto_t *root = NULL;
    if (!ret_model)
        return cbn__error_own(err, CBN_STATUS_INVALID, "ret_model is NULL");
    int32_t status = copy_options(options, &known, err);
    if (status == CBN_STATUS_OK)
        status = cbn__json_load(path, &root, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct load load = {.err = err, .scope = {.err = err}};
    set_ranks(&load, &known);
    status = load_root(root, &load);
    if (status == CBN_STATUS_OK)
        *ret_model = load.model;
    else
        cbn_model_destroy(load.model);
    return status;
}
