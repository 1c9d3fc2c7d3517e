/*
 * What the fleet's server says of itself: its kind, its size, how it evicts.
 */
#include "cache/tier_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cache/registry.h"

#define QUESTIONS 2u

/* The value of a line "name:value\r\n"; "" when there is none. */
static void find_line(struct cbn__buf *info, const char *name, char *ret_value, size_t value_bytes)
{
    size_t length = strlen(name);
    ret_value[0] = '\0';
    for (const char *line = cbn__buf_text(info); line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            const char *value = line + length + 1;
            cbn__tier_repeat((struct cbn__blob){value, strcspn(value, "\r\n")}, ret_value, value_bytes);
            return;
        }
    }
}

static uint64_t find_number(struct cbn__buf *info, const char *name)
{
    char value[32];
    find_line(info, name, value, sizeof(value));
    return value[0] == '-' ? 0 : strtoull(value, NULL, 10);
}

static void read_info(struct cbn__tier *tier, struct cbn__buf *info, struct cbn_fleet_info *ret_info)
{
    char version[32], role[32];
    find_line(info, "role", role, sizeof(role));
    ret_info->read_only = role[0] && strcmp(role, "master") != 0;
    find_line(info, "valkey_version", version, sizeof(version));
    bool is_valkey = version[0] != '\0';
    if (!is_valkey)
        find_line(info, "redis_version", version, sizeof(version));
    (void)snprintf(tier->info.server, sizeof(tier->info.server), "%s %s", is_valkey ? "valkey" : "redis",
                   version[0] ? version : "of an unknown version");
    find_line(info, "maxmemory_policy", tier->info.eviction, sizeof(tier->info.eviction));
    ret_info->server = tier->info.server;
    ret_info->eviction = tier->info.eviction;
    ret_info->used_bytes = find_number(info, "used_memory");
    ret_info->max_bytes = find_number(info, "maxmemory");
    ret_info->evicted = find_number(info, "evicted_keys");
}

int32_t cbn__tier_inspect(struct cbn__tier *tier, struct cbn_fleet_info *ret_info, struct cbn_error *err)
{
    const struct cbn__tier_command commands[QUESTIONS] = {{1, {{"DBSIZE", 6}}}, {1, {{"INFO", 4}}}};
    struct cbn__tier_reply replies[QUESTIONS];
    struct cbn_error why = {0};
    ret_info->url = tier->address.shown;
    cbn__registry_check_pid();
    int32_t status = cbn__tier_exchange(tier, commands, QUESTIONS, cbn__tier_deadline_ns(tier), replies, &why);
    if (status == CBN_STATUS_OK) {
        for (uint32_t i = 0; i < QUESTIONS && status == CBN_STATUS_OK; i++)
            if (replies[i].kind == CBN__REPLY_ERROR)
                status = cbn__tier_error_of(&replies[i], &why);
        if (status == CBN_STATUS_OK &&
            (replies[0].kind != CBN__REPLY_INTEGER || replies[0].integer < 0 || replies[1].kind != CBN__REPLY_BYTES))
            status = cbn__error_own(&why, CBN_STATUS_DAMAGED, "what answers at the fleet's address is no such server");
        if (status == CBN_STATUS_OK) {
            ret_info->keys = (uint64_t)replies[0].integer;
            read_info(tier, &replies[1].bytes, ret_info);
        }
        cbn__tier_replies_done(replies, QUESTIONS);
    }
    if (status == CBN_STATUS_OK)
        cbn__tier_wake(tier);
    else if (err)
        *err = why;
    return status;
}
