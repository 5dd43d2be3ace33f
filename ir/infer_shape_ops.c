/* Shapes of operators that take shapes or make them. After binding none of them reads a shape at run time:
 * Flatten, Squeeze and Unsqueeze are Reshapes, Shape and Size are Dims, ConstantOfShape is an Expand. */
#include "ir/infer_internal.h"
#include "ir/provenance.h"

#include <math.h>
#include <string.h>

/* A node that is bound already keeps the result type that it was given. */
static bool has_result_type(const struct infer *infer, node_id node)
{
    const value_id result = graph_node(infer->graph, node)->outputs[0];
    return graph_value(infer->graph, result)->type.rank >= 0;
}

static bool keep_bound(struct infer *infer, node_id node)
{
    return has_result_type(infer, node) ||
           infer_fail(infer, node, DIAG_wrong_arity, "the input that states the shape is missing");
}

static void become_reshape(struct infer *infer, node_id node, int rank, const dim *dims)
{
    const enum dtype dtype = infer_input(infer, node, 0)->dtype;
    infer_become(infer, node, OP_Reshape);
    infer_set(infer, node, 0, dtype, rank, dims);
}

/* The dim that -1 stands for: all elements divided by the others' product. */
static dim remaining_dim(struct infer *infer, node_id node, dim all, dim others)
{
    struct dims *dims = &infer->graph->dims;
    int64_t number, total;
    if (dim_is_constant(dims, others, &number) && dim_is_constant(dims, all, &total) &&
        (number == 0 || total % number != 0)) {
        infer_fail(infer, node, DIAG_wrong_shape,
                   "-1 stands for no size: %lld elements, and the other dims make %lld", (long long)total,
                   (long long)number);
        return DIM_NONE;
    }
    dim quotient = dim_floor_div(dims, all, others);
    if (quotient == DIM_NONE || dim_mul(dims, quotient, others) != dim_current(dims, all)) {
        dim_merge_names(dims, all, others, graph_node(infer->graph, node)->location);
        quotient = dim_floor_div(dims, all, others);
    }
    if (quotient == DIM_NONE &&
        dim_assume_not_empty(dims, others)) /* -1 beside a dim of 0 stands for nothing */
        quotient = dim_floor_div(dims, all, others);
    if (quotient == DIM_NONE)
        quotient = dim_floor_div(dims, all, dim_max(dims, others, dim_constant(dims, 1)));
    if (quotient == DIM_NONE) {
        infer_fail(infer, node, DIAG_unknown_shape, "-1 stands for %s / %s, which is no size",
                   infer_dim_text(infer, all), infer_dim_text(infer, others));
        return DIM_NONE;
    }
    return infer_equal(infer, node, dim_mul(dims, quotient, others), all,
                       "the element counts before and after")
               ? quotient
               : DIM_NONE;
}

bool infer_reshape(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const bool zero_is_zero = node_int(graph_node(infer->graph, node), ATTR_allowzero, 0) != 0;
    uint32_t count, remaining = MAX_RANK;
    if (!infer_input(infer, node, 1))
        return keep_bound(infer, node);
    const dim *shape = infer_shape_input(infer, node, 1, &count);
    const struct tensor_type *x = infer_input(infer, node, 0);
    dim result[MAX_RANK], others = dim_constant(dims, 1);
    if (!shape)
        return false;
    if (count > MAX_RANK)
        return infer_fail(infer, node, DIAG_limit_exceeded, "the result would have %u axes", count);
    for (uint32_t i = 0; i < count; i++) {
        result[i] = shape[i];
        if (dim_equals_constant(dims, shape[i], -1)) {
            if (remaining != MAX_RANK)
                return infer_fail(infer, node, DIAG_wrong_shape, "the shape holds -1 twice");
            remaining = i;
            continue;
        }
        if (dim_equals_constant(dims, shape[i], 0) && !zero_is_zero) {
            if ((int)i >= x->rank)
                return infer_fail(infer, node, DIAG_wrong_shape, "dim %u is copied from %s, which has none",
                                  i, infer_type_text(infer, x));
            result[i] = x->dims[i];
        }
        others = dim_mul(dims, others, result[i]);
    }
    const dim all = tensor_elements(dims, x);
    if (all == DIM_NONE || others == DIM_NONE)
        return infer_fail(infer, node, DIAG_limit_exceeded, "the number of elements overflows");
    if (remaining != MAX_RANK)
        result[remaining] = remaining_dim(infer, node, all, others);
    else if (!infer_equal(infer, node, all, others, "the element counts before and after"))
        return false;
    if (remaining != MAX_RANK && result[remaining] == DIM_NONE)
        return false;
    become_reshape(infer, node, (int)count, result);
    return true;
}

bool infer_flatten(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const struct tensor_type *x = infer_input(infer, node, 0);
    const int64_t axis = node_int(graph_node(infer->graph, node), ATTR_axis, 1);
    dim result[2] = {dim_constant(dims, 1), dim_constant(dims, 1)};
    if (axis < -(int64_t)x->rank || axis > x->rank)
        return infer_fail(infer, node, DIAG_wrong_attribute, "axis %lld is outside an input of rank %d",
                          (long long)axis, x->rank);
    const int split = (int)(axis < 0 ? axis + x->rank : axis);
    for (int i = 0; i < x->rank; i++)
        result[i >= split] = dim_mul(dims, result[i >= split], x->dims[i]);
    become_reshape(infer, node, 2, result);
    return true;
}

bool infer_squeeze(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const struct tensor_type *x = infer_input(infer, node, 0);
    uint32_t axes[MAX_RANK], count;
    bool given, dropped[MAX_RANK] = {false};
    if (!infer_axes(infer, node, 1, x->rank, axes, &count, &given))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!infer_equal(infer, node, x->dims[axes[i]], dim_constant(dims, 1), "a dim that is dropped"))
            return false;
        dropped[axes[i]] = true;
    }
    dim result[MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!given && dim_equal(dims, x->dims[i], dim_constant(dims, 1)) < 0)
            return infer_fail(infer, node, DIAG_unknown_shape,
                              "without axes it depends on the value of %s whether dim %d is dropped",
                              infer_dim_text(infer, x->dims[i]), i);
        if (given ? !dropped[i] : !dim_equals_constant(dims, x->dims[i], 1))
            result[rank++] = x->dims[i];
    }
    become_reshape(infer, node, rank, result);
    return true;
}

bool infer_unsqueeze(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    uint32_t axes[MAX_RANK], count;
    int64_t values[MAX_RANK];
    if (!infer_constant_input(infer, node, 1, values, MAX_RANK, &count))
        return false;
    if (x->rank + (int)count > MAX_RANK)
        return infer_fail(infer, node, DIAG_limit_exceeded, "the result would have %d axes",
                          x->rank + (int)count);
    bool given, made[MAX_RANK] = {false};
    if (!infer_axes(infer, node, 1, x->rank + (int)count, axes, &count, &given))
        return false;
    for (uint32_t i = 0; i < count; i++)
        made[axes[i]] = true;
    dim result[MAX_RANK];
    int from = 0;
    for (int i = 0; i < x->rank + (int)count; i++)
        result[i] = made[i] ? dim_constant(&infer->graph->dims, 1) : x->dims[from++];
    become_reshape(infer, node, x->rank + (int)count, result);
    return true;
}

bool infer_expand(struct infer *infer, node_id node)
{
    uint32_t count;
    if (!infer_input(infer, node, 1))
        return keep_bound(infer, node);
    const dim *shape = infer_shape_input(infer, node, 1, &count);
    const struct tensor_type *x = infer_input(infer, node, 0);
    if (!shape)
        return false;
    if (count > MAX_RANK)
        return infer_fail(infer, node, DIAG_limit_exceeded, "the result would have %u axes", count);
    const struct tensor_type to = tensor_type_new(infer->graph->arena, x->dtype, (int)count, shape);
    dim result[MAX_RANK];
    int rank;
    if (!infer_broadcast_dims(infer, node, x, &to, &rank, result))
        return false;
    infer_become(infer, node, OP_Expand);
    infer_set(infer, node, 0, to.dtype, rank, result);
    return true;
}

bool infer_tile(struct infer *infer, node_id node)
{
    uint32_t count;
    if (!infer_input(infer, node, 1))
        return keep_bound(infer, node);
    const dim *repeats = infer_shape_input(infer, node, 1, &count);
    const struct tensor_type *x = infer_input(infer, node, 0);
    dim result[MAX_RANK];
    if (!repeats)
        return false;
    if ((int)count != x->rank)
        return infer_fail(infer, node, DIAG_wrong_shape, "%u repeats for %s", count,
                          infer_type_text(infer, x));
    for (uint32_t i = 0; i < count; i++)
        result[i] = dim_mul(&infer->graph->dims, x->dims[i], repeats[i]);
    const enum dtype dtype = x->dtype;
    infer_become(infer, node, OP_Tile);
    infer_set(infer, node, 0, dtype, (int)count, result);
    return true;
}

bool infer_constant_of_shape(struct infer *infer, node_id node)
{
    uint32_t count;
    const dim *shape = infer_shape_input(infer, node, 0, &count);
    if (!shape)
        return false;
    if (count > MAX_RANK)
        return infer_fail(infer, node, DIAG_limit_exceeded, "the result would have %u axes", count);
    value_id value = node_input(graph_node(infer->graph, node), 1);
    const float zero = 0;
    if (value == 0)
        value = graph_add_constant_data(infer->graph, DTYPE_F32, 0, NULL, &zero);
    const struct tensor_type *type = &graph_value(infer->graph, value)->type;
    int64_t elements;
    if (!tensor_constant_sizes(&infer->graph->dims, type, NULL, &elements) || elements != 1)
        return infer_fail(infer, node, DIAG_wrong_shape, "the value is %s; it must be one element",
                          infer_type_text(infer, type));
    const enum dtype dtype = type->dtype;
    /* a value of shape [1] broadcasts to every shape but a scalar's */
    const bool reshapes = count == 0 && type->rank == 1;
    graph_node(infer->graph, node)->inputs[0] = value;
    infer_become(infer, node, reshapes ? OP_Reshape : OP_Expand);
    infer_set(infer, node, 0, dtype, (int)count, shape);
    return true;
}

static void set_dims_contents(struct infer *infer, node_id node, uint32_t count, const dim *dims)
{
    struct value *value = graph_value(infer->graph, graph_node(infer->graph, node)->outputs[0]);
    value->contents = arena_copy(infer->graph->arena, dims, count * sizeof *dims);
    value->content_count = count;
}

static void become_dims(struct infer *infer, node_id node, int rank, uint32_t count, const dim *dims)
{
    const dim length = dim_constant(&infer->graph->dims, count);
    infer_become(infer, node, OP_Dims);
    infer_keep_inputs(infer, node, 0);
    infer_set_dims(infer, node, ATTR_dims, count, dims);
    infer_set(infer, node, 0, DTYPE_I64, rank, &length);
    set_dims_contents(infer, node, count, dims);
}

bool infer_dims(struct infer *infer, node_id node)
{
    const struct attribute *dims = node_attribute(graph_node(infer->graph, node), ATTR_dims);
    const value_id result = graph_node(infer->graph, node)->outputs[0];
    if (!dims || dims->kind != ATTR_DIMS)
        return infer_fail(infer, node, DIAG_wrong_attribute, "attribute dims is missing");
    const int rank = graph_value(infer->graph, result)->type.rank == 0 && dims->count == 1 ? 0 : 1;
    become_dims(infer, node, rank, dims->count, dims->dims);
    return true;
}

static int64_t clamped(int64_t value, int64_t high)
{
    return value < 0 ? 0 : value > high ? high : value;
}

bool infer_shape(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    int64_t start = node_int(graph_node(infer->graph, node), ATTR_start, 0);
    int64_t end = node_int(graph_node(infer->graph, node), ATTR_end, x->rank);
    start = clamped(start < 0 ? start + x->rank : start, x->rank);
    end = clamped(end < 0 ? end + x->rank : end, x->rank);
    become_dims(infer, node, 1, end > start ? (uint32_t)(end - start) : 0,
                end > start ? x->dims + start : x->dims);
    return true;
}

bool infer_size(struct infer *infer, node_id node)
{
    const dim elements = tensor_elements(&infer->graph->dims, infer_input(infer, node, 0));
    if (elements == DIM_NONE)
        return infer_fail(infer, node, DIAG_limit_exceeded, "the number of elements overflows");
    become_dims(infer, node, 0, 1, &elements);
    return true;
}

/* A range of floats has a length only when its three inputs are constants. */
static bool float_range_length(struct infer *infer, node_id node, dim *length)
{
    double number[3];
    for (uint32_t i = 0; i < 3; i++)
        if (!value_constant_float(infer->graph, graph_node(infer->graph, node)->inputs[i], &number[i]))
            return infer_fail(infer, node, DIAG_unknown_shape,
                              "input %u of a range of floats must be a constant", i);
    const double count = ceil((number[1] - number[0]) / number[2]);
    if (!(count < 0x1p40))
        return infer_fail(infer, node, DIAG_wrong_shape, "the range has no length");
    *length = dim_constant(&infer->graph->dims, count > 0 ? (int64_t)count : 0);
    return true;
}

/* Floats that hold sizes, as some exporters make them. */
static bool known_ends(struct infer *infer, node_id node, dim ends[3])
{
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t count;
        const dim *known = infer_value_contents(infer, graph_node(infer->graph, node)->inputs[i], &count);
        if (!known || count != 1 || known[0] == DIM_NONE)
            return false;
        ends[i] = known[0];
    }
    return true;
}

bool infer_range(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const enum dtype dtype = infer_input(infer, node, 0)->dtype;
    const bool floats = dtype_is_float(dtype);
    dim length, ends[3];
    if (!infer_takes(infer, node, 0, DTYPES_NUMBER) || !infer_same_dtype(infer, node, 0, 1) ||
        !infer_same_dtype(infer, node, 0, 2))
        return false;
    for (uint32_t i = 0; i < 3 && !floats; i++) {
        uint32_t count;
        const dim *end = infer_shape_input(infer, node, i, &count);
        if (!end)
            return false;
        if (count != 1)
            return infer_fail(infer, node, DIAG_wrong_shape, "input %u is %s; it must be one number", i,
                              infer_type_text(infer, infer_input(infer, node, i)));
        ends[i] = end[0];
    }
    if (floats && !known_ends(infer, node, ends)) {
        if (!float_range_length(infer, node, &length))
            return false;
    } else {
        length = dim_ceil_div(dims, dim_sub(dims, ends[1], ends[0]), ends[2]);
        if (length == DIM_NONE)
            return infer_fail(infer, node, DIAG_unknown_shape, "the step of a range must be known and not 0");
        length = dim_max(dims, length, dim_constant(dims, 0));
    }
    if (floats)
        graph_freeze_inputs(infer->graph, node, "the shape");
    infer_set(infer, node, 0, dtype, 1, &length);
    return true;
}
