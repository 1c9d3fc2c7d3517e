/*
 * Questions to the fleet's server and what its answers are worth. See tier.h.
 */
#include "cache/tier_pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cache/pack_entry.h"
#include "cache/registry.h"

/* Compiler majors that are looked for; one question asks for all of them. 12 and 13 exist. */
#define MAJOR_FIRST 11u
#define MAJOR_COUNT 16u
#define KEY_BYTES 96u
#define NUMBER_BYTES 24u

/* Deletes the lease if it still is ours. */
static const char release_script[] = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else "
                                     "return 0 end";

struct tier_key {
    char text[KEY_BYTES];
};

static struct cbn__blob text(const char *words)
{
    return (struct cbn__blob){words, strlen(words)};
}

static struct tier_key entry_key(const struct cbn__hash *key, uint32_t major)
{
    char digits[CBN__HASH_TEXT_BYTES];
    struct tier_key name;
    cbn__hash_format(key, digits);
    (void)snprintf(name.text, sizeof(name.text), "cubinet:1:%s:%" PRIu32, digits, major);
    return name;
}

static struct tier_key lease_key(const struct cbn__hash *key)
{
    char digits[CBN__HASH_TEXT_BYTES];
    struct tier_key name;
    cbn__hash_format(key, digits);
    (void)snprintf(name.text, sizeof(name.text), "cubinet:1:%s:lease", digits);
    return name;
}

/* ---- life ---- */

int32_t cbn__tier_open(const char *url, const struct cbn__sink *sink, struct cbn__tier **ret_tier,
                       struct cbn_error *err)
{
    struct cbn__tier_address address;
    int32_t status = cbn__tier_address_parse(url, &address, err);
    if (status == CBN_STATUS_OK)
        status = cbn__link_supports(&address, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__tier *tier = calloc(1, sizeof(*tier));
    if (!tier)
        return cbn__error_no_memory(err);
    tier->address = address;
    tier->sink = *sink;
    (void)pthread_mutex_init(&tier->mutex, NULL);
    if (!cbn__registry_add_tier(tier)) {
        (void)pthread_mutex_destroy(&tier->mutex);
        free(tier);
        return cbn__error_no_memory(err);
    }
    *ret_tier = tier;
    return CBN_STATUS_OK;
}

void cbn__tier_close(struct cbn__tier *tier)
{
    if (!tier)
        return;
    cbn__registry_check_pid();
    cbn__registry_remove_tier(tier);
    while (tier->slots) {
        struct cbn__tier_slot *slot = tier->slots;
        tier->slots = slot->next;
        cbn__link_destroy(slot->link);
        free(slot);
    }
    (void)pthread_mutex_destroy(&tier->mutex);
    explicit_bzero(&tier->address, sizeof(tier->address));
    free(tier);
}

const struct cbn__tier_address *cbn__tier_address(const struct cbn__tier *tier)
{
    return &tier->address;
}

void cbn__tier_counters(const struct cbn__tier *tier, struct cbn__tier_counters *ret_counters)
{
#define CBN_X(name, text) ret_counters->name = atomic_load_explicit(&tier->counters.name, memory_order_relaxed);
    CBN_FLEET_STAT_MAP(CBN_X)
#undef CBN_X
}

void cbn__tier_make_token(char ret_token[CBN__TIER_TOKEN_BYTES])
{
    struct cbn__hash token;
    if (getrandom(token.bytes, sizeof(token.bytes), 0) != (ssize_t)sizeof(token.bytes)) {
        uint64_t seed[] = {cbn__clock_monotonic_ns(), cbn__clock_wall_us(), (uint64_t)getpid(), (uintptr_t)ret_token};
        token = cbn__hash_blob((struct cbn__blob){seed, sizeof(seed)});
    }
    cbn__hash_format(&token, ret_token);
}

/* ---- find ---- */

struct question {
    struct cbn__tier *tier;
    struct cbn__blob key_record;
    struct cbn__hash key;
    const struct cbn__compiler_rule *rule;
    uint64_t deadline_ns;
    int64_t sizes[MAJOR_COUNT]; /* of the values; 0: none, -1: what is there is no string */
};

/* Another kind of value stands under the name. */
static bool is_foreign(const struct cbn__tier_reply *reply)
{
    static const char word[] = "WRONGTYPE";
    return reply->kind == CBN__REPLY_ERROR && reply->bytes.size >= sizeof(word) - 1 &&
           memcmp(reply->bytes.data, word, sizeof(word) - 1) == 0;
}

/* A reply that is no answer. */
static int32_t judge_other(const struct cbn__tier_reply *reply, struct cbn_error *err)
{
    return reply->kind == CBN__REPLY_ERROR
               ? cbn__tier_error_of(reply, err)
               : cbn__error_own(err, CBN_STATUS_DAMAGED,
                                "what answers at the fleet's address answers another question");
}

/* One round trip: the lease, if one is wanted, and then what there is. A value stored in between is seen. */
static int32_t ask_what_there_is(struct question *question, const char *token, enum cbn__lease *ret_lease,
                                 struct cbn_error *err)
{
    struct tier_key names[MAJOR_COUNT], lease = lease_key(&question->key);
    struct cbn__tier_command commands[MAJOR_COUNT + 1];
    struct cbn__tier_reply replies[MAJOR_COUNT + 1];
    char lease_ms[NUMBER_BYTES];
    uint32_t count = 0;
    (void)snprintf(lease_ms, sizeof(lease_ms), "%" PRIu32, question->tier->address.lease_ms);
    if (token)
        commands[count++] = (struct cbn__tier_command){
            6, {text("SET"), text(lease.text), text(token), text("NX"), text("PX"), text(lease_ms)}};
    for (uint32_t i = 0; i < MAJOR_COUNT; i++) {
        names[i] = entry_key(&question->key, MAJOR_FIRST + i);
        commands[count++] = (struct cbn__tier_command){2, {text("STRLEN"), text(names[i].text)}};
    }
    int32_t status = cbn__tier_exchange(question->tier, commands, count, question->deadline_ns, replies, err);
    if (status != CBN_STATUS_OK)
        return status;
    const struct cbn__tier_reply *reply = replies;
    if (token) {
        *ret_lease = reply->kind == CBN__REPLY_STATUS ? CBN__LEASE_TAKEN
                     : reply->kind == CBN__REPLY_NIL  ? CBN__LEASE_BUSY
                                                      : CBN__LEASE_NOT_HAD;
        reply++;
    }
    for (uint32_t i = 0; i < MAJOR_COUNT && status == CBN_STATUS_OK; i++, reply++) {
        question->sizes[i] = reply->kind == CBN__REPLY_INTEGER ? reply->integer : -1;
        if (reply->kind != CBN__REPLY_INTEGER && !is_foreign(reply))
            status = judge_other(reply, err);
    }
    cbn__tier_replies_done(replies, count);
    return status;
}

/* A value that stays where it is, and as it is, is told and counted once, however often it is met. */
static void refuse_value(const struct question *question, uint32_t major, struct cbn__blob value, int64_t size,
                         const char *problem)
{
    struct cbn__tier *tier = question->tier;
    struct tier_key name = entry_key(&question->key, major);
    const struct cbn__blob parts[] = {text(name.text), {&size, sizeof(size)}, value};
    struct cbn__hash mark = cbn__hash_blobs(parts, 3);
    bool known = false;
    (void)pthread_mutex_lock(&tier->mutex);
    for (uint32_t i = 0; i < CBN__TIER_REFUSED_MAX && !known; i++)
        known = cbn__hash_equal(&tier->refused[i], &mark);
    if (!known)
        tier->refused[tier->refused_next++ % CBN__TIER_REFUSED_MAX] = mark;
    (void)pthread_mutex_unlock(&tier->mutex);
    if (known)
        return;
    CBN__COUNT_TIER(tier, refused);
    cbn__sink_tell(&tier->sink, CBN_EVENT_DAMAGE, 0, "%s of %s is not used: %s; a build replaces it", name.text,
                   tier->address.shown, problem);
}

static const char *judge(const struct question *question, uint32_t major, struct cbn__entry *entry)
{
    struct cbn__store_key found, wanted = cbn__entry_key(&question->key, major);
    const char *problem = cbn__pack_entry_decode(entry, &found);
    if (problem)
        return problem;
    bool same = memcmp(found.bytes, wanted.bytes, sizeof(found.bytes)) == 0 &&
                cbn__blob_equal(entry->key_record, question->key_record);
    return same ? NULL : "it is the entry of another key or compiler";
}

/* One value, fetched and judged. ABSENT: gone meanwhile. */
static int32_t fetch(const struct question *question, uint32_t major, enum cbn__lookup *ret_found,
                     struct cbn__entry *ret_entry, struct cbn_error *err)
{
    struct tier_key name = entry_key(&question->key, major);
    struct cbn__tier_reply reply;
    char last[NUMBER_BYTES];
    (void)snprintf(last, sizeof(last), "%zu", CBN__TIER_VALUE_MAX_BYTES);
    struct cbn__tier_command command = {4, {text("GETRANGE"), text(name.text), text("0"), text(last)}};
    int32_t status = cbn__tier_exchange(question->tier, &command, 1, question->deadline_ns, &reply, err);
    if (status != CBN_STATUS_OK)
        return status;
    *ret_found = CBN__LOOKUP_ABSENT;
    if (reply.kind != CBN__REPLY_BYTES || reply.bytes.size == 0) {
        status = reply.kind == CBN__REPLY_BYTES || is_foreign(&reply) ? CBN_STATUS_OK : judge_other(&reply, err);
        cbn__tier_replies_done(&reply, 1);
        return status;
    }
    struct cbn__entry entry = {.bytes = reply.bytes, .layer_path = question->tier->address.shown};
    const char *problem = judge(question, major, &entry);
    if (problem) {
        *ret_found = CBN__LOOKUP_DAMAGED;
        refuse_value(question, major, cbn__buf_blob(&entry.bytes), 0, problem);
    } else if (!cbn__rule_takes_version(question->rule, entry.facts.compiler_version)) {
        *ret_found = CBN__LOOKUP_INCOMPATIBLE;
    } else {
        *ret_found = CBN__LOOKUP_HIT;
        *ret_entry = entry;
        return CBN_STATUS_OK;
    }
    cbn__entry_done(&entry);
    return CBN_STATUS_OK;
}

/* The newest compiler first. */
static int32_t fetch_best(const struct question *question, enum cbn__lookup *ret_found, struct cbn__entry *ret_entry,
                          struct cbn_error *err)
{
    int32_t status = CBN_STATUS_OK;
    bool is_incompatible = false;
    *ret_found = CBN__LOOKUP_ABSENT;
    for (uint32_t i = MAJOR_COUNT; i-- > 0 && status == CBN_STATUS_OK && *ret_found != CBN__LOOKUP_HIT;) {
        const int64_t size = question->sizes[i];
        uint32_t major = MAJOR_FIRST + i;
        if (size == 0)
            continue;
        if (!cbn__rule_takes_major(question->rule, major))
            is_incompatible = true;
        else if (size < 0)
            refuse_value(question, major, (struct cbn__blob){NULL, 0}, size, "it is no string");
        else if ((uint64_t)size > CBN__TIER_VALUE_MAX_BYTES)
            refuse_value(question, major, (struct cbn__blob){NULL, 0}, size, "it is larger than an entry may be");
        else
            status = fetch(question, major, ret_found, ret_entry, err);
        is_incompatible = is_incompatible || *ret_found == CBN__LOOKUP_INCOMPATIBLE;
    }
    if (*ret_found != CBN__LOOKUP_HIT)
        *ret_found = is_incompatible ? CBN__LOOKUP_INCOMPATIBLE : CBN__LOOKUP_ABSENT;
    return status;
}

enum cbn__lookup cbn__tier_find(struct cbn__tier *tier, struct cbn__blob key_record,
                                const struct cbn__compiler_rule *rule, const char *token, enum cbn__lease *ret_lease,
                                struct cbn__entry *ret_entry)
{
    enum cbn__lease lease = CBN__LEASE_NOT_HAD;
    enum cbn__lookup found = CBN__LOOKUP_IO;
    struct cbn_error why = {0};
    cbn__registry_check_pid();
    if (cbn__tier_enter(tier)) {
        struct question question = {.tier = tier,
                                    .key_record = key_record,
                                    .key = cbn__hash_blob(key_record),
                                    .rule = rule,
                                    .deadline_ns = cbn__tier_deadline_ns(tier)};
        int32_t status = ask_what_there_is(&question, token, &lease, &why);
        if (status == CBN_STATUS_OK)
            status = fetch_best(&question, &found, ret_entry, &why);
        if (status == CBN_STATUS_OK) {
            cbn__tier_wake(tier);
        } else {
            found = CBN__LOOKUP_IO;
            cbn__tier_fail(tier, &why);
        }
    } else {
        CBN__COUNT_TIER(tier, skipped);
    }
    if (token)
        *ret_lease = lease;
    return found;
}

bool cbn__tier_is_leased(struct cbn__tier *tier, const struct cbn__hash *key)
{
    struct tier_key lease = lease_key(key);
    const struct cbn__tier_command command = {2, {text("STRLEN"), text(lease.text)}};
    struct cbn__tier_reply reply;
    struct cbn_error why = {0};
    cbn__registry_check_pid();
    if (!cbn__tier_enter(tier))
        return false;
    int32_t status = cbn__tier_exchange(tier, &command, 1, cbn__tier_deadline_ns(tier), &reply, &why);
    if (status != CBN_STATUS_OK) {
        cbn__tier_fail(tier, &why);
        return false;
    }
    cbn__tier_wake(tier);
    bool leased = reply.kind == CBN__REPLY_INTEGER && reply.integer > 0;
    cbn__tier_replies_done(&reply, 1);
    return leased;
}

/* ---- publish ---- */

/* A server that answers and will not take it (full, read-only) is not gone: only this is lost, and told once. */
static int32_t judge_set(struct cbn__tier *tier, const struct cbn__tier_reply *reply, struct cbn_error *err)
{
    if (reply->kind == CBN__REPLY_STATUS) {
        CBN__COUNT_TIER(tier, pushes);
        return CBN_STATUS_OK;
    }
    struct cbn_error why;
    CBN__COUNT_TIER(tier, pushes_dropped);
    int32_t status = judge_other(reply, &why);
    if (!atomic_exchange(&tier->push_failure_said, true))
        cbn__sink_tell(&tier->sink, CBN_EVENT_NOTICE, status,
                       "a kernel could not be stored on the fleet's server %s: %s (further ones are counted, not told)",
                       tier->address.shown, why.message);
    if (err)
        *err = why;
    return status;
}

int32_t cbn__tier_publish(struct cbn__tier *tier, const struct cbn__hash *key, uint32_t major,
                          const struct cbn__blob *entry, const char *token, struct cbn_error *err)
{
    struct tier_key name = entry_key(key, major), lease = lease_key(key);
    struct cbn__tier_command commands[2];
    struct cbn__tier_reply replies[2];
    struct cbn_error why = {0};
    uint32_t count = 0;
    int32_t status = CBN_STATUS_OK;
    if (entry && (entry->size > CBN__TIER_VALUE_MAX_BYTES || major - MAJOR_FIRST >= MAJOR_COUNT)) {
        status = cbn__error_own(err, CBN_STATUS_LIMIT,
                                "an entry of %zu bytes, of a compiler of major %u, is none that the fleet tier takes",
                                entry->size, major);
        CBN__COUNT_TIER(tier, pushes_dropped);
        entry = NULL;
    }
    if (entry)
        commands[count++] = (struct cbn__tier_command){3, {text("SET"), text(name.text), *entry}};
    if (token)
        commands[count++] = (struct cbn__tier_command){
            5, {text("EVAL"), text(release_script), text("1"), text(lease.text), text(token)}};
    cbn__registry_check_pid();
    if (count == 0)
        return status;
    if (!cbn__tier_enter(tier)) {
        if (entry)
            CBN__COUNT_TIER(tier, pushes_dropped);
        return cbn__error_own(err, CBN_STATUS_IO, "the fleet's server %s failed a short while ago and is left alone",
                              tier->address.shown);
    }
    int32_t sent = cbn__tier_exchange(tier, commands, count, cbn__tier_deadline_ns(tier), replies, &why);
    if (sent != CBN_STATUS_OK) {
        if (entry)
            CBN__COUNT_TIER(tier, pushes_dropped);
        cbn__tier_fail(tier, &why);
        if (err)
            *err = why;
        return sent;
    }
    cbn__tier_wake(tier);
    if (entry)
        status = judge_set(tier, &replies[0], err);
    cbn__tier_replies_done(replies, count);
    return status;
}
