/*
 * Events to the caller's callback.
 */
#include "base/notice.h"

#include <stdarg.h>
#include <stdio.h>

#define NOTICE_BYTES 4096

void cbn__sink_tell(const struct cbn__sink *sink, enum cbn_event_kind kind, int64_t value, const char *format, ...)
{
    if (!sink || !sink->event)
        return;
    char text[NOTICE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct cbn_event event = {.size = sizeof(event), .kind = (uint32_t)kind, .text = text, .value = value};
    sink->event(sink->user, &event);
}
