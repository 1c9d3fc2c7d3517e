/*
 * Names of architectures, lists of candidates and calls of any numbers: input = op (1 byte), 13 numbers, text of three
 * lines (architecture, disabled, enabled). A decision is pure, and what it chooses is among what is enumerated.
 */
#include <stdio.h>
#include <string.h>

#include <cubinet/cubinet.h>

#include "fuzz.h"

#define ENUMERATED_MAX 512
#define TEXT_BYTES 200

struct reader {
    const uint8_t *data;
    size_t size;
};

static uint8_t take_byte(struct reader *reader)
{
    if (reader->size == 0)
        return 0;
    reader->size--;
    return *reader->data++;
}

/* A byte that says how many more follow: small numbers are short, and all of 64 bits can be had. */
static int64_t take_number(struct reader *reader)
{
    uint8_t head = take_byte(reader);
    if (head < 200)
        return head;
    uint64_t value = 0;
    for (int i = 0; i < (head - 200) % 9; i++)
        value = value << 8 | take_byte(reader);
    return (int64_t)value;
}

static void take_line(struct reader *reader, char ret_text[TEXT_BYTES])
{
    size_t length = 0;
    for (uint8_t byte; reader->size && (byte = take_byte(reader)) != '\n';)
        if (byte && length < TEXT_BYTES - 1)
            ret_text[length++] = (char)byte;
    ret_text[length] = 0;
}

static void take_profile(struct reader *reader, struct cbn_profile *profile)
{
    profile->in = (uint32_t)take_number(reader);
    profile->out = (uint32_t)take_number(reader);
    profile->weight_scale = (uint32_t)take_number(reader);
    profile->scale_gran = (uint32_t)take_number(reader);
    profile->act_scale = (uint32_t)take_number(reader);
    uint8_t flags = take_byte(reader);
    profile->pow2 = flags & 1;
    profile->pdl = flags >> 1 & 1;
    profile->propagate = flags >> 2 & 1;
    profile->strict_route = flags >> 3 & 1;
    profile->policy = flags >> 4 & 1 ? "reference" : NULL;
    profile->bias = flags >> 5 & 3;
    profile->sms = (uint32_t)take_number(reader);
    profile->max_sms = (uint32_t)take_number(reader);
}

struct wanted {
    const struct cbn_spec *spec;
    uint32_t told;
    bool found;
};

static int compare_spec(void *user, const struct cbn_spec *spec)
{
    struct wanted *wanted = user;
    wanted->told++;
    wanted->found |= wanted->spec && strcmp(spec->text, wanted->spec->text) == 0;
    return wanted->told == ENUMERATED_MAX;
}

static void check_query(struct cbn_runtime *runtime, const struct cbn_query *query)
{
    static struct cbn_explanation first, second;
    struct cbn_error err = {0};
    first = (struct cbn_explanation){.size = sizeof(first)};
    second = first;
    int32_t status = cbn_explain(runtime, query, &first, &err);
    FUZZ_CHECK(status == CBN_STATUS_OK || status == CBN_STATUS_INVALID || status == CBN_STATUS_UNSUPPORTED ||
               status == CBN_STATUS_LIMIT);
    FUZZ_CHECK(status == CBN_STATUS_OK || (err.status == status && err.message[0]));
    FUZZ_CHECK(cbn_explain(runtime, query, &second, NULL) == status);
    FUZZ_CHECK(memcmp(&first, &second, sizeof(first)) == 0);
    struct wanted wanted = {.spec = first.chosen ? &first.spec : NULL};
    int32_t enumerated = cbn_enumerate(runtime, query, compare_spec, &wanted, &err);
    /* n == k == 0 asks for all shapes, and lda plays no part there. */
    if (status == CBN_STATUS_OK && enumerated == CBN_STATUS_OK && first.chosen && wanted.told < ENUMERATED_MAX)
        FUZZ_CHECK(wanted.found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const ops[] = {"fp8_gemm", "fp8_quantize", "fp8_einsum", "fp8_grouped_gemm", "", "fp8"};
    static struct cbn_runtime *runtime;
    struct cbn_runtime_options options = CBN_RUNTIME_OPTIONS_INIT;
    options.flags = CBN_RUNTIME_MEMORY_ONLY | CBN_RUNTIME_IGNORE_ENV;
    FUZZ_CHECK(runtime || cbn_runtime_create(&options, &runtime, NULL) == CBN_STATUS_OK);
    struct reader reader = {data, size};
    struct cbn_query query = CBN_QUERY_INIT;
    char arch[TEXT_BYTES], disable[TEXT_BYTES], enable[TEXT_BYTES];
    struct cbn_error err = {0};
    query.op = ops[take_byte(&reader) % (sizeof(ops) / sizeof(ops[0]))];
    query.m = take_number(&reader);
    query.n = take_number(&reader);
    query.k = take_number(&reader);
    query.groups = take_number(&reader);
    query.lda = take_number(&reader);
    take_profile(&reader, &query.profile);
    take_line(&reader, arch);
    take_line(&reader, disable);
    take_line(&reader, enable);
    query.profile.disable = disable[0] ? disable : NULL;
    query.profile.enable = enable[0] ? enable : NULL;
    if (cbn_arch_parse(arch, &query.arch, &err) == CBN_STATUS_OK) {
        char name[16];
        cbn_arch_format(query.arch, name, sizeof(name));
        FUZZ_CHECK(strcmp(name, arch) == 0);
    } else {
        FUZZ_CHECK(err.status == CBN_STATUS_INVALID && err.message[0]);
        query.arch = (uint32_t)arch[0] << 8 | (uint8_t)arch[1];
    }
    check_query(runtime, &query);
    return 0;
}
