/* Shapes of operators that move elements. Bound: Slice has a start and a step for every axis, Pad its pads,
 * Split is several Slices, axes count from the front. */
#include "ir/infer_internal.h"

#include <string.h>

bool infer_concat(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const struct tensor_type *first = infer_input(infer, node, 0);
    const uint32_t count = graph_node(infer->graph, node)->input_count;
    uint32_t axis;
    dim result[MAX_RANK];
    if (!infer_axis(infer, node, node_int(graph_node(infer->graph, node), ATTR_axis, 0), first->rank, &axis))
        return false;
    memcpy(result, first->dims, (size_t)first->rank * sizeof *result);
    for (uint32_t i = 1; i < count; i++) {
        const struct tensor_type *next = infer_input(infer, node, i);
        if (!next)
            return infer_fail(infer, node, DIAG_wrong_arity, "input %u is missing", i);
        if (!infer_same_dtype(infer, node, 0, i))
            return false;
        if (next->rank != first->rank)
            return infer_fail(infer, node, DIAG_wrong_shape,
                              "input 0 is %s and input %u is %s: ranks must agree",
                              infer_type_text(infer, first), i, infer_type_text(infer, next));
        for (int k = 0; k < first->rank; k++) {
            if (k == (int)axis)
                result[k] = dim_add(dims, result[k], next->dims[k]);
            else if (!infer_equal(infer, node, first->dims[k], next->dims[k], "dims beside the axis"))
                return false;
        }
    }
    infer_set_int(infer, node, ATTR_axis, axis);
    first = infer_input(infer, node, 0);
    infer_set(infer, node, 0, first->dtype, first->rank, result);
    return true;
}

bool infer_transpose(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    const struct attribute *attribute = node_attribute(graph_node(infer->graph, node), ATTR_perm);
    int64_t perm[MAX_RANK];
    bool seen[MAX_RANK] = {false};
    dim result[MAX_RANK];
    if (attribute && (int)attribute->count != x->rank)
        return infer_fail(infer, node, DIAG_wrong_attribute, "perm names %u axes of %s", attribute->count,
                          infer_type_text(infer, x));
    for (int i = 0; i < x->rank; i++) {
        uint32_t axis;
        if (!infer_axis(infer, node, attribute ? attribute->integers[i] : x->rank - 1 - i, x->rank, &axis))
            return false;
        if (seen[axis])
            return infer_fail(infer, node, DIAG_wrong_attribute, "perm names axis %u twice", axis);
        seen[axis] = true;
        perm[i] = axis;
        result[i] = x->dims[axis];
    }
    infer_set_ints(infer, node, ATTR_perm, (uint32_t)x->rank, perm);
    infer_set(infer, node, 0, x->dtype, x->rank, result);
    return true;
}

/* ---- Gather
 * ------------------------------------------------------------------------------------------------------ */

bool infer_gather(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0), *index = infer_input(infer, node, 1);
    uint32_t axis;
    dim result[2 * MAX_RANK];
    int rank = 0;
    if (!infer_takes(infer, node, 1, DTYPES_INDEX) ||
        !infer_axis(infer, node, node_int(graph_node(infer->graph, node), ATTR_axis, 0), x->rank, &axis))
        return false;
    for (int i = 0; i < (int)axis; i++)
        result[rank++] = x->dims[i];
    for (int i = 0; i < index->rank; i++)
        result[rank++] = index->dims[i];
    for (int i = (int)axis + 1; i < x->rank; i++)
        result[rank++] = x->dims[i];
    if (rank > MAX_RANK)
        return infer_fail(infer, node, DIAG_limit_exceeded, "the result would have %d axes", rank);
    infer_set_int(infer, node, ATTR_axis, axis);
    infer_set(infer, node, 0, x->dtype, rank, result);
    return true;
}

bool infer_gather_nd(struct infer *infer, node_id node)
{
    const struct tensor_type *x = infer_input(infer, node, 0), *index = infer_input(infer, node, 1);
    const int64_t batch = node_int(graph_node(infer->graph, node), ATTR_batch_dims, 0);
    int64_t depth;
    dim result[2 * MAX_RANK];
    int rank = 0;
    if (!infer_takes(infer, node, 1, DTYPE_BIT(I64)))
        return false;
    if (x->rank < 1 || index->rank < 1 || batch < 0 || batch >= index->rank || batch >= x->rank ||
        !dim_is_constant(&infer->graph->dims, index->dims[index->rank - 1], &depth) || depth < 0 ||
        depth > x->rank - batch)
        return infer_fail(infer, node, DIAG_wrong_shape, "indices %s do not fit %s with %lld batch dims",
                          infer_type_text(infer, index), infer_type_text(infer, x), (long long)batch);
    for (int i = 0; i < batch; i++)
        if (!infer_equal(infer, node, x->dims[i], index->dims[i], "batch dims"))
            return false;
    for (int i = 0; i < index->rank - 1; i++)
        result[rank++] = index->dims[i];
    for (int i = (int)(batch + depth); i < x->rank; i++)
        result[rank++] = x->dims[i];
    if (rank > MAX_RANK)
        return infer_fail(infer, node, DIAG_limit_exceeded, "the result would have %d axes", rank);
    infer_set(infer, node, 0, x->dtype, rank, result);
    return true;
}

static const dtype_set scatter_indices = DTYPE_BIT(I32) | DTYPE_BIT(I64);

/* [q ..., k] indices of slices of the data, whose first k axes they say; [q ..., s ...] updates. */
bool infer_scatter_nd(struct infer *infer, node_id node)
{
    const struct tensor_type *data = infer_input(infer, node, 0), *index = infer_input(infer, node, 1);
    const struct tensor_type *updates = infer_input(infer, node, 2);
    int64_t depth;
    if (!infer_takes(infer, node, 1, scatter_indices) || !infer_same_dtype(infer, node, 0, 2))
        return false;
    if (data->rank < 1 || index->rank < 1 ||
        !dim_is_constant(&infer->graph->dims, index->dims[index->rank - 1], &depth) || depth < 0 ||
        depth > data->rank || updates->rank != index->rank - 1 + data->rank - (int)depth)
        return infer_fail(infer, node, DIAG_wrong_shape, "indices %s and updates %s do not fit %s",
                          infer_type_text(infer, index), infer_type_text(infer, updates),
                          infer_type_text(infer, data));
    for (int i = 0; i < updates->rank; i++) {
        const bool outer = i < index->rank - 1;
        const dim size = outer ? index->dims[i] : data->dims[i - (index->rank - 1) + (int)depth];
        if (!infer_equal(infer, node, updates->dims[i], size, outer ? "updates and indices" : "slices"))
            return false;
    }
    data = infer_input(infer, node, 0);
    infer_set(infer, node, 0, data->dtype, data->rank, data->dims);
    return true;
}

bool infer_scatter_elements(struct infer *infer, node_id node)
{
    const struct tensor_type *data = infer_input(infer, node, 0), *index = infer_input(infer, node, 1);
    const struct tensor_type *updates = infer_input(infer, node, 2);
    uint32_t axis;
    if (!infer_takes(infer, node, 1, scatter_indices) || !infer_same_dtype(infer, node, 0, 2) ||
        !infer_axis(infer, node, node_int(graph_node(infer->graph, node), ATTR_axis, 0), data->rank, &axis))
        return false;
    if (index->rank != data->rank || updates->rank != data->rank)
        return infer_fail(infer, node, DIAG_wrong_shape, "indices %s and updates %s do not fit %s",
                          infer_type_text(infer, index), infer_type_text(infer, updates),
                          infer_type_text(infer, data));
    for (int i = 0; i < data->rank; i++) {
        if (!infer_equal(infer, node, updates->dims[i], index->dims[i], "updates and indices"))
            return false;
        if (i != (int)axis && dim_less(&infer->graph->dims, data->dims[i], index->dims[i]) == 1)
            return infer_fail(infer, node, DIAG_wrong_shape, "the indices %s pass axis %d of %s",
                              infer_type_text(infer, index), i, infer_type_text(infer, data));
    }
    infer_set_int(infer, node, ATTR_axis, axis);
    data = infer_input(infer, node, 0);
    infer_set(infer, node, 0, data->dtype, data->rank, data->dims);
    return true;
}

/* ---- NonZero
 * ----------------------------------------------------------------------------------------------------- */

/* The count is a size of the result: the model's own, never more than there are elements. */
bool infer_non_zero(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const struct tensor_type *x = infer_input(infer, node, 0), *places = infer_input(infer, node, 1);
    const struct tensor_type *count = infer_input(infer, node, 2);
    const dim all = tensor_elements(dims, x);
    const value_id result = graph_node(infer->graph, node)->outputs[0];
    const char *name = graph_value(infer->graph, result)->name;
    if (!infer_takes(infer, node, 1, DTYPE_BIT(I64)) || !infer_takes(infer, node, 2, DTYPE_BIT(I64)))
        return false;
    if (all == DIM_NONE)
        return infer_fail(infer, node, DIAG_limit_exceeded, "the number of elements overflows");
    if (places->rank != 1 || count->rank != 0 || dim_equal(dims, places->dims[0], all) != 1)
        return infer_fail(infer, node, DIAG_wrong_shape, "places are %s and the count is %s for %s",
                          infer_type_text(infer, places), infer_type_text(infer, count),
                          infer_type_text(infer, x));
    const dim result_dims[2] = {
        dim_constant(dims, x->rank),
        infer_word(infer, graph_node(infer->graph, node)->inputs[2], 0, all,
                   name ? arena_printf(infer->graph->arena, "%s[1]", name) : NULL)};
    infer_set(infer, node, 0, DTYPE_I64, 2, result_dims);
    return true;
}

/* ---- Pad
 * ---------------------------------------------------------------------------------------------------------
 */

/* Pads of every axis, starts then ends, from the inputs or the attribute. */
static bool find_pads(struct infer *infer, node_id node, int rank, dim *pads)
{
    struct dims *dims = &infer->graph->dims;
    const struct attribute *bound = node_attribute(graph_node(infer->graph, node), ATTR_pads);
    uint32_t count, axes[MAX_RANK], axis_count;
    int64_t stated[MAX_RANK];
    for (int i = 0; i < 2 * rank; i++)
        pads[i] = dim_constant(dims, 0);
    if (bound) {
        if (bound->kind != ATTR_DIMS || (int)bound->count != 2 * rank)
            return infer_fail(infer, node, DIAG_wrong_attribute,
                              "pads must state a start and an end of every axis");
        memcpy(pads, bound->dims, bound->count * sizeof *pads);
        return true;
    }
    if (!infer_input(infer, node, 1))
        return infer_fail(infer, node, DIAG_wrong_arity, "input 1 is missing");
    const dim *given = infer_shape_input(infer, node, 1, &count);
    if (!given)
        return false;
    if (infer_input(infer, node, 3)) {
        if (!infer_constant_input(infer, node, 3, stated, MAX_RANK, &axis_count))
            return false;
    } else {
        axis_count = (uint32_t)rank;
        for (int i = 0; i < rank; i++)
            stated[i] = i;
    }
    if (count != 2 * axis_count)
        return infer_fail(infer, node, DIAG_wrong_shape, "there are %u pads for %u axes", count, axis_count);
    for (uint32_t i = 0; i < axis_count; i++) {
        if (!infer_axis(infer, node, stated[i], rank, &axes[i]))
            return false;
        pads[axes[i]] = given[i];
        pads[(uint32_t)rank + axes[i]] = given[axis_count + i];
    }
    return true;
}

bool infer_pad(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const bool bound = node_attribute(graph_node(infer->graph, node), ATTR_pads) != NULL;
    const struct tensor_type *x = infer_input(infer, node, 0);
    dim pads[2 * MAX_RANK], result[MAX_RANK];
    if (!infer_same_dtype(infer, node, 0, bound ? 1 : 2) || !find_pads(infer, node, x->rank, pads))
        return false;
    for (int i = 0; i < x->rank; i++)
        result[i] = dim_add(dims, dim_add(dims, x->dims[i], pads[i]), pads[x->rank + i]);
    if (!bound) {
        struct node *n = graph_node(infer->graph, node);
        const value_id value = node_input(n, 2);
        n->inputs[1] = value;
        n->input_count = value ? 2 : 1;
        infer_set_dims(infer, node, ATTR_pads, 2 * (uint32_t)x->rank, pads);
    }
    infer_set(infer, node, 0, x->dtype, x->rank, result);
    return true;
}

/* ---- Slice and Split
 * --------------------------------------------------------------------------------------------- */

/* A position as stated, counted from the front: negative ones count from the end. Where the sign hangs on
 * sizes it is taken not to be negative, under a guard. */
static bool count_from_front(struct infer *infer, node_id node, dim *position, dim size)
{
    struct dims *dims = &infer->graph->dims;
    const dim zero = dim_constant(dims, 0);
    const int negative = dim_less(dims, *position, zero);
    if (negative == 1)
        *position = dim_add(dims, *position, size);
    return negative >= 0 || infer_equal(infer, node, dim_min(dims, *position, zero), zero,
                                        "a position that must not be negative");
}

static dim hold_within(struct dims *dims, dim position, dim low, dim high)
{
    return dim_min(dims, dim_max(dims, position, low), high);
}

/* ONNX states "to the end" by the largest integer of the type that the exporter used. */
static bool is_end(const struct dims *dims, dim position)
{
    int64_t value;
    return dim_is_constant(dims, position, &value) && value >= INT32_MAX;
}

static bool is_beginning(const struct dims *dims, dim position)
{
    int64_t value;
    return dim_is_constant(dims, position, &value) && value <= -(int64_t)INT32_MAX;
}

/* First element and number of elements of start:end:step on an axis. */
static bool slice_axis(struct infer *infer, node_id node, dim size, dim start, dim end, int64_t step,
                       dim *first, dim *length)
{
    struct dims *dims = &infer->graph->dims;
    const dim zero = dim_constant(dims, 0), last = dim_sub(dims, size, dim_constant(dims, 1));
    const dim before = dim_constant(dims, -1);
    if (is_end(dims, start))
        start = size;
    else if (is_beginning(dims, start))
        start = step > 0 ? zero : before;
    else if (!count_from_front(infer, node, &start, size))
        return false;
    if (is_end(dims, end))
        end = size;
    else if (is_beginning(dims, end))
        end = step > 0 ? zero : before;
    else if (!count_from_front(infer, node, &end, size))
        return false;
    if (step > 0) {
        start = hold_within(dims, start, zero, size);
        end = hold_within(dims, end, zero, size);
        *length = dim_ceil_div(dims, dim_sub(dims, end, start), dim_constant(dims, step));
    } else {
        start = dim_min(dims, dim_max(dims, start, before), last);
        end = dim_min(dims, dim_max(dims, end, before), last);
        *length = dim_ceil_div(dims, dim_sub(dims, start, end), dim_constant(dims, -step));
    }
    *first = start;
    *length = dim_max(dims, *length, zero);
    return true;
}

static bool slice_bound(struct infer *infer, node_id node)
{
    const struct node *n = graph_node(infer->graph, node);
    const value_id result = n->outputs[0];
    const struct attribute *starts = node_attribute(n, ATTR_starts), *steps = node_attribute(n, ATTR_steps);
    const struct tensor_type *x = infer_input(infer, node, 0);
    if (starts && steps && (int)starts->count == x->rank && (int)steps->count == x->rank &&
        graph_value(infer->graph, result)->type.rank == x->rank)
        return true;
    return infer_fail(infer, node, DIAG_wrong_arity, "the inputs that state the slice are missing");
}

bool infer_slice(struct infer *infer, node_id node)
{
    const uint32_t input_count = graph_node(infer->graph, node)->input_count;
    int64_t axes[MAX_RANK], given_steps[MAX_RANK], steps[MAX_RANK];
    uint32_t count, end_count, axis_count, step_count;
    dim result[MAX_RANK], starts[MAX_RANK];
    if (input_count < 3)
        return slice_bound(infer, node);
    const dim *given = infer_shape_input(infer, node, 1, &count);
    const dim *ends = given ? infer_shape_input(infer, node, 2, &end_count) : NULL;
    const struct tensor_type *x = infer_input(infer, node, 0);
    const uint32_t rank = (uint32_t)x->rank;
    if (!ends)
        return false;
    axis_count = step_count = count;
    for (uint32_t i = 0; i < MAX_RANK; i++) {
        axes[i] = i;
        given_steps[i] = 1;
    }
    if ((infer_input(infer, node, 3) && !infer_constant_input(infer, node, 3, axes, MAX_RANK, &axis_count)) ||
        (infer_input(infer, node, 4) &&
         !infer_constant_input(infer, node, 4, given_steps, MAX_RANK, &step_count)))
        return false;
    if (count != end_count || count != axis_count || count != step_count || count > rank)
        return infer_fail(infer, node, DIAG_wrong_shape,
                          "there are %u starts, %u ends, %u axes and %u steps for %s", count, end_count,
                          axis_count, step_count, infer_type_text(infer, x));
    for (uint32_t i = 0; i < rank; i++) {
        result[i] = x->dims[i];
        starts[i] = dim_constant(&infer->graph->dims, 0);
        steps[i] = 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        if (!infer_axis(infer, node, axes[i], (int)rank, &axis))
            return false;
        if (given_steps[i] == 0)
            return infer_fail(infer, node, DIAG_wrong_attribute, "the step of axis %u is 0", axis);
        const int64_t most = INT64_MAX >> 16;
        steps[axis] = given_steps[i] > most ? most : given_steps[i] < -most ? -most : given_steps[i];
        if (!slice_axis(infer, node, x->dims[axis], given[i], ends[i], steps[axis], &starts[axis],
                        &result[axis]))
            return false;
    }
    const enum dtype dtype = x->dtype;
    infer_keep_inputs(infer, node, 1);
    infer_set_dims(infer, node, ATTR_starts, rank, starts);
    infer_set_ints(infer, node, ATTR_steps, rank, steps);
    infer_set(infer, node, 0, dtype, (int)rank, result);
    return true;
}

/* The parts' sizes: stated, or equal ones of which the last may be smaller. */
static bool split_sizes(struct infer *infer, node_id node, dim size, dim *sizes, uint32_t parts)
{
    struct dims *dims = &infer->graph->dims;
    uint32_t count;
    dim sum = dim_constant(dims, 0);
    if (infer_input(infer, node, 1)) {
        const dim *given = infer_shape_input(infer, node, 1, &count);
        if (!given)
            return false;
        if (count != parts)
            return infer_fail(infer, node, DIAG_wrong_shape, "there are %u sizes for %u results", count,
                              parts);
        for (uint32_t i = 0; i < parts; i++) {
            sizes[i] = given[i];
            sum = dim_add(dims, sum, given[i]);
        }
        return infer_equal(infer, node, sum, size, "the sum of the parts and the dim");
    }
    const dim part = dim_ceil_div(dims, size, dim_constant(dims, parts));
    for (uint32_t i = 0; i < parts; i++) {
        const dim left = dim_max(dims, dim_sub(dims, size, sum), dim_constant(dims, 0));
        sizes[i] = dim_min(dims, part, left);
        sum = dim_add(dims, sum, part);
    }
    return true;
}

/* The node becomes the slice of its last part that is wanted; the other parts are nodes of their own, which
 * take over its results. */
bool infer_split(struct infer *infer, node_id node)
{
    struct graph *graph = infer->graph;
    const struct tensor_type x = *infer_input(infer, node, 0);
    const uint32_t parts = graph_node(graph, node)->output_count;
    uint32_t axis;
    dim *sizes = arena_new_array(graph->arena, dim, parts);
    if (!infer_axis(infer, node, node_int(graph_node(graph, node), ATTR_axis, 0), x.rank, &axis) ||
        !split_sizes(infer, node, x.dims[axis], sizes, parts))
        return false;
    const value_id *results = graph_node(graph, node)->outputs;
    const value_id input = graph_node(graph, node)->inputs[0];
    const struct location *location = graph_node(graph, node)->location;
    const region_id region = graph_node(graph, node)->region;
    dim starts[MAX_RANK], dims[MAX_RANK], start = dim_constant(&graph->dims, 0);
    int64_t steps[MAX_RANK];
    uint32_t last = parts;
    while (last > 0 && results[last - 1] == 0)
        last--;
    if (last == 0)
        graph_remove_node(graph, node);
    for (int i = 0; i < x.rank; i++) {
        starts[i] = start;
        steps[i] = 1;
        dims[i] = x.dims[i];
    }
    for (uint32_t i = 0; i < last; start = dim_add(&graph->dims, start, sizes[i]), i++) {
        node_id slice = node;
        if (results[i] == 0)
            continue;
        if (i + 1 < last) {
            slice = graph_add_node(graph, region, infer->appends ? 0 : node, OP_Slice, 1, &input, 0, 0, NULL,
                                   location);
        } else {
            infer_become(infer, node, OP_Slice);
        }
        graph_node(graph, slice)->outputs = arena_copy(graph->arena, &results[i], sizeof *results);
        graph_node(graph, slice)->output_count = 1;
        graph_value(graph, results[i])->producer = slice;
        graph_value(graph, results[i])->index = 0;
        starts[axis] = start;
        dims[axis] = sizes[i];
        infer_set_dims(infer, slice, ATTR_starts, (uint32_t)x.rank, starts);
        infer_set_ints(infer, slice, ATTR_steps, (uint32_t)x.rank, steps);
        infer_set(infer, slice, 0, x.dtype, x.rank, dims);
        if (slice != node)
            infer_find_contents(infer, slice);
    }
    return true;
}

/* ---- blocks
 * ------------------------------------------------------------------------------------------------------ */

static bool find_block(struct infer *infer, node_id node, int64_t *block)
{
    const struct tensor_type *x = infer_input(infer, node, 0);
    *block = node_int(graph_node(infer->graph, node), ATTR_blocksize, 0);
    if (x->rank != 4)
        return infer_fail(infer, node, DIAG_wrong_shape, "input 0 is %s; it must have 4 axes",
                          infer_type_text(infer, x));
    return (*block > 0 && *block <= INT16_MAX) ||
           infer_fail(infer, node, DIAG_wrong_attribute, "blocksize is %lld", (long long)*block);
}

/* size / by, which must leave no rest. */
static bool divide_whole(struct infer *infer, node_id node, dim size, int64_t by, dim *quotient)
{
    struct dims *dims = &infer->graph->dims;
    *quotient = dim_floor_div(dims, size, dim_constant(dims, by));
    return infer_equal(infer, node, dim_mul(dims, *quotient, dim_constant(dims, by)), size,
                       "a dim cut into blocks");
}

bool infer_depth_to_space(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    int64_t block;
    dim result[4];
    if (!find_block(infer, node, &block))
        return false;
    const struct tensor_type *x = infer_input(infer, node, 0);
    result[0] = x->dims[0];
    if (!divide_whole(infer, node, x->dims[1], block * block, &result[1]))
        return false;
    result[2] = dim_mul(dims, x->dims[2], dim_constant(dims, block));
    result[3] = dim_mul(dims, x->dims[3], dim_constant(dims, block));
    infer_set(infer, node, 0, x->dtype, 4, result);
    return true;
}

bool infer_space_to_depth(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    int64_t block;
    dim result[4];
    if (!find_block(infer, node, &block))
        return false;
    const struct tensor_type *x = infer_input(infer, node, 0);
    result[0] = x->dims[0];
    result[1] = dim_mul(dims, x->dims[1], dim_constant(dims, block * block));
    if (!divide_whole(infer, node, x->dims[2], block, &result[2]) ||
        !divide_whole(infer, node, x->dims[3], block, &result[3]))
        return false;
    infer_set(infer, node, 0, x->dtype, 4, result);
    return true;
}
