/* Short windows that slide over the last two axes, each point of the result by one thread's own sum or
 * maximum: convolutions channel by channel, pooling. A thread computes a strip of points below each other, so
 * that rows of the input that several of them see are loaded once; neighbouring threads take neighbouring
 * columns. The window is written out: what two points of a strip load at the same place is the same
 * expression, and becomes one variable.
 *
 * Takes one nest with reductions over few points (known when compiling), whose operands are read at sums of a
 * parallel and a reduced axis. */
#include "codegen/strategy/gpu/gpu_common.h"

#include <math.h>
#include <string.h>

enum { CONFIG_STRIP, MOST_TAPS = 49, MOST_STRIP = 8, THREADS = 128 };

static bool no(struct text *why, const char *reason)
{
    text_put(why, reason);
    return false;
}

static int64_t taps_of(const struct strategy_context *context, const struct nest *nest)
{
    int64_t taps = 0;
    const dim product = gpu_extent_product(context, nest, nest->rank, nest->rank + nest->reduce_rank);
    return product && dim_is_constant(context->group->body.pool->dims, product, &taps) ? taps : 0;
}

/* Does an index below e use both a parallel axis and a reduced one? */
static bool slides(const struct strategy_context *context, const struct nest *nest, expr e,
                   unsigned char *visited)
{
    const struct exprs *pool = context->group->body.pool;
    if (visited[e])
        return false;
    visited[e] = 1;
    const struct expr_node *node = expr_at(pool, e);
    if (node->op == EXPR_LOAD || node->op == EXPR_LOAD_OR) {
        const uint32_t column = nest->rank - 2;
        const int rank = context->group->body.buffers.items[node->value].type.rank;
        for (int i = 0; i < rank; i++)
            for (uint32_t r = 0; r < nest->reduce_rank; r++)
                if (gpu_uses_axis(context, node->arguments[i], column) &&
                    gpu_uses_axis(context, node->arguments[i], nest->rank + r))
                    return true;
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (slides(context, nest, node->arguments[i], visited))
            return true;
    return false;
}

static bool window_fits(const struct strategy_context *context, struct text *why)
{
    const struct definition *body = &context->group->body;
    const struct nest *nest = &body->nests.items[0];
    if (body->nests.count != 1 || !nest->reduction_count || nest->rank < 2)
        return no(why, "not one nest with a reduction, of two axes at least");
    const int64_t taps = taps_of(context, nest);
    if (taps < 2 || taps > MOST_TAPS)
        return no(why, "no window of few points");
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        unsigned char *visited = arena_new_array(context->arena, unsigned char, body->pool->nodes.count);
        if (!slides(context, nest, nest->reductions[r].body, visited))
            return no(why, "nothing that slides along the last axis but one");
    }
    return true;
}

static uint32_t window_candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    static const int32_t strips[] = {4, 2, 1, 8};
    const struct nest *nest = &context->group->body.nests.items[0];
    const struct dims *dims = context->group->body.pool->dims;
    uint32_t count = 0;
    int64_t height;
    if (!dim_is_constant(dims, nest->extents[nest->rank - 2], &height))
        height = 0;
    /* The last strip must have its points somewhere. */
    for (size_t i = 0; i < sizeof strips / sizeof strips[0] && count < limit; i++)
        if (strips[i] == 1 || strips[i] <= height ||
            dim_divisible(dims, nest->extents[nest->rank - 2], strips[i]))
            out[count++] = (struct config){.value = {[CONFIG_STRIP] = strips[i]}};
    return count;
}

/* Bytes once, or the loads of all threads from the first-level cache, whichever takes longer; rows that a
 * strip's end cuts off are idle, and too few threads do not keep the memory busy. */
static double window_cost(const struct strategy_context *context, const struct config *config)
{
    const double launch = 2e-6, latency = 1e-6;
    const struct nest *nest = &context->group->body.nests.items[0];
    const struct machine *machine = context->machine;
    const double strip = config->value[CONFIG_STRIP], taps = (double)taps_of(context, nest),
                 side = sqrt(taps);
    const double height = gpu_size(context, nest->extents[nest->rank - 2]);
    const double points = gpu_size(context, gpu_extent_product(context, nest, 0, nest->rank));
    const double threads = points / height * ceil(height / strip);
    const double loads = threads * (strip + side - 1) * side * 4;
    const double cache = loads / (64.0 * machine->clock * machine->multiprocessors);
    const double work = threads * strip * taps * 2 / (machine->fp32_per_second * 0.25);
    const double filled = fmin(1, threads / (machine->multiprocessors * 512.0));
    const double memory = gpu_roofline(context, 0.85, 1.0) - launch;
    return launch + latency + fmax(fmax(cache, work), memory / fmax(filled, 0.05));
}

struct windower {
    struct gpu_kernel k;
    const struct nest *nest;
    VEC(expr) elements; /* loads of the kernel's pool that have a variable */
    VEC(expr) names;
    expr axes[MAX_AXES];
};

/* A load as a variable of its own, the same one for the same load. */
static expr named_load(struct windower *w, struct block *at, expr load)
{
    for (uint32_t i = 0; i < w->elements.count; i++)
        if (w->elements.items[i] == load)
            return w->names.items[i];
    const uint32_t memory = (uint32_t)expr_at(w->k.kernel->pool, load)->value;
    const expr name = build_declare(
        at, arena_printf(w->k.context->arena, "%s_at", w->k.kernel->memories.items[memory].label), load);
    vec_push(w->k.context->arena, &w->elements, load);
    vec_push(w->k.context->arena, &w->names, name);
    return name;
}

struct naming {
    struct windower *w;
    struct block *at;
};

static expr name_leaf(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    struct naming *naming = user;
    if (node->op != EXPR_ELEMENT && node->op != EXPR_ELEMENT_OR)
        return 0;
    struct expr_node copy = *node;
    copy.arguments = arguments;
    return named_load(naming->w, naming->at, expr_make(into, &copy));
}

/* The expression with its loads as variables. */
static expr with_names(struct windower *w, struct block *at, expr e)
{
    struct naming naming = {.w = w, .at = at};
    struct exprs *pool = w->k.kernel->pool;
    return expr_rewrite(pool, pool, e, name_leaf, &naming);
}

/* All points of the window, the last axis fastest. */
static void reduce_window(struct windower *w, struct block *at, expr *axes, const uint32_t *totals)
{
    const struct nest *nest = w->nest;
    struct kernel *kernel = w->k.kernel;
    struct exprs *pool = kernel->pool;
    int64_t extents[MAX_AXES], taps = 1;
    for (uint32_t i = 0; i < nest->reduce_rank; i++) {
        dim_is_constant(pool->dims, nest->extents[nest->rank + i], &extents[i]);
        taps *= extents[i];
    }
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t rest = tap;
        for (uint32_t i = nest->reduce_rank; i-- > 0;) {
            axes[nest->rank + i] = expr_index(pool, rest % extents[i]);
            rest /= extents[i];
        }
        struct lowering lowering = gpu_lowering(&w->k, axes, NULL);
        for (uint32_t r = 0; r < nest->reduction_count; r++) {
            const expr value = with_names(w, at, lower_expr(&lowering, nest->reductions[r].body));
            const expr total = kernel_variable(kernel, totals[r]);
            const struct expr_node *product = expr_at(pool, value);
            const bool fused = nest->reductions[r].op == REDUCE_SUM && product->op == EXPR_MUL &&
                               dtype_is_float(product->dtype);
            build_assign(at, totals[r],
                         fused ? expr_fma(pool, product->arguments[0], product->arguments[1], total)
                               : reduce_combine(pool, nest->reductions[r].op, total, value));
        }
    }
}

/* `start`: the first row that is this strip's own; 0: all are. */
static void build_point(struct windower *w, struct block *at, expr row, expr start)
{
    static const char *const labels[] = {[REDUCE_SUM] = "sum",
                                         [REDUCE_PRODUCT] = "product",
                                         [REDUCE_MAX] = "largest",
                                         [REDUCE_MIN] = "smallest"};
    const struct nest *nest = w->nest;
    struct exprs *pool = w->k.kernel->pool;
    expr axes[MAX_AXES], reduced[MAX_AXES];
    uint32_t totals[MAX_AXES];
    memcpy(axes, w->axes, sizeof axes);
    axes[nest->rank - 2] = row;
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        const enum dtype dtype = expr_at(w->k.context->group->body.pool, nest->reductions[r].body)->dtype;
        totals[r] = build_mutable(at, labels[nest->reductions[r].op],
                                  reduce_neutral(pool, nest->reductions[r].op, dtype));
        reduced[r] = kernel_variable(w->k.kernel, totals[r]);
    }
    reduce_window(w, at, axes, totals);
    struct block inside = *at;
    if (start)
        build_if(at, expr_binary(pool, EXPR_LESS_EQUAL, start, row), &inside, NULL);
    gpu_store_point(&w->k, &inside, 0, axes, reduced);
}

static bool window_build(const struct strategy_context *context, const struct config *config,
                         struct lowered_group *out, struct text *why)
{
    (void)why;
    struct windower *w = arena_new(context->arena, struct windower);
    const struct nest *nest = w->nest = &context->group->body.nests.items[0];
    const int64_t strip = config->value[CONFIG_STRIP];
    gpu_kernel_begin(&w->k, context, "gpu_window", 0, 1, NULL);
    struct kernel *kernel = w->k.kernel;
    struct exprs *pool = kernel->pool;
    struct dims *dims = pool->dims;
    const dim height = nest->extents[nest->rank - 2], width = nest->extents[nest->rank - 1];
    const dim strips = dim_ceil_div(dims, height, dim_constant(dims, strip));
    const dim total =
        dim_mul(dims, dim_mul(dims, gpu_extent_product(context, nest, 0, nest->rank - 2), strips), width);
    kernel->summary = gpu_summary(context, "Sliding windows", 0);
    kernel->config = arena_printf(context->arena, "strip=%d", (int)strip);
    kernel->grid[0] = dim_ceil_div(dims, total, dim_constant(dims, THREADS));
    kernel->block[0] = THREADS;
    struct block top = {.kernel = kernel, .at = &kernel->body}, inside;
    const expr thread = gpu_flat_thread(&w->k, &top, "thread", THREADS);
    build_if(&top, expr_binary(pool, EXPR_LESS, thread, kernel_size(kernel, total, "points")), &inside, NULL);
    const expr across = kernel_size(kernel, width, "width"), down = kernel_size(kernel, strips, "strips");
    w->axes[nest->rank - 1] = gpu_declare_within(&w->k, &inside, "column",
                                                 expr_binary(pool, EXPR_INDEX_MOD, thread, across), width);
    expr rest = build_declare(&inside, "rest", expr_binary(pool, EXPR_INDEX_DIV, thread, across));
    /* The last strip begins early where its end would pass the last row; what the one before it has is not
     * stored again. */
    const expr start = build_declare(
        &inside, "start",
        expr_binary(pool, EXPR_MUL, expr_binary(pool, EXPR_INDEX_MOD, rest, down), expr_index(pool, strip)));
    const bool whole = dim_divisible(dims, height, strip);
    const expr latest = expr_binary(pool, EXPR_SUB, kernel_dim(kernel, height), expr_index(pool, strip));
    const expr first =
        whole ? start : build_declare(&inside, "first_row", expr_binary(pool, EXPR_MIN, start, latest));
    uint32_t order[MAX_AXES];
    for (uint32_t i = 0; i < nest->rank; i++)
        order[i] = i;
    rest = build_declare(&inside, "rest", expr_binary(pool, EXPR_INDEX_DIV, rest, down));
    gpu_split_position(&w->k, &inside, nest, rest, order, nest->rank - 2, "plane", w->axes);
    if (nest->rank == 2)
        w->axes[0] = first;
    for (int64_t i = 0; i < strip; i++)
        build_point(w, &inside, expr_binary(pool, EXPR_ADD, first, expr_index(pool, i)), whole ? 0 : start);
    gpu_kernel_end(&w->k, out);
    return true;
}

static void window_describe(const struct config *config, struct text *out)
{
    text_printf(out, "strip=%d", (int)config->value[CONFIG_STRIP]);
}

const struct strategy gpu_window = {
    .name = "gpu_window",
    .fits = window_fits,
    .candidates = window_candidates,
    .cost = window_cost,
    .build = window_build,
    .describe = window_describe,
    .from_level = 1,
};
