/*
 * The fake's launches, memory and look-up of functions.
 */
#include "fake/state.h"

#include <stdlib.h>

/* launches */

#define PORTABLE_CLUSTER_MAX 8

struct launch_attributes {
    uint32_t cluster[3];
    uint32_t pdl;
};

static CUresult read_attributes(const CUlaunchConfig *config, int capability, struct launch_attributes *ret)
{
    *ret = (struct launch_attributes){{1, 1, 1}, 0};
    for (unsigned int i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            ret->pdl = attribute->value.programmaticStreamSerializationAllowed == 1;
        } else if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            ret->cluster[0] = attribute->value.clusterDim.x;
            ret->cluster[1] = attribute->value.clusterDim.y;
            ret->cluster[2] = attribute->value.clusterDim.z;
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (config->numAttrs && capability < 90)
        fake_violate("a launch attribute that sm_%d does not have", capability);
    return CUDA_SUCCESS;
}

static CUresult check_shape(const CUlaunchConfig *config, const struct fake_kernel *kernel, int device,
                            const struct launch_attributes *attributes)
{
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    bool grid_fits = config->gridDimX >= 1 && config->gridDimX <= 0x7FFFFFFFu && config->gridDimY >= 1 &&
                     config->gridDimY <= 65535 && config->gridDimZ >= 1 && config->gridDimZ <= 65535;
    if (!grid_fits || threads == 0 || threads > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    const uint32_t *cluster = attributes->cluster;
    if (!cluster[0] || !cluster[1] || !cluster[2] || config->gridDimX % cluster[0] || config->gridDimY % cluster[1] ||
        config->gridDimZ % cluster[2])
        return CUDA_ERROR_INVALID_VALUE;
    if ((uint64_t)cluster[0] * cluster[1] * cluster[2] > PORTABLE_CLUSTER_MAX)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    const uint32_t *required = kernel->facts.required_block;
    if ((kernel->facts.max_threads && threads > kernel->facts.max_threads) ||
        (required[0] && threads != (uint64_t)required[0] * required[1] * required[2]))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (config->sharedMemBytes > FAKE_SHARED_BYTES_MAX ||
        (config->sharedMemBytes > 49152 && config->sharedMemBytes > (uint32_t)kernel->shared_bytes[device]))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* A CUfunction of this context, or a CUkernel. */
static struct fake_kernel *launched_kernel(CUfunction function, const struct fake_context *context)
{
    const struct fake_loaded *loaded = fake_handle_get(function, FAKE_FUNCTION);
    if (loaded)
        return loaded->context == context && !loaded->kernel->handle.dead ? loaded->kernel : NULL;
    return fake_handle_get(function, FAKE_KERNEL);
}

/*
 * Reads exactly the bytes that the driver would, so that a sanitizer sees an argument struct that is too short. Recorded
 * from the first parameter on, which stands off the bank's start where it is aligned to more than that is.
 */
static void copy_parameters(const struct fake_image_kernel *facts, void **parameters, struct fake_launch *launch)
{
    uint32_t first = facts->parameter_count ? facts->parameters[0].offset : 0;
    launch->parameter_bytes = facts->parameter_bytes - first;
    for (uint32_t i = 0; i < facts->parameter_count; i++) {
        uint32_t offset = facts->parameters[i].offset - first, bytes = facts->parameters[i].bytes;
        if (offset + bytes > sizeof(launch->parameters))
            fake_violate("a parameter of %u bytes at %u is more than the fake records", bytes, offset);
        else
            memcpy(launch->parameters + offset, parameters[i], bytes);
    }
}

static struct fake_launch *launch_new(void)
{
    if (fake_state.launch_count == fake_state.launch_capacity) {
        fake_state.launch_capacity = fake_state.launch_capacity ? 2 * fake_state.launch_capacity : 64;
        fake_state.launches = realloc(fake_state.launches, fake_state.launch_capacity * sizeof(fake_state.launches[0]));
        if (!fake_state.launches)
            abort();
    }
    struct fake_launch *launch = &fake_state.launches[fake_state.launch_count++];
    memset(launch, 0, sizeof(*launch));
    return launch;
}

static void record(const CUlaunchConfig *config, const struct fake_kernel *kernel, const struct fake_context *context,
                   const struct launch_attributes *attributes, const struct fake_stream *stream, void **parameters)
{
    struct fake_launch *launch = launch_new();
    memcpy(launch->kernel, kernel->name, sizeof(launch->kernel));
    memcpy(launch->grid, (uint32_t[3]){config->gridDimX, config->gridDimY, config->gridDimZ}, sizeof(launch->grid));
    memcpy(launch->block, (uint32_t[3]){config->blockDimX, config->blockDimY, config->blockDimZ},
           sizeof(launch->block));
    memcpy(launch->cluster, attributes->cluster, sizeof(launch->cluster));
    launch->shared_bytes = config->sharedMemBytes;
    launch->attribute_count = config->numAttrs;
    launch->pdl = attributes->pdl;
    launch->capturing = stream && stream->status == 1;
    launch->context_id = context->id;
    launch->image_sum = kernel->library->image_sum;
    launch->stream = config->hStream;
    copy_parameters(&kernel->facts, parameters, launch);
}

static CUresult enter_stream(struct fake_stream *stream, const struct fake_kernel *kernel, uint64_t context_id)
{
    bool loaded = fake_is_loaded(kernel, context_id);
    if (stream && stream->status == 2)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream && stream->status == 1) {
        if (!loaded) {
            fake_violate("%s is launched into a capturing stream and not loaded", kernel->name);
            stream->status = 2;
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        stream->launches++;
    }
    if (!loaded)
        fake_violate("%s is launched and was never loaded into context %llu", kernel->name,
                     (unsigned long long)context_id);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    FAKE_ENTER(cuLaunchKernelEx);
    if (atomic_load_explicit(&fake_state.quick, memory_order_relaxed))
        return CUDA_SUCCESS;
    FAKE_LOCKED;
    struct fake_stream *stream = fake_handle_get(config->hStream, FAKE_STREAM);
    if (!stream && !fake_is_default_stream(config->hStream))
        return CUDA_ERROR_INVALID_HANDLE;
    const struct fake_context *context = stream ? stream->context : fake_current;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct fake_kernel *kernel = launched_kernel(function, context);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    const struct fake_library *library = kernel->library;
    int capability = fake_state.devices[context->device].capability;
    if ((uint32_t)capability != library->capability)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    struct launch_attributes attributes;
    CUresult result = read_attributes(config, capability, &attributes);
    if (result == CUDA_SUCCESS)
        result = check_shape(config, kernel, context->device, &attributes);
    if (result == CUDA_SUCCESS && (extra || (kernel->facts.parameter_count && !parameters)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = enter_stream(stream, kernel, context->id);
    if (result == CUDA_SUCCESS)
        record(config, kernel, context, &attributes, stream, parameters);
    return result;
}

/* 0: a type that no kernel here copies. */
static uint32_t element_bytes(uint32_t type)
{
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
        return 1;
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
        return 2;
    default:
        return 0;
    }
}

static uint32_t swizzle_bytes(uint32_t swizzle)
{
    return swizzle == CU_TENSOR_MAP_SWIZZLE_128B ? 128 : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64 : UINT32_MAX;
}

/* What the driver's documentation asks of a map without interleave. */
static bool is_legal_map(const struct fake_map *map)
{
    uint32_t row_bytes = map->box[0] * element_bytes(map->type);
    if (map->address % 16 || map->rank < 1 || map->rank > FAKE_MAP_RANK_MAX || row_bytes == 0 || row_bytes % 16 ||
        map->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || row_bytes > swizzle_bytes(map->swizzle))
        return false;
    for (uint32_t i = 0; i < map->rank; i++)
        if (map->extents[i] == 0 || map->extents[i] > (1ull << 32) || map->box[i] == 0 || map->box[i] > 256)
            return false;
    for (uint32_t i = 0; i + 1 < map->rank; i++)
        if (map->strides[i] == 0 || map->strides[i] % 16 || map->strides[i] >= (1ull << 40))
            return false;
    return true;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill)
{
    _Static_assert(sizeof(struct fake_map) <= sizeof(*map), "what the fake writes");
    FAKE_ENTER(cuTensorMapEncodeTiled);
    if (!map || (uintptr_t)map % 64 || rank > FAKE_MAP_RANK_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    struct fake_map made = {.mark = FAKE_MAP_MARK,
                            .type = type,
                            .rank = rank,
                            .interleave = interleave,
                            .swizzle = swizzle,
                            .promotion = promotion,
                            .fill = fill,
                            .address = (uintptr_t)address};
    for (cuuint32_t i = 0; i < rank; i++) {
        made.extents[i] = extents[i];
        made.strides[i] = i + 1 < rank ? strides[i] : 0;
        made.box[i] = box[i];
        if (element_strides[i] != 1)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_legal_map(&made))
        return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, sizeof(*map));
    memcpy(map, &made, sizeof(made));
    return CUDA_SUCCESS;
}

/* memory */

static struct fake_block *block_of(CUdeviceptr address, size_t bytes)
{
    for (struct fake_block *block = fake_state.blocks; block; block = block->next) {
        uintptr_t start = (uintptr_t)block->data;
        if (address >= start && address - start <= block->bytes && bytes <= block->bytes - (address - start))
            return block;
    }
    return NULL;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    FAKE_ENTER(cuMemAlloc);
    FAKE_LOCKED;
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult unsafe = fake_unsafe_call();
    if (unsafe != CUDA_SUCCESS || bytes == 0)
        return unsafe != CUDA_SUCCESS ? unsafe : CUDA_ERROR_INVALID_VALUE;
    struct fake_block *block = calloc(1, sizeof(*block));
    uint8_t *data = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!block || !data) {
        free(block);
        free(data);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *block = (struct fake_block){data, bytes, fake_state.blocks};
    fake_state.blocks = block;
    *address = (CUdeviceptr)(uintptr_t)data;
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address)
{
    FAKE_ENTER(cuMemFree);
    FAKE_LOCKED;
    CUresult unsafe = fake_unsafe_call();
    if (unsafe != CUDA_SUCCESS || address == 0)
        return unsafe;
    for (struct fake_block **link = &fake_state.blocks; *link; link = &(*link)->next) {
        struct fake_block *block = *link;
        if ((uintptr_t)block->data != address)
            continue;
        *link = block->next;
        free(block->data);
        free(block);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_access(CUdeviceptr address, size_t bytes)
{
    CUresult unsafe = fake_unsafe_call();
    if (unsafe != CUDA_SUCCESS)
        return unsafe;
    return bytes == 0 || block_of(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyHtoD(CUdeviceptr address, const void *data, size_t bytes)
{
    FAKE_ENTER(cuMemcpyHtoD);
    FAKE_LOCKED;
    CUresult result = check_access(address, bytes);
    if (result == CUDA_SUCCESS && bytes)
        memcpy((void *)(uintptr_t)address, data, bytes);
    return result;
}

CUresult cuMemcpyDtoH(void *data, CUdeviceptr address, size_t bytes)
{
    FAKE_ENTER(cuMemcpyDtoH);
    FAKE_LOCKED;
    CUresult result = check_access(address, bytes);
    if (result == CUDA_SUCCESS && bytes)
        memcpy(data, (const void *)(uintptr_t)address, bytes);
    return result;
}

CUresult cuMemsetD8(CUdeviceptr address, unsigned char value, size_t bytes)
{
    FAKE_ENTER(cuMemsetD8);
    FAKE_LOCKED;
    CUresult result = check_access(address, bytes);
    if (result == CUDA_SUCCESS && bytes)
        memset((void *)(uintptr_t)address, value, bytes);
    return result;
}

/* look-up */

static const struct {
    const char *name;
    void *address;
} functions[] = {
#define CBN__X(function) {#function, (void *)&function},
    CBN__CUDA_MAP(CBN__X)
#undef CBN__X
        {"cuGetProcAddress", (void *)&cuGetProcAddress},
};

CUresult cuGetProcAddress(const char *symbol, void **address, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status)
{
    (void)flags;
    FAKE_ENTER(cuGetProcAddress);
    *address = NULL;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (strcmp(functions[i].name, symbol) == 0)
            *address = functions[i].address;
    bool found = *address && version <= fake_state.version;
    if (status)
        *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (!found)
        *address = NULL;
    return found || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
