/*
 * Any bytes as a cabinet's data.mdb: the walker comes back, what it lets through LMDB reads and writes without a fault,
 * and what it refuses is set aside and salvaged. No entry is ever given out that was not put.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/record.h"
#include "cache/cabinet.h"
#include "cache/pages.h"
#include "memory_file.h"

#define PATH_BYTES 512
#define MAP_BYTES ((uint64_t)2 << 20)
#define KEY_BYTES 14 /* of the seeds' key records: see seeds.c */

static char folder[64];

static void remove_folder(void)
{
    DIR *dir = folder[0] ? opendir(folder) : NULL;
    char path[PATH_BYTES];
    for (struct dirent *item = dir ? readdir(dir) : NULL; item; item = readdir(dir)) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, item->d_name);
        (void)unlink(path);
    }
    if (dir)
        (void)closedir(dir);
    (void)rmdir(folder);
}

static void make_folder(void)
{
    if (!folder[0]) {
        (void)snprintf(folder, sizeof(folder), "%s", "/dev/shm/cubinet-fuzz-XXXXXX");
        if (!mkdtemp(folder)) {
            (void)snprintf(folder, sizeof(folder), "%s", "/tmp/cubinet-fuzz-XXXXXX");
            FUZZ_CHECK(mkdtemp(folder) != NULL);
        }
        FUZZ_CHECK(atexit(remove_folder) == 0);
        return;
    }
    remove_folder();
    FUZZ_CHECK(mkdir(folder, 0700) == 0);
}

static void save(const uint8_t *data, size_t size)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/data.mdb", folder);
    FILE *file = fopen(path, "wb");
    FUZZ_CHECK(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    FUZZ_CHECK(chmod(path, 0600) == 0);
}

static int look(void *user, const struct cbn__hash *key, const struct cbn__entry *entry, const char *problem,
                uint32_t layer, const char *layer_path)
{
    (void)user, (void)layer, (void)layer_path;
    if (!problem) {
        struct cbn__hash hash = cbn__hash_blob(entry->key_record);
        FUZZ_CHECK(cbn__hash_equal(key, &hash) || entry->key_record.size == 0);
    }
    return 0;
}

/* The seeds hold the keys 1, 2, 3 with a payload that follows from the key. */
static void find(struct cbn__cabinet *cabinet, uint64_t which)
{
    uint8_t record[KEY_BYTES] = {1, 0, 8, 0, 0, 0};
    cbn__store_u64(record + 6, which);
    struct cbn__entry entry;
    if (cbn__cabinet_find(cabinet, (struct cbn__blob){record, sizeof(record)}, NULL, &entry) != CBN__LOOKUP_HIT)
        return;
    const uint8_t *payload = entry.payload.data;
    for (size_t i = 0; i < entry.payload.size; i++)
        FUZZ_CHECK(payload[i] == (uint8_t)(which * 31 + i));
    cbn__entry_done(&entry);
}

static void put_and_drop(struct cbn__cabinet *cabinet, uint64_t which, size_t size)
{
    uint8_t record[KEY_BYTES] = {1, 0, 8, 0, 0, 0}, payload[6000];
    struct cbn__entry_facts facts = {.compiler_version = 13000};
    cbn__store_u64(record + 6, which);
    for (size_t i = 0; i < size; i++)
        payload[i] = (uint8_t)(which * 31 + i);
    struct cbn__blob key = {record, sizeof(record)};
    (void)cbn__cabinet_put(cabinet, key, (struct cbn__blob){payload, size}, cbn__blob_text("log"), &facts, NULL);
    find(cabinet, which);
    struct cbn__hash hash = cbn__hash_blob(key);
    (void)cbn__cabinet_pin(cabinet, &hash, true, NULL);
    (void)cbn__cabinet_pin(cabinet, &hash, false, NULL);
    (void)cbn__cabinet_drop(cabinet, &hash, NULL);
}

/* compact: rewrites the file, too; dear, so only now and then. */
static void use(const uint8_t *data, size_t size, bool compact)
{
    make_folder();
    save(data, size);
    struct cbn__cabinet_options options = {.overlay_path = folder, .lock_timeout_ms = 5000, .max_bytes = MAP_BYTES};
    struct cbn__cabinet *cabinet = NULL;
    (void)cbn__cabinet_open(&options, &cabinet, NULL);
    if (!cabinet)
        return;
    struct cbn__layer_stats stats;
    (void)cbn__cabinet_each(cabinet, look, NULL, NULL);
    (void)cbn__cabinet_layer_stats(cabinet, 0, &stats, NULL);
    for (uint64_t which = 1; which <= 3; which++)
        find(cabinet, which);
    put_and_drop(cabinet, 2, 5000);
    put_and_drop(cabinet, 9, 100);
    if (compact)
        (void)cbn__cabinet_compact(cabinet, NULL);
    cbn__cabinet_close(cabinet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_file file = memory_file_make(data, size);
    struct cbn__pages_meta meta;
    char problem[CBN__PAGES_PROBLEM_BYTES] = "";
    int code = cbn__pages_check(file.fd, &meta, problem);
    FUZZ_CHECK((code == 0) == (problem[0] == 0));
    FUZZ_CHECK(memchr(problem, 0, sizeof(problem)) != NULL);
    memory_file_done(&file);
    use(data, size, size > 0 && data[size / 2] % 16 == 0 && code == 0);
    return 0;
}

#ifdef CBN_FUZZ_ENGINE
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* Mostly where structure stands: the meta pages, heads of pages, their node offsets, and nodes at their upper end. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static const uint16_t values[] = {0, 1, 2, 3, 4, 8, 15, 16, 18, 48, 0x7fff, 0x8000, 0xfff0, 0xffff, 4080, 4096};
    uint32_t state = seed;
    const uint32_t page_bytes = 4096;
    if (size < 2 * page_bytes || draw(&state, 8) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    for (uint32_t i = draw(&state, 3) + 1; i > 0; i--) {
        uint32_t page = draw(&state, (uint32_t)(size / page_bytes)) * page_bytes;
        uint32_t lower = (uint32_t)data[page + 12] | (uint32_t)data[page + 13] << 8;
        uint32_t upper = (uint32_t)data[page + 14] | (uint32_t)data[page + 15] << 8;
        uint32_t at = draw(&state, 2) || upper >= page_bytes ? draw(&state, page < 2 * page_bytes ? 152 : 24)
                                                             : upper + draw(&state, page_bytes - upper);
        if (draw(&state, 4) == 0 && lower > 16 && lower < page_bytes)
            at = 16 + draw(&state, lower - 16);
        at = page + (at & ~1u);
        uint32_t kind = draw(&state, 4);
        uint16_t value = values[draw(&state, sizeof(values) / sizeof(values[0]))];
        if (kind == 0)
            memcpy(data + at, &value, sizeof(value));
        else if (kind == 1)
            data[at] = (uint8_t)(data[at] + 1 + draw(&state, 16));
        else if (kind == 2)
            data[at] ^= (uint8_t)(1u << draw(&state, 8));
        else
            memcpy(data + at, data + page + (draw(&state, 64) & ~1u), sizeof(value));
    }
    return size;
}
#endif
