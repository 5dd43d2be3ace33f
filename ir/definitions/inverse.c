/* Inverse and hyperbolic functions, y = f(x) in x's compute type, made of the primitive functions:
 *
 *   Atan   by thirds of the right angle: atan t, pi/4 + atan((t - 1) / (t + 1)), pi/2 - atan(1 / t), t = |x|,
 *          each within tan(pi / 8), where r + r z p(z), z = r^2, is the arc tangent
 *   Asin   2 atan(x / (1 + sqrt((1 - x) (1 + x))))       Acos   2 atan(sqrt((1 - x) / (1 + x)))
 *   Sinh   (e - 1 / e) / 2 with e = e^|x|, by its series for small |x|, by the square of e^(|x| / 2) for
 * large Cosh   (e + 1 / e) / 2 likewise                      Tan    sin x / cos x Asinh  log1p(t + t^2 / (1 +
 * sqrt(1 + t^2)))          Acosh  log1p(u + sqrt(2 u + u^2)), u = x - 1 Atanh  log1p(2 t / (1 - t)) / 2
 *
 * Odd functions are of |x|, with the sign of x. */
#include "ir/definitions/build.h"

#include <math.h>

static expr real(struct build *b, expr x, double value)
{
    return number(b, expr_at(b->pool, x)->dtype, value);
}

static bool is_wide(struct build *b, expr x)
{
    return expr_at(b->pool, x)->dtype == DTYPE_F64;
}

/* coefficients[0] + x coefficients[1] + ... */
static expr polynomial(struct build *b, expr x, const double *coefficients, unsigned count)
{
    expr sum = real(b, x, coefficients[count - 1]);
    for (unsigned i = count - 1; i > 0; i--)
        sum = add(b, mul(b, sum, x), real(b, x, coefficients[i - 1]));
    return sum;
}

/* The magnitude of y >= 0 with the sign of x, -0 and NaN included. */
static expr with_sign_of(struct build *b, expr y, expr x)
{
    const enum dtype dtype = expr_at(b->pool, x)->dtype, bits = dtype == DTYPE_F64 ? DTYPE_U64 : DTYPE_U32;
    const expr mask =
        expr_int(b->pool, bits, dtype == DTYPE_F64 ? INT64_MIN : (int64_t)INT32_MIN & INT64_C(0xffffffff));
    const expr sign = expr_binary(b->pool, EXPR_AND, expr_bitcast(b->pool, bits, x), mask);
    return expr_bitcast(b->pool, dtype, expr_binary(b->pool, EXPR_OR, expr_bitcast(b->pool, bits, y), sign));
}

/* Interpolations of (atan r / r - 1) / z at Chebyshev's points of [0, tan(pi / 8)^2]: 2.4e-9 and 1.7e-19. */
static const double narrow_arc[] = {-0.33333331760434554, 0.1999954031495797, -0.14263949753605723,
                                    0.10743668324830093, -0.0645171886895935};
static const double wide_arc[] = {-0.3333333333333333,  0.19999999999999804,   -0.1428571428565982,
                                  0.11111111105151729,  -0.09090908753245014,  0.07692296366828179,
                                  -0.06666424735010543, 0.05878927285064914,   -0.05230441986529129,
                                  0.04551538946348003,  -0.034569210796996847, 0.016284304635103268};

/* The arc tangent of t >= 0. The angle added has its low part apart: sums round once. */
static expr arc_of_positive(struct build *b, expr t)
{
    const double eighth = 0.41421356237309504880, right = 1.57079632679489661923;
    const bool wide = is_wide(b, t);
    const double high = wide ? right : (double)(float)right;
    const double low = wide ? 6.123233995736765886e-17 : right - high;
    const expr one = real(b, t, 1);
    const expr large = less(b, real(b, t, 1 / eighth), t), middle = less(b, real(b, t, eighth), t);
    const expr r = choose(b, large, divide(b, real(b, t, -1), t),
                          choose(b, middle, divide(b, sub(b, t, one), add(b, t, one)), t));
    const expr z = mul(b, r, r);
    const expr p = wide ? polynomial(b, z, wide_arc, sizeof wide_arc / sizeof *wide_arc)
                        : polynomial(b, z, narrow_arc, sizeof narrow_arc / sizeof *narrow_arc);
    const expr zero = real(b, t, 0);
    const expr base = choose(b, large, real(b, t, high), choose(b, middle, real(b, t, high / 2), zero));
    const expr rest = choose(b, large, real(b, t, low), choose(b, middle, real(b, t, low / 2), zero));
    return add(b, base, add(b, add(b, rest, mul(b, mul(b, r, z), p)), r));
}

static expr arc_tangent(struct build *b, expr x)
{
    return with_sign_of(b, arc_of_positive(b, function(b, EXPR_ABS, x)), x);
}

static expr arc_sine(struct build *b, expr x)
{
    const expr one = real(b, x, 1);
    const expr other = function(b, EXPR_SQRT, mul(b, sub(b, one, x), add(b, one, x)));
    return mul(b, real(b, x, 2), arc_tangent(b, divide(b, x, add(b, one, other))));
}

static expr arc_cosine(struct build *b, expr x)
{
    const expr one = real(b, x, 1);
    const expr ratio = divide(b, sub(b, one, x), add(b, one, x));
    return mul(b, real(b, x, 2), arc_of_positive(b, function(b, EXPR_SQRT, ratio)));
}

/* Beyond it 1 / e^x is nothing beside e^x. */
static double alone_from(struct build *b, expr x)
{
    return is_wide(b, x) ? 22 : 10;
}

/* e^t / 2 for large t, which overflows no sooner than it must. */
static expr half_exponential(struct build *b, expr t)
{
    const expr root = function(b, EXPR_EXP, mul(b, t, real(b, t, 0.5)));
    return mul(b, mul(b, real(b, t, 0.5), root), root);
}

static expr hyperbolic_sine(struct build *b, expr x)
{
    static const double series[] = {1.0 / 6,
                                    1.0 / 120,
                                    1.0 / 5040,
                                    1.0 / 362880,
                                    1.0 / 39916800,
                                    1.0 / 6227020800.0,
                                    1.0 / 1307674368000.0,
                                    1.0 / 355687428096000.0};
    const expr t = function(b, EXPR_ABS, x), z = mul(b, t, t), e = function(b, EXPR_EXP, t);
    const expr half = real(b, x, 0.5);
    const expr small = add(b, t, mul(b, mul(b, t, z), polynomial(b, z, series, is_wide(b, x) ? 8 : 4)));
    const expr middle = sub(b, mul(b, half, e), divide(b, half, e));
    const expr large = choose(b, less(b, real(b, x, alone_from(b, x)), t), half_exponential(b, t), middle);
    return with_sign_of(b, choose(b, less(b, t, real(b, x, 1)), small, large), x);
}

static expr hyperbolic_cosine(struct build *b, expr x)
{
    const expr t = function(b, EXPR_ABS, x), e = function(b, EXPR_EXP, t), half = real(b, x, 0.5);
    const expr middle = add(b, mul(b, half, e), divide(b, half, e));
    return choose(b, less(b, real(b, x, alone_from(b, x)), t), half_exponential(b, t), middle);
}

/* log(1 + z) for z >= 0: log(u) z / (u - 1) with u = 1 + z loses nothing to the rounding of u. */
static expr log_one_plus(struct build *b, expr z)
{
    const expr one = real(b, z, 1), u = add(b, one, z), logarithm = function(b, EXPR_LOG, u);
    const expr corrected = mul(b, logarithm, divide(b, z, sub(b, u, one)));
    const expr endless = equal(b, u, real(b, z, INFINITY));
    return choose(b, equal(b, u, one), z, choose(b, endless, logarithm, corrected));
}

/* Beyond it x^2 + 1 is x^2. */
static expr is_square_alone(struct build *b, expr t)
{
    return less(b, real(b, t, is_wide(b, t) ? 0x1p28 : 0x1p13), t);
}

static expr log_of_double(struct build *b, expr t)
{
    return add(b, function(b, EXPR_LOG, t), real(b, t, 0.69314718055994530942));
}

static expr inverse_sine(struct build *b, expr x)
{
    const expr t = function(b, EXPR_ABS, x), one = real(b, x, 1), z = mul(b, t, t);
    const expr root = function(b, EXPR_SQRT, add(b, one, z));
    const expr small = log_one_plus(b, add(b, t, divide(b, z, add(b, one, root))));
    return with_sign_of(b, choose(b, is_square_alone(b, t), log_of_double(b, t), small), x);
}

static expr inverse_cosine(struct build *b, expr x)
{
    const expr one = real(b, x, 1), u = sub(b, x, one);
    const expr root = function(b, EXPR_SQRT, add(b, mul(b, real(b, x, 2), u), mul(b, u, u)));
    const expr y = choose(b, is_square_alone(b, x), log_of_double(b, x), log_one_plus(b, add(b, u, root)));
    return choose(b, less(b, x, one), real(b, x, NAN), y);
}

static expr inverse_tangent(struct build *b, expr x)
{
    const expr t = function(b, EXPR_ABS, x), one = real(b, x, 1);
    const expr ratio = divide(b, mul(b, real(b, x, 2), t), sub(b, one, t));
    const expr y = mul(b, real(b, x, 0.5), log_one_plus(b, ratio));
    return with_sign_of(b, choose(b, less(b, one, t), real(b, x, NAN), y), x);
}

expr inverse_function(struct build *b, expr x)
{
    switch (b->node->op) {
    case OP_Acos:
        return arc_cosine(b, x);
    case OP_Acosh:
        return inverse_cosine(b, x);
    case OP_Asin:
        return arc_sine(b, x);
    case OP_Asinh:
        return inverse_sine(b, x);
    case OP_Atan:
        return arc_tangent(b, x);
    case OP_Atanh:
        return inverse_tangent(b, x);
    case OP_Cosh:
        return hyperbolic_cosine(b, x);
    case OP_Sinh:
        return hyperbolic_sine(b, x);
    case OP_Tan:
        return divide(b, function(b, EXPR_SIN, x), function(b, EXPR_COS, x));
    default:
        return 0;
    }
}
