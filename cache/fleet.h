/*
 * The cabinet's side of the fleet tier: when it is asked, what is kept of its answers, and who builds.
 *
 * A look-up outside of a flight takes the key's flight for as long as it pulls, so that one of a host pulls. In a
 * flight it also takes the fleet's lease for the key, or waits for who has it, until the flight's deadline; then the
 * caller builds. What the holder of a flight stores is published after the flight is given back, so that nobody on the
 * host waits for the network; then the lease goes.
 */
#ifndef CBN_CACHE_FLEET_H
#define CBN_CACHE_FLEET_H

#include "cache/layer.h"
#include "cache/tier.h"

/* What a flight holds of the fleet, in its node: used by the holder's thread alone. */
struct cbn__claim {
    uint64_t deadline_ns; /* of the flight */
    bool is_leased;
    char token[CBN__TIER_TOKEN_BYTES];
    uint32_t major;
    struct cbn__buf entry; /* to be published; empty: none */
};

/* Below the layers, which answered local. HIT with *ret_entry, which then stands in the overlay too; else local. */
enum cbn__lookup cbn__fleet_find(struct cbn__cabinet *cabinet, struct cbn__blob key_record,
                                 const struct cbn__compiler_rule *rule, enum cbn__lookup local,
                                 struct cbn__entry *ret_entry);
/* A build of the key whose flight this thread holds: kept until cbn__fleet_settle. Else nothing. */
void cbn__fleet_offer(struct cbn__cabinet *cabinet, const struct cbn__hash *key, struct cbn__blob key_record,
                      struct cbn__blob payload, const struct cbn__entry_facts *facts);
/* After the flight was given back. Empties the claim. */
void cbn__fleet_settle(struct cbn__cabinet *cabinet, const struct cbn__hash *key, struct cbn__claim *claim);

/* See cbn_fleet_push. key: 32 hex digits. */
int32_t cbn__fleet_push(struct cbn__cabinet *cabinet, const char *key, struct cbn_error *err);

/* flight.c: of the flight that this thread holds; NULL: none. */
struct cbn__claim *cbn__flight_claim(struct cbn__cabinet *cabinet, const struct cbn__hash *key);

#endif
