/* The end of a tile: the stores' expressions run over its results, in vectors along the output where outputs
 * are consecutive along the columns, else element by element along the rows. */
#include "codegen/strategy/cpu/tile.h"

static void declare_side(struct tiler *t, struct block *block, const struct side *side, expr index)
{
    side_axes(side, t->product, t->kernel->pool, index, t->axes);
    for (uint32_t i = 0; i < side->axis_count; i++)
        t->axes[side->axes[i]] = build_declare(block, "axis", t->axes[side->axes[i]]);
}

static expr result_at(const struct tiler *t, expr tile, expr row, expr column)
{
    const expr index = index_add(t, index_add(t, tile, index_mul(t, row, t->columns.width)), column);
    return kernel_element(t->kernel, t->accumulators, index, 1);
}

static void store_row(struct tiler *t, struct block *block, expr tile, expr column_tile, expr row,
                      expr columns)
{
    struct kernel *kernel = t->kernel;
    struct exprs *pool = kernel->pool;
    const struct side *side = &t->product->columns;
    struct block body;
    expr number, i;
    int64_t known;
    const expr whole = expr_binary(pool, EXPR_INDEX_DIV, columns, index_constant(t, t->lanes));
    build_for(block, "vector", index_constant(t, 0), whole, 0, LOOP_SERIAL, &body, &number);
    const int64_t vectors = t->columns.width / t->lanes;
    const expr absolute =
        build_declare(&body, "absolute", index_add(t, index_mul(t, column_tile, vectors), number));
    const expr lane = lane_axis(kernel, t->lanes);
    side_axes(side, t->product, pool, index_add(t, index_mul(t, absolute, t->lanes), lane), t->axes);
    t->reduced[0] = result_at(t, tile, row, index_add(t, index_mul(t, number, t->lanes), lane));
    lane_store_nest(&body, &t->lowering, t->product->nest, t->lanes);
    if (expr_constant_int(pool, columns, &known) && known % t->lanes == 0)
        return;
    build_for(block, "i", index_mul(t, whole, t->lanes), columns, 0, LOOP_SERIAL, &body, &i);
    declare_side(t, &body, side, index_add(t, index_mul(t, column_tile, t->columns.width), i));
    t->reduced[0] = result_at(t, tile, row, i);
    lane_store_nest(&body, &t->lowering, t->product->nest, 1);
}

static void store_along_columns(struct tiler *t, struct block *block, expr tile, expr row_tile,
                                expr column_tile, expr rows, expr columns)
{
    struct block body;
    expr row;
    build_for(block, "row", index_constant(t, 0), rows, 0, LOOP_SERIAL, &body, &row);
    declare_side(t, &body, &t->product->rows, index_add(t, index_mul(t, row_tile, t->rows.width), row));
    store_row(t, &body, tile, column_tile, row, columns);
}

static void store_along_rows(struct tiler *t, struct block *block, expr tile, expr row_tile, expr column_tile,
                             expr rows, expr columns)
{
    struct block outer, body;
    expr column, row;
    build_for(block, "column", index_constant(t, 0), columns, 0, LOOP_SERIAL, &outer, &column);
    declare_side(t, &outer, &t->product->columns,
                 index_add(t, index_mul(t, column_tile, t->columns.width), column));
    build_for(&outer, "row", index_constant(t, 0), rows, 0, LOOP_SERIAL, &body, &row);
    declare_side(t, &body, &t->product->rows, index_add(t, index_mul(t, row_tile, t->rows.width), row));
    t->reduced[0] = result_at(t, tile, row, column);
    lane_store_nest(&body, &t->lowering, t->product->nest, 1);
}

void tile_store(struct tiler *t, struct block *block, expr tile, expr row_tile, expr column_tile, expr rows,
                expr columns)
{
    if (t->product->swapped)
        store_along_rows(t, block, tile, row_tile, column_tile, rows, columns);
    else
        store_along_columns(t, block, tile, row_tile, column_tile, rows, columns);
}
