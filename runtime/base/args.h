/*
 * Versioned structs of the public interface: the caller's first `size` bytes over our defaults.
 */
#ifndef CBN_BASE_ARGS_H
#define CBN_BASE_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Copies min(given->size, known_bytes) bytes of given over known, which holds the defaults. INVALID, naming the
 * struct: a size of 0, and non-zero bytes beyond known_bytes (a newer caller asks for what this library lacks).
 */
int32_t cbn__args_take(void *known, size_t known_bytes, const void *given, const char *name, struct cbn_error *err);

/* The other direction: writes min(ret->size, known_bytes) bytes of known, keeping the caller's size field. */
void cbn__args_give(void *ret, const void *known, size_t known_bytes);

#endif
