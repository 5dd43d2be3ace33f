/* What happens to a contraction's sums: the nest's stores, with whole vectors where a run of columns is a run
 * of memory in all of them; or parts of a split depth, which a second kernel adds. See contraction.h. */
#include <string.h>

#include "codegen/strategy/gpu/contraction_build.h"

static void split_position(struct builder *b, struct block *at, expr position, const uint32_t *axes,
                           uint32_t count, const char *label, expr *values)
{
    gpu_split_position(&b->k, at, b->plan->nest, position, axes, count, label, values);
}

/* ---- runs of columns
 * ------------------------------------------------------------------------------------------------ */

static expr run_element(void *user, uint32_t buffer, uint32_t rank, const expr *indices)
{
    struct builder *b = user;
    (void)rank;
    (void)indices;
    return kernel_element(b->k.kernel, b->runs[buffer], b->lane, 1);
}

static void load_runs(struct builder *b, struct block *at, const struct lowering *lowering, expr within)
{
    const struct stretch *stretch = &b->plan->stretch;
    struct kernel *kernel = b->k.kernel;
    for (uint32_t i = 0; i < b->plan->body->buffers.count; i++) {
        if (!stretch->flat[i])
            continue;
        const struct expr_node *load = expr_at(b->plan->body->pool, stretch->loads[i]);
        const uint32_t memory = b->k.memories[i];
        const char *label = kernel->memories.items[memory].label;
        kernel->memories.items[memory].read = true;
        if (b->runs[i] == UINT32_MAX)
            b->runs[i] = gpu_registers(&b->k, load->dtype, b->plan->lanes,
                                       arena_printf(b->context->arena, "%s_run", label));
        const expr index = stretch_index(b->context, stretch, lowering, i, load->arguments, within);
        build_store(at, b->runs[i], number(b, 0),
                    kernel_element(kernel, memory, index, (uint16_t)b->plan->lanes));
    }
}

/* The stores of a run whose sums begin at sum[place]; axes[]: all but the stretch's. */
static void store_run(struct builder *b, struct block *at, expr *axes, expr within, expr place)
{
    const struct contraction_plan *plan = b->plan;
    struct kernel *kernel = b->k.kernel;
    const uint32_t lanes = plan->lanes;
    struct lowering lowering = gpu_lowering(&b->k, axes, NULL);
    load_runs(b, at, &lowering, within);
    uint32_t *memories =
        arena_copy(b->context->arena, b->k.memories, plan->body->buffers.count * sizeof *memories);
    for (uint32_t i = 0; i < plan->body->buffers.count; i++)
        memories[i] = plan->stretch.flat[i] ? UINT32_MAX : memories[i];
    struct block body;
    build_for(at, "lane", number(b, 0), number(b, lanes), 0, LOOP_UNROLL, &body, &b->lane);
    const expr sum = kernel_element(kernel, b->sum, add(b, place, b->lane), 1);
    struct lowering inner = lowering;
    inner.reduced = &sum;
    inner.memories = memories;
    inner.value = run_element;
    inner.user = b;
    for (uint32_t s = 0; s < plan->nest->store_count; s++) {
        const expr value = lower_expr(&inner, plan->nest->stores[s].value);
        if (b->results[s] == UINT32_MAX)
            b->results[s] = gpu_registers(&b->k, expr_at(b->pool, value)->dtype, lanes, "result");
        build_store(&body, b->results[s], b->lane, value);
    }
    for (uint32_t s = 0; s < plan->nest->store_count; s++) {
        const struct nest_store *store = &plan->nest->stores[s];
        expr own_axes[MAX_AXES];
        for (uint32_t axis = 0; axis < plan->nest->rank; axis++)
            own_axes[axis] = expr_axis(plan->body->pool, axis, plan->nest->extents[axis]);
        build_store(at, b->k.memories[store->buffer],
                    stretch_index(b->context, &plan->stretch, &lowering, store->buffer,
                                  store->indices ? store->indices : own_axes, within),
                    kernel_element(kernel, b->results[s], number(b, 0), (uint16_t)lanes));
    }
}

/* ---- parts
 * ----------------------------------------------------------------------------------------------------------
 */

dim contraction_parts_pitch(const struct contraction_plan *plan)
{
    struct dims *dims = plan->body->pool->dims;
    const dim lanes = dim_constant(dims, plan->lanes);
    return dim_mul(dims, dim_ceil_div(dims, plan->operands[SIDE_COLUMNS].extent, lanes), lanes);
}

/* part * batches * rows + batch * rows + row */
static expr part_row(struct builder *b, expr row)
{
    const struct contraction_plan *plan = b->plan;
    expr flat = b->part;
    for (uint32_t i = 0; i < plan->batch_count; i++)
        flat = add(b, times(b, flat, kernel_dim(b->k.kernel, plan->nest->extents[plan->batch[i]])),
                   b->axes[plan->batch[i]]);
    return add(b, times(b, flat, kernel_size(b->k.kernel, plan->operands[SIDE_ROWS].extent, "rows")), row);
}

/* A part's sums into the temporary [part][batch][row][column]. */
static void store_part(struct builder *b, struct block *at, expr row, expr column, expr place, uint32_t count,
                       uint32_t memory)
{
    const expr pitch = kernel_size(b->k.kernel, contraction_parts_pitch(b->plan), "part_pitch");
    const expr index = add(b, times(b, part_row(b, row), pitch), column);
    build_store(at, memory, index, kernel_element(b->k.kernel, b->sum, place, (uint16_t)count));
}

/* ---- all of a thread's sums
 * ----------------------------------------------------------------------------------------- */

/* The columns' axes at `column`, those of the stretch as one position. */
static expr split_column(struct builder *b, struct block *at, expr column, expr *axes)
{
    const struct operand *columns = &b->plan->operands[SIDE_COLUMNS];
    const uint32_t inner = b->plan->nest->rank - b->plan->stretch.first, outer = columns->count - inner;
    for (uint32_t i = outer; i < columns->count; i++)
        axes[columns->axes[i]] = number(b, 0); /* they stand in no expression that is lowered */
    if (outer == 0)
        return column;
    const expr length = kernel_size(b->k.kernel, b->plan->stretch.length, "stretch");
    const expr rest = build_declare(at, "rest", binary(b, EXPR_INDEX_DIV, column, length));
    split_position(b, at, rest, columns->axes, outer, "outer", axes);
    return build_declare(at, "within", binary(b, EXPR_INDEX_MOD, column, length));
}

/* The sums from sum[place] on: of a run of `count` columns, of which all exist or none, or of one. */
static void store_columns(struct builder *b, struct block *at, expr row, const expr *row_axes, expr column,
                          expr place, uint32_t count, uint32_t parts)
{
    const struct operand *columns = &b->plan->operands[SIDE_COLUMNS];
    struct block then = *at;
    const int64_t tile = b->config[CONFIG_COLUMNS];
    if (!dim_divisible(b->pool->dims, columns->extent, tile))
        build_if(at, binary(b, EXPR_LESS, column, kernel_size(b->k.kernel, columns->extent, "columns")),
                 &then, NULL);
    if (parts != UINT32_MAX) {
        store_part(b, &then, row, column, place, count, parts);
        return;
    }
    expr axes[MAX_AXES];
    memcpy(axes, row_axes, sizeof axes);
    if (count > 1) {
        const expr within = split_column(b, &then, column, axes);
        store_run(b, &then, axes, within, place);
        return;
    }
    split_position(b, &then, column, columns->axes, columns->count, "column", axes);
    const expr sum = kernel_element(b->k.kernel, b->sum, place, 1);
    gpu_store_point(&b->k, &then, 0, axes, &sum);
}

static void store_row(struct builder *b, struct block *at, expr row, const expr *axes, expr first_place,
                      uint32_t parts)
{
    const int64_t lanes = b->plan->lanes, own = b->config[CONFIG_OWN_COLUMNS];
    const bool runs = !b->fills[SIDE_COLUMNS].operand->along_depth;
    const bool vectors = runs && (parts != UINT32_MAX || b->plan->has_stretch);
    struct block body, lane_body;
    expr c, lane = number(b, 0);
    if (!runs) {
        build_for(at, "c", number(b, 0), named(b, own, "own_columns"), 0, LOOP_UNROLL, &body, &c);
        expr column = add(b, b->first_column,
                          add(b, b->thread_column, times(b, c, named(b, b->threads_x, "threads_x"))));
        column = build_declare(&body, "column", column);
        store_columns(b, &body, row, axes, column, add(b, first_place, c), 1, parts);
        return;
    }
    build_for(at, "c", number(b, 0), named(b, own, "own_columns"), number(b, lanes), LOOP_UNROLL, &body, &c);
    expr column = add(b, add(b, b->first_column, times(b, c, named(b, b->threads_x, "threads_x"))),
                      scaled(b, b->thread_column, lanes));
    if (vectors) {
        column = build_declare(&body, "column", column);
        store_columns(b, &body, row, axes, column, add(b, first_place, c), (uint32_t)lanes, parts);
        return;
    }
    build_for(&body, "lane", number(b, 0), number(b, lanes), 0, LOOP_UNROLL, &lane_body, &lane);
    column = build_declare(&lane_body, "column", add(b, column, lane));
    store_columns(b, &lane_body, row, axes, column, add(b, add(b, first_place, c), lane), 1, parts);
}

void contraction_store(struct builder *b, struct block *top, uint32_t parts)
{
    const struct operand *rows = &b->plan->operands[SIDE_ROWS];
    const int64_t lanes = b->plan->lanes, own = b->config[CONFIG_OWN_ROWS];
    const expr threads_y = named(b, b->threads_y, "threads_y");
    struct block body, inside;
    expr r, local;
    build_for(top, "r", number(b, 0), named(b, own, "own_rows"), 0, LOOP_UNROLL, &body, &r);
    if (rows->along_depth) {
        local = add(b, b->thread_row, times(b, r, threads_y));
    } else {
        const expr run = binary(b, EXPR_INDEX_DIV, r, number(b, lanes)),
                   in_run = binary(b, EXPR_INDEX_MOD, r, number(b, lanes));
        local = add(b, times(b, scaled(b, run, lanes), threads_y),
                    add(b, scaled(b, b->thread_row, lanes), in_run));
    }
    const expr row = build_declare(&body, "row", add(b, b->first_row, local));
    inside = body;
    if (!dim_divisible(b->pool->dims, rows->extent, b->config[CONFIG_ROWS]))
        build_if(&body, binary(b, EXPR_LESS, row, kernel_size(b->k.kernel, rows->extent, "rows")), &inside,
                 NULL);
    expr axes[MAX_AXES];
    memcpy(axes, b->axes, sizeof axes);
    if (parts == UINT32_MAX)
        split_position(b, &inside, row, rows->axes, rows->count, "row", axes);
    store_row(b, &inside, row, axes, times(b, r, named(b, b->config[CONFIG_OWN_COLUMNS], "own_columns")),
              parts);
}

/* One thread a point adds the parts in order and stores. */
void contraction_sum_parts(const struct strategy_context *context, const struct contraction_plan *plan,
                           int64_t parts, struct lowered_group *out)
{
    enum { THREADS = 128 };
    struct gpu_kernel k;
    gpu_kernel_begin_stores(&k, context, "gpu_contraction", 0);
    const uint32_t memory = gpu_kernel_parameter(&k, ARGUMENT_TEMPORARY, 0, plan->dtype, "parts");
    struct kernel *kernel = k.kernel;
    struct exprs *pool = kernel->pool;
    struct dims *dims = pool->dims;
    const struct operand *rows = &plan->operands[SIDE_ROWS], *columns = &plan->operands[SIDE_COLUMNS];
    kernel->memories.items[memory].read = true;
    kernel->summary = "Adds the parts of a product's depth and stores.";
    kernel->config = arena_printf(context->arena, "parts=%d", (int)parts);
    const dim lines = dim_mul(dims, plan->batches, rows->extent), pitch = contraction_parts_pitch(plan);
    const dim points = dim_mul(dims, lines, columns->extent);
    kernel->grid[0] = dim_ceil_div(dims, points, dim_constant(dims, THREADS));
    kernel->block[0] = THREADS;
    struct block top = {.kernel = kernel, .at = &kernel->body}, inside, body;
    const expr point = gpu_flat_thread(&k, &top, "point", THREADS);
    build_if(&top, expr_binary(pool, EXPR_LESS, point, kernel_size(kernel, points, "points")), &inside, NULL);
    const expr width = kernel_size(kernel, columns->extent, "columns");
    const expr column = gpu_declare_within(&k, &inside, "column",
                                           expr_binary(pool, EXPR_INDEX_MOD, point, width), columns->extent);
    const expr line =
        gpu_declare_within(&k, &inside, "line", expr_binary(pool, EXPR_INDEX_DIV, point, width), lines);
    expr axes[MAX_AXES] = {0};
    uint32_t order[MAX_AXES], count = 0;
    for (uint32_t i = 0; i < plan->batch_count; i++)
        order[count++] = plan->batch[i];
    for (uint32_t i = 0; i < rows->count; i++)
        order[count++] = rows->axes[i];
    gpu_split_position(&k, &inside, plan->nest, line, order, count, "line", axes);
    gpu_split_position(&k, &inside, plan->nest, column, columns->axes, columns->count, "column", axes);
    const uint32_t sum = build_mutable(&inside, "sum", reduce_neutral(pool, REDUCE_SUM, plan->dtype));
    const expr reduced = kernel_variable(kernel, sum);
    expr part;
    build_for(&inside, "part", expr_index(pool, 0), kernel_named(kernel, parts, "part_count"), 0, LOOP_UNROLL,
              &body, &part);
    const expr part_line = expr_binary(
        pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, part, kernel_size(kernel, lines, "lines")), line);
    const expr index =
        expr_binary(pool, EXPR_ADD,
                    expr_binary(pool, EXPR_MUL, part_line, kernel_size(kernel, pitch, "part_pitch")), column);
    build_assign(&body, sum, expr_binary(pool, EXPR_ADD, reduced, kernel_element(kernel, memory, index, 1)));
    gpu_store_point(&k, &inside, 0, axes, &reduced);
    gpu_kernel_end(&k, out);
}
