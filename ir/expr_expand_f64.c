/* Functions of one f64 argument, in the same manner as f32's; these are rare, so precision goes before speed.
 */
#include "ir/expr_expand_internal.h"

#include <math.h>

/* (e^r - 1 - r) / r^2 on |r| <= ln(2)/2 */
static const double exp_terms[] = {0x1p-1,
                                   0x1.555555555555ap-3,
                                   0x1.555555555553p-5,
                                   0x1.111111110f171p-7,
                                   0x1.6c16c16c2764p-10,
                                   0x1.a01a01b1de5fbp-13,
                                   0x1.a01a014fe4df5p-16,
                                   0x1.71ddf39a3c9eap-19,
                                   0x1.27e5935c2117cp-22,
                                   0x1.af6697f531acbp-26,
                                   0x1.1e5c4094c0b92p-29};
/* (2 atanh(s) / s - 2) / z with z = s^2, |s| <= 0.1716 */
static const double log_terms[] = {0x1.5555555555593p-1, 0x1.999999997fa3fp-2, 0x1.2492494224b3cp-2,
                                   0x1.c71c51dcf56e4p-3, 0x1.746648915eac4p-3, 0x1.39a0b31aa0828p-3,
                                   0x1.2f10531ca978bp-3};
/* (tanh(a) / a - 1) / u with u = a^2, a <= 0.56 */
static const double tanh_terms[] = {-0x1.5555555555555p-2, 0x1.1111111111083p-3,   -0x1.ba1ba1ba11312p-5,
                                    0x1.664f487fa7d74p-6,  -0x1.226e34d3d40bfp-7,  0x1.d6d3b1ebb3c7dp-9,
                                    -0x1.7da11358e8c4p-10, 0x1.3539b0214af01p-11,  -0x1.f353b8b816198p-13,
                                    0x1.89055377c8998p-14, -0x1.11aa44f2e29dfp-15, 0x1.e6d9c39ca3154p-18};
/* erf(a) / a - 1 in u = a^2, a <= 1 */
static const double erf_terms[] = {0x1.06eba8214db69p-3,   -0x1.812746b037a22p-2,  0x1.ce2f21a0455f3p-4,
                                   -0x1.b82ce31346d8fp-6,  0x1.565bcd2a572c7p-8,   -0x1.c02db8daaf44dp-11,
                                   0x1.f9a3affc0bb3fp-14,  -0x1.f4dc4c89e60a6p-17, 0x1.ba618f1b9af6dp-20,
                                   -0x1.635726549e633p-23, 0x1.120adb184f8eap-26,  -0x1.bec4a27d206e4p-30,
                                   0x1.348b626ce6327p-33};
/* log(1 - erf(a)) in a - 1.75 on 1 <= a <= 2.5 */
static const double erfc_low_terms[] = {
    -0x1.1457e04194ecdp+2,  -0x1.fad487adf079ap+1,  -0x1.d1e3ad70d7583p-1,  -0x1.508223ef3e474p-6,
    0x1.2f19753f81af6p-8,   -0x1.f9772107f133ap-11, 0x1.6e0058942e4fdp-13,  -0x1.8e513ffceb8d6p-16,
    0x1.bc4e68223ad43p-21,  0x1.de934ca33b7ffp-21,  -0x1.af8557025f37ep-22, 0x1.df3afda0bf4c2p-24,
    -0x1.9886fa8c0c1a3p-26, 0x1.52adba0dca3b1p-28,  0x1.c8822961f893bp-30,  -0x1.8a932a9ec0bb5p-30,
    -0x1.b7f554ad6fcb2p-31};
/* log(1 - erf(a)) in a - 4.25 on 2.5 <= a <= 6 */
static const double erfc_high_terms[] = {
    -0x1.41b96ceea4e26p+4,  -0x1.17292bb079ffdp+3,  -0x1.f3c15b8bab952p-1, -0x1.abc916675e5fbp-9,
    0x1.f7def43b957a9p-12,  -0x1.2f94d29e0ea38p-14, 0x1.6d151e2b72db2p-17, -0x1.af025ddecf7abp-20,
    0x1.ee46e36c56da0p-23,  -0x1.1bc2e68dc8823p-25, 0x1.1ceeefc064972p-29, -0x1.fee3c741ad6edp-30,
    -0x1.2a20afcd863f3p-31, -0x1.425fc77b01324p-33, -0x1.2f66544bc2383p-36};

static const double ln2_high = 0x1.62e42fefa39efp-1, ln2_low = 0x1.abc9e3b39803fp-56;

static expr one_f64(struct exprs *pool)
{
    return expr_float(pool, DTYPE_F64, 1);
}

static expr power_of_two(struct exprs *pool, expr exponent)
{
    return expr_bitcast(pool, DTYPE_F64, shift_left(pool, raised(pool, exponent, 1023), 52));
}

/* value * 2^exponent in two steps, so that it may be subnormal or overflow; `shifted` holds the exponent in
 * its low bits. */
static expr scale_by(struct exprs *pool, expr value, expr shifted)
{
    expr exponent = minus(pool, expr_bitcast(pool, DTYPE_I64, shifted),
                          expr_int(pool, DTYPE_I64, INT64_C(0x4338000000000000)));
    expr half = shift_right(pool, exponent, 1);
    value = times(pool, value, power_of_two(pool, half));
    return times(pool, value, power_of_two(pool, minus(pool, exponent, half)));
}

/* e^(r + low): the sum is normalised first, since low is not small beside r's last place when the exponent is
 * large. */
static expr exp_near_zero(struct exprs *pool, expr r, expr low)
{
    expr high = plus(pool, r, low);
    low = plus(pool, minus(pool, r, high), low);
    expr rest = fused(pool, POLYNOMIAL(pool, exp_terms, high), times(pool, high, high), low);
    return plus(pool, one_f64(pool), plus(pool, high, rest));
}

/* 0 below `lowest`, infinity above `highest`. */
static expr with_ends(struct exprs *pool, expr x, expr value, double lowest, double highest)
{
    value = choose(pool, below(pool, x, lowest), constant_like(pool, x, 0), value);
    return choose(pool, above(pool, x, highest), constant_like(pool, x, (double)INFINITY), value);
}

static const double rounder = 0x1.8p+52;

expr exp_f64(struct exprs *pool, expr x, bool everywhere)
{
    expr shifted = fused_by(pool, x, 0x1.71547652b82fep+0, constant_like(pool, x, rounder));
    expr whole = raised(pool, shifted, -rounder);
    expr r = fused_by(pool, whole, -ln2_high, x);
    expr value = scale_by(pool, exp_near_zero(pool, r, scaled(pool, whole, -ln2_low)), shifted);
    return everywhere ? with_ends(pool, x, value, -746, 710) : value;
}

expr exp2_of_double_double(struct exprs *pool, struct double_double x)
{
    expr shifted = raised(pool, x.high, rounder);
    expr rest = minus(pool, x.high, raised(pool, shifted, -rounder));
    expr r = scaled(pool, rest, ln2_high);
    expr low = fused_by(pool, rest, ln2_high, negated(pool, r));
    low = fused_by(pool, rest, ln2_low, fused_by(pool, x.low, ln2_high, low));
    return with_ends(pool, x.high, scale_by(pool, exp_near_zero(pool, r, low), shifted), -1076, 1024.5);
}

void split_f64(struct exprs *pool, expr x, expr *exponent, expr *mantissa)
{
    expr subnormal = below(pool, x, 0x1p-1022);
    expr bits = expr_bitcast(pool, DTYPE_I64, choose(pool, subnormal, scaled(pool, x, 0x1p+54), x));
    expr whole = minus(pool, bits, expr_int(pool, DTYPE_I64, INT64_C(0x3fe6a09e667f3bcd)));
    whole = shift_right(pool, whole, 52);
    *mantissa = expr_bitcast(pool, DTYPE_F64, minus(pool, bits, shift_left(pool, whole, 52)));
    whole = minus(pool, whole, choose(pool, subnormal, expr_index(pool, 54), expr_index(pool, 0)));
    *exponent = expr_convert(pool, DTYPE_F64, whole);
}

/* With f = m - 1 and s = f / (2 + f): log(m) = f - f^2/2 + s (f^2/2 + s^2 (...)), where f is exact. */
static expr logarithm(struct exprs *pool, expr x)
{
    expr exponent, mantissa;
    split_f64(pool, x, &exponent, &mantissa);
    expr f = raised(pool, mantissa, -1), s = over(pool, f, raised(pool, f, 2)), z = times(pool, s, s);
    expr half = scaled(pool, times(pool, f, f), 0.5);
    expr series = fused(pool, POLYNOMIAL(pool, log_terms, z), z, half);
    expr value = fused(pool, s, series, scaled(pool, exponent, ln2_low));
    value = minus(pool, f, minus(pool, half, value));
    value = fused_by(pool, exponent, ln2_high, value);
    value = choose(pool, below(pool, x, (double)INFINITY), value, x);
    expr low = choose(pool, equals(pool, x, 0), constant_like(pool, x, -(double)INFINITY),
                      constant_like(pool, x, (double)NAN));
    return choose(pool, above(pool, x, 0), value, low);
}

static expr hyperbolic_tangent(struct exprs *pool, expr x)
{
    expr a = magnitude(pool, x), square = times(pool, a, a);
    expr near = fused(pool, times(pool, POLYNOMIAL(pool, tanh_terms, square), square), a, a);
    expr bounded = choose(pool, above(pool, a, 20), constant_like(pool, a, 20), a);
    expr e = exp_f64(pool, plus(pool, bounded, bounded), false);
    expr far = minus(pool, one_f64(pool), over(pool, constant_like(pool, a, 2), raised(pool, e, 1)));
    return with_sign_of(pool, choose(pool, below(pool, a, 0.55), near, far), x);
}

static expr error_function(struct exprs *pool, expr x)
{
    expr a = magnitude(pool, x), square = times(pool, a, a);
    expr near = fused(pool, POLYNOMIAL(pool, erf_terms, square), a, a);
    expr bounded = choose(pool, above(pool, a, 6), constant_like(pool, a, 6), a);
    expr low = POLYNOMIAL(pool, erfc_low_terms, raised(pool, bounded, -1.75));
    expr high = POLYNOMIAL(pool, erfc_high_terms, raised(pool, bounded, -4.25));
    expr complement = exp_f64(pool, choose(pool, below(pool, a, 2.5), low, high), false);
    expr far = minus(pool, one_f64(pool), complement);
    return with_sign_of(pool, choose(pool, below(pool, a, 1), near, far), x);
}

expr expand_f64(struct exprs *pool, enum expr_op op, expr x)
{
    switch (op) {
    case EXPR_EXP:
        return exp_f64(pool, x, true);
    case EXPR_EXP2: {
        struct double_double whole = {x, constant_like(pool, x, 0)};
        return exp2_of_double_double(pool, whole);
    }
    case EXPR_LOG:
        return logarithm(pool, x);
    case EXPR_SIGMOID:
        return sigmoid_by(pool, x, exp_f64(pool, negated(pool, magnitude(pool, x)), true));
    case EXPR_TANH:
        return hyperbolic_tangent(pool, x);
    case EXPR_ERF:
        return error_function(pool, x);
    default:
        return 0;
    }
}
