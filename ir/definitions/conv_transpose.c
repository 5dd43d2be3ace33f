/* ConvTranspose: y[n, g M + m, o] = bias + sum over c, k of x[n, g C + c, i] w[g C + c, m, k], over the k for
 * which  stride i = o + pad - dilation k  has an i of the input; g: the group, of C channels in and M out.
 *
 * Reduced axes: the channels of a group, and for every spatial dim what k runs over:
 *   stride 1                    k itself
 *   dilation 1                  j, with k = (o + pad) mod stride + stride j and i = (o + pad) div stride - j:
 * as many steps as taps meet one output, not all of the window else                        k itself, where
 * the division leaves no rest */
#include "ir/definitions/build.h"

struct transposed {
    int64_t kernel, stride, dilation, pad;
    bool by_phase;
};

static struct transposed read_axis(struct build *b, uint32_t axis)
{
    struct transposed t = {
        .kernel = attribute_at(node_attribute(b->node, ATTR_kernel_shape), axis, 1),
        .stride = attribute_at(node_attribute(b->node, ATTR_strides), axis, 1),
        .dilation = attribute_at(node_attribute(b->node, ATTR_dilations), axis, 1),
        .pad = attribute_at(node_attribute(b->node, ATTR_pads), axis, 0),
    };
    t.by_phase = t.stride > 1 && t.dilation == 1;
    return t;
}

static int64_t steps_of(const struct transposed *t)
{
    return t->by_phase ? (t->kernel + t->stride - 1) / t->stride : t->kernel;
}

/* The indices of x and w at output `o` and step `step`. */
static void find_taps(struct build *b, const struct transposed *t, expr o, expr step, expr *x, expr *w)
{
    const expr from = add(b, o, position(b, t->pad)), stride = position(b, t->stride);
    if (t->by_phase) {
        *w = add(b, index_mod(b, from, stride), mul(b, step, stride));
        *x = sub(b, index_div(b, from, stride), step);
        return;
    }
    *w = step;
    const expr reached = sub(b, from, mul(b, step, position(b, t->dilation)));
    if (t->stride == 1) {
        *x = reached;
        return;
    }
    /* Raised by whole strides, so that what is divided is not negative. */
    const int64_t raise = ((t->kernel - 1) * t->dilation + t->stride - 1) / t->stride;
    const expr raised = add(b, reached, position(b, raise * t->stride));
    const expr whole = equal(b, index_mod(b, raised, stride), position(b, 0));
    *x = choose(b, whole, sub(b, index_div(b, raised, stride), position(b, raise)), position(b, -1));
}

bool define_conv_transpose(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0), *w = build_input(b, 1), *y = build_output(b, 0);
    const uint32_t rank = (uint32_t)type->rank, spatial = rank - 2;
    const int64_t group = node_int(b->node, ATTR_group, 1);
    struct transposed axes[MAX_RANK];
    dim extents[MAX_RANK];
    if (rank < 3 || rank > 5)
        return build_refuse(b, "convolutions of 1 to 3 spatial dims are implemented");
    const dim inputs = dim_floor_div(b->dims, w->dims[0], dim_constant(b->dims, group));
    if (!inputs)
        return build_refuse(b, "group must be positive");
    const bool one_channel = dim_equals_constant(b->dims, inputs, 1);
    uint32_t count = 0;
    if (!one_channel)
        extents[count++] = inputs;
    for (uint32_t i = 0; i < spatial; i++) {
        axes[i] = read_axis(b, i);
        if (steps_of(&axes[i]) > 1)
            extents[count++] = dim_constant(b->dims, steps_of(&axes[i]));
    }
    struct nest *nest = definition_nest(b->d, rank, y->dims, count, extents);
    expr x_indices[MAX_RANK], w_indices[MAX_RANK];
    uint32_t next = rank;
    const expr channel = nest_axis(b->d, nest, 1);
    const expr in = one_channel ? position(b, 0) : nest_axis(b->d, nest, next++);
    x_indices[0] = nest_axis(b->d, nest, 0);
    x_indices[1] = w_indices[0] = in;
    w_indices[1] = channel;
    if (group > 1) {
        const expr outputs = size(b, w->dims[1]), number_of_group = index_div(b, channel, outputs);
        x_indices[1] = w_indices[0] = add(b, mul(b, number_of_group, size(b, inputs)), in);
        w_indices[1] = index_mod(b, channel, outputs);
    }
    bool overhangs = false;
    for (uint32_t i = 0; i < spatial; i++) {
        const expr step = steps_of(&axes[i]) > 1 ? nest_axis(b->d, nest, next++) : position(b, 0);
        find_taps(b, &axes[i], nest_axis(b->d, nest, 2 + i), step, &x_indices[2 + i], &w_indices[2 + i]);
        overhangs |= axes[i].by_phase && axes[i].kernel % axes[i].stride != 0;
    }
    const expr zero = number(b, type->dtype, 0);
    expr value = mul(b, load_input_or(b, 0, x_indices, zero),
                     overhangs ? load_input_or(b, 1, w_indices, zero) : load_input(b, 1, w_indices));
    const enum dtype dtype = compute_dtype(type->dtype);
    if (count)
        value = expr_reduced(b->pool, nest_reduce(b->d, nest, REDUCE_SUM, value), dtype);
    if (build_has_input(b, 2))
        value = add(b, value, load_input(b, 2, &channel));
    store_output(b, nest, 0, NULL, value);
    return true;
}
