/*
 * The URL of the fleet tier's server: what is taken, what is refused, and that nothing that is shown holds a password.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/tier.h"

struct row {
    const char *url;
    struct cbn__tier_address address;
};

#define TIMES .timeout_ms = CBN__TIER_TIMEOUT_MS, .retry_ms = CBN__TIER_RETRY_MS, .lease_ms = CBN__TIER_LEASE_MS

static const struct row taken[] = {
    {"redis://cache", {TIMES, .host = "cache", .port = "6379", .shown = "redis://cache:6379/0"}},
    {"redis://cache/", {TIMES, .host = "cache", .port = "6379", .shown = "redis://cache:6379/0"}},
    {"redis://10.0.0.1:7000/15",
     {TIMES, .host = "10.0.0.1", .port = "7000", .db = 15, .shown = "redis://10.0.0.1:7000/15"}},
    {"rediss://[::1]:1/2", {TIMES, .tls = true, .host = "::1", .port = "1", .db = 2, .shown = "rediss://[::1]:1/2"}},
    {"redis://[fe80::1]", {TIMES, .host = "fe80::1", .port = "6379", .shown = "redis://[fe80::1]:6379/0"}},
    {"redis://:se%40cr%65t@cache",
     {TIMES, .host = "cache", .port = "6379", .password = "se@cret", .shown = "redis://:***@cache:6379/0"}},
    {"redis://:se@c:ret@cache:1",
     {TIMES, .host = "cache", .port = "1", .password = "se@c:ret", .shown = "redis://:***@cache:1/0"}},
    {"redis://me:secret@cache",
     {TIMES, .host = "cache", .port = "6379", .user = "me", .password = "secret",
      .shown = "redis://me:***@cache:6379/0"}},
    {"redis://:@cache", {TIMES, .host = "cache", .port = "6379", .shown = "redis://cache:6379/0"}},
    {"unix:///run/redis.sock", {TIMES, .path = "/run/redis.sock", .shown = "unix:///run/redis.sock?db=0"}},
    {"unix://:secret@/run/a%20b?db=4",
     {TIMES, .path = "/run/a b", .password = "secret", .db = 4, .shown = "unix://:***@/run/a b?db=4"}},
    {"redis://h?timeout_ms=7&retry_ms=8&lease_ms=9",
     {.timeout_ms = 7, .retry_ms = 8, .lease_ms = 9, .host = "h", .port = "6379", .shown = "redis://h:6379/0"}},
    {"redis://h?", {TIMES, .host = "h", .port = "6379", .shown = "redis://h:6379/0"}},
};

START_TEST(what_is_taken)
{
    const struct row *row = &taken[_i];
    struct cbn__tier_address got;
    struct cbn_error err = {0};
    ck_assert_msg(cbn__tier_address_parse(row->url, &got, &err) == CBN_STATUS_OK, "%s: %s", row->url, err.message);
    ck_assert_str_eq(got.host, row->address.host);
    ck_assert_str_eq(got.port, row->address.port);
    ck_assert_str_eq(got.path, row->address.path);
    ck_assert_str_eq(got.user, row->address.user);
    ck_assert_str_eq(got.password, row->address.password);
    ck_assert_str_eq(got.shown, row->address.shown);
    ck_assert_int_eq(got.tls, row->address.tls);
    ck_assert_uint_eq(got.db, row->address.db);
    ck_assert_uint_eq(got.timeout_ms, row->address.timeout_ms);
    ck_assert_uint_eq(got.retry_ms, row->address.retry_ms);
    ck_assert_uint_eq(got.lease_ms, row->address.lease_ms);
}
END_TEST

static const char *const refused[] = {
    "",
    "cache",
    "cache:6379",
    "http://cache",
    "redis:/cache",
    "redis://",
    "redis:///0",
    "redis://:sesame",
    "redis://h:",
    "redis://h:0",
    "redis://h:65536",
    "redis://h:-1",
    "redis://h:1x",
    "redis://h:99999999999999999999",
    "redis://h/x",
    "redis://h/65536",
    "redis://h/0/1",
    "redis://h/-1",
    "redis://h?x=1",
    "redis://h?timeout_ms",
    "redis://h?timeout_ms=",
    "redis://h?timeout_ms=0",
    "redis://h?timeout_ms=1s",
    "redis://h?timeout_ms=3600001",
    "redis://h?retry_ms=0",
    "redis://h?lease_ms=0",
    "redis://h?db=1",
    "redis://h?&",
    "redis://h?timeout_ms=1&",
    "redis://[::1",
    "redis://[::1]x",
    "redis://h%20",
    "redis://sesame@h",
    "redis://:sesame%@h",
    "redis://:sesame%4@h",
    "redis://:sesame%zz@h",
    "redis://:sesame%00@h",
    "redis://:ses/ame@h",
    "redis://me:1/sesame@h",
    "redis://me:ses/ame@h",
    "redis://:ses ame@h",
    "redis://:ses\name@h",
    "redis://:sesame@",
    "redis://:sesame@:1",
    "unix://",
    "unix://run/s",
    "unix://:sesame@run/s",
    "unix:///run/s?db=x",
    "unix:///run/s%00x",
    "unix:///run/%",
    ("unix:///123456789/"
     "2345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"),
};

START_TEST(what_is_refused)
{
    struct cbn__tier_address got = {.db = 77};
    struct cbn_error err = {0};
    ck_assert_msg(cbn__tier_address_parse(refused[_i], &got, &err) == CBN_STATUS_INVALID, "%s", refused[_i]);
    ck_assert_uint_eq(got.db, 77);
    ck_assert_int_eq(err.status, CBN_STATUS_INVALID);
    ck_assert_msg(strstr(err.message, "fleet: ") == err.message, "%s", err.message);
    ck_assert_msg(!strstr(err.message, "ses"), "%s", err.message);
    ck_assert_ptr_nonnull(strstr(err.message, "redis://[[USER]:PASSWORD@]HOST"));
}
END_TEST

START_TEST(parts_that_are_too_long)
{
    static const char *const shapes[] = {"redis://%s", "redis://:%s@h", "redis://%s:x@h", "unix:///%s"};
    char part[CBN__TIER_TEXT_BYTES + 1], url[2 * CBN__TIER_TEXT_BYTES];
    struct cbn__tier_address got;
    memset(part, 'a', CBN__TIER_TEXT_BYTES);
    part[CBN__TIER_TEXT_BYTES] = '\0';
    for (int i = 0; i < 4; i++) {
        char shape[32];
        (void)snprintf(shape, sizeof(shape), "%s", shapes[i]);
        char *hole = strstr(shape, "%s");
        (void)snprintf(url, sizeof(url), "%.*s%s%s", (int)(hole - shape), shape, part, hole + 2);
        ck_assert_int_eq(cbn__tier_address_parse(url, &got, NULL), CBN_STATUS_INVALID);
        (void)snprintf(url, sizeof(url), "%.*s%s%s", (int)(hole - shape), shape, part + 1, hole + 2);
        ck_assert_int_eq(cbn__tier_address_parse(url, &got, NULL), i < 3 ? CBN_STATUS_OK : CBN_STATUS_INVALID);
    }
}
END_TEST

/* TLS, or all of it, is not in every build: a typed error names what to do, and no password. */
START_TEST(what_this_library_lacks)
{
    const struct cbn__sink silence = {0};
    struct cbn__tier *tier = NULL;
    struct cbn_error err = {0};
#ifdef CBN_REDIS_SERVER
    ck_assert_int_eq(cbn__tier_open("redis://:sesame@cache", &silence, &tier, &err), CBN_STATUS_OK);
    ck_assert_str_eq(cbn__tier_address(tier)->shown, "redis://:***@cache:6379/0");
    cbn__tier_close(tier);
#ifdef CBN_FLEET_TLS
    ck_assert_int_eq(cbn__tier_open("rediss://:sesame@cache", &silence, &tier, &err), CBN_STATUS_OK);
    cbn__tier_close(tier);
#else
    ck_assert_int_eq(cbn__tier_open("rediss://:sesame@cache", &silence, &tier, &err), CBN_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "no TLS"), "%s", err.message);
#endif
#else
    ck_assert_int_eq(cbn__tier_open("redis://:sesame@cache", &silence, &tier, &err), CBN_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "-DCUBINET_FLEET=ON"), "%s", err.message);
#endif
    ck_assert_ptr_null(strstr(err.message, "sesame"));
    ck_assert_int_eq(cbn__tier_open("cache", &silence, &tier, &err), CBN_STATUS_INVALID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tier_address");
    TCase *cases = tcase_create("tier_address");
    tcase_add_loop_test(cases, what_is_taken, 0, (int)(sizeof(taken) / sizeof(taken[0])));
    tcase_add_loop_test(cases, what_is_refused, 0, (int)(sizeof(refused) / sizeof(refused[0])));
    tcase_add_test(cases, parts_that_are_too_long);
    tcase_add_test(cases, what_this_library_lacks);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
