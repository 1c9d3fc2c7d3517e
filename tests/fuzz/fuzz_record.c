/*
 * Records of any bytes: every view into them lies inside, and what is well formed has one encoding.
 */
#include <string.h>

#include "base/record.h"
#include "fuzz.h"

static void check_inside(struct cbn__blob record, struct cbn__blob part)
{
    const uint8_t *begin = record.data, *at = part.data;
    FUZZ_CHECK(at >= begin && at + part.size <= begin + record.size);
}

static size_t walk(struct cbn__blob record, struct cbn__buf *ret_again)
{
    size_t offset = 0, fields = 0;
    struct cbn__record_field field;
    bool malformed = false;
    while (cbn__record_next(record, &offset, &field, &malformed)) {
        check_inside(record, field.bytes);
        FUZZ_CHECK(offset <= record.size);
        cbn__record_put(ret_again, field.tag, field.bytes);
        struct cbn__blob first;
        FUZZ_CHECK(cbn__record_find(record, field.tag, &first));
        check_inside(record, first);
        uint32_t u32 = 0;
        uint64_t u64 = 0;
        FUZZ_CHECK(cbn__record_find_u32(record, field.tag, &u32) == (first.size == 4));
        FUZZ_CHECK(cbn__record_find_u64(record, field.tag, &u64) == (first.size == 8));
        fields++;
    }
    FUZZ_CHECK(malformed == (offset != record.size));
    return fields;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096) /* every field is looked up again: quadratic */
        return -1;
    struct cbn__blob record = {data, size};
    CBN__BUF_AUTO again = CBN__BUF_INIT;
    (void)walk(record, &again);
    FUZZ_CHECK(!again.failed && again.size <= size);
    FUZZ_CHECK(again.size == 0 || memcmp(again.data, data, again.size) == 0);
    if (cbn__record_well_formed(record))
        FUZZ_CHECK(again.size == size);
    return 0;
}
