/*
 * Where the fleet tier's server is and how it is asked, as a URL says it:
 *
 *   redis://[[USER]:PASSWORD@]HOST[:PORT][/DB][?OPTIONS]      rediss:// the same through TLS
 *   unix://[[USER]:PASSWORD@]/PATH[?OPTIONS]
 *   OPTIONS: timeout_ms, retry_ms, lease_ms, db (unix only), joined by &; user, password and path may hold %XX
 *
 * Knows no socket. What it says of a URL in an error, and shown, never hold the password.
 */
#ifndef CBN_CACHE_TIER_ADDRESS_H
#define CBN_CACHE_TIER_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <cubinet/status.h>

#define CBN__TIER_TEXT_BYTES 256u
#define CBN__TIER_TIMEOUT_MS 500u /* of one question, connecting included */
#define CBN__TIER_RETRY_MS 5000u  /* how long a server that failed is left alone */
#define CBN__TIER_LEASE_MS 30000u /* how long a builder that died keeps its key from others */

struct cbn__tier_address {
    bool tls;
    char path[CBN__TIER_TEXT_BYTES]; /* of a Unix socket; "": host and port */
    char host[CBN__TIER_TEXT_BYTES];
    char port[8];
    char user[CBN__TIER_TEXT_BYTES];     /* "": none */
    char password[CBN__TIER_TEXT_BYTES]; /* "": none */
    uint32_t db, timeout_ms, retry_ms, lease_ms;
    char shown[3 * CBN__TIER_TEXT_BYTES]; /* for people: the password as *** */
};

/* OK or INVALID. */
int32_t cbn__tier_address_parse(const char *url, struct cbn__tier_address *ret_address, struct cbn_error *err);

#endif
