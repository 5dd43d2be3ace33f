/* Elements of every type as numbers, packed ones included.
 *
 * Elements of less than a byte are packed, the first in a byte's lowest bits. Their buffer is one of bytes
 * (storage_type):
 *
 *   x[i ..] = the bits at (flat mod n) * width of byte flat / n        n: elements a byte, flat: row-major
 *
 * A result of packed elements is stored by bytes: a point of the nest makes all elements of one byte; those
 * behind the last element are 0. */
#include "ir/definitions/build.h"

#include "ir/group.h"

static bool is_packed(enum dtype dtype)
{
    return dtype_bits(dtype) == 4 || dtype_bits(dtype) == 2;
}

struct tensor_type storage_type(struct dims *dims, struct arena *arena, const struct tensor_type *type)
{
    if (!is_packed(type->dtype))
        return *type;
    const dim bytes =
        dim_ceil_div(dims, tensor_elements(dims, type), dim_constant(dims, 8 / dtype_bits(type->dtype)));
    return tensor_type_new(arena, DTYPE_U8, 1, &bytes);
}

static expr word(struct build *b, int64_t value)
{
    return expr_int(b->pool, DTYPE_U32, value);
}

/* The number that the lowest bits of a word hold. */
static expr unpack(struct build *b, enum dtype dtype, expr bits)
{
    const int64_t sign = INT64_C(1) << (dtype_bits(dtype) - 1);
    bits = expr_binary(b->pool, EXPR_AND, bits, word(b, 2 * sign - 1));
    if (dtype_is_float(dtype))
        return convert(b, DTYPE_F32, expr_bitcast(b->pool, dtype, convert(b, DTYPE_U4, bits)));
    if (dtype_class(dtype) == DTYPE_CLASS_UINT)
        return bits;
    return sub(b, convert(b, DTYPE_I32, expr_binary(b->pool, EXPR_XOR, bits, word(b, sign))),
               expr_int(b->pool, DTYPE_I32, sign));
}

expr load_number(struct build *b, uint32_t input, const expr *indices)
{
    const struct tensor_type *type = build_input(b, input);
    if (!is_packed(type->dtype))
        return load_input(b, input, indices);
    const unsigned width = dtype_bits(type->dtype);
    const expr flat = flat_index(b->pool, type, indices), elements = position(b, 8 / width);
    const expr at = index_div(b, flat, elements);
    const expr byte = expr_load(b->pool, build_input_buffer(b, input), DTYPE_U8, 1, &at);
    const expr shift = mul(b, index_mod(b, flat, elements), position(b, width));
    return unpack(
        b, type->dtype,
        expr_binary(b->pool, EXPR_SHIFT_RIGHT, convert(b, DTYPE_U32, byte), convert(b, DTYPE_U32, shift)));
}

/* The bits of a number of a compute type as a packed element: integers wrap, floats that become integers
 * saturate. */
static expr pack(struct build *b, enum dtype dtype, expr value)
{
    if (dtype_is_float(dtype))
        return convert(b, DTYPE_U32, expr_bitcast(b->pool, DTYPE_U4, convert(b, dtype, value)));
    const enum dtype from = expr_at(b->pool, value)->dtype;
    const bool has_sign = dtype_class(dtype) == DTYPE_CLASS_INT;
    const int64_t high = (INT64_C(1) << (dtype_bits(dtype) - has_sign)) - 1, low = has_sign ? -high - 1 : 0;
    if (dtype_is_float(from)) {
        value = minimum(b, maximum(b, value, number(b, from, (double)low)), number(b, from, (double)high));
        value = convert(b, DTYPE_I32, value);
    }
    const expr mask = word(b, (INT64_C(1) << dtype_bits(dtype)) - 1);
    return expr_binary(b->pool, EXPR_AND, convert(b, DTYPE_U32, value), mask);
}

static void split_flat(struct build *b, const struct tensor_type *type, expr flat, expr *axes)
{
    for (uint32_t i = (uint32_t)type->rank; i-- > 0;) {
        const expr extent = size(b, type->dims[i]);
        axes[i] = i ? index_mod(b, flat, extent) : flat;
        flat = i ? index_div(b, flat, extent) : flat;
    }
}

void store_numbers(struct build *b, expr (*number_at)(struct build *b, const expr *axes))
{
    const struct tensor_type *type = build_output(b, 0);
    expr axes[MAX_RANK];
    if (!is_packed(type->dtype)) {
        struct nest *nest = nest_over(b, type);
        nest_axes(b, nest, nest->rank, axes);
        store_output(b, nest, 0, NULL, number_at(b, axes));
        return;
    }
    const unsigned width = dtype_bits(type->dtype);
    const uint32_t buffer = build_output_buffer(b, 0);
    struct nest *nest = nest_over(b, &b->d->buffers.items[buffer].type);
    const expr count = size(b, tensor_elements(b->dims, type));
    expr byte = word(b, 0);
    for (unsigned k = 0; k < 8 / width; k++) {
        const expr flat = add(b, mul(b, nest_axis(b->d, nest, 0), position(b, 8 / width)), position(b, k));
        const expr inside = less(b, flat, count), last = sub(b, count, position(b, 1));
        split_flat(b, type, k ? minimum(b, flat, last) : flat, axes);
        const expr bits = choose(b, inside, pack(b, type->dtype, number_at(b, axes)), word(b, 0));
        byte = expr_binary(b->pool, EXPR_OR, byte,
                           expr_binary(b->pool, EXPR_SHIFT_LEFT, bits, word(b, k * width)));
    }
    nest_store(b->d, nest, buffer, NULL, convert(b, DTYPE_U8, byte));
}

bool move_packed(struct build *b)
{
    if (!is_packed(build_output(b, 0)->dtype))
        return false;
    const uint32_t from = build_input_buffer(b, 0), to = build_output_buffer(b, 0);
    struct nest *nest = nest_over(b, &b->d->buffers.items[to].type);
    const expr at = nest_axis(b->d, nest, 0);
    nest_store(b->d, nest, to, NULL, expr_load(b->pool, from, DTYPE_U8, 1, &at));
    return true;
}
