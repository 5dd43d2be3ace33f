/* The init program at work: gives the bytes of a constant. An initialiser that is stored as it is streams
 * through in pieces. A computed one runs the nodes that it hangs on, in order, and gives each value back
 * after its last use; a repacked one runs its recipe behind that. So one constant is in memory at a time,
 * with what it is made of. */
#include <string.h>

#include "codegen/bundle_internal.h"
#include "ir/interp.h"

enum { PIECE = 1 << 20 };

void *bundle_hold(struct bundle_writer *writer, uint64_t bytes)
{
    const struct allocator *allocator = writer->arena->allocator;
    uint32_t slot = 0;
    while (slot < writer->held.count && writer->held.items[slot].memory)
        slot++;
    if (slot == writer->held.count)
        vec_push(writer->arena, &writer->held, ((struct bundle_held){0}));
    void *memory = bytes < SIZE_MAX ? allocator->allocate(allocator->user, (size_t)bytes + 1) : NULL;
    if (!memory) {
        diag_error(writer->diagnostics, DIAG_out_of_memory, NULL, "no %llu bytes to compute a weight",
                   (unsigned long long)bytes);
        return NULL;
    }
    writer->held.items[slot] = (struct bundle_held){memory, (size_t)bytes + 1};
    return memory;
}

void bundle_drop(struct bundle_writer *writer, const void *memory)
{
    const struct allocator *allocator = writer->arena->allocator;
    for (uint32_t i = 0; i < writer->held.count && memory; i++)
        if (writer->held.items[i].memory == memory) {
            allocator->release(allocator->user, writer->held.items[i].memory, writer->held.items[i].bytes);
            writer->held.items[i].memory = NULL;
            return;
        }
}

static bool unreadable(struct bundle_writer *writer, const struct value *value)
{
    diag_error(writer->diagnostics, DIAG_file_unreadable, NULL, "the data of weight %s cannot be read",
               diag_quote(writer->diagnostics, value->weight_name ? value->weight_name : "(unnamed)"));
    return false;
}

static bool value_bytes(struct bundle_writer *writer, value_id id, uint64_t *bytes)
{
    const struct graph *graph = writer->inputs->graph;
    const struct value *value = graph_value(graph, id);
    int64_t sizes[MAX_RANK], elements;
    if (tensor_constant_sizes(&graph->dims, &value->type, sizes, &elements) &&
        dtype_bytes(value->type.dtype, elements, bytes))
        return true;
    diag_error(writer->diagnostics, DIAG_internal, NULL, "a constant of the plan has no constant size");
    return false;
}

/* ---- values that nodes compute
 * ------------------------------------------------------------------------------------- */

struct evaluation {
    struct bundle_writer *writer;
    const struct graph *graph;
    VEC(node_id) order;    /* nodes that are needed, producers first */
    unsigned char *listed; /* [node]: 1 on the stack, 2 in `order` */
    uint32_t *uses;        /* [value]: that are still to come */
    void **memory;         /* [value] */
};

/* Producers before users, without recursion: a node is looked at until all of its inputs are listed. */
static void list_nodes(struct evaluation *e, value_id target)
{
    struct arena *arena = &e->writer->scratch;
    VEC(node_id) stack = {0};
    vec_push(arena, &stack, graph_value(e->graph, target)->producer);
    while (stack.count) {
        node_id id = stack.items[stack.count - 1];
        const struct node *node = graph_node(e->graph, id);
        bool waits = false;
        for (uint32_t i = 0; i < node->input_count && !e->listed[id]; i++) {
            const struct value *input = graph_value(e->graph, node->inputs[i]);
            if (node->inputs[i] && input->kind == VALUE_RESULT && !e->listed[input->producer]) {
                vec_push(arena, &stack, input->producer);
                waits = true;
            }
        }
        if (waits)
            continue;
        stack.count--;
        if (e->listed[id])
            continue;
        e->listed[id] = 1;
        vec_push(arena, &e->order, id);
        for (uint32_t i = 0; i < node->input_count; i++)
            e->uses[node->inputs[i]]++;
    }
}

/* The value's bytes: already computed, or read from the model. */
static bool load_value(struct evaluation *e, value_id id)
{
    const struct value *value = graph_value(e->graph, id);
    uint64_t bytes;
    if (e->memory[id])
        return true;
    if (value->kind != VALUE_CONSTANT) {
        diag_error(e->writer->diagnostics, DIAG_internal, NULL,
                   "a constant of the plan hangs on a value of run time");
        return false;
    }
    if (!value_bytes(e->writer, id, &bytes) || !(e->memory[id] = bundle_hold(e->writer, bytes)))
        return false;
    return blob_read(value->blob, 0, e->memory[id], (size_t)bytes) || unreadable(e->writer, value);
}

static void release_value(struct evaluation *e, value_id id)
{
    bundle_drop(e->writer, e->memory[id]);
    e->memory[id] = NULL;
}

static bool run_definition(struct bundle_writer *writer, const struct definition *definition,
                           void *const *buffers, const struct location *location)
{
    const struct interp_limits limits = {.steps = 0, .bytes = UINT64_C(1) << 40};
    enum interp_status status = interpret(definition, NULL, buffers, &limits, writer->arena->allocator);
    if (status == INTERP_DONE)
        return true;
    if (status == INTERP_MEMORY)
        diag_error(writer->diagnostics, DIAG_out_of_memory, location, "no memory to compute a weight");
    else
        diag_error(writer->diagnostics, DIAG_unsupported_case, location,
                   "its result on constants cannot be computed: an index is out of range");
    return false;
}

static bool run_node(struct evaluation *e, node_id id)
{
    const struct node *node = graph_node(e->graph, id);
    struct exprs pool;
    struct definition definition;
    void *buffers[MAX_BUFFERS] = {0};
    uint32_t count = 0;
    uint64_t bytes;
    exprs_init(&pool, &e->writer->scratch, &e->writer->inputs->graph->dims);
    if (!define_node(e->graph, id, &pool, e->writer->diagnostics, &definition))
        return false;
    if (definition.buffers.count > MAX_BUFFERS || node->input_count + node->output_count > MAX_BUFFERS) {
        diag_error(e->writer->diagnostics, DIAG_limit_exceeded, node->location,
                   "it has too many inputs and outputs");
        return false;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!node->inputs[i])
            continue;
        if (!load_value(e, node->inputs[i]))
            return false;
        buffers[count++] = e->memory[node->inputs[i]];
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        value_id output = node->outputs[i];
        if (!output)
            continue;
        if (!value_bytes(e->writer, output, &bytes) || !(e->memory[output] = bundle_hold(e->writer, bytes)))
            return false;
        buffers[count++] = e->memory[output];
    }
    if (!run_definition(e->writer, &definition, buffers, node->location))
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] && --e->uses[node->inputs[i]] == 0)
            release_value(e, node->inputs[i]);
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] && !e->uses[node->outputs[i]])
            release_value(e, node->outputs[i]);
    return true;
}

/* The value in memory of bundle_hold; NULL: reported. */
static void *value_in_memory(struct bundle_writer *writer, value_id target)
{
    struct evaluation e = {.writer = writer, .graph = writer->inputs->graph};
    e.listed = arena_alloc(&writer->scratch, e.graph->nodes.count);
    e.uses = arena_new_array(&writer->scratch, uint32_t, e.graph->values.count);
    e.memory = arena_new_array(&writer->scratch, void *, e.graph->values.count);
    e.uses[target] = 1;
    if (graph_value(e.graph, target)->kind == VALUE_RESULT)
        list_nodes(&e, target);
    for (uint32_t i = 0; i < e.order.count; i++)
        if (!run_node(&e, e.order.items[i]))
            return NULL;
    return load_value(&e, target) ? e.memory[target] : NULL;
}

/* ---- constants
 * ----------------------------------------------------------------------------------------------------- */

static bool stream_blob(struct bundle_writer *writer, const struct bundle_weight *weight,
                        const struct weight_sink *sink)
{
    const struct value *value = graph_value(writer->inputs->graph, weight->constant.value);
    unsigned char *piece = arena_alloc(&writer->scratch, PIECE);
    if (value->blob->length != weight->bytes) {
        diag_error(writer->diagnostics, DIAG_internal, NULL,
                   "a constant of the plan has another size than its data");
        return false;
    }
    for (uint64_t at = 0; at < weight->bytes; at += PIECE) {
        size_t bytes = weight->bytes - at < PIECE ? (size_t)(weight->bytes - at) : PIECE;
        if (!blob_read(value->blob, at, piece, bytes))
            return unreadable(writer, value);
        if (!sink->put(sink->user, at, piece, bytes))
            return false;
    }
    return true;
}

static bool evaluate(struct bundle_writer *writer, const struct bundle_weight *weight,
                     const struct weight_sink *sink)
{
    const struct value *value = graph_value(writer->inputs->graph, weight->constant.value);
    const struct definition *recipe = weight->constant.recipe;
    uint64_t bytes;
    if (value->kind == VALUE_CONSTANT && !recipe)
        return stream_blob(writer, weight, sink);
    if (!value_bytes(writer, weight->constant.value, &bytes))
        return false;
    void *memory = value_in_memory(writer, weight->constant.value);
    if (memory && recipe) {
        void *buffers[MAX_BUFFERS] = {memory, bundle_hold(writer, weight->bytes)};
        bool good = buffers[1] && recipe->buffers.count <= MAX_BUFFERS &&
                    run_definition(writer, recipe, buffers, NULL);
        bundle_drop(writer, memory);
        memory = good ? buffers[1] : NULL;
    } else if (memory && bytes != weight->bytes) {
        diag_error(writer->diagnostics, DIAG_internal, NULL,
                   "a constant of the plan has another size than its value");
        return false;
    }
    bool done = memory && sink->put(sink->user, 0, memory, (size_t)weight->bytes);
    bundle_drop(writer, memory);
    return done;
}

bool bundle_evaluate(struct bundle_writer *writer, const struct bundle_weight *weight,
                     const struct weight_sink *sink)
{
    bool done = evaluate(writer, weight, sink);
    arena_release(&writer->scratch);
    return done;
}
