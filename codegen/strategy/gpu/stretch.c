/* See stretch.h. */
#include "codegen/strategy/gpu/stretch.h"

#include <string.h>

/* Do the indices end in the axes first .. rank-1, over dims of their extents? */
static bool ends_in_stretch(const struct strategy_context *context, const struct stretch *s, uint32_t buffer,
                            const expr *indices)
{
    const struct definition *body = &context->group->body;
    const struct tensor_type *type = &body->buffers.items[buffer].type;
    uint32_t count = s->nest->rank - s->first;
    if (type->rank < (int)count)
        return false;
    uint32_t skip = (uint32_t)type->rank - count;
    for (uint32_t i = 0; i < count; i++) {
        const struct expr_node *index = expr_at(body->pool, indices[skip + i]);
        uint32_t axis = s->first + i;
        int64_t value;
        bool single = dim_equals_constant(body->pool->dims, s->nest->extents[axis], 1) &&
                      expr_constant_int(body->pool, indices[skip + i], &value) && value == 0;
        if (!single && (index->op != EXPR_AXIS || index->value != axis))
            return false;
        if (dim_equal(body->pool->dims, type->dims[skip + i], s->nest->extents[axis]) != 1)
            return false;
    }
    for (uint32_t i = 0; i < skip; i++)
        for (uint32_t axis = s->first; axis < s->nest->rank; axis++)
            if (gpu_uses_axis(context, indices[i], axis))
                return false;
    return true;
}

struct search {
    const struct strategy_context *context;
    struct stretch *stretch;
    bool loaded[MAX_BUFFERS]; /* not along the stretch */
    unsigned char *visited;
};

/* The axes of the stretch appear in e only below loads along the stretch. */
static bool along_stretch(struct search *search, expr e)
{
    const struct exprs *pool = search->context->group->body.pool;
    struct stretch *s = search->stretch;
    if (search->visited[e])
        return true;
    search->visited[e] = 1;
    const struct expr_node *node = expr_at(pool, e);
    if (node->op == EXPR_AXIS)
        return node->value < s->first;
    if (node->op == EXPR_LOAD &&
        ends_in_stretch(search->context, s, (uint32_t)node->value, node->arguments)) {
        if ((s->loads[node->value] && s->loads[node->value] != e) || search->loaded[node->value])
            return false;
        s->loads[node->value] = e;
        s->flat[node->value] = true;
        return true;
    }
    if (node->op == EXPR_LOAD || node->op == EXPR_LOAD_OR) {
        if (s->flat[node->value])
            return false;
        search->loaded[node->value] = true;
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (!along_stretch(search, node->arguments[i]))
            return false;
    return true;
}

bool find_stretch_from(const struct strategy_context *context, const struct nest *nest, uint32_t first,
                       struct stretch *out)
{
    const struct definition *body = &context->group->body;
    struct search search = {
        .context = context,
        .stretch = out,
        .visited = arena_new_array(context->arena, unsigned char, body->pool->nodes.count + MAX_AXES)};
    *out = (struct stretch){
        .nest = nest, .first = first, .length = gpu_extent_product(context, nest, first, nest->rank)};
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const struct nest_store *store = &nest->stores[i];
        expr axes[MAX_AXES];
        for (uint32_t axis = 0; axis < nest->rank; axis++)
            axes[axis] = expr_axis((struct exprs *)body->pool, axis, nest->extents[axis]);
        if (!ends_in_stretch(context, out, store->buffer, store->indices ? store->indices : axes) ||
            !along_stretch(&search, store->value))
            return false;
    }
    return true;
}

int32_t stretch_widest_run(const struct strategy_context *context, const struct stretch *s)
{
    const struct definition *body = &context->group->body;
    unsigned widest = 8;
    for (uint32_t i = 0; i < body->buffers.count; i++) {
        bool stored = false;
        for (uint32_t k = 0; k < s->nest->store_count; k++)
            stored |= s->nest->stores[k].buffer == i;
        unsigned bits = dtype_bits(body->buffers.items[i].type.dtype);
        if ((stored || s->flat[i]) && (bits < 8 || body->buffers.items[i].type.dtype == DTYPE_BOOL))
            return 1;
        if ((stored || s->flat[i]) && bits > widest)
            widest = bits;
    }
    return (int32_t)(128 / widest);
}

expr stretch_index(const struct strategy_context *context, const struct stretch *s,
                   const struct lowering *lowering, uint32_t buffer, const expr *indices, expr position)
{
    const struct tensor_type *type = &context->group->body.buffers.items[buffer].type;
    struct exprs *pool = lowering->kernel->pool;
    uint32_t skip = (uint32_t)type->rank - (s->nest->rank - s->first);
    expr lowered[MAX_RANK];
    for (uint32_t i = 0; i < (uint32_t)type->rank; i++)
        lowered[i] = i < skip ? lower_expr(lowering, indices[i]) : expr_index(pool, 0);
    return expr_binary(pool, EXPR_ADD, lower_index(lowering, buffer, lowered), position);
}
