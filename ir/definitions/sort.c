/* TopK, by sorting the places of each row:
 *
 *   key of x = an unsigned integer that orders as x does; its complement when the largest come first
 *   values[.., k, ..] = x[.., p, ..], indices[.., k, ..] = p        p: the place of the k-th key, equal ones
 * by place
 *
 * -0 and 0 are equal, and a NaN is greater than everything, as in ONNX Runtime. Unsorted results are allowed
 * any order and have this one. */
#include "ir/definitions/build.h"

expr ordered_key(struct build *b, expr x)
{
    const enum dtype dtype = expr_at(b->pool, x)->dtype;
    const bool wide = dtype_bits(dtype) == 64;
    const enum dtype key = wide ? DTYPE_U64 : DTYPE_U32;
    const expr sign = expr_int(b->pool, key, INT64_MIN >> (wide ? 0 : 32));
    if (!dtype_is_float(dtype)) {
        x = convert(b, key, x);
        return dtype_class(dtype) == DTYPE_CLASS_INT ? expr_binary(b->pool, EXPR_XOR, x, sign) : x;
    }
    const expr is_nan = expr_binary(b->pool, EXPR_NOT_EQUAL, x, x), zero = number(b, dtype, 0);
    const expr bits = expr_bitcast(b->pool, key, add(b, x, zero)); /* -0 becomes 0 */
    const expr negative = less(b, x, zero);
    const expr flipped =
        expr_binary(b->pool, EXPR_XOR, bits, choose(b, negative, expr_int(b->pool, key, -1), sign));
    return choose(b, is_nan, expr_int(b->pool, key, -1), flipped);
}

bool define_top_k(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    const uint32_t rank = (uint32_t)type->rank, first = build_has_output(b, 0) ? 0 : 1;
    uint32_t axis;
    dim rows[MAX_RANK];
    expr from[MAX_RANK], to[MAX_RANK];
    if (!(DTYPES_NUMBER >> type->dtype & 1))
        return build_refuse(b, "not implemented for elements of type %s", dtype_name(type->dtype));
    if (!build_axis(b, ATTR_axis, -1, type->rank, &axis))
        return false;
    for (uint32_t i = 0; i + 1 < rank; i++)
        rows[i] = type->dims[i + (i >= axis)];
    const dim ordered[2] = {type->dims[axis], build_output(b, first)->dims[axis]};
    struct nest *nest = definition_nest(b->d, rank - 1, rows, 2, ordered);
    nest->kind = NEST_SORT;
    for (uint32_t i = 0; i < rank; i++)
        from[i] = to[i] = nest_axis(b->d, nest, i == axis ? rank - 1 : i - (i > axis));
    to[axis] = nest_axis(b->d, nest, rank);
    expr key = ordered_key(b, load_input(b, 0, from));
    if (node_int(b->node, ATTR_largest, 1))
        key = expr_unary(b->pool, EXPR_NOT, key);
    from[axis] = expr_reduced(b->pool, nest_reduce(b->d, nest, REDUCE_MIN, key), DTYPE_I64);
    if (build_has_output(b, 0))
        store_output(b, nest, 0, to, load_stored(b, 0, from));
    if (build_has_output(b, 1))
        store_output(b, nest, 1, to, from[axis]);
    return true;
}
