/*
 * See unpack.h.
 *
 * The file is read twice, and somebody may write to it in between. So the first pass, which takes the digest, leaves a
 * hash of each entry under a secret of this call; what the second pass reads must have it.
 */
#include "cache/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cache/aside.h"
#include "cache/layer.h"
#include "cache/registry.h"
#include "cache/session.h"
#include "cache/space.h"
#include "cache/spool.h"

/* A transaction: of 1 to 16 MiB the fastest, by a fifth over 16, and others wait for the lock less. */
#define BATCH_BYTES ((size_t)4 << 20)
#define BATCH_ENTRIES 256u
#define BOUND_PART 32u /* of the bound, that is left for trees and headroom */

/* Values to be stored in one transaction. Buffers are kept from one to the next: fresh pages cost as much as a copy. */
struct batch {
    struct cbn__store *store;
    uint32_t timeout_ms;
    bool is_last;
    size_t count, total_bytes;
    struct cbn__store_value values[BATCH_ENTRIES];
    struct cbn__buf buffers[BATCH_ENTRIES];
    /* What came of it. */
    int32_t status;
    size_t stored;
    struct cbn_error error;
};

struct unpacking {
    struct cbn__cabinet *cabinet;
    struct cbn__store *overlay;
    struct cbn__pack *pack;
    const char *name;
    struct cbn__hash secret;
    struct cbn__hash *marks;
    struct cbn__unpack_result result;
    bool was_empty; /* the overlay: nothing of the pack is there already */
    struct cbn__buf chunk;
    struct cbn__aside aside; /* stores one batch while the other is filled */
    struct batch batches[2];
    int filling;
};

static int32_t verify(struct unpacking *unpacking, const uint8_t *expected, struct cbn_error *err)
{
    const struct cbn__pack *pack = unpacking->pack;
    if (getrandom(&unpacking->secret, sizeof(unpacking->secret), 0) != sizeof(unpacking->secret))
        return cbn__error_os(err, CBN_STATUS_IO, errno, "no random number could be had");
    unpacking->marks = calloc((size_t)pack->count + 1, sizeof(*unpacking->marks));
    if (!unpacking->marks)
        return cbn__error_no_memory(err);
    uint8_t *digest = unpacking->result.digest;
    int32_t status = cbn__pack_verify(pack, unpacking->name, &unpacking->secret, unpacking->marks, digest, err);
    if (status != CBN_STATUS_OK)
        return status;
    unpacking->result.entries = pack->count;
    unpacking->result.bytes = pack->file_bytes;
    if (!expected || memcmp(expected, digest, CBN__SHA256_BYTES) == 0)
        return CBN_STATUS_OK;
    char text[CBN__SHA256_TEXT_BYTES];
    cbn__sha256_format(digest, text);
    return cbn__error_own(err, CBN_STATUS_DAMAGED, "%s is a whole pack, and not the one expected: its SHA-256 is %s",
                          unpacking->name, text);
}

/* What cannot fit would push out its own beginning. */
static int32_t check_room(const struct unpacking *unpacking, struct cbn_error *err)
{
    const uint32_t page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    uint64_t bound = cbn__session_map_bytes(unpacking->overlay), needed = 0;
    for (uint64_t i = 0; i < unpacking->pack->count; i++)
        needed += cbn__space_bytes_of(page_bytes, cbn__pack_row(unpacking->pack, i).bytes);
    if (needed <= bound - bound / BOUND_PART)
        return CBN_STATUS_OK;
    return cbn__error_own(err, CBN_STATUS_LIMIT,
                          "%s needs %llu MiB and the cache is bound to %llu MiB: raise max_bytes, or use the pack in "
                          "place as a base",
                          unpacking->name, (unsigned long long)(needed >> 20), (unsigned long long)(bound >> 20));
}

static void store_batch(void *user)
{
    struct batch *batch = user;
    batch->status = cbn__store_put_many(batch->store, batch->timeout_ms, batch->values, batch->count, !batch->is_last,
                                        &batch->stored, &batch->error);
}

/* What came of the batch that was stored last, if one was; it is empty then. */
static int32_t settle_batch(struct unpacking *unpacking, struct batch *batch, struct cbn_error *err)
{
    int32_t status = batch->status;
    CBN__COUNT_LAYER(unpacking->overlay, puts, batch->stored);
    unpacking->result.stored += batch->stored;
    if (status != CBN_STATUS_OK && err)
        *err = batch->error;
    batch->count = batch->total_bytes = batch->stored = 0;
    batch->status = CBN_STATUS_OK;
    return status;
}

/* Begins to store what was filled, and goes on with the other, once that is stored. */
static int32_t hand_over(struct unpacking *unpacking, bool is_last, struct cbn_error *err)
{
    struct batch *full = &unpacking->batches[unpacking->filling], *other = &unpacking->batches[!unpacking->filling];
    cbn__aside_wait(&unpacking->aside);
    cbn__cabinet_tell_notes(unpacking->cabinet, unpacking->overlay);
    int32_t status = settle_batch(unpacking, other, err);
    if (status != CBN_STATUS_OK)
        return status;
    full->store = unpacking->overlay;
    full->timeout_ms = unpacking->cabinet->lock_timeout_ms;
    full->is_last = is_last;
    if (full->count)
        cbn__aside_run(&unpacking->aside, store_batch, full);
    unpacking->filling = !unpacking->filling;
    return CBN_STATUS_OK;
}

static bool same_facts(const struct cbn__entry_facts *a, const struct cbn__entry_facts *b)
{
    return a->compiler_version == b->compiler_version && a->registers == b->registers &&
           a->shared_bytes == b->shared_bytes && a->spill_bytes == b->spill_bytes;
}

/* The overlay has this very kernel: what it knows beside it (when, how long, how often) stays. */
static bool is_there(const struct unpacking *unpacking, const struct cbn__store_key *key,
                     const struct cbn__entry *entry)
{
    CBN__STORE_ITEM_AUTO item = {.value = CBN__BUF_INIT};
    struct cbn__hash hash = cbn__entry_key_hash(key);
    struct cbn__store_pick pick = {.below = entry->major + 1};
    bool refused = false;
    if (unpacking->was_empty)
        return false;
    if (cbn__store_find(unpacking->overlay, unpacking->cabinet->lock_timeout_ms, &hash, &pick, &item, &refused) !=
            CBN_STATUS_OK ||
        memcmp(item.key, key->bytes, sizeof(key->bytes)) != 0)
        return false;
    struct cbn__entry present = {.bytes = item.value};
    item.value = (struct cbn__buf)CBN__BUF_INIT;
    bool same = !cbn__entry_decode(key, &present) && cbn__blob_equal(present.key_record, entry->key_record) &&
                cbn__blob_equal(present.payload, entry->payload) && same_facts(&present.facts, &entry->facts);
    cbn__entry_done(&present);
    return same;
}

/* To this cache it is made now: age counts from here. */
static int32_t keep(struct unpacking *unpacking, const struct cbn__store_key *key, struct cbn__entry *entry,
                    struct cbn_error *err)
{
    struct batch *batch = &unpacking->batches[unpacking->filling];
    struct cbn__buf *bytes = &batch->buffers[batch->count];
    bytes->size = 0;
    entry->facts.created_s = cbn__clock_wall_s();
    cbn__entry_encode(key, entry->key_record, entry->payload, entry->log, &entry->facts, bytes);
    if (bytes->failed)
        return cbn__error_no_memory(err);
    batch->values[batch->count++] = (struct cbn__store_value){*key, cbn__buf_blob(bytes)};
    batch->total_bytes += bytes->size;
    bool full = batch->count == BATCH_ENTRIES || batch->total_bytes >= BATCH_BYTES;
    return full ? hand_over(unpacking, false, err) : CBN_STATUS_OK;
}

/* A row out of the chunk that begins with the row first. */
static int32_t take_row(struct unpacking *unpacking, uint64_t first, uint64_t row, struct cbn_error *err)
{
    struct cbn__store_key key = cbn__pack_row(unpacking->pack, row).key;
    struct cbn__entry entry;
    const char *problem = cbn__pack_view(unpacking->pack, first, &unpacking->chunk, row, &entry);
    struct cbn__hash mark = cbn__pack_mark(&unpacking->secret, cbn__buf_blob(&entry.bytes));
    if (problem || !cbn__hash_equal(&mark, &unpacking->marks[row]))
        return cbn__error_own(err, CBN_STATUS_DAMAGED, "%s was written to while it was unpacked; fetch it again",
                              unpacking->name);
    if (!is_there(unpacking, &key, &entry))
        return keep(unpacking, &key, &entry, err);
    unpacking->result.already++;
    return CBN_STATUS_OK;
}

static int32_t take_rows(struct unpacking *unpacking, struct cbn_error *err)
{
    int32_t status = CBN_STATUS_OK;
    for (uint64_t row = 0, end = 0; row < unpacking->pack->count && status == CBN_STATUS_OK;) {
        uint64_t first = row;
        status = cbn__pack_read_rows(unpacking->pack, first, &unpacking->chunk, &end);
        if (status != CBN_STATUS_OK)
            status = cbn__pack_read_error(unpacking->name, status, err);
        for (; row < end && status == CBN_STATUS_OK; row++)
            status = take_row(unpacking, first, row, err);
    }
    return status;
}

/* The last batch, and what is still under way. */
static int32_t finish(struct unpacking *unpacking, int32_t status, struct cbn_error *err)
{
    if (status == CBN_STATUS_OK)
        status = hand_over(unpacking, true, err);
    cbn__aside_end(&unpacking->aside);
    cbn__cabinet_tell_notes(unpacking->cabinet, unpacking->overlay);
    for (int i = 0; i < 2; i++) {
        struct batch *batch = &unpacking->batches[i];
        bool had_failed = status != CBN_STATUS_OK;
        int32_t settled = settle_batch(unpacking, batch, had_failed ? NULL : err);
        status = had_failed ? status : settled;
        for (size_t j = 0; j < BATCH_ENTRIES; j++)
            cbn__buf_done(&batch->buffers[j]);
    }
    cbn__buf_done(&unpacking->chunk);
    return status;
}

/* Measured before anything is stored. */
static int32_t look_at_overlay(struct unpacking *unpacking, struct cbn_error *err)
{
    struct cbn__layer layer = {0};
    int32_t status = cbn__store_measure(unpacking->overlay, unpacking->cabinet->lock_timeout_ms, &layer, err);
    unpacking->was_empty = status == CBN_STATUS_OK && layer.entries == 0;
    return status;
}

static int32_t unpack(struct unpacking *unpacking, int fd, const uint8_t *expected, struct cbn_error *err)
{
    int own = -1;
    uint64_t bound = cbn__session_map_bytes(unpacking->overlay);
    int32_t status = cbn__spool(fd, unpacking->name, unpacking->overlay->data_path, bound, &own, err);
    if (status == CBN_STATUS_OK)
        status = cbn__pack_open(own, unpacking->name, &unpacking->pack, err);
    if (status != CBN_STATUS_OK) {
        if (own >= 0)
            (void)close(own);
        return status;
    }
    status = verify(unpacking, expected, err);
    if (status == CBN_STATUS_OK)
        status = check_room(unpacking, err);
    if (status == CBN_STATUS_OK)
        status = look_at_overlay(unpacking, err);
    if (status == CBN_STATUS_OK) {
        cbn__aside_begin(&unpacking->aside);
        status = finish(unpacking, take_rows(unpacking, err), err);
    }
    cbn__pack_close(unpacking->pack);
    free(unpacking->marks);
    return status;
}

int32_t cbn__cabinet_unpack(struct cbn__cabinet *cabinet, int fd, const char *name, const uint8_t *expected,
                            struct cbn__unpack_result *ret_result, struct cbn_error *err)
{
    struct cbn__store *overlay = cbn__cabinet_overlay(cabinet);
    *ret_result = (struct cbn__unpack_result){0};
    if (!overlay)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND, "there is no cache folder that can be written");
    struct unpacking *unpacking = calloc(1, sizeof(*unpacking));
    if (!unpacking)
        return cbn__error_no_memory(err);
    cbn__registry_check_pid();
    unpacking->cabinet = cabinet;
    unpacking->overlay = overlay;
    unpacking->name = name;
    int32_t status = unpack(unpacking, fd, expected, err);
    *ret_result = unpacking->result;
    free(unpacking);
    return status;
}
