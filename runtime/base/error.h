/*
 * Filling the caller-owned error record. err may be NULL everywhere.
 */
#ifndef CBN_BASE_ERROR_H
#define CBN_BASE_ERROR_H

#include <cubinet/status.h>

/* Writes the record and returns status, so that `return cbn__error_set(...)` reads as one step. */
int32_t cbn__error_set(struct cbn_error *err, enum cbn_status status, enum cbn_domain domain, int64_t native_code,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The two frequent domains. cbn__error_os appends strerror(code). */
int32_t cbn__error_own(struct cbn_error *err, enum cbn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int32_t cbn__error_os(struct cbn_error *err, enum cbn_status status, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

int32_t cbn__error_no_memory(struct cbn_error *err);

/* clang's analyzer sees one file at a time: it is told here that each of them returns the status it was given. */
#if defined(__clang_analyzer__) && !defined(CBN_BASE_ERROR_OWN)
#define cbn__error_set(err, status, ...) ((void)(cbn__error_set)(err, status, __VA_ARGS__), (int32_t)(status))
#define cbn__error_own(err, status, ...) ((void)(cbn__error_own)(err, status, __VA_ARGS__), (int32_t)(status))
#define cbn__error_os(err, status, ...) ((void)(cbn__error_os)(err, status, __VA_ARGS__), (int32_t)(status))
#define cbn__error_no_memory(err) ((void)(cbn__error_no_memory)(err), (int32_t)CBN_STATUS_NO_MEMORY)
#endif

#endif
