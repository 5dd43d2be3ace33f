/* CumSum, CumProd: running sums and products along an axis, as a scan of the compute type.
 *
 *   y[.., i, ..] = x[.., 0, ..] op .. op x[.., i, ..]        exclusive: up to i - 1, and 0 or 1 for i = 0
 *
 * Reverse: the same from the end. Both are index maps: point k of the scan is element k, or n - 1 - k; an
 * exclusive scan's body loads the point before, and the neutral element outside. */
#include "ir/definitions/build.h"

bool define_cumulative(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    const uint32_t rank = (uint32_t)type->rank;
    const bool exclusive = node_int(b->node, ATTR_exclusive, 0) != 0,
               reverse = node_int(b->node, ATTR_reverse, 0) != 0;
    const enum reduce_op op = b->node->op == OP_CumProd ? REDUCE_PRODUCT : REDUCE_SUM;
    const enum dtype dtype = compute_dtype(type->dtype);
    uint32_t axis;
    dim rows[MAX_RANK];
    expr from[MAX_RANK], to[MAX_RANK];
    if (!(DTYPES_NUMBER >> type->dtype & 1))
        return build_refuse(b, "not implemented for elements of type %s", dtype_name(type->dtype));
    if (!build_axis(b, ATTR_axis, 0, type->rank, &axis))
        return false;
    for (uint32_t i = 0; i + 1 < rank; i++)
        rows[i] = type->dims[i + (i >= axis)];
    struct nest *nest = definition_nest(b->d, rank - 1, rows, 1, &type->dims[axis]);
    nest->kind = NEST_SCAN;
    const expr step = nest_axis(b->d, nest, rank - 1),
               last = sub(b, size(b, type->dims[axis]), position(b, 1));
    for (uint32_t i = 0; i < rank; i++)
        if (i != axis)
            from[i] = to[i] = nest_axis(b->d, nest, i - (i > axis));
    to[axis] = reverse ? sub(b, last, step) : step;
    from[axis] = !exclusive ? to[axis]
                 : reverse  ? add(b, to[axis], position(b, 1))
                            : sub(b, step, position(b, 1));
    const expr x = exclusive ? load_input_or(b, 0, from, number(b, type->dtype, op == REDUCE_PRODUCT))
                             : load_input(b, 0, from);
    const uint32_t running = nest_reduce(b->d, nest, op, x);
    store_output(b, nest, 0, to, expr_reduced(b->pool, running, dtype));
    return true;
}
