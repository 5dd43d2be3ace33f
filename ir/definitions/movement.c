/* Operators that move elements by an index map that is one expression an axis.
 *
 *   Expand        y[i] = x[i], x broadcast to the result's dims
 *   Tile          y[i] = x[i mod dims of x]
 *   Transpose     y[i_0 .. i_n] = x[j], j[perm[k]] = i_k
 *   Slice         y[i] = x[starts + i * steps]
 *   DepthToSpace  y[n, c, h B + p, w B + q] = x[n, (p B + q) C + c, h, w] ("DCR") or x[n, (c B + p) B + q, h,
 * w] ("CRD") SpaceToDepth  y[n, (p B + q) C + c, h, w] = x[n, c, h B + p, w B + q] Concat        y[.., i, ..]
 * = x_k[.., i - start_k, ..] for the k whose part i is in
 *
 * No arithmetic on elements: they keep their bits. */
#include "ir/definitions/build.h"

#include <string.h>

bool define_expand(struct build *b)
{
    const struct tensor_type *result = build_output(b, 0);
    struct nest *nest = nest_over(b, result);
    expr axes[MAX_RANK], indices[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    broadcast_indices(b, build_input(b, 0), nest->rank, result->dims, axes, indices);
    store_output(b, nest, 0, NULL, load_stored(b, 0, indices));
    return true;
}

bool define_tile(struct build *b)
{
    const struct tensor_type *from = build_input(b, 0), *to = build_output(b, 0);
    struct nest *nest = nest_over(b, to);
    expr axes[MAX_RANK], indices[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    for (uint32_t i = 0; i < nest->rank; i++) {
        const dim d = from->dims[i];
        indices[i] = dim_equals_constant(b->dims, d, 1)        ? position(b, 0)
                     : dim_equal(b->dims, d, to->dims[i]) == 1 ? axes[i]
                                                               : index_mod(b, axes[i], size(b, d));
    }
    store_output(b, nest, 0, NULL, load_stored(b, 0, indices));
    return true;
}

bool define_transpose(struct build *b)
{
    struct nest *nest = nest_over(b, build_output(b, 0));
    const struct attribute *perm = node_attribute(b->node, ATTR_perm);
    const uint32_t rank = nest->rank;
    expr axes[MAX_RANK], indices[MAX_RANK] = {0};
    nest_axes(b, nest, rank, axes);
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t from = attribute_at(perm, i, (int64_t)rank - 1 - i);
        if (from < 0 || from >= (int64_t)rank || indices[from])
            return build_refuse(b, "perm is not a permutation of the axes");
        indices[from] = axes[i];
    }
    store_output(b, nest, 0, NULL, load_stored(b, 0, indices));
    return true;
}

bool define_slice(struct build *b)
{
    struct nest *nest = nest_over(b, build_output(b, 0));
    const struct attribute *starts = node_attribute(b->node, ATTR_starts);
    const struct attribute *steps = node_attribute(b->node, ATTR_steps);
    expr axes[MAX_RANK], indices[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    for (uint32_t i = 0; i < nest->rank; i++) {
        expr start = starts && i < starts->count ? size(b, starts->dims[i]) : position(b, 0);
        indices[i] = add(b, start, mul(b, axes[i], position(b, attribute_at(steps, i, 1))));
    }
    store_output(b, nest, 0, NULL, load_stored(b, 0, indices));
    return true;
}

bool define_depth_to_space(struct build *b)
{
    const int64_t block = node_int(b->node, ATTR_blocksize, 0);
    if (build_input(b, 0)->rank != 4 || block < 1 || block > INT32_MAX)
        return build_refuse(b, "blocksize must be positive and the input of rank 4");
    struct nest *nest = nest_over(b, build_output(b, 0));
    expr axes[4], side = position(b, block);
    nest_axes(b, nest, 4, axes);
    expr p = index_mod(b, axes[2], side), q = index_mod(b, axes[3], side);
    expr channel;
    if (strcmp(node_word(b->node, ATTR_mode, "DCR"), "CRD") == 0)
        channel = add(b, mul(b, add(b, mul(b, axes[1], side), p), side), q);
    else
        channel = add(b, mul(b, add(b, mul(b, p, side), q), size(b, build_output(b, 0)->dims[1])), axes[1]);
    const expr indices[4] = {axes[0], channel, index_div(b, axes[2], side), index_div(b, axes[3], side)};
    store_output(b, nest, 0, NULL, load_stored(b, 0, indices));
    return true;
}

bool define_space_to_depth(struct build *b)
{
    const int64_t block = node_int(b->node, ATTR_blocksize, 0);
    if (build_input(b, 0)->rank != 4 || block < 1 || block > INT32_MAX)
        return build_refuse(b, "blocksize must be positive and the input of rank 4");
    struct nest *nest = nest_over(b, build_output(b, 0));
    expr axes[4], side = position(b, block), channels = size(b, build_input(b, 0)->dims[1]);
    nest_axes(b, nest, 4, axes);
    expr place = index_div(b, axes[1], channels);
    expr p = index_div(b, place, side), q = index_mod(b, place, side);
    const expr indices[4] = {
        axes[0],
        index_mod(b, axes[1], channels),
        add(b, mul(b, axes[2], side), p),
        add(b, mul(b, axes[3], side), q),
    };
    store_output(b, nest, 0, NULL, load_stored(b, 0, indices));
    return true;
}

bool define_concat(struct build *b)
{
    const struct tensor_type *result = build_output(b, 0);
    const uint32_t count = b->node->input_count;
    uint32_t axis;
    if (!build_axis(b, ATTR_axis, 0, result->rank, &axis))
        return false;
    struct nest *nest = nest_over(b, result);
    expr axes[MAX_RANK], starts[MAX_BUFFERS + 1];
    nest_axes(b, nest, nest->rank, axes);
    dim start = dim_constant(b->dims, 0);
    for (uint32_t i = 0; i < count; i++) {
        if (!build_has_input(b, i))
            return build_refuse(b, "an input is absent");
        if (build_input(b, i)->dtype != result->dtype || build_input(b, i)->rank != result->rank)
            return build_refuse(b, "input %u has another type or rank than the result", (unsigned)i);
        starts[i] = size(b, start);
        start = dim_add(b->dims, start, build_input(b, i)->dims[axis]);
    }
    if (!start)
        return build_refuse(b, "the sum of the inputs' dims overflows");
    const expr place = axes[axis], zero = number(b, result->dtype, 0);
    expr value = 0;
    for (uint32_t i = count; i-- > 0;) {
        axes[axis] = sub(b, place, starts[i]);
        expr part = count == 1 ? load_stored(b, i, axes) : load_stored_or(b, i, axes, zero);
        value = value ? choose(b, less(b, place, starts[i + 1]), part, value) : part;
    }
    store_output(b, nest, 0, NULL, value);
    return true;
}
