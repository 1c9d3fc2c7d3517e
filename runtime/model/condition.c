/*
 * Conditions over the fields of a config: each takes layers out of the set that starts with all of them.
 */
#include "model/condition.h"

#include <string.h>

#include "base/error.h"
#include "model/json.h"

#define FULL_ATTENTION "full_attention"
#define LINEAR_ATTENTION "linear_attention"

struct find {
    const struct cbn__scope *scope;
    const struct cbn__sparsity *sparsity;
    int64_t layer_count;
    struct cbn__layer_set *layers;
};

static const json_t *get_field(const struct find *find, const char *field)
{
    return json_object_get(find->scope->config, field);
}

/* A count that may be null or zero. */
static int32_t read_count(const struct find *find, const char *field, int64_t *ret_value)
{
    const json_t *value = get_field(find, field);
    json_int_t count = json_integer_value(value);
    *ret_value = 0;
    if (json_is_null(value) || (json_is_integer(value) && count == 0))
        return CBN_STATUS_OK;
    if (!json_is_integer(value))
        return cbn__error_own(find->scope->err, CBN_STATUS_INVALID, "%s%s is %s; it must be 0 or a positive integer",
                              find->scope->where, field, cbn__json_type_name(value));
    if (count < 0)
        return cbn__error_own(find->scope->err, CBN_STATUS_INVALID, "%s%s is %lld; it must be 0 or a positive integer",
                              find->scope->where, field, (long long)count);
    return cbn__json_read_extent(find->scope->config, find->scope->where, field, ret_value, find->scope->err);
}

static int32_t check_array(const struct find *find, const char *field, const json_t *array, const char *of)
{
    if (!json_is_array(array))
        return cbn__error_own(find->scope->err, CBN_STATUS_INVALID, "%s%s is %s; it must be an array of %s",
                              find->scope->where, field, cbn__json_type_name(array), of);
    return CBN_STATUS_OK;
}

static int32_t check_length(const struct find *find, const char *field, const json_t *array)
{
    if ((int64_t)json_array_size(array) < find->layer_count)
        return cbn__error_own(find->scope->err, CBN_STATUS_INVALID,
                              "%s%s has %zu entries, fewer than num_hidden_layers (%lld)", find->scope->where, field,
                              json_array_size(array), (long long)find->layer_count);
    return CBN_STATUS_OK;
}

static int32_t refuse_entry(const struct find *find, const char *field, size_t index, const json_t *entry,
                            const char *expected)
{
    return cbn__error_own(find->scope->err, CBN_STATUS_INVALID, "%s%s[%zu] is %s; it must be %s", find->scope->where,
                          field, index, cbn__json_type_name(entry), expected);
}

static int32_t keep_where_count(struct find *find, const struct cbn__condition *condition)
{
    int64_t count;
    int32_t status = read_count(find, condition->field, &count);
    if (status == CBN_STATUS_OK && (count >= condition->value) != (condition->when == CBN__WHEN_AT_LEAST))
        memset(find->layers, 0, sizeof(*find->layers));
    return status;
}

static int32_t keep_where_entry(struct find *find, const struct cbn__condition *condition)
{
    const json_t *array = get_field(find, condition->field);
    int32_t status = check_array(find, condition->field, array, "integers");
    for (size_t i = 0; i < json_array_size(array) && status == CBN_STATUS_OK; i++) {
        const json_t *entry = json_array_get(array, i);
        if (!json_is_integer(entry))
            return refuse_entry(find, condition->field, i, entry, "an integer");
        if (json_integer_value(entry) != condition->value)
            cbn__layer_set_remove(find->layers, (int64_t)i);
    }
    return status == CBN_STATUS_OK ? check_length(find, condition->field, array) : status;
}

/* The public definitions' fallback for a config without the list of types: every interval-th layer is full. */
static int32_t keep_where_interval(struct find *find, const struct cbn__condition *condition)
{
    int64_t interval;
    int32_t status = cbn__json_read_extent(find->scope->config, find->scope->where, "full_attention_interval",
                                           &interval, find->scope->err);
    for (int64_t i = 0; i < find->layer_count && status == CBN_STATUS_OK; i++)
        if (((i + 1) % interval == 0) != (strcmp(condition->type, FULL_ATTENTION) == 0))
            cbn__layer_set_remove(find->layers, i);
    return status;
}

static int32_t keep_where_type(struct find *find, const struct cbn__condition *condition)
{
    char quote[CBN__JSON_QUOTE_BYTES];
    const json_t *array = get_field(find, condition->field);
    if (cbn__json_is_absent(array))
        return keep_where_interval(find, condition);
    int32_t status = check_array(find, condition->field, array, "strings");
    for (size_t i = 0; i < json_array_size(array) && status == CBN_STATUS_OK; i++) {
        const char *type = json_string_value(json_array_get(array, i));
        if (!type)
            return refuse_entry(find, condition->field, i, json_array_get(array, i), "a string");
        if (strcmp(type, FULL_ATTENTION) != 0 && strcmp(type, LINEAR_ATTENTION) != 0)
            return cbn__error_own(find->scope->err, CBN_STATUS_UNSUPPORTED,
                                  "%s%s[%zu] is \"%s\"; there are formulas for \"" FULL_ATTENTION
                                  "\" and \"" LINEAR_ATTENTION "\"",
                                  find->scope->where, condition->field, i, cbn__json_quote(type, quote));
        if (strcmp(type, condition->type) != 0)
            cbn__layer_set_remove(find->layers, (int64_t)i);
    }
    return status == CBN_STATUS_OK ? check_length(find, condition->field, array) : status;
}

static int32_t read_first(const struct find *find, int64_t *ret_first)
{
    const char *field = find->sparsity->first;
    *ret_first = 0;
    int32_t status = field ? read_count(find, field, ret_first) : CBN_STATUS_OK;
    if (status == CBN_STATUS_OK && *ret_first > find->layer_count)
        return cbn__error_own(find->scope->err, CBN_STATUS_INVALID, "%s%s is %lld, more than num_hidden_layers (%lld)",
                              find->scope->where, field, (long long)*ret_first, (long long)find->layer_count);
    return status;
}

static int32_t read_step(const struct find *find, int64_t *ret_step)
{
    const char *field = find->sparsity->step;
    *ret_step = 1;
    if (!field || !get_field(find, field))
        return CBN_STATUS_OK;
    return cbn__json_read_extent(find->scope->config, find->scope->where, field, ret_step, find->scope->err);
}

static int32_t read_listed(const struct find *find, struct cbn__layer_set *ret_listed)
{
    const char *field = find->sparsity->list;
    const json_t *array = field ? get_field(find, field) : NULL;
    int32_t status = cbn__json_is_absent(array) ? CBN_STATUS_OK : check_array(find, field, array, "integers");
    memset(ret_listed, 0, sizeof(*ret_listed));
    for (size_t i = 0; i < json_array_size(array) && status == CBN_STATUS_OK; i++) {
        const json_t *entry = json_array_get(array, i);
        if (!json_is_integer(entry))
            return refuse_entry(find, field, i, entry, "an integer");
        cbn__layer_set_add(ret_listed, json_integer_value(entry));
    }
    return status;
}

static int32_t keep_where_sparse(struct find *find, bool sparse)
{
    struct cbn__layer_set listed;
    int64_t first, step;
    int32_t status = read_first(find, &first);
    if (status == CBN_STATUS_OK)
        status = read_step(find, &step);
    if (status == CBN_STATUS_OK)
        status = read_listed(find, &listed);
    for (int64_t i = 0; i < find->layer_count && status == CBN_STATUS_OK; i++) {
        bool is_sparse = i >= first && (i + find->sparsity->phase) % step == 0 && !cbn__layer_set_has(&listed, i);
        if (is_sparse != sparse)
            cbn__layer_set_remove(find->layers, i);
    }
    return status;
}

static int32_t keep_where(struct find *find, const struct cbn__condition *condition)
{
    switch (condition->when) {
    case CBN__WHEN_ALWAYS:
        return CBN_STATUS_OK;
    case CBN__WHEN_AT_LEAST:
    case CBN__WHEN_BELOW:
        return keep_where_count(find, condition);
    case CBN__WHEN_ENTRY:
        return keep_where_entry(find, condition);
    case CBN__WHEN_TYPE:
        return keep_where_type(find, condition);
    case CBN__WHEN_SPARSE:
    case CBN__WHEN_DENSE:
        return keep_where_sparse(find, condition->when == CBN__WHEN_SPARSE);
    }
    return CBN_STATUS_OK;
}

int32_t cbn__condition_find_layers(const struct cbn__scope *scope, const struct cbn__architecture *architecture,
                                   const struct cbn__block *block, int64_t layer_count,
                                   struct cbn__layer_set *ret_layers)
{
    struct find find = {scope, &architecture->sparsity, layer_count, ret_layers};
    int32_t status = CBN_STATUS_OK;
    memset(ret_layers, 0, sizeof(*ret_layers));
    for (int64_t i = 0; i < layer_count; i++)
        cbn__layer_set_add(ret_layers, i);
    for (uint32_t i = 0; i < CBN__BLOCK_CONDITIONS && status == CBN_STATUS_OK; i++)
        status = keep_where(&find, &block->conditions[i]);
    return status;
}
