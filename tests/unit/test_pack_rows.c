/*
 * Right seals over wrong rows: what another writer would make by mistake, and a hostile one on purpose.
 */
#include "pack_fixture.h"

#include "base/record.h"

#define ENTRIES 4u
#define SIZE 333

static struct cbn__buf make_pack(struct scratch *scratch)
{
    struct cbn__cabinet *cabinet = open_cabinet(in(scratch, "c"), NULL);
    for (uint64_t which = 0; which < ENTRIES; which++)
        ck_assert_int_eq(put(cabinet, which, SIZE, 13000), CBN_STATUS_OK);
    (void)pack_to(cabinet, in(scratch, "p"));
    cbn__cabinet_close(cabinet);
    return load(in(scratch, "p"));
}

static uint8_t *row_of(struct cbn__buf *pack, uint64_t row)
{
    const uint8_t *tail = pack->data + pack->size - CBN__PACK_TAIL_BYTES;
    return pack->data + cbn__load_u64(tail + CBN__PACK_TAIL_INDEX_AT) + row * CBN__PACK_ROW_BYTES;
}

static void swap_rows(struct cbn__buf *pack)
{
    uint8_t row[CBN__PACK_ROW_BYTES];
    memcpy(row, row_of(pack, 0), sizeof(row));
    memcpy(row_of(pack, 0), row_of(pack, 1), sizeof(row));
    memcpy(row_of(pack, 1), row, sizeof(row));
}

static void repeat_key(struct cbn__buf *pack)
{
    memcpy(row_of(pack, 1), row_of(pack, 0), CBN__STORE_KEY_BYTES);
}

static void descend(struct cbn__buf *pack)
{
    memset(row_of(pack, 0), 0xff, CBN__STORE_KEY_BYTES);
}

static void lead_outside(struct cbn__buf *pack)
{
    cbn__store_u64(row_of(pack, 1) + CBN__PACK_ROW_AT_OFFSET, UINT64_MAX - 15);
}

static void overlap(struct cbn__buf *pack)
{
    memcpy(row_of(pack, 1) + CBN__PACK_ROW_AT_BYTES, row_of(pack, 0) + CBN__PACK_ROW_AT_BYTES, 12);
}

static void be_enormous(struct cbn__buf *pack)
{
    cbn__store_u32(row_of(pack, 0) + CBN__PACK_ROW_AT_BYTES, UINT32_MAX);
}

static void be_nothing(struct cbn__buf *pack)
{
    cbn__store_u32(row_of(pack, 0) + CBN__PACK_ROW_AT_BYTES, 0);
}

static void say_more(struct cbn__buf *pack)
{
    row_of(pack, 0)[CBN__PACK_ROW_AT_ZEROS] = 1;
}

static void (*const wrong_rows[])(struct cbn__buf *) = {swap_rows, repeat_key,  descend,    lead_outside,
                                                        overlap,   be_enormous, be_nothing, say_more};

/* Of the rows as they are now. */
static void save_sealed(struct cbn__buf *pack, const char *path)
{
    uint8_t head[CBN__PACK_HEAD_BYTES];
    uint8_t *tail = pack->data + pack->size - CBN__PACK_TAIL_BYTES, *rows = row_of(pack, 0);
    cbn__pack_head(head);
    struct cbn__hash seal = cbn__pack_seal(head, (struct cbn__blob){rows, (size_t)(tail - rows)}, tail);
    memcpy(tail + CBN__PACK_TAIL_SEAL, seal.bytes, sizeof(seal.bytes));
    save(path, pack->data, pack->size);
}

START_TEST(none_opens)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    CBN__BUF_AUTO bytes = make_pack(&scratch);
    struct cbn_error err = {0};
    struct cbn__pack *pack = NULL;
    wrong_rows[_i](&bytes);
    save_sealed(&bytes, in(&scratch, "q"));
    int fd = open(in(&scratch, "q"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(cbn__pack_open(fd, "q", &pack, &err), CBN_STATUS_DAMAGED);
    ck_assert_msg(strstr(err.message, "index is malformed") != NULL, "%s", err.message);
    (void)close(fd);
}
END_TEST

/* Rows in order, and two sound entries that have changed places: neither is given out as the other. */
START_TEST(an_entry_under_another_key)
{
    SCRATCH_AUTO scratch = scratch_make_in_memory();
    CBN__BUF_AUTO bytes = make_pack(&scratch);
    struct events events = {0};
    struct cbn__unpack_result result;
    const size_t at = CBN__PACK_HEAD_BYTES,
                 span = (size_t)(cbn__load_u64(row_of(&bytes, 1) + CBN__PACK_ROW_AT_OFFSET) - at);
    CBN__BUF_AUTO first = CBN__BUF_INIT;
    cbn__buf_append(&first, bytes.data + at, span);
    memcpy(bytes.data + at, bytes.data + at + span, span); /* all are of one size */
    memcpy(bytes.data + at + span, first.data, span);
    save_sealed(&bytes, in(&scratch, "q"));
    struct cbn__cabinet *cabinet = open_above(in(&scratch, "o"), in(&scratch, "q"), &events);
    ck_assert_uint_eq(cbn__cabinet_layer_count(cabinet), 2);
    unsigned served = 0;
    for (uint64_t which = 0; which < ENTRIES; which++)
        served += find(cabinet, which, SIZE) == CBN__LOOKUP_HIT; /* fails on another's payload */
    ck_assert_uint_eq(served, ENTRIES - 2);
    ck_assert_int_eq(events.damages, 2);
    ck_assert_msg(strstr(events.last, "it is not the entry of its key") != NULL, "%s", events.last);
    ck_assert_int_eq(unpack_from(cabinet, in(&scratch, "q"), NULL, &result, NULL), CBN_STATUS_DAMAGED);
    ck_assert_uint_eq(result.stored, 0);
    cbn__cabinet_close(cabinet);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pack_rows");
    TCase *tests = tcase_create("pack_rows");
    tcase_add_loop_test(tests, none_opens, 0, (int)(sizeof(wrong_rows) / sizeof(wrong_rows[0])));
    tcase_add_test(tests, an_entry_under_another_key);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
