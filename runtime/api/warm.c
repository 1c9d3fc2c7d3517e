/*
 * Warming and checking: the enumeration of dispatch, worked through by threads that each wait for one build child.
 * The queue's lock guards the queue only; events are told from the calling thread with nothing held.
 *
 * Processes with one list share it out: what another is building is left for the end, and from the first sign of others
 * on the rest is taken in an order of one's own.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/runtime.h"
#include "api/spec_set.h"
#include "base/args.h"
#include "base/clock.h"

#define JOBS_MAX 256u
#define NS_PER_MS 1000000u

struct outcome {
    enum cbn_warm_outcome kind;
    int32_t status;
    struct cbn_error error;
    struct cbn__buf log;
};

struct work {
    struct cbn_runtime *runtime;
    const struct cbn__spec_set *set;
    struct outcome *outcomes;
    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* finished_count grew */
    uint32_t next;
    uint32_t *order;         /* items in the order in which they are taken */
    uint32_t *deferred;      /* items that others were building */
    uint32_t deferred_count; /* put in */
    uint32_t deferred_next;  /* taken out */
    bool shared;             /* others were seen at work */
    uint32_t finished_count;
    uint32_t *finished; /* items in the order in which they ended */
};

static bool is_uncovered(const struct cbn__spec_item *item)
{
    return !item->candidate || !item->candidate->template.source;
}

static void run_item(struct work *work, uint32_t index)
{
    const struct cbn__spec_item *item = &work->set->items[index];
    struct outcome *outcome = &work->outcomes[index];
    if (is_uncovered(item)) {
        outcome->kind = CBN_WARM_UNCOVERED;
        outcome->error = item->error;
        if (item->candidate)
            (void)cbn__error_own(&outcome->error, CBN_STATUS_UNSUPPORTED,
                                 "candidate %.64s has no template in this release", item->candidate->template.name);
        return;
    }
    outcome->status = cbn__disk_obtain(work->runtime, &item->spec, &outcome->kind, &outcome->log, &outcome->error);
    if (outcome->status != CBN_STATUS_OK)
        outcome->kind = CBN_WARM_FAILED;
}

/* Lock held. Others with the same list must not want the same item at the same time again. */
static void shuffle_rest(struct work *work)
{
    uint64_t state = cbn__clock_monotonic_ns() ^ (uint64_t)getpid() << 32 ^ (uintptr_t)work;
    for (uint32_t left = work->set->count - work->next; left > 1; left--) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t *a = &work->order[work->next + left - 1],
                 *b = &work->order[work->next + (uint32_t)(state >> 33) % left];
        uint32_t item = *a;
        *a = *b;
        *b = item;
    }
}

/* Lock held. */
static void note_others(struct work *work)
{
    if (!work->shared)
        shuffle_rest(work);
    work->shared = true;
}

static bool is_being_built(struct work *work, uint32_t index)
{
    const struct cbn__spec_item *item = &work->set->items[index];
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    if (is_uncovered(item))
        return false;
    cbn__key_record(&item->spec, &record);
    if (record.failed)
        return false;
    struct cbn__hash key = cbn__key_hash(cbn__buf_blob(&record));
    return cbn__flight_is_busy(work->runtime->cabinet, &key);
}

/* UINT32_MAX: none is left. */
static uint32_t take_item(struct work *work)
{
    uint32_t index = UINT32_MAX;
    (void)pthread_mutex_lock(&work->lock);
    while (index == UINT32_MAX && work->next < work->set->count) {
        uint32_t candidate = work->order[work->next++];
        (void)pthread_mutex_unlock(&work->lock);
        bool busy = is_being_built(work, candidate);
        (void)pthread_mutex_lock(&work->lock);
        if (busy) {
            work->deferred[work->deferred_count++] = candidate;
            note_others(work);
        } else {
            index = candidate;
        }
    }
    if (index == UINT32_MAX && work->deferred_next < work->deferred_count)
        index = work->deferred[work->deferred_next++];
    (void)pthread_mutex_unlock(&work->lock);
    return index;
}

static void *run_worker(void *user)
{
    struct work *work = user;
    for (;;) {
        uint32_t index = take_item(work);
        if (index == UINT32_MAX)
            return NULL;
        run_item(work, index);
        (void)pthread_mutex_lock(&work->lock);
        if (work->outcomes[index].kind == CBN_WARM_OTHER)
            note_others(work);
        work->finished[work->finished_count++] = index;
        (void)pthread_cond_signal(&work->changed);
        (void)pthread_mutex_unlock(&work->lock);
    }
}

static void count_outcome(enum cbn_warm_outcome kind, struct cbn_warm_result *result)
{
    switch (kind) {
    case CBN_WARM_PRESENT:
    case CBN_WARM_OTHER:
        result->already++;
        break;
    case CBN_WARM_COMPILED:
        result->compiled++;
        break;
    case CBN_WARM_FAILED:
        result->failed++;
        break;
    case CBN_WARM_MISSING:
        result->missing++;
        break;
    case CBN_WARM_UNCOVERED:
        result->uncovered++;
        break;
    }
}

static void tell_outcome(const struct cbn_warm_options *options, const struct cbn__spec_set *set, uint32_t index,
                         struct outcome *outcome, const struct cbn_query *queries, uint32_t done,
                         struct cbn_warm_result *result)
{
    const struct cbn__spec_item *item = &set->items[index];
    count_outcome(outcome->kind, result);
    if (!options->event)
        return;
    struct cbn_spec spec;
    if (item->candidate)
        cbn__spec_describe(&item->spec, &spec);
    struct cbn_warm_event event = {
        .size = sizeof(event),
        .outcome = (uint32_t)outcome->kind,
        .done = done,
        .total = set->count,
        .spec = item->candidate ? &spec : NULL,
        .query = cbn__query_at(queries, item->query),
        .log = cbn__buf_text(&outcome->log),
        .error = outcome->error.status ? &outcome->error : NULL,
    };
    options->event(options->user, &event);
}

/* The calling thread's half: tells each item as it ends. */
static void drain(struct work *work, const struct cbn_warm_options *options, const struct cbn_query *queries,
                  struct cbn_warm_result *result)
{
    for (uint32_t done = 0; done < work->set->count; done++) {
        (void)pthread_mutex_lock(&work->lock);
        while (work->finished_count <= done)
            (void)pthread_cond_wait(&work->changed, &work->lock);
        uint32_t index = work->finished[done];
        (void)pthread_mutex_unlock(&work->lock);
        tell_outcome(options, work->set, index, &work->outcomes[index], queries, done + 1, result);
    }
}

static uint32_t choose_jobs(uint32_t asked, uint32_t items)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t jobs = asked ? asked : cores > 0 ? (uint32_t)cores : 1;
    if (jobs > JOBS_MAX)
        jobs = JOBS_MAX;
    return jobs < items ? jobs : items;
}

/* With no thread to be had the calling thread does the work: slower, never wrong. */
static void run_all(struct work *work, const struct cbn_warm_options *options, const struct cbn_query *queries,
                    struct cbn_warm_result *result)
{
    pthread_t threads[JOBS_MAX];
    uint32_t wanted = choose_jobs(options->jobs, work->set->count), started = 0;
    while (started < wanted && pthread_create(&threads[started], NULL, run_worker, work) == 0)
        started++;
    if (!started)
        (void)run_worker(work);
    drain(work, options, queries, result);
    for (uint32_t i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
}

static int32_t sum_up(const struct work *work, const struct cbn_warm_result *result, struct cbn_error *err)
{
    if (!result->failed)
        return CBN_STATUS_OK;
    for (uint32_t i = 0; i < work->set->count; i++) {
        const struct outcome *outcome = &work->outcomes[i];
        if (outcome->status != CBN_STATUS_NO_COMPILER && outcome->status != CBN_STATUS_IO)
            continue; /* the others are one specialisation's own */
        if (err)
            *err = outcome->error;
        return outcome->status;
    }
    return cbn__error_own(err, CBN_STATUS_PARTIAL, "%u of %u specialisations failed; the events say which and why",
                          result->failed, result->requested);
}

static int32_t warm_set(struct cbn_runtime *runtime, const struct cbn__spec_set *set, const struct cbn_query *queries,
                        const struct cbn_warm_options *options, struct cbn_warm_result *result, struct cbn_error *err)
{
    struct work work = {.runtime = runtime, .set = set};
    work.outcomes = calloc(set->count + 1u, sizeof(*work.outcomes));
    work.finished = calloc(3 * (set->count + 1u), sizeof(*work.finished));
    int32_t status = CBN_STATUS_OK;
    if (!work.outcomes || !work.finished) {
        status = cbn__error_no_memory(err);
    } else {
        work.order = work.finished + set->count + 1u;
        work.deferred = work.order + set->count + 1u;
        for (uint32_t i = 0; i < set->count; i++)
            work.order[i] = i;
        (void)pthread_mutex_init(&work.lock, NULL);
        (void)pthread_cond_init(&work.changed, NULL);
        run_all(&work, options, queries, result);
        status = sum_up(&work, result, err);
        (void)pthread_cond_destroy(&work.changed);
        (void)pthread_mutex_destroy(&work.lock);
        for (uint32_t i = 0; i < set->count; i++)
            cbn__buf_done(&work.outcomes[i].log);
    }
    free(work.outcomes);
    free(work.finished);
    return status;
}

static int32_t begin(struct cbn_runtime *runtime, const struct cbn_query *queries, uint32_t query_count,
                     const struct cbn_warm_options *given, struct cbn_warm_options *ret_options,
                     struct cbn__spec_set *ret_set, struct cbn_error *err)
{
    *ret_options = (struct cbn_warm_options){.size = sizeof(*ret_options)};
    if (!runtime || (!queries && query_count))
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "queries" : "runtime");
    int32_t status =
        given ? cbn__args_take(ret_options, sizeof(*ret_options), given, "cbn_warm_options", err) : CBN_STATUS_OK;
    return status == CBN_STATUS_OK ? cbn__spec_set_fill(runtime, queries, query_count, ret_set, err) : status;
}

static void end(uint64_t started_ns, struct cbn_warm_result *result, struct cbn_warm_result *ret_result,
                struct cbn__spec_set *set)
{
    result->wall_ms = (cbn__clock_monotonic_ns() - started_ns) / NS_PER_MS;
    if (ret_result)
        cbn__args_give(ret_result, result, sizeof(*result));
    cbn__spec_set_done(set);
}

int32_t cbn_warm(struct cbn_runtime *runtime, const struct cbn_query *queries, uint32_t query_count,
                 const struct cbn_warm_options *given, struct cbn_warm_result *ret_result, struct cbn_error *err)
{
    uint64_t started_ns = cbn__clock_monotonic_ns();
    struct cbn_warm_options options;
    struct cbn__spec_set set = {0};
    int32_t status = begin(runtime, queries, query_count, given, &options, &set, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn_warm_result result = {.size = sizeof(result), .requested = set.count};
    status = warm_set(runtime, &set, queries, &options, &result, err);
    end(started_ns, &result, ret_result, &set);
    return status;
}

static void check_item(struct cbn_runtime *runtime, const struct cbn__spec_item *item, struct outcome *outcome)
{
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    const struct cbn__compiler_rule any = {0};
    outcome->kind = CBN_WARM_UNCOVERED;
    outcome->error = item->error;
    if (is_uncovered(item))
        return;
    cbn__key_record(&item->spec, &record);
    enum cbn__lookup found = cbn__cabinet_probe(runtime->cabinet, cbn__buf_blob(&record), &any);
    outcome->kind = found == CBN__LOOKUP_HIT ? CBN_WARM_PRESENT : CBN_WARM_MISSING;
    outcome->status = CBN_STATUS_OK;
    if (found == CBN__LOOKUP_BUSY)
        outcome->status = cbn__error_own(&outcome->error, CBN_STATUS_TIMEOUT,
                                         "the cache's lock did not come free: whether the entry is there is not known; "
                                         "end what writes to the cache, or wait, and check again");
    else if (found == CBN__LOOKUP_IO)
        outcome->status = cbn__error_own(&outcome->error, CBN_STATUS_IO,
                                         "the cache could not be read: whether the entry is there is not known; run "
                                         "`cubinet doctor`");
    if (outcome->status != CBN_STATUS_OK)
        outcome->kind = CBN_WARM_FAILED;
}

int32_t cbn_check(struct cbn_runtime *runtime, const struct cbn_query *queries, uint32_t query_count,
                  const struct cbn_warm_options *given, struct cbn_warm_result *ret_result, struct cbn_error *err)
{
    uint64_t started_ns = cbn__clock_monotonic_ns();
    struct cbn_warm_options options;
    struct cbn__spec_set set = {0};
    int32_t status = begin(runtime, queries, query_count, given, &options, &set, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn_warm_result result = {.size = sizeof(result), .requested = set.count};
    for (uint32_t i = 0; i < set.count; i++) {
        struct outcome outcome = {0};
        check_item(runtime, &set.items[i], &outcome);
        tell_outcome(&options, &set, i, &outcome, queries, i + 1, &result);
        cbn__buf_done(&outcome.log);
        if (outcome.status != CBN_STATUS_OK) {
            status = outcome.status;
            if (err)
                *err = outcome.error;
        }
    }
    end(started_ns, &result, ret_result, &set);
    return status;
}
