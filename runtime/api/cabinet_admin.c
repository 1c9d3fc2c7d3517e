/*
 * The cabinet as operators tend it: one entry shown, its source, pins, pruning by rule, counters by layer.
 *
 * Holds no lock; every callback runs outside of the cabinet's.
 */
#include "api/cabinet_view.h"

#include <string.h>

#define MATCHES_TOLD 4u

/* ---- one entry by its prefix ---- */

struct match {
    struct cbn__hash key;
    uint32_t layer; /* index of the uppermost layer that has it */
    uint32_t count; /* distinct keys */
    bool whole;     /* the entry met first verifies */
    char keys[MATCHES_TOLD * (CBN__HASH_TEXT_BYTES + 1)];
    uint32_t layer_now;
    struct cbn__hash last;
};

static bool is_prefix(const char *prefix)
{
    size_t length = prefix ? strlen(prefix) : 0;
    return length > 0 && length <= 2 * CBN__HASH_BYTES && strspn(prefix, "0123456789abcdefABCDEF") == length;
}

static int match_entry(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                       uint32_t layer, const char *layer_path)
{
    (void)entry, (void)layer, (void)layer_path;
    struct match *match = user;
    if (match->count && (cbn__hash_equal(key, &match->key) || cbn__hash_equal(key, &match->last))) {
        match->whole = match->whole || (!problem && cbn__hash_equal(key, &match->key));
        return 0;
    }
    if (match->count++ == 0) {
        match->key = *key;
        match->layer = match->layer_now;
        match->whole = !problem;
    }
    match->last = *key;
    if (match->count <= MATCHES_TOLD) {
        char text[CBN__HASH_TEXT_BYTES];
        cbn__hash_format(key, text);
        strcat(match->keys, match->count > 1 ? " " : "");
        strcat(match->keys, text);
    }
    return match->count > MATCHES_TOLD;
}

/* The one key of layers [0, layer_count) that begins so. NOT_FOUND, INVALID. */
static int32_t find_match(struct cbn_runtime *runtime, const char *prefix, uint32_t layer_count,
                          struct match *ret_match, struct cbn_error *err)
{
    *ret_match = (struct match){0};
    if (!is_prefix(prefix))
        return cbn__error_own(err, CBN_STATUS_INVALID, "key_prefix '%.40s' is not 1 to 32 hex digits",
                              prefix ? prefix : "NULL");
    for (uint32_t i = 0; i < layer_count; i++) {
        ret_match->layer_now = i;
        int32_t status = cbn__cabinet_each_of(runtime->cabinet, i, prefix, match_entry, ret_match, err);
        if (status != CBN_STATUS_OK)
            return status;
    }
    if (ret_match->count == 0)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "no entry's key begins with %s; ls lists the keys", prefix);
    if (ret_match->count > 1)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is ambiguous: %s%s; give more digits", prefix,
                              ret_match->keys, ret_match->count > MATCHES_TOLD ? " and more" : "");
    return CBN_STATUS_OK;
}

struct showing {
    cbn_entry_fn entry;
    void *user;
    uint32_t told;
};

static int show_entry(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                      uint32_t layer, const char *layer_path)
{
    (void)key, (void)layer, (void)layer_path;
    struct showing *showing = user;
    CBN__BUF_AUTO options = CBN__BUF_INIT;
    CBN__BUF_AUTO log = CBN__BUF_INIT;
    struct cbn_entry_info info;
    if (problem || !cbn__cabinet_describe(entry, &options, &log, &info))
        return 0;
    showing->told++;
    return showing->entry(showing->user, &info);
}

int32_t cbn_cabinet_show(struct cbn_runtime *runtime, const char *key_prefix, cbn_entry_fn entry, void *user,
                         struct cbn_error *err)
{
    if (!runtime || !entry)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "entry" : "runtime");
    struct match match;
    int32_t status = find_match(runtime, key_prefix, cbn__cabinet_layer_count(runtime->cabinet), &match, err);
    if (status != CBN_STATUS_OK)
        return status;
    char key[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(&match.key, key);
    struct showing showing = {.entry = entry, .user = user};
    status = cbn__cabinet_each_of(runtime->cabinet, match.layer, key, show_entry, &showing, err);
    if (status == CBN_STATUS_OK && showing.told == 0)
        return cbn__error_own(err, CBN_STATUS_DAMAGED, "entry %s does not verify; run verify --repair", key);
    return status;
}

/* ---- its source ---- */

struct sourcing {
    struct cbn_runtime *runtime;
    struct cbn__hash key;
    struct cbn__buf source;
    char digest[CBN__HASH_TEXT_BYTES]; /* "": no entry was read */
    bool found;
};

static bool take_params(const struct cbn_spec *described, struct cbn__spec *spec)
{
    const struct cbn__template *template = spec->template;
    if (described->param_count != template->param_count)
        return false;
    for (uint32_t i = 0; i < template->param_count; i++) {
        uint32_t at = 0;
        while (at < described->param_count && strcmp(described->params[at].name, template->param_names[i]) != 0)
            at++;
        if (at == described->param_count)
            return false;
        spec->params[i] = described->params[at].value;
    }
    return true;
}

/* The specialisation that leads to this very key: digest, options and argument layout are all in it. */
static bool find_spec(const struct sourcing *sourcing, const struct cbn_spec *described, struct cbn__spec *ret_spec)
{
    const struct cbn__family *family = cbn__runtime_family(sourcing->runtime, described->op, NULL);
    int index = family ? cbn__family_candidate(family, described->kernel) : -1;
    if (index < 0 || !family->candidates[index].template.source)
        return false;
    *ret_spec = (struct cbn__spec){
        .template = &family->candidates[index].template,
    };
    if (cbn_arch_parse(described->arch, &ret_spec->arch, NULL) != CBN_STATUS_OK || !take_params(described, ret_spec))
        return false;
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(ret_spec, &record);
    struct cbn__hash key = cbn__key_hash(cbn__buf_blob(&record));
    return !record.failed && cbn__hash_equal(&key, &sourcing->key);
}

static int source_entry(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                        uint32_t layer, const char *layer_path)
{
    (void)key, (void)layer, (void)layer_path;
    struct sourcing *sourcing = user;
    CBN__BUF_AUTO options = CBN__BUF_INIT;
    struct cbn_spec described;
    struct cbn__spec spec;
    if (problem || !cbn__key_decode(entry->key_record, &described, sourcing->digest, &options))
        return 0;
    sourcing->found = find_spec(sourcing, &described, &spec);
    if (sourcing->found)
        cbn__spec_source(&spec, &sourcing->source);
    return 1;
}

static int32_t tell_source(struct sourcing *sourcing, cbn_text_fn text, void *user, struct cbn_error *err)
{
    char key[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(&sourcing->key, key);
    if (sourcing->digest[0] == 0)
        return cbn__error_own(err, CBN_STATUS_DAMAGED, "entry %s does not verify; run verify --repair", key);
    if (!sourcing->found)
        return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                              "entry %s was cut from templates with digest %s, which this library does not hold", key,
                              sourcing->digest);
    const char *source = cbn__buf_text(&sourcing->source);
    if (sourcing->source.failed)
        return cbn__error_no_memory(err);
    text(user, source);
    return CBN_STATUS_OK;
}

int32_t cbn_cabinet_source(struct cbn_runtime *runtime, const char *key_prefix, cbn_text_fn text, void *user,
                           struct cbn_error *err)
{
    if (!runtime || !text)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "text" : "runtime");
    struct match match;
    int32_t status = find_match(runtime, key_prefix, cbn__cabinet_layer_count(runtime->cabinet), &match, err);
    if (status != CBN_STATUS_OK)
        return status;
    char key[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(&match.key, key);
    struct sourcing sourcing = {.runtime = runtime, .key = match.key, .source = CBN__BUF_INIT};
    status = cbn__cabinet_each_of(runtime->cabinet, match.layer, key, source_entry, &sourcing, err);
    if (status == CBN_STATUS_OK)
        status = tell_source(&sourcing, text, user, err);
    cbn__buf_done(&sourcing.source);
    return status;
}

/* ---- pins ---- */

int32_t cbn_cabinet_pin(struct cbn_runtime *runtime, const char *key_prefix, uint32_t pinned, char *ret_key,
                        struct cbn_error *err)
{
    if (!runtime || pinned > 1)
        return cbn__error_own(err, CBN_STATUS_INVALID, runtime ? "pinned is neither 0 nor 1" : "runtime is NULL");
    struct match match;
    if (is_prefix(key_prefix) && !cbn__cabinet_can_write(runtime->cabinet))
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND,
                              "there is no cache folder that can be written; name one with --cache or CUBINET_CACHE");
    int32_t status = find_match(runtime, key_prefix, 1, &match, err);
    if (status == CBN_STATUS_OK)
        status = cbn__cabinet_pin(runtime->cabinet, &match.key, pinned != 0, err);
    if (status == CBN_STATUS_OK && ret_key)
        cbn__hash_format(&match.key, ret_key);
    return status;
}

/* ---- counters ---- */

int32_t cbn_cabinet_stats(struct cbn_runtime *runtime, cbn_layer_stats_fn tell, void *user, struct cbn_error *err)
{
    if (!runtime || !tell)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "stats" : "runtime");
    uint32_t count = cbn__cabinet_layer_count(runtime->cabinet);
    for (uint32_t i = 0; i < count; i++) {
        struct cbn__layer_stats layer;
        int32_t status = cbn__cabinet_layer_stats(runtime->cabinet, i, &layer, err);
        if (status != CBN_STATUS_OK)
            return status;
        struct cbn_layer_stats stats = {
            .size = sizeof(stats),
            .is_base = layer.layer.is_base,
            .path = layer.layer.path,
            .entries = layer.layer.entries,
            .pinned = layer.pinned,
            .used_bytes = layer.layer.used_bytes,
            .file_bytes = layer.allocated_bytes,
            .max_bytes = layer.max_bytes,
        };
#define CBN_X(name, text) stats.name = layer.layer.is_base ? 0 : layer.counters.name;
        CBN_LAYER_STAT_MAP(CBN_X)
#undef CBN_X
        tell(user, &stats);
    }
    return CBN_STATUS_OK;
}
