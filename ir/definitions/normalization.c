/* Normalisations: y = (x - mean) / sqrt(variance + epsilon) * scale + bias.
 *
 *   BatchNormalization     mean and variance are inputs, one a channel (axis 1)
 *   InstanceNormalization  over the spatial axes of each image and channel
 *   LayerNormalization     over the axes from `axis` on; scale and bias broadcast to x; outputs y, mean, 1 /
 * sqrt(...)
 *
 * Mean and variance are computed in two passes, variance as the mean of (x - mean)^2: nothing cancels. All in
 * the compute type of x; temporaries too. */
#include "ir/definitions/build.h"

static expr inverse_root(struct build *b, expr variance)
{
    const enum dtype dtype = expr_at(b->pool, variance)->dtype;
    const double epsilon = node_float(b->node, ATTR_epsilon, (double)1e-5f);
    expr root = function(b, EXPR_SQRT, add(b, variance, number(b, dtype, epsilon)));
    return divide(b, number(b, dtype, 1), root);
}

bool define_batch_normalization(struct build *b)
{
    const enum dtype dtype = compute_dtype(build_input(b, 0)->dtype);
    struct nest *nest = nest_over(b, build_output(b, 0));
    expr axes[MAX_RANK], parameters[5];
    nest_axes(b, nest, nest->rank, axes);
    expr channel = nest->rank > 1 ? axes[1] : position(b, 0);
    for (uint32_t i = 1; i < 5; i++) {
        if (!build_has_input(b, i) || build_input(b, i)->rank != 1)
            return build_refuse(b, "scale, bias, mean and variance must be vectors");
        parameters[i] = convert(b, dtype, load_input(b, i, &channel));
    }
    expr centred = sub(b, load_input(b, 0, axes), parameters[3]);
    expr factor = mul(b, parameters[1], inverse_root(b, parameters[4]));
    store_output(b, nest, 0, NULL, add(b, mul(b, centred, factor), parameters[2]));
    return true;
}

/* The nests that store mean and inverse standard deviation over x's axes first..rank-1 in temporaries. */
struct statistics {
    uint32_t first;
    uint32_t mean, inverse; /* buffers */
    uint32_t mean_nest, inverse_nest;
};

static bool add_statistics(struct build *b, uint32_t first, struct statistics *out)
{
    const struct tensor_type *type = build_input(b, 0);
    const enum dtype dtype = compute_dtype(type->dtype);
    const uint32_t rank = (uint32_t)type->rank;
    dim count = dim_constant(b->dims, 1);
    for (uint32_t i = first; i < rank; i++)
        count = dim_mul(b->dims, count, type->dims[i]);
    if (!count || !dtype_is_float(type->dtype))
        return build_refuse(b, "the normalised elements must be floats whose number fits 64 bits");
    out->first = first;
    out->mean = build_temporary(b, dtype, first, type->dims);
    out->inverse = build_temporary(b, dtype, first, type->dims);
    expr axes[MAX_RANK], number_of = size_as(b, dtype, count);
    for (uint32_t pass = 0; pass < 2; pass++) {
        struct nest *nest = definition_nest(b->d, first, type->dims, rank - first, type->dims + first);
        *(pass ? &out->inverse_nest : &out->mean_nest) = b->d->nests.count - 1;
        nest_axes(b, nest, rank, axes);
        expr body = load_input(b, 0, axes);
        if (pass) {
            expr centred = sub(b, body, load_buffer(b, out->mean, axes));
            body = mul(b, centred, centred);
        }
        expr sum = expr_reduced(b->pool, nest_reduce(b->d, nest, REDUCE_SUM, body), dtype);
        expr mean = divide(b, sum, number_of);
        nest_store(b->d, nest, pass ? out->inverse : out->mean, NULL, pass ? inverse_root(b, mean) : mean);
    }
    return true;
}

static expr normalised(struct build *b, const struct statistics *statistics, const expr *axes)
{
    expr centred = sub(b, load_input(b, 0, axes), load_buffer(b, statistics->mean, axes));
    return mul(b, centred, load_buffer(b, statistics->inverse, axes));
}

bool define_instance_normalization(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    const enum dtype dtype = compute_dtype(type->dtype);
    struct statistics statistics;
    if (type->rank < 2 || build_input(b, 1)->rank != 1 || build_input(b, 2)->rank != 1)
        return build_refuse(b, "the input needs two dims, scale and bias one");
    if (!add_statistics(b, 2, &statistics))
        return false;
    struct nest *nest = nest_over(b, type);
    expr axes[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    expr scale = convert(b, dtype, load_input(b, 1, &axes[1]));
    expr bias = convert(b, dtype, load_input(b, 2, &axes[1]));
    store_output(b, nest, 0, NULL, add(b, mul(b, normalised(b, &statistics, axes), scale), bias));
    return true;
}

/* The optional outputs have x's rank, with dims of 1 where x is normalised. */
static void store_statistic(struct build *b, uint32_t output, uint32_t nest_number, uint32_t first)
{
    if (!build_has_output(b, output))
        return;
    struct nest *nest = &b->d->nests.items[nest_number];
    expr indices[MAX_RANK];
    for (uint32_t i = 0; i < (uint32_t)build_output(b, output)->rank; i++)
        indices[i] = i < first ? nest_axis(b->d, nest, i) : position(b, 0);
    store_output(b, nest, output, indices, nest->stores[0].value);
}

bool define_layer_normalization(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    const enum dtype dtype = compute_dtype(type->dtype);
    const uint32_t rank = (uint32_t)type->rank;
    struct statistics statistics;
    uint32_t axis;
    if (!build_axis(b, ATTR_axis, -1, type->rank, &axis) || !add_statistics(b, axis, &statistics))
        return false;
    store_statistic(b, 1, statistics.mean_nest, axis);
    store_statistic(b, 2, statistics.inverse_nest, axis);
    struct nest *nest = nest_over(b, type);
    expr axes[MAX_RANK], indices[MAX_RANK];
    nest_axes(b, nest, rank, axes);
    expr y = normalised(b, &statistics, axes);
    for (uint32_t i = 1; i < 3; i++) {
        if (!build_has_input(b, i))
            continue;
        if (build_input(b, i)->rank > type->rank)
            return build_refuse(b, "scale and bias must broadcast to the input");
        broadcast_indices(b, build_input(b, i), rank, type->dims, axes, indices);
        expr parameter = convert(b, dtype, load_input(b, i, indices));
        y = i == 1 ? mul(b, y, parameter) : add(b, y, parameter);
    }
    store_output(b, nest, 0, NULL, y);
    return true;
}
