/*
 * The cabinet through the public interface: show, source, pins, prune by every rule, counters. Entries are planted with
 * the key records of the built-in kernels; no compiler is needed.
 */
#include "api/runtime.h"

#include "base/clock.h"
#include "cache_fixture.h"

#define MINUTE_S 60

struct bench {
    struct scratch scratch;
    struct cbn_runtime *runtime;
    struct cbn__cabinet *cabinet;
};

static struct cbn_runtime *create(const char *cache, const char *base, uint32_t flags)
{
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    struct cbn_runtime *runtime = NULL;
    struct cbn_error err = {0};
    options.cache_dir = cache;
    options.base_dirs = base ? &base : NULL;
    options.base_count = base ? 1 : 0;
    options.flags = flags;
    options.lock_timeout_ms = 5000;
    ck_assert_msg(cbn_runtime_create(&options, &runtime, &err) == CBN_STATUS_OK, "%s", err.message);
    return runtime;
}

static struct bench bench_make(void)
{
    struct bench bench = {.scratch = scratch_make_in_memory()};
    bench.runtime = create(in(&bench.scratch, "cache"), NULL, 0);
    bench.cabinet = bench.runtime->cabinet;
    return bench;
}

static void bench_done(struct bench *bench)
{
    cbn_runtime_destroy(bench->runtime);
    scratch_done(&bench->scratch);
}

#define BENCH_AUTO __attribute__((cleanup(bench_done))) struct bench

/* The first candidate with a source of that family; variant goes into its first parameter. */
static struct cbn__spec spec_of(const struct cbn_runtime *runtime, const char *op, uint32_t arch, int64_t variant)
{
    const struct cbn__family *family = cbn__runtime_family((struct cbn_runtime *)(uintptr_t)runtime, op, NULL);
    ck_assert_ptr_nonnull(family);
    uint32_t i = 0;
    while (!family->candidates[i].template.source)
        i++;
    struct cbn__spec spec = {.template = &family->candidates[i].template, .arch = arch};
    for (uint32_t p = 0; p < spec.template->param_count; p++)
        spec.params[p] = p == 0 ? variant : 2 + p;
    return spec;
}

struct planted {
    const char *op;
    uint32_t arch;
    int64_t variant;
    uint32_t compiler;
    int64_t age_s;
    size_t size;
};

static void plant_record(struct cbn__cabinet *cabinet, struct cbn__blob record, const struct planted *planted)
{
    struct cbn__entry_facts facts = facts_of(planted->compiler);
    facts.created_s = cbn__clock_wall_s() - planted->age_s;
    uint8_t *payload = calloc(1, planted->size);
    struct cbn_error err = {0};
    int32_t status = cbn__cabinet_put(cabinet, record, (struct cbn__blob){payload, planted->size},
                                      cbn__blob_text("said"), &facts, &err);
    free(payload);
    ck_assert_msg(status == CBN_STATUS_OK, "%s", err.message);
}

/* The key's text in ret_key. */
static void plant(const struct bench *bench, const struct planted *planted, char ret_key[CBN__HASH_TEXT_BYTES])
{
    struct cbn__spec spec = spec_of(bench->runtime, planted->op, planted->arch, planted->variant);
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(&spec, &record);
    struct cbn__hash key = cbn__key_hash(cbn__buf_blob(&record));
    cbn__hash_format(&key, ret_key);
    plant_record(bench->cabinet, cbn__buf_blob(&record), planted);
}

/* As if built by a library with other templates. */
static void plant_stale(const struct bench *bench, const struct planted *planted, char ret_key[CBN__HASH_TEXT_BYTES])
{
    struct cbn__spec spec = spec_of(bench->runtime, planted->op, planted->arch, planted->variant);
    struct cbn__template other = *spec.template;
    other.digest.bytes[3] ^= 1;
    spec.template = &other;
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(&spec, &record);
    struct cbn__hash key = cbn__key_hash(cbn__buf_blob(&record));
    cbn__hash_format(&key, ret_key);
    plant_record(bench->cabinet, cbn__buf_blob(&record), planted);
}

static const struct planted gemm_90 = {"fp8_gemm", CBN_ARCH(90, 'a'), 1, 13000, 0, 30000};
static const struct planted gemm_100 = {"fp8_gemm", CBN_ARCH(100, 'a'), 1, 13000, 0, 30000};
static const struct planted quantize_90 = {"fp8_quantize", CBN_ARCH(90, 'a'), 1, 12009, 0, 20000};
static const struct planted gemm_old = {"fp8_gemm", CBN_ARCH(90, 'a'), 2, 12004, 10 * MINUTE_S, 30000};

struct shown {
    int count;
    char compilers[64];
    struct cbn_entry_info last;
};

static int show(void *user, const struct cbn_entry_info *entry)
{
    struct shown *shown = user;
    shown->count++;
    strcat(shown->compilers, entry->compiler);
    strcat(shown->compilers, " ");
    shown->last = *entry;
    return 0;
}

START_TEST(show_by_prefix)
{
    BENCH_AUTO bench = bench_make();
    struct cbn_error err = {0};
    char key[CBN__HASH_TEXT_BYTES], other[CBN__HASH_TEXT_BYTES];
    struct shown shown = {0};
    ck_assert_int_eq(cbn_cabinet_show(bench.runtime, "0", show, &shown, &err), CBN_STATUS_NOT_FOUND);
    plant(&bench, &gemm_90, key);
    struct planted older = gemm_90;
    older.compiler = 12008;
    plant(&bench, &older, key);
    plant(&bench, &quantize_90, other);
    for (size_t digits = 32; digits >= 8; digits--) {
        char prefix[33];
        snprintf(prefix, sizeof(prefix), "%.*s", (int)digits, key);
        shown = (struct shown){0};
        ck_assert_int_eq(cbn_cabinet_show(bench.runtime, prefix, show, &shown, &err), CBN_STATUS_OK);
        ck_assert_int_eq(shown.count, 2);
        ck_assert_str_eq(shown.compilers, "12.8 13.0 ");
        ck_assert_str_eq(shown.last.spec.key, key);
        ck_assert_str_eq(shown.last.spec.op, "fp8_gemm");
        ck_assert_uint_eq(shown.last.pinned, 0);
        prefix[0] = (char)(prefix[0] >= 'a' ? prefix[0] - 32 : prefix[0]); /* upper case is taken */
        ck_assert_int_eq(cbn_cabinet_show(bench.runtime, prefix, show, &shown, &err), CBN_STATUS_OK);
    }
    static const char *const wrong[] = {"", "g", "0x12", "123456789012345678901234567890123", " 1"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_int_eq(cbn_cabinet_show(bench.runtime, wrong[i], show, &shown, &err), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_cabinet_show(bench.runtime, NULL, show, &shown, &err), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_cabinet_show(NULL, "1", show, &shown, &err), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_cabinet_show(bench.runtime, "1", NULL, &shown, &err), CBN_STATUS_INVALID);
}
END_TEST

START_TEST(an_ambiguous_prefix_lists_keys)
{
    BENCH_AUTO bench = bench_make();
    struct cbn_error err = {0};
    char keys[17][CBN__HASH_TEXT_BYTES];
    for (int64_t i = 0; i < 17; i++) { /* of 17, two begin with the same digit */
        struct planted planted = gemm_90;
        planted.variant = i;
        planted.size = 100;
        plant(&bench, &planted, keys[i]);
    }
    const char *first = NULL, *second = NULL;
    for (int i = 0; i < 17 && !second; i++)
        for (int j = 0; j < i && !second; j++)
            if (keys[i][0] == keys[j][0]) {
                first = keys[i];
                second = keys[j];
            }
    char prefix[2] = {first[0], 0};
    struct shown shown = {0};
    ck_assert_int_eq(cbn_cabinet_show(bench.runtime, prefix, show, &shown, &err), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "ambiguous"));
    ck_assert_int_eq(shown.count, 0);
    int told = 0, same = 0;
    for (int i = 0; i < 17; i++) {
        told += strstr(err.message, keys[i]) != NULL;
        same += keys[i][0] == prefix[0];
    }
    ck_assert_int_eq(told, same < 4 ? same : 4);
    ck_assert_int_eq(strstr(err.message, "and more") != NULL, same > 4);
    ck_assert_int_eq(cbn_cabinet_pin(bench.runtime, prefix, 1, NULL, &err), CBN_STATUS_INVALID);
}
END_TEST

START_TEST(layers_above_hide_those_below)
{
    BENCH_AUTO bench = bench_make();
    char key[CBN__HASH_TEXT_BYTES], lower[CBN__HASH_TEXT_BYTES], told[CBN__HASH_TEXT_BYTES] = "kept";
    struct cbn_error err = {0};
    plant(&bench, &gemm_90, key);
    plant(&bench, &quantize_90, lower);
    const char *top = in(&bench.scratch, "top");
    struct cbn_runtime *runtime = create(top, in(&bench.scratch, "cache"), 0);
    struct bench upper = {.runtime = runtime, .cabinet = runtime->cabinet};
    struct planted planted = gemm_90;
    planted.compiler = 13001;
    plant(&upper, &planted, key);
    struct shown shown = {0};
    ck_assert_int_eq(cbn_cabinet_show(runtime, key, show, &shown, &err), CBN_STATUS_OK);
    ck_assert_int_eq(shown.count, 1);
    ck_assert_str_eq(shown.compilers, "13.1 ");
    shown = (struct shown){0};
    ck_assert_int_eq(cbn_cabinet_show(runtime, lower, show, &shown, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(shown.last.layer, 1);
    /* Pins and prune are the overlay's alone. */
    ck_assert_int_eq(cbn_cabinet_pin(runtime, lower, 1, told, &err), CBN_STATUS_NOT_FOUND);
    ck_assert_str_eq(told, "kept");
    struct cbn_prune_options options = CBN_PRUNE_OPTIONS_INIT;
    struct cbn_prune_result result = {.size = sizeof(result)};
    options.flags = CBN_PRUNE_ALL;
    ck_assert_int_eq(cbn_cabinet_prune(runtime, &options, NULL, NULL, &result, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(result.removed, 1);
    ck_assert_uint_eq(result.kept, 0);
    shown = (struct shown){0};
    ck_assert_int_eq(cbn_cabinet_show(runtime, key, show, &shown, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(shown.last.layer, 1);
    cbn_runtime_destroy(runtime);
}
END_TEST

static void keep_text(void *user, const char *text)
{
    *(char **)user = strdup(text);
}

START_TEST(source_of_an_entry)
{
    BENCH_AUTO bench = bench_make();
    struct cbn_error err = {0};
    char key[CBN__HASH_TEXT_BYTES], stale[CBN__HASH_TEXT_BYTES];
    char *text = NULL;
    plant(&bench, &gemm_90, key);
    plant_stale(&bench, &gemm_90, stale);
    ck_assert_int_eq(cbn_cabinet_source(bench.runtime, key, keep_text, &text, &err), CBN_STATUS_OK);
    struct cbn__spec spec = spec_of(bench.runtime, gemm_90.op, gemm_90.arch, gemm_90.variant);
    CBN__BUF_AUTO source = CBN__BUF_INIT;
    cbn__spec_source(&spec, &source);
    ck_assert_str_eq(text, cbn__buf_text(&source));
    free(text);
    text = NULL;
    ck_assert_int_eq(cbn_cabinet_source(bench.runtime, stale, keep_text, &text, &err), CBN_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "digest"));
    ck_assert_int_eq(cbn_cabinet_source(bench.runtime, "zz", keep_text, &text, &err), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_cabinet_source(bench.runtime, key, NULL, NULL, &err), CBN_STATUS_INVALID);
    ck_assert_ptr_null(text);
}
END_TEST

START_TEST(pin_and_unpin)
{
    BENCH_AUTO bench = bench_make();
    struct cbn_error err = {0};
    char key[CBN__HASH_TEXT_BYTES], told[CBN__HASH_TEXT_BYTES] = "";
    plant(&bench, &gemm_90, key);
    struct planted older = gemm_90;
    older.compiler = 12008;
    plant(&bench, &older, key);
    char prefix[13];
    snprintf(prefix, sizeof(prefix), "%.12s", key);
    for (int i = 0; i < 2; i++) { /* twice is as good as once */
        ck_assert_int_eq(cbn_cabinet_pin(bench.runtime, prefix, 1, told, &err), CBN_STATUS_OK);
        ck_assert_str_eq(told, key);
    }
    struct shown shown = {0};
    ck_assert_int_eq(cbn_cabinet_show(bench.runtime, key, show, &shown, &err), CBN_STATUS_OK);
    ck_assert_int_eq(shown.count, 2);
    ck_assert_uint_eq(shown.last.pinned, 1);
    ck_assert_uint_eq(shown.last.hits, 0);
    ck_assert_int_eq(shown.last.last_used_s, 0);
    ck_assert_int_eq(cbn_cabinet_pin(bench.runtime, prefix, 0, NULL, &err), CBN_STATUS_OK);
    ck_assert_int_eq(cbn_cabinet_show(bench.runtime, key, show, &shown, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(shown.last.pinned, 0);
    ck_assert_int_eq(cbn_cabinet_pin(bench.runtime, prefix, 2, NULL, &err), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_cabinet_pin(bench.runtime, "nope", 1, NULL, &err), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_cabinet_pin(NULL, prefix, 1, NULL, &err), CBN_STATUS_INVALID);
    struct cbn_runtime *reader = create(in(&bench.scratch, "cache"), NULL, CBN_RUNTIME_READ_ONLY);
    ck_assert_int_eq(cbn_cabinet_pin(reader, prefix, 1, NULL, &err), CBN_STATUS_NOT_FOUND);
    cbn_runtime_destroy(reader);
}
END_TEST

struct removed {
    int count;
    uint64_t size_bytes;
    char keys[1024];
};

static void hear_removed(void *user, const char *key, uint64_t size_bytes)
{
    struct removed *removed = user;
    removed->count++;
    removed->size_bytes += size_bytes;
    if (removed->count <= 8)
        strcat(strcat(removed->keys, key), " ");
}

static uint64_t entries_of(const struct bench *bench)
{
    struct cbn__layer layer;
    ck_assert_int_eq(cbn__cabinet_layer(bench->cabinet, 0, &layer, NULL), CBN_STATUS_OK);
    return layer.entries;
}

static uint64_t used_of(const struct bench *bench)
{
    struct cbn__layer layer;
    ck_assert_int_eq(cbn__cabinet_layer(bench->cabinet, 0, &layer, NULL), CBN_STATUS_OK);
    return layer.used_bytes;
}

enum { GEMM_90, GEMM_100, QUANTIZE, OLD, STALE, PINNED, ALL_KINDS };

struct rule_row {
    struct cbn_prune_options options;
    unsigned goes; /* bit of each kind */
};

#define RULE(...)                                                                                                      \
    {                                                                                                                  \
        .size = sizeof(struct cbn_prune_options), .max_bytes = UINT64_MAX, __VA_ARGS__                                 \
    }
#define BIT(kind) (1u << (kind))

static const struct rule_row rule_rows[] = {
    {RULE(.arch = CBN_ARCH(100, 'a')), BIT(GEMM_100)},
    {RULE(.arch = CBN_ARCH(120, 'a')), 0},
    {RULE(.op = "fp8_quantize"), BIT(QUANTIZE)},
    {RULE(.op = "fp8"), 0},
    {RULE(.compiler_below = 13000), BIT(QUANTIZE) | BIT(OLD)},
    {RULE(.compiler_below = 12009), BIT(OLD)},
    {RULE(.older_than_s = 5 * MINUTE_S), BIT(OLD)},
    {RULE(.older_than_s = 20 * MINUTE_S), 0},
    {RULE(.flags = CBN_PRUNE_STALE), BIT(STALE)},
    {RULE(.flags = CBN_PRUNE_STALE, .arch = CBN_ARCH(100, 'a')), 0},
    {RULE(.op = "fp8_gemm", .arch = CBN_ARCH(90, 'a')), BIT(GEMM_90) | BIT(OLD) | BIT(STALE)},
    {RULE(.flags = CBN_PRUNE_ALL), BIT(GEMM_90) | BIT(GEMM_100) | BIT(QUANTIZE) | BIT(OLD) | BIT(STALE)},
    {RULE(.flags = CBN_PRUNE_ALL | CBN_PRUNE_UNPINNED_TOO), BIT(ALL_KINDS) - 1},
};

/* Each rule once dry and once in earnest: the same keys, the same counts, and nothing gone when it is dry. */
START_TEST(prune_by_rule)
{
    BENCH_AUTO bench = bench_make();
    const struct rule_row *row = &rule_rows[_i];
    struct cbn_error err = {0};
    char keys[ALL_KINDS][CBN__HASH_TEXT_BYTES];
    struct planted pinned = gemm_90, stale = gemm_90;
    pinned.variant = 7;
    stale.variant = 8;
    plant(&bench, &gemm_90, keys[GEMM_90]);
    plant(&bench, &gemm_100, keys[GEMM_100]);
    plant(&bench, &quantize_90, keys[QUANTIZE]);
    plant(&bench, &gemm_old, keys[OLD]);
    plant_stale(&bench, &stale, keys[STALE]);
    plant(&bench, &pinned, keys[PINNED]);
    ck_assert_int_eq(cbn_cabinet_pin(bench.runtime, keys[PINNED], 1, NULL, &err), CBN_STATUS_OK);
    int wanted = __builtin_popcount(row->goes);
    struct cbn_prune_result results[2];
    for (int real = 0; real < 2; real++) {
        struct cbn_prune_options options = row->options;
        struct removed removed = {0};
        results[real] = (struct cbn_prune_result){.size = sizeof(results[real])};
        options.flags |= real ? 0 : CBN_PRUNE_DRY_RUN;
        ck_assert_msg(cbn_cabinet_prune(bench.runtime, &options, hear_removed, &removed, &results[real], &err) ==
                          CBN_STATUS_OK,
                      "%s", err.message);
        ck_assert_int_eq(removed.count, wanted);
        for (int kind = 0; kind < ALL_KINDS; kind++)
            ck_assert_msg((strstr(removed.keys, keys[kind]) != NULL) == ((row->goes & BIT(kind)) != 0), "kind %d",
                          kind);
        ck_assert_uint_eq(results[real].removed, (uint64_t)wanted);
        ck_assert_uint_eq(results[real].kept, (uint64_t)(ALL_KINDS - wanted));
        ck_assert_uint_eq(entries_of(&bench), real ? results[real].kept : ALL_KINDS);
        ck_assert_uint_ge(results[real].freed_bytes, removed.size_bytes);
    }
    ck_assert_mem_eq(&results[0], &results[1], sizeof(results[0]));
    for (int kind = 0; kind < ALL_KINDS; kind++) {
        struct shown shown = {0};
        int32_t status = cbn_cabinet_show(bench.runtime, keys[kind], show, &shown, &err);
        ck_assert_int_eq(status, row->goes & BIT(kind) ? CBN_STATUS_NOT_FOUND : CBN_STATUS_OK);
    }
}
END_TEST

/* Least recently used first, down to the bound; sizes with pages of their own and without. */
START_TEST(prune_to_a_size)
{
    BENCH_AUTO bench = bench_make();
    struct cbn_error err = {0};
    static char keys[200][CBN__HASH_TEXT_BYTES];
    const size_t size = _i ? 700 : 20000;
    for (int64_t i = 0; i < 200; i++) {
        struct planted planted = gemm_90;
        planted.variant = 100 + i;
        planted.size = size;
        plant(&bench, &planted, keys[i]);
    }
    struct cbn__spec spec = spec_of(bench.runtime, gemm_90.op, gemm_90.arch, 100); /* the oldest is used */
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(&spec, &record);
    struct cbn__entry entry;
    ck_assert_int_eq(cbn__cabinet_find(bench.cabinet, cbn__buf_blob(&record), NULL, &entry), CBN__LOOKUP_HIT);
    cbn__entry_done(&entry);
    uint64_t bound = used_of(&bench) / 2;
    struct cbn_prune_options options = CBN_PRUNE_OPTIONS_INIT;
    struct cbn_prune_result dry = {.size = sizeof(dry)}, real = {.size = sizeof(real)};
    options.max_bytes = bound;
    options.flags = CBN_PRUNE_DRY_RUN;
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &dry, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(entries_of(&bench), 200);
    options.flags = 0;
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &real, &err), CBN_STATUS_OK);
    ck_assert_uint_le(used_of(&bench), bound);
    ck_assert_uint_eq(real.removed + real.kept, 200);
    ck_assert_uint_eq(entries_of(&bench), real.kept);
    ck_assert_uint_gt(real.kept, 40);
    if (_i == 0)
        ck_assert_mem_eq(&dry, &real, sizeof(real));
    for (uint64_t i = 0; i < 200; i++) {
        struct shown shown = {0};
        bool kept = i == 0 || i > real.removed;
        ck_assert_msg((cbn_cabinet_show(bench.runtime, keys[i], show, &shown, &err) == CBN_STATUS_OK) == kept,
                      "%d of %d", (int)i, (int)real.removed);
    }
    /* Already below: nothing goes. */
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &real, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(real.removed, 0);
    options.max_bytes = 0;
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &real, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(entries_of(&bench), 0);
}
END_TEST

START_TEST(prune_refuses)
{
    BENCH_AUTO bench = bench_make();
    struct cbn_error err = {0};
    struct cbn_prune_options options = CBN_PRUNE_OPTIONS_INIT;
    struct cbn_prune_result result = {.size = sizeof(result), .removed = 77};
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &result, &err), CBN_STATUS_INVALID);
    options.flags = CBN_PRUNE_DRY_RUN;
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &result, &err), CBN_STATUS_INVALID);
    options.flags = CBN_PRUNE_UNPINNED_TOO;
    options.arch = CBN_ARCH(90, 'a');
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &result, &err), CBN_STATUS_INVALID);
    options.flags = 1u << 20;
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &result, &err), CBN_STATUS_INVALID);
    options.flags = 0;
    options.older_than_s = -1;
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &result, &err), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, NULL, NULL, NULL, &result, &err), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_cabinet_prune(NULL, &options, NULL, NULL, &result, &err), CBN_STATUS_INVALID);
    struct cbn_runtime *memory = create(NULL, NULL, CBN_RUNTIME_MEMORY_ONLY);
    options = (struct cbn_prune_options)CBN_PRUNE_OPTIONS_INIT;
    options.flags = CBN_PRUNE_ALL;
    ck_assert_int_eq(cbn_cabinet_prune(memory, &options, NULL, NULL, &result, &err), CBN_STATUS_NOT_FOUND);
    cbn_runtime_destroy(memory);
    ck_assert_uint_eq(result.removed, 77);
}
END_TEST

START_TEST(prune_and_compact)
{
    BENCH_AUTO bench = bench_make();
    struct cbn_error err = {0};
    char key[CBN__HASH_TEXT_BYTES];
    for (int64_t i = 0; i < 50; i++) {
        struct planted planted = i < 45 ? gemm_90 : gemm_100;
        planted.variant = i;
        plant(&bench, &planted, key);
    }
    off_t before = file_bytes(in(&bench.scratch, "cache/data.mdb"));
    struct cbn_prune_options options = CBN_PRUNE_OPTIONS_INIT;
    struct cbn_prune_result result = {.size = sizeof(result)};
    options.flags = CBN_PRUNE_COMPACT | CBN_PRUNE_DRY_RUN;
    options.arch = CBN_ARCH(90, 'a');
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &result, &err), CBN_STATUS_OK);
    ck_assert_int_eq(file_bytes(in(&bench.scratch, "cache/data.mdb")), before);
    options.flags = CBN_PRUNE_COMPACT;
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &result, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(result.removed, 45);
    ck_assert_uint_eq(entries_of(&bench), 5);
    ck_assert_int_lt(file_bytes(in(&bench.scratch, "cache/data.mdb")), before / 4);
    /* By itself it is a rule that removes nothing. */
    options = (struct cbn_prune_options)CBN_PRUNE_OPTIONS_INIT;
    options.flags = CBN_PRUNE_COMPACT;
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &result, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(result.removed, 0);
    ck_assert_uint_eq(result.kept, 5);
    /* A reader of this process counts as somebody who has it open. */
    struct cbn_runtime *reader = create(in(&bench.scratch, "cache"), NULL, CBN_RUNTIME_READ_ONLY);
    ck_assert_int_eq(cbn_cabinet_prune(bench.runtime, &options, NULL, NULL, &result, &err), CBN_STATUS_TIMEOUT);
    cbn_runtime_destroy(reader);
}
END_TEST

static void keep_stats(void *user, const struct cbn_layer_stats *stats)
{
    struct cbn_layer_stats *all = user;
    all[stats->is_base] = *stats;
}

START_TEST(stats_by_layer)
{
    BENCH_AUTO bench = bench_make();
    struct cbn_error err = {0};
    char key[CBN__HASH_TEXT_BYTES];
    plant(&bench, &gemm_90, key);
    ck_assert_int_eq(cbn_cabinet_pin(bench.runtime, key, 1, NULL, &err), CBN_STATUS_OK);
    cbn_runtime_destroy(bench.runtime);
    bench.runtime = create(in(&bench.scratch, "top"), in(&bench.scratch, "cache"), 0);
    bench.cabinet = bench.runtime->cabinet;
    struct cbn__spec spec = spec_of(bench.runtime, gemm_90.op, gemm_90.arch, gemm_90.variant);
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(&spec, &record);
    struct cbn__entry entry;
    ck_assert_int_eq(cbn__cabinet_ask(bench.runtime, cbn__buf_blob(&record), NULL, &entry), CBN__LOOKUP_HIT);
    cbn__entry_done(&entry);
    struct cbn_layer_stats stats[2] = {{0}};
    ck_assert_int_eq(cbn_cabinet_stats(bench.runtime, keep_stats, stats, &err), CBN_STATUS_OK);
    ck_assert_str_eq(stats[0].path, in(&bench.scratch, "top"));
    ck_assert_uint_eq(stats[0].size, sizeof(stats[0]));
    ck_assert_uint_eq(stats[0].entries, 0);
    ck_assert_uint_eq(stats[0].hits, 1);
    ck_assert_uint_eq(stats[0].compile_ms_saved, 321);
    ck_assert_uint_eq(stats[0].max_bytes, (uint64_t)1 << 30);
    ck_assert_uint_eq(stats[1].entries, 1);
    ck_assert_uint_eq(stats[1].pinned, 1);
    ck_assert_uint_eq(stats[1].max_bytes, 0);
    ck_assert_uint_eq(stats[1].puts + stats[1].hits, 0);
    ck_assert_uint_gt(stats[1].used_bytes, 30000);
    ck_assert_uint_gt(stats[1].file_bytes, 0);
    ck_assert_int_eq(cbn_cabinet_stats(bench.runtime, NULL, NULL, &err), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_cabinet_stats(NULL, keep_stats, stats, &err), CBN_STATUS_INVALID);
}
END_TEST

/* Repair drops what is damaged and no other compiler's entry of that key. */
START_TEST(repair_leaves_the_sound_major)
{
    BENCH_AUTO bench = bench_make();
    struct cbn_error err = {0};
    char text[CBN__HASH_TEXT_BYTES];
    plant(&bench, &gemm_90, text);
    struct planted older = gemm_90;
    older.compiler = 12008;
    plant(&bench, &older, text);
    struct cbn__spec spec = spec_of(bench.runtime, gemm_90.op, gemm_90.arch, gemm_90.variant);
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(&spec, &record);
    struct cbn__hash hash = cbn__key_hash(cbn__buf_blob(&record));
    struct cbn__store_key slot = cbn__entry_key(&hash, 13);
    ck_assert_int_eq(cbn__store_put(bench.cabinet->layers[0].store, 1000, &slot, cbn__blob_text("garbage"), NULL),
                     CBN_STATUS_OK);
    struct cbn_verify_result result = {.size = sizeof(result)};
    ck_assert_int_eq(cbn_cabinet_verify(bench.runtime, CBN_VERIFY_REPAIR, NULL, NULL, &result, &err), CBN_STATUS_OK);
    ck_assert_uint_eq(result.checked, 2);
    ck_assert_uint_eq(result.damaged, 1);
    ck_assert_uint_eq(result.repaired, 1);
    struct shown shown = {0};
    ck_assert_int_eq(cbn_cabinet_show(bench.runtime, text, show, &shown, &err), CBN_STATUS_OK);
    ck_assert_str_eq(shown.compilers, "12.8 ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cabinet-admin");
    TCase *cases = tcase_create("cabinet-admin");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, show_by_prefix);
    tcase_add_test(cases, an_ambiguous_prefix_lists_keys);
    tcase_add_test(cases, layers_above_hide_those_below);
    tcase_add_test(cases, source_of_an_entry);
    tcase_add_test(cases, pin_and_unpin);
    tcase_add_loop_test(cases, prune_by_rule, 0, (int)(sizeof(rule_rows) / sizeof(rule_rows[0])));
    tcase_add_loop_test(cases, prune_to_a_size, 0, 2);
    tcase_add_test(cases, prune_refuses);
    tcase_add_test(cases, prune_and_compact);
    tcase_add_test(cases, stats_by_layer);
    tcase_add_test(cases, repair_leaves_the_sound_major);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
