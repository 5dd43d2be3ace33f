/* Contents: the elements of small tensors as dims. Constants are read, graph inputs that feed a shape become
 * host inputs whose elements are symbols, and results follow from their inputs by symbolic execution of the
 * Definition. What is left of shape arithmetic in the end becomes Dims and constants. */
#include "ir/definition.h"
#include "ir/infer_internal.h"
#include "ir/interp.h"
#include "ir/provenance.h"

#include <string.h>

enum { MAX_BEHIND = 512, MAX_WORDS = 16 /* of one value */ };

static bool small_type(const struct infer *infer, const struct tensor_type *type, int64_t *elements)
{
    const bool computes = dtype_is_integer(type->dtype) || type->dtype == DTYPE_BOOL ||
                          type->dtype == DTYPE_F32 || type->dtype == DTYPE_F64 || type->dtype == DTYPE_F16 ||
                          type->dtype == DTYPE_BF16;
    return computes && tensor_constant_sizes(&infer->graph->dims, type, NULL, elements) &&
           *elements <= MAX_CONTENTS;
}

static bool all_known(const dim *contents, uint32_t count)
{
    for (uint32_t i = 0; contents && i < count; i++)
        if (contents[i] == DIM_NONE)
            return false;
    return contents != NULL;
}

/* ---- sources
 * ----------------------------------------------------------------------------------------------------- */

/* A float's value when it is integral. */
static dim float_element(struct infer *infer, enum dtype dtype, const unsigned char *data)
{
    float single;
    double number;
    if (dtype == DTYPE_F32) {
        memcpy(&single, data, sizeof single);
        number = (double)single;
    } else {
        memcpy(&number, data, sizeof number);
    }
    const bool integral = number > -0x1p53 && number < 0x1p53 && (double)(int64_t)number == number;
    return integral ? dim_constant(&infer->graph->dims, (int64_t)number) : DIM_NONE;
}

static void read_constant(struct infer *infer, value_id id, uint32_t count)
{
    struct value *value = graph_value(infer->graph, id);
    dim contents[MAX_CONTENTS];
    bool any = count == 0;
    if (value->type.dtype == DTYPE_F32 || value->type.dtype == DTYPE_F64) {
        unsigned char data[MAX_CONTENTS * 8];
        const unsigned bytes = dtype_bits(value->type.dtype) / 8;
        if (!value->blob || !blob_read(value->blob, 0, data, (size_t)bytes * count))
            return;
        for (uint32_t i = 0; i < count; i++) {
            contents[i] = float_element(infer, value->type.dtype, data + i * bytes);
            any = any || contents[i] != DIM_NONE;
        }
    } else {
        int64_t elements[MAX_CONTENTS];
        uint32_t read;
        if (!value_constant_ints(infer->graph, id, elements, MAX_CONTENTS, &read) || read != count)
            return;
        for (uint32_t i = 0; i < count; i++)
            contents[i] = dim_constant(&infer->graph->dims, elements[i]);
        any = true;
    }
    if (!any)
        return;
    value->contents = arena_copy(infer->graph->arena, contents, count * sizeof *contents);
    value->content_count = count;
}

const dim *infer_value_contents(struct infer *infer, value_id id, uint32_t *count)
{
    const struct value *value = graph_value(infer->graph, id);
    int64_t elements;
    if (!value->contents && value->kind == VALUE_CONSTANT && small_type(infer, &value->type, &elements))
        read_constant(infer, id, (uint32_t)elements);
    *count = value->content_count;
    return value->contents;
}

/* The input's elements are symbols: it is read on the host. They have no name: equal names are merged. */
static void become_host_input(struct infer *infer, value_id id, uint32_t count)
{
    const struct value *value = graph_value(infer->graph, id);
    dim contents[MAX_CONTENTS];
    for (uint32_t i = 0; i < count; i++)
        contents[i] = dim_symbol(&infer->graph->dims, &(struct symbol){.source = SYMBOL_INPUT_VALUE,
                                                                       .input = value->index,
                                                                       .axis = i,
                                                                       .low = 0,
                                                                       .high = INT64_MAX >> 16,
                                                                       .hint = 1});
    graph_value(infer->graph, id)->contents =
        arena_copy(infer->graph->arena, contents, count * sizeof *contents);
    graph_value(infer->graph, id)->content_count = count;
}

/* ---- results
 * ----------------------------------------------------------------------------------------------------- */

/* The inputs' contents by buffer. False: none is known, or one is too large for it to matter. */
static bool collect_contents(struct infer *infer, node_id node, const dim *contents[MAX_BUFFERS])
{
    bool any = false;
    for (uint32_t i = 0; i < graph_node(infer->graph, node)->input_count; i++) {
        const value_id id = graph_node(infer->graph, node)->inputs[i];
        int64_t elements;
        uint32_t count;
        if (id == 0)
            continue;
        if (!small_type(infer, &graph_value(infer->graph, id)->type, &elements))
            return false;
        (void)infer_refresh_value(infer->graph, id);
        const dim *known = infer_value_contents(infer, id, &count);
        const int buffer = definition_input(infer->graph, node, i);
        if (buffer >= 0 && buffer < MAX_BUFFERS && known) {
            contents[buffer] = known;
            any = true;
        }
    }
    return any;
}

/* The Definition of a small node and the buffer of its result. A node without one is reported by those who
 * need it. */
static bool small_definition(struct infer *infer, node_id node, struct definition *definition,
                             uint32_t *output)
{
    struct diagnostics ignored;
    if (!infer->pool) {
        infer->pool = arena_new(infer->graph->arena, struct exprs);
        exprs_init(infer->pool, infer->graph->arena, &infer->graph->dims);
    }
    *definition = (struct definition){.pool = infer->pool};
    diagnostics_init(&ignored, infer->graph->arena, "");
    if (!define_node(infer->graph, node, infer->pool, &ignored, definition))
        return false;
    for (*output = 0; *output < definition->buffers.count; ++*output)
        if (definition->buffers.items[*output].role == BUFFER_OUTPUT)
            return true;
    return false;
}

/* The node's result is a constant with these elements from now on. */
static void become_constant(struct infer *infer, node_id node, struct value *value, const void *bytes,
                            uint64_t length)
{
    struct blob *blob = arena_new(infer->graph->arena, struct blob);
    *blob = (struct blob){.kind = BLOB_MEMORY, .length = length, .fd = -1};
    blob->bytes = arena_copy(infer->graph->arena, bytes, (size_t)length);
    graph_record_fold(infer->graph, (value_id)(value - infer->graph->values.items), node);
    value->kind = VALUE_CONSTANT;
    value->blob = blob;
    value->producer = 0;
    value->index = 0;
    graph_remove_node(infer->graph, node);
}

void infer_find_contents(struct infer *infer, node_id node)
{
    const struct node *n = graph_node(infer->graph, node);
    const dim *contents[MAX_BUFFERS] = {NULL};
    dim known[MAX_CONTENTS] = {DIM_NONE};
    int64_t elements;
    if (n->op == OP_Dims || n->output_count != 1 || (op_facts(n->op)->traits & OP_ANCHOR) ||
        n->input_count >= MAX_BUFFERS)
        return;
    const value_id result = n->outputs[0];
    if (!small_type(infer, &graph_value(infer->graph, result)->type, &elements) ||
        all_known(graph_value(infer->graph, result)->contents,
                  graph_value(infer->graph, result)->content_count) ||
        !collect_contents(infer, node, contents))
        return;
    struct definition definition;
    uint32_t output;
    if (!small_definition(infer, node, &definition, &output) ||
        !interpret_symbolic(&definition, contents, output, known, (uint32_t)elements))
        return;
    struct value *value = graph_value(infer->graph, result);
    value->contents = arena_copy(infer->graph->arena, known, (size_t)elements * sizeof *known);
    value->content_count = (uint32_t)elements;
}

/* ---- on demand
 * --------------------------------------------------------------------------------------------------- */

struct behind {
    value_id ids[MAX_BEHIND]; /* what was reached, in the order of arrival */
    bool done[MAX_BEHIND];
    uint32_t count;
};

static void reach(struct infer *infer, struct behind *behind, value_id id)
{
    const struct value *value = graph_value(infer->graph, id);
    int64_t elements;
    if (id == 0 || behind->count == MAX_BEHIND || value->kind == VALUE_CONSTANT ||
        !small_type(infer, &value->type, &elements) || all_known(value->contents, value->content_count))
        return;
    for (uint32_t i = 0; i < behind->count; i++)
        if (behind->ids[i] == id)
            return;
    behind->ids[behind->count++] = id;
}

static void reach_all(struct infer *infer, struct behind *behind, value_id id)
{
    reach(infer, behind, id);
    for (uint32_t i = 0; i < behind->count; i++) {
        const struct value *value = graph_value(infer->graph, behind->ids[i]);
        if (value->kind != VALUE_RESULT)
            continue;
        const struct node *node = graph_node(infer->graph, value->producer);
        for (uint32_t k = 0; k < node->input_count; k++)
            reach(infer, behind, node->inputs[k]);
    }
}

/* The result of constants alone, floats that are no whole numbers included, becomes a constant. */
static void fold_constants(struct infer *infer, node_id node, value_id result)
{
    const struct node *n = graph_node(infer->graph, node);
    const struct interp_limits limits = {.steps = 1 << 20, .bytes = 1 << 20};
    void *buffers[MAX_BUFFERS] = {NULL};
    struct definition definition;
    uint32_t output;
    for (uint32_t i = 0; i < n->input_count; i++) {
        const struct value *input = graph_value(infer->graph, n->inputs[i]);
        const int buffer = definition_input(infer->graph, node, i);
        int64_t elements;
        if (n->inputs[i] == 0)
            continue;
        if (input->kind != VALUE_CONSTANT || !input->blob || !small_type(infer, &input->type, &elements) ||
            buffer < 0 || buffer >= MAX_BUFFERS)
            return;
        buffers[buffer] = arena_alloc(infer->graph->arena, (size_t)input->blob->length);
        if (!blob_read(input->blob, 0, buffers[buffer], (size_t)input->blob->length))
            return;
    }
    if (!small_definition(infer, node, &definition, &output) || definition.buffers.count > MAX_BUFFERS)
        return;
    int64_t elements;
    uint64_t bytes;
    struct value *value = graph_value(infer->graph, result);
    if (!small_type(infer, &value->type, &elements) || !dtype_bytes(value->type.dtype, elements, &bytes))
        return;
    buffers[output] = arena_alloc(infer->graph->arena, (size_t)bytes);
    if (interpret(&definition, NULL, buffers, &limits, infer->graph->arena->allocator) == INTERP_DONE)
        become_constant(infer, node, value, buffers[output], bytes);
}

/* Arrival order is no dependency order, so passes are repeated while they make progress. */
static void find_behind(struct infer *infer, struct behind *behind)
{
    for (bool progress = true; progress;) {
        progress = false;
        for (uint32_t i = behind->count; i-- > 0;) {
            const struct value *value = graph_value(infer->graph, behind->ids[i]);
            if (value->kind != VALUE_RESULT || behind->done[i])
                continue;
            infer_find_contents(infer, value->producer);
            value = graph_value(infer->graph, behind->ids[i]);
            if (!value->contents)
                fold_constants(infer, value->producer, behind->ids[i]);
            behind->done[i] =
                value->kind == VALUE_CONSTANT || all_known(value->contents, value->content_count);
            progress = progress || behind->done[i];
        }
    }
}

/* Some shape arithmetic has a symbolic value only where no size is 0 (a quotient that rounds towards zero).
 * Returns whether anything new is known. */
static bool assume_not_empty(struct infer *infer, const struct behind *behind)
{
    bool changed = false;
    for (uint32_t i = 0; i < behind->count; i++) {
        const struct value *value = graph_value(infer->graph, behind->ids[i]);
        if (value->kind != VALUE_RESULT || behind->done[i])
            continue;
        const struct node *node = graph_node(infer->graph, value->producer);
        for (uint32_t k = 0; k < node->input_count; k++) {
            value = graph_value(infer->graph, node->inputs[k]);
            for (uint32_t e = 0; value->contents && e < value->content_count; e++)
                changed = dim_assume_not_empty(&infer->graph->dims, value->contents[e]) || changed;
        }
    }
    return changed;
}

/* ---- words
 * ----------------------------------------------------------------------------------------------------- */

/* What --dim says of the size. */
static struct size_wish *find_wish(struct infer *infer, const char *name)
{
    for (uint32_t i = 0; name && i < infer->graph->wishes.count; i++)
        if (strcmp(infer->graph->wishes.items[i].name, name) == 0)
            return &infer->graph->wishes.items[i];
    return NULL;
}

/* The value's own name, or its node's; with the element's number where it has more than one. */
static const char *word_name(struct infer *infer, value_id id, uint32_t element)
{
    const struct value *value = graph_value(infer->graph, id);
    const struct location *location =
        value->kind == VALUE_RESULT ? graph_node(infer->graph, value->producer)->location : NULL;
    const char *name = value->name;
    if (!name && location)
        name = location->name && *location->name ? location->name
                                                 : arena_printf(infer->graph->arena, "#%u", location->number);
    if (!name || value->type.rank == 0)
        return name;
    return arena_printf(infer->graph->arena, "%s[%u]", name, element);
}

/* From now on the element is known as the size that it is: nobody asks what it was computed from. */
static dim note_word(struct infer *infer, value_id id, uint32_t element, dim word)
{
    struct value *value = graph_value(infer->graph, id);
    dim contents[MAX_CONTENTS] = {DIM_NONE};
    int64_t elements;
    if (!small_type(infer, &value->type, &elements) || element >= elements)
        return word;
    if (value->contents)
        memcpy(contents, value->contents, value->content_count * sizeof *contents);
    contents[element] = word;
    value->contents = arena_copy(infer->graph->arena, contents, (size_t)elements * sizeof *contents);
    value->content_count = (uint32_t)elements;
    return word;
}

dim infer_word(struct infer *infer, value_id value, uint32_t element, dim bound, const char *name)
{
    struct dims *dims = &infer->graph->dims;
    uint32_t count = 0;
    const dim *known = infer_value_contents(infer, value, &count);
    if (known && element < count && known[element] != DIM_NONE)
        return dim_current(dims, known[element]);
    for (uint32_t i = 0; i < dims->symbols.count; i++)
        if (dims->symbols.items[i].source == SYMBOL_WORD && dims->symbols.items[i].word == value &&
            dims->symbols.items[i].axis == element)
            return note_word(infer, value, element, dim_current(dims, dim_of_symbol(dims, i)));
    struct symbol symbol = {.name = name ? name : word_name(infer, value, element),
                            .source = SYMBOL_WORD,
                            .axis = element,
                            .word = value,
                            .high = INT64_MAX >> 16,
                            .hint = bound == DIM_NONE ? 1 : dim_hint(dims, bound)};
    struct size_wish *wish = find_wish(infer, symbol.name);
    if (wish) {
        wish->used = true;
        symbol.low = wish->low;
        symbol.high = wish->high;
        symbol.hint = wish->hint;
        const dim most = dim_constant(dims, wish->high);
        bound = bound == DIM_NONE ? most : dim_min(dims, bound, most);
    }
    symbol.bound = bound;
    if (bound == DIM_NONE)
        symbol.bound = dim_symbol(
            dims,
            &(struct symbol){.name = symbol.name, .source = SYMBOL_BOUND, .high = symbol.high, .hint = 1});
    return note_word(infer, value, element, dim_symbol(dims, &symbol));
}

/* The elements of the value that are not known become words. */
static void become_words(struct infer *infer, value_id id, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        (void)infer_word(infer, id, i, DIM_NONE, NULL);
}

/* Integers that the model computes, few of them. */
static bool may_be_words(const struct infer *infer, value_id id, int64_t *elements)
{
    const struct value *value = graph_value(infer->graph, id);
    return (value->kind == VALUE_RESULT || value->kind == VALUE_ARGUMENT) &&
           dtype_is_integer(value->type.dtype) && dtype_bits(value->type.dtype) >= 8 &&
           small_type(infer, &value->type, elements) && *elements > 0 && *elements <= MAX_WORDS;
}

/* None of what it is computed from may still become words: those are found first, so that what several shapes
 * hang on is one size in all of them. */
static bool stands_first(const struct infer *infer, const struct behind *behind, value_id id)
{
    int64_t elements;
    const struct value *value = graph_value(infer->graph, id);
    if (value->kind != VALUE_RESULT)
        return true;
    const struct node *node = graph_node(infer->graph, value->producer);
    for (uint32_t i = 0; i < behind->count; i++) {
        if (behind->done[i] || !may_be_words(infer, behind->ids[i], &elements))
            continue;
        for (uint32_t k = 0; k < node->input_count; k++)
            if (node->inputs[k] == behind->ids[i])
                return false;
    }
    return true;
}

static bool make_words(struct infer *infer, struct behind *behind)
{
    int64_t elements;
    for (uint32_t i = behind->count; i-- > 0;)
        if (!behind->done[i] && may_be_words(infer, behind->ids[i], &elements) &&
            stands_first(infer, behind, behind->ids[i])) {
            become_words(infer, behind->ids[i], (uint32_t)elements);
            behind->done[i] = true;
            return true;
        }
    return false;
}

/* Small graph inputs behind the value become host inputs. */
static void read_inputs_on_host(struct infer *infer, const struct behind *behind)
{
    for (uint32_t i = 0; i < behind->count; i++) {
        const struct value *value = graph_value(infer->graph, behind->ids[i]);
        int64_t elements;
        if (value->kind == VALUE_INPUT && dtype_is_integer(value->type.dtype) &&
            small_type(infer, &value->type, &elements))
            become_host_input(infer, behind->ids[i], (uint32_t)elements);
    }
}

/* Makes small graph inputs behind the value host inputs and finds the contents of what lies between. */
static void demand_contents(struct infer *infer, value_id id)
{
    struct behind *behind = arena_new(infer->graph->arena, struct behind);
    reach_all(infer, behind, id);
    read_inputs_on_host(infer, behind);
    find_behind(infer, behind);
    if (!behind->done[0] && assume_not_empty(infer, behind))
        find_behind(infer, behind);
    while (!behind->done[0] && make_words(infer, behind))
        find_behind(infer, behind);
}

static bool is_reached(const struct behind *behind, value_id id)
{
    for (uint32_t i = 0; i < behind->count; i++)
        if (behind->ids[i] == id)
            return true;
    return false;
}

/* Everything behind it is known, or an integer input. */
static bool host_has_all(struct infer *infer, const struct behind *behind)
{
    for (uint32_t i = 0; i < behind->count; i++) {
        const struct value *value = graph_value(infer->graph, behind->ids[i]);
        if (value->kind == VALUE_INPUT && dtype_is_integer(value->type.dtype))
            continue;
        if (value->kind != VALUE_RESULT)
            return false;
        const struct node *node = graph_node(infer->graph, value->producer);
        for (uint32_t k = 0; k < node->input_count; k++) {
            const struct value *input = graph_value(infer->graph, node->inputs[k]);
            if (node->inputs[k] && input->kind != VALUE_CONSTANT && !is_reached(behind, node->inputs[k]) &&
                !all_known(input->contents, input->content_count))
                return false;
        }
    }
    return behind->count < MAX_BEHIND;
}

dim infer_demand_size(struct infer *infer, value_id value)
{
    uint32_t count = 0;
    const dim *contents = infer_value_contents(infer, value, &count);
    if (!all_known(contents, count)) {
        struct behind *behind = arena_new(infer->graph->arena, struct behind);
        reach_all(infer, behind, value);
        if (!host_has_all(infer, behind))
            return DIM_NONE;
        read_inputs_on_host(infer, behind);
        find_behind(infer, behind);
        contents = infer_value_contents(infer, value, &count);
    }
    return all_known(contents, count) && count == 1 ? contents[0] : DIM_NONE;
}

const dim *infer_shape_input(struct infer *infer, node_id node, uint32_t input, uint32_t *count)
{
    const value_id id = node_input(graph_node(infer->graph, node), input);
    const struct tensor_type *type = infer_input(infer, node, input);
    int64_t elements;
    if (!type || !infer_takes(infer, node, input, DTYPES_INTEGER))
        return NULL;
    if (type->rank > 1) {
        infer_fail(infer, node, DIAG_wrong_shape, "input %u is %s; it must be a vector", input,
                   infer_type_text(infer, type));
        return NULL;
    }
    if (!small_type(infer, type, &elements)) {
        infer_fail(infer, node, DIAG_unknown_shape, "input %u is %s: a shape of unknown length", input,
                   infer_type_text(infer, type));
        return NULL;
    }
    const dim *contents = infer_value_contents(infer, id, count);
    if (!all_known(contents, *count) && elements > 0) {
        demand_contents(infer, id);
        contents = infer_value_contents(infer, id, count);
    }
    if (elements == 0) {
        *count = 0;
        return arena_new(infer->graph->arena, dim);
    }
    if (all_known(contents, *count)) {
        graph_freeze(infer->graph, id, graph_node(infer->graph, node)->location, "the shape");
        return contents;
    }
    infer_fail(infer, node, DIAG_unknown_shape,
               "the result's shape hangs on input %u, whose values are not known", input);
    return NULL;
}

bool infer_constant_input(struct infer *infer, node_id node, uint32_t input, int64_t *values, uint32_t limit,
                          uint32_t *count)
{
    const struct value *value = graph_value(infer->graph, node_input(graph_node(infer->graph, node), input));
    uint32_t known = value->content_count;
    const dim *contents =
        infer_value_contents(infer, node_input(graph_node(infer->graph, node), input), &known);
    int64_t elements;
    if (!infer_takes(infer, node, input, DTYPES_INTEGER))
        return false;
    if (small_type(infer, &value->type, &elements) && elements == 0) {
        *count = 0;
        return true;
    }
    if (!all_known(contents, known))
        return infer_fail(infer, node, DIAG_unknown_shape, "input %u must be known when compiling", input);
    if (known > limit)
        return infer_fail(infer, node, DIAG_limit_exceeded, "input %u has %u elements; %u are the most",
                          input, known, limit);
    for (uint32_t i = 0; i < known; i++)
        if (!dim_is_constant(&infer->graph->dims, contents[i], &values[i]))
            return infer_fail(infer, node, DIAG_unknown_shape,
                              "element %u of input %u must be constant, and is %s", i, input,
                              infer_dim_text(infer, contents[i]));
    graph_freeze(infer->graph, node_input(graph_node(infer->graph, node), input),
                 graph_node(infer->graph, node)->location, "the shape");
    *count = known;
    return true;
}

/* ---- what is left
 * ------------------------------------------------------------------------------------------------ */

/* A known result whose elements are all constants becomes one. */
static bool settle_constant(struct infer *infer, node_id node, struct value *value)
{
    const enum dtype dtype = value->type.dtype;
    const unsigned bytes = dtype_bits(dtype) / 8;
    unsigned char data[MAX_CONTENTS * 8];
    if (dtype != DTYPE_BOOL && dtype != DTYPE_F32 && dtype != DTYPE_I32 && dtype != DTYPE_I64)
        return false;
    for (uint32_t i = 0; i < value->content_count; i++) {
        int64_t number;
        if (!dim_is_constant(&infer->graph->dims, value->contents[i], &number))
            return false;
        const float single = (float)number;
        uint64_t bits = (uint64_t)number;
        uint32_t single_bits;
        memcpy(&single_bits, &single, sizeof single_bits);
        if (dtype == DTYPE_F32)
            bits = single_bits;
        for (unsigned k = 0; k < bytes; k++)
            data[i * bytes + k] = (unsigned char)(bits >> (8 * k));
    }
    become_constant(infer, node, value, data, (uint64_t)value->content_count * bytes);
    return true;
}

static void settle_node(struct infer *infer, node_id node, const bool *is_output)
{
    const struct node *n = graph_node(infer->graph, node);
    if (n->removed || n->output_count != 1 || n->body_count)
        return;
    struct value *value = graph_value(infer->graph, n->outputs[0]);
    if (!all_known(value->contents, value->content_count) || value->content_count == 0 ||
        graph_is_word(infer->graph, n->outputs[0])) /* what holds a size cannot be made of it */
        return;
    if (!is_output[n->outputs[0]] && settle_constant(infer, node, value))
        return;
    if (value->type.dtype == DTYPE_I64 && value->type.rank <= 1) {
        graph_freeze_inputs(infer->graph, node, "a size");
        infer_become(infer, node, OP_Dims);
        infer_keep_inputs(infer, node, 0);
        infer_set_dims(infer, node, ATTR_dims, value->content_count, value->contents);
    }
}

void infer_settle_known(struct infer *infer)
{
    struct graph *graph = infer->graph;
    bool *is_output = arena_new_array(graph->arena, bool, graph->values.count);
    for (uint32_t i = 0; i < graph->outputs.count; i++)
        is_output[graph->outputs.items[i].value] = true;
    for (region_id r = GRAPH_BODY; r < graph->regions.count; r++)
        for (uint32_t i = 0; i < graph->regions.items[r].nodes.count; i++)
            settle_node(infer, graph->regions.items[r].nodes.items[i], is_output);
    graph_sweep(graph);
}
