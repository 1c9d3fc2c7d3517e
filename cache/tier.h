/*
 * The fleet tier: a server, shared by many machines, of entries as they travel (pack_entry.h). It is asked below every
 * layer. What it answers is verified like a pack's entry and against the key that was asked; what does not verify is
 * counted, told once and left where it is: a build replaces it.
 *
 *   cubinet:1:KEY:MAJOR    a string: the entry of that key (32 hex digits) and compiler major
 *   cubinet:1:KEY:lease    who builds it just now: a random token, which expires by itself
 *
 * A server that is gone or slow costs one question's time; then nobody asks until retry_ms have passed, and then one
 * caller, alone, finds out whether it is back.
 *
 * Locks: tier.mutex guards the links and what was refused; it is never held across the network. In the registry's
 * order it stands behind the stores' locks, before that of the flights. A child of fork closes its parent's links.
 */
#ifndef CBN_CACHE_TIER_H
#define CBN_CACHE_TIER_H

#include <cubinet/fleet.h>

#include "cache/cabinet.h"
#include "cache/tier_link.h"

#define CBN__TIER_TOKEN_BYTES 33u /* 32 hex digits and a NUL */
#define CBN__TIER_VALUE_MAX_BYTES ((size_t)16 << 20)

struct cbn__tier;

struct cbn__tier_counters {
#define CBN_X(name, text) uint64_t name;
    CBN_FLEET_STAT_MAP(CBN_X)
#undef CBN_X
};

/* Connects to nothing yet. INVALID (of the URL), UNSUPPORTED (this library cannot), NO_MEMORY. */
int32_t cbn__tier_open(const char *url, const struct cbn__sink *sink, struct cbn__tier **ret_tier,
                       struct cbn_error *err);
void cbn__tier_close(struct cbn__tier *tier); /* NULL is accepted */
const struct cbn__tier_address *cbn__tier_address(const struct cbn__tier *tier);
void cbn__tier_counters(const struct cbn__tier *tier, struct cbn__tier_counters *ret_counters);

/* It may be asked now: it was not found gone a short while ago. */
bool cbn__tier_is_ready(const struct cbn__tier *tier);

enum cbn__lease {
    CBN__LEASE_TAKEN = 0,
    CBN__LEASE_BUSY,   /* somebody else builds */
    CBN__LEASE_NOT_HAD /* nobody can have one: the server refuses writes, or is gone */
};

/*
 * One question, within one timeout: HIT with a verified entry, its log empty; ABSENT (also: what is there was
 * refused), INCOMPATIBLE (the rule refuses all there is), IO (no answer; or not asked, as it is not ready). token: also
 * takes the key's lease where it is free, before it looks; NULL: takes none, ret_lease is not written.
 */
enum cbn__lookup cbn__tier_find(struct cbn__tier *tier, struct cbn__blob key_record,
                                const struct cbn__compiler_rule *rule, const char *token, enum cbn__lease *ret_lease,
                                struct cbn__entry *ret_entry);

/* Somebody builds the key just now. False also where there is no answer. */
bool cbn__tier_is_leased(struct cbn__tier *tier, const struct cbn__hash *key);

/*
 * Stores an entry (NULL: none) and gives a lease back (token NULL: none), in this order. OK; LIMIT (above
 * CBN__TIER_VALUE_MAX_BYTES), TIMEOUT, IO, DAMAGED, NO_MEMORY: the entry is not there, which is counted.
 */
int32_t cbn__tier_publish(struct cbn__tier *tier, const struct cbn__hash *key, uint32_t major,
                          const struct cbn__blob *entry, const char *token, struct cbn_error *err);
void cbn__tier_make_token(char ret_token[CBN__TIER_TOKEN_BYTES]);

/* Asks whatever the breaker says, and closes it. The strings of *ret_info belong to the tier. */
int32_t cbn__tier_inspect(struct cbn__tier *tier, struct cbn_fleet_info *ret_info, struct cbn_error *err);

/* Round fork, called by the registry. */
void cbn__tier_fork_before(struct cbn__tier *tier);
void cbn__tier_fork_after(struct cbn__tier *tier);
void cbn__tier_fork_child(struct cbn__tier *tier);

#endif
