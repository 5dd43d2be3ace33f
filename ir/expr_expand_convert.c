/* CONVERT by integer arithmetic where no machine does it, or machines differ: narrow floats (held as their
 * bits), floats to integers with saturation. Every conversion rounds once: what is wider than f32 first
 * becomes an f32 *rounded to odd* (the last bit set when anything was cut off), from which the second
 * rounding comes out right. */
#include "ir/expr_eval.h"
#include "ir/expr_expand_internal.h"

#include <math.h>

static bool is_narrow(enum dtype dtype)
{
    return dtype_is_float(dtype) && dtype != DTYPE_F32 && dtype != DTYPE_F64;
}

static expr word_of(struct exprs *pool, uint64_t bits)
{
    return expr_int(pool, DTYPE_U32, (int64_t)bits);
}

/* ---- narrow float to f32 ------------------------------------------------------------------------------- */

static enum dtype word_dtype(const struct float_format *format)
{
    return format->bits == 16 ? DTYPE_U16 : format->bits == 8 ? DTYPE_U8 : DTYPE_U4;
}

static expr widen_f8e8m0(struct exprs *pool, expr bits)
{
    expr value = choose(pool, equals(pool, bits, 0), word_of(pool, 0x400000), shift_left(pool, bits, 23));
    return expr_bitcast(pool, DTYPE_F32,
                        choose(pool, equals(pool, bits, 255), word_of(pool, 0x7fc00000), value));
}

/* The fields moved to f32's places are the number times a power of two, subnormal or not. */
static expr widen(struct exprs *pool, const struct float_format *format, expr x)
{
    expr bits = expr_convert(pool, DTYPE_U32, expr_bitcast(pool, word_dtype(format), x));
    if (!format->is_signed)
        return widen_f8e8m0(pool, bits);
    const uint64_t sign_bit = UINT64_C(1) << (format->bits - 1);
    expr moved = shift_left(pool, masked(pool, bits, sign_bit - 1), 23 - (int)format->mantissa_bits);
    expr sign = shift_left(pool, masked(pool, bits, sign_bit), 32 - (int)format->bits);
    if (format->bias == 127)
        return expr_bitcast(pool, DTYPE_F32, either(pool, moved, sign));
    expr value = scaled(pool, expr_bitcast(pool, DTYPE_F32, moved), ldexp(1, 127 - format->bias));
    value = expr_bitcast(pool, DTYPE_U32, value);
    if (format->has_infinity) {
        expr infinity = word_of(pool, (format->largest + 1) << (23 - format->mantissa_bits));
        value =
            choose(pool, less(pool, moved, infinity), value, either(pool, moved, word_of(pool, 0x7f800000)));
    } else if (format->nan == sign_bit) {
        value = choose(pool, equals(pool, bits, (double)sign_bit), word_of(pool, 0x7fc00000), value);
    } else if (format->nan) {
        expr nan_moved = word_of(pool, format->nan << (23 - format->mantissa_bits));
        value = choose(pool, equal(pool, moved, nan_moved), word_of(pool, 0x7fc00000), value);
    }
    return expr_bitcast(pool, DTYPE_F32, either(pool, value, sign));
}

/* ---- f32 to narrow float ------------------------------------------------------------------------------- */

static expr narrow_f8e8m0(struct exprs *pool, expr a)
{
    expr rounded = shift_right(pool, plus(pool, a, word_of(pool, 0x400000)), 23);
    expr smallest = expr_convert(pool, DTYPE_U32, less_equal(pool, word_of(pool, 0x600000), a));
    rounded = choose(pool, less(pool, a, word_of(pool, 0x800000)), smallest, rounded);
    return choose(pool, less(pool, word_of(pool, 254), rounded), word_of(pool, 255), rounded);
}

/* Bits of the magnitude a (an f32's bits without the sign), rounded to nearest even. Carries into the
 * exponent are right as they are. Subnormals: adding a power of two makes the f32 adder round at the right
 * place. */
static expr narrow_magnitude(struct exprs *pool, const struct float_format *format, expr a)
{
    const unsigned shift = 23 - format->mantissa_bits;
    const int lowest = 1 - format->bias; /* exponent of the smallest normal number */
    expr last = masked(pool, shift_right(pool, a, (int)shift), 1);
    expr rounded = plus(pool, plus(pool, a, word_of(pool, (UINT64_C(1) << (shift - 1)) - 1)), last);
    rounded = shift_right(pool, rounded, (int)shift);
    if (format->bias != 127) {
        rounded =
            minus(pool, rounded, word_of(pool, (uint64_t)(127 - format->bias) << format->mantissa_bits));
        expr adder = expr_float(pool, DTYPE_F32, ldexp(1, lowest + (int)shift));
        expr small = expr_bitcast(pool, DTYPE_U32, plus(pool, expr_bitcast(pool, DTYPE_F32, a), adder));
        small = minus(pool, small, expr_bitcast(pool, DTYPE_U32, adder));
        expr is_small = less(pool, a, word_of(pool, (uint64_t)(127 + lowest) << 23));
        rounded = choose(pool, is_small, small, rounded);
    }
    if (format->has_infinity && format->bias == 127)
        return rounded; /* overflow lands on infinity by itself */
    uint64_t too_large = format->has_infinity ? format->largest + 1
                         : format->nan        ? format->nan
                                              : format->largest;
    expr largest = word_of(pool, format->largest);
    return choose(pool, less(pool, largest, rounded), word_of(pool, too_large), rounded);
}

static expr narrow(struct exprs *pool, enum dtype to, expr x)
{
    const struct float_format *format = float_format_of(to);
    expr bits = expr_bitcast(pool, DTYPE_U32, x), a = masked(pool, bits, 0x7fffffff);
    expr not_a_number = less(pool, word_of(pool, 0x7f800000), a), value;
    if (!format->is_signed) {
        value = narrow_f8e8m0(pool, a);
    } else {
        value = narrow_magnitude(pool, format, a);
        expr sign = shift_right(pool, masked(pool, bits, 0x80000000), 32 - (int)format->bits);
        expr is_zero = equals(pool, value, 0);
        bool signed_zero = format->nan != UINT64_C(1) << (format->bits - 1);
        expr with_sign = either(pool, value, sign);
        value = signed_zero ? with_sign : choose(pool, is_zero, value, with_sign);
    }
    value = choose(pool, not_a_number, word_of(pool, format->nan ? format->nan : format->largest), value);
    return expr_bitcast(pool, to, expr_convert(pool, word_dtype(format), value));
}

/* f64 to f32, rounded to odd. */
static expr round_to_odd(struct exprs *pool, expr x)
{
    expr near = expr_convert(pool, DTYPE_F32, x), back = expr_convert(pool, DTYPE_F64, near);
    expr bits = expr_bitcast(pool, DTYPE_U32, near);
    expr outward = less(pool, magnitude(pool, x), magnitude(pool, back));
    expr odd = either(pool, choose(pool, outward, raised(pool, bits, -1), bits), word_of(pool, 1));
    return expr_bitcast(pool, DTYPE_F32, choose(pool, equal(pool, back, x), bits, odd));
}

/* i64 or u64 as an f64 that rounds like it: beyond 2^52 the low 12 bits become one that says whether any was
 * set. */
static expr integer_to_f64(struct exprs *pool, expr x)
{
    expr low = masked(pool, x, 0xfff), zero = constant_like(pool, x, 0);
    expr sticky = choose(pool, equal(pool, low, zero), zero, constant_like(pool, x, 0x800));
    expr coarse = either(pool, masked(pool, x, ~UINT64_C(0xfff)), sticky);
    expr fits = less(pool, x, constant_like(pool, x, 0x1p+52));
    if (dtype_class(expr_at(pool, x)->dtype) == DTYPE_CLASS_INT)
        fits = both(pool, fits, less(pool, constant_like(pool, x, -0x1p+52), x));
    return expr_convert(pool, DTYPE_F64, choose(pool, fits, x, coarse));
}

/* Any number to an f32 that narrows to the right result. */
static expr to_f32_for_narrowing(struct exprs *pool, expr x)
{
    enum dtype from = expr_at(pool, x)->dtype;
    if (from == DTYPE_F32)
        return x;
    if (from == DTYPE_BOOL || (dtype_is_integer(from) && dtype_bits(from) <= 16))
        return expr_convert(pool, DTYPE_F32, x); /* exact */
    if (from == DTYPE_I64 || from == DTYPE_U64)
        x = integer_to_f64(pool, x);
    return round_to_odd(pool, expr_convert(pool, DTYPE_F64, x));
}

/* ---- float to integer ---------------------------------------------------------------------------------- */

/* Truncates and saturates; NaN gives 0. The machine's own conversion sees numbers in range only. */
static expr float_to_integer(struct exprs *pool, enum dtype to, expr x)
{
    bool is_signed = dtype_class(to) == DTYPE_CLASS_INT;
    unsigned bits = dtype_bits(to);
    enum dtype native = bits >= 32 ? to : DTYPE_I32;
    double beyond = ldexp(1, (int)(bits - is_signed)), lowest = is_signed ? -beyond : 0;
    int64_t highest_value = bits == 64 && !is_signed ? -1
                            : bits == 64             ? INT64_MAX
                                                     : (INT64_C(1) << (bits - is_signed)) - 1;
    expr too_large = less_equal(pool, constant_like(pool, x, beyond), x), too_small = below(pool, x, lowest);
    expr in_range = both(pool, less_equal(pool, constant_like(pool, x, lowest), x), below(pool, x, beyond));
    expr value = expr_convert(pool, native, choose(pool, in_range, x, constant_like(pool, x, 0)));
    value = choose(pool, too_large, expr_int(pool, native, highest_value), value);
    if (is_signed)
        value = choose(pool, too_small, expr_int(pool, native, -highest_value - 1), value);
    return expr_convert(pool, to, value);
}

expr expand_conversion(struct exprs *pool, enum dtype to, expr x)
{
    enum dtype from = expr_at(pool, x)->dtype;
    if (from == to)
        return x;
    if (is_narrow(from)) {
        x = widen(pool, float_format_of(from), x);
        from = DTYPE_F32;
        if (to == DTYPE_F32)
            return x;
    }
    if (is_narrow(to))
        return narrow(pool, to, to_f32_for_narrowing(pool, x));
    if (to == DTYPE_BOOL)
        return expr_binary(pool, EXPR_NOT_EQUAL, x, constant_like(pool, x, 0));
    if (dtype_is_float(from) && dtype_is_integer(to))
        return float_to_integer(pool, to, x);
    return expr_convert(pool, to, x);
}
