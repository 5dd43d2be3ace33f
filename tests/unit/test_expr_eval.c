/* What expr.def and expr.h state of single operations, by example; and the expansions of integer division,
 * integer POW and the float remainder against plain C. */
#include "tests/unit/expr_fixture.h"
#include "tests/unit/expr_runner.h"

static uint64_t eval2(enum expr_op op, enum dtype dtype, enum dtype from, uint64_t a, uint64_t b)
{
    const uint64_t arguments[] = {a, b};
    uint64_t result = 0;
    assert_true(expr_eval_op(op, dtype, from, arguments, &result));
    return result;
}

static uint64_t same2(enum expr_op op, enum dtype dtype, int64_t a, int64_t b)
{
    return eval2(op, dtype, dtype, (uint64_t)a, (uint64_t)b);
}

static void test_integers(void **state)
{
    (void)state;
    assert_int_equal((int64_t)same2(EXPR_ADD, DTYPE_I32, INT32_MAX, 1), INT32_MIN);
    assert_int_equal(same2(EXPR_ADD, DTYPE_U32, UINT32_MAX, 1), 0);
    assert_int_equal((int64_t)same2(EXPR_DIV, DTYPE_I32, -7, 2), -3);
    assert_int_equal((int64_t)same2(EXPR_REMAINDER, DTYPE_I32, -7, 2), -1);
    assert_int_equal(same2(EXPR_DIV, DTYPE_I64, 5, 0), 0);
    assert_int_equal(same2(EXPR_REMAINDER, DTYPE_I64, 5, 0), 0);
    assert_int_equal((int64_t)same2(EXPR_DIV, DTYPE_I64, INT64_MIN, -1), INT64_MIN);
    assert_int_equal(same2(EXPR_REMAINDER, DTYPE_I64, INT64_MIN, -1), 0);
    assert_int_equal((int64_t)same2(EXPR_DIV, DTYPE_I32, INT32_MIN, -1), INT32_MIN);
    assert_int_equal(same2(EXPR_SHIFT_LEFT, DTYPE_I32, 1, 32), 0);
    assert_int_equal(same2(EXPR_SHIFT_LEFT, DTYPE_I32, 1, -1), 0);
    assert_int_equal((int64_t)same2(EXPR_SHIFT_RIGHT, DTYPE_I32, -8, 1), -4);
    assert_int_equal((int64_t)same2(EXPR_SHIFT_RIGHT, DTYPE_I32, -8, 99), -1);
    assert_int_equal(same2(EXPR_SHIFT_RIGHT, DTYPE_U32, 0x80000000, 31), 1);
    assert_int_equal((int64_t)same2(EXPR_MIN, DTYPE_I64, -1, 1), -1);
    assert_int_equal(same2(EXPR_MIN, DTYPE_U64, -1, 1), 1);
    assert_int_equal((int64_t)same2(EXPR_ABS, DTYPE_I32, INT32_MIN, 0), INT32_MIN);
    assert_int_equal(eval2(EXPR_LESS, DTYPE_BOOL, DTYPE_I32, UINT64_MAX, 0), 1);
    assert_int_equal(eval2(EXPR_LESS, DTYPE_BOOL, DTYPE_U64, UINT64_MAX, 0), 0);
    assert_int_equal(same2(EXPR_NOT, DTYPE_BOOL, 1, 0), 0);
}

static void test_floats(void **state)
{
    (void)state;
    const uint64_t minus_zero = 0x80000000, nan = 0x7fc00000, one = 0x3f800000;
    assert_int_equal(eval2(EXPR_MIN, DTYPE_F32, DTYPE_F32, 0, minus_zero), minus_zero);
    assert_int_equal(eval2(EXPR_MIN, DTYPE_F32, DTYPE_F32, minus_zero, 0), minus_zero);
    assert_int_equal(eval2(EXPR_MAX, DTYPE_F32, DTYPE_F32, minus_zero, 0), 0);
    assert_int_equal(eval2(EXPR_MAX, DTYPE_F32, DTYPE_F32, nan, one), nan);
    assert_int_equal(eval2(EXPR_MIN, DTYPE_F32, DTYPE_F32, one, nan), nan);
    assert_int_equal(eval2(EXPR_EQUAL, DTYPE_BOOL, DTYPE_F32, nan, nan), 0);
    assert_int_equal(eval2(EXPR_NOT_EQUAL, DTYPE_BOOL, DTYPE_F32, nan, nan), 1);
    assert_int_equal(eval2(EXPR_EQUAL, DTYPE_BOOL, DTYPE_F32, 0, minus_zero), 1);
    assert_int_equal(eval2(EXPR_NEG, DTYPE_F32, DTYPE_F32, 0, 0), minus_zero);
    const uint64_t fma_arguments[] = {0x3f800001, 0x3f800001, 0xbf800002}; /* exact 2^-46 */
    uint64_t result = 0;
    assert_true(expr_eval_op(EXPR_FMA, DTYPE_F32, DTYPE_F32, fma_arguments, &result));
    assert_int_equal(result, runner_bits(0x1p-46f));
    assert_false(expr_eval_op(EXPR_EXP, DTYPE_F32, DTYPE_F32, fma_arguments, &result));
    assert_false(expr_eval_op(EXPR_AND, DTYPE_F32, DTYPE_F32, fma_arguments, &result));
    assert_false(expr_eval_op(EXPR_ADD, DTYPE_F16, DTYPE_F16, fma_arguments, &result));
}

struct conversion_case {
    enum dtype to, from;
    uint64_t bits, result;
};

static void test_conversions(void **state)
{
    (void)state;
    static const struct conversion_case cases[] = {
        {DTYPE_F16, DTYPE_F32, 0x477fefff, 0x7bff}, /* just below the tie to infinity */
        {DTYPE_F16, DTYPE_F32, 0x477ff000, 0x7c00}, /* 65520 */
        {DTYPE_F16, DTYPE_F32, 0x33000000, 0x0000}, /* 2^-25: a tie to even */
        {DTYPE_F16, DTYPE_F32, 0x33000001, 0x0001},
        {DTYPE_F16, DTYPE_F64, 0x3ff0020000000001, 0x3c01}, /* above a tie by less than f32 sees */
        {DTYPE_BF16, DTYPE_F32, 0x3f808000, 0x3f80},        /* tie to even */
        {DTYPE_BF16, DTYPE_F32, 0x3f818000, 0x3f82},
        {DTYPE_F8E4M3FN, DTYPE_F32, 0x43e80000, 0x7e},   /* 464: a tie, to 448 */
        {DTYPE_F8E4M3FN, DTYPE_F32, 0x43e88000, 0x7f},   /* 465: NaN */
        {DTYPE_F8E5M2, DTYPE_F32, 0x47700000, 0x7c},     /* 61440: infinity */
        {DTYPE_F8E4M3FNUZ, DTYPE_F32, 0x80000000, 0x00}, /* no -0 */
        {DTYPE_F8E5M2FNUZ, DTYPE_F32, 0x7f800000, 0x80},
        {DTYPE_F4E2M1, DTYPE_F32, 0x7f800000, 0x7},
        {DTYPE_F4E2M1, DTYPE_F32, 0x40200000, 0x4},  /* 2.5: a tie, to 2 */
        {DTYPE_F8E8M0, DTYPE_F32, 0x3fc00000, 0x80}, /* 1.5: ties go up */
        {DTYPE_F8E8M0, DTYPE_F32, 0, 0x00},
        {DTYPE_I32, DTYPE_F32, 0x4f000000, INT32_MAX}, /* 2^31 */
        {DTYPE_I32, DTYPE_F32, 0xff800000, (uint64_t)INT32_MIN},
        {DTYPE_I32, DTYPE_F32, 0x7fc00000, 0},
        {DTYPE_U8, DTYPE_F32, 0xbf800000, 0},                  /* -1 */
        {DTYPE_I8, DTYPE_F32, 0xc3008000, (uint64_t)INT8_MIN}, /* -128.5 */
        {DTYPE_U64, DTYPE_F32, 0x7f800000, UINT64_MAX},
        {DTYPE_U8, DTYPE_I32, 257, 1},
        {DTYPE_BOOL, DTYPE_F32, 0x7fc00000, 1},
        {DTYPE_BOOL, DTYPE_F32, 0x80000000, 0},
        {DTYPE_BOOL, DTYPE_I32, 256, 1},
        {DTYPE_F32, DTYPE_I64, 0x0040000040000001,
         0x5a800001}, /* above a tie by less than f64 sees: one rounding */
        {DTYPE_F32, DTYPE_F16, 0x0001, 0x33800000},
        {DTYPE_F32, DTYPE_U64, UINT64_MAX, 0x5f800000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t result = 0;
        assert_true(expr_eval_convert(cases[i].to, cases[i].from, cases[i].bits, &result));
        if (result != cases[i].result)
            fail_msg("case %u: 0x%llx, expected 0x%llx", (unsigned)i, (unsigned long long)result,
                     (unsigned long long)cases[i].result);
    }
    uint64_t result = 0;
    assert_false(expr_eval_convert(DTYPE_STRING, DTYPE_F32, 0, &result));
    assert_false(expr_eval_convert(DTYPE_F32, DTYPE_C64, 0, &result));
}

/* What run2 expanded last; EXPR_NONE in a new pool. */
static enum expr_op last_op;

static uint64_t run2(enum expr_op op, enum dtype dtype, uint64_t a, uint64_t b)
{
    static struct runner runner;
    static enum dtype last_dtype;
    static expr root;
    if (op != last_op || dtype != last_dtype) {
        expr x = expr_load(&pool, 0, dtype, 0, NULL), y = expr_load(&pool, 1, dtype, 0, NULL);
        root = expr_expand(&pool, expr_binary(&pool, op, x, y));
        runner_init(&runner, &pool, root);
        last_op = op;
        last_dtype = dtype;
    }
    const uint64_t *const inputs[] = {&a, &b};
    uint64_t result = 0;
    assert_true(runner_run(&runner, root, inputs, 1, &result));
    return result;
}

/* Square and multiply has the plain loop's value. */
static void test_integer_pow(void **state)
{
    (void)state;
    last_op = EXPR_NONE;
    for (int64_t x = -6; x <= 6; x++)
        for (int64_t y = 0; y < 80; y++) {
            uint64_t plain = 1;
            for (int64_t i = 0; i < y; i++)
                plain *= (uint64_t)x;
            assert_int_equal(run2(EXPR_POW, DTYPE_I64, (uint64_t)x, (uint64_t)y), plain);
        }
    for (int64_t x = -6; x <= 6; x++)
        for (int64_t y = 0; y < 40; y++) {
            uint64_t plain = 1;
            for (int64_t i = 0; i < y; i++)
                plain *= (uint64_t)x;
            assert_int_equal(run2(EXPR_POW, DTYPE_I32, (uint64_t)x, (uint64_t)y),
                             expr_eval_extend(DTYPE_I32, plain));
        }
    assert_int_equal(run2(EXPR_POW, DTYPE_I32, 2, UINT64_MAX), 0); /* 2^-1 */
    assert_int_equal(run2(EXPR_POW, DTYPE_I32, 1, UINT64_MAX), 1);
    assert_int_equal((int64_t)run2(EXPR_POW, DTYPE_I32, UINT64_MAX, (uint64_t)-3), -1);
    assert_int_equal(run2(EXPR_POW, DTYPE_I32, UINT64_MAX, (uint64_t)-4), 1);
    assert_int_equal(run2(EXPR_POW, DTYPE_I32, 0, UINT64_MAX), 0);
}

/* The float remainder is exact, so it equals C's fmod bit for bit. */
static void test_float_remainder(void **state)
{
    (void)state;
    last_op = EXPR_NONE;
    static const uint64_t corners[] = {0,          0x80000000, 1,          0x007fffff, 0x00800000,
                                       0x3f800000, 0x7f7fffff, 0x7f800000, 0x7fc00000};
    for (int i = 0; i < 20000; i++) {
        uint64_t a = random_bits() >> 32, b = random_bits() >> 32;
        if (i % 4 == 0)
            b = (a & 0xff800000) ^ (b & 0x0fffffff); /* near exponents */
        if (i < 81) {
            a = corners[i / 9];
            b = corners[i % 9];
        }
        uint64_t got = run2(EXPR_REMAINDER, DTYPE_F32, a, b),
                 expected = runner_bits(fmodf(runner_f32(a), runner_f32(b)));
        bool both_nan = isnan(runner_f32(got)) && isnan(runner_f32(expected));
        if (got != expected && !both_nan)
            fail_msg("fmod(%a, %a) is %a, expected %a", (double)runner_f32(a), (double)runner_f32(b),
                     (double)runner_f32(got), (double)runner_f32(expected));
    }
    for (int i = 0; i < 1000; i++) {
        uint64_t a = random_bits(),
                 b = i & 1 ? random_bits() : (a & 0xfff0000000000000) ^ (random_bits() >> 8);
        double x, y, got;
        memcpy(&x, &a, sizeof x);
        memcpy(&y, &b, sizeof y);
        uint64_t bits = run2(EXPR_REMAINDER, DTYPE_F64, a, b);
        memcpy(&got, &bits, sizeof got);
        double expected = fmod(x, y);
        if (!(isnan(got) && isnan(expected)) && (got != expected || signbit(got) != signbit(expected)))
            fail_msg("fmod(%a, %a) is %a, expected %a", x, y, got, expected);
    }
}

/* After expansion no division sees 0 or MIN / -1: the select in front picks a harmless divisor. */
static void test_division_guards(void **state)
{
    (void)state;
    last_op = EXPR_NONE;
    static const enum dtype types[] = {DTYPE_I32, DTYPE_I64, DTYPE_U32, DTYPE_U64};
    static const int64_t values[] = {0, 1, -1, 2, -2, 7, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 10; i++)
            for (int k = 0; k < 10; k++) {
                uint64_t a = expr_eval_extend(types[t], (uint64_t)values[i]),
                         b = expr_eval_extend(types[t], (uint64_t)values[k]);
                assert_int_equal(run2(EXPR_DIV, types[t], a, b),
                                 same2(EXPR_DIV, types[t], (int64_t)a, (int64_t)b));
                assert_int_equal(run2(EXPR_REMAINDER, types[t], a, b),
                                 same2(EXPR_REMAINDER, types[t], (int64_t)a, (int64_t)b));
            }
    expr x = expr_load(&pool, 0, DTYPE_I32, 0, NULL), y = expr_load(&pool, 1, DTYPE_I32, 0, NULL);
    expr by_seven = expr_binary(&pool, EXPR_DIV, x, expr_int(&pool, DTYPE_I32, 7));
    assert_int_equal(expr_expand(&pool, by_seven), by_seven);
    assert_int_not_equal(expr_at(&pool, expr_expand(&pool, expr_binary(&pool, EXPR_DIV, x, y)))->op,
                         EXPR_DIV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_integers),        TEST(test_floats),
                                       TEST(test_conversions),     TEST(test_integer_pow),
                                       TEST(test_float_remainder), TEST(test_division_guards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
