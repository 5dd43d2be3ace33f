/* Shapes of DFT and STFT. Bound: the length, the axis and the step, once inputs, stand in attributes. */
#include "ir/infer_internal.h"

#include <string.h>

/* A known number from an input, or `absent`. */
static bool known_number(struct infer *infer, node_id node, uint32_t input, int64_t absent, int64_t *value)
{
    uint32_t count = 1;
    *value = absent;
    if (!infer_input(infer, node, input))
        return true;
    if (!infer_constant_input(infer, node, input, value, 1, &count))
        return false;
    return count == 1 || infer_fail(infer, node, DIAG_wrong_shape, "input %u must be one number", input);
}

/* Inputs of this kind end in the real and the imaginary part, or the real one alone. */
static bool check_signal(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    const struct dims *dims = &infer->graph->dims;
    if (graph_node(infer->graph, node)->op == OP_STFT && x->rank == 2) /* real, without an axis that says so */
        return infer_takes(infer, node, 0, DTYPES_FLOAT);
    return infer_takes(infer, node, 0, DTYPES_FLOAT) &&
           ((x->rank >= 2 && (dim_equals_constant(dims, x->dims[x->rank - 1], 1) ||
                              dim_equals_constant(dims, x->dims[x->rank - 1], 2))) ||
            infer_fail(infer, node, DIAG_wrong_shape,
                       "input 0 is %s; its last dim must be 1 (real) or 2 (complex)",
                       infer_type_text(infer, x)));
}

bool infer_dft(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const struct node *n = graph_node(infer->graph, node);
    const bool inverse = node_int(n, ATTR_inverse, 0) != 0, onesided = node_int(n, ATTR_onesided, 0) != 0;
    int64_t length = node_int(n, ATTR_dft_length, 0), axis = node_int(n, ATTR_axis, -2), size;
    uint32_t front;
    dim result[MAX_RANK];
    if (!check_signal(infer, node) || !known_number(infer, node, 2, axis, &axis) ||
        !infer_axis(infer, node, axis, infer_input(infer, node, 0)->rank, &front) ||
        !known_number(infer, node, 1, length, &length))
        return false;
    const struct tensor_type *x = infer_input(infer, node, 0);
    if ((int)front == x->rank - 1)
        return infer_fail(infer, node, DIAG_wrong_attribute,
                          "axis %u is that of the real and imaginary parts", front);
    if (!length) {
        if (!dim_is_constant(dims, x->dims[front], &size))
            return infer_fail(
                infer, node, DIAG_unknown_shape,
                "the length of the transform, %s, must be known when compiling: fix it by --dim",
                infer_dim_text(infer, x->dims[front]));
        length = inverse && onesided ? 2 * (size - 1) : size;
    }
    if (length < 1)
        return infer_fail(infer, node, DIAG_wrong_shape, "a transform of %lld elements", (long long)length);
    memcpy(result, x->dims, (size_t)x->rank * sizeof *result);
    result[front] = dim_constant(dims, onesided && !inverse ? length / 2 + 1 : length);
    result[x->rank - 1] = dim_constant(dims, onesided && inverse ? 1 : 2);
    infer_keep_inputs(infer, node, 1);
    infer_set_int(infer, node, ATTR_axis, front);
    infer_set_int(infer, node, ATTR_dft_length, length);
    x = infer_input(infer, node, 0);
    infer_set(infer, node, 0, x->dtype, x->rank, result);
    return true;
}

bool infer_stft(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const struct node *n = graph_node(infer->graph, node);
    const bool bound = node_attribute(n, ATTR_frame_step) != NULL;
    int64_t step = node_int(n, ATTR_frame_step, 0), length = node_int(n, ATTR_dft_length, 0);
    if (!check_signal(infer, node) ||
        (!bound && (!known_number(infer, node, 1, 0, &step) || !known_number(infer, node, 3, 0, &length))))
        return false;
    const struct tensor_type *x = infer_input(infer, node, 0),
                             *window = infer_input(infer, node, bound ? 1 : 2);
    if (x->rank > 3 || (window && window->rank != 1) || !infer_same_dtype(infer, node, 0, bound ? 1 : 2))
        return infer_fail(
            infer, node, DIAG_wrong_shape,
            "input 0 is %s; a batch, a length and the parts are wanted, and a window of the same type",
            infer_type_text(infer, x));
    if (!length && !(dim_is_constant(dims, window ? window->dims[0] : x->dims[1], &length)))
        return infer_fail(infer, node, DIAG_unknown_shape,
                          "the length of a frame must be known when compiling");
    if (window &&
        !infer_equal(infer, node, window->dims[0], dim_constant(dims, length), "the window and a frame"))
        return false;
    if (step < 1 || length < 1)
        return infer_fail(infer, node, DIAG_wrong_shape, "frames of %lld elements every %lld",
                          (long long)length, (long long)step);
    const dim last = dim_sub(dims, x->dims[1], dim_constant(dims, length));
    if (!dim_assume_at_least(dims, last, 0, graph_node(infer->graph, node)->location))
        return infer_fail(infer, node, DIAG_wrong_shape, "%s is shorter than a frame of %lld",
                          infer_type_text(infer, x), (long long)length);
    const int64_t bins = node_int(graph_node(infer->graph, node), ATTR_onesided, 1) ? length / 2 + 1 : length;
    const dim frames =
        dim_add(dims, dim_floor_div(dims, last, dim_constant(dims, step)), dim_constant(dims, 1));
    const dim result[4] = {x->dims[0], frames, dim_constant(dims, bins), dim_constant(dims, 2)};
    if (!bound) {
        struct node *changed = graph_node(infer->graph, node);
        const value_id weights = node_input(changed, 2);
        changed->inputs[1] = weights;
        changed->input_count = weights ? 2 : 1;
        infer_set_int(infer, node, ATTR_frame_step, step);
        infer_set_int(infer, node, ATTR_dft_length, length);
    }
    infer_set(infer, node, 0, infer_input(infer, node, 0)->dtype, 4, result);
    return true;
}
