/* What the files of the launch graph share. */
#ifndef GPUCC_RUNTIME_CUDA_GRAPH_INTERNAL_H
#define GPUCC_RUNTIME_CUDA_GRAPH_INTERNAL_H

#include "runtime/cuda_device.h"
#include "runtime/cuda_tensor_map.h"

struct graph_launch {
    cuda_node node;
    struct cuda_kernel_node parameters;
    uint64_t *slots; /* arguments, 8 bytes each: buffers, then dims */
    void **pointers; /* to the slots, then to the maps */
    struct cuda_tensor_map *maps;
    struct cuda_map_key *keys; /* what the maps hold */
    /* A launch that sets a control's condition gets these in place of its second and third buffer. */
    uint64_t handles[2];
    uint32_t handle_count;
    bool enabled;
    bool touches_io; /* has an input or output among its buffers */
};

struct cuda_graph {
    cuda_graph_handle handle; /* its nodes name those of the executable, so it lives as long */
    cuda_executable executable;
    uint32_t launch_count;
    struct graph_launch *launches;
    uint64_t *slots;
    void **pointers;
    uint64_t *fresh; /* arguments of one launch, compared with its slots */
    void *map_memory;
    struct cuda_tensor_map *maps; /* in it, aligned */
    struct cuda_map_key *keys;
    /* What the nodes hold. */
    bool valid;
    uint64_t weights; /* their generation */
    void *arena;
    int64_t *symbols; /* [symbol_count] */
};

static inline const struct bundle_launch *launch_row(const struct runtime_context *context, uint32_t launch)
{
    return &context->model->tables.launches[context->plan->first_launch + launch];
}

static inline const struct bundle_kernel *kernel_row(const struct runtime_context *context, uint32_t launch)
{
    return &context->model->tables.kernels[context->plan->first_kernel + launch_row(context, launch)->kernel];
}

#endif
