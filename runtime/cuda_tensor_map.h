/* Tensor maps of a launch: what the copy engine is told of a buffer. */
#ifndef GPUCC_RUNTIME_CUDA_TENSOR_MAP_H
#define GPUCC_RUNTIME_CUDA_TENSOR_MAP_H

#include "runtime/bundle_format.h"
#include "runtime/cuda_driver.h"

/* All that an encoding hangs on beside the bundle's row: when it is the same, so is the map. */
struct cuda_map_key {
    uint64_t address;
    uint64_t sizes[BUNDLE_MAX_MAP_RANK], strides[BUNDLE_MAX_MAP_RANK]; /* elements; strides[0] is 1 */
};

/* `sizes` and `strides` by their dims' values. */
void cuda_map_key_make(const struct bundle_tensor_map *row, const uint32_t *indices, const int64_t *values,
                       const void *address, struct cuda_map_key *key);
/* The driver's result; a dtype that the copy engine does not know: CUDA_BAD_VALUE. */
cuda_result cuda_map_encode(const struct cuda_functions *cuda, const struct bundle_tensor_map *row,
                            const struct cuda_map_key *key, struct cuda_tensor_map *map);

#endif
