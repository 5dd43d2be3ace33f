/* Operators that choose single elements.
 *
 *   Clip   y[i] = min(max(x[i], low), high); high wins where low > high; NaN stays
 *   Where  y[i] = condition[i] ? a[i] : b[i], all three broadcast
 *   Trilu  y[.., i, j] = x[.., i, j] where j - i >= k (upper) or j - i <= k (lower), else 0 */
#include "ir/definitions/build.h"

bool define_clip(struct build *b)
{
    struct nest *nest = nest_over(b, build_output(b, 0));
    expr axes[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    expr y = load_input(b, 0, axes);
    const enum dtype dtype = expr_at(b->pool, y)->dtype;
    if (dtype == DTYPE_BOOL)
        return build_refuse(b, "not implemented for elements of type bool");
    if (build_has_input(b, 1))
        y = maximum(b, y, convert(b, dtype, load_scalar(b, 1)));
    if (build_has_input(b, 2))
        y = minimum(b, y, convert(b, dtype, load_scalar(b, 2)));
    store_output(b, nest, 0, NULL, y);
    return true;
}

bool define_where(struct build *b)
{
    const struct tensor_type *result = build_output(b, 0);
    if (build_input(b, 0)->dtype != DTYPE_BOOL || build_input(b, 1)->dtype != build_input(b, 2)->dtype)
        return build_refuse(b, "the condition must be bool and both branches of one type");
    struct nest *nest = nest_over(b, result);
    expr axes[MAX_RANK], indices[MAX_RANK], operands[3];
    nest_axes(b, nest, nest->rank, axes);
    for (uint32_t i = 0; i < 3; i++) {
        broadcast_indices(b, build_input(b, i), nest->rank, result->dims, axes, indices);
        operands[i] = load_stored(b, i, indices);
    }
    store_output(b, nest, 0, NULL, choose(b, operands[0], operands[1], operands[2]));
    return true;
}

bool define_trilu(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    if (type->rank < 2)
        return build_refuse(b, "the input has fewer than two dims");
    struct nest *nest = nest_over(b, build_output(b, 0));
    expr axes[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    expr k = build_has_input(b, 1) ? convert(b, DTYPE_I64, load_scalar(b, 1)) : position(b, 0);
    expr row = axes[nest->rank - 2], column = axes[nest->rank - 1];
    /* Compared so that no k overflows: j - i is small, k is any number. */
    expr diagonal = sub(b, column, row);
    expr kept = node_int(b->node, ATTR_upper, 1) ? expr_binary(b->pool, EXPR_LESS_EQUAL, k, diagonal)
                                                 : expr_binary(b->pool, EXPR_LESS_EQUAL, diagonal, k);
    store_output(b, nest, 0, NULL, choose(b, kept, load_stored(b, 0, axes), number(b, type->dtype, 0)));
    return true;
}
