/*
 * See pack_base.h. A pack does not change while it is open, so nothing here takes a lock.
 */
#include "cache/pack_base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "cache/folder.h"

#define STAT_BLOCK_BYTES 512u /* of st_blocks, stat(2) */

bool cbn__pack_base_is_one(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* The file that is open is the one that is judged: its name may lead elsewhere by now. */
static int32_t check_trust(const char *path, int fd, bool trust_it, const struct cbn__sink *sink, struct cbn_error *err)
{
    struct cbn__trust trust;
    struct stat file;
    if (fstat(fd, &file) != 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot look at %s", path);
    cbn__trust_pack(path, &file, &trust);
    if (trust.trusted)
        return CBN_STATUS_OK;
    if (!trust_it)
        return cbn__error_own(err, CBN_STATUS_UNTRUSTED, "the pack %s is not trusted: %s; %s", path, trust.problem,
                              trust.mend);
    cbn__sink_tell(sink, CBN_EVENT_NOTICE, 0, "the pack %s is used by override although %s", path, trust.problem);
    return CBN_STATUS_OK;
}

static int open_file(const char *path)
{
    CBN__LOW_DESCRIPTORS_AUTO low = cbn__low_descriptors_hold();
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int32_t cbn__pack_base_open(const char *path, bool trust, const struct cbn__sink *sink, struct cbn__pack **ret_pack,
                            struct cbn_error *err)
{
    int fd = open_file(path);
    if (fd < 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot open the pack %s", path);
    int32_t status = check_trust(path, fd, trust, sink, err);
    if (status == CBN_STATUS_OK)
        status = cbn__pack_open(fd, path, ret_pack, err);
    if (status != CBN_STATUS_OK)
        (void)close(fd);
    return status;
}

int32_t cbn__pack_base_inspect(const char *path, bool trust, uint64_t *ret_entries, struct cbn_error *err)
{
    static const struct cbn__sink silence;
    struct cbn__pack *pack = NULL;
    int32_t status = cbn__pack_base_open(path, trust, &silence, &pack, err);
    if (status == CBN_STATUS_OK)
        *ret_entries = pack->count;
    cbn__pack_close(pack);
    return status;
}

static void tell_damage(const struct cbn__cabinet *cabinet, const struct cbn__cabinet_layer *layer,
                        const struct cbn__hash *hash, const char *problem)
{
    char text[CBN__HASH_TEXT_BYTES];
    cbn__hash_format(hash, text);
    cbn__sink_tell(&cabinet->sink, CBN_EVENT_DAMAGE, 0, "entry %s of %s is damaged (%s)", text, layer->path, problem);
}

/* One entry that the rule's majors let through. */
static enum cbn__lookup try_row(const struct cbn__cabinet *cabinet, const struct cbn__cabinet_layer *layer,
                                uint64_t row, struct cbn__blob key_record, const struct cbn__compiler_rule *rule,
                                struct cbn__entry *ret_entry)
{
    struct cbn__entry entry;
    const char *problem = NULL;
    struct cbn__hash hash = cbn__hash_blob(key_record);
    if (cbn__pack_read(layer->pack, row, &entry, &problem, NULL) != CBN_STATUS_OK)
        return CBN__LOOKUP_IO;
    enum cbn__lookup verdict = CBN__LOOKUP_HIT;
    if (problem)
        verdict = CBN__LOOKUP_DAMAGED;
    else if (!cbn__blob_equal(entry.key_record, key_record))
        verdict = CBN__LOOKUP_ABSENT;
    else if (!cbn__rule_takes_version(rule, entry.facts.compiler_version))
        verdict = CBN__LOOKUP_INCOMPATIBLE;
    if (verdict == CBN__LOOKUP_HIT) {
        entry.layer = layer->number;
        entry.layer_path = layer->path;
        *ret_entry = entry;
        return verdict;
    }
    cbn__entry_done(&entry);
    if (problem)
        tell_damage(cabinet, layer, &hash, problem);
    return verdict;
}

static struct cbn__blob key_bytes(const struct cbn__hash *hash)
{
    return (struct cbn__blob){hash->bytes, sizeof(hash->bytes)};
}

/* The majors of a key stand side by side, ascending: from the newest that the rule takes to older ones. */
enum cbn__lookup cbn__pack_base_find(const struct cbn__cabinet *cabinet, const struct cbn__cabinet_layer *layer,
                                     struct cbn__blob key_record, const struct cbn__compiler_rule *rule,
                                     struct cbn__entry *ret_entry)
{
    const struct cbn__pack *pack = layer->pack;
    struct cbn__hash hash = cbn__hash_blob(key_record);
    uint64_t first = cbn__pack_seek(pack, key_bytes(&hash)), end = first;
    while (end < pack->count && memcmp(cbn__pack_row(pack, end).key.bytes, hash.bytes, sizeof(hash.bytes)) == 0)
        end++;
    enum cbn__lookup found = CBN__LOOKUP_ABSENT;
    for (uint64_t row = end; row-- > first && found != CBN__LOOKUP_HIT;) {
        struct cbn__store_key key = cbn__pack_row(pack, row).key;
        enum cbn__lookup verdict = CBN__LOOKUP_INCOMPATIBLE;
        if (cbn__rule_takes_major(rule, cbn__entry_key_major(&key)))
            verdict = try_row(cabinet, layer, row, key_record, rule, ret_entry);
        found = cbn__lookup_worse(found, verdict);
    }
    return found;
}

int32_t cbn__pack_base_each(const struct cbn__cabinet_layer *layer, struct cbn__blob seek, const char *prefix,
                            cbn__entry_fn each, void *user, bool *ret_stopped)
{
    const struct cbn__pack *pack = layer->pack;
    for (uint64_t row = seek.size ? cbn__pack_seek(pack, seek) : 0; row < pack->count && !*ret_stopped; row++) {
        struct cbn__store_key key = cbn__pack_row(pack, row).key;
        struct cbn__hash hash = cbn__entry_key_hash(&key);
        struct cbn__entry entry;
        const char *problem = NULL;
        if (!cbn__layer_key_begins(&hash, prefix))
            return CBN_STATUS_OK;
        int32_t status = cbn__pack_read(pack, row, &entry, &problem, NULL);
        if (status != CBN_STATUS_OK)
            return status;
        entry.layer = layer->number;
        entry.layer_path = layer->path;
        *ret_stopped = each(user, &hash, &entry, problem, layer->number, layer->path) != 0;
        cbn__entry_done(&entry);
    }
    return CBN_STATUS_OK;
}

void cbn__pack_base_measure(const struct cbn__cabinet_layer *layer, struct cbn__layer_stats *stats)
{
    struct stat file;
    stats->layer.entries = layer->pack->count;
    stats->layer.file_bytes = layer->pack->file_bytes;
    stats->layer.used_bytes = layer->pack->file_bytes;
    if (fstat(layer->pack->fd, &file) == 0)
        stats->allocated_bytes = (uint64_t)file.st_blocks * STAT_BLOCK_BYTES;
}
