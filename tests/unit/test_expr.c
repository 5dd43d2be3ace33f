/* The builders' simplifications, index arithmetic, affine form, printing and rewriting of scalar expressions.
 */
#include "tests/unit/expr_fixture.h"

#include <math.h>
#include <string.h>

static expr load(uint32_t buffer, enum dtype dtype)
{
    return expr_load(&pool, buffer, dtype, 0, NULL);
}

static const char *printed(expr e)
{
    struct text text;
    text_init(&text, &arena);
    expr_print(&pool, e, &text);
    return text.data;
}

#define assert_printed(e, expected) assert_string_equal(printed(e), (expected))

static expr binary(enum expr_op op, expr a, expr b)
{
    return expr_binary(&pool, op, a, b);
}

static expr add(expr a, expr b)
{
    return binary(EXPR_ADD, a, b);
}

static expr mul(expr a, expr b)
{
    return binary(EXPR_MUL, a, b);
}

static expr index_div(expr a, expr b)
{
    return binary(EXPR_INDEX_DIV, a, b);
}

static expr index_mod(expr a, expr b)
{
    return binary(EXPR_INDEX_MOD, a, b);
}

static expr number(int64_t value)
{
    return expr_index(&pool, value);
}

static dim symbol(int64_t low, int64_t high)
{
    struct symbol row = {.low = low, .high = high, .hint = high, .input = dims.symbols.count};
    return dim_symbol(&dims, &row);
}

static expr axis(uint32_t which, int64_t extent)
{
    return expr_axis(&pool, which, dim_constant(&dims, extent));
}

static void test_hash_consing(void **state)
{
    (void)state;
    expr x = load(0, DTYPE_F32), y = load(1, DTYPE_F32);
    assert_int_equal(binary(EXPR_ADD, x, y), binary(EXPR_ADD, x, y));
    assert_int_not_equal(binary(EXPR_ADD, x, y), binary(EXPR_SUB, x, y));
    uint32_t before = pool.nodes.count;
    for (int i = 0; i < 2000; i++) /* the table grows and nothing is lost */
        number(1000 + i);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(number(1000 + i), before + (uint32_t)i);
}

static void test_integers(void **state)
{
    (void)state;
    expr x = load(0, DTYPE_I32), zero = expr_int(&pool, DTYPE_I32, 0), one = expr_int(&pool, DTYPE_I32, 1);
    expr max = expr_int(&pool, DTYPE_I32, INT32_MAX);
    int64_t value;
    assert_true(expr_constant_int(&pool, add(max, one), &value));
    assert_int_equal(value, INT32_MIN);
    assert_int_equal(add(x, zero), x);
    assert_int_equal(add(zero, x), x);
    assert_int_equal(mul(one, x), x);
    assert_int_equal(mul(x, zero), zero);
    assert_int_equal(binary(EXPR_SUB, x, x), zero);
    assert_int_equal(binary(EXPR_SUB, add(x, one), one), x);
    assert_int_equal(binary(EXPR_DIV, x, one), x);
    assert_int_equal(binary(EXPR_REMAINDER, x, one), zero);
    assert_int_equal(add(add(x, one), one), add(x, expr_int(&pool, DTYPE_I32, 2)));
    assert_int_equal(binary(EXPR_XOR, x, x), zero);
    assert_int_equal(binary(EXPR_AND, x, expr_int(&pool, DTYPE_I32, -1)), x);
    assert_int_equal(binary(EXPR_DIV, one, zero), zero);
    assert_int_equal(binary(EXPR_DIV, expr_int(&pool, DTYPE_I32, INT32_MIN), expr_int(&pool, DTYPE_I32, -1)),
                     expr_int(&pool, DTYPE_I32, INT32_MIN));
    assert_int_not_equal(binary(EXPR_DIV, x, x), one); /* 0 / 0 = 0 */
    expr u = load(1, DTYPE_U32);
    assert_int_equal(expr_unary(&pool, EXPR_ABS, u), u);
    assert_int_equal(expr_int(&pool, DTYPE_U8, 257), expr_int(&pool, DTYPE_U8, 1));
    assert_int_equal(expr_int(&pool, DTYPE_I8, 255), expr_int(&pool, DTYPE_I8, -1));
}

static void test_floats(void **state)
{
    (void)state;
    expr x = load(0, DTYPE_F32), zero = expr_float(&pool, DTYPE_F32, 0),
         one = expr_float(&pool, DTYPE_F32, 1);
    expr minus_zero = expr_float(&pool, DTYPE_F32, -0.0), three = expr_float(&pool, DTYPE_F32, 3);
    assert_int_not_equal(add(x, zero), x); /* -0 + 0 = 0 */
    assert_int_equal(add(x, minus_zero), x);
    assert_int_equal(binary(EXPR_SUB, x, zero), x);
    assert_int_not_equal(binary(EXPR_SUB, x, minus_zero), x);
    assert_int_equal(mul(x, one), x);
    assert_int_not_equal(mul(x, zero), zero); /* NaN, inf, -0 */
    assert_int_not_equal(binary(EXPR_SUB, x, x), zero);
    assert_int_equal(binary(EXPR_DIV, x, expr_float(&pool, DTYPE_F32, 4)),
                     mul(x, expr_float(&pool, DTYPE_F32, 0.25)));
    assert_printed(binary(EXPR_DIV, x, three), "b0[] / 3:f32");
    expr tiny = expr_float(&pool, DTYPE_F32, 0x1p-127); /* its reciprocal is normal, itself not: stays */
    assert_int_equal(expr_at(&pool, binary(EXPR_DIV, x, tiny))->op, EXPR_DIV);
    double value;
    assert_true(expr_constant_float(&pool, binary(EXPR_DIV, one, three), &value));
    assert_true(value == (double)(1.0f / 3.0f));
    assert_int_not_equal(binary(EXPR_EQUAL, x, x), expr_int(&pool, DTYPE_BOOL, 1));
    expr less = binary(EXPR_LESS, x, one);
    assert_int_equal(expr_at(&pool, expr_unary(&pool, EXPR_NOT, less))->op, EXPR_NOT); /* NaN */
    assert_int_equal(expr_unary(&pool, EXPR_NOT, binary(EXPR_EQUAL, x, one)), binary(EXPR_NOT_EQUAL, x, one));
    assert_int_not_equal(add(add(x, one), one), add(x, expr_float(&pool, DTYPE_F32, 2)));
    assert_int_equal(expr_unary(&pool, EXPR_NEG, expr_unary(&pool, EXPR_NEG, x)), x);
}

static void test_conversions(void **state)
{
    (void)state;
    expr half = load(0, DTYPE_F16), byte = load(1, DTYPE_I8), x = load(2, DTYPE_F32);
    expr wide = expr_convert(&pool, DTYPE_F32, half);
    assert_int_equal(expr_convert(&pool, DTYPE_F16, wide), half);
    expr narrow = expr_convert(&pool, DTYPE_F16, x);
    assert_int_not_equal(expr_convert(&pool, DTYPE_F32, narrow), x); /* loses bits */
    assert_int_equal(expr_convert(&pool, DTYPE_I64, expr_convert(&pool, DTYPE_I32, byte)),
                     expr_convert(&pool, DTYPE_I64, byte));
    assert_int_equal(expr_convert(&pool, DTYPE_I8, expr_convert(&pool, DTYPE_F32, byte)), byte);
    /* i8 -> f32 -> u8 saturates, i8 -> u8 wraps */
    assert_int_not_equal(expr_convert(&pool, DTYPE_U8, expr_convert(&pool, DTYPE_F32, byte)),
                         expr_convert(&pool, DTYPE_U8, byte));
    expr word = load(3, DTYPE_I32);
    assert_int_not_equal(expr_convert(&pool, DTYPE_I32, expr_convert(&pool, DTYPE_F32, word)), word);
    assert_int_equal(expr_bitcast(&pool, DTYPE_F32, expr_bitcast(&pool, DTYPE_U32, x)), x);
    double value;
    assert_true(expr_constant_float(&pool, expr_float(&pool, DTYPE_F16, 65520), &value));
    assert_true(isinf(value)); /* halfway beyond the largest rounds to infinity */
}

static void test_selects(void **state)
{
    (void)state;
    expr c = load(0, DTYPE_BOOL), x = load(1, DTYPE_F32), y = load(2, DTYPE_F32);
    expr yes = expr_int(&pool, DTYPE_BOOL, 1), no = expr_int(&pool, DTYPE_BOOL, 0);
    assert_int_equal(expr_select(&pool, yes, x, y), x);
    assert_int_equal(expr_select(&pool, no, x, y), y);
    assert_int_equal(expr_select(&pool, c, x, x), x);
    assert_int_equal(expr_select(&pool, expr_unary(&pool, EXPR_NOT, c), x, y), expr_select(&pool, c, y, x));
    assert_int_equal(expr_select(&pool, c, yes, no), c);
    assert_int_equal(expr_select(&pool, c, expr_select(&pool, c, x, y), y), expr_select(&pool, c, x, y));
    assert_int_equal(binary(EXPR_EQUAL, c, yes), c);
}

static void test_division_by_ranges(void **state)
{
    (void)state;
    expr h = axis(0, 12), d = axis(1, 64), flat = add(mul(h, number(64)), d);
    assert_int_equal(index_div(flat, number(64)), h);
    assert_int_equal(index_mod(flat, number(64)), d);
    assert_printed(index_div(flat, number(32)), "(a0 * 2) + (a1 idiv 32)");
    assert_printed(index_mod(flat, number(128)), "((a0 imod 2) * 64) + a1");
    assert_int_equal(index_div(d, number(64)), number(0));
    assert_int_equal(index_mod(d, number(64)), d);
    assert_printed(index_div(d, number(63)), "a1 idiv 63");
    assert_int_equal(index_div(index_div(flat, number(4)), number(16)), h);
    expr n = axis(2, 1000);
    assert_int_equal(index_div(index_div(n, number(7)), number(5)), index_div(n, number(35)));
    assert_int_equal(index_mod(index_mod(n, number(35)), number(7)), index_mod(n, number(7)));
    /* what a reshape there and back leaves */
    assert_int_equal(add(mul(index_div(n, number(7)), number(7)), index_mod(n, number(7))), n);
    expr outer = index_div(n, number(35)), middle = index_mod(index_div(n, number(7)), number(5));
    expr back = add(add(mul(outer, number(35)), mul(middle, number(7))), index_mod(n, number(7)));
    assert_int_equal(back, n);
    assert_int_equal(index_div(add(mul(h, number(64)), number(70)), number(64)), add(h, number(1)));
    assert_int_equal(axis(3, 1), number(0));
}

static void test_division_symbolic(void **state)
{
    (void)state;
    dim batch = symbol(0, 64), length = symbol(0, INT64_MAX >> 16), width = symbol(0, INT64_MAX >> 16);
    dim plane = dim_mul(&dims, length, width);
    expr b = expr_axis(&pool, 0, batch), s = expr_axis(&pool, 1, length), h = expr_axis(&pool, 2, width);
    expr flat = add(add(mul(b, expr_dim(&pool, plane)), mul(s, expr_dim(&pool, width))), h);
    expr rows = index_div(flat, expr_dim(&pool, width));
    assert_int_equal(index_mod(rows, expr_dim(&pool, length)), s);
    assert_int_equal(index_div(rows, expr_dim(&pool, length)), b);
    assert_int_equal(index_mod(flat, expr_dim(&pool, width)), h);
    assert_int_equal(index_div(flat, expr_dim(&pool, plane)), b);
    /* a symbolic plane of known width */
    expr d = axis(3, 64), cell = add(mul(s, number(64)), d);
    assert_int_equal(index_div(cell, number(64)), s);
    dim whole = dim_mul(&dims, length, dim_constant(&dims, 64));
    expr all = add(mul(b, expr_dim(&pool, whole)), cell);
    assert_int_equal(index_div(all, expr_dim(&pool, whole)), b);
    assert_int_equal(index_mod(index_div(all, number(64)), expr_dim(&pool, length)), s);
    /* near miss: another extent than the divisor's */
    expr other = index_div(add(mul(s, expr_dim(&pool, width)), s), expr_dim(&pool, width));
    assert_int_not_equal(other, s);
    assert_int_equal(mul(expr_dim(&pool, length), expr_dim(&pool, width)), expr_dim(&pool, plane));
}

static void test_comparisons_by_ranges(void **state)
{
    (void)state;
    dim length = symbol(0, 1000);
    expr x = axis(0, 10), s = expr_axis(&pool, 1, length), yes = expr_int(&pool, DTYPE_BOOL, 1);
    expr no = expr_int(&pool, DTYPE_BOOL, 0);
    assert_int_equal(binary(EXPR_LESS, x, number(10)), yes);
    assert_int_equal(binary(EXPR_LESS, x, number(0)), no);
    assert_int_equal(binary(EXPR_LESS_EQUAL, number(0), x), yes);
    assert_int_equal(binary(EXPR_EQUAL, x, number(10)), no);
    assert_int_equal(expr_at(&pool, binary(EXPR_LESS, x, number(9)))->op, EXPR_LESS);
    assert_int_equal(binary(EXPR_LESS, s, expr_dim(&pool, length)), yes);
    assert_int_equal(binary(EXPR_LESS_EQUAL, expr_dim(&pool, length), s), no);
    assert_int_equal(binary(EXPR_MIN, x, number(9)), binary(EXPR_MIN, x, number(9)));
    assert_int_equal(binary(EXPR_MIN, x, number(20)), x);
    assert_int_equal(binary(EXPR_MAX, x, number(20)), number(20));
    int64_t low, high;
    assert_true(expr_index_range(&pool, add(mul(x, number(-3)), number(5)), &low, &high));
    assert_int_equal(low, -22);
    assert_int_equal(high, 5);
    assert_false(expr_index_range(&pool, load(0, DTYPE_I64), &low, &high));
    /* i64 data is no index: nothing is known, and sums may wrap */
    expr data = load(0, DTYPE_I64);
    assert_int_equal(expr_at(&pool, binary(EXPR_LESS, data, add(data, number(1))))->op, EXPR_LESS);
}

static void test_affine(void **state)
{
    (void)state;
    dim length = symbol(1, 100);
    expr x = axis(0, 10), y = expr_axis(&pool, 1, length);
    struct affine affine;
    expr index = add(mul(add(x, number(-1)), number(3)), mul(y, expr_dim(&pool, length)));
    assert_true(expr_affine(&pool, index, 3, &affine));
    assert_int_equal(affine.count, 3);
    assert_int_equal(affine.offset, number(-3));
    assert_int_equal(affine.coefficients[0], number(3));
    assert_int_equal(affine.coefficients[1], expr_dim(&pool, length));
    assert_int_equal(affine.coefficients[2], number(0));
    assert_false(expr_affine(&pool, mul(x, y), 3, &affine));
    assert_false(expr_affine(&pool, index_div(x, number(3)), 3, &affine));
    assert_false(expr_affine(&pool, y, 1, &affine)); /* an axis beyond the count */
}

static void test_print(void **state)
{
    (void)state;
    expr indices[] = {axis(0, 4), add(axis(1, 5), number(1))};
    expr x = expr_load(&pool, 0, DTYPE_F32, 2, indices);
    expr pad = expr_load_or(&pool, 1, DTYPE_F32, 2, indices, expr_float(&pool, DTYPE_F32, 0));
    assert_printed(x, "b0[a0, a1 + 1]");
    assert_printed(pad, "b1[a0, a1 + 1 else 0:f32]");
    expr product = mul(x, pad);
    assert_printed(add(product, product), "{t0 = a1 + 1; t1 = b0[a0, t0] * b1[a0, t0 else 0:f32]; t1 + t1}");
    assert_printed(expr_convert(&pool, DTYPE_F16, x), "convert<f16>(b0[a0, a1 + 1])");
    expr condition = binary(EXPR_LESS, x, expr_float(&pool, DTYPE_F32, 1.5));
    assert_printed(expr_select(&pool, condition, x, expr_reduced(&pool, 2, DTYPE_F32)),
                   "{t0 = b0[a0, a1 + 1]; select(t0 < 1.5:f32, t0, r2)}");
    assert_printed(expr_unary(&pool, EXPR_EXP, x), "exp(b0[a0, a1 + 1])");
    dim length = symbol(0, 100);
    assert_printed(expr_dim(&pool, dim_mul(&dims, length, dim_constant(&dims, 4))), "[4 * s0]");
}

/* Doubling 5,000 times: as a tree 2^5000 nodes, and deeper than any stack. */
static void test_deep(void **state)
{
    (void)state;
    expr x = load(0, DTYPE_F32);
    for (int i = 0; i < 5000; i++)
        x = add(x, i & 1 ? x : expr_unary(&pool, EXPR_EXP, x));
    assert_true(strlen(printed(x)) < 5000 * 40);
    assert_true(expr_cost(&pool, x) > 5000);
    assert_true(expr_expand(&pool, x) != 0);
    expr index = axis(0, 10);
    for (int i = 0; i < 5000; i++)
        index = index_div(add(index, index), number(3));
    assert_true(index != 0);
}

static expr inline_load(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    (void)user;
    if (node->op != EXPR_LOAD || node->value != 0)
        return 0;
    return expr_convert(into, DTYPE_F32, expr_load(into, 7, DTYPE_I8, node->count, arguments));
}

static void test_rewrite(void **state)
{
    (void)state;
    expr indices[] = {axis(0, 4)};
    expr x = expr_load(&pool, 0, DTYPE_F32, 1, indices), y = expr_load(&pool, 1, DTYPE_F32, 1, indices);
    expr sum = add(mul(x, y), x);
    struct exprs other;
    exprs_init(&other, &arena, &dims);
    expr_int(&other, DTYPE_I32, 5); /* numbers differ between the pools */
    expr copy = expr_rewrite(&other, &pool, sum, inline_load, NULL);
    struct text text;
    text_init(&text, &arena);
    expr_print(&other, copy, &text);
    assert_string_equal(text.data, "{t0 = convert<f32>(b7[a0]); (t0 * b1[a0]) + t0}");
    assert_int_equal(expr_rewrite(&pool, &pool, sum, inline_load, NULL),
                     expr_rewrite(&pool, &pool, sum, inline_load, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_hash_consing),
        TEST(test_integers),
        TEST(test_floats),
        TEST(test_conversions),
        TEST(test_selects),
        TEST(test_division_by_ranges),
        TEST(test_division_symbolic),
        TEST(test_affine),
        TEST(test_comparisons_by_ranges),
        TEST(test_print),
        TEST(test_deep),
        TEST(test_rewrite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
