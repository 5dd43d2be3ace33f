/* fold: what is known when compiling becomes a constant.
 *
 *     %1 = Add(%c0, %c1)         ->     weight %1            the interpreter, on results up to fold_limit
 * bytes %2 = Gather(%dims, %i)     ->     %2 = Dims() dims=[s0, 4]     contents known as dims: shape
 * arithmetic vanishes
 *
 * A constant node beyond the limits stays: it is part of the init program (ir/init.h) and runs when the
 * bundle is written. Random nodes never fold. The pass reads constants' bytes; it changes none. */
#include "passes/passes.h"

#include "ir/infer.h"
#include "ir/interp.h"
#include "ir/provenance.h"

#include <string.h>

enum {
    RESULTS_A_LIMIT = 64, /* all folded bytes together: so many times fold_limit */
    INPUTS_A_LIMIT = 4,   /* bytes that one fold may read */
};
static const uint64_t steps_a_node = UINT64_C(1) << 26, steps_in_all = UINT64_C(1) << 29;

struct folder {
    struct pass_context *context;
    struct exprs pool;
    struct diagnostics refusals; /* operators without a Definition: no fault of the model's here */
    uint64_t bytes_left, steps_left;
};

static bool constant_bytes(const struct graph *graph, const struct tensor_type *type, uint64_t *bytes,
                           int64_t *elements)
{
    int64_t sizes[MAX_RANK];
    return type->rank >= 0 && type->rank <= MAX_RANK &&
           tensor_constant_sizes(&graph->dims, type, sizes, elements) &&
           dtype_bytes(type->dtype, *elements, bytes);
}

/* ---- contents
 * ---------------------------------------------------------------------------------------------------- */

static void store_element(unsigned char *at, enum dtype dtype, int64_t value)
{
    const uint64_t bits = (uint64_t)value;
    for (unsigned i = 0; i < dtype_bits(dtype) / 8; i++)
        at[i] = (unsigned char)(bits >> (8 * i));
}

static const struct blob *blob_of_bytes(struct graph *graph, const unsigned char *bytes, uint64_t length)
{
    struct blob *blob = arena_new(graph->arena, struct blob);
    *blob = (struct blob){.kind = BLOB_MEMORY, .length = length, .bytes = bytes, .fd = -1};
    return blob;
}

/* The value becomes a constant in its own place: every use of it holds. */
static void become_constant(struct graph *graph, value_id id, const struct blob *blob)
{
    struct value *value = graph_value(graph, id);
    graph_record_fold(graph, id, value->producer);
    value->kind = VALUE_CONSTANT;
    value->blob = blob;
    value->producer = 0;
    value->index = 0;
}

/* A size that the model computes is known: sizes of the values behind it follow. */
static bool settle_words(struct folder *folder, value_id id, const struct location *location)
{
    struct graph *graph = folder->context->graph;
    if (!graph_is_word(graph, id))
        return true;
    if (!graph_settle_words(graph, id)) {
        diag_error(folder->context->diagnostics, DIAG_wrong_shape, location,
                   "a size that it computes is outside of what the model allows");
        return false;
    }
    graph_freeze(graph, id, location, "a size");
    return infer_refresh_graph(graph, folder->context->diagnostics);
}

static bool fold_known_contents(struct folder *folder, value_id id)
{
    struct graph *graph = folder->context->graph;
    const struct value *value = graph_value(graph, id);
    uint64_t bytes;
    int64_t elements;
    if (!value->contents || !constant_bytes(graph, &value->type, &bytes, &elements) ||
        elements != value->content_count || dtype_bits(value->type.dtype) < 8)
        return false;
    if (!dtype_is_integer(value->type.dtype) && value->type.dtype != DTYPE_BOOL)
        return false;
    unsigned char *data = arena_alloc(graph->arena, (size_t)bytes);
    for (uint32_t i = 0; i < value->content_count; i++) {
        int64_t number;
        if (!value->contents[i] || !dim_is_constant(&graph->dims, value->contents[i], &number))
            return false;
        store_element(data + i * (dtype_bits(value->type.dtype) / 8), value->type.dtype, number);
    }
    become_constant(graph, id, blob_of_bytes(graph, data, bytes));
    return true;
}

/* Contents that hang on symbols: the node becomes Dims, which reads no tensor. */
static bool fold_symbolic_contents(struct folder *folder, node_id id)
{
    struct graph *graph = folder->context->graph;
    struct node *node = graph_node(graph, id);
    const struct value *value = graph_value(graph, node->outputs[0]);
    int64_t sizes[MAX_RANK], elements;
    if (node->op == OP_Dims || !value->contents || value->type.dtype != DTYPE_I64 || value->type.rank > 1 ||
        !tensor_constant_sizes(&graph->dims, &value->type, sizes, &elements) ||
        elements != value->content_count)
        return false;
    dim *dims = arena_new_array(graph->arena, dim, value->content_count);
    for (uint32_t i = 0; i < value->content_count; i++) {
        if (!value->contents[i])
            return false;
        dims[i] = value->contents[i];
    }
    const struct attribute attribute = attribute_dims(ATTR_dims, value->content_count, dims);
    graph_freeze_inputs(graph, id, "a size");
    node = graph_node(graph, id);
    node->op = OP_Dims;
    node->input_count = 0;
    node->attribute_count = 0;
    node_set_attribute(graph, id, &attribute);
    return true;
}

/* ---- evaluation
 * -------------------------------------------------------------------------------------------------- */

struct fold {
    struct definition definition;
    value_id values[MAX_BUFFERS]; /* behind the input and output buffers */
    uint64_t bytes[MAX_BUFFERS];
    uint32_t count, inputs;
};

static bool add_value(struct folder *folder, struct fold *fold, value_id value)
{
    int64_t elements;
    if (!value)
        return true;
    if (fold->count == MAX_BUFFERS ||
        !constant_bytes(folder->context->graph, &graph_value(folder->context->graph, value)->type,
                        &fold->bytes[fold->count], &elements))
        return false;
    fold->values[fold->count++] = value;
    return true;
}

/* Constant inputs, results within the limits, and a Definition. */
static bool prepare_fold(struct folder *folder, node_id id, struct fold *fold)
{
    const struct graph *graph = folder->context->graph;
    const struct node *node = graph_node(graph, id);
    if (node->body_count || !node->output_count || (op_facts(node->op)->traits & OP_RANDOM))
        return false;
    uint64_t read = 0, written = 0;
    fold->count = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] && graph_value(graph, node->inputs[i])->kind != VALUE_CONSTANT)
            return false;
        if (!add_value(folder, fold, node->inputs[i]))
            return false;
    }
    fold->inputs = fold->count;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (!add_value(folder, fold, node->outputs[i]))
            return false;
    const uint64_t limit = folder->context->fold_limit;
    for (uint32_t i = 0; i < fold->count; i++) {
        uint64_t *sum = i < fold->inputs ? &read : &written;
        if (fold->bytes[i] > limit * INPUTS_A_LIMIT || (i >= fold->inputs && fold->bytes[i] > limit))
            return false;
        *sum += fold->bytes[i];
    }
    if (read > limit * INPUTS_A_LIMIT || written > folder->bytes_left)
        return false;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        for (uint32_t k = 0; node->attributes[i].kind == ATTR_DIMS && k < node->attributes[i].count; k++) {
            int64_t number;
            if (!dim_is_constant(&graph->dims, node->attributes[i].dims[k], &number))
                return false;
        }
    return define_node(graph, id, &folder->pool, &folder->refusals, &fold->definition) &&
           fold->definition.buffers.count <= MAX_BUFFERS;
}

/* False: an input's file cannot be read (reported). *folded says whether the results are there. */
static bool evaluate(struct folder *folder, const struct fold *fold, const struct location *location,
                     unsigned char **results, bool *folded)
{
    struct graph *graph = folder->context->graph;
    const struct allocator *allocator = folder->context->scratch->allocator;
    void *memory[MAX_BUFFERS] = {0};
    bool readable = true, ready = true;
    for (uint32_t i = 0; i < fold->count && ready; i++) {
        if (i >= fold->inputs) {
            memory[i] = results[i];
            continue;
        }
        memory[i] = allocator->allocate(allocator->user, (size_t)fold->bytes[i] + 1);
        ready = memory[i] != NULL;
        if (!ready)
            break;
        readable = blob_read(graph_value(graph, fold->values[i])->blob, 0, memory[i], (size_t)fold->bytes[i]);
        ready = readable;
    }
    if (ready) {
        const uint64_t steps = folder->steps_left < steps_a_node ? folder->steps_left : steps_a_node;
        const struct interp_limits limits = {.steps = steps, .bytes = folder->context->fold_limit * 16};
        const enum interp_status status =
            steps ? interpret(&fold->definition, NULL, memory, &limits, allocator) : INTERP_STEPS;
        *folded = status == INTERP_DONE;
        if (status == INTERP_STEPS)
            folder->steps_left -= steps;
    }
    for (uint32_t i = 0; i < fold->inputs; i++)
        if (memory[i])
            allocator->release(allocator->user, memory[i], (size_t)fold->bytes[i] + 1);
    if (!readable)
        diag_error(folder->context->diagnostics, DIAG_external_data, location,
                   "a constant's data cannot be read");
    return readable;
}

static bool fold_node(struct folder *folder, node_id id)
{
    struct graph *graph = folder->context->graph;
    struct fold fold;
    unsigned char *results[MAX_BUFFERS];
    bool folded = false;
    if (!prepare_fold(folder, id, &fold))
        return true;
    for (uint32_t i = fold.inputs; i < fold.count; i++)
        results[i] = arena_alloc(graph->arena, (size_t)fold.bytes[i]);
    if (!evaluate(folder, &fold, graph_node(graph, id)->location, results, &folded))
        return false;
    if (!folded)
        return true;
    for (uint32_t i = fold.inputs; i < fold.count; i++) {
        folder->bytes_left -= fold.bytes[i];
        become_constant(graph, fold.values[i], blob_of_bytes(graph, results[i], fold.bytes[i]));
    }
    const struct location *location = graph_node(graph, id)->location;
    graph_remove_node(graph, id);
    folder->context->changes++;
    for (uint32_t i = fold.inputs; i < fold.count; i++)
        if (!settle_words(folder, fold.values[i], location))
            return false;
    return true;
}

static bool visit(struct folder *folder, node_id id)
{
    struct graph *graph = folder->context->graph;
    const struct node *node = graph_node(graph, id);
    if (node->removed)
        return true;
    if (node->output_count == 1 && !node->body_count && !(op_facts(node->op)->traits & OP_RANDOM) &&
        !graph_is_word(graph, node->outputs[0])) {
        if (fold_known_contents(folder, node->outputs[0])) {
            graph_remove_node(graph, id);
            folder->context->changes++;
            return true;
        }
        if (fold_symbolic_contents(folder, id)) {
            folder->context->changes++;
            return true;
        }
    }
    return fold_node(folder, id);
}

bool pass_fold(struct pass_context *context)
{
    struct graph *graph = context->graph;
    struct folder folder = {
        .context = context,
        .bytes_left = context->fold_limit * RESULTS_A_LIMIT,
        .steps_left = steps_in_all,
    };
    exprs_init(&folder.pool, context->scratch, &graph->dims);
    diagnostics_init(&folder.refusals, context->scratch, context->diagnostics->file);
    for (region_id r = 1; r < graph->regions.count; r++)
        for (uint32_t i = 0; i < graph->regions.items[r].nodes.count; i++)
            if (!visit(&folder, graph->regions.items[r].nodes.items[i]))
                return false;
    graph_sweep(graph);
    return true;
}
