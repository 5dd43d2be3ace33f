/* Operators that read where an index tensor says. A negative index counts from the end; then it is clamped to
 * the axis: an index out of range is the nearest one in range, never a read outside. On an empty axis the
 * result is 0.
 *
 *   Gather    y[a .., i .., c ..] = x[a .., index[i ..], c ..], a: the dims before `axis`
 *   GatherND  y[a .., i .., c ..] = x[a .., index[a .., i .., 0], index[a .., i .., 1], .., c ..], a:
 * batch_dims dims
 *
 * And one that writes where an index says: SetElement, y[i, a ..] = i == index ? element[a ..] : x[i, a ..]. */
#include "ir/definitions/build.h"

/* The stated position of an index that was loaded, on an axis of the given size. */
static expr index_position(struct build *b, expr index, dim extent)
{
    expr at = convert(b, DTYPE_I64, index);
    expr wrapped = choose(b, less(b, at, position(b, 0)), add(b, at, size(b, extent)), at);
    return clamp_position(b, wrapped, extent);
}

static bool is_index(enum dtype dtype)
{
    return dtype == DTYPE_I32 || dtype == DTYPE_I64;
}

bool define_gather(struct build *b)
{
    const struct tensor_type *data = build_input(b, 0), *index = build_input(b, 1);
    uint32_t axis;
    if (!build_axis(b, ATTR_axis, 0, data->rank, &axis))
        return false;
    if (!is_index(index->dtype))
        return build_refuse(b, "indices of type %s", dtype_name(index->dtype));
    const uint32_t index_rank = (uint32_t)index->rank, rank = (uint32_t)data->rank;
    struct nest *nest = nest_over(b, build_output(b, 0));
    expr axes[MAX_RANK], indices[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    for (uint32_t i = 0; i < rank; i++)
        indices[i] = i < axis   ? axes[i]
                     : i > axis ? axes[i - 1 + index_rank]
                                : index_position(b, load_stored(b, 1, axes + axis), data->dims[axis]);
    expr value = may_be_empty(b, data->dims[axis]) ? load_stored_or(b, 0, indices, number(b, data->dtype, 0))
                                                   : load_stored(b, 0, indices);
    store_output(b, nest, 0, NULL, value);
    return true;
}

bool define_gather_nd(struct build *b)
{
    const struct tensor_type *data = build_input(b, 0), *index = build_input(b, 1);
    const uint32_t index_rank = (uint32_t)index->rank, rank = (uint32_t)data->rank;
    const int64_t batch = node_int(b->node, ATTR_batch_dims, 0);
    int64_t tuple = 0;
    if (!is_index(index->dtype) || index_rank < 1 || batch < 0 || batch >= (int64_t)index_rank ||
        !dim_is_constant(b->dims, index->dims[index_rank - 1], &tuple) || tuple < 1 ||
        tuple > (int64_t)rank - batch)
        return build_refuse(b, "the last dim of the indices must be a constant that fits the data's rank");
    struct nest *nest = nest_over(b, build_output(b, 0));
    expr axes[MAX_RANK], indices[MAX_RANK], at[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    for (uint32_t i = 0; i + 1 < index_rank; i++)
        at[i] = axes[i];
    bool empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        if (i < batch) {
            indices[i] = axes[i];
        } else if (i < batch + tuple) {
            at[index_rank - 1] = position(b, (int64_t)i - batch);
            indices[i] = index_position(b, load_stored(b, 1, at), data->dims[i]);
            empty |= may_be_empty(b, data->dims[i]);
        } else {
            indices[i] = axes[index_rank - 1 + i - (uint32_t)(batch + tuple)];
        }
    }
    expr value =
        empty ? load_stored_or(b, 0, indices, number(b, data->dtype, 0)) : load_stored(b, 0, indices);
    store_output(b, nest, 0, NULL, value);
    return true;
}

bool define_set_element(struct build *b)
{
    struct nest *nest = nest_over(b, build_output(b, 0));
    expr axes[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    const expr here = equal(b, axes[0], convert(b, DTYPE_I64, load_stored_scalar(b, 2)));
    store_output(b, nest, 0, NULL, choose(b, here, load_stored(b, 1, axes + 1), load_stored(b, 0, axes)));
    return true;
}
