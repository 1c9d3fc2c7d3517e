/*
 * The memory map: (template, arch, parameters) to a kernel that the driver has. Look-ups are wait-free; inserts take
 * the map's lock. A kernel stays until the map is destroyed: a captured graph may hold it.
 */
#ifndef CBN_API_KERNEL_MAP_H
#define CBN_API_KERNEL_MAP_H

#include "jit/spec.h"
#include "launch/kernel.h"

struct cbn__kernel_map;

int32_t cbn__kernel_map_create(struct cbn__kernel_map **ret_map, struct cbn_error *err);
void cbn__kernel_map_destroy(struct cbn__kernel_map *map);
struct cbn__kernel *cbn__kernel_map_find(const struct cbn__kernel_map *map, const struct cbn__spec *spec);

/* Takes the kernel over. When another thread was first, destroys it and gives the other's. */
int32_t cbn__kernel_map_insert(struct cbn__kernel_map *map, const struct cbn__spec *spec, struct cbn__kernel *kernel,
                               struct cbn__kernel **ret_kernel, struct cbn_error *err);

#endif
