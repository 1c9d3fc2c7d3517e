/*
 * Digests of template files. Pure.
 */
#include "jit/digest.h"

#include <string.h>

#include "base/record.h"

const char *cbn__file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

struct cbn__hash cbn__digest_file(const struct cbn__hash *before, const char *name, struct cbn__blob text)
{
    struct cbn__blob name_blob = cbn__blob_text(name);
    uint8_t name_size[8], text_size[8];
    cbn__store_u64(name_size, name_blob.size);
    cbn__store_u64(text_size, text.size);
    const struct cbn__blob blobs[] = {
        {before->bytes, sizeof(before->bytes)},
        {name_size, sizeof(name_size)},
        name_blob,
        {text_size, sizeof(text_size)},
        text,
    };
    return cbn__hash_blobs(blobs, sizeof(blobs) / sizeof(blobs[0]));
}
