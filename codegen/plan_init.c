/* The init program as a plan of its own: how each constant of the bundle comes from the model's initialisers.
 * The steps are those that the compiler took: nodes that it folded or left to the writing of the bundle, and
 * the strategies' repacking, each as the kernel of its Definition. So whatever pass or strategy makes a
 * constant in future, its steps are here without further code.
 *
 * A step's inputs are weights as the caller gives them, results of earlier steps (in the arena), and
 * constants of the bundle. A weight that another one is combined with stands in the bundle as it is, so that
 * one can be replaced without the other. */
#include <string.h>

#include "codegen/plan_internal.h"
#include "ir/provenance.h"

struct wanted {
    struct plan_constant constant;
    const char *recipe_text; /* NULL without a recipe */
    uint32_t buffer;         /* plan buffer */
};

struct init_builder {
    struct planner planner;
    struct plan_options options;
    struct graph *graph; /* its dims and locations may grow */
    const bool *varying;
    VEC(struct wanted) wanted;
    uint32_t *stamps; /* [value]: of the last search that saw it */
    bool *stored;     /* [value]: a weight that stands in the bundle as it is */
};

static bool constant_elements(const struct graph *graph, value_id value, int64_t *elements)
{
    int64_t sizes[MAX_RANK];
    return tensor_constant_sizes(&graph->dims, &graph_value(graph, value)->type, sizes, elements);
}

/* ---- what is wanted
 * ------------------------------------------------------------------------------------------------ */

static void want(struct init_builder *b, const struct plan_constant *constant)
{
    struct text recipe;
    text_init(&recipe, b->planner.arena);
    if (constant->recipe)
        definition_print(constant->recipe, &recipe);
    for (uint32_t i = 0; i < b->wanted.count; i++) {
        const struct wanted *known = &b->wanted.items[i];
        if (known->constant.value == constant->value && !known->recipe_text == !constant->recipe &&
            (!constant->recipe || strcmp(known->recipe_text, recipe.data) == 0))
            return;
    }
    struct wanted added = {.constant = *constant, .recipe_text = constant->recipe ? recipe.data : NULL};
    added.buffer = planner_add_constant(&b->planner, constant->value, constant->recipe, constant->dtype,
                                        constant->elements);
    vec_push(b->planner.arena, &b->wanted, added);
    if (!constant->recipe && !constant_is_weight(b->graph, constant->value))
        b->planner.value_buffers[constant->value] = added.buffer;
}

/* The weights behind a value; marks them when they are several. */
static void find_sources(struct init_builder *b, value_id value, uint32_t stamp)
{
    struct arena *arena = b->planner.arena;
    VEC(value_id) todo = {0};
    VEC(value_id) weights = {0};
    vec_push(arena, &todo, value);
    while (todo.count) {
        const value_id id = todo.items[--todo.count];
        if (!id || !b->varying[id] || b->stamps[id] == stamp)
            continue;
        b->stamps[id] = stamp;
        if (constant_is_weight(b->graph, id)) {
            vec_push(arena, &weights, id);
            continue;
        }
        const struct node *node = graph_node(b->graph, constant_maker(b->graph, id));
        for (uint32_t i = 0; i < node->input_count; i++)
            vec_push(arena, &todo, node->inputs[i]);
    }
    for (uint32_t i = 0; i < weights.count && weights.count > 1; i++)
        b->stored[weights.items[i]] = true;
}

static void find_wanted(struct init_builder *b, const struct plan *const *plans, uint32_t plan_count)
{
    for (uint32_t p = 0; p < plan_count; p++)
        for (uint32_t i = 0; i < plans[p]->constants.count; i++)
            if (b->varying[plans[p]->constants.items[i].value])
                want(b, &plans[p]->constants.items[i]);
    const uint32_t count = b->wanted.count;
    for (uint32_t i = 0; i < count; i++)
        find_sources(b, b->wanted.items[i].constant.value, i + 1);
    for (value_id v = 1; v < b->graph->values.count; v++) {
        struct plan_constant source = {.value = v, .dtype = graph_value(b->graph, v)->type.dtype};
        if (b->stored[v] && constant_elements(b->graph, v, &source.elements))
            want(b, &source);
    }
}

/* ---- steps
 * ---------------------------------------------------------------------------------------------------------
 */

static bool add_step(struct init_builder *b, const struct group *group, const uint32_t *bound)
{
    struct planner *planner = &b->planner;
    struct plan_strategy_context context =
        plan_strategy_context(b->graph, group, planner->plan->machine, planner->init, planner->scratch);
    context.base.exact_order = true;
    struct config config;
    struct lowered_group lowered = {0};
    struct text reason;
    text_init(&reason, planner->scratch);
    const struct strategy *strategy = strategy_choose(&context.base, 0, &config, NULL);
    context.base.arena = planner->built;
    if (strategy->build(&context.base, &config, &lowered, &reason)) {
        const bool added = planner_add_launches(planner, group, &lowered, planner->plan->machine, bound);
        planner_end_group(planner);
        return added;
    }
    diag_error(planner->diagnostics, DIAG_internal, group->location,
               "strategy %s refused a constant's step: %s", strategy->name, reason.data);
    return false;
}

/* The buffer of a value of which no step makes anything: a weight, or a constant that stays. */
static uint32_t source_buffer(struct init_builder *b, value_id value)
{
    struct planner *planner = &b->planner;
    const struct tensor_type *type = &graph_value(b->graph, value)->type;
    int64_t elements = 0;
    constant_elements(b->graph, value, &elements);
    if (!b->varying[value])
        return planner_add_constant(planner, value, NULL, type->dtype, elements);
    uint32_t index = 0;
    while (planner->plan->weights.items[index] != value)
        index++;
    return planner_add_buffer(planner, PLAN_WEIGHT, index, type->dtype,
                              dim_constant(planner->dims, elements));
}

static bool add_node_step(struct init_builder *b, node_id id)
{
    struct planner *planner = &b->planner;
    struct exprs *pool = arena_new(planner->arena, struct exprs);
    const struct node *node = graph_node(b->graph, id);
    struct group group = {.location = node->location};
    exprs_init(pool, planner->arena, planner->dims);
    if (!define_node(b->graph, id, pool, planner->diagnostics, &group.body))
        return false;
    uint32_t count = 0;
    group.values = arena_new_array(planner->arena, value_id,
                                   group.body.buffers.count + node->input_count + node->output_count);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i])
            group.values[count++] = node->inputs[i];
    for (uint32_t i = 0; i < node->output_count; i++) {
        const value_id output = node->outputs[i];
        if (!output)
            continue;
        group.values[count++] = output;
        const struct tensor_type *type = &graph_value(b->graph, output)->type;
        if (planner->value_buffers[output] == UINT32_MAX)
            planner->value_buffers[output] =
                planner_add_buffer(planner, PLAN_ARENA, 0, type->dtype, tensor_elements(planner->dims, type));
    }
    vec_push(planner->arena, &group.nodes, id);
    return add_step(b, &group, NULL);
}

/* Steps that make the value, and a buffer that it is in. */
static bool make_value(struct init_builder *b, value_id target, bool *made)
{
    struct planner *planner = &b->planner;
    VEC(value_id) todo = {0};
    vec_push(planner->arena, &todo, target);
    while (todo.count) {
        const value_id id = todo.items[todo.count - 1];
        const bool step = b->varying[id] && !constant_is_weight(b->graph, id);
        if (step ? made[constant_maker(b->graph, id)] : planner->value_buffers[id] != UINT32_MAX) {
            todo.count--;
            continue;
        }
        if (!step) {
            planner->value_buffers[id] = source_buffer(b, id);
            continue;
        }
        const node_id maker = constant_maker(b->graph, id);
        const struct node *node = graph_node(b->graph, maker);
        bool waits = false;
        for (uint32_t i = 0; i < node->input_count; i++) {
            const value_id input = node->inputs[i];
            if (!input)
                continue;
            const bool by_step = b->varying[input] && !constant_is_weight(b->graph, input);
            if (by_step ? made[constant_maker(b->graph, input)] : planner->value_buffers[input] != UINT32_MAX)
                continue;
            vec_push(planner->arena, &todo, input);
            waits = true;
        }
        if (waits)
            continue;
        made[maker] = true;
        if (!add_node_step(b, maker))
            return false;
    }
    return true;
}

static bool add_recipe_step(struct init_builder *b, const struct wanted *wanted)
{
    struct planner *planner = &b->planner;
    const uint32_t count = wanted->constant.recipe->buffers.count;
    struct group group = {.body = *wanted->constant.recipe};
    group.values = arena_new_array(planner->arena, value_id, count);
    group.values[0] = wanted->constant.value;
    uint32_t *bound = planner_unset(planner->arena, count);
    bound[1] = wanted->buffer;
    return add_step(b, &group, bound);
}

static bool add_steps(struct init_builder *b)
{
    struct planner *planner = &b->planner;
    bool *made = arena_new_array(planner->arena, bool, b->graph->nodes.count);
    for (uint32_t i = 0; i < b->wanted.count; i++) {
        const struct wanted wanted = b->wanted.items[i];
        const bool weight = constant_is_weight(b->graph, wanted.constant.value);
        if (!make_value(b, wanted.constant.value, made))
            return false;
        if (wanted.constant.recipe) {
            if (!add_recipe_step(b, &wanted))
                return false;
        } else if (weight) {
            const struct plan_copy copy = {.from = planner->value_buffers[wanted.constant.value],
                                           .to = wanted.buffer};
            vec_push(planner->arena, &planner->plan->copies, copy);
        }
    }
    return true;
}

bool plan_init(const struct graph *graph, const struct plan *const *plans, uint32_t plan_count,
               const struct machine *machine, struct arena *arena, struct diagnostics *diagnostics,
               struct plan *out)
{
    *out = (struct plan){.machine = machine};
    struct init_builder b = {.graph = (struct graph *)graph};
    for (value_id v = 1; v < graph->values.count; v++) {
        struct value *value = graph_value(graph, v);
        if (value->kind != VALUE_CONSTANT || !value->weight_name || !*value->weight_name)
            continue;
        if (!value->frozen && dtype_bits(value->type.dtype) < 8)
            value->frozen = "its elements are smaller than a byte";
        vec_push(arena, &out->weights, v);
    }
    b.varying = varying_values(graph, arena);
    b.stamps = arena_new_array(arena, uint32_t, graph->values.count);
    b.stored = arena_new_array(arena, bool, graph->values.count);
    b.planner = (struct planner){
        .graph = graph,
        .dims = &b.graph->dims,
        .arena = arena,
        .scratch = arena_child(arena),
        .built = arena_child(arena),
        .diagnostics = diagnostics,
        .options = &b.options,
        .plan = out,
        .init = arena_new_array(arena, bool, graph->values.count), /* none: a step reads buffers only */
        .value_buffers = planner_unset(arena, graph->values.count),
        .same_as = arena_new_array(arena, value_id, graph->values.count),
    };
    for (value_id v = 0; v < graph->values.count; v++)
        b.planner.same_as[v] = v;
    find_wanted(&b, plans, plan_count);
    return add_steps(&b);
}
