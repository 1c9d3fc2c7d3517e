/*
 * Pruning by rule: the overlay is read entry by entry, what matches is put in order, and the list is removed.
 *
 * Holds no lock; an entry that another process replaces meanwhile is a cache entry less, which a build mends. One that
 * it pins meanwhile stays, and one that it removes is told by it alone.
 */
#include "api/cabinet_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/clock.h"

#define KNOWN_FLAGS (CBN_PRUNE_DRY_RUN | CBN_PRUNE_ALL | CBN_PRUNE_STALE | CBN_PRUNE_UNPINNED_TOO | CBN_PRUNE_COMPACT)
#define PAGE_BYTES_LEAST 4096u /* of a page of the file */
#define REMOVE_AT_ONCE 64u     /* at most, before the pages in use are measured again */

struct pruning {
    struct cbn_runtime *runtime;
    struct cbn_prune_options options;
    int64_t now_s;
    struct cbn__prune_item *items;
    size_t count, capacity;
    uint64_t seen;          /* and not gone since */
    uint64_t held_bytes[2]; /* of all entries seen: those with pages of their own, and those that share leaves */
    bool out_of_memory;
    cbn_prune_fn removed;
    void *user;
    struct cbn_prune_result result;
};

static bool removes_by_rule(const struct cbn_prune_options *options)
{
    return (options->flags & (CBN_PRUNE_ALL | CBN_PRUNE_STALE)) || options->max_bytes != UINT64_MAX ||
           options->older_than_s || options->arch || options->compiler_below || options->op;
}

static int32_t check_options(const struct cbn_prune_options *options, struct cbn_error *err)
{
    if (options->flags & ~KNOWN_FLAGS)
        return cbn__error_own(err, CBN_STATUS_INVALID, "flags: 0x%x holds bits that this library does not know",
                              options->flags);
    if (options->older_than_s < 0)
        return cbn__error_own(err, CBN_STATUS_INVALID, "older_than_s is %lld; a duration is not negative",
                              (long long)options->older_than_s);
    if ((options->flags & CBN_PRUNE_UNPINNED_TOO) && !(options->flags & CBN_PRUNE_ALL))
        return cbn__error_own(err, CBN_STATUS_INVALID, "flags: UNPINNED_TOO goes with ALL only");
    if (!removes_by_rule(options) && !(options->flags & CBN_PRUNE_COMPACT))
        return cbn__error_own(err, CBN_STATUS_INVALID, "no rule says what to remove; ALL removes every entry");
    return CBN_STATUS_OK;
}

/* Only a family that this library has can say that a digest is none of its own. */
static bool is_stale(const struct cbn_runtime *runtime, const struct cbn_spec *spec, const char *digest)
{
    const struct cbn__family *family = cbn__runtime_family((struct cbn_runtime *)(uintptr_t)runtime, spec->op, NULL);
    if (!family)
        return false;
    for (uint32_t i = 0; i < family->candidate_count; i++) {
        char own[CBN__HASH_TEXT_BYTES];
        cbn__hash_format(&family->candidates[i].template.digest, own);
        if (family->candidates[i].template.source && strcmp(own, digest) == 0)
            return false;
    }
    return true;
}

static bool is_old(const struct pruning *pruning, const struct cbn__entry *entry)
{
    int64_t since_s = entry->last_used_s ? entry->last_used_s : entry->facts.created_s;
    return since_s <= pruning->now_s - pruning->options.older_than_s;
}

/* Rules that ask what an entry is cannot be asked of one that does not verify. */
static bool matches(const struct pruning *pruning, const struct cbn__entry *entry, const char *problem)
{
    const struct cbn_prune_options *options = &pruning->options;
    if (entry->pinned && !(options->flags & CBN_PRUNE_UNPINNED_TOO))
        return false;
    bool asks = (options->flags & CBN_PRUNE_STALE) || options->arch || options->compiler_below || options->op ||
                options->older_than_s;
    if (!asks)
        return true;
    CBN__BUF_AUTO nvrtc_options = CBN__BUF_INIT;
    struct cbn_spec spec;
    char digest[CBN__HASH_TEXT_BYTES];
    if (problem || !cbn__key_decode(entry->key_record, &spec, digest, &nvrtc_options))
        return false;
    if (options->op && strcmp(options->op, spec.op) != 0)
        return false;
    uint32_t arch = 0;
    if (options->arch && (cbn_arch_parse(spec.arch, &arch, NULL) != CBN_STATUS_OK || arch != options->arch))
        return false;
    if (options->compiler_below && entry->facts.compiler_version >= options->compiler_below)
        return false;
    if (options->older_than_s && !is_old(pruning, entry))
        return false;
    return !(options->flags & CBN_PRUNE_STALE) || is_stale(pruning->runtime, &spec, digest);
}

static bool add_item(struct pruning *pruning, const struct cbn__prune_item *item)
{
    if (pruning->count == pruning->capacity) {
        size_t capacity = pruning->capacity ? 2 * pruning->capacity : 64;
        struct cbn__prune_item *items = realloc(pruning->items, capacity * sizeof(*items));
        if (!items)
            return false;
        pruning->items = items;
        pruning->capacity = capacity;
    }
    pruning->items[pruning->count++] = *item;
    return true;
}

/* Less than any page holds: the value stands in a leaf among others. */
static bool shares_leaf(uint64_t held_bytes)
{
    return held_bytes < PAGE_BYTES_LEAST;
}

static int consider(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                    uint32_t layer, const char *layer_path)
{
    (void)layer, (void)layer_path;
    struct pruning *pruning = user;
    const uint64_t held_bytes = cbn__cabinet_held_bytes(entry);
    pruning->seen++;
    pruning->held_bytes[shares_leaf(held_bytes)] += held_bytes;
    if (!removes_by_rule(&pruning->options) || !matches(pruning, entry, problem))
        return 0;
    struct cbn__prune_item item = {.key = *key,
                                   .major = entry->major,
                                   .recency_us = entry->recency_us,
                                   .size_bytes = entry->payload.size,
                                   .held_bytes = held_bytes};
    pruning->out_of_memory = !add_item(pruning, &item);
    return pruning->out_of_memory;
}

static int compare_recency(const void *a, const void *b)
{
    const struct cbn__prune_item *x = a, *y = b;
    if (x->recency_us != y->recency_us)
        return x->recency_us < y->recency_us ? -1 : 1;
    int order = memcmp(x->key.bytes, y->key.bytes, sizeof(x->key.bytes));
    return order ? order : (x->major > y->major) - (x->major < y->major);
}

static int32_t used_bytes(const struct pruning *pruning, uint64_t *ret_bytes, struct cbn_error *err)
{
    struct cbn__layer layer;
    int32_t status = cbn__cabinet_layer(pruning->runtime->cabinet, 0, &layer, err);
    if (status == CBN_STATUS_OK)
        *ret_bytes = layer.used_bytes;
    return status;
}

/* What goes with an item of a file of used bytes: its pages, or its share of everything that is no value's own page. */
static uint64_t share_of(const struct pruning *pruning, const struct cbn__prune_item *item, uint64_t used)
{
    const uint64_t *held = pruning->held_bytes;
    if (!shares_leaf(item->held_bytes) || used <= held[0] + held[1])
        return item->held_bytes;
    return item->held_bytes * (used - held[0]) / held[1]; /* below 2^12 times below 2^48 */
}

/* The end of a step that begins at an item: what may go before the pages in use, now used, are measured again. */
static size_t step_from(const struct pruning *pruning, size_t at, uint64_t used, uint64_t *ret_freed)
{
    const uint64_t bound = pruning->options.max_bytes;
    size_t end = at;
    *ret_freed = 0;
    while (end < pruning->count && end - at < REMOVE_AT_ONCE && (bound == UINT64_MAX || used > bound + *ret_freed))
        *ret_freed += share_of(pruning, &pruning->items[end++], used);
    return end;
}

static void tell_removed(struct pruning *pruning, const struct cbn__prune_item *item)
{
    char key[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(&item->key, key);
    pruning->result.removed++;
    pruning->result.freed_bytes += item->held_bytes;
    if (pruning->removed)
        pruning->removed(pruning->user, key, item->size_bytes);
}

/* Tells what this call removed, also before a failure; what others were faster with is merely gone. */
static void account(struct pruning *pruning, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const struct cbn__prune_item *item = &pruning->items[i];
        if (item->outcome == CBN__PRUNE_STAYS)
            continue;
        pruning->held_bytes[shares_leaf(item->held_bytes)] -= item->held_bytes;
        pruning->seen--;
        if (item->outcome == CBN__PRUNE_REMOVED)
            tell_removed(pruning, item);
    }
}

static int32_t remove_items(struct pruning *pruning, size_t from, size_t to, struct cbn_error *err)
{
    const bool pinned_too = (pruning->options.flags & CBN_PRUNE_UNPINNED_TOO) != 0;
    int32_t status = CBN_STATUS_OK;
    if (pruning->options.flags & CBN_PRUNE_DRY_RUN)
        for (size_t i = from; i < to; i++)
            pruning->items[i].outcome = CBN__PRUNE_REMOVED;
    else
        status = cbn__cabinet_remove(pruning->runtime->cabinet, pruning->items + from, to - from, pinned_too, err);
    account(pruning, from, to);
    return status;
}

static int32_t rehearse(struct pruning *pruning, size_t *ret_count, uint64_t *ret_used, struct cbn_error *err)
{
    int32_t status = cbn__cabinet_rehearse(pruning->runtime->cabinet, pruning->items, pruning->count,
                                           pruning->options.max_bytes, ret_count, ret_used, err);
    return status == CBN_STATUS_OK ? remove_items(pruning, 0, *ret_count, err) : status;
}

/*
 * Removes the ordered items, all or down to the bound. Values that share leaf pages free less than their share at
 * first, so a real run measures after every step; a dry one rehearses, and goes by the shares where it could not.
 */
static int32_t remove_ordered(struct pruning *pruning, struct cbn_error *err)
{
    const bool bounded = pruning->options.max_bytes != UINT64_MAX;
    const bool dry = (pruning->options.flags & CBN_PRUNE_DRY_RUN) != 0;
    uint64_t used = 0, freed = 0;
    size_t at = 0;
    int32_t status = CBN_STATUS_OK;
    if (bounded && dry)
        status = rehearse(pruning, &at, &used, err);
    else if (bounded)
        status = used_bytes(pruning, &used, err);
    while (at < pruning->count && status == CBN_STATUS_OK) {
        if (bounded && used <= pruning->options.max_bytes)
            break;
        const size_t end = step_from(pruning, at, used, &freed);
        status = remove_items(pruning, at, end, err);
        at = end;
        if (dry)
            used -= freed < used ? freed : used;
        else if (status == CBN_STATUS_OK && bounded)
            status = used_bytes(pruning, &used, err);
    }
    return status;
}

static int32_t prune(struct pruning *pruning, struct cbn_error *err)
{
    int32_t status = cbn__cabinet_each_of(pruning->runtime->cabinet, 0, "", consider, pruning, err);
    if (pruning->out_of_memory)
        return cbn__error_no_memory(err);
    if (pruning->count)
        qsort(pruning->items, pruning->count, sizeof(*pruning->items), compare_recency);
    if (status == CBN_STATUS_OK)
        status = remove_ordered(pruning, err);
    pruning->result.kept = pruning->seen;
    bool compacts = (pruning->options.flags & CBN_PRUNE_COMPACT) && !(pruning->options.flags & CBN_PRUNE_DRY_RUN);
    return status == CBN_STATUS_OK && compacts ? cbn__cabinet_compact(pruning->runtime->cabinet, err) : status;
}

int32_t cbn_cabinet_prune(struct cbn_runtime *runtime, const struct cbn_prune_options *given, cbn_prune_fn removed,
                          void *user, struct cbn_prune_result *ret_result, struct cbn_error *err)
{
    if (!runtime || !given)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "options" : "runtime");
    struct cbn_prune_options options = CBN_PRUNE_OPTIONS_INIT;
    int32_t status = cbn__args_take(&options, sizeof(options), given, "cbn_prune_options", err);
    if (status == CBN_STATUS_OK)
        status = check_options(&options, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (!cbn__cabinet_can_write(runtime->cabinet))
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND,
                              "there is no cache folder that can be written; name one with --cache or CUBINET_CACHE");
    struct pruning pruning = {
        .runtime = runtime, .options = options, .now_s = cbn__clock_wall_s(), .removed = removed, .user = user};
    pruning.result.size = sizeof(pruning.result);
    status = prune(&pruning, err);
    free(pruning.items);
    if (status == CBN_STATUS_OK && ret_result)
        cbn__args_give(ret_result, &pruning.result, sizeof(pruning.result));
    return status;
}
