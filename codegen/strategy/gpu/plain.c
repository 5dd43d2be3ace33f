/* Fits every group: each nest is a kernel, each point of its parallel axes a thread that runs the reductions one after the
 * other. Slow where neighbours read far apart or a sum is long; right everywhere, and what the others are measured by. */
#include "codegen/strategy/gpu/gpu_common.h"

enum { THREADS = 256 };

static bool plain_fits(const struct strategy_context *context, struct text *why)
{
    (void)context;
    (void)why;
    return true;
}

static uint32_t plain_candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    (void)context;
    if (limit)
        out[0] = (struct config){.value = {THREADS}};
    return limit ? 1 : 0;
}

static double plain_cost(const struct strategy_context *context, const struct config *config)
{
    (void)config;
    return gpu_roofline(context, 0.25, 0.05);
}

static void build_nest(const struct strategy_context *context, uint32_t number, struct lowered_group *out)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct gpu_kernel k;
    gpu_kernel_begin(&k, context, "gpu_plain", number, 1, NULL);
    struct kernel *kernel = k.kernel;
    struct exprs *pool = kernel->pool;
    dim points = gpu_extent_product(context, nest, 0, nest->rank);
    kernel->summary = gpu_summary(context, "One thread a point", number);
    kernel->config = "threads=256";
    kernel->grid[0] = dim_ceil_div(pool->dims, points, dim_constant(pool->dims, THREADS));
    kernel->block[0] = THREADS;
    struct block top = {.kernel = kernel, .at = &kernel->body}, inside;
    expr start = expr_binary(pool, EXPR_MUL, kernel_block_index(kernel, 0, DIM_NONE), expr_index(pool, THREADS));
    expr flat = build_declare(
        &top, "point",
        expr_binary(pool, EXPR_ADD, start, kernel_thread_index(kernel, 0, dim_constant(pool->dims, THREADS))));
    build_if(&top, expr_binary(pool, EXPR_LESS, flat, kernel_dim(kernel, points)), &inside, NULL);
    expr axes[MAX_AXES] = {0}, reduced[MAX_AXES] = {0};
    expr rest = flat;
    for (uint32_t i = nest->rank; i-- > 0;) {
        expr extent = kernel_dim(kernel, nest->extents[i]);
        axes[i] = i ? build_declare(&inside, "i", expr_binary(pool, EXPR_INDEX_MOD, rest, extent)) : rest;
        if (i)
            rest = build_declare(&inside, "rest", expr_binary(pool, EXPR_INDEX_DIV, rest, extent));
    }
    gpu_reduce_serial(&k, &inside, number, axes, expr_index(pool, 0), expr_index(pool, 1), reduced);
    gpu_store_point(&k, &inside, number, axes, reduced);
    gpu_kernel_end(&k, out);
}

static bool plain_build(const struct strategy_context *context, const struct config *config, struct lowered_group *out,
                        struct text *why)
{
    (void)config;
    (void)why;
    for (uint32_t i = 0; i < context->group->body.nests.count; i++)
        build_nest(context, i, out);
    return true;
}

static void plain_describe(const struct config *config, struct text *out)
{
    text_printf(out, "threads=%d", (int)config->value[0]);
}

const struct strategy gpu_plain = {
    .name = "gpu_plain",
    .fits = plain_fits,
    .candidates = plain_candidates,
    .cost = plain_cost,
    .build = plain_build,
    .describe = plain_describe,
    .from_level = 0,
};
