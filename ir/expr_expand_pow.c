/* POW and the float REMAINDER.
 *
 * x^y is 2^(y log2 |x|). For f32 the logarithm and the power are computed in f64, which leaves half an ulp of
 * rounding and nothing else. For f64 the logarithm is a sum of two f64 numbers (about 2^-66 of relative
 * error), so that the product with y, which may be a thousand, still holds all bits of the result. log2 |x|
 * is -inf and inf at 0 and inf, and exp2 takes those, so the ends of the range need no selects; the special
 * cases are those of IEEE 754 pow. A constant exponent that is a small whole number is a product.
 *
 * The remainder is exact: long division of the integer mantissas, a fixed number of bits a step. */
#include "ir/expr_expand_internal.h"

#include <math.h>

/* (atanh(s) / s - 1) / u and (2^r - 1) / r for the f32 case; (atanh(s) / s - 1 - u/3) / u^2 for f64; u = s^2
 */
static const double log_terms_f32[] = {0x1.555555555390cp-2, 0x1.999999a2a999bp-3, 0x1.2492416929c75p-3,
                                       0x1.c72280731b818p-4, 0x1.732b0e61874fp-4,  0x1.588500e1c74b8p-4};
static const double exp2_terms_f32[] = {0x1.62e42fef89726p-1,  0x1.ebfbdff8e78dbp-3,  0x1.c6b08dcf5a4d2p-5,
                                        0x1.3b2ab5f4fe139p-7,  0x1.5d874c942ca09p-10, 0x1.430a9d900430cp-13,
                                        0x1.00d890341dbfap-16, 0x1.61cef3b7fed52p-20};
static const double log_terms_f64[] = {0x1.9999999999995p-3, 0x1.249249249316cp-3, 0x1.c71c71c55f4dbp-4,
                                       0x1.745d1840b63f2p-4, 0x1.3b135f32b253cp-4, 0x1.11213289d9c04p-4,
                                       0x1.de20ff740facfp-5, 0x1.eba107fee42ebp-5};

/* ---- logarithm to base 2 ------------------------------------------------------------------------------- */

/* log2(a) for a >= 0; -inf at 0, inf at inf. Precise to 2^-50. */
static expr log2_plain(struct exprs *pool, expr a)
{
    expr exponent, mantissa;
    split_f64(pool, a, &exponent, &mantissa);
    expr s = over(pool, raised(pool, mantissa, -1), raised(pool, mantissa, 1)), u = times(pool, s, s);
    expr value = fused(pool, times(pool, POLYNOMIAL(pool, log_terms_f32, u), u), s, s);
    value = fused_by(pool, value, 0x1.71547652b82fep+1, exponent);
    value = choose(pool, equals(pool, a, 0), constant_like(pool, a, -(double)INFINITY), value);
    return choose(pool, equals(pool, a, (double)INFINITY), a, value);
}

/* a + b with the rounding error, for |a| >= |b| or a == 0. */
static struct double_double sum_ordered(struct exprs *pool, expr a, expr b)
{
    expr high = plus(pool, a, b);
    return (struct double_double){high, plus(pool, minus(pool, a, high), b)};
}

/* a * b with the rounding error, plus what the low parts contribute. */
static struct double_double product(struct exprs *pool, struct double_double a, struct double_double b)
{
    expr high = times(pool, a.high, b.high), low = fused(pool, a.high, b.high, negated(pool, high));
    low = fused(pool, a.high, b.low, low);
    return (struct double_double){high, fused(pool, a.low, b.high, low)};
}

/* The same logarithm as high + low. s = (m - 1) / (m + 1); log2(m) = 2/ln(2) * s * (1 + u/3 + u^2 (...)). */
static struct double_double log2_precise(struct exprs *pool, expr a)
{
    expr exponent, mantissa;
    split_f64(pool, a, &exponent, &mantissa);
    expr f = raised(pool, mantissa, -1), zero = constant_like(pool, a, 0);
    struct double_double g = sum_ordered(pool, constant_like(pool, a, 1), mantissa), s, u, tail;
    /* 1 + m with m up to sqrt(2): the larger one first */
    struct double_double swapped = sum_ordered(pool, mantissa, constant_like(pool, a, 1));
    expr larger = above(pool, mantissa, 1);
    g.low = choose(pool, larger, swapped.low, g.low);
    s.high = over(pool, f, g.high);
    expr rest = fused(pool, negated(pool, s.high), g.high, f);
    rest = fused(pool, negated(pool, s.high), g.low, rest);
    s.low = over(pool, rest, g.high);
    u = product(pool, s, s);
    struct double_double third = {expr_float(pool, DTYPE_F64, 0x1.5555555555555p-2),
                                  expr_float(pool, DTYPE_F64, 0x1.5555555555555p-56)};
    tail = product(pool, u, third);
    expr series = times(pool, POLYNOMIAL(pool, log_terms_f64, u.high), times(pool, u.high, u.high));
    struct double_double more = sum_ordered(pool, tail.high, series);
    tail = (struct double_double){more.high, plus(pool, more.low, tail.low)};
    struct double_double correction = product(pool, s, tail),
                         value = sum_ordered(pool, s.high, correction.high);
    value.low = plus(pool, value.low, plus(pool, s.low, correction.low));
    value = sum_ordered(pool, value.high, value.low);
    struct double_double scale = {expr_float(pool, DTYPE_F64, 0x1.71547652b82fep+1),
                                  expr_float(pool, DTYPE_F64, 0x1.777d0ffda0d24p-55)};
    value = product(pool, value, scale);
    struct double_double total = sum_ordered(pool, exponent, value.high);
    total = sum_ordered(pool, total.high, plus(pool, total.low, value.low));
    expr is_zero = equals(pool, a, 0), is_infinite = equals(pool, a, (double)INFINITY);
    total.high = choose(pool, is_zero, constant_like(pool, a, -(double)INFINITY), total.high);
    total.high = choose(pool, is_infinite, a, total.high);
    total.low = choose(pool, either(pool, is_zero, is_infinite), zero, total.low);
    return total;
}

/* ---- powers -------------------------------------------------------------------------------------------- */

static expr power_f32(struct exprs *pool, expr a, expr y)
{
    const double rounder = 0x1.8p+52;
    expr exponent =
        times(pool, expr_convert(pool, DTYPE_F64, y), log2_plain(pool, expr_convert(pool, DTYPE_F64, a)));
    /* Beyond these ends the f32 result is 0 or inf anyway, and within them all of f64 is normal. */
    exponent = choose(pool, below(pool, exponent, -200), constant_like(pool, exponent, -200), exponent);
    exponent = choose(pool, above(pool, exponent, 200), constant_like(pool, exponent, 200), exponent);
    expr shifted = raised(pool, exponent, rounder);
    expr r = minus(pool, exponent, raised(pool, shifted, -rounder));
    expr value = fused(pool, POLYNOMIAL(pool, exp2_terms_f32, r), r, constant_like(pool, r, 1));
    expr bits = minus(pool, expr_bitcast(pool, DTYPE_I64, shifted),
                      expr_int(pool, DTYPE_I64, INT64_C(0x4338000000000000) - 1023));
    value = times(pool, value, expr_bitcast(pool, DTYPE_F64, shift_left(pool, bits, 52)));
    return expr_convert(pool, DTYPE_F32, value);
}

static expr power_f64(struct exprs *pool, expr a, expr y)
{
    struct double_double logarithm = log2_precise(pool, a);
    struct double_double exponent = {times(pool, y, logarithm.high), 0};
    expr low = fused(pool, y, logarithm.high, negated(pool, exponent.high));
    low = fused(pool, y, logarithm.low, low);
    /* Where the product is infinite or huge the low part means nothing, and could be NaN. */
    exponent.low =
        choose(pool, below(pool, magnitude(pool, exponent.high), 2048), low, constant_like(pool, a, 0));
    return exp2_of_double_double(pool, exponent);
}

static expr power_float(struct exprs *pool, expr x, expr y)
{
    bool is_double = expr_at(pool, x)->dtype == DTYPE_F64;
    expr one = constant_like(pool, x, 1), zero = constant_like(pool, x, 0), a = magnitude(pool, x);
    expr not_a_number = constant_like(pool, x, (double)NAN);
    expr value = is_double ? power_f64(pool, a, y) : power_f32(pool, a, y);
    /* |x| = 1 with y infinite: 0 * inf above. */
    expr y_is_nan = is_nan(pool, y);
    value = choose(pool, both(pool, equals(pool, a, 1), opposite(pool, y_is_nan)), one, value);
    expr whole = equal(pool, truncated(pool, y), y), half = scaled(pool, y, 0.5);
    expr odd = both(pool, whole, opposite(pool, equal(pool, truncated(pool, half), half)));
    enum dtype word = is_double ? DTYPE_I64 : DTYPE_I32;
    expr is_negative = below(pool, expr_bitcast(pool, word, x), 0);
    value = choose(pool, both(pool, odd, is_negative), negated(pool, value), value);
    expr finite_negative = both(pool, below(pool, x, 0), above(pool, x, -(double)INFINITY));
    value = choose(pool, both(pool, finite_negative, opposite(pool, whole)), not_a_number, value);
    value = choose(pool, either(pool, is_nan(pool, x), y_is_nan), not_a_number, value);
    return choose(pool, either(pool, equal(pool, y, zero), equal(pool, x, one)), one, value);
}

/* Square and multiply over all bits of the exponent: products wrap. */
static expr power_integer(struct exprs *pool, expr x, expr y)
{
    enum dtype dtype = expr_at(pool, x)->dtype;
    bool is_signed = dtype_class(dtype) == DTYPE_CLASS_INT;
    expr zero = constant_like(pool, x, 0), one = constant_like(pool, x, 1), value = one, square = x;
    for (unsigned bit = 0; bit < dtype_bits(dtype) - is_signed; bit++) {
        expr is_set = expr_binary(pool, EXPR_NOT_EQUAL, masked(pool, y, UINT64_C(1) << bit), zero);
        value = choose(pool, is_set, times(pool, value, square), value);
        square = times(pool, square, square);
    }
    if (!is_signed)
        return value;
    /* 1 / x^|y|, towards zero: only 1 and -1 leave something; 1 / 0 is 0. */
    expr minus_one = constant_like(pool, x, -1);
    expr odd = expr_binary(pool, EXPR_NOT_EQUAL, masked(pool, y, 1), zero);
    expr inverse = choose(pool, equal(pool, x, minus_one), choose(pool, odd, minus_one, one), zero);
    inverse = choose(pool, equal(pool, x, one), one, inverse);
    return choose(pool, less(pool, y, zero), inverse, value);
}

/* Exponents with an exact or once-rounded form; 0 when there is none. */
static expr power_constant(struct exprs *pool, expr x, double exponent)
{
    expr one = constant_like(pool, x, 1);
    if (exponent == 0)
        return one;
    if (exponent == 1)
        return x;
    if (exponent == 2)
        return times(pool, x, x);
    if (exponent == -1)
        return over(pool, one, x);
    if (exponent == 0.5) {
        /* pow(-0, 1/2) = +0, pow(-inf, 1/2) = +inf: unlike sqrt */
        expr root = expr_unary(pool, EXPR_SQRT, raised(pool, x, 0));
        return choose(pool, equals(pool, x, -(double)INFINITY), constant_like(pool, x, (double)INFINITY),
                      root);
    }
    return 0;
}

/* x^3 with the rounding errors of both products put back. */
static expr cube_f32(struct exprs *pool, expr x)
{
    expr high = times(pool, x, x), low = fused(pool, x, x, negated(pool, high));
    expr value = times(pool, high, x);
    expr better = fused(pool, low, x, fused(pool, high, x, negated(pool, value)));
    expr sum = plus(pool, value, better);
    /* Near the ends of the range the correction is infinite, NaN or lost: the plain product is right to an
     * ulp there. */
    expr a = magnitude(pool, x);
    return choose(pool, both(pool, above(pool, a, 0x1p-40), below(pool, a, 0x1p+40)), sum, value);
}

expr expand_pow(struct exprs *pool, expr x, expr y)
{
    enum dtype dtype = expr_at(pool, x)->dtype;
    double exponent;
    if (!dtype_is_float(dtype))
        return power_integer(pool, x, y);
    if (expr_constant_float(pool, y, &exponent)) {
        expr value = power_constant(pool, x, exponent);
        if (!value && exponent == 3 && dtype == DTYPE_F32)
            value = cube_f32(pool, x);
        if (value)
            return value;
    }
    return power_float(pool, x, y);
}

/* ---- remainder ----------------------------------------------------------------------------------------- */

/* Integer mantissa (u64) and biased exponent (i64, at least 1) of a non-negative number. */
static void take_apart(struct exprs *pool, expr a, unsigned mantissa_bits, expr *mantissa, expr *exponent)
{
    enum dtype word = mantissa_bits == 52 ? DTYPE_U64 : DTYPE_U32;
    expr bits = expr_convert(pool, DTYPE_U64, expr_bitcast(pool, word, a));
    expr field = shift_right(pool, bits, (int)mantissa_bits), zero = expr_int(pool, DTYPE_U64, 0);
    expr is_normal = less(pool, zero, field),
         leading = expr_int(pool, DTYPE_U64, INT64_C(1) << mantissa_bits);
    *mantissa = masked(pool, bits, (UINT64_C(1) << mantissa_bits) - 1);
    *mantissa = either(pool, *mantissa, choose(pool, is_normal, leading, zero));
    *exponent = choose(pool, is_normal, field, expr_int(pool, DTYPE_U64, 1));
    *exponent = expr_bitcast(pool, DTYPE_I64, *exponent);
}

expr expand_remainder(struct exprs *pool, expr x, expr y)
{
    enum dtype dtype = expr_at(pool, x)->dtype, word = dtype == DTYPE_F64 ? DTYPE_U64 : DTYPE_U32;
    const unsigned mantissa_bits = dtype == DTYPE_F64 ? 52 : 23, exponent_bits = dtype == DTYPE_F64 ? 11 : 8;
    const int chunk = 63 - (int)mantissa_bits; /* what a remainder can be shifted by within 64 bits */
    const int distance = (1 << exponent_bits) + (int)mantissa_bits;
    expr a = magnitude(pool, x), b = magnitude(pool, y), rest, divisor, exponent, lowest;
    expr zero = expr_int(pool, DTYPE_U64, 0), none = expr_index(pool, 0);
    take_apart(pool, a, mantissa_bits, &rest, &exponent);
    take_apart(pool, b, mantissa_bits, &divisor, &lowest);
    divisor = choose(pool, equal(pool, divisor, zero), expr_int(pool, DTYPE_U64, 1), divisor);
    expr left = expr_binary(pool, EXPR_MAX, minus(pool, exponent, lowest), none);
    for (int done = 0; done < distance; done += chunk) {
        expr step = expr_binary(pool, EXPR_MIN, left, expr_index(pool, chunk));
        rest = expr_binary(pool, EXPR_REMAINDER, rest, divisor);
        rest = expr_binary(pool, EXPR_SHIFT_LEFT, rest, expr_bitcast(pool, DTYPE_U64, step));
        left = minus(pool, left, step);
    }
    rest = expr_binary(pool, EXPR_REMAINDER, rest, divisor);
    /* rest * 2^(lowest - bias - mantissa bits), by steps that stay exact */
    expr value = expr_convert(pool, dtype, rest);
    expr field = expr_convert(pool, word, expr_bitcast(pool, DTYPE_U64, lowest));
    expr power = shift_left(pool, field, (int)mantissa_bits);
    value = scaled(pool, value, ldexp(1, -(int)mantissa_bits));
    value = times(pool, value, expr_bitcast(pool, dtype, power));
    value = choose(pool, less(pool, a, b), a, value);
    expr infinity = constant_like(pool, x, (double)INFINITY),
         invalid = opposite(pool, less(pool, a, infinity));
    invalid = either(pool, invalid, either(pool, is_nan(pool, y), equals(pool, y, 0)));
    return choose(pool, invalid, constant_like(pool, x, (double)NAN), with_sign_of(pool, value, x));
}
