/*
 * Key records: the one table of what a key holds, its encoder and its decoder. Pure.
 *
 * Not in a key: paths, environment, time, locale, host, user, M, the GPU's index, the NVRTC version (it stands beside
 * the key), and everything of a template that NVRTC never sees (its flags, the size of its arguments).
 */
#include <stdio.h>
#include <string.h>

#include <cubinet/route.h>

#include "base/record.h"
#include "jit/build.h"
#include "jit/digest.h"

#define KEY_FORMAT 1u

/* Inside the fields OPTIONS and PARAM. */
enum { TAG_OPTION = 1 };
enum { TAG_PARAM_NAME = 1, TAG_PARAM_VALUE = 2 };

struct decoded {
    struct cbn_spec *spec;
    char *source_digest; /* CBN__HASH_TEXT_BYTES */
    struct cbn__buf *options;
};

/* ---- encoders: every one appends its field, or several of one tag ---- */

static void put_format(const struct cbn__spec *spec, uint16_t tag, struct cbn__buf *record)
{
    (void)spec;
    cbn__record_put_u32(record, tag, KEY_FORMAT);
}

static void put_family(const struct cbn__spec *spec, uint16_t tag, struct cbn__buf *record)
{
    cbn__record_put_text(record, tag, spec->template->family);
}

static void put_candidate(const struct cbn__spec *spec, uint16_t tag, struct cbn__buf *record)
{
    cbn__record_put_text(record, tag, spec->template->name);
}

static void put_symbol(const struct cbn__spec *spec, uint16_t tag, struct cbn__buf *record)
{
    cbn__record_put_text(record, tag, spec->template->symbol ? spec->template->symbol : "");
}

static void put_layout(const struct cbn__spec *spec, uint16_t tag, struct cbn__buf *record)
{
    cbn__record_put_u32(record, tag, spec->template->argument_layout);
}

static void put_arch(const struct cbn__spec *spec, uint16_t tag, struct cbn__buf *record)
{
    char name[16];
    cbn_arch_format(spec->arch, name, sizeof(name));
    cbn__record_put_text(record, tag, name);
}

static void put_options(const struct cbn__spec *spec, uint16_t tag, struct cbn__buf *record)
{
    struct cbn__spec_options options;
    cbn__spec_options(spec, &options);
    CBN__BUF_AUTO list = CBN__BUF_INIT;
    for (int i = 0; i < options.count; i++)
        cbn__record_put_text(&list, TAG_OPTION, options.items[i]);
    record->failed |= list.failed;
    cbn__record_put(record, tag, cbn__buf_blob(&list));
}

static void put_digest(const struct cbn__spec *spec, uint16_t tag, struct cbn__buf *record)
{
    const struct cbn__hash *digest = &spec->template->digest;
    cbn__record_put(record, tag, (struct cbn__blob){digest->bytes, sizeof(digest->bytes)});
}

static void put_params(const struct cbn__spec *spec, uint16_t tag, struct cbn__buf *record)
{
    for (uint32_t i = 0; i < spec->template->param_count; i++) {
        CBN__BUF_AUTO param = CBN__BUF_INIT;
        cbn__record_put_text(&param, TAG_PARAM_NAME, spec->template->param_names[i]);
        cbn__record_put_u64(&param, TAG_PARAM_VALUE, (uint64_t)spec->params[i]);
        record->failed |= param.failed;
        cbn__record_put(record, tag, cbn__buf_blob(&param));
    }
}

/* ---- decoders: false when the bytes are none of ours ---- */

static bool take_text(struct cbn__blob bytes, char *ret_text, size_t text_bytes)
{
    if (bytes.size >= text_bytes || (bytes.size && memchr(bytes.data, 0, bytes.size)))
        return false;
    if (bytes.size)
        memcpy(ret_text, bytes.data, bytes.size);
    ret_text[bytes.size] = 0;
    return true;
}

static bool take_format(struct cbn__blob bytes, struct decoded *decoded)
{
    (void)decoded;
    return bytes.size == 4 && cbn__load_u32(bytes.data) == KEY_FORMAT;
}

static bool take_family(struct cbn__blob bytes, struct decoded *decoded)
{
    return take_text(bytes, decoded->spec->op, sizeof(decoded->spec->op));
}

static bool take_candidate(struct cbn__blob bytes, struct decoded *decoded)
{
    return take_text(bytes, decoded->spec->kernel, sizeof(decoded->spec->kernel));
}

static bool take_symbol(struct cbn__blob bytes, struct decoded *decoded)
{
    (void)decoded;
    return bytes.size == 0 || !memchr(bytes.data, 0, bytes.size);
}

static bool take_layout(struct cbn__blob bytes, struct decoded *decoded)
{
    (void)decoded;
    return bytes.size == 4;
}

static bool take_arch(struct cbn__blob bytes, struct decoded *decoded)
{
    return take_text(bytes, decoded->spec->arch, sizeof(decoded->spec->arch));
}

static bool take_options(struct cbn__blob bytes, struct decoded *decoded)
{
    size_t offset = 0;
    struct cbn__record_field field;
    bool malformed = false;
    while (cbn__record_next(bytes, &offset, &field, &malformed)) {
        if (field.tag != TAG_OPTION)
            return false;
        if (!decoded->options)
            continue;
        if (decoded->options->size)
            cbn__buf_append_text(decoded->options, " ");
        cbn__buf_append(decoded->options, field.bytes.data, field.bytes.size);
    }
    return !malformed;
}

static bool take_digest(struct cbn__blob bytes, struct decoded *decoded)
{
    struct cbn__hash digest;
    if (bytes.size != sizeof(digest.bytes))
        return false;
    memcpy(digest.bytes, bytes.data, sizeof(digest.bytes));
    cbn__hash_format(&digest, decoded->source_digest);
    return true;
}

static bool take_param(struct cbn__blob bytes, struct decoded *decoded)
{
    struct cbn_spec *spec = decoded->spec;
    struct cbn__blob name;
    uint64_t value = 0;
    if (spec->param_count >= CBN_PARAMS_MAX || !cbn__record_well_formed(bytes) ||
        !cbn__record_find(bytes, TAG_PARAM_NAME, &name) || !cbn__record_find_u64(bytes, TAG_PARAM_VALUE, &value) ||
        !take_text(name, spec->params[spec->param_count].name, sizeof(spec->params[0].name)))
        return false;
    spec->params[spec->param_count++].value = (int64_t)value;
    return true;
}

/* ---- the table: everything that a key holds, in ascending order of tag ---- */

static const struct field {
    uint16_t tag;
    bool repeats; /* any number of times; else exactly once */
    void (*put)(const struct cbn__spec *spec, uint16_t tag, struct cbn__buf *record);
    bool (*take)(struct cbn__blob bytes, struct decoded *decoded);
} fields[] = {
    {1, false, put_format, take_format},       /* of this record: u32 */
    {2, false, put_family, take_family},       /* text */
    {3, false, put_candidate, take_candidate}, /* text */
    {4, false, put_symbol, take_symbol},       /* text */
    {5, false, put_layout, take_layout},       /* version of the argument struct: u32 */
    {6, false, put_arch, take_arch},           /* "sm_90a" */
    {7, false, put_options, take_options},     /* of NVRTC, in order: record of texts */
    {8, false, put_digest, take_digest},       /* of all embedded files, or of the caller's source and headers */
    {16, true, put_params, take_param},        /* in order: record of name and i64 */
};

#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

void cbn__key_record(const struct cbn__spec *spec, struct cbn__buf *ret_record)
{
    for (size_t i = 0; i < FIELD_COUNT; i++)
        fields[i].put(spec, fields[i].tag, ret_record);
}

struct cbn__hash cbn__key_hash(struct cbn__blob key_record)
{
    return cbn__hash_blob(key_record);
}

struct cbn__hash cbn__template_digest(const struct cbn__template *template)
{
    struct cbn__hash digest = CBN__DIGEST_EMPTY;
    digest = cbn__digest_file(&digest, template->source_name ? cbn__file_name(template->source_name) : "",
                              cbn__blob_text(template->source ? template->source : ""));
    for (uint32_t i = 0; i < template->header_count; i++)
        digest = cbn__digest_file(&digest, template->header_names[i], cbn__blob_text(template->header_texts[i]));
    return digest;
}

/* ---- descriptions ---- */

static void write_text(struct cbn_spec *spec)
{
    CBN__BUF_AUTO text = CBN__BUF_INIT;
    cbn__buf_append_format(&text, "%s/%s %s", spec->op, spec->kernel, spec->arch);
    for (uint32_t i = 0; i < spec->param_count; i++)
        cbn__buf_append_format(&text, " %s=%lld", spec->params[i].name, (long long)spec->params[i].value);
    (void)snprintf(spec->text, sizeof(spec->text), "%s", cbn__buf_text(&text));
}

/* The number of fields of this tag, all of them taken; -1 when one is not ours. */
static int take_fields(struct cbn__blob record, const struct field *field, struct decoded *decoded)
{
    size_t offset = 0;
    struct cbn__record_field found;
    bool malformed = false;
    int count = 0;
    while (cbn__record_next(record, &offset, &found, &malformed)) {
        if (found.tag != field->tag)
            continue;
        if (!field->take(found.bytes, decoded))
            return -1;
        count++;
    }
    return count;
}

static size_t count_fields(struct cbn__blob record)
{
    size_t offset = 0, count = 0;
    struct cbn__record_field found;
    bool malformed = false;
    while (cbn__record_next(record, &offset, &found, &malformed))
        count++;
    return count;
}

bool cbn__key_decode(struct cbn__blob key_record, struct cbn_spec *ret_spec,
                     char ret_source_digest[CBN__HASH_TEXT_BYTES], struct cbn__buf *ret_options)
{
    struct decoded decoded = {ret_spec, ret_source_digest, ret_options};
    memset(ret_spec, 0, sizeof(*ret_spec));
    if (!cbn__record_well_formed(key_record))
        return false;
    size_t taken = 0;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        int count = take_fields(key_record, &fields[i], &decoded);
        if (count < 0 || (!fields[i].repeats && count != 1))
            return false;
        taken += (size_t)count;
    }
    if (taken != count_fields(key_record))
        return false; /* a tag of another format */
    struct cbn__hash key = cbn__key_hash(key_record);
    cbn__hash_format(&key, ret_spec->key);
    write_text(ret_spec);
    return true;
}

void cbn__spec_describe(const struct cbn__spec *spec, struct cbn_spec *ret_spec)
{
    const struct cbn__template *template = spec->template;
    memset(ret_spec, 0, sizeof(*ret_spec));
    (void)snprintf(ret_spec->op, sizeof(ret_spec->op), "%s", template->family);
    (void)snprintf(ret_spec->kernel, sizeof(ret_spec->kernel), "%s", template->name);
    cbn_arch_format(spec->arch, ret_spec->arch, sizeof(ret_spec->arch));
    ret_spec->param_count = template->param_count;
    for (uint32_t i = 0; i < template->param_count; i++) {
        (void)snprintf(ret_spec->params[i].name, sizeof(ret_spec->params[i].name), "%s", template->param_names[i]);
        ret_spec->params[i].value = spec->params[i];
    }
    write_text(ret_spec);
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    cbn__key_record(spec, &record);
    if (!template->source || record.failed)
        return;
    struct cbn__hash key = cbn__key_hash(cbn__buf_blob(&record));
    cbn__hash_format(&key, ret_spec->key);
}
