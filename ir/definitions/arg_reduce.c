/* ArgMax, ArgMin: where along an axis the largest or smallest element stands, in two nests that share their
 * rows:
 *
 *   m[row] = max over i of x            ArgMin: min
 *   y[row] = min over i of (x is m ? i : n)       select_last_index: max over i of (x is m ? i : 0)
 *
 * x is m where they are equal or both NaN: a NaN is the extreme, as in numpy. The axis is not empty
 * (inferred). */
#include "ir/definitions/build.h"

/* Indices in the narrowest type that holds every index of the axis. */
static enum dtype index_dtype(const struct build *b, dim extent)
{
    int64_t low, high;
    dim_range(b->dims, extent, &low, &high);
    return high <= INT32_MAX ? DTYPE_I32 : DTYPE_I64;
}

bool define_arg_reduce(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    const uint32_t rank = (uint32_t)type->rank;
    const bool keep = node_int(b->node, ATTR_keepdims, 1) != 0;
    const bool last = node_int(b->node, ATTR_select_last_index, 0) != 0;
    uint32_t axis;
    if (!(DTYPES_NUMBER >> type->dtype & 1))
        return build_refuse(b, "not implemented for elements of type %s", dtype_name(type->dtype));
    if (!build_axis(b, ATTR_axis, 0, type->rank, &axis))
        return false;
    const dim length = type->dims[axis];
    const enum dtype dtype = compute_dtype(type->dtype), place = index_dtype(b, length);
    dim rows[MAX_RANK];
    uint32_t row_rank = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (i != axis || keep)
            rows[row_rank++] = i == axis ? dim_constant(b->dims, 1) : type->dims[i];
    const uint32_t extreme = build_temporary(b, dtype, row_rank, rows);
    for (uint32_t pass = 0; pass < 2; pass++) {
        struct nest *nest = definition_nest(b->d, row_rank, rows, 1, &length);
        expr row[MAX_RANK], at[MAX_RANK];
        nest_axes(b, nest, row_rank, row);
        const expr along = nest_axis(b->d, nest, row_rank);
        for (uint32_t i = 0; i < rank; i++)
            at[i] = i == axis ? along : row[i > axis && !keep ? i - 1 : i];
        const expr x = load_input(b, 0, at);
        if (pass == 0) {
            const uint32_t found =
                nest_reduce(b->d, nest, b->node->op == OP_ArgMax ? REDUCE_MAX : REDUCE_MIN, x);
            nest_store(b->d, nest, extreme, NULL, expr_reduced(b->pool, found, dtype));
            continue;
        }
        const expr m = load_buffer(b, extreme, row);
        expr same = equal(b, x, m);
        if (dtype_is_float(dtype))
            same = expr_binary(b->pool, EXPR_OR, same,
                               expr_binary(b->pool, EXPR_AND, expr_binary(b->pool, EXPR_NOT_EQUAL, x, x),
                                           expr_binary(b->pool, EXPR_NOT_EQUAL, m, m)));
        const expr other = last ? number(b, place, 0) : size_as(b, place, length);
        const uint32_t found = nest_reduce(b->d, nest, last ? REDUCE_MAX : REDUCE_MIN,
                                           choose(b, same, convert(b, place, along), other));
        store_output(b, nest, 0, NULL, expr_reduced(b->pool, found, place));
    }
    return true;
}
