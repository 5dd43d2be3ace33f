/* Few long reductions: a sum of 10^8 elements to a scalar. Blocks take parts of a fixed length of each row,
 * and a second kernel combines a row's parts in their order, so the result hangs on the sizes alone. One
 * nest. */
#include "codegen/strategy/gpu/gpu_common.h"

enum { THREADS = 256, PART = 1 << 14, MOST_ROWS = 64, LEAST_LENGTH = 1 << 15, MOST_REDUCTIONS = 4 };

struct split {
    struct gpu_kernel k;
    const struct strategy_context *context;
    const struct nest *nest;
    struct lowered_group *out;
    dim points, length, parts;
    uint32_t temporaries[MOST_REDUCTIONS], memories[MOST_REDUCTIONS];
    expr thread, axes[MAX_AXES];
};

static bool split_fits(const struct strategy_context *context, struct text *why)
{
    const struct definition *body = &context->group->body;
    struct dims *dims = body->pool->dims;
    const struct nest *nest = &body->nests.items[0];
    if (body->nests.count != 1 || !nest->reduction_count || nest->reduction_count > MOST_REDUCTIONS) {
        text_put(why, "not one nest with a reduction");
        return false;
    }
    const dim points = gpu_extent_product(context, nest, 0, nest->rank);
    const dim length = gpu_extent_product(context, nest, nest->rank, nest->rank + nest->reduce_rank);
    if (!points || !length || !dim_mul(dims, points, length)) {
        text_put(why, "sizes in too complex a way");
        return false;
    }
    if (gpu_size(context, points) > (double)MOST_ROWS || gpu_size(context, length) < (double)LEAST_LENGTH) {
        text_put(why, "too many rows, or too short ones, to split");
        return false;
    }
    return true;
}

static uint32_t split_candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    (void)context;
    if (limit)
        out[0] = (struct config){.value = {PART}};
    return limit ? 1 : 0;
}

static double split_cost(const struct strategy_context *context, const struct config *config)
{
    const double launch = 2e-6, combine = 1e-6;
    const double traffic = gpu_traffic(context, true, NULL), roofline = gpu_roofline(context, 0.8, 0.2);
    (void)config;
    return 2 * launch + 2 * combine + (traffic > roofline ? traffic : roofline);
}

static enum dtype dtype_of(const struct split *s, uint32_t reduction)
{
    return expr_at(s->context->group->body.pool, s->nest->reductions[reduction].body)->dtype;
}

/* The block's values of a reduction, combined by halves; thread 0 has the result. */
static expr combine_block(struct split *s, struct block *at, uint32_t reduction, uint32_t shared, expr own)
{
    struct kernel *kernel = s->k.kernel;
    struct exprs *pool = kernel->pool;
    struct block body;
    build_store(at, shared, s->thread, own);
    for (int64_t half = THREADS / 2; half > 0; half /= 2) {
        build_barrier(at);
        build_if(at, expr_binary(pool, EXPR_LESS, s->thread, expr_index(pool, half)), &body, NULL);
        const expr other = expr_binary(pool, EXPR_ADD, s->thread, expr_index(pool, half));
        build_store(&body, shared, s->thread,
                    reduce_combine(pool, s->nest->reductions[reduction].op,
                                kernel_element(kernel, shared, s->thread, 1),
                                kernel_element(kernel, shared, other, 1)));
    }
    return kernel_element(kernel, shared, s->thread, 1);
}

static struct block begin(struct split *s, const char *what, dim blocks, uint32_t *shared)
{
    struct kernel *kernel = s->k.kernel;
    struct exprs *pool = kernel->pool;
    kernel->summary = gpu_summary(s->context, what, 0);
    kernel->config = arena_printf(s->context->arena, "part=%d", (int)PART);
    kernel->grid[0] = blocks;
    kernel->block[0] = THREADS;
    for (uint32_t r = 0; r < s->nest->reduction_count; r++) {
        s->memories[r] =
            gpu_kernel_parameter(&s->k, ARGUMENT_TEMPORARY, s->temporaries[r], dtype_of(s, r), "parts");
        kernel->memories.items[s->memories[r]].read = true;
    }
    for (uint32_t r = 0; r < s->nest->reduction_count; r++)
        shared[r] = kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                                                      .dtype = dtype_of(s, r),
                                                                      .lanes = 1,
                                                                      .count = THREADS,
                                                                      .label = "sums",
                                                                      .alignment = 16});
    struct block top = {.kernel = kernel, .at = &kernel->body};
    s->thread =
        build_declare(&top, "thread", kernel_thread_index(kernel, 0, dim_constant(pool->dims, THREADS)));
    return top;
}

/* A block's threads stride over begin .. end; variables[] get each thread's combination of what value_at
 * gives. */
static void stride(struct split *s, struct block *at, expr begin_at, expr end, uint32_t *variables,
                   expr (*value_at)(struct split *s, struct block *at, uint32_t reduction, expr position))
{
    struct kernel *kernel = s->k.kernel;
    struct exprs *pool = kernel->pool;
    struct block body;
    expr position;
    for (uint32_t r = 0; r < s->nest->reduction_count; r++)
        variables[r] = build_mutable(at, "sum", reduce_neutral(pool, s->nest->reductions[r].op, dtype_of(s, r)));
    build_for(at, "k", expr_binary(pool, EXPR_ADD, begin_at, s->thread), end, expr_index(pool, THREADS),
              LOOP_SERIAL, &body, &position);
    for (uint32_t r = 0; r < s->nest->reduction_count; r++) {
        const expr value = value_at(s, &body, r, position);
        build_assign(
            &body, variables[r],
            reduce_combine(pool, s->nest->reductions[r].op, kernel_variable(kernel, variables[r]), value));
    }
}

static expr body_at(struct split *s, struct block *at, uint32_t reduction, expr position)
{
    uint32_t order[MAX_AXES];
    for (uint32_t i = 0; i < s->nest->reduce_rank; i++)
        order[i] = s->nest->rank + i;
    if (reduction == 0)
        gpu_split_position(&s->k, at, s->nest, position, order, s->nest->reduce_rank, "k", s->axes);
    const struct lowering lowering = gpu_lowering(&s->k, s->axes, NULL);
    return lower_expr(&lowering, s->nest->reductions[reduction].body);
}

static expr part_at(struct split *s, struct block *at, uint32_t reduction, expr position)
{
    (void)at;
    return kernel_element(s->k.kernel, s->memories[reduction], position, 1);
}

static void split_point(struct split *s, struct block *at, expr point)
{
    uint32_t order[MAX_AXES];
    for (uint32_t i = 0; i < s->nest->rank; i++)
        order[i] = i;
    gpu_split_position(&s->k, at, s->nest, point, order, s->nest->rank, "i", s->axes);
}

static void build_parts(struct split *s)
{
    uint32_t shared[MOST_REDUCTIONS], variables[MOST_REDUCTIONS];
    struct block first;
    struct dims *dims = s->context->group->body.pool->dims;
    const dim blocks = dim_mul(dims, s->points, s->parts);
    gpu_kernel_begin_reductions(&s->k, s->context, "gpu_split", 0, NULL);
    struct block top = begin(s, "Parts of a reduction", blocks, shared);
    struct kernel *kernel = s->k.kernel;
    struct exprs *pool = kernel->pool;
    const expr block = build_declare(&top, "block", kernel_block_index(kernel, 0, blocks));
    const expr parts = kernel_dim(kernel, s->parts);
    split_point(s, &top, build_declare(&top, "point", expr_binary(pool, EXPR_INDEX_DIV, block, parts)));
    const expr from = build_declare(
        &top, "from",
        expr_binary(pool, EXPR_MUL, expr_binary(pool, EXPR_INDEX_MOD, block, parts), expr_index(pool, PART)));
    const expr end =
        build_declare(&top, "end",
                      expr_binary(pool, EXPR_MIN, expr_binary(pool, EXPR_ADD, from, expr_index(pool, PART)),
                                  kernel_dim(kernel, s->length)));
    stride(s, &top, from, end, variables, body_at);
    expr totals[MOST_REDUCTIONS];
    for (uint32_t r = 0; r < s->nest->reduction_count; r++)
        totals[r] = combine_block(s, &top, r, shared[r], kernel_variable(kernel, variables[r]));
    build_if(&top, expr_binary(pool, EXPR_EQUAL, s->thread, expr_index(pool, 0)), &first, NULL);
    for (uint32_t r = 0; r < s->nest->reduction_count; r++)
        build_store(&first, s->memories[r], block, totals[r]);
    gpu_kernel_end(&s->k, s->out);
}

static void build_totals(struct split *s)
{
    uint32_t shared[MOST_REDUCTIONS], variables[MOST_REDUCTIONS];
    struct block first;
    gpu_kernel_begin_stores(&s->k, s->context, "gpu_split", 0);
    struct block top = begin(s, "Parts combined", s->points, shared);
    struct kernel *kernel = s->k.kernel;
    struct exprs *pool = kernel->pool;
    const expr point = build_declare(&top, "point", kernel_block_index(kernel, 0, s->points));
    const expr parts = kernel_dim(kernel, s->parts);
    const expr from = build_declare(&top, "from", expr_binary(pool, EXPR_MUL, point, parts));
    stride(s, &top, from, expr_binary(pool, EXPR_ADD, from, parts), variables, part_at);
    expr reduced[MAX_AXES] = {0};
    for (uint32_t r = 0; r < s->nest->reduction_count; r++)
        reduced[r] = combine_block(s, &top, r, shared[r], kernel_variable(kernel, variables[r]));
    build_if(&top, expr_binary(pool, EXPR_EQUAL, s->thread, expr_index(pool, 0)), &first, NULL);
    split_point(s, &first, point);
    for (uint32_t r = 0; r < s->nest->reduction_count; r++)
        reduced[r] = build_declare(&first, "total", reduced[r]);
    gpu_store_point(&s->k, &first, 0, s->axes, reduced);
    gpu_kernel_end(&s->k, s->out);
}

static bool split_build(const struct strategy_context *context, const struct config *config,
                        struct lowered_group *out, struct text *why)
{
    struct dims *dims = context->group->body.pool->dims;
    struct split s = {.context = context, .nest = &context->group->body.nests.items[0], .out = out};
    (void)config;
    (void)why;
    s.points = gpu_extent_product(context, s.nest, 0, s.nest->rank);
    s.length = gpu_extent_product(context, s.nest, s.nest->rank, s.nest->rank + s.nest->reduce_rank);
    s.parts = dim_ceil_div(dims, s.length, dim_constant(dims, PART));
    const dim elements = dim_mul(dims, s.points, s.parts);
    for (uint32_t r = 0; r < s.nest->reduction_count; r++) {
        const struct temporary temporary = {
            .type = tensor_type_new(context->arena, dtype_of(&s, r), 1, &elements)};
        s.temporaries[r] = out->temporaries.count;
        vec_push(context->arena, &out->temporaries, temporary);
    }
    build_parts(&s);
    build_totals(&s);
    return true;
}

static void split_describe(const struct config *config, struct text *out)
{
    text_printf(out, "part=%d", (int)config->value[0]);
}

const struct strategy gpu_split = {
    .name = "gpu_split",
    .fits = split_fits,
    .candidates = split_candidates,
    .cost = split_cost,
    .build = split_build,
    .describe = split_describe,
    .from_level = 1,
};
