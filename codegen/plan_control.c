/* If and While in a plan. A body's launches stand in line with the others; a record says which range runs by
 * which condition. So kernels, live ranges and the arena need no notion of control flow, but for two rules:
 *
 * - What a loop reads and did not make itself must last until the loop has ended, whichever launch read it
 * last.
 * - Both branches of an If store to the same buffers, so a branch's result is stored there or copied there.
 *
 * An If that sizes decide needs no record, unless there is one in it: its launches have no work where they do
 * not run.
 *
 * A While keeps its states in buffers of the arena: copied in before it, and from the body's results at the
 * end of each iteration. */
#include "codegen/plan_internal.h"

#include <string.h>

/* A launch that copies a buffer of the arena, of the caller or of the weights. */
static bool copy_buffer(struct planner *planner, const struct group *control, uint32_t from, uint32_t to)
{
    const struct plan_buffer buffer = planner->plan->buffers.items[to];
    const struct tensor_type type = tensor_type_new(planner->arena, buffer.dtype, 1, &buffer.elements);
    struct group copy = {.location = control->location};
    copy.body.pool = arena_new(planner->arena, struct exprs);
    exprs_init(copy.body.pool, planner->arena, planner->dims);
    const uint32_t source = definition_buffer(&copy.body, BUFFER_INPUT, type);
    const uint32_t target = definition_buffer(&copy.body, BUFFER_OUTPUT, type);
    struct nest *nest = definition_nest(&copy.body, 1, &buffer.elements, 0, NULL);
    const expr at = nest_axis(&copy.body, nest, 0);
    nest_store(&copy.body, nest, target, NULL, expr_load(copy.body.pool, source, buffer.dtype, 1, &at));
    copy.values = arena_new_array(planner->arena, value_id, 2);
    return planner_add_group(planner, &copy, (uint32_t[]){from, to});
}

/* A GPU decides by itself: a launch reads the condition and tells the launches that hang on it, by handles
 * that the runtime puts in place of the second and third buffer. `otherwise`: there are some for the other
 * case. */
static bool set_condition(struct planner *planner, const struct group *control, uint32_t condition,
                          bool otherwise)
{
    if (planner->plan->machine->kind != TARGET_CUDA)
        return true;
    const uint32_t count = otherwise ? 3 : 2;
    struct kernel *kernel = kernel_new(planner->arena, planner->dims);
    const struct kernel_memory memories[3] = {{.space = MEMORY_GLOBAL,
                                               .dtype = DTYPE_BOOL,
                                               .lanes = 1,
                                               .read = true,
                                               .alignment = 1,
                                               .label = "condition"},
                                              {.space = MEMORY_GLOBAL,
                                               .dtype = DTYPE_U64,
                                               .lanes = 1,
                                               .read = true,
                                               .alignment = 1,
                                               .label = "handle"},
                                              {.space = MEMORY_GLOBAL,
                                               .dtype = DTYPE_U64,
                                               .lanes = 1,
                                               .read = true,
                                               .alignment = 1,
                                               .label = "other_handle"}};
    struct block block = {.kernel = kernel, .at = &kernel->body};
    kernel->strategy = "set_condition";
    kernel->summary = "Lets the launches of a loop or branch run, or not";
    kernel->location = control->location;
    kernel->index_bits = 64;
    for (uint32_t i = 0; i < count; i++)
        (void)kernel_memory_add(kernel, &memories[i]);
    for (uint32_t i = 0; i < 3; i++) {
        kernel->grid[i] = dim_constant(planner->dims, 1);
        kernel->block[i] = 1;
    }
    const expr holds =
        build_declare(&block, "holds", kernel_element(kernel, 0, expr_index(kernel->pool, 0), 1));
    build_set_condition(&block, 1, holds);
    if (otherwise)
        build_set_condition(&block, 2, expr_unary(kernel->pool, EXPR_NOT, holds));
    const uint32_t buffers[3] = {condition, condition, condition};
    struct plan_launch launch = {.location = control->location,
                                 .buffers = arena_copy(planner->arena, buffers, sizeof buffers)};
    memcpy(launch.grid, kernel->grid, sizeof launch.grid);
    planner_mark_use(planner, condition, planner->plan->launches.count);
    if (!planner_add_kernel(planner, control, kernel, planner->plan->machine, &launch.kernel))
        return false;
    vec_push(planner->arena, &planner->plan->launches, launch);
    return true;
}

static uint32_t begin(struct planner *planner, enum plan_control_kind kind, uint32_t condition)
{
    const struct plan_control control = {
        .kind = kind, .condition = condition, .first = planner->plan->launches.count};
    vec_push(planner->arena, &planner->plan->controls, control);
    planner->depth++;
    return planner->plan->controls.count - 1;
}

static struct plan_control *end(struct planner *planner, uint32_t number)
{
    struct plan_control *control = &planner->plan->controls.items[number];
    control->end = planner->plan->launches.count;
    control->inner = planner->plan->controls.count - 1 - number;
    planner->depth--;
    return control;
}

/* ---- If
 * ------------------------------------------------------------------------------------------------------ */

/* One branch: its results go to the node's buffers. */
static bool plan_branch(struct planner *planner, const struct group *group, uint32_t branch)
{
    const struct node *node = graph_node(planner->graph, group->control);
    const struct region *body = &planner->graph->regions.items[node->bodies[branch]];
    for (uint32_t i = 0; i < node->output_count; i++) {
        const value_id result = body->results.items[i];
        if (node->outputs[i] && planner->same_as[result] == result &&
            planner->value_buffers[result] == UINT32_MAX && !planner->init[result])
            planner->value_buffers[result] = planner_value_buffer(planner, node->outputs[i]);
    }
    if (!planner_add_grouping(planner, &group->bodies[branch]))
        return false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!node->outputs[i])
            continue;
        const uint32_t from = planner_value_buffer(planner, body->results.items[i]);
        const uint32_t to = planner_value_buffer(planner, node->outputs[i]);
        if (from != to && !copy_buffer(planner, group, from, to))
            return false;
    }
    return true;
}

/* Something in the branches runs by a condition that only the device has. */
static bool holds_controls(const struct planner *planner, const struct group *group)
{
    const struct node *node = graph_node(planner->graph, group->control);
    for (uint32_t b = 0; b < node->body_count; b++)
        for (uint32_t i = 0; i < group->bodies[b].groups.count; i++) {
            const struct group *inner = &group->bodies[b].groups.items[i];
            if (inner->control && (!node_attribute(graph_node(planner->graph, inner->control), ATTR_dims) ||
                                   holds_controls(planner, inner)))
                return true;
        }
    return false;
}

/* Sizes decide, so the host does: the launches of both branches stand in the plan, without work where they do
 * not run. */
static bool plan_decided(struct planner *planner, const struct group *group, dim condition)
{
    struct dims *dims = planner->dims;
    const dim around = planner->runs, one = dim_constant(dims, 1);
    bool done = true;
    planner->depth++;
    for (uint32_t branch = 0; branch < 2 && done; branch++) {
        const dim here = branch ? dim_sub(dims, one, condition) : condition;
        planner->runs = around == DIM_NONE ? here : dim_min(dims, around, here);
        done = plan_branch(planner, group, branch);
    }
    planner->depth--;
    planner->runs = around;
    return done;
}

static bool plan_if(struct planner *planner, const struct group *group)
{
    const struct attribute *sizes = node_attribute(graph_node(planner->graph, group->control), ATTR_dims);
    if (sizes && !holds_controls(planner, group))
        return plan_decided(planner, group, sizes->dims[0]);
    const uint32_t condition =
        planner_value_buffer(planner, graph_node(planner->graph, group->control)->inputs[0]);
    if (!set_condition(planner, group, condition, true))
        return false;
    const uint32_t number = begin(planner, PLAN_IF, condition);
    planner_mark_use(planner, condition, planner->plan->launches.count);
    if (!plan_branch(planner, group, 0))
        return false;
    const uint32_t middle = planner->plan->launches.count;
    if (!plan_branch(planner, group, 1))
        return false;
    end(planner, number)->middle = middle;
    return true;
}

/* ---- While
 * --------------------------------------------------------------------------------------------------- */

struct loop {
    uint32_t count;   /* the condition, then the states */
    uint32_t *states; /* [count]: plan buffers */
};

static bool is_other_state(const struct loop *loop, uint32_t buffer, uint32_t own)
{
    for (uint32_t i = 0; i < loop->count; i++)
        if (i != own && loop->states[i] == buffer)
            return true;
    return false;
}

/* Before the loop: the states' first values. */
static bool enter(struct planner *planner, const struct group *group, struct loop *loop)
{
    const struct node *node = graph_node(planner->graph, group->control);
    const struct region *body = &planner->graph->regions.items[node->bodies[0]];
    loop->count = node->input_count;
    loop->states = arena_new_array(planner->arena, uint32_t, loop->count);
    for (uint32_t i = 0; i < loop->count; i++) {
        const struct tensor_type *type = &graph_value(planner->graph, node->inputs[i])->type;
        loop->states[i] =
            planner_add_buffer(planner, PLAN_ARENA, 0, type->dtype, tensor_elements(planner->dims, type));
        if (!copy_buffer(planner, group, planner_value_buffer(planner, node->inputs[i]), loop->states[i]))
            return false;
        if (i > 0)
            planner->value_buffers[body->arguments.items[i - 1]] = loop->states[i];
    }
    return true;
}

/* The end of an iteration: results become states. Results that are other states are taken aside before any is
 * written. */
static bool repeat(struct planner *planner, const struct group *group, const struct loop *loop)
{
    const struct node *node = graph_node(planner->graph, group->control);
    const struct region *body = &planner->graph->regions.items[node->bodies[0]];
    uint32_t *from = arena_new_array(planner->arena, uint32_t, loop->count);
    for (uint32_t i = 0; i < loop->count; i++) {
        const struct plan_buffer state = planner->plan->buffers.items[loop->states[i]];
        from[i] = planner_value_buffer(planner, body->results.items[i]);
        if (!is_other_state(loop, from[i], i))
            continue;
        const uint32_t aside = planner_add_buffer(planner, PLAN_ARENA, 0, state.dtype, state.elements);
        if (!copy_buffer(planner, group, from[i], aside))
            return false;
        from[i] = aside;
    }
    for (uint32_t i = 0; i < loop->count; i++)
        if (from[i] != loop->states[i] && !copy_buffer(planner, group, from[i], loop->states[i]))
            return false;
    return true;
}

/* States of which the body sets one element keep their memory. */
static void update_in_place(struct planner *planner, const struct group *group, const struct loop *loop)
{
    const struct node *node = graph_node(planner->graph, group->control);
    const struct region *body = &planner->graph->regions.items[node->bodies[0]];
    for (uint32_t i = 1; i < loop->count; i++)
        if (planner_may_update(planner, &group->bodies[0], body->arguments.items[i - 1],
                               body->results.items[i]))
            planner->value_buffers[body->results.items[i]] = loop->states[i];
}

/* One launch more than the loop has, so that none of its own is the last to read and may write over it. */
static void outlast(struct planner *planner, const struct plan_control *control)
{
    for (uint32_t i = 0; i < planner->plan->buffers.count; i++) {
        const struct plan_buffer *buffer = &planner->plan->buffers.items[i];
        if (buffer->first < control->first && buffer->last >= control->first)
            planner_mark_use(planner, i, control->end);
    }
}

static bool plan_while(struct planner *planner, const struct group *group)
{
    const struct node *node = graph_node(planner->graph, group->control);
    struct loop loop;
    if (!enter(planner, group, &loop) || !set_condition(planner, group, loop.states[0], false))
        return false;
    const uint32_t number = begin(planner, PLAN_WHILE, loop.states[0]);
    for (uint32_t i = 0; i < loop.count; i++)
        planner_mark_use(planner, loop.states[i], planner->plan->launches.count);
    update_in_place(planner, group, &loop);
    if (!planner_add_grouping(planner, &group->bodies[0]) || !repeat(planner, group, &loop) ||
        !set_condition(planner, group, loop.states[0], false))
        return false;
    struct plan_control *control = end(planner, number);
    control->middle = control->end;
    outlast(planner, control);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const value_id output = node->outputs[i];
        if (!output)
            continue;
        if (planner->value_buffers[output] == UINT32_MAX)
            planner->value_buffers[output] = loop.states[1 + i];
        else if (!copy_buffer(planner, group, loop.states[1 + i], planner->value_buffers[output]))
            return false;
    }
    return true;
}

bool planner_add_control(struct planner *planner, const struct group *group)
{
    return graph_node(planner->graph, group->control)->op == OP_If ? plan_if(planner, group)
                                                                   : plan_while(planner, group);
}
