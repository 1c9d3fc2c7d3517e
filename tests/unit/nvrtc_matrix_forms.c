/*
 * nvrtc_matrix: what there is to build, asked of the library's own enumeration under every call profile.
 */
#include "unit/nvrtc_matrix.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void die(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)fputs("nvrtc_matrix: ", stderr);
    (void)vfprintf(stderr, format, list);
    (void)fputc('\n', stderr);
    va_end(list);
    exit(EXIT_FAILURE);
}

void *grow(void *items, size_t count, size_t *capacity, size_t item_bytes)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity ? *capacity * 2 : 256;
    void *grown = realloc(items, *capacity * item_bytes);
    if (!grown)
        die("out of memory");
    return grown;
}

static int add_form(void *user, const struct cbn__candidate *candidate, const int64_t *params, const int64_t *facts)
{
    struct forms *forms = user;
    (void)facts;
    if (!candidate->template.source)
        return 0;
    forms->items = grow(forms->items, forms->count, &forms->capacity, sizeof(*forms->items));
    struct form *form = &forms->items[forms->count++];
    *form = (struct form){.candidate = candidate};
    memcpy(form->params, params, candidate->template.param_count * sizeof(*params));
    return 0;
}

/* Nothing for a profile that cannot be. */
void forms_add(struct cbn__family *const *families, const struct cbn_query *query, struct forms *forms)
{
    int64_t facts[CBN_FACTS_MAX];
    uint32_t mask = 0;
    struct cbn_error err = {0};
    struct cbn__route route;
    const struct cbn__family *family = families[strcmp(query->op, "fp8_gemm") == 0 ? 0 : 1];
    if (cbn__builtin_facts(query, facts, &mask, &err) != CBN_STATUS_OK)
        return;
    if (cbn__route_resolve(family, NULL, 0, NULL, NULL, NULL, false, &route, &err) != CBN_STATUS_OK ||
        cbn__enumerate_all(family, facts, mask, &route, add_form, forms, &err) != CBN_STATUS_OK)
        die("%s: %s", query->op, err.message);
}

struct cbn_query query_of(const char *op, uint32_t arch)
{
    struct cbn_query query = CBN_QUERY_INIT;
    query.op = op;
    query.arch = arch;
    return query;
}

/* The axes of the call profile. All but dtypes and layouts count from their first value. */
static const struct axis {
    size_t offset;
    uint32_t first, count;
} axes[] = {
#define AXIS(field, first, count)                                                                                      \
    {                                                                                                                  \
        offsetof(struct cbn_profile, field), first, count                                                              \
    }
    AXIS(in, CBN_DTYPE_BF16, 4),
    AXIS(out, CBN_DTYPE_BF16, 3),
    AXIS(weight_scale, CBN_SCALE_FP32, 2),
    AXIS(scale_gran, CBN_GRAN_BLOCK, 2),
    AXIS(act_scale, CBN_LAYOUT_ROW, CBN_LAYOUT_PACKED_COL),
    AXIS(pow2, 0, 2),
    AXIS(bias, CBN_BIAS_NONE, 3),
    AXIS(pdl, 0, 2),
    AXIS(propagate, 0, 2),
    AXIS(approx, 0, 2),
#undef AXIS
};

static bool set_profile(struct cbn_profile *profile, uint64_t number)
{
    for (size_t i = 0; i < COUNT(axes); i++) {
        uint32_t value = axes[i].first + (uint32_t)(number % axes[i].count);
        memcpy((char *)profile + axes[i].offset, &value, sizeof(value));
        number /= axes[i].count;
    }
    return number == 0;
}

static int compare_forms(const void *one, const void *other)
{
    const struct form *a = one, *b = other;
    if (a->candidate != b->candidate)
        return a->candidate < b->candidate ? -1 : 1;
    return memcmp(a->params, b->params, sizeof(a->params));
}

static void drop_doubles(struct forms *forms)
{
    size_t kept = 0;
    qsort(forms->items, forms->count, sizeof(*forms->items), compare_forms);
    for (size_t i = 0; i < forms->count; i++)
        if (kept == 0 || compare_forms(&forms->items[kept - 1], &forms->items[i]) != 0)
            forms->items[kept++] = forms->items[i];
    forms->count = kept;
}

/* fp8_quantize looks at few axes: what differs in the others only is dropped as a double. */
void forms_add_profiles(struct cbn__family *const *families, uint32_t arch, struct forms *forms)
{
    static const char *const ops[] = {"fp8_gemm", "fp8_quantize"};
    for (size_t op = 0; op < COUNT(ops); op++) {
        struct cbn_query query = query_of(ops[op], arch);
        for (uint64_t number = 0; set_profile(&query.profile, number); number++)
            forms_add(families, &query, forms);
        drop_doubles(forms);
    }
}

/* ---- pairwise ---- */

#define VALUES_MAX 96 /* of all parameters of one candidate */

struct pairs {
    size_t value_count;
    struct {
        uint32_t param;
        int64_t value;
    } values[VALUES_MAX];
    bool covered[VALUES_MAX][VALUES_MAX];
};

static size_t number_of(struct pairs *pairs, uint32_t param, int64_t value)
{
    size_t i = 0;
    while (i < pairs->value_count && (pairs->values[i].param != param || pairs->values[i].value != value))
        i++;
    if (i == VALUES_MAX)
        die("more than %d values of parameters", VALUES_MAX);
    pairs->values[i].param = param;
    pairs->values[i].value = value;
    pairs->value_count += i == pairs->value_count;
    return i;
}

/* How many pairs the form has that no form before it had; with take they are covered from now on. */
static unsigned new_pairs(struct pairs *pairs, const struct form *form, bool take)
{
    unsigned count = 0;
    size_t numbers[CBN_PARAMS_MAX];
    for (uint32_t i = 0; i < form->candidate->template.param_count; i++) {
        numbers[i] = number_of(pairs, i, form->params[i]);
        for (uint32_t k = 0; k < i; k++) {
            bool *covered = &pairs->covered[numbers[i]][numbers[k]];
            count += !*covered;
            *covered |= take;
        }
    }
    return count;
}

/* forms[first, end) are of one candidate. Greedy: the one with the most new pairs, until none has any. */
static void pick_pairwise(const struct forms *forms, size_t first, size_t end, struct forms *picked)
{
    static struct pairs pairs;
    memset(&pairs, 0, sizeof(pairs));
    for (;;) {
        unsigned most = 0;
        size_t best = first;
        for (size_t i = first; i < end; i++) {
            unsigned count = new_pairs(&pairs, &forms->items[i], false);
            if (count > most) {
                most = count;
                best = i;
            }
        }
        if (most == 0)
            return;
        (void)new_pairs(&pairs, &forms->items[best], true);
        add_form(picked, forms->items[best].candidate, forms->items[best].params, NULL);
    }
}

void forms_pick_pairwise(const struct forms *forms, struct forms *ret_picked)
{
    for (size_t first = 0, end = 0; first < forms->count; first = end) {
        while (end < forms->count && forms->items[end].candidate == forms->items[first].candidate)
            end++;
        pick_pairwise(forms, first, end, ret_picked);
    }
}
