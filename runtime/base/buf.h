/*
 * Byte spans and growable byte buffers. A blob borrows, a buf owns. Not thread safe.
 */
#ifndef CBN_BASE_BUF_H
#define CBN_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cbn__blob {
    const void *data;
    size_t size;
};

struct cbn__buf {
    uint8_t *data;
    size_t size;
    size_t capacity;
    bool failed; /* an allocation failed: every later append is a no-op; check once at the end */
};

#define CBN__BUF_INIT {NULL, 0, 0, false}
#define CBN__BUF_AUTO __attribute__((cleanup(cbn__buf_done))) struct cbn__buf

void cbn__buf_done(struct cbn__buf *buf);
bool cbn__buf_reserve(struct cbn__buf *buf, size_t extra_bytes);
void cbn__buf_append(struct cbn__buf *buf, const void *data, size_t size);
void cbn__buf_append_text(struct cbn__buf *buf, const char *text);
void cbn__buf_append_format(struct cbn__buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends a NUL that is not counted in size; "" when the buffer is empty or failed. Borrowed until the next append. */
const char *cbn__buf_text(struct cbn__buf *buf);

static inline struct cbn__blob cbn__buf_blob(const struct cbn__buf *buf)
{
    return (struct cbn__blob){buf->data, buf->size};
}

struct cbn__blob cbn__blob_text(const char *text);
bool cbn__blob_equal(struct cbn__blob a, struct cbn__blob b);

#endif
