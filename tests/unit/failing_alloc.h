/*
 * Allocations that fail on demand. Link with -Wl,--wrap=calloc,--wrap=realloc,--wrap=strdup.
 */
#ifndef CBN_TEST_FAILING_ALLOC_H
#define CBN_TEST_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

static int allocs_left = -1; /* negative: never fail */

static bool alloc_fails(void)
{
    if (allocs_left > 0)
        allocs_left--;
    else if (allocs_left == 0)
        return true;
    return false;
}

void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_calloc(size_t count, size_t size)
{
    return alloc_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return alloc_fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return alloc_fails() ? NULL : __real_strdup(text);
}

#endif
