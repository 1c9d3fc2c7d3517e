/*
 * Formulas over the fields of a config, as text, the way the public model definitions state them:
 *
 *   formula := part (',' part)*             parts are merged into one weight along N
 *   part    := product ('+' product)*
 *   product := factor ('*' factor)*
 *   factor  := atom (('/' | '~') name)?     '/' divides exactly, else INVALID; '~' too, but replicates below one
 *   atom    := name | number | '(' part ')'
 *   name    := a field of the config, or a|b for the first of them that is there, or a number of ranks: tp, ep, moe_tp,
 *              or a? for 0 where the field is false and 1 where it is true or missing
 */
#ifndef CBN_MODEL_FORMULA_H
#define CBN_MODEL_FORMULA_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <cubinet/status.h>

#define CBN__FORMULA_PARTS_MAX 4

struct cbn__scope {
    const json_t *config;
    const char *where; /* "" or "text_config.": put before a field in messages */
    int64_t tp;
    int64_t ep;     /* 1 when the experts are sharded by tp */
    int64_t moe_tp; /* tp, or 1 when the experts are spread over ep ranks */
    struct cbn_error *err;
};

struct cbn__formula_part {
    const char *text; /* within the formula */
    int length;
    int64_t value; /* 1..2^31-1 */
};

struct cbn__formula_value {
    struct cbn__formula_part parts[CBN__FORMULA_PARTS_MAX];
    uint32_t part_count;
    bool split;  /* something was divided among more than one rank */
    int64_t sum; /* 1..2^31-1 */
};

int32_t cbn__formula_eval(const struct cbn__scope *scope, const char *formula, struct cbn__formula_value *ret_value);

#endif
