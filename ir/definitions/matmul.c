/* Matrix products. One nest: the parallel axes are the result's dims, k is the reduced axis.
 *
 *   MatMul  y[.., m, n] = sum over k of a[.., m, k] b[.., k, n]; leading dims broadcast; a vector a has no m,
 * a vector b no n; FusedMatMul: times alpha, the last two axes of a factor swapped on request; MatMulInteger:
 * of a - a_zero and b - b_zero in i32 Gemm    y[m, n] = alpha sum over k of a'[m, k] b'[k, n] + beta c[m, n],
 * a' and b' transposed on request, c broadcast
 *
 * f16 and bf16 are multiplied and summed in f32; an alpha or beta of 1 takes no multiplication. */
#include "ir/definitions/build.h"

static bool same_types(struct build *b)
{
    const enum dtype left = build_input(b, 0)->dtype, right = build_input(b, 1)->dtype;
    if (left != right || left == DTYPE_BOOL)
        return build_refuse(b, "not implemented for elements of types %s and %s", dtype_name(left),
                            dtype_name(right));
    return true;
}

/* An element less the zero point of its matrix (`input` + 2): a number, one a row or column, or what
 * broadcasts to the matrix. */
static expr integer_factor(struct build *b, uint32_t input, const expr *indices)
{
    const struct tensor_type *factor = build_input(b, input);
    const expr x = convert(b, DTYPE_I32, load_stored(b, input, indices));
    if (!build_has_input(b, 2 + input))
        return x;
    const struct tensor_type *type = build_input(b, 2 + input);
    expr at[MAX_RANK];
    if (type->rank > 1)
        broadcast_indices(b, type, (uint32_t)factor->rank, factor->dims, indices, at);
    else if (type->rank == 1)
        at[0] = dim_equals_constant(b->dims, type->dims[0], 1) ? position(b, 0)
                                                               : indices[factor->rank - (input ? 1 : 2)];
    return sub(b, x, convert(b, DTYPE_I32, load_stored(b, 2 + input, at)));
}

/* sum over k of the product of the two inputs' elements */
static expr product_sum(struct build *b, struct nest *nest, const expr *left, const expr *right)
{
    const bool integer = b->node->op == OP_MatMulInteger;
    expr product = integer ? mul(b, integer_factor(b, 0, left), integer_factor(b, 1, right))
                           : mul(b, load_input(b, 0, left), load_input(b, 1, right));
    const enum dtype dtype = expr_at(b->pool, product)->dtype;
    return expr_reduced(b->pool, nest_reduce(b->d, nest, REDUCE_SUM, product), dtype);
}

static expr scaled(struct build *b, expr value, double factor)
{
    return factor == 1 ? value : mul(b, value, number(b, expr_at(b->pool, value)->dtype, factor));
}

static bool define_product(struct build *b)
{
    const struct tensor_type *left = build_input(b, 0), *right = build_input(b, 1), *y = build_output(b, 0);
    const uint32_t left_rank = (uint32_t)left->rank, right_rank = (uint32_t)right->rank;
    if (left_rank < 1 || right_rank < 1)
        return build_refuse(b, "an input is a scalar");
    const uint32_t rank = (uint32_t)y->rank, rows = left_rank > 1, columns = right_rank > 1;
    const uint32_t batch = rank - rows - columns; /* leading dims of y */
    const bool left_turned = rows && node_int(b->node, ATTR_transA, 0) != 0;
    const bool right_turned = columns && node_int(b->node, ATTR_transB, 0) != 0;
    struct nest *nest =
        definition_nest(b->d, rank, y->dims, 1, &left->dims[left_rank - (left_turned ? 2 : 1)]);
    expr axes[MAX_RANK], left_indices[MAX_RANK], right_indices[MAX_RANK];
    nest_axes(b, nest, rank, axes);
    const expr k = nest_axis(b->d, nest, rank);
    for (uint32_t i = 0; rows && i + 2 < left_rank; i++) {
        const uint32_t at = batch - (left_rank - 2) + i;
        left_indices[i] = broadcast_axis(b, axes[at], left->dims[i], y->dims[at]);
    }
    for (uint32_t i = 0; columns && i + 2 < right_rank; i++) {
        const uint32_t at = batch - (right_rank - 2) + i;
        right_indices[i] = broadcast_axis(b, axes[at], right->dims[i], y->dims[at]);
    }
    left_indices[left_rank - (left_turned ? 2 : 1)] = k;
    if (rows)
        left_indices[left_rank - (left_turned ? 1 : 2)] = axes[batch];
    right_indices[columns && !right_turned ? right_rank - 2 : right_rank - 1] = k;
    if (columns)
        right_indices[right_rank - (right_turned ? 2 : 1)] = axes[rank - 1];
    store_output(
        b, nest, 0, NULL,
        scaled(b, product_sum(b, nest, left_indices, right_indices), node_float(b->node, ATTR_alpha, 1)));
    return true;
}

bool define_matmul(struct build *b)
{
    return same_types(b) && define_product(b);
}

bool define_matmul_integer(struct build *b)
{
    return define_product(b);
}

bool define_gemm(struct build *b)
{
    const struct tensor_type *left = build_input(b, 0), *right = build_input(b, 1), *y = build_output(b, 0);
    const double alpha = node_float(b->node, ATTR_alpha, 1), beta = node_float(b->node, ATTR_beta, 1);
    if (!same_types(b))
        return false;
    if (left->rank != 2 || right->rank != 2)
        return build_refuse(b, "both factors must be matrices");
    if (!dtype_is_float(left->dtype) && (alpha != 1 || beta != 1))
        return build_refuse(b, "alpha and beta other than 1 on integers are not implemented");
    const bool left_turned = node_int(b->node, ATTR_transA, 0) != 0;
    const bool right_turned = node_int(b->node, ATTR_transB, 0) != 0;
    struct nest *nest = definition_nest(b->d, 2, y->dims, 1, &left->dims[left_turned ? 0 : 1]);
    expr axes[2];
    nest_axes(b, nest, 2, axes);
    const expr m = axes[0], n = axes[1], k = nest_axis(b->d, nest, 2);
    const expr left_indices[2] = {left_turned ? k : m, left_turned ? m : k};
    const expr right_indices[2] = {right_turned ? n : k, right_turned ? k : n};
    expr value = scaled(b, product_sum(b, nest, left_indices, right_indices), alpha);
    if (build_has_input(b, 2) && beta != 0) {
        const struct tensor_type *addend = build_input(b, 2);
        if (addend->rank > 2)
            return build_refuse(b, "the third input must broadcast to a matrix");
        expr indices[2];
        broadcast_indices(b, addend, 2, y->dims, axes, indices);
        expr addend_value = convert(b, expr_at(b->pool, value)->dtype, load_input(b, 2, indices));
        value = add(b, value, scaled(b, addend_value, beta));
    }
    store_output(b, nest, 0, NULL, value);
    return true;
}
