/*
 * The table of architectures: which linear layers each has, and the formulas of their extents. Data only.
 */
#ifndef CBN_MODEL_ARCHITECTURE_H
#define CBN_MODEL_ARCHITECTURE_H

#include <stdbool.h>
#include <stdint.h>

/* One weight, or several that an engine merges into one. Formulas: formula.h. */
struct cbn__row {
    const char *layer;
    const char *op;
    const char *n; /* a comma for each merged part */
    const char *k;
    const char *groups;      /* NULL: 1 */
    const char *modules;     /* the checkpoint's names of what it merges, a space between; NULL: the layer's own */
    const char *dtype_field; /* a field that, where there, must say fp8 for the layer to be FP8; NULL: none */
    bool stacked;            /* groups lie below one another in one weight, so each must fill its scale blocks */
};

/* All but NON_EMPTY need the field to be there: a layer must not vanish with a field that was forgotten. */
enum cbn__when {
    CBN__WHEN_ALWAYS,
    CBN__WHEN_AT_LEAST,  /* the integer >= value; null is 0 */
    CBN__WHEN_BELOW,     /* the integer < value; null is 0 */
    CBN__WHEN_HAS,       /* the array holds the value */
    CBN__WHEN_NON_EMPTY, /* the array holds anything; missing is empty, as in the public definitions */
};

struct cbn__condition {
    enum cbn__when when;
    const char *field;
    int64_t value;
};

/* Rows that come together, and in which decoder layers. */
struct cbn__block {
    const struct cbn__row *rows;
    uint32_t row_count;
    struct cbn__condition condition;
    const char *first_layer; /* field; NULL: 0 */
    const char *layer_end;   /* field; NULL: num_hidden_layers */
};

#define CBN__ARCHITECTURE_BLOCKS_MAX 9 /* one more than any uses */

struct cbn__architecture {
    const char *name;
    struct cbn__block blocks[CBN__ARCHITECTURE_BLOCKS_MAX]; /* up to the first without rows */
};

/* NULL when there are no formulas for that architecture. */
const struct cbn__architecture *cbn__architecture_find(const char *name);
/* The index-th of the table, NULL past its end. */
const struct cbn__architecture *cbn__architecture_get(uint32_t index);

#endif
