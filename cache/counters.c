/*
 * The stored counters: one sealed record of the table meta/1.
 */
#include "cache/counters.h"

#include <string.h>

#include "base/record.h"
#include "cache/runs.h"

#define COUNTER_COUNT (sizeof(struct cbn__counters) / sizeof(uint64_t))
#define SEALED_BYTES (COUNTER_COUNT * 8)

static const char counters_key[] = "counters";

bool cbn__counters_any(const struct cbn__live_counters *live)
{
#define CBN_X(name, text)                                                                                              \
    if (atomic_load_explicit(&live->name, memory_order_relaxed))                                                       \
        return true;
    CBN_LAYER_STAT_MAP(CBN_X)
#undef CBN_X
    return false;
}

void cbn__counters_clear(struct cbn__live_counters *live)
{
#define CBN_X(name, text) atomic_store_explicit(&live->name, 0, memory_order_relaxed);
    CBN_LAYER_STAT_MAP(CBN_X)
#undef CBN_X
}

static struct cbn__hash seal_of(const uint8_t *bytes, size_t size)
{
    const struct cbn__blob parts[] = {cbn__blob_text(counters_key), {bytes, size}};
    return cbn__hash_blobs(parts, 2);
}

static MDB_val name_of_record(void)
{
    return (MDB_val){sizeof(counters_key) - 1, (void *)(uintptr_t)counters_key};
}

/* A release that knows fewer or more counters reads those that both know. */
static void read_stored(struct cbn__session *session, struct cbn__counters *ret_counters)
{
    MDB_val name = name_of_record(), value;
    uint64_t values[COUNTER_COUNT] = {0};
    memset(ret_counters, 0, sizeof(*ret_counters));
    if (mdb_get(session->txn, session->store->meta, &name, &value) != 0 || value.mv_size < CBN__HASH_BYTES)
        return;
    size_t sealed = value.mv_size - CBN__HASH_BYTES;
    struct cbn__hash seal = seal_of(value.mv_data, sealed);
    if (sealed % 8 || memcmp((const uint8_t *)value.mv_data + sealed, seal.bytes, sizeof(seal.bytes)) != 0)
        return;
    for (size_t i = 0; i < COUNTER_COUNT && i < sealed / 8; i++)
        values[i] = cbn__load_u64((const uint8_t *)value.mv_data + 8 * i);
    memcpy(ret_counters, values, sizeof(*ret_counters));
}

int cbn__counters_write(struct cbn__session *session)
{
    struct cbn__live_counters *live = &session->store->counters;
    struct cbn__counters counters, taken;
    uint8_t bytes[SEALED_BYTES + CBN__HASH_BYTES];
    read_stored(session, &counters);
#define CBN_X(name, text)                                                                                              \
    taken.name = atomic_exchange(&live->name, 0);                                                                      \
    counters.name += taken.name;
    CBN_LAYER_STAT_MAP(CBN_X)
#undef CBN_X
    uint64_t values[COUNTER_COUNT];
    memcpy(values, &counters, sizeof(values));
    for (size_t i = 0; i < COUNTER_COUNT; i++)
        cbn__store_u64(bytes + 8 * i, values[i]);
    struct cbn__hash seal = seal_of(bytes, SEALED_BYTES);
    memcpy(bytes + SEALED_BYTES, seal.bytes, sizeof(seal.bytes));
    MDB_val name = name_of_record(), value = {sizeof(bytes), bytes};
    int rc = cbn__runs_put(session, session->store->meta, &name, &value, 0);
    if (rc == 0)
        return 0;
#define CBN_X(name, text) atomic_fetch_add(&live->name, taken.name);
    CBN_LAYER_STAT_MAP(CBN_X)
#undef CBN_X
    return rc;
}

void cbn__counters_read(struct cbn__session *session, struct cbn__counters *ret_counters)
{
    read_stored(session, ret_counters);
    const struct cbn__live_counters *live = &session->store->counters;
#define CBN_X(name, text) ret_counters->name += atomic_load_explicit(&live->name, memory_order_relaxed);
    CBN_LAYER_STAT_MAP(CBN_X)
#undef CBN_X
}
