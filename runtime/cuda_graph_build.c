/* One CUDA graph for one prepared range, built node by node from the launch table: a kernel node a launch,
 * edges where two launches touch the same memory and one of them writes it (buffers that share arena memory
 * at different times are the same memory). Nothing is captured.
 *
 * A control is a conditional node whose body graph holds its launches; an If is two of them, of which one
 * runs, since older drivers know no other branch. To the nodes around it, it touches whatever its launches
 * touch. The launch before a control, and the last one of a loop's body, set its condition
 * (codegen/plan_control.c). */
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_graph_internal.h"

/* Flat indices of a kernel with 32-bit ones may pass the last element by a block's worth. */
enum { INDEX_SLACK = 1 << 20, MAX_GRID_X = INT32_MAX, MAX_GRID_YZ = 65535 };

/* ---- edges
 * ---------------------------------------------------------------------------------------------------------
 */

/* Memory that a node touches: a space (the arena, or one of the caller's buffers) and a range in it. */
struct touch {
    uint64_t begin, end;
    uint32_t space, launch; /* the node's only or first launch */
    bool write;
    cuda_node node;
};

/* Of one graph: the plan's, or a body's. */
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
static void depend(struct edges *edges, const struct touch *touch)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < edges->count; i++) {
        struct touch *other = &edges->touches[i];
        bool same = other->space == touch->space && other->begin < touch->end && touch->begin < other->end &&
                    other->launch != touch->launch;
        if (same && (other->write || touch->write) && edges->seen[other->launch] != touch->launch + 1) {
            edges->seen[other->launch] = touch->launch + 1;
            edges->nodes[edges->node_count++] = other->node;
        }
        if (same && touch->write && touch->begin <= other->begin && touch->end >= other->end)
            continue;
        edges->touches[kept++] = *other;
    }
    edges->count = kept;
}

struct building {
    struct runtime_context *context;
    const struct prepared *prepared;
    struct cuda_graph *graph;
    struct runtime_error *error;
};

/* What the launches [first, end) touch, as one node. Without a node: finds what it depends on; with it:
 * records the touches.
 */
static bool walk_touches(const struct building *b, struct edges *edges, uint32_t first, uint32_t end,
                         cuda_node node)
{
    struct touch touch = {.launch = first, .node = node};
    for (uint32_t launch = first; launch < end; launch++) {
        const struct bundle_kernel *kernel = kernel_row(b->context, launch);
        const uint32_t *buffers =
            &b->context->model->tables.indices[launch_row(b->context, launch)->first_buffer];
        for (uint32_t i = 0; i < kernel->buffer_count; i++) {
            touch.write = (kernel->written_mask >> i & 1) != 0;
            if (!touch_of(b->context, b->prepared, buffers[i], &touch))
                continue;
            if (!node)
                depend(edges, &touch);
            else if (!add_touch(edges, &touch))
                return false;
        }
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
    for (uint32_t i = 0; i < row->map_count; i++) {
        const struct bundle_tensor_map *map = &tables->maps[row->first_map + i];
        for (uint32_t k = 0; k < map->rank; k++) {
            struct dim_interval size = bounds[tables->indices[map->first_dim + k]];
            if (!dim_interval_known(size) || size.high > INT32_MAX)
                return runtime_fail(
                    error, GPUCC_OUT_OF_RANGE,
                    "kernel %.100s needs a size beyond the 2^31 of the copy engine's coordinates", name);
        }
    }
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
    size_t arguments = 1, maps = 0;
    for (uint32_t i = 0; i < graph->launch_count; i++) {
        arguments += kernel_row(context, i)->buffer_count + kernel_row(context, i)->dim_count;
        maps += launch_row(context, i)->map_count;
    }
    graph->launches = calloc((size_t)graph->launch_count + 1, sizeof *graph->launches);
    graph->slots = calloc(arguments, sizeof *graph->slots);
    graph->pointers = calloc(arguments + maps, sizeof *graph->pointers);
    graph->map_memory = calloc(maps + 1, sizeof *graph->maps);
    graph->keys = calloc(maps + 1, sizeof *graph->keys);
    graph->fresh = calloc(BUNDLE_MAX_KERNEL_BUFFERS + BUNDLE_MAX_KERNEL_DIMS, sizeof *graph->fresh);
    graph->symbols = calloc((size_t)tables->symbol_count + 1, sizeof *graph->symbols);
    if (!graph->launches || !graph->slots || !graph->pointers || !graph->fresh || !graph->symbols ||
        !graph->map_memory || !graph->keys)
        return false;
    const uintptr_t alignment = _Alignof(struct cuda_tensor_map);
    graph->maps = (void *)(((uintptr_t)graph->map_memory + alignment - 1) & ~(alignment - 1));
    return true;
}

/* Launch parameters that do not change, with a grid of one block until the first enqueue says more. */
static void init_launches(const struct runtime_context *context, struct cuda_graph *graph)
{
    const struct cuda_state *state = cuda_state_of(context);
    const struct bundle_tables *tables = &context->model->tables;
    size_t at = 0, map = 0;
    for (uint32_t i = 0; i < graph->launch_count; i++) {
        struct graph_launch *launch = &graph->launches[i];
        const struct bundle_kernel *kernel = kernel_row(context, i);
        const uint32_t maps = launch_row(context, i)->map_count,
                       arguments = kernel->buffer_count + kernel->dim_count;
        const uint32_t *buffers = &tables->indices[launch_row(context, i)->first_buffer];
        launch->slots = &graph->slots[at];
        launch->pointers = &graph->pointers[at + map];
        launch->maps = &graph->maps[map];
        launch->keys = &graph->keys[map];
        launch->enabled = true;
        for (uint32_t k = 0; k < arguments; k++)
            launch->pointers[k] = &launch->slots[k];
        for (uint32_t k = 0; k < maps; k++)
            launch->pointers[arguments + k] = &launch->maps[k];
        at += arguments;
        map += maps;
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

static gpucc_status no_memory(const struct building *b)
{
    return runtime_fail(b->error, GPUCC_OUT_OF_MEMORY, "out of memory while building the launch graph");
}

static gpucc_status add_launch(const struct building *b, cuda_graph_handle into, struct edges *edges,
                               uint32_t launch)
{
    struct graph_launch *made = &b->graph->launches[launch];
    edges->node_count = 0;
    walk_touches(b, edges, launch, launch + 1, NULL);
    gpucc_status status = cuda_done(
        b->context,
        cuda_state_of(b->context)
            ->cuda->graph_add_kernel(&made->node, into, edges->nodes, edges->node_count, &made->parameters),
        CUDA_NAME(graph_add_kernel), "cannot build the launch graph", b->error);
    if (status == GPUCC_OK && !walk_touches(b, edges, launch, launch + 1, made->node))
        status = no_memory(b);
    return status;
}

static gpucc_status add_range(const struct building *b, cuda_graph_handle into, uint32_t first, uint32_t end,
                              uint32_t control);

/* A conditional node over the launches [first, end), run by the handle. */
static gpucc_status add_conditional(const struct building *b, cuda_graph_handle into, struct edges *edges,
                                    const struct bundle_control *control, uint64_t handle, uint32_t first,
                                    uint32_t end, uint32_t inner)
{
    const struct cuda_state *state = cuda_state_of(b->context);
    struct cuda_conditional_node parameters = {.type = CUDA_NODE_CONDITIONAL,
                                               .handle = handle,
                                               .kind = control->kind == BUNDLE_WHILE ? CUDA_CONDITION_WHILE
                                                                                     : CUDA_CONDITION_IF,
                                               .size = 1,
                                               .context = state->context};
    const cuda_node setter = b->graph->launches[control->first - 1].node;
    cuda_node node = NULL;
    bool waits = false;
    edges->node_count = 0;
    walk_touches(b, edges, first, end, NULL);
    for (uint32_t i = 0; i < edges->node_count; i++)
        waits = waits || edges->nodes[i] == setter;
    if (!waits)
        edges->nodes[edges->node_count++] = setter;
    gpucc_status status = cuda_done(
        b->context,
        state->cuda->graph_add_node(&node, into, edges->nodes, NULL, edges->node_count, &parameters),
        CUDA_NAME(graph_add_node), "cannot build a loop or branch of the launch graph", b->error);
    if (status == GPUCC_OK && !walk_touches(b, edges, first, end, node))
        status = no_memory(b);
    return status == GPUCC_OK ? add_range(b, parameters.graphs[0], first, end, inner) : status;
}

static gpucc_status add_control(const struct building *b, cuda_graph_handle into, struct edges *edges,
                                uint32_t index)
{
    const struct cuda_state *state = cuda_state_of(b->context);
    const struct bundle_control *controls =
        &b->context->model->tables.controls[b->context->plan->first_control];
    const struct bundle_control *control = &controls[index];
    const bool loop = control->kind == BUNDLE_WHILE;
    uint64_t handles[2] = {0, 0};
    gpucc_status status = GPUCC_OK;
    for (uint32_t i = 0; i < (loop ? 1 : 2) && status == GPUCC_OK; i++)
        status = cuda_done(
            b->context, state->cuda->conditional_create(&handles[i], b->graph->handle, state->context, 0, 0),
            CUDA_NAME(conditional_create), "cannot build a loop or branch of the launch graph", b->error);
    if (status != GPUCC_OK)
        return status;
    for (uint32_t i = 0; i < (loop ? 2 : 1); i++) { /* a loop's last launch sets the condition again */
        struct graph_launch *setter = &b->graph->launches[i ? control->end - 1 : control->first - 1];
        setter->handle_count = loop ? 1 : 2;
        memcpy(setter->handles, handles, sizeof handles);
    }
    uint32_t inner = index + 1;
    if (control->first < control->middle)
        status = add_conditional(b, into, edges, control, handles[0], control->first, control->middle, inner);
    while (inner <= index + control->inner && controls[inner].first < control->middle)
        inner++;
    if (status == GPUCC_OK && control->middle < control->end)
        status = add_conditional(b, into, edges, control, handles[1], control->middle, control->end, inner);
    return status;
}

/* Launches [first, end) into one graph; `control`: the first one at or behind `first`. Bounded by
 * BUNDLE_MAX_DEPTH. */
static gpucc_status add_range(const struct building *b, cuda_graph_handle into, uint32_t first, uint32_t end,
                              uint32_t control)
{
    const struct bundle_control *controls =
        &b->context->model->tables.controls[b->context->plan->first_control];
    struct edges edges = {0};
    edges.nodes = calloc((size_t)b->graph->launch_count + 1, sizeof(cuda_node));
    edges.seen = calloc((size_t)b->graph->launch_count + 1, sizeof *edges.seen);
    gpucc_status status = edges.nodes && edges.seen ? GPUCC_OK : no_memory(b);
    for (uint32_t i = first; i < end && status == GPUCC_OK;) {
        if (control < b->context->plan->control_count && controls[control].first == i &&
            controls[control].end <= end) {
            status = add_control(b, into, &edges, control);
            i = controls[control].end;
            control += 1 + controls[control].inner;
        } else {
            status = add_launch(b, into, &edges, i++);
        }
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
    if (context->plan->control_count && (!state->cuda->graph_add_node || !state->cuda->conditional_create))
        status = runtime_fail(error, GPUCC_NO_DEVICE,
                              "the model has loops or branches, which need a driver of CUDA 12.3 or newer");
    else if (!allocate_arrays(context, graph))
        status = runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    for (uint32_t i = 0; i < graph->launch_count && status == GPUCC_OK; i++)
        status = check_launch(context, prepared, i, error);
    if (status == GPUCC_OK && graph->launch_count) {
        init_launches(context, graph);
        status = cuda_done(context, state->cuda->graph_create(&graph->handle, 0), CUDA_NAME(graph_create),
                           "cannot build the launch graph", error);
        if (status == GPUCC_OK)
            status = add_range(&(struct building){context, prepared, graph, error}, graph->handle, 0,
                               graph->launch_count, 0);
        if (status == GPUCC_OK)
            status = cuda_done(context, state->cuda->graph_instantiate(&graph->executable, graph->handle, 0),
                               CUDA_NAME(graph_instantiate), "cannot instantiate the launch graph", error);
        if (status == GPUCC_OK)
            status = cuda_done(context, state->cuda->graph_upload(graph->executable, state->stream),
                               CUDA_NAME(graph_upload), "cannot upload the launch graph", error);
    }
    if (status == GPUCC_OK) {
        context->statistics.graphs_built++;
        *out = graph;
    } else {
        cuda_graph_release(state->cuda, graph);
    }
    return status;
}
