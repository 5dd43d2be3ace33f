/* Shapes of operators that order or choose elements: TopK, NonMaxSuppression. */
#include "ir/infer_internal.h"

#include <string.h>

/* Bound: K, once an input, stands in the dims of the results. */
bool infer_top_k(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const struct tensor_type *x = infer_input(infer, node, 0);
    uint32_t axis, count;
    dim result[MAX_RANK], taken;
    if (!infer_takes(infer, node, 0, DTYPES_NUMBER) ||
        !infer_axis(infer, node, node_int(graph_node(infer->graph, node), ATTR_axis, -1), x->rank, &axis))
        return false;
    if (infer_input(infer, node, 1)) {
        const dim *given = infer_shape_input(infer, node, 1, &count);
        if (!given)
            return false;
        if (count != 1)
            return infer_fail(infer, node, DIAG_wrong_shape, "input 1 must be one number");
        taken = given[0];
    } else {
        const struct node *n = graph_node(infer->graph, node); /* bound before */
        taken = graph_value(infer->graph, n->outputs[0] ? n->outputs[0] : n->outputs[1])->type.dims[axis];
    }
    x = infer_input(infer, node, 0);
    if (dim_less(dims, x->dims[axis], taken) == 1)
        return infer_fail(infer, node, DIAG_wrong_shape, "%s elements are taken from axis %u of %s",
                          infer_dim_text(infer, taken), axis, infer_type_text(infer, x));
    if (dim_less(dims, x->dims[axis], taken) < 0 &&
        !infer_equal(infer, node, dim_min(dims, taken, x->dims[axis]), taken,
                     "K, which must not pass the axis"))
        return false;
    memcpy(result, x->dims, (size_t)x->rank * sizeof *result);
    result[axis] = taken;
    infer_keep_inputs(infer, node, 1);
    infer_set_int(infer, node, ATTR_axis, axis);
    x = infer_input(infer, node, 0);
    infer_set(infer, node, 0, x->dtype, x->rank, result);
    infer_set(infer, node, 1, DTYPE_I64, x->rank, result);
    return true;
}

/* boxes [b, n, 4]; places and scores [b, c, n]; the rest one element each. */
bool infer_non_max_suppression(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const struct tensor_type *boxes = infer_input(infer, node, 0), *places = infer_input(infer, node, 1);
    const struct tensor_type *scores = infer_input(infer, node, 2);
    const dtype_set single = DTYPE_BIT(F32), count = DTYPE_BIT(I64);
    if (!infer_takes(infer, node, 0, single) || !infer_takes(infer, node, 1, count) ||
        !infer_takes(infer, node, 2, single) || !infer_takes(infer, node, 3, count) ||
        !infer_takes(infer, node, 4, single) || !infer_takes(infer, node, 5, single))
        return false;
    if (boxes->rank != 3 || scores->rank != 3)
        return infer_fail(
            infer, node, DIAG_wrong_shape,
            "boxes are %s and scores %s; they must be [batches, boxes, 4] and [batches, classes, boxes]",
            infer_type_text(infer, boxes), infer_type_text(infer, scores));
    if (!infer_equal(infer, node, boxes->dims[2], dim_constant(dims, 4), "the numbers of a box") ||
        !infer_equal(infer, node, boxes->dims[0], scores->dims[0], "the batches of boxes and scores") ||
        !infer_equal(infer, node, boxes->dims[1], scores->dims[2], "the boxes and their scores"))
        return false;
    for (int i = 0; i < 3; i++)
        if (places->rank != 3 ||
            !infer_equal(infer, node, places->dims[i], scores->dims[i], "places and scores"))
            return false;
    infer_set(infer, node, 0, DTYPE_BOOL, 3, infer_input(infer, node, 2)->dims);
    return true;
}
