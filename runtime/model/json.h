/*
 * Bounded reading of a JSON file, and typed reading of its fields. Every refusal names the field or the place.
 */
#ifndef CBN_MODEL_JSON_H
#define CBN_MODEL_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <cubinet/status.h>

#define CBN__JSON_BYTES_MAX ((size_t)16 << 20)
#define CBN__JSON_DEPTH_MAX 64
#define CBN__JSON_VALUES_MAX 1000000u
#define CBN__JSON_QUOTE_BYTES 68

/* INVALID (not JSON, duplicate keys), IO, LIMIT (a bound, a number that no integer holds), NO_MEMORY. */
int32_t cbn__json_load(const char *path, json_t **ret_root, struct cbn_error *err);

/*
 * An integer in 1..2^31-1: INVALID when missing, of another type, zero or negative; LIMIT above. The message calls it
 * where + field.
 */
int32_t cbn__json_read_extent(const json_t *object, const char *where, const char *field, int64_t *ret_value,
                              struct cbn_error *err);
/* Absent and null both read as NULL; another type than a string is INVALID. */
int32_t cbn__json_read_text(const json_t *object, const char *where, const char *field, const char **ret_text,
                            struct cbn_error *err);

bool cbn__json_is_absent(const json_t *value);
/* "a string", for messages. */
const char *cbn__json_type_name(const json_t *value);
/* Foreign text for a message: at most 64 bytes, nothing unprintable. Returns ret_quote. */
const char *cbn__json_quote(const char *text, char ret_quote[CBN__JSON_QUOTE_BYTES]);

#endif
