/* Shape inference: the walk over the graph, and the helpers of the functions for each operator. See infer.h.
 *
 * A merge can change dims that were found before, so dims are brought up to date where they are read, and all
 * of them at the end. */
#include "ir/infer_internal.h"

#include "ir/support/checked.h"

#include <stdarg.h>
#include <string.h>

static infer_function *const functions[OP_COUNT] = {
    [OP_NONE] = NULL,
#define OP(name, least_inputs, most_inputs, least_outputs, most_outputs, traits, shape, definition)          \
    [OP_##name] = infer_##shape,
#include "ir/ops.def"
#undef OP
};

/* ---- messages
 * ---------------------------------------------------------------------------------------------------- */

bool infer_fail(struct infer *infer, node_id node, enum diag_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *message = arena_vprintf(infer->diagnostics->arena, format, arguments);
    va_end(arguments);
    diag_error(infer->diagnostics, code, graph_node(infer->graph, node)->location, "%s", message);
    infer->failures++;
    return false;
}

/* In messages a symbol has the model's own name where there is one. */
static void put_dim(struct infer *infer, dim d, struct text *text)
{
    const struct dims *dims = &infer->graph->dims;
    const struct dim_node *node = &dims->nodes.items[d];
    if (d != DIM_NONE && node->op == DIM_SYMBOL && dims->symbols.items[node->value].name)
        text_quote(text, dims->symbols.items[node->value].name, 60);
    else
        dim_print(dims, d, text);
}

const char *infer_dim_text(struct infer *infer, dim d)
{
    struct text text;
    text_init(&text, infer->diagnostics->arena);
    put_dim(infer, d, &text);
    return text.data;
}

const char *infer_type_text(struct infer *infer, const struct tensor_type *type)
{
    struct text text;
    text_init(&text, infer->diagnostics->arena);
    text_printf(&text, "%s[", dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++) {
        text_put(&text, i ? ", " : "");
        put_dim(infer, type->dims[i], &text);
    }
    text_put(&text, type->rank < 0 ? "*]" : "]");
    return text.data;
}

/* ---- access
 * ------------------------------------------------------------------------------------------------------ */

void infer_set(struct infer *infer, node_id node, uint32_t output, enum dtype dtype, int rank,
               const dim *dims)
{
    const struct node *n = graph_node(infer->graph, node);
    if (output >= n->output_count || n->outputs[output] == 0)
        return;
    struct value *value = graph_value(infer->graph, n->outputs[output]);
    value->type = tensor_type_new(infer->graph->arena, dtype, rank, dims);
    value->contents = NULL;
    value->content_count = 0;
}

const struct tensor_type *infer_input(const struct infer *infer, node_id node, uint32_t input)
{
    const value_id id = node_input(graph_node(infer->graph, node), input);
    return id ? &graph_value(infer->graph, id)->type : NULL;
}

bool infer_takes(struct infer *infer, node_id node, uint32_t input, dtype_set types)
{
    const struct tensor_type *type = infer_input(infer, node, input);
    if (!type || (types >> type->dtype & 1))
        return true;
    return infer_fail(infer, node, DIAG_wrong_type,
                      "input %u has element type %s, which the operator does not take", input,
                      dtype_name(type->dtype));
}

bool infer_same_dtype(struct infer *infer, node_id node, uint32_t a, uint32_t b)
{
    const struct tensor_type *x = infer_input(infer, node, a), *y = infer_input(infer, node, b);
    if (!x || !y || x->dtype == y->dtype)
        return true;
    return infer_fail(infer, node, DIAG_wrong_type,
                      "input %u is %s and input %u is %s: the element types must agree", a,
                      infer_type_text(infer, x), b, infer_type_text(infer, y));
}

bool infer_axis(struct infer *infer, node_id node, int64_t axis, int rank, uint32_t *out)
{
    if (axis < -(int64_t)rank || axis >= rank)
        return infer_fail(infer, node, DIAG_wrong_attribute, "axis %lld is outside an input of rank %d",
                          (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

bool infer_axes(struct infer *infer, node_id node, uint32_t input, int rank, uint32_t *axes, uint32_t *count,
                bool *given)
{
    int64_t values[MAX_RANK];
    uint32_t value_count = 0;
    const struct attribute *attribute = node_attribute(graph_node(infer->graph, node), ATTR_axes);
    bool seen[MAX_RANK] = {false};
    *count = 0;
    *given = true;
    if (infer_input(infer, node, input)) {
        if (!infer_constant_input(infer, node, input, values, MAX_RANK, &value_count))
            return false;
    } else if (attribute && attribute->kind == ATTR_INTS && attribute->count <= MAX_RANK) {
        value_count = attribute->count;
        if (value_count)
            memcpy(values, attribute->integers, value_count * sizeof *values);
    } else {
        *given = attribute != NULL;
        return !attribute || infer_fail(infer, node, DIAG_wrong_attribute,
                                        "axes are not a list of %d numbers at most", (int)MAX_RANK);
    }
    for (uint32_t i = 0; i < value_count; i++) {
        uint32_t axis = 0;
        if (!infer_axis(infer, node, values[i], rank, &axis))
            return false;
        if (seen[axis])
            return infer_fail(infer, node, DIAG_wrong_attribute, "axis %u is stated twice", axis);
        seen[axis] = true;
    }
    for (uint32_t i = 0; i < MAX_RANK; i++)
        if (seen[i])
            axes[(*count)++] = i;
    return true;
}

/* ---- agreement of dims
 * ------------------------------------------------------------------------------------------- */

bool infer_equal(struct infer *infer, node_id node, dim a, dim b, const char *what)
{
    dim_merge_names(&infer->graph->dims, a, b, graph_node(infer->graph, node)->location);
    if (dim_merge(&infer->graph->dims, a, b, graph_node(infer->graph, node)->location))
        return true;
    return infer_fail(infer, node, DIAG_wrong_shape, "%s: %s and %s must be equal", what,
                      infer_dim_text(infer, a), infer_dim_text(infer, b));
}

/* cut == min(whole, limit) for a limit of 2 or more: where the lesser is 1 both are, so they meet only as
 * equals. */
static bool is_cut(struct dims *dims, dim cut, dim whole)
{
    const struct dim_node node = dims->nodes.items[cut];
    if (node.op != DIM_MIN || (node.arguments[0] != whole && node.arguments[1] != whole))
        return false;
    int64_t low, high;
    dim_range(dims, node.arguments[node.arguments[0] == whole], &low, &high);
    return low >= 2;
}

/* Which dim two that meet in a broadcast have; DIM_NONE: they cannot meet. The cases where the sizes decide
 * at run time (one may be 1) are guarded: a == b or the lesser is 1. */
static dim broadcast_dim(struct infer *infer, node_id node, dim a, dim b)
{
    struct dims *dims = &infer->graph->dims;
    const struct location *location = graph_node(infer->graph, node)->location;
    a = dim_current(dims, a);
    b = dim_current(dims, b);
    if (a == b || dim_equals_constant(dims, b, 1))
        return a;
    if (dim_equals_constant(dims, a, 1))
        return b;
    dim_merge_names(dims, a, b, location);
    a = dim_current(dims, a);
    b = dim_current(dims, b);
    if (a == b)
        return a;
    const dim one = dim_constant(dims, 1);
    const bool a_can_be_1 = dim_equal(dims, a, one) != 0, b_can_be_1 = dim_equal(dims, b, one) != 0;
    if ((!a_can_be_1 && !b_can_be_1) || is_cut(dims, a, b) || is_cut(dims, b, a))
        return dim_merge(dims, a, b, location) ? dim_current(dims, a) : DIM_NONE;
    if (dim_equal(dims, a, b) == 0 && !(a_can_be_1 && b_can_be_1)) {
        const dim single = a_can_be_1 ? a : b; /* the only way to agree */
        return dim_merge(dims, single, one, location) ? dim_current(dims, a_can_be_1 ? b : a) : DIM_NONE;
    }
    const dim less = dim_min(dims, a, b), more = dim_max(dims, a, b);
    const dim off_one = dim_max(dims, dim_sub(dims, less, one), dim_sub(dims, one, less));
    if (!dim_merge(dims, dim_min(dims, dim_sub(dims, more, less), off_one), dim_constant(dims, 0), location))
        return DIM_NONE;
    return !a_can_be_1 ? a : !b_can_be_1 ? b : more;
}

bool infer_broadcast_dims(struct infer *infer, node_id node, const struct tensor_type *a,
                          const struct tensor_type *b, int *rank, dim *dims)
{
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < *rank; i++) {
        const int in_a = i - (*rank - a->rank), in_b = i - (*rank - b->rank);
        dims[i] = in_a < 0   ? b->dims[in_b]
                  : in_b < 0 ? a->dims[in_a]
                             : broadcast_dim(infer, node, a->dims[in_a], b->dims[in_b]);
        if (dims[i] == DIM_NONE)
            return infer_fail(infer, node, DIAG_wrong_shape,
                              "%s and %s do not broadcast: dim %d has %s and %s", infer_type_text(infer, a),
                              infer_type_text(infer, b), i,
                              infer_dim_text(infer, a->dims[in_a < 0 ? 0 : in_a]),
                              infer_dim_text(infer, b->dims[in_b < 0 ? 0 : in_b]));
    }
    return true;
}

bool infer_broadcasts_to(struct infer *infer, node_id node, const struct tensor_type *from,
                         const struct tensor_type *to)
{
    struct dims *dims = &infer->graph->dims;
    bool agree = from->rank <= to->rank;
    for (int i = 0; i < from->rank && agree; i++) {
        const dim a = from->dims[i], b = to->dims[i + to->rank - from->rank];
        if (!dim_equals_constant(dims, a, 1))
            agree = dim_merge(dims, a, b, graph_node(infer->graph, node)->location);
    }
    return agree || infer_fail(infer, node, DIAG_wrong_shape, "%s does not broadcast to %s",
                               infer_type_text(infer, from), infer_type_text(infer, to));
}

/* ---- changing nodes
 * ---------------------------------------------------------------------------------------------- */

void infer_keep_inputs(struct infer *infer, node_id node, uint32_t count)
{
    struct node *n = graph_node(infer->graph, node);
    if (n->input_count > count)
        n->input_count = count;
}

void infer_set_ints(struct infer *infer, node_id node, enum attribute_name name, uint32_t count,
                    const int64_t *values)
{
    const int64_t *copy = arena_copy(infer->graph->arena, values, count * sizeof *values);
    const struct attribute attribute = attribute_ints(name, count, copy);
    node_set_attribute(infer->graph, node, &attribute);
}

void infer_set_dims(struct infer *infer, node_id node, enum attribute_name name, uint32_t count,
                    const dim *values)
{
    const dim *copy = arena_copy(infer->graph->arena, values, count * sizeof *values);
    const struct attribute attribute = attribute_dims(name, count, copy);
    node_set_attribute(infer->graph, node, &attribute);
}

void infer_set_int(struct infer *infer, node_id node, enum attribute_name name, int64_t value)
{
    const struct attribute attribute = attribute_int(name, value);
    node_set_attribute(infer->graph, node, &attribute);
}

void infer_become(struct infer *infer, node_id node, enum op op)
{
    struct node *n = graph_node(infer->graph, node);
    n->op = op;
    n->attribute_count = 0;
    infer_keep_inputs(infer, node, 1);
}

/* ---- the walk
 * ---------------------------------------------------------------------------------------------------- */

static bool refresh_dims(struct dims *dims, dim *list, uint32_t count)
{
    bool known = true;
    for (uint32_t i = 0; i < count; i++)
        if (list[i] != DIM_NONE) {
            list[i] = dim_current(dims, list[i]);
            known = known && list[i] != DIM_NONE;
        }
    return known;
}

bool infer_refresh_value(struct graph *graph, value_id id)
{
    struct value *value = graph_value(graph, id);
    bool stale = false;
    for (uint32_t i = 0; value->contents && i < value->content_count && !stale; i++)
        stale = dim_current(&graph->dims, value->contents[i]) != value->contents[i];
    if (stale) { /* the list may be shared */
        dim *copy = arena_copy(graph->arena, value->contents, value->content_count * sizeof *copy);
        (void)refresh_dims(&graph->dims, copy, value->content_count);
        value->contents = copy;
    }
    return value->type.rank <= 0 || refresh_dims(&graph->dims, value->type.dims, (uint32_t)value->type.rank);
}

static void forget_results(struct infer *infer, node_id node)
{
    const struct node *n = graph_node(infer->graph, node);
    for (uint32_t i = 0; i < n->output_count; i++) {
        struct value *value = graph_value(infer->graph, n->outputs[i]);
        value->type.rank = -1;
        value->contents = NULL;
    }
}

/* What holds for every result, whatever the operator. */
static bool check_results(struct infer *infer, node_id node)
{
    const uint64_t most_bytes = UINT64_C(1) << 40;
    const struct node *n = graph_node(infer->graph, node);
    for (uint32_t i = 0; i < n->output_count; i++) {
        const struct tensor_type *type = &graph_value(infer->graph, n->outputs[i])->type;
        int64_t elements;
        uint64_t bytes;
        for (int k = 0; k < type->rank && n->outputs[i]; k++) {
            int64_t low, high;
            if (type->dims[k] == DIM_NONE)
                return infer_fail(infer, node, DIAG_limit_exceeded,
                                  "dim %d of result %u overflows or depends on sizes in too complex a way", k,
                                  i);
            dim_range(&infer->graph->dims, type->dims[k], &low, &high);
            if (low < 0 && !dim_assume_at_least(&infer->graph->dims, type->dims[k], 0, n->location))
                return infer_fail(infer, node, DIAG_wrong_shape, "dim %d of result %u would be %s", k, i,
                                  infer_dim_text(infer, type->dims[k]));
        }
        if (tensor_constant_sizes(&infer->graph->dims, type, NULL, &elements) &&
            (!dtype_bytes(type->dtype, elements, &bytes) || bytes > most_bytes))
            return infer_fail(infer, node, DIAG_limit_exceeded,
                              "result %u, %s, is larger than a tensor may be", i,
                              infer_type_text(infer, type));
    }
    return true;
}

bool infer_node(struct infer *infer, node_id node)
{
    const struct node *n = graph_node(infer->graph, node);
    infer_function *function = functions[n->op];
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i] == 0)
            continue;
        const struct value *value = graph_value(infer->graph, n->inputs[i]);
        if (value->type.rank < 0 || value->type.dtype == DTYPE_NONE)
            return false; /* its producer has been reported */
        if (!infer_refresh_value(infer->graph, n->inputs[i]))
            return infer_fail(infer, node, DIAG_limit_exceeded,
                              "a dim of input %u overflows or depends on sizes in too complex a way", i);
    }
    for (uint32_t i = 0; i < op_facts(n->op)->least_inputs; i++)
        if (node_input(n, i) == 0)
            return infer_fail(infer, node, DIAG_wrong_arity, "input %u is missing", i);
    if (!function)
        return infer_fail(infer, node, DIAG_internal, "the node has no operator");
    if (!function(infer, node) || !check_results(infer, node)) {
        forget_results(infer, node);
        return false;
    }
    if (!(op_facts(graph_node(infer->graph, node)->op)->traits & OP_CONTROL))
        infer_find_contents(infer, node);
    return true;
}

/* All dims with all merges applied, until nothing merges any more. */
static void refresh_graph(struct infer *infer)
{
    struct graph *graph = infer->graph;
    dims_fix_symbols(&graph->dims);
    if (graph->dims.merges == 0)
        return;
    for (value_id id = 1; id < graph->values.count; id++)
        if (!infer_refresh_value(graph, id) && graph_value(graph, id)->kind == VALUE_RESULT)
            infer_fail(infer, graph_value(graph, id)->producer, DIAG_limit_exceeded,
                       "a dim of a result overflows or depends on sizes in too complex a way");
    for (node_id id = 1; id < graph->nodes.count; id++) {
        struct node *node = graph_node(graph, id);
        for (uint32_t i = 0; i < node->attribute_count; i++) {
            struct attribute *attribute = &node->attributes[i];
            if (attribute->kind != ATTR_DIMS)
                continue;
            dim *copy = arena_copy(graph->arena, attribute->dims, attribute->count * sizeof *copy);
            if (!refresh_dims(&graph->dims, copy, attribute->count) && !node->removed)
                infer_fail(infer, id, DIAG_limit_exceeded, "attribute %s overflows",
                           attribute_text(attribute->name));
            attribute->dims = copy;
        }
    }
}

bool infer_refresh_graph(struct graph *graph, struct diagnostics *diagnostics)
{
    struct infer infer = {.graph = graph, .diagnostics = diagnostics};
    refresh_graph(&infer);
    return infer.failures == 0;
}

/* The bodies of control-flow nodes are walked from their infer functions, so regions nest here as deep as they do in the
 * graph, which the importer and the parser bound. */
void infer_region(struct infer *infer, region_id region)
{
    struct graph *graph = infer->graph;
    VEC(node_id) order = {0};
    const uint32_t count = graph->regions.items[region].nodes.count;
    for (uint32_t i = 0; i < count; i++) {
        const node_id node = graph->regions.items[region].nodes.items[i];
        const uint32_t before = graph->regions.items[region].nodes.count;
        if (!graph_node(graph, node)->removed && infer->failures < infer->diagnostics->most)
            (void)infer_node(infer, node);
        for (uint32_t k = before; k < graph->regions.items[region].nodes.count; k++)
            vec_push(graph->arena, &order, graph->regions.items[region].nodes.items[k]);
        vec_push(graph->arena, &order, node);
    }
    struct region *body = &graph->regions.items[region];
    body->nodes.items = order.items;
    body->nodes.count = order.count;
    body->nodes.capacity = order.capacity;
}

bool infer_graph(struct graph *graph, struct diagnostics *diagnostics)
{
    struct infer infer = {.graph = graph, .diagnostics = diagnostics, .appends = true};
    dims_fix_symbols(&graph->dims);
    infer_region(&infer, GRAPH_BODY);
    refresh_graph(&infer);
    if (infer.failures == 0)
        infer_settle_known(&infer);
    return infer.failures == 0;
}
