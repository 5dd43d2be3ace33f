/* SIN and COS of every f32 and f64. The argument is reduced exactly: x = m * 2^e with an integer m, and m
 * times the right window of the bits of 2/pi, in integers modulo 2^64 (2^128), is x * 2/pi modulo 4 with 62
 * (126) bits behind the point. That is 30 (60) bits more than the worst argument cancels. No path depends on
 * the argument's size but for one select: below pi/4 there is nothing to reduce. The window is picked by
 * selects, a bit of its position at a time. */
#include "ir/expr_expand_internal.h"

#include <math.h>

/* The bits of 2/pi behind the point, 32 a word, behind two words of zeros. */
static const uint32_t two_over_pi[] = {
    0,          0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
    0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
    0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
    0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
    0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab,
};

/* (sin(r) / r - 1) / u and (cos(r) - 1 + u / 2) / u^2 with u = r^2, |r| <= pi/4 */
static const double sine_f32[] = {-0x1.555556p-3, 0x1.111176p-7, -0x1.a05ba6p-13, 0x1.7ccee4p-19};
static const double cosine_f32[] = {0x1.55554ap-5, -0x1.6c0c2ap-10, 0x1.99e91p-16};
static const double sine_f64[] = {-0x1.5555555555549p-3, 0x1.111111110f8a7p-7,   -0x1.a01a019c1631fp-13,
                                  0x1.71de357b21c86p-19, -0x1.ae5e6896ad7e1p-26, 0x1.5d939e67f95c4p-33};
static const double cosine_f64[] = {0x1.555555555554bp-5,   -0x1.6c16c16c15018p-10, 0x1.a01a019c8f8fp-16,
                                    -0x1.27e4f7f1e4877p-22, 0x1.1ee9dc0712969p-29,  -0x1.8fa69ffd5fadep-37};
/* pi/2 * 2^-62 */
static const double quarter_high = 0x1.921fb54442d18p-62, quarter_low = 0x1.1a62633145c07p-116;

/* |x| = quadrant * pi/2 + high + low, the quadrant modulo 4 as an integer of x's width. */
struct reduced {
    expr quadrant, high, low;
};

/* words[position ..], `count` of them; words behind the last are never asked for. */
static void pick_words(struct exprs *pool, expr position, uint32_t first_word, uint32_t last_bit,
                       uint32_t count, expr *out)
{
    enum { TOTAL = sizeof two_over_pi / sizeof *two_over_pi };
    expr words[TOTAL];
    expr zero = expr_int(pool, DTYPE_U32, 0);
    for (uint32_t i = 0; i < TOTAL; i++)
        words[i] = i + first_word < TOTAL ? expr_int(pool, DTYPE_U32, two_over_pi[i + first_word]) : zero;
    for (uint32_t bit = last_bit; bit; bit >>= 1) {
        expr is_set =
            expr_binary(pool, EXPR_NOT_EQUAL, masked(pool, position, bit), constant_like(pool, position, 0));
        for (uint32_t i = 0; i < count + bit - 1 && i < TOTAL; i++)
            words[i] = choose(pool, is_set, i + bit < TOTAL ? words[i + bit] : zero, words[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        out[i] = words[i];
}

static expr wide(struct exprs *pool, expr word)
{
    return expr_convert(pool, DTYPE_U64, word);
}

/* The words shifted left by 0 to 31 bits, as u64 below 2^32, most significant first; one word less than there
 * are. */
static void shift_words(struct exprs *pool, expr *words, uint32_t count, expr amount)
{
    for (uint32_t i = 0; i + 1 < count; i++) {
        expr pair = either(pool, shift_left(pool, wide(pool, words[i]), 32), wide(pool, words[i + 1]));
        words[i] = shift_right(pool, expr_binary(pool, EXPR_SHIFT_LEFT, pair, amount), 32);
    }
}

/* Splits a fixed-point number modulo 4 (u64, 62 bits behind the point) into the nearest whole and a signed
 * rest. */
static expr nearest_quadrant(struct exprs *pool, expr fixed, expr *rest)
{
    expr quadrant = shift_right(pool, plus(pool, fixed, expr_int(pool, DTYPE_U64, INT64_C(1) << 61)), 62);
    *rest = expr_bitcast(pool, DTYPE_I64, minus(pool, fixed, shift_left(pool, quadrant, 62)));
    return quadrant;
}

static struct reduced reduce_f32(struct exprs *pool, expr a)
{
    expr bits = expr_bitcast(pool, DTYPE_U32, a), words[4], rest;
    expr offset = minus(pool, shift_right(pool, bits, 23), expr_int(pool, DTYPE_U32, 120)); /* 6 .. 134 */
    pick_words(pool, shift_right(pool, offset, 5), 1, 4, 4, words);
    shift_words(pool, words, 4, wide(pool, masked(pool, offset, 31)));
    expr mantissa =
        wide(pool, either(pool, masked(pool, bits, 0x7fffff), expr_int(pool, DTYPE_U32, 0x800000)));
    expr fixed =
        plus(pool, shift_left(pool, times(pool, mantissa, words[0]), 32), times(pool, mantissa, words[1]));
    fixed = plus(pool, fixed, shift_right(pool, times(pool, mantissa, words[2]), 32));
    struct reduced result = {.quadrant = expr_convert(pool, DTYPE_U32, nearest_quadrant(pool, fixed, &rest))};
    /* The product in f64, split into two f32. */
    expr product = scaled(pool, expr_convert(pool, DTYPE_F64, rest), quarter_high);
    result.high = expr_convert(pool, DTYPE_F32, product);
    product = minus(pool, product, expr_convert(pool, DTYPE_F64, result.high));
    result.low = expr_convert(pool, DTYPE_F32, product);
    return result;
}

/* Digits of 32 bits, least significant first, of words * mantissa modulo 2^192. */
static void multiply_digits(struct exprs *pool, const expr *words, expr mantissa, expr *digits)
{
    const uint64_t low_half = UINT32_MAX;
    expr low = masked(pool, mantissa, low_half), high = shift_right(pool, mantissa, 32);
    expr carry = expr_int(pool, DTYPE_U64, 0), low_products[6], high_products[6];
    for (int i = 0; i < 6; i++) {
        low_products[i] = times(pool, words[5 - i], low);
        high_products[i] = times(pool, words[5 - i], high);
        expr column = plus(pool, carry, masked(pool, low_products[i], low_half));
        if (i > 0) {
            column = plus(pool, column, shift_right(pool, low_products[i - 1], 32));
            column = plus(pool, column, masked(pool, high_products[i - 1], low_half));
        }
        if (i > 1)
            column = plus(pool, column, shift_right(pool, high_products[i - 2], 32));
        digits[i] = masked(pool, column, low_half);
        carry = shift_right(pool, column, 32);
    }
}

static struct reduced reduce_f64(struct exprs *pool, expr a)
{
    expr bits = expr_bitcast(pool, DTYPE_U64, a), words[7], digits[6], rest;
    expr offset = minus(pool, shift_right(pool, bits, 52), expr_int(pool, DTYPE_U64, 1013)); /* 9 .. 1033 */
    pick_words(pool, shift_right(pool, offset, 5), 0, 32, 7, words);
    shift_words(pool, words, 7, masked(pool, offset, 31));
    expr leading = expr_int(pool, DTYPE_U64, INT64_C(1) << 52);
    multiply_digits(pool, words, either(pool, masked(pool, bits, (UINT64_C(1) << 52) - 1), leading), digits);
    expr top = either(pool, shift_left(pool, digits[5], 32), digits[4]);
    struct reduced result = {.quadrant = nearest_quadrant(pool, top, &rest)};
    /* The signed 128-bit rest as a sum of three exact parts, largest first. */
    expr first = scaled(pool, expr_convert(pool, DTYPE_F64, shift_right(pool, rest, 32)), 0x1p+32);
    expr second = expr_convert(pool, DTYPE_F64, masked(pool, rest, UINT32_MAX));
    expr third = either(pool, shift_left(pool, digits[3], 32), digits[2]);
    third = scaled(pool, expr_convert(pool, DTYPE_F64, third), 0x1p-64);
    expr sum = plus(pool, first, second);
    expr tail = plus(pool, plus(pool, minus(pool, first, sum), second), third);
    expr total = plus(pool, sum, tail);
    tail = plus(pool, minus(pool, sum, total), tail);
    result.high = scaled(pool, total, quarter_high);
    result.low = fused_by(pool, total, quarter_high, negated(pool, result.high));
    result.low = fused_by(pool, total, quarter_low, result.low);
    result.low = fused_by(pool, tail, quarter_high, result.low);
    return result;
}

static void sine_and_cosine_f32(struct exprs *pool, expr r, expr low, expr *sine, expr *cosine)
{
    expr one = expr_float(pool, DTYPE_F32, 1), u = times(pool, r, r), near = fused_by(pool, u, -0.5, one);
    expr cubic = times(pool, times(pool, POLYNOMIAL(pool, sine_f32, u), u), r);
    *sine = plus(pool, r, fused(pool, low, near, cubic));
    expr rest =
        fused(pool, POLYNOMIAL(pool, cosine_f32, u), times(pool, u, u), negated(pool, times(pool, r, low)));
    *cosine = plus(pool, near, rest);
}

static void sine_and_cosine_f64(struct exprs *pool, expr r, expr low, expr *sine, expr *cosine)
{
    expr one = expr_float(pool, DTYPE_F64, 1), u = times(pool, r, r), half = scaled(pool, u, 0.5);
    expr cubic = times(pool, times(pool, POLYNOMIAL(pool, sine_f64, u), u), r);
    *sine = plus(pool, r, fused(pool, low, minus(pool, one, half), cubic));
    expr near = minus(pool, one, half), lost = minus(pool, minus(pool, one, near), half);
    expr rest =
        fused(pool, POLYNOMIAL(pool, cosine_f64, u), times(pool, u, u), negated(pool, times(pool, r, low)));
    *cosine = plus(pool, near, plus(pool, lost, rest));
}

expr expand_sine(struct exprs *pool, enum expr_op op, expr x)
{
    enum dtype dtype = expr_at(pool, x)->dtype, word = dtype == DTYPE_F64 ? DTYPE_U64 : DTYPE_U32;
    expr a = magnitude(pool, x), zero = constant_like(pool, x, 0), sine, cosine;
    struct reduced reduced = dtype == DTYPE_F64 ? reduce_f64(pool, a) : reduce_f32(pool, a);
    expr small = below(pool, a, 0x1.921fb4p-1);
    expr r = choose(pool, small, a, reduced.high);
    expr low = choose(pool, small, zero, reduced.low);
    if (dtype == DTYPE_F64)
        sine_and_cosine_f64(pool, r, low, &sine, &cosine);
    else
        sine_and_cosine_f32(pool, r, low, &sine, &cosine);
    expr quadrant = choose(pool, small, expr_int(pool, word, 0), reduced.quadrant);
    if (op == EXPR_COS)
        quadrant = raised(pool, quadrant, 1);
    expr odd = expr_binary(pool, EXPR_NOT_EQUAL, masked(pool, quadrant, 1), expr_int(pool, word, 0));
    expr value = expr_bitcast(pool, word, choose(pool, odd, cosine, sine));
    expr sign = shift_left(pool, masked(pool, quadrant, 2), dtype == DTYPE_F64 ? 62 : 30);
    if (op == EXPR_SIN) {
        uint64_t mask = dtype == DTYPE_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
        sign = expr_binary(pool, EXPR_XOR, sign, masked(pool, expr_bitcast(pool, word, x), mask));
    }
    value = expr_bitcast(pool, dtype, expr_binary(pool, EXPR_XOR, value, sign));
    return choose(pool, below(pool, a, (double)INFINITY), value, constant_like(pool, x, (double)NAN));
}
