/* Softmax, norms and reductions, with whatever expressions stand around them: nests that share their leading
 * points, the rows. One row is a warp's (short rows, several a block) or a block's. Threads stride over the
 * row; each reduction is combined by shuffles within a warp and, for a block, through one shared slot a warp.
 * What a row's reductions give stays in registers: buffers of the size of the rows that only this group reads
 * are never in memory.
 *
 * Takes a group when every nest with reductions has the same parallel axes, and every other nest tells by its
 * loads of the rows' results which of its axes are the rows'. */
#include <math.h>
#include <string.h>

#include "codegen/strategy/gpu/gpu_common.h"
#include "codegen/strategy/row_group.h"

enum { CONFIG_THREADS, CONFIG_ROWS }; /* threads of a row; rows of a block (more than 1: a warp each) */
enum { ROWS_OF_WARPS = 8, SHORT_ROW = 1024 };

static bool no(struct text *why, const char *reason)
{
    text_put(why, reason);
    return false;
}

static bool shuffles(const struct row_group *rows, const struct nest *nest)
{
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        enum dtype dtype = expr_at(rows->body->pool, nest->reductions[r].body)->dtype;
        if (dtype == DTYPE_BOOL)
            return false;
    }
    return true;
}

/* Of the longest reduction. */
static double row_length(const struct strategy_context *context)
{
    double longest = 0;
    for (uint32_t n = 0; n < context->group->body.nests.count; n++) {
        const struct nest *nest = &context->group->body.nests.items[n];
        if (nest->reduction_count)
            longest = fmax(longest, gpu_size(context, gpu_extent_product(context, nest, nest->rank,
                                                                         nest->rank + nest->reduce_rank)));
    }
    return longest;
}

static bool rows_fits(const struct strategy_context *context, struct text *why)
{
    struct row_group rows;
    if (!find_row_group(context, &rows, why))
        return false;
    for (uint32_t n = 0; n < context->group->body.nests.count; n++)
        if (!shuffles(&rows, &context->group->body.nests.items[n]))
            return no(why, "a reduction of a type that warps do not shuffle");
    return row_length(context) >= (double)WARP / 2 || no(why, "rows shorter than half a warp");
}

static uint32_t rows_candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    struct row_group rows;
    struct text why;
    text_init(&why, context->arena);
    if (!limit || !find_row_group(context, &rows, &why))
        return 0;
    double length = row_length(context);
    int threads = length <= (double)SHORT_ROW ? WARP : length <= 8192 ? 256 : 1024;
    out[0] = (struct config){
        .value = {[CONFIG_THREADS] = threads, [CONFIG_ROWS] = threads == WARP ? ROWS_OF_WARPS : 1}};
    return 1;
}

static double rows_cost(const struct strategy_context *context, const struct config *config)
{
    const double launch = 2e-6, combine = 0.3e-6;
    struct row_group rows;
    struct text why;
    text_init(&why, context->arena);
    if (!find_row_group(context, &rows, &why))
        return INFINITY;
    double traffic = launch + gpu_traffic(context, true), roofline = gpu_roofline(context, 0.8, 0.2);
    double chain = 6e-9 * row_length(context) / config->value[CONFIG_THREADS] +
                   combine * context->group->body.nests.count;
    return chain + (traffic > roofline ? traffic : roofline);
}

/* ---- building
 * ------------------------------------------------------------------------------------------------------- */

struct row_builder {
    struct gpu_kernel k;
    struct row_group rows;
    const struct config *config;
    expr row_axes[MAX_AXES];
    expr lane; /* thread within the row */
    expr row_values[MAX_BUFFERS];
    uint32_t shared[DTYPE_COUNT]; /* [accumulator type]: one slot a warp; UINT32_MAX: none yet */
};

static expr row_value(void *user, uint32_t buffer, uint32_t rank, const expr *indices)
{
    const struct row_builder *b = user;
    (void)rank;
    (void)indices;
    return b->row_values[buffer];
}

static struct lowering row_lowering(struct row_builder *b, const expr *axes, const expr *reduced)
{
    struct lowering lowering = gpu_lowering(&b->k, axes, reduced);
    lowering.value = row_value;
    lowering.user = b;
    return lowering;
}

/* The loop of a row's threads over `extents` (the axes that are not the rows'); axes[] gets their values. */
static void row_loop(struct row_builder *b, struct block *at, uint32_t n, bool reduced, expr *axes,
                     struct block *body)
{
    const struct nest *nest = &b->rows.body->nests.items[n];
    struct kernel *kernel = b->k.kernel;
    struct exprs *pool = kernel->pool;
    uint32_t inner[MAX_AXES], count = 0;
    uint32_t from = reduced ? nest->rank : 0, to = reduced ? nest->rank + nest->reduce_rank : nest->rank;
    dim length = dim_constant(pool->dims, 1);
    for (uint32_t i = from; i < to; i++)
        if (b->rows.row_axis[n][i] < 0) {
            inner[count++] = i;
            length = dim_mul(pool->dims, length, nest->extents[i]);
        }
    expr position;
    build_for(at, "i", b->lane, kernel_dim(kernel, length),
              expr_index(pool, b->config->value[CONFIG_THREADS]), LOOP_SERIAL, body, &position);
    expr rest = position;
    for (uint32_t i = count; i-- > 0;) {
        expr extent = kernel_dim(kernel, nest->extents[inner[i]]);
        axes[inner[i]] =
            i ? build_declare(body, "axis", expr_binary(pool, EXPR_INDEX_MOD, rest, extent)) : rest;
        if (i)
            rest = build_declare(body, "rest", expr_binary(pool, EXPR_INDEX_DIV, rest, extent));
    }
}

/* Every thread of the row gets the combination of all its threads' values. */
static expr combine_row(struct row_builder *b, struct block *at, enum reduce_op op, expr partial)
{
    struct kernel *kernel = b->k.kernel;
    struct exprs *pool = kernel->pool;
    enum dtype dtype = expr_at(pool, partial)->dtype;
    int threads = b->config->value[CONFIG_THREADS];
    for (int mask = WARP / 2; mask > 0; mask /= 2) {
        struct expr_node shuffle = {.op = EXPR_SHUFFLE_XOR,
                                    .dtype = dtype,
                                    .lanes = 1,
                                    .count = 1,
                                    .value = mask,
                                    .arguments = &partial};
        partial = build_declare(at, "all", gpu_combine(pool, op, partial, expr_make(pool, &shuffle)));
    }
    if (threads == WARP)
        return partial;
    uint32_t *slot = &b->shared[dtype];
    int64_t warps = threads / WARP;
    if (*slot == UINT32_MAX)
        *slot = kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                                                  .dtype = dtype,
                                                                  .lanes = 1,
                                                                  .count = warps,
                                                                  .label = "warps",
                                                                  .alignment = 16});
    expr warp = expr_binary(pool, EXPR_INDEX_DIV, b->lane, expr_index(pool, WARP));
    expr leads =
        expr_binary(pool, EXPR_EQUAL, expr_binary(pool, EXPR_INDEX_MOD, b->lane, expr_index(pool, WARP)),
                    expr_index(pool, 0));
    struct block then;
    build_barrier(at); /* the slots may still be read for the reduction before */
    build_if(at, leads, &then, NULL);
    build_store(&then, *slot, warp, partial);
    build_barrier(at);
    uint32_t total = build_mutable(at, "row", kernel_element(kernel, *slot, expr_index(pool, 0), 1));
    struct block body;
    expr w;
    build_for(at, "w", expr_index(pool, 1), expr_index(pool, warps), 0, LOOP_UNROLL, &body, &w);
    build_assign(&body, total,
                 gpu_combine(pool, op, kernel_variable(kernel, total), kernel_element(kernel, *slot, w, 1)));
    return kernel_variable(kernel, total);
}

static void store_rows(struct row_builder *b, struct block *at, uint32_t n, const expr *axes,
                       const expr *reduced)
{
    const struct nest *nest = &b->rows.body->nests.items[n];
    struct exprs *pool = b->k.kernel->pool;
    struct lowering lowering = row_lowering(b, axes, reduced);
    struct block first;
    bool guarded = false;
    for (uint32_t s = 0; s < nest->store_count; s++) {
        const struct nest_store *store = &nest->stores[s];
        expr value = lower_expr(&lowering, store->value);
        if (b->rows.is_row_value[store->buffer]) {
            b->row_values[store->buffer] = build_declare(at, "row", value);
            continue;
        }
        if (!guarded)
            build_if(at, expr_binary(pool, EXPR_EQUAL, b->lane, expr_index(pool, 0)), &first, NULL);
        guarded = true;
        gpu_store(&b->k, &first, &lowering, store, axes, value);
    }
}

static void build_reduction_nest(struct row_builder *b, struct block *at, uint32_t n)
{
    const struct nest *nest = &b->rows.body->nests.items[n];
    struct kernel *kernel = b->k.kernel;
    struct exprs *pool = kernel->pool;
    expr axes[MAX_AXES] = {0}, reduced[MAX_AXES] = {0};
    uint32_t partials[MAX_AXES];
    memcpy(axes, b->row_axes, sizeof axes);
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        enum dtype dtype = expr_at(b->rows.body->pool, nest->reductions[r].body)->dtype;
        partials[r] = build_mutable(at, "partial", gpu_neutral(pool, nest->reductions[r].op, dtype));
    }
    struct block body;
    row_loop(b, at, n, true, axes, &body);
    struct lowering lowering = row_lowering(b, axes, NULL);
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        build_assign(&body, partials[r],
                     gpu_combine(pool, nest->reductions[r].op, kernel_variable(kernel, partials[r]),
                                 lower_expr(&lowering, nest->reductions[r].body)));
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        reduced[r] = combine_row(b, at, nest->reductions[r].op, kernel_variable(kernel, partials[r]));
    store_rows(b, at, n, b->row_axes, reduced);
}

static void build_map_nest(struct row_builder *b, struct block *at, uint32_t n)
{
    const struct nest *nest = &b->rows.body->nests.items[n];
    expr axes[MAX_AXES] = {0};
    for (uint32_t i = 0; i < nest->rank; i++)
        if (b->rows.row_axis[n][i] >= 0)
            axes[i] = b->row_axes[b->rows.row_axis[n][i]];
    struct block body;
    row_loop(b, at, n, false, axes, &body);
    struct lowering lowering = row_lowering(b, axes, NULL);
    for (uint32_t s = 0; s < nest->store_count; s++)
        gpu_store(&b->k, &body, &lowering, &nest->stores[s], axes,
                  lower_expr(&lowering, nest->stores[s].value));
}

/* Opens the kernel: which row this is, and whether it exists. */
static struct block begin_row(struct row_builder *b)
{
    struct kernel *kernel = b->k.kernel;
    struct exprs *pool = kernel->pool;
    struct dims *dims = pool->dims;
    int threads = b->config->value[CONFIG_THREADS], rows = b->config->value[CONFIG_ROWS];
    dim count = dim_constant(dims, 1);
    for (uint32_t i = 0; i < b->rows.rank; i++)
        count = dim_mul(dims, count, b->rows.extents[i]);
    kernel->grid[0] = dim_ceil_div(dims, count, dim_constant(dims, rows));
    kernel->block[0] = (uint32_t)threads;
    kernel->block[1] = (uint32_t)rows;
    struct block top = {.kernel = kernel, .at = &kernel->body}, inside = top;
    b->lane = build_declare(&top, "lane", kernel_thread_index(kernel, 0, dim_constant(dims, threads)));
    expr row = kernel_block_index(kernel, 0, rows == 1 ? count : DIM_NONE);
    if (rows > 1) {
        expr first = expr_binary(pool, EXPR_MUL, row, expr_index(pool, rows));
        row = build_declare(
            &top, "row",
            expr_binary(pool, EXPR_ADD, first, kernel_thread_index(kernel, 1, dim_constant(dims, rows))));
        build_if(&top, expr_binary(pool, EXPR_LESS, row, kernel_dim(kernel, count)), &inside, NULL);
    } else {
        row = build_declare(&top, "row", row);
    }
    expr rest = row;
    for (uint32_t i = b->rows.rank; i-- > 0;) {
        expr extent = kernel_dim(kernel, b->rows.extents[i]);
        b->row_axes[i] =
            i ? build_declare(&inside, "r", expr_binary(pool, EXPR_INDEX_MOD, rest, extent)) : rest;
        if (i)
            rest = build_declare(&inside, "rest", expr_binary(pool, EXPR_INDEX_DIV, rest, extent));
    }
    return inside;
}

static bool rows_build(const struct strategy_context *context, const struct config *config,
                       struct lowered_group *out, struct text *why)
{
    struct row_builder *b = arena_new(context->arena, struct row_builder);
    b->config = config;
    memset(b->shared, 0xff, sizeof b->shared);
    if (!find_row_group(context, &b->rows, why))
        return false;
    gpu_kernel_begin(&b->k, context, "gpu_rows", 0, b->rows.body->nests.count, b->rows.is_row_value);
    b->k.kernel->summary = gpu_summary(context, "Rows", 0);
    b->k.kernel->config = arena_printf(context->arena, "threads=%d, rows=%d",
                                       (int)config->value[CONFIG_THREADS], (int)config->value[CONFIG_ROWS]);
    struct block at = begin_row(b);
    for (uint32_t n = 0; n < b->rows.body->nests.count; n++) {
        if (b->rows.body->nests.items[n].reduction_count)
            build_reduction_nest(b, &at, n);
        else
            build_map_nest(b, &at, n);
    }
    gpu_kernel_end(&b->k, out);
    return true;
}

static void rows_describe(const struct config *config, struct text *out)
{
    text_printf(out, "threads=%d, rows=%d", (int)config->value[CONFIG_THREADS],
                (int)config->value[CONFIG_ROWS]);
}

const struct strategy gpu_rows = {
    .name = "gpu_rows",
    .fits = rows_fits,
    .candidates = rows_candidates,
    .cost = rows_cost,
    .build = rows_build,
    .describe = rows_describe,
    .from_level = 1,
};
