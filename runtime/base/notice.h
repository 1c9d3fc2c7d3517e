/*
 * The one way in which a layer tells the caller something outside a return value: the runtime's event callback.
 * No lock may be held while it runs.
 */
#ifndef CBN_BASE_NOTICE_H
#define CBN_BASE_NOTICE_H

#include <cubinet/runtime.h>

struct cbn__sink {
    cbn_event_fn event; /* NULL: silence */
    void *user;
};

void cbn__sink_tell(const struct cbn__sink *sink, enum cbn_event_kind kind, int64_t value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
