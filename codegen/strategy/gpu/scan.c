/* Scans on a GPU, in one of three forms by sizes at the hints; each is right for every size.
 *
 *   threads   many rows, or short ones: a thread goes along a row
 *   blocks    a block goes along a row, tile by tile
 *   tiles     few long rows: the totals of all tiles, their exclusive scan (a block a row), each tile from
 * its offset */
#include "codegen/strategy/gpu/ordered.h"

#include <string.h>

enum { THREADS = 256 };
static const double many_rows = 4096, short_row = 48, long_row = 1 << 16, few_rows = 64;

uint32_t gpu_temporary(const struct strategy_context *context, struct lowered_group *out, enum dtype dtype,
                       dim elements)
{
    const struct temporary temporary = {.type = tensor_type_new(context->arena, dtype, 1, &elements)};
    vec_push(context->arena, &out->temporaries, temporary);
    return out->temporaries.count - 1;
}

uint32_t gpu_temporary_parameter(struct gpu_kernel *k, uint32_t temporary, enum dtype dtype,
                                 const char *label)
{
    const uint32_t memory = gpu_kernel_parameter(k, ARGUMENT_TEMPORARY, temporary, dtype, label);
    k->kernel->memories.items[memory].read = true;
    return memory;
}

double gpu_ordered_seconds(const struct strategy_context *context, uint32_t number)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    const double launches = nest->kind == NEST_SORT ? 25 : 3, launch = 2e-6;
    const double points = gpu_size(context, gpu_extent_product(context, nest, 0, nest->rank + 1));
    return launches * launch + points * 32 / context->machine->memory_bytes_per_second;
}

/* ---- a thread a row
 * -------------------------------------------------------------------------------------------------- */

static void build_threads(const struct strategy_context *context, uint32_t number, struct lowered_group *out)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct gpu_kernel k;
    expr axes[MAX_AXES] = {0}, reduced[MAX_AXES] = {0};
    uint32_t order[MAX_AXES], variables[MAX_AXES];
    gpu_kernel_begin(&k, context, "gpu_plain", number, 1, NULL);
    struct kernel *kernel = k.kernel;
    struct exprs *pool = kernel->pool;
    const dim rows = gpu_extent_product(context, nest, 0, nest->rank);
    kernel->summary = gpu_summary(context, "Scan, a thread a row", number);
    kernel->config = "scan, threads=256";
    kernel->grid[0] = dim_ceil_div(pool->dims, rows, dim_constant(pool->dims, THREADS));
    kernel->block[0] = THREADS;
    struct block top = {.kernel = kernel, .at = &kernel->body}, inside, body;
    const expr start =
        expr_binary(pool, EXPR_MUL, kernel_block_index(kernel, 0, DIM_NONE), expr_index(pool, THREADS));
    const expr row =
        build_declare(&top, "row",
                      expr_binary(pool, EXPR_ADD, start,
                                  kernel_thread_index(kernel, 0, dim_constant(pool->dims, THREADS))));
    build_if(&top, expr_binary(pool, EXPR_LESS, row, kernel_dim(kernel, rows)), &inside, NULL);
    for (uint32_t i = 0; i < nest->rank; i++)
        order[i] = i;
    gpu_split_position(&k, &inside, nest, row, order, nest->rank, "i", axes);
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        const enum dtype dtype = expr_at(context->group->body.pool, nest->reductions[r].body)->dtype;
        variables[r] = build_mutable(&inside, "sum", reduce_neutral(pool, nest->reductions[r].op, dtype));
        reduced[r] = kernel_variable(kernel, variables[r]);
    }
    build_for(&inside, "k", expr_index(pool, 0), kernel_dim(kernel, nest->extents[nest->rank]), 0,
              LOOP_SERIAL, &body, &axes[nest->rank]);
    const struct lowering lowering = gpu_lowering(&k, axes, NULL);
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        build_assign(&body, variables[r],
                     reduce_combine(pool, nest->reductions[r].op, reduced[r],
                                 lower_expr(&lowering, nest->reductions[r].body)));
    gpu_store_point(&k, &body, number, axes, reduced);
    gpu_kernel_end(&k, out);
}

/* ---- blocks and tiles
 * ------------------------------------------------------------------------------------------------ */

struct row_scan {
    struct gpu_kernel k;
    const struct strategy_context *context;
    uint32_t number;
    const struct nest *nest;
    struct lowered_group *out;
    struct block_scan scan;
    expr axes[MAX_AXES];
    dim rows, length, tiles; /* tiles of a row */
    uint32_t temporaries[SCAN_MOST], totals[SCAN_MOST];
    expr first_total; /* of the row, in the totals */
};

static void load_body(struct block_scan *scan, struct block *at, expr position, expr *values)
{
    struct row_scan *s = scan->user;
    (void)at;
    s->axes[s->nest->rank] = position;
    const struct lowering lowering = gpu_lowering(&s->k, s->axes, NULL);
    for (uint32_t r = 0; r < scan->count; r++)
        values[r] = lower_expr(&lowering, s->nest->reductions[r].body);
}

static void store_nest(struct block_scan *scan, struct block *at, expr position, const expr *before,
                       const expr *running)
{
    struct row_scan *s = scan->user;
    (void)before;
    s->axes[s->nest->rank] = position;
    gpu_store_point(&s->k, at, s->number, s->axes, running);
}

static void load_totals(struct block_scan *scan, struct block *at, expr position, expr *values)
{
    struct row_scan *s = scan->user;
    (void)at;
    const expr place = expr_binary(scan->kernel->pool, EXPR_ADD, s->first_total, position);
    for (uint32_t r = 0; r < scan->count; r++)
        values[r] = kernel_element(scan->kernel, s->totals[r], place, 1);
}

static void store_offsets(struct block_scan *scan, struct block *at, expr position, const expr *before,
                          const expr *running)
{
    struct row_scan *s = scan->user;
    (void)running;
    const expr place = expr_binary(scan->kernel->pool, EXPR_ADD, s->first_total, position);
    for (uint32_t r = 0; r < scan->count; r++)
        build_store(at, s->totals[r], place, before[r]);
}

enum pass { WHOLE_ROWS, TILE_TOTALS, TILE_OFFSETS, TILES };

static void begin_pass(struct row_scan *s, enum pass pass)
{
    static const char *const summaries[] = {"Scan, a block a row", "Totals of tiles", "Offsets of tiles",
                                            "Scan of tiles"};
    if (pass == TILE_TOTALS)
        gpu_kernel_begin_reductions(&s->k, s->context, "gpu_plain", s->number, NULL);
    else
        gpu_kernel_begin(&s->k, s->context, "gpu_plain", s->number, pass != TILE_OFFSETS, NULL);
    struct kernel *kernel = s->k.kernel;
    kernel->summary = gpu_summary(s->context, summaries[pass], s->number);
    kernel->config = "scan, threads=256, items=8";
    kernel->block[0] = SCAN_THREADS;
    s->scan.kernel = kernel;
    for (uint32_t r = 0; r < s->scan.count && pass != WHOLE_ROWS; r++)
        s->totals[r] = gpu_temporary_parameter(&s->k, s->temporaries[r], s->scan.dtypes[r], "totals");
    block_scan_memories(&s->scan);
    s->scan.load = pass == TILE_OFFSETS ? load_totals : load_body;
    s->scan.store = pass == TILE_TOTALS ? NULL : pass == TILE_OFFSETS ? store_offsets : store_nest;
}

static void build_pass(struct row_scan *s, enum pass pass)
{
    begin_pass(s, pass);
    struct kernel *kernel = s->k.kernel;
    struct exprs *pool = kernel->pool;
    const bool single = pass == TILE_TOTALS || pass == TILES;
    const dim blocks = single ? dim_mul(pool->dims, s->rows, s->tiles) : s->rows;
    kernel->grid[0] = blocks;
    struct block top = {.kernel = kernel, .at = &kernel->body}, body;
    s->scan.thread =
        build_declare(&top, "thread", kernel_thread_index(kernel, 0, dim_constant(pool->dims, SCAN_THREADS)));
    const expr number = build_declare(&top, "block", kernel_block_index(kernel, 0, blocks));
    const expr tiles = s->tiles ? kernel_dim(kernel, s->tiles) : 0;
    const expr row =
        single ? build_declare(&top, "row", expr_binary(pool, EXPR_INDEX_DIV, number, tiles)) : number;
    uint32_t order[MAX_AXES];
    for (uint32_t i = 0; i < s->nest->rank; i++)
        order[i] = i;
    if (pass != TILE_OFFSETS)
        gpu_split_position(&s->k, &top, s->nest, row, order, s->nest->rank, "i", s->axes);
    for (uint32_t r = 0; r < s->scan.count; r++) {
        const expr from = pass == TILES ? kernel_element(kernel, s->totals[r], number, 1)
                                        : reduce_neutral(pool, s->scan.ops[r], s->scan.dtypes[r]);
        s->scan.carries[r] = build_mutable(&top, "carry", from);
    }
    const expr length = kernel_dim(kernel, pass == TILE_OFFSETS ? s->tiles : s->length);
    if (single) {
        const expr tile = expr_binary(pool, EXPR_INDEX_MOD, number, tiles);
        block_scan_tile(&s->scan, &top, expr_binary(pool, EXPR_MUL, tile, expr_index(pool, SCAN_TILE)),
                        length);
    } else {
        expr begin;
        if (pass == TILE_OFFSETS)
            s->first_total = build_declare(&top, "base", expr_binary(pool, EXPR_MUL, row, tiles));
        build_for(&top, "begin", expr_index(pool, 0), length, expr_index(pool, SCAN_TILE), LOOP_SERIAL, &body,
                  &begin);
        block_scan_tile(&s->scan, &body, begin, length);
    }
    if (pass == TILE_TOTALS) {
        build_if(&top, expr_binary(pool, EXPR_EQUAL, s->scan.thread, expr_index(pool, 0)), &body, NULL);
        for (uint32_t r = 0; r < s->scan.count; r++)
            build_store(&body, s->totals[r], number, kernel_variable(kernel, s->scan.carries[r]));
    }
    gpu_kernel_end(&s->k, s->out);
}

void gpu_build_scan(const struct strategy_context *context, uint32_t number, struct lowered_group *out)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct dims *dims = context->group->body.pool->dims;
    struct row_scan s = {.context = context,
                         .number = number,
                         .nest = nest,
                         .out = out,
                         .rows = gpu_extent_product(context, nest, 0, nest->rank),
                         .length = nest->extents[nest->rank],
                         .scan.count = nest->reduction_count};
    const double rows = gpu_size(context, s.rows), length = gpu_size(context, s.length);
    if (nest->reduction_count > SCAN_MOST || rows >= many_rows || length < short_row) {
        build_threads(context, number, out);
        return;
    }
    s.scan.user = &s;
    for (uint32_t r = 0; r < s.scan.count; r++) {
        s.scan.ops[r] = nest->reductions[r].op;
        s.scan.dtypes[r] = expr_at(context->group->body.pool, nest->reductions[r].body)->dtype;
    }
    s.tiles = dim_ceil_div(dims, s.length, dim_constant(dims, SCAN_TILE));
    const dim totals = dim_mul(dims, s.rows, s.tiles);
    if (rows >= few_rows || length < long_row || !totals) {
        build_pass(&s, WHOLE_ROWS);
        return;
    }
    for (uint32_t r = 0; r < s.scan.count; r++)
        s.temporaries[r] = gpu_temporary(context, out, s.scan.dtypes[r], totals);
    build_pass(&s, TILE_TOTALS);
    build_pass(&s, TILE_OFFSETS);
    build_pass(&s, TILES);
}
