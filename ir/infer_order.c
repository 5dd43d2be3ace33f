/* Shapes of operators that order or choose elements: TopK. */
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
