/* Shapes of convolutions, pools, Resize and matrix products. Bound: windows have explicit kernel_shape,
 * strides, pads and dilations; auto_pad is gone; Resize has one scale an axis or takes the ratio of the dims.
 */
#include "ir/infer_internal.h"
#include "ir/provenance.h"

#include <math.h>
#include <string.h>

/* ---- windows
 * ----------------------------------------------------------------------------------------------------- */

struct window {
    int rank; /* spatial axes */
    int64_t kernel[MAX_RANK], strides[MAX_RANK], dilations[MAX_RANK], pads[2 * MAX_RANK];
    bool ceil_mode;
};

/* A list attribute of `count` numbers that are at least `least`; absent: all `otherwise`. */
static bool window_list(struct infer *infer, node_id node, enum attribute_name name, uint32_t count,
                        int64_t least, int64_t otherwise, int64_t *out)
{
    const int64_t most = INT32_MAX;
    const struct attribute *attribute = node_attribute(graph_node(infer->graph, node), name);
    if (attribute && attribute->count != count)
        return infer_fail(infer, node, DIAG_wrong_attribute, "%s has %u elements instead of %u",
                          attribute_text(name), attribute->count, count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = attribute ? attribute->integers[i] : otherwise;
        if (out[i] < least || out[i] > most)
            return infer_fail(infer, node, DIAG_wrong_attribute, "%s holds %lld", attribute_text(name),
                              (long long)out[i]);
    }
    return true;
}

/* Reads what the attributes say; the kernel is known when `kernel_known`. */
static bool read_window(struct infer *infer, node_id node, struct window *window, bool kernel_known)
{
    const uint32_t rank = (uint32_t)window->rank;
    window->ceil_mode = node_int(graph_node(infer->graph, node), ATTR_ceil_mode, 0) != 0;
    if (!kernel_known && !node_attribute(graph_node(infer->graph, node), ATTR_kernel_shape))
        return infer_fail(infer, node, DIAG_wrong_attribute, "kernel_shape is missing");
    return (kernel_known || window_list(infer, node, ATTR_kernel_shape, rank, 1, 1, window->kernel)) &&
           window_list(infer, node, ATTR_strides, rank, 1, 1, window->strides) &&
           window_list(infer, node, ATTR_dilations, rank, 1, 1, window->dilations) &&
           window_list(infer, node, ATTR_pads, 2 * rank, 0, 0, window->pads);
}

/* Replaces auto_pad SAME by pads: the result has ceil(size / stride) elements. */
static bool same_pads(struct infer *infer, node_id node, struct window *window, const dim *sizes, bool upper)
{
    for (int i = 0; i < window->rank; i++) {
        const int64_t reach = (window->kernel[i] - 1) * window->dilations[i];
        int64_t size, total = reach;
        if (window->strides[i] != 1) {
            if (!dim_is_constant(&infer->graph->dims, sizes[i], &size) || size < 0 || size > INT64_MAX >> 16)
                return infer_fail(infer, node, DIAG_unsupported_case,
                                  "auto_pad with a stride needs constant sizes; axis %d has %s", i + 2,
                                  infer_dim_text(infer, sizes[i]));
            const int64_t count = size / window->strides[i] + (size % window->strides[i] != 0);
            total = (count - 1) * window->strides[i] + reach + 1 - size;
            total = total < 0 || count == 0 ? 0 : total;
        }
        window->pads[i] = upper ? total / 2 : total - total / 2;
        window->pads[window->rank + i] = total - window->pads[i];
    }
    return true;
}

static bool apply_auto_pad(struct infer *infer, node_id node, struct window *window, const dim *sizes)
{
    const char *mode = node_word(graph_node(infer->graph, node), ATTR_auto_pad, "NOTSET");
    if (strcmp(mode, "VALID") == 0) {
        memset(window->pads, 0, sizeof window->pads);
        return true;
    }
    const bool upper = strcmp(mode, "SAME_UPPER") == 0;
    return (!upper && strcmp(mode, "SAME_LOWER") != 0) || same_pads(infer, node, window, sizes, upper);
}

/* Number of positions of the window on an axis:  floor((size + pads - reach - 1) / stride) + 1. With
 * ceil_mode the division rounds up, but the last window must start in the input or its left pad. */
static dim window_count(struct dims *dims, const struct window *window, int axis, dim size,
                        const struct location *location)
{
    const dim one = dim_constant(dims, 1), stride = dim_constant(dims, window->strides[axis]);
    const dim before = dim_add(dims, size, dim_constant(dims, window->pads[axis]));
    const int64_t reach = (window->kernel[axis] - 1) * window->dilations[axis];
    const dim room = dim_add(dims, before, dim_constant(dims, window->pads[window->rank + axis] - reach - 1));
    if (!dim_assume_at_least(dims, room, window->ceil_mode ? 1 - window->strides[axis] : 0, location))
        return DIM_NONE;
    if (!window->ceil_mode)
        return dim_add(dims, dim_floor_div(dims, room, stride), one);
    return dim_min(dims, dim_add(dims, dim_ceil_div(dims, room, stride), one),
                   dim_ceil_div(dims, before, stride));
}

static bool set_window(struct infer *infer, node_id node, struct window *window, const struct tensor_type *x,
                       dim channels, enum dtype dtype)
{
    struct dims *dims = &infer->graph->dims;
    const uint32_t rank = (uint32_t)window->rank;
    dim result[MAX_RANK] = {x->dims[0], channels};
    if (!apply_auto_pad(infer, node, window, x->dims + 2))
        return false;
    for (int i = 0; i < window->rank; i++) {
        result[2 + i] =
            window_count(dims, window, i, x->dims[2 + i], graph_node(infer->graph, node)->location);
        if (result[2 + i] == DIM_NONE)
            return infer_fail(infer, node, DIAG_wrong_shape, "the window does not fit into axis %d of %s",
                              i + 2, infer_type_text(infer, x));
    }
    infer_set(infer, node, 0, dtype, x->rank, result);
    node_remove_attribute(graph_node(infer->graph, node), ATTR_auto_pad);
    infer_set_ints(infer, node, ATTR_kernel_shape, rank, window->kernel);
    infer_set_ints(infer, node, ATTR_strides, rank, window->strides);
    infer_set_ints(infer, node, ATTR_dilations, rank, window->dilations);
    infer_set_ints(infer, node, ATTR_pads, 2 * rank, window->pads);
    return true;
}

bool infer_pool(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    const bool average = graph_node(infer->graph, node)->op == OP_AveragePool;
    struct window window = {.rank = x->rank - 2};
    if (!infer_takes(infer, node, 0, average ? DTYPES_FLOAT : DTYPES_NUMBER))
        return false;
    if (window.rank < 1)
        return infer_fail(infer, node, DIAG_wrong_shape, "input 0 is %s; it must have 3 axes at least",
                          infer_type_text(infer, x));
    return read_window(infer, node, &window, false) &&
           set_window(infer, node, &window, x, x->dims[1], x->dtype);
}

/* The bias: one element an output channel. */
static bool check_bias(struct infer *infer, node_id node, dim channels)
{
    const struct tensor_type *bias = infer_input(infer, node, 2);
    if (bias && bias->rank != 1)
        return infer_fail(infer, node, DIAG_wrong_shape, "the bias is %s; it must be a vector",
                          infer_type_text(infer, bias));
    return !bias || infer_equal(infer, node, bias->dims[0], channels, "bias and output channels");
}

/* Reads the window of the weights, whose axis `divided` has a multiple of the groups. */
static bool read_weights(struct infer *infer, node_id node, struct window *window, int divided,
                         int64_t *group)
{
    struct dims *dims = &infer->graph->dims;
    const struct tensor_type *x = infer_input(infer, node, 0), *w = infer_input(infer, node, 1);
    int64_t channels;
    *group = node_int(graph_node(infer->graph, node), ATTR_group, 1);
    *window = (struct window){.rank = x->rank - 2};
    if (window->rank < 1 || w->rank != x->rank)
        return infer_fail(infer, node, DIAG_wrong_shape,
                          "input 0 is %s and the weights are %s: both need the same 3 axes at least",
                          infer_type_text(infer, x), infer_type_text(infer, w));
    if (*group < 1 || *group > INT32_MAX ||
        (dim_is_constant(dims, w->dims[divided], &channels) && channels % *group != 0))
        return infer_fail(infer, node, DIAG_wrong_attribute, "group is %lld, the weights are %s",
                          (long long)*group, infer_type_text(infer, w));
    for (int i = 0; i < window->rank; i++)
        if (!dim_is_constant(dims, w->dims[2 + i], &window->kernel[i]) || window->kernel[i] < 1 ||
            window->kernel[i] > INT32_MAX)
            return infer_fail(infer, node, DIAG_unsupported_case,
                              "the weights are %s; a window must be constant", infer_type_text(infer, w));
    infer_set_int(infer, node, ATTR_group, *group);
    return read_window(infer, node, window, true);
}

/* Conv and ConvInteger: [n, c, sizes] by [m, c / group, window]. */
static bool convolve(struct infer *infer, node_id node, bool bias, enum dtype dtype)
{
    struct dims *dims = &infer->graph->dims;
    struct window window;
    int64_t group;
    if (!read_weights(infer, node, &window, 0, &group))
        return false;
    const struct tensor_type *x = infer_input(infer, node, 0), *w = infer_input(infer, node, 1);
    if (!infer_equal(infer, node, x->dims[1], dim_mul(dims, w->dims[1], dim_constant(dims, group)),
                     "channels of the input and of the weights") ||
        (bias && !check_bias(infer, node, w->dims[0])))
        return false;
    return set_window(infer, node, &window, x, w->dims[0], dtype);
}

bool infer_conv(struct infer *infer, node_id node)
{
    return infer_takes(infer, node, 0, DTYPES_FLOAT) && infer_same_dtype(infer, node, 0, 1) &&
           infer_same_dtype(infer, node, 0, 2) &&
           convolve(infer, node, true, infer_input(infer, node, 0)->dtype);
}

/* A zero point (`input`) of the type of the factor `of`: one number, or one a position of a vector. */
static bool check_zero_point(struct infer *infer, node_id node, uint32_t input, uint32_t of, dim positions)
{
    const struct tensor_type *zero = infer_input(infer, node, input);
    if (!zero)
        return true;
    if (!infer_same_dtype(infer, node, of, input))
        return false;
    if (zero->rank == 0 || (zero->rank == 1 && dim_equals_constant(&infer->graph->dims, zero->dims[0], 1)))
        return true;
    if (!positions || zero->rank != 1)
        return infer_fail(infer, node, DIAG_wrong_shape, "input %u is %s; it must be %s", input,
                          infer_type_text(infer, zero), positions ? "a number or a vector" : "a number");
    return infer_equal(infer, node, zero->dims[0], positions, "zero points");
}

static const dtype_set eight_bits = DTYPE_BIT(I8) | DTYPE_BIT(U8);

bool infer_conv_integer(struct infer *infer, node_id node)
{
    if (!infer_takes(infer, node, 0, eight_bits) || !infer_takes(infer, node, 1, eight_bits) ||
        !convolve(infer, node, false, DTYPE_I32))
        return false;
    return check_zero_point(infer, node, 2, 0, DIM_NONE) &&
           check_zero_point(infer, node, 3, 1, infer_input(infer, node, 1)->dims[0]);
}

/* One axis of a ConvTranspose. All that the window reaches is  stride (size - 1) + padding + reach + 1;
 * pads cut it, stated ones or those that give the stated size. DIM_NONE: reported. */
static dim transposed_size(struct infer *infer, node_id node, struct window *window, int axis,
                           const int64_t *padding)
{
    struct dims *dims = &infer->graph->dims;
    const struct node *n = graph_node(infer->graph, node);
    const struct attribute *stated = node_attribute(n, ATTR_output_shape);
    const char *mode = node_word(n, ATTR_auto_pad, "NOTSET");
    const dim size = infer_input(infer, node, 0)->dims[2 + axis];
    const int64_t reach = (window->kernel[axis] - 1) * window->dilations[axis];
    const dim stride = dim_constant(dims, window->strides[axis]);
    int64_t *begin = &window->pads[axis], *end = &window->pads[window->rank + axis], total;
    const dim whole = dim_add(dims, dim_mul(dims, dim_sub(dims, size, dim_constant(dims, 1)), stride),
                              dim_constant(dims, padding[axis] + reach + 1));
    if (!stated && strncmp(mode, "SAME", 4) != 0) {
        const dim result = dim_sub(dims, whole, dim_constant(dims, *begin + *end));
        if (dim_assume_at_least(dims, result, 0, n->location))
            return result;
        infer_fail(infer, node, DIAG_wrong_shape, "the pads leave nothing of axis %d", axis + 2);
        return DIM_NONE;
    }
    const dim result = stated ? dim_constant(dims, stated->integers[axis]) : dim_mul(dims, size, stride);
    if (!dim_is_constant(dims, dim_sub(dims, whole, result), &total)) {
        infer_fail(infer, node, DIAG_unsupported_case,
                   "with output_shape the input must have constant sizes; axis %d has %s", axis + 2,
                   infer_dim_text(infer, size));
        return DIM_NONE;
    }
    total = total < 0 ? 0 : total;
    *begin = strcmp(mode, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
    *end = total - *begin;
    return result;
}

/* [n, c, sizes] by [c, m / group, window]. Bound: pads, and sizes in the result's dims. */
bool infer_conv_transpose(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    struct window window;
    int64_t group, padding[MAX_RANK];
    dim result[MAX_RANK];
    if (!infer_takes(infer, node, 0, DTYPES_FLOAT) || !infer_same_dtype(infer, node, 0, 1) ||
        !infer_same_dtype(infer, node, 0, 2) || !read_weights(infer, node, &window, 0, &group))
        return false;
    const struct tensor_type *x = infer_input(infer, node, 0), *w = infer_input(infer, node, 1);
    const uint32_t rank = (uint32_t)window.rank;
    const struct attribute *stated = node_attribute(graph_node(infer->graph, node), ATTR_output_shape);
    if (!infer_equal(infer, node, x->dims[1], w->dims[0], "channels of the input and of the weights") ||
        !window_list(infer, node, ATTR_output_padding, rank, 0, 0, padding))
        return false;
    if (stated && stated->count == rank + 2) { /* the batch and the channels too */
        const struct attribute last =
            attribute_ints(ATTR_output_shape, rank,
                           arena_copy(infer->graph->arena, stated->integers + 2, rank * sizeof(int64_t)));
        node_set_attribute(infer->graph, node, &last);
        stated = node_attribute(graph_node(infer->graph, node), ATTR_output_shape);
    }
    for (uint32_t i = 0; stated && i < rank; i++)
        if (stated->count != rank || stated->integers[i] < 0 || stated->integers[i] > INT32_MAX)
            return infer_fail(infer, node, DIAG_wrong_attribute,
                              "output_shape must have a size for each of the %u axes", rank);
    if (strcmp(node_word(graph_node(infer->graph, node), ATTR_auto_pad, "NOTSET"), "VALID") == 0)
        memset(window.pads, 0, sizeof window.pads);
    result[0] = x->dims[0];
    result[1] = dim_mul(dims, w->dims[1], dim_constant(dims, group));
    if (!check_bias(infer, node, result[1]))
        return false;
    for (int i = 0; i < window.rank; i++)
        if (!(result[2 + i] = transposed_size(infer, node, &window, i, padding)))
            return false;
    x = infer_input(infer, node, 0);
    infer_set(infer, node, 0, x->dtype, x->rank, result);
    struct node *n = graph_node(infer->graph, node);
    node_remove_attribute(n, ATTR_auto_pad);
    node_remove_attribute(n, ATTR_output_padding);
    infer_set_ints(infer, node, ATTR_kernel_shape, rank, window.kernel);
    infer_set_ints(infer, node, ATTR_strides, rank, window.strides);
    infer_set_ints(infer, node, ATTR_dilations, rank, window.dilations);
    infer_set_ints(infer, node, ATTR_pads, 2 * rank, window.pads);
    return true;
}

/* ---- Resize
 * ------------------------------------------------------------------------------------------------------ */

/* size * scale, rounded down. A symbolic size needs a scale that is a ratio of small numbers in f32, and not
 * less than it: then the product in f32 does not fall below a whole number that it stands for. DIM_NONE:
 * reported. */
static dim scaled_size(struct infer *infer, node_id node, dim size, double scale)
{
    enum { MOST_DIVISOR = 1024 };
    struct dims *dims = &infer->graph->dims;
    dim scaled = DIM_NONE;
    int64_t number;
    if (dim_is_constant(dims, size, &number)) {
        const double product = floor((double)((float)number * (float)scale));
        if (product < 0x1p40)
            scaled = dim_constant(dims, (int64_t)product);
    }
    for (int64_t divisor = 1; divisor <= MOST_DIVISOR && scaled == DIM_NONE; divisor++) {
        const double product = floor(scale * (double)divisor);
        if (product >= 1 && product < 0x1p20 && (float)(product / (double)divisor) >= (float)scale)
            scaled = dim_floor_div(dims, dim_mul(dims, size, dim_constant(dims, (int64_t)product)),
                                   dim_constant(dims, divisor));
    }
    if (scaled == DIM_NONE)
        infer_fail(infer, node, DIAG_unsupported_case, "%s is scaled by a number that is no simple ratio",
                   infer_dim_text(infer, size));
    return scaled;
}

/* The scales input, or contents of it. */
static bool read_scales(struct infer *infer, node_id node, double *scales, uint32_t limit, uint32_t *count)
{
    const value_id id = node_input(graph_node(infer->graph, node), 2);
    const struct value *value = graph_value(infer->graph, id);
    int64_t elements;
    if (value->type.rank != 1 || !tensor_constant_sizes(&infer->graph->dims, &value->type, NULL, &elements) ||
        elements > limit)
        return infer_fail(infer, node, DIAG_wrong_shape, "the scales are %s; they must be a vector",
                          infer_type_text(infer, &value->type));
    *count = (uint32_t)elements;
    float numbers[MAX_RANK];
    if (value->kind == VALUE_CONSTANT && value->type.dtype == DTYPE_F32 && value->blob) {
        if (!blob_read(value->blob, 0, numbers, *count * sizeof *numbers))
            return infer_fail(infer, node, DIAG_file_unreadable, "the scales cannot be read");
        for (uint32_t i = 0; i < *count; i++)
            scales[i] = (double)numbers[i];
    } else {
        uint32_t known;
        const dim *contents = infer_value_contents(infer, id, &known);
        for (uint32_t i = 0; i < *count; i++) {
            int64_t number;
            if (!contents || !dim_is_constant(&infer->graph->dims, contents[i], &number))
                return infer_fail(infer, node, DIAG_unknown_shape, "the scales must be known when compiling");
            scales[i] = (double)number;
        }
    }
    graph_freeze(infer->graph, id, graph_node(infer->graph, node)->location, "the shape");
    for (uint32_t i = 0; i < *count; i++)
        if (!(scales[i] > 0) || scales[i] > 0x1p20)
            return infer_fail(infer, node, DIAG_wrong_shape, "a scale is not a positive number");
    return true;
}

/* The axes that sizes and scales speak of; all without the attribute. */
static bool resized_axes(struct infer *infer, node_id node, int rank, uint32_t count, uint32_t *axes)
{
    const struct attribute *attribute = node_attribute(graph_node(infer->graph, node), ATTR_axes);
    if (count != (attribute ? attribute->count : (uint32_t)rank))
        return infer_fail(infer, node, DIAG_wrong_shape, "there are %u sizes or scales for %u axes", count,
                          attribute ? attribute->count : (uint32_t)rank);
    for (uint32_t i = 0; i < count; i++)
        if (!infer_axis(infer, node, attribute ? attribute->integers[i] : (int64_t)i, rank, &axes[i]))
            return false;
    return true;
}

bool infer_resize(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    const int rank = x->rank;
    int64_t elements;
    dim result[MAX_RANK];
    double scales[MAX_RANK], all_scales[MAX_RANK];
    uint32_t count, axes[MAX_RANK];
    const value_id result_value = graph_node(infer->graph, node)->outputs[0];
    if (graph_node(infer->graph, node)->input_count == 1 &&
        graph_value(infer->graph, result_value)->type.rank == rank)
        return true; /* bound */
    const struct tensor_type *stated = infer_input(infer, node, 2);
    const bool by_scales =
        stated && !infer_input(infer, node, 3) &&
        !(tensor_constant_sizes(&infer->graph->dims, stated, NULL, &elements) && elements == 0);
    if (!by_scales && !infer_input(infer, node, 3))
        return infer_fail(infer, node, DIAG_wrong_arity, "neither sizes nor scales are given");
    if (strcmp(node_word(graph_node(infer->graph, node), ATTR_keep_aspect_ratio_policy, "stretch"),
               "stretch") != 0)
        return infer_fail(infer, node, DIAG_unsupported_case, "keep_aspect_ratio_policy is not implemented");
    for (int i = 0; i < rank; i++) {
        result[i] = x->dims[i];
        all_scales[i] = 1;
    }
    const dim *sizes = NULL;
    if (by_scales ? !read_scales(infer, node, scales, MAX_RANK, &count)
                  : !(sizes = infer_shape_input(infer, node, 3, &count)))
        return false;
    if (count > MAX_RANK || !resized_axes(infer, node, rank, count, axes))
        return count <= MAX_RANK ? false
                                 : infer_fail(infer, node, DIAG_wrong_shape, "there are %u sizes", count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t axis = axes[i];
        if (by_scales)
            all_scales[axis] = scales[i];
        result[axis] = by_scales ? scaled_size(infer, node, x->dims[axis], scales[i]) : sizes[i];
        if (result[axis] == DIM_NONE)
            return infer->failures > 0
                       ? false
                       : infer_fail(infer, node, DIAG_limit_exceeded, "axis %u overflows", axis);
    }
    struct node *n = graph_node(infer->graph, node);
    infer_keep_inputs(infer, node, 1);
    node_remove_attribute(n, ATTR_axes);
    node_remove_attribute(n, ATTR_keep_aspect_ratio_policy);
    if (by_scales) {
        const double *copy = arena_copy(infer->graph->arena, all_scales, (size_t)rank * sizeof *copy);
        const struct attribute attribute = attribute_floats(ATTR_scales, (uint32_t)rank, copy);
        node_set_attribute(infer->graph, node, &attribute);
    }
    infer_set(infer, node, 0, x->dtype, rank, result);
    return true;
}

/* ---- matrix products
 * --------------------------------------------------------------------------------------------- */

bool infer_gemm(struct infer *infer, node_id node)
{
    const struct tensor_type *a = infer_input(infer, node, 0), *b = infer_input(infer, node, 1);
    const struct tensor_type *c = infer_input(infer, node, 2);
    const bool turn_a = node_int(graph_node(infer->graph, node), ATTR_transA, 0) != 0;
    const bool turn_b = node_int(graph_node(infer->graph, node), ATTR_transB, 0) != 0;
    if (!infer_takes(infer, node, 0, DTYPES_NUMBER) || !infer_same_dtype(infer, node, 0, 1) ||
        !infer_same_dtype(infer, node, 0, 2))
        return false;
    if (a->rank != 2 || b->rank != 2)
        return infer_fail(infer, node, DIAG_wrong_shape, "the inputs are %s and %s; both must be matrices",
                          infer_type_text(infer, a), infer_type_text(infer, b));
    if (!infer_equal(infer, node, a->dims[turn_a ? 0 : 1], b->dims[turn_b ? 1 : 0],
                     "the dims that are summed over"))
        return false;
    dim result[2] = {a->dims[turn_a ? 1 : 0], b->dims[turn_b ? 0 : 1]};
    const struct tensor_type whole = {.dtype = a->dtype, .rank = 2, .dims = result};
    if (c && !infer_broadcasts_to(infer, node, c, &whole))
        return false;
    infer_set(infer, node, 0, a->dtype, 2, result);
    return true;
}

/* Dims of the last two axes swap where attributes say so. */
static bool multiply(struct infer *infer, node_id node, enum dtype dtype)
{
    const struct tensor_type *a = infer_input(infer, node, 0), *b = infer_input(infer, node, 1);
    dim result[MAX_RANK];
    int rank = 0;
    if (a->rank < 1 || b->rank < 1)
        return infer_fail(infer, node, DIAG_wrong_shape, "the inputs are %s and %s; neither may be a scalar",
                          infer_type_text(infer, a), infer_type_text(infer, b));
    const struct node *n = graph_node(infer->graph, node);
    const bool turn_a = a->rank > 1 && node_int(n, ATTR_transA, 0) != 0;
    const bool turn_b = b->rank > 1 && node_int(n, ATTR_transB, 0) != 0;
    const int summed_a = a->rank - (turn_a ? 2 : 1);
    const int summed_b = b->rank > 1 && !turn_b ? b->rank - 2 : b->rank - 1;
    const int a_batch = a->rank > 2 ? a->rank - 2 : 0, b_batch = b->rank > 2 ? b->rank - 2 : 0;
    if (!dim_merge(&infer->graph->dims, a->dims[summed_a], b->dims[summed_b], n->location))
        return infer_fail(infer, node, DIAG_wrong_shape,
                          "input 1 is %s; its dim %d must be %s to match input 0, %s",
                          infer_type_text(infer, b), summed_b, infer_dim_text(infer, a->dims[summed_a]),
                          infer_type_text(infer, a));
    const struct tensor_type left = {.dtype = a->dtype, .rank = a_batch, .dims = a->dims};
    const struct tensor_type right = {.dtype = b->dtype, .rank = b_batch, .dims = b->dims};
    if (!infer_broadcast_dims(infer, node, &left, &right, &rank, result))
        return false;
    if (a->rank > 1)
        result[rank++] = a->dims[turn_a ? a->rank - 1 : a->rank - 2];
    if (b->rank > 1)
        result[rank++] = b->dims[turn_b ? b->rank - 2 : b->rank - 1];
    infer_set(infer, node, 0, dtype, rank, result);
    return true;
}

bool infer_matmul(struct infer *infer, node_id node)
{
    return infer_takes(infer, node, 0, DTYPES_NUMBER) && infer_same_dtype(infer, node, 0, 1) &&
           multiply(infer, node, infer_input(infer, node, 0)->dtype);
}

/* Zero points of a matrix: a number, one a row (or column) of it, or what broadcasts to it. */
bool infer_matmul_integer(struct infer *infer, node_id node)
{
    if (!infer_takes(infer, node, 0, eight_bits) || !infer_takes(infer, node, 1, eight_bits))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const struct tensor_type *factor = infer_input(infer, node, i),
                                 *zero = infer_input(infer, node, 2 + i);
        const dim positions = factor->rank > 1 ? factor->dims[factor->rank - (i == 0 ? 2 : 1)] : DIM_NONE;
        const bool spreads = zero && zero->rank > 1;
        if (spreads
                ? !infer_same_dtype(infer, node, i, 2 + i) || !infer_broadcasts_to(infer, node, zero, factor)
                : !check_zero_point(infer, node, 2 + i, i, positions))
            return false;
    }
    return multiply(infer, node, DTYPE_I32);
}
