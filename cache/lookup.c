/*
 * Finding, storing, listing and dropping entries through the layers.
 *
 * Bytes are copied under the store's lock and verified, decoded and told about outside of it.
 */
#include "cache/layer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/error.h"
#include "cache/fleet.h"
#include "cache/pack_base.h"
#include "cache/registry.h"
#include "cache/space.h"

#define MAJOR_BOUND 0x10000u
#define VALUE_BYTES_MAX ((uint64_t)1 << 31)
#define US_PER_S 1000000u

/* One look-up through one layer. */
struct search {
    struct cbn__cabinet *cabinet;
    const struct cbn__cabinet_layer *layer;
    struct cbn__blob key_record;
    struct cbn__hash key;
    const struct cbn__compiler_rule *rule;
};

static struct cbn__store_key own_key(const struct cbn__store_item *item)
{
    struct cbn__store_key key = {{0}};
    size_t size = item->key_bytes < sizeof(key.bytes) ? item->key_bytes : sizeof(key.bytes);
    memcpy(key.bytes, item->key, size);
    return key;
}

/* As people read it: recency itself may lie ahead of a clock that was set back. */
static int64_t seconds_of(uint64_t recency_us)
{
    const int64_t seconds = (int64_t)(recency_us / US_PER_S), now_s = cbn__clock_wall_s();
    return seconds < now_s ? seconds : now_s;
}

/* Moves the item's bytes into an entry and verifies them. */
static const char *decode(const struct cbn__cabinet_layer *layer, struct cbn__store_item *item,
                          struct cbn__entry *ret_entry)
{
    struct cbn__store_key key = own_key(item);
    *ret_entry = (struct cbn__entry){.bytes = item->value,
                                     .layer = layer->number,
                                     .layer_path = layer->path,
                                     .last_used_s = item->usage.hits ? seconds_of(item->usage.recency_us) : 0,
                                     .hits = item->usage.hits,
                                     .recency_us = cbn__space_recency_us(&item->usage, cbn__buf_blob(&item->value)),
                                     .major = cbn__entry_key_major(&key),
                                     .pinned = item->usage.pinned};
    item->value = (struct cbn__buf)CBN__BUF_INIT;
    const char *problem = cbn__entry_decode(&key, ret_entry);
    return item->key_bytes == sizeof(key.bytes) ? problem : "the key is of a wrong length";
}

static void forget_damaged(const struct search *search, const struct cbn__store_key *key, struct cbn__blob value,
                           const char *problem)
{
    char text[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(&search->key, text);
    bool dropped = search->layer->writable && cbn__store_drop_if(search->layer->store, search->cabinet->lock_timeout_ms,
                                                                 key, value) == CBN_STATUS_OK;
    cbn__sink_tell(&search->cabinet->sink, CBN_EVENT_DAMAGE, 0, "entry %s of %s is damaged (%s)%s", text,
                   search->layer->path, problem, dropped ? " and was dropped" : "");
}

bool cbn__rule_takes_major(const struct cbn__compiler_rule *rule, uint32_t major)
{
    return (rule->max_major == 0 || major <= rule->max_major) && (major >= 32 || !(rule->except_majors & 1u << major));
}

bool cbn__rule_takes_version(const struct cbn__compiler_rule *rule, uint32_t version)
{
    return version >= rule->min_version && (rule->exact_version == 0 || version == rule->exact_version);
}

static enum cbn__lookup lookup_of_status(int32_t status)
{
    switch (status) {
    case CBN_STATUS_NOT_FOUND:
        return CBN__LOOKUP_ABSENT;
    case CBN_STATUS_TIMEOUT:
        return CBN__LOOKUP_BUSY;
    case CBN_STATUS_DAMAGED:
        return CBN__LOOKUP_DAMAGED;
    default:
        return CBN__LOOKUP_IO;
    }
}

/* An entry that was read: does it verify, is it the one asked for, does its compiler do? */
static enum cbn__lookup judge(const struct search *search, struct cbn__store_item *item, struct cbn__entry *entry)
{
    struct cbn__store_key key = own_key(item);
    const char *problem = decode(search->layer, item, entry);
    if (problem) {
        forget_damaged(search, &key, cbn__buf_blob(&entry->bytes), problem);
        return CBN__LOOKUP_DAMAGED;
    }
    if (!cbn__blob_equal(entry->key_record, search->key_record))
        return CBN__LOOKUP_ABSENT; /* the hash is an index: another record may stand in its place */
    if (!cbn__rule_takes_version(search->rule, entry->facts.compiler_version))
        return CBN__LOOKUP_INCOMPATIBLE;
    return CBN__LOOKUP_HIT;
}

enum cbn__lookup cbn__lookup_worse(enum cbn__lookup a, enum cbn__lookup b)
{
    /* What the caller should hear of several misses, most telling first. */
    static const enum cbn__lookup order[] = {CBN__LOOKUP_HIT,  CBN__LOOKUP_DAMAGED, CBN__LOOKUP_INCOMPATIBLE,
                                             CBN__LOOKUP_BUSY, CBN__LOOKUP_IO,      CBN__LOOKUP_ABSENT};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return a;
}

/* From the newest compiler that the rule takes to older ones. */
static enum cbn__lookup search_layer(const struct search *search, struct cbn__entry *ret_entry)
{
    const struct cbn__compiler_rule *rule = search->rule;
    struct cbn__store_pick pick = {.below = rule->max_major ? rule->max_major + 1 : MAJOR_BOUND,
                                   .except_majors = rule->except_majors};
    enum cbn__lookup found = CBN__LOOKUP_ABSENT;
    for (uint32_t i = 0; i < MAJOR_BOUND; i++) {
        CBN__STORE_ITEM_AUTO item = {.value = CBN__BUF_INIT};
        bool refused = false;
        int32_t status = cbn__store_find(search->layer->store, search->cabinet->lock_timeout_ms, &search->key, &pick,
                                         &item, &refused);
        cbn__cabinet_tell_notes(search->cabinet, search->layer->store);
        /* Later rounds skip what was seen already; only the first tells what the rule itself refuses. */
        if (i == 0 && refused && status == CBN_STATUS_NOT_FOUND)
            return CBN__LOOKUP_INCOMPATIBLE;
        if (status != CBN_STATUS_OK)
            return cbn__lookup_worse(found, lookup_of_status(status));
        struct cbn__store_key key = own_key(&item);
        struct cbn__entry entry;
        enum cbn__lookup verdict = judge(search, &item, &entry);
        if (verdict == CBN__LOOKUP_HIT) {
            *ret_entry = entry;
            return CBN__LOOKUP_HIT;
        }
        cbn__entry_done(&entry);
        found = cbn__lookup_worse(found, verdict);
        pick.below = cbn__entry_key_major(&key);
    }
    return found;
}

/* Faults are counted one by one and said once: a disk that stays full would otherwise say it with every kernel. */
static void say_read_failure(const struct search *search, enum cbn__lookup found)
{
    bool busy = found == CBN__LOOKUP_BUSY;
    if ((busy || found == CBN__LOOKUP_IO) && !atomic_exchange(&search->cabinet->read_failure_said, true))
        cbn__sink_tell(&search->cabinet->sink, CBN_EVENT_NOTICE, busy ? CBN_STATUS_TIMEOUT : CBN_STATUS_IO,
                       "the cache layer %s %s; a kernel that it may hold is built again (further ones are counted, not "
                       "told)",
                       search->layer->path, busy ? "is locked by another process" : "cannot be read");
}

static void say_put_failure(struct cbn__cabinet *cabinet, const struct cbn_error *why)
{
    if (!atomic_exchange(&cabinet->put_failure_said, true))
        cbn__sink_tell(&cabinet->sink, CBN_EVENT_NOTICE, why->status,
                       "a kernel could not be stored, and runs from memory: %s (further ones are counted, not told)",
                       why->message);
}

enum cbn__lookup cbn__cabinet_search(struct cbn__cabinet *cabinet, struct cbn__blob key_record,
                                     const struct cbn__compiler_rule *rule, struct cbn__entry *ret_entry)
{
    static const struct cbn__compiler_rule any;
    struct search search = {
        .cabinet = cabinet, .key_record = key_record, .key = cbn__hash_blob(key_record), .rule = rule ? rule : &any};
    enum cbn__lookup found = CBN__LOOKUP_ABSENT;
    cbn__registry_check_pid();
    for (uint32_t i = 0; i < cabinet->layer_count && found != CBN__LOOKUP_HIT; i++) {
        search.layer = &cabinet->layers[i];
        enum cbn__lookup verdict = search.layer->pack
                                       ? cbn__pack_base_find(cabinet, search.layer, key_record, search.rule, ret_entry)
                                       : search_layer(&search, ret_entry);
        say_read_failure(&search, verdict);
        found = cbn__lookup_worse(found, verdict);
    }
    return found;
}

/* A look-up is counted where it can be written: in the overlay, whichever layer it ended in. */
static void count_lookup(struct cbn__store *overlay, enum cbn__lookup found, const struct cbn__entry *entry)
{
    switch (found) {
    case CBN__LOOKUP_HIT:
        CBN__COUNT_LAYER(overlay, hits, 1);
        CBN__COUNT_LAYER(overlay, compile_ms_saved, entry->facts.compile_ms);
        break;
    case CBN__LOOKUP_ABSENT:
        CBN__COUNT_LAYER(overlay, misses_absent, 1);
        break;
    case CBN__LOOKUP_DAMAGED:
        CBN__COUNT_LAYER(overlay, misses_damaged, 1);
        break;
    case CBN__LOOKUP_INCOMPATIBLE:
        CBN__COUNT_LAYER(overlay, misses_incompatible, 1);
        break;
    case CBN__LOOKUP_BUSY:
        CBN__COUNT_LAYER(overlay, misses_busy, 1);
        break;
    case CBN__LOOKUP_IO:
        CBN__COUNT_LAYER(overlay, misses_io, 1);
        break;
    }
}

enum cbn__lookup cbn__cabinet_find(struct cbn__cabinet *cabinet, struct cbn__blob key_record,
                                   const struct cbn__compiler_rule *rule, struct cbn__entry *ret_entry)
{
    struct cbn__entry entry;
    enum cbn__lookup found = cbn__cabinet_search(cabinet, key_record, rule, &entry);
    struct cbn__store *overlay = cbn__cabinet_overlay(cabinet);
    if (found != CBN__LOOKUP_HIT && cabinet->tier)
        found = cbn__fleet_find(cabinet, key_record, rule, found, &entry);
    if (overlay)
        count_lookup(overlay, found, &entry);
    if (found != CBN__LOOKUP_HIT)
        return found;
    if (entry.layer == 0 && overlay) {
        struct cbn__hash hash = cbn__hash_blob(key_record);
        struct cbn__store_key key = cbn__entry_key(&hash, entry.facts.compiler_version / 1000);
        cbn__usage_record(&overlay->usage, &key);
    }
    *ret_entry = entry;
    return found;
}

enum cbn__lookup cbn__cabinet_probe(struct cbn__cabinet *cabinet, struct cbn__blob key_record,
                                    const struct cbn__compiler_rule *rule)
{
    struct cbn__entry entry;
    enum cbn__lookup found = cbn__cabinet_search(cabinet, key_record, rule, &entry);
    if (found == CBN__LOOKUP_HIT)
        cbn__entry_done(&entry);
    return found;
}

static int32_t check_put(struct cbn__blob key_record, struct cbn__blob payload, struct cbn__blob log,
                         const struct cbn__entry_facts *facts, struct cbn_error *err)
{
    if (key_record.size == 0 || key_record.size > CBN__KEY_RECORD_MAX_BYTES)
        return cbn__error_own(err, CBN_STATUS_INVALID, "a key record of %zu bytes; 1 to %u are taken", key_record.size,
                              CBN__KEY_RECORD_MAX_BYTES);
    if (facts->compiler_version / 1000 >= MAJOR_BOUND)
        return cbn__error_own(err, CBN_STATUS_INVALID, "compiler version %u cannot be", facts->compiler_version);
    if (payload.size > VALUE_BYTES_MAX || log.size > VALUE_BYTES_MAX)
        return cbn__error_own(err, CBN_STATUS_LIMIT, "a cubin of %zu and a log of %zu bytes are too large to be kept",
                              payload.size, log.size);
    return CBN_STATUS_OK;
}

int32_t cbn__cabinet_store(struct cbn__cabinet *cabinet, struct cbn__blob key_record, struct cbn__blob payload,
                           struct cbn__blob log, const struct cbn__entry_facts *facts, struct cbn_error *err)
{
    struct cbn__store *overlay = cbn__cabinet_overlay(cabinet);
    if (!overlay)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "there is no cache folder that can be written");
    int32_t status = check_put(key_record, payload, log, facts, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__hash hash = cbn__hash_blob(key_record);
    struct cbn__store_key key = cbn__entry_key(&hash, facts->compiler_version / 1000);
    CBN__BUF_AUTO value = CBN__BUF_INIT;
    cbn__entry_encode(&key, key_record, payload, log, facts, &value);
    if (value.failed)
        return cbn__error_no_memory(err);
    cbn__registry_check_pid();
    struct cbn_error why = {0};
    status = cbn__store_put(overlay, cabinet->lock_timeout_ms, &key, cbn__buf_blob(&value), &why);
    cbn__cabinet_tell_notes(cabinet, overlay);
    if (status == CBN_STATUS_OK) {
        CBN__COUNT_LAYER(overlay, puts, 1);
        CBN__COUNT_LAYER(overlay, compile_ms_spent, facts->compile_ms);
        return status;
    }
    cbn__flight_drop(cabinet, &hash);
    say_put_failure(cabinet, &why);
    if (err)
        *err = why;
    return status;
}

int32_t cbn__cabinet_put(struct cbn__cabinet *cabinet, struct cbn__blob key_record, struct cbn__blob payload,
                         struct cbn__blob log, const struct cbn__entry_facts *facts, struct cbn_error *err)
{
    struct cbn__hash key = cbn__hash_blob(key_record);
    int32_t status = cbn__cabinet_store(cabinet, key_record, payload, log, facts, err);
    cbn__fleet_offer(cabinet, &key, key_record, payload, facts);
    return status;
}

static const char *check_hash(const struct cbn__entry *entry, const struct cbn__hash *key)
{
    struct cbn__hash hash = cbn__hash_blob(entry->key_record);
    return cbn__hash_equal(&hash, key) ? NULL : "the key record does not hash to its key";
}

/* The first key that begins with these digits, and how many of its bytes are given. */
static uint32_t seek_bytes(const char *prefix, uint8_t *bytes)
{
    uint32_t digits = 0;
    for (; prefix[digits] && digits < 2 * CBN__HASH_BYTES; digits++) {
        char c = prefix[digits];
        uint32_t value = c <= '9' ? (uint32_t)(c - '0') : (uint32_t)((c | 0x20) - 'a' + 10);
        bytes[digits / 2] = (uint8_t)(digits % 2 ? bytes[digits / 2] | value : value << 4);
    }
    return (digits + 1) / 2;
}

bool cbn__layer_key_begins(const struct cbn__hash *key, const char *prefix)
{
    char text[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(key, text);
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

/* *ret_stopped: the callback has said so. */
static int32_t each_of_layer(struct cbn__cabinet *cabinet, const struct cbn__cabinet_layer *layer, const char *prefix,
                             cbn__entry_fn each, void *user, bool *ret_stopped)
{
    CBN__STORE_ITEM_AUTO item = {.value = CBN__BUF_INIT};
    item.key_bytes = seek_bytes(prefix, item.key);
    if (layer->pack)
        return cbn__pack_base_each(layer, (struct cbn__blob){item.key, item.key_bytes}, prefix, each, user,
                                   ret_stopped);
    for (;;) {
        int32_t status = cbn__store_next(layer->store, cabinet->lock_timeout_ms, &item);
        cbn__cabinet_tell_notes(cabinet, layer->store);
        if (status != CBN_STATUS_OK)
            return status == CBN_STATUS_NOT_FOUND ? CBN_STATUS_OK : status;
        struct cbn__store_key key = own_key(&item);
        struct cbn__hash hash = cbn__entry_key_hash(&key);
        if (!cbn__layer_key_begins(&hash, prefix))
            return CBN_STATUS_OK;
        struct cbn__entry entry;
        const char *problem = decode(layer, &item, &entry);
        if (!problem)
            problem = check_hash(&entry, &hash);
        *ret_stopped = each(user, &hash, &entry, problem, layer->number, layer->path) != 0;
        cbn__entry_done(&entry);
        if (*ret_stopped)
            return CBN_STATUS_OK;
    }
}

int32_t cbn__layer_cannot_read(const struct cbn__cabinet_layer *layer, int32_t status, struct cbn_error *err)
{
    return cbn__error_own(err, (enum cbn_status)status, "cannot read all of the cache layer %s (%s); try again",
                          layer->path, cbn_status_name(status));
}

int32_t cbn__cabinet_each(struct cbn__cabinet *cabinet, cbn__entry_fn each, void *user, struct cbn_error *err)
{
    bool stopped = false;
    cbn__registry_check_pid();
    for (uint32_t i = 0; i < cabinet->layer_count && !stopped; i++) {
        int32_t status = each_of_layer(cabinet, &cabinet->layers[i], "", each, user, &stopped);
        if (status != CBN_STATUS_OK)
            return cbn__layer_cannot_read(&cabinet->layers[i], status, err);
    }
    return CBN_STATUS_OK;
}

int32_t cbn__cabinet_each_of(struct cbn__cabinet *cabinet, uint32_t index, const char *prefix, cbn__entry_fn each,
                             void *user, struct cbn_error *err)
{
    bool stopped = false;
    cbn__registry_check_pid();
    int32_t status = each_of_layer(cabinet, &cabinet->layers[index], prefix, each, user, &stopped);
    return status == CBN_STATUS_OK ? status : cbn__layer_cannot_read(&cabinet->layers[index], status, err);
}

int32_t cbn__cabinet_drop(struct cbn__cabinet *cabinet, const struct cbn__hash *key, struct cbn_error *err)
{
    struct cbn__store *overlay = cbn__cabinet_overlay(cabinet);
    if (!overlay)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "there is no cache folder that can be written");
    cbn__registry_check_pid();
    int32_t status = cbn__store_drop(overlay, cabinet->lock_timeout_ms, key, err);
    cbn__cabinet_tell_notes(cabinet, overlay);
    return status;
}
