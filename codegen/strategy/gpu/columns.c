/* Reductions whose operands lie side by side along the parallel axes: sums over leading or middle axes, a
 * vector times a matrix. Neighbouring threads take neighbouring points; the reduced axes are split over the
 * block's other axis, whose threads combine through shared memory. One nest. */
#include "codegen/strategy/gpu/gpu_common.h"

enum { CONFIG_POINTS, CONFIG_PARTS };

static bool columns_fits(const struct strategy_context *context, struct text *why)
{
    const struct definition *body = &context->group->body;
    if (body->nests.count != 1 || !body->nests.items[0].reduction_count) {
        text_put(why, "not one nest with a reduction");
        return false;
    }
    const struct nest *nest = &body->nests.items[0];
    if (gpu_size(context, gpu_extent_product(context, nest, nest->rank, nest->rank + nest->reduce_rank)) <
        (double)WARP) {
        text_put(why, "a sum too short to share");
        return false;
    }
    return true;
}

static uint32_t columns_candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    static const int32_t rows[][2] = {{32, 8}, {32, 32}, {16, 16}, {8, 32}, {8, 64}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    (void)context;
    uint32_t count = 0;
    for (; count < ROWS && count < limit; count++)
        out[count] = (struct config){.value = {rows[count][0], rows[count][1]}};
    return count;
}

static double columns_cost(const struct strategy_context *context, const struct config *config)
{
    const double launch = 2e-6, combine = 0.6e-6;
    const struct nest *nest = &context->group->body.nests.items[0];
    double points = gpu_size(context, gpu_extent_product(context, nest, 0, nest->rank));
    double length =
        gpu_size(context, gpu_extent_product(context, nest, nest->rank, nest->rank + nest->reduce_rank));
    double blocks = points / config->value[CONFIG_POINTS], busy = blocks / context->machine->multiprocessors;
    busy = busy > 1 ? 1 : busy < 0.01 ? 0.01 : busy;
    /* Narrow strips waste part of a transaction's neighbourhood. */
    double width = config->value[CONFIG_POINTS] < WARP ? 1.2 : 1;
    double traffic = launch + gpu_traffic(context, false, NULL) * width / busy,
           roofline = gpu_roofline(context, 0.7 * busy, 0.15 * busy);
    double threads = points * config->value[CONFIG_PARTS] / (2048.0 * context->machine->multiprocessors);
    return combine * (1 + threads) + 6e-9 * length / config->value[CONFIG_PARTS] +
           (traffic > roofline ? traffic : roofline);
}

/* The block's threads' sums, parts[r][part][point], combined by those of part 0. */
static void combine_parts(struct gpu_kernel *k, struct block *at, const struct config *config,
                          const struct nest *nest, expr point, expr part, expr *reduced, struct block *first)
{
    struct kernel *kernel = k->kernel;
    struct exprs *pool = kernel->pool;
    uint32_t memories[MAX_AXES];
    int64_t points = config->value[CONFIG_POINTS], parts = config->value[CONFIG_PARTS];
    expr own =
        expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, part, expr_index(pool, points)), point);
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        memories[r] =
            kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                                              .dtype = expr_at(pool, reduced[r])->dtype,
                                                              .lanes = 1,
                                                              .count = points * parts,
                                                              .label = "parts",
                                                              .alignment = 16});
        build_store(at, memories[r], own, reduced[r]);
    }
    build_barrier(at);
    build_if(at, expr_binary(pool, EXPR_EQUAL, part, expr_index(pool, 0)), first, NULL);
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        uint32_t total = build_mutable(first, "total", kernel_element(kernel, memories[r], point, 1));
        struct block body;
        expr other;
        build_for(first, "part", expr_index(pool, 1), expr_index(pool, parts), 0, LOOP_UNROLL, &body, &other);
        expr place =
            expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, other, expr_index(pool, points)), point);
        build_assign(&body, total,
                     reduce_combine(pool, nest->reductions[r].op, kernel_variable(kernel, total),
                                 kernel_element(kernel, memories[r], place, 1)));
        reduced[r] = kernel_variable(kernel, total);
    }
}

static bool columns_build(const struct strategy_context *context, const struct config *config,
                          struct lowered_group *out, struct text *why)
{
    const struct nest *nest = &context->group->body.nests.items[0];
    struct gpu_kernel k;
    (void)why;
    gpu_kernel_begin(&k, context, "gpu_columns", 0, 1, NULL);
    struct kernel *kernel = k.kernel;
    struct exprs *pool = kernel->pool;
    struct dims *dims = pool->dims;
    int64_t width = config->value[CONFIG_POINTS], parts = config->value[CONFIG_PARTS];
    dim points = gpu_extent_product(context, nest, 0, nest->rank);
    dim length = gpu_extent_product(context, nest, nest->rank, nest->rank + nest->reduce_rank);
    kernel->summary = gpu_summary(context, "Columns", 0);
    kernel->config = arena_printf(context->arena, "points=%d, parts=%d", (int)width, (int)parts);
    kernel->grid[0] = dim_ceil_div(dims, points, dim_constant(dims, width));
    kernel->block[0] = (uint32_t)width;
    kernel->block[1] = (uint32_t)parts;
    struct block top = {.kernel = kernel, .at = &kernel->body}, body, first, inside;
    expr own = build_declare(&top, "own", kernel_thread_index(kernel, 0, dim_constant(dims, width)));
    expr part = build_declare(&top, "part", kernel_thread_index(kernel, 1, dim_constant(dims, parts)));
    expr start =
        expr_binary(pool, EXPR_MUL, kernel_block_index(kernel, 0, DIM_NONE), expr_index(pool, width));
    expr point = build_declare(&top, "point", expr_binary(pool, EXPR_ADD, start, own)),
         total = kernel_dim(kernel, points);
    expr last = expr_binary(pool, EXPR_SUB, total, expr_index(pool, 1));
    expr place = build_declare(&top, "place",
                               expr_binary(pool, EXPR_MIN, point, last)); /* all threads reach the barrier */
    uint32_t order[MAX_AXES], variables[MAX_AXES];
    expr axes[MAX_AXES] = {0}, reduced[MAX_AXES] = {0};
    for (uint32_t i = 0; i < nest->rank + nest->reduce_rank; i++)
        order[i] = i;
    gpu_split_position(&k, &top, nest, place, order, nest->rank, "i", axes);
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        enum dtype dtype = expr_at(context->group->body.pool, nest->reductions[r].body)->dtype;
        variables[r] = build_mutable(&top, "sum", reduce_neutral(pool, nest->reductions[r].op, dtype));
        reduced[r] = kernel_variable(kernel, variables[r]);
    }
    expr position;
    build_for(&top, "k", part, kernel_dim(kernel, length), expr_index(pool, parts), LOOP_SERIAL, &body,
              &position);
    gpu_split_position(&k, &body, nest, position, order + nest->rank, nest->reduce_rank, "k", axes);
    struct lowering lowering = gpu_lowering(&k, axes, NULL);
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        build_assign(&body, variables[r],
                     reduce_combine(pool, nest->reductions[r].op, reduced[r],
                                 lower_expr(&lowering, nest->reductions[r].body)));
    combine_parts(&k, &top, config, nest, own, part, reduced, &first);
    build_if(&first, expr_binary(pool, EXPR_LESS, point, total), &inside, NULL);
    gpu_store_point(&k, &inside, 0, axes, reduced);
    gpu_kernel_end(&k, out);
    return true;
}

static void columns_describe(const struct config *config, struct text *out)
{
    text_printf(out, "points=%d, parts=%d", (int)config->value[CONFIG_POINTS],
                (int)config->value[CONFIG_PARTS]);
}

const struct strategy gpu_columns = {
    .name = "gpu_columns",
    .fits = columns_fits,
    .candidates = columns_candidates,
    .cost = columns_cost,
    .build = columns_build,
    .describe = columns_describe,
    .from_level = 1,
};
