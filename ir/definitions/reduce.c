/* Reductions over some axes: y[kept] = combine over the reduced axes of x, in the compute type (f16 and bf16
 * in f32).
 *
 *   ReduceSum, ReduceProd, ReduceMax, ReduceMin   an empty domain gives 0, 1, the lowest, the highest
 *   ReduceMean                                    sum / count: floats NaN, integers 0 where the count is 0
 *
 * Bools take part in ReduceMax (any) and ReduceMin (all) as 0 and 1. */
#include "ir/definitions/build.h"

static enum reduce_op reduce_op_of(enum op op)
{
    switch (op) {
    case OP_ReduceMax:
        return REDUCE_MAX;
    case OP_ReduceMin:
        return REDUCE_MIN;
    case OP_ReduceProd:
        return REDUCE_PRODUCT;
    default:
        return REDUCE_SUM;
    }
}

/* No axes: all of them, unless noop_with_empty_axes. */
static bool find_axes(struct build *b, uint32_t rank, bool *reduced)
{
    const struct attribute *axes = node_attribute(b->node, ATTR_axes);
    const uint32_t count = axes ? axes->count : 0;
    const bool all = !count && !node_int(b->node, ATTR_noop_with_empty_axes, 0);
    for (uint32_t i = 0; i < rank; i++)
        reduced[i] = all;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t axis = axes->integers[i] < 0 ? axes->integers[i] + rank : axes->integers[i];
        if (axis < 0 || axis >= rank)
            return build_refuse(b, "an axis is outside the rank %u", (unsigned)rank);
        reduced[axis] = true;
    }
    return true;
}

/* An empty domain gives the extreme of i32 where i8 and i16 are reduced: held within the element type. */
static expr hold_in_type(struct build *b, enum reduce_op op, expr y, enum dtype storage)
{
    const enum dtype dtype = expr_at(b->pool, y)->dtype;
    if ((storage != DTYPE_I8 && storage != DTYPE_I16) || (op != REDUCE_MAX && op != REDUCE_MIN))
        return y;
    const int64_t low = INT64_MIN >> (64 - dtype_bits(storage));
    return op == REDUCE_MAX ? maximum(b, y, expr_int(b->pool, dtype, low))
                            : minimum(b, y, expr_int(b->pool, dtype, -low - 1));
}

bool define_reduce(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    const uint32_t rank = (uint32_t)type->rank;
    const enum reduce_op op = reduce_op_of(b->node->op);
    if (type->dtype == DTYPE_BOOL && op != REDUCE_MAX && op != REDUCE_MIN)
        return build_refuse(b, "not implemented for elements of type bool");
    bool reduced[MAX_RANK];
    if (!find_axes(b, rank, reduced))
        return false;
    const bool keep = node_int(b->node, ATTR_keepdims, 1) != 0;
    dim kept_dims[MAX_RANK], reduced_dims[MAX_RANK], count = dim_constant(b->dims, 1);
    uint32_t kept = 0, gone = 0, place[MAX_RANK]; /* of x's axes among the nest's */
    for (uint32_t i = 0; i < rank; i++) {
        if (reduced[i]) {
            reduced_dims[gone++] = type->dims[i];
            count = dim_mul(b->dims, count, type->dims[i]);
        }
        if (!reduced[i] || keep) {
            place[i] = kept;
            kept_dims[kept++] = reduced[i] ? dim_constant(b->dims, 1) : type->dims[i];
        }
    }
    if (!count)
        return build_refuse(b, "the number of reduced elements overflows");
    struct nest *nest = definition_nest(b->d, kept, kept_dims, gone, reduced_dims);
    expr indices[MAX_RANK];
    for (uint32_t i = 0, next = kept; i < rank; i++)
        indices[i] = nest_axis(b->d, nest, reduced[i] ? next++ : place[i]);
    expr x = load_input(b, 0, indices);
    if (type->dtype == DTYPE_BOOL)
        x = convert(b, DTYPE_U32, x);
    const enum dtype dtype = expr_at(b->pool, x)->dtype;
    expr y = gone ? expr_reduced(b->pool, nest_reduce(b->d, nest, op, x), dtype) : x;
    if (b->node->op == OP_ReduceMean)
        y = divide(b, y, size_as(b, dtype, count));
    store_output(b, nest, 0, NULL, hold_in_type(b, op, y, type->dtype));
    return true;
}
