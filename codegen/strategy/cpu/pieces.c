/* Reductions of few long rows on a CPU. One worker a row would leave the others idle, so a row is cut into
 * pieces of fixed length: a first kernel reduces every piece by itself, a second one the pieces of each row
 * in order. What is computed does not hang on the number of workers. */
#include "codegen/strategy/cpu/ordered.h"

enum { ENOUGH_ROWS = 16, LONG_ROW = 1 << 16, PIECE = 1 << 14 };

struct pieces {
    const struct strategy_context *context;
    const struct flat_nest *nest;
    struct nest_form form;
    uint32_t number, axis; /* the nest; the reduced axis that is cut */
    int64_t length;        /* of a piece along it */
    dim count;             /* pieces of a row */
    uint32_t temporaries[MAX_BUFFERS];
};

/* The longest reduced axis. */
static uint32_t longest_axis(const struct flat_nest *nest)
{
    const struct dims *dims = nest->definition->pool->dims;
    uint32_t best = nest->rank;
    for (uint32_t axis = nest->rank; axis < nest->rank + nest->reduce_rank; axis++)
        if (dim_hint(dims, nest->extents[axis]) > dim_hint(dims, nest->extents[best]))
            best = axis;
    return best;
}

static dim rows_of(const struct flat_nest *nest)
{
    struct dims *dims = nest->definition->pool->dims;
    dim rows = dim_constant(dims, 1);
    for (uint32_t axis = 0; axis < nest->rank; axis++)
        rows = dim_mul(dims, rows, nest->extents[axis]);
    return rows;
}

bool few_long_rows(const struct dims *dims, const dim *extents, uint32_t rank, uint32_t reduce_rank)
{
    return reduce_rank && hinted(dims, extents, rank) < ENOUGH_ROWS &&
           hinted(dims, extents + rank, reduce_rank) >= LONG_ROW;
}

static bool plan_pieces(struct pieces *p)
{
    const struct flat_nest *nest = p->nest;
    struct dims *dims = nest->definition->pool->dims;
    int64_t columns = 0;
    const bool bounded = p->form.kind == FORM_COLUMN &&
                         dim_is_constant(dims, nest->extents[p->form.vector], &columns) &&
                         columns <= COLUMN_CHUNK;
    const bool row = p->form.kind == FORM_ROW && p->form.vector != NO_AXIS;
    const int64_t rows = hinted(dims, nest->extents, nest->rank) / (bounded && columns > 0 ? columns : 1);
    if (!nest->reduction_count || (!row && !bounded) || rows >= ENOUGH_ROWS ||
        hinted(dims, nest->extents + nest->rank, nest->reduce_rank) < LONG_ROW)
        return false;
    p->axis = longest_axis(nest);
    const int64_t all = hinted(dims, nest->extents + nest->rank, nest->reduce_rank);
    const int64_t inside = all / dim_hint(dims, nest->extents[p->axis]) * (bounded ? columns : 1);
    p->length = PIECE / (inside > 0 ? inside : 1);
    p->length = p->length > 0 ? p->length : 1;
    p->count = dim_ceil_div(dims, nest->extents[p->axis], dim_constant(dims, p->length));
    return dim_mul(dims, rows_of(nest), p->count) != DIM_NONE;
}

/* A kernel of the nest's loads or stores, with the partial results behind them. */
static void begin(struct pieces *p, struct emitter *emitter, bool loads, uint32_t *partials)
{
    ordered_begin(emitter, p->context, p->number, loads, !loads, loads ? "pieces" : "sums of pieces");
    for (uint32_t r = 0; r < p->nest->reduction_count; r++)
        partials[r] = ordered_temporary(
            emitter, p->temporaries[r],
            expr_at(p->nest->definition->pool, p->nest->reductions[r].body)->dtype, "partial");
}

static void end(struct pieces *p, struct emitter *emitter, dim points, struct lowered_group *out)
{
    struct dims *dims = p->nest->definition->pool->dims;
    const dim operations = dim_mul(dims, points, dim_constant(dims, (int64_t)body_cost(p->nest) + 1));
    const dim bytes = dim_mul(dims, points, dim_constant(dims, 4));
    if (operations != DIM_NONE)
        emitter->kernel->operations = operations;
    if (bytes != DIM_NONE)
        emitter->kernel->bytes = bytes;
    vec_push(p->context->arena, &out->launches, emitter_launch(emitter));
}

/* Place of a piece's partial result. */
static expr partial_place(struct pieces *p, struct emitter *emitter, expr piece)
{
    struct exprs *pool = emitter->kernel->pool;
    expr row = expr_index(pool, 0);
    for (uint32_t axis = 0; axis < p->nest->rank; axis++)
        row =
            expr_binary(pool, EXPR_ADD,
                        expr_binary(pool, EXPR_MUL, row, kernel_dim(emitter->kernel, p->nest->extents[axis])),
                        emitter->axes[axis]);
    return expr_binary(pool, EXPR_ADD,
                       expr_binary(pool, EXPR_MUL, row, kernel_dim(emitter->kernel, p->count)), piece);
}

static void build_partials(struct pieces *p, struct lowered_group *out)
{
    const struct flat_nest *nest = p->nest;
    struct dims *dims = nest->definition->pool->dims;
    struct emitter emitter;
    struct block body, inner;
    uint32_t axes[MAX_AXES], partials[MAX_BUFFERS], sums[MAX_BUFFERS], count = 0;
    begin(p, &emitter, true, partials);
    struct kernel *kernel = emitter.kernel;
    const bool columns = p->form.kind == FORM_COLUMN;
    for (uint32_t axis = 0; axis < nest->rank; axis++)
        if (!columns || axis != p->form.vector)
            axes[count++] = axis;
    struct block top = {.kernel = kernel, .at = &kernel->body};
    emit_parallel(&emitter, &top, nest, count, axes, p->axis, p->length, &body);
    const expr piece =
        expr_binary(kernel->pool, EXPR_INDEX_DIV, emitter.chunk_begin, expr_index(kernel->pool, p->length));
    inner = body;
    if (columns) {
        emit_column_sums(&emitter, &body, nest, p->form.vector, sums);
        emit_axis(&emitter, &body, nest, p->form.vector, LOOP_VECTORISE, &inner);
        for (uint32_t r = 0; r < nest->reduction_count; r++)
            emitter.reduced[r] = kernel_element(kernel, sums[r], emitter.axes[p->form.vector], 1);
    } else {
        emit_row_sums(&emitter, &body, nest, p->form.vector);
    }
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        build_store(&inner, partials[r], partial_place(p, &emitter, piece), emitter.reduced[r]);
    dim points = rows_of(nest);
    for (uint32_t axis = nest->rank; axis < nest->rank + nest->reduce_rank; axis++)
        points = dim_mul(dims, points, nest->extents[axis]);
    end(p, &emitter, points, out);
}

static void build_totals(struct pieces *p, struct lowered_group *out)
{
    const struct flat_nest *nest = p->nest;
    struct emitter emitter;
    struct block body, inner;
    uint32_t axes[MAX_AXES], partials[MAX_BUFFERS], sums[MAX_BUFFERS];
    expr piece;
    begin(p, &emitter, false, partials);
    struct kernel *kernel = emitter.kernel;
    struct exprs *pool = kernel->pool;
    for (uint32_t axis = 0; axis < nest->rank; axis++)
        axes[axis] = axis;
    struct block top = {.kernel = kernel, .at = &kernel->body};
    emit_parallel(&emitter, &top, nest, nest->rank, axes, NO_AXIS, 0, &body);
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        const enum dtype dtype = expr_at(nest->definition->pool, nest->reductions[r].body)->dtype;
        sums[r] = build_mutable(&body, "sum", reduce_neutral(pool, nest->reductions[r].op, dtype));
    }
    build_for(&body, "piece", expr_index(pool, 0), kernel_dim(kernel, p->count), 0, LOOP_SERIAL, &inner,
              &piece);
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        emitter.reduced[r] = kernel_variable(kernel, sums[r]);
        build_assign(&inner, sums[r],
                     reduce_combine(pool, nest->reductions[r].op, emitter.reduced[r],
                                  kernel_element(kernel, partials[r], partial_place(p, &emitter, piece), 1)));
    }
    emit_stores(&emitter, &body, nest);
    end(p, &emitter, rows_of(nest), out);
}

bool cpu_build_pieces(const struct strategy_context *context, uint32_t number, const struct flat_nest *nest,
                      struct nest_form form, struct lowered_group *out)
{
    struct pieces p = {.context = context, .nest = nest, .form = form, .number = number};
    if (!plan_pieces(&p))
        return false;
    const dim partials = dim_mul(nest->definition->pool->dims, rows_of(nest), p.count);
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        p.temporaries[r] = ordered_temporary_new(
            context, out, expr_at(nest->definition->pool, nest->reductions[r].body)->dtype, partials);
    build_partials(&p, out);
    build_totals(&p, out);
    return true;
}
