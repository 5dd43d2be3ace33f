/* Packing of an operand into panels in scratch, for any expression: whole vectors where the elements of a
 * tile are consecutive in memory, else one element after the other along the depth. */
#include "codegen/strategy/cpu/tile.h"

/* The factor at element `index` of the side and at `depth`. */
static expr factor_at(struct tiler *t, const struct operand *operand, expr index, expr depth)
{
    struct exprs *pool = t->kernel->pool;
    side_axes(operand->side, t->product, pool, index, t->axes);
    depth_axes(t->product, pool, depth, t->axes);
    return lower_expr(&t->lowering, operand->side->factor);
}

/* Declares the axes of the depth, so that a division is done once a depth. */
static void declare_depth(struct tiler *t, struct block *block, expr depth)
{
    depth_axes(t->product, t->kernel->pool, depth, t->axes);
    for (uint32_t i = 0; i < t->product->digit_count; i++) {
        const uint32_t axis = t->product->digits[i].axis;
        t->axes[axis] = build_declare(block, "depth_axis", t->axes[axis]);
    }
}

static expr factor_in_depth(struct tiler *t, const struct operand *operand, expr index)
{
    side_axes(operand->side, t->product, t->kernel->pool, index, t->axes);
    return lower_expr(&t->lowering, operand->side->factor);
}

static void scalar_tile(struct tiler *t, struct block *block, const struct operand *operand, expr base,
                        expr start, expr count)
{
    struct block rows, depths;
    expr i, depth;
    build_for(block, "i", index_constant(t, 0), count, 0, LOOP_SERIAL, &rows, &i);
    const expr element = build_declare(&rows, "element", index_add(t, start, i));
    build_for(&rows, "depth", index_constant(t, 0), t->depth_count, 0, LOOP_SERIAL, &depths, &depth);
    const expr value = factor_at(t, operand, element, index_add(t, t->depth_begin, depth));
    const expr place = index_add(t, index_add(t, base, index_mul(t, depth, operand->stride)), i);
    build_store(&depths, operand->memory, place, value);
}

/* `count` elements, whole vectors first. `exact`: there are only whole vectors. */
static void vector_tile(struct tiler *t, struct block *block, const struct operand *operand, expr base,
                        expr tile, expr count, bool exact)
{
    struct kernel *kernel = t->kernel;
    struct exprs *pool = kernel->pool;
    struct block depths, lanes, rest;
    expr depth, number, i;
    const uint32_t vectors = operand->width / t->lanes;
    build_for(block, "depth", index_constant(t, 0), t->depth_count, 0, LOOP_SERIAL, &depths, &depth);
    declare_depth(t, &depths, index_add(t, t->depth_begin, depth));
    const expr place =
        build_declare(&depths, "place", index_add(t, base, index_mul(t, depth, operand->stride)));
    const expr whole = expr_binary(pool, EXPR_INDEX_DIV, count, index_constant(t, t->lanes));
    build_for(&depths, "vector", index_constant(t, 0), whole, 0, exact ? LOOP_UNROLL : LOOP_SERIAL, &lanes,
              &number);
    const expr absolute =
        build_declare(&lanes, "absolute", index_add(t, index_mul(t, tile, vectors), number));
    const expr index = index_add(t, index_mul(t, absolute, t->lanes), lane_axis(kernel, t->lanes));
    const expr value = lane_widen(kernel, factor_in_depth(t, operand, index), t->lanes);
    build_store(&lanes, operand->memory, index_add(t, place, index_mul(t, number, t->lanes)), value);
    if (exact)
        return;
    build_for(&depths, "i", index_mul(t, whole, t->lanes), count, 0, LOOP_SERIAL, &rest, &i);
    const expr element = factor_in_depth(t, operand, index_add(t, index_mul(t, tile, operand->width), i));
    build_store(&rest, operand->memory, index_add(t, place, i), element);
}

static bool is_consecutive(struct tiler *t, const struct operand *operand)
{
    const struct kernel *kernel = t->kernel;
    struct exprs *pool = kernel->pool;
    if (operand->width % t->lanes)
        return false;
    /* Any variable serves to ask the question. */
    const uint32_t tile = kernel_variable_add(t->kernel, DTYPE_I64, 1, false, "tile");
    const uint32_t depth = kernel_variable_add(t->kernel, DTYPE_I64, 1, false, "depth");
    const expr index =
        index_add(t, index_mul(t, kernel_variable(kernel, tile), t->lanes), lane_axis(kernel, t->lanes));
    depth_axes(t->product, pool, kernel_variable(kernel, depth), t->axes);
    return lane_loads_contiguous(kernel, factor_in_depth(t, operand, index));
}

void tile_pack(struct tiler *t, struct block *block, const struct operand *operand, expr first, expr end)
{
    struct exprs *pool = t->kernel->pool;
    struct block tiles;
    expr tile;
    const bool consecutive = is_consecutive(t, operand);
    build_for(block, "tile", first, end, 0, LOOP_SERIAL, &tiles, &tile);
    const int64_t panel = (int64_t)t->config->value[TILE_DEPTH] * operand->stride;
    const expr base = build_declare(&tiles, "panel", index_mul(t, index_sub(t, tile, first), panel));
    const expr start = build_declare(&tiles, "start", index_mul(t, tile, operand->width));
    const expr width = index_constant(t, operand->width);
    if (dim_divisible(t->product->dims, operand->side->extent, operand->width)) {
        if (consecutive)
            vector_tile(t, &tiles, operand, base, tile, width, true);
        else
            scalar_tile(t, &tiles, operand, base, start, width);
        return;
    }
    const expr extent = kernel_dim(t->kernel, operand->side->extent);
    const expr count = build_declare(&tiles, "count", index_min(t, width, index_sub(t, extent, start)));
    if (!consecutive) {
        scalar_tile(t, &tiles, operand, base, start, count);
        return;
    }
    struct block full, edge;
    build_if(&tiles, expr_binary(pool, EXPR_EQUAL, count, width), &full, &edge);
    vector_tile(t, &full, operand, base, tile, width, true);
    vector_tile(t, &edge, operand, base, tile, count, false);
}
