/* Writing one nest into a CPU kernel (emit.h). Loops are left to LLVM to vectorise: the innermost one runs
 * along the vector axis and its iterations are independent. Rows are vectors that are written out. */
#include "codegen/strategy/cpu/emit.h"

#include <math.h>
#include <string.h>

enum { MAX_UNROLLED_POINTS = 64, MAX_UNROLLED_COST = 2000, FEW_VECTORS = 4 };
enum { SUM_BLOCK = 32 }; /* points that are added to one accumulator before it joins the sum */

/* ---- the kernel
 * -------------------------------------------------------------------------------------------------- */

static expr local_value(void *user, uint32_t buffer, uint32_t rank, const expr *indices)
{
    const struct emitter *emitter = user;
    const struct local *local = &emitter->locals[buffer];
    (void)rank;
    (void)indices; /* the strategy has made sure that they are the row that is being worked on */
    if (local->value)
        return local->value;
    struct exprs *pool = emitter->kernel->pool;
    const expr at = expr_binary(pool, EXPR_SUB, emitter->axes[emitter->chunk_axis], emitter->chunk_begin);
    return kernel_element(emitter->kernel, local->memory, at, 1);
}

static uint32_t bits_to_bytes(enum dtype dtype)
{
    return dtype_bits(dtype) / 8;
}

void emitter_init(struct emitter *emitter, const struct strategy_context *context, const char *strategy,
                  const char *config, uint64_t buffers)
{
    const struct definition *body = &context->group->body;
    memset(emitter, 0, sizeof *emitter);
    emitter->context = context;
    emitter->kernel = kernel_new(context->arena, body->pool->dims);
    emitter->kernel->strategy = strategy;
    emitter->kernel->config = config;
    emitter->kernel->location = context->group->location;
    emitter->kernel->bytes = emitter->kernel->operations = dim_constant(body->pool->dims, 0);
    emitter->chunk_axis = NO_AXIS;
    for (uint32_t i = 0; i < body->buffers.count; i++) {
        emitter->memories[i] = UINT32_MAX;
        if (!(buffers >> i & 1))
            continue;
        const struct tensor_type *type = &body->buffers.items[i].type;
        const struct kernel_memory memory = {
            .space = MEMORY_GLOBAL,
            .dtype = type->dtype,
            .label = arena_printf(context->arena, "b%u", (unsigned)i),
            .alignment = bits_to_bytes(type->dtype),
        };
        emitter->memories[i] = kernel_memory_add(emitter->kernel, &memory);
        emitter->arguments[emitter->memories[i]] = (struct argument){ARGUMENT_BUFFER, i};
    }
    emitter->lowering = (struct lowering){
        .kernel = emitter->kernel,
        .definition = body,
        .memories = emitter->memories,
        .axes = emitter->axes,
        .reduced = emitter->reduced,
        .value = local_value,
        .user = emitter,
    };
}

void emitter_reset(struct emitter *emitter)
{
    memset(emitter->axes, 0, sizeof emitter->axes);
}

struct kernel_launch emitter_launch(const struct emitter *emitter)
{
    return (struct kernel_launch){.kernel = emitter->kernel,
                                  .arguments =
                                      arena_copy(emitter->context->arena, emitter->arguments,
                                                 emitter->kernel->global_count * sizeof *emitter->arguments)};
}

/* ---- choosing a form
 * --------------------------------------------------------------------------------------------- */

static bool is_fixed(uint32_t fixed, uint32_t axis)
{
    return fixed >> axis & 1;
}

/* An axis too short for a vector counts as one more bad access. */
static uint32_t badness(const struct flat_nest *nest, uint32_t axis)
{
    const struct access_count count = count_accesses(nest, axis);
    const int64_t length = hinted(nest->definition->pool->dims, &nest->extents[axis], 1);
    return 2 * count.bad + count.guarded + (length < 4 ? 4 : length < 8 ? 1 : 0);
}

/* The last axis wins where several are equal: it is the one that the definition thinks of as contiguous. */
static struct nest_form best_axis(const struct flat_nest *nest, enum nest_form_kind kind, uint32_t from,
                                  uint32_t to, uint32_t fixed)
{
    struct nest_form form = {.kind = kind, .vector = NO_AXIS, .bad = UINT32_MAX};
    for (uint32_t axis = to; axis > from; axis--) {
        if (is_fixed(fixed, axis - 1))
            continue;
        const uint32_t bad = badness(nest, axis - 1);
        if (bad < form.bad)
            form = (struct nest_form){kind, axis - 1, bad};
    }
    return form;
}

/* The guarded load that a reduction is over, alone or converted: what it gives outside its buffer must be
 * neutral. */
static const struct expr_node *window_load(const struct flat_nest *nest)
{
    struct exprs *pool = nest->definition->pool;
    if (nest->reduction_count != 1)
        return NULL;
    const struct reduction *reduction = &nest->reductions[0];
    const enum dtype dtype = expr_at(pool, reduction->body)->dtype;
    expr load = reduction->body;
    if (expr_at(pool, load)->op == EXPR_CONVERT)
        load = expr_at(pool, load)->arguments[0];
    const struct expr_node *node = expr_at(pool, load);
    if (node->op != EXPR_LOAD_OR || nest->kept >> node->value & 1)
        return NULL;
    const expr otherwise = expr_convert(pool, dtype, node->arguments[node->count - 1]);
    return otherwise == reduce_neutral(pool, reduction->op, dtype) ? expr_at(pool, load) : NULL;
}

/* Every index goes up evenly along the axis, or not at all. */
static bool window_along(const struct flat_nest *nest, const struct expr_node *load, uint32_t axis)
{
    if (!load || axis == NO_AXIS)
        return false;
    for (uint32_t i = 0; i + 1 < load->count; i++)
        if (index_stride(nest->definition->pool, load->arguments[i], axis) < 0)
            return false;
    return true;
}

static bool may_unroll(const struct flat_nest *nest)
{
    const struct dims *dims = nest->definition->pool->dims;
    const int64_t points = constant_points(dims, nest->extents + nest->rank, nest->reduce_rank);
    return points >= 0 && points <= MAX_UNROLLED_POINTS &&
           points * ((int64_t)body_cost(nest) + FEW_VECTORS) <= MAX_UNROLLED_COST;
}

struct nest_form choose_form(const struct flat_nest *nest, uint32_t fixed, bool allow_column)
{
    const struct dims *dims = nest->definition->pool->dims;
    if (!nest->reduction_count)
        return best_axis(nest, FORM_MAP, 0, nest->rank, fixed);
    const struct nest_form row = best_axis(nest, FORM_ROW, nest->rank, nest->rank + nest->reduce_rank, 0);
    const struct nest_form unroll = best_axis(nest, FORM_UNROLL, 0, nest->rank, fixed);
    if (unroll.vector == NO_AXIS)
        return row;
    const int64_t points = hinted(dims, nest->extents + nest->rank, nest->reduce_rank);
    int64_t extent;
    const bool bounded = allow_column || (dim_is_constant(dims, nest->extents[unroll.vector], &extent) &&
                                          extent > 0 && extent <= COLUMN_CHUNK);
    if (bounded && window_along(nest, window_load(nest), unroll.vector))
        return (struct nest_form){FORM_WINDOW, unroll.vector, 0};
    if (may_unroll(nest) && (unroll.bad <= row.bad || points < 16))
        return unroll;
    struct nest_form column = unroll;
    column.kind = FORM_COLUMN;
    return column.bad < row.bad && bounded ? column : row;
}

/* ---- loops
 * ------------------------------------------------------------------------------------------------------- */

void emit_axis(struct emitter *emitter, struct block *block, const struct flat_nest *nest, uint32_t axis,
               enum loop_kind loop, struct block *body)
{
    struct kernel *kernel = emitter->kernel;
    const bool chunked = axis == emitter->chunk_axis;
    const expr begin = chunked ? emitter->chunk_begin : expr_index(kernel->pool, 0);
    const expr end = chunked ? emitter->chunk_end : kernel_dim(kernel, nest->extents[axis]);
    const struct statement *statement =
        build_for(block, "i", begin, end, 0, loop, body, &emitter->axes[axis]);
    kernel->variables.items[statement->variable].extent = nest->extents[axis];
    emitter->axes[axis] = kernel_variable(kernel, statement->variable);
}

/* Splits the parallel loop's counter into its parts, the last one fastest. */
static void split_counter(struct emitter *emitter, struct block *body, expr counter, uint32_t count,
                          const dim *extents, expr *parts)
{
    struct exprs *pool = emitter->kernel->pool;
    for (uint32_t i = count; i > 0; i--) {
        const expr size = kernel_dim(emitter->kernel, extents[i - 1]);
        const expr part = i == 1 ? counter : expr_binary(pool, EXPR_INDEX_MOD, counter, size);
        if (i > 1)
            counter = build_declare(body, "rest", expr_binary(pool, EXPR_INDEX_DIV, counter, size));
        parts[i - 1] = build_declare(body, "part", part);
        /* The quotient of a symbolic range is known by name only here. */
        const struct expr_node *node = expr_at(pool, parts[i - 1]);
        if (node->op == EXPR_VARIABLE) {
            const uint32_t variable = (uint32_t)node->value;
            emitter->kernel->variables.items[variable].extent = extents[i - 1];
            parts[i - 1] = kernel_variable(emitter->kernel, variable);
        }
    }
}

/* The range of one chunk that starts at `begin`. */
static void set_chunk(struct emitter *emitter, struct block *body, const struct flat_nest *nest,
                      uint32_t axis, expr begin, int64_t length)
{
    struct exprs *pool = emitter->kernel->pool;
    const expr end = expr_binary(pool, EXPR_MIN, expr_binary(pool, EXPR_ADD, begin, expr_index(pool, length)),
                                 kernel_dim(emitter->kernel, nest->extents[axis]));
    emitter->chunk_axis = axis;
    emitter->chunk_begin = begin;
    emitter->chunk_end = build_declare(body, "end", end);
    emitter->chunk = length;
}

/* The number of points is beyond what dims can say: loops, and one worker. */
static void emit_serial(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                        uint32_t count, const uint32_t *axes, uint32_t chunk_axis, int64_t chunk,
                        struct block *body)
{
    struct exprs *pool = emitter->kernel->pool;
    struct block outer = *block;
    *body = outer;
    for (uint32_t i = 0; i < count; i++) {
        emit_axis(emitter, &outer, nest, axes[i], LOOP_SERIAL, body);
        outer = *body;
    }
    if (chunk <= 0)
        return;
    expr begin;
    build_for(&outer, "begin", expr_index(pool, 0), kernel_dim(emitter->kernel, nest->extents[chunk_axis]),
              expr_index(pool, chunk), LOOP_SERIAL, body, &begin);
    set_chunk(emitter, body, nest, chunk_axis, begin, chunk);
}

void emit_parallel(struct emitter *emitter, struct block *block, const struct flat_nest *nest, uint32_t count,
                   const uint32_t *axes, uint32_t chunk_axis, int64_t chunk, struct block *body)
{
    struct kernel *kernel = emitter->kernel;
    struct dims *dims = kernel->pool->dims;
    dim extents[MAX_AXES + 1], total = dim_constant(dims, 1);
    expr counter, parts[MAX_AXES + 1];
    uint32_t parts_count = 0;
    for (uint32_t i = 0; i < count; i++)
        extents[parts_count++] = nest->extents[axes[i]];
    if (chunk > 0)
        extents[parts_count++] = dim_ceil_div(dims, nest->extents[chunk_axis], dim_constant(dims, chunk));
    for (uint32_t i = 0; i < parts_count; i++)
        total = dim_mul(dims, total, extents[i]);
    if (!parts_count || total == DIM_NONE) {
        emit_serial(emitter, block, nest, count, axes, chunk_axis, chunk, body);
        return;
    }
    build_for(block, "item", expr_index(kernel->pool, 0), kernel_dim(kernel, total), 0, LOOP_PARALLEL, body,
              &counter);
    split_counter(emitter, body, counter, parts_count, extents, parts);
    for (uint32_t i = 0; i < count; i++)
        emitter->axes[axes[i]] = parts[i];
    if (chunk > 0) {
        const expr begin = expr_binary(kernel->pool, EXPR_MUL, parts[count], expr_index(kernel->pool, chunk));
        set_chunk(emitter, body, nest, chunk_axis, build_declare(body, "begin", begin), chunk);
    }
}

/* ---- stores
 * ------------------------------------------------------------------------------------------------------ */

static expr chunk_position(const struct emitter *emitter, uint32_t axis)
{
    const expr at = emitter->axes[axis];
    return axis == emitter->chunk_axis
               ? expr_binary(emitter->kernel->pool, EXPR_SUB, at, emitter->chunk_begin)
               : at;
}

void emit_stores(struct emitter *emitter, struct block *block, const struct flat_nest *nest)
{
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const struct nest_store *store = &nest->stores[i];
        struct local *local = &emitter->locals[store->buffer];
        const expr value = lower_expr(&emitter->lowering, store->value);
        if (!local->used) {
            const expr index = lower_expr(&emitter->lowering, store->indices[0]);
            struct block where = *block;
            if (store->condition)
                build_if(block, lower_expr(&emitter->lowering, store->condition), &where, NULL);
            build_store(&where, emitter->memories[store->buffer], index, value);
        } else if (local->memory != UINT32_MAX) {
            build_store(block, local->memory, chunk_position(emitter, emitter->chunk_axis), value);
        } else {
            local->value = build_declare(block, "row", value);
        }
    }
}

/* ---- reductions
 * -------------------------------------------------------------------------------------------------- */

static enum dtype accumulator_type(const struct flat_nest *nest, uint32_t reduction)
{
    return expr_at(nest->definition->pool, nest->reductions[reduction].body)->dtype;
}

/* Variables that start neutral. */
static void declare_accumulators(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                                 uint32_t *variables)
{
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        variables[r] = build_mutable(
            block, "sum",
            reduce_neutral(emitter->kernel->pool, nest->reductions[r].op, accumulator_type(nest, r)));
}

static void accumulate(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                       const uint32_t *variables)
{
    struct kernel *kernel = emitter->kernel;
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        build_assign(block, variables[r],
                     reduce_combine(kernel->pool, nest->reductions[r].op,
                                    kernel_variable(kernel, variables[r]),
                                    lower_expr(&emitter->lowering, nest->reductions[r].body)));
}

static void read_accumulators(struct emitter *emitter, const struct flat_nest *nest,
                              const uint32_t *variables)
{
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        emitter->reduced[r] = kernel_variable(emitter->kernel, variables[r]);
}

/* Loops over the reduced axes `from` .. `to`, both of the nest's count. */
static struct block open_reduced(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                                 uint32_t from, uint32_t to)
{
    struct block inner = *block, next;
    for (uint32_t axis = from; axis < to; axis++) {
        emit_axis(emitter, &inner, nest, axis, LOOP_SERIAL, &next);
        inner = next;
    }
    return inner;
}

/* One after the other. */
static void emit_in_order(struct emitter *emitter, struct block *block, const struct flat_nest *nest)
{
    uint32_t variables[MAX_BUFFERS];
    declare_accumulators(emitter, block, nest, variables);
    struct block inner = open_reduced(emitter, block, nest, nest->rank, nest->rank + nest->reduce_rank);
    accumulate(emitter, &inner, nest, variables);
    read_accumulators(emitter, nest, variables);
    emit_stores(emitter, block, nest);
}

static void emit_unrolled(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                          uint32_t vector)
{
    uint32_t variables[MAX_BUFFERS];
    struct block body, inner, next;
    emit_axis(emitter, block, nest, vector, LOOP_VECTORISE, &body);
    declare_accumulators(emitter, &body, nest, variables);
    inner = body;
    for (uint32_t axis = nest->rank; axis < nest->rank + nest->reduce_rank; axis++) {
        emit_axis(emitter, &inner, nest, axis, LOOP_UNROLL, &next);
        inner = next;
    }
    accumulate(emitter, &inner, nest, variables);
    read_accumulators(emitter, nest, variables);
    emit_stores(emitter, &body, nest);
}

static int64_t column_length(const struct emitter *emitter, const struct flat_nest *nest, uint32_t vector)
{
    int64_t extent = COLUMN_CHUNK;
    if (vector == emitter->chunk_axis)
        return emitter->chunk;
    dim_is_constant(emitter->kernel->pool->dims, nest->extents[vector], &extent);
    return extent;
}

/* Scratch accumulators along the vector axis, all neutral. */
static void clear_sums(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                       uint32_t vector, uint32_t *sums)
{
    struct kernel *kernel = emitter->kernel;
    const int64_t length = column_length(emitter, nest, vector);
    struct block body;
    emit_axis(emitter, block, nest, vector, LOOP_VECTORISE, &body);
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        const enum dtype dtype = accumulator_type(nest, r);
        const struct kernel_memory memory = {
            .space = MEMORY_SCRATCH, .dtype = dtype, .count = length, .label = "sums"};
        sums[r] = kernel_memory_add(kernel, &memory);
        build_store(&body, sums[r], chunk_position(emitter, vector),
                    reduce_neutral(kernel->pool, nest->reductions[r].op, dtype));
    }
}

static void add_to_sum(struct emitter *emitter, struct block *body, const struct flat_nest *nest,
                       uint32_t vector, uint32_t reduction, uint32_t memory, expr value)
{
    struct kernel *kernel = emitter->kernel;
    const expr at = chunk_position(emitter, vector), sum = kernel_element(kernel, memory, at, 1);
    build_store(body, memory, at, reduce_combine(kernel->pool, nest->reductions[reduction].op, sum, value));
}

static void store_sums(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                       uint32_t vector, const uint32_t *sums)
{
    struct block body;
    emit_axis(emitter, block, nest, vector, LOOP_VECTORISE, &body);
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        emitter->reduced[r] = kernel_element(emitter->kernel, sums[r], chunk_position(emitter, vector), 1);
    emit_stores(emitter, &body, nest);
}

/* The innermost reduced axis that is long, where rounding gathers along it; NO_AXIS: none. */
static uint32_t long_sum_axis(const struct flat_nest *nest)
{
    bool rounds = false;
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        rounds =
            rounds || (nest->reductions[r].op == REDUCE_SUM && dtype_is_float(accumulator_type(nest, r)));
    for (uint32_t axis = nest->rank + nest->reduce_rank; rounds && axis > nest->rank; axis--)
        if (hinted(nest->definition->pool->dims, &nest->extents[axis - 1], 1) > SUM_BLOCK)
            return axis - 1;
    return NO_AXIS;
}

static void add_bodies(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                       uint32_t vector, const uint32_t *sums)
{
    struct block body;
    emit_axis(emitter, block, nest, vector, LOOP_VECTORISE, &body);
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        add_to_sum(emitter, &body, nest, vector, r, sums[r],
                   lower_expr(&emitter->lowering, nest->reductions[r].body));
}

/* A long sum is one of short sums: added one by one, equal addends round the same way each time, and the
 * error grows with their count. */
static void add_in_blocks(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                          uint32_t vector, uint32_t axis, const uint32_t *sums)
{
    struct kernel *kernel = emitter->kernel;
    struct exprs *pool = kernel->pool;
    uint32_t partial[MAX_BUFFERS];
    const uint32_t end_of_axes = nest->rank + nest->reduce_rank;
    const bool chunked = axis == emitter->chunk_axis;
    const expr first = chunked ? emitter->chunk_begin : expr_index(pool, 0);
    const expr last = chunked ? emitter->chunk_end : kernel_dim(kernel, nest->extents[axis]);
    const expr length = expr_index(pool, SUM_BLOCK);
    struct block inner = open_reduced(emitter, block, nest, nest->rank, axis), body, next;
    expr begin;
    build_for(&inner, "begin", first, last, length, LOOP_SERIAL, &body, &begin);
    const expr end = build_declare(
        &body, "end", expr_binary(pool, EXPR_MIN, expr_binary(pool, EXPR_ADD, begin, length), last));
    clear_sums(emitter, &body, nest, vector, partial);
    const struct statement *statement =
        build_for(&body, "i", begin, end, 0, LOOP_SERIAL, &next, &emitter->axes[axis]);
    kernel->variables.items[statement->variable].extent = nest->extents[axis];
    emitter->axes[axis] = kernel_variable(kernel, statement->variable);
    next = open_reduced(emitter, &next, nest, axis + 1, end_of_axes);
    add_bodies(emitter, &next, nest, vector, partial);
    emit_axis(emitter, &body, nest, vector, LOOP_VECTORISE, &next);
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        add_to_sum(emitter, &next, nest, vector, r, sums[r],
                   kernel_element(kernel, partial[r], chunk_position(emitter, vector), 1));
}

void emit_column_sums(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                      uint32_t vector, uint32_t *sums)
{
    const uint32_t axis = long_sum_axis(nest);
    clear_sums(emitter, block, nest, vector, sums);
    if (axis != NO_AXIS) {
        add_in_blocks(emitter, block, nest, vector, axis, sums);
    } else {
        struct block inner = open_reduced(emitter, block, nest, nest->rank, nest->rank + nest->reduce_rank);
        add_bodies(emitter, &inner, nest, vector, sums);
    }
}

static void emit_column(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                        uint32_t vector)
{
    uint32_t sums[MAX_BUFFERS];
    emit_column_sums(emitter, block, nest, vector, sums);
    store_sums(emitter, block, nest, vector, sums);
}

/* Cuts [begin, end) to where 0 <= index < size. The index is first + stride * axis; a stride of 0 gives a
 * condition. */
static void cut_range(struct emitter *emitter, const struct flat_nest *nest, expr index, uint32_t vector,
                      dim size, expr *begin, expr *end, expr *condition)
{
    struct exprs *pool = emitter->kernel->pool;
    const int64_t stride = index_stride(nest->definition->pool, index, vector);
    const expr zero = expr_index(pool, 0), limit = kernel_dim(emitter->kernel, size);
    emitter->axes[vector] = zero;
    const expr first = lower_expr(&emitter->lowering, index);
    if (stride == 0) {
        *condition = expr_binary(pool, EXPR_AND, *condition, expr_binary(pool, EXPR_LESS_EQUAL, zero, first));
        *condition = expr_binary(pool, EXPR_AND, *condition, expr_binary(pool, EXPR_LESS, first, limit));
        return;
    }
    const expr step = expr_index(pool, stride), round = expr_index(pool, stride - 1);
    const expr below = expr_binary(pool, EXPR_MAX, expr_binary(pool, EXPR_SUB, zero, first), zero);
    const expr above = expr_binary(pool, EXPR_MAX, expr_binary(pool, EXPR_SUB, limit, first), zero);
    const expr low = expr_binary(pool, EXPR_INDEX_DIV, expr_binary(pool, EXPR_ADD, below, round), step);
    const expr high = expr_binary(pool, EXPR_INDEX_DIV, expr_binary(pool, EXPR_ADD, above, round), step);
    *begin = expr_binary(pool, EXPR_MAX, *begin, low);
    *end = expr_binary(pool, EXPR_MIN, *end, high);
}

static void emit_window(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                        uint32_t vector)
{
    struct kernel *kernel = emitter->kernel;
    struct exprs *from = nest->definition->pool, *pool = kernel->pool;
    const struct expr_node load = *window_load(nest);
    const struct tensor_type *type = &nest->definition->buffers.items[load.value].type;
    const bool chunked = vector == emitter->chunk_axis;
    uint32_t sums[1];
    clear_sums(emitter, block, nest, vector, sums);
    struct block body;
    struct block inner = open_reduced(emitter, block, nest, nest->rank, nest->rank + nest->reduce_rank);
    expr begin = chunked ? emitter->chunk_begin : expr_index(pool, 0);
    expr end = chunked ? emitter->chunk_end : kernel_dim(kernel, nest->extents[vector]);
    expr condition = expr_int(pool, DTYPE_BOOL, 1), run;
    for (int i = 0; i < type->rank; i++)
        cut_range(emitter, nest, load.arguments[i], vector, type->dims[i], &begin, &end, &condition);
    int64_t always;
    if (!expr_constant_int(pool, condition, &always) || !always) {
        build_if(&inner, condition, &body, NULL);
        inner = body;
    }
    const struct statement *statement = build_for(&inner, "i", begin, end, 0, LOOP_VECTORISE, &body, &run);
    kernel->variables.items[statement->variable].extent = nest->extents[vector];
    emitter->axes[vector] = kernel_variable(kernel, statement->variable);
    const expr flat = flat_index(from, type, load.arguments);
    const expr inside = expr_convert(from, accumulator_type(nest, 0),
                                     expr_load(from, (uint32_t)load.value, load.dtype, 1, &flat));
    add_to_sum(emitter, &body, nest, vector, 0, sums[0], lower_expr(&emitter->lowering, inside));
    store_sums(emitter, block, nest, vector, sums);
}

void emit_nest(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
               struct nest_form form)
{
    struct block inner = *block, next;
    for (uint32_t axis = 0; axis < nest->rank; axis++)
        if (!emitter->axes[axis] && (form.kind == FORM_ROW || axis != form.vector)) {
            emit_axis(emitter, &inner, nest, axis, LOOP_SERIAL, &next);
            inner = next;
        }
    switch (form.kind) {
    case FORM_MAP:
        if (form.vector != NO_AXIS) {
            emit_axis(emitter, &inner, nest, form.vector, LOOP_VECTORISE, &next);
            inner = next;
        }
        emit_stores(emitter, &inner, nest);
        break;
    case FORM_ROW:
        if (form.vector == NO_AXIS) {
            emit_in_order(emitter, &inner, nest);
        } else {
            emit_row_sums(emitter, &inner, nest, form.vector);
            emit_stores(emitter, &inner, nest);
        }
        break;
    case FORM_UNROLL:
        emit_unrolled(emitter, &inner, nest, form.vector);
        break;
    case FORM_COLUMN:
        emit_column(emitter, &inner, nest, form.vector);
        break;
    case FORM_WINDOW:
        emit_window(emitter, &inner, nest, form.vector);
        break;
    }
}

/* ---- figures
 * ----------------------------------------------------------------------------------------------------- */

static dim product_of(struct dims *dims, const dim *extents, uint32_t count, int64_t factor)
{
    dim product = dim_constant(dims, factor);
    for (uint32_t i = 0; i < count; i++)
        product = dim_mul(dims, product, extents[i]);
    return product;
}

static dim add_known(struct dims *dims, dim a, dim b)
{
    const dim sum = dim_add(dims, a, b);
    return sum == DIM_NONE ? a : sum;
}

void emit_figures(struct emitter *emitter, const struct flat_nest *nest)
{
    struct kernel *kernel = emitter->kernel;
    struct dims *dims = kernel->pool->dims;
    const dim bodies = product_of(dims, nest->extents, nest->rank + nest->reduce_rank, body_cost(nest));
    kernel->operations = add_known(dims, kernel->operations, bodies);
    kernel->operations =
        add_known(dims, kernel->operations, product_of(dims, nest->extents, nest->rank, store_cost(nest)));
    dim bytes = dim_constant(dims, 0);
    for (uint32_t i = 0; i < kernel->global_count; i++) {
        const struct tensor_type *type = &nest->definition->buffers.items[emitter->arguments[i].index].type;
        bytes = add_known(
            dims, bytes,
            dim_mul(dims, tensor_elements(dims, type), dim_constant(dims, bits_to_bytes(type->dtype))));
    }
    kernel->bytes = bytes;
}

double nest_seconds(const struct strategy_context *context, const struct flat_nest *nest,
                    struct nest_form form)
{
    const struct dims *dims = nest->definition->pool->dims;
    const struct machine *machine = context->machine;
    const double points = (double)hinted(dims, nest->extents, nest->rank);
    const double bodies = points * (double)hinted(dims, nest->extents + nest->rank, nest->reduce_rank);
    const double operations = bodies * body_cost(nest) + points * store_cost(nest);
    /* Vectors reach a quarter of the peak on plain loops, single elements a thirtieth. */
    const double speed = machine->fp32_per_second / (form.bad ? 30 : 4);
    const double accesses = (nest->reduction_count ? bodies : 0) + points;
    const double bytes = accesses * 4;
    const double memory = bytes / machine->memory_bytes_per_second, compute = operations / speed;
    return (memory > compute ? memory : compute) * (form.bad ? 1.5 : 1);
}
