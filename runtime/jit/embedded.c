/*
 * The embedded templates: look-up and the one digest. Immutable data, no locks.
 */
#include "jit/embedded.h"

#include <string.h>

#include "jit/digest.h"

const struct cbn__embedded *cbn__embedded_find(const char *name)
{
    for (size_t i = 0; i < cbn__embedded_count; i++)
        if (strcmp(cbn__embedded_files[i].name, name) == 0)
            return &cbn__embedded_files[i];
    return NULL;
}

struct cbn__hash cbn__embedded_digest(void)
{
    struct cbn__hash digest = CBN__DIGEST_EMPTY;
    for (size_t i = 0; i < cbn__embedded_count; i++) {
        const struct cbn__embedded *file = &cbn__embedded_files[i];
        digest = cbn__digest_file(&digest, file->name, (struct cbn__blob){file->text, file->size});
    }
    return digest;
}
