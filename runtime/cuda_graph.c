/* One CUDA graph for one prepared range, built node by node from the launch table: a kernel node a launch,
 * edges where two launches touch the same memory and one of them writes it (buffers that share arena memory
 * at different times are the same memory). Nothing is captured.
 *
 * enqueue compares each launch's arguments and grid with what its node holds and patches only what differs.
 * Launches that see nothing but the arena, weights and dims cannot differ while those stay, so they are not
 * even looked at. A launch without blocks has its node disabled. Into a capturing stream the launches go one
 * by one instead, since a graph's parameters cannot be patched once captured; the caller's graph then holds
 * the buffers of that call. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_device.h"

/* Flat indices of a kernel with 32-bit ones may pass the last element by a block's worth. */
enum { INDEX_SLACK = 1 << 20, MAX_GRID_X = INT32_MAX, MAX_GRID_YZ = 65535 };

struct graph_launch {
    cuda_node node;
    struct cuda_kernel_node parameters;
    uint64_t *slots; /* arguments, 8 bytes each: buffers, then dims */
    void **pointers; /* to the slots */
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
    /* What the nodes hold. */
    bool valid;
    void *arena;
    int64_t *symbols; /* [symbol_count] */
};

static const struct bundle_launch *launch_row(const struct runtime_context *context, uint32_t launch)
{
    return &context->model->tables.launches[context->plan->first_launch + launch];
}

static const struct bundle_kernel *kernel_row(const struct runtime_context *context, uint32_t launch)
{
    return &context->model->tables.kernels[context->plan->first_kernel + launch_row(context, launch)->kernel];
}

/* ---- edges
 * ---------------------------------------------------------------------------------------------------------
 */

/* Memory that a launch touches: a space (the arena, or one of the caller's buffers) and a range in it. */
struct touch {
    uint64_t begin, end;
    uint32_t space, launch;
    bool write;
};

struct edges {
    struct touch *touches; /* those that a later launch may have to wait for */
    uint32_t count, capacity;
    cuda_node *nodes; /* dependencies of the launch at hand, each once */
    uint32_t *seen;   /* [launch]: the last launch that depends on it, + 1 */
    uint32_t node_count;
};

static bool touch_of(const struct runtime_context *context, const struct prepared *prepared, uint32_t buffer,
                     struct touch *touch)
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct bundle_buffer *row = &plan_buffers(context)[buffer];
    uint64_t bytes = 0;
    switch (row->kind) {
    case BUNDLE_CONSTANT:
        return false;
    case BUNDLE_ARENA:
        tables_dtype_bytes(row->dtype, prepared->sizes.bounds[row->elements].high, &bytes);
        touch->space = 0;
        touch->begin = prepared->offsets[buffer];
        touch->end = touch->begin + bytes;
        return bytes > 0;
    case BUNDLE_OUTPUT:
        touch->space = 1 + row->index;
        break;
    default:
        /* An input is the same memory as the output that lives in it; others are only read. */
        touch->space = 0;
        for (uint32_t i = 0; i < tables->output_count; i++)
            if (tables->outputs[i].alias_input == row->index)
                touch->space = 1 + i;
        if (!touch->space)
            return false;
        break;
    }
    touch->begin = 0;
    touch->end = 1;
    return true;
}

static bool add_touch(struct edges *edges, const struct touch *touch)
{
    if (edges->count == edges->capacity) {
        uint32_t capacity = edges->capacity ? 2 * edges->capacity : 256;
        struct touch *grown = realloc(edges->touches, capacity * sizeof *grown);
        if (!grown)
            return false;
        edges->touches = grown;
        edges->capacity = capacity;
    }
    edges->touches[edges->count++] = *touch;
    return true;
}

/* Dependencies from one buffer of a launch. A write makes the touches that it covers superfluous: whoever
 * conflicts with them later conflicts with the write, which waits for them. */
static void depend(struct edges *edges, const struct graph_launch *launches, const struct touch *touch)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < edges->count; i++) {
        struct touch *other = &edges->touches[i];
        bool same = other->space == touch->space && other->begin < touch->end && touch->begin < other->end &&
                    other->launch != touch->launch;
        if (same && (other->write || touch->write) && edges->seen[other->launch] != touch->launch + 1) {
            edges->seen[other->launch] = touch->launch + 1;
            edges->nodes[edges->node_count++] = launches[other->launch].node;
        }
        if (same && touch->write && touch->begin <= other->begin && touch->end >= other->end)
            continue;
        edges->touches[kept++] = *other;
    }
    edges->count = kept;
}

/* Finds the dependencies of a launch, then records what it touches. */
static bool find_edges(const struct runtime_context *context, const struct prepared *prepared,
                       struct edges *edges, const struct graph_launch *launches, uint32_t launch)
{
    const struct bundle_kernel *kernel = kernel_row(context, launch);
    const uint32_t *buffers = &context->model->tables.indices[launch_row(context, launch)->first_buffer];
    struct touch touch = {.launch = launch};
    edges->node_count = 0;
    for (int record = 0; record < 2; record++)
        for (uint32_t i = 0; i < kernel->buffer_count; i++) {
            touch.write = (kernel->written_mask >> i & 1) != 0;
            if (!touch_of(context, prepared, buffers[i], &touch))
                continue;
            if (!record)
                depend(edges, launches, &touch);
            else if (!add_touch(edges, &touch))
                return false;
        }
    return true;
}

/* ---- building
 * ------------------------------------------------------------------------------------------------------ */

/* Everything that a 32-bit kernel computes must fit, and grids must be what a device takes. */
static gpucc_status check_launch(const struct runtime_context *context, const struct prepared *prepared,
                                 uint32_t launch, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct bundle_launch *row = launch_row(context, launch);
    const struct bundle_kernel *kernel = kernel_row(context, launch);
    const struct dim_interval *bounds = prepared->sizes.bounds;
    const char *name = tables->strings + kernel->name;
    bool fits = true;
    for (uint32_t i = 0; i < kernel->dim_count; i++) {
        struct dim_interval dim = bounds[tables->indices[row->first_dim + i]];
        fits = fits && dim_interval_known(dim) &&
               (kernel->index_bits == 64 || (dim.low >= INT32_MIN && dim.high <= INT32_MAX));
    }
    for (uint32_t i = 0; i < kernel->buffer_count && kernel->index_bits == 32; i++) {
        uint32_t elements = plan_buffers(context)[tables->indices[row->first_buffer + i]].elements;
        fits =
            fits && dim_interval_known(bounds[elements]) && bounds[elements].high <= INT32_MAX - INDEX_SLACK;
    }
    if (!fits)
        return runtime_fail(error, GPUCC_OUT_OF_RANGE,
                            "kernel %.100s was compiled for fewer than 2^31 elements; these dims need more",
                            name);
    for (int i = 0; i < 3; i++) {
        struct dim_interval grid = bounds[row->grid[i]];
        if (!dim_interval_known(grid) || grid.high > (i ? MAX_GRID_YZ : MAX_GRID_X))
            return runtime_fail(error, GPUCC_OUT_OF_RANGE,
                                "kernel %.100s needs more blocks than a device takes", name);
    }
    return GPUCC_OK;
}

static bool allocate_arrays(const struct runtime_context *context, struct cuda_graph *graph)
{
    const struct bundle_tables *tables = &context->model->tables;
    size_t arguments = 1;
    for (uint32_t i = 0; i < graph->launch_count; i++)
        arguments += kernel_row(context, i)->buffer_count + kernel_row(context, i)->dim_count;
    graph->launches = calloc((size_t)graph->launch_count + 1, sizeof *graph->launches);
    graph->slots = calloc(arguments, sizeof *graph->slots);
    graph->pointers = calloc(arguments, sizeof *graph->pointers);
    graph->fresh = calloc(BUNDLE_MAX_KERNEL_BUFFERS + BUNDLE_MAX_KERNEL_DIMS, sizeof *graph->fresh);
    graph->symbols = calloc((size_t)tables->symbol_count + 1, sizeof *graph->symbols);
    if (!graph->launches || !graph->slots || !graph->pointers || !graph->fresh || !graph->symbols)
        return false;
    for (size_t i = 0; i < arguments; i++)
        graph->pointers[i] = &graph->slots[i];
    return true;
}

/* Launch parameters that do not change, with a grid of one block until the first enqueue says more. */
static void init_launches(const struct runtime_context *context, struct cuda_graph *graph)
{
    const struct cuda_state *state = cuda_state_of(context);
    const struct bundle_tables *tables = &context->model->tables;
    size_t at = 0;
    for (uint32_t i = 0; i < graph->launch_count; i++) {
        struct graph_launch *launch = &graph->launches[i];
        const struct bundle_kernel *kernel = kernel_row(context, i);
        const uint32_t *buffers = &tables->indices[launch_row(context, i)->first_buffer];
        launch->slots = &graph->slots[at];
        launch->pointers = &graph->pointers[at];
        launch->enabled = true;
        at += kernel->buffer_count + kernel->dim_count;
        for (uint32_t b = 0; b < kernel->buffer_count; b++) {
            uint32_t kind = plan_buffers(context)[buffers[b]].kind;
            launch->touches_io = launch->touches_io || kind == BUNDLE_INPUT || kind == BUNDLE_OUTPUT;
        }
        launch->parameters =
            (struct cuda_kernel_node){.function = state->functions[launch_row(context, i)->kernel],
                                      .grid = {1, 1, 1},
                                      .shared_bytes = kernel->shared_bytes,
                                      .arguments = launch->pointers};
        memcpy(launch->parameters.block, kernel->block, sizeof launch->parameters.block);
    }
}

static gpucc_status add_nodes(struct runtime_context *context, const struct prepared *prepared,
                              struct cuda_graph *graph, struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    struct edges edges = {0};
    edges.nodes = calloc((size_t)graph->launch_count + 1, sizeof(cuda_node));
    edges.seen = calloc((size_t)graph->launch_count + 1, sizeof *edges.seen);
    gpucc_status status = GPUCC_OK;
    for (uint32_t i = 0; i < graph->launch_count && status == GPUCC_OK; i++) {
        if (!edges.nodes || !edges.seen || !find_edges(context, prepared, &edges, graph->launches, i))
            status =
                runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory while building the launch graph");
        else
            status =
                cuda_done(context,
                          state->cuda->graph_add_kernel(&graph->launches[i].node, graph->handle, edges.nodes,
                                                        edges.node_count, &graph->launches[i].parameters),
                          "cannot build the launch graph", error);
    }
    free(edges.touches);
    free(edges.nodes);
    free(edges.seen);
    return status;
}

gpucc_status cuda_graph_build(struct runtime_context *context, const struct prepared *prepared,
                              struct cuda_graph **out, struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    struct cuda_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    graph->launch_count = context->plan->launch_count;
    gpucc_status status = GPUCC_OK;
    if (!allocate_arrays(context, graph))
        status = runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    for (uint32_t i = 0; i < graph->launch_count && status == GPUCC_OK; i++)
        status = check_launch(context, prepared, i, error);
    if (status == GPUCC_OK && graph->launch_count) {
        init_launches(context, graph);
        status = cuda_done(context, state->cuda->graph_create(&graph->handle, 0),
                           "cannot build the launch graph", error);
        if (status == GPUCC_OK)
            status = add_nodes(context, prepared, graph, error);
        if (status == GPUCC_OK)
            status = cuda_done(context, state->cuda->graph_instantiate(&graph->executable, graph->handle, 0),
                               "cannot instantiate the launch graph", error);
        if (status == GPUCC_OK)
            status = cuda_done(context, state->cuda->graph_upload(graph->executable, state->stream),
                               "cannot upload the launch graph", error);
    }
    if (status == GPUCC_OK) {
        context->statistics.graphs_built++;
        *out = graph;
    } else {
        cuda_graph_release(state->cuda, graph);
    }
    return status;
}

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
    free(graph->symbols);
    free(graph);
}

/* ---- enqueue
 * ------------------------------------------------------------------------------------------------------- */

/* The launch's arguments now, into `slots`; its grid into `grid`. Returns how many arguments. */
static uint32_t arguments_now(const struct runtime_context *context, uint32_t launch, uint64_t *slots,
                              unsigned grid[3])
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
    for (int i = 0; i < 3; i++) {
        int64_t blocks = context->values[row->grid[i]];
        grid[i] = blocks > 0 ? (unsigned)blocks : 0;
    }
    return kernel->buffer_count + kernel->dim_count;
}

static gpucc_status patch_launch(struct runtime_context *context, struct cuda_graph *graph, uint32_t index,
                                 struct runtime_error *error)
{
    const struct cuda_functions *cuda = cuda_state_of(context)->cuda;
    struct graph_launch *launch = &graph->launches[index];
    unsigned grid[3];
    uint32_t count = arguments_now(context, index, graph->fresh, grid);
    bool empty = !grid[0] || !grid[1] || !grid[2];
    cuda_result result = 0;
    if (empty != !launch->enabled) {
        result = cuda->graph_enable(graph->executable, launch->node, !empty);
        launch->enabled = !empty;
    }
    bool same = memcmp(launch->slots, graph->fresh, count * sizeof *graph->fresh) == 0 &&
                memcmp(launch->parameters.grid, grid, sizeof grid) == 0;
    if (result == 0 && !empty && !same) {
        memcpy(launch->slots, graph->fresh, count * sizeof *graph->fresh);
        memcpy(launch->parameters.grid, grid, sizeof grid);
        result = cuda->graph_set_kernel(graph->executable, launch->node, &launch->parameters);
    }
    return cuda_done(context, result, "cannot update the launch graph", error);
}

static gpucc_status patch(struct runtime_context *context, struct cuda_graph *graph,
                          struct runtime_error *error)
{
    size_t symbol_bytes = context->model->tables.symbol_count * sizeof *graph->symbols;
    bool all = !graph->valid || graph->arena != context->arena ||
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
    graph->valid = true;
    return GPUCC_OK;
}

static gpucc_status launch_directly(struct runtime_context *context, const struct cuda_graph *graph,
                                    cuda_stream stream, struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    uint64_t slots[BUNDLE_MAX_KERNEL_BUFFERS + BUNDLE_MAX_KERNEL_DIMS];
    void *pointers[BUNDLE_MAX_KERNEL_BUFFERS + BUNDLE_MAX_KERNEL_DIMS];
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        pointers[i] = &slots[i];
    gpucc_status status = GPUCC_OK;
    for (uint32_t i = 0; i < graph->launch_count && status == GPUCC_OK; i++) {
        const struct cuda_kernel_node *fixed = &graph->launches[i].parameters;
        unsigned grid[3];
        arguments_now(context, i, slots, grid);
        if (grid[0] && grid[1] && grid[2])
            status = cuda_done(context,
                               state->cuda->launch(fixed->function, grid[0], grid[1], grid[2],
                                                   fixed->block[0], fixed->block[1], fixed->block[2],
                                                   fixed->shared_bytes, stream, pointers, NULL),
                               "cannot launch a kernel", error);
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
            status = cuda_done(context, cuda->copy(to, from, (size_t)bytes, stream), "cannot copy an output",
                               error);
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
        status =
            cuda_done(context, cuda->stream_capturing(stream, &capturing), "cannot use the stream", error);
    if (status == GPUCC_OK)
        status = run_copies(context, true, stream, error);
    if (status == GPUCC_OK && graph->launch_count) {
        if (capturing != CUDA_CAPTURE_NONE) {
            status = launch_directly(context, graph, stream, error);
        } else {
            status = patch(context, graph, error);
            if (status == GPUCC_OK)
                status = cuda_done(context, cuda->graph_launch(graph->executable, stream),
                                   "cannot launch the graph", error);
        }
    }
    return status == GPUCC_OK ? run_copies(context, false, stream, error) : status;
}
