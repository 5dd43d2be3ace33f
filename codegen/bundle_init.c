/* The init program at work: gives the bytes of a constant. An initialiser that is stored as it is streams
 * through in pieces. A computed one runs the nodes that it hangs on, in order, and gives each value back
 * after its last use; a repacked one runs its recipe behind that. Memory does not grow with a weight: what
 * passes HELD_BYTES is read from the model, or computed into a nameless file beside the output, through the
 * interpreter's pages. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "codegen/bundle_internal.h"
#include "ir/interp.h"

#define HELD_BYTES (UINT64_C(32) << 20) /* of all values of an evaluation that are in memory at once */

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

/* ---- storage
 * ------------------------------------------------------------------------------------------------------- */

/* A value's elements: in memory, or behind storage. */
struct held {
    void *memory;
    uint64_t bytes;
    bool stored;
    struct interp_storage storage;
};

struct spill_region { /* of the spill file */
    struct bundle_writer *writer;
    uint64_t offset;
};

static bool region_read(void *user, uint64_t at, void *data, size_t bytes)
{
    const struct spill_region *region = user;
    return file_read_at(region->writer->spill, region->offset + at, data, bytes);
}

static bool region_write(void *user, uint64_t at, const void *data, size_t bytes)
{
    const struct spill_region *region = user;
    return file_write_at(region->writer->spill, region->offset + at, data, bytes);
}

/* Zeros, in the spill file. */
static bool spill_take(void *user, uint64_t bytes, struct interp_storage *out)
{
    struct bundle_writer *writer = user;
    const uint64_t end = (writer->spilled + bytes + BUNDLE_PAGE - 1) / BUNDLE_PAGE * BUNDLE_PAGE;
    if (writer->spill < 0 && !scratch_open(writer->arena, writer->path, &writer->spill))
        return false;
    if (ftruncate(writer->spill, (off_t)end) != 0)
        return false;
    struct spill_region *region = arena_new(&writer->scratch, struct spill_region);
    *region = (struct spill_region){writer, writer->spilled};
    *out = (struct interp_storage){region_read, region_write, region};
    writer->spilled = end;
    return true;
}

struct source { /* a constant of the model */
    struct bundle_writer *writer;
    const struct value *value;
};

static bool source_read(void *user, uint64_t at, void *data, size_t bytes)
{
    const struct source *source = user;
    if (blob_read(source->value->blob, at, data, bytes))
        return true;
    source->writer->unread = source->value;
    return false;
}

static bool storage_failed(struct bundle_writer *writer)
{
    if (writer->unread)
        return unreadable(writer, writer->unread);
    diag_error(writer->diagnostics, DIAG_output_unwritable, NULL,
               "cannot write a weight that is being computed: %s", strerror(errno));
    return false;
}

/* Room for a result: memory while there is some to spare. */
static bool make_room(struct bundle_writer *writer, uint64_t *in_memory, uint64_t bytes, struct held *out)
{
    *out = (struct held){.bytes = bytes};
    if (bytes <= HELD_BYTES - *in_memory) {
        out->memory = bundle_hold(writer, bytes);
        *in_memory += out->memory ? bytes : 0;
        return out->memory != NULL;
    }
    out->stored = spill_take(writer, bytes, &out->storage);
    return out->stored || storage_failed(writer);
}

static void give_up(struct bundle_writer *writer, uint64_t *in_memory, struct held *held)
{
    if (held->memory) {
        bundle_drop(writer, held->memory);
        *in_memory -= held->bytes;
    }
    *held = (struct held){0};
}

static struct interp_buffer buffer_of(const struct held *held)
{
    return (struct interp_buffer){held->memory, held->stored ? &held->storage : NULL};
}

/* ---- values that nodes compute
 * ------------------------------------------------------------------------------------- */

struct evaluation {
    struct bundle_writer *writer;
    const struct graph *graph;
    VEC(node_id) order;    /* nodes that are needed, producers first */
    unsigned char *listed; /* [node] */
    uint32_t *uses;        /* [value]: that are still to come */
    struct held *values;   /* [value] */
    uint64_t in_memory;
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

/* The value: already computed, or a constant of the model. */
static bool load_value(struct evaluation *e, value_id id)
{
    const struct value *value = graph_value(e->graph, id);
    struct held *held = &e->values[id];
    uint64_t bytes;
    if (held->memory || held->stored)
        return true;
    if (value->kind != VALUE_CONSTANT) {
        diag_error(e->writer->diagnostics, DIAG_internal, NULL,
                   "a constant of the plan hangs on a value of run time");
        return false;
    }
    if (!value_bytes(e->writer, id, &bytes))
        return false;
    if (bytes > (HELD_BYTES - e->in_memory) / 2) {
        struct source *source = arena_new(&e->writer->scratch, struct source);
        *source = (struct source){e->writer, value};
        *held = (struct held){.bytes = bytes, .stored = true, .storage = {source_read, NULL, source}};
        return true;
    }
    return make_room(e->writer, &e->in_memory, bytes, held) &&
           (blob_read(value->blob, 0, held->memory, (size_t)bytes) || unreadable(e->writer, value));
}

static bool run_definition(struct bundle_writer *writer, const struct definition *definition,
                           const struct interp_buffer *buffers, const struct location *location)
{
    const struct interp_limits limits = {.steps = 0, .bytes = UINT64_C(1) << 40};
    const struct interp_spill spill = {.held = HELD_BYTES, .take = spill_take, .user = writer};
    enum interp_status status =
        interpret_stored(definition, NULL, buffers, &spill, &limits, writer->arena->allocator);
    if (status == INTERP_DONE)
        return true;
    if (status == INTERP_STORAGE)
        return storage_failed(writer);
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
    struct interp_buffer buffers[MAX_BUFFERS] = {{0}};
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
        buffers[count++] = buffer_of(&e->values[node->inputs[i]]);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        value_id output = node->outputs[i];
        if (!output)
            continue;
        if (!value_bytes(e->writer, output, &bytes) ||
            !make_room(e->writer, &e->in_memory, bytes, &e->values[output]))
            return false;
        buffers[count++] = buffer_of(&e->values[output]);
    }
    if (!run_definition(e->writer, &definition, buffers, node->location))
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] && --e->uses[node->inputs[i]] == 0)
            give_up(e->writer, &e->in_memory, &e->values[node->inputs[i]]);
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] && !e->uses[node->outputs[i]])
            give_up(e->writer, &e->in_memory, &e->values[node->outputs[i]]);
    return true;
}

/* The value, computed; false: reported. */
static bool find_value(struct evaluation *e, value_id target)
{
    struct arena *scratch = &e->writer->scratch;
    e->listed = arena_alloc(scratch, e->graph->nodes.count);
    e->uses = arena_new_array(scratch, uint32_t, e->graph->values.count);
    e->values = arena_new_array(scratch, struct held, e->graph->values.count);
    e->uses[target] = 1;
    if (graph_value(e->graph, target)->kind == VALUE_RESULT)
        list_nodes(e, target);
    for (uint32_t i = 0; i < e->order.count; i++)
        if (!run_node(e, e->order.items[i]))
            return false;
    return load_value(e, target);
}

/* ---- constants
 * ----------------------------------------------------------------------------------------------------- */

static bool stream(struct bundle_writer *writer, const struct held *held, const struct weight_sink *sink)
{
    unsigned char *piece = held->stored ? arena_alloc(&writer->scratch, BUNDLE_PIECE) : NULL;
    for (uint64_t at = 0; at < held->bytes; at += BUNDLE_PIECE) {
        const size_t bytes = held->bytes - at < BUNDLE_PIECE ? (size_t)(held->bytes - at) : BUNDLE_PIECE;
        if (held->stored && !held->storage.read(held->storage.user, at, piece, bytes))
            return storage_failed(writer);
        if (!sink->put(sink->user, at, held->stored ? piece : (unsigned char *)held->memory + at, bytes))
            return false;
    }
    return true;
}

static bool run_recipe(struct evaluation *e, const struct bundle_weight *weight, struct held *value)
{
    const struct definition *recipe = weight->constant.recipe;
    struct held packed;
    if (!make_room(e->writer, &e->in_memory, weight->bytes, &packed))
        return false;
    struct interp_buffer buffers[MAX_BUFFERS] = {buffer_of(value), buffer_of(&packed)};
    const bool good =
        recipe->buffers.count <= MAX_BUFFERS && run_definition(e->writer, recipe, buffers, NULL);
    give_up(e->writer, &e->in_memory, value);
    *value = packed;
    return good;
}

static bool evaluate(struct bundle_writer *writer, const struct bundle_weight *weight,
                     const struct weight_sink *sink)
{
    struct evaluation e = {.writer = writer, .graph = writer->inputs->graph};
    const value_id target = weight->constant.value;
    const struct value *value = graph_value(e.graph, target);
    struct source source = {writer, value};
    struct held held = {.bytes = weight->bytes, .stored = true, .storage = {source_read, NULL, &source}};
    if (value->kind != VALUE_CONSTANT || weight->constant.recipe) {
        if (!find_value(&e, target))
            return false;
        held = e.values[target];
        if (weight->constant.recipe && !run_recipe(&e, weight, &held))
            return false;
    }
    if (held.bytes != weight->bytes ||
        (held.stored && held.storage.user == &source && value->blob->length != weight->bytes)) {
        diag_error(writer->diagnostics, DIAG_internal, NULL,
                   "a constant of the plan has another size than its data");
        return false;
    }
    const bool done = stream(writer, &held, sink);
    give_up(writer, &e.in_memory, &held);
    return done;
}

bool bundle_evaluate(struct bundle_writer *writer, const struct bundle_weight *weight,
                     const struct weight_sink *sink)
{
    bool done = evaluate(writer, weight, sink);
    arena_release(&writer->scratch);
    writer->spilled = 0;
    return done && (writer->spill < 0 || ftruncate(writer->spill, 0) == 0 || storage_failed(writer));
}
