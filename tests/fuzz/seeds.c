/*
 * Writes the seeds that are bytes rather than text: usage: fuzz_seeds CORPUS-FOLDER. Run it again when a format
 * changes.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cubinet/template.h>

#include "base/record.h"
#include "cache/entry.h"
#include "cache/pack.h"
#include "fuzz.h"
#include "jit/frame.h"
#include "jit/job.h"

#define PATH_BYTES 1024
#define PAYLOAD_BYTES_MAX 9000

static const char *corpus;

static void save(const char *target, const char *name, struct cbn__blob bytes)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%s", corpus, target);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof(path), "%s/%s/%s", corpus, target, name);
    FILE *file = fopen(path, "wb");
    FUZZ_CHECK(file && fwrite(bytes.data, 1, bytes.size, file) == bytes.size && fclose(file) == 0);
}

static char *text(const char *literal)
{
    return (char *)(uintptr_t)literal;
}

/* ---- key records and jobs ---- */

static char *param_names[] = {(char *)(uintptr_t) "TILE_M", (char *)(uintptr_t) "PDL"};
static struct cbn__template sample;

static struct cbn__spec make_spec(uint32_t param_count)
{
    sample = (struct cbn__template){.family = text("house"),
                                    .name = text("plain"),
                                    .source = text("extern \"C\" __global__ void plain(long long a) {}\n"),
                                    .source_name = text("plain.cuh"),
                                    .symbol = text("plain"),
                                    .argument_layout = 1,
                                    .argument_bytes = 8,
                                    .param_names = param_names,
                                    .param_count = param_count};
    sample.digest = cbn__template_digest(&sample);
    return (struct cbn__spec){.template = &sample, .arch = CBN_ARCH(90, 'a'), .params = {64, 1}};
}

static void save_key(const char *name, uint32_t param_count)
{
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    struct cbn__spec spec = make_spec(param_count);
    cbn__key_record(&spec, &record);
    save("key", name, cbn__buf_blob(&record));
    save("record", name, cbn__buf_blob(&record));
}

static void save_job(void)
{
    struct cbn__spec spec = make_spec(2);
    struct cbn__job job = {0};
    struct cbn__job_texts texts = {0};
    FUZZ_CHECK(cbn__job_init(&job, &spec, &texts, NULL) == CBN_STATUS_OK);
    job.header_count = 1;
    job.header_names[0] = "own.h";
    job.header_texts[0] = "#define OWN 1\n";
    CBN__BUF_AUTO record = CBN__BUF_INIT;
    CBN__BUF_AUTO frame = CBN__BUF_INIT;
    cbn__job_encode(&job, &record);
    cbn__frame_begin(&frame);
    cbn__job_encode(&job, &frame);
    cbn__frame_end(&frame);
    save("frame", "job", cbn__buf_blob(&record));
    save("frame", "job_framed", cbn__buf_blob(&frame));
    cbn__job_texts_done(&texts);
}

static void save_outcome(const char *name, int32_t status, const char *cubin)
{
    struct cbn__build build = CBN__BUILD_INIT;
    struct cbn_error err = {.status = status, .domain = CBN_DOMAIN_NVRTC, .native_code = 6, .message = "no; mend it"};
    CBN__BUF_AUTO frame = CBN__BUF_INIT;
    build.compiler_version = 13000;
    cbn__buf_append_text(&build.cubin, cubin);
    cbn__buf_append_text(&build.log, "log");
    cbn__frame_begin(&frame);
    cbn__outcome_encode(status, &err, &build, &frame);
    cbn__frame_end(&frame);
    save("frame", name, cbn__buf_blob(&frame));
    cbn__build_done(&build);
}

/* ---- entries and data files: fuzz_pages.c knows these keys and payloads ---- */

struct stored {
    uint8_t record[14];
    uint8_t payload[PAYLOAD_BYTES_MAX];
    size_t size;
    struct cbn__entry_facts facts;
};

static void make_stored(struct stored *stored, uint64_t which, size_t size)
{
    *stored = (struct stored){.record = {1, 0, 8, 0, 0, 0}, .size = size};
    cbn__store_u64(stored->record + 6, which);
    for (size_t i = 0; i < size; i++)
        stored->payload[i] = (uint8_t)(which * 31 + i);
    stored->facts = (struct cbn__entry_facts){13000, 321, 168, 4096, 8, 1700000000};
}

static struct cbn__blob record_of(const struct stored *stored)
{
    return (struct cbn__blob){stored->record, sizeof(stored->record)};
}

static void save_entry(const char *name, size_t size)
{
    struct stored stored;
    make_stored(&stored, 1, size);
    struct cbn__hash hash = cbn__hash_blob(record_of(&stored));
    struct cbn__store_key key = cbn__entry_key(&hash, 13);
    CBN__BUF_AUTO value = CBN__BUF_INIT;
    CBN__BUF_AUTO input = CBN__BUF_INIT;
    cbn__entry_encode(&key, record_of(&stored), (struct cbn__blob){stored.payload, size}, cbn__blob_text("log"),
                      &stored.facts, &value);
    cbn__buf_append(&input, key.bytes, sizeof(key.bytes));
    cbn__buf_append(&input, value.data, value.size);
    save("entry", name, cbn__buf_blob(&input));
}

/* ---- packs ---- */

static int compare_stored(const void *a, const void *b)
{
    struct cbn__hash left = cbn__hash_blob(record_of(a)), right = cbn__hash_blob(record_of(b));
    return memcmp(&left, &right, sizeof(left));
}

static void save_pack(const char *name, uint64_t count)
{
    static struct stored stored[8];
    static uint8_t bytes[1 << 20];
    uint8_t digest[CBN__SHA256_BYTES];
    struct cbn__pack_writer writer;
    char path[] = "/tmp/cubinet-seed-XXXXXX";
    int fd = mkstemp(path);
    FUZZ_CHECK(fd >= 0 && unlink(path) == 0);
    for (uint64_t which = 0; which < count; which++)
        make_stored(&stored[which], which, 70 * which);
    qsort(stored, count, sizeof(stored[0]), compare_stored);
    cbn__pack_write_begin(&writer, fd);
    for (uint64_t i = 0; i < count; i++) {
        struct cbn__entry entry = {.key_record = record_of(&stored[i]),
                                   .payload = {stored[i].payload, stored[i].size},
                                   .facts = stored[i].facts,
                                   .major = 13};
        FUZZ_CHECK(cbn__pack_write_entry(&writer, &entry, NULL) == CBN_STATUS_OK);
    }
    FUZZ_CHECK(cbn__pack_write_end(&writer, digest, NULL) == CBN_STATUS_OK);
    cbn__pack_writer_done(&writer);
    ssize_t size = pread(fd, bytes, sizeof(bytes), 0);
    FUZZ_CHECK(size > 0);
    (void)close(fd);
    save("pack", name, (struct cbn__blob){bytes, (size_t)size});
}

static void save_pack_entry(const char *name, size_t size)
{
    struct stored stored;
    make_stored(&stored, 1, size);
    CBN__BUF_AUTO bytes = CBN__BUF_INIT;
    cbn__pack_entry_encode(record_of(&stored), (struct cbn__blob){stored.payload, size}, &stored.facts, &bytes);
    save("pack", name, cbn__buf_blob(&bytes));
}

static void save_usage(void)
{
    struct cbn__store_key key = {{1, 2, 3}};
    struct cbn__usage_record record = {.recency_us = 1700000000000000, .hits = 12, .pinned = true};
    uint8_t bytes[sizeof(key.bytes) + CBN__USAGE_BYTES];
    memcpy(bytes, key.bytes, sizeof(key.bytes));
    cbn__usage_encode(&key, &record, bytes + sizeof(key.bytes));
    save("entry", "usage", (struct cbn__blob){bytes, sizeof(bytes)});
}

static void copy_data_file(const char *folder, const char *name)
{
    static uint8_t bytes[1 << 20];
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/data.mdb", folder);
    FILE *file = fopen(path, "rb");
    FUZZ_CHECK(file != NULL);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    save("pages", name, (struct cbn__blob){bytes, size});
    FUZZ_CHECK(unlink(path) == 0);
    (void)snprintf(path, sizeof(path), "%s/lock", folder);
    FUZZ_CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}

/* Puts entries of these sizes and drops the last, which leaves a free list behind. */
static void save_pages(const char *name, const size_t *sizes, uint64_t count, bool drop)
{
    char folder[] = "/tmp/cubinet-seeds-XXXXXX";
    FUZZ_CHECK(mkdtemp(folder) != NULL);
    struct cbn__cabinet_options options = {.overlay_path = folder, .lock_timeout_ms = 5000, .max_bytes = 2 << 20};
    struct cbn__cabinet *cabinet = NULL;
    FUZZ_CHECK(cbn__cabinet_open(&options, &cabinet, NULL) == CBN_STATUS_OK);
    static struct stored stored;
    for (uint64_t which = 1; which <= count; which++) {
        make_stored(&stored, which, sizes[which - 1]);
        FUZZ_CHECK(cbn__cabinet_put(cabinet, record_of(&stored), (struct cbn__blob){stored.payload, stored.size},
                                    cbn__blob_text("log"), &stored.facts, NULL) == CBN_STATUS_OK);
    }
    struct cbn__hash hash = cbn__hash_blob(record_of(&stored));
    if (drop)
        FUZZ_CHECK(cbn__cabinet_drop(cabinet, &hash, NULL) == CBN_STATUS_OK);
    cbn__cabinet_close(cabinet);
    copy_data_file(folder, name);
}

int main(int argc, char **argv)
{
    static const size_t one[] = {100}, three[] = {100, 5000, 8500}, many[] = {900, 900, 900, 900, 900, 900};
    FUZZ_CHECK(argc == 2);
    corpus = argv[1];
    save_key("plain", 0);
    save_key("params", 2);
    save_job();
    save_outcome("built", CBN_STATUS_OK, "cubin");
    save_outcome("refused", CBN_STATUS_COMPILE_FAILED, "");
    save_entry("empty", 0);
    save_entry("payload", 150);
    save_usage();
    save_pack("empty", 0);
    save_pack("one", 1);
    save_pack("five", 5);
    save_pack_entry("entry", 200);
    save_pack_entry("entry_empty", 0);
    save_pages("one", one, 1, false);
    save_pages("overflow", three, 3, true);
    save_pages("branch", many, 6, false);
    return EXIT_SUCCESS;
}
