/* Filters on a CPU: one row an item. The kept candidates stand in a list; a new one is asked about them in
 * short runs, so that one that is ruled out costs little. */
#include "codegen/strategy/cpu/ordered.h"

enum { RUN = 16 };

struct row_filter {
    struct emitter emitter;
    const struct nest *nest;
    enum dtype place;
    uint32_t list, count, alive; /* a memory and two variables */
    expr base;                   /* of the row, in the list */
};

static expr lower(struct row_filter *f, uint32_t body)
{
    return lower_expr(&f->emitter.lowering, f->nest->reductions[body].body);
}

static expr is_set(struct row_filter *f, expr value)
{
    struct exprs *pool = f->emitter.kernel->pool;
    return expr_binary(pool, EXPR_NOT_EQUAL, value, expr_int(pool, DTYPE_U32, 0));
}

/* Is the candidate ruled out by one that is kept? */
static void emit_questions(struct row_filter *f, struct block *at)
{
    struct kernel *kernel = f->emitter.kernel;
    struct exprs *pool = kernel->pool;
    const expr count = kernel_variable(kernel, f->count), alive = kernel_variable(kernel, f->alive);
    struct block runs, body;
    expr run, k;
    build_for(at, "run", expr_index(pool, 0), count, expr_index(pool, RUN), LOOP_SERIAL, &runs, &run);
    const expr last =
        expr_binary(pool, EXPR_MIN, expr_binary(pool, EXPR_ADD, run, expr_index(pool, RUN)), count);
    const expr end = build_declare(&runs, "end", expr_select(pool, is_set(f, alive), last, run));
    build_for(&runs, "k", run, end, 0, LOOP_SERIAL, &body, &k);
    const expr kept = kernel_element(kernel, f->list, expr_binary(pool, EXPR_ADD, f->base, k), 1);
    f->emitter.axes[f->nest->rank + 1] = build_declare(&body, "kept", expr_convert(pool, DTYPE_I64, kept));
    build_assign(&body, f->alive,
                 expr_select(pool, is_set(f, lower(f, 1)), expr_int(pool, DTYPE_U32, 0), alive));
}

void cpu_build_filter(const struct strategy_context *context, uint32_t number, struct lowered_group *out)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct dims *dims = context->group->body.pool->dims;
    const dim length = dim_current(dims, nest->extents[nest->rank]);
    struct row_filter f = {.nest = nest, .place = DTYPE_I64};
    struct flat_nest flat;
    struct block body, inner, keep;
    uint32_t axes[MAX_AXES];
    flat_nest_init(&flat, &context->group->body, number, 0);
    ordered_begin(&f.emitter, context, number, true, true, "filter");
    struct kernel *kernel = f.emitter.kernel;
    struct exprs *pool = kernel->pool;
    const dim elements = dim_mul(dims, ordered_rows(context, nest), length);
    f.list = ordered_temporary(&f.emitter, ordered_temporary_new(context, out, f.place, elements), f.place,
                               "list");
    for (uint32_t i = 0; i < nest->rank; i++)
        axes[i] = i;
    struct block top = {.kernel = kernel, .at = &kernel->body};
    emit_parallel(&f.emitter, &top, &flat, nest->rank, axes, NO_AXIS, 0, &body);
    const expr size = kernel_dim(kernel, length);
    f.base = build_declare(&body, "base", expr_binary(pool, EXPR_MUL, ordered_row(&f.emitter, nest), size));
    f.count = build_mutable(&body, "count", expr_int(pool, DTYPE_I64, 0));
    const expr limit = build_declare(&body, "limit", lower(&f, 2));
    build_for(&body, "i", expr_index(pool, 0), size, 0, LOOP_SERIAL, &inner, &f.emitter.axes[nest->rank]);
    const expr let_in = expr_binary(pool, EXPR_AND, is_set(&f, lower(&f, 0)),
                                    expr_binary(pool, EXPR_LESS, kernel_variable(kernel, f.count), limit));
    f.alive = build_mutable(&inner, "alive", expr_convert(pool, DTYPE_U32, let_in));
    emit_questions(&f, &inner);
    build_if(&inner, is_set(&f, kernel_variable(kernel, f.alive)), &keep, NULL);
    build_store(&keep, f.list, expr_binary(pool, EXPR_ADD, f.base, kernel_variable(kernel, f.count)),
                expr_convert(pool, f.place, f.emitter.axes[nest->rank]));
    build_assign(&keep, f.count,
                 expr_binary(pool, EXPR_ADD, kernel_variable(kernel, f.count), expr_int(pool, DTYPE_I64, 1)));
    f.emitter.reduced[0] = build_declare(&inner, "kept", kernel_variable(kernel, f.alive));
    emit_stores(&f.emitter, &inner, &flat);
    ordered_end(&f.emitter, nest, out);
}
