/* Running a launch graph (built by cuda_graph_build.c).
 *
 * enqueue compares each launch's arguments and grid with what its node holds and patches only what differs.
 * Launches that see nothing but the arena, weights and dims cannot differ while those stay, so they are not
 * even looked at. A launch without blocks has its node disabled. Into a capturing stream the launches go one
 * by one instead, since a graph's parameters cannot be patched once captured; the caller's graph then holds
 * the buffers of that call. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_graph_internal.h"

void cuda_graph_release(const struct cuda_functions *cuda, struct cuda_graph *graph)
{
    if (!graph)
        return;
    if (cuda && graph->executable)
        cuda->executable_destroy(graph->executable);
    if (cuda && graph->handle)
        cuda->graph_destroy(graph->handle);
    free(graph->launches);
    free(graph->slots);
    free(graph->pointers);
    free(graph->fresh);
    free(graph->map_memory);
    free(graph->keys);
    free(graph->symbols);
    free(graph);
}

/* ---- enqueue
 * ------------------------------------------------------------------------------------------------------- */

/* The launch's arguments now, into `slots`; its grid into `grid`. Returns how many arguments. */
static uint32_t arguments_now(const struct runtime_context *context, const struct cuda_graph *graph,
                              uint32_t launch, uint64_t *slots, unsigned grid[3])
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct bundle_launch *row = launch_row(context, launch);
    const struct bundle_kernel *kernel = kernel_row(context, launch);
    for (uint32_t i = 0; i < kernel->buffer_count; i++)
        slots[i] = (uintptr_t)context->buffers[tables->indices[row->first_buffer + i]];
    for (uint32_t i = 0; i < kernel->dim_count; i++) {
        int64_t value = context->values[tables->indices[row->first_dim + i]];
        /* A kernel with 32-bit dims reads the lower half: the host is little endian. */
        slots[kernel->buffer_count + i] = kernel->index_bits == 32 ? (uint32_t)value : (uint64_t)value;
    }
    const bool wanted = row->condition == BUNDLE_NONE || context->values[row->condition] != 0;
    for (int i = 0; i < 3; i++) {
        int64_t blocks = context->values[row->grid[i]];
        grid[i] = wanted && blocks > 0 ? (unsigned)blocks : 0;
    }
    for (uint32_t i = 0; i < graph->launches[launch].handle_count; i++)
        slots[1 + i] = graph->launches[launch].handles[i];
    return kernel->buffer_count + kernel->dim_count;
}

/* Encodes the launch's maps whose keys are not those of `keys`, and renews them. `changed`: some were. */
static cuda_result encode_maps(const struct runtime_context *context, uint32_t launch,
                               struct cuda_map_key *keys, struct cuda_tensor_map *maps, bool *changed)
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct bundle_launch *row = launch_row(context, launch);
    cuda_result result = 0;
    for (uint32_t i = 0; i < row->map_count && result == 0; i++) {
        const struct bundle_tensor_map *map = &tables->maps[row->first_map + i];
        struct cuda_map_key key;
        cuda_map_key_make(map, tables->indices, context->values,
                          context->buffers[tables->indices[row->first_buffer + map->buffer]], &key);
        if (memcmp(&key, &keys[i], sizeof key) == 0)
            continue;
        *changed = true;
        memset(&keys[i], 0, sizeof keys[i]); /* no address is 0: half an update is seen as none */
        result = cuda_map_encode(cuda_state_of(context)->cuda, map, &key, &maps[i]);
        if (result == 0)
            keys[i] = key;
    }
    return result;
}

static gpucc_status patch_launch(struct runtime_context *context, struct cuda_graph *graph, uint32_t index,
                                 struct runtime_error *error)
{
    const struct cuda_functions *cuda = cuda_state_of(context)->cuda;
    struct graph_launch *launch = &graph->launches[index];
    unsigned grid[3];
    uint32_t count = arguments_now(context, graph, index, graph->fresh, grid);
    bool empty = !grid[0] || !grid[1] || !grid[2];
    if (empty != !launch->enabled) {
        gpucc_status status = cuda_done(context, cuda->graph_enable(graph->executable, launch->node, !empty),
                                        CUDA_NAME(graph_enable), "cannot update the launch graph", error);
        if (status != GPUCC_OK)
            return status;
        launch->enabled = !empty;
    }
    bool encoded = false;
    if (!empty) {
        gpucc_status status =
            cuda_done(context, encode_maps(context, index, launch->keys, launch->maps, &encoded),
                      CUDA_NAME(tensor_map_encode), "cannot encode a tensor map", error);
        if (status != GPUCC_OK)
            return status;
    }
    bool same = !encoded && memcmp(launch->slots, graph->fresh, count * sizeof *graph->fresh) == 0 &&
                memcmp(launch->parameters.grid, grid, sizeof grid) == 0;
    if (empty || same)
        return GPUCC_OK;
    memcpy(launch->slots, graph->fresh, count * sizeof *graph->fresh);
    memcpy(launch->parameters.grid, grid, sizeof grid);
    gpucc_status status =
        cuda_done(context, cuda->graph_set_kernel(graph->executable, launch->node, &launch->parameters),
                  CUDA_NAME(graph_set_kernel), "cannot update the launch graph", error);
    if (status != GPUCC_OK)
        launch->parameters.grid[0] = 0; /* no grid equals it: the node is set again next time */
    return status;
}

static gpucc_status patch(struct runtime_context *context, struct cuda_graph *graph,
                          struct runtime_error *error)
{
    size_t symbol_bytes = context->model->tables.symbol_count * sizeof *graph->symbols;
    bool all = !graph->valid || graph->arena != context->arena ||
               graph->weights != context->weights->generation ||
               memcmp(graph->symbols, context->symbol_values, symbol_bytes) != 0;
    gpucc_status status = GPUCC_OK;
    graph->valid = false;
    for (uint32_t i = 0; i < graph->launch_count && status == GPUCC_OK; i++)
        if (all || graph->launches[i].touches_io)
            status = patch_launch(context, graph, i, error);
    if (status != GPUCC_OK)
        return status;
    memcpy(graph->symbols, context->symbol_values, symbol_bytes);
    graph->arena = context->arena;
    graph->weights = context->weights->generation;
    graph->valid = true;
    return GPUCC_OK;
}

static gpucc_status launch_directly(struct runtime_context *context, const struct cuda_graph *graph,
                                    cuda_stream stream, struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    uint64_t slots[BUNDLE_MAX_KERNEL_BUFFERS + BUNDLE_MAX_KERNEL_DIMS];
    struct cuda_tensor_map maps[BUNDLE_MAX_TENSOR_MAPS];
    void *pointers[BUNDLE_MAX_KERNEL_BUFFERS + BUNDLE_MAX_KERNEL_DIMS + BUNDLE_MAX_TENSOR_MAPS];
    gpucc_status status = GPUCC_OK;
    for (uint32_t i = 0; i < graph->launch_count && status == GPUCC_OK; i++) {
        const struct cuda_kernel_node *fixed = &graph->launches[i].parameters;
        unsigned grid[3];
        const uint32_t count = arguments_now(context, graph, i, slots, grid);
        if (!grid[0] || !grid[1] || !grid[2])
            continue;
        struct cuda_map_key none[BUNDLE_MAX_TENSOR_MAPS] = {{0}};
        bool encoded = false;
        status = cuda_done(context, encode_maps(context, i, none, maps, &encoded),
                           CUDA_NAME(tensor_map_encode), "cannot encode a tensor map", error);
        for (uint32_t k = 0; k < count; k++)
            pointers[k] = &slots[k];
        for (uint32_t k = 0; k < BUNDLE_MAX_TENSOR_MAPS; k++)
            pointers[count + k] = &maps[k];
        if (status == GPUCC_OK)
            status = cuda_done(context,
                               state->cuda->launch(fixed->function, grid[0], grid[1], grid[2],
                                                   fixed->block[0], fixed->block[1], fixed->block[2],
                                                   fixed->shared_bytes, stream, pointers, NULL),
                               CUDA_NAME(launch), "cannot launch a kernel", error);
    }
    return status;
}

static gpucc_status run_copies(struct runtime_context *context, bool early, cuda_stream stream,
                               struct runtime_error *error)
{
    const struct cuda_functions *cuda = cuda_state_of(context)->cuda;
    gpucc_status status = GPUCC_OK;
    for (uint32_t i = 0; i < context->plan->copy_count && status == GPUCC_OK; i++) {
        const struct bundle_copy *copy = &context->model->tables.copies[context->plan->first_copy + i];
        uint64_t bytes = buffer_bytes_now(context, copy->to);
        cuda_pointer from = (uintptr_t)context->buffers[copy->from],
                     to = (uintptr_t)context->buffers[copy->to];
        if (copy_is_early(context, copy) == early && bytes && from != to)
            status = cuda_done(context, cuda->copy(to, from, (size_t)bytes, stream), CUDA_NAME(copy),
                               "cannot copy an output", error);
    }
    return status;
}

gpucc_status cuda_graph_run(struct runtime_context *context, struct cuda_graph *graph, cuda_stream stream,
                            struct runtime_error *error)
{
    const struct cuda_functions *cuda = cuda_state_of(context)->cuda;
    int capturing = CUDA_CAPTURE_NONE;
    /* The legacy default stream cannot be captured, and asking it fails while another stream is. */
    gpucc_status status = GPUCC_OK;
    if (stream)
        status = cuda_done(context, cuda->stream_capturing(stream, &capturing), CUDA_NAME(stream_capturing),
                           "cannot use the stream", error);
    if (status == GPUCC_OK)
        status = run_copies(context, true, stream, error);
    if (status == GPUCC_OK && graph->launch_count) {
        if (capturing != CUDA_CAPTURE_NONE && context->plan->control_count) {
            status = runtime_fail(
                error, GPUCC_INVALID_ARGUMENT,
                "a model with loops or branches cannot be captured: its stream must not be capturing");
        } else if (capturing != CUDA_CAPTURE_NONE) {
            status = launch_directly(context, graph, stream, error);
        } else {
            status = patch(context, graph, error);
            if (status == GPUCC_OK)
                status = cuda_done(context, cuda->graph_launch(graph->executable, stream),
                                   CUDA_NAME(graph_launch), "cannot launch the graph", error);
        }
    }
    if (status == GPUCC_OK)
        status = run_copies(context, false, stream, error);
    if (status == GPUCC_OK && context->plan->word_count)
        status = cuda_done(context,
                           cuda->copy_out(context->words,
                                          (uintptr_t)context->buffers[context->plan->word_buffer],
                                          context->plan->word_count * sizeof *context->words, stream),
                           CUDA_NAME(copy_out), "cannot copy the sizes that the model computed", error);
    return status;
}
