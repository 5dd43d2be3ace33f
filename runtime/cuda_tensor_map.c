/* See cuda_tensor_map.h. Boxes are dense (no element is skipped), what lies outside a tensor is zero, and
 * lines come into the second-level cache 256 bytes at a time. */
#include "runtime/cuda_tensor_map.h"

#include "runtime/tables.h"

#include <string.h>

void cuda_map_key_make(const struct bundle_tensor_map *row, const uint32_t *indices, const int64_t *values,
                       const void *address, struct cuda_map_key *key)
{
    const uint32_t *dims = &indices[row->first_dim];
    memset(key, 0, sizeof *key);
    key->address = (uintptr_t)address;
    key->strides[0] = 1;
    for (uint32_t i = 0; i < row->rank; i++)
        key->sizes[i] = (uint64_t)values[dims[i]];
    for (uint32_t i = 1; i < row->rank; i++)
        key->strides[i] = (uint64_t)values[dims[row->rank + i - 1]];
}

/* CUtensorMapDataType by the width alone: copies do not look into elements. */
static int data_type(unsigned bits)
{
    return bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : bits == 64 ? 4 : -1;
}

cuda_result cuda_map_encode(const struct cuda_functions *cuda, const struct bundle_tensor_map *row,
                            const struct cuda_map_key *key, struct cuda_tensor_map *map)
{
    enum { INTERLEAVE_NONE = 0, PROMOTE_256 = 3, FILL_ZERO = 0 };
    static const uint32_t steps[BUNDLE_MAX_MAP_RANK] = {1, 1, 1, 1, 1};
    const unsigned bits = tables_dtype_bits(row->dtype);
    const int swizzle = row->swizzle == 128 ? 3 : (int)row->swizzle / 32; /* CUtensorMapSwizzle */
    uint64_t strides[BUNDLE_MAX_MAP_RANK] = {0};
    if (data_type(bits) < 0)
        return CUDA_BAD_VALUE;
    /* The driver refuses a tensor without elements, and nothing is copied from one. */
    memset(map, 0, sizeof *map);
    for (uint32_t i = 0; i < row->rank; i++)
        if (key->sizes[i] == 0)
            return 0;
    for (uint32_t i = 1; i < row->rank; i++)
        strides[i - 1] = key->strides[i] * (bits / 8);
    /* A dim of one element may have any stride: the engine never takes it. */
    for (uint32_t i = 1; i < row->rank; i++)
        if (key->sizes[i] == 1 && (strides[i - 1] % 16 || !strides[i - 1]))
            strides[i - 1] = 16;
    return cuda->tensor_map_encode(map, data_type(bits), row->rank, (void *)(uintptr_t)key->address,
                                   key->sizes, strides, row->box, steps, INTERLEAVE_NONE, swizzle,
                                   PROMOTE_256, FILL_ZERO);
}
