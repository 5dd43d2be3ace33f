/* Filters on a GPU: a block a row, a tile of candidates at a time. Each thread asks its candidate about all
 * that are kept; then the tile is settled in order: a candidate that is still in is kept, and the threads
 * behind it ask theirs about it. Blocks meet only after one is kept, so what it costs hangs on how many are.
 */
#include "codegen/strategy/gpu/ordered.h"

enum { THREADS = 256 };

struct row_filter {
    struct gpu_kernel k;
    const struct nest *nest;
    enum dtype place;
    uint32_t list, flags, count, alive; /* memories, variables */
    expr axes[MAX_AXES];
    expr thread, base, own; /* own: this thread's candidate */
    expr limit, length;
};

static expr lower(struct row_filter *f, uint32_t body)
{
    const struct lowering lowering = gpu_lowering(&f->k, f->axes, NULL);
    return lower_expr(&lowering, f->nest->reductions[body].body);
}

static expr is_set(struct row_filter *f, expr value)
{
    struct exprs *pool = f->k.kernel->pool;
    return expr_binary(pool, EXPR_NOT_EQUAL, value, expr_int(pool, DTYPE_U32, 0));
}

static expr both(struct row_filter *f, expr a, expr b)
{
    return expr_binary(f->k.kernel->pool, EXPR_AND, a, b);
}

/* The thread's candidate is out where the kept one says so; then its flag falls, if `tells`. */
static void ask(struct row_filter *f, struct block *at, expr kept, bool tells)
{
    struct exprs *pool = f->k.kernel->pool;
    struct block out;
    f->axes[f->nest->rank] = f->own;
    f->axes[f->nest->rank + 1] = kept;
    build_if(at, is_set(f, lower(f, 1)), &out, NULL);
    build_assign(&out, f->alive, expr_int(pool, DTYPE_U32, 0));
    if (tells)
        build_store(&out, f->flags, f->thread, expr_int(pool, DTYPE_U32, 0));
}

/* Against all that earlier tiles kept. */
static void ask_kept(struct row_filter *f, struct block *at)
{
    struct kernel *kernel = f->k.kernel;
    struct exprs *pool = kernel->pool;
    struct block inside, body, open;
    expr k;
    build_if(at, expr_binary(pool, EXPR_LESS, f->own, f->length), &inside, NULL);
    f->axes[f->nest->rank] = f->own;
    build_assign(&inside, f->alive, expr_convert(pool, DTYPE_U32, is_set(f, lower(f, 0))));
    build_for(&inside, "k", expr_index(pool, 0), kernel_variable(kernel, f->count), 0, LOOP_SERIAL, &body,
              &k);
    build_if(&body, is_set(f, kernel_variable(kernel, f->alive)), &open, NULL);
    const expr kept = kernel_element(kernel, f->list, expr_binary(pool, EXPR_ADD, f->base, k), 1);
    ask(f, &open, build_declare(&open, "kept", expr_convert(pool, DTYPE_I64, kept)), false);
}

/* One after the other; all threads see the same flags and count. */
static void settle_tile(struct row_filter *f, struct block *at, expr begin)
{
    struct kernel *kernel = f->k.kernel;
    struct exprs *pool = kernel->pool;
    const expr count = kernel_variable(kernel, f->count);
    struct block body, keep, drop, first, behind, self;
    expr step;
    build_for(at, "step", expr_index(pool, 0), expr_index(pool, THREADS), 0, LOOP_SERIAL, &body, &step);
    const expr flag = build_declare(&body, "flag", kernel_element(kernel, f->flags, step, 1));
    build_if(&body, both(f, is_set(f, flag), expr_binary(pool, EXPR_LESS, count, f->limit)), &keep, &drop);
    const expr kept = build_declare(&keep, "kept", expr_binary(pool, EXPR_ADD, begin, step));
    build_if(&keep, expr_binary(pool, EXPR_EQUAL, f->thread, expr_index(pool, 0)), &first, NULL);
    build_store(&first, f->list, expr_binary(pool, EXPR_ADD, f->base, count),
                expr_convert(pool, f->place, kept));
    build_assign(&keep, f->count, expr_binary(pool, EXPR_ADD, count, expr_int(pool, DTYPE_I64, 1)));
    build_if(
        &keep,
        both(f, is_set(f, kernel_variable(kernel, f->alive)), expr_binary(pool, EXPR_LESS, step, f->thread)),
        &behind, NULL);
    ask(f, &behind, kept, true);
    build_barrier(&keep);
    build_if(&drop, expr_binary(pool, EXPR_EQUAL, f->thread, step), &self, NULL);
    build_assign(&self, f->alive, expr_int(pool, DTYPE_U32, 0));
}

static void build_tile(struct row_filter *f, struct block *at, expr begin, uint32_t number)
{
    struct kernel *kernel = f->k.kernel;
    struct exprs *pool = kernel->pool;
    struct block inside;
    f->own = build_declare(at, "own", expr_binary(pool, EXPR_ADD, begin, f->thread));
    f->alive = build_mutable(at, "alive", expr_int(pool, DTYPE_U32, 0));
    ask_kept(f, at);
    build_barrier(at); /* the tile before has read its flags */
    build_store(at, f->flags, f->thread, kernel_variable(kernel, f->alive));
    build_barrier(at);
    settle_tile(f, at, begin);
    build_if(at, expr_binary(pool, EXPR_LESS, f->own, f->length), &inside, NULL);
    const expr reduced = kernel_variable(kernel, f->alive);
    f->axes[f->nest->rank] = f->own;
    gpu_store_point(&f->k, &inside, number, f->axes, &reduced);
}

void gpu_build_filter(const struct strategy_context *context, uint32_t number, struct lowered_group *out)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct row_filter f = {.nest = nest, .place = gpu_index_bits(context, NULL) == 32 ? DTYPE_I32 : DTYPE_I64};
    uint32_t order[MAX_AXES];
    gpu_kernel_begin(&f.k, context, "gpu_plain", number, 1, NULL);
    struct kernel *kernel = f.k.kernel;
    struct exprs *pool = kernel->pool;
    const dim rows = gpu_extent_product(context, nest, 0, nest->rank);
    const dim length = dim_current(pool->dims, nest->extents[nest->rank]);
    f.list = gpu_temporary_parameter(
        &f.k, gpu_temporary(context, out, f.place, dim_mul(pool->dims, rows, length)), f.place, "list");
    f.flags = kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                                                .dtype = DTYPE_U32,
                                                                .lanes = 1,
                                                                .count = THREADS,
                                                                .label = "flags",
                                                                .alignment = 16});
    kernel->summary = gpu_summary(context, "Filter, a block a row", number);
    kernel->config = "filter, threads=256";
    kernel->grid[0] = rows;
    kernel->block[0] = THREADS;
    struct block top = {.kernel = kernel, .at = &kernel->body}, body;
    const expr row = kernel_block_index(kernel, 0, rows);
    for (uint32_t i = 0; i < nest->rank; i++)
        order[i] = i;
    gpu_split_position(&f.k, &top, nest, row, order, nest->rank, "i", f.axes);
    f.thread =
        build_declare(&top, "thread", kernel_thread_index(kernel, 0, dim_constant(pool->dims, THREADS)));
    f.length = kernel_size(kernel, length, "candidates");
    f.base = build_declare(&top, "base", expr_binary(pool, EXPR_MUL, row, f.length));
    f.count = build_mutable(&top, "count", expr_int(pool, DTYPE_I64, 0));
    f.limit = build_declare(&top, "limit", lower(&f, 2));
    expr begin;
    build_for(&top, "begin", expr_index(pool, 0), f.length, expr_index(pool, THREADS), LOOP_SERIAL, &body,
              &begin);
    build_tile(&f, &body, begin, number);
    gpu_kernel_end(&f.k, out);
}
