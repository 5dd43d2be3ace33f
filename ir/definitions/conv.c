/* Conv: y[n, m, o] = bias[m] + sum over c, k of x[n, g C + c, o stride + k dilation - pad] * w[m, c, k],
 * with C channels a group, g = m / (M / group) the group of output channel m, and x = 0 outside.
 *
 * ConvInteger: the same of x - x_zero and w - w_zero, in i32; no bias.
 *
 * One nest: the parallel axes are y's dims, the reduced ones c and then the kernel's; reduced axes of size 1
 * (depthwise: one channel a group; 1 x 1 kernels) are left out. f16 and bf16 are multiplied and summed in
 * f32. */
#include "ir/definitions/build.h"

struct convolution {
    uint32_t spatial;
    int64_t group;
    expr x_indices[MAX_RANK], w_indices[MAX_RANK];
    bool inside; /* no pads */
};

static bool read_convolution(struct build *b, struct convolution *c)
{
    const struct tensor_type *x = build_input(b, 0), *w = build_input(b, 1);
    const struct attribute *pads = node_attribute(b->node, ATTR_pads);
    if (x->rank < 3 || x->rank > 5 || w->rank != x->rank)
        return build_refuse(b, "convolutions of 1 to 3 spatial dims are implemented");
    const bool integers = b->node->op == OP_ConvInteger;
    if (!integers && (!dtype_is_float(x->dtype) || w->dtype != x->dtype))
        return build_refuse(b, "not implemented for elements of types %s and %s", dtype_name(x->dtype),
                            dtype_name(w->dtype));
    c->spatial = (uint32_t)x->rank - 2;
    c->group = node_int(b->node, ATTR_group, 1);
    if (c->group < 1)
        return build_refuse(b, "group must be positive");
    c->inside = true;
    for (uint32_t i = 0; i < 2 * c->spatial; i++)
        c->inside = c->inside && attribute_at(pads, i, 0) <= 0;
    return true;
}

/* The reduced axes that are not of size 1: their number and sizes. */
static uint32_t reduced_axes(const struct build *b, const struct tensor_type *w, dim *extents)
{
    uint32_t count = 0;
    for (int i = 1; i < w->rank; i++)
        if (!dim_equals_constant(b->dims, w->dims[i], 1))
            extents[count++] = w->dims[i];
    return count;
}

static bool find_indices(struct build *b, struct nest *nest, struct convolution *c)
{
    const struct tensor_type *w = build_input(b, 1);
    const struct attribute *strides = node_attribute(b->node, ATTR_strides);
    const struct attribute *dilations = node_attribute(b->node, ATTR_dilations);
    const struct attribute *pads = node_attribute(b->node, ATTR_pads);
    uint32_t next = nest->rank;
    c->x_indices[0] = nest_axis(b->d, nest, 0);
    c->w_indices[0] = nest_axis(b->d, nest, 1);
    for (uint32_t i = 1; i < 2 + c->spatial; i++)
        c->w_indices[i] =
            dim_equals_constant(b->dims, w->dims[i], 1) ? position(b, 0) : nest_axis(b->d, nest, next++);
    c->x_indices[1] = c->w_indices[1];
    if (c->group > 1) {
        const dim group_size =
            dim_floor_div(b->dims, w->dims[0], dim_constant(b->dims, c->group)); /* output channels */
        if (!group_size || dim_equals_constant(b->dims, group_size, 0))
            return build_refuse(b, "there are more groups than output channels");
        expr group = index_div(b, c->w_indices[0], size(b, group_size));
        c->x_indices[1] = add(b, mul(b, group, size(b, w->dims[1])), c->w_indices[1]);
    }
    for (uint32_t i = 0; i < c->spatial; i++) {
        expr start = mul(b, nest_axis(b->d, nest, 2 + i), position(b, attribute_at(strides, i, 1)));
        expr tap = mul(b, c->w_indices[2 + i], position(b, attribute_at(dilations, i, 1)));
        c->x_indices[2 + i] = sub(b, add(b, start, tap), position(b, attribute_at(pads, i, 0)));
    }
    return true;
}

/* An integer factor's element less its zero point, which is a number or one an output channel; 0 outside. */
static expr integer_factor(struct build *b, uint32_t input, const expr *indices, bool guarded, expr channel)
{
    const uint32_t zero_input = 2 + input;
    expr zero = number(b, build_input(b, input)->dtype, 0);
    if (build_has_input(b, zero_input)) {
        const struct tensor_type *type = build_input(b, zero_input);
        const bool single = type->rank == 0 || dim_equals_constant(b->dims, type->dims[0], 1);
        zero = single ? load_stored_scalar(b, zero_input) : load_stored(b, zero_input, &channel);
    }
    const expr x = guarded ? load_stored_or(b, input, indices, zero) : load_stored(b, input, indices);
    return sub(b, convert(b, DTYPE_I32, x), convert(b, DTYPE_I32, zero));
}

bool define_conv_integer(struct build *b)
{
    struct convolution c;
    if (!read_convolution(b, &c))
        return false;
    const struct tensor_type *y = build_output(b, 0);
    dim extents[MAX_RANK];
    const uint32_t count = reduced_axes(b, build_input(b, 1), extents);
    struct nest *nest = definition_nest(b->d, (uint32_t)y->rank, y->dims, count, extents);
    if (!find_indices(b, nest, &c))
        return false;
    const expr channel = nest_axis(b->d, nest, 1);
    expr value = mul(b, integer_factor(b, 0, c.x_indices, !c.inside, channel),
                     integer_factor(b, 1, c.w_indices, false, channel));
    if (count)
        value = expr_reduced(b->pool, nest_reduce(b->d, nest, REDUCE_SUM, value), DTYPE_I32);
    store_output(b, nest, 0, NULL, value);
    return true;
}

bool define_conv(struct build *b)
{
    struct convolution c;
    if (!read_convolution(b, &c))
        return false;
    const enum dtype storage = build_input(b, 0)->dtype, dtype = compute_dtype(storage);
    const struct tensor_type *y = build_output(b, 0);
    dim extents[MAX_RANK];
    const uint32_t count = reduced_axes(b, build_input(b, 1), extents);
    struct nest *nest = definition_nest(b->d, (uint32_t)y->rank, y->dims, count, extents);
    if (!find_indices(b, nest, &c))
        return false;
    expr x =
        c.inside ? load_input(b, 0, c.x_indices) : load_input_or(b, 0, c.x_indices, number(b, storage, 0));
    expr value = mul(b, x, load_input(b, 1, c.w_indices));
    if (count)
        value = expr_reduced(b->pool, nest_reduce(b->d, nest, REDUCE_SUM, value), dtype);
    if (build_has_input(b, 2)) {
        expr channel = nest_axis(b->d, nest, 1);
        value = add(b, value, convert(b, dtype, load_input(b, 2, &channel)));
    }
    store_output(b, nest, 0, NULL, value);
    return true;
}
