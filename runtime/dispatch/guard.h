/*
 * Asking one guard.
 */
#ifndef CBN_DISPATCH_GUARD_H
#define CBN_DISPATCH_GUARD_H

#include "dispatch/family.h"

/* Relations are checked at registration: one that is none never holds. */
static inline bool cbn__guard_holds(const struct cbn__guard *guard, int64_t value)
{
    switch (guard->relation) {
    case CBN_RELATION_EQ:
        return value == guard->value;
    case CBN_RELATION_NE:
        return value != guard->value;
    case CBN_RELATION_LT:
        return value < guard->value;
    case CBN_RELATION_GE:
        return value >= guard->value;
    case CBN_RELATION_IN_RANGE:
        return value >= guard->value && value < guard->value_end;
    case CBN_RELATION_MULTIPLE_OF:
        return value % guard->value == 0;
    default:
        return false;
    }
}

#endif
