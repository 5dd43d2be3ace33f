/* Single operations on raw bits. Integers are computed in uint64_t and cut to the type's width afterwards, so
 * nothing overflows in C's sense; floats go through float or double, one C operation each, so each rounds
 * once. Conversions take every number apart into sign, 64-bit significand and exponent and round that once to
 * the target format. */
#include "ir/expr_eval.h"

#include <math.h>
#include <string.h>

static const struct float_format formats[] = {
    [DTYPE_F16] = {16, 5, 10, 15, true, true, 0x7e00, 0x7bff},
    [DTYPE_BF16] = {16, 8, 7, 127, true, true, 0x7fc0, 0x7f7f},
    [DTYPE_F32] = {32, 8, 23, 127, true, true, 0x7fc00000, 0x7f7fffff},
    [DTYPE_F64] = {64, 11, 52, 1023, true, true, UINT64_C(0x7ff8000000000000), UINT64_C(0x7fefffffffffffff)},
    [DTYPE_F8E4M3FN] = {8, 4, 3, 7, true, false, 0x7f, 0x7e},
    [DTYPE_F8E4M3FNUZ] = {8, 4, 3, 8, true, false, 0x80, 0x7f},
    [DTYPE_F8E5M2] = {8, 5, 2, 15, true, true, 0x7e, 0x7b},
    [DTYPE_F8E5M2FNUZ] = {8, 5, 2, 16, true, false, 0x80, 0x7f},
    [DTYPE_F4E2M1] = {4, 2, 1, 1, true, false, 0, 7},
    [DTYPE_F8E8M0] = {8, 8, 0, 127, false, false, 0xff, 0xfe},
};

const struct float_format *float_format_of(enum dtype dtype)
{
    if ((size_t)dtype >= sizeof formats / sizeof *formats || formats[dtype].bits == 0)
        return NULL;
    return &formats[dtype];
}

uint64_t expr_eval_extend(enum dtype dtype, uint64_t bits)
{
    unsigned width = dtype == DTYPE_BOOL ? 1 : dtype_bits(dtype);
    if (width == 0 || width >= 64)
        return bits;
    uint64_t mask = (UINT64_C(1) << width) - 1;
    bits &= mask;
    if (dtype_class(dtype) == DTYPE_CLASS_INT && bits >> (width - 1))
        bits |= ~mask;
    return bits;
}

static float as_f32(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static uint64_t from_f32(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return value != value ? formats[DTYPE_F32].nan : word;
}

static double as_f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t from_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? formats[DTYPE_F64].nan : bits;
}

/* ---- conversions --------------------------------------------------------------------------------------- */

/* A number taken apart: significand * 2^exponent. */
struct unpacked {
    enum { NUMBER, INFINITE, NOT_A_NUMBER } kind;
    bool negative;
    uint64_t significand;
    int exponent;
};

static struct unpacked unpack_float(const struct float_format *format, uint64_t bits)
{
    struct unpacked result = {.kind = NUMBER};
    if (!format->is_signed) { /* f8e8m0: an exponent and nothing else */
        if (bits == format->nan)
            result.kind = NOT_A_NUMBER;
        result.significand = 1;
        result.exponent = (int)bits - format->bias;
        return result;
    }
    uint64_t sign = UINT64_C(1) << (format->bits - 1), magnitude = bits & (sign - 1);
    uint64_t infinity = ((UINT64_C(1) << format->exponent_bits) - 1) << format->mantissa_bits;
    result.negative = (bits & sign) != 0;
    if (format->has_infinity  ? magnitude > infinity
        : format->nan == sign ? bits == sign
                              : format->nan != 0 && magnitude == format->nan) {
        result.kind = NOT_A_NUMBER;
    } else if (format->has_infinity && magnitude == infinity) {
        result.kind = INFINITE;
    } else {
        int exponent = (int)(magnitude >> format->mantissa_bits);
        result.significand = magnitude & ((UINT64_C(1) << format->mantissa_bits) - 1);
        if (exponent)
            result.significand |= UINT64_C(1) << format->mantissa_bits;
        else
            exponent = 1;
        result.exponent = exponent - format->bias - (int)format->mantissa_bits;
    }
    return result;
}

static struct unpacked unpack_integer(bool is_signed, uint64_t bits)
{
    struct unpacked result = {.kind = NUMBER, .significand = bits};
    if (is_signed && bits >> 63) {
        result.negative = true;
        result.significand = 0 - bits;
    }
    return result;
}

/* Drops the low `count` bits of the value, rounding to nearest even. */
static uint64_t shift_right_even(uint64_t value, unsigned count)
{
    if (count == 0)
        return value;
    if (count > 64)
        return 0;
    uint64_t half = UINT64_C(1) << (count - 1);
    uint64_t kept = count == 64 ? 0 : value >> count;
    uint64_t rest = count == 64 ? value : value & ((half << 1) - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* Powers of two only: the sign is dropped, ties go up, what is too small becomes the smallest, too large NaN.
 */
static uint64_t pack_f8e8m0(const struct float_format *format, const struct unpacked *number)
{
    if (number->kind != NUMBER)
        return format->nan;
    uint64_t significand = number->significand;
    int exponent = number->exponent + 63 + format->bias;
    if (significand == 0)
        return 0;
    for (; !(significand >> 63); significand <<= 1)
        exponent--;
    exponent += (int)(significand >> 62 & 1);
    return exponent < 0 ? 0 : exponent > (int)format->largest ? format->nan : (uint64_t)exponent;
}

static uint64_t pack_float(const struct float_format *format, const struct unpacked *number)
{
    if (!format->is_signed)
        return pack_f8e8m0(format, number);
    if (number->kind == NOT_A_NUMBER)
        return format->nan ? format->nan : format->largest;
    uint64_t sign = number->negative ? UINT64_C(1) << (format->bits - 1) : 0;
    bool unsigned_zero = format->nan == UINT64_C(1) << (format->bits - 1);
    uint64_t too_large = format->has_infinity ? format->largest + 1
                         : format->nan        ? format->nan
                                              : format->largest;
    if (number->kind == INFINITE)
        return too_large | sign;
    uint64_t significand = number->significand, bits = 0;
    if (significand) {
        int exponent = number->exponent + 63, lowest = 1 - format->bias;
        for (; !(significand >> 63); significand <<= 1)
            exponent--;
        unsigned drop = 63 - format->mantissa_bits;
        if (exponent < lowest) {
            drop = lowest - exponent > 64 ? 65 : drop + (unsigned)(lowest - exponent);
            exponent = lowest;
        }
        /* The leading bit of the kept part adds one to the exponent field, and so does a carry out of it. */
        bits = ((uint64_t)(exponent - lowest) << format->mantissa_bits) + shift_right_even(significand, drop);
        if (bits > format->largest)
            return too_large | sign;
    }
    return bits == 0 && unsigned_zero ? 0 : bits | sign;
}

static uint64_t pack_integer(enum dtype to, const struct unpacked *number)
{
    bool is_signed = dtype_class(to) == DTYPE_CLASS_INT;
    unsigned width = dtype_bits(to);
    uint64_t limit = is_signed     ? UINT64_C(1) << (width - 1)
                     : width == 64 ? UINT64_MAX
                                   : (UINT64_C(1) << width) - 1;
    uint64_t highest = is_signed ? limit - 1 : limit;
    if (number->kind == NOT_A_NUMBER)
        return 0;
    bool too_large = number->kind == INFINITE;
    uint64_t magnitude = number->significand;
    if (number->exponent < 0) {
        magnitude = number->exponent <= -64 ? 0 : magnitude >> -number->exponent;
    } else if (number->exponent > 0 && magnitude) {
        too_large |= number->exponent >= 64 || magnitude > UINT64_MAX >> number->exponent;
        magnitude = too_large ? magnitude : magnitude << number->exponent;
    }
    if (number->negative) {
        if (!is_signed)
            return 0;
        return 0 - (too_large || magnitude > limit ? limit : magnitude);
    }
    return too_large || magnitude > highest ? highest : magnitude;
}

bool expr_eval_convert(enum dtype to, enum dtype from, uint64_t bits, uint64_t *result)
{
    const struct float_format *source = float_format_of(from), *target = float_format_of(to);
    bool from_integer = dtype_is_integer(from) || from == DTYPE_BOOL;
    if ((!source && !from_integer) || (!target && !dtype_is_integer(to) && to != DTYPE_BOOL))
        return false;
    if (from_integer && !target) {
        *result = to == DTYPE_BOOL ? bits != 0 : expr_eval_extend(to, bits);
        return true;
    }
    struct unpacked number =
        source ? unpack_float(source, bits) : unpack_integer(dtype_class(from) == DTYPE_CLASS_INT, bits);
    if (target)
        *result = pack_float(target, &number);
    else if (to == DTYPE_BOOL)
        *result = number.kind != NUMBER || number.significand != 0;
    else
        *result = pack_integer(to, &number);
    return true;
}

/* ---- integers ------------------------------------------------------------------------------------------ */

static bool signed_less(uint64_t a, uint64_t b)
{
    const uint64_t flip = UINT64_C(1) << 63;
    return (a ^ flip) < (b ^ flip);
}

/* Quotient and remainder towards zero of the extended values; the caller extends the quotient, so MIN / -1
 * wraps. */
static void divide(bool is_signed, uint64_t a, uint64_t b, uint64_t *quotient, uint64_t *remainder)
{
    *quotient = *remainder = 0;
    if (b == 0)
        return;
    bool a_negative = is_signed && a >> 63, b_negative = is_signed && b >> 63;
    uint64_t a_magnitude = a_negative ? 0 - a : a, b_magnitude = b_negative ? 0 - b : b;
    uint64_t q = a_magnitude / b_magnitude, r = a_magnitude % b_magnitude;
    *quotient = a_negative != b_negative ? 0 - q : q;
    *remainder = a_negative ? 0 - r : r;
}

static uint64_t shift(enum expr_op op, bool is_signed, unsigned width, uint64_t a, uint64_t amount)
{
    bool negative = is_signed && a >> 63;
    if (width < 64)
        amount &= (UINT64_C(1) << width) - 1;
    if (op == EXPR_SHIFT_LEFT)
        return amount >= width ? 0 : a << amount;
    if (amount >= width)
        return negative ? UINT64_MAX : 0;
    return negative ? ~(~a >> amount) : a >> amount;
}

static bool eval_integer(enum expr_op op, enum dtype dtype, const uint64_t *arguments, uint64_t *result)
{
    bool is_signed = dtype_class(dtype) == DTYPE_CLASS_INT;
    unsigned width = dtype == DTYPE_BOOL ? 1 : dtype_bits(dtype);
    uint64_t a = arguments[0], b = op == EXPR_NEG || op == EXPR_ABS || op == EXPR_NOT ? 0 : arguments[1];
    uint64_t quotient, remainder;
    bool logic = op == EXPR_AND || op == EXPR_OR || op == EXPR_XOR || op == EXPR_NOT;
    if (dtype == DTYPE_BOOL && !logic)
        return false;
    switch (op) {
    case EXPR_ADD:
        *result = a + b;
        break;
    case EXPR_SUB:
        *result = a - b;
        break;
    case EXPR_MUL:
        *result = a * b;
        break;
    case EXPR_DIV:
    case EXPR_INDEX_DIV:
        divide(is_signed, a, b, &quotient, &remainder);
        *result = quotient;
        break;
    case EXPR_REMAINDER:
    case EXPR_INDEX_MOD:
        divide(is_signed, a, b, &quotient, &remainder);
        *result = remainder;
        break;
    case EXPR_NEG:
        *result = 0 - a;
        break;
    case EXPR_ABS:
        *result = is_signed && a >> 63 ? 0 - a : a;
        break;
    case EXPR_MIN:
        *result = (is_signed ? signed_less(b, a) : b < a) ? b : a;
        break;
    case EXPR_MAX:
        *result = (is_signed ? signed_less(a, b) : a < b) ? b : a;
        break;
    case EXPR_SHIFT_LEFT:
    case EXPR_SHIFT_RIGHT:
        *result = shift(op, is_signed, width, a, b);
        break;
    case EXPR_AND:
        *result = a & b;
        break;
    case EXPR_OR:
        *result = a | b;
        break;
    case EXPR_XOR:
        *result = a ^ b;
        break;
    case EXPR_NOT:
        *result = ~a;
        break;
    default:
        return false;
    }
    *result = expr_eval_extend(dtype, *result);
    return true;
}

/* ---- floats -------------------------------------------------------------------------------------------- */

/* NaN when either is one; -0 is less than +0. */
static double minimum(double a, double b)
{
    if (a != a || b != b)
        return (double)NAN;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

static bool eval_f32(enum expr_op op, const uint64_t *arguments, uint64_t *result)
{
    float a = as_f32(arguments[0]);
    if (op == EXPR_NEG || op == EXPR_ABS) {
        *result =
            (op == EXPR_NEG ? arguments[0] ^ UINT32_C(0x80000000) : arguments[0] & UINT32_C(0x7fffffff));
        return true;
    }
    bool unary =
        op == EXPR_SQRT || op == EXPR_FLOOR || op == EXPR_CEIL || op == EXPR_TRUNC || op == EXPR_ROUND_EVEN;
    float b = unary ? 0 : as_f32(arguments[1]), value;
    switch (op) {
    case EXPR_ADD:
        value = a + b;
        break;
    case EXPR_SUB:
        value = a - b;
        break;
    case EXPR_MUL:
        value = a * b;
        break;
    case EXPR_DIV:
        value = a / b;
        break;
    case EXPR_REMAINDER:
        value = fmodf(a, b);
        break;
    case EXPR_MIN:
        value = (float)minimum((double)a, (double)b);
        break;
    case EXPR_MAX:
        value = -(float)minimum(-(double)a, -(double)b);
        break;
    case EXPR_FMA:
        value = fmaf(a, b, as_f32(arguments[2]));
        break;
    case EXPR_SQRT:
        value = sqrtf(a);
        break;
    case EXPR_FLOOR:
        value = floorf(a);
        break;
    case EXPR_CEIL:
        value = ceilf(a);
        break;
    case EXPR_TRUNC:
        value = truncf(a);
        break;
    case EXPR_ROUND_EVEN:
        value = nearbyintf(a);
        break;
    default:
        return false;
    }
    *result = from_f32(value);
    return true;
}

static bool eval_f64(enum expr_op op, const uint64_t *arguments, uint64_t *result)
{
    double a = as_f64(arguments[0]);
    if (op == EXPR_NEG || op == EXPR_ABS) {
        const uint64_t sign = UINT64_C(1) << 63;
        *result = op == EXPR_NEG ? arguments[0] ^ sign : arguments[0] & ~sign;
        return true;
    }
    bool unary =
        op == EXPR_SQRT || op == EXPR_FLOOR || op == EXPR_CEIL || op == EXPR_TRUNC || op == EXPR_ROUND_EVEN;
    double b = unary ? 0 : as_f64(arguments[1]), value;
    switch (op) {
    case EXPR_ADD:
        value = a + b;
        break;
    case EXPR_SUB:
        value = a - b;
        break;
    case EXPR_MUL:
        value = a * b;
        break;
    case EXPR_DIV:
        value = a / b;
        break;
    case EXPR_REMAINDER:
        value = fmod(a, b);
        break;
    case EXPR_MIN:
        value = minimum(a, b);
        break;
    case EXPR_MAX:
        value = -minimum(-a, -b);
        break;
    case EXPR_FMA:
        value = fma(a, b, as_f64(arguments[2]));
        break;
    case EXPR_SQRT:
        value = sqrt(a);
        break;
    case EXPR_FLOOR:
        value = floor(a);
        break;
    case EXPR_CEIL:
        value = ceil(a);
        break;
    case EXPR_TRUNC:
        value = trunc(a);
        break;
    case EXPR_ROUND_EVEN:
        value = nearbyint(a);
        break;
    default:
        return false;
    }
    *result = from_f64(value);
    return true;
}

/* ---- all
 * -----------------------------------------------------------------------------------------------------------
 */

static bool eval_compare(enum expr_op op, enum dtype from, uint64_t a, uint64_t b, uint64_t *result)
{
    bool equal, less;
    if (from == DTYPE_F32 || from == DTYPE_F64) {
        double x = from == DTYPE_F32 ? (double)as_f32(a) : as_f64(a);
        double y = from == DTYPE_F32 ? (double)as_f32(b) : as_f64(b);
        equal = x == y;
        less = x < y;
    } else if (dtype_is_integer(from) || from == DTYPE_BOOL) {
        equal = a == b;
        less = dtype_class(from) == DTYPE_CLASS_INT ? signed_less(a, b) : a < b;
    } else {
        return false;
    }
    *result = op == EXPR_EQUAL       ? equal
              : op == EXPR_NOT_EQUAL ? !equal
              : op == EXPR_LESS      ? less
                                     : less || equal;
    return true;
}

bool expr_eval_op(enum expr_op op, enum dtype dtype, enum dtype from, const uint64_t *arguments,
                  uint64_t *result)
{
    switch (expr_class_of(op)) {
    case EXPR_COMPARE:
        return dtype == DTYPE_BOOL && eval_compare(op, from, arguments[0], arguments[1], result);
    case EXPR_CONVERSION:
        if (op == EXPR_CONVERT)
            return expr_eval_convert(dtype, from, arguments[0], result);
        if (dtype_bits(dtype) == 0 || dtype_bits(dtype) != dtype_bits(from))
            return false;
        *result = expr_eval_extend(dtype, arguments[0]);
        return true;
    case EXPR_ARITHMETIC:
    case EXPR_LOGIC:
        break;
    default:
        return false;
    }
    if (op == EXPR_SELECT) {
        *result = arguments[0] ? arguments[1] : arguments[2];
        return true;
    }
    if (dtype == DTYPE_F32)
        return eval_f32(op, arguments, result);
    if (dtype == DTYPE_F64)
        return eval_f64(op, arguments, result);
    if (dtype_is_integer(dtype) || dtype == DTYPE_BOOL)
        return eval_integer(op, dtype, arguments, result);
    return false;
}
