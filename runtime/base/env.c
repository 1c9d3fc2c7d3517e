/*
 * The only getenv of the library.
 */
#include "base/env.h"

#include <stdlib.h>
#include <sys/auxv.h>

const char *cbn__env_name(enum cbn__env variable)
{
    switch (variable) {
#define CBN__X(name, text)                                                                                             \
    case CBN__ENV_##name:                                                                                              \
        return text;
        CBN__ENV_MAP(CBN__X)
#undef CBN__X
    }
    return "";
}

bool cbn__env_is_ignored(void)
{
    return getauxval(AT_SECURE) != 0;
}

const char *cbn__env_get(enum cbn__env variable)
{
    const char *value = secure_getenv(cbn__env_name(variable));
    return value && *value ? value : NULL;
}
