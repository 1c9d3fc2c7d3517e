/*
 * TLS through hiredis_ssl, with OpenSSL's checks of name and chain, which hiredis' own set-up leaves out. See
 * tier_tls.h.
 */
#include "cache/tier_tls.h"

#include <arpa/inet.h>
#include <hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/error.h"

static bool is_number(const char *host)
{
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

static bool expect_host(SSL *ssl, const char *host)
{
    if (is_number(host))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static SSL *make_ssl(const char *host)
{
    SSL_CTX *shared = SSL_CTX_new(TLS_client_method());
    SSL *ssl = NULL;
    if (shared && SSL_CTX_set_min_proto_version(shared, TLS1_2_VERSION) == 1 &&
        SSL_CTX_set_default_verify_paths(shared) == 1) {
        SSL_CTX_set_verify(shared, SSL_VERIFY_PEER, NULL);
        ssl = SSL_new(shared);
    }
    SSL_CTX_free(shared);
    if (ssl && !expect_host(ssl, host)) {
        SSL_free(ssl);
        ssl = NULL;
    }
    return ssl;
}

int32_t cbn__tier_tls_refuse(const char *problem, struct cbn_error *err)
{
    return cbn__error_own(err, CBN_STATUS_IO, "the certificate of the fleet's server is refused: %.100s", problem);
}

int32_t cbn__tier_tls_begin(redisContext *context, const struct cbn__tier_address *address, struct ssl_st **ret_ssl,
                            struct cbn_error *err)
{
    SSL *ssl = make_ssl(address->host);
    if (!ssl) {
        ERR_clear_error();
        return cbn__error_own(err, CBN_STATUS_IO, "TLS to the fleet's server cannot be set up by this OpenSSL");
    }
    if (redisInitiateSSL(context, ssl) == REDIS_OK) {
        *ret_ssl = ssl;
        return CBN_STATUS_OK;
    }
    const char *problem = cbn__tier_tls_problem(ssl);
    int32_t status = problem[0] ? cbn__tier_tls_refuse(problem, err)
                                : cbn__error_own(err, CBN_STATUS_IO, "TLS to the fleet's server was not begun: %.100s",
                                                 context->errstr);
    SSL_free(ssl);
    ERR_clear_error();
    return status;
}

bool cbn__tier_tls_wants_write(const struct ssl_st *ssl)
{
    return SSL_want_write(ssl);
}

const char *cbn__tier_tls_problem(const struct ssl_st *ssl)
{
    long result = SSL_get_verify_result(ssl);
    return result == X509_V_OK ? "" : X509_verify_cert_error_string(result);
}
