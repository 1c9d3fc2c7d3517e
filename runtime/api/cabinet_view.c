/*
 * The cabinet as operators see it: entries decoded, verified, counted by layer.
 */
#include "api/cabinet_view.h"

#include <stdio.h>
#include <string.h>

#include "base/args.h"

#define VERSION_MAJOR_UNIT 1000u

bool cbn__cabinet_describe(const struct cbn__entry *entry, struct cbn__buf *options, struct cbn__buf *log,
                           struct cbn_entry_info *info)
{
    *info = (struct cbn_entry_info){.size = sizeof(*info)};
    if (!cbn__key_decode(entry->key_record, &info->spec, info->source_digest, options))
        return false;
    cbn__buf_append(log, entry->log.data, entry->log.size);
    info->layer = entry->layer;
    info->layer_path = entry->layer_path;
    info->size_bytes = entry->payload.size;
    info->created_s = entry->facts.created_s;
    info->last_used_s = entry->last_used_s;
    info->hits = entry->hits;
    info->compile_ms = entry->facts.compile_ms;
    info->registers = entry->facts.registers;
    info->shared_bytes = entry->facts.shared_bytes;
    info->spill_bytes = entry->facts.spill_bytes;
    (void)snprintf(info->compiler, sizeof(info->compiler), "%u.%u", entry->facts.compiler_version / VERSION_MAJOR_UNIT,
                   entry->facts.compiler_version % VERSION_MAJOR_UNIT);
    info->options = cbn__buf_text(options);
    info->log = cbn__buf_text(log);
    info->cubin = entry->payload.data;
    info->pinned = entry->pinned;
    return true;
}

struct listing {
    cbn_entry_fn entry;
    void *user;
    uint64_t damaged;
};

static int list_entry(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                      uint32_t layer, const char *layer_path)
{
    (void)key;
    (void)layer;
    (void)layer_path;
    struct listing *listing = user;
    CBN__BUF_AUTO options = CBN__BUF_INIT;
    CBN__BUF_AUTO log = CBN__BUF_INIT;
    struct cbn_entry_info info;
    if (problem || !cbn__cabinet_describe(entry, &options, &log, &info)) {
        listing->damaged++;
        return 0;
    }
    return listing->entry(listing->user, &info);
}

int32_t cbn_cabinet_list(struct cbn_runtime *runtime, cbn_entry_fn entry, void *user, uint64_t *ret_damaged,
                         struct cbn_error *err)
{
    if (!runtime || !entry)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "entry" : "runtime");
    struct listing listing = {.entry = entry, .user = user};
    int32_t status = cbn__cabinet_each(runtime->cabinet, list_entry, &listing, err);
    if (status == CBN_STATUS_OK && ret_damaged)
        *ret_damaged = listing.damaged;
    return status;
}

struct verification {
    struct cbn_runtime *runtime;
    uint32_t flags;
    cbn_damage_fn damage;
    void *user;
    struct cbn_verify_result result;
};

static int verify_entry(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                        uint32_t layer, const char *layer_path)
{
    struct verification *verification = user;
    char text[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(key, text);
    verification->result.checked++;
    if (!problem) {
        CBN__BUF_AUTO options = CBN__BUF_INIT;
        CBN__BUF_AUTO log = CBN__BUF_INIT;
        struct cbn_entry_info info;
        if (cbn__cabinet_describe(entry, &options, &log, &info)) {
            if (verification->damage && verification->flags & CBN_VERIFY_TELL_SOUND)
                verification->damage(verification->user, text, layer_path, NULL, 0);
            return 0;
        }
        problem = "the key record is not of a format that this library knows";
    }
    verification->result.damaged++;
    bool mend = (verification->flags & CBN_VERIFY_REPAIR) && layer == 0;
    bool repaired = mend && cbn__cabinet_drop_damaged(verification->runtime->cabinet, key, entry) == CBN_STATUS_OK;
    verification->result.repaired += repaired;
    if (verification->damage)
        verification->damage(verification->user, text, layer_path, problem, repaired);
    return 0;
}

int32_t cbn_cabinet_verify(struct cbn_runtime *runtime, uint32_t flags, cbn_damage_fn damage, void *user,
                           struct cbn_verify_result *ret_result, struct cbn_error *err)
{
    if (!runtime)
        return cbn__error_own(err, CBN_STATUS_INVALID, "runtime is NULL");
    if (flags & ~(CBN_VERIFY_REPAIR | CBN_VERIFY_TELL_SOUND))
        return cbn__error_own(err, CBN_STATUS_INVALID, "flags: 0x%x holds bits that this library does not know", flags);
    struct verification verification = {.runtime = runtime, .flags = flags, .damage = damage, .user = user};
    verification.result.size = sizeof(verification.result);
    int32_t status = cbn__cabinet_each(runtime->cabinet, verify_entry, &verification, err);
    if (ret_result)
        cbn__args_give(ret_result, &verification.result, sizeof(verification.result));
    return status;
}

int32_t cbn_cabinet_layers(struct cbn_runtime *runtime, cbn_layer_fn tell, void *user, struct cbn_error *err)
{
    if (!runtime || !tell)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "layer" : "runtime");
    int32_t status = CBN_STATUS_OK;
    uint32_t count = cbn__cabinet_layer_count(runtime->cabinet);
    for (uint32_t i = 0; i < count && status == CBN_STATUS_OK; i++) {
        struct cbn__layer layer;
        status = cbn__cabinet_layer(runtime->cabinet, i, &layer, err);
        struct cbn_layer_info info = {
            .size = sizeof(info),
            .is_base = layer.is_base,
            .writable = layer.writable,
            .path = layer.path,
            .entries = layer.entries,
            .file_bytes = layer.file_bytes,
            .used_bytes = layer.used_bytes,
        };
        if (status == CBN_STATUS_OK)
            tell(user, &info);
    }
    return status;
}
