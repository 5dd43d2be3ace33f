/* Helpers of the define_<name> functions; see build.h. */
#include "ir/definitions/build.h"

#include <math.h>

bool build_refuse(struct build *b, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *message = arena_vprintf(b->diagnostics->arena, format, arguments);
    va_end(arguments);
    diag_error(b->diagnostics, DIAG_unsupported_case, b->node->location, "%s", message);
    return false;
}

bool build_has_input(const struct build *b, uint32_t input)
{
    return node_input(b->node, input) != 0;
}

bool build_has_output(const struct build *b, uint32_t output)
{
    return output < b->node->output_count && b->node->outputs[output] != 0;
}

const struct tensor_type *build_input(const struct build *b, uint32_t input)
{
    return &graph_value(b->graph, b->node->inputs[input])->type;
}

const struct tensor_type *build_output(const struct build *b, uint32_t output)
{
    return &graph_value(b->graph, b->node->outputs[output])->type;
}

uint32_t build_input_buffer(const struct build *b, uint32_t input)
{
    return (uint32_t)definition_input(b->graph, b->id, input);
}

uint32_t build_output_buffer(const struct build *b, uint32_t output)
{
    uint32_t buffer = 0;
    for (uint32_t i = 0; i < b->node->input_count; i++)
        buffer += b->node->inputs[i] != 0;
    for (uint32_t i = 0; i < output; i++)
        buffer += b->node->outputs[i] != 0;
    return buffer;
}

struct nest *nest_over(struct build *b, const struct tensor_type *type)
{
    return definition_nest(b->d, (uint32_t)type->rank, type->dims, 0, NULL);
}

void nest_axes(const struct build *b, const struct nest *nest, uint32_t count, expr *axes)
{
    for (uint32_t i = 0; i < count; i++)
        axes[i] = nest_axis(b->d, nest, i);
}

expr load_stored(struct build *b, uint32_t input, const expr *indices)
{
    const struct tensor_type *type = build_input(b, input);
    return expr_load(b->pool, build_input_buffer(b, input), type->dtype, (uint32_t)type->rank, indices);
}

expr load_stored_or(struct build *b, uint32_t input, const expr *indices, expr otherwise)
{
    const struct tensor_type *type = build_input(b, input);
    return expr_load_or(b->pool, build_input_buffer(b, input), type->dtype, (uint32_t)type->rank, indices,
                        otherwise);
}

expr load_input(struct build *b, uint32_t input, const expr *indices)
{
    return convert(b, compute_dtype(build_input(b, input)->dtype), load_stored(b, input, indices));
}

expr load_input_or(struct build *b, uint32_t input, const expr *indices, expr otherwise)
{
    return convert(b, compute_dtype(build_input(b, input)->dtype),
                   load_stored_or(b, input, indices, otherwise));
}

expr load_stored_scalar(struct build *b, uint32_t input)
{
    expr zeros[MAX_RANK];
    for (uint32_t i = 0; i < MAX_RANK; i++)
        zeros[i] = position(b, 0);
    return load_stored(b, input, zeros);
}

expr load_scalar(struct build *b, uint32_t input)
{
    return convert(b, compute_dtype(build_input(b, input)->dtype), load_stored_scalar(b, input));
}

expr load_buffer(struct build *b, uint32_t buffer, const expr *indices)
{
    const struct tensor_type *type = &b->d->buffers.items[buffer].type;
    return expr_load(b->pool, buffer, type->dtype, (uint32_t)type->rank, indices);
}

void store_output(struct build *b, struct nest *nest, uint32_t output, const expr *indices, expr value)
{
    nest_store(b->d, nest, build_output_buffer(b, output), indices,
               convert(b, build_output(b, output)->dtype, value));
}

uint32_t build_temporary(struct build *b, enum dtype dtype, uint32_t rank, const dim *dims)
{
    return definition_buffer(b->d, BUFFER_TEMPORARY, tensor_type_new(b->pool->arena, dtype, (int)rank, dims));
}

expr broadcast_axis(struct build *b, expr axis, dim from, dim to)
{
    if (dim_equals_constant(b->dims, from, 1))
        return position(b, 0);
    if (dim_equal(b->dims, from, to) == 1 || dim_less(b->dims, dim_constant(b->dims, 1), from) == 1)
        return axis;
    return choose(b, equal(b, size(b, from), position(b, 1)), position(b, 0), axis);
}

void broadcast_indices(struct build *b, const struct tensor_type *from, uint32_t to_rank, const dim *to,
                       const expr *axes, expr *indices)
{
    const uint32_t rank = (uint32_t)from->rank, skipped = to_rank - rank;
    for (uint32_t i = 0; i < rank; i++)
        indices[i] = broadcast_axis(b, axes[skipped + i], from->dims[i], to[skipped + i]);
}

int64_t attribute_at(const struct attribute *attribute, uint32_t index, int64_t absent)
{
    return attribute && index < attribute->count ? attribute->integers[index] : absent;
}

bool build_axis(struct build *b, enum attribute_name name, int64_t absent, int rank, uint32_t *axis)
{
    int64_t value = node_int(b->node, name, absent);
    if (value < 0)
        value += rank;
    if (value < 0 || value >= rank)
        return build_refuse(b, "%s is outside the rank %d", attribute_text(name), rank);
    *axis = (uint32_t)value;
    return true;
}

expr number(struct build *b, enum dtype dtype, double value)
{
    return dtype_is_float(dtype) ? expr_float(b->pool, dtype, value)
                                 : expr_int(b->pool, dtype, (int64_t)value);
}

expr lowest(struct build *b, enum dtype dtype)
{
    if (dtype_is_float(dtype))
        return expr_float(b->pool, dtype, -INFINITY);
    const bool has_sign = dtype_class(dtype) == DTYPE_CLASS_INT;
    return expr_int(b->pool, dtype, has_sign ? INT64_MIN >> (64 - dtype_bits(dtype)) : 0);
}

expr size(struct build *b, dim d)
{
    return expr_dim(b->pool, d);
}

expr size_as(struct build *b, enum dtype dtype, dim d)
{
    int64_t value;
    if (dim_is_constant(b->dims, d, &value) && value < INT64_C(1) << 53)
        return number(b, dtype, (double)value);
    return convert(b, dtype, size(b, d));
}

expr clamp_position(struct build *b, expr x, dim d)
{
    expr last = sub(b, size(b, d), position(b, 1));
    return maximum(b, minimum(b, x, last), position(b, 0));
}

expr wrap_position(struct build *b, expr x, expr period)
{
    expr rest = expr_binary(b->pool, EXPR_REMAINDER, x, period);
    return choose(b, less(b, rest, position(b, 0)), add(b, rest, period), rest);
}

bool may_be_empty(const struct build *b, dim d)
{
    int64_t low, high;
    dim_range(b->dims, d, &low, &high);
    return low < 1;
}
