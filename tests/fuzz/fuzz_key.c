/*
 * Key records of any bytes: what is taken has texts that end, parameters within bounds, and the key of its bytes.
 */
#include <string.h>

#include <cubinet/route.h>

#include "base/hash.h"
#include "fuzz.h"
#include "jit/spec.h"

static void check_text(const char *text, size_t bytes)
{
    FUZZ_CHECK(memchr(text, 0, bytes) != NULL);
}

static void check_taken(struct cbn__blob record, const struct cbn_spec *spec, const char *digest)
{
    check_text(spec->op, sizeof(spec->op));
    check_text(spec->kernel, sizeof(spec->kernel));
    check_text(spec->arch, sizeof(spec->arch));
    check_text(spec->text, sizeof(spec->text));
    FUZZ_CHECK(spec->param_count <= CBN_PARAMS_MAX);
    for (uint32_t i = 0; i < spec->param_count; i++)
        check_text(spec->params[i].name, sizeof(spec->params[i].name));
    char key[CBN__HASH_TEXT_BYTES];
    struct cbn__hash hash = cbn__hash_blob(record);
    cbn__hash_format(&hash, key);
    FUZZ_CHECK(strcmp(spec->key, key) == 0);
    FUZZ_CHECK(strlen(digest) == CBN__HASH_TEXT_BYTES - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cbn__blob record = {data, size};
    struct cbn_spec spec;
    char digest[CBN__HASH_TEXT_BYTES] = "";
    CBN__BUF_AUTO options = CBN__BUF_INIT;
    bool taken = cbn__key_decode(record, &spec, digest, &options);
    FUZZ_CHECK(options.size <= size);
    if (taken)
        check_taken(record, &spec, digest);
    FUZZ_CHECK(cbn__key_decode(record, &spec, digest, NULL) == taken);
    return 0;
}
