/* Sorts on a CPU: one row an item, by its keys' digits from the lowest on (stable). A pass counts the digits,
 * turns the counts into places and moves keys and places there and back between two halves of a temporary. */
#include "codegen/strategy/cpu/ordered.h"

enum { FEW_BITS = 4, MANY_BITS = 8, SHORT_ROW = 200 };

struct row_sort {
    struct emitter emitter;
    const struct nest *nest;
    enum dtype key, place;
    unsigned bits; /* of a digit */
    uint32_t keys, places, counts;
    expr base; /* of the row, in the temporaries */
};

static enum dtype place_dtype(const struct dims *dims, dim length)
{
    int64_t low, high;
    dim_range(dims, length, &low, &high);
    return high <= INT32_MAX ? DTYPE_I32 : DTYPE_I64;
}

static expr plus(struct row_sort *s, expr a, expr b)
{
    return expr_binary(s->emitter.kernel->pool, EXPR_ADD, a, b);
}

static struct block loop(struct row_sort *s, struct block *at, const char *label, expr end, expr *variable)
{
    struct block body;
    build_for(at, label, expr_index(s->emitter.kernel->pool, 0), end, 0, LOOP_SERIAL, &body, variable);
    return body;
}

static expr element(struct row_sort *s, uint32_t memory, expr at)
{
    return kernel_element(s->emitter.kernel, memory, at, 1);
}

/* The digit of a key that the pass looks at, as an index. */
static expr digit_of(struct row_sort *s, expr key, expr pass)
{
    struct exprs *pool = s->emitter.kernel->pool;
    const expr shift =
        expr_convert(pool, s->key, expr_binary(pool, EXPR_MUL, pass, expr_index(pool, s->bits)));
    const expr digit = expr_binary(pool, EXPR_AND, expr_binary(pool, EXPR_SHIFT_RIGHT, key, shift),
                                   expr_int(pool, s->key, (INT64_C(1) << s->bits) - 1));
    return expr_convert(pool, DTYPE_I64, digit);
}

static void emit_keys(struct row_sort *s, struct block *at, expr length)
{
    expr i;
    struct block body = loop(s, at, "i", length, &i);
    s->emitter.axes[s->nest->rank] = i;
    const expr to = plus(s, s->base, i);
    build_store(&body, s->keys, to, lower_expr(&s->emitter.lowering, s->nest->reductions[0].body));
    build_store(&body, s->places, to, expr_convert(s->emitter.kernel->pool, s->place, i));
}

/* Counts, then where each digit's first key goes. */
static void emit_counts(struct row_sort *s, struct block *at, expr from, expr length, expr pass)
{
    struct exprs *pool = s->emitter.kernel->pool;
    const expr digits = expr_index(pool, INT64_C(1) << s->bits);
    expr i;
    struct block body = loop(s, at, "digit", digits, &i);
    build_store(&body, s->counts, i, expr_int(pool, DTYPE_I64, 0));
    body = loop(s, at, "i", length, &i);
    const expr digit =
        build_declare(&body, "digit", digit_of(s, element(s, s->keys, plus(s, from, i)), pass));
    build_store(&body, s->counts, digit, plus(s, element(s, s->counts, digit), expr_int(pool, DTYPE_I64, 1)));
    const uint32_t before = build_mutable(at, "before", expr_int(pool, DTYPE_I64, 0));
    body = loop(s, at, "digit", digits, &i);
    const expr count = build_declare(&body, "count", element(s, s->counts, i));
    build_store(&body, s->counts, i, kernel_variable(s->emitter.kernel, before));
    build_assign(&body, before, plus(s, kernel_variable(s->emitter.kernel, before), count));
}

static void emit_pass(struct row_sort *s, struct block *at, expr length, expr pass)
{
    struct exprs *pool = s->emitter.kernel->pool;
    const expr half =
        expr_binary(pool, EXPR_MUL, expr_binary(pool, EXPR_INDEX_MOD, pass, expr_index(pool, 2)), length);
    const expr from = build_declare(at, "from", plus(s, s->base, half));
    const expr other = expr_binary(pool, EXPR_SUB, length, half);
    const expr to = build_declare(at, "to", plus(s, s->base, other));
    expr i;
    emit_counts(s, at, from, length, pass);
    struct block body = loop(s, at, "i", length, &i);
    const expr key = build_declare(&body, "key", element(s, s->keys, plus(s, from, i)));
    const expr place = build_declare(&body, "place", element(s, s->places, plus(s, from, i)));
    const expr digit = build_declare(&body, "digit", digit_of(s, key, pass));
    const expr next = build_declare(&body, "next", element(s, s->counts, digit));
    build_store(&body, s->counts, digit, plus(s, next, expr_int(pool, DTYPE_I64, 1)));
    build_store(&body, s->keys, plus(s, to, next), key);
    build_store(&body, s->places, plus(s, to, next), place);
}

void cpu_build_sort(const struct strategy_context *context, uint32_t number, struct lowered_group *out)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct dims *dims = context->group->body.pool->dims;
    const dim length = dim_current(dims, nest->extents[nest->rank]);
    const dim pairs =
        dim_mul(dims, dim_mul(dims, ordered_rows(context, nest), length), dim_constant(dims, 2));
    struct row_sort s = {.nest = nest,
                         .key = expr_at(context->group->body.pool, nest->reductions[0].body)->dtype,
                         .place = place_dtype(dims, length),
                         .bits = dim_hint(dims, length) < SHORT_ROW ? FEW_BITS : MANY_BITS};
    struct flat_nest flat;
    struct block body;
    uint32_t axes[MAX_AXES];
    flat_nest_init(&flat, &context->group->body, number, 0);
    ordered_begin(&s.emitter, context, number, true, true,
                  s.bits == FEW_BITS ? "sort by 4 bits" : "sort by 8 bits");
    struct kernel *kernel = s.emitter.kernel;
    struct exprs *pool = kernel->pool;
    s.keys = ordered_temporary(&s.emitter, ordered_temporary_new(context, out, s.key, pairs), s.key, "keys");
    s.places =
        ordered_temporary(&s.emitter, ordered_temporary_new(context, out, s.place, pairs), s.place, "places");
    s.counts = kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_SCRATCH,
                                                                 .dtype = DTYPE_I64,
                                                                 .count = INT64_C(1) << s.bits,
                                                                 .label = "counts"});
    for (uint32_t i = 0; i < nest->rank; i++)
        axes[i] = i;
    struct block top = {.kernel = kernel, .at = &kernel->body};
    emit_parallel(&s.emitter, &top, &flat, nest->rank, axes, NO_AXIS, 0, &body);
    const expr size = kernel_dim(kernel, length);
    const expr two = expr_binary(pool, EXPR_MUL, size, expr_index(pool, 2));
    s.base = build_declare(&body, "base", expr_binary(pool, EXPR_MUL, ordered_row(&s.emitter, nest), two));
    emit_keys(&s, &body, size);
    expr pass, k;
    struct block inner = loop(&s, &body, "pass", expr_index(pool, dtype_bits(s.key) / s.bits), &pass);
    emit_pass(&s, &inner, size, pass);
    inner = loop(&s, &body, "k", kernel_dim(kernel, nest->extents[nest->rank + 1]), &k);
    s.emitter.axes[nest->rank + 1] = k;
    s.emitter.reduced[0] = build_declare(
        &inner, "place", expr_convert(pool, DTYPE_I64, element(&s, s.places, plus(&s, s.base, k))));
    emit_stores(&s.emitter, &inner, &flat);
    ordered_end(&s.emitter, nest, out);
}
