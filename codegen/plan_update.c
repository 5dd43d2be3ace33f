/* Elements that a loop replaces in place. A scan output is a state that SetElement fills, one element an
 * iteration; as a result of its own it would be copied whole each time:
 *
 *     y[a0, a1] = a0 == index ? element[a1] : state[a0, a1]
 *
 * Where nothing else reads the state, the result may be the state's own memory, and only the element is
 * stored:
 *
 *     state[index, a0] = element[a0]      where 0 <= index < extent */
#include "codegen/plan_internal.h"

#include <string.h>

/* What a nest replaces. */
struct update {
    expr index, element; /* over the axes behind the first */
};

/* The index is the nest's axis; one of a single element is 0. */
static bool is_axis(const struct exprs *pool, const struct nest *nest, expr index, uint32_t axis)
{
    const struct expr_node *node = expr_at(pool, index);
    int64_t at;
    return (node->op == EXPR_AXIS && node->value == (int64_t)axis) ||
           (dim_equals_constant(pool->dims, nest->extents[axis], 1) && expr_constant_int(pool, index, &at) &&
            at == 0);
}

static bool loads_at_axes(const struct exprs *pool, const struct nest *nest, const struct expr_node *load)
{
    if (load->op != EXPR_LOAD || load->count != nest->rank)
        return false;
    for (uint32_t i = 0; i < nest->rank; i++)
        if (!is_axis(pool, nest, load->arguments[i], i))
            return false;
    return true;
}

/* An axis in the place of the one before; the first one has none. */
struct shift {
    bool whole;
};

static expr shift_axis(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    struct shift *shift = user;
    (void)arguments;
    if (node->op != EXPR_AXIS)
        return 0;
    if (node->value == 0) {
        shift->whole = false;
        return 0;
    }
    return expr_axis(into, (uint32_t)node->value - 1, node->extent);
}

static bool shifted(struct exprs *pool, expr e, expr *out)
{
    struct shift shift = {true};
    *out = expr_rewrite(pool, pool, e, shift_axis, &shift);
    return shift.whole;
}

/* The group is nothing but such a nest. */
static bool find_update(const struct group *group, value_id state, value_id result, struct update *out)
{
    const struct definition *body = &group->body;
    if (body->nests.count != 1)
        return false;
    const struct nest *nest = &body->nests.items[0];
    if (nest->kind != NEST_REDUCE || nest->reduction_count || nest->store_count != 1 || nest->rank < 1)
        return false;
    const struct nest_store *store = &nest->stores[0];
    const struct expr_node select = *expr_at(body->pool, store->value);
    if (group->values[store->buffer] != result || store->indices || store->condition ||
        select.op != EXPR_SELECT)
        return false;
    const struct expr_node *kept = expr_at(body->pool, select.arguments[2]);
    const struct expr_node *here = expr_at(body->pool, select.arguments[0]);
    if (!loads_at_axes(body->pool, nest, kept) || group->values[kept->value] != state ||
        here->op != EXPR_EQUAL)
        return false;
    const expr sides[2] = {here->arguments[0], here->arguments[1]};
    for (int i = 0; i < 2; i++) {
        const struct expr_node *axis = expr_at(body->pool, sides[i]);
        if (axis->op == EXPR_AXIS && axis->value == 0)
            return shifted(body->pool, sides[1 - i], &out->index) &&
                   shifted(body->pool, select.arguments[1], &out->element);
    }
    return false;
}

static const struct group *storing_group(const struct grouping *grouping, value_id value)
{
    for (uint32_t i = 0; i < grouping->groups.count; i++) {
        const struct group *group = &grouping->groups.items[i];
        for (uint32_t k = 0; k < group->body.nests.count; k++)
            for (uint32_t s = 0; s < group->body.nests.items[k].store_count; s++)
                if (group->values[group->body.nests.items[k].stores[s].buffer] == value)
                    return group;
    }
    return NULL;
}

bool planner_may_update(struct planner *planner, const struct grouping *grouping, value_id state,
                        value_id result)
{
    const struct graph *graph = planner->graph;
    const struct value *value = graph_value(graph, result);
    struct update update;
    if (planner->options->optimisation < 1 || value->kind != VALUE_RESULT ||
        planner->value_buffers[result] != UINT32_MAX || planner->same_as[result] != result)
        return false;
    const struct node *node = graph_node(graph, value->producer);
    if (!planner->uses)
        planner->uses = graph_use_counts(graph, planner->arena);
    if (node->op != OP_SetElement || node->inputs[0] != state || planner->uses[state] != 1)
        return false;
    const struct group *group = storing_group(grouping, result);
    return group && find_update(group, state, result, &update);
}

const struct group *planner_update(struct planner *planner, const struct group *group)
{
    struct update update;
    if (group->control || group->body.nests.count != 1 || group->body.nests.items[0].store_count != 1)
        return group;
    const struct nest *whole = &group->body.nests.items[0];
    const value_id result = group->values[whole->stores[0].buffer];
    if (!result || graph_value(planner->graph, result)->kind != VALUE_RESULT)
        return group;
    const struct node *node = graph_node(planner->graph, graph_value(planner->graph, result)->producer);
    if (node->op != OP_SetElement || planner->value_buffers[result] == UINT32_MAX ||
        planner->value_buffers[result] != planner->value_buffers[node->inputs[0]] ||
        !find_update(group, node->inputs[0], result, &update))
        return group;
    struct group *made = arena_copy(planner->arena, group, sizeof *group);
    struct exprs *pool = made->body.pool;
    const expr zero = expr_int(pool, DTYPE_I64, 0);
    const expr extent = expr_dim(pool, whole->extents[0]);
    const expr inside = expr_binary(pool, EXPR_AND, expr_binary(pool, EXPR_LESS_EQUAL, zero, update.index),
                                    expr_binary(pool, EXPR_LESS, update.index, extent));
    const uint32_t rank = whole->rank;
    dim extents[MAX_AXES];
    expr indices[MAX_RANK] = {update.index};
    memcpy(extents, whole->extents + 1, (rank - 1) * sizeof *extents);
    made->body.nests.items = NULL;
    made->body.nests.count = made->body.nests.capacity = 0;
    struct nest *nest = definition_nest(&made->body, rank - 1, extents, 0, NULL);
    for (uint32_t i = 1; i < rank; i++)
        indices[i] = nest_axis(&made->body, nest, i - 1);
    nest_store_where(&made->body, nest, whole->stores[0].buffer, indices, update.element, inside);
    return made;
}
