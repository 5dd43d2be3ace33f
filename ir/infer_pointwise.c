/* Shapes of operators whose result has the input's dims, of broadcasting ones, of reductions and row
 * operators. */
#include "ir/infer_internal.h"

#include <string.h>

/* The element types that an operator with one main input takes. */
static dtype_set unary_types(enum op op)
{
    switch (op) {
    case OP_Identity:
        return UINT32_MAX;
    case OP_Not:
        return DTYPES_BOOL;
    case OP_Abs:
    case OP_Neg:
    case OP_Relu:
    case OP_Shrink:
    case OP_Sign:
        return DTYPES_NUMBER;
    case OP_BitwiseNot:
        return DTYPES_INTEGER;
    default:
        return DTYPES_FLOAT;
    }
}

/* Vectors of one element a channel beside the main input: all have the size of axis 1. */
static bool check_channels(struct infer *infer, node_id node, uint32_t count)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    if (x->rank < 2)
        return infer_fail(infer, node, DIAG_wrong_shape,
                          "input 0 is %s; it must have a batch and a channel axis",
                          infer_type_text(infer, x));
    for (uint32_t i = 1; i <= count; i++) {
        const struct tensor_type *vector = infer_input(infer, node, i);
        if (vector->rank != 1)
            return infer_fail(infer, node, DIAG_wrong_shape, "input %u is %s; it must be a vector", i,
                              infer_type_text(infer, vector));
        if (!infer_takes(infer, node, i, DTYPES_FLOAT) ||
            !infer_equal(infer, node, vector->dims[0], x->dims[1], "one element a channel"))
            return false;
    }
    return true;
}

bool infer_same(struct infer *infer, node_id node)
{
    const enum op op = graph_node(infer->graph, node)->op;
    if (!infer_takes(infer, node, 0, unary_types(op)))
        return false;
    if (op == OP_BatchNormalization && !check_channels(infer, node, 4))
        return false;
    if (op == OP_InstanceNormalization && !check_channels(infer, node, 2))
        return false;
    const struct tensor_type *x = infer_input(infer, node, 0);
    if (op == OP_Softmax || op == OP_LogSoftmax) {
        uint32_t axis;
        if (!infer_axis(infer, node, node_int(graph_node(infer->graph, node), ATTR_axis, -1), x->rank, &axis))
            return false;
        infer_set_int(infer, node, ATTR_axis, axis);
        x = infer_input(infer, node, 0);
    }
    infer_set(infer, node, 0, x->dtype, x->rank, x->dims);
    return true;
}

bool infer_cast(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    const enum dtype to = (enum dtype)node_int(graph_node(infer->graph, node), ATTR_to, DTYPE_NONE);
    if (to == DTYPE_NONE || dtype_class(to) == DTYPE_CLASS_OTHER ||
        dtype_class(x->dtype) == DTYPE_CLASS_OTHER)
        return infer_fail(infer, node, DIAG_unsupported_case, "a cast from %s to %s is not implemented",
                          dtype_name(x->dtype), dtype_name(to));
    infer_set(infer, node, 0, to, x->rank, x->dims);
    return true;
}

bool infer_bool(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    if (!infer_takes(infer, node, 0, DTYPES_FLOAT))
        return false;
    infer_set(infer, node, 0, DTYPE_BOOL, x->rank, x->dims);
    return true;
}

/* Inputs first and second broadcast; the result has the given type (NONE: the first one's). */
static bool set_broadcast(struct infer *infer, node_id node, uint32_t first, uint32_t second,
                          enum dtype dtype)
{
    const struct tensor_type *a = infer_input(infer, node, first), *b = infer_input(infer, node, second);
    dim dims[MAX_RANK];
    int rank;
    if (!infer_broadcast_dims(infer, node, a, b, &rank, dims))
        return false;
    infer_set(infer, node, 0, dtype == DTYPE_NONE ? a->dtype : dtype, rank, dims);
    return true;
}

bool infer_broadcast(struct infer *infer, node_id node)
{
    const enum op op = graph_node(infer->graph, node)->op;
    const bool logic = op == OP_And || op == OP_Or || op == OP_Xor;
    const bool bits = op == OP_BitShift || op == OP_BitwiseAnd || op == OP_BitwiseOr || op == OP_BitwiseXor;
    if (!infer_takes(infer, node, 0,
                     logic  ? DTYPES_BOOL
                     : bits ? DTYPES_INTEGER
                            : DTYPES_NUMBER) ||
        !infer_same_dtype(infer, node, 0, 1))
        return false;
    if (op == OP_PRelu &&
        !infer_broadcasts_to(infer, node, infer_input(infer, node, 1), infer_input(infer, node, 0)))
        return false;
    return set_broadcast(infer, node, 0, 1, DTYPE_NONE);
}

bool infer_compare(struct infer *infer, node_id node)
{
    const bool equal = graph_node(infer->graph, node)->op == OP_Equal;
    return infer_takes(infer, node, 0, equal ? DTYPES_COMPUTE : DTYPES_NUMBER) &&
           infer_same_dtype(infer, node, 0, 1) && set_broadcast(infer, node, 0, 1, DTYPE_BOOL);
}

bool infer_pow(struct infer *infer, node_id node)
{
    return infer_takes(infer, node, 0, DTYPES_NUMBER) && infer_takes(infer, node, 1, DTYPES_NUMBER) &&
           set_broadcast(infer, node, 0, 1, DTYPE_NONE);
}

bool infer_clip(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    if (!infer_takes(infer, node, 0, DTYPES_NUMBER))
        return false;
    for (uint32_t i = 1; i <= 2; i++) {
        const struct tensor_type *bound = infer_input(infer, node, i);
        int64_t elements;
        if (!bound)
            continue;
        if (!infer_same_dtype(infer, node, 0, i))
            return false;
        if (!tensor_constant_sizes(&infer->graph->dims, bound, NULL, &elements) || elements != 1)
            return infer_fail(infer, node, DIAG_wrong_shape, "input %u is %s; a bound must be one number", i,
                              infer_type_text(infer, bound));
    }
    infer_set(infer, node, 0, x->dtype, x->rank, x->dims);
    return true;
}

bool infer_where(struct infer *infer, node_id node)
{
    struct tensor_type values = {.dtype = DTYPE_BOOL};
    dim dims[MAX_RANK], all[MAX_RANK];
    int rank;
    if (!infer_takes(infer, node, 0, DTYPES_BOOL) || !infer_same_dtype(infer, node, 1, 2))
        return false;
    const struct tensor_type *condition = infer_input(infer, node, 0), *x = infer_input(infer, node, 1);
    values.dims = dims;
    values.dtype = x->dtype;
    if (!infer_broadcast_dims(infer, node, x, infer_input(infer, node, 2), &values.rank, dims) ||
        !infer_broadcast_dims(infer, node, condition, &values, &rank, all))
        return false;
    infer_set(infer, node, 0, x->dtype, rank, all);
    return true;
}

bool infer_trilu(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0), *k = infer_input(infer, node, 1);
    int64_t elements;
    if (x->rank < 2)
        return infer_fail(infer, node, DIAG_wrong_shape, "input 0 is %s; it must have two axes at least",
                          infer_type_text(infer, x));
    if (k && (!tensor_constant_sizes(&infer->graph->dims, k, NULL, &elements) || elements != 1))
        return infer_fail(infer, node, DIAG_wrong_shape, "input 1 is %s; it must be one number",
                          infer_type_text(infer, k));
    if (!infer_takes(infer, node, 1, DTYPE_BIT(I64)))
        return false;
    infer_set(infer, node, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* Bound: axes stand in the attribute, keepdims too. No axes and noop_with_empty_axes: the input itself. */
bool infer_reduce(struct infer *infer, node_id node)
{
    const enum op op = graph_node(infer->graph, node)->op;
    const struct tensor_type *x = infer_input(infer, node, 0);
    const bool extreme = op == OP_ReduceMax || op == OP_ReduceMin;
    uint32_t axes[MAX_RANK], count = 0;
    bool given, reduced[MAX_RANK] = {false};
    if (!infer_takes(infer, node, 0, extreme ? DTYPES_COMPUTE : DTYPES_NUMBER) ||
        !infer_axes(infer, node, 1, x->rank, axes, &count, &given))
        return false;
    if (count == 0 && node_int(graph_node(infer->graph, node), ATTR_noop_with_empty_axes, 0) != 0) {
        infer_become(infer, node, OP_Identity);
        infer_set(infer, node, 0, x->dtype, x->rank, x->dims);
        return true;
    }
    if (count == 0)
        for (; count < (uint32_t)x->rank; count++)
            axes[count] = count;
    int64_t bound[MAX_RANK];
    for (uint32_t i = 0; i < count; i++) {
        reduced[axes[i]] = true;
        bound[i] = axes[i];
    }
    const bool keep = node_int(graph_node(infer->graph, node), ATTR_keepdims, 1) != 0;
    dim dims[MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (!reduced[i] || keep)
            dims[rank++] = reduced[i] ? dim_constant(&infer->graph->dims, 1) : x->dims[i];
    infer_set(infer, node, 0, x->dtype, rank, dims);
    infer_keep_inputs(infer, node, 1);
    node_remove_attribute(graph_node(infer->graph, node), ATTR_noop_with_empty_axes);
    infer_set_ints(infer, node, ATTR_axes, count, bound);
    infer_set_int(infer, node, ATTR_keepdims, keep);
    return true;
}

bool infer_arg_reduce(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const struct node *n = graph_node(infer->graph, node);
    const struct tensor_type *x = infer_input(infer, node, 0);
    const bool keep = node_int(n, ATTR_keepdims, 1) != 0;
    uint32_t axis;
    dim result[MAX_RANK];
    int rank = 0;
    if (!infer_takes(infer, node, 0, DTYPES_NUMBER) ||
        !infer_axis(infer, node, node_int(n, ATTR_axis, 0), x->rank, &axis))
        return false;
    if (!dim_assume_at_least(dims, x->dims[axis], 1, n->location))
        return infer_fail(infer, node, DIAG_wrong_shape, "axis %u of %s is empty: it has no largest element",
                          axis, infer_type_text(infer, x));
    for (int i = 0; i < x->rank; i++)
        if (i != (int)axis || keep)
            result[rank++] = i == (int)axis ? dim_constant(dims, 1) : x->dims[i];
    infer_set(infer, node, 0, DTYPE_I64, rank, result);
    infer_set_int(infer, node, ATTR_axis, axis);
    return true;
}

/* Bound: the axis, once an input, stands in the attribute. */
bool infer_cumulative(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    int64_t axis = node_int(graph_node(infer->graph, node), ATTR_axis, 0);
    uint32_t front, count;
    if (!infer_takes(infer, node, 0, DTYPES_NUMBER))
        return false;
    if (infer_input(infer, node, 1) &&
        (!infer_constant_input(infer, node, 1, &axis, 1, &count) ||
         (count != 1 && !infer_fail(infer, node, DIAG_wrong_shape, "input 1 must be one axis"))))
        return false;
    if (!infer_axis(infer, node, axis, x->rank, &front))
        return false;
    infer_keep_inputs(infer, node, 1);
    infer_set_int(infer, node, ATTR_axis, front);
    x = infer_input(infer, node, 0);
    infer_set(infer, node, 0, x->dtype, x->rank, x->dims);
    return true;
}

bool infer_layer_normalization(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    uint32_t axis;
    dim dims[MAX_RANK];
    if (!infer_takes(infer, node, 0, DTYPES_FLOAT) ||
        !infer_axis(infer, node, node_int(graph_node(infer->graph, node), ATTR_axis, -1), x->rank, &axis))
        return false;
    for (uint32_t i = 1; i <= 2; i++) {
        const struct tensor_type *factor = infer_input(infer, node, i);
        if (factor &&
            (!infer_takes(infer, node, i, DTYPES_FLOAT) || !infer_broadcasts_to(infer, node, factor, x)))
            return false;
    }
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < (int)axis ? x->dims[i] : dim_constant(&infer->graph->dims, 1);
    const enum dtype statistics =
        (enum dtype)node_int(graph_node(infer->graph, node), ATTR_stash_type, DTYPE_F32);
    infer_set_int(infer, node, ATTR_axis, axis);
    infer_set(infer, node, 0, x->dtype, x->rank, x->dims);
    infer_set(infer, node, 1, statistics, x->rank, dims);
    infer_set(infer, node, 2, statistics, x->rank, dims);
    return true;
}
