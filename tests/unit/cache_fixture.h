/*
 * What the cabinet's tests share: a folder that goes away, key records, events, pipes as barriers.
 */
#ifndef CBN_TEST_CACHE_FIXTURE_H
#define CBN_TEST_CACHE_FIXTURE_H

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/record.h"
#include "cache/cabinet.h"
#include "cache/layer.h"

#define PATH_BYTES 512

struct scratch {
    char path[PATH_BYTES];
};

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    return remove(path);
}

__attribute__((unused)) static void scratch_done(struct scratch *scratch)
{
    (void)nftw(scratch->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

__attribute__((unused)) static struct scratch scratch_make(void)
{
    struct scratch scratch;
    (void)snprintf(scratch.path, sizeof(scratch.path), "/tmp/cubinet-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch.path));
    return scratch;
}

/* For tests of thousands of commits, where a sync must cost nothing. */
__attribute__((unused)) static struct scratch scratch_make_in_memory(void)
{
    struct scratch scratch;
    (void)snprintf(scratch.path, sizeof(scratch.path), "/dev/shm/cubinet-test-XXXXXX");
    return mkdtemp(scratch.path) ? scratch : scratch_make();
}

#define SCRATCH_AUTO __attribute__((cleanup(scratch_done))) struct scratch

__attribute__((unused)) static const char *in(const struct scratch *scratch, const char *name)
{
    static char paths[8][2 * PATH_BYTES];
    static unsigned next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", scratch->path, name);
    return path;
}

struct events {
    int notices, damages;
    char last[4096];
};

__attribute__((unused)) static void record_event(void *user, const struct cbn_event *event)
{
    struct events *events = user;
    events->notices += event->kind == CBN_EVENT_NOTICE;
    events->damages += event->kind == CBN_EVENT_DAMAGE;
    (void)snprintf(events->last, sizeof(events->last), "%s", event->text);
}

__attribute__((unused)) static struct cbn__cabinet_options options_for(const char *overlay, struct events *events)
{
    return (struct cbn__cabinet_options){
        .overlay_path = overlay, .lock_timeout_ms = 5000, .sink = {events ? record_event : NULL, events}};
}

__attribute__((unused)) static struct cbn__cabinet *open_cabinet(const char *overlay, struct events *events)
{
    struct cbn__cabinet_options options = options_for(overlay, events);
    struct cbn__cabinet *cabinet = NULL;
    struct cbn_error err = {0};
    int32_t status = cbn__cabinet_open(&options, &cabinet, &err);
    ck_assert_msg(status == CBN_STATUS_OK, "%d: %s", status, err.message);
    return cabinet;
}

/* A record of 14 bytes that says which. */
struct test_key {
    uint8_t bytes[14];
};

__attribute__((unused)) static struct test_key key_of(uint64_t which)
{
    struct test_key key = {{1, 0, 8, 0, 0, 0}};
    cbn__store_u64(key.bytes + 6, which);
    return key;
}

#define RECORD(key) ((struct cbn__blob){(key).bytes, sizeof((key).bytes)})

/* Payload bytes that follow from the key, so that any reader can tell right from wrong. */
__attribute__((unused)) static void fill_payload(uint8_t *bytes, size_t size, uint64_t which)
{
    uint64_t state = which * 0x9E3779B97F4A7C15ull + 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        bytes[i] = (uint8_t)(state >> 56);
    }
}

__attribute__((unused)) static struct cbn__entry_facts facts_of(uint32_t version)
{
    return (struct cbn__entry_facts){.compiler_version = version,
                                     .compile_ms = 321,
                                     .registers = 168,
                                     .shared_bytes = 4096,
                                     .spill_bytes = 8,
                                     .created_s = 1700000000};
}

__attribute__((unused)) static bool same_facts(const struct cbn__entry_facts *a, const struct cbn__entry_facts *b)
{
    return a->compiler_version == b->compiler_version && a->compile_ms == b->compile_ms &&
           a->registers == b->registers && a->shared_bytes == b->shared_bytes && a->spill_bytes == b->spill_bytes &&
           a->created_s == b->created_s;
}

__attribute__((unused)) static int32_t put(struct cbn__cabinet *cabinet, uint64_t which, size_t size, uint32_t version)
{
    struct test_key key = key_of(which);
    struct cbn__entry_facts facts = facts_of(version);
    uint8_t *payload = malloc(size + 1);
    fill_payload(payload, size, which);
    int32_t status =
        cbn__cabinet_put(cabinet, RECORD(key), (struct cbn__blob){payload, size}, cbn__blob_text("log"), &facts, NULL);
    free(payload);
    return status;
}

__attribute__((unused)) static bool payload_is(const struct cbn__entry *entry, size_t size, uint64_t which)
{
    uint8_t *wanted = malloc(size + 1);
    fill_payload(wanted, size, which);
    bool same = entry->payload.size == size && memcmp(entry->payload.data, wanted, size) == 0 &&
                (uintptr_t)entry->payload.data % 16 == 0;
    free(wanted);
    return same;
}

/* The outcome of a look-up; a hit's payload must be what put stored. size 0: of any length. */
__attribute__((unused)) static enum cbn__lookup find(struct cbn__cabinet *cabinet, uint64_t which, size_t size)
{
    struct test_key key = key_of(which);
    struct cbn__entry entry;
    enum cbn__lookup found = cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry);
    if (found != CBN__LOOKUP_HIT)
        return found;
    ck_assert(payload_is(&entry, size ? size : entry.payload.size, which));
    cbn__entry_done(&entry);
    return found;
}

__attribute__((unused)) static int count_files(const char *folder, const char *prefix)
{
    int count = 0;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *item = readdir(dir); item; item = readdir(dir))
        count += item->d_name[0] != '.' && strncmp(item->d_name, prefix, strlen(prefix)) == 0;
    (void)closedir(dir);
    return count;
}

__attribute__((unused)) static off_t file_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

/* A byte through a pipe: the tests' only way to wait for one another. */
__attribute__((unused)) static void tell(int fd)
{
    ck_assert_int_eq(write(fd, "x", 1), 1);
}

__attribute__((unused)) static void hear(int fd)
{
    char byte;
    ck_assert_int_eq(read(fd, &byte, 1), 1);
}

/* Waits for a child and wants exit status 0. */
__attribute__((unused)) static void reap(pid_t pid)
{
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: wait status 0x%x", status);
}

#endif
