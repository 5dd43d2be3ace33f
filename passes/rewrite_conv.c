/* Guards of the rows that move constants behind a convolution into its weights and bias. They build
 * arithmetic on constants, which the fold pass or the init program evaluates: a weight that is replaced later
 * goes through the same steps. The channel axis is axis 1, ONNX's only layout. */
#include "passes/rewrite_guards.h"

static bool is_wide_float(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_F64;
}

/* A vector over the channels of a result: [channels]. */
static bool is_channel_vector(const struct match *match, const char *name, dim channels, enum dtype dtype)
{
    const struct tensor_type *type = match_type(match, name);
    return type->dtype == dtype && type->rank == 1 &&
           dim_equal(&match->rewriter->graph->dims, type->dims[0], channels) == 1;
}

/* The constant #c as a vector over the channels of the convolution's result, or 0 when it is none. */
static value_id channel_vector(struct match *match, dim channels)
{
    struct dims *dims = &match->rewriter->graph->dims;
    const struct tensor_type *type = match_type(match, "c"), *result = match_root_type(match);
    if (type->rank > result->rank || type->dtype != result->dtype)
        return 0;
    bool full = false;
    for (int i = 0; i < type->rank; i++) {
        const int axis = i + result->rank - type->rank;
        if (axis == 1 && dim_equal(dims, type->dims[i], channels) == 1)
            full = true;
        else if (!dim_equals_constant(dims, type->dims[i], 1))
            return 0;
    }
    const dim one = dim_constant(dims, 1);
    const enum dtype dtype = result->dtype;
    if (full)
        return match_reshape(match, match_value(match, "c"), 1, &channels);
    const value_id scalar = match_reshape(match, match_value(match, "c"), 1, &one);
    const struct tensor_type vector = tensor_type_new(match->rewriter->graph->arena, dtype, 1, &channels);
    return match_make(match, OP_Expand, 1, &scalar, vector, 0, NULL);
}

/* A channel vector in the shape of the weights' first axis: [channels, 1, ...]. */
static value_id along_first_axis(struct match *match, value_id vector, dim channels, int rank)
{
    dim shape[MAX_RANK];
    shape[0] = channels;
    for (int i = 1; i < rank; i++)
        shape[i] = dim_constant(&match->rewriter->graph->dims, 1);
    return match_reshape(match, vector, rank, shape);
}

static value_id scaled_weights(struct match *match, value_id scale, dim channels)
{
    const int rank = match_type(match, "w")->rank;
    return match_binary(match, OP_Mul, match_value(match, "w"),
                        along_first_axis(match, scale, channels, rank));
}

/* Types and dims that all rows here ask for; *channels: of the convolution's result. */
static bool is_plain_conv(const struct match *match, dim *channels)
{
    const struct graph *graph = match->rewriter->graph;
    const struct tensor_type *weights = match_type(match, "w"), *result = match_root_type(match);
    const struct node *conv = match_node(match, "conv");
    int64_t size;
    if (weights->rank < 2 || weights->rank != result->rank || weights->dtype != result->dtype ||
        !tensor_type_same(&graph->dims, &graph_value(graph, conv->outputs[0])->type, result))
        return false;
    *channels = weights->dims[0];
    return dim_is_constant(&graph->dims, *channels, &size);
}

/* ---- batch normalisation
 * ----------------------------------------------------------------------------------------- */

static bool are_batch_norm_parameters(const struct match *match, dim channels)
{
    const enum dtype dtype = match_root_type(match)->dtype;
    return is_wide_float(dtype) && is_channel_vector(match, "s", channels, dtype) &&
           is_channel_vector(match, "b", channels, dtype) && is_channel_vector(match, "m", channels, dtype) &&
           is_channel_vector(match, "v", channels, dtype);
}

/* y = x * factor + (b - m * factor),  factor = s / sqrt(v + epsilon) */
static value_id batch_norm_factor(struct match *match)
{
    const double epsilon = node_float(match_node(match, "bn"), ATTR_epsilon, 1e-5);
    const enum dtype dtype = match_root_type(match)->dtype;
    const value_id sum =
        match_binary(match, OP_Add, match_value(match, "v"), match_scalar(match, dtype, epsilon));
    const struct tensor_type type = graph_value(match->rewriter->graph, sum)->type;
    const value_id root = match_make(match, OP_Sqrt, 1, &sum, type, 0, NULL);
    return match_binary(match, OP_Div, match_value(match, "s"), root);
}

static value_id batch_norm_shift(struct match *match, value_id mean, value_id factor)
{
    return match_binary(match, OP_Sub, match_value(match, "b"), match_binary(match, OP_Mul, mean, factor));
}

bool guard_conv_batch_norm(struct match *match)
{
    dim channels;
    if (!is_plain_conv(match, &channels) || !are_batch_norm_parameters(match, channels))
        return false;
    const value_id factor = batch_norm_factor(match);
    match_set(match, "k", scaled_weights(match, factor, channels));
    match_set(match, "t", batch_norm_shift(match, match_value(match, "m"), factor));
    return true;
}

bool guard_conv_bias_batch_norm(struct match *match)
{
    dim channels;
    if (!is_plain_conv(match, &channels) || !are_batch_norm_parameters(match, channels) ||
        !is_channel_vector(match, "b0", channels, match_root_type(match)->dtype))
        return false;
    const value_id factor = batch_norm_factor(match);
    const value_id mean = match_binary(match, OP_Sub, match_value(match, "m"), match_value(match, "b0"));
    match_set(match, "k", scaled_weights(match, factor, channels));
    match_set(match, "t", batch_norm_shift(match, mean, factor));
    return true;
}

bool guard_batch_norm(struct match *match)
{
    const struct tensor_type *type = match_root_type(match);
    if (type->rank < 2 || !are_batch_norm_parameters(match, type->dims[1]))
        return false;
    const int rank = type->rank;
    const dim channels = type->dims[1];
    const value_id factor = batch_norm_factor(match);
    const value_id shift = batch_norm_shift(match, match_value(match, "m"), factor);
    match_set(match, "k", along_first_axis(match, factor, channels, rank - 1));
    match_set(match, "t", along_first_axis(match, shift, channels, rank - 1));
    return true;
}

/* ---- sums and products
 * ------------------------------------------------------------------------------------------- */

bool guard_conv_add(struct match *match)
{
    dim channels;
    if (!is_plain_conv(match, &channels) || !is_wide_float(match_root_type(match)->dtype))
        return false;
    const value_id vector = channel_vector(match, channels);
    if (vector)
        match_set(match, "t", vector);
    return vector != 0;
}

bool guard_conv_bias_add(struct match *match)
{
    dim channels;
    if (!is_plain_conv(match, &channels) || !is_wide_float(match_root_type(match)->dtype) ||
        !is_channel_vector(match, "b0", channels, match_root_type(match)->dtype))
        return false;
    const value_id vector = channel_vector(match, channels);
    if (vector)
        match_set(match, "t", match_binary(match, OP_Add, match_value(match, "b0"), vector));
    return vector != 0;
}

bool guard_conv_mul(struct match *match)
{
    dim channels;
    if (!is_plain_conv(match, &channels) || !is_wide_float(match_root_type(match)->dtype))
        return false;
    const value_id vector = channel_vector(match, channels);
    if (vector)
        match_set(match, "k", scaled_weights(match, vector, channels));
    return vector != 0;
}

bool guard_conv_bias_mul(struct match *match)
{
    dim channels;
    if (!is_plain_conv(match, &channels) || !is_wide_float(match_root_type(match)->dtype) ||
        !is_channel_vector(match, "b0", channels, match_root_type(match)->dtype))
        return false;
    const value_id vector = channel_vector(match, channels);
    if (!vector)
        return false;
    match_set(match, "k", scaled_weights(match, vector, channels));
    match_set(match, "t", match_binary(match, OP_Mul, match_value(match, "b0"), vector));
    return true;
}
