/*
 * What this library is: its version, the cabinet's format, the digest of the embedded templates.
 */
#include <cubinet/runtime.h>

#include "base/args.h"
#include "cache/cabinet.h"
#include "dispatch/builtin.h"
#include "jit/embedded.h"

void cbn_version_get(struct cbn_version *ret_version)
{
    struct cbn_version version = {
        .size = sizeof(version),
        .major = CBN_VERSION_MAJOR,
        .minor = CBN_VERSION_MINOR,
        .patch = CBN_VERSION_PATCH,
        .format = CBN__FORMAT_VERSION,
        .argument_layout = CBN__ARGUMENT_LAYOUT,
    };
    struct cbn__hash digest = cbn__embedded_digest();
    cbn__hash_format(&digest, version.template_digest);
    cbn__args_give(ret_version, &version, sizeof(version));
}
