/* Pools: a window over the spatial axes.
 *
 *   MaxPool      y[n, c, o] = max over k of x[n, c, o stride + k dilation - pad]; outside x: the lowest value
 *   AveragePool  y[n, c, o] = sum over k of the same, 0 outside, divided by the number of taps that count:
 * those inside x, or with count_include_pad those inside x and its pads (a window of ceil_mode may reach
 * further) */
#include "ir/definitions/build.h"

struct window {
    struct nest *nest;
    uint32_t spatial;
    bool inside; /* no tap of any window lies outside x */
    int64_t kernel[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK], begin[MAX_RANK], end[MAX_RANK];
    expr starts[MAX_RANK];  /* of the window, in x: below 0 in the pad */
    expr indices[MAX_RANK]; /* of the tap */
};

static bool read_window(struct build *b, struct window *w)
{
    const struct tensor_type *type = build_input(b, 0);
    const struct attribute *kernel = node_attribute(b->node, ATTR_kernel_shape);
    const struct attribute *strides = node_attribute(b->node, ATTR_strides);
    const struct attribute *dilations = node_attribute(b->node, ATTR_dilations);
    const struct attribute *pads = node_attribute(b->node, ATTR_pads);
    if (type->rank < 3 || !kernel || kernel->count != (uint32_t)type->rank - 2)
        return build_refuse(b, "kernel_shape must name one size for every axis behind the second");
    w->spatial = kernel->count;
    w->inside = node_int(b->node, ATTR_ceil_mode, 0) == 0;
    dim kernel_dims[MAX_RANK];
    for (uint32_t i = 0; i < w->spatial; i++) {
        w->kernel[i] = kernel->integers[i];
        w->stride[i] = attribute_at(strides, i, 1);
        w->dilation[i] = attribute_at(dilations, i, 1);
        w->begin[i] = attribute_at(pads, i, 0);
        w->end[i] = attribute_at(pads, w->spatial + i, 0);
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1)
            return build_refuse(b, "kernel, strides and dilations must be positive");
        w->inside = w->inside && w->begin[i] <= 0 && w->end[i] <= 0;
        kernel_dims[i] = dim_constant(b->dims, w->kernel[i]);
    }
    w->nest = definition_nest(b->d, (uint32_t)type->rank, build_output(b, 0)->dims, w->spatial, kernel_dims);
    nest_axes(b, w->nest, 2, w->indices);
    for (uint32_t i = 0; i < w->spatial; i++) {
        expr at = mul(b, nest_axis(b->d, w->nest, 2 + i), position(b, w->stride[i]));
        expr tap = nest_axis(b->d, w->nest, 2 + w->spatial + i);
        w->starts[i] = sub(b, at, position(b, w->begin[i]));
        w->indices[2 + i] = add(b, w->starts[i], mul(b, tap, position(b, w->dilation[i])));
    }
    return true;
}

bool define_max_pool(struct build *b)
{
    const enum dtype storage = build_input(b, 0)->dtype;
    struct window w;
    if (storage == DTYPE_BOOL || build_has_output(b, 1))
        return build_refuse(b, "bool elements and the output of indices are not implemented");
    if (!read_window(b, &w))
        return false;
    expr body = w.inside ? load_input(b, 0, w.indices) : load_input_or(b, 0, w.indices, lowest(b, storage));
    const uint32_t reduction = nest_reduce(b->d, w.nest, REDUCE_MAX, body);
    store_output(b, w.nest, 0, NULL, expr_reduced(b->pool, reduction, compute_dtype(storage)));
    return true;
}

/* Taps k of [0, kernel) with start + k dilation < limit: ceil((limit - start) / dilation), held in [0,
 * kernel]. */
static expr taps_below(struct build *b, const struct window *w, uint32_t i, expr limit)
{
    expr dilation = position(b, w->dilation[i]);
    expr reach = maximum(b, sub(b, limit, w->starts[i]), position(b, 0));
    expr taps = index_div(b, add(b, reach, position(b, w->dilation[i] - 1)), dilation);
    return minimum(b, taps, position(b, w->kernel[i]));
}

bool define_average_pool(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    const enum dtype dtype = compute_dtype(type->dtype);
    struct window w;
    if (!dtype_is_float(type->dtype))
        return build_refuse(b, "not implemented for elements of type %s", dtype_name(type->dtype));
    if (!read_window(b, &w))
        return false;
    const bool include = node_int(b->node, ATTR_count_include_pad, 0) != 0;
    const bool partial = node_int(b->node, ATTR_ceil_mode, 0) != 0;
    expr body =
        w.inside ? load_input(b, 0, w.indices) : load_input_or(b, 0, w.indices, number(b, type->dtype, 0));
    expr count = position(b, 1);
    for (uint32_t i = 0; i < w.spatial; i++) {
        expr limit = size(b, type->dims[2 + i]), taps = position(b, w.kernel[i]);
        if (include && partial)
            taps = taps_below(b, &w, i, add(b, limit, position(b, w.end[i])));
        else if (!include && !w.inside)
            taps = sub(b, taps_below(b, &w, i, limit), taps_below(b, &w, i, position(b, 0)));
        count = mul(b, count, taps);
    }
    int64_t constant;
    expr divisor = expr_constant_int(b->pool, count, &constant) ? number(b, dtype, (double)constant)
                                                                : convert(b, dtype, count);
    const uint32_t reduction = nest_reduce(b->d, w.nest, REDUCE_SUM, body);
    store_output(b, w.nest, 0, NULL, divide(b, expr_reduced(b->pool, reduction, dtype), divisor));
    return true;
}
