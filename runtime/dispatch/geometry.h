/*
 * Arithmetic of the built-in geometry functions: saturating, since facts are any 64-bit values.
 */
#ifndef CBN_DISPATCH_GEOMETRY_H
#define CBN_DISPATCH_GEOMETRY_H

#include <stdint.h>

/* ceil(value / step), 0 for value <= 0. */
static inline int64_t cbn__geometry_ceil(int64_t value, int64_t step)
{
    return value <= 0 ? 0 : (value - 1) / step + 1;
}

static inline int64_t cbn__geometry_product(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/*
 * CTAs of a kernel that strides over its work. Within a budget of SMs, one CTA an SM: where CTAs are placed is the
 * hardware's choice, so that only a grid of at most max_sms is sure to use no more.
 */
static inline uint32_t cbn__geometry_grid(int64_t work, int64_t resident, int64_t sms, int64_t max_sms)
{
    int64_t limit = max_sms > 0 && max_sms < sms ? max_sms : cbn__geometry_product(sms, resident);
    limit = limit < 1 ? 1 : limit > INT32_MAX ? INT32_MAX : limit;
    return (uint32_t)(work < 1 ? 1 : work < limit ? work : limit);
}

#endif
