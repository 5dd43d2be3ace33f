/* One map nest whose trailing axes are one flat stretch of every buffer that they index (stretch.h): threads
 * take runs of 16 bytes of it. */
#include "codegen/strategy/gpu/stretch.h"

enum { CONFIG_RUN, THREADS = 256 };

static bool no(struct text *why, const char *reason)
{
    text_put(why, reason);
    return false;
}

/* The widest run that divides the stretch. */
static int32_t longest_run(const struct strategy_context *context, const struct stretch *s)
{
    int32_t run = stretch_widest_run(context, s);
    while (run > 1 && !dim_divisible(context->group->body.pool->dims, s->length, run))
        run /= 2;
    return run;
}

static bool find_stretch(const struct strategy_context *context, struct stretch *s, struct text *why)
{
    const struct nest *nest = &context->group->body.nests.items[0];
    if (context->group->body.nests.count != 1 || nest->reduction_count)
        return no(why, "not one nest without reductions");
    if (nest->store_count > MAX_AXES)
        return no(why, "too many stores");
    for (uint32_t first = 0; first < nest->rank; first++)
        if (find_stretch_from(context, nest, first, s) && longest_run(context, s) > 1)
            return true;
    return no(why, "no stretch that runs of elements divide");
}

static bool pointwise_fits(const struct strategy_context *context, struct text *why)
{
    struct stretch stretch;
    return find_stretch(context, &stretch, why);
}

static uint32_t pointwise_candidates(const struct strategy_context *context, struct config *out,
                                     uint32_t limit)
{
    struct stretch stretch;
    struct text why;
    text_init(&why, context->arena);
    if (!limit || !find_stretch(context, &stretch, &why))
        return 0;
    out[0] = (struct config){.value = {longest_run(context, &stretch)}};
    return 1;
}

static double pointwise_cost(const struct strategy_context *context, const struct config *config)
{
    (void)config;
    return gpu_roofline(context, 0.85, 0.2);
}

struct pointwise {
    struct gpu_kernel k;
    struct stretch stretch;
    uint32_t runs[MAX_BUFFERS]; /* registers with a flat buffer's run */
    expr lane;
};

static expr run_element(void *user, uint32_t buffer, uint32_t rank, const expr *indices)
{
    struct pointwise *p = user;
    (void)rank;
    (void)indices;
    return kernel_element(p->k.kernel, p->runs[buffer], p->lane, 1);
}

static void load_runs(struct pointwise *p, struct block *at, const struct lowering *lowering, expr position,
                      uint16_t run)
{
    const struct definition *body = lowering->definition;
    struct kernel *kernel = p->k.kernel;
    for (uint32_t i = 0; i < body->buffers.count; i++) {
        if (!p->stretch.flat[i])
            continue;
        uint32_t memory = p->k.memories[i];
        expr index = stretch_index(p->k.context, &p->stretch, lowering, i,
                                   expr_at(body->pool, p->stretch.loads[i])->arguments, position);
        kernel->memories.items[memory].read = true;
        p->runs[i] =
            gpu_registers(&p->k, body->buffers.items[i].type.dtype, run,
                          arena_printf(p->k.context->arena, "%s_run", kernel->memories.items[memory].label));
        build_store(at, p->runs[i], expr_index(kernel->pool, 0), kernel_element(kernel, memory, index, run));
    }
}

static void store_runs(struct pointwise *p, struct block *at, const struct lowering *lowering,
                       const expr *definition_axes, expr position, uint16_t run)
{
    const struct nest *nest = p->stretch.nest;
    struct kernel *kernel = p->k.kernel;
    uint32_t results[MAX_AXES];
    struct block body;
    build_for(at, "lane", expr_index(kernel->pool, 0), expr_index(kernel->pool, run), 0, LOOP_UNROLL, &body,
              &p->lane);
    for (uint32_t s = 0; s < nest->store_count; s++) {
        expr value = lower_expr(lowering, nest->stores[s].value);
        results[s] = gpu_registers(&p->k, expr_at(kernel->pool, value)->dtype, run, "result");
        build_store(&body, results[s], p->lane, value);
    }
    for (uint32_t s = 0; s < nest->store_count; s++) {
        const struct nest_store *store = &nest->stores[s];
        expr index = stretch_index(p->k.context, &p->stretch, lowering, store->buffer,
                                   store->indices ? store->indices : definition_axes, position);
        build_store(at, p->k.memories[store->buffer], index,
                    kernel_element(kernel, results[s], expr_index(kernel->pool, 0), run));
    }
}

static bool pointwise_build(const struct strategy_context *context, const struct config *config,
                            struct lowered_group *out, struct text *why)
{
    struct pointwise *p = arena_new(context->arena, struct pointwise);
    if (!find_stretch(context, &p->stretch, why))
        return false;
    const struct nest *nest = p->stretch.nest;
    struct exprs *definition_pool = context->group->body.pool;
    gpu_kernel_begin(&p->k, context, "gpu_pointwise", 0, 1, NULL);
    struct kernel *kernel = p->k.kernel;
    struct exprs *pool = kernel->pool;
    struct dims *dims = pool->dims;
    int64_t run = config->value[CONFIG_RUN];
    dim runs = dim_floor_div(dims, p->stretch.length, dim_constant(dims, run)); /* exact */
    dim total = dim_mul(dims, gpu_extent_product(context, nest, 0, p->stretch.first), runs);
    kernel->summary = gpu_summary(context, "Pointwise", 0);
    kernel->config = arena_printf(context->arena, "run=%d", (int)run);
    kernel->grid[0] = dim_ceil_div(dims, total, dim_constant(dims, THREADS));
    kernel->block[0] = THREADS;
    struct block top = {.kernel = kernel, .at = &kernel->body}, inside;
    expr start =
        expr_binary(pool, EXPR_MUL, kernel_block_index(kernel, 0, DIM_NONE), expr_index(pool, THREADS));
    expr number = build_declare(
        &top, "number",
        expr_binary(pool, EXPR_ADD, start, kernel_thread_index(kernel, 0, dim_constant(dims, THREADS))));
    build_if(&top, expr_binary(pool, EXPR_LESS, number, kernel_size(kernel, total, "total_runs")), &inside,
             NULL);
    expr axes[MAX_AXES] = {0}, definition_axes[MAX_AXES], position = number;
    uint32_t order[MAX_AXES];
    for (uint32_t i = 0; i < nest->rank; i++) {
        order[i] = i;
        axes[i] = expr_index(pool, 0); /* those of the stretch stand in no expression that is lowered */
        definition_axes[i] = expr_axis(definition_pool, i, nest->extents[i]);
    }
    if (p->stretch.first > 0) {
        expr count = kernel_size(kernel, runs, "runs");
        position = build_declare(&inside, "within", expr_binary(pool, EXPR_INDEX_MOD, number, count));
        expr rest = build_declare(&inside, "rest", expr_binary(pool, EXPR_INDEX_DIV, number, count));
        gpu_split_position(&p->k, &inside, nest, rest, order, p->stretch.first, "i", axes);
    }
    position = build_declare(&inside, "at", expr_binary(pool, EXPR_MUL, position, expr_index(pool, run)));
    struct lowering lowering = gpu_lowering(&p->k, axes, NULL);
    load_runs(p, &inside, &lowering, position, (uint16_t)run);
    uint32_t *memories =
        arena_copy(context->arena, p->k.memories, context->group->body.buffers.count * sizeof *memories);
    for (uint32_t i = 0; i < context->group->body.buffers.count; i++)
        memories[i] = p->stretch.flat[i] ? UINT32_MAX : memories[i];
    lowering.memories = memories;
    lowering.value = run_element;
    lowering.user = p;
    store_runs(p, &inside, &lowering, definition_axes, position, (uint16_t)run);
    gpu_kernel_end(&p->k, out);
    return true;
}

static void pointwise_describe(const struct config *config, struct text *out)
{
    text_printf(out, "run=%d", (int)config->value[CONFIG_RUN]);
}

const struct strategy gpu_pointwise = {
    .name = "gpu_pointwise",
    .fits = pointwise_fits,
    .candidates = pointwise_candidates,
    .cost = pointwise_cost,
    .build = pointwise_build,
    .describe = pointwise_describe,
    .from_level = 1,
};
