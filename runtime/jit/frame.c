/*
 * Frames between a process and its build child. Pure.
 */
#include "jit/frame.h"

#include <string.h>

#include "base/record.h"

static const uint8_t magic[8] = {'C', 'B', 'N', 'J', 'O', 'B', '1', '\n'};

void cbn__frame_begin(struct cbn__buf *frame)
{
    static const uint8_t size[CBN__FRAME_HEAD_BYTES - sizeof(magic)];
    cbn__buf_append(frame, magic, sizeof(magic));
    cbn__buf_append(frame, size, sizeof(size));
}

void cbn__frame_end(struct cbn__buf *frame)
{
    if (frame->failed || frame->size - CBN__FRAME_HEAD_BYTES > CBN__FRAME_MAX_BYTES) {
        frame->failed = true;
        return;
    }
    cbn__store_u32(frame->data + sizeof(magic), (uint32_t)(frame->size - CBN__FRAME_HEAD_BYTES));
}

enum cbn__frame_state cbn__frame_take(struct cbn__blob bytes, struct cbn__blob *ret_record)
{
    size_t compared = bytes.size < sizeof(magic) ? bytes.size : sizeof(magic);
    if (compared && memcmp(bytes.data, magic, compared) != 0)
        return CBN__FRAME_FOREIGN;
    if (bytes.size < CBN__FRAME_HEAD_BYTES)
        return CBN__FRAME_SHORT;
    size_t size = cbn__load_u32((const uint8_t *)bytes.data + sizeof(magic));
    if (size > CBN__FRAME_MAX_BYTES || bytes.size - CBN__FRAME_HEAD_BYTES > size)
        return CBN__FRAME_FOREIGN;
    if (bytes.size - CBN__FRAME_HEAD_BYTES < size)
        return CBN__FRAME_SHORT;
    *ret_record = (struct cbn__blob){(const uint8_t *)bytes.data + CBN__FRAME_HEAD_BYTES, size};
    return CBN__FRAME_WHOLE;
}
