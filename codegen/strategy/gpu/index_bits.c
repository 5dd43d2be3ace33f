/* Whether a group's kernels may count in 32 bits.
 *
 * The CUDA printer narrows arithmetic on axes, dims and constants alone. That is right where every sum and
 * product of them fits: positions in buffers do, since prepare refuses buffers beyond 2^31 elements; but the
 * same nodes may be data (Range times a million) or pass through more than any buffer holds (k * k mod n). So
 * each is bounded: by the ranges of its dims, by the elements of a buffer of the group, or, where only the
 * hints speak for it, by a dim that prepare then checks. */
#include "codegen/strategy/gpu/gpu_common.h"

struct widths {
    const struct strategy_context *context;
    signed char *index;    /* by expression: 1 made of axes, dims and constants, 0 not, -1 not visited */
    dim *elements;         /* [buffers] */
    struct kernel *kernel; /* gets the dims that prepare has to check; NULL: nobody asks */
    bool wide;
};

static bool fits_value(int64_t low, int64_t high)
{
    return low >= INT32_MIN && high <= INT32_MAX;
}

/* |bound| is at most the elements or, little apart, a dim of a buffer, or fits in any case. */
static bool is_covered(const struct widths *w, dim bound, bool negative)
{
    enum { LITTLE = 1 << 16 }; /* windows reach over the edge; prepare leaves room for it */
    const struct definition *body = &w->context->group->body;
    struct dims *dims = body->pool->dims;
    int64_t low, high;
    dim_range(dims, bound, &low, &high);
    if (negative ? low >= INT32_MIN : high <= INT32_MAX)
        return true;
    const dim size = negative ? dim_sub(dims, dim_constant(dims, 0), bound) : bound;
    if (size == DIM_NONE)
        return false;
    const dim most = dim_sub(dims, size, dim_constant(dims, LITTLE));
    for (uint32_t i = 0; i < body->buffers.count; i++) {
        const struct tensor_type *type = &body->buffers.items[i].type;
        if (dim_less(dims, w->elements[i], size) == 0)
            return true;
        for (int k = 0; k < type->rank && most != DIM_NONE; k++)
            if (dim_less(dims, type->dims[k], most) == 0)
                return true;
    }
    return false;
}

static void check_later(struct widths *w, dim bound, bool negative)
{
    struct dims *dims = w->context->group->body.pool->dims;
    const dim size = negative ? dim_sub(dims, dim_constant(dims, 0), bound) : bound;
    if (size == DIM_NONE || gpu_size(w->context, size) > INT32_MAX)
        w->wide = true;
    else if (w->kernel)
        kernel_note(w->kernel, kernel_dim(w->kernel, size));
}

static void bound_node(struct widths *w, expr e)
{
    struct exprs *pool = w->context->group->body.pool;
    int64_t least, most;
    dim low, high;
    if (expr_index_range(pool, e, &least, &most) && fits_value(least, most))
        return;
    if (!expr_index_bounds(pool, e, &low, &high)) {
        w->wide = true;
        return;
    }
    if (!is_covered(w, high, false))
        check_later(w, high, false);
    if (!is_covered(w, low, true))
        check_later(w, low, true);
}

/* Nodes of other operators are not larger than what they are made of. */
static bool can_grow(enum expr_op op)
{
    switch (op) {
    case EXPR_DIV:
    case EXPR_INDEX_DIV:
    case EXPR_REMAINDER:
    case EXPR_INDEX_MOD:
    case EXPR_MIN:
    case EXPR_MAX:
    case EXPR_SELECT:
        return false;
    default:
        return true;
    }
}

static bool visit(struct widths *w, expr e)
{
    const struct expr_node *node = expr_at(w->context->group->body.pool, e);
    if (w->index[e])
        return w->index[e] > 0;
    bool index = node->dtype == DTYPE_I64 &&
                 (node->op == EXPR_CONSTANT || node->op == EXPR_AXIS || node->op == EXPR_DIM ||
                  (node->count && expr_class_of(node->op) == EXPR_ARITHMETIC));
    for (uint32_t i = 0; i < node->count; i++) {
        const bool condition = node->op == EXPR_SELECT && i == 0;
        index = (visit(w, node->arguments[i]) || condition) && index;
    }
    w->index[e] = index ? 1 : -1;
    if (index && node->count && can_grow(node->op))
        bound_node(w, e);
    return index;
}

static void visit_nest(struct widths *w, const struct nest *nest)
{
    const struct definition *body = &w->context->group->body;
    for (uint32_t i = 0; i < nest->reduction_count; i++)
        visit(w, nest->reductions[i].body);
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const struct nest_store *store = &nest->stores[i];
        visit(w, store->value);
        if (store->condition)
            visit(w, store->condition);
        for (int k = 0; store->indices && k < body->buffers.items[store->buffer].type.rank; k++)
            visit(w, store->indices[k]);
    }
}

uint32_t gpu_index_bits(const struct strategy_context *context, struct kernel *kernel)
{
    const struct definition *body = &context->group->body;
    struct dims *dims = body->pool->dims;
    const int64_t limit = INT32_MAX;
    if (context->index_bits)
        return context->index_bits;
    struct widths widths = {.context = context,
                            .index = arena_new_array(context->arena, signed char, body->pool->nodes.count),
                            .elements = arena_new_array(context->arena, dim, body->buffers.count),
                            .kernel = kernel};
    for (uint32_t i = 0; i < body->buffers.count; i++) {
        widths.elements[i] = tensor_elements(dims, &body->buffers.items[i].type);
        int64_t low, high;
        dim_range(dims, widths.elements[i], &low, &high);
        /* An upper end that nobody set says nothing; then the hints decide, and prepare refuses what does not
         * fit. */
        if (low > limit || (high > limit && high < INT64_MAX >> 20) ||
            dim_hint(dims, widths.elements[i]) > limit)
            return 64;
    }
    for (uint32_t i = 0; i < body->nests.count; i++)
        visit_nest(&widths, &body->nests.items[i]);
    return widths.wide ? 64 : 32;
}
