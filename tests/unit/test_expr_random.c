/* Properties of simplification: random expressions have the value that their tree has without any rule, at
 * every point that is tried, and index ranges hold that value. */
#include "tests/unit/expr_fixture.h"
#include "tests/unit/expr_runner.h"

enum { AXES = 4, SYMBOLS = 2 };

/* One expression built twice: through the builders, and as the value at POINTS points by one operation at a
 * time. */
enum { POINTS = 24 };

struct both_ways {
    expr e;
    int64_t values[POINTS];
    bool is_dim; /* free of axes and positive: may divide */
};

struct setting {
    dim extents[AXES];
    dim symbols[SYMBOLS];
    int64_t symbol_values[POINTS][SYMBOLS + 1];
    int64_t axes[POINTS][AXES];
};

static uint32_t below_random(uint32_t limit)
{
    return (uint32_t)(random_bits() >> 33) % limit;
}

/* Axes with known, symbolic and product extents. */
static void setting_init(struct setting *setting)
{
    exprs_init(&pool, &arena, &dims);
    dims_init(&dims, &arena);
    for (uint32_t i = 0; i < SYMBOLS; i++) {
        struct symbol row = {.low = below_random(2), .high = 9, .hint = 4, .input = i};
        setting->symbols[i] = dim_symbol(&dims, &row);
    }
    for (uint32_t i = 0; i < AXES; i++) {
        dim symbol = setting->symbols[below_random(SYMBOLS)];
        dim known = dim_constant(&dims, 1 + below_random(8));
        uint32_t kind = below_random(3);
        setting->extents[i] = kind == 0 ? known : kind == 1 ? symbol : dim_mul(&dims, symbol, known);
    }
    for (uint32_t p = 0; p < POINTS; p++) {
        for (uint32_t i = 0; i < SYMBOLS; i++)
            setting->symbol_values[p][i] = 1 + below_random(9);
        for (uint32_t i = 0; i < AXES; i++) {
            int64_t extent = 1;
            assert_true(dim_evaluate(&dims, setting->extents[i], setting->symbol_values[p], &extent));
            setting->axes[p][i] = below_random((uint32_t)extent);
        }
    }
}

static struct both_ways leaf(const struct setting *setting, uint32_t kind)
{
    struct both_ways result = {0};
    uint32_t which = below_random(kind == 1 ? SYMBOLS : AXES);
    int64_t constant = 1 + below_random(12);
    result.is_dim = kind != 0;
    if (kind == 0)
        result.e = expr_axis(&pool, which, setting->extents[which]);
    else if (kind == 1)
        result.e = expr_dim(&pool, setting->symbols[which]);
    else
        result.e = expr_index(&pool, constant);
    for (uint32_t p = 0; p < POINTS; p++)
        result.values[p] = kind == 0   ? setting->axes[p][which]
                           : kind == 1 ? setting->symbol_values[p][which]
                                       : constant;
    return result;
}

static struct both_ways apply(enum expr_op op, const struct both_ways *a, const struct both_ways *b)
{
    struct both_ways result = {.e = expr_binary(&pool, op, a->e, b->e)};
    result.is_dim = op == EXPR_MUL && a->is_dim && b->is_dim;
    for (uint32_t p = 0; p < POINTS; p++) {
        uint64_t arguments[] = {(uint64_t)a->values[p], (uint64_t)b->values[p]}, value;
        bool compare = expr_class_of(op) == EXPR_COMPARE;
        assert_true(expr_eval_op(op, compare ? DTYPE_BOOL : DTYPE_I64, DTYPE_I64, arguments, &value));
        result.values[p] = (int64_t)value;
    }
    return result;
}

/* A divisor: a dim, known or symbolic, often the product of others. */
static struct both_ways divisor(const struct setting *setting)
{
    struct both_ways a = leaf(setting, 1 + below_random(2));
    if (below_random(2)) {
        struct both_ways b = leaf(setting, 1 + below_random(2));
        a = apply(EXPR_MUL, &a, &b);
    }
    return a;
}

/* Never negative: sums and products of axes and dims, divisions of such, bounds. */
static struct both_ways grow(const struct setting *setting, uint32_t depth)
{
    if (depth == 0 || below_random(8) == 0)
        return leaf(setting, below_random(3));
    struct both_ways a = grow(setting, depth - 1), b;
    switch (below_random(8)) {
    case 0:
    case 1:
        b = grow(setting, depth - 1);
        return apply(EXPR_ADD, &a, &b);
    case 2:
        b = divisor(setting);
        return apply(EXPR_MUL, &a, &b);
    case 3: /* x idiv D and x imod D put together again, at times by the wrong D */
    case 4: {
        struct both_ways d = divisor(setting), other = below_random(4) ? d : divisor(setting);
        struct both_ways quotient = apply(EXPR_INDEX_DIV, &a, &d), rest = apply(EXPR_INDEX_MOD, &a, &other);
        b = apply(EXPR_MUL, &quotient, &d);
        return apply(EXPR_ADD, &b, &rest);
    }
    case 5:
        b = divisor(setting);
        return apply(EXPR_INDEX_DIV, &a, &b);
    case 6:
        b = divisor(setting);
        return apply(EXPR_INDEX_MOD, &a, &b);
    default:
        b = grow(setting, depth - 1);
        return apply(below_random(2) ? EXPR_MIN : EXPR_MAX, &a, &b);
    }
}

static void check(const struct setting *setting, const struct both_ways *both)
{
    struct runner runner;
    int64_t low, high;
    bool ranged =
        expr_at(&pool, both->e)->dtype == DTYPE_I64 && expr_index_range(&pool, both->e, &low, &high);
    runner_init(&runner, &pool, both->e);
    for (uint32_t p = 0; p < POINTS; p++) {
        uint64_t value = 0;
        runner.axes = setting->axes[p];
        runner.symbols = setting->symbol_values[p];
        assert_true(runner_run(&runner, both->e, NULL, 1, &value));
        if ((int64_t)value != both->values[p]) {
            struct text text;
            text_init(&text, &arena);
            expr_print(&pool, both->e, &text);
            fail_msg("%s is %lld, expected %lld", text.data, (long long)value, (long long)both->values[p]);
        }
        if (ranged && (both->values[p] < low || both->values[p] > high))
            fail_msg("%lld is not in %lld..%lld", (long long)both->values[p], (long long)low,
                     (long long)high);
    }
}

static void test_index(void **state)
{
    (void)state;
    static const enum expr_op compares[] = {EXPR_LESS, EXPR_LESS_EQUAL, EXPR_EQUAL, EXPR_NOT_EQUAL};
    for (int round = 0; round < 6000; round++) {
        struct setting setting;
        setting_init(&setting);
        struct both_ways a = grow(&setting, 4), b = grow(&setting, 2);
        check(&setting, &a);
        struct both_ways truth = apply(compares[below_random(4)], &a, &b);
        check(&setting, &truth);
        struct both_ways difference = apply(EXPR_SUB, &a, &b);
        check(&setting, &difference);
        if (round % 200 == 199) {
            arena_release(&arena);
            arena_init(&arena, &system_allocator, &recovery);
        }
    }
}

/* The affine form has the index's value wherever there is one. */
static void test_affine(void **state)
{
    (void)state;
    uint32_t found = 0;
    for (int round = 0; round < 1000; round++) {
        struct setting setting;
        setting_init(&setting);
        struct both_ways a = grow(&setting, 2);
        struct affine affine;
        if (!expr_affine(&pool, a.e, AXES, &affine))
            continue;
        found++;
        expr sum = affine.offset;
        for (uint32_t i = 0; i < AXES; i++) {
            expr axis = expr_axis(&pool, i, setting.extents[i]);
            sum =
                expr_binary(&pool, EXPR_ADD, sum, expr_binary(&pool, EXPR_MUL, axis, affine.coefficients[i]));
        }
        struct both_ways again = a;
        again.e = sum;
        check(&setting, &again);
    }
    assert_true(found > 200);
}

/* ---- scalar operations ------------------------------------------------------------------------------------
 */

static const uint64_t corners_f32[] = {0,          0x80000000, 0x3f800000, 0xbf800000,
                                       0x7f800000, 0xff800000, 0x7fc00000, 1};
static const int64_t corners_int[] = {0, 1, -1, 2, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX};

struct scalar {
    expr e;
    uint64_t values[POINTS];
};

static uint64_t random_value(enum dtype dtype)
{
    uint64_t bits = below_random(2) ? random_bits() : (uint64_t)corners_int[below_random(8)];
    if (dtype == DTYPE_F32 && below_random(2))
        bits = corners_f32[below_random(8)];
    return expr_eval_extend(dtype, bits);
}

static struct scalar grow_scalar(enum dtype dtype, uint32_t depth, const uint64_t inputs[3][POINTS])
{
    static const enum expr_op integer_ops[] = {
        EXPR_ADD, EXPR_SUB, EXPR_MUL,        EXPR_DIV,         EXPR_REMAINDER, EXPR_MIN, EXPR_MAX, EXPR_AND,
        EXPR_OR,  EXPR_XOR, EXPR_SHIFT_LEFT, EXPR_SHIFT_RIGHT, EXPR_NEG,       EXPR_ABS, EXPR_NOT};
    static const enum expr_op float_ops[] = {EXPR_ADD,  EXPR_SUB,   EXPR_MUL,  EXPR_DIV,
                                             EXPR_MIN,  EXPR_MAX,   EXPR_NEG,  EXPR_ABS,
                                             EXPR_SQRT, EXPR_FLOOR, EXPR_CEIL, EXPR_ROUND_EVEN};
    struct scalar result;
    if (depth == 0) {
        uint32_t which = below_random(6);
        uint64_t constant = random_value(dtype);
        struct expr_node node = {.op = EXPR_CONSTANT, .dtype = dtype, .lanes = 1, .value = (int64_t)constant};
        result.e = which < 3 ? expr_load(&pool, which, dtype, 0, NULL) : expr_make(&pool, &node);
        for (uint32_t p = 0; p < POINTS; p++)
            result.values[p] = which < 3 ? inputs[which][p] : constant;
        return result;
    }
    bool is_real = dtype == DTYPE_F32;
    enum expr_op op = is_real ? float_ops[below_random(12)] : integer_ops[below_random(15)];
    bool choice = below_random(6) == 0;
    struct scalar a = grow_scalar(dtype, depth - 1, inputs), b = grow_scalar(dtype, depth - 1, inputs);
    bool unary = op == EXPR_NEG || op == EXPR_ABS || op == EXPR_NOT || op == EXPR_SQRT || op == EXPR_FLOOR ||
                 op == EXPR_CEIL || op == EXPR_ROUND_EVEN;
    expr condition = choice ? expr_unary(&pool, EXPR_NOT, expr_binary(&pool, EXPR_LESS, a.e, b.e)) : 0;
    result.e = choice  ? expr_select(&pool, condition, a.e, b.e)
               : unary ? expr_unary(&pool, op, a.e)
                       : expr_binary(&pool, op, a.e, b.e);
    for (uint32_t p = 0; p < POINTS; p++) {
        uint64_t arguments[] = {a.values[p], b.values[p]}, is_less = 0;
        if (choice) {
            assert_true(expr_eval_op(EXPR_LESS, DTYPE_BOOL, dtype, arguments, &is_less));
            result.values[p] = is_less ? arguments[1] : arguments[0];
        } else {
            assert_true(expr_eval_op(op, dtype, dtype, arguments, &result.values[p]));
        }
    }
    return result;
}

static bool same_value(enum dtype dtype, uint64_t a, uint64_t b)
{
    bool both_nan = dtype == DTYPE_F32 && isnan(runner_f32(a)) && isnan(runner_f32(b));
    return both_nan || a == b;
}

static void test_scalars(void **state)
{
    (void)state;
    static const enum dtype types[] = {DTYPE_F32, DTYPE_I32, DTYPE_U32, DTYPE_I64, DTYPE_U64};
    for (int round = 0; round < 4000; round++) {
        enum dtype dtype = types[round % 5];
        uint64_t inputs[3][POINTS], plain[POINTS], expanded[POINTS];
        const uint64_t *const pointers[] = {inputs[0], inputs[1], inputs[2]};
        for (int i = 0; i < 3; i++)
            for (int p = 0; p < POINTS; p++)
                inputs[i][p] = random_value(dtype);
        struct scalar scalar = grow_scalar(dtype, 3, (const uint64_t(*)[POINTS])inputs);
        expr native = expr_expand(&pool, scalar.e);
        struct runner runner;
        runner_init(&runner, &pool, scalar.e);
        assert_true(runner_run(&runner, scalar.e, pointers, POINTS, plain));
        runner_init(&runner, &pool, native);
        assert_true(runner_run(&runner, native, pointers, POINTS, expanded));
        for (int p = 0; p < POINTS; p++)
            if (!same_value(dtype, plain[p], scalar.values[p]) ||
                !same_value(dtype, expanded[p], scalar.values[p])) {
                struct text text;
                text_init(&text, &arena);
                expr_print(&pool, scalar.e, &text);
                fail_msg("%s is 0x%llx (expanded 0x%llx), expected 0x%llx", text.data,
                         (unsigned long long)plain[p], (unsigned long long)expanded[p],
                         (unsigned long long)scalar.values[p]);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_index), TEST(test_affine), TEST(test_scalars)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
