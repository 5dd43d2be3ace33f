/* Elementwise operators of one input: y[i] = f(x[i]), f by the table below, x in its compute type.
 *
 *   Celu         x < 0 ? alpha (e^(x / alpha) - 1) : x
 *   Elu          x < 0 ? alpha (e^x - 1) : x            HardSigmoid  max(0, min(1, alpha x + beta))
 *   Gelu         x (1 + erf(x / sqrt 2)) / 2            HardSwish    x max(0, min(1, x / 6 + 1 / 2))
 *     "tanh"     x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
 *   LeakyRelu    x < 0 ? alpha x : x                    Selu         x > 0 ? gamma x : gamma alpha (e^x - 1)
 *   Softplus     log(1 + e^x)                           Softsign     x / (1 + |x|)
 *   Shrink       x < -lambd ? x + bias : x > lambd ? x - bias : 0
 *   ThresholdedRelu  x > alpha ? x : 0                  Mish         x tanh(log(1 + e^x))
 *   Swish        x sigmoid(alpha x)
 *   Sign         -1, 0, 1 (NaN stays)                   Relu         max(x, 0) (NaN stays)
 *
 * Inverse and hyperbolic functions: inverse.c. Identity moves elements and does not convert. */
#include "ir/definitions/build.h"

#include <math.h>
#include <string.h>

static expr real(struct build *b, expr x, double value)
{
    return number(b, expr_at(b->pool, x)->dtype, value);
}

static double attribute(const struct build *b, enum attribute_name name, double absent)
{
    return node_float(b->node, name, absent);
}

/* e^x - 1, scaled. */
static expr scaled_exp_minus_one(struct build *b, expr x, double scale)
{
    return mul(b, real(b, x, scale), sub(b, function(b, EXPR_EXP, x), real(b, x, 1)));
}

static expr gelu(struct build *b, expr x)
{
    const double root_half = 0.70710678118654752440, root_two_over_pi = 0.79788456080286535588;
    expr inner;
    if (strcmp(node_word(b->node, ATTR_approximate, "none"), "tanh") == 0) {
        expr cube = mul(b, mul(b, x, x), x);
        expr sum = add(b, x, mul(b, real(b, x, 0.044715), cube));
        inner = function(b, EXPR_TANH, mul(b, real(b, x, root_two_over_pi), sum));
    } else {
        inner = function(b, EXPR_ERF, mul(b, x, real(b, x, root_half)));
    }
    return mul(b, mul(b, real(b, x, 0.5), x), add(b, real(b, x, 1), inner));
}

/* max(0, min(1, alpha x + beta)) */
static expr hard_sigmoid(struct build *b, expr x, double alpha, double beta)
{
    expr line = add(b, mul(b, real(b, x, alpha), x), real(b, x, beta));
    return maximum(b, real(b, x, 0), minimum(b, real(b, x, 1), line));
}

/* log(1 + z) for z in [0, 1]: log(u) z / (u - 1) with u = 1 + z loses nothing to the rounding of u. */
static expr log_one_plus(struct build *b, expr z)
{
    expr one = real(b, z, 1), u = add(b, one, z);
    expr corrected = mul(b, function(b, EXPR_LOG, u), divide(b, z, sub(b, u, one)));
    return choose(b, equal(b, u, one), z, corrected);
}

/* max(x, 0) + log(1 + e^-|x|), which does not overflow. */
static expr softplus(struct build *b, expr x)
{
    expr small = function(b, EXPR_EXP, function(b, EXPR_NEG, function(b, EXPR_ABS, x)));
    return add(b, maximum(b, x, real(b, x, 0)), log_one_plus(b, small));
}

static expr sign(struct build *b, expr x)
{
    expr zero = real(b, x, 0);
    expr positive_or_zero = choose(b, less(b, zero, x), real(b, x, 1), x);
    if (dtype_class(expr_at(b->pool, x)->dtype) == DTYPE_CLASS_UINT)
        return positive_or_zero;
    return choose(b, less(b, x, zero), real(b, x, -1), positive_or_zero);
}

static expr is_infinite(struct build *b, expr x)
{
    expr answer = expr_int(b->pool, DTYPE_BOOL, 0);
    if (node_int(b->node, ATTR_detect_positive, 1))
        answer = expr_binary(b->pool, EXPR_OR, answer, equal(b, x, real(b, x, INFINITY)));
    if (node_int(b->node, ATTR_detect_negative, 1))
        answer = expr_binary(b->pool, EXPR_OR, answer, equal(b, x, real(b, x, -INFINITY)));
    return answer;
}

/* Operators that floats alone have. 0: not one of them. */
static expr float_function(struct build *b, expr x)
{
    switch (b->node->op) {
    case OP_Ceil:
        return function(b, EXPR_CEIL, x);
    case OP_Celu: {
        const double alpha = attribute(b, ATTR_alpha, 1.0);
        expr negative = scaled_exp_minus_one(b, divide(b, x, real(b, x, alpha)), alpha);
        return choose(b, less(b, x, real(b, x, 0)), negative, x);
    }
    case OP_Cos:
        return function(b, EXPR_COS, x);
    case OP_Elu:
        return choose(b, less(b, x, real(b, x, 0)), scaled_exp_minus_one(b, x, attribute(b, ATTR_alpha, 1.0)),
                      x);
    case OP_Erf:
        return function(b, EXPR_ERF, x);
    case OP_Exp:
        return function(b, EXPR_EXP, x);
    case OP_Floor:
        return function(b, EXPR_FLOOR, x);
    case OP_Gelu:
        return gelu(b, x);
    case OP_HardSigmoid:
        return hard_sigmoid(b, x, attribute(b, ATTR_alpha, (double)0.2f), attribute(b, ATTR_beta, 0.5));
    case OP_HardSwish:
        return mul(b, x, hard_sigmoid(b, x, 1.0 / 6, 0.5));
    case OP_IsInf:
        return is_infinite(b, x);
    case OP_IsNaN:
        return expr_binary(b->pool, EXPR_NOT_EQUAL, x, x);
    case OP_LeakyRelu:
        return choose(b, less(b, x, real(b, x, 0)),
                      mul(b, real(b, x, attribute(b, ATTR_alpha, (double)0.01f)), x), x);
    case OP_Log:
        return function(b, EXPR_LOG, x);
    case OP_Mish:
        return mul(b, x, function(b, EXPR_TANH, softplus(b, x)));
    case OP_Reciprocal:
        return divide(b, real(b, x, 1), x);
    case OP_Round:
        return function(b, EXPR_ROUND_EVEN, x);
    case OP_Selu: {
        const double alpha = attribute(b, ATTR_alpha, (double)1.67326319217681884765625f);
        const double gamma = attribute(b, ATTR_gamma, (double)1.05070102214813232421875f);
        expr negative = mul(b, real(b, x, gamma), scaled_exp_minus_one(b, x, alpha));
        return choose(b, less(b, real(b, x, 0), x), mul(b, real(b, x, gamma), x), negative);
    }
    case OP_Sigmoid:
        return function(b, EXPR_SIGMOID, x);
    case OP_Sin:
        return function(b, EXPR_SIN, x);
    case OP_Softplus:
        return softplus(b, x);
    case OP_Softsign:
        return divide(b, x, add(b, real(b, x, 1), function(b, EXPR_ABS, x)));
    case OP_Sqrt:
        return function(b, EXPR_SQRT, x);
    case OP_Swish: {
        const double alpha = attribute(b, ATTR_alpha, 1.0);
        const expr bent = alpha < 1 || alpha > 1 ? mul(b, x, real(b, x, alpha)) : x;
        return mul(b, x, function(b, EXPR_SIGMOID, bent));
    }
    case OP_Tanh:
        return function(b, EXPR_TANH, x);
    case OP_ThresholdedRelu:
        return choose(b, less(b, real(b, x, attribute(b, ATTR_alpha, 1.0)), x), x, real(b, x, 0));
    default:
        return inverse_function(b, x);
    }
}

/* In f64, whatever the type: integers truncate. */
static expr shrink(struct build *b, expr x)
{
    const enum dtype dtype = expr_at(b->pool, x)->dtype;
    const expr limit = number(b, DTYPE_F64, attribute(b, ATTR_lambd, 0.5));
    const expr bias = number(b, DTYPE_F64, attribute(b, ATTR_bias, 0.0)), zero = number(b, DTYPE_F64, 0);
    const expr wide = convert(b, DTYPE_F64, x);
    const expr above = choose(b, less(b, limit, wide), sub(b, wide, bias), zero);
    return convert(b, dtype,
                   choose(b, less(b, wide, function(b, EXPR_NEG, limit)), add(b, wide, bias), above));
}

/* Operators of all numbers. */
static expr number_function(struct build *b, expr x)
{
    switch (b->node->op) {
    case OP_Abs:
        return dtype_class(expr_at(b->pool, x)->dtype) == DTYPE_CLASS_UINT ? x : function(b, EXPR_ABS, x);
    case OP_Neg:
        return function(b, EXPR_NEG, x);
    case OP_Relu:
        return maximum(b, x, real(b, x, 0));
    case OP_BitwiseNot:
        return dtype_is_integer(expr_at(b->pool, x)->dtype) ? function(b, EXPR_NOT, x) : 0;
    case OP_Shrink:
        return shrink(b, x);
    case OP_Sign:
        return sign(b, x);
    default:
        return 0;
    }
}

bool define_unary(struct build *b)
{
    const enum dtype dtype = build_input(b, 0)->dtype;
    struct nest *nest = nest_over(b, build_output(b, 0));
    expr axes[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    if (b->node->op == OP_Identity) {
        store_output(b, nest, 0, NULL, load_stored(b, 0, axes));
        return true;
    }
    expr x = load_input(b, 0, axes), y = 0;
    if (dtype_is_float(dtype))
        y = float_function(b, x);
    if (!y && dtype != DTYPE_BOOL)
        y = number_function(b, x);
    if (b->node->op == OP_Not && dtype == DTYPE_BOOL)
        y = function(b, EXPR_NOT, x);
    if (!y)
        return build_refuse(b, "not implemented for elements of type %s", dtype_name(dtype));
    store_output(b, nest, 0, NULL, y);
    return true;
}
