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

/* Integers and arrays that a condition names must be there: a layer must not vanish with a field that was forgotten. */
enum cbn__when {
    CBN__WHEN_ALWAYS,
    CBN__WHEN_AT_LEAST, /* the integer >= value; null is 0 */
    CBN__WHEN_BELOW,    /* the integer < value; null is 0 */
    CBN__WHEN_ENTRY,    /* in layers whose entry of the array of integers is value */
    CBN__WHEN_TYPE,   /* in layers whose entry of the array of strings is type; full_attention_interval tells without */
    CBN__WHEN_SPARSE, /* in layers with experts, by the architecture's rule */
    CBN__WHEN_DENSE,  /* in the others */
};

struct cbn__condition {
    enum cbn__when when;
    const char *field;
    int64_t value;
    const char *type;
};

/* Layer i is sparse if i >= first, (i + phase) % step == 0 and list has no i. Fields may be NULL; first must be there.
 */
struct cbn__sparsity {
    const char *first;
    const char *step; /* missing: 1 */
    const char *list; /* missing: empty */
    int64_t phase;
};

#define CBN__BLOCK_CONDITIONS 2

/* Rows that come together, in the decoder layers in which all conditions hold. */
struct cbn__block {
    const struct cbn__row *rows;
    uint32_t row_count;
    struct cbn__condition conditions[CBN__BLOCK_CONDITIONS];
};

#define CBN__ARCHITECTURE_BLOCKS_MAX 9 /* one more than any uses */

struct cbn__architecture {
    const char *name;
    struct cbn__sparsity sparsity;
    struct cbn__block blocks[CBN__ARCHITECTURE_BLOCKS_MAX]; /* up to the first without rows */
};

/* NULL when there are no formulas for that architecture. */
const struct cbn__architecture *cbn__architecture_find(const char *name);
/* The index-th of the table, NULL past its end. */
const struct cbn__architecture *cbn__architecture_get(uint32_t index);

#endif
