/*
 * All of a pack, front to back. See pack.h.
 */
#include "cache/pack.h"

#include <string.h>

#include "base/error.h"

struct pass {
    const struct cbn__pack *pack;
    const char *name;
    const struct cbn__hash *secret;
    struct cbn__hash *marks; /* NULL: not wanted */
    struct cbn__hasher hasher;
    struct cbn__buf chunks[2]; /* one is hashed while the other is read and judged */
};

static int32_t verify_row(struct pass *pass, uint64_t first, const struct cbn__buf *chunk, uint64_t row,
                          struct cbn_error *err)
{
    struct cbn__entry entry;
    const char *problem = cbn__pack_view(pass->pack, first, chunk, row, &entry);
    if (!problem) {
        if (pass->marks)
            pass->marks[row] = cbn__pack_mark(pass->secret, cbn__buf_blob(&entry.bytes));
        return CBN_STATUS_OK;
    }
    char text[CBN__HASH_TEXT_BYTES];
    struct cbn__store_key key = cbn__pack_row(pass->pack, row).key;
    struct cbn__hash hash = cbn__entry_key_hash(&key);
    cbn__hash_format(&hash, text);
    return cbn__error_own(err, CBN_STATUS_DAMAGED, "entry %s of %s is damaged: %s; fetch it again or pack anew", text,
                          pass->name, problem);
}

static int32_t verify_rows(struct pass *pass, struct cbn_error *err)
{
    uint64_t end = 0;
    for (uint64_t first = 0, number = 0; first < pass->pack->count; first = end, number++) {
        struct cbn__buf *chunk = &pass->chunks[number % 2];
        int32_t status = cbn__pack_read_rows(pass->pack, first, chunk, &end);
        if (status != CBN_STATUS_OK)
            return cbn__pack_read_error(pass->name, status, err);
        cbn__hasher_add(&pass->hasher, cbn__buf_blob(chunk)); /* waits for the one before, so that chunk is free */
        for (uint64_t row = first; row < end && status == CBN_STATUS_OK; row++)
            status = verify_row(pass, first, chunk, row, err);
        if (status != CBN_STATUS_OK)
            return status;
    }
    return CBN_STATUS_OK;
}

static int32_t verify(struct pass *pass, uint8_t ret_digest[CBN__SHA256_BYTES], struct cbn_error *err)
{
    uint8_t head[CBN__PACK_HEAD_BYTES], digest[CBN__SHA256_BYTES];
    const struct cbn__pack *pack = pass->pack;
    cbn__pack_head(head); /* what open saw: another head has another seal */
    cbn__hasher_add(&pass->hasher, (struct cbn__blob){head, sizeof(head)});
    int32_t status = verify_rows(pass, err);
    struct cbn__sha256 sha = cbn__hasher_wait(&pass->hasher);
    if (status != CBN_STATUS_OK)
        return status;
    cbn__sha256_add(&sha, (struct cbn__blob){pack->index, (size_t)pack->count * CBN__PACK_ROW_BYTES});
    cbn__sha256_add(&sha, (struct cbn__blob){pack->tail, CBN__PACK_TAIL_SHA256});
    struct cbn__sha256 content = sha;
    cbn__sha256_end(&content, digest);
    if (memcmp(digest, pack->tail + CBN__PACK_TAIL_SHA256, sizeof(digest)) != 0)
        return cbn__pack_refuse(pass->name, "its digest does not match", err);
    cbn__sha256_add(
        &sha, (struct cbn__blob){pack->tail + CBN__PACK_TAIL_SHA256, CBN__PACK_TAIL_BYTES - CBN__PACK_TAIL_SHA256});
    cbn__sha256_end(&sha, ret_digest);
    return CBN_STATUS_OK;
}

int32_t cbn__pack_verify(const struct cbn__pack *pack, const char *name, const struct cbn__hash *secret,
                         struct cbn__hash *ret_marks, uint8_t ret_digest[CBN__SHA256_BYTES], struct cbn_error *err)
{
    struct pass pass = {.pack = pack, .name = name, .secret = secret, .marks = ret_marks};
    cbn__hasher_begin(&pass.hasher);
    int32_t status = verify(&pass, ret_digest, err);
    cbn__hasher_end(&pass.hasher);
    cbn__buf_done(&pass.chunks[0]);
    cbn__buf_done(&pass.chunks[1]);
    return status;
}
