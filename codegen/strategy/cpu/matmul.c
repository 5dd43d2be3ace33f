/* Matrix products and every other contraction, on a CPU: constants are packed when the bundle is written,
 * other operands while the kernel runs, whatever expression or strides they have (tile.h). */
#include "codegen/strategy/cpu/tile.h"

#include "codegen/strategy/cpu/strategies.h"

#include <math.h>

/* Cycles to pack one element of a side; 0: nothing is packed at run time. */
static double packing_cost(const struct product *product, const struct side *side, bool columns)
{
    struct operand operand = {.side = side};
    if (side->constant || (!columns && tile_direct(product, &operand)))
        return 0;
    const struct expr_node load = *expr_at(product->definition.pool, side->load);
    const double work = 0.05 * expr_cost(product->definition.pool, side->factor);
    if (load.op == EXPR_LOAD_OR || product->digit_count > 1)
        return 8 + 10 * work;
    const bool consecutive =
        columns && side->axis_count > 0 &&
        dim_equals_constant(product->dims,
                            product_load_growth(product, side->load, side->axes[side->axis_count - 1]), 1);
    return consecutive ? 0.2 + work : 1.6 + 10 * work;
}

static struct tile_sizes sizes_of(const struct product *product)
{
    const struct nest *nest = product->nest;
    uint32_t cost = 0;
    for (uint32_t i = 0; i < nest->store_count; i++)
        cost += expr_cost(product->definition.pool, nest->stores[i].value);
    return (struct tile_sizes){
        .outer = dim_hint(product->dims, product->outer_extent),
        .rows = dim_hint(product->dims, product->rows.extent),
        .columns = dim_hint(product->dims, product->columns.extent),
        .depth = dim_hint(product->dims, product->depth),
        .column_cost = packing_cost(product, &product->columns, true),
        .row_cost = packing_cost(product, &product->rows, false),
        .store_cost = product->swapped ? 2.5 + 0.5 * cost : 0.2 + 0.06 * cost,
    };
}

static bool matmul_fits(const struct strategy_context *context, struct text *why)
{
    struct product product;
    return product_find(context, false, &product, why);
}

static uint32_t both_orders(const struct strategy_context *context, struct config *out, double *cycles,
                            uint32_t limit)
{
    uint32_t count = 0;
    struct text why;
    text_init(&why, context->arena);
    for (int swap = 0; swap < 2; swap++) {
        struct product *product = arena_new(context->arena, struct product);
        if (!product_find(context, swap != 0, product, &why))
            continue;
        const struct tile_sizes sizes = sizes_of(product);
        count = tile_candidates(context, product, &sizes, out, cycles, count, limit);
    }
    return count;
}

enum { MOST_CANDIDATES = 4 };

static uint32_t matmul_candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    double cycles[MOST_CANDIDATES];
    return both_orders(context, out, cycles, limit < MOST_CANDIDATES ? limit : MOST_CANDIDATES);
}

static double matmul_cost(const struct strategy_context *context, const struct config *config)
{
    struct product *product = arena_new(context->arena, struct product);
    struct text why;
    text_init(&why, context->arena);
    if (!product_find(context, config->value[TILE_SWAP] != 0, product, &why))
        return HUGE_VAL;
    const struct tile_sizes sizes = sizes_of(product);
    return tile_seconds(context, product, &sizes, config);
}

static bool matmul_build(const struct strategy_context *context, const struct config *config,
                         struct lowered_group *out, struct text *why)
{
    struct product *product = arena_new(context->arena, struct product);
    return product_find(context, config->value[TILE_SWAP] != 0, product, why) &&
           tile_build(context, product, config, NULL, out, why);
}

const struct strategy cpu_matmul = {
    .name = "cpu_matmul",
    .fits = matmul_fits,
    .candidates = matmul_candidates,
    .cost = matmul_cost,
    .build = matmul_build,
    .describe = tile_describe,
    .from_level = 2,
};
