/*
 * Versioned public structs.
 */
#include "base/args.h"

#include <string.h>

int32_t cbn__args_take(void *known, size_t known_bytes, const void *given, const char *name, struct cbn_error *err)
{
    uint32_t size = 0;
    memcpy(&size, given, sizeof(size));
    if (size < sizeof(size))
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s.size is %u; initialise the struct with its INIT macro", name,
                              size);
    const unsigned char *bytes = given;
    for (size_t i = known_bytes; i < size; i++)
        if (bytes[i])
            return cbn__error_own(err, CBN_STATUS_INVALID,
                                  "%s: byte %zu is set, but this library knows %zu bytes of the struct; use a newer "
                                  "libcubinet or leave the new fields zero",
                                  name, i, known_bytes);
    memcpy(known, given, size < known_bytes ? size : known_bytes);
    uint32_t taken = (uint32_t)known_bytes;
    memcpy(known, &taken, sizeof(taken));
    return CBN_STATUS_OK;
}

void cbn__args_give(void *ret, const void *known, size_t known_bytes)
{
    uint32_t size = 0;
    memcpy(&size, ret, sizeof(size));
    size_t given = size < known_bytes ? size : known_bytes;
    if (given > sizeof(size))
        memcpy((unsigned char *)ret + sizeof(size), (const unsigned char *)known + sizeof(size), given - sizeof(size));
}
