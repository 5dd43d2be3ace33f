/* Pad: y[i] = x[i - start] inside; outside by the mode.
 *
 *   constant  the value (0 when absent)        edge  the nearest element
 *   wrap      x repeated                       reflect  x mirrored at its first and last element, without
 * repeating them
 *
 * Negative pads cut. Where x is empty and y is not, the value is 0. */
#include "ir/definitions/build.h"

#include <string.h>

/* The mirrored position of x in [0, d - 1]; `near`: it is within d - 1 of that range. */
static expr reflect_position(struct build *b, expr x, dim d, bool near)
{
    expr last = sub(b, size(b, d), position(b, 1));
    expr period = mul(b, last, position(b, 2));
    if (near) {
        expr distance = function(b, EXPR_ABS, x);
        return minimum(b, distance, sub(b, period, distance));
    }
    expr place = wrap_position(b, x, maximum(b, period, position(b, 1)));
    return minimum(b, place, sub(b, period, place));
}

/* Both pads are provably smaller than the dim. */
static bool is_near(struct build *b, dim start, dim end, dim d)
{
    return dim_less(b->dims, start, d) == 1 && dim_less(b->dims, end, d) == 1;
}

bool define_pad(struct build *b)
{
    const struct tensor_type *from = build_input(b, 0), *to = build_output(b, 0);
    const struct attribute *pads = node_attribute(b->node, ATTR_pads);
    const char *mode = node_word(b->node, ATTR_mode, "constant");
    const uint32_t rank = (uint32_t)from->rank;
    if (!pads || pads->kind != ATTR_DIMS || pads->count != 2 * rank)
        return build_refuse(b, "pads must name a start and an end for every axis");
    struct nest *nest = nest_over(b, to);
    expr axes[MAX_RANK], indices[MAX_RANK];
    nest_axes(b, nest, rank, axes);
    const bool is_constant = strcmp(mode, "constant") == 0;
    bool inside = true;
    for (uint32_t i = 0; i < rank; i++) {
        const dim start = pads->dims[i], end = pads->dims[rank + i], extent = from->dims[i];
        const bool untouched = dim_equals_constant(b->dims, start, 0) && dim_equals_constant(b->dims, end, 0);
        indices[i] = sub(b, axes[i], size(b, start));
        if (untouched)
            continue;
        inside = inside && !is_constant && !may_be_empty(b, extent);
        if (strcmp(mode, "edge") == 0)
            indices[i] = clamp_position(b, indices[i], extent);
        else if (strcmp(mode, "reflect") == 0)
            indices[i] = reflect_position(b, indices[i], extent, is_near(b, start, end, extent));
        else if (strcmp(mode, "wrap") == 0)
            indices[i] = wrap_position(b, indices[i], size(b, extent));
        else if (!is_constant)
            return build_refuse(b, "mode \"%s\" is not implemented", mode);
    }
    expr fill = number(b, from->dtype, 0);
    if (is_constant && build_has_input(b, 1))
        fill = convert(b, from->dtype, load_stored_scalar(b, 1));
    store_output(b, nest, 0, NULL, inside ? load_stored(b, 0, indices) : load_stored_or(b, 0, indices, fill));
    return true;
}
