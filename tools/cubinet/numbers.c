/*
 * Strict numbers, sizes, spans of time, versions and choices: the whole text or nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const char *cli_number_read(const char *text, int64_t low, int64_t high, int64_t *ret_number)
{
    if (text[0] == '-' && text[1] >= '0' && text[1] <= '9')
        return "is negative";
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || text[digits])
        return "is not a whole number";
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    if (errno || number > high)
        return "is too large";
    if (number < low)
        return "is too small";
    *ret_number = number;
    return NULL;
}

struct unit {
    const char *name;
    int64_t value;
};

static const struct unit size_units[] = {
    {"B", 1}, {"KiB", 1ll << 10}, {"MiB", 1ll << 20}, {"GiB", 1ll << 30}, {"TiB", 1ll << 40}, {NULL, 0},
};
static const struct unit span_units[] = {
    {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 7ll * 86400}, {NULL, 0},
};

/* A whole number and one of the units. 0 needs none. */
static const char *read_unit(const char *text, const struct unit *units, const char *problem, int64_t *ret_value)
{
    size_t digits = strspn(text, "0123456789");
    char number[24];
    if (digits == 0 || digits >= sizeof(number))
        return text[0] == '-' ? "is negative" : digits ? "is too large" : problem;
    memcpy(number, text, digits);
    number[digits] = 0;
    int64_t count = 0;
    const char *wrong = cli_number_read(number, 0, INT64_MAX, &count);
    if (wrong)
        return wrong;
    if (count == 0 && !text[digits]) {
        *ret_value = 0;
        return NULL;
    }
    while (units->name && strcmp(units->name, text + digits) != 0)
        units++;
    if (!units->name)
        return problem;
    return __builtin_mul_overflow(count, units->value, ret_value) ? "is too large" : NULL;
}

const char *cli_size_read(const char *text, int64_t *ret_bytes)
{
    int64_t bytes = 0;
    const char *problem = read_unit(text, size_units, "is not a size", &bytes);
    if (!problem)
        *ret_bytes = bytes;
    return problem;
}

const char *cli_span_read(const char *text, int64_t *ret_s)
{
    int64_t seconds = 0;
    const char *problem = read_unit(text, span_units, "is not a span of time", &seconds);
    if (!problem && seconds == 0)
        problem = "is too small";
    if (!problem)
        *ret_s = seconds;
    return problem;
}

const char *cli_version_read(const char *text, uint32_t *ret_version)
{
    char major[8], minor[8] = "0";
    size_t length = strcspn(text, ".");
    const char *rest = text[length] == '.' ? text + length + 1 : minor;
    if (length >= sizeof(major) || strlen(rest) >= sizeof(minor))
        return "is no version";
    (void)snprintf(major, sizeof(major), "%.*s", (int)length, text);
    int64_t high = 0, low = 0;
    if (cli_number_read(major, 0, 999, &high) || cli_number_read(rest, 0, 999, &low))
        return "is no version";
    *ret_version = (uint32_t)(high * 1000 + low);
    return NULL;
}

int cli_choice_find(const char *choices, const char *text, size_t text_length)
{
    for (int position = 0;; position++) {
        size_t length = strcspn(choices, "|");
        if (length == text_length && memcmp(choices, text, length) == 0)
            return position;
        if (!choices[length])
            return -1;
        choices += length + 1;
    }
}

void cli_choice_name(const char *choices, int64_t position, char *ret_name, size_t name_bytes)
{
    while (position-- > 0 && *choices) {
        choices += strcspn(choices, "|");
        choices += *choices == '|';
    }
    (void)snprintf(ret_name, name_bytes, "%.*s", (int)strcspn(choices, "|"), choices);
}
