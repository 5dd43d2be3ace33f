/* Accuracy of the expanded functions and exactness of the expanded conversions, run by the one-operation
 * evaluator. For every function: the largest error in units of the last place over all f16 and bf16 values,
 * over random f32 (f64) of all exponents, and the same bits as the table in docs/kernel-ir.md states; special
 * values by IEEE's rules. With GPUCC_EXHAUSTIVE=1 every f32 is tried. */
#include "tests/unit/expr_fixture.h"
#include "tests/unit/expr_runner.h"

#include <inttypes.h>

#if defined(__SANITIZE_ADDRESS__)
enum { SAMPLES_F32 = 1 << 18, SAMPLES_F64 = 1 << 15 }; /* slow there, and the same arithmetic */
#else
enum { SAMPLES_F32 = 1 << 22, SAMPLES_F64 = 1 << 18 };
#endif

static bool exhaustive(void)
{
    const char *flag = getenv("GPUCC_EXHAUSTIVE");
    return flag && strcmp(flag, "1") == 0;
}

static double f64_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* |value - exact| in units of the last place of the format at the exact value. */
static double error_in_ulp(const struct float_format *format, double value, long double exact)
{
    if (isnan(exact) || isnan(value))
        return isnan(exact) && isnan(value) ? 0 : HUGE_VAL;
    long double largest = format->bits == 32 ? 0x1.fffffffp+127L : 0x1.fffffffffffff8p+1023L;
    if (fabsl(exact) >= largest)
        return isinf(value) && (value > 0) == (exact > 0) ? 0 : HUGE_VAL;
    if (isinf(value)) /* within an ulp of the largest number */
        return fabsl(exact) > largest * (1 - ldexpl(1, -(int)format->mantissa_bits)) ? 1 : HUGE_VAL;
    int exponent;
    frexpl(exact, &exponent);
    if (exact == 0 || exponent < 2 - format->bias)
        exponent = 2 - format->bias;
    return (double)fabsl(ldexpl((long double)value - exact, (int)format->mantissa_bits + 1 - exponent));
}

struct function {
    const char *name;
    enum expr_op op;
    enum dtype dtype;
    double bound;
    long double (*reference)(long double x, long double y);
};

static long double reference_exp(long double x, long double y)
{
    (void)y;
    return expl(x);
}
static long double reference_exp2(long double x, long double y)
{
    (void)y;
    return exp2l(x);
}
static long double reference_log(long double x, long double y)
{
    (void)y;
    return logl(x);
}
static long double reference_sin(long double x, long double y)
{
    (void)y;
    return sinl(x);
}
static long double reference_cos(long double x, long double y)
{
    (void)y;
    return cosl(x);
}
static long double reference_tanh(long double x, long double y)
{
    (void)y;
    return tanhl(x);
}
static long double reference_erf(long double x, long double y)
{
    (void)y;
    return erfl(x);
}
static long double reference_sigmoid(long double x, long double y)
{
    (void)y;
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
static long double reference_pow(long double x, long double y)
{
    return powl(x, y);
}

static const struct function functions[] = {
    {"exp", EXPR_EXP, DTYPE_F32, 1, reference_exp},
    {"exp2", EXPR_EXP2, DTYPE_F32, 1, reference_exp2},
    {"log", EXPR_LOG, DTYPE_F32, 1, reference_log},
    {"sin", EXPR_SIN, DTYPE_F32, 1.5, reference_sin},
    {"cos", EXPR_COS, DTYPE_F32, 1.5, reference_cos},
    {"tanh", EXPR_TANH, DTYPE_F32, 2, reference_tanh},
    {"erf", EXPR_ERF, DTYPE_F32, 2, reference_erf},
    {"sigmoid", EXPR_SIGMOID, DTYPE_F32, 2, reference_sigmoid},
    {"pow", EXPR_POW, DTYPE_F32, 1, reference_pow},
    {"exp", EXPR_EXP, DTYPE_F64, 1, reference_exp},
    {"exp2", EXPR_EXP2, DTYPE_F64, 1, reference_exp2},
    {"log", EXPR_LOG, DTYPE_F64, 1, reference_log},
    {"sin", EXPR_SIN, DTYPE_F64, 1, reference_sin},
    {"cos", EXPR_COS, DTYPE_F64, 1, reference_cos},
    {"tanh", EXPR_TANH, DTYPE_F64, 2, reference_tanh},
    {"erf", EXPR_ERF, DTYPE_F64, 2, reference_erf},
    {"sigmoid", EXPR_SIGMOID, DTYPE_F64, 2, reference_sigmoid},
    {"pow", EXPR_POW, DTYPE_F64, 1.5, reference_pow},
};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

struct measured {
    double worst;
    uint64_t x, y;
};

struct subject {
    const struct function *function;
    struct runner runner;
    expr root;
    uint64_t x[RUNNER_BLOCK], y[RUNNER_BLOCK];
    uint32_t count;
};

static double number(const struct function *function, uint64_t bits)
{
    return function->dtype == DTYPE_F64 ? f64_of(bits) : (double)runner_f32(bits);
}

static void flush(struct subject *subject, struct measured *out)
{
    const uint64_t *const inputs[] = {subject->x, subject->y};
    uint64_t results[RUNNER_BLOCK];
    const struct function *f = subject->function;
    assert_true(runner_run(&subject->runner, subject->root, inputs, subject->count, results));
    for (uint32_t i = 0; i < subject->count; i++) {
        double x = number(f, subject->x[i]), y = number(f, subject->y[i]);
        long double exact = f->reference((long double)x, (long double)y);
        double error = error_in_ulp(float_format_of(f->dtype), number(f, results[i]), exact);
        if (error > out->worst) {
            out->worst = error;
            out->x = subject->x[i];
            out->y = subject->y[i];
        }
    }
    subject->count = 0;
}

static void try_bits(struct subject *subject, uint64_t x, uint64_t y, struct measured *out)
{
    subject->x[subject->count] = x;
    subject->y[subject->count++] = y;
    if (subject->count == RUNNER_BLOCK)
        flush(subject, out);
}

static void start(struct subject *subject, const struct function *function)
{
    expr x = expr_load(&pool, 0, function->dtype, 0, NULL), y = expr_load(&pool, 1, function->dtype, 0, NULL);
    expr call =
        function->op == EXPR_POW ? expr_binary(&pool, EXPR_POW, x, y) : expr_unary(&pool, function->op, x);
    memset(subject, 0, sizeof *subject);
    subject->function = function;
    subject->root = expr_expand(&pool, call);
    runner_init(&subject->runner, &pool, subject->root);
}

/* Every value of a 16-bit type, as an f32 (f64); for pow, with a random other operand. */
static struct measured measure_narrow(const struct function *function, enum dtype narrow)
{
    struct subject *subject = arena_new(&arena, struct subject);
    struct measured result = {0};
    start(subject, function);
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint64_t x, y;
        assert_true(expr_eval_convert(function->dtype, narrow, bits, &x));
        assert_true(expr_eval_convert(function->dtype, narrow, random_bits() & 0xffff, &y));
        try_bits(subject, x, y, &result);
        if (function->op == EXPR_POW)
            try_bits(subject, y, x, &result);
    }
    flush(subject, &result);
    return result;
}

static uint64_t from_double(enum dtype dtype, double value)
{
    uint64_t bits, result = 0;
    memcpy(&bits, &value, sizeof bits);
    expr_eval_convert(dtype, DTYPE_F64, bits, &result);
    return result;
}

/* Operands of pow whose result is mostly in range: y so that y log2 |x| is spread over the exponents. */
static void try_pow(struct subject *subject, struct measured *out)
{
    enum dtype dtype = subject->function->dtype;
    double limit = dtype == DTYPE_F64 ? 1080 : 152;
    uint64_t x = random_bits() >> (64 - dtype_bits(dtype));
    double base = fabs(number(subject->function, x));
    if (random_bits() & 1) {
        base = 1 + ldexp((double)(int64_t)random_bits(), -64 - (int)(random_bits() % 30));
        x = from_double(dtype, base);
    }
    double y = ldexp((double)(int64_t)random_bits(), -63) * limit / log2(base);
    if (random_bits() & 1)
        y = rint(y);
    try_bits(subject, x, from_double(dtype, y), out);
}

static struct measured measure_random(const struct function *function, uint32_t samples)
{
    struct subject *subject = arena_new(&arena, struct subject);
    struct measured result = {0};
    start(subject, function);
    for (uint32_t i = 0; i < samples; i++) {
        if (function->op == EXPR_POW) {
            try_pow(subject, &result);
        } else if (i & 1) { /* all exponents */
            try_bits(subject, random_bits() >> (64 - dtype_bits(function->dtype)), 0, &result);
        } else { /* the functions' lively parts */
            double span = (i & 2) ? 4 : (i & 4) ? 100 : 760;
            double x = ldexp((double)(int64_t)random_bits(), -63) * span;
            try_bits(subject, from_double(function->dtype, function->op == EXPR_LOG ? fabs(x) / span * 3 : x),
                     0, &result);
        }
    }
    flush(subject, &result);
    return result;
}

static struct measured measure_all(const struct function *function)
{
    struct subject *subject = arena_new(&arena, struct subject);
    struct measured result = {0};
    start(subject, function);
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits++)
        try_bits(subject, bits, 0, &result);
    flush(subject, &result);
    return result;
}

static void test_functions(void **state)
{
    (void)state;
    bool failed = false;
    printf("| function | type | bound | all f16 | all bf16 | random | worst argument "
           "|\n|---|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < FUNCTION_COUNT; i++) {
        const struct function *f = &functions[i];
        struct measured half = measure_narrow(f, DTYPE_F16), brain = measure_narrow(f, DTYPE_BF16);
        struct measured random = measure_random(f, f->dtype == DTYPE_F64 ? SAMPLES_F64 : SAMPLES_F32);
        if (exhaustive() && f->dtype == DTYPE_F32 && f->op != EXPR_POW)
            random = measure_all(f);
        double worst = fmax(random.worst, fmax(half.worst, brain.worst));
        const struct measured *at = worst == random.worst ? &random : worst == half.worst ? &half : &brain;
        printf("| %s | %s | %g | %.3f | %.3f | %.3f | %.9g", f->name, dtype_name(f->dtype), f->bound,
               half.worst, brain.worst, random.worst, number(f, at->x));
        if (f->op == EXPR_POW)
            printf(", %.9g", number(f, at->y));
        printf(" |\n");
        fflush(stdout);
        failed |= worst > f->bound;
    }
    assert_false(failed);
}

/* ---- special values ------------------------------------------------------------------------------------ */

struct special {
    enum expr_op op;
    double x, y, result;
};

static const struct special specials[] = {
    {EXPR_EXP, INFINITY, 0, INFINITY},
    {EXPR_EXP, -INFINITY, 0, 0},
    {EXPR_EXP, 0, 0, 1},
    {EXPR_EXP, -0.0, 0, 1},
    {EXPR_EXP, NAN, 0, NAN},
    {EXPR_EXP, 1e30, 0, INFINITY},
    {EXPR_EXP, -1e30, 0, 0},
    {EXPR_EXP2, INFINITY, 0, INFINITY},
    {EXPR_EXP2, -INFINITY, 0, 0},
    {EXPR_EXP2, 10, 0, 1024},
    {EXPR_EXP2, -126, 0, 0x1p-126},
    {EXPR_EXP2, -149, 0, 0x1p-149},
    {EXPR_EXP2, NAN, 0, NAN},
    {EXPR_LOG, 0, 0, -INFINITY},
    {EXPR_LOG, -0.0, 0, -INFINITY},
    {EXPR_LOG, -1, 0, NAN},
    {EXPR_LOG, -INFINITY, 0, NAN},
    {EXPR_LOG, INFINITY, 0, INFINITY},
    {EXPR_LOG, 1, 0, 0},
    {EXPR_LOG, NAN, 0, NAN},
    {EXPR_SIN, 0, 0, 0},
    {EXPR_SIN, -0.0, 0, -0.0},
    {EXPR_SIN, INFINITY, 0, NAN},
    {EXPR_SIN, -INFINITY, 0, NAN},
    {EXPR_SIN, NAN, 0, NAN},
    {EXPR_COS, 0, 0, 1},
    {EXPR_COS, -INFINITY, 0, NAN},
    {EXPR_COS, NAN, 0, NAN},
    {EXPR_TANH, -0.0, 0, -0.0},
    {EXPR_TANH, INFINITY, 0, 1},
    {EXPR_TANH, -INFINITY, 0, -1},
    {EXPR_TANH, NAN, 0, NAN},
    {EXPR_TANH, 0x1p-149, 0, 0x1p-149},
    {EXPR_ERF, -0.0, 0, -0.0},
    {EXPR_ERF, INFINITY, 0, 1},
    {EXPR_ERF, -INFINITY, 0, -1},
    {EXPR_ERF, NAN, 0, NAN},
    {EXPR_SIGMOID, INFINITY, 0, 1},
    {EXPR_SIGMOID, -INFINITY, 0, 0},
    {EXPR_SIGMOID, 0, 0, 0.5},
    {EXPR_SIGMOID, NAN, 0, NAN},
};

static double run_once(enum expr_op op, enum dtype dtype, double x, double y)
{
    const struct function function = {.op = op, .dtype = dtype};
    struct subject *subject = arena_new(&arena, struct subject);
    start(subject, &function);
    uint64_t a = from_double(dtype, x), b = from_double(dtype, y), result;
    const uint64_t *const inputs[] = {&a, &b};
    assert_true(runner_run(&subject->runner, subject->root, inputs, 1, &result));
    return number(&function, result);
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static void test_specials(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        for (int is_double = 0; is_double < 2; is_double++) {
            const struct special *s = &specials[i];
            double got = run_once(s->op, is_double ? DTYPE_F64 : DTYPE_F32, s->x, s->y);
            if (!same(got, s->result))
                fail_msg("%s(%g) is %g, expected %g", expr_op_name(s->op), s->x, got, s->result);
        }
}

/* Every pair of these against C's pow, which follows IEEE 754 in the special cases. */
static void test_pow_specials(void **state)
{
    (void)state;
    static const double values[] = {0.0,  -0.0,     1,         -1,       2,         -2,       0.5,
                                    -0.5, 3,        -3,        NAN,      1e30,      -1e30,    1.5,
                                    -1.5, INFINITY, -INFINITY, 0x1p-149, -0x1p-149, 16777215, -16777215};
    enum { COUNT = sizeof values / sizeof *values };
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < COUNT; k++) {
            double exact = pow(values[i], values[k]),
                   single = run_once(EXPR_POW, DTYPE_F32, values[i], values[k]);
            if (!same((double)(float)exact, single))
                fail_msg("f32 pow(%g, %g) is %g, expected %g", values[i], values[k], single, exact);
            double wide = run_once(EXPR_POW, DTYPE_F64, values[i], values[k]);
            if (!same(exact, wide) && !(fabs(wide - exact) <= fabs(exact) * 0x1p-52))
                fail_msg("f64 pow(%g, %g) is %g, expected %g", values[i], values[k], wide, exact);
        }
}

/* Constant exponents take forms of their own; they must agree with pow too. */
static void test_pow_constants(void **state)
{
    (void)state;
    static const double exponents[] = {0, 1, 2, 3, -1, 0.5, 4, -0.5};
    for (size_t k = 0; k < sizeof exponents / sizeof *exponents; k++) {
        expr x = expr_load(&pool, 0, DTYPE_F32, 0, NULL);
        expr root =
            expr_expand(&pool, expr_binary(&pool, EXPR_POW, x, expr_float(&pool, DTYPE_F32, exponents[k])));
        struct runner runner;
        runner_init(&runner, &pool, root);
        for (uint32_t i = 0; i < 20000; i++) {
            uint64_t bits = i < 8 ? ((const uint64_t[]){0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1,
                                                        0x80000001, 0x7f7fffff})[i]
                                  : random_bits() & UINT32_MAX;
            const uint64_t *const inputs[] = {&bits};
            uint64_t result;
            assert_true(runner_run(&runner, root, inputs, 1, &result));
            double got = (double)runner_f32(result);
            long double exact = powl((long double)runner_f32(bits), (long double)exponents[k]);
            if (error_in_ulp(float_format_of(DTYPE_F32), got, exact) > (exponents[k] == 3 ? 1.5 : 1) ||
                (!isnan(got) && signbit(got) != (signbit(exact) != 0)))
                fail_msg("pow(%g, %g) is %g, expected %Lg", (double)runner_f32(bits), exponents[k], got,
                         exact);
        }
    }
}

/* ---- conversions --------------------------------------------------------------------------------------- */

static const enum dtype number_types[] = {
    DTYPE_F32,        DTYPE_F64,    DTYPE_F16,    DTYPE_BF16, DTYPE_F8E4M3FN, DTYPE_F8E4M3FNUZ, DTYPE_F8E5M2,
    DTYPE_F8E5M2FNUZ, DTYPE_F4E2M1, DTYPE_F8E8M0, DTYPE_I8,   DTYPE_U8,       DTYPE_I16,        DTYPE_U16,
    DTYPE_I32,        DTYPE_U32,    DTYPE_I64,    DTYPE_U64,  DTYPE_BOOL};
enum { NUMBER_TYPES = sizeof number_types / sizeof *number_types };

static bool is_nan_of(enum dtype dtype, uint64_t bits)
{
    uint64_t wide;
    return dtype_is_float(dtype) && expr_eval_convert(DTYPE_F64, dtype, bits, &wide) && isnan(f64_of(wide));
}

struct conversion {
    enum dtype to, from;
    struct runner runner;
    expr root;
    uint64_t inputs[RUNNER_BLOCK];
    uint32_t count;
};

static void conversion_flush(struct conversion *c)
{
    uint64_t results[RUNNER_BLOCK], expected;
    const uint64_t *const inputs[] = {c->inputs};
    assert_true(runner_run(&c->runner, c->root, inputs, c->count, results));
    for (uint32_t i = 0; i < c->count; i++) {
        assert_true(expr_eval_convert(c->to, c->from, c->inputs[i], &expected));
        if (results[i] != expected && !(is_nan_of(c->to, results[i]) && is_nan_of(c->to, expected)))
            fail_msg("%s 0x%" PRIx64 " to %s is 0x%" PRIx64 ", expected 0x%" PRIx64, dtype_name(c->from),
                     c->inputs[i], dtype_name(c->to), results[i], expected);
    }
    c->count = 0;
}

static void conversion_try(struct conversion *c, uint64_t bits)
{
    c->inputs[c->count++] = expr_eval_extend(c->from, bits);
    if (c->count == RUNNER_BLOCK)
        conversion_flush(c);
}

/* Small types: every value. Others: every exponent with mantissas around every place where a narrower type
 * rounds, and random bits. */
static void try_conversion(enum dtype to, enum dtype from, uint32_t samples)
{
    struct conversion *c = arena_new(&arena, struct conversion);
    unsigned bits = from == DTYPE_BOOL ? 1 : dtype_bits(from);
    c->to = to;
    c->from = from;
    c->root = expr_expand(&pool, expr_convert(&pool, to, expr_load(&pool, 0, from, 0, NULL)));
    runner_init(&c->runner, &pool, c->root);
    if (bits <= 16) {
        for (uint64_t i = 0; i < UINT64_C(1) << bits; i++)
            conversion_try(c, i);
        conversion_flush(c);
        return;
    }
    for (uint32_t i = 0; i < samples; i++)
        conversion_try(c, random_bits());
    for (uint32_t place = 0; place < bits; place++) /* powers of two and their neighbours; halves */
        for (int64_t step = -3; step <= 3; step++)
            for (uint64_t half = 0; half < 3; half++) {
                uint64_t around = (UINT64_C(1) << place) + (place ? half << (place - 1) : 0);
                conversion_try(c, around + (uint64_t)step);
                conversion_try(c, 0 - around + (uint64_t)step);
            }
    if (dtype_is_float(from)) {
        unsigned mantissa = float_format_of(from)->mantissa_bits, exponents = 1u << (bits - 1 - mantissa);
        for (uint64_t exponent = 0; exponent < exponents; exponent++)
            for (unsigned place = 0; place <= mantissa; place++)
                for (int64_t step = -2; step <= 2; step++) {
                    uint64_t ones = (UINT64_C(1) << mantissa) - (UINT64_C(1) << place);
                    uint64_t value = (exponent << mantissa) + (uint64_t)step;
                    conversion_try(c, value + (UINT64_C(1) << place));
                    conversion_try(c, value + ones);
                    conversion_try(c, (UINT64_C(1) << (bits - 1)) | (value + ones));
                }
    }
    conversion_flush(c);
}

static void test_conversions(void **state)
{
    (void)state;
    for (int i = 0; i < NUMBER_TYPES; i++)
        for (int k = 0; k < NUMBER_TYPES; k++)
            if (i != k)
                try_conversion(number_types[i], number_types[k], 1u << 13);
}

/* All exponents times a dense grid of mantissas, to the two types that matter most. */
static void test_conversions_dense(void **state)
{
    (void)state;
    static const enum dtype targets[] = {DTYPE_F16, DTYPE_BF16};
    for (int t = 0; t < 2; t++) {
        struct conversion *c = arena_new(&arena, struct conversion);
        c->to = targets[t];
        c->from = DTYPE_F32;
        c->root = expr_expand(&pool, expr_convert(&pool, c->to, expr_load(&pool, 0, DTYPE_F32, 0, NULL)));
        runner_init(&c->runner, &pool, c->root);
        uint64_t step = exhaustive() ? 1 : 2039; /* a prime, so that all low bits occur */
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += step)
            conversion_try(c, bits);
        for (uint64_t high = 0; high < 1u << 16; high++) /* around every bf16 and its ties */
            for (int64_t near = -2; near <= 2; near++) {
                conversion_try(c, (high << 16) + (uint64_t)near);
                conversion_try(c, (high << 16) + 0x8000 + (uint64_t)near);
            }
        for (uint64_t high = 0; high < 1u << 19; high += 1) /* around every f16's tie and value */
            conversion_try(c, (high << 13) + 0xfff + (high & 1) * 2 - (high & 2) / 2);
        conversion_flush(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_specials),    TEST(test_pow_specials),      TEST(test_pow_constants),
        TEST(test_conversions), TEST(test_conversions_dense), TEST(test_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
