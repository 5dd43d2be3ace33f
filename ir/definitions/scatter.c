/* ScatterND and ScatterElements: y is the data, then every update in its order:
 *
 *   ScatterND        y[index[q ..., 0], index[q ..., 1], ..., s ...] op= updates[q ..., s ...]
 *   ScatterElements  y[a .., index[a .., i, c ..], c ..] op= updates[a .., i, c ..], the index on `axis`
 *
 * op: `reduction`; none takes the update alone, so that of equal indices the last one counts. A negative
 * index counts from the end; an update whose index is outside of the data changes nothing. */
#include "ir/definitions/build.h"

#include <string.h>

static expr both(struct build *b, expr x, expr y)
{
    return x ? expr_binary(b->pool, EXPR_AND, x, y) : y;
}

/* An index that was loaded, counted from the front; `inside` gets narrower by its range. */
static expr stated_position(struct build *b, expr index, dim extent, expr *inside)
{
    const expr at = convert(b, DTYPE_I64, index), zero = position(b, 0);
    const expr front = choose(b, less(b, at, zero), add(b, at, size(b, extent)), at);
    *inside = both(b, *inside,
                   expr_binary(b->pool, EXPR_AND, expr_binary(b->pool, EXPR_LESS_EQUAL, zero, front),
                               less(b, front, size(b, extent))));
    return front;
}

static expr combined(struct build *b, const expr *to, expr update)
{
    const char *reduction = node_word(b->node, ATTR_reduction, "none");
    const enum dtype storage = build_output(b, 0)->dtype, dtype = compute_dtype(storage);
    if (strcmp(reduction, "none") == 0)
        return update;
    const uint32_t buffer = build_output_buffer(b, 0);
    const uint32_t rank = (uint32_t)build_output(b, 0)->rank;
    const expr old =
        convert(b, dtype, expr_load_or(b->pool, buffer, storage, rank, to, number(b, storage, 0)));
    const expr x = convert(b, dtype, update);
    const enum expr_op op = strcmp(reduction, "add") == 0   ? EXPR_ADD
                            : strcmp(reduction, "mul") == 0 ? EXPR_MUL
                            : strcmp(reduction, "min") == 0 ? EXPR_MIN
                                                            : EXPR_MAX;
    return expr_binary(b->pool, op, old, x);
}

/* What the two share: the types, and a first nest that copies the data. */
static bool begin(struct build *b)
{
    const enum dtype data = build_input(b, 0)->dtype, index = build_input(b, 1)->dtype;
    const bool plain = strcmp(node_word(b->node, ATTR_reduction, "none"), "none") == 0;
    if (index != DTYPE_I32 && index != DTYPE_I64)
        return build_refuse(b, "indices of type %s", dtype_name(index));
    if (build_input(b, 2)->dtype != data || dtype_bits(data) < 8 || (!plain && !(DTYPES_NUMBER >> data & 1)))
        return build_refuse(b, "not implemented for data of type %s and updates of type %s", dtype_name(data),
                            dtype_name(build_input(b, 2)->dtype));
    struct nest *copy = nest_over(b, build_output(b, 0));
    expr axes[MAX_RANK];
    nest_axes(b, copy, copy->rank, axes);
    store_output(b, copy, 0, NULL, load_stored(b, 0, axes));
    return true;
}

bool define_scatter_nd(struct build *b)
{
    const struct tensor_type *data = build_input(b, 0), *index = build_input(b, 1);
    const uint32_t rank = (uint32_t)data->rank, index_rank = (uint32_t)index->rank;
    int64_t tuple = 0;
    if (index_rank < 1 || !dim_is_constant(b->dims, index->dims[index_rank - 1], &tuple) || tuple < 0 ||
        tuple > (int64_t)rank)
        return build_refuse(b, "the last dim of the indices must be a constant that fits the data's rank");
    if (!begin(b))
        return false;
    const uint32_t fixed = (uint32_t)tuple, slice = rank - fixed;
    dim updates = dim_constant(b->dims, 1);
    for (uint32_t i = 0; i + 1 < index_rank; i++)
        updates = dim_mul(b->dims, updates, index->dims[i]);
    if (!updates)
        return build_refuse(b, "there are too many updates");
    struct nest *nest = definition_nest(b->d, slice, data->dims + fixed, 1, &updates);
    nest->kind = NEST_SCATTER;
    expr from[MAX_RANK], at[MAX_RANK], to[MAX_RANK], inside = 0, rest = nest_axis(b->d, nest, slice);
    for (uint32_t i = index_rank - 1; i-- > 0;) { /* the place of the update in the indices' outer dims */
        at[i] = from[i] = i ? index_mod(b, rest, size(b, index->dims[i])) : rest;
        rest = i ? index_div(b, rest, size(b, index->dims[i])) : rest;
    }
    for (uint32_t i = 0; i < fixed; i++) {
        at[index_rank - 1] = position(b, i);
        to[i] = stated_position(b, load_stored(b, 1, at), data->dims[i], &inside);
    }
    for (uint32_t i = 0; i < slice; i++)
        to[fixed + i] = from[index_rank - 1 + i] = nest_axis(b->d, nest, i);
    const expr value = convert(b, data->dtype, combined(b, to, load_stored(b, 2, from)));
    nest_store_where(b->d, nest, build_output_buffer(b, 0), to, value,
                     inside ? inside : expr_int(b->pool, DTYPE_BOOL, 1));
    return true;
}

bool define_scatter_elements(struct build *b)
{
    const struct tensor_type *data = build_input(b, 0), *index = build_input(b, 1);
    const uint32_t rank = (uint32_t)data->rank;
    uint32_t axis;
    dim rows[MAX_RANK];
    if (!build_axis(b, ATTR_axis, 0, data->rank, &axis) || !begin(b))
        return false;
    for (uint32_t i = 0; i + 1 < rank; i++)
        rows[i] = index->dims[i + (i >= axis)];
    struct nest *nest = definition_nest(b->d, rank - 1, rows, 1, &index->dims[axis]);
    nest->kind = NEST_SCATTER;
    expr from[MAX_RANK], to[MAX_RANK], inside = 0;
    for (uint32_t i = 0; i < rank; i++)
        from[i] = to[i] = nest_axis(b->d, nest, i == axis ? rank - 1 : i - (i > axis));
    to[axis] = stated_position(b, load_stored(b, 1, from), data->dims[axis], &inside);
    for (uint32_t i = 0; i < rank; i++) /* indices may have more places than the data */
        if (i != axis && dim_less(b->dims, data->dims[i], index->dims[i]) != 0)
            inside = both(b, inside, less(b, to[i], size(b, data->dims[i])));
    const expr value = convert(b, data->dtype, combined(b, to, load_stored(b, 2, from)));
    nest_store_where(b->d, nest, build_output_buffer(b, 0), to, value, inside);
    return true;
}
