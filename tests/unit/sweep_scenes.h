/*
 * The scenarios of test_sweep.c: what is in the store before, what is done under the fault, what must be there then.
 */
#ifndef CBN_TEST_SWEEP_SCENES_H
#define CBN_TEST_SWEEP_SCENES_H

#include "cache_fixture.h"
#include "fake/faults.h"

#define KEYS 24u
#define NEW_KEY 24u
#define BOUND_BYTES ((uint64_t)384 << 10)
#define SMALLEST_BOUND_BYTES ((uint64_t)256 << 10)
#define TEXTS_MAX 8u
#define TEXT_BYTES 28u /* up to the folder's name */
#define PAGE 4096u

/* What the child knows about the folder when the fault is over. */
struct state {
    const char *folder;
    bool served[NEW_KEY + 4]; /* must be */
    uint32_t failed;          /* operations that said so */
    uint32_t unsaid;          /* of these, whose caller goes on without an error: an event must tell it */
    uint32_t told, damages;
    char texts[TEXTS_MAX][TEXT_BYTES]; /* how each event begins */
};

struct scene {
    const char *name;
    uint32_t entries; /* in the store before */
    uint64_t bound_bytes;
    bool damaged;   /* a file may be set aside, and is */
    bool loses;     /* entries that were there may go */
    bool puts;      /* into a store that is not full */
    uint32_t least; /* so many of them stay, whatever fails */
    bool read_only;
    void (*prepare)(const char *folder);
    void (*act)(struct cbn__cabinet *cabinet, struct state *state);
};

static void fail_point(const char *what, int64_t a, int64_t b)
{
    fprintf(stderr, "  %s: %lld, %lld\n", what, (long long)a, (long long)b);
    _exit(1);
}

#define NEED(condition, a, b)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_point(#condition, (int64_t)(a), (int64_t)(b));                                                        \
    } while (0)

/* Said once: no two events begin alike. */
static void hear_event(void *user, const struct cbn_event *event)
{
    struct state *state = user;
    char text[TEXT_BYTES];
    (void)snprintf(text, sizeof(text), "%s", event->text);
    state->damages += event->kind == CBN_EVENT_DAMAGE;
    for (uint32_t i = 0; i < state->told; i++)
        NEED(event->kind == CBN_EVENT_DAMAGE || strcmp(state->texts[i], text) != 0, i, state->told);
    NEED(state->told < TEXTS_MAX, state->told, 0);
    memcpy(state->texts[state->told++], text, sizeof(text));
}

static size_t size_of(uint64_t which)
{
    return which % 4 == 3 ? 300 : 12000 + 500 * (size_t)which;
}

static struct cbn__cabinet *open_scene(const struct scene *scene, struct state *state)
{
    struct cbn__cabinet_options options = options_for(state->folder, NULL);
    struct cbn__cabinet *cabinet = NULL;
    options.lock_timeout_ms = 60;
    options.max_bytes = scene->bound_bytes;
    options.read_only = scene->read_only;
    options.sink = (struct cbn__sink){hear_event, state};
    state->unsaid += cbn__cabinet_open(&options, &cabinet, NULL) != CBN_STATUS_OK;
    NEED(cabinet, 0, 0);
    return cabinet;
}

/* ---- what is done under the fault ---- */

static void try_put(struct cbn__cabinet *cabinet, struct state *state, uint64_t which)
{
    int32_t status = put(cabinet, which, size_of(which), 13000);
    state->served[which] = state->served[which] || status == CBN_STATUS_OK;
    state->unsaid += status != CBN_STATUS_OK;
}

static void put_one(struct cbn__cabinet *cabinet, struct state *state)
{
    try_put(cabinet, state, NEW_KEY);
}

static void put_and_replace(struct cbn__cabinet *cabinet, struct state *state)
{
    try_put(cabinet, state, NEW_KEY);
    try_put(cabinet, state, 1);
    try_put(cabinet, state, NEW_KEY + 1);
}

/* The entries put last are not the ones that go. */
static void put_three(struct cbn__cabinet *cabinet, struct state *state)
{
    for (uint64_t i = 0; i < 3; i++)
        try_put(cabinet, state, NEW_KEY + i);
}

static void find_all(struct cbn__cabinet *cabinet, struct state *state)
{
    for (uint64_t i = 0; i < KEYS; i++) {
        enum cbn__lookup found = find(cabinet, i, size_of(i)); /* asserts that the bytes are right */
        NEED(found == CBN__LOOKUP_HIT || found == CBN__LOOKUP_ABSENT || found == CBN__LOOKUP_IO ||
                 found == CBN__LOOKUP_BUSY || (found == CBN__LOOKUP_DAMAGED && state->damages),
             i, found);
        state->unsaid += found != CBN__LOOKUP_HIT && found != CBN__LOOKUP_ABSENT;
    }
}

static int mend(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                uint32_t layer, const char *layer_path)
{
    (void)layer, (void)layer_path;
    if (problem)
        (void)cbn__cabinet_drop_damaged(user, key, entry);
    return 0;
}

static void verify_and_repair(struct cbn__cabinet *cabinet, struct state *state)
{
    state->failed += cbn__cabinet_each(cabinet, mend, cabinet, NULL) != CBN_STATUS_OK;
}

static struct cbn__hash hash_of(uint64_t which)
{
    struct test_key key = key_of(which);
    return cbn__hash_blob(RECORD(key));
}

static void prune(struct cbn__cabinet *cabinet, struct state *state)
{
    struct cbn__prune_item items[4] = {0};
    for (uint64_t i = 0; i < 4; i++)
        items[i] = (struct cbn__prune_item){.key = hash_of(2 * i), .major = 13};
    state->failed += cbn__cabinet_remove(cabinet, items, 4, false, NULL) != CBN_STATUS_OK;
    for (uint64_t i = 0; i < 4; i++)
        state->served[2 * i] = items[i].outcome == CBN__PRUNE_STAYS && state->failed == 0;
}

static void compact(struct cbn__cabinet *cabinet, struct state *state)
{
    struct cbn__hash hash = hash_of(0);
    state->failed += cbn__cabinet_drop(cabinet, &hash, NULL) != CBN_STATUS_OK;
    state->served[0] = false;
    state->failed += cbn__cabinet_compact(cabinet, NULL) != CBN_STATUS_OK;
}

static void use_and_pin(struct cbn__cabinet *cabinet, struct state *state)
{
    struct cbn__hash hash = hash_of(2);
    find_all(cabinet, state);
    state->failed += cbn__cabinet_pin(cabinet, &hash, true, NULL) != CBN_STATUS_OK;
    struct cbn__layer_stats stats = {0};
    if (cbn__cabinet_layer_count(cabinet))
        state->failed += cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL) != CBN_STATUS_OK;
}

static void fly(struct cbn__cabinet *cabinet, struct state *state)
{
    struct cbn__hash hash = hash_of(NEW_KEY);
    struct cbn__flight flight;
    bool waited = false;
    int32_t status = cbn__flight_begin(cabinet, &hash, 60, &flight, &waited);
    NEED(status == CBN_STATUS_OK || status == CBN_STATUS_IO || status == CBN_STATUS_TIMEOUT, status, 0);
    try_put(cabinet, state, NEW_KEY);
    cbn__flight_end(&flight);
}

/* ---- what is there before ---- */

static void flip(const char *folder, off_t at)
{
    char path[2 * PATH_BYTES], byte = 0;
    snprintf(path, sizeof(path), "%s/data.mdb", folder);
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 0x5A;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    (void)close(fd);
}

/* The first page of that kind behind the meta pages. */
static off_t page_of_kind(const char *folder, uint8_t kind)
{
    char path[2 * PATH_BYTES];
    uint8_t head[16] = {0};
    snprintf(path, sizeof(path), "%s/data.mdb", folder);
    int fd = open(path, O_RDONLY);
    off_t at = 2 * PAGE;
    while (pread(fd, head, sizeof(head), at) == (ssize_t)sizeof(head) && head[10] != kind)
        at += PAGE;
    (void)close(fd);
    return at;
}

static void damage_a_value(const char *folder)
{
    flip(folder, page_of_kind(folder, 4) + PAGE + 500);
}

static void damage_the_meta_page(const char *folder)
{
    flip(folder, 16);
}

static const struct scene scenes[] = {
    {"first put", 0, BOUND_BYTES, false, false, false, 0, false, NULL, put_one},
    {"put", 8, 8 << 20, false, false, true, 8, false, NULL, put_and_replace},
    {"put that grows the map", KEYS, SMALLEST_BOUND_BYTES, false, true, false, 1, false, NULL, put_three},
    {"put that evicts", KEYS, BOUND_BYTES, false, true, false, 8, false, NULL, put_three},
    {"find", KEYS, 8 << 20, false, false, false, KEYS, false, NULL, find_all},
    {"find in a base", KEYS, 8 << 20, false, false, false, KEYS, true, NULL, find_all},
    {"salvage", KEYS, 8 << 20, true, true, false, KEYS, false, damage_the_meta_page, find_all},
    {"find damage", KEYS, 8 << 20, true, true, false, KEYS - 1, false, damage_a_value, find_all},
    {"verify and repair", KEYS, 8 << 20, true, true, false, KEYS - 1, false, damage_a_value, verify_and_repair},
    {"prune", KEYS, 8 << 20, false, false, false, KEYS - 4, false, NULL, prune},
    {"compact", KEYS, 8 << 20, false, false, false, KEYS - 1, false, NULL, compact},
    {"use and pin", KEYS, 8 << 20, false, false, false, KEYS, false, NULL, use_and_pin},
    {"flight", 8, 8 << 20, false, false, true, 8, false, NULL, fly},
};
#define SCENE_COUNT (sizeof(scenes) / sizeof(scenes[0]))

#endif
