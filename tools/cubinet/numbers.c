/*
 * Strict numbers and choices: the whole text or nothing.
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
