/*
 * Status names and the error record.
 */
#define CBN_BASE_ERROR_OWN
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cubinet/types.h>

const char *cbn_status_name(int32_t status)
{
    switch (status) {
#define CBN_X(number, name, text)                                                                                      \
    case number:                                                                                                       \
        return #name;
        CBN_STATUS_MAP(CBN_X)
#undef CBN_X
    default:
        return "UNKNOWN";
    }
}

const char *cbn_status_text(int32_t status)
{
    switch (status) {
#define CBN_X(number, name, text)                                                                                      \
    case number:                                                                                                       \
        return text;
        CBN_STATUS_MAP(CBN_X)
#undef CBN_X
    default:
        return "a status that this library does not know";
    }
}

const char *cbn_domain_name(uint32_t domain)
{
    switch (domain) {
#define CBN_X(number, name, text)                                                                                      \
    case number:                                                                                                       \
        return text;
        CBN_DOMAIN_MAP(CBN_X)
#undef CBN_X
    default:
        return "unknown";
    }
}

const char *cbn_dtype_name(uint32_t dtype)
{
    switch (dtype) {
#define CBN_X(number, name, text, bytes)                                                                               \
    case number:                                                                                                       \
        return text;
        CBN_DTYPE_MAP(CBN_X)
#undef CBN_X
    default:
        return "unknown";
    }
}

static void fill(struct cbn_error *err, enum cbn_status status, enum cbn_domain domain, int64_t native_code,
                 const char *format, va_list args)
{
    err->status = (int32_t)status;
    err->domain = (uint32_t)domain;
    err->native_code = native_code;
    (void)vsnprintf(err->message, sizeof(err->message), format, args);
}

int32_t cbn__error_set(struct cbn_error *err, enum cbn_status status, enum cbn_domain domain, int64_t native_code,
                       const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, status, domain, native_code, format, args);
        va_end(args);
    }
    return (int32_t)status;
}

int32_t cbn__error_own(struct cbn_error *err, enum cbn_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, status, CBN_DOMAIN_CUBINET, 0, format, args);
        va_end(args);
    }
    return (int32_t)status;
}

int32_t cbn__error_os(struct cbn_error *err, enum cbn_status status, int code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, status, CBN_DOMAIN_OS, code, format, args);
        va_end(args);
        char reason[128];
        size_t length = strlen(err->message);
        (void)snprintf(err->message + length, sizeof(err->message) - length, ": %s",
                       strerror_r(code, reason, sizeof(reason)));
    }
    return (int32_t)status;
}

int32_t cbn__error_no_memory(struct cbn_error *err)
{
    return cbn__error_own(err, CBN_STATUS_NO_MEMORY, "out of host memory; free some and call again");
}
