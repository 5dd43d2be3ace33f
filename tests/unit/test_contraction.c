/* Contractions are found by form, with the roles of their axes; what only looks like one is refused with a
 * reason. */
#include "tests/unit/expr_fixture.h"

#include "ir/group.h"

#include <string.h>

static struct definition definition;

static void start(void)
{
    memset(&definition, 0, sizeof definition);
    definition.pool = &pool;
}

/* A nest of one reduction with all extents 8. */
static void sum_nest(uint32_t rank, uint32_t reduce_rank, expr body, enum reduce_op op)
{
    struct nest nest = {.rank = rank, .reduce_rank = reduce_rank, .reduction_count = 1};
    for (uint32_t i = 0; i < rank + reduce_rank; i++)
        nest.extents[i] = dim_constant(&dims, 8);
    nest.reductions = arena_new(&arena, struct reduction);
    nest.reductions[0] = (struct reduction){op, body};
    vec_push(&arena, &definition.nests, nest);
}

static expr axis(uint32_t which)
{
    return expr_axis(&pool, which, dim_constant(&dims, 8));
}

static expr load2(uint32_t buffer, expr a, expr b)
{
    const expr indices[] = {a, b};
    return expr_load(&pool, buffer, DTYPE_F32, 2, indices);
}

static expr mul(expr a, expr b)
{
    return expr_binary(&pool, EXPR_MUL, a, b);
}

static bool find(struct contraction *out, const char **reason)
{
    struct text why;
    text_init(&why, &arena);
    bool found = find_contraction(&definition, 0, out, &why);
    *reason = why.data;
    return found;
}

static void assert_roles(const struct contraction *found, const char *roles)
{
    for (uint32_t i = 0; roles[i]; i++)
        assert_int_equal("BLRK"[found->roles[i]], roles[i]);
}

static void test_matmul(void **state)
{
    (void)state;
    struct contraction found;
    const char *reason;
    start();
    expr left = load2(0, axis(0), axis(2)), right = load2(1, axis(2), axis(1));
    sum_nest(2, 1, mul(left, right), REDUCE_SUM);
    assert_true(find(&found, &reason));
    assert_roles(&found, "LRK");
    assert_int_equal(found.left_load, left);
    assert_int_equal(found.right, right);
}

/* [b, m, k] x [b or 1, k, n]: whether the batch is broadcast shows at run time only. Scale in front of the
 * right load. */
static void test_broadcast_and_prologue(void **state)
{
    (void)state;
    struct contraction found;
    const char *reason;
    start();
    struct symbol row = {.low = 0, .high = 100, .hint = 8};
    dim batch = dim_symbol(&dims, &row);
    expr is_one = expr_binary(&pool, EXPR_EQUAL, expr_dim(&pool, batch), expr_index(&pool, 1));
    expr chosen = expr_select(&pool, is_one, expr_index(&pool, 0), axis(0));
    const expr left[] = {axis(0), axis(1), axis(3)}, right[] = {chosen, axis(3), axis(2)},
               column[] = {axis(2)};
    expr weight = expr_load(&pool, 1, DTYPE_I8, 3, right), scale = expr_load(&pool, 2, DTYPE_F32, 1, column);
    expr factor = mul(expr_convert(&pool, DTYPE_F32, weight), scale);
    sum_nest(3, 1, mul(expr_load(&pool, 0, DTYPE_F32, 3, left), factor), REDUCE_SUM);
    assert_true(find(&found, &reason));
    assert_roles(&found, "BLRK");
    assert_int_equal(found.right, factor);
    assert_int_equal(found.right_load, weight);
}

/* y[n, m, oy, ox] = sum over c, ky, kx of x[n, c, oy + ky - 1, ox + kx - 1] * w[m, c, ky, kx] */
static void test_convolution(void **state)
{
    (void)state;
    struct contraction found;
    const char *reason;
    start();
    expr one = expr_index(&pool, 1);
    expr y = expr_binary(&pool, EXPR_SUB, expr_binary(&pool, EXPR_ADD, axis(2), axis(5)), one);
    expr x = expr_binary(&pool, EXPR_SUB, expr_binary(&pool, EXPR_ADD, axis(3), axis(6)), one);
    const expr image[] = {axis(0), axis(4), y, x}, filter[] = {axis(1), axis(4), axis(5), axis(6)};
    expr left = expr_load_or(&pool, 0, DTYPE_F32, 4, image, expr_float(&pool, DTYPE_F32, 0));
    sum_nest(4, 3, mul(left, expr_load(&pool, 1, DTYPE_F32, 4, filter)), REDUCE_SUM);
    assert_true(find(&found, &reason));
    assert_roles(&found, "LRLLKKK");
    assert_int_equal(found.left_load, left);
}

static void refused(expr body, enum reduce_op op, const char *expected)
{
    struct contraction found;
    const char *reason;
    start();
    sum_nest(2, 1, body, op);
    assert_false(find(&found, &reason));
    assert_string_equal(reason, expected);
}

static void test_refused(void **state)
{
    (void)state;
    expr a = load2(0, axis(0), axis(2)), b = load2(1, axis(2), axis(1)), c = load2(2, axis(0), axis(2));
    refused(mul(a, b), REDUCE_MAX, "the nest is not one sum");
    refused(expr_binary(&pool, EXPR_ADD, a, b), REDUCE_SUM, "the sum is not over a product");
    refused(mul(a, a), REDUCE_SUM, "both factors use the same parallel axes, so no element is used twice");
    refused(mul(a, c), REDUCE_SUM, "both factors use the same parallel axes, so no element is used twice");
    refused(mul(mul(a, c), b), REDUCE_SUM, "the left factor loads several operands over the summed axes");
    refused(mul(load2(3, axis(0), axis(1)), b), REDUCE_SUM,
            "the left factor loads nothing over the summed axes");
    const expr where[] = {axis(2)};
    expr indirect = load2(0, axis(0), expr_load(&pool, 4, DTYPE_I64, 1, where));
    refused(mul(indirect, b), REDUCE_SUM, "an index of the left operand is itself loaded");
}

static void test_flat_index(void **state)
{
    (void)state;
    dim sizes[] = {dim_constant(&dims, 8), dim_constant(&dims, 5), dim_constant(&dims, 3)};
    const struct tensor_type type = {.dtype = DTYPE_F32, .rank = 3, .dims = sizes};
    const expr indices[] = {axis(0), expr_index(&pool, 2), expr_index(&pool, 1)};
    struct affine affine;
    expr flat = flat_index(&pool, &type, indices);
    assert_true(expr_affine(&pool, flat, 1, &affine));
    assert_int_equal(affine.coefficients[0], expr_index(&pool, 15));
    assert_int_equal(affine.offset, expr_index(&pool, 7));
    const struct tensor_type scalar = {.dtype = DTYPE_F32};
    assert_int_equal(flat_index(&pool, &scalar, NULL), expr_index(&pool, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_matmul), TEST(test_broadcast_and_prologue),
                                       TEST(test_convolution), TEST(test_refused), TEST(test_flat_index)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
