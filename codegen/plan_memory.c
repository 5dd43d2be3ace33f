/* Memory of a plan: results that take over the memory of an operand that dies with them, and the arena's
 * size.
 *
 * In place. A group of one map nest that loads an operand only at the point that it stores may write its
 * result over the operand. Whether the operand is dead is known only when all launches are there, so the
 * kernel is prepared for sharing first (`in_place` on both parameters) and the memory is shared afterwards
 * where the live ranges allow it. */
#include "codegen/plan_internal.h"
#include "runtime/arena_plan.h"

/* Every load of the buffer in the expression stands at the parallel axes in order. */
static bool loads_only_in_place(const struct exprs *pool, expr e, uint32_t buffer, bool *visited)
{
    if (visited[e])
        return true;
    visited[e] = true;
    const struct expr_node *node = expr_at(pool, e);
    if ((node->op == EXPR_LOAD || node->op == EXPR_LOAD_OR) && (uint32_t)node->value == buffer) {
        if (node->op == EXPR_LOAD_OR)
            return false;
        for (uint32_t i = 0; i < node->count; i++) {
            const struct expr_node *index = expr_at(pool, node->arguments[i]);
            int64_t zero;
            bool identity = index->op == EXPR_AXIS && index->value == (int64_t)i;
            if (!identity && !(expr_constant_int(pool, node->arguments[i], &zero) && zero == 0))
                return false;
        }
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (!loads_only_in_place(pool, node->arguments[i], buffer, visited))
            return false;
    return true;
}

static bool same_shape(struct dims *dims, const struct tensor_type *a, const struct tensor_type *b)
{
    if (a->rank != b->rank || dtype_bits(a->dtype) != dtype_bits(b->dtype))
        return false;
    for (int i = 0; i < a->rank; i++)
        if (dim_equal(dims, a->dims[i], b->dims[i]) != 1)
            return false;
    return true;
}

static int parameter_of(const struct kernel_launch *launch, uint32_t buffer)
{
    for (uint32_t i = 0; i < launch->kernel->global_count; i++)
        if (launch->arguments[i].kind == ARGUMENT_BUFFER && launch->arguments[i].index == buffer)
            return (int)i;
    return -1;
}

static bool is_arena_value(const struct planner *planner, value_id value)
{
    if (!value || planner->init[value])
        return false;
    uint32_t buffer = planner->value_buffers[planner->same_as[value]];
    return buffer == UINT32_MAX || planner->plan->buffers.items[buffer].kind == PLAN_ARENA;
}

/* The value is the input of the graph whose buffer `result`, an output, lives in. */
static bool is_aliased_input(const struct planner *planner, value_id value, value_id result)
{
    const struct graph *graph = planner->graph;
    for (uint32_t i = 0; i < graph->aliases.count; i++)
        if (graph->inputs.items[graph->aliases.items[i].input] == value &&
            graph->outputs.items[graph->aliases.items[i].output].value == result)
            return true;
    return false;
}

static bool may_overwrite(struct planner *planner, const struct group *group, const struct nest *nest,
                          uint32_t input)
{
    const struct definition *body = &group->body;
    if (body->buffers.items[input].role != BUFFER_INPUT ||
        (!is_arena_value(planner, group->values[input]) &&
         !is_aliased_input(planner, group->values[input], group->values[nest->stores[0].buffer])))
        return false;
    bool *visited = arena_new_array(planner->arena, bool, body->pool->nodes.count);
    for (uint32_t s = 0; s < nest->store_count; s++)
        if (!loads_only_in_place(body->pool, nest->stores[s].value, input, visited))
            return false;
    return true;
}

void planner_allow_in_place(struct planner *planner, const struct group *group, struct lowered_group *lowered)
{
    const struct definition *body = &group->body;
    if (planner->options->optimisation < 1 || body->nests.count != 1 ||
        body->nests.items[0].reduction_count || lowered->launches.count != 1)
        return;
    const struct nest *nest = &body->nests.items[0];
    const struct kernel_launch *launch = &lowered->launches.items[0];
    if (nest->store_count != 1 || nest->stores[0].indices || nest->stores[0].condition ||
        !is_arena_value(planner, group->values[nest->stores[0].buffer]))
        return;
    uint32_t output = nest->stores[0].buffer;
    int to = parameter_of(launch, output);
    for (uint32_t input = 0; input < body->buffers.count; input++) {
        int from = parameter_of(launch, input);
        if (input == output || from < 0 || to < 0 ||
            !same_shape(planner->dims, &body->buffers.items[input].type, &body->buffers.items[output].type) ||
            !may_overwrite(planner, group, nest, input))
            continue;
        launch->kernel->memories.items[from].in_place = true;
        launch->kernel->memories.items[to].in_place = true;
        struct in_place_pair pair = {
            .launch = planner->plan->launches.count, .input = (uint32_t)from, .output = (uint32_t)to};
        vec_push(planner->arena, &planner->pairs, pair);
        return;
    }
}

static uint32_t root_of(const struct plan *plan, uint32_t buffer)
{
    while (plan->buffers.items[buffer].shares != UINT32_MAX)
        buffer = plan->buffers.items[buffer].shares;
    return buffer;
}

/* Another parameter of the launch is the same memory: it may be read elsewhere than at the point that is
 * written. */
static bool bound_twice(const struct plan *plan, const struct plan_launch *launch, uint32_t parameter,
                        uint32_t root)
{
    uint32_t count = kernel_buffer_count(plan->kernels.items[launch->kernel].kernel);
    for (uint32_t i = 0; i < count; i++)
        if (i != parameter && root_of(plan, launch->buffers[i]) == root)
            return true;
    return false;
}

void planner_share_in_place(struct planner *planner)
{
    struct plan *plan = planner->plan;
    for (uint32_t i = 0; i < planner->pairs.count; i++) {
        const struct in_place_pair *pair = &planner->pairs.items[i];
        const struct plan_launch *launch = &plan->launches.items[pair->launch];
        uint32_t input = root_of(plan, launch->buffers[pair->input]);
        uint32_t output = launch->buffers[pair->output];
        struct plan_buffer *from = &plan->buffers.items[input], *to = &plan->buffers.items[output];
        if (input == output || from->kind != PLAN_ARENA || to->kind != PLAN_ARENA ||
            to->shares != UINT32_MAX || from->last != pair->launch || to->first != pair->launch ||
            bound_twice(plan, launch, pair->input, input))
            continue;
        to->shares = input;
        from->last = to->last;
    }
}

static uint64_t buffer_bytes(const struct graph *graph, const struct plan_buffer *buffer)
{
    uint64_t bytes = 0;
    dtype_bytes(buffer->dtype, dim_hint(&graph->dims, buffer->elements), &bytes);
    return bytes;
}

bool plan_memory(const struct graph *graph, const struct plan *plan, struct arena *scratch, uint64_t *live,
                 uint64_t *arena_bytes)
{
    enum { ALIGNMENT = 256 };
    uint32_t count = 0;
    struct arena_item *items = arena_new_array(scratch, struct arena_item, plan->buffers.count);
    for (uint32_t i = 0; i < plan->buffers.count; i++) {
        const struct plan_buffer *buffer = &plan->buffers.items[i];
        if (buffer->kind != PLAN_ARENA || buffer->shares != UINT32_MAX || buffer->first == UINT32_MAX)
            continue;
        items[count++] = (struct arena_item){
            .bytes = buffer_bytes(graph, buffer), .first = buffer->first, .last = buffer->last};
    }
    uint32_t *order = arena_new_array(scratch, uint32_t, 2 * (size_t)count);
    *live = arena_plan_live(items, count, ALIGNMENT, order);
    return arena_plan(items, count, ALIGNMENT, order, arena_bytes) != 0;
}
