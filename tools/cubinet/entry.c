/*
 * Entries of the cabinet, kept after their callback, and as JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

void cli_entry_keep(const struct cbn_entry_info *info, struct cli_entry *ret_entry)
{
    *ret_entry = (struct cli_entry){
        .spec = info->spec,
        .size_bytes = info->size_bytes,
        .hits = info->hits,
        .created_s = info->created_s,
        .last_used_s = info->last_used_s,
        .compile_ms = info->compile_ms,
        .registers = info->registers,
        .shared_bytes = info->shared_bytes,
        .spill_bytes = info->spill_bytes,
        .layer = info->layer,
        .pinned = info->pinned != 0,
        .layer_path = cli_text_copy(info->layer_path ? info->layer_path : ""),
    };
    memcpy(ret_entry->compiler, info->compiler, sizeof(ret_entry->compiler));
    memcpy(ret_entry->source_digest, info->source_digest, sizeof(ret_entry->source_digest));
}

void cli_entry_done(struct cli_entry *entry)
{
    free(entry->layer_path);
}

json_t *cli_entry_json(const struct cli_entry *entry)
{
    json_t *item = json_object();
    cli_json_set(item, "key", cli_json_text(entry->spec.key));
    cli_json_set(item, "op", cli_json_text(entry->spec.op));
    cli_json_set(item, "kernel", cli_json_text(entry->spec.kernel));
    cli_json_set(item, "arch", cli_json_text(entry->spec.arch));
    cli_json_set(item, "params", cli_spec_params_json(&entry->spec));
    cli_json_set(item, "size_bytes", json_integer((json_int_t)entry->size_bytes));
    cli_json_set(item, "created", cli_json_time(entry->created_s));
    cli_json_set(item, "last_used", cli_json_time(entry->last_used_s));
    cli_json_set(item, "hits", json_integer((json_int_t)entry->hits));
    cli_json_set(item, "compile_ms", json_integer(entry->compile_ms));
    cli_json_set(item, "compiler", cli_json_text(entry->compiler));
    cli_json_set(item, "source_digest", cli_json_text(entry->source_digest));
    cli_json_set(item, "registers", json_integer(entry->registers));
    cli_json_set(item, "shared_bytes", json_integer(entry->shared_bytes));
    cli_json_set(item, "spill_bytes", json_integer(entry->spill_bytes));
    cli_json_set(item, "layer", json_integer(entry->layer));
    cli_json_set(item, "layer_path", cli_json_text(entry->layer_path));
    cli_json_set(item, "pinned", json_boolean(entry->pinned));
    return item;
}
