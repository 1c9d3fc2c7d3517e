/*
 * The records of one key, kept after their callback.
 */
#include <stdlib.h>
#include <string.h>

#include "record.h"

static int keep(void *user, const struct cbn_entry_info *info)
{
    struct cli_records *records = user;
    records->items = cli_grow(records->items, &records->capacity, records->count, sizeof(*records->items));
    struct cli_record *record = &records->items[records->count++];
    *record = (struct cli_record){
        .options = cli_text_copy(info->options ? info->options : ""),
        .log = cli_text_copy(info->log ? info->log : ""),
    };
    cli_entry_keep(info, &record->entry);
    (void)cli_version_read(record->entry.compiler, &record->compiler_version);
    record->cubin = cli_bytes_copy(info->cubin, info->size_bytes);
    return 0;
}

static int compare_records(const void *a, const void *b)
{
    const struct cli_record *left = a, *right = b;
    return (left->compiler_version < right->compiler_version) - (left->compiler_version > right->compiler_version);
}

int cli_records_read(struct cli *cli, const char *key, struct cli_records *ret_records)
{
    struct cbn_error err = {0};
    int32_t status = cbn_cabinet_show(cli->runtime, key, keep, ret_records, &err);
    if (status == CBN_STATUS_DAMAGED)
        return cli_fail(cli, CLI_INCOMPLETE, "%s", err.message);
    if (status != CBN_STATUS_OK)
        return cli_fail_error(cli, &err);
    qsort(ret_records->items, ret_records->count, sizeof(*ret_records->items), compare_records);
    return CLI_OK;
}

void cli_records_done(struct cli_records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        cli_entry_done(&records->items[i].entry);
        free(records->items[i].options);
        free(records->items[i].log);
        free(records->items[i].cubin);
    }
    free(records->items);
}
