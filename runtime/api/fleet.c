/*
 * The fleet tier as operators see it: its server's own figures, and entries pushed to it.
 */
#include <string.h>

#include "api/runtime.h"
#include "base/args.h"
#include "cache/fleet.h"

int32_t cbn_fleet_inspect(struct cbn_runtime *runtime, struct cbn_fleet_info *ret_info, struct cbn_error *err)
{
    if (!runtime || !ret_info)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "ret_info" : "runtime");
    if (!runtime->tier)
        return cbn__error_own(err, CBN_STATUS_NOT_FOUND,
                              "no fleet server is named; name one with --fleet or CUBINET_FLEET");
    struct cbn_fleet_info info = CBN_FLEET_INFO_INIT;
    int32_t status = cbn__tier_inspect(runtime->tier, &info, err);
    cbn__args_give(ret_info, &info, sizeof(info));
    return status;
}

int32_t cbn_fleet_push(struct cbn_runtime *runtime, const char *key, struct cbn_error *err)
{
    if (!runtime || !key)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s is NULL", runtime ? "key" : "runtime");
    if (strlen(key) != CBN_KEY_TEXT_BYTES - 1 || strspn(key, "0123456789abcdefABCDEF") != CBN_KEY_TEXT_BYTES - 1)
        return cbn__error_own(err, CBN_STATUS_INVALID, "key: '%.40s' is not 32 hex digits", key);
    return cbn__fleet_push(runtime->cabinet, key, err);
}
