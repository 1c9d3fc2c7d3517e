/*
 * Asking the fleet below the layers. See fleet.h.
 */
#include "cache/fleet.h"

#include "base/clock.h"
#include "base/error.h"
#include "cache/pack_entry.h"
#include "cache/tier_pool.h"

#define NS_PER_MS 1000000ull
#define SHORTEST_PAUSE_NS (20 * NS_PER_MS) /* of a wait for another machine's build */
#define LONGEST_PAUSE_NS (250 * NS_PER_MS)

/* The overlay keeps the tier's counters over every process that used it. */
static void keep_counters(struct cbn__cabinet *cabinet)
{
    struct cbn__store *overlay = cbn__cabinet_overlay(cabinet);
    if (!overlay)
        return;
#define CBN_X(name, text)                                                                                              \
    {                                                                                                                  \
        uint64_t count = atomic_exchange(&cabinet->tier->unwritten.name, 0);                                           \
        if (count)                                                                                                     \
            CBN__COUNT_LAYER(overlay, fleet_##name, count);                                                            \
    }
    CBN_FLEET_STAT_MAP(CBN_X)
#undef CBN_X
}

/* The look-up of one who holds the key's flight. */
static enum cbn__lookup find_or_lease(struct cbn__cabinet *cabinet, struct cbn__blob key_record,
                                      const struct cbn__compiler_rule *rule, struct cbn__claim *claim,
                                      struct cbn__entry *ret_entry)
{
    uint64_t pause_ns = SHORTEST_PAUSE_NS;
    bool waited = false;
    if (claim->is_leased)
        return cbn__tier_find(cabinet->tier, key_record, rule, NULL, NULL, ret_entry);
    cbn__tier_make_token(claim->token);
    for (;;) {
        enum cbn__lease lease = CBN__LEASE_NOT_HAD;
        enum cbn__lookup found = cbn__tier_find(cabinet->tier, key_record, rule, claim->token, &lease, ret_entry);
        claim->is_leased = lease == CBN__LEASE_TAKEN;
        uint64_t now_ns = cbn__clock_monotonic_ns();
        if (found == CBN__LOOKUP_HIT || lease != CBN__LEASE_BUSY || now_ns >= claim->deadline_ns)
            return found;
        if (!waited)
            CBN__COUNT_TIER(cabinet->tier, waits);
        waited = true;
        uint64_t left_ns = claim->deadline_ns - now_ns;
        cbn__clock_sleep_ns(pause_ns < left_ns ? pause_ns : left_ns);
        pause_ns = pause_ns * 3 / 2 < LONGEST_PAUSE_NS ? pause_ns * 3 / 2 : LONGEST_PAUSE_NS;
    }
}

/* What was pulled is stored like a build of now, whose time is not known; a fault of the store is counted there. */
static void keep_entry(struct cbn__cabinet *cabinet, struct cbn__entry *entry)
{
    entry->layer = CBN__LAYER_FLEET;
    entry->facts.created_s = cbn__clock_wall_s();
    (void)cbn__cabinet_store(cabinet, entry->key_record, entry->payload, entry->log, &entry->facts, NULL);
    CBN__COUNT_TIER(cabinet->tier, hits);
}

static enum cbn__lookup pull(struct cbn__cabinet *cabinet, struct cbn__blob key_record,
                             const struct cbn__compiler_rule *rule, struct cbn__claim *claim,
                             struct cbn__entry *ret_entry)
{
    enum cbn__lookup found = claim ? find_or_lease(cabinet, key_record, rule, claim, ret_entry)
                                   : cbn__tier_find(cabinet->tier, key_record, rule, NULL, NULL, ret_entry);
    if (found == CBN__LOOKUP_HIT)
        keep_entry(cabinet, ret_entry);
    else if (found != CBN__LOOKUP_IO)
        CBN__COUNT_TIER(cabinet->tier, misses);
    return found;
}

/* Others of the host may be pulling it just now, and are waited for as long as a question may take. */
static enum cbn__lookup pull_alone(struct cbn__cabinet *cabinet, struct cbn__blob key_record,
                                   const struct cbn__hash *key, const struct cbn__compiler_rule *rule,
                                   struct cbn__entry *ret_entry)
{
    struct cbn__flight flight;
    int32_t status = cbn__flight_begin(cabinet, key, cabinet->tier->address.timeout_ms, &flight, NULL);
    if (status == CBN_STATUS_TIMEOUT)
        return CBN__LOOKUP_BUSY;
    /* Another may have pulled or built it between our look-up and our claim. */
    enum cbn__lookup found = cbn__cabinet_search(cabinet, key_record, rule, ret_entry);
    if (found != CBN__LOOKUP_HIT)
        found = pull(cabinet, key_record, rule, NULL, ret_entry);
    cbn__flight_end(&flight);
    return found;
}

enum cbn__lookup cbn__fleet_find(struct cbn__cabinet *cabinet, struct cbn__blob key_record,
                                 const struct cbn__compiler_rule *rule, enum cbn__lookup local,
                                 struct cbn__entry *ret_entry)
{
    static const struct cbn__compiler_rule any;
    struct cbn__hash key = cbn__hash_blob(key_record);
    enum cbn__lookup found = CBN__LOOKUP_IO;
    if (cbn__tier_is_ready(cabinet->tier)) {
        struct cbn__claim *claim = cbn__flight_claim(cabinet, &key);
        found = claim ? pull(cabinet, key_record, rule ? rule : &any, claim, ret_entry)
                      : pull_alone(cabinet, key_record, &key, rule ? rule : &any, ret_entry);
    } else {
        CBN__COUNT_TIER(cabinet->tier, skipped);
    }
    keep_counters(cabinet);
    return found == CBN__LOOKUP_HIT ? CBN__LOOKUP_HIT : local;
}

void cbn__fleet_offer(struct cbn__cabinet *cabinet, const struct cbn__hash *key, struct cbn__blob key_record,
                      struct cbn__blob payload, const struct cbn__entry_facts *facts)
{
    struct cbn__claim *claim = cabinet->tier ? cbn__flight_claim(cabinet, key) : NULL;
    if (!claim)
        return;
    cbn__buf_done(&claim->entry);
    claim->major = facts->compiler_version / 1000;
    cbn__pack_entry_encode(key_record, payload, facts, &claim->entry);
}

void cbn__fleet_settle(struct cbn__cabinet *cabinet, const struct cbn__hash *key, struct cbn__claim *claim)
{
    const struct cbn__blob entry = cbn__buf_blob(&claim->entry);
    bool has_entry = entry.size > 0 && !claim->entry.failed;
    if (cabinet->tier && (has_entry || claim->is_leased)) {
        (void)cbn__tier_publish(cabinet->tier, key, claim->major, has_entry ? &entry : NULL,
                                claim->is_leased ? claim->token : NULL, NULL);
        keep_counters(cabinet);
    }
    cbn__buf_done(&claim->entry);
    claim->is_leased = false;
}

/* One entry of the layer that had it first, and those of its other compilers. */
struct push {
    struct cbn__cabinet *cabinet;
    struct cbn_error *err;
    int32_t status;
    uint32_t count;
};

static int push_entry(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                      uint32_t layer, const char *layer_path)
{
    (void)layer, (void)layer_path;
    struct push *push = user;
    if (problem)
        return 0;
    CBN__BUF_AUTO bytes = CBN__BUF_INIT;
    cbn__pack_entry_encode(entry->key_record, entry->payload, &entry->facts, &bytes);
    const struct cbn__blob blob = cbn__buf_blob(&bytes);
    push->status = bytes.failed ? cbn__error_no_memory(push->err)
                                : cbn__tier_publish(push->cabinet->tier, key, entry->facts.compiler_version / 1000,
                                                    &blob, NULL, push->err);
    push->count++;
    return push->status != CBN_STATUS_OK;
}

int32_t cbn__fleet_push(struct cbn__cabinet *cabinet, const char *key, struct cbn_error *err)
{
    struct push push = {.cabinet = cabinet, .err = err};
    if (!cabinet->tier)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND,
                              "no fleet server is named; name one with --fleet or CUBINET_FLEET");
    for (uint32_t i = 0; i < cabinet->layer_count && push.count == 0; i++) {
        int32_t status = cbn__cabinet_each_of(cabinet, i, key, push_entry, &push, err);
        if (status != CBN_STATUS_OK)
            return status;
    }
    keep_counters(cabinet);
    return push.count ? push.status
                      : cbn__error_own(err, CBN_STATUS_NOT_FOUND, "no layer holds an entry %.32s that verifies", key);
}
