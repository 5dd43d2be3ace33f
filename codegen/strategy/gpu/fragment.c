/* See fragment.h. */
#include "codegen/strategy/gpu/fragment.h"

#include <assert.h>

enum { WARP_LANES = 32, QUAD = 4, TILE_REGISTERS = 4 };

uint32_t fragment_registers(const struct fragment *fragment)
{
    return TILE_REGISTERS * fragment->tall * fragment->wide;
}

static expr sum_of(struct exprs *pool, expr a, int64_t factor, expr b)
{
    return expr_binary(pool, EXPR_ADD, b, expr_binary(pool, EXPR_MUL, a, expr_index(pool, factor)));
}

void fragment_runs(struct block *at, const struct fragment *fragment, uint32_t sum, uint32_t run, expr thread,
                   struct block *body, expr *row, expr *column)
{
    struct exprs *pool = at->kernel->pool;
    struct block tall, wide;
    expr i, q, half;
    assert(fragment->wide % QUAD == 0);
    const expr lane =
        build_declare(at, "lane", expr_binary(pool, EXPR_INDEX_MOD, thread, expr_index(pool, WARP_LANES)));
    const expr lane_row =
        build_declare(at, "lane_row", expr_binary(pool, EXPR_INDEX_DIV, lane, expr_index(pool, QUAD)));
    const expr lane_run =
        build_declare(at, "lane_run", expr_binary(pool, EXPR_INDEX_MOD, lane, expr_index(pool, QUAD)));
    build_for(at, "i", expr_index(pool, 0), expr_index(pool, fragment->tall), 0, LOOP_UNROLL, &tall, &i);
    build_for(&tall, "q", expr_index(pool, 0), expr_index(pool, fragment->wide / QUAD), 0, LOOP_UNROLL, &wide,
              &q);
    build_for(&wide, "half", expr_index(pool, 0), expr_index(pool, 2), 0, LOOP_UNROLL, body, &half);
    const expr tiles =
        sum_of(pool, i, fragment->wide, expr_binary(pool, EXPR_MUL, q, expr_index(pool, QUAD)));
    const expr first =
        sum_of(pool, tiles, TILE_REGISTERS, expr_binary(pool, EXPR_MUL, half, expr_index(pool, 2)));
    const struct stage_operand operands[] = {
        {.memory = run}, {.memory = sum}, {.value = first}, {.value = thread}};
    build_stage(body, STAGE_fragment_run, NULL, operands);
    *row = sum_of(pool, i, FRAGMENT_ROWS, sum_of(pool, half, FRAGMENT_ROWS / 2, lane_row));
    *column = sum_of(pool, q, QUAD * FRAGMENT_COLUMNS,
                     expr_binary(pool, EXPR_MUL, lane_run, expr_index(pool, FRAGMENT_RUN)));
}
