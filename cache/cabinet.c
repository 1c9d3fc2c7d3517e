/*
 * Opening and closing a cabinet: folders are made, trusted or refused, and become layers.
 *
 * Locks: none of its own; a cabinet does not change between open and close.
 */
#include "cache/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cache/folder.h"
#include "cache/pack_base.h"
#include "cache/registry.h"

#define MAX_BYTES_DEFAULT ((uint64_t)1 << 30)
#define MAX_BYTES_MIN ((uint64_t)256 << 10)
#define LOCK_TIMEOUT_MS_DEFAULT 2000u
#define CLOSE_TIMEOUT_MS 500u

struct opening {
    const struct cbn__cabinet_options *options;
    struct cbn__cabinet *cabinet;
    const char *path;
    char *resolved; /* owned */
    bool is_base;
    bool writable;
    bool group_shared;
};

struct cbn__store *cbn__cabinet_overlay(const struct cbn__cabinet *cabinet)
{
    return cabinet->layer_count && cabinet->layers[0].writable ? cabinet->layers[0].store : NULL;
}

void cbn__cabinet_tell_notes(const struct cbn__cabinet *cabinet, struct cbn__store *store)
{
    char text[CBN__STORE_NOTE_BYTES];
    bool is_damage = false;
    if (cbn__store_take_note(store, text, &is_damage))
        cbn__sink_tell(&cabinet->sink, is_damage ? CBN_EVENT_DAMAGE : CBN_EVENT_NOTICE, 0, "%s", text);
}

static int32_t check_trust(struct opening *opening, struct cbn_error *err)
{
    struct cbn__trust trust;
    cbn__trust_folder(opening->path, &trust);
    opening->group_shared = trust.group_shared;
    if (trust.trusted)
        return CBN_STATUS_OK;
    if (!opening->options->trust_folder)
        return cbn__error_own(err, CBN_STATUS_UNTRUSTED, "the cache folder %s is not trusted: %s; %s", opening->path,
                              trust.problem, trust.mend);
    cbn__sink_tell(&opening->cabinet->sink, CBN_EVENT_NOTICE, 0, "the cache folder %s is used by override although %s",
                   opening->path, trust.problem);
    return CBN_STATUS_OK;
}

static int32_t check_local(const char *path, struct cbn_error *err)
{
    char filesystem[32], fallback[64];
    if (cbn__folder_is_local(path, filesystem, sizeof(filesystem)))
        return CBN_STATUS_OK;
    cbn__folder_fallback(fallback, sizeof(fallback));
    return cbn__error_own(
        err, CBN_STATUS_IO,
        "the cache folder %s lies on a filesystem not known to be local (%s); use a local one, such as "
        "%s",
        path, filesystem, fallback);
}

static int32_t check_folder(struct opening *opening, struct cbn_error *err)
{
    struct stat status;
    if (stat(opening->path, &status) != 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot look at the cache folder %s; name another one",
                             opening->path);
    if (!S_ISDIR(status.st_mode))
        return cbn__error_own(err, CBN_STATUS_IO, "%s is not a folder; name a folder", opening->path);
    return check_trust(opening, err);
}

static int32_t acquire(struct opening *opening, struct cbn__store **ret_store, struct cbn_error *err)
{
    const struct cbn__store_options options = {.folder = opening->resolved,
                                               .writable = opening->writable,
                                               .trust_folder = opening->options->trust_folder,
                                               .group_shared = opening->group_shared,
                                               .max_bytes = opening->options->max_bytes ? opening->options->max_bytes
                                                                                        : MAX_BYTES_DEFAULT};
    int32_t status = cbn__registry_acquire(&options, ret_store, err);
    if (status != CBN_STATUS_OK)
        return status;
    status = cbn__store_prepare(*ret_store, opening->cabinet->lock_timeout_ms, err);
    cbn__cabinet_tell_notes(opening->cabinet, *ret_store);
    /* A lock that is held now may be free when the first entry is looked for. */
    if (status == CBN_STATUS_OK || status == CBN_STATUS_TIMEOUT)
        return CBN_STATUS_OK;
    cbn__registry_release(*ret_store, CLOSE_TIMEOUT_MS);
    return status;
}

/* A folder that can be read and not written serves what it holds. */
static int32_t acquire_readable(struct opening *opening, struct cbn__store **ret_store, struct cbn_error *err)
{
    struct cbn_error denied = {0};
    int32_t status = opening->writable ? acquire(opening, ret_store, &denied) : CBN_STATUS_NOT_FOUND;
    if (status == CBN_STATUS_OK)
        return status;
    bool wanted_writable = !opening->is_base && !opening->options->read_only;
    bool lacks_permission = denied.native_code == EACCES || denied.native_code == EPERM || denied.native_code == EROFS;
    if (opening->writable && !lacks_permission) {
        if (err)
            *err = denied;
        return status;
    }
    opening->writable = false;
    status = acquire(opening, ret_store, err);
    if (status == CBN_STATUS_OK && wanted_writable)
        cbn__sink_tell(&opening->cabinet->sink, CBN_EVENT_NOTICE, 0,
                       "the cache folder %s cannot be written by this user: it is read only, new kernels are not kept",
                       opening->path);
    return status;
}

/* Takes the store or the pack, also when it fails. */
static int32_t add_layer(struct opening *opening, struct cbn__store *store, struct cbn__pack *pack,
                         struct cbn_error *err)
{
    struct cbn__cabinet *cabinet = opening->cabinet;
    struct cbn__cabinet_layer *layer = &cabinet->layers[cabinet->layer_count];
    uint32_t bases =
        cabinet->layer_count && cabinet->layers[0].number == 0 ? cabinet->layer_count : cabinet->layer_count + 1;
    *layer = (struct cbn__cabinet_layer){.path = strdup(opening->path),
                                         .store = store,
                                         .pack = pack,
                                         .number = opening->is_base ? bases : 0,
                                         .writable = opening->writable};
    if (!layer->path) {
        if (store)
            cbn__registry_release(store, CLOSE_TIMEOUT_MS);
        cbn__pack_close(pack);
        return cbn__error_no_memory(err);
    }
    cabinet->layer_count++;
    return CBN_STATUS_OK;
}

static int32_t open_checked(struct opening *opening, struct cbn_error *err)
{
    struct cbn__store *store = NULL;
    opening->writable = !opening->is_base && !opening->options->read_only &&
                        faccessat(AT_FDCWD, opening->path, W_OK | X_OK, AT_EACCESS) == 0;
    opening->resolved = realpath(opening->path, NULL);
    if (!opening->resolved)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot resolve the cache folder %s", opening->path);
    int32_t status = acquire_readable(opening, &store, err);
    free(opening->resolved);
    return status == CBN_STATUS_OK ? add_layer(opening, store, NULL, err) : status;
}

static int32_t open_folder(struct opening *opening, struct cbn_error *err)
{
    int32_t status = check_local(opening->path, err); /* first: nothing is made where nothing may be used */
    if (status == CBN_STATUS_OK && !opening->is_base && !opening->options->read_only)
        status = cbn__folder_create(opening->path, err);
    if (status == CBN_STATUS_OK)
        status = check_folder(opening, err);
    return status == CBN_STATUS_OK ? open_checked(opening, err) : status;
}

static int32_t open_pack(struct opening *opening, struct cbn_error *err)
{
    struct cbn__pack *pack = NULL;
    int32_t status = cbn__pack_base_open(opening->path, opening->options->trust_folder, &opening->cabinet->sink, &pack,
                                         err);
    return status == CBN_STATUS_OK ? add_layer(opening, NULL, pack, err) : status;
}

static int32_t open_layer(const struct cbn__cabinet_options *options, struct cbn__cabinet *cabinet, const char *path,
                          bool is_base, struct cbn_error *err)
{
    struct opening opening = {.options = options, .cabinet = cabinet, .path = path, .is_base = is_base};
    struct cbn_error why = {0};
    bool is_pack = is_base && cbn__pack_base_is_one(path);
    int32_t status = is_pack ? open_pack(&opening, &why) : open_folder(&opening, &why);
    if (status == CBN_STATUS_OK)
        return status;
    cbn__sink_tell(&cabinet->sink, CBN_EVENT_NOTICE, status, "a cache layer is left out: %s", why.message);
    if (err)
        *err = why;
    return status;
}

static int32_t check_options(const struct cbn__cabinet_options *options, struct cbn_error *err)
{
    if (options->base_count > CBN__BASES_MAX)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%u base folders; at most %u are taken", options->base_count,
                              CBN__BASES_MAX);
    if (options->overlay_path && options->overlay_path[0] == 0)
        return cbn__error_own(err, CBN_STATUS_INVALID, "the cache folder's path is empty");
    if (options->max_bytes && options->max_bytes < MAX_BYTES_MIN)
        return cbn__error_own(err, CBN_STATUS_INVALID, "max_bytes is %llu; at least %llu are needed",
                              (unsigned long long)options->max_bytes, (unsigned long long)MAX_BYTES_MIN);
    for (uint32_t i = 0; i < options->base_count; i++)
        if (!options->base_paths[i] || options->base_paths[i][0] == 0)
            return cbn__error_own(err, CBN_STATUS_INVALID, "base folder %u has an empty path", i);
    return CBN_STATUS_OK;
}

int32_t cbn__cabinet_open(const struct cbn__cabinet_options *options, struct cbn__cabinet **ret_cabinet,
                          struct cbn_error *err)
{
    int32_t status = check_options(options, err);
    if (status != CBN_STATUS_OK)
        return status;
    struct cbn__cabinet *cabinet = calloc(1, sizeof(*cabinet));
    if (!cabinet)
        return cbn__error_no_memory(err);
    cabinet->sink = options->sink;
    cabinet->tier = options->tier;
    cabinet->lock_timeout_ms = options->lock_timeout_ms ? options->lock_timeout_ms : LOCK_TIMEOUT_MS_DEFAULT;
    struct cbn_error overlay_error = {0};
    if (options->overlay_path)
        status = open_layer(options, cabinet, options->overlay_path, false, &overlay_error);
    for (uint32_t i = 0; i < options->base_count; i++)
        (void)open_layer(options, cabinet, options->base_paths[i], true, err);
    if (status != CBN_STATUS_OK && err)
        *err = overlay_error;
    *ret_cabinet = cabinet;
    return status;
}

void cbn__cabinet_close(struct cbn__cabinet *cabinet)
{
    if (!cabinet)
        return;
    uint32_t timeout_ms = cabinet->lock_timeout_ms < CLOSE_TIMEOUT_MS ? cabinet->lock_timeout_ms : CLOSE_TIMEOUT_MS;
    cbn__registry_check_pid();
    for (uint32_t i = 0; i < cabinet->layer_count; i++) {
        struct cbn__cabinet_layer *layer = &cabinet->layers[i];
        if (layer->store) {
            cbn__store_mend(layer->store, timeout_ms);
            cbn__cabinet_tell_notes(cabinet, layer->store);
            cbn__registry_release(layer->store, timeout_ms);
        }
        cbn__pack_close(layer->pack);
        free(layer->path);
    }
    free(cabinet);
}

bool cbn__cabinet_can_write(const struct cbn__cabinet *cabinet)
{
    return cbn__cabinet_overlay(cabinet) != NULL;
}

uint32_t cbn__cabinet_layer_count(const struct cbn__cabinet *cabinet)
{
    return cabinet->layer_count;
}

int32_t cbn__cabinet_layer(struct cbn__cabinet *cabinet, uint32_t index, struct cbn__layer *ret_layer,
                           struct cbn_error *err)
{
    if (index >= cabinet->layer_count)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "layer %u of %u", index, cabinet->layer_count);
    const struct cbn__cabinet_layer *layer = &cabinet->layers[index];
    struct cbn__layer measured = {.path = layer->path, .is_base = layer->number != 0, .writable = layer->writable};
    if (layer->pack) {
        struct cbn__layer_stats stats = {.layer = measured};
        cbn__pack_base_measure(layer, &stats);
        *ret_layer = stats.layer;
        return CBN_STATUS_OK;
    }
    cbn__registry_check_pid();
    int32_t status = cbn__store_measure(layer->store, cabinet->lock_timeout_ms, &measured, err);
    cbn__cabinet_tell_notes(cabinet, layer->store);
    if (status == CBN_STATUS_OK)
        *ret_layer = measured;
    return status;
}
