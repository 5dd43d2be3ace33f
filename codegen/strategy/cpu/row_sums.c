/* Reductions of a row (emit.h). The row is summed in lanes whose number hangs on the nest alone, so that
 * every machine adds in the same order, whatever the length of its vectors: whole vectors of many lanes, what
 * is left in vectors of few, the last elements by themselves. Then the lanes are folded in halves, each width
 * into the next. */
#include "codegen/strategy/cpu/emit.h"
#include "codegen/strategy/cpu/lanes.h"

struct row_part {
    uint16_t lanes;
    uint32_t variables[MAX_BUFFERS];
};
enum { ROW_PARTS = 3, FEW_LANES = 8, CHEAP_LANES = 32, COSTLY_LANES = 16, CHEAP_BODY = 8 };

static bool row_is_contiguous(struct emitter *emitter, const struct flat_nest *nest, uint32_t vector)
{
    /* The loops over the other reduced axes are not open yet; where they stand does not matter. */
    for (uint32_t axis = nest->rank; axis < nest->rank + nest->reduce_rank; axis++)
        emitter->axes[axis] = expr_index(emitter->kernel->pool, 0);
    emitter->axes[vector] = lane_axis(emitter->kernel, FEW_LANES);
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        if (!lane_loads_contiguous(emitter->kernel, lower_expr(&emitter->lowering, nest->reductions[r].body)))
            return false;
    return true;
}

/* The widths that the row's length can need. */
static uint32_t row_parts(struct emitter *emitter, const struct flat_nest *nest, uint32_t vector,
                          struct row_part *parts)
{
    const uint16_t most = body_cost(nest) <= CHEAP_BODY ? CHEAP_LANES : COSTLY_LANES;
    const uint16_t widths[ROW_PARTS] = {most, FEW_LANES, 1};
    int64_t length;
    const bool known = vector != emitter->chunk_axis &&
                       dim_is_constant(emitter->kernel->pool->dims, nest->extents[vector], &length);
    const bool contiguous = row_is_contiguous(emitter, nest, vector);
    uint32_t count = 0;
    for (int i = contiguous ? 0 : 1; i < ROW_PARTS; i++) {
        if (known && length < widths[i])
            continue;
        parts[count++].lanes = widths[i];
        if (known)
            length %= widths[i];
    }
    if (!count)
        parts[count++].lanes = 1;
    return count;
}

static void declare_part(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                         struct row_part *part)
{
    struct kernel *kernel = emitter->kernel;
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        const expr start = reduce_neutral(kernel->pool, nest->reductions[r].op,
                                        expr_at(nest->definition->pool, nest->reductions[r].body)->dtype);
        part->variables[r] = build_mutable(block, "sum", kernel_broadcast(kernel, start, part->lanes));
    }
}

/* Whole vectors of the part from `begin` on; returns where they end. */
static expr emit_part(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                      uint32_t vector, const struct row_part *part, expr begin, expr end)
{
    struct kernel *kernel = emitter->kernel;
    struct exprs *pool = kernel->pool;
    const expr lanes = expr_index(pool, part->lanes);
    expr stop = end, at;
    struct block body;
    if (part->lanes > 1) {
        const expr whole = expr_binary(pool, EXPR_INDEX_DIV, expr_binary(pool, EXPR_SUB, end, begin), lanes);
        stop = expr_binary(pool, EXPR_ADD, begin, expr_binary(pool, EXPR_MUL, whole, lanes));
        stop = build_declare(block, "stop", stop);
    }
    const struct statement *statement = build_for(block, "i", begin, stop, lanes, LOOP_SERIAL, &body, &at);
    kernel->variables.items[statement->variable].extent = nest->extents[vector];
    at = kernel_variable(kernel, statement->variable);
    emitter->axes[vector] =
        part->lanes > 1 ? expr_binary(pool, EXPR_ADD, at, lane_axis(kernel, part->lanes)) : at;
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        const expr value =
            lane_widen(kernel, lower_expr(&emitter->lowering, nest->reductions[r].body), part->lanes);
        build_assign(
            &body, part->variables[r],
            reduce_combine(pool, nest->reductions[r].op, kernel_variable(kernel, part->variables[r]), value));
    }
    return stop;
}

/* One half of a vector upon the other until so many lanes are left. */
static expr fold_lanes(struct emitter *emitter, struct block *block, enum reduce_op op, expr vector,
                       uint16_t lanes, uint16_t left)
{
    struct kernel *kernel = emitter->kernel;
    while (lanes > left) {
        expr halves[2][CHEAP_LANES / 2];
        lanes /= 2;
        for (uint16_t i = 0; i < lanes; i++) {
            halves[0][i] = kernel_lane(kernel, vector, i);
            halves[1][i] = kernel_lane(kernel, vector, (uint32_t)(lanes + i));
        }
        const expr low = kernel_pack(kernel, halves[0], lanes), high = kernel_pack(kernel, halves[1], lanes);
        vector = build_declare(block, "half", reduce_combine(kernel->pool, op, low, high));
    }
    return vector;
}

static void fold_parts(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                       const struct row_part *parts, uint32_t count)
{
    struct kernel *kernel = emitter->kernel;
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        const enum reduce_op op = nest->reductions[r].op;
        expr sum = kernel_variable(kernel, parts[0].variables[r]);
        for (uint32_t i = 1; i < count; i++) {
            sum = fold_lanes(emitter, block, op, sum, parts[i - 1].lanes, parts[i].lanes);
            sum = build_declare(
                block, "sum",
                reduce_combine(kernel->pool, op, sum, kernel_variable(kernel, parts[i].variables[r])));
        }
        emitter->reduced[r] = fold_lanes(emitter, block, op, sum, parts[count - 1].lanes, 1);
    }
}

void emit_row_sums(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                   uint32_t vector)
{
    struct row_part parts[ROW_PARTS];
    const bool chunked = vector == emitter->chunk_axis;
    expr begin = chunked ? emitter->chunk_begin : expr_index(emitter->kernel->pool, 0);
    const expr end = chunked ? emitter->chunk_end : kernel_dim(emitter->kernel, nest->extents[vector]);
    const uint32_t count = row_parts(emitter, nest, vector, parts);
    for (uint32_t i = 0; i < count; i++)
        declare_part(emitter, block, nest, &parts[i]);
    struct block inner = *block, next;
    for (uint32_t axis = nest->rank; axis < nest->rank + nest->reduce_rank; axis++)
        if (axis != vector) {
            emit_axis(emitter, &inner, nest, axis, LOOP_SERIAL, &next);
            inner = next;
        }
    for (uint32_t i = 0; i < count; i++)
        begin = emit_part(emitter, &inner, nest, vector, &parts[i], begin, end);
    fold_parts(emitter, block, nest, parts, count);
}
