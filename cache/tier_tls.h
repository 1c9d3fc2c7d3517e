/*
 * TLS on a link, where hiredis has it (hiredis_ssl, 1.0 or later). The server's certificate must verify against the
 * system's authorities (OpenSSL's SSL_CERT_FILE and SSL_CERT_DIR name others) and bear the host's name.
 */
#ifndef CBN_CACHE_TIER_TLS_H
#define CBN_CACHE_TIER_TLS_H

#include <hiredis.h>

#include "cache/tier_link.h"

struct ssl_st;

/* The handshake goes on with the first bytes. On OK *ret_ssl is the context's, and goes with it. */
int32_t cbn__tier_tls_begin(redisContext *context, const struct cbn__tier_address *address, struct ssl_st **ret_ssl,
                            struct cbn_error *err);
/* What it could not write waits for the socket to take more; else for what the server says. */
bool cbn__tier_tls_wants_write(const struct ssl_st *ssl);
/* Why the handshake was given up, as far as the certificate is to blame; "" otherwise. */
const char *cbn__tier_tls_problem(const struct ssl_st *ssl);
int32_t cbn__tier_tls_refuse(const char *problem, struct cbn_error *err);

#endif
