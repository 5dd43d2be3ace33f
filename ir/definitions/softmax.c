/* Softmax and LogSoftmax over one axis, in three nests:
 *
 *   m[row] = max over the axis of x
 *   s[row] = sum over the axis of exp(x - m)
 *   y      = exp(x - m) / s           LogSoftmax:  x - m - log(s)
 *
 * m and s have the dims of x without the axis and its compute type. */
#include "ir/definitions/build.h"

bool define_softmax(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    const enum dtype dtype = compute_dtype(type->dtype);
    const uint32_t rank = (uint32_t)type->rank;
    uint32_t axis;
    if (!dtype_is_float(type->dtype))
        return build_refuse(b, "not implemented for elements of type %s", dtype_name(type->dtype));
    if (!build_axis(b, ATTR_axis, -1, type->rank, &axis))
        return false;
    dim row_dims[MAX_RANK];
    expr axes[MAX_RANK], row[MAX_RANK];
    for (uint32_t i = 0; i + 1 < rank; i++)
        row_dims[i] = type->dims[i + (i >= axis)];
    const uint32_t largest = build_temporary(b, dtype, rank - 1, row_dims);
    const uint32_t total = build_temporary(b, dtype, rank - 1, row_dims);
    for (uint32_t pass = 0; pass < 2; pass++) {
        struct nest *nest = definition_nest(b->d, rank - 1, row_dims, 1, &type->dims[axis]);
        nest_axes(b, nest, rank - 1, row);
        for (uint32_t i = 0; i < rank; i++)
            axes[i] = i == axis ? nest_axis(b->d, nest, rank - 1) : row[i - (i > axis)];
        expr body = load_input(b, 0, axes);
        if (pass)
            body = function(b, EXPR_EXP, sub(b, body, load_buffer(b, largest, row)));
        const uint32_t reduction = nest_reduce(b->d, nest, pass ? REDUCE_SUM : REDUCE_MAX, body);
        nest_store(b->d, nest, pass ? total : largest, NULL, expr_reduced(b->pool, reduction, dtype));
    }
    struct nest *nest = nest_over(b, type);
    nest_axes(b, nest, rank, axes);
    for (uint32_t i = 0; i + 1 < rank; i++)
        row[i] = axes[i + (i >= axis)];
    expr shifted = sub(b, load_input(b, 0, axes), load_buffer(b, largest, row));
    expr sum = load_buffer(b, total, row);
    store_output(b, nest, 0, NULL,
                 b->node->op == OP_LogSoftmax ? sub(b, shifted, function(b, EXPR_LOG, sum))
                                              : divide(b, function(b, EXPR_EXP, shifted), sum));
    return true;
}
