/* Types of QuantizeLinear and DequantizeLinear. Bound: the axis counts from the front, the result's type
 * stands in output_dtype. */
#include "ir/infer_internal.h"

#include <string.h>

/* The scale or zero point (`input`) has one number, one a position of the axis, or one a block of it. */
static bool check_factor(struct infer *infer, node_id node, uint32_t input, uint32_t axis)
{
    struct dims *dims = &infer->graph->dims;
    const struct tensor_type *x = infer_input(infer, node, 0), *factor = infer_input(infer, node, input);
    const int64_t block = node_int(graph_node(infer->graph, node), ATTR_block_size, 0);
    if (!factor)
        return true;
    if (block < 0)
        return infer_fail(infer, node, DIAG_wrong_attribute, "block_size is negative");
    if (!block) {
        if (factor->rank == 0 || (factor->rank == 1 && dim_equals_constant(dims, factor->dims[0], 1)))
            return true;
        if (factor->rank != 1 || x->rank < 1)
            return infer_fail(infer, node, DIAG_wrong_shape,
                              "input %u is %s; it must be a scalar or a vector", input,
                              infer_type_text(infer, factor));
        return infer_equal(infer, node, factor->dims[0], x->dims[axis], "one number a position of the axis");
    }
    if (factor->rank != x->rank || x->rank < 1)
        return infer_fail(infer, node, DIAG_wrong_shape,
                          "input %u is %s; with blocks it must have the rank of %s", input,
                          infer_type_text(infer, factor), infer_type_text(infer, x));
    for (int i = 0; i < x->rank; i++) {
        const dim size =
            i == (int)axis ? dim_ceil_div(dims, x->dims[i], dim_constant(dims, block)) : x->dims[i];
        if (!infer_equal(infer, node, factor->dims[i], size, "one number a block"))
            return false;
    }
    return true;
}

static bool bind(struct infer *infer, node_id node, enum dtype result)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    const int64_t stated = node_int(graph_node(infer->graph, node), ATTR_axis, 1);
    const bool whole =
        x->rank == 0 || stated >= x->rank; /* one number for all: the default axis may not exist */
    uint32_t axis = 0;
    if (!whole && !infer_axis(infer, node, stated, x->rank, &axis))
        return false;
    for (uint32_t i = 1; i <= 2; i++) {
        const struct tensor_type *factor = infer_input(infer, node, i);
        if (whole && factor && factor->rank > 0 &&
            !dim_equals_constant(&infer->graph->dims, factor->dims[0], 1))
            return infer_axis(infer, node, stated, x->rank, &axis); /* reports */
        if (!check_factor(infer, node, i, axis))
            return false;
    }
    const struct attribute type = attribute_dtype(ATTR_output_dtype, result);
    node_set_attribute(infer->graph, node, &type);
    infer_set_int(infer, node, ATTR_axis, axis);
    x = infer_input(infer, node, 0);
    infer_set(infer, node, 0, result, x->rank, x->dims);
    return true;
}

bool infer_dequantize(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0), *scale = infer_input(infer, node, 1);
    const enum dtype stated =
        (enum dtype)node_int(graph_node(infer->graph, node), ATTR_output_dtype, DTYPE_NONE);
    const enum dtype result = stated ? stated : scale->dtype;
    if (!(DTYPES_FLOAT >> result & 1))
        return infer_fail(infer, node, DIAG_wrong_type, "a result of type %s", dtype_name(result));
    const struct tensor_type *zero = infer_input(infer, node, 2);
    if (zero && zero->dtype != x->dtype)
        return infer_same_dtype(infer, node, 0, 2);
    return bind(infer, node, result);
}

bool infer_quantize(struct infer *infer, node_id node)
{
    const struct tensor_type *zero = infer_input(infer, node, 2);
    const enum dtype stated =
        (enum dtype)node_int(graph_node(infer->graph, node), ATTR_output_dtype, DTYPE_NONE);
    if (zero && stated && stated != zero->dtype)
        return infer_fail(infer, node, DIAG_wrong_type, "output_dtype is %s, but the zero point is %s",
                          dtype_name(stated), dtype_name(zero->dtype));
    return infer_takes(infer, node, 0, DTYPES_FLOAT | DTYPE_BIT(I32)) && bind(infer, node,
                                                                              zero     ? zero->dtype
                                                                              : stated ? stated
                                                                                       : DTYPE_U8);
}

bool infer_quantize_range(struct infer *infer, node_id node)
{
    if (!infer_takes(infer, node, 0, DTYPE_BIT(F32)))
        return false;
    infer_set(infer, node, 0, DTYPE_F32, 0, NULL);
    infer_set(infer, node, 1, DTYPE_U8, 0, NULL);
    return true;
}
