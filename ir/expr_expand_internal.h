/* Shared by the files ir/expr_expand*.c only: short names for builders, so that an expansion reads like the
 * formula that it is, and the expansions that expr_expand.c dispatches to. Operands are expanded already;
 * results hold only what expr_expand promises. */
#ifndef GPUCC_IR_EXPR_EXPAND_INTERNAL_H
#define GPUCC_IR_EXPR_EXPAND_INTERNAL_H

#include "ir/expr.h"

/* A constant of the type of `like`, which may be a float or an integer. */
expr constant_like(struct exprs *pool, expr like, double value);
/* A constant of the type given by its bits. */
expr constant_of_bits(struct exprs *pool, enum dtype dtype, uint64_t bits);
/* c[0] + c[1] x + c[2] x^2 + ..., by fused multiply-adds. */
expr polynomial(struct exprs *pool, const double *coefficients, uint32_t count, expr x);
#define POLYNOMIAL(pool, coefficients, x)                                                                    \
    polynomial((pool), (coefficients), (uint32_t)(sizeof(coefficients) / sizeof *(coefficients)), (x))

static inline expr plus(struct exprs *pool, expr a, expr b)
{
    return expr_binary(pool, EXPR_ADD, a, b);
}
static inline expr minus(struct exprs *pool, expr a, expr b)
{
    return expr_binary(pool, EXPR_SUB, a, b);
}
static inline expr times(struct exprs *pool, expr a, expr b)
{
    return expr_binary(pool, EXPR_MUL, a, b);
}
static inline expr scaled(struct exprs *pool, expr a, double factor)
{
    return expr_binary(pool, EXPR_MUL, a, constant_like(pool, a, factor));
}
static inline expr raised(struct exprs *pool, expr a, double addend)
{
    return expr_binary(pool, EXPR_ADD, a, constant_like(pool, a, addend));
}
static inline expr over(struct exprs *pool, expr a, expr b)
{
    return expr_binary(pool, EXPR_DIV, a, b);
}
static inline expr fused(struct exprs *pool, expr a, expr b, expr c)
{
    return expr_fma(pool, a, b, c);
}
/* a * factor + c in one rounding */
static inline expr fused_by(struct exprs *pool, expr a, double factor, expr c)
{
    return expr_fma(pool, a, constant_like(pool, a, factor), c);
}
static inline expr negated(struct exprs *pool, expr a)
{
    return expr_unary(pool, EXPR_NEG, a);
}
static inline expr magnitude(struct exprs *pool, expr a)
{
    return expr_unary(pool, EXPR_ABS, a);
}
static inline expr truncated(struct exprs *pool, expr a)
{
    return expr_unary(pool, EXPR_TRUNC, a);
}
static inline expr less(struct exprs *pool, expr a, expr b)
{
    return expr_binary(pool, EXPR_LESS, a, b);
}
static inline expr less_equal(struct exprs *pool, expr a, expr b)
{
    return expr_binary(pool, EXPR_LESS_EQUAL, a, b);
}
static inline expr equal(struct exprs *pool, expr a, expr b)
{
    return expr_binary(pool, EXPR_EQUAL, a, b);
}
static inline expr equals(struct exprs *pool, expr a, double value)
{
    return expr_binary(pool, EXPR_EQUAL, a, constant_like(pool, a, value));
}
static inline expr below(struct exprs *pool, expr a, double value)
{
    return expr_binary(pool, EXPR_LESS, a, constant_like(pool, a, value));
}
static inline expr above(struct exprs *pool, expr a, double value)
{
    return expr_binary(pool, EXPR_LESS, constant_like(pool, a, value), a);
}
static inline expr is_nan(struct exprs *pool, expr a)
{
    return expr_binary(pool, EXPR_NOT_EQUAL, a, a);
}
static inline expr both(struct exprs *pool, expr a, expr b)
{
    return expr_binary(pool, EXPR_AND, a, b);
}
static inline expr either(struct exprs *pool, expr a, expr b)
{
    return expr_binary(pool, EXPR_OR, a, b);
}
static inline expr opposite(struct exprs *pool, expr a)
{
    return expr_unary(pool, EXPR_NOT, a);
}
static inline expr choose(struct exprs *pool, expr condition, expr then, expr otherwise)
{
    return expr_select(pool, condition, then, otherwise);
}
static inline expr shift_left(struct exprs *pool, expr a, int amount)
{
    return expr_binary(pool, EXPR_SHIFT_LEFT, a, constant_like(pool, a, amount));
}
static inline expr shift_right(struct exprs *pool, expr a, int amount)
{
    return expr_binary(pool, EXPR_SHIFT_RIGHT, a, constant_like(pool, a, amount));
}
static inline expr masked(struct exprs *pool, expr a, uint64_t mask)
{
    return expr_binary(pool, EXPR_AND, a, constant_of_bits(pool, expr_at(pool, a)->dtype, mask));
}
/* The sign bit of `sign` (a float) set on `a`, whose own sign bit is 0. */
expr with_sign_of(struct exprs *pool, expr a, expr sign);

/* The sigmoid of x from e = e^-|x|. */
expr sigmoid_by(struct exprs *pool, expr x, expr e);

expr expand_f32(struct exprs *pool, enum expr_op op, expr x);
expr expand_f64(struct exprs *pool, enum expr_op op, expr x);
expr expand_sine(struct exprs *pool, enum expr_op op, expr x);     /* SIN, COS; f32 and f64 */
expr expand_pow(struct exprs *pool, expr x, expr y);               /* floats and integers */
expr expand_remainder(struct exprs *pool, expr x, expr y);         /* of floats */
expr expand_conversion(struct exprs *pool, enum dtype to, expr x); /* CONVERT */

/* high + low; |low| is at most half an ulp of high. */
struct double_double {
    expr high, low;
};
/* 2^(x.high + x.low) or e^..., f64, with all of the range's ends right; for pow. */
expr exp2_of_double_double(struct exprs *pool, struct double_double x);
/* e^x for f64, in [-700, 700] or everywhere. */
expr exp_f64(struct exprs *pool, expr x, bool everywhere);
/* The positive, finite f64 x as 2^*exponent * *mantissa, exponent an f64, mantissa in [sqrt(1/2), sqrt(2)).
 */
void split_f64(struct exprs *pool, expr x, expr *exponent, expr *mantissa);

#endif
