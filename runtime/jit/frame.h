/*
 * What crosses the wire between a process and its build child: one record in a frame, in each direction.
 *
 *   frame = "CBNJOB1\n" size:u32le record
 */
#ifndef CBN_JIT_FRAME_H
#define CBN_JIT_FRAME_H

#include "base/buf.h"

#define CBN__FRAME_HEAD_BYTES 12u
#define CBN__FRAME_MAX_BYTES (256u << 20)

void cbn__frame_begin(struct cbn__buf *frame);
void cbn__frame_end(struct cbn__buf *frame); /* after the record was appended */

enum cbn__frame_state { CBN__FRAME_WHOLE, CBN__FRAME_SHORT, CBN__FRAME_FOREIGN };

/* *ret_record is set when the frame is whole; bytes behind it make it foreign. */
enum cbn__frame_state cbn__frame_take(struct cbn__blob bytes, struct cbn__blob *ret_record);

#endif
