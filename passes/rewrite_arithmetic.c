/* Guards of the arithmetic rows: exact strength reductions, and the chains that exporters write for one
 * operator. */
#include "passes/rewrite_guards.h"

#include <math.h>

static bool is_root_type(const struct match *match, const char *name)
{
    return tensor_type_same(&match->rewriter->graph->dims, match_type(match, name), match_root_type(match));
}

/* A power of two whose reciprocal is a normal number of the type. */
bool guard_div_power_of_two(struct match *match)
{
    double number;
    int exponent;
    const enum dtype dtype = match_type(match, "x")->dtype;
    if ((dtype != DTYPE_F32 && dtype != DTYPE_F64) || !is_root_type(match, "x") ||
        !match_float(match, "c", &number) || !isfinite(number) || fabs(frexp(number, &exponent)) != 0.5)
        return false;
    const int limit = dtype == DTYPE_F32 ? 120 : 1000;
    if (exponent < -limit || exponent > limit)
        return false;
    match_set(match, "r", match_scalar(match, dtype, 1.0 / number));
    return true;
}

bool guard_pow_square(struct match *match)
{
    int64_t exponent = 0;
    uint32_t count = 0;
    if (!is_root_type(match, "x"))
        return false;
    if (match_ints(match, "e", &exponent, 1, &count))
        return count == 1 && exponent == 2;
    double number;
    return match_float(match, "e", &number) && number == 2.0;
}

/* ---- GELU
 * -------------------------------------------------------------------------------------------------------- */

static const double sqrt_2 = 1.4142135623730951, sqrt_2_over_pi = 0.7978845608028654;

static bool is_gelu(struct match *match, double r)
{
    return is_root_type(match, "x") && dtype_is_float(match_root_type(match)->dtype) &&
           match_is(match, "one", 1.0) && match_is(match, "half", 0.5) && match_is(match, "r", r);
}

bool guard_gelu_div(struct match *match)
{
    return is_gelu(match, sqrt_2);
}

bool guard_gelu_mul(struct match *match)
{
    return is_gelu(match, 1.0 / sqrt_2);
}

bool guard_gelu_tanh(struct match *match)
{
    if (!is_gelu(match, sqrt_2_over_pi) || !match_is(match, "c", 0.044715))
        return false;
    match_attribute(match, attribute_word(ATTR_approximate, word_find("tanh")));
    return true;
}

bool guard_gelu_tanh_pow(struct match *match)
{
    int64_t exponent = 0;
    uint32_t count = 0;
    const bool is_three =
        match_ints(match, "three", &exponent, 1, &count) ? exponent == 3 : match_is(match, "three", 3.0);
    return is_three && guard_gelu_tanh(match);
}

/* ---- LayerNormalization
 * ------------------------------------------------------------------------------------------ */

/* A mean over the last axes, kept as dims of 1; the first of them, or -1. */
static int trailing_axes(const struct node *node, int rank)
{
    const struct attribute *axes = node_attribute(node, ATTR_axes);
    uint32_t set = 0;
    if (!axes || !axes->count || node_int(node, ATTR_keepdims, 1) != 1)
        return -1;
    for (uint32_t i = 0; i < axes->count; i++) {
        const int64_t axis = axes->integers[i] < 0 ? axes->integers[i] + rank : axes->integers[i];
        if (axis < 0 || axis >= rank)
            return -1;
        set |= UINT32_C(1) << axis;
    }
    int first = rank;
    while (first > 0 && (set >> (first - 1) & 1))
        first--;
    return first < rank && set >> first << first == set ? first : -1;
}

static bool is_trailing_shape(const struct match *match, const char *name, int first)
{
    const struct tensor_type *type = match_type(match, name), *result = match_root_type(match);
    if (type->dtype != result->dtype || type->rank != result->rank - first)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (dim_equal(&match->rewriter->graph->dims, type->dims[i], result->dims[first + i]) != 1)
            return false;
    return true;
}

bool guard_layer_normalization(struct match *match)
{
    double epsilon;
    const int rank = match_root_type(match)->rank;
    const int first = trailing_axes(match_node(match, "m"), rank);
    if (!is_root_type(match, "x") || first < 0 || trailing_axes(match_node(match, "v"), rank) != first ||
        !match_float(match, "eps", &epsilon) || !is_trailing_shape(match, "g", first) ||
        !is_trailing_shape(match, "b", first))
        return false;
    match_attribute(match, attribute_int(ATTR_axis, first));
    match_attribute(match, attribute_float(ATTR_epsilon, epsilon));
    return true;
}
