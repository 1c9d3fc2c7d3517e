/*
 * Byte spans and growable byte buffers.
 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cbn__buf_done(struct cbn__buf *buf)
{
    free(buf->data);
    *buf = (struct cbn__buf)CBN__BUF_INIT;
}

bool cbn__buf_reserve(struct cbn__buf *buf, size_t extra_bytes)
{
    if (buf->failed)
        return false;
    if (extra_bytes <= buf->capacity - buf->size)
        return true;
    size_t wanted = 0;
    if (__builtin_add_overflow(buf->size, extra_bytes, &wanted)) {
        buf->failed = true;
        return false;
    }
    size_t capacity = buf->capacity ? buf->capacity : 256;
    while (capacity < wanted && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    if (capacity < wanted)
        capacity = wanted;
    uint8_t *data = realloc(buf->data, capacity);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void cbn__buf_append(struct cbn__buf *buf, const void *data, size_t size)
{
    if (size == 0 || !cbn__buf_reserve(buf, size))
        return;
    memcpy(buf->data + buf->size, data, size);
    buf->size += size;
}

void cbn__buf_append_text(struct cbn__buf *buf, const char *text)
{
    cbn__buf_append(buf, text, strlen(text));
}

void cbn__buf_append_format(struct cbn__buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !cbn__buf_reserve(buf, (size_t)length + 1))
        return;
    va_start(args, format);
    (void)vsnprintf((char *)buf->data + buf->size, (size_t)length + 1, format, args);
    va_end(args);
    buf->size += (size_t)length;
}

const char *cbn__buf_text(struct cbn__buf *buf)
{
    if (!cbn__buf_reserve(buf, 1))
        return "";
    buf->data[buf->size] = 0;
    return (const char *)buf->data;
}

struct cbn__blob cbn__blob_text(const char *text)
{
    return (struct cbn__blob){text, strlen(text)};
}

bool cbn__blob_equal(struct cbn__blob a, struct cbn__blob b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
