/*
 * Made-up entries, and the fdatasync of a program that holds this file.
 */
#include "entries.h"

#include <math.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/record.h"

#define MEDIAN_BYTES 35000.0 /* of a cubin */
#define SPREAD 0.55          /* standard deviation of the logarithm */
#define LEAST_BYTES 4000u
#define MOST_BYTES 400000u
#define NOISE_BYTES (1u << 20)

static bool filling;

int fdatasync(int fd)
{
    return filling ? 0 : (int)syscall(SYS_fdatasync, fd);
}

uint64_t entries_random(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15ull;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

double entries_uniform(uint64_t *state)
{
    return (double)(entries_random(state) >> 11) * 0x1p-53 + 0x1p-54;
}

struct entry_key entries_key(uint64_t which)
{
    struct entry_key key = {{1, 0, 8, 0, 0, 0}};
    cbn__store_u64(key.bytes + 6, which);
    return key;
}

size_t entries_size(uint64_t which)
{
    uint64_t state = which;
    double normal = sqrt(-2.0 * log(entries_uniform(&state))) * cos(6.283185307179586 * entries_uniform(&state));
    double bytes = MEDIAN_BYTES * exp(SPREAD * normal);
    return bytes < LEAST_BYTES ? LEAST_BYTES : bytes > MOST_BYTES ? MOST_BYTES : (size_t)bytes;
}

static uint8_t *make_noise(void)
{
    uint8_t *noise = malloc(NOISE_BYTES);
    uint64_t state = 1;
    for (size_t i = 0; noise && i < NOISE_BYTES; i++) {
        noise[i] = (uint8_t)entries_random(&state);
    }
    return noise;
}

int32_t entries_fill(struct cbn__cabinet *cabinet, uint64_t count, size_t (*size_of)(uint64_t which),
                     struct cbn_error *err)
{
    const struct cbn__entry_facts facts = {.compiler_version = 13000, .compile_ms = 300, .created_s = 1700000000};
    uint8_t *noise = make_noise();
    int32_t status = noise ? CBN_STATUS_OK : cbn__error_no_memory(err);
    filling = true;
    for (uint64_t which = 0; which < count && status == CBN_STATUS_OK; which++) {
        struct entry_key key = entries_key(which);
        struct cbn__blob payload = {noise + which * 4099 % (NOISE_BYTES - MOST_BYTES), size_of(which)};
        status = cbn__cabinet_put(cabinet, (struct cbn__blob){key.bytes, sizeof(key.bytes)}, payload,
                                  cbn__blob_text(""), &facts, err);
    }
    filling = false;
    free(noise);
    return status;
}
