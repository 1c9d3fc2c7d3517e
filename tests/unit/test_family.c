/*
 * Registration: what is copied, and each refusal with the field that it names.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/family.h"
#include "jit/job.h"
#include "unit/failing_alloc.h"
#include "unit/invented_family.h"

/* A description whose every part may be changed by a test. */
struct draft {
    struct cbn_family family;
    const char *facts[CBN_FACTS_MAX + 1];
    struct cbn_guard noops[CBN_GUARDS_MAX + 1];
    struct cbn_candidate candidates[CBN_CANDIDATES_MAX + 1];
    struct cbn_param params[CBN_PARAMS_MAX + 1]; /* of candidates[0] */
    struct cbn_bucket buckets[3];                /* of params[0] */
    struct cbn_guard guards[CBN_GUARDS_MAX + 1]; /* of candidates[0] */
    struct cbn_header headers[2];                /* of candidates[0] */
    struct cbn_policy_rule rules[16];
};

static void draft_init(struct draft *draft)
{
    memset(draft, 0, sizeof(*draft));
    draft->family = invented_family;
    memcpy(draft->facts, invented_facts, sizeof(invented_facts));
    memcpy(draft->noops, invented_noops, sizeof(invented_noops));
    memcpy(draft->candidates, invented_candidates, sizeof(invented_candidates));
    memcpy(draft->params, invented_small_params, sizeof(invented_small_params));
    memcpy(draft->buckets, invented_tiles, sizeof(invented_tiles));
    memcpy(draft->guards, invented_small_guards, sizeof(invented_small_guards));
    memcpy(draft->headers, invented_headers, sizeof(invented_headers));
    memcpy(draft->rules, invented_rules, sizeof(invented_rules));
    draft->family.facts = draft->facts;
    draft->family.noops = draft->noops;
    draft->family.candidates = draft->candidates;
    draft->family.rules = draft->rules;
    draft->candidates[0].params = draft->params;
    draft->candidates[0].guards = draft->guards;
    draft->candidates[0].headers = draft->headers;
    draft->params[0].buckets = draft->buckets;
}

static void assert_taken(const struct draft *draft)
{
    struct cbn__family *family = NULL;
    struct cbn_error err = {0};
    ck_assert_msg(cbn__family_create(&draft->family, NULL, &family, &err) == CBN_STATUS_OK, "%s", err.message);
    cbn__family_destroy(family);
}

/* Refused with the status, the message beginning with "field:"; the output is untouched. */
static void assert_refused_as(const struct draft *draft, int32_t status, const char *field)
{
    struct cbn__family *const untouched = (struct cbn__family *)(uintptr_t)16;
    struct cbn__family *family = untouched;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__family_create(&draft->family, NULL, &family, &err), status);
    ck_assert_int_eq(err.status, status);
    ck_assert_ptr_eq(family, untouched);
    size_t length = strlen(field);
    ck_assert_msg(strncmp(err.message, field, length) == 0 && err.message[length] == ':', "%s, expected field %s",
                  err.message, field);
    ck_assert_int_eq(cbn__family_create(&draft->family, NULL, &family, NULL), status);
}

static void assert_refused(const struct draft *draft, const char *field)
{
    assert_refused_as(draft, CBN_STATUS_INVALID, field);
}

#define DRAFT(change)                                                                                                  \
    struct draft d;                                                                                                    \
    draft_init(&d);                                                                                                    \
    change

START_TEST(copies_everything)
{
    struct draft *d = malloc(sizeof(*d));
    ck_assert_ptr_nonnull(d);
    draft_init(d);
    struct cbn__family *family = NULL;
    ck_assert_int_eq(cbn__family_create(&d->family, NULL, &family, NULL), CBN_STATUS_OK);
    memset(d, 0x5A, sizeof(*d));
    free(d);

    ck_assert_str_eq(family->name, "row_scale");
    ck_assert_uint_eq(family->fact_count, FACTS);
    ck_assert_str_eq(family->facts[MAX_SMS], "max_sms");
    ck_assert_uint_eq(family->sweep_fact, ROWS);
    ck_assert_int_eq(family->arch_fact, ARCH);
    ck_assert_int_eq(family->max_sms_fact, MAX_SMS);
    ck_assert_int_eq(family->pdl_fact, PDL);
    ck_assert_int_eq(family->sms_fact, -1);
    ck_assert_uint_eq(family->noop_count, 1);
    ck_assert_uint_eq(family->noops[0].fact, ROWS);
    ck_assert_uint_eq(family->policy_count, 2);
    ck_assert_str_eq(family->policies[1], "plain");
    ck_assert_uint_eq(family->candidate_count, 3);

    const struct cbn__candidate *small = &family->candidates[0];
    ck_assert_str_eq(small->template.family, "row_scale");
    ck_assert_str_eq(small->template.name, "small");
    ck_assert_str_eq(small->template.source, invented_candidates[0].source);
    ck_assert_str_eq(small->template.source_name, "small.cu");
    ck_assert_str_eq(small->template.symbol, "small");
    ck_assert_uint_eq(small->template.header_count, 2);
    ck_assert_str_eq(small->template.header_names[0], "own/tile.h");
    ck_assert_str_eq(small->template.header_texts[1], "");
    ck_assert_uint_eq(small->template.flags, CBN_CANDIDATE_PDL);
    ck_assert_uint_eq(small->template.argument_layout, 7);
    ck_assert_uint_eq(small->template.argument_bytes, 8);
    ck_assert_ptr_eq((void *)(uintptr_t)small->geometry, (void *)(uintptr_t)invented_geometry);
    ck_assert_uint_eq(small->template.param_count, 3);
    ck_assert_str_eq(small->template.param_names[2], "PDL");
    ck_assert_uint_eq(small->params[0].bucket_count, 3);
    ck_assert_int_eq(small->params[0].buckets[1].value, 16);
    ck_assert_uint_eq(small->params[1].fact, OUT);
    ck_assert_uint_eq(small->guard_count, 3);
    ck_assert_int_eq(small->guards[0].value_end, 32);
    ck_assert_uint_eq(small->guards[2].fact, COLS);
    ck_assert(small->rules[0].present && !small->rules[1].present);

    const struct cbn__candidate *wide = &family->candidates[1];
    ck_assert_ptr_null(wide->template.source);
    ck_assert_uint_eq(wide->rules[0].guard_count, 2);
    ck_assert_uint_eq(wide->rules[0].guards[1].fact, MAX_SMS);
    cbn__family_destroy(family);
}
END_TEST

START_TEST(digest_is_the_given_one_or_of_the_source)
{
    struct cbn__hash given = {{1, 2, 3}};
    struct cbn__family *family = NULL;
    ck_assert_int_eq(cbn__family_create(&invented_family, &given, &family, NULL), CBN_STATUS_OK);
    ck_assert(cbn__hash_equal(&family->candidates[0].template.digest, &given));
    cbn__family_destroy(family);

    ck_assert_int_eq(cbn__family_create(&invented_family, NULL, &family, NULL), CBN_STATUS_OK);
    struct cbn__hash small = cbn__template_digest(&family->candidates[0].template);
    struct cbn__hash any = cbn__template_digest(&family->candidates[2].template);
    ck_assert(cbn__hash_equal(&family->candidates[0].template.digest, &small));
    ck_assert(!cbn__hash_equal(&small, &any));
    cbn__family_destroy(family);
}
END_TEST

START_TEST(finds_by_name)
{
    struct cbn__family *family = NULL;
    ck_assert_int_eq(cbn__family_create(&invented_family, NULL, &family, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(cbn__family_fact(family, "cols"), COLS);
    ck_assert_int_eq(cbn__family_fact(family, "col"), -1);
    ck_assert_int_eq(cbn__family_fact(family, NULL), -1);
    ck_assert_int_eq(cbn__family_candidate(family, "any"), 2);
    ck_assert_int_eq(cbn__family_candidate(family, "anyx"), -1);
    ck_assert_int_eq(cbn__family_policy(family, "plain"), 1);
    ck_assert_int_eq(cbn__family_policy(family, "reference"), -1);
    cbn__family_destroy(family);
    cbn__family_destroy(NULL);
}
END_TEST

START_TEST(default_policy_is_made_where_no_rule_names_it)
{
    DRAFT(d.family.rule_count = 0);
    struct cbn__family *family = NULL;
    ck_assert_int_eq(cbn__family_create(&d.family, NULL, &family, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(family->policy_count, 1);
    ck_assert_str_eq(family->policies[0], "default");
    for (int i = 0; i < 3; i++)
        ck_assert(family->candidates[i].rules[0].present && !family->candidates[i].rules[0].guard_count);
    cbn__family_destroy(family);

    draft_init(&d);
    d.family.rules = &d.rules[3];
    d.family.rule_count = 1;
    ck_assert_int_eq(cbn__family_create(&d.family, NULL, &family, NULL), CBN_STATUS_OK);
    ck_assert_uint_eq(family->policy_count, 2);
    ck_assert(!family->candidates[0].rules[0].present && family->candidates[0].rules[1].present);
    cbn__family_destroy(family);
}
END_TEST

START_TEST(refuses_sizes)
{
    struct cbn_error err = {0};
    struct cbn__family *family = NULL;
    ck_assert_int_eq(cbn__family_create(NULL, NULL, &family, &err), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "NULL"));
    struct {
        struct cbn_family family;
        uint8_t newer[8];
    } later = {invented_family, {0}};
    later.family.size = sizeof(later);
    ck_assert_int_eq(cbn__family_create(&later.family, NULL, &family, &err), CBN_STATUS_OK);
    cbn__family_destroy(family);
    later.newer[7] = 1;
    ck_assert_int_eq(cbn__family_create(&later.family, NULL, &family, &err), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "cbn_family"));
    later.family.size = 0;
    ck_assert_int_eq(cbn__family_create(&later.family, NULL, &family, &err), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "size"));
}
END_TEST

START_TEST(refuses_names_and_facts)
{
    DRAFT(d.family.name = NULL);
    assert_refused(&d, "name");
    static const char *const wrong[] = {
        "", "Row", "1row", "row-scale", "_row", "a234567890123456789012345678901234567890123456789012345678901234"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        draft_init(&d);
        d.family.name = wrong[i];
        assert_refused(&d, "name");
        draft_init(&d);
        d.candidates[1].name = wrong[i];
        assert_refused(&d, "candidates[1].name");
        draft_init(&d);
        d.rules[3].policy = wrong[i];
        assert_refused(&d, "rules[3].policy");
        draft_init(&d);
        d.facts[2] = wrong[i];
        assert_refused(&d, "facts[2]");
    }
    draft_init(&d);
    d.facts[3] = "rows";
    assert_refused(&d, "facts[3]");
    draft_init(&d);
    d.facts[1] = NULL;
    assert_refused(&d, "facts[1]");
    draft_init(&d);
    d.family.facts = NULL;
    assert_refused(&d, "facts");
    draft_init(&d);
    d.family.fact_count = CBN_FACTS_MAX + 1;
    assert_refused_as(&d, CBN_STATUS_LIMIT, "facts");
    draft_init(&d);
    d.family.sweep_fact = NULL;
    assert_refused(&d, "sweep_fact");
    d.family.sweep_fact = "m";
    assert_refused(&d, "sweep_fact");
}
END_TEST

START_TEST(refuses_guards)
{
    DRAFT(d.guards[1].fact = "nope");
    assert_refused(&d, "candidates[0].guards[1].fact");
    draft_init(&d);
    d.noops[0].fact = NULL;
    assert_refused(&d, "noops[0].fact");
    for (uint32_t relation = 0; relation <= 7; relation += 7) {
        draft_init(&d);
        d.guards[1].relation = relation;
        assert_refused(&d, "candidates[0].guards[1].relation");
    }
    static const uint32_t not_for_sweep[] = {CBN_RELATION_NE, CBN_RELATION_MULTIPLE_OF};
    for (size_t i = 0; i < 2; i++) {
        draft_init(&d);
        d.guards[0] = (struct cbn_guard){.fact = "rows", .relation = not_for_sweep[i], .value = 8};
        assert_refused(&d, "candidates[0].guards[0].relation");
        draft_init(&d);
        d.noops[0] = (struct cbn_guard){.fact = "rows", .relation = not_for_sweep[i], .value = 8};
        assert_refused(&d, "noops[0].relation");
        draft_init(&d);
        d.rules[0].guards = d.guards;
        d.rules[0].guard_count = 1;
        d.candidates[0].guard_count = 0;
        d.guards[0] = (struct cbn_guard){.fact = "rows", .relation = not_for_sweep[i], .value = 8};
        assert_refused(&d, "rules[0].guards[0].relation");
    }
    for (int64_t value = 0; value >= -64; value -= 64) {
        draft_init(&d);
        d.guards[2].value = value;
        assert_refused(&d, "candidates[0].guards[2].value");
    }
    draft_init(&d);
    d.guards[0].value_end = 1;
    assert_refused(&d, "candidates[0].guards[0].value_end");
    draft_init(&d);
    d.guards[0].reserved = 1;
    assert_refused(&d, "candidates[0].guards[0].reserved");
    draft_init(&d);
    d.candidates[0].guards = NULL;
    assert_refused(&d, "candidates[0].guards");
    draft_init(&d);
    d.candidates[0].guard_count = CBN_GUARDS_MAX + 1;
    assert_refused_as(&d, CBN_STATUS_LIMIT, "candidates[0].guards");
    draft_init(&d);
    d.family.noop_count = CBN_GUARDS_MAX + 1;
    assert_refused_as(&d, CBN_STATUS_LIMIT, "noops");
}
END_TEST

START_TEST(refuses_buckets)
{
    DRAFT(d.buckets[1].upper = 4);
    assert_refused(&d, "candidates[0].params[0].buckets[1].upper");
    draft_init(&d);
    d.buckets[1].upper = 3;
    assert_refused(&d, "candidates[0].params[0].buckets[1].upper");
    draft_init(&d);
    d.buckets[2].upper = INT64_MAX - 1;
    assert_refused(&d, "candidates[0].params[0].buckets[2].upper");
    draft_init(&d);
    d.params[0].bucket_count = 0;
    assert_refused(&d, "candidates[0].params[0].buckets");
    draft_init(&d);
    d.params[0].buckets = NULL;
    assert_refused(&d, "candidates[0].params[0].buckets");
    draft_init(&d);
    d.params[0].fact = "nope";
    assert_refused(&d, "candidates[0].params[0].fact");
}
END_TEST

START_TEST(refuses_params)
{
    static const char *const wrong[] = {NULL, "", "tile", "1T", "T-X", "A2345678901234567890123456789012"};
    DRAFT(d.params[1].fact = "nope");
    assert_refused(&d, "candidates[0].params[1].fact");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        draft_init(&d);
        d.params[1].name = wrong[i];
        assert_refused(&d, "candidates[0].params[1].name");
    }
    draft_init(&d);
    d.params[1].name = "TILE";
    assert_refused(&d, "candidates[0].params[1].name");
    draft_init(&d);
    d.params[1].source = 4;
    assert_refused(&d, "candidates[0].params[1].source");
    draft_init(&d);
    d.params[1].fact = "rows"; /* each M would be its own specialisation */
    assert_refused(&d, "candidates[0].params[1].source");
    draft_init(&d);
    d.params[2].name = "PDLX";
    assert_refused(&d, "candidates[0].flags");
    d.candidates[0].flags = 0;
    assert_taken(&d);
    draft_init(&d);
    d.candidates[0].params = NULL;
    assert_refused(&d, "candidates[0].params");
    draft_init(&d);
    d.candidates[0].param_count = CBN_PARAMS_MAX + 1;
    assert_refused_as(&d, CBN_STATUS_LIMIT, "candidates[0].params");
}
END_TEST

START_TEST(refuses_candidates)
{
    DRAFT(d.candidates[2].name = "small");
    assert_refused(&d, "candidates[2].name");
    draft_init(&d);
    d.candidates[2].name = NULL;
    assert_refused(&d, "candidates[2].name");
    draft_init(&d);
    d.candidates[1].flags = 8;
    assert_refused(&d, "candidates[1].flags");
    draft_init(&d);
    d.candidates[1].reserved = 1;
    assert_refused(&d, "candidates[1].reserved");
    draft_init(&d);
    d.candidates[0].source_name = NULL;
    assert_refused(&d, "candidates[0].source_name");
    static const char *const wrong[] = {NULL, "", "1small", "name<int>", "a b"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        draft_init(&d);
        d.candidates[0].symbol = wrong[i];
        assert_refused(&d, "candidates[0].symbol");
    }
    draft_init(&d);
    d.candidates[0].geometry = NULL;
    assert_refused(&d, "candidates[0].geometry");
    draft_init(&d);
    d.candidates[0].argument_bytes = 0;
    assert_refused(&d, "candidates[0].argument_bytes");
    d.candidates[0].argument_bytes = 32765;
    assert_refused(&d, "candidates[0].argument_bytes");
    draft_init(&d);
    d.family.candidate_count = 0;
    assert_refused(&d, "candidates");
    d.family.candidate_count = CBN_CANDIDATES_MAX + 1;
    assert_refused_as(&d, CBN_STATUS_LIMIT, "candidates");
    draft_init(&d);
    d.family.candidates = NULL;
    assert_refused(&d, "candidates");
}
END_TEST

START_TEST(refuses_headers)
{
    DRAFT(d.headers[1].text = NULL);
    assert_refused(&d, "candidates[0].headers[1]");
    draft_init(&d);
    d.headers[0].name = "";
    assert_refused(&d, "candidates[0].headers[0]");
    draft_init(&d);
    d.headers[1].name = "own/tile.h";
    assert_refused(&d, "candidates[0].headers[1].name");
    draft_init(&d);
    d.candidates[0].headers = NULL;
    assert_refused(&d, "candidates[0].headers");
    draft_init(&d);
    d.candidates[0].header_count = 65;
    assert_refused_as(&d, CBN_STATUS_LIMIT, "candidates[0].headers");
}
END_TEST

/* What registration takes, a build takes: the two had bounds of their own once. */
START_TEST(as_many_headers_as_a_build_takes)
{
    static char names[CBN__JOB_HEADERS_MAX][8];
    struct cbn_header headers[CBN__JOB_HEADERS_MAX];
    struct cbn__family *family = NULL;
    __attribute__((cleanup(cbn__job_texts_done))) struct cbn__job_texts texts = {.source = CBN__BUF_INIT};
    struct cbn__job job;
    for (int i = 0; i < CBN__JOB_HEADERS_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%d.h", i);
        headers[i] = (struct cbn_header){names[i], ""};
    }
    DRAFT(d.candidates[0].headers = headers);
    d.candidates[0].header_count = CBN__JOB_HEADERS_MAX;
    ck_assert_int_eq(cbn__family_create(&d.family, NULL, &family, NULL), CBN_STATUS_OK);
    const struct cbn__spec spec = {.template = &family->candidates[0].template, .arch = CBN_ARCH(90, 'a')};
    ck_assert_int_eq(cbn__job_init(&job, &spec, &texts, NULL), CBN_STATUS_OK);
    ck_assert_int_eq(job.header_count, 64);
    cbn__family_destroy(family);
}
END_TEST

static void assert_told(const struct draft *draft, const char *words)
{
    struct cbn__family *family = NULL;
    struct cbn_error err = {0};
    ck_assert_int_eq(cbn__family_create(&draft->family, NULL, &family, &err), CBN_STATUS_INVALID);
    ck_assert_msg(strncmp(err.message, words, strlen(words)) == 0, "%s", err.message);
}

START_TEST(refuses_what_the_key_does_not_hold)
{
    struct cbn__hash digest = {{0}};
    struct cbn__family *family = NULL;
    DRAFT(d.candidates[0].source = "#include \"own/tile.h\"\n#include \"disk.h\"\n");
    assert_told(&d, "candidates[0].source: small.cu:2: #include \"disk.h\" names none of the given headers, so ");
    ck_assert_int_eq(cbn__family_create(&d.family, &digest, &family, NULL), CBN_STATUS_OK); /* a built-in's */
    cbn__family_destroy(family);
    d.candidates[0].source = "const char *built = __DATE__;\n";
    assert_told(&d, "candidates[0].source: small.cu:1: __DATE__ changes with the time of the build, so ");
    draft_init(&d);
    d.headers[1].text = "\n#include <own/tile.h>\n#if __has_include(\"disk.h\")\n#endif\n";
    assert_told(&d, "candidates[0].headers[1].text: own/io.h:3: __has_include(\"disk.h\" names none of ");
    d.headers[1].text = "#include <own/tile.h>\n";
    assert_taken(&d);
}
END_TEST

START_TEST(refuses_rules)
{
    DRAFT(d.rules[3].candidate = "nope");
    assert_refused(&d, "rules[3].candidate");
    draft_init(&d);
    d.rules[3].candidate = NULL;
    assert_refused(&d, "rules[3].candidate");
    draft_init(&d);
    d.rules[3].policy = NULL;
    assert_refused(&d, "rules[3].policy");
    draft_init(&d);
    d.rules[3].policy = "default";
    assert_refused(&d, "rules[3].candidate");
    draft_init(&d);
    d.rules[3].reserved = 1;
    assert_refused(&d, "rules[3].reserved");
    draft_init(&d);
    d.rules[1].guards = NULL;
    assert_refused(&d, "rules[1].guards");
    draft_init(&d);
    d.family.rules = NULL;
    assert_refused(&d, "rules");
}
END_TEST

START_TEST(bounds_the_policies)
{
    static const char *const names[] = {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"};
    DRAFT(d.family.rule_count = 7);
    for (size_t i = 0; i < 8; i++)
        d.rules[i] = (struct cbn_policy_rule){.policy = names[i], .candidate = "any"};
    assert_taken(&d); /* seven and "default" */
    d.family.rule_count = 8;
    assert_refused_as(&d, CBN_STATUS_LIMIT, "rules");
    d.rules[8] = (struct cbn_policy_rule){.policy = "p8", .candidate = "any"};
    d.family.rule_count = 9;
    assert_refused_as(&d, CBN_STATUS_LIMIT, "rules[8].policy");
}
END_TEST

START_TEST(each_failed_allocation_is_no_memory)
{
    int32_t status = CBN_STATUS_NO_MEMORY;
    int count = 0;
    for (; status == CBN_STATUS_NO_MEMORY && count < 1000; count++) {
        struct cbn__family *family = NULL;
        struct cbn_error err = {0};
        allocs_left = count;
        status = cbn__family_create(&invented_family, &(struct cbn__hash){{0}}, &family, &err);
        allocs_left = -1;
        ck_assert_int_eq(err.status, status);
        ck_assert_int_eq(family != NULL, status == CBN_STATUS_OK);
        cbn__family_destroy(family);
    }
    ck_assert_int_eq(status, CBN_STATUS_OK);
    ck_assert_int_gt(count, 40);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("family");
    TCase *tcase = tcase_create("family");
    tcase_add_test(tcase, copies_everything);
    tcase_add_test(tcase, digest_is_the_given_one_or_of_the_source);
    tcase_add_test(tcase, finds_by_name);
    tcase_add_test(tcase, default_policy_is_made_where_no_rule_names_it);
    tcase_add_test(tcase, refuses_sizes);
    tcase_add_test(tcase, refuses_names_and_facts);
    tcase_add_test(tcase, refuses_guards);
    tcase_add_test(tcase, refuses_buckets);
    tcase_add_test(tcase, refuses_params);
    tcase_add_test(tcase, refuses_candidates);
    tcase_add_test(tcase, refuses_headers);
    tcase_add_test(tcase, as_many_headers_as_a_build_takes);
    tcase_add_test(tcase, refuses_what_the_key_does_not_hold);
    tcase_add_test(tcase, refuses_rules);
    tcase_add_test(tcase, bounds_the_policies);
    tcase_add_test(tcase, each_failed_allocation_is_no_memory);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
