/*
 * Names to policies and masks: lists, blanks, other families' names, and refusals that list what is known.
 */
#include <check.h>
#include <string.h>

#include "dispatch/decide.h"
#include "unit/invented_family.h"

static const char *const other_facts[] = {"m"};
static const struct cbn_candidate other_candidates[] = {{.name = "any"}, {.name = "tall"}};
static const struct cbn_policy_rule other_rules[] = {{.policy = "tuned", .candidate = "tall"}};
static const struct cbn_family other_family = {
    .size = sizeof(struct cbn_family),
    .name = "other",
    .facts = other_facts,
    .fact_count = 1,
    .sweep_fact = "m",
    .candidates = other_candidates,
    .candidate_count = 2,
    .rules = other_rules,
    .rule_count = 1,
};

static struct cbn__family *invented, *other;
static const struct cbn__family *both[2];

static void set_up(void)
{
    ck_assert_int_eq(cbn__family_create(&invented_family, NULL, &invented, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__family_create(&other_family, NULL, &other, NULL), CBN_STATUS_OK);
    both[0] = invented;
    both[1] = other;
}

static void tear_down(void)
{
    cbn__family_destroy(invented);
    cbn__family_destroy(other);
}

static struct cbn__route resolve(const struct cbn__family *family, const char *policy, const char *disable,
                                 const char *enable, bool strict)
{
    struct cbn__route route;
    struct cbn_error err = {0};
    memset(&route, 0xAA, sizeof(route));
    ck_assert_msg(cbn__route_resolve(family, both, 2, policy, disable, enable, strict, &route, &err) == CBN_STATUS_OK,
                  "%s", err.message);
    return route;
}

static void assert_refused(const char *policy, const char *disable, const char *enable, const char *message)
{
    struct cbn__route route = {.policy = 99};
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__route_resolve(invented, both, 2, policy, disable, enable, false, &route, &err),
                     CBN_STATUS_INVALID);
    ck_assert_int_eq(err.status, CBN_STATUS_INVALID);
    ck_assert_str_eq(err.message, message);
    ck_assert_uint_eq(route.policy, 99);
    ck_assert_int_eq(cbn__route_resolve(invented, both, 2, policy, disable, enable, false, &route, NULL),
                     CBN_STATUS_INVALID);
}

START_TEST(nothing_given_is_the_default)
{
    struct cbn__route route = resolve(invented, NULL, NULL, NULL, false);
    ck_assert_uint_eq(route.policy, 0);
    ck_assert_uint_eq(route.disabled_mask, 0);
    ck_assert_uint_eq(route.enabled_mask, 0);
    ck_assert(!route.strict);
    route = resolve(invented, "", "", "", true);
    ck_assert_uint_eq(route.policy, 0);
    ck_assert_uint_eq(route.disabled_mask, 0);
    ck_assert(route.strict);
}
END_TEST

START_TEST(lists_become_masks)
{
    ck_assert_uint_eq(resolve(invented, NULL, "any", NULL, false).disabled_mask, 4);
    ck_assert_uint_eq(resolve(invented, NULL, "small,any", "wide", false).disabled_mask, 5);
    ck_assert_uint_eq(resolve(invented, NULL, "small,any", "wide", false).enabled_mask, 2);
    ck_assert_uint_eq(resolve(invented, NULL, " small , any\t,", NULL, false).disabled_mask, 5);
    ck_assert_uint_eq(resolve(invented, NULL, ",,any,any", NULL, false).disabled_mask, 4);
    ck_assert_uint_eq(resolve(invented, NULL, " ", NULL, false).disabled_mask, 0);
}
END_TEST

START_TEST(another_family_may_own_the_name)
{
    ck_assert_uint_eq(resolve(invented, NULL, "tall", "tall", false).disabled_mask, 0);
    ck_assert_uint_eq(resolve(other, NULL, "tall,any,small", NULL, false).disabled_mask, 3);
    ck_assert_uint_eq(resolve(invented, "tuned", NULL, NULL, false).policy, 0);
    ck_assert_uint_eq(resolve(other, "tuned", NULL, NULL, false).policy, 0);
    ck_assert_uint_eq(resolve(other, "plain", NULL, NULL, false).policy, 1);
    ck_assert_str_eq(other->policies[1], "default");
    ck_assert_uint_eq(resolve(invented, "plain", NULL, NULL, false).policy, 1);
}
END_TEST

START_TEST(unknown_names_list_the_known)
{
    assert_refused("fast", NULL, NULL, "policy: 'fast' is not known; give one of default, plain, tuned");
    assert_refused(NULL, "smal", NULL, "disable: 'smal' is not a candidate; give some of small, wide, any, tall");
    assert_refused(NULL, "any,smalls", NULL,
                   "disable: 'smalls' is not a candidate; give some of small, wide, any, tall");
    assert_refused(NULL, "any", "x", "enable: 'x' is not a candidate; give some of small, wide, any, tall");
    assert_refused(NULL, "any small", NULL,
                   "disable: 'any small' is not a candidate; give some of small, wide, any, tall");
    assert_refused(NULL, "ANY", NULL, "disable: 'ANY' is not a candidate; give some of small, wide, any, tall");
    assert_refused(NULL, "a2345678901234567890123456789012345678901234567890123456789012345", NULL,
                   "disable: an item of 65 bytes is no candidate's name");
}
END_TEST

START_TEST(a_family_alone_knows_its_own)
{
    struct cbn__route route;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__route_resolve(invented, NULL, 0, "plain", "any", NULL, false, &route, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(route.policy, 1);
    ck_assert_uint_eq(route.disabled_mask, 4);
    ck_assert_int_eq(cbn__route_resolve(invented, NULL, 0, NULL, "tall", NULL, false, &route, &err),
                     CBN_STATUS_INVALID);
    ck_assert_str_eq(err.message, "disable: 'tall' is not a candidate; give some of small, wide, any");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route");
    TCase *tcase = tcase_create("route");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, nothing_given_is_the_default);
    tcase_add_test(tcase, lists_become_masks);
    tcase_add_test(tcase, another_family_may_own_the_name);
    tcase_add_test(tcase, unknown_names_list_the_known);
    tcase_add_test(tcase, a_family_alone_knows_its_own);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
