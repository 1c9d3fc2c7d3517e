/*
 * Reads quantization_config, and matches the entries of its exclusion lists against module paths. An entry names a
 * module, or one of its ancestors, by whole components: "lm_head", "kv_b_proj", "mlp.experts",
 * "model.layers.3.self_attn". A component "*" stands for any one component.
 */
#include "model/quant.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "model/json.h"

#define WHERE_BYTES 64
#define BLOCK_EXTENT 128
#define MATCH_NONE (-2)
#define MATCH_EVERY_LAYER (-1)

static const char *const list_fields[CBN__QUANT_LISTS] = {"modules_to_not_convert", "ignored_layers"};

struct span {
    const char *text;
    size_t length;
};

static bool span_equals(struct span span, const char *word)
{
    return strlen(word) == span.length && memcmp(word, span.text, span.length) == 0;
}

/* Cuts the next component off; false at the end. */
static bool cut_component(struct span *rest, struct span *ret_component)
{
    if (rest->length == 0)
        return false;
    const char *dot = memchr(rest->text, '.', rest->length);
    size_t length = dot ? (size_t)(dot - rest->text) : rest->length;
    *ret_component = (struct span){rest->text, length};
    rest->text += length + (dot != NULL);
    rest->length -= length + (dot != NULL);
    return true;
}

static bool is_number(struct span span)
{
    for (size_t i = 0; i < span.length; i++)
        if (span.text[i] < '0' || span.text[i] > '9')
            return false;
    return span.length > 0;
}

/* A "*" of the module stands for the number of an expert: one expert left out leaves its whole weight out. */
static bool components_match(struct span entry, struct span module)
{
    return span_equals(entry, "*") || (span_equals(module, "*") && is_number(entry)) ||
           (entry.length == module.length && memcmp(entry.text, module.text, entry.length) == 0);
}

/* Whether entry is a prefix of module by components. An empty entry is. */
static bool is_ancestor(struct span entry, struct span module)
{
    struct span a, b;
    while (cut_component(&entry, &a))
        if (!cut_component(&module, &b) || !components_match(a, b))
            return false;
    return true;
}

/* Whether entry stands anywhere in module, by components. */
static bool is_within(struct span entry, struct span module)
{
    struct span skipped;
    do {
        if (is_ancestor(entry, module))
            return true;
    } while (cut_component(&module, &skipped) && module.length > 0);
    return false;
}

/* What may stand before "layers" in the path of a decoder layer; mtp.layers or vision_tower.layers are others. */
static bool is_decoder_prefix(struct span component)
{
    static const char *const words[] = {"model", "language_model", "text_model", "transformer", "*"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (span_equals(component, words[i]))
            return true;
    return false;
}

static int64_t read_layer_index(struct span component)
{
    if (span_equals(component, "*"))
        return MATCH_EVERY_LAYER;
    if (!is_number(component))
        return MATCH_NONE;
    int64_t index = 0;
    for (size_t i = 0; i < component.length && index < CBN__LAYERS_MAX; i++)
        index = index * 10 + (component.text[i] - '0');
    return index;
}

/* The decoder layer in which the entry leaves the module out, MATCH_EVERY_LAYER or MATCH_NONE. */
static int64_t match_entry(struct span entry, struct span module)
{
    struct span rest = entry, tail = entry, component = {"", 0};
    while (cut_component(&rest, &component) && is_decoder_prefix(component)) {
        if (rest.length == 0)
            return MATCH_EVERY_LAYER;
        tail = rest;
    }
    if (!span_equals(component, "layers"))
        return is_within(tail, module) ? MATCH_EVERY_LAYER : MATCH_NONE;
    if (!cut_component(&rest, &component))
        return MATCH_EVERY_LAYER;
    int64_t layer = read_layer_index(component);
    return layer != MATCH_NONE && is_ancestor(rest, module) ? layer : MATCH_NONE;
}

/* Takes the layers in which the entry leaves the module out from those that are left. */
static void remove_match(struct cbn__layer_set *left, struct span entry, struct span module)
{
    int64_t layer = match_entry(entry, module);
    if (layer == MATCH_EVERY_LAYER)
        memset(left, 0, sizeof(*left));
    else
        cbn__layer_set_remove(left, layer);
}

/* One of the modules that a weight merges. */
struct part {
    struct span module;
    struct cbn__layer_set left; /* where it is quantised */
    const char *field;          /* that leaves it out in the last of its layers, or NULL */
};

static void find_part(const struct cbn__quant *quant, const struct cbn__quant_query *query, struct part *part)
{
    struct span layer = {query->layer, strlen(query->layer)};
    part->left = *query->layers;
    part->field = NULL;
    for (uint32_t i = 0; i < CBN__QUANT_LISTS; i++) {
        for (size_t j = 0; j < json_array_size(quant->lists[i]) && part->left.count > 0; j++) {
            const json_t *text = json_array_get(quant->lists[i], j);
            struct span entry = {json_string_value(text), json_string_length(text)};
            remove_match(&part->left, entry, layer);
            remove_match(&part->left, entry, part->module);
            if (part->left.count == 0)
                part->field = list_fields[i];
        }
    }
}

/* Engines refuse to merge what is quantised with what is not, so no kernel would be the right answer. */
static int32_t check_alike(const char *layer, const struct part *a, const struct part *b, struct cbn_error *err)
{
    for (int64_t i = 0; i < CBN__LAYERS_MAX; i++) {
        bool has_a = cbn__layer_set_has(&a->left, i);
        if (has_a == cbn__layer_set_has(&b->left, i))
            continue;
        struct span in = has_a ? a->module : b->module, out = has_a ? b->module : a->module;
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                              "quantization_config: some of the modules of %s are quantised and some are not: in layer "
                              "%lld %.*s is, %.*s is not; leave out all or none of them",
                              layer, (long long)i, (int)in.length, in.text, (int)out.length, out.text);
    }
    return CBN_STATUS_OK;
}

int32_t cbn__quant_find_exclusion(const struct cbn__quant *quant, const struct cbn__quant_query *query,
                                  const char **ret_field, struct cbn_error *err)
{
    const char *modules = query->modules ? query->modules : query->layer;
    struct part first = {.module = {modules, strcspn(modules, " ")}}, other;
    find_part(quant, query, &first);
    for (modules += first.module.length; *modules; modules += other.module.length) {
        modules += strspn(modules, " ");
        other.module = (struct span){modules, strcspn(modules, " ")};
        find_part(quant, query, &other);
        int32_t status = check_alike(query->layer, &first, &other, err);
        if (status != CBN_STATUS_OK)
            return status;
    }
    *ret_field = first.field;
    return CBN_STATUS_OK;
}

/* A "*" that is not a whole component, and "re:", mean patterns whose dialect differs from engine to engine. */
static bool is_pattern(const char *entry)
{
    if (strncmp(entry, "re:", 3) == 0)
        return true;
    struct span rest = {entry, strlen(entry)}, component;
    while (cut_component(&rest, &component))
        if (memchr(component.text, '*', component.length) && component.length > 1)
            return true;
    return false;
}

/* The object, and what its fields are called in messages. */
struct quant_config {
    const json_t *object;
    char where[WHERE_BYTES]; /* "text_config.quantization_config." */
    struct cbn_error *err;
};

static int32_t check_entry(const struct quant_config *quant, const json_t *entry, const char *field, size_t index)
{
    char quote[CBN__JSON_QUOTE_BYTES];
    if (!json_is_string(entry) || json_string_length(entry) == 0)
        return cbn__error_own(quant->err, CBN_STATUS_INVALID, "%s%s[%zu] is %s; it must be the name of a module",
                              quant->where, field, index, json_is_string(entry) ? "empty" : cbn__json_type_name(entry));
    if (is_pattern(json_string_value(entry)))
        return cbn__error_own(quant->err, CBN_STATUS_UNSUPPORTED,
                              "%s%s[%zu] \"%s\" is a pattern; only names of modules are taken: list them", quant->where,
                              field, index, cbn__json_quote(json_string_value(entry), quote));
    return CBN_STATUS_OK;
}

static int32_t read_list(const struct quant_config *quant, const char *field, const json_t **ret_list)
{
    const json_t *list = json_object_get(quant->object, field);
    if (cbn__json_is_absent(list))
        return CBN_STATUS_OK;
    if (!json_is_array(list))
        return cbn__error_own(quant->err, CBN_STATUS_INVALID, "%s%s is %s; it must be an array of module names",
                              quant->where, field, cbn__json_type_name(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        int32_t status = check_entry(quant, json_array_get(list, i), field, i);
        if (status != CBN_STATUS_OK)
            return status;
    }
    *ret_list = list;
    return CBN_STATUS_OK;
}

/* A string field whose value must be one of two, or one where other is NULL; optional: it may be absent. */
static int32_t check_text(const struct quant_config *quant, const char *field, const char *one, const char *other,
                          bool optional)
{
    char quote[CBN__JSON_QUOTE_BYTES];
    const char *text;
    int32_t status = cbn__json_read_text(quant->object, quant->where, field, &text, quant->err);
    if (status != CBN_STATUS_OK || (!text && optional))
        return status;
    if (!text)
        return cbn__error_own(quant->err, CBN_STATUS_INVALID, "%s%s is missing; block FP8 says \"%s\"", quant->where,
                              field, one);
    if (strcmp(text, one) == 0 || (other && strcmp(text, other) == 0))
        return CBN_STATUS_OK;
    return cbn__error_own(quant->err, CBN_STATUS_UNSUPPORTED,
                          "%s%s is \"%s\"; only \"%s\"%s%s%s with 128x128 blocks is taken: give a block FP8 checkpoint",
                          quant->where, field, cbn__json_quote(text, quote), one, other ? " or \"" : "",
                          other ? other : "", other ? "\"" : "");
}

static int32_t check_block_size(const struct quant_config *quant)
{
    const json_t *size = json_object_get(quant->object, "weight_block_size");
    const json_t *n = json_array_get(size, 0), *k = json_array_get(size, 1);
    if (cbn__json_is_absent(size))
        return cbn__error_own(quant->err, CBN_STATUS_UNSUPPORTED,
                              "%sweight_block_size is %s, so the scales are not per block; give a checkpoint with "
                              "[128, 128]",
                              quant->where, cbn__json_type_name(size));
    if (json_array_size(size) != 2 || !json_is_integer(n) || !json_is_integer(k))
        return cbn__error_own(quant->err, CBN_STATUS_INVALID,
                              "%sweight_block_size is not an array of two integers; block FP8 says [128, 128]",
                              quant->where);
    if (json_integer_value(n) != BLOCK_EXTENT || json_integer_value(k) != BLOCK_EXTENT)
        return cbn__error_own(quant->err, CBN_STATUS_UNSUPPORTED,
                              "%sweight_block_size is [%lld, %lld]; only [128, 128] is taken", quant->where,
                              (long long)json_integer_value(n), (long long)json_integer_value(k));
    return CBN_STATUS_OK;
}

/* scale_fmt tells what values weight scales have, not how they are stored: both kinds are block FP8. */
static int32_t check_format(const struct quant_config *quant)
{
    int32_t status = check_text(quant, "quant_method", "fp8", NULL, false);
    if (status == CBN_STATUS_OK)
        status = check_text(quant, "fmt", "e4m3", "float8_e4m3fn", true);
    if (status == CBN_STATUS_OK)
        status = check_text(quant, "activation_scheme", "dynamic", NULL, true);
    if (status == CBN_STATUS_OK)
        status = check_block_size(quant);
    return status == CBN_STATUS_OK ? check_text(quant, "scale_fmt", "ue8m0", "float", true) : status;
}

int32_t cbn__quant_read(const json_t *config, const char *where, struct cbn__quant *ret_quant, struct cbn_error *err)
{
    struct quant_config quant = {.object = json_object_get(config, "quantization_config"), .err = err};
    (void)snprintf(quant.where, sizeof(quant.where), "%squantization_config.", where);
    if (cbn__json_is_absent(quant.object))
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                              "%squantization_config is %s, so the model is not FP8; give the config of a block FP8 "
                              "checkpoint",
                              where, cbn__json_type_name(quant.object));
    if (!json_is_object(quant.object))
        return cbn__error_own(err, CBN_STATUS_INVALID, "%squantization_config is %s; it must be an object", where,
                              cbn__json_type_name(quant.object));
    struct cbn__quant read = {{NULL}};
    int32_t status = check_format(&quant);
    for (uint32_t i = 0; i < CBN__QUANT_LISTS && status == CBN_STATUS_OK; i++)
        status = read_list(&quant, list_fields[i], &read.lists[i]);
    if (status == CBN_STATUS_OK)
        *ret_quant = read;
    return status;
}
