/* Conversions between storage types.
 *
 *   Cast              y = x as the type `to`, by CONVERT's rules (ir/expr.h). f8 with `saturate`: held within
 * the largest values first. f8e8m0: the power of two by round_mode, from x as f32 DequantizeLinear  y = (x -
 * zero) * scale in f32; integers are subtracted as such QuantizeLinear    integers: y = hold(round(x / scale)
 * + zero); floats: y = x / scale (+ zero for f4) as the type
 *
 *   QuantizeRange    scale = (high - low) / 255, or 1 where that is 0; zero = round(hold(-low / scale)), with
 *   low = min(0, least x), high = max(0, greatest x), both of what is no NaN
 *
 * Scale and zero are one number, one a position of `axis`, or one a block of block_size positions of it. A
 * quotient is rounded to the type `precision`, which is the scale's where it is not given. */
#include "ir/definitions/build.h"

#include "ir/expr_eval.h"

/* ---- conversions
 * ------------------------------------------------------------------------------------------------- */

/* Within the largest numbers of a narrow float; NaN stays. */
static expr saturated(struct build *b, enum dtype to, expr x)
{
    static const struct {
        enum dtype dtype;
        double largest;
    } rows[] = {
        {DTYPE_F8E4M3FN, 448}, {DTYPE_F8E4M3FNUZ, 240}, {DTYPE_F8E5M2, 57344}, {DTYPE_F8E5M2FNUZ, 57344}};
    const enum dtype dtype = expr_at(b->pool, x)->dtype;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dtype == to && dtype_is_float(dtype))
            return minimum(b, maximum(b, x, number(b, dtype, -rows[i].largest)),
                           number(b, dtype, rows[i].largest));
    return x;
}

static expr word(struct build *b, int64_t value)
{
    return expr_int(b->pool, DTYPE_U32, value);
}

/* The exponent of |x|, one more where the mantissa rounds up; infinity and NaN are NaN. */
static expr power_of_two(struct build *b, expr x)
{
    const char *mode = node_word(b->node, ATTR_round_mode, "up");
    const expr bits = expr_bitcast(b->pool, DTYPE_U32, convert(b, DTYPE_F32, x));
    const expr exponent = expr_binary(
        b->pool, EXPR_AND, expr_binary(b->pool, EXPR_SHIFT_RIGHT, bits, word(b, 23)), word(b, 255));
    const expr mantissa = expr_binary(b->pool, EXPR_AND, bits, word(b, 0x7fffff)), half = word(b, 0x400000);
    expr up = expr_int(b->pool, DTYPE_BOOL, 0);
    if (mode[0] == 'u') {
        up = less(b, word(b, 0), mantissa);
    } else if (mode[0] == 'n') { /* a tie goes up, but for the one between 0 and 2^-126 */
        const expr tie_goes_up = less(b, word(b, 0), exponent);
        up = expr_binary(b->pool, EXPR_OR, less(b, half, mantissa),
                         expr_binary(b->pool, EXPR_AND, equal(b, mantissa, half), tie_goes_up));
    }
    const expr last = word(b, node_int(b->node, ATTR_saturate, 1) ? 254 : 255);
    up = expr_binary(b->pool, EXPR_AND, up, less(b, exponent, last));
    const expr sum = add(b, exponent, convert(b, DTYPE_U32, up));
    return expr_bitcast(b->pool, DTYPE_F8E8M0, convert(b, DTYPE_U8, sum));
}

static expr cast_at(struct build *b, const expr *axes)
{
    const enum dtype to = build_output(b, 0)->dtype;
    const expr x = build_input(b, 0)->dtype == to && dtype_bits(to) >= 8 ? load_stored(b, 0, axes)
                                                                         : load_number(b, 0, axes);
    if (expr_at(b->pool, x)->dtype == to)
        return x;
    if (to == DTYPE_F8E8M0)
        return power_of_two(b, x);
    return node_int(b->node, ATTR_saturate, 1) ? saturated(b, to, x) : x;
}

/* 6-bit floats have no storage here; strings and complex numbers no arithmetic. */
static bool has_numbers(enum dtype dtype)
{
    return dtype_class(dtype) != DTYPE_CLASS_OTHER && dtype_bits(dtype) != 6 && dtype_bits(dtype) <= 64;
}

bool define_cast(struct build *b)
{
    const enum dtype from = build_input(b, 0)->dtype, to = build_output(b, 0)->dtype;
    if (!has_numbers(from) || !has_numbers(to))
        return build_refuse(b, "the conversion from %s to %s is not implemented", dtype_name(from),
                            dtype_name(to));
    store_numbers(b, cast_at);
    return true;
}

/* ---- scales
 * ------------------------------------------------------------------------------------------------------ */

/* An element of the scale or the zero point (`input`) for the element of x at the axes. */
static expr factor_at(struct build *b, uint32_t input, const expr *axes)
{
    const struct tensor_type *x = build_input(b, 0), *type = build_input(b, input);
    const int64_t block = node_int(b->node, ATTR_block_size, 0);
    int64_t axis = node_int(b->node, ATTR_axis, 1);
    expr at[MAX_RANK];
    axis += axis < 0 ? x->rank : 0;
    for (int i = 0; i < type->rank; i++)
        at[i] = position(b, 0);
    if (block)
        for (int i = 0; i < type->rank; i++)
            at[i] = i == axis ? index_div(b, axes[i], position(b, block)) : axes[i];
    else if (type->rank == 1 && !dim_equals_constant(b->dims, type->dims[0], 1))
        at[0] = axes[axis];
    return load_number(b, input, at);
}

static expr dequantized_at(struct build *b, const expr *axes)
{
    const enum dtype from = build_input(b, 0)->dtype;
    expr x = load_number(b, 0, axes);
    if (build_has_input(b, 2) && dtype_is_integer(from)) {
        const expr zero = factor_at(b, 2, axes);
        if (expr_at(b->pool, x)->dtype == DTYPE_U32) { /* of 16 bits at most: the difference is an i32 */
            x = convert(b, DTYPE_I32, x);
            x = sub(b, x, convert(b, DTYPE_I32, zero));
        } else {
            x = sub(b, x, zero);
        }
    }
    return mul(b, convert(b, DTYPE_F32, x), convert(b, DTYPE_F32, factor_at(b, 1, axes)));
}

bool define_dequantize(struct build *b)
{
    if (!has_numbers(build_input(b, 0)->dtype))
        return build_refuse(b, "elements of type %s are not implemented",
                            dtype_name(build_input(b, 0)->dtype));
    store_numbers(b, dequantized_at);
    return true;
}

static expr quantized_at(struct build *b, const expr *axes)
{
    const enum dtype to = build_output(b, 0)->dtype, scale = build_input(b, 1)->dtype;
    const enum dtype stated = (enum dtype)node_int(b->node, ATTR_precision, 0);
    const enum dtype precision = stated                                             ? stated
                                 : dtype_is_float(scale) && dtype_bits(scale) == 16 ? scale
                                                                                    : DTYPE_F32;
    const expr x = convert(b, DTYPE_F32, load_number(b, 0, axes));
    expr y = divide(b, x, convert(b, DTYPE_F32, factor_at(b, 1, axes)));
    y = convert(b, DTYPE_F32, convert(b, precision, y));
    const bool shifts = build_has_input(b, 2) && (dtype_is_integer(to) || to == DTYPE_F4E2M1);
    const expr zero = shifts ? convert(b, DTYPE_F32, factor_at(b, 2, axes)) : 0;
    if (!dtype_is_integer(to)) {
        y = zero ? add(b, y, zero) : y;
        return node_int(b->node, ATTR_saturate, 1) ? saturated(b, to, y) : y;
    }
    const bool has_sign = dtype_class(to) == DTYPE_CLASS_INT;
    const int64_t high = (INT64_C(1) << (dtype_bits(to) - has_sign)) - 1, low = has_sign ? -high - 1 : 0;
    y = expr_unary(b->pool, EXPR_ROUND_EVEN, y);
    y = zero ? add(b, y, zero) : y;
    y = minimum(b, maximum(b, y, number(b, DTYPE_F32, (double)low)), number(b, DTYPE_F32, (double)high));
    return convert(b, has_sign ? DTYPE_I32 : DTYPE_U32, y);
}

bool define_quantize(struct build *b)
{
    const enum dtype to = build_output(b, 0)->dtype;
    if (!has_numbers(to) || (dtype_is_integer(to) && dtype_bits(to) > 16))
        return build_refuse(b, "elements of type %s are not implemented", dtype_name(to));
    store_numbers(b, quantized_at);
    return true;
}

bool define_quantize_range(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    const expr zero = number(b, DTYPE_F32, 0), most = number(b, DTYPE_F32, 255);
    expr axes[MAX_RANK];
    struct nest *nest = definition_nest(b->d, 0, NULL, (uint32_t)type->rank, type->dims);
    for (uint32_t i = 0; i < (uint32_t)type->rank; i++)
        axes[i] = nest_axis(b->d, nest, i);
    const expr x = load_input(b, 0, axes), element = choose(b, equal(b, x, x), x, zero);
    const expr least = expr_reduced(b->pool, nest_reduce(b->d, nest, REDUCE_MIN, element), DTYPE_F32);
    const expr greatest = expr_reduced(b->pool, nest_reduce(b->d, nest, REDUCE_MAX, element), DTYPE_F32);
    const expr low = minimum(b, least, zero), high = maximum(b, greatest, zero);
    const expr step = divide(b, sub(b, high, low), most);
    const expr scale = choose(b, equal(b, low, high), number(b, DTYPE_F32, 1), step);
    const expr place = divide(b, function(b, EXPR_NEG, low), scale);
    const expr held = minimum(b, maximum(b, place, zero), most);
    if (build_has_output(b, 0))
        store_output(b, nest, 0, NULL, scale);
    if (build_has_output(b, 1))
        store_output(b, nest, 1, NULL, convert(b, DTYPE_U32, function(b, EXPR_ROUND_EVEN, held)));
    return true;
}
