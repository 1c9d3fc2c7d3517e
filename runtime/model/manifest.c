/*
 * cbn_manifest_load: shapes as JSON, made by hand or by `cubinet --json shapes`. Unknown fields are ignored, so that a
 * later version may add some.
 */
#include <cubinet/model.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "model/json.h"
#include "model/shapes.h"

#define TEXT_BYTES_MAX 256
#define WHERE_BYTES 32

/*
 * C0, DEL, C1 (U+0080..U+009F), and what reorders the text around it: U+202A..U+202E, U+2066..U+2069. at: valid UTF-8,
 * of which the parser takes no other.
 */
static bool is_control(const char *at)
{
    const unsigned char *bytes = (const unsigned char *)at;
    if (bytes[0] < ' ' || bytes[0] == 127)
        return true;
    if (bytes[0] == 0xc2)
        return bytes[1] <= 0x9f;
    if (bytes[0] != 0xe2)
        return false;
    return (bytes[1] == 0x80 && bytes[2] >= 0xaa && bytes[2] <= 0xae) ||
           (bytes[1] == 0x81 && bytes[2] >= 0xa6 && bytes[2] <= 0xa9);
}

/* A text that ends up on terminals and in tables: short, no control characters. */
static int32_t read_name(const json_t *entry, const char *where, const char *field, const char *fallback,
                         const char **ret_text, struct cbn_error *err)
{
    const char *text;
    int32_t status = cbn__json_read_text(entry, where, field, &text, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (!text && !fallback)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s%s is %s; it must be a string", where, field,
                              cbn__json_type_name(json_object_get(entry, field)));
    if (!text)
        text = fallback;
    if (!fallback && !*text)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s%s is empty; it must name something", where, field);
    if (strlen(text) > TEXT_BYTES_MAX)
        return cbn__error_own(err, CBN_STATUS_LIMIT, "%s%s is longer than %d bytes; shorten it", where, field,
                              TEXT_BYTES_MAX);
    for (const char *at = text; *at; at++)
        if (is_control(at))
            return cbn__error_own(err, CBN_STATUS_INVALID, "%s%s holds a control character; remove it", where, field);
    *ret_text = text;
    return CBN_STATUS_OK;
}

static int32_t read_fp8(const json_t *entry, const char *where, uint32_t *ret_fp8, struct cbn_error *err)
{
    const json_t *value = json_object_get(entry, "fp8");
    bool number = json_is_integer(value) && (json_integer_value(value) == 0 || json_integer_value(value) == 1);
    if (!cbn__json_is_absent(value) && !json_is_boolean(value) && !number)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%sfp8 is %s; it must be true or false", where,
                              cbn__json_type_name(value));
    *ret_fp8 = cbn__json_is_absent(value) || json_is_true(value) || (number && json_integer_value(value) == 1);
    return CBN_STATUS_OK;
}

/* An extent that the operation has no use for: missing, or the 1 that says nothing. */
static int32_t check_needless(const struct cbn_model_shape *shape, const char *where, const char *field, int64_t value,
                              struct cbn_error *err)
{
    if (value == 1)
        return CBN_STATUS_OK;
    return cbn__error_own(err, CBN_STATUS_INVALID, "%s%s is %lld, but %s has no %s; leave it out", where, field,
                          (long long)value, shape->op, field);
}

static int32_t read_extents(const json_t *entry, const char *where, struct cbn_model_shape *shape,
                            struct cbn_error *err)
{
    bool quantize = strcmp(shape->op, "fp8_quantize") == 0, gemm = strcmp(shape->op, "fp8_gemm") == 0;
    int32_t status = CBN_STATUS_OK;
    shape->n = 1;
    shape->groups = 1;
    if (!quantize || !cbn__json_is_absent(json_object_get(entry, "n")))
        status = cbn__json_read_extent(entry, where, "n", &shape->n, err);
    if (status == CBN_STATUS_OK && quantize)
        status = check_needless(shape, where, "n", shape->n, err);
    if (status == CBN_STATUS_OK)
        status = cbn__json_read_extent(entry, where, "k", &shape->k, err);
    if (status == CBN_STATUS_OK && !cbn__json_is_absent(json_object_get(entry, "groups")))
        status = cbn__json_read_extent(entry, where, "groups", &shape->groups, err);
    if (status == CBN_STATUS_OK && gemm)
        status = check_needless(shape, where, "groups", shape->groups, err);
    return status;
}

static int32_t append_entry(const json_t *entry, const char *where, struct cbn_model *model, struct cbn_error *err)
{
    struct cbn_model_shape shape = {0};
    int32_t status = read_name(entry, where, "op", NULL, &shape.op, err);
    if (status == CBN_STATUS_OK)
        status = read_name(entry, where, "layer", "", &shape.layer, err);
    if (status == CBN_STATUS_OK)
        status = read_name(entry, where, "reason", "", &shape.reason, err);
    if (status == CBN_STATUS_OK)
        status = read_extents(entry, where, &shape, err);
    if (status == CBN_STATUS_OK)
        status = read_fp8(entry, where, &shape.fp8, err);
    if (shape.fp8)
        shape.reason = ""; /* why not */
    else if (status == CBN_STATUS_OK && !*shape.reason)
        shape.reason = "said so by the manifest";
    return status == CBN_STATUS_OK ? cbn__shapes_append(model, &shape, err) : status;
}

static int32_t append_entries(const json_t *shapes, struct cbn_model *model, struct cbn_error *err)
{
    int32_t status = CBN_STATUS_OK;
    for (size_t i = 0; i < json_array_size(shapes) && status == CBN_STATUS_OK; i++) {
        const json_t *entry = json_array_get(shapes, i);
        char where[WHERE_BYTES];
        (void)snprintf(where, sizeof(where), "shapes[%zu].", i);
        if (!json_is_object(entry))
            return cbn__error_own(err, CBN_STATUS_INVALID, "shapes[%zu] is %s; it must be an object", i,
                                  cbn__json_type_name(entry));
        status = append_entry(entry, where, model, err);
    }
    return status;
}

static int32_t check_schema(const json_t *root, struct cbn_error *err)
{
    char quote[CBN__JSON_QUOTE_BYTES];
    const char *schema;
    if (!json_is_object(root))
        return cbn__error_own(err, CBN_STATUS_INVALID, "the file holds %s; a manifest is an object",
                              cbn__json_type_name(root));
    int32_t status = cbn__json_read_text(root, "", "schema", &schema, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (!schema)
        return cbn__error_own(err, CBN_STATUS_INVALID, "schema is missing; a manifest says \"cubinet.manifest/1\"");
    if (strcmp(schema, "cubinet.manifest/1") == 0 || strcmp(schema, "cubinet.shapes/1") == 0)
        return CBN_STATUS_OK;
    return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                          "schema is \"%s\"; \"cubinet.manifest/1\" and \"cubinet.shapes/1\" are taken",
                          cbn__json_quote(schema, quote));
}

int32_t cbn_manifest_load(const char *path, struct cbn_model **ret_model, struct cbn_error *err)
{
    json_auto_t *root = NULL;
    if (!ret_model)
        return cbn__error_own(err, CBN_STATUS_INVALID, "ret_model is NULL");
    int32_t status = cbn__json_load(path, &root, err);
    if (status == CBN_STATUS_OK)
        status = check_schema(root, err);
    if (status != CBN_STATUS_OK)
        return status;
    const json_t *shapes = json_object_get(root, "shapes");
    if (!json_is_array(shapes))
        return cbn__error_own(err, CBN_STATUS_INVALID, "shapes is %s; it must be an array",
                              cbn__json_type_name(shapes));
    if (json_array_size(shapes) == 0)
        return cbn__error_own(err, CBN_STATUS_INVALID, "shapes is empty; it must name at least one layer");
    CBN__MODEL_AUTO model = cbn__shapes_create("manifest");
    if (!model)
        return cbn__error_no_memory(err);
    status = append_entries(shapes, model, err);
    if (status == CBN_STATUS_OK) {
        *ret_model = model;
        model = NULL;
    }
    return status;
}
