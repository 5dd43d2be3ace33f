/* Fits every group: each nest is a kernel, each point of its parallel axes a thread that runs the reductions
 * one after the other. Slow where neighbours read far apart or a sum is long; right everywhere, and what the
 * others are measured by. */
#include "codegen/strategy/gpu/gpu_common.h"
#include "codegen/strategy/gpu/ordered.h"

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

/* A thread's own sum is a chain: it takes its length however idle the machine is. */
static double plain_cost(const struct strategy_context *context, const struct config *config)
{
    const double chain_step = 6e-9, launch = 2e-6;
    const struct definition *body = &context->group->body;
    double chain = 0, traffic = gpu_traffic(context, false, NULL),
           roofline = gpu_roofline(context, 0.6, 0.15);
    (void)config;
    for (uint32_t i = 0; i < body->nests.count; i++) {
        const struct nest *nest = &body->nests.items[i];
        if (nest->kind != NEST_REDUCE)
            chain += gpu_ordered_seconds(context, i);
        else if (nest->reduction_count)
            chain += chain_step * gpu_size(context, gpu_extent_product(context, nest, nest->rank,
                                                                       nest->rank + nest->reduce_rank));
    }
    return launch * (body->nests.count - 1) + chain +
           (traffic + launch > roofline ? traffic + launch : roofline);
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
    expr start =
        expr_binary(pool, EXPR_MUL, kernel_block_index(kernel, 0, DIM_NONE), expr_index(pool, THREADS));
    expr flat = build_declare(&top, "point",
                              expr_binary(pool, EXPR_ADD, start,
                                          kernel_thread_index(kernel, 0, dim_constant(pool->dims, THREADS))));
    build_if(&top, expr_binary(pool, EXPR_LESS, flat, kernel_dim(kernel, points)), &inside, NULL);
    expr axes[MAX_AXES] = {0}, reduced[MAX_AXES] = {0};
    uint32_t order[MAX_AXES];
    for (uint32_t i = 0; i < nest->rank; i++)
        order[i] = i;
    gpu_split_position(&k, &inside, nest, flat, order, nest->rank, "i", axes);
    gpu_reduce_serial(&k, &inside, number, axes, expr_index(pool, 0), expr_index(pool, 1), reduced);
    gpu_store_point(&k, &inside, number, axes, reduced);
    gpu_kernel_end(&k, out);
}

static bool plain_build(const struct strategy_context *context, const struct config *config,
                        struct lowered_group *out, struct text *why)
{
    (void)config;
    (void)why;
    for (uint32_t i = 0; i < context->group->body.nests.count; i++)
        switch (context->group->body.nests.items[i].kind) {
        case NEST_REDUCE:
            build_nest(context, i, out);
            break;
        case NEST_SCAN:
            gpu_build_scan(context, i, out);
            break;
        case NEST_SORT:
            gpu_build_sort(context, i, out);
            break;
        case NEST_FILTER:
            gpu_build_filter(context, i, out);
            break;
        case NEST_SCATTER:
            gpu_build_scatter(context, i, out);
            break;
        }
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
    .any_nest = true,
};
