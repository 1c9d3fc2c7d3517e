/*
 * The evaluator: recursive descent over the grammar in the header, in checked 64-bit arithmetic. A status other than
 * OK ends the walk; the error record is then filled.
 */
#include "model/formula.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/json.h"

#define NAME_BYTES 64

struct walk {
    const struct cbn__scope *scope;
    const char *formula;
    const char *at;
    bool split;
    char field[NAME_BYTES]; /* the last field read, for messages */
};

static int32_t walk_part(struct walk *walk, int64_t *ret_value);

static void skip_spaces(struct walk *walk)
{
    while (*walk->at == ' ')
        walk->at++;
}

static bool take(struct walk *walk, char symbol)
{
    skip_spaces(walk);
    if (*walk->at != symbol)
        return false;
    walk->at++;
    return true;
}

static int32_t refuse_formula(const struct walk *walk)
{
    return cbn__error_own(walk->scope->err, CBN_STATUS_INTERNAL, "the formula %s does not parse at \"%s\"; report it",
                          walk->formula, walk->at);
}

static int32_t refuse_overflow(const struct walk *walk)
{
    return cbn__error_own(walk->scope->err, CBN_STATUS_LIMIT, "%s passes 2147483647; check these fields of the config",
                          walk->formula);
}

static bool find_ranks(const struct cbn__scope *scope, const char *name, int64_t *ret_value)
{
    if (strcmp(name, "tp") == 0)
        *ret_value = scope->tp;
    else if (strcmp(name, "ep") == 0)
        *ret_value = scope->ep;
    else if (strcmp(name, "moe_tp") == 0)
        *ret_value = scope->moe_tp;
    else
        return false;
    return true;
}

static int32_t walk_word(struct walk *walk, char word[NAME_BYTES])
{
    size_t length = 0;
    skip_spaces(walk);
    while (length < NAME_BYTES && (isalnum((unsigned char)*walk->at) || *walk->at == '_'))
        word[length++] = *walk->at++;
    if (length == 0 || length == NAME_BYTES)
        return refuse_formula(walk);
    word[length] = '\0';
    return CBN_STATUS_OK;
}

/* Leaves in ret_word the first of the alternatives that the config has, or the first of all. */
static int32_t walk_field(struct walk *walk, char ret_word[NAME_BYTES])
{
    char other[NAME_BYTES];
    int32_t status = walk_word(walk, ret_word);
    while (status == CBN_STATUS_OK && take(walk, '|')) {
        status = walk_word(walk, other);
        if (status == CBN_STATUS_OK && !json_object_get(walk->scope->config, ret_word) &&
            json_object_get(walk->scope->config, other))
            memcpy(ret_word, other, sizeof(other));
    }
    return status;
}

static int32_t read_flag(const struct walk *walk, int64_t *ret_value)
{
    const json_t *value = json_object_get(walk->scope->config, walk->field);
    if (!cbn__json_is_absent(value) && !json_is_boolean(value))
        return cbn__error_own(walk->scope->err, CBN_STATUS_INVALID, "%s%s is %s; it must be true or false",
                              walk->scope->where, walk->field, cbn__json_type_name(value));
    *ret_value = !json_is_false(value);
    return CBN_STATUS_OK;
}

static int32_t walk_name(struct walk *walk, char ret_word[NAME_BYTES], int64_t *ret_value)
{
    int32_t status = walk_field(walk, ret_word);
    if (status != CBN_STATUS_OK || find_ranks(walk->scope, ret_word, ret_value))
        return status;
    memcpy(walk->field, ret_word, sizeof(walk->field));
    if (take(walk, '?'))
        return read_flag(walk, ret_value);
    return cbn__json_read_extent(walk->scope->config, walk->scope->where, ret_word, ret_value, walk->scope->err);
}

static int32_t walk_number(struct walk *walk, int64_t *ret_value)
{
    char *end;
    *ret_value = strtoll(walk->at, &end, 10);
    walk->at = end;
    return CBN_STATUS_OK;
}

static int32_t walk_atom(struct walk *walk, int64_t *ret_value)
{
    char name[NAME_BYTES];
    skip_spaces(walk);
    if (isdigit((unsigned char)*walk->at))
        return walk_number(walk, ret_value);
    if (!take(walk, '('))
        return walk_name(walk, name, ret_value);
    int32_t status = walk_part(walk, ret_value);
    if (status == CBN_STATUS_OK && !take(walk, ')'))
        return refuse_formula(walk);
    return status;
}

/* "tp 3 does not divide num_attention_heads (128)"; the divisor may be a field too */
static int32_t refuse_division(const struct walk *walk, const char *start, int length, int64_t value, const char *name,
                               int64_t divisor)
{
    int64_t ranks;
    bool sharded = find_ranks(walk->scope, name, &ranks);
    bool alternatives = memchr(start, '|', (size_t)length) != NULL;
    if (alternatives) {
        start = walk->field;
        length = (int)strlen(walk->field);
    }
    return cbn__error_own(walk->scope->err, CBN_STATUS_INVALID, "%s%s %lld does not divide %s%.*s (%lld); %s",
                          sharded ? "" : walk->scope->where, name, (long long)divisor, walk->scope->where, length,
                          start, (long long)value,
                          sharded ? "give a number of ranks that does" : "check these fields of the config");
}

static int32_t walk_factor(struct walk *walk, int64_t *ret_value)
{
    skip_spaces(walk);
    const char *start = walk->at;
    int32_t status = walk_atom(walk, ret_value);
    if (status != CBN_STATUS_OK)
        return status;
    int length = (int)(walk->at - start);
    bool replicate = take(walk, '~');
    if (!replicate && !take(walk, '/'))
        return CBN_STATUS_OK;
    char name[NAME_BYTES];
    int64_t divisor, ranks;
    status = walk_name(walk, name, &divisor);
    if (status != CBN_STATUS_OK)
        return status;
    walk->split |= find_ranks(walk->scope, name, &ranks) && ranks > 1;
    bool replicated = replicate && *ret_value < divisor && divisor % *ret_value == 0;
    if (!replicated && *ret_value % divisor != 0)
        return refuse_division(walk, start, length, *ret_value, name, divisor);
    *ret_value = replicated ? 1 : *ret_value / divisor;
    return CBN_STATUS_OK;
}

static int32_t walk_product(struct walk *walk, int64_t *ret_value)
{
    int64_t factor;
    int32_t status = walk_factor(walk, ret_value);
    while (status == CBN_STATUS_OK && take(walk, '*')) {
        status = walk_factor(walk, &factor);
        if (status == CBN_STATUS_OK && __builtin_mul_overflow(*ret_value, factor, ret_value))
            return refuse_overflow(walk);
    }
    return status;
}

static int32_t walk_part(struct walk *walk, int64_t *ret_value)
{
    int64_t product;
    int32_t status = walk_product(walk, ret_value);
    while (status == CBN_STATUS_OK && take(walk, '+')) {
        status = walk_product(walk, &product);
        if (status == CBN_STATUS_OK && __builtin_add_overflow(*ret_value, product, ret_value))
            return refuse_overflow(walk);
    }
    return status;
}

static int32_t append_part(struct walk *walk, struct cbn__formula_value *value)
{
    skip_spaces(walk);
    struct cbn__formula_part *part = &value->parts[value->part_count];
    part->text = walk->at;
    int32_t status = walk_part(walk, &part->value);
    if (status != CBN_STATUS_OK)
        return status;
    part->length = (int)(walk->at - part->text);
    /* Both addends are at most 2^31-1 here, or the first test has refused. */
    if (part->value > INT32_MAX || value->sum + part->value > INT32_MAX)
        return refuse_overflow(walk);
    value->sum += part->value;
    value->part_count++;
    return CBN_STATUS_OK;
}

int32_t cbn__formula_eval(const struct cbn__scope *scope, const char *formula, struct cbn__formula_value *ret_value)
{
    struct walk walk = {.scope = scope, .formula = formula, .at = formula};
    struct cbn__formula_value value = {0};
    do {
        if (value.part_count == CBN__FORMULA_PARTS_MAX)
            return refuse_formula(&walk);
        int32_t status = append_part(&walk, &value);
        if (status != CBN_STATUS_OK)
            return status;
    } while (take(&walk, ','));
    if (*walk.at)
        return refuse_formula(&walk);
    value.split = walk.split;
    *ret_value = value;
    return CBN_STATUS_OK;
}
