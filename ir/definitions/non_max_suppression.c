/* NonMaxSuppression: of the candidates of each batch and class, in the order of their scores, those are kept
 * whose box overlaps none that is kept already by more than `overlap`.
 *
 *   side(a, b) = [min, max] of the two corners, or [center - size / 2, center + size / 2]
 *   inter      = product over both sides of min(max_i, max_j) - max(min_i, min_j)
 *   overlap    = inter / (area_i + area_j - inter)
 *
 * A side of the intersection, an area or a union that is not above 0 makes no overlap, as in ONNX Runtime.
 * The result says of each place of the order whether it is kept; at most `most` of a batch and class are, and
 * none whose score is not above the least one. All arithmetic is in f32, operation by operation. */
#include "ir/definitions/build.h"

struct box {
    expr low[2], high[2], area;
};

/* Corners in any order at 0 .. 3: two sides a and b with a at 0 and 2, b at 1 and 3; or center and size. */
static struct box load_box(struct build *b, expr batch, expr place, bool centered)
{
    struct box box;
    expr at[4], indices[3] = {batch, place, 0};
    for (uint32_t i = 0; i < 4; i++) {
        indices[2] = position(b, i);
        at[i] = load_input(b, 0, indices);
    }
    for (uint32_t side = 0; side < 2; side++) {
        const expr half = divide(b, at[2 + side], number(b, DTYPE_F32, 2));
        box.low[side] = centered ? sub(b, at[side], half) : minimum(b, at[side], at[2 + side]);
        box.high[side] = centered ? add(b, at[side], half) : maximum(b, at[side], at[2 + side]);
    }
    box.area = mul(b, sub(b, box.high[0], box.low[0]), sub(b, box.high[1], box.low[1]));
    return box;
}

static expr above(struct build *b, expr x, expr least)
{
    return less(b, least, x);
}

static expr both(struct build *b, expr x, expr y)
{
    return expr_binary(b->pool, EXPR_AND, x, y);
}

static expr overlaps(struct build *b, const struct box *x, const struct box *y)
{
    const expr zero = number(b, DTYPE_F32, 0);
    expr sides[2], meets = 0;
    for (uint32_t side = 0; side < 2; side++) {
        const expr low = maximum(b, x->low[side], y->low[side]);
        const expr high = minimum(b, x->high[side], y->high[side]);
        sides[side] = sub(b, high, low);
        const expr wide = above(b, high, low);
        meets = meets ? both(b, meets, wide) : wide;
    }
    const expr inter = mul(b, sides[0], sides[1]);
    const expr whole = sub(b, add(b, x->area, y->area), inter);
    const expr areas =
        both(b, both(b, above(b, x->area, zero), above(b, y->area, zero)), above(b, whole, zero));
    const expr more = above(b, divide(b, inter, whole), load_scalar(b, 4));
    return both(b, both(b, meets, above(b, inter, zero)), both(b, areas, more));
}

static expr as_u32(struct build *b, expr condition)
{
    return convert(b, DTYPE_U32, condition);
}

bool define_non_max_suppression(struct build *b)
{
    const struct tensor_type *places = build_input(b, 1);
    const bool centered = node_int(b->node, ATTR_center_point_box, 0) != 0;
    const dim candidates[2] = {places->dims[2], places->dims[2]};
    struct nest *nest = definition_nest(b->d, 2, places->dims, 2, candidates);
    nest->kind = NEST_FILTER;
    expr own[3], other[3];
    for (uint32_t i = 0; i < 3; i++)
        own[i] = other[i] = nest_axis(b->d, nest, i);
    other[2] = nest_axis(b->d, nest, 3);
    const struct box box = load_box(b, own[0], load_stored(b, 1, own), centered);
    const struct box kept = load_box(b, own[0], load_stored(b, 1, other), centered);
    const expr let_in = build_has_input(b, 5) ? as_u32(b, above(b, load_input(b, 2, own), load_scalar(b, 5)))
                                              : expr_int(b->pool, DTYPE_U32, 1);
    nest_reduce(b->d, nest, REDUCE_MAX, let_in);
    nest_reduce(b->d, nest, REDUCE_MAX, as_u32(b, overlaps(b, &box, &kept)));
    nest_reduce(b->d, nest, REDUCE_MAX, load_stored_scalar(b, 3));
    store_output(b, nest, 0, own, convert(b, DTYPE_BOOL, expr_reduced(b->pool, 0, DTYPE_U32)));
    return true;
}
