/* Scans on a CPU, in one of three forms by sizes at the hints; each is right for every size.
 *
 *   columns   the scan runs across memory: a vector of neighbouring rows goes along together, sums in scratch
 *   rows      one row an item, in order
 *   blocks    few long rows: the totals of blocks of fixed length, their exclusive scan, and each block from
 * its offset. What is computed does not hang on the number of workers. */
#include "codegen/strategy/cpu/ordered.h"

enum { ENOUGH_ROWS = 16, LONG_ROW = 1 << 15, BLOCK = 1 << 14, WIDE = 8 };

/* ---- what both kinds of nests share
 * ------------------------------------------------------------------------------- */

void ordered_begin(struct emitter *emitter, const struct strategy_context *context, uint32_t number,
                   bool loads, bool stores, const char *what)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct nest part = *nest;
    uint64_t buffers;
    if (!loads)
        part.reduction_count = 0;
    if (!stores)
        part.store_count = 0;
    buffers = loaded_buffers(&context->group->body, &part);
    for (uint32_t s = 0; s < part.store_count; s++)
        buffers |= UINT64_C(1) << part.stores[s].buffer;
    emitter_init(emitter, context, "cpu_plain", what, buffers);
}

uint32_t ordered_temporary(struct emitter *emitter, uint32_t temporary, enum dtype dtype, const char *label)
{
    const struct kernel_memory memory = {.space = MEMORY_GLOBAL,
                                         .dtype = dtype,
                                         .label = label,
                                         .alignment = dtype_bits(dtype) / 8,
                                         .read = true};
    const uint32_t number = kernel_memory_add(emitter->kernel, &memory);
    emitter->arguments[number] = (struct argument){ARGUMENT_TEMPORARY, temporary};
    return number;
}

uint32_t ordered_temporary_new(const struct strategy_context *context, struct lowered_group *out,
                               enum dtype dtype, dim elements)
{
    const struct temporary temporary = {.type = tensor_type_new(context->arena, dtype, 1, &elements)};
    vec_push(context->arena, &out->temporaries, temporary);
    return out->temporaries.count - 1;
}

dim ordered_rows(const struct strategy_context *context, const struct nest *nest)
{
    struct dims *dims = context->group->body.pool->dims;
    dim rows = dim_constant(dims, 1);
    for (uint32_t i = 0; i < nest->rank; i++)
        rows = dim_mul(dims, rows, nest->extents[i]);
    return rows;
}

expr ordered_row(struct emitter *emitter, const struct nest *nest)
{
    struct exprs *pool = emitter->kernel->pool;
    expr row = expr_index(pool, 0);
    for (uint32_t i = 0; i < nest->rank; i++)
        row = expr_binary(pool, EXPR_ADD,
                          expr_binary(pool, EXPR_MUL, row, kernel_dim(emitter->kernel, nest->extents[i])),
                          emitter->axes[i]);
    return row;
}

void ordered_end(struct emitter *emitter, const struct nest *nest, struct lowered_group *out)
{
    const struct strategy_context *context = emitter->context;
    struct dims *dims = context->group->body.pool->dims;
    const dim points = dim_mul(dims, ordered_rows(context, nest), nest->extents[nest->rank]);
    if (points) {
        emitter->kernel->operations = dim_mul(dims, points, dim_constant(dims, 4));
        emitter->kernel->bytes = dim_mul(dims, points, dim_constant(dims, 8));
    }
    vec_push(context->arena, &out->launches, emitter_launch(emitter));
}

double cpu_ordered_seconds(const struct strategy_context *context, uint32_t number)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    const double points = (double)hinted(context->group->body.pool->dims, nest->extents, nest->rank + 1);
    return points * (nest->kind == NEST_SORT ? 3e-8 : 2e-9);
}

/* ---- columns and rows
 * ------------------------------------------------------------------------------------------------ */

/* The stores run through memory along the last parallel axis. */
static bool runs_across(const struct strategy_context *context, const struct flat_nest *flat)
{
    return flat->rank > 0 &&
           dim_hint(context->group->body.pool->dims, flat->extents[flat->rank - 1]) >= WIDE &&
           has_unit_store(flat, flat->rank - 1);
}

static void build_columns(const struct strategy_context *context, uint32_t number,
                          const struct flat_nest *flat, struct lowered_group *out)
{
    const uint32_t vector = flat->rank - 1, along = flat->rank;
    struct emitter emitter;
    struct block top, body, inner;
    uint32_t axes[MAX_AXES], sums[MAX_BUFFERS];
    ordered_begin(&emitter, context, number, true, true, "scan by columns");
    struct kernel *kernel = emitter.kernel;
    for (uint32_t i = 0; i < vector; i++)
        axes[i] = i;
    top = (struct block){.kernel = kernel, .at = &kernel->body};
    emit_parallel(&emitter, &top, flat, vector, axes, vector, COLUMN_CHUNK, &body);
    emit_axis(&emitter, &body, flat, vector, LOOP_VECTORISE, &inner);
    expr at = expr_binary(kernel->pool, EXPR_SUB, emitter.axes[vector], emitter.chunk_begin);
    for (uint32_t r = 0; r < flat->reduction_count; r++) {
        const enum dtype dtype = expr_at(flat->definition->pool, flat->reductions[r].body)->dtype;
        const struct kernel_memory memory = {
            .space = MEMORY_SCRATCH, .dtype = dtype, .count = COLUMN_CHUNK, .label = "sums"};
        sums[r] = kernel_memory_add(kernel, &memory);
        build_store(&inner, sums[r], at, reduce_neutral(kernel->pool, flat->reductions[r].op, dtype));
    }
    emit_axis(&emitter, &body, flat, along, LOOP_SERIAL, &inner);
    body = inner;
    emit_axis(&emitter, &body, flat, vector, LOOP_VECTORISE, &inner);
    at = expr_binary(kernel->pool, EXPR_SUB, emitter.axes[vector], emitter.chunk_begin);
    for (uint32_t r = 0; r < flat->reduction_count; r++) {
        const expr value = lower_expr(&emitter.lowering, flat->reductions[r].body);
        emitter.reduced[r] = build_declare(&inner, "sum",
                                           reduce_combine(kernel->pool, flat->reductions[r].op,
                                                        kernel_element(kernel, sums[r], at, 1), value));
        build_store(&inner, sums[r], at, emitter.reduced[r]);
    }
    emit_stores(&emitter, &inner, flat);
    ordered_end(&emitter, &context->group->body.nests.items[number], out);
}

/* The ordered axis, or a block of it, from the sums `from` on. */
static void scan_along(struct emitter *emitter, struct block *body, const struct flat_nest *flat,
                       const expr *from)
{
    struct kernel *kernel = emitter->kernel;
    uint32_t variables[MAX_BUFFERS];
    struct block inner;
    for (uint32_t r = 0; r < flat->reduction_count; r++)
        variables[r] = build_mutable(body, "sum", from[r]);
    emit_axis(emitter, body, flat, flat->rank, LOOP_SERIAL, &inner);
    for (uint32_t r = 0; r < flat->reduction_count; r++) {
        const expr value = lower_expr(&emitter->lowering, flat->reductions[r].body);
        emitter->reduced[r] = kernel_variable(kernel, variables[r]);
        build_assign(&inner, variables[r],
                     reduce_combine(kernel->pool, flat->reductions[r].op, emitter->reduced[r], value));
    }
    emit_stores(emitter, &inner, flat);
}

static void neutral_sums(const struct emitter *emitter, const struct flat_nest *flat, expr *from)
{
    for (uint32_t r = 0; r < flat->reduction_count; r++)
        from[r] = reduce_neutral(emitter->kernel->pool, flat->reductions[r].op,
                               expr_at(flat->definition->pool, flat->reductions[r].body)->dtype);
}

static void build_rows(const struct strategy_context *context, uint32_t number, const struct flat_nest *flat,
                       struct lowered_group *out)
{
    struct emitter emitter;
    struct block body;
    uint32_t axes[MAX_AXES];
    expr from[MAX_BUFFERS];
    ordered_begin(&emitter, context, number, true, true, "scan by rows");
    for (uint32_t i = 0; i < flat->rank; i++)
        axes[i] = i;
    struct block top = {.kernel = emitter.kernel, .at = &emitter.kernel->body};
    emit_parallel(&emitter, &top, flat, flat->rank, axes, NO_AXIS, 0, &body);
    neutral_sums(&emitter, flat, from);
    scan_along(&emitter, &body, flat, from);
    ordered_end(&emitter, &context->group->body.nests.items[number], out);
}

/* ---- blocks
 * -------------------------------------------------------------------------------------------------------- */

struct blocks {
    const struct strategy_context *context;
    uint32_t number;
    const struct flat_nest *flat;
    dim count; /* of a row */
    uint32_t temporaries[MAX_BUFFERS];
    struct lowered_group *out;
};

/* The totals of every block, or the stores of every block from its offset. */
static void build_block_pass(struct blocks *b, bool store)
{
    const struct flat_nest *flat = b->flat;
    const struct nest *nest = &b->context->group->body.nests.items[b->number];
    struct emitter emitter;
    struct block body;
    uint32_t axes[MAX_AXES], totals[MAX_BUFFERS];
    expr from[MAX_BUFFERS];
    ordered_begin(&emitter, b->context, b->number, true, store,
                  store ? "scan of blocks" : "totals of blocks");
    struct kernel *kernel = emitter.kernel;
    struct exprs *pool = kernel->pool;
    for (uint32_t r = 0; r < flat->reduction_count; r++)
        totals[r] =
            ordered_temporary(&emitter, b->temporaries[r],
                              expr_at(flat->definition->pool, flat->reductions[r].body)->dtype, "totals");
    for (uint32_t i = 0; i < flat->rank; i++)
        axes[i] = i;
    struct block top = {.kernel = kernel, .at = &kernel->body};
    emit_parallel(&emitter, &top, flat, flat->rank, axes, flat->rank, BLOCK, &body);
    const expr block = expr_binary(pool, EXPR_INDEX_DIV, emitter.chunk_begin, expr_index(pool, BLOCK));
    const expr rows = expr_binary(pool, EXPR_MUL, ordered_row(&emitter, nest), kernel_dim(kernel, b->count));
    const expr at = build_declare(&body, "at", expr_binary(pool, EXPR_ADD, rows, block));
    if (store) {
        for (uint32_t r = 0; r < flat->reduction_count; r++)
            from[r] = kernel_element(kernel, totals[r], at, 1);
        scan_along(&emitter, &body, flat, from);
    } else {
        emit_row_sums(&emitter, &body, flat, flat->rank);
        for (uint32_t r = 0; r < flat->reduction_count; r++)
            build_store(&body, totals[r], at, emitter.reduced[r]);
    }
    ordered_end(&emitter, nest, b->out);
}

/* Totals become what stands before each block. */
static void build_offsets(struct blocks *b)
{
    const struct flat_nest *flat = b->flat;
    const struct nest *nest = &b->context->group->body.nests.items[b->number];
    struct emitter emitter;
    struct block body, inner;
    uint32_t axes[MAX_AXES], totals[MAX_BUFFERS], sums[MAX_BUFFERS];
    expr from[MAX_BUFFERS], block;
    emitter_init(&emitter, b->context, "cpu_plain", "offsets of blocks", 0);
    struct kernel *kernel = emitter.kernel;
    struct exprs *pool = kernel->pool;
    for (uint32_t r = 0; r < flat->reduction_count; r++)
        totals[r] =
            ordered_temporary(&emitter, b->temporaries[r],
                              expr_at(flat->definition->pool, flat->reductions[r].body)->dtype, "totals");
    for (uint32_t i = 0; i < flat->rank; i++)
        axes[i] = i;
    struct block top = {.kernel = kernel, .at = &kernel->body};
    emit_parallel(&emitter, &top, flat, flat->rank, axes, NO_AXIS, 0, &body);
    neutral_sums(&emitter, flat, from);
    for (uint32_t r = 0; r < flat->reduction_count; r++)
        sums[r] = build_mutable(&body, "sum", from[r]);
    const expr first = expr_binary(pool, EXPR_MUL, ordered_row(&emitter, nest), kernel_dim(kernel, b->count));
    build_for(&body, "block", expr_index(pool, 0), kernel_dim(kernel, b->count), 0, LOOP_SERIAL, &inner,
              &block);
    const expr at = expr_binary(pool, EXPR_ADD, first, block);
    for (uint32_t r = 0; r < flat->reduction_count; r++) {
        const expr total = build_declare(&inner, "total", kernel_element(kernel, totals[r], at, 1));
        build_store(&inner, totals[r], at, kernel_variable(kernel, sums[r]));
        build_assign(&inner, sums[r],
                     reduce_combine(pool, flat->reductions[r].op, kernel_variable(kernel, sums[r]), total));
    }
    vec_push(b->context->arena, &b->out->launches, emitter_launch(&emitter));
}

static void build_blocks(const struct strategy_context *context, uint32_t number,
                         const struct flat_nest *flat, dim totals, struct lowered_group *out)
{
    struct dims *dims = context->group->body.pool->dims;
    struct blocks b = {.context = context,
                       .number = number,
                       .flat = flat,
                       .count = dim_ceil_div(dims, flat->extents[flat->rank], dim_constant(dims, BLOCK)),
                       .out = out};
    for (uint32_t r = 0; r < flat->reduction_count; r++)
        b.temporaries[r] = ordered_temporary_new(
            context, out, expr_at(flat->definition->pool, flat->reductions[r].body)->dtype, totals);
    build_block_pass(&b, false);
    build_offsets(&b);
    build_block_pass(&b, true);
}

void cpu_build_scan(const struct strategy_context *context, uint32_t number, struct lowered_group *out)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct dims *dims = context->group->body.pool->dims;
    struct flat_nest flat;
    flat_nest_init(&flat, &context->group->body, number, 0);
    const dim count = dim_ceil_div(dims, flat.extents[flat.rank], dim_constant(dims, BLOCK));
    const dim totals = dim_mul(dims, ordered_rows(context, nest), count);
    if (runs_across(context, &flat))
        build_columns(context, number, &flat, out);
    else if (totals && hinted(dims, nest->extents, nest->rank) < ENOUGH_ROWS &&
             dim_hint(dims, nest->extents[nest->rank]) >= LONG_ROW)
        build_blocks(context, number, &flat, totals, out);
    else
        build_rows(context, number, &flat, out);
}
