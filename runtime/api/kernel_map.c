/*
 * The memory map of loaded kernels. Open addressing over atomic pointers to immutable nodes; a grown table is published
 * whole and the old one is kept until the end, since a reader may be inside it.
 */
#include "api/kernel_map.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 256u

struct node {
    struct cbn__spec spec;
    uint64_t hash;
    struct cbn__kernel *kernel;
};

struct table {
    struct table *older;
    size_t capacity; /* a power of two, at least twice the count of nodes */
    _Atomic(struct node *) slots[];
};

struct cbn__kernel_map {
    pthread_mutex_t lock; /* guards count and every store to slots and table */
    size_t count;
    _Atomic(struct table *) table;
};

static uint64_t hash_spec(const struct cbn__spec *spec)
{
    struct {
        uintptr_t template;
        uint64_t arch;
        int64_t params[CBN_PARAMS_MAX];
    } key = {.template = (uintptr_t)spec->template, .arch = spec->arch};
    size_t params_bytes = spec->template->param_count * sizeof(spec->params[0]);
    memcpy(key.params, spec->params, params_bytes);
    return cbn__hash_64((struct cbn__blob){&key, offsetof(__typeof__(key), params) + params_bytes});
}

static bool equal_specs(const struct cbn__spec *a, const struct cbn__spec *b)
{
    return a->template == b->template && a->arch == b->arch &&
           memcmp(a->params, b->params, a->template->param_count * sizeof(a->params[0])) == 0;
}

static struct table *create_table(size_t capacity, struct table *older)
{
    struct table *table = calloc(1, sizeof(*table) + capacity * sizeof(table->slots[0]));
    if (table) {
        table->capacity = capacity;
        table->older = older;
    }
    return table;
}

/* The node, or the free slot where it belongs. */
static struct node *probe(struct table *table, const struct cbn__spec *spec, uint64_t hash, size_t *ret_slot)
{
    size_t slot = hash & (table->capacity - 1);
    for (;;) {
        struct node *node = atomic_load_explicit(&table->slots[slot], memory_order_acquire);
        if (!node || (node->hash == hash && equal_specs(&node->spec, spec))) {
            *ret_slot = slot;
            return node;
        }
        slot = (slot + 1) & (table->capacity - 1);
    }
}

int32_t cbn__kernel_map_create(struct cbn__kernel_map **ret_map, struct cbn_error *err)
{
    struct cbn__kernel_map *map = calloc(1, sizeof(*map));
    struct table *table = create_table(FIRST_CAPACITY, NULL);
    if (!map || !table) {
        free(map);
        free(table);
        return cbn__error_no_memory(err);
    }
    (void)pthread_mutex_init(&map->lock, NULL);
    atomic_init(&map->table, table);
    *ret_map = map;
    return CBN_STATUS_OK;
}

void cbn__kernel_map_destroy(struct cbn__kernel_map *map)
{
    if (!map)
        return;
    struct table *table = atomic_load(&map->table);
    for (size_t i = 0; i < table->capacity; i++) {
        struct node *node = atomic_load(&table->slots[i]);
        if (node) {
            cbn__kernel_destroy(node->kernel);
            free(node);
        }
    }
    while (table) {
        struct table *older = table->older;
        free(table);
        table = older;
    }
    (void)pthread_mutex_destroy(&map->lock);
    free(map);
}

struct cbn__kernel *cbn__kernel_map_find(const struct cbn__kernel_map *map, const struct cbn__spec *spec)
{
    struct table *table = atomic_load_explicit(&map->table, memory_order_acquire);
    size_t slot = 0;
    struct node *node = probe(table, spec, hash_spec(spec), &slot);
    return node ? node->kernel : NULL;
}

/* Under the lock: room for one more node. */
static bool grow(struct cbn__kernel_map *map)
{
    struct table *old = atomic_load(&map->table);
    if ((map->count + 1) * 2 <= old->capacity)
        return true;
    struct table *table = create_table(old->capacity * 2, old);
    if (!table)
        return false;
    for (size_t i = 0; i < old->capacity; i++) {
        struct node *node = atomic_load(&old->slots[i]);
        size_t slot = 0;
        if (node) {
            (void)probe(table, &node->spec, node->hash, &slot);
            atomic_store(&table->slots[slot], node);
        }
    }
    atomic_store_explicit(&map->table, table, memory_order_release);
    return true;
}

static struct node *insert_locked(struct cbn__kernel_map *map, struct node *node)
{
    if (!grow(map))
        return NULL;
    struct table *table = atomic_load(&map->table);
    size_t slot = 0;
    struct node *other = probe(table, &node->spec, node->hash, &slot);
    if (other)
        return other;
    atomic_store_explicit(&table->slots[slot], node, memory_order_release);
    map->count++;
    return node;
}

int32_t cbn__kernel_map_insert(struct cbn__kernel_map *map, const struct cbn__spec *spec, struct cbn__kernel *kernel,
                               struct cbn__kernel **ret_kernel, struct cbn_error *err)
{
    struct node *node = calloc(1, sizeof(*node));
    struct node *held = NULL;
    if (node) {
        node->spec = *spec;
        node->hash = hash_spec(spec);
        node->kernel = kernel;
        (void)pthread_mutex_lock(&map->lock);
        held = insert_locked(map, node);
        (void)pthread_mutex_unlock(&map->lock);
    }
    if (held != node || !node) {
        cbn__kernel_destroy(kernel);
        free(node);
    }
    if (!held)
        return cbn__error_no_memory(err);
    *ret_kernel = held->kernel;
    return CBN_STATUS_OK;
}
