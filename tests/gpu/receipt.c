/*
 * The receipt: what ran, on what, and the digests of the sources that this program was built from. Written only by
 * main.c, after a whole run without a fault.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <jansson.h>

#include "suite.h"

#include "receipt_digests.h"

static json_t *digests(void)
{
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof(baked_digests) / sizeof(baked_digests[0]); i++) {
        (void)json_object_set_new(object, baked_digests[i].path, json_string(baked_digests[i].sha256));
    }
    return object;
}

static json_t *cases(const struct tally *tallies, uint32_t count)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_t *item = json_pack("{s:s, s:I}", "name", tallies[i].name, "count", (json_int_t)tallies[i].count);
        if (tallies[i].max_error >= 0) {
            (void)json_object_set_new(item, "max_error", json_real(tallies[i].max_error));
        }
        if (tallies[i].note[0]) {
            (void)json_object_set_new(item, "note", json_string(tallies[i].note));
        }
        (void)json_object_set_new(item, "mismatches", json_integer((json_int_t)tallies[i].mismatches));
        (void)json_array_append_new(array, item);
    }
    return array;
}

static int compare_texts(const void *a, const void *b)
{
    return __builtin_strcmp(*(const char *const *)a, *(const char *const *)b);
}

static json_t *specialisations(const struct cover *cover)
{
    json_t *array = json_array();
    uint32_t count = cover_count(cover);
    const char **texts = calloc(count + 1, sizeof(*texts));
    for (uint32_t i = 0; texts && i < count; i++) {
        texts[i] = cover_text(cover, i);
    }
    if (texts) {
        qsort(texts, count, sizeof(*texts), compare_texts);
    }
    for (uint32_t i = 0; texts && i < count; i++) {
        (void)json_array_append_new(array, json_string(texts[i]));
    }
    free(texts);
    return array;
}

static json_t *version_text(int version)
{
    return json_sprintf("%d.%d", version / 1000, version % 1000 / 10);
}

bool receipt_write(const struct suite *suite, const char *path, const struct tally *tallies, uint32_t count)
{
    char date[32], arch[16];
    time_t now = time(NULL);
    struct tm utc;
    (void)gmtime_r(&now, &utc);
    (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    cbn_arch_format(suite->device.arch, arch, sizeof(arch));
    json_t *root = json_pack("{s:s, s:s, s:s, s:s, s:i, s:o, s:o, s:I}", "schema", "cubinet.gpu-receipt/1", "date",
                             date, "device", suite->device.name, "arch", arch, "sms", suite->device.sms, "driver",
                             version_text(suite->device.driver_version), "nvrtc",
                             version_text(suite->device.nvrtc_version), "seed", (json_int_t)suite->seed);
    (void)json_object_set_new(root, "digests", digests());
    (void)json_object_set_new(root, "cases", cases(tallies, count));
    (void)json_object_set_new(
        root, "end_to_end", json_pack("{s:s, s:f}", "what", suite->end_to_end_text, "error", suite->end_to_end_error));
    (void)json_object_set_new(root, "specialisations", specialisations(suite->cover));
    int failed = root ? json_dump_file(root, path, JSON_INDENT(2) | JSON_REAL_PRECISION(4)) : -1;
    json_decref(root);
    if (failed) {
        fprintf(stderr, "gpu_suite: the receipt could not be written to %s\n", path);
    }
    return !failed;
}
