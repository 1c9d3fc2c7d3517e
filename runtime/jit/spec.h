/*
 * A specialisation: a template, its parameters' values and an architecture; its key record, its source, its options.
 */
#ifndef CBN_JIT_SPEC_H
#define CBN_JIT_SPEC_H

#include <cubinet/template.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"

/* Owned by the family that registered it; immutable afterwards. */
struct cbn__template {
    char *family;
    char *name; /* of the candidate */
    char *source;
    char *source_name;
    char *symbol;
    char **header_names;
    char **header_texts;
    uint32_t header_count;
    uint32_t flags; /* CBN_CANDIDATE_* */
    uint32_t argument_layout;
    uint32_t argument_bytes;
    uint32_t param_count;
    char **param_names;
    struct cbn__hash digest; /* of all embedded bytes for a built-in, else of source and headers */
};

struct cbn__spec {
    const struct cbn__template *template;
    uint32_t arch;
    int64_t params[CBN_PARAMS_MAX];
};

/* Digest of a caller's source and every header it gives (names and texts, each with its length). */
struct cbn__hash cbn__template_digest(const struct cbn__template *template);

/* The key record; its hash is the key. The one table of what goes in stands in key.c. */
void cbn__key_record(const struct cbn__spec *spec, struct cbn__buf *ret_record);
struct cbn__hash cbn__key_hash(struct cbn__blob key_record);

/* What a stored key record says: fills op, kernel, arch, params and text; false when it is not one of ours. */
struct cbn_spec;
bool cbn__key_decode(struct cbn__blob key_record, struct cbn_spec *ret_spec, char ret_source_digest[CBN__HASH_TEXT_BYTES],
                     struct cbn__buf *ret_options);

/* The same public description, straight from a specialisation. key is left "" when the candidate has no source. */
void cbn__spec_describe(const struct cbn__spec *spec, struct cbn_spec *ret_spec);

#endif
