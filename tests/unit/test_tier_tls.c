/*
 * The fleet tier through TLS, where hiredis has it: a server with a certificate of an authority that the test makes.
 */
#include "fleet_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define SIZE 3000000 /* many records, and more than a socket takes at once */

static char certificates[64];

/* An authority, and a certificate of it for localhost and 127.0.0.1. */
static void make_certificates(void)
{
    char command[1024];
    (void)snprintf(certificates, sizeof(certificates), "/tmp/cubinet-tls-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(certificates));
    (void)snprintf(
        command, sizeof(command),
        "cd %s && exec 2>log && openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -subj /CN=ca "
        "-days 2 && openssl req -newkey rsa:2048 -nodes -keyout s.key -out s.csr -subj /CN=localhost && "
        "echo subjectAltName=DNS:localhost,IP:127.0.0.1 >ext && openssl x509 -req -in s.csr -CA ca.crt -CAkey "
        "ca.key -CAcreateserial -out s.crt -days 2 -extfile ext",
        certificates);
    ck_assert_int_eq(system(command), 0);
}

static void remove_certificates(void)
{
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", certificates);
    ck_assert_int_eq(system(command), 0);
}

static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    (void)close(fd);
    return ntohs(address.sin_port);
}

static struct server start_tls_server(unsigned port)
{
    char number[16], certificate[96], key[96], authority[96];
    (void)snprintf(number, sizeof(number), "%u", port);
    (void)snprintf(certificate, sizeof(certificate), "%s/s.crt", certificates);
    (void)snprintf(key, sizeof(key), "%s/s.key", certificates);
    (void)snprintf(authority, sizeof(authority), "%s/ca.crt", certificates);
    (void)setenv("SSL_CERT_FILE", authority, 1);
    return start_server((const char *const[]){"--tls-port", number, "--tls-cert-file", certificate, "--tls-key-file",
                                              key, "--tls-auth-clients", "no", NULL});
}

START_TEST(a_kernel_travels)
{
    unsigned port = free_port();
    char url[64];
    SERVER_AUTO server = start_tls_server(port);
    for (int i = 0; i < 2; i++) {
        MACHINE_AUTO a = start_machine(), b = start_machine();
        (void)snprintf(url, sizeof(url), "rediss://%s:%u/%d", i ? "127.0.0.1" : "localhost", port, i);
        open_machine(&a, url, "?timeout_ms=5000");
        open_machine(&b, url, "?timeout_ms=5000");
        ck_assert(obtain(&a, 1, SIZE, 0));
        EXPECT_COUNTS(&a, .misses = 2, .pushes = 1);
        ck_assert(!obtain(&b, 1, SIZE, 0));
        EXPECT_COUNTS(&b, .hits = 1);
    }
}
END_TEST

static void expect_failure(const char *url, const char *words)
{
    MACHINE_AUTO machine = start_machine();
    open_machine(&machine, url, "?timeout_ms=2000");
    ck_assert(obtain(&machine, 1, 1000, 0));
    EXPECT_COUNTS(&machine, .failures = 1, .skipped = 1, .pushes_dropped = 1);
    ck_assert_msg(strstr(machine.events.last, words), "%s", machine.events.last);
}

START_TEST(who_cannot_prove_it)
{
    unsigned port = free_port();
    char url[64];
    SERVER_AUTO server = start_tls_server(port);
    (void)snprintf(url, sizeof(url), "rediss://localhost:%u", port);
    (void)setenv("SSL_CERT_FILE", "/dev/null", 1);
    expect_failure(url, "certificate of the fleet's server is refused");
    (void)snprintf(url, sizeof(url), "rediss://127.0.0.2:%u", port);
    /* The authority is the right one again, the name is not. */
    char authority[96];
    (void)snprintf(authority, sizeof(authority), "%s/ca.crt", certificates);
    (void)setenv("SSL_CERT_FILE", authority, 1);
    expect_failure(url, "certificate of the fleet's server is refused");
    (void)snprintf(url, sizeof(url), "redis://localhost:%u", port);
    expect_failure(url, "fleet's server");
}
END_TEST

/* A server that speaks no TLS, and one that is silent: an answer, or none, like any other. */
START_TEST(who_speaks_none)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    char url[64];
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(listener, 8), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(url, sizeof(url), "rediss://localhost:%u", ntohs(address.sin_port));
    MACHINE_AUTO machine = start_machine();
    open_machine(&machine, url, "?timeout_ms=300");
    uint64_t start_ns = cbn__clock_monotonic_ns();
    ck_assert(obtain(&machine, 1, 1000, 0));
    ck_assert_uint_lt(since_ms(start_ns), 1500);
    EXPECT_COUNTS(&machine, .failures = 1, .skipped = 1, .pushes_dropped = 1);
    ck_assert_msg(strstr(machine.events.last, "in time"), "%s", machine.events.last);
    (void)close(listener);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tier_tls");
    TCase *cases = tcase_create("tier_tls");
    tcase_set_timeout(cases, 60);
    tcase_add_unchecked_fixture(cases, make_certificates, remove_certificates);
    tcase_add_test(cases, a_kernel_travels);
    tcase_add_test(cases, who_cannot_prove_it);
    tcase_add_test(cases, who_speaks_none);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
