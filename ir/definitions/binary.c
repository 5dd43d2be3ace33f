/* Elementwise operators of two inputs that broadcast: y[i] = f(a[i], b[i]), in the compute type of a.
 *
 *   Div    integers towards zero                          PRelu  a < 0 ? a b : a
 *   Mod    fmod = 0: integers, the sign of b; fmod = 1: a - b trunc(a / b), exact
 *   Pow    in the type of a where a is a float; integer a with integer b in 64 bits, wrapped; integer a with
 *          float b in f64, truncated
 *   BitShift by the type's width or more gives 0, or the sign where a signed number goes right
 *   Equal, Less, ...  on NaN as IEEE says                 Max, Min  NaN if either is NaN */
#include "ir/definitions/build.h"

#include <math.h>

/* The float remainder a - y trunc(a / y). Each step takes off as many of the quotient's bits as the type's
 * significand holds, exactly; `steps` cover the largest quotient of the storage type. The last quotient may
 * round up by one. */
static expr float_remainder(struct build *b, expr a, expr y, unsigned steps)
{
    const enum dtype dtype = expr_at(b->pool, a)->dtype;
    expr zero = number(b, dtype, 0), size_of_y = function(b, EXPR_ABS, y), rest = a;
    for (unsigned i = 0; i < steps; i++) {
        expr quotient = function(b, EXPR_TRUNC, divide(b, rest, y));
        rest = expr_fma(b->pool, function(b, EXPR_NEG, quotient), y, rest);
    }
    expr below = expr_binary(b->pool, EXPR_AND, less(b, zero, a), less(b, rest, zero));
    expr above = expr_binary(b->pool, EXPR_AND, less(b, a, zero), less(b, zero, rest));
    rest = choose(b, below, add(b, rest, size_of_y), choose(b, above, sub(b, rest, size_of_y), rest));
    /* a mod infinity is a, for finite a. */
    expr endless = expr_binary(b->pool, EXPR_AND, equal(b, size_of_y, number(b, dtype, INFINITY)),
                               less(b, function(b, EXPR_ABS, a), number(b, dtype, INFINITY)));
    return choose(b, endless, a, rest);
}

static expr modulo(struct build *b, expr x, expr y, enum dtype storage)
{
    const enum dtype dtype = expr_at(b->pool, x)->dtype;
    if (dtype_is_float(dtype)) {
        /* In f64: quotients of f16 stay below 2^41, of f32 and bf16 below 2^278, and 52 bits go a step. */
        const unsigned steps = storage == DTYPE_F16 ? 1 : 6;
        expr rest = float_remainder(b, convert(b, DTYPE_F64, x), convert(b, DTYPE_F64, y), steps);
        return convert(b, dtype, rest);
    }
    expr rest = expr_binary(b->pool, EXPR_REMAINDER, x, y);
    if (node_int(b->node, ATTR_fmod, 0) || dtype_class(dtype) == DTYPE_CLASS_UINT)
        return rest;
    expr zero = number(b, dtype, 0);
    expr signs_differ = expr_binary(b->pool, EXPR_XOR, less(b, rest, zero), less(b, y, zero));
    expr adjust =
        expr_binary(b->pool, EXPR_AND, signs_differ, expr_binary(b->pool, EXPR_NOT_EQUAL, rest, zero));
    return choose(b, adjust, add(b, rest, y), rest);
}

static expr power(struct build *b, expr x, expr y)
{
    const enum dtype base = expr_at(b->pool, x)->dtype, exponent = expr_at(b->pool, y)->dtype;
    if (dtype_is_float(base))
        return expr_binary(b->pool, EXPR_POW, x, convert(b, base, y));
    if (dtype_is_float(exponent))
        return convert(b, base,
                       expr_binary(b->pool, EXPR_POW, convert(b, DTYPE_F64, x), convert(b, DTYPE_F64, y)));
    if (base != DTYPE_U64)
        return convert(b, base,
                       expr_binary(b->pool, EXPR_POW, convert(b, DTYPE_I64, x), convert(b, DTYPE_I64, y)));
    expr result = expr_binary(b->pool, EXPR_POW, x, convert(b, base, y));
    if (dtype_class(exponent) == DTYPE_CLASS_UINT)
        return result;
    expr one = number(b, base, 1), zero = number(b, base, 0);
    expr inverse = choose(b, equal(b, x, one), one, zero);
    return choose(b, less(b, y, number(b, exponent, 0)), inverse, result);
}

/* Left shifts wrap to the type when they are stored. */
static expr shift(struct build *b, expr x, expr y)
{
    const bool right = node_word(b->node, ATTR_direction, "LEFT")[0] == 'R';
    return expr_binary(b->pool, right ? EXPR_SHIFT_RIGHT : EXPR_SHIFT_LEFT, x, y);
}

static expr number_operation(struct build *b, expr x, expr y, enum dtype storage)
{
    switch (b->node->op) {
    case OP_Add:
        return add(b, x, y);
    case OP_BitShift:
        return shift(b, x, y);
    case OP_BitwiseAnd:
        return expr_binary(b->pool, EXPR_AND, x, y);
    case OP_BitwiseOr:
        return expr_binary(b->pool, EXPR_OR, x, y);
    case OP_BitwiseXor:
        return expr_binary(b->pool, EXPR_XOR, x, y);
    case OP_Div:
        return divide(b, x, y);
    case OP_Equal:
        return equal(b, x, y);
    case OP_Greater:
        return less(b, y, x);
    case OP_GreaterOrEqual:
        return expr_binary(b->pool, EXPR_LESS_EQUAL, y, x);
    case OP_Less:
        return less(b, x, y);
    case OP_LessOrEqual:
        return expr_binary(b->pool, EXPR_LESS_EQUAL, x, y);
    case OP_Max:
        return maximum(b, x, y);
    case OP_Min:
        return minimum(b, x, y);
    case OP_Mod:
        return modulo(b, x, y, storage);
    case OP_Mul:
        return mul(b, x, y);
    case OP_Pow:
        return power(b, x, y);
    case OP_PRelu:
        if (dtype_class(storage) == DTYPE_CLASS_UINT)
            return x;
        return choose(b, less(b, x, number(b, expr_at(b->pool, x)->dtype, 0)), mul(b, x, y), x);
    case OP_Sub:
        return sub(b, x, y);
    default:
        return 0;
    }
}

static expr bool_operation(struct build *b, expr x, expr y)
{
    switch (b->node->op) {
    case OP_And:
        return expr_binary(b->pool, EXPR_AND, x, y);
    case OP_Equal:
        return equal(b, x, y);
    case OP_Or:
        return expr_binary(b->pool, EXPR_OR, x, y);
    case OP_Xor:
        return expr_binary(b->pool, EXPR_XOR, x, y);
    default:
        return 0;
    }
}

bool define_binary(struct build *b)
{
    const enum dtype dtype = build_input(b, 0)->dtype;
    const enum op op = b->node->op;
    if (op != OP_Pow && build_input(b, 1)->dtype != dtype)
        return build_refuse(b, "inputs of types %s and %s cannot be combined", dtype_name(dtype),
                            dtype_name(build_input(b, 1)->dtype));
    if (op == OP_Mod && dtype_is_float(dtype) && (!node_int(b->node, ATTR_fmod, 0) || dtype == DTYPE_F64))
        return build_refuse(b, "the modulo of %s elements with fmod=%d is not implemented", dtype_name(dtype),
                            (int)node_int(b->node, ATTR_fmod, 0));
    const struct tensor_type *result = build_output(b, 0);
    struct nest *nest = nest_over(b, result);
    expr axes[MAX_RANK], indices[MAX_RANK], operands[2];
    nest_axes(b, nest, nest->rank, axes);
    for (uint32_t i = 0; i < 2; i++) {
        broadcast_indices(b, build_input(b, i), nest->rank, result->dims, axes, indices);
        operands[i] = load_input(b, i, indices);
    }
    expr y = dtype == DTYPE_BOOL ? bool_operation(b, operands[0], operands[1])
                                 : number_operation(b, operands[0], operands[1], dtype);
    if (!y)
        return build_refuse(b, "not implemented for elements of type %s", dtype_name(dtype));
    store_output(b, nest, 0, NULL, y);
    return true;
}
