/* Functions of one f32 argument: argument reduction and minimax polynomials in f32 with explicit fma, no
 * tables. These run in inner loops. Polynomials' coefficients are rounded to f32; their own error is below
 * 0.06 ulp everywhere, what is left is rounding. NaN goes through by arithmetic where it can: comparisons
 * with NaN are false, so selects keep the arithmetic's NaN. */
#include "ir/expr_expand_internal.h"

#include <math.h>

/* (e^r - 1) / r and (2^r - 1) / r on |r| <= ln(2)/2 and 1/2 */
static const double exp_terms[] = {0x1p+0,        0x1.fffffcp-2, 0x1.55549p-3,
                                   0x1.5558a8p-5, 0x1.123aecp-7, 0x1.6a58p-10};
static const double exp2_terms[] = {0x1.62e43p-1,  0x1.ebfbdcp-3, 0x1.c6af78p-5,
                                    0x1.3b2dd4p-7, 0x1.5f0acp-10, 0x1.417a28p-13};
/* (log(1 + f) - f) / f^2 on |f| <= 1/3 */
static const double log_terms[] = {-0x1p-1,        0x1.555504p-2,  -0x1.ffff1ep-3,
                                   0x1.99d10cp-3,  -0x1.55962ep-3, 0x1.1ecb04p-3,
                                   -0x1.f3db5cp-4, 0x1.1e9a4p-3,   -0x1.065d32p-3};
/* (tanh(a) / a - 1) / u with u = a^2, a <= 0.56 */
static const double tanh_terms[] = {-0x1.555554p-2, 0x1.111084p-3, -0x1.b9f486p-5,
                                    0x1.63cb26p-6,  -0x1.0d1b9p-7, 0x1.1c8ef4p-9};
/* erf(a) / a - 1 in u = a^2, a <= 0.93 */
static const double erf_terms[] = {0x1.06eba8p-3, -0x1.81274p-2,   0x1.ce2d68p-4, -0x1.b801bp-6,
                                   0x1.54514ap-8, -0x1.a651e8p-11, 0x1.50636p-14};
/* log2(1 - erf(a)) on 0.92 <= a <= 4 */
static const double erfc_terms[] = {0x1.084a72p-12, -0x1.a129eap+0, -0x1.d3d3dep-1, -0x1.3fee44p-3,
                                    0x1.28e212p-5,  -0x1.8a665ep-8, 0x1.48b1c2p-11, -0x1.fedbcp-16};

static expr power_of_two(struct exprs *pool, expr exponent)
{
    return expr_bitcast(pool, DTYPE_F32, shift_left(pool, raised(pool, exponent, 127), 23));
}

/* e^x or 2^x. `everywhere`: right for every x; else the result must be a normal number (or x NaN). Adding 1.5
 * * 2^23 rounds to an integer and leaves it in the low bits. */
static expr exponential(struct exprs *pool, expr x, bool base_two, bool everywhere)
{
    const double rounder = 0x1.8p+23;
    expr shifted, rest, terms;
    if (base_two) {
        shifted = raised(pool, x, rounder);
        rest = minus(pool, x, raised(pool, shifted, -rounder));
        terms = POLYNOMIAL(pool, exp2_terms, rest);
    } else {
        shifted = fused_by(pool, x, 0x1.715476p+0, expr_float(pool, DTYPE_F32, rounder));
        expr whole = raised(pool, shifted, -rounder);
        rest = fused_by(pool, whole, -0x1.62e43p-1, x);
        rest = fused_by(pool, whole, 0x1.05c61p-29, rest);
        terms = POLYNOMIAL(pool, exp_terms, rest);
    }
    expr value = fused(pool, terms, rest, expr_float(pool, DTYPE_F32, 1));
    expr exponent = raised(pool, expr_bitcast(pool, DTYPE_I32, shifted), -(double)0x4b400000);
    if (!everywhere)
        return times(pool, value, power_of_two(pool, exponent));
    /* Two factors: the exponent may lie outside of what one can hold, and the last product rounds to a
     * subnormal. */
    expr half = shift_right(pool, exponent, 1);
    value = times(pool, value, power_of_two(pool, half));
    value = times(pool, value, power_of_two(pool, minus(pool, exponent, half)));
    value = choose(pool, below(pool, x, base_two ? -150.5 : -104.5), expr_float(pool, DTYPE_F32, 0), value);
    return choose(pool, above(pool, x, base_two ? 128.5 : 89), expr_float(pool, DTYPE_F32, (double)INFINITY),
                  value);
}

static expr logarithm(struct exprs *pool, expr x)
{
    expr subnormal = below(pool, x, 0x1p-126);
    expr bits = expr_bitcast(pool, DTYPE_I32, choose(pool, subnormal, scaled(pool, x, 0x1p+23), x));
    /* the mantissa lands in [2/3, 4/3) */
    expr exponent = shift_right(pool, raised(pool, bits, -(double)0x3f2aaaab), 23);
    expr mantissa = expr_bitcast(pool, DTYPE_F32, minus(pool, bits, shift_left(pool, exponent, 23)));
    exponent = minus(pool, exponent,
                     choose(pool, subnormal, expr_int(pool, DTYPE_I32, 23), expr_int(pool, DTYPE_I32, 0)));
    expr f = raised(pool, mantissa, -1), square = times(pool, f, f);
    expr value = fused(pool, POLYNOMIAL(pool, log_terms, f), square, f);
    value = fused_by(pool, expr_convert(pool, DTYPE_F32, exponent), 0x1.62e43p-1, value);
    value = choose(pool, below(pool, x, (double)INFINITY), value, x);
    expr low = choose(pool, equals(pool, x, 0), expr_float(pool, DTYPE_F32, -(double)INFINITY),
                      expr_float(pool, DTYPE_F32, (double)NAN));
    return choose(pool, above(pool, x, 0), value, low);
}

/* Near 0 a polynomial; else 1 - 2 / (e^2a + 1), where 2 / (...) is at most 1/2. At a = 10 it is 1. */
static expr hyperbolic_tangent(struct exprs *pool, expr x)
{
    expr one = expr_float(pool, DTYPE_F32, 1), a = magnitude(pool, x), square = times(pool, a, a);
    expr near = fused(pool, times(pool, POLYNOMIAL(pool, tanh_terms, square), square), a, a);
    expr bounded = choose(pool, above(pool, a, 10), constant_like(pool, a, 10), a);
    expr e = exponential(pool, plus(pool, bounded, bounded), false, false);
    expr far = minus(pool, one, over(pool, constant_like(pool, a, 2), plus(pool, e, one)));
    return with_sign_of(pool, choose(pool, below(pool, a, 0.55), near, far), x);
}

/* Near 0 a polynomial; else 1 - 2^p(a). At a = 4 it is 1. */
static expr error_function(struct exprs *pool, expr x)
{
    expr a = magnitude(pool, x), square = times(pool, a, a);
    expr near = fused(pool, POLYNOMIAL(pool, erf_terms, square), a, a);
    expr bounded = choose(pool, above(pool, a, 4), constant_like(pool, a, 4), a);
    expr complement = exponential(pool, POLYNOMIAL(pool, erfc_terms, bounded), true, false);
    expr far = minus(pool, expr_float(pool, DTYPE_F32, 1), complement);
    return with_sign_of(pool, choose(pool, below(pool, a, 0.925), near, far), x);
}

expr expand_f32(struct exprs *pool, enum expr_op op, expr x)
{
    switch (op) {
    case EXPR_EXP:
        return exponential(pool, x, false, true);
    case EXPR_EXP2:
        return exponential(pool, x, true, true);
    case EXPR_LOG:
        return logarithm(pool, x);
    case EXPR_SIGMOID:
        return sigmoid_by(pool, x, exponential(pool, negated(pool, magnitude(pool, x)), false, true));
    case EXPR_TANH:
        return hyperbolic_tangent(pool, x);
    case EXPR_ERF:
        return error_function(pool, x);
    default:
        return 0;
    }
}
