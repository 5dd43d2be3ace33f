/* Definitions of elementwise operators against the C library in double, by value at the odd points, and at
 * empty, scalar and broadcast shapes. */
#include "tests/unit/definition_support.h"

static const double odd_values[] = {0.0,  -0.0, 1.0,  -1.0,     0.5,       -0.5, 1.5,
                                    -2.5, 2.5,  3.75, INFINITY, -INFINITY, NAN,  1e-30};
enum { ODD_COUNT = sizeof odd_values / sizeof *odd_values };

static double reference_round(double x)
{
    return nearbyint(x);
}
static double reference_reciprocal(double x)
{
    return 1 / x;
}
static double reference_relu(double x)
{
    return isnan(x) ? x : x > 0 ? x : 0;
}
static double reference_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double reference_sign(double x)
{
    return isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;
}
static double reference_softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double reference_softsign(double x)
{
    return x / (1 + fabs(x));
}
static double reference_gelu(double x)
{
    return 0.5 * x * (1 + erf(x * sqrt(0.5)));
}
static double reference_hard_swish(double x)
{
    return isnan(x) ? x : x * fmax(0, fmin(1, x / 6 + 0.5));
}
static double reference_negation(double x)
{
    return -x;
}
static double reference_elu(double x)
{
    return x < 0 ? expm1(x) : x;
}
static double reference_celu(double x)
{
    return isnan(x) ? x : fmax(0, x) + fmin(0, expm1(x));
}
static double reference_leaky(double x)
{
    return x < 0 ? (double)0.01f * x : x;
}
static double reference_selu(double x)
{
    return (double)1.05070102214813232421875f * (x > 0 ? x : (double)1.67326319217681884765625f * expm1(x));
}
static double reference_hard_sigmoid(double x)
{
    return isnan(x) ? x : fmax(0, fmin(1, (double)0.2f * x + 0.5));
}
static double reference_mish(double x)
{
    return x * tanh(log1p(exp(x)));
}
static double reference_is_nan(double x)
{
    return isnan(x);
}
static double reference_is_infinite(double x)
{
    return isinf(x) != 0;
}

struct unary_row {
    enum op op;
    double (*reference)(double);
    bool exact;      /* one rounding at most: a result in f64 rounded to the type is the result */
    bool odd_points; /* the odd values too */
    bool to_bool;
};

static const struct unary_row unary_rows[] = {
    {OP_Abs, fabs, true, true, false},
    {OP_Ceil, ceil, true, true, false},
    {OP_Floor, floor, true, true, false},
    {OP_Round, reference_round, true, true, false},
    {OP_Neg, reference_negation, true, true, false},
    {OP_Sqrt, sqrt, true, true, false},
    {OP_Reciprocal, reference_reciprocal, true, true, false},
    {OP_Relu, reference_relu, true, true, false},
    {OP_Sign, reference_sign, true, true, false},
    {OP_IsNaN, reference_is_nan, true, true, true},
    {OP_IsInf, reference_is_infinite, true, true, true},
    {OP_Cos, cos, false, false, false},
    {OP_Sin, sin, false, false, false},
    {OP_Erf, erf, false, true, false},
    {OP_Exp, exp, false, true, false},
    {OP_Log, log, false, true, false},
    {OP_Tanh, tanh, false, true, false},
    {OP_Sigmoid, reference_sigmoid, false, true, false},
    {OP_Softplus, reference_softplus, false, true, false},
    {OP_Softsign, reference_softsign, false, false, false},
    {OP_Gelu, reference_gelu, false, false, false},
    {OP_HardSigmoid, reference_hard_sigmoid, false, true, false},
    {OP_HardSwish, reference_hard_swish, false, false, false},
    {OP_Celu, reference_celu, false, true, false},
    {OP_Elu, reference_elu, false, true, false},
    {OP_Selu, reference_selu, false, true, false},
    {OP_LeakyRelu, reference_leaky, false, true, false},
    {OP_Acos, acos, false, true, false},
    {OP_Acosh, acosh, false, true, false},
    {OP_Asin, asin, false, true, false},
    {OP_Asinh, asinh, false, true, false},
    {OP_Atan, atan, false, true, false},
    {OP_Atanh, atanh, false, true, false},
    {OP_Cosh, cosh, false, true, false},
    {OP_Sinh, sinh, false, true, false},
    {OP_Tan, tan, false, false, false},
    {OP_Mish, reference_mish, false, false, false},
};

static double unit_of(enum dtype dtype)
{
    return dtype == DTYPE_F16    ? 0x1p-10
           : dtype == DTYPE_BF16 ? 0x1p-7
           : dtype == DTYPE_F32  ? 0x1p-23
                                 : 0x1p-49;
}

static void check_unary(struct arena *arena, const struct unary_row *row, struct tensor x)
{
    const enum dtype result = row->to_bool ? DTYPE_BOOL : x.dtype;
    struct op_case c = unary_case(row->op, x, result);
    double *expected = arena_new_array(arena, double, (size_t)tensor_count(&x) + 1);
    for (int64_t i = 0; i < tensor_count(&x); i++) {
        expected[i] = row->reference(x.values[i]);
        if (row->exact)
            expected[i] = decode(result, encode(result, expected[i]));
    }
    run_case(arena, &c, expected, row->exact ? 0 : 12 * unit_of(x.dtype));
}

static void test_unary_functions(void **state)
{
    (void)state;
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F64};
    TEST_ARENA(arena);
    for (size_t r = 0; r < sizeof unary_rows / sizeof *unary_rows; r++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            const struct unary_row *row = &unary_rows[r];
            check_unary(&arena, row,
                        tensor_random(&arena, types[t], (uint32_t)(r + 1), -4, 4, SIZES(3, 7, 41)));
            check_unary(&arena, row, tensor_random(&arena, types[t], 5, 0.25, 2, SCALAR));
            check_unary(&arena, row, tensor_new(&arena, types[t], SIZES(3, 0, 2)));
            if (row->odd_points)
                check_unary(&arena, row, tensor_of(&arena, types[t], SIZES(ODD_COUNT), odd_values));
        }
    arena_release(&arena);
}

static void test_attributes_of_unary(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const double x[] = {-2, -0.5, 0, 0.5, 2}, wide[] = {-INFINITY, 0, INFINITY, NAN, 1};
    struct tensor input = tensor_of(&arena, DTYPE_F32, SIZES(5), x);
    struct op_case c = unary_case(OP_LeakyRelu, input, DTYPE_F32);
    add_attribute(&c, attribute_float(ATTR_alpha, 0.5));
    run_case(&arena, &c, (const double[]){-1, -0.25, 0, 0.5, 2}, 0);
    c = unary_case(OP_HardSigmoid, input, DTYPE_F32);
    add_attribute(&c, attribute_float(ATTR_alpha, 0.5));
    add_attribute(&c, attribute_float(ATTR_beta, 0.25));
    run_case(&arena, &c, (const double[]){0, 0, 0.25, 0.5, 1}, 0);
    c = unary_case(OP_Elu, input, DTYPE_F32);
    add_attribute(&c, attribute_float(ATTR_alpha, 2));
    run_case(&arena, &c, (const double[]){2 * expm1(-2), 2 * expm1(-0.5), 0, 0.5, 2}, 1e-6);
    c = unary_case(OP_Celu, input, DTYPE_F32);
    add_attribute(&c, attribute_float(ATTR_alpha, 2));
    run_case(&arena, &c, (const double[]){2 * expm1(-1), 2 * expm1(-0.25), 0, 0.5, 2}, 1e-6);
    c = unary_case(OP_Gelu, input, DTYPE_F32);
    add_attribute(&c, attribute_word(ATTR_approximate, word_find("tanh")));
    double expected[5];
    for (int i = 0; i < 5; i++)
        expected[i] = 0.5 * x[i] * (1 + tanh(sqrt(2 / acos(-1.0)) * (x[i] + 0.044715 * x[i] * x[i] * x[i])));
    run_case(&arena, &c, expected, 1e-6);
    input = tensor_of(&arena, DTYPE_F32, SIZES(5), wide);
    c = unary_case(OP_IsInf, input, DTYPE_BOOL);
    add_attribute(&c, attribute_int(ATTR_detect_negative, 0));
    run_case(&arena, &c, (const double[]){0, 0, 1, 0, 0}, 0);
    c = unary_case(OP_IsInf, input, DTYPE_BOOL);
    add_attribute(&c, attribute_int(ATTR_detect_positive, 0));
    run_case(&arena, &c, (const double[]){1, 0, 0, 0, 0}, 0);
    arena_release(&arena);
}

static void test_integers_and_bools_of_unary(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const double small[] = {-128, -1, 0, 1, 127}, unsigned_values[] = {0, 1, 200, 255, 7};
    struct op_case c = unary_case(OP_Abs, tensor_of(&arena, DTYPE_I8, SIZES(5), small), DTYPE_I8);
    run_case(&arena, &c, (const double[]){-128, 1, 0, 1, 127}, 0);
    c = unary_case(OP_Neg, tensor_of(&arena, DTYPE_I8, SIZES(5), small), DTYPE_I8);
    run_case(&arena, &c, (const double[]){-128, 1, 0, -1, -127}, 0);
    c = unary_case(OP_Sign, tensor_of(&arena, DTYPE_U8, SIZES(5), unsigned_values), DTYPE_U8);
    run_case(&arena, &c, (const double[]){0, 1, 1, 1, 1}, 0);
    c = unary_case(OP_Abs, tensor_of(&arena, DTYPE_U8, SIZES(5), unsigned_values), DTYPE_U8);
    run_case(&arena, &c, unsigned_values, 0);
    c = unary_case(OP_Relu, tensor_of(&arena, DTYPE_I32, SIZES(5), small), DTYPE_I32);
    run_case(&arena, &c, (const double[]){0, 0, 0, 1, 127}, 0);
    c = unary_case(OP_Not, tensor_of(&arena, DTYPE_BOOL, SIZES(2), (const double[]){0, 1}), DTYPE_BOOL);
    run_case(&arena, &c, (const double[]){1, 0}, 0);
    c = unary_case(OP_Identity, tensor_of(&arena, DTYPE_BOOL, SIZES(2), (const double[]){0, 1}), DTYPE_BOOL);
    run_case(&arena, &c, (const double[]){0, 1}, 0);
    c = unary_case(OP_Exp, tensor_of(&arena, DTYPE_I32, SIZES(5), small), DTYPE_I32);
    c.refused = true;
    run_case(&arena, &c, NULL, 0);
    arena_release(&arena);
}

/* ---- two inputs
 * -------------------------------------------------------------------------------------------------- */

static double reference_binary(enum op op, double a, double b)
{
    switch (op) {
    case OP_Add:
        return a + b;
    case OP_Sub:
        return a - b;
    case OP_Mul:
        return a * b;
    case OP_Div:
        return a / b;
    case OP_Max:
        return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
    case OP_Min:
        return isnan(a) || isnan(b) ? (double)NAN : fmin(a, b);
    case OP_Pow:
        return pow(a, b);
    case OP_PRelu:
        return a < 0 ? a * b : a;
    case OP_Mod:
        return fmod(a, b);
    case OP_Equal:
        return a == b;
    case OP_Less:
        return a < b;
    case OP_LessOrEqual:
        return a <= b;
    case OP_Greater:
        return a > b;
    default:
        return a >= b;
    }
}

static bool is_comparison(enum op op)
{
    return op == OP_Equal || op == OP_Less || op == OP_LessOrEqual || op == OP_Greater ||
           op == OP_GreaterOrEqual;
}

static struct op_case binary_case(struct arena *arena, enum op op, struct tensor a, struct tensor b,
                                  enum dtype result, double **expected)
{
    struct op_case c = {.op = op, .input_count = 2, .output_count = 1, .inputs = {a, b}};
    struct tensor *y = &c.outputs[0];
    y->dtype = result;
    y->rank = a.rank > b.rank ? a.rank : b.rank;
    for (int i = 0; i < y->rank; i++) {
        const int from_a = i - (y->rank - a.rank), from_b = i - (y->rank - b.rank);
        const int64_t left = from_a < 0 ? 1 : a.sizes[from_a], right = from_b < 0 ? 1 : b.sizes[from_b];
        y->sizes[i] = left == 1 ? right : left;
    }
    *expected = arena_new_array(arena, double, (size_t)tensor_count(y) + 1);
    for (int64_t i = 0; i < tensor_count(y); i++) {
        int64_t index[MOST_DIMS];
        index_of(y, i, index);
        (*expected)[i] =
            reference_binary(op, broadcast_at(&a, y->rank, index), broadcast_at(&b, y->rank, index));
    }
    return c;
}

static void test_binary_floats(void **state)
{
    (void)state;
    static const enum op ops[] = {OP_Add,   OP_Sub,   OP_Mul,  OP_Div,         OP_Max,     OP_Min,
                                  OP_PRelu, OP_Equal, OP_Less, OP_LessOrEqual, OP_Greater, OP_GreaterOrEqual};
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_F64};
    TEST_ARENA(arena);
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            const struct tensor lefts[] = {
                tensor_random(&arena, types[t], 1, -3, 3, SIZES(2, 3, 5)),
                tensor_random(&arena, types[t], 2, -3, 3, SIZES(2, 1, 5)),
                tensor_random(&arena, types[t], 3, -3, 3, SIZES(5)),
                tensor_of(&arena, types[t], SIZES(ODD_COUNT), odd_values),
                tensor_random(&arena, types[t], 1, -3, 3, SIZES(2, 0)),
            };
            const struct tensor rights[] = {
                tensor_random(&arena, types[t], 4, -3, 3, SIZES(2, 3, 5)),
                tensor_random(&arena, types[t], 5, -3, 3, SIZES(3, 1)),
                tensor_random(&arena, types[t], 6, -3, 3, SIZES(4, 2, 1)),
                tensor_random(&arena, types[t], 7, -3, 3, SCALAR),
                tensor_random(&arena, types[t], 7, -3, 3, SIZES(1)),
            };
            for (size_t i = 0; i < sizeof lefts / sizeof *lefts; i++) {
                double *expected;
                struct op_case c = binary_case(&arena, ops[o], lefts[i], rights[i],
                                               is_comparison(ops[o]) ? DTYPE_BOOL : types[t], &expected);
                for (int64_t k = 0; k < tensor_count(&c.outputs[0]); k++)
                    expected[k] = decode(c.outputs[0].dtype, encode(c.outputs[0].dtype, expected[k]));
                /* f32 and f64 round once, f16 once in f32 and once more: by one unit at most. */
                run_case(&arena, &c, expected, types[t] == DTYPE_F16 ? 0x1p-10 : 0);
            }
        }
    arena_release(&arena);
}

static void test_binary_integers(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const double a[] = {7, -7, 7, -7, 5, 0}, b[] = {3, 3, -3, -3, 0, 4};
    struct tensor left = tensor_of(&arena, DTYPE_I32, SIZES(6), a),
                  right = tensor_of(&arena, DTYPE_I32, SIZES(6), b);
    double *unused;
    struct op_case c = binary_case(&arena, OP_Div, left, right, DTYPE_I32, &unused);
    run_case(&arena, &c, (const double[]){2, -2, -2, 2, 0, 0}, 0);
    c = binary_case(&arena, OP_Mod, left, right, DTYPE_I32, &unused);
    run_case(&arena, &c, (const double[]){1, 2, -2, -1, 0, 0}, 0);
    add_attribute(&c, attribute_int(ATTR_fmod, 1));
    run_case(&arena, &c, (const double[]){1, -1, 1, -1, 0, 0}, 0);
    left = tensor_of(&arena, DTYPE_U8, SIZES(2), (const double[]){200, 3});
    right = tensor_of(&arena, DTYPE_U8, SIZES(2), (const double[]){100, 7});
    c = binary_case(&arena, OP_Add, left, right, DTYPE_U8, &unused);
    run_case(&arena, &c, (const double[]){44, 10}, 0);
    c = binary_case(&arena, OP_Sub, left, right, DTYPE_U8, &unused);
    run_case(&arena, &c, (const double[]){100, 252}, 0);
    c = binary_case(&arena, OP_Max, left, right, DTYPE_U8, &unused);
    run_case(&arena, &c, (const double[]){200, 7}, 0);
    c = binary_case(&arena, OP_Less, left, right, DTYPE_BOOL, &unused);
    run_case(&arena, &c, (const double[]){0, 1}, 0);
    arena_release(&arena);
}

static void test_float_modulo(void **state)
{
    (void)state;
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16};
    const double a[] = {5.5, -5.5, 5.5, -5.5, 60000, 0.1, 3, 1, INFINITY, 2, 0.75};
    const double b[] = {2, 2, -2, -2, 6e-5, 0.03, INFINITY, 0, 2, NAN, 0.25};
    TEST_ARENA(arena);
    for (int t = 0; t < 2; t++) {
        struct tensor left = tensor_of(&arena, types[t], SIZES(11), a),
                      right = tensor_of(&arena, types[t], SIZES(11), b);
        if (types[t] == DTYPE_F32)
            left.values[4] = (double)1e30f;
        double *expected;
        struct op_case c = binary_case(&arena, OP_Mod, left, right, types[t], &expected);
        c.refused = true;
        run_case(&arena, &c, NULL, 0); /* floats need fmod */
        c.refused = false;
        add_attribute(&c, attribute_int(ATTR_fmod, 1));
        run_case(&arena, &c, expected, 0);
    }
    arena_release(&arena);
}

static void test_power(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const double a[] = {2, -2, 3, 0, 1, 0.5}, b[] = {3, 3, -1, 2, 100, 0.5};
    double *expected;
    struct tensor left = tensor_of(&arena, DTYPE_F32, SIZES(6), a),
                  right = tensor_of(&arena, DTYPE_F32, SIZES(6), b);
    struct op_case c = binary_case(&arena, OP_Pow, left, right, DTYPE_F32, &expected);
    run_case(&arena, &c, expected, 1e-6);
    left = tensor_of(&arena, DTYPE_F32, SIZES(5), a);
    right = tensor_of(&arena, DTYPE_I64, SIZES(5), b);
    c = binary_case(&arena, OP_Pow, left, right, DTYPE_F32, &expected);
    run_case(&arena, &c, expected, 1e-6);
    left = tensor_of(&arena, DTYPE_I32, SIZES(5), a);
    c = binary_case(&arena, OP_Pow, left, right, DTYPE_I32, &expected);
    run_case(&arena, &c, (const double[]){8, -8, 0, 0, 1}, 0);
    left = tensor_of(&arena, DTYPE_U64, SIZES(3), (const double[]){2, 1, 9});
    right = tensor_of(&arena, DTYPE_I64, SIZES(3), (const double[]){-1, -5, 2});
    c = binary_case(&arena, OP_Pow, left, right, DTYPE_U64, &expected);
    run_case(&arena, &c, (const double[]){0, 1, 81}, 0);
    left = tensor_of(&arena, DTYPE_I64, SIZES(2), (const double[]){9, 2});
    right = tensor_of(&arena, DTYPE_F32, SIZES(2), (const double[]){0.5, 0.5});
    c = binary_case(&arena, OP_Pow, left, right, DTYPE_I64, &expected);
    run_case(&arena, &c, (const double[]){3, 1}, 0);
    arena_release(&arena);
}

static void test_logic(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const double a[] = {0, 0, 1, 1}, b[] = {0, 1, 0, 1};
    const struct {
        enum op op;
        double expected[4];
    } rows[] = {
        {OP_And, {0, 0, 0, 1}}, {OP_Or, {0, 1, 1, 1}}, {OP_Xor, {0, 1, 1, 0}}, {OP_Equal, {1, 0, 0, 1}}};
    for (int i = 0; i < 4; i++) {
        double *unused;
        struct op_case c = binary_case(&arena, rows[i].op, tensor_of(&arena, DTYPE_BOOL, SIZES(4), a),
                                       tensor_of(&arena, DTYPE_BOOL, SIZES(4), b), DTYPE_BOOL, &unused);
        run_case(&arena, &c, rows[i].expected, 0);
    }
    double *unused;
    struct op_case c = binary_case(&arena, OP_Add, tensor_of(&arena, DTYPE_BOOL, SIZES(4), a),
                                   tensor_of(&arena, DTYPE_BOOL, SIZES(4), b), DTYPE_BOOL, &unused);
    c.refused = true;
    run_case(&arena, &c, NULL, 0);
    arena_release(&arena);
}

/* ---- choice and conversion
 * --------------------------------------------------------------------------------------- */

static void test_cast(void **state)
{
    (void)state;
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16, DTYPE_I8,
                                       DTYPE_U8,  DTYPE_I16, DTYPE_U16, DTYPE_I32,  DTYPE_U32,
                                       DTYPE_I64, DTYPE_U64, DTYPE_BOOL};
    enum { TYPES = sizeof types / sizeof *types };
    const double values[] = {0,     1,   -1,  2.5,   -2.5, 300,   70000.5, 1e10,
                             -1e10, 127, 128, 255.5, 2049, 65504, 1e20};
    enum { COUNT = sizeof values / sizeof *values };
    TEST_ARENA(arena);
    for (int f = 0; f < TYPES; f++)
        for (int t = 0; t < TYPES; t++) {
            const struct tensor x = tensor_of(&arena, types[f], SIZES(COUNT), values);
            struct op_case c = unary_case(OP_Cast, x, types[t]);
            add_attribute(&c, attribute_dtype(ATTR_to, types[t]));
            double expected[COUNT];
            for (int i = 0; i < COUNT; i++) {
                uint64_t bits = 0;
                assert_true(expr_eval_convert(types[t], types[f], encode(types[f], x.values[i]), &bits));
                expected[i] = decode(types[t], bits);
            }
            run_case(&arena, &c, expected, 0);
        }
    struct op_case c = unary_case(OP_Cast, tensor_of(&arena, DTYPE_F32, SIZES(2), values), DTYPE_F32);
    c.inputs[0].dtype = DTYPE_F6E2M3;
    c.refused = true;
    run_case(&arena, &c, NULL, 0);
    arena_release(&arena);
}

static void test_clip(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const double x[] = {-3, 0, 2, 9, NAN}, low = -1, high = 3, higher = 5;
    struct op_case c = unary_case(OP_Clip, tensor_of(&arena, DTYPE_F32, SIZES(5), x), DTYPE_F32);
    run_case(&arena, &c, x, 0);
    c.input_count = 3;
    c.inputs[2] = tensor_of(&arena, DTYPE_F32, SCALAR, &high);
    run_case(&arena, &c, (const double[]){-3, 0, 2, 3, NAN}, 0);
    c.inputs[1] = tensor_of(&arena, DTYPE_F32, SCALAR, &low);
    run_case(&arena, &c, (const double[]){-1, 0, 2, 3, NAN}, 0);
    c.inputs[1] = tensor_of(&arena, DTYPE_F32, SIZES(1), &higher);
    run_case(&arena, &c, (const double[]){3, 3, 3, 3, NAN}, 0);
    c = unary_case(OP_Clip, tensor_of(&arena, DTYPE_I8, SIZES(4), x), DTYPE_I8);
    c.input_count = 2;
    c.inputs[1] = tensor_of(&arena, DTYPE_I8, SCALAR, &low);
    run_case(&arena, &c, (const double[]){-1, 0, 2, 9}, 0);
    arena_release(&arena);
}

static void test_where(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct op_case c = {.op = OP_Where, .input_count = 3, .output_count = 1};
    c.inputs[0] = tensor_random(&arena, DTYPE_BOOL, 1, 0, 1, SIZES(3, 1));
    c.inputs[1] = tensor_random(&arena, DTYPE_F16, 2, -1, 1, SIZES(2, 1, 4));
    c.inputs[2] = tensor_random(&arena, DTYPE_F16, 3, -1, 1, SCALAR);
    c.outputs[0] = tensor_new(&arena, DTYPE_F16, SIZES(2, 3, 4));
    double expected[24];
    for (int i = 0; i < 24; i++) {
        int64_t index[MOST_DIMS];
        index_of(&c.outputs[0], i, index);
        expected[i] = broadcast_at(&c.inputs[broadcast_at(&c.inputs[0], 3, index) != 0 ? 1 : 2], 3, index);
    }
    run_case(&arena, &c, expected, 0);
    arena_release(&arena);
}

static void test_trilu(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const double offsets[] = {0, 1, -2, 100, -100};
    for (int upper = 0; upper < 2; upper++)
        for (int k = -1; k < 5; k++) {
            const struct tensor x = tensor_random(&arena, DTYPE_I64, 3, 1, 90, SIZES(2, 4, 3));
            struct op_case c = unary_case(OP_Trilu, x, DTYPE_I64);
            add_attribute(&c, attribute_int(ATTR_upper, upper));
            const double offset = k < 0 ? 0 : offsets[k];
            if (k >= 0) {
                c.input_count = 2;
                c.inputs[1] = tensor_of(&arena, DTYPE_I64, SCALAR, &offset);
            }
            double expected[24];
            for (int i = 0; i < 24; i++) {
                const double diagonal = i % 3 - i / 3 % 4;
                expected[i] = (upper ? diagonal >= offset : diagonal <= offset) ? x.values[i] : 0;
            }
            run_case(&arena, &c, expected, 0);
        }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary_functions),
        cmocka_unit_test(test_attributes_of_unary),
        cmocka_unit_test(test_integers_and_bools_of_unary),
        cmocka_unit_test(test_binary_floats),
        cmocka_unit_test(test_binary_integers),
        cmocka_unit_test(test_float_modulo),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_logic),
        cmocka_unit_test(test_cast),
        cmocka_unit_test(test_clip),
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_trilu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
