/*
 * Enumeration: every specialisation that a decision can reach when facts move. Both forms rest on one property of the
 * tables: between two neighbouring breakpoints of a fact, every guard on it but MULTIPLE_OF, and every bucket, keeps
 * its answer. The sweep fact has no MULTIPLE_OF (registration refuses it), so one point an interval is complete. Facts
 * that follow from it (cbn__derivation) have their own breakpoints, and are filled again at each.
 */
#include <stdlib.h>
#include <string.h>

#include "dispatch/decide.h"
#include "dispatch/guard.h"

/* Bound on the points that cbn__enumerate_all visits for one candidate; the built-in families need under 100. */
#define COMBINATIONS_MAX 65536

struct seen {
    const struct cbn__candidate *candidate;
    int64_t params[CBN_PARAMS_MAX]; /* zero from param_count on */
};

/* What has been told, and to whom. */
struct tour {
    const struct cbn__family *family;
    cbn__spec_fn spec;
    void *user;
    struct cbn__buf seen; /* of struct seen, in the order told: a linear search, since there are tens of them */
    bool stopped;
};

static void tour_done(struct tour *tour)
{
    cbn__buf_done(&tour->seen);
}

#define TOUR_AUTO __attribute__((cleanup(tour_done))) struct tour

static bool was_seen(const struct tour *tour, const struct seen *item)
{
    const struct seen *items = (const struct seen *)tour->seen.data;
    size_t params_bytes = item->candidate->template.param_count * sizeof(item->params[0]);
    for (size_t i = 0; i < tour->seen.size / sizeof(*items); i++)
        if (items[i].candidate == item->candidate && memcmp(items[i].params, item->params, params_bytes) == 0)
            return true;
    return false;
}

/* Tells the candidate's specialisation under these facts, unless it was told before. */
static void tell(struct tour *tour, const struct cbn__candidate *candidate, const int64_t *facts)
{
    struct seen item = {.candidate = candidate};
    cbn__params_resolve(candidate, facts, item.params);
    if (was_seen(tour, &item))
        return;
    cbn__buf_append(&tour->seen, &item, sizeof(item));
    if (!tour->seen.failed && tour->spec(tour->user, candidate, item.params, facts))
        tour->stopped = true;
}

/* Points are int64 values of one fact at which an interval begins. */
static void add_point(struct cbn__buf *points, int64_t point, int64_t max)
{
    if (point > 0 && point <= max)
        cbn__buf_append(points, &point, sizeof(point));
}

/* The interval that begins after value; there is none after INT64_MAX. */
static void add_point_after(struct cbn__buf *points, int64_t value, int64_t max)
{
    if (value < INT64_MAX)
        add_point(points, value + 1, max);
}

static void add_guard_points(struct cbn__buf *points, const struct cbn__guard *guards, uint32_t count, uint32_t fact,
                             int64_t max)
{
    for (uint32_t i = 0; i < count; i++) {
        if (guards[i].fact != fact || guards[i].relation == CBN_RELATION_MULTIPLE_OF)
            continue;
        add_point(points, guards[i].value, max);
        if (guards[i].relation == CBN_RELATION_IN_RANGE)
            add_point(points, guards[i].value_end, max);
        else if (guards[i].relation == CBN_RELATION_EQ || guards[i].relation == CBN_RELATION_NE)
            add_point_after(points, guards[i].value, max);
    }
}

static void add_candidate_points(struct cbn__buf *points, const struct cbn__candidate *candidate, uint32_t policy,
                                 uint32_t fact, int64_t max)
{
    add_guard_points(points, candidate->rules[policy].guards, candidate->rules[policy].guard_count, fact, max);
    add_guard_points(points, candidate->guards, candidate->guard_count, fact, max);
    for (uint32_t i = 0; i < candidate->template.param_count; i++) {
        const struct cbn__param *param = &candidate->params[i];
        for (uint32_t b = 0; param->source == CBN_PARAM_BUCKET && param->fact == fact && b < param->bucket_count; b++)
            add_point_after(points, param->buckets[b].upper, max);
    }
}

static int compare_points(const void *a, const void *b)
{
    int64_t left, right;
    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    return (left > right) - (left < right);
}

/* Sorts, drops repetitions; returns the count. 0 is always the first point. */
static size_t sort_points(struct cbn__buf *points)
{
    const int64_t zero = 0;
    cbn__buf_append(points, &zero, sizeof(zero));
    if (points->failed)
        return 0;
    int64_t *values = (int64_t *)(void *)points->data;
    size_t count = points->size / sizeof(*values), kept = 1;
    qsort(values, count, sizeof(*values), compare_points);
    for (size_t i = 1; i < count; i++)
        if (values[i] != values[kept - 1])
            values[kept++] = values[i];
    points->size = kept * sizeof(*values);
    return kept;
}

static int32_t tour_status(const struct tour *tour, struct cbn_error *err)
{
    return tour->seen.failed ? cbn__error_no_memory(err) : CBN_STATUS_OK;
}

static void add_derived_points(struct cbn__buf *points, const struct cbn__derivation *derive, int64_t max)
{
    for (int64_t low = 0; derive->fill && low < derive->end && low < max; low += derive->step)
        add_point(points, low + 1, max);
}

/* The facts with the sweep fact at a point. */
static void move_to(const struct cbn__family *family, const struct cbn__buf *points, size_t index, int64_t *facts)
{
    memcpy(&facts[family->sweep_fact], points->data + index * sizeof(int64_t), sizeof(int64_t));
    if (family->derive.fill)
        family->derive.fill(facts);
}

/* Where an interval of the sweep fact begins inside which no guard and no bucket changes. */
static int32_t collect_points(const struct cbn__family *family, int64_t max, const struct cbn__route *route,
                              struct cbn__buf *points, size_t *ret_count, struct cbn_error *err)
{
    uint32_t sweep = family->sweep_fact;
    if (max < 0)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s: the maximum is negative; give 0 or more",
                              family->facts[sweep]);
    add_guard_points(points, family->noops, family->noop_count, sweep, max);
    for (uint32_t i = 0; i < family->candidate_count; i++)
        add_candidate_points(points, &family->candidates[i], route->policy, sweep, max);
    add_derived_points(points, &family->derive, max);
    *ret_count = sort_points(points);
    return *ret_count ? CBN_STATUS_OK : cbn__error_no_memory(err);
}

int32_t cbn__enumerate_gaps(const struct cbn__family *family, const int64_t *facts, int64_t max,
                            const struct cbn__route *route, cbn__gap_fn gap, void *user, struct cbn_error *err)
{
    uint32_t sweep = family->sweep_fact;
    CBN__BUF_AUTO points = CBN__BUF_INIT;
    size_t count = 0;
    int32_t status = collect_points(family, max, route, &points, &count, err);
    if (status != CBN_STATUS_OK)
        return status;
    int64_t moved[CBN_FACTS_MAX];
    memcpy(moved, facts, family->fact_count * sizeof(*moved));
    for (size_t i = 0; i < count; i++) {
        int64_t last = max;
        struct cbn__decision decision;
        move_to(family, &points, i, moved);
        if (i + 1 < count) {
            memcpy(&last, points.data + (i + 1) * sizeof(int64_t), sizeof(int64_t));
            last--;
        }
        cbn__decide(family, moved, route, &decision);
        if (!decision.noop && decision.chosen < 0 && gap(user, moved[sweep], last, &decision))
            return CBN_STATUS_OK;
    }
    return CBN_STATUS_OK;
}

int32_t cbn__enumerate_sweep(const struct cbn__family *family, const int64_t *facts, int64_t max,
                             const struct cbn__route *route, cbn__spec_fn spec, void *user, struct cbn_error *err)
{
    CBN__BUF_AUTO points = CBN__BUF_INIT;
    size_t count = 0;
    int32_t status = collect_points(family, max, route, &points, &count, err);
    if (status != CBN_STATUS_OK)
        return status;

    TOUR_AUTO tour = {.family = family, .spec = spec, .user = user, .seen = CBN__BUF_INIT};
    int64_t moved[CBN_FACTS_MAX];
    memcpy(moved, facts, family->fact_count * sizeof(*moved));
    for (size_t i = 0; i < count && !tour.stopped && !tour.seen.failed; i++) {
        move_to(family, &points, i, moved);
        struct cbn__decision decision;
        cbn__decide(family, moved, route, &decision);
        if (decision.chosen >= 0)
            tell(&tour, &family->candidates[decision.chosen], moved);
    }
    return tour_status(&tour, err);
}

/* One candidate with some facts free: on each free fact, the values that stand for its intervals. */
struct span {
    struct tour *tour;
    const struct cbn__candidate *candidate;
    const struct cbn__rule *rule;
    uint32_t policy;
    uint32_t free_mask;
    int64_t facts[CBN_FACTS_MAX];
    struct cbn__buf values[CBN_FACTS_MAX]; /* of int64, per free fact */
};

static void span_done(struct span *span)
{
    for (uint32_t i = 0; i < CBN_FACTS_MAX; i++)
        cbn__buf_done(&span->values[i]);
}

#define SPAN_AUTO __attribute__((cleanup(span_done))) struct span

static bool is_free(const struct span *span, uint32_t fact)
{
    return span->free_mask >> fact & 1;
}

static bool guards_hold(const struct cbn__guard *guards, uint32_t count, uint32_t fact, int64_t value)
{
    for (uint32_t i = 0; i < count; i++)
        if (guards[i].fact == fact && !cbn__guard_holds(&guards[i], value))
            return false;
    return true;
}

/* No guard of the candidate, of its rule or of the noops speaks against this value of this fact. */
static bool value_passes(const struct span *span, uint32_t fact, int64_t value)
{
    const struct cbn__family *family = span->tour->family;
    for (uint32_t i = 0; i < family->noop_count; i++) {
        bool varies = is_free(span, fact) && family->noops[i].relation == CBN_RELATION_MULTIPLE_OF;
        if (family->noops[i].fact == fact && !varies && cbn__guard_holds(&family->noops[i], value))
            return false;
    }
    return guards_hold(span->rule->guards, span->rule->guard_count, fact, value) &&
           guards_hold(span->candidate->guards, span->candidate->guard_count, fact, value);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Least common multiple of step and of every MULTIPLE_OF on fact; 0 when it is past int64: only 0 is a multiple. */
static int64_t common_step(const struct cbn__guard *guards, uint32_t count, uint32_t fact, int64_t step)
{
    for (uint32_t i = 0; i < count && step; i++) {
        if (guards[i].fact != fact || guards[i].relation != CBN_RELATION_MULTIPLE_OF)
            continue;
        if (__builtin_mul_overflow(step, guards[i].value / gcd(step, guards[i].value), &step))
            step = 0;
    }
    return step;
}

/* The smallest multiple of step in [low, high], low >= 0; false when there is none. */
static bool first_multiple(int64_t step, int64_t low, int64_t high, int64_t *ret_value)
{
    if (!step || !low) {
        *ret_value = 0;
        return low == 0;
    }
    int64_t rest = low % step;
    int64_t distance = rest ? step - rest : 0;
    *ret_value = low;
    return !__builtin_add_overflow(low, distance, ret_value) && *ret_value <= high;
}

/* true when a parameter of the candidate reads the fact; then its name is in *ret_own if it takes the fact's own value.
 */
static bool params_read(const struct cbn__candidate *candidate, uint32_t fact, const char **ret_own)
{
    bool reads = false;
    *ret_own = NULL;
    for (uint32_t i = 0; i < candidate->template.param_count; i++) {
        const struct cbn__param *param = &candidate->params[i];
        if (param->source == CBN_PARAM_CONST || param->fact != fact)
            continue;
        reads = true;
        if (param->source == CBN_PARAM_FACT)
            *ret_own = candidate->template.param_names[i];
    }
    return reads;
}

/* Fills the values of one free fact: one an interval that the guards let pass, or only the first if no parameter asks.
 */
static int32_t fill_values(struct span *span, uint32_t fact, struct cbn_error *err)
{
    const struct cbn__family *family = span->tour->family;
    CBN__BUF_AUTO points = CBN__BUF_INIT;
    add_guard_points(&points, family->noops, family->noop_count, fact, INT64_MAX);
    add_candidate_points(&points, span->candidate, span->policy, fact, INT64_MAX);
    size_t count = sort_points(&points);
    if (!count)
        return cbn__error_no_memory(err);
    const int64_t *lows = (const int64_t *)(const void *)points.data;
    int64_t step = common_step(span->rule->guards, span->rule->guard_count, fact, 1);
    step = common_step(span->candidate->guards, span->candidate->guard_count, fact, step);
    const char *own;
    bool all = params_read(span->candidate, fact, &own);
    for (size_t i = 0; i < count && (all || !span->values[fact].size); i++) {
        int64_t high = i + 1 < count ? lows[i + 1] - 1 : INT64_MAX, value;
        if (!first_multiple(step, lows[i], high, &value) || !value_passes(span, fact, value))
            continue;
        if (own && lows[i] != high)
            return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                                  "%s/%s: parameter %s takes any value of '%s'; enumerate by shape", family->name,
                                  span->candidate->template.name, own, family->facts[fact]);
        cbn__buf_append(&span->values[fact], &value, sizeof(value));
    }
    return span->values[fact].failed ? cbn__error_no_memory(err) : CBN_STATUS_OK;
}

/* Fixed facts are asked, free ones get their values; *ret_count combinations are left, 0: the candidate is out. */
static int32_t fill_span(struct span *span, int64_t *ret_count, struct cbn_error *err)
{
    const struct cbn__family *family = span->tour->family;
    int64_t count = 1;
    for (uint32_t fact = 0; fact < family->fact_count && count; fact++)
        if (!is_free(span, fact) && !value_passes(span, fact, span->facts[fact]))
            count = 0;
    for (uint32_t fact = 0; fact < family->fact_count && count; fact++) {
        if (!is_free(span, fact))
            continue;
        int32_t status = fill_values(span, fact, err);
        if (status != CBN_STATUS_OK)
            return status;
        count *= (int64_t)(span->values[fact].size / sizeof(int64_t));
        if (count > COMBINATIONS_MAX)
            return cbn__error_own(err, CBN_STATUS_LIMIT,
                                  "%s/%s: the free buckets make over %d combinations; enumerate by shape, or use fewer "
                                  "buckets",
                                  family->name, span->candidate->template.name, COMBINATIONS_MAX);
    }
    *ret_count = count;
    return CBN_STATUS_OK;
}

/* Sets the free facts to combination number `index`, read as a mixed-radix number. */
static void set_combination(struct span *span, int64_t index)
{
    for (uint32_t fact = 0; fact < span->tour->family->fact_count; fact++) {
        int64_t count = (int64_t)(span->values[fact].size / sizeof(int64_t));
        if (!count)
            continue;
        memcpy(&span->facts[fact], span->values[fact].data + (size_t)(index % count) * sizeof(int64_t),
               sizeof(int64_t));
        index /= count;
    }
}

static bool route_takes(const struct cbn__route *route, const struct cbn__candidate *candidate, uint32_t index)
{
    if (route->strict && (candidate->template.flags & CBN_CANDIDATE_FALLBACK))
        return false;
    return cbn__route_refusal(candidate, index, route) == CBN__REFUSAL_NONE;
}

static int32_t enumerate_candidate(struct tour *tour, uint32_t index, const int64_t *facts, uint32_t free_mask,
                                   const struct cbn__route *route, struct cbn_error *err)
{
    const struct cbn__candidate *candidate = &tour->family->candidates[index];
    if (!route_takes(route, candidate, index))
        return CBN_STATUS_OK;
    SPAN_AUTO span = {.tour = tour,
                      .candidate = candidate,
                      .rule = &candidate->rules[route->policy],
                      .policy = route->policy,
                      .free_mask = free_mask};
    memcpy(span.facts, facts, tour->family->fact_count * sizeof(*facts));
    int64_t count = 0;
    int32_t status = fill_span(&span, &count, err);
    if (status != CBN_STATUS_OK)
        return status;
    for (int64_t i = 0; i < count && !tour->stopped && !tour->seen.failed; i++) {
        set_combination(&span, i);
        if (!tour->family->derive.fill || tour->family->derive.can_be(span.facts))
            tell(tour, candidate, span.facts);
    }
    return tour_status(tour, err);
}

int32_t cbn__enumerate_all(const struct cbn__family *family, const int64_t *facts, uint32_t shape_facts,
                           const struct cbn__route *route, cbn__spec_fn spec, void *user, struct cbn_error *err)
{
    TOUR_AUTO tour = {.family = family, .spec = spec, .user = user, .seen = CBN__BUF_INIT};
    int32_t status = CBN_STATUS_OK;
    for (uint32_t i = 0; i < family->candidate_count && status == CBN_STATUS_OK && !tour.stopped; i++)
        status = enumerate_candidate(&tour, i, facts, shape_facts, route, err);
    return status;
}
