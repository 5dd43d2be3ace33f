/* Matrix products and every other contraction, on a CPU: constants are packed when the bundle is written,
 * other operands while the kernel runs, whatever expression or strides they have (tile.h). */
#include "codegen/strategy/cpu/tile.h"

#include "codegen/strategy/cpu/strategies.h"

#include <math.h>

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
        const struct tile_sizes sizes = tile_sizes_of(product);
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
    const struct tile_sizes sizes = tile_sizes_of(product);
    return tile_seconds(context, product, &sizes, config);
}

static bool matmul_build(const struct strategy_context *context, const struct config *config,
                         struct lowered_group *out, struct text *why)
{
    struct product *product = arena_new(context->arena, struct product);
    return product_find(context, config->value[TILE_SWAP] != 0, product, why) &&
           tile_build(context, product, config, NULL, out, why);
}

static void matmul_retarget(const struct strategy_context *context, struct config *config)
{
    struct product *product = arena_new(context->arena, struct product);
    struct text why;
    text_init(&why, context->arena);
    if (!product_find(context, config->value[TILE_SWAP] != 0, product, &why))
        return;
    const struct tile_sizes sizes = tile_sizes_of(product);
    tile_retarget(context, product, &sizes, config);
}

const struct strategy cpu_matmul = {
    .name = "cpu_matmul",
    .fits = matmul_fits,
    .candidates = matmul_candidates,
    .cost = matmul_cost,
    .build = matmul_build,
    .describe = tile_describe,
    .retarget = matmul_retarget,
    .from_level = 2,
};
